"""The command `numbers`: list bound numbers, write stale ones anew, and tell what changed since a git revision.

Nothing is printed or written here: cli.py prints the texts and writes the files that these functions return.
"""

from __future__ import annotations

import difflib
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from builder.bindings import Bound
from builder.errors import LessonError, LessonErrors
from builder.facts import Facts
from builder.grid import AXES, load_grid
from builder.places import Source
from builder.prose import Prose, read, sources

FORMATS = ("text", "markdown", "json")
_SAME = 1e-9  # relative: a value that moved by less didn't move
_SECONDS_FOR_OLD_BUILDER = 120


# the list


def rows(prose: Prose) -> list[dict[str, Any]]:
    """Every bound span as plain data: place, text, fact, kind, status, point, value in SI, value as shown, sentence."""
    found = []
    for bound in prose.bound:
        row = asdict(bound)
        for key in ("start", "end", "numeral", "exact"):
            del row[key]
        row["point"] = {axis: getattr(bound.exact, axis) for axis in AXES} if bound.exact else None
        row["digits"] = bound.restated or bound.text
        found.append(row)
    return found


def summary(prose: Prose) -> str:
    """'231 bound, 12 claims, 35 exempt'."""
    claims = prose.count("claim")
    return f"{prose.count('value')} bound, {claims} claim{'' if claims == 1 else 's'}, {prose.count('exempt')} exempt"


def listing(prose: Prose, form: str = "text") -> str:
    """All bound spans as a table: place, text, fact, point, value."""
    if form == "json":
        return json.dumps(rows(prose), ensure_ascii=False, indent=1) + "\n"
    table = [("place", "text", "fact", "point", "value")]
    for bound in prose.bound:
        point = " ".join(f"{axis}={getattr(bound.exact, axis)}" for axis in AXES) if bound.exact else ""
        value = bound.shown if bound.status in ("ok", "stale") else f"{bound.shown} ({bound.status})".strip()
        value += " (stale)" if bound.status == "stale" else ""
        table.append((f"{bound.path}:{bound.line}:{bound.column}", bound.text, bound.fact, point, value))
    if form == "markdown":
        return _markdown(table) + f"\n{summary(prose)}\n"
    return _columns(table) + f"{summary(prose)}\n"


def _columns(table: Sequence[Sequence[str]]) -> str:
    widths = [min(max(len(row[k]) for row in table), 60) for k in range(len(table[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table)
    return "\n".join(lines) + "\n"


def _markdown(table: Sequence[Sequence[str]]) -> str:
    head, *body = ([cell.replace("|", "\\|") for cell in row] for row in table)
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in body)]) + "\n"


# the fix


def fix(text: str, bounds: Sequence[Bound]) -> str:
    """The text of a file with its stale numbers rewritten: digits change and nothing else does.

    bounds: of this file, from one reading of this very text. Claims, numbers in words and broken facts stay as they
    are. Rewriting what this returns changes nothing.
    """
    for bound in sorted(bounds, key=lambda each: each.start, reverse=True):
        if bound.status == "stale" and bound.numeral and bound.written is not None:
            start, end = bound.numeral
            assert text[start:end] == bound.said, f"{bound.path}:{bound.line}: the text has changed since it was read"
            text = text[:start] + bound.written + text[end:]
    return text


@dataclass(frozen=True)
class Fixed:
    """What a fix did: new texts by path, the spans that it rewrote, and the prose as it stands then."""

    texts: Mapping[str, str]
    rewritten: tuple[Bound, ...]
    prose: Prose


def fix_all(texts: Sequence[Source], facts: Facts) -> Fixed:
    """Rewrite the stale numbers of all files. What is still wrong is in Fixed.prose.errors: false claims, for one."""
    before = read(texts, facts)
    changed: dict[str, str] = {}
    for source in texts:
        new = fix(source.text, [bound for bound in before.bound if bound.path == source.path])
        if new != source.text:
            changed[source.path] = new
    rewritten = tuple(each for each in before.bound if each.status == "stale" and each.numeral and each.written)
    after = read([Source(each.path, changed.get(each.path, each.text)) for each in texts], facts)
    return Fixed(changed, rewritten, after)


