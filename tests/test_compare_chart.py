"""The drawing of a comparison: it holds what the table says, whatever the file holds, and nothing stands on another."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from builder import cli, compare, compare_chart
from builder.colours import read_colours
from builder.grid import load_grid
from builder.nsight import Export, Profile, read_export
from tests.test_charts import Box, boxes
from tests.toys import ROOT, lesson_gpus, lesson_model

SAMPLES = ROOT / "content" / "samples"
COLOURS = read_colours((ROOT / "theme" / "css" / "tokens.css").read_text(encoding="utf-8"))
GPUS, MODEL, GRID = lesson_gpus(), lesson_model(), load_grid(ROOT)
SVG = "{http://www.w3.org/2000/svg}"


def of_kernels(kernels: Sequence[Profile], gpu: str = "h100") -> str:
    return compare_chart.kernels(compare.place(Export(tuple(kernels), True, True), GPUS[gpu]), GPUS[gpu], COLOURS)


def of_passes(text: str) -> str:
    read = compare.read_measurements(text, "x.csv", MODEL, {}, GPUS, GRID.defaults)
    return compare_chart.measurements([compare.compare(each) for each in read], COLOURS)


@cache
def sample(name: str) -> str:
    """The drawing of a sample."""
    text = (SAMPLES / name).read_text("utf-8")
    if name == "serving.csv":
        return of_passes(text)
    return of_kernels(read_export(text, name).kernels)


def kernel(name: str, memory: float, compute: float, time: float = 1e-3) -> Profile:
    """A kernel with counters, and FLOPs and bytes that go with them on an H100."""
    flops, moved = compute * time * 989e12, memory * time * 3.35e12
    return Profile("0", name, 3, memory=memory, compute=compute, time=time, flops=flops, bytes_moved=moved)


def layer(svg: str, name: str) -> list[list[ElementTree.Element]]:
    """The marks of a layer, panel by panel."""
    groups = ElementTree.fromstring(svg).iter(f"{SVG}g")
    return [list(group) for group in groups if group.get("class") == f"{name}_marks"]


def words(svg: str, name: str) -> list[str]:
    """The texts of a layer; those on a halo once."""
    texts = [mark for marks in layer(svg, name) for mark in marks if not mark.get("stroke")]
    return [text.text or "" for text in texts]


def collisions(svg: str) -> list[tuple[str, str]]:
    """Texts that touch another one, by their estimated boxes."""
    found: list[Box] = list(boxes(ElementTree.fromstring(svg)))
    return [(a.text, b.text) for a, b in itertools.combinations(found, 2) if a.touches(b)]


@pytest.mark.parametrize("name", ["serving.csv", "nsight-compute.csv"])
def test_a_drawing_stands_by_itself(name):
    """One image with one label in words, on paper, in the lesson's tokens and type; nothing that runs or loads."""
    svg = sample(name)
    root = ElementTree.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    assert (root.get("role"), len(root.findall(".//*[@role]"))) == ("img", 0)
    assert (root.get("width"), root.get("viewBox", "").split()[2]) == ("720", "720")
    assert not re.search(r"<script|<style|href| style=| on\w+=", svg)
    colours = set(re.findall(r'(?:fill|stroke)="([^"]+)"', svg)) - {"none", "transparent"}
    assert colours <= set(COLOURS.values())
    texts = list(root.iter(f"{SVG}text"))
    assert min(float(text.attrib["font-size"].removesuffix("px")) for text in texts) >= 12
    assert not any("rotate" in text.get("transform", "") for text in texts)
    ids = re.findall(r' id="([^"]+)"', svg)
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", ["serving.csv", "nsight-compute.csv"])
def test_no_word_of_a_sample_stands_on_another_or_outside(name):
    """By their estimated boxes."""
    root = ElementTree.fromstring(sample(name))
    assert collisions(sample(name)) == []
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for box in boxes(root):
        assert box.left > 0, box
        assert box.right < width, box
        assert box.top > 0, box
        assert box.bottom < height, box


