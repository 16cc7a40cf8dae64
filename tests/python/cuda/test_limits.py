"""Devices where a process may reserve little address space, and launches that are too large."""

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import warpstack as ws
from warpstack import InputError, cuda
from warpstack._util import trace_budget
from warpstack.cli import main

CLIENT = Path(__file__).parents[1] / "stand_ins" / "host_client.py"

COPY = """.version 7.0
.target sm_75
.address_size 64
.visible .entry copy(.param .u64 from, .param .u64 to)
{
.reg .b64 %a<4>; .reg .b32 %t, %v;
ld.param.u64 %a0, [from]; ld.param.u64 %a1, [to];
mov.u32 %t, %tid.x; mul.wide.u32 %a2, %t, 4; add.s64 %a0, %a0, %a2; add.s64 %a1, %a1, %a2;
ld.global.u32 %v, [%a0]; st.global.u32 [%a1], %v;
ret;
}
"""
LAUNCH = ["--launch", "copy<<<1, 256>>>(float[256] = range, float[256])"]
GUARD = """
import numpy as np, sys
import warpstack as ws
device = ws.cuda.Device()
arrays = [device.array(np.arange(n, dtype=np.uint32)) for n in (64, 300, 64)]
out = device.zeros(256, np.uint32)
launch = ws.cuda.compile(sys.argv[1], device=device).kernel("copy").launch
launch(1, 32, arrays[0], out)
try:
    launch(1, 256, arrays[0], out)
except ws.InputError as error:
    print("past the end of the 256-byte allocation" in str(error))
try:
    device.empty(2**32)
except ws.InputError as error:
    print("ulimit -v" in str(error))
"""


def limited(command, kilobytes):
    """Run a command as after ``ulimit -v``."""
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1024 * kilobytes,) * 2),
    )


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "copy.ptx"
    path.write_text(COPY)
    return path


@pytest.mark.parametrize("kilobytes", [6_000_000, 4_000_000])
@pytest.mark.parametrize("more", [[], ["--device-memory", "512"]])
def test_commands_run_where_address_space_is_limited(source, kilobytes, more):
    for what in ([source, *LAUNCH], ["--workload", "hotspot"]):
        command = [sys.executable, "-m", "warpstack", "info", *what, *more]
        run = limited(list(map(str, command)), kilobytes)
        assert run.returncode == 0, run.stderr
        assert "MemoryError" not in run.stderr


@pytest.mark.parametrize("kilobytes", [6_000_000, 4_000_000])
def test_programs_run_where_address_space_is_limited(tmp_path, kilobytes):
    client = [sys.executable, CLIENT, "libcudart.so.12", "axpy"]
    for more in ([], ["--device-memory", "512"]):
        command = [sys.executable, "-m", "warpstack", "trace", "--overwrite"]
        command += [*more, "-o", tmp_path / "out", "--", *client]
        run = limited(list(map(str, command)), kilobytes)
        assert run.returncode == 0, run.stderr


def test_gaps_are_there_where_address_space_is_limited(source):
    run = limited([sys.executable, "-c", GUARD, str(source)], 4_000_000)
    assert run.stdout.split() == ["True", "True"], run.stderr


def test_every_command_that_runs_kernels_takes_the_option(source, capsys):
    for command in ("predict", "simulate", "caches", "info", "lines", "roofline", "report"):
        with pytest.raises(SystemExit):
            main([command, "--help-all"])
        assert "--device-memory MIB" in capsys.readouterr().out
    info = ["info", str(source)]
    assert main([*info, *LAUNCH, "--device-memory", "1"]) == 0
    large = ["--launch", "copy<<<1, 256>>>(float[1 << 18], float[1 << 18])"]
    assert main([*info, *large, "--device-memory", "1"]) == 2
    assert (
        "argument 2, an array of 262,144 float32, takes 1 MiB, 2 MiB with those before it; the simulated "
        "device has 1 MiB: make it smaller, or give --device-memory MIB"
    ) in capsys.readouterr().err
    assert main([*info, *LAUNCH, "--device-memory", "0"]) == 2
    told = capsys.readouterr().err
    assert "device memory of 0 MiB" in told
    assert "--device-memory" in told
    assert main(["info", "--workload", "hotspot", "--device-memory", "1"]) == 2
    assert "no room for" in capsys.readouterr().err


def test_the_option_is_of_what_runs(tmp_path, capsys):
    ws.save(ws.App([ws.patterns.stream(1)], "x"), tmp_path / "saved")
    assert main(["info", str(tmp_path / "saved"), "--device-memory", "1"]) == 2
    assert "--device-memory: nothing is run" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["float[99999999999999]", "double[1 << 50] = random"])
def test_arrays_that_are_too_large(source, capsys, text):
    given = ["--launch", f"copy<<<1, 256>>>({text}, float[256])"]
    assert main(["info", str(source), *given]) == 2
    told = capsys.readouterr().err
    assert "argument 1, an array of " in told
    assert "GiB; the simulated device has 16 GiB: make it smaller" in told
    assert "smaller trace" not in told


@pytest.mark.parametrize(
    ("grid", "block", "text"),
    [(2**31 - 1, 1, "2,147,483,647 blocks of 1"), ((2**31 - 1, 65535), 32, "blocks of 32")],
)
def test_builders_of_too_many_warps(monkeypatch, grid, block, text):
    monkeypatch.setattr(trace_budget, "usable_memory_bytes", lambda: 2**34)
    with pytest.raises(
        InputError, match=rf"{text} threads.* takes .* GiB of memory; .* smaller grid"
    ):
        ws.patterns.KernelBuilder("k", grid=grid, block=block)


def test_arrays_of_builders_that_are_too_large(monkeypatch):
    monkeypatch.setattr(trace_budget, "usable_memory_bytes", lambda: 2**26)
    builder = ws.patterns.KernelBuilder("k", grid=2**14, block=1024)
    with pytest.raises(InputError, match="smaller grid or block"):
        builder.thread  # noqa: B018
    with pytest.raises(InputError, match="smaller grid or block"):
        builder.emit("LDG.E", dst=0, src=2, address=np.uint64(0))


def test_arrays_that_no_device_holds():
    with pytest.raises(InputError, match="no room for 4000000000000 bytes"):
        cuda.empty(10**12)
