"""Machine code: cubins, listings, launches, traces, and workloads as machine code."""

import importlib.util
import struct
from pathlib import Path

import numpy as np
import pytest
from tested_forms import (  # noqa: F401
    forms_are_executed,
    forms_by_test,
    forms_to_test,
    listed,
    name_of,
)

import warpstack as ws
from conftest import SHARED
from warpstack.cuda.cubin import Cubin
from warpstack.cuda.disassembly import find_nvdisasm
from warpstack.errors import InputError

REPOSITORY = Path(__file__).resolve().parents[3]


def forms_module():
    path = Path(__file__).with_name("executed_forms.py")
    spec = importlib.util.spec_from_file_location("executed_forms", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


executed_forms = forms_module()
needs_tools = pytest.mark.skipif(
    find_nvdisasm() is None or not ws.cuda.compilers(),
    reason="nvdisasm or a CUDA compiler is not installed",
)

SAXPY = """
extern "C" __global__ void saxpy(const float* x, float* y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
"""


@pytest.mark.parametrize("arch", executed_forms.ARCHITECTURES)
def test_no_form_is_lost(arch):
    forms = [form for form in executed_forms.executed() if form[0] == arch]
    assert len(forms) > 300
    assert [(form, p) for form in forms if (p := executed_forms.problem(*form))] == []


@pytest.mark.skipif(not (SHARED / "reference/sass-forms.csv").exists(), reason="needs ../shared")
def test_the_list_of_forms_is_complete():
    known = set(executed_forms.executed())
    new = [
        form
        for form in executed_forms.forms(SHARED / "reference/sass-forms.csv")
        if form not in known and not executed_forms.problem(*form)
    ]
    assert new == [], "run tests/python/sass/executed_forms.py --write"


def test_each_form_has_a_test(request):
    """Tests that the list names check that they execute their forms (`forms_are_executed`)."""
    named = listed()
    assert list(named) == forms_to_test(), "run tests/python/sass/tested_forms.py --write"
    assert [form for form, test in named.items() if not test] == []
    options = request.config.option
    if not (
        options.keyword or options.markexpr or options.quick or "::" in str(options.file_or_dir)
    ):
        tests = {name_of(item) for item in request.session.items}
        files = {test.split("::")[0] for test in tests}
        here = {test for test in named.values() if test.split("::")[0] in files}
        assert here <= tests, "run tests/python/sass/tested_forms.py --write"


@needs_tools
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"])
def test_saxpy(arch):
    device = ws.cuda.Device(0.1)
    module = ws.cuda.compile(SAXPY, machine_code=arch, device=device)
    assert module.machine_code == arch
    x = device.array(np.arange(1000, dtype=np.float32))
    y = device.array(np.ones(1000, np.float32))
    # Types of parameters are known from the PTX of the same source: a number of Python will do.
    trace = module.kernel("saxpy").launch(4, 256, x, y, 2, 1000)
    np.testing.assert_array_equal(np.asarray(y), 2 * np.arange(1000, dtype=np.float32) + 1)
    table = trace.instructions
    opcodes = list(table.opcode)
    assert "FFMA" in opcodes
    assert any(o.startswith("LDG.E") for o in opcodes)
    assert any(o.startswith("STG.E") for o in opcodes)
    assert list(table.pc) == sorted(set(table.pc))
    assert all(pc % 16 == 0 for pc in table.pc)
    assert trace.registers_per_thread == module.kernel("saxpy").registers_per_thread
    listed = module.instructions("saxpy")
    assert list(listed.opcode[: len(opcodes)]) == opcodes
    assert set(listed.line) <= {2, 3, 4, 5}


HALVES = """#include <cuda_fp16.h>
extern "C" __global__ void k(const __half2* a, __half2* o) {
  int t = threadIdx.x;
  o[4 * t] = __hadd2(a[t], __float2half2_rn(1.5f));
  o[4 * t + 1] = __hfma2(a[t], __float2half2_rn(2.f), __floats2half2_rn(3.f, 4.f));
  o[4 * t + 2] = __hcmadd(a[t], a[(t + 1) % 32], a[(t + 2) % 32]);
  o[4 * t + 3] = __hneg2(a[t]);
}"""


@needs_tools
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_100"])
def test_constants_and_complex_products_of_halves(arch):
    """sm_75 rounds constants of single precision; products of complex numbers swap halves and negate one."""
    halves = np.random.default_rng(5).normal(size=64).astype(np.float16)
    results = {}
    for code in (None, arch):
        device = ws.cuda.Device(0.1)
        out = device.zeros(256, np.float16)
        module = ws.cuda.compile(HALVES, arch="sm_80", machine_code=code, device=device)
        module.kernel("k").launch(1, 32, device.array(halves), out)
        results[code] = np.asarray(out).copy()
    assert np.array_equal(results[None].view(np.uint16), results[arch].view(np.uint16))
    a = halves.reshape(32, 2)
    got = results[arch].reshape(32, 4, 2)
    assert np.array_equal(got[:, 0], a + np.float16(1.5))
    assert np.array_equal(got[:, 3], -a)
    b, c = (np.roll(a, -n, axis=0).astype(np.float64) for n in (1, 2))
    product = (a[:, 0] + 1j * a[:, 1]) * (b[:, 0] + 1j * b[:, 1]) + c[:, 0] + 1j * c[:, 1]
    assert np.allclose(got[:, 2, 0], product.real, atol=0.01)
    assert np.allclose(got[:, 2, 1], product.imag, atol=0.01)


@needs_tools
def test_predicated_off_lanes_are_not_in_the_masks(tmp_path):
    source = """extern "C" __global__ void k(int* o) {
      if (threadIdx.x < 5) o[threadIdx.x] = 7;
    }"""
    device = ws.cuda.Device(0.1)
    out = device.zeros(32, np.int32)
    trace = (
        ws.cuda.compile(source, machine_code="sm_80", device=device).kernel("k").launch(1, 32, out)
    )
    assert np.asarray(out).tolist() == [7] * 5 + [0] * 27
    ws.save(ws.App([trace], "k"), tmp_path / "k", format="accelsim")
    (text,) = [p.read_text() for p in (tmp_path / "k").glob("*.traceg")]
    (store,) = [line for line in text.splitlines() if "STG.E" in line]
    assert "0000001f" in store
    again = ws.load(tmp_path / "k" / "kernelslist.g").kernels[0]
    assert again.num_instructions == trace.num_instructions
    known = list(again.instructions.opcode)  # of what has run
    assert known == list(trace.instructions.opcode)[: len(known)]


@needs_tools
def test_variables_local_memory_and_functions():
    source = """
    __constant__ float weights[4] = {1, 2, 3, 4};
    __device__ int base = 5;
    __device__ int* pointer = &base;
    __device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n-1) + fibonacci(n-2); }
    extern "C" __global__ void k(float* o, int n) {
      __shared__ int tile[64];
      extern __shared__ int more[];
      int t = threadIdx.x, local[16];
      tile[t] = t; more[t] = 3 * t;
      __syncthreads();
      for (int i = 0; i < 16; ++i) local[(i * 7 + n) % 16] = tile[63 - t] + i;
      o[t] = weights[t % 4] + *pointer + local[(t + n) % 16] + more[t ^ 1] + fibonacci(t % 10)
           + gridDim.x + blockDim.y;
    }"""
    results = []
    for machine_code in (None, "sm_80"):
        device = ws.cuda.Device(0.1)
        module = ws.cuda.compile(source, machine_code=machine_code, device=device)
        module.symbol("base", np.int32).copy_from(np.array([9], np.int32))
        assert np.asarray(module.symbol("weights", np.float32)).tolist() == [1, 2, 3, 4]
        module.symbol("weights", np.float32).copy_from(np.array([4, 3, 2, 1], np.float32))
        out = device.zeros(64, np.float32)
        module.kernel("k").launch(1, 64, out, 3, shared_memory_bytes=256)
        results.append(np.asarray(out))
    np.testing.assert_array_equal(*results)


@needs_tools
def test_library_functions():
    source = r"""
    #include <cstdio>
    #include <cassert>
    extern "C" __global__ void k(int* o, int n) {
      int* p = (int*)malloc(8);
      p[0] = threadIdx.x;
      if (threadIdx.x % 16 == 3) printf("thread %d of %d: %s %.1f\n", threadIdx.x, n, "text", 0.5);
      assert(threadIdx.x < n);
      o[threadIdx.x] = p[0] + 1;
      free(p);
    }"""
    printed = []
    device = ws.cuda.Device(0.1, print_to=printed.append)
    kernel = ws.cuda.compile(source, machine_code="sm_80", device=device).kernel("k")
    out = device.zeros(32, np.int32)
    kernel.launch(1, 32, out, 32)
    assert np.asarray(out).tolist() == list(range(1, 33))
    assert "".join(printed) == "thread 3 of 32: text 0.5\nthread 19 of 32: text 0.5\n"
    with pytest.raises(
        InputError, match=r"thread \(30, 0, 0\): assertion `threadIdx.x < n` failed"
    ):
        kernel.launch(1, 32, out, 30)


@needs_tools
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100", "sm_120"])
def test_shuffles_and_votes_of_lanes_that_came_apart(arch):
    source = """extern "C" __global__ void k(int* o, int n) {
      int t = threadIdx.x, v = o[t];
      if (v & 1) {
        v += __shfl_xor_sync(0xaaaaaaaa, v, 2);
        if (v > n) v += __reduce_add_sync(__activemask(), v);
      }
      __syncwarp();
      v += __ballot_sync(0xffffffff, v & 2);
      for (int i = 0; i < (t & 7); ++i) {
        if (v * i == n) break;
        v += i;
      }
      unsigned same = __match_any_sync(0xffffffff, v & 3);
      o[t] = v + __popc(same) + __shfl_down_sync(0xffffffff, v, 3);
    }"""
    values = np.arange(32, dtype=np.int32)
    results = []
    for machine_code in (None, arch):
        device = ws.cuda.Device(0.1)
        options = {"machine_code": machine_code} if machine_code else {"arch": "sm_80"}
        out = device.array(values)
        ws.cuda.compile(source, device=device, **options).kernel("k").launch(1, 32, out, 20)
        results.append(np.asarray(out))
    np.testing.assert_array_equal(*results)


@needs_tools
def test_asynchronous_copies():
    source = """
    #include <cuda_pipeline.h>
    extern "C" __global__ void k(const float4* a, float* o, int n) {
      __shared__ float4 s[64];
      __pipeline_memcpy_async(&s[threadIdx.x], &a[threadIdx.x + n], 16);
      __pipeline_commit();
      __pipeline_wait_prior(0);
      __syncthreads();
      o[threadIdx.x] = s[63 - threadIdx.x].y;
    }"""
    for arch in ("sm_80", "sm_90"):
        device = ws.cuda.Device(0.1)
        a, out = device.array(np.arange(1000, dtype=np.float32)), device.zeros(64, np.float32)
        ws.cuda.compile(source, machine_code=arch, device=device).kernel("k").launch(
            1, 64, a, out, 5
        )
        np.testing.assert_array_equal(np.asarray(out), 4 * (63 - np.arange(64) + 5) + 1)


@needs_tools
@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_matrices_from_shared_memory(count, trans):
    registers = ", ".join(f'"=r"(v[{i}])' for i in range(count))
    places = ", ".join(f"%{i}" for i in range(count))
    source = f"""extern "C" __global__ void k(const unsigned* a, unsigned* o) {{
      __shared__ __align__(16) unsigned tile[256];
      unsigned v[4], t = threadIdx.x;
      for (int i = 0; i < 8; ++i) tile[32 * i + t] = a[32 * i + t];
      __syncthreads();
      unsigned row = (unsigned)__cvta_generic_to_shared(tile + (t * 7 % 32) * 4);
      asm volatile("ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{places}}}, [%{count}];"
                   : {registers} : "r"(row));
      for (int i = 0; i < {count}; ++i) o[4 * t + i] = v[i];
    }}"""
    values = np.random.default_rng(1).integers(0, 2**32, 256, dtype=np.uint32)
    results = []
    for options in ({"arch": "sm_80"}, {"machine_code": "sm_80"}):
        device = ws.cuda.Device(0.1)
        a, out = device.array(values), device.zeros(128, np.uint32)
        trace = ws.cuda.compile(source, device=device, **options).kernel("k").launch(1, 32, a, out)
        results.append(np.asarray(out))
    np.testing.assert_array_equal(*results)
    assert any(o.startswith("LDSM.16.M") for o in trace.instructions.opcode)


# ---- damage ----


def small_cubin():
    """Return bytes that begin like a cubin, and end before its sections."""
    header = b"\x7fELF\x02\x01\x01\x41\x08" + bytes(7)
    return header + struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, 64, 80 << 8, 64, 0, 0, 64, 3, 1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is neither a cubin"),
        (
            b"\x7fELF\x01\x01" + bytes(12) + b"\xbe" + bytes(100),
            "is not a 64-bit little-endian ELF",
        ),
        (small_cubin(), "is damaged or cut off"),
        (small_cubin().replace(b"\xbe\x00", b"\x3e\x00", 1), "is neither a cubin"),
    ],
)
def test_damaged_cubins_are_named(data, message, tmp_path):
    path = tmp_path / "a.cubin"
    path.write_bytes(data)
    with pytest.raises(InputError, match=message) as caught:
        ws.cuda.load_cubin(path)
    assert str(caught.value).startswith(str(path))


