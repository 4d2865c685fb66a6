"""Names beside dots, where there is room: none on another, on a dot, or outside the plot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SIZE = 12  # px of a label
_GAP = 4  # px between a dot and its name
_AIR = 3  # px on both sides of a text that stay free
_ABOVE, _BELOW = 0.75, 0.25  # em of a line of text over and under its baseline


@dataclass(frozen=True)
class Box:
    """A rectangle in px, y downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def touches(self, other: Box) -> bool:
        """Whether the two share a point."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )

    def count(self, others: Sequence[Box]) -> int:
        """How many of the others it touches."""
        return sum(self.touches(other) for other in others)

    def inside(self, other: Box) -> bool:
        """Whether nothing of it is outside the other."""
        return (
            other.left <= self.left
            and self.right <= other.right
            and other.top <= self.top
            and self.bottom <= other.bottom
        )


@dataclass(frozen=True)
class Dot:
    """A dot of radius r at x, y px, and what it may be called, the best name first."""

    x: float
    y: float
    r: float
    names: Sequence[str]

    @property
    def box(self) -> Box:
        """The square round it."""
        return Box(self.x - self.r, self.y - self.r, self.x + self.r, self.y + self.r)


@dataclass(frozen=True)
class Label:
    """A text at x, y px, y being its middle; it begins there (left) or ends there (right)."""

    text: str
    x: float
    y: float
    align: str

    @property
    def box(self) -> Box:
        """The room that it takes."""
        width = width_of(self.text)
        left = self.x - (width if self.align == "right" else 0)
        half = SIZE * (_ABOVE + _BELOW) / 2
        return Box(left - _AIR, self.y - half, left + width + _AIR, self.y + half)


def width_of(text: str) -> float:
    """px of a text in bold Liberation Sans, rather too wide than too narrow."""
    wide = sum(1.0 if ord(c) > 0x2E80 else 0.86 if c in "mwMW%@…" else 0.72 if c.isupper() else 0.0 for c in text)
    other = [c for c in text if not (ord(c) > 0x2E80 or c in "mwMW%@…" or c.isupper())]
    return SIZE * (wide + sum(0.34 if c in "fijlrtI., :;'!|()[]-" else 0.6 for c in other))


def _places(dot: Dot, text: str) -> Iterator[Label]:
    """Where a name may stand: right, left, then above and below, to either side."""
    aside, over = dot.r + _GAP, dot.r + SIZE * 0.5 + 2
    yield Label(text, dot.x + aside, dot.y, "left")
    yield Label(text, dot.x - aside, dot.y, "right")
    for y in (dot.y - over, dot.y + over):
        for part in (0.5, 0.0, 1.0, 0.25, 0.75):
            yield Label(text, dot.x - dot.r + part * (2 * dot.r - width_of(text)), y, "left")


def along(x0: float, y0: float, x1: float, y1: float) -> list[Box]:
    """Small boxes on a line from one point to another, for names to keep off it."""
    steps = max(1, round(max(abs(x1 - x0), abs(y1 - y0)) / 6))
    spots = ((x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps) for i in range(steps + 1))
    return [Box(x - 2, y - 2, x + 2, y + 2) for x, y in spots]


def beside(dots: Sequence[Dot], taken: Sequence[Box], room: Box) -> list[Label | None]:
    """A Label for each dot, the first dots first; None where none of its names has room.

    taken: what else no name may touch. room: where names may stand.
    """
    boxes = [*taken, *(dot.box for dot in dots)]
    labels: list[Label | None] = []
    for dot in dots:
        free = (
            label
            for name in dot.names
            for label in _places(dot, name)
            if label.box.inside(room) and not label.box.count(boxes)
        )
        label = next(free, None)
        labels.append(label)
        if label:
            boxes.append(label.box)
    return labels
