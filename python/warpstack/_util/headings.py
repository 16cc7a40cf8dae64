"""Numbers and headings for people: thousands separators, words, and units in brackets."""

from __future__ import annotations

import math
import numbers
from typing import Any

__all__ = ["heading", "number", "unit_of"]

#: Units by how the name of a column ends.
_UNITS = {
    **{"us": "us", "ns": "ns", "s": "s", "ghz": "GHz", "mhz": "MHz", "gbs": "GB/s"},
    **{"bytes": "bytes", "kib": "KiB", "mib": "MiB", "cycles": "cycles", "%": "%"},
    **{"gips": "GIPS", "watts": "W", "percent": "%"},
}
#: Words that are not written as they are in names.
_WORDS = {
    **{word: word.upper() for word in ("l1", "l2", "dram", "ipc", "cpi", "dpki", "gpu", "id")},
    **{word: word.upper() for word in ("mshr", "pc", "mape", "mae", "sm")},
    **{"noc": "NoC", "mshrs": "MSHRs", "sms": "SMs", "gmean": "geometric mean of the"},
    **{"num": "", "op": "operation", "spearman": "Spearman", "pearson": "Pearson"},
}


def heading(name: str, unit: str = "") -> str:
    """Return the heading of a column: ``time_us`` is "time (us)".

    Parameters
    ----------
    name
        The name of the column. One that is not made of small letters, digits and ``_`` is a heading
        already.
    unit
        The unit where the name does not end with it.
    """
    if not name.replace("_", "").replace("%", "").isalnum() or name != name.lower():
        return f"{name} ({unit})" if unit else name
    words = name.split("_")
    if len(words) > 1 and words[-1] in _UNITS:
        ending = _UNITS[words.pop()]
        unit = unit or ending
    text = " ".join(word for word in (_WORDS.get(word, word) for word in words) if word)
    return f"{text} ({unit})" if unit else text


def unit_of(name: str) -> str:
    """Return the unit that the name of a column ends with; empty if it does not."""
    return _UNITS.get(name.rpartition("_")[2], "")


def number(value: Any, digits: int = 6) -> str:
    """Return a number with thousands separators and without an exponent from 0.0001 on.

    Parameters
    ----------
    value
        A whole number, which keeps all its digits, or another one.
    digits
        Significant digits of a number that is not whole; those before the point stay.
    """
    if isinstance(value, numbers.Integral):
        return f"{int(value):,}"
    value = float(value)
    if value != value:
        return "-"
    if math.isinf(value) or 0 < abs(value) < 1e-4:
        return f"{value:.{digits}g}"
    places = max(digits - 1 - math.floor(math.log10(abs(value))), 0) if value else 0
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
