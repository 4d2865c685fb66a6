"""The roofline of the bench: rows of a pass to an Altair chart.

The logic of the picture lives in its Vega-Lite spec: calculate, filter and joinaggregate transforms and a few
parameters. The drawing of the build and the live one in the browser are therefore the same code, and the client
only replaces the rows of the named datasets and sets parameters.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

import altair as alt

from builder.drawing import Picture, calculate, coloured, dataset, em, expr, in_px, layered
from builder.drawn import FONT, Frame, Frames, Size
from builder.palette import FILLS, INKS, TINTS


class Gpu(TypedDict):
    """One accelerator: peaks in TFLOP/s, bandwidth in TB/s; `fp8_peak` is None without FP8 tensor cores."""

    gpu: str
    label: str
    peak: float
    bandwidth: float
    fp8_peak: float | None


class Kernel(TypedDict):
    """One row of the ledger as a dot: `x` in FLOP/byte (None: no dot), `y` in TFLOP/s, `share` from 0 to 1.

    `memory` is fits, tight or no. A row without `label` has no name in the picture; `sublabel` stands beside or below
    its label, and is the part that goes where there is no room for both. `tip` is said where the reader points.
    """

    kernel: str
    family: str
    x: float | None
    y: float | None
    share: float
    largest: bool
    memory: str
    label: str
    sublabel: str
    tip: str


class TrailPoint(TypedDict):
    """Where a family of kernels stands at one batch; `tokens` is None at the ridge, which is a corner, no position.

    `end` is first or last in the two rows whose place is named by their tokens, else None.
    """

    family: str
    tokens: int | None
    end: Literal["first", "last"] | None
    x: float
    y: float


FRAMES: Frames = {
    "wide": Frame(570, 249, (44, 42, 12, 42)),
    "short": Frame(570, 149, (44, 42, 12, 42)),
    "phone": Frame(234, 246, (44, 42, 12, 42)),
    "strip": Frame(124, 60, (2, 2, 2, 2)),
}


X_LOW, X_HIGH = 0.1, 10_000  # FLOP/byte
Y_LOW, Y_HIGH = 1, 8_000  # TFLOP/s: a trail and names above the FP8 roof of the B200


def roofline(
    colours: Mapping[str, str],
    gpus: Sequence[Gpu],
    kernels: Sequence[Kernel],
    trails: Sequence[TrailPoint],
    gpu: str,
    *,
    arithmetic: Literal["bf16", "fp8"] = "bf16",
    size: Size = "wide",
) -> Picture:
    """The kernels of one pass under the roofs of the GPUs, on logarithmic axes.

    `colours` maps the colour tokens of the theme to hex, `gpu` names the chosen row of `gpus`, `arithmetic` says under
    which of its roofs the matmuls stand. The datasets `kernels` and `trails` and the parameters `gpu`, `arithmetic` and
    `size` are what a client replaces; FRAMES has the width, height and padding that go with a size.
    Raises what `colours` raises where one is unknown; the GPU must have a roof.
    """
    chips = {g["gpu"]: {"bf16": g["peak"], "fp8": g["fp8_peak"], "bandwidth": g["bandwidth"]} for g in gpus}
    assert gpu in chips, f"no roof for {gpu}"
    values = {"gpu": gpu, "arithmetic": arithmetic, "chips": chips, "signs": _signs(gpus)}
    rows = {"kernels": kernels, "trails": trails, "roofs": _roofs(gpus), "ridges": _ridges(gpus)}
    marks = _expected_marks(gpus, kernels, trails, size)
    hidden: Mapping[Size, Sequence[str]] = {"strip": ("names", "labels")}
    key = (tuple(sorted(colours.items())), size)
    if key not in _charts:
        _charts.clear()
        _charts[key] = _chart(colours, size)
    chart = _charts[key]
    return Picture("roofline", chart, rows, marks, FRAMES, hidden=hidden, values=values)


_charts: dict[tuple[tuple[tuple[str, str], ...], Size], alt.TopLevelMixin] = {}  # colours and size → the last chart


def _chart(colours: Mapping[str, str], size: Size) -> alt.TopLevelMixin:
    """The roofline without its rows and values: the same whatever it shows."""
    frame = FRAMES[size]
    left, right, top, bottom = frame.padding
    layers = [
        _ghosts(colours),
        *_log_ticks(colours),
        _ridge(colours),
        *_lanes(colours),
        *_chosen_roofs(colours),
        _under_the_axis(colours),
        _kernels(colours),
    ]
    return layered(
        layers,
        width=frame.width,
        height=frame.height,
        padding={"left": left, "right": right, "top": top, "bottom": bottom},
        autosize="none",
        background=colours["paper"],
        config=alt.Config(aria=False, font=FONT, view=alt.ViewConfig(stroke=None)),
        description="Roofline: attainable TFLOP/s against arithmetic intensity, one dot for each kernel of a pass.",
        params=_parameters(colours, size),
    )


def _expected_marks(
    gpus: Sequence[Gpu], kernels: Sequence[Kernel], trails: Sequence[TrailPoint], size: Size
) -> dict[str, int]:
    """The marks a layer shows at least, by its name; a word counts twice, with its halo."""
    reach: dict[str, list[float]] = {}
    for row in trails:
        reach.setdefault(row["family"], []).append(row["x"])
    text = size != "strip"
    return {
        "ghosts": len(gpus) - 1,
        "roof": 1,
        "lanes": sum(max(xs) >= 1.05 * min(xs) for family, xs in reach.items() if family != "lm_head"),
        "dots": sum(row["x"] is not None for row in kernels),
        "names": 2 if text else 0,  # others give way to the dots and their names
        "labels": 2 if text and any(row["label"] and row["largest"] for row in kernels) else 0,
    }


def _roofs(gpus: Sequence[Gpu]) -> list[dict[str, Any]]:
    """Corners of every roof: where the slope leaves the axis, the ridge, the right edge."""
    rows = []
    for order, gpu in enumerate(gpus):
        for arithmetic, peak in (("bf16", gpu["peak"]), ("fp8", gpu["fp8_peak"])):
            if peak is None:
                continue
            ridge = peak / gpu["bandwidth"]
            corners = ((Y_LOW / gpu["bandwidth"], Y_LOW), (ridge, peak), (X_HIGH, peak))
            same = {"gpu": gpu["gpu"], "arithmetic": arithmetic, "label": gpu["label"], "order": order}
            rows += [{**same, "x": x, "y": y, "peak": peak, "ridge": ridge} for x, y in corners]
    return rows


def _ridges(gpus: Sequence[Gpu]) -> list[dict[str, Any]]:
    """The ridge of every roof, with its name."""
    return [
        {
            "gpu": row["gpu"],
            "arithmetic": row["arithmetic"],
            "x": row["ridge"],
            "y": row["peak"],
            "text": f"ridge {row['ridge']:.0f}",
        }
        for row in _roofs(gpus)
        if row["x"] == row["ridge"]
    ]


def _signs(gpus: Sequence[Gpu]) -> list[dict[str, Any]]:
    """Every roof once, to be named; `level` has the GPUs of all roofs at its height, those of lower ridges first."""
    roofs = sorted((row for row in _roofs(gpus) if row["x"] == X_HIGH), key=lambda row: row["ridge"])
    signs = []
    for roof in roofs:
        level = [row["gpu"] for row in roofs if all(row[key] == roof[key] for key in ("peak", "arithmetic"))]
        named = {key: roof[key] for key in ("gpu", "arithmetic", "label", "peak", "ridge")}
        signs.append({**named, "level": level})
    return signs


def _parameters(colours: Mapping[str, str], size: Size) -> list[alt.VariableParameter]:
    """What a client sets (gpu, arithmetic, size), and what the expressions look up."""
    return [
        *(alt.VariableParameter(name=name) for name in ("gpu", "arithmetic", "chips", "signs")),  # the picture's values
        alt.VariableParameter(name="size", value=size),
        alt.VariableParameter(name="chip", expr="chips[gpu]"),
        # the BF16 roof, which the names of dots stay clear of, in px
        alt.VariableParameter(name="lower", expr=_py("chip.bf16")),
        # area of a dot is its share of the pass; the radius that a whole pass would take
        alt.VariableParameter(name="whole", value={"wide": 24, "short": 18, "phone": 18, "strip": 11}),
        # a lane runs beside the roof, so many px from it
        alt.VariableParameter(name="lane", expr="size == 'strip' ? 3.5 : 4.5"),
        # how steeply a slope climbs in px: one decade of intensity is one decade of FLOP/s
        alt.VariableParameter(name="climb", expr=f"atan2({_py(Y_LOW)} - {_py(10)}, {_px(1)} - {_px(0.1)})"),
        alt.VariableParameter(name="fills", value={kernel: colours[token] for kernel, token in FILLS.items()}),
        alt.VariableParameter(name="tints", value={family: colours[token] for family, token in TINTS.items()}),
        alt.VariableParameter(name="inks", value={family: colours[token] for family, token in INKS.items()}),
    ]


# Expressions. A mark that isn't on the scales is placed in px of the plot, from fields computed beforehand.


def _px(value: object) -> str:
    """Expression: FLOP/byte to px from the left of the plot."""
    return f"(width * log(({value}) / {X_LOW}) / log({X_HIGH / X_LOW:.0f}))"


def _py(value: object) -> str:
    """Expression: TFLOP/s to px from the top of the plot."""
    return f"(height * (1 - log({value}) / log({Y_HIGH})))"


def _field(name: str) -> dict[str, Any]:
    """A field that already holds what the channel shows."""
    return {"field": name, "type": "quantitative", "scale": None}


# Roofs and axes


def _ghosts(colours: Mapping[str, str]) -> alt.Chart:
    """The roofs that aren't chosen, and with them the axes and the grid."""
    axis: dict[str, Any] = {
        "title": None,
        "gridColor": colours["grid"],
        "labelColor": colours["ink3"],
        "labelFont": FONT,
        "labelFontSize": 12,
        "labelPadding": 8,
        "labelOverlap": False,
        "labelFlush": False,
        "ticks": False,
        "domainColor": colours["ink3"],
    }
    short_form = "size == 'phone' && datum.value >= 1000 ? datum.value / 1000 + 'k'"
    x = alt.X(
        "x:Q",
        scale=alt.Scale(type="log", domain=[X_LOW, X_HIGH], nice=False),
        axis=alt.Axis(
            **axis,
            values=expr("size == 'strip' ? [] : [0.1, 1, 10, 100, 1000, 10000]"),
            labelExpr=f"{short_form} : datum.value < 1 ? '0.1' : format(datum.value, ',')",
            domain=True,
            domainOpacity=expr("size == 'strip' ? 0 : 1"),
        ),
    )
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(type="log", domain=[Y_LOW, Y_HIGH], nice=False),
        axis=alt.Axis(
            **axis,
            values=expr("size == 'strip' ? [] : [1, 10, 100, 1000]"),
            labelExpr="format(datum.value, ',')",
            domain=False,
        ),
    )
    chart = dataset("roofs", "ghosts").transform_filter("datum.gpu != gpu && datum.arithmetic == 'bf16'")
    drawn: alt.Chart = chart.mark_line(stroke=colours["ghost"], strokeWidth=1).encode(x=x, y=y, detail="gpu:N")
    return drawn


