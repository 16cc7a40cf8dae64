"""Arrays of any stage in a folder, found by a digest of what they depend on (``warpstack cache``)."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from warpstack import _core
from warpstack._util.arguments import as_path, printable
from warpstack._util.checked import strictly_checked
from warpstack._util.files import PARTIAL, remove_leftovers, write_file
from warpstack._util.input_file import open_input
from warpstack.errors import InputError, shown

__all__ = ["CacheLike", "StageCache", "as_cache", "default_folder", "program"]

#: This number changes when the meaning of an entry does.
FORMAT_VERSION = 5
#: Folder of the cache; ``off`` (or ``0``) switches it off.
FOLDER_VARIABLE = "WARPSTACK_CACHE"
LIMIT_VARIABLE = "WARPSTACK_CACHE_MIB"
DEFAULT_LIMIT_MIB = 1024.0

_ENDING = ".stage"
_DIGEST_BYTES = 32
#: Share of the cache that an eviction leaves, so that not every entry evicts one.
_KEPT_SHARE = 0.9
#: Modules that stages are made of beside the core, and SciPy, which clusters warps.
_SOURCES = (
    "exploration/recorded.py",
    "hardware/description.py",
    "hardware/stages.py",
    "hardware/values.py",
    "interval/profile.py",
    "memory/caches.py",
    "models/interval_simulation.py",
    "models/pipeline.py",
    "timing/simulation.py",
)
_OFF = ("off", "0", "no", "false")

Arrays = Mapping[str, npt.NDArray[Any]]


class StageCache:
    """A folder of stage results, by a digest of everything that they depend on.

    Several processes may use it at once. An entry is written beside its place and moved there; one
    that cannot be read is removed and counts as missing. When the entries exceed the limit, those
    used least recently go.

    Parameters
    ----------
    folder
        Where the entries are; made when the first is written.
    limit_bytes
        Size of all entries together. Each process counts what it writes itself and looks at all
        entries when it writes its first and when its count passes the limit: several processes may
        exceed it together until one of them looks.

    Raises
    ------
    InputError
        If the folder is not a path, or the limit is negative.
    """

    @strictly_checked
    def __init__(self, folder: str | os.PathLike[str], *, limit_bytes: float | None = None) -> None:
        self.folder = as_path("cache", folder)
        limit = default_limit_bytes() if limit_bytes is None else limit_bytes
        if not 0 <= limit < math.inf:
            raise InputError(f"cache: limit_bytes = {shown(limit)} is not a number of bytes")
        self.limit_bytes = int(limit)
        self._size: int | None = None

    @strictly_checked
    def get(self, stage: str, key: str) -> dict[str, npt.NDArray[Any]] | None:
        """Return the arrays of an entry, or None if it is missing or damaged."""
        path = self._path(stage, key)
        try:
            with open_input(path) as file:
                data = file.read()
        except (OSError, InputError):
            return None
        arrays = _unpack(path.name, data)
        if arrays is None:
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # used just now
        return arrays

    @strictly_checked
    def put(self, stage: str, key: str, arrays: Arrays) -> None:
        """Keep arrays under a key. A folder that cannot be written keeps nothing."""
        path = self._path(stage, key)
        for name, array in arrays.items():
            if not name.isidentifier() or name == "file" or array.dtype.hasobject:
                raise InputError(f"cache: {shown(name)} is not an array that can be kept")
        data = _pack(path.name, arrays)
        if len(data) > self.limit_bytes:
            return
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_file(path, data)
        # The size is added up from the first look on; entries of other processes are seen at the next one.
        self._size = self.size_bytes if self._size is None else self._size + len(data)
        if self._size > self.limit_bytes:
            self._evict()

    def _path(self, stage: str, key: str) -> Path:
        name = f"{stage}-{key}{_ENDING}"
        if not re.fullmatch(r"[\w.-]{1,200}", name, re.ASCII):
            raise InputError(f"cache: {shown(name)} is not the name of an entry")
        return self.folder / name

    def _entries(self) -> list[tuple[float, int, Path]]:
        """Return when each entry was used, its size and its path."""
        entries = []
        remove_leftovers(self.folder, own=True)
        with contextlib.suppress(OSError), os.scandir(self.folder) as found:
            for item in found:
                if item.name.startswith(PARTIAL) or not item.name.endswith(_ENDING):
                    continue
                with contextlib.suppress(OSError):
                    stat = item.stat(follow_symlinks=False)
                    entries.append((stat.st_mtime, stat.st_size, Path(item.path)))
        return entries

    def _evict(self) -> None:
        entries = sorted(self._entries())
        size = sum(entry[1] for entry in entries)
        for _, entry_size, path in entries:
            if size <= self.limit_bytes * _KEPT_SHARE:
                break
            with contextlib.suppress(OSError):
                path.unlink()
            size -= entry_size
        self._size = size

    @property
    def size_bytes(self) -> int:
        """Bytes of all entries."""
        return sum(size for _, size, _ in self._entries())

    def summary(self) -> list[dict[str, Any]]:
        """Return number and size in bytes of the entries of each stage."""
        stages: dict[str, dict[str, Any]] = {}
        for _, size, path in sorted(self._entries(), key=lambda entry: entry[2].name):
            stage = path.name.rpartition("-")[0]
            row = stages.setdefault(stage, {"stage": stage, "entries": 0, "bytes": 0})
            row["entries"] += 1
            row["bytes"] += size
        return list(stages.values())

    def clear(self) -> int:
        """Remove all entries and return how many there were."""
        removed = 0
        for _, _, path in self._entries():
            with contextlib.suppress(OSError):
                path.unlink()
                removed += 1
        self._size = 0
        return removed

    def __repr__(self) -> str:
        return f"<StageCache {printable(self.folder)}: at most {self.limit_bytes / 2**20:g} MiB>"


CacheLike = Union[bool, str, "os.PathLike[str]", StageCache, None]


def as_cache(given: CacheLike) -> StageCache | None:
    """Return the cache that a caller asks for; None for no cache.

    Parameters
    ----------
    given
        True: the user's, unless the environment switches it off or there is no home folder. False or
        None: no cache. Otherwise a cache or its folder.
    """
    if isinstance(given, StageCache):
        return given
    if given is None or given is False:
        return None
    if given is True:
        if is_off():
            return None
        try:
            folder = default_folder()
        except InputError:  # nobody named a folder: there is no place to keep results
            return None
        return StageCache(folder)
    return StageCache(given)


def is_off() -> bool:
    """Return whether the environment switches the cache off."""
    return os.environ.get(FOLDER_VARIABLE, "").strip().lower() in _OFF


def default_folder() -> Path:
    """Return the folder of the user's cache: ``WARPSTACK_CACHE``, or the system's place for caches.

    Raises
    ------
    InputError
        If it is in the home folder and the user has none.
    """
    given = os.environ.get(FOLDER_VARIABLE, "")
    try:
        if given.strip() and not is_off():
            return Path(given).expanduser()
        from platformdirs import user_cache_path

        return user_cache_path("warpstack")
    except RuntimeError:
        raise InputError(
            f"cache: there is no home folder; set the environment variable {FOLDER_VARIABLE} to a folder"
        ) from None


def default_limit_bytes() -> float:
    """Return the size limit that ``WARPSTACK_CACHE_MIB`` sets, or 1 GiB.

    Raises
    ------
    InputError
        If the variable is not a size.
    """
    text = os.environ.get(LIMIT_VARIABLE, "").strip()
    try:
        limit = float(text) if text else DEFAULT_LIMIT_MIB
        if not (math.isfinite(limit) and limit >= 0):
            raise ValueError
    except ValueError:
        raise InputError(
            f"environment variable {LIMIT_VARIABLE} = {text!r} is not a number of MiB"
        ) from None
    return limit * 2**20


def key_of(digests: Sequence[str], settings: Mapping[str, Any]) -> str:
    """Return the digest of what a result depends on: traces, settings, and the program itself."""
    parts = [FORMAT_VERSION, program(), list(digests), settings]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:40]


@cache
def program() -> str:
    """Return a digest that tells this build of the stages from another one of the same version."""
    built = Path(_core.__file__).stat()
    parts = [_core.__version__, built.st_size, built.st_mtime_ns, np.__version__]
    digest = hashlib.sha256(json.dumps(parts).encode())
    for name in _SOURCES:
        digest.update((Path(__file__).parents[1] / name).read_bytes())
    return digest.hexdigest()


def _pack(name: str, arrays: Arrays) -> bytes:
    """Return arrays as bytes that begin with a digest of the entry's name and the rest."""
    body = io.BytesIO()
    save: Any = np.savez  # whose keywords are names of arrays
    save(body, **arrays)
    data = body.getvalue()
    return _digest(name, data) + data


def _unpack(name: str, data: bytes) -> dict[str, npt.NDArray[Any]] | None:
    body = data[_DIGEST_BYTES:]
    if _digest(name, body) != data[:_DIGEST_BYTES]:
        return None
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
            return {entry: arrays[entry] for entry in arrays.files}
    except Exception:  # NumPy and zipfile have many kinds for what is not an archive of arrays
        return None


def _digest(name: str, data: bytes) -> bytes:
    # With the name: an entry that was renamed would be another's result.
    digest = hashlib.sha256(name.encode() + b"\0")
    digest.update(data)
    return digest.digest()
