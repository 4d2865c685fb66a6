"""content/grid.toml → the axes of the bench, the default point, and the budgets."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from builder.catalog import Gpu, Model, load_gpus, load_models, read_toml
from builder.errors import LessonError, LessonErrors, did_you_mean
from builder.ledger import ATTENTIONS, CHOICES, MOST_TOKENS, Point, storage
from builder.units import DTYPE_LABELS, WEIGHT_DTYPES

GRID_FILE = "content/grid.toml"
AXES = tuple(axis.name for axis in fields(Point))
POSITION_AXES = ("phase", "context", "tokens")  # the axes of the arrays in a shard, in this order
SHARD_AXES = tuple(axis for axis in AXES if axis not in POSITION_AXES)  # one file for each combination
# how a value is shown where that isn't its name, and what follows it in words
TEXTS = {**DTYPE_LABELS, **{name: name.upper() for name in ATTENTIONS}}
NOUNS = {"weights": "weights", "kv": "KV cache"}
BUDGETS = ("shard", "before_the_bench_answers")
_EXAMPLES = {"tokens": "64", "context": "8192", "gpu": '"h100"'}
_EXAMPLES |= {axis: f'"{values[0]}"' for axis, values in CHOICES.items()}


_FIRST_LENGTH, _LONGEST = 2**11, 2**18  # of the arrays of integers()


def integers(least: int, most: int) -> Iterator[Any]:
    """All integers from `least` to `most`, in arrays: a short one first, for what is soon found.

    The others are longer, but never so long that memory wouldn't hold what is computed of them.
    """
    length = _FIRST_LENGTH
    while least <= most:
        yield np.arange(least, min(least + length, most + 1), dtype=np.int64)
        least, length = least + length, min(4 * length, _LONGEST)


@dataclass(frozen=True)
class Refusal:
    """A value of an axis that a value of another one rules out: why, and where the bench goes instead."""

    axis: str
    value: str
    at: Mapping[str, str]
    instead: str
    reason: str


@dataclass(frozen=True)
class Grid:
    """The positions of the bench. axes: name → its values in the order of the controls; budget: gzip bytes by name;
    passes: the points at which the lesson tells the size of an assumption.
    """

    model: Model
    gpus: Mapping[str, Gpu]
    axes: Mapping[str, tuple[Any, ...]]
    defaults: Point
    budget: Mapping[str, int]
    passes: Mapping[str, Point] = field(default_factory=dict)

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """Lengths of POSITION_AXES."""
        phase, context, tokens = (len(self.axes[axis]) for axis in POSITION_AXES)
        return phase, context, tokens

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Value of an axis → how it is shown, where that isn't its name: 'h100' → 'H100'."""
        return {**TEXTS, **{gpu.id: gpu.label for gpu in self.gpus.values()}}

    @cached_property
    def refusals(self) -> tuple[Refusal, ...]:
        """The weights that a GPU of the axes can't compute with, and what to take there instead."""
        found = []
        for gpu in (self.gpus[name] for name in self.axes["gpu"]):
            able = [weights for weights in self.axes["weights"] if _computes(gpu, weights)]
            # fp8 reads as many bytes as w8a8 does
            instead = next(weights for weights in ("fp8", self.defaults.weights, *able) if weights in able)
            reason = f"{gpu.label} has no FP8 tensor cores"
            found += [
                Refusal("weights", weights, {"gpu": gpu.id}, instead, reason)
                for weights in self.axes["weights"]
                if weights not in able
            ]
        return tuple(found)

    def shard_points(self) -> Iterator[Point]:
        """The default point moved to every combination of SHARD_AXES that its GPU can compute."""
        for choice in itertools.product(*(self.axes[axis] for axis in SHARD_AXES)):
            point = replace(self.defaults, **dict(zip(SHARD_AXES, choice, strict=True)))
            if _computes(self.gpus[point.gpu], point.weights):
                yield point

    def exists(self, point: Point) -> bool:
        """Whether this position of the axes is a point: decode has none without context, w8a8 none without FP8."""
        return (point.phase != "decode" or point.context > 0) and _computes(self.gpus[point.gpu], point.weights)

    @property
    def count(self) -> int:
        """How many points the grid has."""
        empty = sum(1 for context in self.axes["context"] if context == 0) if "decode" in self.axes["phase"] else 0
        phases, contexts, tokens = self.shape
        each = (phases * contexts - empty) * tokens
        return each * sum(1 for _ in self.shard_points())


def in_words(point: Point) -> list[str]:
    """What is chosen beside the GPU, as people read it: 'BF16 weights', 'BF16 KV cache', 'GQA'."""
    chosen = {axis: getattr(point, axis) for axis in SHARD_AXES if axis != "gpu"}
    return [f"{TEXTS.get(value, value)} {NOUNS.get(axis, '')}".rstrip() for axis, value in chosen.items()]


