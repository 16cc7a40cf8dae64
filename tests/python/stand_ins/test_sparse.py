"""cuSPARSE's functions on the stand-in: formats, types, statuses, operations."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import compiler_cache
import warpstack as ws
from effort import rounds
from python_reference import sparse
from stand_ins import library_runner, sparse_cases
from stand_ins.library_runner import run_python
from warpstack.cuda import host

VERSIONS = ("libcusparse.so.11", "libcusparse.so.12")

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the stand-in for cuSPARSE needs Linux"
)


def run_client(folder, plan, memory, library="libcusparse.so.12"):
    return library_runner.run_client(folder, "cusparseCreate", plan, memory, library)


@pytest.mark.parametrize("seed", range(4))
def test_results_are_those_of_dense_matrices(tmp_path, seed):
    plan, memory, checks = sparse_cases.cases(seed, rounds(252))
    found, said = run_client(tmp_path, plan, memory, VERSIONS[seed % 2])
    for number, (check, may_fail) in enumerate(checks):
        statuses = found[number]["status"]
        failed = [i for i in np.flatnonzero(statuses) if i != may_fail]
        assert not failed, (number, plan[number]["steps"][failed[0]], said[-500:])
        check(found[number])
    assert said.count("no trace has them") == 1


#: Functions that graphs take.
CAPTURED = ("SpMV", "SpMM", "SDDMM", "Axpby", "Gather", "Scatter", "Rot", "SpVV", "SparseToDense")


def captured_cases(seed, count):
    """Return cases whose calls graphs can take, but for results on the host."""
    plan, memory, checks = sparse_cases.cases(seed, count)
    chosen, kept = [], {}
    for number, each in enumerate(plan):
        calls = {step[0].removeprefix("cusparse") for step in each["steps"]}
        work = {
            name for name in calls if not name.startswith(("Create", "Set", "Destroy", "DnMat"))
        }
        work = {name for name in work if not name.endswith(("bufferSize", "preprocess"))}
        if work and work <= set(CAPTURED):
            for name in (*each["device"], *each["host"]):
                kept[f"{len(chosen)}.{name}"] = memory[f"{number}.{name}"]
            chosen.append(({**each, "captured": "cusparseSetStream"}, checks[number], work))
    return chosen, kept


@pytest.mark.parametrize("seed", range(2))
def test_captured_calls_run_when_the_graph_is_launched(tmp_path, seed):
    """They take what they were given when they were captured, whatever becomes of it."""
    chosen, memory = captured_cases(seed, rounds(252))
    found, said = run_client(tmp_path, [each for each, _, _ in chosen], memory, VERSIONS[seed % 2])
    for number, (each, (check, may_fail), _) in enumerate(chosen):
        failed = [i for i in np.flatnonzero(found[number]["status"]) if i != may_fail]
        assert not failed, (number, each["steps"][failed[0]], said[-500:])
        check(found[number])


def test_all_functions_are_captured():
    chosen, _ = captured_cases(0, 252)
    assert len(chosen) > 60
    assert {name for _, _, work in chosen for name in work} == set(CAPTURED)


def test_all_formats_are_tried():
    plan, _, _ = sparse_cases.cases(0, 252)
    steps = [step for each in plan for step in each["steps"]]
    names = {step[0] for step in steps}
    for form in ("Csr", "Csc", "Coo", "Bsr", "BlockedEll", "SlicedEll"):
        assert f"cusparseCreate{form}" in names
    for call in ("SpMV", "SpMM"):
        for operation in range(3):
            assert any(step[:3] == [f"cusparse{call}", "h", operation] for step in steps)
    assert {step[2] for step in steps if step[0] == "cusparseSetPointerMode"} == {0, 1}


def test_the_reference_reads_what_it_stores():
    """The arrays of each format, by hand: rows [1 0 2], [0 0 3]."""
    dense = np.array([[1, 0, 2], [0, 0, 3]], complex)
    wanted = {
        "csr": ([0, 2, 3], [0, 2, 2], [1, 2, 3]),
        "csc": ([0, 1, 1, 3], [0, 0, 1], [1, 2, 3]),
        "coo": ([0, 0, 1], [0, 2, 2], [1, 2, 3]),
        "bsr": ([0, 2], [0, 2], [1, 0, 2, 3]),
        "sliced_ell": ([0, 4], [0, 2, 2, -1], [1, 3, 2, 0]),
    }
    for form, (offsets, indices, numbers) in wanted.items():
        stored = sparse.Stored(dense, dense != 0, form, 0, (2, 1))
        assert stored.offsets.tolist() == offsets, form
        assert stored.indices.tolist() == indices, form
        assert stored.numbers.tolist() == numbers, form
        assert stored.dense().tolist() == dense.tolist()


def test_no_number_of_a_row_that_is_multiplied_by_zero_is_lost(tmp_path):
    """Infinity stays infinity in real numbers, and beta = 0 does not read the result."""
    build = sparse_cases.Builder(np.random.default_rng(0))
    dense = np.array([[np.inf, 1], [0, 2]], complex)
    build.sparse_matrix("A", "f32", sparse.Stored(dense, dense != 0, "csr", 0))
    build.dense_vector("x", "f32", np.array([1, 1]))
    build.dense_vector("y", "f32", np.array([np.nan, np.nan]))
    build.step("cusparseSpMV", "h", 0, build.scalar("one", "f32", 1), "A", "x",
               build.scalar("none", "f32", 0), "y", 0, 0, None)  # fmt: skip
    memory = {f"0.{name}": data for name, data in (build.device | build.host).items()}
    plan = [{"device": list(build.device), "host": list(build.host), "steps": build.steps}]
    found, _ = run_client(tmp_path, plan, memory)
    assert found[0]["y.values"].view(np.float32).tolist() == [np.inf, 2]


MISTAKES = """
import ctypes
lib = ctypes.CDLL("libcusparse.so.12")
cuda = ctypes.CDLL("libcudart.so.13")
def slot():
    return ctypes.c_void_p()
