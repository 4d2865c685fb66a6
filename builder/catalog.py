"""content/models and content/gpus → frozen Model and Gpu. All validation of data files is here.

A model file is a published Hugging Face config.json, untouched. A family we can't cost exactly is refused by name.
"""

from __future__ import annotations

import json
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
    "dtype",
    "quantization_config",
    "layer_types",
)
_KEYS_READ = _REQUIRED + _OPTIONAL + _OTHER_KEYS_READ
# keys that change what a pass costs, in ways this ledger doesn't know; a null, zero, false or empty one is harmless
_COSTLY_KEYS = re.compile(
    r"expert|moe|lora_rank|qk_nope|qk_rope|v_head_dim|mamba|ssm|recurrent|conv_|nextn|mtp|cross_attention|vision"
    r"|text_config|audio|encoder|sparse|linear_(key|value|num|attn)|attn_type|block_types|shared_kv|kv_shared"
    r"|per_layer_input|altup|attention_chunk_size|window_pattern"
)
_DENSE_ONLY = f"the ledger costs dense decoders of {', '.join(FAMILIES)}; others would be costed wrongly"
_PUBLISHED = "take it from the published config.json"

Places = dict[tuple[str, ...], tuple[int, int]]  # a nested key → line and column where it stands, from 1


_LINE_END = re.compile(r"\r\n?")  # beside \n: lines are counted as an editor counts them


def read_text(path: Path, name: str) -> str:
    """The text of a data file. Raises LessonError where it can't be read or isn't UTF-8."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise LessonError("there is no such file", path=name, hint="check its name and folder") from None
    except UnicodeDecodeError as error:
        message = f"not UTF-8 text (byte {error.start})"
        raise LessonError(message, path=name, hint=f"is it a {path.suffix} file, saved as UTF-8?") from None
    except OSError as error:
        message = f"can't be read: {error.strerror or error}"
        raise LessonError(message, path=name, hint="it must be a file that you may read") from None


def _brief(value: Any) -> str:
    """A value as an error quotes it, never longer than a line."""
    if isinstance(value, int) and abs(value) >= 10**24:
        return "a number of more than 24 digits"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:59] + "…"


class _File:
    """A parsed data file that knows where its keys stand, and collects what is wrong with them."""

    def __init__(self, name: str, text: str, data: Mapping[str, Any], places: Places | None = None) -> None:
        self.name = name
        self.text = text
        self.data = data
        self.places = places or {}
        self.errors: list[LessonError] = []

    def place_of(self, *keys: str) -> tuple[int | None, int | None]:
        """The line and column at which a nested key stands; of the table around it where it isn't there itself."""
        while keys:
            if keys in self.places:
                return self.places[keys]
            keys = keys[:-1]
        return None, None

    def line_of(self, *keys: str) -> int | None:
        """The line on which a nested key stands; of the table around it where it isn't there itself."""
        return self.place_of(*keys)[0]

    def wrong(self, message: str, *keys: str, hint: str | None = None) -> None:
        """Note a mistake at a nested key, and go on."""
        line, column = self.place_of(*keys)
        self.errors.append(LessonError(message, path=self.name, line=line, column=column, hint=hint))

    def finish(self) -> None:
        """Raise LessonErrors with everything noted, if anything was."""
        if self.errors:
            raise LessonErrors(self.errors)


_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}:,\n]')


def _json_places(text: str) -> tuple[Places, list[tuple[str, ...]]]:
    """(where the keys of a valid JSON text stand, the keys that stand twice). Elements of arrays count from 0."""
    places: Places = {}
    twice: list[tuple[str, ...]] = []
    path: list[str] = []  # of the value that comes next, its last part being what the innermost bracket counts by
    in_array: list[bool] = []
    line, line_start = 1, 0
    key: tuple[str, tuple[int, int]] = ("", (1, 1))
    for token in _JSON_TOKEN.finditer(text):
        mark = token[0]
        if mark == "\n":
            line, line_start = line + 1, token.end()
        elif mark in "{[":
            in_array.append(mark == "[")
            path.append("0" if mark == "[" else "")
        elif mark in "}]":
            in_array.pop()
            path.pop()
        elif mark == "," and in_array[-1]:
            path[-1] = str(int(path[-1]) + 1)
        elif mark == ":":
            path[-1] = key[0]
            if tuple(path) in places:
                twice.append(tuple(path))
            places[tuple(path)] = key[1]  # of two, the second is the one to take out
        elif mark != ",":
            key = (json.loads(mark), (line, token.start() - line_start + 1))
    return places, twice


