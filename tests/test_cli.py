"""The commands from outside: what they print, where, and how they exit."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from builder import build as build_module
from builder import cli, report
from builder import unused as unused_module
from builder.catalog import load_models
from builder.errors import LessonError, LessonErrors
from builder.site import Site
from tests.toys import QWEN3_8B, ROOT, at, lesson_gpus, lesson_model, write_model


def lesson(*words: str) -> Result:
    """`lesson words…`, run here."""
    return CliRunner().invoke(cli.main, list(words))


def asked(*words: str) -> dict[str, Any]:
    """`lesson ledger words… --format json`, parsed; it must succeed and say nothing on stderr."""
    result = lesson("ledger", *words, "--format", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the lesson's data to break, as the working directory."""
    for folder in ("models", "gpus"):
        shutil.copytree(ROOT / "content" / folder, tmp_path / "content" / folder)
    for name in ("grid.toml", "sources.toml"):
        shutil.copy(ROOT / "content" / name, tmp_path / "content")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_sixty_four_tokens_give_the_published_throughput():
    """What is left out is the default point; the JSON is unrounded."""
    found = asked("--tokens", "64")
    assert round(found["total"]["throughput"], 3) == 1840.486
    assert found == report.document(lesson_model(), lesson_gpus()["h100"], at(tokens=64))


def test_every_option_moves_the_point():
    """All seven coordinates come from the command line."""
    words = [
        "--phase",
        "prefill",
        "--tokens",
        "96",
        "--context",
        "0",
        "--gpu",
        "b200",
        "--weights",
        "int4",
        "--kv",
        "fp8",
        "--attention",
        "mqa",
    ]
    assert asked(*words)["point"] == {
        "model": "Qwen3-8B",
        "phase": "prefill",
        "tokens": 96,
        "context": 0,
        "gpu": "b200",
        "weights": "int4",
        "kv": "fp8",
        "attention": "mqa",
    }


@pytest.mark.parametrize(("text", "count"), [("8k", 8192), ("8K", 8192), ("4,096", 4096), ("4_096", 4096), ("7", 7)])
def test_a_position_is_written_as_people_do(text, count):
    """8k is 8,192; commas group."""
    point = asked("--tokens", text, "--context", text)["point"]
    assert (point["tokens"], point["context"]) == (count, count)


def test_the_table_is_what_comes_by_default():
    """Without --format the table, ending in a line break."""
    result = lesson("ledger", "--tokens", "64")
    assert result.exit_code == 0
    assert result.stdout == report.table(lesson_model(), lesson_gpus()["h100"], at(tokens=64)) + "\n"


def test_csv_parses_back():
    """CSV holds the rows of the JSON, and the total."""
    result = lesson("ledger", "--format", "csv")
    read = list(csv.DictReader(io.StringIO(result.stdout)))
    rows = asked()["rows"]
    assert [float(line["time"]) for line in read[:8]] == [row["time"] for row in rows]
    assert read[8]["kernel"] == "total"


@pytest.mark.parametrize("name", ["Llama-3.1-8B", "llama-3.1-8b", "LLAMA-3.1-8B"])
def test_a_model_is_named_in_any_case(name):
    """Another model of content/models, whatever the case."""
    assert asked("--model", name)["point"]["model"] == "Llama-3.1-8B"


@pytest.mark.parametrize("name", load_models(ROOT))
def test_a_published_config_is_costed_from_where_it_lies(tmp_path, name):
    """A config.json by its path, with all the keys that it was published with, costs what the model costs by name."""
    path = shutil.copy(ROOT / "content" / "models" / f"{name}.json", tmp_path / "config.json")
    assert asked("--model", str(path))["rows"] == asked("--model", name)["rows"]


def test_a_prefill_has_no_largest_batch():
    """null in JSON."""
    assert asked("--phase", "prefill")["total"]["largest_batch"] is None


