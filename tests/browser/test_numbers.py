"""What the page shows, anywhere on the grid, is what the ledger says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from builder.grid import AXES
from tests.browser.bench import Bench, Truth

# One of each GPU, and every format and layout of heads among them.
SHARDS = [
    {"gpu": "h100", "weights": "bf16", "kv": "bf16", "attention": "gqa"},
    {"gpu": "a100", "weights": "int4", "kv": "bf16", "attention": "mha"},
    {"gpu": "h200", "weights": "bf16", "kv": "fp8", "attention": "mqa"},
    {"gpu": "b200", "weights": "fp8", "kv": "fp8", "attention": "gqa"},
    {"gpu": "b200", "weights": "w8a8", "kv": "bf16", "attention": "mqa"},
]


def _name(shard: dict[str, str]) -> str:
    return "-".join(shard.values())


def test_sixty_four_sequences_fill_more_than_an_h100(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """The lesson's first surprise: at #tokens=64 attention takes the pass, and the cache no longer fits."""
    bench = open_bench("#tokens=64")
    expect(bench.root.locator("[data-readout=throughput]")).to_have_text("1,840")
    expect(bench.root.locator("tr[data-kernel=attention] [data-column=share]")).to_have_text("83.0")
    expect(bench.root.locator("[data-readout=verdict]")).to_contain_text(
        "does not fit: needs 87.3 GiB; an H100 has 79.6"
    )
    expect(bench.root).to_have_attribute("data-fits", "no")
    bench.expect_at(truth.point(tokens=64))
    bench.expect_drawn(truth.point(tokens=64))


@pytest.mark.parametrize("shard", SHARDS, ids=_name)
def test_any_address_shows_the_numbers_of_its_point(
    open_bench: Callable[..., Bench], truth: Truth, shard: dict[str, str]
) -> None:
    """Every text, bar and dot, at points all over a shard."""
    points = truth.sample(30, seed=64, **shard)
    bench = open_bench(truth.fragment(points[0]))
    for point in points:
        bench.page.evaluate("(fragment) => { location.hash = fragment; }", truth.fragment(point))
        bench.expect_at(point)
        bench.expect_drawn(point)


@pytest.mark.parametrize("seed", [1, 2])
def test_any_way_through_the_controls_shows_the_numbers_of_its_point(
    open_bench: Callable[..., Bench], truth: Truth, seed: int
) -> None:
    """Moved one control at a time, from shard to shard, the bench never shows anything of another point."""
    bench, point = open_bench(), truth.defaults
    for goal in truth.sample(8, seed=seed):
        for axis in ("context", "phase", "tokens", "gpu", "weights", "kv", "attention"):
            wanted = getattr(goal, axis)
            if wanted == getattr(point, axis) or not truth.grid.exists(truth.moved(point, **{axis: wanted})):
                continue
            bench.move(axis, wanted)
            point = truth.moved(point, **{axis: wanted})
            bench.expect_at(point)
        bench.expect_drawn(point)
        bench.expect_address(point)


def test_the_corners_of_the_grid_are_written_without_a_gap(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """The first and last position of each axis, with no NaN, no Infinity and nothing missing."""
    bench = open_bench()
    for phase, tokens, context in [
        ("decode", 1, 128),
        ("decode", 4096, 131072),
        ("prefill", 1, 0),
        ("prefill", 4096, 131072),
    ]:
        for gpu, attention in [("a100", "mha"), ("b200", "mqa")]:
            point = truth.point(phase=phase, tokens=tokens, context=context, gpu=gpu, attention=attention)
            bench.page.evaluate("(fragment) => { location.hash = fragment; }", truth.fragment(point))
            bench.expect_at(point)
            bench.expect_drawn(point)
            text = bench.root.inner_text()
            assert not any(bad in text for bad in ("NaN", "Infinity", "undefined", "null", "{"))


@pytest.mark.parametrize(("size", "width", "height"), [("short", 1280, 720), ("phone", 390, 844), ("strip", 320, 568)])
def test_each_size_of_the_drawing_follows(
    open_bench: Callable[..., Bench], truth: Truth, size: str, width: int, height: int
) -> None:
    """The drawing that a window shows is the one that moves."""
    points = truth.sample(6, seed=5, gpu="h200", weights="bf16")
    bench = open_bench(truth.fragment(points[0]), width=width, height=height)
    for point in points:
        bench.page.evaluate("(fragment) => { location.hash = fragment; }", truth.fragment(point))
        bench.expect_at(point)
        bench.expect_drawn(point, size)


def test_axes_are_written_in_the_order_of_the_controls(open_bench: Callable[..., Bench]) -> None:
    """The seven controls carry the names of the seven axes."""
    assert set(open_bench().read()["controls"]) == set(AXES)
