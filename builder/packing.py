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
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from builder.grid import Grid
from builder.shards import shard_id, shard_json
from builder.site import compressed_size

_LIKELY = 0.985  # of the size of the largest by a quick look: what lies below can't be the largest by a closer one


@dataclass(frozen=True)
class Packed:
    """Texts of shards by id; of the one that is largest when compressed the id, and its bytes.

    They are as a server sends it where it breaks the budget; else a little more, since fast to find.
    """

    texts: dict[str, str]
    largest: str
    size: int

    @cached_property
    def files(self) -> list[tuple[str, bytes, bytes]]:
        """(id, the document, the script that hands over the same text) of each shard."""
        return [(name, f"{text}\n".encode(), f"lesson.shard({text});\n".encode()) for name, text in self.texts.items()]


def packed(grid: Grid, gpu: str) -> str:
    """The shards of a GPU of the grid as JSON of a Packed, on one line."""
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
    return json.dumps({"texts": texts, "largest": largest, "size": size}, ensure_ascii=False)


def _started() -> subprocess.Popen[bytes]:
    """A process that has loaded all it needs, and waits for a grid and names of GPUs; it ends with this one."""
    code = str(Path(__file__).resolve().parent.parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([code, os.environ.get("PYTHONPATH", "")])}
    return subprocess.Popen(
        [sys.executable, "-m", "builder.packing"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )


_spare: list[subprocess.Popen[bytes]] = []


def keep_spare() -> None:
    """Have a process ready for the next build, so that it needn't wait for one to load."""
    if not _spare:
        _spare.append(_started())


def has_spare() -> bool:
    """Whether there is one that waits."""
    return bool(_spare)


def end_spare() -> None:
    """Let the one that waits go."""
    while _spare:
        with _spare.pop() as process:
            process.kill()


class Beside:
    """Shards of some GPUs being made in a process of their own. One that fails leaves them to be made here."""

    def __init__(self, grid: Grid, gpus: Sequence[str]) -> None:
        self.gpus = gpus
        self._read = b""
        self._process = _spare.pop() if _spare else _started()
        self._thread = threading.Thread(target=self._talk, args=(pickle.dumps((grid, list(gpus))),), daemon=True)
        self._thread.start()

    def _talk(self, question: bytes) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._read, _ = self._process.communicate(question)

    def texts(self) -> dict[str, str]:
        """GPU → what packed() says of it, once all are done; nothing where the process failed."""
        self._thread.join()
        lines = self._read.decode("utf-8", errors="replace").split("\n")[:-1]
        done = self._process.returncode == 0 and len(lines) == len(self.gpus)
        return dict(zip(self.gpus, lines, strict=True)) if done else {}

    def close(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._thread.join()


if __name__ == "__main__":
    with contextlib.suppress(EOFError, KeyboardInterrupt):  # nobody asked
        asked_grid, asked_gpus = pickle.load(sys.stdin.buffer)
        for asked in asked_gpus:
            sys.stdout.buffer.write(packed(asked_grid, asked).encode() + b"\n")
            sys.stdout.buffer.flush()
