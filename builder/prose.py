"""The lesson's text → HTML, every number in it checked against the ledger and every unbound one found.

Files: content/lesson.md, then content/sections/*.md in the order of their names. lesson.md begins with front matter:

    ---
    title: Arithmetic intensity and the roofline
    dek: One sentence below the title; may hold [bound numbers]{…}.
    kicker: LLM internals / inference
    description: For search engines and link previews.
    point: tokens=1 context=8k            (what facts start from; the grid's default where it is left out)
    ---

A level-two heading begins a section; `## The ridge moves {#ridge}` names its address. An empty link `[](#ridge)` reads
as that section's number. Figures, the bench, questions and the table of assumptions are blocks between ::: lines:

    ::: figure throughput                 ::: bench        ::: question
    alt: What the drawing shows.          :::              What happens to tokens per second?
    One sentence: what to see.
                                                           - [x] Nothing.
    The caption, if it needs one.
    :::                                                      The reason, indented.
                                                           - [ ] It doubles.

                                                             The reason.
                                                           :::
    ::: assumptions
    - lm_head: What is assumed, and why. A line for each of builder/assumptions.py.
    :::
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from markdown_it.token import Token

from builder import lint, maths
from builder.bindings import Bound, Checked, Checker
from builder.blocks import Blocks, plain_text
from builder.errors import LessonError, LessonErrors, did_you_mean
from builder.facts import Facts
from builder.markdown import Parsed, Span, parse, parse_inline, parser
from builder.places import Inline, Source
from builder.rendering import Renderer
from builder.spelling import misspelt
from builder.syntax import Setting, settings
from builder.values import Place

FRONT_KEYS = ("title", "dek", "kicker", "description", "point")


@dataclass(frozen=True)
class Figure:
    """A figure that the text asks for: its name, its alternative text, and where."""

    name: str
    alt: str
    path: str
    line: int


@dataclass(frozen=True)
class Section:
    """One numbered part of the lesson; title_html and html may hold slots, see `fill`."""

    id: str
    number: int
    title: str
    title_html: str
    html: str


@dataclass(frozen=True)
class Prose:
    """The whole text: HTML with slots for figures and bench, every bound span, and what is wrong."""

    title: str = ""
    title_html: str = ""
    dek_html: str = ""
    kicker_html: str = ""
    description: str = ""
    lead_html: str = ""
    sections: tuple[Section, ...] = ()
    footnotes_html: str = ""
    figures: tuple[Figure, ...] = ()
    reasons_html: Mapping[str, str] = field(default_factory=dict)  # assumption → what is said of it
    bound: tuple[Bound, ...] = ()
    errors: tuple[LessonError, ...] = ()

    def count(self, kind: str) -> int:
        """How many bound spans are of a kind: value, claim or exempt."""
        return sum(1 for each in self.bound if each.kind == kind)


BENCH_SLOT = "<!--slot:bench-->"
ASSUMPTIONS_SLOT = "<!--slot:assumptions-->"
PROVENANCE_SLOT = "<!--slot:provenance-->"
_SLOT = re.compile(r"<!--slot:([a-z_]+)(?: ([\w-]+))?-->")


def fill(text: str, slots: Mapping[str, str]) -> str:
    """Put figures and bench into HTML: slots maps 'bench' and 'figure NAME' to HTML. KeyError where one is missing."""
    return _SLOT.sub(lambda match: slots[f"{match[1]} {match[2]}" if match[2] else match[1]], text)


def sources(root: Path) -> list[Source]:
    """The files of the text, in order. Raises LessonError where lesson.md is missing or a file isn't UTF-8."""
    paths = [root / "content" / "lesson.md", *sorted((root / "content" / "sections").glob("*.md"))]
    found = []
    for path in paths:
        name = path.relative_to(root).as_posix()
        try:
            found.append(Source(name, path.read_bytes().decode("utf-8")))
        except FileNotFoundError:
            raise LessonError("there is no such file", path=name, hint="the lesson's text stands there") from None
        except UnicodeDecodeError as error:
            raise LessonError(f"not UTF-8 text (byte {error.start})", path=name, hint="save it as UTF-8") from None
    return found


def load_prose(root: Path, facts: Facts) -> Prose:
    """The lesson's text, checked and rendered. Raises LessonErrors with everything that is wrong with it."""
    try:
        prose = read(sources(root), facts)
    except LessonError as error:
        raise LessonErrors([error]) from None
    if prose.errors:
        raise LessonErrors(prose.errors)
    return prose


def read(texts: Sequence[Source], facts: Facts) -> Prose:
    """The text of some sources, the first with front matter. Mistakes are collected in Prose.errors; none is raised."""
    return _Reader(facts).read(texts)


