"""A status line for commands that take long without output."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from warpstack._util.progress import is_bar_shown, under_way
from warpstack.cli.common.messages import say

__all__ = ["told_when_long"]

#: Seconds without a word.
PATIENCE_SECONDS = 5.0


@contextlib.contextmanager
def told_when_long() -> Iterator[None]:
    """Say once on standard error what is being done when it takes longer than five seconds.

    It does so on a terminal where no progress bar says it, and in a file or pipe, too: the log of a job
    that does not say a word looks like that of one that hangs.
    """
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(PATIENCE_SECONDS):
            if not is_bar_shown():
                say("note", f"still {under_way() or 'at work'}")
                return

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        ended.set()
