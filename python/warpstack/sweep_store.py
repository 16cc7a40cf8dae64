"""Results of a sweep in a folder: a Parquet dataset that grows while the sweep runs."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from warpstack.arguments import as_path, printable
from warpstack.errors import InputError

__all__ = ["SweepStore"]

FORMAT_VERSION = 1
#: Readers of datasets skip names that begin with an underscore or a dot.
_DESIGN = "_design.json"
_PARTIAL = ".partial-"
_PART = re.compile(r"part-[0-9a-f-]+\.parquet")
_TASKS = b"warpstack tasks"
#: Results that come within this time are written together: a file for each would be many.
_WRITE_SECONDS = 1.0


class SweepStore:
    """The folder that a sweep writes its results to.

    ``_design.json`` says which sweep it is; each ``part-*.parquet`` holds the rows of some tasks. All
    are written beside their place and moved there, so that a sweep killed at any time leaves whole
    files only.

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
        resuming.
    """

    def __init__(
        self, folder: str | os.PathLike[str], design: Mapping[str, Any], *, resume: bool
    ) -> None:
        self.folder = as_path("store", folder)
        self._waiting: list[tuple[int, pd.DataFrame]] = []
        self._last_write = time.monotonic()
        where = f"store {printable(self.folder)}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            names = sorted(os.listdir(self.folder))
            if _DESIGN in names:
                _check_same(json.loads((self.folder / _DESIGN).read_text()), design, where)
            elif any(not name.startswith(_PARTIAL) for name in names):
                raise InputError(
                    f"{where}: the folder is not empty and holds no sweep; give a new folder"
                )
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
            if name.startswith(_PARTIAL):  # of a run that was killed
                with contextlib.suppress(OSError):
                    (self.folder / name).unlink()

    def read(self, sizes: Sequence[int]) -> dict[int, pd.DataFrame]:
        """Return the rows of each finished task by its number.

        A damaged part is removed: its tasks are computed again.

        Parameters
        ----------
        sizes
            Rows of each task of the sweep.
        """
        found: dict[int, pd.DataFrame] = {}
        for path in sorted(self.folder.glob("part-*.parquet")):
            part = _read_part(path, sizes)
            if part is None:
                with contextlib.suppress(OSError):
                    path.unlink()
                continue
            found.update(part)
        return found

    def add(self, task: int, table: pd.DataFrame) -> None:
        """Take the rows of a finished task; they are on disk after about a second."""
        self._waiting.append((task, table))
        if time.monotonic() - self._last_write >= _WRITE_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write what `add` has taken.

        Raises
        ------
        InputError
            If the folder cannot be written.
        """
        if not self._waiting:
            return
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
        handle, text = tempfile.mkstemp(prefix=_PARTIAL, dir=self.folder)
        os.close(handle)
        partial = Path(text)
        try:
            write(partial)
            if name is None:
                # The name is as unique as that of the temporary file in this folder.
                name = f"part-{time.time_ns():x}-{os.getpid():x}.parquet"
            os.replace(partial, self.folder / name)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


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


def _read_part(path: Path, sizes: Sequence[int]) -> dict[int, pd.DataFrame] | None:
    """Return the rows by task; None when the file is damaged."""
    try:
        arrow = pq.read_table(path)
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
