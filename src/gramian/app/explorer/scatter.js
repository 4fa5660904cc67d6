// Points on a canvas: by WebGL if there is a graphics card, otherwise pixel by pixel.
const VERTEX = `attribute vec2 start, end, form; attribute vec4 paint; uniform vec4 view, rings[3];
  uniform float part; uniform mediump float size, ring; varying vec4 colour; varying float shape;
  void main() {
    bool drawn = ring == 0.0 || form.y > 0.0;
    gl_Position = drawn ? vec4(mix(start, end, part) * view.xy + view.zw, 0.0, 1.0) : vec4(2.0, 0.0, 0.0, 1.0);
    gl_PointSize = size + 1.0; colour = ring == 0.0 ? paint : rings[int(form.y)]; shape = form.x;
  }`;
const FRAGMENT = `precision mediump float; uniform float size, ring; varying vec4 colour; varying float shape;
  void main() {
    vec2 at = abs(gl_PointCoord - 0.5) * (size + 1.0);
    float far = ring > 0.0 || shape < 0.5 ? length(at) : shape < 1.5 ? 1.12 * max(at.x, at.y) : 0.8 * (at.x + at.y);
    float seen = clamp(0.5 * size - far + 0.5, 0.0, 1.0);
    if (ring > 0.0) seen *= clamp(far - 0.5 * size + ring + 0.5, 0.0, 1.0);
    gl_FragColor = vec4(colour.rgb, 1.0) * seen * colour.a;
  }`;
const STRIDE = 8;  // bytes of the look of a point: red, green, blue, opacity, shape, ring (0 is none), two to align

class Scatter {
  constructor(canvas, places) {
    this.canvas = canvas; this.count = places.length / 2;
    this.start = this.end = places; this.looks = new Uint8Array(STRIDE * this.count);
    this.colours = [[0, 0, 0], [0, 0, 0], [0, 0, 0]];  // of the ground and the rings 1 and 2
    this.gl = hasGraphicsCard() ? canvas.getContext("webgl", {antialias: false}) : null;
    this.plain = this.gl ? null : canvas.getContext("2d", {alpha: false, willReadFrequently: true});
    if (!this.gl) return;
    canvas.addEventListener("webglcontextlost", event => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => {
      this.compile(); this.upload();
      if (this.view) this.draw(this.view);
    });
    this.compile(); this.upload();
  }
  resize(width, height, ratio) {  // in pixels of the screen if there is a graphics card, otherwise of the page
    this.ratio = this.gl ? ratio : 1;
    this.canvas.width = Math.round(width * this.ratio); this.canvas.height = Math.round(height * this.ratio);
  }
  move(start, end) { this.start = start; this.end = end; this.upload(); }
  paint(look, ...colours) {  // look(k): [red, green, blue, opacity, shape]
    for (let k = 0; k < this.count; k++) this.looks.set(look(k), STRIDE * k);
    this.colours = colours;
  }
  ring(...groups) {  // the samples with the rings 1 and 2; the last group is seen
    for (let k = 0; k < this.count; k++) this.looks[STRIDE * k + 5] = 0;
    groups.forEach((samples, place) => { for (const k of samples) this.looks[STRIDE * k + 5] = place + 1; });
    this.ringed = groups.some(samples => samples.length);
    this.upload();
  }
  draw(view) {  // {x, y, unit, part, radius, width, height}, in pixels of the page
    this.view = view;
    const size = 2 * view.radius * this.ratio, thick = Math.max(1, .17 * size);
    const layers = [[size, 0], ...(this.ringed ? [[1.4 * size + 2 * thick, thick]] : [])];  // points, then rings
    if (this.gl) this.drawByCard(view, layers); else this.drawByPixel(view, layers);
  }

