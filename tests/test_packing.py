"""The shards of a GPU as texts, whoever makes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from builder import packing, site
from builder.grid import Grid, load_grid
from builder.packing import Beside, Packed, packed
from builder.shards import shard, shard_id
from builder.site import cached, compressed_size, is_cached
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


def names(*gpus: str) -> dict[str, str]:
    return {gpu: f"shards_{gpu}-0.txt" for gpu in gpus}


def stored(root: Path, gpu: str) -> str | None:
    """What is in the cache under its name, without making it."""
    name = names(gpu)[gpu]
    return cached(root, name, pytest.fail) if is_cached(root, name) else None


@pytest.fixture
def alone() -> Iterator[None]:
    """Nothing waits before, nothing afterwards; and nothing is known of earlier caches."""
    packing.end_helper()
    site._remembered.clear()
    yield
    packing.end_helper()


def test_the_process_beside_makes_the_same(grid: Grid, tmp_path: Path, alone: None) -> None:
    """To the byte, of the grid it is given and not of the files; the process ends with its build."""
    beside = Beside(tmp_path, grid, names("h100", "a100"))
    beside.wait()
    beside.close()
    for gpu in ("h100", "a100"):
        assert stored(tmp_path, gpu) == packed(grid, gpu)
    assert beside._process.returncode is not None
    assert not packing.has_helper()


def test_a_process_that_fails_leaves_everything_to_be_made_here(
    grid: Grid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: None
) -> None:
    """Such as one that knows no such GPU, or that can't begin; one that fails doesn't wait for another build."""
    packing.keep_helper()
    beside = Beside(tmp_path, grid, names("h101", "h100"))
    beside.wait()
    beside.close()
    assert not packing.has_helper()
    assert stored(tmp_path, "h100") is None
    monkeypatch.setattr(packing.sys, "executable", "/bin/false")
    beside = Beside(tmp_path, grid, names("h100"))
    beside.wait()
    beside.close()
    assert stored(tmp_path, "h100") is None


def test_one_that_is_not_waited_for_is_ended(tmp_path: Path, alone: None) -> None:
    """A build that fails on its way leaves no process behind, nor one that is still at work for the next."""
    packing.keep_helper()
    beside = Beside(tmp_path, load_grid(ROOT), names("h100", "a100", "h200", "b200"))
    beside.close()
    assert beside._process.poll() is not None
    assert not packing.has_helper()


def test_one_that_waits_is_taken_and_waits_again(grid: Grid, tmp_path: Path, alone: None) -> None:
    """Loaded once, for a server that builds again and again; unasked it ends when its parent does."""
    packing.keep_helper()
    packing.keep_helper()
    (waiting,) = packing._helpers
    for gpu in ("a100", "h100"):
        beside = Beside(tmp_path, grid, names(gpu))
        assert beside._process is waiting
        assert not packing.has_helper()
        beside.wait()
        beside.close()
        assert packing._helpers == [waiting]
        assert stored(tmp_path, gpu) == packed(grid, gpu)
    assert waiting.stdin
    waiting.stdin.close()  # as happens when the parent is gone
    assert waiting.wait(timeout=20) == 0
    packing.end_helper()
    assert not packing.has_helper()
