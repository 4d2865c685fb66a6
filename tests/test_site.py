"""A site is put in place so that a reader never meets half of it, and nothing that isn't ours is touched."""

from __future__ import annotations

import gzip
import json
import os
import stat
from pathlib import Path

import pytest

from builder import site as site_module
from builder.errors import LessonErrors
from builder.site import (
    Site,
    cached,
    compressed_size,
    concatenated,
    contents_key,
    hashed,
    refuse_foreign_folder,
    replace_file,
    theme_text,
    write,
)

OURS = {
    "index.html": b"<a href=assets/lesson.1.css>",
    "404.html": b"<p>none",
    "z.html": b"<p>last by name",
    "assets/lesson.1.css": b"a {}",
    "data/h100.json": b"{}",
    "figures/roofline.vl.json": b"{}",
}


def files_of(folder: Path) -> dict[str, bytes]:
    """Everything in a folder but the manifest."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "manifest.json"
    }


def manifest_of(folder: Path) -> dict[str, str]:
    """The files that the manifest claims."""
    document = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert document["made by"] == "lesson"
    claimed: dict[str, str] = document["files"]
    return claimed


def refused(site: Site, out: Path) -> str:
    """The one error of a write that must fail."""
    with pytest.raises(LessonErrors) as problems:
        write(site, out, "site")
    (error,) = problems.value.errors
    assert error.path == "site"
    return str(error)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder that isn't there yet, deep down."""
    return tmp_path / "some" / "where"


