// After a number in the text has set the bench: one button back to where it was.
(() => {
  "use strict";
  const button = document.querySelector("[data-back]");
  if (!button || !window.lesson) return;
  let before = null;

  // the button goes: focus returns to the number that was followed, where the reader was
  button.addEventListener("click", () => {
    const followed = document.querySelector("main a.followed");
    if (before) lesson.set(before, "back");
    (followed ?? document.getElementById("tokens")).focus();
  });

  lesson.onPoint((point, change) => {
    if (change.by === "link" && change.moved.length) before = change.before;
    else if (change.by !== "link") before = null;
    if (button.hidden === Boolean(before)) button.hidden = !before;
  });
})();
