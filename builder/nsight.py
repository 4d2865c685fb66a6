"""An export of Nsight Compute as CSV → the kernels in it: their two counters, time, FLOPs and bytes.

Two forms are read. `ncu --csv --page raw` has a row a kernel, and a second header row with the units. `--page details`,
and what `--metrics` prints, has a row a metric. Lines of the profiler and of the program before the header are skipped.
Source of the names and units: the Nsight Compute guides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from builder.errors import LessonError, LessonErrors
from builder.sheets import Cell, Sheet, brief, clean, lines_of, number, read_sheet, require

MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
COMPUTE = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
TIME = "gpu__time_duration.sum"
DRAM, DRAM_PARTS = "dram__bytes.sum", ("dram__bytes_read.sum", "dram__bytes_write.sum")
DEVICE = "device__attribute_display_name"

# what the details page calls them, in this year's words and in older ones
_LABELS = {
    "Memory Throughput": MEMORY,
    "Memory [%]": MEMORY,
    "SOL Memory": MEMORY,
    "Compute (SM) Throughput": COMPUTE,
    "Compute (SM) [%]": COMPUTE,
    "SM [%]": COMPUTE,
    "SOL SM": COMPUTE,
    "Duration": TIME,
}

# FLOPs of an instruction by the kernel's threads; those of half precision work on pairs, and Nsight counts them so too
_PER_INSTRUCTION = {
    f"{kind}{op}": weight * (2 if kind == "h" else 1)
    for kind in "hfd"
    for op, weight in (("add", 1), ("mul", 1), ("fma", 2))
}
_INSTRUCTIONS = re.compile(r"sm(?:sp)?__sass_thread_inst_executed_op_([hfd](?:add|mul|fma))_pred_on\.sum")
_TENSOR = re.compile(r"sm__ops_path_tensor_src_((?:fp|bf|tf)\w+)\.sum")  # those of integers are no FLOPs
_PART = re.compile(r"_dst_\w+|_sparsity_(?:on|off)")

_TIME_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_TIME_UNITS |= {f"{prefix}second": _TIME_UNITS[f"{prefix}s"] for prefix in ("n", "u", "m", "")}
_PREFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BYTE_UNITS = {f"{prefix}byte": size for prefix, size in _PREFIXES.items()}
_COUNT_UNITS = {f"{prefix}{unit}": size for prefix, size in _PREFIXES.items() for unit in ("inst", "op", "ops", "")}
_PERCENT = {"%": 0.01}
_LEAST, _MOST = 1e-9, 1e21  # of a metric in its unit that isn't 0: beyond them is no measurement
_ABSENT = {"", "n/a", "nan", "-"}

HOW = "ncu --csv --page raw"


@dataclass(frozen=True)
class Profile:
    """One launch of a kernel as it was profiled; None is what the export doesn't hold.

    memory, compute: fractions of peak. time in seconds, bytes_moved to and from DRAM; math: fp8 where its tensor
    operations read FP8. device: the name of the GPU.
    """

    id: str
    name: str
    line: int
    memory: float | None = None
    compute: float | None = None
    time: float | None = None
    flops: float | None = None
    bytes_moved: float | None = None
    math: str = "bf16"
    device: str | None = None


@dataclass(frozen=True)
class Export:
    """The kernels of an export, in its order, and whether FLOPs of tensor cores and of other units were counted."""

    kernels: tuple[Profile, ...]
    tensor: bool
    instructions: bool


def short_name(name: str) -> str:
    """A kernel's own name: without return type, namespaces, template arguments and parameters."""
    bare = re.sub(r"\(anonymous namespace\)::|<unnamed>::|^void ", "", name)
    return re.split(r"[<(]", bare, maxsplit=1)[0].rpartition("::")[2].strip() or name


