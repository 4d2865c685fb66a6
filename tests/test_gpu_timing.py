"""The script that times kernels on a GPU, on a device that only pretends: its sums, its file, and what it refuses.

No GPU and no PyTorch is needed here. tests/gpu/torch_device.py, the part that talks to PyTorch, runs in the last test
where PyTorch is installed, on the CPU.
"""

from __future__ import annotations

import datetime
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builder.catalog import Model, load_gpus
from builder.errors import LessonError
from builder.grid import load_grid
from builder.measured import MEASURED_FILE, load_measured
from builder.roofline import resident_bytes
from tests.conftest import ROOT
from tests.gpu import time_kernels
from tests.gpu.time_kernels import (
    BUDGET,
    REPETITIONS,
    SETTINGS,
    WARM_UP,
    Timing,
    main,
    measure,
    points_of,
    refuse_other,
)

GRID, GPUS = load_grid(ROOT), load_gpus(ROOT)
MODEL = GRID.model
TODAY = datetime.date(2026, 1, 2)
H200_BYTES = int(139.8 * 2**30)  # as CUDA reports it


class FakeDevice:
    """A clock in ms that only launches and flushes move: a kernel takes a ms per GB of its weights or cache.

    Warm in L2, a kernel takes no time at all; launched before it is warmed up, a second more.
    """

    name, memory_bytes, versions = "NVIDIA H200", H200_BYTES, "PyTorch 9.9, CUDA 9, driver 9"

    def __init__(self, jitter: Callable[[int], float] = lambda count: 0.0) -> None:
        self.now, self.cold, self.waited, self.launched = 0.0, True, False, 0
        self.jitter = jitter
        self.shapes: list[tuple[Any, ...]] = []

    def _kernel(self, ms: float) -> Callable[[], None]:
        launches = 0

        def launch() -> None:
            nonlocal launches
            launches += 1
            self.launched += 1
            warm_up = 1000.0 if launches <= WARM_UP else 0.0
            self.now += (ms + self.jitter(launches) if self.cold else 0.0) + warm_up
            self.cold, self.waited = False, False

        return launch

    def linear(self, tokens: int, inputs: int, outputs: int) -> Callable[[], None]:
        self.shapes.append((tokens, inputs, outputs))
        return self._kernel(2 * inputs * outputs / 1e9)

    def attention(self, tokens: int, context: int, model: Model) -> Callable[[], None]:
        self.shapes.append((tokens, context, model.heads, model.kv_heads, model.head_dim))
        return self._kernel(4 * tokens * context * model.kv_heads * model.head_dim / 1e9)

    def flush(self) -> None:
        self.now, self.cold = self.now + 7.0, True

    def mark(self) -> float:
        return self.now

    def wait(self) -> None:
        self.waited = True

    def elapsed_ms(self, begin: float, end: float) -> float:
        assert self.waited, "times are read before the device is done"
        return end - begin

    def clocks(self) -> str:
        return "1980 MHz, 3201 MHz"


def timed(device: FakeDevice, *arguments: str, folder: Path, clock: Callable[[], float] = lambda: 0.0) -> str:
    """What a run on this device says."""
    return main(arguments, lambda *_: device, clock, lambda: TODAY, folder)


def test_a_kernel_is_timed_cold_and_warmed_up_and_without_the_flush() -> None:
    """3 ms cold: neither 0 from a warm L2, nor 7 more of the flush, nor the second of a first launch."""
    device = FakeDevice()
    assert measure(device, device._kernel(3.0)) == Timing(pytest.approx(3.0), pytest.approx(0.0, abs=1e-6))
    assert device.launched == WARM_UP + REPETITIONS


def test_the_median_stands_against_outliers_and_the_spread_tells_of_them() -> None:
    """One launch in four is 8 ms late: the median stays, and the middle half is told as it is."""
    device = FakeDevice(jitter=lambda count: 8.0 if count % 4 == 0 else 0.0)
    assert measure(device, device._kernel(3.0)).median == pytest.approx(3.0)
    assert Timing.of([1.0, 2.0, 3.0, 4.0, 50.0]) == Timing(3.0, 2.0)
    assert Timing.of([5.0, 4.0, 1.0, 2.0]) == Timing(3.0, 2.5)  # order doesn't matter; quartiles 1.75 and 4.25


