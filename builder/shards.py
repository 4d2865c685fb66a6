"""The grid → arrays → JSON shards, and the look-up that page, tests and command line share.

A shard holds everything that the page shows at every phase, context and token position of one choice of GPU, weights,
cache and attention. Columns that don't vary along an axis are stored once for it (stride 0). Text is final; what is
drawn is read from the same text, so that a picture can't show what the ledger beside it doesn't say.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from builder import display
from builder.assumptions import DEFAULT, Assumptions
from builder.catalog import Gpu
from builder.errors import LessonError
from builder.grid import GRID_FILE, POSITION_AXES, SHARD_AXES, Grid
from builder.kernels import KERNELS
from builder.ledger import GROUPS, Point, forward_pass
from builder.roofline import FITS, Array, Pass, Roof, cost, fits, largest_batch, resident_bytes, roof_of
from builder.units import whole


def shard_id(point: Point) -> str:
    """'h100-bf16-bf16-gqa'."""
    return "-".join(getattr(point, axis) for axis in SHARD_AXES)


@dataclass(frozen=True)
class Arrays:
    """Costs of one shard: one Pass per phase with totals of shape [context, tokens], and what goes beside it."""

    phase: str
    context: Array
    costs: Pass
    resident: Array
    fit: Array
    largest_batch: Array


def shard_arrays(grid: Grid, choice: Point, assumptions: Assumptions = DEFAULT) -> list[Arrays]:
    """Arrays for each phase of the grid at choice's GPU, weights, cache and attention.

    Decode has no point at context 0; its place is filled with the next context's numbers, so that columns stay
    rectangular and constant ones stay constant. The page never looks there.
    """
    gpu = grid.gpus[choice.gpu]
    tokens = np.asarray(grid.axes["tokens"], dtype=np.int64)[None, :]
    contexts = np.asarray(grid.axes["context"], dtype=np.int64)[:, None]
    found = []
    for phase in grid.axes["phase"]:
        least = contexts[contexts > 0].min() if phase == "decode" else 0
        context = np.maximum(contexts, least)
        point = replace(choice, phase=phase, tokens=tokens, context=context)
        shape = np.broadcast_shapes(tokens.shape, context.shape)
        costs = cost(forward_pass(grid.model, point, assumptions), gpu, tokens, assumptions)
        resident = np.broadcast_to(resident_bytes(grid.model, point, assumptions), shape)
        batch = np.broadcast_to(largest_batch(grid.model, point, gpu, assumptions), shape)
        found.append(Arrays(phase, context, costs, resident, fits(resident, gpu), batch))
    return found


class _Data:
    """What a column holds, and its JSON: texts, or a few distinct ones and where each stands."""

    def __init__(self, texts: list[Any]) -> None:
        self.values: Any = texts
        distinct = dict.fromkeys(texts)
        if len(distinct) * 3 < len(texts) and isinstance(texts[0], str):
            place = {value: index for index, value in enumerate(distinct)}
            self.values = {"of": list(distinct), "at": [place[value] for value in texts]}
        self.json = script_json(self.values)


# Most columns of a kernel are those of another shard too: its FLOPs are the same on every GPU, its bytes too.
@lru_cache(maxsize=512)
def _written(text: Callable[[Any], Any], kind: str, numbers: bytes) -> _Data:
    """The texts of numbers, given as the bytes of an array of this kind."""
    return _Data([text(value) for value in np.frombuffer(numbers, dtype=kind).tolist()])


class _Columns:
    """Collects columns; equal ones are stored once, repeated values of one column too."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.columns: dict[str, list[int]] = {}
        self.data: list[_Data] = []
        self._seen: dict[str, int] = {}

    def add(self, name: str, numbers: Array, text: Callable[[Any], Any]) -> None:
        """A column from an array that broadcasts to the shape; text is applied to what constant axes leave of it.

        text: one function for all columns of its kind, since what it made is remembered.
        """
        kept, strides = self._kept(numbers)
        self._add(name, strides, _written(text, kept.dtype.str, kept.tobytes()))

    def add_texts(self, name: str, indices: Array, texts: Sequence[str]) -> None:
        """A column of texts, from an array of indices that broadcasts to the shape; no text is there twice."""
        kept, strides = self._kept(indices)
        self._add(name, strides, _Data([texts[index] for index in kept.ravel().tolist()]))

    def _kept(self, values: Array) -> tuple[Array, list[int]]:
        """An array without the axes that it is constant along, and its stride along each axis."""
        kept = np.asarray(values)
        kept = kept.reshape((1,) * (len(self.shape) - kept.ndim) + kept.shape)
        for axis in range(kept.ndim):
            first = kept[(slice(None),) * axis + (slice(0, 1),)]
            if kept.shape[axis] == 1 or bool((kept == first).all()):
                kept = first
        strides = [prod(kept.shape[axis + 1 :]) if kept.shape[axis] > 1 else 0 for axis in range(len(self.shape))]
        return kept, strides

    def _add(self, name: str, strides: list[int], data: _Data) -> None:
        index = self._seen.setdefault(data.json, len(self.data))
        if index == len(self.data):
            self.data.append(data)
        self.columns[name] = [*strides, index]


