// Links to a point set the bench and leave the reader's place alone; those at the bench's point are marked.
(() => {
  "use strict";
  if (!window.lesson) return;
  const whole = new RegExp(`^#${lesson.names.map((name) => `${name}=[^&]+`).join("&")}$`);
  const links = [...document.querySelectorAll('a[href^="#"][href*="="]')].map((link) => {
    const href = link.getAttribute("href");
    const pointOf = () => lesson.parse(href)[0];
    // an address of all seven keys on the bench's positions is one already; to read hundreds takes a while
    const fragment = whole.test(href) && !link.dataset.offGrid ? href : lesson.fragment(pointOf());
    return { link, pointOf, fragment };
  });
  const REST = 120;
  let followed = null;
  let marked = []; // the links that stand out now
  const pointed = [];
  let timer = 0;

  // the readout or the cells that a bound number speaks of
  const pointOut = (link) => {
    for (const element of pointed.splice(0)) element.removeAttribute("data-pointed");
    if (!link) return;
    const { readout, kernel, column } = link.dataset;
    // a number that stands in the unit of another readout is no <output> of its own
    const places = readout ? [`[data-readout="${readout}"], [data-beside="${readout}"]`]
      : (kernel ?? "").split(" ").filter(Boolean).map((row) => `[data-kernel="${row}"] [data-column="${column}"]`);
    for (const place of places) {
      const element = document.querySelector(`[data-bench] ${place}`);
      if (element && pointed.push(element)) element.setAttribute("data-pointed", "");
    }
  };

  for (const entry of links) {
    entry.link.addEventListener("click", (event) => {
      if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
      event.preventDefault();
      followed = entry.link;
      const { offGrid } = entry.link.dataset; // the text speaks of a point between the bench's positions
      lesson.set(entry.pointOf(), "link", offGrid ? [`The bench is near that point: ${offGrid}.`] : []);
    });
    entry.link.addEventListener("pointerenter", () => lesson.load(entry.pointOf()).catch(() => {}));
  }

  const mark = () => {
    const here = lesson.fragment(lesson.point);
    const now = links.filter(({ link, fragment }) => fragment === here || link === followed);
    for (const { link } of new Set([...marked, ...now])) { // hundreds of others have nothing to be told
      link.classList.toggle("here", now.some((entry) => entry.link === link && entry.fragment === here));
      link.classList.toggle("followed", link === followed);
    }
    marked = now;
  };

  lesson.onPoint((_, { by }) => {
    clearTimeout(timer);
    if (by !== "link") followed = null;
    pointOut(followed);
    if (by === "control") timer = setTimeout(mark, REST); // not at every position that a slider passes
    else mark();
  });
})();
