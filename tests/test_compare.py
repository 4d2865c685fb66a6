"""A reader's own measurements: how they are read, what they say, and how that is told."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from builder import cli, compare, compare_report, report
from builder.compare import TOO_FAST, Compared, Measurement, Placed, place, read_measurements, region
from builder.errors import LessonErrors
from builder.grid import load_grid
from builder.measured import load_measured
from builder.nsight import Export, Profile
from builder.series import REGIONS
from tests.toys import DEFAULTS, ROOT, at, lesson_gpus, lesson_model, pass_of, toy_gpu

HEAD = (
    "phase,tokens,context,gpu,weights,kv,milliseconds,tokens_per_second,attention,model,name,dram_active,tensor_active"
)
GOOD = "decode,64,8k,h100,bf16,bf16,30.77,,,,,,"
SAMPLES = ROOT / "content" / "samples"
MODEL, GPUS = lesson_model(), lesson_gpus()
GRID = load_grid(ROOT)


def read(text: str) -> list[Measurement]:
    return read_measurements(text, "mine.csv", MODEL, {MODEL.name: MODEL}, GPUS, DEFAULTS)


def passes(*rows: str) -> list[Compared]:
    """Rows below HEAD, compared."""
    return [compare.compare(each) for each in read("\n".join([HEAD, *rows]))]


def problems(text: str) -> list[str]:
    """What is wrong with a file, each with its place."""
    with pytest.raises(LessonErrors) as raised:
        read(text)
    return [str(error) for error in raised.value.errors]


def lesson(*words: str) -> Result:
    """`lesson compare words…`, run here."""
    return CliRunner().invoke(cli.main, ["compare", *words])


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A good file of one row."""
    path = tmp_path / "mine.csv"
    path.write_text(f"{HEAD}\n{GOOD}\n", encoding="utf-8")
    return path


# what a measurement says


def test_a_measurement_is_held_against_exactly_its_point():
    """On the grid or off it: the ledger's own time, bytes and FLOPs."""
    for tokens, context in ((64, 8192), (37, 1111)):
        (found,) = passes(f"decode,{tokens},{context},h200,int4,fp8,10,,mqa,,,,")
        point = at(tokens=tokens, context=context, gpu="h200", weights="int4", kv="fp8", attention="mqa")
        costs = pass_of(MODEL, GPUS["h200"], point)
        assert found.measured.point == point
        assert found.model_time == costs.total_time
        assert found.ratio == 10e-3 / costs.total_time
        assert found.memory_share == pytest.approx(float(costs.total_bytes) / 10e-3 / 4.8e12)
        assert found.compute_share == pytest.approx(float(costs.total_flops) / 10e-3 / 989e12)


def test_tokens_per_second_are_a_time():
    """64 sequences in 32 ms are 2,000 tokens a second."""
    by_time, by_rate = passes("decode,64,8k,h100,bf16,bf16,32,,,,,,", 'decode,64,8k,h100,bf16,bf16,,"2,000",,,,,')
    assert by_rate.measured.time == by_time.measured.time == 0.032


def test_w8a8_is_held_against_the_peak_of_fp8():
    """The widest arithmetic of the pass, as the ledger's own share of peak."""
    (found,) = passes("decode,64,512,h100,w8a8,bf16,5,,,,,,")
    costs = pass_of(MODEL, GPUS["h100"], at(tokens=64, context=512, weights="w8a8"))
    assert found.compute_share == pytest.approx(float(costs.peak_share * costs.total_time) / 5e-3)


@pytest.mark.parametrize(
    ("memory", "compute", "name"),
    [
        (0.9, 0.1, "memory-bound"),
        (0.1, 0.9, "compute-bound"),
        (0.9, 0.9, "well fed"),
        (0.1, 0.1, "latency"),
        (0.5, 0.49, "memory-bound"),
        (0.49, 0.5, "compute-bound"),
        (1.0, 1.0, "well fed"),
        (1.01, 0.1, "too fast"),
        (0.1, 1.01, "too fast"),
    ],
)
def test_two_counters_have_four_regions_and_none_beyond_a_peak(memory, compute, name):
    """The lesson's quarters; more than all of a peak is a number to check."""
    assert region(memory, compute).name == name


