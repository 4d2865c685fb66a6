"""Times the kernels of the lesson's model on a real GPU, in the format of content/measured.toml.

    python -m tests.gpu.time_kernels --gpu h200 [--write] [--backend flash|cudnn]
    python -m tests.gpu.time_kernels --device cpu --dry

NOT YET RUN ON A GPU. What is around the kernels is tested with a fake device (tests/test_gpu_timing.py), and the
PyTorch calls on a CPU with toy shapes (--dry). What the first run on a GPU may still show is in no test.

A decode step is put together from seven kernels, each timed alone: the QKV, output, gate, up and down projections and
attention over a contiguous cache (scaled_dot_product_attention, GQA, the backend named), per layer, and the LM head.
Each time is the median of REPETITIONS between two CUDA events; before each, a buffer larger than L2 is written, so that
weights and cache come from HBM. Sums are per-layer medians times the layers. Not measured: norms, RoPE, SwiGLU, the
cache append, gaps between kernels, the host. A run takes at most BUDGET seconds: what isn't done by then is left out.

It needs PyTorch with CUDA beside what the lesson needs. --write puts the rows into a file of its own,
tests/gpu/measured_GPU.toml; content/measured.toml, whose rows cite a source, is never touched.
"""

from __future__ import annotations

import argparse
import datetime
import faulthandler
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from builder.catalog import Gpu, Model, load_gpus
from builder.errors import LessonError, LessonErrors, did_you_mean
from builder.grid import load_grid
from builder.ledger import GROUPS, Point, forward_pass
from builder.measured import PARTS
from builder.roofline import cost, largest_batch
from builder.site import replace_file

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
SOURCE = "measured.time_kernels"
BUDGET = 240  # seconds for a whole run, the start of PyTorch included
WARM_UP, REPETITIONS = 10, 50
BACKENDS = ("flash", "cudnn")  # of those that read a GQA cache without copying it out to every query head

# (batch, context): the settings of content/measured.toml and what lies around them
SETTINGS = (
    (1, 512),
    (1, 8192),
    (1, 32768),
    (16, 8192),
    (32, 8192),
    (64, 512),
    (64, 2048),
    (64, 8192),
    (128, 512),
    (256, 512),
    (512, 512),
    (1024, 512),
)
OTHER_BOARDS = ("PCIe", "NVL", "MIG")  # carry the name of an SXM board, and have other clocks, memory or bandwidth
MEMORY_TOLERANCE = 0.03  # CUDA reports up to that much less than nvidia-smi

Launch = Callable[[], object]


class Device(Protocol):
    """What runs kernels and tells how long they took; torch_device.py has the real one."""

    name: str
    memory_bytes: int
    versions: str

    def linear(self, tokens: int, inputs: int, outputs: int) -> Launch:
        """A call that launches activations [tokens, inputs] times BF16 weights [inputs, outputs]."""

    def attention(self, tokens: int, context: int, model: Model) -> Launch:
        """A call that launches decode attention: a query of each of `tokens` sequences over `context` entries."""

    def flush(self) -> None:
        """Write a buffer larger than the last-level cache."""

    def mark(self) -> Any:
        """A mark in the stream of launches."""

    def wait(self) -> None:
        """Until everything launched is done."""

    def elapsed_ms(self, begin: Any, end: Any) -> float:
        """Milliseconds between two marks; after wait()."""

    def clocks(self) -> str | None:
        """SM and memory clocks as they are now, where they can be read."""


@dataclass(frozen=True)
class Timing:
    """Median and interquartile range of a kernel's times, ms; sums and multiples of Timings add both."""

    median: float
    spread: float

    @staticmethod
    def of(times: Sequence[float]) -> Timing:
        """Of at least two repetitions."""
        low, _, high = statistics.quantiles(times, n=4, method="inclusive")
        return Timing(statistics.median(times), high - low)

    def __add__(self, other: Timing) -> Timing:
        return Timing(self.median + other.median, self.spread + other.spread)

    def times(self, count: int) -> Timing:
        """Of `count` such kernels, one after the other."""
        return Timing(self.median * count, self.spread * count)


def measure(device: Device, launch: Launch) -> Timing:
    """Time one kernel: warmed up, and cold in L2 each time. The flush lies outside the marks."""
    for _ in range(WARM_UP):
        launch()
    marks = []
    for _ in range(REPETITIONS):
        # nothing waits in here: while the device flushes, the host gets mark and launch ready behind it
        device.flush()
        begin = device.mark()
        launch()
        marks.append((begin, device.mark()))
    device.wait()
    return Timing.of([device.elapsed_ms(*pair) for pair in marks])


