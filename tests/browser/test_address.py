"""The address holds the point: it can be sent, kept, reloaded and gone back to."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from playwright.sync_api import Page, expect

from tests.browser.bench import Bench, Truth

RECORD_WRITES = """
window.writes = [];
const own = history.replaceState;
history.replaceState = function (...all) {
  window.writes.push(performance.now());
  return own.apply(this, all);
};
"""


def test_a_written_address_holds_all_seven_keys(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """One control moved, and the address can be sent to someone whose defaults may be others."""
    bench = open_bench()
    assert "#" not in bench.page.url
    bench.move("tokens", 64)
    bench.expect_address(truth.point(tokens=64))
    bench.choose("gpu", "a100")
    bench.expect_address(truth.point(tokens=64, gpu="a100"))


def test_missing_keys_are_defaults(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """#gpu=h200 is the default point on an H200; the address is completed."""
    point = truth.point(gpu="h200")
    bench = open_bench("#gpu=h200")
    bench.expect_at(point)
    bench.expect_address(point)
    expect(bench.status).not_to_contain_text("address")


@pytest.mark.parametrize(
    ("fragment", "moved", "said"),
    [
        ("#tokens=65", {"tokens": 64}, "no position at 65 for tokens: it went to 64"),
        ("#tokens=999999", {"tokens": 4096}, "no position at 999999 for tokens: it went to 4,096"),
        ("#tokens=0", {"tokens": 1}, "no position at 0 for tokens: it went to 1."),
        ("#context=40000", {"context": 32768}, "no position at 40000 for context: it went to 32,768"),
        ("#tokens=-3", {}, "unknown tokens: the bench took 1."),
        ("#tokens=", {}, "unknown tokens"),
        ("#token=64", {}, "a part that the bench does not know: token."),
        ("#gpu=h101&tokens=64", {"tokens": 64}, "unknown gpu: the bench took H100"),
        ("#weights=%3Cb%3E&kv=%zz", {}, "unknown weights: the bench took BF16"),
        ("#context=0", {"context": 128}, "Context moved to 128"),
        (
            "#gpu=a100&weights=w8a8",
            {"gpu": "a100", "weights": "fp8"},
            "Weights moved to FP8: A100 has no FP8 tensor cores.",
        ),
        ("#phase=constructor&attention=__proto__", {}, "unknown attention: the bench took GQA"),
    ],
)
def test_a_bad_key_is_clamped_and_said(
    open_bench: Callable[..., Bench], truth: Truth, fragment: str, moved: dict[str, object], said: str
) -> None:
    """The bench goes to the nearest position, or keeps the default, tells the reader, and rights the address."""
    bench = open_bench(fragment)
    bench.expect_at(truth.point(**moved))
    expect(bench.status).to_contain_text(said)
    bench.expect_address(truth.point(**moved))


def test_what_is_said_is_seen_until_the_bench_moves_on(open_bench: Callable[..., Bench]) -> None:
    """A note stands over the foot of the page, for the eye alone: the status says it too."""
    bench = open_bench("#tokens=63")
    note = bench.page.locator("[data-said]")
    expect(note).to_have_text("The bench has no position at 63 for tokens: it went to 64.")
    expect(note).to_be_visible()
    expect(note).to_have_attribute("aria-hidden", "true")
    bench.move("tokens", 128)
    expect(note).to_be_hidden()
    bench.move("context", 0)
    expect(note).to_contain_text("decode reads its own cache")


