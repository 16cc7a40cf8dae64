"""Traces as folders of Parquet files: quick to load, readable by other tools."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack import _core
from warpstack._util.arguments import as_integer, printable, printable_text
from warpstack._util.files import (
    digest_of,
    file_digest,
    is_sound,
    new_folder,
    sealed,
    wait_until_there,
)
from warpstack._util.input_file import MAX_TABLE_BYTES, open_input, read_input
from warpstack._util.lazy import pyarrow as pa
from warpstack._util.lazy import pyarrow_parquet as pq
from warpstack._util.progress import progress_bar
from warpstack.errors import InputError, shown, with_article
from warpstack.traces import operations
from warpstack.traces.io.common import LoadOptions
from warpstack.traces.trace import App, KernelTrace

MANIFEST = "warpstack-trace.json"
FORMAT_NAME = "warpstack-trace"
#: Version 11 may have what libraries compute in the operations of the host, which version 9 may have.
#: Version 8 may have files of source and inlined calls.
#: Version 7 has steps of sectors, and equal files of kernels once. Version 6 has equal blocks once.
#: Version 5 may have passes over the banks of L1. Version 4 has the lanes of atomics. Version 3 may have
#: control fields. Version 2 has digests of its files and of the manifest. Version 1 has the digest of
#: what the stages read only.
FORMAT_VERSION = 11
_READ_VERSIONS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
#: How often a trace may be replaced while it is read.
_MOST_REPLACEMENTS = 8
#: Aimed at per row group, so that reading and writing need little memory.
_BATCH_BYTES = 1 << 24
#: A file of fewer bytes is not compressed: that would take longer than all the rest, and files take
#: whole blocks of a disk.
_LEAST_COMPRESSED_BYTES = 1 << 14

#: Of zstd. Higher ones take much longer for irregular kernels.
_LEVEL = 3

_LIST = "list of uint16"
_ROWS = "list of int64"
#: What the host of the program did.
_OPERATIONS_NAME = "operations.parquet"
_OPERATIONS = {
    name: {"text": "string", "integer": "int64", "bool": "bool", "rows": _ROWS}[kind]
    for name, kind in operations.COLUMNS.items()
}
#: Columns of each file of a kernel, with their types in Arrow. Row group i of every file holds the
#: same thread blocks.
_FILES = {
    "warps": {
        "block": "uint64",
        "warp": "uint32",
        "instructions": "uint32",
        "memory": "uint32",
        "sectors": "uint32",
        "stores": "uint32",
    },
    "instructions": {"instruction": "uint32", "active_mask": "uint32"},
    "memory": {"memory_static": "uint32", "memory_count": "uint16"},
    "sectors": {"step": "int64"},
    "stores": {"store_bytes": "uint32"},
}
#: The column of `sectors` before version 7.
_SECTORS = {"sector": "uint64"}
#: Further columns of `stores` of kernels with atomics.
_LANES = {"sector_lanes": "uint8", "word_lanes": "uint8"}
#: Further columns of `memory` of kernels with passes other than their sectors imply.
_PASSES = {"l1_passes": "uint8"}
#: Further files of kernels with thread blocks that have the columns of an earlier one. `repeat` is
#: their linear index, `like` counts the distinct blocks, and `shifts` how many entries of `shift`
#: are theirs: how far the sectors of each row lie from those of the distinct block, less the same
#: of the row group's last such block.
_REPEATS = {
    "repeats": {"repeat": "uint64", "like": "uint32", "shifts": "uint32"},
    "shifts": {"shift": "int32"},
}
#: Columns that grow from row to row.
_GROWING = ("repeat",)
#: Columns whose sequences repeat: the compressor finds that in whole bytes only, and a dictionary's
#: numbers have bits.
_PLAIN = ("instruction", "memory_static")
_FILE_NAMES = tuple(f"{name}.parquet" for name in ("table", *_FILES))
_REPEATS_NAMES = tuple(f"{name}.parquet" for name in _REPEATS)
_TABLE = {
    "pc": "uint32",
    "source_line": "uint32",
    "opcode": "string",
    "known_opcode": "bool",
    "op_class": "string",
    "space": "string",
    "kind": "string",
    "cache_operator": "string",
    "width": "uint32",
    "destinations": _LIST,
    "sources": _LIST,
}
#: Further columns of machine code whose instructions say when they may issue.
_CONTROL = {name: "bool" if name == "yield" else "uint8" for name in _core.CONTROL_FIELDS}
#: Further columns of kernels that know the files of their source: numbers of files and inlined calls.
_SOURCES = {"source_file": "uint32", "inlined_at": "uint32"}
_HEADER_NUMBERS = (
    "launch_id",
    "parent",
    "shared_memory_bytes",
    "registers_per_thread",
    "binary_version",
    "stream",
    "shared_window",
    "local_window",
)


def matches(path: Path) -> bool:
    """Whether the path is a folder that `write` made."""
    return path.is_dir() and (path / MANIFEST).is_file()


def files_of(path: Path) -> list[str] | None:
    """Return the files that a saved trace consists of, by their paths in it; None for another folder."""
    if not matches(path):
        return None
    try:
        _, entries, recorded = _read_manifest(path / MANIFEST)
    except InputError:
        return None
    own = [MANIFEST] if recorded is None else [MANIFEST, _OPERATIONS_NAME]
    return [*own, *(entry.place_of(name) for entry in entries for name in entry.own_files)]


def write(app: App, path: Path, *, overwrite: bool, progress: bool) -> None:
    """Write an application; see `warpstack.save`."""
    total = sum(kernel.nbytes for kernel in app.kernels)
    with (
        writer(path, app.name, overwrite=overwrite) as folder,
        progress_bar(progress, total, f"writing {printable(path.name)}", "B") as bar,
    ):
        for kernel in app.kernels:
            folder.add(kernel)
            bar.update(kernel.nbytes)
        if app._operations is not None:
            folder.add_operations(app._operations)


class Writer:
    """A trace folder that grows kernel by kernel; see `writer`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._entries: list[dict[str, Any]] = []
        #: The folder of each file, by its name and digest.
        self._folders: dict[tuple[str, str], str] = {}
        #: Files of source and inlined calls; launches of one kernel have the same.
        self._sources: list[dict[str, Any]] = []
        self._operations: dict[str, str] = {}

    def add(self, kernel: KernelTrace) -> None:
        """Write a kernel, which need not be kept afterwards."""
        name = f"kernel-{len(self._entries) + 1}"
        digests = _write_kernel(kernel, self._folder / name, self._folders)
        entry: dict[str, Any] = {
            "folder": name,
            "header": kernel._core.header,
            "digest": kernel.digest,
            "files": digests,
        }
        sources = kernel._core.sources
        if sources["files"] or sources["calls"]:
            if sources not in self._sources:
                self._sources.append(sources)
            entry["sources"] = self._sources.index(sources)
        self._entries.append(entry)

    def add_operations(self, columns: operations.Columns) -> None:
        """Write what the host of the program did; `kernel` counts the kernels in the order of `add`."""
        place = self._folder / _OPERATIONS_NAME
        fields = tuple(_OPERATIONS.items())
        with place.open("wb") as sink, _parquet_writer(sink, fields, "zstd") as writer:
            _write_group(writer, columns, _OPERATIONS)
        self._operations = {"operations": file_digest(place)}

    def _finish(self, name: str) -> None:
        manifest = {"format": FORMAT_NAME, "version": FORMAT_VERSION, "name": name}
        sources = {"sources": self._sources} if self._sources else {}
        text = sealed({**manifest, **self._operations, **sources, "kernels": self._entries})
        (self._folder / MANIFEST).write_text(text, encoding="utf-8")


@contextlib.contextmanager
def writer(path: Path, name: str, *, overwrite: bool) -> Iterator[Writer]:
    """Write an application whose kernels come one after the other.

    The folder appears at its place, complete, when the block ends, and not at all when it raises.
    """
    with new_folder(path, overwrite=overwrite, files_of=files_of) as partial:
        folder = Writer(partial)
        yield folder
        folder._finish(name)


def _write_kernel(
    kernel: KernelTrace, folder: Path, folders: dict[tuple[str, str], str]
) -> dict[str, str]:
    """Write the files of a kernel and return their digests.

    A file that is there already, by its name and digest, is not written again: launches of one kernel often
    differ in their sectors alone. The folder is made for the first file that is written.
    """
    core = kernel._core
    table = core.instruction_table()
    fields = _TABLE | _CONTROL if core.has_control else _TABLE
    if any(core.sources.values()):
        fields = fields | _SOURCES
    columns = {
        name: table[name] if kind != "bool" else table[name].astype(bool)
        for name, kind in fields.items()
    }
    digests = {"table.parquet": _write_small(folder / "table.parquet", columns, fields, folders)}
    all_fields = _files(
        has_lanes=core.has_atomics,
        has_passes=core.has_passes,
        has_repeats=core.num_distinct_blocks < core.num_traced_blocks,
    )
    ranges = list(pairwise([0, *core.batch_ends(_BATCH_BYTES)]))
    if len(ranges) == 1:
        batch = core.read_distinct_batch(*ranges[0], has_steps=True)
        for name, fields in all_fields.items():
            file = f"{name}.parquet"
            digests[file] = _write_small(folder / file, batch, fields, folders)
        return digests
    folder.mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        writers = {}
        for name, fields in all_fields.items():
            # Files are opened here, because Arrow does not accept names that are not UTF-8.
            sink = stack.enter_context((folder / f"{name}.parquet").open("wb"))
            writer = _parquet_writer(sink, tuple(fields.items()), "zstd")
            writers[name] = stack.enter_context(writer)
        for first, last in ranges:
            batch = core.read_distinct_batch(first, last, has_steps=True)
            for name, fields in all_fields.items():
                _write_group(writers[name], batch, fields)
    for name in all_fields:
        file = f"{name}.parquet"
        digests[file] = file_digest(folder / file)
        if folders.setdefault((file, digests[file]), folder.name) != folder.name:
            (folder / file).unlink()
    if not any(folder.iterdir()):
        folder.rmdir()
    return digests


