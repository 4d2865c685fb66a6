"""The roofline as a picture: what stands where, by the SVG that its spec draws."""

import itertools
import json
import math
import re
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import altair as alt
import pytest

from builder import bench_chart, figures
from builder.colours import read_colours
from builder.drawn import Size
from builder.svg import draw
from tests.test_charts import boxes

CSS = (Path(__file__).parents[1] / "theme" / "css" / "tokens.css").read_text(encoding="utf-8")
COLOURS = read_colours(CSS)
GPUS: list[bench_chart.Gpu] = [
    {"gpu": "a100", "label": "A100", "peak": 312.0, "bandwidth": 2.04, "fp8_peak": None},
    {"gpu": "h100", "label": "H100", "peak": 989.0, "bandwidth": 3.35, "fp8_peak": 1979.0},
    {"gpu": "h200", "label": "H200", "peak": 989.0, "bandwidth": 4.8, "fp8_peak": 1979.0},
    {"gpu": "b200", "label": "B200", "peak": 2250.0, "bandwidth": 8.0, "fp8_peak": 4500.0},
]


def dot(kernel: str, x: float | None, share: float, **more: Any) -> bench_chart.Kernel:
    """A kernel on the H100's roof."""
    family = {"attention": "attention", "elementwise": "elementwise", "lm_head": "lm_head"}.get(kernel, "matmuls")
    row = {"kernel": kernel, "family": family, "x": x, "y": None if x is None else min(989.0, 3.35 * x), "share": share}
    return {**row, "largest": False, "memory": "fits", "label": "", "sublabel": "", **more}  # type: ignore[typeddict-item]


def default_kernels(**of_all: Any) -> list[bench_chart.Kernel]:
    """Decode, one token at 8k on an H100."""
    return [
        dot("qkv_proj", 1.0, 0.111, **of_all),
        dot("attention", 4.0, 0.074, label="attention 7.4 %", **of_all),
        dot("out_proj", 1.0, 0.074, **of_all),
        dot("gate_proj", 1.0, 0.222, largest=True, label="gate 22 %", sublabel="five matmuls 85 %", **of_all),
        dot("up_proj", 1.0, 0.222, **of_all),
        dot("down_proj", 1.0, 0.222, **of_all),
        dot("elementwise", 0.55, 0.0004, label="elementwise", **of_all),
        dot("lm_head", 1.0, 0.076, **of_all),
    ]


def trail(family: str, per_token: float, top: float) -> list[bench_chart.TrailPoint]:
    """A family whose intensity rises with the batch, on the H100, with the corner at the ridge."""
    rows: list[bench_chart.TrailPoint] = []
    for k in range(13):
        x = 1 / (1 / (per_token * 2**k) + 1 / top)
        if rows and rows[-1]["x"] < 989 / 3.35 < x:
            rows.append({"family": family, "tokens": None, "end": None, "x": 989 / 3.35, "y": 989.0})
        end: Any = {0: "first", 12: "last"}.get(k) if family == "matmuls" else None
        rows.append({"family": family, "tokens": 2**k, "end": end, "x": x, "y": min(989.0, 3.35 * x)})
    return rows


TRAILS = [*trail("lm_head", 1.0, 3900.0), *trail("matmuls", 1.0, 3000.0)]
FLAT = [{"family": "attention", "tokens": 2**k, "end": None, "x": 4.0, "y": 13.4} for k in range(13)]


def drawn(
    kernels: list[bench_chart.Kernel] | None = None, trails: Any = None, gpu: str = "h100", **options: Any
) -> ElementTree.Element:
    key = json.dumps([kernels or default_kernels(), TRAILS if trails is None else trails, gpu, options])
    return ElementTree.fromstring(_svg(key))


@cache
def _svg(key: str) -> str:
    kernels, trails, gpu, options = json.loads(key)
    picture = bench_chart.roofline(COLOURS, GPUS, kernels, trails, gpu, **options)
    vega = figures.compiled(figures.specification(picture))
    size = options.get("size", "wide")
    return draw(vega, name="roofline", variant=size, label="Roofline", marks=picture.marks)


