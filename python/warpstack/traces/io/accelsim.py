"""Accel-Sim traces: ``kernelslist.g`` and ``kernel-N.traceg``, as the NVBit tracer writes them.

`read` takes those of every tracer, `write` makes new ones of any trace.
"""

from __future__ import annotations

import contextlib
import json
import lzma
import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from warpstack import _core
from warpstack._util.arguments import printable
from warpstack._util.files import file_digest, is_sound, new_folder, sealed
from warpstack._util.input_file import read_input
from warpstack._util.lazy import pyarrow as pa
from warpstack._util.progress import Progress, progress_bar
from warpstack.errors import InputError, TraceWarning, warn
from warpstack.traces import operations
from warpstack.traces.io import packed, tracez
from warpstack.traces.io.common import LoadOptions, block_ranges
from warpstack.traces.launches import Launches
from warpstack.traces.trace import App, KernelTrace

_COMPRESSIONS = ("", ".xz", ".gz", ".zst")
_KERNEL_FILE = re.compile(r"(?P<stem>.+\.trace)(?P<kind>z|g?(?P<compression>\.xz|\.gz|\.zst)?)")
_KERNEL_NUMBER = re.compile(r"kernel-([0-9]+)")
#: A line of a kernel list has about 30 bytes.
_MAX_LIST_BYTES = 1 << 26
_File = TypeVar("_File")
#: In folders that `write` made: what they were made from, and the digest of each file. The format
#: itself has no place for digests.
MANIFEST = "warpstack-export.json"
_LIST = "kernelslist.g"
#: Columns that become text at a time; text is about five times as long.
_BATCH_BYTES = 1 << 22


def matches(path: Path) -> bool:
    """Whether the path is a kernel list, a kernel, or a folder with either."""
    if path.is_dir():
        return bool(_lists_in(path) or _kernels_in(path))
    return _is_list(path) or _KERNEL_FILE.fullmatch(path.name) is not None


def read(path: Path, options: LoadOptions) -> App:
    """Read a list, a kernel or a folder."""
    if path.is_dir():
        lists = _lists_in(path)
        if len(lists) > 1:
            names = ", ".join(file.name for file in lists)
            raise InputError(f"{path}: several kernel lists ({names}); give one of them")
        name = Path(os.path.realpath(path)).name
        listed = _read_list(lists[0]) if lists else None
        files = _kernels_in(path) if listed is None else listed.files(options)
        if options.kernels is not None and not lists:
            files = _chosen(files, lambda file: file.name, options.kernels, printable(name))
    elif _is_list(path):
        listed = _read_list(path)
        files = listed.files(options)
        name = Path(os.path.realpath(path)).parent.name
    else:
        listed = None
        files = [path]
        name = path.name.split(".trace")[0]
        if options.kernels is not None:
            files = _chosen(files, lambda file: file.name, options.kernels, printable(name))
    name = printable(name)
    _warn_of_changes(path, files)
    total = sum(file.stat().st_size for file in files)
    with progress_bar(options.progress, total, f"reading {name}", "B") as bar:
        notes = _Notes()
        kernels = [KernelTrace(_read_kernel(file, options.budget, bar, notes)) for file in files]
    notes.warn(name)
    columns = None
    if listed is not None:
        columns = listed.operations(files, kernels)
        if listed.passed_over:
            first = listed.passed_over[0]
            _warn(
                f"{name}: {len(listed.passed_over)} lines of the list are neither kernels nor copies nor "
                f"calls of NCCL and are passed over; the first is {first}"
            )
    return options.select(App._recorded(kernels, name, columns))


@dataclass
class _Notes:
    """The skipped parts of the files, reported once for all of them."""

    lines: int = 0
    first: str = ""
    bulk_copies: int = 0

    def add(self, path: Path, reader: _core.AccelSimReader) -> None:
        lines, line, field = reader.unknown_fields
        if lines and not self.lines:
            self.first = f"{field} in {printable(path.name)}:{line}"
        self.lines += lines
        self.bulk_copies += reader.num_bulk_copies

    def warn(self, name: str) -> None:
        if self.lines:
            _warn(
                f"{name}: {self.lines} lines end in fields that warpstack does not know and skips; the "
                f"first is {self.first}"
            )
        if self.bulk_copies:
            _warn(
                f"{name}: {self.bulk_copies} bulk copies (UTMALDG and the like) are instructions without "
                "access; what they move is not counted"
            )


