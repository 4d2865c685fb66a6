"""The worked examples of CONTRIBUTING, carried out on a copy of the house."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.toys import ROOT

CONTRIBUTING = ".github/CONTRIBUTING.md"
LESSON = """\
---
title: A small lesson
kicker: For tests
dek: One part.
description: One part.
---

## First {#first}

Some words.

::: bench
:::
"""


def examples() -> dict[str, str]:
    """Name of an example → its diff: a paragraph that begins with the name in bold, and the first block behind it."""
    _, *found = re.split(r"^\*\*An? (\w+)\*\*", (ROOT / CONTRIBUTING).read_text(encoding="utf-8"), flags=re.MULTILINE)
    blocks = (text.partition("```diff\n")[2].partition("```\n")[0] for text in found[1::2])
    return dict(zip(found[::2], blocks, strict=True))


def house(folder: Path) -> Path:
    """A copy of what builds the lesson, with little text, and a grid of one GPU, BF16 and GQA."""
    for name in ("builder", "content", "theme"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "content" / "lesson.md").write_text(LESSON, encoding="utf-8")
    grid = folder / "content" / "grid.toml"
    text = grid.read_text(encoding="utf-8")
    for axis, only in (("gpu", "h100"), ("weights", "bf16"), ("kv", "bf16"), ("attention", "gqa")):
        text = re.sub(rf"^{axis} = \[.*\]$", f'{axis} = ["{only}"]', text, flags=re.MULTILINE)
    grid.write_text(text, encoding="utf-8")
    return folder


def apply(diff: str, root: Path) -> None:
    """Carry out a diff: `+++ file`, then hunks parted by `@@`, of lines that stay, come (+) or go (-).

    What stays and goes must stand in the file exactly once. A hunk in which all lines come is a new file, or the end
    of one that is there.
    """
    for part in re.split(r"^\+\+\+ ", diff, flags=re.MULTILINE)[1:]:
        name, _, hunks = part.partition("\n")
        path = root / name
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for hunk in re.split(r"^@@\n", hunks, flags=re.MULTILINE):
            lines = [(line[:1] or " ", line[1:]) for line in hunk.splitlines()]
            assert {sign for sign, _ in lines} <= set(" +-"), f"{name}: {hunk}"
            before = "".join(f"{line}\n" for sign, line in lines if sign != "+")
            after = "".join(f"{line}\n" for sign, line in lines if sign != "-")
            if before:
                text, times = re.subn(f"^{re.escape(before)}", lambda _, new=after: new, text, flags=re.MULTILINE)
                assert times == 1, f"{name} holds {times} times:\n{before}"
            else:
                text += after
        path.write_text(text, encoding="utf-8")


def run(root: Path, *command: str, status: int = 0) -> str:
    """What a command of the copy's own builder prints; it must end with this status."""
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr
