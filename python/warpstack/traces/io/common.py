"""Shared by the readers."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from warpstack import _core
from warpstack._util.arguments import printable
from warpstack._util.trace_budget import default_budget, make_budget
from warpstack.errors import InputError, not_one_of, shown
from warpstack.traces.launches import Launches
from warpstack.traces.trace import App


@dataclass(frozen=True)
class LoadOptions:
    """Options of loading: the launches, the memory limit, and whether to show progress."""

    kernels: Launches | None
    budget: _core.StorageBudget
    progress: bool
    #: Whether files that a list names but that are not there are passed over.
    skip_missing: bool = False

    @classmethod
    def make(
        cls,
        kernels: int | Sequence[int | range] | None,
        memory_limit_mib: float | None,
        progress: bool,
        missing: str = "error",
    ) -> LoadOptions:
        """Check the caller's values and fill in the defaults."""
        if missing not in ("error", "skip"):
            raise not_one_of("missing", missing, ("error", "skip"))
        if memory_limit_mib is None:
            budget = default_budget()
        else:
            budget = make_budget(int(_checked_limit(memory_limit_mib) * 2**20))
        launches = None if kernels is None else Launches.of(kernels)
        return cls(launches, budget, progress, missing == "skip")

    def wants(self, launch_id: int) -> bool:
        """Whether this launch is to be loaded."""
        return self.kernels is None or launch_id in self.kernels

    def chooses(self, launch_id: int) -> bool:
        """Whether this launch is chosen itself, and not read only because a later one is."""
        return self.kernels is None or self.kernels.is_chosen(launch_id)

    def select(self, app: App) -> App:
        """Return the launches that are to be loaded of those that were read."""
        if self.kernels is None:
            return app
        if self.skip_missing:  # those that are missing were told
            return app._part([i for i, k in enumerate(app) if k.launch_id in self.kernels])
        return app.select(self.kernels)


def _checked_limit(memory_limit_mib: float) -> float:
    try:
        limit = float(memory_limit_mib)
    except (TypeError, ValueError, OverflowError):
        limit = math.nan
    if not 0 <= limit < 2**40:
        raise InputError(f"memory_limit_mib = {shown(memory_limit_mib)} is not an amount of memory")
    return limit


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what the operating system says against reading `path` into an `InputError`."""
    try:
        yield
    except OSError as error:
        where = printable(error.filename or path)
        raise InputError(f"{where}: cannot be read: {error.strerror or error}") from None


def block_ranges(core: _core.KernelTrace, batch_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of a kernel's thread blocks with about `batch_bytes` of columns each."""
    blocks = core.num_traced_blocks
    per_batch = max(int(batch_bytes * blocks / max(core.bytes, 1)), 1)
    for first in range(0, blocks, per_batch):
        yield first, min(first + per_batch, blocks)