def _log_ticks(colours: Mapping[str, str]) -> list[alt.Chart]:
    """Ticks of 3 px at 1, 2, 3 … 9 of every decade, outside the plot."""
    ticks = alt.Chart(alt.sequence(0, 46, as_="k")).transform_filter("size != 'strip'")
    ticks = ticks.transform_calculate("value", "(1 + datum.k % 9) * pow(10, floor(datum.k / 9) - 1)")
    rule: dict[str, Any] = {"stroke": colours["ink3"], "strokeWidth": 1}
    along_x = calculate(ticks.properties(name="ticks_x"), {"px": _px("datum.value")})
    along_y = ticks.properties(name="ticks_y").transform_filter(f"datum.value >= {Y_LOW} && datum.value <= {Y_HIGH}")
    along_y = calculate(along_y, {"py": _py("datum.value")})
    return [
        along_x.mark_rule(**rule).encode(
            x=alt.X("px:Q", scale=None, axis=None), y=alt.value(expr("height")), y2=alt.value(expr("height + 3"))
        ),
        along_y.mark_rule(**rule).encode(y=alt.Y("py:Q", scale=None, axis=None), x=alt.value(-3), x2=alt.value(0)),
    ]


def _ridge(colours: Mapping[str, str]) -> alt.Chart:
    """A dotted line from the ridge of the chosen roof down to its name."""
    chart = dataset("ridges", "ridge").transform_filter("datum.gpu == gpu && datum.arithmetic == arithmetic")
    chart = calculate(
        chart, {"px": _px("datum.x"), "py": _py("datum.y"), "foot": "height + (size == 'strip' ? 0 : 22)"}
    )
    rule = chart.mark_rule(stroke=colours["ink2"], strokeWidth=1, strokeDash=[2, 3])
    drawn: alt.Chart = rule.encode(**in_px("px", "py"), y2=alt.Y2("foot:Q"))
    return drawn