@dataclass
class _Front:
    """Front matter: each value as inline content, and how many lines the whole takes."""

    values: dict[str, Inline] = field(default_factory=dict)
    lines: int = 0


def front_matter(source: Source, errors: list[LessonError]) -> _Front:
    """The `key: value` lines between two lines of --- at the start of a source; values run on in indented lines."""
    front = _Front()
    if source.lines[0].removeprefix("\ufeff").strip() != "---":
        errors.append(source.wrong("the front matter is missing", 0, "begin with ---, title: …, ---"))
        return front
    end = next((k for k, line in enumerate(source.lines[1:], 1) if line.strip() == "---"), None)
    if end is None:
        errors.append(source.wrong("the front matter isn't closed", 0, "add a line of --- behind it"))
        front.lines = len(source.lines)
        return front
    front.lines = end + 1
    last: Inline | None = None
    for number in range(1, end):
        line, start = source.lines[number], source.starts[number]
        if not line.strip() or line.startswith("#"):
            continue
        if line[0].isspace() and last is not None:
            text = line.strip()
            last.segments.append((len(last.content) + 1, start + line.index(text)))
            last.content += "\n" + text
            continue
        last = _front_value(front, source, line, start, errors)
    return front


def _front_value(front: _Front, source: Source, line: str, start: int, errors: list[LessonError]) -> Inline | None:
    key, colon, rest = line.partition(":")
    name = key.strip()
    if not colon or name not in FRONT_KEYS:
        message = f"the front matter has no '{name}'" if colon else "this line isn't key: value"
        errors.append(source.wrong(message, start, did_you_mean(name, FRONT_KEYS)))
        return None
    if name in front.values:
        errors.append(source.wrong(f"'{name}' stands twice", start, "keep one of the two"))
    text = rest.strip()
    at = len(key) + 1 + (len(rest) - len(rest.lstrip()))
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text, at = text[1:-1], at + 1
    front.values[name] = Inline(source, text, [(0, start + at)], "front matter")
    return front.values[name]


