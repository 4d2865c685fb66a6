"""Everyone: axe finds nothing, drawings have contrast, all is reached and seen by key, at any size, in any mode."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, expect

from tests.browser.bench import Bench, Truth

RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "resultTypes": ["violations"],
    "preload": False,  # it would fetch the style sheet, which the page's policy forbids
}
SIZES = [(1440, 900), (1024, 768), (390, 844)]
NARROW = 1264

OPEN_ALL = """() => {
  for (const answer of document.querySelectorAll("details")) answer.open = true;
  document.querySelector("[popover]").showPopover();
}"""

# Every text of a drawing or a slider's scale against the paper, and its size: axe can't tell what lies behind SVG.
TEXTS = """() => {
  const channels = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = (colour) => channels(colour).map((c) => c / 255)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const paper = light(getComputedStyle(document.documentElement).backgroundColor);
  const seen = [...document.querySelectorAll("svg text")].filter((text) => {
    return text.getClientRects().length && text.textContent.trim() && !text.closest("[data-variant=strip]");
  });
  return seen.map((text) => {
    const { fill, fontSize } = getComputedStyle(text), svg = text.ownerSVGElement;
    const scale = text.getScreenCTM().a;
    return { text: text.textContent, fill, halo: ratio(light(fill), paper) < 1.01,
      contrast: ratio(light(fill), paper), px: Number.parseFloat(fontSize) * scale };
  });
}"""

# Where the keyboard's focus is, and what shows it.
FOCUSED = """() => {
  const element = document.activeElement;
  if (element === document.body) return null;
  const beside = element.type === "radio" ? element.nextElementSibling : element;
  const { outlineStyle, outlineWidth } = getComputedStyle(beside);
  const box = element.getBoundingClientRect();
  const all = [...document.querySelectorAll("*")];
  return { place: all.indexOf(element), tag: element.tagName, name: element.name ?? "", type: element.type ?? "",
    text: (element.getAttribute("aria-label") ?? element.textContent).trim().slice(0, 60),
    outlined: outlineStyle !== "none" && Number.parseFloat(outlineWidth) >= 2,
    seen: box.width > 0 && box.bottom > 0 && box.top < innerHeight };
}"""

# Controls that are smaller than `least` on a side. Links in a sentence are exempt; an option is its label.
SMALL = """(least) => {
  const all = document.querySelectorAll("button, summary, input, a:not(.bound, .claim), .option");
  return [...all].map((element) => {
    const target = element.closest(".option, .all-columns, .skips") ?? element;
    const inline = element.matches("p:not(.onward, .skips) a, li:not(.contents li) a, figcaption a, td a");
    const { width, height } = target.getBoundingClientRect();
    const hidden = !element.getClientRects().length || target.matches(".skips") || element.type === "range";
    return inline || hidden || (width >= least - 0.1 && height >= least - 0.1) ? null
      : `${element.tagName} ${element.textContent.trim().slice(0, 30)} ${width}x${height}`;
  }).filter(Boolean);
}"""


def _violations(page: Page) -> list[str]:
    """What axe finds, a line an element."""
    page.evaluate(AXE_SCRIPT)
    found: dict[str, Any] = page.evaluate("(rules) => axe.run(document, rules)", RULES)
    return [
        f"{rule['id']}: {' '.join(map(str, node['target']))} {node['failureSummary']}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_axe_finds_nothing(
    open_bench: Callable[..., Bench], truth: Truth, scheme: str, width: int, height: int
) -> None:
    """As the page opens; then with controls, menu, every answer and a proof open and every drawing in sight alive."""
    bench = open_bench("#tokens=64", scheme=scheme, width=width, height=height)
    bench.expect_at(truth.point(tokens=64))
    assert _violations(bench.page) == []
    if width < NARROW:
        bench.page.get_by_role("button", name="Controls").click()
    bench.expect_drawn(truth.point(tokens=64), "wide" if width > 700 else "phone")
    bench.page.evaluate(OPEN_ALL)
    assert _violations(bench.page) == []


def test_axe_finds_nothing_where_there_is_no_page(open_page: Callable[..., Page], site: Any, troubles: Any) -> None:
    """The page that says so is a page too."""
    page = open_page()
    page.goto(f"{site.url}404.html")
    assert _violations(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390, 320])
def test_texts_of_drawings_are_read(open_bench: Callable[..., Bench], truth: Truth, scheme: str, width: int) -> None:
    """Contrast of 4.5 or more and 12 px or more, in the drawings of the build and in the live one."""
    bench = open_bench("#tokens=96", scheme=scheme, width=width, height=900)
    bench.expect_drawn(truth.point(tokens=96), "wide" if width > 700 else "phone")
    texts = [text for text in bench.page.evaluate(TEXTS) if not text["halo"]]
    assert len(texts) > 60
    assert [text for text in texts if text["contrast"] < 4.5] == []
    assert [text for text in texts if text["px"] < 11.9] == []


def _tabbed(page: Page, key: str = "Tab") -> Iterator[dict[str, Any]]:
    """What Tab reaches, from the top of the page, until it leaves it."""
    for _ in range(600):
        page.keyboard.press(key)
        focused = page.evaluate(FOCUSED)
        if focused is None:
            return
        yield focused
    raise AssertionError("Tab never leaves the page")


@pytest.mark.parametrize("width", [1440, 390])
def test_tab_goes_through_everything_in_order_and_shows_where_it_is(
    open_bench: Callable[..., Bench], width: int
) -> None:
    """Skips first, then as the page is written; each stop is outlined and on the screen; nothing is a trap."""
    bench = open_bench(width=width, height=844)
    stops = list(_tabbed(bench.page))
    assert [stop["text"] for stop in stops[:2]] == ["Skip to the lesson", "Skip to the bench"]
    assert [stop["place"] for stop in stops] == sorted(stop["place"] for stop in stops)
    unseen = [stop for stop in stops if not stop["outlined"] or not stop["seen"]]
    assert [stop for stop in unseen if stop["type"] != "range"] == []
    assert len(stops) > 100


# How far down a stop stands; not of the strip, which is always on top, nor of the contents, which have two columns.
DOWN = """() => document.activeElement.closest("[data-top], .skips, .contents") ? null
  : Math.round(document.activeElement.getBoundingClientRect().top + scrollY)"""


def test_on_a_narrow_screen_tab_goes_down_the_page(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """The bench's body comes after part 4 by key, as it is seen; in a wide window, beside the controls."""
    bench = open_bench("#tokens=64", width=700, height=844)
    bench.expect_at(truth.point(tokens=64))
    downs = [bench.page.evaluate(DOWN) for _ in _tabbed(bench.page)]
    rows = [down for down in downs if down is not None]
    assert len(rows) > 100
    assert [(a, b) for a, b in itertools.pairwise(rows) if b < a - 60] == []  # more than words within a few lines
    bench.expect_drawn(truth.point(tokens=64))
    bench.page.set_viewport_size({"width": 1440, "height": 900})
    expect(bench.page.get_by_role("complementary").locator(".bench-body")).to_be_visible()
    bench.move("tokens", 8)
    bench.expect_at(truth.point(tokens=8))
    bench.expect_drawn(truth.point(tokens=8))


