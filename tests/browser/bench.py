"""The bench as a test sees it: what the page shows, what Python says it should, and hands on the controls."""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect

from builder.bench_chart import FRAMES, Y_HIGH
from builder.colours import read_colours
from builder.grid import AXES, Grid, load_grid
from builder.kernels import KERNELS
from builder.ledger import Point
from builder.page import axis_texts
from builder.palette import FILLS
from builder.report import document
from builder.shards import look_up, shard_id

RANGES = ("tokens", "context")
RADIOS = ("phase", "gpu", "weights", "kv", "attention")
PATIENCE = 5.0  # seconds until a page that doesn't come to rest fails its test

# Everything that the bench shows, in one look.
READ = """() => {
  const text = (element) => element === null ? null : element.textContent.replace(/\\s+/g, " ").trim();
  const bench = document.querySelector("[data-bench]");
  // on a narrow screen its body stands apart
  const parts = [...document.querySelectorAll("[data-bench]")];
  const all = (selector, root) => (root ? [root] : parts).flatMap((part) => [...part.querySelectorAll(selector)]);
  const of = (elements, key, read) => Object.fromEntries(elements.map((e) => [e.dataset[key], read(e)]));
  const controls = {}, shown = {}, spoken = {};
  for (const control of all("[data-control]")) {
    const name = control.dataset.control, range = control.querySelector("input[type=range]");
    controls[name] = range ? range.valueAsNumber : control.querySelector("input:checked").value;
    if (range) {
      shown[name] = text(control.querySelector("[data-value]"));
      spoken[name] = range.getAttribute("aria-valuetext");
    }
  }
  const echoes = {};
  for (const element of all("[data-echo]")) (echoes[element.dataset.echo] ??= []).push(text(element));
  const rows = all("tr[data-kernel]");
  return {
    controls, shown, spoken, echoes,
    strip: text(all(".strip-point")[0]),
    readouts: of(all("[data-readout]"), "readout", text),
    cells: of(rows, "kernel", (row) => of(all("[data-column]", row), "column", text)),
    bounds: of(rows.slice(0, -1), "kernel", (row) => row.querySelector("[data-bound]").dataset.bound),
    bars: of(rows.slice(0, -1), "kernel", (row) => Number(row.querySelector("[data-bar]").getAttribute("width"))),
    largest: rows.filter((row) => row.classList.contains("largest")).map((row) => row.dataset.kernel),
    fits: bench.dataset.fits,
    memory: Number(all("[data-memory-used]")[0].getAttribute("width")),
    busy: bench.getAttribute("aria-busy"),
    past: all("[data-note]")[0].classList.contains("past"),
  };
}"""

# The dots of one drawing, in CSS px from its top left corner as they lie on the screen; `live` once Vega has drawn it.
DRAWN = """(box) => {
  const svg = box.querySelector("svg"), corner = svg.getBoundingClientRect();
  const dots = [...svg.querySelectorAll("[class~=dots_marks] > path")].map((path) => {
    const own = path.getBBox(), to = path.getScreenCTM();
    const middle = new DOMPoint(own.x + own.width / 2, own.y + own.height / 2).matrixTransform(to);
    const [fill, stroke] = [path.getAttribute("fill"), path.getAttribute("stroke")];
    return { x: middle.x - corner.x, y: middle.y - corner.y, r: own.width / 2 * to.a, fill, stroke };
  });
  const texts = [...svg.querySelectorAll("[class~=labels_marks] > text")].map((text) => text.textContent);
  return { dots, texts, live: svg.querySelector("[aria-roledescription]") !== null,
    role: svg.getAttribute("role"), name: svg.getAttribute("aria-label"), width: corner.width };
}"""


def close(a: float, b: float, within: float) -> bool:
    return abs(a - b) <= within


