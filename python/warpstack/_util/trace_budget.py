"""The memory that trace columns may take before they go to a temporary file."""

from __future__ import annotations

import contextlib
import os
import resource
import tempfile
from pathlib import Path

from warpstack import _core
from warpstack.errors import InputError

#: Memory that the trace columns of one application take by default before they go to a file: long
#: traces leave room for others, and 100 million accesses are simulated within 1 GiB.
DEFAULT_LIMIT_BYTES = 512 * 2**20
#: On a small machine: at most this share of the memory that the process may use.
MEMORY_SHARE = 0.25


def make_budget(limit_bytes: int) -> _core.StorageBudget:
    """Return a budget whose overflow goes to the folder for temporary files (``TMPDIR``)."""
    return _core.StorageBudget(limit_bytes, os.fsencode(tempfile.gettempdir()))


def default_budget() -> _core.StorageBudget:
    """Return the budget of callers that give none: 512 MiB, or less on a small machine."""
    return make_budget(default_limit_bytes())


def default_limit_bytes() -> int:
    """Return the bytes of `default_budget`."""
    return min(DEFAULT_LIMIT_BYTES, int(usable_memory_bytes() * MEMORY_SHARE))


def check_memory(what: str, needed_bytes: int, remedy: str) -> None:
    """Raise `InputError` for something that takes more memory than this process may use."""
    usable = usable_memory_bytes()
    if needed_bytes > usable:
        raise InputError(
            f"{what} takes {size_text(needed_bytes)} of memory; this process may use "
            f"{size_text(usable)}: {remedy}"
        )


def size_text(size_bytes: int) -> str:
    """Return a number of bytes as MiB or GiB."""
    if size_bytes < 2**30:
        return f"{size_bytes / 2**20:,.0f} MiB"
    return f"{size_bytes / 2**30:,.{1 if size_bytes < 10 * 2**30 else 0}f} GiB"


def usable_memory_bytes() -> int:
    """Return how much memory this process may use: the least of machine, control group and limits."""
    bounds = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            bounds.append(int(Path(file).read_text()))
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        soft, _ = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY:
            bounds.append(soft)
    return min(bounds)
