"""What the readers share."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from warpstack import _core
from warpstack.arguments import printable
from warpstack.errors import InputError, shown
from warpstack.storage import default_budget, make_budget
from warpstack.trace import App, Launches


@dataclass(frozen=True)
class LoadOptions:
    """How to load: which launches, how much memory, whether to show progress."""

    kernels: Launches | None
    budget: _core.StorageBudget
    progress: bool

    @classmethod
    def make(
        cls,
        kernels: int | Sequence[int | range] | None,
        memory_limit_mib: float | None,
        progress: bool,
    ) -> LoadOptions:
        """Check the caller's values and fill in the defaults."""
        if memory_limit_mib is None:
            budget = default_budget()
        else:
            budget = make_budget(int(_checked_limit(memory_limit_mib) * 2**20))
        return cls(None if kernels is None else Launches.of(kernels), budget, progress)

    def wants(self, launch_id: int) -> bool:
        """Whether this launch is to be loaded."""
        return self.kernels is None or launch_id in self.kernels

    def select(self, app: App) -> App:
        """Return the launches that are to be loaded of those that were read."""
        return app if self.kernels is None else app.select(self.kernels)


def _checked_limit(memory_limit_mib: float) -> float:
    try:
        limit = float(memory_limit_mib)
    except (TypeError, ValueError, OverflowError):
        limit = math.nan
    if not 0 <= limit < 2**40:
        raise InputError(f"memory_limit_mib = {shown(memory_limit_mib)} is no amount of memory")
    return limit


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what the operating system says against reading `path` into an `InputError`."""
    try:
        yield
    except OSError as error:
        where = printable(error.filename or path)
        raise InputError(f"{where}: cannot be read: {error.strerror or error}") from None


@contextlib.contextmanager
def new_folder(
    path: Path, *, overwrite: bool, replaceable: Callable[[Path], bool]
) -> Iterator[Path]:
    """Yield an empty folder that takes the place of `path` when all went well, or leaves no trace.

    With `overwrite`, a folder that is there and that `replaceable` says is ours is deleted last.
    """
    where = printable(path)
    place = Path(os.path.realpath(path))
    partial = place.parent / f".{uuid.uuid4().hex}.partial"
    try:
        if place.exists() and not (overwrite and replaceable(place)):
            remedy = "choose another name" if overwrite else "choose another name or overwrite it"
            raise InputError(f"{where}: exists already; {remedy}")
        partial.mkdir(parents=True)
        yield partial
        _put_in_place(partial, place)
    except OSError as error:
        raise InputError(f"{where}: cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _put_in_place(new: Path, place: Path) -> None:
    """Move a folder to its place. One that is there is deleted last, so that nothing gets lost."""
    old = new.with_suffix(".replaced") if place.exists() else None
    if old is not None:
        place.rename(old)
    try:
        new.rename(place)
    except BaseException:
        if old is not None:
            old.rename(place)
        raise
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def block_ranges(core: _core.KernelTrace, batch_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of a kernel's thread blocks with about `batch_bytes` of columns each."""
    blocks = core.num_traced_blocks
    per_batch = max(int(batch_bytes * blocks / max(core.bytes, 1)), 1)
    for first in range(0, blocks, per_batch):
        yield first, min(first + per_batch, blocks)
