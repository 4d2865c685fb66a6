"""Claims over the whole grid: everywhere, nowhere, rising, falling; and first, solved over every integer of an axis.

A claim that fails names a point that contradicts it; one that holds says over how many points it was proved.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from builder.dimensions import TOKEN
from builder.grid import AXES, NOUNS, integers
from builder.syntax import Fact, wrong
from builder.values import COUNTED, Array, Place, Span, Value, show_value
from builder.vocabulary import ON_EVERY_GPU, Vocabulary

OVER_THE_GRID = ("everywhere", "nowhere", "rising", "falling")
SAME = 1e-9  # relative: closer than this, two numbers are equal

Evaluate = Callable[[ast.expr, Place], Value]


def compare(sign: str, left: Any, right: Any) -> Any:
    """left sign right, for numbers or arrays; equal means within SAME of each other, and then neither is larger."""
    same = np.abs(left - right) <= SAME * np.maximum(np.abs(left), np.abs(right))
    if sign in ("==", "!="):
        return same if sign == "==" else np.logical_not(same)
    strict = left < right if sign[0] == "<" else left > right
    return np.logical_or(strict, same) if sign.endswith("=") else np.logical_and(strict, np.logical_not(same))


@dataclass
class Sweep:
    """One evaluation's sweeps: over the axes that the fact leaves free, with what they found.

    ranges: what was proved, in words. contradictions: of what failed. inside: whether a sweep is going on.
    """

    fact: Fact
    vocabulary: Vocabulary
    evaluate: Evaluate
    ranges: list[str] = field(default_factory=list)
    contradictions: list[str] = field(default_factory=list)
    inside: bool = False

    @property
    def free(self) -> tuple[str, ...]:
        """The axes that don't stand after the @."""
        fixed = {setting.name for setting in self.fact.point}
        return tuple(axis for axis in AXES if axis not in fixed)

    def over_the_grid(self, node: ast.Call, name: str, place: Place) -> Value:
        """The truth of everywhere, nowhere, rising or falling."""
        along: str | None = None
        if name in ("rising", "falling"):
            along, body = self._axis_and_body(node, f"{name}(throughput, tokens)", axis_at=1)
            if along not in self.free:
                hint = f"take {along} out of the point"
                raise wrong(f"{along} stands after the @, so it can't vary here", self.fact.offset(node), hint)
        elif node.keywords or len(node.args) != 1:
            hint = f'write {name}(attention.bound == "memory")'
            raise wrong(f"{name} takes one condition", self.fact.offset(node), hint)
        else:
            body = node.args[0]
        with self._alone(node):
            return Value(self._holds(node, name, body, along, place), "truth")

    def first(self, node: ast.Call, place: Place) -> tuple[Value, Place]:
        """(the smallest position of an axis at which a condition holds, the place there), of all its integers."""
        axis, condition = self._axis_and_body(node, "first(tokens, throughput > 1000)", axis_at=0)
        least, most = min(self.vocabulary.grid.axes[axis]), max(self.vocabulary.grid.axes[axis])
        least = max(least, 1) if axis == "tokens" or place.phase == "decode" else least
        with self._alone(node):
            for values in integers(least, most):
                moved = place.but(axis, Span(values))
                truth = np.broadcast_to(self._truth(condition, moved), values.shape)
                self.vocabulary.forget(moved)
                if truth.any():
                    found = int(values[int(truth.argmax())])
                    self.ranges.append(f"the first of all {axis} from {least:,} to {most:,}")
                    return Value(found, "number", TOKEN, True), place.but(axis, found)
        shown = self.fact.text_of(condition)
        message = f"{shown} holds for no {axis} from {least:,} to {most:,}"
        raise wrong(message, self.fact.offset(node), "the other axes stand at the fact's point: name them after @")

    def _alone(self, node: ast.Call) -> _Inside:
        if self.inside:
            message = f"{self.fact.text_of(node.func)} can't stand inside another claim over the grid"
            raise wrong(message, self.fact.offset(node), "write two claims")
        return _Inside(self)

    def _truth(self, node: ast.expr, place: Place) -> Array:
        value = self.evaluate(node, place)
        if value.kind != "truth":
            what = {"number": "a number", "symbol": "a text"}[value.kind]
            message = f"{self.fact.text_of(node)} is {what}: nothing that holds or not"
            raise wrong(message, self.fact.offset(node), "compare it")
        return np.asarray(value.data)

    def _axis_and_body(self, node: ast.Call, example: str, axis_at: int) -> tuple[str, ast.expr]:
        if node.keywords or len(node.args) != 2:
            name = self.fact.text_of(node.func)
            raise wrong(f"{name} takes two values", self.fact.offset(node), f"write {example}")
        axis = node.args[axis_at]
        if not isinstance(axis, ast.Name) or axis.id not in COUNTED:
            message = f"{self.fact.text_of(axis)} is no axis with an order"
            raise wrong(message, self.fact.offset(axis), f"tokens and context are: {example}")
        return axis.id, node.args[1 - axis_at]

    def _holds(self, node: ast.Call, name: str, body: ast.expr, along: str | None, place: Place) -> bool:
        points, ends = 0, _Ends()
        for corner, gpus in self._corners(place, body):
            if along:
                truth, count = self._steps(node, body, corner, along, name)
            else:
                truth = self._truth(body, corner)
                truth = truth if name == "everywhere" else np.logical_not(truth)
                truth, count = np.broadcast_to(truth, corner.shape), corner.shape[0] * corner.shape[1]
            points += count * len(gpus)
            ends.add(corner, gpus)
            if not truth.all():
                row, column = np.unravel_index(int(np.argmin(truth)), truth.shape)
                self.contradictions.append(
                    self._contradiction(body, corner, along, int(row), int(column), name == "rising")
                )
                return False
        if points == 0:
            given = " ".join(f"{axis}={getattr(place, axis)}" for axis in AXES if axis not in self.free)
            hint = "decode has no context of 0" if place.phase == "decode" else None
            message = f"no point of the grid has {given}: a claim over nothing says nothing"
            raise wrong(message, self.fact.offset(node), hint)
        self.ranges.append(f"{points:,} points of the grid: {ends.words(self.free, self.vocabulary.grid.texts)}")
        return True

    def _corners(self, place: Place, body: ast.expr) -> Iterator[tuple[Place, tuple[str, ...]]]:
        """What the point leaves free: a place for each choice of the named axes, its counted axes as Spans.

        With each the GPUs that it stands for: all of them at once where the body is the same on every GPU.
        """
        grid = self.vocabulary.grid
        named = [axis for axis in AXES if axis not in (*COUNTED, "gpu")]
        choices = [grid.axes[axis] if axis in self.free else (getattr(place, axis),) for axis in named]
        together = self._same_on_every_gpu(body)
        for chosen in itertools.product(*choices):
            axes: dict[str, Any] = dict(zip(named, chosen, strict=True))
            spans: dict[str, Any] = {a: self.vocabulary.span(a, axes["phase"]) for a in COUNTED if a in self.free}
            corner = replace(place, **axes, **spans)
            gpus = tuple(grid.axes["gpu"]) if "gpu" in self.free else (place.gpu,)
            if corner.weights == "w8a8":
                gpus = tuple(gpu for gpu in gpus if grid.gpus[gpu].peak_flops_fp8 is not None)
            if 0 in corner.shape or (corner.phase == "decode" and corner.least_context < 1):
                continue
            for group in (gpus,) if together and gpus else ((gpu,) for gpu in gpus):
                yield corner.but("gpu", group[0]), group

    def _same_on_every_gpu(self, body: ast.expr) -> bool:
        """Whether a condition names nothing that differs between GPUs."""
        names = {node.id for node in ast.walk(body) if isinstance(node, ast.Name)} - set(self.fact.literals)
        names |= {node.attr for node in ast.walk(body) if isinstance(node, ast.Attribute)}
        return names <= ON_EVERY_GPU

    def _steps(self, node: ast.Call, body: ast.expr, corner: Place, along: str, name: str) -> tuple[Array, int]:
        """(whether each step along the axis goes the right way, number of points)."""
        value = self.evaluate(body, corner)
        if value.kind != "number":
            raise wrong(f"{self.fact.text_of(body)} is no number", self.fact.offset(node), f"{name} takes a number")
        full = np.broadcast_to(np.asarray(value.data, dtype=float), corner.shape)
        before, after = (full[:-1], full[1:]) if along == "tokens" else (full[:, :-1], full[:, 1:])
        if before.size == 0:
            return np.ones((1, 1), dtype=bool), 0
        return compare(">" if name == "rising" else "<", after, before), full.size

    def _contradiction(
        self, body: ast.expr, corner: Place, along: str | None, row: int, column: int, rising: bool
    ) -> str:
        """A point that contradicts, with the values there."""
        spot = corner.spot(row, column)
        if along is None:
            return f"not at {spot.words()}, where {self.sides(body, spot)}"
        after = corner.spot(row + 1, column) if along == "tokens" else corner.spot(row, column + 1)
        shown = [f"{show_value(self.evaluate(body, p))} at {along}={getattr(p, along)}" for p in (spot, after)]
        name, verb = self.fact.text_of(body), "rise" if rising else "fall"
        return f"{name} doesn't {verb} from {shown[0]} to {shown[1]} with {spot.words((along,))}"

    def sides(self, node: ast.expr, place: Place) -> str:
        """The values that a condition compares at a place, in words: 'throughput is 1,840 tokens/s, …'."""
        parts: dict[str, None] = {}
        for each in ast.walk(node):
            if not isinstance(each, ast.Compare):
                continue
            for side in (each.left, *each.comparators):
                if any(self._is_name(leaf) for leaf in ast.walk(side)):
                    parts[f"{self.fact.text_of(side)} is {show_value(self.evaluate(side, place))}"] = None
        return ", ".join(parts) or f"{self.fact.text_of(node)} is false"

    def _is_name(self, leaf: ast.AST) -> bool:
        return isinstance(leaf, ast.Attribute) or (isinstance(leaf, ast.Name) and leaf.id not in self.fact.literals)


