"""From rows to a pass: times, bounds, shares and memory, by hand on a toy GPU and by law."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from builder.assumptions import Assumptions
from builder.kernels import KERNELS
from builder.ledger import Kernel, Point, forward_pass
from builder.roofline import (
    BANDWIDTH_EFFICIENCY,
    BOUNDS,
    COMPUTE_EFFICIENCY,
    FITS,
    Pass,
    bound_of,
    cache_bytes_per_token,
    cost,
    fits,
    largest_batch,
    ratio,
    resident_bytes,
    weight_bytes,
)
from builder.units import GIB
from tests.test_ledger import models, points
from tests.toys import QWEN3_8B, at, lesson_gpus, lesson_model, model_from, pass_of, toy_gpu, toy_model

gpus = st.builds(
    lambda peak, bandwidth, memory: toy_gpu(
        bf16=replace(toy_gpu().bf16, value=peak),
        bandwidth=replace(toy_gpu().bandwidth, value=bandwidth),
        memory=replace(toy_gpu().memory, value=memory),
    ),
    st.floats(1, 1e18),
    st.floats(1, 1e15),
    st.floats(1, 1e13),
)


def one_row(flops: float, moved: float) -> Pass:
    """A pass of a single row on the toy GPU: 75 FLOP/s and 8 byte/s are what it reaches."""
    return cost([Kernel("row", flops, moved)], toy_gpu(), 1)


# by hand: 100 FLOP/s and 10 byte/s, a ridge of 10, times flip at 9.375


@pytest.mark.parametrize(
    ("flops", "moved", "time", "bound", "attainable"),
    [
        (75, 8, 1.0, "ridge", 93.75),  # 9.375 FLOP/byte: both take a second
        (150, 8, 2.0, "compute", 100),
        (75, 80, 10.0, "memory", 9.375),
        (74.9, 8, 1.0, "memory", 93.625),
        (79.9, 8, 79.9 / 75, "ridge", 99.875),
        (80, 8, 80 / 75, "compute", 100),
        (0, 8, 1.0, "memory", 0),
        (75, 0, 1.0, None, 0),
        (0, 0, 0.0, None, 0),
    ],
)
def test_a_row_takes_the_longer_of_its_two_times(flops, moved, time, bound, attainable):
    """Time is the longer of FLOPs at 75 % of the peak and bytes at 80 % of the bandwidth."""
    costs = one_row(flops, moved)
    assert costs.time[0] == pytest.approx(time)
    assert BOUNDS[int(costs.bound[0])] == bound
    assert costs.attainable_flops[0] == pytest.approx(attainable)


def test_a_pass_is_the_sum_of_its_rows():
    """Two rows, one of each kind: 10 s of bytes and 2 s of FLOPs are 12 s, nothing overlaps."""
    costs = cost([Kernel("a", 75, 80), Kernel("b", 150, 8)], toy_gpu(), 24)
    assert costs.total_time == pytest.approx(12)
    assert costs.share == pytest.approx([10 / 12, 2 / 12])
    assert costs.throughput == pytest.approx(2)
    assert costs.total_flops == 225
    assert costs.total_bytes == 88
    assert costs.total_intensity == pytest.approx(225 / 88)
    assert costs.peak_share == pytest.approx(225 / 12 / 100)
    assert (costs.row("a"), costs.row("b")) == (0, 1)


def test_times_flip_at_277_on_an_h100():
    """On an H100 a row leaves `memory` at 277 FLOP/byte, where its times are equal, and is at the ridge until 295."""
    ridge = lesson_gpus()["h100"].ridge_point
    assert round(ridge * COMPUTE_EFFICIENCY / BANDWIDTH_EFFICIENCY) == 277
    intensities = [276, 277, 295, 296]
    assert [BOUNDS[int(code)] for code in bound_of(intensities, 1, ridge)] == ["memory", "ridge", "ridge", "compute"]


@pytest.mark.parametrize(
    ("launches", "moved", "short"),
    [(3, 119, True), (3, 121, False), (1, 39, True), (1, 41, False), (0, 39, True), (0, 41, False)],
)
def test_what_takes_less_than_a_launch_is_latency_bound(launches, moved, short):
    """At 8 MB/s a kernel's 5 µs are 40 bytes: three kernels need 120, and a row of no layer is one kernel."""
    gpu = toy_gpu(bandwidth=replace(toy_gpu().bandwidth, value=1e7))
    row = Kernel("row", 0, moved, launches=launches)
    assert cost([row], gpu, 1).latency_bound.tolist() == [short]
    # a gap that is assumed adds time and no work
    assert cost([row], gpu, 1, Assumptions(launch_gap=1.0)).latency_bound.tolist() == [short]


