// Where a number in the text or a choice takes the bench, its dots travel there, so that the eye can follow; under a hand
// that drags they are there at once. How they travel, and for whom, is the style sheet's.
(() => {
  "use strict";
  const bench = document.querySelector("[data-bench]");
  if (!bench || !window.lesson) return;
  const dragged = new Set([...bench.querySelectorAll("input[type=range]")].map((range) => range.name));
  lesson.on((_, { by, moved }) => {
    bench.toggleAttribute("data-eased", by !== "control" || !moved.some((axis) => dragged.has(axis)));
  });
})();
