"""The command `numbers`: the list, the fix that changes digits alone, and the story since a revision."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builder import numbers
from builder.catalog import Sourced
from builder.errors import LessonError
from builder.facts import Facts
from builder.grid import load_grid
from builder.numbers import Diff, compare, fix, fix_all, listing, report, rows, summary
from builder.places import Source
from builder.prose import Prose, read, sources
from tests.conftest import ROOT

FRONT = "---\ntitle: T\n---\n"
GRID = load_grid(ROOT)
FACTS = Facts(GRID)


def with_bandwidth(value: float) -> Facts:
    """The lesson's grid with another bandwidth of the H100."""
    h100 = replace(GRID.gpus["h100"], bandwidth=Sourced(value, "test"))
    return Facts(replace(GRID, gpus={**GRID.gpus, "h100": h100}))


FASTER = with_bandwidth(3.4e12)


def source(text: str, path: str = "content/lesson.md") -> Source:
    return Source(path, FRONT + text)


def prose(text: str, facts: Facts = FACTS) -> Prose:
    return read([source(text)], facts)


def without_digits(text: str) -> str:
    return re.sub(r"[\d.,\u00a0\u2009\u202f]", "", text)


# the list


def test_the_list_shows_place_text_fact_point_and_value() -> None:
    """A line for each bound number, and how many there are."""
    text = "It writes [1,840 tokens per second]{throughput @ tokens=64} in [2009]{exempt: a year}.\n"
    shown = listing(prose(text))
    head, first, second, last = shown.splitlines()
    assert head.split() == ["place", "text", "fact", "point", "value"]
    assert first.startswith(
        "content/lesson.md:4:11  1,840 tokens per second  throughput @ tokens=64  phase=decode tokens=64"
    )
    assert first.endswith("1,840 tokens/s")
    assert second.startswith("content/lesson.md:4:64  2009")
    assert last == "1 bound, 0 claims, 1 exempt"


def test_the_list_says_what_is_stale_false_or_broken() -> None:
    """It lists all the same: a list is no check."""
    shown = listing(prose('[1]{throughput}\n\n[no]{fits == "no"}\n\n[1]{nothing}\n'))
    assert [line.rpartition("  ")[2] for line in shown.splitlines()[1:4]] == [
        "163.9 tokens/s (stale)",
        "false (false)",
        "(broken)",
    ]


def test_the_list_is_json_too() -> None:
    """SI values, seven axes, and what the text says."""
    (row,) = json.loads(listing(prose("Now [6.10 ms]{time}."), "json"))
    assert row["value"] == pytest.approx(6.1029e-3, rel=1e-4)
    assert row["point"] == vars(GRID.defaults)
    assert (row["path"], row["line"], row["column"]) == ("content/lesson.md", 4, 5)
    assert (row["text"], row["digits"], row["kind"], row["status"]) == ("6.10 ms", "6.10 ms", "value", "ok")
    assert row["sentence"] == "Now 6.10 ms."


def test_the_list_is_markdown_too() -> None:
    """A table that a job summary shows; bars are escaped."""
    shown = listing(prose("| a |\n|---|\n| [2 \\| x]{exempt: why so} |\n"), "markdown")
    assert shown.splitlines()[:3] == [
        "| place | text | fact | point | value |",
        "| --- | --- | --- | --- | --- |",
        "| content/lesson.md:6:3 | 2 \\| x | exempt: why so |  |  |",
    ]


# the fix


def test_a_fix_changes_digits_and_nothing_else() -> None:
    """Separators, units, emphasis, markup and line ends stay; what holds isn't touched."""
    cell = "[**1,830** tokens\\/s]{throughput @ tokens=64}"
    text = (
        "## At [296]{gpu.ridge_point}\r\n\r\n| a | b |\r\n|---|---|\r\n"
        f"| {cell} | [1\u202f830]{{throughput @ tokens=64}} |\r\n\r\n"
        "> - *about [0.4%]{peak_share}* and\r\n>   [7 ms]{time\r\n> }\r\n"
    )
    fixed = fix_all([source(text)], FACTS)
    expected = (
        text.replace("296", "295").replace("1,830", "1,840").replace("1\u202f830", "1\u202f840").replace("0.4%", "0.3%")
    ).replace("7 ms", "6 ms")
    assert fixed.texts == {"content/lesson.md": FRONT + expected}
    assert len(fixed.rewritten) == 5
    assert fixed.prose.errors == ()


def test_a_second_fix_changes_nothing() -> None:
    """On the lesson itself, after the H100 has become faster."""
    texts = sources(ROOT)
    fixed = fix_all(texts, FASTER)
    assert fixed.rewritten
    again = fix_all([Source(each.path, fixed.texts.get(each.path, each.text)) for each in texts], FASTER)
    assert again.texts == {}
    assert again.rewritten == ()


