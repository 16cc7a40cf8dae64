"""Checks of what callers pass beyond its type, which `checked` reads from annotations."""

from __future__ import annotations

import operator
import os
from pathlib import Path

from warpstack._util.lazy import numpy as np
from warpstack.errors import InputError, not_a, shown

__all__ = [
    "as_integer",
    "as_path",
    "block_sample",
    "printable",
    "printable_text",
    "thread_count",
    "value_text",
]


#: No system takes a longer one.
_LONGEST_PATH = 4096


def as_integer(what: str, value: object, at_least: int, at_most: int) -> int:
    """Return a whole number of Python or NumPy as an `int`.

    Raises
    ------
    InputError
        If it is not one (booleans and floats are not) or out of range.
    """
    if isinstance(value, (bool, np.bool_)):
        raise InputError(f"{what} = {shown(value)} is not a whole number")
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"{what} = {shown(value)} is not a whole number") from None
    if not at_least <= number <= at_most:
        raise InputError(f"{what} = {shown(number)} is outside {at_least} to {at_most}")
    return number


def thread_count(workers: object, at_most: int) -> int:
    """Return the number of threads that a caller asks for; 0: as many as the machine runs at once.

    Raises
    ------
    InputError
        If it is neither None nor a number from 1 on.
    """
    return 0 if workers is None else as_integer("workers", workers, 1, at_most)


def block_sample(sample_blocks: object) -> int:
    """Return one in how many thread blocks of a launch a caller records; 0 for "auto".

    Raises
    ------
    InputError
        If it is neither "auto" nor a number from 1 on.
    """
    if isinstance(sample_blocks, str):
        if sample_blocks != "auto":
            raise InputError(
                f"sample_blocks = {shown(sample_blocks)} is neither a whole number from 1 on nor 'auto'"
            )
        return 0
    return as_integer("sample_blocks", sample_blocks, 1, 2**63 - 1)


def as_path(what: str, value: str | os.PathLike[str]) -> Path:
    """Return a path that the operating system can be asked for.

    Raises
    ------
    InputError
        If the value is not a path or has characters that no file name has.
    """
    try:
        text = os.fspath(value)
    except TypeError:
        text = None
    if not isinstance(text, str):
        raise not_a(what, "a path", value)
    if len(text) > _LONGEST_PATH:
        raise InputError(f"{what}: {shown(text)} has {len(text)} characters, too many for a path")
    try:
        encoded = os.fsencode(text)
    except UnicodeEncodeError:
        encoded = b"\0"
    if b"\0" in encoded:
        raise InputError(f"{what}: {text[:80]!a} is not a file name")
    if not text:
        raise InputError(f"{what}: the path is empty")
    return Path(text)


def printable(path: str | os.PathLike[str]) -> str:
    r"""Return a path as text of one line that can be encoded: other bytes appear as ``\xff``."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return text.replace("\n", "\\n").replace("\r", "\\r")


def printable_text(text: str) -> str:
    r"""Return text that any encoding of Unicode can hold: other parts appear as ``\udc80``."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def value_text(value: object) -> str:
    """Return a value of a field as the text of a table's cell; several values become one text."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(value_text, value))
    if isinstance(value, float):
        return f"{value:.12g}"
    try:
        return str(value)
    except ValueError:
        return shown(value)
