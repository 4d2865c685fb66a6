"""A comparison as one SVG that stands by itself: two panels, one above the other, in the look of the lesson's figures.

Passes: measured ÷ model, and the plane of two counters. Kernels: that plane, and the roofline where the export has
FLOPs and bytes. Names stand where there is room for them; the table has them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, floor, hypot, log, log10, sqrt
from typing import Any, Literal
from xml.etree import ElementTree

import altair as alt

from builder.catalog import Gpu
from builder.compare import AGREEMENT, Compared, Placed
from builder.compare_report import cut, longest_first, many
from builder.display import article
from builder.drawing import (
    ONE_ROW,
    Colours,
    Picture,
    axis_below,
    calculate,
    dataset,
    expr,
    figure_of,
    in_px,
    level_y,
    written,
)
from builder.drawn import FONT, Frame, Frames
from builder.figures import compiled, resized, specification
from builder.labels import Box, Dot, Label, along, beside, width_of
from builder.nsight import short_name
from builder.roofline import BANDWIDTH_EFFICIENCY
from builder.series import HIGH, REGIONS
from builder.svg import draw
from builder.units import percent, significant, whole

WIDTH = 720  # px of the whole drawing
NAMED = 8  # kernels with a name in the picture, those that took longest
MOST_ROWS = 24  # passes that the upper panel shows
_NAME_WIDTH, _LABEL_WIDTH = 26, 54  # letters of a kernel's name, and of a pass'
_SAME = 10  # px: dots that are nearer are one to the eye
_TOGETHER = 5  # numbers that such dots are called by
_EDGE = 1.2  # of a peak: what is further is drawn there, and the table says where it is
_HEAD, _BETWEEN, _MARGIN = 26, 22, 16  # px above a panel for its heading, between panels, and round all


Under = tuple[alt.Chart, str, list[dict[str, Any]]]  # a layer, the name of its dataset, and its rows


@dataclass(frozen=True)
class _Scale:
    """Values to px of a plot, y downwards: linear or logarithmic on both axes."""

    frame: Frame
    x: tuple[float, float]
    y: tuple[float, float]
    kind: Literal["linear", "log"]

    def _part(self, value: float, domain: tuple[float, float]) -> float:
        low, high = domain
        value = min(max(value, low), high)
        if self.kind == "log":
            return log(value / low) / log(high / low)
        return (value - low) / (high - low)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """px of a point; what lies outside stands on the edge."""
        return self.frame.width * self._part(x, self.x), self.frame.height * (1 - self._part(y, self.y))


@dataclass(frozen=True)
class _Point:
    """What is drawn of a pass or of a kernel: its place, its radius in px, its number in the table, and its name.

    name: None where it is not to be named; empty where its number says enough. hollow: an exception.
    """

    x: float
    y: float
    r: float
    number: int
    name: str | None
    hollow: bool = False


def _dots_of(placed: Sequence[tuple[float, float, _Point]]) -> list[Dot]:
    """Dots in px with what they may be called: those that coincide are one, and named by the first of them."""
    groups: list[list[tuple[float, float, _Point]]] = []
    for x, y, point in placed:
        near = (group for group in groups if hypot(group[0][0] - x, group[0][1] - y) < _SAME)
        group = next(near, None)
        if group is None:
            groups.append([(x, y, point)])
        else:
            group.append((x, y, point))
    dots = []
    for group in groups:
        x, y = (sum(part) / len(group) for part in ([x for x, _, _ in group], [y for _, y, _ in group]))
        r = max(hypot(at_x - x, at_y - y) + point.r for at_x, at_y, point in group)
        dots.append(Dot(x, y, r, _called([point for _, _, point in group])))
    return dots


def _called(group: Sequence[_Point]) -> list[str]:
    """What dots in one place may be called, the longest first; nothing where none of them is to be named."""
    named = [point for point in group if point.name is not None]
    if not named:
        return []
    numbers = [f"{point.number}" for point in group[:_TOGETHER]]
    rest = f" and {len(group) - _TOGETHER} more" if len(group) > _TOGETHER else ""
    first, others = numbers[0], "".join(f", {number}" for number in numbers[1:]) + rest
    return list(dict.fromkeys([f"{first} {group[0].name or ''}".strip() + others, first + others, first]))


def _frames(height: int, left: int, right: int, top: int, bottom: int) -> Frames:
    return {"wide": Frame(WIDTH - 2 * _MARGIN - left - right, height, (left, right, top, bottom))}


def _level_x(title: str, domain: Sequence[float], ticks: Sequence[float], kind: Literal["log", "linear"]) -> alt.X:
    """A horizontal axis, its title below its beginning; the lesson's full bandwidth is named."""
    full = 100 * BANDWIDTH_EFFICIENCY
    named = f"datum.value == {full} ? '{full:g}, in practice full' : " if kind == "linear" else ""
    return alt.X(
        "x:Q",
        scale=alt.Scale(type=kind, domain=list(domain), nice=False, zero=False),
        axis=axis_below(title, ticks, named),
    )


