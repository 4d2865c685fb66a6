"""What each assumption is worth: how much it changes the time of the passes that content/grid.toml names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from builder.assumptions import DEFAULT, PHASES, WEIGHTS, Assumptions, alternatives, assume
from builder.catalog import Gpu, Model
from builder.display import DASH
from builder.grid import AXES, Grid
from builder.ledger import Point, forward_pass
from builder.roofline import cost
from builder.units import DTYPE_LABELS, MINUS, short_position, whole

NOTHING = 1e-9  # of a pass: no more than rounding, as for facts that are equal


@dataclass(frozen=True)
class Size:
    """The size of an assumption in one pass: as a fraction of its time, None where it means nothing there; as text in
    percent; and as the fact that a text would be bound to.
    """

    point: Point
    change: float | None
    text: str
    fact: str


@dataclass(frozen=True)
class Case:
    """One value of an assumption with one dtype of the weights.

    setting: as --assume takes it; label: what tells it from the assumption's other cases.
    """

    setting: str
    label: str
    sizes: tuple[Size, ...]


def heading(point: Point) -> str:
    """A pass in a few words: '1 user at 8k', '256 at 512' in decode, '4,096 after 512' in prefill."""
    between = "after" if point.phase == "prefill" else "user at" if point.tokens == 1 else "at"
    return f"{whole(point.tokens)} {between}\u00a0{short_position(point.context)}"


def percent(change: float) -> str:
    """A change with its sign, one decimal: '+18.7', '−6.3'; '0.0' is none at all, and a little is '< 0.1'."""
    if abs(change) < NOTHING:
        return "0.0"
    digits = f"{abs(change) * 100:,.1f}"
    if digits == "0.0":
        return "< 0.1" if change > 0 else f"> {MINUS}0.1"
    return f"{'+' if change > 0 else MINUS}{digits}"


def cases(grid: Grid, name: str) -> list[Case]:
    """The sizes of an assumption in grid.passes: a Case for each value but the default and each dtype it is about."""
    values, found = alternatives(name), []
    dtypes = [dtype for dtype in WEIGHTS.get(name, (grid.defaults.weights,)) if dtype in grid.axes["weights"]]
    for value in values:
        for dtype in dtypes:
            points = [replace(point, weights=dtype) for point in grid.passes.values()]
            sizes = tuple(_size(grid, name, value, point) for point in points)
            tells = [_shown(name, value)] if len(values) > 1 else []
            tells += [f"{DTYPE_LABELS[dtype]} weights"] if len(values) == 1 or len(dtypes) > 1 else []
            found.append(Case(f"{name}={_plain(value)}", ", ".join(tells), sizes))
    return found


def _size(grid: Grid, name: str, value: str | float, point: Point) -> Size:
    moved = [axis for axis in AXES if getattr(point, axis) != getattr(grid.defaults, axis)]
    at = " ".join(f"{axis}={getattr(point, axis)}" for axis in moved)
    fact = f"time({name}={_plain(value)}) / time - 1" + (f" @ {at}" if at else "")
    if point.phase not in PHASES.get(name, (point.phase,)) or not grid.exists(point):
        return Size(point, None, DASH, fact)
    gpu = grid.gpus[point.gpu]
    change = _time(grid.model, gpu, point, assume({name: value})) / _time(grid.model, gpu, point, DEFAULT) - 1
    return Size(point, change, percent(change), fact)


@lru_cache(maxsize=256)
def _time(model: Model, gpu: Gpu, point: Point, assumptions: Assumptions) -> float:
    """Seconds of a pass; remembered, since a text is built again and again over one ledger."""
    return float(cost(forward_pass(model, point, assumptions), gpu, point.tokens, assumptions).total_time)


def _plain(value: str | float) -> str:
    return f"{value:g}" if isinstance(value, float) else value


def _shown(name: str, value: str | float) -> str:
    """A value for readers, who think of gaps in microseconds."""
    return f"{float(value) * 1e6:g}\u00a0µs" if name == "launch_gap" else _plain(value)
