"""The flow: content → ledger → shards → figures and prose → page → files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from markupsafe import Markup

from builder import beside, drawings, page
from builder.card import card
from builder.catalog import read_toml
from builder.colours import light_colours
from builder.drawn import Figure
from builder.errors import LessonError, LessonErrors
from builder.facts import Facts
from builder.grid import GRID_FILE, Grid, load_grid
from builder.links import broken_links
from builder.markup import malformed, pages
from builder.packing import Packed, keep_packed, packed
from builder.palette import TOKENS, kernel_css, pairing_css, scheme_css
from builder.program import program
from builder.prose import Prose, load_prose
from builder.series import SERIES
from builder.shards import check_shard_size, shard
from builder.site import (
    Site,
    cached,
    compressed_size,
    concatenated,
    contents_key,
    is_cached,
    refuse_foreign_folder,
    theme_text,
    write,
)
from builder.vega import runtime_key, vega_runtime

_LOADED = ("builder.packing",)  # by a process that helps
APART = ("early.js", "reload.js")  # scripts that don't belong to the page's one: before it, and of serve alone

Progress = Callable[[str], None]  # is told the name of each step as it begins


def build(root: Path, out: Path, base_url: str | None = None, progress: Progress = lambda _: None) -> Site:
    """Build the lesson of a checkout into a folder.

    root: the checkout. base_url: where the site will be published, for what needs whole addresses. Raises LessonErrors
    with everything that is wrong; the folder is only touched when nothing is.
    """
    refuse_foreign_folder(out, str(out))
    site = assemble(root, base_url, progress=progress)
    progress("writing")
    write(site, out)
    return site


def assemble(
    root: Path, base_url: str | None = None, prose: Prose | None = None, progress: Progress = lambda _: None
) -> Site:
    """All files of the site, in memory. Raises LessonErrors with everything that is wrong.

    prose: the text where it has been read already, whatever is wrong with its numbers.
    """
    progress("data")
    grid = load_grid(root)
    names = _shard_files(root, grid)
    missing = [gpu for gpu, name in names.items() if not is_cached(root, name)]
    # to start a process takes as long as to make a part
    with beside.helper(_LOADED, worth=len(missing) > 1) as ask:
        making = [ask(partial(keep_packed, root, names[gpu], grid, gpu, program("packing"))) for gpu in missing]
        progress("prose")
        facts, default = _ledger(root, grid)
        prose = prose or load_prose(root, facts)
        progress("figures")
        asked = [figure.name for figure in prose.figures if figure.name in SERIES]
        drawn = drawings.drawn(root, grid, asked, default, light_colours(root))
        progress("shards")
        for answer in making:
            answer.make()
        for answer in making:
            answer.text()
    packs = [_read_packed(cached(root, name, partial(packed, grid, gpu), "packing")) for gpu, name in names.items()]
    site = Site()
    scripts, errors = _add_shards(site, root, grid, packs)
    for name, figure in drawn.items():
        site.add(f"figures/{name}.vl.json", figure.published)
    progress("pages")
    addresses = _add_assets(site, root, drawn, scripts)
    published = _add_for_publishing(site, root, prose, drawn, base_url) if base_url else None
    for name, html in page.render(root, grid, prose, default, drawn, addresses, published).items():
        site.add(name, html)
    progress("links and budgets")
    read = pages(site)
    errors += [*broken_links(root, site, read), *malformed(root, read, prose.errors)]
    errors += _first_load(site, root, grid, addresses)
    if errors:
        raise LessonErrors(errors)
    return site


_last: dict[str, tuple[Facts, dict[str, Any]]] = {}


def _ledger(root: Path, grid: Grid) -> tuple[Facts, dict[str, Any]]:
    """The facts of a grid and its default shard; those of the last build where the ledger's files are the same."""
    key = contents_key(root, drawings.FILES)
    if key not in _last:
        _last.clear()
        _last[key] = Facts(grid), shard(grid, grid.defaults)
    return _last[key]


