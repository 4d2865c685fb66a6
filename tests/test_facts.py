"""The language of facts: names, points, arithmetic with units, claims, and every figure that was ever published."""

from __future__ import annotations

import json
from typing import Any

import pytest

from builder.facts import Facts
from builder.grid import load_grid
from builder.numerals import ONE, compare, numerals_in, quantity
from builder.values import Result
from tests.conftest import ROOT

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
