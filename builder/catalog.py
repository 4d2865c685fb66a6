"""content/models and content/gpus → frozen Model and Gpu. All validation of data files is here.

A model file is a published Hugging Face config.json, untouched. A family we can't cost exactly is refused by name.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from builder.errors import LessonError, LessonErrors, did_you_mean
from builder.units import MIB

T = TypeVar("T")

FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
TORCH_DTYPES = ("bfloat16", "float16", "float32")
LARGEST_COUNT = 2**31  # of any dimension; keeps every product of the ledger finite

_REQUIRED = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
_OPTIONAL = ("num_key_value_heads", "head_dim", "max_position_embeddings")
_OTHER_KEYS_READ = (
    "model_type",
    "hidden_act",
    "tie_word_embeddings",
    "sliding_window",
    "use_sliding_window",
    "attention_bias",
    "mlp_bias",
    "torch_dtype",
    "quantization_config",
    "layer_types",
)
# keys that change what a pass costs, in ways this ledger doesn't know; a null, zero, false or empty one is harmless
_COSTLY_KEYS = re.compile(
    r"expert|moe|lora_rank|mamba|ssm|recurrent|conv_|nextn|mtp|cross_attention|vision|text_config|audio"
    r"|encoder|sparse|linear_(key|value|num|attn)|attn_type|block_types|shared_kv|kv_shared|per_layer_input|altup"
)


def _plain_reader(path: Path, name: str) -> str:
    """The text of a data file. Raises LessonError where it can't be read or isn't UTF-8."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise LessonError("there is no such file", path=name) from None
    except UnicodeDecodeError as error:
        raise LessonError(f"not UTF-8 text (byte {error.start})", path=name) from None
    except OSError as error:
        raise LessonError(f"can't be read: {error.strerror or error}", path=name) from None


class _File:
    """A parsed data file that knows where its keys stand, and collects what is wrong with them."""

    def __init__(self, name: str, text: str, data: Mapping[str, Any]) -> None:
        self.name = name
        self.text = text
        self.data = data
        self.errors: list[LessonError] = []

    def line_of(self, *keys: str) -> int | None:
        """The line on which a (nested) key stands; the innermost that is found."""
        lines = self.text.splitlines()
        found: int | None = None
        start = 0
        for key in keys:
            name = re.escape(key)
            pattern = re.compile(rf'^\s*\[\s*{name}\s*\]|(?:^|[{{,\s])"?{name}"?\s*[:=]')
            for index in range(start, len(lines)):
                if pattern.search(lines[index]):
                    found, start = index + 1, index
                    break
            else:
                break
        return found

    def wrong(self, message: str, *keys: str, hint: str | None = None) -> None:
        self.errors.append(LessonError(message, path=self.name, line=self.line_of(*keys), hint=hint))

    def finish(self) -> None:
        if self.errors:
            raise LessonErrors(self.errors)


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for key, value in pairs:
        if key in seen:
            raise ValueError(f"the key '{key}' stands twice")
        seen[key] = value
    return seen


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a number that JSON knows")


def read_json(path: Path, name: str | None = None) -> _File:
    """A JSON object from a file. Raises LessonErrors with line and column where it isn't one."""
    shown = name or str(path)
    text = ""
    try:
        text = _plain_reader(path, shown)
        data = json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg}"
        raise LessonErrors([LessonError(message, path=shown, line=error.lineno, column=error.colno)]) from None
    except (ValueError, RecursionError) as error:
        raise LessonErrors([LessonError(f"not JSON: {error}", path=shown)]) from None
    except LessonError as error:
        raise LessonErrors([error]) from None
    if not isinstance(data, dict):
        hint = "a model is described by the config.json that its publisher ships"
        raise LessonErrors([LessonError("not a JSON object", path=shown, line=1, column=1, hint=hint)])
    return _File(shown, text, data)


