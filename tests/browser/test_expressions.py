"""The expressions of the drawings, made into functions, say what Vega's own interpreter says of them."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.bench import Bench

# From now on every expression is evaluated both ways. wrong: those that differ; unknown: those left to the interpreter.
WATCH = """() => {
  const seen = window.seen = { calls: 0, wrong: [], unknown: [] };
  const { evaluator } = lesson;
  const same = (a, b) => Object.is(a, b) || JSON.stringify(a) === JSON.stringify(b);
  lesson.evaluator = (interpreter) => {
    const ours = evaluator(interpreter);
    const watched = Object.fromEntries(["operator", "parameter"].map((kind) => [kind, (context, expression) => {
      if (!lesson.expression(expression.ast, context.functions)) seen.unknown.push(expression.code);
      const [fast, sure] = [ours[kind](context, expression), interpreter[kind](context, expression)];
      return (...given) => {
        const [value, truth] = [fast(...given), sure(...given)];
        seen.calls += 1;
        if (!same(value, truth)) seen.wrong.push([expression.code, String(value), String(truth)]);
        return value;
      };
    }]));
    const encode = (context, encoding) => {
      for (const [channel, { ast, code }] of Object.entries(encoding.channels)) {
        if (!lesson.expression(ast, context.functions)) seen.unknown.push(code);
      }
      const [fast, sure] = [ours.encode(context, encoding), interpreter.encode(context, encoding)];
      return (item, parameters) => {
        const other = Object.assign(Object.create(Object.getPrototypeOf(item)), item);
        const [changed, truth] = [fast(item, parameters), sure(other, parameters)];
        seen.calls += 1;
        if (Boolean(changed) !== Boolean(truth)) seen.wrong.push(["changed", encoding.marktype]);
        for (const channel of Object.keys(encoding.channels)) {
          if (!same(item[channel], other[channel])) seen.wrong.push([channel, item[channel], other[channel]]);
        }
        return changed;
      };
    };
    return { ...ours, ...watched, encode };
  };
}"""


def test_what_is_made_of_an_expression_says_what_the_interpreter_says(open_bench: Callable[..., Bench]) -> None:
    """In every drawing, for rows that fit and that don't, under one roof and two."""
    bench = open_bench("")
    page = bench.page
    page.evaluate(WATCH)
    figures = page.locator("figure[data-figure][data-spec]")
    for name in sorted({figures.nth(n).get_attribute("data-figure") or "" for n in range(figures.count())}):
        figure = page.locator(f"figure[data-figure={name}]").last
        figure.scroll_into_view_if_needed()
        bench.move("tokens", 64)
        # taken over: Vega marks what it draws
        expect(page.locator(f"figure[data-figure={name}] svg.marks:visible").last).to_be_visible()
    for move in (("tokens", 4096), ("context", 512), ("tokens", 1)):
        bench.move(*move)
    for choice in (("weights", "w8a8"), ("gpu", "b200"), ("phase", "prefill"), ("weights", "int4")):
        bench.choose(*choice)
    bench.move("tokens", 1024)
    seen = page.evaluate("() => window.seen")
    assert seen["calls"] > 5000
    assert seen["wrong"] == []
    assert seen["unknown"] == [], "taught to theme/js/66-expressions.js, these would be as fast as the others"
