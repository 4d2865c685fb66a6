"""A comparison as the `compare` command gives it: a table for the terminal, JSON, or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from builder.catalog import Gpu
from builder.compare import AGREEMENT, Compared, Placed, Region
from builder.display import BOUND_NAMES, DASH
from builder.nsight import Export, short_name
from builder.report import aligned
from builder.roofline import BANDWIDTH_EFFICIENCY
from builder.series import HIGH
from builder.units import percent, show, significant

LONGEST = 20  # kernels of a table, those that took longest; JSON and CSV hold all
NAME_WIDTH = 44

_LEGEND = {"high": HIGH, "full": BANDWIDTH_EFFICIENCY, "agreement": AGREEMENT}


def cut(text: str, width: int) -> str:
    """A text, shortened in its middle to a width, for names of kernels differ at both ends."""
    if len(text) <= width:
        return text
    head = width // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def _percent(value: float | None) -> str:
    return DASH if value is None else percent(value * 100)


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows of one of the documents as CSV with a header; empty where there is no value."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {key: str(value).lower() if isinstance(value, bool) else value for key, value in row.items()} for row in rows
    )
    return out.getvalue()


# Passes


def measurements(compared: Sequence[Compared]) -> dict[str, Any]:
    """Everything that is known of the measured passes: SI units, unrounded; null where there is nothing to say."""
    return {"thresholds": _LEGEND, "measurements": [_measurement(each) for each in compared]}


def _measurement(each: Compared) -> dict[str, Any]:
    at = each.measured
    return {
        "line": at.line,
        "name": at.name,
        "model": at.model.name,
        **vars(at.point),
        "measured_time": at.time,
        "model_time": each.model_time,
        "ratio": each.ratio,
        "memory_share": each.memory_share,
        "compute_share": each.compute_share,
        "dram_active": at.dram_active,
        "tensor_active": at.tensor_active,
        "bound": each.bound,
        "measured_bound": each.measured_bound,
        "same_side": each.same_side,
        "agrees": each.agrees,
        "suggests": each.region.name,
    }


def measurement_table(compared: Sequence[Compared]) -> str:
    """The measured passes as a person reads them, and what their regions advise."""
    counted = any(each.measured_bound for each in compared)
    names = ["Name"] if any(each.measured.name for each in compared) else []
    lines = [
        ["", "Pass", "Measured", "Model", "Ratio", "Bytes", "FLOPs", "Bound by", "Agrees", "Suggests", *names],
        ["", "", "ms", "ms", "", "% of peak", "% of peak", "", "", "", *("" for _ in names)],
    ]
    for index, each in enumerate(compared, start=1):
        at = each.measured
        bound = BOUND_NAMES[each.bound or "none"]
        if each.same_side is False:
            bound += f", counters say {BOUND_NAMES[each.measured_bound or 'none']}"
        lines.append(
            [
                f"{index}",
                at.label,
                significant(at.time * 1e3),
                significant(each.model_time * 1e3),
                significant(each.ratio),
                _percent(each.memory_share),
                _percent(each.compute_share),
                bound,
                "yes" if each.agrees else "no",
                each.region.name,
                *(cut(at.name, NAME_WIDTH) for _ in names),
            ]
        )
    printed, rule = aligned(lines, left=(1, 7, 8, 9, 10))
    printed.insert(2, rule)
    agreeing = sum(each.agrees for each in compared)
    models = ", ".join(dict.fromkeys(each.measured.model.name for each in compared))
    counters = ", and no counter on the other side of the ridge" if counted else ""
    return "\n".join(
        [
            f"{models}: {many(len(compared), 'measured pass', 'measured passes')} beside the ledger",
            "",
            *printed,
            "",
            f"{agreeing} of {len(compared)} agree: within a factor of {AGREEMENT:g}{counters}.",
            "Bytes and FLOPs are the ledger's, over the measured time. "
            "The side of the ridge is the ledger's too, where there are no counters.",
            *_advice([each.region for each in compared]),
        ]
    )


def many(count: int, one: str, more: str) -> str:
    """A count with its noun: '1 kernel', '1,200 kernels'."""
    return f"{count:,} {one if count == 1 else more}"


def _advice(regions: Sequence[Region | None]) -> list[str]:
    """What to do, for each region that occurs, the most frequent first."""
    counted = [region for region in regions if region]
    found = sorted(dict.fromkeys(counted), key=lambda region: -counted.count(region))
    return [f"{each.name.capitalize()}: {each.advice}." for each in found]


# Kernels


def kernels(placed: Sequence[Placed], gpu: Gpu) -> dict[str, Any]:
    """Everything that is known of the kernels: SI units, unrounded; null where the export doesn't say."""
    roof = {"id": gpu.id, "peak_flops": gpu.peak_flops, "hbm_bandwidth": gpu.hbm_bandwidth}
    return {
        "thresholds": {key: _LEGEND[key] for key in ("high", "full")},
        "gpu": {**roof, "ridge_point": gpu.ridge_point},
        "kernels": [_kernel(each) for each in placed],
    }