def _dots(colours: Colours) -> alt.Chart:
    """Dots in ink, the largest first; hollow ones are the exceptions."""
    look = {"fill": f"datum.hollow ? '{colours['paper']}' : '{colours['ink']}'", "area": "4 * datum.r * datum.r"}
    chart = calculate(dataset("dots", "dots"), look)
    drawn: alt.Chart = chart.mark_point(
        opacity=1,
        fill=expr(look["fill"]),
        stroke=expr(f"datum.hollow ? '{colours['ink']}' : '{colours['paper']}'"),
        strokeWidth=expr("datum.hollow ? 1.75 : 1.25"),
    ).encode(
        **in_px("px", "py"),
        size=alt.Size("area:Q", scale=None, legend=None),
        order=alt.Order("r:Q", sort="descending"),
    )
    return drawn


def _texts(rows: str, colours: Colours, colour: str, **mark: Any) -> alt.Chart:
    """Texts of a dataset at px and py, each drawn twice, on a halo of paper first."""
    chart = dataset(rows, rows).transform_calculate("halo", "[true, false]").transform_flatten(["halo"])
    paper = colours["paper"]
    text = written(
        chart,
        expr(f"datum.halo ? '{paper}' : '{colours[colour]}'"),
        None,
        None,
        align=expr("datum.align"),
        stroke=expr(f"datum.halo ? '{paper}' : null"),
        strokeWidth=expr("datum.halo ? 4 : 1"),
        strokeJoin="round",
        **mark,
    )
    drawn: alt.Chart = text.encode(**in_px("px", "py"))
    return drawn


def _row(label: Label) -> dict[str, Any]:
    return {"text": label.text, "px": label.x, "py": label.y, "align": label.align}


