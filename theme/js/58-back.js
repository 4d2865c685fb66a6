// After a number in the text has set the bench: one button back to where it was.
(() => {
  "use strict";
  const button = document.querySelector("[data-back]");
  if (!button || !window.lesson) return;
  let before = null;

  button.addEventListener("click", () => {
    if (before) lesson.set(before, "back");
    document.getElementById(before ? "tokens" : "")?.focus({ preventScroll: true });
  });

  lesson.onPoint((point, change) => {
    if (change.by === "link" && change.moved.length) before = change.before;
    else if (change.by !== "link") before = null;
    if (button.hidden === Boolean(before)) button.hidden = !before;
  });
})();
