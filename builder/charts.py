"""Rows to Altair charts: the figures in the text, one function a figure, in the order of the lesson.

Each is one spec for both of its sizes; what a size changes hangs on the parameter `size`.
"""

from collections.abc import Callable, Mapping
from typing import Any

import altair as alt

from builder.bench_chart import FRAMES as FRAMES
from builder.drawing import (
    ONE_ROW,
    PHONE,
    WIDE,
    Colours,
    Data,
    Picture,
    axis_of,
    bold,
    by_choice,
    calculate,
    coloured,
    dataset,
    decades,
    em,
    expr,
    figure_of,
    frames_of,
    here,
    in_px,
    level_y,
    line_look,
    log_x,
    multiples,
    written,
)
from builder.drawn import Frame, Frames
from builder.palette import FILLS, INKS, TINTS


def throughput_by_context(colours: Colours, data: Data) -> Picture:
    """Tokens per second against the batch, a line for each context; solid and filled where the point fits."""
    points, ends = data["points"], data["ends"]
    last = max(row["x"] for row in points)
    domain = (min(row["y"] for row in points) / 1.25, max(row["y"] for row in points) * 1.25)
    solid = dataset("points", "solid").transform_filter("datum.fits")
    # from the last point that fits on
    dotted = dataset("points", "dotted").transform_window(
        next="lead(fits)", groupby=["context"], sort=[alt.SortField("x")], frame=[None, None]
    )
    dotted = dotted.transform_filter("!datum.fits || datum.next === false")
    x, y = log_x(points, "sequences in the batch"), level_y("tokens per second", 48, domain, decades(*domain), "log")
    fields, look = line_look(colours)
    lines = [
        calculate(chart, fields)
        .mark_line(strokeDash=dash, strokeJoin="round")
        .encode(x=x, y=y, detail=alt.Detail("context:N"), **look)
        for chart, dash in ((solid, [1, 0]), (dotted, [2, 3]))
    ]
    dots = (
        dataset("points", "dots")
        .transform_filter("abs(log(datum.x) / LN2 - round(log(datum.x) / LN2)) < 1e-6")
        .mark_point(
            opacity=1,
            size=expr("datum.chosen ? 36 : 25"),
            stroke=expr(f"datum.fits ? '{colours['paper']}' : datum.chosen ? '{colours['ink']}' : '{colours['ink3']}'"),
            fill=expr(f"!datum.fits ? '{colours['paper']}' : datum.chosen ? '{colours['ink']}' : '{colours['ink3']}'"),
            strokeWidth=expr("datum.fits ? 0.75 : datum.chosen ? 1.75 : 1.25"),
        )
        .encode(x=alt.X("x:Q"), y=alt.Y("y:Q"), tooltip=alt.Tooltip("tip:N"))
    )
    first = dataset("ends", "names").transform_joinaggregate(top="max(y)")
    first = first.transform_calculate(
        "text", "datum.text + (datum.y == datum.top && size == 'wide' ? ' of context' : '')"
    )
    head = written(
        alt.Chart(ONE_ROW).transform_filter("size == 'phone'").transform_calculate("text", "'context'"),
        colours["ink2"],
        None,
        None,
    ).encode(x=alt.value(expr("width + 12")), y=alt.value(-19))
    names = written(first, by_choice(colours), dx=12, fontWeight=bold())
    marks = {
        "solid": len({row["context"] for row in points if row["fits"]}),
        "dotted": len({row["context"] for row in points if not row["fits"]}),
        "dots": sum(row["x"] & (row["x"] - 1) == 0 for row in points),
        "names": len(ends),
    }
    return figure_of(
        "throughput-by-context",
        colours,
        data,
        [*lines, dots, names, head, *here(colours, last)],
        frames_of(48, 92, 224, phone=(62, 214)),
        marks,
        "Throughput against batch, by context.",
    )


def _kernel_colour(colours: Colours, *, text: bool = False) -> str:
    """Expression: the colour of a row's kernel, as a line or as text."""
    families = {"gate_proj": "matmuls", "attention": "attention", "elementwise": "elementwise"}
    pick = {kernel: colours[INKS[family] if text else FILLS[kernel]] for kernel, family in families.items()}
    return f"{pick}[datum.kernel]"