def _computes(gpu: Gpu, weights: str) -> bool:
    """Whether a GPU has the arithmetic that these weights ask for."""
    return storage(weights).math == "bf16" or gpu.fp8 is not None


def _brief(value: Any) -> str:
    return json.dumps(value, default=str)[:40]


def _axis_problem(axis: str, value: Any, known: Sequence[str]) -> str | None:
    if axis in ("tokens", "context"):
        least = 1 if axis == "tokens" else 0
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST_TOKENS:
            return f"must be a whole number from {least} to {MOST_TOKENS:,}, not {_brief(value)}"
    elif not isinstance(value, str) or value not in known:
        return f"is none of its values: {_brief(value)}"
    return None


def _data_files(root: Path) -> tuple[dict[str, Model], dict[str, Gpu], list[LessonError]]:
    """The models, the GPUs, and what is wrong in their files."""
    models: dict[str, Model] = {}
    gpus: dict[str, Gpu] = {}
    errors: list[LessonError] = []
    try:
        models = load_models(root)
    except LessonErrors as problems:
        errors += problems.errors
    try:
        gpus = load_gpus(root)
    except LessonErrors as problems:
        errors += problems.errors
    return models, gpus, errors


def _stems(root: Path, pattern: str) -> tuple[str, ...]:
    """What grid.toml may name: the stems of the data files, broken ones too, which have errors of their own."""
    return tuple(path.stem for path in sorted((root / "content").glob(pattern)))


def load_grid(root: Path) -> Grid:
    """The Grid of root/content: grid.toml with the models and GPUs that it names.

    Raises LessonErrors with everything that is wrong in grid.toml and in the data files.
    """
    models, gpus, errors = _data_files(root)
    try:
        file = read_toml(root / GRID_FILE, GRID_FILE)
    except LessonErrors as problems:
        raise LessonErrors([*errors, *problems.errors]) from None
    data = file.data
    tables = ("axes", "defaults", "budget")
    for key in data:
        if key not in ("model", "passes", *tables):
            file.wrong(f"unknown key '{key}'", key, hint=did_you_mean(key, ("model", "passes", *tables)))
    name, names = data.get("model"), _stems(root, "models/*.json")
    if name is None:
        file.wrong(
            "'model' is missing", hint=f'name a file of content/models, such as model = "{next(iter(names), "")}"'
        )
    elif not isinstance(name, str) or name not in names:
        file.wrong(f"model {_brief(name)} is not in content/models", "model", hint=did_you_mean(str(name), names))
    for key in tables:
        if not isinstance(data.get(key), dict):
            what = "is missing" if key not in data else "must be a table"
            file.wrong(f"[{key}] {what}", key, hint=f"begin it with a line [{key}], its keys below")
    axes, defaults, budget = (dict(data[key]) if isinstance(data.get(key), dict) else {} for key in tables)
    for table, keys in (("axes", AXES), ("defaults", AXES), ("budget", BUDGETS)):
        _check_keys(file, table, keys)
    known: dict[str, Sequence[str]] = {**CHOICES, "gpu": _stems(root, "gpus/*.toml")}
    for axis in AXES:
        _check_axis(file, axis, axes.get(axis), defaults.get(axis), known.get(axis, ()))
    for key in BUDGETS:
        size = budget.get(key, 1)
        if isinstance(size, bool) or not isinstance(size, int) or size <= 0:
            message = f"'budget.{key}' must be a positive number of bytes, not {_brief(size)}"
            file.wrong(message, "budget", key, hint="a whole number without quotes, such as 20480")
    _check_decode(file, axes, defaults)
    _check_arithmetic(file, gpus, axes, defaults)
    _check_passes(file, defaults)
    file.errors += errors
    file.finish()
    start = Point(**{axis: defaults[axis] for axis in AXES})
    return Grid(
        model=models[str(name)],
        gpus={gpu: gpus[gpu] for gpu in axes["gpu"]},
        axes={axis: tuple(axes[axis]) for axis in AXES},
        defaults=start,
        budget=budget,
        passes={name: replace(start, **moved) for name, moved in data.get("passes", {}).items()},
    )


def _check_keys(file: Any, table: str, keys: Sequence[str]) -> None:
    """Note the unknown and the missing keys of one table."""
    found = file.data.get(table)
    if not isinstance(found, dict):
        return  # said already
    for key in found:
        if key not in keys:
            file.wrong(f"unknown key '{table}.{key}'", table, key, hint=did_you_mean(key, keys))
    for key in keys:
        if key not in found:
            file.wrong(f"'{table}.{key}' is missing", table, hint=f"add a line {key} = … below [{table}]")


