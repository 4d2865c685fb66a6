"""The shards of a GPU as texts, whoever makes them."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from builder.grid import Grid, load_grid
from builder.packing import Packed, keep_packed, packed
from builder.program import program
from builder.shards import shard, shard_id
from builder.site import cached, compressed_size
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def grid() -> Grid:
    """The lesson's grid with fewer positions, and so with smaller shards."""
    whole = load_grid(ROOT)
    return replace(whole, axes={**whole.axes, "tokens": whole.axes["tokens"][::9], "context": (0, 512, 8192)})


def test_a_gpus_shards_are_all_there(grid: Grid) -> None:
    """Each with the text of its own document, and none of another GPU."""
    made = Packed.read(packed(grid, "a100"))
    choices = [choice for choice in grid.shard_points() if choice.gpu == "a100"]
    assert list(made.texts) == [shard_id(choice) for choice in choices]
    assert json.loads(made.texts[shard_id(choices[-1])]) == shard(grid, choices[-1])


@pytest.mark.parametrize("gpu", ["a100", "b200"])
def test_the_largest_is_the_largest_of_all(gpu: str) -> None:
    """Though not all are compressed as thoroughly as a server does: on the lesson's grid, over a budget."""
    whole = load_grid(ROOT)
    small = replace(whole, budget={**whole.budget, "shard": 9000})
    made = Packed.read(packed(small, gpu))
    sizes = {name: compressed_size(text.encode()) for name, text in made.texts.items()}
    assert (sizes[made.largest], made.size) == (max(sizes.values()), max(sizes.values()))


def test_within_the_budget_a_quick_look_is_enough(grid: Grid) -> None:
    """What is said of the largest is no less than what a server sends, and within the budget."""
    made = Packed.read(packed(grid, "a100"))
    exact = max(compressed_size(text.encode()) for text in made.texts.values())
    assert exact <= made.size <= grid.budget["shard"]


def test_a_process_that_helps_loads_little(tmp_path: Path) -> None:
    """The call that makes shards is taken up without the libraries of the page and of the drawings."""
    question = tmp_path / "question"
    question.write_bytes(pickle.dumps(partial(keep_packed, tmp_path, "shards-1.txt", load_grid(ROOT), "a100", "")))
    program = "import pickle, sys; pickle.load(open(sys.argv[1], 'rb')); print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program, question], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert {"numpy", "builder.packing"} <= set(loaded)
    assert not {"jinja2", "markdown_it", "altair", "builder.page"} & set(loaded)


def test_what_a_helper_keeps_is_what_the_build_reads(tmp_path: Path, grid: Grid) -> None:
    """By the name that both know."""
    keep_packed(tmp_path, "shards_a100-1.txt", grid, "a100", program("packing"))
    assert cached(tmp_path, "shards_a100-1.txt", lambda: "made again", "site") == packed(grid, "a100")


def test_other_code_keeps_nothing_under_this_codes_name(tmp_path: Path, grid: Grid) -> None:
    """A process that has loaded what was saved a moment later, or before."""
    with pytest.raises(RuntimeError, match="has changed meanwhile"):
        keep_packed(tmp_path, "shards_a100-1.txt", grid, "a100", "another")
    assert not list(tmp_path.iterdir())
