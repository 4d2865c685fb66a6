"""Build, serve on this machine only, watch, rebuild, and tell the open pages.

The folder on disk is what `build` writes. Only what goes over the wire is changed, and only while watching: the
policy lets the page listen to this server, and a script reloads it after a build or shows what failed.
"""

from __future__ import annotations

import contextlib
import errno
import html
import os
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from socketserver import TCPServer
from types import ModuleType
from typing import Any
from urllib.parse import quote, unquote

from watchfiles import DefaultFilter, watch

from builder.errors import LessonError, with_excerpts
from builder.program import FOLDER
from builder.reloading import Code

HOST = "127.0.0.1"
PORTS_TRIED = 50
WATCHED = ("content", "theme")  # and the builder, wherever it lies
# A save is seen at once: watchfiles waits for one quiet step, and never longer than the debounce (milliseconds).
QUIET_STEP, DEBOUNCE = 20, 400
RUNNING = {"__init__", "cli", "program", "reloading", "serve"}  # modules of the builder that can't be taken up anew
# How often the watcher looks up, in milliseconds: the longest wait before the first build.
WAKE = 100
# Without an event for this long (seconds) a comment is sent, which finds out whether the page is still there.
HEARTBEAT = 15.0

MIME_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".xml": "application/xml; charset=utf-8",
    ".ico": "image/x-icon",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".webp": "image/webp",
    ".woff2": "font/woff2",
}
POLICY = re.compile(
    rb"""(<meta\s+http-equiv=["']?Content-Security-Policy["']?\s+content=)("[^"]*"|'[^']*')""", re.IGNORECASE
)

HASHED = re.compile(r"\.[0-9a-f]{10}\.\w+$")  # the end of a name that site.hashed() gives
STYLESHEET = re.compile(r'(<link rel="stylesheet" href=")([^"]*)')

Report = Callable[[str], None]
Build = Callable[[Path, Path], object]


