"""A limit of the time that a call may take."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Any


class TooSlow(BaseException):
    """A call takes longer than it may."""


@contextlib.contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise `TooSlow` where the body takes longer."""

    def too_slow(*_: Any) -> None:
        raise TooSlow(f"took more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, too_slow)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
