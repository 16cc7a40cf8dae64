"""Opening what users name as input: regular files only, and no larger than their kind may be."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from warpstack._util.arguments import printable
from warpstack.errors import InputError

__all__ = [
    "MAX_SOURCE_BYTES",
    "MAX_TABLE_BYTES",
    "check_regular",
    "kind_of",
    "open_input",
    "read_input",
    "recorded_inputs",
    "was_opened",
]

#: Tables of measurements and predictions, and source text, of which a line takes some hundred bytes.
MAX_TABLE_BYTES = 2**28
MAX_SOURCE_BYTES = 2**28

#: The kinds of files that are not regular ones.
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)
#: Device and number of each file that was opened within `recorded_inputs`; None outside.
_opened: set[tuple[int, int]] | None = None


@contextlib.contextmanager
def recorded_inputs() -> Iterator[None]:
    """Remember which files are opened as input, so that what the same command writes spares them."""
    global _opened
    before, _opened = _opened, set()
    try:
        yield
    finally:
        _opened = before


def was_opened(found: os.stat_result) -> bool:
    """Return whether a file was opened as input within `recorded_inputs`."""
    return _opened is not None and (found.st_dev, found.st_ino) in _opened


def open_input(path: Path) -> BufferedReader:
    """Open a regular file for reading.

    A named pipe without a writer would block for ever and a device may never end, so that both are
    refused, as folders are.

    Raises
    ------
    InputError
        If the path is not a regular file.
    OSError
        If the operating system does not open it.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _check(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def read_input(path: Path, what: str, limit_bytes: int) -> bytes:
    """Return the content of a regular file.

    Parameters
    ----------
    path
        The file.
    what
        What it is, for errors.
    limit_bytes
        How long such a file may be.

    Raises
    ------
    InputError
        If the path is not a regular file or the file is longer.
    OSError
        If the file cannot be read.
    """
    with open_input(path) as file:
        data = b""
        if os.fstat(file.fileno()).st_size <= limit_bytes:
            data = file.read(limit_bytes + 1)
            if len(data) <= limit_bytes:
                return data
    limit = f"{limit_bytes >> 20} MiB"
    raise InputError(f"{printable(path)}: more than {limit}, too long for a {what}")


def kind_of(mode: int) -> str:
    """Return what a file is that is not a regular one."""
    return next((name for holds, name in _KINDS if holds(mode)), "a special file")


def check_regular(path: Path, mode: int) -> None:
    """Raise `InputError` if a file is not a regular one."""
    if not stat.S_ISREG(mode):
        raise InputError(f"{printable(path)}: is {kind_of(mode)}; expected a regular file")


def _check(path: Path, found: os.stat_result) -> None:
    check_regular(path, found.st_mode)
    if _opened is not None:
        _opened.add((found.st_dev, found.st_ino))
