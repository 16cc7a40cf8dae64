"""CUDA host programs as machine code: the cubins of their fat binaries, or what ptxas makes of PTX."""

import functools
import sys
from pathlib import Path

import host_client
import numpy as np
import pytest

import compiler_cache
import warpstack as ws
from host_compiler import need_linking_nvcc
from warpstack.cli import main
from warpstack.cuda import disassembly, host
from warpstack.cuda.disassembly import find_nvdisasm
from warpstack.cuda.toolchain import assemble, find_ptxas

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or find_nvdisasm() is None or find_ptxas() is None,
    reason="the stand-in for libcudart needs Linux, machine code needs nvdisasm and ptxas",
)


def client(container, folder):
    """Return the command of a program with a fat binary."""
    path = folder / "container"
    path.write_bytes(container)
    return [sys.executable, str(HERE / "host_client.py"), "libcudart.so.12", "file", str(path)]


@functools.cache
def cubin(arch):
    return assemble(host_client.PTX, "axpy.ptx", arch)


def ptx(target):
    return host_client.image(1, target, host_client.PTX.encode() + b"\0")


# y = 3 x + 1, twice: 6 x + 1
RESULT = ["cudaSuccess", "cudaSuccess", "cudaSuccess [1.0, 7.0, 1195.0] 5"]


def test_cubin_of_the_architecture(tmp_path, capfd):
    images = [host_client.image(2, int(a[3:]), cubin(a)) for a in ("sm_75", "sm_80", "sm_90")]
    command = client(host_client.container(*images, ptx(75)), tmp_path)
    result = host.trace_program(command, tmp_path / "out", machine_code="sm_80")
    assert capfd.readouterr().out.splitlines() == RESULT
    assert (result.launches, result.traced, result.status, result.errors) == (2, 2, 0, ())
    first, second = ws.load(tmp_path / "out")
    header = first._core.header
    assert (first.source, header["binary_version"]) == ("sass", 80)
    assert first.num_instructions == second.num_instructions
    # The same kernel loaded from the same cubin, without the program.
    device = ws.cuda.Device(0.1)
    module = ws.cuda.load_cubin(cubin("sm_80"), device=device)
    x, y = device.zeros(200, np.float32), device.zeros(200, np.float32)
    alone = module.kernel("axpy").launch(2, 128, x, y, np.float32(3), np.int32(200))
    assert first.registers_per_thread == alone.registers_per_thread
    assert list(first.instructions.opcode) == list(alone.instructions.opcode)
    assert list(first.instructions.executions) == list(alone.instructions.executions)


@pytest.mark.parametrize("arch", [86, 90, 100, 103, 120])
def test_ptx_is_assembled(arch, tmp_path, capfd):
    command = client(host_client.container(ptx(75)), tmp_path)
    host.trace_program(command, tmp_path / "out", machine_code=f"sm_{arch}")
    assert capfd.readouterr().out.splitlines() == RESULT
    header = next(iter(ws.load(tmp_path / "out")))._core.header
    assert (header["source"], header["binary_version"]) == ("sass", arch)


def test_nothing_that_fits(tmp_path, capfd, monkeypatch):
    images = [host_client.image(2, 75, cubin("sm_75")), ptx(90)]
    command = client(host_client.container(*images), tmp_path)
    with pytest.raises(
        ws.InputError,
        match=r"no machine code for sm_80 .*; it has machine code for sm_75; it has PTX for "
        r"compute_90; build it with nvcc -arch=sm_80 \(and -cudart shared\)",
    ):
        host.trace_program(command, tmp_path / "out", machine_code="sm_80")
    monkeypatch.setattr("warpstack.cuda.toolchain.find_ptxas", lambda: None)
    command = client(host_client.container(ptx(75)), tmp_path)
    with pytest.raises(
        ws.InputError, match=r"ptxas is needed .*; or build the program with nvcc -ar"
    ):
        host.trace_program(command, tmp_path / "out", machine_code="sm_80")
    assert capfd.readouterr().out.splitlines() == ["cudaErrorNoKernelImageForDevice"] * 2
    assert not (tmp_path / "out").exists()


def test_damaged_cubin(tmp_path):
    data = cubin("sm_80")
    command = client(host_client.container(host_client.image(2, 80, data[:2000])), tmp_path)
    with pytest.raises(ws.InputError, match=r"machine code of its fat binary 1\): .*cut off"):
        host.trace_program(command, tmp_path / "out", machine_code="sm_80")