def test_a_step_is_the_layers_times_the_medians_and_one_head(tmp_path: Path) -> None:
    """By hand, a ms per GB: the layers' 13.9 GB of weights, the cache of 64 × 8,192, and the LM head's 1.24 GB."""
    device = FakeDevice()
    (step,) = time_kernels.run(device, MODEL, [points_of(MODEL, GPUS["h200"], GRID.defaults)[7]], lambda: False)
    assert (step.point.tokens, step.point.context) == (64, 8192)
    layer = 4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 12288
    assert step.parts["linear"].median == pytest.approx(36 * 2 * layer / 1e9)
    assert step.parts["attention"].median == pytest.approx(36 * 64 * 8192 * 4096 / 1e9)
    assert step.parts["lm_head"].median == pytest.approx(2 * 4096 * 151936 / 1e9)
    assert device.shapes == [
        (64, 4096, 6144),
        (64, 4096, 4096),
        (64, 4096, 12288),
        (64, 4096, 12288),
        (64, 12288, 4096),
        (64, 8192, 32, 8, 128),  # five shapes above are the layer's matmuls; this one reads 8 heads for 32
        (64, 4096, 151936),
    ]


def test_there_are_a_dozen_points_and_those_of_the_cited_rows_are_among_them() -> None:
    """Twelve on an H200, all of which fit; what doesn't fit a smaller GPU is left out there."""
    assert len(SETTINGS) == len(set(SETTINGS)) == 12
    assert {(step.point.tokens, step.point.context) for step in load_measured(ROOT, GRID)} <= set(SETTINGS)
    points = {name: points_of(MODEL, gpu, GRID.defaults) for name, gpu in GPUS.items()}
    assert [(point.tokens, point.context) for point in points["h200"]] == list(SETTINGS)
    left_out = set(SETTINGS) - {(point.tokens, point.context) for point in points["h100"]}
    assert left_out == {(64, 8192), (1024, 512)}
    for name, gpu in GPUS.items():
        assert all(resident_bytes(MODEL, point) <= 0.9 * gpu.memory_bytes for point in points[name])


def test_the_file_is_one_that_the_builder_reads(tmp_path: Path) -> None:
    """Its rows through load_measured, in seconds; what they were measured with, beside them; cited rows as before."""
    cited = (ROOT / MEASURED_FILE).read_bytes()
    timed(FakeDevice(jitter=lambda count: count % 2 / 100), "--gpu", "h200", "--write", folder=tmp_path)
    text = (tmp_path / "measured_h200.toml").read_text(encoding="utf-8")
    (tmp_path / "content").mkdir()
    (tmp_path / MEASURED_FILE).write_text(text, encoding="utf-8")
    steps = load_measured(tmp_path, GRID)
    assert [(step.point.tokens, step.point.context) for step in steps] == list(SETTINGS)
    assert {(step.point.gpu, step.engine) for step in steps} == {("h200", "PyTorch 9.9, SDPA flash")}
    # 36 layers of five kernels that are 0.005 ms over what their weights take
    layer = 4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 12288
    assert steps[0].time["linear"] == pytest.approx((36 * 2 * layer / 1e9 + 36 * 5 * 0.005) / 1e3, abs=1e-6)
    for said in ("NVIDIA H200", "CUDA 9, driver 9", "2026-01-02", "backend flash", "1980 MHz, 3201 MHz"):
        assert said in text
    assert "added: 1.800 / 0.360 / 0.010 ms" in text  # half the launches 0.01 ms late, times 180, 36 and 1
    assert (ROOT / MEASURED_FILE).read_bytes() == cited


def test_the_same_times_give_the_same_bytes(tmp_path: Path) -> None:
    """Two runs, one file; and the source it names is the file's own, not the cited one."""
    written = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        timed(FakeDevice(), "--gpu", "h200", "--write", folder=tmp_path / name)
        written.append((tmp_path / name / "measured_h200.toml").read_bytes())
    assert written[0] == written[1]
    cited = tomllib.loads((ROOT / MEASURED_FILE).read_text(encoding="utf-8"))
    assert tomllib.loads(written[0].decode())["source"] != cited["source"]


