"""Templates → HTML: the prose, and the bench as it stands at the default point before any script runs."""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

import jinja2
from jinja2.bccache import Bucket
from markupsafe import Markup

from builder import display
from builder.assumptions import NAMES
from builder.bindings import fragment
from builder.display import article
from builder.drawn import Figure
from builder.errors import LessonError, LessonErrors, did_you_mean
from builder.grid import AXES, GRID_FILE, NOUNS, SHARD_AXES, Grid
from builder.kernels import KERNEL_LABELS, KERNELS
from builder.palette import FILLS
from builder.prose import ASSUMPTIONS_SLOT, BENCH_SLOT, PROVENANCE_SLOT, Prose, fill
from builder.provenance import provenance
from builder.shards import look_up, script_json, shard_id, value
from builder.sizes import cases, heading
from builder.units import short_position, whole

# templates that are rendered by name: the pages, and the tables that stand in them
PAGES = ("index.html", "404.html")
TABLES = {"assumptions": "assumptions.html", "provenance": "provenance.html"}

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:"

# which slider positions are named; the others have a tick
_NAMED_TOKENS = (1, 8, 64, 256, 1024, 4096)
_NAMED_CONTEXTS = (0, 128, 512, 2048, 8192, 32768, 131072)

CONTROL_LABELS = {
    "phase": "Phase",
    "tokens": "Tokens in pass",
    "context": "Context",
    "gpu": "GPU",
    "weights": "Weights",
    "kv": "KV cache",
    "attention": "Heads",
}
_SPOKEN = {
    "gqa": "grouped-query attention, KV heads as published",
    "mha": "multi-head attention, a KV head for each query head",
    "mqa": "multi-query attention, one KV head",
    "int4": "weights in INT4, arithmetic in BF16",
    "w8a8": "weights, activations and arithmetic of the matmuls in FP8",
}


@dataclass(frozen=True)
class Addresses:
    """Relative addresses of the files that the page asks for; figure_scripts and shard_scripts by name and shard id."""

    css: str
    early: str
    js: str
    icon: str
    vega: str
    figure_scripts: Mapping[str, str]
    shard_scripts: Mapping[str, str]


@dataclass(frozen=True)
class Published:
    """Whole addresses, where it is known where the site will stand: of the page, ending in /, and of its card."""

    base: str
    card: str


def _many(count: int, noun: str) -> str:
    return f"{whole(count)} {noun}{'' if count == 1 else 's'}"


def axis_texts(grid: Grid) -> dict[str, dict[str, Any]]:
    """Axis → its values, how a control shows each, and (for sliders, by phase) how a screen reader says it."""
    texts: dict[str, dict[str, Any]] = {}
    for axis in AXES:
        values = grid.axes[axis]
        if axis in ("tokens", "context"):
            spoken = {phase: [_many(value, "token") for value in values] for phase in grid.axes["phase"]}
            if axis == "tokens":
                spoken["decode"] = [_many(value, "sequence") for value in values]
            shown = [whole(value) for value in values]
            brief = [short_position(value) if axis == "context" else whole(value) for value in values]
            texts[axis] = {"values": values, "texts": shown, "brief": brief, "spoken": spoken}
        else:
            texts[axis] = {"values": values, "texts": [grid.texts.get(value, value) for value in values]}
    return texts


def ticks(grid: Grid, axis: str) -> list[dict[str, Any]]:
    """The marks under a slider: at (percent of the way), text where the position is named."""
    values = grid.axes[axis]
    named = _NAMED_TOKENS if axis == "tokens" else _NAMED_CONTEXTS
    last = max(len(values) - 1, 1)
    text = short_position if axis == "context" else whole
    return [
        {"at": round(100 * i / last, 2), "text": text(value) if value in named else ""}
        for i, value in enumerate(values)
    ]


def bench_data(
    grid: Grid, default_shard: Mapping[str, Any], scripts: Mapping[str, str], figures: Mapping[str, Figure]
) -> str:
    """What the client starts with, as JSON that may stand in a script element."""
    document = {
        "axes": axis_texts(grid),
        "shardAxes": SHARD_AXES,
        "nouns": NOUNS,
        "refusals": [vars(refusal) for refusal in grid.refusals],
        "defaults": vars(grid.defaults),
        "tables": {"share": display.SHARE_TEXTS, "rough": display.ROUGH_TEXTS},
        "families": display.FAMILIES,
        "trails": display.TRAILS,
        "corners": display.CORNERS,
        "bounds": {text: name for name, text in display.BOUND_NAMES.items()},
        "figures": {name: figure.here for name, figure in figures.items() if figure.here},
        "scripts": scripts,
        "shard": default_shard,
    }
    return script_json(document)


