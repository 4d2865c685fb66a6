"""What the page looks up is what the ledger says: every point, every column, by two paths."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder import display, shards
from builder.catalog import Sourced
from builder.grid import GRID_FILE, Grid, load_grid
from builder.kernels import KERNELS
from builder.ledger import GROUPS, Point
from builder.report import document
from builder.roofline import roof_of
from builder.shards import check_shard_size, look_up, roofline_rows, script_json, shard, shard_id, shard_json
from builder.site import compressed_size
from builder.units import GIB, QUANTITIES, show
from tests.toys import ROOT, at, toy_gpu, toy_model


@cache
def lesson() -> Grid:
    """The lesson's grid."""
    return load_grid(ROOT)


@cache
def lesson_shard(choice: Point) -> dict[str, Any]:
    """One of its shards."""
    return shard(lesson(), choice)


def toy_grid(**axes: Any) -> Grid:
    """Three contexts by three batches on a toy GPU with a kilobyte of memory."""
    base: dict[str, Any] = {
        "phase": ("decode", "prefill"),
        "tokens": (1, 2, 40),
        "context": (0, 1, 3),
        "gpu": ("toy",),
        "weights": ("bf16",),
        "kv": ("bf16",),
        "attention": ("gqa",),
    }
    budget = {"shard": 5000, "before_the_bench_answers": 5000}
    point = at(gpu="toy", context=1)
    return Grid(toy_model(), {"toy": toy_gpu()}, base | axes, point, budget)


def points_of(grid: Grid, choice: Point) -> Iterator[Point]:
    """Every point of a shard."""
    for phase in grid.axes["phase"]:
        for context in grid.axes["context"]:
            for tokens in grid.axes["tokens"]:
                point = replace(choice, phase=phase, context=context, tokens=tokens)
                if grid.exists(point):
                    yield point


BOUND_WORDS = {"memory": "memory", "ridge": "at the ridge", "compute": "compute", None: "–"}
DIGITS = {"flops": None, "bytes_moved": GIB, "arithmetic_intensity": 1, "attainable_flops": 1e12, "time": 1e-3}


def expected(grid: Grid, point: Point) -> dict[str, str]:
    """Column → text, formatted from the exact numbers of the point, which come without any grid."""
    found = document(grid.model, grid.gpus[point.gpu], point)
    rows = {row["kernel"]: row for row in found["rows"]}
    total = found["total"]
    # one unit of work for all rows: by the five matmuls
    matmuls = sum(rows[kernel]["flops"] for kernel in GROUPS["matmuls"])
    unit, size = ("TFLOP", 1e12) if matmuls >= 5e12 else ("GFLOP", 1e9)
    texts = {"work_unit": unit, "fits": total["fits"], "tokens": f"{point.tokens:,}"}
    for kernel, row in {**rows, "total": total}.items():
        for column, digits in DIGITS.items():
            if column in row:
                number = row[column]
                text = QUANTITIES[column].text
                texts[f"{kernel}.{column}"] = "–" if number is None else text(number / (digits or size))
        if kernel != "total":
            texts[f"{kernel}.bound"] = BOUND_WORDS[row["bound"]]
            texts[f"{kernel}.share"] = show("share", row["share"])[0]
            texts[f"{kernel}.latency"] = "likely latency-bound" if row["latency_bound"] else ""
    share = sum(rows[kernel]["share"] for kernel in GROUPS["matmuls"])
    texts["matmuls.share"] = show("share", share)[0]
    texts["matmuls.rough"] = display.rough_percent(share)
    texts["throughput"] = show("throughput", total["throughput"])[0]
    texts["peak_share"] = show("peak_share", total["peak_share"])[0]
    texts["resident"] = show("resident_bytes", total["resident_bytes"])[0]
    batch = total["largest_batch"]
    texts["largest_batch"] = "–" if batch is None else show("largest_batch", batch)[0]
    texts["largest"] = max(KERNELS, key=lambda kernel: rows[kernel]["share"])
    return texts


def shown(grid: Grid, page: dict[str, Any], point: Point, columns: Any) -> dict[str, str]:
    """Column → text, looked up as the page does."""
    return {column: look_up(page, grid, point, column) for column in columns}


def sampled(count: int, seed: int) -> list[Point]:
    """Points of the lesson's grid, drawn evenly over each axis."""
    grid, drawn, found = lesson(), random.Random(seed), []
    while len(found) < count:
        point = Point(**{axis: drawn.choice(values) for axis, values in grid.axes.items()})
        if grid.exists(point):
            found.append(point)
    return found