def _chosen_roofs(colours: Mapping[str, str]) -> list[alt.Chart]:
    """The roof that the matmuls stand under; when that is the FP8 one, the BF16 one too, thinner."""
    strong = dataset("roofs", "roof").transform_filter("datum.gpu == gpu && datum.arithmetic == arithmetic")
    second = dataset("roofs", "roof_bf16").transform_filter(
        "datum.gpu == gpu && arithmetic == 'fp8' && datum.arithmetic == 'bf16'"
    )
    return [
        chart.mark_line(stroke=colours["ink"], strokeWidth=width, strokeJoin="round").encode(x="x:Q", y="y:Q")
        for chart, width in ((second, 1.25), (strong, 2))
    ]


# Trails: where a family of kernels goes when the batch grows

# Rows may come as the page shows them, rounded: only what lies well past the ridge is on the roof.
_BESIDE = {
    "roofed": "datum.x * chip.bandwidth > datum.y * 1.02",
    # a lane above the roof for the matmuls, below it for attention
    "away": "datum.family == 'attention' ? -lane : lane",
    # unit vector away from the roof; at the ridge the corner of the two lanes
    "dx": "!isValid(datum.tokens) ? tan(climb / 2) : datum.roofed ? 0 : sin(climb)",
    "dy": "!isValid(datum.tokens) || datum.roofed ? 1 : cos(climb)",
    "px": _px(f"min(datum.x, {X_HIGH})"),
    "py": _py("datum.y"),
    "lane_x": "datum.px - datum.away * datum.dx",
    "lane_y": "datum.py - datum.away * datum.dy",
}


