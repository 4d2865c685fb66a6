"""The named assumptions of the cost model: what the lesson takes for granted, and what else one may take.

Each has a default, which the lesson's figures stand on; another value costs the same pass differently. `--assume` on
the command line and `@ name=value` in the prose set them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from builder.errors import LessonError, did_you_mean


@dataclass(frozen=True)
class Assumptions:
    """lm_head: dtype of the LM head's weights. group_scales: g128 adds a 2-byte scale and a 4-bit zero for each 128
    INT4 weights. launch_gap: seconds added for every kernel launched in a layer. head_rows: whether a prefill's LM
    head runs on all rows or on the last. kv_reread: tile128 lets each 128-row query tile of each query head read K and
    V anew (prefill). qo_traffic: whether attention's reads of q and writes of o reach HBM. activations: l2 keeps every
    activation byte on the chip. overlap: perfect lets arithmetic and traffic of a whole pass run side by side.
    peak_scale, bandwidth_scale: a hypothetical GPU, all its peaks or its bandwidth times this.
    """

    lm_head: str = "same"
    group_scales: str = "none"
    launch_gap: float = 0.0
    head_rows: str = "all"
    kv_reread: str = "none"
    qo_traffic: str = "no"
    activations: str = "hbm"
    overlap: str = "none"
    peak_scale: float = 1.0
    bandwidth_scale: float = 1.0


DEFAULT = Assumptions()

CHOICES: dict[str, tuple[str, ...]] = {
    "lm_head": ("same", "bf16"),
    "group_scales": ("none", "g128"),
    "head_rows": ("all", "last"),
    "kv_reread": ("none", "tile128"),
    "qo_traffic": ("no", "yes"),
    "activations": ("hbm", "l2"),
    "overlap": ("none", "perfect"),
}
# name → (least, most): numbers, in SI
RANGES: dict[str, tuple[float, float]] = {
    "launch_gap": (0.0, 1.0),
    "peak_scale": (1e-6, 1e6),
    "bandwidth_scale": (1e-6, 1e6),
}
# numbers at which the lesson tells the size of an assumption; of CHOICES it takes every value
EXAMPLES: dict[str, tuple[float, ...]] = {
    "launch_gap": (1e-6, 5e-6),
    "peak_scale": (2.0,),
    "bandwidth_scale": (2.0,),
}
# what an assumption is about, where it is not about every pass: dtypes of the weights, phases
WEIGHTS: dict[str, tuple[str, ...]] = {"lm_head": ("fp8", "int4", "w8a8"), "group_scales": ("int4",)}
PHASES: dict[str, tuple[str, ...]] = {"head_rows": ("prefill",), "kv_reread": ("prefill",)}
NAMES = tuple(field.name for field in fields(Assumptions))


def differences(assumptions: Assumptions) -> dict[str, str | float]:
    """What is assumed otherwise than by default."""
    return {name: getattr(assumptions, name) for name in NAMES if getattr(assumptions, name) != getattr(DEFAULT, name)}


def alternatives(name: str) -> tuple[str | float, ...]:
    """The values other than the default at which the size of an assumption is told."""
    values: tuple[str | float, ...] = CHOICES[name] if name in CHOICES else EXAMPLES[name]
    return tuple(value for value in values if value != getattr(DEFAULT, name))


def read(name: str, text: str) -> str | float:
    """The value of an assumption from its text. Raises LessonError where there is no such name or value."""
    if name in CHOICES:
        if text in CHOICES[name]:
            return text
        raise LessonError(
            f"{name} is {' or '.join(CHOICES[name])}, not '{text}'", hint=did_you_mean(text, CHOICES[name])
        )
    if name in RANGES:
        least, most = RANGES[name]
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not least <= number <= most:  # refuses NaN too
            unit = " seconds" if name == "launch_gap" else ""
            raise LessonError(f"{name} is a number from {least:g} to {most:g}{unit}, not '{text}'")
        return number
    raise LessonError(f"there is no assumption '{name}'", hint=did_you_mean(name, NAMES))


def assume(given: Mapping[str, Any]) -> Assumptions:
    """Assumptions that differ from the default in what is given, names → texts or values. Raises as read() does."""
    return Assumptions(**{name: read(name, str(value)) for name, value in given.items()})  # type: ignore[arg-type]
