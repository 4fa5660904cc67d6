"use strict";
// What both pages share: requests to the session, its outcome in one line, and its history.
const fixed = /*FIXED*/null;
const $ = id => document.getElementById(id);
let state = null, busy = false;

function make(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}
function pressed(button, on) { button.setAttribute("aria-pressed", String(on)); }
function say(words) { $("said").textContent = words; }
function announce(words) { $("live").textContent = words; }

async function request(place, given) {
  try {
    const answer = await fetch(place, given && {
      method: "POST", body: JSON.stringify(given), headers: {"Content-Type": "application/json"}});
    const told = await answer.json();
    if (answer.ok) return told;
    say(told.error);
  } catch (error) { say("The page has ended: start the command again."); }
  return null;
}
async function send(action, given) {  // whether it was done
  if (busy) return false;
  busy = true; say(""); document.body.classList.add("busy");
  const told = await request(action, given);
  busy = false; document.body.classList.remove("busy");
  if (told) take(told);
  return told !== null;
}
async function refresh() {
  const told = await request("version");
  if (told && !busy && (!state || told.version !== state.version)) {
    const fresh = await request("state");
    if (fresh) take(fresh);
  }
}
function take(told) {  // a page has its own `show`
  if (state && told.version === state.version) return;
  const first = state === null;
  state = told;
  $("verdict").textContent = told.verdict;
  $("proof").textContent = told.proof; $("proof").hidden = !told.proof;
  $("certificate").textContent = told.certificate;
  $("seconds").textContent = told.version ? `The last change took ${told.seconds} s.` : "";
  $("undo").disabled = told.at === 0;
  $("redo").disabled = told.at === told.history.length;
  if (!first) announce(told.verdict);
  showHistory(["start", ...told.history]);
  show(first);
  document.body.dataset.version = told.version;
}
function showHistory(texts) {
  const lines = texts.map((text, place) => {
    const button = make("button", {textContent: text, title: "return to this state"});
    button.addEventListener("click", () => go(place));
    const line = make("li", {className: place > state.at ? "later" : ""}, button);
    if (place === state.at) line.setAttribute("aria-current", "step");
    return line;
  });
  $("history").replaceChildren(...lines.reverse());
}
function go(to) {
  if (state && to >= 0 && to <= state.history.length) send("go", {version: state.version, to});
}
document.addEventListener("keydown", event => {
  if (!(event.ctrlKey || event.metaKey) || event.target.tagName === "INPUT" || !state) return;
  const back = event.key === "z", forth = event.key === "y" || event.key === "Z";
  if (back || forth) { event.preventDefault(); go(state.at + (back ? -1 : 1)); }
});
function begin() {
  document.title = $("title").textContent = fixed.title;
  $("undo").addEventListener("click", () => go(state.at - 1));
  $("redo").addEventListener("click", () => go(state.at + 1));
  refresh();
  setInterval(refresh, 1000);
}
