"""content/measured.toml and content/history.toml: numbers from outside that the lesson holds beside the ledger's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.catalog import read_toml
from builder.errors import LessonError, did_you_mean
from builder.grid import Grid
from builder.ledger import Point

MEASURED_FILE = "content/measured.toml"
HISTORY_FILE = "content/history.toml"

PARTS = ("linear", "attention", "lm_head")  # of a measured step; linear is the group `matmuls` of the ledger

_SETUP = {"source": str, "model": str, "weights": str, "kv": str, "attention": str}
_STEP = {"gpu": str, "engine": str, "tokens": int, "context": int} | {f"{part}_ms": float for part in PARTS}
_PAST = {"label": str, "year": int, "peak_flops": float, "hbm_bandwidth": float, "source": str}
_SAID = ("disagreement",)  # beside a source; provenance.py demands it
_EXAMPLES: Mapping[type, str] = {str: 'a text in quotes, such as "h100"', int: "a whole number", float: "a number"}


@dataclass(frozen=True)
class Step:
    """One measured decode step: its point, the engine, and the seconds of each of PARTS."""

    point: Point
    engine: str
    time: Mapping[str, float]

    @property
    def total(self) -> float:
        """Seconds of all parts."""
        return sum(self.time.values())


@dataclass(frozen=True)
class PastGpu:
    """A GPU of which only the ridge is shown: dense peak in FLOP/s, bandwidth in byte/s, id of the source, and where
    sources are known to disagree.
    """

    id: str
    label: str
    year: int
    peak_flops: float
    hbm_bandwidth: float
    source: str
    disagreement: str | None = None

    @property
    def ridge_point(self) -> float:
        """FLOP/byte at which slope and roof meet."""
        return self.peak_flops / self.hbm_bandwidth


def load_measured(root: Path, grid: Grid) -> list[Step]:
    """The steps of root/content/measured.toml, in its order. Raises LessonErrors with everything that is wrong."""
    file = read_toml(root / MEASURED_FILE, MEASURED_FILE)
    setup = {key: value for key, value in file.data.items() if key != "steps"}
    _check(file, setup, _SETUP)
    if setup.get("model") not in (None, grid.model.name):
        hint = "measurements of another model would be held against the wrong ledger"
        file.wrong(f"measured with {setup['model']}, but the lesson is about {grid.model.name}", "model", hint=hint)
    for name, table in _tables(file, "steps").items():
        _check(file, table, _STEP, "steps", name)
        gpu = table.get("gpu")
        if isinstance(gpu, str) and gpu not in grid.gpus:
            file.wrong(f"no gpu '{gpu}' in the lesson", "steps", name, "gpu", hint=did_you_mean(gpu, tuple(grid.gpus)))
    file.finish()
    dtypes = {key: setup[key] for key in ("weights", "kv", "attention")}
    steps = []
    for name, table in file.data["steps"].items():
        point = Point("decode", table["tokens"], table["context"], table["gpu"], **dtypes)
        try:
            point.check()
        except LessonError as problem:
            file.wrong(problem.message, "steps", name, hint=problem.hint or "as it was measured")
        steps.append(Step(point, table["engine"], {part: table[f"{part}_ms"] / 1e3 for part in PARTS}))
    file.finish()
    return steps


def load_history(root: Path) -> list[PastGpu]:
    """The GPUs of root/content/history.toml, in its order. Raises LessonErrors with everything that is wrong."""
    file = read_toml(root / HISTORY_FILE, HISTORY_FILE)
    for key in file.data:
        if key != "gpus":
            file.wrong(f"unknown key '{key[:60]}'", key, hint=did_you_mean(key[:60], ("gpus",)))
    tables = _tables(file, "gpus")
    for name, table in tables.items():
        _check(file, table, _PAST, "gpus", name)
        year = table.get("year")
        if isinstance(year, int) and not isinstance(year, bool) and not 2000 <= year <= 2100:
            hint = "the year it was announced, such as 2017"
            file.wrong("'year' must be from 2000 to 2100", "gpus", name, "year", hint=hint)
    file.finish()
    return [PastGpu(name, **table) for name, table in tables.items()]


def _tables(file: Any, key: str) -> dict[str, dict[str, Any]]:
    """The tables [key.NAME] of a file; what is none is noted and left out."""
    found = file.data.get(key)
    if not isinstance(found, dict) or not found:
        file.wrong(f"there is no table [{key}.…]", key, hint=f"begin one with a line [{key}.name], its keys below")
        return {}
    for name, table in found.items():
        if not isinstance(table, dict):
            file.wrong(f"'{key}.{name}' must be a table", key, name, hint=f"write [{key}.{name}], its keys below")
    return {name: table for name, table in found.items() if isinstance(table, dict)}


def _check(file: Any, table: Mapping[str, Any], kinds: Mapping[str, type], *where: str) -> None:
    """Note the unknown, the missing and the wrong keys of one table; numbers are above 0."""
    known = (*kinds, *_SAID) if "source" in kinds else tuple(kinds)
    for key in table:
        if key not in known:
            file.wrong(f"unknown key '{key[:60]}'", *where, key, hint=did_you_mean(key[:60], known))
    for key, kind in kinds.items():
        value = table.get(key)
        if value is None:
            file.wrong(f"'{key}' is missing", *where, hint=_EXAMPLES[kind])
        elif kind is str:
            if not isinstance(value, str) or not value.strip():
                file.wrong(f"'{key}' must be a text that is not empty", *where, key, hint=_EXAMPLES[kind])
        elif isinstance(value, bool) or not isinstance(value, int if kind is int else int | float):
            shown = json.dumps(value, default=str)[:40]
            file.wrong(f"'{key}' must be {_EXAMPLES[kind]}, not {shown}", *where, key, hint="without quotes")
        elif not 0 < value < 1e21:  # refuses NaN too
            file.wrong(f"'{key}' must be above 0 and below 1e21", *where, key, hint="as the source has it")
