"""From a checkout to a folder: the same bytes anywhere, within the budgets, and all or nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from builder import beside, build, drawings, figures
from builder.check import check
from builder.colours import read_colours
from builder.drawn import Figure
from builder.errors import LessonErrors
from builder.grid import load_grid
from builder.shards import look_up, shard
from builder.site import compressed_size, hashed
from tests.toys import ROOT

LESSON = """\
---
title: A small lesson
kicker: For tests
dek: Parts, and [1 token]{tokens}.
description: Parts.
---

## First {#first}

Some words.

::: bench
:::

## Second {#second}

More words.
"""


DRAW = figures.roofline_figure


@cache
def drawing() -> Figure:
    """The roofline of the lesson's default point, drawn once."""
    grid = load_grid(ROOT)
    colours = read_colours((ROOT / "theme" / "css" / "tokens.css").read_text(encoding="utf-8"))
    return DRAW(drawings.roofline_data(grid, shard(grid, grid.defaults)), colours)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the Vega runtime and with a drawing made once: both have tests of their own."""
    monkeypatch.setattr(build, "vega_runtime", lambda: "window.lessonVega = {};")
    monkeypatch.setattr(figures, "roofline_figure", lambda *_: drawing())


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of content and theme to change, with two parts of text, and a grid of one GPU and BF16 alone."""
    root = tmp_path / "checkout"
    for folder in ("content", "theme"):
        shutil.copytree(ROOT / folder, root / folder)
    shutil.rmtree(root / "content" / "sections", ignore_errors=True)
    (root / "content" / "lesson.md").write_text(LESSON, encoding="utf-8")
    grid = root / "content" / "grid.toml"
    text = grid.read_text(encoding="utf-8")
    for axis, only in (("gpu", "h100"), ("weights", "bf16"), ("kv", "bf16"), ("attention", "gqa")):
        text = re.sub(rf"^{axis} = \[.*\]$", f'{axis} = ["{only}"]', text, flags=re.MULTILINE)
    grid.write_text(text, encoding="utf-8")
    return root


def edit(path: Path, old: str, new: str) -> None:
    """Replace a text that stands in a file."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def files_of(folder: Path) -> dict[str, bytes]:
    """Everything in a folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def test_a_build_makes_the_site_that_the_design_names(checkout, tmp_path):
    """Pages, style, script, icon, runtime, figure and spec; a shard as JSON and as a script of the same text."""
    out = tmp_path / "site"
    site = build.build(checkout, out)
    written = files_of(out)
    written.pop("manifest.json")
    assert written == site.files
    plain = {re.sub(r"\.[0-9a-f]{10}\.", ".", name) for name in written}
    assert plain >= {
        "index.html",
        "404.html",
        "assets/lesson.css",
        "assets/lesson.js",
        "assets/icon.svg",
        "assets/vega.js",
        "assets/roofline.js",
        "figures/roofline.vl.json",
        "data/h100-bf16-bf16-gqa.json",
        "data/h100-bf16-bf16-gqa.js",
    }
    assert len([name for name in plain if name.startswith("data/")]) == 2
    text = written["data/h100-bf16-bf16-gqa.json"].decode()
    (script,) = [data.decode() for name, data in written.items() if name.startswith("data/") and name.endswith(".js")]
    assert script == f"lesson.shard({text.strip()});\n"
    document, grid = json.loads(text), load_grid(checkout)
    assert look_up(document, grid, grid.defaults, "gpu.label") == "H100"


def test_every_file_that_a_page_asks_for_is_there(checkout):
    """Addresses in the pages lead to files of the site."""
    site = build.assemble(checkout)
    for name in ("index.html", "404.html"):
        html = site.files[name].decode()
        asked = re.findall(r'(?:src|href|data-spec|data-runtime)="([^"#]+)"', html)
        assert len(asked) >= 3
        assert set(asked) <= set(site.files)
    data = re.search(r'id="bench-data">(.*?)</script>', site.files["index.html"].decode(), re.DOTALL)
    assert data
    assert set(json.loads(data[1])["scripts"].values()) <= set(site.files)


