"""What every chart shares: sizes, fonts, the kernels' colours, axes, words, and the ring on the bench's point."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import altair as alt

from builder.drawn import FONT, Frame, Frames, Size


@dataclass(frozen=True)
class Picture:
    """A chart of one spec without its rows, the rows of its datasets by name, and its frame at each size.

    `values`: of parameters that the chart only names. A chart that is the same whatever the rows and values may be one
    object for all of them: its spec is made once.

    `marks`: how many marks its named layers show at least, for a wrong field draws a valid, empty chart; `hidden`: the
    layers that a size leaves out. `replaced`: the datasets for which a client brings its own rows.
    """

    name: str
    chart: alt.TopLevelMixin
    data: Mapping[str, Sequence[Mapping[str, Any]]]
    marks: Mapping[str, int]
    frames: Frames
    replaced: tuple[str, ...] = ()
    hidden: Mapping[Size, Sequence[str]] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)


# Rows, expressions, channels


def calculate(chart: alt.Chart, steps: Mapping[str, str]) -> alt.Chart:
    """Rows with a field for each step, in order: a later expression may use an earlier field."""
    for name, expression in steps.items():
        chart = chart.transform_calculate(name, expression)
    return chart


def dataset(rows: str, name: str | None = None) -> alt.Chart:
    """The rows of a named dataset, to become the layer `name`."""
    chart = alt.Chart(alt.NamedData(name=rows))
    return chart.properties(name=name) if name else chart


def em(text: str) -> str:
    """Expression: width of a text in em, for Liberation Sans, good to a few percent."""
    narrow = f"length(replace({text}, regexp('[^fijlrt., \u00a0]', 'g'), ''))"
    broad = f"length(replace({text}, regexp('[^mwMLH%→]', 'g'), ''))"
    return f"(0.55 * length({text}) - 0.29 * {narrow} + 0.27 * {broad})"


def layered(layers: Sequence[alt.Chart | alt.LayerChart | alt.FacetChart], **properties: Any) -> alt.LayerChart:
    """As alt.layer(), of layers that share neither data nor parameters: it would copy each of them four times."""
    chart = alt.LayerChart(**properties)
    chart.layer = list(layers)
    return chart


def in_px(x: str, y: str) -> dict[str, Any]:
    """Encoding of a mark that is placed by two fields in px."""
    return {"x": alt.X(f"{x}:Q", scale=None, axis=None), "y": alt.Y(f"{y}:Q", scale=None, axis=None)}


def coloured(name: str, channel: type[alt.Fill] | type[alt.Stroke]) -> alt.Fill | alt.Stroke:
    """A field that holds a colour."""
    return channel(f"{name}:N", scale=None, legend=None)


def expr(expression: str) -> alt.ExprRef:
    """A Vega expression as the value of a property."""
    return alt.ExprRef(expr=expression)


# Figures in the text

WIDE, PHONE = 536, 320  # px of a whole drawing

Colours = Mapping[str, str]
Rows = Sequence[Mapping[str, Any]]
Data = Mapping[str, Rows]

ONE_ROW = alt.InlineData(values=[{}])  # for what stands in a chart whatever its data


def frames_of(left: int, right: int, height: int, *, phone: tuple[int, int], top: int = 26, bottom: int = 42) -> Frames:
    """Frames of both sizes round a plot of this height; `phone` is its right padding and height there."""
    return {
        "wide": Frame(WIDE - left - right, height, (left, right, top, bottom)),
        "phone": Frame(PHONE - left - phone[0], phone[1], (left, phone[0], top, bottom)),
    }


def figure_of(
    name: str,
    colours: Colours,
    data: Data,
    layers: Sequence[alt.Chart],
    frames: Frames,
    marks: Mapping[str, int],
    title: str,
) -> Picture:
    """The layers as one Picture in the look of the lesson. A dataset `here` is the client's."""
    left, right, top, bottom = frames["wide"].padding
    text: dict[str, Any] = {"labelFont": FONT, "labelFontSize": 12, "titleFont": FONT, "titleFontSize": 12}
    axis = alt.AxisConfig(
        **text,
        titleFontWeight="normal",
        titleColor=colours["ink2"],
        labelColor=colours["ink3"],
        gridColor=colours["grid"],
        domainColor=colours["ink3"],
        tickColor=colours["ink3"],
        tickSize=4,
        labelOverlap=False,
        labelFlush=False,
    )
    chart = layered(
        layers,
        width=frames["wide"].width,
        height=frames["wide"].height,
        padding={"left": left, "right": right, "top": top, "bottom": bottom},
        autosize="none",
        background=colours["paper"],
        config=alt.Config(aria=False, font=FONT, view=alt.ViewConfig(stroke=None), axis=axis),
        description=title,
        params=[alt.VariableParameter(name="size", value="wide")],
    )
    return Picture(name, chart, data, marks, frames, ("here",) if "here" in data else ())


def log_x(data: Rows, title: str) -> alt.X:
    """Tokens on a logarithmic axis, named at every second power of two."""
    last = max(row["x"] for row in data)
    return alt.X(
        "x:Q",
        scale=alt.Scale(type="log", base=2, domain=[1, last], nice=False),
        axis=axis_below(title, [4**k for k in range(16) if 4**k <= last]),
    )