class _Inside:
    """While a sweep goes on, no other may begin."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep

    def __enter__(self) -> None:
        self.sweep.inside = True

    def __exit__(self, *_: object) -> None:
        self.sweep.inside = False


class _Ends:
    """The ends of every axis that a sweep came over."""

    def __init__(self) -> None:
        self.found: dict[str, list[Any]] = {axis: [] for axis in AXES}

    def add(self, corner: Place, gpus: tuple[str, ...]) -> None:
        """Note where a corner begins and ends."""
        for axis, values in self.found.items():
            value = getattr(corner, axis)
            if isinstance(value, Span):
                new: list[Any] = [int(value.values.flat[0]), int(value.values.flat[-1])]
            else:
                new = list(gpus) if axis == "gpu" else [value]
            values.extend(each for each in new if each not in values)

    def words(self, free: tuple[str, ...], texts: Mapping[str, str]) -> str:
        """'decode; tokens 1 to 4,096; A100, H100; BF16 weights': values as they are shown, by `texts`."""
        parts = []
        for axis, values in self.found.items():
            if axis in COUNTED and axis in free:
                parts.append(f"{axis} {min(values):,} to {max(values):,}")
            else:
                shown = ", ".join(
                    f"{value:,}" if isinstance(value, int) else texts.get(value, value) for value in values
                )
                parts.append(f"{axis} {shown}" if axis in COUNTED else f"{shown} {NOUNS.get(axis, '')}".rstrip())
        return "; ".join(parts)
