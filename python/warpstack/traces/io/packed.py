"""The bytes of trace files, unpacked in other threads than the one that parses them."""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import os
import struct
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Protocol, TypeVar

from warpstack._util.input_file import open_input
from warpstack._util.lazy import pyarrow as pa
from warpstack._util.progress import Progress
from warpstack.errors import InputError

__all__ = ["chunks", "errors_named", "in_threads"]

#: Text that is read at a time. The reader holds as much again, which its threads take in smaller pieces.
_CHUNK_BYTES = 1 << 20
#: Blocks of an .xz file that are unpacked as a whole; larger ones are read as a stream.
_MAX_BLOCK_BYTES = 1 << 26
_XZ_MAGIC = b"\xfd7zXZ\0"
_MAX_THREADS = 16
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class _Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _CountingFile(io.RawIOBase):
    """A file that reports how much of it was read, for progress on compressed files."""

    def __init__(self, path: Path, bar: Progress) -> None:
        self._file = open_input(path)
        self._bar = bar

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        count = self._file.readinto(buffer)
        self._bar.update(count)
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


@contextlib.contextmanager
def _open(path: Path, bar: Progress) -> Iterator[_Stream]:
    with io.BufferedReader(_CountingFile(path, bar), buffer_size=1 << 20) as raw:
        if path.suffix == ".xz":
            with lzma.open(raw) as unpacked:
                yield unpacked
        elif path.suffix == ".gz":
            with gzip.open(raw) as unpacked:
                yield unpacked
        elif path.suffix == ".zst":
            with pa.CompressedInputStream(raw, "zstd") as unpacked:
                yield unpacked
        else:
            yield raw


@contextlib.contextmanager
def errors_named(path: Path) -> Iterator[None]:
    """Turn what is wrong with the compression, or with reading, into an `InputError`."""
    try:
        yield
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile, pa.ArrowException) as error:
        reason = str(error).rstrip(".") or type(error).__name__
        raise InputError(
            f"{path}: cannot be decompressed, it is cut or damaged: {reason}"
        ) from None
    except OSError as error:
        raise InputError(f"{path}: reading failed: {error}") from None


def in_threads(
    work: Callable[[_Item], _Result], items: Iterable[_Item], threads: int | None = None
) -> Iterator[_Result]:
    """Yield `work(item)` in order, some items ahead in other threads."""
    count = threads or min(os.cpu_count() or 1, _MAX_THREADS)
    pending: deque[Future[_Result]] = deque()
    with ThreadPoolExecutor(max_workers=count) as pool:
        try:
            for item in items:
                pending.append(pool.submit(work, item))
                if len(pending) > count + 1:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def chunks(path: Path, bar: Progress) -> Generator[bytes, None, None]:
    """Yield the unpacked content of a file piece by piece, in `errors_named`.

    Blocks of an .xz file, of which ``xz -T`` and Accel-Sim's tracer write several, are unpacked
    beside each other; the next piece of any other file while this one is parsed.
    """
    if path.suffix == ".xz" and (blocks := _xz_blocks(path)) is not None:
        yield from in_threads(_unpacked, _read_blocks(path, blocks, bar))
        return
    with _open(path, bar) as stream, ThreadPoolExecutor(max_workers=1) as pool:
        pending = pool.submit(stream.read, _CHUNK_BYTES)
        while chunk := pending.result():
            pending = pool.submit(stream.read, _CHUNK_BYTES)
            yield chunk


# --- the blocks of an .xz file -------------------------------------------------------------------


def _number(data: bytes, place: int) -> tuple[int, int]:
    """Return a variable-length integer of an .xz index, and where it ends."""
    value = 0
    for i in range(9):
        value |= (data[place + i] & 0x7F) << (7 * i)
        if not data[place + i] & 0x80:
            return value, place + i + 1
    raise ValueError("a number is too long")


def _xz_blocks(path: Path) -> tuple[bytes, list[tuple[int, int]]] | None:
    """Return the flags of an .xz file and the unpadded and the unpacked size of each block.

    None for a file of one block, of several streams, or with anything unexpected: it is read as a
    stream, which says what is wrong with it.
    """
    with open_input(path) as file:
        size = file.seek(0, os.SEEK_END)
        if size < 44:
            return None
        file.seek(0)
        head = file.read(12)
        file.seek(size - 12)
        foot = file.read(12)
        if head[:6] != _XZ_MAGIC or foot[10:] != b"YZ" or foot[8:10] != head[6:8]:
            return None
        index_size = (struct.unpack("<I", foot[4:8])[0] + 1) * 4
        if index_size > size - 24:
            return None
        file.seek(size - 12 - index_size)
        index = file.read(index_size)
    try:
        if index[0] != 0 or zlib.crc32(index[:-4]) != struct.unpack("<I", index[-4:])[0]:
            return None
        count, place = _number(index, 1)
        blocks = []
        for _ in range(min(count, index_size)):
            unpadded, place = _number(index, place)
            unpacked, place = _number(index, place)
            blocks.append((unpadded, unpacked))
    except (IndexError, ValueError):
        return None
    whole = sum((unpadded + 3) // 4 * 4 for unpadded, _ in blocks) + 24 + index_size
    if (
        count != len(blocks)
        or count < 2
        or whole != size
        or max(unpacked for _, unpacked in blocks) > _MAX_BLOCK_BYTES
    ):
        return None
    return head, blocks


def _as_number(value: int) -> bytes:
    result = bytearray()
    while value >= 0x80:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*result, value])


def _read_blocks(
    path: Path, content: tuple[bytes, list[tuple[int, int]]], bar: Progress
) -> Iterator[tuple[bytes, int]]:
    """Yield each block as an .xz file of its own, and its unpacked size."""
    head, blocks = content
    with open_input(path) as file:
        file.seek(12)
        for unpadded, unpacked in blocks:
            block = file.read((unpadded + 3) // 4 * 4)
            bar.update(len(block))
            index = b"\0\1" + _as_number(unpadded) + _as_number(unpacked)
            index += bytes(-len(index) % 4)
            index += struct.pack("<I", zlib.crc32(index))
            about = struct.pack("<I", len(index) // 4 - 1) + head[6:8]
            foot = struct.pack("<I", zlib.crc32(about)) + about + b"YZ"
            yield head + block + index + foot, unpacked


def _unpacked(block: tuple[bytes, int]) -> bytes:
    data, size = block
    decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ)
    # One byte more, so that what follows the last byte is read and checked.
    text = decompressor.decompress(data, size + 1)
    if not decompressor.eof or len(text) != size:
        raise lzma.LZMAError("Corrupt input data")
    return text