def _warn(message: str) -> None:
    warn(message, TraceWarning)


def _chosen(
    files: list[_File], name_of: Callable[[_File], str], launches: Launches, where: str
) -> list[_File]:
    """Return the files of some launches by the numbers in their names; files without are kept."""
    matches = [_KERNEL_NUMBER.search(name_of(file)) for file in files]
    numbers = [int(match[1]) if match else None for match in matches]
    if None not in numbers:
        launches.check([number for number in numbers if number is not None], where)
    pairs = zip(files, numbers, strict=True)
    return [file for file, number in pairs if number is None or number in launches]


def _is_list(path: Path) -> bool:
    return path.name.startswith("kernelslist")


def _lists_in(folder: Path) -> list[Path]:
    """Return the grouped lists of a folder; the tracer's own lists only when there is none."""
    lists = sorted(f for f in folder.iterdir() if f.is_file() and _is_list(f))
    grouped = [f for f in lists if f.name.endswith(".g")]
    main = [f for f in grouped if f.name == "kernelslist.g"]
    return main or grouped or lists


def _kernels_in(folder: Path) -> list[Path]:
    """Return the kernels of a folder in launch order, one file per kernel."""
    found: dict[str, Path] = {}
    for file in sorted(folder.iterdir()):
        match = _KERNEL_FILE.fullmatch(file.name)
        if not match or not file.is_file():
            continue
        # A grouped trace beside the raw one it was made from is the same kernel.
        if match["stem"] not in found or match["kind"][:1] in ("g", "z"):
            found[match["stem"]] = file

    def order(file: Path) -> tuple[int, str]:
        number = _KERNEL_NUMBER.search(file.name)
        return (int(number[1]) if number else 0, file.name)

    return sorted(found.values(), key=order)


#: A line of a copy, with its address and its bytes: ``MemcpyHtoD,0x00007f2b4d400000,4096``.
_COPY = re.compile(r"Memcpy(HtoD|DtoH|DtoD|HtoH),\s*(?:0x)?[0-9a-fA-F]{1,16},\s*([0-9]{1,18})")
#: A line of a call of NCCL, in traces of several GPUs: ``ncclAllReduce,...``.
_NCCL = re.compile(r"(nccl\w{1,60})\b.*")


class _List:
    """A list of kernels and of what the host did between them."""

    def __init__(self, path: Path, lines: list[str]) -> None:
        self._path = path
        self._lines = lines
        self._file_of: dict[int, Path] = {}
        self.passed_over = [
            f"{printable(line[:60])} in line {number}"
            for number, line in enumerate(lines, start=1)
            if line and not any(kind.fullmatch(line) for kind in (_KERNEL_FILE, _COPY, _NCCL))
        ]

    def files(self, options: LoadOptions) -> list[Path]:
        """Return the chosen kernel files; their compression may have changed since."""
        entries = [
            (number, line)
            for number, line in enumerate(self._lines, start=1)
            if _KERNEL_FILE.fullmatch(line)
        ]
        found = _files_of_entries(self._path, entries, options)
        self._file_of = dict(found)
        return [file for _, file in found]

    def operations(
        self, files: Sequence[Path], kernels: Sequence[KernelTrace]
    ) -> operations.Columns:
        """Return what the host did; those kernels have files of their own that were read."""
        places = iter(range(len(files)))
        place_of = {number: next(places) for number in self._file_of}
        streams = {0: operations.LEGACY_STREAM}
        rows: list[dict[str, object]] = []
        for number, line in enumerate(self._lines, start=1):
            if _KERNEL_FILE.fullmatch(line):
                place = place_of.get(number, -1)
                name, stream = line.split(".trace")[0], 0
                if place >= 0:
                    name = kernels[place].short_name
                    header = kernels[place]._core.header
                    stream = streams.setdefault(header["stream"], len(streams))
                rows.append(
                    {"operation": "kernel", "kernel": place, "name": name, "stream": stream}
                    | {"asynchronous": True, "blocking": True}
                )
            elif copy := _COPY.fullmatch(line):
                rows.append(
                    {"operation": "copy", "name": f"Memcpy{copy[1]}", "direction": copy[1]}
                    | {"bytes": int(copy[2]), "stream": 0, "blocking": True}
                )
            elif nccl := _NCCL.fullmatch(line):
                rows.append({"operation": "nccl", "name": nccl[1], "api": nccl[1]})
        return operations.columns_of(rows)


