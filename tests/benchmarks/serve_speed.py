"""From a save to the new page in the browser, as JSON: milliseconds for every kind of file that is slow.

    python -m tests.benchmarks.serve_speed [--rounds N]

A copy of the checkout is served by `lesson serve` in a process of its own. Counted from before the write to the first
contentful paint of the page that has the change, by the browser's own clock; for a style, which comes without a reload,
to the frame that has it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.browser.conftest import launch_any

ROOT = Path(__file__).resolve().parent.parent.parent
PARTS = ("builder", "content", "theme")
KINDS = ("style", "gpu", "colour", "model", "grid", "page", "ledger", "charts", "errors", "numbers")
LIMITS = {"prose": 300, **dict.fromkeys(KINDS, 1000)}
PAUSE = 7000  # ms: nobody saves data more often, and a disk makes files slowly just after many were deleted

PAINTED = """async () => {
  const paint = () => performance.getEntriesByName("first-contentful-paint")[0];
  while (!paint()) await new Promise((done) => setTimeout(done, 5));
  return performance.timeOrigin + paint().startTime;
}"""
RESTYLED = """(size) => new Promise((done) => {
  const look = () => (getComputedStyle(document.body).getPropertyValue("--trial").trim() === size
    ? requestAnimationFrame(() => done(performance.timeOrigin + performance.now())) : requestAnimationFrame(look));
  look();
})"""


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, list[float]]]:
    """The address of a live copy in the folder, and the seconds that each build took, which grows."""
    for part in PARTS:
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-u", "-m", "builder", "serve", "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as on an author's machine
    log = folder / "log"
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=out, env=environment)
    builds: list[float] = []
    try:
        until = time.monotonic() + 60
        while not (found := re.search(r"Serving (\S+)", log.read_text())):
            assert time.monotonic() < until, log.read_text()
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        yield found[1], builds
        builds += [1000 * float(seconds) for seconds in re.findall(r"Built in ([\d.]+) s", log.read_text())]
    finally:
        process.terminate()
        process.wait(timeout=10)


def edited(path: Path, old: str, new: Callable[[str], str]) -> Callable[[str], None]:
    """Saves the file with the first `old` in it replaced by what `new` makes of a mark."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    return lambda mark: path.write_text(text.replace(old, new(mark), 1), encoding="utf-8")


def reloads(page: Page, save: Callable[[str], None], mark: str) -> float:
    """Milliseconds from a save to the first paint of the page that holds the mark."""
    begun = time.time() * 1000
    save(mark)
    page.wait_for_function("(mark) => document.documentElement?.outerHTML.includes(mark)", arg=mark, polling=10)
    painted: float = page.evaluate(PAINTED)
    return painted - begun


def slow_saves(folder: Path) -> dict[str, Callable[[str], None]]:
    """What makes many things anew: data, a colour, and the builder's own code, by name."""
    content, tokens = folder / "content", folder / "theme" / "css" / "tokens.css"
    return {
        # that GPU's shards
        "gpu": edited(content / "gpus" / "b200.toml", "8.0e12", lambda mark: f"8.000{mark}e12"),
        # every figure
        "colour": edited(tokens, "#1c1b19", lambda mark: f"#1c1b2{mark}"),
        # every shard, and with a new position of the slider the figures in which it is seen
        "model": edited(content / "models" / "Qwen3-8B.json", "{", lambda mark: "{" + " " * int(mark)),
        "grid": edited(content / "grid.toml", "3072", lambda mark: f"{int(mark) + 3072}"),
        # what puts a page together, what makes shards, what draws, and what nearly everything imports
        **{
            name: edited(folder / "builder" / f"{name}.py", "\n", "\n# {}\n".format)
            for name in ("page", "ledger", "charts", "errors")
        },
    }


def main() -> None:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    times: dict[str, list[float]] = {name: [] for name in LIMITS}
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        folder = Path(scratch)
        with served(folder) as (url, builds):
            browser = launch_any(playwright)
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.goto(url)
            page.wait_for_timeout(1000)
            word = "You have probably heard"
            prose = edited(folder / "content" / "lesson.md", word, lambda mark: f"{word} {mark}")
            for number in range(rounds):
                times["prose"].append(reloads(page, prose, f"mark{'x' * number}y"))
                page.wait_for_timeout(400)
            style = edited(
                folder / "theme" / "css" / "tokens.css", ":root {", lambda mark: f":root {{ --trial: {mark};"
            )
            for number in range(rounds):
                begun = time.time() * 1000
                style(f"{number}px")
                times["style"].append(page.evaluate(RESTYLED, f"{number}px") - begun)
                page.wait_for_timeout(400)
            for name, save in slow_saves(folder).items():
                for number in range(min(rounds, 7)):
                    before = page.evaluate("() => performance.timeOrigin")
                    begun = time.time() * 1000
                    save(str(number + 1))
                    page.wait_for_function("(before) => performance.timeOrigin > before", arg=before, polling=10)
                    times[name].append(page.evaluate(PAINTED) - begun)
                    page.wait_for_timeout(PAUSE)
            # a model that makes numbers of the text wrong; counted from where `numbers --fix` has mended them
            model = edited(
                folder / "content" / "models" / "Qwen3-8B.json", "12288", lambda mark: f"{12288 + int(mark)}"
            )
            fix = [sys.executable, "-m", "builder", "numbers", "--fix"]
            for number in range(min(rounds, 7)):
                model(str(128 * (number + 1)))
                page.locator("text=writes it").first.wait_for()
                before = page.evaluate("() => performance.timeOrigin")
                subprocess.run(fix, cwd=folder, check=True, capture_output=True)
                page.wait_for_function("(before) => performance.timeOrigin > before", arg=before, polling=10)
                mended = (folder / "content" / "lesson.md").stat().st_mtime_ns / 1e6
                times["numbers"].append(page.evaluate(PAINTED) - mended)
                page.wait_for_timeout(PAUSE)
            browser.close()
    found = {
        name: {"median": round(statistics.median(taken)), "worst": round(max(taken)), "limit": LIMITS[name]}
        for name, taken in times.items()
    }
    print(json.dumps({"save_to_page_ms": found, "builds_ms": [round(each) for each in builds]}, indent=1))


if __name__ == "__main__":
    main()
