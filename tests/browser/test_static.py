"""The page without its script: everything is said before any script runs."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from builder.display import LATENCY_MARK, LATENCY_TEXT
from builder.kernels import KERNEL_LABELS, KERNELS
from builder.report import table
from tests.browser.bench import Bench, Truth


def _without_the_client(page: Page) -> None:
    page.route(
        re.compile(r"/assets/lesson\.\w+\.js$"), lambda route: route.fulfill(body="", content_type="text/javascript")
    )


def test_everything_stands_at_the_default_point_before_the_script_runs(
    open_bench: Callable[..., Bench], truth: Truth
) -> None:
    """Controls, readouts, ledger, bars and verdict are in the HTML, as the ledger has them."""
    open_bench(before=_without_the_client).expect_at(truth.defaults)


@pytest.mark.parametrize(
    ("size", "width", "height"), [("wide", 1440, 900), ("short", 1280, 720), ("phone", 390, 844), ("strip", 390, 844)]
)
def test_the_drawings_stand_at_the_default_point_before_the_script_runs(
    open_bench: Callable[..., Bench], truth: Truth, size: str, width: int, height: int
) -> None:
    """Every size of the roofline has its dots where the numbers put them, and says in words what it shows."""
    bench = open_bench(before=_without_the_client, width=width, height=height)
    seen = bench.drawn(size)
    assert truth.drawn_differences(truth.defaults, seen, size) == []
    assert not seen["live"]
    assert seen["role"] == "img"
    assert truth.text(truth.defaults, "verdict") in " ".join(seen["name"].split())


def test_the_page_says_what_the_command_line_says(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """Each line of `lesson ledger` is a row of the table, cell by cell, and its sentences are the verdict."""
    point = truth.defaults
    lines = table(truth.grid.model, truth.grid.gpus[point.gpu], point).splitlines()
    seen = open_bench(before=_without_the_client).read()
    for kernel, label in {**{k: KERNEL_LABELS[k] for k in KERNELS}, "total": "Whole pass"}.items():
        line = next(line for line in lines if line.startswith(label + "  "))
        printed = [cell for cell in re.split(r"\s{2,}", line.strip())[1:] if not re.match(r"[█▏▎▍▌▋▊▉]", cell)]
        # a mark in the terminal is words to whoever hears the page
        printed = [cell.replace(LATENCY_MARK, LATENCY_TEXT) for cell in printed]
        assert printed == [cell for cell in seen["cells"][kernel].values() if cell]
    assert seen["readouts"]["verdict"].split() == lines[-1].split()


def test_ids_are_unique(open_bench: Callable[..., Bench]) -> None:
    """No heading, control or clip path takes another's name."""
    ids = open_bench().page.locator("[id]").evaluate_all("(all) => all.map((element) => element.id)")
    assert len(ids) > 20
    assert [name for name in ids if ids.count(name) > 1] == []


def test_the_lesson_reads_without_script(open_page: Callable[..., Page], site: object, truth: Truth) -> None:
    """With script off: prose, numbers and a drawn roofline; the controls, which would do nothing, are gone, and a
    note says why."""
    page = open_page(javascript=False)
    page.goto(site.url)  # type: ignore[attr-defined]
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert page.locator("main section").count() >= 6
    assert len(page.locator("main").inner_text()) > 5_000
    expect(page.get_by_role("img", name=re.compile("Roofline"))).to_be_visible()
    expect(page.locator("output[data-readout=throughput]")).to_have_text(truth.text(truth.defaults, "throughput"))
    expect(page.locator("tr[data-kernel=total] [data-column=time]")).to_have_text(
        truth.text(truth.defaults, "total.time")
    )
    expect(page.locator("[data-controls]")).to_be_hidden()
    expect(page.locator(".no-script")).to_be_visible()


def test_without_script_a_phone_has_no_button_that_does_nothing(open_page: Callable[..., Page], site: object) -> None:
    """The strip keeps its numbers, and loses the button that opens the controls."""
    page = open_page(javascript=False, width=390, height=844)
    page.goto(site.url)  # type: ignore[attr-defined]
    expect(page.locator("[data-toggle]")).to_be_hidden()
    expect(page.locator("[data-controls]")).to_be_hidden()
    expect(page.locator(".strip-point")).to_be_visible()
