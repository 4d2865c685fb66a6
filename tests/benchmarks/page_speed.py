"""How fast the page is, as JSON: bytes, blocking time, layout shift, and from slider to paint, beside a baseline.

    python -m tests.benchmarks.page_speed [--site DIR] [--rounds N]

The baseline is the picture that others would publish of the same numbers: the roofline of the same kernels at every
batch and context of one GPU, by Altair's own to_html(inline=True), with bound sliders. Both pages are measured in the
same run, turn by turn, in the same browser. Latency is counted from the time stamp of the input event to the first
task after the frame in which the last of readouts, ledger and pictures in sight has changed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import altair as alt
from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from builder.build import build
from builder.grid import load_grid
from builder.roofline import roof_of
from builder.serve import SiteServer
from builder.shards import roofline_rows, shard
from tests.browser.conftest import launch_any

ROOT = Path(__file__).resolve().parent.parent.parent
SPEEDS = {"full": 1, "quarter": 4}
POSITIONS = 40
LIMITS = {"full": {"median": 17, "p95": None}, "quarter": {"median": 33, "p95": 50}}

# Observed before any script of the page: what blocked, and what moved.
WATCH = """
window.watched = { blocked: 0, longest: 0, shift: 0 };
new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) {
    watched.blocked += Math.max(0, duration - 50);
    watched.longest = Math.max(watched.longest, duration);
  }
}).observe({ type: "longtask", buffered: true });
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) watched.shift += entry.value;
}).observe({ type: "layout-shift", buffered: true });
"""

# From an input event to the first task after the frame of the last change. parts: name → selector of what must change.
MEASURE = """(parts) => {
  const changed = { begin: 0, end: 0, parts: new Set() };
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => { changed.end = performance.now(); };
  addEventListener("input", (event) => {
    Object.assign(changed, { begin: event.timeStamp, end: 0, parts: new Set() });
  }, true);
  const all = { attributes: true, childList: true, characterData: true, subtree: true };
  for (const [name, selector] of parts) {
    // the least that a witness can do, since its own work counts too
    const observer = new MutationObserver(() => { changed.parts.add(name); port2.postMessage(0); });
    for (const element of document.querySelectorAll(selector)) observer.observe(element, all);
  }
  window.settled = async () => {
    let quiet = 0, frames = 0, last = -1;
    while (quiet < 4 && frames++ < 120) {
      await new Promise(requestAnimationFrame);
      quiet = changed.end && changed.end === last ? quiet + 1 : 0;
      last = changed.end;
    }
    return { latency: changed.end - changed.begin, parts: [...changed.parts] };
  };
}"""
OURS = [
    ["readouts", "[data-bench] .readouts"],
    ["ledger", "[data-bench] .ledger"],
    ["pictures", "figure[data-figure] [data-variant]"],
]
THEIRS = [["pictures", "#vis"]]


def baseline() -> str:
    """The same roofline as a page of Altair's own: every batch and context of the default choice, two bound sliders."""
    grid = load_grid(ROOT)
    document = shard(grid, grid.defaults)
    tokens, contexts = grid.axes["tokens"], [context for context in grid.axes["context"] if context]
    rows = [
        {"tokens": t, "context": c, "at": i, "of": j, **{k: row[k] for k in ("kernel", "x", "y", "share")}}
        for i, t in enumerate(tokens)
        for j, c in enumerate(contexts)
        for row in roofline_rows(document, grid, replace(grid.defaults, tokens=t, context=c))[0]
    ]
    roof = roof_of(grid.gpus[grid.defaults.gpu], grid.defaults.weights)
    peak, ridge = roof.peak / 1e12, roof.ridge
    corners = [{"x": 0.1, "y": 0.1 * peak / ridge}, {"x": ridge, "y": peak}, {"x": 10_000, "y": peak}]
    first = {"at": 0, "of": contexts.index(grid.defaults.context)}
    sliders = [
        alt.param(name=name, value=first[name], bind=alt.binding_range(min=0, max=len(values) - 1, step=1, name=title))
        for name, values, title in (("at", tokens, "tokens"), ("of", contexts, "context"))
    ]
    x, y = alt.X("x:Q").scale(type="log"), alt.Y("y:Q").scale(type="log")
    size = alt.Size("share:Q").scale(range=[20, 1800])
    dots = alt.Chart(alt.Data(values=rows)).transform_filter("datum.at == at && datum.of == of")
    marks = dots.mark_circle().encode(x=x, y=y, size=size, color="kernel:N", tooltip=["kernel:N", "x:Q", "y:Q"])
    line = alt.Chart(alt.Data(values=corners)).mark_line(color="black").encode(x="x:Q", y="y:Q")
    names = dots.mark_text(align="left", dx=12).encode(x=x, y=y, text="kernel:N")
    chart = alt.layer(line, marks, names).add_params(*sliders).properties(width=570, height=300)
    html: str = chart.to_html(inline=True, embed_options={"renderer": "svg", "actions": False})
    return html


