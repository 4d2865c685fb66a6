"""The house has an order: a file of builder/ imports only from files above it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

ORDER = [
    "errors",
    "program",
    "reloading",
    "beside",
    "kernels",
    "units",
    "dimensions",
    "numerals",
    "syntax",
    "assumptions",
    "catalog",
    "sheets",
    "nsight",
    "ledger",
    "roofline",
    "display",
    "grid",
    "shards",
    "report",
    "values",
    "vocabulary",
    "claims",
    "facts",
    "drawn",
    "measured",
    "provenance",
    "series",
    "sizes",
    "compare",
    "compare_report",
    "palette",
    "drawing",
    "bench_chart",
    "charts",
    "vega",
    "svg",
    "figures",
    "labels",
    "compare_chart",
    "card",
    "places",
    "external",
    "markdown",
    "lint",
    "spelling",
    "maths",
    "bindings",
    "blocks",
    "rendering",
    "prose",
    "numbers",
    "page",
    "site",
    "colours",
    "drawings",
    "packing",
    "markup",
    "links",
    "build",
    "unused",
    "check",
    "new",
    "serve",
    "cli",
    "__main__",
]
STRANGERS = {"charts": "prose", "prose": "charts"}
# site.py writes the site; cli.py rewrites stale numbers in the prose (`numbers --fix`); beside.py
# has a folder of its own, for what two processes tell each other; reloading.py takes away what Python compiled.
WRITERS = {"site", "cli", "new", "beside", "reloading"}
WRITING_NAMES = {"write_text", "write_bytes", "mkdir", "makedirs", "touch", "unlink", "rmdir", "rmtree", "symlink_to"}
WRITING_CALLS = {"os.replace", "os.rename", "os.remove", "os.unlink", "os.mkdir", "os.makedirs"}
WRITING_MODULES = {"shutil", "tempfile"}
PRINTING_CALLS = {"print", "click.echo", "click.secho", "sys.exit", "exit", "quit", "os._exit", "sys.stdout.write"}
PRINTING_CALLS |= {"sys.stderr.write"}
LONGEST_SCRIPT = 100
HEX_COLOUR = re.compile(r"#(?:[0-9a-fA-F]{8}|[0-9a-fA-F]{6}|[0-9a-fA-F]{3,4})\b")


def modules() -> list[Path]:
    return sorted(path for path in (ROOT / "builder").rglob("*.py") if path.name != "__init__.py")


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and module name of each import of a file of builder/, wherever it stands in the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("builder."):
                    yield node.lineno, alias.name.split(".")[1]
        elif isinstance(node, ast.ImportFrom):
            base = (node.module or "").split(".")
            if node.level or base == ["builder"]:
                names = base[:1] if node.level and base != [""] else [alias.name for alias in node.names]
                yield from ((node.lineno, name) for name in names)
            elif base[0] == "builder":
                yield node.lineno, base[1]


def calls(tree: ast.Module) -> Iterator[tuple[ast.Call, str]]:
    """Each call with its dotted name, such as os.replace or path.write_text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node, ast.unparse(node.func)


def opens_for_writing(call: ast.Call, name: str) -> bool:
    """Whether this is open(path, mode) or path.open(mode) with a mode that writes."""
    if name.split(".")[-1] != "open":
        return False
    position = 1 if name in ("open", "io.open", "codecs.open") else 0
    modes = call.args[position : position + 1] + [word.value for word in call.keywords if word.arg == "mode"]
    return any(not isinstance(mode, ast.Constant) or set(str(mode.value)) & set("wax+") for mode in modes)


def upward(name: str, tree: ast.Module) -> list[str]:
    """What is wrong with the imports of the module `name`."""
    found = []
    for line, other in imports(tree):
        if other not in ORDER:
            found.append(f"builder/{name}.py:{line}: imports builder.{other}, which has no place in ORDER")
        elif ORDER.index(other) >= ORDER.index(name):
            found.append(f"builder/{name}.py:{line}: imports {other}, which stands below it")
        elif STRANGERS.get(name) == other:
            found.append(f"builder/{name}.py:{line}: {name} and {other} never import each other")
    return found