def intensity_by_tokens(colours: Colours, data: Data) -> Picture:
    """FLOPs per byte against tokens, on logarithmic axes: the matmuls climb past the ridges, attention stays."""
    last = max(row["x"] for row in data["lines"])
    domain = (min(row["y"] for row in data["lines"]) / 1.6, max(row["high"] for row in data["band"]) * 1.3)
    x, y = log_x(data["lines"], "tokens in the pass"), level_y("FLOP per byte", 48, domain, decades(*domain), "log")
    band = dataset("band", "band").mark_area(fill=colours["matmuls-trail"], opacity=1)
    ridges = dataset("ridges", "ridges").mark_rule(stroke=by_choice(colours), strokeDash=[2, 3])
    lines = dataset("lines", "lines").transform_calculate("colour", _kernel_colour(colours))
    lines = lines.mark_line(strokeWidth=2.25, strokeJoin="round").encode(
        x=alt.X("x:Q"), y=alt.Y("y:Q"), stroke=coloured("colour", alt.Stroke), detail=alt.Detail("kernel:N")
    )
    ridge_names = written(dataset("ridges", "ridge_names"), by_choice(colours), None, dy=-8, fontWeight=bold()).encode(
        x=alt.value(0)
    )
    text = expr(_kernel_colour(colours, text=True))
    layers = [
        band.encode(x=x, y=alt.Y("low:Q", **axis_of(y)), y2=alt.Y2("high:Q")),
        ridges.encode(y=alt.Y("y:Q")),
        lines,
        ridge_names,
        written(dataset("ends", "names"), text, dx=8, dy=-7, fontWeight="bold"),
        written(dataset("ends", "values"), colours["ink2"], dx=8, dy=8, field="value"),
        *here(colours, last, beside=15, level=1),
    ]
    marks = {
        "band": 1,
        "ridges": len(data["ridges"]),
        "lines": 3,
        "names": 3,
        "values": 3,
        "ridge_names": len(data["ridges"]),
    }
    return figure_of(
        "intensity-by-tokens",
        colours,
        data,
        layers,
        frames_of(48, 84, 236, phone=(80, 226)),
        marks,
        "Intensity against tokens.",
    )


def ridges_by_year(colours: Colours, data: Data) -> Picture:
    """Ridge points against years: the line through the products, and variants of them beside it."""
    years, tops = zip(*((row["x"], row["y"]) for row in (*data["gpus"], *data["variants"])), strict=True)
    first, last, top = min(years), max(years), max(tops) * 1.1
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain=[first - 0.4, last + 0.4], nice=False, zero=False),
        axis=alt.Axis(title=None, grid=False, values=list(range(first, last + 1, 2)), format="d"),
    )
    y = level_y("FLOP per byte at the ridge", 36, (0, top), multiples(top, 100), "linear")
    line = (
        dataset("gpus", "line").mark_line(stroke=colours["ink"], strokeWidth=2.25, strokeJoin="round").encode(x=x, y=y)
    )
    dot: dict[str, Any] = {"opacity": 1, "size": 49, "stroke": colours["paper"], "strokeWidth": 1.25}
    side = (
        dataset("variants", "ties")
        .mark_rule(stroke=colours["ink3"], strokeDash=[2, 3])
        .encode(x=alt.X("x:Q"), y=alt.Y("y:Q"), y2=alt.Y2("twin:Q"))
    )
    names = [*_named(colours, "gpus", "ink2", "ink"), *_named(colours, "variants", "ink3", "ink3")]
    layers = [
        line,
        side,
        *(
            dataset(rows, f"{rows}_dots").mark_point(fill=colours[colour], **dot).encode(x=alt.X("x:Q"), y=alt.Y("y:Q"))
            for rows, colour in (("gpus", "ink"), ("variants", "ink3"))
        ),
        *names,
    ]
    many, few = len(data["gpus"]), len(data["variants"])
    marks = {"line": 1, "ties": few, "gpus_dots": many, "variants_dots": few, "gpus_names": many, "variants_names": few}
    return figure_of(
        "ridges-by-year",
        colours,
        data,
        layers,
        frames_of(36, 20, 190, phone=(16, 190), bottom=26),
        {**marks, "gpus_values": many, "variants_values": few},
        "Ridge points by year.",
    )


