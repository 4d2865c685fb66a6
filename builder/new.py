"""New data files from a published config or a few answers: valid, sourced, and written only when they are."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from builder.catalog import load_gpu, load_model
from builder.errors import LessonError

SOURCES = "content/sources.toml"


def _with_source(root: Path, table: str, url: str) -> dict[str, str]:
    """sources.toml with an address added; nothing where the table is there already."""
    if not re.fullmatch(r"https://\S+", url):
        raise LessonError(f"'{url}' is no address that a reader can open", hint="https://…")
    text = (root / SOURCES).read_text(encoding="utf-8")
    if f"[{table}]" in text:
        return {}
    return {SOURCES: f"{text.rstrip()}\n[{table}]\nurl = {json.dumps(url, ensure_ascii=False)}\n"}


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
    table = "model." + re.sub(r"\W+", "_", name.lower())
    return {path: config.read_bytes().decode("utf-8"), **_with_source(root, table, url)}


def new_gpu(root: Path, answers: Mapping[str, str | float | None]) -> dict[str, str]:
    """Path → text of the files to write for a GPU: its numbers in SI, each with its source.

    answers: label, name, year, bf16 and fp8 (dense TFLOP/s; fp8 None where the tensor cores have none), bandwidth
    (TB/s), memory (MiB, as nvidia-smi reports it), url. Raises LessonError or LessonErrors where an answer won't do.
    """
    label = str(answers["label"]).strip()
    gpu = re.sub(r"[^a-z0-9]+", "_", label.lower()).strip("_")
    path, source = _free(root, f"content/gpus/{gpu}.toml"), f"sheet.{gpu}"

    def sourced(key: str, value: str | float | None, power: str) -> str:
        return f"[{key}]\nvalue = {value}{power}\nsource = {json.dumps(source)}\n"

    quoted = {key: json.dumps(str(answers[key]).strip(), ensure_ascii=False) for key in ("name", "label")}
    fp8 = answers["fp8"]
    without = (
        f"[peak_flops_fp8]\nabsent = {json.dumps(f'the tensor cores of the {label} have no FP8', ensure_ascii=False)}\n"
    )
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
    return {path: text, **_with_source(root, source, str(answers["url"]))}
