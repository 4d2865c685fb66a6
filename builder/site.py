"""Page and theme → {path: bytes}, and the one place that writes to disk.

A site is written so that a reader never meets half of it: files that pages refer to carry their content in their name
and come first, each moved into place whole; index.html comes last; then what earlier builds left is taken away.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath

from builder.errors import LessonError, LessonErrors
from builder.program import is_on_disk

MANIFEST = "manifest.json"
LAST = "index.html"
_KEPT = {".gitignore", ".nojekyll", "CNAME"}  # what a folder may hold that no build made
_UNFINISHED = ".lesson-new-"  # how a file is called until it is whole and moved into place


def compressed_size(data: bytes, level: int = 9) -> int:
    """Bytes as a server sends them: gzip, level 9, no time stamp. A lower level is a quick look."""
    return len(gzip.compress(data, level, mtime=0))


@lru_cache(maxsize=512)
def _digest(data: bytes) -> str:
    """Of contents; those of the last build are remembered, for a process that builds again."""
    return hashlib.sha256(data).hexdigest()


def hashed(name: str, data: bytes) -> str:
    """'assets/lesson.css' → 'assets/lesson.3f2a9c41d0.css': a name that changes with the content."""
    path = PurePosixPath(name)
    return str(path.with_name(f"{path.stem}.{_digest(data)[:10]}{path.suffix}"))


@dataclass
class Site:
    """The files of a site by relative path, with '/'."""

    files: dict[str, bytes] = field(default_factory=dict)

    def add(self, name: str, data: bytes | str) -> str:
        """A file under its own name."""
        assert name not in self.files, f"{name} is made twice"
        self.files[name] = data.encode() if isinstance(data, str) else data
        return name

    def add_hashed(self, name: str, data: bytes | str) -> str:
        """A file that pages refer to, under a name with its hash; returns that name."""
        content = data.encode() if isinstance(data, str) else data
        return self.add(hashed(name, content), content)


def theme_text(path: Path) -> str:
    """The text of a file of the theme. Raises LessonErrors where it is missing or isn't UTF-8."""
    shown = "/".join(path.parts[path.parts.index("theme") :]) if "theme" in path.parts else str(path)
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise LessonErrors([LessonError(f"not UTF-8 text (byte {error.start})", path=shown)]) from None
    except OSError as error:
        raise LessonErrors([LessonError(f"can't be read: {error.strerror or error}", path=shown)]) from None


def concatenated(folder: Path, ending: str, leave_out: Iterable[str] = ()) -> str:
    """The files of a theme folder in the order of their names, as one text. Raises as theme_text does."""
    left_out = set(leave_out)
    paths = [path for path in sorted(folder.glob(f"*{ending}")) if path.name not in left_out]
    return "\n".join(theme_text(path).rstrip() + "\n" for path in paths)


def contents_key(root: Path, patterns: Iterable[str], *more: str) -> str:
    """A hash of the names and contents of files, by patterns below root, and of more texts. Never of times."""
    digest = hashlib.sha256()
    for pattern in patterns:
        for path in sorted(root.glob(pattern)):
            data = path.read_bytes()
            digest.update(f"{path.relative_to(root).as_posix()}\0{len(data)}\0".encode() + data)
    for text in more:
        digest.update(f"\0{text}\0".encode())
    return digest.hexdigest()[:20]


_remembered: dict[str, tuple[Path, str]] = {}  # kind of thing → its last file and text, for a process that builds again


def cached(root: Path, name: str, make: Callable[[], str], by: str) -> str:
    """make()'s text, kept in root/.cache under a name, KIND-KEY.ending, that says what it depends on.

    The cache may be deleted or damaged at any time: a file whose text is not what was stored is made again, and a
    folder that can't be written is done without. Only the latest of a kind is kept, and nothing that was made while
    somebody saved the module `by` which it is made, or what that imports: it may be the work of code that the name
    doesn't mean.
    """
    path, kind = root / ".cache" / name, name.partition("-")[0]
    if kind in _remembered and _remembered[kind][0] == path:
        return _remembered[kind][1]
    text = _read_stored(path)
    if text is None:
        text = make()
        if not is_on_disk(by):
            return text
        stored = f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}".encode()
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            _move_into_place(path.parent, path.name, stored)
            for older in path.parent.glob(f"{kind}-*"):
                if older != path:
                    older.unlink(missing_ok=True)
    _remembered[kind] = (path, text)
    return text


def is_cached(root: Path, name: str) -> bool:
    """Whether cached() would find a text under this name without making it."""
    path = root / ".cache" / name
    return _remembered.get(name.partition("-")[0], (None, ""))[0] == path or _read_stored(path) is not None


