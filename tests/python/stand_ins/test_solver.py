"""cuSOLVER's dense functions on the stand-in: factorisations, statuses, operations."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import compiler_cache
import warpstack as ws
from effort import rounds
from stand_ins import library_runner, solver_cases
from stand_ins.library_runner import run_python
from warpstack.cuda import host
from warpstack.cuda.libraries import lapack_library

VERSIONS = ("libcusolver.so.11", "libcusolver.so.12")
LAPACK = lapack_library()

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the stand-in for cuSOLVER needs Linux"
)
needs_lapack = pytest.mark.skipif(LAPACK is None, reason="scipy-openblas32 is not installed")


@needs_lapack
@pytest.mark.parametrize("seed", range(4))
def test_factors_give_the_matrix_again(tmp_path, seed):
    plan, memory, checks = solver_cases.cases(seed, rounds(252))
    found, said = library_runner.run_client(
        tmp_path, "cusolverDnCreate", plan, memory, VERSIONS[seed % 2], WARPSTACK_LAPACK=str(LAPACK)
    )
    library_runner.check_cases(found, plan, checks, said)
    assert said.count("no trace has them") == 1


@needs_lapack
def test_captured_calls_run_when_the_graph_is_launched(tmp_path):
    plan, memory, checks = solver_cases.cases(7, rounds(120))
    plan = [{**each, "captured": "cusolverDnSetStream"} for each in plan]
    found, said = library_runner.run_client(
        tmp_path, "cusolverDnCreate", plan, memory, VERSIONS[1], WARPSTACK_LAPACK=str(LAPACK)
    )
    for number, check in enumerate(checks):
        failed = np.flatnonzero(found[number]["status"])
        assert not failed.size, (number, plan[number]["steps"][failed[0]], said[-500:])
        check(found[number])


def test_all_functions_are_tried():
    plan, _, _ = solver_cases.cases(0, 252)
    names = {step[0] for each in plan for step in each["steps"]}
    for routine in ("getrf", "getrs", "potrf", "potrs", "geqrf", "syevd", "gesvd"):
        assert f"cusolverDnX{routine}" in names
    for letters, routines in (
        ("SDCZ", ("getrf", "getrs", "potrf", "potrs", "potri", "geqrf", "gesvd", "gesvdj")),
        ("SD", ("orgqr", "ormqr", "syevd", "syevj", "sygvd", "sygvj")),
        ("CZ", ("ungqr", "unmqr", "heevd", "heevj", "hegvd", "hegvj")),
    ):
        for routine in routines:
            assert any(f"cusolverDn{letter}{routine}" in names for letter in letters), routine


MISTAKES = """
import ctypes
lib = ctypes.CDLL("libcusolver.so.12")
cuda = ctypes.CDLL("libcudart.so.13")
def slot():
    return ctypes.c_void_p()
by = ctypes.byref
handle, gone, size, count = slot(), slot(), slot(), ctypes.c_size_t()
assert lib.cusolverDnCreate(by(handle)) == 0 and lib.cusolverDnCreate(by(gone)) == 0
assert lib.cusolverDnDestroy(gone) == 0
def device(values, kind):
    pointer, host = slot(), (kind * len(values))(*values)
    assert cuda.cudaMalloc(by(pointer), ctypes.c_size_t(ctypes.sizeof(host))) == 0
    assert cuda.cudaMemcpy(pointer, host, ctypes.c_size_t(ctypes.sizeof(host)), 1) == 0
    return pointer
def again(pointer, kind, count):
    host = (kind * count)()
    assert cuda.cudaMemcpy(host, pointer, ctypes.c_size_t(ctypes.sizeof(host)), 2) == 0
    return list(host)
a = device([4, 2, 2, 3], ctypes.c_double)
b = device([1, 2], ctypes.c_double)
rows = device([0, 0], ctypes.c_int32)
wrong = device([1, 3], ctypes.c_int32)
info = device([7], ctypes.c_int32)
host = (ctypes.c_double * 4)()
def getrf(handle=handle, m=2, n=2, a=a, ld=2, rows=rows, info=info):
    return lib.cusolverDnDgetrf(handle, m, n, a, ld, None, rows, info)