def i64(value):
    return ctypes.c_int64(value)
def device(values, kind):
    pointer, host = slot(), (kind * len(values))(*values)
    assert cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(ctypes.sizeof(host))) == 0
    assert cuda.cudaMemcpy(pointer, host, ctypes.c_size_t(ctypes.sizeof(host)), 1) == 0
    return pointer
handle, gone, a, x, y, m, size, number = (slot() for _ in range(8))
by = ctypes.byref
assert lib.cusparseCreate(by(handle)) == 0 and lib.cusparseCreate(by(gone)) == 0
assert lib.cusparseDestroy(gone) == 0
offsets = device([0, 1, 2], ctypes.c_int32)
indices = device([0, 1], ctypes.c_int32)
values = device([1, 2], ctypes.c_float)
numbers = device([3, 4, 5, 6], ctypes.c_float)
def matrix(offsets, indices, rows=2, columns=2, count=2, base=0, type=0, index=2):
    place = slot()
    status = lib.cusparseCreateCsr(by(place), i64(rows), i64(columns), i64(count), offsets, indices,
                                   values, index, index, base, type)
    return status, place
good = matrix(offsets, indices)[1]
assert lib.cusparseCreateDnVec(by(x), i64(2), numbers, 0) == 0
assert lib.cusparseCreateDnVec(by(y), i64(2), values, 0) == 0
wide, longer = slot(), slot()
assert lib.cusparseCreateDnVec(by(wide), i64(2), numbers, 1) == 0
assert lib.cusparseCreateDnVec(by(longer), i64(3), numbers, 0) == 0
one, zero = ctypes.c_float(1), ctypes.c_float(0)
def spmv(a, x=x, y=y, operation=0, alpha=by(one), beta=by(zero), compute=0, handle=handle):
    return lib.cusparseSpMV(handle, operation, alpha, a, x, beta, y, compute, 0, None)
