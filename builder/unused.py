"""What nothing uses: files that no build reads, sources that nobody cites, colours that nothing is drawn in.

A model of content/models and a GPU of content/gpus are always of use: `lesson ledger` reaches each by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from builder.catalog import read_toml
from builder.errors import LessonError, did_you_mean
from builder.measured import HISTORY_FILE, MEASURED_FILE
from builder.page import PAGES, TABLES
from builder.palette import FILLS, TOKENS
from builder.prose import Prose
from builder.provenance import CONSTANTS_FILE, SOURCES_FILE, Source, model_source

# What a build reads, joins or offers by its name.
READ = (
    "content/lesson.md",
    "content/sections/*.md",
    "content/grid.toml",
    SOURCES_FILE,
    CONSTANTS_FILE,
    "content/models/*.json",
    "content/gpus/*.toml",
    "content/samples/*.csv",
    "theme/css/*.css",
    "theme/js/*.js",
    "theme/icon.svg",
    *(f"theme/templates/{name}" for name in (*PAGES, *TABLES.values())),
)
# Data of one figure alone.
FIGURE_DATA = {HISTORY_FILE: "ridges-by-year", MEASURED_FILE: "model-vs-measured"}
_INCLUDED = re.compile(r"""{%-?\s*(?:include|extends|import|from)\s+["']([^"']+)["']""")
_TOKEN = re.compile(r"^\s*--([a-z0-9-]+):", re.MULTILINE)


def unused(root: Path, prose: Prose, sources: Mapping[str, Source]) -> list[LessonError]:
    """Everything of content/ and theme/ that could be taken away and not be missed, each at its place.

    sources: those of content/sources.toml by id.
    """
    return [*_files(root, prose), *_sources(root, sources), *_tokens(root)]


def _files(root: Path, prose: Prose) -> Iterator[LessonError]:
    shown = {figure.name for figure in prose.figures}
    for name, figure in FIGURE_DATA.items():
        if figure not in shown and (root / name).is_file():
            yield LessonError(f"only the figure '{figure}' shows this, and the text doesn't ask for it", path=name)
    known = {path for pattern in READ for path in root.glob(pattern)}
    known |= {root / name for name in FIGURE_DATA}
    known |= {root / "theme" / "templates" / name for name in _included(root / "theme" / "templates")}
    names = [path.relative_to(root).as_posix() for path in known]
    for path in sorted(path for folder in ("content", "theme") for path in (root / folder).rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
        if path.is_file() and not hidden and path not in known:
            name = path.relative_to(root).as_posix()
            yield LessonError(
                "nothing uses this file", path=name, hint=did_you_mean(name, names, 0.9) or "take it away"
            )


def _text(path: Path) -> str:
    """A file's text; one that isn't UTF-8 is told by who reads it, and still names here what it names."""
    return path.read_text(encoding="utf-8", errors="replace")


def _included(folder: Path) -> set[str]:
    """The templates that the pages are put together from, one by way of another."""
    found, left = set[str](), [*PAGES, *TABLES.values()]
    while left:
        name = left.pop()
        if name not in found and (folder / name).is_file():
            found.add(name)
            left += _INCLUDED.findall(_text(folder / name))
    return found


def _sources(root: Path, sources: Mapping[str, Source]) -> Iterator[LessonError]:
    """Sources that no number names and no text links to."""
    data = "\n".join(
        _text(path)
        for pattern in ("gpus/*.toml", "*.toml")
        for path in (root / "content").glob(pattern)
        if path != root / SOURCES_FILE
    )
    models = {model_source(path.stem) for path in (root / "content" / "models").glob("*.json")}
    texts = [root / "content" / "lesson.md", *(root / "content" / "sections").glob("*.md")]
    text = "\n".join(_text(path) for path in texts)
    for name, source in sources.items():
        linked = any(address in text for address in source.addresses)
        if not linked and name not in models and f'"{name}"' not in data:
            line, column = read_toml(root / SOURCES_FILE, SOURCES_FILE).place_of(*name.split("."))
            hint = f'take it away, or name it where its number stands: source = "{name}"'
            yield LessonError(
                f"nothing has the source '{name}'", path=SOURCES_FILE, line=line, column=column, hint=hint
            )


def _tokens(root: Path) -> Iterator[LessonError]:
    """Custom properties of tokens.css that no style, script or template takes, and no drawing of the builder names."""
    tokens = root / TOKENS
    if not tokens.is_file():
        return
    text = _text(tokens)
    theme = "".join(
        _text(path)
        for pattern in ("css/*.css", "js/*.js", "templates/*.html")
        for path in sorted((root / "theme").glob(pattern))
    )
    drawn = "".join(_text(path) for path in sorted(Path(__file__).parent.glob("*.py")))
    seen = set[str]()
    for found in _TOKEN.finditer(text):
        name = found[1]
        if (
            name in seen
            or re.search(rf"(?:var\(|[\"'`])--{name}(?![\w-])", theme)
            or f'"{name}"' in drawn
            or name in FILLS.values()
        ):
            continue
        seen.add(name)
        line = text.count("\n", 0, found.start(1)) + 1
        column = found.start(1) - text.rfind("\n", 0, found.start(1)) - 2
        yield LessonError(f"nothing takes --{name}", path=TOKENS, line=line, column=column, hint="take it away")
