// Readouts, verdict and ledger: text and attributes, where they have changed.
(() => {
  "use strict";
  const bench = document.querySelector("[data-bench]");
  if (!bench || !window.lesson) return;
  const targets = [...bench.querySelectorAll("[data-echo]")].map((element) => ({ element, column: element.dataset.echo }));
  const rows = [...bench.querySelectorAll("[data-kernel]")];
  for (const row of rows) {
    for (const cell of row.querySelectorAll("[data-column]")) {
      const column = `${row.dataset.kernel}.${cell.dataset.column}`;
      if (lesson.has(column)) targets.push({ element: cell.querySelector("[data-cell]") ?? cell, column });
    }
  }
  const used = bench.querySelector("[data-memory-used]");
  const bars = rows.map((row) => [row, row.querySelector("[data-bar]"), row.querySelector("[data-column=bound]")]);
  const short = targets.filter(({ column }) => column.endsWith(".latency"));
  const note = bench.querySelector(".latency-note");
  const { bounds } = lesson.data;

  lesson.onPoint((point) => {
    if (lesson.ready(point)) bench.removeAttribute("aria-busy"); // also back from numbers that would not load
    else bench.setAttribute("aria-busy", "true");
  });

  lesson.on(() => {
    bench.removeAttribute("aria-busy");
    for (const target of targets) {
      const text = lesson.text(target.column);
      if (target.text === text) continue;
      target.text = text;
      lesson.write(target.element, text);
      target.element.toggleAttribute("data-none", bounds[text] === "none"); // a dash
    }
    note.toggleAttribute("data-idle", short.every(({ text }) => text === ""));
    const largest = lesson.text("largest");
    for (const [row, bar, bound] of bars) {
      const { kernel } = row.dataset;
      row.classList.toggle("largest", kernel === largest);
      if (!bar) continue;
      lesson.mark(bar, "width", ((lesson.value(lesson.text(`${kernel}.share`)) ?? 0) * 0.73).toFixed(1));
      lesson.mark(bound, "data-bound", bounds[lesson.text(`${kernel}.bound`)]);
    }
    lesson.mark(bench, "data-fits", lesson.text("fits"));
    lesson.mark(used, "width", (40 * Math.min(Number(lesson.text("memory_used")), 1.5)).toFixed(1));
  });
})();