def axis_below(title: str, ticks: Sequence[float], named: str = "") -> alt.Axis:
    """A horizontal axis, its title below its beginning. `named`: the start of an expression, for ticks with a name."""
    return alt.Axis(
        title=title,
        titleAnchor="start",
        titleAlign="left",
        titlePadding=8,
        grid=False,
        values=list(ticks),
        labelExpr=f"{named}format(datum.value, ',')",
    )


def level_y(
    title: str, left: int, domain: Sequence[float], ticks: Sequence[float], kind: Literal["log", "linear"]
) -> alt.Y:
    """A vertical axis without a line, its title above it, level."""
    return alt.Y(
        "y:Q",
        scale=alt.Scale(type=kind, domain=list(domain), nice=False, zero=False),
        axis=alt.Axis(
            title=title,
            titleAngle=0,
            titleAlign="left",
            titleBaseline="bottom",
            titleAnchor="end",
            titleX=-left,
            titleY=-13,
            domain=False,
            ticks=False,
            labelPadding=8,
            values=list(ticks),
            labelExpr="format(datum.value, ',')",
        ),
    )


def decades(low: float, high: float) -> list[float]:
    """Powers of ten within a domain."""
    return [10.0**k if k < 0 else 10**k for k in range(-3, 8) if low <= 10.0**k <= high]


def multiples(top: float, step: int) -> range:
    """Multiples of a step from 0 to the top; of a round larger one, where there would be more than a dozen."""
    factors = itertools.cycle((2.0, 2.5, 2.0))
    while top > 12 * step:
        step = int(step * next(factors))
    return range(0, int(top) + 1, step)


def written(
    rows: alt.Chart,
    colour: str | alt.ExprRef,
    x: str | None = "x",
    y: str | None = "y",
    *,
    field: str = "text",
    **mark: Any,
) -> alt.Chart:
    """A text of every row, from its `field`, in one colour, at two of its fields on the scales.

    Without `x` or `y` the caller encodes the place. `mark` holds properties of the mark.
    """
    base: dict[str, Any] = {"font": FONT, "fontSize": 12, "baseline": "middle", "align": "left", "fill": colour, **mark}
    place: dict[str, Any] = {"x": alt.X(f"{x}:Q")} if x else {}
    place |= {"y": alt.Y(f"{y}:Q")} if y else {}
    drawn: alt.Chart = rows.mark_text(**base).encode(text=alt.Text(f"{field}:N"), **place)
    return drawn


def line_look(colours: Colours) -> tuple[dict[str, str], dict[str, Any]]:
    """(fields to calculate, encoding that takes them): lines in ink, 2.25, where chosen, others in ink3, 1.25."""
    fields = {
        "colour": f"datum.chosen ? '{colours['ink']}' : '{colours['ink3']}'",
        "weight": "datum.chosen ? 2.25 : 1.25",
    }
    weight = alt.StrokeWidth("weight:Q", scale=None, legend=None)
    return fields, {"stroke": coloured("colour", alt.Stroke), "strokeWidth": weight}


def by_choice(colours: Colours) -> alt.ExprRef:
    """Ink for the chosen series, ink3 for the others."""
    return expr(f"datum.chosen ? '{colours['ink']}' : '{colours['ink3']}'")


def bold() -> alt.ExprRef:
    """Bold for the chosen series."""
    return expr("datum.chosen ? 'bold' : 'normal'")


def here(colours: Colours, last: float, beside: float = 0, level: float = 0) -> list[alt.Chart]:
    """The point on the bench, once the client says where it is: an amber ring, and its label in bold below.

    The client's rows hold x, y and label, the number as the bench shows it; where there is room, words follow. At the
    end of the axis, where a line has its name and perhaps a word below it, the label stands so many px lower: `beside`.
    Up to x = `level`, where another line lies close below, it stands at the height of the ring.
    """
    ring = dataset("here", "here").mark_point(
        size=196, opacity=1, filled=False, stroke=colours["markline"], strokeWidth=2.5
    )
    # to the right, below a line that climbs, as long as there is room
    room = f"width * (1 - log(datum.x) / log({last})) + 46 > 12.6 * {em('datum.text')}"
    label = dataset("here", "here_label").transform_calculate(
        "text", "datum.label + (size == 'wide' ? ' on the bench now' : '')"
    )
    label = label.transform_calculate("halo", "[true, false]").transform_flatten(["halo"])
    text = written(
        label,
        expr(f"datum.halo ? '{colours['paper']}' : '{colours['ink']}'"),
        dy=expr(f"datum.x <= {level:g} ? 3 : datum.x > 0.9 * {last} ? {20 + beside:g} : 20"),
        fontWeight="bold",
        dx=expr(f"datum.x <= {level:g} ? 18 : {room} ? -7 : 0"),
        align=expr(f"{room} ? 'left' : 'right'"),
        stroke=expr(f"datum.halo ? '{colours['paper']}' : null"),
        strokeWidth=expr("datum.halo ? 4 : 1"),
        strokeJoin="round",
    )
    return [ring.encode(x=alt.X("x:Q"), y=alt.Y("y:Q")), text]


def axis_of(channel: alt.Y) -> dict[str, Any]:
    """Scale and axis of a channel, for another field."""
    return {"scale": channel["scale"], "axis": channel["axis"]}
