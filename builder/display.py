"""What the page and the command line say of a pass: the cells of the ledger, the readouts, the verdict, the labels.

Text is made here once, in Python, through the table of units.py. The browser prints it and computes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from builder.kernels import KERNEL_LABELS, KERNELS
from builder.ledger import GROUPS
from builder.roofline import BOUNDS, COMPUTE, FITS, LAUNCH_FLOOR, MEMORY, NO_BYTES, RIDGE, Array, Roof, ratio
from builder.units import GIB, QUANTITIES, one_decimal, significant, whole

DASH = "–"
COLUMNS = ("flops", "bytes_moved", "arithmetic_intensity", "bound", "attainable_flops", "time", "share")
COLUMN_LABELS = {column: QUANTITIES[column].label for column in COLUMNS if column != "bound"} | {"bound": "Bound by"}
BOUND_TEXTS = {MEMORY: "memory", RIDGE: "at the ridge", COMPUTE: "compute", NO_BYTES: DASH}
# beside the bound of a row whose kernels are too short for it, as a mark and in words; and what the mark means
LATENCY_MARK, LATENCY_TEXT = "†", "likely latency-bound"
LATENCY_REASON = f"under {LAUNCH_FLOOR * 1e6:g}\u00a0µs a kernel"
BOUND_NAMES = {name or "none": BOUND_TEXTS[code] for code, name in BOUNDS.items()}

# one unit a column, so that its rows can be compared by eye; work alone has two, see work_unit
COLUMN_UNITS: dict[str, tuple[float, str]] = {
    "bytes_moved": (float(GIB), "GiB"),
    "arithmetic_intensity": (1.0, "FLOP/B"),
    "attainable_flops": (1e12, "TFLOP/s"),
    "time": (1e-3, "ms"),
    "share": (0.01, "%"),
}

SHORT_LABELS = {
    "qkv_proj": "QKV",
    "attention": "attention",
    "out_proj": "output",
    "gate_proj": "gate",
    "up_proj": "up",
    "down_proj": "down",
    "elementwise": "elementwise",
    "lm_head": "LM head",
}
# whose row stands for a family's trail on the roofline, in the order of drawing
TRAILS = {"lm_head": "lm_head", "matmuls": "gate_proj", "attention": "attention"}

# column of the ridge and of the peak that a family's trail turns at: attention computes in BF16 whatever the weights
CORNERS = {
    family: ("gpu.bf16_ridge", "gpu.bf16_peak") if family == "attention" else ("gpu.ridge", "gpu.peak")
    for family in TRAILS
}

# the total row has these columns
TOTALS = {
    "flops": "total_flops",
    "bytes_moved": "total_bytes",
    "arithmetic_intensity": "total_intensity",
    "time": "total_time",
}
FAMILIES = {**dict.fromkeys(GROUPS["matmuls"], "matmuls"), "attention": "attention"}
FAMILIES |= {"elementwise": "elementwise", "lm_head": "lm_head"}


def work_unit(matmul_flops: float) -> tuple[float, str]:
    """(size, name) of the unit of the FLOPs column: TFLOP once the matmuls of a pass reach five.

    They depend on the tokens alone, so a column keeps its unit while a reader moves the context.
    """
    return (1e12, "TFLOP") if matmul_flops >= 5e12 else (1e9, "GFLOP")


@cache
def cell(column: str, unit: float) -> Callable[[float], str]:
    """value in SI → text of a cell of a column whose unit has this size. `bound` takes the code of a bound."""
    if column == "bound":
        return lambda value: BOUND_TEXTS[int(value)]
    text = QUANTITIES[column].text
    if column in ("arithmetic_intensity", "attainable_flops"):
        # a row that moves no byte has neither
        return lambda value: text(value / unit) if value > 0 else DASH
    return lambda value: text(value / unit)


@cache
def readout(quantity: str) -> Callable[[float], str]:
    """value in SI → the digits of a readout, in the first unit of its ladder."""
    size, text = QUANTITIES[quantity].ladder[0][0], QUANTITIES[quantity].text
    return lambda value: text(value / size)


# What the sentences and labels ask of a share: half of the pass, and whether it is worth a name; of a distance: far.
_HALF, _LOUD, _FAR = 0.5, 0.01, 2

_SAME = 5e-10  # a share that is no farther from an edge of rounding is on it


def share_codes(shares: Array) -> Array:
    """Shares as the numbers of bins: 0 for nothing, else 1 + how often 0.05 % goes into one.

    Every rounding that a share is shown with has its edges on these bins, so SHARE_TEXTS and ROUGH_TEXTS[code] are
    exactly what formatting the share itself would give.
    """
    bins = shares * 2000
    codes = np.where(shares > 0, 1 + np.minimum(bins.astype(int), 2000), 0)
    on_edge = (shares > 0) & (np.abs(bins - np.rint(bins)) < _SAME * 2000)
    for place in zip(*np.nonzero(on_edge), strict=True):
        # on an edge, the bin is the one on whose side formatting rounds
        share, code = float(shares[place]), int(codes[place])
        texts = _SHARE_TEXT(share), rough_percent(share)
        beside = (near for near in (code, code - 1, code + 1) if 0 < near < len(SHARE_TEXTS))
        codes[place] = next((near for near in beside if (SHARE_TEXTS[near], ROUGH_TEXTS[near]) == texts), code)
    return codes


def _middle(code: int) -> float:
    return 0.0 if code == 0 else min((code - 0.5) / 2000, 1.0)


def rough_percent(share: float) -> str:
    """A share as a sentence says it: '83 %', '7.4 %', '< 0.1 %'; '99.9 %' is all but the last bit, '100 %' is all."""
    digits = _SHARE_TEXT(share)
    if digits[0] == "<":
        digits = digits.replace(" ", "\u00a0")
    elif len(digits) > 3:  # from '10.0' on
        if whole(share / 0.01) != "100" or share > 1 - _SAME:
            digits = whole(share / 0.01)
        elif digits == "100.0":
            digits = "99.9"
    return f"{digits}\u00a0%"


_SHARE_TEXT = cell("share", 0.01)
SHARE_TEXTS = tuple(_SHARE_TEXT(_middle(code)) for code in range(2002))
ROUGH_TEXTS = tuple(rough_percent(_middle(code)) for code in range(2002))


def article(label: str) -> str:
    """'an H100', 'a B200': by the sound of the first letter."""
    return f"{'an' if label[:1].upper() in 'AEFHILMNORSX' else 'a'} {label}"


@dataclass(frozen=True)
class Position:
    """One point of a Pass as plain numbers, with what the sentences need beside it."""

    phase: str
    tokens: int
    roof: Roof
    share: Mapping[str, float]
    intensity: Mapping[str, float]
    bound: Mapping[str, int]
    fit: str
    largest_batch: int

    @cached_property
    def largest(self) -> str:
        """The kernel that takes most of the pass; the first of equals."""
        return max(self.share, key=self.share.__getitem__)

    @property
    def ridges_below(self) -> float:
        """As ridges_below says of many points."""
        return float(ridges_below(self.roof, np.asarray(self.intensity["attention"])))

    @cached_property
    def matmuls(self) -> float:
        """Share of the five per-layer matmuls."""
        return sum(self.share[kernel] for kernel in GROUPS["matmuls"])


@dataclass(frozen=True)
class Positions:
    """Points of one phase under one roof, as arrays by point; `share`, `intensity` and `bound` by kernel and point.

    `fit`: indices into FITS.
    """

    phase: str
    tokens: Array
    roof: Roof
    share: Array
    intensity: Array
    bound: Array
    fit: Array
    largest_batch: Array

    def __getitem__(self, index: int) -> Position:
        def row(array: Array) -> dict[str, Any]:
            return dict(zip(KERNELS, array[:, index].tolist(), strict=True))

        return Position(
            phase=self.phase,
            tokens=int(self.tokens[index]),
            roof=self.roof,
            share=row(self.share),
            intensity=row(self.intensity),
            bound=row(self.bound),
            fit=FITS[int(self.fit[index])],
            largest_batch=int(self.largest_batch[index]),
        )

    def kinds(self) -> Array:
        """A number for each point: those with the same number get the same sentences.

        It is made of the answers to all that the sentences below ask of a Position; a new question belongs here too.
        """
        at = {kernel: index for index, kernel in enumerate(KERNELS)}
        attention, elementwise, head = (self.share[at[name]] for name in ("attention", "elementwise", "lm_head"))
        matmuls = sum(self.share[at[kernel]] for kernel in GROUPS["matmuls"])
        groups = (matmuls, head, attention)
        anchors = [self.intensity[at[_ANCHORS[name]]] for name in ("matmuls", "lm_head", "attention")]
        pairs = ((0, 1), (0, 2), (1, 2))
        answers = [
            self.tokens == 1,
            self.fit,
            self.largest_batch > 0,
            attention >= _HALF,
            matmuls + head >= _HALF,
            self.bound[at["attention"]] - NO_BYTES,
            self.bound[at["gate_proj"]] - NO_BYTES,
            ridges_below(self.roof, self.intensity[at["attention"]]) < _FAR,
            self.share.argmax(axis=0),
            elementwise >= _LOUD,
            *(group >= _LOUD for group in groups),
            *(groups[first] >= groups[second] for first, second in pairs),
            *(_together(anchors[first], anchors[second]) for first, second in pairs),
        ]
        kinds = np.zeros(self.tokens.shape, dtype=np.int64)
        for answer in answers:
            kinds = 8 * kinds + np.asarray(answer, dtype=np.int64)
        return kinds


def ridges_below(roof: Roof, attention: Array) -> Array:
    """How many times attention's intensity lies under the ridge of its arithmetic; 0 where it has none."""
    return ratio(roof.bf16_ridge, attention)


