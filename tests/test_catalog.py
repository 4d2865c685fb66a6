"""Data files load as published, or say at once everything that is wrong with them."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder.catalog import Gpu, Model, load_gpu, load_gpus, load_model, load_models, read_json, read_toml
from builder.errors import LessonError, LessonErrors
from builder.units import MIB
from tests.toys import H100_TOML, QWEN3_8B, ROOT, gpu_from, lesson_gpus, model_from, toy_model, write_model

# Published config.json files of accepted families that content/models lacks (keys that say nothing of cost cut)
LLAMA_2_7B = {
    "architectures": ["LlamaForCausalLM"],
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "initializer_range": 0.02,
    "intermediate_size": 11008,
    "max_position_embeddings": 2048,
    "model_type": "llama",
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "pad_token_id": 0,
    "rms_norm_eps": 1e-05,
    "tie_word_embeddings": False,
    "torch_dtype": "float16",
    "transformers_version": "4.28.1",
    "use_cache": True,
    "vocab_size": 32000,
}
MISTRAL_7B_V03 = {
    "architectures": ["MistralForCausalLM"],
    "attention_dropout": 0.0,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 32768,
    "model_type": "mistral",
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05,
    "rope_theta": 1000000.0,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "vocab_size": 32768,
}
QWEN2_5_7B = {
    "architectures": ["Qwen2ForCausalLM"],
    "attention_dropout": 0.0,
    "hidden_act": "silu",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "max_position_embeddings": 131072,
    "max_window_layers": 28,
    "model_type": "qwen2",
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "rms_norm_eps": 1e-06,
    "rope_theta": 1000000.0,
    "sliding_window": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "use_mrope": False,
    "use_sliding_window": False,
    "vocab_size": 152064,
}


def published(name: str) -> dict[str, Any]:
    """A config.json of content/models, untouched."""
    config: dict[str, Any] = json.loads((ROOT / "content" / "models" / f"{name}.json").read_text(encoding="utf-8"))
    return config


LLAMA_3_1_8B = published("Llama-3.1-8B")

# config, its parameters as published, KV heads, head_dim
ACCEPTED = {
    "Llama-2-7B": (LLAMA_2_7B, 6_738_415_616, 32, 128),
    "Llama-3.1-8B": (published("Llama-3.1-8B"), 8_030_261_248, 8, 128),
    "Llama-3.1-70B": (published("Llama-3.1-70B"), 70_553_706_496, 8, 128),
    "Mistral-7B-v0.3": (MISTRAL_7B_V03, 7_248_023_552, 8, 128),
    "Qwen2.5-7B": (QWEN2_5_7B, 7_615_616_512, 4, 128),
    "Qwen3-0.6B": (published("Qwen3-0.6B"), 596_049_920, 8, 128),
    "Qwen3-8B": (published("Qwen3-8B"), 8_190_735_360, 8, 128),
    "Qwen3-32B": (published("Qwen3-32B"), 32_762_123_264, 8, 128),
}


def problems_of(load, *arguments) -> list[tuple]:
    """(line, message, hint) of every error that a call raises."""
    with pytest.raises(LessonErrors) as caught:
        load(*arguments)
    return [(error.line, error.message, error.hint) for error in caught.value.errors]


def messages_of(load, *arguments) -> list[str]:
    """The message of every error that a call raises; each names the file and a remedy."""
    with pytest.raises(LessonErrors) as caught:
        load(*arguments)
    assert all(error.path and error.hint for error in caught.value.errors), str(caught.value)
    return [error.message for error in caught.value.errors]


def outcome(load, *arguments) -> tuple[object, list[LessonError]]:
    """(what loaded or None, the errors it raised)."""
    try:
        return load(*arguments), []
    except LessonErrors as problems:
        return None, problems.errors


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_published_config_loads_untouched(tmp_path, name):
    """A published config of an accepted family loads, and its parameters come out to the last one."""
    config, parameters, kv_heads, head_dim = ACCEPTED[name]
    model = model_from(tmp_path, config)
    assert (model.parameters, model.kv_heads, model.head_dim) == (parameters, kv_heads, head_dim)


def test_every_model_of_the_content_has_its_source():
    """content/sources.toml says where each config.json was published, under the name that `lesson new model` gives."""
    sources = tomllib.loads((ROOT / "content" / "sources.toml").read_text(encoding="utf-8"))["model"]
    assert {re.sub(r"\W+", "_", name.lower()) for name in load_models(ROOT)} <= set(sources)


def test_without_kv_heads_every_query_head_has_its_own(tmp_path):
    """Llama-2-7B has no num_key_value_heads: plain multi-head attention."""
    model = model_from(tmp_path, LLAMA_2_7B)
    assert model.kv_heads == model.heads == 32


def test_heads_times_head_dim_may_differ_from_hidden(tmp_path):
    """Qwen3-32B projects 5,120 to 64 × 128 = 8,192."""
    model = model_from(tmp_path, published("Qwen3-32B"))
    assert (model.hidden_size, model.q_width, model.kv_width) == (5120, 8192, 1024)


def test_only_qwen3_normalizes_queries_and_keys(tmp_path):
    """q/k-norm belongs to qwen3, q/k/v biases to qwen2."""
    assert [model_from(tmp_path, config).qk_norm for config in (QWEN3_8B, QWEN2_5_7B, LLAMA_3_1_8B)] == [
        True,
        False,
        False,
    ]
    assert [model_from(tmp_path, config).qkv_bias for config in (QWEN3_8B, QWEN2_5_7B, LLAMA_3_1_8B)] == [
        False,
        True,
        False,
    ]


def test_a_bias_is_counted_where_the_file_has_it(tmp_path):
    """attention_bias adds q + 2v + hidden a layer, mlp_bias 2·FFN + hidden."""
    plain = model_from(tmp_path, LLAMA_3_1_8B).parameters
    biased = model_from(tmp_path, LLAMA_3_1_8B | {"attention_bias": True}).parameters
    assert biased - plain == 32 * (4096 + 2 * 1024 + 4096)
    biased = model_from(tmp_path, LLAMA_3_1_8B | {"mlp_bias": True}).parameters
    assert biased - plain == 32 * (2 * 14336 + 4096)
    # qwen2 has its q/k/v biases and no other, whatever the file says
    assert model_from(tmp_path, QWEN2_5_7B | {"attention_bias": True}) == model_from(tmp_path, QWEN2_5_7B)


def test_a_tied_table_counts_once():
    """Tying takes vocabulary × hidden off the parameters and nothing off what is streamed."""
    tied, untied = toy_model(tied=True), toy_model()
    assert untied.parameters - tied.parameters == 7 * 4
    assert untied.streamed_parameters == tied.streamed_parameters


def test_a_choice_of_attention_changes_the_kv_heads_alone():
    """gqa is as published, mha has a KV head per query head, mqa one."""
    model = toy_model(heads=6, kv_heads=2)
    assert [model.with_attention(name).kv_heads for name in ("gqa", "mha", "mqa")] == [2, 6, 1]
    assert model.with_attention("mha").q_width == model.q_width


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_of_data_are_counted_as_an_editor_counts_them(tmp_path, end):
    """Whatever ends them."""
    for name, reads, text in (
        ("a.json", load_model, b'{#"a": 1,#  "b": ,#}'),
        ("a.toml", read_toml, b"a = 1##  b = #c = 2#"),
    ):
        (tmp_path / name).write_bytes(text.replace(b"#", end))
        with pytest.raises(LessonErrors) as problems:
            reads(tmp_path / name, name)
        (error,) = problems.value.errors
        assert (error.line, error.column) == (3, 8 if name == "a.json" else 7)
    (tmp_path / "a.json").write_bytes(b'{#"a": 1,#  "a": 2}'.replace(b"#", end))
    with pytest.raises(LessonErrors) as problems:
        load_model(tmp_path / "a.json", "a.json")
    assert [(error.line, error.column) for error in problems.value.errors if "twice" in error.message] == [(3, 3)]


# what a file has beside (or instead of) Qwen3-8B's keys . the message, what it must name
REFUSED = [
    ({"model_type": "mixtral", "num_local_experts": 8}, 'model_type "mixtral" is not accepted'),
    ({"model_type": "deepseek_v3", "kv_lora_rank": 512}, 'model_type "deepseek_v3" is not accepted'),
    ({"model_type": "gemma", "hidden_act": "gelu_pytorch_tanh"}, 'model_type "gemma" is not accepted'),
    ({"model_type": "qwen3_moe"}, 'model_type "qwen3_moe" is not accepted'),
    ({"model_type": "Qwen3"}, 'model_type "Qwen3" is not accepted'),
    ({"model_type": 3}, "model_type 3 is not accepted"),
    ({"model_type": ["qwen3"]}, 'model_type ["qwen3"] is not accepted'),
    ({"hidden_act": "gelu"}, 'hidden_act "gelu" is not accepted'),
    ({"hidden_act": None}, "hidden_act null is not accepted"),
    ({"kv_lora_rank": 512}, "'kv_lora_rank' changes what a pass costs and is not in the ledger"),
    ({"qk_rope_head_dim": 64}, "'qk_rope_head_dim' changes what a pass costs and is not in the ledger"),
    ({"qk_nope_head_dim": 128}, "'qk_nope_head_dim' changes what a pass costs and is not in the ledger"),
    ({"v_head_dim": 128}, "'v_head_dim' changes what a pass costs and is not in the ledger"),
    ({"num_experts": 128}, "'num_experts' changes what a pass costs and is not in the ledger"),
    ({"num_local_experts": 8}, "'num_local_experts' changes what a pass costs and is not in the ledger"),
    ({"moe_intermediate_size": 768}, "'moe_intermediate_size' changes what a pass costs and is not in the ledger"),
    ({"num_nextn_predict_layers": 1}, "'num_nextn_predict_layers' changes what a pass costs and is not in the ledger"),
    ({"vision_config": {"depth": 32}}, "'vision_config' changes what a pass costs and is not in the ledger"),
    ({"attention_chunk_size": 8192}, "'attention_chunk_size' changes what a pass costs and is not in the ledger"),
    (
        {"model_type": "mistral", "sliding_window": 4096, "use_sliding_window": None},
        "sliding_window 4,096 is in use: attention over a window is not in the ledger",
    ),
    (
        {"sliding_window": 4096, "use_sliding_window": True},
        "sliding_window 4,096 is in use: attention over a window is not in the ledger",
    ),
    ({"use_sliding_window": "no"}, "'use_sliding_window' must be true or false, not \"no\""),
    (
        {"layer_types": ["full_attention", "sliding_attention"]},
        'layer_types has "sliding_attention", which is not in the ledger',
    ),
    ({"layer_types": ["linear_attention"]}, 'layer_types has "linear_attention", which is not in the ledger'),
    ({"layer_types": 3}, "layer_types has 3, which is not in the ledger"),
    (
        {"quantization_config": {"quant_method": "awq", "bits": 4}},
        "quantization_config: the file is of a quantized copy",
    ),
    ({"torch_dtype": "bf16"}, 'torch_dtype "bf16" is not a known dtype'),
    ({"dtype": "float8_e4m3fn"}, 'dtype "float8_e4m3fn" is not a known dtype'),
    ({"torch_dtype": 16}, "torch_dtype 16 is not a known dtype"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED, ids=[re.sub(r"\W+", "-", text)[:50] for _, text in REFUSED])
def test_what_would_be_costed_wrongly_is_refused_by_name(tmp_path, change, message):
    """A family or a feature that the ledger doesn't know is refused by its name, with a remedy."""
    assert message in messages_of(model_from, tmp_path, QWEN3_8B | change)


