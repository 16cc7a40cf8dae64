"""``--plot``: refusing files that cannot be written, and writing the picture."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import warpstack as ws
from warpstack._util.arguments import printable
from warpstack._util.output_file import OutputFile, picture_metadata
from warpstack.cli.common.outputs import add_overwrite, output_file

__all__ = ["add_plot", "check_picture", "save_picture"]


def add_plot(parser: argparse.ArgumentParser, what: str) -> None:
    """Add ``--plot`` and ``--overwrite``.

    Parameters
    ----------
    parser
        That of the command.
    what
        What the picture shows, and the endings of its name, for the help.
    """
    parser.add_argument("--plot", metavar="FILE", help=what)
    add_overwrite(parser)


def check_picture(arguments: argparse.Namespace) -> OutputFile | None:
    """Return the picture that ``--plot`` asks for; refuse one that could not be written."""
    if arguments.plot is None:
        return None
    from matplotlib.backend_bases import FigureCanvasBase

    target = output_file(arguments, "plot")
    supported = FigureCanvasBase.get_supported_filetypes()
    if target.path.suffix.lstrip(".").lower() not in supported:
        raise ws.InputError(
            f"--plot {printable(arguments.plot)}: the file name must end in one of "
            + ", ".join(f".{ending}" for ending in sorted(supported))
        )
    target.check()
    return target


def save_picture(figure: Any, target: OutputFile, what: str) -> None:
    """Write a picture, close it, and say on standard error what was written where."""
    import matplotlib.pyplot as plt

    def draw(place: Path) -> None:
        figure.savefig(place, dpi=150, metadata=picture_metadata(place))

    try:
        target.write(draw)
    finally:
        plt.close("all")
    print(f"\n{what}: {printable(target.path)}", file=sys.stderr)
