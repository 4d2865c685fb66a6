"""The ledger → what each figure in the text shows: its rows, and the same in words, made from the same numbers.

A figure stands at the lesson's default point wherever it doesn't say otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from builder.catalog import Gpu
from builder.display import article
from builder.drawn import Here, Row, Series
from builder.errors import LessonError
from builder.grid import AXES, GRID_FILE, Grid, integers
from builder.ledger import GROUPS, Point, forward_pass
from builder.measured import PARTS, Step, load_history, load_measured
from builder.roofline import BANDWIDTH_EFFICIENCY, FITS, MEMORY, Pass, cost, fits, resident_bytes
from builder.units import DTYPE_LABELS, WEIGHT_DTYPES, join, one_decimal, short_position, show, significant, whole

CONTEXTS = (512, 2048, 32768, 131072)  # beside the default one
BESIDE = "a100"  # the GPU that figures put beside the default one
ALONE, CROWD = (1, 8192), (1024, 512)  # tokens and context of the two panels of throughput-by-dtype
CACHED = 512  # tokens cached before the prompt whose small kernels are looked at


def _gpu(grid: Grid, name: str) -> Gpu:
    """A GPU of the bench, or a LessonError that says which one a figure misses."""
    if name not in grid.gpus:
        message = f"a figure of the lesson shows the gpu '{name}', which is not on the bench"
        raise LessonError(message, path=GRID_FILE, hint=f"add '{name}' to axes.gpu, or take the figure off the lesson")
    return grid.gpus[name]


def _pass(grid: Grid, point: Point) -> Pass:
    return cost(forward_pass(grid.model, point), _gpu(grid, point.gpu), point.tokens)


def _tokens(grid: Grid) -> Any:
    return np.asarray(grid.axes["tokens"])


def _brief(value: Any) -> float:
    """Six significant digits: finer than any pixel."""
    return float(f"{float(value):.6g}")


def _memory(grid: Grid, point: Point) -> list[str]:
    """fits, tight or no, for every position of the point."""
    return [FITS[int(code)] for code in np.atleast_1d(fits(resident_bytes(grid.model, point), _gpu(grid, point.gpu)))]


def _listed(parts: Sequence[str]) -> str:
    """'a, b and c'."""
    return " and ".join(part for part in (", ".join(parts[:-1]), *parts[-1:]) if part)


def _sentence(text: str) -> str:
    """With a capital and a full stop."""
    return f"{text[0].upper()}{text[1:]}."


def _row_of(costs: Pass, column: str, kernel: str) -> Any:
    return getattr(costs, column)[costs.row(kernel)]


def _text(quantity: str, value: Any) -> str:
    """Digits alone."""
    return show(quantity, float(value))[0]


def _here(point: Point, y: str, unit: str = "", *, free: Sequence[str] = (), **at: list[Any]) -> Here:
    """Where the bench stands among tokens: the point's values on every axis that is neither `free` nor in `at`."""
    named = (axis for axis in AXES if axis not in ("tokens", *free))
    return Here("tokens", y, unit, {axis: at.get(axis, [getattr(point, axis)]) for axis in named})


def leaves_the_slope(grid: Grid, point: Point) -> int:
    """The fewest tokens with which the gate projection no longer waits for memory alone, over every integer.

    Raises LessonError where the axis ends before.
    """
    last = max(grid.axes["tokens"])
    for reach in integers(1, last):
        left = _row_of(_pass(grid, replace(point, tokens=reach)), "bound", "gate_proj") != MEMORY
        if left.any():
            return int(reach[left.argmax()])
    message = f"a figure of the lesson shows where the matmuls leave the slope, and up to {last:,} tokens they never do"
    raise LessonError(message, path=GRID_FILE, hint="add positions to axes.tokens, or take the figure off the lesson")


def _tip(rate: float, tokens: int, context: int, fit: str) -> str:
    """What pointing at a point says of it."""
    room = {"fits": "fits", "tight": "leaves no room for a runtime", "no": "does not fit"}[fit]
    return f"{_text('throughput', rate)} tokens/s: {whole(tokens)} at {whole(context)} of context, {room}"


