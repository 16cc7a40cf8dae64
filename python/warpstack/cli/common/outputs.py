"""Files that commands write: ``--overwrite``, and what a command reads and must not replace."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

from warpstack._util.arguments import as_path, printable
from warpstack._util.output_file import OutputFile, existing, is_marked
from warpstack.errors import InputError

__all__ = ["add_overwrite", "check_trace_events", "check_trace_folder", "inputs_of", "output_file"]


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    """Add ``--overwrite``."""
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace files that are there and that warpstack did not make",
    )


def inputs_of(arguments: argparse.Namespace, *outputs: str) -> tuple[Path, ...]:
    """Return the files and folders that arguments name, but for those to write.

    Parameters
    ----------
    arguments
        Those of the command.
    outputs
        Names of the arguments that say what to write.
    """
    return existing(value for name, value in vars(arguments).items() if name not in outputs)


def output_file(
    arguments: argparse.Namespace,
    name: str = "output",
    *,
    path: str | Path | None = None,
    label: str | None = None,
    inputs: Iterable[Path] = (),
    is_ours: Callable[[Path], bool] | None = is_marked,
) -> OutputFile:
    """Return the file that an argument asks for, and what it may replace.

    Parameters
    ----------
    arguments
        Those of the command, with ``overwrite``.
    name
        The name of the argument that says what to write.
    path, label
        The file, and what errors call it, where the argument is not both.
    inputs
        What the command reads beside what its arguments name.
    is_ours
        Whether a file that is there is one that a command may replace anyhow; None: none is.
    """
    label = f"--{name}" if label is None else label
    target = as_path(label, getattr(arguments, name) if path is None else path)
    given = (*inputs_of(arguments, name), *inputs)
    return OutputFile(target, label, arguments.overwrite, given, is_ours)


def check_trace_events(file: OutputFile) -> None:
    """Refuse a file of the Trace Event Format whose name says something else; devices have any name."""
    is_device = file.path.exists() and not file.path.is_file()
    if not is_device and not file.path.name.endswith((".json", ".json.gz")):
        raise InputError(
            f"{file.label} {printable(file.path)}: the file is JSON; give it a name that ends in .json or "
            ".json.gz"
        )


def check_trace_folder(arguments: argparse.Namespace, kind: str = "parquet") -> None:
    """Refuse a trace folder that may not be written, before any work is done.

    Parameters
    ----------
    arguments
        Those of the command, with ``output`` and ``overwrite``.
    kind
        Format of the trace.
    """
    from warpstack.traces.io import check_target

    check_target(
        as_path("--output", arguments.output),
        kind,
        overwrite=arguments.overwrite,
        inputs=inputs_of(arguments, "output"),
    )