@needs_tools
def test_cut_cubins_are_errors():
    listing = ws.cuda.compile(SAXPY, machine_code="sm_80", device=ws.cuda.Device(0.1)).listing
    assert listing.startswith(".sass 1\n.target sm_80\n")
    again = ws.cuda.compile(listing, device=ws.cuda.Device(0.1))
    assert again.kernels == ("saxpy",)
    from warpstack.cuda.toolchain import compile_both

    _, data = compile_both(SAXPY, "<source>", "sm_80", (), None)
    assert Cubin(data, "a").version == 80
    for size in range(0, len(data), 997):
        with pytest.raises(InputError, match=r"^a: "):
            Cubin(data[:size], "a")


def test_wrong_names_of_architectures():
    with pytest.raises(InputError, match="machine_code = 'a100' is not like sm_80"):
        ws.cuda.compile(SAXPY, machine_code="a100")
    with pytest.raises(
        InputError, match="machine_code = 'sm_81' is not one of sm_75, sm_80, sm_90"
    ):
        ws.workloads.load("bfs", machine_code="sm_81")


# ---- workloads ----


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
@pytest.mark.parametrize("name", ws.workloads.names())
def test_workloads(name, arch):
    ws.workloads.check(name, machine_code=arch)
    if arch == "sm_80" and name not in ("cfd", "stencil"):  # ptxas joins mul and add there
        plain, machine = ws.workloads.run(name), ws.workloads.run(name, machine_code=arch)
        for output, values in plain.items():
            np.testing.assert_array_equal(values.view(np.uint8), machine[output].view(np.uint8))


