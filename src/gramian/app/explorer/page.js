// The map of the samples: drawing, tools for the mouse, touch and the keyboard.
const metric = fixed.kind === "metric", n = fixed.places.length;
const nameOf = k => fixed.names ? fixed.names[k] : `sample ${k}`;
const canvas = $("canvas"), pen = canvas.getContext("2d"), linkPen = $("links").getContext("2d");
const scatter = new Scatter($("points"), Float32Array.from(fixed.places.flat()));
const still = matchMedia("(prefers-reduced-motion: reduce)"), dark = matchMedia("(prefers-color-scheme: dark)");
const HINTS = {
  move: "Drag to move the map, turn the wheel to zoom, click to select.",
  must: "Draw a line between two points that belong together.",
  cannot: "Draw a line between two points that belong apart.",
  mark: metric ? "Write a class, then click on samples of it."
               : "Write the name of a cluster, then click on its points.",
  lasso: "Draw around points to select them, then link or name them at once.",
};
const MOVING = 700, SETTLED = 200, REACH = 14;  // milliseconds; pixels
const MOST_LOST = 50, MOST_LINES = 100;  // links listed; links drawn in motion
const MOST_RINGS = 2000;  // if more samples are given, they have no rings; if more are selected, the others fade
let width = 1, height = 1, ratio = 1, waiting = false, began = -1e9, part = 1;
let camera = {x: 0, y: 0, zoom: 1}, view = metric ? "learned" : "samples", tool = metric ? "mark" : "must";
let stale = true, blank = false, rest = 0;  // whether points and links are drawn, too; whether no link is on the canvas
let hover = -1, focus = -1, anchor = -1, asked = [], only = null, act = null;
let selection = new Set(), reach = [[1, 1], [1, 1]];  // how far points are from the middle
const colours = {back: "", ink: "", soft: "", accent: "", good: "", bad: ""};
for (let c = 0; c < 10; c++) colours[`c${c}`] = "";
const fingers = new Map(), cards = new Map(), places = {samples: fixed.places};

// --- drawing ----------------------------------------------------------------------------
const fit = ([ex, ey]) => Math.max(10, Math.min((width / 2 - 28) / ex, (height / 2 - 28) / ey));
const unit = () => camera.zoom * (fit(reach[0]) + part * (fit(reach[1]) - fit(reach[0])));
const radius = () => Math.min(9, (n > 20000 ? 1.6 : n > 4000 ? 2.4 : n > 800 ? 3.6 : 5) *
                                 Math.sqrt(Math.max(1, camera.zoom)));
