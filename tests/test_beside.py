"""Calls made in a process beside this one, or here: the same answer, whoever comes first."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from builder import beside


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    """Nothing waits before, and nothing afterwards."""
    beside.end_helper()
    yield
    beside.end_helper()


def whose(label: str, seconds: float = 0) -> str:
    """Which process made this, after so long."""
    time.sleep(seconds)
    return f"{label} in {os.getpid()}"


def boom(label: str) -> str:
    """A call that fails, and says where."""
    raise ValueError(f"{label} in {os.getpid()}")


def here(label: str) -> str:
    return f"{label} in {os.getpid()}"


def there(label: str, helper: beside.Helper) -> str:
    return f"{label} in {helper.process.pid}"


def folder_of(helper: beside.Helper) -> Path:
    return Path(helper._folder)


@pytest.fixture
def helper() -> Iterator[beside.Helper]:
    made = beside.Helper(())
    yield made
    made.end()


def begun(question: beside.Answer) -> beside.Answer:
    """The question, once the other process has had the time to begin with it."""
    until = time.monotonic() + 20
    while isinstance(question, beside._There) and question._question.exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    return question


def test_what_the_other_has_begun_is_waited_for(helper: beside.Helper) -> None:
    """And not made twice; a large answer too, which no pipe could hold."""
    assert begun(helper.ask(partial(whose, "one", 0.2))).text() == there("one", helper)
    text = begun(helper.ask(partial(str.ljust, "ä", 300_000))).text()
    assert text == "ä".ljust(300_000)
    assert not list(folder_of(helper).iterdir())


def test_what_it_has_not_begun_is_made_here(helper: beside.Helper) -> None:
    """While it is busy with the first."""
    first, second = (helper.ask(partial(whose, label, 0.5)) for label in ("first", "second"))
    begun(first)
    first.make()
    second.make()
    assert second.text() == here("second")
    assert first.text() == there("first", helper)
    assert begun(helper.ask(partial(whose, "third"))).text() == there("third", helper)


def test_a_call_that_fails_says_so_here(helper: beside.Helper) -> None:
    """With the error itself, and the process goes on."""
    with pytest.raises(ValueError, match=f"one in {os.getpid()}"):
        begun(helper.ask(partial(boom, "one"))).text()
    assert begun(helper.ask(partial(whose, "two"))).text() == there("two", helper)


def test_a_process_that_is_gone_leaves_everything_to_be_made_here(
    helper: beside.Helper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in the middle, or never begun."""
    asked = [helper.ask(partial(whose, str(number), 0.3)) for number in range(3)]
    helper.process.kill()
    assert [answer.text().partition(" ")[0] for answer in asked] == ["0", "1", "2"]
    assert not helper.lives
    monkeypatch.setattr(beside.sys, "executable", "/bin/false")
    never = beside.Helper(())
    assert [never.ask(partial(whose, str(number))).text() for number in range(2)] == [
        here("0"),
        here("1"),
    ]
    never.end()


def test_one_is_started_only_where_it_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for little, nor where there is one core; without one, calls are made here."""
    for worth, cores, expected in ((False, 2, beside.Answer), (True, 1, beside.Answer), (True, 2, beside._There)):
        monkeypatch.setattr(beside.os, "cpu_count", lambda cores=cores: cores)
        with beside.helper((), worth=worth) as ask:
            answer = ask(partial(whose, "one"))
            assert type(answer) is expected
            assert answer.text().startswith("one")
        assert not beside.has_helper()


def test_one_that_waits_is_taken_and_waits_again() -> None:
    """Loaded once, for a server that builds again and again."""
    beside.keep_helper(("json",))
    beside.keep_helper(("json",))
    (kept,) = beside._kept
    for label in ("one", "two"):
        with beside.helper((), worth=False) as ask:
            assert not beside.has_helper()
            assert begun(ask(partial(whose, label))).text() == there(label, kept)
        assert beside._kept == [kept]


def asked_in_vain(*calls: partial[str]) -> beside.Helper:
    """A helper that waits again after a build that asked it and failed, once it has begun with the first call."""
    beside.keep_helper(())
    (kept,) = beside._kept

    def fail() -> None:
        with beside.helper((), worth=False) as ask:
            first, *_ = [ask(call) for call in calls]
            begun(first)
            boom("prose")

    with pytest.raises(ValueError, match="prose"):
        fail()
    assert beside._kept == [kept]
    return kept


def keep(path: Path) -> str:
    """A call that keeps what it makes."""
    path.write_text(str(os.getpid()), encoding="utf-8")
    return ""


def test_what_a_failed_build_asked_for_is_still_made(tmp_path: Path) -> None:
    """The author mends the text meanwhile, and the next build finds it."""
    kept = asked_in_vain(partial(whose, "slow", 0.2), partial(keep, tmp_path / "made"))
    until = time.monotonic() + 20
    while not (tmp_path / "made").exists() or not (tmp_path / "made").read_text(encoding="utf-8"):
        assert time.monotonic() < until
        time.sleep(0.01)
    assert (tmp_path / "made").read_text(encoding="utf-8") == str(kept.process.pid)


def test_what_a_failed_build_asked_for_does_not_hold_up_the_next(tmp_path: Path) -> None:
    """What has not been begun by then is withdrawn; the next build's calls are answered as ever."""
    kept = asked_in_vain(partial(whose, "slow", 0.5), partial(keep, tmp_path / "made"))
    with beside.helper((), worth=False) as ask:
        assert begun(ask(partial(whose, "next"))).text() == there("next", kept)
        assert not (tmp_path / "made").exists()
        assert [path.name for path in folder_of(kept).iterdir()] == ["1.done"]  # nobody reads it
    with beside.helper((), worth=False) as ask:
        assert ask(partial(whose, "last")).text().startswith("last")
    assert beside._kept == [kept]


def test_one_that_is_gone_is_missed_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder too: who held it goes on, and who comes next has another, where that is worth it."""
    monkeypatch.setattr(beside.os, "cpu_count", lambda: 2)
    beside.keep_helper(())
    (kept,) = beside._kept
    assert kept.process.stdin
    kept.process.stdin.close()
    kept.process.wait(timeout=20)
    until = time.monotonic() + 20
    while folder_of(kept).exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    assert kept.ask(partial(whose, "one")).text() == here("one")
    with beside.helper((), worth=True) as ask:
        assert begun(ask(partial(whose, "two"))).text() not in (here("two"), there("two", kept))
    assert not beside.has_helper()


def test_it_ends_with_who_asked_at_work_too(helper: beside.Helper) -> None:
    """Killed in the middle of a build: nobody is there to hear the answer."""
    begun(helper.ask(partial(whose, "one", 0.5)))
    assert helper.process.stdin
    assert helper.process.stdout
    helper.process.stdout.close()
    helper.process.stdin.close()
    helper.process.wait(timeout=20)
    assert not folder_of(helper).exists()


def test_it_ends_with_who_asked() -> None:
    """Whose pipe closes, whatever became of it; its folder goes too."""
    beside.keep_helper(())
    (kept,) = beside._kept
    assert kept.process.stdin
    kept.process.stdin.close()
    assert kept.process.wait(timeout=20) == 0
    assert not folder_of(kept).exists()