# the command line is wrong: 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--context 0", "decode needs a context of at least 1"),
        ("--context 0", "--phase prefill"),
        ("--tokens 0", "tokens must be between 1 and 16,777,216, not 0"),
        ("--tokens 99999999", "not 99,999,999"),
        ("--tokens many", "'many' is not a number of tokens: write 4096, 4,096 or 8k (8,192)"),
        ("--tokens 1,5k", "'1,5k' is not a number of tokens"),
        ("--tokens -1", "'-1' is not a number of tokens"),
        ("--gpu h10", "did you mean 'h100'?"),
        ("--gpu tpu", "known: a100, b200, h100, h200"),
        ("--model qwen3-8", "did you mean 'Qwen3-8B'?"),
        ("--phase train", "'train' is not one of 'decode', 'prefill'"),
        ("--weights fp4", "'fp4' is not one of"),
        ("--kv int4", "'int4' is not one of"),
        ("--attention full", "'full' is not one of"),
        ("--format xml", "'xml' is not one of"),
        ("--batch 3", "No such option"),
        ("64", "unexpected extra argument"),
    ],
)
def test_a_wrong_command_line_exits_with_2_and_says_why(words, told):
    """Exit code 2, the reason on stderr, nothing on stdout."""
    result = lesson("ledger", *words.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr


def test_an_unknown_command_exits_with_2():
    """No such command."""
    assert lesson("bulid").exit_code == 2


# the content is wrong: 1


def test_a_broken_config_is_told_with_file_and_line(tmp_path):
    """A config.json that can't be costed: file:line: on stderr, exit code 1, no table."""
    path = write_model(tmp_path, QWEN3_8B | {"num_key_value_heads": 7, "hidden_act": "gelu"}, "config.json")
    result = lesson("ledger", "--model", str(path))
    assert (result.exit_code, result.stdout) == (1, "")
    lines = path.read_text(encoding="utf-8").splitlines()
    for key in ("num_key_value_heads", "hidden_act"):
        number = next(i for i, line in enumerate(lines, start=1) if f'"{key}"' in line)
        assert f"{path}:{number}:" in result.stderr
    assert "2 errors" in result.stderr


def test_everything_wrong_in_all_files_comes_in_one_run(checkout):
    """Two models, a GPU and the grid broken: one run tells all, each with file and line."""
    content = checkout / "content"
    for name, old, new in (
        ("models/Qwen3-8B.json", '"vocab_size": 151936', '"vocab_size": 0'),
        ("models/Llama-3.1-8B.json", '"model_type": "llama"', '"model_type": "lama"'),
        ("gpus/b200.toml", "year = 2024", "year = 24"),
        ("grid.toml", "shard = 20480", "shard = 0"),
    ):
        text = (content / name).read_text(encoding="utf-8")
        assert old in text
        (content / name).write_text(text.replace(old, new), encoding="utf-8")
    result = lesson("ledger")
    assert (result.exit_code, result.stdout) == (1, "")
    for name in ("models/Qwen3-8B.json", "models/Llama-3.1-8B.json", "gpus/b200.toml", "grid.toml"):
        assert f"content/{name}:" in result.stderr
    assert result.stderr.endswith("4 errors\n")


def test_one_error_is_not_counted(checkout):
    """A single error stands alone."""
    path = checkout / "content" / "grid.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("shard = 20480", "shard = 0"), encoding="utf-8")
    result = lesson("ledger")
    assert result.exit_code == 1
    assert result.stderr.startswith("content/grid.toml:")
    assert "1 error" not in result.stderr


def test_a_command_works_from_any_folder_of_the_checkout(checkout, monkeypatch):
    """The nearest content/grid.toml from here up is the lesson."""
    path = checkout / "content" / "grid.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("tokens = 1\n", "tokens = 2\n"), encoding="utf-8")
    monkeypatch.chdir(checkout / "content" / "gpus")
    assert asked()["point"]["tokens"] == 2


def test_a_command_works_outside_any_checkout(tmp_path, monkeypatch):
    """Elsewhere it is the lesson that the package came with."""
    monkeypatch.chdir(tmp_path)
    assert asked()["point"]["tokens"] == 1


# build and serve


def test_build_writes_into_the_folder_that_is_named(checkout, monkeypatch):
    """--out and --base-url reach the build; what it made is counted on stdout."""
    calls = []

    def built(root: Path, out: Path, base_url: str | None = None, **_: Any) -> Site:
        calls.append((root, out, base_url))
        return Site({"index.html": b"x" * 1_500_000})

    monkeypatch.setattr(build_module, "build", built)
    result = lesson("build", "--out", "elsewhere", "--base-url", "https://example.org/x/")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("1 file")
    assert "1.5 MB in elsewhere" in result.stdout
    assert lesson("build").exit_code == 0
    assert calls == [
        (checkout, Path("elsewhere"), "https://example.org/x/"),
        (checkout, checkout / "site", None),
    ]


@pytest.mark.parametrize("problem", [LessonErrors, LessonError])
def test_a_failed_build_prints_every_error_and_exits_with_1(checkout, monkeypatch, problem):
    """Errors of the build come on stderr."""
    error = LessonError("wrong", path="content/lesson.md", line=12, column=7, hint="mend it")

    def failing(*_: Any, **__: Any) -> Site:
        raise error if problem is LessonError else LessonErrors([error, LessonError("also", path="theme/x.css")])

    monkeypatch.setattr(build_module, "build", failing)
    result = lesson("build")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "content/lesson.md:12:7: wrong\n  hint: mend it\n" in result.stderr
    if problem is LessonErrors:
        assert result.stderr.endswith("theme/x.css: also\n2 errors\n")


@pytest.mark.parametrize("command", [(), ("ledger",), ("compare",), ("build",), ("serve",)])
def test_every_command_explains_itself(command):
    """--help and -h work everywhere."""
    for word in ("-h", "--help"):
        result = lesson(*command, word)
        assert result.exit_code == 0
        assert result.stdout.startswith("Usage: ")


def test_the_package_runs_as_a_module(tmp_path):
    """`python -m builder` is `lesson`: same numbers, same exit codes, whatever the locale's encoding is."""
    environment = {
        "PATH": "",
        "PYTHONPATH": str(ROOT),
        "LC_ALL": "POSIX",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
    }

    def run(*words: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "builder", "ledger", *words]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)

    found = run("--tokens", "64", "--format", "json")
    assert found.returncode == 0
    assert round(json.loads(found.stdout)["total"]["throughput"], 3) == 1840.486
    assert run("--context", "0").returncode == 2
    table = run("--tokens", "64")
    assert (table.returncode, table.stderr) == (0, b"")