def _named(colours: Colours, rows: str, name: str, value: str) -> list[alt.Chart]:
    """Name and ridge of each row beside its dot: `side` says where; the two together are centred, or not."""
    # where the name ends and the number begins, px from the dot
    place = {
        "middle": "datum.side == 'right' ? 44 : datum.side == 'left' ? -16 : 5",
        "down": "datum.side == 'right' ? 2 : datum.side == 'below' ? 17 : -15",
    }
    parts = (("names", "text", name, "datum.middle - 4", "right"), ("values", "value", value, "datum.middle", "left"))
    return [
        written(
            calculate(dataset(rows, f"{rows}_{part}"), place),
            colours[colour],
            field=field,
            dx=expr(dx),
            dy=expr("datum.down"),
            align=align,
            fontWeight="bold" if part == "values" else "normal",
        )
        for part, field, colour, dx, align in parts
    ]


def _memory_paint(colours: Colours) -> dict[str, Any]:
    """A bar in ink by what the memory says: filled, tinted with an outline, or hollow."""
    ink, paper, tint = colours["ink"], colours["paper"], colours["ghost"]
    return {
        "fill": expr(f"datum.memory == 'fits' ? '{ink}' : datum.memory == 'tight' ? '{tint}' : '{paper}'"),
        "stroke": ink,
        "strokeWidth": 1.5,
    }


def throughput_by_dtype(colours: Colours, data: Data) -> Picture:
    """Bars of tokens per second by weights in two panels, each on its own scale: beside each other, or below."""
    place = {
        "left": "size == 'wide' ? datum.panel * 276 : 0",
        "top": "size == 'wide' ? 0 : datum.panel * 146",
        "x0": "datum.left + 44",
        "x1": "datum.x0 + datum.part * (size == 'wide' ? 122 : 180)",
        "y0": "datum.top + 18 + 25 * datum.row",
        "middle": "datum.y0 + 6.5",
        "y1": "datum.y0 + 13",
        "value_x": "datum.x1 + 8",
        "times_x": f"datum.value_x + {em('datum.value')} * 12.6 + 8",
    }
    bars = calculate(dataset("bars", "bars"), place).mark_rect(**_memory_paint(colours))
    bars = bars.encode(**in_px("x0", "y0"), x2=alt.X2("x1:Q"), y2=alt.Y2("y1:Q"))
    panels = calculate(dataset("panels", "panels"), {key: place[key] for key in ("left", "top")})

    def label(name: str, field: str, x: str, colour: str, **mark: Any) -> alt.Chart:
        chart = calculate(dataset("bars", name), place).transform_filter(f"datum.{field} != ''")
        return written(chart, colours[colour], None, None, field=field, **mark).encode(**in_px(x, "middle"))

    keys = dataset("keys", "keys").transform_window(row="row_number()", frame=[None, 0])
    keys = calculate(keys, {"px": "0", "py": "height - 4 + 17 * (datum.row - 1)"})
    layers = [
        written(panels, colours["ink"], None, None, fontWeight="bold").encode(**in_px("left", "top")),
        bars,
        label("names", "text", "left", "ink2"),
        label("values", "value", "value_x", "ink", fontWeight="bold"),
        label("times", "times", "times_x", "ink3"),
        written(keys, colours["ink2"], None, None).encode(**in_px("px", "py")),
    ]
    frames: Frames = {"wide": Frame(WIDE, 142, (0, 0, 12, 24)), "phone": Frame(PHONE, 288, (0, 0, 12, 24))}
    many = len(data["bars"])
    marks = {"bars": many, "names": many, "values": many, "panels": 2, "keys": len(data["keys"])}
    marks["times"] = sum(row["times"] != "" for row in data["bars"])
    return figure_of("throughput-by-dtype", colours, data, layers, frames, marks, "Throughput by dtype of the weights.")


