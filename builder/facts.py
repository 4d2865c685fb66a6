"""The small language of quoted facts: a parsed fact at a point of the ledger → a value with its unit, or a proof.

syntax.py reads the text, vocabulary.py knows the names, claims.py sweeps the grid; here expressions are evaluated.
Values carry their dimension through all arithmetic, so that a fact in seconds can't stand behind a text in GiB.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from builder import claims
from builder.dimensions import ONE, PLAIN, TOKEN
from builder.errors import LessonError, did_you_mean
from builder.grid import AXES, Grid
from builder.syntax import Fact, Setting, parse, wrong
from builder.values import Place, Proof, Result, Subject, Value
from builder.vocabulary import Notes, Vocabulary

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_SIGNS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_KINDS = {"number": "a number", "symbol": "a text", "truth": "true or false"}


class Facts:
    """Evaluates facts over one grid. Its errors are LessonErrors whose column counts from the start of the fact."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.vocabulary = Vocabulary(grid)
        self._parsed: dict[str, Fact] = {}
        self._results: dict[tuple[str, Place], Result] = {}

    def parse(self, text: str) -> Fact:
        """The fact that a text states, remembered. Raises LessonError where it states none."""
        if text not in self._parsed:
            self._parsed[text] = parse(text)
        return self._parsed[text]

    def start(self, settings: tuple[Setting, ...] = ()) -> Place:
        """The place that facts start from: the grid's default, with some settings changed. Raises LessonError."""
        point = self.grid.defaults
        return self.vocabulary.moved(Place(*(getattr(point, axis) for axis in AXES)), settings)

    def evaluate(self, fact: Fact, start: Place | None = None) -> Result:
        """The outcome of a fact, `start` being the place it starts from (the grid's default if None); remembered.

        Raises LessonError where it has none: an unknown name, a point off its axis, a division by zero, a text where
        a number is needed, units that don't go together, a claim over no point.
        """
        if fact.tree is None:
            return Result("exempt")
        start = start or self.start()
        if (fact.source, start) not in self._results:
            self._results[fact.source, start] = self._evaluated(fact, fact.tree, start)
        return self._results[fact.source, start]

    def _evaluated(self, fact: Fact, tree: ast.expr, start: Place) -> Result:
        sweeps = any(name in fact.source for name in claims.OVER_THE_GRID)
        base = self.vocabulary.moved(start, fact.point, anywhere=sweeps)
        evaluation = _Evaluation(fact, self.vocabulary)
        value = evaluation.value(tree, base)
        if not evaluation.notes.names:
            hint = "a number that isn't computed is exempt: {exempt: year of the paper}"
            raise wrong("this fact names nothing that could change", 0, hint)
        if value.kind == "symbol":
            hint = f'compare it: {fact.text_of(tree)} == "{value.data}"'
            raise wrong(f"this fact is a text ('{value.data}'), not a number", 0, hint)
        aim = self._aim(evaluation, base)
        if value.kind == "number":
            return Result("value", float(value.data), value.dimension, value.position, **aim)
        if fact.width is not None:
            raise wrong("a claim is true or false: within belongs to numbers", 0, "leave the width out")
        proof, against = evaluation.proof(bool(value.data), base)
        return Result("claim", bool(value.data), proof=proof, against=against, **aim)

    def _aim(self, evaluation: _Evaluation, base: Place) -> dict[str, Any]:
        """The fields of a Result that say where the page's link goes to, and what the fact is about."""
        seen = evaluation.notes.seen
        if not seen:
            return {}
        place, subject = evaluation.aim or seen[0]
        if not (isinstance(place.tokens, int) and isinstance(place.context, int)):
            place = base
        exact, near = place.point, self.vocabulary.nearest(place.point)
        off = [
            f"{axis} stands at {getattr(near, axis):,}, the nearest to {getattr(exact, axis):,}"
            for axis in ("tokens", "context")
            if getattr(exact, axis) != getattr(near, axis)
        ]
        if exact.weights != near.weights:
            off.append(f"weights stands at {near.weights}, the nearest to {exact.weights}")
        off += [f"{name}={value} can't be set" for name, value in place.assumptions]
        return {"point": near, "exact": exact, "off_grid": "; ".join(off) or None, "subject": subject}


