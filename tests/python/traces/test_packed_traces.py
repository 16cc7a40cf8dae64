"""Compressed traces: those of several blocks and frames, and what is written with zstd."""

from __future__ import annotations

import lzma
import random
import shutil
import subprocess

import pyarrow as pa
import pytest

import warpstack as ws
from warpstack.traces.io import packed


class _Bar:
    def __init__(self):
        self.done = 0

    def update(self, count):
        self.done += count


def xz(data: bytes, block: int, check: str = "crc64") -> bytes:
    """Compress in blocks of so many bytes."""
    command = ["xz", "-1", "-T1", f"--block-size={block}", f"--check={check}", "-c"]
    return subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout


def text_of(seed: int, size: int = 200_000) -> bytes:
    chance = random.Random(seed)
    return b"".join(b"%x ffffffff IADD3\n" % chance.randrange(1 << 30) for _ in range(size // 24))


needs_xz = pytest.mark.skipif(shutil.which("xz") is None, reason="xz is not there")


def read(path):
    bar = _Bar()
    with packed.errors_named(path):
        content = b"".join(packed.chunks(path, bar))
    return content, bar.done


@needs_xz
@pytest.mark.parametrize("check", ["none", "crc32", "crc64", "sha256"])
@pytest.mark.parametrize("block", [999, 20_000, 1 << 30])
def test_blocks_of_xz(tmp_path, block, check):
    data = text_of(block)
    path = tmp_path / "a.traceg.xz"
    path.write_bytes(xz(data, block, check))
    assert (packed._xz_blocks(path) is None) == (block > len(data))
    content, done = read(path)
    assert content == data
    assert 0 < done <= path.stat().st_size


@needs_xz
def test_streams_of_xz(tmp_path):
    path = tmp_path / "a.traceg.xz"
    path.write_bytes(xz(b"one", 2) + xz(b"two", 2))
    assert packed._xz_blocks(path) is None
    assert read(path)[0] == b"onetwo"


@needs_xz
def test_damage_of_blocks_is_an_error(tmp_path):
    data = text_of(3)
    good = xz(data, 20_000)
    path = tmp_path / "a.traceg.xz"
    chance = random.Random(4)
    for _ in range(120):
        broken = bytearray(good)
        place = chance.randrange(len(broken))
        if chance.random() < 0.3:
            del broken[place:]
        else:
            broken[place] ^= 1 << chance.randrange(8)
        path.write_bytes(broken)
        with pytest.raises(ws.InputError, match=r"a\.traceg\.xz: cannot be decompressed"):
            read(path)


@needs_xz
def test_a_trace_in_blocks(tmp_path):
    app = ws.patterns.stream()
    ws.save(app, tmp_path / "plain", format="accelsim")
    for file in (tmp_path / "plain").glob("*.traceg"):
        file.with_name(file.name + ".xz").write_bytes(xz(file.read_bytes(), 5000))
        file.unlink()
    (tmp_path / "plain" / "warpstack-export.json").unlink()
    assert [k.digest for k in ws.load(tmp_path / "plain")] == [
        k.digest for k in ws.load(save(app, tmp_path / "again", None))
    ]


def save(app, path, compression):
    ws.save(app, path, format="accelsim", compression=compression)
    return path


@pytest.mark.parametrize("compression", ["zst", "xz"])
def test_written_and_read(tmp_path, compression):
    app = ws.patterns.stream()
    plain = save(app, tmp_path / "plain", None)
    small = save(app, tmp_path / "small", compression)
    (file,) = small.glob("*.traceg.*")
    assert file.name == f"kernel-1.traceg.{compression}"
    unpack = {"zst": lambda d: pa.CompressedInputStream(pa.BufferReader(d), "zstd").read()}
    content = unpack.get(compression, lzma.decompress)(file.read_bytes())
    assert content == (plain / "kernel-1.traceg").read_bytes()
    assert [k.digest for k in ws.load(small)] == [k.digest for k in ws.load(plain)]


def test_frames_of_zstd(tmp_path):
    data = text_of(5)
    path = tmp_path / "a.traceg.zst"
    pieces = (data[:1000], data[1000:1001], data[1001:])
    path.write_bytes(b"".join(pa.compress(piece, "zstd", asbytes=True) for piece in pieces))
    assert read(path)[0] == data


def test_what_is_done_in_threads_keeps_its_order():
    chance = random.Random(6)
    items = [chance.randrange(1000) for _ in range(200)]
    assert list(packed.in_threads(lambda n: sum(range(n * 50)), items, 3)) == [
        sum(range(n * 50)) for n in items
    ]

    def fails(n):
        raise ValueError(str(n))

    with pytest.raises(ValueError, match=r"^0$"):
        list(packed.in_threads(fails, range(50), 3))
