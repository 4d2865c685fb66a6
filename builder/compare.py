"""A reader's own measurements beside the ledger: reading them, and what they say.

Two kinds: passes of a serving benchmark, which have a point and a time; and kernels of a Nsight Compute export, which
bring their two counters. Judged by the lesson's own rules: parts 10 and 11.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from builder.catalog import Gpu, Model
from builder.errors import LessonError, did_you_mean
from builder.grid import AXES
from builder.ledger import Point, forward_pass
from builder.nsight import Export, Profile
from builder.roofline import BOUNDS, COMPUTE, MEMORY, bound_of, cost, ratio, roof_of
from builder.series import HIGH, REGIONS
from builder.sheets import Cell, Sheet, brief, clean, number, read_sheet, require
from builder.units import parse_position, short_position

# Times are a sketch: a measurement that is not further off than this agrees. The lesson's part on trust has why.
AGREEMENT = 2.0

# Quoted peaks can't be passed. More than all of one is a number to check, not a fast machine.
ALL = 1.0

MILLISECONDS, RATE = "milliseconds", "tokens_per_second"
_SHORT = {"ms": MILLISECONDS, "tokens/s": RATE}
REQUIRED = ("phase", "tokens", "context", "gpu", "weights", "kv")
COUNTERS = ("dram_active", "tensor_active")
COLUMNS = (*REQUIRED, MILLISECONDS, RATE, "attention", "model", "name", *COUNTERS)
_EXAMPLE = "such as phase,tokens,context,gpu,weights,kv,milliseconds"
_LEAST, _MOST = 1e-6, 1e12  # of milliseconds or tokens a second: beyond them is no measurement


@dataclass(frozen=True)
class Region:
    """A quarter of the plane of two counters: its name, and what to do about it."""

    name: str
    advice: str


_REGIONS = {(bool(x), bool(y)): Region(name, " ".join(lines)) for x, y, name, lines in REGIONS}
TOO_FAST = Region(
    "too fast",
    "more bytes or FLOPs than this GPU can do in that time: quantized weights, several tokens a step, a cached prompt, "
    "or a clock that stopped early",
)


# the profiler runs one kernel at a time: what keeps both counters low is in it, not round it
ALONE = "too little work to fill the GPU, or threads that wait for each other: fuse it, or give it more"


def region(memory: float, compute: float) -> Region:
    """What two fractions of peak suggest: the quarter that they lie in, parted at HIGH, or TOO_FAST above ALL."""
    if max(memory, compute) > ALL:
        return TOO_FAST
    return _REGIONS[memory >= HIGH, compute >= HIGH]


# Passes of a serving benchmark


@dataclass(frozen=True)
class Measurement:
    """One measured pass: where it stands, its name, its point, its seconds, and its DCGM counters where it has them."""

    line: int
    name: str
    model: Model
    gpu: Gpu
    point: Point
    time: float
    dram_active: float | None = None
    tensor_active: float | None = None

    @property
    def label(self) -> str:
        """The pass in a few words: 'H100, decode 64 × 8k, BF16'."""
        at = self.point
        what = f"{at.tokens:,} × {short_position(at.context)}"
        if at.phase == "prefill":
            what = f"{at.tokens:,} after {short_position(at.context)}"
        dtypes = at.weights.upper() + (f", {at.kv.upper()} KV" if at.kv != "bf16" else "")
        heads = f", {at.attention.upper()}" if at.attention != "gqa" else ""
        return f"{self.gpu.label}, {at.phase} {what}, {dtypes}{heads}"


@dataclass(frozen=True)
class Compared:
    """A measurement beside the ledger's pass.

    model_time in seconds. memory_share: the ledger's bytes over the measured time and the quoted bandwidth;
    compute_share: its FLOPs over the measured time and the quoted peak. bound: what binds the pass by its intensity;
    measured_bound: the same by the two counters, None without them.
    """

    measured: Measurement
    model_time: float
    memory_share: float
    compute_share: float
    bound: str | None
    measured_bound: str | None

    @property
    def ratio(self) -> float:
        """Measured ÷ model, in time."""
        return self.measured.time / self.model_time

    @property
    def same_side(self) -> bool | None:
        """Whether counters and ledger lie on one side of the ridge; at the ridge they touch both. None without them."""
        if self.measured_bound is None:
            return None
        return {self.bound, self.measured_bound} != {BOUNDS[MEMORY], BOUNDS[COMPUTE]}

    @property
    def shares(self) -> tuple[float, float]:
        """(memory, compute) of peak by the counters; without them, by the ledger's bytes and FLOPs."""
        if self.measured.dram_active is None or self.measured.tensor_active is None:
            return self.memory_share, self.compute_share
        return self.measured.dram_active, self.measured.tensor_active

    @property
    def region(self) -> Region:
        """What the two shares suggest; TOO_FAST where the time is impossible, whatever counters say."""
        suggested = region(self.memory_share, self.compute_share)
        return suggested if suggested == TOO_FAST else region(*self.shares)

    @property
    def agrees(self) -> bool:
        """Within a factor of AGREEMENT, possible, and not on the other side of the ridge."""
        near = 1 / AGREEMENT <= self.ratio <= AGREEMENT
        return near and self.region != TOO_FAST and self.same_side is not False


