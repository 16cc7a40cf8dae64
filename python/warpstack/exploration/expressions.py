"""Arithmetic expressions over named values: costs, objectives and constraints that users write.

An expression is parsed by Python and evaluated here, node by node: nothing but the operations listed
in `Expression` can run.
"""

from __future__ import annotations

import ast
import operator
import reprlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack.errors import InputError, not_a, unknown

__all__ = ["Expression"]

#: Longer texts are not expressions that someone wrote.
_MOST_CHARACTERS = 2000
_MOST_DEPTH = 50
#: Characters of an expression that messages show.
_shorten = reprlib.Repr()
_shorten.maxstring = 100

_BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod,
    ast.Pow: np.power,
}
_COMPARE: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_FUNCTIONS: dict[str, tuple[Callable[..., Any], int, int]] = {
    "abs": (np.abs, 1, 1),
    "ceil": (np.ceil, 1, 1),
    "exp": (np.exp, 1, 1),
    "floor": (np.floor, 1, 1),
    "log": (np.log, 1, 1),
    "log2": (np.log2, 1, 1),
    "max": (lambda *values: np.maximum.reduce(np.broadcast_arrays(*values)), 2, 16),
    "min": (lambda *values: np.minimum.reduce(np.broadcast_arrays(*values)), 2, 16),
    "sqrt": (np.sqrt, 1, 1),
}


