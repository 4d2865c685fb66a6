"""The text of a fact → a checked tree. Nothing is evaluated here, and nothing is ever eval'ed.

    throughput @ tokens=64
    attention.share > matmuls.share @ tokens=64 context=8k
    first(tokens, gate_proj.bound != "memory") @ phase=prefill within 7%
    16e9 byte / gpu.hbm_bandwidth
    exempt: year of the paper

A fact is an expression, optionally `@` and a point, optionally `within` and a width. The expression is tokenised by our
own lexer, so that numbers may carry units and every mistake has a column, then parsed by `ast` and held against a list
of allowed nodes. Length, depth and the size of numbers are bounded: no text makes the parser slow or large.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from builder.dimensions import TOKEN, Dimension, unit_names, unit_of
from builder.errors import LessonError, did_you_mean

LONGEST = 600  # characters of a fact
DEEPEST = 40  # nested brackets and operators
LARGEST = 1e30  # of a literal
LARGEST_POWER = 6

FUNCTIONS = ("everywhere", "nowhere", "rising", "falling", "first", "min", "max", "abs")
_WORDS = ("and", "or", "not")
_NOT_OURS = ("if", "else", "for", "in", "is", "lambda", "import", "True", "False", "None", "await", "yield")

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<number>\d{1,3}(?:,\d{3})+(?![\d.])|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<name>[A-Za-z][A-Za-z0-9_]*)
    |(?P<string>"[^"\\\n]{0,80}"|'[^'\\\n]{0,80}')
    |(?P<op>==|!=|<=|>=|\*\*|[-+*/().,=<>@%])
    """,
    re.VERBOSE,
)
_UNIT = re.compile(r"[ \t\n\u00a0]*([A-Za-zµμ]+(?:/[A-Za-z]+)*|%)")
_INSTEAD = {
    "×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "≥": ">=", "≤": "<=", "≠": "!=", "^": "**", "&": "and",
}  # fmt: skip


@dataclass(frozen=True)
class Literal:
    """A number in a fact: SI value, dimension (None: a bare number that fits any plain quantity), and how it reads."""

    value: float
    dimension: Dimension | None
    text: str


@dataclass(frozen=True)
class Setting:
    """One `name=value` of a point, still a text; offset: of the value in the fact."""

    name: str
    value: str | float
    offset: int
    name_offset: int


@dataclass(frozen=True)
class Fact:
    """A parsed fact.

    source: as the author wrote it. tree: the expression (None for an exemption). literals: what the names n_0, n_1, …
    of the tree stand for. point: what follows @. width: what follows within, as a fraction. exempt: the reason.
    """

    source: str
    tree: ast.expr | None = None
    literals: dict[str, Literal] = field(default_factory=dict)
    point: tuple[Setting, ...] = ()
    width: float | None = None
    exempt: str | None = None
    columns: tuple[int, ...] = ()

    def offset(self, node: ast.AST) -> int:
        """Where in the source a node of the tree begins."""
        column = getattr(node, "col_offset", 0)
        return self.columns[min(column, len(self.columns) - 1)] if self.columns else 0

    def text_of(self, node: ast.expr) -> str:
        """A node of the tree as an author would write it."""
        return _restored(ast.unparse(node), self.literals)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    offset: int
    literal: Literal | None = None


def _restored(text: str, literals: dict[str, Literal]) -> str:
    return re.sub(r"\bn_\d+\b", lambda name: literals[name[0]].text if name[0] in literals else name[0], text)


def wrong(message: str, offset: int = 0, hint: str | None = None) -> LessonError:
    """A mistake at an offset of the fact; its column is relative to the fact and moved to its place by prose.py."""
    return LessonError(message, column=offset + 1, hint=hint)


def parse(source: str) -> Fact:
    """The fact that a text states. Raises LessonError, its column counted from its start."""
    text = source
    if len(text) > LONGEST:
        raise wrong(f"this fact has {len(text):,} characters; at most {LONGEST} are read", 0, "split it, or name less")
    if not text.strip():
        raise wrong("the braces are empty", 0, "write the fact that the text states, or {exempt: why it needs none}")
    exemption = re.match(r"\s*exempt\b\s*(:?)\s*(.*)$", text, re.DOTALL)
    if exemption:
        reason = " ".join(exemption[2].split())
        if not exemption[1] or not re.search(r"[^\W\d_]{2}", reason):
            raise wrong("an exemption needs its reason", 0, "write {exempt: year of the paper}")
        return Fact(source, exempt=reason)
    tokens = _tokens(text)
    tokens, width = _take_width(tokens)
    tokens, point = _take_point(tokens, text)
    if not tokens:
        raise wrong("there is no fact before the @", 0, "write what is true at the point: {throughput @ tokens=64}")
    return _tree(source, tokens, point, width)