def throughput_by_context(_: Path, grid: Grid) -> Series:
    """Decode throughput against the batch, a line for each context, and whether each point fits the memory."""
    tokens, at, gpu = _tokens(grid), grid.defaults, _gpu(grid, grid.defaults.gpu)
    points: list[Row] = []
    ends: list[Row] = []
    said = []
    for context in sorted({*CONTEXTS, at.context}):
        point = replace(at, phase="decode", tokens=tokens, context=context)
        rates, memory = _pass(grid, point).throughput, _memory(grid, point)
        same: Row = {"context": context, "chosen": context == at.context}
        points += [
            {**same, "x": x, "y": _brief(y), "fits": fit != "no", "memory": fit, "tip": _tip(y, x, context, fit)}
            for x, y, fit in zip(tokens.tolist(), rates, memory, strict=True)
        ]
        ends.append({**same, "x": points[-1]["x"], "y": points[-1]["y"], "text": whole(context)})
        most = max((x for x, fit in zip(tokens.tolist(), memory, strict=True) if fit != "no"), default=0)
        room = f"points up to {whole(most)} fit" if most else "no point fits"
        rate = [_text("throughput", y) for y in (rates[0], rates[-1])]
        said.append(f"{rate[0]} to {rate[1]} at {whole(context)} tokens of context ({room})")
    alt = f"Tokens per second in decode on {article(gpu.label)}, from {tokens[0]} to {whole(tokens[-1])} sequences: "
    sees = "The longer the context, the earlier a larger batch stops helping."
    # a context between two lines has its place between them
    shown = [row["context"] for row in ends]
    contexts = [context for context in grid.axes["context"] if min(shown) <= context <= max(shown)]
    here = _here(replace(at, phase="decode"), "throughput", context=contexts)
    return Series({"points": points, "ends": ends, "here": []}, sees, f"{alt}{_listed(said)}.", here)


def intensity_by_tokens(_: Path, grid: Grid) -> Series:
    """Intensity in decode against tokens: the five matmuls as a band with the gate projection in it, and the others."""
    tokens = _tokens(grid)
    costs = _pass(grid, replace(grid.defaults, phase="decode", tokens=tokens))
    of_matmuls = np.array([_row_of(costs, "arithmetic_intensity", kernel) for kernel in GROUPS["matmuls"]])
    low, high = of_matmuls.min(axis=0), of_matmuls.max(axis=0)
    lines: list[Row] = []
    ends: list[Row] = []
    for kernel, name in (("gate_proj", "matmuls"), ("attention", "attention"), ("elementwise", "elementwise")):
        run = np.broadcast_to(_row_of(costs, "arithmetic_intensity", kernel), tokens.shape)
        lines += [{"kernel": kernel, "x": x, "y": _brief(y)} for x, y in zip(tokens.tolist(), run, strict=True)]
        value = _text("arithmetic_intensity", run[-1])
        if name == "matmuls":
            value = "–".join(_text("arithmetic_intensity", edge[-1]) for edge in (low, high))
        ends.append({"kernel": kernel, "x": lines[-1]["x"], "y": lines[-1]["y"], "text": name, "value": value})
    band = [{"x": x, "low": _brief(a), "high": _brief(b)} for x, a, b in zip(tokens.tolist(), low, high, strict=True)]
    gpus = sorted({_gpu(grid, grid.defaults.gpu), _gpu(grid, BESIDE)}, key=lambda gpu: -gpu.ridge_point)
    ridges = [
        {
            "y": _brief(gpu.ridge_point),
            "text": f"{gpu.label}: ridge at {whole(gpu.ridge_point)}",
            "chosen": gpu.id == grid.defaults.gpu,
        }
        for gpu in gpus
    ]
    last = whole(tokens[-1])
    first = [_text("arithmetic_intensity", value) for value in of_matmuls[:, 0]]
    alt = (
        f"FLOPs per byte in decode. The five matmuls rise from {min(first)} with one token to {ends[0]['value']} with "
        f"{last}; attention stays at {ends[1]['value']} and the elementwise kernels at {ends[2]['value']}. "
        + _sentence(_listed([f"the ridge of the {gpu.label} is at {whole(gpu.ridge_point)}" for gpu in gpus]))
    )
    sees = "Weight matmuls climb with every token; attention over a cache does not move."
    # in decode no intensity depends on the context, and none on the GPU
    here = _here(replace(grid.defaults, phase="decode"), "gate_proj.arithmetic_intensity", free=("context", "gpu"))
    return Series({"lines": lines, "band": band, "ends": ends, "ridges": ridges, "here": []}, sees, alt, here)


