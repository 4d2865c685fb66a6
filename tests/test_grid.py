"""The grid says where it is wrong, all at once; what it says is right has a point at every position."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from builder.catalog import load_models
from builder.errors import LessonError, LessonErrors
from builder.grid import AXES, GRID_FILE, Grid, integers, load_grid
from builder.ledger import MOST_TOKENS
from tests.toys import DEFAULTS, ROOT


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the lesson's data files, to break."""
    for folder in ("models", "gpus"):
        shutil.copytree(ROOT / "content" / folder, tmp_path / "content" / folder)
    shutil.copy(ROOT / GRID_FILE, tmp_path / GRID_FILE)
    return tmp_path


def changed(checkout: Path, *changes: tuple[str, str]) -> None:
    """Put other text into grid.toml; each old one must stand there exactly once."""
    path = checkout / GRID_FILE
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def errors_of(checkout: Path) -> list[LessonError]:
    """What load_grid finds wrong."""
    with pytest.raises(LessonErrors) as problems:
        load_grid(checkout)
    return problems.value.errors


GPUS = 'gpu = ["a100", "h100", "h200", "b200"]'
KV = 'kv = ["bf16", "fp8"]'
TOKENS = "  1, 2, 3, 4, 6, 8,"
CONTEXT = "context = [0, 128, 256,"
WEIGHTS = 'weights = ["bf16", "fp8", "int4", "w8a8"]'