def prompt_time(colours: Colours, data: Data) -> Picture:
    """Milliseconds against the length of the prompt, on logarithmic axes: flat, then straight up."""
    times = data["times"]
    last = max(row["x"] for row in times)
    domain = (min(row["y"] for row in times) / 2.2, max(row["y"] for row in times) * 1.3)
    x, y = log_x(times, "tokens in the prompt"), level_y("milliseconds", 48, domain, [3, 10, 30, 100, 300], "log")
    fields, look = line_look(colours)
    lines = calculate(dataset("times", "lines"), fields).mark_line(strokeJoin="round")
    turns = dataset("turns", "turns").mark_point(
        opacity=1, size=64, fill=by_choice(colours), stroke=colours["paper"], strokeWidth=1.25
    )
    named = dataset("turns", "turn_names")
    words = "datum.chosen ? (size == 'wide' ? 'matmuls leave the slope at ' : 'off the slope at ') : 'at '"
    named = named.transform_calculate("text", f"({words}) + datum.text + ' tokens'")
    ink = by_choice(colours)
    layers = [
        lines.encode(x=x, y=y, detail=alt.Detail("gpu:N"), **look),
        turns.encode(x=alt.X("x:Q"), y=alt.Y("y:Q")),
        written(named, ink, align="right", dx=expr("datum.chosen ? 44 : 4"), dy=expr("datum.chosen ? 20 : -15")),
        written(dataset("ends", "starts"), ink, "x0", "y0", field="first", dy=expr("datum.chosen ? 14 : -11")),
        written(dataset("ends", "names"), ink, field="gpu", dx=8, dy=-7, fontWeight=bold()),
        written(dataset("ends", "values"), colours["ink2"], field="last", dx=8, dy=8),
        *here(colours, last),
    ]
    many = len(data["ends"])
    marks = {"lines": many, "turns": many, "turn_names": many, "starts": many, "names": many, "values": many}
    return figure_of(
        "prompt-time",
        colours,
        data,
        layers,
        frames_of(48, 62, 216, phone=(58, 206)),
        marks,
        "Prefill time against prompt length.",
    )


def elementwise_share(colours: Colours, data: Data) -> Picture:
    """Shares of a prefill pass against tokens: the elementwise row's and attention's, and where the roof begins."""
    last, top = max(row["x"] for row in data["lines"]), max(row["y"] for row in data["lines"]) * 1.22
    x = log_x(data["lines"], "tokens in the pass")
    y = level_y("% of the pass", 32, (0, top), [tick for tick in range(0, 101, 5) if tick <= top], "linear")
    lines = (
        dataset("lines", "lines")
        .transform_calculate("colour", _kernel_colour(colours))
        .mark_line(strokeWidth=2.25, strokeJoin="round")
    )
    turn = dataset("turn", "turn").mark_rule(stroke=colours["ink2"], strokeDash=[2, 3]).encode(x=alt.X("x:Q"))
    sides = [
        written(
            dataset("turn", f"side_{align}").transform_calculate("text", f"'{text}'"),
            colours["ink2"],
            y=None,
            align=align,
            dx=dx,
            fontStyle="italic",
        ).encode(y=alt.value(6))
        for text, align, dx in (("matmuls on the slope", "right", -8), ("on the roof", "left", 8))
    ]
    text = expr(_kernel_colour(colours, text=True))
    rising = "datum.kernel == 'elementwise'"
    names = written(
        dataset("names", "names"),
        text,
        fontWeight="bold",
        align=expr(f"{rising} ? 'right' : 'left'"),
        dx=expr(f"{rising} ? -10 : 6"),
        dy=expr(f"{rising} ? -4 : 16"),
    )
    layers = [
        lines.encode(x=x, y=y, stroke=coloured("colour", alt.Stroke), detail=alt.Detail("kernel:N")),
        turn,
        *sides,
        names,
        written(dataset("names", "values"), text, "x1", "y1", field="value", dx=8),
        *here(colours, last),
    ]
    marks = {"lines": 2, "turn": 1, "side_right": 1, "side_left": 1, "names": 2, "values": 2}
    return figure_of(
        "elementwise-share",
        colours,
        data,
        layers,
        frames_of(32, 52, 196, phone=(48, 190)),
        marks,
        "Share of the small kernels.",
    )


