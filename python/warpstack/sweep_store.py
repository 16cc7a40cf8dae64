"""Results of a sweep in a folder: a Parquet dataset that grows while the sweep runs."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from warpstack.arguments import as_path, printable
from warpstack.errors import InputError
from warpstack.input_file import MAX_TABLE_BYTES, open_input, read_input

try:
    import fcntl
except ImportError:  # no such locks on this platform
    fcntl = None  # type: ignore[assignment]

__all__ = ["SweepStore"]

FORMAT_VERSION = 1
#: Readers of datasets skip names that begin with an underscore or a dot.
_DESIGN = "_design.json"
_LOCK = "_lock"
_PARTIAL = ".partial-"
#: Files that a killed process left behind, where no lock says that there is no other.
_STALE_SECONDS = 3600
_PART = re.compile(r"part-[0-9a-f-]+\.parquet")
_TASKS = b"warpstack tasks"
#: Results that come within this time are written together: a file for each would be many.
_WRITE_SECONDS = 1.0


class SweepStore:
    """The folder that a sweep writes its results to.

    ``_design.json`` says which sweep it is; each ``part-*.parquet`` holds the rows of some tasks. All
    are written beside their place and moved there, so that a sweep killed at any time leaves whole
    files only. One process writes at a time, which an advisory lock on ``_lock`` sees to where the
    platform and the file system have such locks. To be closed.

    Parameters
    ----------
    folder
        The folder, which is new, empty or a store of the same sweep.
    design
        What tells this sweep from others, ready for JSON.
    resume
        Whether to continue where another run stopped.

    Raises
    ------
    InputError
        If the folder holds something else, or the results of another sweep, or of this one when not
        resuming, or another sweep is writing to it.
    """

    def __init__(
        self, folder: str | os.PathLike[str], design: Mapping[str, Any], *, resume: bool
    ) -> None:
        self.folder = as_path("store", folder)
        self._waiting: list[tuple[int, pd.DataFrame]] = []
        self._mutex = threading.RLock()
        self._timer: threading.Timer | None = None
        self._last_write = time.monotonic()
        where = f"store {printable(self.folder)}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            names = sorted(os.listdir(self.folder))
            if _DESIGN not in names and any(_is_foreign(name) for name in names):
                raise InputError(
                    f"{where}: the folder is not empty and holds no sweep; give a new folder"
                )
            self._lock = _locked(self.folder / _LOCK, where)
        except OSError as error:
            raise InputError(f"{where}: {error.strerror or error}") from None
        try:
            self._open(design, where, resume=resume)
        except BaseException:
            self._unlock()
            raise

    def _open(self, design: Mapping[str, Any], where: str, *, resume: bool) -> None:
        try:
            names = sorted(os.listdir(self.folder))
            if _DESIGN in names:
                text = read_input(self.folder / _DESIGN, "design", MAX_TABLE_BYTES)
                _check_same(json.loads(text), design, where)
            else:
                self._write(_DESIGN, lambda path: _write_design(path, design))
        except OSError as error:
            raise InputError(f"{where}: {error.strerror or error}") from None
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{where}: {_DESIGN} is not valid JSON; give a new folder") from None
        if not resume and any(_PART.fullmatch(name) for name in names):
            raise InputError(
                f"{where}: holds results of this sweep already; resume it or give a new folder"
            )
        for name in names:
            if name.startswith(_PARTIAL):
                self._remove_partial(self.folder / name)

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _remove_partial(self, path: Path) -> None:
        """Remove what a run that was killed left behind, but nothing that another one writes now."""
        with contextlib.suppress(OSError):
            alone = self._lock is not None
            if alone or path.stat().st_mtime < time.time() - _STALE_SECONDS:
                path.unlink()

    def read(self, sizes: Sequence[int]) -> dict[int, pd.DataFrame]:
        """Return the rows of each finished task by its number.

        A damaged part is removed: its tasks are computed again.

        Parameters
        ----------
        sizes
            Rows of each task of the sweep.

        Raises
        ------
        InputError
            If a part cannot be read, which says nothing of what it holds.
        """
        found: dict[int, pd.DataFrame] = {}
        path = self.folder
        try:
            parts = [self.folder / name for name in os.listdir(path) if _PART.fullmatch(name)]
            for path in sorted(parts):
                part = _read_part(_content(path), sizes)
                if part is None:
                    with contextlib.suppress(OSError):
                        path.unlink()
                    continue
                found.update(part)
        except OSError as error:
            raise InputError(
                f"store {printable(path)}: cannot be read: {error.strerror or error}"
            ) from None
        return found

    def add(self, task: int, table: pd.DataFrame) -> None:
        """Take the rows of a finished task; they are on disk after about a second."""
        with self._mutex:
            self._waiting.append((task, table))
            rest = self._last_write + _WRITE_SECONDS - time.monotonic()
            if rest <= 0:
                self.flush()
            elif self._timer is None:
                # The next result may be long in coming.
                self._timer = threading.Timer(rest, self._flush_late)
                self._timer.daemon = True
                self._timer.start()

    def _flush_late(self) -> None:
        # What cannot be written keeps waiting: the next call raises the error.
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
        metadata = {**(arrow.schema.metadata or {}), _TASKS: json.dumps(tasks).encode()}
        arrow = arrow.replace_schema_metadata(metadata)
        try:
            self._write(None, lambda path: pq.write_table(arrow, path))
        except OSError as error:
            raise InputError(
                f"store {printable(self.folder)}: cannot be written: {error.strerror or error}"
            ) from None
        self._waiting = []
        self._last_write = time.monotonic()

    def _write(self, name: str | None, write: Callable[[Path], object]) -> None:
        unique = f"{time.time_ns():x}-{secrets.token_hex(4)}"
        partial = self.folder / f"{_PARTIAL}{unique}"
        try:
            write(partial)  # with the mode that the user's mask gives to new files
            os.replace(partial, self.folder / (name or f"part-{unique}.parquet"))
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


def _is_foreign(name: str) -> bool:
    """Return whether a file does not come from a sweep that was killed before its first result."""
    return name != _LOCK and not name.startswith(_PARTIAL)


def _locked(path: Path, where: str) -> IO[bytes] | None:
    """Return a file whose lock is held until it is closed; None where there are no locks."""
    if fcntl is None:
        return None
    try:
        file = path.open("ab")
    except OSError:  # nothing can be written here, either
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise InputError(
            f"{where}: another sweep is writing to it; wait for it or give a new folder"
        ) from None
    except OSError:  # a file system without locks
        file.close()
        return None
    return file


def _content(path: Path) -> bytes:
    with open_input(path) as file:
        return file.read()


def _write_design(path: Path, design: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(design, indent=1, sort_keys=True))


def _check_same(theirs: Any, ours: Mapping[str, Any], where: str) -> None:
    if not isinstance(theirs, dict):
        raise InputError(f"{where}: {_DESIGN} describes no sweep; give a new folder")
    for name, value in json.loads(json.dumps(ours)).items():
        if theirs.get(name) != value:
            raise InputError(
                f"{where}: holds another sweep: its {name} is {_short(theirs.get(name))}, not "
                f"{_short(value)}; give a new folder"
            )


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _read_part(data: bytes, sizes: Sequence[int]) -> dict[int, pd.DataFrame] | None:
    """Return the rows by task; None when the file is damaged."""
    try:
        arrow = pq.read_table(io.BytesIO(data))
        tasks = json.loads(arrow.schema.metadata[_TASKS])
        ends = [0]
        for task in tasks:
            ends.append(ends[-1] + sizes[task])
    except (OSError, ValueError, KeyError, TypeError, IndexError, pa.ArrowException):
        return None
    if ends[-1] != arrow.num_rows:
        return None
    table = arrow.to_pandas()
    return {
        task: table.iloc[start:end].reset_index(drop=True)
        for task, start, end in zip(tasks, ends, ends[1:], strict=False)
    }