def i64(value):
    return ctypes.c_int64(value)
def xpotrf(type=1, compute=1, n=2, ld=2, params=None):
    return lib.cusolverDnXpotrf(handle, params, 0, i64(n), type, a, i64(ld), compute, None,
                                count, None, count, info)
def gesvd(u=b"N", v=b"N", m=2, n=2):
    return lib.cusolverDnDgesvd(handle, ord(u), ord(v), m, n, a, 2, b, a, 2, a, 2, None, 0, None, info)
INIT, VALUE, EXEC, LACKS = 1, 3, 6, 9
statuses = [
    (VALUE, lib.cusolverDnCreate(None)),
    (INIT, lib.cusolverDnDestroy(gone)),
    (INIT, getrf(handle=None)),
    (VALUE, getrf(m=-1)),
    (VALUE, getrf(ld=1)),
    (VALUE, getrf(a=None)),
    (VALUE, getrf(info=None)),
    (EXEC, getrf(a=host)),
    (VALUE, lib.cusolverDnDgetrs(handle, 3, 2, 1, a, 2, rows, b, 2, info)),
    (VALUE, lib.cusolverDnDgetrs(handle, 0, 2, 1, a, 2, wrong, b, 2, info)),
    (VALUE, lib.cusolverDnDgetrs(handle, 0, 2, 1, a, 2, wrong, b, 1, info)),
    (VALUE, lib.cusolverDnDpotrf(handle, 2, 2, a, 2, None, 0, info)),
    (VALUE, lib.cusolverDnDgetrf_bufferSize(handle, 4, 2, a, 2, by(size))),
    (VALUE, lib.cusolverDnDorgqr(handle, 1, 2, 1, a, 2, b, None, 0, info)),
    (VALUE, lib.cusolverDnDormqr(handle, 0, 0, 1, 1, 2, a, 2, b, a, 2, None, 0, info)),
    (VALUE, lib.cusolverDnCunmqr(handle, 0, 1, 1, 1, 1, a, 2, b, a, 2, None, 0, info)),
    (VALUE, gesvd(u=b"X")),
    (VALUE, gesvd(u=b"O", v=b"O")),
    (VALUE, gesvd(m=1)),
    (VALUE, lib.cusolverDnDsyevj(handle, 1, 0, 2, a, 2, b, None, 0, info, None)),
    (VALUE, lib.cusolverDnDsygvd(handle, 4, 1, 0, 2, a, 2, a, 2, b, None, 0, info)),
    (LACKS, xpotrf(type=2, compute=2)),
    (LACKS, xpotrf(compute=0)),
    (LACKS, xpotrf(n=2**31, ld=2**31)),
    (VALUE, xpotrf(params=a)),
    (LACKS, lib.cusolverDnXgeev(handle)),
    (LACKS, lib.cusolverSpDcsrlsqvqrHost(handle)),
    (0, getrf(m=0)),
    (0, getrf()),
]
for index, (wanted, found) in enumerate(statuses):
    assert wanted == found, (index, wanted, found)
