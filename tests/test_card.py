"""The picture for shared links."""

import struct
from xml.etree import ElementTree

import pytest
import vl_convert

from builder.card import HEIGHT, WIDTH, card

COLOURS = {"ink": "#1c1b19", "ink2": "#54514a", "paper": "#fdfcf9"}
DRAWING = '<svg width="656" height="303" viewBox="0 0 656 303"><rect width="9" height="9" fill="#c2410c"/></svg>'


def size(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def test_a_card_is_a_png_of_the_size_that_is_asked_for():
    """1200 × 630, as the page's meta tags say."""
    assert size(card("A lesson", "twenty minutes", DRAWING, COLOURS)) == (WIDTH, HEIGHT) == (1200, 630)


def test_a_card_holds_title_and_drawing():
    """Another title or another drawing is another picture; the same ones are the same bytes."""
    first = card("A lesson", "twenty minutes", DRAWING, COLOURS)
    assert card("A lesson", "twenty minutes", DRAWING, COLOURS) == first
    assert card("Another", "twenty minutes", DRAWING, COLOURS) != first
    assert card("A lesson", "twenty minutes", DRAWING.replace("#c2410c", "#173e66"), COLOURS) != first


def test_a_card_has_its_kicker_above_its_title_above_its_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each in its colour on paper, the drawing in the middle and as wide as the text, all of it inside."""
    monkeypatch.setattr(vl_convert, "svg_to_png", lambda svg, scale: svg.encode())
    root = ElementTree.fromstring(card("A < B", "twenty & more", DRAWING, COLOURS))
    sheet, kicker, title, drawing = root
    assert (sheet.get("width"), sheet.get("height"), sheet.get("fill")) == ("1200", "630", COLOURS["paper"])
    assert [(text.text, text.get("fill")) for text in (kicker, title)] == [
        ("twenty & more", COLOURS["ink2"]),
        ("A < B", COLOURS["ink"]),
    ]
    left, top, width, height = (float(drawing.attrib[name]) for name in ("x", "y", "width", "height"))
    assert (left * 2 + width, width / height) == (WIDTH, pytest.approx(656 / 303))
    assert float(kicker.attrib["y"]) < float(title.attrib["y"]) - float(title.attrib["font-size"]) / 2
    assert float(title.attrib["y"]) < top < top + height <= HEIGHT
    assert left == float(title.attrib["x"]) == float(kicker.attrib["x"])
    assert float(title.attrib["font-size"]) > 2 * float(kicker.attrib["font-size"])


def test_a_title_is_text():
    """A title that looks like markup is drawn as it stands."""
    assert size(card("a < b & <svg>", "", DRAWING, COLOURS)) == (WIDTH, HEIGHT)
