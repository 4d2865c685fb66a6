"""Links and anchors inside the site."""

from pathlib import Path

import pytest

from builder.links import broken_links
from builder.markup import pages
from builder.site import Site


def told(tmp_path: Path, body: str, prose: str = "", **files: bytes) -> list[str]:
    """What is wrong with a site of one page."""
    (tmp_path / "content").mkdir(exist_ok=True)
    (tmp_path / "content" / "lesson.md").write_text(prose, encoding="utf-8")
    page = f'<h1 id="top">A</h1><h2 id="ridge">B</h2><h2 id="bench">C</h2>{body}'
    site = Site({"index.html": page.encode(), **files})
    return [str(error) for error in broken_links(tmp_path, site, pages(site))]


@pytest.mark.parametrize(
    "body",
    [
        '<a href="#ridge">x</a>',
        '<a href="index.html#ridge">x</a>',
        '<a href="#tokens=64&amp;gpu=h200">a point of the bench</a>',
        '<a href="https://example.org/nowhere#at-all">outside</a>',
        '<a href="//example.org/nowhere">outside</a>',
        '<a href="mailto:someone">outside</a>',
        '<base href="https://example.org/"><base href="/nowhere/">',
        '<a href="a.js#L3">a line of it</a>',
        '<a href="b%20c.js">x</a>',
        '<h2 id="\u00fcber">D</h2><a href="#%C3%BCber">x</a>',
        '<a href="./index.html#top">x</a>',
        '<script src="a.js"></script>',
        '<figure data-spec="a.js"></figure>',
        '<img src="a.js" alt="">',
    ],
)
def test_what_leads_somewhere_is_fine(tmp_path, body):
    """Places of the page, files of the site, points of the bench; what is outside is checked apart."""
    assert told(tmp_path, body, **{"a.js": b"", "b c.js": b""}) == []


def test_a_dead_anchor_is_told_at_its_place_in_the_prose(tmp_path):
    """File, line and column of the link, and the nearest place there is."""
    prose = "---\n---\n\nSee [the ridge](#rigde).\n"
    assert told(tmp_path, '<a href="#rigde">the ridge</a>', prose) == [
        "content/lesson.md:4:17: there is no place '#rigde' in the lesson\n  hint: did you mean 'ridge'?"
    ]


def test_all_that_is_dead_is_told(tmp_path):
    """A missing file, an address from the server's root, a script and the data of a figure that aren't there."""
    body = '<a href="a.pdf">x</a><link href="/b.css"><script src="c.js"></script><figure data-spec="d.js"></figure>'
    assert [error.split("\n")[0] for error in told(tmp_path, body)] == [
        "content/lesson.md: there is no file 'a.pdf' in the site",
        "content/lesson.md: '/b.css' starts at the root of the server, where the lesson may not stand",
        "content/lesson.md: there is no file 'c.js' in the site",
        "content/lesson.md: there is no file 'd.js' in the site",
    ]


def test_an_address_is_read_from_where_its_page_stands(tmp_path):
    """A page in a folder looks there, whatever lies beside it above."""
    deep = {"deep/a.html": b'<a href="b.html">x</a><a href="c.html#y">x</a>', "deep/c.html": b'<p id="y">'}
    (error,) = told(tmp_path, "", **deep, **{"b.html": b""})
    assert error.startswith("content/lesson.md: there is no file 'b.html' in the site")


def test_a_remedy_is_near_and_never_a_place_that_the_build_made_up(tmp_path):
    """A hint names a file or a place that an author knows; a point belongs to the page that has the bench."""
    body = '<p id="figure-one"></p><p id="proof-1"></p>'
    links = '<a href="a.sj">x</a><a href="#figure-on">x</a><a href="/a.js">x</a><a href="a.html#tokens=64">x</a>'
    found = told(tmp_path, body + links + links, **{"a.js": b"", "a.html": b""})
    assert [error.partition("hint: ")[2] for error in found] == [
        "did you mean 'a.js'?",
        "known: bench, ridge, top",
        "write it relative",
        "",
    ]


def test_an_address_that_markdown_escaped_or_that_is_none_is_told(tmp_path):
    """The place is found by what the author wrote; what can't be an address is no traceback."""
    (escaped,) = told(tmp_path, '<a href="caf%C3%A9.pdf">x</a>', "\n[x](café.pdf)\n")
    assert escaped.startswith("content/lesson.md:2:5: there is no file 'caf%C3%A9.pdf'")
    assert told(tmp_path, '<a href="//[a">x</a>', "nothing") == ["content/lesson.md: '//[a' is no address"]
