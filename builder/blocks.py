"""Tokens → the parts of the lesson: sections and footnotes sorted out, figures and questions given their HTML frame."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from markdown_it.token import Token

from builder.assumptions import NAMES
from builder.errors import LessonError, did_you_mean
from builder.markdown import HEADING_ID, Parsed
from builder.places import Source


@dataclass
class Part:
    """A section before it is rendered."""

    id: str
    number: int
    title: str
    heading: list[Token]
    tokens: list[Token] = field(default_factory=list)


def plain_text(tokens: Sequence[Token]) -> str:
    """Inline tokens as plain text."""
    out = []
    for token in tokens:
        if token.type in ("text", "code_inline", "text_special", "math_inline"):
            out.append(token.content)
        elif token.type in ("softbreak", "hardbreak"):
            out.append(" ")
        elif token.children:
            out.append(plain_text(token.children))
    return "".join(out)


def slug(text: str) -> str:
    """A heading's text as an address: 'The ridge moves' -> 'the-ridge-moves'."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


class Blocks:
    """Sorts the tokens of all sources into lead, sections and footnotes, and prepares figures and questions."""

    def __init__(self, errors: list[LessonError]) -> None:
        self.errors = errors
        self.lead: list[Token] = []
        self.footnotes: list[Token] = []
        self.figures: list[tuple[str, str, str, int]] = []
        self.ids: dict[str, Part | None] = {}
        self.questions = 0
        self.choices: list[Token] = []  # what is pressed to answer, as inline tokens
        self.reasons: dict[str, list[Token]] | None = None  # assumption → what is said of it

    def sections(self, parsed: Sequence[Parsed]) -> list[Part]:
        """The parts of the lesson, in order."""
        parts: list[Part] = []
        for each in parsed:
            _renumber_footnotes(each.tokens, sum(1 for token in self.footnotes if token.type == "footnote_open"))
            here = parts[-1].tokens if parts else self.lead
            tokens = self._directives(each)
            position = 0
            while position < len(tokens):
                token = tokens[position]
                if token.type == "footnote_block_open":
                    end = next(k for k, t in enumerate(tokens) if t.type == "footnote_block_close")
                    self.footnotes += tokens[position + 1 : end]
                    position = end + 1
                elif token.type == "heading_open" and token.level == 0:
                    part = self._heading(each, token, tokens[position + 1], len(parts) + 1)
                    if part:
                        parts.append(part)
                        here = part.tokens
                    else:
                        here += tokens[position : position + 3]
                    position += 3
                else:
                    here.append(token)
                    position += 1
        return parts

    def _heading(self, parsed: Parsed, token: Token, inline: Token, number: int) -> Part | None:
        """The part that a heading begins; None where it only stands within one, and has an id then."""
        children = inline.children or []
        record = inline.meta["inline"]
        named = HEADING_ID.search(record.content)
        if named and children and children[-1].type == "text":
            children[-1].content = HEADING_ID.sub("", children[-1].content)
        unnumbered = [child for child in children if not child.meta.get("span")]
        text = plain_text(children).strip()
        name = named[1] if named else slug(_outside_spans(children)) or f"part-{number}"
        offset = record.offset(0)
        if token.tag == "h1":
            self.errors.append(
                parsed.source.wrong("a heading of level one", offset, "the title stands in the front matter")
            )
        if name in self.ids:
            hint = "give it a name of its own: ## Title {#name}"
            self.errors.append(parsed.source.wrong(f"two headings have the address '#{name}'", offset, hint))
        if not unnumbered and not text:
            self.errors.append(parsed.source.wrong("this heading is empty", offset, "write its text behind the #"))
        part = Part(name, number, text, children) if token.tag == "h2" else None
        self.ids[name] = part
        if part is None:
            token.attrSet("id", name)
        return part

    # directives

    def _directives(self, parsed: Parsed) -> list[Token]:
        out: list[Token] = []
        stack: list[tuple[Token, list[Token]]] = []
        for token in parsed.tokens:
            if token.type == "directive_open":
                stack.append((token, out))
                out = []
            elif token.type == "directive_close":
                opened, outer = stack.pop()
                outer += self._directive(parsed.source, opened, out)
                out = outer
            else:
                out.append(token)
        return out

    def _directive(self, source: Source, opened: Token, tokens: list[Token]) -> list[Token]:
        name, argument, offset = opened.info, opened.meta["argument"], opened.meta["offset"]
        if name == "figure":
            return self._figure(source, argument, offset, tokens)
        if name == "question":
            return self._question(source, offset, tokens)
        if name in ("bench", "provenance"):
            if tokens or argument:
                message, hint = f"the {name} has no text", f"write ::: {name}, then :::"
                self.errors.append(source.wrong(message, offset, hint))
            return [_html(f"<!--slot:{name}-->\n")]
        if name == "assumptions":
            return self._assumptions(source, offset, tokens)
        return tokens

    def _figure(self, source: Source, name: str, offset: int, tokens: list[Token]) -> list[Token]:
        if not re.fullmatch(r"[a-z][a-z0-9_-]*", name):
            self.errors.append(source.wrong("a figure needs its name", offset, "write ::: figure throughput"))
            return tokens
        if any(each[0] == name for each in self.figures):
            self.errors.append(source.wrong(f"the figure '{name}' stands twice", offset, "show it once and link to it"))
        alt = ""
        paragraphs = list(_paragraphs(tokens))
        if paragraphs and (lead := plain_text(tokens[paragraphs[0] + 1].children or [])).startswith("alt:"):
            alt = lead.removeprefix("alt:").strip()
            tokens = tokens[: paragraphs[0]] + tokens[paragraphs[0] + 3 :]
            paragraphs = list(_paragraphs(tokens))
        if not alt:
            self.errors.append(
                source.wrong(f"the figure '{name}' has no alternative text", offset, "begin it with alt: …")
            )
        if not paragraphs:
            self.errors.append(source.wrong(f"the figure '{name}' has no sentence", offset, "say what to see"))
            return tokens
        self.figures.append((name, alt, source.path, source.place(offset)[0]))
        first = paragraphs[0]
        sentence, caption = tokens[first + 1], tokens[first + 3 :]
        out = [_html(f'<figure id="figure-{name}" data-figure="{name}">\n<p class="figure-sentence">')]
        out += [sentence, _html(f"</p>\n<!--slot:figure {name}-->\n")]
        if caption:
            out += [_html("<figcaption>\n"), *caption, _html("</figcaption>\n")]
        return [*out, _html("</figure>\n")]

    def _assumptions(self, source: Source, offset: int, tokens: list[Token]) -> list[Token]:
        """The table of assumptions: a list says of each what is assumed and why, the ledger adds the sizes."""
        if self.reasons is not None:
            hint = "show them once and link to them"
            self.errors.append(source.wrong("the assumptions stand twice", offset, hint))
        self.reasons = {}
        ends = [k for k, token in enumerate(tokens) if token.type == "bullet_list_close"]
        if not ends or tokens[0].type != "bullet_list_open" or ends[0] != len(tokens) - 1:
            hint = "a line for each: - lm_head: What is assumed, and why."
            self.errors.append(source.wrong("the assumptions are one list and nothing else", offset, hint))
            return tokens
        for item in _items(tokens):
            first = item[1] if len(item) > 1 else None
            children = (first.children or []) if first is not None and first.type == "inline" else []
            at = source.starts[first.map[0]] if first is not None and first.map else offset
            named = re.match(r"(\w+): *", children[0].content) if children and children[0].type == "text" else None
            if not named or len(item) != 3:
                hint = "such as - lm_head: What is assumed, and why."
                self.errors.append(source.wrong("an assumption is a name and one paragraph", at, hint))
            elif named[1] not in NAMES:
                message = f"there is no assumption '{named[1]}'"
                self.errors.append(source.wrong(message, at, did_you_mean(named[1], NAMES)))
            elif named[1] in self.reasons:
                self.errors.append(source.wrong(f"'{named[1]}' stands twice", at, "keep one of the two"))
            else:
                children[0].content = children[0].content[named.end() :]
                self.reasons[named[1]] = children
        for name in NAMES:
            if name not in self.reasons:
                hint = f"add a line: - {name}: What is assumed, and why."
                self.errors.append(source.wrong(f"the table says nothing of '{name}'", offset, hint))
        return [_html("<!--slot:assumptions-->\n")]

    def _question(self, source: Source, offset: int, tokens: list[Token]) -> list[Token]:
        self.questions += 1
        name = f"question-{self.questions}"
        start = next((k for k, t in enumerate(tokens) if t.type == "bullet_list_open"), None)
        end = next((k for k in range(len(tokens) - 1, -1, -1) if tokens[k].type == "bullet_list_close"), None)
        if start is None or end is None:
            hint = "list them: - [x] the right one, - [ ] a wrong one, each with its reason indented below"
            self.errors.append(source.wrong("the question has no answers", offset, hint))
            return tokens
        if start == 0:
            self.errors.append(source.wrong("the question isn't asked", offset, "write it above its answers"))
        answers, right = self._answers(source, offset, tokens[start + 1 : end])
        if right != 1:
            hint = "mark one with [x], the others with [ ]"
            self.errors.append(
                source.wrong(f"the question has {right or 'no'} right answer{'s' if right > 1 else ''}", offset, hint)
            )
        opened = f'<div class="question" id="{name}" role="group" aria-label="Question {self.questions}">\n'
        head = [_html(opened), *tokens[:start], _html('<ul class="answers">\n')]
        return [*head, *answers, _html("</ul>\n"), *tokens[end + 1 :], _html("</div>\n")]

    def _answers(self, source: Source, offset: int, tokens: list[Token]) -> tuple[list[Token], int]:
        out: list[Token] = []
        right = 0
        for item in _items(tokens):
            first = item[1] if len(item) > 1 else None
            children = (first.children or []) if first is not None and first.type == "inline" else []
            text = children[0].content if children and children[0].type == "text" else ""
            at = source.starts[first.map[0]] if first is not None and first.map else offset
            if not re.match(r"\[[xX ]\] \S?", text):
                hint = "write - [x] or - [ ] before its text"
                self.errors.append(source.wrong("this answer isn't marked right or wrong", at, hint))
                continue
            if len(item) < 4 or item[3].type != "paragraph_open":
                hint = "write it below, indented, behind an empty line"
                self.errors.append(source.wrong("this answer has no reason", at, hint))
                continue
            correct = text[1] in "xX"
            right += correct
            children[0].content = text[4:]
            word = "Right." if correct else "No."
            reason = item[4]
            reason.children = [_html_inline(f"<strong>{word}</strong> "), *(reason.children or [])]
            for token in item:
                token.hidden = False
            kind = "right" if correct else "wrong"
            self.choices.append(item[1])
            out += [_html(f'<li><details class="answer" data-answer="{kind}"><summary>'), item[1]]
            out += [_html('</summary>\n<div class="reason">\n'), *item[3:], _html("</div></details></li>\n")]
        return out, right


