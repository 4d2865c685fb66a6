"""This program's own sources, as part of what anything it keeps depends on.

Loaded before all others, so that it knows the sources as they were when this process began to load them: what a later
save leaves on disk is not what runs here.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
_IMPORT = re.compile(r"^ *from builder(?:\.(\w+))? import (\([^)]*\)|[^\n]*)", re.MULTILINE)
_LIBRARIES = ("altair", "numpy", "vl-convert-python")  # of those on which what is kept depends

Sources = Mapping[str, bytes]  # of modules, by name


def read_sources() -> Sources:
    """All modules of the builder as they are on disk."""
    found = {}
    for path in sorted(FOLDER.glob("*.py")):
        with contextlib.suppress(FileNotFoundError):  # an editor is about to put a new one in its place
            found[path.stem] = path.read_bytes()
    return found


_loaded = read_sources()


def loaded() -> Sources:
    """The sources that this process has loaded, or will: as long as nothing is saved, those on disk."""
    return _loaded


def load(sources: Sources) -> None:
    """Take note that this process has loaded these, in place of those before."""
    global _loaded
    _loaded = sources
    _with_imports.cache_clear()
    program.cache_clear()


def imported(source: bytes) -> set[str]:
    """Names of what a source of the builder imports from it, wherever it does; some may be no modules."""
    found = set()
    for module, names in _IMPORT.findall(source.decode(errors="replace")):
        found |= {module} if module else set(re.findall(r"\w+", names))
    return found


@cache
def _with_imports(*modules: str) -> Sources:
    """The loaded sources of modules and of all of the builder that they import."""
    found: dict[str, bytes] = {}
    left = ["__init__", *modules]
    while left:
        name = left.pop()
        if name not in found and name in _loaded:
            found[name] = _loaded[name]
            left += imported(found[name])
    return found


def is_on_disk(*modules: str) -> bool:
    """Whether nobody has saved these since, nor what they import: only then is it known what lazy imports brought."""
    with contextlib.suppress(FileNotFoundError):
        return all((FOLDER / f"{name}.py").read_bytes() == data for name, data in _with_imports(*modules).items())
    return False


@cache
def program(*modules: str) -> str:
    """A hash of modules of the builder with all of it that they import, and of the versions of its libraries."""
    from importlib.metadata import version  # takes longer to load than all else here

    digest = hashlib.sha256("\0".join(map(version, _LIBRARIES)).encode())
    for name, data in sorted(_with_imports(*modules).items()):
        digest.update(f"\0{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()[:20]
