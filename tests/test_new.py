"""`lesson new`: valid, sourced files, or none."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from builder import cli
from builder.catalog import load_gpus, load_models
from builder.provenance import unsourced
from tests.toys import QWEN3_8B, ROOT

GPU = {
    "--label": "X900",
    "--name": "X900 SXM",
    "--year": "2026",
    "--bf16": "1000.5",
    "--fp8": "2001",
    "--bandwidth": "4.8",
    "--memory": "81559",
    "--url": "https://example.org/x900",
}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the content, as the working directory."""
    shutil.copytree(ROOT / "content", tmp_path / "content")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def new(*words: str, answers: str | None = None) -> Result:
    return CliRunner().invoke(cli.main, ["new", *words], input=answers)


def options(**changes: Any) -> list[str]:
    given = {**GPU, **{f"--{name}": value for name, value in changes.items()}}
    return [part for name, value in given.items() if value is not None for part in (name, value)]


def test_a_published_config_is_taken_untouched_with_its_source(checkout, tmp_path):
    """The very bytes, a source that check knows, and a word on what comes next."""
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**QWEN3_8B, "an_extra_key": 1}, indent=3), encoding="utf-8")
    result = new("model", "Qwen3-Next", str(config), "--url", "https://example.org/config.json")
    assert (result.exit_code, result.stderr) == (0, "")
    assert (checkout / "content" / "models" / "Qwen3-Next.json").read_bytes() == config.read_bytes()
    assert "Qwen3-Next" in load_models(checkout)
    assert '[model.qwen3_next]\nurl = "https://example.org/config.json"' in (
        checkout / "content" / "sources.toml"
    ).read_text(encoding="utf-8")
    assert "lesson ledger --model Qwen3-Next" in result.stdout


def test_a_source_that_is_there_stays_as_it_is(checkout):
    """Its address was somebody's choice; and a file that ends without a line break gets one before the next table."""
    config = checkout / "content" / "models" / "Qwen3-8B.json"
    moved = config.rename(checkout / "config.json")
    sources = checkout / "content" / "sources.toml"
    before = sources.read_text(encoding="utf-8").rstrip()
    sources.write_text(before, encoding="utf-8")
    assert new("model", "Qwen3-8B", str(moved), "--url", "https://example.org/a").exit_code == 0
    assert sources.read_text(encoding="utf-8") == before
    assert new("model", "Another", str(moved), "--url", "https://example.org/b").exit_code == 0
    after = sources.read_text(encoding="utf-8")
    assert after.startswith(f'{before}\n[model.another]\nurl = "https://example.org/b"\n')
    assert after.endswith('\ndisagreement = "none known"\n')


def test_an_answer_is_taken_without_the_space_around_it(checkout):
    """A label's letters name the file; what comes next names it too."""
    result = new("gpu", *options(label=" X 900\t", name=" X 900 SXM ", fp8=None))
    assert load_gpus(checkout)["x_900"].label == "X 900"
    assert load_gpus(checkout)["x_900"].name == "X 900 SXM"
    assert load_gpus(checkout)["x_900"].no_fp8 == "the tensor cores of the X 900 have no FP8"
    assert "lesson ledger --gpu x_900" in result.stdout


def test_a_gpu_is_made_from_answers(checkout):
    """In SI, every number with its source; the catalogue and check take it."""
    result = new("gpu", *options())
    assert (result.exit_code, result.stderr) == (0, "")
    gpu = load_gpus(checkout)["x900"]
    assert (gpu.peak_flops, gpu.peak_flops_fp8, gpu.hbm_bandwidth) == (1000.5e12, 2001e12, 4.8e12)
    assert gpu.memory_bytes == 81559 * 2**20
    assert unsourced(checkout) == []


def test_what_is_not_given_is_asked_for(checkout):
    """Every question in turn; FP8 is only taken where it is given."""
    answers = "\n".join(value for name, value in GPU.items() if name != "--fp8") + "\n"
    result = new("gpu", answers=answers)
    assert result.exit_code == 0
    assert "Dense BF16 TFLOP/s" in result.stdout
    gpu = load_gpus(checkout)["x900"]
    assert gpu.peak_flops_fp8 is None
    assert gpu.no_fp8 == "the tensor cores of the X900 have no FP8"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["gpu", *options(bf16="-1")], "content/gpus/x900.toml:"),
        (["gpu", *options(year="22")], "'year' must be"),
        (["gpu", *options(url="x900.html")], "'x900.html' is no address"),
        (["gpu", *options(label="H100", name="H100 SXM")], "content/gpus/h100.toml: is there already"),
        (["model", "Qwen3-8B", "content/models/Qwen3-8B.json", "--url", "https://example.org"], "is there already"),
        (["model", "../x", "content/models/Qwen3-8B.json", "--url", "https://example.org"], "can't be the name"),
        (["model", "New", "content/grid.toml", "--url", "https://example.org"], "content/grid.toml:"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_written(checkout, words, told):
    """Exit 1, a clear error, and the content as it was."""
    before = {path: path.read_bytes() for path in checkout.rglob("*") if path.is_file()}
    result = new(*words)
    assert result.exit_code == 1
    assert told in result.stderr
    assert {path: path.read_bytes() for path in checkout.rglob("*") if path.is_file()} == before


def test_sources_that_are_no_text_are_told_and_left_alone(checkout, tmp_path):
    """The new source can't be added to what can't be read."""
    config = tmp_path / "config.json"
    config.write_text(json.dumps(QWEN3_8B), encoding="utf-8")
    sources = checkout / "content" / "sources.toml"
    sources.write_bytes(before := sources.read_bytes() + b"# \xff\n")
    result = new("model", "Another", str(config), "--url", "https://example.org/a")
    assert result.exit_code == 1
    assert result.stderr.startswith("content/sources.toml: not UTF-8 text")
    assert sources.read_bytes() == before
    assert not (checkout / "content" / "models" / "Another.json").exists()