@dataclass
class Truth:
    """What Python says of every point: the texts of the published shards, and the ledger's unrounded numbers."""

    root: Path
    site: Path

    @cached_property
    def grid(self) -> Grid:
        return load_grid(self.root)

    @cached_property
    def axes(self) -> dict[str, dict[str, Any]]:
        return axis_texts(self.grid)

    @cached_property
    def shards(self) -> dict[str, Any]:
        return {}

    @cached_property
    def colours(self) -> dict[str, str]:
        """Kernel → the colour of its dot."""
        colours = read_colours((self.root / "theme" / "css" / "tokens.css").read_text(encoding="utf-8"))
        return {kernel: colours[token] for kernel, token in FILLS.items()}

    @property
    def defaults(self) -> Point:
        return self.grid.defaults

    def point(self, **moved: Any) -> Point:
        """The default point with some coordinates moved."""
        return replace(self.defaults, **moved)

    def moved(self, point: Point, **moved: Any) -> Point:
        """A point with some coordinates moved, which may be none of the grid's."""
        return replace(point, **moved)

    def document(self, point: Point) -> Any:
        """The published shard of a point."""
        name = shard_id(point)
        if name not in self.shards:
            self.shards[name] = json.loads((self.site / "data" / f"{name}.json").read_text(encoding="utf-8"))
        return self.shards[name]

    def text(self, point: Point, column: str) -> str:
        """What the page shows of a column, in the spaces that text content has."""
        return " ".join(look_up(self.document(point), self.grid, point, column).split())

    def exact(self, point: Point) -> dict[str, Any]:
        """The unrounded document of `lesson ledger --format json`."""
        return document(self.grid.model, self.grid.gpus[point.gpu], point)

    def index(self, axis: str, point: Point) -> int:
        return self.grid.axes[axis].index(getattr(point, axis))

    def fragment(self, point: Point) -> str:
        """The address of a point as the page writes it."""
        return "#" + "&".join(f"{axis}={getattr(point, axis)}" for axis in AXES)

    def spoken(self, point: Point) -> str:
        """What the status says once the bench is at rest."""
        parts = [f"{self.text(point, 'throughput')} tokens per second."]
        return " ".join(parts + [t for t in (self.text(point, "verdict"), self.text(point, "warning")) if t])

    def sample(self, count: int, seed: int, **fixed: Any) -> list[Point]:
        """Points of the grid drawn by a seed, with some coordinates fixed."""
        draw, points = random.Random(seed), []
        while len(points) < count:
            drawn = {axis: draw.choice(self.grid.axes[axis]) for axis in AXES}
            point = Point(**(drawn | fixed))
            if self.grid.exists(point):
                points.append(point)
        return points

    def page(self, point: Point) -> dict[str, Any]:
        """All that READ finds at a point, but for the widths, which `differences` knows how to compare."""

        def text(column: str) -> str:
            return self.text(point, column)

        axes, cells = self.axes, {}
        columns = ("flops", "bytes_moved", "arithmetic_intensity", "bound", "attainable_flops", "time", "share")
        for kernel in KERNELS:
            cells[kernel] = {column: text(f"{kernel}.{column}") for column in columns}
            cells[kernel]["bound"] = f"{text(f'{kernel}.bound')} {text(f'{kernel}.latency')}".strip()
        sums = {name: text(f"total.{name}") for name in ("flops", "bytes_moved", "arithmetic_intensity", "time")}
        cells["total"] = dict.fromkeys(columns, "") | sums | {"share": "100"}
        at = {axis: self.index(axis, point) for axis in RANGES}
        heads, nouns = ("weights", "kv", "attention"), {"weights": " weights", "kv": " KV cache", "attention": ""}
        moved = [axis for axis in heads if getattr(point, axis) != getattr(self.defaults, axis)]
        rest = [f", {axes[a]['texts'][self.index(a, point)]}{nouns[a]}" for a in moved]
        words = (
            f"{point.phase}, {axes['tokens']['spoken']['prefill'][at['tokens']]}, "
            f"{axes['context']['brief'][at['context']]} context, {text('gpu.label')}{''.join(rest)}"
        )
        return {
            "controls": {axis: at.get(axis, getattr(point, axis)) for axis in AXES},
            "shown": {axis: axes[axis]["texts"][at[axis]] for axis in RANGES},
            "spoken": {axis: axes[axis]["spoken"][point.phase][at[axis]] for axis in RANGES},
            "strip": words,
            "readouts": {
                "verdict": " ".join(f"{text('verdict')} {text('warning')}".split()),
                "throughput": text("throughput"),
                "time": text("total.time"),
                "arithmetic_intensity": text("total.arithmetic_intensity"),
                "peak_share": text("peak_share"),
                "largest_batch": text("largest_batch"),
                "flops": text("total.flops"),
                "bytes_moved": text("total.bytes_moved"),
                "resident_bytes": text("resident"),
            },
            "cells": cells,
            "bounds": {row["kernel"]: row["bound"] or "none" for row in self.exact(point)["rows"]},
            "largest": [text("largest")],
            "fits": self.exact(point)["total"]["fits"],
            "busy": None,
            "past": point.context > (self.grid.model.max_positions or math.inf),
        }

    def differences(self, point: Point, seen: Mapping[str, Any]) -> dict[str, Any]:
        """name → (seen, expected), of everything on the page that isn't as Python says."""
        expected = self.page(point)
        wrong = {name: (seen[name], expected[name]) for name in expected if seen[name] != expected[name]}
        exact = self.exact(point)
        used = 40 * min(exact["total"]["resident_bytes"] / exact["gpu"]["memory_bytes"], 1.5)
        if not close(seen["memory"], used, 0.5):
            wrong["memory"] = (seen["memory"], used)
        for row in exact["rows"]:
            if not close(seen["bars"][row["kernel"]], 73 * row["share"], 0.15):
                wrong[f"bar of {row['kernel']}"] = (seen["bars"][row["kernel"]], 73 * row["share"])
        for column, texts in seen["echoes"].items():
            if set(texts) != {self.text(point, column)}:
                wrong[f"echo of {column}"] = (texts, self.text(point, column))
        return wrong

    def drawn_differences(self, point: Point, seen: Mapping[str, Any], size: str = "wide") -> list[str]:
        """What of a roofline's dots isn't where the ledger's unrounded numbers put it, within a pixel."""
        frame, fits = FRAMES[size], self.text(point, "fits")  # type: ignore[index]
        left, _, top, _ = frame.padding
        whole = {"wide": 24, "short": 18, "phone": 18, "strip": 11}[size]
        scale = seen["width"] / frame.total[0]
        by_colour = {colour: kernel for kernel, colour in self.colours.items()}
        found = {by_colour.get(d["stroke"], by_colour.get(d["fill"], "?")): d for d in seen["dots"]}
        wrong: list[str] = []
        expected: dict[str, tuple[float, float, float]] = {}
        if self.text(point, "verdict") not in " ".join((seen["name"] or "").split()):
            wrong.append(f"the drawing is named '{seen['name']}'")
        for row in self.exact(point)["rows"]:
            if row["arithmetic_intensity"] is None:
                continue
            r = max(3.0, whole * math.sqrt(row["share"]))
            x = frame.width * math.log10(row["arithmetic_intensity"] / 0.1) / 5
            y = frame.height * (1 - math.log(row["attainable_flops"] / 1e12) / math.log(Y_HIGH))
            expected[row["kernel"]] = (left + min(x, frame.width - r - 5 if x > frame.width else x), top + y, r)
        if set(found) != set(expected) or len(seen["dots"]) != len(expected):
            wrong.append(f"dots of {sorted(found)}, not of {sorted(expected)}")
        for kernel in set(found) & set(expected):
            dot, place = found[kernel], expected[kernel]
            for name, is_, due in zip("xyr", (dot["x"], dot["y"], dot["r"]), place, strict=True):
                if not close(is_ / scale, due, 1.0 if name != "r" else 0.25):
                    wrong.append(f"{kernel}.{name} is {is_ / scale:.2f}, not {due:.2f}")
            if (dot["fill"] == self.colours[kernel]) != (fits == "fits"):
                wrong.append(f"{kernel} is filled {dot['fill']} where it {fits}")
        largest = self.text(point, f"{self.text(point, 'largest')}.label")
        if size != "strip" and largest not in [" ".join(text.split()) for text in seen["texts"]]:
            wrong.append(f"the largest is not named '{largest}': {seen['texts']}")
        return wrong


