"""Random use: thousands of actions by a seed; nothing breaks, and at rest everything says the same point.

LESSON_RANDOM_ACTIONS=20000 walks longer than the everyday run does, LESSON_RANDOM_SEED=… somewhere else.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from typing import Any

from builder.grid import AXES
from builder.ledger import Point
from tests.browser.bench import PATIENCE, RADIOS, RANGES, Bench, Truth

ACTIONS = int(os.environ.get("LESSON_RANDOM_ACTIONS", "2000"))
SEED = int(os.environ.get("LESSON_RANDOM_SEED", "4"))
BETWEEN_RESTS = 125
SIZES = [(1440, 900), (1280, 720), (1024, 768), (390, 844), (320, 640)]
KEYS = ["ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown"]

# What costs a journey to the browser each is done in bursts there: the events are those of a hand, in one look.
BURST = """async (steps) => {
  const seen = (element) => element && element.getClientRects().length;
  const pick = (all, at) => { const there = [...all].filter(seen); return there[at % there.length]; };
  const frame = () => new Promise(requestAnimationFrame);
  const start = performance.now();
  let moves = 0;
  for (const [kind, at, value] of steps) {
    if (kind === "follow" || kind === "press") moves += 1;
    if (kind === "slide") {
      const slider = pick(document.querySelectorAll("input[type=range]"), at);
      if (!slider) continue;
      slider.value = String(value % (Number(slider.max) + 1));
      slider.dispatchEvent(new Event("input", { bubbles: true }));
    } else if (kind === "choose") pick(document.querySelectorAll(".option input:enabled"), at)?.click();
    else if (kind === "follow") pick(document.querySelectorAll('main a[href^="#"]'), at)?.click();
    else if (kind === "disclose") pick(document.querySelectorAll("summary, .proof-mark"), at)?.click();
    else if (kind === "press") pick(document.querySelectorAll("[data-reset], [data-back], [data-toggle]"), at)?.click();
    else if (kind === "scheme") document.querySelector("[data-scheme-switch]").click();
    else if (kind === "scroll") scrollTo(0, value * 50);
    else if (kind === "columns") document.querySelector(".all-columns input").click();
    if (value % 3 === 0) await frame();
  }
  // a browser ignores more than two hundred navigations in ten seconds, and says so
  while (performance.now() - start < moves * 70) await frame();
}"""
KINDS = ["slide"] * 6 + ["choose"] * 5 + ["follow"] * 2 + ["disclose", "press", "press", "scheme", "scroll", "columns"]

# The walk stays on the page.
STAY = """addEventListener("click", (event) => {
  if (event.target.closest?.('a[href^="http"]')) event.preventDefault();
}, true);"""

# Where the page says it is: by its state, its address, its controls.
WHERE = """() => {
  const address = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  return { point: lesson.point, address, whole: location.hash.includes("="), kept: history.state?.point ?? null };
}"""


def _burst(draw: random.Random, count: int) -> list[tuple[str, int, int]]:
    return [(draw.choice(KINDS), draw.randrange(1000), draw.randrange(400)) for _ in range(count)]


def _by_hand(draw: random.Random, bench: Bench) -> None:
    """One action by mouse or key as a reader does it, through the browser's own input."""
    page = bench.page
    match draw.randrange(8):
        case 0 | 1:
            slider = bench.range(draw.choice(RANGES))
            if slider.is_visible():
                slider.focus()
                for _ in range(draw.randrange(1, 4)):
                    page.keyboard.press(draw.choice(KEYS))
        case 2:
            axis = draw.choice(RADIOS)
            radio = bench.control(axis).locator("input:checked")
            if radio.is_visible():
                radio.focus()
                page.keyboard.press(draw.choice(KEYS[:4]))
        case 3:
            slider = bench.range(draw.choice(RANGES))
            box = slider.bounding_box() if slider.is_visible() else None
            if box:
                page.mouse.move(box["x"] + box["width"] * draw.random(), box["y"] + 10)
                page.mouse.down()
                page.mouse.move(box["x"] + box["width"] * draw.random(), box["y"] + 10, steps=3)
                page.mouse.up()
        case 4:
            page.mouse.click(draw.randrange(5, 300), draw.randrange(5, 600))
        case 5:
            for _ in range(draw.randrange(1, 6)):
                page.keyboard.press(draw.choice(["Tab", "Shift+Tab"]))
        case 6:
            page.keyboard.press("Escape")
        case 7:
            width, height = draw.choice(SIZES)
            page.set_viewport_size({"width": width, "height": height})


def _wander(draw: random.Random, bench: Bench) -> None:
    """Through the history, to the other scheme, or from the start again."""
    page = bench.page
    match draw.randrange(6):
        case 0 | 1:
            page.evaluate("() => setTimeout(() => history.back())")
        case 2:
            page.evaluate("() => setTimeout(() => history.forward())")
        case 3:
            page.emulate_media(color_scheme=draw.choice(["light", "dark"]))
        case 4:
            page.reload()
        case 5:
            point = bench.truth.sample(1, seed=draw.randrange(10**6))[0]
            page.evaluate("(fragment) => { location.hash = fragment; }", bench.truth.fragment(point))


def _differs(truth: Truth, where: dict[str, Any]) -> bool:
    """Whether state and address say different points; a heading, or no fragment, has the point behind it."""
    point = Point(**where["point"])
    if where["whole"]:
        return bool(where["address"] != {axis: str(getattr(point, axis)) for axis in AXES})
    return where["kept"] != where["point"] if where["kept"] else point != truth.defaults


def _rest(bench: Bench, truth: Truth) -> Point:
    """Wait until all is written, then hold state, address, controls, readouts and ledger against each other."""
    until = time.monotonic() + PATIENCE
    bench.page.wait_for_timeout(350)
    while _differs(truth, where := bench.page.evaluate(WHERE)):
        assert time.monotonic() < until, (bench.page.url, where)
        bench.page.wait_for_timeout(50)
    point = Point(**where["point"])
    bench.expect_at(point)
    return point


def test_random_use_breaks_nothing(open_bench: Callable[..., Bench], truth: Truth, troubles: Any) -> None:
    """Two thousand actions: no exception, no word on the console, and at each rest one point everywhere."""
    draw = random.Random(SEED)
    bench = open_bench(touch=True, before=lambda page: page.add_init_script(STAY))
    bench.page.on("dialog", lambda dialog: dialog.dismiss())
    done, seen = 0, set()
    while done < ACTIONS:
        steps = _burst(draw, BETWEEN_RESTS - 6)
        bench.page.evaluate(BURST, steps)
        for _ in range(5):
            _by_hand(draw, bench)
        _wander(draw, bench)
        done += BETWEEN_RESTS
        seen.add(_rest(bench, truth))
        assert not troubles.unexpected, (f"after {done} actions of seed {SEED}", troubles.unexpected)
    assert len(seen) > ACTIONS / BETWEEN_RESTS / 3