def _write_small(
    path: Path,
    columns: dict[str, Any],
    fields: dict[str, str],
    folders: dict[tuple[str, str], str],
) -> str:
    """Write a file of one row group and return its digest."""
    # Launches of one kernel have the same table, and often the same instructions.
    parts = tuple(
        columns[name].tobytes() if isinstance(columns[name], np.ndarray) else _fixed(columns[name])
        for name in fields
    )
    is_small = sum(map(len, parts)) < _LEAST_COMPRESSED_BYTES
    encode = _encoded if is_small else _encoded.__wrapped__
    data, digest = encode(tuple(fields.items()), parts, "none" if is_small else "zstd")
    if folders.setdefault((path.name, digest), path.parent.name) == path.parent.name:
        try:
            path.write_bytes(data)
        except FileNotFoundError:
            path.parent.mkdir()
            path.write_bytes(data)
    return digest


def _fixed(column: list[Any]) -> tuple[Any, ...]:
    """Return texts or lists of numbers as a value that has a hash."""
    return tuple(tuple(one) if isinstance(one, list) else one for one in column)


@lru_cache(maxsize=256)
def _encoded(
    fields: tuple[tuple[str, str], ...], parts: tuple[Any, ...], compression: str
) -> tuple[bytes, str]:
    """Return the bytes of a file of one row group, and their digest."""
    columns = {
        name: np.frombuffer(part, kind) if isinstance(part, bytes) else list(part)
        for (name, kind), part in zip(fields, parts, strict=True)
    }
    sink = pa.BufferOutputStream()
    with _parquet_writer(sink, fields, compression) as writer:
        _write_group(writer, columns, dict(fields))
    data = sink.getvalue().to_pybytes()
    return data, digest_of(data)


def _parquet_writer(sink: Any, fields: tuple[tuple[str, str], ...], compression: str) -> Any:
    encodings = {name: "DELTA_BINARY_PACKED" for name, _ in fields if name in _GROWING}
    # Small files are mostly their ends, which this makes short: nothing here asks for statistics, and types
    # are Parquet's own.
    options: dict[str, Any] = {"write_statistics": False, "store_schema": False}
    if encodings:
        options["column_encoding"] = encodings
    if any(name in (*_GROWING, *_PLAIN) for name, _ in fields):
        options["use_dictionary"] = [name for name, _ in fields if name not in (*_GROWING, *_PLAIN)]
    if compression != "none":
        options["compression_level"] = _LEVEL
    return pq.ParquetWriter(sink, _schema(fields), compression=compression, **options)


def _write_group(writer: Any, columns: dict[str, Any], fields: dict[str, str]) -> None:
    arrays = [pa.array(columns[name], _type(kind)) for name, kind in fields.items()]
    part = pa.table(arrays, schema=_schema(tuple(fields.items())))
    writer.write_table(part, row_group_size=max(len(part), 1))


