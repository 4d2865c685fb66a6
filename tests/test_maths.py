"""The small part of TeX that the lesson needs, as MathML; all else is an error at its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.maths import MathsError, macros, plain, render

KNOWN = [
    (r"I", "<mi>I</mi>"),
    (r"2 B", "<mn>2</mn><mi>B</mi>"),
    (r"1,024", "<mn>1,024</mn>"),
    (r"a \times b - c", "<mi>a</mi><mo>×</mo><mi>b</mi><mo>−</mo><mi>c</mi>"),
    (r"x_i", "<msub><mi>x</mi><mi>i</mi></msub>"),
    (r"x^{2}", "<msup><mi>x</mi><mrow><mn>2</mn></mrow></msup>"),
    (r"x_i^2", "<msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup>"),
    (r"\frac{a}{b}", "<mfrac><mrow><mi>a</mi></mrow><mrow><mi>b</mi></mrow></mfrac>"),
    (r"\sqrt{a}", "<msqrt><mrow><mi>a</mi></mrow></msqrt>"),
    (r"\text{bytes} \approx \mu", "<mtext>bytes</mtext><mo>≈</mo><mi>μ</mi>"),
    (r"\min(a, b)", '<mi>min</mi><mo stretchy="false">(</mo><mi>a</mi><mo>,</mo><mi>b</mi><mo stretchy="false">)</mo>'),
    (
        r"\left(\frac{a}{b}\right)",
        "<mrow><mo>(</mo><mfrac><mrow><mi>a</mi></mrow><mrow><mi>b</mi></mrow></mfrac><mo>)</mo></mrow>",
    ),
    (r"5\,\%", '<mn>5</mn><mspace width="0.17em"/><mo>%</mo>'),
    (r"a < b", "<mi>a</mi><mo>&lt;</mo><mi>b</mi>"),
    (r"\text{<script>}", "<mtext>&lt;script&gt;</mtext>"),
]


@pytest.mark.parametrize(("tex", "expected"), KNOWN, ids=[tex for tex, _ in KNOWN])
def test_what_is_known_becomes_mathml(tex: str, expected: str) -> None:
    """Letters, numbers, operators, scripts, fractions, roots, words, brackets, spaces."""
    head = '<math xmlns="http://www.w3.org/1998/Math/MathML"><mrow>'
    assert render(tex, display=False) == f"{head}{expected}</mrow></math>"


def test_a_formula_of_its_own_is_a_block() -> None:
    """So that a browser sets it large and centred."""
    assert render("a", display=True).startswith('<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">')


WRONG = [
    (r"\foo", 0, "the command \\foo isn't known here"),
    (r"a \tmes b", 2, "the command \\tmes isn't known here"),
    (r"\frac{a}", 8, "something is missing at the end of the formula"),
    (r"\frac{a}{b", 10, "a } is missing at the end of the formula"),
    ("a}", 1, "} closes nothing"),
    ("a^b^c", 3, "two ^ behind one symbol"),
    (r"\left a", 5, "\\left and \\right need a bracket"),
    (r"\left( a", 8, "a \\right is missing at the end of the formula"),
    (r"\text a", 0, "\\text needs braces"),
    ("a & b", 2, "'&' means nothing in a formula"),
    (r"\bound{a}", 0, "\\bound needs two pairs of braces"),
    (r"\bound{a}{b", 9, "the brace of this fact isn't closed"),
    (r"\bound{a", 6, "this brace isn't closed"),
    ("{" * 30 + "}" * 30, 20, "this formula is nested too deeply"),
]


@pytest.mark.parametrize(("tex", "index", "message"), WRONG, ids=[tex[:12] for tex, _, _ in WRONG])
def test_what_is_not_known_is_an_error_at_its_place(tex: str, index: int, message: str) -> None:
    """Never a formula that looks right and isn't."""
    with pytest.raises(MathsError) as caught:
        render(tex, display=False)
    assert (caught.value.message, caught.value.index) == (message, index)


def test_a_macro_knows_its_parts() -> None:
    """The number and its fact, by index."""
    tex = r"x = \bound{4.8\,\text{ms}}{16e9 byte / gpu.hbm_bandwidth} + 1"
    (macro,) = macros(tex)
    assert tex[macro.start : macro.start + 7] == r"\bound{"
    assert tex[macro.text_start : macro.text_end] == r"4.8\,\text{ms}"
    assert tex[macro.fact_start : macro.fact_end] == "16e9 byte / gpu.hbm_bandwidth"
    assert tex[macro.end :] == " + 1"
    assert "<mtext>HERE</mtext>" in render(tex, display=False, bound=lambda found: "HERE")


@given(st.text(alphabet=r"\{}^_ab12.,$%&() frac text bound left right min", max_size=60))
def test_any_formula_is_set_or_refused(tex: str) -> None:
    """And its plain text has every character at its place."""
    assert len(plain(tex)) == len(tex)
    try:
        assert render(tex, display=False).endswith("</mrow></math>")
    except MathsError as error:
        assert error.message  # noqa: PT017
        assert 0 <= error.index <= len(tex)  # noqa: PT017
