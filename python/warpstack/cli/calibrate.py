"""``warpstack calibrate``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import warpstack as ws
from warpstack._util.arguments import printable
from warpstack._util.output_file import OutputFile
from warpstack.cli.common.layout import Look
from warpstack.cli.common.messages import say
from warpstack.cli.common.output import add_output, print_table
from warpstack.cli.common.outputs import add_overwrite, output_file

if TYPE_CHECKING:
    from warpstack.calibration import Calibration

SUMMARY = "a GPU's description from measurements on the card"

_LOOK = Look(
    {"difference": "difference (%)"},
    {"difference": lambda value: f"{100 * value:+,.1f}"},
    ("field", "unit", "measured", "base", "how"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "file", nargs="?", help="the output of the program; with --run, where to keep it"
    )
    parser.add_argument(
        "--source",
        action="store_true",
        help="print the program that measures: a CUDA source of one file, or write it to --output",
    )
    parser.add_argument(
        "--run",
        dest="run_here",
        action="store_true",
        help="compile the program with nvcc and run it on this machine's GPU",
    )
    parser.add_argument(
        "--base",
        metavar="GPU",
        help="description (name or file) whose values stand for what is not measured (default: one "
        "with the card's compute capability)",
    )
    parser.add_argument("--name", help="name of the description (default: that of the card)")
    parser.add_argument("--output", "-o", metavar="FILE", help="the YAML file to write")
    add_overwrite(parser)
    add_output(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print the program, or make a description of what it measured."""
    if arguments.source:
        _check_alone(arguments)
        _write_source(arguments)
        return
    if arguments.file is None and not arguments.run_here:
        raise ws.InputError(
            "calibrate: give the output of the program, or --source to print the program, or --run to "
            "run it on this machine's GPU"
        )
    if arguments.output is not None:
        _target(arguments, "output").check()  # said before the work, not after it
    if arguments.run_here:
        found = _run(arguments)
    else:
        found = ws.calibration.calibrate(arguments.file, base=arguments.base, name=arguments.name)
    if arguments.output is not None:
        _target(arguments, "output").check()
        found.save(arguments.output, overwrite=arguments.overwrite)
    table = found.to_frame()
    if not arguments.json and not arguments.csv:
        table = table.drop(columns="how")
    print_table(arguments, table, _LOOK)
    for note in found.notes:
        say("note", note)
    if arguments.output is not None:
        say("note", f"{printable(arguments.output)}: {found.gpu.name}, {_counts(found)}")


def _counts(found: Calibration) -> str:
    measured, every = len(found.measured), len(found.gpu.values())
    return f"{measured} values measured, {every - measured} of {found.base.name}"


def _run(arguments: argparse.Namespace) -> Calibration:
    """Run the program here, keep its output where the arguments say, and read it."""
    from warpstack._util.files import temporary_folder
    from warpstack.calibration.program import run_program

    if arguments.file is not None:
        _target(arguments, "file").check()
    text = run_program()
    with temporary_folder() as folder:
        file = folder / "run.txt"
        if arguments.file is not None:
            file = Path(arguments.file)
            _target(arguments, "file").write(text.encode())
        else:
            file.write_text(text, encoding="utf-8")
        return ws.calibration.calibrate(file, base=arguments.base, name=arguments.name)


def _check_alone(arguments: argparse.Namespace) -> None:
    """Raise `InputError` for what was given beside ``--source`` and has no effect with it."""
    given = {
        "a file": arguments.file is not None,
        "--run": arguments.run_here,
        **{f"--{name}": getattr(arguments, name) for name in ("base", "name", "json", "csv")},
    }
    if vain := [name for name, value in given.items() if value]:
        raise ws.InputError(
            f"calibrate: --source prints the program and measures nothing, so that {', '.join(vain)} would "
            "have no effect; give one or the other"
        )


def _write_source(arguments: argparse.Namespace) -> None:
    from warpstack.calibration.program import program_source

    if arguments.output is None:
        print(program_source(), end="")
        return
    _target(arguments, "output").write(program_source().encode())


def _target(arguments: argparse.Namespace, name: str) -> OutputFile:
    """Return a file to write; what a measurement said is replaced only when that is asked for."""
    label = "calibrate:" if name == "file" else f"--{name}"
    return output_file(arguments, name, label=label, is_ours=None)