def _scattered(
    name: str,
    title: str,
    colours: Colours,
    scale: _Scale,
    axes: tuple[alt.X, alt.Y],
    points: Sequence[_Point],
    under: Sequence[Under],
    corners: Sequence[Sequence[Label]],
    lines: Sequence[tuple[float, float, float, float]],
) -> Picture:
    """Dots with their names over what stands `under` them: (layer, its dataset, its rows).

    corners: words of the plot, each with the places that it may take: the one that touches least. lines:
    ends in px of what no name should stand on.
    """
    placed = [(*scale.at(point.x, point.y), point) for point in points]
    dots = _dots_of(placed)
    room = Box(2, -6, scale.frame.width + scale.frame.padding[1], scale.frame.height - 2)
    ruled = [box for line in lines for box in along(*line)]
    names = [label for label in beside(dots, ruled, room) if label]
    words: list[Label] = []
    for places in corners:
        texts, other = [label.box for label in (*names, *words)], [*ruled, *(dot.box for dot in dots)]
        words.append(min(places, key=lambda word: (word.box.count(texts), word.box.count(other))))
    rows = [{"px": x, "py": y, "r": point.r, "hollow": point.hollow} for x, y, point in placed]
    axis_x, axis_y = axes
    ground = alt.Chart(alt.InlineData(values=[{"x": scale.x[0], "y": scale.y[0]}]), name="ground")
    layers = [
        # carries the axes, and shows nothing
        ground.mark_point(opacity=0, size=0, stroke=colours["paper"]).encode(x=axis_x, y=axis_y),
        *(layer for layer, _, _ in under),
        _texts("words", colours, "ink3", fontStyle="italic"),
        _dots(colours),
        _texts("names", colours, "ink"),
    ]
    data: dict[str, list[Any]] = {
        "dots": rows,
        "words": [_row(word) for word in words],
        "names": [_row(label) for label in names],
    }
    data |= {key: more for _, key, more in under}
    marks = {"dots": len(rows), "words": 2 * len(words), "names": 2 * len(names)}
    marks |= {key: len(more) for _, key, more in under}
    return figure_of(name, colours, data, layers, {"wide": scale.frame}, marks, title)


# The plane of two counters


def _plane(colours: Colours, points: Sequence[_Point], x_title: str, y_title: str) -> Picture:
    """Two fractions of peak against each other, in per cent, in the four regions of the lesson's figure."""
    reach = max([1.0, *(value for point in points for value in (point.x, point.y))])
    top = 100.0 if reach <= 1 else 100 * _EDGE
    frame = _frames(300, 34, 16, 24, 42)["wide"]
    scale = _Scale(frame, (0, top), (0, top), "linear")
    half, full = 100 * HIGH, 100 * BANDWIDTH_EFFICIENCY
    axes = (
        _level_x(x_title, scale.x, [0, half, full, 100], "linear"),
        level_y(y_title, frame.padding[0], scale.y, [0, half, 100], "linear"),
    )
    across, height = scale.at(half, half)
    lines = [(across, 0.0, across, float(frame.height)), (0.0, height, float(frame.width), height)]
    if top > 100:
        # nothing can be beyond: what is, is a number to check
        lines += [(end, 0.0, end, float(frame.height)) for end, _ in [scale.at(100, 0)]]
    ends = [dict(zip(("px", "py", "qx", "qy"), line, strict=True)) for line in lines]
    dashes = dataset("lines", "lines").mark_rule(stroke=colours["ghost"], strokeDash=[2, 3])
    drawn = dashes.encode(**in_px("px", "py"), x2=alt.X2("qx:Q"), y2=alt.Y2("qy:Q"))
    edge = alt.Chart(ONE_ROW, name="edge").mark_rule(stroke=colours["ink3"])
    edge = edge.encode(x=alt.value(0), y=alt.value(0), y2=alt.value(frame.height))
    edges = ((0.0, across), (across, float(frame.width)))
    levels = ((frame.height - 12.0, height + 12), (12.0, height - 12))
    corners = [
        [
            Label(name, edges[x][0] + 8 + part * (edges[x][1] - edges[x][0] - 16 - width_of(name)), level, "left")
            for level in levels[y]
            for part in (x, 1 - x, 0.5)
        ]
        for x, y, name, _ in REGIONS
    ]
    percents = [replace(point, x=point.x * 100, y=point.y * 100) for point in points]
    under: list[Under] = [(drawn, "lines", ends), (edge, "edge", [{}])]
    return _scattered("plane", "Two counters", colours, scale, axes, percents, under, corners, lines)


# Measured ÷ model


