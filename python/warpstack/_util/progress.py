"""Progress of long work: a bar on a terminal or in a notebook; elsewhere it is known how far the work is."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

__all__ = [
    "Progress",
    "Silent",
    "Work",
    "is_bar_shown",
    "progress_bar",
    "say_which",
    "under_way",
    "work",
]


@runtime_checkable
class Progress(Protocol):
    """The part of a progress bar that long work needs."""

    def update(self, n: float | None = 1, /) -> bool | None:
        """Advance by `n` units."""

    def set_description(self, desc: str | None = None, refresh: bool | None = True) -> None:
        """Say what is being done; without `refresh`, when the bar is drawn next."""


class Silent:
    """Progress that is not shown."""

    def update(self, n: float | None = 1, /) -> bool | None:
        """Do nothing."""
        return None

    def set_description(self, desc: str | None = None, refresh: bool | None = True) -> None:
        """Do nothing."""


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


#: Work under way, what is done for other work after it; and the bars that are shown.
_under_way: list[Work] = []
_bars: list[object] = []


def under_way() -> str | None:
    """Return the current task and its progress, or None."""
    works = list(_under_way)
    return str(works[-1]) if works else None


def is_bar_shown() -> bool:
    """Return whether a progress bar is on the terminal or in a notebook."""
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
    """Show a bar when asked to, on a terminal's standard error or in a notebook.

    In a notebook it is a widget where ipywidgets is installed, and else a line of text. It is gone when
    the work ends, fails or is interrupted. Without a `total` it counts. Where a bar is asked for and there
    is neither, `under_way` says how far the work is.
    """
    if not show:
        yield Silent()
        return
    notebook = _in_notebook()
    if not notebook and (sys.stderr is None or not sys.stderr.isatty()):
        with work(what, total) as one:
            yield one
        return
    bar: Any = None
    try:
        bar = _new_bar(total, what, unit, notebook)
        _bars.append(bar)
        yield bar
    finally:
        # By identity: bars are compared by where they stand.
        _bars[:] = [one for one in _bars if one is not bar]
        if bar is not None:
            _close(bar)


def _in_notebook() -> bool:
    """Return whether this is the kernel of a notebook, whose standard error is no terminal."""
    # Whoever runs in a kernel has loaded it; others need not.
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


def _new_bar(total: float | None, what: str, unit: str, notebook: bool) -> Any:
    how: dict[str, Any] = {"total": total, "desc": what, "unit": unit, "unit_scale": True}
    if notebook and _has_widgets():
        from tqdm.notebook import tqdm as notebook_bar

        return notebook_bar(**how, leave=False)
    from tqdm import tqdm

    return tqdm(**how, file=sys.stderr, leave=False)


def _has_widgets() -> bool:
    try:
        import ipywidgets  # noqa: F401
    except ImportError:
        return False
    return True


def _close(bar: Any) -> None:
    """Take a bar away, however far it came."""
    bar.close()
    # tqdm lets the widget of work that ended early stand in red: its error says so already.
    container = getattr(bar, "container", None)
    if container is not None:
        for widget in (*container.children, container):
            for part in (widget, widget.layout, getattr(widget, "style", None)):
                if part is not None:
                    part.close()


def say_which(bar: Progress, what: str, number: int, of: int) -> None:
    """Say which of several kernels it is, from 1: "simulating kernel 3 of 20"."""
    if of > 1:
        bar.set_description(f"{what} kernel {number} of {of}", refresh=False)
