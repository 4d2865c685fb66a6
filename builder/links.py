"""Links and anchors inside the built site: each leads somewhere, under any prefix."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from builder.errors import LessonError, did_you_mean
from builder.site import Site

_ADDRESS_ATTRIBUTES = ("href", "src", "data-spec", "data-runtime")


@dataclass
class _Page(HTMLParser):
    """What a page refers to and what may be referred to in it."""

    ids: set[str] = field(default_factory=set)
    addresses: list[str] = field(default_factory=list)
    levels: list[int] = field(default_factory=list)
    without_alt: int = 0

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take down ids, addresses, heading levels and images without a text."""
        given = dict(attrs)
        if given.get("id"):
            self.ids.add(str(given["id"]))
        if tag != "base":
            self.addresses += [str(given[name]) for name in _ADDRESS_ATTRIBUTES if given.get(name)]
        if re.fullmatch(r"h[1-6]", tag):
            self.levels.append(int(tag[1]))
        if tag == "img" and "alt" not in given:
            self.without_alt += 1


def _pages(site: Site) -> dict[str, _Page]:
    found = {}
    for name, data in sorted(site.files.items()):
        if name.endswith(".html"):
            page = _Page()
            page.feed(data.decode())
            found[name] = page
    return found


def broken_links(root: Path, site: Site) -> list[LessonError]:
    """Links and anchors inside the site that lead nowhere, skipped heading levels, images without a text."""
    pages, errors = _pages(site), []
    for name, page in pages.items():
        for address in dict.fromkeys(page.addresses):
            problem = _problem(name, address, pages, site)
            if problem:
                message, hint = problem
                errors.append(_where(root, address, message, hint))
        for above, level in zip(page.levels, page.levels[1:], strict=False):
            if level > above + 1:
                errors.append(LessonError(f"{name}: a heading of level {level} follows one of level {above}"))
        if page.without_alt:
            errors.append(LessonError(f"{name}: {page.without_alt} images have no alternative text"))
    return errors


def _problem(name: str, address: str, pages: Mapping[str, _Page], site: Site) -> tuple[str, str | None] | None:
    """(what is wrong with an address in a page, hint); None where it leads somewhere, or out of the site."""
    try:
        parts = urlsplit(address)
    except ValueError:  # such as a bracket that is never closed
        return f"'{address}' is no address", None
    if parts.scheme or parts.netloc:
        return None
    if address.startswith("/"):
        return f"'{address}' starts at the root of the server, where the lesson may not stand", "write it relative"
    fragment = unquote(parts.fragment)
    if "=" in fragment and not parts.path:
        return None  # a point of the bench
    target = name if not parts.path else str(PurePosixPath(name).parent / unquote(parts.path))
    if target not in site.files:
        return f"there is no file '{parts.path}' in the site", did_you_mean(target, site.files)
    if fragment and target in pages and fragment not in pages[target].ids:
        known = {each for each in pages[target].ids if not each.startswith(("figure-", "proof-", "roofline"))}
        return f"there is no place '#{fragment}' in the lesson", did_you_mean(fragment, sorted(known))
    return None


def _where(root: Path, address: str, message: str, hint: str | None) -> LessonError:
    """The error at the place in the prose where the address stands; in a template where it isn't in the prose."""
    for pattern in ("content/lesson.md", "content/sections/*.md", "theme/templates/*.html"):
        for path in sorted(root.glob(pattern)):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                # Markdown may have escaped some characters of what the author wrote
                written = (f"({address}", f'"{address}"', f"({unquote(address)}")
                column = next((at for at in map(line.find, written) if at >= 0), -1)
                if column >= 0:
                    shown = path.relative_to(root).as_posix()
                    return LessonError(message, path=shown, line=number, column=column + 2, hint=hint)
    return LessonError(message, path="content/lesson.md", hint=hint)