function spot(k) {  // where a sample is drawn, in pixels of the page from the corner of the map
  const [x, y] = scatter.at(k, part), scale = unit();
  return [width / 2 + scale * (x - camera.x), height / 2 - scale * (y - camera.y)];
}
function draw() { if (!waiting) { waiting = true; requestAnimationFrame(paint); } }
function redraw() { stale = true; draw(); }
function shift() {  // after the camera has moved; all links are drawn when it has come to rest
  clearTimeout(rest);
  rest = setTimeout(() => { rest = 0; if (state?.links.length > MOST_LINES) redraw(); }, SETTLED);
  redraw();
}
function paint(now) {
  waiting = false;
  if (!state) return;
  if (ratio !== devicePixelRatio) return measure();
  const share = still.matches ? 1 : Math.min(1, Math.max(0, (now - began) / MOVING));
  part = share * share * (3 - 2 * share);
  if (stale) {
    scatter.draw({...camera, unit: unit(), part, radius: radius(), width, height});
    links(rest || share < 1 ? -MOST_LINES : 0);
  }
  stale = share < 1;
  overlay();
  if (stale) draw();
}
function cleared(pen) {
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}
function links(from) {  // one by one: a single path of lines that cross takes longer
  if (blank && !state.links.length) return;
  const pen = cleared(linkPen);
  blank = !state.links.length;
  for (const [k, {i, j, kind}] of [...state.links.entries()].slice(from))
    line(pen, spot(i), spot(j), kind, k in state.reasons ? 3 : 1.4);
}
function overlay() {
  cleared(pen);
  if (asked.length === 2) line(pen, ...asked.map(spot), "asked", 2);
  if (act && act.kind === "line") line(pen, spot(act.from), act.to, tool, 2);
  rings([...asked, hover, anchor, focus].filter(k => k >= 0));
  if (act && act.kind === "lasso") loop(act.path);
}
function line(pen, from, to, kind, thick) {
  pen.strokeStyle = colours[kind === "must" ? "good" : kind === "cannot" ? "bad" : "accent"];
  pen.lineWidth = thick;
  pen.setLineDash(kind === "cannot" ? [6, 4] : kind === "asked" ? [2, 4] : []);
  pen.beginPath(); pen.moveTo(...from); pen.lineTo(...to); pen.stroke();
}
function rings(samples) {
  pen.strokeStyle = colours.ink; pen.lineWidth = 2; pen.setLineDash([]); pen.beginPath();
  const size = radius() + 4;
  for (const k of samples) {
    const [x, y] = spot(k);
    pen.moveTo(x + size, y); pen.arc(x, y, size, 0, 6.2832);
  }
  pen.stroke();
}
function loop(path) {
  pen.beginPath(); path.forEach(at => pen.lineTo(...at)); pen.closePath();
  pen.fillStyle = pen.strokeStyle = colours.accent; pen.lineWidth = 1.5; pen.setLineDash([]);
  pen.stroke(); pen.globalAlpha = .12; pen.fill(); pen.globalAlpha = 1;
}
function recolour() {
  if (!state) return;
  const style = getComputedStyle(document.documentElement);
  for (const name of Object.keys(colours)) colours[name] = style.getPropertyValue(`--${name}`).trim();
  paintPoints(); redraw();
}
function paintPoints() {
  const full = n > 20000 ? 170 : n > 4000 ? 200 : 230, many = selection.size > MOST_RINGS;
  const soft = rgb("soft"), palette = [...Array(10).keys()].map(c => rgb(`c${c}`)), given = Object.keys(state.marks);
  scatter.paint(k => {
    const label = state.labels[k], base = label < 0 ? soft : palette[label % 10];
    const seen = (only === null || only === label) && (!many || selection.has(k)) ? full : 25;
    return [...base, label < 0 ? seen * .6 : seen, label < 0 ? 0 : Math.floor(label / 10) % 3];
  }, rgb("back"), rgb("ink"), rgb("accent"));
  scatter.ring(given.length > MOST_RINGS ? [] : given, many ? [] : [...selection]);
}
function rgb(name) { return [1, 3, 5].map(at => parseInt(colours[name].slice(at, at + 2), 16)); }
function move() {
  const now = new Float32Array(2 * n), goal = places[view] || state.learned;
  scatter.each(part, (k, x, y) => { now[2 * k] = x; now[2 * k + 1] = y; });
  scatter.move(now, Float32Array.from(goal.flat()));
  reach = [scatter.reach(0), scatter.reach(1)];
  began = performance.now(); part = 0;
  redraw();
}
function measure() {
  const box = canvas.getBoundingClientRect();
  width = box.width; height = box.height; ratio = devicePixelRatio;
  scatter.resize(width, height, ratio);
  for (const one of [canvas, $("links")]) {
    one.width = Math.round(width * ratio); one.height = Math.round(height * ratio);
  }
  stale = true;
  if (state) paint(performance.now());  // at once: a changed canvas is empty
}
function zoom(factor, x = width / 2, y = height / 2) {
  const before = unit();
  camera.zoom = Math.min(400, Math.max(.5, camera.zoom * factor));
  const change = 1 / before - 1 / unit();
  camera.x += (x - width / 2) * change; camera.y -= (y - height / 2) * change;
  shift();
}
function whole() { camera = {x: 0, y: 0, zoom: 1}; redraw(); }
function pan(dx, dy) { camera.x -= dx / unit(); camera.y += dy / unit(); shift(); }