def _lanes(colours: Mapping[str, str]) -> list[alt.Chart]:
    """Trails as lanes beside the roof, cut at powers of two, so that the steps are seen to shrink."""
    width = expr("size == 'strip' ? 3.5 : 5")
    trails = dataset("trails").transform_joinaggregate(low="min(x)", high="max(x)", groupby=["family"])
    trails = calculate(trails.transform_filter("datum.high >= 1.05 * datum.low"), _BESIDE)
    lanes = trails.transform_calculate("tint", "tints[datum.family]")
    rest = "datum.family != 'lm_head'"
    drawn = [
        lanes.transform_filter(which)
        .properties(name=name)
        .mark_line(strokeWidth=width, strokeJoin="round", clip=False)
        .encode(**in_px("lane_x", "lane_y"), stroke=coloured("tint", alt.Stroke), detail="family:N")
        for name, which in (("lanes_head", "datum.family == 'lm_head'"), ("lanes", rest))
    ]
    steps = trails.transform_filter(
        f"{rest} && size != 'strip' && isValid(datum.tokens) && datum.tokens > 1 && datum.x < {X_HIGH}"
        " && abs(log(datum.tokens) / LN2 - round(log(datum.tokens) / LN2)) < 1e-6"
    )
    reach = "(datum.away > 0 ? 3 : -3)"
    ends = {
        "near_x": f"datum.lane_x + {reach} * datum.dx",
        "near_y": f"datum.lane_y + {reach} * datum.dy",
        "far_x": f"datum.lane_x - {reach} * datum.dx",
        "far_y": f"datum.lane_y - {reach} * datum.dy",
    }
    notches = calculate(steps, ends).properties(name="notches").mark_rule(stroke=colours["paper"], strokeWidth=1.25)
    return [*drawn, notches.encode(**in_px("near_x", "near_y"), x2=alt.X2("far_x:Q"), y2=alt.Y2("far_y:Q"))]


# Dots

_PLACED = {
    "roofed": "datum.x * chip.bandwidth > datum.y * 1.02",
    "r": "max(3, whole[size] * sqrt(datum.share))",
    # past the right edge its ring still stays clear of the roof's name
    "px": f"datum.x > {X_HIGH} ? width - datum.r - 5 : {_px('datum.x')}",
    "py": _py("datum.y"),
}