@pytest.mark.parametrize(
    "change",
    [
        {"sliding_window": 131072, "use_sliding_window": False},
        {"sliding_window": None, "use_sliding_window": True},
        {"layer_types": ["full_attention"] * 36},
        {"num_experts": 0, "kv_lora_rank": None, "vision_config": {}, "is_encoder_decoder": False},
        {"quantization_config": None},
        {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}},
        {"dtype": "bfloat16"},
        {"anything_new": [1, 2, 3]},
    ],
)
def test_what_costs_nothing_is_accepted(tmp_path, change):
    """Windows that are not used, empty features and keys that say nothing of cost change nothing."""
    assert model_from(tmp_path, QWEN3_8B | change) == model_from(tmp_path, QWEN3_8B)


# key, value . message
WRONG_COUNTS = [
    (True, "must be a whole number, not true"),
    ("4096", 'must be a whole number, not "4096"'),
    (4096.0, "must be a whole number, not 4096.0"),
    ([4096], "must be a whole number, not [4096]"),
    ({"a": 1}, 'must be a whole number, not {"a": 1}'),
    (0, "must be between 1 and 2,147,483,648, not 0"),
    (-4096, "must be between 1 and 2,147,483,648, not -4,096"),
    (2**31 + 1, "must be between 1 and 2,147,483,648, not 2,147,483,649"),
    (10**300, "must be between 1 and 2,147,483,648, not a number of more than 24 digits"),
    ("x" * 1000, 'must be a whole number, not "' + "x" * 58 + "…"),
]


