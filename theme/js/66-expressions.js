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
  const { UNARY, BINARY, FUNCTIONS } = lesson.arithmetic;

  // what depends on nothing is worked out once
  const always = (value) => Object.assign(() => value, { always: true });
  const settled = (made, ...parts) => (parts.every((part) => part.always) ? always(made()) : made);

  const binary = ({ operator, left, right }, of) => {
    const [a, b] = [of(left), of(right)];
    return settled(known(BINARY, operator)(a, b), a, b);
  };

  // (node, function of a child, Vega's own functions) → function of (parameters, datum, item)
  const KINDS = {
    Literal: ({ value }) => always(value),
    Identifier({ name }) {
      if (name === "datum") return (_, datum) => datum;
      if (name === "item") return (_, __, item) => item;
      if (Object.hasOwn(Math, name)) return always(Math[name]); // LN2
      if (name === "event") throw new Unknown();
      const parameter = `$${name}`;
      return (p) => p[parameter];
    },
    MemberExpression({ computed, object, property }, of) {
      const [owner, { name }] = [of(object), property];
      if (!computed && object.name === "datum") return (_, datum) => datum[name];
      if (!computed) return (p, d, i) => owner(p, d, i)[name];
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
      if (b) return (p, d, i) => call(a(p, d, i), b(p, d, i));
      const made = (p, d, i) => call(a(p, d, i));
      return call === Math.log ? settled(made, a) : made;
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
      const a = of(argument);
      return settled(known(UNARY, operator)(a), a);
    },
    BinaryExpression: binary,
    LogicalExpression: binary,
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