# the diff


@dataclass(frozen=True)
class Change:
    """One bound span, then and now; old or new is None where it was added or removed. percent: of its value."""

    path: str
    line: int
    sentence: str
    fact: str
    old: str | None
    new: str | None
    percent: float | None = None


@dataclass(frozen=True)
class Diff:
    """What changed since a revision. unchanged: spans whose text says the same; of these, drifted: with another value.

    old_side: who computed the old values. problems: what is wrong with today's text, so that its values are partial.
    """

    ref: str
    old_side: str
    flipped: list[Change] = field(default_factory=list)
    changed: list[Change] = field(default_factory=list)
    removed: list[Change] = field(default_factory=list)
    added: list[Change] = field(default_factory=list)
    unchanged: int = 0
    drifted: int = 0


def compare(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]], ref: str, old_side: str) -> Diff:
    """Two lists of rows → what changed. Spans are matched by their facts, in the order of the text."""
    diff = Diff(ref, old_side)
    pairs, removed, added = _matched(old, new)
    unchanged = drifted = 0
    for before, after in pairs:
        moved = _moved(before["value"], after["value"])
        if after["kind"] == "claim" and before["kind"] == "claim":
            if before["value"] == after["value"]:
                unchanged += 1
            else:
                diff.flipped.append(_change(before, after))
        elif before["digits"] == after["digits"]:
            unchanged += 1
            drifted += moved
        else:
            diff.changed.append(_change(before, after))
    diff.removed.extend(_change(each, None) for each in removed)
    diff.added.extend(_change(None, each) for each in added)
    return Diff(ref, old_side, diff.flipped, diff.changed, diff.removed, diff.added, unchanged, drifted)


_Pair = tuple[Mapping[str, Any], Mapping[str, Any]]