def _read_list(path: Path) -> _List:
    """Read a list of kernels."""
    where = printable(path)
    try:
        lines = read_input(path, "kernel list", _MAX_LIST_BYTES).decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: cannot read the kernel list: {error}") from None
    return _List(path, [line.strip() for line in lines])


def _files_of_entries(
    path: Path, entries: list[tuple[int, str]], options: LoadOptions
) -> list[tuple[int, Path]]:
    """Return the files of lines that name kernels, with the numbers of the lines."""
    where = printable(path)
    if not entries:
        raise InputError(f"{where}: the list names no kernel (lines like kernel-1.traceg)")
    if options.kernels is not None:
        entries = _chosen(entries, lambda entry: entry[1], options.kernels, where)
    files = []
    missing: list[str] = []
    for number, entry in entries:
        launch = _KERNEL_NUMBER.search(entry)
        match = _KERNEL_FILE.fullmatch(entry)
        assert match is not None
        stem = match["stem"]
        stems = [stem + "g"] if match["kind"][:1] in ("g", "z") else [stem + "g", stem]
        places = [path.parent / entry]
        places += [path.parent / (stem + suffix) for stem in stems for suffix in _COMPRESSIONS]
        places.append(path.parent / (match["stem"] + "z"))
        existing = next((file for file in places if file.exists()), None)
        if existing is not None:
            files.append((number, existing))
            continue
        missing.append(
            f"{where}:{number}: {printable(entry)} is not there (nor .xz, .gz, .zst of it)"
        )
        # Launches that are read only for what they leave in L2 may be missing.
        if not options.skip_missing and (launch is None or options.chooses(int(launch[1]))):
            raise InputError(
                f'{missing[-1]}; restore the file, or pass over it with missing="skip" (--skip-missing)'
            )
    if not files:
        raise InputError(f"{missing[0]}, as all {len(missing)} files of the list")
    if missing:
        _warn(
            f"{missing[0]}, the first of {len(missing)} files that are missing and were passed over"
        )
    return files


def _read_kernel(
    path: Path, budget: _core.StorageBudget, bar: Progress, notes: _Notes
) -> _core.KernelTrace:
    reader = _core.AccelSimReader(printable(path), budget)
    unpacked = tracez.chunks if path.suffix == ".tracez" else packed.chunks
    with packed.errors_named(path), contextlib.closing(unpacked(path, bar)) as chunks:
        for chunk in chunks:
            reader.feed(chunk)
        trace = reader.finish()
    notes.add(path, reader)
    return trace


def _warn_of_changes(path: Path, files: Sequence[Path]) -> None:
    """Warn if files that `write` made have changed: edited ones are welcome, damaged ones are not."""
    whole = path.is_dir() or path.name == _LIST
    folder = path if path.is_dir() else path.parent
    digests: dict[str, str] | None = None
    with contextlib.suppress(ValueError, RecursionError):
        try:
            about = json.loads(read_input(folder / MANIFEST, "list of digests", _MAX_LIST_BYTES))
        except OSError:  # there is none, nearly always
            return
        if isinstance(about, dict) and not {"files", "digest"} & about.keys():
            return  # of a version that kept no digests
        if isinstance(about, dict) and is_sound(about):
            given = about.get("files")
            if isinstance(given, dict) and all(isinstance(d, str) for d in given.values()):
                digests = given
    changed = [MANIFEST] if digests is None else []
    read = {file.name for file in files} | ({_LIST} if whole else set())
    for name, digest in (digests or {}).items():
        match = _KERNEL_FILE.fullmatch(name)
        # Compressed since, perhaps, which cannot be checked, but is done on purpose.
        grouped = match is not None and match["kind"].startswith("g")
        stem = match["stem"] + "g" * grouped if match else ""
        names = [stem + suffix for suffix in _COMPRESSIONS] if match else [name]
        there = (folder / name).exists()
        if (there and name in read and file_digest(folder / name) != digest) or (
            whole and not any((folder / other).exists() for other in names)
        ):
            changed.append(name)
    if changed:
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        warn(
            f"{printable(folder)}: {', '.join(changed[:3])}{more}: not as warpstack wrote it; it was edited "
            f"or is damaged (save the trace again, or delete {MANIFEST} if the change is yours)",
            TraceWarning,
        )


