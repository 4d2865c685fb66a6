"""One point, on the grid or off it, as the `ledger` command gives it: JSON, CSV, or a table for the terminal."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Container, Sequence
from typing import Any

from builder import display
from builder.assumptions import DEFAULT, Assumptions, differences
from builder.catalog import Gpu, Model
from builder.grid import Grid, in_words
from builder.kernels import KERNEL_LABELS, KERNELS
from builder.ledger import Point, forward_pass
from builder.roofline import BOUNDS, FITS, NO_BYTES, cost, fits, largest_batch, resident_bytes, roof_of
from builder.shards import look_up, shard

ROW_KEYS = ("kernel", *display.COLUMNS, "latency_bound")
_BAR_WIDTH = 20
_EIGHTHS = " ▏▎▍▌▋▊▉"


def _number(value: Any) -> int | float:
    """A plain number for JSON: whole ones as whole numbers."""
    plain = float(value)
    return int(plain) if plain.is_integer() and abs(plain) < 2**63 else plain


def document(model: Model, gpu: Gpu, point: Point, assumptions: Assumptions = DEFAULT) -> dict[str, Any]:
    """Everything that the ledger knows of a point: SI units, unrounded; shares are fractions.

    Keys as the README lists them. A row that moves no byte has null for intensity, bound and attainable FLOP/s;
    prefill has null for largest_batch. Raises LessonError where the point is none.
    """
    point.check()
    roof = roof_of(gpu, point.weights, assumptions)
    costs = cost(forward_pass(model, point, assumptions), gpu, point.tokens, assumptions)
    resident = resident_bytes(model, point, assumptions)
    rows: list[dict[str, Any]] = []
    for i, kernel in enumerate(costs.kernels):
        row: dict[str, Any] = {"kernel": kernel}
        for column in display.COLUMNS:
            row[column] = _number(getattr(costs, column)[i])
        row["bound"] = BOUNDS[int(costs.bound[i])]
        if int(costs.bound[i]) == NO_BYTES:
            row["arithmetic_intensity"] = row["attainable_flops"] = None
        row["latency_bound"] = bool(costs.latency_bound[i])
        rows.append(row)
    return {
        "point": {"model": model.name, **vars(point), **differences(assumptions)},
        "gpu": {
            "peak_flops": _number(roof.peak),
            "hbm_bandwidth": _number(roof.bandwidth),
            "memory_bytes": _number(gpu.memory_bytes),
            "ridge_point": _number(roof.ridge),
        },
        "rows": rows,
        "total": {
            "flops": _number(costs.total_flops),
            "bytes_moved": _number(costs.total_bytes),
            "arithmetic_intensity": _number(costs.total_intensity),
            "time": _number(costs.total_time),
            "throughput": _number(costs.throughput),
            "peak_share": _number(costs.peak_share),
            "resident_bytes": _number(resident),
            "fits": FITS[int(fits(resident, gpu))],
            "largest_batch": int(largest_batch(model, point, gpu, assumptions)) if point.phase == "decode" else None,
        },
    }


def csv_text(found: dict[str, Any]) -> str:
    """The rows of a document, and its total, as CSV with a header; SI units, empty where there is no number."""
    out = io.StringIO()
    writer = csv.DictWriter(out, ROW_KEYS, restval="", lineterminator="\n")
    writer.writeheader()
    # as JSON writes it
    writer.writerows({**row, "latency_bound": json.dumps(row["latency_bound"])} for row in found["rows"])
    total = {key: found["total"][key] for key in ROW_KEYS if key in found["total"]}
    writer.writerow({"kernel": "total", **total, "share": 1})
    return out.getvalue()


def bar(part: float, width: int = _BAR_WIDTH) -> str:
    """A share as a bar of block characters; what is there shows at least a sliver."""
    eighths = max(round(part * width * 8), 1 if part > 0 else 0)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def aligned(lines: Sequence[Sequence[str]], left: Container[int]) -> tuple[list[str], str]:
    """(lines whose cells stand below each other, a rule as wide); `left` numbers the columns that begin together."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    printed = []
    for line in lines:
        cells = (c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True)))
        printed.append("  ".join(cells).rstrip())
    return printed, "─" * (sum(widths) + 2 * len(widths) - 2)


def describe(point: Point, gpu: Gpu, model: Model, assumptions: Assumptions = DEFAULT) -> str:
    """The point in words: 'Qwen3-8B, decode, 64 tokens, context 8,192, H100 SXM, …'."""
    many = "" if point.tokens == 1 else "s"
    other = "".join(f", {name}={value}" for name, value in differences(assumptions).items())
    where = f"{model.name}: {point.phase}, {point.tokens:,} token{many}, context {point.context:,}, {gpu.name}"
    return f"{where}, {', '.join(in_words(point))}{other}"


def table(model: Model, gpu: Gpu, point: Point, assumptions: Assumptions = DEFAULT) -> str:
    """The ledger as a person reads it: the cells, readouts and sentences of the page. Raises as document() does."""
    point.check()
    # a grid of this one point: the table can't differ from the page, since it is made by the same code
    axes = {axis: (value,) for axis, value in vars(point).items()}
    grid = Grid(model, {point.gpu: gpu}, axes, point, {})
    page = shard(grid, point, assumptions)

    def text(column: str) -> str:
        return look_up(page, grid, point, column)

    units = {column: unit for column, (_, unit) in display.COLUMN_UNITS.items()} | {"flops": text("work_unit")}
    heads = [[display.COLUMN_LABELS[column] for column in display.COLUMNS]]
    heads.append([units.get(column, "") for column in display.COLUMNS])
    lines = [["Kernel", *heads[0]], ["", *heads[1]]]
    notes: list[str] = []
    for kernel in KERNELS:
        cells = {column: text(f"{kernel}.{column}") for column in display.COLUMNS}
        if text(f"{kernel}.latency"):
            cells["bound"] += f" {display.LATENCY_MARK}"
            notes = [f"{display.LATENCY_MARK} {display.LATENCY_TEXT}: {display.LATENCY_REASON}"]
        lines.append([KERNEL_LABELS[kernel], *cells.values()])
    totals = [text(f"total.{column}") if column in display.TOTALS else "" for column in display.COLUMNS]
    lines.append(["Whole pass", *totals[:-1], "100"])
    printed, rule = aligned(lines, left=(0, 1 + display.COLUMNS.index("bound")))
    costs = cost(forward_pass(model, point, assumptions), gpu, point.tokens, assumptions)
    for i in range(len(KERNELS)):
        printed[i + 2] = f"{printed[i + 2]}  {bar(float(costs.share[i]))}".rstrip()
    printed.insert(2, rule)
    printed.insert(-1, rule)
    readouts = (
        f"{text('throughput')} tokens per second, {text('total.time')} ms a pass, {text('peak_share')} % of peak, "
        f"ridge {text('gpu.ridge')}\n"
        f"{text('resident')} of {text('gpu.memory')} GiB"
        + (f", largest batch {text('largest_batch')}" if point.phase == "decode" else "")
    )
    sentences = [sentence for sentence in (text("verdict"), text("warning")) if sentence]
    return "\n".join([describe(point, gpu, model, assumptions), "", *printed, *notes, "", readouts, *sentences])
