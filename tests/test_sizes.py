"""The sizes of the assumptions: by publication, by law, and as the facts that a text would be bound to."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from functools import cache
from html import unescape

import numpy as np
import pytest

from builder import assumptions
from builder.assumptions import Assumptions, alternatives, assume
from builder.errors import LessonErrors
from builder.facts import Facts
from builder.grid import GRID_FILE, Grid, load_grid
from builder.ledger import Point, forward_pass
from builder.prose import ASSUMPTIONS_SLOT, load_prose
from builder.roofline import cost
from builder.sizes import Case, cases, heading, percent
from tests.test_page import prose, rendered
from tests.toys import ROOT, at

D1, D256, B1K = at(), at(tokens=256, context=512), at(tokens=1024, context=512)
P = at(phase="prefill", tokens=4096, context=512)


@cache
def lesson() -> Grid:
    """The lesson's grid."""
    return load_grid(ROOT)


@cache
def case(setting: str, weights: str) -> Case:
    """The case of a setting, such as launch_gap=1e-06, at a dtype of the weights."""
    (found,) = [
        each
        for each in cases(lesson(), setting.partition("=")[0])
        if each.setting == setting and each.sizes[0].point.weights == weights
    ]
    return found


def test_sizes_are_told_at_the_four_passes_of_the_cost_model():
    """One user at 8k, 256 at 512, 1,024 at 512, and a prompt of 4,096 after 512."""
    assert list(lesson().passes.values()) == [D1, D256, B1K, P]
    heads = [heading(point).replace("\u00a0", " ") for point in lesson().passes.values()]
    assert heads == ["1 user at 8k", "256 at 512", "1,024 at 512", "4,096 after 512"]


@pytest.mark.parametrize(
    ("setting", "weights", "published"),
    [
        ("lm_head=bf16", "int4", {D1: 18.7}),
        ("lm_head=bf16", "fp8", {D1: 7.1}),
        ("group_scales=g128", "int4", {D1: 2.9}),
        ("launch_gap=1e-06", "bf16", {D1: 7.7, D256: 3.4, B1K: 0.9, P: 0.5}),
        ("launch_gap=5e-06", "bf16", {D1: 38.3}),
        ("head_rows=last", "bf16", {P: -6.3}),
        ("kv_reread=tile128", "bf16", {P: 10.0}),
        ("qo_traffic=yes", "bf16", {D256: 0.4, B1K: 0.4}),
        ("activations=l2", "bf16", {D256: -8.0, B1K: -4.7, P: -9.7}),
        ("overlap=perfect", "bf16", {B1K: -25.4, P: -9.7}),
    ],
)
def test_sizes_are_the_published_ones(setting, weights, published):
    """Each percent that the cost model publishes, to its last digit; two of them are known to be a digit off."""
    found = {replace(size.point, weights="bf16"): size for size in case(setting, weights).sizes}
    for point, size in published.items():
        assert abs(found[point].change * 100 - size) <= 0.055
        assert abs(float(found[point].text.replace("\u2212", "-")) - size) < 0.11


def test_faster_arithmetic_is_nothing_to_one_user():
    """Twice the FLOP/s change nothing where all kernels wait for bytes; twice the bandwidth halves the pass."""
    texts = [case(setting, "bf16").sizes[0].text for setting in ("peak_scale=2", "bandwidth_scale=2")]
    assert texts == ["0.0", "\u221250.0"]


@pytest.mark.parametrize("name", assumptions.NAMES)
def test_every_case_is_the_fact_that_it_names(name):
    """The language of facts, on a way of its own, finds the same change at the same point; the text shows it."""
    facts = Facts(lesson())
    for found in cases(lesson(), name):
        for size in found.sizes:
            result = facts.evaluate(facts.parse(size.fact), facts.start())
            assert isinstance(result.value, float)
            if size.change is None:
                assert (size.text, result.value) == ("–", 0)
                continue
            assert result.value == pytest.approx(size.change, abs=1e-12)
            assert (result.exact, result.point) == (size.point, size.point)
            assert found.setting in size.fact
            digits = re.search(r"\d+\.\d", size.text)
            assert digits
            assert abs(abs(size.change) * 100 - float(digits[0])) <= (0.05 if "0.1" not in size.text else 0.1)


