"""The lesson's text: from Markdown to HTML, every error at its place, cases in prose_cases/ as `input . expected`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from markdown_it.utils import read_fixture_file

from builder.errors import LessonErrors
from builder.facts import Facts
from builder.grid import load_grid
from builder.places import Source
from builder.prose import Prose, fill, load_prose, read, sources
from tests.conftest import ROOT

CASES = Path(__file__).parent / "prose_cases"
FRONT = "---\ntitle: The title\n---\n"
GRID = load_grid(ROOT)
FACTS = Facts(GRID)
DEFAULTS = GRID.defaults


def cases(name: str) -> list[Any]:
    """(Markdown, expected) of each case of a file, by its title."""
    found = read_fixture_file(CASES / name)
    assert found, f"{name} has no case"
    return [pytest.param(text, expected, id=title) for _, title, text, expected in found]


def read_text(text: str, *, front: str = FRONT) -> Prose:
    return read([Source("content/lesson.md", front + text)], FACTS)


def short(html: str) -> str:
    """HTML whose addresses leave out the axes that stand at the default."""

    def kept(match: re.Match[str]) -> str:
        pairs = (pair for pair in match[1].split("&amp;") if pair)
        moved = [pair for pair in pairs if str(getattr(DEFAULTS, pair.split("=")[0])) != pair.split("=")[1]]
        return f'href="#{"&amp;".join(moved)}"'

    return re.sub(r'href="#(phase=[^"]*)"', kept, html)


def whole(prose: Prose) -> str:
    """All HTML of a text, with its sections' headings."""
    parts = [prose.lead_html]
    parts += [f'<h2 id="{s.id}">{s.number} {s.title_html}</h2>\n{s.html}' for s in prose.sections]
    return short("".join([*parts, prose.footnotes_html]))


def told(prose: Prose, front: str = FRONT) -> str:
    """The errors of a text, a line each, with hints below; lines count from the end of the front matter."""
    lines = []
    for error in prose.errors:
        lines.append(f"{(error.line or 0) - front.count(chr(10))}:{error.column} {error.message}")
        lines += [f"  {error.hint}"] if error.hint else []
    return "\n".join(lines)


@pytest.mark.parametrize(("text", "expected"), [*cases("values.md"), *cases("blocks.md")])
def test_markdown_becomes_html(text: str, expected: str) -> None:
    """Each case of values.md and blocks.md."""
    prose = read_text(text)
    assert told(prose) == ""
    assert whole(prose).strip() == expected.strip()


@pytest.mark.parametrize(("text", "expected"), cases("errors.md"))
def test_every_mistake_has_its_place_and_its_remedy(text: str, expected: str) -> None:
    """Each case of errors.md."""
    assert told(read_text(text)) == expected.rstrip("\n")