assert again(rows, ctypes.c_int32, 2) == [1, 2] and again(info, ctypes.c_int32, 1) == [0]
assert again(a, ctypes.c_double, 4) == [4, 0.5, 2, 2]
"""


@needs_lapack
def test_mistakes_have_a_status_and_a_line():
    done = run_python("-c", MISTAKES, WARPSTACK_LAPACK=str(LAPACK))
    assert done.returncode == 0, done.stderr
    for text in (
        "cusolverDnDestroy: cusolverDnCreate has made no such handle",
        "cusolverDnDgetrf: the handle is null",
        "cusolverDnDgetrf: the rows of a matrix = -1 is negative",
        "cusolverDnDgetrf: lda = 1 is less than max(1, 2)",
        "cusolverDnDgetrf: devInfo is null",
        "the memory for the input is not the device's",
        "cusolverDnDgetrs: devIpiv: element 1 = 3 is no row of the matrix",
        "cusolverDnDgesvd: m = 1 is less than n = 2",
        "cusolverDnDsyevj: params is null",
        "cusolverDnXpotrf: dataTypeA = 2 is not CUDA_R_32F",
        "cusolverDnXgeev: not supported by warpstack's stand-in for cuSOLVER",
        "cusolverSpDcsrlsqvqrHost: not supported by warpstack's stand-in for cuSOLVER",
    ):
        assert text in done.stderr, text


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("", "scipy-openblas32 is not installed"),
        ("/nowhere/lapack.so", "/nowhere/lapack.so cannot be loaded"),
        ("libcudart.so.12", "the library of WARPSTACK_LAPACK has no scipy_dgetrf_"),
    ],
)
def test_without_lapack_calls_fail_and_say_what_to_install(file, said):
    text = MISTAKES.partition("INIT, VALUE")[0] + "assert getrf() == 7 and getrf(m=-1) == 3\n"
    done = run_python("-c", text, WARPSTACK_LAPACK=file)
    assert done.returncode == 0, done.stderr
    assert f"cusolverDnDgetrf: {said}" in done.stderr
    assert 'pip install "warpstack[lapack]"' in done.stderr


def test_versions():
    text = """
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
value = ctypes.c_int()
assert lib.cusolverGetVersion(ctypes.byref(value)) == 0
print(value.value, end=" ")
assert lib.cusolverGetProperty(0, ctypes.byref(value)) == 0
print(value.value)
"""
    for name, wanted in zip(VERSIONS, ("11703 11", "12004 12"), strict=True):
        assert run_python("-c", text, name).stdout.strip() == wanted


PROGRAM = """
#include <cstdio>
#include <cuda_runtime.h>
#include <cusolverDn.h>

int main() {
  const int n = 64;
  double* a;
  int *rows, *info, size;
  cudaMallocManaged(&a, n * n * sizeof(double));
  cudaMallocManaged(&rows, n * sizeof(int));
  cudaMallocManaged(&info, sizeof(int));
  for (int i = 0; i < n * n; ++i) a[i] = i % (n + 1) == 0 ? 2 : 0;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cusolverDnHandle_t handle;
  cusolverDnCreate(&handle);
  cusolverDnSetStream(handle, stream);
  cusolverDnDgetrf_bufferSize(handle, n, n, a, n, &size);
  double* work;
  cudaMalloc(&work, size * sizeof(double));
  const int status = cusolverDnDgetrf(handle, n, n, a, n, work, rows, info);
  cudaStreamSynchronize(stream);
  printf("%d %d %g %d\\n", status, *info, a[0], rows[n - 1]);
  return 0;
}
"""


@needs_lapack
def test_a_call_is_an_operation_of_its_stream(tmp_path, capfd):
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if nvcc is None or not (Path(nvcc).resolve().parents[1] / "include" / "cusolverDn.h").exists():
        pytest.skip("nvcc and cuSOLVER are not installed")
    source, program = tmp_path / "program.cu", tmp_path / "solver"
    source.write_text(PROGRAM)
    options = ["-std=c++17", "-cudart", "shared", "-gencode", "arch=compute_75,code=compute_75"]
    compiler_cache.nvcc([nvcc, *options, "-o", program, source, "-lcusolver"])
    traced = host.trace_program([str(program)], tmp_path / "out")
    assert capfd.readouterr().out.splitlines() == ["0 0 2 64"]
    assert not traced.problem()
    app = ws.load(tmp_path / "out")
    rows = app.operations[app.operations["operation"] == "library"]
    assert rows["name"].tolist() == ["cuSOLVER"]
    # The matrix is read and written, the pivots and the result are written.
    assert rows["bytes"].iloc[0] == 2 * 8 * 64 * 64 + 4 * 64 + 4
    line = ws.timeline(app, ws.gpu("a100")).table
    assert line[line["operation"] == "library"]["estimated"].all()