def choice_of(point: Point) -> Point:
    """The point that names the shard of a point."""
    defaults = lesson().defaults
    return replace(point, phase=defaults.phase, tokens=defaults.tokens, context=defaults.context)


def test_every_text_of_the_default_shard_is_the_ledgers():
    """All points of one shard, all its columns: looked up on the grid as formatted off it."""
    grid = lesson()
    page = lesson_shard(grid.defaults)
    count = 0
    for point in points_of(grid, grid.defaults):
        texts = expected(grid, point)
        assert shown(grid, page, point, texts) == texts, point
        count += 1
    assert count == 23 * 25


def test_texts_of_points_from_every_shard_are_the_ledgers():
    """A few hundred points from all over the grid, at least one of each GPU, dtype and attention."""
    grid = lesson()
    points = sampled(250, seed=7)
    for axis, values in grid.axes.items():
        assert {getattr(point, axis) for point in points} == set(values)
    for point in points:
        texts = expected(grid, point)
        assert shown(grid, lesson_shard(choice_of(point)), point, texts) == texts, point


def test_what_pointing_at_a_dot_says_is_what_the_ledger_says():
    """The cells of its row, at any point, in a sentence."""
    grid = lesson()
    point = replace(grid.defaults, tokens=64)
    said = look_up(lesson_shard(grid.defaults), grid, point, "attention.tip")
    assert said == "Attention: 4.00 FLOP/B, 13.4 TFLOP/s attainable, 83.0 % of the pass"


def test_no_column_is_left_unchecked():
    """The two tests above look at every column but the sentences, which have tests of their own."""
    grid = lesson()
    page = lesson_shard(grid.defaults)
    sentences = {"verdict", "warning", "sublabel", "ridges_below", "memory_used"}
    sentences |= {f"{kernel}.{kind}" for kernel in KERNELS for kind in ("label", "tip")}
    assert set(page["columns"]) == (set(expected(grid, grid.defaults)) | sentences) - {"tokens", "matmuls.rough"}


def test_the_page_says_what_the_issue_promises():
    """64 sequences at 8k: 1,840 tokens per second, 83 % in attention, and it does not fit."""
    grid, point = lesson(), at(tokens=64)
    page = lesson_shard(grid.defaults)
    assert look_up(page, grid, point, "throughput") == "1,840"
    assert look_up(page, grid, point, "attention.rough") == "83\u00a0%"
    assert look_up(page, grid, point, "fits") == "no"
    warning = look_up(page, grid, point, "warning")
    assert warning == "It does not fit: needs 87.3 GiB; an H100 has 79.6. A batch of 50 would."


def test_sentences_and_labels_are_complete_and_stand_on_two_lines():
    """No slot stays open in a sample of points, and verdict with warning is at most 141 characters long."""
    grid = lesson()
    columns = ["verdict", "warning", "sublabel", *(f"{kernel}.label" for kernel in KERNELS)]
    for point in sampled(1000, seed=11):
        texts = shown(grid, lesson_shard(choice_of(point)), point, columns)
        assert not any(mark in text for text in texts.values() for mark in "{}"), point
        assert len(f"{texts['verdict']} {texts['warning']}".strip()) <= 141, point
        assert texts[f"{look_up(lesson_shard(choice_of(point)), grid, point, 'largest')}.label"], point


def test_what_a_sentence_says_of_a_point_is_true_of_it():
    """The verdict's first words are the bound of the kernel that it speaks of."""
    grid = lesson()
    words = {"memory": "Memory-bound", "at the ridge": "At the ridge", "compute": "Compute-bound"}
    for point in sampled(300, seed=13):
        texts = expected(grid, point)
        page = lesson_shard(choice_of(point))
        share = float(texts["attention.share"].replace("< ", ""))
        if abs(share - 50) > 0.1:
            about = "attention" if share > 50 else "gate_proj"
            assert look_up(page, grid, point, "verdict").startswith(words[texts[f"{about}.bound"]]), point
        warning = look_up(page, grid, point, "warning")
        start = {"fits": "", "tight": "Tight: ", "no": "It does not fit: "}[texts["fits"]]
        assert warning.startswith(start), point
        assert bool(warning) == bool(start), point


# how it is stored


def stored(grid: Grid) -> shards._Columns:
    """An empty set of columns of a grid's shape."""
    return shards._Columns(grid.shape)