def settings(text: str) -> tuple[Setting, ...]:
    """The settings of a point on its own: 'tokens=1 context=8k'. Raises LessonError."""
    try:
        found = _take_point(_tokens("@ " + text), text)[1]
    except LessonError as error:
        raise wrong(error.message, max((error.column or 1) - 3, 0), error.hint) from None
    return tuple(replace(each, offset=each.offset - 2, name_offset=each.name_offset - 2) for each in found)


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if not match:
            raise _unreadable(text, position)
        kind = str(match.lastgroup)
        token = _Token(kind, match[0], position)
        position = match.end()
        if kind == "number":
            token, position = _number(text, token, position)
        if kind != "space":
            tokens.append(token)
    return tokens


def _unreadable(text: str, position: int) -> LessonError:
    character = text[position]
    if character in "\"'":
        return wrong("a quoted text doesn't end", position, f"close it with {character}")
    if character == "_":
        return wrong("a name can't begin with _", position)
    instead = _INSTEAD.get(character)
    hint = f"write {instead}" if instead else "a fact is made of names, numbers, + - * / ( ) and comparisons"
    return wrong(f"'{character}' means nothing in a fact", position, hint)


def _number(text: str, token: _Token, position: int) -> tuple[_Token, int]:
    """A number, with the unit or the k behind it, as one literal."""
    digits = token.text.replace(",", "")
    value = float(digits) if len(digits) < 60 else float("inf")
    if value > LARGEST:
        raise wrong("this number is too large for a fact", token.offset, f"at most {LARGEST:.0e}")
    behind = _UNIT.match(text, position)
    if not behind:
        return _Token("number", token.text, token.offset, Literal(value, None, token.text)), position
    word = behind[1]
    if word == "k" and behind.start(1) == position:
        kilo = Literal(value * 1024, TOKEN, token.text + word)
        return _Token("number", token.text + word, token.offset, kilo), behind.end()
    next_setting = "@" in text[:position] and re.match(r"\w*\s*=(?!=)", text[behind.end() :])
    if word in (*_WORDS, "within") or next_setting:
        return _Token("number", token.text, token.offset, Literal(value, None, token.text)), position
    while (unit := unit_of(word)) is None and "/" in word:
        word = word.rpartition("/")[0]
    if unit is None:
        raise _no_unit(text, token, word, behind)
    end = behind.start(1) + len(word)
    literal = Literal(value * unit.size, unit.dimension, text[token.offset : end])
    return _Token("number", text[token.offset : end], token.offset, literal), end


def _no_unit(text: str, token: _Token, word: str, behind: re.Match[str]) -> LessonError:
    offset = behind.start(1)
    if word in _NOT_OURS:
        return wrong(f"'{word}' isn't part of the language of facts", offset)
    if re.match(r"\s*=(?!=)", text[offset + len(word) :]):
        if text[:offset].count("(") > text[:offset].count(")"):
            return wrong(f"'{word}' follows {token.text} with nothing between them", offset, "a comma is missing")
        return wrong(f"a point begins with @: '{word}' follows {token.text} without one", offset, "write … @ tokens=64")
    return wrong(f"'{word}' behind {token.text} is no unit", offset, did_you_mean(word, unit_names()))


def _take_width(tokens: list[_Token]) -> tuple[list[_Token], float | None]:
    """Split `within 7%` off the end."""
    at = next((index for index, token in enumerate(tokens) if token.text == "within" and token.kind == "name"), None)
    if at is None:
        return tokens, None
    tail = tokens[at + 1 :]
    literal = tail[0].literal if tail else None
    if literal is None or not literal.text.endswith("%"):
        raise wrong("within needs a width in percent", tokens[at].offset, "write within 5%")
    if len(tail) > 1:
        raise wrong(f"'{tail[1].text}' stands behind the width", tail[1].offset, "a fact ends with its width")
    if not 0 < literal.value <= 0.5:
        hint = "an approximation wider than 50% says nothing"
        raise wrong(f"within {literal.text} is no width", tail[0].offset, hint)
    return tokens[:at], literal.value


