"""Links and anchors inside the built site: each leads somewhere, under any prefix."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from builder.errors import LessonError, did_you_mean
from builder.markup import BOTH, Page, at
from builder.site import Site


def broken_links(root: Path, site: Site, read: Mapping[str, Page]) -> list[LessonError]:
    """Links and anchors inside the site that lead nowhere, each at its place in the prose or in a template.

    read: the pages of the site by name.
    """
    errors = []
    for name, page in read.items():
        for address in dict.fromkeys(page.addresses):
            problem = _problem(name, address, read, site)
            if problem:
                # Markdown may have escaped some characters of what the author wrote
                written = [f"{mark}{text}" for text in (address, unquote(address)) for mark in ("(", '"')]
                error = at(root, BOTH, written, problem[0], "content/lesson.md", problem[1])
                error.column = error.column + 1 if error.column else None
                errors.append(error)
    return errors


def _problem(name: str, address: str, pages: Mapping[str, Page], site: Site) -> tuple[str, str | None] | None:
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