# what is changed; how the line of the error begins; what the message and the hint say
MISTAKES = {
    "an unknown key at the top": ('model = "Qwen3-8B"', 'model = "Qwen3-8B"\nmodle = 1', "modle", "'modle'", "'model'"),
    "an unknown axis": (KV, KV + '\nattentoin = ["gqa"]', "attentoin", "'axes.attentoin'", "'attention'"),
    "an unknown default": ("tokens = 1\n", "tokens = 1\ntoken = 1\n", "token =", "'defaults.token'", "'tokens'"),
    "an unknown budget": ("shard = 20480", "shard = 20480\nshards = 1", "shards", "'budget.shards'", "'shard'"),
    "a missing axis": (KV, "", "[axes]", "'axes.kv' is missing", "kv = …"),
    "a missing default": ('phase = "decode"', "", "[defaults]", "'defaults.phase' is missing", "phase = …"),
    "a missing budget": ("shard = 20480", "", "[budget]", "'budget.shard' is missing", "shard = …"),
    "an unknown model": ('"Qwen3-8B"', '"Qwen3-8b"', "model", '"Qwen3-8b" is not in', "'Qwen3-8B'"),
    "a model that is a list": ('"Qwen3-8B"', '["Qwen3-8B"]', "model", "is not in content/models", "Qwen3-8B"),
    "a model that is a number": ('"Qwen3-8B"', "8", "model", "8 is not in content/models", "known: "),
    "an unknown GPU": (GPUS, 'gpu = ["h100", "b20"]', "gpu", '"b20"', "'b200'"),
    "an unknown dtype": (WEIGHTS, 'weights = ["bf16", "fp4"]', "weights", '"fp4"', "'fp8'"),
    "an axis that is no list": (KV, 'kv = "bf16"', "kv", "'axes.kv' must be a list", 'kv = ["bf16"]'),
    "an axis without positions": (KV, "kv = []", "kv", "'axes.kv' must be a list", 'kv = ["bf16"]'),
    "a number where a name belongs": (KV, "kv = [16]", "kv", "'axes.kv' is none of its values: 16", '"bf16"'),
    "a text where a count belongs": (TOKENS, "  1, '2', 4, 6, 8,", "tokens", "'axes.tokens' must be a whole", "64"),
    "a count that is a fraction": (TOKENS, "  1, 2.5, 4, 6, 8,", "tokens", "not 2.5", "64"),
    "a count that is true": (TOKENS, "  1, true, 4, 6, 8,", "tokens", "not true", "64"),
    "a pass of no tokens": (TOKENS, "  0, 1, 2, 4, 6, 8,", "tokens", "from 1 to 16,777,216, not 0", "64"),
    "a negative context": (CONTEXT, "context = [-1, 128, 256,", "context", "from 0 to 16,777,216, not -1", "8192"),
    "a context beyond reason": ("131072]", "99999999]", "context", "not 99999999", "8192"),
    "tokens that don't rise": (TOKENS, "  1, 3, 2, 4, 6, 8,", "tokens", "'axes.tokens' must rise", "smallest first"),
    "a context that doesn't rise": (CONTEXT, "context = [128, 0, 256,", "context", "'axes.context' must rise", "order"),
    "a count twice": (TOKENS, "  1, 2, 2, 4, 6, 8,", "tokens", "'axes.tokens' has 2 twice", "one of the two"),
    "a name twice": (KV, 'kv = ["bf16", "fp8", "bf16"]', "kv", "'axes.kv' has \"bf16\" twice", "one of the two"),
    "a default GPU off its axis": ('gpu = "h100"', 'gpu = "h10"', "gpu", 'default gpu "h10"', "did you mean 'h100'?"),
    "a default count off its axis": ("tokens = 1\n", "tokens = 5\n", "tokens", "the default tokens 5", "axes.tokens"),
    "a default that is true": ("tokens = 1\n", "tokens = true\n", "tokens", "the default tokens true", "axes.tokens"),
    "a default of 1.0": ("tokens = 1\n", "tokens = 1.0\n", "tokens", "the default tokens 1.0", "axes.tokens"),
    "a default that is a list": ("tokens = 1\n", "tokens = [1]\n", "tokens", "the default tokens [1]", "axes.tokens"),
    "a default decode without context": ("context = 8192", "context = 0", "context", "without context", "1 or more"),
    "a budget in words": ("shard = 20480", "shard = '20 KB'", "shard", "'budget.shard' must be", "such as 20480"),
    "a budget of nothing": ("shard = 20480", "shard = 0", "shard", "'budget.shard' must be", "such as 20480"),
    "a budget that is true": ("shard = 20480", "shard = true", "shard", "'budget.shard' must be", "such as 20480"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_once_with_its_line_its_key_and_a_remedy(checkout, mistake):
    """Each mistake is one error, on the line of its key, with a remedy."""
    old, new, line, message, hint = MISTAKES[mistake]
    changed(checkout, (old, new))
    (error,) = errors_of(checkout)
    assert error.path == "content/grid.toml"
    assert error.line is not None
    found = (checkout / GRID_FILE).read_text(encoding="utf-8").splitlines()[error.line - 1]
    assert found.startswith(line)
    assert message in error.message
    assert error.hint is not None
    assert hint in error.hint


def test_a_decode_axis_needs_a_context(checkout):
    """A context axis of 0 alone leaves decode without a point: both the axis and the default on it are told."""
    text = (checkout / GRID_FILE).read_text(encoding="utf-8")
    axis = next(line for line in text.splitlines() if line.startswith("context = [0"))
    changed(checkout, (axis, "context = [0]"), ("context = 8192", "context = 0"))
    told = [error.message for error in errors_of(checkout)]
    assert told == ["the default point is a decode without context", "decode needs a context above 0 on the axis"]


def test_an_axis_of_prefill_alone_needs_none(checkout):
    """A grid of prefill alone may have no cache at all."""
    text = (checkout / GRID_FILE).read_text(encoding="utf-8")
    axis = next(line for line in text.splitlines() if line.startswith("context = [0"))
    changed(
        checkout,
        (axis, "context = [0]"),
        ("context = 8192", "context = 0"),
        ('phase = "decode"', 'phase = "prefill"'),
        ('phase = ["decode", "prefill"]', 'phase = ["prefill"]'),
    )
    assert load_grid(checkout).count == 25 * 90


@pytest.mark.parametrize("table", ["axes", "defaults", "budget"])
def test_a_missing_table_is_one_error(checkout, table):
    """A missing table is one error, not one for each of its keys."""
    text = (checkout / GRID_FILE).read_text(encoding="utf-8")
    start = text.index(f"[{table}]")
    end = text.find("\n[", start)
    (checkout / GRID_FILE).write_text(text[:start] + (text[end:] if end > 0 else ""), encoding="utf-8")
    (error,) = errors_of(checkout)
    assert error.message == f"[{table}] is missing"
    assert f"[{table}]" in (error.hint or "")


def test_a_missing_model_is_told(checkout):
    """A grid without model says which key, and what to put."""
    changed(checkout, ('model = "Qwen3-8B"', ""))
    (error,) = errors_of(checkout)
    assert error.message == "'model' is missing"
    assert f'model = "{next(iter(load_models(ROOT)))}"' in (error.hint or "")


def test_everything_wrong_in_every_file_is_told_at_once(checkout):
    """Mistakes in grid.toml, a model and a GPU come together, in the order of their places."""
    changed(checkout, (KV, KV + "\nkw = 1"), ("shard = 20480", "shard = -1"), ('"Qwen3-8B"', '"Qwen"'))
    for name, old, new in (
        ("models/Qwen3-0.6B.json", '"vocab_size": 151936', '"vocab_size": -3'),
        ("gpus/b200.toml", "year = 2024", 'year = "2024"'),
    ):
        path = checkout / "content" / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
    errors = errors_of(checkout)
    assert [error.path for error in errors] == [
        "content/gpus/b200.toml",
        *["content/grid.toml"] * 3,
        "content/models/Qwen3-0.6B.json",
    ]
    assert all(error.line for error in errors)


def test_a_broken_data_file_is_not_also_an_unknown_name(checkout):
    """A GPU and a model whose files are broken are on the grid nevertheless: only the files are told."""
    for name in ("gpus/h100.toml", "models/Qwen3-8B.json"):
        (checkout / "content" / name).write_text("{", encoding="utf-8")
    assert [error.path for error in errors_of(checkout)] == ["content/gpus/h100.toml", "content/models/Qwen3-8B.json"]


def test_a_grid_that_is_not_toml_comes_with_the_rest(checkout):
    """A grid.toml that can't be read doesn't hide what is wrong elsewhere."""
    (checkout / GRID_FILE).write_text("model = Qwen", encoding="utf-8")
    (checkout / "content" / "gpus" / "h100.toml").write_text("{", encoding="utf-8")
    assert [(error.path, error.line) for error in errors_of(checkout)] == [
        ("content/gpus/h100.toml", 1),
        ("content/grid.toml", 1),
    ]


def test_without_grid_file_there_is_one_error(checkout):
    """A missing grid.toml is named."""
    (checkout / GRID_FILE).unlink()
    (error,) = errors_of(checkout)
    assert (error.path, error.message) == ("content/grid.toml", "there is no such file")


def lesson() -> Grid:
    return load_grid(ROOT)


def test_the_lesson_starts_where_it_says():
    """The default point of the lesson, and the positions that its text speaks of."""
    grid = lesson()
    assert grid.defaults == DEFAULTS
    assert grid.model.name == "Qwen3-8B"
    assert tuple(grid.gpus) == grid.axes["gpu"] == ("a100", "h100", "h200", "b200")
    assert {1, 64, 128, 256, 320, 512, 1024, 4096} <= set(grid.axes["tokens"])
    assert 24 <= len(grid.axes["tokens"]) <= 28
    assert grid.axes["context"] == (0, *(2**power for power in range(7, 18)))


def test_every_position_but_decode_without_context_is_a_point():
    """A point for every index of every slider: decode at context 0 alone is none."""
    grid = lesson()
    positions = 0
    for choice in grid.shard_points():
        for phase in grid.axes["phase"]:
            for context in grid.axes["context"]:
                there = grid.exists(replace(choice, phase=phase, context=context))
                assert there == (phase == "prefill" or context > 0)
                positions += there * len(grid.axes["tokens"])
    assert grid.count == positions == 51_750
    assert grid.shape == (2, 12, 25)


def test_shard_points_are_each_choice_once():
    """One shard for each GPU, weights, cache and attention, elsewhere at the default."""
    points = list(lesson().shard_points())
    assert len(points) == len(set(points)) == (4 * 4 - 1) * 2 * 3  # an A100 has no w8a8
    assert {(point.phase, point.tokens, point.context) for point in points} == {("decode", 1, 8192)}


def test_a_gpu_without_fp8_has_no_w8a8():
    """No shard, no point, and a place to go instead, with the reason."""
    grid = lesson()
    assert {(point.gpu, point.weights) for point in grid.shard_points() if point.weights == "w8a8"} == {
        ("h100", "w8a8"),
        ("h200", "w8a8"),
        ("b200", "w8a8"),
    }
    assert not grid.exists(replace(DEFAULTS, gpu="a100", weights="w8a8"))
    assert grid.exists(replace(DEFAULTS, gpu="a100", weights="fp8"))
    assert [vars(refusal) for refusal in grid.refusals] == [
        {
            "axis": "weights",
            "value": "w8a8",
            "at": {"gpu": "a100"},
            "instead": "fp8",
            "reason": "A100 has no FP8 tensor cores",
        }
    ]


@pytest.mark.parametrize(
    ("weights", "default", "instead"), [(("w8a8", "int4"), "w8a8", "int4"), (("int4", "bf16", "w8a8"), "bf16", "bf16")]
)
def test_where_there_is_no_fp8_the_bench_goes_to_the_default_or_what_there_is(weights, default, instead):
    """Always to something that the GPU can compute."""
    grid = lesson()
    other = replace(grid, axes={**grid.axes, "weights": weights}, defaults=replace(DEFAULTS, weights=default))
    assert [refusal.instead for refusal in other.refusals] == [instead]


def test_a_default_that_its_gpu_cannot_compute_is_told(checkout):
    """At the line of the default."""
    changed(checkout, ('gpu = "h100"', 'gpu = "a100"'), ('weights = "bf16"', 'weights = "w8a8"'))
    (error,) = errors_of(checkout)
    assert error.message == "the default point is w8a8 on the A100: Ampere's tensor cores have no FP8"
    assert error.hint
    found = (checkout / GRID_FILE).read_text(encoding="utf-8").splitlines()[(error.line or 0) - 1]
    assert found.startswith('weights = "w8a8"')


def test_a_gpu_that_can_compute_nothing_on_the_axis_is_told(checkout):
    """At the axis: there would be nowhere to go from another GPU."""
    changed(checkout, (WEIGHTS, 'weights = ["w8a8"]'), ('weights = "bf16"', 'weights = "w8a8"'))
    (error,) = errors_of(checkout)
    assert error.message == "the A100 computes with none of axes.weights: Ampere's tensor cores have no FP8"
    assert error.hint


def test_axes_are_named_in_the_order_of_the_controls():
    """Addresses and controls have one order."""
    assert tuple(lesson().axes) == AXES == tuple(vars(DEFAULTS))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("batch = { token = 256 }", "unknown key 'passes.batch.token'"),
        ('batch = { gpu = "h100" }', "unknown key 'passes.batch.gpu'"),
        ("batch = { tokens = 0 }", "'passes.batch.tokens' must be a whole number from 1 to 16,777,216, not 0"),
        ('batch = { phase = "train" }', "'passes.batch.phase' is none of its values: \"train\""),
        ("batch = { context = 0 }", "'passes.batch' is a decode without context"),
        ("batch = 256", "'passes.batch' must be a table"),
    ],
)
def test_a_pass_that_is_none_is_told(checkout, line, message):
    """At its line of grid.toml, with a remedy."""
    changed(checkout, ("batch = { tokens = 256, context = 512 }\nfull", f"{line}\nfull"))
    (error,) = errors_of(checkout)
    assert error.message == message
    assert error.hint
    assert (checkout / GRID_FILE).read_text(encoding="utf-8").splitlines()[(error.line or 0) - 1] == line


def test_a_pass_is_the_default_point_but_for_what_it_says(checkout):
    """Off the axes too; and a grid may name none."""
    changed(checkout, ("one_user = { tokens = 1 }", "one_user = { tokens = 1000 }"))
    assert load_grid(checkout).passes["one_user"] == replace(DEFAULTS, tokens=1000)
    path = checkout / GRID_FILE
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: text.index("[passes]")] + text[text.index("[axes]") :], encoding="utf-8")
    assert load_grid(checkout).passes == {}


def test_all_integers_are_there_in_arrays_that_memory_holds() -> None:
    """None twice, none left out, the first ones soon; up to more tokens than any model has."""
    parts = list(integers(5, 1_000_000))
    assert np.concatenate(parts).tolist() == list(range(5, 1_000_001))
    assert len(parts[0]) < 5_000
    assert max(map(len, integers(1, MOST_TOKENS))) < 300_000
    assert list(integers(2, 1)) == []