def test_trace_of_a_workload(tmp_path):
    app = ws.workloads.load("spmv", machine_code="sm_80")
    (kernel,) = app.kernels
    assert any(o.startswith("LDG.E") for o in kernel.instructions.opcode)
    assert ws.predict(app, "a100", models=["gpumech"]).cycles.iloc[0] > 0


# --- what compilers write for ordinary sources ---------------------------------------------------


@needs_tools
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"])
class TestSources:
    def run(self, arch, body, values, out, threads=32):
        source = f'extern "C" __global__ void k(const {body[0]}* a, {body[1]}* o) {{{body[2]}}}'
        device = ws.cuda.Device(0.1)
        module = ws.cuda.compile(source, machine_code=arch, device=device)
        result = device.array(out)
        module.kernel("k").launch(1, threads, device.array(values), result)
        return np.asarray(result)

    def test_division_by_constants(self, arch):
        """The reciprocal's operand is a decimal, of which the upper word is meant."""
        values = np.array([1.5, -2, 1e3, -1e-6])
        text = "int t = threadIdx.x; o[t] = a[t] / 3.0; o[t + 4] = a[t] / 1e5;"
        got = self.run(arch, ("double", "double", text), values, np.zeros(8), 4)
        np.testing.assert_array_equal(got, np.r_[values / 3, values / 1e5])

    def test_shared_additions_of_doubles(self, arch):
        """They loop until both words of the answer say that the exchange was made."""
        text = (
            "__shared__ double s; if (!threadIdx.x) s = 2; __syncthreads();"
            "atomicAdd(&s, a[threadIdx.x]); __syncthreads(); o[threadIdx.x] = s;"
        )
        got = self.run(arch, ("double", "double", text), np.arange(32.0), np.zeros(32))
        np.testing.assert_array_equal(got, 2 + 31 * 16)

    def test_differences_of_shifted_numbers(self, arch):
        """A shifted zero that is taken off carries."""
        text = "int t = threadIdx.x; o[t] = a[t] - (a[t + 32] << 5);"
        values = np.arange(64, dtype=np.uint64) << np.uint64(30)
        values[40:] = 0
        kind = "unsigned long long"
        got = self.run(arch, (kind, kind, text), values, np.zeros(32, np.uint64))
        np.testing.assert_array_equal(got, values[:32] - (values[32:] << np.uint64(5)))
