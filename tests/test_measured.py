"""Numbers from outside the ledger: read in SI, and refused with place and remedy where they can't be meant."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from builder.errors import LessonErrors
from builder.grid import load_grid
from builder.measured import HISTORY_FILE, MEASURED_FILE, PARTS, load_history, load_measured
from tests.conftest import ROOT

GRID = load_grid(ROOT)
SOURCES = tomllib.loads((ROOT / "content" / "sources.toml").read_text(encoding="utf-8"))

STEP = """\
source = "measured.aiconfigurator"
model = "Qwen3-8B"
weights = "bf16"
kv = "bf16"
attention = "gqa"

[steps.one]
gpu = "h100"
engine = "vLLM 0.24"
tokens = 1
context = 8192
linear_ms = 5.16
attention_ms = 0.71
lm_head_ms = 0.51
"""
PAST = """\
[gpus.p100]
label = "P100"
year = 2016
peak_flops = 21.2e12
hbm_bandwidth = 0.732e12
source = "sheet.p100"
"""


def written(folder: Path, name: str, text: str) -> Path:
    """A checkout of one file."""
    (folder / "content").mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def problems(folder: Path, name: str, text: str) -> list[str]:
    """Everything that is wrong with the file, each as an author reads it."""
    root = written(folder, name, text)
    load = {MEASURED_FILE: lambda: load_measured(root, GRID), HISTORY_FILE: lambda: load_history(root)}[name]
    with pytest.raises(LessonErrors) as caught:
        load()
    assert all(error.hint for error in caught.value.errors)
    return [str(error) for error in caught.value.errors]


def test_a_step_is_read_in_seconds(tmp_path: Path) -> None:
    """The file has ms, as the source does; inside everything is SI."""
    (step,) = load_measured(written(tmp_path, MEASURED_FILE, STEP), GRID)
    assert step.time == pytest.approx({"linear": 5.16e-3, "attention": 0.71e-3, "lm_head": 0.51e-3})
    assert step.total == pytest.approx(6.38e-3)
    assert (step.point.phase, step.point.tokens, step.point.context) == ("decode", 1, 8192)


def test_the_lessons_steps_sum_to_what_was_published() -> None:
    """Parts in ms, as the kernel tables gave them, and their sums."""
    sums = [round(step.total * 1e3, 2) for step in load_measured(ROOT, GRID)]
    assert sums == [12.41, 29.92, 6.38, 30.77, 15.47, 5.15, 22.39, 7.22]
    assert all(set(step.time) == set(PARTS) for step in load_measured(ROOT, GRID))


@pytest.mark.parametrize(
    ("before", "after", "line", "said"),
    [
        ('gpu = "h100"', 'gpu = "h1OO"', 8, "no gpu 'h1OO'"),
        ("tokens = 1", "tokens = 0", 10, "'tokens' must be above 0"),
        ("tokens = 1", "tokens = 1.5", 10, "'tokens' must be a whole number, not 1.5"),
        ("tokens = 1", "tokens = true", 10, "'tokens' must be a whole number, not true"),
        ("tokens = 1", "tokens = 99999999", 7, "tokens must be between 1 and"),
        ("linear_ms = 5.16", 'linear_ms = "5.16"', 12, "'linear_ms' must be a number"),
        ("linear_ms = 5.16", "linear_ms = nan", 12, "'linear_ms' must be above 0"),
        ("linear_ms = 5.16", "linaer_ms = 5.16", 12, "unknown key 'linaer_ms'"),
        ('engine = "vLLM 0.24"', 'engine = " "', 9, "'engine' must be a text that is not empty"),
        ('model = "Qwen3-8B"', 'model = "Qwen3-32B"', 2, "measured with Qwen3-32B, but the lesson is about Qwen3-8B"),
        ('weights = "bf16"', 'weights = "bf17"', 7, "weights is none of its values"),
        ('source = "measured.aiconfigurator"\n', "", None, "'source' is missing"),
        ("[steps.one]", "[step.one]", 7, "unknown key 'step'"),
    ],
)
def test_a_mistake_is_told_at_its_line(tmp_path: Path, before: str, after: str, line: int | None, said: str) -> None:
    """One change at a time to a file that is right."""
    found = problems(tmp_path, MEASURED_FILE, STEP.replace(before, after))
    place = MEASURED_FILE if line is None else f"{MEASURED_FILE}:{line}"
    assert any(each.startswith(place) and said in each for each in found), found


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    """A misspelt key is unknown, and the right one missing; and the others, in one run."""
    text = STEP.replace("context = 8192", "contxt = 8192").replace('kv = "bf16"', "kv = 2")
    assert len(problems(tmp_path, MEASURED_FILE, text)) == 3


def test_a_past_gpu_has_a_ridge(tmp_path: Path) -> None:
    """P100, 2016: 21.2 TFLOP/s over 0.732 TB/s are 29."""
    (gpu,) = load_history(written(tmp_path, HISTORY_FILE, PAST))
    assert (gpu.label, gpu.year) == ("P100", 2016)
    assert gpu.ridge_point == pytest.approx(28.96, abs=0.01)


def test_the_lessons_past_gpus_have_the_published_ridges() -> None:
    """P100 29, V100 139, and the 40 GB A100 201."""
    ridges = {gpu.label: round(gpu.ridge_point) for gpu in load_history(ROOT)}
    assert ridges == {"P100": 29, "V100": 139, "A100 40 GB": 201}


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("year = 2016", 'year = "2016"', "'year' must be a whole number"),
        ("year = 2016", "year = 20160", "'year' must be from 2000 to 2100"),
        ("peak_flops = 21.2e12", "peak_flops = -1", "'peak_flops' must be above 0"),
        ('source = "sheet.p100"\n', "", "'source' is missing"),
        ("[gpus.p100]", "[gpu.p100]", "unknown key 'gpu'"),
        (PAST, "gpus = 3", "there is no table [gpus.…]"),
        (PAST, "[gpus]\np100 = 3", "'gpus.p100' must be a table"),
    ],
)
def test_a_mistake_in_the_history_is_told(tmp_path: Path, before: str, after: str, said: str) -> None:
    """With a remedy, as everywhere."""
    assert any(said in each for each in problems(tmp_path, HISTORY_FILE, PAST.replace(before, after)))


def test_every_source_is_listed() -> None:
    """measured.toml and history.toml name ids of content/sources.toml."""
    measured = tomllib.loads((ROOT / MEASURED_FILE).read_text(encoding="utf-8"))
    for source in [measured["source"], *(gpu.source for gpu in load_history(ROOT))]:
        group, _, name = source.partition(".")
        assert SOURCES[group][name]["url"]
