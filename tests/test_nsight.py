"""Exports of Nsight Compute: both forms, every unit, and what can be wrong with them."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.errors import LessonErrors
from builder.grid import load_grid
from builder.measured import load_measured
from builder.nsight import COMPUTE, DRAM, DRAM_PARTS, MEMORY, TIME, Export, Profile, is_export, read_export, short_name
from tests.toys import ROOT, at, lesson_model, rows_of

SAMPLE = ROOT / "content" / "samples" / "nsight-compute.csv"
TENSOR = "sm__ops_path_tensor_src_bf16_dst_fp32"
FFMA, FADD, HFMA = (f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum" for op in ("ffma", "fadd", "hfma"))
NAME = "void gemm<int, 4>(float *, int)"


def raw(columns: dict[str, tuple[str, str]], *, units: bool = True) -> str:
    """A raw page with one kernel: metric → (unit, value)."""
    rows = [["ID", "Process ID", "Kernel Name", *columns], ["0", "1", NAME, *(value for _, value in columns.values())]]
    if units:
        rows.insert(1, ["", "", "", *(unit for unit, _ in columns.values())])
    return written(rows)


def details(*metrics: tuple[str, str, str], section: str = "GPU Speed Of Light Throughput") -> str:
    """A details page with one kernel: (metric, unit, value)."""
    heads = ["ID", "Process ID", "Kernel Name", "CC", "Section Name", "Metric Name", "Metric Unit", "Metric Value"]
    heads += ["Rule Name", "Rule Description"]
    rows = [["0", "1", NAME, "9.0", section, *metric, "", ""] for metric in metrics]
    rule = ["0", "1", NAME, "9.0", section, "", "", "", "SOLBottleneck", 'Memory is more, "heavily",\nutilized']
    return written([heads, *rows, rule])


def written(rows: Sequence[Sequence[str]]) -> str:
    """Rows as ncu writes them: all quoted, below its own lines."""
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return f'==PROF== Connected to process 1\nhello from my program, "{NAME}"\n{out.getvalue()}==PROF== Disconnected\n'


COUNTERS = {MEMORY: ("%", "78.50"), COMPUTE: ("%", "12.30")}


def one(text: str) -> Profile:
    """The only kernel of an export."""
    (kernel,) = read_export(text, "ncu.csv").kernels
    return kernel


def problems(text: str) -> list[str]:
    """What is wrong with an export, each with its place."""
    with pytest.raises(LessonErrors) as raised:
        read_export(text, "ncu.csv")
    return [str(error) for error in raised.value.errors]


def test_a_raw_page_has_a_row_a_kernel_below_a_row_of_units():
    """Fractions, seconds, bytes; the place is the line in the file, lines of the profiler counted."""
    kernel = one(raw({**COUNTERS, TIME: ("us", "1,412.50"), DRAM: ("Mbyte", "3.25")}))
    assert (kernel.id, kernel.name, kernel.line) == ("0", NAME, 5)
    assert (kernel.memory, kernel.compute) == (pytest.approx(0.785), pytest.approx(0.123))
    assert (kernel.time, kernel.bytes_moved) == (pytest.approx(1412.5e-6), pytest.approx(3.25e6))
    assert (kernel.flops, kernel.device, kernel.math) == (None, None, "bf16")


def test_a_details_page_has_a_row_a_metric():
    """The same kernel from labels; rows of rules are none, though a rule runs over lines."""
    kernel = one(
        details(
            ("DRAM Frequency", "Ghz", "2.62"),
            ("Duration", "us", "1,412.50"),
            ("Memory Throughput", "%", "78.50"),
            ("Compute (SM) Throughput", "%", "12.30"),
        )
    )
    assert (kernel.name, kernel.time) == (NAME, pytest.approx(1412.5e-6))
    assert (kernel.memory, kernel.compute) == (pytest.approx(0.785), pytest.approx(0.123))


@pytest.mark.parametrize(("memory", "compute"), [("SOL Memory", "SOL SM"), ("Memory [%]", "SM [%]")])
def test_older_labels_are_known(memory, compute):
    """What the two throughputs were called before."""
    kernel = one(details((memory, "%", "50"), (compute, "%", "20")))
    assert (kernel.memory, kernel.compute) == (0.5, 0.2)


def test_the_other_memory_throughput_is_none():
    """Memory Workload Analysis has a metric of the same name in bytes a second, before or after."""
    rows = [("Memory Throughput", "Gbyte/second", "812.30"), ("Memory Throughput", "%", "78.50")]
    for order in (rows, rows[::-1]):
        assert one(details(*order, ("Compute (SM) Throughput", "%", "1"))).memory == pytest.approx(0.785)


def test_metrics_by_name_come_in_the_long_form_too():
    """As `ncu --csv --metrics …` prints them."""
    rows = [(MEMORY, "%", "10"), (COMPUTE, "%", "90"), (f"{TENSOR}.sum", "", "8,000"), (DRAM, "byte", "1,000")]
    kernel = one(details(*rows, section="Command line profiler metrics"))
    assert (kernel.compute, kernel.flops, kernel.bytes_moved) == (0.9, 8000, 1000)


@pytest.mark.parametrize(
    ("unit", "seconds"),
    [("ns", 2e-9), ("nsecond", 2e-9), ("us", 2e-6), ("usecond", 2e-6), ("ms", 2e-3), ("msecond", 2e-3), ("s", 2.0)],
)
def test_units_of_time(unit, seconds):
    """In the words of new versions and of old ones."""
    assert one(raw({**COUNTERS, TIME: (unit, "2")})).time == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("unit", "size"), [("byte", 1.0), ("Kbyte", 1e3), ("Mbyte", 1e6), ("Gbyte", 1e9), ("Tbyte", 1e12)]
)
def test_units_of_bytes_are_decimal(unit, size):
    """Nsight counts a Kbyte as 1,000 bytes."""
    assert one(raw({**COUNTERS, DRAM: (unit, "2")})).bytes_moved == pytest.approx(2 * size)


def test_bytes_are_read_and_written_ones_where_there_is_no_sum():
    """Each in its own unit; one without the other says nothing."""
    read, write = DRAM_PARTS
    assert one(raw({**COUNTERS, read: ("Mbyte", "2"), write: ("Kbyte", "500")})).bytes_moved == pytest.approx(2.5e6)
    assert one(raw({**COUNTERS, read: ("Mbyte", "2")})).bytes_moved is None


def test_a_fused_multiply_add_is_two_flops_and_half_precision_works_on_pairs():
    """By hand: 100 adds, 10 FMAs, 1 packed FMA: 100 + 20 + 4."""
    columns = {FADD: ("inst", "100"), FFMA: ("inst", "10"), HFMA: ("inst", "1")}
    assert one(raw({**COUNTERS, **columns})).flops == 124


def test_an_instruction_is_counted_once():
    """By the SM and by its partitions it is the same one."""
    columns = {FFMA: ("inst", "10"), FFMA.replace("smsp", "sm"): ("inst", "10")}
    assert one(raw({**COUNTERS, **columns})).flops == 20


def test_tensor_operations_are_not_counted_by_their_parts_too():
    """A sum stands for its destinations and for both sparsities; parts without it are added."""
    on, off = (("", "3"), ("", "5"))
    parts = {f"{TENSOR}_sparsity_on.sum": on, f"{TENSOR}_sparsity_off.sum": off}
    assert one(raw({**COUNTERS, **parts})).flops == 8
    assert one(raw({**COUNTERS, **parts, f"{TENSOR}.sum": ("", "8")})).flops == 8
    assert one(raw({**COUNTERS, **parts, "sm__ops_path_tensor_src_bf16.sum": ("", "9")})).flops == 9


def test_integer_operations_are_no_flops():
    """INT8 tensor operations don't count."""
    assert one(raw({**COUNTERS, "sm__ops_path_tensor_src_int8.sum": ("", "9")})).flops is None


