"""What CONTRIBUTING says about adding a kernel, an axis, a figure, a control and a quantity works as it stands."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builder.grid import load_grid
from builder.kernels import KERNELS
from builder.roofline import BANDWIDTH_EFFICIENCY
from tests.examples import CONTRIBUTING, apply, examples, house, run
from tests.toys import ROOT, lesson_model

LEDGER = ("builder", "ledger", "--format", "json")
EXAMPLES = examples()
Added = Callable[[str], Path]


@pytest.fixture
def added(tmp_path: Path) -> Added:
    """Makes a copy of the house to which the example of a name has been added, as ruff likes it."""

    def added(name: str) -> Path:
        root = house(tmp_path)
        apply(EXAMPLES[name], root)
        run(root, "ruff", "check", "builder")
        run(root, "ruff", "format", "--check", "builder")
        return root

    return added


def built(root: Path) -> str:
    """The page that the copy's builder makes."""
    run(root, "builder", "build", "-q", "--out", "built")
    return (root / "built" / "index.html").read_text(encoding="utf-8")


def rows(root: Path, *options: str) -> dict[str, Any]:
    """The rows of `lesson ledger` by name."""
    return {row["kernel"]: row for row in json.loads(run(root, *LEDGER, *options))["rows"]}


def test_every_diff_is_an_example_that_is_carried_out() -> None:
    """Each has a test here that names it."""
    diffs = (ROOT / CONTRIBUTING).read_text(encoding="utf-8").count("```diff\n")
    assert len(EXAMPLES) == diffs
    assert set(EXAMPLES) == {"kernel", "axis", "figure", "control", "quantity"}


def test_a_kernel_is_a_row_of_the_ledger_and_of_the_page(added: Added) -> None:
    """With its FLOPs, its bytes, its colour and its dot."""
    root = added("kernel")
    found = rows(root, "--tokens", "3")
    assert list(found) == [*KERNELS, "sampling"]
    logits = 3 * lesson_model().vocab_size
    assert (found["sampling"]["flops"], found["sampling"]["bytes_moved"]) == (5 * logits, 2 * logits)
    page = built(root)
    row = re.search(r'<tr data-kernel="sampling".*?</tr>', page, re.DOTALL)
    assert row
    assert '<circle class="k-sampling"' in row[0]
    assert '<td class="figure" data-column="arithmetic_intensity">2.50</td>' in row[0]
    assert ".k-sampling{fill:var(--sampling)" in next((root / "built" / "assets").glob("lesson.*.css")).read_text()
    spec = json.loads((root / "built" / "figures" / "roofline.vl.json").read_text(encoding="utf-8"))
    assert [dot["kernel"] for dot in spec["datasets"]["kernels"]] == [*KERNELS, "sampling"]


def test_an_axis_is_a_control_with_shards_and_facts_of_its_own(added: Added) -> None:
    """At its first value everything is as it was; at the other the elementwise row moves fewer bytes."""
    root = added("axis")
    norms = ("apart", "fused")
    apart, fused = (rows(root, "--norms", name, "--tokens", "3")["elementwise"] for name in norms)
    model = lesson_model()
    assert apart["bytes_moved"] - fused["bytes_moved"] == 3 * model.layers * 2 * model.hidden_size * 2
    gap = ("--tokens", "3", "--assume", "launch_gap=1")
    launched = [rows(root, "--norms", name, *gap)["elementwise"]["time"] for name in norms]
    assert launched[0] - launched[1] == pytest.approx(2 * model.layers, rel=1e-4)
    told = run(root, *LEDGER, "--norms", "fuse", status=2)
    assert "norms is none of its values: 'fuse'. did you mean 'fused'?" in told
    lesson = root / "content" / "lesson.md"
    text = lesson.read_text(encoding="utf-8")
    lesson.write_text(text + "\nIt moves [15.2 GiB]{bytes_moved @ norms=fused}.\n", encoding="utf-8")
    page = built(root)
    assert re.findall(r'<input type="radio" name="norms" value="(\w+)"( checked)?', page) == [
        ("apart", " checked"),
        ("fused", ""),
    ]
    assert '&amp;attention=gqa&amp;norms=fused"' in page
    assert {path.stem for path in (root / "built" / "data").glob("*.json")} == {
        "h100-bf16-bf16-gqa-apart",
        "h100-bf16-bf16-gqa-fused",
    }


def test_a_figure_is_drawn_and_its_marks_are_counted(added: Added) -> None:
    """A dot for each batch of the axis; without its rows it is no figure, and there is no page."""
    root = added("figure")
    page = built(root)
    figure = re.search(r'<figure id="[^"]+" data-figure="bytes-per-token".*?</figure>', page, re.DOTALL)
    assert figure
    dots = re.findall(r'<g class="dots_marks">(.*?)</g>', figure[0], re.DOTALL)
    batches = len(load_grid(ROOT).axes["tokens"])
    assert [drawn.count("<path") for drawn in dots] == [batches, batches]  # wide, and for a phone
    charts = root / "builder" / "charts.py"
    text = charts.read_text(encoding="utf-8")
    charts.write_text(text.replace('dataset("dots", "dots").mark', 'dataset("dot", "dots").mark'), encoding="utf-8")
    assert f"dots shows 0 of {batches}" in run(root, "builder", "build", "--out", "built", status=1)


def test_a_control_is_on_the_page_with_its_script(added: Added) -> None:
    """What it does is seen in a browser: tests/browser/test_examples.py."""
    root = added("control")
    assert '<button type="button" data-fill>' in built(root)
    assert "[data-fill]" in next((root / "built" / "assets").glob("lesson.*.js")).read_text(encoding="utf-8")


def test_a_quantity_is_quoted_and_exported(added: Added) -> None:
    """The text that quotes it is checked: another number is refused, with the right one."""
    root = added("quantity")
    total = json.loads(run(root, *LEDGER))["total"]
    assert total["bandwidth_share"] == pytest.approx(BANDWIDTH_EFFICIENCY)  # alone, every row waits for memory
    (bound,) = json.loads(run(root, "builder", "numbers", "--format", "json"))
    assert (bound["fact"], bound["status"], bound["value"]) == ("bandwidth_share", "ok", total["bandwidth_share"])
    assert "is busy" in built(root)
    lesson = root / "content" / "lesson.md"
    lesson.write_text(lesson.read_text(encoding="utf-8").replace("[80%]", "[79%]"), encoding="utf-8")
    assert "79 → 80: bandwidth_share is 0.8" in run(root, "builder", "numbers", status=1)
