"""What is kept depends on the code that made it, and on no other."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from builder import program as program_module
from builder.program import imported, is_on_disk, program, read_sources
from tests.conftest import ROOT

SOURCES = sorted((ROOT / "builder").glob("*.py"))
MODULES = {path.stem for path in SOURCES}


@pytest.fixture
def builder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the builder to edit, of which program() speaks."""
    before = program_module.loaded()
    shutil.copytree(ROOT / "builder", tmp_path / "builder", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(program_module, "FOLDER", tmp_path / "builder")
    yield tmp_path / "builder"
    program_module.load(before)


def hashes() -> dict[str, str]:
    """By the module whose work is kept, once what is on disk is loaded."""
    program_module.load(read_sources())
    return {name: program(name) for name in ("packing", "vega", "figures", "drawings")}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_every_import_is_found(path: Path) -> None:
    """As Python's own parser finds them, at the top and inside functions."""
    source = path.read_bytes()
    expected = set()
    for node in ast.walk(ast.parse(source)):
        assert not getattr(node, "level", 0), "of a kind that isn't looked for"
        if isinstance(node, ast.ImportFrom) and node.module == "builder":
            expected |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("builder."):
            expected.add(str(node.module).removeprefix("builder."))
        elif isinstance(node, ast.Import):
            assert not any(alias.name.startswith("builder") for alias in node.names), "of a kind that isn't looked for"
    assert expected <= imported(source)
    assert imported(source) & MODULES == expected & MODULES


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("kernels", {"packing", "figures", "drawings"}),
        ("units", {"packing", "drawings"}),
        ("errors", {"packing", "drawings"}),
        ("palette", {"figures", "drawings"}),
        ("ledger", {"packing", "drawings"}),
        ("display", {"packing", "drawings"}),
        ("shards", {"packing", "drawings"}),
        ("packing", {"packing"}),
        ("series", {"drawings"}),
        ("charts", {"figures", "drawings"}),
        ("svg", {"figures", "drawings"}),
        ("vega", {"vega", "figures", "drawings"}),
        ("drawings", {"drawings"}),
        ("__init__", {"packing", "vega", "figures", "drawings"}),
        ("page", set()),
        ("prose", set()),
        ("build", set()),
        ("serve", set()),
    ],
)
def test_an_edit_changes_what_it_takes_part_in(builder: Path, name: str, changed: set[str]) -> None:
    """So an edit of how a page is put together makes neither shards nor drawings anew, and one of the ledger only those
    drawings that show other rows.
    """
    before = hashes()
    with (builder / f"{name}.py").open("a", encoding="utf-8") as file:
        file.write("# edited\n")
    after = hashes()
    assert {each for each in after if after[each] != before[each]} == changed


def test_the_libraries_are_part_of_it(builder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version may count or draw otherwise: nothing kept by the one before is taken."""
    before = hashes()
    monkeypatch.setattr("importlib.metadata.version", lambda name: f"{name} of tomorrow")
    after = hashes()
    assert not set(before.values()) & set(after.values())


def test_it_speaks_of_the_code_that_is_loaded(builder: Path) -> None:
    """Not of what somebody saves meanwhile, whatever its text is; and one knows that somebody has."""
    before = hashes()
    assert is_on_disk("drawings")
    (builder / "charts.py").write_bytes(b"# gr\xfcn, and no UTF-8\n")
    program.cache_clear()
    assert {name: program(name) for name in before} == before
    assert not is_on_disk("drawings")
    assert is_on_disk("packing")
    assert hashes() != before
    assert is_on_disk("drawings")
    (builder / "charts.py").unlink()
    assert not is_on_disk("figures")