def test_advice_is_that_of_the_lessons_figure():
    """Word for word, whatever the figure says."""
    for x, y, name, lines in REGIONS:
        assert (region(x, y).name, region(x, y).advice) == (name, " ".join(lines))


@pytest.mark.parametrize(("factor", "agrees"), [(0.49, False), (0.51, True), (1, True), (1.99, True), (2.01, False)])
def test_a_measurement_within_a_factor_of_two_agrees(factor, agrees):
    """On either side of the model. Attention alone keeps 64 at 8k below the quoted bandwidth at half the time."""
    (model,) = passes("decode,4096,512,h100,bf16,bf16,1,,,,,,")
    point = replace(model.measured, time=model.model_time * factor)
    found = compare.compare(point)
    possible = max(found.memory_share, found.compute_share) <= 1
    assert found.agrees == (agrees and possible)
    assert (1 / 2 <= found.ratio <= 2) == agrees


def test_a_pass_can_be_impossible_within_a_factor_of_two():
    """All the bytes in 0.7 of the model's time are more than the quoted bandwidth carries."""
    (model,) = passes("decode,1,8k,h100,bf16,bf16,1,,,,,,")
    found = compare.compare(replace(model.measured, time=model.model_time * 0.7))
    assert (found.region, found.agrees) == (TOO_FAST, False)


def test_only_counters_can_say_another_side_of_the_ridge():
    """Without them there is no answer; at the ridge both sides are touched."""
    alone, same, other, ridge = passes(
        "decode,64,8k,h100,bf16,bf16,30,,,,,,",
        "decode,64,8k,h100,bf16,bf16,30,,,,,0.9,0.1",
        "decode,64,8k,h100,bf16,bf16,30,,,,,0.1,0.9",
        "decode,64,8k,h100,bf16,bf16,30,,,,,0.5,0.48",
    )
    assert [each.same_side for each in (alone, same, other, ridge)] == [None, True, False, True]
    assert [each.measured_bound for each in (alone, same, other, ridge)] == [None, "memory", "compute", "ridge"]
    assert [each.agrees for each in (alone, same, other, ridge)] == [True, True, False, True]


def test_counters_decide_what_is_suggested():
    """Bytes over time say memory-bound; a counter that stays low says otherwise."""
    without, with_them = passes("decode,64,8k,h100,bf16,bf16,30,,,,,,", "decode,64,8k,h100,bf16,bf16,30,,,,,0.2,0.1")
    assert (without.region.name, with_them.region.name) == ("memory-bound", "latency")


def test_a_memory_counter_of_zero_has_no_side():
    """No division by it."""
    (found,) = passes("decode,64,8k,h100,bf16,bf16,30,,,,,0,0")
    assert (found.measured_bound, found.region.name) == (None, "latency")


@given(st.floats(1e-3, 1e6), st.integers(1, 4096), st.integers(1, 131072))
def test_twice_the_time_is_twice_the_ratio_and_half_the_shares(milliseconds, tokens, context):
    """By law, at any point."""
    once, twice = (
        compare.compare(Measurement(2, "", MODEL, GPUS["h100"], at(tokens=tokens, context=context), time))
        for time in (milliseconds / 1e3, milliseconds / 500)
    )
    assert twice.ratio == pytest.approx(2 * once.ratio)
    assert twice.memory_share == pytest.approx(once.memory_share / 2)
    assert twice.compute_share == pytest.approx(once.compute_share / 2)


# how it is read


def test_columns_come_in_any_order_and_case_under_short_names():
    """And what may be left out takes the lesson's default."""
    (found,) = read("MS,Tokens,phase,context,GPU,Weights,KV\n30.77,64,Decode,8k,H100,BF16,bf16\n")
    assert (found.point, found.time, found.model) == (at(tokens=64), 0.03077, MODEL)