// --- what the session says --------------------------------------------------------------
function show(first) {
  asked = []; $("same").hidden = $("different").hidden = true; $("question").textContent = "";
  $("model").setAttribute("aria-disabled", String(!state.proof));
  legend(); lost(); recolour(); chosen();
  if (view === "learned" || first) move();
}
function legend() {
  const counts = new Map();
  for (const label of state.labels) counts.set(label, (counts.get(label) || 0) + 1);
  const labels = [...state.classes.keys(), ...(counts.has(-1) ? [-1] : [])];
  if (!labels.includes(only)) only = null;
  $("legend").replaceChildren(...labels.map(label => {
    const name = label < 0 ? "no class yet" : state.classes[label];
    const swatch = make("i", {className: `swatch shape${label < 0 ? 0 : Math.floor(label / 10) % 3}`});
    swatch.style.background = label < 0 ? "var(--soft)" : `var(--c${label % 10})`;
    const count = make("small", {textContent: (counts.get(label) || 0).toLocaleString("en")});
    const button = make("button", {title: "highlight"}, swatch, make("span", {textContent: name}), count);
    pressed(button, only === label);
    button.addEventListener("click", () => {
      only = only === label ? null : label;
      if (metric && label >= 0) $("name").value = name;
      legend(); recolour();
    });
    return button;
  }));
}
function lost() {
  const found = Object.entries(state.reasons);
  $("unkept").hidden = found.length === 0;
  $("lost").replaceChildren(...found.slice(0, MOST_LOST).map(([k, reason]) => {
    const {i, j, kind} = state.links[k], how = kind === "must" ? "together" : "apart";
    return make("li", {}, make("b", {textContent: `${nameOf(i)} – ${nameOf(j)}, ${how}: `}), reason);
  }));
}
function chosen() {
  const count = selection.size;
  $("chosen").hidden = count === 0;
  $("selected").textContent = `${count.toLocaleString("en")} selected`;
  $("join").disabled = count < 2; $("part").disabled = count !== 2;
  $("name").hidden = tool !== "mark" && count === 0;
}
function choose(samples, add) {
  if (!add) selection = new Set();
  for (const k of samples) if (!selection.delete(k)) selection.add(k);
  chosen(); draw();
  if (scatter.view) { paintPoints(); scatter.draw(scatter.view); }
}
const link = (rows, kind) => send("link", {rows, kind});
const once = async done => { if (await done) choose([], false); };
const mark = rows => send("mark", {rows, name: $("name").value});

// --- cards ------------------------------------------------------------------------------
function described(k) {
  const label = state.labels[k], given = state.marks[k];
  return given ? `${given} (given)` : label < 0 ? "no class yet" : state.classes[label];
}
async function card(k) {
  $("card").hidden = k < 0 || !state || act !== null;
  if ($("card").hidden) return;
  const box = $("card"), rows = cards.get(k);
  box.replaceChildren(make("b", {textContent: nameOf(k)}), make("div", {className: "soft", textContent: described(k)}));
  if (rows) box.append(columns(rows));
  const [x, y] = spot(k), right = x + 16 + box.offsetWidth < width;
  box.style.left = `${Math.max(4, right ? x + 16 : x - 16 - box.offsetWidth)}px`;
  box.style.top = `${Math.max(4, Math.min(y - 20, height - box.offsetHeight - 4))}px`;
  if (rows || cards.has(k)) return;
  cards.set(k, null);
  const told = await request(`card/${k}`);
  if (told) { cards.set(k, told); if (k === hover || k === focus) card(k); } else cards.delete(k);
}
function columns({columns: shown, more, image}) {
  if (image) return make("img", {src: image, alt: ""});
  const lines = shown.map(([name, value]) =>
    make("tr", {}, make("th", {textContent: name}), make("td", {textContent: value})));
  const rest = more ? [make("caption", {className: "soft", textContent: `and ${more} more`})] : [];
  const table = make("table", {}, ...rest, ...lines);
  rest.forEach(caption => { caption.style.captionSide = "bottom"; });
  return table;
}

