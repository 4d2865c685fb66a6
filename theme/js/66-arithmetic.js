// The operators and functions of Vega's expressions that the charts use: an operator makes one function of those of its parts.
(() => {
  "use strict";
  if (!window.lesson) return;
  // a function for each operator, not one for all that is told which: the browser makes one that does one thing fast
  const UNARY = {
    "!": (a) => (p, d, i) => !a(p, d, i),
    "-": (a) => (p, d, i) => -a(p, d, i),
    "+": (a) => (p, d, i) => +a(p, d, i),
  };
  const BINARY = {
    "+": (a, b) => (p, d, i) => a(p, d, i) + b(p, d, i),
    "-": (a, b) => (p, d, i) => a(p, d, i) - b(p, d, i),
    "*": (a, b) => (p, d, i) => a(p, d, i) * b(p, d, i),
    "/": (a, b) => (p, d, i) => a(p, d, i) / b(p, d, i),
    "%": (a, b) => (p, d, i) => a(p, d, i) % b(p, d, i),
    "<": (a, b) => (p, d, i) => a(p, d, i) < b(p, d, i),
    ">": (a, b) => (p, d, i) => a(p, d, i) > b(p, d, i),
    "<=": (a, b) => (p, d, i) => a(p, d, i) <= b(p, d, i),
    ">=": (a, b) => (p, d, i) => a(p, d, i) >= b(p, d, i),
    "==": (a, b) => (p, d, i) => a(p, d, i) == b(p, d, i), // loose, as the language has it
    "!=": (a, b) => (p, d, i) => a(p, d, i) != b(p, d, i),
    "===": (a, b) => (p, d, i) => a(p, d, i) === b(p, d, i),
    "&&": (a, b) => (p, d, i) => a(p, d, i) && b(p, d, i),
    "||": (a, b) => (p, d, i) => a(p, d, i) || b(p, d, i),
  };
  const { abs, atan2, ceil, cos, floor, log, max, min, pow, round, sin, sqrt, tan } = Math;
  const FUNCTIONS = {
    ...{ abs, atan2, ceil, cos, floor, log, max, min, pow, round, sin, sqrt, tan },
    clamp: (value, low, high) => max(low, min(high, value)),
    isFinite: Number.isFinite,
    length: (value) => value.length,
    replace: (text, pattern, by) => String(text).replace(pattern, by),
    split: (text, by) => String(text).split(by),
  };

  lesson.arithmetic = { UNARY, BINARY, FUNCTIONS };
})();
