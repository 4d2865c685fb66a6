r"""A small part of TeX → MathML, at build time. What it doesn't know is an error, never a red smear on the page.

Known: letters, digits, + - = < > ( ) [ ] | , ! / : ; ^ _ { }, \frac \sqrt \text \mathrm \operatorname, \left \right,
\, \; \quad \%, the names in the tables below, and our own \bound{4.8\,\text{ms}}{fact}, a number held against its fact.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from builder.errors import did_you_mean

_SYMBOLS = {
    "times": "×", "cdot": "·", "div": "÷", "pm": "±", "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "ne": "≠",
    "approx": "≈", "equiv": "≡", "ll": "≪", "gg": "≫", "to": "→", "sum": "∑", "prod": "∏", "mid": "|", "ldots": "…",
    "lfloor": "⌊", "rfloor": "⌋", "lceil": "⌈", "rceil": "⌉", "propto": "∝", "in": "∈",
}  # fmt: skip
_LETTERS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eta": "η", "theta": "θ", "lambda": "λ",
    "mu": "μ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "omega": "ω", "Delta": "Δ", "Sigma": "Σ",
    "Omega": "Ω", "infty": "∞", "ell": "ℓ",
}  # fmt: skip
_FUNCTIONS = ("min", "max", "log", "exp", "ln", "lim")
_SPACES = {",": "0.17em", ":": "0.22em", ";": "0.28em", " ": "0.25em", "quad": "1em", "qquad": "2em", "!": "0em"}
_WORDS = ("text", "mathrm", "operatorname", "mathbf", "mathit")
_COMMANDS = ("frac", "sqrt", "left", *_WORDS, "bound", "times", "min", *_SYMBOLS, *_LETTERS, *_FUNCTIONS)
_FENCES = "()[]|⌊⌋⌈⌉"

_TOKEN = re.compile(r"\\(?:[A-Za-z]+|.)|\d+(?:,\d{3})*(?:\.\d+)?|\s+|.", re.DOTALL)
_MACRO = re.compile(r"\\bound\{")
DEEPEST = 20


class MathsError(Exception):
    """What can't be set: a message, and the index in the formula."""

    def __init__(self, message: str, index: int, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.index, self.hint = message, index, hint


@dataclass(frozen=True)
class Macro:
    r"""A \bound{text}{fact} of a formula: indices of its parts."""

    start: int
    text_start: int
    text_end: int
    fact_start: int
    fact_end: int
    end: int


def macros(tex: str) -> Iterator[Macro]:
    r"""Every \bound{…}{…} of a formula. Raises MathsError where one isn't complete."""
    for found in _MACRO.finditer(tex):
        text_end = _closing(tex, found.end() - 1)
        if tex[text_end + 1 : text_end + 2] != "{":
            raise MathsError("\\bound needs two pairs of braces", found.start(), r"write \bound{4.8}{fact}")
        fact_end = tex.find("}", text_end + 1)
        if fact_end < 0:
            raise MathsError("the brace of this fact isn't closed", text_end + 1, "add the }")
        yield Macro(found.start(), found.end(), text_end, text_end + 2, fact_end, fact_end + 1)


def _closing(tex: str, start: int) -> int:
    depth = 0
    for index in range(start, len(tex)):
        if tex[index] in "{}" and (index == 0 or tex[index - 1] != "\\"):
            depth += 1 if tex[index] == "{" else -1
            if depth == 0:
                return index
    raise MathsError("this brace isn't closed", start, "add the }")


def plain(tex: str) -> str:
    """A formula as plain text of the same length: spaces for commands and braces, the words of \\text kept."""
    text = re.sub(r"\\(?:text|mathrm|operatorname)\{", lambda m: " " * len(m[0]), tex)
    text = re.sub(r"\\%", " %", text)
    text = re.sub(r"\\times", "     ×", text)
    text = re.sub(r"\\(?:[A-Za-z]+|.)", lambda m: " " * len(m[0]), text)
    return re.sub(r"[{}~]", " ", text)


def render(tex: str, *, display: bool, bound: Callable[[Macro], str] | None = None) -> str:
    r"""MathML of a formula. bound: the HTML of a \bound macro. Raises MathsError for what isn't known."""
    found = {macro.start: macro for macro in macros(tex)}
    inner = _Setter(tex, found, bound or (lambda macro: "")).row()
    block = ' display="block"' if display else ""
    return f'<math xmlns="http://www.w3.org/1998/Math/MathML"{block}><mrow>{inner}</mrow></math>'


class _Setter:
    """Reads a formula from left to right."""

    def __init__(self, tex: str, found: dict[int, Macro], bound: Callable[[Macro], str]) -> None:
        self.tex, self.found, self.bound = tex, found, bound
        self.position, self.depth = 0, 0

    def _peek(self) -> str:
        match = _TOKEN.match(self.tex, self.position)
        return match[0] if match else ""

    def _take(self) -> str:
        token = self._peek()
        self.position += len(token)
        return token

    def _skip_space(self) -> None:
        while self._peek().isspace():
            self._take()

    def row(self, until: str = "") -> str:
        """Elements up to a token, with their scripts."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise MathsError("this formula is nested too deeply", self.position)
        out: list[str] = []
        while True:
            self._skip_space()
            token = self._peek()
            if token == until or (until == "\\right" and token == "\\right"):
                break
            if not token:
                raise MathsError(f"a {until} is missing at the end of the formula", self.position)
            if token in ("}", "\\right"):
                raise MathsError(f"{token} closes nothing", self.position)
            out.append(self._scripted(self.element()))
        self.depth -= 1
        return "".join(out)

    def _scripted(self, base: str) -> str:
        below: str | None = None
        above: str | None = None
        while (mark := self._peek()) in ("^", "_") and mark:
            start = self.position
            self._take()
            if (above if mark == "^" else below) is not None:
                raise MathsError(f"two {mark} behind one symbol", start, "use braces")
            script = self.argument()
            above, below = (script, below) if mark == "^" else (above, script)
        if below is not None and above is not None:
            return f"<msubsup>{base}{below}{above}</msubsup>"
        if below is not None:
            return f"<msub>{base}{below}</msub>"
        return f"<msup>{base}{above}</msup>" if above is not None else base

    def argument(self) -> str:
        """One element or one pair of braces."""
        self._skip_space()
        if not self._peek():
            raise MathsError("something is missing at the end of the formula", self.position)
        return self.element()

    def element(self) -> str:
        """The next element."""
        start = self.position
        token = self._take()
        if token == "{":
            inner = self.row("}")
            self._take()
            return f"<mrow>{inner}</mrow>"
        if token.startswith("\\"):
            return self._command(token[1:], start)
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if token.isalpha():
            return f"<mi>{html.escape(token)}</mi>"
        if token == "-":
            return "<mo>−</mo>"
        if token in "+=<>()[]|,!/:;.*'×÷·≤≥≈−":
            stretchy = ' stretchy="false"' if token in _FENCES else ""
            return f"<mo{stretchy}>{html.escape(token)}</mo>"
        if token == "~":
            return '<mspace width="0.25em"/>'
        raise MathsError(f"'{token}' means nothing in a formula", start, "words go into \\text{…}")

    def _command(self, name: str, start: int) -> str:
        if start in self.found and name == "bound":
            macro = self.found[start]
            self.position = macro.end
            return f"<mtext>{self.bound(macro)}</mtext>"
        if name in _SPACES:
            return f'<mspace width="{_SPACES[name]}"/>'
        if name in _SYMBOLS:
            stretchy = ' stretchy="false"' if _SYMBOLS[name] in _FENCES else ""
            return f"<mo{stretchy}>{_SYMBOLS[name]}</mo>"
        if name in _LETTERS:
            return f"<mi>{_LETTERS[name]}</mi>"
        if name in _FUNCTIONS:
            return f"<mi>{name}</mi>"
        if name in ("%", "$", "#", "&", "_", "{", "}"):
            return f"<mo>{html.escape(name)}</mo>"
        if name in _WORDS:
            return self._words(name, start)
        if name == "frac":
            return f"<mfrac>{self.argument()}{self.argument()}</mfrac>"
        if name == "sqrt":
            return f"<msqrt>{self.argument()}</msqrt>"
        if name == "left":
            opening = self._fence()
            inner = self.row("\\right")
            self._take()
            return f"<mrow><mo>{opening}</mo>{inner}<mo>{self._fence()}</mo></mrow>"
        known = "known: " + " ".join(f"\\{each}" for each in _COMMANDS[:8]) + " …"
        hint = (did_you_mean(name, _COMMANDS, 0.75) if len(name) > 1 else None) or known
        raise MathsError(f"the command \\{name} isn't known here", start, hint)

    def _fence(self) -> str:
        start = self.position
        token = self._take()
        if token.startswith("\\"):
            token = _SYMBOLS.get(token[1:], token[1:])
        if token not in (*_FENCES, ".", "{", "}") or not token:
            raise MathsError("\\left and \\right need a bracket", start)
        return "" if token == "." else html.escape(token)

    def _words(self, name: str, start: int) -> str:
        if self._peek() != "{":
            raise MathsError(f"\\{name} needs braces", start)
        end = _closing(self.tex, self.position)
        words = self.tex[self.position + 1 : end]
        self.position = end + 1
        kind = "mi" if name == "operatorname" else "mtext"
        return f"<{kind}>{html.escape(words)}</{kind}>"
