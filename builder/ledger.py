"""The cost of one forward pass: FLOPs and HBM bytes of every kernel, exact.

One formula per operation. Token and context counts are Python ints or NumPy integer arrays alike: the same lines cost
one point on the command line and the whole grid of the page. Prefill and decode are two calls of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from builder.catalog import Model
from builder.errors import LessonError, did_you_mean
from builder.units import ACTIVATION_BYTES, DTYPE_BITS, KV_DTYPES, WEIGHT_DTYPES

# a Python int or an integer array; NumPy's own types can't say "both, and the same one comes back"
Count = Any

PHASES = ("decode", "prefill")
ATTENTIONS = ("gqa", "mha", "mqa")
MOST_TOKENS = 2**24  # of tokens or context: far beyond any model

# the order of the rows, as the pass runs them
KERNELS = ("qkv_proj", "attention", "out_proj", "gate_proj", "up_proj", "down_proj", "elementwise", "lm_head")

# names for sums of rows; `matmuls` leaves the LM head out, which runs once and not in every layer
GROUPS: dict[str, tuple[str, ...]] = {"matmuls": ("qkv_proj", "out_proj", "gate_proj", "up_proj", "down_proj")}

KERNEL_LABELS = {
    "qkv_proj": "QKV projection",
    "attention": "Attention",
    "out_proj": "Output projection",
    "gate_proj": "Gate projection",
    "up_proj": "Up projection",
    "down_proj": "Down projection",
    "elementwise": "Elementwise",
    "lm_head": "LM head",
}


@dataclass(frozen=True)
class Point:
    """One position of the bench.

    decode: `tokens` sequences each add one token and read `context` cache entries, their own included.
    prefill: one sequence adds `tokens` tokens behind `context` cached ones.
    """

    phase: str
    tokens: Count
    context: Count
    gpu: str
    weights: str
    kv: str
    attention: str

    def check(self) -> None:
        """Raise LessonError where a coordinate of one (scalar) point is none."""
        for axis, value, known in (
            ("phase", self.phase, PHASES),
            ("weights", self.weights, WEIGHT_DTYPES),
            ("kv", self.kv, KV_DTYPES),
            ("attention", self.attention, ATTENTIONS),
        ):
            if value not in known:
                raise LessonError(f"{axis} is none of its values: '{value}'", hint=did_you_mean(value, known))
        for axis, count, least in (("tokens", self.tokens, 1), ("context", self.context, 0)):
            if not least <= count <= MOST_TOKENS:
                raise LessonError(f"{axis} must be between {least} and {MOST_TOKENS:,}, not {count:,}")
        if self.phase == "decode" and self.context < 1:
            raise LessonError(
                "decode needs a context of at least 1: a new token reads its own cache entry",
                hint="use --context 1 or more, or --phase prefill",
            )


@dataclass(frozen=True)
class Kernel:
    """One row of the ledger, summed over the layers: FLOPs and bytes to and from HBM."""

    name: str
    flops: Count
    bytes_moved: Count


def matmul(tokens: Count, inputs: int, outputs: int, weight_bits: int) -> tuple[Count, Count]:
    """(FLOPs, bytes) of activations [tokens, inputs] times weights [inputs, outputs].

    A multiply and an add per weight and token; each weight read once, inputs read and outputs written in BF16.
    """
    flops = 2 * tokens * inputs * outputs
    weight_bytes = inputs * outputs * weight_bits / 8
    return flops, weight_bytes + ACTIVATION_BYTES * tokens * (inputs + outputs)


def attention(model: Model, phase: str, tokens: Count, context: Count, kv_bits: int) -> tuple[Count, Count]:
    """(FLOPs, bytes) of scores and weighted sum in all layers.

    Two products of 2 FLOPs per query element and cache entry read. Scores stay on chip: no HBM bytes. In prefill each
    of the new tokens sees the cached ones, the new ones before it and itself: counted exactly, nothing masked is
    computed; K and V are read once.
    """
    if phase == "decode":
        entries_scored = entries_read = tokens * context
    else:
        entries_scored = tokens * context + tokens * (tokens + 1) // 2
        entries_read = context + tokens
    flops = 4 * model.layers * model.q_width * entries_scored
    return flops, 2 * model.layers * model.kv_width * entries_read * kv_bits / 8


def elementwise(model: Model, tokens: Count) -> tuple[Count, Count]:
    """(FLOPs, bytes) of everything between the matmuls, in all layers; each part a kernel of its own, not fused.

    RoPE's own FLOPs are not counted: about 3(q+v) a token and layer, under a thousandth of any pass.
    """
    hidden, q, v, ffn = model.hidden_size, model.q_width, model.kv_width, model.intermediate_size
    flops = (
        2 * 4 * hidden  # two RMSNorms: square, add, scale, weight
        + 2 * hidden  # two residual adds
        + (4 * (q + v) if model.qk_norm else 0)  # q- and k-norm
        + 3 * ffn  # SwiGLU: SiLU counted as two, and the product
    )
    elements = (
        4 * hidden  # norms: read and write, twice
        + 6 * hidden  # residual adds: two reads, one write, twice
        + 2 * q
        + 4 * v  # (q/k-norm,) RoPE and cache append, in one kernel: q and k in place, k and v into the cache
        + 3 * ffn  # SwiGLU: two reads, one write
    )
    # two bytes an element whatever the cache's dtype is
    return model.layers * tokens * flops, model.layers * tokens * elements * ACTIVATION_BYTES


def _never_wrapping(model: Model, point: Point) -> Point:
    """The point in counts whose products can't wrap: Python's ints never do, NumPy's do silently at 64 bits.

    Integer arrays become floats where the largest row would not fit: no longer exact, but right to 16 digits.
    """
    counts = (point.tokens, point.context)
    if all(isinstance(count, int) for count in counts):
        return point
    tokens, context = (np.asarray(count) for count in counts)
    corner = replace(point, tokens=int(tokens.max(initial=1)), context=int(context.max(initial=0)))
    # 2⁴ of room for the bits of a cache element, which are multiplied before they are divided into bytes
    exact = all(row.flops < 2**59 and row.bytes_moved < 2**59 for row in forward_pass(model, corner))
    wide = [count.astype(np.int64 if exact and count.dtype.kind in "iu" else float) for count in (tokens, context)]
    return replace(point, tokens=wide[0], context=wide[1])


def forward_pass(model: Model, point: Point) -> tuple[Kernel, ...]:
    """The eight rows of one pass, in the order of KERNELS.

    point: tokens and context as ints, or as integer arrays of shapes that broadcast; the rows' flops and bytes_moved
    have the broadcast shape or a smaller one that broadcasts to it. point.attention picks the number of KV heads:
    gqa as published, mha one per query head, mqa one. Source: the cost model's page in the README.
    """
    point = _never_wrapping(model, point)
    model = model.with_attention(point.attention)
    tokens, weight_bits = point.tokens, DTYPE_BITS[point.weights]
    layers, hidden, ffn = model.layers, model.hidden_size, model.intermediate_size

    def in_every_layer(name: str, inputs: int, outputs: int) -> Kernel:
        flops, moved = matmul(tokens, inputs, outputs, weight_bits)
        return Kernel(name, layers * flops, layers * moved)

    head_flops, head_bytes = matmul(tokens, hidden, model.vocab_size, weight_bits)
    return (
        in_every_layer("qkv_proj", hidden, model.q_width + 2 * model.kv_width),
        Kernel("attention", *attention(model, point.phase, tokens, point.context, DTYPE_BITS[point.kv])),
        in_every_layer("out_proj", model.q_width, hidden),
        # gate and up are launched separately: each reads its input
        in_every_layer("gate_proj", hidden, ffn),
        in_every_layer("up_proj", hidden, ffn),
        in_every_layer("down_proj", ffn, hidden),
        Kernel("elementwise", *elementwise(model, tokens)),
        # the rows of the embedding table that this pass looks up; the table itself isn't streamed
        Kernel("lm_head", head_flops, head_bytes + ACTIVATION_BYTES * tokens * hidden),
    )