def _header_line(text: str) -> int | None:
    """How many lines stand before the header of an export; None where there is none."""
    for index, line in enumerate(lines_of(text)):
        cells = [cell.strip(' "\n\ufeff') for cell in re.split("[,;\t]", line)]
        if "Kernel Name" in cells or "Metric Name" in cells:
            return index
    return None


def is_export(text: str) -> bool:
    """Whether a text looks like an export of Nsight Compute, whatever may be wrong with it."""
    return _header_line(text) is not None or text.lstrip().startswith("==PROF==")


def read_export(text: str, path: str) -> Export:
    """The Export in a text. Raises LessonErrors with everything that is wrong, each at its place in `path`."""
    before = _header_line(text)
    if before is None:
        hint = f"was the profiler allowed to read the counters? Export with {HOW}"
        raise LessonErrors([LessonError("there is no kernel in this export", path=path, hint=hint)])
    # the lines before stay as empty ones, so that places are right
    sheet = read_sheet("\n" * before + "".join(lines_of(text)[before:]), path, skip="==")
    names = {cell.text for cell in sheet.columns}
    launches = _of_metrics(sheet) if "Metric Name" in names else _of_columns(sheet)
    kernels = [_profile(sheet, launch) for launch in launches]
    if not sheet.errors and not any(kernel.memory is not None and kernel.compute is not None for kernel in kernels):
        sheet.wrong(
            "no kernel has both counters, Memory Throughput and Compute (SM) Throughput",
            sheet.columns[0],
            f"collect the section SpeedOfLight, or --metrics {MEMORY},{COMPUTE}",
        )
    sheet.finish()
    counted = {name for launch in launches for name in launch.metrics}
    return Export(
        tuple(kernels),
        any(map(_TENSOR.fullmatch, counted)),
        any(map(_INSTRUCTIONS.fullmatch, counted)),
    )


@dataclass
class _Launch:
    """One launch as the export has it: where it begins, and its metrics with their units."""

    id: str
    name: str
    at: Cell
    metrics: dict[str, tuple[Cell, str]]


def _wanted(name: str) -> bool:
    known = (MEMORY, COMPUTE, TIME, DRAM, *DRAM_PARTS, DEVICE)
    return name in known or bool(_TENSOR.fullmatch(name) or _INSTRUCTIONS.fullmatch(name))


def _of_columns(sheet: Sheet) -> list[_Launch]:
    """A row a kernel, below a row of units."""
    require(sheet, ("ID", "Kernel Name"), f"export with {HOW}")
    units, *rows = sheet.rows or [{}]
    if units and units["ID"].text.strip():
        sheet.wrong("the row of units is missing", units["ID"], f"keep the second line of {HOW}")
        return []
    if not rows:
        sheet.wrong("there is no kernel in this export", sheet.columns[0], "was one launched, and not filtered out?")
    names = [cell.text for cell in sheet.columns if _wanted(cell.text)]
    return [
        _Launch(
            row["ID"].text.strip(),
            row["Kernel Name"].text,
            row["Kernel Name"],
            {name: (row[name], units[name].text.strip()) for name in names},
        )
        for row in rows
    ]


def _of_metrics(sheet: Sheet) -> list[_Launch]:
    """A row a metric; rows of rules have none."""
    names = {cell.text for cell in sheet.columns}
    summary = "Average" in names and "Metric Value" not in names
    hint = "export without --print-summary: one kernel at a time" if summary else "export with ncu --csv --page details"
    require(sheet, ("ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value"), hint)
    launches: dict[tuple[str, str], _Launch] = {}
    for row in sheet.rows:
        label, unit = row["Metric Name"].text.strip(), row["Metric Unit"].text.strip()
        id_, kernel = row["ID"].text.strip(), row["Kernel Name"].text
        process = row["Process ID"].text if "Process ID" in row else ""
        launch = launches.setdefault((process, id_), _Launch(id_, kernel, row["Kernel Name"], {}))
        if launch.name != kernel:
            sheet.wrong(f"ID {brief(id_)} was another kernel above", row["Kernel Name"], "one export a file")
        name = _LABELS.get(label, label)
        # the details page has a second Memory Throughput, in bytes a second
        if _wanted(name) and not (label == "Memory Throughput" and unit not in ("%", "")):
            launch.metrics.setdefault(name, (row["Metric Value"], unit))
    return list(launches.values())


