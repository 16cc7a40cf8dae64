"""Files that are not files, and files that want all memory or time, end in one clear error."""

import lzma
import os
import re
import signal
import subprocess
import sys
import zlib
from itertools import pairwise

import pytest

import warpstack as ws
from accelsim_text import header
from warpstack.cli.common.sweep_design import SweepDesign
from warpstack.cli.validate import read_predictions
from warpstack.figures.hardware import read_hardware

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="uses named pipes, /dev and /proc"
)

#: Every reader of a file that a user names, and a name that chooses it.
READERS = {
    "trace": ("kernel-1.traceg", ws.load),
    "packed trace": ("kernel-1.traceg.xz", ws.load),
    "kernel list": ("kernelslist.g", ws.load),
    "GPU description": ("gpu.yaml", ws.gpu),
    "GPGPU-Sim configuration": ("gpgpusim.config", ws.gpu),
    "sweep file": ("sweep.yaml", SweepDesign.read),
    "reference": ("reference.csv", ws.validation.reference.read),
    "PTX": ("kernel.ptx", ws.cuda.compile),
    "measurements": ("measured.csv", lambda path: read_hardware(path, "h100-pcie")),
    "predictions": ("predictions.csv", lambda path: read_predictions(str(path), "cycles")),
}


@pytest.fixture(autouse=True)
def _no_hang():
    """A read that blocks ends after 60 seconds."""

    def stop(*_):
        raise TimeoutError("the read blocks")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("kind", READERS)
def test_a_pipe_a_device_and_a_folder_are_refused(tmp_path, kind):
    name, read = READERS[kind]
    path = tmp_path / name
    os.mkfifo(path)
    refused = r"is a named pipe; expected|there is no such file"
    with pytest.raises(ws.InputError, match=refused) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(ws.InputError, match=r"is a device; expected|there is no such file"):
        read(path)
    path.unlink()
    if kind != "GPGPU-Sim configuration":  # a folder stands for the configuration in it
        path.mkdir()
        with pytest.raises(ws.InputError):
            read(path)


@pytest.mark.parametrize("entry", ["kernel-1.traceg", "kernel-1.traceg.gz"])
def test_pipes_that_a_list_names_are_refused(tmp_path, entry):
    os.mkfifo(tmp_path / entry)
    (tmp_path / "kernelslist.g").write_text(f"{entry}\n")
    with pytest.raises(ws.InputError, match="is a named pipe"):
        ws.load(tmp_path)


def test_pipes_in_saved_traces_are_refused(tmp_path):
    ws.save(ws.patterns.stream(blocks=1), tmp_path / "saved")
    for path in sorted((tmp_path / "saved").rglob("*.*")):
        if path.is_dir():
            continue
        data = path.read_bytes()
        path.unlink()
        os.mkfifo(path)
        with pytest.raises(ws.InputError):
            ws.load(tmp_path / "saved")
        path.unlink()
        path.write_bytes(data)
    assert len(ws.load(tmp_path / "saved")) == 1


def test_pipes_in_ppt_gpu_traces_are_refused(tmp_path):
    os.mkfifo(tmp_path / "app_config.py")
    with pytest.raises(ws.InputError):
        ws.load(tmp_path)


# --- YAML ---------------------------------------------------------------------------------------

LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{name}: &{name} [*{before}, *{before}]\n" for before, name in pairwise("abcdefghijklmnop")
)
YAML = {
    "a long scalar": ("name: " + "x" * 2**21, "more than 1 MiB, too long for a"),
    "many lines": ("name: x\n" * 2**18, "more than 1 MiB, too long for a"),
    "deep lists": ("name: " + "[" * 10**5, "nested too deeply|not valid YAML"),
    "deep mappings": ("{a: " * 10**5, "nested too deeply|not valid YAML"),
    "aliases": (LAUGHS, r":2: not valid YAML: the alias \*a is not allowed"),
    "an alias of itself": ("name: &x [*x]\n", r":1: not valid YAML: the alias \*x is not allowed"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", YAML)
@pytest.mark.parametrize("read", [ws.gpu, SweepDesign.read])
def test_yaml_that_wants_too_much(tmp_path, case, read):
    text, message = YAML[case]
    path = tmp_path / "gpu.yaml"
    path.write_text(text)
    with pytest.raises(ws.InputError, match=message) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value)) < len(str(path)) + 200


def test_a_sparse_file_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "gpu.yaml"
    with path.open("wb") as file:
        file.truncate(2**40)
    for name, read in (("gpu.yaml", ws.gpu), ("r.csv", ws.validation.reference.read)):
        path = path.rename(tmp_path / name)
        with pytest.raises(ws.InputError, match="MiB, too long for a"):
            read(path)


# --- traces that want all memory ----------------------------------------------------------------

LINE = "0000 ffffffff 1 R1 MOV 0 0\n"
LOADS = "0000 ffffffff 1 R1 LDG.E 1 R2 4 1 0x7f0000000000 128\n"
START = "#BEGIN_TB\nthread block = 0,0,0\nwarp = 0\ninsts = 400000000\n"
#: Name, text before, line that repeats, how often, and what is said.
BOMBS = {
    "a long warp": ("g.xz", START, LINE, 12_000_000, "this thread block takes more than 64 MiB"),
    "divergent loads": (
        "g.gz",
        START,
        LOADS,
        1_000_000,
        "this thread block takes more than 64 MiB",
    ),
    "a raw trace": (
        ".xz",
        "",
        "0 0 0 0 " + LOADS,
        1_000_000,
        "a raw trace, .* takes more than 64 MiB",
    ),
    "blank lines": (
        "g.xz",
        START,
        "\n",
        50_000_000,
        "1048576 lines in a row without an instruction",
    ),
    "blank lines before all": ("g.gz", None, "\n", 50_000_000, "1048576 lines in a row without an"),
    "comments": ("g.xz", "", "#\n", 20_000_000, "1048576 lines in a row without an instruction"),
    "one line": ("g.xz", None, "x", 50_000_000, "a line is longer than 64 KiB"),
}
LOAD = """
import re, sys
from pathlib import Path
import warpstack as ws
def peak_mib():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
before = peak_mib()
try:
    ws.load(sys.argv[1], memory_limit_mib=float(sys.argv[2]))
except ws.InputError as error:
    print(peak_mib() - before, error)
"""


def pack(path, head, line, times):
    compress = (
        lzma.LZMACompressor(preset=0) if path.suffix == ".xz" else zlib.compressobj(1, wbits=31)
    )
    per_piece = 2**20 // len(line)
    piece = (line * per_piece).encode()
    with path.open("wb") as file:
        file.write(compress.compress((head or "").encode()))
        for _ in range(times // per_piece + 1):
            file.write(compress.compress(piece))
        file.write(compress.flush())


@pytest.mark.slow
@pytest.mark.parametrize("case", BOMBS)
def test_a_packed_trace_cannot_take_all_memory(tmp_path, case):
    """The limit of 8 MiB lets ordinary thread blocks of up to 64 MiB pass."""
    suffix, start, line, times, message = BOMBS[case]
    path = tmp_path / f"kernel-1.trace{suffix}"
    pack(path, None if start is None else header(4) + start, line, times)
    assert path.stat().st_size < 2**21
    result = subprocess.run(
        [sys.executable, "-c", LOAD, str(path), "8"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert re.search(message, result.stdout), result.stdout
    assert float(result.stdout.split()[0]) < 250
    assert result.stdout.count("\n") == 1
