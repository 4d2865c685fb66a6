"""The page as it stands before any script runs: every number in it, and nothing in it that names could break."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from dataclasses import fields, replace
from functools import cache
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from builder import display, page
from builder.drawn import Figure
from builder.errors import LessonErrors
from builder.grid import AXES, Grid, load_grid
from builder.kernels import KERNELS
from builder.page import Addresses, Published, axis_texts, bench_data, render, ticks
from builder.prose import BENCH_SLOT, Prose, Section
from builder.shards import look_up, shard, shard_id
from tests.toys import ROOT, at

SIZES = ("wide", "short", "phone", "strip")
EVIL = '</script><b title="x">&amp;<!--\u2028!'


@cache
def lesson() -> Grid:
    """The lesson's grid."""
    return load_grid(ROOT)


def named(grid: Grid, name: str) -> Grid:
    """The same grid, its model and GPUs called otherwise."""
    gpus = {key: replace(gpu, label=name, name=name) for key, gpu in grid.gpus.items()}
    return replace(grid, model=replace(grid.model, name=name), gpus=gpus)


def prose(title: str = "Title", html: str = "<p>Prose &amp; more</p>") -> Prose:
    """A lesson of two parts, the second with the bench, its HTML safe as the text module makes it."""
    sections = (
        Section("one", 1, "First", "First", html),
        Section("two", 2, "Second", "Second", f"<p>x</p>{BENCH_SLOT}"),
    )
    return Prose(title, escape(title), "Dek", "Kicker", "Description", "", sections)


def addresses(shard_scripts: dict[str, str] | None = None) -> Addresses:
    """An address for everything that a page may ask for."""
    given: dict[str, Any] = {"figure_scripts": {"roofline": "a/r.js"}, "shard_scripts": shard_scripts or {}}
    return Addresses(**{part.name: given.get(part.name, f"a/{part.name}") for part in fields(Addresses)})


def rendered(grid: Grid | None = None, words: Prose | None = None, base_url: str | None = None) -> dict[str, str]:
    """index.html and 404.html of a grid at its default point, with figures that are stand-ins."""
    grid = grid or lesson()
    scripts = {shard_id(choice): f"data/{shard_id(choice)}.js" for choice in grid.shard_points()}
    figures = {"roofline": Figure("roofline", {}, "", {size: f'<svg role="img" id="{size}"></svg>' for size in SIZES})}
    words = words or prose()
    published = Published(base_url, f"{base_url}card.png") if base_url else None
    return render(ROOT, grid, words, shard(grid, grid.defaults), figures, addresses(scripts), published)


