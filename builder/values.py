"""What the language of facts computes with: places of the ledger, values with dimensions, and how both are shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy.typing as npt

from builder.assumptions import DEFAULT, Assumptions
from builder.dimensions import (
    BYTE,
    BYTE_PER_SECOND,
    FLOP,
    FLOP_PER_BYTE,
    FLOP_PER_SECOND,
    ONE,
    PER_SECOND,
    SECOND,
    TOKEN,
    TOKENS_PER_SECOND,
    Dimension,
)
from builder.grid import AXES
from builder.ledger import Point

Array = npt.NDArray[Any]

COUNTED = ("tokens", "context")  # the axes that are numbers and have an order


@dataclass(frozen=True, eq=False)
class Span:
    """Many positions of a counted axis at once, as an array that broadcasts against the other axis."""

    values: Array


@lru_cache(maxsize=64)
def _assumptions(given: tuple[tuple[str, Any], ...]) -> Assumptions:
    return replace(DEFAULT, **dict(given))


@dataclass(frozen=True)
class Place(Point):
    """A point whose tokens and context may be Spans, with the assumptions that differ from their defaults."""

    tokens: int | Span
    context: int | Span
    assumptions: tuple[tuple[str, Any], ...] = ()

    @property
    def point(self) -> Point:
        """The ledger's point; its counts are arrays where they are Spans here."""
        at = {axis: getattr(self, axis) for axis in AXES}
        return Point(**at | {axis: at[axis].values for axis in COUNTED if isinstance(at[axis], Span)})

    @property
    def assumed(self) -> Assumptions:
        """The ledger's assumptions."""
        return _assumptions(self.assumptions)

    @property
    def shape(self) -> tuple[int, int]:
        """How many tokens and contexts."""
        tokens = self.tokens.values.size if isinstance(self.tokens, Span) else 1
        context = self.context.values.size if isinstance(self.context, Span) else 1
        return tokens, context

    @property
    def least_context(self) -> int:
        """The smallest context."""
        return int(self.context.values.min()) if isinstance(self.context, Span) else self.context

    def but(self, axis: str, value: Any) -> Place:
        """This place with another value of one axis."""
        changes: dict[str, Any] = {axis: value}
        return replace(self, **changes)

    def spot(self, row: int, column: int) -> Place:
        """One point of a place with Spans, by its indices along tokens and context."""
        tokens, context = self.tokens, self.context
        if isinstance(tokens, Span):
            tokens = int(tokens.values.reshape(-1)[row])
        if isinstance(context, Span):
            context = int(context.values.reshape(-1)[column])
        return replace(self, tokens=tokens, context=context)

    def words(self, leave_out: Sequence[str] = ()) -> str:
        """'phase=decode tokens=64 context=8192 …', as it would be written behind an @."""
        parts = [f"{axis}={getattr(self, axis)}" for axis in AXES if axis not in leave_out]
        return " ".join([*parts, *(f"{name}={value}" for name, value in self.assumptions)])


@dataclass(frozen=True)
class Value:
    """A number, a symbol ("memory", "fits") or a truth, or an array of them.

    kind: number, symbol or truth. dimension: of a number; None for one made of bare literals alone, which fits any
    plain quantity. position: a place on the tokens or context axis, where k is 1,024.
    """

    data: Any
    kind: str
    dimension: Dimension | None = None
    position: bool = False


@dataclass(frozen=True)
class Subject:
    """What a fact is about, so that the page can point at it: a readout, a cell of the ledger, or a control."""

    readout: str | None = None
    kernels: tuple[str, ...] = ()
    column: str | None = None
    control: str | None = None


@dataclass(frozen=True)
class Proof:
    """What was proved: the values at the point, and the range of the grid that it holds for."""

    values: str
    range: str | None = None


@dataclass(frozen=True)
class Result:
    """A fact's outcome.

    kind: value, claim or exempt. value: SI number; truth of a claim; None of an exemption. dimension, position: of a
    number. point: where the page's link goes, on the grid; None where the fact is about no point. exact: the point
    itself; off_grid: how the two differ, in words (None: they don't). against: what contradicts a false claim.
    """

    kind: str
    value: float | bool | None = None
    dimension: Dimension | None = None
    position: bool = False
    point: Point | None = None
    exact: Point | None = None
    off_grid: str | None = None
    subject: Subject = Subject()
    proof: Proof | None = None
    against: str | None = None


_LADDERS: dict[Dimension, tuple[tuple[float, str], ...]] = {
    BYTE: ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B")),
    FLOP: ((1e12, "TFLOP"), (1e9, "GFLOP"), (1.0, "FLOP")),
    SECOND: ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    FLOP_PER_SECOND: ((1e12, "TFLOP/s"), (1.0, "FLOP/s")),
    BYTE_PER_SECOND: ((1e12, "TB/s"), (1e9, "GB/s"), (1.0, "B/s")),
    FLOP_PER_BYTE: ((1.0, "FLOP/B"),),
    TOKENS_PER_SECOND: ((1.0, "tokens/s"),),
    TOKEN: ((1.0, "tokens"),),
    PER_SECOND: ((1.0, "per second"),),
    ONE: ((1.0, ""),),
}


def digits(value: float) -> str:
    """Four significant digits, all of a whole number's, grouped, never scientific: '1,840', '34.77', '0.09671'."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    places = 3 - math.floor(math.log10(abs(value)))
    text = f"{value:,.{min(max(places, 0), 30)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def show(value: float, dimension: Dimension | None) -> str:
    """A number in SI as errors and proofs show it: four digits and a unit that suits it."""
    ladder = _LADDERS.get(dimension or ONE)
    if ladder is None:
        return f"{digits(value)} {dimension.name if dimension else ''}".rstrip()
    size, unit = next(((size, unit) for size, unit in ladder if abs(value) >= size), ladder[-1])
    return f"{digits(value / size)} {unit}".rstrip()


def show_value(value: Value) -> str:
    """A scalar Value as errors and proofs show it."""
    if value.kind == "number":
        return show(float(value.data), value.dimension)
    return f'"{value.data}"' if value.kind == "symbol" else ("true" if value.data else "false")