host = (ctypes.c_float * 2)()
on_host = slot()
assert lib.cusparseCreateDnVec(by(on_host), i64(2), host, 0) == 0
solve = slot()
assert lib.cusparseSpSV_createDescr(by(solve)) == 0
INIT, VALUE, EXEC, LACKS = 1, 3, 6, 10
statuses = [
    (VALUE, lib.cusparseCreate(None)),
    (INIT, lib.cusparseDestroy(gone)),
    (INIT, lib.cusparseSetStream(None, None)),
    (VALUE, lib.cusparseSetPointerMode(handle, 7)),
    (VALUE, matrix(offsets, indices, rows=-1)[0]),
    (VALUE, matrix(offsets, indices, base=2)[0]),
    (VALUE, matrix(offsets, indices, index=9)[0]),
    (LACKS, matrix(offsets, indices, type=8)[0]),
    (0, spmv(good)),
    (INIT, spmv(good, handle=gone)),
    (VALUE, spmv(None)),
    (VALUE, spmv(x)),
    (VALUE, spmv(good, x=longer)),
    (VALUE, spmv(good, operation=3)),
    (VALUE, spmv(good, alpha=None)),
    (VALUE, spmv(good, alpha=values)),
    (LACKS, spmv(good, x=wide)),
    (LACKS, spmv(good, compute=4)),
    (LACKS, spmv(good, compute=2)),
    (EXEC, spmv(good, y=on_host)),
    (VALUE, spmv(matrix(device([0, 2, 1], ctypes.c_int32), indices)[1])),
    (VALUE, spmv(matrix(device([0, 1, 3], ctypes.c_int32), indices)[1])),
    (VALUE, spmv(matrix(device([1, 1, 2], ctypes.c_int32), indices)[1])),
    (VALUE, spmv(matrix(offsets, device([0, 2], ctypes.c_int32))[1])),
    (VALUE, spmv(matrix(offsets, device([-1, 1], ctypes.c_int32))[1])),
    (VALUE, spmv(matrix(offsets, None)[1])),
    (VALUE, lib.cusparseCreateDnMat(by(m), i64(4), i64(1), i64(3), numbers, 0, 1)),
    (VALUE, lib.cusparseCreateDnMat(by(m), i64(4), i64(1), i64(4), numbers, 0, 3)),
    (VALUE, lib.cusparseSpMatSetAttribute(good, 2, by(one), 4)),
    (VALUE, lib.cusparseSpMatSetAttribute(good, 0, by(one), 8)),
    (VALUE, lib.cusparseCscSetPointers(good, offsets, indices, values)),
    (VALUE, lib.cusparseSpSV_solve(handle, 0, by(one), good, x, y, 0, 0, solve)),
    (VALUE, lib.cusparseXcoo2csr(handle, device([1, 0], ctypes.c_int32), 2, 2, offsets, 0)),
    (LACKS, lib.cusparseSgtsv2(handle)),
    (LACKS, lib.cusparseScsrsv2_solve(handle)),
    (0, lib.cusparseDestroySpMat(good)),
    (VALUE, lib.cusparseDestroySpMat(good)),
    (VALUE, spmv(good)),
]
for index, (wanted, found) in enumerate(statuses):
    assert wanted == found, (index, wanted, found)
lib.cusparseGetErrorString.restype = lib.cusparseGetErrorName.restype = ctypes.c_char_p
assert lib.cusparseGetErrorName(3) == b"CUSPARSE_STATUS_INVALID_VALUE"
assert lib.cusparseGetErrorString(0) == b"success"
assert lib.cusparseGetErrorString(99) == b"unrecognized error code"
"""


def test_mistakes_have_a_status_and_a_line():
    done = run_python("-c", MISTAKES)
    assert done.returncode == 0, done.stderr
    for text in (
        "cusparseDestroy: cusparseCreate has made no such handle",
        "cusparseSetStream: the handle is null",
        "cusparseCreateCsr: rows = -1 is negative",
        "cusparseCreateCsr: valueType = 8 is not a type of values",
        "cusparseSpMV: matA is null",
        "cusparseSpMV: matA is not a descriptor: it was destroyed, or never created",
        "cusparseSpMV: the size of vecX = 3 is not the columns of op(A) = 2",
        "cusparseSpMV: alpha lies in device memory, but the pointer mode is CUSPARSE_POINTER_MODE_HOST",
        "cusparseSpMV: the offsets: they do not ascend",
        "cusparseSpMV: the offsets: element 2 = 3 is outside",
        "cusparseSpMV: the offsets: the first offset is 1, not the index base",
        "cusparseSpMV: the indices: element 1 = 2 is outside of the matrix or vector",
        "the memory for the results is not the device's",
        "cusparseSpSV_solve: cusparseSpSV_analysis was not called before",
        "cusparseXcoo2csr: cooRowInd is not sorted",
        "cusparseSgtsv2: not supported by warpstack's stand-in for cuSPARSE",
        "cusparseScsrsv2_solve: not supported by warpstack's stand-in for cuSPARSE",
    ):
        assert text in done.stderr, text


def test_versions():
    text = """
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
handle, value = ctypes.c_void_p(), ctypes.c_int()
assert lib.cusparseCreate(ctypes.byref(handle)) == 0
assert lib.cusparseGetVersion(handle, ctypes.byref(value)) == 0
print(value.value, end=" ")
assert lib.cusparseGetProperty(0, ctypes.byref(value)) == 0
print(value.value)
"""
    for name, wanted in zip(VERSIONS, ("11705 11", "12603 12"), strict=True):
        assert run_python("-c", text, name).stdout.strip() == wanted


PROGRAM = """
#include <cstdio>
#include <cuda_runtime.h>
#include <cusparse.h>

