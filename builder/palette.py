"""The colours: read from the theme, by the names under which kernels and figures take them, and back as style rules."""

from __future__ import annotations

import re
from collections.abc import Mapping

from builder.errors import LessonError, LessonErrors, did_you_mean
from builder.kernels import KERNELS

TOKENS = "theme/css/tokens.css"

# Which colour of the theme a kernel, the trail of its family and its label take.
FILLS = {kernel: kernel.replace("_", "-") for kernel in KERNELS}
TINTS = {"matmuls": "matmuls-trail", "attention": "attention-trail", "lm_head": "lm-head-trail", "elementwise": "rule"}
INKS = {"matmuls": "matmuls-text", "attention": "attention-text", "lm_head": "lm-head", "elementwise": "ink2"}

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


def scheme_css(colours: Mapping[str, str]) -> str:
    """Rules that let the figures follow the scheme: each literal colour of a drawing becomes its token."""
    return "".join(
        f'figure[data-figure] svg [{attribute}="{value}" i]{{{attribute}:var(--{name})}}\n'
        for name, value in colours.items()
        for attribute in ("fill", "stroke")
    )


def kernel_css() -> str:
    """Rules that give the ledger's swatches and bars the colours of the dots: a class for each kernel."""
    return "".join(f".k-{token}{{fill:var(--{token});stroke:var(--{token})}}\n" for token in FILLS.values())


def pairing_css(colours: Mapping[str, str]) -> str:
    """Rules that pair the ledger with the roofline: pointing at a row dims the other dots, at a dot the other rows.

    They are asked only while a row or a picture is pointed at: otherwise each change of a number would ask them anew. A
    dot is known by its kernel's colour, which is its fill or, where the point doesn't fit, its outline. Nothing of
    it where there is no hovering, or where the reader's own colours stand in for ours.
    """
    rules = []
    for kernel, token in FILLS.items():
        own = f':is([fill="{colours[token]}" i],[stroke="{colours[token]}" i])'
        row = f'tr[data-kernel="{kernel}"]'
        dots = ".picture [class~=dots_marks]>path"
        rules += [
            f".bench[data-pointing]:has({row}:is(:hover,:focus-visible)) {dots}:not({own}){{opacity:.35}}",
            f".bench[data-pointing]:has({dots}{own}:hover) .ledger tbody tr:not({row}){{opacity:.35}}",
        ]
    return "\n".join(["@media (hover:hover) and (forced-colors:none){", *rules, "}\n"])