class Reload:
    """What the open pages hear: the version of the site and, after a failed build, its errors."""

    def __init__(self, script: Path) -> None:
        self.script = script
        self._changed = threading.Condition()
        # A page of an earlier server must not take this one's first version for its own.
        self._started = time.time_ns()
        self._builds = 0
        self._restyled = ""
        self._news = 0
        self.error: str | None = None
        self.closed = False

    @property
    def version(self) -> str:
        """Names the last good build; a page served before it reloads."""
        return f"{self._started}-{self._builds}"

    def built(self, stylesheet: str | None = None) -> None:
        """The site is new: pages reload, an overlay goes.

        stylesheet: its new address where nothing else has changed; a page of the version before takes it as it stands.
        """
        with self._changed:
            self._restyled = f"data: {self.version}\ndata: {stylesheet}\n" if stylesheet else ""
            self._builds += 1
            self._news += 1
            self.error = None
            self._changed.notify_all()

    def failed(self, error: str) -> None:
        """The old site stands: pages show the error over it."""
        with self._changed:
            self._news += 1
            self.error = error
            self._changed.notify_all()

    def close(self) -> None:
        """No more news: every listener ends."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def _has_news(self, seen: int) -> bool:
        return self.closed or self._news != seen

    def messages(self) -> Iterator[bytes]:
        """Server-sent events for one page: how things stand now, then each change until close()."""
        seen = -1
        while True:
            with self._changed:
                self._changed.wait_for(partial(self._has_news, seen), timeout=HEARTBEAT)
                if self.closed:
                    return
                quiet, seen = self._news == seen, self._news
                version, restyled, error = self.version, self._restyled, self.error
            if quiet:
                yield b": still here\n\n"
                continue
            yield f"event: built\ndata: {version}\n{restyled}\n".encode()
            if error is not None:
                lines = "".join(f"data: {line}\n" for line in error.splitlines() or ["The build failed."])
                yield f"event: failed\n{lines}\n".encode()

    def extend(self, page: bytes) -> bytes:
        """The page as serve sends it: allowed to listen to this server, with the script that does."""
        page = POLICY.sub(_allow_own_connections, page, count=1)
        script = f'<script src="/__reload.js" data-version="{self.version}"></script>'.encode()
        head, body_end, tail = page.rpartition(b"</body>")
        return head + script + body_end + tail if body_end else page + script

    def stand_in(self) -> bytes:
        """A page for the time before the first good build."""
        text = html.escape(self.error or "The first build is not done yet.")
        return self.extend(
            b'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Not built yet</title>'
            b'<body><pre class="build-error" role="alert">' + text.encode() + b"</pre></body></html>\n"
        )


def _allow_own_connections(policy: re.Match[bytes]) -> bytes:
    if b"connect-src" in policy[2]:
        return policy[0]
    quote_mark = policy[2][-1:]
    own = b"; connect-src 'self'" if quote_mark == b'"' else b"; connect-src &#39;self&#39;"
    return policy[1] + policy[2][:-1] + own + quote_mark


class SiteServer(ThreadingHTTPServer):
    """One folder on the loopback address, under `prefix` ("/" or "/lesson/"); with `reload`, live."""

    daemon_threads = True
    block_on_close = False
    # Elsewhere this only skips the wait after a restart; on Windows it would share a port that is taken.
    allow_reuse_address = os.name != "nt"
    allow_reuse_port = False

    def __init__(
        self,
        folder: Path,
        port: int = 0,
        *,
        prefix: str = "/",
        reload: Reload | None = None,
        report: Report = lambda _: None,
    ) -> None:
        self.folder = folder
        self.prefix = prefix
        self.reload = reload
        self.report = report
        super().__init__((HOST, port), SiteHandler)

    @property
    def url(self) -> str:
        """Where the site is, with the final slash."""
        return f"http://{HOST}:{self.server_port}{self.prefix}"

    def server_bind(self) -> None:
        """Bind without the look-up of this machine's name that HTTPServer does, which can take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A page that went away is no error; anything else is reported and the server goes on."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError):
            self.report(f"While answering a request: {error!r}")

    @contextmanager
    def running(self) -> Iterator[SiteServer]:
        """Answer requests in a thread until the block ends."""
        thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            if self.reload:
                self.reload.close()
            self.shutdown()
            thread.join()
            self.server_close()