__global__ void fill(float* x, float value) { x[threadIdx.x] = value; }

int main() {
  const int size = 1 << 10;
  int *offsets, *columns;
  float *values, *x, *y;
  cudaMallocManaged(&offsets, (size + 1) * 4);
  cudaMallocManaged(&columns, size * 4);
  cudaMallocManaged(&values, size * 4);
  cudaMallocManaged(&x, size * 4);
  cudaMallocManaged(&y, size * 4);
  for (int i = 0; i < size; ++i) {
    offsets[i] = columns[i] = i;
    values[i] = 2;
    x[i] = i;
  }
  offsets[size] = size;
  cudaStream_t stream, other;
  cudaStreamCreate(&stream);
  cudaStreamCreate(&other);
  cusparseHandle_t handle;
  cusparseCreate(&handle);
  cusparseSetStream(handle, stream);
  cusparseSpMatDescr_t a;
  cusparseDnVecDescr_t in, out;
  cusparseCreateCsr(&a, size, size, size, offsets, columns, values, CUSPARSE_INDEX_32I,
                    CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F);
  cusparseCreateDnVec(&in, size, x, CUDA_R_32F);
  cusparseCreateDnVec(&out, size, y, CUDA_R_32F);
  const float one = 1, none = 0;
  const auto multiply = [&] {
    return cusparseSpMV(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, a, in, &none, out,
                        CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, nullptr);
  };
  fill<<<1, 32, 0, stream>>>(y, -1);
  const int status = multiply();
  cudaStreamSynchronize(stream);
  printf("%d %g\\n", status, y[size - 1]);
  cudaGraph_t graph;
  cudaStreamBeginCapture(other, cudaStreamCaptureModeGlobal);
  cusparseSetStream(handle, other);
  printf("captured: %d\\n", multiply());
  cudaStreamEndCapture(other, &graph);
  cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_HOST);
  cudaGraphExec_t executable;
  cudaGraphInstantiate(&executable, graph, 0);
  x[size - 1] = 5;
  cudaGraphLaunch(executable, stream);
  cudaStreamSynchronize(stream);
  printf("%g\\n", y[size - 1]);
  return 0;
}
"""


def test_a_call_is_an_operation_of_its_stream(tmp_path, capfd):
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if nvcc is None or not (Path(nvcc).resolve().parents[1] / "include" / "cusparse.h").exists():
        pytest.skip("nvcc and cuSPARSE are not installed")
    source, program = tmp_path / "program.cu", tmp_path / "sparse"
    source.write_text(PROGRAM)
    options = ["-std=c++17", "-cudart", "shared", "-gencode", "arch=compute_75,code=compute_75"]
    compiler_cache.nvcc([nvcc, *options, "-o", program, source, "-lcusparse"])
    traced = host.trace_program([str(program)], tmp_path / "out")
    said = capfd.readouterr()
    assert said.out.splitlines() == ["0 2046", "captured: 0", "10"]
    assert not traced.problem()
    app = ws.load(tmp_path / "out")
    rows = app.operations[app.operations["operation"] == "library"]
    assert rows["name"].tolist() == ["cuSPARSE"] * 2
    assert rows["graph"].tolist() == [-1, 0]
    # Offsets, indices, values and both vectors, once each.
    assert rows["bytes"].iloc[0] == 4 * (1025 + 4 * 1024)
    line = ws.timeline(app, ws.gpu("a100")).table
    assert line[line["operation"] == "library"]["estimated"].all()
