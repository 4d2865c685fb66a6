"""The server for authors: this machine only, never stale, and alive whatever happens."""

from __future__ import annotations

import errno
import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from builder import serve as serving
from builder.errors import LessonError, LessonErrors
from builder.site import Site

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:"
PAGE = f"""<!doctype html><html><head><meta http-equiv="Content-Security-Policy" content="{POLICY}"></head>
<body><p>TEXT</p></body></html>"""


def get(port: int, path: str, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(serving.HOST, port, timeout=10)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
    finally:
        connection.close()


def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def copy_build(root: Path, out: Path) -> None:
    """A build in miniature: the one content file becomes the page, and the word 'typo' is a mistake."""
    text = (root / "content" / "lesson.md").read_text(encoding="utf-8")
    if "typo" in text:
        raise LessonErrors(
            [LessonError("<b> is not a word", path="content/lesson.md", line=1, column=5, hint="fix it")]
        )
    text += "".join(path.read_text(encoding="utf-8") for path in sorted((root / "content").glob("more*.md")))
    if "slip" in text:
        compile("x = ", str(root.resolve() / "builder" / "page.py"), "exec")
    if "bug" in text:
        raise ZeroDivisionError("a bug in the builder")
    out.mkdir(exist_ok=True)
    (out / "index.html").write_text(PAGE.replace("TEXT", text), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    out = tmp_path / "site"
    (out / "data").mkdir(parents=True)
    (out / "index.html").write_text(PAGE, encoding="utf-8")
    (out / ".gitignore").write_text("*", encoding="utf-8")
    for name in ("app.js", "style.css", "icon.svg", "data/a.json", "data/blob.bin"):
        (out / name).write_text("{}", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    return out


@dataclass
class Served:
    """`lesson serve` in a thread, over a project of one file."""

    root: Path
    port: int
    reports: list[str] = field(default_factory=list)

    def save(self, text: str) -> None:
        (self.root / "content" / "lesson.md").write_text(text, encoding="utf-8")

    def page(self) -> str:
        return get(self.port, "/")[2].decode()

    def shows(self, text: str) -> Callable[[], bool]:
        return lambda: text in self.page()

    def reported(self, text: str) -> Callable[[], bool]:
        return lambda: any(text in report for report in self.reports)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((serving.HOST, 0))
        return int(probe.getsockname()[1])


def make_project(root: Path, text: str) -> None:
    for name in ("content", "theme/js", "builder"):
        (root / name).mkdir(parents=True)
    (root / "builder" / "__init__.py").touch()
    (root / "theme" / "js" / "reload.js").write_text("// reload", encoding="utf-8")
    (root / "content" / "lesson.md").write_text(text, encoding="utf-8")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], Served]]:
    stop, threads = threading.Event(), []

    def start(text: str) -> Served:
        served = Served(tmp_path, free_port())
        make_project(tmp_path, text)
        thread = threading.Thread(
            target=serving.serve,
            args=(tmp_path, tmp_path / "site", served.port, served.reports.append),
            kwargs={"build": copy_build, "stop": stop},
        )
        threads.append(thread)
        thread.start()
        until(served.reported("Serving http://127.0.0.1:"))
        return served

    yield start
    stop.set()
    for thread in threads:
        thread.join(timeout=10)
        assert not thread.is_alive()


class Events:
    """One page's connection to /__events."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection(serving.HOST, port, timeout=10)
        self.connection.request("GET", "/__events")
        self.stream = self.connection.getresponse()

    def next(self) -> tuple[str, str]:
        """The next event's name and its text."""
        name, data = "", []
        while line := self.stream.readline().decode().rstrip("\n"):
            kind, _, text = line.partition(": ")
            name, data = (text, data) if kind == "event" else (name, [*data, text])
        return name, "\n".join(data)

    def close(self) -> None:
        self.stream.close()
        self.connection.close()


def test_only_this_machine_is_listened_to(folder: Path) -> None:
    """The socket is bound to 127.0.0.1, not to every address."""
    with serving.SiteServer(folder).running() as server:
        assert server.socket.getsockname()[0] == "127.0.0.1"
        assert server.url == f"http://127.0.0.1:{server.server_port}/"


