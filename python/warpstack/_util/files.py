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
import stat
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from warpstack._util.arguments import printable
from warpstack._util.input_file import check_regular, open_input
from warpstack.errors import InputError

__all__ = [
    "SEAL",
    "check_folder",
    "digest_of",
    "file_digest",
    "found_at",
    "is_sound",
    "new_folder",
    "remove_leftovers",
    "sealed",
    "temporary_folder",
    "wait_until_there",
    "write_file",
]

PARTIAL = ".partial-"
_TEMPORARY = "warpstack-"
#: Host, process, its start, and a number of its own.
_WRITER = re.compile(
    rf"(?:{re.escape(PARTIAL)}|{_TEMPORARY})([0-9a-f]{{12}})-(\d+)-(\d+)-[0-9a-f]{{8}}(?:\.\w+)?"
)
#: Seconds without a change after which what another host has written counts as left behind: its processes
#: cannot be looked at.
_STALE_SECONDS = 86_400
_PIECE_BYTES = 1 << 20
SEAL = "digest"
#: Where the folder that is being replaced waits, and the list of the files in it that may be deleted.
_OLD = "old"
_OWN = "own.json"
#: Hundredths of a second for which a reader waits for a folder that is being replaced.
_MOVES_WAITED = 100
#: How often a reader looks at a place whose folder has changed within the last second, a millisecond apart.
_LOOKS = 30

_Found = TypeVar("_Found")


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
    """Return an object as JSON that carries a digest of itself, a line for each entry of its lists.

    Python's encoder with an indent takes five times as long.
    """
    members = {**content, SEAL: _seal(content)}.items()
    return "{\n" + ",\n".join(f" {json.dumps(key)}: {_lines(one)}" for key, one in members) + "\n}"


def _lines(value: Any) -> str:
    if not isinstance(value, list) or not value:
        return json.dumps(value)
    return "[\n" + ",\n".join(f"  {json.dumps(entry)}" for entry in value) + "\n ]"


def is_sound(content: Mapping[str, Any]) -> bool:
    """Return whether an object, read from JSON, is as `sealed` wrote it."""
    return bool(content.get(SEAL) == _seal(content))


def _seal(content: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in content.items() if key != SEAL}
    return digest_of(json.dumps(rest, sort_keys=True).encode())


# --- writing ------------------------------------------------------------------------------------


def write_file(path: Path, content: bytes | Callable[[Path], object]) -> None:
    """Write a file, complete or not at all.

    A link is followed: the file that it leads to is written, and the link stays. A file that is there keeps
    its mode; a new one gets what the user's mask says.

    Parameters
    ----------
    path
        The place of the file.
    content
        What it holds, or a function that writes it to another path with the same ending.

    Raises
    ------
    InputError
        If something is at that place that is not a regular file.
    OSError
        If it cannot be written.
    """
    place = Path(os.path.realpath(path))
    ending = path.suffix if path.suffix[1:].isalnum() else ""
    partial = place.parent / f"{PARTIAL}{_writer()}{ending}"
    mode = None
    with contextlib.suppress(FileNotFoundError):
        mode = place.stat().st_mode
        check_regular(path, mode)
    try:
        if isinstance(content, bytes):
            partial.write_bytes(content)
        else:
            content(partial)
        if mode is not None:
            partial.chmod(stat.S_IMODE(mode))
        os.replace(partial, place)
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()


@contextlib.contextmanager
def new_folder(
    path: Path,
    *,
    overwrite: bool,
    files_of: Callable[[Path], Collection[str] | None],
) -> Iterator[Path]:
    """Yield an empty folder that takes the place of `path` when all went well, or leaves no trace.

    Parameters
    ----------
    path
        The place; a link is followed.
    overwrite
        Whether a folder at that place may be replaced if it is ours. Only the files that it names get lost;
        all others in it stay.
    files_of
        Returns the files that a folder says are its own, by their paths in it; None for a folder that is
        not ours.

    Raises
    ------
    InputError
        As `check_folder`, or if the folder has other files where new ones go or cannot be written.
    """
    where = printable(path)
    place = Path(os.path.realpath(path))
    work = place.parent / f"{PARTIAL}{_writer()}"
    try:
        own = check_folder(path, overwrite=overwrite, files_of=files_of)
        remove_leftovers(place.parent)
        new = work / "new"
        new.mkdir(parents=True)
        yield new
        _put_in_place(new, place, own, where)
    except OSError as error:
        raise InputError(f"{where}: cannot be written: {error.strerror or error}") from None
    finally:
        if work.is_dir():
            _remove(work)


