"""Every figure that must come out, to its printed digit.

The figures of goldens/published.json are written out here in Python, without the language of facts; those of the cost
model's tables (memory, crossovers, the model beside measurements) stand below.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from builder.catalog import Gpu
from builder.kernels import KERNELS
from builder.ledger import GROUPS, Point, forward_pass
from builder.roofline import BOUNDS, FITS, MEMORY, Pass, cost, fits, largest_batch, resident_bytes
from builder.units import GIB
from tests.toys import DEFAULTS, GOLDENS, lesson_gpus, lesson_model

PUBLISHED = json.loads((GOLDENS / "published.json").read_text(encoding="utf-8"))
MODEL, GPUS = lesson_model(), lesson_gpus()


def parsed(text: str) -> dict[str, Any]:
    """'tokens=64 gpu=a100' → coordinates."""
    pairs = (pair.split("=") for pair in text.split())
    return {name: int(value) if name in ("tokens", "context") else value for name, value in pairs}


def gpu_at(point: Point) -> Gpu:
    return GPUS[point.gpu]


def computed(point: Point, gpu: Gpu | None = None) -> Pass:
    return cost(forward_pass(MODEL, point), gpu or gpu_at(point), point.tokens)


def intensity(kernel: str) -> Callable[[Point], float]:
    return lambda point: float(computed(point).arithmetic_intensity[KERNELS.index(kernel)])


def share(*kernels: str) -> Callable[[Point], float]:
    return lambda point: float(sum(computed(point).share[KERNELS.index(kernel)] for kernel in kernels))


def total(name: str) -> Callable[[Point], float]:
    return lambda point: float(getattr(computed(point), name))


def between(value: Callable[[Point], float], above: dict[str, Any], below: dict[str, Any]) -> Callable[[Point], float]:
    """value at one place ÷ value at another, both beside the point's other coordinates."""
    return lambda point: value(replace(point, **above)) / value(replace(point, **below))


def first_token_off_the_slope(kernel: str) -> Callable[[Point], float]:
    """The smallest number of tokens, of every integer in 1 … 4096, at which a kernel's bound is not `memory`."""

    def solved(point: Point) -> float:
        tokens = np.arange(1, 4097)
        bound = computed(replace(point, tokens=tokens)).bound[KERNELS.index(kernel)]
        return float(tokens[bound != MEMORY][0])

    return solved


def everywhere_four(point: Point) -> bool:
    """Attention's intensity is 4 at every position of tokens and context, on every GPU, at every weights' dtype."""
    tokens, context = 2 ** np.arange(13)[None, :], np.array([1, *(2 ** np.arange(7, 18))])[:, None]
    found = [
        computed(replace(point, tokens=tokens, context=context, gpu=gpu, weights=weights)).arithmetic_intensity[1]
        for gpu in GPUS
        for weights in ("bf16", "fp8", "int4")
    ]
    return bool(np.allclose(found, 4, rtol=1e-9, atol=0))


def twice_the_peak_changes_nothing(point: Point) -> bool:
    gpu = gpu_at(point)
    faster = replace(gpu, bf16=replace(gpu.bf16, value=2 * gpu.peak_flops))
    return float(computed(point, faster).throughput) == float(computed(point).throughput)


def peak(point: Point) -> float:
    return gpu_at(point).peak_flops


def bandwidth(point: Point) -> float:
    return gpu_at(point).hbm_bandwidth


H100, A100, H200 = {"gpu": "h100"}, {"gpu": "a100"}, {"gpu": "h200"}
B1, B64, B256 = {"tokens": 1}, {"tokens": 64}, {"tokens": 256}