@pytest.mark.parametrize("key", ["hidden_size", "num_key_value_heads", "head_dim", "vocab_size"])
@pytest.mark.parametrize(("value", "message"), WRONG_COUNTS, ids=[text[:40] for _, text in WRONG_COUNTS])
def test_a_count_is_a_whole_number_within_reason(tmp_path, key, value, message):
    """A dimension that is no whole number, not positive or beyond reason is refused where it stands."""
    config = QWEN3_8B | {key: value}
    ((line, said, hint),) = problems_of(model_from, tmp_path, config)
    assert said == f"'{key}' {message}"
    assert line == list(config).index(key) + 2
    assert hint


@pytest.mark.parametrize("key", ["tie_word_embeddings", "attention_bias", "mlp_bias"])
@pytest.mark.parametrize("value", [0, 1, "false", []])
def test_a_flag_is_true_or_false(tmp_path, key, value):
    """A flag is true or false, not 0 and not 'false'."""
    assert messages_of(model_from, tmp_path, QWEN3_8B | {key: value}) == [
        f"'{key}' must be true or false, not {json.dumps(value)}"
    ]


@pytest.mark.parametrize(
    "key", ["hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size"]
)
def test_a_missing_dimension_is_named(tmp_path, key):
    """A dimension that is missing or null is named, and nothing is assumed for it."""
    without = {name: value for name, value in QWEN3_8B.items() if name != key}
    assert messages_of(model_from, tmp_path, without) == [f"'{key}' is missing"]
    assert messages_of(model_from, tmp_path, QWEN3_8B | {key: None}) == [f"'{key}' is null"]


