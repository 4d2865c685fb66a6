"""Compiled Vega to the SVG of a page: a text that nobody measures looks the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from xml.etree import ElementTree

import pytest

from builder import svg
from builder.bench_chart import FRAMES, roofline
from builder.drawn import Size
from builder.figures import compiled, resized, specification
from builder.nsight import read_export
from tests import test_bench_chart as bench
from tests import test_charts as charts
from tests import test_compare_chart as comparison


@contextmanager
def measured() -> Iterator[None]:
    """Drawn as vl-convert draws it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(svg, "_unmeasured", dict)
        yield


def of_bench(size: Size) -> str:
    picture = roofline(bench.COLOURS, bench.GPUS, bench.default_kernels(), bench.TRAILS, "h100")
    vega = resized(compiled(specification(picture)), size, picture.frames)
    return svg.draw(vega, name="roofline", variant=size, label="Roofline", marks={})


def of_export(name: str) -> str:
    text = (comparison.SAMPLES / name).read_text("utf-8")
    return comparison.of_kernels(read_export(text, name).kernels)


DRAWN = {f"roofline, {size}": partial(of_bench, size) for size in FRAMES}
DRAWN |= {f"{name}, {size}": partial(charts.svg_of, charts.picture(name), size) for name, size in charts.EACH}
DRAWN |= {"measurements": partial(of_export, "nsight-compute.csv")}


@pytest.mark.parametrize("name", DRAWN)
def test_a_drawing_is_the_same_without_measuring(name: str) -> None:
    """Texts of marks, of axes and of their titles, to the byte."""
    quick = DRAWN[name]()
    with measured():
        assert DRAWN[name]() == quick
    assert all("aria-label" not in text.attrib for text in ElementTree.fromstring(quick).iter("text"))


def test_words_stay_what_they_are() -> None:
    """Whatever stands in them, and nothing is drawn for a text that isn't there."""
    words = ["<b> & \"x\" 'y'", " two  blanks ", "1,024", "", None]
    texts = {
        "type": "text",
        "from": {"data": "words"},
        "encode": {"update": {"text": {"field": "word"}, "y": {"field": "at"}}},
    }
    vega = {
        "width": 100,
        "height": 100,
        "data": [{"name": "words", "values": [{"word": word, "at": at} for at, word in enumerate(words)]}],
        "marks": [{"type": "group", "marks": [texts]}],
    }
    drawn = partial(svg.draw, vega, name="words", variant="wide", label="Words", marks={})
    found = [text.text for text in ElementTree.fromstring(drawn()).iter("text")]
    assert found[:3] == [word.strip() for word in words[:3] if word]
    with measured():
        assert found == [text.text for text in ElementTree.fromstring(drawn()).iter("text")]


def test_an_axis_says_what_it_would_say() -> None:
    """By its own format, without labels, or with what its labels are given."""
    numbers = {"scale": "x", "orient": "bottom"}
    vega = {
        "width": 100,
        "height": 100,
        "scales": [{"name": "x", "domain": [0, 2000], "range": "width"}],
        "axes": [
            {**numbers, "format": ",.1f", "title": "x"},
            {**numbers, "labels": False, "title": {"signal": "'y' + 1"}},
            {**numbers, "encode": {"labels": {"update": {"text": {"signal": "'n' + datum.value"}}}}},
        ],
    }
    drawn = partial(svg.draw, vega, name="axes", variant="wide", label="Axes", marks={})
    found = [text.text for text in ElementTree.fromstring(drawn()).iter("text") if text.text]
    assert {"0.0", "2,000.0", "x", "y1", "n0", "n2000"} <= set(found)
    assert "0" not in found
    with measured():
        assert found == [text.text for text in ElementTree.fromstring(drawn()).iter("text") if text.text]
