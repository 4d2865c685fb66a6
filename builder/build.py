"""The flow: content → ledger → shards → figures and prose → page → files."""

from __future__ import annotations

from pathlib import Path

from builder import page
from builder.charts import Size, roofline
from builder.errors import LessonError, LessonErrors
from builder.facts import Facts
from builder.figures import Figure, figure, read_colours, runtime_key, scheme_css, vega_runtime
from builder.grid import GRID_FILE, Grid, load_grid
from builder.prose import load_prose
from builder.shards import check_shard_size, look_up, roofline_rows, shard, shard_id, shard_text
from builder.site import Site, cached, compressed_size, concatenated, refuse_foreign_folder, write

ROOFLINE_SIZES: tuple[Size, ...] = ("wide", "short", "phone", "strip")


def build(root: Path, out: Path, base_url: str | None = None) -> Site:
    """Build the lesson of a checkout into a folder.

    root: the checkout. base_url: where the site will be published, for what needs whole addresses. Raises LessonErrors
    with everything that is wrong; the folder is only touched when nothing is.
    """
    refuse_foreign_folder(out, str(out))
    site = assemble(root, base_url)
    write(site, out)
    return site


def assemble(root: Path, base_url: str | None = None) -> Site:
    """All files of the site, in memory. Raises LessonErrors with everything that is wrong."""
    grid, site = load_grid(root), Site()
    prose = load_prose(root, Facts(grid))
    shards, scripts = _add_shards(site, grid)
    default = shards[shard_id(grid.defaults)]
    drawn = draw_roofline(root, grid, default)
    site.add(f"figures/{drawn.name}.vl.json", page.pretty_json(drawn.spec))
    addresses = page.Addresses(
        css=site.add_hashed("assets/lesson.css", theme_css(root)),
        js=site.add_hashed("assets/lesson.js", concatenated(root / "theme" / "js", ".js", ["reload.js"])),
        icon=site.add_hashed("assets/icon.svg", (root / "theme" / "icon.svg").read_bytes()),
        vega=site.add_hashed("assets/vega.js", cached(root, f"vega-{runtime_key()}.js", vega_runtime)),
        figure_scripts={drawn.name: site.add_hashed(f"assets/{drawn.name}.js", drawn.script)},
        shard_scripts=scripts,
    )
    pages = page.render(root, grid, prose, default, {drawn.name: drawn.svgs}, addresses, base_url)
    for name, html in pages.items():
        site.add(name, html)
    _check_first_load(site, grid, addresses)
    return site


def theme_css(root: Path) -> str:
    """The style sheet: the theme's files in the order of their names, and the figures' colours by scheme."""
    folder = root / "theme" / "css"
    tokens = (folder / "tokens.css").read_text(encoding="utf-8")
    return "\n".join([tokens, concatenated(folder, ".css", ["tokens.css"]), scheme_css(read_colours(tokens))])


def draw_roofline(root: Path, grid: Grid, default: dict[str, object]) -> Figure:
    """The roofline at the default point, in every size that the page shows."""
    colours = read_colours((root / "theme" / "css" / "tokens.css").read_text(encoding="utf-8"))
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
    label = f"Roofline of one pass. {look_up(default, grid, grid.defaults, 'verdict')}"
    return figure(
        lambda size: roofline(colours, gpus, kernels, trails, grid.defaults.gpu, size=size),  # type: ignore[arg-type]
        label=label,
        sizes=ROOFLINE_SIZES,
        replaced=("kernels", "trails"),
    )


def _add_shards(site: Site, grid: Grid) -> tuple[dict[str, dict[str, object]], dict[str, str]]:
    """Add every shard, as JSON under its own name and as a script that hands over the same text.

    A page from a file can't fetch, but it can load a classic script. Returns the shards and their scripts' addresses
    by id. Raises LessonErrors where a shard breaks its budget.
    """
    shards: dict[str, dict[str, object]] = {}
    scripts: dict[str, str] = {}
    errors: list[LessonError] = []
    for choice in grid.shard_points():
        document, name = shard(grid, choice), shard_id(choice)
        text = shard_text(document)
        site.add(f"data/{name}.json", text + "\n")
        scripts[name] = site.add_hashed(f"data/{name}.js", f"lesson.shard({text});\n")
        errors += check_shard_size(grid, document, compressed_size(text.encode()))
        shards[name] = document
    if errors:
        raise LessonErrors(errors)
    return shards, scripts


def _check_first_load(site: Site, grid: Grid, addresses: page.Addresses) -> None:
    """Raise LessonErrors where more must arrive before the bench answers than the budget allows."""
    first = {name: compressed_size(site.files[name]) for name in ("index.html", addresses.css, addresses.js)}
    budget = grid.budget["before_the_bench_answers"]
    if sum(first.values()) > budget:
        largest = max(first, key=lambda name: first[name])
        message = (
            f"{sum(first.values()):,} bytes compressed must arrive before the bench answers, over "
            f"budget.before_the_bench_answers of {budget:,}; the largest file is {largest} with {first[largest]:,}"
        )
        raise LessonErrors([LessonError(message, path=GRID_FILE)])
