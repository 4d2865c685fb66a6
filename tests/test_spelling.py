"""How the lesson spells: one form for each unit and each kernel, and never a false alarm."""

from __future__ import annotations

import pytest

from builder.errors import LessonError
from builder.facts import Facts
from builder.grid import load_grid
from builder.markdown import parse, parser
from builder.places import Source
from builder.prose import read, sources
from builder.spelling import misspelt
from builder.units import QUANTITIES
from tests.conftest import ROOT


def told(text: str) -> list[tuple[str, str]]:
    """(written, right) of what is misspelt in a text of its own."""
    parsed = parse(parser(), Source("a.md", text))
    found = [each for inline in parsed.inlines for each in misspelt(inline, parsed.spans)]
    return [(each.text, each.right) for each in sorted(found, key=lambda each: each.start)]


@pytest.mark.parametrize(
    ("written", "right"),
    [
        ("QKV-projection", "QKV projection"),
        ("qkv projections", "QKV projection"),
        ("Gate Projection", "gate projection"),
        ("up-projection", "up projection"),
        ("LM-head", "LM head"),
        ("lm head", "LM head"),
        ("kv cache", "KV cache"),
        ("KV-cache", "KV cache"),
        ("KVCache", "KV cache"),
        ("KV\nCache", "KV cache"),
        ("KV-heads", "KV head"),
        ("element-wise", "elementwise"),
        ("bf16", "BF16"),
        ("Int4", "INT4"),
        ("TFLOPs/s", "TFLOP/s"),
        ("TFLOPs", "TFLOP (a count) or TFLOP/s (a rate)"),
        ("TFLOPS", "TFLOP (a count) or TFLOP/s (a rate)"),
        ("Gflop", "GFLOP"),
        ("GFlop/s", "GFLOP/s"),
        ("FLOPS", "FLOPs (a count) or FLOP/s (a rate)"),
        ("flops", "FLOPs"),
        ("FLOPs/s", "FLOP/s"),
        ("Gib", "GiB"),
        ("gib/s", "GiB/s"),
        ("TBps", "TB/s"),
        ("GB/sec", "GB/s"),
        ("tokens/sec", "tokens per second"),
        ("tok/s", "tokens per second"),
        ("usec", "µs"),
        ("μs", "µs"),
        ("pre-fill", "prefill"),
    ],
)
def test_a_spelling_of_another_house_is_told_with_ours(written: str, right: str) -> None:
    """In a sentence, in a heading, and in a bound text alike."""
    assert told(f"It has 3 {written}.") == [(written, right)]
    assert told(f"| a | b |\n|---|---|\n| {written.replace(chr(10), ' ')} | c |\n") == [
        (written.replace("\n", " "), right)
    ]
    assert told(f"It has [3 {written}]{{exempt: so}}.") == [(written, right)]


@pytest.mark.parametrize(
    "fine",
    [
        "`kv cache`, `bf16` and `lm_head.flops`",
        "[TFLOPs and the KV-cache](https://example.org/kv-cache)",
        "[See it](#kv=fp8&weights=bf16)",
        "<https://example.org/flops>",
        'the sheet says “1,979 TFLOPS” and the blog "tokens/sec"',
        "> A KV-cache of 3 Gib, they say.",
        "$\\text{bf16}$ and $flops$",
        "[2]{qkv_proj.flops @ weights=bf16 kv=fp8}",
        "Output projection, output projection, the output projections",
        "a KV\ncache, KV caches, the KV heads, an LM head's weights",
        "10 Gb/s, 10 Gbps, a Gb, 3 GB, 20 ms, 1 µs, 5 KiB",
        "FLOP, FLOPs, FLOPs a second, FLOP/s, FLOP/B, FLOPs per byte, TFLOP/s, tokens per second, tokens/s",
        "floppy, tokenized, ribs, Gibson, elementwise, prefill, prefilled, msecure",
        "BF16 and FP8-based, W8A8, INT4",
        "[2]{qkv_proj.share(kv=fp8) {@ weights=bf16 lm_head=bf16}",
        "[2]{exempt: kv cache, bf16}\n\n[two and very many more KV caches]{exempt: bf16}",
    ],
)
def test_what_is_right_or_none_of_ours_is_left_alone(fine: str) -> None:
    """Code, addresses, formulas, facts, quotations, titles of what lies outside; and all forms that the house has."""
    assert told(fine) == []


def test_a_link_inside_the_lesson_is_our_own_word() -> None:
    """Its text is spelt as any other; code in a bound text is code."""
    assert told("[the KV-cache](#cache)") == [("KV-cache", "KV cache")]
    assert told("[3 `bf16` bytes]{exempt: so}") == []


def test_every_unit_that_the_page_shows_is_spelt_as_it_shows_it() -> None:
    """The table of the page's units and this table never disagree."""
    units = {unit for quantity in QUANTITIES.values() for _, unit in quantity.ladder}
    assert [told(f"3 {unit}") for unit in sorted(units)] == [[] for _ in units]


def test_the_lesson_is_spelt_right_and_a_slip_is_told_at_its_place() -> None:
    """An error of the text like any other: line, column, what is right."""
    facts, (source, *others) = Facts(load_grid(ROOT)), sources(ROOT)
    assert read([source, *others], facts).errors == ()
    slip = Source(source.path, source.text.replace("attention over a KV cache.", "attention over a KV-cache.", 1))
    (error,) = read([slip, *others], facts).errors
    line = next(k for k, text in enumerate(slip.lines, 1) if "KV-cache" in text)
    assert isinstance(error, LessonError)
    assert (error.path, error.line) == (source.path, line)
    assert slip.lines[line - 1][(error.column or 0) - 1 :].startswith("KV-cache")
    assert (error.message, error.hint) == ("the lesson doesn't write 'KV-cache'", "write KV cache")