def _kernels(colours: Mapping[str, str]) -> alt.LayerChart | alt.FacetChart:
    """Dots, their names, and what gives way to them: one layer, whose rows are placed once for all of it."""
    rows = dataset("kernels").transform_filter("isValid(datum.x) && datum.x > 0")
    # the largest dot on the roof, if there is one, and its left edge
    summit = {
        "middle": "datum.largest && datum.roofed ? datum.px : -1",
        "foot": "datum.largest && datum.roofed ? datum.px - datum.r - 12 : width",
    }
    rows = calculate(rows, {**_PLACED, **summit}).transform_joinaggregate(middle="max(middle)", foot="min(foot)")
    paint = {
        "area": "4 * pow(datum.r, 2)",
        "ringed": "4 * pow(datum.r + 4, 2)",
        "fill": f"datum.memory == 'no' ? '{colours['paper']}' : datum.memory == 'tight' ? tints[datum.family] : "
        "fills[datum.kernel]",
        "outline": f"datum.memory == 'fits' ? '{colours['paper']}' : fills[datum.kernel]",
    }
    rows = calculate(rows, {**_NAMED, **_LAID_OUT, **paint})
    layers = [*_dots(colours), _roof_names(colours), _trail_ends(colours), _labels(colours)]
    # alone in a layer: beside others, Altair would put numbers behind the names of its own
    return layered([layered(layers, data=rows.data, transform=rows.transform)])


def _dots(colours: Mapping[str, str]) -> list[alt.Chart]:
    """Dots by share, the largest first, so that coincident ones nest; hollow where the pass doesn't fit the memory."""
    ring = (
        alt.Chart(name="ring")
        .transform_filter("datum.largest && size != 'strip'")
        .mark_point(opacity=1, fill=colours["paper"], stroke=colours["ink"], strokeWidth=1.5)
        .encode(**in_px("px", "py"), size=alt.Size(**_field("ringed"), legend=None))
    )
    dots = (
        alt.Chart(name="dots")
        .mark_point(opacity=1, strokeWidth=expr("datum.memory == 'fits' ? 1.25 : 2"))
        .encode(
            **in_px("px", "py"),
            size=alt.Size(**_field("area"), legend=None),
            fill=coloured("fill", alt.Fill),
            stroke=coloured("outline", alt.Stroke),
            order=alt.Order("share:Q", sort="descending"),
            tooltip=alt.Tooltip("tip:N"),
        )
    )
    return [ring, dots]


# Words. Every one stands on a halo of paper, 4 px wide.


def _text(chart: alt.Chart, name: str, halo: str | None, *, key: str, x: str, y: str, **mark: Any) -> alt.Chart:
    """A text in its colour (field `colour`), at `x` and `y` px; with a halo every row is drawn twice, paper first.

    `key`, an expression, tells the rows apart: where the rows of a live drawing change, a text is moved, not made anew.
    """
    base: dict[str, Any] = {"font": FONT, "fontSize": 12, "baseline": "middle", **mark}
    if halo is not None:
        chart = chart.transform_calculate("halo", "[true, false]").transform_flatten(["halo"])
        chart = chart.transform_calculate("colour", f"datum.halo ? '{halo}' : datum.colour")
        outline = expr(f"datum.halo ? '{halo}' : null")
        base |= {"stroke": outline, "strokeWidth": expr("datum.halo ? 4 : 1"), "strokeJoin": "round"}
    chart = chart.transform_calculate("key", f"{key} + (datum.halo ? ' halo' : '')")
    drawn: alt.Chart = (
        chart.properties(name=name)
        .mark_text(**base)
        .encode(**in_px(x, y), text=alt.Text("text:N"), fill=coloured("colour", alt.Fill), key=alt.Key("key:N"))
    )
    return drawn


def _under_the_axis(colours: Mapping[str, str]) -> alt.Chart:
    """The title of the axis, and the name of the ridge between its two sides."""
    chart = dataset("ridges").transform_filter("size != 'strip' && datum.gpu == gpu && datum.arithmetic == arithmetic")
    words = {
        "px": _px("datum.x"),
        "part": "size == 'phone' ? [0, 1] : [0, 1, 2, 3]",
    }
    chart = calculate(chart, words).transform_flatten(["part"])
    title = "size == 'phone' ? 'FLOP per byte' : 'FLOP per byte of HBM traffic'"
    parts = {
        "text": f"[{title}, datum.text, 'memory-bound', 'compute-bound'][datum.part]",
        "x_text": "[0, datum.px, datum.px - 35, datum.px + 35][datum.part]",
        "y_text": "height + 33",
        "align": "['left', 'center', 'right', 'left'][datum.part]",
        "colour": f"datum.part == 1 ? '{colours['ink']}' : '{colours['ink2']}'",
    }
    return _text(
        calculate(chart, parts),
        "ridge_name",
        None,
        key="datum.part",
        x="x_text",
        y="y_text",
        align=expr("datum.align"),
        fontWeight=expr("datum.part == 1 ? 'bold' : 'normal'"),
        fontStyle=expr("datum.part > 1 ? 'italic' : 'normal'"),
    )