def compare(measured: Measurement) -> Compared:
    """The Compared of a measurement, by the ledger at exactly its point."""
    point, gpu = measured.point, measured.gpu
    costs = cost(forward_pass(measured.model, point), gpu, point.tokens)
    roof = roof_of(gpu, point.weights)
    counted = None
    if measured.dram_active and measured.tensor_active is not None:
        # the counters' own intensity: FLOPs a byte at the quoted peaks
        intensity = measured.tensor_active * roof.peak / (measured.dram_active * roof.bandwidth)
        counted = BOUNDS[int(bound_of(intensity, 1, roof.ridge))]
    return Compared(
        measured,
        float(costs.total_time),
        float(costs.total_bytes) / measured.time / roof.bandwidth,
        float(costs.total_flops) / measured.time / roof.peak,
        BOUNDS[int(bound_of(costs.total_intensity, costs.total_bytes, roof.ridge))],
        counted,
    )


def read_measurements(
    text: str, path: str, model: Model, models: Mapping[str, Model], gpus: Mapping[str, Gpu], defaults: Point
) -> list[Measurement]:
    """The measured passes of a CSV file, in its order.

    model: the one that is meant where a row names none. Raises LessonErrors with everything that is wrong in `path`,
    each at its line and column.
    """
    sheet = read_sheet(text, path)
    columns = {_SHORT.get(cell.text.lower(), cell.text.lower()): cell.text for cell in sheet.columns}
    _check_columns(sheet, columns)
    found = []
    for cells in sheet.rows:
        row = _Row(sheet, {name: cells[said] for name, said in columns.items()})
        found.append(row.measurement(model, models, gpus, defaults))
    sheet.finish()
    return [measurement for measurement in found if measurement is not None]


def _check_columns(sheet: Sheet, columns: Mapping[str, str]) -> None:
    """Raise LessonErrors where columns are unknown, stand twice, or are missing: no row can be read then."""
    seen: set[str] = set()
    before = len(sheet.errors)
    for cell in sheet.columns:
        name = _SHORT.get(cell.text.lower(), cell.text.lower())
        if name in seen:
            sheet.wrong(f"the column {brief(cell.text)} stands twice", cell, "keep one of the two")
        elif name not in COLUMNS:
            known = did_you_mean(name[:60], COLUMNS, cutoff=0.7)
            sheet.wrong(f"unknown column {brief(cell.text)}", cell, known or f"known: {', '.join(COLUMNS)}")
        seen.add(name)
    if not {RATE, MILLISECONDS} & set(columns):
        hint = f"add one of '{MILLISECONDS}' and '{RATE}'"
        sheet.wrong("there is no column with what was measured", sheet.columns[0], hint)
    require(sheet, [name for name in REQUIRED if name not in columns], _EXAMPLE)
    if len(sheet.errors) > before:
        sheet.finish()