_TOML_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_TOML_KEYS = rf"{_TOML_KEY}(?:[ \t]*\.[ \t]*{_TOML_KEY})*"
_TOML_TABLE = re.compile(rf"\s*\[\[?[ \t]*({_TOML_KEYS})[ \t]*\]")
_TOML_PAIR = re.compile(rf"\s*({_TOML_KEYS})[ \t]*=")


def _toml_places(text: str) -> Places:
    """Where the keys of a valid TOML text stand: tables and pairs, the inside of inline tables not looked at."""
    places: Places = {}
    table: tuple[str, ...] = ()
    inside: str | None = None  # the quotes of a text of several lines
    for number, line in enumerate(text.split("\n"), start=1):
        head = _TOML_TABLE.match(line) or _TOML_PAIR.match(line)
        if head and not inside:
            keys = tuple(part.strip("\"'") for part in re.findall(_TOML_KEY, head[1]))
            if head.re is _TOML_TABLE:
                table, keys = keys, ()
            for length in range(1, len(table + keys) + 1):
                places.setdefault((table + keys)[:length], (number, head.start(1) + 1))
        for quotes in re.findall("\"{3}|'{3}", line):
            inside = quotes if inside is None else None if inside == quotes else inside
    return places


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a number that JSON knows")


def read_json(path: Path, name: str | None = None) -> _File:
    """A JSON object from a file. Raises LessonErrors with line and column where it isn't one.

    Keys that stand twice are noted, for finish() to raise with whatever else is wrong in the file.
    """
    shown = name or str(path)
    text, hint = "", "a model is described by the config.json that its publisher ships"
    try:
        text = _LINE_END.sub("\n", read_text(path, shown))
        data = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg}"
        problem = LessonError(message, path=shown, line=error.lineno, column=error.colno, hint=hint)
        raise LessonErrors([problem]) from None
    except (ValueError, RecursionError) as error:
        raise LessonErrors([LessonError(f"not JSON: {error}", path=shown, hint=hint)]) from None
    except LessonError as error:
        raise LessonErrors([error]) from None
    if not isinstance(data, dict):
        raise LessonErrors([LessonError("not a JSON object", path=shown, line=1, column=1, hint=hint)])
    places, twice = _json_places(text)
    file = _File(shown, text, data, places)
    for keys in twice:
        file.wrong(f"the key '{keys[-1][:60]}' stands twice", *keys, hint="keep one of the two")
    return file


def read_toml(path: Path, name: str | None = None) -> _File:
    """A TOML table from a file. Raises LessonErrors with line and column where it isn't one."""
    shown, text = name or str(path), ""
    try:
        text = _LINE_END.sub("\n", read_text(path, shown))
        return _File(shown, text, tomllib.loads(text), _toml_places(text))
    except tomllib.TOMLDecodeError as error:
        where = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line, column = (int(where[1]), int(where[2])) if where else (text.count("\n") + 1, None)
        reason = re.sub(r"\s*\(at [^()]*\)$", "", str(error))[:120]
        hint = "a line is: key = value, with texts in quotes"
        if "overwrite" in reason or "twice" in reason:
            hint = "a key or table stands twice: keep one of the two"
        problem = LessonError(f"not TOML: {reason}", path=shown, line=line, column=column, hint=hint)
        raise LessonErrors([problem]) from None
    except (ValueError, RecursionError) as error:
        hint = "no number needs more than 20 digits, nor a table more than a few levels"
        raise LessonErrors([LessonError(f"not TOML: {error}", path=shown, hint=hint)]) from None
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
            unread = [name for name in file.data if name not in _KEYS_READ]
            near = [name for name in unread if did_you_mean(key, [name], 0.8) == f"did you mean '{name}'?"]
            hint = f"is '{near[0]}' meant to be '{key}'?" if near else _PUBLISHED
            message = f"'{key}' is null" if key in file.data else f"'{key}' is missing"
            file.wrong(message, near[0] if near else key, hint=hint)
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        hint = "write it without quotes and without a decimal point"
        file.wrong(f"'{key}' must be a whole number, not {_brief(value)}", key, hint=hint)
    elif not 1 <= value <= LARGEST_COUNT:
        file.wrong(f"'{key}' must be between 1 and {LARGEST_COUNT:,}, not {_brief(value)}", key, hint=_PUBLISHED)
    else:
        return value
    return None


def _flag(file: _File, key: str, default: bool) -> bool:
    value = file.data.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        file.wrong(f"'{key}' must be true or false, not {_brief(value)}", key, hint="write it without quotes")
        return default
    return value