def _files(
    *, has_lanes: bool, has_passes: bool, has_repeats: bool, has_steps: bool = True
) -> dict[str, dict[str, str]]:
    """Return the columns of each file of a kernel, by what it may be without."""
    files = dict(_FILES if has_steps else _FILES | {"sectors": _SECTORS})
    if has_lanes:
        files["stores"] = files["stores"] | _LANES
    if has_passes:
        files["memory"] = files["memory"] | _PASSES
    return files | _REPEATS if has_repeats else files


def read(path: Path, options: LoadOptions) -> App:
    """Read an application that `write` wrote.

    A trace that another process replaces meanwhile is read again from the start.
    """
    for _ in range(_MOST_REPLACEMENTS):
        before = _identity(path)
        try:
            return _read(path, options)
        except InputError:
            wait_until_there(path)
            if before is not None and _identity(path) == before:
                raise
    return _read(path, options)


def _identity(path: Path) -> tuple[int, int, int] | None:
    """Return what tells a saved trace from the one that replaces it."""
    try:
        found = (path / MANIFEST).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


def _read(path: Path, options: LoadOptions) -> App:
    name, entries, recorded = _read_manifest(path / MANIFEST)
    if options.kernels is not None:
        options.kernels.check([entry.launch_id for entry in entries], name)
    places = [i for i, entry in enumerate(entries) if options.wants(entry.launch_id)]
    chosen = [entries[place] for place in places]
    columns = None
    if recorded is not None:
        columns = _read_operations(path, recorded, len(entries))
        if len(places) < len(entries):
            columns = operations.chosen(columns, places)
    sound: set[tuple[str, str]] = set()
    with progress_bar(options.progress, len(chosen), f"reading {name}", "kernel") as bar:
        kernels = []
        for entry in chosen:
            kernels.append(KernelTrace(_read_kernel(path, entry, options, sound)))
            bar.update(1)
    return App._recorded(kernels, name, columns)


