"""This program's own sources, as part of what anything it keeps depends on."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib.metadata import version
from pathlib import Path

_IMPORT = re.compile(r"^ *from builder(?:\.(\w+))? import (\([^)]*\)|[^\n]*)", re.MULTILINE)
_LIBRARIES = ("altair", "numpy", "vl-convert-python")  # of those on which what is kept depends


def imported(source: str) -> set[str]:
    """Names of what a source of the builder imports from it, wherever it does; some may be no modules."""
    found = set()
    for module, names in _IMPORT.findall(source):
        found |= {module} if module else set(re.findall(r"\w+", names))
    return found


@cache
def program(*modules: str) -> str:
    """A hash of modules of the builder with all of it that they import, and of the versions of its libraries."""
    folder = Path(__file__).parent
    sources: dict[str, bytes] = {}
    left = ["__init__", *modules]
    while left:
        name = left.pop()
        if name not in sources and (folder / f"{name}.py").is_file():
            sources[name] = (folder / f"{name}.py").read_bytes()
            left += imported(sources[name].decode())
    digest = hashlib.sha256("\0".join(map(version, _LIBRARIES)).encode())
    for name, data in sorted(sources.items()):
        digest.update(f"\0{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()[:20]