def test_the_body_follows_the_bench_from_afar(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """What the bench says of itself in attributes holds for its body where that stands apart, and focus survives."""
    bench = open_bench(width=1300, height=844)
    row = bench.root.locator("tr[data-kernel=qkv_proj]")
    row.focus()
    bench.page.set_viewport_size({"width": 390, "height": 844})
    expect(bench.page.locator(".part + .bench .bench-body")).to_have_count(1)
    expect(row).to_be_focused()
    bench.page.evaluate("(fragment) => { location.hash = fragment; }", truth.fragment(truth.point(tokens=64)))
    bench.expect_at(truth.point(tokens=64))
    expect(bench.root.locator(".picture-note .when-no")).to_be_visible()
    expect(bench.root.locator(".picture-note .when-stale")).to_be_hidden()
    bench.page.locator(".bound[data-readout=throughput]").first.evaluate("(link) => link.click()")
    expect(bench.root.locator("[data-readout=throughput][data-pointed]")).to_have_count(1)


def test_focus_is_never_behind_the_open_controls(open_bench: Callable[..., Bench]) -> None:
    """Tab out of them closes them, and what it reaches is seen below the strip."""
    bench = open_bench(width=390, height=844)
    bench.toggle.click()
    bench.page.locator("[data-more] summary").focus()
    bench.page.keyboard.press("Tab")
    expect(bench.page.locator("[data-controls]")).to_be_hidden()
    seen = bench.page.evaluate(
        """() => document.activeElement.getBoundingClientRect().top
          - document.querySelector("[data-top]").getBoundingClientRect().bottom"""
    )
    assert seen >= 0


@pytest.mark.parametrize("width", [320, 1440])
def test_the_menu_is_whole_and_gives_focus_back(open_bench: Callable[..., Bench], width: int) -> None:
    """Also beside a third button; a choice goes back to the word that opened it, Tab beyond its end closes it."""
    bench = open_bench(width=width, height=700)
    link, _ = bench.link_moving("tokens")
    link.evaluate("(a) => a.click()")
    if width < NARROW:
        bench.toggle.click()
    menu, summary = bench.page.locator("[data-more]"), bench.page.locator("[data-more] summary")
    expect(bench.page.locator("[data-back]")).to_be_visible()
    summary.press("Enter")
    box = menu.locator("ul").bounding_box()
    assert box
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    menu.locator("[data-take=share]").press("Enter")
    expect(menu).not_to_have_attribute("open", "")
    expect(summary).to_be_focused()
    summary.press("Enter")
    menu.locator("button").last.focus()
    bench.page.keyboard.press("Tab")
    expect(menu).not_to_have_attribute("open", "")


def test_escape_closes_the_menu_and_then_the_strip_round_it(open_bench: Callable[..., Bench]) -> None:
    """One thing at a time."""
    bench = open_bench(width=390, height=844)
    bench.toggle.click()
    menu = bench.page.locator("[data-more]")
    menu.locator("summary").press("Enter")
    bench.page.keyboard.press("Escape")
    expect(menu).not_to_have_attribute("open", "")
    expect(bench.toggle).to_have_attribute("aria-expanded", "true")
    bench.page.keyboard.press("Escape")
    expect(bench.toggle).to_have_attribute("aria-expanded", "false")


def test_back_gives_focus_to_the_number_that_was_followed(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """The button goes when it has done its work; who pressed it reads on where they were."""
    bench = open_bench()
    link, point = bench.link_moving("tokens")
    link.press("Enter")
    bench.expect_at(point)
    bench.page.locator("[data-back]").press("Enter")
    bench.expect_at(truth.defaults)
    expect(link).to_be_focused()


def test_what_was_held_is_not_said_of_a_value_that_has_moved_on(open_bench: Callable[..., Bench]) -> None:
    """Home leads decode to a context of 128 and says why; End right after it makes that untrue."""
    bench = open_bench()
    bench.range("context").press("Home")
    bench.range("context").press("End")
    bench.range("tokens").press("ArrowRight")
    expect(bench.status).to_contain_text("tokens per second")
    expect(bench.status).not_to_contain_text("moved to 128")
    bench.range("context").press("Home")
    bench.range("tokens").press("ArrowRight")
    expect(bench.status).to_contain_text("Context moved to 128")


def test_a_focused_slider_is_seen(open_bench: Callable[..., Bench]) -> None:
    """Its thumb wears the ring, so its picture changes."""
    bench = open_bench()
    slider = bench.range("tokens")
    before = slider.screenshot()
    slider.focus()
    bench.page.keyboard.press("Shift")
    assert slider.screenshot() != before


def test_everything_has_its_role_and_name(open_bench: Callable[..., Bench]) -> None:
    """Landmarks, table, pictures, disclosures and questions, as assistive technology is told."""
    page = open_bench().page
    for role in ("main", "banner", "complementary", "navigation"):
        expect(page.get_by_role(role)).to_have_count(1)  # type: ignore[arg-type]
    expect(page.get_by_role("group", name="Controls of the bench")).to_be_visible()
    expect(page.locator("[aria-live=polite]")).to_have_count(1)
    expect(page.get_by_role("table", name="The ledger")).to_be_visible()
    expect(page.get_by_role("rowheader", name="Attention")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    unnamed = page.locator("svg[role=img]").evaluate_all(
        "(all) => all.filter((svg) => !svg.getAttribute('aria-label')?.trim()).length"
    )
    assert unnamed == 0
    for number, question in enumerate(page.locator(".question").all(), start=1):
        expect(question).to_have_attribute("aria-label", f"Question {number}")


def test_answers_and_proofs_open_and_close_by_key(open_bench: Callable[..., Bench]) -> None:
    """A disclosure by Enter and Space, a popover by Enter and Escape, which leaves the focus on its mark."""
    page = open_bench().page
    summary, answer = page.locator(".answer summary").first, page.locator(".answer").first
    summary.focus()
    for key, is_open in (("Enter", True), ("Space", False)):
        page.keyboard.press(key)
        assert answer.evaluate("(details) => details.open") is is_open
    mark = page.locator(".proof-mark >> visible=true").first
    proof = page.locator(f"#{mark.get_attribute('popovertarget')}")
    mark.focus()
    page.keyboard.press("Enter")
    expect(proof).to_be_visible()
    page.keyboard.press("Escape")
    expect(proof).to_be_hidden()
    expect(mark).to_be_focused()


@pytest.mark.parametrize("width", [320, 390])
def test_what_leads_through_the_lesson_is_44_px_high(open_bench: Callable[..., Bench], width: int) -> None:
    """The switch of colours, the contents and the parts before and after, under a thumb."""
    targets = open_bench(width=width, height=844).page.locator(".scheme, .contents a, .onward a >> visible=true")
    heights = targets.evaluate_all("(all) => all.map((target) => target.getBoundingClientRect().height)")
    assert len(heights) > 20
    assert min(heights) >= 43.9


def test_the_whole_of_a_proofs_mark_opens_it_and_none_of_it_lies_on_the_claim(open_bench: Callable[..., Bench]) -> None:
    """24 px that the words beside it don't take away; the proof that opens keeps clear of the edge of a phone."""
    page = open_bench(width=390, height=844).page
    mark = page.locator(".proof-mark >> visible=true").nth(1)
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    claim = mark.evaluate("(e) => [...e.previousElementSibling.getClientRects()].at(-1).right")
    assert box
    assert claim <= box["x"] + 0.5
    proof = page.locator(f"#{mark.get_attribute('popovertarget')}")
    for x in (1, 12, 23):
        mark.click(position={"x": x, "y": 12})
        opened = proof.bounding_box()
        assert opened
        assert opened["x"] >= 8
        assert opened["x"] + opened["width"] <= 390 - 8
        page.keyboard.press("Escape")
        expect(proof).to_be_hidden()


@pytest.mark.parametrize("width", [1440, 1300, 390])
def test_targets_are_large_enough(open_bench: Callable[..., Bench], width: int) -> None:
    """24 px on a side, whatever is pressed; words within a sentence excepted."""
    page = open_bench(width=width, height=900).page
    if width < NARROW:
        page.get_by_role("button", name="Controls").click()
    page.evaluate("() => { for (const details of document.querySelectorAll('details')) details.open = true; }")
    assert page.evaluate(SMALL, 24) == []


def test_controls_of_a_phone_are_44_px(open_bench: Callable[..., Bench]) -> None:
    """Options, sliders, buttons and the menu, under a thumb."""
    bench = open_bench(width=390, height=844, touch=True)
    bench.page.get_by_role("button", name="Controls").click()
    bench.page.locator("[data-more]").evaluate("(menu) => { menu.open = true; }")
    for target in bench.page.locator(".controls :is(.option, button, summary), .toggle").all():
        box = target.bounding_box()
        if box:
            assert box["height"] >= 43.9, (target.inner_text(), box)
            assert box["width"] >= 43.9, (target.inner_text(), box)
    for slider in bench.page.locator(".slider input").all():
        box = slider.bounding_box()
        assert box
        assert box["height"] >= 43.9, box


def test_at_twice_the_size_nothing_is_lost(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """1440 px at 200 % are 720: no sideways scrolling, the controls a press away, all numbers there."""
    bench = open_bench("#tokens=64", width=720, height=450, device_scale_factor=2)
    bench.expect_at(truth.point(tokens=64))
    assert bench.page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0
    bench.page.get_by_role("button", name="Controls").click()
    for axis in ("phase", "tokens", "context", "gpu", "weights", "kv", "attention"):
        control = bench.control(axis)
        control.scroll_into_view_if_needed()
        expect(control).to_be_in_viewport()
    bench.page.keyboard.press("Escape")
    for name in ("throughput", "verdict", "resident_bytes"):
        readout = bench.root.locator(f"[data-readout={name}]")
        readout.scroll_into_view_if_needed()
        expect(readout).to_be_in_viewport()


def test_forced_colours_keep_what_colour_says(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """Dots, bars, swatches, thumb and chosen option are drawn in the reader's own colours, and differ from the page."""
    bench = open_bench("#tokens=8", forced_colors="active")
    bench.expect_drawn(truth.point(tokens=8))
    seen = bench.page.evaluate(
        """() => {
          const of = (selector, key, pseudo) => getComputedStyle(document.querySelector(selector), pseudo)[key];
          const page = of("html", "backgroundColor");
          const dot = "[data-bench] [data-variant=wide] [class~=dots_marks] > path";
          return { page, text: of("body", "color"), dot: of(dot, "fill"), bar: of(".bar [data-bar]", "fill"),
            swatch: of(".swatch circle", "fill"), rail: of(".rail", "stroke"), used: of("[data-memory-used]", "fill"),
            chosen: of(".option input:checked + span", "borderBottomColor"),
            other: of(".option input:not(:checked) + span", "borderBottomColor"),
            label: of("[data-bench] [data-variant=wide] [class~=labels_marks] > text:last-child", "fill"),
            roof: of("[data-bench] [data-variant=wide] [class~=roof_marks] path", "stroke") };
        }"""
    )
    for name in ("text", "dot", "bar", "swatch", "rail", "used", "chosen", "label", "roof"):
        assert seen[name] != seen["page"], (name, seen)
    assert seen["chosen"] != seen["other"], seen
    thumb = bench.range("tokens")
    before = thumb.screenshot()
    thumb.press("End")
    bench.frame()
    assert thumb.screenshot() != before  # the thumb is seen, here and there


def test_less_motion_is_none(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """With reduced motion nothing on the page has a transition or an animation that runs by itself."""
    bench = open_bench("#tokens=8", reduced_motion=True)
    bench.expect_drawn(truth.point(tokens=8))
    bench.page.locator("a.bound").first.click()
    moving = bench.page.evaluate(
        """() => document.getAnimations().filter((animation) => animation.timeline === document.timeline
          && animation.effect.getComputedTiming().duration > 0).map((animation) => String(animation.animationName))"""
    )
    assert moving == []
    assert bench.page.evaluate("() => getComputedStyle(document.documentElement).scrollBehavior") == "auto"
