"""Checks of what callers pass, shared by the modules."""

from __future__ import annotations

import operator
import os
import reprlib
from pathlib import Path

import numpy as np

from warpstack.errors import InputError

__all__ = ["as_integer", "as_path", "printable", "shown", "value_text"]


def as_integer(what: str, value: object, at_least: int, at_most: int) -> int:
    """Return a whole number of Python or NumPy as an `int`.

    Raises
    ------
    InputError
        If it is none (booleans and floats are none) or out of range.
    """
    if isinstance(value, (bool, np.bool_)):
        raise InputError(f"{what} = {value!r} is not a whole number")
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"{what} = {value!r} is not a whole number") from None
    if not at_least <= number <= at_most:
        raise InputError(f"{what} = {shown(number)} is outside {at_least} to {at_most}")
    return number


def as_path(what: str, value: str | os.PathLike[str]) -> Path:
    """Return a path that the operating system can be asked for.

    Raises
    ------
    InputError
        If the value is no path or has characters that no file name has.
    """
    try:
        text = os.fspath(value)
    except TypeError:
        text = None
    if not isinstance(text, str):
        raise InputError(f"{what}: expected a path, got {type(value).__name__}")
    try:
        encoded = os.fsencode(text)
    except UnicodeEncodeError:
        encoded = b"\0"
    if b"\0" in encoded:
        raise InputError(f"{what}: {text!a} is no file name")
    if not text:
        raise InputError(f"{what}: the path is empty")
    return Path(text)


def printable(path: str | os.PathLike[str]) -> str:
    r"""Return a path as text that can be encoded: bytes that are not UTF-8 appear as ``\xff``."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def shown(value: object) -> str:
    """Return a value as short text for a message. Python prints no number of thousands of digits."""
    try:
        return reprlib.repr(value)
    except ValueError:
        return f"a {type(value).__name__} too long to print"


def value_text(value: object) -> str:
    """Return a value of a field as a table has it where it is no number; several in one text."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(value_text, value))
    if isinstance(value, float):
        return f"{value:.12g}"
    try:
        return str(value)
    except ValueError:
        return shown(value)
