"""Traces as folders of Parquet files: small, quick to load, readable by other tools."""

from __future__ import annotations

import contextlib
import json
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from warpstack import _core
from warpstack.errors import InputError
from warpstack.io.common import LoadOptions, progress_bar
from warpstack.trace import App, KernelTrace

MANIFEST = "warpstack-trace.json"
FORMAT_VERSION = 1
#: Aimed at per row group, so that reading and writing need little memory.
_BATCH_BYTES = 1 << 24

#: Columns of each file of a kernel. Row group i of every file holds the same thread blocks.
_FILES = {
    "warps": {
        "block": pa.uint64(),
        "warp": pa.uint32(),
        "instructions": pa.uint32(),
        "memory": pa.uint32(),
        "sectors": pa.uint32(),
        "stores": pa.uint32(),
    },
    "instructions": {"instruction": pa.uint32(), "active_mask": pa.uint32()},
    "memory": {"memory_static": pa.uint32(), "memory_count": pa.uint16()},
    "sectors": {"sector": pa.uint64()},
    "stores": {"store_bytes": pa.uint32()},
}
_TABLE = {
    "pc": pa.uint32(),
    "source_line": pa.uint32(),
    "opcode": pa.string(),
    "known_opcode": pa.bool_(),
    "op_class": pa.string(),
    "space": pa.string(),
    "kind": pa.string(),
    "cache_operator": pa.string(),
    "width": pa.uint32(),
    "destinations": pa.list_(pa.uint16()),
    "sources": pa.list_(pa.uint16()),
}


def matches(path: Path) -> bool:
    """Whether the path is a folder that `write` made."""
    return path.is_dir() and (path / MANIFEST).is_file()


def write(app: App, path: Path, *, overwrite: bool, progress: bool) -> None:
    """Write an application; see `warpstack.save`."""
    if path.exists() and not (overwrite and matches(path)):
        remedy = "choose another name" if overwrite else "choose another name or overwrite it"
        raise InputError(f"{path}: exists already; {remedy}")
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")
    total = sum(kernel.nbytes for kernel in app.kernels)
    try:
        partial.mkdir(parents=True)
        entries = []
        with progress_bar(progress, total, f"writing {path.name}", "B") as bar:
            for position, kernel in enumerate(app.kernels):
                folder = f"kernel-{position + 1}"
                (partial / folder).mkdir()
                _write_kernel(kernel, partial / folder)
                entries.append(
                    {"folder": folder, "header": kernel._core.header, "digest": kernel.digest}
                )
                bar.update(kernel.nbytes)
        manifest = {"format": "warpstack-trace", "version": FORMAT_VERSION, "name": app.name}
        text = json.dumps({**manifest, "kernels": entries}, indent=1)
        (partial / MANIFEST).write_text(text, encoding="utf-8")
        if path.exists():
            shutil.rmtree(path)
        partial.rename(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _write_kernel(kernel: KernelTrace, folder: Path) -> None:
    core = kernel._core
    table = core.instruction_table()
    columns = {
        name: pa.array(table[name] if dtype != pa.bool_() else table[name].astype(bool), dtype)
        for name, dtype in _TABLE.items()
    }
    pq.write_table(pa.table(columns), folder / "table.parquet", compression="zstd")
    with contextlib.ExitStack() as stack:
        writers = {
            name: stack.enter_context(
                pq.ParquetWriter(
                    folder / f"{name}.parquet", pa.schema(list(fields.items())), compression="zstd"
                )
            )
            for name, fields in _FILES.items()
        }
        for first, last in _batches(core):
            batch = core.read_batch(first, last)
            for name, fields in _FILES.items():
                arrays = {field: pa.array(batch[field], dtype) for field, dtype in fields.items()}
                part = pa.table(arrays)
                writers[name].write_table(part, row_group_size=max(len(part), 1))


def _batches(core: _core.KernelTrace) -> Iterator[tuple[int, int]]:
    """Yield ranges of thread blocks of about the same size in bytes."""
    blocks = core.num_traced_blocks
    per_batch = max(int(_BATCH_BYTES * blocks / max(core.bytes, 1)), 1)
    for first in range(0, blocks, per_batch):
        yield first, min(first + per_batch, blocks)


def read(path: Path, options: LoadOptions) -> App:
    """Read an application that `write` wrote."""
    manifest_path = path / MANIFEST
    try:
        manifest = json.loads(manifest_path.read_text(encoding="utf-8"))
        version = manifest["version"]
        entries = [(path / e["folder"], e["header"], e["digest"]) for e in manifest["kernels"]]
        name = str(manifest["name"])
        launches = [int(header["launch_id"]) for _, header, _ in entries]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{manifest_path}: cannot be read: {error}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{manifest_path}: not a list of kernels: {error!r}") from None
    if version != FORMAT_VERSION:
        raise InputError(
            f"{manifest_path}: format version {version}; this warpstack reads version {FORMAT_VERSION}, "
            "convert the original trace again"
        )
    chosen = [e for e, launch in zip(entries, launches, strict=True) if options.wants(launch)]
    with progress_bar(options.progress, len(chosen), f"reading {name}", "kernel") as bar:
        kernels = []
        for folder, header, digest in chosen:
            kernels.append(KernelTrace(_read_kernel(folder, header, digest, options)))
            bar.update(1)
    app = App(kernels, name)
    return app if options.kernels is None else app.select(sorted(options.kernels))


def _read_kernel(
    folder: Path, header: dict[str, Any], digest: str, options: LoadOptions
) -> _core.KernelTrace:
    try:
        builder = _core.TraceBuilder(header, options.budget)
        table = pq.read_table(folder / "table.parquet", schema=pa.schema(list(_TABLE.items())))
        for row in table.to_pylist():
            builder.intern_row(row)
        files = {name: pq.ParquetFile(folder / f"{name}.parquet") for name in _FILES}
        groups = {name: file.num_row_groups for name, file in files.items()}
        if len(set(groups.values())) != 1:
            raise InputError(f"the files have different numbers of row groups: {groups}")
        for group in range(groups["warps"]):
            batch = {}
            for name, fields in _FILES.items():
                part = files[name].read_row_group(group, columns=list(fields))
                for field, dtype in fields.items():
                    if part.column(field).type != dtype:
                        raise InputError(
                            f"{name}.parquet: {field} is {part.column(field).type}, not {dtype}"
                        )
                    batch[field] = part.column(field).to_numpy()
            builder.add_batch(batch)
        trace = builder.finish()
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else repr(error)
        raise InputError(f"{folder}: the saved trace is damaged: {reason}") from None
    if trace.digest != digest:
        raise InputError(
            f"{folder}: the saved trace is damaged: its content has digest {trace.digest}, the manifest "
            f"says {digest}; convert the original trace again"
        )
    return trace
