"""Sentences, labels and shares as the page says them, by hand on a toy GPU: 100 FLOP/s, 10 byte/s, a ridge of 10."""

from __future__ import annotations

from dataclasses import replace
from math import nextafter
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from builder import display
from builder.catalog import Sourced
from builder.display import Position, article, cell, chart_labels, fill, rough_percent, share_codes, verdict
from builder.kernels import KERNELS
from builder.roofline import COMPUTE, MEMORY, NO_BYTES, RIDGE, roof_of
from builder.units import GIB, show
from tests.toys import toy_gpu

MATMULS = ("qkv_proj", "out_proj", "gate_proj", "up_proj", "down_proj")


def roof(label: str = "H100") -> Any:
    """The roof of a toy with 64 GiB and a label."""
    return roof_of(toy_gpu(label=label, memory=Sourced(64.0 * GIB, "toy")), "bf16")


def position(**changes: Any) -> Position:
    """A decode of 8 where the matmuls take 60 %, attention 20 %, LM head 15 %, elementwise 5 %."""
    shares = {"attention": 0.2, "elementwise": 0.05, "lm_head": 0.15, **dict.fromkeys(MATMULS, 0.12)}
    shares |= {"gate_proj": 0.13, "qkv_proj": 0.11}
    intensity = {"attention": 2.0, "elementwise": 0.5, "lm_head": 4.4, **dict.fromkeys(MATMULS, 4.0)}
    at = Position("decode", 8, roof(), shares, intensity, dict.fromkeys(KERNELS, MEMORY), "fits", 12)
    for name in ("share", "intensity", "bound"):
        changes[name] = {**getattr(at, name), **changes.get(name, {})}
    return replace(at, **changes)


def attention_heavy(**changes: Any) -> Position:
    """The same with 75 % in attention."""
    shares = {"attention": 0.75, "elementwise": 0.05, "lm_head": 0.1, **dict.fromkeys(MATMULS, 0.02)}
    return position(**{"share": shares, **changes})


def text_of(at: Position) -> Any:
    """What the page would put into a slot, worked out from the numbers of the position."""
    shares = {**at.share, "matmuls": at.matmuls}
    resident, total = 87.26 * GIB, 3.1

    def text(slot: str) -> str:
        name, _, kind = slot.rpartition(".")
        if name == "gpu":
            return display.gpu_texts(at.roof)[slot]
        if kind == "rough":
            return rough_percent(shares[name])
        if kind == "arithmetic_intensity":
            return show(kind, total if name == "total" else at.intensity[name])[0]
        return {
            "tokens": f"{at.tokens:,}",
            "resident": show("resident_bytes", resident)[0],
            "largest_batch": f"{at.largest_batch:,}",
            "ridges_below": f"{at.ridges_below:.0f}",
        }[slot]

    return text


def said(at: Position) -> str:
    """Verdict and warning, filled."""
    return " ".join(fill(template, text_of(at)) for template in verdict(at) if template).replace("\u00a0", " ")


AT_THE_RIDGE = dict.fromkeys(MATMULS, RIDGE)
COMPUTING = dict.fromkeys(MATMULS, COMPUTE)

