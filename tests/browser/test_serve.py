"""`lesson serve` as an author meets it: the open page follows the saves and stays where the author was."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from builder import serve as serving

PARTS = ("content", "theme")


@dataclass(frozen=True)
class Desk:
    """A checkout that is served, and the page that an author has open."""

    root: Path
    page: Page

    def edit(self, name: str, old: str, new: str) -> None:
        """Save a file of the checkout with a text replaced."""
        path = self.root / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.fixture
def desk(root: Path, browser: Browser, tmp_path: Path) -> Iterator[Desk]:
    """A copy of the lesson, served by the real server, in a browser."""
    for part in PARTS:
        shutil.copytree(root / part, tmp_path / part)
    if (root / ".cache").is_dir():
        shutil.copytree(root / ".cache", tmp_path / ".cache")
    stop, ready = threading.Event(), threading.Event()
    urls: list[str] = []

    def report(text: str) -> None:
        if found := re.search(r"Serving (http://\S+)", text):
            urls.append(found[1])
            ready.set()

    site = tmp_path / "site"
    thread = threading.Thread(target=serving.serve, args=(tmp_path, site, 8470, report), kwargs={"stop": stop})
    thread.start()
    try:
        assert ready.wait(60)
        context = browser.new_context(viewport={"width": 1440, "height": 900}, locale="en-US")
        page = context.new_page()
        page.goto(urls[0] + "#tokens=64")
        yield Desk(tmp_path, page)
        context.close()
    finally:
        stop.set()
        thread.join(timeout=20)


def test_a_save_changes_the_page_and_not_the_place(desk: Desk) -> None:
    """Prose reloads where it was read, with the bench as it stood; a style is swapped; a slip is shown and goes."""
    page = desk.page
    page.locator("#quantization").evaluate("(part) => part.scrollIntoView()")
    there = page.evaluate("scrollY")
    assert there > 2000
    page.evaluate("window.stays = true")

    desk.edit("theme/css/45-blocks.css", ".build-error {", "#quantization { outline: 3px solid; }\n\n.build-error {")
    expect(page.locator("#quantization")).to_have_css("outline-width", "3px")
    expect(page.locator("link[rel=stylesheet]")).to_have_count(1)
    assert page.evaluate("window.stays"), "a style needs no reload"

    desk.edit("content/lesson.md", "## Quantization is", "## [Quantization]{no.fact} is")
    overlay = page.locator("pre.build-error")
    expect(overlay).to_contain_text(
        re.compile(r"content/lesson\.md:\d+:\d+: .*\n +\d+ \| ## \[Quantization\].*\n +\| +\^")
    )
    assert page.evaluate("[window.stays, scrollY]") == [True, there]

    desk.edit("content/lesson.md", "## [Quantization]{no.fact} is", "## Rounding is")
    expect(page.get_by_role("heading", name="Rounding is")).to_be_visible()
    expect(overlay).to_have_count(0)
    assert page.evaluate("window.stays") is None
    assert abs(page.evaluate("scrollY") - there) < 5
    assert "tokens=64" in page.url
