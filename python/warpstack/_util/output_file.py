"""Files that commands write: what they may replace, and what never gets lost.

One rule for all: what the command reads is never replaced. A file that is there is replaced if warpstack
made it, or if the user says so. Links are followed. A device or a pipe is written into, if the user says
so, and a folder never becomes a file.
"""

from __future__ import annotations

import gzip
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from warpstack._util.arguments import printable
from warpstack._util.files import temporary_folder, write_file
from warpstack._util.input_file import kind_of, was_opened
from warpstack.errors import InputError

__all__ = ["MADE_BY", "OutputFile", "existing", "is_marked", "picture_metadata"]

#: Metadata of pages, pictures and timelines.
MADE_BY = "made by warpstack"
#: Where a picture of each kind says it; the others cannot be told from those of other programs.
_PICTURE_FIELDS = {
    "png": "Software",
    "pdf": "Creator",
    "svg": "Creator",
    "ps": "Creator",
    "eps": "Creator",
}
#: Pictures that matplotlib writes without such a field.
_UNMARKED = frozenset(
    {"jpg", "jpeg", "tif", "tiff", "webp", "avif", "gif", "raw", "rgba", "pgf", "svgz"}
)
_MARK_BYTES = 1 << 16


def picture_metadata(path: Path) -> Mapping[str, str] | None:
    """Return what `matplotlib.figure.Figure.savefig` puts into a picture, so that it is known again."""
    field = _PICTURE_FIELDS.get(path.suffix[1:].lower())
    return None if field is None else {field: MADE_BY}


def is_marked(path: Path) -> bool:
    """Return whether a page, picture or timeline says that warpstack made it."""
    mark = MADE_BY.encode()
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            start = file.read(_MARK_BYTES)
            file.seek(max(size - _MARK_BYTES, 0))
            if mark in start or mark in file.read(_MARK_BYTES):
                return True
        if path.suffix == ".gz":
            with gzip.open(path) as packed:
                return mark in packed.read(_MARK_BYTES)
    except (OSError, EOFError):
        return False
    return False


@dataclass(frozen=True)
class OutputFile:
    """A file to write, which may be there already.

    Attributes
    ----------
    path
        Where the user wants it.
    label
        What the user calls it, for errors: ``"--output"``, or nothing.
    overwrite
        Whether what is there may be replaced.
    inputs
        Files and folders that the same command reads.
    is_ours
        Whether a regular file is one that may be replaced anyhow; None: none is.
    option
        How the user says that it may be replaced.
    """

    path: Path
    label: str = ""
    overwrite: bool = False
    inputs: tuple[Path, ...] = ()
    is_ours: Callable[[Path], bool] | None = is_marked
    option: str = "--overwrite"

    def check(self) -> None:
        """Refuse a file that may not be written, before any work is done.

        Raises
        ------
        InputError
            If the folder does not exist or is not writable, or what is there must not be replaced.
        """
        place = self.place
        if not place.parent.is_dir():
            raise self._error(f"there is no folder {printable(place.parent)}; make it first")
        try:
            found = place.stat()
        except FileNotFoundError:
            found = None
        except OSError as error:
            raise self._error(f"cannot be written: {error.strerror or error}") from None
        if found is not None:
            self._check_there(place, found)
        may_write = place if found is not None and not stat.S_ISREG(found.st_mode) else place.parent
        if not os.access(may_write, os.W_OK):
            raise self._error("cannot be written: no permission")

    @property
    def place(self) -> Path:
        """The file's place, with all links resolved.

        A pipe that only a process's descriptor names has no other place.
        """
        real = Path(os.path.realpath(self.path))
        return self.path if not real.exists() and self.path.exists() else real

    def write(self, content: bytes | Callable[[Path], object]) -> None:
        """Write the file, complete or not at all; see `warpstack._util.files.write_file`.

        Raises
        ------
        InputError
            As `check`, and if the operating system does not write it.
        """
        self.check()
        place = self.place
        try:
            if place.exists() and not place.is_file():
                self._write_into(place, content)
            else:
                write_file(self.path, content)
        except OSError as error:
            raise self._error(f"cannot be written: {error.strerror or error}") from None

    def _write_into(self, place: Path, content: bytes | Callable[[Path], object]) -> None:
        if not isinstance(content, bytes):
            with temporary_folder() as folder:
                made = folder / f"output{self.path.suffix}"
                content(made)
                content = made.read_bytes()
        with place.open("wb") as file:
            file.write(content)

    def _check_there(self, place: Path, found: os.stat_result) -> None:
        if stat.S_ISDIR(found.st_mode):
            raise self._error("is a folder; give the name of a file")
        if not stat.S_ISREG(found.st_mode):
            if not self.overwrite:
                kind = kind_of(found.st_mode)
                raise self._error(
                    f"is {kind}; choose another name, or give {self.option} to write into it"
                )
            return
        ours = self.is_ours is not None and self.is_ours(place)
        if was_opened(found) or self._is_input(place, ours):
            raise self._error("is read by this command and would be lost; choose another name")
        if not (ours or self.overwrite):
            raise self._error(
                f"exists already{self._why_not()}; choose another name or give {self.option}"
            )

    def _why_not(self) -> str:
        """Return why a file is not replaced, as far as its kind lets that be known."""
        if self.is_ours is None:
            return ""
        if self.is_ours is is_marked and self.path.suffix[1:].lower() in _UNMARKED:
            return " and is of a kind that does not say whether warpstack made it"
        return " and was not made by warpstack"

    def _is_input(self, place: Path, ours: bool) -> bool:
        """Return whether the command reads the file, or a folder that it belongs to."""
        for given in self.inputs:
            real = Path(os.path.realpath(given))
            if real == place or _is_same(real, place):
                return True
            if real.is_dir() and real in place.parents and not ours:
                return True
        return False

    def _error(self, what: str) -> InputError:
        return InputError(f"{self.label} {printable(self.path)}: {what}".lstrip())


def _is_same(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)  # two names of one file
    except OSError:
        return False


def existing(texts: Iterable[object]) -> tuple[Path, ...]:
    """Return the files and folders among the values of a command's arguments."""
    found: list[Path] = []
    for text in texts:
        if isinstance(text, (list, tuple)):
            found.extend(existing(text))
        elif isinstance(text, (str, os.PathLike)):
            try:
                if os.path.lexists(text):
                    found.append(Path(text))
            except (OSError, ValueError):
                continue
    return tuple(found)