# A phone has room for the first part of a name.
_NAMED = {
    part: f"!isValid(datum.{part}) ? '' : size == 'phone' ? split(datum.{part}, ', ')[0] : datum.{part}"
    for part in ("label", "sublabel")
}
# The largest dot and those on the slope are named right and below, on the roof the largest below and others above,
# elementwise left. A second part stands beside the first, or below it. All in px.
_LAID_OUT = {
    # on the roof it keeps clear of the largest, where that is to the right
    "limit": "datum.roofed && datum.px < datum.middle ? datum.foot : width",
    "w1": f"{em('datum.label')} * (datum.largest ? 15.3 : 12)",
    "w2": f"{em('datum.sublabel')} * 12",
    # with FP8 arithmetic attention stays under the lower roof, its name too
    "side": "datum.roofed ? (datum.largest ? 'below' : datum.y * 1.001 < chip[arithmetic] ? 'under' : 'above') :"
    " datum.family == 'elementwise' && datum.px - datum.r - 6 - max(datum.w1, datum.w2) > -8 ? 'left' : 'right'",
    "beside": "datum.px + 0.8 * datum.r + 8",
    "under": "datum.py + 0.55 * datum.r + 7",
    "below": "max(datum.py + datum.r, lower) + 16",
    # what stands below the roof stays right of the slope, and goes where there is no room for it
    "slope": f"{_px('chip.bf16 / chip.bandwidth')} - (datum.below + 16 - lower) / tan(climb) + 8",
    "edge": "datum.largest ? width - 6 : datum.limit",
    "alone": "datum.sublabel == '' || datum.side == 'below' && datum.slope + datum.w2 > datum.edge",
    "stacked": "!datum.alone && (datum.side == 'below' || datum.side == 'left' || datum.side == 'right' &&"
    " (datum.beside + datum.w1 + 8 + datum.w2 > width + 38 ||"
    " datum.largest && size != 'short' && datum.under + 24 < height))",
    "w": "datum.stacked ? max(datum.w1, datum.w2) : datum.w1 + (datum.alone ? 0 : 8 + datum.w2)",
    "left": "datum.side == 'right' ? min(datum.beside, width + 38 - datum.w) :"
    " datum.side == 'under' ? min(datum.px + 4, width - datum.w) :"
    " datum.side == 'left' ? datum.px - 0.7 * datum.r - 6 - datum.w :"
    " datum.side == 'above' ? clamp(datum.px - datum.w / 2, 0, datum.edge - datum.w) :"
    # under two roofs attention is named to the right
    " min(max(arithmetic == 'fp8' ? datum.px + datum.r + 4 - datum.w : datum.px - datum.w / 2, datum.slope),"
    " datum.edge - datum.w)",
    "y1": "datum.side == 'right' ?"
    # the lower of two roofs would strike it through
    " (arithmetic == 'fp8' && abs(datum.under - lower) < 10 ? lower + 11 : min(datum.under, height - 9)) :"
    " datum.side == 'below' ? datum.below :"
    " datum.side == 'under' ? datum.py + max(datum.r, 4) + 14 :"
    " datum.side == 'above' ? max(datum.py - max(datum.r, 8) - 9, -5) :"
    " datum.py - 0.5 * datum.r - (datum.stacked ? 23 : 8)",
    "y2": "datum.y1 + (datum.stacked ? (datum.largest ? 16 : 15) : 0)",
}


def _touches(name: str, left: str, right: str, top: str, bottom: str) -> str:
    """Expression: the box given in px touches the name of a dot, `name` being the expression of its row."""
    return (
        f"{name}.label != '' && {left} < {name}.left + {name}.w + 4 && {name}.left - 4 < {right} &&"
        f" {top} < {name}.y2 + 8 && {name}.y1 - 8 < {bottom}"
    )


def _beside_all_dots(field: str, values: str) -> alt.Chart:
    """A row for each of `values`, an expression, as `field`; with it, as `dots`, every kernel and where its name is."""
    every = alt.AggregatedFieldDef(op="values", field="kernel", **{"as": "dots"})
    chart: alt.Chart = alt.Chart().transform_filter("size != 'strip'").transform_aggregate([every])
    return chart.transform_calculate(field, values).transform_flatten([field])


