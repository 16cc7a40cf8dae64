"""cuFFT's functions on the stand-in: transforms of all layouts and types, statuses, operations."""

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import compiler_cache
import warpstack as ws
from effort import rounds
from python_reference import fourier
from warpstack import _core
from warpstack.cuda import host

HERE = Path(__file__).parent
CLIENT = HERE / "fft_client.py"
LIBRARIES = Path(_core.__file__).parent / "lib"
VERSIONS = ("libcufft.so.10", "libcufft.so.11", "libcufft.so.12")

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the stand-in for cuFFT needs Linux"
)


def run_python(*words):
    return subprocess.run(
        [sys.executable, *map(str, words)],
        env=dict(os.environ, LD_LIBRARY_PATH=str(LIBRARIES)),
        capture_output=True,
        text=True,
        check=False,
    )


def run_client(tmp_path, plan, memory, library="libcufft.so.11"):
    """Return the bytes after each transform of a plan, and what was said."""
    files = [tmp_path / name for name in ("plan.json", "memory.npz", "results.npz")]
    files[0].write_text(json.dumps(plan))
    np.savez(files[1], **memory)
    done = run_python(CLIENT, library, *files)
    assert done.returncode == 0, done.stderr
    with np.load(files[2]) as saved:
        return dict(saved), done.stderr


def a_layout(rng, lengths, batch):
    """Return (embed, stride, distance) with room between the elements, or batches woven together."""
    embed = [length + rng.randrange(3) for length in lengths]
    size = int(np.prod(embed))
    if rng.random() < 0.3:
        return [embed, batch, 1]
    stride = rng.choice([1, 1, 2, 3])
    return [embed, stride, size * stride + rng.randrange(4)]


