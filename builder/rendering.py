"""Tokens → HTML: bound numbers, claims with their proofs, formulas, tables, links.

A bound number is a link that sets the bench and says which readout or cell of the ledger shows it:

    <a class="bound" href="#phase=decode&…" data-fact="throughput @ tokens=64" data-readout="throughput">1,840 …</a>

data-readout, data-kernel (space-separated names) with data-column, or data-control name what to point at. A claim is
such a link, followed by a button that opens what was proved: a native popover, so it needs no script.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from builder import maths
from builder.bindings import Checked
from builder.blocks import Blocks
from builder.grid import AXES, in_words
from builder.ledger import Point
from builder.markdown import Span
from builder.values import Subject


class Renderer:
    """Renders tokens with our own rules on top of markdown-it's."""

    def __init__(
        self, md: MarkdownIt, checked: Mapping[int, Checked], blocks: Blocks, texts: Mapping[str, str]
    ) -> None:
        """texts: value of an axis → how it is shown, where that isn't its name."""
        self.md, self.checked, self.blocks_of, self.texts = md, checked, blocks, texts
        self.proofs = 0
        rules: dict[str, Any] = {
            "raw_html": self._raw,
            "bound_open": self._bound_open,
            "bound_close": self._bound_close,
            "math_inline": self._maths,
            "math_block": self._maths,
            "fence": self._listing,
            "code_block": self._listing,
            "th_open": self._cell,
            "td_open": self._cell,
            "link_open": self._link_open,
            "table_open": lambda *_: '<div class="table"><table>\n',
            "table_close": lambda *_: "</table></div>\n",
        }
        assert isinstance(md.renderer, RendererHTML)
        self.html = md.renderer
        self.html.rules.update(rules)

    def inline(self, tokens: Sequence[Token]) -> str:
        """HTML of inline tokens."""
        return self.html.renderInline(tokens, self.md.options, {}).strip()

    def blocks(self, tokens: Sequence[Token]) -> str:
        """HTML of block tokens."""
        return self.html.render(tokens, self.md.options, {})

    def footnotes(self, tokens: Sequence[Token]) -> str:
        """HTML of all footnotes, one list; empty where there are none."""
        return f'<section class="footnotes">\n<ol>\n{self.blocks(tokens)}</ol>\n</section>\n' if tokens else ""

    def _raw(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        return tokens[index].content

    def _listing(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        """A listing that scrolls by itself where it is too wide: it can be reached by key, and has a name then."""
        code = escapeHtml(tokens[index].content)
        return f'<pre tabindex="0" role="group" aria-label="Listing"><code>{code}</code></pre>\n'

    def _cell(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        """A table's cell: alignment is a class, since the page's policy has no style attributes."""
        token = tokens[index]
        align = str(token.attrs.get("style", "")).removeprefix("text-align:")
        return f'<{token.tag} class="{align}">' if align else f"<{token.tag}>"

    def _link_open(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        token = tokens[index]
        href = str(token.attrs.get("href", ""))
        text = ""
        if index + 1 < len(tokens) and tokens[index + 1].type == "link_close":
            part = self.blocks_of.ids.get(href.removeprefix("#"))
            text = str(part.number) if part else href
        title = f' title="{escapeHtml(str(token.attrs["title"]))}"' if token.attrs.get("title") else ""
        return f'<a href="{escapeHtml(href)}"{title}>{escapeHtml(text)}'

    def _maths(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        token = tokens[index]
        if token.meta.get("broken"):
            return ""
        spans: dict[int, Span] = token.meta.get("macros", {})

        def bound(macro: maths.Macro) -> str:
            span = spans[macro.start]
            text = " ".join(span.inline.content[span.text_start : span.text_end].split())
            return self._open(span) + escapeHtml(text.replace(" ", "\u00a0")) + self._close(span)

        display = token.type == "math_block"
        text = maths.render(token.content, display=display, bound=bound)
        # one that scrolls by itself on a narrow screen can be reached by key
        box = '<div class="math" tabindex="0" role="group" aria-label="Formula">'
        return f"{box}{text}</div>\n" if display else text

    def _bound_open(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        return self._open(tokens[index].meta["span"])

    def _bound_close(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        return self._close(tokens[index].meta["span"])

    def is_pressed(self, span: Span) -> bool:
        """Whether a span becomes something to press: a link to the bench, or a claim with its proof."""
        bound = self.checked[id(span.open_token)].bound
        return bound.kind == "claim" or (bound.kind == "value" and bound.point is not None)

    def _open(self, span: Span) -> str:
        checked = self.checked[id(span.open_token)]
        bound, result = checked.bound, checked.result
        if result is None or bound.kind == "exempt" or (bound.kind == "value" and bound.point is None):
            return ""
        kind = "claim" if bound.kind == "claim" else "bound"
        if bound.point is None:
            return f'<span class="{kind}">'
        attributes = {"class": kind, "href": bound.fragment or "", "data-fact": bound.fact, **_pointing(result.subject)}
        if bound.off_grid:
            exactly = f"Exactly: {bound.shown}. " if bound.kind == "value" else ""
            attributes["title"] = f"{exactly}On the bench, {bound.off_grid}."
            attributes["data-off-grid"] = bound.off_grid
        written = " ".join(f'{name}="{escapeHtml(value)}"' for name, value in attributes.items())
        return f"<a {written}>"

    def _close(self, span: Span) -> str:
        checked = self.checked[id(span.open_token)]
        bound, result = checked.bound, checked.result
        if result is None or bound.kind == "exempt" or (bound.kind == "value" and bound.point is None):
            return ""
        closing = "</span>" if bound.point is None else "</a>"
        if bound.kind != "claim" or span.inline.kind in ("heading", "front matter", "formula"):
            return closing
        return closing + self._proof(checked)

    def _proof(self, checked: Checked) -> str:
        """A mark that opens what was proved: fact, values, point or range. It needs no script, and Escape closes it."""
        result, bound = checked.result, checked.bound
        assert result is not None
        self.proofs += 1
        name = f"proof-{self.proofs}"
        lines = [f"<code>{escapeHtml(bound.fact)}</code>"]
        if result.proof and result.proof.values:
            lines.append(escapeHtml(result.proof.values))
        if result.proof and result.proof.range:
            lines.append(f"Proved over {escapeHtml(result.proof.range)}")
        elif result.exact:
            lines.append(f"At {escapeHtml(words_of(result.exact, self.texts))}")
        if bound.off_grid:
            lines.append(f"On the bench, {escapeHtml(bound.off_grid)}")
        label = escapeHtml(f"What was proved: {bound.text}")
        inner = "".join(f'<span class="proof-line">{line}</span> ' for line in lines)
        button = f'<button type="button" class="proof-mark" popovertarget="{name}" aria-label="{label}"></button>'
        return f'{button}<span class="proof" id="{name}" popover>{inner.rstrip()}</span>'


def words_of(point: Point, texts: Mapping[str, str]) -> str:
    """A point as a reader reads it: 'decode, 64 tokens, context 8,192, H100, BF16 weights, BF16 KV cache, GQA'."""
    many = "" if point.tokens == 1 else "s"
    where = f"{point.phase}, {point.tokens:,} token{many}, context {point.context:,}, {texts.get(point.gpu, point.gpu)}"
    return f"{where}, {', '.join(in_words(point))}"


def _pointing(subject: Subject) -> dict[str, str]:
    """The data attributes that say what the page points at."""
    if subject.readout:
        return {"data-readout": subject.readout}
    if subject.kernels:
        return {"data-kernel": " ".join(subject.kernels), "data-column": subject.column or ""}
    return {"data-control": subject.control} if subject.control in AXES else {}
