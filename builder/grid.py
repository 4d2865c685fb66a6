"""content/grid.toml → the axes of the bench, the default point, and the budgets."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from builder.catalog import Gpu, Model, load_gpus, load_models, read_toml
from builder.errors import did_you_mean
from builder.ledger import ATTENTIONS, MOST_TOKENS, PHASES, Point
from builder.units import KV_DTYPES, WEIGHT_DTYPES

GRID_FILE = "content/grid.toml"
AXES = ("phase", "tokens", "context", "gpu", "weights", "kv", "attention")
SHARD_AXES = ("gpu", "weights", "kv", "attention")  # one file for each combination
POSITION_AXES = ("phase", "context", "tokens")  # the axes of the arrays in it, in this order
BUDGETS = ("shard", "before_the_bench_answers")


@dataclass(frozen=True)
class Grid:
    """The positions of the bench. axes: name → its values in the order of the controls; budget: gzip bytes by name."""

    model: Model
    gpus: Mapping[str, Gpu]
    axes: Mapping[str, tuple[Any, ...]]
    defaults: Point
    budget: Mapping[str, int]

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """Lengths of POSITION_AXES."""
        phase, context, tokens = (len(self.axes[axis]) for axis in POSITION_AXES)
        return phase, context, tokens

    def shard_points(self) -> Iterator[Point]:
        """The default point moved to every combination of SHARD_AXES."""
        for choice in itertools.product(*(self.axes[axis] for axis in SHARD_AXES)):
            yield replace(self.defaults, **dict(zip(SHARD_AXES, choice, strict=True)))

    def exists(self, point: Point) -> bool:
        """Whether this position of the axes is a point: decode has none without context."""
        return point.phase != "decode" or point.context > 0

    @property
    def count(self) -> int:
        """How many points the grid has."""
        empty = sum(1 for context in self.axes["context"] if context == 0) if "decode" in self.axes["phase"] else 0
        phases, contexts, tokens = self.shape
        each = (phases * contexts - empty) * tokens
        return each * sum(1 for _ in self.shard_points())


def _axis_problem(axis: str, value: Any, known: Sequence[str]) -> str | None:
    if axis in ("tokens", "context"):
        least = 1 if axis == "tokens" else 0
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST_TOKENS:
            return f"must be a whole number from {least} to {MOST_TOKENS:,}, not {json.dumps(value, default=str)[:40]}"
    elif not isinstance(value, str) or value not in known:
        return f"is none of its values: {json.dumps(value, default=str)[:40]}"
    return None


def load_grid(root: Path) -> Grid:
    """The Grid of root/content: grid.toml with the models and GPUs that it names.

    Raises LessonErrors with everything that is wrong in grid.toml, or in the data files.
    """
    models, gpus = load_models(root), load_gpus(root)
    file = read_toml(root / GRID_FILE, GRID_FILE)
    data = file.data
    for key in data:
        if key not in ("model", "defaults", "axes", "budget"):
            hint = did_you_mean(key, ("model", "defaults", "axes", "budget"))
            file.wrong(f"unknown key '{key}'", key, hint=hint)
    name = data.get("model")
    if name not in models:
        hint = did_you_mean(str(name), models)
        file.wrong(f"model {json.dumps(name, default=str)[:60]} is not in content/models", "model", hint=hint)
    known: dict[str, Sequence[str]] = {
        "phase": PHASES,
        "gpu": tuple(gpus),
        "weights": WEIGHT_DTYPES,
        "kv": KV_DTYPES,
        "attention": ATTENTIONS,
        "tokens": (),
        "context": (),
    }
    tables = {key: data.get(key) for key in ("axes", "defaults", "budget")}
    for key, table in tables.items():
        if not isinstance(table, dict):
            file.wrong(f"the table [{key}] is missing", key)
            tables[key] = {}
    axes, defaults, budget = (dict(tables[key] or {}) for key in ("axes", "defaults", "budget"))
    for table_name, table, names in (("axes", axes, AXES), ("defaults", defaults, AXES), ("budget", budget, BUDGETS)):
        for key in table:
            if key not in names:
                file.wrong(f"unknown key '{table_name}.{key}'", table_name, key, hint=did_you_mean(key, names))
        for key in names:
            if key not in table:
                file.wrong(f"'{table_name}.{key}' is missing", table_name)
    for axis in AXES:
        _check_axis(file, axis, axes.get(axis), defaults.get(axis), known[axis])
    for key in BUDGETS:
        size = budget.get(key, 1)
        if isinstance(size, bool) or not isinstance(size, int) or size <= 0:
            file.wrong(f"'budget.{key}' must be a positive number of bytes", "budget", key)
    file.finish()
    grid = Grid(
        model=models[str(name)],
        gpus={gpu: gpus[gpu] for gpu in axes["gpu"]},
        axes={axis: tuple(axes[axis]) for axis in AXES},
        defaults=Point(**{axis: defaults[axis] for axis in AXES}),
        budget=budget,
    )
    if not grid.exists(grid.defaults):
        file.wrong("the default point is a decode without context", "defaults", "context", hint="128 or more")
    if "decode" in axes["phase"] and not any(axes["context"]):
        file.wrong("decode needs a context above 0 on the axis", "axes", "context")
    file.finish()
    return grid


def _check_axis(file: Any, axis: str, values: Any, default: Any, known: Sequence[str]) -> None:
    """Note what is wrong with one axis and with the default on it."""
    if values is None or default is None:
        return  # said already
    if not isinstance(values, list) or not values:
        file.wrong(f"'axes.{axis}' must be a list of positions", "axes", axis)
        return
    for value in values:
        problem = _axis_problem(axis, value, known)
        if problem:
            hint = did_you_mean(value, known) if isinstance(value, str) else None
            file.wrong(f"'axes.{axis}' {problem}", "axes", axis, hint=hint)
            return
    if len(set(values)) != len(values):
        file.wrong(f"'axes.{axis}' has a position twice", "axes", axis)
    if axis in ("tokens", "context") and values != sorted(values):
        file.wrong(f"'axes.{axis}' must rise, so that a slider does", "axes", axis)
    if default not in values:
        hint = did_you_mean(str(default), [str(value) for value in values])
        file.wrong(f"the default {axis} {default} is not a position of its axis", "defaults", axis, hint=hint)
