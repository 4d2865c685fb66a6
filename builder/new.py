"""New data files from a published config or a few answers: valid, sourced, and written only when they are."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from builder.catalog import load_gpu, load_model, read_text
from builder.errors import LessonError
from builder.provenance import NONE_KNOWN, SOURCES_FILE, model_source


def _with_source(root: Path, table: str, title: str, url: str, *more: str) -> dict[str, str]:
    """sources.toml with a source added, as known today, and more of its lines; nothing where the table is there."""
    if not re.fullmatch(r"https://\S+", url):
        raise LessonError(f"'{url}' is no address that a reader can open", hint="https://…")
    text = read_text(root / SOURCES_FILE, SOURCES_FILE)
    if f"[{table}]" in text:
        return {}
    lines = [
        f"[{table}]",
        f"url = {_quoted(url)}",
        f"title = {_quoted(title)}",
        f'known = "{date.today():%Y-%m}"',
        *more,
    ]
    return {SOURCES_FILE: "\n".join([text.rstrip(), *lines, ""])}


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _free(root: Path, path: str) -> str:
    if (root / path).exists():
        raise LessonError("is there already", path=path, hint="edit it, or take another name")
    return path


def new_model(root: Path, name: str, config: Path, url: str) -> dict[str, str]:
    """Path → text of the files to write for a model: its config.json untouched, and its source.

    name: as the lesson will call it, 'Qwen3-8B'. Raises LessonError or LessonErrors where the name is taken or can't be
    a file's, or the ledger would cost the model wrongly.
    """
    if not re.fullmatch(r"[\w.+-]+", name):
        raise LessonError(f"'{name}' can't be the name of a file", hint="letters, digits, . _ + -")
    path = _free(root, f"content/models/{name}.json")
    load_model(config, str(config))
    said = f"disagreement = {_quoted(NONE_KNOWN)}"  # the config.json stays as it is published
    source = _with_source(root, model_source(name), f"config.json of {name}", url, said)
    return {path: config.read_bytes().decode("utf-8"), **source}


def new_gpu(root: Path, answers: Mapping[str, str | float | None]) -> dict[str, str]:
    """Path → text of the files to write for a GPU: its numbers in SI, each with its source.

    answers: label, name, year, bf16 and fp8 (dense TFLOP/s; fp8 None where the tensor cores have none), bandwidth
    (TB/s), memory (MiB, as nvidia-smi reports it), url. Raises LessonError or LessonErrors where an answer won't do.
    """
    label = str(answers["label"]).strip()
    gpu = re.sub(r"[^a-z0-9]+", "_", label.lower()).strip("_")
    path, source = _free(root, f"content/gpus/{gpu}.toml"), f"sheet.{gpu}"

    def sourced(key: str, value: str | float | None, power: str) -> str:
        said = f"source = {_quoted(source)}\ndisagreement = {_quoted(NONE_KNOWN)}"
        return f"[{key}]\nvalue = {value}{power}\n{said}\n"

    quoted = {key: _quoted(str(answers[key]).strip()) for key in ("name", "label")}
    fp8 = answers["fp8"]
    without = f"[peak_flops_fp8]\nabsent = {_quoted(f'the tensor cores of the {label} have no FP8')}\n"
    text = "\n".join(
        [
            f"name = {quoted['name']}\nlabel = {quoted['label']}\nyear = {answers['year']}\n",
            "# dense, without sparsity, FLOP/s",
            sourced("peak_flops", answers["bf16"], "e12"),
            without if fp8 is None else sourced("peak_flops_fp8", fp8, "e12"),
            "# byte/s",
            sourced("hbm_bandwidth", answers["bandwidth"], "e12"),
            "# the total that nvidia-smi reports, MiB",
            sourced("memory_mib", answers["memory"], ""),
        ]
    )
    with tempfile.TemporaryDirectory() as folder:
        trial = Path(folder) / f"{gpu}.toml"
        trial.write_text(text, encoding="utf-8")
        load_gpu(trial, path)
    return {path: text, **_with_source(root, source, f"{label} data sheet", str(answers["url"]))}