def test_what_is_refused_before_the_program_runs(tmp_path, monkeypatch):
    for machine_code, message in (
        ("compute_80", "machine_code = 'compute_80' is not like sm_80"),
        ("sm_61", "machine code for sm_61 is not executed; choose one of sm_75 to sm_121"),
        ("sm_200", "machine code for sm_200 is not executed"),
    ):
        with pytest.raises(ws.InputError, match=message):
            host.trace_program(["absent"], tmp_path / "out", machine_code=machine_code)
    monkeypatch.setattr("warpstack.cuda.host.find_nvdisasm", lambda: None)
    with pytest.raises(
        ws.InputError, match=r"nvdisasm is needed .*pip install nvidia-cuda-nvdisasm"
    ):
        host.trace_program(["absent"], tmp_path / "out", machine_code="sm_80")


def test_command_line(tmp_path, capfd):
    command = client(host_client.container(host_client.image(2, 80, cubin("sm_80"))), tmp_path)
    out = tmp_path / "out"
    assert main(["trace", "--machine-code", "sm_80", "-o", str(out), "--", *command]) == 0
    assert capfd.readouterr().out.splitlines() == RESULT
    assert main(["info", str(out)]) == 0
    assert "sm_80" in capfd.readouterr().out


# --- fat binaries -------------------------------------------------------------------------------


def test_loading_from_files_with_fat_binaries(tmp_path):
    images = [host_client.image(2, int(a[3:]), cubin(a)) for a in ("sm_75", "sm_80")]
    fat = host_client.container(*images)
    path = tmp_path / "program"
    path.write_bytes(b"\x7fELF" + bytes(200) + fat + bytes(100))
    for source in (path, fat):
        module = ws.cuda.load_cubin(source, machine_code="sm_80")
        assert (module.machine_code, module.kernels) == ("sm_80", ("axpy",))
    only = host_client.container(images[0])
    assert ws.cuda.load_cubin(only).machine_code == "sm_75"
    for data, options, message in (
        (fat, {}, "machine code for sm_75, sm_80: choose one, such as machine_code='sm_75'"),
        (fat, {"machine_code": "sm_90"}, "for sm_75, sm_80, not for sm_90; build it with nvcc -ar"),
        (only + only, {}, "it has 2 modules with kernels for sm_75, not one; take them out with"),
        (b"text", {}, "neither a cubin .* nor is there machine code in it; make a cubin with nvcc"),
        (fat[:-9], {}, "the program's fat binary is damaged: it is cut"),
        (cubin("sm_75"), {"machine_code": "sm_80"}, "it is machine code for sm_75, not for sm_80"),
        (fat, {"machine_code": "80"}, "machine_code = '80' is not like sm_80"),
    ):
        with pytest.raises(ws.InputError, match=message):
            ws.cuda.load_cubin(data, **options)


# --- with nvcc ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def basic(tmp_path_factory):
    nvcc = need_linking_nvcc()
    program = tmp_path_factory.mktemp("programs") / "basic"
    source = HERE / "host_programs" / "basic.cu"
    command = [nvcc, "-cudart", "shared", "-lineinfo", "-arch=sm_80", "-o", program, source]
    compiler_cache.nvcc(command)
    return str(program)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "printed"),
    [
        ("vector_add", ["wrong 0"]),
        ("two_launches", ["9 3"]),
        ("symbols", ["57 37 32 7"]),
        ("managed", ["4958", "5058", "1 100", "1 1 1"]),
        ("prints", ["before", *[f"thread {i} of hello: 2.50" for i in range(2)], "after"]),
    ],
)
def test_programs_of_nvcc(basic, scenario, printed, tmp_path, capfd):
    result = host.trace_program([basic, scenario], tmp_path / "out", machine_code="sm_80")
    assert capfd.readouterr().out.splitlines() == printed
    assert (result.status, result.errors) == (0, ())
    assert {kernel.source for kernel in ws.load(tmp_path / "out")} == {"sass"}
    module = ws.cuda.load_cubin(basic)
    assert module.machine_code == "sm_80"


def test_nvdisasm_that_fails(tmp_path, monkeypatch):
    tool = tmp_path / "nvdisasm"
    tool.write_text("#!/bin/sh\nkill -SEGV $$\n")
    tool.chmod(0o755)
    monkeypatch.setattr(disassembly, "find_nvdisasm", lambda: str(tool))
    with pytest.raises(
        ws.InputError, match="does not read the cubin: it ended with status -11; make"
    ):
        ws.cuda.load_cubin(cubin("sm_80"))
