"""Numbers as a sentence writes them: found, read, and written again in the author's own form.

Two things are read here: a numeral ('1,840', '0.3', '8k', '20', 'sixty', 'half', 'threefold') and the unit behind it
('tokens per second', 'FLOPs a byte', 'GiB', '%', 'times'). The precision of a numeral is the number of digits after
its point. prose.py, lint.py and numbers.py all see numbers through this file, so they never disagree about what one is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from builder.dimensions import (
    BYTE,
    BYTE_PER_SECOND,
    FLOP,
    FLOP_PER_SECOND,
    NO_UNITS,
    ONE,
    PLAIN,
    SECOND,
    Dimension,
    Unit,
    unit_at,
)
from builder.units import MINUS

_GAP = r"[\s\u00a0\u2009\u202f-]*"
_ADJECTIVE = re.compile(r"([^\W\d_][\w-]*)[\s\u00a0]+")


@dataclass(frozen=True)
class Numeral:
    """A number in a text: where it stands, what it says, and in which form.

    start and end: of the digits or words, with sign and k, without unit. value: as it stands, before unit. scale: what
    its digits are multiplied by (k: 1,000; million: 10⁶). decimals: digits after the point. comma: what groups
    thousands ('' where nothing does, None where the number is too short to show). tolerance: a value that differs by
    less is the same number; of words that name a ratio, half a step of two digits.
    """

    start: int
    end: int
    text: str
    value: float
    scale: float = 1.0
    decimals: int = 0
    comma: str | None = None
    sign: str = ""
    in_words: bool = False
    tolerance: float = 0.0
    kilo: bool = False

    def says(self, value: float, kilo: float = 1000.0) -> bool:
        """Whether this text states `value`, a number in the text's unit. kilo: what k stands for here."""
        if self.in_words:
            return abs(value - self.value) <= self.tolerance * (1 + 1e-9)
        if self.kilo and kilo == 1024.0:  # a position is a whole number: 8k is 8,192 and nothing near it
            return self.amount(kilo) == value
        return self.written(value, kilo) == self.text

    def amount(self, kilo: float = 1000.0) -> float:
        """What the text says, in its unit."""
        return self.value * kilo / 1000.0 if self.kilo else self.value

    def written(self, value: float, kilo: float = 1000.0, decimals: int | None = None) -> str:
        """`value`, a number in the text's unit, in this numeral's form: its decimals, separators, sign and k."""
        scale = kilo if self.kilo else self.scale
        places = self.decimals if decimals is None else decimals
        shown = value / scale
        if places < 0:
            shown, places = round(shown, places), 0
        digits = f"{abs(shown):,.{places}f}"
        zero = not digits.strip("0.,")
        comma = "," if self.comma is None else self.comma
        digits = digits.replace(",", comma)
        # a hyphen is read as a minus, and written as one
        sign = MINUS if shown < 0 and not zero else "+" if self.sign == "+" else ""
        head = f"{sign}{digits}"
        return head + self.text[len(self.text.rstrip("k")) :] if self.kilo else head

    def rewritten(self, value: float, width: float | None, kilo: float = 1000.0) -> str | None:
        """The digits that state `value` in this form; with a width, as few of them as stay within it, or None."""
        if self.kilo and kilo == 1024.0 and width is None and (value / 1024.0 * 10**self.decimals) % 1:
            return None  # no digits before this k state the position
        if width is None:
            return self.written(value, kilo)
        scale = kilo if self.kilo else self.scale
        whole = self.text.strip(f"+{MINUS}-k")
        trailing = len(whole) - len(whole.rstrip("0")) if not self.decimals and self.value else 0
        magnitude = math.floor(math.log10(abs(value / scale))) if value / scale else 0
        for decimals in range(-min(trailing, max(magnitude, 0)), self.decimals + 12):
            text = self.written(value, kilo, decimals)
            if abs(_plain(text) * scale - value) <= width * abs(value):
                return text
        return None


def _plain(text: str) -> float:
    """The number that digits with separators state."""
    sign = -1.0 if text.startswith(MINUS) else 1.0
    return sign * float(re.sub(rf"[^0-9.]|{MINUS}", "", text) or "0")