def _stack(arrays: Sequence[Arrays], pick: Callable[[Arrays], Array]) -> Array:
    return np.stack([pick(part) for part in arrays])


def _add_cells(columns: _Columns, arrays: Sequence[Arrays], sizes: Array) -> None:
    """The ledger's cells: text of every kernel and the total in every column. sizes: unit of work by token position."""
    units = {name: size for name, (size, _) in display.COLUMN_UNITS.items()} | {"flops": 1.0, "bound": 1.0}
    for column in display.COLUMNS:
        if column == "share":
            continue
        values = _stack(arrays, lambda part, c=column: getattr(part.costs, c))  # type: ignore[misc]
        values = values / sizes if column == "flops" else values
        for row, kernel in enumerate(KERNELS):
            columns.add(f"{kernel}.{column}", values[:, row], display.cell(column, units[column]))
    latency = _stack(arrays, lambda part: part.costs.latency_bound)
    for row, kernel in enumerate(KERNELS):
        columns.add_texts(f"{kernel}.latency", latency[:, row].astype(int), ["", display.LATENCY_TEXT])
    for column, total in display.TOTALS.items():
        values = _stack(arrays, lambda part, t=total: getattr(part.costs, t))  # type: ignore[misc]
        values = values / sizes if column == "flops" else values
        columns.add(f"total.{column}", values, display.cell(column, units[column]))
    share = _stack(arrays, lambda part: part.costs.share)
    for name, rows in ({kernel: (kernel,) for kernel in KERNELS} | display.SUMS).items():
        part = share[:, [KERNELS.index(row) for row in rows]].sum(axis=1)
        columns.add(f"{name}.share", display.share_codes(part), int)


def _batch(sequences: int) -> str:
    """The largest batch; a dash for what has none."""
    return display.DASH if sequences < 0 else display.readout("largest_batch")(sequences)


def _add_readouts(columns: _Columns, arrays: Sequence[Arrays], gpu: Gpu) -> None:
    """What the readouts show beside the totals of the ledger."""
    for name in ("throughput", "peak_share"):
        values = _stack(arrays, lambda part, n=name: getattr(part.costs, n))  # type: ignore[misc]
        columns.add(name, values, display.readout(name))
    resident = _stack(arrays, lambda part: part.resident)
    columns.add("resident", resident, display.readout("resident_bytes"))
    columns.add("memory_used", np.round(np.minimum(resident / gpu.memory_bytes, 9.99), 2), float)
    columns.add_texts("fits", _stack(arrays, lambda part: part.fit), FITS)
    # a prefill is one sequence: it has no largest batch
    batches = _stack(arrays, lambda part: part.largest_batch * (part.phase == "decode") - (part.phase != "decode"))
    columns.add("largest_batch", batches, _batch)


