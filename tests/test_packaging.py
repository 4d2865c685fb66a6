"""What the project installs is declared, locked by hash, and the same everywhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

PINNED = re.compile(
    r"^(?P<name>[a-z0-9-]+)==(?P<version>\S+)(?: ; (?P<marker>[^\\]+))?(?P<hashes>(?: \\\n {4}--hash=\S+)+)$"
)


@pytest.fixture
def project(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture
def lock(root: Path) -> dict[str, re.Match[str]]:
    """The lock's entries by name."""
    text = (root / "requirements.lock").read_text(encoding="utf-8")
    entries = re.split(r"\n(?! )", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).strip())
    found = [PINNED.match(entry) for entry in entries]
    assert None not in found, [entry for entry, match in zip(entries, found, strict=True) if not match]
    return {match["name"]: match for match in found if match}


def wanted(project: dict[str, Any]) -> list[Requirement]:
    """Everything the project asks for: at run time, for its tests, and to be built."""
    texts = [
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["test"],
        *project["build-system"]["requires"],
    ]
    return [Requirement(text) for text in texts]


def test_every_entry_of_the_lock_is_pinned_by_hash(lock: dict[str, re.Match[str]]) -> None:
    """One version a package, at least a SHA-256 each, and a marker that parses."""
    assert len(lock) > 20
    for name, entry in lock.items():
        hashes = re.findall(r"--hash=(\S+)", entry["hashes"])
        assert hashes, name
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", one) for one in hashes), name
        assert not entry["marker"] or Marker(entry["marker"])


def test_the_lock_answers_what_the_project_asks_for(project: dict[str, Any], lock: dict[str, re.Match[str]]) -> None:
    """Each requirement of pyproject.toml is met by the version in the lock: run the command in its head if not."""
    for requirement in wanted(project):
        entry = lock.get(canonicalize_name(requirement.name))
        assert entry, f"{requirement} is not in requirements.lock"
        assert requirement.specifier.contains(Version(entry["version"])), f"{requirement} is not {entry['version']}"


def test_the_lock_names_no_place(root: Path) -> None:
    """No index, no address, no path: the file works with any mirror and on any machine."""
    text = (root / "requirements.lock").read_text(encoding="utf-8")
    assert not re.search(r"://|--index|--find-links|--extra-index|file:| @ |^\s*-e|(?<![\w-])/\w", text, re.MULTILINE)


def test_no_sample_data_is_installed(lock: dict[str, re.Match[str]]) -> None:
    """The lesson draws its own data; altair's examples stay out."""
    assert not [name for name in lock if "dataset" in name]


def test_the_build_backend_is_named_alike_twice(project: dict[str, Any]) -> None:
    """The group that the lock is made from asks for what the build asks for."""
    assert project["dependency-groups"]["build"] == project["build-system"]["requires"]


def test_libraries_are_ranges_except_the_one_whose_inside_is_used(project: dict[str, Any]) -> None:
    """vl-convert is pinned, as the Vega runtime is bundled from its embedded modules; nothing else is."""
    pinned = [text for text in project["project"]["dependencies"] if "==" in text]
    assert pinned == ["vl-convert-python==1.9.0.post1"]


def test_the_count_is_pinned_and_asked_for_by_nothing_else(project: dict[str, Any]) -> None:
    """A count names the versions that made it; the lock, and with it the everyday tests, knows nothing of PyTorch."""
    count = [Requirement(text) for text in project["project"]["optional-dependencies"]["count"]]
    assert all(re.fullmatch(r"==[\d.]+", str(requirement.specifier)) for requirement in count)
    assert not {requirement.name for requirement in count} & {requirement.name for requirement in wanted(project)}