def test_an_address_typed_over_another_moves_the_bench(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """A new fragment on the open page, and Back to the one before."""
    bench = open_bench("#tokens=64")
    bench.expect_at(truth.point(tokens=64))
    bench.page.goto(bench.page.url.partition("#")[0] + "#tokens=256&gpu=b200")
    bench.expect_at(truth.point(tokens=256, gpu="b200"))
    bench.expect_address(truth.point(tokens=256, gpu="b200"))
    bench.page.go_back()
    bench.expect_at(truth.point(tokens=64))
    bench.page.go_forward()
    bench.expect_at(truth.point(tokens=256, gpu="b200"))


def test_a_reload_restores_the_point(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """Also one that controls have made, and in another shard."""
    bench = open_bench()
    point = truth.point(tokens=48, context=2048, gpu="h200", weights="int4", attention="mha")
    for axis in ("tokens", "context", "gpu", "weights", "attention"):
        bench.move(axis, getattr(point, axis))
    bench.expect_address(point)
    bench.page.reload()
    bench.expect_at(point)
    bench.expect_drawn(point)


def test_leaving_at_once_loses_no_move(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """What was moved a moment ago is written as the page goes, and is there on the way back."""
    bench = open_bench()
    for tokens in (2, 3, 4, 6, 96):
        bench.move("tokens", tokens)
    bench.page.goto(bench.page.url.partition("#")[0] + "404.html")
    bench.page.go_back()
    bench.expect_at(truth.point(tokens=96))
    bench.expect_address(truth.point(tokens=96))


def test_a_heading_moves_the_page_and_not_the_bench(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """The point stays behind a heading's address, through a reload, and Back leads to the point's own."""
    point = truth.point(tokens=64, gpu="h200")
    bench = open_bench(truth.fragment(point))
    bench.expect_at(point)
    heading = bench.page.locator("main h2").nth(2)
    anchor = heading.get_attribute("id")
    heading.locator("a").click()
    expect(bench.page).to_have_url(bench.page.url.partition("#")[0] + f"#{anchor}")
    expect(heading).to_be_in_viewport()
    bench.expect_at(point)
    bench.page.reload()
    expect(heading).to_be_in_viewport()
    bench.expect_at(point)
    assert bench.page.url.endswith(f"#{anchor}")
    bench.page.go_back()
    bench.expect_address(point)
    bench.expect_at(point)
    bench.page.go_forward()
    expect(bench.page).to_have_url(bench.page.url.partition("#")[0] + f"#{anchor}")
    bench.expect_at(point)


def test_a_heading_opened_first_shows_the_start(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """A link to a part from elsewhere: the page moves there, the bench is at the default point, the address stays."""
    anchor = open_bench().page.locator("main h2").nth(4).get_attribute("id")
    bench = open_bench(f"#{anchor}")
    expect(bench.page.locator(f"#{anchor}")).to_be_in_viewport()
    bench.expect_at(truth.defaults)
    assert bench.page.url.endswith(f"#{anchor}")


def test_two_headings_keep_two_points_apart(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """Moved at a heading, then on to another: each step Back shows what stood there."""
    bench = open_bench("#tokens=2")
    bench.expect_at(truth.point(tokens=2))
    bench.page.locator("main h2 a").nth(1).click()
    bench.move("tokens", 32)
    bench.expect_address(truth.point(tokens=32))
    bench.page.locator("main h2 a").nth(3).click()
    bench.expect_at(truth.point(tokens=32))
    bench.page.go_back()
    bench.expect_at(truth.point(tokens=32))
    bench.page.go_back()
    bench.expect_at(truth.point(tokens=2))


def test_skip_links_are_headings_too(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """The first Tab offers them; they leave the point alone."""
    bench = open_bench("#tokens=64")
    bench.expect_at(truth.point(tokens=64))
    bench.page.keyboard.press("Tab")
    bench.page.keyboard.press("Tab")
    expect(bench.page.get_by_role("link", name="Skip to the bench")).to_be_focused()
    bench.page.keyboard.press("Enter")
    expect(bench.page.locator("#bench-top")).to_be_focused()
    bench.expect_at(truth.point(tokens=64))


def test_an_address_is_not_written_at_every_step(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """While a slider is dragged the address follows four times a second at most, and is exact when it rests."""

    def record(page: Page) -> None:
        page.add_init_script(RECORD_WRITES)

    bench = open_bench(before=record)
    box = bench.range("tokens").bounding_box()
    assert box
    mouse, y = bench.page.mouse, box["y"] + box["height"] / 2
    mouse.move(box["x"] + 7, y)
    mouse.down()
    writes: list[float] = []
    for sweep in range(200):
        mouse.move(box["x"] + (box["width"] if sweep % 2 == 0 else 0), y, steps=20)
        writes = bench.page.evaluate("() => window.writes")
        if len(writes) >= 4:
            break
    mouse.move(box["x"] + box["width"], y, steps=20)
    mouse.up()
    gaps = [later - sooner for sooner, later in pairwise(writes)]
    assert len(gaps) >= 3
    assert min(gaps) > 240, gaps
    bench.expect_address(truth.point(tokens=4096))
    bench.expect_at(truth.point(tokens=4096))


def test_controls_leave_one_entry_in_the_history(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """Back leaves the page behind, however often a slider was moved."""
    bench = open_bench()
    before = bench.page.evaluate("() => history.length")
    for tokens in (2, 4, 8):
        bench.move("tokens", tokens)
        bench.expect_address(truth.point(tokens=tokens))
    assert bench.page.evaluate("() => history.length") == before
