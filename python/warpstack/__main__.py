"""``python -m warpstack``, and the command ``warpstack``.

Nothing is imported here before an interrupt is listened to: most of a short command's time is that of
imports, and Ctrl-C in it is one line, too.
"""

import functools
import signal
import sys
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

        return run()
    except BaseException:
        # A library in C makes another exception of an interrupt while it is imported.
        if not interrupted:
            raise
        if sys.stderr is not None:
            sys.stderr.write("warpstack: error: interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
