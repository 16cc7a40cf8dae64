"""Errors and warnings that users of the package may want to catch."""

from __future__ import annotations

import os
import re
import reprlib
import sys
import warnings
from collections.abc import Iterable

from warpstack._core import InputError

__all__ = ["DamageWarning", "InputError", "TraceWarning", "UnmatchedWarning", "UnusedOptionWarning"]

InputError.__module__ = "warpstack"
InputError.__doc__ = """Input that its author can correct.

A malformed trace, an impossible configuration, an unknown name. The message says which file, line,
field and value, and what to do. A subclass of `ValueError`.
"""


class _Short(reprlib.Repr):
    """Short texts of values, numbers of NumPy like those of Python."""

    def repr1(self, x: object, level: int) -> str:
        numpy = sys.modules.get("numpy")  # until it is loaded, no value is one of its numbers
        return super().repr1(x.item() if numpy and isinstance(x, numpy.generic) else x, level)


_SHORT = _Short()
_SHORT.maxstring = _SHORT.maxother = 120
_PACKAGE = os.path.dirname(__file__) + os.sep
#: More names than this do not help a reader of the message.
_MOST_LISTED = 40


class DamageWarning(UserWarning):
    """A damaged file of the program's own: what it held is computed or written again."""


class TraceWarning(UserWarning):
    """A trace that can be used, but not as fully as it should: unknown opcodes, missing blocks."""


class UnusedOptionWarning(UserWarning):
    """An option that was given and has no effect."""


class UnmatchedWarning(UserWarning):
    """Predictions and references without a counterpart, or of launches with another grid or block."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn of something where the package was called, however many of its functions lie between."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def shown(value: object) -> str:
    """Return a value as short text of one line for a message, without addresses of memory."""
    try:
        text = _SHORT.repr(value)
    except Exception:  # a repr is anyone's code, and numbers may have too many digits for Python
        return f"{with_article(type(value).__name__)} that cannot be printed"
    if " at 0x" in text or "\n" in text or re.match(r"<.*(\.\.\.|>)", text):
        return with_article(type(value).__name__)
    return text if len(text) <= 200 else f"{text[:200]}..."


def with_article(noun: str) -> str:
    """Return a noun with its indefinite article."""
    return f"{'an' if noun[:1] in 'AEIOaeio' else 'a'} {noun}"


def not_a(what: str, expected: str, value: object, remedy: str = "") -> InputError:
    """Return the error of a value of a wrong kind: what it is, what was expected, what came."""
    simple = value is None or isinstance(value, (str, bytes, bool, int, float, complex))
    got = shown(value) if simple else with_article(type(value).__name__)
    return InputError(f"{what}: expected {expected}, got {got}" + (f"; {remedy}" if remedy else ""))


def not_one_of(what: str, value: object, choices: Iterable[object]) -> InputError:
    """Return the error of a value outside a short list of choices."""
    listed = ", ".join(map(str, choices))
    return InputError(f"{what} = {shown(value)} is not one of {listed}")


def unknown(
    what: str,
    name: object,
    known: Iterable[str],
    remedy: str = "",
    where: str = "",
    most_near: int = 1,
) -> InputError:
    """Return the error of a name that is not known, with the nearest one that is, or some of them."""
    import difflib

    names = list(known)
    folded = {known_name.lower(): known_name for known_name in reversed(names)}
    text = name[:200].lower() if isinstance(name, str) else ""
    # The beginning of a name is nearer to it than another name of the same length: h100, h100-pcie.
    begun = [other for other in folded if len(text) > 2 and other.startswith(text)]
    if text in folded:
        begun.append(text)
    if text in folded:  # but for its case
        most_near = 1
    first = begun[-1:] if most_near == 1 else begun[::-1]
    close = difflib.get_close_matches(text, folded, n=most_near)
    near = [folded[match] for match in dict.fromkeys([*first, *close])][:most_near]
    listed = ", ".join(names[:_MOST_LISTED]) + (", ..." if len(names) > _MOST_LISTED else "")
    place = f"{where}: " if where else ""
    parts = [f"{place}there is no {what} {shown(name)}"]
    choice = " or ".join(filter(None, (", ".join(near[:-1]), *near[-1:])))
    parts += [f"did you mean {choice}?"] if near else []
    parts.append(remedy or f"there are {listed or 'none'}")
    return InputError("; ".join(parts))