def _read_operations(root: Path, digest: str, kernels: int) -> operations.Columns:
    """Read what the host of the program did."""
    path = root / _OPERATIONS_NAME
    where = printable(path)
    try:
        found = file_digest(path)
        if found != digest:
            raise InputError(f"this file has digest {found}, the manifest says {shown(digest)}")
        with open_input(path) as file, pq.ParquetFile(file) as table:
            fields = {
                name: kind
                for name, kind in _OPERATIONS.items()
                if name not in operations.LATER_COLUMNS or name in table.schema_arrow.names
            }
            part = table.read(columns=list(fields))
        arrays = _columns("operations", part, fields)
        columns = {name: _values(name, array, _OPERATIONS[name]) for name, array in arrays.items()}
    except FileNotFoundError:
        raise InputError(
            f"{where}: the saved trace is damaged: this file is not there; restore it or trace the program "
            "again"
        ) from None
    except OSError as error:
        raise InputError(
            f"{where}: the saved trace cannot be read: {error.strerror or error}"
        ) from None
    except (pa.ArrowException, KeyError, TypeError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else repr(error)
        reason = printable_text(reason.removeprefix(f"{_OPERATIONS_NAME}: "))
        raise InputError(
            f"{where}: the saved trace is damaged: {reason}; restore it or trace the program again"
        ) from None
    if "programmatic" not in columns:
        columns["programmatic"] = np.zeros(operations.count(columns), bool)
    if "begins_after" not in columns:
        columns["begins_after"] = operations.begins_of_threads(columns)
    rows = operations.count(columns)
    if "connections" not in columns:
        columns["connections"] = np.full(rows, operations.USUAL_CONNECTIONS, np.int64)
    for name in ("work_ns", "flops"):
        if name not in columns:
            columns[name] = np.zeros(rows, np.int64)
    if "arithmetic" not in columns:
        columns["arithmetic"] = [""] * rows
    if "tensor_cores" not in columns:
        columns["tensor_cores"] = np.zeros(rows, bool)
    operations.check(columns, kernels, where)
    return columns


def _values(name: str, column: pa.ChunkedArray, kind: str) -> Any:
    """Return a column of operations as the package has them."""
    if kind == "int64":
        return _in_place(column, kind)
    if kind == "bool":
        return np.array(column.to_pylist(), bool)
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if kind == "string":  # most texts come often
        coded = array.dictionary_encode()
        texts = coded.dictionary.to_pylist()
        return [texts[place] for place in coded.indices.to_pylist()]
    if array.flatten().null_count:
        raise InputError(f"{_OPERATIONS_NAME}: {name} has empty entries in its lists")
    rows: list[tuple[int, ...]] = [()] * len(array)  # most lists are empty
    lengths = np.array(array.value_lengths().to_pylist(), np.int64)
    for row in np.flatnonzero(lengths).tolist():
        rows[row] = tuple(array[row].as_py())
    return rows


@dataclass(frozen=True)
class _Entry:
    """A kernel in the manifest."""

    folder: str
    digest: str
    header: dict[str, Any]
    #: Digest of each file; None where the version has none.
    files: dict[str, str] | None
    #: Whether the version knows the lanes of atomics.
    has_lanes: bool
    #: Whether the version knows passes over the banks of L1.
    has_passes: bool
    #: Whether blocks of its columns are distinct, because the version has others as repeats.
    has_distinct: bool
    #: Whether sectors are steps.
    has_steps: bool
    #: The folders of files that earlier kernels have, too.
    shared: dict[str, str]

    def place_of(self, name: str) -> str:
        """Return the path of one of its files in the saved trace."""
        return f"{self.shared.get(name, self.folder)}/{name}"

    @property
    def own_files(self) -> list[str]:
        """The names of the files in its folder."""
        return [name for name in self.file_names if name not in self.shared]

    @property
    def has_repeats(self) -> bool:
        """Whether there are blocks that repeat others."""
        return self.has_distinct and self.files is not None and _REPEATS_NAMES[0] in self.files

    @property
    def file_names(self) -> tuple[str, ...]:
        """The names of its files."""
        return _FILE_NAMES + _REPEATS_NAMES if self.has_repeats else _FILE_NAMES

    @property
    def launch_id(self) -> int:
        return int(self.header["launch_id"])


def _read_manifest(path: Path) -> tuple[str, list[_Entry], str | None]:
    """Return the name of the application, its kernels, and the digest of the operations if there are any."""
    where = printable(path)
    try:
        manifest = json.loads(read_input(path, "list of kernels", MAX_TABLE_BYTES))
    except OSError as error:
        raise InputError(f"{where}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not a list of kernels: {error}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT_NAME:
        raise InputError(f'{where}: not a list of kernels: it lacks "format": "{FORMAT_NAME}"')
    version = manifest.get("version")
    if isinstance(version, bool) or version not in _READ_VERSIONS:
        raise InputError(
            f"{where}: format version {shown(version)}; this warpstack reads versions 1 to "
            f"{FORMAT_VERSION}, convert the original trace again"
        )
    try:
        kernels = _member(manifest, "kernels", list)
        folders: dict[tuple[str, str], str] = {}
        tables = _source_tables(manifest) if version >= 8 else []
        entries = [
            _entry(kernel, f"kernels[{i}]", version, folders, tables)
            for i, kernel in enumerate(kernels)
        ]
        name = _member(manifest, "name", str)
        recorded = None
        if version >= 9 and "operations" in manifest:
            recorded = _member(manifest, "operations", str)
    except InputError as error:
        raise InputError(f"{where}: not a list of kernels: {error}") from None
    if not entries and recorded is None:
        raise InputError(f"{where}: the saved trace has no kernels")
    if version >= 2 and not is_sound(manifest):
        raise InputError(
            f"{where}: the saved trace is damaged: this file is not as it was written; restore it or "
            "convert the original trace again"
        )
    return name, entries, recorded


def _member(mapping: Any, key: str, kind: type, where: str = "") -> Any:
    """Return the value of a key, or raise `InputError` if it is not of the kind."""
    value = mapping.get(key) if isinstance(mapping, dict) else None
    if not isinstance(value, kind):
        raise InputError(f"{where}{key} is missing or is not {with_article(kind.__name__)}")
    return value


def _source_tables(manifest: Any) -> list[dict[str, Any]]:
    """Return the files of source and inlined calls that kernels of the manifest share."""
    found = []
    for i, table in enumerate(_member({"sources": [], **manifest}, "sources", list)):
        rows: dict[str, Any] = {}
        for key, kinds in (("files", (str, int, int)), ("calls", (str, int, int, int))):
            where = f"sources[{i}].{key}"
            rows[key] = []
            for j, row in enumerate(_member(table, key, list, f"sources[{i}].")):
                place = f"{where}[{j}]"
                if not isinstance(row, list) or len(row) != len(kinds):
                    raise InputError(f"{place} has not {len(kinds)} values")
                if not isinstance(row[0], str):
                    raise InputError(f"{place}[0] = {shown(row[0])} is not a name")
                largest = 2**64 - 1 if key == "files" else 2**32 - 1
                numbers = [as_integer(place, number, 0, largest) for number in row[1:]]
                rows[key].append((row[0], *numbers))
        found.append(rows)
    return found


def _entry(
    kernel: Any,
    where: str,
    version: int,
    folders: dict[tuple[str, str], str],
    tables: list[dict[str, Any]],
) -> _Entry:
    """Return a kernel of the manifest. `folders` has the place of each file by name and digest."""
    folder = _member(kernel, "folder", str, f"{where}.")
    if not re.fullmatch(r"[A-Za-z0-9_-]+", folder):
        raise InputError(f"{where}.folder = {folder!a} is not the name of a folder in this one")
    digest = _member(kernel, "digest", str, f"{where}.")
    header = _member(kernel, "header", dict, f"{where}.")
    checked: dict[str, Any] = {}
    for key in ("name", "source"):
        checked[key] = _member(header, key, str, f"{where}.header.")
    header = {"cluster": [1, 1, 1], **header}  # older files lack it
    for key in ("grid", "block", "cluster"):
        numbers = _member(header, key, list, f"{where}.header.")
        if len(numbers) != 3:
            raise InputError(f"{where}.header.{key} has {len(numbers)} numbers instead of 3")
        checked[key] = [as_integer(f"{where}.header.{key}", n, 0, 2**32 - 1) for n in numbers]
    header = {"parent": 0, **header}  # older files lack it
    for key in ("awaited_cycles", "awaited_ns"):
        ticks = header.get(key, [0, 0, 0])
        if not isinstance(ticks, list) or len(ticks) != 3:
            raise InputError(f"{where}.header.{key} = {shown(ticks)}: expected three numbers")
        checked[key] = [as_integer(f"{where}.header.{key}", n, 0, 2**64 - 1) for n in ticks]
    for key in _HEADER_NUMBERS:
        checked[key] = as_integer(f"{where}.header.{key}", header.get(key), 0, 2**64 - 1)
    if version >= 8 and "sources" in kernel:
        number = as_integer(f"{where}.sources", kernel["sources"], 0, 2**32 - 1)
        if number >= len(tables):
            raise InputError(f"{where}.sources = {number}: the file has {len(tables)}")
        checked["sources"] = tables[number]
    files = None
    if version >= 2:
        files = _member(kernel, "files", dict, f"{where}.")
        for name in _FILE_NAMES:
            _member(files, name, str, f"{where}.files.")
        if version >= 6 and any(name in files for name in _REPEATS_NAMES):
            for name in _REPEATS_NAMES:
                _member(files, name, str, f"{where}.files.")
    shared = {}
    if version >= 7 and files is not None:
        for name in files.keys() & {*_FILE_NAMES, *_REPEATS_NAMES}:
            if (first := folders.setdefault((name, files[name]), folder)) != folder:
                shared[name] = first
    return _Entry(
        folder,
        digest,
        checked,
        files,
        version >= 4,
        version >= 5,
        version >= 6,
        version >= 7,
        shared,
    )


def _read_kernel(
    root: Path, entry: _Entry, options: LoadOptions, sound: set[tuple[str, str]]
) -> _core.KernelTrace:
    where = printable(root / entry.folder)
    try:
        if entry.files is not None:
            _check_files(root, entry, entry.files, sound)
        with contextlib.ExitStack() as stack:
            files = {}
            for name in entry.file_names:
                file = stack.enter_context(open_input(root / entry.place_of(name)))
                table = stack.enter_context(pq.ParquetFile(file))
                files[name.removesuffix(".parquet")] = table
            trace = _build(files, entry, options)
    except OSError as error:
        reason = str(error)
        if error.filename:
            place = Path(error.filename)
            is_shared = place.parent.name != entry.folder
            name = f"{place.parent.name}/{place.name}" if is_shared else place.name
            reason = f"{name}: {error.strerror}"
        missing = isinstance(error, (FileNotFoundError, NotADirectoryError))
        problem = "the saved trace is damaged" if missing else "the saved trace cannot be read"
        raise InputError(f"{where}: {problem}: {reason}") from None
    except (pa.ArrowException, KeyError, TypeError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else repr(error)
        raise InputError(f"{where}: the saved trace is damaged: {reason}") from None
    digest = trace.digest if entry.has_lanes else trace.digest_without_lanes
    if digest != entry.digest:
        raise InputError(
            f"{where}: the saved trace is damaged: its content has digest {digest}, the manifest "
            f"says {entry.digest}; convert the original trace again"
        )
    return trace


def _check_files(
    root: Path, entry: _Entry, digests: dict[str, str], sound: set[tuple[str, str]]
) -> None:
    """Raise `InputError` unless files are as they were written: Arrow then reads nothing else.

    `sound` has the places and digests of those that were looked at.
    """
    for name in entry.file_names:
        place = entry.place_of(name)
        if (place, digests[name]) in sound:
            continue
        found = file_digest(root / place)
        if found != digests[name]:
            shown_name = place if name in entry.shared else name
            raise InputError(
                f"{shown_name} has digest {found}, the manifest says {digests[name]}; restore it or "
                "convert the original trace again"
            )
        sound.add((place, digests[name]))


def _build(
    files: dict[str, pq.ParquetFile], entry: _Entry, options: LoadOptions
) -> _core.KernelTrace:
    builder = _core.TraceBuilder(entry.header, options.budget)
    names = files["table"].schema_arrow.names
    fields = _TABLE | _CONTROL if any(name in names for name in _CONTROL) else _TABLE
    if "sources" in entry.header:
        fields = fields | _SOURCES
    columns = _columns("table", files["table"].read(columns=list(fields)), fields)
    rows = zip(*(column.to_pylist() for column in columns.values()), strict=True)
    for row in rows:
        builder.intern_row(dict(zip(columns, row, strict=True)))
    has_passes = entry.has_passes and "l1_passes" in files["memory"].schema_arrow.names
    all_fields = _files(
        has_lanes=entry.has_lanes and builder.has_atomics,
        has_passes=has_passes,
        has_repeats=entry.has_repeats,
        has_steps=entry.has_steps,
    )
    groups = {name: files[name].num_row_groups for name in all_fields}
    if len(set(groups.values())) != 1:
        raise InputError(f"the files have different numbers of row groups: {groups}")
    for group in range(groups["warps"]):
        batch = {}
        for name, fields in all_fields.items():
            part = files[name].read_row_group(group, columns=list(fields))
            arrays = _columns(name, part, fields)
            batch.update(
                {field: _in_place(array, fields[field]) for field, array in arrays.items()}
            )
        builder.add_batch(batch, are_distinct=entry.has_distinct)
    return builder.finish()


def _columns(name: str, part: pa.Table, fields: dict[str, str]) -> dict[str, Any]:
    """Return the columns of a file, checked to be there, of their types and without gaps."""
    for field, kind in fields.items():
        dtype = _type(kind)
        if field not in part.column_names:
            raise InputError(f"{name}.parquet: there is no column {field}")
        if part.column(field).type != dtype:
            raise InputError(f"{name}.parquet: {field} is {part.column(field).type}, not {dtype}")
        if part.column(field).null_count:
            raise InputError(f"{name}.parquet: {field} has empty entries")
    return {field: part.column(field) for field in fields}


def _in_place(column: pa.ChunkedArray, kind: str) -> npt.NDArray[Any]:
    """Return numbers without gaps as NumPy's, without a copy where they are in one piece.

    Arrow's own way loads pandas, which takes longer than a short trace.
    """
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    numbers = array.buffers()[1]
    dtype = np.dtype(kind)
    if numbers is None:
        return np.empty(0, dtype)
    return np.frombuffer(numbers, dtype, len(array), array.offset * dtype.itemsize)


@cache
def _type(kind: str) -> pa.DataType:
    lists = {_LIST: pa.uint16, _ROWS: pa.int64}
    return pa.list_(lists[kind]()) if kind in lists else pa.type_for_alias(kind)


@cache
def _schema(fields: tuple[tuple[str, str], ...]) -> pa.Schema:
    return pa.schema([(name, _type(kind)) for name, kind in fields])