def test_asking_the_ledger_loads_no_charts():
    """`lesson ledger` answers at once: what draws is only loaded by what builds."""
    code = "import builder.cli, sys; sys.exit(str(sorted({'altair', 'vl_convert', 'jinja2'} & set(sys.modules))))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "[]"


# numbers and check

PROSE = """---
title: A lesson
dek: A dek.
kicker: kicker
description: What it is.
---

## First {#first}

You get [1,840 tokens per second]{throughput @ tokens=64}, of *[83%]{attention.share @ tokens=64}*.\r
It is [more than the matmuls take]{attention.share > matmuls.share @ tokens=64}.
"""


@pytest.fixture
def prose(checkout: Path) -> Path:
    """A small text in the checkout, with a line end of its own."""
    path = checkout / "content" / "lesson.md"
    path.write_bytes(PROSE.encode())
    return path


def shown_on(terminal: int) -> str:
    """All that a program writes on the far end of a terminal, until it lets go of it."""
    seen = b""
    with contextlib.suppress(OSError), os.fdopen(terminal, "rb", buffering=0) as stream:
        while data := stream.read(4096):  # at the end Linux says EIO, others say nothing
            seen += data
    return seen.decode().replace("\r\n", "\n")


def make_faster(checkout: Path) -> None:
    """The H100's bandwidth becomes 3.4 TB/s."""
    path = checkout / "content" / "gpus" / "h100.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("3.35e12", "3.4e12"), encoding="utf-8")


def test_numbers_are_listed_with_place_fact_and_value(prose):
    """A table of all; as JSON, with values in SI."""
    result = lesson("numbers")
    assert result.exit_code == 0
    assert "content/lesson.md:10:9" in result.stdout
    assert "2 bound, 1 claim, 0 exempt" in result.stdout
    rows = json.loads(lesson("numbers", "--format", "json").stdout)
    assert [round(row["value"], 3) for row in rows[:2]] == [1840.486, 0.83]
    assert rows[2]["value"] is True


def test_a_stale_number_is_told_and_fixed_and_nothing_else_is_touched(checkout, prose):
    """Old → new at its place, exit 1; --fix changes digits alone; a second run changes nothing."""
    make_faster(checkout)
    told = lesson("numbers")
    assert told.exit_code == 1
    assert "content/lesson.md:10:10: 1,840 → 1,868: throughput @ tokens=64" in told.stderr
    fixed = lesson("numbers", "--fix")
    assert fixed.exit_code == 0
    assert "1,840 → 1,868" in fixed.stdout
    assert prose.read_bytes() == PROSE.replace("1,840", "1,868").encode()
    assert lesson("numbers", "--fix").stdout == "0 rewritten\n"
    assert prose.read_bytes() == PROSE.replace("1,840", "1,868").encode()


def test_a_claim_that_became_false_is_told_and_never_rewritten(prose):
    """--fix leaves the sentence to its author and exits with 1."""
    text = PROSE.replace("attention.share > matmuls.share", "attention.share < matmuls.share")
    prose.write_bytes(text.encode())
    result = lesson("numbers", "--fix")
    assert result.exit_code == 1
    assert result.stderr.startswith("content/lesson.md:11:")
    assert prose.read_bytes() == text.encode()


def test_a_diff_tells_the_story_since_a_revision(checkout, prose):
    """Against git: the sentence, old → new, and who computed the old side."""
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-qm", "Before"]):
        subprocess.run(["git", *words], cwd=checkout, check=True)
    make_faster(checkout)
    lesson("numbers", "--fix")
    result = lesson("numbers", "--diff", "HEAD", "--format", "markdown")
    assert result.exit_code == 0
    assert "1,840 tokens per second → 1,868 tokens per second | +1.5 %" in result.stdout
    assert "Old values: " in result.stdout
    unknown = lesson("numbers", "--diff", "no-such-branch")
    assert (unknown.exit_code, unknown.stdout) == (1, "")
    assert "git knows no revision 'no-such-branch' here" in unknown.stderr