def _positions(grid: Grid, roof: Roof, part: Arrays) -> display.Positions:
    """The positions of one phase of a shard, in the order of POSITION_AXES."""
    costs = part.costs
    share, intensity, bound = (
        array.reshape(len(KERNELS), -1) for array in (costs.share, costs.arithmetic_intensity, costs.bound)
    )
    tokens = np.broadcast_to(np.asarray(grid.axes["tokens"]), grid.shape[1:]).ravel()
    return display.Positions(
        part.phase, tokens, roof, share, intensity, bound, part.fit.ravel(), part.largest_batch.ravel()
    )


def _sentences(at: display.Position) -> tuple[str, ...]:
    """The texts of _SENTENCES at a position."""
    labels, largest = display.chart_labels(at), at.largest
    below = labels[largest][1] if largest in labels else ""
    return (*display.verdict(at), largest, below, *(labels.get(kernel, ("",))[0] for kernel in KERNELS))


_SENTENCES = ("verdict", "warning", "largest", "sublabel", *(f"{kernel}.label" for kernel in KERNELS))


_said: dict[tuple[str, int], tuple[str, ...]] = {}  # phase and kind → the sentences of all such positions, of any shard


def _add_sentences(columns: _Columns, phases: Sequence[display.Positions]) -> None:
    """Verdict, warning, and the labels of the roofline's dots: a few kinds of position have all of them in common."""
    rows: list[tuple[str, ...]] = []
    places = []
    for positions in phases:
        kinds, first, place = np.unique(positions.kinds(), return_index=True, return_inverse=True)
        places.append(len(rows) + place)
        for kind, index in zip(kinds.tolist(), first.tolist(), strict=True):
            key = positions.phase, kind
            if key not in _said:
                _said[key] = _sentences(positions[index])
            rows.append(_said[key])
    place = np.stack(places).reshape(columns.shape)
    for name, texts in zip(_SENTENCES, zip(*rows, strict=True), strict=True):
        number = {text: index for index, text in enumerate(dict.fromkeys(texts))}
        columns.add_texts(name, np.asarray([number[text] for text in texts])[place], list(number))
    below = np.stack([display.ridges_below(at.roof, at.intensity[KERNELS.index("attention")]) for at in phases])
    columns.add("ridges_below", below.reshape(columns.shape), whole)
    for kernel in KERNELS:
        columns.add_texts(f"{kernel}.tip", np.zeros(1, dtype=int), [display.tip(kernel)])


def _collected(grid: Grid, choice: Point, assumptions: Assumptions) -> tuple[dict[str, Any], list[_Data]]:
    """A shard without its data, and its data."""
    gpu = grid.gpus[choice.gpu]
    roof = roof_of(gpu, choice.weights, assumptions)
    arrays = shard_arrays(grid, choice, assumptions)
    columns = _Columns(grid.shape)
    matmuls = [KERNELS.index(name) for name in GROUPS["matmuls"]]
    units = [display.work_unit(flops) for flops in arrays[0].costs.flops[matmuls].sum(axis=0)[0].tolist()]
    names = list(dict.fromkeys(name for _, name in units))
    columns.add_texts("work_unit", np.asarray([names.index(name) for _, name in units]), names)
    _add_readouts(columns, arrays, gpu)
    _add_cells(columns, arrays, np.asarray([size for size, _ in units]))
    _add_sentences(columns, [_positions(grid, roof, part) for part in arrays])
    head = {
        "id": shard_id(choice),
        "constants": display.gpu_texts(roof),
        "shape": list(grid.shape),
        "columns": columns.columns,
    }
    return head, columns.data


def shard(grid: Grid, choice: Point, assumptions: Assumptions = DEFAULT) -> dict[str, Any]:
    """Everything that the page shows at one choice of SHARD_AXES.

    {"id", "constants": {name: text of the GPU}, "shape": lengths of phase, context, tokens, "columns": {name: [stride,
    stride, stride, index of data]}, "data": [[…] or {"of": distinct values, "at": indices into them}, …]}. The value
    at position (p, c, t) is number p·stride + c·stride + t·stride of the data. `….share` are codes of
    display.SHARE_TEXTS; texts may be templates of display.fill.
    """
    head, data = _collected(grid, choice, assumptions)
    return {**head, "data": [column.values for column in data]}


