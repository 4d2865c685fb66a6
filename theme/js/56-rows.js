// Rows of the ledger by key: one stop of the tab key, arrows go from row to row. The row in focus is paired with its dot
// as the row under a pointer is; everything that it says stands in its cells.
(() => {
  "use strict";
  const rows = [...document.querySelectorAll(".ledger tbody tr")];
  if (!rows.length) return;
  const stop = (row) => { for (const each of rows) each.tabIndex = each === row ? 0 : -1; };
  const STEPS = { ArrowDown: 1, ArrowUp: -1, Home: -rows.length, End: rows.length };

  for (const [index, row] of rows.entries()) {
    row.addEventListener("keydown", (event) => {
      if (!(event.key in STEPS) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      rows[Math.min(Math.max(index + STEPS[event.key], 0), rows.length - 1)].focus();
    });
    row.addEventListener("focus", () => stop(row));
  }
  stop(rows[0]);

  // the style sheet asks which row or dot is meant only while one may be
  const bench = rows[0].closest("[data-bench]");
  const [body, picture] = [rows[0].parentElement, bench.querySelector(".picture")];
  const point = () => {
    bench.toggleAttribute("data-pointing", body.matches(":hover, :focus-within") || picture.matches(":hover"));
  };
  for (const box of [body, picture]) {
    for (const event of ["pointerover", "pointerleave"]) box.addEventListener(event, point);
  }
  for (const event of ["focusin", "focusout"]) body.addEventListener(event, () => queueMicrotask(point));
})();
