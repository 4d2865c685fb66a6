"""Where every constant comes from: its source, when that was published or known, and where sources disagree.

Numbers of content/gpus, content/history.toml and content/measured.toml name a source and say what other sources say, or
"none known"; the lesson's model has a source by its name, and content/constants.toml tells of the cost model's own
constants. content/sources.toml has a title, an address and a date for each source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.catalog import Gpu, Model, load_gpus, read_toml
from builder.errors import LessonError, LessonErrors, did_you_mean
from builder.grid import Grid, load_grid
from builder.measured import HISTORY_FILE, MEASURED_FILE, load_history
from builder.roofline import BANDWIDTH_EFFICIENCY, COMPUTE_EFFICIENCY, LAUNCH_FLOOR, USABLE_MEMORY
from builder.units import GIB, MIB, whole

SOURCES_FILE = "content/sources.toml"
CONSTANTS_FILE = "content/constants.toml"
NONE_KNOWN = "none known"  # a disagreement that was looked for

# constants of content/constants.toml whose values stand in the code, as a reader sees them
VALUES = {
    "compute_efficiency": f"{COMPUTE_EFFICIENCY * 100:g}\u00a0%",
    "bandwidth_efficiency": f"{BANDWIDTH_EFFICIENCY * 100:g}\u00a0%",
    "launch_floor": f"{LAUNCH_FLOOR * 1e6:g}\u00a0µs",
    "usable_memory": f"{USABLE_MEMORY * 100:g}\u00a0%",
    "gib": f"{whole(GIB)} bytes",
}


@dataclass(frozen=True)
class Source:
    """Something that a reader can open: title, https addresses, and a date, of its publication or of its address."""

    title: str
    addresses: tuple[str, ...]
    date: str
    disagreement: str | None = None


@dataclass(frozen=True)
class Constant:
    """A number with its provenance. path and keys: where it stands. An empty source or disagreement is a mistake."""

    what: str
    value: str
    source: str
    disagreement: str | None
    path: str
    keys: tuple[str, ...]

    @property
    def disputed(self) -> str:
        """The disagreement as a sentence."""
        said = self.disagreement or ""
        return "No disagreement known." if said == NONE_KNOWN else f"{said[:1].upper()}{said[1:]}."


@dataclass(frozen=True)
class Group:
    """Constants that are told together: of a GPU, of the model, …"""

    title: str
    constants: tuple[Constant, ...]


def model_source(name: str) -> str:
    """The id of a model's source: 'Qwen3-0.6B' → 'model.qwen3_0_6b'."""
    return "model." + re.sub(r"\W+", "_", name.lower())


