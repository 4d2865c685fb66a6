"""The cost of one forward pass: FLOPs and HBM bytes of every kernel, exact.

One formula per operation. Token and context counts are Python ints or NumPy integer arrays alike: the same lines cost
one point on the command line and the whole grid of the page. Prefill and decode are two calls of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from builder.assumptions import DEFAULT, Assumptions
from builder.catalog import Model
from builder.errors import LessonError, did_you_mean
from builder.kernels import KERNELS
from builder.units import ACTIVATION_BYTES, DTYPE_BITS, KV_DTYPES, WEIGHT_DTYPES

# a Python int or an integer array; NumPy's own types can't say "both, and the same one comes back"
Count = Any

PHASES = ("decode", "prefill")
ATTENTIONS = ("gqa", "mha", "mqa")
# the axes that have names for positions; the GPUs are the content's
CHOICES: dict[str, tuple[str, ...]] = {
    "phase": PHASES,
    "weights": WEIGHT_DTYPES,
    "kv": KV_DTYPES,
    "attention": ATTENTIONS,
}
MOST_TOKENS = 2**24  # of tokens or context: far beyond any model

# names for sums of rows; `matmuls` leaves the LM head out, which runs once and not in every layer
GROUPS: dict[str, tuple[str, ...]] = {"matmuls": ("qkv_proj", "out_proj", "gate_proj", "up_proj", "down_proj")}


@dataclass(frozen=True)
class Point:
    """One position of the bench; its fields are the axes, in the order of the controls.

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
        for axis, known in CHOICES.items():
            value = getattr(self, axis)
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


# kernels that a layer launches, by row: norms, adds, RoPE with the cache append (and the q/k-norm) and SwiGLU are apart
LAUNCHES = dict.fromkeys(KERNELS, 1) | {"elementwise": 6, "lm_head": 0}
TILE = 128  # query rows that one block of an attention kernel takes


@dataclass(frozen=True)
class Kernel:
    """One row of the ledger, summed over the layers: FLOPs and bytes to and from HBM.

    math: the arithmetic, bf16 or fp8, whose peak bounds it. launches: how often a layer's kernels are launched in it,
    all layers together.
    """

    name: str
    flops: Count
    bytes_moved: Count
    math: str = "bf16"
    launches: int = 0


@dataclass(frozen=True)
class Storage:
    """How a matmul's operands lie in HBM: bits per weight, bytes per element read and written, and its arithmetic."""

    weight_bits: float
    input_bytes: int
    output_bytes: int
    math: str


def storage(weights: str, assumptions: Assumptions = DEFAULT) -> Storage:
    """The Storage of a choice of weights: all but w8a8 are weight-only, their arithmetic stays in BF16."""
    on_chip = assumptions.activations == "l2"
    read, written = (0, 0) if on_chip else (ACTIVATION_BYTES, ACTIVATION_BYTES)
    if weights == "w8a8":
        return Storage(DTYPE_BITS["w8a8"], min(read, 1), written, "fp8")
    scales = 20 / 128 if weights == "int4" and assumptions.group_scales == "g128" else 0  # 2 bytes and 4 bits
    return Storage(DTYPE_BITS[weights] + scales, read, written, "bf16")


def head_storage(weights: str, assumptions: Assumptions = DEFAULT) -> Storage:
    """The Storage of the LM head, which published quantized checkpoints mostly keep in BF16."""
    return storage("bf16" if assumptions.lm_head == "bf16" else weights, assumptions)


def matmul(tokens: Count, inputs: int, outputs: int, stored: Storage) -> tuple[Count, Count]:
    """(FLOPs, bytes) of activations [tokens, inputs] times weights [inputs, outputs].

    A multiply and an add per weight and token; each weight read once, inputs read and outputs written.
    """
    flops = 2 * tokens * inputs * outputs
    weight_bytes = inputs * outputs * stored.weight_bits / 8
    return flops, weight_bytes + tokens * (inputs * stored.input_bytes + outputs * stored.output_bytes)


def _tiles(tokens: Count, context: Count) -> Count:
    """Cache entries that one query head reads in prefill when each tile of query rows reads its own anew.

    A tile reads what is cached before the chunk and the chunk up to its own last row.
    """
    full, rest = tokens // TILE, tokens % TILE > 0
    return (full + rest) * context + TILE * full * (full + 1) // 2 + rest * tokens


