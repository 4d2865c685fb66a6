"""The colours by the names under which kernels and figures take them, and back as style rules."""

from __future__ import annotations

from collections.abc import Mapping

from builder.kernels import KERNELS

TOKENS = "theme/css/tokens.css"

# Which colour of the theme a kernel, the trail of its family and its label take.
FILLS = {kernel: kernel.replace("_", "-") for kernel in KERNELS}
TINTS = {"matmuls": "matmuls-trail", "attention": "attention-trail", "lm_head": "lm-head-trail", "elementwise": "rule"}
INKS = {"matmuls": "matmuls-text", "attention": "attention-text", "lm_head": "lm-head", "elementwise": "ink2"}


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
