"""Every point of the grid, and how long and how large a build is. Run by name: python -m pytest tests/benchmarks"""

from __future__ import annotations

import random
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from builder.grid import load_grid
from builder.kernels import KERNELS
from builder.ledger import Point
from builder.shards import check_shard_size, look_up, script_json, shard, shard_id
from builder.site import compressed_size
from tests.test_shards import expected, points_of, shown
from tests.toys import ROOT

MEGABYTES = 400
CHOICES = {shard_id(choice): choice for choice in load_grid(ROOT).shard_points()}


@pytest.mark.parametrize("name", CHOICES)
def test_every_text_of_every_point_is_the_ledgers(name):
    """Each point of each shard: the texts looked up equal those formatted; sentences are whole and short enough."""
    grid, choice = load_grid(ROOT), CHOICES[name]
    page = shard(grid, choice)
    sentences = ("verdict", "warning", "sublabel", *(f"{kernel}.label" for kernel in KERNELS))
    longest = 0
    for point in points_of(grid, choice):
        texts = expected(grid, point)
        assert shown(grid, page, point, texts) == texts, point
        said = shown(grid, page, point, sentences)
        assert not re.search("[{}]|nan|inf", " ".join(said.values())), point
        longest = max(longest, len(f"{said['verdict']} {said['warning']}".strip()))
    assert longest <= 141
    assert check_shard_size(grid, page, compressed_size(script_json(page).encode())) == []


@pytest.mark.benchmark(group="build", min_rounds=5)
def test_a_shard_is_made_in_under_fifty_milliseconds(benchmark):
    """One choice of GPU, weights, cache and attention: 575 points with all their texts."""
    grid = load_grid(ROOT)
    choice = random.Random(1).choice(list(grid.shard_points()))
    benchmark(shard, grid, choice)
    if benchmark.stats is not None:
        assert benchmark.stats.stats.median < 0.050


@pytest.mark.benchmark(group="build", min_rounds=20)
def test_a_look_up_takes_microseconds(benchmark):
    """The client's look-up, as Python does it: what a test of thousands of points rests on."""
    grid = load_grid(ROOT)
    page = shard(grid, grid.defaults)
    points: list[Point] = [replace(grid.defaults, tokens=tokens) for tokens in grid.axes["tokens"]]
    benchmark(lambda: [look_up(page, grid, point, "verdict") for point in points])
    if benchmark.stats is not None:
        assert benchmark.stats.stats.median / len(points) < 0.001


BUILD = """
import resource, sys
from pathlib import Path
from builder.build import build
build(Path(sys.argv[1]), Path(sys.argv[2]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.benchmark(group="build", max_time=1, min_rounds=1)
def test_a_build_takes_little_memory(benchmark, tmp_path: Path):
    """A whole build from nothing, in a process of its own, in under 400 MB."""
    unit = 1 if sys.platform == "darwin" else 1024
    peaks = []

    def build() -> None:
        command = [sys.executable, "-c", BUILD, str(ROOT), str(tmp_path / "site")]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
        peaks.append(int(done.stdout) * unit)

    benchmark.pedantic(build, rounds=2)
    assert max(peaks) / 1e6 < MEGABYTES