def test_short_attention_is_latency_bound_where_it_was_measured_so():
    """One sequence of 512 on an H100: 0.8 µs a layer by its bytes, 13 measured. At 8,192 its bytes take 12.5."""
    costs = [pass_of(lesson_model(), lesson_gpus()["h100"], at(context=context)) for context in (512, 8192)]
    layer = [float(each.time[each.row("attention")]) / lesson_model().layers for each in costs]
    assert [round(seconds * 1e6, 1) for seconds in layer] == [0.8, 12.5]
    assert [bool(each.latency_bound[each.row("attention")]) for each in costs] == [True, False]


@given(models(), gpus, points())
def test_work_that_is_slower_is_no_more_latency_bound(model, gpu, point):
    """On a GPU of half the speed no row becomes latency-bound, and no bound is one of what lasts."""
    slower = replace(gpu, bf16=replace(gpu.bf16, value=gpu.bf16.value / 2))
    slower = replace(slower, bandwidth=replace(gpu.bandwidth, value=gpu.bandwidth.value / 2))
    fast, slow = pass_of(model, gpu, point), pass_of(model, slower, point)
    assert not (slow.latency_bound & ~fast.latency_bound).any()
    kernels = [row.launches or 1 for row in forward_pass(model, point)]
    assert (fast.latency_bound == (fast.time / kernels < 5e-6)).all()


def test_the_memory_of_the_toy_by_hand():
    """Streamed 236 weights in INT4, the table and 20 norm weights in BF16; 24 bytes of cache a token."""
    model = toy_model()
    assert model.streamed_parameters == 2 * (4 * 12 + 6 * 4 + 3 * 20) + 28 == 292
    assert weight_bytes(model, "int4") == 292 / 2 + 28 * 2 + (2 * 2 * 4 + 4) * 2
    assert weight_bytes(toy_model(tied=True), "int4") == 292 / 2 + (2 * 2 * 4 + 4) * 2
    assert cache_bytes_per_token(model, "bf16") == 2 * 2 * 3 * 2
    assert cache_bytes_per_token(model, "fp8") == 2 * 2 * 3
    # decode of 2 sequences of 5 entries each; a prompt of 2 behind 5 cached
    assert resident_bytes(model, at(tokens=2, context=5, weights="int4")) == 242 + 24 * 10
    assert resident_bytes(model, at(phase="prefill", tokens=2, context=5, weights="int4")) == 242 + 24 * 7
    # 900 usable bytes less 242 are 658: 5 sequences of 120 bytes and a bit
    assert largest_batch(model, at(context=5, weights="int4"), toy_gpu()) == 5
    # 27 of 24 bytes; a count, also of many contexts at once
    assert largest_batch(model, at(context=1, weights="int4"), toy_gpu()) == 27
    batches = largest_batch(model, at(context=np.array([0, 1, 5]), weights="int4"), toy_gpu())
    assert (batches.tolist(), batches.dtype.kind) == ([27, 27, 5], "i")


@pytest.mark.parametrize(("resident", "verdict"), [(900, "fits"), (901, "tight"), (1000, "tight"), (1001, "no")])
def test_a_runtime_needs_a_tenth_of_the_memory(resident, verdict):
    """Up to 90 % of the memory fits, up to all of it leaves no room for a runtime."""
    assert FITS[int(fits(resident, toy_gpu()))] == verdict


def test_no_batch_fits_where_the_weights_dont():
    """The largest batch is 0, never negative, where the weights alone take more than there is."""
    assert largest_batch(lesson_model(), at(), toy_gpu()) == 0


# by law


def everything(costs: Pass) -> list[np.ndarray]:
    """All arrays of a pass."""
    return [np.asarray(getattr(costs, field.name)) for field in fields(costs) if field.name != "kernels"]


@given(models(), gpus, points())
def test_no_nan_and_no_infinity_anywhere(model, gpu, point):
    """Whatever model, GPU and point: every number of the pass and of its memory is finite and none is negative."""
    for numbers in everything(pass_of(model, gpu, point)):
        assert np.isfinite(numbers).all()
        assert (numbers >= 0).all()
    assert np.isfinite(resident_bytes(model, point))
    assert 0 <= int(largest_batch(model, point, gpu)) < 2**63 - 1


@pytest.mark.parametrize("gpu", ["a100", "h100", "h200", "b200"])
@pytest.mark.parametrize("phase", ["decode", "prefill"])
def test_the_lessons_grid_is_finite(gpu, phase):
    """Over the lesson's tokens and contexts, empty cache included, nothing is NaN or infinite."""
    tokens, context = np.array([[1, 64, 320, 4096]]), np.array([[0 if phase == "prefill" else 1], [128], [131072]])
    for weights in ("bf16", "fp8", "int4"):
        point = at(phase=phase, tokens=tokens, context=context, weights=weights)
        for numbers in everything(pass_of(lesson_model(), lesson_gpus()[gpu], point)):
            assert np.isfinite(numbers).all()


