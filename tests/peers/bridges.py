"""From our figures to those of other public tools, cause by cause.

A bridge starts at what the ledger says of a point and changes one thing at a time, each computed from our model and the
ledger's rows. Where it ends at the other tool's figure, every difference is explained: tests/test_peers.py asks that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor
from pathlib import Path
from typing import Any

import numpy as np

from builder.assumptions import assume
from builder.catalog import load_gpus
from builder.grid import load_grid
from builder.ledger import Kernel, Point, forward_pass
from builder.roofline import (
    BANDWIDTH_EFFICIENCY,
    COMPUTE_EFFICIENCY,
    MEMORY,
    USABLE_MEMORY,
    cost,
    largest_batch,
    weight_bytes,
)
from builder.units import ACTIVATION_BYTES, GIB

ROOT = Path(__file__).resolve().parent.parent.parent
GRID = load_grid(ROOT)
MODEL, GPU = GRID.model, load_gpus(ROOT)["h100"]


def _at(phase: str, tokens: int, context: int) -> Point:
    return replace(GRID.defaults, phase=phase, tokens=tokens, context=context, gpu=GPU.id, weights="bf16", kv="bf16")


POINTS = {
    "1 at 8k": _at("decode", 1, 8192),
    "64 at 8k": _at("decode", 64, 8192),
    "256 at 512": _at("decode", 256, 512),
    "1,024 at 512": _at("decode", 1024, 512),
    "prefill 4,096 after 512": _at("prefill", 4096, 512),
    "prefill 4,096 after 0": _at("prefill", 4096, 0),
}

BATCHES = ("1 at 8k", "256 at 512")  # where a largest batch is asked: a context each
RIDGE = "1 at 8k"

# quantity → (its heading, divisor, decimals)
QUANTITIES = {
    "time": ("time of the pass, ms", 1e-3, 3),
    "bytes_moved": ("bytes moved, MiB", 2**20, 1),
    "flops": ("FLOPs, GFLOP", 1e9, 3),
    "largest_batch": ("largest batch", 1, 0),
    "ridge_batch": ("batch at which a weight matmul leaves the memory side", 1, 0),
}

# in the order in which bridges take them
CAUSES = {
    "one maximum": "We sum eight rows, each bound by one side; it takes one maximum for the pass, so that arithmetic "
    "and traffic of different kernels hide each other: our `overlap=perfect`",
    "no arithmetic": "Decode takes as long as its bytes, at any batch",
    "no traffic": "Prefill takes as long as its FLOPs, at any length",
    "activations": "Activations are not counted: what kernels read and write beside weights and cache. Our "
    "`activations=l2`",
    "embedding rows": "The rows of the embedding table that are looked up are not counted",
    "elementwise": "FLOPs of norms, residual adds and SwiGLU are not counted",
    "no mask": "The causal mask is left out: each new token is counted against all of the final context",
    "no attention": "FLOPs of attention are not counted: two per parameter and token are all",
    "norm weights": "Weights of the RMSNorms count as read and multiplied, but for q- and k-norm, which the families "
    "that it reads have not",
    "embedding and norms": "All parameters count, the embedding table and the norm weights too; we count those that "
    "are streamed and multiplied",
    "cache append": "What the new tokens write into the cache has a term of its own; ours went with the activations",
    "last row": "The LM head runs on the last row of a prompt alone: our `head_rows=last`",
    "its counts": "Its own bytes and FLOPs, the tables below, in place of ours",
    "efficiencies": "Its fractions of peak and bandwidth in place of our 75 % and 80 %",
    "overhead": "A fixed time a step, for scheduler and launches",
    "layer tax": "A fixed time a layer, for the framework",
    "dispatch": "A fixed time a pass, for its launch",
    "memory": "The GPU has 80 GiB; we take the 79.6 GiB that nvidia-smi reports",
    "memory seen": "The GPU has what a process finds of it, a little less than nvidia-smi reports",
    "workspace": "5 % of the memory are kept for the engine's workspace, beside the 10 % that both keep",
    "runtime": "What context, graphs and activations take is subtracted, beside the 10 % that both keep",
    "no reserve": "All of the memory may be used; we keep 10 % for the runtime",
    "weights alone": "Activations are left out of the intensity, which is then the batch itself",
    "quoted peaks": "The ridge of the quoted peaks; our times flip below it, since a kernel reaches 75 % and 80 % of "
    "them",
}

RIDGEPOINT_BANDWIDTH = 0.61  # what it calls MBU, in its README
RIDGEPOINT_COMPUTE = 0.40  # found: what its time to first token comes to at two FLOPs per parameter and token

Steps = list[tuple[str, float]]  # cause and the figure after it


@dataclass(frozen=True)
class Bridge:
    """ours, and the figure after each cause; the last should be theirs."""

    ours: float
    steps: Steps

    @property
    def end(self) -> float:
        """Where it ends."""
        return self.steps[-1][1]

    @property
    def changes(self) -> Steps:
        """What each cause adds."""
        before = [self.ours, *(value for _, value in self.steps)]
        return [(cause, value - start) for (cause, value), start in zip(self.steps, before, strict=False)]


def ours(name: str) -> dict[str, float]:
    """What the ledger says at one of POINTS, by quantity; of those that hang on less than the point, once."""
    point = POINTS[name]
    costs = cost(forward_pass(MODEL, point), GPU, point.tokens)
    found = {
        "time": float(costs.total_time),
        "bytes_moved": float(costs.total_bytes),
        "flops": float(costs.total_flops),
    }
    if name in BATCHES:
        found["largest_batch"] = int(largest_batch(MODEL, point, GPU))
    if name == RIDGE:
        tokens = np.arange(1, 1000)
        many = cost(forward_pass(MODEL, replace(point, tokens=tokens)), GPU, tokens)
        found["ridge_batch"] = int(tokens[many.bound[many.row("gate_proj")] != MEMORY][0])
    return found


def _seconds(
    flops: float, moved: float, compute: float = COMPUTE_EFFICIENCY, read: float = BANDWIDTH_EFFICIENCY
) -> float:
    """One maximum for the whole pass, at these fractions of peak and bandwidth."""
    return max(flops / (compute * GPU.peak_flops), moved / (read * GPU.hbm_bandwidth))


class _Parts:
    """What the causes add or take away, of one point: bytes and FLOPs, from the ledger's rows and the model."""

    def __init__(self, point: Point) -> None:
        rows: Sequence[Kernel] = forward_pass(MODEL, point)
        without = forward_pass(MODEL, point, assume({"activations": "l2"}))
        by_name = {row.name: row for row in rows}
        tokens = point.tokens
        self.bytes = sum(row.bytes_moved for row in rows)
        self.flops = sum(row.flops for row in rows)
        self.activations = self.bytes - sum(row.bytes_moved for row in without)
        self.embedding_rows = ACTIVATION_BYTES * tokens * MODEL.hidden_size
        self.cache_append = _CACHE_BYTES * tokens
        self.elementwise = by_name["elementwise"].flops
        self.attention = by_name["attention"].flops
        self.masked = 4 * MODEL.layers * MODEL.q_width * tokens * (tokens - 1) // 2
        self.other_rows = 2 * MODEL.embedding_parameters * (tokens - 1)
        self.tokens = tokens