_SEPARATORS = ",\u00a0\u202f\u2009"
_DIGITS = re.compile(
    rf"(?<![\w.])(?P<sign>[+{MINUS}-]?)"
    rf"(?P<whole>\d{{1,3}}(?:(?P<comma>[{_SEPARATORS}])\d{{3}}(?:(?P=comma)\d{{3}})*)(?!\d)|\d+)(?P<part>\.\d+)?"
    r"(?P<kilo>k(?![A-Za-z0-9]))?"
)
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_SCALE_BEHIND = re.compile(rf"[\s\u00a0\u202f-]+({'|'.join(_SCALES)})s?\b", re.IGNORECASE)

_SMALL = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11,
    "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18,
    "nineteen": 19,
}  # fmt: skip
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_RATIOS = {"half": 0.5, "halves": 0.5, "third": 1 / 3, "thirds": 1 / 3, "quarter": 0.25, "quarters": 0.25}
_MULTIPLES = {
    **dict.fromkeys(("twice", "double", "doubles", "doubled", "doubling"), 2.0),
    **dict.fromkeys(("thrice", "triple", "triples", "tripled", "tripling"), 3.0),
    **dict.fromkeys(("quadruple", "quadruples", "quadrupled", "quadrupling"), 4.0),
    **dict.fromkeys(("halve", "halved", "halving"), 0.5),
}
_FRACTIONS = {"½": 0.5, "⅓": 1 / 3, "⅔": 2 / 3, "¼": 0.25, "¾": 0.75, "⅕": 0.2, "⅛": 0.125}
_FRACTION = re.compile(f"[{''.join(_FRACTIONS)}]")
_DIGIT_WORD = "|".join(word for word, number in _SMALL.items() if number < 10)
_JOIN = r"(?:[\s\u00a0]+|-)"
_TO_99 = (
    rf"(?:(?:{'|'.join(_TENS)})(?:{_JOIN}?(?:one|{_DIGIT_WORD}))?|{'|'.join(sorted(_SMALL, key=len, reverse=True))})"
)
_SCALE_WORD = rf"(?:{'|'.join(_SCALES)})s?"
_IN_WORDS = re.compile(
    rf"""(?<![\w-])(?:
      (?P<fold>(?:{_TO_99}|hundred|thousand)-?fold)
    | (?P<multiple>{"|".join(_MULTIPLES)})
    | (?P<parts>(?:(?:an?|one|{_TO_99}){_JOIN})?(?:halves|half|thirds|quarters?)
         (?:{_JOIN}an?{_JOIN}{_SCALE_WORD})?)
    | (?P<third>(?:an?|one){_JOIN}third(?!{_JOIN}(?:of{_JOIN}these|time\b))
         |third(?={_JOIN}of{_JOIN}(?:the|its|a|that)\b))
    | (?P<number>(?:(?:(?:an?|one){_JOIN})?{_SCALE_WORD}|{_TO_99}{_JOIN}{_SCALE_WORD})(?:{_JOIN}{_SCALE_WORD})*
         (?:{_JOIN}(?:and{_JOIN})?{_TO_99}(?:{_JOIN}{_SCALE_WORD})+)*(?:{_JOIN}(?:and{_JOIN})?{_TO_99})?
       | {_TO_99})
    )(?![\w])""",
    re.IGNORECASE | re.VERBOSE,
)
_STARTS = frozenset(
    ("one", "a", "an", *_TENS, *_SMALL, *_SCALES, *(f"{scale}s" for scale in _SCALES), *_RATIOS, *_MULTIPLES)
)
_LETTERS = re.compile(r"(?<![\w-])[A-Za-z]+")


def _count(text: str) -> tuple[float, float]:
    """(value, last scale) of a number in words: 'two hundred and fifty' -> (250, 1), 'sixty million' -> (6e7, 1e6)."""
    total, current, scale = 0.0, 0.0, 1.0
    for word in re.findall(r"[a-z]+", re.sub(r"\b(?:an?|and)\b", " ", text.lower())):
        name = word.removesuffix("s") if word not in _SMALL and word not in _TENS else word
        if name in _SCALES and _SCALES[name] == 100:
            current, scale = max(current, 1.0) * 100, 100.0
        elif name in _SCALES:
            total, current, scale = total + max(current, 1.0) * _SCALES[name], 0.0, _SCALES[name]
        else:
            part = _tens_and_ones(word)
            current, scale = current + part, 1.0
    return total + current, scale


