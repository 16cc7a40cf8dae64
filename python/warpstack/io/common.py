"""What the readers share: options, memory limits, progress."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tqdm import tqdm

from warpstack import _core
from warpstack.errors import InputError

#: Share of the memory that the process may use that trace columns take before they go to a file.
MEMORY_SHARE = 0.25


class Progress(Protocol):
    """The part of a progress bar that the readers need."""

    def update(self, n: float | None = 1, /) -> bool | None:
        """Advance by `n` units."""


@dataclass(frozen=True)
class LoadOptions:
    """How to load: which launches, how much memory, whether to show progress."""

    kernels: frozenset[int] | None
    budget: _core.StorageBudget
    progress: bool

    @classmethod
    def make(
        cls, kernels: Sequence[int] | None, memory_limit_mib: float | None, progress: bool
    ) -> LoadOptions:
        """Check the caller's values and fill in the defaults."""
        if memory_limit_mib is None:
            budget = default_budget()
        elif not 0 <= memory_limit_mib < 2**40:
            raise InputError(f"memory_limit_mib = {memory_limit_mib} is no amount of memory")
        else:
            budget = make_budget(int(memory_limit_mib * 2**20))
        wanted = None if kernels is None else frozenset(int(k) for k in kernels)
        return cls(wanted, budget, progress)

    def wants(self, launch_id: int) -> bool:
        """Whether this launch is to be loaded."""
        return self.kernels is None or launch_id in self.kernels


def make_budget(limit_bytes: int) -> _core.StorageBudget:
    """Return a budget whose overflow goes to the folder for temporary files (``TMPDIR``)."""
    return _core.StorageBudget(limit_bytes, tempfile.gettempdir())


def default_budget() -> _core.StorageBudget:
    """Return a budget of a share of the memory that this process may use."""
    return make_budget(int(usable_memory_bytes() * MEMORY_SHARE))


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


@contextlib.contextmanager
def progress_bar(show: bool, total: float, what: str, unit: str) -> Iterator[Progress]:
    """Show a bar on standard error when asked to and when that is a terminal."""
    with tqdm(
        total=total,
        desc=what,
        unit=unit,
        unit_scale=True,
        disable=not (show and sys.stderr.isatty()),
        file=sys.stderr,
        leave=False,
    ) as bar:
        yield bar