def two_counters(colours: Colours, data: Data) -> Picture:
    """The plane of memory activity and tensor activity in four regions: words in a square, and nothing measured."""
    high = data["full"][0]["high"]
    place = {
        "px": f"width * datum.x * {high} + (size == 'wide' ? 16 : 8)",
        "py": f"height * (1 - datum.y) * {1 - high} + (size == 'wide' ? 22 : 20) + 17 * datum.line"
        " + (datum.line > 0 ? 2 : 0)",
    }
    words = calculate(dataset("words", "words"), place)
    domain = alt.Scale(domain=[0, 1], nice=False)
    full = data["full"][0]["x"]
    axis: dict[str, Any] = {
        "values": [0, full, 1],
        "labelExpr": f"datum.value == {full} ? '{data['full'][0]['text']}' : datum.value",
        "grid": False,
    }
    x = alt.X(
        "half:Q",
        scale=domain,
        axis=alt.Axis(
            title="DRAM_ACTIVE, share of peak bandwidth", titleAnchor="start", titleAlign="left", titlePadding=8, **axis
        ),
    )
    y = level_y("PIPE_TENSOR_ACTIVE, share of peak tensor issue", 24, (0, 1), [0, 1], "linear")
    half = alt.Chart(ONE_ROW).transform_calculate("half", str(high))
    rule: dict[str, Any] = {"stroke": colours["ghost"], "strokeDash": [2, 3]}
    frame: dict[str, Any] = {"stroke": colours["ink3"], "strokeWidth": 1}
    layers = [
        half.properties(name="across").mark_rule(**rule).encode(x=x),
        half.properties(name="along").mark_rule(**rule).encode(y=alt.Y("half:Q", **axis_of(y))),
        alt.Chart(ONE_ROW, name="edge")
        .mark_rule(**frame)
        .encode(x=alt.value(0), y=alt.value(0), y2=alt.value(expr("height"))),
        written(
            words,
            expr(f"datum.name ? '{colours['ink']}' : '{colours['ink2']}'"),
            None,
            None,
            fontWeight=expr("datum.name ? 'bold' : 'normal'"),
            fontSize=expr("datum.name ? 14 : 12"),
        ).encode(**in_px("px", "py")),
    ]
    frames: Frames = {"wide": Frame(504, 232, (24, 8, 26, 42)), "phone": Frame(PHONE - 32, 232, (24, 8, 26, 42))}
    return figure_of(
        "two-counters",
        colours,
        data,
        layers,
        frames,
        {"across": 1, "along": 1, "words": len(data["words"])},
        "Two counters and four regions.",
    )


# parts of a measured step: whose fill they take, and whose tint and ink
_PART_KERNELS = {"linear": "gate_proj", "attention": "attention", "lm_head": "lm_head"}
_PART_FAMILIES = {"linear": "matmuls", "attention": "attention", "lm_head": "lm_head"}


