"""Whatever an author's slip makes of a content file, the lesson is right or says what is wrong, and where.

A few hundred edits every day; LESSON_MUTATIONS=5000 tries as many. Each has a number, which is its seed: it is told
where an edit fails, and LESSON_MUTATIONS_FROM begins there.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from builder import build, check, drawings, figures
from builder.drawing import Picture
from builder.drawn import Figure, Size
from builder.errors import LessonError, LessonErrors
from builder.grid import Grid
from tests.toys import ROOT

COUNT = int(os.environ.get("LESSON_MUTATIONS", "240"))
FIRST = int(os.environ.get("LESSON_MUTATIONS_FROM", "0"))
BATCHES = 8  # so that a failure hides no more than its own batch
LONGEST = 20  # seconds that one edit may take, on a slow machine too

LESSON = "content/lesson.md"
DATA = tuple(f"content/{name}.toml" for name in ("grid", "measured", "history", "constants", "sources"))
JUNK: list[str] = [
    *"[](){}<>:|`*_$#=\"'\\\n\t\r\0\ufeff\u200b\u2028,.;-@%&!~^",
    *("\n\n", ":::", "::: figure", "---\n", "[1]{", "]{", "}{", "[]{}", "[](#", "](#)", "![](", "$$", "\\text{"),
    *("{exempt: ", " @ tokens=", " within ", "| a | b |\n|--|--|\n", "- [x] ", "> ", "    ", "[^1]", "[^1]: ", "&#0;"),
    *("<b>", "<!--", "<script>", "<!--slot:bench-->", "<!--slot:figure x-->", "é", "١٢", "½", "²", "𝟗", "[" * 40),
    *('"""', "[[", "]]", "[a.b]", "a.b.c = 1", "= =", "{}", "null", "true", "1e400", "nan", "inf", "0x", "2020-01-01"),
]  # fmt: skip
NUMBERS = [
    *("0", "-1", "1", "1.5", "1e3", "1e30", "1e308", "1e309", "-0.0", "nan", "inf", "1_000", "0x10", "00", "3.", ".5"),
    *("9" * 25, "1" * 5000, "2147483648", "9007199254740993", "18446744073709551616", "1e-300", "٣", "1,000", "1/0"),
]
VALUES = [
    *('""', '"x"', "[]", "{}", "[1]", '["h100"]', "true", "false", "null", "1979-05-27", "12:00:00", '"h100"', "[[]]"),
    *('{ value = 1, source = "x" }', '{"a": 1}', "0", "-3", "2.5", "1e25", '"\\u0000"', "'a\"b<i>'", '" "', '"1"'),
]
KEPT: dict[str, str] = {}  # what builds keep, by a name that is a hash of contents
MADE: list[str] = []  # the labels of all figures
ROOFLINES: dict[str, Figure] = {}
DRAW = figures.roofline_figure
NUMBER = re.compile(r"\d[\d_,.]*(?:e[+-]?\d+)?")
VALUE = re.compile(r"(?<=[=:] )[^\n,]+")
FACT = re.compile(r"\{[^{}\n]*\}")


def edited(text: str, chance: random.Random) -> str:
    """One slip of the hand."""
    at = chance.randrange(len(text) + 1)
    span = chance.choice((1, 1, 2, 5, 30))
    lines = text.split("\n")
    line, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    kind = chance.randrange(14)
    if kind == 0:
        return text[:at] + text[at + span :]
    if kind == 1:
        return text[:at] + text[at : at + span] * 2 + text[at + span :]
    if kind in (2, 3):
        return text[:at] + chance.choice(JUNK) + text[at:]
    if kind == 4:
        return text[:at] + text[at + 1 : at + 2] + text[at : at + 1] + text[at + 2 :]
    if kind == 5:
        lines.pop(line)
    elif kind == 6:
        lines.insert(other, lines[line])
    elif kind == 7:
        lines[line], lines[other] = lines[other], lines[line]
    elif kind in (8, 9):
        return replaced(NUMBER, text, chance, chance.choice(NUMBERS))
    elif kind in (10, 11):
        pattern = chance.choice((VALUE, FACT))
        return replaced(pattern, text, chance, chance.choice(VALUES + NUMBERS))
    elif kind == 12:
        return replaced(re.compile(r"[][(){}]"), text, chance, chance.choice(("", "(", "]", "}", "[", "{")))
    else:
        return text[:at] if chance.random() < 0.1 else replaced(re.compile(r"\w+"), text, chance, chance.choice(JUNK))
    return "\n".join(lines)


def replaced(pattern: re.Pattern[str], text: str, chance: random.Random, new: str) -> str:
    """The text with one match of the pattern replaced, if there is any."""
    found = list(pattern.finditer(text))
    if not found:
        return text
    match = chance.choice(found)
    return text[: match.start()] + new + text[match.end() :]


def slipped(data: str, chance: random.Random) -> bytes:
    """A text after one to four edits; at times no longer UTF-8."""
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        data = edited(data, chance)
    raw = data.encode("utf-8", "surrogatepass")
    if chance.random() < 0.02:
        at = chance.randrange(len(raw) + 1)
        raw = raw[:at] + b"\xff" + raw[at:]
    return raw


def some_parts(text: str, chance: random.Random) -> str:
    """The front matter of a lesson, the part with its bench, and one more: a whole one takes long to read."""
    front, *parts = re.split(r"(?m)^(?=## )", text)
    bench = next(part for part in parts if "\n::: bench" in part)
    some = front + bench + chance.choice([part for part in parts if part != bench])
    elsewhere = sorted(set(re.findall(r"\]\(#([\w-]+)\)", some)) - set(re.findall(r"\{#([\w-]+)\}", some)))
    return some + "".join(f"\n## Part of {place} {{#{place}}}\n\nWords.\n" for place in elsewhere)


