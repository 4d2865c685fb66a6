// The contents follow the reader: the part that is being read is marked.
(() => {
  "use strict";
  const links = [...document.querySelectorAll("[data-contents] a")];
  const headings = links.map((link) => document.getElementById(link.hash.slice(1))).filter(Boolean);
  if (!headings.length || !("IntersectionObserver" in window)) return;

  const mark = () => {
    const line = innerHeight * 0.35;
    const read = headings.filter((heading) => heading.getBoundingClientRect().top < line);
    const current = read.at(-1)?.id;
    for (const link of links) {
      if (link.hash.slice(1) === current) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  };
  // wakes only when a heading crosses the upper third, however far the reader jumped
  const observer = new IntersectionObserver(mark, { rootMargin: "1000000px 0px -65% 0px" });
  for (const heading of headings) observer.observe(heading);
  mark();
})();
