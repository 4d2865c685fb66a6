"""From chart to page: SVG that is safe to inline, specs that stand alone, and the part of Vega for the client."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import altair as alt
import pytest
from altair.utils.schemapi import SchemaValidationError

from builder import bench_chart, drawing, drawn, figures, palette, vega
from builder.colours import read_colours
from builder.svg import draw

ROOT = Path(__file__).parents[1]
COLOURS = read_colours((ROOT / "theme" / "css" / "tokens.css").read_text(encoding="utf-8"))
GPUS: list[bench_chart.Gpu] = [
    {"gpu": "toy", "label": "Toy", "peak": 100.0, "bandwidth": 10.0, "fp8_peak": None},
    {"gpu": "big", "label": "Big", "peak": 1000.0, "bandwidth": 10.0, "fp8_peak": None},
]
KERNELS: list[bench_chart.Kernel] = [
    {
        "kernel": "attention",
        "family": "attention",
        "x": 4.0,
        "y": 40.0,
        "share": 1.0,
        "largest": True,
        "memory": "fits",
        "label": "attention <100 %>",
        "sublabel": "",
    }
]


def picture(size: drawn.Size = "wide") -> drawing.Picture:
    return bench_chart.roofline(COLOURS, GPUS, KERNELS, [], "toy", size=size)


def svg_of(drawing: drawing.Picture, **options: Any) -> str:
    vega = figures.compiled(figures.specification(drawing))
    asked = {"name": "roofline", "variant": "wide", "label": "A roofline", "marks": drawing.marks, **options}
    return draw(vega, **asked)


def scatter(field: str = "x", **marks: int) -> drawing.Picture:
    chart = alt.Chart(alt.NamedData(name="rows"), name="dots").mark_point(clip=True).encode(x=f"{field}:Q", y="x:Q")
    layered = alt.layer(chart, config=alt.Config(aria=False))
    return drawing.Picture("scatter", layered, {"rows": [{"x": 1}, {"x": 2}]}, marks or {"dots": 2}, bench_chart.FRAMES)


def test_the_drawing_is_an_image_with_a_name() -> None:
    """Vega gives its SVG neither role nor label."""
    svg = ElementTree.fromstring(svg_of(picture(), label='Dots & "roofs"'))
    assert svg.get("role") == "img"
    assert svg.get("aria-label") == 'Dots & "roofs"'
    assert not any(element.get("role") for element in svg.iter() if element is not svg)


def test_the_drawing_holds_nothing_that_the_policy_forbids() -> None:
    """No style, no script, no link, no address: style-src 'self' blocks even a style attribute."""
    svg = svg_of(picture())
    assert not re.search(r"\sstyle=|<style|<script|<a[\s>]|<image|href|https?:|\son\w+=", svg)
    assert "&lt;100 %&gt;" in svg


def test_an_element_that_the_policy_forbids_is_refused() -> None:
    """Say, a mark that links."""
    chart = alt.Chart(alt.NamedData(name="rows"), name="dots").mark_point().encode(x="x:Q", href="link:N")
    layered = alt.layer(chart)
    with pytest.raises(ValueError, match="holds"):
        svg_of(
            drawing.Picture(
                "links", layered, {"rows": [{"x": 1, "link": "https://example.org"}]}, {"dots": 1}, bench_chart.FRAMES
            )
        )


def test_numbers_have_two_decimals_at_most() -> None:
    """Floats in full would be a third of the bytes; a 0.01 px is nobody's loss."""
    geometry = " ".join(re.findall(r' (?:d|transform|x|y|x1|x2|y1|y2)="([^"]*)"', svg_of(picture())))
    assert "." in geometry
    assert not re.search(r"\.\d{3}|\de-\d", geometry)


def test_only_geometry_is_rounded() -> None:
    """The colour #173e66 is no number, though 173e66 is one."""
    kernels: list[bench_chart.Kernel] = [{**KERNELS[0], "kernel": "qkv_proj", "label": "qkv 1.2345 %"}]
    svg = svg_of(bench_chart.roofline({**COLOURS, "qkv-proj": "#173e66"}, GPUS, kernels, [], "toy"))
    assert 'fill="#173e66"' in svg
    assert "qkv 1.2345 %" in svg


