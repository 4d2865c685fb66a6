"""Hypothesis strategies for what authors may type: facts, right and wrong, and half-finished Markdown."""

from __future__ import annotations

from hypothesis import strategies as st

NUMBERS = [
    "throughput", "time", "flops", "bytes_moved", "arithmetic_intensity", "peak_share", "resident_bytes",
    "largest_batch", "tokens", "context", "attention.share", "attention.time", "attention.bytes_moved",
    "matmuls.flops", "matmuls.arithmetic_intensity", "lm_head.attainable_flops", "gpu.ridge_point",
    "gpu.peak_flops", "gpu.hbm_bandwidth", "gpu.memory_bytes", "gpu.peak_flops_fp8", "model.parameters",
    "model.layers", "model.kv_bytes_per_token", "model.weight_bytes", "weights.bytes", "kv.bytes",
]  # fmt: skip
LITERALS = ["1", "2", "0.5", "100", "8k", "5 ms", "16e9 byte", "3 TB/s", "14%", "1e12 FLOP", "0", "64 tokens", "1e30"]
SETTINGS = [
    "tokens=64", "tokens=1", "tokens=300", "context=8k", "context=0", "context=1", "context=512",
    "phase=prefill", "phase=decode", "gpu=a100", "gpu=b200", "weights=int4", "weights=w8a8", "kv=fp8",
    "attention=mqa", "peak_scale=2", "lm_head=bf16", "launch_gap=1us", "overlap=perfect",
]  # fmt: skip
SYMBOLS = ['"memory"', '"no"', '"fits"', '"h100"', '"int4"', '"decode"', '"memroy"']

TYPED = (
    *NUMBERS, *LITERALS, *SETTINGS, *SYMBOLS, "gate_proj.bound", "fits", "phase", "everywhere(", "nowhere(", "rising(",
    "falling(", "first(", "min(", "max(", "abs(", "and", "or", "not", "(", ")", ",", "=", "==", "!=", "<", ">", "<=",
    ">=", "+", "-", "*", "/", "**", "//", "%", "@", "within", "5%", "exempt:", "if", "lambda", "{", "}", "[", "]",
    "\\", "_", "é", "×", "1,840", ".", "\n", "\x00", "'", '"', "0x1", "1_000", "𝟙", "\u202f",
)  # fmt: skip


def _points(separator: str) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(SETTINGS), min_size=1, max_size=3, unique_by=lambda each: each.split("=")[0]).map(
        separator.join
    )


def _numbers(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("{}({})".format, st.sampled_from(NUMBERS), _points(", ")),
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*/"), inner),
        st.builds("{} ** {}".format, inner, st.sampled_from(["2", "-1", "3", "7", "0.5"])),
        st.builds("-{}".format, inner),
        st.builds("{}({}, {})".format, st.sampled_from(["min", "max"]), inner, inner),
    )


NUMBER = st.recursive(st.sampled_from([*NUMBERS, *LITERALS]), _numbers, max_leaves=6)
_COMPARISON = st.builds("{} {} {}".format, NUMBER, st.sampled_from(["<", ">", "<=", ">=", "==", "!="]), NUMBER)
_SYMBOL = st.builds(
    "{} == {}".format, st.sampled_from(["gate_proj.bound", "fits", "gpu", "phase"]), st.sampled_from(SYMBOLS)
)
_PLAIN_CLAIM = st.recursive(
    _COMPARISON | _SYMBOL,
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or"]), inner) | st.builds("not {}".format, inner)
    ),
    max_leaves=3,
)
_AXIS = st.sampled_from(["tokens", "context"])
CLAIM = st.one_of(
    _PLAIN_CLAIM,
    st.builds("{}({})".format, st.sampled_from(["everywhere", "nowhere"]), _PLAIN_CLAIM),
    st.builds(
        "{}({}, {})".format, st.sampled_from(["rising", "falling"]), NUMBER, st.sampled_from(["tokens", "context"])
    ),
    st.builds("first({}, {})".format, st.sampled_from(["tokens", "context"]), _PLAIN_CLAIM),
)
# facts that follow the grammar, and rows of tokens that seldom do
WELL_FORMED = st.builds(
    "{}{}{}".format,
    NUMBER | CLAIM,
    st.just("") | _points(" ").map(" @ {}".format),
    st.sampled_from(["", "", "", " within 5%", " within 60%"]),
)
ANY_FACT = WELL_FORMED | st.lists(st.sampled_from(TYPED), max_size=12).map(" ".join) | st.text(max_size=30)

PIECES = (
    "[", "]", "{", "}", "(", ")", "*", "**", "`", "``", "_", "![", "[^1]", "\n\n[^1]: ", "\n\n", "\n", "\n> ", "\n- ",
    "\n- [x] ", "\n- [ ] ", "\n1. ", "\n\n    ", "|", "\n| a | b |\n|---|--:|\n| ", "\\", "\\[", "$", "$$", "\n$$\n",
    "$\\bound{5\\,\\text{ms}}{time}$", "\\bound{", "\\frac{a}{", "\n::: figure x\n", "\n::: question\n", "\n:::\n",
    "\n::: bench\n", "alt: ", "\n## ", "\n# ", "\n### ", "{#id}", "<!--", "<b>", "&nbsp;", "&#8239;", "<http://a.b>",
    "http://x.y/12", "](http://a)", "]{throughput}", "]{tokens @ tokens=64}", "]{exempt: why not}", ']{fits == "no"}',
    "[64", "[1,840 tokens per second", "64", "two", "half a", "sixty", "A100 80GB", "1\u202f840", "\u00a0", "%", "−5",
    " x", " and ", "é", "\t", "\r\n", "\r", "\x00", "\ufeff", "---\n", "```\n", "'", '"', "=", "\n===\n", "[](#id)",
    "[a]: http://b\n",
)  # fmt: skip
MARKDOWN = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=40).map("".join)
