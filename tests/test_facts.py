"""The language of facts: names, points, arithmetic with units, claims, and every figure that was ever published."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as settings_of
from markdown_it.utils import read_fixture_file

from builder.dimensions import ONE
from builder.errors import LessonError
from builder.facts import Facts
from builder.grid import load_grid
from builder.numerals import compare, numerals_in, quantity
from builder.syntax import settings
from builder.values import Proof, Result, Subject, show
from tests.conftest import ROOT
from tests.strategies import ANY_FACT, WELL_FORMED

PUBLISHED = json.loads((ROOT / "tests" / "goldens" / "published.json").read_text(encoding="utf-8"))["figures"]


@pytest.fixture(scope="module")
def facts() -> Facts:
    return Facts(load_grid(ROOT))


def evaluate(facts: Facts, text: str) -> Result:
    return facts.evaluate(facts.parse(text))


@pytest.mark.parametrize("figure", PUBLISHED, ids=lambda figure: f"{figure['fact']} @ {figure.get('at', '')}")
def test_every_published_figure_comes_out(facts: Facts, figure: dict[str, Any]) -> None:
    """Text and fact of each figure of the lesson, held together by the language itself."""
    at = f" @ {figure['at']}" if "at" in figure else ""
    result = evaluate(facts, figure["fact"] + at)
    if result.kind == "claim":
        assert result.value, result.against
        return
    numerals = list(numerals_in(figure["text"]))
    assert len(numerals) == 1
    width = 0.07 if "approximate" in figure.get("note", "") or figure["text"].startswith("about 200") else None
    said = quantity(figure["text"], numerals[0])
    compared = compare(said, float(result.value or 0), result.dimension or ONE, position=result.position, width=width)
    assert compared.ok, compared


def outcome(facts: Facts, text: str) -> str:
    """A fact's outcome in a line."""
    try:
        result = evaluate(facts, text)
    except LessonError as error:
        return f"{error.column} {error.message}" + (f" | {error.hint}" if error.hint else "")
    if result.kind == "claim":
        told = result.proof.range if result.proof and result.value else result.against
        return f"{str(result.value).lower()}{': ' if told else ''}{told or ''}"
    return f"= {show(float(result.value or 0), result.dimension)}"