def test_fp8_operations_say_under_which_roof():
    """A kernel that multiplied in FP8 stands under that roof; one whose counter is 0 does not."""
    name = "sm__ops_path_tensor_src_fp8_dst_fp32.sum"
    assert one(raw({**COUNTERS, name: ("", "9")})).math == "fp8"
    assert one(raw({**COUNTERS, name: ("", "0")})).math == "bf16"


def test_what_was_counted_is_said():
    """Whether FLOPs are those of tensor cores, of other instructions, or of both."""

    def counted(*names: str) -> tuple[bool, bool]:
        export: Export = read_export(raw({**COUNTERS, **dict.fromkeys(names, ("", "1"))}), "ncu.csv")
        return export.tensor, export.instructions

    assert [counted(), counted(f"{TENSOR}.sum"), counted(FFMA), counted(f"{TENSOR}.sum", FFMA)] == [
        (False, False),
        (True, False),
        (False, True),
        (True, True),
    ]


@pytest.mark.parametrize("value", ["", "n/a", "N/A", "nan", "-"])
def test_a_metric_that_was_not_collected_is_absent(value):
    """Neither an error nor a zero."""
    assert one(raw({**COUNTERS, TIME: ("", value)})).time is None


def test_launches_keep_their_order_and_their_ids():
    """Metrics of launches may alternate; the same kernel twice is two launches."""
    text = details(("Memory Throughput", "%", "1"), ("Compute (SM) Throughput", "%", "2"))
    rows = [line for line in text.splitlines() if line.startswith('"0"') and "Throughput" in line.split('","')[5]]
    more = "\n".join(line.replace('"0"', '"1"', 1) for line in rows)
    kernels = read_export(f"{text}{more}\n", "ncu.csv").kernels
    assert [(kernel.id, kernel.memory) for kernel in kernels] == [("0", 0.01), ("1", 0.01)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM\n", "ncu.csv: there is no kernel in this export\n"),
        (raw(COUNTERS, units=False), "ncu.csv:4:1: the row of units is missing\n"),
        (raw({TIME: ("us", "1")}), "ncu.csv:3:1: no kernel has both counters"),
        (
            raw({**COUNTERS, TIME: ("fortnight", "1")}),
            f"ncu.csv:5:59: {TIME} has the unit 'fortnight'\n",
        ),
        (raw({**COUNTERS, TIME: ("us", "9,00")}), f"{TIME} is no number: '9,00'\n  hint: write decimals with a point"),
        (raw({**COUNTERS, TIME: ("us", "9,00")}), "LC_ALL=C"),
        (raw({**COUNTERS, TIME: ("us", "soon")}), f"{TIME} is no number: 'soon'\n"),
        (raw({**COUNTERS, TIME: ("us", "0")}), "the kernel took no time\n"),
        (raw({**COUNTERS, TIME: ("us", "-1")}), f"{TIME} is below 0: '-1'\n"),
        (raw({**COUNTERS, DRAM: ("byte", "1e-300")}), f"{DRAM} must be 0, or from 1e-09 to 1e+21: '1e-300'\n"),
        (raw({**COUNTERS, DRAM: ("byte", "1e21")}), f"{DRAM} must be 0, or from 1e-09 to 1e+21: '1e21'\n"),
        (raw(COUNTERS).replace('","', '";"'), "ncu.csv:3:5: semicolons separate the columns\n"),
        (raw(COUNTERS).replace(NAME, " ", 2).replace(" ", NAME, 1), "the kernel has no name\n"),
        ('"ID","Kernel Name"\n', "ncu.csv:1:1: there is nothing below the header\n"),
        ('"ID","Kernel Name","Metric Name"\n"0","a","b"\n', "the columns 'Metric Unit' and 'Metric Value' are missing"),
        ('"Kernel Name","Invocations","Metric Name","Average"\n"a","2","b","3"\n', "export without --print-summary"),
        (details(("Duration", "us", "1")).replace(NAME, "other", 2), "ID '0' was another kernel above\n"),
    ],
)
def test_what_is_wrong_with_an_export_is_told_with_a_remedy(text, told):
    """At file:line:column, with a hint."""
    assert told in "\n".join(problems(text)) + "\n"
    assert all("\n  hint: " in problem for problem in problems(text))


