"""Addresses outside the site: found where they stand, asked politely, and never an error. Tests ask loopback alone."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from builder import cli, external
from builder.external import Answer, Mention, ask_all, ask_one, mentions, report
from tests.conftest import ROOT

PAUSES = (1.0, 3.0)


@pytest.fixture(autouse=True)
def without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loopback is asked directly, whatever proxy this machine uses."""
    monkeypatch.setenv("no_proxy", "*")


class Server(ThreadingHTTPServer):
    """A server on loopback that answers each path by a script of statuses, and keeps what it was asked."""

    daemon_threads = True

    def __init__(self, script: dict[str, list[Any]]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = script
        self.asked: list[str] = []
        self.agents: set[str] = set()
        self.slow = threading.Event()

    def at(self, path: str) -> str:
        """The address of a path."""
        return f"http://127.0.0.1:{self.server_port}{path}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def answer(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        self.server.agents.add(self.headers["User-Agent"])
        statuses = self.server.script.get(self.path.partition("?")[0], [404])
        step = statuses.pop(0) if len(statuses) > 1 else statuses[0]
        if isinstance(step, dict):
            step = step[self.command]
        status, headers = step if isinstance(step, tuple) else (step, {})
        if status == "slow":
            self.server.slow.wait(10)
            return
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = answer
    do_HEAD = answer

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serving(**script: list[Any]) -> Iterator[Server]:
    """A server whose paths are the names: missing=[404] is /missing."""
    server = Server({f"/{name}": list(statuses) for name, statuses in script.items()})
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.slow.set()
        server.shutdown()
        thread.join(10)
        server.server_close()


def asked_of(server: Server, path: str, timeout: float = 5.0) -> tuple[Answer, list[str], list[float]]:
    """(the answer, the requests that it took, the pauses between them)."""
    slept: list[float] = []
    answer = ask_one(server.at(path), timeout=timeout, pauses=PAUSES, sleep=slept.append)
    return answer, server.asked, slept


def test_what_answers_is_fine_and_is_asked_once_by_head() -> None:
    """HEAD is enough where it is answered; a fragment stays here; the program says what it is."""
    with serving(page=[200]) as server:
        answer, asked, slept = asked_of(server, "/page?a=b#place")
    assert (answer, asked, slept) == (Answer("fine", "200"), ["HEAD /page?a=b"], [])
    assert server.agents == {"Mozilla/5.0 (compatible; lesson check --external)"}


def test_what_is_gone_is_dead_when_get_says_so_too() -> None:
    """404 by HEAD alone proves nothing; by GET it does, and asking again would not help."""
    with serving(gone=[404]) as server:
        answer, asked, slept = asked_of(server, "/gone")
    assert (answer.state, answer.what) == ("dead", "404 Not Found")
    assert (asked, slept) == (["HEAD /gone", "GET /gone"], [])


def test_a_server_that_refuses_head_is_asked_by_get() -> None:
    """405 for HEAD, 200 for GET: fine."""
    with serving(page=[{"HEAD": 405, "GET": 200}]) as server:
        answer, asked, _ = asked_of(server, "/page")
    assert (answer.state, asked) == ("fine", ["HEAD /page", "GET /page"])


def test_a_server_in_trouble_is_asked_again_after_growing_pauses() -> None:
    """500 twice, then 200: fine, at the third try."""
    with serving(page=[500, 503, 200]) as server:
        answer, asked, slept = asked_of(server, "/page")
    assert (answer.state, asked, slept) == ("fine", ["HEAD /page"] * 3, [1.0, 3.0])


def test_a_server_that_stays_in_trouble_is_dead() -> None:
    """Three tries are enough."""
    with serving(page=[500]) as server:
        answer, asked, slept = asked_of(server, "/page")
    assert (answer.what, len(asked), slept) == ("500 Internal Server Error", 3, [1.0, 3.0])


@pytest.mark.parametrize(("wanted", "pauses"), [("2", [2.0, 3.0]), ("7200", [60.0, 60.0]), ("soon", [1.0, 3.0])])
def test_too_many_requests_are_fewer_as_the_server_asks(wanted: str, pauses: list[float]) -> None:
    """429: Retry-After counts where it is longer, within a minute; at last the address is refused, and not dead."""
    with serving(page=[(429, {"Retry-After": wanted})]) as server:
        answer, _, slept = asked_of(server, "/page")
    assert (answer.state, slept) == ("refused", pauses)


def test_who_does_not_answer_programs_is_not_dead() -> None:
    """403, as publishers say to anything that is no browser."""
    with serving(paper=[403]) as server:
        assert asked_of(server, "/paper")[0] == Answer("refused", "403 Forbidden")


def test_a_redirect_is_followed_to_its_end() -> None:
    """Fine where it leads to a page, dead where it leads to none or around in a circle."""
    script = {
        "moved": [(301, {"Location": "/page"})],
        "lost": [(302, {"Location": "/gone"})],
        "circle": [(302, {"Location": "/circle"})],
    }
    with serving(page=[200], **script) as server:
        states = [asked_of(server, path)[0].state for path in ("/moved", "/lost", "/circle")]
    assert states == ["fine", "dead", "dead"]


def test_no_answer_in_time_is_dead_after_as_many_tries() -> None:
    """A server that takes the request and says nothing."""
    with serving(page=["slow"]) as server:
        answer, asked, slept = asked_of(server, "/page", timeout=0.1)
    assert (answer, len(asked), slept) == (Answer("dead", "no answer in time"), 3, [1.0, 3.0])


def test_nobody_there_is_dead() -> None:
    """A port that nobody listens on; what can't be an address is no traceback."""
    with serving() as server:
        address = server.at("/page")
    assert ask_one(address, pauses=()).state == "dead"
    assert ask_one("http://[", pauses=()).state == "dead"
    assert ask_one("https://127.0.0.1:99999999/", pauses=()).state == "dead"


class Crowd:
    """Stands in for ask_one: what it was asked, and how many were being asked at the same time at most."""

    def __init__(self) -> None:
        self.lock, self.now, self.most, self.asked = threading.Lock(), 0, 0, list[str]()

    def __call__(self, address: str) -> Answer:
        with self.lock:
            self.asked.append(address)
            self.now += 1
            self.most = max(self.most, self.now)
        threading.Event().wait(0.02)
        with self.lock:
            self.now -= 1
        return Answer("fine", address)


def test_an_address_is_asked_once_and_a_host_one_thing_at_a_time() -> None:
    """Six mentions of three pages are three requests, of which no two are under way together."""
    pages, crowd = [f"https://example.org/{name}" for name in "abc"], Crowd()
    assert ask_all([*pages, *pages], crowd) == {page: Answer("fine", page) for page in pages}
    assert (crowd.asked, crowd.most) == (pages, 1)


def test_several_hosts_are_asked_at_once_and_never_more_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four hosts, two."""
    monkeypatch.setattr(external, "HOSTS_AT_ONCE", 2)
    crowd = Crowd()
    assert len(ask_all([f"https://{name}.org" for name in "abcd"], crowd)) == 4
    assert crowd.most == 2


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[x](https://a.org/b)", [(5, "https://a.org/b")]),
        ("[x](https://a.org/b_(c)), and", [(5, "https://a.org/b_(c)")]),
        ("(see https://a.org/b.)", [(6, "https://a.org/b")]),
        ("<https://a.org>", [(2, "https://a.org")]),
        ('url = ["https://a.org", "https://b.org"]', [(9, "https://a.org"), (26, "https://b.org")]),
        ("[a]: https://a.org#b 'A title'", [(6, "https://a.org#b")]),
        ("lesson new model X --url https://…", []),
        ("https://[broken", []),
        ("`https://a.org`", [(2, "https://a.org")]),
    ],
)
def test_an_address_ends_where_the_sentence_goes_on(tmp_path: Path, text: str, found: list[tuple[int, str]]) -> None:
    """Brackets, quotes and full stops around an address are not of it; its own brackets are."""
    (tmp_path / "README.md").write_text(f"# A\n{text}\n", encoding="utf-8")
    assert mentions(tmp_path) == [Mention(address, "README.md", 2, column) for column, address in found]


def test_every_file_that_people_read_is_searched() -> None:
    """The sources' addresses, and those of the text."""
    found = mentions(ROOT)
    assert {each.path for each in found} >= {"content/lesson.md", "content/sources.toml"}
    for each in found:
        line = (ROOT / each.path).read_text(encoding="utf-8").split("\n")[each.line - 1]
        assert line[each.column - 1 :].startswith(each.address)


def test_the_dead_come_first_each_at_its_place(tmp_path: Path) -> None:
    """A line a mention, as editors and annotations read it; the summary counts addresses."""
    (tmp_path / "content").mkdir()
    (tmp_path / "content" / "lesson.md").write_text("[a](https://a.org) [b](https://b.org)", encoding="utf-8")
    (tmp_path / "README.md").write_text("https://b.org", encoding="utf-8")
    answers = {"https://a.org": Answer("fine", "200"), "https://b.org": Answer("dead", "404 Not Found")}
    assert list(report(tmp_path, answers.__getitem__)) == [
        "content/lesson.md:1:24: dead: https://b.org (404 Not Found)",
        "README.md:1:1: dead: https://b.org (404 Not Found)",
        "content/lesson.md:1:5: fine: https://a.org (200)",
        "2 addresses: 1 fine, 0 refused, 1 dead",
    ]


def test_the_command_tells_what_is_dead_and_exits_with_0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Someone else's server never fails a build; --help says so, and that nothing else is checked."""
    (tmp_path / "content").mkdir()
    (tmp_path / "content" / "grid.toml").touch()
    monkeypatch.chdir(tmp_path)
    with serving(gone=[404], page=[200]) as server:
        text = f"[a]({server.at('/gone')}) [b]({server.at('/page')})"
        (tmp_path / "content" / "lesson.md").write_text(text, encoding="utf-8")
        result = CliRunner().invoke(cli.main, ["check", "--external"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(f"content/lesson.md:1:5: dead: {server.at('/gone')} (404 Not Found)\n")
    assert result.stdout.endswith("2 addresses: 1 fine, 0 refused, 1 dead\n")
    told = " ".join(CliRunner().invoke(cli.main, ["check", "--help"]).stdout.split())
    assert re.search(r"--external .*exits with 0", told)