CASES = [
    pytest.param(text, expected, id=title)
    for _, title, text, expected in read_fixture_file(ROOT / "tests" / "prose_cases" / "facts.md")
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_each_fact_says_what_it_is_or_why_it_is_none(facts: Facts, text: str, expected: str) -> None:
    """Each case of facts.md."""
    assert [outcome(facts, line) for line in text.splitlines()] == expected.splitlines()


def test_no_mistake_is_told_in_the_words_of_python() -> None:
    """Each kind of mistake has words of its own: none falls back to 'invalid syntax'."""
    told = [line for case in CASES for line in case.values[1].splitlines()]
    assert len(told) > 100
    assert not [line for line in told if "syntax" in line or "Error" in line or "None" in line]


def test_a_fact_starts_where_it_is_told(facts: Facts) -> None:
    """The start replaces the grid's default, the fact's own point replaces both."""
    start = facts.start(settings("tokens=64 gpu=a100"))
    assert facts.evaluate(facts.parse("tokens"), start).value == 64
    assert facts.evaluate(facts.parse("tokens @ tokens=2"), start).value == 2
    exact = facts.evaluate(facts.parse("throughput"), start).exact
    assert exact is not None
    assert (exact.tokens, exact.gpu) == (64, "a100")


def test_a_pass_is_computed_once_and_only_when_asked_for(facts: Facts) -> None:
    """Hardware costs no pass; two facts of a point share one."""
    fresh = Facts(facts.grid)
    for text in ("gpu.ridge_point", "model.layers", "resident_bytes", 'fits == "fits"'):
        fresh.evaluate(fresh.parse(text))
    assert fresh.vocabulary.passes == 0
    for text in ("throughput", "attention.share", "throughput / time", "matmuls.time(tokens=1)"):
        fresh.evaluate(fresh.parse(text))
    assert fresh.vocabulary.passes == 1


def test_crossovers_are_solved_on_integers_not_read_off_the_grid(facts: Facts) -> None:
    """305 is no position of the bench; one token less is still bound by memory."""
    found = evaluate(facts, 'first(tokens, gate_proj.bound != "memory") @ phase=prefill')
    assert found.value == 305
    assert evaluate(facts, 'gate_proj.bound == "memory" @ phase=prefill tokens=304').value is True
    assert evaluate(facts, 'gate_proj.bound == "memory" @ phase=prefill tokens=305').value is False


def test_a_link_goes_to_the_nearest_position_and_says_so(facts: Facts) -> None:
    """By ratio, the smaller of two; assumptions that the bench doesn't have are named."""
    result = evaluate(facts, "throughput @ tokens=1000 context=700 lm_head=bf16")
    assert result.point is not None
    assert (result.point.tokens, result.point.context) == (1024, 512)
    assert result.off_grid == (
        "tokens stands at 1,024, the nearest to 1,000; context stands at 512, the nearest to 700; "
        "lm_head=bf16 can't be set"
    )
    assert evaluate(facts, "throughput @ tokens=64").off_grid is None


def answers_or_errs(facts: Facts, text: str) -> None:
    """A text is a fact with a finite value, or a LessonError whose column lies within it."""
    wrong: LessonError | None = None
    try:
        result = evaluate(facts, text)
    except LessonError as error:
        wrong = error
    if wrong:
        assert 1 <= (wrong.column or 0) <= len(text) + 1
        assert wrong.message
        return
    assert result.kind in ("value", "claim", "exempt")
    if result.kind == "value":
        assert math.isfinite(float(result.value or 0))
    if result.kind == "claim" and not result.value:
        assert result.against


@given(ANY_FACT)
@settings_of(max_examples=300)
def test_no_text_makes_the_language_fail(facts: Facts, text: str) -> None:
    """No traceback and no hang, whatever stands between the braces."""
    answers_or_errs(facts, text)


@given(WELL_FORMED)
@settings_of(max_examples=100)
def test_a_fact_has_one_outcome(facts: Facts, text: str) -> None:
    """Asked again, and of a fresh Facts, it is the same."""
    once = outcome(facts, text)
    assert outcome(facts, text) == once
    assert outcome(Facts(facts.grid), text) == once


def test_weights_that_the_bench_lacks_stand_near_what_moves_as_many_bytes(facts: Facts) -> None:
    """The fact is exact; its link goes to fp8, or where that is missing too to the default, and says so."""
    axes = {**facts.grid.axes, "weights": ("bf16", "fp8", "int4")}
    for weights, near in (("bf16", "fp8", "int4"), "fp8"), (("bf16", "int4"), "bf16"):
        few = Facts(replace(facts.grid, axes={**axes, "weights": weights}))
        result = evaluate(few, "throughput @ weights=w8a8")
        assert result.value == evaluate(facts, "throughput @ weights=w8a8").value
        assert result.point
        assert result.point.weights == near
        assert result.off_grid == f"weights stands at {near}, the nearest to w8a8"


def test_what_a_model_does_not_state_is_no_fact(facts: Facts) -> None:
    """Not every config.json says how far its positions reach."""
    grid = replace(facts.grid, model=replace(facts.grid.model, max_positions=None))
    with pytest.raises(LessonError, match=r"the model's config\.json doesn't state max_positions"):
        evaluate(Facts(grid), "model.max_positions")


AIMS = [
    # the place that is read first, whatever else is read
    ("throughput(tokens=64) / throughput", {"tokens": 64}, Subject(readout="throughput")),
    ("throughput / throughput(tokens=64)", {}, Subject(readout="throughput")),
    ("qkv_proj.share(tokens=64)", {"tokens": 64}, Subject(kernels=("qkv_proj",), column="share")),
    ("tokens @ tokens=64", {"tokens": 64}, Subject(control="tokens")),
    ('fits == "fits" @ gpu=h200', {"gpu": "h200"}, Subject(readout="verdict")),
    # a crossover: where it is, and what crosses there; of two, the first
    ("first(tokens, attention.share > 50%)", {"tokens": 12}, Subject(kernels=("attention",), column="share")),
    ("time / 1 s + first(tokens, tokens > 5) / 1 token", {"tokens": 6}, Subject(control="tokens")),
    ("first(context, context > 128)", {"context": 128}, Subject(control="context")),
    (
        "first(tokens, tokens > 7) - first(context, gate_proj.share > attention.share)",
        {"tokens": 8},
        Subject(control="tokens"),
    ),
    # over the grid: where the fact starts, not where a sweep does
    ("everywhere(throughput > 1) @ tokens=64", {"tokens": 64}, Subject(readout="throughput")),
]


@pytest.mark.parametrize(("text", "moved", "subject"), AIMS, ids=[text for text, _, _ in AIMS])
def test_a_fact_says_where_its_link_goes_and_what_it_points_at(
    facts: Facts, text: str, moved: dict[str, Any], subject: Subject
) -> None:
    """A place that it reads, on the bench, and a readout, a cell or a control there."""
    result = evaluate(facts, text)
    assert result.point == replace(facts.grid.defaults, **moved)
    assert result.subject == subject


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("tokens @ tokens=8k", True),
        ("first(tokens, tokens > 5)", True),
        ("max(8k, tokens)", True),
        ("max(3 tokens, tokens)", False),
        ("2 * tokens", False),
        ("largest_batch", False),
    ],
)
def test_a_position_is_known_from_other_numbers_of_tokens(facts: Facts, text: str, position: bool) -> None:
    """There k is 1,024: at a place on an axis, and at a crossover."""
    assert evaluate(facts, text).position is position


def test_a_claim_shows_what_it_was_proved_with(facts: Facts) -> None:
    """Its sides at a point; over the grid the range; of a false one the sides too, and what contradicts it."""
    proved = evaluate(facts, "throughput > 1 and time < 1 s")
    assert proved.proof == Proof("throughput is 163.9 tokens/s, time is 6.103 ms")
    false = evaluate(facts, "throughput > 1 and time > 1 s")
    assert false.proof == proved.proof
    assert false.against == f"throughput is 163.9 tokens/s, time is 6.103 ms at {facts.start().words()}"
    at = "phase=decode context=8k gpu=h100 weights=bf16 kv=bf16 attention=gqa"
    swept = evaluate(facts, f"everywhere(tokens > 0) and nowhere(tokens > 5k) @ {at}")
    points = "25 points of the grid: decode; tokens 1 to 4,096; context 8,192; H100; "
    points += "BF16 weights; BF16 KV cache; GQA"
    assert swept.proof == Proof("", f"{points}; {points}")
    never = evaluate(facts, f"everywhere(tokens > 1) and everywhere(tokens > 2) @ {at}")
    assert never.proof == Proof("")
    assert never.against
    assert never.against.count("; not at phase=decode tokens=1 ") == 1
