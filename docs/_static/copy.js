"use strict";
// A button on every block of code that copies it, without the marks of a prompt.
document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("div.highlight")) {
    const code = block.querySelector("pre");
    if (!code || !navigator.clipboard) continue;
    const button = document.createElement("button");
    button.className = "copy";
    button.type = "button";
    button.textContent = "copy";
    button.setAttribute("aria-label", "copy this code");
    button.addEventListener("click", async () => {
      const text = code.innerText.split("\n")
        .map(line => line.replace(/^(>>> |\.\.\. |\$ )/, "")).join("\n");
      await navigator.clipboard.writeText(text);
      button.textContent = "copied";
      setTimeout(() => { button.textContent = "copy"; }, 1500);
    });
    block.style.position = "relative";
    block.append(button);
  }
});
