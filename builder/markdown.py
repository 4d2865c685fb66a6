"""Markdown → tokens, with the rules that this lesson adds to CommonMark. An ordered list of rules is the architecture.

    [1,840 tokens per second]{throughput @ tokens=64}     a bound span: rule `bound`
    ::: figure throughput                                 a directive, closed by a line ::: : rule `directive`
    $a \\times b$, $$ … $$, tables, [^notes]               dollarmath, table, footnote

Nothing is rendered and no fact is read here. Mistakes of form (an unterminated brace, nested brackets, leftovers that
CommonMark would show as plain text without a word) are collected in `Parsed.errors` with their places.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin

from builder.errors import LessonError, did_you_mean
from builder.places import Inline, Source, align, cells

LONGEST_SPAN = 600  # characters of a bound text
DIRECTIVES = ("figure", "bench", "question", "assumptions", "provenance")
HEADING_ID = re.compile(r"\s*\{#([A-Za-z][\w-]*)\}\s*$")  # of a heading: its address
# inline rules whose matches are no prose: their stretches are recorded as masks
_MASKING = ("backticks", "autolink", "entity", "math_inline", "footnote_ref", "escape")


@dataclass
class Span:
    """A bound span as it stands in an inline content: [text]{fact}. All positions are indices of the content."""

    inline: Inline
    start: int
    text_start: int
    text_end: int
    fact_start: int
    fact_end: int
    end: int
    open_token: Token
    close_token: Token
    in_alt: bool = False
    order: int = 0

    @property
    def fact(self) -> str:
        """The text between the braces."""
        return self.inline.content[self.fact_start : self.fact_end]


@dataclass
class Parsed:
    """A source as tokens, with the bound spans, inline contents and formulas it holds, and what is wrong in form."""

    source: Source
    tokens: list[Token] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    inlines: list[Inline] = field(default_factory=list)
    formulas: list[tuple[Token, Inline | None, int]] = field(default_factory=list)
    errors: list[LessonError] = field(default_factory=list)
    current: Inline | None = None
    base: int = 0
    alt_depth: int = 0


def _label_end(text: str, start: int, stop: int) -> tuple[int, bool]:
    """(index of the ] that closes the [ at start, whether brackets stand inside); −1 where none does."""
    depth, nested, position = 0, False, start
    stop = min(stop, start + LONGEST_SPAN)
    while position < stop:
        character = text[position]
        if character == "\\":
            position += 1
        elif character == "`":
            run = re.compile("`+").match(text, position)
            assert run
            close = re.compile(rf"(?<!`){run[0]}(?!`)").search(text, run.end(), stop)
            position = (close.end() if close else run.end()) - 1
        elif character == "[":
            nested = nested or depth > 0
            depth += 1
            if depth > 4:  # nobody's text; and a row of [ takes no time
                break
        elif character == "]":
            depth -= 1
            if depth == 0:
                return position, nested
        position += 1
    return -1, False


def bound(state: StateInline, silent: bool) -> bool:
    """The inline rule: [text]{fact}."""
    if state.src[state.pos] != "[":
        return False
    start, stop = state.pos, state.posMax
    text_end, nested = _label_end(state.src, start, stop)
    if text_end < 0 or state.src[text_end + 1 : min(text_end + 2, stop)] != "{":
        return False
    fact_start = text_end + 2
    fact_end = state.src.find("}", fact_start, stop)
    broken = fact_end < 0
    if broken:
        newline = state.src.find("\n", fact_start, stop)
        fact_end = newline if newline >= 0 else stop
    end = fact_end if broken else fact_end + 1
    again = re.compile(r"\s?\{[^{}]*\}?").match(state.src, end, stop) if not broken else None
    if again and again[0].startswith("{"):
        end = again.end()
    if not silent:
        _keep(state, (start, text_end, fact_start, fact_end, end), broken, nested, bool(again) and end > fact_end + 1)
    state.pos = end
    state.posMax = stop
    return True


def _keep(state: StateInline, at: tuple[int, int, int, int, int], broken: bool, nested: bool, again: bool) -> None:
    """Push the tokens of a span, or the error where it is malformed."""
    parsed: Parsed = state.env["parsed"]
    inline, base = parsed.current, parsed.base
    assert inline is not None
    start, text_end, fact_start, fact_end, end = at
    inline.masks.append((base + start, base + end, "bound"))
    problem: tuple[str, int, str] | None = None
    if broken:
        problem = ("the brace isn't closed", fact_start - 1, "end the fact with }")
    elif "{" in state.src[fact_start:fact_end]:
        inner = state.src.index("{", fact_start)
        problem = ("another { opens before this fact is closed", inner, "a } is missing before it")
    elif nested:
        inner = state.src.index("[", start + 1)
        problem = ("brackets inside a bound text", inner, "bind the inner number alone, or write \\[ and \\]")
    elif again:
        problem = ("two facts behind one text", fact_end + 1, "bind two numbers in two pairs of brackets")
    elif state.linkLevel > 0:
        problem = ("a bound number inside a link's text", start, "it is a link itself: move it out")
    elif not state.src[start + 1 : text_end].strip():
        problem = ("the brackets are empty", start, "write the number as the reader sees it")
    if problem:
        parsed.errors.append(inline.wrong(problem[0], base + problem[1], problem[2]))
        state.push("text", "", 0).content = state.src[start + 1 : text_end]
        return
    opened = state.push("bound_open", "a", 1)
    state.pos, state.posMax = start + 1, text_end
    state.linkLevel += 1
    state.md.inline.tokenize(state)
    state.linkLevel -= 1
    closed = state.push("bound_close", "a", -1)
    places = (base + start, base + start + 1, base + text_end, base + fact_start, base + fact_end, base + end)
    span = Span(inline, *places, opened, closed, parsed.alt_depth > 0, len(parsed.spans))
    opened.meta["span"] = closed.meta["span"] = span
    parsed.spans.append(span)


def _fence(state: StateBlock, line: int) -> str | None:
    """What stands behind the ::: of a line; None where the line has none."""
    if state.is_code_block(line):
        return None
    text = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]
    return text.lstrip(":").strip() if text.startswith(":::") else None


def directive(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    """The block rule: ::: name …, content, a line of ::: alone."""
    info = _fence(state, start_line)
    if info is None:
        return False
    if silent:
        return True
    parsed: Parsed = state.env["parsed"]
    offset = parsed.source.starts[start_line] + parsed.source.lines[start_line].find(":::")
    if not info:
        parsed.errors.append(parsed.source.wrong("this ::: closes nothing", offset, "take it out"))
        state.line = start_line + 1
        return True
    line, depth = start_line + 1, 1
    while line < end_line and (state.sCount[line] >= state.blkIndent or state.isEmpty(line)):
        behind = _fence(state, line)
        depth += 0 if behind is None else (1 if behind else -1)
        if depth == 0:
            break
        line += 1
    if depth:
        parsed.errors.append(parsed.source.wrong(f"'::: {info}' isn't closed", offset, "add a line of ::: behind it"))
    name, _, argument = info.partition(" ")
    if name not in DIRECTIVES:
        hint = did_you_mean(name, DIRECTIVES)
        parsed.errors.append(parsed.source.wrong(f"there is no directive '{name}'", offset, hint))
    opened = state.push("directive_open", "div", 1)
    opened.info, opened.meta, opened.map = name, {"argument": argument.strip(), "offset": offset}, [start_line, line]
    parent, line_max = state.parentType, state.lineMax
    state.parentType, state.lineMax = "container", line
    state.md.block.tokenize(state, start_line + 1, line)
    state.parentType, state.lineMax = parent, line_max
    closed = state.push("directive_close", "div", -1)
    closed.info, closed.meta = name, opened.meta
    state.line = line + (1 if depth == 0 else 0)
    return True


def inline_with_places(state: StateCore) -> None:
    """The core rule `inline`, which aligns every content with the file before it parses it."""
    parsed: Parsed = state.env["parsed"]
    row: list[list[tuple[int, int]]] = []
    kind, column, beside = "paragraph", 0, list[Inline]()
    for token in state.tokens:
        if token.type == "tr_open" and token.map:
            row, column, beside = cells(parsed.source, token.map[0]), 0, []
        elif token.type == "heading_open":
            kind = "heading"
        elif token.type == "paragraph_open":
            kind = "paragraph"
        elif token.type in ("th_open", "td_open"):
            kind = "cell"
        elif token.type == "math_block":
            parsed.formulas.append((token, None, 0))
        if token.type != "inline":
            continue
        first = token.map[0] if token.map else 0
        if kind == "cell":
            segments = row[column] if column < len(row) else [(0, parsed.source.starts[first])]
            column += 1
            record = Inline(parsed.source, token.content, segments, kind, row=beside)
            beside.append(record)
        else:
            record = align(parsed.source, token.content, first, kind)
            named = HEADING_ID.search(token.content) if kind == "heading" else None
            if named:
                record.masks.append((named.start(), named.end(), "id"))
        token.children = token.children or []
        parse_inline(state.md, parsed, record, token.children, state.env)
        token.meta["inline"] = record


def parse_inline(md: MarkdownIt, parsed: Parsed, inline: Inline, children: list[Token], env: Any = None) -> None:
    """Parse one content whose place is known; its tokens go to `children`, its spans and masks to `parsed`."""
    parsed.inlines.append(inline)
    parsed.current, parsed.base = inline, 0
    md.inline.parse(inline.content, md, env if env is not None else {"parsed": parsed}, children)
    parsed.current = None
    _leftovers(parsed, inline)


_LEFTOVERS: tuple[tuple[str, str, str | None], ...] = (
    (r"\]\s?\{", "these brackets and braces don't make a bound number", "write [text]{fact}"),
    (r"\]\(", "this is no link", "write [text](address); a bound number can't stand in a link's text"),
    (r"\[\^[^\]\s]*\]|\^\[", "there is no such footnote", "write [^name] and, below, [^name]: its text"),
    (r"\]\[", "this link names nothing", "define [name]: address below"),
    (r":::", "::: begins a line of its own", None),
    (r"[{}]", "a brace stands alone", "write \\{ to show one"),
    (r"\$", "a formula isn't closed, or a dollar stands alone", "write \\$ to show one"),
    (r"<!--|</?[A-Za-z][^>\n]*>", "HTML isn't read here", "write Markdown; &lt; shows a <"),
)


def _leftovers(parsed: Parsed, inline: Inline) -> None:
    """What the author meant as markup and CommonMark would show as it stands."""
    text = inline.masked()
    for pattern, message, hint in _LEFTOVERS:
        for found in re.finditer(pattern, text):
            parsed.errors.append(inline.wrong(message, found.start(), hint))
            text = text[: found.start()] + "\x00" * len(found[0]) + text[found.end() :]


def _masking(name: str, rule: Callable[[StateInline, bool], bool]) -> Callable[[StateInline, bool], bool]:
    """An inline rule that notes what it matched as no prose."""

    def wrapped(state: StateInline, silent: bool) -> bool:
        start, tokens = state.pos, len(state.tokens)
        if not rule(state, silent):
            return False
        if not silent:
            parsed: Parsed = state.env["parsed"]
            assert parsed.current is not None
            parsed.current.masks.append((parsed.base + start, parsed.base + state.pos, name))
            if name == "math_inline":
                made = state.tokens[tokens:]
                parsed.formulas += [(t, parsed.current, parsed.base + start + 1) for t in made if t.type == name]
        return True

    return wrapped


def _link(rule: Callable[[StateInline, bool], bool]) -> Callable[[StateInline, bool], bool]:
    """Links: their text is prose, their address isn't."""

    def wrapped(state: StateInline, silent: bool) -> bool:
        start = state.pos
        label_end = state.md.helpers.parseLinkLabel(state, start, True) if not silent and state.src[start] == "[" else 0
        if not rule(state, silent):
            return False
        if not silent:
            parsed: Parsed = state.env["parsed"]
            assert parsed.current is not None
            parsed.current.masks.append((parsed.base + start, parsed.base + start + 1, "link"))
            parsed.current.masks.append((parsed.base + label_end, parsed.base + state.pos, "link"))
        return True

    return wrapped