def test_a_misspelt_dimension_is_pointed_at(tmp_path):
    """A misspelt required key is shown where it stands, with the name it should have."""
    config = {("hiden_size" if key == "hidden_size" else key): value for key, value in QWEN3_8B.items()}
    assert problems_of(model_from, tmp_path, config) == [
        (4, "'hidden_size' is missing", "is 'hiden_size' meant to be 'hidden_size'?")
    ]


@pytest.mark.parametrize(
    ("key", "misspelt"),
    [
        ("num_key_value_heads", "num_key_values_heads"),
        ("head_dim", "head_dims"),
        ("tie_word_embeddings", "tie_word_embedding"),
        ("max_position_embeddings", "max_position_embedding"),
        ("hidden_act", "hiden_act"),
    ],
)
def test_a_misspelt_option_never_falls_back_to_its_default(tmp_path, key, misspelt):
    """A misspelt optional key would cost another model in silence: it is an error."""
    config = {(misspelt if name == key else name): value for name, value in QWEN3_8B.items()}
    line = list(config).index(misspelt) + 2
    assert problems_of(model_from, tmp_path, config) == [(line, f"unknown key '{misspelt}'", f"did you mean '{key}'?")]


def test_kv_heads_divide_the_query_heads(tmp_path):
    """Each KV head serves the same number of query heads, so never more of them than queries."""
    for kv_heads in (5, 64):
        assert problems_of(model_from, tmp_path, QWEN3_8B | {"num_key_value_heads": kv_heads}) == [
            (
                8,
                f"num_attention_heads 32 is not divisible by num_key_value_heads {kv_heads}",
                "each KV head serves the same number of query heads",
            )
        ]


def test_without_head_dim_the_heads_divide_hidden(tmp_path):
    """head_dim is hidden ÷ heads where the file has none, and then it must come out whole."""
    config = {key: value for key, value in QWEN3_8B.items() if key != "head_dim"}
    assert model_from(tmp_path, config).head_dim == 128
    assert messages_of(model_from, tmp_path, config | {"hidden_size": 4100}) == [
        "without head_dim, hidden_size 4100 must be divisible by num_attention_heads 32"
    ]


def test_all_that_is_wrong_in_a_model_is_said_at_once(tmp_path):
    """Six mistakes in one file are six errors in the order of their lines, each with file, line, column and remedy."""
    text = """{
  "model_type": "llama",
  "hidden_act": "gelu",
  "hidden_size": 0,
  "num_hidden_layers": 2, "num_attention_heads": 4.5,
  "vocab_size": 7,
  "vocab_size": 8,
  "rope_scaling": {"hidden_size": 3},
  "note": "\\"tie_word_embeddings\\": 1",
  "tie_word_embeddings": 1
}"""
    path = tmp_path / "model.json"
    path.write_text(text)
    with pytest.raises(LessonErrors) as caught:
        load_model(path, "content/models/model.json")
    assert str(caught.value).splitlines() == [
        "content/models/model.json: 'intermediate_size' is missing",
        "  hint: take it from the published config.json",
        'content/models/model.json:3:3: hidden_act "gelu" is not accepted',
        "  hint: accepted: silu (a gated MLP)",
        "content/models/model.json:4:3: 'hidden_size' must be between 1 and 2,147,483,648, not 0",
        "  hint: take it from the published config.json",
        "content/models/model.json:5:27: 'num_attention_heads' must be a whole number, not 4.5",
        "  hint: write it without quotes and without a decimal point",
        "content/models/model.json:7:3: the key 'vocab_size' stands twice",
        "  hint: keep one of the two",
        "content/models/model.json:10:3: 'tie_word_embeddings' must be true or false, not 1",
        "  hint: write it without quotes",
    ]


