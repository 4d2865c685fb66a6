"""The built pages as markup: how elements are nested, what they are called, and where in our files it was written.

Nothing is mended while reading, as browsers do. CONTRIBUTING names the Nu checker, which knows more and is run by hand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

from builder.blocks import slug
from builder.errors import LessonError
from builder.markdown import HEADING_ID
from builder.site import Site

PROSE = ("content/lesson.md", "content/sections/*.md")
TEMPLATES = ("theme/templates/*.html",)
BOTH = (*PROSE, *TEMPLATES)

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
# What ends an open <p> without a word, so that what follows stands outside of it.
BLOCKS = {*("address", "article", "aside", "blockquote", "details", "div", "dl", "fieldset", "figcaption", "figure")}
BLOCKS |= {*("footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "main", "nav", "ol", "p", "pre")}
BLOCKS |= {"search", "section", "table", "ul"}
PHRASES = ("span", "a", "button", "label")
INTERACTIVE = {"a", "button", "details", "input", "label", "select", "summary", "textarea"}
LABELS = ("for", "aria-labelledby", "aria-controls", "aria-describedby", "popovertarget", "headers")
ADDRESSES = ("href", "src", "data-spec", "data-runtime")
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
class Heading:
    """A heading of a page: its level, its id where it has one, its text."""

    level: int
    id: str
    text: str = ""


@dataclass
class Page(HTMLParser):
    """What a page holds, in order, and what is wrong with how it is nested: (the element as written, what is wrong)."""

    ids: list[str] = field(default_factory=list)
    named: list[tuple[str, str]] = field(default_factory=list)  # (id, attribute) of what an element refers to
    addresses: list[str] = field(default_factory=list)
    headings: list[Heading] = field(default_factory=list)
    without_alt: list[str] = field(default_factory=list)  # addresses of images
    wrong: list[tuple[str, str]] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    @classmethod
    def of(cls, text: str) -> Page:
        """A whole page, read."""
        page = cls()
        page.feed(text)
        page.close()
        for tag in reversed(page.open):
            page.wrong.append((f"<{tag}", f"<{tag}> is never closed"))
        return page

    def _say(self, text: str, tag: str) -> None:
        self.wrong.append(
            (self.get_starttag_text() or f"<{tag}", f"{text} (in {'>'.join(self.open[-4:]) or 'nothing'})")
        )

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element that closes itself."""
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take down what an element is called and refers to, and whether it may stand here."""
        given = dict(attrs)
        self.seen[tag] += 1
        if len(given) < len(attrs):
            self._say(f"<{tag}> has an attribute twice", tag)
        if "svg" not in self.open and "math" not in self.open:
            self._nested(tag)
            if re.fullmatch("h[1-6]", tag):
                self.headings.append(Heading(int(tag[1]), given.get("id") or ""))
            if tag == "img" and not (given.get("alt") or "").strip() and given.get("role") != "presentation":
                self.without_alt.append(given.get("src") or "")
        if "style" in given or any(name.startswith("on") for name in given):
            self._say(f"<{tag}> has what the page's policy forbids", tag)
        if "id" in given:
            self.ids.append(given["id"] or "")
        self.named += [(name, label) for label in LABELS for name in (given.get(label) or "").split()]
        if tag != "base":
            self.addresses += [str(given[name]) for name in ADDRESSES if given.get(name)]
        if tag not in VOID:
            self.open.append(tag)

    def _nested(self, tag: str) -> None:
        parent = self.open[-1] if self.open else ""
        if tag in BLOCKS and "p" in self.open:
            self._say(f"<{tag}> in <p>", tag)
        if tag in BLOCKS and any(name in self.open for name in PHRASES):
            self._say(f"<{tag}> in a phrase", tag)
        if parent in CHILDREN and tag not in CHILDREN[parent]:
            self._say(f"<{tag}> in <{parent}>", tag)
        around = INTERACTIVE & set(self.open) - {"details"}
        if tag in INTERACTIVE and around and not (around == {"label"} and tag == "input"):
            self._say(f"<{tag}> in something that is pressed itself", tag)

    def handle_endtag(self, tag: str) -> None:
        """Close what is open; what isn't can't be closed."""
        if not self.open or self.open[-1] != tag:
            self.wrong.append((f"</{tag}", f"</{tag}> does not end what is open (in {'>'.join(self.open[-4:])})"))
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        """The text of a heading."""
        if self.headings and f"h{self.headings[-1].level}" in self.open:
            self.headings[-1].text += data


def pages(site: Site) -> dict[str, Page]:
    """The pages of a site by name, read."""
    return {name: Page.of(data.decode()) for name, data in sorted(site.files.items()) if name.endswith(".html")}


def malformed(root: Path, read: Mapping[str, Page], told: Sequence[LessonError] = ()) -> list[LessonError]:
    """Elements where they may not be, ids that clash, references to none, skipped headings, images without a text.

    told: what the text has wrong. What may follow from that is left out: no template is to blame for it.
    """
    errors = []
    for name, page in read.items():
        here = f"theme/templates/{name}"
        if not told:
            errors += _broken(root, name, page, here)
        errors += _clashing(root, name, page, here, told)
        errors += _skipped(root, name, page.headings)
        for source in page.without_alt:
            images = [f"![]({source}", f"![]({unquote(source)}", f'"{source}"']
            hint = "say what it shows: ![A slope and a roof](…)"
            errors.append(at(root, BOTH, images, "an image has no alternative text", here, hint))
    return errors


def _broken(root: Path, name: str, page: Page, here: str) -> list[LessonError]:
    errors = []
    for written, problem in page.wrong:
        errors.append(at(root, TEMPLATES, [written], f"{name} is no valid HTML: {problem}", here))
    for missing, label in sorted(set(page.named)):
        if missing not in page.ids:
            problem = f"{name} refers to an element '{missing}' that isn't there"
            errors.append(at(root, TEMPLATES, [f'{label}="{missing}'], problem, here))
    return errors


def _clashing(root: Path, name: str, page: Page, here: str, told: Sequence[LessonError]) -> list[LessonError]:
    errors = []
    for written, count in Counter(page.ids).items():
        if any(f"'#{written}'" in error.message for error in told):
            continue
        places = (_place_of(root, heading) for heading in page.headings if heading.id == written)
        if count > 1 and (place := next(filter(None, places), None)):
            message = f"another element of the page has the id '{written}'"
            hint = "give it a name of its own: ## Title {#name}"
            errors.append(LessonError(message, path=place[0], line=place[1], column=place[2], hint=hint))
        elif count > 1 or not written or re.search(r"\s", written):
            problem = f"{count} elements of {name} have the id '{written}'" if count > 1 else f"'{written}' is no id"
            errors.append(at(root, BOTH, [f"{{#{written}}}", f'id="{written}"'], problem, here))
    return errors


def _skipped(root: Path, name: str, headings: list[Heading]) -> list[LessonError]:
    errors = []
    for above, below in pairwise(headings):
        if below.level > above.level + 1:
            message = f"a heading of level {below.level} follows one of level {above.level}"
            path, line, column = _place_of(root, below) or (f"theme/templates/{name}", None, None)
            hint = f"begin it with {'#' * (above.level + 1)}"
            errors.append(LessonError(message, path=path, line=line, column=column, hint=hint))
    return errors


def _place_of(root: Path, heading: Heading) -> tuple[str, int, int] | None:
    """Path, line and column of a heading of the prose; None where it isn't of the prose."""
    for path, number, line in _lines(root, PROSE):
        found = re.match(rf"[\s>*+-]*(#{{{heading.level}}})\s+(.*)", line)
        if found:
            named = HEADING_ID.search(found[2])
            if heading.id == (named[1] if named else slug(found[2])) or slug(found[2]) == slug(heading.text):
                return path, number, found.start(1) + 1
    return None


def _lines(root: Path, patterns: Iterable[str]) -> Iterable[tuple[str, int, str]]:
    """(path as the author would name it, number, text) of each line of some files."""
    for pattern in patterns:
        for path in sorted(root.glob(pattern)):
            for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
                yield path.relative_to(root).as_posix(), number, line


def at(
    root: Path, patterns: Iterable[str], written: Iterable[str], message: str, otherwise: str, hint: str | None = None
) -> LessonError:
    """The error at the first place of some files where one of the texts stands; in the file `otherwise` if in none."""
    texts = [text for text in written if text]
    for path, number, line in _lines(root, patterns):
        column = next((found for found in map(line.find, texts) if found >= 0), -1)
        if column >= 0:
            return LessonError(message, path=path, line=number, column=column + 1, hint=hint)
    return LessonError(message, path=otherwise, hint=hint)
