"""The colour tokens against each other, light and dark: WCAG AA for what is read, 3 for what is only seen."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from builder.palette import FILLS, INKS, TINTS
from tests.toys import ROOT

TOKEN = re.compile(r"--([a-z0-9-]+):\s*light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)")
SCHEMES = ("light", "dark")

# Read as text, on paper: 4.5.
TEXT = ("ink", "ink2", "ink3", "link", "matmuls-text", "attention-text", "lm-head")
# Told apart from the paper without being read: 3.
SEEN = ("dots", "markline", "attention", "lm-head", "elementwise", "qkv-proj", "out-proj", "gate-proj", "up-proj")
# Read on the highlighter: what a followed number, a changed control or an opened line may be written in.
ON_MARK = ("ink", "ink2")


@cache
def tokens() -> dict[str, tuple[str, str]]:
    """Token → its colour in light and in dark."""
    css = (ROOT / "theme" / "css" / "tokens.css").read_text(encoding="utf-8")
    return {name: (light, dark) for name, light, dark in TOKEN.findall(css)}


def luminance(colour: str) -> float:
    """WCAG's relative luminance of '#rrggbb'."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """WCAG's contrast of two colours, from 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def between(name: str, ground: str, scheme: str) -> float:
    """Contrast of two tokens in a scheme."""
    at = SCHEMES.index(scheme)
    return contrast(tokens()[name][at], tokens()[ground][at])


def test_contrast_is_counted_as_wcag_does() -> None:
    """Black on white is 21, a colour on itself is 1, and #767676 is the lightest grey that passes on white."""
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#1f5a8a", "#1f5a8a") == 1
    assert contrast("#767676", "#ffffff") >= 4.5 > contrast("#777777", "#ffffff")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", TEXT)
def test_text_is_read_on_paper(name: str, scheme: str) -> None:
    """4.5 or more."""
    assert between(name, "paper", scheme) >= 4.5


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ON_MARK)
def test_text_is_read_on_the_highlighter(name: str, scheme: str) -> None:
    """4.5 or more; ink3 never stands there."""
    assert between(name, "mark", scheme) >= 4.5


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ON_MARK)
def test_text_is_read_on_a_row_that_is_pointed_at(name: str, scheme: str) -> None:
    """The grid's colour lies under the row of the ledger that the mouse is on."""
    assert between(name, "grid", scheme) >= 4.5


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", [*SEEN, "down-proj"])
def test_marks_are_seen_on_paper(name: str, scheme: str) -> None:
    """3 or more: kernels, the highlighter's line, the dots under a bound number."""
    assert between(name, "paper", scheme) >= 3


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_colour_that_a_drawing_writes_in_is_read(scheme: str) -> None:
    """Words of kernels are written in INKS, 4.5 on paper; dots are filled from FILLS, 3."""
    assert {name for name in INKS.values() if between(name, "paper", scheme) < 4.5} == set()
    assert {name for name in FILLS.values() if between(name, "paper", scheme) < 3} == set()
    assert set(TINTS.values()) <= set(tokens())


def test_every_colour_has_both_schemes() -> None:
    """A hex in tokens.css stands in a light-dark() pair; the theme has none elsewhere."""
    folder = ROOT / "theme" / "css"
    for file in sorted(Path(folder).glob("*.css")):
        rest = TOKEN.sub("", file.read_text(encoding="utf-8"))
        assert not re.search(r"#[0-9a-fA-F]{3,8}\b(?=[;,) ])", rest), file.name