def ridges_by_year(root: Path, grid: Grid) -> Series:
    """The ridge of each GPU against its year; one that shares a year with a GPU of the bench is a variant of it."""
    bench = [(gpu.year, gpu.ridge_point, gpu.label) for gpu in grid.gpus.values()]
    past = [(gpu.year, gpu.ridge_point, gpu.label) for gpu in load_history(root)]
    years = {year for year, _, _ in bench}
    variants = [row for row in past if row[0] in years]
    line = sorted([*bench, *(row for row in past if row[0] not in years)])
    rows: list[Row] = []
    for i, (year, ridge, label) in enumerate(line):
        # in a valley, or under its variant, a dot is named below
        beside = [line[j][1] for j in (i - 1, i + 1) if 0 <= j < len(line)]
        low = all(other > ridge for other in beside) or any(w == year and other > ridge for w, other, _ in variants)
        side = "above" if not low else "below" if i else "right"
        rows.append({"x": year, "y": _brief(ridge), "text": label, "value": whole(ridge), "side": side})
    sides: list[Row] = []
    for year, ridge, label in variants:
        twin = next(other for when, other, _ in line if when == year)
        same = {"text": label, "value": whole(ridge), "side": "left"}
        sides.append({"x": year, "y": _brief(ridge), "twin": _brief(twin), **same})
    said = [f"{label} ({year}) {whole(ridge)}" for year, ridge, label in sorted([*line, *variants])]
    down = [label for (_, before, _), (_, after, label) in pairwise(line) if after < before]
    sees = "Ridges have risen" + (f", but not with every product: the {_listed(down)} came back down." if down else ".")
    return Series({"gpus": rows, "variants": sides}, sees, f"FLOPs per byte at the ridge: {_listed(said)}.")


def throughput_by_dtype(_: Path, grid: Grid) -> Series:
    """Decode throughput by dtype of the weights, for one sequence and for a full batch: two panels."""
    bars: list[Row] = []
    panels: list[Row] = []
    gpu, said = _gpu(grid, grid.defaults.gpu), []
    dtypes = [dtype for dtype in WEIGHT_DTYPES if dtype != "w8a8" or gpu.fp8]
    for panel, (tokens, context) in enumerate((ALONE, CROWD)):
        base = replace(grid.defaults, phase="decode", tokens=tokens, context=context)
        points = [replace(base, weights=dtype) for dtype in dtypes]
        rates = [float(_pass(grid, point).throughput) for point in points]
        for row, (dtype, rate, point) in enumerate(zip(dtypes, rates, points, strict=True)):
            bars.append(
                {
                    "panel": panel,
                    "row": row,
                    "text": DTYPE_LABELS[dtype],
                    "part": _brief(rate / max(rates)),
                    "value": _text("throughput", rate),
                    "times": f"{significant(rate / rates[0])}×" if row else "tokens/s",
                    "memory": _memory(grid, point)[0],
                }
            )
        who = "one user" if tokens == 1 else f"{whole(tokens)} users"
        panels.append({"panel": panel, "text": f"{who.capitalize()}, {whole(context)} tokens of context"})
        each = [f"{bar['text']} {bar['value']}" for bar in bars if bar["panel"] == panel]
        said.append(f"{who} at {whole(context)} tokens of context: {_listed(each)}")
    alt = f"Tokens per second in decode on {article(gpu.label)}, by weights. {' '.join(map(_sentence, said))}"
    for memory, words in (("no", "does not fit"), ("tight", "leaves no room for a runtime")):
        names = [bar["text"] for bar in bars if bar["panel"] == 1 and bar["memory"] == memory]
        alt += f" The full batch {words} with {_listed(names)}." if names else ""
    notes = [("no", f"hollow: does not fit one {gpu.label}"), ("tight", "grey: leaves no room for a runtime")]
    keys = [{"text": text} for memory, text in notes if any(bar["memory"] == memory for bar in bars)]
    sees = "Weight-only quantization helps one user and not a full batch."
    return Series({"bars": bars, "panels": panels, "keys": keys}, sees, alt)