def test_a_byte_order_mark_is_no_letter(mine):
    """As a spreadsheet writes it."""
    mine.write_bytes(b"\xef\xbb\xbf" + mine.read_bytes())
    assert lesson(str(mine)).exit_code == 0


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("train,1,8k,h100,bf16,bf16,3,,,,,,", "2:1: phase is none of its values: 'train'"),
        ("decode,many,8k,h100,bf16,bf16,3,,,,,,", "2:8: tokens is no number of tokens: 'many'"),
        ("decode,0,8k,h100,bf16,bf16,3,,,,,,", "2:8: tokens must be between 1 and 16,777,216, not 0"),
        ("decode,1,99999999,h100,bf16,bf16,3,,,,,,", "2:10: context must be between 0 and 16,777,216, not 99,999,999"),
        ("decode,1,0,h100,bf16,bf16,3,,,,,,", "2:10: decode needs a context of at least 1"),
        ("decode,1,8k,h10,bf16,bf16,3,,,,,,", "2:13: gpu 'h10' is not in content/gpus\n  hint: did you mean 'h100'?"),
        ("decode,1,8k,h100,fp4,bf16,3,,,,,,", "2:18: weights is none of its values: 'fp4'"),
        ("decode,1,8k,h100,bf16,int4,3,,,,,,", "2:23: kv is none of its values: 'int4'"),
        ("decode,1,8k,h100,bf16,bf16,3,,full,,,,", "2:31: attention is none of its values: 'full'"),
        ("decode,1,8k,h100,bf16,bf16,3,,,qwen,,,", "2:32: model 'qwen' is not in content/models"),
        ("decode,1,8k,a100,w8a8,bf16,3,,,,,,", "2:18: the A100 can't multiply in FP8"),
        ("decode,1,8k,,bf16,bf16,3,,,,,,", "2:13: gpu is empty"),
        ("decode,1,8k,h100,bf16,bf16,0,,,,,,", "2:28: milliseconds must be above 0, not 0"),
        ("decode,1,8k,h100,bf16,bf16,-3,,,,,,", "2:28: milliseconds must be above 0, not -3"),
        ("decode,1,8k,h100,bf16,bf16,1e-9,,,,,,", "2:28: milliseconds must be from 1e-06 to 1e+12, not 1e-9"),
        ("decode,1,8k,h100,bf16,bf16,,1e13,,,,,", "2:29: tokens_per_second must be from 1e-06 to 1e+12, not 1e13"),
        ("decode,1,8k,h100,bf16,bf16,,-3,,,,,", "2:29: tokens_per_second must be above 0"),
        ("decode,1,8k,h100,bf16,bf16,3 ms,,,,,,", "2:28: milliseconds is no number: '3 ms'"),
        ('decode,1,8k,h100,bf16,bf16,"3,7",,,,,,', "2:28: milliseconds is no number: '3,7'\n  hint: write decimals"),
        ("decode,1,8k,h100,bf16,bf16,nan,,,,,,", "2:28: milliseconds is no number: 'nan'"),
        ("decode,1,8k,h100,bf16,bf16,3,4,,,,,", "2:30: both milliseconds and tokens per second"),
        ("decode,1,8k,h100,bf16,bf16,,,,,,,", "2:29: nothing was measured"),
        ("decode,1,8k,h100,bf16,bf16,3,,,,,80,0.5", "2:34: dram_active must be from 0 to 1, not 80\n  hint: a fract"),
        ("decode,1,8k,h100,bf16,bf16,3,,,,,0.5,", "2:34: one counter without the other"),
        ("decode,1,8k,h100,bf16,bf16,3,,,,,,-0.1", "2:35: tensor_active must be from 0 to 1, not -0.1"),
    ],
)
def test_a_bad_cell_is_told_at_its_place_with_a_remedy(row, told):
    """One mistake, one error, at file:line:column."""
    (problem,) = problems(f"{HEAD}\n{row}\n")
    assert problem.startswith(f"mine.csv:{told}")


