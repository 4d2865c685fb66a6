"""The built pages as markup, checked without a browser or a parser that mends. CONTRIBUTING names the Nu checker."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser

import pytest

from builder.build import build
from tests.toys import ROOT

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
# What ends an open <p> without a word, so that what follows stands outside of it.
BLOCKS = {*("address", "article", "aside", "blockquote", "details", "div", "dl", "fieldset", "figcaption", "figure")}
BLOCKS |= {*("footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "main", "nav", "ol", "p", "pre")}
BLOCKS |= {"search", "section", "table", "ul"}
INTERACTIVE = {"a", "button", "details", "input", "label", "select", "summary", "textarea"}
LABELS = ("for", "aria-labelledby", "aria-controls", "aria-describedby", "popovertarget", "headers")
# Where only these may stand.
CHILDREN = {
    "ul": {"li", "script", "template"},
    "ol": {"li", "script", "template"},
    "dl": {"div", "dt", "dd"},
    "tr": {"td", "th"},
    "thead": {"tr"},
    "tbody": {"tr"},
    "tfoot": {"tr"},
    "table": {"caption", "colgroup", "thead", "tbody", "tfoot"},
}


@dataclass
class Page(HTMLParser):
    """Elements of a page in order, and what is wrong with how they are nested."""

    ids: list[str] = field(default_factory=list)
    named: list[str] = field(default_factory=list)
    headings: list[int] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def _say(self, text: str) -> None:
        self.wrong.append(f"line {self.getpos()[0]}: {text} in {'>'.join(self.open[-4:])}")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        drawn = "svg" in self.open or "math" in self.open
        parent = self.open[-1] if self.open else ""
        given = dict(attrs)
        self.seen[tag] += 1
        if len(given) < len(attrs):
            self._say(f"<{tag}> has an attribute twice")
        if not drawn:
            if tag in BLOCKS and "p" in self.open:
                self._say(f"<{tag}> in <p>")
            if tag in BLOCKS and any(name in self.open for name in ("span", "a", "button", "label")):
                self._say(f"<{tag}> in a phrase")
            if parent in CHILDREN and tag not in CHILDREN[parent]:
                self._say(f"<{tag}> in <{parent}>")
            around = INTERACTIVE & set(self.open) - {"details"}
            if tag in INTERACTIVE and around and not (around == {"label"} and tag == "input"):
                self._say(f"<{tag}> in something that is pressed itself")
            if re.fullmatch("h[1-6]", tag):
                self.headings.append(int(tag[1]))
            if tag == "img" and "alt" not in given:
                self._say("<img> without alt")
        if "style" in given or any(name.startswith("on") for name in given):
            self._say(f"<{tag}> has what the page's policy forbids")
        if "id" in given:
            self.ids.append(given["id"] or "")
        for name in LABELS:
            self.named += (given.get(name) or "").split()
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1] != tag:
            self._say(f"</{tag}> does not end what is open")
        if tag in self.open:
            while self.open.pop() != tag:
                pass


@pytest.fixture(scope="module", params=["index.html", "404.html"])
def text(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page of the built lesson."""
    folder = tmp_path_factory.getbasetemp() / "html"
    if not folder.exists():
        build(ROOT, folder)
    return (folder / request.param).read_text(encoding="utf-8")


@pytest.fixture
def page(text: str) -> Page:
    page = Page()
    page.feed(text)
    page.close()
    return page


def test_every_element_is_where_it_may_be_and_is_closed(page: Page) -> None:
    """No paragraph in a paragraph, no button in a link, no list of anything but items; all that opens, closes."""
    assert page.wrong == []
    assert page.open == []


def test_ids_are_unique_and_what_is_named_is_there(page: Page) -> None:
    """Labels, controlled elements and popovers point at elements of the page."""
    assert [name for name, count in Counter(page.ids).items() if count > 1] == []
    assert not [name for name in page.ids if not name or re.search(r"\s", name)]
    assert set(page.named) - set(page.ids) == set()


def test_headings_go_down_a_step_at_a_time(page: Page) -> None:
    """One h1, first; no level is left out on the way down."""
    assert page.headings.count(1) == 1
    assert page.headings[0] == 1
    assert all(after <= before + 1 for before, after in zip(page.headings, page.headings[1:], strict=False))


def test_the_head_says_what_a_page_must(text: str, page: Page) -> None:
    """Doctype, language, encoding within the first kilobyte, one title, one main."""
    assert text.startswith('<!doctype html>\n<html lang="en">')
    assert '<meta charset="utf-8">' in text[:1024]
    assert (page.seen["title"], page.seen["main"], page.seen["body"]) == (1, 1, 1)


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ("<p>one<div>two</div></p>", "<div> in <p>"),
        ("<ul><p>x</p></ul>", "<p> in <ul>"),
        ("<a><button>x</button></a>", "pressed itself"),
        ("<section><b></section>", "does not end what is open"),
        ('<p id="a" id="b"></p>', "twice"),
        ('<p style="color:red"></p>', "policy"),
    ],
)
def test_the_check_sees_what_is_broken(broken: str, why: str) -> None:
    """A test of the test."""
    page = Page()
    page.feed(broken)
    assert why in " ".join(page.wrong)