def _lengths(grid: Grid, *more: int) -> Any:
    """Whole numbers of tokens so close that a line through them is a curve; the axis' own and `more` among them."""
    last = max(grid.axes["tokens"])
    steps = np.rint(2 ** np.arange(0, np.log2(last), 1 / 6)).astype(int)
    return np.unique(np.concatenate([steps, grid.axes["tokens"], more]).astype(int))


def prompt_time(_: Path, grid: Grid) -> Series:
    """Time of a prefill pass over an empty cache against the length of the prompt, on two GPUs."""
    times: list[Row] = []
    turns: list[Row] = []
    ends: list[Row] = []
    said = []
    for name in (BESIDE, grid.defaults.gpu):
        gpu = _gpu(grid, name)
        point = replace(grid.defaults, phase="prefill", context=0, gpu=name)
        turn = leaves_the_slope(grid, point)
        tokens = _lengths(grid, turn)
        run = _pass(grid, replace(point, tokens=tokens)).total_time
        at_turn = float(_pass(grid, replace(point, tokens=turn)).total_time)
        same: Row = {"gpu": gpu.label, "chosen": name == grid.defaults.gpu}
        times += [{**same, "x": x, "y": _brief(y * 1e3)} for x, y in zip(tokens.tolist(), run, strict=True)]
        turns.append({**same, "x": turn, "y": _brief(at_turn * 1e3), "text": whole(turn)})
        first, last = (join(*show("time", float(run[i]))) for i in (0, -1))
        ends.append({**same, "first": first, "last": last, "x": times[-1]["x"], "y": times[-1]["y"]})
        ends[-1] |= {"x0": times[-len(tokens)]["x"], "y0": times[-len(tokens)]["y"]}
        said.append(
            f"on {article(gpu.label)} {first} for one token, {join(*show('time', at_turn))} for {whole(turn)}, where "
            f"the matmuls leave the slope, and {last} for {whole(tokens[-1])}"
        )
    alt = f"Time of a prefill pass with an empty cache: {'; '.join(said)}."
    sees = "Up to the ridge, a longer prompt is almost free."
    point = replace(grid.defaults, phase="prefill", context=0)
    here = _here(point, "total.time", "\u00a0ms", gpu=[BESIDE, grid.defaults.gpu])
    return Series({"times": times, "turns": turns, "ends": ends, "here": []}, sees, alt, here)


def elementwise_share(_: Path, grid: Grid) -> Series:
    """Share of the elementwise row and of attention in prefill, against tokens in the pass."""
    gpu, point = _gpu(grid, grid.defaults.gpu), replace(grid.defaults, phase="prefill", context=CACHED)
    turn = leaves_the_slope(grid, point)
    tokens = _lengths(grid, turn)
    costs = _pass(grid, replace(point, tokens=tokens))
    lines: list[Row] = []
    names: list[Row] = []
    for kernel in ("elementwise", "attention"):
        share = _row_of(costs, "share", kernel) * 100
        lines += [{"kernel": kernel, "x": x, "y": _brief(y)} for x, y in zip(tokens.tolist(), share, strict=True)]
        # the name stands where the curve has come halfway, on the side that is free
        half = int(np.argmax(share > share.max() / 2))
        last = {"x1": lines[-1]["x"], "y1": lines[-1]["y"], "value": join(_text("share", share[-1] / 100), "%")}
        names.append({"kernel": kernel, "x": int(tokens[half]), "y": _brief(share[half]), "text": kernel, **last})
    small = _row_of(costs, "share", "elementwise")
    first, most = (join(_text("share", share), "%") for share in (small[0], small.max()))
    alt = (
        f"Share of a prefill pass on {article(gpu.label)} behind {whole(CACHED)} cached tokens. The elementwise "
        f"kernels rise from {first} with one token to {most} with {whole(tokens[small.argmax()])} and end at "
        f"{names[0]['value']} with {whole(tokens[-1])}, attention at {names[1]['value']}. "
        f"The matmuls leave the slope at {whole(turn)}."
    )
    sees = "The small kernels' share grows until everything else has reached the roof."
    here = _here(point, "elementwise.share", "\u00a0%")
    return Series({"lines": lines, "names": names, "turn": [{"x": turn}], "here": []}, sees, alt, here)


# Where the plane of two counters parts low from high, of each peak: a unit that idles more than it works is not what
# a pass waits for.
HIGH = 0.5

