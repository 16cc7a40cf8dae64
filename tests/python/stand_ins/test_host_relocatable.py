"""Relocatable device code and dynamic parallelism of host programs."""

import sys
from pathlib import Path

import pytest

import compiler_cache
import warpstack as ws
from host_compiler import need_linking_nvcc
from warpstack.cuda import host
from warpstack.cuda.disassembly import find_nvdisasm

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the stand-in for libcudart needs Linux"
)


def client(scenario, version="13"):
    return [sys.executable, str(HERE / "linked_client.py"), f"libcudart.so.{version}", scenario]


# --- without nvcc -------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["11.0", "12", "13"])
def test_kernels_of_two_objects_launch_each_other(version, tmp_path, capfd):
    result = host.trace_program(client("count", version), tmp_path / "out")
    # One block of depth 3, then 2, 4 and 8 of depths 2, 1 and 0: 100 + 2 * (3 + 2 * 2 + 4 * 1).
    assert capfd.readouterr().out.split() == ["cudaSuccess", "122"]
    assert not result.problem()
    app = ws.load(tmp_path / "out")
    assert [k.launch_id for k in app] == [1, 2, 3, 4, 5, 6, 7, 8]
    # A kernel's launches come before what stands behind it in its stream.
    assert [k.parent for k in app] == [None, 1, 2, 3, 3, 2, 6, 6]
    assert [k.num_blocks for k in app] == [1] + [2] * 7
    assert app.info()["parent"].tolist() == [0, 1, 2, 3, 3, 2, 6, 6]


def test_programs_without_launches_by_kernels_have_no_column_for_them():
    assert "parent" not in ws.App([ws.patterns.strided(1, 1, 1)]).info()


@pytest.mark.parametrize(
    ("scenario", "message"),
    [
        (
            "clash",
            r"\(PTX of object 4\):\d+: 'total' is defined here, and in .*\(PTX of object 2\):\d+; ",
        ),
        (
            "no_ptx",
            r"object 2, a part of the program's relocatable device code, has no PTX but machine code "
            r"for sm_75; build all parts with PTX, which warpstack links: nvcc -rdc=true -arch=sm_75 ",
        ),
        ("synchronize", r"cudaDeviceSynchronize of kernels, which CUDA 12 has removed"),
    ],
)
def test_programs_that_cannot_be_linked(scenario, message, tmp_path, capfd):
    with pytest.raises(ws.InputError, match=message):
        host.trace_program(client(scenario), tmp_path / "out")
    assert "Success" not in capfd.readouterr().out


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            ".param .b32 e; call.uni (e), cudaGetLastError; ret;",
            r"call.uni\), .*: it calls the CUDA runtime, which only kernels of programs under warpstack",
        ),
        (
            ".reg .b32 %r; ld.global.u32 %r, [away]; ret;",
            "no module of the program defines the .extern variable away",
        ),
        ("call.uni other; ret;", "function other is not in the module"),
        ("call.uni cudaGraphLaunch; ret;", "cudaGraphLaunch of CUDA's device runtime is not supp"),
    ],
)
def test_what_a_kernel_without_a_program_lacks(body, message):
    text = f"""
.version 7.0
.target sm_75
.address_size 64
.extern .func (.param .b32 r) cudaGetLastError();
.extern .func other;
.extern .func cudaGraphLaunch;
.extern .global .u32 away;
.visible .entry k() {{ {body} }}
"""
    with pytest.raises(ws.InputError, match=message):
        ws.cuda.compile(text).kernel("k").launch(1, 1)


# --- with nvcc ----------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    nvcc = need_linking_nvcc()
    folder = tmp_path_factory.mktemp("programs")

    def compile_(*sources, arch="-arch=sm_75"):
        program = folder / (sources[0] + arch.replace("=", "-").replace(",", "-"))
        if not program.exists():
            files = [HERE / "host_programs" / f"{source}.cu" for source in sources]
            options = ["-cudart", "shared", "-rdc=true", "-lineinfo", *arch.split()]
            command = [nvcc, *options, "-o", program, *files, "-lcudadevrt"]
            compiler_cache.nvcc(command)
        return str(program)

    return compile_


@pytest.mark.parametrize("arch", ["-arch=sm_75", "-gencode=arch=compute_75,code=compute_75"])
def test_device_code_of_two_files(arch, build, tmp_path, capfd):
    program = build("relocatable", "relocatable_other", arch=arch)
    result = host.trace_program([program], tmp_path / "out")
    assert not result.problem()
    # first: dynamic[t] = 2 t + 5 + 1 + 3; out = dynamic[t ^ 1] + 100 + (t + 1) + (t + 1).
    # other, twice: 1000 * (52 + 3 t) + 101.
    first = [2 * (t ^ 1) + 9 + 100 + 2 * (t + 1) for t in range(4)]
    expected = [first[t] + 2 * (1000 * (52 + 3 * t) + 101) for t in range(4)]
    assert capfd.readouterr().out.splitlines() == [
        " ".join(map(str, expected)),
        "cudaSuccess 5 8",
    ]
    app = ws.load(tmp_path / "out")
    assert [k.short_name for k in app] == ["first", "other", "other"]
    assert [k.parent for k in app] == [None, 1, None]