def _ratios(colours: Colours, compared: Sequence[Compared]) -> Picture:
    """A row for each pass: its name, and its ratio in the band of agreement."""
    shown = compared[:MOST_ROWS]
    ratios = [each.ratio for each in shown]
    edge = max(2 * AGREEMENT, *(max(ratio, 1 / ratio) for ratio in ratios)) * 1.15
    edge = min(edge, 100.0)
    step = 22
    frame = _frames(step * len(shown), 372, 56, 2, 24)["wide"]
    scale = _Scale(frame, (1 / edge, edge), (1, 10), "log")

    def px(ratio: float) -> float:
        return scale.at(ratio, 1)[0]

    rows = []
    for index, each in enumerate(shown):
        what = each.measured.label + (f", {each.measured.name}" if each.measured.name else "")
        rows.append(
            {
                "px": px(each.ratio),
                "py": step * (index + 0.5),
                "r": 4.5,
                "hollow": not each.agrees,
                "number": f"{index + 1}",
                "text": what if len(what) <= _LABEL_WIDTH else f"{what[: _LABEL_WIDTH - 1]}…",
                "value": f"{significant(each.ratio)}×",
            }
        )
    known = (0.2, 0.5, 1, 2, 5) if edge < 10 else (0.01, 0.1, 1, 10, 100)
    ticks = [tick for tick in known if 1 / edge <= tick <= edge]
    band = [{"px": px(1 / AGREEMENT), "qx": px(AGREEMENT), "py": 0.0, "qy": float(frame.height)}]
    lines = [{"px": px(tick), "bold": tick == 1, "text": f"{tick:g}×"} for tick in ticks]

    def label(name: str, field: str, x: float, colour: str, **mark: Any) -> alt.Chart:
        chart = dataset("dots", name).transform_calculate("at", str(x))
        drawn: alt.Chart = written(chart, colours[colour], None, None, field=field, **mark)
        return drawn.encode(**in_px("at", "py"))

    tint = dataset("band", "band").mark_rect(fill=colours["grid"], opacity=1)
    rules = dataset("ticks", "ticks").mark_rule(
        stroke=expr(f"datum.bold ? '{colours['ink2']}' : '{colours['rule']}'"), strokeWidth=1
    )
    left = -frame.padding[0]
    layers = [
        tint.encode(**in_px("px", "py"), x2=alt.X2("qx:Q"), y2=alt.Y2("qy:Q")),
        rules.encode(x=alt.X("px:Q", scale=None, axis=None), y=alt.value(0), y2=alt.value(frame.height)),
        written(dataset("ticks", "tick_names"), colours["ink3"], None, None, align="center").encode(
            x=alt.X("px:Q", scale=None, axis=None), y=alt.value(frame.height + 13)
        ),
        _dots(colours),
        label("numbers", "number", left + 16, "ink3", align="right"),
        label("labels", "text", left + 26, "ink"),
        label("values", "value", frame.width + frame.padding[1], "ink", align="right", fontWeight="bold"),
    ]
    many = len(rows)
    marks = {"band": 1, "ticks": len(ticks), "tick_names": len(ticks)}
    marks |= dict.fromkeys(("dots", "numbers", "labels", "values"), many)
    data: dict[str, list[dict[str, Any]]] = {"dots": rows, "band": band, "ticks": lines}
    return figure_of("ratios", colours, data, layers, {"wide": frame}, marks, "Measured by model")


# The roofline of a reader's kernels


def _decade(value: float, up: bool) -> float:
    """The power of ten at or beyond a value."""
    return float(10.0 ** (ceil(log10(value) - 1e-9) if up else floor(log10(value) + 1e-9)))