def _matched(
    old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]
) -> tuple[list[_Pair], list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """(matched, only old, only new), each in the order of the text."""
    keys = [[(each["fact"], each["kind"]) for each in side] for side in (old, new)]
    blocks = difflib.SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_matching_blocks()
    pairs = {block.b + k: block.a + k for block in blocks for k in range(block.size)}
    left = [k for k in range(len(old)) if k not in set(pairs.values())]
    for k in range(len(new)):  # a sentence that moved keeps its facts
        if k not in pairs:
            home = next((j for j in left if keys[0][j] == keys[1][k]), None)
            if home is not None:
                pairs[k] = home
                left.remove(home)
    matched = [(old[pairs[k]], new[k]) for k in sorted(pairs)]
    return matched, [old[j] for j in left], [new[k] for k in range(len(new)) if k not in pairs]


def _moved(before: Any, after: Any) -> bool:
    if not _is_number(before) or not _is_number(after):
        return bool(before != after)
    return bool(abs(before - after) > _SAME * max(abs(before), abs(after)))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _change(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> Change:
    here = after or before
    assert here is not None
    percent = None
    if before and after and _is_number(before["value"]) and _is_number(after["value"]) and before["value"]:
        percent = (after["value"] / before["value"] - 1) * 100
    shown = [None if side is None else _said(side) for side in (before, after)]
    return Change(here["path"], here["line"], here["sentence"], here["fact"], shown[0], shown[1], percent)


def _said(row: Mapping[str, Any]) -> str:
    if row["kind"] == "claim":
        return "true" if row["value"] else "false"
    return str(row["digits"])


def diff(root: Path, ref: str, prose: Prose, folder: Path) -> Diff:
    """What changed between a git revision of the checkout and today's prose.

    folder: an empty folder for the revision's files; the caller removes it. The old values are computed by the
    revision's own builder in a subprocess where it can, else by today's. Raises LessonError where git knows no such
    revision, or neither builder can read its text.
    """
    export(root, ref, folder)
    old = _by_its_own_builder(folder)
    side = f"the builder of {ref}"
    if old is None:
        old, side = _by_this_builder(folder, ref), f"today's builder, since that of {ref} doesn't list numbers"
    return compare(old, rows(prose), ref, side)


def export(root: Path, ref: str, folder: Path) -> None:
    """The files of a revision into a folder. Raises LessonError where git knows no such revision."""
    verify = ["git", "-C", str(root), "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"]
    try:
        commit = subprocess.run(verify, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise LessonError("git isn't installed: --diff asks it for the old text") from None
    if commit.returncode:
        hint = "name a branch, a tag or a commit, such as HEAD~1; a shallow clone has few"
        raise LessonError(f"git knows no revision '{ref}' here", hint=hint)
    top = subprocess.run(
        ["git", "-C", str(root), "rev-parse", "--show-prefix"], capture_output=True, text=True, check=True
    ).stdout.strip()
    command = ["git", "-C", str(root), "archive", "--format=tar", f"{commit.stdout.strip()}:{top}".rstrip(":")]
    packed = subprocess.run(command, capture_output=True, check=False)
    if packed.returncode:
        raise LessonError(
            f"git can't hand out the files of '{ref}'", hint=packed.stderr.decode(errors="replace").strip()
        )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as tar:
        tar.extractall(folder, filter="data")


def _by_its_own_builder(folder: Path) -> list[dict[str, Any]] | None:
    """The rows that the builder in a folder lists of the text in it; None where it can't."""
    # without an __init__.py Python would take an installed builder, today's, for that of the folder
    if not all((folder / "builder" / name).is_file() for name in ("__init__.py", "numbers.py")):
        return None
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(folder), "PYTHONUTF8": "1"}
    command = [sys.executable, "-m", "builder", "numbers", "--format", "json"]
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, timeout=_SECONDS_FOR_OLD_BUILDER, check=False
        )
        found = json.loads(done.stdout.decode("utf-8"))
    except (subprocess.SubprocessError, OSError, ValueError):
        return None
    needed = {"path", "line", "sentence", "fact", "kind", "value", "digits"}
    if isinstance(found, list) and all(isinstance(row, dict) and needed <= set(row) for row in found):
        return found
    return None


def _by_this_builder(folder: Path, ref: str) -> list[dict[str, Any]]:
    try:
        return rows(read(sources(folder), Facts(load_grid(folder))))
    except (LessonError, LessonErrors) as error:
        first = error.errors[0] if isinstance(error, LessonErrors) else error
        raise LessonError(f"the content of '{ref}' can't be read: {first.place}: {first.message}") from None


_TITLES: tuple[tuple[str, str], ...] = (
    ("flipped", "Claims that flipped"),
    ("changed", "Numbers that changed"),
    ("removed", "Bound numbers that are gone"),
    ("added", "Bound numbers that are new"),
)


def report(found: Diff, form: str = "text") -> str:
    """A Diff as text, Markdown (a job summary) or JSON."""
    if form == "json":
        return json.dumps(asdict(found), ensure_ascii=False, indent=1) + "\n"
    write: Callable[[Sequence[Sequence[str]]], str] = _markdown if form == "markdown" else _columns
    heading, code = ("### ", "`") if form == "markdown" else ("", "")
    parts = []
    for name, title in _TITLES:
        changes: list[Change] = getattr(found, name)
        if not changes:
            continue
        table = [("place", "sentence", "old → new", "change", "fact")]
        for each in changes:
            place, shown = f"{each.path}:{each.line}", " → ".join(side or "–" for side in (each.old, each.new))
            table.append((place, each.sentence, shown, _percent(each.percent), f"{code}{each.fact}{code}"))
        parts.append(f"{heading}{title}: {len(changes)}\n\n{write(table)}")
    same = f"{found.unchanged} of them say what they said"
    if found.drifted:
        same += f"; {found.drifted} of these moved by less than their digits show"
    if not parts:
        parts.append(f"No bound number changed since {found.ref}.\n")
    return "\n".join([*parts, f"{same}. Old values: {found.old_side}.\n"])


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:+.1f} %".replace("-", "−")
