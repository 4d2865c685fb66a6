"""The seven controls, by mouse and by key, and what is said of them."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from builder.kernels import KERNELS
from tests.browser.bench import RADIOS, RANGES, Bench, Truth

COUNT_SPOKEN = """(status) => {
  window.heard = [];
  new MutationObserver(() => window.heard.push(status.textContent)).observe(status, { childList: true });
}"""


def _thumb(bench: Bench, axis: str, index: int) -> tuple[float, float]:
    """Where the middle of a slider's thumb is when it stands at a position."""
    box = bench.range(axis).bounding_box()
    assert box
    last = len(bench.truth.grid.axes[axis]) - 1
    return box["x"] + 7 + (box["width"] - 14) * index / last, box["y"] + box["height"] / 2


def _drag(bench: Bench, axis: str, start: int, end: int, steps: int = 12) -> None:
    """Take a slider's thumb and pull it, without letting go."""
    mouse = bench.page.mouse
    mouse.move(*_thumb(bench, axis, start))
    mouse.down()
    mouse.move(*_thumb(bench, axis, end), steps=steps)


@pytest.mark.parametrize("axis", RANGES)
def test_a_slider_is_dragged(open_bench: Callable[..., Bench], truth: Truth, axis: str) -> None:
    """While the mouse moves, and when it lets go, the numbers are those under the thumb."""
    bench, values = open_bench(), truth.grid.axes[axis]
    start = truth.index(axis, truth.defaults)
    for end in (len(values) - 1, len(values) // 2, 1):
        _drag(bench, axis, start, end)
        point = truth.point(**{axis: values[end]})
        bench.expect_at(point)
        bench.expect_drawn(point)
        bench.page.mouse.up()
        bench.expect_at(point)
        start = end
    bench.expect_address(point)


@pytest.mark.parametrize("axis", RANGES)
def test_a_slider_is_moved_by_keys(open_bench: Callable[..., Bench], truth: Truth, axis: str) -> None:
    """Arrows go one position, Home and End to the ends, Page keys further than an arrow."""
    bench, values = open_bench(), truth.grid.axes[axis]
    index, last, slider = truth.index(axis, truth.defaults), len(values) - 1, bench.range(axis)
    slider.focus()

    def press(key: str) -> int:
        slider.press(key)
        now: int = slider.evaluate("(input) => input.valueAsNumber")
        bench.expect_at(truth.point(**{axis: values[now]}))
        return now

    for key, step in (("ArrowRight", 1), ("ArrowRight", 1), ("ArrowUp", 1), ("ArrowLeft", -1), ("ArrowDown", -1)):
        assert press(key) == (index := index + step), key
    assert press("End") == last
    assert press("ArrowRight") == last
    assert (low := press("PageDown")) < last
    assert press("PageUp") > low
    assert press("Home") == (1 if axis == "context" else 0)  # decode has no context 0
    bench.expect_address(truth.point(**{axis: values[1 if axis == "context" else 0]}))


@pytest.mark.parametrize("axis", RADIOS)
def test_a_choice_is_made_by_mouse_and_by_key(open_bench: Callable[..., Bench], truth: Truth, axis: str) -> None:
    """A click on the word chooses it; arrows go round from there."""
    bench, values = open_bench("#tokens=24"), truth.grid.axes[axis]
    for value in [*values[1:], values[0]]:
        bench.choose(axis, value)
        bench.expect_at(truth.point(tokens=24, **{axis: value}))
    for key, step in (("ArrowRight", 1), ("ArrowDown", 2), ("ArrowLeft", 1), ("ArrowUp", 0), ("ArrowUp", -1)):
        bench.page.keyboard.press(key)
        value = values[step % len(values)]
        bench.expect_at(truth.point(tokens=24, **{axis: value}))
        expect(bench.radio(axis, value)).to_be_focused()
    bench.expect_drawn(truth.point(tokens=24, **{axis: values[-1]}))
    bench.expect_address(truth.point(tokens=24, **{axis: values[-1]}))


def test_every_control_is_reached_by_tab_and_has_a_name(open_bench: Callable[..., Bench]) -> None:
    """In the order of the page: seven controls, then reset; each under its label."""
    bench = open_bench()
    bench.page.locator("#bench-top").focus()
    reached = []
    for _ in range(8):
        bench.page.keyboard.press("Tab")
        reached.append(bench.page.evaluate("() => document.activeElement.name || document.activeElement.textContent"))
    assert reached == ["phase", "gpu", "tokens", "context", "weights", "kv", "attention", "reset"]
    for axis in RANGES:
        label = bench.control(axis).locator("label").inner_text()
        expect(bench.page.get_by_role("slider", name=label)).to_have_attribute("name", axis)
    for axis in RADIOS:
        legend = bench.control(axis).locator("legend").inner_text()
        group = bench.page.get_by_role("group", name=legend, exact=True)
        expect(group.get_by_role("radio")).to_have_count(len(bench.truth.grid.axes[axis]))


def test_reset_goes_back_to_the_start(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """From anywhere, also from another shard; and Back leads back."""
    point = truth.point(tokens=96, gpu="b200", kv="fp8", phase="prefill", context=0)
    bench = open_bench(truth.fragment(point))
    bench.expect_at(point)
    bench.page.get_by_role("button", name="reset").click()
    bench.expect_at(truth.defaults)
    bench.page.go_back()
    bench.expect_at(point)


def test_sliders_speak_their_values_with_their_noun(open_bench: Callable[..., Bench]) -> None:
    """A decode batches sequences, a prefill has tokens; a context has tokens in both."""
    bench = open_bench("#tokens=64")
    expect(bench.range("tokens")).to_have_attribute("aria-valuetext", "64 sequences")
    expect(bench.range("context")).to_have_attribute("aria-valuetext", "8,192 tokens")
    bench.choose("phase", "prefill")
    expect(bench.range("tokens")).to_have_attribute("aria-valuetext", "64 tokens")
    bench.range("tokens").press("Home")
    expect(bench.range("tokens")).to_have_attribute("aria-valuetext", "1 token")
    bench.choose("phase", "decode")
    expect(bench.range("tokens")).to_have_attribute("aria-valuetext", "1 sequence")


def test_decode_moves_a_context_of_none_and_says_so(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """A decoded token reads at least its own cache: the context goes from 0 to 128."""
    bench = open_bench("#phase=prefill&context=0&tokens=16")
    bench.expect_at(truth.point(phase="prefill", context=0, tokens=16))
    bench.choose("phase", "decode")
    point = truth.point(context=128, tokens=16)
    bench.expect_at(point)
    expect(bench.status).to_have_text(f"Context moved to 128: decode reads its own cache. {truth.spoken(point)}")
    bench.expect_address(point)


def test_in_decode_the_context_slider_stops_before_none(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """Pulled to 0 it stands at 128, which is said even where nothing moved."""
    bench = open_bench("#context=128")
    bench.expect_at(truth.point(context=128))
    bench.range("context").press("Home")
    expect(bench.status).to_contain_text("Context moved to 128")
    assert bench.range("context").evaluate("(input) => input.valueAsNumber") == 1
    bench.expect_at(truth.point(context=128))


def test_a_burst_of_moves_is_said_once(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """A screen reader hears the numbers when the bench rests, once, and politely."""
    bench = open_bench()
    expect(bench.status).to_have_attribute("aria-live", "polite")
    bench.status.evaluate(COUNT_SPOKEN)
    bench.range("tokens").focus()
    for _ in range(8):
        bench.page.keyboard.press("ArrowRight")
    point = truth.point(tokens=truth.grid.axes["tokens"][8])
    expect(bench.status).to_have_text(truth.spoken(point))
    assert len(bench.page.evaluate("() => window.heard")) == 1


def test_nothing_is_said_of_the_page_as_it_opens(open_bench: Callable[..., Bench]) -> None:
    """Opening the lesson is no news; nor are the readouts live regions that would speak at each step."""
    bench = open_bench()
    expect(bench.status).to_have_text("")
    for readout in bench.root.locator("output[data-readout]").all():
        expect(readout).to_have_attribute("aria-live", "off")


def test_a_context_past_the_model_is_marked(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """Beyond what the model was trained for, the note beside the context turns strong."""
    bench = open_bench()
    note = bench.root.locator("[data-note]")
    assert note.evaluate("(e) => getComputedStyle(e).fontWeight") == "400"
    bench.range("context").press("End")
    bench.expect_at(truth.point(context=131072))
    assert note.evaluate("(e) => getComputedStyle(e).fontWeight") == "700"


def test_a_gpu_without_fp8_refuses_w8a8_with_a_reason(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """Choosing the A100 takes FP8 weights instead and says so; W8A8 can't be chosen there, and can again elsewhere."""
    bench = open_bench("#tokens=64")
    w8a8, why = bench.radio("weights", "w8a8"), bench.control("weights").locator("[data-why]")
    bench.choose("weights", "w8a8")
    bench.expect_at(truth.point(tokens=64, weights="w8a8"))
    bench.expect_drawn(truth.point(tokens=64, weights="w8a8"))
    expect(why).to_be_hidden()
    bench.choose("gpu", "a100")
    moved = truth.point(tokens=64, weights="fp8", gpu="a100")
    bench.expect_at(moved)
    bench.expect_address(moved)
    bench.expect_drawn(moved)
    expect(bench.status).to_contain_text("Weights moved to FP8: A100 has no FP8 tensor cores.")
    expect(w8a8).to_be_disabled()
    expect(why).to_have_text("A100 has no FP8 tensor cores")
    expect(why).to_be_visible()
    bench.control("weights").locator(".option", has=bench.page.locator("[value=w8a8]")).click(force=True)
    bench.radio("weights", "int4").focus()
    bench.page.keyboard.press("ArrowLeft")
    bench.page.keyboard.press("ArrowRight")
    bench.expect_at(truth.moved(moved, weights="int4"))
    bench.page.keyboard.press("ArrowRight")  # past W8A8, round to the first
    bench.expect_at(truth.moved(moved, weights="bf16"))
    bench.choose("gpu", "h200")
    expect(w8a8).to_be_enabled()
    expect(why).to_be_hidden()


def test_a_link_of_the_text_takes_w8a8(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """The lesson's own points with it are on the bench."""
    bench = open_bench()
    points = {link["point"]: link["index"] for link in bench.links() if link["point"].weights == "w8a8"}
    assert truth.point(weights="w8a8", tokens=1024, context=512) in points
    for point, index in list(points.items())[:2]:
        bench.link(index).click()
        bench.expect_at(point)
        bench.expect_drawn(point)
        expect(bench.link(index)).not_to_have_attribute("data-off-grid", re.compile("."))


DIMMED = """(element) => {
  const dim = (selector) => [...element.querySelectorAll(selector)].filter((e) => getComputedStyle(e).opacity !== "1");
  const paint = (dot) => [dot.getAttribute("fill"), dot.getAttribute("stroke")];
  return [dim(".ledger tbody tr").map((row) => row.dataset.kernel),
    dim("[data-variant=wide] [class~=dots_marks] > path").map(paint)];
}"""


@pytest.mark.parametrize(
    "fragment", ["", "#tokens=64&context=512", "#tokens=64", "#tokens=1024&context=512&weights=int4"]
)
def test_a_row_and_its_dot_are_paired(open_bench: Callable[..., Bench], truth: Truth, fragment: str) -> None:
    """Pointing at a row leaves its dot alone as it is, pointing at a dot its row: as drawn and alive, filled, pale and
    hollow. By key a row does the same."""
    bench = open_bench(fragment)
    colour = truth.colours["attention"]

    def dimmed() -> tuple[list[str], list[list[str]]]:
        rows, dots = bench.root.evaluate(DIMMED)
        return rows, dots

    def becomes(rows: list[str], dots: int) -> None:
        """Soon these rows and so many dots are dim, none of them attention's: a pointer's moves take a moment."""
        for _ in range(60):
            if (found := dimmed())[0] == rows and len(found[1]) == dots:
                break
            bench.page.wait_for_timeout(50)
        found = dimmed()
        assert (found[0], len(found[1])) == (rows, dots)
        assert not any(colour in dot for dot in found[1])

    others = [kernel for kernel in KERNELS if kernel != "attention"]
    for _ in range(2):  # the second time alive in any case
        bench.page.mouse.move(5, 5)
        becomes([], 0)
        bench.root.locator("tr[data-kernel=attention]").hover()
        becomes([], len(others))
        path = f"[data-variant=wide] [class~=dots_marks] > :is([fill='{colour}' i], [stroke='{colour}' i])"
        box = None
        for _ in range(60):  # the drawing may be taken over at this very moment
            box = bench.root.locator(path).bounding_box()
            if box:
                break
            bench.page.wait_for_timeout(50)
        assert box
        bench.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        becomes(others, 0)
        bench.page.wait_for_timeout(300)
    bench.page.mouse.move(5, 5)
    bench.page.locator(".more summary").focus()
    bench.page.keyboard.press("Tab")
    expect(bench.root.locator(f"tr[data-kernel={KERNELS[0]}]")).to_be_focused()
    for _ in range(KERNELS.index("attention")):
        bench.page.keyboard.press("ArrowDown")
    expect(bench.root.locator("tr[data-kernel=attention]")).to_be_focused()
    becomes([], len(others))
    bench.page.keyboard.press("Tab")
    becomes([], 0)


def test_the_legend_and_the_spoken_dash_follow_the_point(open_bench: Callable[..., Bench], truth: Truth) -> None:
    """The legend of latency is seen only where a row has its mark, and a dash says that nothing applies."""
    bench = open_bench()
    note, batch = bench.root.locator(".latency-note"), bench.root.locator("[data-readout=largest_batch]")
    for phase, tokens, marked in (("prefill", 4096, False), ("decode", 1, True)):
        point = truth.point(phase=phase, tokens=tokens)
        bench.move("tokens", tokens)
        bench.choose("phase", phase)
        bench.expect_at(point)
        expect(note).to_be_visible(visible=marked)
        said = batch.evaluate("(e) => getComputedStyle(e, '::after').content")
        assert ("does not apply" in said) == (phase == "prefill")