def test_the_drawing_of_passes_says_what_the_table_says():
    """Its ratios, a dot a pass in both panels, hollow where it disagrees; the label has them in words."""
    svg = sample("serving.csv")
    told = CliRunner().invoke(cli.main, ["compare", str(SAMPLES / "serving.csv")]).stdout
    for ratio in words(svg, "values"):
        assert f" {ratio.removesuffix('×')} " in told
    panels = layer(svg, "dots")
    assert [len(panel) for panel in panels] == [11, 11]
    for panel in panels:
        assert sum(dot.get("fill") == COLOURS["paper"] for dot in panel) == 2
    label = ElementTree.fromstring(svg).attrib["aria-label"]
    assert "9 of 11 agree" in label
    assert "H100, decode 64 × 8k, BF16: 0.88 times the model, memory-bound" in label


def test_the_drawing_of_kernels_shows_every_kernel_and_names_the_longest():
    """All on the plane; on the roofline those with FLOPs; the names are the table's numbers and short names."""
    svg = sample("nsight-compute.csv")
    plane, roofline = layer(svg, "dots")
    assert (len(plane), len(roofline)) == (11, 10)
    assert "2 flash_fwd_splitkv_kernel" in words(svg, "names")
    assert words(svg, "words").count("ridge 295") == 1
    label = ElementTree.fromstring(svg).attrib["aria-label"]
    assert label.startswith("11 kernels by two counters, 10 on the roofline. The longest first: nvjet_tst_128x256")
    assert "flash_fwd_splitkv_kernel: memory 95.0 %, compute 5.3 %, memory-bound" in label


def place_of(mark: ElementTree.Element) -> tuple[float, float]:
    x, y = re.findall(r"-?[\d.]+", mark.attrib["transform"])
    return float(x), float(y)


def test_memory_goes_right_and_compute_up():
    """By hand: the middle, the corners; linear between them."""
    spots = [(0, 0), (1, 0), (0, 1), (0.5, 0.5), (0.25, 0.75)]
    svg = of_kernels([Profile("0", "k", 3, memory=memory, compute=compute) for memory, compute in spots])
    (dots,) = layer(svg, "dots")
    (left, bottom), (right, _), (_, top), middle, quarter = sorted(
        map(place_of, dots), key=lambda spot: [(0, 300), (638, 300), (0, 0), (319, 150), (159.5, 75)].index(spot)
    )
    assert (left, top, bottom) == (0, 0, 300)
    assert middle == (right / 2, 150)
    assert quarter == (right / 4, 75)


def test_a_kernel_on_the_roof_lies_on_the_roof():
    """At its peak, and at its bandwidth: the dot is on the line, and half of it a fixed way below."""
    full, half = 989e12 * 1e-3, 989e12 * 1e-3 / 2
    kernels = [
        Profile("0", name, 3, memory=0.5, compute=0.5, time=1e-3, flops=flops, bytes_moved=full / 2000)
        for name, flops in (("on", full), ("below", half))
    ]
    svg = of_kernels(kernels)
    _, dots = layer(svg, "dots")
    path = next(iter(layer(svg, "roofs")[0])).attrib["d"]
    roof = float(re.findall(r"-?[\d.]+", path)[-1])
    assert min(place_of(dot)[1] for dot in dots) == pytest.approx(roof, abs=0.02)


def test_a_name_from_the_file_shows_as_text():
    """Markup in it is no markup; letters that XML forbids are replaced when the file is read."""
    svg = of_kernels([kernel('</script><b>&"', 0.9, 0.1)])
    assert "<b>" not in svg
    assert "</script>" not in svg
    assert words(svg, "names")[0] == '1 </script><b>&"'
    assert ElementTree.fromstring(svg).attrib["aria-label"].count('</script><b>&"') == 1


