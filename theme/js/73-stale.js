// Numbers go on where the live picture does not come. What it still shows is then said beside it: its name says which point
// that is.
(() => {
  "use strict";
  const bench = document.querySelector("[data-bench]");
  if (!bench || !window.lesson) return;
  const PATIENCE = 1500;
  const drawings = [...bench.querySelectorAll("figure [data-variant]")];
  let timer = 0;

  const inSight = (box) => { // the others follow when they come into sight
    const { top, bottom } = box.getBoundingClientRect();
    return lesson.vega.shows(box) && bottom > 0 && top < innerHeight;
  };

  const look = () => {
    const rows = lesson.chartRows("roofline");
    if (!rows) return; // numbers are on their way, and will be heard of
    const stale = drawings.some((box) => (
      inSight(box) && box.querySelector("svg").getAttribute("aria-label") !== rows.label));
    bench.toggleAttribute("data-stale", stale);
    if (stale) timer = setTimeout(look, PATIENCE); // it may be on its way
  };

  lesson.on(() => {
    clearTimeout(timer);
    timer = setTimeout(look, PATIENCE);
  });
})();
