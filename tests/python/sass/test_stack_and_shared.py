"""Memory of threads and blocks as machine code sees it: stacks, and the system's shared memory."""

import re
import subprocess

import numpy as np
import pytest

import warpstack as ws
from warpstack.cuda.disassembly import find_nvdisasm
from warpstack.cuda.toolchain import find_nvcc, find_ptxas
from warpstack.errors import InputError

pytestmark = pytest.mark.skipif(
    find_nvdisasm() is None or not ws.cuda.compilers(),
    reason="nvdisasm or a CUDA compiler is not installed",
)

needs_ptxas = pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
needs_nvcc = pytest.mark.skipif(find_nvcc() is None, reason="nvcc is not installed")
ARCHITECTURES = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"]

#: Functions that are called by address, beside a local array whose frame is no multiple of 16.
CALLS = """
typedef unsigned long long u64; typedef unsigned u32;
__device__ __noinline__ u64 g0(u64 x, u32 d) { return x / (d | 1); }
__device__ __noinline__ u64 g1(u64 x, u32 d) { return x % ((u64)d * x | 1); }
extern "C" __global__ void k(const u64* in, u64* out) {
  int t = threadIdx.x;
  u64 (*table[2])(u64, u32) = {g0, g1};
  u64 x = in[t], v = 0;
  unsigned char b[BYTES];
  for (int i = 0; i < BYTES; i++) b[i] = (unsigned char)(x * i);
  for (int i = 0; i < 8; i++) v |= (u64)b[(x & 15) + i] << 8 * i;
  out[t] = table[x & 1](x, (u32)x & 3) + v;
}
"""


