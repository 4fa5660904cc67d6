// Points on a canvas: by WebGL, which moves them on its own, or by the 2D context without it.
const VERTEX = `attribute vec2 start, end; attribute vec4 paint; attribute float shape;
  uniform float part; uniform mediump float size; uniform vec4 view; varying vec4 colour; varying float form;
  void main() {
    gl_Position = vec4(mix(start, end, part) * view.xy + view.zw, 0.0, 1.0);
    gl_PointSize = size + 1.0; colour = paint; form = shape;
  }`;
const FRAGMENT = `precision mediump float; uniform float size; varying vec4 colour; varying float form;
  void main() {
    vec2 at = abs(gl_PointCoord - 0.5) * (size + 1.0);
    float far = form < 0.5 ? length(at) : form < 1.5 ? 1.12 * max(at.x, at.y) : 0.8 * (at.x + at.y);
    float seen = clamp(0.5 * size - far + 0.5, 0.0, 1.0) * colour.a;
    gl_FragColor = vec4(colour.rgb * seen, seen);
  }`;
const STRIDE = 8;  // bytes of a point: two coordinates, or its colour, shape and three to align

class Scatter {
  constructor(canvas, places) {
    this.canvas = canvas; this.count = places.length / 2;
    this.start = this.end = places; this.looks = new Uint8Array(STRIDE * this.count);
    this.gl = canvas.getContext("webgl", {antialias: false});
    this.plain = this.gl ? null : canvas.getContext("2d");
    if (!this.gl) return;
    canvas.addEventListener("webglcontextlost", event => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => { this.compile(); this.upload(); });
    this.compile(); this.upload();
  }
  compile() {
    const gl = this.gl, program = this.program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source); gl.compileShader(shader); gl.attachShader(program, shader);
    }
    gl.linkProgram(program); gl.useProgram(program);
    gl.enable(gl.BLEND); gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.buffers = [["start", 2, gl.FLOAT], ["end", 2, gl.FLOAT],
                    ["paint", 4, gl.UNSIGNED_BYTE], ["shape", 1, gl.UNSIGNED_BYTE]].map(
      ([name, size, type]) => ({name, size, type, buffer: gl.createBuffer()}));
  }
  upload() {
    const gl = this.gl, values = [this.start, this.end, this.looks, this.looks];
    if (!gl) return;
    this.buffers.forEach(({buffer}, place) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.bufferData(gl.ARRAY_BUFFER, values[place], gl.DYNAMIC_DRAW);
    });
  }
  take(step) {  // every so many points
    const gl = this.gl;
    for (const {name, size, type, buffer} of this.buffers) {
      const at = gl.getAttribLocation(this.program, name);
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.enableVertexAttribArray(at);
      gl.vertexAttribPointer(at, size, type, name === "paint", STRIDE * step, name === "shape" ? 4 : 0);
    }
  }
  move(start, end) { this.start = start; this.end = end; this.upload(); }
  paint(look) {  // look(k): [red, green, blue, opacity, shape]
    for (let k = 0; k < this.count; k++) this.looks.set(look(k), STRIDE * k);
    this.upload();
  }
  draw(view) {  // {x, y, unit, part, radius, width, height, ratio, step}, in pixels of the page
    const {canvas, gl} = this;
    if (!gl) return this.drawPlain(view);
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clear(gl.COLOR_BUFFER_BIT);
    const sx = 2 * view.unit / view.width, sy = 2 * view.unit / view.height;
    const at = name => gl.getUniformLocation(this.program, name);
    gl.uniform4f(at("view"), sx, sy, -view.x * sx, -view.y * sy);
    gl.uniform1f(at("part"), view.part);
    gl.uniform1f(at("size"), 2 * view.radius * view.ratio);
    this.take(view.step);
    gl.drawArrays(gl.POINTS, 0, Math.ceil(this.count / view.step));
  }
  drawPlain(view) {
    const {plain, looks} = this, {radius, width, height, unit} = view;
    plain.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
    plain.clearRect(0, 0, width, height);
    for (let k = 0; k < this.count; k += view.step) {
      const [x, y] = this.at(k, view.part), [r, g, b, a] = looks.subarray(STRIDE * k);
      plain.fillStyle = `rgba(${r}, ${g}, ${b}, ${a / 255})`;
      plain.beginPath();
      plain.arc(width / 2 + unit * (x - view.x), height / 2 - unit * (y - view.y), radius, 0, 7);
      plain.fill();
    }
  }
  at(k, part) {
    const {start, end} = this, mixed = i => start[i] + part * (end[i] - start[i]);
    return [mixed(2 * k), mixed(2 * k + 1)];
  }
  each(part, visit) {
    const {start, end, count} = this;
    for (let k = 0, i = 0; k < count; k++, i += 2)
      visit(k, start[i] + part * (end[i] - start[i]), start[i + 1] + part * (end[i + 1] - start[i + 1]));
  }
  reach(part) {
    const far = [1e-3, 1e-3];
    this.each(part, (k, x, y) => {
      far[0] = Math.max(far[0], Math.abs(x)); far[1] = Math.max(far[1], Math.abs(y));
    });
    return far;
  }
}
