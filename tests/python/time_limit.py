"""A limit of the processor time that a call may take."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Any

#: How much longer a busy machine may take, or a call that only waits.
_WAITING = 20


class TooSlow(BaseException):
    """A call takes longer than it may."""


@contextlib.contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise `TooSlow` where the body takes more processor time, or twenty times as long."""

    def too_slow(*_: Any) -> None:
        raise TooSlow(f"took more than {seconds} seconds")

    timers = {
        signal.SIGPROF: (signal.ITIMER_PROF, seconds),
        signal.SIGALRM: (signal.ITIMER_REAL, _WAITING * seconds),
    }
    before = {number: signal.signal(number, too_slow) for number in timers}
    try:
        for timer, limit in timers.values():
            signal.setitimer(timer, limit)
        yield
    finally:
        for number, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])
