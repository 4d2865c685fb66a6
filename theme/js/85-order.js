// On a narrow screen the bench's body is seen after the part that explains it: there it also stands for Tab and for who
// hears the page. What the bench says of itself in attributes, for the style sheet, goes with it.
(() => {
  "use strict";
  const bench = document.querySelector("[data-bench]");
  const part = document.querySelector(".bench-part");
  if (!bench || !part) return;
  const STATES = ["data-fits", "data-stale", "data-pointing", "data-eased", "aria-busy"];
  const body = bench.querySelector(".bench-body");
  const there = document.createElement("section");
  there.className = bench.className;
  there.dataset.bench = "";
  there.setAttribute("aria-label", "The bench: numbers, roofline, ledger");

  const follow = () => {
    for (const name of STATES) {
      if (bench.hasAttribute(name)) there.setAttribute(name, bench.getAttribute(name));
      else there.removeAttribute(name);
    }
  };
  new MutationObserver(follow).observe(bench, { attributes: true, attributeFilter: STATES });
  follow();

  const narrow = matchMedia("(max-width: 1263.98px)");
  const paper = matchMedia("print"); // as narrow as paper is, it passes
  const place = () => {
    const home = narrow.matches ? there : bench;
    if (paper.matches || body.parentElement === home) return;
    const focused = document.activeElement;
    if (home === there) part.after(there);
    home.append(body);
    if (home === bench) there.remove();
    if (body.contains(focused)) focused.focus({ preventScroll: true });
  };
  narrow.addEventListener("change", place);
  place();
})();