def _context_note(grid: Grid) -> str:
    most = grid.model.max_positions
    if most is None or most >= max(grid.axes["context"]):
        return ""
    way = "YaRN past" if grid.model.family.startswith("qwen") else "not trained past"
    # 40,960 is said as the 40k that the file means
    return f"{way} {most // 1000 if most % 1024 else most // 1024}k"


class _Compiled(jinja2.BytecodeCache):
    """Compiled templates, for a process that builds again; Jinja takes one only where its source's hash is the same."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """The names as they are, whatever characters a folder's may hold."""
        return f"{name} {filename}"

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fill the bucket, if there is something for it."""
        if bucket.key in self.kept:
            bucket.bytecode_from_string(self.kept[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what the bucket holds."""
        self.kept[bucket.key] = bucket.bytecode_to_string()


_COMPILED = _Compiled()


def environment(folder: Path) -> jinja2.Environment:
    """Jinja over theme/templates: everything is escaped, an unknown name is an error."""
    loader = jinja2.FileSystemLoader(folder)
    env = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    env.lstrip_blocks = True
    env.bytecode_cache = _COMPILED
    env.filters["css"] = FILLS.__getitem__
    env.filters["number"] = lambda text: value(text) or 0
    return env


# what the templates call the same at every point and in every lesson
_WORDS = {
    "policy": POLICY,
    "safe": Markup,
    "shard_axes": SHARD_AXES,
    "labels": CONTROL_LABELS,
    "spoken": _SPOKEN,
    "kernels": KERNELS,
    "kernel_labels": KERNEL_LABELS,
    "columns": display.COLUMNS,
    "column_labels": display.COLUMN_LABELS,
    "column_units": {column: unit for column, (_, unit) in display.COLUMN_UNITS.items()},
    "totals": display.TOTALS,
    "bounds": {text: name for name, text in display.BOUND_NAMES.items()},
    "latency": {"mark": display.LATENCY_MARK, "text": display.LATENCY_TEXT, "reason": display.LATENCY_REASON},
    "none_at_all": display.DASH,
}


def render(
    root: Path,
    grid: Grid,
    prose: Prose,
    default_shard: Mapping[str, Any],
    figures: Mapping[str, Figure],
    addresses: Addresses,
    published: Published | None = None,
) -> dict[str, str]:
    """Name of a page → its HTML: index.html and 404.html.

    Raises LessonErrors where a template is broken.
    """
    point = grid.defaults

    def shown(column: str) -> str:
        return look_up(default_shard, grid, point, column)

    env = environment(root / "theme" / "templates")
    names = {
        **_WORDS,
        "published": published,
        "about": Markup(_about(prose, published)),
        "addresses": addresses,
        "prose": prose,
        "bench_part": next((part.number for part in prose.sections if BENCH_SLOT in part.html), 0),
        "grid": grid,
        "point": point,
        "shard": shard_id(point),
        "shown": shown,
        "axes": axis_texts(grid),
        "refusing": {refusal.axis for refusal in grid.refusals},  # the axes that need room to say why
        "refused": {
            (refusal.axis, refusal.value): refusal.reason
            for refusal in grid.refusals
            if all(getattr(point, axis) == value for axis, value in refusal.at.items())
        },
        "ticks": {axis: ticks(grid, axis) for axis in ("tokens", "context")},
        "short": any(shown(f"{kernel}.latency") for kernel in KERNELS),
        "context_note": _context_note(grid),
        "roofline": {size: Markup(svg) for size, svg in figures["roofline"].svgs.items()},
        "data": Markup(bench_data(grid, default_shard, addresses.shard_scripts, figures)),
    }
    try:
        tables = _tables(root, env, grid, prose)
        names["parts"] = parts(prose, figures, addresses, tables)
        return {name: env.get_template(name).render(names) for name in PAGES}
    except jinja2.TemplateError as error:
        raise LessonErrors([_template_error(error)]) from None


def _tables(root: Path, env: jinja2.Environment, grid: Grid, prose: Prose) -> dict[str, str]:
    """The tables that the text asks for, made from the ledger and the data files: name of the slot → HTML.

    Raises LessonErrors where there are no passes to tell the sizes of assumptions at, or a constant has no source.
    """
    text, tables = "".join(section.html for section in prose.sections), {}
    if ASSUMPTIONS_SLOT in text:
        tables["assumptions"] = _assumptions(env, grid, prose)
    if PROVENANCE_SLOT in text:
        groups, known = provenance(root, grid)
        tables["provenance"] = env.get_template(TABLES["provenance"]).render(groups=groups, sources=known)
    return tables