FACTS: dict[str, Callable[[Point], float | bool]] = {
    "gpu.ridge_point": lambda point: gpu_at(point).ridge_point,
    "qkv_proj.arithmetic_intensity": intensity("qkv_proj"),
    "attention.arithmetic_intensity": intensity("attention"),
    "elementwise.arithmetic_intensity": intensity("elementwise"),
    "arithmetic_intensity": total("total_intensity"),
    "peak_share": total("peak_share"),
    "1 - peak_share": lambda point: 1 - total("peak_share")(point),
    "throughput": total("throughput"),
    "bytes_moved": total("total_bytes"),
    "flops": total("total_flops"),
    "qkv_proj.arithmetic_intensity(tokens=64) / qkv_proj.arithmetic_intensity(tokens=1)": between(
        intensity("qkv_proj"), B64, B1
    ),
    "throughput(tokens=256) / throughput(tokens=64) - 1": lambda point: (
        between(total("throughput"), B256, B64)(point) - 1
    ),
    "matmuls.share": share(*GROUPS["matmuls"]),
    "attention.share": share("attention"),
    "elementwise.share": share("elementwise"),
    "elementwise.share > attention.share": lambda point: share("elementwise")(point) > share("attention")(point),
    "gpu.ridge_point / attention.arithmetic_intensity": lambda point: (
        gpu_at(point).ridge_point / intensity("attention")(point)
    ),
    "gpu.peak_flops(gpu=h100) / gpu.peak_flops(gpu=a100)": between(peak, H100, A100),
    "gpu.hbm_bandwidth(gpu=h100) / gpu.hbm_bandwidth(gpu=a100)": between(bandwidth, H100, A100),
    "gpu.hbm_bandwidth(gpu=h200) / gpu.hbm_bandwidth(gpu=h100)": between(bandwidth, H200, H100),
    "throughput(gpu=h100) / throughput(gpu=a100)": between(total("throughput"), H100, A100),
    "time(tokens=128) / time(tokens=1)": between(total("total_time"), {"tokens": 128}, B1),
    'first(tokens, gate_proj.bound != "memory")': first_token_off_the_slope("gate_proj"),
    "everywhere(attention.arithmetic_intensity == 4)": everywhere_four,
    "16e9 byte / gpu.hbm_bandwidth": lambda point: 16e9 / bandwidth(point),
    "gpu.hbm_bandwidth / 16e9 byte": lambda point: bandwidth(point) / 16e9,
    "throughput(peak_scale=2) == throughput": twice_the_peak_changes_nothing,
}

UNITS = {"%": 0.01, "GiB": 2**30, "GFLOP": 1e9, "ms": 1e-3}
WORDS = {"sixty times": 60, "seventy times": 70}
# what the notes call approximate, and how far off it may be
WITHIN = {"about 700": 0.05, "sixty times": 0.05, "seventy times": 0.06, "about 200": 0.05, "around 300 tokens": 0.07}


def as_printed(value: float, text: str) -> str:
    """A value in SI, in the precision and unit of a text with one numeral."""
    numeral = re.search(r"\d[\d,]*(?:\.(\d+))?", text)
    assert numeral, text
    unit = next((size for name, size in UNITS.items() if re.search(rf"\d ?{name}(?![\w/])", text)), 1)
    return f"{value / unit:,.{len(numeral[1] or '')}f}"


@pytest.mark.parametrize("figure", PUBLISHED["figures"], ids=lambda figure: f"{figure['text']} {figure.get('at', '')}")
def test_a_published_figure_comes_out_to_its_printed_digit(figure):
    """What the ledger computes, rounded as printed, is what is printed; claims hold; 'about' is as near as said."""
    text = figure["text"]
    point = replace(DEFAULTS, **parsed(PUBLISHED["defaults"]) | parsed(figure.get("at", "")))
    value = FACTS[figure["fact"]](point)
    width = next((width for start, width in WITHIN.items() if text.startswith(start)), None)
    if isinstance(value, bool):
        assert value
    elif width is not None:
        said = WORDS.get(text) or float(re.search(r"\d+", text)[0])
        assert abs(value / said - 1) <= width
    else:
        assert as_printed(value, text) == re.search(r"\d[\d,.]*", text)[0]


