"""The same points through other public tools, and where each difference comes from.

    python -m tests.peers.compare [--write | --ours]

It needs the extra: pip install -e '.[peers]', in a virtual environment of its own. --write puts their figures and ours
into tests/goldens/peers.json and the tables into .github/PEERS.md; without it, the tables are printed. --ours needs no
extra: it renews our side of both. Each tool gets the dimensions of our model and its own H100; where it answers with a
range, its middle is taken.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

from builder.ledger import Point
from builder.measured import load_measured
from builder.roofline import USABLE_MEMORY, weight_bytes
from builder.site import replace_file
from builder.units import GIB, MINUS
from tests.peers.bridges import (
    BATCHES,
    CAUSES,
    GPU,
    GRID,
    MODEL,
    POINTS,
    QUANTITIES,
    RIDGE,
    RIDGEPOINT_BANDWIDTH,
    RIDGEPOINT_COMPUTE,
    ROOT,
    bridge,
    ours,
)

GOLDEN = ROOT / "tests" / "goldens" / "peers.json"
DOCUMENT = ROOT / ".github" / "PEERS.md"
COMMAND = "python -m tests.peers.compare --write"
BEGIN, END = f"<!-- written by {COMMAND} -->\n", "<!-- until here -->\n"
PACKAGES = {"servcalc": ("servcalc", "vramcalc"), "ridgepoint": ("ridgepoint",), "mlsysim": ("mlsysim",)}

Figures = dict[str, dict[str, float]]  # by point, then by quantity


def _decode(point: Point) -> bool:
    return point.phase == "decode"


def servcalc() -> tuple[Figures, dict[str, Any]]:
    """One step through its modules work and timing, vLLM profile; estimate() would mix prefill into decode steps."""
    from servcalc import Workload, profiles, work
    from servcalc.calibration import get
    from servcalc.gpus import resolve
    from servcalc.modes import capacity
    from servcalc.timing import step_time
    from vramcalc import Arch

    # its configs are of the families llama, mistral, qwen2 and gemma; Qwen3 has their shapes, but for two norms
    arch = Arch(
        hidden_size=MODEL.hidden_size,
        num_layers=MODEL.layers,
        num_heads=MODEL.heads,
        num_kv_heads=MODEL.kv_heads,
        head_dim=MODEL.head_dim,
        intermediate_size=MODEL.intermediate_size,
        vocab_size=MODEL.vocab_size,
        tie_word_embeddings=MODEL.tied,
        attention_bias=False,
        norms_per_layer=2,
    )
    gpu, profile = resolve("H100 80GB"), profiles.vllm()
    calibration = get(profile.calibration)
    weights = work.weight_bytes(arch, profile.weight_bits)
    per_token = work.kv_bytes_per_token(arch, profile.kv_bits)
    figures: Figures = {}
    constants: dict[str, Any] = {}
    for name, point in POINTS.items():
        tokens, context = point.tokens, point.context
        if _decode(point):
            done = work.decode_step(arch, tokens, tokens * context, per_token, weights.stream, profile.kv_realloc)
        else:
            chunk = work.prefill_chunk(arch, tokens, context, True, per_token)
            done = work.Work(float(weights.stream), 0.0) + chunk
        timed = step_time(done, gpu, calibration, tokens)
        figures[name] = {"time": timed.ms.mid / 1e3, "bytes_moved": done.bytes, "flops": done.flops}
        if name in BATCHES:
            asked = Workload(prompt_len=context - 2, gen_len=2)
            room = capacity(gpu, weights.resident, per_token, asked, profile)
            figures[name]["largest_batch"] = room.memory_capacity
        constants[name] = {
            "bandwidth_efficiency": calibration.bw_util.at(tokens)[1],
            "compute_efficiency": calibration.mfu.at(tokens)[1],
            "overhead": calibration.overhead_ms[1] / 1e3,
        }
    return figures, constants


def ridgepoint() -> tuple[Figures, dict[str, Any]]:
    """Its fit, by dimensions: one sequence's decode, a prompt without cache, capacity. It prints five digits."""
    from ridgepoint import _core  # what its fit() calls once it has fetched a config

    def fit(context: int, prompt: int) -> dict[str, Any]:
        size = (MODEL.name, MODEL.layers, MODEL.layers, MODEL.hidden_size, MODEL.parameters, MODEL.parameters)
        heads = ("gqa", MODEL.head_dim, 0, MODEL.kv_heads, 0, 0)
        run = ("h100-80gb", 1, "vllm", "fp16", "fp16", context, prompt, True)
        return dict(json.loads(_core.fit_shape(*size, *heads, *run)))

    figures: Figures = {name: {} for name in POINTS}
    for name in BATCHES:
        context = POINTS[name].context
        figures[name]["largest_batch"] = fit(context, context)["capacity"]["max_sequences"]["best"]
    alone = fit(8192, 4096)
    figures["1 at 8k"]["time"] = 1 / alone["speed"]["decode_tok_s"]["best"]
    figures["prefill 4,096 after 0"]["time"] = alone["speed"]["ttft_s"]["best"]
    figures[RIDGE]["ridge_batch"] = alone["speed"]["ridge_batch"]
    memory = alone["memory"]
    return figures, {"pool": memory["kv_pool_bytes"]["best"], "runtime": memory["overhead_bytes"]["best"]}


