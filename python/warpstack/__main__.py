"""``python -m warpstack``, and the command ``warpstack``.

Nothing is imported here before an interrupt is listened to: most of a short command's time is that of
imports, and Ctrl-C in it is one line, too.
"""

import atexit
import contextlib
import functools
import os
import signal
import sys
import threading
from types import FrameType


def main() -> int:
    """Run the command line; see `warpstack.cli.main`."""
    interrupted = False

    @functools.wraps(signal.default_int_handler)
    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        signal.default_int_handler(number, frame)

    def ignored(what: "sys.UnraisableHookArgs") -> None:
        # Python drops what is raised in callbacks of weak references, which imports have, and in destructors.
        if interrupted and what.exc_type is KeyboardInterrupt:
            signal.setitimer(signal.ITIMER_REAL, 0.001)  # again, once it has left them
        else:
            sys.__unraisablehook__(what)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
        signal.signal(signal.SIGALRM, interrupt)
        sys.unraisablehook = ignored
    try:
        from warpstack.cli import main as run

        status = run()
    except BaseException:
        # A library in C makes another exception of an interrupt while it is imported.
        if not interrupted:
            raise
        if sys.stderr is not None:
            sys.stderr.write("warpstack: error: interrupted\n")
        status = 130
    if interrupted:
        _end_at_once(status)
    return status


def _end_at_once(status: int) -> None:
    """End the process if threads are still in the core, for which Python would wait: minutes perhaps."""
    if not any(thread.name.startswith("warpstack-") for thread in threading.enumerate()):
        return
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
    atexit._run_exitfuncs()  # such as those that remove temporary files
    os._exit(status)


if __name__ == "__main__":
    sys.exit(main())