def _take_point(tokens: list[_Token], text: str) -> tuple[list[_Token], tuple[Setting, ...]]:
    """Split `@ tokens=64 context=8k` off the end."""
    ats = [index for index, token in enumerate(tokens) if token.text == "@"]
    if not ats:
        return tokens, ()
    if len(ats) > 1:
        hint = "for two points write throughput(tokens=256) / throughput(tokens=64)"
        raise wrong("a fact has one @", tokens[ats[1]].offset, hint)
    rest = [token for token in tokens[ats[0] + 1 :] if token.text != ","]
    if not rest:
        raise wrong("no point follows the @", tokens[ats[0]].offset, "write @ tokens=64, or leave the @ out")
    settings: list[Setting] = []
    while rest:
        name = rest[0]
        equals, value = (rest[1] if len(rest) > 1 else None), (rest[2] if len(rest) > 2 else None)
        if value is not None and value.text == "-" and len(rest) > 3 and (literal := rest[3].literal) is not None:
            negative = replace(literal, value=-literal.value, text="-" + literal.text)
            value = _Token("number", negative.text, value.offset, negative)
            rest = [*rest[:2], *rest[3:]]
        if name.kind != "name":
            raise wrong(f"'{name.text}' is no part of a point", name.offset, "a point is name=value, name=value …")
        if equals is None or equals.text != "=":
            hint = "write tokens=64" if name.text not in FUNCTIONS else "the @ stands behind the last bracket"
            raise wrong(f"'{name.text}' in the point has no value", name.offset, hint)
        if value is None or value.kind not in ("name", "number", "string"):
            raise wrong(f"'{name.text}=' in the point has no value", name.offset, "write tokens=64, gpu=h100")
        settings.append(_setting(name, value, settings))
        rest = rest[3:]
    return tokens[: ats[0]], tuple(settings)


def _setting(name: _Token, value: _Token, before: Sequence[Setting]) -> Setting:
    if any(setting.name == name.text for setting in before):
        raise wrong(f"'{name.text}' is set twice in one point", name.offset, "keep one of the two")
    content = value.literal.value if value.literal else value.text.strip("\"'")
    return Setting(name.text, content, value.offset, name.offset)


def _tree(source: str, tokens: list[_Token], point: tuple[Setting, ...], width: float | None) -> Fact:
    """Hand the tokens to `ast` with each literal replaced by a name, and keep where every character came from."""
    pieces: list[str] = []
    columns: list[int] = []
    literals: dict[str, Literal] = {}
    for token in tokens:
        text = token.text
        if token.kind == "name" and text in _NOT_OURS:
            raise wrong(f"'{text}' isn't part of the language of facts", token.offset)
        if token.literal is not None:
            text = f"n_{len(literals)}"
            literals[text] = token.literal
        elif re.fullmatch(r"n_\d+", text):
            raise wrong(f"there is no fact called '{text}'", token.offset)
        pieces.append(text)
        columns.extend([token.offset] * (len(text) + 1))
    columns.append(len(source.rstrip()))
    _check_brackets(tokens)
    try:
        tree = ast.parse(" ".join(pieces), mode="eval").body
    except SyntaxError as error:
        column = min((error.offset or 1) - 1, len(columns) - 1)
        raise _syntax_error(source, tokens, columns[max(column, 0)], error.msg) from None
    except (ValueError, RecursionError, MemoryError):
        raise wrong("this fact is nested too deeply", 0, "split it") from None
    fact = Fact(source, tree, literals, point, width, None, tuple(columns))
    _check_nodes(fact, tree, 0)
    return fact


def _check_brackets(tokens: Sequence[_Token]) -> None:
    opened: list[_Token] = []
    for token in tokens:
        if token.text == "(":
            opened.append(token)
            if len(opened) > DEEPEST:
                raise wrong("this fact is nested too deeply", token.offset, "split it")
        elif token.text == ")":
            if not opened:
                raise wrong("a bracket closes that was never opened", token.offset, "take the ) out")
            opened.pop()
    if opened:
        raise wrong("a bracket isn't closed", opened[-1].offset, "add the ) that belongs to it")


def _joins(token: _Token) -> bool:
    return token.text in _WORDS or (token.kind == "op" and token.text not in "()")