def _free_of_dots(chart: alt.Chart, fields: Sequence[str], always: str = "false") -> alt.Chart:
    """The rows whose text touches none of their `dots`, nor a name of one, and those that stay `always`.

    Fields in px: `x_left`, `w_text`, and `y_text`, its middle; `fields` are those that are needed afterwards.
    """
    box = _touches("datum.dot", "datum.x_left", "datum.x_left + datum.w_text", "datum.y_text - 6", "datum.y_text + 6")
    dot = (
        # past the right edge there is no dot
        "datum.x_left <= width && abs(datum.y_text - datum.dot.py) < datum.dot.r + 10 &&"
        " datum.dot.px + datum.dot.r > datum.x_left - 6 && datum.dot.px - datum.dot.r < datum.x_left + datum.w_text + 6"
    )
    chart = chart.transform_calculate("dot", "datum.dots").transform_flatten(["dot"])
    return (
        chart.transform_calculate("hit", f"!({always}) && ({dot} || {box}) ? 1 : 0")
        .transform_aggregate(hits="max(hit)", groupby=[*fields])
        .transform_filter("datum.hits == 0")
    )


def _roof_names(colours: Mapping[str, str]) -> alt.Chart:
    """Names of the roofs in sight. Those that aren't chosen give way to the dots and their names.

    A name stands at the right end of its roof; names of roofs at one height stand below each other there, or on their
    slopes where the drawing is too low for that.
    """
    names = _beside_all_dots("roof", "signs").transform_filter(
        "datum.roof.arithmetic == 'bf16' || datum.roof.gpu == gpu && arithmetic == 'fp8'"
    )
    place = {
        "chosen": "datum.roof.gpu == gpu && datum.roof.arithmetic == arithmetic",
        # a little above or below the chosen one
        "near": "datum.roof.peak != chip[arithmetic] &&"
        f" abs({_py('datum.roof.peak')} - {_py('chip[arithmetic]')}) < 11",
        # of roofs at one height the chosen one's name comes first, then those of lower ridges
        "line": "datum.roof.gpu == gpu ? 0 : indexof(datum.roof.level, datum.roof.gpu) +"
        " (indexof(datum.roof.level, gpu) > indexof(datum.roof.level, datum.roof.gpu) ? 1 : 0)",
        "end": "datum.line == 0 || size != 'short'",
        # left of its slope when the chosen roof is lower, else right of it, where there is more room
        "before": "!datum.end && datum.roof.peak == chip.bf16 && datum.roof.peak / datum.roof.ridge > chip.bandwidth",
        "anchor": f"datum.end ? {X_HIGH} : datum.roof.ridge * (datum.before ? 0.62 : 0.82)",
        "text": "datum.roof.gpu == gpu && !datum.chosen ? 'BF16' : datum.roof.label",
        "w_text": f"{em('datum.text')} * 12",
        "x_text": f"{_px('datum.anchor')} + (datum.end ? 6 : datum.before ? -5 : 9)",
        "x_left": "datum.x_text - (datum.before ? datum.w_text : 0)",
        "y_text": f"datum.near ? {_py('chip[arithmetic]')} + (datum.roof.peak > chip[arithmetic] ? -13 : 13) :"
        f" datum.end ? {_py('datum.roof.peak')} + 13 * datum.line :"
        f" {_py('datum.roof.peak * datum.anchor / datum.roof.ridge')} + (datum.before ? -4 :"
        " chip[arithmetic] < datum.roof.peak ? -11 : 7)",
        "colour": f"datum.chosen ? '{colours['ink']}' : '{colours['ink3']}'",
    }
    fields = ["text", "x_text", "y_text", "before", "chosen", "colour"]
    return _text(
        _free_of_dots(calculate(names, place), fields, always="datum.roof.gpu == gpu"),
        "names",
        colours["paper"],
        key="datum.text",
        x="x_text",
        y="y_text",
        align=expr("datum.before ? 'right' : 'left'"),
        fontWeight=expr("datum.chosen ? 'bold' : 'normal'"),
    )


