"""Coalescing by index expression (Hong and Kim, ISCA 2009, Algorithms 1 and 2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Union

from warpstack._util.checked import checked, checked_fields
from warpstack.errors import InputError, shown

__all__ = ["Expression", "Transactions", "is_coalesced", "symbols", "transactions"]

#: The thread of a row, which both algorithms step along.
THREAD = "tx"
HALF_WARP = 16
_Monomial = tuple[str, ...]
_Term = Union["Expression", int, Fraction]


class Expression:
    """A polynomial with rational coefficients over named integers, such as ``16 * ty + tx``.

    Made by `symbols`, and by adding, subtracting and multiplying. A name that starts with ``?``
    stands for a value that differs between threads in an unknown way.
    """

    @checked
    def __init__(self, terms: Mapping[_Monomial, Fraction | int] | None = None) -> None:
        self.terms = {m: Fraction(c) for m, c in (terms or {}).items() if c}

    @classmethod
    @checked
    def of(cls, value: _Term) -> Expression:
        """Return the value as an expression.

        Raises
        ------
        InputError
            If it is neither an expression nor a whole number.
        """
        if isinstance(value, Expression):
            return value
        if isinstance(value, bool) or not isinstance(value, (int, Fraction)):
            raise InputError(f"{shown(value)} is neither an index expression nor a whole number")
        return cls({(): value})

    def __add__(self, other: _Term) -> Expression:
        terms = dict(self.terms)
        for monomial, coefficient in Expression.of(other).terms.items():
            terms[monomial] = terms.get(monomial, Fraction(0)) + coefficient
        return Expression(terms)

    def __mul__(self, other: _Term) -> Expression:
        terms: dict[_Monomial, Fraction] = {}
        for left, a in self.terms.items():
            for right, b in Expression.of(other).terms.items():
                monomial = tuple(sorted(left + right))
                terms[monomial] = terms.get(monomial, Fraction(0)) + a * b
        return Expression(terms)

    def __neg__(self) -> Expression:
        return self * -1

    def __sub__(self, other: _Term) -> Expression:
        return self + -Expression.of(other)

    def __rsub__(self, other: _Term) -> Expression:
        return Expression.of(other) - self

    __radd__ = __add__
    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (Expression, int, Fraction)):
            return self.terms == Expression.of(other).terms
        return NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    @property
    def names(self) -> set[str]:
        """The names in it."""
        return {name for monomial in self.terms for name in monomial}

    @property
    def constant(self) -> Fraction | None:
        """Its value, where it has no names."""
        return None if self.names else self.terms.get((), Fraction(0))

    @property
    def differs_by_thread(self) -> bool:
        """Whether threads may see different values of it."""
        return any(name in (THREAD, "ty", "tz") or name.startswith("?") for name in self.names)

    @checked
    def substitute(self, values: Mapping[str, _Term]) -> Expression:
        """Put values in the place of names."""
        result = Expression()
        for monomial, coefficient in self.terms.items():
            product = Expression({(): coefficient})
            for name in monomial:
                product = product * (
                    Expression.of(values[name]) if name in values else Expression({(name,): 1})
                )
            result = result + product
        return result

    def step(self) -> Expression:
        """Return its increase from one thread to the next, d/d(tx) in the paper."""
        return self.substitute({THREAD: Expression({(THREAD,): 1}) + 1}) - self

    def __repr__(self) -> str:
        def text(monomial: _Monomial, coefficient: Fraction) -> str:
            if not monomial:
                return str(coefficient)
            product = "*".join(monomial)
            return product if coefficient == 1 else f"{coefficient}*{product}"

        return " + ".join(text(*term) for term in sorted(self.terms.items())) or "0"


@checked
def symbols(names: str) -> Any:
    """Return an expression per name, or one alone: ``tx, ty, a = symbols("tx ty a")``.

    ``tx``, ``ty`` and ``tz`` are the thread in its block; others are the same for its threads.

    Raises
    ------
    InputError
        If there is no name.
    """
    found = [Expression({(name,): 1}) for name in names.replace(",", " ").split()]
    if not found:
        raise InputError("symbols: no name given")
    return found[0] if len(found) == 1 else tuple(found)


def _starts_are_aligned(index: Expression) -> bool:
    """Whether the index of the first thread of every half-warp is divisible by 16.

    The other names stand for any whole numbers, so that every coefficient must be.
    """
    return all(
        not any(name.startswith("?") for name in monomial)
        and (coefficient * HALF_WARP ** monomial.count(THREAD) / HALF_WARP).denominator == 1
        for monomial, coefficient in index.terms.items()
    )


@checked
def is_coalesced(index: _Term, size: int) -> bool:
    """Tell whether a warp's accesses are coalesced below compute capability 1.3 (Algorithm 1).

    Parameters
    ----------
    index
        Index of the array element that a thread accesses, in elements; the array starts at a
        multiple of 16 of them.
    size
        Bytes of an element.

    Returns
    -------
    bool
        Whether the element has 4, 8 or 16 bytes (step 1), the index grows by one from thread to
        thread (step 2), and that of each half-warp's first thread is divisible by 16, whatever the
        values of the other names (step 3).

    Examples
    --------
    >>> from warpstack.models.mwp_cwp import is_coalesced, symbols
    >>> tx, ty, a, width = symbols("tx ty a width")
    >>> is_coalesced(16 * a + 32 * ty + tx, 4), is_coalesced(a + width * ty + tx, 4)
    (True, False)
    """
    index = Expression.of(index)
    return size in (4, 8, 16) and index.step() == 1 and _starts_are_aligned(index)


@dataclass(frozen=True)
class Transactions:
    """Memory transactions of a half-warp: how many, and of how many bytes."""

    count: int
    size_bytes: int

    def __post_init__(self) -> None:
        checked_fields(self)

    @property
    def is_coalesced(self) -> bool:
        """Whether one transaction covers all of it (footnote 8)."""
        return self.count == 1


@checked
def transactions(index: _Term, size: int) -> Transactions:
    """Count memory transactions from compute capability 1.3 on (Algorithm 2).

    Parameters
    ----------
    index, size
        As for `is_coalesced`.

    Returns
    -------
    Transactions
        One for an index of a half-warp's first thread that may not be divisible by 16 (step 2), and
        those that the increment from thread to thread spreads the half-warp over (steps 3, 4). An
        increment that is not a known number gives a thread a transaction each, and so do more than 16.
        Where all threads access one element there is one transaction.

    Raises
    ------
    InputError
        If the size is not 1, 2, 4, 8 or 16 bytes.
    """
    index = Expression.of(index)
    result_size = {1: 32, 2: 64, 4: 128, 8: 128, 16: 128}.get(size)
    if result_size is None:
        raise InputError(f"size = {shown(size)} is not 1, 2, 4, 8 or 16 bytes")
    increment = index.step().constant
    unknown = any(name.startswith("?") for name in index.names)
    if increment is None or unknown:
        return Transactions(HALF_WARP, result_size)
    if increment == 0:
        return Transactions(1, result_size)
    count = 0 if _starts_are_aligned(index) else 1
    count += math.ceil(abs(increment) * HALF_WARP * size / result_size)
    return Transactions(min(count, HALF_WARP), result_size)
