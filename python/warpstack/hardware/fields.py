"""Declarations of the fields of a GPU: unit, range, meaning, and the stages that read them.

What other places need to know of a field follows from its declaration: the check of its value, the
table of the documentation, the keys of caches, the fields that a model does not read, and the
dictionaries that the core is given.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import numbers
from typing import Any

from warpstack._util.arguments import printable_text
from warpstack.errors import InputError, not_one_of, shown

__all__ = ["Stage", "checked_value", "choice", "number", "range_text", "several"]


class Stage(enum.Flag):
    """What reads a field of `Gpu`."""

    #: What the caches hold and which blocks are resident, whatever the order of accesses.
    MEMORY = enum.auto()
    #: What the memory stage counts of requests, beyond `MEMORY`.
    REQUESTS = enum.auto()
    #: The memory stage where accesses are in greedy order, beyond `MEMORY`.
    GREEDY = enum.auto()
    #: The memory stage where accesses are in timed order, beyond `MEMORY`.
    TIMED = enum.auto()
    #: The intervals of the representative warp.
    INTERVAL = enum.auto()
    #: The equations of some analytical model; the core says which field which model reads.
    MODEL = enum.auto()
    #: The cycle-level simulation.
    TIMING = enum.auto()
    #: What every model says of the start of thread blocks, and the time that a profiler reports.
    LAUNCH = enum.auto()


#: What values can be by unit where a field has no range of its own: far beyond what anybody builds,
#: and so that sums, products and quotients of them stay finite. "": counts.
_RANGES: dict[str, tuple[float, float]] = {
    "": (0, 2**20),
    "GHz": (1e-3, 1e3),
    "GB/s": (1e-3, 1e9),
    "cycles": (0, 1e6),
    "us": (0, 1e6),
    "ns": (0, 1e6),
    "KiB": (0, 2**36),
    "bytes": (0, 2**20),
}
#: Less than this, and not 0, nothing is that can be 0: cycles, KiB, bytes per cycle.
_LEAST_PART = 1e-6


def number(
    doc: str,
    unit: str = "",
    *,
    stages: Stage,
    core: str | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    or_zero: bool = False,
    default: Any = dataclasses.MISSING,
) -> Any:
    """Return a field for a number of a range.

    Parameters
    ----------
    doc, unit
        What it means, and its unit, one of those that ranges have.
    stages
        The stages that read it.
    core
        The place in the dictionaries for the core, ``group.name`` or a name; by default the field's
        own name, and empty where a stage makes something else of the value. KiB become bytes. The
        dictionary of the models has every field by its own name.
    at_least, at_most
        The range; by default that of the unit.
    or_zero
        Whether the value can be 0, too, which has a meaning of its own.
    default
        What descriptions that leave it out have.
    """
    least, most = _RANGES[unit]
    limits = {
        "at_least": least if at_least is None else at_least,
        "at_most": most if at_most is None else at_most,
        "or_zero": or_zero,
        "choices": None,
    }
    return _field(doc, unit, stages, core, default, **limits)


def choice(
    doc: str,
    *choices: str,
    stages: Stage,
    core: str | None = None,
    default: Any = dataclasses.MISSING,
) -> Any:
    """Return a field for one of several words."""
    return _field(doc, "", stages, core, default, choices=choices)


def several(doc: str, unit: str, *, stages: Stage, core: str | None = None) -> Any:
    """Return a field for several numbers, or none."""
    return _field(doc, unit, stages, core, (), choices=None, several=True)


def _field(
    doc: str, unit: str, stages: Stage, core: str | None, default: Any, **limits: Any
) -> Any:
    metadata = {"doc": doc, "unit": unit, "stages": stages, "core": core, **limits}
    return dataclasses.field(default=default, metadata=metadata)


def short(value: Any) -> str:
    """Return a value as short text; several numbers separated by commas."""
    if isinstance(value, tuple):
        return ",".join(map(short, value))
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def range_text(field: dataclasses.Field[Any]) -> str:
    """Return what the value of a field can be, as text: ``0, or 0.001 to 1000 GHz``."""
    limits = field.metadata
    if limits["choices"] is not None:
        return ", ".join(limits["choices"])
    if limits.get("several"):
        return f"0 to {short(_RANGES['KiB'][1])} {limits['unit']} each"
    unit = f" {limits['unit']}" if limits["unit"] else ""
    zero = "0, or " if limits["or_zero"] else ""
    return f"{zero}{short(limits['at_least'])} to {short(limits['at_most'])}{unit}"


def shown_name(name: str) -> str:
    """Return the name of a GPU for a message: short, and such that any encoding has it."""
    name = printable_text(name)
    return name if len(name) <= 80 else f"{name[:80]}..."


def checked_value(field: dataclasses.Field[Any], value: Any, gpu_name: str) -> Any:
    """Return the value in its field's type, or raise `InputError`."""
    choices = field.metadata["choices"]
    # Most values are right: their messages need not be made, which would take longer than the rest.
    plain = choices is None and not field.metadata.get("several")
    if plain and type(value) is (int if field.type == "int" else float):
        limits = field.metadata
        if max(limits["at_least"], _LEAST_PART) <= value <= limits["at_most"]:
            return value
    elif choices is not None and type(value) is str and value in choices:
        return value
    where = f"GPU {shown_name(gpu_name)}: {field.name} = {shown(value)}"
    if choices is not None:
        if not isinstance(value, str) or value not in choices:
            raise not_one_of(f"GPU {shown_name(gpu_name)}: {field.name}", value, choices)
        return str(value)
    if field.metadata.get("several"):
        return _checked_numbers(value, where)
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise InputError(f"{where} is not a number; the range is {range_text(field)}")
    least, most = field.metadata["at_least"], field.metadata["at_most"]
    span = f"the range is {range_text(field)}"
    try:
        number = float(value)
    except OverflowError:
        raise InputError(f"{where} is too large; {span}") from None
    if not math.isfinite(number):
        raise InputError(f"{where} is not finite; {span}")
    whole = field.type == "int"
    if number == 0 and (least <= 0 or field.metadata["or_zero"]):
        return 0 if whole else 0.0  # a negative zero would be another digest
    if number < least:
        raise InputError(f"{where} is less than {least:g}; {span}")
    if number < _LEAST_PART:
        raise InputError(f"{where} is less than {_LEAST_PART:g} and not 0; {span}")
    if whole and number != int(number):
        raise InputError(f"{where} is not a whole number; {span}")
    if number > most:
        raise InputError(f"{where} is too large; the most is {short(most)}; {span}")
    return int(number) if whole else number


def _checked_numbers(value: Any, where: str) -> tuple[float, ...]:
    """Return the numbers in increasing order, each once, or raise `InputError`."""
    try:
        if isinstance(value, str):
            raise TypeError
        found = sorted({float(number) for number in value})
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{where} is not a list of numbers") from None
    if not all(number == 0 or _LEAST_PART <= number <= _RANGES["KiB"][1] for number in found):
        raise InputError(f"{where} has numbers that are negative, too large or not finite")
    return tuple(abs(number) for number in found)
