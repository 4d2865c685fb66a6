"""Everything that can be wrong with the content, at once: what fails a build, and numbers without a source."""

from __future__ import annotations

from pathlib import Path

from builder.build import assemble
from builder.errors import LessonError, LessonErrors
from builder.facts import Facts
from builder.grid import load_grid
from builder.prose import Prose, read, sources
from builder.provenance import unsourced


def check(root: Path) -> tuple[Prose | None, list[LessonError]]:
    """The prose, where it could be read at all, and everything that is wrong with the content of a checkout."""
    try:
        grid = load_grid(root)
        prose = read(sources(root), Facts(grid))
    except LessonErrors as problems:
        return None, list(problems.errors)
    except LessonError as error:
        return None, [error]
    errors = [*prose.errors, *unsourced(root)]
    try:
        assemble(root, prose=prose)
    except LessonErrors as problems:
        told = set(map(str, errors))  # the build too wants a source for what the page lists
        errors += [error for error in problems.errors if str(error) not in told]
    return prose, errors
