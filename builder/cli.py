"""The commands. Only this file prints and exits.

Exit codes: 0 fine, 1 the content is wrong, 2 the command line is.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from builder import report
from builder.assumptions import NAMES
from builder.assumptions import assume as assumed
from builder.catalog import Model, load_gpus, load_model, load_models
from builder.errors import LessonError, LessonErrors, did_you_mean, with_excerpts
from builder.grid import AXES, Grid, load_grid
from builder.ledger import ATTENTIONS, PHASES
from builder.site import replace_file
from builder.units import KV_DTYPES, WEIGHT_DTYPES, parse_position


def project_root() -> Path:
    """The checkout: the nearest folder with content/grid.toml from here up, else the one that holds this package."""
    for folder in (Path.cwd(), *Path.cwd().parents):
        if (folder / "content" / "grid.toml").is_file():
            return folder
    return Path(__file__).resolve().parent.parent


@contextmanager
def _content_errors() -> Iterator[None]:
    """Print what is wrong with the content, all of it, and exit with 1. On a terminal each error quotes its line."""
    try:
        yield
    except (LessonError, LessonErrors) as problem:
        errors = problem.errors if isinstance(problem, LessonErrors) else [problem]
        text = "\n".join(str(error) for error in errors)
        click.echo(with_excerpts(text, project_root()) if sys.stderr.isatty() else text, err=True)
        if len(errors) > 1:
            click.echo(f"{len(errors)} errors", err=True)
        sys.exit(1)


class _Position(click.ParamType[int]):
    name = "count"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return value if isinstance(value, int) else parse_position(value)
        except ValueError:
            self.fail(f"{value!r} is not a number of tokens: write 4096, 4,096 or 8k (8,192)", param, ctx)


def _model(grid: Grid, name: str | None, root: Path) -> Model:
    """The model of the lesson, another of content/models by name, or one from a config.json."""
    if name is None:
        return grid.model
    models = load_models(root)
    for known in models:
        if known.lower() == name.lower():
            return models[known]
    path = Path(name)
    if path.is_file():
        return load_model(path, name)
    raise click.BadParameter(_unknown(name, "neither in content/models nor a file", models), param_hint="--model")


def _unknown(name: str, what: str, known: Iterable[str]) -> str:
    hint = did_you_mean(name, known)
    return f"'{name}' is {what}" + (f": {hint}" if hint else "")


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise LessonError(f"'{text}' says no value", hint="write --assume lm_head=bf16")
    return name.strip(), value.strip()


class _Steps:
    """The steps of a build: a line that changes on a terminal, nothing in a pipe, and with -v how long each took."""

    def __init__(self, verbose: bool, quiet: bool) -> None:
        self.verbose = verbose and not quiet
        self.live = sys.stderr.isatty() and not quiet and not verbose
        self.name, self.since = "loading the program", time.perf_counter()

    def __call__(self, name: str) -> None:
        now = time.perf_counter()
        if self.verbose:
            click.echo(f"{now - self.since:6.2f} s  {self.name}", err=True)
        elif self.live:
            click.echo(f"\r\x1b[K{name} …", nl=False, err=True)
        self.name, self.since = name, now

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        if self.verbose:
            self("")
        elif self.live:
            click.echo("\r\x1b[K", nl=False, err=True)


EXIT_STATUS = "Exit status: 0 fine, 1 the content is wrong, 2 the command line is."


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=EXIT_STATUS)
@click.version_option(package_name="lesson")
def main() -> None:
    """Arithmetic intensity and the roofline: build the lesson, or ask its ledger.

    Works in any folder of a checkout, on the nearest content/grid.toml from there up.

    Example: lesson serve
    """


_FORMAT = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="A table to read, or data to compute with.",
)


@main.command()
@click.option("--phase", type=click.Choice(PHASES), help="Whether sequences each add one token, or one adds many.")
@click.option("--tokens", type=_Position(), help="New tokens in the pass: decode's batch, or the prompt. 8k is 8,192.")
@click.option("--context", type=_Position(), help="Cached tokens: each sequence's in decode, those before in prefill.")
@click.option("--gpu", help="A GPU of content/gpus, by the name of its file.")
@click.option("--weights", type=click.Choice(WEIGHT_DTYPES), help="Dtype of the weights; only w8a8 multiplies in FP8.")
@click.option("--kv", type=click.Choice(KV_DTYPES), help="Dtype of the KV cache.")
@click.option("--attention", type=click.Choice(ATTENTIONS), help="KV heads: as published, one a query head, or one.")
@click.option("--model", "model_name", help="A model of content/models, or a published config.json.")
@click.option(
    "--assume",
    multiple=True,
    metavar="NAME=VALUE",
    help=f"Cost it otherwise; may be given several times. Names: {', '.join(NAMES)}.",
)
@_FORMAT
def ledger(model_name: str | None, assume: tuple[str, ...], form: str, **choices: Any) -> None:
    """Print what one forward pass costs, kernel by kernel.

    At any point, also one that no slider reaches; an option that isn't given is as the page starts. The table rounds as
    the page does. JSON and CSV are unrounded and in SI units: bytes, FLOPs, seconds; shares are fractions; the bound is
    memory, ridge, compute or null.

    Example: lesson ledger --tokens 64 --context 8k --gpu h200
    """
    root = project_root()
    with _content_errors():
        grid = load_grid(root)
        gpus = load_gpus(root)
        model = _model(grid, model_name, root)
    gpu_id = grid.defaults.gpu if choices["gpu"] is None else choices["gpu"]
    if gpu_id not in gpus:
        raise click.BadParameter(_unknown(gpu_id, "not in content/gpus", gpus), param_hint="--gpu")
    point = replace(grid.defaults, **{axis: choices[axis] for axis in AXES if choices[axis] is not None})
    gpu = gpus[gpu_id]
    try:
        assumptions = assumed(dict(_pair(text) for text in assume))
        found = report.document(model, gpu, point, assumptions)
    except LessonError as error:
        raise click.UsageError(f"{error.message}. {error.hint or ''}".strip()) from None
    if form == "table":
        click.echo(report.table(model, gpu, point, assumptions))
        return
    text = report.csv_text(found) if form == "csv" else json.dumps(found, indent=2, allow_nan=False) + "\n"
    click.echo(text, nl=False)


@main.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--gpu", help="The GPU that an export of Nsight Compute comes from, one of content/gpus.")
@click.option("--model", "model_name", help="The model that was measured: one of content/models, or a config.json.")
@click.option("--svg", type=click.Path(dir_okay=False, path_type=Path), help="Draw it too, into this file.")
@_FORMAT
def compare(file: Path, gpu: str | None, model_name: str | None, svg: Path | None, form: str) -> None:
    """Hold your own measurements beside the ledger.

    Passes of a serving benchmark, or kernels of Nsight Compute. FILE is a CSV with the columns phase, tokens, context,
    gpu, weights, kv and either milliseconds or tokens_per_second; attention, model, name, dram_active and tensor_active
    may stand beside them. Or it is what `ncu --csv` exports, as --page raw or --page details.

    Example: lesson compare content/samples/serving.csv --svg serving.svg
    """
    from builder import compare as comparing
    from builder import compare_report as told
    from builder.catalog import read_text
    from builder.nsight import is_export, read_export

    if svg is not None and (svg.suffix.lower() != ".svg" or not svg.parent.is_dir()):
        raise click.BadParameter("name a file that ends in .svg, in a folder that is there", param_hint="--svg")
    root = project_root()
    with _content_errors():
        grid, gpus, models = load_grid(root), load_gpus(root), load_models(root)
        model = _model(grid, model_name, root)
        if gpu is not None and gpu not in gpus:
            raise click.BadParameter(_unknown(gpu, "not in content/gpus", gpus), param_hint="--gpu")
        shown = click.format_filename(file)
        text = read_text(file, shown)
        if is_export(text):
            if model_name is not None:
                raise click.UsageError("--model is for passes; kernels of Nsight Compute bring their own numbers")
            export = read_export(text, shown)
            under = gpus[gpu] if gpu else comparing.gpu_of(export, gpus) or gpus[grid.defaults.gpu]
            kernels = comparing.place(export, under)
            found, rows, table = told.kernels(kernels, under), "kernels", told.kernel_table(kernels, export, under)
        else:
            if gpu is not None:
                raise click.UsageError("--gpu is for exports of Nsight Compute; each row of passes names its own")
            measured = comparing.read_measurements(text, shown, model, models, gpus, grid.defaults)
            passes = [comparing.compare(each) for each in measured]
            found, rows, table = told.measurements(passes), "measurements", told.measurement_table(passes)
        if svg is not None:
            from builder import compare_chart  # as `build`: Altair takes a while to load
            from builder.colours import light_colours

            colours = light_colours(root)
            if rows == "kernels":
                replace_file(svg, compare_chart.kernels(kernels, under, colours))
            else:
                replace_file(svg, compare_chart.measurements(passes, colours))
    if form == "table":
        click.echo(table)
    else:
        text = told.csv_text(found[rows]) if form == "csv" else json.dumps(found, indent=2, allow_nan=False) + "\n"
        click.echo(text, nl=False)
    if svg is not None:
        click.echo(f"wrote {click.format_filename(svg)}", err=True)


@main.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    show_default="site in the checkout",
    help="The folder of the site: empty, new, or of an earlier build.",
)
@click.option("--base-url", help="Where the site will be published: adds its address, its card and a site map.")
@click.option("-v", "--verbose", is_flag=True, help="Say where the time goes.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but what is wrong.")
def build(out: Path | None, base_url: str | None, verbose: bool, quiet: bool) -> None:
    """Build the lesson into a folder.

    Any static host can show it, under any path, and so can a double click on its index.html. Nothing is written unless
    all of the content is right.

    Example: lesson build --out public --base-url https://example.org/roofline/
    """
    steps = _Steps(verbose, quiet)
    from builder.build import build as build_site  # Altair takes a while to load, and `ledger` needs none of it

    root = project_root()
    target = out or root / "site"
    with _content_errors(), steps:
        site = build_site(root, target, base_url, progress=steps)
    if not quiet:
        size = sum(len(data) for data in site.files.values()) / 1e6
        click.echo(f"{len(site.files)} files, {size:.1f} MB in {click.format_filename(target)}")


@main.command()
@click.option("--fix", is_flag=True, help="Rewrite stale numbers in place: digits change, and nothing else.")
@click.option("--diff", "ref", metavar="REF", help="Tell what changed since a git revision instead.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "json"]),
    default="text",
    show_default=True,
    help="For a terminal, for a pull request, or to compute with.",
)
def numbers(fix: bool, ref: str | None, form: str) -> None:
    """List the numbers of the text, rewrite or compare them.

    Each is listed with its place, the fact that it is bound to, and that fact's value. A claim that became false is
    told and never rewritten. What stays wrong is an exit status of 1.

    Example: lesson numbers --fix && lesson numbers --diff HEAD
    """
    if fix and ref is not None:
        raise click.UsageError("--fix and --diff are two things to do: one at a time")
    from builder import numbers as bound
    from builder.facts import Facts
    from builder.prose import read, sources

    root = project_root()
    with _content_errors():
        facts, texts = Facts(load_grid(root)), sources(root)
        if fix:
            fixed = bound.fix_all(texts, facts)
            for path, text in fixed.texts.items():
                replace_file(root / path, text)
            for each in fixed.rewritten:
                click.echo(f"{each.path}:{each.line}:{each.column}: {each.said} → {each.written}: {each.fact}")
            click.echo(f"{len(fixed.rewritten)} rewritten")
            prose = fixed.prose
        else:
            prose = read(texts, facts)
            if ref is None:
                click.echo(bound.listing(prose, form), nl=False)
            else:
                with tempfile.TemporaryDirectory() as folder:
                    click.echo(bound.report(bound.diff(root, ref, prose, Path(folder)), form), nl=False)
        if prose.errors:
            raise LessonErrors(prose.errors)


@main.command()
@click.option(
    "--external",
    is_flag=True,
    help="Ask every address outside the site instead, tell which are dead; always exits with 0.",
)
def check(external: bool) -> None:
    """Check all of the content at once, and write nothing.

    Numbers and claims, spelling, links and anchors, images, headings and markup, sources, what nothing uses, budgets:
    each mistake with file, line, column and remedy. Addresses outside the site are asked apart, since whether another
    server answers today says nothing about the content.

    Example: lesson check && lesson check --external
    """
    if external:
        from builder.external import report as ask_outside

        for line in ask_outside(project_root()):
            click.echo(line)
        return
    from builder.check import check as check_content
    from builder.numbers import summary

    with _content_errors():
        prose, errors = check_content(project_root())
        if errors:
            raise LessonErrors(errors)
        assert prose is not None
    click.echo(f"Nothing is wrong. Numbers in the text: {summary(prose)}.")


@main.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    show_default="site in the checkout",
    help="The folder of the site: empty, new, or of an earlier build.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="The next free one where it is taken; 0: any.",
)
def serve(out: Path | None, port: int) -> None:
    """Build the lesson, show it here, and rebuild on every save.

    On this machine alone, and open pages reload. What is wrong is shown over the page and on the terminal, and the site
    stays as it was. Ctrl-C ends it.

    Example: lesson serve --port 8080
    """
    from builder.serve import serve as serve_site

    root = project_root()
    with _content_errors():
        serve_site(root=root, out=out or root / "site", port=port, report=click.echo)


@main.group()
def new() -> None:
    """Add a model or a GPU: a valid file, or none.

    Its source is added to content/sources.toml. What would be costed wrongly is refused, and nothing is written.

    Example: lesson new gpu
    """


def _written(files: Mapping[str, str], then: str) -> None:
    """Write new files and say what comes next."""
    for path, text in files.items():
        replace_file(project_root() / path, text)
        click.echo(f"wrote {path}")
    click.echo(then)


@new.command("model")
@click.argument("name")
@click.argument("config", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--url", prompt="Address of the published config.json", help="Where the file is published.")
def new_model(name: str, config: Path, url: str) -> None:
    """Take a published config.json into the lesson, untouched.

    NAME is what the lesson will call the model, CONFIG the file as its publisher ships it.

    Example: lesson new model Qwen3-14B config.json --url https://…
    """
    from builder import new as made

    with _content_errors():
        files = made.new_model(project_root(), name, config, url)
        _written(files, f"Ask for it with `lesson ledger --model {name}`, or name it in content/grid.toml.")


@new.command("gpu")
@click.option(
    "--label",
    prompt="Short name, as on the bench",
    help="Short name, and that of the file: H100.",
)
@click.option("--name", prompt="Full name", help="Full name: H100 SXM.")
@click.option("--year", type=int, prompt="Year", help="Year of its release.")
@click.option("--bf16", type=float, prompt="Dense BF16 TFLOP/s", help="Dense BF16 TFLOP/s: without sparsity.")
@click.option("--fp8", type=float, help="Dense FP8 TFLOP/s; left out where the tensor cores have none.")
@click.option("--bandwidth", type=float, prompt="Memory bandwidth, TB/s", help="TB/s: 10^12 bytes a second.")
@click.option("--memory", type=int, prompt="Memory, MiB", help="MiB: the total that nvidia-smi reports.")
@click.option("--url", prompt="Address of the data sheet", help="Address of the data sheet.")
def new_gpu(**answers: Any) -> None:
    """Take a GPU's data sheet into the lesson.

    Asks for what isn't given. Data sheets like to print peaks with sparsity, which are twice the dense ones that count
    here.

    Example: lesson new gpu --label H100 --name "H100 SXM" --year 2022 --bf16 989 --fp8 1979
    """
    from builder import new as made

    with _content_errors():
        files = made.new_gpu(project_root(), answers)
        (path, *_) = files
        _written(
            files,
            f"Ask for it with `lesson ledger --gpu {Path(path).stem}`, or add it to axes.gpu in content/grid.toml.",
        )