# --- writing ------------------------------------------------------------------------------------


def written_here(path: Path) -> bool:
    """Whether the path is a folder that `write` made."""
    return path.is_dir() and (path / MANIFEST).is_file()


def files_of(path: Path) -> list[str] | None:
    """Return the files that `write` wrote to a folder, by their names in it; None for another folder."""
    if not written_here(path):
        return None
    try:
        about = json.loads(read_input(path / MANIFEST, "list of digests", _MAX_LIST_BYTES))
        names = [*about["files"], MANIFEST]
    except (InputError, OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return names if all(isinstance(name, str) for name in names) else None


def write(
    app: App,
    path: Path,
    *,
    overwrite: bool,
    progress: bool,
    binary_version: int | None,
    compression: str | None,
) -> None:
    """Write an application; see `warpstack.save`."""
    total = sum(kernel.nbytes for kernel in app.kernels)
    suffix = "" if compression is None else f".{compression}"
    numbers = [kernel.launch_id for kernel in app.kernels]
    if len(set(numbers)) < len(numbers):
        numbers = list(range(1, len(numbers) + 1))
    endless = 0
    with (
        new_folder(path, overwrite=overwrite, files_of=files_of) as partial,
        progress_bar(progress, total, f"writing {printable(path.name)}", "B") as bar,
    ):
        names = [f"kernel-{number}.traceg{suffix}" for number in numbers]
        for name, kernel, stream in zip(names, app.kernels, _streams(app), strict=True):
            try:
                endless += _write_kernel(kernel, partial / name, binary_version or 0, stream, bar)
            except InputError as error:
                raise InputError(
                    f"{printable(path)}: kernel {kernel.launch_id} ({kernel.short_name}) cannot be "
                    f"written: {error}"
                ) from None
        (partial / _LIST).write_text("".join(f"{name}\n" for name in names))
        about = {
            "format": "accelsim",
            "name": app.name,
            "kernels": [
                {"file": name, "source": kernel.source, "digest": kernel.digest}
                for name, kernel in zip(names, app.kernels, strict=True)
            ],
            "files": {name: file_digest(partial / name) for name in (*names, _LIST)},
        }
        (partial / MANIFEST).write_text(sealed(about), encoding="utf-8")
    if endless:
        warn(
            f"{printable(path)}: {endless} warps do not end in EXIT; Accel-Sim waits for them forever",
            TraceWarning,
        )


class _Sink(Protocol):
    def write(self, data: bytes, /) -> object: ...


def _streams(app: App) -> list[int | None]:
    """Return the stream of each launch as the program recorded it; None: as its trace says.

    Streams of several processes are apart, but for the default stream, which is 0 in all.
    """
    found: list[int | None] = [None] * len(app.kernels)
    columns = app._operations
    if columns is None:
        return found
    numbers: dict[tuple[int, int], int] = {}
    rows = zip(*(columns[name].tolist() for name in ("kernel", "process", "stream")), strict=True)
    processes = len(set(columns["process"].tolist()))
    for kernel, process, stream in rows:
        if kernel < 0 or stream < 0:
            continue
        if processes > 1 and stream != operations.LEGACY_STREAM:
            stream = numbers.setdefault((process, stream), len(numbers) + 1)
        found[kernel] = stream
    return found


def _write_kernel(
    kernel: KernelTrace, path: Path, binary_version: int, stream: int | None, bar: Progress
) -> int:
    """Write one kernel and return how many of its warps do not end in EXIT."""
    core = kernel._core
    writer = _core.AccelSimWriter(core, binary_version, stream)
    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(max_workers=1))
        # Compression of one piece overlaps with the making of the next.
        file: _Sink
        if path.suffix == ".xz":
            file = stack.enter_context(lzma.open(path, "wb", preset=1))
        elif path.suffix == ".zst":
            raw = stack.enter_context(path.open("wb"))
            file = stack.enter_context(pa.CompressedOutputStream(raw, "zstd"))
        else:
            file = stack.enter_context(path.open("wb"))
        pending = pool.submit(file.write, writer.header())
        done = 0
        for first, last in block_ranges(core, _BATCH_BYTES):
            text = writer.blocks(first, last)
            pending.result()
            pending = pool.submit(file.write, text)
            share = core.bytes * last // core.num_traced_blocks
            bar.update(share - done)
            done = share
        pending.result()
    return writer.warps_without_exit
