// Vega's expressions as functions, each put together once from its syntax tree rather than read anew at every call; nothing
// is eval'ed. What isn't known here is left to Vega's own interpreter.
(() => {
  "use strict";
  if (!window.lesson) return;
  class Unknown extends Error {}
  const known = (table, name) => {
    if (!Object.hasOwn(table, name)) throw new Unknown();
    return table[name];
  };
  const UNARY = { "!": (a) => !a, "-": (a) => -a, "+": (a) => +a };
  const BINARY = {
    "+": (a, b) => a + b,
    "-": (a, b) => a - b,
    "*": (a, b) => a * b,
    "/": (a, b) => a / b,
    "%": (a, b) => a % b,
    "<": (a, b) => a < b,
    ">": (a, b) => a > b,
    "<=": (a, b) => a <= b,
    ">=": (a, b) => a >= b,
    "==": (a, b) => a == b, // loose, as the language has it
    "!=": (a, b) => a != b,
    "===": (a, b) => a === b,
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

  // (node, function of a child, Vega's own functions) → function of (parameters, datum, item)
  const KINDS = {
    Literal: ({ value }) => () => value,
    Identifier({ name }) {
      if (name === "datum") return (_, datum) => datum;
      if (name === "item") return (_, __, item) => item;
      if (Object.hasOwn(Math, name)) return () => Math[name]; // LN2
      if (name === "event") throw new Unknown();
      return (p) => p[`$${name}`];
    },
    MemberExpression({ computed, object, property }, of) {
      const owner = of(object);
      if (!computed) return (p, d, i) => owner(p, d, i)[property.name];
      const key = of(property);
      return (p, d, i) => owner(p, d, i)[key(p, d, i)];
    },
    CallExpression({ callee, arguments: given }, of, own) {
      const name = callee.name.replace(/^_/, ""); // so Vega marks those of its own that a chart can't call
      if (name === "regexp" && given.every((each) => each.type === "Literal")) {
        const pattern = new RegExp(...given.map((each) => each.value)); // to replace by, which begins at the start anew
        return () => pattern;
      }
      const call = name in own ? own[name].bind(own) : known(FUNCTIONS, name);
      const [a, b, c, more] = given.map(of);
      if (!a || more) throw new Unknown();
      if (c) return (p, d, i) => call(a(p, d, i), b(p, d, i), c(p, d, i));
      return b ? (p, d, i) => call(a(p, d, i), b(p, d, i)) : (p, d, i) => call(a(p, d, i));
    },
    ArrayExpression({ elements }, of) {
      const each = elements.map(of);
      return (p, d, i) => each.map((element) => element(p, d, i));
    },
    ObjectExpression({ properties }, of) {
      const each = properties.map(({ key, value }) => [key.name ?? key.value, of(value)]);
      return (p, d, i) => Object.fromEntries(each.map(([name, value]) => [name, value(p, d, i)]));
    },
    UnaryExpression({ operator, argument }, of) {
      const [by, a] = [known(UNARY, operator), of(argument)];
      return (p, d, i) => by(a(p, d, i));
    },
    BinaryExpression({ operator, left, right }, of) {
      const [by, a, b] = [known(BINARY, operator), of(left), of(right)];
      return (p, d, i) => by(a(p, d, i), b(p, d, i));
    },
    LogicalExpression({ operator, left, right }, of) {
      const [a, b] = [of(left), of(right)];
      return operator === "&&" ? (p, d, i) => a(p, d, i) && b(p, d, i) : (p, d, i) => a(p, d, i) || b(p, d, i);
    },
    ConditionalExpression({ test, consequent, alternate }, of) {
      const [when, a, b] = [of(test), of(consequent), of(alternate)];
      return (p, d, i) => (when(p, d, i) ? a(p, d, i) : b(p, d, i));
    },
  };

  // the function of a tree; null where something in it isn't known
  lesson.expression = (tree, own) => {
    const of = (node) => known(KINDS, node.type)(node, of, own);
    try {
      return of(tree);
    } catch {
      return null;
    }
  };
})();
