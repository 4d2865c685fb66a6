"""Numbers as sentences write them: read, compared with a value in SI, and written again in the author's form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder import dimensions
from builder.dimensions import Dimension, unit_of
from builder.numerals import Comparison, compare, numerals_in, quantity

TOKENS, SECONDS, BYTES, PLAIN, RATE = (
    dimensions.TOKEN,
    dimensions.SECOND,
    dimensions.BYTE,
    dimensions.ONE,
    dimensions.TOKENS_PER_SECOND,
)


def held(
    text: str, value: float, dimension: Dimension, *, position: bool = False, width: float | None = None
) -> Comparison:
    found = list(numerals_in(text))
    assert len(found) == 1, found
    return compare(quantity(text, found[0]), value, dimension, position=position, width=width)


HOLDS = [
    ("1,840 tokens per second", 1840.49, RATE),
    ("1840 tokens/s", 1840.49, RATE),
    ("1\u202f840 tokens a second", 1840.49, RATE),
    ("1\u00a0840", 1840.49, RATE),
    ("18k tokens per second", 18319.0, RATE),
    ("about 18.3k output tokens per second", 18319.0, RATE),
    ("6.10 ms", 6.103e-3, SECONDS),
    ("6,103 µs", 6.103e-3, SECONDS),
    ("6103 microseconds", 6.103e-3, SECONDS),
    ("15.2 GiB", 15.23 * 2**30, BYTES),
    ("16.4 GB", 16.38e9, BYTES),
    ("16.4 billion bytes", 16.38e9, BYTES),
    ("16 gigabytes", 16.38e9, BYTES),
    ("144 KiB a token", 147456.0, Dimension(byte=1, token=-1)),
    ("147,456 bytes", 147456.0, Dimension(byte=1, token=-1)),
    ("4-bit", 0.5, BYTES),
    ("0.3%", 0.00331, PLAIN),
    ("0.3 percent", 0.00331, PLAIN),
    ("14 per cent", 0.1387, PLAIN),
    ("−6.3 %", -0.0628, PLAIN),
    ("+18.7%", 0.1871, PLAIN),
    ("3.17×", 3.1699, PLAIN),
    ("×3.17", 3.1699, PLAIN),
    ("3.17 times", 3.1699, PLAIN),
    ("62-fold", 62.4, PLAIN),
    ("sixty-two times", 62.4, PLAIN),
    ("half", 0.5021, PLAIN),
    ("a third", 0.3301, PLAIN),
    ("two thirds", 0.668, PLAIN),
    ("twice", 1.96, PLAIN),
    ("½", 0.5021, PLAIN),
    ("threefold", 3.04, PLAIN),
    ("a thousand tokens", 1000.0, TOKENS),
    ("two hundred and fifty users", 250.0, TOKENS),
    ("64 sequences", 64.0, TOKENS),
    ("8.19 billion parameters", 8_190_735_360.0, PLAIN),
    ("8B", 8_190_735_360.0, PLAIN),
    ("62 FLOPs a byte", 62.4, dimensions.FLOP_PER_BYTE),
    ("62 FLOP/B", 62.4, dimensions.FLOP_PER_BYTE),
    ("20 GFLOP", 19.97e9, dimensions.FLOP),
    ("989 TFLOP/s", 989e12, dimensions.FLOP_PER_SECOND),
    ("3.35 TB/s", 3.35e12, dimensions.BYTE_PER_SECOND),
    ("200 tokens per second", 200.4, dimensions.PER_SECOND),
]


@pytest.mark.parametrize(("text", "value", "dimension"), HOLDS)
def test_a_text_says_its_value(text: str, value: float, dimension: Dimension) -> None:
    """In digits and words, in every unit and form."""
    assert held(text, value, dimension) == Comparison(True, next(numerals_in(text)).text)


STALE = [
    ("1,800 tokens per second", 1840.49, RATE, "1,840"),
    ("999 tokens per second", 1840.49, RATE, "1,840"),
    ("9999 tokens per second", 1840.49, RATE, "1840"),
    ("1\u202f900 tokens per second", 1840.49, RATE, "1\u202f840"),
    ("1\u202f900 tokens per second", 123456.0, RATE, "123\u202f456"),
    ("1,900", 184.0, RATE, "184"),
    ("6.1 ms", 5.95e-3, SECONDS, "6.0"),
    ("0.3%", 0.00251, PLAIN, "0.3"),
    ("0.4%", 0.00251, PLAIN, "0.3"),
    ("4%", -0.021, PLAIN, "−2"),
    ("−4%", 0.021, PLAIN, "2"),
    ("+4%", 0.021, PLAIN, "+2"),
    ("+4%", -0.021, PLAIN, "−2"),
    ("4%", -0.001, PLAIN, "0"),
    ("18k tokens per second", 19319.0, RATE, "19k"),
    ("8.2 billion parameters", 9.19e9, PLAIN, "9.2"),
    ("-5%", -0.05, PLAIN, "−5"),
    ("-5%", 0.05, PLAIN, "5"),
]


@pytest.mark.parametrize(("text", "value", "dimension", "written"), STALE)
def test_a_stale_text_is_rewritten_in_its_own_form(text: str, value: float, dimension: Dimension, written: str) -> None:
    """Decimals, separators, sign, k and million stay; zero is never negative."""
    compared = held(text, value, dimension)
    if compared.ok:
        assert compared.written == written
    else:
        assert compared == Comparison(False, written)


def test_k_is_a_thousand_but_1024_for_a_position() -> None:
    """8k of context is 8,192 entries; 18k tokens per second are 18,000."""
    assert held("8k", 8192, TOKENS, position=True).ok
    assert not held("8k", 8000, TOKENS, position=True).ok
    assert held("8k", 8000, RATE).ok
    assert held("8k", 16384, TOKENS, position=True).written == "16k"
    assert held("8k", 8000, TOKENS, position=True) == Comparison(False, None)


WIDE = [
    ("around 300 tokens", 305, TOKENS, 0.07, None),
    ("around 300 tokens", 330, TOKENS, 0.07, "330"),
    ("around 300 tokens", 352, TOKENS, 0.15, None),
    ("around 300 tokens", 390, TOKENS, 0.07, "400"),
    ("about 700", 1210, PLAIN, 0.05, "1,200"),
    ("about 4.8 ms", 5.21e-3, SECONDS, 0.02, "5.2"),
    ("about 0.5", 0.123, PLAIN, 0.05, "0.12"),
    ("about 100", 7, PLAIN, 0.05, "7"),
    ("seventy", 73.8, PLAIN, 0.06, None),
    ("seventy", 83.8, PLAIN, 0.06, "eighty-four"),
]


@pytest.mark.parametrize(("text", "value", "dimension", "width", "written"), WIDE)
def test_an_approximation_keeps_its_roundness(
    text: str, value: float, dimension: Dimension, width: float, written: str | None
) -> None:
    """Within its width it holds; beyond, as few digits as stay within it."""
    compared = held(text, value, dimension, width=width)
    assert compared.ok == (written is None)
    if written:
        assert compared.written == written


UNFIT = [
    ("164 GiB", RATE),
    ("164 tokens", RATE),
    ("6.1 GiB", SECONDS),
    ("6.1", SECONDS),
    ("15.2", BYTES),
    ("15.2 ms", BYTES),
    ("62 tokens", PLAIN),
    ("62 tokens", dimensions.FLOP_PER_BYTE),
    ("64%", TOKENS),
    ("64 times", TOKENS),
    ("$5", RATE),
    ("5 dollars", PLAIN),
    ("5 requests per minute", TOKENS),
    ("989 TFLOP", dimensions.FLOP_PER_SECOND),
    ("989 TFLOP/s", dimensions.FLOP),
    ("62 bytes per FLOP", dimensions.FLOP_PER_BYTE),
]


@pytest.mark.parametrize(("text", "dimension"), UNFIT)
def test_a_wrong_unit_fails_whatever_the_number(text: str, dimension: Dimension) -> None:
    """$/h for $/month: units are part of the check."""
    value = next(numerals_in(text)).value
    for size in (1.0, 1e-3, 0.01, 2.0**30, 1e9, 1e12):
        assert not held(text, value * size, dimension).ok
    assert held(text, value, dimension).problem


@pytest.mark.parametrize(
    "text",
    [
        "one",
        "once",
        "both",
        "first",
        "second",
        "tenth",
        "someone",
        "often",
        "H100",
        "FP8",
        "x86",
        "a",
        "network",
        "third",
    ],
)
def test_what_is_no_number(text: str) -> None:
    """Not one, once, both, ordinals, parts of words, names."""
    assert list(numerals_in(text)) == []


@pytest.mark.parametrize(
    "name", ["TB/s", "tokens/s", "FLOP/byte", "GiB", "ms", "%", "FLOPs per byte", "bytes per token"]
)
def test_units_are_known_by_symbol_and_word(name: str) -> None:
    """The same table reads a text's unit and a fact's."""
    assert unit_of(name) is not None
    assert unit_of(name + "x") is None


def test_dimensions_are_told_in_words() -> None:
    """An error says what a fact is in."""
    assert RATE.name == "tokens per second"
    assert Dimension(byte=2, second=-1).name == "byte²/s"
    assert BYTES.power(2).times(SECONDS, -1) == Dimension(byte=2, second=-1)


DIGITS = st.from_regex(
    r"\A[+−]?([0-9]{1,9}|[0-9]{1,3}(,[0-9]{3}){1,2}|[0-9]{1,3}(\u202f[0-9]{3}){1,2})(\.[0-9]{1,3})?k?\Z"
)


@given(DIGITS, st.floats(-1e9, 1e9), st.sampled_from([None, 0.01, 0.1]))
def test_what_is_rewritten_holds_and_differs_in_digits_alone(text: str, value: float, width: float | None) -> None:
    """A second look finds nothing to change; separators, point and k are the author's."""
    compared = held(text, value, PLAIN, width=width)
    if compared.ok or compared.written is None:
        return
    assert held(compared.written, value, PLAIN, width=width).ok
    assert ("k" in compared.written) == ("k" in text)
    assert not set(compared.written) - set("0123456789.,k−+\u202f")
    if width is None:
        assert len(compared.written.partition(".")[2]) == len(text.partition(".")[2])


@given(st.text(max_size=60))
def test_any_text_can_be_read(text: str) -> None:
    """No text makes the reader fail, and every numeral has a quantity."""
    for numeral in numerals_in(text):
        quantity(text, numeral)


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize("text", ["64", "about 8k tokens", "sixty", "half"])
def test_no_text_states_what_is_no_number(text: str, value: float) -> None:
    """Nor does anything come near it."""
    assert not quantity(text, next(iter(numerals_in(text)))).numeral.says(value)