def test_ids_are_unique_in_a_page_and_stable_between_builds() -> None:
    """Vega counts clip ids up within a process, so a second drawing would differ from the first."""
    once, again = svg_of(scatter(), name="scatter"), svg_of(scatter(), name="scatter")
    other = svg_of(scatter(), name="scatter", variant="phone")
    ids = re.findall(r'\sid="([^"]+)"', once)
    assert ids == ["scatter-wide-1"]
    assert 'clip-path="url(#scatter-wide-1)"' in once
    assert once == again
    assert not set(ids) & set(re.findall(r'\sid="([^"]+)"', other))


def test_the_same_chart_gives_the_same_bytes_whatever_was_drawn_before() -> None:
    """Spec, script and SVG."""

    def everything() -> str:
        made = figures.figure(picture, label="A roofline", sizes=["wide", "phone"], replaced=["kernels"])
        return json.dumps([made.spec, made.script, made.svgs])

    first = everything()
    svg_of(scatter())
    assert everything() == first


@pytest.mark.parametrize("marks", [{"dots": 3}, {"lines": 1}])
def test_fewer_marks_than_rows_fail_the_build(marks: dict[str, int]) -> None:
    """A layer that is missing, or shows less than it should."""
    with pytest.raises(ValueError, match=r"figure roofline, wide: .* shows . of"):
        svg_of(scatter(**marks))


def test_a_chart_that_breaks_the_schema_is_refused() -> None:
    """Its parts are not checked one by one as they are made, but the whole is, the first time."""

    def wrong() -> drawing.Picture:
        chart = alt.layer(alt.Chart(alt.NamedData(name="rows"), name="dots").mark_point(opacity="much"))
        return drawing.Picture("wrong", chart, {"rows": [{"x": 1}]}, {}, bench_chart.FRAMES)

    with pytest.raises(SchemaValidationError, match="much"):
        figures.figure(wrong, label="Nothing", sizes=["wide"])


class Kept(dict[tuple[str, str], str]):
    """What figures keep, by name and all that it depends on, and how often something was made."""

    made = 0

    def __call__(self, name: str, on: str, make: Callable[[], str]) -> str:
        if (name, on) not in self:
            self.made += 1
            self[name, on] = make()
        return self[name, on]


def test_what_is_kept_of_a_chart_serves_other_rows_and_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled and held against the schema once; another chart is another thing."""
    kept = Kept()
    first = figures.compiled_picture(picture(), kept)
    assert first == figures.compiled(figures.specification(picture()))
    with monkeypatch.context() as patch:
        patch.setattr(figures.vl_convert, "vegalite_to_vega", None)
        assert figures.compiled_picture(picture(), kept) == first
        other = bench_chart.roofline(COLOURS, GPUS, KERNELS * 2, [], "big")
        again = figures.compiled_picture(other, kept)
    assert again == figures.compiled(figures.specification(other)) != first
    assert kept.made == 1
    figures.compiled_picture(bench_chart.roofline({**COLOURS, "ink": "#000001"}, GPUS, KERNELS, [], "toy"), kept)
    assert kept.made == 2


def test_a_chart_that_breaks_the_schema_is_never_kept() -> None:
    """It is refused again at the next build."""
    kept = Kept()
    chart = alt.layer(alt.Chart(alt.NamedData(name="rows"), name="dots").mark_point(clip=True))
    chart.layer[0].mark.opacity = "much"
    wrong = drawing.Picture("wrong", chart, {"rows": [{"x": 1}]}, {}, bench_chart.FRAMES)
    for _ in range(2):
        with pytest.raises(SchemaValidationError, match="much"):
            figures.compiled_picture(wrong, kept)
    assert not kept


def test_an_unknown_field_fails_the_build() -> None:
    """Vega-Lite draws a valid, empty chart without a word."""
    with pytest.raises(ValueError, match="dots shows 0 of 2"):
        svg_of(scatter("misspelt"))


def test_an_unknown_dataset_fails_the_build() -> None:
    """Likewise."""
    chart = alt.Chart(alt.NamedData(name="elsewhere"), name="dots").mark_point().encode(x="x:Q", y="x:Q")
    layered = alt.layer(chart)
    with pytest.raises(ValueError, match="dots shows 0 of 1"):
        svg_of(drawing.Picture("elsewhere", layered, {"rows": [{"x": 1}]}, {"dots": 1}, bench_chart.FRAMES))


def test_the_published_spec_stands_alone() -> None:
    """Rows inside, no address but its schema's, and nothing that a theme of Altair adds."""
    spec = figures.specification(picture())
    assert spec["datasets"]["kernels"] == KERNELS
    text = json.dumps({key: value for key, value in spec.items() if key != "$schema"})
    assert "http" not in text
    assert '"url"' not in text
    assert "continuousWidth" not in text


