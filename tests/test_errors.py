"""Errors say where, what and how to mend it."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder.errors import LessonError, LessonErrors, did_you_mean, with_excerpts


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ({"path": "content/lesson.md", "line": 12, "column": 7}, "content/lesson.md:12:7: wrong"),
        ({"path": "content/lesson.md", "line": 12}, "content/lesson.md:12: wrong"),
        ({"path": "content/lesson.md"}, "content/lesson.md: wrong"),
        ({}, "wrong"),
        ({"line": 12, "column": 7}, "wrong"),
    ],
)
def test_an_error_begins_with_its_place_as_far_as_it_is_known(place, text):
    """An error begins with path, line and column as far as they are known."""
    error = LessonError("wrong", **place)
    assert str(error) == text
    assert error.place == text.removesuffix("wrong").removesuffix(": ")


def test_a_hint_stands_on_a_line_of_its_own():
    """A hint stands on a line of its own."""
    assert str(LessonError("wrong", path="a.md", hint="mend it")) == "a.md: wrong\n  hint: mend it"


def test_errors_come_in_the_order_of_their_places():
    """Errors come in the order of their places: by number, not by text, and what has no place first."""
    errors = LessonErrors(
        [
            LessonError("e", path="b.md", line=1),
            LessonError("d", path="a.md", line=10, column=2),
            LessonError("c", path="a.md", line=9, column=10),
            LessonError("b", path="a.md", line=9, column=9),
            LessonError("a"),
        ]
    )
    assert [error.message for error in errors.errors] == ["a", "b", "c", "d", "e"]
    assert str(errors).splitlines()[0] == "a"
    assert str(errors).splitlines()[-1] == "b.md:1: e"


def test_no_error_is_our_own_mistake():
    """LessonErrors without an error is our own mistake."""
    with pytest.raises(AssertionError):
        LessonErrors([])


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("thoughput", ["time", "throughput"], "did you mean 'throughput'?"),
        ("xyz", ["time", "flops"], "known: time, flops"),
        ("xyz", ["time", "time"], "known: time"),
        ("xyz", [], None),
        ("xyz", [f"name_{n}" for n in range(21)], None),
    ],
)
def test_a_hint_names_the_closest_or_lists_a_few(name, known, hint):
    """A hint names the closest known name, lists them where none is close, and is silent where they are many."""
    assert did_you_mean(name, known) == hint


def test_an_error_quotes_the_line_that_it_is_about(tmp_path: Path) -> None:
    """The line, a mark below the column, of a long line what is near it; nothing where there is nothing to quote."""
    (tmp_path / "a.md").write_text(f"first\n\tsecond\n{'x' * 300}HERE{'y' * 300}\n", encoding="utf-8")
    told = with_excerpts("a.md:2:2: wrong\n  hint: mend it\na.md:1: also\na.md: all of it", tmp_path)
    assert told == (
        "a.md:2:2: wrong\n  2 |  second\n    |  ^\n  hint: mend it\na.md:1: also\n  1 | first\na.md: all of it"
    )
    _, line, mark = with_excerpts("a.md:3:301: wrong", tmp_path).split("\n")
    assert (line[mark.index("^") :][:4], len(line) < 110) == ("HERE", True)
    for text in ("a.md:9:1: wrong", "b.md:1:1: wrong", "wrong", "  File a.md:1:1: within"):
        assert with_excerpts(text, tmp_path) == text
