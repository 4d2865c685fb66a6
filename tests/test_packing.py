"""The shards of a GPU as texts, whoever makes them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from builder import packing
from builder.grid import Grid, load_grid
from builder.packing import Beside, Packed, packed
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
    made = Packed(**json.loads(packed(grid, "a100")))
    choices = [choice for choice in grid.shard_points() if choice.gpu == "a100"]
    assert list(made.texts) == [shard_id(choice) for choice in choices]
    assert json.loads(made.texts[shard_id(choices[-1])]) == shard(grid, choices[-1])


@pytest.mark.parametrize("gpu", ["a100", "b200"])
def test_the_largest_is_the_largest_of_all(gpu: str) -> None:
    """Though not all are compressed as thoroughly as a server does: on the lesson's grid, over a budget."""
    whole = load_grid(ROOT)
    small = replace(whole, budget={**whole.budget, "shard": 9000})
    made = Packed(**json.loads(packed(small, gpu)))
    sizes = {name: compressed_size(text.encode()) for name, text in made.texts.items()}
    assert (sizes[made.largest], made.size) == (max(sizes.values()), max(sizes.values()))


def test_within_the_budget_a_quick_look_is_enough(grid: Grid) -> None:
    """What is said of the largest is no less than what a server sends, and within the budget."""
    made = Packed(**json.loads(packed(grid, "a100")))
    exact = max(compressed_size(text.encode()) for text in made.texts.values())
    assert exact <= made.size <= grid.budget["shard"]


def test_the_process_beside_makes_the_same(grid: Grid) -> None:
    """To the byte, in the order asked for, of the grid it is given and not of the files."""
    beside = Beside(grid, ["h100", "a100"])
    try:
        assert beside.texts() == {gpu: packed(grid, gpu) for gpu in ("h100", "a100")}
    finally:
        beside.close()


def test_a_process_that_fails_leaves_everything_to_be_made_here(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as one that knows no such GPU, or that can't begin."""
    beside = Beside(grid, ["h100", "h101"])
    assert beside.texts() == {}
    beside.close()
    monkeypatch.setattr(packing.sys, "executable", "/bin/false")
    beside = Beside(grid, ["h100"])
    assert beside.texts() == {}
    beside.close()


def test_one_that_is_not_waited_for_is_ended(grid: Grid) -> None:
    """A build that fails on its way leaves no process behind."""
    beside = Beside(load_grid(ROOT), ["h100", "a100", "h200", "b200"])
    beside.close()
    assert beside._process.poll() is not None
    assert beside.texts() == {}


def test_one_that_waits_is_taken_and_ends_with_who_asked(grid: Grid) -> None:
    """Loaded beforehand, for a server whose next build is on its way; unasked it ends when its parent does."""
    packing.keep_spare()
    packing.keep_spare()
    (waiting,) = packing._spare
    beside = Beside(grid, ["a100"])
    assert beside._process is waiting
    assert not packing.has_spare()
    assert beside.texts() == {"a100": packed(grid, "a100")}
    beside.close()
    packing.keep_spare()
    (other,) = packing._spare
    assert other.stdin
    other.stdin.close()  # as happens when the parent is gone
    assert other.wait(timeout=20) == 0
    packing.end_spare()
    assert not packing.has_spare()
