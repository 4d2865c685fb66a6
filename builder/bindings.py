"""One bound span × the ledger → what it is, whether it holds, and every reason why it doesn't.

A value's text must state the fact to its own digits and in its unit; a claim must hold; an exemption needs a reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from builder import lint
from builder.dimensions import ONE
from builder.errors import LessonError
from builder.facts import Facts
from builder.grid import AXES
from builder.ledger import Point
from builder.markdown import Span
from builder.numerals import Numeral, compare, numerals_in, quantity
from builder.places import Inline
from builder.syntax import Fact
from builder.values import Place, Result, show


@dataclass(frozen=True)
class Bound:
    """A bound span, checked.

    path, line, column: where its [ stands; start, end: offsets of the whole span in the file; numeral: offsets of the
    digits that a fix may change (None: there are none, or they are words); said: what they say. text: as a reader sees
    it. kind: value, claim or exempt. status: ok, stale (written: the digits it should have; restated: the text with
    them), false (of a claim) or broken (there is no value). value: SI; shown: the same with its unit. point: of the
    link, on the grid; exact: the one that was computed; off_grid: how they differ, in words. sentence: around the span,
    as a reader sees it.
    """

    path: str
    line: int
    column: int
    start: int
    end: int
    text: str
    fact: str
    kind: str
    status: str = "ok"
    value: float | bool | None = None
    shown: str = ""
    point: Point | None = None
    exact: Point | None = None
    off_grid: str | None = None
    written: str | None = None
    restated: str | None = None
    said: str | None = None
    numeral: tuple[int, int] | None = None
    sentence: str = ""

    @property
    def fragment(self) -> str | None:
        """The address that sets the bench; None for what has no point."""
        return fragment(self.point) if self.point else None


def fragment(point: Point) -> str:
    """'#phase=decode&tokens=64&…', always all seven axes."""
    return "#" + "&".join(f"{axis}={getattr(point, axis)}" for axis in AXES)


@dataclass(frozen=True)
class Checked:
    """A span with its outcome and what is wrong with it."""

    bound: Bound
    result: Result | None
    errors: tuple[LessonError, ...]


class Checker:
    """Checks the spans of a text from one starting point. names: of the catalogue, which are no numbers."""

    def __init__(self, facts: Facts, start: Place, names: Sequence[str]) -> None:
        self.facts = facts
        self.start = start
        self.names = tuple(names)
        self._sentences: dict[int, _Sentences] = {}

    def check(self, span: Span, spans: Sequence[Span]) -> Checked:
        """The outcome of a span. spans: all of the source, so that the sentence around it reads well."""
        inline = span.inline
        text, indices = inline.visible(span.text_start, span.text_end)
        try:
            fact = self.facts.parse(span.fact)
            result = self.facts.evaluate(fact, self.start)
        except LessonError as error:
            found = inline.wrong(error.message, span.fact_start + (error.column or 1) - 1, error.hint)
            return Checked(self._bound(span, spans, text, None), None, (found,))
        bound = self._bound(span, spans, text, result)
        if result.kind == "exempt":
            return Checked(bound, result, ())
        numerals = list(numerals_in(lint.without_names(text, self.names)))
        if result.kind == "claim":
            return self._claim(span, bound, result, fact, numerals, (text, indices))
        return self._value(span, bound, result, fact, numerals, (text, indices))

    def _bound(self, span: Span, spans: Sequence[Span], text: str, result: Result | None) -> Bound:
        """What is known of a span before its text is held against its fact."""
        inline = span.inline
        start = inline.offset(span.start)
        line, column = inline.source.place(start)
        return Bound(
            path=inline.source.path,
            line=line,
            column=column,
            start=start,
            end=inline.end_offset(span.end),
            text=re.sub(r"[ \n]+", " ", text).strip(),
            fact=" ".join(span.fact.split()),
            kind=result.kind if result else "value",
            status="ok" if result else "broken",
            value=result.value if result else None,
            shown=_shown(result) if result else "",
            point=result.point if result else None,
            exact=result.exact if result else None,
            off_grid=result.off_grid if result else None,
            sentence=self._sentence(span, spans),
        )

    def _value(
        self, span: Span, bound: Bound, result: Result, fact: Fact, numerals: list[Numeral], at: tuple[str, list[int]]
    ) -> Checked:
        text, indices = at
        inline = span.inline
        problem = _no_single_number(numerals, indices, result)
        if problem:
            message, index, hint = problem
            error = inline.wrong(message, span.text_start if index is None else index, hint)
            return Checked(replace(bound, status="broken"), result, (error,))
        numeral = numerals[0]
        first, last = indices[numeral.start], indices[numeral.end - 1]
        if not numeral.in_words:  # words are the author's to rewrite
            bound = replace(bound, said=numeral.text, numeral=(inline.offset(first), inline.end_offset(last + 1)))
        assert result.value is not None
        said = quantity(text, numeral)
        dimension = result.dimension or ONE
        compared = compare(said, float(result.value), dimension, position=result.position, width=fact.width)
        if compared.ok:
            return Checked(bound, result, ())
        if compared.problem:
            error = inline.wrong(compared.problem, span.text_start, compared.hint)
            return Checked(replace(bound, status="broken"), result, (error,))
        restated = text[: numeral.start] + compared.written + text[numeral.end :] if compared.written else None
        stale = replace(bound, status="stale", written=compared.written, restated=restated)
        return Checked(stale, result, (self._stale(span, stale, numeral, result, fact),))

    def _stale(self, span: Span, bound: Bound, numeral: Numeral, result: Result, fact: Fact) -> LessonError:
        now = f"{bound.fact} is {_shown(result)}"
        if numeral.in_words and bound.written is None:
            message, hint = f"'{bound.text}' is stale: {now}", "words aren't rewritten by --fix: yours to reword"
        elif bound.written is None:
            message, hint = (
                f"'{bound.text}' is stale: {now}",
                "no digits say it in this form: choose another unit, or leave the k out",
            )
        elif numeral.in_words:
            message, hint = f"{numeral.text} → {bound.written}: {now}", "words aren't rewritten by --fix"
        else:
            message, hint = f"{numeral.text} → {bound.written}: {now}", "`numbers --fix` writes it"
            if numeral.sign == "-":
                hint = "a minus is − (U+2212), not a hyphen; `numbers --fix` writes it"
            elif fact.width is None and _rounded(numeral, result):
                hint = "zeros at the end are digits: say within 5% if it is meant to be round"
        return span.inline.wrong(message, span.text_start, hint)

    def _claim(
        self, span: Span, bound: Bound, result: Result, fact: Fact, numerals: list[Numeral], at: tuple[str, list[int]]
    ) -> Checked:
        text, indices = at
        errors = []
        if not result.value:
            message = f"this claim is false: {result.against}"
            errors.append(span.inline.wrong(message, span.text_start, "reword it; a claim is never rewritten for you"))
        stated = list(_stated(fact))
        for numeral in numerals:
            said = quantity(text, numeral)
            size = said.unit.size if said.unit else 1.0
            amounts = (numeral.value * size, numeral.amount(1024.0) * size)
            close = 0.5 * 10.0**-numeral.decimals * numeral.scale * size
            width = numeral.tolerance * size if numeral.in_words else close
            if not any(abs(amount - value) <= width for amount in amounts for value in stated):
                message = f"the claim's text says '{numeral.text}', its fact doesn't"
                hint = "a number of a claim stands in its fact too; bind others apart"
                errors.append(span.inline.wrong(message, indices[numeral.start], hint))
        status = "broken" if len(errors) > (not result.value) else ("ok" if result.value else "false")
        return Checked(replace(bound, status=status), result, tuple(errors))

    def _sentence(self, span: Span, spans: Sequence[Span]) -> str:
        key = id(span.inline)
        if key not in self._sentences:
            self._sentences[key] = _Sentences(span.inline, [each for each in spans if each.inline is span.inline])
        return self._sentences[key].around(span)


def _seen(inline: Inline) -> str:
    """A content as a reader sees it, its bound spans by a pattern since their own records aren't at hand."""
    text = re.sub(r"\[([^\[\]]*)\](?:\{[^{}]*\}|\([^()]*\))", r"\1", inline.content)
    return Inline(inline.source, text, [(0, 0)]).visible(0, len(text))[0]


class _Sentences:
    """The sentences of a content as a reader sees them."""

    def __init__(self, inline: Inline, spans: Sequence[Span]) -> None:
        hidden = [(low, high) for low, high, kind in inline.masks if kind in ("link", "image", "footnote_ref")]
        for span in spans:
            hidden += [(span.start, span.text_start), (span.text_end, span.end)]
        text, self.indices = inline.visible(0, len(inline.content), hidden)
        if inline.row:  # a cell says little without the others of its row
            cells = (text if each is inline else _seen(each) for each in inline.row)
            self.parts = [(0, " | ".join(cell.strip() for cell in cells if cell.strip()))]
            return
        starts = [0, *(match.end() for match in re.finditer(r"[.!?][\"”')\]]*\s+(?=[^\W\d_a-z]|[\"“(])", text))]
        self.parts = [(low, text[low:high].strip()) for low, high in zip(starts, [*starts[1:], len(text)], strict=True)]

    def around(self, span: Span) -> str:
        """The sentence in which a span begins."""
        at = next((k for k, index in enumerate(self.indices) if index >= span.text_start), 0)
        return [text for low, text in self.parts if low <= at][-1] if self.parts else ""


def _no_single_number(
    numerals: Sequence[Numeral], indices: Sequence[int], result: Result
) -> tuple[str, int | None, str] | None:
    """(message, index in the content, hint) where a bound text doesn't hold one unbroken number."""
    if not numerals:
        return "the bound text holds no number", None, f"the fact is {_shown(result)}; a claim compares"
    if len(numerals) > 1:
        shown = " and ".join(f"'{each.text}'" for each in numerals[:3])
        at_second = indices[numerals[1].start]
        return f"the bound text holds {len(numerals)} numbers, {shown}", at_second, "bind each of them apart"
    numeral = numerals[0]
    first, last = indices[numeral.start], indices[numeral.end - 1]
    if last - first != numeral.end - 1 - numeral.start and not numeral.in_words:
        return f"'{numeral.text}' is broken up by markup", first, "put the marks around the whole number"
    return None


def _stated(fact: Fact) -> Iterator[float]:
    """The numbers that a fact's own text states."""
    for literal in fact.literals.values():
        yield literal.value
    for setting in fact.point:
        if isinstance(setting.value, float):
            yield setting.value


def _rounded(numeral: Numeral, result: Result) -> bool:
    """Whether a text looks like a deliberate rounding of its value: '1,800' for 1,840."""
    whole = numeral.text.replace(",", "")
    zeros = len(whole) - len(whole.rstrip("0")) if whole.isdigit() else 0
    if not zeros or not isinstance(result.value, float) or result.dimension is None:
        return False
    return any(
        abs(numeral.value - result.value / size) <= 0.5 * 10**zeros for size in (1.0, 0.01, 1e-3, 1e9, 1e12, 2**30)
    )


def _shown(result: Result) -> str:
    if result.kind == "value" and result.value is not None:
        return show(float(result.value), result.dimension)
    return {"claim": "true" if result.value else "false"}.get(result.kind, "")
