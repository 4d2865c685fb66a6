"""Everything that can be wrong with the content, at once: what fails a build, and numbers without a source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from builder.build import assemble
from builder.catalog import Gpu, Sourced, load_gpus, read_toml
from builder.errors import LessonError, LessonErrors, did_you_mean
from builder.facts import Facts
from builder.grid import load_grid
from builder.prose import Prose, read, sources

SOURCES_FILE = "content/sources.toml"


def check(root: Path) -> tuple[Prose | None, list[LessonError]]:
    """The prose, where it could be read at all, and everything that is wrong with the content of a checkout."""
    try:
        grid = load_grid(root)
        prose = read(sources(root), Facts(grid))
    except LessonErrors as problems:
        return None, list(problems.errors)
    except LessonError as error:
        return None, [error]
    errors = [*prose.errors, *unsourced(root)]
    try:
        assemble(root, prose=prose)
    except LessonErrors as problems:
        errors += problems.errors
    return prose, errors


def _tables(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """('sheet.h100', its table) for every table of sources.toml that has an address."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            if "url" in value:
                yield f"{prefix}{key}", value
            yield from _tables(value, f"{prefix}{key}.")


def known_sources(root: Path) -> dict[str, Mapping[str, Any]]:
    """The sources of content/sources.toml by id: 'sheet.h100'. Raises LessonErrors where the file can't be read."""
    return dict(_tables(read_toml(root / SOURCES_FILE, SOURCES_FILE).data))


def unsourced(root: Path) -> list[LessonError]:
    """Numbers of the data files whose source isn't in content/sources.toml, and sources without an address."""
    try:
        known, gpus = known_sources(root), load_gpus(root)
    except LessonErrors as problems:
        return list(problems.errors)
    errors: list[LessonError] = []
    for gpu in gpus.values():
        path = f"content/gpus/{gpu.id}.toml"
        for name, number in _numbers(gpu):
            if number.source not in known:
                line = read_toml(root / path, path).line_of(name, "source")
                message = f"'{name}' has the source '{number.source}', which is not in {SOURCES_FILE}"
                errors.append(LessonError(message, path=path, line=line, hint=did_you_mean(number.source, known)))
    for name, table in known.items():
        addresses = table["url"] if isinstance(table["url"], list) else [table["url"]]
        if not all(isinstance(address, str) and address.startswith("https://") for address in addresses):
            line = read_toml(root / SOURCES_FILE, SOURCES_FILE).line_of(*name.split("."))
            message = f"'{name}' has no https address"
            errors.append(LessonError(message, path=SOURCES_FILE, line=line, hint='url = "https://…"'))
    return errors


def _numbers(gpu: Gpu) -> Iterable[tuple[str, Sourced]]:
    numbers = (gpu.bf16, gpu.fp8, gpu.bandwidth, gpu.memory)
    keys = ("peak_flops", "peak_flops_fp8", "hbm_bandwidth", "memory_mib")
    return [(key, number) for key, number in zip(keys, numbers, strict=True) if number]