def _image(rule: Callable[[StateInline, bool], bool]) -> Callable[[StateInline, bool], bool]:
    """Images: their alternative text is prose, parsed apart by the rule, so its indices are shifted meanwhile."""

    def wrapped(state: StateInline, silent: bool) -> bool:
        start = state.pos
        if silent or state.src[start : start + 2] != "![":
            return rule(state, silent)
        parsed: Parsed = state.env["parsed"]
        assert parsed.current is not None
        label_end = state.md.helpers.parseLinkLabel(state, start + 1, False)
        base = parsed.base
        parsed.base, parsed.alt_depth = base + start + 2, parsed.alt_depth + 1
        try:
            matched = rule(state, silent)
        finally:
            parsed.base, parsed.alt_depth = base, parsed.alt_depth - 1
        if matched:
            parsed.current.masks.append((base + start, base + start + 2, "image"))
            parsed.current.masks.append((base + label_end, base + state.pos, "image"))
        return matched

    return wrapped


def parser() -> MarkdownIt:
    """CommonMark without raw HTML, with tables, footnotes, formulas and our rules."""
    md = MarkdownIt("commonmark", {"html": False, "xhtmlOut": False}).enable("table")
    footnote_plugin(md, inline=False)
    dollarmath_plugin(md, allow_labels=False, allow_space=False, allow_digits=False, allow_blank_lines=False)
    md.inline.ruler.before("link", "bound", bound)
    md.block.ruler.before("fence", "directive", directive, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    md.core.ruler.at("inline", inline_with_places)
    rules = {rule.name: rule.fn for rule in md.inline.ruler.__rules__}
    for name in _MASKING:
        md.inline.ruler.at(name, _masking(name, rules[name]))
    md.inline.ruler.at("link", _link(rules["link"]))
    md.inline.ruler.at("image", _image(rules["image"]))
    return md


class _References(dict[str, Any]):
    """The addresses that are defined apart, `[name]: address`, and which of them a link has asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[str] = set()

    def get(self, label: str, default: Any = None) -> Any:
        """The definition that a link asks for."""
        self.asked.add(label)
        return super().get(label, default)


def parse(md: MarkdownIt, source: Source, skip_lines: int = 0) -> Parsed:
    """The tokens of a source; its first lines (front matter) are left out, but counted."""
    parsed = Parsed(source)
    body = "\n".join(["" for _ in source.lines[:skip_lines]] + source.lines[skip_lines:])
    references = _References()
    env: dict[str, Any] = {"parsed": parsed, "references": references}
    parsed.tokens = md.parse(body, env)
    for label in references.keys() - references.asked:
        line = references[label]["map"][0]
        offset = source.starts[line] + source.lines[line].find("[")
        parsed.errors.append(source.wrong("nothing refers to this address", offset, "link to it, or take it out"))
    for label, number in env.get("footnotes", {}).get("refs", {}).items():
        if number < 0:
            where = source.text.find(f"[^{label[1:]}]:")
            hint = f"write [^{label[1:]}] where it belongs, or take it out"
            parsed.errors.append(source.wrong("nothing refers to this footnote", max(where, 0), hint))
    return parsed