// --- mouse and touch --------------------------------------------------------------------
function place(event) {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}
function inner([x, y]) {  // the other way round than `spot`
  return [camera.x + (x - width / 2) / unit(), camera.y - (y - height / 2) / unit()];
}
const distance = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);
function nearest(at, reach = Math.max(REACH, radius() + 4)) {
  const [px, py] = inner(at);
  let best = -1, least = (reach / unit()) ** 2;
  scatter.each(part, (k, x, y) => {
    const square = (x - px) ** 2 + (y - py) ** 2;
    if (square <= least) { least = square; best = k; }
  });
  return best;
}
function within(path) {
  const edge = Float64Array.from(path.flatMap(inner)), end = edge.length, inside = [];
  scatter.each(part, (k, x, y) => {
    let odd = false, bx = edge[end - 2], by = edge[end - 1];
    for (let i = 0; i < end; i += 2) {
      const ax = edge[i], ay = edge[i + 1];
      if (ay > y !== by > y && x < (bx - ax) * (y - ay) / (by - ay) + ax) odd = !odd;
      bx = ax; by = ay;
    }
    if (odd) inside.push(k);
  });
  return inside;
}
canvas.addEventListener("pointerdown", event => {
  const at = place(event), hit = nearest(at);
  fingers.set(event.pointerId, at);
  canvas.setPointerCapture(event.pointerId);
  if (fingers.size === 2) act = {kind: "pinch"};
  else if (event.button > 0) act = {kind: "pan"};
  else if (tool === "lasso" || event.shiftKey) act = {kind: "lasso", path: [at], hit};
  else if (hit >= 0 && (tool === "must" || tool === "cannot")) act = {kind: "line", from: hit, to: at};
  else act = {kind: "pan", hit, origin: at};
  card(-1); draw();
});
canvas.addEventListener("pointermove", event => {
  const at = place(event), before = fingers.get(event.pointerId);
  if (before) fingers.set(event.pointerId, at);
  if (!act) { hover = nearest(at); card(hover); }
  else if (act.kind === "pan") pan(at[0] - before[0], at[1] - before[1]);
  else if (act.kind === "lasso") { if (distance(at, act.path.at(-1)) > 3) act.path.push(at); }
  else if (act.kind === "line") { act.to = at; hover = nearest(at); }
  else if (act.kind === "pinch" && before) pinch(event.pointerId, before, at);
  draw();
});
function pinch(id, before, at) {
  const other = [...fingers].find(([finger]) => finger !== id)?.[1];
  if (!other) return;
  zoom(distance(at, other) / Math.max(1, distance(before, other)), (at[0] + other[0]) / 2, (at[1] + other[1]) / 2);
  pan((at[0] - before[0]) / 2, (at[1] - before[1]) / 2);
}
canvas.addEventListener("pointerup", event => {
  const done = act, at = place(event);
  fingers.delete(event.pointerId);
  act = null;
  if (!done || done.kind === "pinch") return draw();
  const hit = nearest(at);
  if (done.kind === "line" && hit >= 0 && hit !== done.from) link([done.from, hit], tool);
  else if (done.kind === "line" && hit === done.from) use(hit);
  else if (done.kind === "lasso" && done.path.length > 2) choose(within(done.path), event.shiftKey);
  else if (done.kind === "lasso") choose(hit < 0 ? [] : [hit], true);
  else if (done.origin && distance(at, done.origin) < 5) use(done.hit);
  if (event.pointerType === "touch") { hover = hit; card(hit); }
  draw();
});
canvas.addEventListener("pointercancel", event => { fingers.delete(event.pointerId); act = null; draw(); });
canvas.addEventListener("pointerleave", () => { hover = -1; card(-1); draw(); });
canvas.addEventListener("contextmenu", event => event.preventDefault());
canvas.addEventListener("dblclick", event => { if (nearest(place(event)) < 0) whole(); });
canvas.addEventListener("wheel", event => {
  event.preventDefault();
  zoom(Math.exp(-event.deltaY * (event.deltaMode ? .05 : .0016)), ...place(event));
}, {passive: false});

