"""How long the whole grid of the lesson takes. Run by name: python -m pytest tests/benchmarks/test_ledger_speed.py"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from builder.catalog import Gpu, Model
from builder.ledger import ATTENTIONS, PHASES, forward_pass
from builder.roofline import Pass, cost, fits, largest_batch, resident_bytes
from builder.units import KV_DTYPES, WEIGHT_DTYPES
from tests.toys import at, lesson_gpus, lesson_model

TOKENS = np.array(
    [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 320, 384, 512, 768, 1024, 1536, 2048, 3072, 4096]
)
CONTEXT = np.array([128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072])
SECONDS = 0.050


def whole_grid(model: Model, gpus: dict[str, Gpu]) -> list[Pass]:
    """Every pass of the lesson's bench with what it needs in memory."""
    passes = []
    for phase, weights, kv, attention in itertools.product(PHASES, WEIGHT_DTYPES, KV_DTYPES, ATTENTIONS):
        context = CONTEXT if phase == "decode" else np.array([0, *CONTEXT])
        for gpu in gpus.values():
            point = at(
                phase=phase,
                tokens=TOKENS[None, :],
                context=context[:, None],
                weights=weights,
                kv=kv,
                attention=attention,
            )
            passes.append(cost(forward_pass(model, point), gpu, point.tokens))
            fits(resident_bytes(model, point), gpu)
            largest_batch(model, point, gpu)
    return passes


@pytest.mark.benchmark(group="ledger", min_rounds=20)
def test_the_whole_grid_takes_under_fifty_milliseconds(benchmark):
    """Some 41,000 points of eight rows each, costed shard by shard, in under 50 ms."""
    passes = benchmark(whole_grid, lesson_model(), lesson_gpus())
    assert sum(costs.total_time.size for costs in passes) == 41_400
    assert all(costs.time.shape[0] == 8 for costs in passes)
    if benchmark.stats is not None:
        assert benchmark.stats.stats.median < SECONDS