class Bench:
    """The bench of an open page."""

    def __init__(self, page: Page, truth: Truth) -> None:
        self.page = page
        self.truth = truth
        self.root = page.locator("[data-bench]")
        self.status = page.locator("[data-announce]")
        self.toggle = page.locator("[data-toggle]")

    def read(self) -> dict[str, Any]:
        found: dict[str, Any] = self.page.evaluate(READ)
        return found

    def control(self, axis: str) -> Locator:
        """The box of a control: label, input and what is shown beside it."""
        return self.root.locator(f"[data-control={axis}]")

    def range(self, axis: str) -> Locator:
        return self.root.locator(f"input[type=range][name={axis}]")

    def radio(self, axis: str, value: str) -> Locator:
        return self.root.locator(f"input[type=radio][name={axis}][value={value}]")

    def choose(self, axis: str, value: str) -> None:
        """Click the word of a choice, as one does."""
        self.control(axis).locator(".option", has=self.page.locator(f"[value={value}]")).click()

    def move(self, axis: str, value: Any) -> None:
        """Set any control to a value, whatever kind it is."""
        if axis in RANGES:
            self.range(axis).fill(str(self.truth.grid.axes[axis].index(value)))
        else:
            self.radio(axis, value).check()

    def drawn(self, size: str = "wide") -> dict[str, Any]:
        found: dict[str, Any] = self.page.locator(f"[data-bench] [data-variant={size}]").evaluate(DRAWN)
        return found

    def frame(self) -> None:
        """Let the page draw."""
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def _comes_to(self, differences: Any) -> None:
        """Look until nothing differs; fail with what does when that takes too long."""
        until = time.monotonic() + PATIENCE
        while wrong := differences():
            assert time.monotonic() < until, wrong
            self.frame()

    def expect_at(self, point: Point) -> None:
        """Everything written on the page is what Python says at this point."""
        self._comes_to(lambda: self.truth.differences(point, self.read()))

    def expect_drawn(self, point: Point, size: str = "wide") -> None:
        """Vega has taken over this drawing, which must be in sight, and its dots are at this point."""
        self.page.locator(f"[data-bench] [data-variant={size}]").scroll_into_view_if_needed()

        def differences() -> list[str]:
            seen = self.drawn(size)
            return ["Vega has not drawn"] if not seen["live"] else self.truth.drawn_differences(point, seen, size)

        self._comes_to(differences)

    def expect_address(self, point: Point) -> None:
        """The address names the point with all seven keys."""
        expect(self.page).to_have_url(self.page.url.partition("#")[0] + self.truth.fragment(point))

    def links(self) -> list[dict[str, Any]]:
        """The links of the text that can be clicked and lead exactly where they say: {"index", "point"} of each."""
        found: list[dict[str, Any]] = self.page.locator('main a[href^="#"][href*="="]').evaluate_all(
            """(links) => links.map((link, index) => ({
              index, keys: Object.fromEntries(new URLSearchParams(link.getAttribute("href").slice(1))),
              seen: link.getClientRects().length > 0 && !link.dataset.offGrid }))"""
        )
        texts = {axis: {str(value): value for value in values} for axis, values in self.truth.grid.axes.items()}
        usable = []
        for link in found:
            keys = link["keys"]
            if link["seen"] and all(text in texts.get(axis, ()) for axis, text in keys.items()):
                point = replace(self.truth.defaults, **{axis: texts[axis][text] for axis, text in keys.items()})
                usable.append({"index": link["index"], "point": point})
        return usable

    def link(self, index: int) -> Locator:
        return self.page.locator('main a[href^="#"][href*="="]').nth(index)

    def link_moving(self, *axes: str) -> tuple[Locator, Point]:
        """The first link that moves exactly these coordinates from the default point, and where it leads."""
        for link in self.links():
            moved = {axis for axis in AXES if getattr(link["point"], axis) != getattr(self.truth.defaults, axis)}
            if moved == set(axes):
                return self.link(link["index"]), link["point"]
        raise AssertionError(f"the text has no link that moves {axes}")