def test_fix_and_diff_exclude_each_other(prose):
    """Two things to do at once are a wrong command line."""
    assert lesson("numbers", "--fix", "--diff", "HEAD").exit_code == 2


def test_check_counts_the_numbers_of_a_good_text(prose, monkeypatch):
    """Nothing is written; the count is printed."""
    monkeypatch.setattr(build_module, "assemble", lambda root, prose: Site())
    monkeypatch.setattr(unused_module, "unused", lambda *_: [])  # of this small text's sources, all are
    monkeypatch.delitem(sys.modules, "builder.check", raising=False)
    result = lesson("check")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "2 bound, 1 claim, 0 exempt" in result.stdout


def test_on_a_terminal_an_error_quotes_its_line(checkout, prose):
    """Where a person reads, the line and a mark below the column; in a pipe, one line an error for editors to parse."""
    pty = pytest.importorskip("pty", reason="no terminals to be had here")
    make_faster(checkout)
    command = [sys.executable, "-m", "builder", "numbers"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    told = "content/lesson.md:10:10: 1,840 → 1,868: throughput @ tokens=64 is 1,868 tokens/s\n"
    hint = "  hint: `numbers --fix` writes it\n"
    piped = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, encoding="utf-8", check=False)
    assert (piped.returncode, piped.stderr) == (1, told + hint)
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, cwd=checkout, env=environment, stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        shown = shown_on(ours)
    line = "You get [1,840 tokens per second]{throughput @ tokens=64}, of *[83%]{attention.share @ tok…"
    assert process.returncode == 1
    assert shown == f"{told}  10 | {line}\n     |          ^\n{hint}"


def test_check_tells_all_that_is_wrong(checkout, prose):
    """Everything in one run, at its place, exit 1."""
    prose.write_text(PROSE + "\nSome 17 more, and [12%]{attention.shar}.\n", encoding="utf-8")
    result = lesson("check")
    assert result.exit_code == 1
    assert "content/lesson.md:13:6: " in result.stderr
    assert "did you mean 'share'?" in result.stderr


def test_a_verbose_build_says_where_the_time_goes(checkout, monkeypatch):
    """A line a step on stderr; a quiet one says nothing; a pipe sees no progress."""

    def made(root: Path, out: Path, base_url: str | None, progress: Any) -> Site:
        progress("prose")
        progress("writing")
        return Site()

    monkeypatch.setattr(build_module, "build", made)
    told = lesson("build", "-v").stderr.splitlines()
    assert [line.split("s  ")[1] for line in told] == ["loading the program", "prose", "writing"]
    assert (lesson("build", "-q").stdout, lesson("build", "-q").stderr) == ("", "")
    assert lesson("build").stderr == ""


def test_an_assumption_is_set_from_the_command_line():
    """NAME=VALUE, spaces round the sign allowed; without a value, or a name, it is told how one is written."""
    assert asked("--assume", "lm_head = bf16", "--weights", "int4")["point"]["lm_head"] == "bf16"
    assert round(asked("--assume", "lm_head=bf16", "--weights", "int4")["total"]["throughput"]) == 451
    for words, told in (
        ("lm_head", "'lm_head' says no value. write --assume lm_head=bf16"),
        ("x=1", "no assumption 'x'"),
    ):
        result = lesson("ledger", "--assume", words)
        assert (result.exit_code, result.stdout) == (2, "")
        assert told in result.stderr


class Terminal(io.StringIO):
    """Where a person watches."""

    def isatty(self) -> bool:
        return True


def test_a_build_on_a_terminal_shows_the_step_it_is_at(monkeypatch):
    """On one line, which is empty in the end; a quiet build shows nothing."""
    for quiet, shown in ((False, "\r\x1b[Kprose …\r\x1b[Kpages …\r\x1b[K"), (True, "")):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        steps = cli._Steps(verbose=False, quiet=quiet)
        with steps:
            steps("prose")
            steps("pages")
        assert terminal.getvalue() == shown


def test_serve_shows_the_checkouts_site(checkout, monkeypatch):
    """--out and --port reach the server; by default it is the folder that `lesson build` writes."""
    calls: list[dict[str, Any]] = []

    def served(report: Any, **given: Any) -> None:
        calls.append(given)
        report("Serving.")

    monkeypatch.setattr("builder.serve.serve", served)
    assert lesson("serve").stdout == "Serving.\n"
    assert lesson("serve", "--out", "elsewhere", "--port", "8123").exit_code == 0
    assert calls == [
        {"root": checkout, "out": checkout / "site", "port": 8000},
        {"root": checkout, "out": Path("elsewhere"), "port": 8123},
    ]
