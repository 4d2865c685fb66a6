"""One point as JSON, CSV and a table: the same numbers, off the grid as on it."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder import display, report
from builder.catalog import Sourced
from builder.errors import LessonError
from builder.grid import load_grid
from builder.kernels import KERNEL_LABELS, KERNELS
from builder.ledger import MOST_TOKENS, Point, forward_pass
from builder.shards import look_up, shard
from tests.toys import ROOT, at, lesson_gpus, lesson_model, toy_gpu, toy_model

TOY = at(gpu="toy", tokens=2, context=3)
COLUMNS = ("flops", "bytes_moved", "arithmetic_intensity", "bound", "attainable_flops", "time", "share")


def lesson_document(point: Point) -> dict[str, Any]:
    """The document of a point of the lesson's model."""
    return report.document(lesson_model(), lesson_gpus()[point.gpu], point)


def test_a_document_has_the_keys_that_are_promised_and_no_other():
    """Keys of point, GPU, rows and total, in their order."""
    found = lesson_document(at(tokens=64))
    assert found.pop("assumptions", {}) == {}  # nothing but the defaults
    assert list(found) == ["point", "gpu", "rows", "total"]
    assert list(found["point"]) == ["model", "phase", "tokens", "context", "gpu", "weights", "kv", "attention"]
    assert list(found["gpu"]) == ["peak_flops", "hbm_bandwidth", "memory_bytes", "ridge_point"]
    assert [row["kernel"] for row in found["rows"]] == list(KERNELS)
    assert all(tuple(row) == ("kernel", *COLUMNS, "latency_bound") for row in found["rows"])
    assert list(found["total"]) == [
        "flops",
        "bytes_moved",
        "arithmetic_intensity",
        "time",
        "throughput",
        "peak_share",
        "resident_bytes",
        "fits",
        "largest_batch",
    ]


def test_sixty_four_sequences_at_8k():
    """The point that the lesson is about."""
    found = lesson_document(at(tokens=64))
    assert found["point"] == {"model": "Qwen3-8B", **vars(at(tokens=64))}
    assert found["gpu"]["peak_flops"] == 989e12
    assert found["gpu"]["hbm_bandwidth"] == 3.35e12
    assert found["gpu"]["memory_bytes"] == 81_559 * 2**20
    assert found["gpu"]["ridge_point"] == pytest.approx(989 / 3.35)
    total = found["total"]
    assert round(total["throughput"], 3) == 1840.486
    assert total["fits"] == "no"
    assert total["largest_batch"] == 50
    assert f"{total['resident_bytes'] / 2**30:.1f}" == "87.3"
    assert {row["bound"] for row in found["rows"]} == {"memory"}


def test_a_toy_document_by_hand():
    """Attention of a toy: 4·2 layers·6 wide·2 tokens·3 entries = 288 FLOPs; 2·2·3·2·3 elements of 2 B = 144 bytes."""
    found = report.document(toy_model(), toy_gpu(), TOY)
    attention = found["rows"][1]
    assert attention == {
        "kernel": "attention",
        "flops": 288,
        "bytes_moved": 144,
        "arithmetic_intensity": 2,
        "bound": "memory",
        "attainable_flops": 20,  # 2 FLOP/byte · 10 byte/s
        "time": 18,  # 144 bytes at 80 % of 10 byte/s
        "share": pytest.approx(18 / found["total"]["time"]),
        "latency_bound": False,  # seconds
    }
    assert found["gpu"] == {"peak_flops": 100, "hbm_bandwidth": 10, "memory_bytes": 1000, "ridge_point": 10}


def test_whole_numbers_are_whole_in_json():
    """Counts come as 288 and not as 288.0: SI and unrounded, yet readable."""
    found = report.document(toy_model(), toy_gpu(), TOY)
    assert all(isinstance(row[key], int) for row in found["rows"] for key in ("flops", "bytes_moved"))


def test_counts_are_exact_to_the_integer():
    """The FLOPs and bytes of the document are the ledger's own integers."""
    point = at(tokens=333, context=7777)
    exact = {row.name: (row.flops, row.bytes_moved) for row in forward_pass(lesson_model(), point)}
    found = {row["kernel"]: (row["flops"], row["bytes_moved"]) for row in lesson_document(point)["rows"]}
    assert found == exact