function use(k) {  // a sample is clicked, or Enter is pressed on it
  if (k < 0) return choose([], false);
  if (tool === "mark") return mark([k]);
  if (tool === "move" || tool === "lasso") return choose([k], true);
  if (anchor < 0) { anchor = k; announce(`from ${nameOf(k)}: choose the other point`); }
  else { if (anchor !== k) link([anchor, k], tool); anchor = -1; }
  draw();
}

// --- keyboard and buttons ---------------------------------------------------------------
const ARROWS = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]};
function step([dx, dy]) {  // the next sample in a direction
  if (focus < 0) return nearest([width / 2, height / 2], Infinity);
  const [px, py] = scatter.at(focus, part), some = 1e-6;
  let best = focus, least = Infinity;
  scatter.each(part, (k, x, y) => {
    const along = (x - px) * dx + (y - py) * dy, aside = Math.abs((x - px) * dy) + Math.abs((y - py) * dx);
    if (along > some && along + 2 * aside < least) { least = along + 2 * aside; best = k; }
  });
  return best;
}
canvas.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || !state) return;
  if (ARROWS[event.key]) {
    focus = hover = step(ARROWS[event.key]);
    card(focus); announce(`${nameOf(focus)}, ${described(focus)}`);
  } else if (event.key === "Enter" || event.key === " ") { if (focus >= 0) use(focus); }
  else if (event.key === "+" || event.key === "=") zoom(1.4);
  else if (event.key === "-") zoom(1 / 1.4);
  else if (event.key === "0") whole();
  else return;
  event.preventDefault(); draw();
});
canvas.addEventListener("blur", () => { focus = -1; card(-1); draw(); });
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "INPUT") return;
  if (event.key === "Escape") { anchor = -1; act = null; asked = []; choose([], false); }
  const found = {m: "move", t: "must", a: "cannot", n: "mark", l: "lasso"}[event.key];
  if (found && !document.querySelector(`[data-tool="${found}"][hidden]`)) { takeUp(found); event.preventDefault(); }
});
function takeUp(next) {
  tool = next; anchor = -1; canvas.dataset.tool = tool;
  for (const button of $("tools").children) pressed(button, button.dataset.tool === tool);
  $("hint").textContent = HINTS[tool];
  chosen(); draw();
}
async function look(next) {
  for (const button of $("views").children) pressed(button, button.dataset.view === next);
  view = next;
  if (next === "neighbours" && !places.neighbours) {
    document.body.classList.add("busy"); announce("the layout is being computed");
    const told = await request("layout");
    document.body.classList.remove("busy");
    if (told) places.neighbours = told.places; else return look("samples");
  }
  if (state && view === next) move();
}
async function ask() {
  const told = await request("question");
  if (!told) return;
  asked = told.rows;
  const names = asked.map(nameOf).join(" and ");
  $("same").hidden = $("different").hidden = metric;
  $("question").textContent = metric ? `${names}: write its class and click on it.` : `Do ${names} belong together?`;
  if (asked.some(k => { const [x, y] = spot(k); return x < 0 || y < 0 || x > width || y > height; })) whole();
  draw();
}
const clicks = {
  closer: () => zoom(1.4), wider: () => zoom(1 / 1.4), whole, ask,
  join: () => once(link([...selection], "must")), part: () => once(link([...selection], "cannot")),
  call: () => once(mark([...selection])), clear: () => choose([], false),
  same: () => link(asked, "must"), different: () => link(asked, "cannot"),
};
for (const [id, done] of Object.entries(clicks)) $(id).addEventListener("click", done);
for (const button of $("views").children) button.addEventListener("click", () => look(button.dataset.view));
for (const button of $("tools").children) button.addEventListener("click", () => takeUp(button.dataset.tool));
for (const part of document.querySelectorAll("[data-for]")) part.hidden = part.dataset.for !== fixed.kind;
$("name").placeholder = metric ? "name of a class" : "name of a cluster";
$("name").addEventListener("keydown", event => {
  if (event.key === "Enter" && selection.size) once(mark([...selection]));
});
dark.addEventListener("change", recolour);
new ResizeObserver(measure).observe(canvas);
addEventListener("resize", measure);
measure(); takeUp(tool); look(view); begin();
