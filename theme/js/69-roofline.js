// The rows of the roofline at the current point, read from the ledger's own cells.
(() => {
  "use strict";
  if (!window.lesson) return;
  const { axes, families, trails, corners } = lesson.data;
  const value = (column, point) => lesson.value(lesson.text(column, point));

  const kernels = () => {
    const largest = lesson.text("largest");
    return Object.entries(families).map(([kernel, family]) => ({
      kernel,
      family,
      x: value(`${kernel}.arithmetic_intensity`),
      y: value(`${kernel}.attainable_flops`),
      share: value(`${kernel}.share`) / 100,
      largest: kernel === largest,
      memory: lesson.text("fits"),
      label: lesson.text(`${kernel}.label`),
      sublabel: kernel === largest ? lesson.text("sublabel") : "",
      tip: lesson.text(`${kernel}.tip`),
    }));
  };

  // a trail runs through every position of the tokens, and turns at the ridge of its arithmetic
  const trail = (family, kernel) => {
    const rows = [];
    const [ridge, peak] = corners[family].map((column) => value(column));
    const ends = family === "matmuls" ? { [axes.tokens.values[0]]: "first", [axes.tokens.values.at(-1)]: "last" } : {};
    let before = null;
    for (const tokens of axes.tokens.values) {
      const point = { ...lesson.point, tokens };
      const x = value(`${kernel}.arithmetic_intensity`, point);
      if (x === null) continue;
      if (before !== null && before < ridge && ridge < x) rows.push({ family, tokens: null, end: null, x: ridge, y: peak });
      rows.push({ family, tokens, end: ends[tokens] ?? null, x, y: value(`${kernel}.attainable_flops`, point) });
      before = x;
    }
    return rows;
  };

  // a trail stays as it is while the tokens move
  let kept = { key: "", rows: [] };
  const allTrails = () => {
    const key = lesson.fragment({ ...lesson.point, tokens: 0 });
    if (kept.key !== key) {
      kept = { key, rows: Object.entries(trails).flatMap(([family, kernel]) => trail(family, kernel)) };
    }
    return kept.rows;
  };

  lesson.charts.roofline = () => ({
    data: { kernels: kernels(), trails: allTrails() },
    signals: { gpu: lesson.point.gpu, arithmetic: lesson.text("gpu.arithmetic") },
    label: `Roofline of one pass. ${lesson.text("verdict")}`,
  });
})();
