// How Vega evaluates expressions under the page's policy: by functions made beforehand, where there can be, else by its own
// interpreter. A view takes it as the option `expr`.
(() => {
  "use strict";
  if (!window.lesson) return;
  const MOVED = ["x2", "xc", "y2", "yc"]; // channels after which Vega places a mark by its rules

  lesson.evaluator = (interpreter) => ({
    ...interpreter,

    operator(context, expression) {
      const made = lesson.expression(expression.ast, context.functions);
      return made ?? interpreter.operator(context, expression);
    },

    parameter(context, expression) {
      const made = lesson.expression(expression.ast, context.functions);
      return made ? (datum, parameters) => made(parameters, datum) : interpreter.parameter(context, expression);
    },

    encode(context, encoding) {
      const { marktype, channels } = encoding;
      const made = Object.entries(channels).map(([name, { ast }]) => [name, lesson.expression(ast, context.functions)]);
      const placed = marktype !== "rule" && MOVED.some((name) => name in channels);
      if (placed || made.some(([, value]) => !value)) return interpreter.encode(context, encoding);
      return (item, parameters) => {
        const { datum } = item;
        let changed = false;
        for (const [name, of] of made) {
          const value = of(parameters, datum, item);
          if (item[name] !== value) {
            item[name] = value;
            changed = true;
          }
        }
        return changed;
      };
    },
  });
})();
