"""Toys to check by hand: a GPU of 100 FLOP/s and 10 byte/s, and a model whose every dimension is one digit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from builder.catalog import Gpu, Model, Sourced, load_gpu, load_gpus, load_model, load_models
from builder.ledger import Kernel, Point, forward_pass
from builder.roofline import Pass, cost

ROOT = Path(__file__).resolve().parent.parent
GOLDENS = Path(__file__).resolve().parent / "goldens"

# what the lesson means when it doesn't say
DEFAULTS = Point("decode", 1, 8192, "h100", "bf16", "bf16", "gqa")

QWEN3_8B: dict[str, Any] = {
    "model_type": "qwen3",
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
    "tie_word_embeddings": False,
    "sliding_window": None,
    "use_sliding_window": False,
}

H100_TOML = """\
name = "H100 SXM"
label = "H100"
year = 2022

[peak_flops]
value = 989e12
source = "sheet.h100"
disagreement = "sparse figures are twice this"

[peak_flops_fp8]
value = 1979e12
source = "sheet.h100"

[hbm_bandwidth]
value = 3.35e12
source = "sheet.h100"

[memory_mib]
value = 81559
source = "memory.totals"
"""


def toy_gpu(**changes: Any) -> Gpu:
    """100 FLOP/s, 10 byte/s, so a ridge of 10 FLOP/byte; 1,000 bytes of memory; no FP8."""
    gpu = Gpu(
        id="toy",
        name="Toy",
        label="Toy",
        year=2024,
        bf16=Sourced(100.0, "toy"),
        fp8=None,
        no_fp8="a toy",
        bandwidth=Sourced(10.0, "toy"),
        memory=Sourced(1000.0, "toy"),
    )
    return replace(gpu, **changes)


def toy_model(**changes: Any) -> Model:
    """Hidden 4, 2 layers, 2 heads of 3 (so not hidden ÷ heads), 1 KV head, FFN 5, vocabulary 7."""
    model = Model(
        name="toy",
        family="llama",
        layers=2,
        hidden_size=4,
        intermediate_size=5,
        heads=2,
        kv_heads=1,
        head_dim=3,
        vocab_size=7,
        max_positions=None,
        tied=False,
        qk_norm=False,
        qkv_bias=False,
        out_bias=False,
        mlp_bias=False,
    )
    return replace(model, **changes)


def at(**changes: Any) -> Point:
    """The lesson's default point with some coordinates changed."""
    return replace(DEFAULTS, **changes)


def rows_of(model: Model, point: Point) -> dict[str, Kernel]:
    """The eight rows by name."""
    return {row.name: row for row in forward_pass(model, point)}


def lesson_gpus() -> dict[str, Gpu]:
    """The GPUs of content/gpus."""
    return load_gpus(ROOT)


def lesson_model() -> Model:
    """Qwen3-8B as content/models has it."""
    return {name.lower(): model for name, model in load_models(ROOT).items()}["qwen3-8b"]


def pass_of(model: Model, gpu: Gpu, point: Point) -> Pass:
    """The whole pass of a point on a GPU."""
    return cost(forward_pass(model, point), gpu, point.tokens)


def write_model(folder: Path, config: Mapping[str, Any], name: str = "model.json") -> Path:
    """A config.json in a folder, one key a line as publishers ship it."""
    path = folder / name
    path.write_text(json.dumps(config, indent=2), encoding="utf-8")
    return path


def model_from(folder: Path, config: Mapping[str, Any]) -> Model:
    """The Model of a config."""
    return load_model(write_model(folder, config), "model.json")


def gpu_from(folder: Path, text: str, name: str = "h100.toml") -> Gpu:
    """The Gpu of a TOML text."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return load_gpu(path, name)
