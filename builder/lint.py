"""Numbers that stand in the prose without a fact behind them.

A number is any numeral of numerals.py, in digits or in words. What isn't one: what the catalogue names (H100, A100 80GB
SXM, Qwen3-8B), a token with a letter before its first digit (FP8, BF16, x86), versions, dates, ordinals, references to
sections and figures, addresses, code. In maths, only a number with a decimal point or a unit counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from builder.dimensions import unit_at
from builder.numerals import numerals_in

_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_REFERENCE = "sections?|parts?|chapters?|figures?|figs?\\.|tables?|questions?|footnotes?|equations?|§+"
_FROM_WORD = r"\d+(?:\.\d+)*|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen"
# software whose name is followed by a version
_VERSIONED = (
    "vLLM|SGLang|TRT-LLM|TensorRT-LLM|TensorRT|PyTorch|CUDA|cuDNN|Triton|Python|NumPy|Linux|Ubuntu|Chromium|Chrome"
    "|Firefox|Safari|Vega|Vega-Lite|Altair|Nsight Compute|Nsight Systems|driver|Playwright"
)
_REFERENCES = re.compile(
    rf"""(?<!\w)(?:{_REFERENCE})[ \u00a0]?(?:{_FROM_WORD})           # 'parts 6 to 8', 'section two'
        (?:(?:[ ]?[–-][ ]?|,[ ]|[ ](?:to|and|or)[ ])(?:{_FROM_WORD}))*\b""",
    re.IGNORECASE | re.VERBOSE,
)
_WITH_DIGITS = re.compile(
    rf"""
      (?:https?://|www\.)[^\s\x00<>]+                              # an address
    | [\w.+-]+@[\w-]+\.[\w.]+
    | \b\d{{4}}-\d{{2}}(?:-\d{{2}})?\b                             # a date
    | \b\d{{1,2}}(?:st|nd|rd|th)?[ \u00a0](?:{_MONTH})(?:,?[ \u00a0]\d{{4}})?\b
    | \b(?:{_MONTH})[ \u00a0](?:\d{{1,2}}(?:st|nd|rd|th)?,?[ \u00a0])?\d{{4}}\b
    | \b(?:{_MONTH})[ \u00a0]\d{{1,2}}(?!\d)
    | \bv\d+(?:\.\d+)*\w*                                          # a version
    | \b(?:{_VERSIONED})[ \u00a0]v?\d+(?:\.\d+)*(?:[a-z]+\d+)?\b
    | \b\d+\.\d+\.\d+(?:\.\w+)*\b
    | (?i:\bversions?[ \u00a0]\d+(?:\.\d+)*)\b
    | \b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{{7,40}}\b            # a commit
    | \b\d+(?:st|nd|rd|th)\b                                       # an ordinal
    | \b[^\W\d_](?=[\w.-]*\d)\w*(?:[-.]\w+)*                       # a letter before the first digit
    """,
    re.VERBOSE,
)
_HAS_DIGIT = re.compile(r"\d")


@dataclass(frozen=True)
class Unbound:
    """A number without a fact: start and end in the text that was looked at, and the number with its unit."""

    start: int
    end: int
    text: str


@lru_cache(maxsize=8)
def _names(catalogue: tuple[str, ...]) -> re.Pattern[str] | None:
    """A pattern of the catalogue's names that hold a digit, longest first, any space between their words."""
    words = sorted({name for name in catalogue if _HAS_DIGIT.search(name)}, key=lambda name: (-len(name), name))
    if not words:
        return None
    escaped = ("[\\s\u00a0-]+".join(re.escape(part) for part in re.split(r"[\s-]+", word)) for word in words)
    return re.compile(rf"(?<!\w)(?:{'|'.join(escaped)})(?!\w)", re.IGNORECASE)


def without_names(text: str, catalogue: Iterable[str] = ()) -> str:
    """The text, the same length, with everything blotted out that holds digits but is no number."""

    for pattern in (_REFERENCES, _names(tuple(catalogue)), _WITH_DIGITS):
        if pattern and (pattern is _REFERENCES or _HAS_DIGIT.search(text)):
            text = pattern.sub(lambda match: "\x00" * len(match[0]), text)
    return text


def unbound(text: str, catalogue: Iterable[str] = ()) -> Iterator[Unbound]:
    """Every number of a text. What is no prose (code, addresses, bound spans) has been blotted out with NULs before."""
    bare = without_names(text, catalogue)
    for numeral in numerals_in(bare):
        gap = re.compile(r"[ \u00a0\u202f-]?").match(bare, numeral.end)
        start = gap.end() if gap else numeral.end
        found = unit_at(bare, start) if start < len(bare) else None
        end = found[1] if found else numeral.end
        yield Unbound(numeral.start, numeral.end, text[numeral.start : end])


_MATHS_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_MATHS_UNIT = re.compile(
    r"(?:\\[,;:! ]|~|\s|\{\})*\\(?:text|mathrm|operatorname)\{\s*([^{}]*)\}|(?:\\[,;:! ]|\s)*(\\%)"
)


def unbound_maths(tex: str) -> Iterator[Unbound]:
    """Numbers of a formula that have a decimal point or a unit. Its \\bound macros have been blotted out before."""
    for number in _MATHS_NUMBER.finditer(tex):
        behind = _MATHS_UNIT.match(tex, number.end())
        unit = behind and (behind[2] or unit_at(behind[1].strip()))
        if "." in number[0] or unit:
            yield Unbound(number.start(), number.end(), number[0])