class Expression:
    """An arithmetic expression, checked and ready to be evaluated on columns.

    Numbers, texts in quotes, names; ``+ - * / // % **``; ``< <= > >= == !=``, chained as in Python;
    ``and or not``; ``abs ceil exp floor log log2 max min sqrt``. Numbers are of double precision. Text
    can be compared for equality only, and truth values are not numbers. Both sides of ``and`` and
    ``or`` are evaluated.

    Parameters
    ----------
    text
        The expression.
    what
        What messages call it, ``cost`` say.

    Attributes
    ----------
    text
        As given.
    names
        Names that it reads, in alphabetical order.

    Raises
    ------
    InputError
        If it is not such an expression; the message says which part.

    Examples
    --------
    >>> from warpstack.exploration.expressions import Expression
    >>> area = Expression("num_sms * (2 + l1_size_kib / 64)")
    >>> area.names
    ['l1_size_kib', 'num_sms']
    >>> area({"num_sms": [28, 56], "l1_size_kib": 64}).tolist()
    [84.0, 168.0]
    """

    def __init__(self, text: str, what: str = "expression") -> None:
        self.text = text
        self._what = what
        if not isinstance(text, str):
            raise not_a(what, "text", text)
        if len(text) > _MOST_CHARACTERS:
            raise InputError(
                f"{what}: {len(text)} characters are too many; at most {_MOST_CHARACTERS}"
            )
        try:
            self._root = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError) as error:
            raise self._wrong(
                f"is not an expression: {getattr(error, 'msg', None) or error}"
            ) from None
        except (RecursionError, MemoryError):
            raise self._wrong("is nested too deeply") from None
        found: set[str] = set()
        self._check(self._root, found, 0)
        self.names = sorted(found)

    def _wrong(self, problem: str) -> InputError:
        return InputError(f"{self._what}: {_shorten.repr(self.text)} {problem}")

    def _check(self, node: ast.AST, names: set[str], depth: int) -> None:
        """Refuse what is not in the language, wherever it stands."""
        if depth > _MOST_DEPTH:
            raise self._wrong("is nested too deeply")
        match node:
            case ast.Constant(value=bool() | None):
                problem = "is not a number"
            case ast.Constant(value=int() | float() | str()):
                if not isinstance(node.value, str) and not _is_finite(node.value):
                    raise self._wrong("has a number that is too large")
                return
            case ast.Name():
                names.add(node.id)
                return
            case ast.BinOp() if type(node.op) in _BINARY:
                parts: list[ast.expr] = [node.left, node.right]
                problem = ""
            case ast.UnaryOp(op=ast.UAdd() | ast.USub() | ast.Not()):
                parts, problem = [node.operand], ""
            case ast.BoolOp():
                parts, problem = node.values, ""
            case ast.Compare() if all(type(op) in _COMPARE for op in node.ops):
                parts, problem = [node.left, *node.comparators], ""
            case ast.Call(func=ast.Name(id=name), keywords=[]) if name in _FUNCTIONS:
                _, fewest, most = _FUNCTIONS[name]
                parts, problem = node.args, ""
                if not fewest <= len(parts) <= most:
                    problem = f"takes {fewest}" + (f" to {most}" if most > fewest else "")
                    problem += " argument" + ("s" if most > 1 else "")
            case ast.Call(func=ast.Name()):
                problem = f"calls no known function; there are {', '.join(_FUNCTIONS)}"
            case _:
                problem = (
                    "is not allowed; there are numbers, names, + - * / // % **, comparisons, "
                    f"and or not, {' '.join(_FUNCTIONS)}"
                )
        if problem:
            raise self._wrong(f"cannot be used: {_shorten.repr(ast.unparse(node))} {problem}")
        for part in parts:
            self._check(part, names, depth + 1)

    def check_names(self, known: Iterable[str]) -> None:
        """Raise `InputError` for the first name that is not among the known ones."""
        known = list(known)
        for name in self.names:
            if name not in known:
                where = f"{self._what}: {_shorten.repr(self.text)}"
                raise unknown("name", name, known, where=where)

    def __call__(self, values: Mapping[str, Any]) -> npt.NDArray[np.float64]:
        """Return the value where it is a number.

        Parameters
        ----------
        values
            Numbers, texts or columns of one length by name.

        Returns
        -------
        ndarray
            One number per row; without columns, of shape (). NaN where an input is.

        Raises
        ------
        InputError
            If a name is missing, a part is of the wrong kind, or a result is not finite although
            its inputs are (a division by zero).
        """
        result: npt.NDArray[np.float64] = self._number(self._root, self._columns(values))
        return result

    def holds(self, values: Mapping[str, Any]) -> npt.NDArray[np.bool_]:
        """Return where the condition holds, for an expression that is true or false."""
        result: npt.NDArray[np.bool_] = self._truth(self._root, self._columns(values))
        return result

    def violation(self, values: Mapping[str, Any]) -> npt.NDArray[np.float64]:
        """Return by how much the condition fails to hold: 0 where it does, above 0 elsewhere.

        A comparison fails by the difference of its sides over the larger of them; ``and`` adds up,
        ``or`` takes the least, anything else fails by 1.
        """
        columns = self._columns(values)
        broken = self._violation(self._root, columns)
        # A strict comparison of equals fails by a difference of 0.
        failed = np.where(broken > 0, broken, 1e-9)
        return np.where(self._truth(self._root, columns), 0.0, failed)

    def _columns(self, values: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
        self.check_names(values)
        columns = {}
        for name in self.names:
            column = np.asarray(values[name])
            if column.dtype.kind in "iuf":
                column = column.astype(np.float64)
            elif column.dtype.kind != "b":
                column = column.astype(object)
                try:
                    texts = all(isinstance(value, str) for value in column.flat)
                    column = column if texts else column.astype(np.float64)
                except (TypeError, ValueError):
                    raise self._wrong(f"names {name}, whose values are of several kinds") from None
            columns[name] = column
        return columns

    def _violation(self, node: ast.AST, columns: dict[str, Any]) -> Any:
        match node:
            case ast.BoolOp(op=ast.And()):
                return sum(self._violation(part, columns) for part in node.values)
            case ast.BoolOp():
                parts = [self._violation(part, columns) for part in node.values]
                return np.minimum.reduce(np.broadcast_arrays(*parts))
            case ast.Compare():
                total: Any = 0.0
                for left, op, right in _pairs(node):
                    pair = ast.Compare(left, [op], [right])
                    failed = ~self._truth(pair, columns)
                    if isinstance(op, (ast.Eq, ast.NotEq)):
                        total = total + failed
                        continue
                    a, b = self._number(left, columns), self._number(right, columns)
                    largest = np.maximum(np.maximum(np.abs(a), np.abs(b)), 1e-300)
                    total = total + np.where(failed, np.abs(a - b) / largest, 0.0)
                return total
        return (~self._truth(node, columns)).astype(np.float64)

    def _number(self, node: ast.AST, columns: dict[str, Any]) -> Any:
        value = self._value(node, columns)
        if value.dtype.kind != "f":
            kind = "true or false" if value.dtype.kind == "b" else "text"
            raise self._wrong(f"needs a number where {ast.unparse(node)} is {kind}")
        return value

    def _truth(self, node: ast.AST, columns: dict[str, Any]) -> Any:
        value = self._value(node, columns)
        if value.dtype.kind != "b":
            raise self._wrong(
                f"needs a comparison where {ast.unparse(node)} is neither true nor false"
            )
        return value

    def _value(self, node: ast.AST, columns: dict[str, Any]) -> Any:
        match node:
            case ast.Constant():
                text = isinstance(node.value, str)
                return np.asarray(node.value, dtype=object if text else np.float64)
            case ast.Name():
                return columns[node.id]
            case ast.UnaryOp(op=ast.Not()):
                return ~self._truth(node.operand, columns)
            case ast.UnaryOp():
                operand = self._number(node.operand, columns)
                return -operand if isinstance(node.op, ast.USub) else operand
            case ast.BoolOp():
                join = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
                parts = [self._truth(part, columns) for part in node.values]
                return join.reduce(np.broadcast_arrays(*parts))
            case ast.Compare():
                return self._comparison(node, columns)
            case ast.BinOp():
                operands = [self._number(part, columns) for part in (node.left, node.right)]
                return self._finite(node, _BINARY[type(node.op)], operands)
            case ast.Call(func=ast.Name(id=name)):
                operands = [self._number(part, columns) for part in node.args]
                return self._finite(node, _FUNCTIONS[name][0], operands)
        raise AssertionError(ast.dump(node))

    def _comparison(self, node: ast.Compare, columns: dict[str, Any]) -> Any:
        result: Any = np.True_
        for left, op, right in _pairs(node):
            if isinstance(op, (ast.Eq, ast.NotEq)):
                a, b = self._value(left, columns), self._value(right, columns)
                if a.dtype.kind != b.dtype.kind:
                    raise self._wrong(
                        f"compares {ast.unparse(left)} and {ast.unparse(right)}, "
                        "which are of different kinds"
                    )
            else:
                a, b = self._number(left, columns), self._number(right, columns)
            result = np.logical_and(result, np.asarray(_COMPARE[type(op)](a, b), dtype=bool))
        return result

    def _finite(self, node: ast.AST, work: Callable[..., Any], operands: list[Any]) -> Any:
        """Return the result of an operation that is finite wherever its operands are."""
        with np.errstate(all="ignore"):
            result = np.asarray(work(*operands))
        usable = np.logical_and.reduce(np.broadcast_arrays(*map(np.isfinite, operands)))
        if np.any(usable & ~np.isfinite(result)):
            first = np.flatnonzero(np.ravel(usable & ~np.isfinite(result)))[0]
            at = ", ".join(
                f"{np.ravel(np.broadcast_to(operand, result.shape))[first]:g}"
                for operand in operands
            )
            raise self._wrong(f"has no finite value: {ast.unparse(node)}, of {at}")
        return result

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"


def _pairs(node: ast.Compare) -> Iterable[tuple[ast.expr, ast.cmpop, ast.expr]]:
    return zip([node.left, *node.comparators], node.ops, node.comparators, strict=False)


def _is_finite(value: Any) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except OverflowError:
        return False