def test_everything_wrong_comes_in_one_run():
    """Three bad cells of one row are three errors, in the order of their places."""
    columns = {MEMORY: ("%", "a"), COMPUTE: ("furlong", "1"), TIME: ("us", "-2")}
    assert [problem.partition(": ")[0] for problem in problems(raw(columns))] == [
        f"ncu.csv:5:{column}" for column in (43, 47, 51)
    ]


def test_an_export_is_known_by_its_header():
    """A serving benchmark is none, whatever it measures."""
    assert is_export(raw(COUNTERS))
    assert is_export(details(("Duration", "us", "1")))
    assert is_export("==PROF== Connected\n")
    assert not is_export("phase,tokens,context,gpu,weights,kv,ms\n")


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void at::native::reduce_kernel<512, 1, at::Op<float>>(at::Op<float>)", "reduce_kernel"),
        ("void flash::flash_fwd_kernel<Traits<128, 64>, true>(flash::Params)", "flash_fwd_kernel"),
        ("(anonymous namespace)::softmax(float *)", "softmax"),
        ("nvjet_tst_64x64_TNT", "nvjet_tst_64x64_TNT"),
        ("</script><b>", "</script><b>"),
        ("<unnamed>::f()", "f"),
    ],
)
def test_a_kernel_has_a_name_of_its_own(name, short):
    """Without what surrounds it; never empty."""
    assert short_name(name) == short


