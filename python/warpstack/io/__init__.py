"""Trace files: one module per format behind one registry."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from warpstack.arguments import as_path, printable
from warpstack.errors import InputError
from warpstack.io import accelsim, parquet, pptgpu
from warpstack.io.common import LoadOptions, reading
from warpstack.trace import App, KernelTrace, warn_of_gaps

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
    kernels: int | Sequence[int | range] | None = None,
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
        Launch numbers to load: one, a range, or a sequence of both; all by default. Of an Accel-Sim
        list, the files of other launches are not read.
    memory_limit_mib
        Trace columns beyond this go to an unnamed temporary file. By default 512 MiB, or a
        quarter of the memory that this process may use if that is less.
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
        Once each about unknown opcodes, thread blocks and warps that were not traced, and what
        PPT-GPU traces lack.
    """
    place = as_path("load", path)
    options = LoadOptions.make(kernels, memory_limit_mib, progress)
    with reading(place):
        if not place.exists():
            raise InputError(f"{printable(place)}: no such file or folder")
        candidate = next((format_ for format_ in FORMATS if format_.matches(place)), None)
        if candidate is not None:
            app = candidate.read(place, options)
            warn_of_gaps(app.kernels, printable(place))
            return app
        what = "folder" if place.is_dir() else "file"
    raise InputError(
        f"{printable(place)}: not a trace that warpstack knows; expected a kernelslist.g, a file "
        "*.traceg or *.trace (also .gz, .xz, .zst), a folder with such files or with app_config.py, or "
        f"a folder written by warpstack.save (this {what} is none)"
    )


def save(
    app: App | KernelTrace,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    progress: bool = False,
) -> None:
    """Save a trace as a folder of Parquet files, without loss for what the stages read.

    The folder appears complete or not at all. One that it replaces is deleted last.

    Parameters
    ----------
    app
        What to save: an application, or one kernel.
    path
        The folder to write.
    overwrite
        Replace a folder that `save` wrote before.
    progress
        Show a progress bar on standard error.

    Raises
    ------
    InputError
        If there is no kernel to save, or the path exists (and is no saved trace to overwrite) or
        cannot be written.
    """
    if isinstance(app, KernelTrace):
        app = App([app], app.short_name)
    if not isinstance(app, App):
        raise InputError(f"save: expected an App or a KernelTrace, got {type(app).__name__}")
    if not app.kernels:
        raise InputError(f"save: {app.name} has no kernels")
    parquet.write(app, as_path("save", path), overwrite=overwrite, progress=progress)