class _Evaluation:
    """One evaluation of one fact."""

    def __init__(self, fact: Fact, vocabulary: Vocabulary) -> None:
        self.fact, self.vocabulary = fact, vocabulary
        self.notes = Notes()
        self.sweep = claims.Sweep(fact, vocabulary, self.value)
        self.aim: tuple[Place, Subject] | None = None

    def value(self, node: ast.expr, place: Place) -> Value:
        """The value of a node at a place. Raises LessonError."""
        match node:
            case ast.Name(id=name) if name in self.fact.literals:
                literal = self.fact.literals[name]
                position = literal.text.endswith("k") and literal.dimension == TOKEN
                return Value(literal.value, "number", literal.dimension, position)
            case ast.Constant(value=text):
                return Value(text, "symbol")
            case ast.Name(id=name):
                return self._looked_up(node, lambda: self.vocabulary.name(name, place, self.notes))
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                return self._looked_up(node, lambda: self.vocabulary.part(owner, name, place, self.notes))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Value(np.logical_not(self._of_kind("truth", operand, place).data), "truth")
            case ast.UnaryOp(op=sign, operand=operand):
                number = self._of_kind("number", operand, place)
                return replace(number, data=-number.data) if isinstance(sign, ast.USub) else number
            case ast.BoolOp(op=junction, values=parts):
                combine = np.logical_and if isinstance(junction, ast.And) else np.logical_or
                truth: Any = self._of_kind("truth", parts[0], place).data
                for part in parts[1:]:
                    truth = combine(truth, self._of_kind("truth", part, place).data)
                return Value(truth, "truth")
            case ast.BinOp():
                return self._arithmetic(node, place)
            case ast.Compare():
                return self._comparison(node, place)
            case ast.Call():
                return self._call(node, place)
        raise AssertionError(f"{type(node).__name__} passed the check of nodes")

    def _wrong(self, message: str, node: ast.AST, hint: str | None = None) -> LessonError:
        return wrong(message, self.fact.offset(node), hint)

    def _looked_up(self, node: ast.expr, look_up: Callable[[], Value]) -> Value:
        try:
            return look_up()
        except LessonError as error:
            raise self._wrong(error.message, node, error.hint) from None

    def _of_kind(self, kind: str, node: ast.expr, place: Place) -> Value:
        value = self.value(node, place)
        if value.kind != kind:
            shown = self.fact.text_of(node)
            if kind == "number":
                raise self._wrong(f"{shown} is {_KINDS[value.kind]}, not a number", node)
            raise self._wrong(f"{shown} is {_KINDS[value.kind]}: nothing that holds or not", node, "compare it")
        return value

    # operators

    def _arithmetic(self, node: ast.BinOp, place: Place) -> Value:
        left, right = self._of_kind("number", node.left, place), self._of_kind("number", node.right, place)
        if isinstance(node.op, ast.Add | ast.Sub):
            left, right = self._alike(node, left, right)
            dimension = left.dimension
        elif isinstance(node.op, ast.Pow):
            dimension = left.dimension.power(int(right.data)) if left.dimension is not None else None
        elif left.dimension is None and right.dimension is None:
            dimension = None
        else:
            sign = -1 if isinstance(node.op, ast.Div) else 1
            dimension = (left.dimension or ONE).times(right.dimension or ONE, sign)
        # floats throughout: NumPy's integers would wrap where Python's don't
        tops, bottoms = np.asarray(left.data, dtype=float), np.asarray(right.data, dtype=float)
        if isinstance(node.op, ast.Div) and np.any(bottoms == 0):
            raise self._zero(node.right, place)
        if isinstance(node.op, ast.Pow) and right.data < 0 and np.any(tops == 0):
            raise self._zero(node.left, place)
        with np.errstate(over="ignore"):
            data = _ARITHMETIC[type(node.op)](tops, bottoms)
        if not np.all(np.isfinite(data)):
            raise self._wrong(f"{self.fact.text_of(node)} is too large to be a number", node)
        return Value(data, "number", dimension)

    def _zero(self, node: ast.expr, place: Place) -> LessonError:
        if isinstance(node, ast.Name) and node.id in self.fact.literals:
            return self._wrong("division by zero", node)
        where = f" at {place.words()}" if place.shape == (1, 1) else " somewhere on the grid"
        return self._wrong(f"division by zero: {self.fact.text_of(node)} is 0{where}", node)

    def _alike(self, node: ast.expr, left: Value, right: Value) -> tuple[Value, Value]:
        """Both with the dimension that they share; a bare number takes that of a plain quantity beside it."""
        if left.dimension is None and right.dimension is None:
            return left, right
        if left.dimension is None:
            right, left = self._alike(node, right, left)
            return left, right
        if right.dimension is None:
            if left.dimension not in PLAIN:
                hint = "write its unit: 16e9 byte, 5 ms, 3 TB/s"
                raise self._wrong(f"a number without a unit stands beside {left.dimension.name}", node, hint)
            return left, replace(right, dimension=left.dimension)
        if left.dimension.hard != right.dimension.hard:
            what = "added to" if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) else "compared with"
            what = "taken from" if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) else what
            one, other = (right, left) if what != "compared with" else (left, right)
            assert one.dimension is not None
            assert other.dimension is not None
            hint = f"{self.fact.text_of(node)[:60]} mixes the two"
            raise self._wrong(f"{one.dimension.name} can't be {what} {other.dimension.name}", node, hint)
        return left, right

    def _comparison(self, node: ast.Compare, place: Place) -> Value:
        parts = [node.left, *node.comparators]
        values = [self.value(part, place) for part in parts]
        truth: Any = True
        for index, each in enumerate(node.ops):
            pair = (parts[index], values[index], parts[index + 1], values[index + 1])
            truth = np.logical_and(truth, self._pair(node, _SIGNS[type(each)], *pair))
        return Value(truth, "truth")

    def _pair(
        self, node: ast.Compare, sign: str, left_node: ast.expr, left: Value, right_node: ast.expr, right: Value
    ) -> Any:
        if left.kind != right.kind:
            one, two = (
                f"{self.fact.text_of(n)} ({_KINDS[v.kind]})" for n, v in ((left_node, left), (right_node, right))
            )
            raise self._wrong(f"{one} can't be compared with {two}", node)
        if left.kind == "number":
            left, right = self._alike(node, left, right)
            return claims.compare(sign, np.asarray(left.data, dtype=float), np.asarray(right.data, dtype=float))
        if sign not in ("==", "!="):
            raise self._wrong(f"{sign} compares numbers", node, "texts are compared with == and !=")
        for part, other in ((left_node, right_node), (right_node, left_node)):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                known = self.vocabulary.symbols_of(_last_name(other))
                if part.value not in known:
                    hint = did_you_mean(part.value, known)
                    raise self._wrong(f"{self.fact.text_of(other)} is never '{part.value}'", part, hint)
        same = np.equal(left.data, right.data)
        return same if sign == "==" else np.logical_not(same)

    # calls

    def _call(self, node: ast.Call, place: Place) -> Value:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in claims.OVER_THE_GRID:
            return self.sweep.over_the_grid(node, name, place)
        if name == "first":
            seen = len(self.notes.seen)
            value, found = self.sweep.first(node, place)
            subjects = [subject for _, subject in self.notes.seen[seen:] if not subject.control]
            subject = subjects[0] if subjects else Subject(control=self.fact.text_of(node.args[0]))
            self.aim = self.aim or (found, subject)
            return value
        if name in ("min", "max", "abs"):
            return self._extreme(node, name, place)
        shown = self.fact.text_of(node.func)
        if node.args:
            raise self._wrong(f"{shown} takes no value without a name", node.args[0], f"write {shown}(tokens=64)")
        if not node.keywords:
            hint = f"leave them out, or name an axis: {shown}(tokens=64)"
            raise self._wrong(f"the brackets behind {shown} are empty", node, hint)
        settings = [self._setting(word) for word in node.keywords]
        return self.value(node.func, self.vocabulary.moved(place, settings))

    def _setting(self, word: ast.keyword) -> Setting:
        offset, name_offset = self.fact.offset(word.value), self.fact.offset(word)
        match word.value:
            case ast.Name(id=name) if name in self.fact.literals:
                return Setting(str(word.arg), self.fact.literals[name].value, offset, name_offset)
            case ast.Name(id=text) | ast.Constant(value=text):
                return Setting(str(word.arg), str(text), offset, name_offset)
        hint = "write tokens=64, context=8k, gpu=h100"
        raise self._wrong("a point's value is a number or a name", word.value, hint)

    def _extreme(self, node: ast.Call, name: str, place: Place) -> Value:
        if node.keywords or (len(node.args) != 1 if name == "abs" else len(node.args) < 2):
            raise self._wrong(f"{name} takes {'one number' if name == 'abs' else 'two numbers or more'}", node)
        values = [self._of_kind("number", each, place) for each in node.args]
        result = values[0]
        if name == "abs":
            return replace(result, data=np.abs(result.data))
        choose = np.minimum if name == "min" else np.maximum
        for each in values[1:]:
            left, right = self._alike(node, result, each)
            result = replace(left, data=choose(left.data, right.data))
        return result

    def proof(self, holds: bool, base: Place) -> tuple[Proof, str | None]:
        """What was proved; and of a false claim what contradicts it."""
        assert self.fact.tree is not None
        swept = self.sweep.ranges or self.sweep.contradictions
        values = "" if swept else self.sweep.sides(self.fact.tree, base)
        if holds:
            return Proof(values, "; ".join(self.sweep.ranges) or None), None
        return Proof(values), "; ".join(self.sweep.contradictions) or f"{values} at {base.words()}"


def _last_name(node: ast.expr) -> str | None:
    """The name at the end of an expression: 'bound' of gate_proj.bound(tokens=64)."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None
