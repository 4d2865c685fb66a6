"""The picture that a link to the lesson shows where it is shared: 1200 × 630, title above, roofline below."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape

import vl_convert

WIDTH, HEIGHT = 1200, 630
SCALE = 1.5  # of the wide roofline, 656 × 303


def card(title: str, kicker: str, roofline: str, colours: Mapping[str, str]) -> bytes:
    """PNG of the lesson's card.

    title, kicker: plain text. roofline: the SVG of the wide drawing. colours: tokens of the light scheme.
    """
    size = re.search(r'width="(\d+)" height="(\d+)"', roofline)
    assert size, "a drawing without a size"
    width, height = (int(part) * SCALE for part in size.groups())
    left, top = (WIDTH - width) / 2, HEIGHT - height - 6
    placed = re.sub(
        r'width="\d+" height="\d+"', f'x="{left}" y="{top}" width="{width}" height="{height}"', roofline, count=1
    )
    ink, quiet, paper = (colours[name] for name in ("ink", "ink2", "paper"))
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{paper}"/>'
        f'<text x="108" y="62" font-family="Liberation Sans, Arial, sans-serif" font-size="22" fill="{quiet}">'
        f"{escape(kicker)}</text>"
        f'<text x="108" y="128" font-family="Liberation Serif, Times New Roman, serif" font-size="58" fill="{ink}">'
        f"{escape(title)}</text>{placed}</svg>"
    )
    return vl_convert.svg_to_png(svg, scale=1)
