"""cuBLAS's functions on the stand-in: their results, their statuses, their kernels."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import compiler_cache
import warpstack as ws
from warpstack import _core
from warpstack.cuda import host

HERE = Path(__file__).parent
CLIENT = HERE / "blas_client.py"
LIBRARIES = Path(_core.__file__).parent / "lib"
KERNELS = HERE.parents[2] / "data" / "libraries" / "cublas"

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the stand-in for cuBLAS needs Linux"
)
OWN_KERNELS = "kernels of warpstack's own"


def run_client(scenario, version="12"):
    """Run a scenario, which holds its results against NumPy; return what it says."""
    environment = dict(os.environ, LD_LIBRARY_PATH=str(LIBRARIES))
    done = subprocess.run(
        [sys.executable, str(CLIENT), version, scenario],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize(
    "scenario",
    [
        "gemm",
        "large_gemm",
        "aligned_gemm",
        "batched",
        "vectors",
        "extremes",
        "matrices",
        "geam",
        "dgmm",
        "trsm",
        "legacy",
    ],
)
def test_results_are_those_of_numpy(scenario):
    assert run_client(scenario).count(OWN_KERNELS) == 1  # said once, not at each launch


@pytest.mark.parametrize("version", ["11", "12", "13"])
def test_settings_of_a_handle(version):
    assert OWN_KERNELS not in run_client("settings", version)  # nothing was launched


def test_copies_of_vectors_and_matrices():
    assert "null pointer" in run_client("transfers")


def test_mistakes_have_a_status_and_a_line():
    said = run_client("mistakes")
    for text in (
        "cublasSgemm: transa = 3 is not CUBLAS_OP_N",
        "cublasSgemm: lda = 3 is less than max(1, 4)",
        "cublasSgemm: a size is negative",
        "cublasSgemm: alpha is a null pointer",
        "cublasSgemm: C is a null pointer",
        "cublasSgemm: alpha lies in device memory, but the pointer mode is CUBLAS_POINTER_MODE_HOST",
        "host memory, but the pointer mode is CUBLAS_POINTER_MODE_DEVICE",
        "cublasSdot: the result lies in device memory",
        "cublasSgemv: an increment is 0",
        "cublasStrsm: side is neither left nor right",
        "cublasSdgmm: mode is neither left nor right",
        "cublasDdgmm: C is A, which must have the same leading dimension then",
        "cublasSgeam: C is A, which must not be transposed",
        "the handle is null",
        "has made no such handle",
    ):
        assert f"{text}" in said, text
    assert "error" not in said


def test_what_is_lacking_is_named():
    said = run_client("lacking")
    assert "error: cublasCgemm: not supported by warpstack's stand-in" in said
    assert "cudaDataType 4, 4, 4 with cublasComputeType_t 68 are not supported" in said
    assert "incy = 0" in said


def test_a_result_on_the_host_is_refused_while_a_stream_captures():
    assert "cublasSasum: the stream captures, and a result in host memory" in run_client("capture")


def test_each_thing_is_said_once():
    said = run_client("again")
    assert said.count("cublasCgemm: not supported") == 1
    assert "cublasCreate: the device has failed before: cudaError" in said


@pytest.mark.parametrize("version", ["11", "12", "13"])
def test_cublaslt_has_handles(version):
    assert "error: cublasLtMatmul: not supported" in run_client("lt", version)


def test_a_kernel_beyond_its_matrix():
    assert re.search(
        r"error: cudaLaunchKernel: .*ws_gemm_f32_nn_32x32.* out-of-bounds", run_client("fault")
    )


def test_launches_are_traced(tmp_path, capfd):
    result = host.trace_program([sys.executable, str(CLIENT), "12", "one"], tmp_path / "out")
    assert not result.problem()
    large, small = ws.load(tmp_path / "out")
    assert (large.name, large.grid, large.block) == (
        "ws_gemm_f32_nt_128x128",
        (2, 1, 1),
        (256, 1, 1),
    )
    assert (small.name, small.grid, small.block) == ("ws_gemm_f16_tn_32x32", (1, 1, 1), (128, 1, 1))
    # A warp holds 64 x 32 of C: each of 21 + 3 steps along k takes 64 multiplications.
    rows = large.instructions
    assert rows.executions[rows.opcode == "fma.rn.f32"].sum() >= 24 * 64
    assert small.instructions.opcode.str.startswith("wmma.mma").any()
    capfd.readouterr()


def test_a_program_that_lacks_a_function_is_not_complete(tmp_path, capfd):
    with pytest.raises(ws.InputError, match="launched no kernel; cublasCgemm: not supported"):
        host.trace_program([sys.executable, str(CLIENT), "12", "lacking"], tmp_path / "out")
    capfd.readouterr()


def test_a_program_of_nvcc(tmp_path, capfd):
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    toolkit = Path(nvcc or "/none/nvcc").resolve().parents[1]
    if not (toolkit / "include" / "cublas_v2.h").exists():
        pytest.skip("nvcc and cuBLAS are not installed")
    program = tmp_path / "blas"
    words = [
        nvcc,
        "-cudart",
        "shared",
        "-gencode",
        "arch=compute_75,code=compute_75",
        "-o",
        program,
    ]
    compiler_cache.nvcc([*words, HERE / "host_programs" / "blas.cu", "-lcublas"])
    assert not host.trace_program([program], tmp_path / "out").problem()
    said = capfd.readouterr()
    assert said.out.splitlines() == [
        "CUBLAS_STATUS_SUCCESS",
        "CUBLAS_STATUS_SUCCESS",
        "0 wrong, dot right",
        "an unsupported value or parameter was passed to the function",
    ]
    assert "note: cublasSgemm: lda = 1 is less than max(1, 70)" in said.err
    names = [kernel.name for kernel in ws.load(tmp_path / "out")]
    assert names == ["ws_gemm_f32_nn_32x32"] * 2 + ["ws_dot_f32", "ws_sum_last_f32"]


def test_ptx_is_that_of_its_source():
    headers = hashlib.sha256()
    for path in [KERNELS / "arguments.h", *sorted(KERNELS.glob("*.cuh"))]:
        headers.update(path.read_bytes())
    sources = sorted(KERNELS.glob("*.cu"))
    assert sources
    for source in sources:
        stamp = source.with_suffix(".ptx").read_text().rstrip().rpartition("\n")[2]
        digest = hashlib.sha256(source.read_bytes()).hexdigest()
        assert stamp == f"// Source: SHA-256 {digest} headers {headers.hexdigest()}", (
            f"{source.name}: run tools/compile-cublas-kernels"
        )
