"""A process that goes on when the builder's code changes: new code is seen at once, and nothing else is loaded anew."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from builder.reloading import outdated
from tests.conftest import ROOT
from tests.test_serve import free_port, get, until

LOADED = {
    "__init__": b"",
    "errors": b"",
    "ledger": b"from builder.errors import LessonError",
    "page": b"from builder import errors, words\n",
    "words": b"import json",
    "build": b"def draw():\n    from builder import ledger\n",
}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, set()),
        ({"build": b"new"}, {"build"}),
        ({"words": b"new"}, {"words", "page"}),
        ({"errors": b"new"}, {"errors", "ledger", "page", "build"}),
        ({"words": None}, {"words", "page"}),
        ({"more": b"nobody's yet"}, {"more"}),
        ({"ledger": None, "more": b"for it"}, {"ledger", "build", "more"}),
        ({"__init__": b"new"}, set(LOADED)),
    ],
)
def test_what_imports_a_changed_module_is_outdated_too(changed: dict[str, bytes | None], expected: set[str]) -> None:
    """And nothing else: its classes are the same as before, and what it remembers is there."""
    sources = {name: source for name, source in {**LOADED, **changed}.items() if source is not None}
    assert outdated(LOADED, sources) == expected


TOY = {
    "__init__": "",
    "words": "WORD = 'one'\n",
    "other": "MADE = object()\n",
    "later": "WORD = 'late'\n",
    "build": "from builder import other\nfrom builder.words import WORD\n\n"
    "def late():\n    from builder import later\n    return later.WORD\n",
}
SCRIPT = """
import os, sys
from pathlib import Path

from builder import build, other
from builder.reloading import FOLDER, Code

def save(name, text):
    (FOLDER / f"{name}.py").write_text(text)
    os.utime(FOLDER / f"{name}.py", (1, 1))  # in the same second as all the others

def now():
    return sys.modules["builder.build"].WORD

code = Code(("builder.build",))
assert code.renew() == set()
assert sys.modules["builder.build"] is build
for word in ("two", "six", "ten"):
    save("words", f"WORD = '{word}'\\n")
    assert code.renew() == {"words"}
    assert now() == word, now()
    assert sys.modules["builder.build"].other is other
save("words", "WORD = \\n")
for _ in range(2):  # also where nothing has changed since
    try:
        code.renew()
    except SyntaxError as error:
        assert Path(error.filename).name == "words.py", error.filename
    else:
        raise AssertionError("a slip is not noticed")
save("other", "MADE = 'anew'\\n")
save("words", "from builder import other\\nWORD = other.MADE\\n")
assert code.renew() == {"words", "other"}
assert now() == "anew"
assert code.renew() == set()

# one that goes, and comes back otherwise; build takes it only when it is asked
def late():
    return sys.modules["builder.build"].late()

assert late() == "late"
(FOLDER / "later.py").unlink()
assert code.renew() == {"later"}
for word in ("new", "old"):
    save("later", f"WORD = '{word}'\\n")
    assert code.renew() == {"later"}
    assert late() == word, late()

# a good one and a bad one, and both are taken back
save("other", "MADE = 'never'\\n")
save("words", "WORD = \\n")
try:
    code.renew()
except SyntaxError:
    pass
save("other", "MADE = 'anew'\\n")
save("words", "from builder import other\\nWORD = other.MADE\\n")
code.renew()
assert now() == sys.modules["builder.build"].other.MADE == "anew", now()
"""

BESIDE = """
import os, sys, time
from pathlib import Path

from builder import words
from builder.beside import Helper
from builder.reloading import FOLDER, Code

code, helper = Code(("builder.words",)), Helper(("builder.words",))

def asked():
    answer = helper.ask(sys.modules["builder.words"].say)
    until = time.monotonic() + 20
    while answer._question.exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    return answer.text()

assert asked() == f"one {helper.process.pid}", asked()
for word in ("two", "six"):
    (FOLDER / "words.py").write_text((FOLDER / "words.py").read_text().replace(words.WORD, word))
    code.renew()
    words = sys.modules["builder.words"]
    assert asked() == f"{word} {helper.process.pid}", asked()