def _roofline(colours: Colours, placed: Sequence[Placed], gpu: Gpu, points: Sequence[_Point]) -> Picture:
    """What the kernels reached, in TFLOP/s, under the roof of their GPU."""
    fp8 = gpu.fp8 is not None and any(each.profile.math == "fp8" for each in placed)
    peaks = [("BF16", gpu.peak_flops / 1e12)]
    if fp8 and gpu.peak_flops_fp8:
        peaks.append(("FP8", gpu.peak_flops_fp8 / 1e12))
    bandwidth, top = gpu.hbm_bandwidth / 1e12, max(peak for _, peak in peaks)
    xs, ys = [point.x for point in points], [point.y for point in points]
    x = (max(_decade(min(*xs, 1.0), False), 1e-4), min(_decade(max(*xs, 1000.0), True), 1e7))
    y = (max(_decade(min(*ys, 1.0), False), 1e-5), _decade(max(*ys, top), True))
    frame = _frames(290, 46, 16, 24, 42)["wide"]
    scale = _Scale(frame, x, y, "log")

    def powers(domain: tuple[float, float]) -> list[float]:
        low, high = (round(log10(end)) for end in domain)
        return [10.0**k for k in range(low, high + 1)]

    axes = (
        _level_x("FLOP per byte of DRAM traffic", x, powers(x), "log"),
        # the lowest would touch the first of the other axis
        level_y("TFLOP/s reached", frame.padding[0], y, powers(y)[1:], "log"),
    )
    roofs: list[dict[str, Any]] = []
    ridges: list[dict[str, Any]] = []
    words, lines = [], []
    for kind, peak in peaks:
        ridge = peak / bandwidth
        foot = max(x[0], y[0] / bandwidth)
        corners = [scale.at(foot, foot * bandwidth), scale.at(ridge, peak), scale.at(x[1], peak)]
        roofs += [{"kind": kind, "step": i, "px": px, "py": py} for i, (px, py) in enumerate(corners)]
        across, height = corners[1]
        ridges.append({"px": across, "py": height, "qy": float(frame.height)})
        lines += [(*start, *end) for start, end in pairwise(corners)]
        lines.append((across, height, across, float(frame.height)))
        name = f"{gpu.label}{f', {kind}' if len(peaks) > 1 else ''}: {whole(peak)} TFLOP/s"
        over = height - 11
        words.append(
            [
                Label(name, frame.width - 4.0, over, "right"),
                Label(name, across, over, "left"),
                Label(name, across - 12, over, "right"),
            ]
        )
        called = f"ridge {whole(ridge)}"
        low = frame.height - 12.0
        feet = ((low, 6.0, "left"), (low, -6.0, "right"), (low - 18, 6.0, "left"), (low - 18, -6.0, "right"))
        words.append([Label(called, across + aside, y, align) for y, aside, align in feet])
    roof = dataset("roofs", "roofs").mark_line(stroke=colours["ink"], strokeWidth=2, strokeJoin="round")
    foot_rule = dataset("ridges", "ridges").mark_rule(stroke=colours["ink2"], strokeDash=[2, 3])
    under: list[Under] = [
        (roof.encode(**in_px("px", "py"), detail="kind:N", order="step:O"), "roofs", roofs),
        (foot_rule.encode(**in_px("px", "py"), y2=alt.Y2("qy:Q")), "ridges", ridges),
    ]
    picture = _scattered("roofline", "Roofline", colours, scale, axes, points, under, words, lines)
    return replace(picture, marks={**picture.marks, "roofs": len(peaks)})


# Both panels as one drawing


def _stacked(panels: Sequence[tuple[str, Picture]], label: str, colours: Colours) -> str:
    """The SVG of panels below each other, each under its heading, on paper."""
    height = _MARGIN
    root = ElementTree.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "aria-label": label})
    paper = ElementTree.SubElement(root, "rect", {"width": "100%", "height": "100%", "fill": colours["paper"]})
    for heading, picture in panels:
        height += _BETWEEN if paper is not root[-1] else 0
        words = {"transform": f"translate({_MARGIN},{height + 14})", "font-size": "14px", "font-weight": "bold"}
        text = ElementTree.SubElement(root, "text", {**words, "fill": colours["ink"]})
        text.text = heading
        height += _HEAD
        vega = resized(compiled(specification(picture)), "wide", picture.frames)
        drawn = ElementTree.fromstring(
            draw(vega, name=picture.name, variant="wide", label=heading, marks=picture.marks)
        )
        panel = ElementTree.SubElement(root, "g", {"transform": f"translate({_MARGIN},{height})"})
        panel.extend(list(drawn))
        height += picture.frames["wide"].total[1]
    height += _MARGIN
    root.attrib |= {"width": f"{WIDTH}", "height": f"{height}", "viewBox": f"0 0 {WIDTH} {height}", "font-family": FONT}
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _percent(value: float | None) -> str:
    return f"{percent((value or 0) * 100)} %"