def model_vs_measured(colours: Colours, data: Data) -> Picture:
    """Bars in pairs, measured above the model's, in parts; how many times the model the measurement took."""
    steps = data["steps"]
    longest = max(row["end"] for row in data["bars"])
    place = {
        "left": "size == 'wide' ? 108 : 66",
        "scale": f"(size == 'wide' ? 314 : 182) / {longest}",
        "first": "36 * datum.row",
        "top": "datum.first + (datum.which == 'model' ? 13 : 0)",
        "bottom": "datum.top + 10",
        "x0": "datum.left + datum.start * datum.scale",
        "x1": "datum.left + datum.end * datum.scale",
        "right": "width",
    }
    fills = {part: colours[FILLS[kernel]] for part, kernel in _PART_KERNELS.items()}
    pale = {part: colours[TINTS[family]] for part, family in _PART_FAMILIES.items()}
    bars = calculate(dataset("bars", "bars"), place).mark_rect(
        fill=expr(f"datum.which == 'model' ? {pale}[datum.part] : {fills}[datum.part]"),
        stroke=expr(f"{fills}[datum.part]"),
        strokeWidth=1,
    )

    def label(name: str, text: str, x: str, y: str, colour: str, **mark: Any) -> alt.Chart:
        where = {**place, "text": text, "px": x, "py": y}
        return written(calculate(dataset("steps", name), where), colours[colour], None, None, **mark).encode(
            **in_px("px", "py")
        )

    totals = [
        label(
            f"{which}_totals",
            f"datum.{which} + (datum.row == 0 ? ' {word}' : '')",
            f"datum.left + datum.{which}_end * datum.scale + 7",
            f"datum.first + {dy}",
            colour,
        )
        for which, word, dy, colour in (("measured", "ms measured", 5, "ink"), ("model", "ms by the model", 18, "ink3"))
    ]
    layers = [
        bars.encode(**in_px("x0", "top"), x2=alt.X2("x1:Q"), y2=alt.Y2("bottom:Q")),
        *totals,
        label("gpus", "datum.gpu", "0", "datum.first + 5", "ink", fontWeight="bold"),
        label("points", "datum.text", "size == 'wide' ? 40 : 0", "datum.first + (size == 'wide' ? 5 : 19)", "ink2"),
        label("ratios", "datum.ratio", "datum.right", "datum.first + 5", "ink", align="right", fontWeight="bold"),
        _part_names(colours, place, len(steps) - 1),
        _measured_heads(colours),
    ]
    height = 36 * len(steps) + 6
    frames: Frames = {"wide": Frame(WIDE, height, (0, 0, 26, 14)), "phone": Frame(PHONE, height, (0, 0, 26, 14))}
    marks = {"bars": len(data["bars"]), "parts": 3, "heads": 2}
    marks |= dict.fromkeys(("measured_totals", "model_totals", "gpus", "points", "ratios"), len(steps))
    return figure_of("model-vs-measured", colours, data, layers, frames, marks, "Model against measurement.")


def _part_names(colours: Colours, place: Mapping[str, str], last: int) -> alt.Chart:
    """What the three parts of a bar are, under those of the last row."""
    inks = {part: colours[INKS[family]] for part, family in _PART_FAMILIES.items()}
    rows = dataset("bars", "parts").transform_filter(f"datum.row == {last} && datum.which == 'model'")
    words = {
        "text": "{linear: 'linear layers', attention: 'attention', lm_head: 'LM head'}[datum.part]",
        "px": "datum.part == 'linear' ? datum.left : (datum.x0 + datum.x1) / 2",
        "py": "datum.bottom + 10",
        "align": "datum.part == 'linear' ? 'left' : 'center'",
    }
    chart = calculate(rows, {**place, **words})
    text = written(chart, expr(f"{inks}[datum.part]"), None, None, align=expr("datum.align"), fontWeight="bold")
    named: alt.Chart = text.encode(**in_px("px", "py"))
    return named


def _measured_heads(colours: Colours) -> alt.Chart:
    """What the columns hold."""
    rows = alt.Chart(alt.InlineData(values=[{"end": False}, {"end": True}]), name="heads")
    place = {"text": "datum.end ? 'measured ÷ model' : 'batch × context'", "px": "datum.end ? width : 0", "py": "-16"}
    align = expr("datum.end ? 'right' : 'left'")
    heads: alt.Chart = written(calculate(rows, place), colours["ink2"], None, None, align=align)
    return heads.encode(**in_px("px", "py"))


FIGURES: Mapping[str, Callable[[Colours, Data], Picture]] = {
    "throughput-by-context": throughput_by_context,
    "intensity-by-tokens": intensity_by_tokens,
    "ridges-by-year": ridges_by_year,
    "throughput-by-dtype": throughput_by_dtype,
    "prompt-time": prompt_time,
    "elementwise-share": elementwise_share,
    "two-counters": two_counters,
    "model-vs-measured": model_vs_measured,
}