def test_a_faster_gpu_makes_the_lesson_stale_and_a_fix_mends_all_but_claims_and_words() -> None:
    """What the issue asks for: every stale number is listed, digits alone change, what is left is false or in words."""
    texts = sources(ROOT)
    stale = [each for each in read(texts, FASTER).bound if each.status == "stale"]
    assert len(stale) > 20
    fixed = fix_all(texts, FASTER)
    for each in texts:
        assert without_digits(fixed.texts.get(each.path, each.text)) == without_digits(each.text)
    left = [each for each in fixed.prose.bound if each.status != "ok"]
    assert all(each.kind == "claim" or each.numeral is None for each in left)
    assert len(fixed.prose.errors) == len(left)


def test_claims_are_reported_never_rewritten() -> None:
    """A claim that became false is the author's to reword."""
    text = "[at 4]{attention.arithmetic_intensity == 4 @ kv=fp8} and [sixty]{throughput(tokens=64) / throughput}\n"
    fixed = fix_all([source(text)], FACTS)
    assert fixed.texts == {}
    assert [error.message.split(":")[0] for error in fixed.prose.errors] == [
        "this claim is false",
        "sixty → eleven",
    ]


def test_several_files_are_fixed_apart() -> None:
    """Offsets belong to their own file."""
    texts = [source("[1]{throughput}\n"), Source("content/sections/1.md", "Long before [2]{throughput}\n")]
    fixed = fix_all(texts, FACTS)
    assert fixed.texts == {
        "content/lesson.md": FRONT + "[164]{throughput}\n",
        "content/sections/1.md": "Long before [164]{throughput}\n",
    }


def test_front_matter_and_formulas_are_fixed_too() -> None:
    """Their offsets are of the file as well."""
    text = '---\ntitle: "At [296]{gpu.ridge_point}"\n---\n$x = \\bound{7\\,\\text{ms}}{time}$\n'
    fixed = fix_all([Source("l.md", text)], FACTS)
    assert fixed.texts == {"l.md": text.replace("296", "295").replace("7\\,", "6\\,")}


def test_a_stale_reading_is_refused() -> None:
    """Offsets of another text would corrupt a neighbour."""
    bounds = prose("[1]{throughput}\n").bound
    with pytest.raises(AssertionError, match="changed since"):
        fix(FRONT + "xxxx [1]{throughput}\n", bounds)


# the diff


def changes(old: str, new: str, *, old_facts: Facts = FACTS, new_facts: Facts = FACTS) -> Diff:
    return compare(rows(prose(old, old_facts)), rows(prose(new, new_facts)), "HEAD", "a test")


def test_a_diff_tells_old_and_new_and_by_how_much() -> None:
    """The text may be fixed already or not: the story is the same."""
    text = "It writes [164 tokens per second]{throughput}. The peak is [989 TFLOP/s]{gpu.peak_flops}.\n"
    for new in (text, text.replace("164", "166")):
        found = changes(text, new, new_facts=FASTER)
        (change,) = found.changed
        assert (change.old, change.new) == ("164 tokens per second", "166 tokens per second")
        assert change.percent == pytest.approx(1.49, abs=0.01)
        assert change.sentence.startswith("It writes 16")
        assert (found.unchanged, found.drifted) == (1, 0)


def test_what_moved_by_less_than_its_digits_is_counted_not_listed() -> None:
    """Nobody wants fifty rows that look the same."""
    found = changes("[295]{gpu.ridge_point}", "[295]{gpu.ridge_point}", new_facts=with_bandwidth(3.351e12))
    assert (found.changed, found.unchanged, found.drifted) == ([], 1, 1)


def test_a_claim_that_flipped_comes_first() -> None:
    """true → false."""
    text = "[so]{gpu.ridge_point > 292} at [295]{gpu.ridge_point}\n"
    found = changes(text, text, new_facts=FASTER)
    assert [(each.old, each.new) for each in found.flipped] == [("true", "false")]
    shown = report(found)
    assert shown.index("flipped") < shown.index("changed")


def test_a_number_that_vanishes_shows_as_removed_and_a_new_one_as_added() -> None:
    """Rewording a sentence can't lose a bound number unseen."""
    old = "At [64]{tokens @ tokens=64} it writes [1,840]{throughput @ tokens=64}."
    found = changes(old, "It writes [164]{throughput}.")
    assert [each.old for each in found.removed] == ["64", "1,840"]
    assert [(each.old, each.new) for each in found.added] == [(None, "164")]


def test_a_sentence_that_moved_is_no_change() -> None:
    """Facts are matched wherever they stand."""
    one, two = "A [164]{throughput}.\n\n", "B [295]{gpu.ridge_point}.\n\n"
    found = changes(one + two, two + one)
    assert (found.changed, found.removed, found.added, found.unchanged) == ([], [], [], 2)


def test_reports_read_well_in_every_format() -> None:
    """Text, a job summary, and JSON."""
    text = "It writes [164 tokens per second]{throughput}, [so]{gpu.ridge_point > 292}.\n"
    found = changes(text, text + "\n[2]{exempt: new}\n", new_facts=FASTER)
    shown = report(found, "markdown")
    assert "### Claims that flipped: 1" in shown
    assert (
        "| content/lesson.md:4 | It writes 164 tokens per second, so. "
        "| 164 tokens per second → 166 tokens per second | +1.5 % | `throughput` |"
    ) in shown
    assert "| – → 2 |" in shown
    assert "a test" in shown
    document = json.loads(report(found, "json"))
    assert [len(document[key]) for key in ("flipped", "changed", "removed", "added")] == [1, 1, 0, 1]
    assert "No bound number changed since HEAD" in report(changes(text, text))


