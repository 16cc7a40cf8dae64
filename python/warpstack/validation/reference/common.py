"""Shared by the readers of references: lines that know their place, numbers and units."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from warpstack.errors import InputError, shown
from warpstack.traces.names import plain_name

__all__ = [
    "Line",
    "Section",
    "kind_of_unit",
    "number",
    "plain_name",
    "scale_of_unit",
    "whole_number",
]

#: Text that the tools print where there is no value.
_NO_VALUE = {"", "n/a", "nan", "-nan", "no data", "<overflow>", "overflow", "inf", "-"}
_NUMBER = re.compile(
    r"(?P<number>[-+]?(?=\.?[0-9])(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)?(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)"
    r"\s*(?P<unit>[%A-Za-z\u00b5\u03bc][A-Za-z/%]*)?"
)
_DECIMAL_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+(?:[eE][-+]?[0-9]+)?")
#: nvprof gives utilisation as a level: ``Low (2)``.
_LEVEL = re.compile(r"[A-Za-z]+ \(([0-9]+)\)")
_PREFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "K": 3, "M": 6, "G": 9, "T": 12}
_BYTES = ("byte", "bytes", "B")
_SECONDS = ("second", "s", "sec", "seconds", "secs")
#: What people call units in tables of their own, beside the tools' names.
_SPELLED = {"nanoseconds": "ns", "microseconds": "us", "milliseconds": "ms"}
_SPELLED |= {name[:-1]: unit for name, unit in _SPELLED.items()}
_COUNTED = frozenset(
    {"cycle", "cycles", "hz", "Hz", "inst", "instruction", "warp", "thread", "block"}
)
_COUNTED |= {"sector", "request", "register", "op", "flop", "FLOPS", "wavefront", "transaction"}


@dataclass(frozen=True)
class Line:
    """A line of a CSV file."""

    where: str
    number: int
    cells: list[str]

    def error(self, what: str) -> InputError:
        """Return an error that names file and line."""
        # A quoted name of a column can have several lines; a message has one.
        return InputError(f"{self.where}:{self.number}: {' '.join(what.splitlines())}")


@dataclass
class Section:
    """A table in a file: its header and the lines under it."""

    header: list[str]
    lines: list[Line] = field(default_factory=list)

    def rows(self) -> Iterable[tuple[Line, dict[str, str]]]:
        """Yield each line with its cells by column."""
        for line in self.lines:
            yield line, dict(zip(self.header, line.cells, strict=True))


def scale_of_unit(unit: str, binary_bytes: bool = False) -> float | None:
    """Return what a value is multiplied by to be in base units: seconds, bytes, hertz, fractions.

    Parameters
    ----------
    unit
        As the tools write it: ``us``, ``usecond``, ``Kbyte``, ``MB``, ``cycle``, ``%``, ``GB/s``,
        ``cycle/nsecond``, ``register/thread``.
    binary_bytes
        Prefixes of bytes are powers of 1024, as nvprof has it.

    Returns
    -------
    float or None
        None for a unit that is not known.
    """
    unit = _plain_unit(unit)
    if "/" in unit:
        over, _, under = unit.partition("/")
        scales = [scale_of_unit(part, binary_bytes) for part in (over, under)]
        return None if None in scales else scales[0] / scales[1]  # type: ignore[operator]
    if unit in ("", "1", "dimensionless"):
        return 1.0
    if unit == "%":
        return 0.01
    parts = _parts_of_unit(unit)
    if parts is None:
        return None
    base, power = parts
    if base in _BYTES and binary_bytes and power > 0:
        return 1024.0 ** (power // 3)
    return float(10.0**power)


def _parts_of_unit(unit: str) -> tuple[str, int] | None:
    """Return the base of a unit and the power of ten before it, None for one that is not known."""
    for base in (*_BYTES, *_SECONDS, *_COUNTED):
        prefix = unit.removesuffix(base)
        if unit.endswith(base) and prefix in _PREFIXES:
            return base, _PREFIXES[prefix]
    return None


def kind_of_unit(unit: str) -> str:
    """Return what a unit measures: ``time``, ``bytes``, ``cycle``, another name; empty for a number.

    Units of one kind differ by their scale alone.
    """
    unit = _plain_unit(unit)
    if "/" in unit:
        return "/".join(map(kind_of_unit, unit.split("/")))
    base = (_parts_of_unit(unit) or (unit, 0))[0]
    if base in _SECONDS:
        return "time"
    if base in _BYTES:
        return "bytes"
    return "" if base in ("1", "dimensionless") else base.lower().removesuffix("s")


def _plain_unit(unit: str) -> str:
    """Return a unit as the tools spell it."""
    # Two characters that look alike.
    unit = unit.strip().replace("\u00b5", "u").replace("\u03bc", "u")
    return _SPELLED.get(unit.lower(), unit)


def number(
    line: Line,
    column: str,
    text: str,
    unit: str = "",
    *,
    binary_bytes: bool = False,
    keep_unit: bool = False,
) -> float:
    """Return a value in base units; NaN where the tool says that there is none.

    Parameters
    ----------
    line, column
        Where it stands, for messages.
    text
        The cell: with thousands separators, perhaps with a unit of its own.
    unit
        The unit that the table gives for it.
    binary_bytes
        As for `scale_of_unit`.
    keep_unit
        The value in `unit`, where there is one, rather than in base units.

    Raises
    ------
    InputError
        If the cell is not a number, a unit is not known, or the cell has another one than the table.
    """
    text = text.strip()
    if text.lower() in _NO_VALUE:
        return math.nan
    if level := _LEVEL.fullmatch(text):
        return float(level[1])
    match = _NUMBER.fullmatch(text)
    if not match:
        comma = "; write a decimal point" if _DECIMAL_COMMA.fullmatch(text) else ""
        raise line.error(f"{column} = {shown(text)} is not a number{comma}")
    own = match["unit"] or unit
    scale = scale_of_unit(own, binary_bytes)
    if scale is None:
        raise line.error(f"{column} = {shown(text)} has the unknown unit {shown(own)}")
    if match["unit"] and unit:
        of_table = (scale_of_unit(unit, binary_bytes), kind_of_unit(unit))
        if (scale, kind_of_unit(own)) != of_table:
            raise line.error(
                f"{column} = {shown(text)} has another unit than its column, which is in {unit}; "
                f"write the number of {unit} there"
            )
    value = float(match["number"].replace(",", ""))
    return value if keep_unit and unit else value * scale


def whole_number(line: Line, column: str, text: str) -> int:
    """Return a launch number or a number of launches.

    Raises
    ------
    InputError
        If the cell is not such a number.
    """
    value = number(line, column, text)
    if not 0 <= value < 2**53 or not value.is_integer():  # NaN is neither
        raise line.error(f"{column} = {shown(text)} is not a number of launches")
    return int(value)