def _read_stored(path: Path) -> str | None:
    """The text of a file of the cache; None where it isn't there, or isn't what was stored."""
    try:
        digest, _, text = path.read_bytes().decode().partition("\n")
    except (OSError, ValueError):
        return None
    return text if digest == hashlib.sha256(text.encode()).hexdigest() else None


def _manifest_of(out: Path) -> dict[str, str] | None:
    """What the last build wrote here, path → hash; None where there is no manifest of ours."""
    try:
        document = json.loads((out / MANIFEST).read_text(encoding="utf-8"))
        files = document["files"]
        if document["made by"] == "lesson" and all(isinstance(name, str) for name in files):
            return {str(name): str(digest) for name, digest in files.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return None


def refuse_foreign_folder(out: Path, shown: str) -> None:
    """Raise LessonErrors where a site must not go: over a file, or among files that no build of ours made."""
    if out.exists() and not out.is_dir():
        raise LessonErrors([LessonError("is not a folder", path=shown, hint="name a new folder with --out")])
    if not out.is_dir() or _manifest_of(out) is not None:
        return
    foreign = sorted(
        path.name for path in out.iterdir() if path.name not in _KEPT and not path.name.startswith(_UNFINISHED)
    )
    if foreign:
        some = ", ".join(foreign[:3]) + (", …" if len(foreign) > 3 else "")
        message = f"the folder holds files that no build of the lesson made ({some}) and is left alone"
        raise LessonErrors([LessonError(message, path=shown, hint="name a new or empty folder with --out")])


def _inside(out: Path, name: str) -> Path | None:
    """The path of a file of the manifest, or None where the name leads out of the folder, by itself or by a link."""
    if "\0" in name:
        return None
    path = out.joinpath(*PurePosixPath(name).parts)
    return path if path.parent.resolve().is_relative_to(out.resolve()) else None


def _make_folder(folder: Path) -> None:
    """A folder that a server may read whatever the umask is, and those above it where they are missing."""
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)


def _move_into_place(out: Path, name: str, data: bytes) -> None:
    target = out.joinpath(*PurePosixPath(name).parts)
    if target.is_file() and target.read_bytes() == data:
        return
    _make_folder(target.parent)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=_UNFINISHED)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _remove_empty(folder: Path, out: Path) -> None:
    """Take away a folder of the site, and those around it, as far as nothing is left in them."""
    while folder != out and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def replace_file(path: Path, text: str) -> None:
    """Put a text in the place of an author's file, or make it, whole or not at all; line ends and mode stay.

    Raises LessonErrors where it can't be written.
    """
    try:
        mode = path.stat().st_mode if path.exists() else None
        _move_into_place(path.parent, path.name, text.encode())
        if mode is not None:
            path.chmod(mode)
    except OSError as error:
        raise LessonErrors([LessonError(f"can't be written: {error.strerror or error}", path=str(path))]) from None


def write(site: Site, out: Path, shown: str | None = None) -> None:
    """Put a site into a folder: assets, then pages, then index.html, then take away what only earlier builds made.

    shown: how errors call the folder. Files that no build made stay. Raises LessonErrors where the folder is not ours
    or can't be written; what was there before still stands then.
    """
    shown = shown or str(out)
    refuse_foreign_folder(out, shown)
    before = _manifest_of(out) or {}
    digests = {name: _digest(data) for name, data in sorted(site.files.items())}
    # pages refer to assets: whatever is a page comes after them
    order = sorted(site.files, key=lambda name: (name == LAST, name.endswith(".html"), name))
    for leftover in out.rglob(f"{_UNFINISHED}*"):  # of a run that was killed
        leftover.unlink(missing_ok=True)
    try:
        # until the old files are gone they are still ours, also if this run is killed
        _move_into_place(out, MANIFEST, _manifest_text({**before, **digests}))
        for name in order:
            _move_into_place(out, name, site.files[name])
        gone = [path for name in sorted(set(before) - set(digests)) if (path := _inside(out, name)) and path.is_file()]
        for path in gone:
            path.unlink()
        for folder in dict.fromkeys(path.parent for path in gone):
            _remove_empty(folder, out)
        _move_into_place(out, MANIFEST, _manifest_text(digests))
    except OSError as error:
        raise LessonErrors([LessonError(f"can't be written: {error.strerror or error}", path=shown)]) from None


def _manifest_text(digests: Mapping[str, str]) -> bytes:
    document = {"made by": "lesson", "files": dict(sorted(digests.items()))}
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()
