"""The numbers of the text are links that set the bench."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from builder.grid import AXES
from tests.browser.bench import Bench, Truth


def test_a_link_sets_the_bench_and_leaves_the_reader_in_place(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """The bench moves, the address says so, and the text under the reader's eyes stays where it was."""
    bench = open_bench()
    link, point = bench.link_moving("tokens")
    link.scroll_into_view_if_needed()
    before = link.bounding_box()
    link.click()
    bench.expect_at(point)
    bench.expect_address(point)
    bench.expect_drawn(point)
    assert link.bounding_box() == before


def test_what_a_link_has_moved_is_marked(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """'1 → 64' beside the slider that moved, and no mark on the others; the next move takes it away."""
    bench = open_bench()
    link, point = bench.link_moving("tokens")
    link.click()
    control = bench.control("tokens")
    expect(control).to_have_attribute("data-changed", "")
    expect(control.locator("[data-was]")).to_have_text("1")
    assert "→" in control.locator("[data-was]").evaluate("(e) => getComputedStyle(e, '::after').content")
    expect(control.locator("[data-value]")).to_have_text(f"{point.tokens:,}")
    expect(bench.root.locator("[data-changed]")).to_have_count(1)
    bench.range("tokens").press("ArrowRight")
    expect(bench.root.locator("[data-changed]")).to_have_count(0)
    expect(control.locator("[data-was]")).to_have_text("")


def test_a_choice_that_a_link_has_moved_shows_what_it_was(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """A dotted line under the option left; the numbers come from another shard."""
    bench = open_bench()
    link, point = bench.link_moving("weights")
    link.click()
    bench.expect_at(point)
    expect(bench.control("weights")).to_have_attribute("data-changed", "")
    left = bench.root.locator("[data-was]:has(input)")
    expect(left).to_have_count(1)
    expect(left.locator("input")).to_have_value(truth.defaults.weights)


def test_the_followed_link_and_those_at_the_point_are_marked(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """One link was followed; every link to the point that the bench is at says 'here'."""
    bench = open_bench()
    link, point = bench.link_moving("tokens")
    link.click()
    bench.expect_at(point)
    expect(bench.page.locator("main a.followed")).to_have_count(1)
    assert "followed" in (link.get_attribute("class") or "")
    for other in bench.links():
        marked = "here" in (bench.link(other["index"]).get_attribute("class") or "").split()
        assert marked == (other["point"] == point)
    bench.range("tokens").press("End")
    expect(bench.page.locator("main a.followed")).to_have_count(0)


def test_a_link_to_the_ridge_points_at_the_ridge(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """It stands in the unit of the intensity, which is another number."""
    bench = open_bench()
    for gpu in ("a100", truth.defaults.gpu):
        point = truth.point(gpu=gpu)
        link = bench.page.locator(f'main a[data-fact^="gpu.ridge_point"][href="{truth.fragment(point)}"]').first
        link.click()
        bench.expect_at(point)
        expect(bench.root.locator("[data-pointed]")).to_have_text(truth.text(point, "gpu.ridge"))


def test_links_at_the_start_are_marked_as_the_page_opens(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """Numbers of the default point are on the bench already."""
    bench = open_bench()
    at_start = [link for link in bench.links() if link["point"] == truth.defaults]
    for link in at_start[:5]:
        assert "here" in (bench.link(link["index"]).get_attribute("class") or "").split()


def test_links_are_marked_where_a_slider_rests_not_where_it_passes(
    open_bench: Callable[..., Bench], truth: Truth
) -> None:
    """Marks that come and go at every position would cost the drag its frames and tell nobody anything."""
    bench = open_bench()
    _, passed = bench.link_moving("tokens")
    positions = [truth.index("tokens", passed), truth.index("tokens", truth.defaults)]
    marked = bench.page.evaluate(
        """async ([passed, rest]) => {
          const seen = [];
          new MutationObserver((all) => seen.push(...all.map(({ target }) => target.className)))
            .observe(document.querySelector("main"), { attributeFilter: ["class"], subtree: true });
          for (const index of [rest + 1, passed, rest + 1]) {
            document.getElementById("tokens").value = index;
            document.getElementById("tokens").dispatchEvent(new Event("input"));
            await new Promise(requestAnimationFrame);
          }
          await new Promise((done) => setTimeout(done, 400));
          return seen.filter((name) => name.split(" ").includes("here")).length;
        }""",
        positions,
    )
    at_rest = [link for link in bench.links() if link["point"] == truth.point(tokens=truth.axes["tokens"]["values"][1])]
    assert marked == len(at_rest)
    bench.range("tokens").press("Home")
    for link in [link for link in bench.links() if link["point"] == truth.defaults][:3]:
        expect(bench.link(link["index"])).to_have_class(re.compile("(^| )here( |$)"))


def test_the_status_says_what_a_link_has_set(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """Someone who follows a link by ear hears where the bench went."""
    bench = open_bench()
    link, point = bench.link_moving("tokens")
    link.focus()
    bench.page.keyboard.press("Enter")
    noun = truth.axes["tokens"]["spoken"]["decode"][truth.index("tokens", point)]
    expect(bench.status).to_have_text(f"Bench set to {noun}. {truth.spoken(point)}")


def test_back_and_forward_go_through_the_points_of_links(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """Each link is a step in the history, and a step back shows the numbers that were there."""
    bench = open_bench()
    points = [truth.defaults]
    for axes in (("tokens",), ("weights",), ("tokens", "context")):
        link, point = bench.link_moving(*axes)
        link.click()
        bench.expect_at(point)
        points.append(point)
    for point in points[-2::-1]:
        bench.page.go_back()
        bench.expect_at(point)
    for point in points[1:]:
        bench.page.go_forward()
        bench.expect_at(point)
        bench.expect_address(point)


def test_a_link_followed_twice_is_one_step(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """Back is never a step to the same place."""
    bench = open_bench()
    link, point = bench.link_moving("tokens")
    link.click()
    length = bench.page.evaluate("() => history.length")
    link.click()
    bench.expect_at(point)
    assert bench.page.evaluate("() => history.length") == length


@pytest.mark.parametrize("modifier", ["Control", "Shift"])
def test_a_modified_click_is_the_browsers(open_bench: Callable[..., Bench], truth: Truth, modifier: str) -> None:
    """Opened aside, the link leads to the same point there; this bench stays."""
    bench = open_bench()
    link, point = bench.link_moving("tokens")
    with bench.page.context.expect_page() as opened:
        link.click(modifiers=[modifier])
    opened.value.wait_for_load_state()
    Bench(opened.value, truth).expect_at(point)
    bench.expect_at(truth.defaults)
    expect(bench.page.locator("main a.followed")).to_have_count(0)


def test_every_link_of_the_text_leads_to_a_point(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """All links with keys name axes, and the bench says what Python says wherever they lead."""
    bench, seen = open_bench(), set()
    keys = bench.page.locator('main a[href^="#"][href*="="]').evaluate_all(
        "(links) => links.flatMap((link) => [...new URLSearchParams(link.getAttribute('href').slice(1)).keys()])"
    )
    assert set(keys) <= set(AXES)
    for link in bench.links():
        if link["point"] in seen:
            continue
        seen.add(link["point"])
        bench.page.evaluate("(fragment) => { location.hash = fragment; }", truth.fragment(link["point"]))
        bench.expect_at(link["point"])
    assert len(seen) >= 10
