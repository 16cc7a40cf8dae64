"""``--plot``: refusing what cannot be written, the look of the picture, and writing it."""

from __future__ import annotations

import argparse
import functools
import sys
from typing import Any

import warpstack as ws
from warpstack._util.arguments import printable
from warpstack._util.choices import STYLES
from warpstack._util.output_file import OutputFile
from warpstack.cli.common.outputs import add_overwrite, output_file

__all__ = ["add_plot", "check_picture", "look_options", "save_picture"]


def add_plot(parser: argparse.ArgumentParser, what: str) -> None:
    """Add ``--plot``, ``--style``, ``--width-inches`` and ``--overwrite``.

    Parameters
    ----------
    parser
        That of the command.
    what
        What the picture shows, and the endings of its name, for the help.
    """
    parser.add_argument("--plot", metavar="FILE", help=what)
    parser.add_argument(
        "--style",
        choices=STYLES,
        help="look of the picture: paper and slides leave most of it to the data (default: notebook)",
    )
    parser.add_argument(
        "--width-inches",
        type=float,
        metavar="W",
        help="width of the picture: 3.3 for a column of a paper, 7 for its page",
    )
    add_overwrite(parser)


def look_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options of functions of pictures that ``--style`` and ``--width-inches`` ask for."""
    given = {"style": arguments.style, "width_inches": arguments.width_inches}
    return {name: value for name, value in given.items() if value is not None}


def check_picture(arguments: argparse.Namespace) -> OutputFile | None:
    """Return the picture that ``--plot`` asks for; refuse one that could not be written."""
    options = look_options(arguments)
    if arguments.plot is None:
        if options:
            option = next(iter(options)).replace("_", "-")
            raise ws.InputError(f"--{option}: there is no picture; give --plot FILE")
        return None
    from matplotlib.backend_bases import FigureCanvasBase

    from warpstack.plot.looks import look_of
    from warpstack.plot.saving import check_kind

    try:
        look_of(arguments.style or "notebook", arguments.width_inches)
    except ws.InputError as error:
        raise ws.InputError(f"--width-inches: {error}") from None

    target = output_file(arguments, "plot")
    supported = FigureCanvasBase.get_supported_filetypes()
    if target.path.suffix.lstrip(".").lower() not in supported:
        raise ws.InputError(
            f"--plot {printable(arguments.plot)}: the file name must end in one of .png, .pdf, .svg"
        )
    try:
        check_kind(target.path)
    except ws.InputError as error:
        raise ws.InputError(f"--plot {error}") from None
    target.check()
    return target


def save_picture(figure: Any, target: OutputFile, what: str) -> None:
    """Write a picture, close it, and say on standard error what was written where."""
    import matplotlib.pyplot as plt

    from warpstack.plot.saving import write_figure

    try:
        target.write(functools.partial(write_figure, figure))
    finally:
        plt.close("all")
    print(f"\n{what}: {printable(target.path)}", file=sys.stderr)