def _syntax_error(source: str, tokens: Sequence[_Token], offset: int, reason: str) -> LessonError:
    """What is wrong with a fact that `ast` can't parse, in an author's words."""
    if "positional argument" in reason:
        return wrong("a value without a name stands behind one with a name", offset, "write throughput(tokens=64)")
    for before, after in pairwise(tokens):
        if {before.kind, after.kind} <= {"name", "number", "string"} and not {before.text, after.text} & set(_WORDS):
            message = f"'{before.text}' and '{after.text}' stand side by side with nothing between them"
            return wrong(message, after.offset, "an operator is missing, or the @ before a point")
        if _joins(before) and _joins(after) and after.text not in ("not", "-", "+"):
            message = f"'{before.text}' and '{after.text}' stand side by side with nothing between them"
            return wrong(message, after.offset, "a name or number is missing, or one of the two is too many")
    for token in tokens:
        if token.text == "=":
            return wrong("a single = compares nothing", token.offset, "write == to compare, @ tokens=64 for a point")
        if token.text == "%":
            return wrong("% stands only behind a number", token.offset, "write 14%")
    if _joins(tokens[-1]):
        return wrong(f"the fact ends in '{tokens[-1].text}'", tokens[-1].offset, "something is missing behind it")
    word = source[offset : offset + 12].split("\n")[0].strip() or "the end"
    return wrong(f"this isn't a fact: it can't be read at '{word}'", offset)


_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_UNARY = (ast.USub, ast.UAdd, ast.Not)
_REFUSED = {
    ast.Tuple: "a list of values",
    ast.NamedExpr: "an assignment",
    ast.Starred: "a *",
    ast.JoinedStr: "a text with placeholders",
    ast.GeneratorExp: "a loop",
}


def _check_nodes(fact: Fact, node: ast.AST, depth: int) -> None:
    """Raise where a node isn't on the list of what a fact may hold, or stands too deep."""
    if depth > DEEPEST:
        raise wrong("this fact is nested too deeply", fact.offset(node), "split it")
    children: Sequence[ast.AST] = ()
    match node:
        case ast.BinOp(left, operator, right) if isinstance(operator, _OPERATORS):
            children = (left, right)
            if isinstance(operator, ast.Pow):
                _check_power(fact, right)
        case ast.UnaryOp(operator, operand) if isinstance(operator, _UNARY):
            children = (operand,)
        case ast.BoolOp(_, values):
            children = values
        case ast.Compare(left, operators, comparators) if all(isinstance(each, _COMPARISONS) for each in operators):
            children = (left, *comparators)
        case ast.Call(function, arguments, keywords):
            if not isinstance(function, ast.Name | ast.Attribute) or any(word.arg is None for word in keywords):
                raise wrong("only a name can be called", fact.offset(node), "write throughput(tokens=64)")
            names = [word.arg for word in keywords]
            for index, word in enumerate(keywords):
                if word.arg in names[:index]:
                    raise wrong(f"'{word.arg}' is set twice in one bracket", fact.offset(word), "keep one of the two")
            children = (function, *arguments, *(word.value for word in keywords))
        case ast.Attribute(ast.Name(), _):
            pass
        case ast.Name() | ast.Constant(str()):
            pass
        case _:
            kind = _REFUSED.get(type(node), f"'{fact.text_of(node)[:40]}'" if isinstance(node, ast.expr) else "this")
            hint = "a fact is made of names, numbers, + - * / ( ), comparisons, and, or, not"
            raise wrong(f"{kind} isn't part of the language of facts", fact.offset(node), hint)
    for child in children:
        _check_nodes(fact, child, depth + 1)


def _check_power(fact: Fact, exponent: ast.expr) -> None:
    sign = isinstance(exponent, ast.UnaryOp) and isinstance(exponent.op, ast.USub)
    name = exponent.operand if isinstance(exponent, ast.UnaryOp) and sign else exponent
    literal = fact.literals.get(name.id) if isinstance(name, ast.Name) else None
    if literal is None or literal.dimension is not None or not literal.value.is_integer():
        raise wrong("an exponent must be a whole number, written out", fact.offset(exponent), "write x ** 2")
    if literal.value > LARGEST_POWER:
        raise wrong(f"an exponent of at most {LARGEST_POWER} is read", fact.offset(exponent))
