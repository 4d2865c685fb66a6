"""What is loaded on demand, and what happens when it doesn't come: shards of numbers, and Vega."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.bench import Bench, Truth

REFUSED = [r"ERR_FAILED"]


def _refuse(pattern: str) -> Callable[[Page], None]:
    return lambda page: page.route(re.compile(pattern), lambda route: route.abort())


def _asked(page: Page) -> list[str]:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    return asked


def test_the_first_point_needs_only_the_page_itself(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """The default shard is in the HTML: page, style, script and icon are all that is asked for at once."""
    asked: list[list[str]] = []
    bench = open_bench(before=lambda page: asked.append(_asked(page)))
    bench.expect_at(truth.defaults)
    assert not [url for url in asked[0] if "/data/" in url]


def test_a_choice_loads_its_numbers_once(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """Pointing at an option fetches its shard, choosing it shows it, choosing it again asks for nothing."""
    bench = open_bench()
    asked = _asked(bench.page)
    with bench.page.expect_response(re.compile(r"/data/b200-bf16-bf16-gqa\.\w+\.js")):
        bench.control("gpu").locator(".option", has=bench.page.locator("[value=b200]")).hover()
    for gpu in ("b200", "h100", "b200"):
        bench.choose("gpu", gpu)
        bench.expect_at(truth.point(gpu=gpu))
    numbers = [url for url in asked if "/data/" in url]
    assert len(numbers) == len(set(numbers))
    assert all(url.endswith(".js") for url in numbers)


def test_numbers_that_do_not_come_leave_the_bench_where_it_was(
    open_bench: Callable[..., Bench], truth: Truth, troubles: Any
) -> None:
    """The control goes back, the numbers stay, a sentence says why, and nothing looks busy for ever."""
    troubles.expected += REFUSED
    bench = open_bench("#tokens=16", before=_refuse(r"/data/h200-"))
    bench.expect_at(truth.point(tokens=16))
    bench.choose("gpu", "h200")
    expect(bench.status).to_contain_text("could not be loaded")
    bench.expect_at(truth.point(tokens=16))
    bench.expect_address(truth.point(tokens=16))
    bench.choose("gpu", "b200")
    bench.expect_at(truth.point(tokens=16, gpu="b200"))


def test_the_next_try_may_succeed(open_bench: Callable[..., Bench], truth: Truth, troubles: Any) -> None:
    """Refused once, or answered with something else, a shard is asked for again."""
    troubles.expected += [*REFUSED, "not numbers"]
    bench = open_bench()
    for answer in ("abort", "nonsense"):

        def once(route: Any, answer: str = answer) -> None:
            if answer == "abort":
                route.abort()
            else:
                route.fulfill(body="'not numbers';", content_type="text/javascript")

        bench.page.route(re.compile(r"/data/h200-"), once)
        bench.choose("gpu", "h200")
        expect(bench.status).to_contain_text("could not be loaded")
        bench.expect_at(truth.defaults)
        bench.page.unroute(re.compile(r"/data/h200-"))
    bench.choose("gpu", "h200")
    bench.expect_at(truth.point(gpu="h200"))


def test_a_link_whose_numbers_do_not_come_is_undone(
    open_bench: Callable[..., Bench], truth: Truth, troubles: Any
) -> None:
    """The address says again what the bench shows."""
    troubles.expected += REFUSED
    bench = open_bench(before=_refuse(r"/data/h100-(fp8|int4)"))
    link, _ = bench.link_moving("weights")
    link.click()
    expect(bench.status).to_contain_text("could not be loaded")
    bench.expect_at(truth.defaults)
    bench.expect_address(truth.defaults)
    expect(bench.root.locator("[data-changed]")).to_have_count(0)


def test_an_address_whose_numbers_do_not_come_shows_the_start(
    open_bench: Callable[..., Bench], truth: Truth, troubles: Any
) -> None:
    """Opened at a point that can't be loaded, the page stands at its first one and says so."""
    troubles.expected += REFUSED
    bench = open_bench("#gpu=a100&tokens=64", before=_refuse(r"/data/a100-"))
    expect(bench.status).to_contain_text("could not be loaded")
    bench.expect_at(truth.defaults)


