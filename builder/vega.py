"""Vega-Lite to Vega, and the part of Vega that the page loads: offline, by what vl-convert embeds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import vl_convert

VEGA_LITE = "6.4"

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
import {{ textMetrics }} from "{_MODULES}vega-scenegraph@5.1.0/+esm";
import {{ expressionInterpreter }} from "{_MODULES}vega-interpreter@2.0.0/+esm";
Object.assign(transforms, data, view, encode);
textMetrics.width = () => 0; // nothing in a drawing of a given size depends on it, and to measure takes long
window.lessonVega = {{ parse, View, changeset, expressionInterpreter }};
"""


def compile_chart(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The Vega spec that a Vega-Lite spec compiles to; datasets keep their names."""
    text = json.dumps(spec, ensure_ascii=False)  # as text it gets there faster
    vega: dict[str, Any] = vl_convert.vegalite_to_vega(text, vl_version=VEGA_LITE)
    return vega


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
