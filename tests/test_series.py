"""What the figures in the text show is what the ledger says, and so are their alternative texts."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from builder.drawn import Series
from builder.errors import LessonError
from builder.grid import AXES, load_grid
from builder.ledger import GROUPS, MOST_TOKENS, Point
from builder.measured import load_measured
from builder.roofline import FITS, Pass, fits, resident_bytes
from builder.series import CONTEXTS, SERIES, leaves_the_slope
from builder.shards import look_up, shard, value
from tests.conftest import ROOT
from tests.toys import pass_of

GRID = load_grid(ROOT)


@cache
def series(name: str) -> Series:
    return SERIES[name](ROOT, GRID)


def rows(figure: str, dataset: str, **where: Any) -> list[dict[str, Any]]:
    """The rows of a dataset whose fields are as asked."""
    return [row for row in series(figure).data[dataset] if all(row[key] == value for key, value in where.items())]


def at(**changes: Any) -> tuple[Point, Pass]:
    point = replace(GRID.defaults, **changes)
    return point, pass_of(GRID.model, GRID.gpus[point.gpu], point)


def said(name: str) -> list[str]:
    """The numbers of an alternative text."""
    return re.findall(r"(?<!\w)\d{1,3}(?:,\d{3})*(?:\.\d+)?(?!\d)", series(name).alt)


@pytest.mark.parametrize("context", sorted({*CONTEXTS, GRID.defaults.context}))
def test_throughput_is_the_ledgers_at_every_point(context: int) -> None:
    """And each point says whether it fits."""
    points = rows("throughput-by-context", "points", context=context)
    assert [row["x"] for row in points] == list(GRID.axes["tokens"])
    for row in points:
        point, costs = at(tokens=row["x"], context=context)
        assert row["y"] == pytest.approx(float(costs.throughput), rel=1e-5)
        assert row["memory"] == FITS[int(fits(resident_bytes(GRID.model, point), GRID.gpus["h100"]))]
        assert row["fits"] == (row["memory"] != "no")


def test_throughput_has_the_lessons_numbers() -> None:
    """164 for one, 1,840 for 64, which no H100 holds; 48 at 8k do fit."""
    line = {row["x"]: row for row in rows("throughput-by-context", "points", chosen=True)}
    assert [round(line[tokens]["y"]) for tokens in (1, 64, 256)] == [164, 1840, 2096]
    assert line[48]["fits"]
    assert not line[64]["fits"]
    assert "164 to 2,112 at 8,192 tokens of context (points up to 48 fit)" in series("throughput-by-context").alt


def test_attention_stays_where_it_is_and_the_matmuls_climb() -> None:
    """4.00 at every batch; the gate projection within the band of the five."""
    assert {row["y"] for row in rows("intensity-by-tokens", "lines", kernel="attention")} == {4.0}
    gate = rows("intensity-by-tokens", "lines", kernel="gate_proj")
    band = rows("intensity-by-tokens", "band")
    assert all(b["low"] <= g["y"] <= b["high"] for g, b in zip(gate, band, strict=True))
    for line, edges in zip(gate, band, strict=True):
        _, costs = at(tokens=line["x"])
        run = [float(costs.arithmetic_intensity[costs.row(kernel)]) for kernel in GROUPS["matmuls"]]
        assert (edges["low"], edges["high"]) == pytest.approx((min(run), max(run)), rel=1e-5)
    assert [round(row["y"]) for row in rows("intensity-by-tokens", "ridges")] == [295, 153]
    assert {"1.00", "1,365", "1,755", "4.00", "0.55", "295", "153"} <= set(said("intensity-by-tokens"))


def test_ridges_are_those_of_the_data_sheets() -> None:
    """The published ones; only the H200 falls behind the GPU before it, and the 40 GB A100 stands beside the line."""
    line = {row["text"]: (row["x"], round(row["y"])) for row in rows("ridges-by-year", "gpus")}
    assert line == {
        "P100": (2016, 29),
        "V100": (2017, 139),
        "A100": (2020, 153),
        "H100": (2022, 295),
        "H200": (2023, 206),
        "B200": (2024, 281),
    }
    (variant,) = rows("ridges-by-year", "variants")
    assert (variant["text"], variant["x"], round(variant["y"]), round(variant["twin"])) == (
        "A100 40 GB",
        2020,
        201,
        153,
    )
    assert series("ridges-by-year").sees.endswith("the H200 came back down.")
    assert {"29", "139", "153", "201", "295", "206", "281"} <= set(said("ridges-by-year"))


def test_quantization_helps_one_user_and_no_crowd() -> None:
    """164, 305, 536 and 305 alone; 19,609 three times in a full batch, and more only for W8A8."""
    alone, crowd = ([row["value"] for row in rows("throughput-by-dtype", "bars", panel=panel)] for panel in (0, 1))
    assert alone == ["164", "305", "536", "305"]
    assert crowd == ["19,609", "19,609", "19,609", "24,516"]
    assert [row["memory"] for row in rows("throughput-by-dtype", "bars", panel=1)] == ["no", "no", "tight", "no"]
    assert [row["times"] for row in rows("throughput-by-dtype", "bars", panel=0)][1:] == ["1.86×", "3.27×", "1.86×"]
    assert {*alone, *crowd} <= set(said("throughput-by-dtype"))
    assert "does not fit with BF16, FP8 and W8A8." in series("throughput-by-dtype").alt


def test_a_bar_is_as_long_as_its_part_of_the_longest() -> None:
    """Each panel on a scale of its own."""
    for panel in (0, 1):
        bars = rows("throughput-by-dtype", "bars", panel=panel)
        assert max(row["part"] for row in bars) == 1
    assert bars[0]["part"] == pytest.approx(19608.7 / 24516.1, rel=1e-4)


def test_where_the_axis_ends_before_the_ridge_the_figure_says_so() -> None:
    """It shows where the matmuls leave the slope: never does one say so of the first position."""
    point = replace(GRID.defaults, phase="prefill", context=0)
    for last, found in ((304, None), (305, 305), (MOST_TOKENS, 305)):
        grid = replace(GRID, axes={**GRID.axes, "tokens": (1, last)})
        if found:
            assert leaves_the_slope(grid, point) == found
        else:
            with pytest.raises(LessonError, match=r"content/grid\.toml: .* up to 304 tokens they never do"):
                leaves_the_slope(grid, point)


@pytest.mark.parametrize(("gpu", "turn"), [("h100", 305), ("a100", 151)])
def test_a_prompt_is_almost_free_up_to_the_ridge(gpu: str, turn: int) -> None:
    """The turn is the fewest tokens with which the gate projection no longer waits for memory alone."""
    label = GRID.gpus[gpu].label
    for row in rows("prompt-time", "times", gpu=label):
        _, costs = at(phase="prefill", context=0, gpu=gpu, tokens=row["x"])
        assert row["y"] == pytest.approx(float(costs.total_time) * 1e3, rel=1e-5)
    (marked,) = rows("prompt-time", "turns", gpu=label)
    assert marked["x"] == turn == leaves_the_slope(GRID, replace(GRID.defaults, phase="prefill", context=0, gpu=gpu))
    bounds = [
        costs.bound[costs.row("gate_proj")]
        for _, costs in (at(phase="prefill", gpu=gpu, tokens=t) for t in (turn - 1, turn))
    ]
    assert bounds[0] == 0 < bounds[1]
    assert marked["x"] in [row["x"] for row in rows("prompt-time", "times", gpu=label)]
    assert {"9.28", "10.4", "302", "5.65", "7.04", "100"} <= set(said("prompt-time"))


@pytest.mark.parametrize("kernel", ["elementwise", "attention"])
def test_shares_of_a_prefill_are_the_ledgers(kernel: str) -> None:
    """9.7 % beside 8.2 % at 4,096 tokens behind 512."""
    for row in rows("elementwise-share", "lines", kernel=kernel):
        _, costs = at(phase="prefill", context=512, tokens=row["x"])
        assert row["y"] == pytest.approx(float(costs.share[costs.row(kernel)]) * 100, rel=1e-5)
    (name,) = rows("elementwise-share", "names", kernel=kernel)
    assert name["value"] == {"elementwise": "9.7\u00a0%", "attention": "8.2\u00a0%"}[kernel]
    assert {"9.7", "8.2", "305"} <= set(said("elementwise-share"))


def test_a_pair_of_counters_has_four_regions() -> None:
    """Each corner of the plane has one name."""
    names = {(row["x"], row["y"]): row["text"] for row in rows("two-counters", "words", name=True)}
    assert names == {(0, 0): "latency", (1, 0): "memory-bound", (0, 1): "compute-bound", (1, 1): "well fed"}
    assert "Memory high, tensor low: memory-bound" in series("two-counters").alt


def test_the_models_column_is_the_ledgers_without_elementwise() -> None:
    """What the comparison must come to, in ms, by what was measured."""
    expected = {
        12.41: 10.02,
        29.92: 28.40,
        6.38: 6.10,
        30.77: 34.62,
        15.47: 13.35,
        5.15: 4.26,
        22.39: 24.16,
        7.22: 5.29,
    }
    steps = rows("model-vs-measured", "steps")
    assert {round(row["measured_end"], 2): round(row["model_end"], 2) for row in steps} == expected
    for row in steps:
        assert rows("model-vs-measured", "bars", row=row["row"], which="model")[-1]["end"] == row["model_end"]
        assert row["ratio"] == f"{row['measured_end'] / row['model_end']:.2f}×"


def test_a_bar_has_the_measured_parts_end_to_end() -> None:
    """Linear layers, attention, LM head, each beginning where the one before ends."""
    measured = {round(step.total * 1e3, 2): step.time for step in load_measured(ROOT, GRID)}
    for row in rows("model-vs-measured", "steps"):
        parts = measured[round(row["measured_end"], 2)]
        start = 0.0
        for bar in rows("model-vs-measured", "bars", row=row["row"], which="measured"):
            assert bar["start"] == pytest.approx(start, abs=1e-4)
            start += parts[bar["part"]] * 1e3
            assert bar["end"] == pytest.approx(start, abs=1e-4)


def test_measured_steps_stand_by_how_far_they_are_beyond_the_model() -> None:
    """Those over it first, those under it last; both are there, within a factor of 1.4."""
    ratios = [row["measured_end"] / row["model_end"] for row in rows("model-vs-measured", "steps")]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[0] > 1 > ratios[-1]
    assert series("model-vs-measured").sees.endswith("within a factor of 1.4.")
    assert {"7.22", "5.29", "30.8", "34.6"} <= set(said("model-vs-measured"))


@pytest.mark.parametrize("name", SERIES)
def test_every_figure_says_what_to_see_and_what_it_shows(name: str) -> None:
    """One sentence, and a text that ends like one; the client's dataset begins empty."""
    found = series(name)
    assert re.fullmatch(r"[A-Z][^.]*(\.\d[^.]*)?\.", found.sees)
    assert re.fullmatch(r"[A-Z].{60,}\.", found.alt)
    assert found.data.get("here", []) == []


