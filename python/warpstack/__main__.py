"""``python -m warpstack``, and the command ``warpstack``.

Nothing is imported here before an interrupt is listened to: most of a short command's time is that of
imports, and Ctrl-C in it is one line, too.
"""

import sys


def main() -> int:
    """Run the command line; see `warpstack.cli.main`."""
    try:
        from warpstack.cli import main as run

        return run()
    except KeyboardInterrupt:
        if sys.stderr is not None:
            sys.stderr.write("warpstack: error: interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
