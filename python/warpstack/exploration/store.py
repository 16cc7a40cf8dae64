"""Results of a sweep in a folder: a Parquet dataset that grows while the sweep runs."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import re
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from warpstack._util.arguments import as_path, printable
from warpstack._util.files import (
    PARTIAL,
    SEAL,
    digest_of,
    is_sound,
    remove_leftovers,
    sealed,
    write_file,
)
from warpstack._util.input_file import MAX_TABLE_BYTES, open_input, read_input
from warpstack._util.lazy import pyarrow as pa
from warpstack._util.lazy import pyarrow_parquet as pq
from warpstack._util.options import initial_words
from warpstack.errors import DamageWarning, InputError, warn

if TYPE_CHECKING:
    from filelock import BaseFileLock

__all__ = ["SweepStore"]

FORMAT_VERSION = 3
#: Readers of datasets skip names that begin with an underscore or a dot.
_DESIGN = "_design.json"
_LOCK = "_lock"
#: Lock of a program that writes a share of the tasks: which share, of how many.
_SHARE = re.compile(r"_lock-([0-9]{1,6})-([0-9]{1,6})")
#: Seconds to wait for another program that opens the store.
_OPENING_SECONDS = 60.0
#: Each part has the digest of its content in its name.
_PART = re.compile(r"part-[0-9a-f]+-[0-9a-f]{8}-([0-9a-f]{32})\.parquet")
#: Metadata of a part: its tasks, and the digest of the sweep that they belong to.
_TASKS = b"warpstack tasks"
_SWEEP = b"warpstack sweep"
#: Results that come within this time are written together: a file for each would be many.
_WRITE_SECONDS = 1.0
#: The same as a share of the time that the store has been open, so that hours make hundreds of files.
_WRITE_SHARE = 0.01
#: Rows that are written at once, with those of the task that exceeds them.
_PART_ROWS = 2**17


class SweepStore:
    """The folder that a sweep writes its results to.

    ``_design.json`` says which sweep it is; each ``part-*.parquet`` holds the rows of some tasks, and
    has a digest of its content in its name. All are written beside their place and moved there, so
    that a sweep killed at any time leaves whole files only. One process writes at a time, or several
    that each have a share of the tasks: advisory locks on ``_lock`` and on ``_lock-SHARE-COUNT`` ensure
    it where the platform and the file system have such locks. `close` gives them back.

    Parameters
    ----------
    folder
        The folder, which is new, empty or a store of the same sweep.
    design
        What tells this sweep from others, ready for JSON.
    resume
        Whether to continue where another run stopped.
    share
        Which share of how many, from 0, this process writes; None: it writes alone.

    Raises
    ------
    InputError
        If the folder holds something else, or the results of another sweep, or of this one when not
        resuming, or another sweep is writing to it.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        design: Mapping[str, Any],
        *,
        resume: bool,
        share: tuple[int, int] | None = None,
    ) -> None:
        self.folder = as_path("store", folder)
        self._waiting: list[tuple[int, pd.DataFrame]] = []
        self._opened = time.monotonic()
        self._mutex = threading.RLock()
        self._timer: threading.Timer | None = None
        self._last_write = time.monotonic()
        # As read back from JSON: tuples are lists.
        self._design: dict[str, Any] = json.loads(json.dumps(design))
        self._sweep = digest_of(json.dumps(self._design, sort_keys=True).encode())
        where = f"store {printable(self.folder)}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            names = sorted(os.listdir(self.folder))
            if _DESIGN not in names and any(_is_foreign(name) for name in names):
                raise InputError(
                    f"{where}: the folder is not empty and holds no sweep; give a new folder"
                )
            # Programs that share the work hold the store's lock only while they open it.
            wait = 0.0 if share is None else _OPENING_SECONDS
            self._lock = _locked(self.folder / _LOCK, where, wait)
        except OSError as error:
            raise InputError(f"{where}: {error.strerror or error}") from None
        own = None
        try:
            self._check_writers(where, share)
            if share is not None:
                own = _locked(self.folder / _name_of(share), where)
            self._open(where, resume=resume)
        except BaseException:
            if own is not None:
                own.release()
            self._unlock()
            raise
        if share is not None:
            self._unlock()
            self._lock = own

    def _check_writers(self, where: str, share: tuple[int, int] | None) -> None:
        """Raise `InputError` if a process writes other shares than those of as many as `share` has."""
        for name in sorted(os.listdir(self.folder)):
            match = _SHARE.fullmatch(name)
            if match is None or (share and share[1] == int(match[2]) and share[0] != int(match[1])):
                continue
            lock = _locked(self.folder / name, where)
            if lock is not None:
                lock.release()

    def _open(self, where: str, *, resume: bool) -> None:
        try:
            remove_leftovers(self.folder, own=True)
            names = sorted(os.listdir(self.folder))
            parts = [name for name in names if _PART.fullmatch(name)]
            described = (_DESIGN in names or parts) and self._is_described(where, parts)
            if not described:
                write_file(self.folder / _DESIGN, sealed(self._design).encode())
        except OSError as error:
            raise InputError(f"{where}: {error.strerror or error}") from None
        if not resume and parts:
            raise InputError(
                f"{where}: holds results of this sweep already; resume it or give a new folder"
            )

    def _is_described(self, where: str, parts: Sequence[str]) -> bool:
        """Return whether the folder says that it holds this sweep; False if that has to be restored."""
        try:
            theirs = json.loads(read_input(self.folder / _DESIGN, "design", MAX_TABLE_BYTES))
        except (FileNotFoundError, ValueError, RecursionError):
            theirs = None
        if isinstance(theirs, dict) and (is_sound(theirs) or _is_old(theirs)):
            _check_same(theirs, self._design, where)
            return True
        # Each part says which sweep it belongs to: sound ones of this sweep leave no doubt.
        sweeps = [_sweep_of(self.folder / name) for name in parts]
        if self._sweep not in sweeps or any(s not in (self._sweep, None) for s in sweeps):
            raise InputError(
                f"{where}: {_DESIGN} is damaged or missing, and the results beside it do not say that "
                "they belong to this sweep; give a new folder"
            )
        _warn(
            f"{where}: {_DESIGN} was damaged or missing; it is written again from the sweep that was given"
        )
        return False

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def read(self, sizes: Sequence[int]) -> dict[int, pd.DataFrame]:
        """Return the rows of each finished task by its number.

        A damaged part is removed with a warning: its tasks are computed again.

        Parameters
        ----------
        sizes
            Rows of each task of the sweep.

        Raises
        ------
        InputError
            If a part cannot be read, which says nothing of what it holds, or belongs to another sweep.
        """
        found: dict[int, pd.DataFrame] = {}
        for tasks, rows in self._sound_parts(sizes, with_rows=True):
            found.update(_tables(rows.to_pandas(), tasks, sizes))
        return found

    def finished(self, sizes: Sequence[int]) -> set[int]:
        """Return the numbers of the finished tasks, as `read` does, without their rows."""
        parts = self._sound_parts(sizes, with_rows=False)
        return {task for tasks, _ in parts for task in tasks}

    def _sound_parts(
        self, sizes: Sequence[int], *, with_rows: bool
    ) -> Iterator[tuple[list[int], pa.Table]]:
        """Yield tasks and rows, if asked for, of the parts that are as they were written."""
        path = self.folder
        try:
            for name in sorted(os.listdir(path)):
                match = _PART.fullmatch(name)
                if match is None:
                    continue
                path = self.folder / name
                data = _content(path)
                sound = digest_of(data) == match[1]
                part = self._part(data, sizes, with_rows) if sound else None
                if part is None:
                    with contextlib.suppress(OSError):
                        path.unlink()
                    _warn(f"store {printable(path)}: damaged; its tasks are computed again")
                    continue
                yield part
        except OSError as error:
            raise InputError(
                f"store {printable(path)}: cannot be read: {error.strerror or error}"
            ) from None

    def _part(
        self, data: bytes, sizes: Sequence[int], with_rows: bool
    ) -> tuple[list[int], pa.Table] | None:
        """Return tasks and rows of a part; None when the file holds something else."""
        try:
            file = pq.ParquetFile(io.BytesIO(data))
            described = file.schema_arrow.metadata
            sweep = described[_SWEEP].decode()
            tasks = json.loads(described[_TASKS])
            if not all(task in range(len(sizes)) for task in tasks):
                return None
            is_whole = sum(sizes[task] for task in tasks) == file.metadata.num_rows
            rows = file.read() if with_rows else None
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
            return None
        if sweep != self._sweep:
            raise InputError(
                f"store {printable(self.folder)}: a part holds results of another sweep; give a new "
                "folder"
            )
        return (tasks, rows) if is_whole else None

    def add(self, task: int, table: pd.DataFrame) -> None:
        """Take the rows of a finished task; they are on disk after about a second."""
        with self._mutex:
            self._waiting.append((task, table))
            now = time.monotonic()
            pause = max(_WRITE_SECONDS, _WRITE_SHARE * (now - self._opened))
            rest = self._last_write + pause - now
            if rest <= 0 or sum(len(rows) for _, rows in self._waiting) >= _PART_ROWS:
                self.flush()
            elif self._timer is None:
                # The next result may be long in coming.
                self._timer = threading.Timer(rest, self._flush_late)
                self._timer.daemon = True
                self._timer.start()

    def _flush_late(self) -> None:
        # Rows that cannot be written keep waiting: the next call raises the error.
        with contextlib.suppress(InputError):
            self.flush()

    def flush(self) -> None:
        """Write what `add` has taken.

        Raises
        ------
        InputError
            If the folder cannot be written.
        """
        with self._mutex:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._waiting:
                self._write_waiting()

    def close(self) -> None:
        """Write what is left, and let others write.

        Raises
        ------
        InputError
            If the folder cannot be written.
        """
        try:
            self.flush()
        finally:
            self._unlock()

    def _write_waiting(self) -> None:
        tasks = [task for task, _ in self._waiting]
        table = pd.concat([rows for _, rows in self._waiting], ignore_index=True)
        arrow = pa.Table.from_pandas(table, preserve_index=False)
        own = {_TASKS: json.dumps(tasks).encode(), _SWEEP: self._sweep.encode()}
        arrow = arrow.replace_schema_metadata({**(arrow.schema.metadata or {}), **own})
        buffer = io.BytesIO()
        pq.write_table(arrow, buffer)
        data = buffer.getvalue()
        name = f"part-{time.time_ns():x}-{secrets.token_hex(4)}-{digest_of(data)}.parquet"
        try:
            write_file(self.folder / name, data)
        except OSError as error:
            raise InputError(
                f"store {printable(self.folder)}: cannot be written: {error.strerror or error}"
            ) from None
        self._waiting = []
        self._last_write = time.monotonic()


