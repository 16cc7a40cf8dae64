"""The values of a GPU: a dataclass made of the core's table, and the check of a value.

``cpp/gpu/fields.inc`` declares the fields; ``tools/gpu-fields`` writes what type checkers know of
them to ``values.pyi``.
"""

from __future__ import annotations

import dataclasses
import numbers
from typing import Any

from warpstack._core import GPU_FIELDS, GpuField
from warpstack._util.arguments import printable_text
from warpstack.errors import InputError, not_one_of, shown
from warpstack.hardware.policies import policy_value

__all__ = ["TYPES", "GpuValues", "checked_value", "short", "shown_name"]

#: Type of the values of a field in Python, by the kind that the core gives it.
TYPES = {"whole": "int", "number": "float", "word": "str", "numbers": "tuple[float, ...]"}

#: Fields whose words may be of the user, too.
_POLICIES = ("l1_replacement", "l2_replacement")

#: Type in which numbers of a kind are as they shall be.
_PLAIN = {"whole": int, "number": float}


def _dataclass_field(field: GpuField) -> Any:
    return dataclasses.field(
        default=dataclasses.MISSING if field.default is None else field.default
    )


GpuValues = dataclasses.make_dataclass(
    "GpuValues",
    [
        ("name", "str"),
        ("description", "str", dataclasses.field(default="")),
        *((field.name, TYPES[field.kind], _dataclass_field(field)) for field in GPU_FIELDS),
    ],
    namespace={
        "__doc__": "The values of a GPU; `Gpu` checks them and adds where they come from.",
        "__module__": __name__,
    },
    frozen=True,
    kw_only=True,
)


def short(value: Any) -> str:
    """Return a value as short text; several numbers separated by commas."""
    if isinstance(value, tuple):
        return ",".join(map(short, value))
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def shown_name(name: str) -> str:
    """Return the name of a GPU for a message: short, and such that any encoding has it."""
    name = printable_text(name)
    return name if len(name) <= 80 else f"{name[:80]}..."


def checked_value(field: GpuField, value: Any, gpu_name: str) -> Any:
    """Return the value in its field's type, or raise `InputError`.

    Here is what Python's values can be beside numbers and words; what a number can be, the core
    says.
    """
    kind = field.kind
    # Most values are right: their messages need not be made, which would take longer than the rest.
    if type(value) is _PLAIN.get(kind) and 0 < value < 2**53 and field.fault_of(value) is None:
        return value
    where = f"GPU {shown_name(gpu_name)}: {field.name}"
    if kind == "word":
        if field.name in _POLICIES:
            return policy_value(where, value, field.choices)
        if not isinstance(value, str) or value not in field.choices:
            raise not_one_of(where, value, field.choices)
        return str(value)
    where = f"{where} = {shown(value)}"
    if kind == "numbers":
        return _checked_numbers(field, value, where)
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise InputError(f"{where} is not a number; the range is {field.range_text}")
    try:
        number = float(value)
    except OverflowError:
        raise InputError(f"{where} is too large; the range is {field.range_text}") from None
    fault = field.fault_of(number)
    if fault is not None:
        raise InputError(where + fault)
    number = number or 0.0  # a negative zero would be another digest
    return int(number) if kind == "whole" else number


def _checked_numbers(field: GpuField, value: Any, where: str) -> tuple[float, ...]:
    """Return the numbers in increasing order, each once, or raise `InputError`."""
    try:
        if isinstance(value, str):
            raise TypeError
        found = sorted({float(number) for number in value})
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{where} is not a list of numbers") from None
    if not all(field.fault_of(number) is None for number in found):
        raise InputError(f"{where} has numbers that are negative, too large or not finite")
    return tuple(abs(number) for number in found)
