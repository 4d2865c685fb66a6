"""The little of WebDriver BiDi that a stock Firefox needs to be driven: no driver in between, nothing to install."""

from __future__ import annotations

import base64
import json
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PREFERENCES = {
    "app.update.disabledForTesting": True,
    "browser.aboutwelcome.enabled": False,
    "browser.region.network.url": "",
    "browser.safebrowsing.downloads.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.getAddons.cache.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "data:,#remote-settings-dummy/v1",
    "toolkit.telemetry.reportingpolicy.firstRun": False,
    # The browser itself must not look a name up.
    "network.proxy.type": 0,
    "network.dns.disabled": True,
}
START = 60.0  # seconds until a browser that does not come up is given up


class Socket:
    """A WebSocket of text messages over a plain connection to this machine (RFC 6455)."""

    def __init__(self, host: str, port: int, path: str) -> None:
        self.stream = socket.create_connection((host, port), timeout=30)
        key = base64.b64encode(os.urandom(16)).decode()
        self.stream.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        self.rest = b""
        head = b""
        while b"\r\n\r\n" not in head:
            head += self.stream.recv(4096)
        head, _, self.rest = head.partition(b"\r\n\r\n")
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise ConnectionError(head.decode("latin-1"))

    def send(self, text: str) -> None:
        """A text message, masked as a client must."""
        payload, mask = text.encode(), os.urandom(4)
        size = len(payload)
        length = bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2) if size < 65536 else None
        masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))
        self.stream.sendall(b"\x81" + (length or b"\xff" + size.to_bytes(8)) + mask + masked)

    def _read(self, count: int) -> bytes:
        while len(self.rest) < count:
            if not (more := self.stream.recv(65536)):
                raise ConnectionError("the browser has gone")
            self.rest += more
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def receive(self) -> str:
        """The next text message, whole."""
        text = b""
        while True:
            first, second = self._read(2)
            size = second & 127
            size = int.from_bytes(self._read({126: 2, 127: 8}[size])) if size > 125 else size
            payload, kind = self._read(size), first & 15
            if kind in (0, 1):
                text += payload
                if first & 128:
                    return text.decode()


class Firefox:
    """One tab of a browser. `heard`: what pages logged or broke."""

    def __init__(self, wire: Socket) -> None:
        self.wire, self.count, self.heard = wire, 0, list[str]()
        self.capabilities = self.send("session.new", capabilities={})["capabilities"]
        self.context: str = self.send("browsingContext.getTree")["contexts"][0]["context"]
        self.send("session.subscribe", events=["log.entryAdded"])

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command and its answer."""
        self.count += 1
        self.wire.send(json.dumps({"id": self.count, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.wire.receive())
            if message.get("method") == "log.entryAdded":
                self.heard.append(f"{message['params']['level']}: {message['params']['text']}")
            if message.get("id") == self.count:
                if message["type"] == "error":
                    raise RuntimeError(f"{method}: {message['error']}: {message['message']}")
                result: dict[str, Any] = message["result"]
                return result

    def open(self, url: str) -> None:
        """Go somewhere and wait until it is there."""
        self.send("browsingContext.navigate", context=self.context, url=url, wait="complete")

    def size(self, width: int, height: int) -> None:
        self.send("browsingContext.setViewport", context=self.context, viewport={"width": width, "height": height})

    def evaluate(self, function: str, sandbox: str = "") -> Any:
        """What a function returns on the page, as JSON; in a sandbox also where the page has no script."""
        target = {"context": self.context} | ({"sandbox": sandbox} if sandbox else {})
        answer = self.send(
            "script.evaluate", expression=f"JSON.stringify(({function})() ?? null)", target=target, awaitPromise=False
        )
        if answer["type"] == "exception":
            raise RuntimeError(answer["exceptionDetails"]["text"])
        return json.loads(answer["result"]["value"])

    def keys(self, *keys: str) -> None:
        """Press keys, one after the other, where the focus is."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._act({"type": "key", "id": "keyboard", "actions": actions})

    def click(self, selector: str, sandbox: str = "") -> None:
        """Click the middle of an element that is in sight."""
        middle = self.evaluate(
            f"""() => {{
              const element = document.querySelector({json.dumps(selector)});
              element.scrollIntoView({{ block: "center" }});
              const box = element.getBoundingClientRect();
              return [Math.round(box.x + box.width / 2), Math.round(box.y + box.height / 2)];
            }}""",
            sandbox,
        )
        move = {"type": "pointerMove", "x": middle[0], "y": middle[1]}
        press = [{"type": kind, "button": 0} for kind in ("pointerDown", "pointerUp")]
        self._act({"type": "pointer", "id": "mouse", "actions": [move, *press]})

    def _act(self, source: dict[str, Any]) -> None:
        self.send("input.performActions", context=self.context, actions=[source])


@contextmanager
def firefox(binary: str, profile: Path, **preferences: Any) -> Iterator[Firefox]:
    """A Firefox of its own without a screen, with a fresh profile."""
    profile.mkdir(parents=True, exist_ok=True)
    lines = [
        f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in {**PREFERENCES, **preferences}.items()
    ]
    (profile / "user.js").write_text("\n".join(lines), encoding="utf-8")
    log = profile / "log"
    command = [binary, "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port", "0"]
    environment = {**os.environ, "HOME": str(profile), "MOZ_CRASHREPORTER_DISABLE": "1"}
    with log.open("w") as sink:
        process = subprocess.Popen([*command, "about:blank"], stdout=sink, stderr=sink, env=environment)
    try:
        until = time.monotonic() + START
        while not (found := re.search(r"BiDi listening on ws://([\d.]+):(\d+)", log.read_text(errors="replace"))):
            if process.poll() is not None or time.monotonic() > until:
                raise ConnectionError(log.read_text(errors="replace")[-500:] or "Firefox did not come up")
            time.sleep(0.1)
        wire = Socket(found[1], int(found[2]), "/session")
        with wire.stream:
            yield Firefox(wire)
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