class _Row:
    """One row while it is read: its cells by column, and a note of each that is wrong."""

    def __init__(self, sheet: Sheet, cells: Mapping[str, Cell]) -> None:
        self.sheet = sheet
        self.cells = cells
        self.before = len(sheet.errors)

    def text(self, column: str) -> str:
        """What stands in a column; empty where there is none."""
        return self.cells[column].text.strip() if column in self.cells else ""

    def measurement(
        self, model: Model, models: Mapping[str, Model], gpus: Mapping[str, Gpu], defaults: Point
    ) -> Measurement | None:
        """The Measurement of this row, None where something is wrong with it."""
        point = self.point(gpus, defaults)
        named = self.text("model")
        if named:
            known = next((name for name in models if name.lower() == named.lower()), None)
            if known is None:
                hint = did_you_mean(named[:60], models) or "name one of content/models, or use --model config.json"
                self.sheet.wrong(f"model {brief(named)} is not in content/models", self.cells["model"], hint)
            else:
                model = models[known]
        time = self.time()
        dram, tensor = (self.fraction(column) for column in COUNTERS)
        if (dram is None) != (tensor is None) and len(self.sheet.errors) == self.before:
            here = self.cells[COUNTERS[0] if tensor is None else COUNTERS[1]]
            self.sheet.wrong("one counter without the other", here, f"give both of {' and '.join(COUNTERS)}, or none")
        if len(self.sheet.errors) > self.before:
            return None
        assert point is not None
        assert time is not None
        time = time if self.text(MILLISECONDS) else point.tokens / time
        gpu = gpus[point.gpu]
        line = self.cells["phase"].line
        return Measurement(line, clean(self.text("name")), model, gpu, point, time, dram, tensor)

    def point(self, gpus: Mapping[str, Gpu], defaults: Point) -> Point | None:
        """The point of this row: each coordinate by itself, then all of them together."""
        known: dict[str, Any] = {axis: self.coordinate(axis, gpus, defaults) for axis in AXES}
        if len(self.sheet.errors) > self.before:
            return None
        point = replace(defaults, **known)
        try:
            point.check()
        except LessonError as problem:
            # what each is by itself is right: only decode without a context is left
            self.sheet.wrong(problem.message, self.cells["context"], "a context of 1 or more, or phase prefill")
        try:
            roof_of(gpus[point.gpu], point.weights)
        except LessonError as problem:
            self.sheet.wrong(problem.message, self.cells["weights"], problem.hint)
        return point

    def coordinate(self, axis: str, gpus: Mapping[str, Gpu], defaults: Point) -> str | int:
        """One coordinate. What is wrong with it is noted, and the default stands in for it."""
        default: str | int = getattr(defaults, axis)
        said = self.text(axis)
        if not said:
            if axis in REQUIRED:
                self.sheet.wrong(f"{axis} is empty", self.cells[axis], f"such as {default}")
            return default
        value: str | int = said.lower()
        if axis == "gpu":
            if value not in gpus:
                hint = did_you_mean(said.lower()[:60], gpus) or "name a file of content/gpus"
                self.sheet.wrong(f"gpu {brief(said)} is not in content/gpus", self.cells[axis], hint)
                return default
            return value
        try:
            if axis in ("tokens", "context"):
                value = parse_position(said)
            # a prefill has none of the coordinates that rule each other out
            alone: dict[str, Any] = {"phase": "prefill", axis: value}
            replace(defaults, **alone).check()
        except ValueError:
            hint = "a whole number, such as 4096 or 8k (8,192)"
            self.sheet.wrong(f"{axis} is no number of tokens: {brief(said)}", self.cells[axis], hint)
            return default
        except LessonError as problem:
            self.sheet.wrong(problem.message, self.cells[axis], problem.hint)
            return default
        return value

    def time(self) -> float | None:
        """Seconds, or tokens a second where those were measured; None where neither is right."""
        said = [column for column in (MILLISECONDS, RATE) if self.text(column)]
        if len(said) != 1:
            here = self.cells.get(RATE) or self.cells[MILLISECONDS]
            what = "both milliseconds and tokens per second" if said else "nothing was measured"
            hint = "one follows from the other: leave one empty" if said else f"{MILLISECONDS} of a pass, or {RATE}"
            self.sheet.wrong(what, here, hint)
            return None
        (column,) = said
        value = self.positive(column)
        return value if value is None or column == RATE else value / 1e3

    def fraction(self, column: str) -> float | None:
        """A counter, from 0 to 1; None where there is none."""
        if not self.text(column):
            return None
        value = self.number(column)
        if value is not None and not 0 <= value <= 1:
            hint = f"a fraction: {value / 100:g}" if 1 < value <= 100 else "DCGM's counters are fractions"
            self.sheet.wrong(f"{column} must be from 0 to 1, not {self.text(column)[:20]}", self.cells[column], hint)
        return value

    def positive(self, column: str) -> float | None:
        """A number above 0; None where it is none."""
        value = self.number(column)
        if value is not None and not _LEAST <= value <= _MOST:
            least = "above 0" if value <= 0 else f"from {_LEAST:g} to {_MOST:g}"
            message = f"{column} must be {least}, not {self.text(column)[:20]}"
            self.sheet.wrong(message, self.cells[column], "as it was measured")
            return None
        return value

    def number(self, column: str) -> float | None:
        """The number in a column; None where it is none."""
        try:
            return number(self.text(column))
        except ValueError as problem:
            self.sheet.wrong(f"{column} is no number: {brief(self.text(column))}", self.cells[column], str(problem))
            return None