def test_nothing_is_written_unless_asked(tmp_path: Path) -> None:
    """The table alone: measured beside modelled, and their ratio."""
    said = timed(FakeDevice(), "--gpu", "h200", folder=tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert len(said.splitlines()) == 1 + len(SETTINGS)
    # 1 × 8k of the ledger: 4.26 ms; here 15.14 GB of weights and 1.21 GB of cache, a ms each
    measured, model, ratio = said.splitlines()[2].replace(",", " ").split()[-3:]
    assert (float(measured), round(float(model), 2), float(ratio)) == (16.344, 4.26, 3.84)


def test_it_stops_by_itself_and_keeps_whole_steps(tmp_path: Path) -> None:
    """A device so slow that time is out in the third step: two are written, and ten are told to be missing."""
    ticks = iter(range(10**6))
    seconds = BUDGET / 17  # the clock is asked before each kernel, and 7 are a step
    said = timed(FakeDevice(), "--gpu", "h200", "--write", folder=tmp_path, clock=lambda: next(ticks) * seconds)
    assert "10 of 12 points left out" in said
    rows = tomllib.loads((tmp_path / "measured_h200.toml").read_text(encoding="utf-8"))["steps"]
    assert list(rows) == ["h200_1_512", "h200_1_8k"]


def test_a_run_without_a_whole_step_writes_nothing(tmp_path: Path) -> None:
    """Time was out before the first step."""
    ticks = iter(range(10**6))
    with pytest.raises(LessonError, match="before the first step"):
        timed(FakeDevice(), "--gpu", "h200", "--write", folder=tmp_path, clock=lambda: next(ticks) * BUDGET)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("gpu", "name", "gib", "fits"),
    [
        ("h200", "NVIDIA H200", 139.8, True),
        ("h100", "NVIDIA H100 80GB HBM3", 79.2, True),
        ("a100", "NVIDIA A100-SXM4-80GB", 79.3, True),
        ("b200", "NVIDIA B200", 178.4, True),
        ("h200", "NVIDIA H100 80GB HBM3", 79.2, False),  # another one
        ("h200", "NVIDIA GH200 144G HBM3e", 140.0, False),  # another one that holds its name
        ("h100", "NVIDIA H100 PCIe", 79.2, False),  # the same memory, less bandwidth
        ("h200", "NVIDIA H200 NVL", 139.8, False),
        ("h100", "NVIDIA H100 80GB HBM3 MIG 3g.40gb", 39.4, False),  # a part of one
        ("a100", "NVIDIA A100-SXM4-40GB", 39.4, False),
    ],
)
def test_only_the_board_of_the_file_is_measured(gpu: str, name: str, gib: float, fits: bool) -> None:
    """By its name and by its memory, of which CUDA tells a little less than nvidia-smi."""
    if fits:
        refuse_other(GPUS[gpu], name, gib * 2**30)
    else:
        with pytest.raises(LessonError, match=f"not the {GPUS[gpu].name}") as caught:
            refuse_other(GPUS[gpu], name, gib * 2**30)
        assert caught.value.hint


def test_another_gpu_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    """--gpu h100 on an H200: refused, nothing launched, nothing written."""
    device = FakeDevice()
    with pytest.raises(LessonError, match="this device is 'NVIDIA H200'"):
        timed(device, "--gpu", "h100", "--write", folder=tmp_path)
    assert (device.launched, list(tmp_path.iterdir())) == (0, [])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "--gpu must name the GPU"),
        (("--gpu", "h2000"), "did you mean 'h200'?"),
        (("--device", "cpu", "--gpu", "h200"), "add --dry"),
        (("--dry", "--write"), "nothing that could be written"),
        (("--gpu", "h200", "--backend", "math"), "invalid choice"),
    ],
)
def test_a_wrong_command_line_is_refused(
    arguments: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 2, with what to write instead."""
    with pytest.raises(SystemExit) as caught:
        timed(FakeDevice(), *arguments, folder=tmp_path)
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


def test_without_pytorch_it_says_what_to_run_where() -> None:
    """An import of torch that fails: exit status 1, no traceback; and importing the script needs no torch."""
    code = "import sys, runpy; sys.modules['torch'] = None; sys.argv = ['x', '--gpu', 'h200', '--write'];"
    code += "runpy.run_module('tests.gpu.time_kernels', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "PyTorch is not installed here" in done.stderr
    assert "python -m tests.gpu.time_kernels --gpu h200 --write" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_call_of_pytorch_runs_on_a_cpu(tmp_path: Path) -> None:
    """The real calls with toy shapes, where PyTorch is installed."""
    pytest.importorskip("torch")
    said = main(["--device", "cpu", "--dry"], folder=tmp_path)
    assert said.startswith("dry: linear, attention, lm_head ran on a CPU with PyTorch")
    with pytest.raises(LessonError, match="this attention doesn't run"):
        main(["--device", "cpu", "--dry", "--backend", "cudnn"], folder=tmp_path)


def test_without_a_cuda_device_it_says_what_to_run_where(tmp_path: Path) -> None:
    """Where PyTorch is installed and sees no GPU."""
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(LessonError, match="no CUDA device") as caught:
        main(["--gpu", "h200", "--write"], folder=tmp_path)
    assert "python -m tests.gpu.time_kernels --gpu h200 --write" in str(caught.value.hint)
