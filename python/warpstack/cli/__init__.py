"""The command line: one module per command, listed in `warpstack.cli.registry`."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Sequence

from warpstack._util.arguments import printable
from warpstack._util.input_file import recorded_inputs
from warpstack.cli.common.messages import say, show_warning
from warpstack.cli.common.quiet import told_when_long
from warpstack.cli.registry import make_parser
from warpstack.errors import (
    DamageWarning,
    InputError,
    TraceWarning,
    UnmatchedWarning,
    UnusedOptionWarning,
)

__all__ = ["main", "make_parser"]

_BLAS_THREADS = "OPENBLAS_NUM_THREADS"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns
    -------
    int
        The exit status: 0, 2 after bad input, 130 after an interrupt.
    """
    for stream in (sys.stdout, sys.stderr):
        # Names of files and kernels may have characters that the terminal's encoding lacks.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    given = sys.argv[1:] if argv is None else list(argv)
    if any(not text.startswith("-") for text in given):
        _load_numpy()
    arguments = make_parser(given).parse_args(given)
    try:
        with warnings.catch_warnings(), told_when_long(), recorded_inputs():
            for category in (DamageWarning, TraceWarning, UnmatchedWarning, UnusedOptionWarning):
                warnings.simplefilter("always", category)
            warnings.showwarning = show_warning
            arguments.run(arguments)
            print(end="", flush=True)  # nothing where there is no standard output
    except InputError as error:
        return _fail(str(error))
    except BrokenPipeError:
        _discard_output()  # the reader has seen enough
    except KeyboardInterrupt:
        say("error", "interrupted")
        return 130
    except OSError as error:
        where = f"{printable(error.filename)}: " if isinstance(error.filename, str) else ""
        return _fail(where + (error.strerror or str(error)))
    except MemoryError:
        return _fail("not enough memory; give a smaller trace or --kernels, or a smaller GPU")
    except (UnicodeError, RecursionError) as error:
        return _fail(f"the input cannot be processed: {error}")
    return 0


def _load_numpy() -> None:
    """Load NumPy, which commands need, without threads of its linear algebra, which they do not.

    Starting them takes a tenth of a second of processor time for each core. Programs that a command runs have
    them as ever.
    """
    if "numpy" in sys.modules or _BLAS_THREADS in os.environ:
        return
    os.environ[_BLAS_THREADS] = "1"
    try:
        import numpy  # noqa: F401
    finally:
        del os.environ[_BLAS_THREADS]


def _fail(message: str) -> int:
    say("error", message)
    try:
        print(end="", flush=True)
    except OSError:
        _discard_output()
    return 2


def _discard_output() -> None:
    """Discard what standard output still holds, so that nothing is printed at exit either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
