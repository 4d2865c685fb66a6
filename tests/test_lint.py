"""The lint: which numbers of a text are seen and which are none. Cases in prose_cases/lint.md."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it.utils import read_fixture_file

from builder import lint
from builder.numerals import numerals_in
from tests.test_prose import CASES, read_text, told

FOUND = [pytest.param(text, expected, id=title) for _, title, text, expected in read_fixture_file(CASES / "lint.md")]


@pytest.mark.parametrize(("text", "expected"), FOUND)
def test_the_lint_sees_what_it_should(text: str, expected: str) -> None:
    """Each case of lint.md: columns and texts."""
    lines = [line for line in told(read_text(text)).splitlines() if not line.startswith("  ")]
    assert [line.replace(" is bound to no fact", "").replace("'", "") for line in lines] == expected.splitlines()


CONTEXTS = [
    "{}",
    "## Heading {}",
    "- item\n  - {}",
    "> > {}",
    "1. a\n\n   {}",
    "| a |\n|---|\n| {} |",
    "| {} |\n|---|\n| a |",
    "x[^a]\n\n[^a]: {}",
    "![{}](a.png)",
    "[{}](https://example.org)",
    "**bold {}**",
    "::: figure one\nalt: {}\n\nSee.\n:::",
    "::: figure one\nalt: See.\n\n{}\n:::",
    "::: figure one\nalt: See.\n\nSee.\n\n{}\n:::",
    "::: question\n{}\n\n- [x] a\n\n  b\n:::",
    "::: question\nAsk.\n\n- [x] {}\n\n  b\n:::",
    "::: question\nAsk.\n\n- [x] a\n\n  {}\n:::",
    "text\nlazy {}\nline",
]


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("number", ["64", "1,840 tokens per second", "sixty"])
def test_a_number_is_seen_wherever_a_text_can_stand(context: str, number: str) -> None:
    """Prose, headings, lists, quotes, tables, footnotes, alternative texts, captions, questions and answers."""
    text = context.format(number)
    line = next(k for k, each in enumerate(text.split("\n"), 1) if number in each)
    column = text.split("\n")[line - 1].index(number) + 1
    assert f"{line}:{column} '{number}' is bound to no fact" in told(read_text(text))
    bound = context.format(f"[{number}]{{exempt: a reason}}")
    if "](https" not in context:
        assert told(read_text(bound)) == ""


@given(st.text(max_size=200))
def test_blotting_out_names_keeps_every_place(text: str) -> None:
    """What holds digits and is no number is overwritten, never moved."""
    assert len(lint.without_names(text, ("A100 80GB SXM", "H100"))) == len(text)


@given(st.text(alphabet="0123456789,.k% −–-+×twohalfandhird \u00a0\u202f\n", max_size=80))
def test_numerals_stand_apart_and_in_order(text: str) -> None:
    """No two numerals share a character, and each is what stands there."""
    last = 0
    for numeral in numerals_in(text):
        assert last <= numeral.start < numeral.end
        assert text[numeral.start : numeral.end] == numeral.text
        last = numeral.end


def test_the_cases_are_read() -> None:
    """A fixture file that can't be found would pass silently."""
    assert Path(CASES / "lint.md").is_file()
    assert len(FOUND) > 10
