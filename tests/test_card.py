"""The picture for shared links."""

import struct

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


def test_a_title_is_text():
    """A title that looks like markup is drawn as it stands."""
    assert size(card("a < b & <svg>", "", DRAWING, COLOURS)) == (WIDTH, HEIGHT)