@pytest.mark.parametrize(
    ("path", "mime_type"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/index.html?a=1", "text/html; charset=utf-8"),
        ("/app.js", "text/javascript; charset=utf-8"),
        ("/data/a.json", "application/json; charset=utf-8"),
        ("/icon.svg", "image/svg+xml; charset=utf-8"),
        ("/style.css", "text/css; charset=utf-8"),
        ("/data/blob.bin", "application/octet-stream"),
    ],
)
def test_a_file_comes_with_its_type_and_is_never_cached(folder: Path, path: str, mime_type: str) -> None:
    """The types don't depend on this machine's registry; what can change under its name is asked for every time."""
    with serving.SiteServer(folder).running() as server:
        status, headers, body = get(server.server_port, path)
    assert (status, headers["content-type"], headers["cache-control"]) == (200, mime_type, "no-store")
    assert headers["content-length"] == str(len(body))


def test_what_is_named_by_its_contents_is_kept(folder: Path) -> None:
    """A reload needn't fetch again what is the same; a name that only looks alike, or that is gone, is asked for."""
    made = Site()
    name = made.add_hashed("assets/app.js", "one")
    (folder / "assets").mkdir()
    (folder / name).write_bytes(made.files[name])
    (folder / "assets" / "app.min.js").write_text("one")
    with serving.SiteServer(folder).running() as server:
        kept = {path: get(server.server_port, path)[1]["cache-control"] for path in (f"/{name}", "/assets/app.min.js")}
        gone = get(server.server_port, "/assets/app.0123456789.js")
    assert list(kept.values()) == ["max-age=31536000, immutable", "no-store"]
    assert (gone[0], gone[1]["cache-control"]) == (404, "no-store")


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/data/../../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/..%5csecret.txt",
        "//etc/passwd",
        "/%00",
        "/.gitignore",
        "/data/",
        "/nothing.html",
        "/__events",
        "/__reload.js",
    ],
)
def test_what_is_outside_hidden_or_missing_is_refused(folder: Path, path: str) -> None:
    """No way leads out of the folder, a folder is not listed, and a plain server has no live reload."""
    with serving.SiteServer(folder).running() as server:
        status, headers, body = get(server.server_port, path)
    assert (status, headers["cache-control"], body) == (404, "no-store", b"Not found.\n")


def test_a_link_that_leads_out_is_refused(folder: Path) -> None:
    """A symbolic link counts as the place it points to."""
    (folder / "out.txt").symlink_to(folder.parent / "secret.txt")
    with serving.SiteServer(folder).running() as server:
        assert get(server.server_port, "/out.txt")[0] == 404


def test_the_sites_own_404_page_is_used(folder: Path) -> None:
    """A missing address answers 404 with 404.html's text."""
    (folder / "404.html").write_text("<p>lost</p>", encoding="utf-8")
    with serving.SiteServer(folder).running() as server:
        status, headers, body = get(server.server_port, "/nothing")
    assert (status, headers["content-type"], body) == (404, "text/html; charset=utf-8", b"<p>lost</p>")


def test_a_site_can_live_under_a_prefix(folder: Path) -> None:
    """Under /lesson/ everything is found there and nothing at the root; the bare name is led on."""
    with serving.SiteServer(folder, prefix="/lesson/").running() as server:
        assert get(server.server_port, "/lesson/data/a.json")[0] == 200
        assert get(server.server_port, "/data/a.json")[0] == 404
        status, headers, _ = get(server.server_port, "/lesson")
        assert (status, headers["location"]) == (301, "/lesson/")
        assert get(server.server_port, "/lesson/data")[1]["location"] == "/lesson/data/"


def test_head_answers_without_a_body(folder: Path) -> None:
    """HEAD gives the headers of GET."""
    with serving.SiteServer(folder).running() as server:
        status, headers, body = get(server.server_port, "/", "HEAD")
    assert (status, headers["content-length"], body) == (200, str(len(PAGE.encode())), b"")


def test_a_plain_server_sends_the_page_as_it_is(folder: Path) -> None:
    """Without live reload the bytes are those on disk."""
    with serving.SiteServer(folder).running() as server:
        assert get(server.server_port, "/")[2] == PAGE.encode()


def test_serve_adds_the_reload_and_nothing_else(start: Callable[[str], Served]) -> None:
    """Only on the way out may the page listen and load the script; the file on disk is untouched."""
    served = start("hello")
    page = served.page()
    assert f"content=\"{POLICY}; connect-src 'self'\"" in page
    assert '<script src="/__reload.js" data-version="' in page.partition("hello")[2]
    assert get(served.port, "/__reload.js")[2] == b"// reload"
    assert "reload" not in (served.root / "site" / "index.html").read_text(encoding="utf-8")


