"""What a pass costs: by hand, and by the laws that FLOPs and bytes obey."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.errors import LessonError
from builder.kernels import KERNEL_LABELS, KERNELS
from builder.ledger import (
    ATTENTIONS,
    GROUPS,
    MOST_TOKENS,
    PHASES,
    Point,
    attention,
    elementwise,
    forward_pass,
    matmul,
    storage,
)
from builder.units import KV_DTYPES
from tests.toys import QWEN3_8B, at, lesson_model, model_from, rows_of, toy_model

# the choices that leave the arithmetic in BF16; W8A8 has tests of its own
WEIGHT_ONLY = ("bf16", "fp8", "int4")

MATMULS = ("qkv_proj", "out_proj", "gate_proj", "up_proj", "down_proj", "lm_head")

tokens_axis = st.integers(min_value=1, max_value=8192)
context_axis = st.integers(min_value=1, max_value=131072)


@st.composite
def models(draw):
    """Small models of every shape: head_dim free, KV heads dividing the heads, tied or not, q/k-norm or not."""
    kv_heads = draw(st.integers(1, 8))
    size = st.integers(1, 512)
    return toy_model(
        layers=draw(st.integers(1, 9)),
        hidden_size=draw(size),
        intermediate_size=draw(size),
        heads=kv_heads * draw(st.integers(1, 8)),
        kv_heads=kv_heads,
        head_dim=draw(st.integers(1, 128)),
        vocab_size=draw(size),
        tied=draw(st.booleans()),
        qk_norm=draw(st.booleans()),
    )


@st.composite
def points(draw, phases=PHASES):
    """Any point of the bench; the GPU is none of the ledger's business."""
    return Point(
        phase=draw(st.sampled_from(phases)),
        tokens=draw(tokens_axis),
        context=draw(context_axis),
        gpu="h100",
        weights=draw(st.sampled_from(WEIGHT_ONLY)),
        kv=draw(st.sampled_from(KV_DTYPES)),
        attention=draw(st.sampled_from(ATTENTIONS)),
    )


# by hand


def test_a_matmul_of_two_by_three_by_five():
    """2 tokens × [3 in, 5 out]: 60 FLOPs; 15 weights of 2 bytes, 6 inputs and 10 outputs of 2 bytes: 62 bytes."""
    assert matmul(2, 3, 5, storage("bf16")) == (60, 62)
    assert matmul(2, 3, 5, storage("fp8")) == (60, 47)
    assert matmul(2, 3, 5, storage("int4")) == (60, 39.5)
    assert matmul(2, 3, 5, storage("w8a8")) == (60, 41)


def test_attention_of_the_toy_in_decode():
    """2 layers × 2 heads of 3: each of 4 sequences scores and sums 5 entries, 4·2·6·20 FLOPs, 2·2·3·20 elements."""
    assert attention(toy_model(), "decode", 4, 5, 16) == (960, 480)
    assert attention(toy_model(), "decode", 4, 5, 8) == (960, 240)


def test_attention_of_the_toy_in_prefill():
    """4 new tokens behind 5 cached: 6 + 7 + 8 + 9 = 30 entries scored, 9 read once."""
    assert attention(toy_model(), "prefill", 4, 5, 16) == (4 * 2 * 6 * 30, 2 * 2 * 3 * 9 * 2)


def test_the_whole_toy_by_hand():
    """All eight rows of a decode of 2 tokens over 5 entries in BF16: H 4, q 6, v 3, I 5, V 7, 2 layers."""
    rows = rows_of(toy_model(), at(tokens=2, context=5))
    assert {name: (row.flops, row.bytes_moved) for name, row in rows.items()} == {
        # 4 → 6 + 2·3 = 12: 2·2·4·12 = 192 FLOPs a layer; 48 weights, 2·(4 + 12) elements: 96 + 64 bytes
        "qkv_proj": (384, 320),
        "attention": (4 * 2 * 6 * 10, 2 * 2 * 3 * 10 * 2),
        # 6 → 4: 96 FLOPs; 24 weights, 20 elements: 48 + 40 bytes
        "out_proj": (192, 176),
        # 4 → 5: 80 FLOPs; 20 weights, 18 elements: 40 + 36 bytes
        "gate_proj": (160, 152),
        "up_proj": (160, 152),
        "down_proj": (160, 152),
        # a layer and token: 8·4 + 2·4 + 3·5 = 55 FLOPs; 10·4 + 2·6 + 4·3 + 3·5 = 79 elements
        "elementwise": (220, 2 * 2 * 79 * 2),
        # 4 → 7: 112 FLOPs; 28 weights, 22 elements, and 8 of the embedding rows: 56 + 44 + 16 bytes
        "lm_head": (112, 116),
    }