def test_totals_are_the_sums_of_the_rows():
    """FLOPs, bytes, time and shares add up; throughput and share of peak follow from them."""
    found = lesson_document(at(phase="prefill", tokens=3000, context=100, gpu="b200"))
    rows, total = found["rows"], found["total"]
    for key in ("flops", "bytes_moved", "time"):
        assert sum(row[key] for row in rows) == pytest.approx(total[key], rel=1e-12)
    assert sum(row["share"] for row in rows) == pytest.approx(1, rel=1e-12)
    assert total["arithmetic_intensity"] == pytest.approx(total["flops"] / total["bytes_moved"])
    assert total["throughput"] == pytest.approx(3000 / total["time"])
    assert total["peak_share"] == pytest.approx(total["flops"] / total["time"] / found["gpu"]["peak_flops"])


def test_bounds_are_named():
    """All three bounds by name: 300 tokens on an H100 leave matmuls either side of the flip, 4,096 past the ridge."""
    named = {row["kernel"]: row["bound"] for row in lesson_document(at(tokens=310))["rows"]}
    assert (named["gate_proj"], named["qkv_proj"], named["attention"]) == ("ridge", "memory", "memory")
    assert lesson_document(at(tokens=4096))["rows"][3]["bound"] == "compute"


def test_prefill_has_no_largest_batch():
    """A prefill is one sequence: null."""
    assert lesson_document(at(phase="prefill", tokens=512, context=0))["total"]["largest_batch"] is None


def test_a_row_without_bytes_has_nulls(monkeypatch):
    """No bytes moved: no intensity, no bound and nothing attainable in JSON, empty in CSV; and no NaN."""
    from builder.ledger import Kernel

    rows = [Kernel(name, 0, 0) if name == "attention" else Kernel(name, 10, 10) for name in KERNELS]
    monkeypatch.setattr(report, "forward_pass", lambda model, point, assumptions: tuple(rows))
    found = report.document(toy_model(), toy_gpu(), TOY)
    row = found["rows"][1]
    assert (row["arithmetic_intensity"], row["bound"], row["attainable_flops"]) == (None, None, None)
    assert (row["time"], row["share"]) == (0, 0)
    json.dumps(found, allow_nan=False)
    line = report.csv_text(found).splitlines()[2]
    assert line == "attention,0,0,,,,0,0,true"  # no kernel takes no time


@pytest.mark.parametrize(
    "change", [{"context": 0}, {"tokens": 0}, {"phase": "train"}, {"kv": "int4"}, {"context": MOST_TOKENS + 1}]
)
def test_a_point_that_is_none_is_refused(change):
    """Off the edge of an axis, or decode without context: neither document nor table."""
    with pytest.raises(LessonError):
        report.document(toy_model(), toy_gpu(), at(gpu="toy", **change))
    with pytest.raises(LessonError):
        report.table(toy_model(), toy_gpu(), at(gpu="toy", **change))


POINTS = st.builds(
    Point,
    st.sampled_from(["decode", "prefill"]),
    st.one_of(st.integers(1, 5000), st.integers(1, MOST_TOKENS)),
    st.one_of(st.integers(1, 200_000), st.integers(1, MOST_TOKENS)),
    st.sampled_from(["a100", "h100", "h200", "b200"]),
    st.sampled_from(["bf16", "fp8", "int4"]),
    st.sampled_from(["bf16", "fp8"]),
    st.sampled_from(["gqa", "mha", "mqa"]),
)


@given(POINTS)
def test_no_point_has_a_nan_or_an_infinity(point):
    """Any point up to the largest is strict JSON, and has a complete table."""
    found = lesson_document(point)
    json.dumps(found, allow_nan=False)
    table = report.table(lesson_model(), lesson_gpus()[point.gpu], point)
    assert not re.search(r"nan|inf\b|[{}]|e\+", table)


def test_csv_reads_back_as_the_rows():
    """Header, eight rows and the total; every number parses back to the very float of the JSON."""
    found = lesson_document(at(phase="prefill", tokens=777, context=33))
    text = report.csv_text(found)
    assert "\r" not in text
    assert text.endswith("\n")
    read = list(csv.DictReader(io.StringIO(text)))
    assert [row["kernel"] for row in read] == [*KERNELS, "total"]
    for line, row in zip(read, found["rows"], strict=False):
        assert line["bound"] == (row["bound"] or "")
        assert line["latency_bound"] == ("true" if row["latency_bound"] else "false")
        for key in COLUMNS:
            if key != "bound":
                assert float(line[key]) == row[key]
    total = read[-1]
    assert float(total["time"]) == found["total"]["time"]
    assert (total["share"], total["bound"], total["attainable_flops"], total["latency_bound"]) == ("1", "", "", "")