def zipped(*files: Path) -> int:
    """Bytes of files as a static host sends them."""
    return sum(len(gzip.compress(file.read_bytes(), 9, mtime=0)) for file in files)


def weigh(page: Page, site: Path, url: str) -> dict[str, int]:
    """Gzip bytes: until the bench answers, and in the end, when every figure has come alive."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.partition("#")[0]))
    page.goto(url)

    def files() -> list[Path]:
        paths = dict.fromkeys(address.removeprefix(url) or "index.html" for address in asked)
        return [site / path for path in paths if (site / path).is_file()]

    # without the prefetch of what is wanted later
    later = page.locator("[data-runtime]").evaluate_all(
        "(all) => all.flatMap((e) => [e.dataset.runtime, e.dataset.spec])"
    )
    page.wait_for_timeout(1500)
    before = [file for file in files() if file.relative_to(site).as_posix() not in later]
    end = dict.fromkeys([*files(), *(site / path for path in later)])
    return {"before_the_bench_answers": zipped(*before), "in_the_end": zipped(*end)}


@contextmanager
def opened(browser: Browser, url: str, speed: int, **viewport: int) -> Iterator[tuple[Page, CDPSession]]:
    """A page in a context of its own, at a part of full speed."""
    size = {"width": 1440, "height": 900, **viewport}
    context = browser.new_context(viewport=size, color_scheme="light", locale="en-US")
    page = context.new_page()
    page.add_init_script(WATCH)
    session = context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": speed})
    page.goto(url)
    page.wait_for_timeout(1000)
    yield page, session
    context.close()


def loading(browser: Browser, url: str, speed: int, **viewport: int) -> dict[str, float]:
    """Blocking time and layout shift of an opening, in ms and as the browser counts them."""
    with opened(browser, url, speed, **viewport) as (page, _):
        page.wait_for_timeout(2000)
        seen: dict[str, float] = page.evaluate("() => window.watched")
        return {key: round(value, 4) for key, value in seen.items()}


def positions(last: int) -> list[int]:
    """Forty positions, up and down again."""
    way = [*range(1, last + 1), *range(last - 1, -1, -1)]
    return (way * POSITIONS)[:POSITIONS]


def slide(page: Page, slider: str, parts: list[list[str]], by: str) -> list[dict[str, Any]]:
    """Latency of forty positions of a slider, by key or by drag; the page is awake before."""
    handle = page.locator(slider).first
    last = int(handle.get_attribute("max") or 0)
    handle.focus()
    handle.press("Home")
    page.wait_for_timeout(2500)  # Vega wakes
    page.evaluate(MEASURE, parts)
    seen = []
    if by == "drag":
        box = handle.bounding_box()
        assert box
        y = box["y"] + box["height"] / 2

        def x(index: int) -> float:
            return box["x"] + 7 + (box["width"] - 14) * index / last

        page.mouse.move(x(0), y)
        page.mouse.down()
    before = 0
    hand = random.Random(1)
    for index in positions(last):
        page.wait_for_timeout(hand.uniform(0, 17))  # a hand knows nothing of frames
        if by == "drag":
            page.mouse.move(x(index), y)
        else:
            page.keyboard.press("ArrowRight" if index > before else "ArrowLeft")
        seen.append(page.evaluate("() => window.settled()"))
        before = index
    if by == "drag":
        page.mouse.up()
    return seen


STAGES = {
    "script": {"FunctionCall", "EventDispatch", "FireAnimationFrame", "RunMicrotasks", "EvaluateScript", "TimerFire"},
    "style": {"UpdateLayoutTree", "ParseAuthorStyleSheet"},
    "layout": {"Layout"},
    "paint": {"PrePaint", "Paint", "Layerize", "Commit", "UpdateLayer"},
    "collection": {"MinorGC", "MajorGC"},
}


def stages(events: list[Mapping[str, Any]]) -> dict[str, float]:
    """Milliseconds of the processor on the page's main thread by stage: own time, without what is nested."""
    names = {name: stage for stage, all_of in STAGES.items() for name in all_of}
    mains = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    spent: dict[str, float] = defaultdict(float)
    stack: list[tuple[float, str]] = []
    found = [e for e in events if e.get("ph") == "X" and e["name"] in names and (e["pid"], e["tid"]) in mains]
    for event in sorted(found, key=lambda e: (e["ts"], -e.get("dur", 0))):
        while stack and stack[-1][0] <= event["ts"]:
            stack.pop()
        length, stage = event.get("tdur", event.get("dur", 0)) / 1000, names[event["name"]]
        if stack:
            spent[stack[-1][1]] -= length
        spent[stage] += length
        stack.append((event["ts"] + event.get("dur", 0), stage))
    return dict(spent)


