"""Everything that can be wrong with the content, at once: what fails a build, what has no source, what nothing uses."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from builder.build import assemble
from builder.errors import LessonError, LessonErrors
from builder.facts import Facts
from builder.grid import load_grid
from builder.prose import Prose, read, sources
from builder.provenance import SOURCES_FILE, model_source, read_sources, unsourced
from builder.unused import unused


def check(root: Path) -> tuple[Prose | None, list[LessonError]]:
    """The prose, where it could be read at all, and everything that is wrong with the content of a checkout."""
    try:
        grid = load_grid(root)
        prose = read(sources(root), Facts(grid))
    except LessonErrors as problems:
        return None, list(problems.errors)
    except LessonError as error:
        return None, [error]
    errors = [*prose.errors, *unsourced(root), *unsourced_models(root)]
    with suppress(LessonErrors):  # told by unsourced() already
        errors += unused(root, prose, read_sources(root)[0])
    try:
        assemble(root, prose=prose)
    except LessonErrors as problems:
        told = set(map(str, errors))  # the build too wants a source for what the page lists
        errors += [error for error in problems.errors if str(error) not in told]
    return prose, errors


def unsourced_models(root: Path) -> list[LessonError]:
    """Models whose published config.json has no address in content/sources.toml."""
    try:
        known, _ = read_sources(root)
    except LessonErrors:
        return []  # told by unsourced()
    return [
        LessonError(
            f"the address of this config.json is not in {SOURCES_FILE}",
            path=path.relative_to(root).as_posix(),
            hint=f'add [{model_source(path.stem)}] with url = "https://…"',
        )
        for path in sorted((root / "content" / "models").glob("*.json"))
        if model_source(path.stem) not in known
    ]