def layer(svg: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [mark for group in svg.iter("g") if group.get("class") == f"{name}_marks" for mark in group]


def words(svg: ElementTree.Element, name: str) -> list[str]:
    return [mark.text or "" for mark in layer(svg, name) if not mark.get("stroke")]


def place(mark: ElementTree.Element) -> tuple[float, float]:
    x, _, y = mark.attrib["transform"].removeprefix("translate(").removesuffix(")").partition(",")
    return float(x), float(y)


def radius(mark: ElementTree.Element) -> float:
    """Of a circle that Vega draws as a path: M r,0 A r,r …"""
    return float(mark.attrib["d"].removeprefix("M").split(",", 1)[0])


@pytest.mark.parametrize(
    ("size", "total"), [("wide", (656, 303)), ("short", (656, 203)), ("phone", (320, 300)), ("strip", (128, 64))]
)
def test_each_size_has_its_own_measure(size: Size, total: tuple[int, int]) -> None:
    """The SVG is drawn at the px it is shown at, never scaled."""
    svg = drawn(size=size)
    assert (int(svg.attrib["width"]), int(svg.attrib["height"])) == total == bench_chart.FRAMES[size].total


def test_a_dot_stands_at_its_intensity_on_the_roof() -> None:
    """Attention at 4 FLOP/byte: log10(40) of five decades to the right, 13.4 TFLOP/s high."""
    attention = next(mark for mark in layer(drawn(), "dots") if mark.get("fill") == COLOURS["attention"])
    x, y = place(attention)
    assert x == pytest.approx(570 * 1.60206 / 5, abs=0.01)
    assert y == pytest.approx(249 * (1 - 1.12710 / 3.90309), abs=0.01)


def test_the_area_of_a_dot_is_its_share_and_never_vanishes() -> None:
    """Radius 24·√share at wide, at least 3."""
    dots = layer(drawn(), "dots")
    by_fill = {mark.attrib["fill"]: radius(mark) for mark in dots}
    assert by_fill[COLOURS["gate-proj"]] == pytest.approx(24 * 0.222**0.5, abs=0.01)
    assert by_fill[COLOURS["elementwise"]] == 3
    assert radius(layer(drawn(size="strip"), "dots")[0]) == pytest.approx(11 * 0.222**0.5, abs=0.01)


def test_the_largest_dot_is_drawn_first_so_that_coincident_dots_nest() -> None:
    """Drawing order is by share, downwards, whatever the order of the rows."""
    radii = [radius(mark) for mark in layer(drawn(list(reversed(default_kernels()))), "dots")]
    assert radii == sorted(radii, reverse=True)
    assert len(radii) == 8


def test_a_kernel_without_bytes_has_no_dot() -> None:
    """No intensity, no place: seven dots, and nothing at zero."""
    kernels = [row if row["kernel"] != "attention" else dot("attention", None, 0.0) for row in default_kernels()]
    assert len(layer(drawn(kernels), "dots")) == 7


def test_dots_are_filled_tinted_or_hollow_by_what_the_memory_says() -> None:
    """Fits: filled. Tight: the trail's tint inside. Does not fit: paper inside, the colour as outline."""
    for memory, inside, outline in (
        ("fits", "attention", "paper"),
        ("tight", "attention-trail", "attention"),
        ("no", "paper", "attention"),
    ):
        looks = {
            (mark.get("fill"), mark.get("stroke")) for mark in layer(drawn(default_kernels(memory=memory)), "dots")
        }
        assert (COLOURS[inside], COLOURS[outline]) in looks, memory


def test_only_the_largest_is_ringed() -> None:
    """A ring of ink, four px outside the dot; the strip is too small for one."""
    (ring,) = layer(drawn(), "ring")
    assert radius(ring) == pytest.approx(24 * 0.222**0.5 + 4, abs=0.01)
    assert layer(drawn(size="strip"), "ring") == []


def test_beyond_the_axis_a_dot_stays_inside_the_edge_and_says_where_it_is() -> None:
    """Prefill attention reaches 16,136 FLOP/byte; the axis ends at 10,000."""
    far = dot("attention", 16136.0, 0.82, largest=True, label="attention 82 %", sublabel="at 16,136 →")
    near = dot("gate_proj", 1755.0, 0.05, label="five matmuls 15 %", sublabel="LM head 1.3 %")
    svg = drawn([far, near])
    big = layer(svg, "dots")[0]
    assert place(big)[0] + radius(big) == pytest.approx(565, abs=0.02)  # and five px for its ring
    assert "at 16,136 →" in words(svg, "labels")


def test_a_trail_that_goes_nowhere_is_not_drawn() -> None:
    """Decode attention keeps its 4 FLOP/byte at every batch."""
    assert len(layer(drawn(), "lanes")) == 1
    assert len(layer(drawn(trails=[*TRAILS, *FLAT]), "lanes")) == 1
    assert len(layer(drawn(trails=[*TRAILS, *trail("attention", 4.0, 20000.0)]), "lanes")) == 2


def test_a_trail_is_cut_at_the_powers_of_two() -> None:
    """Twelve steps from 1 to 4,096; positions between them are no steps."""
    between: bench_chart.TrailPoint = {"family": "matmuls", "tokens": 320, "end": None, "x": 290.0, "y": 971.5}
    assert len(layer(drawn(trails=[*TRAILS, between]), "notches")) == 12


@pytest.mark.parametrize("gpu", ["a100", "h100", "h200", "b200"])
def test_every_gpu_is_named_once_and_the_chosen_one_in_bold(gpu: str) -> None:
    """Names at the right ends; of two roofs at one height, the chosen one's comes first and the other's below it."""
    svg = drawn(gpu=gpu)
    names = [mark for mark in layer(svg, "names") if not mark.get("stroke")]
    assert sorted(mark.text or "" for mark in names) == ["A100", "B200", "H100", "H200"]
    assert [mark.text for mark in names if mark.get("font-weight") == "bold"] == [gpu.upper()]
    heights = sorted(place(mark)[1] for mark in names if place(mark)[0] > 570)
    assert len(heights) == 4
    assert all(b - a >= 11 for a, b in itertools.pairwise(heights))


def test_the_ridge_is_named_under_the_axis() -> None:
    """The ridge of the chosen GPU, between its two sides."""
    assert {"ridge 295", "memory-bound", "compute-bound"} <= set(words(drawn(), "ridge_name"))
    assert "ridge 206" in words(drawn(gpu="h200"), "ridge_name")
    assert "ridge 591" in words(drawn(arithmetic="fp8"), "ridge_name")


def test_with_fp8_arithmetic_both_roofs_of_the_gpu_are_drawn() -> None:
    """The FP8 roof strong, the BF16 roof thinner and named."""
    svg = drawn(arithmetic="fp8")
    assert len(layer(svg, "roof")) == len(layer(svg, "roof_bf16")) == 1
    assert "BF16" in words(svg, "names")
    assert layer(drawn(), "roof_bf16") == []


def test_the_ends_of_the_trail_are_named_where_nothing_is_in_the_way() -> None:
    """At one token the dots stand on the near end, so only the far one is named."""
    assert words(drawn(), "ends") == ["4,096 tokens"]
    away = [dot("attention", 60.0, 0.9, largest=True, label="attention 90 %")]
    assert words(drawn(away), "ends") == ["1 token", "4,096 tokens"]


def test_a_name_that_would_touch_a_larger_dots_name_is_dropped() -> None:
    """Two dots at one place: the larger keeps its name."""
    both = [
        dot("attention", 4.0, 0.6, largest=True, label="attention 60 %"),
        dot("gate_proj", 4.1, 0.4, label="gate 40 %"),
    ]
    assert words(drawn(both), "labels") == ["attention 60 %"]


def test_the_largest_keeps_its_name_where_shares_round_to_the_same() -> None:
    """Which of two is the largest is said in the rows, not read off their rounded shares."""
    both = [
        dot("attention", 4.0, 0.19, label="attention 19 %"),
        dot("gate_proj", 4.1, 0.19, largest=True, label="gate 19 %"),
    ]
    assert words(drawn(both), "labels") == ["gate 19 %"]


def test_an_end_of_the_trail_without_room_above_is_not_named() -> None:
    """Under the FP8 roof of a B200 the trail runs along the top of the plot, which the short one has no room above."""
    away = [dot("attention", 60.0, 0.9, largest=True, label="attention 90 %")]
    high: Any = [{**row, "y": min(4500.0, 8.0 * row["x"])} for row in trail("matmuls", 2.0, 3000.0)]
    assert "4,096 tokens" not in words(drawn(away, high, "b200", arithmetic="fp8", size="short"), "ends")
    assert "4,096 tokens" in words(drawn(away, high, "b200", arithmetic="fp8"), "ends")
    assert "4,096 tokens" in words(drawn(away, size="short"), "ends")


@pytest.mark.parametrize("size", ["wide", "short", "phone", "strip"])
def test_the_highest_roof_and_its_trail_stay_inside_the_plot(size: Size) -> None:
    """The trail of the matmuls runs above the FP8 roof of a B200, at 4,500 TFLOP/s; the plot has a place for both."""
    high: Any = [{**row, "y": min(4500.0, 8.0 * row["x"])} for row in trail("matmuls", 2.0, 3000.0)]
    svg = drawn(trails=high, gpu="b200", arithmetic="fp8", size=size)
    for name in ("roof", "lanes"):
        (line,) = layer(svg, name)
        heights = [float(number) for number in re.findall(r"[ML][^,]+,([^ML]+)", line.attrib["d"])]
        assert heights
        assert min(heights) - float(line.attrib["stroke-width"]) / 2 >= (-2 if size == "strip" else 0), name


def test_no_name_of_a_roof_stands_on_another_roof() -> None:
    """Names at the right, of roofs a little above or below too: none is struck through by a line that isn't its own."""
    for gpu, arithmetic in (("h100", "bf16"), ("h200", "bf16"), ("a100", "bf16"), ("h100", "fp8"), ("b200", "fp8")):
        svg = drawn(gpu=gpu, arithmetic=arithmetic)
        assert {mark.text for mark in layer(svg, "names")} >= {"A100", "B200", "H100", "H200"}
        at = [place(mark) for mark in layer(svg, "names") if not mark.get("stroke")]
        assert all(x > 570 for x, _ in at), (gpu, at)
        assert all(b - a >= 11 for a, b in itertools.pairwise(sorted(y for _, y in at))), (gpu, at)


def test_the_end_of_the_trail_is_named_between_its_roof_and_the_next() -> None:
    """Below the roof of the B200, which is 23 px above the H100's, and clear of the trail."""
    (end,) = [mark for mark in layer(drawn(), "ends") if not mark.get("stroke")]
    roof, above = (249 * (1 - math.log10(peak) / 3.90309) for peak in (989, 2250))
    middle = place(end)[1] - 4
    assert above + 6 < middle < roof - 4.5 - 2.5 - 3


def test_a_long_second_line_pulls_no_name_over_its_dot() -> None:
    """On a phone 'at 64.00 whatever the batch' reaches the edge; 'attention 84 %' stays right of its dot."""
    below = "at 64.00 whatever the batch"
    svg = drawn([dot("attention", 64.0, 0.84, largest=True, label="attention 84 %", sublabel=below)], size="phone")
    (name,) = [mark for mark in layer(svg, "labels") if mark.text == "attention 84 %" and not mark.get("stroke")]
    (circle,) = layer(svg, "dots")
    assert place(name)[0] > place(circle)[0] + 0.7 * radius(circle)
    assert below in words(svg, "labels")


def test_a_name_that_would_touch_a_larger_dot_is_dropped() -> None:
    """It would be read through the dot; away from it, it stays."""
    large = dot("attention", 2000.0, 0.55, largest=True, label="attention 55 %")
    for x, named in ((250.0, False), (20.0, True)):
        small = dot("gate_proj", x, 0.02, label="five matmuls 8 %, LM head 1.1 %")
        svg = drawn([large, small])
        assert (small["label"] in words(svg, "labels")) == named, x


def test_a_phone_names_an_elementwise_row_that_counts() -> None:
    """The largest always, another from 3 % on; what is less has its swatch in the ledger."""
    for share, largest, named in ((0.19, True, True), (0.05, False, True), (0.01, False, False)):
        rows = [dot("elementwise", 0.55, share, largest=largest, label="elementwise 5 %")]
        assert ("elementwise 5 %" in words(drawn(rows, size="phone"), "labels")) == named, share


def test_every_kernel_is_placed_once_for_all_that_is_drawn_of_it() -> None:
    """Dots, names and what gives way to them share one set of rows: most of the work of a live drawing."""
    vega = figures.compiled(
        figures.specification(bench_chart.roofline(COLOURS, GPUS, default_kernels(), TRAILS, "h100"))
    )
    fields = [step.get("as") for data in vega["data"] for step in data.get("transform", [])]
    assert fields.count("stacked") == fields.count("side") == fields.count("r") == 1


FAR_RIGHT: Any = {**dot("gate_proj", 2000.0, 0.2, largest=True, label="gate 20 %"), "y": 989.0}
LONG = "five matmuls 75 %, LM head 6.7 %"


@pytest.mark.parametrize("size", ["wide", "short", "phone"])
@pytest.mark.parametrize("arithmetic", ["bf16", "fp8"])
def test_the_name_of_the_largest_on_the_roof_stands_under_its_dot(size: Size, arithmetic: str) -> None:
    """However long the words below it are; and none of them reaches over the slope of the roof."""
    gate = {**FAR_RIGHT, "sublabel": LONG, "y": 989.0 if arithmetic == "bf16" else 1979.0}
    svg = drawn([gate], arithmetic=arithmetic, size=size)
    (dot_x, _), frame = place(layer(svg, "dots")[0]), bench_chart.FRAMES[size]
    head = next(mark for mark in layer(svg, "labels") if mark.text == "gate 20 %")
    assert abs(place(head)[0] - dot_x) <= 35
    for mark in layer(svg, "labels"):
        x, y = place(mark)
        slope = frame.width * (math.log10(10 * 989 / 3.35) - (y / frame.height - 1) * 3.90309 - 2.99520) / 5
        assert x - 6 * len(mark.text or "") / 2 > slope, mark.text


def test_a_phone_names_the_first_of_several() -> None:
    """There is no room for more; other sizes name them all."""
    gate = dot("gate_proj", 1.0, 0.222, largest=True, label="gate 22 %", sublabel=LONG)
    assert words(drawn([gate], size="phone"), "labels") == ["gate 22 %", "five matmuls 75 %"]
    assert words(drawn([gate]), "labels") == ["gate 22 %", LONG]


def test_the_lower_of_two_roofs_strikes_no_name_through() -> None:
    """A dot on the slope a little above the BF16 roof has its name below that roof."""
    matmuls: Any = {**dot("gate_proj", 310.0, 0.025, label="five matmuls 2.5 %"), "y": 310 * 3.35}
    attention = dot("attention", 4.0, 0.97, largest=True, label="attention 97 %")
    lower = 249 * (1 - 2.99520 / 3.90309)
    heights = [
        place(mark)[1]
        for mark in layer(drawn([matmuls, attention], arithmetic="fp8"), "labels")
        if mark.text == "five matmuls 2.5 %"
    ]
    assert heights
    assert all(abs(y - lower) >= 9 for y in heights)


def test_the_name_of_another_roof_gives_way_to_that_of_a_dot() -> None:
    """A long name reaches past the right edge, where the other roofs have theirs; the chosen roof keeps its own."""
    crowded = [dot("gate_proj", 124.0, 0.01, largest=True, label="w" * 40)]
    assert {"A100", "H100"} <= set(words(drawn(), "names"))
    assert "A100" not in words(drawn(crowded), "names")
    assert "H100" in words(drawn(crowded), "names")


@pytest.mark.parametrize("size", ["wide", "short", "phone"])
def test_every_word_is_upright_and_at_least_12_px_on_a_halo(size: Size) -> None:
    """No rotated text, nothing below 12 px, and the same words under each label in paper."""
    svg = drawn(size=size)
    texts = list(svg.iter("text"))
    assert len(texts) > 15
    assert all(float(text.attrib["font-size"].removesuffix("px")) >= 12 for text in texts)
    assert not any("rotate" in text.attrib["transform"] for text in texts)
    halos = [mark for mark in layer(svg, "labels") if mark.get("stroke") == mark.get("fill") == COLOURS["paper"]]
    assert [mark.text for mark in halos] == words(svg, "labels") != []
    assert {mark.get("stroke-width") for mark in halos} == {"4"}


def test_the_strip_has_neither_words_nor_axes() -> None:
    """128 × 64: roofs, trail, dots and the ridge."""
    svg = drawn(size="strip")
    assert list(svg.iter("text")) == []
    assert layer(svg, "ticks_x") == []
    assert len(layer(svg, "dots")) == 8


def test_every_colour_of_the_drawing_is_a_token_of_the_theme() -> None:
    """Otherwise the dark scheme would miss it."""
    svg = ElementTree.tostring(drawn(trails=[*TRAILS, *trail("attention", 4.0, 20000.0)]), encoding="unicode")
    used = set(re.findall(r'(?:fill|stroke)="([^"]+)"', svg)) - {"none", "transparent"}
    assert used <= set(COLOURS.values())
    assert len(used) > 15


def test_no_colour_is_typed_in_python() -> None:
    """Colours come from the theme's tokens alone."""
    source = Path(bench_chart.__file__).read_text(encoding="utf-8")
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b", source) == []


def test_two_parts_of_a_name_stand_a_space_apart() -> None:
    """Shares are written with spaces that don't break, which are as narrow as others."""
    name, more = "gate\u00a022\u00a0%", "five matmuls 85\u00a0%, LM head 7.6\u00a0%"
    rows = [dot("gate_proj", 1.0, 0.222, largest=True, label=name, sublabel=more)]
    found = {box.text: box for box in boxes(drawn(rows))}
    assert found[more].top < found[name].bottom
    assert 4 < found[more].left - found[name].right < 11


def test_what_is_shown_changes_no_structure() -> None:
    """Another GPU and other rows are other values in the same chart, which Altair makes once; other colours are not."""
    one = bench_chart.roofline(COLOURS, GPUS, default_kernels(), TRAILS, "h100")
    other = bench_chart.roofline(dict(reversed(COLOURS.items())), GPUS, default_kernels()[:3], FLAT, "b200")
    assert one.chart is other.chart
    first, second = figures.specification(one), figures.specification(other)
    values = [{param["name"]: param.get("value") for param in spec["params"]} for spec in (first, second)]
    assert [each["gpu"] for each in values] == ["h100", "b200"]
    assert [len(spec["datasets"]["kernels"]) for spec in (first, second)] == [len(default_kernels()), 3]
    assert first["layer"] == second["layer"]
    darker = bench_chart.roofline({**COLOURS, "ink": "#000001"}, GPUS, default_kernels(), TRAILS, "h100")
    assert "#000001" in str(figures.specification(darker))


def test_an_unknown_gpu_is_refused() -> None:
    """A chart without a chosen roof would be drawn without a word."""
    with pytest.raises(AssertionError, match="no roof for h300"):
        bench_chart.roofline(COLOURS, GPUS, default_kernels(), [], "h300")


def test_with_fp8_arithmetic_the_name_of_attention_stays_under_its_own_roof() -> None:
    """Attention runs in BF16: its dot is on the lower roof, its name below it, clear of the largest dot's."""
    gate: Any = {
        **dot("gate_proj", 1300.0, 0.21, largest=True, label="gate 21 %", sublabel="five matmuls 79 %"),
        "y": 1979.0,
    }
    attention = dot("attention", 2700.0, 0.034, label="attention 3.4 %")
    svg = drawn([gate, attention], arithmetic="fp8")
    assert words(svg, "labels") == ["gate 21 %", "five matmuls 79 %", "attention 3.4 %"]
    heights = {mark.text: place(mark)[1] for mark in layer(svg, "labels")}
    lower_roof = 249 * (1 - 2.99520 / 3.90309)
    assert heights["attention 3.4 %"] > lower_roof + 10
    assert heights["gate 21 %"] > lower_roof + 10


def test_the_name_of_a_slope_gives_way_to_a_dot() -> None:
    """A low drawing names H200 on its slope beside the H100; with a dot there, it isn't named at all."""
    there = [dot("gate_proj", 160.0, 0.9, largest=True, label="gate 90 %")]
    assert "H200" in words(drawn(size="short"), "names")
    assert "H200" not in words(drawn(there, size="short"), "names")
    assert "H100" in words(drawn(there, size="short"), "names")


def test_rounded_rows_stay_on_the_slope() -> None:
    """The client's rows are those of the page: 0.55 FLOP/byte beside 1.83 TFLOP/s, which are 0.545 and 1.827."""
    rounded: Any = {**dot("elementwise", 0.55, 0.001, label="elementwise"), "y": 1.83}
    exact = dot("elementwise", 0.5454, 0.001, label="elementwise")
    places = [
        next(
            place(mark) for mark in layer(drawn([*default_kernels()[:6], row]), "labels") if mark.text == "elementwise"
        )
        for row in (rounded, exact)
    ]
    assert places[0] == pytest.approx(places[1], abs=2)


def test_layers_are_put_together_as_altair_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers within a layer too."""

    def spec() -> dict[str, Any]:
        bench_chart._charts.clear()
        return figures.specification(bench_chart.roofline(COLOURS, GPUS, default_kernels(), TRAILS, "h100"))

    ours = spec()
    monkeypatch.setattr(bench_chart, "layered", lambda layers, **properties: alt.layer(*layers, **properties))
    assert spec() == ours
    bench_chart._charts.clear()
