// Where the bench's point stands in the figures of the text. The page says which columns are a figure's x and y, and
// which points it can show; a point that isn't among them has no ring there.
(() => {
  "use strict";
  if (!window.lesson) return;
  const { figures } = lesson.data;

  const here = ({ x, y, unit, at }) => {
    if (!Object.entries(at).every(([axis, values]) => values.includes(lesson.point[axis]))) return [];
    const text = lesson.text(y);
    const row = { x: lesson.value(lesson.text(x)), y: lesson.value(text), label: `${text}${unit}` };
    return row.y === null ? [] : [row];
  };

  // name of a figure → what it shows at the current point: rows by dataset, parameters, and its name in words if that
  // changes
  lesson.charts = {};
  for (const [name, figure] of Object.entries(figures)) {
    lesson.charts[name] = () => ({ data: { here: here(figure) }, signals: {} });
  }
  lesson.chartRows = (name) => (lesson.ready(lesson.point) ? lesson.charts[name]?.() ?? null : null);
})();
