"""Parameters and FLOPs of models as PyTorch counts them, held against the ledger and the counts in tests/goldens.

    python -m tests.independent.count [--write] [CONFIG…]

Nothing of ours takes part in a count. Transformers makes the architecture from the published config.json, on PyTorch's
meta device: tensors have shapes and no contents, so that no weights, no GPU and no network are needed. FlopCounterMode
adds up the FLOPs of every matmul that runs. Needs the extra `count`; exit status 1 where anything differs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"  # read when the libraries are imported

import torch
import transformers
from torch.utils.flop_counter import FlopCounterMode

from builder.catalog import load_model
from tests.counted import COMMAND, COUNTS, PASSES, ROWS, CountedPass, by_ledger
from tests.toys import ROOT

# a linear layer as transformers calls it → its row of the ledger
LINEAR = {
    "q_proj": "qkv_proj",
    "k_proj": "qkv_proj",
    "v_proj": "qkv_proj",
    "o_proj": "out_proj",
    "gate_proj": "gate_proj",
    "up_proj": "up_proj",
    "down_proj": "down_proj",
    "lm_head": "lm_head",
}
MODELS = ROOT / "content" / "models"


def architecture(path: Path) -> Any:
    """The model of a config.json, without weights. Attention as two plain matmuls, which the counter sees."""
    config = transformers.AutoConfig.for_model(**json.loads(path.read_text(encoding="utf-8")))
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    return model.eval()


def count_parameters(model: Any) -> dict[str, int]:
    """Elements of every weight, by group; a table that is tied stands once, as the embedding."""
    groups = dict.fromkeys(("embedding", *LINEAR.values(), "norms_and_biases", "total"), 0)
    for name, weight in model.named_parameters():
        module, kind = name.split(".")[-2:]
        if kind == "bias" or module.endswith("norm"):
            group = "norms_and_biases"
        else:
            group = "embedding" if module == "embed_tokens" else LINEAR[module]
        groups[group] += weight.numel()
        groups["total"] += weight.numel()
    return groups


@torch.no_grad()
def count_flops(model: Any, counted: CountedPass) -> dict[str, int]:
    """FLOPs of one pass by row, summed over the layers; what is cached before it is put there uncounted."""
    decode = counted.phase == "decode"
    sequences, cached = (counted.tokens, counted.context - 1) if decode else (1, counted.context)
    steps = counted.tokens if counted.one_by_one else 1
    new = 1 if decode else counted.tokens // steps
    cache = transformers.DynamicCache(config=model.config)
    counter = FlopCounterMode(display=False)
    with torch.device("meta"):
        if cached:
            model(torch.zeros(sequences, cached, dtype=torch.long), cache=cache)
        with counter:
            for _ in range(steps):
                model(torch.zeros(sequences, new, dtype=torch.long), cache=cache)
    flops = dict.fromkeys(ROWS, 0)
    for module, operations in counter.get_flop_counts().items():
        name = module.split(".")[-1]
        row = "attention" if name == "self_attn" else LINEAR.get(name)
        if row:
            flops[row] += sum(operations.values())
    # the module holds its four projections too; scores and weighted sum are what is left
    flops["attention"] -= flops["qkv_proj"] + flops["out_proj"]
    if sum(flops.values()) != counter.get_total_flops():
        raise RuntimeError(f"{counter.get_total_flops() - sum(flops.values())} FLOPs were counted outside the rows")
    return flops


def count(path: Path) -> dict[str, Any]:
    """Everything that is counted of the model of a config.json."""
    model = architecture(path)
    return {
        "parameters": count_parameters(model),
        "passes": [vars(counted) | {"flops": count_flops(model, counted)} for counted in PASSES],
    }


def differences(counted: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """A line for each number in which a count and another of the same model differ."""
    found = [
        f"parameters, {group}: counted {number:,}, not {other['parameters'][group]:,}"
        for group, number in counted["parameters"].items()
        if number != other["parameters"][group]
    ]
    for ours, theirs in zip(counted["passes"], other["passes"], strict=True):
        point = "{phase}, tokens {tokens:,}, context {context:,}".format(**ours)
        point += ", one by one" if ours["one_by_one"] else ""
        found += [
            f"{point}, {row}: counted {number:,} FLOPs, not {theirs['flops'][row]:,}"
            for row, number in ours["flops"].items()
            if number != theirs["flops"][row]
        ]
    return found


def main() -> int:
    """Count, compare, tell; 1 where anything differs."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("configs", nargs="*", type=Path, metavar="CONFIG", help="a config.json; all of content/models")
    parser.add_argument("--write", action="store_true", help=f"keep the counts in {COUNTS.relative_to(ROOT)}")
    arguments = parser.parse_args()
    differ = False
    for path in arguments.configs or sorted(MODELS.glob("*.json")):
        counted, ledger = count(path), by_ledger(load_model(path))
        found = [f"the ledger differs: {line}" for line in differences(counted, ledger)]
        kept = COUNTS / path.name
        document = {
            "command": COMMAND,
            "torch": torch.__version__.split("+")[0],
            "transformers": transformers.__version__,
            **counted,
        }
        text = json.dumps(document, indent=1) + "\n"
        if path.resolve().parent == MODELS:
            if arguments.write:
                COUNTS.mkdir(exist_ok=True)
                kept.write_text(text, encoding="utf-8")
            elif not kept.is_file() or kept.read_text(encoding="utf-8") != text:
                found.append(f"{kept.relative_to(ROOT)} says otherwise: {COMMAND}")
        agreed = f"{counted['parameters']['total']:,} parameters and {len(PASSES)} passes agree to the integer"
        for line in found or [agreed]:
            print(f"{path.stem}: {line}", file=sys.stderr if found else sys.stdout, flush=True)
        differ = differ or bool(found)
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
