"""CSV files of a reader: every cell knows where it stands, and every mistake is told at its place."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.errors import LessonErrors
from builder.sheets import brief, clean, number, read_sheet, require


def problems(text: str) -> list[str]:
    """What is wrong with a file, each with its place."""
    with pytest.raises(LessonErrors) as raised:
        read_sheet(text, "x.csv").finish()
    return [str(error).partition("\n")[0] for error in raised.value.errors]


def test_a_cell_stands_where_an_editor_shows_it():
    """Lines and columns from 1; comments and blank lines count as lines, quotes as letters."""
    sheet = read_sheet('# a comment\n\na,"b, c",d\n1,"2, ""3""",4\n', "x.csv")
    (row,) = sheet.rows
    assert [(name, cell.text, cell.line, cell.column) for name, cell in row.items()] == [
        ("a", "1", 4, 1),
        ("b, c", '2, "3"', 4, 3),
        ("d", "4", 4, 14),
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_any_line_end_ends_a_line(end):
    """As spreadsheets of all systems write them."""
    assert [row["a"].line for row in read_sheet(f"a{end}1{end}2{end}", "x.csv").rows] == [2, 3]


def test_a_quoted_text_may_run_over_lines():
    """The cells after it have a line and no column."""
    sheet = read_sheet('a,b\n"one\ntwo",3\n4,5\n', "x.csv")
    assert [(row["b"].line, row["b"].column) for row in sheet.rows] == [(2, None), (4, 3)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "x.csv: the file is empty"),
        ("\n# only a comment\n", "x.csv: the file is empty"),
        ("a,b\n", "x.csv:1:1: there is nothing below the header"),
        ("a;b\n1;2\n", "x.csv:1:2: semicolons separate the columns"),
        ('"a";"b"\n"1";"2"\n', "x.csv:1:4: semicolons separate the columns"),
        ("a\tb\n1\t2\n", "x.csv:1:2: tabs separate the columns"),
        ("a,b\n1,2,3\n", "x.csv:2:1: 3 cells under 2 columns"),
        ("a,b\n1\n", "x.csv:2:1: 1 cell under 2 columns"),
        ('a,b\n1,"2\n', "x.csv:2: not a line of CSV: unexpected end of data"),
        ('a,b\n1,"2"3\n', "x.csv:2: not a line of CSV: ',' expected after '\"'"),
    ],
)
def test_what_is_no_table_is_told_at_its_place(text, told):
    """Empty files, other separators, ragged rows, broken quotes."""
    assert problems(text) == [told]


def test_all_broken_lines_come_in_one_run():
    """A bad line does not hide the next."""
    assert len(problems('a,b\n1\n1,"2"3\n1,2\n1,2,3\n')) == 3


def test_missing_columns_are_named_together():
    """One sentence, at the header."""
    with pytest.raises(LessonErrors, match="the columns 'b', 'c' and 'd' are missing"):
        require(read_sheet("a\n1\n", "x.csv"), ("a", "b", "c", "d"), "such as …")


@pytest.mark.parametrize(
    ("text", "value"),
    [("34.8", 34.8), (" 1,234.5 ", 1234.5), ("1e-3", 0.001), ("12,345,678", 12345678), ("-3", -3), ("0", 0), ("5.", 5)],
)
def test_a_number_is_read_as_people_write_it(text, value):
    """Commas group thousands, a point begins decimals."""
    assert number(text) == value


@pytest.mark.parametrize("text", ["9,00", "1,2345", "1.234,50", "0,5"])
def test_a_decimal_comma_is_refused(text):
    """Never read as thousands."""
    with pytest.raises(ValueError, match="write decimals with a point"):
        number(text)


@pytest.mark.parametrize("text", ["", "nan", "inf", "3 ms", "0x10", "1_000", "--3", "٣", "1e999", "1e9999"])
def test_what_is_no_number_is_refused(text):
    """No NaN, no infinity, no unit."""
    with pytest.raises(ValueError, match="digits alone"):
        number(text)


def test_an_error_quotes_a_cell_on_one_short_line():
    """Whatever a file holds, a terminal stays whole."""
    assert brief("a\nb\x1b[2J" + "x" * 90) == "'a b\ufffd[2J" + "x" * 32 + "…'"
    assert clean("void  f(\tint)\x00") == "void f( int)\ufffd"


@given(st.lists(st.lists(st.text(alphabet='ab1 ,"', max_size=6), min_size=2, max_size=2), min_size=1, max_size=5))
def test_what_the_csv_module_writes_is_read_back(rows):
    """Cells with commas and quotes come back as they were, each where it stands in its line."""
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([["x", "y"], *rows])
    text = out.getvalue()
    sheet = read_sheet(text, "x.csv")
    assert [[cell.text for cell in row.values()] for row in sheet.rows] == rows
    for row in sheet.rows:
        for cell in row.values():
            assert cell.column is not None
            quoted = '"' + cell.text.replace('"', '""') + '"'
            assert text.splitlines()[cell.line - 1][cell.column - 1 :].startswith(quoted)


@given(st.text(alphabet='ab1.,;"#\n\r\t= ', max_size=60))
def test_no_text_breaks_the_reader(text):
    """A table, or LessonErrors: never anything else."""
    rows, wrong = 0, []
    try:
        sheet = read_sheet(text, "x.csv")
        sheet.finish()
        rows = len(sheet.rows)
    except LessonErrors as problems:
        wrong = [error.path for error in problems.errors]
    assert set(wrong) == (set() if rows else {"x.csv"})