def gpu_texts(roof: Roof) -> dict[str, str]:
    """What the page says of a GPU wherever the point lies."""
    peak, bandwidth = significant(roof.peak / 1e12), significant(roof.bandwidth / 1e12)
    return {
        "gpu.label": roof.gpu.label,
        "gpu.one": article(roof.gpu.label),
        "gpu.memory": one_decimal(roof.gpu.memory_bytes / GIB),
        "gpu.ridge": whole(roof.ridge),
        "gpu.bf16_ridge": whole(roof.bf16_ridge),
        "gpu.peak": peak,
        "gpu.bf16_peak": significant(roof.bf16_peak / 1e12),
        "gpu.arithmetic": roof.math,
        "gpu.roof": f"{peak} at peak{' in FP8' if roof.math == 'fp8' else ''}, {bandwidth} TB/s",
    }


# A sentence is a template: {slots} name columns, and page and command line fill them with the text of that column.
# The same few templates serve thousands of points.


def fill(template: str, text_of: Callable[[str], str]) -> str:
    """A template with its slots filled; text_of: name of a column → its text, taken as it is."""
    return re.sub(r"\{([^}]+)\}", lambda slot: text_of(slot[1]), template)


def _binding(at: Position) -> tuple[str, str]:
    """(what binds and which kernel, the same with how far from the ridge): the two lengths of the verdict."""
    ridge = "{gpu.ridge}"
    if at.share["attention"] >= _HALF:
        # attention computes in BF16, whatever arithmetic the matmuls use
        own = "{gpu.bf16_ridge}"
        over = "over the cache" if at.phase == "decode" else "over the prompt"
        head = f"attention {over} takes {{attention.rough}} of the pass."
        run = "{attention.arithmetic_intensity} FLOPs a byte"
        if at.bound["attention"] == COMPUTE:
            return f"Compute-bound: {head}", f"Compute-bound: {head} It runs at {run}, past the ridge at {own}."
        if at.bound["attention"] == RIDGE or at.ridges_below < _FAR:
            kind = "At the ridge" if at.bound["attention"] == RIDGE else "Memory-bound"
            return f"{kind}: {head}", f"{kind}: {head} It runs at {run}; this {{gpu.label}} needs {own}."
        far = f"At {run} it sits {{ridges_below}} times under the ridge."
        return f"Memory-bound: {head}", f"Memory-bound: {head} {far}"
    if at.bound["gate_proj"] == MEMORY:
        far = f"{{total.arithmetic_intensity}} FLOPs a byte, where this {{gpu.label}} needs {ridge}."
        if at.matmuls + at.share["lm_head"] >= _HALF:
            head = f"every weight is read for {'one token' if at.tokens == 1 else '{tokens} tokens'}."
        else:
            head = "five matmuls take {matmuls.rough} of the pass, attention {attention.rough}."
        return f"Memory-bound: {head}", f"Memory-bound: {head} {far}"
    run = "the matmuls run at {gate_proj.arithmetic_intensity} FLOPs a byte"
    if at.bound["gate_proj"] == RIDGE:
        far = f"From {ridge} on this {{gpu.label}} waits for arithmetic alone."
        return f"At the ridge: {run}.", f"At the ridge: {run}. {far}"
    on_slope = "attention" if at.bound["attention"] == MEMORY else "elementwise"
    far = f"{on_slope.capitalize()} stays on the slope, {{{on_slope}.rough}} of the pass."
    return f"Compute-bound: {run}.", f"Compute-bound: {run}, past the ridge at {ridge}. {far}"