def _add_assets(site: Site, root: Path, drawn: Mapping[str, Figure], scripts: Mapping[str, str]) -> page.Addresses:
    """Add what the page asks for by hashed names: styles, scripts, icon, the figures' scripts."""
    theme = root / "theme"
    tokens, colours = theme_text(root / TOKENS), light_colours(root)
    parts = [tokens, concatenated(theme / "css", ".css", ["tokens.css"])]
    css = "\n".join([*parts, kernel_css(), scheme_css(colours), pairing_css(colours)])
    return page.Addresses(
        css=site.add_hashed("assets/lesson.css", css),
        early=site.add_hashed("assets/early.js", theme_text(theme / "js" / "early.js")),
        js=site.add_hashed("assets/lesson.js", concatenated(theme / "js", ".js", APART)),
        icon=site.add_hashed("assets/icon.svg", theme_text(theme / "icon.svg")),
        vega=site.add_hashed("assets/vega.js", cached(root, f"vega-{runtime_key()}.js", vega_runtime, "vega")),
        figure_scripts={
            figure.name: site.add_hashed(f"assets/{figure.name}.js", figure.script)
            for figure in drawn.values()
            if figure.script
        },
        shard_scripts=scripts,
    )


def _add_for_publishing(
    site: Site, root: Path, prose: Prose, drawn: Mapping[str, Figure], base_url: str
) -> page.Published:
    """Add what needs whole addresses: the picture for shared links, and the site map."""
    base = base_url.rstrip("/") + "/"
    colours = light_colours(root)
    kicker = Markup(prose.kicker_html).striptags()
    name = site.add_hashed("assets/card.png", card(prose.title, kicker, drawn["roofline"].svgs["wide"], colours))
    site.add("sitemap.xml", page.sitemap(base))
    return page.Published(base, base + name)


def _shard_files(root: Path, grid: Grid) -> dict[str, str]:
    """GPU → the name of its shards in the cache."""
    names, made_by = {}, program("packing")
    for gpu in dict.fromkeys(choice.gpu for choice in grid.shard_points()):
        files = (GRID_FILE, f"content/models/{grid.model.name}.json", f"content/gpus/{gpu}.toml")
        names[gpu] = f"shards_{gpu}-{contents_key(root, files, made_by)}.txt"
    return names


def get_ready() -> None:
    """Load what the next build of this process may need: what draws here, what makes shards in a second one."""
    beside.keep_helper(_LOADED)
    from builder.figures import warm_up

    warm_up()


_read_packed = lru_cache(maxsize=16)(Packed.read)


def _add_shards(site: Site, root: Path, grid: Grid, made: Sequence[Packed]) -> tuple[dict[str, str], list[LessonError]]:
    """Add every shard, as JSON under its own name and as a script that hands over the same text.

    A page from a file can't fetch, but it can load a classic script. Returns the scripts' addresses by id, and whether
    the shards break their budget.
    """
    scripts: dict[str, str] = {}
    for part in made:
        for name, document, script in part.files:
            site.add(f"data/{name}.json", document)
            scripts[name] = site.add_hashed(f"data/{name}.js", script)
    # all of them grow with the axes: the largest says it for all
    most = max(made, key=lambda part: part.size)
    errors = check_shard_size(grid, json.loads(most.texts[most.largest]), most.size)
    return scripts, [_at_budget(root, "shard", error) for error in errors]


def _at_budget(root: Path, key: str, error: LessonError) -> LessonError:
    """The error at the line of grid.toml that states the budget it breaks."""
    line = read_toml(root / GRID_FILE, GRID_FILE).line_of("budget", key)
    return LessonError(error.message, path=GRID_FILE, line=line, hint=error.hint)


_sent = lru_cache(maxsize=8)(compressed_size)


def _first_load(site: Site, root: Path, grid: Grid, addresses: page.Addresses) -> list[LessonError]:
    """An error where more must arrive before the bench answers than the budget allows."""
    names = ("index.html", addresses.css, addresses.early, addresses.js)
    budget = grid.budget["before_the_bench_answers"]
    if sum(_sent(site.files[name], level=4) for name in names) <= budget:
        return []  # even by a quick look, which finds more
    first = {name: _sent(site.files[name]) for name in names}
    if sum(first.values()) <= budget:
        return []
    largest = max(first, key=lambda name: first[name])
    message = (
        f"{sum(first.values()):,} bytes compressed must arrive before the bench answers, over "
        f"budget.before_the_bench_answers of {budget:,}; the largest file is {largest} with {first[largest]:,}"
    )
    hint = f"make {largest} smaller, or raise the budget"
    error = LessonError(message, hint=hint)
    return [_at_budget(root, "before_the_bench_answers", error)]