  // --- WebGL ----------------------------------------------------------------------------
  compile() {
    const gl = this.gl, program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source); gl.compileShader(shader); gl.attachShader(program, shader);
    }
    gl.linkProgram(program); gl.useProgram(program);
    gl.enable(gl.BLEND); gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    const names = ["view", "rings", "part", "size", "ring"];
    this.uniforms = Object.fromEntries(names.map(name => [name, gl.getUniformLocation(program, name)]));
    this.buffers = ["start", "end", "looks"].map(name => [name, gl.createBuffer()]);
    const reads = [["start", 0, 2, gl.FLOAT, 0], ["end", 1, 2, gl.FLOAT, 0],
                   ["paint", 2, 4, gl.UNSIGNED_BYTE, 0], ["form", 2, 2, gl.UNSIGNED_BYTE, 4]];
    for (const [name, buffer, size, type, offset] of reads) {
      const at = gl.getAttribLocation(program, name);
      gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[buffer][1]);
      gl.enableVertexAttribArray(at);
      gl.vertexAttribPointer(at, size, type, name === "paint", STRIDE, offset);
    }
  }
  upload() {
    const gl = this.gl;
    if (!gl) return;
    for (const [name, buffer] of this.buffers) {
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.bufferData(gl.ARRAY_BUFFER, this[name], gl.DYNAMIC_DRAW);
    }
  }
  drawByCard(view, layers) {
    const {canvas, gl, uniforms} = this, sx = 2 * view.unit / view.width, sy = 2 * view.unit / view.height;
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.uniform4f(uniforms.view, sx, sy, -view.x * sx, -view.y * sy);
    gl.uniform4fv(uniforms.rings, this.colours.flatMap(rgb => [...rgb.map(value => value / 255), 1]));
    gl.uniform1f(uniforms.part, view.part);
    for (const [size, ring] of layers) {
      gl.uniform1f(uniforms.size, size); gl.uniform1f(uniforms.ring, ring);
      gl.drawArrays(gl.POINTS, 0, this.count);
    }
  }

  // --- without a graphics card ------------------------------------------------------------
  drawByPixel(view, layers) {
    const margin = Math.ceil(layers.at(-1)[0] / 2) + 1, [width, height] = [this.canvas.width, this.canvas.height];
    const across = width + 2 * margin, down = height + 2 * margin;
    if (this.image?.width !== across || this.image.height !== down) {
      this.image = this.plain.createImageData(across, down);
      this.pixels = new Int32Array(this.image.data.buffer);
    }
    const {pixels, looks, start, end} = this, scale = view.unit * this.ratio, {part} = view;
    const left = width / 2 - scale * view.x, top = height / 2 + scale * view.y;
    const packed = ([r, g, b]) => b << 16 | g << 8 | r;
    pixels.fill(packed(this.colours[0]) | 0xff000000);
    const rings = this.colours.map(packed);
    for (const [size, ring] of layers) {
      const stamps = (ring ? [0] : [0, 1, 2]).map(shape => stamp(shape, size, ring, across));
      for (let k = 0, i = 0, l = 0; k < this.count; k++, i += 2, l += STRIDE) {
        if (ring && !looks[l + 5]) continue;
        const x = Math.floor(left + scale * (start[i] + part * (end[i] - start[i]))) + margin;
        const y = Math.floor(top - scale * (start[i + 1] + part * (end[i + 1] - start[i + 1]))) + margin;
        if (x < margin - 1 || y < margin - 1 || x > width + margin || y > height + margin) continue;
        if (ring) blend(pixels, y * across + x, stamps[0], rings[looks[l + 5]], 256);
        else blend(pixels, y * across + x, stamps[looks[l + 4]],
                   looks[l + 2] << 16 | looks[l + 1] << 8 | looks[l], looks[l + 3] + 1);
      }
    }
    this.plain.putImageData(this.image, -margin, -margin);
  }

  // --- positions ------------------------------------------------------------------------
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

function hasGraphicsCard() {  // WebGL in software takes ten times as long as `drawByPixel`
  const gl = document.createElement("canvas").getContext("webgl", {failIfMajorPerformanceCaveat: true});
  const info = gl && gl.getExtension("WEBGL_debug_renderer_info");
  const name = gl && gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER);
  return gl !== null && !/swiftshader|llvmpipe|software|basic render/i.test(name);
}
function stamp(shape, size, ring, across) {  // the pixels that it covers by more than .12, and their cover of 256
  const edge = Math.ceil(size / 2), offsets = [], cover = [];
  for (let y = -edge; y <= edge; y++) for (let x = -edge; x <= edge; x++) {
    const [dx, dy] = [Math.abs(x), Math.abs(y)];
    const far = shape === 0 ? Math.hypot(x, y) : shape === 1 ? 1.12 * Math.max(dx, dy) : 0.8 * (dx + dy);
    const clamp = value => Math.min(1, Math.max(0, value));
    const seen = clamp(size / 2 - far + .5) * (ring ? clamp(far - size / 2 + ring + .5) : 1);
    if (seen > .12) { offsets.push(y * across + x); cover.push(Math.round(256 * seen)); }
  }
  return {offsets: Int32Array.from(offsets), cover: Int32Array.from(cover)};
}
function blend(pixels, at, {offsets, cover}, colour, opacity) {  // red and blue of a pixel together, then green
  const redBlue = colour & 0xff00ff, green = colour & 0xff00;
  for (let p = 0; p < offsets.length; p++) {
    const place = at + offsets[p], under = pixels[place], a = Math.imul(cover[p], opacity) >> 8, b = 256 - a;
    pixels[place] = (Math.imul(under & 0xff00ff, b) + Math.imul(redBlue, a) >>> 8 & 0xff00ff) |
                    (Math.imul(under & 0xff00, b) + Math.imul(green, a) >>> 8 & 0xff00) | 0xff000000;
  }
}
