"""The lesson's text: from Markdown to HTML, every error at its place, cases in prose_cases/ as `input . expected`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as settings_of
from hypothesis import strategies as st
from markdown_it.utils import read_fixture_file

from builder.errors import LessonErrors
from builder.facts import Facts
from builder.grid import load_grid
from builder.places import Source
from builder.prose import Prose, fill, load_prose, read, sources
from tests.conftest import ROOT
from tests.strategies import MARKDOWN

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


FRONT_ERRORS = [
    ("", 1, "the front matter is missing"),
    ("title: x\n", 1, "the front matter is missing"),
    ("---\ntitle: x\n", 1, "the front matter isn't closed"),
    ("---\ntitle: x\ntitel: y\n---\n", 3, "the front matter has no 'titel'"),
    ("---\ntitle: x\ntitle: y\n---\n", 3, "'title' stands twice"),
    ("---\nA title\n---\n", 2, "this line isn't key: value"),
    ("---\ndek: x\n---\n", 1, "the front matter has no title"),
    ("---\ntitle: For 64 users\n---\n", 2, "'64' is bound to no fact"),
    ("---\ntitle: x\ndescription: >\n  Some 64\n---\n", 4, "'64' is bound to no fact"),
    ("---\ntitle: x\ndek: It is\n  at [296]{gpu.ridge_point}\n---\n", 4, "296 → 295: gpu.ridge_point is 295.2 FLOP/B"),
    ("---\ntitle: x\npoint: tokens=0\n---\n", 3, "tokens must be a whole number from 1 to 16,777,216, not 0"),
    ("---\ntitle: x\npoint: token=1\n---\n", 3, "a point has no 'token'"),
]


@pytest.mark.parametrize(("text", "line", "message"), FRONT_ERRORS)
def test_a_mistake_in_the_front_matter_has_its_line(text: str, line: int, message: str) -> None:
    """Missing, open, misspelt, double, unbound, stale, and a point off its axis."""
    errors = read_text(text, front="").errors
    assert (line, message) in [(error.line, error.message) for error in errors]


def test_facts_start_from_the_point_of_the_front_matter() -> None:
    """The grid's default, then the front matter's, then what follows the @."""
    front = "---\ntitle: T\npoint: tokens=64 context=8k\n---\n"
    prose = read_text("[1,840]{throughput}, [164]{throughput @ tokens=1}", front=front)
    assert told(prose) == ""
    assert prose.bound[0].point == prose.bound[0].exact
    assert prose.bound[0].fragment == "#phase=decode&tokens=64&context=8192&gpu=h100&weights=bf16&kv=bf16&attention=gqa"


def test_title_and_description_are_also_plain_text() -> None:
    """A browser's title bar has no links."""
    front = '---\ntitle: "An H100 is at [295]{gpu.ridge_point}"\ndescription: Up to *[295]{gpu.ridge_point}*.\n---\n'
    prose = read_text("x", front=front)
    assert told(prose, front) == ""
    assert (prose.title, prose.description) == ("An H100 is at 295", "Up to 295.")
    assert prose.title_html.startswith('An H100 is at <a class="bound"')


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_places_hold_with_every_kind_of_line_end(end: str) -> None:
    """Lines and columns, and the offsets that a fix writes to."""
    text = (FRONT + "## Head\n\n- a\n  [296]{gpu.ridge_point} and 64\n").replace("\n", end)
    prose = read([Source("l.md", text)], FACTS)
    assert [(error.line, error.column) for error in prose.errors] == [(7, 4), (7, 30)]
    start, stop = prose.bound[0].numeral or (0, 0)
    assert text[start:stop] == "296"


def test_a_byte_order_mark_is_no_text() -> None:
    """Some editors put one before the front matter."""
    assert read_text("x", front="\ufeff" + FRONT).errors == ()


def test_a_lesson_may_be_split_into_files(tmp_path: Path) -> None:
    """lesson.md, then sections/ in the order of their names: one numbering, errors in the right file, all at once."""
    sections = tmp_path / "content" / "sections"
    sections.mkdir(parents=True)
    (tmp_path / "content" / "lesson.md").write_text(
        FRONT + "Lead.[^a]\n\n[^a]: In lesson.\n\n## One\n\nSee [](#last).\n", encoding="utf-8"
    )
    (sections / "20-b.md").write_text("## Last\n\nAt 64.[^a]\n\n[^a]: In b.\n", encoding="utf-8")
    (sections / "10-a.md").write_text("Still the first.\n\n## Second\n\nAt 32.\n", encoding="utf-8")
    with pytest.raises(LessonErrors) as caught:
        load_prose(tmp_path, FACTS)
    assert [error.place for error in caught.value.errors] == [
        "content/sections/10-a.md:5:4",
        "content/sections/20-b.md:3:4",
    ]
    prose = read(sources(tmp_path), FACTS)
    assert [(s.number, s.id) for s in prose.sections] == [(1, "one"), (2, "second"), (3, "last")]
    assert '<a href="#last">3</a>' in prose.sections[0].html
    assert "Still the first." in prose.sections[0].html
    assert re.findall(r'<li id="(\w+)"', prose.footnotes_html) == ["fn1", "fn2"]
    assert 'href="#fn2"' in prose.sections[2].html
    assert prose.footnotes_html.count("<ol>") == 1