def test_a_key_is_found_where_it_stands_and_not_where_it_is_mentioned(tmp_path):
    """Nested keys, texts that mention a key and lists of objects don't mislead the search for a line."""
    path = tmp_path / "a.json"
    path.write_text('{"b": [{"a": 1}, {"a": 2}], "t": "\\"a\\": {,", "c": {"a": 3},\n "\\u0061": 4}')
    file = read_json(path)
    assert file.place_of("a") == (2, 2)
    assert file.place_of("c", "a") == (1, 53)
    assert file.place_of("b", "1", "a") == (1, 19)
    assert file.place_of("b", "7", "a") == (1, 2)
    assert file.place_of("z") == (None, None)
    assert not file.errors


def test_a_toml_key_is_found_in_its_own_table(tmp_path):
    """Comments, texts of several lines and tables of the same keys don't mislead the search for a line."""
    path = tmp_path / "a.toml"
    path.write_text(
        '# x = 1\nt = """\nx = 2\n[a]\n"""\n[a]\n"x" = 3\ny.x = 4\n[b . c]\n# x = 5\nz = { x = 6 }\n  x = 7\n'
    )
    file = read_toml(path)
    assert file.place_of("x") == (None, None)
    assert file.place_of("a", "x") == (7, 1)
    assert file.place_of("a", "y", "x") == (8, 1)
    assert file.place_of("b", "c", "x") == (12, 3)
    assert file.place_of("b", "c", "z", "x") == (11, 1)
    assert file.place_of("b", "d") == (9, 2)


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00", None, "not UTF-8 text (byte 0)"),
        (H100_TOML.encode(), 1, "not JSON: Expecting value"),
        (b"", 1, "not JSON: Expecting value"),
        (b'{"hidden_size": 4096,\n}', None, None),
        (b"[1, 2]", 1, "not a JSON object"),
        (b"null", 1, "not a JSON object"),
        (b'{"a": NaN}', None, "not JSON: NaN is not a number that JSON knows"),
        (b'{"a": -Infinity}', None, "not JSON: -Infinity is not a number that JSON knows"),
        (json.dumps(QWEN3_8B).encode("utf-16"), None, "not UTF-8 text (byte 0)"),
        (b'{"a": ' + b"[" * 100_000, None, None),
        (b'{"a": ' + b"9" * 5000 + b"}", None, None),
        (b'{"version": "1.0", "truncation": null, "added_tokens": []}', None, "'model_type' is missing"),
        (b'{"tokenizer_class": "Qwen2Tokenizer", "model_max_length": 131072}', None, "'model_type' is missing"),
        (b"{}", None, "'model_type' is missing"),
    ],
)
def test_a_file_that_is_no_model_says_so(tmp_path, content, line, message):
    """A picture, a TOML file, a tokenizer's config or a broken file named .json: one error that says what it is not."""
    path = tmp_path / "model.json"
    path.write_bytes(content)
    messages = messages_of(load_model, path, "model.json")
    assert len(messages) == 1
    assert message is None or messages == [message]
    assert messages[0].startswith(("not ", "'model_type'"))
    assert line is None or problems_of(load_model, path)[0][0] == line


def test_a_model_without_its_type_is_checked_all_the_same(tmp_path):
    """Where only model_type is missing, what else is wrong is said with it."""
    config = {key: value for key, value in QWEN3_8B.items() if key != "model_type"} | {"vocab_size": 0}
    assert [message.split(" ")[0] for message in messages_of(model_from, tmp_path, config)] == [
        "'model_type'",
        "'vocab_size'",
    ]


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    """A JSON or TOML file saved with a byte order mark loads."""
    path = tmp_path / "model.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(QWEN3_8B).encode())
    assert load_model(path).hidden_size == 4096
    path = tmp_path / "h100.toml"
    path.write_bytes(b"\xef\xbb\xbf" + H100_TOML.encode())
    assert load_gpu(path).year == 2022


def test_windows_line_ends_change_no_line(tmp_path):
    """CRLF files load, and their errors stand on the same lines."""
    path = tmp_path / "h100.toml"
    path.write_bytes(H100_TOML.replace("2022", "22").replace("\n", "\r\n").encode())
    assert problems_of(load_gpu, path)[0][0] == 3


