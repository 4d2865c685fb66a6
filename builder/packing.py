"""The shards of one GPU as texts: made here, or in a process beside this one while it draws.

The process gets the grid itself, so that what it makes is of the same contents as the rest of the build.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import BinaryIO

from builder.grid import Grid
from builder.shards import shard_id, shard_json
from builder.site import cached, compressed_size

_DONE = b"\n"  # said of each GPU
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


def _started() -> subprocess.Popen[bytes]:
    """A process that has loaded all it needs and waits for questions of _answer(); it ends with this one."""
    code = str(Path(__file__).resolve().parent.parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([code, os.environ.get("PYTHONPATH", "")])}
    return subprocess.Popen(
        [sys.executable, "-m", "builder.packing"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )


_helpers: list[subprocess.Popen[bytes]] = []  # at most one, which waits for the next build


def keep_helper() -> None:
    """Have a process ready for the next build, so that it needn't wait for one to load."""
    if not _helpers:
        _helpers.append(_started())


def has_helper() -> bool:
    """Whether there is one that waits."""
    return bool(_helpers)


def end_helper() -> None:
    """Let the one that waits go."""
    while _helpers:
        _ended(_helpers.pop())


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    with contextlib.suppress(OSError), process:  # a pipe that can't be flushed is closed all the same
        pass


class Beside:
    """The shards of GPUs being made in a process of their own, one GPU after the other, into the cache.

    A process that waited for it waits again when all is done. What one that fails doesn't make is missing there.
    """

    def __init__(self, root: Path, grid: Grid, names: Mapping[str, str]) -> None:
        """names: GPU → the file in root's cache."""
        self._left = len(names)
        self._waited = has_helper()
        self._process = _helpers.pop() if self._waited else _started()
        assert self._process.stdin
        with contextlib.suppress(OSError):  # it has failed: wait() finds that out
            self._process.stdin.write(pickle.dumps((root.resolve(), grid, dict(names))))
            self._process.stdin.flush()

    def wait(self) -> None:
        """Until all are made, or no more will be."""
        assert self._process.stdout
        while self._left and self._process.stdout.readline() == _DONE:
            self._left -= 1

    def close(self) -> None:
        """Be done with the process: it waits again where it did before and has made all, else it ends."""
        if self._waited and not self._left:
            _helpers.append(self._process)
        else:
            _ended(self._process)


def _answer(questions: BinaryIO, answers: BinaryIO) -> None:
    """Put into the cache what is asked for by (root, grid, names of files by GPU), and say so of each, for ever.

    Not the texts themselves: a pipe would hold up whoever writes whenever the reader is busy with a drawing.
    """
    while True:
        try:
            root, grid, names = pickle.load(questions)
        except EOFError:
            return
        for gpu, name in names.items():
            cached(root, name, partial(packed, grid, gpu))
            answers.write(_DONE)
            answers.flush()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt, OSError):  # who asked is gone
        _answer(sys.stdin.buffer, sys.stdout.buffer)
