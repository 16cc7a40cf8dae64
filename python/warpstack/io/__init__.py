"""Trace files: one module per format behind one registry."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from warpstack.errors import InputError
from warpstack.io import accelsim, parquet, pptgpu
from warpstack.io.common import LoadOptions
from warpstack.trace import App, warn_of_gaps

__all__ = ["load", "save"]


@dataclass(frozen=True)
class Format:
    """A trace format: how to recognise it and how to read it."""

    name: str
    matches: Callable[[Path], bool]
    read: Callable[[Path, LoadOptions], App]


#: Asked in this order.
FORMATS: Sequence[Format] = (
    Format("parquet", parquet.matches, parquet.read),
    Format("pptgpu", pptgpu.matches, pptgpu.read),
    Format("accelsim", accelsim.matches, accelsim.read),
)


def load(
    path: str | os.PathLike[str],
    *,
    kernels: Sequence[int] | None = None,
    memory_limit_mib: float | None = None,
    progress: bool = False,
) -> App:
    """Load the trace of an application.

    Parameters
    ----------
    path
        An Accel-Sim ``kernelslist.g``, one of its kernels (``.traceg``, ``.trace``; plain, ``.gz``,
        ``.xz`` or ``.zst``), a folder that holds such files, a folder that the PPT-GPU tracer wrote
        (with ``app_config.py``), or a folder that `save` wrote.
    kernels
        Launch numbers to load; all by default. Of an Accel-Sim list, the files of other launches
        are not read.
    memory_limit_mib
        Trace columns beyond this go to an unnamed temporary file. By default a quarter of the
        memory that this process may use.
    progress
        Show a progress bar on standard error.

    Returns
    -------
    App

    Raises
    ------
    InputError
        If the file does not exist, is no trace, is cut or is malformed; nothing of it is kept then.
        The message names file and line.

    Warns
    -----
    TraceWarning
        Once about unknown opcodes, once about thread blocks that were not traced, once about what
        PPT-GPU traces lack.
    """
    place = Path(path)
    if not place.exists():
        raise InputError(f"{place}: no such file or folder")
    options = LoadOptions.make(kernels, memory_limit_mib, progress)
    for candidate in FORMATS:
        if candidate.matches(place):
            app = candidate.read(place, options)
            warn_of_gaps(app.kernels, str(place))
            return app
    what = "folder" if place.is_dir() else "file"
    raise InputError(
        f"{place}: not a trace that warpstack knows; expected a kernelslist.g, a file *.traceg or *.trace "
        f"(also .gz, .xz, .zst), a folder with such files or with app_config.py, or a folder written by "
        "warpstack.save "
        f"(this {what} is none)"
    )


def save(
    app: App, path: str | os.PathLike[str], *, overwrite: bool = False, progress: bool = False
) -> None:
    """Save a trace as a folder of Parquet files, without loss for what the stages read.

    The folder appears complete or not at all.

    Parameters
    ----------
    app
        What to save.
    path
        The folder to write.
    overwrite
        Replace a folder that `save` wrote before.
    progress
        Show a progress bar on standard error.

    Raises
    ------
    InputError
        If the path exists (and is no saved trace to overwrite) or cannot be written.
    """
    parquet.write(app, Path(path), overwrite=overwrite, progress=progress)
