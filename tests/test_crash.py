"""A build that is killed at any moment leaves a page whose every reference is there and whole: the old or the new."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.toys import ROOT

FOLDERS = ("builder", "content", "theme")
CHANGED_LESSON = """\
---
title: As it was
kicker: Before
dek: A page of an earlier day.
description: Before.
---

## First {#first}

Other words.

::: bench
:::
"""
# the first are parts of the whole build, the others of the time in which it writes
OF_THE_BUILD = (0.1, 0.3, 0.5, 0.7, 0.9)
OF_THE_WRITING = (0.1, 0.5, 0.9)

REFERENCE = re.compile(r"""\s(?:src|href|data-spec|data-runtime)=["']?([^"'\s>]+)""")
BENCH_DATA = re.compile(r'id="bench-data">(.*?)</script>', re.DOTALL)
HASHED = re.compile(r"\.([0-9a-f]{10})\.\w+$")


@dataclass(frozen=True)
class Builds:
    """A checkout, the site of an earlier one whose data, text and style were different, and how long a build takes."""

    checkout: Path
    earlier: Path
    seconds: float
    writing: float


def start(checkout: Path, out: Path) -> subprocess.Popen[bytes]:
    """`lesson build --out OUT` of a checkout, by its own builder, in a process that may be killed."""
    command = [sys.executable, "-m", "builder", "build", "--quiet", "--out", str(out)]
    return subprocess.Popen(command, cwd=checkout, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(process: subprocess.Popen[bytes]) -> None:
    """Wait for a build that must end well."""
    _, complaints = process.communicate(timeout=120)
    assert process.returncode == 0, complaints.decode()


def wait_for_writing(process: subprocess.Popen[bytes], out: Path) -> float:
    """Wait until the build has put its first file, the manifest, into place; returns when that was."""
    before = out.joinpath("manifest.json").read_bytes()
    while process.poll() is None and out.joinpath("manifest.json").read_bytes() == before:
        time.sleep(0.001)
    return time.perf_counter()


def copied(name: str, folder: Path) -> Path:
    """A checkout of its own, with what is warm in the project's cache."""
    checkout = folder / name
    for part in FOLDERS:
        shutil.copytree(ROOT / part, checkout / part, ignore=shutil.ignore_patterns("__pycache__"))
    if (ROOT / ".cache").is_dir():
        shutil.copytree(ROOT / ".cache", checkout / ".cache", ignore=shutil.ignore_patterns(".lesson-new-*"))
    return checkout


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Builds:
    """Both checkouts, the earlier site, and the time of a build over it that nobody kills."""
    folder = tmp_path_factory.mktemp("crash")
    before, checkout = copied("before", folder), copied("now", folder)
    (before / "content" / "lesson.md").write_text(CHANGED_LESSON, encoding="utf-8")
    shutil.rmtree(before / "content" / "sections", ignore_errors=True)
    for name, old, new in (
        ("content/gpus/h100.toml", "value = 989e12", "value = 980e12"),
        ("theme/css/tokens.css", ":root", "html { --was: 1; }\n:root"),
        ("theme/js/early.js", "", "// was\n"),
    ):
        text = (before / name).read_text(encoding="utf-8")
        assert old in text
        (before / name).write_text(text.replace(old, new, 1), encoding="utf-8")
    earlier = folder / "earlier"
    finish(start(before, earlier))
    finish(start(checkout, folder / "warms the cache"))
    out = folder / "measured"
    shutil.copytree(earlier, out)
    begun = time.perf_counter()
    process = start(checkout, out)
    wrote = wait_for_writing(process, out)
    finish(process)
    ended = time.perf_counter()
    return Builds(checkout, earlier, ended - begun, ended - wrote)


def references(page: str) -> set[str]:
    """Every file that a page asks for: by its elements, and by the bench's data."""
    found = {address.partition("#")[0] for address in REFERENCE.findall(page)}
    documents = [json.loads(text) for text in BENCH_DATA.findall(page)]
    for document in documents:
        found |= set(re.findall(r'"(data/[^"]+\.js)"', json.dumps(document)))
    assert documents, "the page has no data of the bench"
    return {address for address in found if address and not re.match(r"[a-z]+:", address)}


def assert_whole(site: Path) -> None:
    """index.html is there, and all it refers to, each with the content that its name promises."""
    asked = references((site / "index.html").read_text(encoding="utf-8"))
    assert {address.partition("/")[0] for address in asked} >= {"assets", "data"}
    wrong = {}
    for address in asked:
        path, promised = site / address, HASHED.search(address)
        if not path.is_file():
            wrong[address] = "not there"
        elif promised and not hashlib.sha256(path.read_bytes()).hexdigest().startswith(promised[1]):
            wrong[address] = "not what its name says"
    assert wrong == {}


def files_of(folder: Path) -> dict[str, bytes]:
    """Everything in a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no process can be killed as hard here")
@pytest.mark.parametrize(
    ("phase", "part"),
    [*(("build", part) for part in OF_THE_BUILD), *(("writing", part) for part in OF_THE_WRITING)],
)
def test_a_build_killed_at_any_moment_leaves_a_whole_page(
    builds: Builds, tmp_path: Path, phase: str, part: float
) -> None:
    """The page refers to nothing that is missing or torn, and the next build ends as if nothing had been."""
    out = tmp_path / "site"
    shutil.copytree(builds.earlier, out)
    assert_whole(out)
    process = start(builds.checkout, out)
    if phase == "writing":
        wait_for_writing(process, out)
    time.sleep((builds.seconds if phase == "build" else builds.writing) * part)
    process.kill()
    process.communicate()
    assert_whole(out)
    finish(start(builds.checkout, out))
    assert_whole(out)
    assert files_of(out) == files_of(builds.earlier.parent / "warms the cache")