def _family(file: _File) -> str:
    """The family. Raises at once where it is none of ours, or the file no model's: nothing else can be judged then."""
    family = file.data.get("model_type")
    if family is None:
        file.wrong("'model_type' is missing", hint="is this the config.json of a language model?")
        if not any(key in file.data for key in _REQUIRED):
            file.finish()
    elif not isinstance(family, str) or family not in FAMILIES:
        file.wrong(f"model_type {_brief(family)} is not accepted", "model_type", hint=_DENSE_ONLY)
        file.finish()
    return str(family)


def _refuse_what_costs_differently(file: _File) -> None:
    data = file.data
    act = data.get("hidden_act", "silu")
    if act != "silu":
        file.wrong(f"hidden_act {_brief(act)} is not accepted", "hidden_act", hint="accepted: silu (a gated MLP)")
    window = data.get("sliding_window")
    # Qwen files carry a window and say that they don't use it
    if _flag(file, "use_sliding_window", True) and window:
        hint = "only attention to the whole context can be costed; an unused window says use_sliding_window: false"
        message = f"sliding_window {_brief(window)} is in use: attention over a window is not in the ledger"
        file.wrong(message, "sliding_window", hint=hint)
    layer_types = data.get("layer_types")
    if layer_types is not None:
        kinds = layer_types if isinstance(layer_types, list) else [layer_types]
        for other in sorted({_brief(kind) for kind in kinds if kind != "full_attention"}):
            message = f"layer_types has {other}, which is not in the ledger"
            file.wrong(message, "layer_types", hint="only a model of full_attention in every layer can be costed")
    if data.get("quantization_config"):
        hint = "take the config.json of the unquantized model and choose the weights' dtype with --weights"
        file.wrong("quantization_config: the file is of a quantized copy", "quantization_config", hint=hint)
    for key in ("torch_dtype", "dtype"):
        dtype = data.get(key)
        if dtype is not None and dtype not in TORCH_DTYPES:
            known = did_you_mean(str(dtype)[:60], TORCH_DTYPES)
            file.wrong(f"{key} {_brief(dtype)} is not a known dtype", key, hint=known)
    for key, value in data.items():
        if value and key not in _KEYS_READ and _COSTLY_KEYS.search(key):
            file.wrong(f"'{key[:60]}' changes what a pass costs and is not in the ledger", key, hint=_DENSE_ONLY)


def _refuse_misspelt_options(file: _File) -> None:
    """A misspelt optional key would silently fall back to its default and cost another model."""
    for key in file.data:
        if key in _KEYS_READ or len(key) > 60:
            continue
        for option in _OPTIONAL + _OTHER_KEYS_READ:
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
    _refuse_what_costs_differently(file)
    _refuse_misspelt_options(file)
    heads, hidden = required["num_attention_heads"], required["hidden_size"]
    kv_heads, head_dim = optional["num_key_value_heads"] or heads, optional["head_dim"]
    if heads and kv_heads and heads % kv_heads:
        hint = "each KV head serves the same number of query heads"
        message = f"num_attention_heads {heads} is not divisible by num_key_value_heads {kv_heads}"
        file.wrong(message, "num_key_value_heads", hint=hint)
    if heads and hidden and file.data.get("head_dim") is None:
        if hidden % heads:
            message = f"without head_dim, hidden_size {hidden} must be divisible by num_attention_heads {heads}"
            file.wrong(message, "hidden_size", hint="add the head_dim of the published config.json")
        head_dim = hidden // heads
    file.finish()
    assert heads
    assert hidden
    assert kv_heads
    assert head_dim
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

    def peak(self, math: str) -> float:
        """Dense FLOP/s of arithmetic in bf16 or fp8. Raises LessonError where the tensor cores don't know it."""
        if math == "bf16":
            return self.peak_flops
        if self.fp8 is None:
            hint = "weights=fp8 reads FP8 and multiplies in BF16"
            raise LessonError(f"the {self.label} can't multiply in FP8: {self.no_fp8}", hint=hint)
        return self.fp8.value

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


def _text(file: _File, key: str, example: str) -> str:
    value = file.data.get(key)
    if isinstance(value, str) and value.strip():
        return value
    message = f"'{key}' is missing" if value is None else f"'{key}' must be a text that is not empty"
    file.wrong(message, key, hint=f'such as {key} = "{example}"')
    return ""


