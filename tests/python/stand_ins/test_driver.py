"""Programs that call NVIDIA's driver (libcuda): its stand-in, alone and beside the runtime's."""

import shutil
import subprocess
import sys
from pathlib import Path

import host_client
import pytest

import warpstack as ws
from warpstack.cuda import host
from warpstack.cuda.disassembly import find_nvdisasm
from warpstack.cuda.toolchain import assemble, find_ptxas

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the stand-in for libcuda needs Linux"
)
LACKS = "cuMemAddressReserve: not supported by warpstack's stand-in for libcuda"


@pytest.fixture
def run(tmp_path, capfd):
    """Return a function that traces a scenario of driver_client.py."""

    def call(*words, **options):
        command = [sys.executable, str(HERE / "driver_client.py"), *words]
        result = host.trace_program(command, tmp_path / "out", **options)
        captured = capfd.readouterr()
        assert result.status == 0, captured.err
        return result, captured.out.splitlines(), captured.err

    return call


def test_launches(run, tmp_path):
    result, out, err = run("axpy")
    # y = 1 + 3 x, three times; the kernel counts its launches from 3 on.
    assert out == ["[1.0, 10.0, 1792.0] 6 4"]
    assert (result.launches, result.traced, result.errors, err) == (3, 3, (), "")
    first, *others = ws.load(tmp_path / "out")
    assert first.name == "axpy"
    assert [each.num_instructions for each in others] == [first.num_instructions] * 2


def test_what_the_device_says(run, capfd):
    with pytest.raises(ws.InputError):
        run("describe", gpu=ws.gpu("a100"))
    assert capfd.readouterr().out.splitlines() == [
        "warpstac 13000 1 32 8 0",  # the name is cut to what there is room for
        "1024 75 65536 2",
        "216 1024 16 4",  # two blocks of 1024 threads on each SM
    ]


def test_memory(run, tmp_path):
    result, out, _ = run("memory")
    assert (result.launches, result.traced, result.is_saved) == (0, 0, True)
    assert (ws.load(tmp_path / "out").operations["operation"] == "copy").any()
    assert out == [
        "-1 -1 -1 7 7 -1 7 7 -1",
        "1 True True 5 CUDA_ERROR_INVALID_VALUE",
        "0 -2",
    ]


def test_errors(run, capfd):
    with pytest.raises(
        ws.InputError, match=r"launched no kernel; cuModuleLoadData: .*more errors\)"
    ):
        run("errors")
    captured = capfd.readouterr()
    assert captured.out.splitlines() == [
        "early CUDA_ERROR_NOT_INITIALIZED",
        "device CUDA_ERROR_INVALID_DEVICE",
        "none CUDA_ERROR_INVALID_CONTEXT",
        "image CUDA_ERROR_INVALID_PTX",
        "image CUDA_ERROR_INVALID_IMAGE",
        "image CUDA_ERROR_NO_BINARY_FOR_GPU",
        "log 39 python",
        "name CUDA_ERROR_NOT_FOUND",
        "symbol CUDA_ERROR_NOT_FOUND",
        "size CUDA_ERROR_INVALID_VALUE",
        "large CUDA_ERROR_OUT_OF_MEMORY",
        "grid CUDA_ERROR_INVALID_VALUE",
        "buffer CUDA_ERROR_INVALID_VALUE",
        "host CUDA_ERROR_INVALID_VALUE",
        "handle CUDA_ERROR_INVALID_HANDLE CUDA_ERROR_INVALID_HANDLE",
        "unloaded CUDA_ERROR_INVALID_HANDLE",
        "lacks CUDA_ERROR_NOT_SUPPORTED",
        "table CUDA_ERROR_NOT_FOUND",
        "code 1 None",
        "words an illegal memory access was encountered",
        "gone CUDA_ERROR_INVALID_CONTEXT",
    ]
    for line in (
        "note: cuDeviceGet: cuInit has not been called",
        "note: cuMemcpyHtoD_v2: the program cannot read 4 bytes at 0x0 of host memory",
        "note: cuGetExportTable: the program, or a library of it, contains the CUDA runtime",
        f"error: {LACKS}",
    ):
        assert line in captured.err


def test_a_fault_ends_with_its_context(run):
    result, out, err = run("fault")
    assert out == ["CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_ILLEGAL_ADDRESS", "[1.0, 4.0, 598.0]"]
    assert (result.launches, result.traced) == (2, 1)
    assert "error: cuLaunchKernel: " in err
    assert "out-of-bounds" in result.problem()