def test_a_missing_file_says_its_name(tmp_path):
    """A file that isn't there, or is a folder, is an error of ours and not a traceback."""
    assert messages_of(load_model, tmp_path / "none.json", "none.json") == ["there is no such file"]
    (tmp_path / "folder.json").mkdir()
    assert messages_of(load_model, tmp_path / "folder.json", "folder.json")[0].startswith("can't be read: ")


# GPUs


def test_the_lessons_gpus_are_as_their_sheets_have_them():
    """Dense peaks, bandwidths, memory and ridges of the four GPUs, and no FP8 on the A100."""
    found = {
        gpu.id: (
            gpu.name,
            gpu.year,
            gpu.peak_flops,
            gpu.peak_flops_fp8,
            gpu.hbm_bandwidth,
            gpu.memory_bytes / MIB,
            round(gpu.ridge_point),
        )
        for gpu in lesson_gpus().values()
    }
    assert found == {
        "a100": ("A100 80GB SXM", 2020, 312e12, None, 2.04e12, 81920, 153),
        "b200": ("B200", 2024, 2250e12, 4500e12, 8.0e12, 183359, 281),
        "h100": ("H100 SXM", 2022, 989e12, 1979e12, 3.35e12, 81559, 295),
        "h200": ("H200 SXM", 2023, 989e12, 1979e12, 4.8e12, 143771, 206),
    }


def test_every_number_of_a_gpu_keeps_its_source():
    """Every number of every GPU names its source, and a missing one says why."""
    for gpu in lesson_gpus().values():
        assert all(number.source for number in (gpu.bf16, gpu.bandwidth, gpu.memory))
        assert (gpu.fp8 is None) == bool(gpu.no_fp8)


def test_every_source_is_on_the_list():
    """Every source that a GPU names stands in content/sources.toml."""
    sources = read_toml(ROOT / "content" / "sources.toml").data
    for gpu in lesson_gpus().values():
        for number in (gpu.bf16, gpu.fp8, gpu.bandwidth, gpu.memory):
            table = sources
            for part in number.source.split(".") if number else []:
                table = table[part]


# text to replace . by what . line, column, message, hint
WRONG_GPUS = [
    ("989e12", "nan", 6, "'peak_flops.value' must be at least 1 and below 1e21, not nan"),
    ("989e12", "inf", 6, "'peak_flops.value' must be at least 1 and below 1e21, not inf"),
    ("989e12", "-inf", 6, "'peak_flops.value' must be at least 1 and below 1e21, not -inf"),
    ("989e12", "0", 6, "'peak_flops.value' must be at least 1 and below 1e21, not 0"),
    ("989e12", "1e-300", 6, "'peak_flops.value' must be at least 1 and below 1e21, not 1e-300"),
    ("989e12", "-989e12", 6, "'peak_flops.value' must be at least 1 and below 1e21, not -989000000000000.0"),
    (
        "989e12",
        "9" * 400,
        6,
        "'peak_flops.value' must be at least 1 and below 1e21, not a number of more than 24 digits",
    ),
    (
        "989e12",
        "0x" + "f" * 5000,
        6,
        "'peak_flops.value' must be at least 1 and below 1e21, not a number of more than 24 digits",
    ),
    ("989e12", "true", 6, "'peak_flops.value' must be a number, not true"),
    ("989e12", '"989e12"', 6, "'peak_flops.value' must be a number, not \"989e12\""),
    ("989e12", "2022-01-01", 6, "'peak_flops.value' must be a number, not \"2022-01-01\""),
    ("value = 989e12\n", "", 5, "'peak_flops.value' is missing"),
    ("value = 989e12", "vale = 989e12", 6, "unknown key 'peak_flops.vale'"),
    (
        'value = 989e12\nsource = "sheet.h100"\n',
        "value = 989e12\n",
        5,
        "'peak_flops.source' is missing: every number says where it comes from",
    ),
    (
        'source = "memory.totals"',
        "source = 3",
        20,
        "'memory_mib.source' must be a text that is not empty: every number says where it comes from",
    ),
    ('"sparse figures are twice this"', "2", 8, "'peak_flops.disagreement' must be a text"),
    ("[hbm_bandwidth]", "[hbm_bandwith]", 14, "unknown key 'hbm_bandwith'"),
    ("[hbm_bandwidth]", "[hbm_bandwith]", None, "'hbm_bandwidth' is missing"),
    ("year = 2022", "year = 1022", 3, "'year' must be a year, not 1,022"),
    ("year = 2022", "year = true", 3, "'year' must be a year, not true"),
    ("year = 2022", "", None, "'year' is missing"),
    ('name = "H100 SXM"', "", None, "'name' is missing"),
    ('name = "H100 SXM"', 'name = " "', 1, "'name' must be a text that is not empty"),
    ('name = "H100 SXM"', 'name = "A100 SXM"', 1, 'the name is "A100 SXM" but the label is "H100"'),
    ('label = "H100"', "label = 100", 2, "'label' must be a text that is not empty"),
    ('label = "H100"', 'label = "A100"', 2, "the file is called h100.toml but describes the A100"),
    (
        "value = 1979e12",
        'absent = "no FP8"\nvalue = 1979e12',
        11,
        "'peak_flops_fp8.absent' must be the reason, and stand without a value",
    ),
    ("value = 1979e12", "absent = true", 11, "'peak_flops_fp8.absent' must be the reason, and stand without a value"),
    ("value = 989e12", 'absent = "no BF16"', 5, "'peak_flops.value' is missing"),
]


