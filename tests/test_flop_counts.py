"""Our FLOPs and parameters against what PyTorch counts for the same models, to the last one.

goldens/flop_counts.json is an earlier count, of Qwen3-8B. Two differences are known and exact: its decode step attends
to one entry more than the context, since the new token's own is added to it; and its prefill ignores causality, so that
every new token attends to all of them. goldens/counts/ holds what tests/independent/count.py counts of every model of
the content: its decode caches one entry less, and a prefill that goes token by token has no mask to ignore.
"""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest

from builder.catalog import load_models
from builder.kernels import KERNELS
from tests.counted import (
    COMMAND,
    COUNTS,
    MATMULS,
    PASSES,
    ROWS,
    CountedPass,
    flops_by_ledger,
    parameters_by_ledger,
)
from tests.toys import GOLDENS, ROOT, at, lesson_model, rows_of

COUNTED = json.loads((GOLDENS / "flop_counts.json").read_text())
COUNTED_PASSES = COUNTED["passes"]
NAMES = {
    "qkv": "qkv_proj",
    "o": "out_proj",
    "gate": "gate_proj",
    "up": "up_proj",
    "down": "down_proj",
    "lm": "lm_head",
}


def ids(case: dict) -> str:
    return "{phase}-{tokens}-{ctx}".format(**case)


@pytest.mark.parametrize("case", COUNTED_PASSES, ids=ids)
def test_every_matmul_has_the_flops_that_pytorch_counts(case):
    """The six matmuls have exactly the FLOPs that were counted."""
    rows = rows_of(lesson_model(), at(phase=case["phase"], tokens=case["tokens"], context=case["ctx"]))
    assert {theirs: rows[ours].flops for theirs, ours in NAMES.items()} == {
        theirs: count for theirs, count in case["flops"].items() if theirs != "attn"
    }


@pytest.mark.parametrize("case", [case for case in COUNTED_PASSES if case["phase"] == "decode"], ids=ids)
def test_attention_in_decode_is_what_pytorch_counts_one_entry_earlier(case):
    """Its decode at ctx reads ctx + 1 entries; our context counts the token's own entry."""
    tokens, context = case["tokens"], case["ctx"]
    row = rows_of(lesson_model(), at(phase="decode", tokens=tokens, context=context + 1))["attention"]
    assert row.flops == case["flops"]["attn"] == 4 * 36 * 4096 * tokens * (context + 1)


@pytest.mark.parametrize("case", [case for case in COUNTED_PASSES if case["phase"] == "prefill"], ids=ids)
def test_attention_in_prefill_is_what_pytorch_counts_less_what_the_mask_hides(case):
    """It scores T·(ctx + T) entries; the T·(T − 1)/2 that lie in a token's future are masked, and ours counts none."""
    tokens, context = case["tokens"], case["ctx"]
    row = rows_of(lesson_model(), at(phase="prefill", tokens=tokens, context=context))["attention"]
    assert case["flops"]["attn"] == 4 * 36 * 4096 * tokens * (context + tokens)
    assert row.flops == case["flops"]["attn"] - 4 * 36 * 4096 * tokens * (tokens - 1) // 2


def test_every_group_of_parameters_has_its_size():
    """Parameters, group by group, to the last one; and 8,190,735,360 in all."""
    model, counted = lesson_model(), COUNTED["params"]
    layers, hidden, ffn = model.layers, model.hidden_size, model.intermediate_size
    assert counted == {
        "embed": model.embedding_parameters,
        "qkv": layers * hidden * (model.q_width + 2 * model.kv_width),
        "o": layers * model.q_width * hidden,
        "norms": model.small_parameters,
        "gate": layers * hidden * ffn,
        "up": layers * hidden * ffn,
        "down": layers * hidden * ffn,
        "lm": model.embedding_parameters,
    }
    assert model.streamed_parameters == sum(counted.values()) - counted["embed"] - counted["norms"]
    assert model.parameters == sum(counted.values()) == 8_190_735_360


MODELS = load_models(ROOT)
every_model = pytest.mark.parametrize("name", MODELS)
AGAIN = f"run `{COMMAND}` (README: What was checked)"


def count_of(name: str) -> dict[str, Any]:
    """The count that is kept of a model of the content; there must be one."""
    path = COUNTS / f"{name}.json"
    if not path.is_file():
        pytest.fail(f"content/models/{name}.json has no count in tests/goldens/counts: {AGAIN}", pytrace=False)
    count: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return count


def flops_of(name: str) -> dict[CountedPass, dict[str, int]]:
    """The FLOPs that were counted of a model, by pass and row."""
    return {
        CountedPass(**{key: value for key, value in case.items() if key != "flops"}): case["flops"]
        for case in count_of(name)["passes"]
    }


@every_model
def test_every_model_is_counted_by_the_pinned_versions_at_every_pass(name):
    """A new model, pass or version needs a new count; and a count says what made it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    count = count_of(name)
    made_by = [f"{library}=={count[library]}" for library in ("torch", "transformers")]
    assert made_by == project["optional-dependencies"]["count"], AGAIN
    assert count["command"] == COMMAND
    assert list(flops_of(name)) == list(PASSES), AGAIN


def test_no_count_is_of_a_model_that_is_gone():
    """Each count has its model in content/models."""
    assert {path.stem for path in COUNTS.iterdir()} == set(MODELS)


def test_the_counted_passes_are_of_both_phases_and_many_sizes():
    """Decode and prefill at several tokens and contexts, also on an empty cache; and all rows that do matmuls."""
    for phase, empty in (("decode", 1), ("prefill", 0)):
        points = [(case.tokens, case.context) for case in PASSES if case.phase == phase and not case.one_by_one]
        tokens, contexts = map(set, zip(*points, strict=True))
        assert len(tokens) >= 4
        assert contexts > {empty}
    assert any(case.one_by_one and case.tokens > 1 for case in PASSES)
    assert sorted((*ROWS, "elementwise")) == sorted(KERNELS)
    assert {model.tied for model in MODELS.values()} == {True, False}


@every_model
def test_every_parameter_is_one_that_pytorch_counts(name):
    """Group by group and in all; the groups leave nothing out, and what a pass streams are the matmuls' weights."""
    model, counted = MODELS[name], count_of(name)["parameters"]
    assert parameters_by_ledger(model) == counted
    assert sum(counted.values()) == 2 * counted["total"]
    tied = counted["embedding"] if model.tied else 0
    assert model.streamed_parameters == sum(counted[row] for row in MATMULS) + tied


@every_model
def test_every_flop_of_a_pass_is_one_that_pytorch_counts(name):
    """All six matmuls and attention, in decode and prefill; attention at once has what a mask would hide besides."""
    counted = flops_of(name)
    assert {case: flops_by_ledger(MODELS[name], case) for case in counted} == counted