def test_what_pages_refer_to_is_named_by_its_content(checkout):
    """Each asset's name holds its hash: a change of the theme changes the name of that file, and of no other."""
    before = build.assemble(checkout)
    for name, data in before.files.items():
        if name.startswith("assets/") or name.endswith(".js"):
            assert name == hashed(re.sub(r"\.[0-9a-f]{10}\.", ".", name), data)
    with (checkout / "theme" / "css" / "30-controls.css").open("a", encoding="utf-8") as file:
        file.write("\n.x { margin: 0 }\n")
    after = build.assemble(checkout)
    gone, new = set(before.files) - set(after.files), set(after.files) - set(before.files)
    assert [re.sub(r"\.[0-9a-f]{10}\.", ".", name) for name in (*gone, *new)] == ["assets/lesson.css"] * 2
    changed = {name for name in set(before.files) & set(after.files) if before.files[name] != after.files[name]}
    assert changed == {"index.html", "404.html"}


def test_a_changed_model_is_seen(checkout):
    """Nothing is taken from an earlier build: another number in a model's file is another shard."""
    before = build.assemble(checkout).files["data/h100-bf16-bf16-gqa.json"]
    edit(checkout / "content" / "models" / "Qwen3-8B.json", '"vocab_size": 151936', '"vocab_size": 151937')
    assert build.assemble(checkout).files["data/h100-bf16-bf16-gqa.json"] != before


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("content/grid.toml", "shard = 20480", "shard = 0", "content/grid.toml:"),
        ("content/grid.toml", "shard = 20480", "shard = 9000", "budget.shard of 9,000; its longest axis is tokens"),
        ("content/gpus/h100.toml", "year = 2022", "year = 22", "content/gpus/h100.toml:3:"),
        ("content/models/Qwen3-8B.json", '"head_dim": 128', '"head_dim": 0', "content/models/Qwen3-8B.json:"),
        ("theme/templates/index.html", "{% endfor %}", "", "theme/templates/index.html"),
        ("theme/templates/bench.html", "{% endif %}", "", "theme/templates/bench.html:"),
    ],
)
def test_a_failed_build_leaves_the_site_that_was_there(checkout, tmp_path, file, old, new, told):
    """Whatever is wrong, the folder is as it was, to the byte and the time stamp."""
    out = tmp_path / "site"
    build.build(checkout, out)
    for path in out.rglob("*"):
        os.utime(path, (1, 1))
    before = files_of(out)
    edit(checkout / file, old, new)
    with pytest.raises(LessonErrors) as problems:
        build.build(checkout, out)
    assert told in str(problems.value)
    assert files_of(out) == before
    assert {path.stat().st_mtime for path in out.rglob("*")} == {1}


def test_a_foreign_folder_is_refused_before_any_work(checkout, tmp_path, monkeypatch):
    """The folder is looked at first: nobody waits for a build that can't be written."""
    out = tmp_path / "home"
    out.mkdir()
    (out / "thesis.tex").write_bytes(b"x")
    monkeypatch.setattr(build, "assemble", lambda *_: pytest.fail("it was built"))
    with pytest.raises(LessonErrors, match=r"thesis\.tex"):
        build.build(checkout, out)
    assert files_of(out) == {"thesis.tex": b"x"}


def test_a_budget_for_the_first_load_names_the_file_that_weighs_most(checkout):
    """What must arrive before the bench answers is weighed; an excess names the budget and the heaviest file."""
    site = build.assemble(checkout)
    html = site.files["index.html"].decode()
    asked = re.findall(r'<script src="([^"]+)"|<link rel="stylesheet" href="([^"]+)"', html)
    first = {name: compressed_size(site.files[name]) for name in ("index.html", *map("".join, asked))}
    assert len(first) >= 3
    total = sum(first.values())
    heaviest = max(first, key=lambda name: first[name])
    grid = checkout / "content" / "grid.toml"
    edit(grid, "= 110000", f"= {total}")
    build.assemble(checkout)
    edit(grid, f"= {total}", f"= {total - 1}")
    with pytest.raises(LessonErrors) as problems:
        build.assemble(checkout)
    (error,) = problems.value.errors
    assert error.path == "content/grid.toml"
    assert f"{total:,} bytes compressed" in error.message
    assert f"budget.before_the_bench_answers of {total - 1:,}" in error.message
    assert f"{heaviest} with {first[heaviest]:,}" in error.message