VERDICTS = {
    "attention far down the slope": (
        attention_heavy(),
        "Memory-bound: attention over the cache takes 75 % of the pass. "
        "At 2.00 FLOPs a byte it sits 5 times under the ridge.",
    ),
    "attention close under the ridge": (
        attention_heavy(intensity={"attention": 6.0}),
        "Memory-bound: attention over the cache takes 75 % of the pass. It runs at 6.00 FLOPs a byte; "
        "this H100 needs 10.",
    ),
    "attention at the ridge": (
        attention_heavy(phase="prefill", intensity={"attention": 9.7}, bound={"attention": RIDGE}),
        "At the ridge: attention over the prompt takes 75 % of the pass. It runs at 9.70 FLOPs a byte; "
        "this H100 needs 10.",
    ),
    "attention past the ridge": (
        attention_heavy(phase="prefill", intensity={"attention": 1613.6}, bound={"attention": COMPUTE}),
        "Compute-bound: attention over the prompt takes 75 % of the pass. It runs at 1,614 FLOPs a byte, "
        "past the ridge at 10.",
    ),
    "one token": (
        position(tokens=1),
        "Memory-bound: every weight is read for one token. 3.10 FLOPs a byte, where this H100 needs 10.",
    ),
    "many tokens": (
        position(tokens=1024),
        "Memory-bound: every weight is read for 1,024 tokens. 3.10 FLOPs a byte, where this H100 needs 10.",
    ),
    "nothing has half of the pass": (
        position(share={"attention": 0.45, "elementwise": 0.15, "lm_head": 0.05, **dict.fromkeys(MATMULS, 0.07)}),
        "Memory-bound: five matmuls take 35 % of the pass, attention 45 %. 3.10 FLOPs a byte, "
        "where this H100 needs 10.",
    ),
    "matmuls at the ridge": (
        position(bound=AT_THE_RIDGE, intensity={"gate_proj": 9.7}),
        "At the ridge: the matmuls run at 9.70 FLOPs a byte. From 10 on this H100 waits for arithmetic alone.",
    ),
    "matmuls past the ridge, attention on the slope": (
        position(bound=COMPUTING, intensity={"gate_proj": 30.0}),
        "Compute-bound: the matmuls run at 30.00 FLOPs a byte, past the ridge at 10. "
        "Attention stays on the slope, 20 % of the pass.",
    ),
    "matmuls and attention past the ridge": (
        position(phase="prefill", bound=COMPUTING | {"attention": COMPUTE}, intensity={"gate_proj": 30.0}),
        "Compute-bound: the matmuls run at 30.00 FLOPs a byte, past the ridge at 10. "
        "Elementwise stays on the slope, 5.0 % of the pass.",
    ),
    "it does not fit": (
        attention_heavy(fit="no", largest_batch=3),
        "Memory-bound: attention over the cache takes 75 % of the pass. It does not fit: needs 87.3 GiB; "
        "an H100 has 64.0. A batch of 3 would.",
    ),
    "not one would fit": (
        position(fit="no", largest_batch=0, roof=roof("B200")),
        "Memory-bound: every weight is read for 8 tokens. It does not fit: needs 87.3 GiB; a B200 has 64.0. "
        "Not one would.",
    ),
    "a prompt that does not fit": (
        position(phase="prefill", fit="no", bound=COMPUTING, intensity={"gate_proj": 30.0}, roof=roof("A100")),
        "Compute-bound: the matmuls run at 30.00 FLOPs a byte. It does not fit: needs 87.3 GiB; an A100 has 64.0.",
    ),
    "tight": (
        position(fit="tight", bound=AT_THE_RIDGE, intensity={"gate_proj": 9.7}),
        "At the ridge: the matmuls run at 9.70 FLOPs a byte. Tight: 87.3 of 64.0 GiB leaves no room for a runtime.",
    ),
}


@pytest.mark.parametrize("case", VERDICTS)
def test_the_verdict_says_what_binds_and_how_far_or_that_it_does_not_fit(case):
    """What binds, which kernel, how far from the ridge; where it doesn't fit, that instead of the distance."""
    at, sentence = VERDICTS[case]
    assert said(at) == sentence
    assert len(sentence) <= 141


def test_attention_is_held_against_the_ridge_of_its_own_arithmetic():
    """With W8A8 the matmuls multiply in FP8 under a roof twice as high; attention stays in BF16 and at its ridge."""
    gpu = toy_gpu(label="H100", memory=Sourced(64.0 * GIB, "toy"), fp8=Sourced(200.0, "toy"))
    w8a8 = roof_of(gpu, "w8a8")
    assert display.gpu_texts(w8a8)["gpu.ridge"] == "20"
    corner = {key: display.gpu_texts(w8a8)[key] for key in ("gpu.arithmetic", "gpu.bf16_ridge", "gpu.bf16_peak")}
    plain = display.gpu_texts(roof_of(gpu, "bf16"))
    assert corner == {"gpu.arithmetic": "fp8", "gpu.bf16_ridge": plain["gpu.ridge"], "gpu.bf16_peak": plain["gpu.peak"]}
    past = attention_heavy(roof=w8a8, phase="prefill", intensity={"attention": 15.0}, bound={"attention": COMPUTE})
    assert said(past).endswith("It runs at 15.00 FLOPs a byte, past the ridge at 10.")
    near = attention_heavy(roof=w8a8, phase="prefill", intensity={"attention": 9.7}, bound={"attention": RIDGE})
    assert said(near).endswith("It runs at 9.70 FLOPs a byte; this H100 needs 10.")
    far = attention_heavy(roof=w8a8)
    assert said(far).endswith("At 2.00 FLOPs a byte it sits 5 times under the ridge.")
    matmuls = position(roof=w8a8, bound=COMPUTING, intensity={"gate_proj": 30.0})
    assert "past the ridge at 20." in said(matmuls)
    assert said(position(roof=w8a8)).endswith("where this H100 needs 20.")