def a_transform(rng):
    """Return a transform: what is computed, where its numbers lie, and how it is asked for."""
    kind = rng.choice(["complex", "to_complex", "to_real"])
    precision = rng.choice(["f32", "f64", "f32", "f64", "f16", "bf16"])
    rank = rng.choice([1, 1, 2, 3])
    narrow = precision in ("f16", "bf16")
    most = {1: 700, 2: 40, 3: 12}[rank]
    lengths = [
        2 ** rng.randrange(most.bit_length()) if narrow else rng.randrange(1, most + 1)
        for _ in range(rank)
    ]
    if rank == 1 and not narrow and rng.random() < 0.2:
        lengths = [rng.choice([131, 257, 2 * 131, 521, 127, 125, 343])]
    each = {
        "kind": kind,
        "precision": precision,
        "lengths": lengths,
        "batch": rng.choice([1, 1, 3]),
    }
    each["direction"] = rng.choice([-1, 1])
    each["in_place"] = rng.random() < 0.4
    through = ["typed"] if narrow else ["simple", "many", "made", "wide", "typed"]
    if rank > 1 and each["batch"] > 1:
        through = [name for name in through if name != "simple"]
    each["through"] = rng.choice(through)
    half = [*lengths[:-1], lengths[-1] // 2 + 1]
    if each["through"] != "simple" and rng.random() < 0.6:
        first = half if kind == "to_real" else lengths
        last = half if kind == "to_complex" else lengths
        each["input"] = a_layout(rng, first, each["batch"])
        each["output"] = a_layout(rng, last, each["batch"])
        if each["in_place"] and kind == "complex":
            each["output"] = each["input"]
        elif each["in_place"]:
            del each["input"], each["output"]
        elif narrow:  # no strides of real numbers
            real = {"to_complex": "input", "to_real": "output"}.get(kind)
            if real:
                size = int(np.prod(each[real][0]))
                each[real] = [each[real][0], 1, size]
    return each


def plan_of(seed, count):
    """Return transforms and the memory before them."""
    rng = random.Random(seed)
    numbers = np.random.default_rng(seed)
    plan = [a_transform(rng) for _ in range(count)]
    memory = {}
    for i, each in enumerate(plan):
        sizes = fourier.sizes(each)
        if each["in_place"]:
            sizes = [max(sizes)] * 2
        for side, size in zip(("input", "output"), sizes, strict=True):
            width = fourier.WIDTHS[each["precision"]]
            values = numbers.normal(size=size // width)
            memory[f"{i}.{side}"] = fourier.encoded(each["precision"], values)
    return plan, memory


@pytest.mark.parametrize("seed", range(4))
def test_transforms_are_those_of_numpy(tmp_path, seed):
    """Elements are right to the last bit or so, and what lies between them is untouched."""
    plan, memory = plan_of(seed, rounds(250))
    found, said = run_client(tmp_path, plan, memory, VERSIONS[seed % 3])
    for i, each in enumerate(plan):
        output = memory[f"{i}.input" if each["in_place"] else f"{i}.output"]
        fourier.check(each, memory[f"{i}.input"], output, found[str(i)])
    assert said.count("no trace has them") == 1


def test_all_kinds_of_transforms_are_tried():
    plan, _ = plan_of(0, 250)
    for key in ("kind", "precision", "through", "in_place", "batch"):
        assert len({str(each[key]) for each in plan}) >= 2, key
    assert {len(each["lengths"]) for each in plan} == {1, 2, 3}
    assert any(each["lengths"] in ([131], [257], [262], [521]) for each in plan)
    assert any(each.get("input") and each["in_place"] for each in plan)


def test_the_reference_is_the_definition():
    """numpy's transforms, by which the others are judged, against the sum that defines them."""
    rng = np.random.default_rng(1)
    for length in (1, 2, 5, 12, 131):
        values = rng.normal(size=length) + 1j * rng.normal(size=length)
        np.testing.assert_allclose(
            fourier.by_definition(values, -1), np.fft.fft(values), atol=1e-10
        )
        np.testing.assert_allclose(
            fourier.by_definition(values, 1), np.fft.ifft(values) * length, atol=1e-10
        )


def test_long_transforms(tmp_path):
    """A long power of two, a long prime, and there and back again."""
    numbers = np.random.default_rng(3)
    plan, memory = [], {}
    for length in (1 << 16, 10007, 3 * 5 * 7 * 11 * 13):
        plan.append({"kind": "complex", "precision": "f64", "lengths": [length], "batch": 1,
                     "direction": -1, "in_place": True, "through": "simple"})  # fmt: skip
        values = numbers.normal(size=2 * length)
        memory[f"{len(plan) - 1}.input"] = memory[f"{len(plan) - 1}.output"] = values.view(np.uint8)
    there, _ = run_client(tmp_path, plan, memory)
    for i, each in enumerate(plan):
        fourier.check(each, memory[f"{i}.input"], memory[f"{i}.input"], there[str(i)])
    back = [{**each, "direction": 1} for each in plan]
    again = {f"{i}.{side}": there[str(i)] for i in range(len(plan)) for side in ("input", "output")}
    found, _ = run_client(tmp_path, back, again)
    for i, each in enumerate(plan):
        values = found[str(i)].view(np.float64) / each["lengths"][0]
        np.testing.assert_allclose(values, memory[f"{i}.input"].view(np.float64), atol=1e-12)


def test_what_is_too_large_for_half_precision_is_infinite(tmp_path):
    each = {"kind": "complex", "precision": "f16", "lengths": [4], "batch": 1, "direction": -1,
            "in_place": False, "through": "typed"}  # fmt: skip
    values = np.array([3e4, 0] * 4, np.float16).view(np.uint8)
    found, _ = run_client(tmp_path, [each], {"0.input": values, "0.output": values})
    assert found["0"].view(np.float16).tolist() == [np.inf, 0, 0, 0, 0, 0, 0, 0]


MISTAKES = """
import ctypes
lib = ctypes.CDLL("libcufft.so.12")
cuda = ctypes.CDLL("libcudart.so.13")
pointer = ctypes.c_void_p()
assert cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(1 << 16)) == 0
host = ctypes.create_string_buffer(1 << 16)
C2C, R2C, C2R = 0x29, 0x2A, 0x2C
SIZE, VALUE, PLAN, TYPE, EXEC, WORKSPACE, LACKS = 8, 4, 1, 3, 6, 13, 16
def new():
    plan = ctypes.c_int()
    assert lib.cufftCreate(ctypes.byref(plan)) == 0
    return plan
def made(*arguments):
    plan = ctypes.c_int()
    assert lib.cufftPlan1d(ctypes.byref(plan), *arguments) == 0
    return plan
def ints(*values):
    return (ctypes.c_int * len(values))(*values)
def longs(*values):
    return (ctypes.c_longlong * len(values))(*values)
def typed(length, kinds, stride=1):
    first, last, execution = kinds
    n, one = longs(length), ctypes.c_longlong(1)
    return lib.cufftXtMakePlanMany(new(), 1, n, n, ctypes.c_longlong(stride), one, first, n, one, one,
                                   last, one, ctypes.byref(size), execution)
plan, size, value = ctypes.c_int(), ctypes.c_size_t(), ctypes.c_longlong()
where = ctypes.byref(plan)
complex_, real, gone, empty = made(64, C2C, 1), made(64, R2C, 1), made(8, C2C, 1), new()
assert lib.cufftDestroy(gone) == 0
alone = new()
assert lib.cufftSetAutoAllocation(alone, 0) == 0
assert lib.cufftMakePlan1d(alone, 64, C2C, 1, ctypes.byref(size)) == 0 and size.value >= 512
statuses = [
    (SIZE, lib.cufftPlan1d(where, 0, C2C, 1)),
    (SIZE, lib.cufftPlan1d(where, -5, C2C, 1)),
    (SIZE, lib.cufftPlan1d(where, 64, C2C, 0)),
    (SIZE, lib.cufftPlan3d(where, 8, 8, 0, C2C)),
    (SIZE, lib.cufftPlanMany(where, 4, ints(2, 2, 2, 2), None, 1, 0, None, 1, 0, C2C, 1)),
    (SIZE, lib.cufftPlanMany(where, 0, ints(2), None, 1, 0, None, 1, 0, C2C, 1)),
    (SIZE, lib.cufftPlan3d(where, 2**31 - 1, 2**31 - 1, 2**31 - 1, C2C)),
    (TYPE, lib.cufftPlan1d(where, 64, 0x30, 1)),
    (VALUE, lib.cufftPlan1d(None, 64, C2C, 1)),
    (VALUE, lib.cufftPlanMany(where, 1, None, None, 1, 0, None, 1, 0, C2C, 1)),
    (VALUE, lib.cufftPlanMany(where, 1, ints(8), ints(8), 0, 8, ints(8), 1, 8, C2C, 1)),
    (VALUE, lib.cufftPlanMany(where, 1, ints(8), ints(8), 1, -8, ints(8), 1, 8, C2C, 2)),
    (0, lib.cufftPlanMany(where, 1, ints(8), ints(8), 0, -8, None, 0, 0, C2C, 2)),
    (PLAN, lib.cufftMakePlan1d(complex_, 8, C2C, 1, ctypes.byref(size))),
    (PLAN, lib.cufftDestroy(gone)),
    (PLAN, lib.cufftDestroy(-1)),
    (PLAN, lib.cufftExecC2C(gone, pointer, pointer, -1)),
    (PLAN, lib.cufftExecC2C(empty, pointer, pointer, -1)),
    (PLAN, lib.cufftGetSize(empty, ctypes.byref(size))),
    (TYPE, lib.cufftExecC2C(real, pointer, pointer, -1)),
    (TYPE, lib.cufftExecZ2Z(complex_, pointer, pointer, -1)),
    (VALUE, lib.cufftExecC2C(complex_, None, pointer, -1)),
    (VALUE, lib.cufftExecC2C(complex_, pointer, None, -1)),
    (VALUE, lib.cufftExecC2C(complex_, pointer, pointer, 0)),
    (VALUE, lib.cufftXtExec(complex_, pointer, pointer, 2)),
    (0, lib.cufftXtExec(real, pointer, pointer, 2)),
    (EXEC, lib.cufftExecC2C(complex_, host, pointer, -1)),
    (WORKSPACE, lib.cufftExecC2C(alone, pointer, pointer, -1)),
    (0, lib.cufftSetWorkArea(alone, pointer)),
    (0, lib.cufftExecC2C(alone, pointer, pointer, -1)),
    (0, typed(64, (6, 6, 6))),
    (SIZE, typed(48, (6, 6, 6))),
    (SIZE, typed(48, (15, 15, 15))),
    (0, typed(48, (4, 4, 4))),
    (LACKS, typed(64, (2, 6, 6), stride=2)),
    (TYPE, typed(64, (4, 6, 6))),
    (TYPE, typed(64, (0, 4, 0))),
    (TYPE, typed(64, (0, 0, 4))),
    (0, lib.cufftXtSetGPUs(new(), 1, ints(0))),
    (LACKS, lib.cufftXtSetGPUs(new(), 2, ints(0, 1))),
    (VALUE, lib.cufftXtSetGPUs(new(), 0, ints(0))),
    (LACKS, lib.cufftXtSetCallback(complex_, None, 0, None)),
    (LACKS, lib.cufftXtMalloc(complex_, None, 0)),
    (0, lib.cufftEstimate2d(32, 32, C2R, ctypes.byref(size))),
    (VALUE, lib.cufftEstimate1d(32, C2R, 1, None)),
    (0, lib.cufftGetSize1d(empty, 32, C2R, 1, ctypes.byref(size))),
    (0, lib.cufftSetPlanPropertyInt64(empty, 1, ctypes.c_longlong(5))),
    (0, lib.cufftGetPlanPropertyInt64(empty, 1, ctypes.byref(value))),
    (LACKS, lib.cufftSetPlanPropertyInt64(empty, 9, ctypes.c_longlong(5))),
    (VALUE, lib.cufftGetProperty(3, ctypes.byref(value))),
    (VALUE, lib.cufftGetVersion(None)),
]
assert value.value == 5
for index, (wanted, found) in enumerate(statuses):
    assert wanted == found, (index, wanted, found)
"""


def test_mistakes_have_a_status_and_a_line():
    done = run_python("-c", MISTAKES)
    assert done.returncode == 0, done.stderr
    for text in (
        "cufftPlan1d: n = 0 is less than 1",
        "cufftPlan1d: batch = 0 is less than 1",
        "cufftPlanMany: rank = 4 is not 1, 2 or 3",
        "cufftPlan1d: type = 48 is not one of cufftType",
        "cufftPlanMany: istride = 0 is less than 1",
        "cufftPlanMany: idist = -8 is negative",
        "cufftMakePlan1d: the handle has a plan",
        "cufftExecC2C: plan = 3 is not a plan: it was destroyed, or never created",
        "cufftExecC2C: the plan is of another type",
        "cufftExecC2C: direction = 0 is not CUFFT_FORWARD or CUFFT_INVERSE",
        "the memory for the input is not the device's",
        "cufftXtMakePlanMany: n = 48 is not a power of two",
        "cufftXtSetCallback: callbacks are functions of the device, and warpstack's stand-in for cuFFT",
        "cufftXtSetGPUs: not supported by warpstack's stand-in for cuFFT",
    ):
        assert text in done.stderr, text


def test_versions():
    text = """
import ctypes, sys
value = ctypes.c_int()
for name in sys.argv[1:]:
    lib = ctypes.CDLL(name)
assert lib.cufftGetVersion(ctypes.byref(value)) == 0
print(value.value, end=" ")
assert lib.cufftGetProperty(0, ctypes.byref(value)) == 0
print(value.value)
"""
    for name, wanted in zip(VERSIONS, ("10900 10", "11401 11", "12000 12"), strict=True):
        assert run_python("-c", text, name).stdout.strip() == wanted


PROGRAM = """
#include <cstdio>
#include <cuda_runtime.h>
#include <cufft.h>

__global__ void fill(cufftComplex* x, float value) {
  x[blockIdx.x * blockDim.x + threadIdx.x] = {value, 0};
}

int main() {
  const int count = 1 << 16;
  cufftComplex* x;
  cufftHandle plan;
  cudaStream_t stream, other;
  cudaMalloc(&x, count * sizeof(cufftComplex));
  cudaStreamCreate(&stream);
  cudaStreamCreate(&other);
  if (cufftPlan1d(&plan, count, CUFFT_C2C, 1) != CUFFT_SUCCESS) return 1;
  cufftSetStream(plan, stream);
  fill<<<count / 256, 256, 0, stream>>>(x, 1);
  if (cufftExecC2C(plan, x, x, CUFFT_FORWARD) != CUFFT_SUCCESS) return 2;
  fill<<<1, 1, 0, stream>>>(x + 1, 2);
  cufftComplex first[2];
  cudaMemcpyAsync(first, x, sizeof first, cudaMemcpyDefault, stream);
  cudaStreamSynchronize(stream);
  printf("%g %g\\n", first[0].x, first[1].x);

  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaStreamBeginCapture(other, cudaStreamCaptureModeGlobal);
  cufftSetStream(plan, other);
  printf("captured: %d\\n", cufftExecC2C(plan, x, x, CUFFT_FORWARD));
  cudaStreamEndCapture(other, &graph);
  cufftDestroy(plan);
  cudaGraphInstantiate(&executable, graph, 0);
  for (int i = 0; i < 2; ++i) {
    cudaGraphLaunch(executable, other);
    cudaMemcpyAsync(first, x, sizeof first, cudaMemcpyDefault, other);
    cudaStreamSynchronize(other);
    printf("%.10g\\n", first[0].x);
  }
  return 0;
}
"""


def compiled(tmp_path, source):
    """Return the program of a source, or skip the test."""
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    header = Path(nvcc or "/none/nvcc").resolve().parents[1] / "include" / "cufft.h"
    if nvcc is None or not header.exists():
        pytest.skip("nvcc and cuFFT are not installed")
    program = tmp_path / "fft"
    options = ["-std=c++17", "-cudart", "shared", "-gencode", "arch=compute_75,code=compute_75"]
    compiler_cache.nvcc([nvcc, *options, "-o", program, source, "-lcufft"])
    return program


def test_a_transform_is_an_operation_of_its_stream(tmp_path, capfd):
    source = tmp_path / "program.cu"
    source.write_text(PROGRAM)
    program = compiled(tmp_path, source)
    traced = host.trace_program([str(program)], tmp_path / "out")
    said = capfd.readouterr()
    # The graph transforms N at 0 and 2 at 1; its second launch gives this again, N times as large.
    assert said.out.splitlines() == ["65536 2", "captured: 0", "65538", str(1 << 32)]
    assert not traced.problem()
    app = ws.load(tmp_path / "out")
    table = app.operations
    rows = table[table["operation"] == "library"]
    assert rows["name"].tolist() == ["cuFFT"] * 3
    assert rows["graph"].tolist() == [-1, 0, 1]
    kernels = table[table["operation"] == "kernel"]
    assert rows["stream"].iloc[0] == kernels["stream"].iloc[0] > 0
    # 2^16 numbers are two passes of 2^12 and 2^4: each reads and writes 8 bytes of a number.
    assert rows["bytes"].iloc[0] == 2 * 2 * 8 << 16
    assert rows["host_ns"].iloc[0] < 5_000_000
    line = ws.timeline(app, ws.gpu("a100")).table
    estimated = line[line["operation"] == "library"]
    assert estimated["estimated"].all()
