"""The builder's own code in a process that goes on when it changes: imported anew, while libraries stay loaded."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import cache_from_source
from pathlib import Path

from builder.program import imported

FOLDER = Path(__file__).resolve().parent
PACKAGE = FOLDER.name

Sources = Mapping[str, bytes]  # of modules, by name


def read_sources() -> dict[str, bytes]:
    """All modules of the builder as they are on disk."""
    found = {}
    for path in sorted(FOLDER.glob("*.py")):
        with contextlib.suppress(FileNotFoundError):  # an editor is about to put a new one in its place
            found[path.stem] = path.read_bytes()
    return found


def outdated(loaded: Sources, sources: Sources) -> set[str]:
    """What has changed since it was loaded, and all that imports it."""
    found = {name for name, source in loaded.items() if sources.get(name) != source}
    if "__init__" in found:
        return set(loaded)
    takes = {name: imported(source.decode(errors="replace")) for name, source in loaded.items()}
    while more := {name for name in takes if name not in found and takes[name] & found}:
        found |= more
    return found


class Code:
    """The builder's modules in this process. `entries`: those that are imported whenever anything has changed."""

    def __init__(self, entries: Sequence[str]) -> None:
        self._entries = entries
        self._loaded = read_sources()

    def renew(self) -> set[str]:
        """Import anew what has changed, whatever the time says, and return the names of all that was forgotten for it.

        Raises whatever the import raises; then the next call tries again.
        """
        renewed: set[str] = set()
        # once more where something changed meanwhile: what is kept must have been made by the code that it names
        while names := outdated(self._loaded, sources := read_sources()):
            changed = {name for name in names if sources.get(name) != self._loaded[name]}
            renewed |= names
            self._loaded |= dict.fromkeys(names, b"")
            _forget(names, changed)
            for entry in self._entries:
                import_module(entry)
            self._loaded = sources
        return renewed


def _forget(names: set[str], changed: set[str]) -> None:
    """Let the next import read these modules from their files; of those that changed nothing compiled is taken."""
    package = sys.modules[PACKAGE]
    if program := sys.modules.get(f"{PACKAGE}.program"):  # this one's may be an older one
        program.program.cache_clear()
    for name in names:
        sys.modules.pop(f"{PACKAGE}.{name}", None)
        vars(package).pop(name, None)
    for name in changed:  # Python would take what it compiled of a file of the same size in the same second
        Path(cache_from_source(str(FOLDER / f"{name}.py"))).unlink(missing_ok=True)
