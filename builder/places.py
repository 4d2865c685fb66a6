"""Where a piece of Markdown stands in its file: inline content ⇄ offsets, lines and columns of the source.

The parser hands over the content of a paragraph, heading or cell without indents, quote marks and pipes, and inline
tokens have no line at all. Here every character of such a content is aligned with the file again, so that an error
names its line and column and a rewrite changes the right digits, inside tables, lists and quotes too.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from builder.errors import LessonError

_LINE_END = re.compile(r"\r\n?|\n")
_VISIBLE = re.compile(
    r"""(?P<mark>[*`]+|(?<!\w)_+|_+(?!\w))
    |\\(?P<escaped>[!-/:-@\[-`{-~])
    |(?P<entity>&(?:\#[xX]?[0-9A-Fa-f]+|\w+);)
    |[^*`_\\&\n]+
    |.""",
    re.VERBOSE | re.DOTALL,
)


class Source:
    """A file of prose: its path as errors name it, its text as it stands, and the text of its lines."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        ends = list(_LINE_END.finditer(text))
        self.starts = [0, *(end.end() for end in ends)]
        stops = [*(end.start() for end in ends), len(text)]
        clean = text.replace("\x00", "\ufffd")  # as CommonMark has it
        self.lines = [clean[start:stop] for start, stop in zip(self.starts, stops, strict=True)]

    def place(self, offset: int) -> tuple[int, int]:
        """(line, column) of an offset, from 1."""
        line = bisect_right(self.starts, offset) - 1
        return line + 1, offset - self.starts[line] + 1

    def wrong(self, message: str, offset: int, hint: str | None = None) -> LessonError:
        """A mistake at an offset."""
        line, column = self.place(offset)
        return LessonError(message, path=self.path, line=line, column=column, hint=hint)


@dataclass
class Inline:
    """A content that the inline parser reads: of a paragraph, heading, cell, caption or line of front matter.

    segments: (index in content, offset in the file), each valid up to the next. masks: stretches of the content that
    are no prose (code, addresses, maths, bound spans), as the parser found them. row: of a table's cell, all cells.
    """

    source: Source
    content: str
    segments: list[tuple[int, int]]
    kind: str = "paragraph"
    masks: list[tuple[int, int, str]] = field(default_factory=list)
    row: list[Inline] = field(default_factory=list, repr=False)

    def offset(self, index: int) -> int:
        """The offset in the file of an index of the content; the end of a stretch is behind its last character."""
        at = bisect_right(self.segments, index, key=lambda segment: segment[0]) - 1
        start, offset = self.segments[max(at, 0)]
        return offset + index - start

    def end_offset(self, index: int) -> int:
        """The offset just behind the character before `index`: differs from offset(index) at the end of a line."""
        return self.offset(index - 1) + 1 if index else self.offset(0)

    def wrong(self, message: str, index: int, hint: str | None = None) -> LessonError:
        """A mistake at an index of the content."""
        return self.source.wrong(message, self.offset(index), hint)

    def visible(self, start: int, end: int, hidden: Sequence[tuple[int, int]] = ()) -> tuple[str, list[int]]:
        """(a stretch of the content as a reader sees it, the index of each of its characters in the content).

        Emphasis and code marks, backslashes, and the hidden stretches are left out; a line's end is a space.
        """
        out: list[str] = []
        indices: list[int] = []
        for low, high in [*sorted(hidden), (end, end)]:
            while start < min(low, end):
                match = _VISIBLE.match(self.content, start, min(low, end))
                assert match
                if match["escaped"]:
                    out.append(match["escaped"])
                    indices.append(start + 1)
                elif match["entity"]:
                    out.append(html.unescape(match[0]))
                    indices += [start] * len(out[-1])
                elif not match["mark"]:
                    out.append(match[0] if match[0] != "\n" else " ")
                    indices += range(start, match.end())
                start = match.end()
            start = max(start, high)
        return "".join(out), indices

    def masked(self, filler: str = "\x00") -> str:
        """The content, the same length, with what is no prose blotted out."""
        kept, at = [], 0
        for start, end, _ in sorted(self.masks):
            if end > at:
                kept += [self.content[at : max(start, at)], filler * (end - max(start, at))]
                at = end
        return "".join([*kept, self.content[at:]])


def align(source: Source, content: str, first_line: int, kind: str) -> Inline:
    """The content of a block that begins on a line of the source (from 0): each of its lines ends one of the file."""
    segments: list[tuple[int, int]] = []
    index = 0
    for number, text in enumerate(content.split("\n"), first_line):
        line = source.lines[number] if number < len(source.lines) else ""
        at = len(line) - len(text) if line.endswith(text) else line.rfind(text.strip())
        if at < 0:  # a tab half eaten by an indent: its end is still aligned
            bare = text.lstrip()
            at = max(line.rfind(bare) - (len(text) - len(bare)), 0)
        elif not line.endswith(text):
            at -= len(text) - len(text.lstrip())
        segments.append((index, source.starts[min(number, len(source.starts) - 1)] + max(at, 0)))
        index += len(text) + 1
    return Inline(source, content, segments, kind)


_ROW_PREFIX = re.compile(r"[\s>]*(?:(?:[-*+]|\d{1,9}[.)])\s+)?[\s>]*")


def cells(source: Source, line: int) -> list[list[tuple[int, int]]]:
    """The segments of each cell of a table row on a line of the source (from 0), pipes and spaces stripped.

    The k-th entry belongs to the k-th cell; an escaped pipe starts a new segment, since its backslash is dropped.
    """
    text, base = source.lines[line], source.starts[line]
    match = _ROW_PREFIX.match(text)
    start = match.end() if match else 0
    found: list[list[int]] = [[]]
    escaped = False
    for position in range(start, len(text)):
        character = text[position]
        if character == "|" and not escaped:
            found.append([])
        else:
            if character == "|":
                found[-1].pop()
            found[-1].append(position)
        escaped = character == "\\"
    rows = []
    for number, positions in enumerate(found):
        stripped = _strip(positions, text)
        if stripped or 0 < number < len(found) - 1:
            rows.append([(index, base + at) for index, at in enumerate(stripped)] or [(0, base + start)])
    return rows


def _strip(positions: list[int], text: str) -> list[int]:
    while positions and text[positions[0]].isspace():
        positions = positions[1:]
    while positions and text[positions[-1]].isspace():
        positions = positions[:-1]
    return positions
