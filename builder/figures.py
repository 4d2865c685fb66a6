"""Altair charts to what the page holds: a published spec, a compiled one for the client, and accessible SVG.

Everything is drawn here and offline: vl-convert may not fetch anything, and the script that draws in the browser is
bundled from the modules that vl-convert embeds. Same chart, same bytes, whatever was drawn before.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import Any
from xml.etree import ElementTree

import altair as alt
import vl_convert

from builder.charts import FIGURES
from builder.drawing import FILLS, FONT, Frame, Frames, Picture, Size
from builder.errors import LessonError, LessonErrors, did_you_mean
from builder.series import Series

VEGA_LITE = "6.4"
TOKENS = "theme/css/tokens.css"

TEXT_SIZES: tuple[Size, ...] = ("wide", "phone")  # of a figure in the text

# What the client needs of Vega, by the addresses under which vl-convert embeds it. Taken whole: a cherry-picked
# transform is cheaper by little, and one that is missing is noticed in the browser only.
_MODULES = "https://cdn.jsdelivr.net/npm/"
RUNTIME_SNIPPET = f"""
import {{ parse }} from "{_MODULES}vega-parser@7.1.0/+esm";
import {{ View }} from "{_MODULES}vega-view@6.1.0/+esm";
import {{ transforms, changeset }} from "{_MODULES}vega-dataflow@6.1.0/+esm";
import * as encode from "{_MODULES}vega-encode@5.1.0/+esm";
import * as data from "{_MODULES}vega-transforms@5.1.0/+esm";
import * as view from "{_MODULES}vega-view-transforms@5.1.0/+esm";
import {{ expressionInterpreter }} from "{_MODULES}vega-interpreter@2.0.0/+esm";
Object.assign(transforms, data, view, encode);
window.lessonVega = {{ parse, View, changeset, expressionInterpreter }};
"""

_COLOUR = re.compile(r"--([a-z0-9-]+):\s*(?:light-dark\(\s*)?(#[0-9a-f]{6})\b", re.IGNORECASE)
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?|-?\d+e-?\d+")
_ALLOWED = {"svg", "g", "path", "rect", "line", "text", "tspan", "circle", "defs", "clipPath"}
# Said by the root (font-family), the default of SVG, or of no use inside role=img.
_IDLE = {
    ("opacity", "1"),
    ("font-weight", "normal"),
    ("font-style", "normal"),
    ("text-anchor", "start"),
    ("stroke-width", "1"),
}
_GEOMETRY = {"d", "transform", "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "width", "height"}
_BLANK = {"undefined", "null", "NaN"}  # what a text of a field that isn't there says
_DROPPED = {"role", "aria-roledescription", "aria-hidden", "pointer-events", "version"}


class Colours(dict[str, str]):
    """The colour tokens of the theme, name to hex. One that is asked for and missing is the theme's mistake."""

    def __missing__(self, name: str) -> str:
        """Raise LessonErrors that name the token, and the file where it should stand."""
        hint = did_you_mean(name, self)
        raise LessonErrors([LessonError(f"the figures need the colour --{name}", path=TOKENS, hint=hint)])


def read_colours(css: str) -> Colours:
    """The colour tokens of the light scheme, name to hex: those of the first block, before any media query.

    Raises ValueError when two tokens share a hex: the dark scheme is chosen by colour, so they must differ.
    """
    colours = Colours((name, value.lower()) for name, value in _COLOUR.findall(css.split("@media", 1)[0]))
    if len(set(colours.values())) < len(colours):
        raise ValueError("two colour tokens share a value, so a chart could not tell them apart")
    return colours


def scheme_css(colours: Mapping[str, str]) -> str:
    """Rules that let the figures follow the scheme: each literal colour of a drawing becomes its token."""
    return "".join(
        f'figure[data-figure] svg [{attribute}="{value}" i]{{{attribute}:var(--{name})}}\n'
        for name, value in colours.items()
        for attribute in ("fill", "stroke")
    )


def kernel_css() -> str:
    """Rules that give the ledger's swatches and bars the colours of the dots: a class for each kernel."""
    return "".join(f".k-{token}{{fill:var(--{token});stroke:var(--{token})}}\n" for token in FILLS.values())


def pairing_css(colours: Mapping[str, str]) -> str:
    """Rules that pair the ledger with the roofline: pointing at a row dims the other dots, at a dot the other rows.

    They are asked only while a row or a picture is pointed at: otherwise each change of a number would ask them anew. A
    dot is known by its kernel's colour, which is its fill or, where the point doesn't fit, its outline. Nothing of
    it where there is no hovering, or where the reader's own colours stand in for ours.
    """
    rules = []
    for kernel, token in FILLS.items():
        own = f':is([fill="{colours[token]}" i],[stroke="{colours[token]}" i])'
        row = f'tr[data-kernel="{kernel}"]'
        dots = ".picture [class~=dots_marks]>path"
        rules += [
            f".bench[data-pointing]:has({row}:is(:hover,:focus-visible)) {dots}:not({own}){{opacity:.35}}",
            f".bench[data-pointing]:has({dots}{own}:hover) .ledger tbody tr:not({row}){{opacity:.35}}",
        ]
    return "\n".join(["@media (hover:hover) and (forced-colors:none){", *rules, "}\n"])