@pytest.mark.parametrize(
    ("head", "told"),
    [
        (
            "phase,token,context,gpu,weights,kv,ms",
            "mine.csv:1:7: unknown column 'token'\n  hint: did you mean 'tokens'?",
        ),
        ("phase,tokens,context,gpu,weights,ms", "mine.csv:1:1: the column 'kv' is missing"),
        ("phase,tokens,context,gpu,weights,kv", "mine.csv:1:1: there is no column with what was measured"),
        (
            "phase,tokens,context,gpu,weights,kv,ms,milliseconds",
            "mine.csv:1:40: the column 'milliseconds' stands twice",
        ),
        ("phase,tokens,context,gpu,weights,kv,ms,", "mine.csv:1:40: unknown column ''"),
        ("phase;tokens;context;gpu;weights;kv;ms", "mine.csv:1:6: semicolons separate the columns"),
    ],
)
def test_a_bad_header_is_told_before_any_row(head, told):
    """No row can be read under it, so none is complained about."""
    assert told in "\n".join(problems(f"{head}\na,b,c\n"))
    assert not [
        problem for problem in problems(f"{head}\n" + ",".join("x" for _ in head.split(","))) if ":2:" in problem
    ]


def test_everything_wrong_comes_in_one_run(mine):
    """Rows, cells and broken lines, in the order of their places; exit status 1, nothing on stdout."""
    mine.write_text(f"{HEAD}\ntrain,x,8k,h10,bf16,bf16,3,,,,,,\n\n# a comment\n{GOOD},\n{GOOD}\n", encoding="utf-8")
    result = lesson(str(mine))
    assert (result.exit_code, result.stdout) == (1, "")
    assert re.findall(r"mine\.csv:(\d+:\d+)", result.stderr) == ["2:1", "2:7", "2:12", "5:1"]
    assert result.stderr.endswith("4 errors\n")


ROWS = st.lists(
    st.sampled_from(
        ["decode", "prefill", "1", "8k", "0", "h100", "a100", "w8a8", "bf16", "-1", "1e309", "nan", "", '"', "é"]
    ),
    min_size=1,
    max_size=14,
)


@given(st.lists(ROWS, max_size=4), st.sampled_from([HEAD, HEAD.replace(",name", ""), "phase,ms", "", "#", "a;b"]))
def test_no_file_breaks_the_command(rows, head):
    """Measurements, or LessonErrors: never anything else; and what is read can be judged and told."""
    found, wrong = [], []
    try:
        found = read("\n".join([head, *(",".join(row) for row in rows)]))
    except LessonErrors as problems:
        wrong = [error.path for error in problems.errors]
    assert set(wrong) == (set() if found else {"mine.csv"})
    assert not found or compare_report.measurement_table([compare.compare(each) for each in found])


@given(st.binary(max_size=80))
def test_no_bytes_break_the_command(tmp_path_factory, data):
    """Any file at all: an exit status, and no traceback."""
    path = tmp_path_factory.mktemp("bytes") / "mine.csv"
    path.write_bytes(data)
    result = lesson(str(path))
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)


# kernels


def kernel(**known: Any) -> Profile:
    return replace(Profile("0", "gemm", 3), **known)


def placed(*kernels: Profile, **gpu: Any) -> list[Placed]:
    return place(Export(kernels, True, True), toy_gpu(**gpu))


def test_a_kernel_stands_under_the_roof_of_its_gpu():
    """By hand, on a machine of 100 FLOP/s and 10 byte/s: 80 FLOPs on 40 bytes in 5 s are 16 of 20 FLOP/s."""
    (found,) = placed(kernel(flops=80.0, bytes_moved=40.0, time=5.0))
    assert (found.arithmetic_intensity, found.achieved_flops, found.attainable_flops) == (2.0, 16.0, 20.0)
    assert (found.roof_share, found.bound, found.share) == (0.8, "memory", 1.0)


def test_past_the_ridge_the_peak_is_the_roof():
    """And a kernel that multiplied in FP8 has another, where there is one."""
    fp8 = replace(toy_gpu().bf16, value=200.0)
    one = kernel(flops=8000.0, bytes_moved=40.0, time=100.0)
    assert placed(one)[0].attainable_flops == 100
    assert placed(replace(one, math="fp8"))[0].attainable_flops == 100
    assert placed(replace(one, math="fp8"), fp8=fp8)[0].attainable_flops == 200


