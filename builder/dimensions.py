"""What numbers are measured in: dimensions, and the units that sentences and facts write them in.

One table of units, read by both sides: the text's `tokens per second`, `FLOPs a byte`, `GiB`, `%`, and the fact's
`16e9 byte`. A unit may have denominators; what is merely counted (weights, layers, steps) has no dimension.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from builder.units import GIB, KIB, MIB, TIB


class Dimension(NamedTuple):
    """What a value is measured in: exponents of byte, FLOP, second, token and money."""

    byte: int = 0
    flop: int = 0
    second: int = 0
    token: int = 0
    money: int = 0

    def times(self, other: Dimension, sign: int = 1) -> Dimension:
        """The dimension of a product; of a quotient with sign −1."""
        return Dimension(*(mine + sign * theirs for mine, theirs in zip(self, other, strict=True)))

    def power(self, exponent: int) -> Dimension:
        """The dimension of a whole power."""
        return Dimension(*(exponent * mine for mine in self))

    @property
    def hard(self) -> Dimension:
        """Without the tokens: they are counted things, so a sentence may leave them out or call them users."""
        return self._replace(token=0)

    @property
    def name(self) -> str:
        """As an error says it: 'tokens per second', 'bytes', 'a plain number'."""
        if self in _DIMENSION_NAMES:
            return _DIMENSION_NAMES[self]
        parts = [(word, power) for word, power in zip(_BASE_NAMES, self, strict=True) if power]
        above = "·".join(f"{word}{_power(power)}" for word, power in parts if power > 0) or "1"
        below = "·".join(f"{word}{_power(-power)}" for word, power in parts if power < 0)
        return f"{above}/{below}" if below else above


def _power(exponent: int) -> str:
    return "" if exponent == 1 else "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(exponent))


_BASE_NAMES = ("byte", "FLOP", "s", "token", "dollar")
ONE, BYTE, FLOP, SECOND, TOKEN = (Dimension(), Dimension(1), Dimension(0, 1), Dimension(0, 0, 1), Dimension(0, 0, 0, 1))
PER_SECOND = Dimension(second=-1)
TOKENS_PER_SECOND = Dimension(second=-1, token=1)
FLOP_PER_BYTE = Dimension(byte=-1, flop=1)
FLOP_PER_SECOND = Dimension(flop=1, second=-1)
BYTE_PER_SECOND = Dimension(byte=1, second=-1)
_DIMENSION_NAMES = {
    ONE: "a plain number",
    BYTE: "bytes",
    FLOP: "FLOPs",
    SECOND: "seconds",
    TOKEN: "tokens",
    TOKENS_PER_SECOND: "tokens per second",
    PER_SECOND: "times per second",
    FLOP_PER_BYTE: "FLOPs per byte",
    FLOP_PER_SECOND: "FLOPs per second",
    BYTE_PER_SECOND: "bytes per second",
    Dimension(byte=1, token=-1): "bytes per token",
}
# what a sentence may state as a bare number, since nobody would take it for anything else
PLAIN = (ONE, TOKEN, FLOP_PER_BYTE, TOKENS_PER_SECOND)


@dataclass(frozen=True)
class Unit:
    """A unit as written: its dimension, and its size in SI."""

    text: str
    dimension: Dimension
    size: float


def _sized(dimension: Dimension, sizes: dict[str, float]) -> dict[str, tuple[Dimension, float]]:
    return {name: (dimension, size) for name, size in sizes.items()}


_SI = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_SI_WORDS = {"kilo": 1e3, "mega": 1e6, "giga": 1e9, "tera": 1e12, "peta": 1e15}

# symbols, as they are: case counts
_SYMBOLS: dict[str, tuple[Dimension, float]] = {
    **_sized(BYTE, {"B": 1, "KB": 1e3, **{f"{prefix}B": size for prefix, size in _SI.items()}}),
    **_sized(BYTE, {"KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": TIB}),
    **_sized(FLOP, {f"{prefix}FLOP{s}": size for prefix, size in {"": 1.0, **_SI}.items() for s in ("", "s")}),
    **_sized(FLOP_PER_SECOND, {f"{prefix}FLOPS": size for prefix, size in {"": 1.0, **_SI}.items()}),
    **_sized(SECOND, {"s": 1, "ms": 1e-3, "µs": 1e-6, "μs": 1e-6, "us": 1e-6, "ns": 1e-9, "min": 60, "h": 3600}),
    **_sized(ONE, {"%": 0.01, "×": 1, "x": 1}),
    **_sized(Dimension(money=1), {"$": 1, "€": 1, "£": 1}),
}
# words, in lower case; a plural has an s
_WORDS: dict[str, tuple[Dimension, float]] = {
    **_sized(BYTE, {"byte": 1, "bit": 1 / 8, **{f"{prefix}byte": size for prefix, size in _SI_WORDS.items()}}),
    **_sized(BYTE, {"kibibyte": KIB, "mebibyte": MIB, "gibibyte": GIB, "tebibyte": TIB}),
    **_sized(FLOP, {"flop": 1, "operation": 1, "floating-point operation": 1}),
    **_sized(FLOP, {f"{prefix}flop": size for prefix, size in _SI_WORDS.items()}),
    **_sized(SECOND, {"second": 1, "sec": 1, "millisecond": 1e-3, "microsecond": 1e-6, "nanosecond": 1e-9}),
    **_sized(SECOND, {"minute": 60, "hour": 3600, "day": 86400, "week": 604800, "month": 2629800, "year": 31557600}),
    **_sized(TOKEN, {"token": 1}),
    **_sized(ONE, {"percent": 0.01, "per cent": 0.01, "percentage point": 0.01, "times": 1, "fold": 1}),
    **_sized(Dimension(money=1), {"dollar": 1, "euro": 1}),
}
# what a rate may be counted by without changing its dimension: 'bytes per weight'
_THINGS = "weight|parameter|element|layer|sequence|request|prompt|user|step|pass|head|gpu|card|kernel|chip|model"

_SYMBOL = "|".join(re.escape(name) for name in sorted(_SYMBOLS, key=len, reverse=True))
_WORD = "|".join(re.escape(name).replace(r"\ ", r"[ \u00a0]") for name in sorted(_WORDS, key=len, reverse=True))
_ONE_UNIT = re.compile(rf"(?:({_SYMBOL})|((?i:{_WORD})s?))(?![A-Za-z0-9])")
_DENOMINATOR = re.compile(
    rf"[\s\u00a0\u202f]*(?:/[ ]?|\b(?:per|an?|each|every)\b[\s\u00a0-])"
    rf"(?:({_SYMBOL})|((?i:{_WORD})s?)|((?i:{_THINGS})))(?![A-Za-z0-9])"
)
_PER_SOMETHING = re.compile(r"([^\W\d_][\w-]*)(?=[\s\u00a0]*(?:/|\bper\b))")
# words that end a number's own phrase: what stands behind them isn't its unit
NO_UNITS = frozenset({
    "a", "an", "and", "as", "at", "but", "by", "each", "every", "fewer", "for", "from", "if", "in", "instead", "is",
    "less", "longer", "more", "of", "on", "once", "or", "out", "per", "so", "than", "that", "the", "then", "though",
    "to", "under", "until", "when", "where", "which", "while", "with", "without",
})  # fmt: skip


def _named(symbol: str | None, word: str | None) -> tuple[Dimension, float] | None:
    if symbol:
        return _SYMBOLS[symbol]
    if word:
        lowered = re.sub(r"\s", " ", word.lower())
        return _WORDS.get(lowered) or _WORDS.get(lowered.removesuffix("s"))
    return None


def unit_at(text: str, start: int = 0) -> tuple[Unit, int] | None:
    """The unit that begins at `start`, with its denominators, and where it ends; None where none begins there."""
    match = _ONE_UNIT.match(text, start)
    named = _named(match[1], match[2]) if match else None
    if match and named:
        (dimension, size), end = named, match.end()
    else:
        # '200 requests per second': what is counted has no unit, the rate has
        thing = _PER_SOMETHING.match(text, start)
        if not thing or thing[1].lower() in NO_UNITS or not _DENOMINATOR.match(text, thing.end()):
            return None
        dimension, size, end = ONE, 1.0, thing.end()
    while below := _DENOMINATOR.match(text, end):
        divisor = _named(below[1], below[2])
        if divisor:
            dimension, size = dimension.times(divisor[0], -1), size / divisor[1]
        end = below.end()
    return Unit(text[start:end], dimension, size), end


@lru_cache(maxsize=512)
def unit_of(text: str) -> Unit | None:
    """The unit that a whole text is, such as 'TB/s'; None where it is none."""
    found = unit_at(text)
    return found[0] if found and found[1] == len(text) else None


def unit_names() -> list[str]:
    """Names to choose from when one is misspelt."""
    return [*_SYMBOLS, *_WORDS]