def test_nothing_at_all_divides_by_nothing():
    """Rows without FLOPs, without bytes, without either: no warning, no NaN, a zero and no bound."""
    costs = cost([Kernel("nothing", 0, 0), Kernel("no bytes", 5, 0), Kernel("no flops", 0, 5)], toy_gpu(), 0)
    assert all(np.isfinite(numbers).all() for numbers in everything(costs))
    assert [BOUNDS[int(code)] for code in costs.bound] == [None, None, "memory"]
    assert costs.arithmetic_intensity.tolist() == [0, 0, 0]
    empty = cost([Kernel("nothing", 0, 0)], toy_gpu(), 1)
    assert all(np.isfinite(numbers).all() for numbers in everything(empty))
    assert (empty.throughput, empty.peak_share, empty.total_intensity) == (0, 0, 0)
    assert empty.share.tolist() == [0]
    assert ratio([1, 0, 6], [0, 0, 3]).tolist() == [0, 0, 2]


@given(models(), gpus, points())
def test_shares_sum_to_one(model, gpu, point):
    """The shares of the rows are the whole pass."""
    costs = pass_of(model, gpu, point)
    assert costs.share.sum() == pytest.approx(1, rel=1e-12)
    assert costs.total_time == pytest.approx(costs.time.sum(), rel=1e-12)


@given(models(), gpus, points())
def test_the_bound_agrees_with_the_longer_time(model, gpu, point):
    """`memory` rows wait for bytes and `compute` rows for FLOPs; only in the band between is neither said."""
    costs = pass_of(model, gpu, point)
    compute = costs.flops / (COMPUTE_EFFICIENCY * gpu.peak_flops)
    memory = costs.bytes_moved / (BANDWIDTH_EFFICIENCY * gpu.hbm_bandwidth)
    for row in range(len(KERNELS)):
        name, quotient = BOUNDS[int(costs.bound[row])], costs.arithmetic_intensity[row] / gpu.ridge_point
        if name == "memory":
            assert memory[row] > compute[row] * (1 - 1e-12)
        elif name == "compute":
            assert compute[row] > memory[row]
            assert quotient >= 1 - 1e-12
        else:
            assert 0.75 / 0.80 - 1e-12 <= quotient < 1 + 1e-12
            assert compute[row] >= memory[row] * (1 - 1e-12)


@given(models(), gpus, points())
def test_no_row_beats_its_roof(model, gpu, point):
    """What a row reaches stays under what its intensity allows, and the pass under the peak."""
    costs = pass_of(model, gpu, point)
    assert (costs.flops <= costs.attainable_flops * costs.time * (1 + 1e-12)).all()
    assert (costs.attainable_flops <= gpu.peak_flops).all()
    assert costs.peak_share <= COMPUTE_EFFICIENCY * (1 + 1e-12)


@given(models(), gpus, points())
def test_time_rises_with_tokens_and_with_context(model, gpu, point):
    """More tokens or a longer context never make a pass shorter, nor its memory less, nor the largest batch larger."""
    here = pass_of(model, gpu, point)
    for more in (replace(point, tokens=point.tokens + 1), replace(point, context=point.context + 1)):
        assert (pass_of(model, gpu, more).time >= here.time).all()
        assert resident_bytes(model, more) > resident_bytes(model, point)
    longer = replace(point, context=2 * point.context)
    assert largest_batch(model, longer, gpu) <= largest_batch(model, point, gpu)


@given(models(), gpus, points())
def test_a_gpu_twice_as_fast_in_both_takes_half_the_time(model, gpu, point):
    """Twice the peak and twice the bandwidth: half the time, the same shares and bounds."""
    twice = replace(
        gpu,
        bf16=replace(gpu.bf16, value=2 * gpu.peak_flops),
        bandwidth=replace(gpu.bandwidth, value=2 * gpu.hbm_bandwidth),
    )
    slow, fast = pass_of(model, gpu, point), pass_of(model, twice, point)
    assert (fast.time * 2 == slow.time).all()
    assert (fast.share == slow.share).all()
    assert (fast.bound == slow.bound).all()


