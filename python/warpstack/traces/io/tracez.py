"""``kernel-N.tracez``: the container in which Accel-Sim 2.0 packs the lines of a ``.traceg``.

A file is the header's text up to a zero byte; the size of a dictionary and a number of instructions,
four bytes each; the dictionary; for each warp its number of instructions and of parts, and each part
as its size and a frame of zstd, whose lines have no line end behind the last; then an index of thread
blocks and their warps, and where the index begins, in eight bytes. Numbers are little-endian.

Source: Accel-Sim's ``tracez_format.h``, ``post-traces-processing`` and ``warp_trace_stream.h``.
"""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpstack._util.arguments import printable
from warpstack._util.input_file import open_input
from warpstack._util.progress import Progress
from warpstack.errors import InputError
from warpstack.traces.io.packed import in_threads

__all__ = ["chunks"]

_MAX_HEADER_BYTES = 1 << 26
_MAX_DICTIONARY_BYTES = 1 << 26
_MAX_INDEX_BYTES = 1 << 31
#: Unpacked bytes of one part of a warp; Accel-Sim makes parts of some 2,000 lines.
_MAX_PART_BYTES = 1 << 28
_BLOCK = struct.Struct("<11I")
_WARP = struct.Struct("<IIQ")
_REMEDY = "make it again with Accel-Sim's post-traces-processing"


@dataclass(frozen=True)
class _Warp:
    instructions: int
    parts: int
    offset: int


@dataclass(frozen=True)
class _Block:
    #: Index in the grid, three numbers of the cluster's, three in the cluster, and the rank there.
    numbers: tuple[int, ...]
    warps: list[_Warp]


class _Zstd:
    """The library zstd of the system: Python has no zstd with dictionaries before 3.14."""

    def __init__(self, path: Path) -> None:
        import ctypes.util  # loads subprocess, which few reads need

        name = ctypes.util.find_library("zstd") or "libzstd.so.1"
        try:
            library = ctypes.CDLL(name)
        except OSError:
            raise InputError(
                f"{printable(path)}: .tracez files need the library zstd ({name}), which is not there; "
                "install it (Debian: apt install libzstd1), or run Accel-Sim's post-traces-processing "
                "with --text"
            ) from None
        for function, result, arguments in (
            ("ZSTD_createDDict", ctypes.c_void_p, (ctypes.c_char_p, ctypes.c_size_t)),
            ("ZSTD_freeDDict", ctypes.c_size_t, (ctypes.c_void_p,)),
            ("ZSTD_createDCtx", ctypes.c_void_p, ()),
            ("ZSTD_freeDCtx", ctypes.c_size_t, (ctypes.c_void_p,)),
            ("ZSTD_isError", ctypes.c_uint, (ctypes.c_size_t,)),
            ("ZSTD_getErrorName", ctypes.c_char_p, (ctypes.c_size_t,)),
            (
                "ZSTD_getFrameContentSize",
                ctypes.c_ulonglong,
                (ctypes.c_char_p, ctypes.c_size_t),
            ),
            (
                "ZSTD_decompress_usingDDict",
                ctypes.c_size_t,
                (
                    ctypes.c_void_p,
                    ctypes.c_char_p,
                    ctypes.c_size_t,
                    ctypes.c_char_p,
                    ctypes.c_size_t,
                    ctypes.c_void_p,
                ),
            ),
        ):
            bound = getattr(library, function)
            bound.restype, bound.argtypes = result, arguments
        self.library: Any = library


class _Unpacker:
    """Unpacks frames with one dictionary, in any thread."""

    def __init__(self, path: Path, dictionary: bytes) -> None:
        self._zstd = _Zstd(path).library
        self._dictionary = (
            self._zstd.ZSTD_createDDict(dictionary, len(dictionary)) if dictionary else None
        )
        if dictionary and not self._dictionary:
            raise ValueError("its dictionary is not one of zstd")
        self._of_thread = threading.local()
        self._contexts: list[int] = []

    def close(self) -> None:
        for context in self._contexts:
            self._zstd.ZSTD_freeDCtx(context)
        self._contexts = []
        self._zstd.ZSTD_freeDDict(self._dictionary)
        self._dictionary = None

    def unpack(self, frame: bytes) -> bytes:
        size = self._zstd.ZSTD_getFrameContentSize(frame, len(frame))
        if size > _MAX_PART_BYTES:  # or unknown, or not a frame
            raise ValueError("its lines are not a zstd frame of known size")
        context = getattr(self._of_thread, "context", None)
        if context is None:
            context = self._of_thread.context = self._zstd.ZSTD_createDCtx()
            self._contexts.append(context)
        buffer = ctypes.create_string_buffer(max(size, 1))
        count = self._zstd.ZSTD_decompress_usingDDict(
            context, buffer, size, frame, len(frame), self._dictionary
        )
        if self._zstd.ZSTD_isError(count):
            raise ValueError(f"zstd: {self._zstd.ZSTD_getErrorName(count).decode()}")
        return ctypes.string_at(buffer, count)