def test_half_of_the_pass_is_where_attention_takes_the_verdict():
    """Attention has the verdict from half of the pass on."""
    half = position(share={"attention": 0.5, "lm_head": 0.0, "elementwise": 0.0, **dict.fromkeys(MATMULS, 0.1)})
    less = replace(half, share={**half.share, "attention": 0.4999, "lm_head": 0.0001})
    assert "attention over the cache takes 50 %" in said(half)
    assert "every weight is read" in said(less)


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("H100", "an H100"),
        ("A100", "an A100"),
        ("L40S", "an L40S"),
        ("MI300X", "an MI300X"),
        ("RTX 6000", "an RTX 6000"),
        ("B200", "a B200"),
        ("GH200", "a GH200"),
        ("TPU", "a TPU"),
        ("V100", "a V100"),
    ],
)
def test_an_article_goes_by_the_sound_of_the_letter(label, text):
    """An H100, a B200."""
    assert article(label) == text


def test_a_label_with_braces_is_a_label():
    """What a GPU is called is never read as a slot: braces come out as they went in."""
    at = position(fit="no", roof=roof("{tokens} {"), largest_batch=0)
    assert "a {tokens} { has 64.0" in said(at)


def test_a_slot_takes_a_text_as_it_is():
    """Slots are filled once, left to right; what fills them isn't filled again."""
    assert fill("{a} and {b.c}{a}", {"a": "{b.c}", "b.c": "x"}.__getitem__) == "{b.c} and x{b.c}"
    assert fill("none", {}.__getitem__) == "none"


# shares


def direct(share: float) -> tuple[str, str]:
    """The cell and the rough text of a share, formatted from the share itself by the table of units."""
    digits, unit = show("share", share)
    assert unit == "%"
    rough = digits if digits.startswith("<") or float(digits) < 10 else f"{share / 0.01:.0f}"
    if rough == "100" and share <= 1 - 5e-10:
        rough = min(digits, "99.9", key=float)
    return digits, f"{rough}\u00a0%".replace(" ", "\u00a0")


def share_code(share: float) -> int:
    """The code of one share."""
    return int(share_codes(np.asarray([share]))[0])


def by_code(share: float) -> tuple[str, str]:
    """The two texts as the page looks them up."""
    code = share_code(share)
    return display.SHARE_TEXTS[code], display.ROUGH_TEXTS[code]


@given(st.floats(0, 1))
@example(0.0)
@example(5e-324)
@example(1.0)
@example(0.99949999)
@example(0.9995)
def test_a_share_looked_up_reads_as_one_formatted(share):
    """Any share's code leads to the text that formatting the share gives."""
    assert by_code(share) == direct(share)


def test_every_edge_of_rounding_is_an_edge_of_a_code():
    """On every edge where a rounding turns, and one float to either side of it, code and formatting agree."""
    for step in range(2001):
        edge = step / 2000
        for share in (nextafter(edge, 0), edge, nextafter(edge, 1), edge * (1 - 1e-12), min(edge * (1 + 1e-12), 1)):
            assert by_code(share) == direct(share), share


@given(st.integers(0, 10_000), st.integers(1, 10_000))
def test_a_share_that_is_a_fraction_of_counts_reads_as_formatted(part, rest):
    """Fractions of whole numbers hit edges exactly; they agree too."""
    share = part / (part + rest)
    assert by_code(share) == direct(share)


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_has_no_smaller_code(a, b):
    """Codes rise with shares, so that bars and sorted rows do."""
    low, high = sorted((a, b))
    assert share_code(low) <= share_code(high)


def test_a_sum_of_shares_just_over_one_is_all():
    """Rounding may lift a sum of shares over 1: it is still 100 %."""
    assert by_code(1.0000000000000002) == ("100.0", "100\u00a0%")
    assert by_code(-0.0) == ("0", "0\u00a0%")


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0 %"),
        (0.0004, "< 0.1 %"),
        (0.0006, "0.1 %"),
        (0.0744, "7.4 %"),
        (0.0994, "9.9 %"),
        (0.0996, "10 %"),
        (0.8304, "83 %"),
        (0.9949, "99 %"),
        (0.995, "99.5 %"),
        (0.9987, "99.9 %"),
        (0.9996, "99.9 %"),
        (1, "100 %"),
    ],
)
def test_a_sentence_says_a_share_in_two_digits(share, text):
    """Two digits in a sentence, with a no-break space; never 0.0 %, and 100 % only of what is all."""
    assert rough_percent(share) == text.replace(" ", "\u00a0")


# cells


def test_a_row_without_bytes_shows_dashes():
    """No bytes: no intensity and nothing attainable, a dash each, and never a NaN."""
    assert cell("arithmetic_intensity", 1.0)(0.0) == "–"
    assert cell("attainable_flops", 1e12)(0.0) == "–"
    assert cell("bound", 1.0)(NO_BYTES) == "–"
    assert cell("bytes_moved", float(GIB))(0.0) == "0"


