"""The shards of a GPU as texts, whoever makes them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from builder.grid import Grid, load_grid
from builder.packing import Packed, packed
from builder.shards import shard, shard_id
from builder.site import compressed_size
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
