"""Every constant has a source, a date and a word on disagreement: the lesson's own, and whatever else is refused."""

from __future__ import annotations

import re
import shutil
from html import unescape
from pathlib import Path

import pytest

from builder.errors import LessonErrors
from builder.grid import load_grid
from builder.prose import PROVENANCE_SLOT
from builder.provenance import VALUES, Constant, model_source, provenance, unsourced
from tests.test_page import prose, rendered
from tests.toys import ROOT

# known disagreements as the cost model's hardware table has them, and what a text of each must hold
PUBLISHED = {
    ("A100 80GB SXM", "memory bandwidth"): ("2.039", "40 GB card", "1.555", "201"),
    ("H100 SXM", "BF16 peak, dense"): ("1,979", "sparsity", "twice"),
    ("H100 SXM", "FP8 peak, dense"): ("3,958", "sparsity", "twice"),
    ("H200 SXM", "memory"): ("141 GB",),
    ("B200", "memory bandwidth"): ("7.67", "293"),
    ("B200", "memory"): ("180", "192"),
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the content to break."""
    shutil.copytree(ROOT / "content", tmp_path / "content")
    return tmp_path


def constants() -> dict[tuple[str, str], Constant]:
    """(group, what) → each constant of the lesson."""
    groups, _ = provenance(ROOT, load_grid(ROOT))
    return {(group.title, each.what): each for group in groups for each in group.constants}


def edit(root: Path, name: str, old: str, new: str) -> None:
    path = root / "content" / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_the_lessons_constants_are_sourced():
    """Nothing to tell; all that the page's numbers stand on is there."""
    assert unsourced(ROOT) == []
    found = constants()
    values = {each.value for each in found.values()}
    assert {"989 TFLOP/s", "3.35 TB/s", "81,559 MiB", "1,979 TFLOP/s", "21.2 TFLOP/s, 0.732 TB/s"} <= values
    assert {"75\u00a0%", "80\u00a0%", "90\u00a0%", "5\u00a0µs", "1,073,741,824 bytes"} <= values
    assert len([group for group, _ in found if group == "A100 80GB SXM"]) == 3  # it has no FP8 peak


@pytest.mark.parametrize(("key", "words"), PUBLISHED.items())
def test_known_disagreements_are_told(key, words):
    """What the cost model knows sources to disagree on stands beside the number."""
    assert all(word in constants()[key].disputed for word in words)


def test_a_ridge_in_a_disagreement_is_the_ridge_of_its_numbers():
    """'the 40 GB card has 1.555, a ridge of 201': the peak over that bandwidth."""
    found = 0
    for (title, _), constant in constants().items():
        for bandwidth, ridge in re.findall(r"(\d\.\d+), a ridge of (\d+)", constant.disputed):
            peak = constants().get((title, "BF16 peak, dense"), constants()["A100 80GB SXM", "BF16 peak, dense"])
            assert round(float(peak.value.split()[0].replace(",", "")) / float(bandwidth)) == int(ridge)
            found += 1
    assert found == 3


def test_the_text_quotes_the_rates_that_are_sourced():
    """3.0× and 1.6×, which the prose can't be bound to, are those of constants.toml."""
    text = (ROOT / "content" / "lesson.md").read_text(encoding="utf-8")
    for what in ("growth of peak arithmetic", "growth of DRAM bandwidth"):
        (rate,) = [each for (_, name), each in constants().items() if name.startswith(what)]
        times, every = rate.value.split(" every ")
        assert f"[{times}]{{exempt: Gholami et al. 2024}}" in text
        assert f"every [{every}]{{exempt: Gholami et al. 2024}}" in text
        assert rate.source == "paper.memory_wall"


H100, SOURCES, CONSTANTS = "gpus/h100.toml", "sources.toml", "constants.toml"


@pytest.mark.parametrize(
    ("name", "old", "new", "place", "message"),
    [
        (H100, "sheet.h100", "sheet.h10", 8, "'peak_flops' has the source 'sheet.h10', which is not in content/sou"),
        (H100, 'disagreement = "sold as 80 GB"\n', "", 25, "'memory_mib' doesn't say where sources disagree"),
        ("history.toml", 'disagreement = "none known"\n', "", 8, "'p100' doesn't say where sources disagree"),
        ("history.toml", "sheet.v100", "sheet.v10", 16, "'v100' has the source 'sheet.v10', which is not in content/s"),
        ("measured.toml", 'source = "measured.a', 'source = "measured.', 3, "'source' has the source 'measured.icon"),
        ("measured.toml", "disagreement = ", "disagreement = 3 # ", 3, "'source' doesn't say where sources disagree"),
        (SOURCES, 'data sheet"\nurl = "https:', 'data sheet"\nurl = "http:', None, "'sheet.a100' has no https address"),
        (SOURCES, 'title = "A100 data sheet"\n', "", None, "'sheet.a100' has no title"),
        (SOURCES, 'known = "2026-11"\n', "", None, "'sheet.a100' has no date"),
        (SOURCES, 'known = "2026-11"\n', 'known = "soon"\n', None, "'sheet.a100' has no date"),
        (SOURCES, "year = 2009\n", "year = 20090\n", None, "'paper.roofline' has no date"),
        (
            SOURCES,
            "[model.qwen3_8b]",
            "[model.qwen3_9b]",
            None,
            "'qwen3_8b' has the source 'model.qwen3_8b', which is ",
        ),
        (SOURCES, 'disagreement = "its max', 'said = "its max', None, "'qwen3_8b' doesn't say where sources disagree"),
        (CONSTANTS, 'source = "docs.vllm"\n', "", 18, "'usable_memory' has no source"),
        (CONSTANTS, 'value = "3.0× every two years"\n', "", 28, "'peak_growth' has no value"),
        (CONSTANTS, "[gib]\n", '[gib]\nvalue = "1"\n', 24, "the value of 'gib' stands in the code"),
        (CONSTANTS, "[gib]", "[gab]", 23, "'gab' has no value"),
        (CONSTANTS, "[gib]", "[gab]", None, "nothing is said of 'gib'"),
        (CONSTANTS, 'what = "a GiB', 'waht = "a GiB', 24, "unknown key 'gib.waht'"),
        (CONSTANTS, 'what = "a GiB', 'waht = "a GiB', 23, "'gib' doesn't say what it is"),
        (CONSTANTS, "[compute_efficiency]", "compute = 3\n[compute_efficiency]", 3, "'compute' must be a table"),
    ],
)
def test_a_number_without_provenance_is_refused(checkout, name, old, new, place, message):
    """By check and by the build, with file, line and remedy."""
    edit(checkout, name, old, new)
    told = [error for error in unsourced(checkout) if error.message.startswith(message)]
    assert len(told) == 1, unsourced(checkout)
    assert told[0].path == f"content/{name}" or told[0].path == "content/models/Qwen3-8B.json"
    assert told[0].hint or "source '" in message
    assert place is None or told[0].line == place
    with pytest.raises(LessonErrors) as caught:
        provenance(checkout, load_grid(checkout))
    assert str(told[0]) in map(str, caught.value.errors)


def test_a_file_that_cannot_be_read_is_told(checkout):
    """Its error alone, since nothing can be held against it; a file that no list asks for may be away."""
    edit(checkout, CONSTANTS, "[gib]", "[gib")
    assert [(error.path, error.line) for error in unsourced(checkout)] == [("content/constants.toml", 23)]
    for name in (CONSTANTS, "history.toml", "measured.toml"):
        (checkout / "content" / name).unlink()
    assert unsourced(checkout) == []
    with pytest.raises(LessonErrors) as caught:
        provenance(checkout, load_grid(checkout))
    assert [error.path for error in caught.value.errors] == ["content/constants.toml"]


def test_a_models_source_goes_by_its_name():
    """As `lesson new model` writes it."""
    assert model_source("Qwen3-0.6B") == "model.qwen3_0_6b"


def test_the_page_lists_every_constant():
    """Value, address, date and disagreement of each, in a table that opens without script and reads as text."""
    html = rendered(words=prose(html=PROVENANCE_SLOT))["index.html"]
    (table,) = re.findall(r'<details class="provenance">.*?</details>', html, re.DOTALL)
    assert not re.search(r"<th\b(?! scope=)", table)
    rows = re.findall(r'<th scope="row">(.*?)</th>\s*<td>(.*?)</td>', table, re.DOTALL)
    groups, known = provenance(ROOT, load_grid(ROOT))
    listed = [constant for group in groups for constant in group.constants]
    assert len(rows) == len(listed) >= 27
    for (head, cell), constant in zip(rows, listed, strict=True):
        source = known[constant.source]
        assert unescape(re.sub(r"<[^>]*>", "", head)) == f"{constant.what}: {constant.value}"
        assert tuple(map(unescape, re.findall(r'href="([^"]*)"', cell))) == source.addresses
        words = unescape(re.sub(r"<[^>]*>", "", cell))
        assert words.startswith(source.title)
        assert f"{source.date}. {constant.disputed}" in words
    assert {constant.keys[-1] for constant in listed} >= set(VALUES)


def test_names_in_the_table_are_text(monkeypatch):
    """Nothing of a data file ends up as markup."""
    from builder import page
    from builder import provenance as made

    evil = made.Group("<b>", (made.Constant("<i>", "<u>", "x", "<s>", "", ("x",)),))
    source = made.Source("<q>", ('https://x.org/"><b>',), "2009")
    monkeypatch.setattr(page, "provenance", lambda root, grid: ([evil], {"x": source}))
    html = rendered(words=prose(html=PROVENANCE_SLOT))["index.html"]
    (table,) = re.findall(r'<details class="provenance">.*?</details>', html, re.DOTALL)
    assert not re.search(r"<[biusq]>", table)