class SiteHandler(BaseHTTPRequestHandler):
    """Answers GET and HEAD from the server's folder; nothing outside it, no listing, nothing hidden."""

    server: SiteServer
    server_version = "lesson"
    sys_version = ""

    def do_GET(self) -> None:
        """A file, an index, or the two addresses of the live reload."""
        path, reload = self.path.split("#")[0].split("?")[0], self.server.reload
        if reload and path == "/__events":
            self._send_events(reload)
        elif reload and path == "/__reload.js":
            self._send(HTTPStatus.OK, MIME_TYPES[".js"], reload.script.read_bytes())
        else:
            self._send_file(path)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: only builds are news."""

    def _send_file(self, path: str) -> None:
        prefix = self.server.prefix
        if path == prefix.rstrip("/") and path:
            self._redirect(prefix)
            return
        file = find(self.server.folder, path[len(prefix) :]) if path.startswith(prefix) else None
        if file and file.is_dir():
            if not path.endswith("/"):
                self._redirect(quote("/" + unquote(path).strip("/") + "/"))
                return
            file = file / "index.html"
        if file and file.is_file():
            mime_type = MIME_TYPES.get(file.suffix.lower(), "application/octet-stream")
            self._send(HTTPStatus.OK, mime_type, self._live(mime_type, file.read_bytes()), cache_control_of(file))
        else:
            self._send_missing(at_start=path == prefix)

    def _send_missing(self, at_start: bool) -> None:
        reload, page = self.server.reload, self.server.folder / "404.html"
        if reload and at_start:
            self._send(HTTPStatus.SERVICE_UNAVAILABLE, MIME_TYPES[".html"], reload.stand_in())
        elif page.is_file():
            self._send(HTTPStatus.NOT_FOUND, MIME_TYPES[".html"], self._live(MIME_TYPES[".html"], page.read_bytes()))
        else:
            self._send(HTTPStatus.NOT_FOUND, MIME_TYPES[".txt"], b"Not found.\n")

    def _live(self, mime_type: str, body: bytes) -> bytes:
        reload = self.server.reload
        return reload.extend(body) if reload and mime_type == MIME_TYPES[".html"] else body

    def _redirect(self, address: str) -> None:
        self._send(HTTPStatus.MOVED_PERMANENTLY, MIME_TYPES[".txt"], b"", {"Location": address})

    def _send(self, status: HTTPStatus, mime_type: str, body: bytes, more: Mapping[str, str] | None = None) -> None:
        self._send_head(status, mime_type, {"Content-Length": str(len(body)), **(more or {})})
        if self.command != "HEAD":
            self.wfile.write(body)

    def _send_events(self, reload: Reload) -> None:
        self._send_head(HTTPStatus.OK, "text/event-stream; charset=utf-8", {})
        if self.command != "HEAD":
            for message in reload.messages():
                self.wfile.write(message)

    def _send_head(self, status: HTTPStatus, mime_type: str, more: Mapping[str, str]) -> None:
        self.send_response(status)
        headers = {"Content-Type": mime_type, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **more}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


def cache_control_of(file: Path) -> dict[str, str]:
    """What a browser keeps: a file that is named by its contents, so that a reload needn't fetch what is the same."""
    return {"Cache-Control": "max-age=31536000, immutable"} if HASHED.search(file.name) else {}


def find(folder: Path, address: str) -> Path | None:
    """The file or folder a relative address names, or None where it leads outside or to something hidden."""
    parts = [part for part in unquote(address).split("/") if part]
    if any(part.startswith(".") or set(part) & {"\\", ":", "\0"} for part in parts):
        return None
    inside = folder.resolve()
    found = inside.joinpath(*parts).resolve()  # a link that leads out is outside
    return found if found.is_relative_to(inside) else None


def open_server(folder: Path, port: int, reload: Reload, report: Report) -> SiteServer:
    """A live server on the port or, where that is taken, on the next free one, and says so.

    Raises LessonError where none of the ports tried is free, or this user may not use them.
    """
    for candidate in range(port, min(port + PORTS_TRIED, 65536)) if port else (0,):
        try:
            server = SiteServer(folder, candidate, reload=reload, report=report)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise LessonError(f"cannot serve on port {candidate}: {error.strerror}") from error
            continue
        if candidate != port:
            report(f"Port {port} is taken, so this is port {candidate}.")
        return server
    raise LessonError(f"no free port from {port} on", hint="name another one with --port")


def restyled(before: str, after: str) -> str | None:
    """The address of the new page's stylesheet where that is all in which it differs from the one before."""
    found = STYLESHEET.search(after)
    alike = STYLESHEET.sub(r"\1", before) == STYLESHEET.sub(r"\1", after)
    return found[2] if found and alike and before != after else None


