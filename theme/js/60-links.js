// Links to a point set the bench and leave the reader's place alone; those at the bench's point are marked.
(() => {
  "use strict";
  if (!window.lesson) return;
  const links = [...document.querySelectorAll('a[href^="#"][href*="="]')].map((link) => {
    const [point] = lesson.parse(link.getAttribute("href"));
    return { link, point, fragment: lesson.fragment(point) };
  });
  const bench = document.querySelector("[data-bench]");
  let followed = null;

  // the readout or the cells that a bound number speaks of
  const pointOut = (link) => {
    for (const element of bench.querySelectorAll("[data-pointed]")) element.removeAttribute("data-pointed");
    if (!link) return;
    const { readout, kernel, column } = link.dataset;
    const places = readout ? [`[data-readout="${readout}"]`]
      : (kernel ?? "").split(" ").filter(Boolean).map((row) => `[data-kernel="${row}"] [data-column="${column}"]`);
    for (const place of places) bench.querySelector(place)?.setAttribute("data-pointed", "");
  };

  for (const entry of links) {
    entry.link.addEventListener("click", (event) => {
      if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
      event.preventDefault();
      followed = entry.link;
      const { offGrid } = entry.link.dataset; // the text speaks of a point between the bench's positions
      lesson.set(entry.point, "link", offGrid ? [`The bench is near that point: ${offGrid}.`] : []);
    });
    entry.link.addEventListener("pointerenter", () => lesson.load(entry.point).catch(() => {}));
  }

  const show = (point, { by }) => {
    if (by !== "link") followed = null;
    pointOut(followed);
    const here = lesson.fragment(point);
    for (const { link, fragment } of links) {
      link.classList.toggle("here", fragment === here);
      link.classList.toggle("followed", link === followed);
    }
  };
  lesson.onPoint(show);
})();