@pytest.mark.parametrize(("old", "new", "line", "message"), WRONG_GPUS, ids=range(len(WRONG_GPUS)))
def test_a_wrong_gpu_is_refused_where_it_is_wrong(tmp_path, old, new, line, message):
    """Each mistake in a GPU's file is said with its key, its line and a remedy."""
    assert old in H100_TOML
    text = H100_TOML.replace(old, new, 1)
    found = {said: (at, hint) for at, said, hint in problems_of(gpu_from, tmp_path, text)}
    assert message in found
    assert found[message][0] == line
    assert all(hint for _, hint in found.values())


def test_a_table_that_is_a_number_is_told_what_it_should_be(tmp_path):
    """`peak_flops = 989e12` without a source is refused with an example."""
    text = (
        'name = "H100 SXM"\nlabel = "H100"\nyear = 2022\npeak_flops = 989e12\n'
        + H100_TOML[H100_TOML.index("[peak_flops_fp8]") :]
    )
    assert problems_of(gpu_from, tmp_path, text) == [
        (
            4,
            "'peak_flops' must be a table with value and source",
            'write [peak_flops], and below it value = 1.0e12 and source = "sheet.h100"',
        )
    ]


def test_an_inline_table_is_a_table(tmp_path):
    """A number may stand on one line; its errors point at that line."""
    text = 'name = "T1"\nlabel = "T1"\nyear = 2022\n' + "".join(
        f'{key} = {{ value = {value}, source = "s" }}\n'
        for key, value in (("peak_flops", 100), ("peak_flops_fp8", 200), ("hbm_bandwidth", 10), ("memory_mib", -1))
    )
    assert [problem[0] for problem in problems_of(gpu_from, tmp_path, text, "t1.toml")] == [7]
    assert gpu_from(tmp_path, text.replace("-1", "1"), "t1.toml").ridge_point == 10


def test_all_that_is_wrong_in_a_gpu_is_said_at_once(tmp_path):
    """An empty file lacks everything, and says so in one go."""
    assert messages_of(gpu_from, tmp_path, "") == [
        f"'{key}' is missing"
        for key in ("year", "name", "label", "peak_flops", "peak_flops_fp8", "hbm_bandwidth", "memory_mib")
    ]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("name = \n", 1, "not TOML: Invalid value"),
        ("year = 2022\nyear = 2023\n", 2, "not TOML: Cannot overwrite a value"),
        ("[peak_flops]\n[peak_flops]\n", 2, "not TOML: Cannot declare ('peak_flops',) twice"),
        ('name = "H100\n', 1, None),
        ("year = 2022\n[peak", 2, None),
        (json.dumps(QWEN3_8B), 1, None),
        ("year = " + "9" * 5000, None, None),
        ("a = " + "[" * 100_000, None, None),
    ],
)
def test_a_file_that_is_no_toml_says_where(tmp_path, text, line, message):
    """A file that doesn't parse is one error with its line and a remedy."""
    messages = messages_of(gpu_from, tmp_path, text)
    assert len(messages) == 1
    assert messages[0].startswith("not TOML: ")
    assert message is None or messages == [message]
    assert line is None or problems_of(gpu_from, tmp_path, text)[0][0] == line


def test_a_gpus_file_name_is_an_identifier(tmp_path):
    """A GPU's id is its file's stem, and facts name it: h-100.toml can't be."""
    text = H100_TOML.replace('"H100"', '"H-100"').replace("H100 SXM", "H-100 SXM")
    assert messages_of(gpu_from, tmp_path, text, "h-100.toml") == [
        "the file's name 'h-100' is the GPU's id and must be letters, digits and _",
        "the file is called h-100.toml but describes the H-100",
    ]
    assert gpu_from(tmp_path, text, "h_100.toml").id == "h_100"


