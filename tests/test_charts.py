"""The figures in the text as pictures: what stands where, and nothing on top of anything else."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import altair
import pytest

from builder import charts, drawing, figures
from builder.colours import read_colours
from builder.drawn import Size
from builder.grid import load_grid
from builder.series import SERIES
from builder.svg import draw
from tests.conftest import ROOT

GRID = load_grid(ROOT)
COLOURS = read_colours((ROOT / "theme" / "css" / "tokens.css").read_text(encoding="utf-8"))
LIVE = ("throughput-by-context", "intensity-by-tokens", "prompt-time", "elementwise-share")
HERE = {
    "throughput-by-context": {"x": 64, "y": 1840, "label": "1,840"},
    "intensity-by-tokens": {"x": 1, "y": 1.0, "label": "1.00"},
    "prompt-time": {"x": 4096, "y": 100.2, "label": "100 ms"},
    "elementwise-share": {"x": 512, "y": 10.33, "label": "10.3 %"},
}
EACH = [(name, size) for name in charts.FIGURES for size in figures.TEXT_SIZES]


def picture(name: str, **data: Any) -> drawing.Picture:
    return charts.FIGURES[name](COLOURS, {**SERIES[name](ROOT, GRID).data, **data})


@cache
def drawn(name: str, size: Size, here: bool = False) -> ElementTree.Element:
    made = picture(name, here=[HERE[name]]) if here else picture(name)
    return ElementTree.fromstring(svg_of(made, size))


def svg_of(made: drawing.Picture, size: Size) -> str:
    vega = figures.resized(figures.compiled(figures.specification(made)), size, made.frames)
    return draw(vega, name=made.name, variant=size, label="A figure", marks=made.marks)


def layer(svg: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [mark for group in svg.iter("g") if group.get("class") == f"{name}_marks" for mark in group]


def words(svg: ElementTree.Element, name: str) -> list[str]:
    return [mark.text or "" for mark in layer(svg, name)]


# widths of Arial's letters, in thousandths of an em, by which texts are measured
_WIDTHS: Mapping[str, int] = {
    **dict.fromkeys("ijl'", 222),
    **dict.fromkeys(" \u00a0ft.,:;/I", 278),
    **dict.fromkeys("r-()", 333),
    **dict.fromkeys("ckszvxyJ", 500),
    **dict.fromkeys("÷=<>+×", 584),
    **dict.fromkeys("FTZ", 611),
    **dict.fromkeys("ABEKPSVXY", 667),
    **dict.fromkeys("wCDHNRU", 722),
    **dict.fromkeys("GOQ", 778),
    **dict.fromkeys("mM", 833),
    **dict.fromkeys("%W", 917),
}


@dataclass(frozen=True)
class Box:
    """Where a text stands in its drawing, px from its upper left corner."""

    text: str
    left: float
    right: float
    top: float
    bottom: float

    def touches(self, other: Box) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def shift(element: ElementTree.Element) -> tuple[float, float]:
    x, y = 0.0, 0.0
    for found in re.finditer(r"translate\(([-\d.]+),\s*([-\d.]+)\)", element.get("transform", "")):
        x, y = x + float(found[1]), y + float(found[2])
    return x, y


def boxes(element: ElementTree.Element, x: float = 0, y: float = 0) -> Iterator[Box]:
    """The texts of a drawing; a halo is the same text once more, and left out."""
    dx, dy = shift(element)
    x, y = x + dx, y + dy
    if element.tag.endswith("text") and element.text and not element.get("stroke"):
        size = float(element.attrib["font-size"].removesuffix("px"))
        bold = 1.06 if element.get("font-weight") == "bold" else 1
        width = bold * size * sum(_WIDTHS.get(letter, 556) for letter in element.text) / 1000
        left = x - {"middle": width / 2, "end": width}.get(element.get("text-anchor", ""), 0)
        yield Box(element.text, left, left + width, y - 0.72 * size, y + 0.2 * size)
    for child in element:
        yield from boxes(child, x, y)


@pytest.mark.parametrize(("name", "size"), EACH)
def test_a_figure_has_the_width_of_its_size(name: str, size: Size) -> None:
    """536 px beside the bench, 320 on a phone: drawn at the px it is shown at."""
    svg = drawn(name, size)
    assert int(svg.attrib["width"]) == {"wide": 536, "phone": 320}[size] == picture(name).frames[size].total[0]


@pytest.mark.parametrize(("name", "size"), EACH)
def test_no_word_stands_on_another_or_outside(name: str, size: Size) -> None:
    """Direct labels, titles and ticks, by their estimated boxes."""
    svg = drawn(name, size)
    found = list(boxes(svg))
    assert len(found) > 10
    width, height = float(svg.attrib["width"]), float(svg.attrib["height"])
    for box in found:
        assert box.left > -1, box
        assert box.right < width + 1, box
        assert box.top > -1, box
        assert box.bottom < height + 1, box
    touching = [(a.text, b.text) for a, b in itertools.combinations(found, 2) if a.touches(b)]
    assert touching == []


@pytest.mark.parametrize(("name", "size"), EACH)
def test_every_word_is_upright_and_at_least_12_px(name: str, size: Size) -> None:
    """No rotated text, nothing that a phone can't show."""
    texts = list(drawn(name, size).iter("text"))
    assert all(float(text.attrib["font-size"].removesuffix("px")) >= 12 for text in texts)
    assert not any("rotate" in text.get("transform", "") for text in texts)


