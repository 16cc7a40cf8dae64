"""Files and folders that appear complete or not at all, and digests that tell damaged ones.

Everything is written beside its place, under a hidden name that says who writes it, and moved there.
What a killed process leaves behind under such a name is removed by a later one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from warpstack._util.arguments import printable
from warpstack._util.input_file import open_input
from warpstack.errors import InputError

__all__ = [
    "digest_of",
    "file_digest",
    "is_sound",
    "new_folder",
    "remove_leftovers",
    "sealed",
    "temporary_folder",
    "write_file",
]

PARTIAL = ".partial-"
_TEMPORARY = "warpstack-"
#: Host, process, its start, and a number of its own.
_WRITER = re.compile(
    rf"(?:{re.escape(PARTIAL)}|{_TEMPORARY})([0-9a-f]{{12}})-(\d+)-(\d+)-[0-9a-f]{{8}}(?:\.\w+)?"
)
#: What another host writes, whose processes cannot be looked at, is left behind when nothing of it has
#: changed for so long.
_STALE_SECONDS = 86_400
_PIECE_BYTES = 1 << 20
_SEAL = "digest"
#: Where the folder that is being replaced waits.
_OLD = "old"


# --- digests ------------------------------------------------------------------------------------


def digest_of(data: bytes) -> str:
    """Return the first half of the SHA-256 digest of some bytes: 32 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()[:32]


def file_digest(path: Path) -> str:
    """Return the `digest_of` the content of a file."""
    digest = hashlib.sha256()
    with open_input(path) as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()[:32]


def sealed(content: Mapping[str, Any]) -> str:
    """Return an object as JSON that carries a digest of itself."""
    return json.dumps({**content, _SEAL: _seal(content)}, indent=1)


def is_sound(content: Mapping[str, Any]) -> bool:
    """Return whether an object, read from JSON, is as `sealed` wrote it."""
    return bool(content.get(_SEAL) == _seal(content))


def _seal(content: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in content.items() if key != _SEAL}
    return digest_of(json.dumps(rest, sort_keys=True).encode())


# --- writing ------------------------------------------------------------------------------------


def write_file(path: Path, content: bytes | Callable[[Path], object]) -> None:
    """Write a file, complete or not at all, with the mode that the user's mask gives to new files.

    Parameters
    ----------
    path
        The place of the file.
    content
        What it holds, or a function that writes it to another path with the same ending.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    ending = path.suffix if path.suffix[1:].isalnum() else ""
    partial = path.parent / f"{PARTIAL}{_writer()}{ending}"
    try:
        if isinstance(content, bytes):
            partial.write_bytes(content)
        else:
            content(partial)
        os.replace(partial, path)
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()


@contextlib.contextmanager
def new_folder(
    path: Path, *, overwrite: bool, replaceable: Callable[[Path], bool]
) -> Iterator[Path]:
    """Yield an empty folder that takes the place of `path` when all went well, or leaves no trace.

    With `overwrite`, a folder at that place is deleted last if `replaceable` says that it is ours.
    """
    where = printable(path)
    place = Path(os.path.realpath(path))
    work = place.parent / f"{PARTIAL}{_writer()}"
    try:
        if place.exists() and not (overwrite and replaceable(place)):
            remedy = "choose another name" if overwrite else "choose another name or overwrite it"
            raise InputError(f"{where}: exists already; {remedy}")
        remove_leftovers(place.parent)
        new = work / "new"
        new.mkdir(parents=True)
        yield new
        _put_in_place(new, place)
    except OSError as error:
        raise InputError(f"{where}: cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _put_in_place(new: Path, place: Path) -> None:
    """Move a folder to its place. One that is there is deleted last, so that nothing gets lost."""
    old = None
    if place.exists():
        # Under its name, so that it goes back if this process is killed between the two moves.
        old = new.parent / _OLD / place.name
        old.parent.mkdir()
        place.rename(old)
    try:
        new.rename(place)
    except BaseException:
        if old is not None:
            old.rename(place)
        raise


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield an empty folder for temporary files, which is removed at the end."""
    parent = Path(tempfile.gettempdir())
    remove_leftovers(parent)
    folder = parent / f"{_TEMPORARY}{_writer()}"
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# --- what killed processes leave behind ---------------------------------------------------------


def remove_leftovers(folder: Path, *, own: bool = False) -> None:
    """Remove what killed processes left in a folder, but nothing that a living one writes.

    Parameters
    ----------
    folder
        The folder to look into; what cannot be read or removed stays.
    own
        Whether the folder is the program's own: what is hidden there and unfinished, but does not say
        who writes it, comes from an earlier version, and goes when it is old.
    """
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = _WRITER.fullmatch(entry.name)
            if match is None and not (own and entry.name.startswith(PARTIAL)):
                continue
            path = Path(entry.path)
            with contextlib.suppress(OSError):
                if _is_left(path, match):
                    _remove(path)


def _remove(path: Path) -> None:
    if not path.is_dir():
        path.unlink()
        return
    # A folder that was being replaced, and whose replacement is not at its place.
    with contextlib.suppress(FileNotFoundError):
        for old in list((path / _OLD).iterdir()):
            place = path.parent / old.name
            if not place.exists():
                old.rename(place)
    shutil.rmtree(path, ignore_errors=True)


def _is_left(path: Path, match: re.Match[str] | None) -> bool:
    """Return whether the process that wrote a hidden file or folder has ended."""
    if match is not None and match[1] == _host():
        return not _lives(int(match[2]), int(match[3]))
    newest = path.lstat().st_mtime
    for parent, folders, files in os.walk(path):
        for name in (*folders, *files):
            with contextlib.suppress(OSError):
                newest = max(newest, os.lstat(os.path.join(parent, name)).st_mtime)
    return newest < time.time() - _STALE_SECONDS


def _lives(pid: int, start: int) -> bool:
    """Return whether the process with this number started at that time and can still write."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # somebody else's
        pass
    state = _state(pid)
    if state is None:
        return True
    # A process that has ended may wait for its parent to ask for its status; it has no threads then.
    ended = state[0] in ("Z", "X") and int(state[17]) <= 1
    return not ended and int(state[19]) == start


def _state(pid: int) -> list[str] | None:
    """Return the fields of ``/proc/PID/stat`` behind the command; None where there is no such file."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].decode().split()
    except (OSError, ValueError):
        return None


def _writer() -> str:
    """Return a new name that says which process of which host it belongs to."""
    pid = os.getpid()
    return f"{_host()}-{pid}-{_start(pid)}-{os.urandom(4).hex()}"


@cache
def _start(pid: int) -> int:
    state = _state(pid)
    return 0 if state is None else int(state[19])


@cache
def _host() -> str:
    """Return what distinguishes the processes that this one sees from others with the same numbers."""
    parts = [os.uname().nodename]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text())
    with contextlib.suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