# whole folders


def project(folder: Path, models: dict[str, str], gpus: dict[str, str]) -> Path:
    """A folder with content/models and content/gpus."""
    for kind, files in (("models", models), ("gpus", gpus)):
        (folder / "content" / kind).mkdir(parents=True)
        for name, text in files.items():
            (folder / "content" / kind / name).write_text(text)
    return folder


def test_a_folder_is_loaded_by_file_stem(tmp_path):
    """Models and GPUs are known by their file's stem; other files are none."""
    root = project(tmp_path, {"toy.json": json.dumps(QWEN3_8B), "notes.txt": "x"}, {"h100.toml": H100_TOML})
    assert list(load_models(root)) == ["toy"]
    assert list(load_gpus(root)) == ["h100"]


def test_the_mistakes_of_all_files_are_said_at_once(tmp_path):
    """Every file of a folder is checked, whatever is wrong with the first; paths are as the author would say them."""
    root = project(tmp_path, {"b.json": "{", "a.json": "[]", "c.json": json.dumps(QWEN3_8B)}, {})
    with pytest.raises(LessonErrors) as caught:
        load_models(root)
    assert [error.place for error in caught.value.errors] == ["content/models/a.json:1:1", "content/models/b.json:1:2"]


def test_an_empty_folder_is_a_mistake(tmp_path):
    """Without a single GPU there is nothing to teach with."""
    root = project(tmp_path, {}, {})
    assert messages_of(load_gpus, root) == ["there is no .toml file in this folder"]
    assert messages_of(load_models, root) == ["there is no .json file in this folder"]


# whatever happens to a file, it loads or says why

EDITS = st.lists(
    st.tuples(
        st.integers(min_value=0, max_value=10**6),
        st.integers(min_value=0, max_value=12),
        st.one_of(
            st.text(max_size=4),
            st.sampled_from(
                ["\n", '"', "{", "}", "[", "]", ",", ":", "=", "#", "-", ".", "null", "true", "1e999", "'''"]
            ),
            st.sampled_from(
                ["NaN", "nan", "inf", "0", "9" * 30, "9" * 400, '"""', "\ud800", "\x00", "\ufeff", "{}", "[]"]
            ),
        ),
    ),
    min_size=1,
    max_size=4,
)


def edited(text: str, edits: list[tuple[int, int, str]]) -> bytes:
    """A text with parts replaced, as bytes that may be no UTF-8."""
    for start, length, new in edits:
        start %= len(text) + 1
        text = text[:start] + new + text[start + length :]
    return text.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize(
    ("name", "text", "load"),
    [("model.json", json.dumps(QWEN3_8B, indent=1), load_model), ("h100.toml", H100_TOML, load_gpu)],
    ids=["json", "toml"],
)
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=EDITS)
def test_any_edit_loads_or_says_why(tmp_path, name, text, load, edits):
    """However a file is mangled, it loads as something that can be costed or raises LessonErrors, nothing else."""
    path = tmp_path / name
    path.write_bytes(edited(text, edits))
    loaded, errors = outcome(load, path, name)
    lines = path.read_bytes().count(b"\n") + 1
    for error in errors:
        assert error.path == name
        assert 0 < len(error.message) < 200
        assert error.line is None or 1 <= error.line <= lines
    if isinstance(loaded, Model):
        assert loaded.parameters > 0
        assert loaded.heads % loaded.kv_heads == 0
    elif isinstance(loaded, Gpu):
        assert 0 < loaded.ridge_point < 1e21
        assert loaded.memory_bytes > 0
    else:
        assert errors


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    key=st.sampled_from([*QWEN3_8B, "layer_types", "quantization_config", "torch_dtype", "dtype"]), value=JSON_VALUES
)
def test_any_value_of_any_key_loads_or_is_refused_by_name(tmp_path, key, value):
    """Whatever JSON value a key has, the file loads or the error names the key."""
    _, errors = outcome(model_from, tmp_path, QWEN3_8B | {key: value})
    assert all(key in error.message for error in errors)


def test_a_written_model_names_its_keys_on_their_lines(tmp_path):
    """The n-th key of a file written one key a line stands on line n + 1, column 3."""
    file = read_json(write_model(tmp_path, QWEN3_8B))
    assert [file.place_of(key) for key in QWEN3_8B] == [(line, 3) for line in range(2, len(QWEN3_8B) + 2)]