@pytest.mark.parametrize("name", assumptions.NAMES)
def test_a_dash_stands_where_an_assumption_can_change_nothing_and_nowhere_else(name):
    """Over all tokens and contexts: where it is about no such pass it is nil, elsewhere it does something somewhere."""
    grid = lesson()
    tokens, context = np.asarray(grid.axes["tokens"])[None, :], np.asarray(grid.axes["context"][1:])[:, None]

    def time(point: Point, assumed: Assumptions) -> np.ndarray:
        rows = forward_pass(grid.model, replace(point, tokens=tokens, context=context), assumed)
        return cost(rows, grid.gpus[point.gpu], tokens, assumed).total_time

    for phase in grid.axes["phase"]:
        for weights in grid.axes["weights"]:
            point = at(phase=phase, weights=weights)
            about = phase in assumptions.PHASES.get(name, (phase,))
            about = about and weights in assumptions.WEIGHTS.get(name, (weights,))
            for value in alternatives(name):
                changed = (time(point, assume({name: value})) != time(point, Assumptions())).any()
                assert changed == about, (name, value, phase, weights)


def test_every_assumption_has_its_cases():
    """A new field without values to tell its size at can't stay unnoticed."""
    assert [field.name for field in fields(Assumptions)] == list(assumptions.NAMES)
    for name in assumptions.NAMES:
        assert cases(lesson(), name), name
        assert all(len(each.sizes) == 4 for each in cases(lesson(), name))
        assert len({each.label for each in cases(lesson(), name)}) == len(cases(lesson(), name))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (0.0, "0.0"),
        (-1e-12, "0.0"),
        (0.0004, "< 0.1"),
        (-0.0004, "> \u22120.1"),
        (0.0006, "+0.1"),
        (0.187, "+18.7"),
        (-0.0628, "\u22126.3"),
        (12.0, "+1,200.0"),
    ],
)
def test_nothing_and_a_little_read_apart(change, text):
    """A sign on what there is, and 0.0 for what is none at all."""
    assert percent(change) == text


def test_the_page_has_the_table_with_every_number_a_link_to_its_pass():
    """Built from the lesson's own text: heads with a scope, a reason each, and in every cell the ledger's text."""
    reasons = load_prose(ROOT, Facts(lesson())).reasons_html
    html = rendered(words=replace(prose(html=ASSUMPTIONS_SLOT), reasons_html=reasons))["index.html"]
    (table,) = re.findall(r'<table class="assumptions">.*?</table>', html, re.DOTALL)
    assert "<caption>Change in the time of a pass on an H100, in percent." in table
    assert not re.search(r"<th\b(?! scope=)", table)
    rows = re.findall(r'<th scope="row">(.*?)</th>(.*?)</tr>', table, re.DOTALL)
    found = [each for name in assumptions.NAMES for each in cases(lesson(), name)]
    assert [unescape(label) for label, _ in rows] == [each.label for each in found]
    for (_, row), each in zip(rows, found, strict=True):
        cells = [unescape(re.sub(r"<[^>]*>", "", cell)).strip() for cell in re.findall(r"<td.*?</td>", row, re.DOTALL)]
        assert cells == [size.text for size in each.sizes]
        links = re.findall(r'href="#([^"]*)"', row)
        assert [dict(part.split("=") for part in unescape(link).split("&")) for link in links] == [
            {axis: str(value) for axis, value in vars(size.point).items()}
            for size in each.sizes
            if size.change is not None
        ]
    for name in assumptions.NAMES:
        assert re.search(rf'scope="rowgroup" colspan="5"><code>{name}[^<]*</code> <strong>\w', table), name


def test_without_passes_the_table_has_nothing_to_tell():
    """An error that names the file and what to write there; a text without the table needs no passes."""
    bare = replace(lesson(), passes={})
    with pytest.raises(LessonErrors) as caught:
        rendered(bare, words=replace(prose(html=ASSUMPTIONS_SLOT), reasons_html=dict.fromkeys(assumptions.NAMES, "")))
    (error,) = caught.value.errors
    assert (error.path, error.message) == (GRID_FILE, "the table of assumptions needs [passes] to tell their sizes at")
    assert "Prose" in rendered(bare)["index.html"]