def mlsysim() -> tuple[Figures, dict[str, Any]]:
    """Its ServingModel, and the static slots of its ContinuousBatchingModel; defaults elsewhere."""
    import inspect

    from mlsysim import Hardware
    from mlsysim.engine.calibration import FRAMEWORK_LAYER_TAX_MS
    from mlsysim.models.types import TransformerWorkload
    from mlsysim.solvers import ContinuousBatchingModel, ServingModel

    gpu = Hardware.Cloud.H100
    model = TransformerWorkload(
        name=MODEL.name,
        architecture="Transformer",
        parameters=f"{MODEL.parameters} param",
        layers=MODEL.layers,
        hidden_dim=MODEL.hidden_size,
        heads=MODEL.heads,
        kv_heads=MODEL.kv_heads,
        head_dim=MODEL.head_dim,
    )
    figures: Figures = {}
    for name, point in POINTS.items():
        if _decode(point):
            found = ServingModel().solve(model, gpu, seq_len=point.context, batch_size=point.tokens)
            figures[name] = {
                "time": float(found.itl.to("s").magnitude),
                "bytes_moved": float((found.model_weights_size + found.kv_cache_size).to("byte").magnitude),
            }
            if name in BATCHES:
                slots = ContinuousBatchingModel().solve(model, gpu, max_seq_len=point.context, max_batch_size=10**6)
                figures[name]["largest_batch"] = slots.max_active_requests
        else:
            length = point.context + point.tokens
            found = ServingModel().solve(model, gpu, seq_len=length, cached_prefix_len=point.context)
            figures[name] = {"time": float(found.ttft.to("s").magnitude)}
    efficiency = inspect.signature(ServingModel.solve).parameters["efficiency"].default
    constants = {
        "compute_efficiency": efficiency,
        "layer_tax": FRAMEWORK_LAYER_TAX_MS / 1e3,
        "dispatch": float(gpu.dispatch_tax.to("s").magnitude),
    }
    return figures, constants


ASK: Mapping[str, Callable[[], tuple[Figures, dict[str, Any]]]] = {
    "servcalc": servcalc,
    "ridgepoint": ridgepoint,
    "mlsysim": mlsysim,
}


def found() -> dict[str, Any]:
    """All figures, ours and theirs, SI. Raises ImportError where the extra isn't installed."""
    theirs, constants = {}, {}
    for peer, ask in ASK.items():
        theirs[peer], constants[peer] = ask()
    return {
        "command": COMMAND,
        "model": MODEL.name,
        "gpu": GPU.id,
        "versions": {package: version(package) for packages in PACKAGES.values() for package in packages},
        "ours": {name: ours(name) for name in POINTS},
        "theirs": theirs,
        "constants": constants,
    }


def shown(value: float, quantity: str, signed: bool = False) -> str:
    """A figure, or a change of one, in the quantity's unit."""
    _, unit, decimals = QUANTITIES[quantity]
    text = f"{abs(value) / unit:,.{decimals}f}"
    if signed and abs(value) < 1e-9 * unit:  # no change, but for the last bits of a float
        return "0"
    return (MINUS if value < 0 else "+" if signed else "") + text


def _row(head: str, cells: list[str]) -> str:
    return f"| {head} | {' | '.join(cells)} |"


def _table(head: str, columns: list[str], rows: list[str], rule: str = "--:|") -> list[str]:
    return [_row(head, columns), f"|---|{rule * len(columns)}", *rows, ""]


def overview(golden: Mapping[str, Any]) -> list[str]:
    """Each quantity at each point, ours and theirs; and of the time, what was measured."""
    steps = {
        (at.tokens, at.context): step.total for step in load_measured(ROOT, GRID) if (at := step.point).gpu == GPU.id
    }
    lines = []
    for quantity, (heading, _, _) in QUANTITIES.items():
        rows = []
        for name, point in POINTS.items():
            figures = [golden["ours"][name], *(golden["theirs"][peer][name] for peer in ASK)]
            if quantity == "time":
                measured = steps.get((point.tokens, point.context)) if _decode(point) else None
                figures.append({} if measured is None else {"time": measured})
            if any(quantity in of_tool for of_tool in figures[1:]):
                rows.append(_row(name, [shown(f[quantity], quantity) if quantity in f else "" for f in figures]))
        columns = ["ours", *ASK, *(["measured¹"] if quantity == "time" else [])]
        lines += [*_table(heading, columns, rows)]
    return lines


