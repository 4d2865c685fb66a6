"""The drawings of the site: made anew only where what they show, or what draws them, has changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from builder.colours import Colours
from builder.drawn import Figure
from builder.errors import LessonError, LessonErrors
from builder.grid import Grid
from builder.program import program
from builder.series import SERIES
from builder.shards import look_up, roofline_rows
from builder.site import cached, contents_key

FILES = ("content/grid.toml", "content/models/*.json", "content/gpus/*.toml")
FILES_OF_FIGURES = ("content/measured.toml", "content/history.toml")


def drawn(
    root: Path, grid: Grid, asked: Sequence[str], default: Mapping[str, Any], colours: Colours
) -> dict[str, Figure]:
    """The roofline of the default shard and the figures asked for, by name.

    Raises LessonErrors where one can't be drawn.
    """
    key = contents_key(root, (*FILES, *FILES_OF_FIGURES), program("drawings"), _text(colours), *asked)
    return _read(cached(root, f"figures-{key}.json", lambda: draw(root, grid, asked, default, colours), "drawings"))


@lru_cache(maxsize=2)
def _read(text: str) -> dict[str, Figure]:
    return {name: Figure(**parts) for name, parts in json.loads(text).items()}


def draw(root: Path, grid: Grid, asked: Sequence[str], default: Mapping[str, Any], colours: Colours) -> str:
    """What drawn() reads, as JSON: the parts of each Figure by its name. Each is drawn anew where its rows changed."""

    def keep_compiled(name: str, spec: str, make: Callable[[], str]) -> str:
        key = contents_key(root, (), program("vega"), spec)
        return cached(root, f"vega_{name.replace('-', '_')}-{key}.json", make, "vega")

    def draw_anew(name: str, rows: Any) -> str:
        from builder import figures  # loads a library for a fifth of a second: only when something is drawn

        if name == "roofline":
            return _text(figures.roofline_figure(rows, colours, keep_compiled))
        return _text(figures.lesson_figure(name, rows, colours, keep_compiled))

    def keep_drawn(name: str, rows: object) -> str:
        key = contents_key(root, (), program("figures"), _text(colours), _text(rows))
        return cached(root, f"figure_{name.replace('-', '_')}-{key}.json", partial(draw_anew, name, rows), "figures")

    try:
        shown: dict[str, object] = {"roofline": roofline_data(grid, default)}
        shown |= {name: SERIES[name](root, grid) for name in asked}
        return f"{{{','.join(f'{_text(name)}:{keep_drawn(name, rows)}' for name, rows in shown.items())}}}"
    except LessonError as error:
        raise LessonErrors([error]) from None
    except ValueError as error:
        raise LessonErrors([LessonError(f"a figure can't be drawn: {error}")]) from None


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=vars)


def roofline_data(grid: Grid, default: Mapping[str, Any]) -> dict[str, Any]:
    """What the roofline shows at the default point: arguments of bench_chart.roofline, and the verdict."""
    kernels, trails = roofline_rows(default, grid, grid.defaults)
    gpus = [
        {
            "gpu": gpu.id,
            "label": gpu.label,
            "peak": gpu.peak_flops / 1e12,
            "bandwidth": gpu.hbm_bandwidth / 1e12,
            "fp8_peak": gpu.peak_flops_fp8 / 1e12 if gpu.peak_flops_fp8 else None,
        }
        for gpu in grid.gpus.values()
    ]
    return {
        "gpus": gpus,
        "kernels": kernels,
        "trails": trails,
        "gpu": grid.defaults.gpu,
        "arithmetic": look_up(default, grid, grid.defaults, "gpu.arithmetic"),
        "verdict": look_up(default, grid, grid.defaults, "verdict"),
    }