def _tens_and_ones(word: str) -> int:
    if word == "one":
        return 1
    if word in _SMALL:
        return _SMALL[word]
    for tens, number in _TENS.items():
        if word.startswith(tens):
            rest = word[len(tens) :]
            return number + (_tens_and_ones(rest) if rest else 0)
    raise AssertionError(f"{word} is no number word")


def _word_numeral(match: re.Match[str]) -> Numeral:
    text = match[0]
    lowered = re.sub(r"[\s\u00a0]+", " ", text.lower())
    start, end = match.span()
    if match["fold"]:
        value = _count(re.sub(r"-?fold$", "", lowered))[0]
        return Numeral(start, end, text, value, in_words=True, tolerance=0.05 if value < 10 else 0.5)
    if match["multiple"]:
        value = _MULTIPLES[lowered]
        return Numeral(start, end, text, value, in_words=True, tolerance=0.05 if value > 1 else 0.005)
    if match["parts"] or match["third"]:
        words = re.findall(r"[a-z]+", lowered)
        at = next(index for index, word in enumerate(words) if word in _RATIOS)
        times = _count(" ".join(words[:at]))[0] if at and words[0] not in ("a", "an", "one") else 1.0
        scale = _count(" ".join(words[at + 1 :]))[0] if words[at + 1 :] else 1.0
        value = times * _RATIOS[words[at]]
        return Numeral(start, end, text, value * scale, in_words=True, tolerance=0.005 * max(1.0, value) * scale)
    value, scale = _count(lowered)
    # a spelled-out integer is that integer; from a million on, two digits
    tolerance = 0.5 if scale <= 1000 else scale * (0.05 if value < 10 * scale else 0.5)
    return Numeral(start, end, text, value, in_words=True, tolerance=tolerance)


def _digit_numeral(match: re.Match[str], text: str) -> Numeral:
    whole, part = match["whole"], match["part"] or ""
    value = float(re.sub(rf"[{_SEPARATORS}]", "", whole) + part) if len(whole) < 40 else math.inf
    value = -value if match["sign"] in (MINUS, "-") and match["sign"] else value
    comma = match["comma"] if match["comma"] else ("" if len(whole) > 3 else None)
    behind = _SCALE_BEHIND.match(text, match.end())
    scale = 1000.0 if match["kilo"] else (_SCALES[behind[1].lower()] if behind else 1.0)
    return Numeral(
        match.start(),
        match.end(),
        match[0],
        value * scale,
        scale,
        max(len(part) - 1, 0),
        comma,
        match["sign"],
        kilo=bool(match["kilo"]),
    )


def numerals_in(text: str) -> Iterator[Numeral]:
    """Every number of a text, in digits or in words, from left to right."""
    found = [_digit_numeral(match, text) for match in _DIGITS.finditer(text)]
    ends = {behind.end() for number in found if (behind := _SCALE_BEHIND.match(text, number.end))}
    for sign in _FRACTION.finditer(text):
        value = _FRACTIONS[sign[0]]
        found.append(Numeral(sign.start(), sign.end(), sign[0], value, in_words=True, tolerance=0.005))
    at = 0
    for word in _LETTERS.finditer(text):  # trying the long pattern at every letter would take most of the time
        first = word[0].lower().removesuffix("fold")
        match = _IN_WORDS.match(text, word.start()) if first in _STARTS and word.start() >= at else None
        if match:
            at = match.end()
            if at not in ends:  # the 'million' of '20 million' is part of that number
                found.append(_word_numeral(match))
    return iter(sorted(found, key=lambda number: number.start))


@dataclass(frozen=True)
class Quantity:
    """A numeral and the unit behind it (None: no unit)."""

    numeral: Numeral
    unit: Unit | None


