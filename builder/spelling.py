"""How the lesson spells its units and its kernels: one form each, the one that the page shows.

Only what can't be anything else is refused. Code, addresses, formulas, quotations and the titles of what lies outside
are left as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from builder.kernels import KERNEL_LABELS
from builder.markdown import Span
from builder.places import Inline
from builder.units import DTYPE_LABELS

# Names as the page shows them. Written with a hyphen, in one word, or with other capitals they are refused.
NAMES = (*KERNEL_LABELS.values(), *DTYPE_LABELS.values(), "KV cache", "KV head")

# Spellings of units in any case, unless the pattern says which → the house's form. That form itself is none of them.
_UNITS = {
    r"(?-i:FLOPS)": "FLOPs (a count) or FLOP/s (a rate)",
    r"(?-i:[Ff]lops)": "FLOPs",
    r"flops?(?:/s(?:ec)?|ps)": "FLOP/s",
    r"tok(?:en)?s?/sec|toks?/s|token/s": "tokens per second",
    r"[uµ\u03bc]sec|\u03bcs": "µs",
    r"msec": "ms",
    r"element[\s-]wise": "elementwise",
    r"pre-fill": "prefill",
}
for _size in "MGTP":
    _UNITS[rf"{_size}flops?(?:/s(?:ec)?|ps)"] = f"{_size}FLOP/s"
    _UNITS[rf"{_size}flops"] = f"{_size}FLOP (a count) or {_size}FLOP/s (a rate)"
    _UNITS[rf"{_size}flop"] = f"{_size}FLOP"
    # bits have a small b: Gb and Gbps are units too, and others
    _UNITS[rf"(?-i:{_size}B(?:/sec|ps))"] = f"{_size}B/s"
for _size in "KMGT":
    _UNITS[rf"{_size}ib"] = f"{_size}iB"
    _UNITS[rf"{_size}ib(?:/s(?:ec)?|ps)"] = f"{_size}iB/s"


def _alone(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w/])(?:{pattern})(?![\w/])", re.IGNORECASE)


def _name(name: str) -> tuple[str, frozenset[str], str]:
    """(pattern of what may be meant as a name, how it may be written, its form in a sentence)."""
    small = name if name[:2].isupper() else name[0].lower() + name[1:]
    pattern = r"[\s-]?".join(map(re.escape, name.split())) + "s?"
    return pattern, frozenset(form + s for form in (name, small) for s in ("", "s")), small


_FORMS = [(pattern, frozenset({right}), right) for pattern, right in _UNITS.items()] + [_name(name) for name in NAMES]
_RULES = [(_alone(pattern), allowed, right) for pattern, allowed, right in _FORMS]
# where any of them begins: one look at a text instead of one for each
_ANY = re.compile(rf"(?<![\w/])(?={'|'.join(pattern for pattern, _, _ in _FORMS)})", re.IGNORECASE)
_QUOTED = re.compile(r'"[^"]*"|“[^”]*”')


@dataclass(frozen=True)
class Misspelling:
    """A spelling that isn't the house's: where it begins in the content, what was written, and what is right."""

    start: int
    text: str
    right: str


def misspelt(inline: Inline, spans: Iterable[Span]) -> Iterator[Misspelling]:
    """Every spelling of a content that isn't the house's. spans: the bound spans of its source."""
    yield from _wrong(_own_words(inline, spans))


@lru_cache(maxsize=1024)  # while an author writes, most of the text is as it was
def _wrong(text: str) -> tuple[Misspelling, ...]:
    starts = [found.start() for found in _ANY.finditer(text)]
    return tuple(
        Misspelling(start, found[0], right)
        for pattern, forms, right in _RULES
        for start in starts
        if (found := pattern.match(text, start)) and re.sub(r"\s+", " ", found[0]) not in forms
    )


def _own_words(inline: Inline, spans: Iterable[Span]) -> str:
    """The content, the same length, with everything blotted out that the author doesn't spell, or that is no prose."""
    text = inline.content
    if inline.source.lines[inline.source.place(inline.offset(0))[0] - 1].lstrip().startswith(">"):
        return ""
    hidden = [(start, end) for start, end, kind in inline.masks if kind != "bound"]
    shown = {span.start: span for span in spans if span.inline is inline}
    for start, end, kind in inline.masks:
        if kind == "bound" and start in shown:  # the text is the author's, the fact behind it isn't prose
            hidden += [(start, shown[start].text_start), (shown[start].text_end, end)]
        elif kind == "bound":
            hidden.append((start, end))
    links = [(start, end) for start, end, kind in inline.masks if kind == "link"]
    for (start, _), (behind, end) in zip(links[::2], links[1::2], strict=True):
        if not text.startswith("](#", behind):
            hidden.append((start, end))  # others name their things as they like
    hidden += [quoted.span() for quoted in _QUOTED.finditer(text)]
    for start, end in hidden:
        text = text[:start] + "\x00" * (end - start) + text[end:]
    return text