def test_a_missing_text_and_one_that_is_not_utf8_are_said(tmp_path: Path) -> None:
    """No traceback for a file that isn't there or isn't text."""
    (tmp_path / "content").mkdir()
    with pytest.raises(LessonErrors, match=r"content/lesson\.md: there is no such file"):
        load_prose(tmp_path, FACTS)
    (tmp_path / "content" / "lesson.md").write_bytes(b"---\ntitle: \xff\n---\n")
    with pytest.raises(LessonErrors, match=r"content/lesson.md: not UTF-8 text \(byte 11\)"):
        load_prose(tmp_path, FACTS)


def test_all_mistakes_are_told_at_once_each_hint_once() -> None:
    """Forty-nine stale numbers are forty-nine errors, in the order of the text."""
    prose = read_text("\n\n".join("[1]{throughput} and 2" for _ in range(49)))
    assert len(prose.errors) == 98
    assert [error.line for error in prose.errors] == sorted(error.line or 0 for error in prose.errors)
    assert sum(1 for error in prose.errors if error.hint) == 2


def test_slots_are_filled_and_none_is_forgotten() -> None:
    """Figures and the bench come from elsewhere."""
    prose = read_text("::: bench\n:::\n\n::: figure one\nalt: x\n\nSee.\n:::\n")
    assert [(figure.name, figure.alt, figure.line) for figure in prose.figures] == [("one", "x", 7)]
    filled = fill(prose.lead_html, {"bench": "BENCH", "figure one": "SVG"})
    assert "BENCH" in filled
    assert "SVG" in filled
    assert "slot" not in filled
    with pytest.raises(KeyError, match="figure one"):
        fill(prose.lead_html, {"bench": "BENCH"})


def test_kinds_are_counted() -> None:
    """Values, claims and exemptions."""
    prose = read_text("[164]{throughput} [so]{throughput > 100} [2009]{exempt: the year} [295]{gpu.ridge_point}")
    assert [prose.count(kind) for kind in ("value", "claim", "exempt")] == [2, 1, 1]


def test_a_bound_number_knows_its_sentence() -> None:
    """The sentence as a reader sees it, markup and facts left out."""
    text = "Before this. Here it *writes*\n[164]{throughput} tokens ([see](http://x.y)). After [295]{gpu.ridge_point}."
    prose = read_text(text)
    assert [bound.sentence for bound in prose.bound] == ["Here it writes 164 tokens (see).", "After 295."]


def test_a_cell_knows_its_row() -> None:
    """A number in a table says little without the cells beside it."""
    prose = read_text("| GPU | ridge |\n|---|---|\n| *A100*, [see](http://x.y) | [153]{gpu.ridge_point @ gpu=a100} |\n")
    assert [bound.sentence for bound in prose.bound] == ["A100, see | 153"]


def test_two_readings_are_equal() -> None:
    """Nothing depends on what was read before."""
    text = "\n".join(case.values[0] for case in cases("values.md"))
    once, again = read_text(text), read_text(text)
    assert (once.lead_html, once.bound, told(once)) == (again.lead_html, again.bound, told(again))


def test_the_lesson_itself_is_bound() -> None:
    """Every number of the lesson has its fact, and there are many."""
    prose = load_prose(ROOT, FACTS)
    assert prose.count("value") + prose.count("claim") >= 150


def reads_or_errs(text: str, facts: Facts = FACTS) -> None:
    """Any text is read without a traceback; every error and every span lies within it, at what it speaks of."""
    source = Source("content/lesson.md", text)
    prose = read([source], facts)
    for error in prose.errors:
        assert error.line is not None
        assert error.column is not None
        assert 1 <= error.line <= len(source.lines)
        assert 1 <= error.column <= len(source.lines[error.line - 1]) + 1
    for bound in prose.bound:
        assert 0 <= bound.start < bound.end <= len(text)
        assert text[bound.start : bound.end].startswith(("[", "\\bound{"))
        if bound.numeral:
            assert text[slice(*bound.numeral)] == bound.said
            assert bound.start < bound.numeral[0] < bound.numeral[1] < bound.end


@given(MARKDOWN)
@settings_of(max_examples=300)
def test_no_text_makes_the_reader_fail(text: str) -> None:
    """Half-finished markup of every kind, in every order."""
    reads_or_errs(FRONT + text)


@given(st.text(max_size=100) | MARKDOWN)
@settings_of(max_examples=100)
def test_no_front_matter_makes_the_reader_fail(text: str) -> None:
    """Nor does a file without any."""
    reads_or_errs("---\n" + text)
    reads_or_errs(text)
