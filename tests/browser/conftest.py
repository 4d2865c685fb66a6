"""A real browser, the built site behind the project's own server, and pages on which nothing may go wrong.

`page` is a plain Playwright page; `open_page` makes one in another scheme, size or mode. Whatever a page logs, breaks
or asks of another origin fails its test at the end. A test that provokes trouble says so beforehand:
`troubles.expected.append(r"404 .*nothing\\.html")`.

Under the site's policy `page.wait_for_function` is blocked: use locators, `expect` and `page.evaluate`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, Playwright, Request, Response, sync_playwright

from tests.browser.bench import Bench, Truth

INSTALLED = ("google-chrome", "google-chrome-stable", "chromium", "chromium-browser")
# The browser itself must never talk to the network, nor look a name up.
QUIET = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
    "--no-pings",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
# Playwright switches this protection off; with it, replaceState is throttled as it is for readers.
DROPPED = ["--disable-ipc-flooding-protection"]
ELSEWHERE = re.compile(r"^(?!file:|data:|blob:|about:|https?://127\.0\.0\.1[:/])")
TELL_VIOLATIONS = """
addEventListener("securitypolicyviolation", (event) => {
  const place = `${event.sourceFile}:${event.lineNumber}`;
  console.error(`policy violated: ${event.violatedDirective} ${event.blockedURI} ${place}`);
});
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All that stands in this folder is marked `browser`."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("browser")


def _launch(playwright: Playwright, **how: Any) -> Browser | None:
    try:
        return playwright.chromium.launch(args=QUIET, ignore_default_args=DROPPED, chromium_sandbox=False, **how)
    except Error:
        return None


def launch_any(playwright: Playwright) -> Browser | None:
    """An installed Chrome or Chromium, else Playwright's own; None where there is neither."""
    for name in INSTALLED:
        if (path := shutil.which(name)) and (browser := _launch(playwright, executable_path=path)):
            return browser
    if sys.platform != "linux" and (browser := _launch(playwright, channel="chrome")):
        return browser
    return _launch(playwright) if Path(playwright.chromium.executable_path).exists() else None


def _try(*command: str) -> bool:
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, timeout=600, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _is_root() -> bool:
    return sys.platform == "linux" and os.geteuid() == 0


def _install(playwright: Playwright) -> Browser | None:
    """Get a browser the ordinary ways: Playwright's own build, else, as root on Debian and its kin, the package."""
    own = [sys.executable, "-m", "playwright"]
    if _try(*own, "install", "chromium"):
        if _is_root():
            _try(*own, "install-deps", "chromium")
        if browser := launch_any(playwright):
            return browser
    if _is_root() and shutil.which("apt-get") and _try("apt-get", "update"):
        _try("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "chromium")
    return launch_any(playwright)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium without a screen, found or installed. Missing, it fails under CI=true and skips elsewhere."""
    with sync_playwright() as playwright:
        found = launch_any(playwright) or _install(playwright)
        if found is None:
            text = "no Chrome or Chromium is installed and none could be: try `python -m playwright install chromium`"
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(text)
        yield found
        found.close()


@dataclass(frozen=True)
class Site:
    """The lesson, built once: on disk, at the root of a server, and under a path prefix."""

    folder: Path
    url: str
    prefixed_url: str
    built: Any

    @property
    def file_url(self) -> str:
        """The page as one opens it from disk."""
        return (self.folder / "index.html").as_uri()

    @property
    def origins(self) -> list[str]:
        """What a page may ask of."""
        return [_origin(self.url), _origin(self.prefixed_url)]


@pytest.fixture(scope="session")
def site(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The built lesson behind the project's own server, at / and at /lesson/."""
    from builder.build import build
    from builder.serve import SiteServer

    folder = tmp_path_factory.mktemp("built") / "site"
    built = build(root=root, out=folder)
    with SiteServer(folder).running() as plain, SiteServer(folder, prefix="/lesson/").running() as prefixed:
        yield Site(folder, plain.url, prefixed.url, built)


@dataclass
class Troubles:
    """What happened on a test's pages and must not have.

    expected: regular expressions for the troubles that this test provokes. origins: the servers it may ask.
    """

    origins: list[str]
    expected: list[str] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)

    @property
    def unexpected(self) -> list[str]:
        """The troubles that nothing in `expected` matches."""
        return [text for text in self.seen if not any(re.search(pattern, text) for pattern in self.expected)]

    def watch(self, context: BrowserContext) -> None:
        """Collect from every page of the context; requests to other machines are refused as well."""
        context.add_init_script(TELL_VIOLATIONS)
        context.route(ELSEWHERE, lambda route: route.abort())
        context.on("console", lambda message: self.seen.append(f"console {message.type}: {message.text}"))
        context.on("weberror", lambda error: self.seen.append(f"uncaught: {error.error}"))
        context.on("request", self._request)
        context.on("requestfailed", self._failed)
        context.on("response", self._response)

    def _request(self, request: Request) -> None:
        scheme = urlsplit(request.url).scheme
        if scheme not in ("file", "data", "blob", "about") and _origin(request.url) not in self.origins:
            self.seen.append(f"foreign request: {request.url}")

    def _failed(self, request: Request) -> None:
        # A request cut off because the reader went on to another page is no failure.
        if "ERR_ABORTED" not in (request.failure or ""):
            self.seen.append(f"request failed: {request.url} {request.failure}")

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self.seen.append(f"{response.status} {response.url}")


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


@pytest.fixture
def troubles(site: Site) -> Iterator[Troubles]:
    """Fails the test at its end if a page did what it must not."""
    troubles = Troubles(site.origins)
    yield troubles
    if troubles.unexpected:
        pytest.fail("on the page:\n" + "\n".join(troubles.unexpected), pytrace=False)


OpenPage = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser, troubles: Troubles) -> Iterator[OpenPage]:
    """Makes pages, each in a fresh context.

    open_page(scheme="light" | "dark", width=1440, height=900, javascript=True, reduced_motion=False, touch=False).
    Further keywords go to Playwright's new_context.
    """
    with ExitStack() as contexts:

        def open_page(
            scheme: str = "light",
            width: int = 1440,
            height: int = 900,
            javascript: bool = True,
            reduced_motion: bool = False,
            touch: bool = False,
            **more: Any,
        ) -> Page:
            context = browser.new_context(
                color_scheme=scheme,
                viewport={"width": width, "height": height},
                java_script_enabled=javascript,
                reduced_motion="reduce" if reduced_motion else "no-preference",
                has_touch=touch,
                locale="en-US",
                **more,
            )
            contexts.callback(context.close)
            troubles.watch(context)
            return context.new_page()

        yield open_page


@pytest.fixture
def page(open_page: OpenPage) -> Page:
    """A light page of 1440 by 900."""
    return open_page()


@pytest.fixture(scope="session")
def truth(root: Path, site: Site) -> Truth:
    """What Python says of every point."""
    return Truth(root, site.folder)


OpenBench = Callable[..., Bench]


@pytest.fixture
def open_bench(open_page: OpenPage, site: Site, truth: Truth) -> OpenBench:
    """Opens the lesson: open_bench("#tokens=64").

    `at` is its address, `before` gets the page before it goes there, the rest is open_page's.
    """

    def open_bench(
        fragment: str = "", at: str | None = None, before: Callable[[Page], object] | None = None, **more: Any
    ) -> Bench:
        page = open_page(**more)
        if before:
            before(page)
        page.goto((at or site.url) + fragment)
        return Bench(page, truth)

    return open_bench