def read_back(columns: shards._Columns) -> dict[str, Any]:
    """What look_up takes, of the columns alone; their JSON says the same as their values."""
    data = [column.values for column in columns.data]
    assert [json.loads(column.json) for column in columns.data] == data
    return {"constants": {}, "columns": columns.columns, "data": data}


def test_a_column_that_does_not_vary_along_an_axis_has_stride_0_there():
    """Constant along an axis: stored once for it; constant throughout: one value."""
    columns = stored(toy_grid(tokens=(1, 2, 3, 4)))
    full = np.arange(2 * 3 * 4).reshape(2, 3, 4)
    columns.add("all", full, str)
    columns.add("by_tokens", full[:1, :1], str)
    columns.add("by_tokens_repeated", np.broadcast_to(full[:1, :1], full.shape), str)
    columns.add("by_phase", np.broadcast_to(full[:, :1, :1], full.shape), str)
    columns.add("by_phase_and_tokens", np.broadcast_to(full[:, :1], full.shape), str)
    columns.add("constant", np.full(full.shape, 7.5), str)
    strides = {name: place[:3] for name, place in columns.columns.items()}
    assert strides == {
        "all": [12, 4, 1],
        "by_tokens": [0, 0, 1],
        "by_tokens_repeated": [0, 0, 1],
        "by_phase": [1, 0, 0],
        "by_phase_and_tokens": [4, 0, 1],
        "constant": [0, 0, 0],
    }
    assert columns.data[columns.columns["constant"][3]].values == ["7.5"]
    assert columns.data[columns.columns["by_phase"][3]].values == ["0", "12"]


def test_equal_columns_are_stored_once():
    """Gate and up cost the same: one list for both; another one gets its own."""
    columns = stored(toy_grid())
    values = np.arange(18).reshape(2, 3, 3)
    columns.add("gate", values, str)
    columns.add("up", values.copy(), str)
    columns.add("down", values + 1, str)
    assert columns.columns["gate"] == columns.columns["up"]
    assert columns.columns["down"][3] != columns.columns["gate"][3]
    assert len(columns.data) == 2


def test_a_text_that_repeats_is_stored_once():
    """Few distinct texts become a list of them and indices, and are found again."""
    grid = toy_grid(tokens=(1, 2, 3, 4))
    columns = stored(grid)
    columns.add("parity", np.arange(24).reshape(grid.shape), lambda n: "odd" if n % 2 else "even")
    page = read_back(columns)
    assert page["data"] == [{"of": ["even", "odd"], "at": [0, 1] * 12}]
    found = [look_up(page, grid, replace(grid.defaults, tokens=tokens), "parity") for tokens in (1, 2, 3, 4)]
    assert found == ["even", "odd", "even", "odd"]


@given(st.lists(st.integers(0, 3), min_size=18, max_size=18), st.lists(st.booleans(), min_size=3, max_size=3))
def test_any_column_is_found_again_at_every_position(numbers, flat):
    """Whatever varies or not along whichever axes: a look-up gives back what went in."""
    grid = toy_grid()
    values = np.asarray(numbers).reshape(grid.shape)
    for axis, constant in enumerate(flat):
        if constant:
            values = np.broadcast_to(values.take([0], axis), values.shape)
    columns = stored(grid)
    columns.add("n", values, str)
    page = read_back(columns)
    for p, phase in enumerate(grid.axes["phase"]):
        for c, context in enumerate(grid.axes["context"]):
            for t, tokens in enumerate(grid.axes["tokens"]):
                point = replace(grid.defaults, phase=phase, context=context, tokens=tokens)
                assert look_up(page, grid, point, "n") == str(values[p, c, t])


def test_texts_by_index_are_found_again():
    """A column of a few texts, given as where each stands; one that never varies is a single text."""
    grid = toy_grid(tokens=(1, 2, 3, 4))
    columns = stored(grid)
    columns.add_texts("short", np.arange(24).reshape(grid.shape) % 2, ["yes", "no"])
    columns.add_texts("tip", np.zeros(1, dtype=int), ["always"])
    page = read_back(columns)
    assert page["columns"]["tip"][:3] == [0, 0, 0]
    for tokens, text in ((1, "yes"), (2, "no"), (4, "no")):
        point = replace(grid.defaults, tokens=tokens)
        assert (look_up(page, grid, point, "short"), look_up(page, grid, point, "tip")) == (text, "always")


