"use strict";
// Names switch parts off; points say who they are; a rectangle zooms, a double click goes back.
for (const drawing of document.querySelectorAll(".drawing")) {
  for (const button of drawing.querySelectorAll(".legend button")) {
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(on));
      for (const part of drawing.querySelectorAll(`svg [data-part="${button.dataset.part}"]`))
        part.style.display = on ? "" : "none";
    });
  }
}
for (const drawing of document.querySelectorAll(".drawing.points")) {
  const plot = drawing.querySelector("svg.plot"), grid = drawing.querySelector(".grid");
  const all = plot.querySelector("g.all"), home = plot.getAttribute("viewBox");
  const tip = document.createElement("div");
  tip.className = "tip"; tip.hidden = true; drawing.append(tip);
  const told = document.createElement("span"), tile = document.createElement("i");
  tip.append(told);
  const [wide, high, columns] = (drawing.dataset.tile || "").split(" ").map(Number);
  if (wide) {
    const scale = Math.max(1, Math.floor(64 / wide));
    tile.className = "tile"; tip.append(tile);
    tile.style.width = `${wide * scale}px`; tile.style.height = `${high * scale}px`;
    tile.style.backgroundImage = `url(${drawing.dataset.sheet})`;
    tile.style.backgroundSize = `${wide * columns * scale}px auto`;
    tile.show = who => {
      const x = who % columns, y = Math.floor(who / columns);
      tile.style.backgroundPosition = `${-x * wide * scale}px ${-y * high * scale}px`;
    };
  }
  const groups = [...plot.querySelectorAll("path.dots")].map(path => ({
    path, name: path.dataset.name, who: path.dataset.who.split(" "),
    at: Float64Array.from(path.getAttribute("d").match(/-?[\d.]+(?= |h)/g) || []),
  }));
  let from = null, box = null, clicked = -1e9;
  function inner(event) {  // the coordinates inside the zoomed drawing
    const spot = new DOMPoint(event.clientX, event.clientY);
    return spot.matrixTransform(all.getScreenCTM().inverse());
  }
  function nearest(event) {
    const spot = inner(event), unit = 1 / (all.getScreenCTM().a || 1);
    let best = null, least = (14 * unit) ** 2;
    for (const group of groups) {
      if (group.path.style.display === "none") continue;
      for (let k = 0; k < group.who.length; k++) {
        const dx = group.at[2 * k] - spot.x, dy = group.at[2 * k + 1] - spot.y;
        const square = dx * dx + dy * dy;
        if (square < least) { least = square; best = [group, k]; }
      }
    }
    return best;
  }
  plot.addEventListener("pointermove", event => {
    if (from) {
      const spot = inner(event);
      box.setAttribute("x", Math.min(spot.x, from.x)); box.setAttribute("y", Math.min(spot.y, from.y));
      box.setAttribute("width", Math.abs(spot.x - from.x));
      box.setAttribute("height", Math.abs(spot.y - from.y));
      return;
    }
    const found = groups.length ? nearest(event) : null;
    tip.hidden = found === null;
    if (!found) return;
    const frame = drawing.getBoundingClientRect();
    const who = found[0].who[found[1]];
    told.textContent = `sample ${who}` + (found[0].name ? `: ${found[0].name}` : "");
    if (wide) tile.show(Number(who));
    tip.style.left = `${Math.min(event.clientX - frame.left + 12, frame.width - 110)}px`;
    tip.style.top = `${event.clientY - frame.top - 28}px`;
  });
  plot.addEventListener("pointerdown", event => {
    if (event.pointerType !== "mouse" || !groups.length) return;
    from = inner(event);
    box = document.createElementNS(plot.namespaceURI, "rect");
    box.setAttribute("class", "zoom"); plot.append(box);
    plot.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  plot.addEventListener("pointerup", event => {
    if (!from) return;
    const to = inner(event), width = Math.abs(to.x - from.x), height = Math.abs(to.y - from.y);
    const unit = all.getScreenCTM().a;
    if (width * unit > 8 && height * unit > 8) {
      plot.setAttribute("viewBox",
        `${Math.min(to.x, from.x)} ${Math.min(to.y, from.y)} ${width} ${height}`);
      grid.style.visibility = "hidden";  // its values are those of the whole
    } else {
      if (event.timeStamp - clicked < 500) {
        plot.setAttribute("viewBox", home); grid.style.visibility = "";
      }
      clicked = event.timeStamp;
    }
    box.remove(); from = box = null;
  });
  plot.addEventListener("pointerleave", () => { tip.hidden = true; });
}
