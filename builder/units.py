"""Dtypes to bytes, units, and the one table that says how each quantity is shown.

Inside the program everything is SI: bytes, FLOPs, seconds, FLOP/s, byte/s, fractions. A unit appears only here, where
a number becomes text. Page, prose and command line all format through this table, so they never disagree by a digit.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite

MINUS = "\u2212"

KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40

# bits, so that four-bit weights stay whole numbers
DTYPE_BITS: dict[str, int] = {"bf16": 16, "fp8": 8, "int4": 4, "w8a8": 8}
WEIGHT_DTYPES = ("bf16", "fp8", "int4", "w8a8")  # w8a8: weights and inputs in FP8, and the arithmetic too
KV_DTYPES = ("bf16", "fp8")
ACTIVATION_BYTES = 2  # activations are BF16 whatever weights and cache are

DTYPE_LABELS = {"bf16": "BF16", "fp8": "FP8", "int4": "INT4", "w8a8": "W8A8"}


def dtype_bytes(dtype: str) -> float:
    """Bytes per element of a dtype: 2, 1 or 0.5."""
    return DTYPE_BITS[dtype] / 8


def significant(value: float) -> str:
    """Three significant digits from 1 on (all of a whole number), two below; thousands grouped, never scientific.

    1840.49 -> '1,840', 34.773 -> '34.8', 0.6763 -> '0.68', 0.0024 -> '0.0024', 0 -> '0'.
    """
    assert isfinite(value), f"{value} is no number to show"
    # the edges are where the digits round up: 9.995 is '10.0', never '10.00'
    if value >= 99.95:
        return f"{value:,.0f}"
    if value >= 9.995:
        return f"{value:.1f}"
    if value >= 0.995:
        return f"{value:.2f}"
    if value < 0:
        return MINUS + significant(-value)
    if value == 0:
        return "0"
    exponent = int(f"{value:.1e}".partition("e")[2])  # of two rounded digits: 0.0996 counts as 0.10
    return f"{value:.{1 - exponent}f}"


def intensity(value: float) -> str:
    """Two decimals below 100, whole numbers from there: '1.00', '62.38', '1,755'."""
    assert isfinite(value), f"{value} is no number to show"
    return f"{value:.2f}" if value < 99.995 else f"{value:,.0f}"


def one_decimal(value: float) -> str:
    """'87.3', '1,303.0'."""
    assert isfinite(value), f"{value} is no number to show"
    return f"{value:,.1f}"


def percent(value: float) -> str:
    """One decimal; what is there but would round to nothing is said to be there: '83.0', '< 0.1', '0'."""
    assert isfinite(value), f"{value} is no number to show"
    if value < 0:
        return f"{MINUS}{-value:,.1f}"
    if value == 0:
        return "0"
    return "< 0.1" if value < 0.05 else f"{value:,.1f}"


def whole(value: float) -> str:
    """A whole number, grouped in thousands: '4,096'."""
    assert isfinite(value), f"{value} is no number to show"
    return f"{value:,.0f}"


@dataclass(frozen=True)
class Quantity:
    """How one quantity is shown.

    label: its name on the page. ladder: (size of the unit in SI, name of the unit), smallest first; from `step` units
    on the next unit is taken, so that a reader sees 1.28 TFLOP and not 1,278 GFLOP. text: number in that unit →
    digits.
    """

    label: str
    ladder: tuple[tuple[float, str], ...]
    text: Callable[[float], str]

    def unit(self, value: float, step: float | None = None) -> tuple[float, str]:
        """The (size, name) of the unit in which value is shown: the next unit from `step` of the one before.

        step is 1,000 between SI units and 1,024 between binary ones unless it is given: 1,010 GiB would be 0.99 TiB.
        """
        chosen = self.ladder[0]
        for smaller, larger in zip(self.ladder, self.ladder[1:], strict=False):
            # compare what will be printed: 999.6 GFLOP would print as 1,000
            if round(value / smaller[0]) < (larger[0] / smaller[0] if step is None else step):
                break
            chosen = larger
        return chosen

    def show(self, value: float) -> tuple[str, str]:
        """(digits, unit) of a value in SI."""
        size, name = self.unit(value)
        return self.text(value / size), name


_BYTES = ((float(GIB), "GiB"), (float(TIB), "TiB"))

QUANTITIES: dict[str, Quantity] = {
    "throughput": Quantity("Throughput", ((1, "tokens per second"),), significant),
    "time": Quantity("Time", ((1e-3, "ms"), (1, "s")), significant),
    "flops": Quantity("Work", ((1e9, "GFLOP"), (1e12, "TFLOP"), (1e15, "PFLOP")), significant),
    "bytes_moved": Quantity("Moved", _BYTES, significant),
    "arithmetic_intensity": Quantity("Intensity", ((1, "FLOP/B"),), intensity),
    "attainable_flops": Quantity("Attainable", ((1e12, "TFLOP/s"),), significant),
    "share": Quantity("Share", ((0.01, "%"),), percent),
    "peak_share": Quantity("Share of peak", ((0.01, "%"),), percent),
    "resident_bytes": Quantity("Memory", ((float(GIB), "GiB"),), one_decimal),
    "memory_bytes": Quantity("Memory", ((float(GIB), "GiB"),), one_decimal),
    "largest_batch": Quantity("Largest batch", ((1, ""),), whole),
    "tokens": Quantity("Tokens in pass", ((1, "tokens"),), whole),
    "context": Quantity("Context", ((1, "tokens"),), whole),
    "peak_flops": Quantity("Peak", ((1e12, "TFLOP/s"),), significant),
    "hbm_bandwidth": Quantity("Bandwidth", ((1e12, "TB/s"),), significant),
    "ridge_point": Quantity("Ridge", ((1, "FLOP/B"),), whole),
    "parameters": Quantity("Parameters", ((1e9, "billion"),), significant),
}


def show(quantity: str, value: float) -> tuple[str, str]:
    """(digits, unit) of a value in SI, by the table: show('time', 0.0348) -> ('34.8', 'ms')."""
    return QUANTITIES[quantity].show(value)


def join(digits: str, unit: str) -> str:
    """Digits and unit in one text, a no-break space between: '34.8 ms'."""
    return f"{digits}\u00a0{unit}" if unit else digits


def short_position(tokens: int) -> str:
    """A position of the token or context axis as its tick names it: 512, '1k', '128k'."""
    return f"{tokens // 1024}k" if tokens >= 1024 and tokens % 1024 == 0 else whole(tokens)


_POSITION = re.compile(r"([0-9]+|[0-9]{1,3}(?:[,_][0-9]{3})+)(k?)", re.IGNORECASE)


def parse_position(text: str) -> int:
    """A count of tokens as people write it: '4096', '4,096', '8k' (8,192). ValueError if it is not one.

    A comma groups thousands and nothing else: '1,5k' is refused, not read as 15k.
    """
    match = _POSITION.fullmatch(text.strip())
    if not match or len(match[1]) > 20:
        raise ValueError(f"{text[:60]!r} is not a number of tokens")
    return int(re.sub("[,_]", "", match[1])) * (1024 if match[2] else 1)
