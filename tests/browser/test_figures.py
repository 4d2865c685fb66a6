"""The figures in the text, alive: where the bench stands is marked in them, once a reader sees them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.bench import Bench, Truth

RING = "[class~=here_marks] > path"
LABEL = "[class~=here_label_marks] > text"


def _figure(page: Page, name: str, size: str = "wide") -> Locator:
    return page.locator(f"main figure[data-figure={name}] [data-variant={size}]")


def _show(page: Page, name: str) -> None:
    page.locator(f"main figure[data-figure={name}]").evaluate("(figure) => figure.scrollIntoView({ block: 'center' })")


def _scripts(page: Page) -> list[str]:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    return asked


def _expect_here(figure: Locator, *texts: str) -> None:
    """One ring with its label, which stands twice: as a halo, and on it."""
    expect(figure.locator(RING)).to_have_count(1 if texts else 0)
    expect(figure.locator(LABEL)).to_have_text([*texts, *texts])


def _places(marks: Locator) -> list[tuple[float, float]]:
    found = marks.evaluate_all("(paths) => paths.map((path) => path.getAttribute('transform').match(/[-.\\d]+/g))")
    return [(float(x), float(y)) for x, y in found]


def test_a_figure_marks_the_point_of_the_bench(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """The ring lies on the line of its context, goes along with the bench, and goes away where the figure has no place
    for the point."""
    bench = open_bench("#tokens=64")
    name = "throughput-by-context"
    figure = _figure(bench.page, name)
    _show(bench.page, name)
    _expect_here(figure, "1,840 on the bench now")
    ((x, y),) = _places(figure.locator(RING))
    dots = _places(figure.locator("[class~=dots_marks] > path"))
    assert any(abs(x - dot[0]) < 0.1 and abs(y - dot[1]) < 0.5 for dot in dots)
    bench.move("tokens", 128)
    _expect_here(figure, f"{truth.text(truth.point(tokens=128), 'throughput')} on the bench now")
    bench.choose("gpu", "b200")
    _expect_here(figure)
    bench.choose("gpu", "h100")
    bench.choose("phase", "prefill")
    _expect_here(figure)


@pytest.mark.parametrize(
    ("name", "moved", "label"),
    [
        ("intensity-by-tokens", {"tokens": 256, "gpu": "b200", "context": 512}, "236"),
        ("prompt-time", {"phase": "prefill", "tokens": 512, "context": 0, "gpu": "a100"}, "{total.time} ms"),
        ("elementwise-share", {"phase": "prefill", "tokens": 512, "context": 512}, "{elementwise.share} %"),
    ],
)
def test_each_figure_has_points_of_its_own(
    open_bench: Callable[..., Bench], truth: Truth, name: str, moved: dict[str, Any], label: str
) -> None:
    """Marked in words on a wide screen, by the number alone on a phone."""
    point = truth.point(**moved)
    text = re.sub(r"\{(.+)\}", lambda column: truth.text(point, column[1]), label)
    for size, width, height in (("wide", 1440, 900), ("phone", 390, 844)):
        bench = open_bench(truth.fragment(point), width=width, height=height)
        _show(bench.page, name)
        _expect_here(_figure(bench.page, name, size), text + (" on the bench now" if size == "wide" else ""))


def test_a_figure_is_loaded_when_it_comes_into_sight(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """Reaching for the bench brings Vega and the roofline, a figure below brings its own script, and none twice."""
    asked: list[list[str]] = []
    bench = open_bench("#tokens=8", before=lambda page: asked.append(_scripts(page)))
    bench.expect_drawn(truth.point(tokens=8))

    def specs() -> list[str]:
        names = [re.search(r"/assets/([a-z-]+)\.\w+\.js", url) for url in asked[0]]
        return sorted(name[1] for name in names if name and name[1] not in ("lesson", "early"))

    assert specs() == ["roofline", "vega"]
    _show(bench.page, "throughput-by-context")
    _expect_here(
        _figure(bench.page, "throughput-by-context"),
        f"{truth.text(truth.point(tokens=8), 'throughput')} on the bench now",
    )
    assert "throughput-by-context" in specs()
    assert not {"prompt-time", "elementwise-share"} & set(specs())
    assert len(specs()) == len(set(specs()))


def test_idle_time_fetches_what_the_bench_needs(open_bench: Callable[..., Bench]) -> None:
    """Vega and the roofline; the scripts of figures that nobody has reached yet stay away."""
    bench = open_bench()
    links = bench.page.locator("link[rel=prefetch]")
    expect(links).to_have_count(2)
    hrefs = " ".join(links.evaluate_all("(links) => links.map((link) => link.getAttribute('href'))"))
    assert re.fullmatch(r"assets/vega\.\w+\.js assets/roofline\.\w+\.js", hrefs)


def test_a_figure_catches_up_when_it_scrolls_into_view(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """Out of sight it stays as it was, however far the bench moves; back in sight it shows the last point."""
    bench = open_bench("#tokens=64")
    name = "throughput-by-context"
    figure = _figure(bench.page, name)
    _show(bench.page, name)
    _expect_here(figure, "1,840 on the bench now")
    bench.page.evaluate("() => scrollTo(0, 0)")
    # until the page has been told that it is out of sight
    bench.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    for tokens in (96, 128, 256):
        bench.move("tokens", tokens)
        bench.expect_drawn(truth.point(tokens=tokens))
    expect(figure.locator(LABEL).first).to_have_text("1,840 on the bench now")
    _show(bench.page, name)
    _expect_here(figure, f"{truth.text(truth.point(tokens=256), 'throughput')} on the bench now")


def test_a_figure_whose_script_does_not_come_stands_as_drawn(
    open_bench: Callable[..., Bench], truth: Truth, troubles: Any
) -> None:
    """The others go on."""
    troubles.expected.append("ERR_FAILED")
    refused = re.compile(r"/assets/throughput-by-context\.")
    bench = open_bench("#tokens=64", before=lambda page: page.route(refused, lambda route: route.abort()))
    with bench.page.expect_event("requestfailed"):
        _show(bench.page, "throughput-by-context")
    bench.move("tokens", 128)
    bench.expect_drawn(truth.point(tokens=128))
    expect(_figure(bench.page, "throughput-by-context").locator("svg[role=img]")).to_be_visible()
    _show(bench.page, "intensity-by-tokens")
    text = truth.text(truth.point(tokens=128), "gate_proj.arithmetic_intensity")
    _expect_here(_figure(bench.page, "intensity-by-tokens"), f"{text} on the bench now")


def test_pointing_at_a_dot_says_what_the_ledger_says(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """The words of a dot, and of a point of a figure, are there to read where the mouse is; off it they are gone."""
    bench = open_bench("#tokens=64")
    page = bench.page
    roofline = page.locator(".picture figure[data-figure=roofline] [data-variant=wide]")
    page.mouse.move(900, 300)
    # the largest comes first
    dot = roofline.locator("[class~=dots_marks] > path").first
    expect(roofline.locator("[class~=labels_marks] > text", has_text="attention 83")).not_to_have_count(0)
    dot.hover()
    expect(roofline).to_have_attribute("title", "Attention: 4.00 FLOP/B, 13.4 TFLOP/s attainable, 83.0 % of the pass")
    page.mouse.move(1010, 360)
    expect(roofline).to_have_attribute("title", "")
    name = "throughput-by-context"
    _show(page, name)
    figure = _figure(page, name)
    _expect_here(figure, "1,840 on the bench now")
    figure.locator("[class~=dots_marks] > path").nth(12).hover()  # the last of the first line, apart from the others
    expect(figure).to_have_attribute("title", re.compile(r"^[\d,]+ tokens/s: 4,096 at 512 of context, does not fit$"))


# Of a drawing that is alive: how many marks it has, and in what they differ from those of one made at this point.
FRESH = """async (name) => {
  const box = [...document.querySelectorAll(`figure[data-figure=${name}] [data-variant=wide]`)]
    .find((each) => lesson.vega.shows(each));
  const drawn = (svg) => [...svg.querySelectorAll("[class*=role-mark] > *")].map((mark) => [
    mark.parentElement.className.baseVal, mark.textContent,
    ...["transform", "d", "fill", "stroke", "x1", "y1", "x2", "y2", "font-weight"].map((key) => mark.getAttribute(key)),
  ].join(" ")).sort();
  const other = document.createElement("div");
  other.dataset.variant = "wide";
  other.append(document.createElementNS("http://www.w3.org/2000/svg", "svg"));
  await lesson.vega.build(other, name, lesson.chartRows(name));
  const [live, fresh] = [drawn(box.querySelector("svg")), drawn(other.querySelector("svg"))];
  return [live.length, live.filter((mark) => !fresh.includes(mark)), fresh.filter((mark) => !live.includes(mark))];
}"""


@pytest.mark.parametrize("name", ["roofline", "throughput-by-context", "intensity-by-tokens", "elementwise-share"])
def test_what_has_moved_is_what_would_be_drawn_anew(open_bench: Callable[..., Bench], truth: Truth, name: str) -> None:
    """Wherever the bench has been before: marks that move leave nothing behind, and nothing is left out."""
    bench = open_bench("#tokens=64")
    if name != "roofline":  # which is always in sight
        _show(bench.page, name)
    expect(bench.page.locator(f"figure[data-figure={name}] svg [aria-roledescription]").first).to_be_attached()
    for point in truth.sample(25, seed=7):
        bench.page.evaluate("(point) => lesson.set(point, 'control')", asdict(point))
        bench.expect_at(point)
        bench.frame()
        marks, left_over, missing = bench.page.evaluate(FRESH, name)
        assert marks > 5
        assert (left_over, missing) == ([], []), point


WORDS = """(svg) => [...svg.querySelectorAll("text")].filter((text) => text.textContent).map((text) => {
  const at = (element) => {
    const [, x, y] = element.getAttribute?.("transform")?.match(/translate\\(([^,]+),([^)]+)\\)/) ?? [0, 0, 0];
    const [left, top] = element.parentNode.nodeType === 1 ? at(element.parentNode) : [0, 0];
    return [left + Number(x), top + Number(y)];
  };
  return [text.textContent, text.getAttribute("text-anchor") ?? "start", ...at(text)];
})"""


@pytest.mark.parametrize("name", ["roofline", "prompt-time", "elementwise-share"])
def test_words_stand_where_the_build_put_them(open_bench: Callable[..., Bench], name: str) -> None:
    """The browser measures none of them, axes and their titles included: nothing depends on it."""
    bench = open_bench("")
    if name != "roofline":
        _show(bench.page, name)
    svg = bench.page.locator(f"figure[data-figure={name}] svg:visible")
    built = svg.evaluate(WORDS)
    bench.page.locator(".controls").hover()
    expect(bench.page.locator(f"figure[data-figure={name}] svg.marks [aria-roledescription]").first).to_be_attached()
    assert len(built) > 10
    live = svg.evaluate(WORDS)
    for text, anchor, x, y in built:
        assert any(each == [text, anchor, pytest.approx(x, abs=0.02), pytest.approx(y, abs=0.02)] for each in live), (
            text
        )


TRAVELS = """async ([change, by]) => {
  await lesson.set(change, by);
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return document.getAnimations().filter(({ effect }) => effect.target.matches("[class~=dots_marks] > path")).length;
}"""


def test_a_number_of_the_text_lets_the_dots_travel(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """Where the eye has to follow; under a hand that drags they are there at once, and for who asks for less motion."""
    bench = open_bench("#tokens=64")
    bench.expect_drawn(truth.point(tokens=64))
    assert bench.page.evaluate(TRAVELS, [{"tokens": 512}, "link"]) == 6  # in decode two stay where they are
    bench.expect_drawn(truth.point(tokens=512))
    assert bench.page.evaluate(TRAVELS, [{"tokens": 64}, "control"]) == 0
    bench = open_bench("#tokens=64", reduced_motion=True)
    bench.expect_drawn(truth.point(tokens=64))
    assert bench.page.evaluate(TRAVELS, [{"tokens": 512}, "link"]) == 0