@pytest.mark.parametrize("name", charts.FIGURES)
def test_every_colour_is_a_token_and_hue_belongs_to_kernels(name: str) -> None:
    """Figures that aren't about kernels are drawn in ink and paper; amber waits for the bench's point."""
    used = set(re.findall(r'(?:fill|stroke)="([^"]+)"', ElementTree.tostring(drawn(name, "wide"), encoding="unicode")))
    tokens = {token for token, value in COLOURS.items() if value in used - {"none", "transparent"}}
    assert used - {"none", "transparent"} <= set(COLOURS.values())
    if name in ("intensity-by-tokens", "elementwise-share", "model-vs-measured"):
        assert {"attention", "attention-text"} <= tokens
        assert "markline" not in tokens
    else:
        assert tokens <= {"ink", "ink2", "ink3", "paper", "grid", "rule", "ghost"}


def test_no_colour_is_typed_in_python() -> None:
    """Colours come from the theme's tokens alone."""
    for module in (charts, drawing):
        source = Path(str(module.__file__)).read_text(encoding="utf-8")
        assert re.findall(r"#[0-9a-fA-F]{3,8}\b", source) == []


def test_points_that_do_not_fit_are_hollow_on_dotted_lines() -> None:
    """A line is solid up to its last point that fits, and its dots are filled as far."""
    svg = drawn("throughput-by-context", "wide")
    dots = layer(svg, "dots")
    hollow = [dot for dot in dots if dot.get("fill") == COLOURS["paper"]]
    rows = [row for row in SERIES["throughput-by-context"](ROOT, GRID).data["points"] if row["x"] & (row["x"] - 1) == 0]
    assert len(dots) == len(rows) == 5 * 13
    assert len(hollow) == sum(not row["fits"] for row in rows)
    assert {line.get("stroke-dasharray") for line in layer(svg, "dotted")} == {"2,3"}
    assert len(layer(svg, "solid")) == len(layer(svg, "dotted")) == 5


def test_the_default_context_is_strong_and_the_others_are_quiet() -> None:
    """One line in ink, its name in bold; the rest in ink3."""
    svg = drawn("throughput-by-context", "wide")
    assert sorted(line.get("stroke") for line in layer(svg, "solid")) == sorted(
        [COLOURS["ink"]] + [COLOURS["ink3"]] * 4
    )
    assert [mark.text for mark in layer(svg, "names") if mark.get("font-weight") == "bold"] == ["8,192"]
    assert "512 of context" in words(svg, "names")
    assert "512" in words(drawn("throughput-by-context", "phone"), "names")


