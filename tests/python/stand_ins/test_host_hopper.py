"""CUDA programs for compute capability 9.0: clusters of a launch, and tensor maps of the driver."""

import sys
from pathlib import Path

import pytest

import host_compiler
import warpstack as ws
from warpstack.cuda import host

SOURCE = Path(__file__).parent / "host_programs" / "hopper.cu"
pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the stand-in for libcudart needs Linux"
)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return host_compiler.hopper_program(tmp_path_factory.mktemp("program"), SOURCE)


def test_clusters_of_a_launch(program, tmp_path, capfd):
    host.trace_program([program, "clusters"], tmp_path / "out", gpu=ws.gpu("h100-pcie"))
    out, err = capfd.readouterr()
    assert out.splitlines() == [
        # 10 i of a block and of the next one, around in clusters of four.
        "cudaSuccess: 10 30 50 30 90 110 130 110",
        *["cudaErrorInvalidClusterSize"] * 3,
        "cudaSuccess: 10 150",
        "cudaErrorInvalidClusterSize",
        "cudaSuccess: 2",
        "cudaErrorInvalidClusterSize",
        "2 1 1",
        "114 8 1",  # two blocks of 1024 threads on each of 114 SMs, two to a cluster
    ]
    for line in (
        "the grid has 6 blocks along x, which is not a multiple of the cluster's 4",
        "a cluster of 16 blocks is larger than 8 (cudaFuncAttributeNonPortableClusterSizeAllowed",
        "a cluster of 17 x 1 x 1 blocks is too large: at most 8 run on every GPU that has clusters, "
        "and 16 where a program allows it (cudaFuncAttributeNonPortableClusterSizeAllowed)",
        "a dimension of a cluster is 0",
        "it is compiled for clusters of 2 x 1 x 1 blocks (__cluster_dims__), and launched with others",
    ):
        assert line in err
    traces = list(ws.load(tmp_path / "out"))
    assert [trace.short_name for trace in traces] == ["neighbours", "neighbours", "pairs"]
    # Reads of another block's shared memory go through no cache.
    rows = traces[0].instructions
    loads = rows[rows.opcode.str.startswith("ld.") & (rows.executions > 0)]
    assert set(loads.space) == {"shared"}


def test_clusters_of_a_graph_node(program, tmp_path, capfd):
    host.trace_program([program, "graph"], tmp_path / "out")
    out, err = capfd.readouterr()
    assert out.splitlines() == ["cudaErrorInvalidClusterSize", "cudaSuccess: 10 10 50 50"]
    assert "not a multiple of the cluster's 3" in err


def test_tensor_maps(program, tmp_path, capfd):
    host.trace_program([program, "tensors"], tmp_path / "out")
    out, err = capfd.readouterr()
    # The element at (x, y) of the tensor is 20 y + x; it has 20 columns and 6 rows, the tile 8 and 4.
    assert out.splitlines() == [
        "0",
        "cudaSuccess: 24 25 31 44 91",
        "cudaSuccess: 0 80 86 0 0",
        "0",
        "cudaSuccess: 53 54 nan 73 nan",
        "0",
        "cudaSuccess: 20 21 27 40 87",
        "1 801 1 1 801",
    ]
    for line in (
        "only tensors of floats are filled with NaN",
        "interleaved tensors are not supported",
        "unknown type of elements",
        "the stride of dimension 1, 12 bytes, is not a multiple of 16",
        "cuTensorMapEncodeIm2col: not supported",
    ):
        assert line in err
    # A tile of 8 x 4 floats inside of the tensor, rows of 80 bytes: 32 bytes of each row from byte
    # 16 of a sector on are two sectors.
    trace = next(iter(ws.load(tmp_path / "out")))
    rows = trace.instructions
    assert rows[rows.opcode.str.contains("tensor")].executions.sum() == 1