def test_qk_norm_costs_four_flops_an_element_and_no_bytes():
    """q/k-norm adds 4(q + v) FLOPs a layer and token, and rides in a kernel that moves q and k anyway."""
    plain, normed = elementwise(toy_model(), 1), elementwise(toy_model(qk_norm=True), 1)
    assert (normed[0] - plain[0], normed[1] - plain[1]) == (2 * 4 * (6 + 3), 0)


def test_elementwise_of_qwen3_8b_is_24_and_22_hidden():
    """For Qwen3-8B elementwise is exactly 24H FLOPs and 22H elements a layer and token."""
    flops, moved = elementwise(lesson_model(), 1)
    assert (flops, moved) == (36 * 24 * 4096, 36 * 22 * 4096 * 2)


def test_rows_come_in_the_order_of_the_pass():
    """Eight rows, always, in the order in which the pass runs them; each has a label; groups are made of rows."""
    assert tuple(row.name for row in forward_pass(toy_model(), at())) == KERNELS
    assert set(KERNEL_LABELS) == set(KERNELS)
    assert set(GROUPS["matmuls"]) == set(MATMULS) - {"lm_head"}


# by law


@given(models(), points())
def test_double_the_tokens_double_the_matmuls_and_leave_the_weights(model, point):
    """Twice the tokens: twice the FLOPs and activation bytes of every matmul, the same weight bytes."""
    once, twice = rows_of(model, point), rows_of(model, replace(point, tokens=2 * point.tokens))
    none = rows_of(model, replace(point, tokens=0))
    for name in MATMULS:
        assert twice[name].flops == 2 * once[name].flops
        weights = none[name].bytes_moved
        assert twice[name].bytes_moved - weights == 2 * (once[name].bytes_moved - weights)
    assert twice["elementwise"].flops == 2 * once["elementwise"].flops
    assert twice["elementwise"].bytes_moved == 2 * once["elementwise"].bytes_moved


@given(models(), points())
def test_the_bytes_at_no_token_are_the_streamed_weights(model, point):
    """What the matmuls read before any token comes is every streamed weight, once, at its size."""
    rows = rows_of(model, replace(point, tokens=0))
    size = {"bf16": 2, "fp8": 1, "int4": 0.5}[point.weights]
    weights = model.with_attention(point.attention).streamed_parameters
    assert sum(rows[name].bytes_moved for name in MATMULS) == weights * size
    assert sum(rows[name].flops for name in MATMULS) == 0


@given(models(), points())
def test_matmul_flops_are_two_a_weight_and_token(model, point):
    """The six matmuls do 2 FLOPs for every streamed weight and token, whatever the dtype."""
    rows = rows_of(model, point)
    weights = model.with_attention(point.attention).streamed_parameters
    assert sum(rows[name].flops for name in MATMULS) == 2 * weights * point.tokens


@given(models(), points(phases=("decode",)))
def test_attention_intensity_is_constant_in_decode(model, point):
    """Attention's FLOPs per byte = 2 × query heads ÷ (KV heads × bytes per element) at every batch and context."""
    row = rows_of(model, point)["attention"]
    kv_heads = model.with_attention(point.attention).kv_heads
    size = {"bf16": 2, "fp8": 1}[point.kv]
    assert row.flops * kv_heads * size == row.bytes_moved * 2 * model.heads


@given(models(), points(phases=("prefill",)), st.integers(min_value=1, max_value=8191))
def test_prefill_in_two_chunks_has_the_flops_of_one(model, point, first):
    """A prompt in two chunks costs the FLOPs of one, to the last; only the weights and the cache are read twice."""
    first = min(first, point.tokens)
    rest = point.tokens - first
    whole = rows_of(model, point)
    one = rows_of(model, replace(point, tokens=first))
    two = rows_of(model, replace(point, tokens=rest, context=point.context + first))
    for name in KERNELS:
        assert whole[name].flops == one[name].flops + two[name].flops
        assert whole[name].bytes_moved <= one[name].bytes_moved + two[name].bytes_moved


