"""``.tracez`` files are read as the ``.traceg`` with the same lines."""

from __future__ import annotations

import ctypes
import ctypes.util
import random
import re
import struct
import warnings
from pathlib import Path

import pytest

import warpstack as ws

CORPUS = Path(__file__).resolve().parents[2] / "fuzz" / "corpus"
ZSTD = ctypes.util.find_library("zstd")
pytestmark = pytest.mark.skipif(ZSTD is None, reason="the library zstd is not there")


def _zstd():
    library = ctypes.CDLL(ZSTD)
    size = ctypes.c_size_t
    library.ZSTD_createCCtx.restype = ctypes.c_void_p
    library.ZSTD_freeCCtx.argtypes = (ctypes.c_void_p,)
    library.ZSTD_compressBound.restype = library.ZSTD_compress_usingDict.restype = size
    library.ZSTD_compressBound.argtypes = (size,)
    text = ctypes.c_char_p
    library.ZSTD_compress_usingDict.argtypes = (
        *(ctypes.c_void_p, text, size, text, size, text, size),
        ctypes.c_int,
    )
    library.ZDICT_trainFromBuffer.restype = size
    return library


def trained(lines: list[bytes]) -> bytes:
    """Return a dictionary of lines, empty where they are too few."""
    library = _zstd()
    buffer = ctypes.create_string_buffer(1 << 14)
    sizes = (ctypes.c_size_t * len(lines))(*map(len, lines))
    count = library.ZDICT_trainFromBuffer(
        buffer, ctypes.c_size_t(len(buffer)), b"".join(lines), sizes, ctypes.c_uint(len(lines))
    )
    return buffer.raw[:count] if count <= len(buffer) else b""


def compress(data: bytes, dictionary: bytes) -> bytes:
    library = _zstd()
    context = library.ZSTD_createCCtx()
    bound = library.ZSTD_compressBound(len(data))
    buffer = ctypes.create_string_buffer(bound)
    count = library.ZSTD_compress_usingDict(
        context, buffer, bound, data, len(data), dictionary, len(dictionary), 3
    )
    library.ZSTD_freeCCtx(context)
    return buffer.raw[:count]


def pack(text: str, dictionary: bytes = b"", part: int = 7) -> bytes:
    """Pack a grouped trace as Accel-Sim's post-processing does, in parts of so many lines."""
    head, *blocks = re.split(r"\n?#BEGIN_TB\n", text)
    packed = bytearray(head.encode() + b"\0" + struct.pack("<II", len(dictionary), part))
    packed += dictionary
    index = bytearray(struct.pack("<I", len(blocks)))
    for block in blocks:
        numbers = re.search(r"thread block = (\d+),(\d+),(\d+)", block)
        warps = re.split(r"warp = \d+\s*\ninsts = \d+\s*\n", block.split("#END_TB")[0])[1:]
        index += struct.pack("<11I", *map(int, numbers.groups()), 0, 0, 0, 0, 0, 0, 0, len(warps))
        for warp in warps:
            lines = [line for line in warp.splitlines() if line.strip()]
            parts = [lines[i : i + part] for i in range(0, len(lines), part)]
            index += struct.pack("<IIQ", len(lines), len(parts), len(packed))
            packed += struct.pack("<II", len(lines), len(parts))
            for some in parts:
                frame = compress("\n".join(some).encode(), dictionary)
                packed += struct.pack("<I", len(frame)) + frame
                index += struct.pack("<I", len(some))
    return bytes(packed + index + struct.pack("<Q", len(packed)))


def random_trace(chance: random.Random, blocks: int = 20) -> str:
    """Return a grouped trace whose warps are numbered without gaps."""
    text = [
        f"-kernel name = k\n-kernel id = 3\n-grid dim = ({blocks},1,1)\n-block dim = (64,1,1)\n"
        "-shmem = 0\n-nregs = 32\n-binary version = 90\n-accelsim tracer version = 5\n\n#traces format = x\n"
    ]
    for block in range(blocks):
        if chance.random() < 0.1 and 0 < block < blocks - 1:
            continue
        text.append(f"\n#BEGIN_TB\n\nthread block = {block},0,0\n")
        for warp in range(2):
            lines = [
                chance.choice(
                    (
                        f"0010 ffffffff 1 R2 LDG.E 1 R4 4 1 0x7f12345{chance.randrange(4096):03x}0 4 0\n",
                        f"0020 0000000f 0 STG.E 2 R4 R2 4 2 0x7f12345{chance.randrange(16)}00 4 -8 32 0\n",
                        "0040 ffffffff 1 R3 IADD3 2 R2 R3 0 0\n",
                    )
                )
                for _ in range(chance.randrange(1, 40))
            ]
            text.append(f"\nwarp = {warp}\ninsts = {len(lines)}\n{''.join(lines)}")
        text.append("\n#END_TB\n")
    return "".join(text)


