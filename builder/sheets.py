"""A CSV file that a reader brings: its rows as cells that know where they stand, and the numbers in them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite

from builder.errors import LessonError, LessonErrors

_FIELD = re.compile(r'"(?:[^"]|"")*"?|[^,]*')
_NUMBER = re.compile(r"[-+]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]*)?(?:[eE][-+]?[0-9]{1,3})?")
_DECIMAL_COMMA = re.compile(r"[-+]?[0-9]+(?:\.[0-9]{3})*,[0-9]+")
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


@dataclass(frozen=True)
class Cell:
    """The text of one cell and where it begins; the column is None where a quoted text ran over lines before it."""

    text: str
    line: int
    column: int | None


@dataclass
class Sheet:
    """The rows of a file below its header, each a mapping from the names of its columns, and what is wrong so far."""

    path: str
    columns: list[Cell]
    rows: list[Mapping[str, Cell]]
    errors: list[LessonError] = field(default_factory=list)

    def wrong(self, message: str, cell: Cell, hint: str | None = None) -> None:
        """Note a mistake at a cell, and go on."""
        self.errors.append(LessonError(message, path=self.path, line=cell.line, column=cell.column, hint=hint))

    def finish(self) -> None:
        """Raise LessonErrors with everything noted, if anything was."""
        if self.errors:
            raise LessonErrors(self.errors)


def brief(text: str) -> str:
    """A cell as an error quotes it: on one line, not longer than 40 characters."""
    shown = clean(text)
    return f"'{shown}'" if len(shown) <= 40 else f"'{shown[:39]}…'"


def clean(text: str) -> str:
    """A name from a file, on one line and without what would move a terminal's cursor or break an SVG."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in " ".join(text.split()))


def lines_of(text: str) -> list[str]:
    """Its lines with their ends, as an editor counts them: \\n, \\r\\n and \\r end one, and nothing else does."""
    return list(io.StringIO(text, newline=None))


def number(text: str) -> float:
    """The number in a cell: '34.8', '1,234.5', '1e-3'. ValueError, with what to do about it, if there is none."""
    text = text.strip()
    if _NUMBER.fullmatch(text) and isfinite(value := float(text.replace(",", ""))):
        return value
    if _DECIMAL_COMMA.fullmatch(text):
        raise ValueError("write decimals with a point; commas group thousands")
    raise ValueError("digits alone, such as 34.8; the unit stands in the header")


def _starts(line: str) -> list[int]:
    """The columns, from 1, at which the cells of a line begin."""
    starts, at = [], 0
    while at <= len(line):
        starts.append(at + 1)
        match = _FIELD.match(line, at)
        assert match
        at = match.end() + 1
    return starts


def records(text: str, path: str, skip: str) -> Iterator[list[Cell] | LessonError]:
    """The records of a CSV text as cells, without blank lines and those that begin with `skip`.

    A line that can't be read comes as an error in its place.
    """
    lines = [
        (place, line)
        for place, line in enumerate(lines_of(text), start=1)
        if line.strip() and not line.startswith(skip)
    ]
    # strict: a stray quote is told, and doesn't swallow the rest in silence
    reader = csv.reader((line for _, line in lines), strict=True)
    while True:
        first = reader.line_num
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as problem:
            place, line = lines[first]
            hint = 'a text with commas stands in quotes, and a quote within it is doubled: ""'
            yield LessonError(f"not a line of CSV: {problem}", path=path, line=place, hint=hint)
            continue
        place, line = lines[first]
        starts = _starts(line.rstrip("\n")) if reader.line_num == first + 1 else []
        yield [
            Cell(text, place, starts[i] if i < len(starts) else 1 if i == 0 else None) for i, text in enumerate(cells)
        ]


def read_sheet(text: str, path: str, skip: str = "#") -> Sheet:
    """A text with a header line as a Sheet. Raises LessonErrors where there is no header or not a single row.

    Rows with too many or too few cells are noted and left out.
    """
    lines = records(text, path, skip)
    header = next(lines, None)
    if header is None:
        raise LessonErrors([LessonError("the file is empty", path=path, hint="a header line, then a line each")])
    if problem := _other_separator(text, path, skip):
        raise LessonErrors([problem])
    if isinstance(header, LessonError):
        raise LessonErrors([header])
    sheet = Sheet(path, [Cell(cell.text.strip(), cell.line, cell.column) for cell in header], [])
    for row in lines:
        if isinstance(row, LessonError):
            sheet.errors.append(row)
        elif len(row) != len(header):
            many = len(row) > len(header)
            hint = "a number with commas stands in quotes" if many else "an empty cell keeps its comma"
            cells = "1 cell" if len(row) == 1 else f"{len(row)} cells"
            sheet.wrong(f"{cells} under {len(header)} columns", row[0], hint)
        else:
            sheet.rows.append({column.text: cell for column, cell in zip(sheet.columns, row, strict=True)})
    if not sheet.rows and not sheet.errors:
        sheet.wrong("there is nothing below the header", header[0], "write a line for each measurement")
    return sheet


def _other_separator(text: str, path: str, skip: str) -> LessonError | None:
    """What to say of a header whose columns something else than a comma separates."""
    lines = enumerate(lines_of(text), start=1)
    place, line = next((place, line) for place, line in lines if line.strip() and not line.startswith(skip))
    for mark, name in _SEPARATORS.items():
        if mark in line.strip() and "," not in line:
            hint = "save it with commas, and decimals with a point"
            message = f"{name} separate the columns"
            return LessonError(message, path=path, line=place, column=line.index(mark) + 1, hint=hint)
    return None


def require(sheet: Sheet, names: Sequence[str], hint: str) -> None:
    """Raise LessonErrors where one of these columns is not there, with everything noted before."""
    present = {cell.text for cell in sheet.columns}
    absent = [f"'{name}'" for name in names if name not in present]
    if absent:
        what = f"the column {absent[0]} is missing"
        if len(absent) > 1:
            what = f"the columns {', '.join(absent[:-1])} and {absent[-1]} are missing"
        sheet.wrong(what, sheet.columns[0], hint)
        sheet.finish()