@pytest.mark.parametrize("end", ["comes", "fails"])
def test_the_last_choice_wins_however_late_the_first_ends(
    open_bench: Callable[..., Bench], truth: Truth, troubles: Any, end: str
) -> None:
    """Numbers that arrive, or fail to, after the reader has gone on change nothing."""
    troubles.expected += REFUSED
    held: list[Any] = []
    bench = open_bench(before=lambda page: page.route(re.compile(r"/data/a100-"), lambda route: held.append(route)))
    bench.choose("gpu", "a100")
    expect(bench.root).to_have_attribute("aria-busy", "true")
    bench.choose("gpu", "b200")
    bench.expect_at(truth.point(gpu="b200"))
    with bench.page.expect_event("requestfinished" if end == "comes" else "requestfailed"):
        held[0].continue_() if end == "comes" else held[0].abort()
    bench.frame()
    bench.expect_at(truth.point(gpu="b200"))
    bench.expect_drawn(truth.point(gpu="b200"))


def test_nothing_is_said_while_numbers_are_on_their_way(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """A sentence that was due for the last point waits for those of the next, and says these."""
    held: list[Any] = []

    def hold(page: Page) -> None:
        page.clock.install()
        page.route(re.compile(r"/data/a100-"), lambda route: held.append(route))

    bench = open_bench(before=hold)
    bench.move("tokens", 16)
    bench.choose("gpu", "a100")
    expect(bench.root).to_have_attribute("aria-busy", "true")
    bench.page.clock.run_for(5_000)
    expect(bench.status).to_have_text("")
    held[0].continue_()
    bench.expect_at(truth.point(tokens=16, gpu="a100"))
    bench.page.clock.run_for(5_000)
    expect(bench.status).to_have_text(truth.spoken(truth.point(tokens=16, gpu="a100")))


def test_vega_takes_over_when_the_reader_reaches_for_the_bench(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """Until then the drawing of the build stands; the live one is the same picture with the same role and name."""
    bench = open_bench()
    bench.expect_at(truth.defaults)
    drawn = bench.drawn()
    assert not drawn["live"]
    bench.root.hover()
    bench.expect_drawn(truth.defaults)
    live = bench.drawn()
    assert (live["role"], live["name"]) == (drawn["role"], drawn["name"])
    assert sorted(live["texts"]) == sorted(drawn["texts"])
    assert len(live["dots"]) == len(drawn["dots"])


def test_only_the_drawing_in_sight_is_taken_over(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """A wide window leaves the drawings of a phone alone, until the window is a phone's."""
    bench = open_bench("#tokens=8")
    bench.expect_drawn(truth.point(tokens=8), "wide")
    assert not bench.drawn("phone")["live"]
    assert not bench.drawn("strip")["live"]
    bench.page.set_viewport_size({"width": 390, "height": 844})
    bench.expect_drawn(truth.point(tokens=8), "phone")
    bench.expect_drawn(truth.point(tokens=8), "strip")
    bench.page.evaluate("() => scrollTo(0, 0)")
    bench.page.evaluate("() => lesson.set({ tokens: 64 }, 'control')")
    bench.page.wait_for_timeout(2000)  # longer than the page waits before it says that a picture stayed behind
    expect(bench.root.first).not_to_have_attribute("data-stale", "")


def test_without_vega_the_drawing_stands_and_the_numbers_move(
    open_bench: Callable[..., Bench], truth: Truth, troubles: Any
) -> None:
    """The runtime fails to load: table and readouts never needed it. That the picture stays behind is said beside it,
    and the next move tries anew."""
    troubles.expected += REFUSED
    bench = open_bench(before=_refuse(r"/assets/vega\."))
    behind = bench.page.get_by_text("The picture could not follow")
    with bench.page.expect_event("requestfailed"):
        bench.root.hover()
    expect(behind).to_be_hidden()
    bench.move("tokens", 64)
    bench.expect_at(truth.point(tokens=64))
    expect(bench.page.get_by_role("img", name=re.compile("Roofline"))).to_be_visible()
    assert not bench.drawn()["live"]
    assert len(bench.drawn()["dots"]) == 8
    expect(behind).to_be_visible()
    bench.page.unroute_all()
    bench.move("tokens", 128)
    bench.expect_drawn(truth.point(tokens=128))
    expect(behind).to_be_hidden()


def test_without_its_spec_a_drawing_stands(open_bench: Callable[..., Bench], truth: Truth, troubles: Any) -> None:
    """Vega comes, but not what it should draw."""
    troubles.expected += REFUSED
    bench = open_bench(before=_refuse(r"/assets/roofline\."))
    bench.move("tokens", 64)
    bench.expect_at(truth.point(tokens=64))
    assert not bench.drawn()["live"]