def specification(picture: Picture) -> dict[str, Any]:
    """The Vega-Lite spec of a chart: self-contained, checked against the schema, drawn the same anywhere."""
    with alt.theme.enable("none"):
        spec: dict[str, Any] = picture.chart.to_dict()
    return spec


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


def draw(vega: Mapping[str, Any], *, name: str, variant: str, label: str, marks: Mapping[str, int]) -> str:
    """The SVG of a compiled spec, to stand in a page: role and label, ids of its own, two decimals, no style.

    `marks` holds how many marks each layer shows at least. Raises ValueError when one shows fewer or a text is blank,
    which is what an unknown field, dataset or parameter leads to, or when the drawing holds what the page's policy
    forbids.
    """
    root = ElementTree.fromstring(vl_convert.vega_to_svg(dict(vega), allowed_base_urls=[]))
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    _count(root, marks, f"{name}, {variant}")
    _tidy(root)
    _rename_ids(root, f"{name}-{variant}")
    head = {"role": "img", "aria-label": label, "font-family": FONT}
    root.attrib = {**head, **{key: root.attrib[key] for key in ("class", "width", "height", "viewBox")}}
    return ElementTree.tostring(root, encoding="unicode")


def _count(root: ElementTree.Element, marks: Mapping[str, int], where: str) -> None:
    """Raise when a layer shows fewer marks than it should, or when a text has nothing to say."""
    shown = dict.fromkeys(marks, 0)
    for group in root.iter("g"):
        for layer in group.get("class", "").split():
            if layer.removesuffix("_marks") in shown:
                shown[layer.removesuffix("_marks")] += sum(mark.tag != "path" or bool(mark.get("d")) for mark in group)
    short = [f"{layer} shows {shown[layer]} of {least}" for layer, least in marks.items() if shown[layer] < least]
    blank = {text.text for text in root.iter("text")} & _BLANK
    short += [f"a text shows {word}" for word in sorted(blank, key=str)]
    if short:
        raise ValueError(f"figure {where}: {'; '.join(short)}")


def _tidy(root: ElementTree.Element) -> None:
    """Leave out what draws nothing, and refuse what the page's policy would."""
    for parent in root.iter():
        if parent.tag not in _ALLOWED:
            raise ValueError(f"a figure holds <{parent.tag}>")
        for child in list(parent):
            if child.tag == "path" and child.get("class") in {"background", "foreground"} and not child.get("fill"):
                parent.remove(child)
        kept = {}
        for key, value in parent.attrib.items():
            if key == "style" or key.startswith("on") or "href" in key:
                raise ValueError(f"a figure holds the attribute {key}")
            if key in _DROPPED or (key, value) in _IDLE or (key == "font-family" and value == FONT):
                continue
            if key == "class" and "role-mark" in value:
                value = value.rpartition(" ")[2]
            elif key == "class" and parent is not root:
                continue
            kept[key] = _NUMBER.sub(_rounded, value) if key in _GEOMETRY else value
        parent.attrib = kept


def _rounded(match: re.Match[str]) -> str:
    text = f"{float(match[0]):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _rename_ids(root: ElementTree.Element, prefix: str) -> None:
    """Vega counts ids up within a process: number them anew, so that they are unique in a page and stable."""
    found = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    names = {old: f"{prefix}-{number}" for number, old in enumerate(found, start=1)}
    for element in root.iter():
        for key, value in element.attrib.items():
            if key == "id":
                element.attrib[key] = names[value]
            elif value.startswith("url(#"):
                element.attrib[key] = f"url(#{names[value[5:-1]]})"


@dataclass(frozen=True)
class Figure:
    """Everything a page needs of one figure: the published spec, the client's script, and the SVG of each size.

    `here`: the fields of series.Here, of a figure in which the client marks the bench's point; else empty.
    """

    name: str
    spec: dict[str, Any]
    script: str
    svgs: dict[Size, str]
    label: str = ""
    sees: str = ""
    here: Mapping[str, Any] = field(default_factory=dict)


def figure(
    picture: Picture,
    *,
    label: str,
    sizes: Sequence[Size],
    replaced: Iterable[str] = (),
    sees: str = "",
    here: Mapping[str, Any] | None = None,
) -> Figure:
    """Draw a chart at the given sizes.

    `label` says in words what the drawing shows, `sees` what to see in it, `here` how the bench's point is found in it,
    `replaced` for which datasets the client brings its own rows: without any, and none named by the picture, it needs
    no script. Raises ValueError as draw().
    """
    spec = specification(picture)
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
    picture = FIGURES[name](colours, series.data)
    here = asdict(series.here) if series.here else None
    return figure(picture, label=series.alt, sees=series.sees, sizes=TEXT_SIZES, here=here)


def vega_runtime() -> str:
    """The part of Vega that the client needs, as one classic script that sets `window.lessonVega`; about 150 KB gzip.

    Bundled offline, in about a second: keep it under runtime_key().
    """
    bundle = vl_convert.javascript_bundle(RUNTIME_SNIPPET, vl_version=VEGA_LITE)
    return f"(()=>{{{bundle}}})();\n"


def runtime_key() -> str:
    """What vega_runtime() depends on: the versions of what bundles it, and the snippet."""
    parts = (version("vl-convert-python"), vl_convert.get_vega_version(), VEGA_LITE, RUNTIME_SNIPPET)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