def _value(sheet: Sheet, launch: _Launch, name: str, units: Mapping[str, float]) -> float | None:
    """A metric in SI; None where it isn't there. What is wrong with it is noted."""
    cell, unit = launch.metrics.get(name, (None, ""))
    if cell is None or cell.text.strip().lower() in _ABSENT:
        return None
    try:
        value = number(cell.text)
    except ValueError as problem:
        hint = f"{problem}; export with LC_ALL=C" if "point" in str(problem) else str(problem)
        sheet.wrong(f"{name} is no number: {brief(cell.text)}", cell, hint)
        return None
    if unit not in units:
        known = ", ".join(unit for unit in list(units)[:5] if unit)
        sheet.wrong(f"{name} has the unit {brief(unit)}", cell, f"known: {known}")
        return None
    if value < 0:
        sheet.wrong(f"{name} is below 0: {brief(cell.text)}", cell, "export it again: a counter only counts up")
        return None
    if value and not _LEAST <= value < _MOST:
        message = f"{name} must be 0, or from {_LEAST:g} to {_MOST:g}: {brief(cell.text)}"
        sheet.wrong(message, cell, "export it again")
        return None
    return value * units[unit]


def _whole_metrics(names: Iterable[str]) -> list[str]:
    """Tensor metrics without those that are a part of another one: by destination, or with and without sparsity."""
    stems = {match[1]: name for name in names if (match := _TENSOR.fullmatch(name))}
    return [
        name
        for stem, name in stems.items()
        if not any(stem != other and stem.startswith(other) and _PART.match(stem, len(other)) for other in stems)
    ]


def _flops(sheet: Sheet, launch: _Launch) -> tuple[float | None, str]:
    """(FLOPs, arithmetic) of a launch: its tensor operations, and its instructions by their weights.

    An instruction counted by SM and by its partitions is counted once.
    """
    parts: dict[str, float | None] = {}
    math = "bf16"
    for name in _whole_metrics(launch.metrics):
        parts[name] = _value(sheet, launch, name, _COUNT_UNITS)
        if parts[name] and name.startswith("sm__ops_path_tensor_src_fp8"):
            math = "fp8"
    for name in launch.metrics:
        if match := _INSTRUCTIONS.fullmatch(name):
            count = _value(sheet, launch, name, _COUNT_UNITS)
            if count is not None:
                parts[match[1]] = count * _PER_INSTRUCTION[match[1]]
    known = [part for part in parts.values() if part is not None]
    return (sum(known) if known else None), math


def _profile(sheet: Sheet, launch: _Launch) -> Profile:
    if not launch.name.strip():
        sheet.wrong("the kernel has no name", launch.at, f"export with {HOW}")
    time = _value(sheet, launch, TIME, _TIME_UNITS)
    if time == 0:
        sheet.wrong("the kernel took no time", launch.metrics[TIME][0], "export it again")
    whole = _value(sheet, launch, DRAM, _BYTE_UNITS)
    read, written = (_value(sheet, launch, part, _BYTE_UNITS) for part in DRAM_PARTS)
    if whole is None and read is not None and written is not None:
        whole = read + written
    flops, math = _flops(sheet, launch)
    device = launch.metrics[DEVICE][0].text.strip() if DEVICE in launch.metrics else ""
    return Profile(
        launch.id,
        clean(launch.name),
        launch.at.line,
        _value(sheet, launch, MEMORY, _PERCENT),
        _value(sheet, launch, COMPUTE, _PERCENT),
        time,
        flops,
        whole,
        math,
        device or None,
    )