def _assumptions(env: jinja2.Environment, grid: Grid, prose: Prose) -> str:
    if not grid.passes:
        hint = "name some, such as one_user = { tokens = 1 }"
        message = "the table of assumptions needs [passes] to tell their sizes at"
        raise LessonErrors([LessonError(message, path=GRID_FILE, hint=hint)])
    points, reasons = list(grid.passes.values()), prose.reasons_html
    names = {
        "gpu": article(grid.gpus[grid.defaults.gpu].label),
        "phases": [(phase, list(group)) for phase, group in groupby(points, lambda point: point.phase)],
        "width": 1 + len(points),
        "heading": heading,
        "fragment": fragment,
        "safe": Markup,
        # one without a reason has been told
        "assumptions": [(name, reasons[name], cases(grid, name)) for name in NAMES if name in reasons],
    }
    return env.get_template(TABLES["assumptions"]).render(names)


def _template_error(error: jinja2.TemplateError) -> LessonError:
    """The error with the template and the line where it happened."""
    name: str | None
    line: int | None
    if isinstance(error, jinja2.TemplateSyntaxError):
        name, line = error.name, error.lineno
    else:
        frames = traceback.extract_tb(error.__traceback__)
        inside = [frame for frame in frames if Path(frame.filename).suffix == ".html"]
        name, line = (Path(inside[-1].filename).name, inside[-1].lineno) if inside else (None, None)
    path = f"theme/templates/{name}" if name else "theme/templates"
    return LessonError(f"template: {error.message}", path=path, line=line)


def parts(
    prose: Prose, figures: Mapping[str, Figure], addresses: Addresses, tables: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """The sections of the text with figures and tables in place; the bench has a place of its own on the page.

    A figure that has a script says where it and Vega are. tables: slot → HTML.

    Raises LessonErrors where there is no section, or the text asks for a figure that isn't drawn.
    """
    if not prose.sections:
        hint = "begin one with a line: ## Its title {#its-address}"
        raise LessonErrors([LessonError("the lesson has no section", path="content/lesson.md", hint=hint)])
    unknown = [figure for figure in prose.figures if figure.name not in figures]
    if unknown:
        raise LessonErrors(
            [
                LessonError(
                    f"there is no figure '{figure.name}'",
                    path=figure.path,
                    line=figure.line,
                    hint=did_you_mean(figure.name, figures),
                )
                for figure in unknown
            ]
        )
    slots = {"bench": "", **(tables or {})}
    for name, figure in figures.items():
        drawings = figure.svgs.items()
        slots[f"figure {name}"] = "".join(f'<div data-variant="{size}">{svg}</div>' for size, svg in drawings)
    return [
        {
            "id": section.id,
            "number": section.number,
            "title": Markup(section.title_html),
            "name": Markup(_unlinked(section.title_html)),
            "html": Markup(fill(_with_scripts(section.html, addresses), slots)),
        }
        for section in prose.sections
    ]


def _unlinked(title: str) -> str:
    """A title to stand in a link: its own links and what is known by an id are left out, its words stay."""
    return re.sub(r"<(\w+)\s[^>]*>", r"<\1>", re.sub(r"</?(?:a|span)\b[^>]*>", "", title))


def _with_scripts(html: str, addresses: Addresses) -> str:
    """The HTML of a section with the addresses of what its figures need to come alive, for those that can."""

    def opened(match: re.Match[str]) -> str:
        script = addresses.figure_scripts.get(match[1])
        if not script:
            return match[0]
        return f'{match[0]} data-runtime="{escape(addresses.vega)}" data-spec="{escape(script)}"'

    return re.sub(r'(?<=<figure )id="figure-[^"]+" data-figure="([^"]+)"', opened, html)


def _about(prose: Prose, published: Published | None) -> str:
    """The lesson for search engines: JSON-LD that may stand in a script element."""
    document = {
        "@context": "https://schema.org",
        "@type": "LearningResource",
        "name": prose.title,
        "description": prose.description,
        "learningResourceType": "interactive lesson",
        "educationalLevel": "professional",
        "timeRequired": "PT20M",
        "inLanguage": "en",
        "isAccessibleForFree": True,
        "teaches": ["arithmetic intensity", "the roofline model", "LLM inference performance"],
    }
    if published:
        document |= {"url": published.base, "image": published.card}
    return script_json(document)


def sitemap(base: str) -> str:
    """sitemap.xml of a site of one page; base: its address."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        f"<url><loc>{escape(base)}</loc></url>\n</urlset>\n"
    )