def test_attention_is_level_and_the_ridges_are_named() -> None:
    """One height from the first token to the last."""
    svg = drawn("intensity-by-tokens", "wide")
    (attention,) = [line for line in layer(svg, "lines") if line.get("stroke") == COLOURS["attention"]]
    heights = {point.split(",")[1] for point in re.findall(r"[\d.]+,[\d.]+", attention.attrib["d"])}
    assert len(heights) == 1
    assert words(svg, "ridge_names") == ["H100: ridge at 295", "A100: ridge at 153"]


def test_an_axis_of_any_length_has_few_ticks() -> None:
    """Also where a slip in a data file makes a ridge of eight million million."""
    assert list(drawing.multiples(340, 100)) == [0, 100, 200, 300]
    assert list(drawing.multiples(1200, 100))[-1] == 1200
    assert list(drawing.multiples(1250, 100)) == [0, 200, 400, 600, 800, 1000, 1200]
    assert list(drawing.multiples(3000, 100)) == [0, 500, 1000, 1500, 2000, 2500, 3000]
    assert 4 < len(drawing.multiples(8e12, 100)) <= 13


def test_a_variant_is_tied_to_its_gpu() -> None:
    """The 40 GB A100 stands above the A100, on no line."""
    svg = drawn("ridges-by-year", "wide")
    assert words(svg, "variants_names") == ["A100 40 GB"]
    assert len(layer(svg, "line")) == len(layer(svg, "ties")) == 1
    assert len(layer(svg, "gpus_dots")) == 6


def test_bars_are_filled_tinted_or_hollow_by_what_the_memory_says() -> None:
    """All of the first panel fit; of the second none does, and INT4 only just."""
    fills = [bar.get("fill") for bar in layer(drawn("throughput-by-dtype", "wide"), "bars")]
    ink, paper, tint = COLOURS["ink"], COLOURS["paper"], COLOURS["ghost"]
    assert fills == [ink, ink, ink, ink, paper, paper, tint, paper]
    assert words(drawn("throughput-by-dtype", "wide"), "keys") == [
        "hollow: does not fit one H100",
        "grey: leaves no room for a runtime",
    ]


@pytest.mark.parametrize("size", figures.TEXT_SIZES)
def test_a_turn_lies_on_its_line(size: Size) -> None:
    """The dot is one of the points that the line runs through."""
    svg = drawn("prompt-time", size)
    found = [re.findall(r"([-\d.]+),([-\d.]+)", line.attrib["d"]) for line in layer(svg, "lines")]
    corners = [(float(x), float(y)) for points in found for x, y in points]
    for dot in layer(svg, "turns"):
        assert min(math.dist(shift(dot), corner) for corner in corners) < 0.02  # each is rounded to 0.01


def test_a_step_has_its_parts_measured_above_modelled() -> None:
    """Three parts each, in the kernels' colours and in their tints."""
    bars = layer(drawn("model-vs-measured", "wide"), "bars")
    assert len(bars) == 8 * 2 * 3
    assert {bar.get("fill") for bar in bars} == {
        COLOURS[token]
        for token in ("gate-proj", "attention", "lm-head", "matmuls-trail", "attention-trail", "lm-head-trail")
    }


@pytest.mark.parametrize("size", figures.TEXT_SIZES)
@pytest.mark.parametrize("name", LIVE)
def test_the_benchs_point_is_ringed_once_the_client_says_where(name: str, size: Size) -> None:
    """An amber ring and a bold label on a halo, inside the drawing; without a row, neither."""
    assert layer(drawn(name, size), "here") == layer(drawn(name, size), "here_label") == []
    svg = drawn(name, size, here=True)
    (ring,) = layer(svg, "here")
    assert ring.get("stroke") == COLOURS["markline"]
    halo, label = layer(svg, "here_label")
    assert halo.text == label.text == HERE[name]["label"] + (" on the bench now" if size == "wide" else "")
    assert (halo.get("stroke"), label.get("stroke")) == (COLOURS["paper"], None)
    (box,) = [box for box in boxes(svg) if box.text == label.text]
    assert -1 < box.left < box.right < float(svg.attrib["width"]) + 1


