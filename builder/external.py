"""Addresses outside the site: found in the files that people read, and asked apart from every build.

Whether somebody else's server answers today says nothing about a change of ours, so nothing here is an error.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Literal
from urllib.error import HTTPError
from urllib.parse import quote, urldefrag, urlsplit
from urllib.request import Request, urlopen

from builder.places import Source

FILES = ("content/lesson.md", "content/sections/*.md", "content/sources.toml", "README.md", ".github/*.md")
_ADDRESS = re.compile(r"https?://[^\s<>\"'`{}|\\^\[\]…]+")

HOSTS_AT_ONCE = 6  # each is asked one thing at a time
TIMEOUT = 20.0  # seconds without a byte
PAUSES = (2.0, 8.0)  # seconds before the second and the third try
LONGEST_PAUSE = 60.0  # of those that a server may ask for
# Like a browser's, since some servers answer nothing else, and honest about what it is.
HEADERS = {"User-Agent": "Mozilla/5.0 (compatible; lesson check --external)", "Accept": "text/html,*/*;q=0.8"}

State = Literal["fine", "refused", "dead"]


@dataclass(frozen=True)
class Answer:
    """What became of one address. refused: somebody is there, and doesn't answer programs; what: in words."""

    state: State
    what: str


@dataclass(frozen=True)
class Mention:
    """An address where it stands: path as the author would name it, line and column from 1."""

    address: str
    path: str
    line: int
    column: int


def mentions(root: Path) -> list[Mention]:
    """Every outside address of the text, the sources and the readme files, in the order of their places."""
    return [
        Mention(address, source.path, *source.place(start))
        for pattern in FILES
        for path in sorted(root.glob(pattern))
        for source in [Source(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8", errors="replace"))]
        for start, address in _addresses(source.text)
    ]


def _addresses(text: str) -> Iterator[tuple[int, str]]:
    """(offset, address) of each address of a text, without the punctuation of the sentence around it."""
    for found in _ADDRESS.finditer(text):
        address = found[0].rstrip(".,;:!?*_")
        while address.endswith(")") and address.count("(") < address.count(")"):
            address = address[:-1].rstrip(".,;:!?*_")
        if urlsplit(address).netloc:
            yield found.start(), address


def ask_all(addresses: Iterable[str], ask: Callable[[str], Answer] | None = None) -> dict[str, Answer]:
    """Each address's answer. Several hosts are asked at once, and each of them one thing at a time.

    ask: how one is asked; `ask_one` by default.
    """
    hosts: dict[str, list[str]] = {}
    for address in dict.fromkeys(addresses):
        hosts.setdefault(urlsplit(address).netloc.lower(), []).append(address)

    def ask_host(group: Sequence[str]) -> dict[str, Answer]:
        return {address: (ask or ask_one)(address) for address in group}

    answers: dict[str, Answer] = {}
    with ThreadPoolExecutor(HOSTS_AT_ONCE) as pool:
        for some in pool.map(ask_host, hosts.values()):
            answers |= some
    return answers


def ask_one(
    address: str,
    *,
    timeout: float = TIMEOUT,
    pauses: Sequence[float] = PAUSES,
    sleep: Callable[[float], None] = time.sleep,
) -> Answer:
    """Ask for an address: by HEAD, then by GET where HEAD won't do; again, after growing pauses, where it may help.

    Never raises: what can't be asked is dead.
    """
    url = quote(urldefrag(address).url, safe="%/:=&?~+!$,;'@()*[]")
    for pause in (*pauses, None):
        answer, again = _try(url, timeout)
        if again is None or pause is None:
            return answer
        sleep(max(pause, min(again, LONGEST_PAUSE)))
    raise AssertionError("the last try returns")


def _try(url: str, timeout: float) -> tuple[Answer, float | None]:
    """(what came of one try, None where another would be of no use; else the seconds that the server asks to wait)."""
    for method in ("HEAD", "GET"):
        try:
            with urlopen(Request(url, headers=HEADERS, method=method), timeout=timeout) as response:
                return Answer("fine", f"{response.status}"), None
        except HTTPError as error:
            status, said = error.code, f"{error.code} {error.reason}".strip()
            wait = _seconds(error.headers.get("Retry-After", ""))
            error.close()
            if status == 429 or (status >= 500 and status != 501):
                return Answer("refused" if status == 429 else "dead", said), wait
            if method == "GET":
                return Answer("refused" if status in (401, 403, 405, 406, 451) else "dead", said), None
        except (OSError, HTTPException, ValueError) as error:
            # a wrong certificate, no such host, no answer in time, an answer that is none
            reason = getattr(error, "reason", None) or error
            return Answer("dead", "no answer in time" if isinstance(reason, TimeoutError) else str(reason)), 0.0
    raise AssertionError("GET returns")


def _seconds(text: str) -> float:
    """How long a server asks to wait, by its Retry-After; 0 where it doesn't say, or says it as a date."""
    return float(text) if text.isdecimal() else 0.0


def report(root: Path, ask: Callable[[str], Answer] | None = None) -> Iterator[str]:
    """Lines to print: a mention each, `path:line:column: state: address (what)`, the dead first; then how many."""
    found = mentions(root)
    answers = ask_all((each.address for each in found), ask)
    for state in ("dead", "refused", "fine"):
        for each in found:
            answer = answers[each.address]
            if answer.state == state:
                yield f"{each.path}:{each.line}:{each.column}: {state}: {each.address} ({answer.what})"
    count = {state: sum(answer.state == state for answer in answers.values()) for state in ("fine", "refused", "dead")}
    yield f"{len(answers)} addresses: {count['fine']} fine, {count['refused']} refused, {count['dead']} dead"