helper.end()
"""


def run_in_house(folder: Path, modules: Mapping[str, str], script: str) -> None:
    """Run a script by a house of these modules, and of ours that a process needs which goes on."""
    house = folder / "builder"
    house.mkdir()
    for name in ("program", "reloading", "beside"):
        shutil.copy(ROOT / "builder" / f"{name}.py", house)
    for name, text in modules.items():
        (house / f"{name}.py").write_text(text, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr


def test_code_is_known_by_its_contents(tmp_path: Path) -> None:
    """Of the same size, in the same second; broken, twice; mended, with a new import; changed and taken back."""
    run_in_house(tmp_path, TOY, SCRIPT)


def test_a_process_that_helps_takes_new_code_too(tmp_path: Path) -> None:
    """Before it answers the next question, and it is the same process."""
    words = "import os\nWORD = 'one'\ndef say():\n    return f'{WORD} {os.getpid()}'\n"
    run_in_house(tmp_path, {"__init__": "", "words": words}, BESIDE)


@dataclass
class Desk:
    """A checkout whose own builder serves it, in a process of its own."""

    root: Path
    port: int
    log: Path
    pid: int

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.root / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    def reported(self, text: str) -> Callable[[], bool]:
        return lambda: text in self.log.read_text(encoding="utf-8")

    @contextmanager
    def built(self) -> Iterator[None]:
        """What is saved in the block leads to a good build."""
        before = self.log.read_text(encoding="utf-8").count("Built in")
        yield
        until(lambda: self.log.read_text(encoding="utf-8").count("Built in") > before, 30)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    for part in ("builder", "content", "theme", ".cache"):
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    port, log = free_port(), tmp_path / "log"
    command = [sys.executable, "-u", "-m", "builder", "serve", "--port", str(port)]
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=out, stderr=out)
    try:
        until(lambda: "Serving" in log.read_text(encoding="utf-8"), 60)
        yield Desk(tmp_path, port, log, process.pid)
    finally:
        process.terminate()  # not interrupted, which a runner in the background may have its processes ignore
        process.wait(timeout=20)


def test_new_code_builds_the_next_page(desk: Desk) -> None:
    """What changes every shard comes from both processes; slips are shown with their places and go; saves go on."""
    shards = [path.name for path in (desk.root / "site" / "data").glob("*.json")]
    assert len(shards) > 80
    with desk.built():
        desk.edit("builder/display.py", "It does not fit: needs", "It cannot be: needs")
    for name in shards:
        text = get(desk.port, f"/data/{name}")[2].decode()
        assert "It cannot be: needs" in text
        assert "It does not fit: needs" not in text

    desk.edit("builder/errors.py", "class LessonErrors(", "class LessonErrors((")
    until(desk.reported("The build failed"), 30)
    assert re.search(r"^builder/errors\.py:\d+:\d+: .*\n.*\n +\| +\^$", desk.log.read_text("utf-8"), re.MULTILINE)
    with desk.built():
        desk.edit("builder/errors.py", "class LessonErrors((", "class LessonErrors(")

    desk.edit("content/lesson.md", "{throughput}", "{throughputs}")
    until(desk.reported("did you mean 'throughput'"), 30)
    with desk.built():
        desk.edit("content/lesson.md", "{throughputs}", "{throughput}")

    desk.edit("builder/beside.py", "import contextlib\n", 'import contextlib\n\nraise SystemExit("over")\n')
    until(desk.reported("SystemExit: over"), 30)
    with desk.built():
        desk.edit("builder/beside.py", '\nraise SystemExit("over")\n', "")
    children = Path(f"/proc/{desk.pid}/task/{desk.pid}/children")
    if children.exists():
        until(lambda: len(children.read_text().split()) == 1)  # the process that helped by the old code is gone
    with desk.built():
        desk.edit("builder/display.py", "It cannot be: needs", "It does not fit: needs")
    with desk.built():
        desk.edit("builder/serve.py", '"""', '"""As ever. ')
    assert desk.reported("goes on with the serve.py that it began with")()
    assert b"It does not fit: needs" in get(desk.port, f"/data/{shards[-1]}")[2]
