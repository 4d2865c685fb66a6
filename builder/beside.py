"""Calls that a process beside this one makes, or this one, whichever comes to them first.

Not in a thread: drawing holds Python's lock. Questions and answers go through files, since a pipe would hold up whoever
writes whenever the reader is busy. A call says all that it depends on by its arguments.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from builder.reloading import Code

Call = Callable[[], str]


class Answer:
    """What a call gives, whoever makes it; a call that nobody else was asked for is made here."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._text: str | None = None

    def make(self) -> None:
        """Make it here now, unless another process has begun."""
        if self._text is None:
            self._text = self._call()

    def text(self) -> str:
        """Make it here or wait for it. Raises what the call raises."""
        self.make()
        assert self._text is not None
        return self._text


Ask = Callable[[Call], Answer]

_HERE, _THERE, _DONE = ".here", ".there", ".done"  # what becomes of a question: one renaming of it succeeds


class Helper:
    """A process that makes one call after the other in the order they were asked; it ends with this one.

    loads: modules that it imports before, and anew where the builder has changed. One that fails leaves all to be made
    here.
    """

    def __init__(self, loads: Sequence[str]) -> None:
        self._folder = tempfile.mkdtemp(prefix="lesson-")
        self._asked = self._answered = 0
        self._open: dict[int, Path] = {}  # questions by number whose answer nobody has yet
        code = str(Path(__file__).resolve().parent.parent)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([code, os.environ.get("PYTHONPATH", "")])}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "builder.beside", self._folder, *loads],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )

    def ask(self, call: Call) -> Answer:
        """Have a call made there, after those that were asked before."""
        self._asked += 1
        question = Path(self._folder, str(self._asked))
        assert self.process.stdin
        with contextlib.suppress(OSError):  # it has failed, or is gone with its folder: the call is made here
            question.write_bytes(pickle.dumps(call))
            self.process.stdin.write(b"%d\n" % self._asked)
            self.process.stdin.flush()
        self._open[self._asked] = question
        return _There(call, self, question)

    def wait(self, number: int) -> None:
        """Until the call of this number is done, or no more will be."""
        assert self.process.stdout
        while self._answered < number and self.process.stdout.readline():
            self._answered += 1

    def close(self, number: int) -> None:
        """The call of this number has its answer."""
        del self._open[number]

    def withdraw(self) -> None:
        """Let it not begin with what it was asked and nobody has an answer to."""
        for question in self._open.values():
            if _claimed(question, _HERE):
                _with(question, _HERE).unlink()
            _with(question, _DONE).unlink(missing_ok=True)
        self._open.clear()

    @property
    def lives(self) -> bool:
        """Whether it can make more calls."""
        return self.process.poll() is None

    def end(self) -> None:
        """End it, whatever it does."""
        self.process.kill()
        with contextlib.suppress(OSError), self.process:  # a pipe that can't be flushed is closed all the same
            pass
        shutil.rmtree(self._folder, ignore_errors=True)


class _There(Answer):
    """Of a call that a helper has been asked for."""

    def __init__(self, call: Call, helper: Helper, question: Path) -> None:
        super().__init__(call)
        self._helper, self._question = helper, question

    def make(self) -> None:
        if self._text is None and _claimed(self._question, _HERE):
            _with(self._question, _HERE).unlink()
            self._take(self._call())

    def text(self) -> str:
        self.make()
        if self._text is None:
            self._helper.wait(int(self._question.name))
            done = _with(self._question, _DONE)
            try:
                found = done.read_text(encoding="utf-8")
                done.unlink()
            except OSError:  # it has failed: whatever is wrong is told here
                found = self._call()
            self._take(found)
        return super().text()

    def _take(self, text: str) -> None:
        self._text = text
        self._helper.close(int(self._question.name))


def _with(question: Path, ending: str) -> Path:
    return question.with_name(question.name + ending)


def _claimed(question: Path, by: str) -> bool:
    """Whether the question was still there to be taken."""
    try:
        question.rename(_with(question, by))
    except OSError:
        return False
    return True


_kept: list[Helper] = []  # at most one, which waits for the next build


def keep_helper(loads: Sequence[str]) -> None:
    """Have a process ready for the next build, so that it needn't wait for one to load."""
    if not _kept:
        _kept.append(Helper(loads))


def has_helper() -> bool:
    """Whether there is one that waits."""
    return bool(_kept)


def end_helper() -> None:
    """Let the one that waits go."""
    while _kept:
        _kept.pop().end()


@contextmanager
def helper(loads: Sequence[str], worth: bool) -> Iterator[Ask]:
    """How to have calls made beside; a process is started for it where that is worth it and none waits.

    One that waited waits again afterwards. Where a build has failed it meanwhile goes on with what it was asked: calls
    that keep what they make spare it the next build, which withdraws the others.
    """
    if has_helper() and not _kept[0].lives:
        end_helper()
    waited = has_helper()
    found = _kept.pop() if waited else Helper(loads) if worth and (os.cpu_count() or 1) > 1 else None
    if found:
        found.withdraw()
    try:
        yield found.ask if found else Answer
    finally:
        if found and waited and found.lives:
            _kept.append(found)
        elif found:
            found.end()


def _serve(folder: Path, loads: Sequence[str]) -> None:
    """Make what is asked for by a line with its number, and say when each is done, until no more can be asked."""
    code = Code(loads)
    for module in loads:
        import_module(module)
    for line in sys.stdin.buffer:
        question = folder / line.decode().strip()
        if _claimed(question, _THERE):
            with contextlib.suppress(Exception):  # the other process makes it again, and tells what is wrong
                if code.renew():
                    gc.collect()  # what old modules remember, many MB
                taken = _with(question, _THERE)
                call: Call = pickle.loads(taken.read_bytes())
                taken.unlink()
                _with(question, _DONE).write_text(call(), encoding="utf-8")
        sys.stdout.buffer.write(b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    try:
        with contextlib.suppress(KeyboardInterrupt, OSError):  # who asked is gone
            _serve(Path(sys.argv[1]), sys.argv[2:])
    finally:
        shutil.rmtree(sys.argv[1], ignore_errors=True)
