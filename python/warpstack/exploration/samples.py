"""Samples of a design space: lists of points for `warpstack.sweep`."""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from warpstack._util.arguments import as_integer
from warpstack._util.checked import checked
from warpstack.errors import InputError, shown
from warpstack.hardware.description import check_value_fields, is_number, is_whole

__all__ = ["Samples", "latin_hypercube", "random", "saltelli", "sobol"]

_MOST_POINTS = 2**24

#: What `ranges` give for a field: (low, high), (low, high, "log") or a list of choices.
Range = tuple[float, float] | tuple[float, float, str] | Sequence[Any]


class Samples(Sequence[dict[str, Any]]):
    """Points of a design space with the ranges they were drawn from.

    Made by `latin_hypercube`, `sobol`, `random` and `saltelli`.

    Attributes
    ----------
    ranges
        What each field was drawn from, by field name.
    method
        ``latin_hypercube``, ``sobol``, ``random`` or ``saltelli``.
    seed
        Seed of the generator.
    base
        Base samples: for ``saltelli`` the n of its n (d + 2) points, else the number of points.
    """

    @checked
    def __init__(
        self,
        points: Sequence[Mapping[str, Any]],
        ranges: Mapping[str, Range],
        method: str,
        seed: int,
        base: int,
    ) -> None:
        self._points = tuple(dict(point) for point in points)
        self.ranges = dict(ranges)
        self.method = method
        self.seed = seed
        self.base = base

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[dict[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | Sequence[dict[str, Any]]:
        if isinstance(index, slice):
            return [dict(point) for point in self._points[index]]
        return dict(self._points[index])

    def __len__(self) -> int:
        return len(self._points)

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same points, drawn in the same way."""
        if not isinstance(other, Samples):
            return NotImplemented
        return self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((self.method, self.seed, len(self)))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(point) for point in self._points)

    def __repr__(self) -> str:
        fields = ", ".join(self.ranges)
        return f"<Samples: {len(self)} points of {fields} ({self.method}, seed {self.seed})>"


@checked
def latin_hypercube(ranges: Mapping[str, Range], n: int, *, seed: int = 0) -> Samples:
    """Draw a Latin hypercube: each of `n` equal parts of every range holds one point.

    Parameters
    ----------
    ranges
        By field of `Gpu`: ``(low, high)``, ``(low, high, "log")`` for equal ratios instead of equal
        differences, or a list of choices. All whole numbers of a range are equally likely (in
        equal ratios those near each other).
    n
        Number of points.
    seed
        Seed of the generator; the same seed gives the same points.

    Returns
    -------
    Samples

    Raises
    ------
    InputError
        If a field does not exist or a range is not valid.

    Examples
    --------
    >>> import warpstack as ws
    >>> space = {"num_sms": (16, 80), "l1_mshrs": [32, 64]}
    >>> points = ws.exploration.samples.latin_hypercube(space, 4, seed=1)
    >>> sorted(point["l1_mshrs"] for point in points)
    [32, 32, 64, 64]
    """
    axes = axes_of_ranges(ranges)
    n = as_integer("n", n, 1, _MOST_POINTS)
    seed = _seed(seed)
    from scipy.stats import qmc

    unit = qmc.LatinHypercube(len(axes), seed=np.random.default_rng(seed)).random(n)
    return Samples(_points(axes, unit), ranges, "latin_hypercube", seed, n)


@checked
def sobol(ranges: Mapping[str, Range], n: int, *, seed: int = 0) -> Samples:
    """Draw points of a scrambled Sobol sequence, which fill a space more evenly than random ones.

    Parameters
    ----------
    ranges, seed
        As for `latin_hypercube`.
    n
        Number of points; the sequence is balanced when this is a power of two.

    Returns
    -------
    Samples

    Raises
    ------
    InputError
        If a field does not exist or a range is not valid.
    """
    axes = axes_of_ranges(ranges)
    n = as_integer("n", n, 1, _MOST_POINTS)
    seed = _seed(seed)
    return Samples(_points(axes, _sobol(len(axes), n, seed)), ranges, "sobol", seed, n)


@checked
def random(ranges: Mapping[str, Range], n: int, *, seed: int = 0) -> Samples:
    """Draw points independently and uniformly.

    Parameters
    ----------
    ranges, n, seed
        As for `latin_hypercube`.

    Returns
    -------
    Samples

    Raises
    ------
    InputError
        If a field does not exist or a range is not valid.
    """
    axes = axes_of_ranges(ranges)
    n = as_integer("n", n, 1, _MOST_POINTS)
    seed = _seed(seed)
    unit = np.random.default_rng(seed).random((n, len(axes)))
    return Samples(_points(axes, unit), ranges, "random", seed, n)


@checked
def saltelli(ranges: Mapping[str, Range], n: int, *, seed: int = 0) -> Samples:
    """Draw the points that first- and total-order Sobol indices are computed from.

    Two independent samples A and B of `n` points, and for each of the d fields one that is A with
    that field's values from B (Saltelli et al., "Variance based sensitivity analysis of model
    output", Computer Physics Communications 2010, Section 3): n (d + 2) points, in the order A, B,
    A with field 1 of B, A with field 2 of B, and so on in the order of `ranges`.

    Parameters
    ----------
    ranges, seed
        As for `latin_hypercube`.
    n
        Number of points of A; a power of two is best.

    Returns
    -------
    Samples

    Raises
    ------
    InputError
        If a field does not exist or a range is not valid.
    """
    axes = axes_of_ranges(ranges)
    n = as_integer("n", n, 1, _MOST_POINTS // (len(axes) + 2))
    seed = _seed(seed)
    both = _sobol(2 * len(axes), n, seed)
    first, second = both[:, : len(axes)], both[:, len(axes) :]
    parts = [first, second]
    for column in range(len(axes)):
        mixed = first.copy()
        mixed[:, column] = second[:, column]
        parts.append(mixed)
    return Samples(_points(axes, np.concatenate(parts)), ranges, "saltelli", seed, n)


class _Axis:
    """Turns numbers from 0 to 1 into values of a field."""

    def __init__(self, field: str, given: Any) -> None:
        where = f"ranges: {field} = {shown(given)}"
        self.field = field
        self._whole = is_whole(field)
        self._choices: list[Any] = []
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise InputError(
                f"{where}: expected (low, high), (low, high, 'log') or a list of choices"
            )
        if not isinstance(given, tuple):
            # A list would be no key of the points that are known.
            self._choices = [tuple(one) if isinstance(one, list) else one for one in given]
            if not self._choices:
                raise InputError(f"{where}: the list of choices is empty")
            for one in self._choices:
                if not isinstance(one, Hashable):
                    raise InputError(f"{where}: {type(one).__name__} is not a value of a field")
            return
        logarithmic = len(given) == 3 and given[2] == "log"
        if not (len(given) == 2 or logarithmic):
            raise InputError(
                f"{where}: expected (low, high), (low, high, 'log') or a list of choices"
            )
        if not is_number(field):
            raise InputError(f"{where}: {field} is not a number; give a list of choices")
        for bound in given[:2]:
            if not isinstance(bound, numbers.Real) or isinstance(bound, bool):
                raise InputError(f"{where}: {shown(bound)} is not a number")
            # The bound is compared as it is: float() of a larger whole number is an error.
            if isinstance(bound, int) and abs(bound) > sys.float_info.max:
                raise InputError(f"{where}: expected finite numbers, the lower one first")
        self._low, self._high = float(given[0]), float(given[1])
        if not (math.isfinite(self._low) and math.isfinite(self._high) and self._low <= self._high):
            raise InputError(f"{where}: expected finite numbers, the lower one first")
        if logarithmic and self._low <= 0:
            raise InputError(f"{where}: a logarithmic range starts above 0")
        if self._whole and math.ceil(self._low) > math.floor(self._high):
            raise InputError(f"{where}: there is no whole number in the range")
        self._logarithmic = logarithmic
        # Whole numbers are those below what is drawn: each has as long a piece of the range.
        self._start, self._end = self._low, self._high
        if self._whole:
            self._start, self._end = math.ceil(self._low), math.floor(self._high) + 1

    def values(self, unit: npt.NDArray[np.float64]) -> list[Any]:
        """Return a value for each number."""
        if self._choices:
            count = len(self._choices)
            return [self._choices[min(int(u * count), count - 1)] for u in unit]
        start, end = float(self._start), float(self._end)
        scale = self._logarithmic
        numbers_drawn = start * (end / start) ** unit if scale else start + (end - start) * unit
        # Values stay within the bounds, which roundings and the number 1 could cross.
        if self._whole:
            most = self._end - 1
            return [int(value) for value in np.clip(np.floor(numbers_drawn), start, most)]
        return [float(value) for value in np.clip(numbers_drawn, start, end)]

    @property
    def count(self) -> float:
        """How many values there are; infinite for a range without steps."""
        if self._choices:
            return len(self._choices)
        if self._whole:
            return math.floor(self._high) - math.ceil(self._low) + 1
        return 1 if self._low == self._high else math.inf

    def every_value(self) -> list[Any]:
        """Return all values, of which there must be finitely many."""
        if self._choices:
            return self._choices
        if self._whole:
            return list(range(math.ceil(self._low), math.floor(self._high) + 1))
        return [self._low]

    def unit_of(self, value: Any) -> float | None:
        """Return a number from 0 to 1 that stands for a value; None for what is not in the range."""
        if self._choices:
            if value not in self._choices:
                return None
            return (self._choices.index(value) + 0.5) / len(self._choices)
        if not self._low <= value <= self._high:
            return None
        if self._start == self._end:
            return 0.5
        middle = value + 0.5 if self._whole else value
        if self._logarithmic:
            return math.log(middle / self._start) / math.log(self._end / self._start)
        return float((middle - self._start) / (self._end - self._start))


def axes_of_ranges(ranges: Mapping[str, Range]) -> list[_Axis]:
    """Return what turns numbers from 0 to 1 into values, for each field.

    Raises
    ------
    InputError
        If a field does not exist or a range is not valid.
    """
    if not isinstance(ranges, Mapping) or not ranges:
        raise InputError("ranges: expected a mapping of fields to ranges, with at least one field")
    check_value_fields(ranges, "ranges")
    return [_Axis(field, given) for field, given in ranges.items()]


def _seed(seed: int) -> int:
    return as_integer("seed", seed, 0, 2**64 - 1)


def _sobol(dimensions: int, n: int, seed: int) -> npt.NDArray[np.float64]:
    from scipy.stats import qmc

    engine = qmc.Sobol(dimensions, seed=np.random.default_rng(seed))
    # The next power of two is drawn and cut: the engine warns about other numbers.
    drawn: npt.NDArray[np.float64] = engine.random_base2(max(n - 1, 0).bit_length())[:n]
    return drawn


def _points(axes: Sequence[_Axis], unit: npt.NDArray[np.float64]) -> list[dict[str, Any]]:
    columns = [axis.values(unit[:, i]) for i, axis in enumerate(axes)]
    fields = [axis.field for axis in axes]
    return [dict(zip(fields, values, strict=True)) for values in zip(*columns, strict=True)]
