"""What could be taken away and not be missed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from builder import unused as module
from builder.check import check
from builder.prose import Figure, Prose
from builder.provenance import model_source, read_sources
from builder.unused import unused
from tests.conftest import ROOT

FIGURES = tuple(Figure(name, "alt", "content/lesson.md", 1) for name in ("ridges-by-year", "model-vs-measured"))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of content and theme to add to."""
    for folder in ("content", "theme"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def told(root: Path, figures: tuple[Figure, ...] = FIGURES) -> list[str]:
    return [str(error).split("\n")[0] for error in unused(root, Prose(figures=figures), read_sources(root)[0])]


def append(path: Path, text: str) -> int:
    """Add lines to a file; the number of the first of them."""
    before = path.read_text(encoding="utf-8")
    path.write_text(before + text, encoding="utf-8")
    return before.count("\n") + 1


def test_everything_in_the_lesson_is_of_use(checkout: Path) -> None:
    """Models and GPUs are, whether the page shows them or not: a command asks for them by name."""
    assert told(checkout) == []


@pytest.mark.parametrize(
    "name", ["content/notes.md", "content/models/readme.txt", "content/gpus/old/h100.toml", "theme/css/old/a.css"]
)
def test_a_file_that_no_build_reads_is_told(checkout: Path, name: str) -> None:
    """In any folder of content/ and theme/."""
    (checkout / name).parent.mkdir(exist_ok=True)
    (checkout / name).touch()
    assert told(checkout) == [f"{name}: nothing uses this file"]


def test_what_a_build_reads_by_its_place_is_of_use(checkout: Path) -> None:
    """Another section, model, GPU, style or script; and what editors and systems leave about is no file of ours."""
    names = ["content/sections/a.md", "content/gpus/x.toml", "theme/css/a.css", "theme/js/a.js", "content/.DS_Store"]
    for name in names:
        (checkout / name).parent.mkdir(exist_ok=True)
        (checkout / name).touch()
    assert told(checkout) == []


def test_a_misnamed_file_is_told_with_the_name_that_is_read(checkout: Path) -> None:
    """content/sorces.toml is read by nobody."""
    (checkout / "content" / "sorces.toml").touch()
    (error,) = unused(checkout, Prose(figures=FIGURES), read_sources(checkout)[0])
    assert error.hint == "did you mean 'content/sources.toml'?"


def test_a_template_is_of_use_where_a_page_includes_it(checkout: Path) -> None:
    """By way of another template too; one that only an unused one includes is unused."""
    folder = checkout / "theme" / "templates"
    for name, text in {
        "a.html": '{% include "b.html" %}',
        "b.html": "",
        "c.html": "{%- import 'd.html' as d %}",
    }.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "d.html").touch()
    append(folder / "bench.html", '{% include "a.html" %}')
    assert told(checkout) == [f"theme/templates/{name}.html: nothing uses this file" for name in "cd"]


def test_data_of_a_figure_that_the_text_leaves_out_is_told(checkout: Path) -> None:
    """Only the figure of ridges shows history.toml, and only that of measured steps measured.toml."""
    assert told(checkout, FIGURES[1:]) == [
        "content/history.toml: only the figure 'ridges-by-year' shows this, and the text doesn't ask for it"
    ]
    assert [text.split(":")[0] for text in told(checkout, ())] == ["content/history.toml", "content/measured.toml"]
    assert set(module.FIGURE_DATA.values()) == {figure.name for figure in FIGURES}


def test_a_source_that_nobody_cites_is_told(checkout: Path) -> None:
    """At its line. A number that names it, a link to its address, or its model's file would be a use."""
    sources = checkout / "content" / "sources.toml"
    text = '[paper.new]\nurl = ["https://example.org/first", "https://example.org/newer"]\n'
    line = append(sources, text)
    assert told(checkout) == [f"content/sources.toml:{line}:2: nothing has the source 'paper.new'"]
    append(checkout / "content" / "lesson.md", "\nAnd [more](https://example.org/newer).\n")
    assert told(checkout) == []


def test_a_source_is_cited_by_a_number_and_by_a_model(checkout: Path) -> None:
    """Without the model's file, or without the number, it is not."""
    (checkout / "content" / "models" / "Qwen3-0.6B.json").unlink()
    history = checkout / "content" / "history.toml"
    history.write_text(history.read_text(encoding="utf-8").replace("sheet.v100", "sheet.p100"), encoding="utf-8")
    lesson = checkout / "content" / "lesson.md"
    text = lesson.read_text(encoding="utf-8").replace("https://www.nvidia.com/en-us/data-center/v100/", "https://x.org")
    lesson.write_text(text, encoding="utf-8")
    assert [text.rpartition(" ")[2] for text in told(checkout)] == ["'sheet.v100'", "'model.qwen3_0_6b'"]
    assert model_source("Qwen3-0.6B") == "model.qwen3_0_6b"


def test_a_token_that_nothing_takes_is_told_once(checkout: Path) -> None:
    """At its line; --ink2-old is no use of --ink2, and of a token of both schemes the first is told."""
    tokens = checkout / "theme" / "css" / "tokens.css"
    line = append(tokens, "\n:root {\n  --ink-old: #123456;\n  --ink-old: Canvas;\n}\n") + 2
    assert told(checkout) == [f"theme/css/tokens.css:{line}:3: nothing takes --ink-old"]
    append(checkout / "theme" / "css" / "10-base.css", "p { color: var(--ink-older); }\n")
    assert len(told(checkout)) == 1
    append(checkout / "theme" / "css" / "10-base.css", "p { color: var(--ink-old); }\n")
    assert told(checkout) == []


@pytest.mark.parametrize("name", ["content/measured.toml", "content/gpus/b200.toml", "theme/css/10-base.css"])
def test_a_file_that_is_no_text_is_told_by_who_reads_it(checkout: Path, name: str) -> None:
    """It is of use still, with all that it names: only its own mistake is told, and nothing breaks."""
    path = checkout / name
    path.write_bytes(path.read_bytes() + b"# \xff\n")
    assert told(checkout) == []
    assert [error.path for error in check(checkout)[1]] == [name]
