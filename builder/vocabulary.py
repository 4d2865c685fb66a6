"""The names of the language of facts, a table a kind, and what each is at a place of the ledger.

A new name is a row of a table here. Everything is computed through forward_pass and cost, so a fact can say nothing
that the page doesn't; passes are computed when a name first asks for them and remembered per place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from builder import assumptions, roofline
from builder.dimensions import (
    BYTE,
    BYTE_PER_SECOND,
    FLOP,
    FLOP_PER_BYTE,
    FLOP_PER_SECOND,
    ONE,
    SECOND,
    TOKEN,
    TOKENS_PER_SECOND,
    Dimension,
)
from builder.display import TOTALS as ROW_TOTALS
from builder.errors import LessonError, did_you_mean
from builder.grid import AXES, Grid
from builder.kernels import KERNELS
from builder.ledger import GROUPS, MOST_TOKENS, Kernel, Point, forward_pass
from builder.syntax import Setting, wrong
from builder.units import DTYPE_BITS, WEIGHT_DTYPES
from builder.values import COUNTED, Place, Span, Subject, Value

# totals of a pass; each is also the name of a readout on the page
TOTALS: dict[str, Dimension] = {
    "throughput": TOKENS_PER_SECOND,
    "time": SECOND,
    "flops": FLOP,
    "bytes_moved": BYTE,
    "arithmetic_intensity": FLOP_PER_BYTE,
    "peak_share": ONE,
    "resident_bytes": BYTE,
    "largest_batch": TOKEN,
}
# columns of a row, or of a group of rows; beside them a row has `bound`, a symbol, and `latency_bound`, a truth
COLUMNS: dict[str, Dimension] = {
    "flops": FLOP,
    "bytes_moved": BYTE,
    "arithmetic_intensity": FLOP_PER_BYTE,
    "attainable_flops": FLOP_PER_SECOND,
    "time": SECOND,
    "share": ONE,
}
HARDWARE: dict[str, Dimension] = {
    "peak_flops": FLOP_PER_SECOND,
    "peak_flops_fp8": FLOP_PER_SECOND,
    "hbm_bandwidth": BYTE_PER_SECOND,
    "ridge_point": FLOP_PER_BYTE,
    "memory_bytes": BYTE,
    "year": ONE,
}
# properties of Model at the place's attention; the last two need a dtype of the place too
MODEL: dict[str, Dimension] = {
    "parameters": ONE,
    "streamed_parameters": ONE,
    "embedding_parameters": ONE,
    "layers": ONE,
    "hidden_size": ONE,
    "intermediate_size": ONE,
    "heads": ONE,
    "kv_heads": ONE,
    "head_dim": ONE,
    "vocab_size": ONE,
    "max_positions": TOKEN,
    "kv_bytes_per_token": Dimension(byte=1, token=-1),
    "weight_bytes": BYTE,
}
DTYPES = ("weights", "kv")  # weights.bytes and kv.bytes: bytes of an element
# what a symbol can be, so that a misspelt one makes no claim true
SYMBOLS: dict[str, tuple[str, ...]] = {
    "bound": ("memory", "ridge", "compute", "none"),
    "fits": roofline.FITS,
}
# assumptions beside the axes: name → its value as the ledger wants it, from what stands in the point
ASSUMPTIONS: dict[str, Callable[[str | float], Any]] = {
    name: lambda value, name=name: assumptions.read(name, str(value))  # type: ignore[misc]
    for name in assumptions.NAMES
}
# names and columns that are the same on every GPU
ON_EVERY_GPU = frozenset(
    {"flops", "bytes_moved", "arithmetic_intensity", "resident_bytes", "model", *COUNTED, "phase", "weights", "kv"}
    | {*KERNELS, *GROUPS, *MODEL, "bytes"}
)
# which readout of the page shows a number of the hardware
_READOUT_OF_HARDWARE = {"ridge_point": "ridge", "memory_bytes": "resident_bytes"}


@dataclass
class Notes:
    """What an evaluation came across: the places that its names read, in order, and what of them."""

    seen: list[tuple[Place, Subject]] = field(default_factory=list)
    names: bool = False


class Vocabulary:
    """Looks names up over one grid. Its errors have an offset of 0; the caller knows where the name stands."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self._rows: dict[Place, dict[str, Kernel]] = {}
        self._passes: dict[Place, roofline.Pass] = {}
        self._spans: dict[tuple[str, bool], Span] = {}

    @property
    def passes(self) -> int:
        """How many passes are remembered."""
        return len(self._passes)

    # places

    def moved(self, place: Place, settings: Sequence[Setting], *, anywhere: bool = False) -> Place:
        """The place with some axes or assumptions set. Raises LessonError where one is off its axis.

        anywhere: the place need not be a point yet, since a sweep sets its other axes.
        """
        if not settings:
            return place
        changes: dict[str, Any] = {}
        assumed = dict(place.assumptions)
        for setting in settings:
            value = self._value_of(setting)
            if setting.name in ASSUMPTIONS:
                assumed[setting.name] = value
            else:
                changes[setting.name] = value
        place = replace(place, **changes, assumptions=tuple(sorted(assumed.items())))
        if not anywhere:
            self.check_decode(place, settings[-1].name_offset)
        return place

    def _value_of(self, setting: Setting) -> Any:
        """A setting's value as the ledger wants it. Raises LessonError where it is off its axis."""
        name, value = setting.name, setting.value
        if name in COUNTED:
            return _position(setting)
        if name in AXES:
            known = WEIGHT_DTYPES if name == "weights" else tuple(self.grid.axes[name])
            if value not in known:
                shown = f"{value:g}" if isinstance(value, float) else value
                raise wrong(f"{name} has no value '{shown}'", setting.offset, did_you_mean(str(shown), known))
            return value
        if name in ASSUMPTIONS:
            try:
                return ASSUMPTIONS[name](value)
            except LessonError as error:
                raise wrong(error.message, setting.offset, error.hint) from None
        raise wrong(f"a point has no '{name}'", setting.name_offset, did_you_mean(name, [*AXES, *ASSUMPTIONS]))

    def check_decode(self, place: Place, offset: int = 0) -> None:
        """Raise LessonError where a decode reads nothing, not even its own entry."""
        if place.phase == "decode" and place.least_context < 1:
            hint = "write context=1 or more, or phase=prefill"
            raise wrong("decode needs a context of at least 1: a new token reads its own entry", offset, hint)

    def span(self, axis: str, phase: str) -> Span:
        """All positions of a counted axis: tokens along the first dimension, context along the second."""
        decode = phase == "decode" and axis == "context"
        if (axis, decode) not in self._spans:
            values = np.array([p for p in self.grid.axes[axis] if p >= 1 or not decode], dtype=np.int64)
            self._spans[axis, decode] = Span(values[:, None] if axis == "tokens" else values[None, :])
        return self._spans[axis, decode]

    def nearest(self, point: Point) -> Point:
        """The point at the grid's nearest positions: tokens and context by ratio, of two the smaller; other values of
        an axis that the bench lacks by what they move most like (w8a8 streams its weights as fp8 does).
        """
        near: dict[str, Any] = {}
        for axis in COUNTED:
            wanted = int(getattr(point, axis))
            least = 0 if axis == "context" and point.phase != "decode" else 1
            positions = [int(p) for p in self.grid.axes[axis] if p >= least]
            near[axis] = wanted if wanted in positions else min(positions, key=lambda p: _apart(p, wanted))
        if point.weights not in self.grid.axes["weights"]:
            near["weights"] = "fp8" if "fp8" in self.grid.axes["weights"] else self.grid.defaults.weights
        moved = replace(point, **near)
        return point if moved == point else moved

    def rows(self, place: Place) -> dict[str, Kernel]:
        """The rows of the pass at a place, which are the same on every GPU; remembered. Raises LessonError."""
        key = _but_gpu(place)
        found = self._rows.get(key)
        if found is None:
            self.check_decode(place)
            rows = forward_pass(self.grid.model, place.point, place.assumed)
            found = self._rows[key] = {row.name: row for row in rows}
        return found

    def cost(self, place: Place) -> roofline.Pass:
        """The pass at a place on its GPU; remembered. Raises LessonError where the place has none."""
        found = self._passes.get(place)
        if found is None:
            rows, gpu = tuple(self.rows(place).values()), self.grid.gpus[place.gpu]
            found = self._passes[place] = roofline.cost(rows, gpu, place.point.tokens, place.assumed)
        return found

    def forget(self, place: Place) -> None:
        """Drop a pass that nobody will ask for again."""
        self._passes.pop(place, None)
        self._rows.pop(_but_gpu(place), None)

    # names

    def name(self, name: str, place: Place, notes: Notes) -> Value:
        """What a single name is at a place."""
        notes.names = True
        if name in COUNTED:
            notes.seen.append((place, Subject(control=name)))
            value = getattr(place, name)
            return Value(value.values if isinstance(value, Span) else value, "number", TOKEN, True)
        if name in AXES:
            notes.seen.append((place, Subject(control=name)))
            return Value(getattr(place, name), "symbol")
        if name in TOTALS or name == "fits":
            notes.seen.append((place, Subject(readout="verdict" if name == "fits" else name)))
            return self._total(name, place)
        if name in ASSUMPTIONS:
            raise wrong(f"'{name}' is an assumption: it stands in a point", 0, f"write throughput({name}=…)")
        if name in (*KERNELS, *GROUPS, "model"):
            hint = f"write {name}.{'layers' if name == 'model' else 'share'}"
            raise wrong(f"'{name}' alone is no fact", 0, hint)
        known = [*TOTALS, "fits", *AXES, *KERNELS, *GROUPS, "model", *ASSUMPTIONS]
        raise wrong(f"there is no fact called '{name}'", 0, did_you_mean(name, known))

    def _total(self, name: str, place: Place) -> Value:
        model, gpu, point = self.grid.model, self.grid.gpus[place.gpu], place.point
        if name == "resident_bytes":
            return Value(roofline.resident_bytes(model, point, place.assumed), "number", BYTE)
        if name == "fits":
            verdict = roofline.fits(roofline.resident_bytes(model, point, place.assumed), gpu)
            return Value(_symbols(roofline.FITS, verdict), "symbol")
        if name == "largest_batch":
            if place.phase != "decode":
                raise wrong("largest_batch is about decode", 0, "write largest_batch(phase=decode)")
            return Value(roofline.largest_batch(model, point, gpu, place.assumed), "number", TOKEN)
        return Value(getattr(self.cost(place), ROW_TOTALS.get(name, name)), "number", TOTALS[name])

    def part(self, owner: str, name: str, place: Place, notes: Notes) -> Value:
        """What `owner.name` is at a place: a cell of the ledger, or a number of the GPU, the model or a dtype."""
        notes.names = True
        if owner in KERNELS or owner in GROUPS:
            return self._row(owner, name, place, notes)
        if owner == "gpu":
            return self._hardware(name, place, notes)
        if owner == "model":
            return self._model(name, place)
        if owner in DTYPES:
            if name != "bytes":
                raise wrong(f"'{owner}' has no '{name}'", 0, f"known: {owner}.bytes")
            notes.seen.append((place, Subject(control=owner)))
            return Value(DTYPE_BITS[getattr(place, owner)] / 8, "number", BYTE)
        if owner in TOTALS or owner in AXES or owner == "fits":
            raise wrong(f"'{owner}' has no parts", 0, f"write {owner} alone")
        owners = [*KERNELS, *GROUPS, "gpu", "model", *DTYPES]
        raise wrong(f"there is no row or thing called '{owner}'", 0, did_you_mean(owner, owners))

    def _row(self, owner: str, name: str, place: Place, notes: Notes) -> Value:
        kernels = GROUPS.get(owner, (owner,))
        verdicts = ("bound", "latency_bound")
        if name not in (*COLUMNS, *verdicts):
            raise wrong(f"a row has no '{name}'", 0, did_you_mean(name, [*COLUMNS, *verdicts]))
        if len(kernels) > 1 and name in (*verdicts, "attainable_flops"):
            raise wrong(f"'{owner}' is several rows, which may differ in {name}", 0, f"name one: {kernels[0]}.{name}")
        # the bench marks what is latency-bound beside the bound
        notes.seen.append((place, Subject(kernels=kernels, column="bound" if name in verdicts else name)))
        if name in ("flops", "bytes_moved", "arithmetic_intensity"):
            rows = [self.rows(place)[kernel] for kernel in kernels]
            flops = np.asarray(sum(row.flops for row in rows), dtype=float)
            moved = np.asarray(sum(row.bytes_moved for row in rows), dtype=float)
            if name == "arithmetic_intensity" and not np.all(moved > 0):
                raise wrong(f"{owner} moves no byte here, so it has no intensity", 0)
            data = flops if name == "flops" else moved if name == "bytes_moved" else flops / moved
            return Value(data, "number", COLUMNS[name])
        cost = self.cost(place)
        if name == "bound":
            return Value(_symbols(SYMBOLS["bound"], cost.bound[cost.row(owner)]), "symbol")
        column = getattr(cost, name)
        if name == "latency_bound":
            return Value(column[cost.row(owner)], "truth")
        return Value(sum(column[cost.row(kernel)] for kernel in kernels), "number", COLUMNS[name])

    def _hardware(self, name: str, place: Place, notes: Notes) -> Value:
        if name not in HARDWARE:
            raise wrong(f"a GPU has no '{name}'", 0, did_you_mean(name, HARDWARE))
        readout = _READOUT_OF_HARDWARE.get(name)
        notes.seen.append((place, Subject(readout=readout, control=None if readout else "gpu")))
        gpu = self.grid.gpus[place.gpu]
        roof = roofline.roof_of(gpu, place.weights, place.assumed)
        of_roof = {"peak_flops": roof.peak, "hbm_bandwidth": roof.bandwidth, "ridge_point": roof.ridge}
        value = of_roof.get(name, getattr(gpu, name))
        if value is None:
            raise wrong(f"the {gpu.label} has no {name}", 0, gpu.no_fp8)
        if name == "peak_flops_fp8":
            value *= place.assumed.peak_scale
        return Value(float(value), "number", HARDWARE[name])

    def _model(self, name: str, place: Place) -> Value:
        if name not in MODEL:
            raise wrong(f"the model has no '{name}'", 0, did_you_mean(name, MODEL))
        model = self.grid.model.with_attention(place.attention)
        value: float | None
        if name == "kv_bytes_per_token":
            value = roofline.cache_bytes_per_token(model, place.kv)
        elif name == "weight_bytes":
            value = roofline.weight_bytes(model, place.weights, place.assumed)
        else:
            value = getattr(model, name)
        if value is None:
            raise wrong(f"the model's config.json doesn't state {name}", 0)
        return Value(float(value), "number", MODEL[name])

    def symbols_of(self, name: str | None) -> tuple[str, ...]:
        """What a symbol may be, by the last part of its name; empty where the name is no symbol's."""
        if name in SYMBOLS:
            return SYMBOLS[name]
        return tuple(map(str, self.grid.axes[name])) if name in AXES and name not in COUNTED else ()


def _but_gpu(place: Place) -> Place:
    return replace(place, gpu="")


def _apart(one: int, other: int) -> tuple[float, int]:
    """How far two positions are apart by ratio, an empty context counting as half a token."""
    return abs(math.log((one or 0.5) / (other or 0.5))), one


def _position(setting: Setting) -> int:
    least = 1 if setting.name == "tokens" else 0
    value = setting.value
    if isinstance(value, str) or not float(value).is_integer() or not least <= value <= MOST_TOKENS:
        shown = f"'{value}'" if isinstance(value, str) else f"{value:,.0f}" if value.is_integer() else f"{value:,g}"
        message = f"{setting.name} must be a whole number from {least} to {MOST_TOKENS:,}, not {shown}"
        raise wrong(message, setting.offset, "write tokens=64 or context=8k")
    return int(value)


def _symbols(names: tuple[str, ...], codes: Any) -> Any:
    """Names for codes; −1 is the last name. A str for a scalar, an array of str for an array."""
    chosen = np.array(names, dtype=object)[codes]
    return str(chosen) if np.ndim(codes) == 0 else chosen
