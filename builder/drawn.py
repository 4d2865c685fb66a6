"""What a drawing shows, and the drawing as the page holds it: its sizes, its SVGs, its spec.

Nothing here draws, so nothing here takes Altair; nothing counts, so drawings depend on the ledger by their rows alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

FONT = "Liberation Sans, Arial, sans-serif"

Size = Literal["wide", "short", "phone", "strip"]
Row = dict[str, Any]


@dataclass(frozen=True)
class Frame:
    """A size of the drawing in CSS px: the plot, and the padding round it (left, right, top, bottom)."""

    width: int
    height: int
    padding: tuple[int, int, int, int]

    @property
    def total(self) -> tuple[int, int]:
        """Width and height of the whole SVG in px."""
        left, right, top, bottom = self.padding
        return self.width + left + right, self.height + top + bottom


Frames = Mapping[Size, Frame]


@dataclass(frozen=True)
class Here:
    """Where a point of the bench stands in a figure: columns of the shards for x and y, and what follows y's text.

    `at`: the points that the figure can show, axis → values; on an axis that isn't named, all of them.
    """

    x: str
    y: str
    unit: str
    at: Mapping[str, list[Any]]


@dataclass(frozen=True)
class Series:
    """What a figure shows: its datasets by name, what to see in one sentence, and the alternative text.

    `here`: how to find the bench's point in it, for a figure that has a dataset of that name.
    """

    data: Mapping[str, list[Row]]
    sees: str
    alt: str
    here: Here | None = None


@dataclass(frozen=True)
class Figure:
    """Everything a page needs of one figure: the published spec, the client's script, and the SVG of each size.

    `here`: the fields of Here, of a figure in which the client marks the bench's point; else empty.
    """

    name: str
    spec: dict[str, Any]
    script: str
    svgs: dict[Size, str]
    label: str = ""
    sees: str = ""
    here: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def published(self) -> str:
        """The spec as JSON for people: indented, keys as they come."""
        return json.dumps(self.spec, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