class _Reader:
    """Reads all sources once: parse, check, lint, render."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.md = parser()
        self.errors: list[LessonError] = []
        self.checked: dict[int, Checked] = {}  # by id of the span's opening token
        self.bound: list[Bound] = []
        grid = facts.grid
        gpus = [name for gpu in grid.gpus.values() for name in (gpu.name, gpu.label, gpu.id)]
        self.names = (*gpus, *(" ".join(gpu.name.split()[:-1]) for gpu in grid.gpus.values()), grid.model.name)

    def read(self, texts: Sequence[Source]) -> Prose:
        """The text as Prose."""
        front = front_matter(texts[0], self.errors)
        start = self._start(front)
        checker = Checker(self.facts, start, self.names)
        heads: dict[str, list[Token]] = {}
        head = Parsed(texts[0])
        for key, inline in front.values.items():
            if key != "point":
                heads[key] = []
                parse_inline(self.md, head, inline, heads[key])
        parsed = [parse(self.md, text, front.lines if text is texts[0] else 0) for text in texts]
        for each in (head, *parsed):
            self._check(each, checker)
        blocks = Blocks(self.errors)
        sections = blocks.sections(parsed)
        renderer = Renderer(self.md, self.checked, blocks, self.facts.grid.texts)
        if "title" not in front.values and front.lines:
            self.errors.append(texts[0].wrong("the front matter has no title", 0, "add title: …"))
        shown = {key: renderer.inline(tokens) for key, tokens in heads.items()}
        rendered = tuple(
            Section(part.id, part.number, part.title, renderer.inline(part.heading), renderer.blocks(part.tokens))
            for part in sections
        )
        self._choices(blocks.choices, renderer)
        return Prose(
            title=plain_text(heads.get("title", [])),
            title_html=shown.get("title", ""),
            dek_html=shown.get("dek", ""),
            kicker_html=shown.get("kicker", ""),
            description=plain_text(heads.get("description", [])),
            lead_html=renderer.blocks(blocks.lead),
            sections=rendered,
            footnotes_html=renderer.footnotes(blocks.footnotes),
            figures=tuple(Figure(*each) for each in blocks.figures),
            reasons_html={name: renderer.inline(tokens) for name, tokens in (blocks.reasons or {}).items()},
            bound=tuple(sorted(self.bound, key=lambda each: (_order(texts, each.path), each.start))),
            errors=tuple(_unique(self.errors)),
        )

    def _start(self, front: _Front) -> Place:
        inline = front.values.get("point")
        given: tuple[Setting, ...] = ()
        if inline is not None:
            try:
                given = settings(inline.content)
                return self.facts.start(given)
            except LessonError as error:
                self.errors.append(inline.wrong(error.message, (error.column or 1) - 1, error.hint))
        return self.facts.start()

    def _check(self, parsed: Parsed, checker: Checker) -> None:
        self._formulas(parsed)
        self.errors += parsed.errors
        for span in parsed.spans:
            checked = checker.check(span, parsed.spans)
            self.checked[id(span.open_token)] = checked
            self.bound.append(checked.bound)
            self.errors += checked.errors
        for inline in parsed.inlines:
            for found in lint.unbound(inline.masked(), self.names):
                hint = "write [text]{fact}, or [text]{exempt: why}"
                self.errors.append(inline.wrong(f"'{found.text}' is bound to no fact", found.start, hint))
            for slip in misspelt(inline, parsed.spans):
                message = f"the lesson doesn't write '{' '.join(slip.text.split())}'"
                self.errors.append(inline.wrong(message, slip.start, f"write {slip.right}"))

    def _choices(self, choices: Sequence[Token], renderer: Renderer) -> None:
        """Refuse what is pressed by itself in an answer, which is pressed as a whole."""
        for token in choices:
            record, children = token.meta["inline"], token.children or []
            spans = [child.meta["span"] for child in children if child.type == "bound_open"]
            spans += [span for child in children for span in child.meta.get("macros", {}).values()]
            places = [(span.inline, span.start) for span in spans if renderer.is_pressed(span)]
            if any(child.type in ("link_open", "footnote_ref") for child in children):
                kinds = ("link", "footnote_ref", "autolink")
                places.append((record, next((start for start, _, kind in record.masks if kind in kinds), 0)))
            message = "an answer is pressed as a whole, so nothing in it is a link or a number of the bench"
            self.errors += [inline.wrong(message, start, "write it into the reason") for inline, start in places]

    def _formulas(self, parsed: Parsed) -> None:
        """Find the numbers and the \\bound macros of every formula; macros become spans."""
        for token, inline, start in parsed.formulas:
            record = formula(parsed.source, token, inline, start)
            token.meta["macros"] = {}
            try:
                found = list(maths.macros(token.content))
                maths.render(token.content, display=token.type == "math_block")
            except maths.MathsError as error:
                self.errors.append(record.wrong(error.message, error.index, error.hint))
                token.meta["broken"] = True
                continue
            bare = token.content
            for macro in found:
                opened = Token("bound_open", "a", 1)
                places = (macro.start, macro.text_start, macro.text_end, macro.fact_start, macro.fact_end, macro.end)
                span = Span(record, *places, opened, Token("bound_close", "a", -1))
                opened.meta["span"] = span
                token.meta["macros"][macro.start] = span
                parsed.spans.append(span)
                bare = bare[: macro.start] + "\x00" * (macro.end - macro.start) + bare[macro.end :]
            for loose in lint.unbound_maths(bare):
                hint = "write \\bound{4.8\\,\\text{ms}}{fact}"
                self.errors.append(record.wrong(f"'{loose.text}' is bound to no fact", loose.start, hint))


def formula(source: Source, token: Token, inline: Inline | None, start: int) -> Inline:
    """A formula as a content of its own, its TeX made plain, aligned with the file."""
    text = maths.plain(token.content)
    if inline is not None:
        segments = [(0, inline.offset(start))]
        segments += [(k - start, at) for k, at in inline.segments if start < k < start + len(text)]
        return Inline(source, text, segments, "formula")
    first = token.map[0] if token.map else 0
    segments, index = [], 0
    for number, line in enumerate(token.content.split("\n"), first):
        whole = source.lines[min(number, len(source.lines) - 1)]
        at = whole.find(line.strip()) - (len(line) - len(line.lstrip()))
        segments.append((index, source.starts[min(number, len(source.starts) - 1)] + max(at, 0)))
        index += len(line) + 1
    return Inline(source, text, segments, "formula")


def _order(texts: Sequence[Source], path: str) -> int:
    return next((k for k, text in enumerate(texts) if text.path == path), 0)


def _unique(errors: Sequence[LessonError]) -> list[LessonError]:
    """Each mistake once, in the order of their places; and each hint once, since it helps with all that follow."""
    seen: dict[tuple[str, str], LessonError] = {}
    hints: set[str] = set()
    for error in sorted(errors, key=lambda each: (each.path or "", each.line or 0, each.column or 0)):
        if (error.place, error.message) not in seen:
            seen[error.place, error.message] = error
            error.hint = None if error.hint in hints else error.hint
            hints |= {error.hint} if error.hint else set()
    return list(seen.values())