def _memory_warning(at: Position) -> str:
    """What to say of memory where the point doesn't simply fit; empty where it does."""
    if at.fit == "fits":
        return ""
    if at.fit == "tight":
        return "Tight: {resident} of {gpu.memory} GiB leaves no room for a runtime."
    warning = "It does not fit: needs {resident} GiB; {gpu.one} has {gpu.memory}."
    if at.phase == "decode":
        warning += " A batch of {largest_batch} would." if at.largest_batch else " Not one would."
    return warning


def verdict(at: Position) -> tuple[str, str]:
    """(verdict, warning): what binds, which kernel, how far from the ridge; and whether it fits. Templates.

    Filled and together at most 141 characters, so that they stand on two lines: a warning takes the place of the
    distance.
    """
    short, long = _binding(at)
    warning = _memory_warning(at)
    return (short, warning) if warning else (long, "")


# columns that hold a sum of rows' shares
SUMS = GROUPS

_ANCHORS = {"matmuls": "gate_proj", "lm_head": "lm_head", "attention": "attention"}
_GROUP_LABELS = {
    "matmuls": "five matmuls {matmuls.rough}",
    "lm_head": "LM head {lm_head.rough}",
    "attention": "attention {attention.rough}",
}


def tip(kernel: str) -> str:
    """What pointing at a kernel's dot says of it: a template of its cells, which the ledger shows too."""
    run, reach = f"{{{kernel}.arithmetic_intensity}} FLOP/B", f"{{{kernel}.attainable_flops}} TFLOP/s"
    return f"{KERNEL_LABELS[kernel]}: {run}, {reach} attainable, {{{kernel}.share}} % of the pass"