def _renumber_footnotes(tokens: Sequence[Token], before: int) -> None:
    """Let the footnotes of a file go on counting where those of the files before it end."""
    for token in tokens:
        if token.type.startswith("footnote_") and "id" in token.meta:
            token.meta["id"] += before
        _renumber_footnotes(token.children or (), before)


def _outside_spans(children: Sequence[Token]) -> str:
    """The text of a heading without its bound numbers, so that its address outlives them."""
    depth, kept = 0, []
    for token in children:
        depth += {"bound_open": 1, "bound_close": -1}.get(token.type, 0)
        if depth == 0:
            kept.append(token)
    return plain_text(kept)


def _paragraphs(tokens: Sequence[Token]) -> Iterator[int]:
    """Where paragraphs of the outermost level begin."""
    level = tokens[0].level if tokens else 0
    for position, token in enumerate(tokens):
        if token.type == "paragraph_open" and token.level == level:
            yield position


def _items(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """The contents of the items of a list."""
    depth = 0
    item: list[Token] = []
    for token in tokens:
        if token.type == "list_item_close":
            depth -= 1
            if depth == 0:
                yield item
        if depth:
            item.append(token)
        if token.type == "list_item_open":
            depth += 1
            item = [] if depth == 1 else item


def _html(text: str) -> Token:
    token = Token("raw_html", "", 0)
    token.content = text
    token.block = True
    return token


def _html_inline(text: str) -> Token:
    token = Token("raw_html", "", 0)
    token.content = text
    return token
