"""How long the whole grid of the lesson takes. Run by name: python -m pytest tests/benchmarks/test_ledger_speed.py"""

from __future__ import annotations

import pytest

from builder.grid import Grid, load_grid
from builder.shards import Arrays, shard_arrays
from tests.toys import ROOT

SECONDS = 0.060


def whole_grid(grid: Grid) -> list[Arrays]:
    """Every pass of the lesson's bench with what it needs in memory, shard by shard."""
    return [arrays for choice in grid.shard_points() for arrays in shard_arrays(grid, choice)]


@pytest.mark.benchmark(group="ledger", min_rounds=20)
def test_the_whole_grid_takes_a_blink(benchmark):
    """Some 50,000 points of eight rows each, in under 60 ms."""
    grid = load_grid(ROOT)
    found = benchmark(whole_grid, grid)
    assert sum(arrays.costs.total_time.size for arrays in found) > 50_000
    assert all(arrays.costs.time.shape[0] == 8 for arrays in found)
    if benchmark.stats is not None:
        assert benchmark.stats.stats.median < SECONDS
