"""The core in stock Firefox: controls, table, no script, a file. Skipped, with the reason, where there is none."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builder.ledger import Point
from tests.browser.bench import PATIENCE, READ, Truth
from tests.browser.bidi import Firefox, firefox

NAMES = ("firefox-esr", "firefox")
RIGHT, END, TAB = "\ue014", "\ue010", "\ue004"


@contextmanager
def _started(folder: Path, **preferences: Any) -> Iterator[Firefox]:
    """A stock Firefox, driven by its own WebDriver BiDi."""
    binary = next(filter(None, map(shutil.which, NAMES)), None)
    if not binary:
        pytest.skip("no Firefox is installed: `apt-get install firefox-esr` or any other, and this runs")
    with ExitStack() as stack:
        try:
            browser = stack.enter_context(firefox(binary, folder / "profile", **preferences))
        except (OSError, RuntimeError) as error:
            pytest.skip(f"{binary} can't be driven by WebDriver BiDi: {error}")
        yield browser


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    with _started(tmp_path_factory.mktemp("firefox")) as browser:
        yield browser


@pytest.fixture
def fox(own: Firefox) -> Iterator[Firefox]:
    """The browser at 1440 by 900; nothing may be logged."""
    own.heard.clear()
    own.size(1440, 900)
    yield own
    assert own.heard == []


def _expect(fox: Firefox, truth: Truth, point: Point) -> None:
    """Everything written on the page is what Python says at this point."""
    until = time.monotonic() + 2 * PATIENCE
    while wrong := truth.differences(point, fox.evaluate(READ)):
        assert time.monotonic() < until, wrong
        time.sleep(0.05)


def _focus(fox: Firefox, selector: str) -> None:
    fox.evaluate(f"() => document.querySelector('{selector}').focus()")


def test_sliders_move_by_key_and_options_by_mouse(fox: Firefox, site: Any, truth: Truth) -> None:
    """Table, readouts, verdict, address and the live drawing follow."""
    fox.open(site.url)
    _expect(fox, truth, truth.defaults)
    _focus(fox, "#tokens")
    fox.keys(RIGHT, RIGHT)
    point = truth.point(tokens=truth.grid.axes["tokens"][2])
    _expect(fox, truth, point)
    fox.click("[data-control=gpu] [value=b200]")
    point = replace(point, gpu="b200")
    _expect(fox, truth, point)
    _focus(fox, "#context")
    fox.keys(END)
    point = replace(point, context=truth.grid.axes["context"][-1])
    _expect(fox, truth, point)
    time.sleep(0.4)
    assert fox.evaluate("() => location.hash") == truth.fragment(point)
    until = time.monotonic() + 2 * PATIENCE
    while not fox.evaluate("() => !!document.querySelector('.picture [aria-roledescription]')"):
        assert time.monotonic() < until, "Vega has not drawn"
        time.sleep(0.1)


def test_addresses_and_the_history_set_the_bench(fox: Firefox, site: Any, truth: Truth) -> None:
    """Opened at a point, and back at it."""
    points = truth.sample(6, seed=11)
    for point in points:
        fox.open(f"{site.url}404.html")
        fox.open(site.url + truth.fragment(point))
        _expect(fox, truth, point)
    fox.evaluate("() => document.querySelector('[data-reset]').click()")
    _expect(fox, truth, truth.defaults)
    fox.evaluate("() => history.back()")
    _expect(fox, truth, points[-1])


def test_a_narrow_window_has_its_strip(fox: Firefox, site: Any, truth: Truth) -> None:
    """No overflow at 390 and 320; the controls open."""
    fox.open(f"{site.url}#tokens=64")
    for width in (390, 320):
        fox.size(width, 800)
        assert fox.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0
    fox.click("[data-toggle]")
    assert fox.evaluate("() => document.querySelector('#tokens').getClientRects().length") == 1
    _expect(fox, truth, truth.point(tokens=64))


def test_the_file_works(fox: Firefox, site: Any, truth: Truth) -> None:
    """From disk: another shard loads, Vega draws."""
    fox.open(site.file_url)
    _expect(fox, truth, truth.defaults)
    fox.click("[data-control=gpu] [value=h200]")
    _expect(fox, truth, truth.point(gpu="h200"))


def test_without_script_everything_is_said(tmp_path: Path, site: Any, truth: Truth) -> None:
    """Script is off: numbers, table and drawings stand in the page. What the test asks runs apart from it."""
    with _started(tmp_path, **{"javascript.enabled": False}) as fox:
        fox.size(1440, 900)
        fox.open(site.url)
        aside = "aside"
        assert not fox.evaluate("() => 'lesson' in window.wrappedJSObject", aside)
        assert truth.differences(truth.defaults, fox.evaluate(READ, aside)) == {}
        assert fox.evaluate("() => document.querySelectorAll('svg[role=img]').length", aside) >= 8
        fox.click(".answer summary", aside)
        assert fox.evaluate("() => document.querySelector('.answer').open", aside)
