"""Compiled Vega to accessible SVG that may stand in a page. Offline: vl-convert may not fetch anything."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

import vl_convert

from builder.drawn import FONT

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


def draw(vega: Mapping[str, Any], *, name: str, variant: str, label: str, marks: Mapping[str, int]) -> str:
    """The SVG of a compiled spec, to stand in a page: role and label, ids of its own, two decimals, no style.

    `marks` holds how many marks each layer shows at least. Raises ValueError when one shows fewer or a text is blank,
    which is what an unknown field, dataset or parameter leads to, or when the drawing holds what the page's policy
    forbids.
    """
    spec = json.dumps(_unmeasured(vega))  # as text it gets there faster
    root = ElementTree.fromstring(vl_convert.vega_to_svg(spec, allowed_base_urls=[]))
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        if element.tag == "text" and _WORDS in element.attrib:
            element.text = element.attrib.pop(_WORDS).strip() or None  # as Vega writes a text
    _count(root, marks, f"{name}, {variant}")
    _tidy(root)
    _rename_ids(root, f"{name}-{variant}")
    head = {"role": "img", "aria-label": label, "font-family": FONT}
    root.attrib = {**head, **{key: root.attrib[key] for key in ("class", "width", "height", "viewBox")}}
    return ElementTree.tostring(root, encoding="unicode")


_WORDS = "aria-label"  # the attribute that a description becomes


def _unmeasured(group: Mapping[str, Any]) -> dict[str, Any]:
    """A Vega spec, or a group of one, whose texts are empty and have their words as descriptions.

    vl-convert measures every text for 0.8 ms, more than half of the time of a drawing, and in charts of a given size
    nothing depends on it.
    """
    found = dict(group)
    if "marks" in group:
        found["marks"] = [_unmeasured(mark) for mark in group["marks"]]
    if "axes" in group:
        found["axes"] = [_unmeasured_axis(axis) for axis in group["axes"]]
    return {**found, "aria": True, "encode": _described(group["encode"])} if group.get("type") == "text" else found


def _unmeasured_axis(axis: Mapping[str, Any]) -> dict[str, Any]:
    encodes = dict(axis.get("encode", {}))
    words: dict[str, Any] = {"labels": {"signal": "datum.label"}} if axis.get("labels", True) else {}
    if "title" in axis:
        words["title"] = axis["title"] if isinstance(axis["title"], Mapping) else {"value": axis["title"]}
    for part, text in words.items():
        update = encodes.get(part, {}).get("update", {})
        encodes[part] = {**encodes.get(part, {}), "update": {"text": text, **update}}
    return {**axis, "encode": {part: _described(encode) for part, encode in encodes.items()}}


def _described(encode: Mapping[str, Any]) -> Mapping[str, Any]:
    """What encodes a text, or nothing of the kind, with its words as the description."""
    update = encode.get("update", {})
    if "text" not in update:
        return encode
    return {**encode, "update": {**update, "description": update["text"], "text": {"value": ""}}}


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