def load(path: Path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ws.errors.TraceWarning)
        return ws.load(path)


@pytest.mark.parametrize("dictionary", ["none", "raw", "trained"])
@pytest.mark.parametrize("seed", range(4))
def test_random_traces(tmp_path, dictionary, seed):
    text = random_trace(random.Random(seed))
    lines = [line.encode() for line in text.splitlines()[12:]]
    words = {"none": b"", "raw": b"\n".join(lines[:40]), "trained": trained(lines * 40)}[dictionary]
    assert (dictionary == "none") == (not words)
    (tmp_path / "kernel-3.traceg").write_text(text)
    packed = tmp_path / "packed"
    packed.mkdir()
    (packed / "kernel-3.tracez").write_bytes(pack(text, words))
    (packed / "kernelslist.g").write_text("MemcpyHtoD,0x7f0000000000,16\nkernel-3.tracez\n")
    expected = load(tmp_path / "kernel-3.traceg").kernels[0].digest
    for path in (packed, packed / "kernelslist.g", packed / "kernel-3.tracez"):
        (kernel,) = load(path).kernels
        assert kernel.digest == expected


def test_lists_find_what_was_unpacked_or_packed_since(tmp_path):
    text = random_trace(random.Random(5))
    (tmp_path / "kernelslist.g").write_text("kernel-3.tracez\n")
    (tmp_path / "kernel-3.traceg").write_text(text)
    expected = load(tmp_path).kernels[0].digest
    (tmp_path / "kernel-3.traceg").unlink()
    with pytest.raises(ws.InputError, match=r"kernelslist\.g:1: kernel-3\.tracez is not there"):
        load(tmp_path)
    (tmp_path / "kernelslist.g").write_text("kernel-3.traceg\n")
    (tmp_path / "kernel-3.tracez").write_bytes(pack(text))
    assert load(tmp_path).kernels[0].digest == expected


def test_an_error_in_a_line_names_the_line_of_the_text(tmp_path):
    text = random_trace(random.Random(6)).replace("1 R3 IADD3", "1 RX IADD3", 1)
    path = tmp_path / "kernel-3.tracez"
    path.write_bytes(pack(text))
    with pytest.raises(ws.InputError) as caught:
        load(path)
    # traceDsm writes three lines about clusters into each thread block.
    lines = text.splitlines()
    bad = next(i for i, line in enumerate(lines) if "RX" in line)
    number = bad + 1 + 3 * sum(line == "#BEGIN_TB" for line in lines[:bad])
    assert str(caught.value).startswith(f"{path}:{number}: destination register")


def test_every_cut_is_an_error(tmp_path):
    data = pack(random_trace(random.Random(7), 2))
    path = tmp_path / "kernel-3.tracez"
    for length in range(0, len(data), 7):
        path.write_bytes(data[:length])
        with pytest.raises(ws.InputError, match=r"kernel-3\.tracez: .*make it again") as caught:
            load(path)
        assert "\n" not in str(caught.value)


def test_random_damage_is_one_error_or_harmless(tmp_path):
    text = random_trace(random.Random(8), 3)
    data = pack(text, trained([line.encode() for line in text.splitlines()] * 40))
    path = tmp_path / "kernel-3.tracez"
    chance = random.Random(9)
    for _ in range(300):
        broken = bytearray(data)
        for _ in range(chance.choice((1, 1, 4))):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        path.write_bytes(broken)
        try:
            load(path)
        except ws.InputError as error:
            assert str(error).startswith(f"{path}:"), error  # noqa: PT017  (it may be read, too)
            assert "\n" not in str(error)  # noqa: PT017


def test_without_the_library(tmp_path, monkeypatch):
    monkeypatch.setattr("ctypes.util.find_library", lambda name: f"lib{name}-not-there.so")
    (tmp_path / "kernel-3.tracez").write_bytes(pack(random_trace(random.Random(1), 2)))
    with pytest.raises(ws.InputError, match=r"need the library zstd .*apt install libzstd1"):
        ws.load(tmp_path)