def test_what_an_export_lacks_stays_unknown():
    """No zero stands for it, and nothing is divided by it."""
    for known in ({}, {"flops": 1.0}, {"bytes_moved": 1.0}, {"flops": 0.0, "bytes_moved": 0.0, "time": 1.0}):
        (found,) = placed(kernel(**known))
        assert (found.arithmetic_intensity, found.roof_share, found.region) == (None, None, None)


def test_shares_are_of_the_time_of_all_kernels():
    """Those without a time take none."""
    found = placed(kernel(time=1.0), kernel(time=3.0), kernel())
    assert [each.share for each in found] == [0.25, 0.75, None]


def test_a_kernel_is_judged_by_its_counters():
    """A hair above 100 % is rounding; both low is inside the kernel, and no launch is to blame."""
    fed, low = placed(kernel(memory=1.004, compute=0.2), kernel(memory=0.1, compute=0.2))
    assert fed.region is not None
    assert low.region is not None
    assert fed.region.name == "memory-bound"
    assert low.region.name == "latency"
    assert "launches" not in low.region.advice


@pytest.mark.parametrize(
    ("device", "gpu"),
    [
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA H20", None),
        ("NVIDIA GB200", None),
        ("Tesla V100-SXM2-16GB", None),
        (None, None),
    ],
)
def test_an_export_may_name_its_gpu(device, gpu):
    """By whole words: a GB200 is no B200."""
    found = compare.gpu_of(Export((kernel(device=device),), True, True), GPUS)
    assert (found.id if found else None) == gpu


# how it is told


def test_the_sample_of_serving_is_what_was_measured():
    """Its measured rows are the steps of content/measured.toml, all of them; the others say that they are made up."""
    rows = read((SAMPLES / "serving.csv").read_text("utf-8"))
    real = [row for row in rows if not row.name.startswith("made up")]
    steps = load_measured(ROOT, GRID)
    assert [(row.point, row.name) for row in real] == [(step.point, step.engine) for step in steps]
    assert [row.time for row in real] == pytest.approx([step.total for step in steps])
    assert len(rows) - len(real) == 3
    assert "The last three are illustrative" in (SAMPLES / "serving.csv").read_text("utf-8")


def test_the_measured_steps_agree_and_the_made_up_ones_show_what_can_be_wrong():
    """The story of the sample."""
    found = [compare.compare(each) for each in read((SAMPLES / "serving.csv").read_text("utf-8"))]
    assert [each.agrees for each in found] == [True] * 9 + [False] * 2
    assert [each.region.name for each in found[8:]] == ["compute-bound", "too fast", "latency"]


def test_json_is_unrounded_and_in_si(mine):
    """What the ledger says of the same point; null where there is nothing."""
    (found,) = json.loads(lesson(str(mine), "--format", "json").stdout)["measurements"]
    told = report.document(MODEL, GPUS["h100"], at(tokens=64))
    assert (found["model_time"], found["measured_time"]) == (told["total"]["time"], 0.03077)
    assert (found["context"], found["bound"], found["same_side"]) == (8192, "memory", None)
    assert found["agrees"] is True


def test_csv_holds_what_json_holds(mine):
    """A line a measurement, and a kernel."""
    for path, key in ((mine, "measurements"), (SAMPLES / "nsight-compute.csv", "kernels")):
        rows = json.loads(lesson(str(path), "--format", "json").stdout)[key]
        read_back = list(csv.DictReader(io.StringIO(lesson(str(path), "--format", "csv").stdout)))
        told = [{name: "" if value is None else str(value) for name, value in row.items()} for row in rows]
        for row in told:
            row.update({name: value.lower() for name, value in row.items() if value in ("True", "False")})
        assert read_back == told