def test_shards_over_their_budget_are_told_once(checkout):
    """All shards grow with the axes together: one error, for the largest, at the line that states the budget."""
    grid = checkout / "content" / "grid.toml"
    edit(grid, 'weights = ["bf16"]', 'weights = ["bf16", "int4"]')
    edit(grid, "shard = 20480", "shard = 100")
    with pytest.raises(LessonErrors) as problems:
        build.assemble(checkout)
    (error,) = problems.value.errors
    line = grid.read_text().splitlines().index("shard = 100") + 1
    assert (error.path, error.line) == ("content/grid.toml", line)
    assert error.message.startswith("shard h100-")


def test_what_is_wrong_with_pages_and_budgets_comes_together(checkout):
    """A dead link in the text, an element of a template that may not stand so, and both budgets, in one run."""
    edit(checkout / "content" / "lesson.md", "More words.", "More [words](#nowhere).")
    edit(checkout / "theme" / "templates" / "404.html", "</main>", "<p><div>x</div></p></main>")
    edit(checkout / "content" / "grid.toml", "shard = 20480", "shard = 100")
    edit(checkout / "content" / "grid.toml", "before_the_bench_answers = 110000", "before_the_bench_answers = 100")
    with pytest.raises(LessonErrors) as problems:
        build.assemble(checkout)
    assert [error.path for error in problems.value.errors] == [
        "content/grid.toml",
        "content/grid.toml",
        "content/lesson.md",
        "theme/templates/404.html",
    ]


def test_a_colour_that_is_gone_is_told(checkout, monkeypatch):
    """A figure that misses a token names it, and the file where it should stand."""
    monkeypatch.setattr(figures, "roofline_figure", DRAW)
    edit(checkout / "theme" / "css" / "tokens.css", "--attention:", "--atention:")
    with pytest.raises(LessonErrors) as problems:
        build.assemble(checkout)
    assert [str(error) for error in problems.value.errors] == [
        "theme/css/tokens.css: the figures need the colour --attention\n  hint: did you mean 'atention'?"
    ]


def test_another_key_that_is_missing_is_no_colour(checkout, monkeypatch):
    """A row without its column is our own bug: it comes out as it is, and is never taken for a colour."""

    def without_a_column(*_: object) -> Figure:
        row: dict[str, float] = {}
        raise AssertionError(row["context"])

    monkeypatch.setattr(figures, "roofline_figure", without_a_column)
    with pytest.raises(KeyError, match="context"):
        build.assemble(checkout)


def test_two_tokens_of_one_colour_are_told(checkout):
    """The dark scheme is chosen by the light colour, so two tokens can't share one."""
    edit(checkout / "theme" / "css" / "tokens.css", "#54514a", "#1c1b19")
    with pytest.raises(LessonErrors, match=r"^theme/css/tokens\.css: two colour tokens share a value"):
        build.assemble(checkout)


