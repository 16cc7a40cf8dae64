"""Equality of results that hold arrays and tables, of which `==` makes arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from warpstack._util.lazy import is_dataframe

__all__ = ["same"]


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal, NaN to NaN, in arrays, tables, mappings and sequences, too."""
    if one is other:
        return True
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        return bool(np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"))
    if type(one) is not type(other):
        return False
    if isinstance(one, Mapping):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if is_dataframe(one):
        return bool(one.equals(other)) and same(one.attrs, other.attrs)
    if dataclasses.is_dataclass(one):
        names = [field.name for field in dataclasses.fields(one) if field.compare]
        return all(same(getattr(one, name), getattr(other, name)) for name in names)
    return bool(one == other) or (one != one and other != other)