# Kernels of a Nsight Compute export


@dataclass(frozen=True)
class Placed:
    """A kernel on the two planes; None is what the export doesn't say.

    share: of the time of all kernels. arithmetic_intensity in FLOP/byte, achieved_flops and attainable_flops in FLOP/s.
    """

    profile: Profile
    share: float | None
    arithmetic_intensity: float | None
    achieved_flops: float | None
    attainable_flops: float | None
    bound: str | None

    @property
    def region(self) -> Region | None:
        """What its two counters suggest."""
        if self.profile.memory is None or self.profile.compute is None:
            return None
        # counters of Nsight are of sustained peaks and may pass them by a hair
        found = region(min(self.profile.memory, ALL), min(self.profile.compute, ALL))
        return replace(found, advice=ALONE) if found == region(0, 0) else found

    @property
    def roof_share(self) -> float | None:
        """Of what its intensity allows, the part that it reached."""
        if not self.achieved_flops or not self.attainable_flops:
            return None
        return self.achieved_flops / self.attainable_flops


def gpu_of(export: Export, gpus: Mapping[str, Gpu]) -> Gpu | None:
    """The GPU of the lesson that an export names as its device; None where it names none of them."""
    for device in {kernel.device for kernel in export.kernels if kernel.device}:
        for gpu in gpus.values():
            if gpu.label.lower() in device.lower().replace("-", " ").split():
                return gpu
    return None


def place(export: Export, gpu: Gpu) -> list[Placed]:
    """The kernels of an export under the roof of a GPU, in their order.

    A kernel whose tensor operations read FP8 stands under the FP8 roof where the GPU has one.
    """
    times = [kernel.time for kernel in export.kernels]
    whole = math.fsum(time for time in times if time is not None)
    found = []
    for kernel in export.kernels:
        intensity = achieved = attainable = bound = None
        if kernel.flops is not None and kernel.time:
            achieved = kernel.flops / kernel.time
        if kernel.flops is not None and kernel.bytes_moved:
            peak = gpu.peak("fp8" if kernel.math == "fp8" and gpu.fp8 else "bf16")
            intensity = kernel.flops / kernel.bytes_moved
            attainable = min(peak, intensity * gpu.hbm_bandwidth)
            bound = BOUNDS[int(bound_of(intensity, kernel.bytes_moved, peak / gpu.hbm_bandwidth))]
        share = None if kernel.time is None else float(ratio(kernel.time, whole))
        found.append(Placed(kernel, share, intensity, achieved, attainable, bound))
    return found