# x and y: which half of the plane; then its name, and what to do
REGIONS = (
    (0, 1, "compute-bound", ("do fewer FLOPs,", "or buy a bigger GPU")),
    (1, 1, "well fed", ("both in full use,", "close to the ridge")),
    (0, 0, "latency", ("launches, Python,", "a collective, a scheduler:", "not on the roofline")),
    (
        1,
        0,
        "memory-bound",
        ("move fewer bytes:", "smaller dtype, fewer KV", "heads, shorter context;", "or buy bandwidth"),
    ),
)


def two_counters(_: Path, __: Grid) -> Series:
    """The plane of two DCGM counters and its four regions: a drawn explanation, with no data in it."""
    words: list[Row] = []
    for x, y, name, lines in REGIONS:
        words += [{"x": x, "y": y, "line": i, "text": text, "name": i == 0} for i, text in enumerate((name, *lines))]
    full = {"x": BANDWIDTH_EFFICIENCY, "text": f"{BANDWIDTH_EFFICIENCY:g}, in practice full", "high": HIGH}
    sides = {
        (0, 0): "both low",
        (1, 0): "memory high, tensor low",
        (0, 1): "memory low, tensor high",
        (1, 1): "both high",
    }
    said = [_sentence(f"{sides[x, y]}: {name}; {' '.join(lines)}") for x, y, name, lines in REGIONS]
    alt = f"Memory activity to the right, tensor activity upwards, four regions. {' '.join(said)}"
    return Series({"words": words, "full": [full]}, "A pair of counters tells you what your GPU waits for.", alt)


def _modelled(grid: Grid, step: Step) -> dict[str, float]:
    """Seconds of PARTS by the ledger: the rows that were measured, which elementwise wasn't."""
    costs = _pass(grid, step.point)
    rows = {"linear": GROUPS["matmuls"], "attention": ("attention",), "lm_head": ("lm_head",)}
    return {part: float(sum(_row_of(costs, "time", kernel) for kernel in rows[part])) for part in PARTS}


def model_vs_measured(root: Path, grid: Grid) -> Series:
    """Sums of measured kernels beside the ledger's rows, part by part; the one furthest beyond the model first."""
    pairs = [(step, _modelled(grid, step)) for step in load_measured(root, grid)]
    pairs.sort(key=lambda pair: -pair[0].total / sum(pair[1].values()))
    bars: list[Row] = []
    steps: list[Row] = []
    said = []
    for row, (step, model) in enumerate(pairs):
        for which, parts in (("measured", step.time), ("model", model)):
            edges = [0.0, *accumulate(parts[part] * 1e3 for part in PARTS)]
            bars += [
                {"row": row, "which": which, "part": part, "start": _brief(start), "end": _brief(end)}
                for part, (start, end) in zip(PARTS, pairwise(edges), strict=True)
            ]
        gpu, times = grid.gpus[step.point.gpu].label, (step.total, sum(model.values()))
        digits = [_text("time", time) for time in times]
        ratio = f"{significant(times[0] / times[1])}"
        what = f"{whole(step.point.tokens)} × {short_position(step.point.context)}"
        steps.append({"row": row, "gpu": gpu, "text": what, "ratio": f"{ratio}×", "engine": step.engine})
        steps[-1] |= dict(zip(("measured", "model"), digits, strict=True))
        steps[-1] |= {
            f"{which}_end": _brief(time * 1e3) for which, time in zip(("measured", "model"), times, strict=True)
        }
        said.append(f"{gpu} {what}: {digits[0]} and {digits[1]}")
    most = max(max(step.total / sum(model.values()), sum(model.values()) / step.total) for step, model in pairs)
    sees = f"Sums of measured kernels lie on both sides of the model, within a factor of {one_decimal(most)}."
    alt = f"Milliseconds of a decode step, batch × context, measured and by the ledger. {'; '.join(said)}."
    return Series({"bars": bars, "steps": steps}, sees, alt)


SERIES: Mapping[str, Callable[[Path, Grid], Series]] = {
    "throughput-by-context": throughput_by_context,
    "intensity-by-tokens": intensity_by_tokens,
    "ridges-by-year": ridges_by_year,
    "throughput-by-dtype": throughput_by_dtype,
    "prompt-time": prompt_time,
    "elementwise-share": elementwise_share,
    "two-counters": two_counters,
    "model-vs-measured": model_vs_measured,
}