def git(folder: Path, *words: str) -> None:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false", *words]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the lesson's content and a short text, in which the H100 got faster after the first commit."""
    root = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "content", root / "content")
    (root / "content" / "lesson.md").write_text(FRONT + "It writes [164]{throughput}.\n", encoding="utf-8")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "one")
    h100 = root / "content" / "gpus" / "h100.toml"
    h100.write_text(h100.read_text(encoding="utf-8").replace("3.35e12", "3.4e12"), encoding="utf-8")
    return root


@pytest.fixture
def with_builder(checkout: Path) -> Path:
    """The repository with a builder, an empty one, in its last commit."""
    if not (checkout / "builder").exists():
        (checkout / "builder").mkdir()
        for name in ("__init__.py", "numbers.py"):
            (checkout / "builder" / name).write_text("", encoding="utf-8")
        git(checkout, "add", "builder")
        git(checkout, "commit", "-qm", "two")
    return checkout


def test_a_diff_reads_the_revision_itself(checkout: Path, tmp_path: Path) -> None:
    """Its text and its data; without a builder of its own, today's computes the old side and says so."""
    today = read(sources(checkout), Facts(load_grid(checkout)))
    found = numbers.diff(checkout, "HEAD", today, tmp_path)
    assert [(each.old, each.new) for each in found.changed] == [("164", "166")]
    assert found.old_side.startswith("today's builder")
    assert (tmp_path / "content" / "gpus" / "h100.toml").is_file()


def test_a_diff_asks_the_revisions_own_builder(
    with_builder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it lists numbers as JSON, what it says counts, whatever its exit code."""
    row: dict[str, Any] = {**rows(prose("It writes [164]{throughput}."))[0], "value": 100.0, "digits": "100"}

    def answer(command: list[str], **_: Any) -> Any:
        if command[:1] == ["git"]:
            return real(command, **_)
        assert command[1:] == ["-m", "builder", "numbers", "--format", "json"]
        return subprocess.CompletedProcess(command, 1, stdout=json.dumps([row]).encode(), stderr=b"")

    real = subprocess.run
    monkeypatch.setattr(subprocess, "run", answer)
    found = numbers.diff(with_builder, "HEAD", prose("It writes [164]{throughput}."), tmp_path)
    assert [(each.old, each.new) for each in found.changed] == [("100", "164")]
    assert found.old_side == "the builder of HEAD"


def test_a_builder_that_answers_nonsense_is_not_believed(with_builder: Path, tmp_path: Path) -> None:
    """An empty module lists nothing: today's builder computes instead."""
    today = read(sources(with_builder), Facts(load_grid(with_builder)))
    assert numbers.diff(with_builder, "HEAD", today, tmp_path).old_side.startswith("today's builder")


@pytest.mark.parametrize("ref", ["nowhere", "--output=x", "HEAD~99", ""])
def test_a_revision_that_git_does_not_know_is_said(checkout: Path, tmp_path: Path, ref: str) -> None:
    """Nor can a revision's name become an option of git."""
    with pytest.raises(LessonError, match="git knows no revision"):
        numbers.diff(checkout, ref, prose("x"), tmp_path)


def test_a_revision_without_a_lesson_is_said(tmp_path: Path) -> None:
    """The text began somewhere."""
    root, folder = tmp_path / "root", tmp_path / "folder"
    root.mkdir()
    folder.mkdir()
    (root / "a").write_text("a", encoding="utf-8")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "one")
    with pytest.raises(LessonError, match="the content of 'HEAD' can't be read"):
        numbers.diff(root, "HEAD", prose("x"), folder)


def test_the_summary_counts_kinds() -> None:
    """What `check` prints."""
    assert summary(prose("[164]{throughput} [so]{throughput > 1} [2]{exempt: it is}")) == "1 bound, 1 claim, 1 exempt"


def test_a_diff_without_git_says_what_it_lacks(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No traceback where git isn't installed."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LessonError, match="git isn't installed"):
        numbers.diff(checkout, "HEAD", prose("x"), tmp_path)


@pytest.mark.parametrize("answer", [b"[{}]", b"{}", b"no JSON", b"\xff"])
def test_a_list_that_is_none_of_ours_is_not_believed(
    with_builder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    """Another program's answer, or an older one's: today's builder computes instead."""

    def run(command: list[str], **given: Any) -> Any:
        if command[0] == "git":
            return real(command, **given)
        return subprocess.CompletedProcess(command, 0, stdout=answer, stderr=b"")

    real = subprocess.run
    monkeypatch.setattr(subprocess, "run", run)
    today = read(sources(with_builder), Facts(load_grid(with_builder)))
    assert numbers.diff(with_builder, "HEAD", today, tmp_path).old_side.startswith("today's builder")