def test_a_policy_in_single_quotes_is_extended_too() -> None:
    """The addition never ends the attribute it stands in."""
    reload = serving.Reload(Path("reload.js"))
    page = reload.extend(b"<meta http-equiv=Content-Security-Policy content='default-src &#39;none&#39;'>")
    assert b"content='default-src &#39;none&#39;; connect-src &#39;self&#39;'>" in page


def test_a_save_is_in_the_page_within_a_second(start: Callable[[str], Served]) -> None:
    """The open page hears of it and gets the new text when it asks."""
    served = start("first")
    events = Events(served.port)
    name, version = events.next()
    assert (name, f'data-version="{version}"' in served.page()) == ("built", True)
    saved = time.monotonic()
    served.save("second")
    name, newer = events.next()
    assert time.monotonic() - saved < 1
    assert (name, newer != version) == ("built", True)
    assert served.shows("<p>second</p>")()
    events.close()


def test_a_mistake_keeps_the_old_page_and_is_shown(start: Callable[[str], Served]) -> None:
    """The error arrives with file, line and column; the next good save recovers."""
    served = start("good")
    events = Events(served.port)
    assert events.next()[0] == "built"
    served.save("a typo")
    assert events.next()[0] == "built"
    told = "content/lesson.md:1:5: <b> is not a word\n  1 | a typo\n    |     ^\n  hint: fix it"
    assert events.next() == ("failed", told)
    assert served.shows("<p>good</p>")()
    assert served.reported(told)()
    late = Events(served.port)
    assert [late.next()[0], late.next()[0]] == ["built", "failed"], "a page opened now must show it too"
    late.close()
    served.save("better")
    assert events.next()[0] == "built"
    assert served.shows("<p>better</p>")()
    events.close()


def test_a_bug_in_the_builder_does_not_end_the_server(start: Callable[[str], Served]) -> None:
    """Any exception is reported like a mistake, and the server goes on."""
    served = start("good")
    served.save("bug")
    until(served.reported("ZeroDivisionError: a bug in the builder"))
    served.save("mended")
    until(served.shows("<p>mended</p>"))


def test_a_first_build_that_fails_is_shown_in_the_browser(start: Callable[[str], Served]) -> None:
    """With no old site there is a page with the error as text, which recovers by itself."""
    served = start("typo")
    status, _, body = get(served.port, "/")
    assert status == 503
    assert b"content/lesson.md:1:5: &lt;b&gt; is not a word" in body
    assert b"/__reload.js" in body
    served.save("fine")
    until(served.shows("<p>fine</p>"))


def test_a_build_does_not_set_off_the_next(start: Callable[[str], Served]) -> None:
    """After a build the server is idle: what it wrote is not a change."""
    served = start("one")
    served.save("two")
    until(served.shows("<p>two</p>"))
    time.sleep(0.6)
    assert sum(report.startswith("Built in") for report in served.reports) == 2


def test_fifty_files_saved_at_once_are_one_rebuild(start: Callable[[str], Served]) -> None:
    """A checkout of another branch, or a search and replace, is built once; after it the server is idle."""
    served = start("one")
    for number in range(50):
        (served.root / "content" / f"more{number}.md").write_text(f" and {number}", encoding="utf-8")
    until(served.shows(" and 49"))
    time.sleep(0.6)
    assert sum(report.startswith("Built in") for report in served.reports) == 2


def test_a_file_that_is_deleted_is_gone(start: Callable[[str], Served]) -> None:
    """Taking a content file away is a change like any other."""
    served = start("one")
    more = served.root / "content" / "more.md"
    more.write_text(" and more", encoding="utf-8")
    until(served.shows("one and more"))
    more.unlink()
    until(served.shows("<p>one</p>"))


def test_a_new_style_alone_is_told_apart() -> None:
    """Only where the pages differ in nothing but the stylesheet's address can that be swapped."""
    page = '<link rel="stylesheet" href="assets/a.css"><p>text'
    assert serving.restyled(page, page.replace("a.css", "b.css")) == "assets/b.css"
    assert serving.restyled(page, page.replace("a.css", "b.css") + "!") is None
    assert serving.restyled(page, page) is None
    assert serving.restyled("", page) is None