_CACHE_BYTES = 2 * MODEL.layers * MODEL.kv_width * ACTIVATION_BYTES  # of a token
_IDLE = MODEL.embedding_parameters + MODEL.small_parameters  # parameters that are neither streamed nor multiplied
_QK_NORMS = 2 * MODEL.layers * MODEL.head_dim
_NORMS = MODEL.small_parameters - _QK_NORMS


def _walk(start: float, *changes: tuple[str, float]) -> Steps:
    steps = []
    for cause, change in changes:
        start += change
        steps.append((cause, start))
    return steps


def _batches(point: Point, *rooms: tuple[str, float, float]) -> Steps:
    """(cause, bytes that may be used, bytes of weights) → sequences that fit."""
    return [(cause, floor((usable - weights) / (_CACHE_BYTES * point.context))) for cause, usable, weights in rooms]


def _servcalc(quantity: str, point: Point, constants: Mapping[str, float]) -> Steps:
    parts = _Parts(point)
    decode = point.phase == "decode"
    moved = _walk(
        parts.bytes,
        ("activations", -parts.activations),
        ("embedding rows", -parts.embedding_rows),
        ("norm weights", ACTIVATION_BYTES * _NORMS),
        *([("cache append", parts.cache_append)] if decode else []),
    )
    flops = _walk(
        parts.flops,
        ("elementwise", -parts.elementwise),
        ("norm weights", 2 * _NORMS * parts.tokens),
        *([] if decode else [("last row", -parts.other_rows)]),
    )
    if quantity == "bytes_moved":
        return moved
    if quantity == "flops":
        return flops
    if quantity == "time":
        theirs = flops[-1][1], moved[-1][1]
        efficient = _seconds(*theirs, constants["compute_efficiency"], constants["bandwidth_efficiency"])
        return [
            ("one maximum", _seconds(parts.flops, parts.bytes)),
            ("its counts", _seconds(*theirs)),
            ("efficiencies", efficient),
            ("overhead", efficient + constants["overhead"]),
        ]
    weights = weight_bytes(MODEL, "bf16")
    return _batches(
        point,
        ("memory", USABLE_MEMORY * 80 * GIB, weights),
        ("workspace", (USABLE_MEMORY - 0.05) * 80 * GIB, weights),
    )