def quantity(text: str, numeral: Numeral) -> Quantity:
    """The numeral with the unit that the text gives it: right behind it, or behind one adjective of a number in digits.

    A sign of money may also stand before it.
    """
    if numeral.start and text[numeral.start - 1] in "$€£":
        return Quantity(numeral, Unit(text[numeral.start - 1], Dimension(money=1), 1.0))
    if numeral.start and text[numeral.start - 1] == "×":
        return Quantity(numeral, Unit("×", ONE, 1.0))
    end = numeral.end
    if not numeral.in_words and (behind := _SCALE_BEHIND.match(text, end)):
        end = behind.end()
    gap = re.compile(_GAP).match(text, end)
    start = gap.end() if gap else end
    found = unit_at(text, start)
    if (
        not found
        and not numeral.in_words
        and (word := _ADJECTIVE.match(text, start))
        and word[1].lower() not in NO_UNITS
    ):
        found = unit_at(text, word.end())
    return Quantity(numeral, found[0] if found else None)


@dataclass(frozen=True)
class Comparison:
    """Whether a text says a value. written: the digits that it should have; problem and hint: why it can't say it."""

    ok: bool
    written: str | None = None
    problem: str | None = None
    hint: str | None = None


def compare(said: Quantity, value: float, dimension: Dimension, *, position: bool, width: float | None) -> Comparison:
    """Hold a quantity of a text against a value in SI.

    position: the value is a place on the tokens or context axis, where k is 1,024. width: how far off the text may be,
    as a fraction of the value; None: it must be the value, to the digits of the text.
    """
    numeral, unit = said.numeral, said.unit
    kilo = 1024.0 if position else 1000.0
    size = 1.0
    if unit is not None and unit.text == "B" and dimension.hard == ONE:
        size = 1e9  # '8B' of parameters
    elif unit is not None:
        if not _fits(unit, dimension):
            hint = f"the unit is read from '{unit.text}'"
            return Comparison(False, problem=f"the fact is in {dimension.name}, the text in {unit.text}", hint=hint)
        size = unit.size
    elif dimension not in PLAIN:
        hint = f"write the unit behind the number, such as {_UNIT_TO_WRITE.get(dimension, 'its unit')}"
        return Comparison(False, problem=f"the fact is in {dimension.name}, the text names no unit", hint=hint)
    amount = value / size
    if width is not None:
        ok = abs(numeral.amount(kilo) - amount) <= width * abs(amount) * (1 + 1e-9)
    else:
        ok = numeral.says(amount, kilo)
    if ok:
        return Comparison(True, numeral.text)
    if numeral.in_words:
        return Comparison(False, written=in_words(amount, numeral))
    return Comparison(False, written=numeral.rewritten(amount, width, kilo))


_UNIT_TO_WRITE = {BYTE: "GiB", FLOP: "GFLOP", SECOND: "ms", FLOP_PER_SECOND: "TFLOP/s", BYTE_PER_SECOND: "TB/s"}
_RATIO_UNITS = re.compile(r"[%×x]|per ?cent|percent|times|fold", re.IGNORECASE)


def _fits(unit: Unit, dimension: Dimension) -> bool:
    """Whether a text in this unit may state a value of this dimension; tokens may be left out or called users."""
    if unit.dimension.hard != dimension.hard:
        return False
    if dimension.hard == ONE:
        if unit.dimension.token and not dimension.token:
            return False  # '62 tokens' for a ratio
        if dimension.token and _RATIO_UNITS.match(unit.text):
            return False  # '64 %' for 64 tokens
    return True


def in_words(value: float, like: Numeral) -> str | None:
    """A whole number up to 99 in words, for a text that states its number so; None where words would not do."""
    number = round(value)
    if not (like.text.isalpha() or "-" in like.text) or not 2 <= number <= 99 or abs(value - number) > 0.5:
        return None
    if like.text.lower() in _MULTIPLES or like.text.lower() in _RATIOS:
        return None
    small = {number: word for word, number in _SMALL.items()}
    tens = {number: word for word, number in _TENS.items()}
    if number in small:
        return small[number]
    ten, one = tens[number // 10 * 10], number % 10
    return ten if not one else f"{ten}-{'one' if one == 1 else small[one]}"
