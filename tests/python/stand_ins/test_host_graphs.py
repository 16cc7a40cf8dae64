"""Graphs, stream capture and memory pools of host programs."""

import sys
from pathlib import Path

import pytest

import compiler_cache
import warpstack as ws
from host_compiler import need_linking_nvcc
from warpstack.cuda import host

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the stand-in for libcudart needs Linux"
)


@pytest.mark.parametrize("version", ["11.0", "12", "13"])
def test_functions_that_differ_between_versions(version, tmp_path, capfd):
    command = [sys.executable, str(HERE / "host_client.py"), f"libcudart.so.{version}", "graph"]
    result = host.trace_program(command, tmp_path / "out")
    assert capfd.readouterr().out.splitlines() == [
        "1 1",  # a capture is active, and its next node depends on one
        "1 1 None",  # one edge; there was room for more
        "0 1 1 0",  # dependencies and dependents of both nodes
        "cudaErrorInvalidValue",
        "cudaSuccess 0",
        "cudaErrorGraphExecUpdateFailure 2",
        "23.0",  # 1 + 1 + 1, then 10 + 10
    ]
    assert (result.launches, result.traced, result.status) == (4, 4, 0)
    assert not result.problem()


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    nvcc = need_linking_nvcc()
    path = tmp_path_factory.mktemp("programs") / "graphs"
    target = ("-gencode", "arch=compute_75,code=compute_75")
    source = HERE / "host_programs" / "graphs.cu"
    command = [nvcc, "-cudart", "shared", "-lineinfo", *target, "-o", path, source]
    compiler_cache.nvcc(command)
    return str(path)


@pytest.fixture
def run(program, tmp_path, capfd):
    """Return a function that traces a scenario of graphs.cu: its kernels and what it prints."""

    def call(scenario):
        result = host.trace_program([program, scenario], tmp_path / "out")
        assert (result.status, result.errors) == (0, ())
        out, err = capfd.readouterr()
        return [k.short_name for k in ws.load(tmp_path / "out")], out.splitlines(), err

    return call


def test_capture(run):
    kernels, out, err = run("capture")
    # Two nodes, and nothing has run; ((0 + 3) 2 + 3) 2 + 3) 2; not capturing any more.
    assert out == ["1 2 0", "42", "0", "cudaErrorInvalidValue"]
    assert kernels == ["add", "multiply"] * 3
    assert "cudaGraphDestroy: there is no such graph" in err


@pytest.mark.slow
def test_fork_and_join(run):
    kernels, out, _ = run("fork")
    assert out == ["7 0 0", "8 2"]
    assert kernels == ["add_bias", "sum_of"] * 2


@pytest.mark.slow
def test_nodes(run):
    kernels, out, _ = run("nodes")
    assert out == [
        "cudaErrorInvalidValue",  # an edge that is there
        "6 1 3",  # nodes, roots, the type of a host node
        "64 1",
        "11 11 1",  # filled with 10, plus 1
        "40 40 41",  # in the executable graph: filled with 20, times 2
        "20",  # without the kernel
        "cudaErrorInvalidValue",
        "cudaErrorInvalidValue",
        "11",
        "10 5",
        "cudaErrorInvalidValue",
    ]
    assert kernels == ["add", "multiply", "add"]


@pytest.mark.slow
def test_update(run):
    _, out, err = run("update")
    assert out == [
        "1",
        *("cudaSuccess", "0 0", "3"),  # plus 2
        *("cudaErrorGraphExecUpdateFailure", "2 0", "5"),  # one more node
        *("cudaErrorGraphExecUpdateFailure", "3 1", "7"),  # another type of node
    ]
    assert "the executable graph stays as it was: a node is of another type" in err


@pytest.mark.slow
def test_children_and_clones(run):
    _, out, _ = run("children")
    # 1 + 1; then 10 + 1; then a clone with one child; then 10 + 1 as the child of a capture.
    assert out == ["2", "cudaErrorInvalidValue", "13", "14", "25 1 0 1"]


@pytest.mark.slow
def test_memory_nodes(run):
    _, out, err = run("memory_nodes")
    assert out == [
        "cudaErrorInvalidValue",
        "2 8",  # MiB of the allocation that is kept; 4 + 4
        "cudaErrorInvalidValue",
        "cudaErrorInvalidValue",
        "8",
        "cudaErrorInvalidValue",
        "cudaErrorInvalidValue",
        "4040404",  # 0x01010101 doubled, twice
    ]
    assert "cudaGraphInstantiateFlagAutoFreeOnLaunch" in err


@pytest.mark.slow
def test_what_may_not_be_done_during_a_capture(run):
    _, out, err = run("refused")
    capture = "cudaErrorStreamCapture"
    invalid = f"  {capture}Invalidated 1"  # without a graph
    assert out == [
        f"{capture}Unsupported",  # the default stream
        "cudaErrorIllegalState",  # an end without a beginning
        *("cudaErrorIllegalState", f"{capture}Unsupported", f"{capture}Invalidated", "2", invalid),
        *(f"{capture}Unsupported", invalid),  # cudaStreamSynchronize
        *(f"{capture}Unsupported", invalid),  # cudaDeviceSynchronize
        *(f"{capture}Implicit", invalid),  # cudaMemcpy
        *(f"{capture}Implicit", invalid),  # a launch into the default stream
        *("cudaSuccess", "  cudaSuccess 0"),  # which does not wait for this one
        *("cudaErrorCapturedEvent", invalid),
        "cudaErrorCapturedEvent",
        f"  {capture}Unjoined 1",
        *(f"{capture}Isolation", invalid),
        *(f"{capture}Merge", invalid, invalid),
        *(f"  {capture}Unmatched 1", invalid),
        *(f"  {capture}WrongThread 1", "  cudaSuccess 0"),
        *("cudaSuccess", "  cudaSuccess 0"),  # relaxed: cudaMalloc
        *("cudaSuccess", "2", "  cudaSuccess 0"),  # a relaxed thread: cudaFree
        *["cudaErrorInvalidValue"] * 3,
        "1",  # of the one launch into the default stream
    ]
    assert "depend on each other in a cycle" in err


@pytest.mark.slow
def test_memory_pools(run):
    _, out, _ = run("pools")
    assert out[:10] == [
        "1 1 1",
        # Bytes in use and their maximum, MiB held and their maximum.
        "41944040 41944040 64 64",
        "1000 41944040 64 64",
        "1000 41944040 32 64",
        "1000 41944040 64 64",
        "1000 41944040 32 64",
        "0 41944040 32 64",
        "9 512",
        "3",
        "1",
    ]
    assert out[10:] == [
        *["cudaErrorInvalidValue"] * 5,
        "cudaErrorInvalidDevice",
        "cudaErrorInvalidValue",
    ]


@pytest.mark.slow
def test_wrong_arguments(program, tmp_path, capfd):
    result = host.trace_program([program, "wrong"], tmp_path / "out")
    assert capfd.readouterr().out.splitlines() == ["103 calls, 0 allowed"]
    assert (result.status, len(result.errors)) == (0, 1)
    assert "(extra) are not supported; pass kernelParams" in result.errors[0]