def kernels(device: Device, model: Model, point: Point) -> Iterator[tuple[str, int, Launch]]:
    """(part, how often a step launches it, its launch) of each kernel; its tensors are made when it is asked for."""
    hidden, ffn, layers, tokens = model.hidden_size, model.intermediate_size, model.layers, point.tokens
    shapes = {
        "qkv_proj": (hidden, model.q_width + 2 * model.kv_width),
        "out_proj": (model.q_width, hidden),
        "gate_proj": (hidden, ffn),
        "up_proj": (hidden, ffn),
        "down_proj": (ffn, hidden),
    }
    for name in GROUPS["matmuls"]:
        yield "linear", layers, device.linear(tokens, *shapes[name])
    yield "attention", layers, device.attention(tokens, point.context, model)
    yield "lm_head", 1, device.linear(tokens, hidden, model.vocab_size)


@dataclass(frozen=True)
class Step:
    """A measured decode step: its point, a Timing for each of PARTS, and the clocks after it."""

    point: Point
    parts: Mapping[str, Timing]
    clocks: str | None


def run(device: Device, model: Model, points: Sequence[Point], out_of_time: Callable[[], bool]) -> list[Step]:
    """Measure the points in their order; stops before a kernel when time is out, and drops the step it was at."""
    steps = []
    for point in points:
        parts = dict.fromkeys(PARTS, Timing(0, 0))
        for part, count, launch in kernels(device, model, point):
            if out_of_time():
                return steps
            parts[part] += measure(device, launch).times(count)
        steps.append(Step(point, parts, device.clocks()))
    return steps


def points_of(model: Model, gpu: Gpu, defaults: Point) -> list[Point]:
    """SETTINGS as points of this GPU, without those that would not fit beside the weights."""
    points = [
        replace(defaults, phase="decode", tokens=tokens, context=context, gpu=gpu.id, weights="bf16", kv="bf16")
        for tokens, context in SETTINGS
    ]
    return [point for point in points if point.tokens <= largest_batch(model, point, gpu)]


def refuse_other(gpu: Gpu, name: str, memory_bytes: float) -> None:
    """Raise LessonError where the device isn't the board of content/gpus."""
    named = re.search(rf"\b{re.escape(gpu.label)}\b", name, re.IGNORECASE)
    other = [board for board in OTHER_BOARDS if re.search(rf"\b{board}\b", name, re.IGNORECASE)]
    alike = abs(memory_bytes / gpu.memory_bytes - 1) <= MEMORY_TOLERANCE
    if not named or other or not alike:
        raise LessonError(
            f"this device is '{name}' with {memory_bytes / 2**30:.1f} GiB, not the {gpu.name} with "
            f"{gpu.memory_bytes / 2**30:.1f} GiB of content/gpus/{gpu.id}.toml",
            hint="name its own file of content/gpus with --gpu; `lesson new gpu` makes one",
        )


def modelled_ms(model: Model, gpu: Gpu, point: Point) -> dict[str, float]:
    """The ledger's times of PARTS, ms."""
    costs = cost(forward_pass(model, point), gpu, point.tokens)
    rows = {"linear": GROUPS["matmuls"], "attention": ("attention",), "lm_head": ("lm_head",)}
    return {part: 1e3 * sum(float(costs.time[costs.row(name)]) for name in names) for part, names in rows.items()}


def table(steps: Sequence[Step], model: Model, gpu: Gpu) -> str:
    """Measured and modelled, side by side."""
    lines = [f"{'batch × context':>16}" + "".join(f"{part + ', model':>20}" for part in (*PARTS, "sum")) + "   ratio"]
    for step in steps:
        model_ms = modelled_ms(model, gpu, step.point)
        pairs = [(step.parts[part].median, model_ms[part]) for part in PARTS]
        pairs.append((sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)))
        cells = "".join(f"{f'{measured:.3f}, {expected:.3f}':>20}" for measured, expected in pairs)
        lines.append(f"{f'{step.point.tokens} × {step.point.context}':>16}{cells}{pairs[-1][0] / pairs[-1][1]:>8.2f}")
    return "\n".join(lines)