def check_folder(
    path: Path,
    *,
    overwrite: bool,
    files_of: Callable[[Path], Collection[str] | None],
    inputs: Iterable[Path] = (),
    remedy: str = "overwrite it",
) -> frozenset[str]:
    """Return the files that are lost when a folder is replaced; see `new_folder`.

    Parameters
    ----------
    path, overwrite, files_of
        As for `new_folder`.
    inputs
        What is read while the folder is written.
    remedy
        What the caller can do beside choosing another name.

    Raises
    ------
    InputError
        If the folder is there and may not be replaced, or if it, or a file of its own, is an input.
    """
    where = printable(path)
    place = Path(os.path.realpath(path))
    if not os.path.lexists(place):
        return frozenset()
    found = files_of(place) if overwrite else None
    if found is None:
        more = "" if overwrite else f" or {remedy}"
        raise InputError(f"{where}: exists already; choose another name{more}")
    for given in inputs:
        real = Path(os.path.realpath(given))
        inner = str(real.relative_to(place)) if place in real.parents else None
        if real == place or any(name == inner or name.startswith(f"{inner}/") for name in found):
            raise InputError(
                f"{where}: is read by this command and would be lost; choose another name"
            )
    return frozenset(found)


def _put_in_place(new: Path, place: Path, own: Collection[str], where: str) -> None:
    """Move a folder to its place. The own files of a folder that is there are deleted last.

    A process that is killed in between leaves all that it takes to go back or on: what waits has its name,
    and `_OWN` lists the files that may be deleted.
    """
    if not place.exists():
        new.rename(place)
        return
    for name in _files_in(place):
        if name in own:
            continue
        if _is_taken(new, name):
            raise InputError(
                f"{where}: {printable(name)} is not part of the saved trace and would be replaced; "
                "choose another name"
            )
        if not _is_movable(place / name):
            raise InputError(
                f"{where}: {printable(name)} is not part of the saved trace and cannot be moved: no "
                "permission; choose another name"
            )
    old = new.parent / _OLD / place.name
    old.parent.mkdir()
    (new.parent / _OWN).write_text(json.dumps(sorted(own)), encoding="utf-8")
    place.rename(old)
    try:
        new.rename(place)
    except BaseException:
        old.rename(place)
        raise


def _is_taken(folder: Path, name: str) -> bool:
    """Return whether a path, or a folder that it needs, is taken by something else in a folder."""
    path = folder / name
    return os.path.lexists(path) or any(
        parent.is_file() for parent in path.parents if folder in parent.parents
    )


def _is_movable(path: Path) -> bool:
    """Return whether this user may move a file out of its folder."""
    folder = path.parent
    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    found, around, user = path.lstat(), folder.stat(), os.geteuid()
    if around.st_mode & stat.S_ISVTX and user not in (0, found.st_uid, around.st_uid):
        return False
    return not stat.S_ISDIR(found.st_mode) or os.access(path, os.W_OK)


def _files_in(folder: Path) -> Iterator[str]:
    """Yield the paths of all that is in a folder and its folders: files, links, and folders without any."""
    for parent, folders, files in os.walk(folder):
        inner = Path(parent).relative_to(folder)
        links = [name for name in folders if os.path.islink(os.path.join(parent, name))]
        for name in (*files, *links):
            yield str(inner / name)
        if not folders and not files and inner != Path():
            yield str(inner)


def _clear_old(old: Path, place: Path, own: Collection[str]) -> None:
    """Delete a replaced folder's own files; others go to where they were."""
    for name in list(_files_in(old)):
        if name in own:
            continue
        target = place / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(target):  # came in between: both stay
            target = target.with_name(f"{target.name}.old")
        (old / name).rename(target)
    shutil.rmtree(old, ignore_errors=True)


def wait_until_there(path: Path) -> bool:
    """Return whether something is at a place, after the moment in which a folder there is replaced."""
    for _ in range(_MOVES_WAITED):
        if os.path.exists(path) or not _is_moving(path):
            break
        time.sleep(0.01)
    return os.path.exists(path)


def found_at(path: Path, look: Callable[[], _Found | None]) -> _Found | None:
    """Return what `look` finds at a place; None only where it finds nothing while nothing is replaced there.

    Between two looks at a place another process may take a folder away and put the next one there.
    """
    for _ in range(_LOOKS):
        found = look() if wait_until_there(path) else None
        around = Path(os.path.realpath(path)).parent
        if found is not None or path.is_file() or not _has_just_changed(around):
            break
        time.sleep(0.001)
    return found


def _has_just_changed(folder: Path) -> bool:
    """Return whether something came into a folder, or went, within the last second."""
    try:
        return abs(time.time() - folder.stat().st_mtime) < 1
    except OSError:
        return False


def _is_moving(path: Path) -> bool:
    """Return whether a folder of this name waits beside its place for the one that replaces it."""
    place = Path(os.path.realpath(path))
    try:
        with os.scandir(place.parent) as entries:
            works = [entry.path for entry in entries if _WRITER.fullmatch(entry.name)]
    except OSError:
        return False
    # Its move may have ended since the first look.
    return any(os.path.exists(os.path.join(w, _OLD, place.name)) for w in works) or place.exists()


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
    """Remove a hidden file or folder, but nothing that is not ours of a folder that was being replaced."""
    if not path.is_dir():
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        return
    with contextlib.suppress(FileNotFoundError):
        for old in list((path / _OLD).iterdir()):
            place = path.parent / old.name
            if place.exists():
                _clear_old(old, place, json.loads((path / _OWN).read_text(encoding="utf-8")))
            else:  # the replacement is not at its place
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