def explained(golden: Mapping[str, Any], peer: str) -> list[str]:
    """The bridges of one tool: a table a quantity, a column a point, a row a cause."""
    lines = ["### " + ", ".join(f"{package} {golden['versions'][package]}" for package in PACKAGES[peer]), ""]
    lines += [noted(golden, peer), ""]
    figures = golden["theirs"][peer]
    for quantity, (heading, _, _) in QUANTITIES.items():
        points = [point for point in POINTS if quantity in figures[point]]
        if not points:
            continue
        ways = {point: bridge(golden, peer, quantity, point) for point in points}
        changes = {point: dict(way.changes) for point, way in ways.items()}
        rows = [_row("ours", [shown(ways[point].ours, quantity) for point in points])]
        for cause in CAUSES:
            if any(cause in of_point for of_point in changes.values()):
                cells = [shown(changes[p][cause], quantity, True) if cause in changes[p] else "" for p in points]
                rows.append(_row(cause, cells))
        rows.append(_row(f"**{peer}**", [f"**{shown(figures[point][quantity], quantity)}**" for point in points]))
        lines += _table(heading, points, rows)
    return lines


def noted(golden: Mapping[str, Any], peer: str) -> str:
    """How it was asked, and its own constants."""
    of_peer = golden["constants"][peer]
    if peer == "servcalc":
        keys = ("bandwidth_efficiency", "compute_efficiency")
        bandwidth, compute = ([100 * of_point[key] for of_point in of_peer.values()] for key in keys)
        return (
            "Asked for one step through its modules `work` and `timing` with the vLLM profile, since `estimate()` "
            "mixes prefill into decode steps; and by dimensions, since it reads no Qwen3 config. Its curves over the "
            f"tokens of a step: {min(bandwidth):.0f} to {max(bandwidth):.0f} % of the bandwidth and {min(compute):.1f} "
            f"to {max(compute):.1f} % of the peak at these points, the middle of ranges that it calls priors until "
            f"they are fitted; {1e3 * of_peer[RIDGE]['overhead']:.0f} ms a step."
        )
    if peer == "ridgepoint":
        total = weight_bytes(MODEL, "bf16") + of_peer["pool"] + of_peer["runtime"]
        return (
            f"Asked by dimensions, as its reader of configs asks. {100 * RIDGEPOINT_BANDWIDTH:.0f} % of the bandwidth, "
            f"which it measured in decode, and {100 * RIDGEPOINT_COMPUTE:.0f} % of the peak, out of a band from "
            f"literature; a runtime of {of_peer['runtime'] / GIB:.2f} GiB, in {total / USABLE_MEMORY / GIB:.2f} GiB of "
            "memory. It gives the decode of a sequence alone, and a prompt without cached tokens; five digits of each."
        )
    return (
        "Asked through its `ServingModel` and `ContinuousBatchingModel`, defaults elsewhere. All of the bandwidth, "
        f"{100 * of_peer['compute_efficiency']:.0f} % of the peak, {1e6 * of_peer['layer_tax']:.0f} µs a layer in "
        f"decode, {1e6 * of_peer['dispatch']:.0f} µs a prefill: a first-order model, for teaching."
    )


def tables(golden: Mapping[str, Any]) -> str:
    """What stands between BEGIN and END in the document."""
    lines = [f"{golden['model']} in BF16 on an {GPU.name}; decode unless it says prefill.", "", *overview(golden)]
    lines += ["¹ sums of kernels, without norms, RoPE, SwiGLU and the host: `content/measured.toml`.", ""]
    lines += ["## From ours to theirs", ""]
    for peer in ASK:
        lines += explained(golden, peer)
    causes = [_row(cause, [f"{text}."]) for cause, text in CAUSES.items()]
    lines += ["## Causes", "", *_table("cause", ["what it is"], causes, "---|")]
    return "\n".join(lines)


def renewed(document: str, golden: Mapping[str, Any]) -> str:
    """The document with its tables made anew."""
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{tables(golden)}\n{END}{after}"


def write(golden: Mapping[str, Any]) -> None:
    """Put figures and tables into their places."""
    replace_file(GOLDEN, json.dumps(golden, indent=1, ensure_ascii=False) + "\n")
    replace_file(DOCUMENT, renewed(DOCUMENT.read_text(encoding="utf-8"), golden))


def main() -> None:
    """Ask the tools; print the tables, or write golden and document."""
    parser = argparse.ArgumentParser(prog="python -m tests.peers.compare", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--write", action="store_true", help="write tests/goldens/peers.json and .github/PEERS.md")
    parser.add_argument("--ours", action="store_true", help="renew our side in both, without asking the tools")
    options = parser.parse_args()
    if options.ours:
        golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
        write(golden | {"ours": {name: ours(name) for name in POINTS}})
        return
    try:
        golden = found()
    except ImportError as error:
        parser.exit(1, f"{error}: pip install -e '.[peers]', in a virtual environment of its own\n")
    if options.write:
        write(golden)
    else:
        print(tables(golden))


if __name__ == "__main__":
    main()