def _is_foreign(name: str) -> bool:
    """Return whether a file does not come from a sweep."""
    own = name == _LOCK or name.startswith(PARTIAL) or _PART.fullmatch(name)
    return not (own or _SHARE.fullmatch(name))


def _name_of(share: tuple[int, int]) -> str:
    """Return the name of the lock of a share."""
    return f"{_LOCK}-{share[0]}-{share[1]}"


def _tables(
    table: pd.DataFrame, tasks: Sequence[int], sizes: Sequence[int]
) -> dict[int, pd.DataFrame]:
    """Return the rows of each task of a part."""
    ends = [0, *itertools.accumulate(sizes[task] for task in tasks)]
    return {
        task: table.iloc[start:end].reset_index(drop=True)
        for task, start, end in zip(tasks, ends, ends[1:], strict=False)
    }


def _locked(path: Path, where: str, wait: float = 0) -> BaseFileLock | None:
    """Return a lock that is held until it is released or the process ends; None where there are no locks.

    It waits for some seconds where another one holds it.
    """
    from filelock import FileLock, Timeout

    # A lock that is a mere file would outlive a killed process: without the system's locks there is none.
    lock = FileLock(path, fallback_to_soft=False, thread_local=False)
    try:
        lock.acquire(timeout=wait)
    except Timeout:
        raise InputError(
            f"{where}: another sweep is writing to it; wait for it or give a new folder"
        ) from None
    except OSError:  # a file system without locks, or where nothing can be written, either
        return None
    return lock