def attention(
    model: Model, phase: str, tokens: Count, context: Count, kv_bits: int, assumptions: Assumptions = DEFAULT
) -> tuple[Count, Count]:
    """(FLOPs, bytes) of scores and weighted sum in all layers.

    Two products of 2 FLOPs per query element and cache entry read. Scores stay on chip: no HBM bytes. In prefill each
    of the new tokens sees the cached ones, the new ones before it and itself: counted exactly, nothing masked is
    computed; K and V are read once.
    """
    width = model.kv_width
    if phase == "decode":
        entries_scored = entries_read = tokens * context
    else:
        entries_scored = tokens * context + tokens * (tokens + 1) // 2
        entries_read = context + tokens
        if assumptions.kv_reread == "tile128":
            width, entries_read = model.q_width, _tiles(tokens, context)
    flops = 4 * model.layers * model.q_width * entries_scored
    moved = 2 * model.layers * width * entries_read * kv_bits / 8
    if assumptions.qo_traffic == "yes" and assumptions.activations == "hbm":
        moved = moved + 2 * ACTIVATION_BYTES * model.layers * model.q_width * tokens
    return flops, moved


def elementwise(model: Model, tokens: Count, assumptions: Assumptions = DEFAULT) -> tuple[Count, Count]:
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
    width = 0 if assumptions.activations == "l2" else ACTIVATION_BYTES
    return model.layers * tokens * flops, model.layers * tokens * elements * width


def _never_wrapping(model: Model, point: Point, assumptions: Assumptions) -> Point:
    """The point in counts whose products can't wrap: Python's ints never do, NumPy's do silently at 64 bits.

    Integer arrays become floats where the largest row would not fit: no longer exact, but right to 16 digits.
    """
    counts = (point.tokens, point.context)
    if all(isinstance(count, int) for count in counts):
        return point
    tokens, context = (np.asarray(count) for count in counts)
    corner = replace(point, tokens=int(tokens.max(initial=1)), context=int(context.max(initial=0)))
    # 2⁴ of room for the bits of a cache element, which are multiplied before they are divided into bytes
    exact = all(row.flops < 2**59 and row.bytes_moved < 2**59 for row in forward_pass(model, corner, assumptions))
    wide = [count.astype(np.int64 if exact and count.dtype.kind in "iu" else float) for count in (tokens, context)]
    return replace(point, tokens=wide[0], context=wide[1])


def forward_pass(model: Model, point: Point, assumptions: Assumptions = DEFAULT) -> tuple[Kernel, ...]:
    """The eight rows of one pass, in the order of KERNELS.

    point: tokens and context as ints, or as integer arrays of shapes that broadcast; the rows' flops and bytes_moved
    have the broadcast shape or a smaller one that broadcasts to it. point.attention picks the number of KV heads:
    gqa as published, mha one per query head, mqa one. Source: the cost model's page in the README.
    """
    point = _never_wrapping(model, point, assumptions)
    model = model.with_attention(point.attention)
    tokens, stored, head = point.tokens, storage(point.weights, assumptions), head_storage(point.weights, assumptions)
    layers, hidden, ffn = model.layers, model.hidden_size, model.intermediate_size
    # the q/k-norm is a launch of its own
    launches = {name: layers * (count + (name == "elementwise" and model.qk_norm)) for name, count in LAUNCHES.items()}

    def in_every_layer(name: str, inputs: int, outputs: int) -> Kernel:
        flops, moved = matmul(tokens, inputs, outputs, stored)
        return Kernel(name, layers * flops, layers * moved, stored.math, launches[name])

    def attend() -> Kernel:
        bits = DTYPE_BITS[point.kv]
        flops, moved = attention(model, point.phase, tokens, point.context, bits, assumptions)
        return Kernel("attention", flops, moved, launches=launches["attention"])

    # of a prompt only the last row is needed to go on; decode needs every row
    last_alone = assumptions.head_rows == "last" and point.phase == "prefill"
    head_flops, head_bytes = matmul(tokens * 0 + 1 if last_alone else tokens, hidden, model.vocab_size, head)
    return (
        in_every_layer("qkv_proj", hidden, model.q_width + 2 * model.kv_width),
        attend(),
        in_every_layer("out_proj", model.q_width, hidden),
        # gate and up are launched separately: each reads its input
        in_every_layer("gate_proj", hidden, ffn),
        in_every_layer("up_proj", hidden, ffn),
        in_every_layer("down_proj", ffn, hidden),
        Kernel("elementwise", *elementwise(model, tokens, assumptions), launches=launches["elementwise"]),
        # the rows of the embedding table that this pass looks up; the table itself isn't streamed
        Kernel("lm_head", head_flops, head_bytes + ACTIVATION_BYTES * tokens * hidden, head.math),
    )
