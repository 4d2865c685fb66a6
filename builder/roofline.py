"""Rows × GPU → time, bound, attainable FLOP/s, the pass as a whole, and what has to stay in memory.

Times are estimates: each row runs at a fixed fraction of the quoted peak or of the quoted bandwidth, whichever takes
longer. Ridge, bound and attainable FLOP/s use the quoted peaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from builder.assumptions import DEFAULT, Assumptions
from builder.catalog import Gpu, Model
from builder.ledger import Kernel, Point, head_storage, storage
from builder.units import DTYPE_BITS

# What a good kernel reaches. Large BF16 matmuls run at about 80 % of the quoted peak on an H100, power-limited ones
# less; long streaming reads at about 80 % of the quoted bandwidth. Measured kernels are compared with the model in the
# lesson's part on trust.
COMPUTE_EFFICIENCY = 0.75
BANDWIDTH_EFFICIENCY = 0.80

# A serving engine takes 90 % of the memory by default and leaves the rest to the runtime.
USABLE_MEMORY = 0.90

# A kernel takes a few microseconds to launch, fill the chip and drain, however little it does. Where the model gives it
# less than this, the time is likely latency: attention for one sequence of 512 tokens was measured at 13 µs a layer on
# an H100, and its bytes alone would take 0.8.
LAUNCH_FLOOR = 5e-6  # seconds a kernel

MEMORY, RIDGE, COMPUTE, NO_BYTES = 0, 1, 2, -1
BOUNDS: dict[int, str | None] = {MEMORY: "memory", RIDGE: "ridge", COMPUTE: "compute", NO_BYTES: None}
FITS = ("fits", "tight", "no")

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Pass:
    """One pass, or a whole grid of them. Shapes: rows [kernel, …], totals […]; SI units.

    arithmetic_intensity and attainable_flops of a row that moves no byte are 0 and its bound is NO_BYTES: there is no
    number, and never a NaN. shares are fractions of the pass' time. latency_bound: whether the FLOPs and bytes of each
    of a row's kernels take less than LAUNCH_FLOOR.
    """

    kernels: tuple[str, ...]
    flops: Array
    bytes_moved: Array
    arithmetic_intensity: Array
    bound: Array
    attainable_flops: Array
    time: Array
    share: Array
    latency_bound: Array
    total_flops: Array
    total_bytes: Array
    total_intensity: Array
    total_time: Array
    throughput: Array
    peak_share: Array

    def row(self, kernel: str) -> int:
        """The index of a kernel's row."""
        return self.kernels.index(kernel)


def ratio(top: Any, bottom: Any) -> Array:
    """top ÷ bottom, 0 where bottom is 0."""
    top, bottom = np.asarray(top, dtype=float), np.asarray(bottom, dtype=float)
    shape = np.broadcast_shapes(top.shape, bottom.shape)
    quotient: Array = np.divide(top, bottom, out=np.zeros(shape), where=bottom > 0)
    return quotient


def bound_of(arithmetic_intensity: Any, bytes_moved: Any, ridge_point: Any) -> Array:
    """MEMORY below the intensity where a row's two times are equal, COMPUTE from the ridge on, RIDGE between.

    The times flip a little below the ridge (H100: 277 of 295), since arithmetic reaches a smaller fraction of its peak
    than streaming does. NO_BYTES where nothing is moved.
    """
    flip = COMPUTE_EFFICIENCY / BANDWIDTH_EFFICIENCY * ridge_point
    intensity = np.asarray(arithmetic_intensity)
    bound = np.where(intensity < flip, MEMORY, np.where(intensity < ridge_point, RIDGE, COMPUTE))
    return np.where(np.asarray(bytes_moved) > 0, bound, NO_BYTES)


@dataclass(frozen=True)
class Roof:
    """The roof that a pass is held against: peak in FLOP/s, of its matmuls' arithmetic, and bandwidth in byte/s."""

    gpu: Gpu
    math: str
    peak: float
    bandwidth: float

    @property
    def ridge(self) -> float:
        """FLOP/byte at which slope and roof meet."""
        return self.peak / self.bandwidth

    @property
    def bf16_ridge(self) -> float:
        """The ridge of BF16 arithmetic, which attention does whatever the weights are; FLOP/byte."""
        return self.bf16_peak / self.bandwidth

    @property
    def bf16_peak(self) -> float:
        """The peak of BF16 arithmetic, FLOP/s, scaled like the other."""
        return self.peak * self.gpu.peak_flops / self.gpu.peak(self.math)


def roof_of(gpu: Gpu, weights: str, assumptions: Assumptions = DEFAULT) -> Roof:
    """The Roof over a choice of weights. Raises LessonError where it needs FP8 arithmetic that the GPU hasn't."""
    math = storage(weights).math
    return Roof(gpu, math, gpu.peak(math) * assumptions.peak_scale, gpu.hbm_bandwidth * assumptions.bandwidth_scale)


