"""Altair charts to what the page holds: a published spec, a compiled one for the client, and accessible SVG.

Everything is drawn here and offline: vl-convert may not fetch anything. Same chart, same bytes, whatever was drawn
before.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache, partial
from typing import Any

import altair as alt
import vl_convert
from altair.utils import schemapi

from builder.bench_chart import roofline
from builder.charts import FIGURES
from builder.drawing import Picture
from builder.drawn import Figure, Frame, Frames, Series, Size
from builder.svg import draw
from builder.vega import compile_chart

TEXT_SIZES: tuple[Size, ...] = ("wide", "phone")  # of a figure in the text
ROOFLINE_SIZES: tuple[Size, ...] = ("wide", "short", "phone", "strip")


Keep = Callable[[str, str, Callable[[], str]], str]  # (name, spec that a text depends on, how it is made) → the text


def _made(_: str, __: str, make: Callable[[], str]) -> str:
    return make()


def specification(picture: Picture) -> dict[str, Any]:
    """The Vega-Lite spec of a chart: self-contained, drawn the same anywhere. It isn't held against the schema."""
    # rows and values are put in afterwards: Altair would copy and check each of them again and again
    bare = _bare(picture)
    return {**bare, "params": _valued(bare["params"], picture), "datasets": {**bare["datasets"], **_rows(picture)}}


def _bare(picture: Picture) -> dict[str, Any]:
    """The spec of a chart without its rows and values."""
    chart, spec = _specs.get(picture.name, (None, {}))
    if chart is not picture.chart:
        spec = _of_chart(picture)
        _specs[picture.name] = picture.chart, spec
    return {
        **spec,
        "params": spec.get("params", []),
        "datasets": {**spec.get("datasets", {}), **dict.fromkeys(picture.data, ())},
    }


_specs: dict[str, tuple[alt.TopLevelMixin, dict[str, Any]]] = {}  # picture → its last chart, and what Altair said of it


def _of_chart(picture: Picture, *, validate: bool = False) -> dict[str, Any]:
    with alt.theme.enable("none"):
        spec: dict[str, Any] = picture.chart.to_dict(validate=validate)
    return spec


def _rows(picture: Picture) -> dict[str, list[Mapping[str, Any]]]:
    return {name: list(rows) for name, rows in picture.data.items()}


def _valued(parameters: Sequence[Mapping[str, Any]], picture: Picture) -> list[Mapping[str, Any]]:
    """Parameters of a spec, or the signals that they become, with the picture's values."""
    values = picture.values
    return [{**each, "value": values[each["name"]]} if each["name"] in values else each for each in parameters]


def compiled_picture(picture: Picture, keep: Keep = _made) -> dict[str, Any]:
    """The compiled spec of a picture. `keep` may keep its part that is the same while axes and colours are.

    Raises SchemaValidationError where the chart breaks the schema. What is kept was held against it, or made by the
    same code as one that was.
    """
    bare = _bare(picture)

    def make() -> str:
        if picture.name not in _known:
            _of_chart(picture, validate=True)
        return _json(compile_chart(bare))

    vega = _tidied(json.loads(keep(picture.name, _json(bare), make)))
    _known.add(picture.name)
    rows = _rows(picture)
    data = [{**each, "values": rows[each["name"]]} if each["name"] in rows else each for each in vega["data"]]
    return {**vega, "data": data, "signals": _valued(vega["signals"], picture)}


_known: set[str] = set()  # pictures of this code of which one was held against the schema, now or before it was kept


def compiled(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The Vega spec that a Vega-Lite spec compiles to; datasets keep their names. No background: the page is one."""
    return _tidied(compile_chart(spec))


def _tidied(vega: dict[str, Any]) -> dict[str, Any]:
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


def figure(
    make: Callable[[], Picture],
    *,
    label: str,
    sizes: Sequence[Size],
    replaced: Iterable[str] = (),
    sees: str = "",
    here: Mapping[str, Any] | None = None,
    keep: Keep = _made,
) -> Figure:
    """Draw a chart at the given sizes. `make` makes it.

    `label` says in words what the drawing shows, `sees` what to see in it, `here` how the bench's point is found in it,
    `replaced` for which datasets the client brings its own rows: without any, and none named by the picture, it needs
    no script. `keep` as compiled_picture(). Raises ValueError as draw().
    """
    with schemapi.debug_mode(False):  # Altair would check each part of a part as it is made: the whole is, once
        picture = make()
        spec = specification(picture)
        vega = compiled_picture(picture, keep)
    svgs = {}
    for size in sizes:
        marks = {layer: least for layer, least in picture.marks.items() if layer not in picture.hidden.get(size, ())}
        sized = resized(vega, size, picture.frames)
        svgs[size] = draw(sized, name=picture.name, variant=size, label=label, marks=marks)
    brought = {*replaced, *picture.replaced}
    script = client_script(picture.name, vega, brought, picture.frames) if brought else ""
    return Figure(picture.name, spec, script, svgs, label, sees, here or {})


@cache
def warm_up() -> None:
    """Start what draws, so that the first drawing of this process needn't wait for it."""
    vl_convert.vega_to_svg({"width": 1, "height": 1, "marks": []}, allowed_base_urls=[])


def lesson_figure(name: str, series: Series, colours: Mapping[str, str], keep: Keep = _made) -> Figure:
    """A figure of the text, wide and for a phone, drawn from its rows.

    Raises KeyError for a name that is none of charts.FIGURES, and what `colours` raises where one is unknown.
    """
    here = asdict(series.here) if series.here else None
    make = partial(FIGURES[name], colours, series.data)
    return figure(make, label=series.alt, sees=series.sees, sizes=TEXT_SIZES, here=here, keep=keep)


def roofline_figure(shown: Mapping[str, Any], colours: Mapping[str, str], keep: Keep = _made) -> Figure:
    """The roofline in every size that the page shows. `shown`: arguments of bench_chart.roofline, and the verdict."""
    data = dict(shown)
    verdict = data.pop("verdict")
    return figure(
        partial(roofline, colours, **data),
        label=f"Roofline of one pass. {verdict}",
        sizes=ROOFLINE_SIZES,
        replaced=("kernels", "trails"),
        keep=keep,
    )
