"""The shards of one GPU as one text, with what the build asks of their size."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from builder.grid import Grid
from builder.program import program
from builder.shards import shard_id, shard_json
from builder.site import cached, compressed_size

_LIKELY = 0.985  # of the size of the largest by a quick look: what lies below can't be the largest by a closer one


@dataclass(frozen=True)
class Packed:
    """Texts of shards by id; of the one that is largest when compressed the id, and its bytes.

    They are as a server sends it where it breaks the budget; else a little more, since fast to find.
    """

    texts: dict[str, str]
    largest: str
    size: int

    @classmethod
    def read(cls, text: str) -> Packed:
        """What packed() says."""
        head, *texts = text.split("\n")
        names, largest, size = json.loads(head)
        return cls(dict(zip(names, texts, strict=True)), largest, size)

    @cached_property
    def files(self) -> list[tuple[str, bytes, bytes]]:
        """(id, the document, the script that hands over the same text) of each shard."""
        return [(name, f"{text}\n".encode(), f"lesson.shard({text});\n".encode()) for name, text in self.texts.items()]


def packed(grid: Grid, gpu: str) -> str:
    """The shards of a GPU of the grid as the text of a Packed: a line for all that isn't a shard, then one for each."""
    choices = [choice for choice in grid.shard_points() if choice.gpu == gpu]
    texts = {shard_id(choice): shard_json(grid, choice) for choice in choices}
    likely = list(texts)
    for level in (4, 6, 9):
        sizes = {name: compressed_size(texts[name].encode(), level) for name in likely}
        size = max(sizes.values())
        if size <= grid.budget["shard"]:
            break  # a closer look finds less
        likely = [name for name in likely if sizes[name] >= _LIKELY * size]
    largest = max(sizes, key=lambda name: sizes[name])
    return "\n".join([json.dumps([list(texts), largest, size], ensure_ascii=False), *texts.values()])


def keep_packed(root: Path, name: str, grid: Grid, gpu: str, made_by: str) -> str:
    """Make what packed() says and keep it in the cache under a name, from where another process reads it.

    Here, since a process that helps loads what its calls stand in. made_by: program("packing") of who asks; raises
    RuntimeError where this process has loaded another.
    """
    if program("packing") != made_by:
        raise RuntimeError("the builder has changed meanwhile")
    cached(root, name, partial(packed, grid, gpu), "packing")
    return ""
