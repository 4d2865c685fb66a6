"""The shipped look-up: in Chromium, every point of every shard, all readouts and cells, against Python's text."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from builder.display import COLUMNS, TOTALS
from builder.grid import POSITION_AXES
from builder.kernels import KERNELS
from builder.ledger import Point
from builder.shards import look_up, shard_id
from tests.browser.bench import Bench, Truth

# Everything that readouts, ledger, verdict and picture ask for.
TEXTS = [
    *(f"{kernel}.{column}" for kernel in KERNELS for column in (*COLUMNS, "latency")),
    *(f"total.{column}" for column in TOTALS),
    *("throughput", "peak_share", "largest_batch", "resident", "fits", "work_unit"),
    *("verdict", "warning", "largest", "sublabel", *(f"{kernel}.label" for kernel in KERNELS)),
]
DRAWN = "memory_used"  # a number, of which a bar is drawn

# The texts of every point of one choice, by the page's own lesson.text: a line a point, hashed as Python does, so that
# megabytes need not travel; and the lines themselves where they are asked for.
LOOK_UP = """async ({ choice, columns, crc }) => {
  const { axes } = lesson.data;
  const table = Int32Array.from({ length: 256 }, (_, n) => {
    for (let k = 0; k < 8; k++) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
    return n;
  });
  const encoder = new TextEncoder();
  const hash = (text) => {
    let sum = -1;
    for (const byte of encoder.encode(text)) sum = table[(sum ^ byte) & 255] ^ (sum >>> 8);
    return (sum ^ -1) >>> 0;
  };
  await lesson.load(choice);
  const found = [];
  for (const phase of axes.phase.values) for (const context of axes.context.values) {
    for (const tokens of axes.tokens.values) {
      if (phase === "decode" && context === 0) continue;
      const point = { ...choice, phase, context, tokens };
      const drawn = Number(lesson.text("memory_used", point)).toFixed(2);
      const line = [...columns.map((column) => lesson.text(column, point)), drawn].join("\\u001f");
      found.push(crc ? hash(line) : line);
    }
  }
  return found;
}"""


def _points(truth: Truth, choice: Point) -> list[Point]:
    """The points of a shard in the order in which the page goes through them."""
    values = [truth.grid.axes[axis] for axis in POSITION_AXES]
    points = [replace(choice, **dict(zip(POSITION_AXES, at, strict=True))) for at in product(*values)]
    return [point for point in points if truth.grid.exists(point)]


def _said(truth: Truth, point: Point) -> str:
    document = truth.document(point)
    texts = [look_up(document, truth.grid, point, column) for column in TEXTS]
    return "\x1f".join([*texts, f"{float(look_up(document, truth.grid, point, DRAWN)):.2f}"])


@pytest.fixture
def bench(open_bench: Callable[..., Bench]) -> Bench:
    return open_bench()


def test_the_page_finds_the_text_of_every_point(bench: Bench, truth: Truth) -> None:
    """Every readout, cell, sentence and label of all points of all shards, asked of the page and of Python."""
    compared, wrong = 0, []
    for choice in truth.grid.shard_points():
        points = _points(truth, choice)
        asked: dict[str, Any] = {"choice": vars(choice), "columns": TEXTS, "crc": True}
        seen = bench.page.evaluate(LOOK_UP, asked)
        expected = [zlib.crc32(_said(truth, point).encode()) for point in points]
        compared += len(points)
        assert len(seen) == len(expected), shard_id(choice)
        if seen != expected:
            lines = bench.page.evaluate(LOOK_UP, {**asked, "crc": False})
            for point, line in zip(points, lines, strict=True):
                texts = zip([*TEXTS, DRAWN], line.split("\x1f"), _said(truth, point).split("\x1f"), strict=True)
                wrong += [(point, *text) for text in texts if text[1] != text[2]]
    assert not wrong, (len(wrong), wrong[:10])
    assert compared > 15_000


def test_what_is_compared_is_all_that_the_page_shows(bench: Bench) -> None:
    """Nothing on the bench shows a text of a shard that the comparison leaves out."""
    shown = bench.page.evaluate(
        """() => [...new Set([
          ...[...document.querySelectorAll("[data-bench] [data-echo]")].map((e) => e.dataset.echo),
          ...[...document.querySelectorAll("[data-kernel] [data-column]")].map((e) =>
            `${e.closest("[data-kernel]").dataset.kernel}.${e.dataset.column}`).filter(lesson.has),
        ])].filter((column) => !(column in lesson.data.shard.constants))"""
    )
    assert set(shown) - {"tokens"} <= set(TEXTS)
