"""Progress of long work: a bar on a terminal; elsewhere it is known how far the work is."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Protocol, runtime_checkable

__all__ = ["Progress", "Work", "is_bar_shown", "progress_bar", "say_which", "under_way", "work"]


@runtime_checkable
class Progress(Protocol):
    """The part of a progress bar that long work needs."""

    def update(self, n: float | None = 1, /) -> bool | None:
        """Advance by `n` units."""

    def set_description(self, desc: str | None = None, refresh: bool | None = True) -> None:
        """Say what is being done; without `refresh`, when the bar is drawn next."""


class _Silent:
    """Progress that is not shown."""

    def update(self, n: float | None = 1, /) -> bool | None:
        return None

    def set_description(self, desc: str | None = None, refresh: bool | None = True) -> None:
        pass


class Work:
    """Work without a bar: its text says what is being done and how far it is."""

    def __init__(self, what: str, total: float | None = None) -> None:
        self._what = what
        self._total = total
        self._done = 0.0
        self._begin = time.monotonic()

    def update(self, n: float | None = 1, /) -> bool | None:
        """Advance by `n` units."""
        self._done += n or 0
        return None

    def set_description(self, desc: str | None = None, refresh: bool | None = True) -> None:
        """Say what is being done."""
        self._what = desc or self._what

    def __str__(self) -> str:
        if not self._total or not 0 < self._done < self._total:
            return self._what
        share = self._done / self._total
        left = (time.monotonic() - self._begin) * (1 - share) / share
        return f"{self._what}, {100 * share:.0f} % done, about {max(left, 1):,.0f} s left"


#: Work under way, what is done for other work after it; and how many bars are on the terminal.
_under_way: list[Work] = []
_bars: list[object] = []


def under_way() -> str | None:
    """Return the current task and its progress, or None."""
    works = list(_under_way)
    return str(works[-1]) if works else None


def is_bar_shown() -> bool:
    """Return whether a progress bar is on the terminal."""
    return bool(_bars)


@contextlib.contextmanager
def work(what: str, total: float | None = None) -> Iterator[Work]:
    """Say what is being done, for who asks `under_way`."""
    one = Work(what, total)
    _under_way.append(one)
    try:
        yield one
    finally:
        _under_way.remove(one)


@contextlib.contextmanager
def progress_bar(show: bool, total: float | None, what: str, unit: str) -> Iterator[Progress]:
    """Show a bar on standard error when asked to and when that is a terminal.

    Without a `total` it counts. Where a bar is asked for and there is no terminal, `under_way` says how
    far the work is.
    """
    if not show:
        yield _Silent()
        return
    if sys.stderr is None or not sys.stderr.isatty():
        with work(what, total) as one:
            yield one
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
        _bars.append(bar)
        try:
            yield bar
        finally:
            # By identity: bars are compared by where they stand.
            _bars[:] = [one for one in _bars if one is not bar]


def say_which(bar: Progress, what: str, number: int, of: int) -> None:
    """Say which of several kernels it is, from 1: "simulating kernel 3 of 20"."""
    if of > 1:
        bar.set_description(f"{what} kernel {number} of {of}", refresh=False)