def test_the_json_of_a_shard_is_that_of_what_it_says():
    """Put together from pieces that other shards had already, it is the same text."""
    grid = lesson()
    for choice in list(grid.shard_points())[::17]:
        assert shard_json(grid, choice) == script_json(shard(grid, choice))


def test_the_sentences_of_every_kind_of_position_are_those_of_each():
    """Sentences are made once for all positions of a kind, in any shard: every position would have got the same."""
    grid = lesson()
    said: dict[tuple[str, int], tuple[str, ...]] = {}
    for choice in grid.shard_points():
        roof = roof_of(grid.gpus[choice.gpu], choice.weights)
        for part in shards.shard_arrays(grid, choice):
            positions = shards._positions(grid, roof, part)
            for index, kind in enumerate(positions.kinds().tolist()):
                found = shards._sentences(positions[index])
                assert said.setdefault((part.phase, kind), found) == found, (choice, part.phase, index)


def test_columns_that_no_context_moves_are_stored_without_it():
    """A matmul knows nothing of the context or the phase; the texts of the GPU stand once for the shard."""
    page = lesson_shard(lesson().defaults)
    for column in ("flops", "bytes_moved", "arithmetic_intensity", "time", "attainable_flops", "bound"):
        for kernel in (*GROUPS["matmuls"], "lm_head"):
            assert page["columns"][f"{kernel}.{column}"][:3] == [0, 0, 1], (kernel, column)
    assert page["columns"]["work_unit"][:3] == [0, 0, 1]
    assert page["constants"]["gpu.label"] == "H100"


def test_the_hole_in_decode_is_filled_with_what_lies_beside_it():
    """Decode has no point without context; its place repeats the next one, so that what is constant stays so."""
    grid = lesson()
    page = lesson_shard(grid.defaults)
    first, second = grid.axes["context"][:2]
    hole = replace(grid.defaults, context=first)
    assert not grid.exists(hole)
    assert shown(grid, page, hole, page["columns"]) == shown(grid, page, replace(hole, context=second), page["columns"])


def test_every_index_of_every_column_is_there():
    """A slider's positions are whole numbers, and every one of them leads to a value."""
    grid = lesson()
    page = lesson_shard(grid.defaults)
    assert page["shape"] == [len(grid.axes[axis]) for axis in ("phase", "context", "tokens")]
    for name, (*strides, index) in page["columns"].items():
        assert all(isinstance(stride, int) and stride >= 0 for stride in strides), name
        data = page["data"][index]
        values = data["at"] if isinstance(data, dict) else data
        last = sum(stride * (length - 1) for stride, length in zip(strides, page["shape"], strict=True))
        assert last == len(values) - 1, name
        if isinstance(data, dict):
            assert set(values) == set(range(len(data["of"]))), name


def test_a_shard_is_named_by_its_choices():
    """The name of a shard's file."""
    assert shard_id(at(gpu="b200", weights="int4", kv="fp8", attention="mqa")) == "b200-int4-fp8-mqa"


# as JSON


def refuse(constant: str) -> Any:
    """NaN and Infinity are no JSON."""
    raise AssertionError(constant)


def test_a_shard_is_json_without_nan_or_infinity():
    """Every shard parses strictly and is what was computed; all of them keep their budget."""
    grid = lesson()
    choices = list(grid.shard_points())
    for choice in random.Random(3).sample(choices, 6):
        page = lesson_shard(choice)
        text = script_json(page)
        assert json.loads(text, parse_constant=refuse) == page
        assert check_shard_size(grid, page, compressed_size(text.encode())) == []


def test_a_number_that_is_none_never_becomes_json():
    """NaN and Infinity stop the build."""
    for number in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="JSON"):
            script_json({"data": [number]})


def test_a_shard_cannot_end_the_script_it_stands_in():
    """'<' is escaped, and so are the separators that end a line of old JavaScript."""
    label = "</script><b>\u2028\u2029<!--"
    grid = replace(toy_grid(), gpus={"toy": toy_gpu(label=label, memory=Sourced(1e12, "toy"))})
    page = shard(grid, grid.defaults)
    text = script_json(page)
    assert "<" not in text
    assert len(text.splitlines()) == 1
    assert json.loads(text) == page
    assert look_up(page, grid, grid.defaults, "gpu.label") == label
    assert f"this {label} needs 10." in look_up(page, grid, grid.defaults, "verdict")


