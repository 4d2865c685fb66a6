"""Wherever the lesson lies, the whole of it works: on a server's root, under a path, in a folder on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.bench import Bench, Truth


@pytest.mark.parametrize("place", ["url", "prefixed_url", "file_url"])
def test_a_tour(open_bench: Callable[..., Bench], truth: Truth, site: Any, place: str) -> None:
    """A point from the address, a drag, a key, another shard, a link, Back, a heading, a reload: all there, without
    a word on the console."""
    address = getattr(site, place)
    bench = open_bench("#tokens=64", at=address)
    bench.expect_at(truth.point(tokens=64))
    bench.expect_drawn(truth.point(tokens=64))
    bench.range("tokens").press("Home")
    bench.expect_at(truth.defaults)
    bench.choose("gpu", "b200")
    bench.choose("weights", "fp8")
    bench.choose("attention", "mqa")
    point = truth.point(gpu="b200", weights="fp8", attention="mqa")
    bench.expect_at(point)
    bench.expect_drawn(point)
    bench.expect_address(point)
    link, linked = bench.link_moving("tokens")
    link.click()
    bench.expect_at(linked)
    bench.page.go_back()
    bench.expect_at(point)
    bench.page.locator("main h2 a").nth(3).click()
    expect(bench.page.locator("main h2").nth(3)).to_be_in_viewport()
    bench.expect_at(point)
    bench.page.reload()
    bench.expect_at(point)
    bench.expect_drawn(point)


@pytest.mark.parametrize("place", ["url", "prefixed_url", "file_url"])
def test_points_all_over_the_grid(open_bench: Callable[..., Bench], truth: Truth, site: Any, place: str) -> None:
    """Each in another shard, which comes as a script from wherever the page came."""
    points = truth.sample(8, seed=7)
    bench = open_bench(truth.fragment(points[0]), at=getattr(site, place))
    for point in points:
        bench.page.evaluate("(fragment) => { location.hash = fragment; }", truth.fragment(point))
        bench.expect_at(point)
        bench.expect_drawn(point)


@pytest.mark.parametrize("place", ["url", "prefixed_url"])
def test_the_page_of_what_is_not_there_leads_back(open_bench: Callable[..., Bench], site: Any, place: str) -> None:
    """404.html has its style and a way to the lesson."""
    bench = open_bench("404.html", at=getattr(site, place))
    expect(bench.page.get_by_role("heading")).to_contain_text("no such page")
    bench.page.get_by_role("main").get_by_role("link").click()
    expect(bench.root).to_be_visible()