@contextmanager
def limit(seconds: int) -> Iterator[None]:
    """Nothing hangs: after so long what runs is broken off, where the system can."""

    def too_long(_: int, __: FrameType | None) -> None:
        raise TimeoutError(f"not done after {seconds} s")

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture
def real(tmp_path: Path) -> Path:
    """A copy to break and to build as it is, with what is warm in the project's cache."""
    for folder in ("content", "theme"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    if (ROOT / ".cache").is_dir():
        shutil.copytree(ROOT / ".cache", tmp_path / ".cache")
    return tmp_path


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy to break, in which one shard stands for all; charts are made, but not painted."""
    for folder in ("content", "theme"):
        shutil.copytree(ROOT / folder, tmp_path / folder)

    def unpainted(picture: Picture, label: str, sizes: tuple[Size, ...] = ("wide",), **_: object) -> Figure:
        MADE.append(label)
        name = "roofline" if sizes == figures.ROOFLINE_SIZES else f"figure-{len(MADE)}"
        return Figure(name, {}, "//", dict.fromkeys(figures.ROOFLINE_SIZES, "<svg></svg>"), label)

    def kept_roofline(shown: Mapping[str, Any], colours: Mapping[str, str], *_: object) -> Figure:
        key = json.dumps(shown)
        return ROOFLINES.get(key) or ROOFLINES.setdefault(key, DRAW(shown, colours))

    def kept(root: Path, name: str, make: Callable[[], str], by: str) -> str:
        return KEPT.get(name) or KEPT.setdefault(name, make())

    monkeypatch.setattr(figures, "figure", unpainted)
    monkeypatch.setattr(figures, "roofline_figure", kept_roofline)
    monkeypatch.setattr(build, "vega_runtime", lambda: "window.lessonVega = {};")
    for module in (build, drawings):
        monkeypatch.setattr(module, "cached", kept)
    monkeypatch.setattr(Grid, "shard_points", lambda grid: [grid.defaults])
    return tmp_path


def files_to_break(root: Path) -> list[str]:
    """The content's files, by what an author writes most."""
    folders = [path for folder in ("gpus", "models") for path in sorted((root / "content" / folder).iterdir())]
    return [*[LESSON] * 12, *DATA * 2, *[path.relative_to(root).as_posix() for path in folders]]


def outcome(root: Path) -> list[LessonError]:
    """What `check` says of a checkout: nothing where it is right."""
    prose, errors = check.check(root)
    assert prose is not None or errors, "no text, and no word why"
    return errors


def assert_tells(error: LessonError, root: Path) -> None:
    """A mistake names a file that is there or is missed, a line and a column within it, in words of one line."""
    assert error.message.strip()
    assert "\n" not in error.message, error.message
    assert error.path is not None, error.message
    assert error.path.startswith("content/"), str(error)
    path = root / error.path
    if error.line is not None and path.is_file():
        lines = path.read_text(encoding="utf-8-sig", errors="replace").split("\n")
        assert 1 <= error.line <= len(lines) + 1, f"{error} of {len(lines)} lines"
        if error.column is not None:
            assert 1 <= error.column <= len([*lines, ""][error.line - 1]) + 1, error


@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_broken_content_file_is_told_and_never_a_traceback(checkout: Path, batch: int) -> None:
    """After a slip in any file the check ends with what is wrong, or with nothing, and in time."""
    outcomes: Counter[str] = Counter()
    failures: list[str] = []
    everything, whole = files_to_break(checkout), (checkout / LESSON).read_text(encoding="utf-8")
    for seed in range(FIRST + batch, FIRST + COUNT, BATCHES):
        chance = random.Random(seed)
        name = chance.choice(everything)
        path = checkout / name
        before = path.read_bytes()
        prose = some_parts(whole, chance)
        (checkout / LESSON).write_text(prose, encoding="utf-8")
        path.write_bytes(slipped(prose if name == LESSON else before.decode(), chance))
        try:
            with limit(LONGEST):
                errors = outcome(checkout)
            for error in errors:
                assert_tells(error, checkout)
            outcomes["wrong" if errors else "right"] += 1
        except Exception as error:
            failures.append(f"edit {seed} of {name}: {type(error).__name__}: {str(error)[:600]}")
        finally:
            path.write_bytes(before)
    print(dict(outcomes))
    assert failures == []
    assert outcomes["wrong"] or COUNT < 200


@pytest.mark.skipif(COUNT < 1000, reason="twenty whole builds: for LESSON_MUTATIONS=1000 and more")
def test_a_whole_build_of_broken_content_is_whole_or_not_at_all(real: Path) -> None:
    """A build that fails leaves the site as it was; one that doesn't leaves nothing out."""
    out = real / "site"
    built = build.build(real, out)
    outcomes: Counter[str] = Counter()
    everything = files_to_break(real)
    for seed in range(FIRST, FIRST + 20):
        chance = random.Random(seed)
        path = real / chance.choice(everything)
        before = path.read_bytes()
        path.write_bytes(slipped(before.decode(), chance))
        try:
            built = build.build(real, out)
            outcomes["built"] += 1
        except LessonErrors as problems:
            for error in problems.errors:
                assert_tells(error, real)
            outcomes["refused"] += 1
        finally:
            path.write_bytes(before)
        there = {file.relative_to(out).as_posix(): file.read_bytes() for file in out.rglob("*") if file.is_file()}
        there.pop("manifest.json")
        assert there == built.files, f"edit {seed} of {path.name}"
    print(dict(outcomes))
