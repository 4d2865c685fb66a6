"""A drawing as the page holds it: its sizes, its SVGs, its spec. Nothing here draws, so nothing here takes Altair."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

FONT = "Liberation Sans, Arial, sans-serif"

Size = Literal["wide", "short", "phone", "strip"]


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
class Figure:
    """Everything a page needs of one figure: the published spec, the client's script, and the SVG of each size.

    `here`: the fields of series.Here, of a figure in which the client marks the bench's point; else empty.
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
