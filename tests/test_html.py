"""The built pages as markup, checked without a browser or a parser that mends. CONTRIBUTING names the Nu checker."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder.build import build
from builder.markup import Page, malformed, pages
from builder.site import Site
from tests.toys import ROOT


@pytest.fixture(scope="module", params=["index.html", "404.html"])
def text(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page of the built lesson."""
    folder = tmp_path_factory.getbasetemp() / "html"
    if not folder.exists():
        build(ROOT, folder)
    return (folder / request.param).read_text(encoding="utf-8")


def told(folder: Path, body: str, prose: str = "", template: str = "") -> list[str]:
    """What is wrong with a page of this body, in a checkout of this prose and template."""
    for path, text in (("content/lesson.md", prose), ("theme/templates/index.html", template)):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return [str(error) for error in malformed(folder, pages(Site({"index.html": body.encode()})))]


def test_nothing_is_wrong_with_the_pages_of_the_lesson(text: str) -> None:
    """Elements where they may be, unique ids, references to what is there, headings a step at a time, named images."""
    assert malformed(ROOT, {"index.html": Page.of(text)}) == []


def test_the_head_says_what_a_page_must(text: str) -> None:
    """Doctype, language, encoding within the first kilobyte; one title, main and h1, and the h1 first."""
    page = Page.of(text)
    assert text.startswith('<!doctype html>\n<html lang="en">')
    assert '<meta charset="utf-8">' in text[:1024]
    assert [page.seen[tag] for tag in ("title", "main", "body", "h1")] == [1, 1, 1, 1]
    assert page.headings[0].level == 1


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ("<p>one<div>two</div></p>", "<div> in <p>"),
        ("<span><p>x</p></span>", "<p> in a phrase"),
        ("<ul><p>x</p></ul>", "<p> in <ul>"),
        ("<a><button>x</button></a>", "pressed itself"),
        ("<section><b></section>", "does not end what is open"),
        ("<div><section></section>", "<div> is never closed"),
        ('<p id="a" id="b"></p>', "twice"),
        ('<p style="color:red"></p>', "policy"),
        ('<p onclick="x()"></p>', "policy"),
        ('<p id="a"></p><p id="a"></p>', "2 elements of index.html have the id 'a'"),
        ('<p id="a b"></p>', "'a b' is no id"),
        ('<label for="x">y</label>', "refers to an element 'x' that isn't there"),
        ("<h1>A</h1><h3>B</h3>", "a heading of level 3 follows one of level 1"),
        ('<img src="a.png" alt=" ">', "an image has no alternative text"),
    ],
)
def test_what_is_broken_is_seen(tmp_path: Path, broken: str, why: str) -> None:
    """One mistake, one error, in the page's own template where nothing better is known."""
    (error,) = told(tmp_path, broken)
    assert error.startswith("theme/templates/index.html: ")
    assert why in error


@pytest.mark.parametrize(
    "fine",
    [
        "<details><summary>x</summary><a href='y'>z</a></details>",
        "<label>x <input></label>",
        "<svg><g id='a'/><a><text>x</text><a>y</a></a></svg>",
        "<table><tbody><tr><th>x</th><td><ul><li><p>y</p></li></ul></td></tr></tbody></table>",
        "<h1>A</h1><h2>B</h2><h3>C</h3><h2>D</h2>",
        "<img src='a.png' alt='A slope'><br><img src='b.png' alt='' role='presentation'>",
    ],
)
def test_what_may_stand_so_is_left_alone(tmp_path: Path, fine: str) -> None:
    """Details hold links, labels hold inputs, what is drawn has rules of its own."""
    assert told(tmp_path, fine) == []


PROSE = """---
title: A
---

## First {#first}

![](a%20pic.png)

> #### Deep *down*
"""


def test_a_mistake_is_told_at_its_place_in_the_prose(tmp_path: Path) -> None:
    """An image and a heading of the prose, by line and column, with what to write."""
    page = '<h1>A</h1><h2 id="first">First</h2><p><img src="a%20pic.png" alt=""></p><h4>Deep <em>down</em></h4>'
    assert told(tmp_path, page, PROSE) == [
        "content/lesson.md:9:3: a heading of level 4 follows one of level 2\n  hint: begin it with ###",
        "content/lesson.md:7:1: an image has no alternative text\n  hint: say what it shows: ![A slope and a roof](…)",
    ]


def test_a_heading_that_takes_an_id_of_the_page_is_told_where_it_stands(tmp_path: Path) -> None:
    """Whether its address is written out or made of its words: no template is to blame."""
    page = '<h1>A</h1><div id="first"></div><h2 id="first">First</h2>'
    hint = "give it a name of its own: ## Title {#name}"
    for prose in (PROSE, PROSE.replace(" {#first}", "")):
        assert told(tmp_path, page, prose) == [
            f"content/lesson.md:5:1: another element of the page has the id 'first'\n  hint: {hint}"
        ]


def test_lines_are_counted_as_an_editor_counts_them(tmp_path: Path) -> None:
    """By their ends alone: a separator of another kind begins no line."""
    prose = PROSE.replace("title: A", "title: A\x0b\x85\u2028A").replace("\n", "\r\n")
    assert told(tmp_path, '<h1>A</h1><h4 id="deep">Deep <em>down</em></h4>', prose)[0].startswith(
        "content/lesson.md:9:3: "
    )


def test_a_mistake_is_told_at_its_place_in_a_template(tmp_path: Path) -> None:
    """An element by its tag as it is written there, a reference by its attribute."""
    template = '<main>\n<p>\n<div class="x">y</div></p>\n<label for="gone">z</label></main>'
    assert told(tmp_path, template, template=template) == [
        "theme/templates/index.html:3:1: index.html is no valid HTML: <div> in <p> (in main>p)",
        "theme/templates/index.html:4:8: index.html refers to an element 'gone' that isn't there",
    ]
