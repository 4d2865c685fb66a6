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
  const bars = rows.map((row) => ({
    kernel: row.dataset.kernel,
    row,
    bar: row.querySelector("[data-bar]"),
    bound: row.querySelector("[data-column=bound]"),
  }));
  let marked = null; // the kernel whose row is marked as the largest
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
      const none = bounds[text] === "none"; // a dash
      if (target.none !== none) target.element.toggleAttribute("data-none", none);
      target.none = none;
    }
    note.toggleAttribute("data-idle", short.every(({ text }) => text === ""));
    const largest = lesson.text("largest");
    for (const { kernel, row, bar, bound } of bars) {
      if (largest !== marked) row.classList.toggle("largest", kernel === largest);
      if (!bar) continue;
      lesson.mark(bar, "width", ((lesson.value(lesson.text(`${kernel}.share`)) ?? 0) * 0.73).toFixed(1));
      lesson.mark(bound, "data-bound", bounds[lesson.text(`${kernel}.bound`)]);
    }
    marked = largest;
    lesson.mark(bench, "data-fits", lesson.text("fits"));
    lesson.mark(used, "width", (40 * Math.min(Number(lesson.text("memory_used")), 1.5)).toFixed(1));
  });
})();