@given(models(), points())
def test_prefill_of_one_token_is_decode_of_one_that_reads_its_own_entry(model, point):
    """One token behind n cached ones costs what a decode step over n + 1 entries does, row by row."""
    prefill = replace(point, phase="prefill", tokens=1)
    decode = replace(point, phase="decode", tokens=1, context=point.context + 1)
    assert forward_pass(model, prefill) == forward_pass(model, decode)


@given(models(), points())
def test_prefill_scores_what_a_loop_over_its_tokens_would(model, point):
    """Counted one token at a time: the i-th new token sees the cache, the new ones before it, and itself."""
    tokens = min(point.tokens, 200)
    row = rows_of(model, replace(point, phase="prefill", tokens=tokens))["attention"]
    seen = sum(point.context + i + 1 for i in range(tokens))
    assert row.flops == 4 * model.layers * model.q_width * seen


@given(models(), points())
def test_more_tokens_or_context_never_cost_less(model, point):
    """FLOPs and bytes rise with tokens and with context, in every row."""
    here = forward_pass(model, point)
    for more in (replace(point, tokens=point.tokens + 1), replace(point, context=point.context + 1)):
        for before, after in zip(here, forward_pass(model, more), strict=True):
            assert after.flops >= before.flops
            assert after.bytes_moved >= before.bytes_moved


@given(models(), points())
def test_smaller_weights_and_cache_change_bytes_alone(model, point):
    """A dtype changes bytes and never FLOPs; weights leave attention alone, the cache all others."""
    rows = {w: forward_pass(model, replace(point, weights=w)) for w in WEIGHT_ONLY}
    for bf16, fp8, int4 in zip(*rows.values(), strict=True):
        assert bf16.flops == fp8.flops == int4.flops
        if bf16.name in MATMULS:
            assert bf16.bytes_moved > fp8.bytes_moved > int4.bytes_moved
            assert bf16.bytes_moved - fp8.bytes_moved == 2 * (fp8.bytes_moved - int4.bytes_moved)
        else:
            assert bf16 == fp8 == int4
    wide, narrow = (rows_of(model, replace(point, kv=kv)) for kv in KV_DTYPES)
    assert wide.pop("attention").bytes_moved == 2 * narrow.pop("attention").bytes_moved
    assert wide == narrow


@given(
    models(),
    points(),
    st.lists(tokens_axis, min_size=1, max_size=6),
    st.lists(context_axis, min_size=1, max_size=6),
    st.sampled_from([np.int32, np.int64]),
)
def test_scalars_and_arrays_agree_exactly(model, point, tokens, context, dtype):
    """A grid is its points: every element of every row equals the scalar result, to the last bit."""
    grid = replace(point, tokens=np.array(tokens, dtype)[None, :], context=np.array(context, dtype)[:, None])
    shape = (len(context), len(tokens))
    rows = [
        (np.broadcast_to(row.flops, shape), np.broadcast_to(row.bytes_moved, shape))
        for row in forward_pass(model, grid)
    ]
    for i, c in enumerate(context):
        for j, t in enumerate(tokens):
            scalar = forward_pass(model, replace(point, tokens=t, context=c))
            for (flops, moved), row in zip(rows, scalar, strict=True):
                assert int(flops[i, j]) == row.flops
                assert float(moved[i, j]) == row.bytes_moved


def test_arrays_never_wrap_around():
    """At the far corner of what is allowed, where 64 bits are not enough, arrays still agree with Python's ints."""
    model = lesson_model()
    for phase in PHASES:
        corner = at(phase=phase, tokens=MOST_TOKENS, context=MOST_TOKENS)
        wide = replace(corner, tokens=np.array([1, MOST_TOKENS]), context=np.array([MOST_TOKENS], dtype=np.int32))
        scalars, arrays = forward_pass(model, corner), forward_pass(model, wide)
        assert scalars[1].flops > 2**63
        for scalar, array in zip(scalars, arrays, strict=True):
            last = array.flops[-1], array.bytes_moved[-1]
            assert last == pytest.approx((scalar.flops, scalar.bytes_moved), rel=1e-15)


def test_one_numpy_number_is_a_count_too():
    """An element taken out of an array costs what the int does."""
    for tokens in (np.int32(4096), np.int64(4096), np.array(4096)):
        rows = forward_pass(lesson_model(), at(tokens=tokens, context=np.int32(131072)))
        for row, scalar in zip(rows, forward_pass(lesson_model(), at(tokens=4096, context=131072)), strict=True):
            assert (row.flops, row.bytes_moved) == (scalar.flops, scalar.bytes_moved)


# what others got wrong


