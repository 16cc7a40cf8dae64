"""The text of the files of source that traces name, and doubts about it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from warpstack._util.arguments import printable
from warpstack._util.input_file import MAX_SOURCE_BYTES, read_input
from warpstack._util.lazy import pandas as pd
from warpstack.errors import InputError, TraceWarning, warn
from warpstack.traces.trace import KernelTrace, SourceFile

__all__ = ["Sources", "short_names"]


class Sources:
    """The texts of the files that kernels name.

    A file's text is that of a given path that is this file or has its name, else the file itself where it
    is there. Of kernels that know a single file, or none, a single given path is the text whatever its name.

    Parameters
    ----------
    kernels
        Kernels whose instructions name files.
    given
        Paths of sources.
    option
        How messages call `given`.

    Raises
    ------
    InputError
        If a given path cannot be read.
    """

    def __init__(
        self,
        kernels: Iterable[KernelTrace],
        given: Sequence[str | os.PathLike[str]] = (),
        option: str = "source",
    ) -> None:
        self._files: dict[str, SourceFile] = {}
        for kernel in kernels:
            for file in kernel.source_files:
                self._files.setdefault(file.name, file)
        self._option = option
        self._texts: dict[str, list[str]] = {}
        self._paths: dict[str, Path] = {}
        self._given: set[str] = set()
        for path in given:
            self._take(Path(path), alone=len(given) == 1)
        folders = [path.parent for path in self._paths.values()]
        for name in self._files:
            if name not in self._texts:
                self._find(name, folders)

    def _take(self, path: Path, *, alone: bool) -> None:
        try:
            text = _read(path)
        except OSError as error:
            raise InputError(
                f"{self._option} {printable(path)}: cannot be read: {error.strerror or error}"
            ) from None
        names = [name for name in self._files if _same_parts(name, path) > 0]
        most = max((_same_parts(name, path) for name in names), default=0)
        names = [name for name in names if _same_parts(name, path) == most]
        if not names and alone and len(self._files) < 2:
            names = list(self._files) or [""]
        if not names:
            known = ", ".join(sorted(short_names(self._files).values()))
            warn(
                f"{self._option} {printable(path)}: no instruction is of this file; the trace names {known}",
                TraceWarning,
            )
        for name in names:
            self._texts[name] = text
            self._paths[name] = path
            self._given.add(name)

    def _find(self, name: str, folders: Sequence[Path]) -> None:
        """Take the text of a file that no given path is."""
        paths = [Path(name)] if os.path.isabs(name) else [folder / name for folder in folders]
        for path in paths:
            try:
                self._texts[name] = _read(path)
            except (OSError, InputError, ValueError):
                continue
            self._paths[name] = path
            return

    def __getitem__(self, name: str) -> Sequence[str]:
        """Return the lines of a file; none where nobody has it."""
        return self._texts.get(name, ())

    def code(self, name: str, line: int) -> str:
        """Return a line of a file; empty where it is not there."""
        text = self[name]
        return text[line - 1] if 0 < line <= len(text) else ""

    def is_given(self, name: str) -> bool:
        """Return whether a given path is the text of the file."""
        return name in self._given

    def warn_of_doubts(self, table: pd.DataFrame) -> None:
        """Warn of texts that are not there, or not what was compiled.

        Parameters
        ----------
        table
            Rows of `warpstack.lines`.
        """
        for doubt in self._doubts(table):
            warn(doubt, TraceWarning)

    def _doubts(self, table: pd.DataFrame) -> list[str]:
        lines = table[table["source_line"] > 0].groupby("file")["source_line"].max()
        found = []
        missing = [name for name in lines.index if name not in self._texts and name]
        if missing and self._texts:
            names = ", ".join(map(printable, missing))
            found.append(f"the text of {names} was not found; give it with {self._option}")
        for name, last in lines.items():
            if name in self._texts and (doubt := self._doubt(str(name), int(last))):
                found.append(doubt)
        return found

    def _doubt(self, name: str, last: int) -> str:
        path, text = self._paths[name], self._texts[name]
        file = self._files.get(name, SourceFile(name, 0, 0))
        facts = path.stat() if path.exists() else None
        where = printable(path)
        if facts is not None and file.bytes and facts.st_size != file.bytes:
            return (
                f"{where}: has {facts.st_size:,} bytes, and had {file.bytes:,} when it was compiled: its "
                "lines may be others than those of the trace; trace it again"
            )
        if last > len(text):
            return (
                f"{where}: the trace has instructions of line {last}, and the file ends after line "
                f"{len(text)}: it is not what was compiled; trace it again"
            )
        is_itself = os.path.isabs(name) and path.resolve() == Path(name).resolve()
        if facts is not None and is_itself and file.time and int(facts.st_mtime) > file.time:
            return (
                f"{where}: was changed after it was compiled: its lines may be others than those of the "
                "trace; trace it again"
            )
        return ""


@cache
def _read(path: Path) -> list[str]:
    return read_input(path, "source", MAX_SOURCE_BYTES).decode("utf-8", "replace").splitlines()


def _same_parts(name: str, path: Path) -> int:
    """Return how many parts at their ends a name and a path have in common."""
    count = 0
    for ours, theirs in zip(
        reversed(Path(name).parts), reversed(path.absolute().parts), strict=False
    ):
        if ours != theirs:
            break
        count += 1
    return count


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Return a short name for each file: its last parts, as many as tell it from the others."""
    parts = {name: Path(name).parts for name in names if name}
    result = {}
    for name, own in parts.items():
        count = 1
        while count < len(own) and any(
            other != name and rest[-count:] == own[-count:] for other, rest in parts.items()
        ):
            count += 1
        result[name] = "/".join(own[-count:]) if count < len(own) else name
    return result
