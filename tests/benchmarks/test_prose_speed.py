"""How long the text takes, and the long runs of the fuzzers: python -m pytest tests/benchmarks."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from pytest_benchmark.fixture import BenchmarkFixture

from builder.facts import Facts
from builder.grid import load_grid
from builder.numbers import fix_all
from builder.places import Source
from builder.prose import read, sources
from tests.conftest import ROOT
from tests.strategies import ANY_FACT, MARKDOWN
from tests.test_facts import answers_or_errs
from tests.test_prose import reads_or_errs

GRID = load_grid(ROOT)
THOUSANDS = settings(
    max_examples=5000, deadline=None, phases=[Phase.generate, Phase.shrink], suppress_health_check=list(HealthCheck)
)
FACTS = [
    ("1,840 tokens per second", "throughput @ tokens={}"),
    ("83%", "attention.share @ tokens={}"),
    ("62 FLOPs per byte", "qkv_proj.arithmetic_intensity @ tokens={}"),
    ("14%", "throughput(tokens={}) / throughput(tokens=1) - 1"),
    ("15.2 GiB", "bytes_moved @ tokens={} gpu=h200"),
]


def two_hundred() -> str:
    """A text of two hundred bound numbers at forty points."""
    lines = [
        f"Sentence with [{text}]{{{fact.format(tokens)}}} in it." for tokens in range(1, 41) for text, fact in FACTS
    ]
    return "---\ntitle: T\n---\n" + "\n\n".join(lines) + "\n"


def fastest(run: object, rounds: int = 7) -> float:
    assert callable(run)
    times = []
    for _ in range(rounds):
        start = time.process_time()  # of this process: a busy machine is no slow program
        run()
        times.append(time.process_time() - start)
    return min(times)


def test_two_hundred_bound_numbers_are_checked_in_a_tenth_of_a_second(benchmark: BenchmarkFixture) -> None:
    """Parsed, computed, compared, linted and rendered, nothing remembered from before."""
    text = [Source("l.md", two_hundred())]
    prose = benchmark(lambda: read(text, Facts(GRID)))
    assert len(prose.bound) == 200
    assert fastest(lambda: read(text, Facts(GRID))) < 0.1


def test_the_lesson_is_checked_in_a_tenth_of_a_second(benchmark: BenchmarkFixture) -> None:
    """The whole text, claims over the grid and all."""
    texts = sources(ROOT)
    benchmark(lambda: read(texts, Facts(GRID)))
    assert fastest(lambda: read(texts, Facts(GRID))) < 0.1


def test_a_fix_reads_the_text_twice(benchmark: BenchmarkFixture) -> None:
    """And is done well within a second."""
    texts = sources(ROOT)
    benchmark(lambda: fix_all(texts, Facts(GRID)))
    assert fastest(lambda: fix_all(texts, Facts(GRID))) < 0.3


@pytest.mark.parametrize(
    "text",
    [
        "[" * 20_000,
        "[a](" * 5_000,
        "[a]{" * 5_000,
        "*[a]{tokens}" * 3_000,
        "`" * 20_000,
        "`[" * 5_000,
        "64 " * 10_000,
        "two hundred and " * 3_000,
        "1,000," * 5_000,
        "a-" * 10_000,
        "> " * 2_000 + "x",
        "- " * 2_000 + "x",
        "$" * 10_000,
        "\\bound{" * 3_000,
        "$" + "\\frac{" * 3_000 + "$",
        "| a " * 3_000 + "|\n" + "|---" * 3_000 + "|\n",
        "::: figure a\n" * 1_000,
        "&#x41;" * 3_000,
        "section 4, " * 3_000,
        "[" + "x" * 100_000 + "]{tokens}",
        "[1]{" + "tokens + " * 10_000 + "1}",
        "[1]{" + "(" * 10_000 + "}",
    ],
    ids=lambda text: text[:12],
)
def test_no_text_takes_long(text: str) -> None:
    """Markup repeated without end is read in time that grows with its length."""
    start = time.process_time()
    reads_or_errs("---\ntitle: T\n---\n" + text, Facts(GRID))
    assert time.process_time() - start < 3


@given(ANY_FACT)
@THOUSANDS
def test_thousands_of_facts(text: str) -> None:
    """The long run of test_no_text_makes_the_language_fail."""
    answers_or_errs(Facts(GRID), text)


@given(MARKDOWN)
@THOUSANDS
def test_thousands_of_texts(text: str) -> None:
    """The long run of test_no_text_makes_the_reader_fail."""
    reads_or_errs("---\ntitle: T\n---\n" + text)