BUILD = """
import sys
from pathlib import Path
from builder import build
build.build(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def test_two_builds_are_the_same_to_the_byte(checkout, tmp_path):
    """Another folder, hash seed, time zone, locale, umask and working directory: not a byte differs.

    The whole of it, with the Vega runtime, in two processes.
    """
    elsewhere = tmp_path / "a folder of ünusual näme" / "checkout"
    shutil.copytree(checkout, elsewhere)
    # files made in another order, and later
    for path in sorted(elsewhere.rglob("*"), reverse=True):
        os.utime(path, (1, 1))
    common = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    runs = [
        (checkout, {"PYTHONHASHSEED": "1", "TZ": "UTC", "LC_ALL": "C.UTF-8"}, ROOT),
        (
            elsewhere,
            {"PYTHONHASHSEED": "2", "TZ": "Pacific/Kiritimati", "LC_ALL": "POSIX", "PYTHONUTF8": "0"}
            | {"PYTHONCOERCECLOCALE": "0", "LANG": "tr_TR"},
            tmp_path,
        ),
    ]
    running = []
    for number, (root, environment, folder) in enumerate(runs):
        command = [sys.executable, "-c", BUILD, str(root), str(tmp_path / f"site{number}")]
        running.append(
            subprocess.Popen(command, env=common | environment, cwd=folder, stderr=subprocess.PIPE, umask=7 * number)
        )
    told = [process.communicate()[1].decode() for process in running]
    assert [process.returncode for process in running] == [0, 0], told
    first, second = files_of(tmp_path / "site0"), files_of(tmp_path / "site1")
    assert list(first) == list(second)
    assert [name for name in first if first[name] != second[name]] == []
    assert max(len(data) for name, data in first.items() if name.startswith("assets/vega")) > 100_000
    for data in first.values():
        assert str(checkout).encode() not in data


def test_building_twice_changes_nothing(checkout, tmp_path, monkeypatch):
    """A second build in one process is the same, ids of figures and all; no file is written anew."""
    monkeypatch.setattr(figures, "roofline_figure", DRAW)
    out = tmp_path / "site"
    build.build(checkout, out)
    for path in out.rglob("*"):
        os.utime(path, (1, 1))
    before = files_of(out)
    build.build(checkout, out)
    assert files_of(out) == before
    assert {path.stat().st_mtime for path in out.rglob("*") if path.is_file()} == {1}


def test_a_build_for_an_address_has_a_card_and_a_site_map(checkout: Path, tmp_path: Path) -> None:
    """Both stand at whole addresses; without one there is neither."""
    site = build.build(checkout, tmp_path / "site", "https://example.org/lesson")
    (card,) = (name for name in site.files if name.startswith("assets/card."))
    assert site.files[card].startswith(b"\x89PNG")
    assert f'content="https://example.org/lesson/{card}"' in site.files["index.html"].decode()
    assert "<loc>https://example.org/lesson/</loc>" in site.files["sitemap.xml"].decode()
    plain = build.build(checkout, tmp_path / "site")
    assert not {card, "sitemap.xml"} & set(plain.files)


def test_a_process_that_builds_again_gets_ready() -> None:
    """What draws is started here, and what makes shards waits in a process beside."""
    try:
        build.get_ready()
        assert beside.has_helper()
        assert figures.warm_up.cache_info().currsize == 1
    finally:
        beside.end_helper()


def test_a_figure_that_cannot_be_drawn_is_told(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks that are missing, or a GPU that it shows and the bench hasn't: a mistake of the lesson, not a traceback."""

    def empty(*_: object) -> Figure:
        raise ValueError("figure roofline, wide: dots shows 0 of 8")

    monkeypatch.setattr(figures, "roofline_figure", empty)
    with pytest.raises(LessonErrors, match="a figure can't be drawn: figure roofline, wide: dots shows 0 of 8"):
        build.assemble(checkout)
    text = (checkout / "content" / "lesson.md").read_text(encoding="utf-8")
    figure = "::: figure prompt-time\nalt: Times.\n\nWhat to see.\n\nA caption.\n:::\n"
    (checkout / "content" / "lesson.md").write_text(f"{text}\n{figure}", encoding="utf-8")
    with pytest.raises(LessonErrors, match="a figure of the lesson shows the gpu 'a100', which is not on the bench"):
        build.assemble(checkout)


def test_what_follows_from_a_text_that_is_wrong_is_not_told(checkout: Path) -> None:
    """Its markup, once the text is right; but all that is wrong by itself is told at once."""
    words = "[Some](#nowhere) words, 3 of them.\n\n#### Deep\n\n![](missing.png)\n\n### First\n\n### Controls"
    words += "\n\n::: question\nWhat?\n\n- [x] [This](#first).\n\n  So it is.\n:::"
    (checkout / "content" / "lesson.md").write_text(LESSON.replace("Some words.", words), encoding="utf-8")
    _, errors = check(checkout)
    assert {str(error).partition("\n")[0] for error in errors if error.path == "content/lesson.md"} == {
        "content/lesson.md:10:25: '3' is bound to no fact",
        "content/lesson.md:10:8: there is no place '#nowhere' in the lesson",
        "content/lesson.md:12:1: a heading of level 4 follows one of level 2",
        "content/lesson.md:14:1: an image has no alternative text",
        "content/lesson.md:14:5: there is no file 'missing.png' in the site",
        "content/lesson.md:16:5: two headings have the address '#first'",
        "content/lesson.md:18:1: another element of the page has the id 'controls'",
        "content/lesson.md:23:7: an answer is pressed as a whole, so nothing in it is a link or a number of the bench",
    }
    assert not any((error.path or "").startswith("theme") for error in errors)