def test_the_sample_is_made_of_the_ledger_and_of_measured_times():
    """Its story: FLOPs and bytes by the ledger, a layer's share of the measured step at 64 × 8k on the H100."""
    kernels = {short_name(kernel.name): kernel for kernel in read_export(SAMPLE.read_text("utf-8"), "x").kernels}
    model, grid_step = lesson_model(), at(tokens=64)
    rows = rows_of(model, grid_step)
    for name, row, launches in (
        ("flash_fwd_splitkv_kernel", "attention", model.layers),
        ("nvjet_tst_64x64_64x13_1x2_h_bz_TNT_qkv", "qkv_proj", model.layers),
        ("nvjet_tst_192x64_64x8_1x1_v_bz_TNT_lm_head", "lm_head", 1),
    ):
        assert kernels[name].flops == rows[row].flops / launches
        assert kernels[name].bytes_moved == pytest.approx(float(rows[row].bytes_moved) / launches, rel=1e-3)
    step = next(step for step in load_measured(ROOT, load_grid(ROOT)) if step.point == grid_step)
    assert kernels["flash_fwd_splitkv_kernel"].time == pytest.approx(step.time["attention"] / model.layers, rel=1e-4)
    linear = [kernels[name].time or 0 for name in kernels if name.endswith(("_qkv", "_out", "TNT_gate_up", "_down"))]
    assert sum(linear) * model.layers == pytest.approx(step.time["linear"], rel=1e-3)
    assert "no profiler ran" in SAMPLE.read_text("utf-8")


CELLS = st.sampled_from(
    ["0", "1", NAME, "", "%", "us", "Mbyte", "n/a", "9,00", "-1", "1e309", "7.5", "\x00", '"', ",", "\n", "é", ";"]
)


@given(st.lists(st.lists(CELLS, min_size=1, max_size=8), max_size=5), st.booleans())
def test_no_export_breaks_the_reader(rows, long):
    """Kernels, or LessonErrors: never anything else."""
    heads = ["ID", "Kernel Name", MEMORY, COMPUTE, TIME, DRAM, f"{TENSOR}.sum", FFMA]
    if long:
        heads = ["ID", "Process ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value"]
    text = "\n".join([",".join(heads), *(",".join(row) for row in rows)])
    found, wrong = 0, []
    try:
        found = len(read_export(text, "ncu.csv").kernels)
    except LessonErrors as problems:
        wrong = [error.path for error in problems.errors if error.hint]
    assert set(wrong) == (set() if found else {"ncu.csv"})