def _tables(table: Mapping[str, Any], *above: str) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """(('sheet', 'h100'), its table) for every table of sources.toml that has an address."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            if "url" in value:
                yield (*above, key), value
            yield from _tables(value, *above, key)


def read_sources(root: Path) -> tuple[dict[str, Source], list[LessonError]]:
    """The sources of content/sources.toml by id, 'sheet.h100', and what is wrong with them.

    Raises LessonErrors where the file can't be read.
    """
    file = read_toml(root / SOURCES_FILE, SOURCES_FILE)
    known: dict[str, Source] = {}
    for keys, table in _tables(file.data):
        name = ".".join(keys)
        addresses = table["url"] if isinstance(table["url"], list) else [table["url"]]
        if not addresses or not all(isinstance(each, str) and each.startswith("https://") for each in addresses):
            file.wrong(f"'{name}' has no https address", *keys, hint='url = "https://…"')
        title, year, month = table.get("title"), table.get("year"), table.get("known")
        if not isinstance(title, str) or not title.strip():
            file.wrong(f"'{name}' has no title", *keys, hint='title = "H100 data sheet"')
        published = isinstance(year, int) and not isinstance(year, bool) and 1900 <= year <= 2100
        if not published and not (isinstance(month, str) and re.fullmatch(r"\d{4}-\d\d", month)):
            hint = 'year = 2009, of its publication; or known = "2026-11", the month in which its address was known'
            file.wrong(f"'{name}' has no date", *keys, hint=hint)
        said = table.get("disagreement")
        date = str(year) if published else f"as known in {month}"
        known[name] = Source(str(title), tuple(map(str, addresses)), date, said if isinstance(said, str) else None)
    return known, file.errors


def _of_gpu(gpu: Gpu) -> Group:
    """The numbers of a data sheet; an FP8 peak only where there is one."""
    path = f"content/gpus/{gpu.id}.toml"
    numbers = (
        ("peak_flops", "BF16 peak, dense", gpu.bf16, 1e12, "TFLOP/s"),
        ("peak_flops_fp8", "FP8 peak, dense", gpu.fp8, 1e12, "TFLOP/s"),
        ("hbm_bandwidth", "memory bandwidth", gpu.bandwidth, 1e12, "TB/s"),
        ("memory_mib", "memory", gpu.memory, MIB, "MiB"),
    )
    return Group(
        gpu.name,
        tuple(
            Constant(what, f"{_digits(number.value / unit)} {name}", number.source, number.disagreement, path, (key,))
            for key, what, number, unit, name in numbers
            if number
        ),
    )


def _digits(value: float) -> str:
    """As the source has it, not rounded for reading."""
    return f"{value:,.10g}"


def _of_model(model: Model, known: Mapping[str, Source]) -> Group:
    """The dimensions of the lesson's model; its file is the publisher's, so its source says where others disagree."""
    source = model_source(model.name)
    value = (
        f"{model.layers} layers, hidden {whole(model.hidden_size)}, {model.heads} heads and {model.kv_heads} KV heads "
        f"of {model.head_dim}, FFN {whole(model.intermediate_size)}, vocabulary {whole(model.vocab_size)}"
    )
    said = known[source].disagreement if source in known else NONE_KNOWN
    path = SOURCES_FILE if source in known else f"content/models/{model.name}.json"
    return Group(model.name, (Constant("dimensions", value, source, said, path, tuple(source.split("."))),))


def _of_history(root: Path) -> Group:
    constants = [
        Constant(
            f"{gpu.label}: peak and bandwidth",
            f"{_digits(gpu.peak_flops / 1e12)} TFLOP/s, {_digits(gpu.hbm_bandwidth / 1e12)} TB/s",
            gpu.source,
            gpu.disagreement,
            HISTORY_FILE,
            ("gpus", gpu.id),
        )
        for gpu in load_history(root)
    ]
    return Group("The chart of ridges", tuple(constants))


def _of_measured(root: Path) -> Group:
    data = read_toml(root / MEASURED_FILE, MEASURED_FILE).data
    steps = data.get("steps")
    value = f"{len(steps) if isinstance(steps, Mapping) else 0} steps, and what the text says was measured"
    source, said = data.get("source"), data.get("disagreement")
    constant = Constant("decode steps", value, str(source), said, MEASURED_FILE, ("source",))
    return Group("Measurements", (constant,))


def _of_cost_model(root: Path, errors: list[LessonError]) -> Group:
    """The constants of content/constants.toml, those of VALUES among them. Mistakes are added to errors."""
    file = read_toml(root / CONSTANTS_FILE, CONSTANTS_FILE)
    constants = []
    for name, table in file.data.items():
        if not isinstance(table, Mapping):
            file.wrong(f"'{name}' must be a table", name, hint=f"begin it with a line [{name}], its keys below")
            continue
        for key in table:
            if key not in (keys := ("what", "value", "source", "disagreement")):
                file.wrong(f"unknown key '{name}.{key}'", name, key, hint=did_you_mean(key, keys))
        value = VALUES.get(name, table.get("value"))
        if name in VALUES and "value" in table:
            file.wrong(f"the value of '{name}' stands in the code", name, "value", hint="take it out here")
        elif not isinstance(value, str) or not value.strip():
            hint = did_you_mean(name, VALUES) or 'value = "3.0× every two years"'
            file.wrong(f"'{name}' has no value", name, hint=hint)
        what = table.get("what")
        if not isinstance(what, str) or not what.strip():
            file.wrong(
                f"'{name}' doesn't say what it is", name, hint='what = "share of the peak that a kernel reaches"'
            )
        source, said = table.get("source"), table.get("disagreement")
        source = source if isinstance(source, str) else ""
        constants.append(Constant(str(what), str(value), source, said, CONSTANTS_FILE, (name,)))
    for name in VALUES:
        if name not in file.data:
            file.wrong(f"nothing is said of '{name}'", hint=f"begin with a line [{name}]: what, source, disagreement")
    errors += file.errors
    return Group("The cost model", tuple(constants))


def _read(root: Path, grid: Grid, listed: bool) -> tuple[list[Group], dict[str, Source], list[LessonError]]:
    """Everything with a source, the sources, and what is wrong with both. listed: whether the page lists them.

    Raises LessonErrors where a file can't be read.
    """
    known, errors = read_sources(root)
    groups = [_of_gpu(gpu) for gpu in load_gpus(root).values()]
    groups.append(_of_model(grid.model, known))
    # a lesson that shows none of these has none of these files; one that lists its constants tells the cost model's
    if (root / HISTORY_FILE).exists():
        groups.append(_of_history(root))
    if (root / MEASURED_FILE).exists():
        groups.append(_of_measured(root))
    if listed or (root / CONSTANTS_FILE).exists():
        groups.append(_of_cost_model(root, errors))
    for constant in (constant for group in groups for constant in group.constants):
        errors += _problems(root, constant, known)
    return groups, known, errors


def _problems(root: Path, constant: Constant, known: Mapping[str, Source]) -> Iterator[LessonError]:
    """What is wrong with the provenance of one constant."""
    name = constant.keys[-1]
    if not constant.source:
        hint = f'source = "sheet.h100", an id of {SOURCES_FILE}'
        yield _wrong(root, constant, f"'{name}' has no source", hint)
    elif constant.source not in known:
        message = f"'{name}' has the source '{constant.source}', which is not in {SOURCES_FILE}"
        yield _wrong(root, constant, message, did_you_mean(constant.source, known))
    if not isinstance(constant.disagreement, str) or not constant.disagreement.strip():
        yield _wrong(
            root, constant, f"'{name}' doesn't say where sources disagree", 'disagreement = "…", or "none known"'
        )


def _wrong(root: Path, constant: Constant, message: str, hint: str | None) -> LessonError:
    """The error at the line of its file where the constant stands."""
    path = constant.path
    line = None if path.endswith(".json") else read_toml(root / path, path).line_of(*constant.keys, "source")
    return LessonError(message, path=path, line=line, hint=hint)


def provenance(root: Path, grid: Grid) -> tuple[list[Group], dict[str, Source]]:
    """Every constant of the page with its provenance, and the sources by id.

    Raises LessonErrors with every constant that lacks a source, its date, or a word on disagreement.
    """
    groups, known, errors = _read(root, grid, listed=True)
    if errors:
        raise LessonErrors(errors)
    return groups, known


def unsourced(root: Path) -> list[LessonError]:
    """Constants without a source, a date, or a word on disagreement; and sources that no reader could open."""
    try:
        return _read(root, load_grid(root), listed=False)[2]
    except LessonErrors as problems:
        return list(problems.errors)
