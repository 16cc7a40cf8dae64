"""A line on a terminal where work without a progress bar takes long, so that nobody waits in the dark."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator

from warpstack.cli.common.messages import say

__all__ = ["working_on"]

#: Seconds without a word.
PATIENCE_SECONDS = 5.0


@contextlib.contextmanager
def working_on(what: str) -> Iterator[None]:
    """Say once on standard error what is being done when it takes longer than five seconds.

    Only on a terminal, as progress bars are: what a script collects has errors and warnings alone.
    """
    if not sys.stderr.isatty():
        yield
        return
    timer = threading.Timer(PATIENCE_SECONDS, say, ("note", f"still {what}"))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