def test_a_page_hears_of_a_new_style_with_the_version_that_it_suits(tmp_path: Path) -> None:
    """A page of the version before takes the stylesheet; one that missed a version has to reload."""
    reload = serving.Reload(tmp_path / "reload.js")
    before = reload.version
    reload.built("assets/b.css")
    news = reload.messages()
    assert next(news).decode() == f"event: built\ndata: {reload.version}\ndata: {before}\ndata: assets/b.css\n\n"
    reload.built()
    assert next(news).decode() == f"event: built\ndata: {reload.version}\n\n"


def test_a_slip_in_the_builders_grammar_has_its_place(start: Callable[[str], Served]) -> None:
    """As one in the content has, and no traceback."""
    served = start("right")
    served.save("slip")
    until(served.reported("builder/page.py:1:5: invalid syntax"))
    assert not any("Traceback" in report for report in served.reports)
    served.save("right again")
    until(served.shows("right again"))


def test_output_inside_a_watched_folder_is_no_change(tmp_path: Path) -> None:
    """Not even where the output lies in content/ does a build set off the next."""
    make_project(tmp_path, "one")
    reports: list[str] = []
    stop = threading.Event()
    thread = threading.Thread(
        target=serving.serve,
        args=(tmp_path, tmp_path / "content" / "site", free_port(), reports.append),
        kwargs={"build": copy_build, "stop": stop},
    )
    thread.start()
    time.sleep(1)
    stop.set()
    thread.join(timeout=10)
    assert sum(report.startswith("Built in") for report in reports) == 1


def test_a_port_that_is_taken_is_left_for_the_next(folder: Path) -> None:
    """The server takes the next free port and says so."""
    reports: list[str] = []
    with serving.SiteServer(folder) as first:
        taken = first.server_port
        with serving.open_server(folder, taken, serving.Reload(folder), reports.append) as second:
            assert second.server_port > taken
    assert reports == [f"Port {taken} is taken, so this is port {second.server_port}."]


def test_no_free_port_is_an_error_with_a_remedy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a bounded search the author is told what to do."""
    monkeypatch.setattr(serving, "PORTS_TRIED", 1)
    with (
        serving.SiteServer(folder) as first,
        pytest.raises(LessonError, match=r"no free port from .*\n.*--port"),
    ):
        serving.open_server(folder, first.server_port, serving.Reload(folder), print)


def test_ctrl_c_ends_cleanly(tmp_path: Path) -> None:
    """An interrupt closes the port, ends every page's connection and says so, without a traceback."""
    make_project(tmp_path, "text")
    reports: list[str] = []
    port = free_port()

    def interrupted(root: Path, out: Path) -> None:
        raise KeyboardInterrupt

    serving.serve(tmp_path, tmp_path / "site", port, reports.append, build=interrupted)
    assert reports == ["Stopped."]
    with socket.socket() as probe:
        assert probe.connect_ex((serving.HOST, port)) != 0


def test_a_port_that_is_not_to_be_had_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not searched for further: another port would be refused alike."""

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(serving, "SiteServer", refused)
    with pytest.raises(LessonError, match="cannot serve on port 80: Permission denied"):
        serving.open_server(folder, 80, serving.Reload(folder), print)


def test_where_changes_cannot_be_watched_the_site_is_built_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as at the system's limit on watched folders; the server goes on until it is stopped."""
    make_project(tmp_path, "text")
    reports: list[str] = []
    stop = threading.Event()

    def report(text: str) -> None:
        reports.append(text)
        if text.startswith("Serving"):
            stop.set()

    def unwatched(*_: object, **__: object) -> Iterator[object]:
        raise OSError("no space left on device")

    monkeypatch.setattr(serving, "watch", unwatched)
    patience = threading.Timer(10, stop.set)
    patience.start()
    serving.serve(tmp_path, tmp_path / "site", free_port(), report, build=copy_build, stop=stop)
    patience.cancel()
    assert reports[0] == "Cannot watch for changes (no space left on device); the site is built only once."
    assert reports[-1].startswith("Serving")
    assert "text" in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")


def test_an_error_of_an_answer_is_reported_unless_the_page_went_away(folder: Path) -> None:
    """A closed tab is no news; a bug is, and the server goes on."""
    reports: list[str] = []
    with serving.SiteServer(folder, report=reports.append) as server:
        for error in (ConnectionResetError("gone"), ZeroDivisionError("a bug")):
            try:
                raise error
            except (OSError, ArithmeticError):
                server.handle_error(None, ("127.0.0.1", 1))
    assert reports == ["While answering a request: ZeroDivisionError('a bug')"]