def _trail_ends(colours: Mapping[str, str]) -> alt.Chart:
    """What the ends of the trail of the matmuls stand for.

    An end that would touch a dot or its name is dropped, and one for which there is no room above the plot.
    """
    ends = _beside_all_dots("end", "size == 'phone' ? [] : ['first', 'last']")
    trails = alt.LookupData(data=alt.NamedData(name="trails"), key="end", fields=["tokens", "x", "y"])
    ends = ends.transform_lookup(lookup="end", from_=trails).transform_joinaggregate(low="min(x)", high="max(x)")
    ends = ends.transform_filter("isValid(datum.x) && datum.high >= 1.05 * datum.low")
    place = {
        "above": f"datum.end == 'last' && {_BESIDE['roofed']}",
        # format() would put its format together at every position of a slider
        "text": "(datum.tokens < 1000 ? '' : floor(datum.tokens / 1000) + ',') +"
        " (datum.tokens < 1000 ? datum.tokens : slice('00' + datum.tokens % 1000, -3)) +"
        " (datum.tokens == 1 ? ' token' : ' tokens')",
        "w_text": f"{em('datum.text')} * 12",
        "x_left": f"{_px('datum.x')} + (datum.above ? -datum.w_text / 2 : 12)",
        # between the trail and the next roof above, where there is room
        "y_text": f"datum.above ? {_py('datum.y')} - (size == 'short' ? 18 : 12) :"
        f" min({_py('datum.y')} + 13, height - 9)",
        "colour": f"'{colours['ink3']}'",
    }
    ends = calculate(ends, place).transform_filter("datum.y_text >= -6")
    ends = _free_of_dots(ends, ["text", "x_left", "y_text", "colour"])
    return _text(ends, "ends", colours["paper"], key="datum.text", x="x_left", y="y_text", align="left")


def _labels(colours: Mapping[str, str]) -> alt.Chart:
    """Names of the dots in two parts. One that would touch a larger dot or its name is dropped."""
    chart = alt.Chart().transform_filter(
        "datum.label != '' && size != 'strip' && !(size == 'phone' && datum.family == 'elementwise' &&"
        " !datum.largest && datum.share < 0.03)"
    )
    # every label beside every other
    other = "datum.other"
    box = _touches("datum", f"{other}.left", f"{other}.left + {other}.w", f"{other}.y1 - 6", f"{other}.y2 + 6")
    # and beside its dot: a name may begin at its side, where it curves away, not run through its ring
    across, upright = f"0.8 * {other}.r", f"({other}.r + 2)"
    dot = _touches(
        "datum",
        f"{other}.px - {across}",
        f"{other}.px + {across}",
        f"{other}.py - {upright}",
        f"{other}.py + {upright}",
    )
    # shares are rounded: of two that look alike, one may be the largest
    tied = f"{other}.share == datum.share && {other}.kernel < datum.kernel"
    larger = f"!datum.largest && ({other}.largest || {other}.share > datum.share || {tied})"
    chart = (
        chart.transform_joinaggregate([alt.JoinAggregateFieldDef(op="values", field="kernel", **{"as": "other"})])
        .transform_flatten(["other"])
        .transform_calculate("hit", f"{larger} && ({box} || {dot}) ? 1 : 0")
        .transform_joinaggregate(hits="max(hit)", groupby=["kernel"])
        .transform_filter(f"datum.hits == 0 && {other}.kernel == datum.kernel")
    )
    chart = chart.transform_calculate("part", "[0, 1]").transform_flatten(["part"])
    words = {
        "text": "datum.part == 0 ? datum.label : datum.alone || datum.stacked && datum.y2 + 7 > height &&"
        " !datum.roofed ? '' : datum.sublabel",
        "strong": "datum.part == 0 && datum.largest",
        "align": "datum.side == 'left' ? 'right' : (datum.side == 'above' || datum.side == 'below') &&"
        " (datum.stacked || datum.alone) ? 'center' : 'left'",
        # the first part stays as near its dot as the box of both lets it
        "x_text": "datum.align == 'right' ? datum.left + datum.w :"
        # each line for itself: a long second one must not pull the first over the dot
        " datum.align == 'left' && datum.stacked ?"
        " min(datum.beside, width + 38 - (datum.part == 0 ? datum.w1 : datum.w2)) :"
        " datum.align == 'left' ? datum.left + (datum.part == 1 ? datum.w1 + 8 : 0) :"
        " datum.part == 1 ? datum.left + datum.w / 2 :"
        " clamp(datum.px, datum.left + datum.w1 / 2, datum.left + datum.w - datum.w1 / 2)",
        "y_text": "datum.part == 0 ? datum.y1 : datum.y2",
        "colour": f"datum.strong ? inks[datum.family] : '{colours['ink2']}'",
    }
    chart = calculate(chart, words).transform_filter("datum.text != ''")
    return _text(
        chart,
        "labels",
        colours["paper"],
        key="datum.kernel + ' ' + datum.part",
        x="x_text",
        y="y_text",
        align=expr("datum.align"),
        fontSize=expr("datum.strong ? 14 : 12"),
        fontWeight=expr("datum.strong ? 'bold' : 'normal'"),
    )