class Rebuild:
    """Builds in this process, which keeps what is warm; where the builder itself has changed, by its new code.

    build: what builds instead of the builder.
    """

    def __init__(self, root: Path, out: Path, reload: Reload, report: Report, build: Build | None) -> None:
        self.root, self.out, self.reload, self.report, self.build = root, out, reload, report, build
        self.code = Code(("builder.build",))

    def __call__(self) -> None:
        """Build once. What goes wrong is reported and shown; nothing is raised."""
        started, before = time.perf_counter(), self._page()
        try:
            error = self._error()
        except SyntaxError as found:
            error = self._of_syntax(found)
        except (Exception, SystemExit):  # a bug in the builder must not end the server: the next save may mend it
            error = traceback.format_exc()
        if error is None:
            self.reload.built(restyled(before, self._page()))
            self.report(f"Built in {time.perf_counter() - started:.2f} s.")
        else:
            error = with_excerpts(error, self.root)
            self.reload.failed(error)
            self.report(f"{error}\nThe build failed; the site is as it was. It is built again at the next save.")

    def _page(self) -> str:
        try:
            return (self.out / "index.html").read_text(encoding="utf-8")
        except (OSError, ValueError):
            return ""

    def _error(self) -> str | None:
        """Build; what is wrong with the lesson, in words."""
        build = self.build or self._builder().build
        errors = import_module("builder.errors")  # those that new code raises
        try:
            build(self.root, self.out)
        except errors.LessonErrors as found:
            return "\n".join(str(error) for error in found.errors)
        except errors.LessonError as found:
            return str(found)
        return None

    def _of_syntax(self, error: SyntaxError) -> str:
        if not error.filename:  # of a source that holds a null byte, say
            return traceback.format_exc()
        path, root = Path(error.filename), self.root.resolve()
        shown = path.relative_to(root) if path.is_relative_to(root) else path
        return str(LessonError(error.msg, path=shown.as_posix(), line=error.lineno, column=error.offset))

    def _builder(self) -> ModuleType:
        """builder.build as it is on disk."""
        beside = sys.modules.get("builder.beside")
        try:
            if old := self.code.renew() & RUNNING:
                names = " and ".join(f"{name}.py" for name in sorted(old))
                self.report(f"This server goes on with the {names} that it began with: start it again for the new one.")
        finally:
            if beside and sys.modules.get("builder.beside") is not beside:
                beside.end_helper()  # the new one doesn't know of it
        return import_module("builder.build")

    def get_ready(self) -> None:
        """Load what the next build may need."""
        if not self.build and (builder := sys.modules.get("builder.build")):
            with contextlib.suppress(Exception, SystemExit):  # new code may not be right yet: the next build tells
                builder.get_ready()

    def end_helper(self) -> None:
        """Let the one that waits go."""
        if beside := sys.modules.get("builder.beside"):
            beside.end_helper()


def _changes(root: Path, out: Path, stop: threading.Event, report: Report) -> Iterator[None]:
    """Once as soon as nothing more can be missed, then once for each batch of changes."""
    folders = [FOLDER, *(root.resolve() / name for name in WATCHED if (root / name).is_dir())]
    # Not caches, not editors' swap files, and not the output, wherever it lies: that would build for ever.
    sources = DefaultFilter(ignore_paths=[out.resolve()])
    patient_watch = partial(watch, step=QUIET_STEP, debounce=DEBOUNCE, rust_timeout=WAKE, yield_on_timeout=True)
    started = False
    try:
        for batch in patient_watch(*folders, watch_filter=sources, stop_event=stop):
            if batch or not started:
                started = True
                yield
    except Exception as error:  # such as the system's limit on watched folders
        report(f"Cannot watch for changes ({error}); the site is built only once.")
        if not started:
            yield
        while not stop.wait(1):
            pass


def serve(
    root: Path,
    out: Path,
    port: int,
    report: Report,
    *,
    build: Build | None = None,
    stop: threading.Event | None = None,
) -> None:
    """Build `root` into `out`, serve it on 127.0.0.1, and rebuild at each change until Ctrl-C (or `stop`).

    A failed build keeps the old site, reports its errors and shows them in the open pages. Raises LessonError only
    where no port is free.
    """
    reload = Reload(root / "theme" / "js" / "reload.js")
    rebuild = Rebuild(root, out, reload, report, build)
    with open_server(out, port, reload, report).running() as server:
        try:
            for number, _ in enumerate(_changes(root, out, stop or threading.Event(), report)):
                rebuild()
                if number == 0:
                    report(f"Serving {server.url} (Ctrl-C ends it).")
                rebuild.get_ready()
        except KeyboardInterrupt:
            report("Stopped.")
        finally:
            rebuild.end_helper()
