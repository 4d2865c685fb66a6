"""What goes wrong in content: every author mistake is a LessonError that names file, line, column and remedy."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

_PLACE = re.compile(r"^(\S[^:\n]*):(\d+)(?::(\d+))?: .*$", re.MULTILINE)
EXCERPT = 90  # characters of a line that an error quotes


class LessonError(Exception):
    """One mistake in the content or on the command line.

    message: what is wrong, in one sentence. path: the file as the author would name it, relative to the project's
    root; None for the command line. line and column count from 1. hint: the remedy.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        line: int | None = None,
        column: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.line = line
        self.column = column
        self.hint = hint

    @property
    def place(self) -> str:
        """`path:line:column`, as far as it is known."""
        parts = [self.path] if self.path else []
        if self.path and self.line is not None:
            parts.append(str(self.line))
            if self.column is not None:
                parts.append(str(self.column))
        return ":".join(parts)

    def __str__(self) -> str:
        text = f"{self.place}: {self.message}" if self.path else self.message
        return f"{text}\n  hint: {self.hint}" if self.hint else text


class LessonErrors(Exception):
    """All the mistakes that one run found, in the order of their places."""

    def __init__(self, errors: Sequence[LessonError]) -> None:
        assert errors, "LessonErrors without an error"
        self.errors = sorted(errors, key=lambda error: (error.path or "", error.line or 0, error.column or 0))
        super().__init__("\n".join(str(error) for error in self.errors))


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """A hint that names the closest of the known names, or lists them where none is close."""
    names = list(dict.fromkeys(known))
    close = difflib.get_close_matches(name, names, n=1, cutoff=cutoff)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"known: {', '.join(names)}" if 0 < len(names) <= 20 else None


def with_excerpts(text: str, root: Path) -> str:
    """Errors as text, each with the line of the file that it is about, and a mark below its column."""

    def quoted(match: re.Match[str]) -> str:
        line, column = int(match[2]), int(match[3] or 0)
        try:
            lines = (root / match[1]).read_text(encoding="utf-8-sig", errors="replace").split("\n")
        except (OSError, ValueError):
            return match[0]
        if not 1 <= line <= len(lines):
            return match[0]
        whole = lines[line - 1].replace("\t", " ").rstrip()
        start = max(0, min(column - 1 - EXCERPT // 2, len(whole) - EXCERPT))
        before = "…" if start else ""
        shown = f"{before}{whole[start : start + EXCERPT]}{'…' if start + EXCERPT < len(whole) else ''}"
        mark = f"\n  {'':{len(str(line))}} | {'':{len(before) + column - 1 - start}}^" if column else ""
        return f"{match[0]}\n  {line} | {shown}{mark}"

    return _PLACE.sub(quoted, text)