def chunks(path: Path, bar: Progress) -> Generator[bytes, None, None]:
    """Yield the text of the ``.traceg`` that Accel-Sim's traceDsm makes of a ``.tracez``.

    Thread blocks are unpacked beside each other.

    Raises
    ------
    InputError
        If the file is cut or damaged: the message names it, thread block and warp. Errors in lines
        name the line of the text.
    """
    where = printable(path)
    with open_input(path) as file:
        descriptor = file.fileno()
        size = file.seek(0, os.SEEK_END)
        try:
            header, dictionary, begin = _beginning(file)
            end, blocks = _index(descriptor, size)
        except (struct.error, ValueError, EOFError) as error:
            reason = "" if isinstance(error, struct.error) else f": {error}"
            raise InputError(f"{where}: the file is cut or damaged{reason}; {_REMEDY}") from None
        if b"\n-" not in b"\n" + header:
            raise InputError(f"{where}: the header has no lines; {_REMEDY}")
        try:
            unpacker = _Unpacker(path, dictionary)
        except ValueError as error:
            raise InputError(f"{where}: the file is damaged: {error}; {_REMEDY}") from None
        try:
            yield header if header.endswith(b"\n") else header + b"\n"
            bar.update(begin)

            def text(block: _Block) -> bytes:
                return _text(descriptor, begin, end, block, unpacker, where)

            for piece in in_threads(text, blocks):
                yield piece
                bar.update((end - begin) // max(len(blocks), 1))
        finally:
            unpacker.close()


def _beginning(file: Any) -> tuple[bytes, bytes, int]:
    """Return the header, the dictionary, and where they end."""
    file.seek(0)
    header = bytearray()
    while (place := header.find(b"\0")) < 0:
        piece = file.read(1 << 16)
        if not piece or len(header) > _MAX_HEADER_BYTES:
            raise ValueError("its header does not end")
        header += piece
    file.seek(place + 1)
    dictionary_size, _ = struct.unpack("<II", file.read(8))
    if dictionary_size > _MAX_DICTIONARY_BYTES:
        raise ValueError(f"its dictionary would have {dictionary_size} bytes")
    dictionary = file.read(dictionary_size)
    if len(dictionary) < dictionary_size:
        raise ValueError("its dictionary is cut")
    return bytes(header[:place]), dictionary, place + 9 + dictionary_size


def _index(descriptor: int, size: int) -> tuple[int, list[_Block]]:
    """Return where the index begins, and what it says of the thread blocks."""
    (begin,) = struct.unpack("<Q", os.pread(descriptor, 8, max(size - 8, 0)))
    if not 0 < begin < size - 8 or size - begin > _MAX_INDEX_BYTES:
        raise ValueError("where its index begins is outside the file")
    index = os.pread(descriptor, size - 8 - begin, begin)
    (count,) = struct.unpack_from("<I", index)
    place = 4
    blocks = []
    for _ in range(count):
        *numbers, num_warps = _BLOCK.unpack_from(index, place)
        place += _BLOCK.size
        warps = []
        for _ in range(num_warps):
            warp = _Warp(*_WARP.unpack_from(index, place))
            place += _WARP.size + 4 * warp.parts
            warps.append(warp)
        blocks.append(_Block(tuple(numbers), warps))
    if place != len(index):
        raise ValueError("its index has another length than it says")
    return begin, blocks


def _text(
    descriptor: int, begin: int, end: int, block: _Block, unpacker: _Unpacker, where: str
) -> bytes:
    """Return the lines of a thread block."""
    x, y, z, *cluster = block.numbers
    lines = [
        f"\n#BEGIN_TB\n\nthread block = {x},{y},{z}\n"
        f"cluster id = {cluster[0]},{cluster[1]},{cluster[2]}\n"
        f"cluster cta = {cluster[3]},{cluster[4]},{cluster[5]}\ncluster rank = {cluster[6]}\n".encode()
    ]
    for number, warp in enumerate(block.warps):
        try:
            lines.append(f"\nwarp = {number}\ninsts = {warp.instructions}\n".encode())
            place = warp.offset
            if not begin <= place <= end - 8:
                raise ValueError("its lines would be outside the file's")
            head = struct.unpack("<II", os.pread(descriptor, 8, place))
            if head != (warp.instructions, warp.parts):
                raise ValueError("the index says other numbers of instructions or parts")
            place += 8
            for _ in range(warp.parts):
                (length,) = struct.unpack("<I", os.pread(descriptor, 4, place))
                if length > end - place - 4:
                    raise ValueError("its lines would go on behind the file's")
                part = unpacker.unpack(os.pread(descriptor, length, place + 4))
                place += 4 + length
                if b"#" in part or b"=" in part:
                    raise ValueError("its lines are not instructions")
                lines += [part, b"\n"] if part else []
        except (struct.error, ValueError) as error:
            reason = "it ends too soon" if isinstance(error, struct.error) else str(error)
            raise InputError(
                f"{where}: thread block {x},{y},{z}, warp {number}: {reason}; the file is cut or "
                f"damaged, {_REMEDY}"
            ) from None
    lines.append(b"\n#END_TB\n")
    return b"".join(lines)