def measurements(compared: Sequence[Compared], colours: Colours) -> str:
    """SVG of measured passes: ratios, and the plane of their shares of peak. The numbers are those of the table."""
    points = []
    for index, each in enumerate(compared, start=1):
        memory, compute = each.shares
        beyond = f"at {percent(max(memory, compute) * 100)} %" if max(memory, compute) > _EDGE else ""
        points.append(_Point(memory, compute, 4.5, index, beyond, not each.agrees))
    counted = all(each.measured_bound for each in compared)
    said = [
        f"{each.measured.label}: {significant(each.ratio)} times the model, {each.region.name}"
        for each in compared[:MOST_ROWS]
    ]
    agreeing = sum(each.agrees for each in compared)
    label = f"Measured ÷ model, {agreeing} of {len(compared)} agree. {'; '.join(said)}."
    more = len(compared) - MOST_ROWS
    heading = "Measured time ÷ the ledger's" + (f", the first {MOST_ROWS} of {len(compared)}" if more > 0 else "")
    titles = ("memory active, % of peak bandwidth", "tensor active, % of peak issue")
    if not counted:
        ledgers = "the ledger's {} in the measured time, % of peak"
        titles = (ledgers.format("bytes"), ledgers.format("FLOPs"))
    panels = [
        (f"{heading}; hollow does not agree", _ratios(colours, compared)),
        ("What the GPU waits for", _plane(colours, points, *titles)),
    ]
    return _stacked(panels, label, colours)


def kernels(placed: Sequence[Placed], gpu: Gpu, colours: Colours) -> str:
    """SVG of kernels: the plane of their counters, and the roofline of those with FLOPs, bytes and time.

    The area of a dot is its share of the time; the NAMED longest are named. A kernel without both counters is in the
    table alone.
    """
    order = longest_first(placed)
    numbers = {id(each): number for number, each in enumerate(order, start=1)}

    def dot(each: Placed, x: float | None, y: float | None) -> _Point:
        number = numbers[id(each)]
        name = cut(short_name(each.profile.name), _NAME_WIDTH) if number <= NAMED else None
        return _Point(x or 0.0, y or 0.0, max(3.0, 22 * sqrt(each.share or 0)), number, name)

    on_plane = [each for each in order if each.region]
    plane = [dot(each, each.profile.memory, each.profile.compute) for each in on_plane]
    titles = ("Memory Throughput, % of peak", "Compute (SM) Throughput, % of peak")
    timed = any(each.share for each in order)
    area = ", the larger the dot the more time" if timed else ""
    panels = [(f"What each kernel waits for{area}", _plane(colours, plane, *titles))]
    roofed = [each for each in order if each.arithmetic_intensity and each.achieved_flops]
    if roofed:
        points = [dot(each, each.arithmetic_intensity, (each.achieved_flops or 0) / 1e12) for each in roofed]
        panels.append((f"Under the roof of {article(gpu.name)}", _roofline(colours, roofed, gpu, points)))
    said = [
        f"{short_name(each.profile.name)}: memory {_percent(each.profile.memory)}, compute "
        f"{_percent(each.profile.compute)}, {each.region.name if each.region else ''}"
        for each in on_plane[:NAMED]
    ]
    first = "The longest first" if timed else "In their order"
    count = many(len(placed), "kernel", "kernels")
    label = f"{count} by two counters, {len(roofed)} on the roofline. {first}: {'; '.join(said)}."
    return _stacked(panels, label, colours)