def test_the_cache_is_read_with_the_kv_heads_and_not_the_query_heads():
    """A decode step at 8k of Qwen3-8B reads 1.125 GiB of cache, with 8 KV heads; 32 would read four times that."""
    row = rows_of(lesson_model(), at())["attention"]
    assert row.bytes_moved == 2 * 36 * 8 * 128 * 2 * 8192 == 1.125 * 2**30
    assert rows_of(lesson_model(), at(attention="mha"))["attention"].bytes_moved == 4 * row.bytes_moved
    assert rows_of(lesson_model(), at(attention="mha"))["attention"].flops == row.flops


def test_head_dim_is_the_files_and_not_hidden_divided_by_heads(tmp_path):
    """Qwen3-32B has 64 heads of 128 at hidden 5,120: widths of 8,192 and 1,024, where 5,120 ÷ 64 would give 80."""
    shape = {
        "hidden_size": 5120,
        "intermediate_size": 25600,
        "num_hidden_layers": 64,
        "num_attention_heads": 64,
    }
    model = model_from(tmp_path, QWEN3_8B | shape)
    rows = rows_of(model, at())
    assert rows["qkv_proj"].flops == 64 * 2 * 5120 * (64 + 2 * 8) * 128
    assert rows["out_proj"].flops == 64 * 2 * 8192 * 5120
    assert rows["attention"].bytes_moved == 64 * 2 * 8 * 128 * 2 * 8192


def test_the_embedding_table_is_not_streamed():
    """A pass reads T rows of the embedding table, 2·T·H bytes: one token moves 15.1 GB of weights, not 16.4."""
    model = lesson_model()
    row = rows_of(model, at())["lm_head"]
    assert row.bytes_moved == 151936 * 4096 * 2 + 2 * (4096 + 151936) + 2 * 4096
    weights = sum(row.bytes_moved for name, row in rows_of(model, at(tokens=0)).items() if name in MATMULS)
    assert weights == 15_136_194_560
    assert weights + 2 * model.embedding_parameters == pytest.approx(16.38e9, rel=1e-3)


def test_tying_the_table_streams_it_once_as_the_head():
    """A tied table is the LM head: a pass costs the same tied or not."""
    assert forward_pass(toy_model(tied=True), at()) == forward_pass(toy_model(), at())


def test_activations_stay_bf16_whatever_weights_and_cache_are():
    """INT4 weights and an FP8 cache take nothing off the activations and the elementwise row."""
    small = rows_of(toy_model(), at(tokens=2, context=5, weights="int4", kv="fp8"))
    assert small["gate_proj"].bytes_moved == 2 * (20 * 0.5 + 36)
    assert small["elementwise"].bytes_moved == 2 * 2 * 79 * 2


# points


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"phase": "decod"}, "phase is none of its values: 'decod'"),
        ({"weights": "int8"}, "weights is none of its values: 'int8'"),
        ({"kv": "int4"}, "kv is none of its values: 'int4'"),
        ({"attention": "mla"}, "attention is none of its values: 'mla'"),
        ({"tokens": 0}, "tokens must be between 1 and 16,777,216, not 0"),
        ({"tokens": -1}, "tokens must be between 1 and 16,777,216, not -1"),
        ({"tokens": 2**24 + 1}, "tokens must be between 1 and 16,777,216, not 16,777,217"),
        ({"phase": "prefill", "context": -1}, "context must be between 0 and 16,777,216, not -1"),
        ({"context": 0}, "decode needs a context of at least 1: a new token reads its own cache entry"),
    ],
)
def test_a_point_outside_the_axes_is_refused(change, message):
    """A coordinate that is none of its axis is named, and decode over an empty cache does not exist."""
    with pytest.raises(LessonError) as caught:
        at(**change).check()
    assert caught.value.message == message


@pytest.mark.parametrize("point", [at(), at(context=1), at(phase="prefill", context=0), at(tokens=2**24)])
def test_a_point_on_the_axes_is_none_the_worse_for_a_check(point):
    """The default point, the smallest and the largest pass the check."""
    point.check()


def test_a_misspelt_coordinate_has_its_remedy():
    """A near miss gets the name that was meant, and decode without context the way out."""
    with pytest.raises(LessonError) as caught:
        at(phase="decod").check()
    assert caught.value.hint == "did you mean 'decode'?"
    with pytest.raises(LessonError) as caught:
        at(context=0).check()
    assert caught.value.hint == "use --context 1 or more, or --phase prefill"