def toml(steps: Sequence[Step], model: Model, gpu: Gpu, device: Device, backend: str, today: datetime.date) -> str:
    """The file: rows that builder/measured.py reads, and in comments what they were measured with."""
    defaults = steps[0].point
    lines = [
        f"# One decode step of {model.name} in BF16 on an {gpu.name}: sums of kernels timed one by one with",
        f"# python -m tests.gpu.time_kernels --gpu {gpu.id} --backend {backend} --write",
        "# Norms, RoPE, SwiGLU, the cache append, the gaps between kernels and the host's time were not measured.",
        f"# device: {device.name}, {device.memory_bytes / 2**20:,.0f} MiB",
        f"# versions: {device.versions}",
        f"# attention: scaled_dot_product_attention, backend {backend}, over a contiguous cache",
        f"# median of {REPETITIONS} after {WARM_UP} for warmth, L2 flushed before each",
        f"# date: {today.isoformat()}",
        f'source = "{SOURCE}"',
        f'model = "{model.name}"',
        f'weights = "{defaults.weights}"',
        f'kv = "{defaults.kv}"',
        f'attention = "{defaults.attention}"',
        "",
        "# ms: the linear layers (QKV, output, gate, up, down), attention, and the LM head",
    ]
    for index, step in enumerate(steps):
        at = step.point
        context = f"{at.context // 1024}k" if at.context % 1024 == 0 else str(at.context)
        spreads = " / ".join(f"{step.parts[part].spread:.3f}" for part in PARTS)
        lines += [
            *([""] if index else []),
            f"[steps.{gpu.id}_{at.tokens}_{context}]",
            f"# interquartile ranges, added: {spreads} ms; clocks after it: {step.clocks or 'not readable'}",
            f'gpu = "{gpu.id}"',
            f'engine = "{device.versions.split(",")[0]}, SDPA {backend}"',
            f"tokens = {at.tokens}",
            f"context = {at.context}",
            *(f"{part}_ms = {step.parts[part].median:.3f}" for part in PARTS),
        ]
    return "\n".join(lines) + "\n"


def toy(model: Model) -> Model:
    """A model of the same family that a CPU runs in no time."""
    return replace(
        model, layers=2, hidden_size=64, intermediate_size=96, heads=4, kv_heads=2, head_dim=16, vocab_size=128
    )


def real_device(kind: str, backend: str, line: str) -> Device:
    """The device of torch_device.py; line: what to run elsewhere. Raises LessonError where PyTorch or it is missing."""
    from tests.gpu.torch_device import TorchDevice

    return TorchDevice(kind, backend, line)


def main(
    arguments: Sequence[str] | None = None,
    connect: Callable[[str, str, str], Device] = real_device,
    clock: Callable[[], float] = time.monotonic,
    today: Callable[[], datetime.date] = datetime.date.today,
    folder: Path = FOLDER,
) -> str:
    """Run, and return what to print. Raises LessonError or LessonErrors where it can't."""
    began = clock()
    parser = argparse.ArgumentParser(
        prog="python -m tests.gpu.time_kernels", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--gpu", help="the file of content/gpus that this machine's GPU must be")
    parser.add_argument("--write", action="store_true", help="write tests/gpu/measured_GPU.toml")
    parser.add_argument("--backend", choices=BACKENDS, default="flash", help="of scaled_dot_product_attention")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--dry", action="store_true", help="toy shapes, to see that every call runs; measures nothing")
    options = parser.parse_args(arguments)
    if options.device == "cpu" and not options.dry:
        parser.error("--device cpu measures no GPU: add --dry")
    if options.write and options.dry:
        parser.error("--dry measures nothing that could be written")
    grid, gpus = load_grid(ROOT), load_gpus(ROOT)
    if not options.dry and options.gpu not in gpus:
        hint = did_you_mean(options.gpu, gpus) if options.gpu else f"one of {', '.join(gpus)}"
        parser.error(f"--gpu must name the GPU that is measured: {hint}")
    line = f"python -m tests.gpu.time_kernels --gpu {options.gpu or grid.defaults.gpu} --write"
    device = connect(options.device, options.backend, line)

    def out_of_time() -> bool:
        return clock() - began > BUDGET

    if options.dry:
        steps = run(device, toy(grid.model), [replace(grid.defaults, tokens=2, context=16)], out_of_time)
        parts = ", ".join(part for step in steps for part in step.parts)
        return f"dry: {parts} ran on {device.name} with {device.versions}; toy shapes, so no time means anything"
    gpu = gpus[options.gpu]
    refuse_other(gpu, device.name, device.memory_bytes)
    points = points_of(grid.model, gpu, grid.defaults)
    steps = run(device, grid.model, points, out_of_time)
    if not steps:
        raise LessonError(f"the {BUDGET} s were over before the first step", hint="see what else uses the GPU")
    said = [table(steps, grid.model, gpu)]
    if missing := len(points) - len(steps):
        said.append(f"{missing} of {len(points)} points left out: the {BUDGET} s were over")
    if options.write:
        path = folder / f"measured_{gpu.id}.toml"
        replace_file(path, toml(steps, grid.model, gpu, device, options.backend, today()))
        said.append(f"written: {path.name}")
    return "\n".join(said)


if __name__ == "__main__":
    faulthandler.dump_traceback_later(BUDGET + 50, exit=True)  # also where a call to the driver never returns
    try:
        print(main())
    except (LessonError, LessonErrors) as problem:
        sys.exit(str(problem))