def test_another_model_is_measured_against_its_own_ledger(mine):
    """By --model, and row by row."""
    default, other = (
        json.loads(lesson(str(mine), *words, "--format", "json").stdout)["measurements"][0]
        for words in ((), ("--model", "llama-3.1-8b"))
    )
    assert (default["model"], other["model"]) == ("Qwen3-8B", "Llama-3.1-8B")
    assert default["model_time"] != other["model_time"]
    mine.write_text(f"{HEAD}\n{GOOD.replace(',,,,,', ',,,llama-3.1-8B,,')}\n", encoding="utf-8")
    (row,) = json.loads(lesson(str(mine), "--format", "json").stdout)["measurements"]
    assert row == other


def test_a_long_export_is_told_by_its_longest_kernels():
    """The table has the LONGEST, by time, and says how many it left out; names stay short."""
    many = placed(*(kernel(name=f"k{i}" + "x" * 90, time=float(i + 1), memory=0.9, compute=0.1) for i in range(30)))
    table = compare_report.kernel_table(many, Export((), False, False), toy_gpu())
    assert "30 kernels of Nsight Compute, under the roof of Toy" in table
    assert table.index("k29x") < table.index("k10x")
    assert "k9x" not in table
    assert "… and 10 that took less time: --format csv has all" in table
    assert max(len(line) for line in table.splitlines()) < 130


@pytest.mark.parametrize(
    ("tensor", "instructions", "told"),
    [(False, True, "Tensor cores were not counted"), (True, False, "FLOPs are those of tensor cores alone")],
)
def test_flops_that_were_not_counted_are_said(tensor, instructions, told):
    """A matmul without its tensor operations would look idle."""
    found = placed(kernel(flops=80.0, bytes_moved=40.0, time=5.0, memory=0.5, compute=0.5))
    assert told in compare_report.kernel_table(found, Export((), tensor, instructions), toy_gpu())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere.csv"], "does not exist"),
        ([str(SAMPLES / "serving.csv"), "--gpu", "h100"], "--gpu is for exports of Nsight Compute"),
        ([str(SAMPLES / "serving.csv"), "--model", "qwen3-8"], "did you mean 'Qwen3-8B'?"),
        ([str(SAMPLES / "nsight-compute.csv"), "--model", "Qwen3-8B"], "--model is for passes"),
        ([str(SAMPLES / "nsight-compute.csv"), "--gpu", "h10"], "did you mean 'h100'?"),
        ([str(SAMPLES / "serving.csv"), "--svg", "mine.csv"], "name a file that ends in .svg"),
        ([str(SAMPLES / "serving.csv"), "--svg", "nowhere/x.svg"], "in a folder that is there"),
        ([str(SAMPLES / "serving.csv"), "--format", "xml"], "'xml' is not one of"),
        ([], "Missing argument"),
    ],
)
def test_a_wrong_command_line_exits_with_2(words, told):
    """The reason on stderr, nothing on stdout."""
    result = lesson(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr


def test_a_measurement_that_disagrees_is_no_failure(mine):
    """Exit status 0 whatever the ratio."""
    mine.write_text(f"{HEAD}\n{GOOD.replace('30.77', '30770')}\n", encoding="utf-8")
    result = lesson(str(mine))
    assert result.exit_code == 0
    assert "0 of 1 agree" in result.stdout


def test_telling_loads_no_charts():
    """What draws is only loaded for --svg."""
    code = (
        "import sys; from click.testing import CliRunner; from builder import cli;"
        "CliRunner().invoke(cli.main, ['compare', 'content/samples/serving.csv']);"
        "sys.exit(str(['builder.compare' in sys.modules, sorted({'altair', 'vl_convert'} & set(sys.modules))]))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "[True, []]"


def test_the_readme_shows_what_the_command_prints():
    """Each of its console examples of `lesson compare`: every line of it, in order; … stands for what is left out."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = [
        block.splitlines()
        for block in re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        if block.startswith("$ lesson compare ")
    ]
    assert shown
    for command, *lines in shown:
        words = [str(ROOT / word) if word.startswith("content/") else word for word in command.split()[3:]]
        printed = iter(lesson(*words).stdout.splitlines())
        for line in lines:
            assert line == "…" or line in printed, line
