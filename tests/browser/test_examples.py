"""The axis and the control that CONTRIBUTING adds move the bench of a real page, and stand in its address."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from builder.serve import SiteServer
from tests.browser.conftest import OpenPage, Troubles
from tests.examples import apply, examples, house, run


@pytest.fixture
def address(tmp_path: Path, troubles: Troubles) -> Iterator[str]:
    """A small lesson to whose house both have been added, behind a server."""
    root = house(tmp_path)
    for name in ("axis", "control"):
        apply(examples()[name], root)
    run(root, "builder", "build", "-q", "--out", "built")
    with SiteServer(root / "built").running() as server:
        troubles.origins.append(server.url.rstrip("/"))
        yield server.url


def test_an_added_axis_and_an_added_control_move_the_bench(address: str, open_page: OpenPage) -> None:
    """A choice of the axis loads its shard; the button takes 48 of the 50 sequences that fit; both are kept."""
    page = open_page()
    page.goto(address)
    moved = page.locator('[data-kernel="elementwise"] [data-column="bytes_moved"]')
    apart = moved.inner_text()
    page.get_by_role("radio", name="fused").check()
    expect(moved).not_to_have_text(apart)
    page.locator("[data-more] summary").click()
    page.get_by_role("button", name="take the largest batch that fits").click()
    expect(page.locator("[data-readout=largest_batch]")).to_have_text("50")
    expect(page).to_have_url(re.compile(r"#.*&?tokens=48&.*norms=fused$"))
    shown = moved.inner_text()
    page.reload()
    expect(page.get_by_role("radio", name="fused")).to_be_checked()
    expect(page.get_by_role("slider", name="Tokens in pass")).to_have_attribute("aria-valuetext", "48 sequences")
    expect(moved).to_have_text(shown)
