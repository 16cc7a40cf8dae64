"""The commands, and the parser made of them.

A command is a module of this folder with a ``SUMMARY``, the function ``add_arguments``, which adds the
arguments of the command to its parser, and the function ``run``, which does what they ask for. What
takes long to load is imported in these functions, since every call of the program imports the modules.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from typing import Protocol, cast

from warpstack import __version__
from warpstack.cli.common.parser import CommandParser, ProgramParser

__all__ = ["COMMANDS", "GROUPS", "commands_of", "make_parser"]

#: The commands by the title of their group, in the order of the help. A new command is a name here, and a
#: module of this name.
GROUPS = {
    "answers": (
        "predict",
        "compare",
        "lines",
        "report",
        "roofline",
        "dvfs",
        "caches",
        "simulate",
        "timeline",
    ),
    "traces": (
        "trace",
        "info",
        "convert",
        "workloads",
    ),
    "designs": (
        "gpus",
        "sweep",
        "calibrate",
    ),
    "checks": (
        "validate",
        "figure",
    ),
    "set-up": (
        "completion",
        "manual",
        "cache",
    ),
}
COMMANDS = tuple(name for names in GROUPS.values() for name in names)


class Command(Protocol):
    """The interface of a command's module."""

    #: The command's purpose, in a few words that begin with a small letter.
    SUMMARY: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments of the command."""

    def run(self, arguments: argparse.Namespace) -> None:
        """Do what the arguments ask for.

        Raises
        ------
        InputError
            If something is wrong with them or with what they name; `main` prints it.
        """


def make_parser(given: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """Return the parser of the command line.

    Parameters
    ----------
    given
        The arguments that it will parse: only the command that they name gets its own arguments, for
        which it may have to load much. None: all commands get theirs.
    """
    parser = ProgramParser(
        GROUPS,
        prog="warpstack",
        description="Predict how fast a traced GPU kernel runs on a GPU, and why.",
        epilog="warpstack COMMAND --help shows the arguments of a command.",
    )
    parser.add_argument("--version", action="version", version=f"warpstack {__version__}")
    parsers = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=CommandParser)
    # No option before the command takes a value, so that the command is what comes first.
    named = next((text for text in given or () if not text.startswith("-")), None)
    for name in COMMANDS:
        command = cast(Command, importlib.import_module(f"warpstack.cli.{name}"))
        summary = command.SUMMARY
        own = parsers.add_parser(
            name, help=summary, description=summary[0].upper() + summary[1:] + "."
        )
        own.set_defaults(run=command.run)
        if given is None or name == named:
            command.add_arguments(own)
            own.hide_rare_options()
    return parser


def commands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of the commands by their names."""
    (action,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return dict(action.choices)