def test_runtime_and_driver_share_the_device(run):
    result, out, _ = run("both")
    assert out == ["None True", "1.0 CUDA_ERROR_INVALID_VALUE 0", "1 None 1"]
    assert (result.launches, result.errors) == (1, ())


def test_functions_by_name(run, capfd):
    with pytest.raises(ws.InputError, match=r"launched no kernel$"):
        run("entry_points")
    assert capfd.readouterr().out.splitlines() == ["None 0 1 None 0 1", "CUDA_ERROR_NOT_FOUND"]


def test_streams_and_graphs(run):
    result, out, err = run("graph")
    assert out == [
        "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
        "[1.0, 4.0, 598.0] True",  # x is 0 after the first launch
    ]
    assert (result.launches, result.errors) == (3, ())
    assert "note: cuCtxSynchronize: " in err


def test_blocks_that_the_estimated_registers_leave_no_room_for(run, tmp_path):
    # 0 + 1 + ... + 99 = 4950, and 100 x 1023 more for the last thread. More than 100 registers are
    # estimated: a block of 1024 threads would need 102,400 of the 65,536. One block always fits,
    # since a program that launches it was built so.
    result, out, err = run("registers")
    assert out == ["4950 107250 1 1"]
    assert (result.errors, err) == ((), "")
    (kernel,) = ws.load(tmp_path / "out")
    assert kernel.registers_per_thread == 64  # 65,536 / 1024
    assert ws.simulate(kernel, ws.gpu("a100")).cycles > 0


TWICE = "[1.0, 13.0, 2389.0]"  # y = 1 + 3 x, four times
REFUSED = "cuLinkAddData_v2: several inputs, objects and libraries are not linked"


@pytest.mark.parametrize("form", ["text", "fat"])
def test_modules_of_a_file(form, run, tmp_path):
    ptx = host_client.PTX.encode()
    data = ptx if form == "text" else host_client.container(host_client.image(1, 75, ptx + b"\0"))
    (tmp_path / "module").write_bytes(data)
    result, out, _ = run("file", str(tmp_path / "module"))
    assert out == ["CUDA_ERROR_NOT_SUPPORTED", TWICE]
    assert (result.launches, result.traced) == (4, 4)
    assert result.errors[0].startswith(REFUSED)
    assert {each.source for each in ws.load(tmp_path / "out")} == {"ptx"}


@pytest.mark.skipif(
    find_nvdisasm() is None or find_ptxas() is None, reason="machine code needs nvdisasm and ptxas"
)
@pytest.mark.parametrize("form", ["elf", "fat"])
def test_machine_code_runs_where_there_is_no_ptx(form, run, tmp_path):
    cubin = assemble(host_client.PTX, "axpy.ptx", "sm_80")
    data = cubin if form == "elf" else host_client.container(host_client.image(2, 80, cubin))
    (tmp_path / "module").write_bytes(data)
    _, out, _ = run("file", str(tmp_path / "module"), gpu=ws.gpu("a100"))
    assert out == ["CUDA_ERROR_NOT_SUPPORTED", TWICE]
    assert {each.source for each in ws.load(tmp_path / "out")} == {"sass"}


def test_a_program_linked_with_the_driver(tmp_path, capfd):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("there is no C compiler")
    source = HERE / "host_programs" / "driver.c"
    functions = {"cuInit", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuModuleLoad",
                 "cuModuleGetFunction", "cuMemAllocManaged", "cuLaunchKernel",
                 "cuCtxSynchronize", "cuMemFree_v2"}  # fmt: skip
    # As the toolkit's libcuda.so, which programs are linked with.
    stub = tmp_path / "stub.c"
    stub.write_text("".join(f"void {each}(void) {{}}\n" for each in sorted(functions)))
    library = tmp_path / "libcuda.so"
    command = [compiler, "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", library, stub]
    subprocess.run(command, check=True)
    program = tmp_path / "driver"
    subprocess.run([compiler, "-o", program, source, library], check=True)
    (tmp_path / "axpy.ptx").write_text(host_client.PTX)
    command = [str(program), str(tmp_path / "axpy.ptx")]
    result = host.trace_program(command, tmp_path / "out")
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("7.0 385.0\n", "")
    assert (result.launches, result.traced, result.status, result.errors) == (1, 1, 0, ())