def _ridgepoint(quantity: str, point: Point, constants: Mapping[str, float]) -> Steps:
    parts = _Parts(point)
    if quantity == "largest_batch":
        weights = weight_bytes(MODEL, "bf16")
        pool, runtime = constants["pool"], constants["runtime"]
        return _batches(point, ("memory seen", weights + pool + runtime, weights), ("runtime", weights + pool, weights))
    if quantity == "ridge_batch":
        flip = COMPUTE_EFFICIENCY / BANDWIDTH_EFFICIENCY * GPU.ridge_point
        return [("weights alone", floor(flip) + 1), ("quoted peaks", floor(GPU.ridge_point))]
    steps: Steps = [("one maximum", _seconds(parts.flops, parts.bytes))]
    if point.phase == "decode":
        moved = _walk(
            parts.bytes,
            ("no arithmetic", 0),
            ("activations", -parts.activations),
            ("embedding rows", -parts.embedding_rows),
            ("embedding and norms", ACTIVATION_BYTES * _IDLE),
        )
        steps += [(cause, _seconds(0, value)) for cause, value in moved]
        return [*steps, ("efficiencies", _seconds(0, moved[-1][1], read=RIDGEPOINT_BANDWIDTH))]
    flops = _walk(
        parts.flops,
        ("no traffic", 0),
        ("elementwise", -parts.elementwise),
        ("no attention", -parts.attention),
        ("embedding and norms", 2 * _IDLE * parts.tokens),
    )
    steps += [(cause, _seconds(value, 0)) for cause, value in flops]
    return [*steps, ("efficiencies", _seconds(flops[-1][1], 0, compute=RIDGEPOINT_COMPUTE))]


def _mlsysim(quantity: str, point: Point, constants: Mapping[str, float]) -> Steps:
    parts = _Parts(point)
    if quantity == "largest_batch":
        weights = weight_bytes(MODEL, "bf16")
        return _batches(point, ("memory", USABLE_MEMORY * 80 * GIB, weights), ("no reserve", 80 * GIB, weights))
    moved = _walk(
        parts.bytes,
        ("activations", -parts.activations),
        ("embedding rows", -parts.embedding_rows),
        ("embedding and norms", ACTIVATION_BYTES * _IDLE),
    )
    if quantity == "bytes_moved":
        return moved
    steps: Steps = [("one maximum", _seconds(parts.flops, parts.bytes))]
    if point.phase == "decode":
        efficient = _seconds(0, moved[-1][1], read=1)
        return [
            *steps,
            ("no arithmetic", _seconds(0, parts.bytes)),
            ("its counts", _seconds(0, moved[-1][1])),
            ("efficiencies", efficient),
            ("layer tax", efficient + constants["layer_tax"] * MODEL.layers),
        ]
    flops = _walk(
        parts.flops,
        ("no traffic", 0),
        ("elementwise", -parts.elementwise),
        ("no mask", parts.masked),
        ("embedding and norms", 2 * _IDLE * parts.tokens),
    )
    efficient = _seconds(flops[-1][1], 0, compute=constants["compute_efficiency"])
    return [
        *steps,
        *((cause, _seconds(value, 0)) for cause, value in flops),
        ("efficiencies", efficient),
        ("dispatch", efficient + constants["dispatch"]),
    ]


_WAYS = {"servcalc": _servcalc, "ridgepoint": _ridgepoint, "mlsysim": _mlsysim}


def bridge(golden: Mapping[str, Any], peer: str, quantity: str, point: str) -> Bridge:
    """The way from our figure to the peer's, at one of POINTS; golden holds the peer's own constants."""
    constants = golden["constants"][peer] | golden["constants"][peer].get(point, {})
    return Bridge(ours(point)[quantity], _WAYS[peer](quantity, POINTS[point], constants))
