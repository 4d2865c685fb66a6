"""The passes that PyTorch counts, and what the ledger says of them: for the everyday tests and the live count alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from builder.catalog import Model
from tests.toys import GOLDENS, at, rows_of

COUNTS = GOLDENS / "counts"
COMMAND = "python -m tests.independent.count --write"

MATMULS = ("qkv_proj", "out_proj", "gate_proj", "up_proj", "down_proj", "lm_head")
ROWS = ("attention", *MATMULS)


@dataclass(frozen=True)
class CountedPass:
    """A point whose FLOPs are counted.

    one_by_one: the prompt goes through the model one token at a time, each attending to what came before it and itself.
    At once, the counter takes every new token to attend to all of them: it knows shapes and no mask.
    """

    phase: str
    tokens: int
    context: int
    one_by_one: bool = False


PASSES = (
    *(CountedPass("decode", tokens, context) for context in (1, 512, 8192) for tokens in (1, 64, 256, 1024)),
    *(CountedPass("prefill", tokens, ctx) for ctx in (0, 512) for tokens in (1, 16, 64, 300, 1024, 4096)),
    *(CountedPass("prefill", 16, context, one_by_one=True) for context in (0, 512)),
)


def masked_flops(model: Model, tokens: int) -> int:
    """FLOPs of attention between each of the new tokens and those after it: 4·L·q for each of T(T − 1)/2 pairs."""
    return 4 * model.layers * model.q_width * (tokens * (tokens - 1) // 2)


def flops_by_ledger(model: Model, counted: CountedPass) -> dict[str, int]:
    """The FLOPs, row by row, that the counter must find: the ledger's, and what a mask would hide from a prompt."""
    rows = rows_of(model, at(phase=counted.phase, tokens=counted.tokens, context=counted.context))
    flops = {name: rows[name].flops for name in ROWS}
    if counted.phase == "prefill" and not counted.one_by_one:
        flops["attention"] += masked_flops(model, counted.tokens)
    return flops


def parameters_by_ledger(model: Model) -> dict[str, int]:
    """Weights by group, those of a matmul by the ledger's two FLOPs a weight and token; a tied table counts once."""
    rows = rows_of(model, at(tokens=1))
    groups = {name: rows[name].flops // 2 for name in MATMULS}
    if model.tied:
        groups["lm_head"] = 0
    return {
        "embedding": model.embedding_parameters,
        **groups,
        "norms_and_biases": model.small_parameters,
        "total": model.parameters,
    }


def by_ledger(model: Model) -> dict[str, Any]:
    """A count of the model, as the ledger has it."""
    return {
        "parameters": parameters_by_ledger(model),
        "passes": [vars(counted) | {"flops": flops_by_ledger(model, counted)} for counted in PASSES],
    }
