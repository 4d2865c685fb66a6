"""Numbers become text in one place, to the last digit."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.units import (
    GIB,
    KIB,
    MIB,
    QUANTITIES,
    TIB,
    dtype_bytes,
    intensity,
    join,
    one_decimal,
    parse_position,
    percent,
    short_position,
    show,
    significant,
    whole,
)

PLAIN = re.compile(r"\u2212?\d{1,3}(,\d{3})*(\.\d+)?")
positive = st.floats(min_value=1e-12, max_value=1e18, allow_nan=False)

# number . text; the edges are where digits round up
SIGNIFICANT = """
0            . 0
0.0024       . 0.0024
0.00994      . 0.0099
0.00996      . 0.010
0.0994       . 0.099
0.09949      . 0.099
0.0995       . 0.10
0.0996       . 0.10
0.6763       . 0.68
0.994        . 0.99
0.995        . 0.99
0.9951       . 1.00
1            . 1.00
1.005        . 1.00
1.225        . 1.23
9.994        . 9.99
9.995        . 10.0
9.996        . 10.0
10           . 10.0
34.773       . 34.8
99.94        . 99.9
99.95        . 100
99.96        . 100
100          . 100
999.4        . 999
999.5        . 1,000
1840.49      . 1,840
19609        . 19,609
1234567.8    . 1,234,568
0.0000000123 . 0.000000012
1e15         . 1,000,000,000,000,000
-0.1432      . \u22120.14
-12.34       . \u221212.3
"""


@pytest.mark.parametrize("line", SIGNIFICANT.strip().splitlines())
def test_significant_digits(line):
    """Three digits from 1 on, two below, and '10.0' where '10.00' would be a digit too many."""
    number, text = line.split(" . ")
    assert significant(float(number)) == text.strip()


def test_the_neighbours_of_every_edge_have_the_right_number_of_digits():
    """One float below or above an edge, there is never a digit more than elsewhere: no '10.00', no '100.0'."""
    for edge, below in ((0.00995, 2), (0.0995, 2), (0.995, 2), (9.995, 3), (99.95, 3)):
        for value in (math.nextafter(edge, 0), edge, math.nextafter(edge, math.inf)):
            digits = significant(value).replace(".", "").lstrip("0")
            assert len(digits) == (below if value < 0.995 or digits == "99" else 3), (value, significant(value))


@given(positive)
def test_shown_digits_are_within_half_a_unit_of_the_last_place(value):
    """What is shown is within half a unit in the last place of what is meant, and never scientific."""
    for text in (significant(value), intensity(value), one_decimal(value), whole(value)):
        assert PLAIN.fullmatch(text), text
        shown = Decimal(text.replace(",", ""))
        unit = Fraction(10) ** shown.as_tuple().exponent
        assert abs(Fraction(value) - Fraction(shown)) <= unit / 2


@given(positive)
def test_significant_shows_as_many_digits_as_it_says(value):
    """Significant digits: two below 1, three from there, all before the point from 100 on."""
    text = significant(value)
    digits = text.replace(",", "").replace(".", "").lstrip("0")
    assert len(digits) == 2 if text.startswith("0.") else len(digits) >= 3
    assert value < 99.95 or "." not in text


@given(positive, positive)
def test_a_larger_number_never_reads_smaller(a, b):
    """Rounding keeps the order."""
    a, b = sorted((a, b))
    for text in (significant, intensity, one_decimal, whole):
        assert float(text(a).replace(",", "")) <= float(text(b).replace(",", ""))


@pytest.mark.parametrize("text", [significant, intensity, one_decimal, percent, whole])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_never_shown(text, value):
    """A NaN or an infinity is our own bug and never becomes text."""
    with pytest.raises(AssertionError):
        text(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1.00"),
        (62.384, "62.38"),
        (99.994, "99.99"),
        (99.995, "100"),
        (99.996, "100"),
        (1755.4, "1,755"),
        (0, "0.00"),
    ],
)
def test_intensity_has_two_decimals_below_a_hundred(value, text):
    """Intensity has two decimals below a hundred and none from there."""
    assert intensity(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1e-9, "< 0.1"),
        (0.0499, "< 0.1"),
        (0.05, "0.1"),
        (0.25, "0.2"),
        (82.96, "83.0"),
        (94.449, "94.4"),
        (99.96, "100.0"),
        (-6.3, "\u22126.3"),
    ],
)
def test_a_percentage_that_is_there_is_never_shown_as_nothing(value, text):
    """A share that rounds to 0.0 is '< 0.1'; only nothing is '0'."""
    assert percent(value) == text


@pytest.mark.parametrize(
    ("quantity", "value", "text"),
    [
        ("throughput", 1839.9, "1,840 tokens per second"),
        ("time", 0.0347727, "34.8 ms"),
        ("time", 0.9994, "999 ms"),
        ("time", 0.9996, "1.00 s"),
        ("time", 2e-6, "0.0020 ms"),
        ("flops", 20.1e9, "20.1 GFLOP"),
        ("flops", 999.4e9, "999 GFLOP"),
        ("flops", 999.6e9, "1.00 TFLOP"),
        ("flops", 1.278e12, "1.28 TFLOP"),
        ("flops", 3.2e15, "3.20 PFLOP"),
        ("flops", 0, "0 GFLOP"),
        ("bytes_moved", 15.2 * GIB, "15.2 GiB"),
        ("bytes_moved", 1010 * GIB, "1,010 GiB"),
        ("bytes_moved", 1023.6 * GIB, "1.00 TiB"),
        ("bytes_moved", 0.001 * GIB, "0.0010 GiB"),
        ("resident_bytes", 87.25 * GIB, "87.2 GiB"),
        ("resident_bytes", 1303 * GIB, "1,303.0 GiB"),
        ("memory_bytes", 81559 * MIB, "79.6 GiB"),
        ("peak_share", 0.0413, "4.1 %"),
        ("share", 0.00001, "< 0.1 %"),
        ("arithmetic_intensity", 711.1, "711 FLOP/B"),
        ("attainable_flops", 13.4e12, "13.4 TFLOP/s"),
        ("peak_flops", 989e12, "989 TFLOP/s"),
        ("hbm_bandwidth", 3.35e12, "3.35 TB/s"),
        ("ridge_point", 295.22, "295 FLOP/B"),
        ("largest_batch", 802, "802"),
        ("parameters", 8190735360, "8.19 billion"),
    ],
)
def test_a_quantity_is_shown_in_its_unit(quantity, value, text):
    """A value in SI is shown in the unit a reader expects, the next one from where four digits would be printed."""
    digits, _, unit = text.partition(" ")
    if text.startswith("< "):
        digits, unit = "< 0.1", "%"
    assert show(quantity, value) == (digits, unit)


@pytest.mark.parametrize("quantity", sorted(QUANTITIES))
@given(value=st.floats(min_value=0, max_value=1e21))
def test_no_quantity_is_ever_shown_in_scientific_notation(quantity, value):
    """No quantity at any size is shown as 1e+16, nan or inf."""
    digits, _ = show(quantity, value)
    assert PLAIN.fullmatch(digits.removeprefix("< ")), digits


def test_a_column_may_keep_its_unit_for_longer():
    """A step of its own makes a quantity change units earlier or later than at 1,000."""
    work = QUANTITIES["flops"]
    assert [work.unit(value, step=5000)[1] for value in (4999e9, 5000e9)] == ["GFLOP", "TFLOP"]
    assert [work.unit(value)[1] for value in (999e9, 1000e9)] == ["GFLOP", "TFLOP"]


def test_binary_units_are_not_decimal_ones():
    """A GiB is 2^30 bytes, seven percent more than a GB."""
    assert (KIB, MIB, GIB, TIB) == (1024, 1024**2, 1024**3, 1024**4)
    assert show("bytes_moved", 80e9)[0] == "74.5"


def test_a_dtype_takes_its_bytes():
    """BF16 takes two bytes, FP8 one, INT4 half of one."""
    assert [dtype_bytes(dtype) for dtype in ("bf16", "fp8", "int4")] == [2, 1, 0.5]


def test_digits_and_unit_never_part_at_the_end_of_a_line():
    """A no-break space stands between digits and unit; none where there is no unit."""
    assert join("34.8", "ms") == "34.8\u00a0ms"
    assert join("802", "") == "802"


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("1", 1),
        ("0", 0),
        ("4096", 4096),
        ("4,096", 4096),
        ("4_096", 4096),
        ("8k", 8192),
        ("8K", 8192),
        (" 128k ", 131072),
    ],
)
def test_a_position_reads_as_people_write_it(text, tokens):
    """8k is 8,192; groups of three may be marked."""
    assert parse_position(text) == tokens


@pytest.mark.parametrize(
    "text",
    ["", "k", "-1", "1.5", "1.5k", "1,5", "1,5k", "12,34", "8kk", "1e3", "²", "٣", "8 k", "0x10", "nan", "9" * 5000],
)
def test_what_is_no_position_is_refused(text):
    """What is no count of tokens is refused; a decimal comma is not read as a group."""
    with pytest.raises(ValueError, match="is not a number of tokens"):
        parse_position(text)


@given(st.integers(min_value=0, max_value=2**24))
def test_a_position_survives_its_own_short_name(tokens):
    """What a tick says reads back as its position."""
    assert parse_position(short_position(tokens)) == tokens
    assert parse_position(whole(tokens)) == tokens