def writing(tree: ast.Module) -> list[int]:
    """Lines that write, make, move or remove files."""
    lines = [
        call.lineno
        for call, name in calls(tree)
        if opens_for_writing(call, name)
        or name.split(".")[-1] in WRITING_NAMES
        or name in WRITING_CALLS
        or name.split(".")[0] in WRITING_MODULES
    ]
    lines += [call.lineno for call, name in calls(tree) if name.endswith(".replace") and is_path_replace(call)]
    return sorted(set(lines))


def is_path_replace(call: ast.Call) -> bool:
    """Path.replace(target) has one argument, str.replace(old, new) two, dataclasses.replace at least a keyword."""
    return len(call.args) == 1 and not call.keywords


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.stem)
def test_every_file_has_its_place(path: Path) -> None:
    """A new file of builder/ is added to ORDER in tests/test_layers.py, below all that it imports."""
    assert path.parent == ROOT / "builder", f"{path}: builder/ has no folders"
    assert path.stem in ORDER, f"builder/{path.name} has no place yet: add it to ORDER in tests/test_layers.py"


@pytest.mark.parametrize("path", [path for path in modules() if path.stem in ORDER], ids=lambda path: path.stem)
def test_a_file_imports_only_from_files_above_it(path: Path) -> None:
    """Nor do prose and charts, which stand side by side, know of each other."""
    assert upward(path.stem, parse(path)) == []


@pytest.mark.parametrize("path", [path for path in modules() if path.stem not in WRITERS], ids=lambda path: path.stem)
def test_only_site_writes_to_disk(path: Path) -> None:
    """One place makes, moves and removes files of the site."""
    lines = writing(parse(path))
    assert lines == [], f"builder/{path.name} writes to disk in lines {lines}: only site.py does"


@pytest.mark.parametrize("path", [path for path in modules() if path.stem != "cli"], ids=lambda path: path.stem)
def test_only_the_commands_print_and_exit(path: Path) -> None:
    """One place prints and exits; every other raises, returns, or calls what cli.py handed it."""
    lines = [call.lineno for call, name in calls(parse(path)) if name in PRINTING_CALLS]
    lines += [
        node.lineno
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Raise) and node.exc and ast.unparse(node.exc).startswith("SystemExit")
    ]
    assert lines == [], f"builder/{path.name} prints or exits in lines {sorted(lines)}: only cli.py does"


@pytest.mark.parametrize(
    ("source", "name", "found"),
    [
        ("from builder.cli import main", "units", 1),
        ("import builder.site", "page", 1),
        ("from builder import page", "prose", 1),
        ("from .serve import serve", "build", 1),
        ("from . import charts", "prose", 1),
        ("from builder.nowhere import x", "cli", 1),
        ("def late():\n    from builder.page import x", "units", 1),
        ("from builder.errors import LessonError\nimport os", "units", 0),
    ],
)
def test_an_upward_import_is_found_however_it_is_written(source: str, name: str, found: int) -> None:
    """This test's own eyes: absolute, relative, whole packages, and imports inside functions."""
    assert len(upward(name, ast.parse(source))) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("open(p, 'w')", 1),
        ("open(p, mode='ab')", 1),
        ("p.open('x')", 1),
        ("p.write_text(t)", 1),
        ("os.replace(a, b)", 1),
        ("p.replace(q)", 1),
        ("shutil.copy(a, b)", 1),
        ("p.parent.mkdir()", 1),
        ("open(p)", 0),
        ("open(p, 'rb')", 0),
        ("p.open()", 0),
        ("text.replace('a', 'b')", 0),
        ("dataclasses.replace(point, tokens=1)", 0),
        ("p.read_text()", 0),
    ],
)
def test_writing_is_found_however_it_is_written(source: str, found: int) -> None:
    """This test's own eyes: modes, methods and modules that write, and what only looks like them."""
    assert len(writing(ast.parse(source))) == found


def test_scripts_are_short() -> None:
    """Each module of the client is under 100 lines."""
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in ROOT.glob("theme/js/*.js")}
    assert lengths, "theme/js/ is empty"
    assert {name: lines for name, lines in lengths.items() if lines >= LONGEST_SCRIPT} == {}


def test_colours_stand_in_one_file() -> None:
    """A literal colour in a style sheet stands in theme/css/tokens.css; all others use its names."""
    found = [
        f"{path.relative_to(ROOT).as_posix()}:{number}: {colour}"
        for path in sorted(ROOT.glob("theme/css/*.css"))
        if path.name != "tokens.css"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for colour in HEX_COLOUR.findall(line)
    ]
    assert found == []