def shard_json(grid: Grid, choice: Point) -> str:
    """What script_json says of the shard, sooner: of columns that other shards have too it is known already."""
    head, data = _collected(grid, choice, DEFAULT)
    return f'{script_json(head)[:-1]},"data":[{",".join(column.json for column in data)}]}}'


def script_json(document: object) -> str:
    """Compact JSON on one line that may stand in a script element: no text of it can end the element or open a comment.

    ValueError for NaN and Infinity.
    """
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def look_up(document: Mapping[str, Any], grid: Grid, point: Point, column: str) -> str:
    """The text that the page shows of a column at a position of the grid: looked up, and its slots filled."""
    if column == "tokens":
        return whole(point.tokens)
    if column in document["constants"]:
        return str(document["constants"][column])
    name, _, kind = column.rpartition(".")
    strides = document["columns"][f"{name}.share" if kind == "rough" else column]
    index = sum(
        stride * grid.axes[axis].index(getattr(point, axis))
        for stride, axis in zip(strides, POSITION_AXES, strict=False)
    )
    data = document["data"][strides[3]]
    value = data["of"][data["at"][index]] if isinstance(data, dict) else data[index]
    if kind in ("share", "rough"):
        texts = display.SHARE_TEXTS if kind == "share" else display.ROUGH_TEXTS
        return texts[int(value)]
    return display.fill(str(value), lambda slot: look_up(document, grid, point, slot))


def check_shard_size(grid: Grid, document: Mapping[str, Any], compressed: int) -> list[LessonError]:
    """The error where a shard's gzip size breaks its budget: it names the axis that has grown longest."""
    if compressed <= grid.budget["shard"]:
        return []
    longest = max(POSITION_AXES, key=lambda axis: len(grid.axes[axis]))
    message = (
        f"shard {document['id']} takes {compressed:,} bytes compressed, over budget.shard of {grid.budget['shard']:,}; "
        f"its longest axis is {longest} with {len(grid.axes[longest])} positions"
    )
    hint = f"take positions off axes.{longest}, or raise budget.shard"
    return [LessonError(message, path=GRID_FILE, hint=hint)]


def value(text: str) -> float | None:
    """The number that a cell shows, for what is drawn of it; None where it shows a dash."""
    digits = text.replace(",", "").removeprefix("< ")
    try:
        return float(digits)
    except ValueError:
        return None


def roofline_rows(document: Mapping[str, Any], grid: Grid, point: Point) -> tuple[list[Any], list[Any]]:
    """(kernels, trails): the rows of the roofline's datasets at a point, as bench_chart.roofline takes them.

    The client makes the same rows from the same columns when the point moves.
    """

    def text(column: str, at: Point = point) -> str:
        return look_up(document, grid, at, column)

    kernels = [
        {
            "kernel": kernel,
            "family": display.FAMILIES[kernel],
            "x": value(text(f"{kernel}.arithmetic_intensity")),
            "y": value(text(f"{kernel}.attainable_flops")),
            "share": (value(text(f"{kernel}.share")) or 0) / 100,
            "largest": kernel == text("largest"),
            "memory": text("fits"),
            "label": text(f"{kernel}.label"),
            "sublabel": text("sublabel") if kernel == text("largest") else "",
            "tip": text(f"{kernel}.tip"),
        }
        for kernel in KERNELS
    ]
    trails: list[dict[str, Any]] = []
    for family, kernel in display.TRAILS.items():
        ridge, peak = (value(text(column)) or 0 for column in display.CORNERS[family])
        before = None
        ends = {grid.axes["tokens"][0]: "first", grid.axes["tokens"][-1]: "last"} if family == "matmuls" else {}
        for tokens in grid.axes["tokens"]:
            at = replace(point, tokens=tokens)
            x = value(text(f"{kernel}.arithmetic_intensity", at))
            if x is None:
                continue
            if before is not None and before < ridge < x:
                trails.append({"family": family, "tokens": None, "end": None, "x": ridge, "y": peak})
            y = value(text(f"{kernel}.attainable_flops", at))
            trails.append({"family": family, "tokens": tokens, "end": ends.get(tokens), "x": x, "y": y})
            before = x
    return kernels, trails
