"""Altair charts to what the page holds: a published spec, a compiled one for the client, and accessible SVG.

Everything is drawn here and offline: vl-convert may not fetch anything. Same chart, same bytes, whatever was drawn
before.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import altair as alt
import vl_convert
from altair.utils import schemapi

from builder.charts import FIGURES
from builder.drawing import Picture
from builder.drawn import Figure, Frame, Frames, Size
from builder.series import Series
from builder.svg import draw
from builder.vega import VEGA_LITE

TEXT_SIZES: tuple[Size, ...] = ("wide", "phone")  # of a figure in the text


def specification(picture: Picture, *, checked: bool = True) -> dict[str, Any]:
    """The Vega-Lite spec of a chart: self-contained, checked against the schema, drawn the same anywhere."""
    chart, spec = _specs.get(picture.name, (None, {}))
    if chart is not picture.chart:
        with alt.theme.enable("none"):
            spec = picture.chart.to_dict(validate=checked)
        _specs[picture.name] = picture.chart, spec
    # rows and values are put in afterwards: Altair would copy and check each of them again and again
    rows = {name: list(rows) for name, rows in picture.data.items()}
    params = [
        {**param, "value": picture.values[param["name"]]} if param["name"] in picture.values else param
        for param in spec.get("params", ())
    ]
    return {**spec, "params": params, "datasets": {**spec.get("datasets", {}), **rows}}


_specs: dict[str, tuple[alt.TopLevelMixin, dict[str, Any]]] = {}  # picture → its last chart, and what Altair said of it


def compiled(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The Vega spec that a Vega-Lite spec compiles to; datasets keep their names. No background: the page is one."""
    vega: dict[str, Any] = vl_convert.vegalite_to_vega(dict(spec), vl_version=VEGA_LITE)
    vega.pop("background", None)
    _silence(vega)
    return vega


def _silence(group: dict[str, Any]) -> None:
    """Let no mark speak for itself: a drawing is one image with one label, also when the client draws it."""
    for mark in group.get("marks", ()):
        mark["aria"] = False
        _silence(mark)


def resized(vega: Mapping[str, Any], size: Size, frames: Frames) -> dict[str, Any]:
    """The same Vega spec at another size: all that a size changes is its frame and the parameter `size`."""
    signals = [{**signal, "value": size} if signal["name"] == "size" else signal for signal in vega["signals"]]
    return {**vega, **_framed(frames[size]), "signals": signals}


def client_script(name: str, vega: Mapping[str, Any], replaced: Iterable[str], frames: Frames) -> str:
    """A classic script that hands the compiled spec to the client, with the frame of each size.

    `replaced` names the datasets for which the client brings its own rows; theirs stay behind.
    """
    bare = {**vega, "data": [{**data, "values": []} if data["name"] in replaced else data for data in vega["data"]]}
    record = {"spec": bare, "sizes": {size: _framed(frame) for size, frame in frames.items()}}
    return f"lesson.spec({_json(name)},{_json(record)});\n"


def _framed(frame: Frame) -> dict[str, Any]:
    sides = dict(zip(("left", "right", "top", "bottom"), frame.padding, strict=True))
    return {"width": frame.width, "height": frame.height, "padding": sides}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_known: set[str] = set()  # figures of this program that were held against the schema


def figure(
    make: Callable[[], Picture],
    *,
    label: str,
    sizes: Sequence[Size],
    replaced: Iterable[str] = (),
    sees: str = "",
    here: Mapping[str, Any] | None = None,
) -> Figure:
    """Draw a chart at the given sizes. `make` makes it, of the same structure whatever its rows.

    `label` says in words what the drawing shows, `sees` what to see in it, `here` how the bench's point is found in it,
    `replaced` for which datasets the client brings its own rows: without any, and none named by the picture, it needs
    no script. Raises ValueError as draw().
    """
    with schemapi.debug_mode(False):  # Altair would check each part of a part as it is made: the whole is, once
        picture = make()
        spec = specification(picture, checked=picture.name not in _known)
    _known.add(picture.name)
    vega = compiled(spec)
    svgs = {}
    for size in sizes:
        marks = {layer: least for layer, least in picture.marks.items() if layer not in picture.hidden.get(size, ())}
        sized = resized(vega, size, picture.frames)
        svgs[size] = draw(sized, name=picture.name, variant=size, label=label, marks=marks)
    brought = {*replaced, *picture.replaced}
    script = client_script(picture.name, vega, brought, picture.frames) if brought else ""
    return Figure(picture.name, spec, script, svgs, label, sees, here or {})


def lesson_figure(name: str, series: Series, colours: Mapping[str, str]) -> Figure:
    """A figure of the text, wide and for a phone, drawn from its rows.

    Raises KeyError for a name that is none of charts.FIGURES, LessonErrors where the theme lacks a colour.
    """
    here = asdict(series.here) if series.here else None
    make = partial(FIGURES[name], colours, series.data)
    return figure(make, label=series.alt, sees=series.sees, sizes=TEXT_SIZES, here=here)