def test_every_published_fact_is_computed_and_every_formula_is_used():
    """The table above has all the facts of the file and no other, and the file's defaults are the lesson's."""
    assert {figure["fact"] for figure in PUBLISHED["figures"]} == set(FACTS)
    assert replace(DEFAULTS, **parsed(PUBLISHED["defaults"])) == DEFAULTS
    assert len(PUBLISHED["figures"]) == 50


def test_the_test_itself_sees_a_wrong_figure():
    """A digit, a unit or a percent sign that is wrong is seen."""
    assert as_printed(1839.6, "1,840 tokens per second") == "1,840"
    assert as_printed(1838.4, "1,840 tokens per second") != "1,840"
    assert as_printed(0.1385, "14%") == "14"
    assert as_printed(16.3e9, "15.2 GiB") == "15.2"
    assert as_printed(16.3e9, "15.2 GB") != "15.2"


def test_the_notes_of_the_figures_hold():
    """What the notes say of neighbours: 711 at a thousand, the other rows at 64 and 256, the exact ratios."""

    def rounded(tokens: int) -> dict[str, int]:
        values = computed(replace(DEFAULTS, tokens=tokens)).arithmetic_intensity
        return {name: round(float(value)) for name, value in zip(KERNELS, values, strict=True)}

    assert rounded(1000)["qkv_proj"] == 711
    matmuls = ("qkv_proj", "out_proj", "gate_proj", "up_proj", "down_proj", "lm_head")
    assert [rounded(64)[name] for name in matmuls] == [62, 62, 63, 63, 63, 63]
    assert [rounded(256)[name] for name in matmuls] == [232, 228, 236, 236, 236, 240]
    assert round(between(intensity("qkv_proj"), B64, B1)(DEFAULTS)) == 62
    assert round(between(total("total_intensity"), B64, B1)(DEFAULTS)) == 11
    assert round(GPUS["h100"].ridge_point / 4) == 74
    assert round(GPUS["h100"].hbm_bandwidth / 16e9) == 209


# the cost model's own tables

CROSSOVERS = {"lm_head": 298, "gate_proj": 305, "up_proj": 305, "down_proj": 305, "qkv_proj": 312, "out_proj": 321}


@pytest.mark.parametrize("kernel", CROSSOVERS)
@pytest.mark.parametrize("phase", ["decode", "prefill"])
def test_the_matmuls_leave_the_slope_around_300_tokens(kernel, phase):
    """On an H100 each matmul leaves `memory` at its own number of tokens, in prefill as in decode."""
    point = replace(DEFAULTS, phase=phase)
    assert first_token_off_the_slope(kernel)(point) == CROSSOVERS[kernel]
    before = computed(replace(point, tokens=CROSSOVERS[kernel] - 1)).bound[KERNELS.index(kernel)]
    assert BOUNDS[int(before)] == "memory"


# coordinates . GiB, verdict
RESIDENT = [
    ("tokens=64", "87.3", "no"),
    ("tokens=256", "303.3", "no"),
    ("tokens=1024 context=512", "87.3", "no"),
    ("tokens=1024 context=512 weights=fp8", "80.2", "no"),
    ("tokens=1024 context=512 weights=int4", "76.7", "tight"),
    ("tokens=64 gpu=h200", "87.3", "fits"),
    ("tokens=256 gpu=h200", "303.3", "no"),
]


@pytest.mark.parametrize(("coordinates", "gibibytes", "verdict"), RESIDENT)
def test_what_has_to_stay_in_memory(coordinates, gibibytes, verdict):
    """Weights and cache in GiB, and whether the GPU has room for them."""
    point = replace(DEFAULTS, **parsed(coordinates))
    needed = resident_bytes(MODEL, point)
    assert f"{needed / GIB:.1f}" == gibibytes
    assert FITS[int(fits(needed, gpu_at(point)))] == verdict


@pytest.mark.parametrize(("context", "batch"), [(8192, 50), (512, 802)])
def test_the_largest_batch_on_an_h100(context, batch):
    """50 sequences fit an H100 at 8k of context, 802 at 512."""
    point = replace(DEFAULTS, context=context)
    assert int(largest_batch(MODEL, point, GPUS["h100"])) == batch


