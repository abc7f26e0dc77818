// The button that copies a block of commands leaves out prompts and output, as selecting does in site.css.
document.addEventListener(
  "click",
  (event) => {
    const button = event.target.closest(".md-code__button[data-clipboard-target]");
    const code = button && document.querySelector(button.dataset.clipboardTarget);
    if (!code?.querySelector(".gp")) return;
    const commands = code.cloneNode(true);
    commands.querySelectorAll(".gp, .go").forEach((part) => part.remove());
    button.dataset.clipboardText = commands.textContent.replace(/\n{2,}/g, "\n").trim();
  },
  true, // before the theme copies
);