def test_without_flops_there_is_no_roofline():
    """One panel, and a label that says so."""
    svg = of_kernels([Profile("0", "k", 3, memory=0.9, compute=0.1)])
    assert len(layer(svg, "dots")) == 1
    assert "0 on the roofline. In their order: k:" in svg


def test_fp8_kernels_stand_under_a_roof_of_their_own():
    """Two roofs, each named, with its ridge."""
    both = [kernel("a", 0.1, 0.7), kernel("b", 0.1, 0.9)]
    svg = of_kernels([both[0], Profile(**{**vars(both[1]), "math": "fp8"})])
    assert len(layer(svg, "roofs")) == 2
    assert {"H100, BF16: 989 TFLOP/s", "H100, FP8: 1,979 TFLOP/s", "ridge 295", "ridge 591"} <= set(words(svg, "words"))


def test_what_is_beyond_a_peak_stands_at_the_edge_and_says_where():
    """An impossible pass neither leaves the picture nor squeezes it."""
    svg = of_passes("phase,tokens,context,gpu,weights,kv,ms\ndecode,1,8k,h100,bf16,bf16,0.1\n")
    assert any(re.fullmatch(r"1 at 4,\d{3}\.\d %", name) for name in words(svg, "names"))
    assert collisions(svg) == []


def test_a_long_file_shows_its_first_passes_above_and_all_below():
    """And says that it does."""
    rows = "".join(f"decode,{i + 1},8k,h100,bf16,bf16,30\n" for i in range(40))
    svg = of_passes(f"phase,tokens,context,gpu,weights,kv,ms\n{rows}")
    assert [len(panel) for panel in layer(svg, "dots")] == [24, 40]
    assert "the first 24 of 40" in svg


SHARES = st.one_of(st.just(0.0), st.floats(1e-9, 1))  # what a percentage of a file can be


@settings(max_examples=15)
@given(
    st.lists(
        st.tuples(st.sampled_from(["gemm", "核函数", "a_kernel_with_a_rather_long_name", "x"]), SHARES, SHARES),
        min_size=1,
        max_size=12,
    )
)
def test_kernels_anywhere_are_drawn_and_no_name_stands_on_another(kernels):
    """Any counters, any FLOPs and bytes that go with them; nothing is NaN."""
    svg = of_kernels(
        [kernel(name, memory, compute, 1e-6 * (i + 1)) for i, (name, memory, compute) in enumerate(kernels)]
    )
    assert len(layer(svg, "dots")[0]) == len(kernels)
    assert "NaN" not in svg
    named = set(words(svg, "names"))
    assert not [pair for pair in collisions(svg) if named >= set(pair)]


def test_the_same_file_gives_the_same_bytes():
    """Whatever was drawn before."""
    again = of_kernels(read_export((SAMPLES / "nsight-compute.csv").read_text("utf-8"), "x").kernels)
    assert again == sample("nsight-compute.csv")


def test_the_command_draws_into_the_file_that_is_named(tmp_path):
    """The table comes as ever; that a file was written is said on stderr."""
    for name in ("serving.csv", "nsight-compute.csv"):
        out = tmp_path / f"{name}.svg"
        result = CliRunner().invoke(cli.main, ["compare", str(SAMPLES / name), "--svg", str(out)])
        assert (result.exit_code, result.stderr) == (0, f"wrote {out}\n")
        assert out.read_text("utf-8") == sample(name)
        plain = CliRunner().invoke(cli.main, ["compare", str(SAMPLES / name)])
        assert plain.stdout == result.stdout


def test_nothing_is_drawn_of_a_file_that_is_wrong(tmp_path):
    """Exit status 1, and no file."""
    bad: Path = tmp_path / "bad.csv"
    bad.write_text("phase,ms\n", encoding="utf-8")
    result = CliRunner().invoke(cli.main, ["compare", str(bad), "--svg", str(tmp_path / "x.svg")])
    assert result.exit_code == 1
    assert not (tmp_path / "x.svg").exists()
