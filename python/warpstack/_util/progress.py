"""Progress bars of long work."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Protocol, runtime_checkable

__all__ = ["Progress", "progress_bar"]


@runtime_checkable
class Progress(Protocol):
    """The part of a progress bar that long work needs."""

    def update(self, n: float | None = 1, /) -> bool | None:
        """Advance by `n` units."""

    def set_description(self, desc: str | None = None) -> None:
        """Say what is being done."""


class _Silent:
    """Progress that nobody sees."""

    def update(self, n: float | None = 1, /) -> bool | None:
        return None

    def set_description(self, desc: str | None = None) -> None:
        pass


@contextlib.contextmanager
def progress_bar(show: bool, total: float | None, what: str, unit: str) -> Iterator[Progress]:
    """Show a bar on standard error when asked to and when that is a terminal.

    Without a `total` it counts.
    """
    if not (show and sys.stderr.isatty()):
        yield _Silent()
        return
    from tqdm import tqdm

    with tqdm(
        total=total,
        desc=what,
        unit=unit,
        unit_scale=True,
        file=sys.stderr,
        leave=False,
    ) as bar:
        yield bar