def test_a_label_with_braces_is_not_read_as_a_slot():
    """A GPU may be called anything."""
    grid = replace(toy_grid(), gpus={"toy": toy_gpu(label="{gpu.label}", memory=Sourced(1e12, "toy"))})
    page = shard(grid, grid.defaults)
    assert "this {gpu.label} needs 10." in look_up(page, grid, grid.defaults, "verdict")


@pytest.mark.parametrize(
    ("axes", "axis", "length"),
    [
        ({"tokens": tuple(range(1, 9))}, "tokens", 8),
        ({"context": tuple(range(0, 11))}, "context", 11),
    ],
)
def test_a_shard_over_its_budget_names_the_axis_that_grew(axes, axis, length):
    """The longest axis is named with its length, the budget by its key, the file as grid.toml."""
    grid = toy_grid(**axes)
    page = shard(grid, grid.defaults)
    assert check_shard_size(grid, page, 5000) == []
    (error,) = check_shard_size(grid, page, 5001)
    assert error.path == GRID_FILE
    assert "shard toy-bf16-bf16-gqa takes 5,001 bytes compressed, over budget.shard of 5,000" in error.message
    assert f"its longest axis is {axis} with {length} positions" in error.message
    assert error.hint == f"take positions off axes.{axis}, or raise budget.shard"


# what is drawn


def test_dots_are_drawn_from_the_cells_beside_them():
    """The roofline's rows are the cells: intensity, attainable, share, and which is the largest."""
    grid, point = lesson(), at(tokens=64)
    page = lesson_shard(grid.defaults)
    kernels, _ = roofline_rows(page, grid, point)
    assert [row["kernel"] for row in kernels] == list(KERNELS)
    for row in kernels:
        cells = {column: look_up(page, grid, point, f"{row['kernel']}.{column}") for column in display.COLUMNS}
        assert row["x"] == float(cells["arithmetic_intensity"].replace(",", ""))
        assert row["y"] == float(cells["attainable_flops"].replace(",", ""))
        assert row["share"] == pytest.approx(float(cells["share"].replace("< ", "")) / 100)
        assert row["memory"] == "no"
    assert [row["kernel"] for row in kernels if row["largest"]] == ["attention"]
    assert [row["sublabel"] for row in kernels if row["sublabel"]] == ["at 4.00 whatever the batch"]


def test_a_trail_has_a_point_at_every_batch_and_turns_at_the_ridge():
    """The matmuls' trail climbs the slope, turns at the ridge and runs along the roof; attention's stays put."""
    grid = lesson()
    page = lesson_shard(grid.defaults)
    _, trails = roofline_rows(page, grid, grid.defaults)
    by_family = {family: [row for row in trails if row["family"] == family] for family in display.TRAILS}
    matmuls = by_family["matmuls"]
    assert [row["tokens"] for row in matmuls if row["tokens"]] == list(grid.axes["tokens"])
    (corner,) = [row for row in matmuls if row["tokens"] is None]
    assert (corner["x"], corner["y"]) == (295, 989)
    assert [row["x"] for row in matmuls] == sorted(row["x"] for row in matmuls)
    assert {row["x"] for row in by_family["attention"]} == {4.0}


def test_under_w8a8_the_matmuls_turn_at_the_fp8_ridge_and_attention_at_the_bf16_one():
    """Two roofs, each with its own corner; over BF16 arithmetic there is one."""
    grid = lesson()
    corners = {}
    for weights in ("fp8", "w8a8"):
        page = lesson_shard(replace(grid.defaults, weights=weights))
        assert look_up(page, grid, grid.defaults, "gpu.arithmetic") == ("fp8" if weights == "w8a8" else "bf16")
        _, trails = roofline_rows(page, grid, at(phase="prefill", context=0, weights=weights))
        corners[weights] = {row["family"]: (row["x"], row["y"]) for row in trails if row["tokens"] is None}
    assert corners["fp8"] == dict.fromkeys(("lm_head", "matmuls", "attention"), (295, 989))
    assert corners["w8a8"] == {"lm_head": (591, 1979), "matmuls": (591, 1979), "attention": (295, 989)}


@pytest.mark.parametrize(
    ("text", "number"), [("1,840", 1840), ("0.0024", 0.0024), ("< 0.1", 0.1), ("0", 0), ("–", None), ("100.0", 100)]
)
def test_a_drawn_number_is_read_from_its_text(text, number):
    """What is drawn is read off the cell; a dash draws nothing."""
    assert shards.value(text) == number