@pytest.fixture
def nested(build, tmp_path, capfd):
    """Return a function that traces a scenario of nested.cu: the run, its kernels, what it prints."""

    def call(scenario):
        result = host.trace_program([build("nested"), scenario], tmp_path / "out")
        out, err = capfd.readouterr()
        return result, list(ws.load(tmp_path / "out")), out.splitlines(), err

    return call


def test_streams_of_kernels(nested):
    result, kernels, out, _ = nested("streams")
    assert not result.problem()
    assert out == ["0 1 2 3 4 5 7 8 cudaSuccess"]
    assert [k.short_name for k in kernels] == [
        "streams", "parent_of_note", "note", "note", "parent_of_note", "note", "note", "note",
        "note", "note",
    ]  # fmt: skip
    assert [k.parent for k in kernels] == [None, 1, 2, 2, 1, 5, 5, 1, 1, 1]


def test_every_block_launches_with_its_own_arguments(nested):
    result, kernels, out, _ = nested("parts")
    assert not result.problem()
    # Each part of 16 is doubled and turned round.
    assert out[0].split()[:-1] == [str(2 * (i // 16 * 16 + 15 - i % 16)) for i in range(0, 64, 9)]
    assert [k.parent for k in kernels] == [None, 1, 1, 1, 1]
    assert [k.shared_memory_bytes for k in kernels] == [0, 64, 64, 64, 64]


def test_mistakes_of_kernels_that_launch(nested):
    result, kernels, out, err = nested("mistakes")
    assert not result.problem()
    assert out == [
        "threads cudaErrorInvalidConfiguration 1",
        "grid cudaErrorInvalidConfiguration 1",
        "shared cudaErrorInvalidValue 1",
        "stream cudaErrorInvalidResourceHandle 1",
        "1",
        "1",
        "copy cudaErrorInvalidValue 1",
        "none cudaSuccess 1",
        "invalid configuration argument",
        "cudaSuccess",
    ]
    assert len(kernels) == 1
    assert "kernels copy between places in global memory only (cudaErrorInvalidValue)" in err


def test_launches_by_the_functions_of_the_interface(nested):
    _, kernels, out, err = nested("by_hand")
    assert out == ["1", "0", "5 5 0 cudaSuccess"]
    assert "the parameter buffer is too small, or is not one (cudaErrorInvalidValue)" in err
    assert [(k.short_name, k.parent) for k in kernels] == [
        ("by_hand", None), ("by_hand", None), ("store", 2),
    ]  # fmt: skip
    assert (kernels[2].grid, kernels[2].block) == ((2, 1, 1), (3, 1, 1))


def test_depth_of_launches(nested):
    result, kernels, out, err = nested("depth")
    assert not result.problem()
    assert out == ["24 cudaErrorLaunchMaxDepthExceeded", "24 cudaSuccess"]
    assert len(kernels) == 25
    assert "more than 24 levels deep" in err


def test_tail_launches_are_not_deeper(nested):
    _, kernels, out, _ = nested("tail")
    assert out == ["101 cudaSuccess"]
    assert len(kernels) == 101


def test_launches_that_wait(nested):
    result, kernels, out, err = nested("pending")
    assert not result.problem()
    assert out == ["cudaSuccess 6 cudaSuccess"]  # of two blocks' eight launches, five each run
    assert len(kernels) == 11
    assert "cudaLimitDevRuntimePendingLaunchCount raises it" in err


def test_memory_and_properties_in_kernels(nested):
    result, kernels, out, _ = nested("memory")
    assert not result.problem()
    assert out == ["0 1 1 2048", "9 0", "0x1010102 0x1010101 0x1010101 cudaSuccess"]
    assert [k.short_name for k in kernels] == ["memory", "wide"]


def test_a_fault_of_a_launched_kernel(nested):
    result, kernels, out, err = nested("fault")
    assert out == ["cudaErrorIllegalAddress"]
    assert [k.short_name for k in kernels] == ["launches_bad"]
    assert "(launched by the kernel of launch 1)" in err
    assert "out-of-bounds" in result.problem()


def test_what_the_device_runtime_lacks_is_named(build, tmp_path):
    with pytest.raises(ws.InputError, match="Memset3DAsync of CUDA's device runtime is not supp"):
        host.trace_program([build("nested"), "unsupported"], tmp_path / "out")


def test_objects_of_machine_code_only(build, tmp_path):
    program = build("relocatable", "relocatable_other", arch="-gencode=arch=compute_75,code=sm_75")
    message = r"relocatable.cu, a part of .* has no PTX but machine code for sm_75; build all"
    with pytest.raises(ws.InputError, match=message):
        host.trace_program([program], tmp_path / "out")


@pytest.mark.skipif(find_nvdisasm() is None, reason="nvdisasm is not installed")
def test_launches_by_machine_code_are_named(build, tmp_path):
    with pytest.raises(ws.InputError, match="dynamic parallelism"):
        host.trace_program([build("nested"), "parts"], tmp_path / "out", machine_code="sm_75")