def _check_axis(file: Any, axis: str, values: Any, default: Any, known: Sequence[str]) -> None:
    """Note what is wrong with one axis and with the default on it."""
    if values is None:
        return  # said already
    if not isinstance(values, list) or not values:
        file.wrong(
            f"'axes.{axis}' must be a list of positions", "axes", axis, hint=f"such as {axis} = [{_EXAMPLES[axis]}]"
        )
        return
    for value in values:
        problem = _axis_problem(axis, value, known)
        if problem:
            hint = did_you_mean(value, known) if isinstance(value, str) and known else f"such as {_EXAMPLES[axis]}"
            file.wrong(f"'axes.{axis}' {problem}", "axes", axis, hint=hint)
            return
    if len(set(values)) != len(values):
        twice = next(value for value in values if values.count(value) > 1)
        file.wrong(f"'axes.{axis}' has {_brief(twice)} twice", "axes", axis, hint="keep one of the two")
    if axis in ("tokens", "context") and values != sorted(values):
        hint = "put its positions in order, the smallest first"
        file.wrong(f"'axes.{axis}' must rise, so that a slider does", "axes", axis, hint=hint)
    # not `in` alone: True and 1.0 are in [1], and no count of tokens
    if default is not None and not any(default == value and type(default) is type(value) for value in values):
        close = did_you_mean(default, values) if isinstance(default, str) and isinstance(values[0], str) else None
        message = f"the default {axis} {_brief(default)} is not a position of its axis"
        file.wrong(message, "defaults", axis, hint=close or f"take one of axes.{axis}, or add it there")


def _check_decode(file: Any, axes: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Note where decode is to stand without context."""
    # counts alone: what is none has been said
    if defaults.get("phase") == "decode" and defaults.get("context") == 0:
        hint = "decode needs 1 or more: a new token reads its own cache entry"
        file.wrong("the default point is a decode without context", "defaults", "context", hint=hint)
    if axes.get("context") == [0] and isinstance(axes.get("phase"), list) and "decode" in axes["phase"]:
        hint = "add a context, such as 128, or take decode off axes.phase"
        file.wrong("decode needs a context above 0 on the axis", "axes", "context", hint=hint)


def _check_passes(file: Any, defaults: Mapping[str, Any]) -> None:
    """Note the passes that are no points: wrong keys, wrong values, a decode without context."""
    found = file.data.get("passes", {})
    if not isinstance(found, dict):
        file.wrong("[passes] must be a table", "passes", hint="begin it with a line [passes], its keys below")
        return
    for name, moved in found.items():
        if not isinstance(moved, dict):
            hint = f"such as {name} = {{ tokens = 64, context = 8192 }}"
            file.wrong(f"'passes.{name}' must be a table", "passes", name, hint=hint)
            continue
        for axis, value in moved.items():
            if axis not in POSITION_AXES:
                hint = did_you_mean(axis, POSITION_AXES) or f"a pass has {', '.join(POSITION_AXES)}"
                file.wrong(f"unknown key 'passes.{name}.{axis}'", "passes", name, axis, hint=hint)
            elif problem := _axis_problem(axis, value, CHOICES.get(axis, ())):
                message = f"'passes.{name}.{axis}' {problem}"
                file.wrong(message, "passes", name, axis, hint=f"such as {_EXAMPLES[axis]}")
        phase, context = ({**defaults, **moved}.get(axis) for axis in ("phase", "context"))
        if (phase, context) == ("decode", 0) != (defaults.get("phase"), defaults.get("context")):
            hint = "decode needs 1 or more: a new token reads its own cache entry"
            file.wrong(f"'passes.{name}' is a decode without context", "passes", name, hint=hint)


def _check_arithmetic(file: Any, gpus: Mapping[str, Gpu], axes: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Note a default that its GPU can't compute, and a GPU for which the axis of weights has nothing."""
    named = {axis: axes[axis] if isinstance(axes.get(axis), list) else [] for axis in ("gpu", "weights")}
    weights = [name for name in named["weights"] if name in WEIGHT_DTYPES]
    for gpu in (gpus[name] for name in named["gpu"] if isinstance(name, str) and name in gpus):
        if weights and not any(_computes(gpu, name) for name in weights):
            hint = "add weights that it can compute with, such as bf16, or take it off axes.gpu"
            message = f"the {gpu.label} computes with none of axes.weights: {gpu.no_fp8}"
            file.wrong(message, "axes", "weights", hint=hint)
            continue
        chosen = defaults.get("weights")
        if defaults.get("gpu") == gpu.id and chosen in weights and not _computes(gpu, str(chosen)):
            message = f"the default point is {chosen} on the {gpu.label}: {gpu.no_fp8}"
            file.wrong(message, "defaults", "weights", hint="take other weights, or a GPU that has FP8")