def called(values):
    """Return what the kernel gives for bytes of 24 or more."""
    out = []
    for x in map(int, values):
        data = bytes(x * i & 255 for i in range(24))
        v = int.from_bytes(data[x & 15 :][:8], "little")
        d = x & 3
        out.append(
            (x % ((d * x | 1) & (1 << 64) - 1) if x & 1 else x // (d | 1)) + v & (1 << 64) - 1
        )
    return np.array(out, np.uint64)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("size", [24, 32, 36])
def test_the_stack_of_functions_called_by_address_is_aligned(arch, size):
    device = ws.cuda.Device(0.1)
    module = ws.cuda.compile(CALLS.replace("BYTES", str(size)), machine_code=arch, device=device)
    values = np.arange(32, dtype=np.uint64) * np.uint64(12345678912345) + np.uint64(3)
    out = device.zeros(32, np.uint64)
    module.kernel("k").launch(1, 32, device.array(values), out)
    np.testing.assert_array_equal(np.asarray(out), called(values))


LARGE_FRAMES = """
__device__ __noinline__ int sum(int n) {
  volatile int a[400];
  int s = 0;
  for (int i = 0; i < 400; i++) a[i] = n * i;
  for (int i = 0; i < 400; i++) s += a[(i * 7 + n) % 400];
  return s;
}
__device__ __noinline__ int same(int n) { return n; }
extern "C" __global__ void k(int* o) {
  int (*table[2])(int) = {sum, same};
  o[threadIdx.x] = table[threadIdx.x & 1](threadIdx.x);
}
"""


@pytest.mark.parametrize("options", [[], ["-G"]])
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_stack_that_is_too_small_says_what_to_raise(arch, options):
    """As where ptxas cannot follow all calls, and says what the kernel's own frame needs."""
    device = ws.cuda.Device(0.1)
    module = ws.cuda.compile(LARGE_FRAMES, machine_code=arch, options=options, device=device)
    text, replaced = re.subn(r"(\.needs \d+ \d+) \d+", r"\1 16", module.listing)
    assert replaced == 1
    module = ws.cuda.compile(text, device=device)
    out = device.zeros(32, np.int32)
    with pytest.raises(
        InputError, match=r"1024 bytes of local memory, as the launch says .stack_bytes in Python"
    ):
        module.kernel("k").launch(1, 32, out)
    module.kernel("k").launch(1, 32, out, stack_bytes=4096)
    n = np.arange(32)
    # Indices that are a permutation of 0 to 399 sum up to the same.
    expected = np.where(n & 1, n, n * (399 * 400 // 2))
    np.testing.assert_array_equal(np.asarray(out), expected)


ALLOCA = """
extern "C" __global__ void k(int n, int* o) {
  int* p = (int*)alloca(n * sizeof(int));
  for (int i = 0; i < n; i++) p[i] = i + threadIdx.x;
  int s = 0;
  for (int i = 0; i < n; i++) s += p[n - 1 - i];
  o[threadIdx.x] = s;
}
"""


@needs_nvcc
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_alloca_takes_from_the_stack(arch):
    device = ws.cuda.Device(0.1)
    module = ws.cuda.compile(ALLOCA, machine_code=arch, device=device, compiler="nvcc")
    kernel = module.kernel("k")
    for n in (1, 10, 200):
        out = device.zeros(32, np.int32)
        kernel.launch(1, 32, np.int32(n), out)
        assert np.asarray(out).tolist() == [n * (n - 1) // 2 + n * t for t in range(32)]
    with pytest.raises(ws.InputError, match="1024 bytes of local memory"):
        kernel.launch(1, 32, np.int32(300), out)


SHARED = """
extern "C" __global__ void only_dynamic(const float* x, float* o) {
  extern __shared__ float s[];
  s[threadIdx.x] = x[threadIdx.x]; __syncthreads(); o[threadIdx.x] = s[63 - threadIdx.x];
}
extern "C" __global__ void both(const float* x, float* o) {
  __shared__ float a[64];
  extern __shared__ float s[];
  a[threadIdx.x] = x[threadIdx.x]; s[threadIdx.x] = 1; __syncthreads();
  o[threadIdx.x] = a[63 - threadIdx.x] * s[threadIdx.x];
}
extern "C" __global__ void none(const float* x, float* o) { o[threadIdx.x] = x[63 - threadIdx.x]; }
"""

#: By itself: beside dynamic shared memory of other kernels ptxas rounds up static one.
ONLY_STATIC = """
extern "C" __global__ void only_static(const float* x, float* o) {
  __shared__ float s[67];
  s[threadIdx.x] = x[threadIdx.x]; __syncthreads(); o[threadIdx.x] = s[63 - threadIdx.x];
}
"""


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_shared_memory_is_that_of_ptx(arch):
    """From sm_90 on the section begins with 1024 bytes of the system, which no size counts."""
    device = ws.cuda.Device(0.1)
    x = device.array(np.arange(64, dtype=np.float32))
    cases = {
        "only_dynamic": (SHARED, (256, 8192, 227 << 10)),
        "both": (SHARED, (256, 115456)),
        "none": (SHARED, (0, 4096)),
        "only_static": (ONLY_STATIC, (0, 100)),
    }
    for name, (source, sizes) in cases.items():
        kernels = [
            ws.cuda.compile(source, device=device, **target).kernel(name)
            for target in ({"arch": arch}, {"machine_code": arch})
        ]
        for size in sizes:
            found = []
            for kernel in kernels:
                out = device.zeros(64)
                trace = kernel.launch(1, 64, x, out, shared_memory_bytes=size)
                np.testing.assert_array_equal(np.asarray(out), np.arange(64)[::-1])
                found.append(trace.shared_memory_bytes)
            assert found[0] == found[1], (name, size)
            assert found[1] >= size
        with pytest.raises(ws.InputError, match="at most 232448 are possible"):
            kernels[1].launch(1, 64, x, out, shared_memory_bytes=(227 << 10) + 4)


def test_blocks_per_sm_of_hopper():
    """floor(228 KiB / (shared memory of the block + 1 KiB)), as cuda_occupancy.h counts."""
    device = ws.cuda.Device(0.1)
    kernel = ws.cuda.compile(SHARED, machine_code="sm_90", device=device).kernel("only_dynamic")
    x, out = device.array(np.ones(64, np.float32)), device.zeros(64)
    for size, blocks in ((8192, 25), (115712, 2), (232448, 1)):
        trace = kernel.launch(1, 64, x, out, shared_memory_bytes=size)
        assert trace.shared_memory_bytes == size
        assert (
            ws.memory.occupancy(trace, "h100-sxm")["blocks_per_sm"]
            == blocks
            == 233472 // (size + 1024)
        )


GRID = """
#include <cooperative_groups.h>
extern "C" __global__ void k(int* p) {
  atomicAdd(p, 1);
  cooperative_groups::this_grid().sync();
  if (threadIdx.x == 0) p[1 + blockIdx.x] = *(volatile int*)p;
}
"""


@needs_nvcc
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_grid_wide_barrier(arch):
    device = ws.cuda.Device(0.1)
    module = ws.cuda.compile(GRID, machine_code=arch, device=device, compiler="nvcc")
    kernel = module.kernel("k")
    out = device.zeros(11, np.int32)
    kernel.launch(10, 64, out, cooperative=True)
    assert np.asarray(out).tolist() == [640] * 11


LINKED = """
__device__ int values[4] = {5, 6, 7, 8};
__device__ __noinline__ int sum(int x) { return x + values[x & 3]; }
__device__ __noinline__ int product(int x) { return x * 7; }
__device__ __noinline__ int fibonacci(int x) {
  return x < 2 ? 1 : fibonacci(x - 1) + fibonacci(x - 2);
}
__device__ int (*table[2])(int) = {sum, product};
extern "C" __global__ void by_table(int* o) {
  int t = threadIdx.x;
  o[t] = table[t & 1](t) + fibonacci(t & 7);
}
extern "C" __global__ void longer(int* o) {
  int s = 0;
#pragma unroll
  for (int i = 0; i < 40; i++) s += o[i] * (o[i] ^ i);
  o[threadIdx.x] = table[1](s) + sum(threadIdx.x);
}
"""


@needs_nvcc
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_functions_of_linked_objects(arch, tmp_path):
    """What nvcc -rdc=true and the linker leave apart: functions in sections of their own."""
    nvcc = find_nvcc()
    source, unit, linked = (tmp_path / name for name in ("a.cu", "a.o.cubin", "a.cubin"))
    source.write_text(LINKED)
    run = [nvcc, f"-arch={arch}", "-cubin"]
    subprocess.run([*run, "-rdc=true", "-o", unit, source], check=True, capture_output=True)
    subprocess.run([*run, "-dlink", "-o", linked, unit], check=True, capture_output=True)
    device = ws.cuda.Device(0.1)
    module = ws.cuda.load_cubin(linked, device=device)
    threads = np.arange(32)
    fibonacci = np.array([1, 1, 2, 3, 5, 8, 13, 21])
    values = np.array([5, 6, 7, 8])
    out = device.zeros(32, np.int32)
    module.kernel("by_table").launch(1, 32, out)
    called = np.where(threads & 1, threads * 7, threads + values[threads & 3])
    np.testing.assert_array_equal(np.asarray(out), called + fibonacci[threads & 7])
    out = device.zeros(40, np.int32)
    module.kernel("longer").launch(1, 32, out)
    np.testing.assert_array_equal(np.asarray(out)[:32], threads + values[threads & 3])


BYTES = """
.version 8.0
.target sm_75
.address_size 64
.global .align 8 .b32 s[4] = {1, 2, 3, 4};
.global .align 8 .u8 t[17] = {0xff(s), 0xff00(s), 0xff0000(s), 0xff000000(s), 0xff00000000(s),
  0xff0000000000(s), 0xff000000000000(s), 0xff00000000000000(s), 0xff(generic(s) + 4),
  0xff00(generic(s) + 4), 0xff0000(generic(s) + 4), 0xff000000(generic(s) + 4),
  0xff00000000(generic(s) + 4), 0xff0000000000(generic(s) + 4), 0xff000000000000(generic(s) + 4),
  0xff00000000000000(generic(s) + 4), 0xff(s + 8)};
.visible .entry k(.param .u64 o) {
  .reg .b64 %p, %a;
  ld.param.u64 %p, [o];
  ld.global.u64 %a, [t]; st.global.u64 [%p], %a;
  ld.global.u64 %a, [t + 8]; st.global.u64 [%p + 8], %a;
  ld.global.u8 %a, [t + 16]; st.global.u64 [%p + 16], %a;
  mov.u64 %a, s; st.global.u64 [%p + 24], %a;
  ret;
}
"""


@needs_ptxas
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_bytes_of_addresses_in_data(arch):
    device = ws.cuda.Device(0.1)
    text = BYTES if arch < "sm_9" and len(arch) == 5 else BYTES.replace("8.0", "9.0")
    kernel = ws.cuda.compile(text, machine_code=arch, device=device).kernel("k")
    out = device.zeros(4, np.uint64)
    kernel.launch(1, 1, out)
    first, second, byte, address = np.asarray(out).tolist()
    assert (first, second, byte) == (address, address + 4, address + 8 & 255)


DEBUGGED = """
__device__ __noinline__ int sum(const int* a, int n) {
  int s = 0;
  for (int i = 0; i < n; i++) s += a[i];
  return s;
}
extern "C" __global__ void k(const int* in, int* o) {
  int b[17];
  for (int i = 0; i < 17; i++) b[i] = in[threadIdx.x] * i;
  o[threadIdx.x] = sum(b, 17) + in[threadIdx.x] / 3;
}
"""


@needs_nvcc
@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
def test_code_for_debugging(arch, tmp_path):
    """It has calls, local arrays, and looks how far the stack may reach."""
    source, cubin = tmp_path / "a.cu", tmp_path / "a.cubin"
    source.write_text(DEBUGGED)
    run = [find_nvcc(), f"-arch={arch}", "-G", "-cubin", "-o", cubin, source]
    subprocess.run(run, check=True, capture_output=True)
    device = ws.cuda.Device(0.1)
    values = np.arange(32, dtype=np.int32)
    out = device.zeros(32, np.int32)
    kernel = ws.cuda.load_cubin(cubin, device=device).kernel("k")
    kernel.launch(1, 32, device.array(values), out)
    np.testing.assert_array_equal(np.asarray(out), values * 136 + values // 3)


@needs_nvcc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_a_grid_wide_barrier_of_linked_objects(arch, tmp_path):
    source, unit, linked = (tmp_path / name for name in ("a.cu", "a.o.cubin", "a.cubin"))
    source.write_text(GRID)
    run = [find_nvcc(), f"-arch={arch}", "-cubin"]
    subprocess.run([*run, "-rdc=true", "-o", unit, source], check=True, capture_output=True)
    subprocess.run([*run, "-dlink", "-o", linked, unit], check=True, capture_output=True)
    device = ws.cuda.Device(0.1)
    out = device.zeros(11, np.int32)
    kernel = ws.cuda.load_cubin(linked, device=device).kernel("k")
    kernel.launch(10, 64, out, cooperative=True)
    assert np.asarray(out).tolist() == [640] * 11