def test_datasets_and_parameters_keep_their_names_for_the_client() -> None:
    """view.change('kernels', …) and view.signal('gpu', …) must find them."""
    vega = figures.compiled(figures.specification(picture()))
    assert {"kernels", "trails"} <= {data["name"] for data in vega["data"]}
    assert {"gpu", "arithmetic", "size"} <= {signal["name"] for signal in vega["signals"]}


def test_a_size_is_the_frame_and_one_parameter() -> None:
    """So the client needs one compiled spec for all drawings."""
    wide = figures.compiled(figures.specification(picture("wide")))
    for size in bench_chart.FRAMES:
        assert figures.resized(wide, size, bench_chart.FRAMES) == figures.compiled(figures.specification(picture(size)))


def test_the_clients_script_leaves_the_replaced_rows_behind() -> None:
    """The client brings the rows of its own point."""
    made = figures.figure(picture, label="A roofline", sizes=["wide"], replaced=["kernels", "trails"])
    name, _, record = made.script.removeprefix("lesson.spec(").removesuffix(");\n").partition(",")
    handed = json.loads(record)
    rows = {data["name"]: data.get("values") for data in handed["spec"]["data"]}
    assert json.loads(name) == "roofline"
    assert rows["kernels"] == rows["trails"] == []
    assert len(rows["roofs"]) == 6
    assert handed["sizes"]["phone"]["width"] == 234


def test_the_scheme_rules_cover_fill_and_stroke_of_every_colour() -> None:
    """Dark mode redefines tokens; these rules let the drawings follow."""
    css = palette.scheme_css({"ink": "#1c1b19", "paper": "#fdfcf9"})
    assert 'figure[data-figure] svg [fill="#1c1b19" i]{fill:var(--ink)}' in css
    assert 'figure[data-figure] svg [stroke="#fdfcf9" i]{stroke:var(--paper)}' in css
    assert css.count("{") == 4


def test_pointing_at_a_row_dims_the_other_dots_and_at_a_dot_the_other_rows() -> None:
    """By the colour of the kernel alone; not where nothing hovers, nor where the reader's own colours are shown."""
    css = palette.pairing_css(COLOURS)
    assert css.startswith("@media (hover:hover) and (forced-colors:none){\n")
    assert css.endswith("}\n}\n")
    assert css.count("{opacity:.35}") == 2 * len(palette.FILLS)
    own = ':is([fill="#c2410c" i],[stroke="#c2410c" i])'
    dots = ".picture [class~=dots_marks]>path"
    row = 'tr[data-kernel="attention"]'
    assert f".bench[data-pointing]:has({row}:is(:hover,:focus-visible)) {dots}:not({own}){{opacity:.35}}" in css
    assert f".bench[data-pointing]:has({dots}{own}:hover) .ledger tbody tr:not({row}){{opacity:.35}}" in css


def test_colours_are_read_from_the_light_scheme() -> None:
    """The first block; the dark one only redefines."""
    css = (
        ":root { --ink: #1C1B19; --serif: Charter; }\n@media (prefers-color-scheme: dark) { :root { --ink: #e8e5de; } }"
    )
    assert read_colours(css) == {"ink": "#1c1b19"}
    assert COLOURS["attention"] == "#c2410c"


def test_two_tokens_of_one_value_are_refused() -> None:
    """A drawing would not know which of them it shows."""
    with pytest.raises(ValueError, match="share a value"):
        read_colours(":root { --ink: #111111; --text: #111111; }")


def test_the_runtime_is_one_classic_script_without_eval_or_address() -> None:
    """Module scripts fail from file://; the policy forbids eval and any other origin."""
    runtime = vega.vega_runtime()
    assert runtime.startswith("(()=>{")
    assert runtime.endswith("})();\n")
    assert "window.lessonVega=" in runtime
    assert not re.search(r"^\s*(?:import|export)\b|[;}](?:import|export)[\s{*]|\bimport\(|\beval\(", runtime)
    assert set(re.findall(r"https?://([^/\"'`]+)", runtime)) <= {"www.w3.org"}
    assert len(runtime) < 500_000


def test_the_runtimes_key_follows_its_snippet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a cached bundle would outlive what it was made from."""
    key = vega.runtime_key()
    assert key == vega.runtime_key()
    monkeypatch.setattr(vega, "RUNTIME_SNIPPET", vega.RUNTIME_SNIPPET + "\n// changed")
    assert vega.runtime_key() != key