def _is_old(theirs: Mapping[str, Any]) -> bool:
    """Return whether a description is one of a version that had no digests."""
    return theirs.get("format") == 1 and "digest" not in theirs


def _content(path: Path) -> bytes:
    with open_input(path) as file:
        return file.read()


def _check_same(theirs: Mapping[str, Any], ours: Mapping[str, Any], where: str) -> None:
    version = theirs.get("format")
    if version != ours.get("format"):
        raise InputError(
            f"{where}: was written by another version of warpstack (format {_short(version)}, this one "
            f"has {ours.get('format')}); give a new folder"
        )
    # What only one of them has is an option that the other one leaves at its default.
    for name in dict.fromkeys([*ours, *theirs]):
        value = ours.get(name)
        if name != SEAL and theirs.get(name) != value:
            raise InputError(
                f"{where}: holds another sweep: its {name} is {_told(name, theirs.get(name))}, not "
                f"{_told(name, value)}; give a new folder"
            )


def _sweep_of(path: Path) -> str | None:
    """Return the digest of the sweep that a part belongs to; None when the part is damaged."""
    match = _PART.fullmatch(path.name)
    data = _content(path)
    if match is None or digest_of(data) != match[1]:
        return None
    try:
        return str((pq.read_schema(io.BytesIO(data)).metadata or {})[_SWEEP].decode())
    except (OSError, ValueError, KeyError, pa.ArrowException):
        return None


def _warn(message: str) -> None:
    warn(message, DamageWarning)


def _told(name: str, value: Any) -> str:
    """Return a value as whoever asked for the sweep would say it."""
    return initial_words(value) if name == "initial_l2" else _short(value)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."
