"""The colours as the theme has them."""

from __future__ import annotations

import re
from pathlib import Path

from builder.errors import LessonError, LessonErrors, did_you_mean
from builder.palette import TOKENS
from builder.site import theme_text

_COLOUR = re.compile(r"--([a-z0-9-]+):\s*(?:light-dark\(\s*)?(#[0-9a-f]{6})\b", re.IGNORECASE)


class Colours(dict[str, str]):
    """The colour tokens of the theme, name to hex. One that is asked for and missing is the theme's mistake."""

    def __missing__(self, name: str) -> str:
        """Raise LessonErrors that name the token, and the file where it should stand."""
        hint = did_you_mean(name, self)
        raise LessonErrors([LessonError(f"the figures need the colour --{name}", path=TOKENS, hint=hint)])


def read_colours(css: str) -> Colours:
    """The colour tokens of the light scheme, name to hex: those of the first block, before any media query.

    Raises ValueError when two tokens share a hex: the dark scheme is chosen by colour, so they must differ.
    """
    colours = Colours((name, value.lower()) for name, value in _COLOUR.findall(css.split("@media", 1)[0]))
    if len(set(colours.values())) < len(colours):
        raise ValueError("two colour tokens share a value, so a chart could not tell them apart")
    return colours


def light_colours(root: Path) -> Colours:
    """The colour tokens of the light scheme. Raises LessonErrors where two share a value."""
    try:
        return read_colours(theme_text(root / TOKENS))
    except ValueError as error:
        raise LessonErrors([LessonError(str(error), path=TOKENS)]) from None