class Reader(HTMLParser):
    """Collects start tags, and the text inside each element that has one of some attributes."""

    VOID = frozenset({"meta", "link", "input", "br", "hr", "img", "base", "rect", "line", "circle", "path"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.texts: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(html)
        self.close()
        assert not self.open, [tag for tag, *_ in self.open]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append((tag, dict(attrs), []))

    def handle_endtag(self, tag: str) -> None:
        if tag in self.VOID:
            return
        name, attributes, parts = self.open.pop()
        assert name == tag, f"</{tag}> closes <{name}>"
        self.texts.append((name, attributes, "".join(parts)))

    def handle_data(self, data: str) -> None:
        for _, _, parts in self.open:
            parts.append(data)

    def with_attribute(self, name: str) -> list[tuple[str, str]]:
        """(value of the attribute, text) of every element that has it."""
        return [(attributes[name] or "", words.strip()) for _, attributes, words in self.texts if name in attributes]


@cache
def lesson_page() -> Reader:
    """The lesson's page, read."""
    return Reader(rendered()["index.html"])


def row_cells(html: str) -> dict[str, dict[str, str]]:
    """data-kernel → data-column → text of the cell."""
    rows = {}
    for kernel, row in re.findall(r'<tr data-kernel="(\w+)"[^>]*>(.*?)</tr>', html, re.DOTALL):
        cells = re.findall(r'<td[^>]*data-column="(\w+)"[^>]*>(.*?)</td>', row, re.DOTALL)
        rows[kernel] = {column: unescape(re.sub(r"<[^>]*>", "", cell)).strip() for column, cell in cells}
    return rows


def test_the_ledger_stands_in_the_page_cell_by_cell():
    """Eight rows and the total, seven columns each, at the default point, as the shard has them."""
    grid = lesson()
    document = shard(grid, grid.defaults)
    rows = row_cells(rendered()["index.html"])
    assert list(rows) == [*KERNELS, "total"]
    for kernel in KERNELS:
        expected = {column: look_up(document, grid, grid.defaults, f"{kernel}.{column}") for column in display.COLUMNS}
        latency = look_up(document, grid, grid.defaults, f"{kernel}.latency")
        assert rows[kernel] == expected | {"bound": f"{expected['bound']} {latency}".strip()}
    assert rows["elementwise"]["bound"] == "memory likely latency-bound"
    assert rows["total"]["share"] == "100"
    assert rows["total"]["time"] == look_up(document, grid, grid.defaults, "total.time")


def test_every_readout_stands_in_the_page():
    """The readouts hold the default point's numbers before any script runs."""
    grid = lesson()
    document = shard(grid, grid.defaults)

    def shown(column: str) -> str:
        return look_up(document, grid, grid.defaults, column)

    assert dict(lesson_page().with_attribute("data-readout")) == {
        "throughput": shown("throughput"),
        "time": shown("total.time"),
        "arithmetic_intensity": shown("total.arithmetic_intensity"),
        "peak_share": shown("peak_share"),
        "bytes_moved": shown("total.bytes_moved"),
        "flops": shown("total.flops"),
        "resident_bytes": shown("resident"),
        "largest_batch": shown("largest_batch"),
        "verdict": shown("verdict"),
    }


def test_the_legend_of_latency_stands_where_a_row_has_its_mark():
    """At the start elementwise has; a point where no row does keeps the legend's place, unseen."""
    assert re.search(r'<p class="latency-note">', rendered()["index.html"])
    crowded = replace(lesson(), defaults=replace(lesson().defaults, phase="prefill", tokens=4096))
    assert re.search(r'<p class="latency-note" data-idle>', rendered(crowded)["index.html"])


def test_a_dash_says_aloud_that_nothing_applies():
    """A prefill has no largest batch: its dash is marked, for the style sheet to say so; in decode nothing is."""
    prompt = replace(lesson(), defaults=replace(lesson().defaults, phase="prefill"))
    (dash,) = re.findall(r"<[^>]* data-none>([^<]*)<", rendered(prompt)["index.html"])
    assert dash == display.DASH
    assert " data-none" not in rendered()["index.html"]
    assert "[data-none]::after" in (ROOT / "theme" / "css" / "10-base.css").read_text(encoding="utf-8")


def test_no_choice_is_called_by_its_own_name_twice():
    """What is said of an option beside its label says more than the label."""
    for name in re.findall(r'<input type="radio"[^>]* aria-label="([^"]*)"', rendered()["index.html"]):
        shown, _, spoken = name.partition(": ")
        assert spoken.strip(), name
        assert spoken != shown, name


def test_whatever_echoes_a_column_shows_its_text():
    """Each element that the client will fill already holds that very text, and names a column that exists."""
    grid = lesson()
    document = shard(grid, grid.defaults)
    echoes = lesson_page().with_attribute("data-echo")
    assert len(echoes) > 20
    for column, words in echoes:
        assert words == look_up(document, grid, grid.defaults, column).strip(), column


def test_the_seven_controls_are_native_inputs_at_the_default_point():
    """Ranges for tokens and context, radio groups for the rest; the default position is the chosen one."""
    grid = lesson()
    inputs = [attributes for tag, attributes in lesson_page().tags if tag == "input" and "name" in attributes]
    assert {attributes["name"] for attributes in inputs} == set(AXES)
    for axis in ("tokens", "context"):
        (slider,) = [attributes for attributes in inputs if attributes["name"] == axis]
        values = grid.axes[axis]
        assert (slider["type"], slider["min"], slider["max"], slider["step"]) == (
            "range",
            "0",
            str(len(values) - 1),
            "1",
        )
        assert values[int(slider["value"] or "")] == getattr(grid.defaults, axis)
        assert slider["aria-valuetext"] in {"1 sequence", "8,192 tokens"}
    for axis in set(AXES) - {"tokens", "context"}:
        radios = [attributes for attributes in inputs if attributes["name"] == axis]
        assert {attributes["type"] for attributes in radios} == {"radio"}
        assert tuple(attributes["value"] for attributes in radios) == grid.axes[axis]
        assert [attributes["value"] for attributes in radios if "checked" in attributes] == [
            getattr(grid.defaults, axis)
        ]


def test_an_option_that_the_gpu_refuses_is_disabled_with_the_reason_in_words():
    """Where the lesson starts on an A100; on an H100 nothing is, and the place of the reason is empty."""
    grid = replace(lesson(), defaults=at(gpu="a100"))
    for reader, disabled, why in (
        (Reader(rendered(grid)["index.html"]), ["w8a8"], "A100 has no FP8 tensor cores"),
        (lesson_page(), [], ""),
    ):
        assert [attributes["value"] for _, attributes in reader.tags if "disabled" in attributes] == disabled
        assert [text for _, text in reader.with_attribute("data-why")] == [why]


def test_every_position_of_a_slider_has_a_text_a_voice_and_a_tick():
    """Index by index: value, what is shown, what is said in either phase, a tick; the ends are named."""
    grid = lesson()
    for axis in ("tokens", "context"):
        texts, values = axis_texts(grid)[axis], grid.axes[axis]
        marks = ticks(grid, axis)
        lengths = {len(values), len(texts["values"]), len(texts["texts"]), len(texts["brief"]), len(marks)}
        lengths |= {len(spoken) for spoken in texts["spoken"].values()}
        assert len(lengths) == 1
        assert [mark["at"] for mark in marks] == sorted(mark["at"] for mark in marks)
        assert (marks[0]["at"], marks[-1]["at"]) == (0, 100)
        assert marks[0]["text"]
        assert marks[-1]["text"]
    spoken = axis_texts(grid)["tokens"]["spoken"]
    assert (spoken["decode"][:2], spoken["prefill"][:2]) == (["1 sequence", "2 sequences"], ["1 token", "2 tokens"])


def test_the_bench_data_is_strict_json_with_all_that_the_client_looks_up():
    """Axes, defaults, tables of shares, the default shard, and a script for every other."""
    grid = lesson()
    (data,) = [words for tag, attributes, words in lesson_page().texts if attributes.get("id") == "bench-data"]

    def refuse(constant: str) -> Any:
        raise AssertionError(constant)

    found = json.loads(data, parse_constant=refuse)
    assert found["shard"] == json.loads(json.dumps(shard(grid, grid.defaults)))
    assert found["defaults"] == vars(at())
    assert found["refusals"] == [vars(refusal) for refusal in grid.refusals]
    assert set(found["corners"]) == set(found["trails"]) == set(display.TRAILS)
    assert list(found["axes"]) == list(AXES)
    assert found["tables"] == {"share": list(display.SHARE_TEXTS), "rough": list(display.ROUGH_TEXTS)}
    assert set(found["scripts"]) == {shard_id(choice) for choice in grid.shard_points()}


# the policy


def test_the_page_keeps_its_own_policy():
    """The strict policy as a meta tag before anything is asked for; no inline script, style or handler."""
    for name, html in rendered(base_url="https://example.org/lesson/").items():
        reader = Reader(html)
        assert f'content="{page.POLICY}"' in html.partition("<link")[0].replace("&#39;", "'"), name
        for tag, attributes in reader.tags:
            assert "style" not in attributes, (name, tag)
            assert tag != "style"
            assert not [key for key in attributes if key.startswith("on")], (name, tag)
            if tag == "script":
                assert attributes.get("type") in ("application/json", "application/ld+json") or "src" in attributes


def test_nothing_is_asked_of_another_origin():
    """All addresses are relative: they work under any prefix and from a file."""
    for tag, attributes in lesson_page().tags:
        for key in ("src", "href", "data-spec", "data-runtime"):
            assert not re.match(r"[a-z]+:|/", attributes.get(key) or "", re.IGNORECASE), (tag, attributes)


def test_ids_are_unique():
    """No id stands twice."""
    ids = [attributes["id"] for _, attributes in lesson_page().tags if "id" in attributes]
    twice = {name for name, count in Counter(ids).items() if count > 1}
    assert not twice - set(SIZES)  # the stand-ins of the figures


def test_a_base_address_is_whole_and_ends_in_a_slash():
    """With an address to publish at: canonical in the page, base in the 404, which any depth may show."""
    pages = rendered(base_url="https://example.org/lesson/")
    assert '<link rel="canonical" href="https://example.org/lesson/">' in pages["index.html"]
    assert '<meta property="og:image" content="https://example.org/lesson/card.png">' in pages["index.html"]
    assert '<base href="https://example.org/lesson/">' in pages["404.html"]
    assert "canonical" not in rendered()["index.html"]
    assert "og:image" not in rendered()["index.html"]


def test_a_site_map_names_the_page_and_escapes_it():
    """One page, at its address."""
    assert "<loc>https://example.org/a?b&amp;c</loc>" in page.sitemap("https://example.org/a?b&c")


def test_search_engines_read_what_the_lesson_is():
    """JSON-LD that parses: a learning resource with the title and description of the text."""
    (about,) = [
        words for _, attributes, words in lesson_page().texts if attributes.get("type") == "application/ld+json"
    ]
    found = json.loads(about)
    assert (found["@type"], found["name"]) == ("LearningResource", prose().title)
    assert "url" not in found


# names


def test_a_name_that_looks_like_html_comes_out_as_text():
    """A model and GPUs called '</script><b>' change no tag of the page, and are read back as they were."""
    grid = named(lesson(), EVIL)
    html = rendered(grid)["index.html"]
    plain, evil = lesson_page(), Reader(html)
    assert [tag for tag, _ in evil.tags] == [tag for tag, _ in plain.tags]
    (bench,) = [attributes for tag, attributes in evil.tags if tag == "aside"]
    assert EVIL in (bench["aria-label"] or "")
    assert (EVIL, True) in [(words, column == "gpu.label") for column, words in evil.with_attribute("data-echo")]
    (data,) = [words for _, attributes, words in evil.texts if attributes.get("id") == "bench-data"]
    found = json.loads(data)
    assert found["shard"]["constants"]["gpu.label"] == EVIL
    assert found["axes"]["gpu"]["texts"] == [EVIL] * 4


def test_bench_data_has_no_character_that_could_end_a_script():
    """No '<' and no separator that old JavaScript takes for a line's end."""
    grid = named(lesson(), EVIL)
    drawn = {EVIL: Figure(EVIL, {}, "", {}, here={"unit": EVIL}), "plain": Figure("plain", {}, "", {})}
    data = bench_data(grid, shard(grid, grid.defaults), {EVIL: EVIL}, drawn)
    assert not set(data) & set("<\u2028\u2029")
    assert json.loads(data)["scripts"] == {EVIL: EVIL}
    assert json.loads(data)["figures"] == {EVIL: {"unit": EVIL}}


def test_prose_is_html_and_its_title_is_text():
    """What the text's module made goes in as it is; a title with '<' is text in <title>."""
    html = rendered(words=prose(title="a < b & c", html="<p><em>yes</em></p>"))["index.html"]
    assert "<title>a &lt; b &amp; c</title>" in html
    assert "<p><em>yes</em></p>" in html


def test_a_title_with_a_number_in_it_is_said_without_its_link_where_it_is_one():
    """In the contents, and before and after a part; the heading itself keeps it."""
    title = (
        'At <a class="bound" href="#tokens=64"><em class="x">64</em> users</a><sup id="note"><a href="#n">1</a></sup>'
    )
    given = prose()
    given = replace(given, sections=(replace(given.sections[0], title_html=title), given.sections[1]))
    html = rendered(words=given)["index.html"]
    said = "At <em>64</em> users<sup>1</sup>"
    assert html.count(f'<span class="part-title">{said}</span></a>') == 1
    assert html.count(f'rel="prev">← 1 {said}</a>') == 1
    assert html.count(title) == 1


def test_a_figure_of_the_text_says_where_its_script_is():
    """One that has none says nothing; neither does a figure's name in other words of the text."""
    figure = '<figure id="figure-{0}" data-figure="{0}">\n<!--slot:figure {0}--></figure>'
    html = figure.format("live") + figure.format("still") + "<p>data-figure=&quot;live&quot;</p>"
    drawn = {name: Figure(name, {}, "", {"wide": f"<svg>{name}</svg>"}) for name in ("live", "still")}
    given = replace(addresses(), figure_scripts={"live": "a/live.js"})
    first, _ = page.parts(prose(html=html), drawn, given)
    assert first["html"] == (
        '<figure id="figure-live" data-figure="live" data-runtime="a/vega" data-spec="a/live.js">\n'
        '<div data-variant="wide"><svg>live</svg></div></figure>'
        '<figure id="figure-still" data-figure="still">\n<div data-variant="wide"><svg>still</svg></div></figure>'
        "<p>data-figure=&quot;live&quot;</p>"
    )


def test_no_slot_of_the_text_is_left():
    """The bench has its place on the page: its mark in the text is gone."""
    assert "<!--slot" not in rendered()["index.html"]


# around the context


@pytest.mark.parametrize(
    ("family", "most", "note"),
    [
        ("qwen3", 40960, "YaRN past 40k"),
        ("llama", 8192, "not trained past 8k"),
        ("mistral", 32000, "not trained past 32k"),
        ("llama", 131072, ""),
        ("llama", None, ""),
    ],
)
def test_a_context_past_the_models_reach_is_noted(family, most, note):
    """The note beside the context names the model's maximum where the axis goes past it."""
    grid = replace(lesson(), model=replace(lesson().model, family=family, max_positions=most))
    html = rendered(grid)["index.html"]
    notes = re.findall(r'<span class="note[^>]*>([^<]*)<', html)
    assert notes == ([note] if note else [])


# templates


def test_a_broken_template_is_told_with_file_and_line(tmp_path):
    """A syntax error in a template: its file and its line; an unknown name: what it is."""
    folder = tmp_path / "theme" / "templates"
    folder.mkdir(parents=True)
    arguments: tuple[Any, ...] = (
        lesson(),
        prose(),
        shard(lesson(), lesson().defaults),
        {"roofline": Figure("roofline", {}, "", {})},
    )
    for source, told in (
        ("<p>\n{% if %}", r"theme/templates/index\.html:2: template: "),
        ("{{ nothing }}", r"theme/templates(/index\.html:1)?: template: 'nothing' is undefined"),
    ):
        (folder / "index.html").write_text(source, encoding="utf-8")
        (folder / "404.html").write_text("", encoding="utf-8")
        with pytest.raises(LessonErrors, match=told):
            render(tmp_path, *arguments, addresses())


def test_a_missing_template_is_told(tmp_path: Path):
    """No template, no page: its name is said."""
    (tmp_path / "theme" / "templates").mkdir(parents=True)
    document = shard(lesson(), lesson().defaults)
    with pytest.raises(LessonErrors, match=r"index\.html"):
        render(tmp_path, lesson(), prose(), document, {"roofline": Figure("roofline", {}, "", {})}, addresses())


def test_a_lesson_without_a_section_is_told():
    """The author hears of the missing heading, not of a template."""
    with pytest.raises(LessonErrors, match=r"content/lesson\.md: the lesson has no section\n  hint: begin one"):
        rendered(words=replace(prose(), sections=()))


def test_a_changed_template_is_always_seen(tmp_path: Path):
    """By its contents: the time stamp and the size of the file may be the same."""
    folder = tmp_path / "theme" / "templates"
    folder.mkdir(parents=True)
    figures = {"roofline": Figure("roofline", {}, "", {})}
    document = shard(lesson(), lesson().defaults)
    for text in ("one", "two", "one"):
        for name in ("index.html", "404.html"):
            (folder / name).write_text(text, encoding="utf-8")
            os.utime(folder / name, (1, 1))
        assert render(tmp_path, lesson(), prose(), document, figures, addresses())["index.html"] == text