def test_every_bound_has_a_word_and_a_name():
    """The page tells a bound's name from its word, so no two share one."""
    assert display.BOUND_NAMES == {
        "memory": "memory",
        "ridge": "at the ridge",
        "compute": "compute",
        "none": "–",
    }
    assert [cell("bound", 1.0)(code) for code in (MEMORY, RIDGE, COMPUTE)] == ["memory", "at the ridge", "compute"]


def test_work_turns_to_teraflops_at_five():
    """GFLOP below 5 TFLOP of matmuls, TFLOP from there."""
    assert display.work_unit(4.999e12) == (1e9, "GFLOP")
    assert display.work_unit(5e12) == (1e12, "TFLOP")


# the labels of the dots


def labelled(at: Position) -> dict[str, tuple[str, str]]:
    """Labels, filled."""
    found = chart_labels(at)
    return {
        kernel: tuple(fill(text, text_of(at)).replace("\u00a0", " ") for text in texts)  # type: ignore[misc]
        for kernel, texts in found.items()
    }


def test_the_largest_is_named_first_and_coincident_dots_are_one_label():
    """LM head lies on the matmuls: one label, headed by the largest kernel. Attention apart has one of its own."""
    at = position(share={"attention": 0.02, "gate_proj": 0.31})
    assert labelled(at) == {
        "gate_proj": ("gate 31 %", "five matmuls 78 %, LM head 15 %"),
        "attention": ("attention 2.0 %", ""),
        "elementwise": ("elementwise 5.0 %", ""),
    }


def test_dots_that_lie_apart_are_labelled_apart():
    """Each group takes along only what lies on it."""
    at = position(intensity={"lm_head": 8.0}, share={"gate_proj": 0.31})
    labels = labelled(at)
    assert labels["gate_proj"] == ("gate 31 %", "five matmuls 78 %")
    assert labels["lm_head"] == ("LM head 15 %", "")


def test_attention_as_the_largest_says_that_the_batch_does_not_move_it():
    """In decode attention's intensity is the same whatever the batch; in prefill it isn't."""
    assert labelled(attention_heavy())["attention"] == ("attention 75 %", "at 2.00 whatever the batch")
    assert labelled(attention_heavy(phase="prefill"))["attention"] == ("attention 75 %", "")


def test_attention_on_the_matmuls_shares_their_label():
    """Attention that coincides with the matmuls is named with them, whichever weighs more."""
    labels = labelled(position(intensity={"attention": 4.2}))
    assert labels["attention"] == ("attention 20 %", "five matmuls 60 %, LM head 15 %")
    assert "gate_proj" not in labels
    assert "lm_head" not in labels


def test_a_large_lm_head_heads_the_label_of_its_matmuls():
    """The LM head as the largest kernel keeps the matmuls below it."""
    at = position(share={"lm_head": 0.4, "attention": 0.005})
    assert labelled(at)["lm_head"] == ("LM head 40 %", "five matmuls 60 %")
    assert "attention" not in labelled(at)


def test_under_one_percent_nothing_but_elementwise_is_named():
    """Under 1 % only the elementwise row has a name, without its share."""
    at = position(
        share={"attention": 0.0099, "lm_head": 0.009, "elementwise": 0.0099, "gate_proj": 0.5},
        intensity={"lm_head": 8.0},
    )
    assert labelled(at).keys() == {"gate_proj", "elementwise"}
    assert labelled(at)["elementwise"] == ("elementwise", "")
    louder = replace(at, share={**at.share, "attention": 0.01})
    assert labelled(louder)["attention"] == ("attention 1.0 %", "")


def test_elementwise_as_the_largest_is_named_with_its_share():
    """A pass that norms rule says so."""
    at = position(share={"elementwise": 0.9, "attention": 0.0, "lm_head": 0.0, **dict.fromkeys(MATMULS, 0.02)})
    assert labelled(at)["elementwise"] == ("elementwise 90 %", "")
    assert at.largest == "elementwise"


def test_the_first_of_equals_is_the_largest():
    """Gate and up cost the same: gate is named."""
    at = position(share={"gate_proj": 0.2, "up_proj": 0.2, "attention": 0.1})
    assert at.largest == "gate_proj"


def test_a_position_without_attention_bytes_is_no_ridge_below():
    """No intensity, no distance: 0 and not infinity."""
    assert position(intensity={"attention": 0.0}).ridges_below == 0
    assert position().ridges_below == 5