def read_toml(path: Path, name: str | None = None) -> _File:
    """A TOML table from a file. Raises LessonErrors with line and column where it isn't one."""
    shown = name or str(path)
    try:
        text = _plain_reader(path, shown)
        return _File(shown, text, tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        where = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line, column = (int(where[1]), int(where[2])) if where else (None, None)
        message = re.sub(r"\s*\(at .*\)$", "", str(error))
        raise LessonErrors([LessonError(f"not TOML: {message}", path=shown, line=line, column=column)]) from None
    except (ValueError, RecursionError) as error:
        raise LessonErrors([LessonError(f"not TOML: {error}", path=shown)]) from None
    except LessonError as error:
        raise LessonErrors([error]) from None


@dataclass(frozen=True)
class Model:
    """A dense decoder-only transformer, by the dimensions of its config.json.

    q_width and kv_width are elements per token: heads × head_dim and KV heads × head_dim.
    """

    name: str
    family: str
    layers: int
    hidden_size: int
    intermediate_size: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab_size: int
    max_positions: int | None
    tied: bool
    qk_norm: bool
    qkv_bias: bool
    out_bias: bool
    mlp_bias: bool

    @property
    def q_width(self) -> int:
        """Elements of one token's queries in a layer."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Elements of one token's keys in a layer (as many again for its values)."""
        return self.kv_heads * self.head_dim

    def with_attention(self, attention: str) -> Model:
        """This model with another number of KV heads: gqa as published, mha one per query head, mqa one."""
        kv_heads = {"gqa": self.kv_heads, "mha": self.heads, "mqa": 1}[attention]
        return replace(self, kv_heads=kv_heads)

    @property
    def embedding_parameters(self) -> int:
        """Weights of the embedding table: vocabulary × hidden."""
        return self.vocab_size * self.hidden_size

    @property
    def streamed_parameters(self) -> int:
        """Weights that a pass reads: the matmuls of every layer and the LM head."""
        hidden, q, v = self.hidden_size, self.q_width, self.kv_width
        layer = hidden * (q + 2 * v) + q * hidden + 3 * hidden * self.intermediate_size
        return self.layers * layer + self.embedding_parameters

    @property
    def small_parameters(self) -> int:
        """Norm weights, and biases where the family has them: kept at 2 bytes, too small to count as traffic."""
        hidden, q, v = self.hidden_size, self.q_width, self.kv_width
        layer = 2 * hidden + (2 * self.head_dim if self.qk_norm else 0)
        layer += (q + 2 * v if self.qkv_bias else 0) + (hidden if self.out_bias else 0)
        layer += (2 * self.intermediate_size + hidden) if self.mlp_bias else 0
        return self.layers * layer + hidden

    @property
    def parameters(self) -> int:
        """All weights; a tied table counts once."""
        embedding = 0 if self.tied else self.embedding_parameters
        return self.streamed_parameters + embedding + self.small_parameters


def _whole(file: _File, key: str, *, required: bool) -> int | None:
    value = file.data.get(key)
    if value is None:
        if required:
            unread = [name for name in file.data if name not in _REQUIRED + _OPTIONAL + _OTHER_KEYS_READ]
            near = [name for name in unread if did_you_mean(key, [name], 0.8) == f"did you mean '{name}'?"]
            hint = f"is '{near[0]}' meant to be '{key}'?" if near else "it stands in the published config.json"
            file.wrong(f"'{key}' is missing", *near[:1], hint=hint)
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        file.wrong(f"'{key}' must be a whole number, not {json.dumps(value)[:60]}", key)
    elif not 1 <= value <= LARGEST_COUNT:
        file.wrong(f"'{key}' must be between 1 and {LARGEST_COUNT:,}, not {value:,}", key)
    else:
        return value
    return None


def _flag(file: _File, key: str, default: bool) -> bool:
    value = file.data.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        file.wrong(f"'{key}' must be true or false, not {json.dumps(value)[:60]}", key)
        return default
    return value


def _family(file: _File) -> str:
    """The family; raises at once where it is none of ours, since nothing else can be judged then."""
    family = file.data.get("model_type")
    if family is None:
        file.wrong("'model_type' is missing", hint="is this the config.json of a language model?")
    elif not isinstance(family, str) or family not in FAMILIES:
        hint = f"the ledger costs dense decoders of {', '.join(FAMILIES)}; others would be costed wrongly"
        file.wrong(f"model_type {json.dumps(family)[:60]} is not accepted", "model_type", hint=hint)
    file.finish()
    assert isinstance(family, str)
    return family


def _refuse_what_costs_differently(file: _File, family: str) -> None:
    data = file.data
    act = data.get("hidden_act", "silu")
    if act != "silu":
        hint = "accepted: silu (a gated MLP)"
        file.wrong(f"hidden_act {json.dumps(act)[:60]} is not accepted", "hidden_act", hint=hint)
    window = data.get("sliding_window")
    # Qwen files carry a window they don't use; other families use it whenever it is there
    uses_window = data.get("use_sliding_window", not family.startswith("qwen"))
    if window and uses_window is not False:
        message = f"sliding_window {json.dumps(window)[:60]} is in use: attention over a window is not in the ledger"
        file.wrong(message, "sliding_window", hint="only a model that attends to its whole context can be costed")
    layer_types = data.get("layer_types")
    if layer_types is not None:
        kinds = {str(kind) for kind in layer_types} if isinstance(layer_types, list) else {str(layer_types)}
        for kind in sorted(kinds - {"full_attention"}):
            file.wrong(f"layer_types has '{kind[:60]}'; only full_attention can be costed", "layer_types")
    if data.get("quantization_config"):
        hint = "take the config.json of the unquantized model and choose the weights' dtype with --weights"
        file.wrong("quantization_config: the file is of a quantized copy", "quantization_config", hint=hint)
    for key in ("torch_dtype", "dtype"):
        dtype = data.get(key)
        if dtype is not None and dtype not in TORCH_DTYPES:
            hint = did_you_mean(str(dtype), TORCH_DTYPES)
            file.wrong(f"{key} {json.dumps(dtype)[:60]} is not a known dtype", key, hint=hint)
    for key, value in data.items():
        if value and key not in _OTHER_KEYS_READ and _COSTLY_KEYS.search(key):
            file.wrong(f"'{key}' changes what a pass costs and is not in the ledger", key)


def _refuse_misspelt_options(file: _File) -> None:
    """A misspelt optional key would silently fall back to its default and cost another model."""
    known = _REQUIRED + _OPTIONAL + _OTHER_KEYS_READ
    for key in file.data:
        if key in known:
            continue
        for option in _OPTIONAL + ("tie_word_embeddings",):
            if option not in file.data and did_you_mean(key, [option], 0.85) == f"did you mean '{option}'?":
                file.wrong(f"unknown key '{key}'", key, hint=f"did you mean '{option}'?")


def load_model(path: Path, name: str | None = None) -> Model:
    """A Model from a published config.json.

    name: how errors call the file. Raises LessonErrors with every problem found: missing, misspelt or ill-typed keys,
    numbers that are zero, negative or beyond reason, heads that the KV heads don't divide, a family or feature that
    the ledger would cost wrongly.
    """
    file = read_json(path, name)
    family = _family(file)
    required = {key: _whole(file, key, required=True) for key in _REQUIRED}
    optional = {key: _whole(file, key, required=False) for key in _OPTIONAL}
    tied = _flag(file, "tie_word_embeddings", False)
    attention_bias, mlp_bias = _flag(file, "attention_bias", False), _flag(file, "mlp_bias", False)
    _refuse_what_costs_differently(file, family)
    _refuse_misspelt_options(file)
    heads, hidden = required["num_attention_heads"], required["hidden_size"]
    kv_heads, head_dim = optional["num_key_value_heads"] or heads, optional["head_dim"]
    if heads and kv_heads and heads % kv_heads:
        hint = "each KV head serves the same number of query heads"
        message = f"num_attention_heads {heads} is not divisible by num_key_value_heads {kv_heads}"
        file.wrong(message, "num_key_value_heads", hint=hint)
    if heads and hidden and not head_dim:
        if hidden % heads:
            message = f"without head_dim, hidden_size {hidden} must be divisible by num_attention_heads {heads}"
            file.wrong(message, "hidden_size", hint="add the head_dim of the published config.json")
        head_dim = hidden // heads
    file.finish()
    assert heads and hidden and kv_heads and head_dim
    return Model(
        name=path.stem,
        family=family,
        layers=required["num_hidden_layers"] or 0,
        hidden_size=hidden,
        intermediate_size=required["intermediate_size"] or 0,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        vocab_size=required["vocab_size"] or 0,
        max_positions=optional["max_position_embeddings"],
        tied=tied,
        qk_norm=family == "qwen3",
        qkv_bias=family == "qwen2" or attention_bias,
        out_bias=family != "qwen2" and attention_bias,
        mlp_bias=family == "llama" and mlp_bias,
    )


@dataclass(frozen=True)
class Sourced:
    """A number from a data sheet: value in SI, id of its source, and where sources are known to disagree."""

    value: float
    source: str
    disagreement: str | None = None


@dataclass(frozen=True)
class Gpu:
    """A GPU by its data sheet: dense peaks in FLOP/s, bandwidth in byte/s, memory in bytes; each number sourced.

    peak_flops_fp8 is None where the tensor cores know no FP8; no_fp8 then says why.
    """

    id: str
    name: str
    label: str
    year: int
    bf16: Sourced
    fp8: Sourced | None
    no_fp8: str | None
    bandwidth: Sourced
    memory: Sourced

    @property
    def peak_flops(self) -> float:
        """Dense BF16 FLOP/s."""
        return self.bf16.value

    @property
    def peak_flops_fp8(self) -> float | None:
        """Dense FP8 FLOP/s."""
        return self.fp8.value if self.fp8 else None

    @property
    def hbm_bandwidth(self) -> float:
        """byte/s."""
        return self.bandwidth.value

    @property
    def memory_bytes(self) -> float:
        """Bytes: what nvidia-smi reports as the total."""
        return self.memory.value

    @property
    def ridge_point(self) -> float:
        """FLOP/byte at which slope and roof meet: peak ÷ bandwidth."""
        return self.peak_flops / self.hbm_bandwidth


_GPU_KEYS = ("name", "label", "year", "peak_flops", "peak_flops_fp8", "hbm_bandwidth", "memory_mib")
_NUMBER_KEYS = ("value", "source", "disagreement", "absent")


def _text(file: _File, key: str) -> str:
    value = file.data.get(key)
    if isinstance(value, str) and value.strip():
        return value
    file.wrong(f"'{key}' is missing" if value is None else f"'{key}' must be a text that is not empty", key)
    return ""


def _sourced(file: _File, key: str, scale: float, *, may_be_absent: bool = False) -> Sourced | None:
    """The table [key] with value and source, in SI; None, and an error noted, where it is wrong."""
    table = file.data.get(key)
    if not isinstance(table, dict):
        example = f"[{key}]\nvalue = 1.0e12\nsource = \"sheet.h100\"".replace("\n", " / ")
        message = f"'{key}' is missing" if table is None else f"'{key}' must be a table with value and source"
        file.wrong(message, key, hint=example)
        return None
    for unknown in [name for name in table if name not in _NUMBER_KEYS]:
        file.wrong(f"unknown key '{key}.{unknown}'", key, unknown, hint=did_you_mean(unknown, _NUMBER_KEYS))
    if may_be_absent and "absent" in table:
        if not (isinstance(table["absent"], str) and table["absent"].strip()) or "value" in table:
            file.wrong(f"'{key}.absent' must be the reason, and stand without a value", key, "absent")
        return None
    value, source = table.get("value"), table.get("source")
    if isinstance(value, bool) or not isinstance(value, int | float):
        file.wrong(f"'{key}.value' must be a number" if "value" in table else f"'{key}.value' is missing", key, "value")
        value = 1.0
    elif not math.isfinite(value) or not 0 < value < 1e21:
        file.wrong(f"'{key}.value' must be positive and finite, not {value}", key, "value")
        value = 1.0
    if not isinstance(source, str) or not source.strip():
        file.wrong(f"'{key}.source' is missing: every number says where it comes from", key, "source")
    disagreement = table.get("disagreement")
    if disagreement is not None and not isinstance(disagreement, str):
        file.wrong(f"'{key}.disagreement' must be a text", key, "disagreement")
    return Sourced(float(value) * scale, str(source), str(disagreement) if disagreement else None)


def load_gpu(path: Path, name: str | None = None) -> Gpu:
    """A Gpu from a TOML file; its id is the file's stem. Raises LessonErrors with every problem found."""
    file = read_toml(path, name)
    for key in file.data:
        if key not in _GPU_KEYS:
            file.wrong(f"unknown key '{key}'", key, hint=did_you_mean(key, _GPU_KEYS))
    if not path.stem.isidentifier():
        file.wrong(f"the file's name '{path.stem}' is the GPU's id and must be letters, digits and _", hint="rename it")
    year = file.data.get("year")
    if isinstance(year, bool) or not isinstance(year, int) or not 2000 <= year <= 2100:
        file.wrong("'year' is missing" if year is None else "'year' must be a year", "year")
    full, label = _text(file, "name"), _text(file, "label")
    if label and path.stem.lower() != re.sub(r"\W", "_", label.lower()):
        hint = f"call the file {re.sub(r'[^a-z0-9]', '_', label.lower())}.toml, or correct the label"
        file.wrong(f"the file is called {path.name} but describes the {label}", "label", hint=hint)
    bf16 = _sourced(file, "peak_flops", 1)
    fp8 = _sourced(file, "peak_flops_fp8", 1, may_be_absent=True)
    bandwidth = _sourced(file, "hbm_bandwidth", 1)
    memory = _sourced(file, "memory_mib", MIB)
    file.finish()
    assert bf16 and bandwidth and memory and isinstance(year, int)
    absent = file.data["peak_flops_fp8"].get("absent")
    return Gpu(path.stem, full, label, year, bf16, fp8, absent, bandwidth, memory)


def _load_all(folder: Path, root: Path, ending: str, load: Callable[[Path, str], T]) -> dict[str, T]:
    found: dict[str, T] = {}
    errors: list[LessonError] = []
    for path in sorted(folder.glob(f"*{ending}")):
        try:
            found[path.stem] = load(path, path.relative_to(root).as_posix())
        except LessonErrors as problems:
            errors.extend(problems.errors)
    if errors:
        raise LessonErrors(errors)
    return found


def load_models(root: Path) -> dict[str, Model]:
    """Every model of root/content/models, by file stem. Raises LessonErrors with the problems of all files."""
    return _load_all(root / "content" / "models", root, ".json", load_model)


def load_gpus(root: Path) -> dict[str, Gpu]:
    """Every GPU of root/content/gpus, by file stem. Raises LessonErrors with the problems of all files."""
    return _load_all(root / "content" / "gpus", root, ".toml", load_gpu)
