"""Trace files: one module per format behind one registry."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from warpstack._util.arguments import as_integer, as_path, printable
from warpstack._util.checked import checked, strictly_checked
from warpstack._util.files import check_folder, found_at, wait_until_there
from warpstack._util.foreign_file import foreign
from warpstack._util.input_file import open_input
from warpstack.errors import InputError, not_a, not_one_of, shown
from warpstack.traces.io import accelsim, mem_trace, parquet, pptgpu
from warpstack.traces.io.common import LoadOptions, reading
from warpstack.traces.trace import App, KernelTrace, warn_of_gaps

__all__ = ["load", "register", "save", "unregister"]


@dataclass(frozen=True)
class Format:
    """A trace format: how to recognise it, how to read it, and how to write it if that is possible."""

    name: str
    matches: Callable[[Path], bool]
    read: Callable[[Path, LoadOptions], App]
    write: Callable[..., None] | None = None
    #: The files that `write` made of a folder, by their paths in it; None for another folder.
    files_of: Callable[[Path], Collection[str] | None] | None = None
    #: Options of `save` that `write` takes.
    options: frozenset[str] = frozenset()


#: Formats in the order in which they are asked.
FORMATS: Sequence[Format] = (
    Format("parquet", parquet.matches, parquet.read, parquet.write, parquet.files_of),
    Format("pptgpu", pptgpu.matches, pptgpu.read),
    Format("mem_trace", mem_trace.matches, mem_trace.read),
    Format(
        "accelsim",
        accelsim.matches,
        accelsim.read,
        accelsim.write,
        accelsim.files_of,
        frozenset({"binary_version", "compression"}),
    ),
)
#: Formats that `save` writes, the default first.
WRITABLE = tuple(format_.name for format_ in FORMATS if format_.write is not None)


#: Formats that `register` added, asked before those above.
_registered: dict[str, Format] = {}


def check_target(path: Path, name: str, *, overwrite: bool, inputs: Iterable[Path] = ()) -> None:
    """Refuse a folder that `save` would not write, or that is read meanwhile.

    Parameters
    ----------
    path
        The folder.
    name
        The format.
    overwrite
        Whether a trace that is there may be replaced.
    inputs
        What is read while the folder is written.

    Raises
    ------
    InputError
        If it may not be written.
    """
    files_of = next(format_.files_of for format_ in FORMATS if format_.name == name)
    assert files_of is not None
    check_folder(
        path,
        overwrite=overwrite,
        files_of=files_of,
        inputs=inputs,
        remedy="give --overwrite",
    )


@strictly_checked
def register(name: str, matches: Callable[[Path], bool], read: Callable[[Path], App]) -> None:
    """Add a reader of trace files, which `load` of this process then knows.

    Parameters
    ----------
    name
        Name of the format.
    matches
        Function that says whether a path, which exists, is of the format. It is asked before the
        formats of the package.
    read
        Function that reads the path. What is wrong with it should be an `InputError` that names
        file and line.

    Raises
    ------
    InputError
        If the name is taken, or one of the two is not a function.
    """
    if not name.isidentifier():
        raise InputError(
            f"register: name = {shown(name)} is not a name for a format; give one word"
        )
    if name in _registered or name in [format_.name for format_ in FORMATS]:
        raise InputError(f"register: there is a format {name} already")

    def select(path: Path, options: LoadOptions) -> App:
        return options.select(read(path))

    _registered[name] = Format(name, matches, select)


@checked
def unregister(name: str) -> None:
    """Remove a format that `register` added.

    Raises
    ------
    InputError
        If it did not add one of this name.
    """
    if name not in _registered:
        raise InputError(f"unregister: no format {shown(name)} was registered")
    del _registered[name]


@checked
def load(
    path: str | os.PathLike[str],
    *,
    kernels: int | Sequence[int | range] | None = None,
    memory_limit_mib: float | None = None,
    missing: str = "error",
    progress: bool = False,
) -> App:
    """Load the trace of an application.

    Parameters
    ----------
    path
        An Accel-Sim ``kernelslist.g``, one of its kernels (``.traceg``, ``.trace``; plain, ``.gz``,
        ``.xz`` or ``.zst``; ``.tracez``), a folder that holds such files, a folder that the PPT-GPU
        tracer wrote (with ``app_config.py``), a log of NVBit's ``mem_trace``, which has memory
        instructions only, or a folder that `save` wrote.
    kernels
        Launch numbers to load: one, a range, or a sequence of both; all by default. Of an Accel-Sim
        list, the files of other launches are not read.
    memory_limit_mib
        Trace columns beyond this go to an unnamed temporary file. By default 512 MiB, or a
        quarter of the memory that this process may use if that is less. A thread block (of a raw
        trace: the kernel) that takes more than this, and more than 64 MiB, is an error.
    missing
        ``error``: a chosen file that an Accel-Sim list names must be there. ``skip``: pass over
        those that are not, with a warning.
    progress
        Show a progress bar on standard error.

    Returns
    -------
    App

    Raises
    ------
    InputError
        If the file does not exist, is not a trace, is cut or is malformed; nothing of it is kept then.
        The message names file and line.

    Warns
    -----
    TraceWarning
        Once each about unknown opcodes, thread blocks and warps that were not traced, files passed
        over, fields and bulk copies of Accel-Sim traces that are skipped, and what PPT-GPU traces
        lack.
    """
    place = as_path("load", path)
    options = LoadOptions.make(kernels, memory_limit_mib, progress, missing)
    with reading(place):
        candidates = (*_registered.values(), *FORMATS)
        candidate = found_at(
            place, lambda: next((format_ for format_ in candidates if format_.matches(place)), None)
        )
        if candidate is None and not wait_until_there(place):
            raise InputError(f"{printable(place)}: no such file or folder")
        is_ours = candidate is not None and candidate.name not in ("accelsim", "pptgpu")
        if not is_ours and place.is_file() and (known := _foreign(place)):
            raise InputError(f"{printable(place)}: {known}")
        if candidate is not None:
            app = candidate.read(place, options)
            if candidate.name != "mem_trace":  # which has warned that it lacks more
                warn_of_gaps(app.kernels, printable(place))
            return app
        what = "folder" if place.is_dir() else "file"
    raise InputError(
        f"{printable(place)}: not a trace that warpstack knows; expected a kernelslist.g, a file "
        "*.traceg, *.trace (also .gz, .xz, .zst) or *.tracez, a log of NVBit's mem_trace, a folder with "
        f"such files or with app_config.py, or a folder written by warpstack.save, got another {what}"
    )


def _foreign(path: Path) -> str:
    """Return what a file of another tool is and what to do instead; empty for a trace."""
    with open_input(path) as file:
        head = file.read(1 << 16)
    if path.suffix in (".gz", ".xz", ".zst"):
        return ""  # traces may be packed
    known = foreign(path.name, head)
    return f"{known[0]}; {known[1]}" if known else ""


@checked
def save(
    app: App | KernelTrace,
    path: str | os.PathLike[str],
    *,
    format: str = "parquet",
    binary_version: int | None = None,
    compression: str | None = None,
    overwrite: bool = False,
    progress: bool = False,
) -> None:
    """Save a trace as a folder, without loss for what the stages read.

    The folder appears complete or not at all. One that it replaces is deleted last.

    Parameters
    ----------
    app
        What to save: an application, or one kernel.
    path
        The folder to write.
    format
        ``parquet``, quick to load; or ``accelsim``: ``kernelslist.g`` and ``kernel-N.traceg``, for
        the trace-driven mode of Accel-Sim. Its list has the kernels alone, without the rest of
        `App.operations`.
    binary_version
        For ``accelsim``: the version of the machine code that the files state, such as 75, 80, 86 or
        90. It decides how PTX operations are named; SASS names stay. By default the trace's own, or
        80.
    compression
        For ``accelsim``: ``zst``, quick to write and to load; ``xz``, which Accel-Sim unpacks itself;
        or None for plain text.
    overwrite
        Replace a folder that `save` wrote before in the same format.
    progress
        Show a progress bar on standard error.

    Raises
    ------
    InputError
        If there is no kernel to save, an option is not one of the format, the path exists (and is
        not a saved trace to overwrite) or cannot be written, or ``accelsim`` has no name for an
        instruction.

    Warns
    -----
    TraceWarning
        If Accel-Sim would wait forever for warps that do not end in EXIT.
    """
    if isinstance(app, KernelTrace):
        app = App([app], app.short_name)
    if not isinstance(app, App):
        raise not_a("save", "an App or a KernelTrace", app)
    if not app.kernels and (app._operations is None or format != "parquet"):
        raise InputError(f"save: {app.name} has no kernels")
    if format not in WRITABLE:
        raise not_one_of("save: format", format, WRITABLE)
    chosen = next(candidate for candidate in FORMATS if candidate.name == format)
    options: dict[str, object] = {"binary_version": binary_version, "compression": compression}
    for name, value in options.items():
        if value is not None and name not in chosen.options:
            raise InputError(
                f"save: {name} = {shown(value)} is not an option of the format {format}"
            )
    if binary_version is not None:
        as_integer("binary_version", binary_version, 10, 255)
    if compression not in (None, "zst", "xz"):
        raise not_one_of("save: compression", compression, ("zst", "xz"))
    taken = {name: options[name] for name in chosen.options}
    assert chosen.write is not None
    chosen.write(app, as_path("save", path), overwrite=overwrite, progress=progress, **taken)