def _sourced(file: _File, key: str, scale: float, *, may_be_absent: bool = False) -> Sourced | None:
    """The table [key] with value and source, in SI; None, and an error noted, where it is wrong."""
    table = file.data.get(key)
    if not isinstance(table, dict):
        message = f"'{key}' is missing" if table is None else f"'{key}' must be a table with value and source"
        file.wrong(message, key, hint=f'write [{key}], and below it value = 1.0e12 and source = "sheet.h100"')
        return None
    for unknown in [name for name in table if name not in _NUMBER_KEYS]:
        hint = did_you_mean(unknown[:60], _NUMBER_KEYS)
        file.wrong(f"unknown key '{key}.{unknown[:60]}'", key, unknown, hint=hint)
    if may_be_absent and "absent" in table:
        if not (isinstance(table["absent"], str) and table["absent"].strip()) or "value" in table:
            hint = "keep either value and source, or absent"
            file.wrong(f"'{key}.absent' must be the reason, and stand without a value", key, "absent", hint=hint)
        return None
    value, source = table.get("value"), table.get("source")
    if "value" not in table:
        file.wrong(f"'{key}.value' is missing", key, "value", hint="the number of the data sheet, in SI units")
    elif isinstance(value, bool) or not isinstance(value, int | float):
        hint = "a bare number such as 989e12, without quotes"
        file.wrong(f"'{key}.value' must be a number, not {_brief(value)}", key, "value", hint=hint)
    elif not 1 <= value < 1e21:  # refuses NaN too
        shown = _brief(value) if isinstance(value, int) else str(value)
        hint = "the number of the data sheet, in SI units"
        file.wrong(f"'{key}.value' must be at least 1 and below 1e21, not {shown}", key, "value", hint=hint)
    else:
        number = float(value) * scale
    if not isinstance(source, str) or not source.strip():
        hint = "an id of content/sources.toml"
        what = "must be a text that is not empty" if "source" in table else "is missing"
        file.wrong(f"'{key}.source' {what}: every number says where it comes from", key, "source", hint=hint)
    disagreement = table.get("disagreement")
    if disagreement is not None and not isinstance(disagreement, str):
        file.wrong(f"'{key}.disagreement' must be a text", key, "disagreement", hint="put it in quotes")
    if file.errors:
        return None
    return Sourced(number, str(source), str(disagreement) if disagreement else None)


def load_gpu(path: Path, name: str | None = None) -> Gpu:
    """A Gpu from a TOML file; its id is the file's stem. Raises LessonErrors with every problem found."""
    file = read_toml(path, name)
    for key in file.data:
        if key not in _GPU_KEYS:
            file.wrong(f"unknown key '{key[:60]}'", key, hint=did_you_mean(key[:60], _GPU_KEYS))
    if not path.stem.isidentifier():
        file.wrong(f"the file's name '{path.stem}' is the GPU's id and must be letters, digits and _", hint="rename it")
    year = file.data.get("year")
    if isinstance(year, bool) or not isinstance(year, int) or not 2000 <= year <= 2100:
        message = "'year' is missing" if year is None else f"'year' must be a year, not {_brief(year)}"
        file.wrong(message, "year", hint="the year it was announced, such as 2022")
    full, label = _text(file, "name", "H100 SXM"), _text(file, "label", "H100")
    if label and path.stem.lower() != re.sub(r"\W", "_", label.lower()):
        hint = f"call the file {re.sub(r'[^a-z0-9]', '_', label[:40].lower())}.toml, or correct the label"
        file.wrong(f"the file is called {path.name} but describes the {label[:40]}", "label", hint=hint)
    elif label and full and label.lower() not in full.lower():
        hint = f"the name holds the label, such as {label} SXM"
        file.wrong(f"the name is {_brief(full)} but the label is {_brief(label)}", "name", hint=hint)
    bf16 = _sourced(file, "peak_flops", 1)
    fp8 = _sourced(file, "peak_flops_fp8", 1, may_be_absent=True)
    bandwidth = _sourced(file, "hbm_bandwidth", 1)
    memory = _sourced(file, "memory_mib", MIB)
    file.finish()
    assert bf16
    assert bandwidth
    assert memory
    assert isinstance(year, int)
    absent = file.data["peak_flops_fp8"].get("absent")
    return Gpu(path.stem, full, label, year, bf16, fp8, absent, bandwidth, memory)


def _load_all(folder: Path, root: Path, ending: str, load: Callable[[Path, str], T]) -> dict[str, T]:
    found: dict[str, T] = {}
    errors: list[LessonError] = []
    paths = sorted(folder.glob(f"*{ending}"))
    if not paths:
        message = f"there is no {ending} file in this folder"
        hint = "add one; the lesson needs at least a model and a GPU"
        errors.append(LessonError(message, path=folder.relative_to(root).as_posix(), hint=hint))
    for path in paths:
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