def _kernel(each: Placed) -> dict[str, Any]:
    at = each.profile
    return {
        "line": at.line,
        "id": at.id,
        "kernel": at.name,
        "time": at.time,
        "share": each.share,
        "memory": at.memory,
        "compute": at.compute,
        "suggests": each.region.name if each.region else None,
        "flops": at.flops,
        "bytes_moved": at.bytes_moved,
        "arithmetic_intensity": each.arithmetic_intensity,
        "bound": each.bound,
        "achieved_flops": each.achieved_flops,
        "attainable_flops": each.attainable_flops,
        "roof_share": each.roof_share,
    }


def longest_first(placed: Sequence[Placed]) -> list[Placed]:
    """The kernels by their time, which is what a reader cares for; in their order where it isn't known."""
    return sorted(placed, key=lambda each: -(each.profile.time or 0))


def kernel_table(placed: Sequence[Placed], export: Export, gpu: Gpu) -> str:
    """The kernels as a person reads them, the LONGEST, and what their regions advise."""
    shown = longest_first(placed)[:LONGEST]
    roofed = any(each.arithmetic_intensity is not None for each in placed)
    heads = ["", "Kernel", "Time", "Share", "Memory", "Compute", "Suggests"]
    units = ["", "", "µs", "%", "% of peak", "% of peak", ""]
    lines = [
        [*heads, *(["Intensity", "Reached", "Of roof"] if roofed else [])],
        [*units, *(["FLOP/B", "TFLOP/s", "%"] if roofed else [])],
    ]
    for index, each in enumerate(shown, start=1):
        at = each.profile
        reached = each.achieved_flops
        intensity = each.arithmetic_intensity
        lines.append(
            [
                f"{index}",
                cut(short_name(at.name), NAME_WIDTH),
                DASH if at.time is None else significant(at.time * 1e6),
                _percent(each.share),
                _percent(at.memory),
                _percent(at.compute),
                each.region.name if each.region else DASH,
            ]
        )
        if roofed:
            lines[-1] += [
                DASH if intensity is None else show("arithmetic_intensity", intensity)[0],
                DASH if reached is None else show("attainable_flops", reached)[0],
                _percent(each.roof_share),
            ]
    printed, rule = aligned(lines, left=(1, 6))
    printed.insert(2, rule)
    left_out = len(placed) - len(shown)
    if left_out:
        printed.append(f"… and {left_out:,} that took less time: --format csv has all")
    return "\n".join(
        [
            f"{many(len(placed), 'kernel', 'kernels')} of Nsight Compute, under the roof of {gpu.name}",
            "",
            *printed,
            "",
            *_counted(export, roofed),
            *_advice([each.region for each in placed]),
        ]
    )


def _counted(export: Export, roofed: bool) -> list[str]:
    """What the FLOPs leave out, or what would bring them."""
    if not roofed:
        return ["No roofline: it takes FLOPs and DRAM bytes, which this export doesn't hold."]
    if not export.tensor:
        return ["Tensor cores were not counted: FLOPs are those of other instructions alone."]
    if not export.instructions:
        return ["FLOPs are those of tensor cores alone: other instructions were not counted."]
    return []