def latency(browser: Browser, url: str, slider: str, parts: list[list[str]], by: str, speed: int) -> dict[str, Any]:
    """Milliseconds from input to paint, and the work of the main thread at each position."""
    with opened(browser, url, speed) as (page, _):
        seen = slide(page, slider, parts, by)
    with opened(browser, url, speed) as (page, _):
        page.locator(slider).first.press("Home")
        page.wait_for_timeout(2500)
        browser.start_tracing(page=page, categories=["devtools.timeline", "v8", "disabled-by-default-v8.gc"])
        slide_again = positions(int(page.locator(slider).first.get_attribute("max") or 0))
        before = 0
        for index in slide_again:
            page.keyboard.press("ArrowRight" if index > before else "ArrowLeft")
            page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            before = index
        events = json.loads(browser.stop_tracing())["traceEvents"]
    times = sorted(one["latency"] for one in seen)
    missed = {name for name, _ in parts} - set.intersection(*(set(one["parts"]) for one in seen))
    return {
        "median": round(statistics.median(times), 1),
        "p95": round(times[int(0.95 * len(times)) - 1], 1),
        "worst": round(times[-1], 1),
        "work": {stage: round(spent / len(slide_again), 2) for stage, spent in stages(events).items()},
        "without_change_somewhere": sorted(missed),
    }


def main() -> None:
    """Measure both pages and print what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--site", type=Path, help="a built site; else the lesson is built")
    parser.add_argument("--only", choices=["ours", "baseline"], help="measure one of the two")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        site, other = options.site or Path(scratch, "site"), Path(scratch, "baseline")
        if not options.site:
            build(ROOT, site)
        other.mkdir()
        (other / "index.html").write_text(baseline(), encoding="utf-8")
        browser = launch_any(playwright)
        with SiteServer(site).running() as ours, SiteServer(other).running() as theirs:
            pages = {
                "ours": (site, ours.url, "#tokens", OURS),
                "baseline": (other, theirs.url, "#vis input[type=range]", THEIRS),
            }
            pages = {name: page for name, page in pages.items() if options.only in (None, name)}
            found: dict[str, Any] = {name: {"gzip_bytes": {}, "loading": {}, "latency": {}} for name in pages}
            for name, (folder, url, _, _) in pages.items():
                page = browser.new_page()
                found[name]["gzip_bytes"] = weigh(page, folder, url)
                page.close()
            for label, viewport in (("desktop", {}), ("phone", {"width": 390, "height": 844})):
                for speed, rate in SPEEDS.items():
                    for name, (_, url, _, _) in pages.items():
                        found[name]["loading"][f"{label}, {speed} speed"] = loading(browser, url, rate, **viewport)
            for speed, rate in SPEEDS.items():
                for by in ("key", "drag"):
                    for name, (_, url, slider, parts) in pages.items():
                        found[name]["latency"][f"{by}, {speed} speed"] = latency(browser, url, slider, parts, by, rate)
        print(json.dumps({"browser": browser.version, "limits_ms": LIMITS, **found}, indent=1))
        browser.close()


if __name__ == "__main__":
    main()