# the table


def cells_of(table: str) -> dict[str, list[str]]:
    """Label of a row → its cells, as they stand in the table; the bar not among them."""
    found = {}
    for line in table.splitlines():
        label, *cells = re.split(r"\s{2,}", re.sub(r"[█▏▎▍▌▋▊▉]+$", "", line).strip())
        if label in {*KERNEL_LABELS.values(), "Whole pass"}:
            found[label] = cells
    return found


@pytest.mark.parametrize(
    "point",
    [
        at(),
        at(tokens=64),
        at(tokens=256, context=512, gpu="h200", weights="int4"),
        at(phase="prefill", tokens=4096, context=512, gpu="b200"),
        at(phase="prefill", tokens=1, context=0),
    ],
)
def test_the_table_has_the_cells_of_the_page(point):
    """A table on the grid shows, cell by cell, what the page's shard holds; so do readouts and sentences."""
    grid = load_grid(ROOT)
    page = shard(grid, point)
    table = report.table(grid.model, grid.gpus[point.gpu], point)
    cells = cells_of(table)
    assert len(cells) == 9
    for kernel in KERNELS:
        expected = {column: look_up(page, grid, point, f"{kernel}.{column}") for column in COLUMNS}
        if look_up(page, grid, point, f"{kernel}.latency"):
            expected["bound"] += " †"
        assert cells[KERNEL_LABELS[kernel]] == list(expected.values())
    totals = [look_up(page, grid, point, f"total.{column}") for column in COLUMNS if column in display.TOTALS]
    assert cells["Whole pass"] == [*totals, "100"]
    for name in ("verdict", "warning", "throughput", "peak_share", "resident", "gpu.memory", "work_unit"):
        assert look_up(page, grid, point, name) in table
    assert ("largest batch" in table) == (point.phase == "decode")


def test_the_table_reads_in_words():
    """The first line is the point in words, the last what the page's verdict says."""
    lines = report.table(lesson_model(), lesson_gpus()["h100"], at(tokens=64)).splitlines()
    assert lines[0] == "Qwen3-8B: decode, 64 tokens, context 8,192, H100 SXM, BF16 weights, BF16 KV cache, GQA"
    assert lines[-1] == "It does not fit: needs 87.3 GiB; an H100 has 79.6. A batch of 50 would."
    assert report.describe(at(), lesson_gpus()["h100"], lesson_model()).startswith("Qwen3-8B: decode, 1 token, ")
    assert all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize(("tokens", "marked"), [(1, True), (4096, False)])
def test_the_table_says_what_its_mark_means(tokens, marked):
    """Below the table, and only where a row has the mark; the readouts come after it."""
    lines = report.table(lesson_model(), lesson_gpus()["h100"], at(tokens=tokens)).splitlines()
    assert ("† likely latency-bound: under 5\u00a0µs a kernel" in lines) == marked
    assert any(" † " in line for line in lines if line.startswith("Elementwise")) == marked


def test_columns_of_the_table_stand_under_each_other():
    """Numbers end where their heads do, whatever their length."""
    lines = report.table(lesson_model(), lesson_gpus()["h100"], at(tokens=4096, context=131072)).splitlines()
    ends = {lines[2].index("Work") + 4}
    for line in lines:
        if line.split("  ")[0] in {*KERNEL_LABELS.values(), "Whole pass"}:
            ends.add(re.match(r"\D+[\d,.]+", line).end())  # type: ignore[union-attr]
    assert len(ends) == 1


@pytest.mark.parametrize(
    ("part", "text"),
    [(0, ""), (1e-9, "▏"), (1 / 160, "▏"), (0.05, "█"), (0.075, "█▌"), (0.83, "████████████████▋"), (1, "█" * 20)],
)
def test_a_bar_is_as_long_as_its_share(part, text):
    """Twenty characters are the whole pass; what is there shows a sliver."""
    assert report.bar(part) == text


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_has_no_shorter_bar(a, b):
    """Bars sort as shares do."""
    low, high = sorted((a, b))
    assert len(report.bar(low)) <= len(report.bar(high)) <= 20


def test_a_gpu_of_any_name_can_be_asked():
    """A model and a GPU that no grid names have a table too."""
    gpu = toy_gpu(label="B{1}", memory=Sourced(10.0, "toy"))
    assert report.table(toy_model(), gpu, TOY).endswith("a B{1} has 0.0. Not one would.")
