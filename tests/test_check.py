"""`lesson check`: everything at once."""

import shutil
from pathlib import Path

import pytest

from builder import check
from builder.errors import LessonError, LessonErrors
from builder.grid import load_grid
from builder.provenance import provenance
from builder.site import Site
from tests.conftest import ROOT


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the content to break; the build itself has tests of its own."""
    shutil.copytree(ROOT / "content", tmp_path / "content")
    monkeypatch.setattr(check, "assemble", lambda root, prose: Site())
    return tmp_path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_the_lesson_itself_is_right(checkout):
    """Nothing to tell, and hundreds of numbers bound."""
    prose, errors = check.check(checkout)
    assert errors == []
    assert prose is not None
    assert prose.count("value") >= 150


def test_a_number_without_a_known_source_is_told(checkout):
    """File, line and key of the number, and the source that may be meant."""
    edit(checkout / "content" / "gpus" / "h100.toml", 'source = "sheet.h100"', 'source = "sheet.h10"')
    _, errors = check.check(checkout)
    (error,) = errors
    assert error.path == "content/gpus/h100.toml"
    assert error.line == 8
    assert error.message == "'peak_flops' has the source 'sheet.h10', which is not in content/sources.toml"
    assert error.hint == "did you mean 'sheet.h100'?"


def test_a_source_without_an_address_is_told(checkout):
    """A source is something that a reader can open."""
    sources = checkout / "content" / "sources.toml"
    edit(sources, 'url = "https://arxiv.org/abs/2305.13245"', 'url = "arxiv.org/abs/2305.13245"')
    edit(sources, '"https://github.com/NVIDIA', '"http://github.com/NVIDIA')  # the second of three
    told = [error for error in check.check(checkout)[1] if "address" in error.message]
    lines = sources.read_text(encoding="utf-8").split("\n")
    assert [error.message for error in told] == [
        "'paper.gqa' has no https address",
        "'memory.totals' has no https address",
    ]
    assert [lines[(error.line or 0) - 1] for error in told] == ["[paper.gqa]", "[memory.totals]"]


def test_a_model_without_a_source_is_told(checkout):
    """Its file, and the table to add; where the sources can't be read that alone is told, once."""
    sources = checkout / "content" / "sources.toml"
    edit(sources, "[model.llama_3_1_8b]", "[model.llama_3_1_8]")
    _, errors = check.check(checkout)
    unsourced, unused = sorted(errors, key=lambda error: error.path or "")
    assert str(unsourced) == (
        "content/models/Llama-3.1-8B.json: the address of this config.json is not in content/sources.toml\n"
        '  hint: add [model.llama_3_1_8b] with url = "https://…"'
    )
    assert unused.path == "content/sources.toml"
    assert unused.line == sources.read_text(encoding="utf-8").split("\n").index("[model.llama_3_1_8]") + 1
    sources.write_text("[", encoding="utf-8")
    assert [error.path for error in check.check(checkout)[1]] == ["content/sources.toml"]


def test_mistakes_of_every_kind_come_together(checkout, monkeypatch):
    """An unbound number in the prose, a number without a source, and what the build says."""

    def broken(root: Path, prose: object) -> Site:
        raise LessonErrors([LessonError("there is no figure 'x'", path="content/lesson.md", line=1)])

    monkeypatch.setattr(check, "assemble", broken)
    edit(checkout / "content" / "lesson.md", "You have probably heard", "You have 17 times heard")
    edit(checkout / "content" / "gpus" / "h100.toml", 'source = "sheet.h100"', 'source = "nowhere"')
    _, errors = check.check(checkout)
    told = "\n".join(error.message for error in errors)
    assert "17" in told
    assert "'nowhere'" in told
    assert "there is no figure 'x'" in told


def test_what_the_build_tells_too_is_told_once(checkout, monkeypatch):
    """The build wants a source for what the page lists, and so does the check."""
    edit(checkout / "content" / "gpus" / "h100.toml", 'source = "sheet.h100"', 'source = "nowhere"')

    def broken(root: Path, prose: object) -> Site:
        provenance(root, load_grid(root))
        return Site()

    monkeypatch.setattr(check, "assemble", broken)
    _, errors = check.check(checkout)
    assert [error.message for error in errors] == [
        "'peak_flops' has the source 'nowhere', which is not in content/sources.toml"
    ]


def test_without_a_grid_nothing_else_is_judged(checkout):
    """What is wrong with the data comes alone: the prose could not be held against it."""
    (checkout / "content" / "grid.toml").write_text("model = 3\n", encoding="utf-8")
    prose, errors = check.check(checkout)
    assert prose is None
    assert {error.path for error in errors} == {"content/grid.toml"}


def test_without_a_text_nothing_else_is_judged(checkout):
    """A lesson.md that isn't there is an error like any other, and no traceback."""
    (checkout / "content" / "lesson.md").unlink()
    prose, errors = check.check(checkout)
    assert (prose, [error.place for error in errors]) == (None, ["content/lesson.md"])