@pytest.fixture
def moves(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files in the order in which they are moved into place."""
    order: list[str] = []
    replace = os.replace

    def recorded(source: str, target: Path) -> None:
        order.append(Path(target).name)
        replace(source, target)

    monkeypatch.setattr(site_module.os, "replace", recorded)
    return order


def test_a_site_is_written_as_it_is(out):
    """All files, byte for byte, with a manifest that claims exactly them."""
    write(Site(dict(OURS)), out)
    assert files_of(out) == OURS
    assert set(manifest_of(out)) == set(OURS)


def test_what_pages_refer_to_comes_first_and_index_last(out, moves):
    """Assets, then other pages, then index.html; the manifest frames them."""
    write(Site(dict(OURS)), out)
    assert moves == [
        "manifest.json",
        "lesson.1.css",
        "h100.json",
        "roofline.vl.json",
        "404.html",
        "z.html",
        "index.html",
    ]
    moves.clear()
    write(Site(OURS | {"index.html": b"new", "assets/lesson.2.css": b"b {}", "404.html": b"new"}), out)
    assert moves == ["manifest.json", "lesson.2.css", "404.html", "index.html"]


def test_old_assets_stay_until_the_new_page_stands(out, monkeypatch):
    """Whoever still reads the old page finds its files until index.html is replaced, then they go."""
    write(Site(dict(OURS)), out)
    replace = os.replace

    def watched(source: str, target: Path) -> None:
        if Path(target).name == "index.html":
            assert (out / "assets" / "lesson.1.css").exists()
            assert (out / "assets" / "lesson.2.css").exists()
        replace(source, target)

    monkeypatch.setattr(site_module.os, "replace", watched)
    new = {name: data for name, data in OURS.items() if name != "assets/lesson.1.css"}
    write(Site(new | {"index.html": b"new", "assets/lesson.2.css": b"b {}"}), out)
    assert not (out / "assets" / "lesson.1.css").exists()


def test_a_file_that_is_the_same_is_not_written_again(out):
    """An unchanged file keeps its time stamp, so that nothing reloads for nothing."""
    write(Site(dict(OURS)), out)
    for path in out.rglob("*.*"):
        os.utime(path, (1, 1))
    write(Site(OURS | {"index.html": b"new"}), out)
    touched = {path.name for path in out.rglob("*.*") if path.is_file() and path.stat().st_mtime > 1}
    assert touched == {"index.html", "manifest.json"}


def test_pages_that_are_gone_are_taken_away_with_their_folders(out):
    """What only an earlier build made goes, and the folders that it leaves empty."""
    write(Site(OURS | {"old.html": b"x", "a/b/c/deep.js": b"y", "a/near.js": b"z"}), out)
    write(Site(OURS | {"a/near.js": b"z"}), out)
    assert files_of(out) == OURS | {"a/near.js": b"z"}
    assert not (out / "a" / "b").exists()
    write(Site(dict(OURS)), out)
    assert not (out / "a").exists()


def test_files_that_no_build_made_stay(out):
    """A stranger's file stays where it is, beside ours and in our folders."""
    write(Site(OURS | {"old/page.html": b"x"}), out)
    strangers = {"CNAME": b"example.org", "notes.txt": b"n", "old/mine.txt": b"m"}
    for name, data in strangers.items():
        (out / name).write_bytes(data)
    write(Site(dict(OURS)), out)
    assert files_of(out) == OURS | strangers


@pytest.mark.parametrize("names", [["thesis.tex"], ["a", "b", "c", "d"], [".git"], ["index.html"]])
def test_a_folder_of_someone_else_is_left_alone(tmp_path, names):
    """A folder with files but no manifest of ours is refused, named, and untouched."""
    for name in names:
        (tmp_path / name).write_bytes(b"precious")
    told = refused(Site(dict(OURS)), tmp_path)
    assert f"({', '.join(names[:3])}{', …' if len(names) > 3 else ''})" in told
    assert "--out" in told
    assert files_of(tmp_path) == dict.fromkeys(names, b"precious")


@pytest.mark.parametrize(
    "manifest",
    [
        "",
        "{",
        "[]",
        "null",
        '{"files": {}}',
        '{"made by": "lesson"}',
        '{"made by": "other", "files": {}}',
        '{"made by": "lesson", "files": ["thesis.tex"]}',
        '{"made by": "lesson", "files": null}',
        '{"name": "a web app", "icons": []}',
    ],
)
def test_a_manifest_that_is_not_ours_claims_nothing(tmp_path, manifest):
    """manifest.json is a common name: a folder with another one is someone else's."""
    (tmp_path / "manifest.json").write_text(manifest, encoding="utf-8")
    (tmp_path / "thesis.tex").write_bytes(b"precious")
    refused(Site(dict(OURS)), tmp_path)
    assert files_of(tmp_path) == {"thesis.tex": b"precious"}
    assert (tmp_path / "manifest.json").read_text(encoding="utf-8") == manifest


@pytest.mark.parametrize("kept", [[], [".gitignore"], [".nojekyll", "CNAME"]])
def test_a_folder_with_nothing_but_a_gitignore_is_taken(tmp_path, kept):
    """An empty folder, or one with what repositories and hosts put there, is fine; those files stay."""
    for name in kept:
        (tmp_path / name).write_bytes(b"*\n")
    write(Site(dict(OURS)), tmp_path)
    assert files_of(tmp_path) == OURS | dict.fromkeys(kept, b"*\n")


def test_a_tampered_manifest_deletes_nothing_outside(tmp_path):
    """Names that lead out of the folder, by dots, from the root or through a link, are never followed."""
    out, outside = tmp_path / "site", tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.txt").write_bytes(b"p")
    (tmp_path / "precious.txt").write_bytes(b"p")
    write(Site(dict(OURS)), out)
    (out / "link").symlink_to(outside)
    names = [
        "../precious.txt",
        "assets/../../precious.txt",
        "./../outside/precious.txt",
        str(tmp_path / "precious.txt"),
        "link/precious.txt",
        "..",
        ".",
        "",
        "/",
        "assets",
        "a\0b/c",
    ]
    manifest = {"made by": "lesson", "files": dict.fromkeys([*OURS, *names], "0")}
    (out / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    write(Site(dict(OURS)), out)
    assert (tmp_path / "precious.txt").read_bytes() == b"p"
    assert (outside / "precious.txt").read_bytes() == b"p"
    assert {name: data for name, data in files_of(out).items() if not name.startswith("link")} == OURS
    assert set(manifest_of(out)) == set(OURS)


def test_a_file_in_the_way_is_an_error(tmp_path):
    """--out names a file: it is said, and the file is untouched."""
    path = tmp_path / "site"
    path.write_bytes(b"precious")
    assert "is not a folder" in refused(Site(dict(OURS)), path)
    assert path.read_bytes() == b"precious"


def test_a_folder_below_a_file_is_an_error(tmp_path):
    """--out leads through a file: an error of ours, no traceback."""
    (tmp_path / "file").write_bytes(b"x")
    assert "can't be written" in refused(Site(dict(OURS)), tmp_path / "file" / "site")


def test_a_refusal_comes_before_anything_is_computed(tmp_path):
    """The check stands alone, so that a build can ask it first."""
    refuse_foreign_folder(tmp_path, "site")
    refuse_foreign_folder(tmp_path / "new", "site")
    (tmp_path / "x").write_bytes(b"")
    with pytest.raises(LessonErrors):
        refuse_foreign_folder(tmp_path, "site")


@pytest.mark.parametrize("fails_at", [0, 1, 2, 3])
def test_a_disk_that_fills_up_leaves_the_old_page(out, monkeypatch, fails_at):
    """Whenever writing fails: the old index.html and all that it refers to still stand, and no half file lies about."""
    write(Site(dict(OURS)), out)
    replace, calls = os.replace, []

    def full(source: str, target: Path) -> None:
        calls.append(target)
        if len(calls) > fails_at:
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(site_module.os, "replace", full)
    new = {"index.html": b"new", "404.html": b"new", "assets/lesson.2.css": b"b {}"}
    told = refused(Site(new), out)
    assert "can't be written: No space left on device" in told
    left = files_of(out)
    for name in ("index.html", "assets/lesson.1.css", "data/h100.json"):
        assert left[name] == OURS[name]
    assert not [name for name in left if ".lesson-new-" in name]
    # and the next run, with room, mends it all
    monkeypatch.setattr(site_module.os, "replace", replace)
    write(Site(new), out)
    assert files_of(out) == new


def test_a_killed_run_leaves_nothing_that_the_next_one_misses(out, monkeypatch):
    """A run that dies between assets and page still claims what it wrote: the next run takes it away."""
    write(Site(dict(OURS)), out)
    replace = os.replace

    def killed(source: str, target: Path) -> None:
        if Path(target).name == "index.html":
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(site_module.os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        write(Site(OURS | {"index.html": b"new", "assets/lesson.2.css": b"b {}"}), out)
    assert (out / "assets" / "lesson.2.css").exists()
    monkeypatch.setattr(site_module.os, "replace", replace)
    write(Site(dict(OURS)), out)
    assert files_of(out) == OURS


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_server_may_read_what_was_built_whatever_the_umask(out, umask):
    """Files are 644 and folders 755, under any umask."""
    before = os.umask(umask)
    try:
        write(Site(dict(OURS)), out)
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in out.rglob("*") if path.is_file()}
    assert modes == {0o644}
    folders = [out, *(path for path in out.rglob("*") if path.is_dir())]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o755}


def test_a_link_in_our_place_is_replaced_not_followed(tmp_path):
    """Where a stranger's link stands under a name of ours, the link goes and its target stays."""
    out, outside = tmp_path / "site", tmp_path / "precious.txt"
    write(Site(dict(OURS)), out)
    outside.write_bytes(b"p")
    (out / "404.html").unlink()
    (out / "404.html").symlink_to(outside)
    write(Site(dict(OURS)), out)
    assert outside.read_bytes() == b"p"
    assert files_of(out) == OURS
    assert not (out / "404.html").is_symlink()


# names and sizes


def test_a_hashed_name_changes_with_the_content_and_only_with_it():
    """Same bytes, same name; other bytes, another; folder and ending stay."""
    name = hashed("assets/lesson.css", b"a")
    assert name == hashed("assets/lesson.css", b"a")
    assert name != hashed("assets/lesson.css", b"b")
    assert name.startswith("assets/lesson.")
    assert name.endswith(".css")
    assert len(name) == len("assets/lesson.") + 10 + len(".css")


def test_a_site_takes_texts_and_bytes_under_one_name_each():
    """Texts are stored as UTF-8; two files under one name are a mistake of ours."""
    site = Site()
    assert site.add("a.txt", "ä") == "a.txt"
    name = site.add_hashed("b.js", "x")
    assert site.files == {"a.txt": b"\xc3\xa4", name: b"x"}
    assert name == hashed("b.js", b"x")
    with pytest.raises(AssertionError, match=r"a\.txt is made twice"):
        site.add("a.txt", b"")


def test_a_compressed_size_is_what_gzip_makes():
    """The same on every run: level 9, no time stamp."""
    data = b"roofline " * 1000
    assert compressed_size(data) == len(gzip.compress(data, 9, mtime=0)) < 100


def test_theme_files_come_in_the_order_of_their_names(tmp_path):
    """Ordered by name, not by the file system; what is left out is left out; each ends in one line break."""
    for name, text in (("20-b.js", "b\n\n"), ("10-a.js", "a"), ("90-dev.js", "no"), ("x.css", "no")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert concatenated(tmp_path, ".js", ["90-dev.js"]) == "a\n\nb\n"


def test_a_missing_or_mangled_theme_file_is_told_by_name(tmp_path):
    """The path as the author knows it, from theme/ on; never a traceback."""
    folder = tmp_path / "theme" / "css"
    folder.mkdir(parents=True)
    with pytest.raises(LessonErrors, match=r"^theme/css/tokens\.css: can't be read: No such file"):
        theme_text(folder / "tokens.css")
    (folder / "tokens.css").write_bytes(b"a\xff")
    with pytest.raises(LessonErrors, match=r"^theme/css/tokens\.css: not UTF-8 text \(byte 1\)"):
        concatenated(folder, ".css")


# the cache of what is slow to make


@pytest.fixture
def forget(monkeypatch):
    """Do as a new process does: know nothing but what is on disk."""

    def forgotten() -> None:
        monkeypatch.setattr(site_module, "_remembered", {})

    forgotten()
    return forgotten


def test_what_was_made_is_kept_and_not_made_again(tmp_path, forget):
    """A second call with the same name reads what the first one stored, in this process and in the next."""
    made = iter(["first\n", "second\n"])
    assert cached(tmp_path, "a-1.js", lambda: next(made), "site") == "first\n"
    assert cached(tmp_path, "a-1.js", lambda: next(made), "site") == "first\n"
    forget()
    assert cached(tmp_path, "a-1.js", lambda: next(made), "site") == "first\n"
    assert cached(tmp_path, "a-2.js", lambda: next(made), "site") == "second\n"


def test_the_cache_keeps_the_latest_of_a_kind(tmp_path):
    """A changed key replaces the older file of its kind, and leaves other kinds alone."""
    for name in ("a-1.js", "b-1.js", "a-2.js"):
        cached(tmp_path, name, lambda: "made", "site")
    assert sorted(path.name for path in (tmp_path / ".cache").iterdir()) == ["a-2.js", "b-1.js"]


def test_a_key_is_made_of_names_and_contents(tmp_path):
    """Another content, name or text is another key; another time is not, nor is a file that no pattern names."""
    (tmp_path / "a.toml").write_text("x", encoding="utf-8")
    key = contents_key(tmp_path, ["*.toml"], "more")
    os.utime(tmp_path / "a.toml", (1, 1))
    (tmp_path / "b.json").write_text("x", encoding="utf-8")
    assert contents_key(tmp_path, ["*.toml"], "more") == key
    assert contents_key(tmp_path, ["*.toml"], "other") != key
    (tmp_path / "a.toml").write_text("y", encoding="utf-8")
    assert contents_key(tmp_path, ["*.toml"], "more") != key
    (tmp_path / "a.toml").rename(tmp_path / "c.toml")
    (tmp_path / "c.toml").write_text("x", encoding="utf-8")
    assert contents_key(tmp_path, ["*.toml"], "more") != key


@pytest.mark.parametrize("damage", [b"", b"first\n", b"\xff\xfe", "cut"])
def test_a_damaged_cache_is_made_again(tmp_path, damage, forget):
    """What is stored is believed only where its hash says so: an emptied, foreign or cut file is replaced."""
    cached(tmp_path, "a.js", lambda: "first\n" * 100, "site")
    path = tmp_path / ".cache" / "a.js"
    path.write_bytes(path.read_bytes()[:200] if damage == "cut" else damage)
    forget()
    assert cached(tmp_path, "a.js", lambda: "again", "site") == "again"
    assert cached(tmp_path, "a.js", lambda: pytest.fail("made twice"), "site") == "again"


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, forget):
    """A file where the cache's folder should be costs time, and breaks nothing."""
    (tmp_path / ".cache").write_bytes(b"")
    assert cached(tmp_path, "a.js", lambda: "made", "site") == "made"


def test_what_is_cached_is_known_without_making_it(tmp_path, monkeypatch):
    """In this process and in the next; not what was damaged, nor an older state of the same thing."""
    monkeypatch.setattr(site_module, "_remembered", {})
    assert not site_module.is_cached(tmp_path, "thing-1.json")
    site_module.cached(tmp_path, "thing-1.json", lambda: "one", "site")
    assert site_module.is_cached(tmp_path, "thing-1.json")
    assert not site_module.is_cached(tmp_path, "thing-2.json")
    site_module._remembered.clear()
    assert site_module.is_cached(tmp_path, "thing-1.json")
    (tmp_path / ".cache" / "thing-1.json").write_text("damaged", encoding="utf-8")
    assert not site_module.is_cached(tmp_path, "thing-1.json")


def test_an_authors_file_that_cannot_be_rewritten_is_told(tmp_path):
    """With its name; the folder that should hold it is a file."""
    (tmp_path / "content").write_text("", encoding="utf-8")
    with pytest.raises(LessonErrors) as caught:
        replace_file(tmp_path / "content" / "lesson.md", "text")
    (error,) = caught.value.errors
    assert error.path == str(tmp_path / "content" / "lesson.md")
    assert error.message.startswith("can't be written: ")


def test_what_is_made_while_the_builder_is_saved_is_not_kept(tmp_path, monkeypatch):
    """It may be the work of other code than the name means; it is made again next time, here too."""
    made = iter(("by whom?", "by this code", "never"))
    with monkeypatch.context() as patch:
        patch.setattr(site_module, "is_on_disk", lambda *_: False)
        assert site_module.cached(tmp_path, "thing-9.json", lambda: next(made), "site") == "by whom?"
    assert not site_module.is_cached(tmp_path, "thing-9.json")
    for _ in range(2):
        assert site_module.cached(tmp_path, "thing-9.json", lambda: next(made), "site") == "by this code"