# the line on which a point of the bench lies: dataset, and the fields of the rows that are its
LINES: dict[str, tuple[str, Any]] = {
    "throughput-by-context": ("points", lambda point: {"context": point.context}),
    "intensity-by-tokens": ("lines", lambda _: {"kernel": "gate_proj"}),
    "prompt-time": ("times", lambda point: {"gpu": GRID.gpus[point.gpu].label}),
    "elementwise-share": ("lines", lambda _: {"kernel": "elementwise"}),
}


@pytest.mark.parametrize("name", LINES)
def test_the_benchs_point_lies_on_its_line(name: str) -> None:
    """Wherever a figure says that it shows a point, its columns of the shards lead to the curve."""
    here = series(name).here
    assert here is not None
    dataset, line = LINES[name]
    free = {axis: here.at.get(axis, GRID.axes[axis][-2:]) for axis in AXES if axis != "tokens"}
    seen = 0
    for values in itertools.product(*free.values()):
        point = replace(GRID.defaults, **dict(zip(free, values, strict=True)))
        curve = {row["x"]: row["y"] for row in rows(name, dataset, **line(point))}
        made = shard(GRID, point) if curve else {}
        for tokens in GRID.axes["tokens"] if curve else ():
            x, y = (value(look_up(made, GRID, replace(point, tokens=tokens), column)) for column in (here.x, here.y))
            assert x == tokens
            assert y == pytest.approx(curve[tokens], rel=0.006, abs=0.1 if name == "elementwise-share" else 0)
            seen += 1
    assert seen >= len(GRID.axes["tokens"])


def test_a_context_between_two_lines_has_its_place() -> None:
    """One beyond them has none."""
    here = series("throughput-by-context").here
    assert here is not None
    assert here.at["context"] == [context for context in GRID.axes["context"] if context >= min(CONTEXTS)]
    assert 4096 in here.at["context"]
    assert 128 not in here.at["context"]


@pytest.mark.parametrize("name", SERIES)
def test_a_figure_that_shows_the_benchs_point_says_how(name: str) -> None:
    """The dataset and the way to its rows come together."""
    assert ("here" in series(name).data) == (series(name).here is not None)


@pytest.mark.parametrize("name", ["intensity-by-tokens", "prompt-time"])
def test_a_figure_names_the_gpu_that_the_bench_lacks(name: str) -> None:
    """With the file to change, and how."""
    lesser = replace(GRID, gpus={"h100": GRID.gpus["h100"]})
    with pytest.raises(LessonError, match="shows the gpu 'a100', which is not on the bench") as caught:
        SERIES[name](ROOT, lesser)
    assert caught.value.path == "content/grid.toml"
    assert caught.value.hint
