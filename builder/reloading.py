"""The builder's own code in a process that goes on when it changes: imported anew, while libraries stay loaded."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module, invalidate_caches
from importlib.util import cache_from_source
from types import ModuleType
from typing import Any

from builder import program
from builder.program import FOLDER, Sources, imported, read_sources

PACKAGE = FOLDER.name


def outdated(loaded: Sources, sources: Sources) -> set[str]:
    """What has changed since it was loaded, came or went, and all that imports it."""
    found = {name for name in {*loaded, *sources} if loaded.get(name) != sources.get(name)}
    if "__init__" in found:
        return {*loaded, *sources}
    takes = {name: imported(source) for name, source in loaded.items()}
    while more := {name for name in takes if name not in found and takes[name] & found}:
        found |= more
    return found


class Code:
    """The builder's modules in this process. `entries`: those that are imported whenever anything has changed."""

    def __init__(self, entries: Sequence[str]) -> None:
        self._entries = entries
        self._sources = dict(program.loaded())  # of the last time that all could be imported
        self._loaded = dict(self._sources)  # without those of modules that were forgotten since

    def renew(self) -> set[str]:
        """Import anew what has changed, whatever the time says, and all that imports it; return what has changed.

        Raises whatever the import raises; then the next call tries again.
        """
        # once more where something changed meanwhile: what is kept must have been made by the code that it names
        while names := outdated(self._loaded, sources := read_sources()):
            anew = {name for name in names if sources.get(name) != self._loaded.get(name)}
            self._loaded |= dict.fromkeys(names, b"")
            _forget(names, anew)
            for entry in self._entries:
                import_module(entry)
            self._loaded = dict(sources)
        changed = {name for name in {*self._sources, *sources} if self._sources.get(name) != sources.get(name)}
        if changed:
            self._sources = dict(sources)
            _program().load(sources)
        return changed


def _program() -> Any:
    """The module that what is new asks for its hash; this one's may be an older one."""
    return import_module(f"{PACKAGE}.program")


def _forget(names: set[str], anew: set[str]) -> None:
    """Let the next import read these modules from their files; of those that changed nothing compiled is taken."""
    package: ModuleType = sys.modules[PACKAGE]
    for name in names:
        sys.modules.pop(f"{PACKAGE}.{name}", None)
        vars(package).pop(name, None)
    for name in anew:  # Python would take what it compiled of a file of the same size in the same second
        (FOLDER / cache_from_source(f"{name}.py")).unlink(missing_ok=True)
    invalidate_caches()
