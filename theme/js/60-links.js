// Links to a point set the bench and leave the reader's place alone; those at the bench's point are marked.
(() => {
  "use strict";
  if (!window.lesson) return;
  const links = [...document.querySelectorAll('a[href^="#"][href*="="]')].map((link) => {
    const [point] = lesson.parse(link.getAttribute("href"));
    return { link, point, fragment: lesson.fragment(point) };
  });
  let followed = null;

  for (const entry of links) {
    entry.link.addEventListener("click", (event) => {
      if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
      event.preventDefault();
      followed = entry.link;
      lesson.set(entry.point, "link");
    });
    entry.link.addEventListener("pointerenter", () => lesson.load(entry.point).catch(() => {}));
  }

  const show = (point, { by }) => {
    if (by !== "link") followed = null;
    const here = lesson.fragment(point);
    for (const { link, fragment } of links) {
      link.classList.toggle("here", fragment === here);
      link.classList.toggle("followed", link === followed);
    }
  };
  lesson.onPoint(show);
})();
