"""Our FLOPs against what PyTorch's FlopCounterMode counts for the same model, to the last one.

Two differences are known and exact: its decode step attends to one entry more than the context, since the new token's
own is added to it; and its prefill ignores causality, so that every new token attends to all of them.
"""

from __future__ import annotations

import json

import pytest

from tests.toys import GOLDENS, at, lesson_model, rows_of

COUNTED = json.loads((GOLDENS / "flop_counts.json").read_text())
PASSES = COUNTED["passes"]
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


@pytest.mark.parametrize("case", PASSES, ids=ids)
def test_every_matmul_has_the_flops_that_pytorch_counts(case):
    """The six matmuls have exactly the FLOPs that were counted."""
    rows = rows_of(lesson_model(), at(phase=case["phase"], tokens=case["tokens"], context=case["ctx"]))
    assert {theirs: rows[ours].flops for theirs, ours in NAMES.items()} == {
        theirs: count for theirs, count in case["flops"].items() if theirs != "attn"
    }


@pytest.mark.parametrize("case", [case for case in PASSES if case["phase"] == "decode"], ids=ids)
def test_attention_in_decode_is_what_pytorch_counts_one_entry_earlier(case):
    """Its decode at ctx reads ctx + 1 entries; our context counts the token's own entry."""
    tokens, context = case["tokens"], case["ctx"]
    row = rows_of(lesson_model(), at(phase="decode", tokens=tokens, context=context + 1))["attention"]
    assert row.flops == case["flops"]["attn"] == 4 * 36 * 4096 * tokens * (context + 1)


@pytest.mark.parametrize("case", [case for case in PASSES if case["phase"] == "prefill"], ids=ids)
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