def cost(rows: Sequence[Kernel], gpu: Gpu, tokens: Any, assumptions: Assumptions = DEFAULT) -> Pass:
    """Rows of one pass (scalars, or arrays of shapes that broadcast) on one GPU → Pass.

    A row's time is the longer of its two: FLOPs at COMPUTE_EFFICIENCY of the peak, bytes at BANDWIDTH_EFFICIENCY of
    the bandwidth; and its launch gaps. The pass is the sum of its rows, nothing overlaps, unless overlap is perfect.
    throughput: new tokens per second. Raises LessonError where rows need FP8 arithmetic that the GPU hasn't.
    """
    shape = np.broadcast_shapes(*(np.shape(part) for row in rows for part in (row.flops, row.bytes_moved)))
    flops, moved = np.empty((2, len(rows), *shape))
    for index, row in enumerate(rows):
        flops[index], moved[index] = row.flops, row.bytes_moved
    column = (len(rows), *(1,) * len(shape))  # a number a row, to broadcast over the points
    peak = np.reshape([gpu.peak(row.math) * assumptions.peak_scale for row in rows], column)
    gaps = np.reshape([row.launches * assumptions.launch_gap for row in rows], column)
    bandwidth = gpu.hbm_bandwidth * assumptions.bandwidth_scale
    intensity = ratio(flops, moved)
    bound = bound_of(intensity, moved, peak / bandwidth)
    attainable = np.minimum(peak, bandwidth * intensity)  # 0, like the intensity, where nothing is moved
    computing, moving = flops / (COMPUTE_EFFICIENCY * peak), moved / (BANDWIDTH_EFFICIENCY * bandwidth)
    working = np.maximum(computing, moving)
    time = working + gaps
    # the LM head, which no layer launches, is a kernel too; assumed gaps are no work
    kernels = np.reshape([max(row.launches, 1) for row in rows], column)
    # row after row: NumPy's sum adds a single point in another order than a grid, and the last bit would differ
    total_flops, total_bytes, total_time = (np.asarray(sum(part)) for part in (flops, moved, time))
    share = ratio(time, total_time)
    if assumptions.overlap == "perfect":
        total_time = np.maximum(sum(computing), sum(moving)) + gaps.sum()
    return Pass(
        kernels=tuple(row.name for row in rows),
        flops=flops,
        bytes_moved=moved,
        arithmetic_intensity=intensity,
        bound=bound,
        attainable_flops=attainable,
        time=time,
        share=share,
        latency_bound=working < LAUNCH_FLOOR * kernels,
        total_flops=total_flops,
        total_bytes=total_bytes,
        total_intensity=ratio(total_flops, total_bytes),
        total_time=total_time,
        throughput=ratio(tokens, total_time),
        peak_share=ratio(total_flops, total_time * peak.max()),  # of the widest arithmetic in it
    )


def weight_bytes(model: Model, weights: str, assumptions: Assumptions = DEFAULT) -> float:
    """Bytes of all weights in memory: the streamed ones as they are stored, the rest in BF16.

    A tied table is the LM head: streamed, and there once.
    """
    head = model.embedding_parameters * head_storage(weights, assumptions).weight_bits
    layers = (model.streamed_parameters - model.embedding_parameters) * storage(weights, assumptions).weight_bits
    resident_only = model.small_parameters + (0 if model.tied else model.embedding_parameters)
    return (head + layers + resident_only * DTYPE_BITS["bf16"]) / 8


def cache_bytes_per_token(model: Model, kv: str) -> float:
    """Bytes of keys and values that one token leaves in the cache, all layers."""
    return 2 * model.layers * model.kv_width * DTYPE_BITS[kv] / 8


def resident_bytes(model: Model, point: Point, assumptions: Assumptions = DEFAULT) -> Any:
    """Bytes that must be in memory after the pass: weights and the cache of all sequences."""
    model = model.with_attention(point.attention)
    cached = point.tokens * point.context if point.phase == "decode" else point.context + point.tokens
    return weight_bytes(model, point.weights, assumptions) + cache_bytes_per_token(model, point.kv) * cached


def fits(resident: Any, gpu: Gpu) -> Array:
    """Index into FITS: up to USABLE_MEMORY of the GPU's memory, up to all of it ("tight"), more."""
    resident = np.asarray(resident)
    return np.where(resident <= USABLE_MEMORY * gpu.memory_bytes, 0, np.where(resident <= gpu.memory_bytes, 1, 2))


def largest_batch(model: Model, point: Point, gpu: Gpu, assumptions: Assumptions = DEFAULT) -> Any:
    """How many sequences of point.context tokens fit beside the weights; 0 where the weights alone don't.

    Shape of point.context, whole numbers. Says something of decode only.
    """
    model = model.with_attention(point.attention)
    room = USABLE_MEMORY * gpu.memory_bytes - weight_bytes(model, point.weights, assumptions)
    each = cache_bytes_per_token(model, point.kv) * np.maximum(point.context, 1)
    return np.maximum(np.floor(room / each), 0).astype(int)
