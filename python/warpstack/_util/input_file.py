"""Opening what users name as input: regular files only, and no larger than their kind may be."""

from __future__ import annotations

import os
import stat
from io import BufferedReader
from pathlib import Path

from warpstack._util.arguments import printable
from warpstack.errors import InputError

__all__ = ["MAX_SOURCE_BYTES", "MAX_TABLE_BYTES", "check_input", "open_input", "read_input"]

#: Tables of measurements and predictions, and source text, of which a line takes some hundred bytes.
MAX_TABLE_BYTES = 2**28
MAX_SOURCE_BYTES = 2**28

#: What a file is that is not a regular one.
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


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
        _check_kind(path, os.fstat(descriptor).st_mode)
    except BaseException:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def check_input(path: Path) -> None:
    """Raise `InputError` if the path exists and is not a regular file, for readers in C++."""
    _check_kind(path, path.stat().st_mode)


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


def _check_kind(path: Path, mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    kind = next((name for holds, name in _KINDS if holds(mode)), "a special file")
    raise InputError(f"{printable(path)}: is {kind}; expected a regular file")