def _together(a: Any, b: Any) -> Any:
    """Whether two dots on the slope or the roof, or two rows of dots, lie so close that one label must serve both."""
    return (a > 0) & (b > 0) & (a < 1.33 * b) & (b < 1.33 * a)


def chart_labels(at: Position) -> dict[str, tuple[str, str]]:
    """Kernel → (label, line below it) for the dots of the roofline that carry one. Both are templates.

    The largest is named first. The five matmuls lie so close that they are one label. Under 1 % nothing is named but
    the elementwise row, which lies apart.
    """
    largest, share, x = at.largest, at.share, at.intensity
    loud = largest == "elementwise" or share["elementwise"] >= _LOUD
    labels = {"elementwise": ("elementwise {elementwise.rough}" if loud else "elementwise", "")}
    groups = {"matmuls": at.matmuls, "lm_head": share["lm_head"], "attention": share["attention"]}
    # heaviest first: each takes along what lies on it
    left = [name for name in sorted(groups, key=lambda name: -groups[name]) if groups[name] >= _LOUD]
    while left:
        first = left.pop(0)
        near = [name for name in left if _together(x[_ANCHORS[first]], x[_ANCHORS[name]])]
        left = [name for name in left if name not in near]
        if FAMILIES[largest] in (first, *near):
            head = f"{SHORT_LABELS[largest]} {{{largest}.rough}}"
            rest = [name for name in (first, *near) if name == "matmuls" or name != FAMILIES[largest]]
            below = ", ".join(_GROUP_LABELS[name] for name in rest)
            if not below and at.phase == "decode":
                below = "at {attention.arithmetic_intensity} whatever the batch" if largest == "attention" else ""
            labels[largest] = (head, below)
        else:
            labels[_ANCHORS[first]] = (", ".join(_GROUP_LABELS[name] for name in (first, *near)), "")
    return labels
