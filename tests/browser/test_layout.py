"""Where things stand: nothing jumps, nothing overflows, and narrow, dark and printed pages work too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from builder.charts import FRAMES
from tests.browser.bench import Bench, Truth

PLACES = """() => [...document.querySelectorAll(
  "[data-control], .option, [data-value], .verdict, .readouts > div, .picture-title, .picture figure, .ledger tr, "
  + ".ledger tr > *, .bar svg, .memory-bar")].map((element) => {
    const { x, y, width, height } = element.getBoundingClientRect();
    // words are as wide as they are; those beside a slider end at the same edge
    if (element.matches("[data-value], .memory-bar")) return [y, height];
    return element.matches(".picture-title") ? [x, y, height] : [x, y, width, height];
  })"""
OVERFLOW = """() => {
  const root = document.scrollingElement;
  const scrolls = "svg, pre > *, .math > *, .hidden, .ledger-box, .strip-point"; // in a box of their own, or unseen
  const wide = [...document.querySelectorAll("body *")].filter((element) => (
    element.matches(".value") && element.scrollWidth > element.clientWidth
    || element.getBoundingClientRect().right > root.clientWidth && !element.closest(scrolls)));
  return [root.scrollWidth - root.clientWidth, wide.slice(0, 5).map((e) => e.outerHTML.slice(0, 80))];
}"""
# Neighbours in a row of the ledger whose texts meet.
COLLISIONS = """() => {
  const shown = (cell) => {
    const range = document.createRange(), boxes = [];
    for (const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT); walk.nextNode();) {
      const parent = walk.currentNode.parentElement;
      if (!walk.currentNode.data.trim() || getComputedStyle(parent).clipPath !== "none") continue;
      range.selectNodeContents(walk.currentNode);
      boxes.push(...range.getClientRects());
    }
    boxes.push(...[...cell.querySelectorAll("svg, .latency")].map((e) => e.getBoundingClientRect()));
    const wide = boxes.filter((box) => box.width);
    return wide.length && { text: cell.innerText, left: Math.min(...wide.map((box) => box.left)),
      right: Math.max(...wide.map((box) => box.right)) };
  };
  return [...document.querySelectorAll(".ledger tr")].flatMap((row) => {
    const cells = [...row.children].map(shown).filter(Boolean);
    return cells.slice(1).flatMap((cell, i) => (cell.left < cells[i].right + 2 ? [[cells[i].text, cell.text]] : []));
  });
}"""
CONTROLS_OPEN = {"width": 390, "height": 844}


def _points(truth: Truth) -> list[Any]:
    """Points whose texts are short, long, with and without a warning."""
    drawn = sorted(truth.sample(300, seed=9), key=lambda point: len(truth.spoken(point)))
    return [
        truth.defaults,
        truth.point(tokens=64),
        truth.point(tokens=4096, context=131072, attention="mha"),
        truth.point(phase="prefill", tokens=4096, context=512),
        truth.point(phase="prefill", tokens=1, context=0),
        truth.point(gpu="a100", weights="int4"),
        truth.point(phase="prefill", gpu="b200", weights="w8a8", tokens=4096, context=512),
        *drawn[:4],
        *drawn[-4:],
    ]


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1280, 720)])
def test_nothing_jumps(open_bench: Callable[..., Bench], truth: Truth, width: int, height: int) -> None:
    """Wherever the point goes, controls, readouts, picture and ledger stay where they are to the pixel."""
    bench = open_bench(width=width, height=height)
    still = bench.page.evaluate(PLACES)
    assert len(still) > 100
    for point in _points(truth):
        bench.page.evaluate("(fragment) => { location.hash = fragment; }", truth.fragment(point))
        bench.expect_at(point)
        assert bench.page.evaluate(PLACES) == still, point


@pytest.mark.parametrize(("width", "height"), [(320, 568), (390, 844), (1024, 768), (1280, 720), (1440, 900)])
def test_nothing_is_wider_than_the_window(
    open_bench: Callable[..., Bench], truth: Truth, width: int, height: int
) -> None:
    """No page scrolls sideways, at any point, with the controls open or not."""
    bench = open_bench(width=width, height=height)
    for point in _points(truth)[:8]:
        bench.page.evaluate("(fragment) => { location.hash = fragment; }", truth.fragment(point))
        bench.expect_at(point)
        assert bench.page.evaluate(OVERFLOW) == [0, []]
    if width < 1264:
        bench.toggle.click()
        expect(bench.page.locator("[data-controls]")).to_be_visible()
        assert bench.page.evaluate(OVERFLOW) == [0, []]


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1280, 720), (390, 844)])
def test_the_marks_of_a_link_have_room(open_bench: Callable[..., Bench], truth: Truth, width: int, height: int) -> None:
    """The longest '4,096 → 64' stands within its column."""
    bench = open_bench("#tokens=4096&context=131072", width=width, height=height)
    if width < 1264:
        bench.toggle.click()
    link, point = bench.link_moving("tokens")
    link.click()
    bench.expect_at(point)
    expect(bench.control("context").locator("[data-was]")).to_have_text("131,072")
    assert bench.page.evaluate(OVERFLOW) == [0, []]


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1440, 860), (1440, 895), (1280, 720), (1920, 1080)])
def test_the_whole_bench_is_in_view_beside_the_text(
    open_bench: Callable[..., Bench], truth: Truth, width: int, height: int
) -> None:
    """Wide, all of it stands in the window wherever one reads, and needs no scrolling of its own."""
    bench = open_bench("#tokens=64", width=width, height=height)
    bench.page.locator("main h2").last.scroll_into_view_if_needed()
    for part in ("[data-controls]", ".verdict", "figure >> visible=true", "tr[data-kernel=total]"):
        expect(bench.root.locator(part).last).to_be_in_viewport(ratio=0.99)
    assert bench.root.evaluate("(e) => e.scrollHeight - e.clientHeight") == 0


def test_the_contents_follow_wherever_one_jumps(open_bench: Callable[..., Bench]) -> None:
    """The part is marked whose heading was passed last, also by a leap to the end and back."""
    page = open_bench("").page
    where = """() => {
      const headings = [...document.querySelectorAll(".part h2[id]")];
      const marked = document.querySelector("[data-contents] [aria-current]")?.hash.slice(1);
      const passed = headings.filter((heading) => heading.getBoundingClientRect().top < innerHeight * 0.35);
      return [marked, passed.at(-1)?.id];
    }"""
    seen = set()
    for part in (0.5, 0.05, 1, 0.3, 0.85):
        page.evaluate("(part) => scrollTo(0, part * document.documentElement.scrollHeight)", part)
        page.wait_for_timeout(150)
        marked, due = page.evaluate(where)
        assert marked == due
        seen.add(marked)
    assert len(seen) == 5


def test_figures_are_drawn_at_their_own_size(open_bench: Callable[..., Bench]) -> None:
    """No text of a drawing is scaled below 12 px."""
    for size, width, height in (("wide", 1440, 900), ("short", 1280, 720), ("phone", 320, 568), ("strip", 320, 568)):
        bench = open_bench(width=width, height=height)
        assert bench.drawn(size)["width"] == FRAMES[size].total[0], size  # type: ignore[index]


@pytest.mark.parametrize(("width", "height"), [(390, 844), (320, 568)])
def test_the_strip_sticks_and_opens_the_controls(
    open_bench: Callable[..., Bench], truth: Truth, width: int, height: int
) -> None:
    """On a phone the point stays in sight; a button opens the controls, Escape closes them and gives focus back."""
    bench = open_bench(width=width, height=height)
    controls, strip = bench.page.locator("[data-controls]"), bench.page.locator("[data-strip]")
    expect(controls).to_be_hidden()
    bench.page.locator("main h2").last.scroll_into_view_if_needed()
    expect(strip).to_be_in_viewport(ratio=0.99)
    expect(bench.toggle).to_have_attribute("aria-expanded", "false")
    bench.toggle.click()
    expect(bench.toggle).to_have_attribute("aria-expanded", "true")
    expect(controls).to_be_in_viewport()
    bench.choose("gpu", "h200")
    bench.range("tokens").press("ArrowRight")
    bench.expect_at(truth.point(gpu="h200", tokens=2))
    expect(strip).to_contain_text("decode, 2 tokens, 8k context, H200")
    bench.expect_drawn(truth.point(gpu="h200", tokens=2), "strip")
    bench.page.keyboard.press("Escape")
    expect(controls).to_be_hidden()
    expect(bench.toggle).to_be_focused()
    expect(bench.toggle).to_have_attribute("aria-expanded", "false")
    bench.page.keyboard.press("Enter")
    expect(controls).to_be_visible()
    bench.toggle.click()
    expect(controls).to_be_hidden()


@pytest.mark.parametrize(("width", "height"), [(390, 844), (320, 568)])
def test_open_controls_can_all_be_reached_and_touched(
    open_bench: Callable[..., Bench], truth: Truth, width: int, height: int
) -> None:
    """Every option takes a tap in a target of 44 px, also the last on the smallest screen."""
    bench = open_bench(width=width, height=height, touch=True)
    bench.toggle.tap()
    for axis, value in (
        ("phase", "prefill"),
        ("gpu", "b200"),
        ("weights", "w8a8"),
        ("kv", "fp8"),
        ("attention", "mqa"),
    ):
        option = bench.control(axis).locator(".option", has=bench.page.locator(f"[value={value}]"))
        option.tap()
        box = option.bounding_box()
        assert box
        assert box["height"] >= 40, (axis, box)
        assert box["width"] >= 44, (axis, box)
    bench.expect_at(truth.point(phase="prefill", gpu="b200", weights="w8a8", kv="fp8", attention="mqa"))


def test_a_phone_offers_all_columns(open_bench: Callable[..., Bench]) -> None:
    """Four columns fit; the rest come on request, in a box that scrolls by itself."""
    bench = open_bench(width=390, height=844)
    work = bench.root.locator("tr[data-kernel=attention] [data-column=flops]")
    expect(work).to_be_hidden()
    bench.page.get_by_label("all columns").check()
    expect(work).to_be_visible()
    assert bench.page.evaluate(OVERFLOW) == [0, []]


@pytest.mark.parametrize("width", [320, 390])
@pytest.mark.parametrize("every", [False, True])
def test_no_cell_of_the_ledger_runs_into_the_next(
    open_bench: Callable[..., Bench], truth: Truth, width: int, every: bool
) -> None:
    """On a phone each text ends before the next begins, at the longest numbers too; the names stay where it scrolls."""
    bench = open_bench(width=width, height=844)
    bench.page.get_by_label("all columns").set_checked(every)
    for point in _points(truth):
        bench.page.evaluate("(fragment) => { location.hash = fragment; }", truth.fragment(point))
        bench.expect_at(point)
        assert bench.page.evaluate(COLLISIONS) == [], point
    name = bench.root.locator("tr[data-kernel=attention] .name")
    before = name.bounding_box()
    bench.root.locator(".ledger-box").evaluate("(box) => { box.scrollLeft = 400; }")
    assert name.bounding_box() == before


def test_without_script_the_strip_keeps_its_shape(open_page: Callable[..., Page], site: Any) -> None:
    """The drawing stands left of the numbers, and what nobody can move does not follow the reader."""
    page = open_page(javascript=False, width=390, height=844)
    page.goto(site.url)
    drawing, numbers = (page.locator(f".strip {part}").bounding_box() for part in ("figure", ".strip-numbers"))
    assert drawing
    assert numbers
    assert drawing["x"] + drawing["width"] <= numbers["x"]
    assert drawing["y"] == pytest.approx(numbers["y"], abs=20)
    page.locator("main h2").last.scroll_into_view_if_needed()
    expect(page.locator(".strip")).not_to_be_in_viewport()


@pytest.mark.parametrize(("width", "height"), [(844, 390), (640, 360)])
def test_a_low_window_keeps_room_for_the_text(open_bench: Callable[..., Bench], width: int, height: int) -> None:
    """There the strip is one line: the point, the rate, the button; open, all of its controls are reached."""
    bench = open_bench("#gpu=a100&weights=int4", width=width, height=height)
    strip = bench.page.locator("[data-strip]")
    for part in (".strip-point", ".strip-rate", "[data-toggle]"):
        expect(strip.locator(part)).to_be_visible()
    assert strip.evaluate("(e) => e.offsetHeight") <= 48
    bench.page.locator("main h2").last.scroll_into_view_if_needed()
    bench.toggle.click()
    assert bench.page.locator("[data-top]").evaluate("(e) => e.getBoundingClientRect().bottom") < height
    bench.page.locator("[data-reset]").scroll_into_view_if_needed()
    expect(bench.page.locator("[data-reset]")).to_be_in_viewport()
    expect(bench.toggle).to_be_in_viewport(ratio=0.99)


def test_an_open_strip_gives_way_to_a_heading(open_bench: Callable[..., Bench]) -> None:
    """A link to a part closes the controls, and the heading is seen below the strip."""
    bench = open_bench(width=390, height=844)
    bench.toggle.click()
    bench.page.locator(".part .onward a[rel=next]").first.evaluate("(link) => link.click()")
    expect(bench.page.locator("[data-controls]")).to_be_hidden()
    heading, strip = bench.page.locator("main h2").nth(1), bench.page.locator("[data-top]")
    expect(heading).to_be_in_viewport()
    bottom = strip.evaluate("(e) => e.getBoundingClientRect().bottom")
    assert bottom <= heading.evaluate("(e) => e.getBoundingClientRect().top") < bottom + 60


@pytest.mark.parametrize("width", [320, 1440])
def test_code_and_formulas_are_whole(open_bench: Callable[..., Bench], width: int) -> None:
    """Nothing of them is cut off, down to the narrowest screen."""
    boxes = open_bench(width=width, height=900).page.locator("pre, .math")
    assert boxes.count() > 2
    assert boxes.evaluate_all("(all) => all.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.innerText)") == []


def test_the_figures_follow_the_scheme_live(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """Evening comes while one reads: static and live drawings change with everything else."""
    seen = []
    for fragment in ("", "#tokens=2"):
        bench = open_bench(fragment)
        point = truth.point(tokens=2) if fragment else truth.defaults
        bench.expect_at(point)
        if fragment:
            bench.expect_drawn(point)
        for scheme in ("light", "dark", "light"):
            bench.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            colours = bench.page.evaluate(
                """(colour) => {
                  const of = (selector, property) => getComputedStyle(document.querySelector(selector))[property];
                  const dots = "[data-variant=wide] [class~=dots_marks] > ";
                  return { dot: of(`${dots} [fill="${colour}" i]`, "fill"), bar: of(".bar .k-gate-proj", "fill"),
                    name: of("[data-variant=wide] [class~=names_marks] > text", "fill"),
                    paper: of("html", "backgroundColor"), ink: of("body", "color") };
                }""",
                truth.colours["gate_proj"],
            )
            assert colours["dot"] == colours["bar"]
            seen.append(colours)
    light, dark = seen[0], seen[1]
    assert [light, dark, light] * 2 == seen
    assert not set(light.values()) & set(dark.values())


def test_a_page_opened_in_the_dark_is_dark(open_bench: Callable[..., Bench]) -> None:
    """Paper is dark and ink is light from the first paint."""
    bench = open_bench(scheme="dark")
    paper = bench.page.evaluate("() => getComputedStyle(document.documentElement).backgroundColor")
    assert sum(int(part) for part in paper.strip("rgb()").split(",")) < 120


def test_paper_gets_the_bench_once_at_its_point(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """Printed, the controls are gone, and verdict, readouts, picture and ledger say where the bench was."""
    point = truth.point(tokens=64, gpu="h200")
    bench = open_bench(truth.fragment(point))
    bench.expect_at(point)
    bench.expect_drawn(point)
    bench.page.emulate_media(media="print")
    for gone in ("[data-controls]", "[data-toggle]", "[data-strip]"):
        expect(bench.page.locator(gone)).to_be_hidden()
    expect(bench.root.locator(".print-point")).to_be_visible()
    expect(bench.root.locator(".print-point")).to_contain_text("decode, 64 tokens, 8k context, H200")
    expect(bench.root.locator("[data-readout=throughput]")).to_be_visible()
    expect(bench.root.locator("tr[data-kernel=total]")).to_be_visible()
    expect(bench.root.locator("[data-variant] >> visible=true")).to_have_count(1)
    assert truth.drawn_differences(point, bench.drawn("wide")) == []


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (390, 844)])
def test_paper_gets_the_drawing_at_its_point_from_any_window(
    open_bench: Callable[..., Bench], truth: Truth, width: int, height: int
) -> None:
    """Another size is printed than the one on the screen; it is brought up to date as printing starts."""
    point = truth.point(tokens=64)
    bench = open_bench("#tokens=64", width=width, height=height)
    bench.expect_at(point)
    bench.expect_drawn(point, "short" if width > 1000 else "phone")
    bench.page.evaluate(
        """() => addEventListener("afterprint", () => {
          window.printed = document.querySelector("[data-bench] [data-variant=wide] svg").textContent;
        })"""
    )
    bench.page.pdf(format="A4")
    printed = bench.page.evaluate("() => window.printed")
    assert truth.text(point, "attention.label") in " ".join(printed.split())