@given(models(), gpus, points(phases=("decode",)))
def test_the_largest_batch_fits_and_one_more_does_not(model, gpu, point):
    """The largest batch is the last that fits."""
    batch = int(largest_batch(model, point, gpu))
    assume(batch < 10**12)
    if batch:
        assert fits(resident_bytes(model, replace(point, tokens=batch)) * (1 - 1e-12), gpu) == 0
    assert fits(resident_bytes(model, replace(point, tokens=batch + 1)) * (1 + 1e-12), gpu) != 0


@given(
    models(),
    gpus,
    points(),
    st.lists(st.integers(1, 4096), min_size=1, max_size=3),
    st.lists(st.integers(1, 131072), min_size=1, max_size=3),
)
def test_scalars_and_arrays_agree_exactly(model, gpu, point, tokens, context):
    """Every number of a grid's Pass is the number of its point, to the last bit."""
    grid = replace(point, tokens=np.array(tokens)[None, :], context=np.array(context)[:, None])
    costs, resident = pass_of(model, gpu, grid), resident_bytes(model, grid)
    resident, batch = (
        np.broadcast_to(part, (len(context), len(tokens))) for part in (resident, largest_batch(model, grid, gpu))
    )
    for i, c in enumerate(context):
        for j, t in enumerate(tokens):
            scalar = replace(point, tokens=t, context=c)
            for one, many in zip(everything(pass_of(model, gpu, scalar)), everything(costs), strict=True):
                assert (one == many[..., i, j]).all()
            assert resident[i, j] == resident_bytes(model, scalar)
            assert batch[i, j] == largest_batch(model, scalar, gpu)


def test_a_pass_is_the_same_row_by_row_or_all_at_once():
    """A row's time depends on no other row."""
    rows, gpu = forward_pass(lesson_model(), at(tokens=64)), lesson_gpus()["h100"]
    together = cost(rows, gpu, 64)
    assert [float(cost([row], gpu, 64).time[0]) for row in rows] == together.time.tolist()


# what others got wrong


def test_a_sheets_gigabytes_are_not_gibibytes():
    """An H100 has 79.6 GiB, not 80: 64 sequences at 8k need 87.3 GiB, which is not 87.3 GB (81.3 GiB)."""
    gpus_of = lesson_gpus()
    totals = {name: round(gpus_of[name].memory_bytes / GIB, 1) for name in gpus_of}
    assert totals == {"a100": 80.0, "h100": 79.6, "h200": 140.4, "b200": 179.1}
    # 79.8 GiB would be under 80e9 × 2^30/1e9 but does not fit the card that is sold as 80 GB
    assert FITS[int(fits(79.8 * GIB, gpus_of["h100"]))] == "no"
    assert FITS[int(fits(79.5 * GIB, gpus_of["h100"]))] == "tight"


def test_peaks_are_dense_and_not_sparse():
    """A ridge from sparse peaks would be twice as high: 591 on an H100, where the lesson says 295."""
    ridges = {name: gpu.peak_flops / gpu.hbm_bandwidth for name, gpu in lesson_gpus().items()}
    assert {name: round(ridge) for name, ridge in ridges.items()} == {
        "a100": 153,
        "h100": 295,
        "h200": 206,
        "b200": 281,
    }
    for gpu in lesson_gpus().values():
        assert gpu.peak_flops in (312e12, 989e12, 2250e12)
        assert gpu.peak_flops_fp8 in (None, 1979e12, 4500e12)


def test_weight_only_quantization_leaves_the_peak_alone():
    """FP8 and INT4 weights are unpacked to BF16: the same FLOPs at the same peak, so the same compute-bound times."""
    gpu = lesson_gpus()["h100"]
    passes = [
        pass_of(lesson_model(), gpu, at(phase="prefill", tokens=4096, weights=w)) for w in ("bf16", "fp8", "int4")
    ]
    assert {float(costs.time[0]) for costs in passes} == {float(passes[0].time[0])}
    assert len({float(costs.total_time) for costs in passes}) == 1


def test_a_tied_table_is_there_once(tmp_path):
    """Qwen3-0.6B's table is its LM head: in memory once, at the weights' dtype."""
    shape = {
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "tie_word_embeddings": True,
    }
    model = model_from(tmp_path, QWEN3_8B | shape)
    assert weight_bytes(model, "bf16") == 2 * model.parameters == 2 * 596_049_920
    assert weight_bytes(model, "fp8") == model.parameters + model.small_parameters


def test_a_default_point_has_plain_numbers():
    """A scalar point gives 0-dimensional totals and one number a row."""
    costs = pass_of(lesson_model(), lesson_gpus()["h100"], Point("decode", 1, 8192, "h100", "bf16", "bf16", "gqa"))
    assert costs.time.shape == (8,)
    assert costs.total_time.shape == costs.throughput.shape == costs.peak_share.shape == ()