def test_the_nvidia_smi_totals():
    """What sheets call 80, 141 and 180 GB are 79.6, 140.4 and 179.1 GiB."""
    shown = {name: f"{gpu.memory_bytes / GIB:.1f}" for name, gpu in GPUS.items()}
    assert shown == {"a100": "80.0", "h100": "79.6", "h200": "140.4", "b200": "179.1"}


# GPU, batch, context . milliseconds of all rows but elementwise
BESIDE_MEASUREMENTS = [
    ("a100", 1, 8192, "10.02"),
    ("a100", 256, 512, "28.40"),
    ("h100", 1, 8192, "6.10"),
    ("h100", 64, 8192, "34.62"),
    ("h100", 256, 512, "13.35"),
    ("h200", 1, 8192, "4.26"),
    ("h200", 64, 8192, "24.16"),
    ("h200", 64, 512, "5.29"),
]


@pytest.mark.parametrize(("gpu", "tokens", "context", "milliseconds"), BESIDE_MEASUREMENTS)
def test_the_model_beside_measurements(gpu, tokens, context, milliseconds):
    """One decode step without its elementwise kernels, which were not measured."""
    costs = computed(replace(DEFAULTS, gpu=gpu, tokens=tokens, context=context))
    seconds = sum(float(costs.time[row]) for row, name in enumerate(KERNELS) if name != "elementwise")
    assert f"{seconds * 1e3:.2f}" == milliseconds


def test_a_short_attention_takes_less_than_a_microsecond_a_layer():
    """Attention at 1 × 512 on an H100 is modelled at 0.8 µs a layer, where 13 were measured."""
    costs = computed(replace(DEFAULTS, context=512))
    assert f"{float(costs.time[KERNELS.index('attention')]) / 36 * 1e6:.1f}" == "0.8"


@pytest.mark.parametrize(
    ("coordinates", "throughput"),
    [("tokens=1", "164"), ("tokens=1024 context=512", "19,609"), ("tokens=256 context=512", "18,319")],
)
def test_the_points_that_the_assumptions_start_from(coordinates, throughput):
    """The pass times that the table of assumptions is measured against."""
    assert f"{total('throughput')(replace(DEFAULTS, **parsed(coordinates))):,.0f}" == throughput


def test_a_hypothetical_gpu():
    """64 at 8k: twice the bandwidth doubles throughput, twice the peak changes nothing; at 512 it gives 1.6 %."""

    def gain(tokens: int, **factors: float) -> float:
        point, gpu = replace(DEFAULTS, tokens=tokens), GPUS["h100"]
        changed = replace(
            gpu,
            bf16=replace(gpu.bf16, value=gpu.peak_flops * factors.get("peak", 1)),
            bandwidth=replace(gpu.bandwidth, value=gpu.hbm_bandwidth * factors.get("bandwidth", 1)),
        )
        return float(computed(point, changed).throughput / computed(point).throughput) - 1

    assert gain(64, bandwidth=2) == 1
    assert gain(64, peak=2) == 0
    assert f"{gain(512, peak=2):.1%}" == "1.6%"


def test_the_lm_head_on_the_last_token_alone():
    """A prefill of 4,096 after 512 takes 6.3 % less, 42,916 tokens/s, with the LM head on its last token alone."""
    point = replace(DEFAULTS, phase="prefill", tokens=4096, context=512)
    rows = forward_pass(MODEL, point)
    last = forward_pass(MODEL, replace(point, tokens=1))[-1]
    whole = cost(rows, GPUS["h100"], 4096)
    # the embedding rows of the other 4,095 tokens are read all the same
    head = replace(last, bytes_moved=last.bytes_moved + 2 * 4095 * MODEL.hidden_size)
    short = cost([*rows[:-1], head], GPUS["h100"], 4096)
    assert f"{float(short.total_time / whole.total_time) - 1:.1%}" == "-6.3%"
    assert f"{float(short.throughput):,.0f}" == "42,916"