@pytest.mark.parametrize("size", figures.TEXT_SIZES)
def test_at_one_token_the_label_stands_between_the_lines(size: Size) -> None:
    """Beside the ring: the line of elementwise runs close below it."""
    svg = drawn("intensity-by-tokens", size, here=True)
    (label,) = [
        box for box in boxes(svg) if box.text.startswith(HERE["intensity-by-tokens"]["label"]) and box.left < 150
    ]
    elementwise = layer(svg, "lines")[-1].attrib["d"]
    top = 26 + float(re.findall(r"[-\d.]+,([-\d.]+)", elementwise)[0])
    assert label.bottom + 2 < top
    assert label.left > 48 + 12


@pytest.mark.parametrize("name", charts.FIGURES)
def test_a_figure_is_compiled_without_its_rows(name: str) -> None:
    """To what Vega-Lite makes of it with them: another point needn't be compiled again."""
    made = picture(name)
    assert figures.compiled_picture(made) == figures.compiled(figures.specification(made))


@pytest.mark.parametrize("name", charts.FIGURES)
def test_layers_are_put_together_as_altair_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only sooner."""
    ours = figures.specification(picture(name))
    monkeypatch.setattr(drawing, "layered", lambda layers, **properties: altair.layer(*layers, **properties))
    assert figures.specification(picture(name)) == ours


@pytest.mark.parametrize("name", charts.FIGURES)
def test_a_misspelt_field_fails_the_build(name: str) -> None:
    """Vega-Lite draws a valid, empty chart without a word; the counts of marks notice."""
    made = picture(name)
    spec = json.dumps(figures.specification(made))
    for dataset, rows in SERIES[name](ROOT, GRID).data.items():
        if not rows or dataset in ("here", "full"):
            continue
        broken = json.loads(spec)
        broken["datasets"][dataset] = [{f"{key}_": value for key, value in row.items()} for row in rows]
        vega = figures.compiled(broken)
        with pytest.raises(ValueError, match=f"figure {name}, wide: .* shows"):
            draw(vega, name=name, variant="wide", label="", marks=made.marks)


TWO = ["prompt-time", "two-counters"]


def test_lesson_figures_are_the_same_bytes_each_time() -> None:
    """Whatever was drawn before: specs, scripts, drawings."""

    def everything() -> str:
        made = [figures.lesson_figure(name, SERIES[name](ROOT, GRID), COLOURS) for name in TWO]
        return json.dumps([[each.spec, each.script, each.svgs] for each in made])

    first = everything()
    drawn("ridges-by-year", "wide")
    assert everything() == first


def test_a_lesson_figure_has_what_the_page_needs() -> None:
    """Its label is the text made from the data; only a figure on the bench's axes has a script."""
    made = {name: figures.lesson_figure(name, SERIES[name](ROOT, GRID), COLOURS) for name in TWO}
    for name, each in made.items():
        series = SERIES[name](ROOT, GRID)
        assert (each.name, each.label, each.sees) == (name, series.alt, series.sees)
        assert set(each.svgs) == {"wide", "phone"}
        assert ElementTree.fromstring(each.svgs["phone"]).get("aria-label") == series.alt
    _, _, record = made["prompt-time"].script.removeprefix("lesson.spec(").removesuffix(");\n").partition(",")
    handed = json.loads(record)
    assert {"times", "here"} <= {data["name"] for data in handed["spec"]["data"]}
    assert {name: frame["width"] for name, frame in handed["sizes"].items()} == {"wide": 426, "phone": 214}
    assert made["two-counters"].script == ""


def test_a_figure_for_every_series() -> None:
    """And none besides."""
    assert list(charts.FIGURES) == list(SERIES)


def test_another_model_or_gpu_is_drawn_too() -> None:
    """Nothing in a chart counts on the H100: the same lesson on a B200."""
    other = replace(GRID, defaults=replace(GRID.defaults, gpu="b200", context=4096))
    for name, series in SERIES.items():
        made = charts.FIGURES[name](COLOURS, series(ROOT, other).data)
        assert svg_of(made, "phone").startswith("<svg")
