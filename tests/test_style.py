"""The tools that read the code agree with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def check(root: Path, *command: str) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"{' '.join(command)}\n{done.stdout}{done.stderr}", pytrace=False)


def test_ruff_finds_nothing(root: Path) -> None:
    """Every file of the tree passes the lint rules of pyproject.toml."""
    check(root, "ruff", "check", "--quiet", ".")


def test_ruff_would_format_nothing(root: Path) -> None:
    """Every file of the tree stands as ruff formats it."""
    check(root, "ruff", "format", "--check", "--quiet", ".")


def test_the_builder_is_strictly_typed(root: Path) -> None:
    """mypy --strict accepts builder/."""
    check(root, "mypy", "--strict", "builder")
