"""ws.cuda: compiling, arguments, arrays, textures, and the quality of the traces it makes."""

import shutil

import numpy as np
import pytest

import warpstack as ws
from ptx_forms import HEADER, compile_body, run
from warpstack import cuda
from warpstack.cuda import headers, toolchain
from warpstack.cuda.toolchain import host_code
from warpstack.errors import InputError

#: What is compiled here is what is tested.
pytestmark = pytest.mark.real_compilers

SAXPY = r"""
extern "C" __global__ void saxpy(const float* x, float* y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
"""


@pytest.fixture
def device():
    return cuda.Device(0.25)


@pytest.fixture(params=["nvrtc", pytest.param("nvcc", marks=pytest.mark.slow)])
def compiler(request):
    if request.param == "nvrtc" and toolchain.find_nvrtc() is None:
        pytest.skip("NVRTC is not installed (warpstack[cuda] brings it)")
    if request.param == "nvcc" and not (
        shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    ):
        pytest.skip("there is no nvcc here")
    return request.param


# ---- compiling ----


@pytest.mark.slow
def test_saxpy_from_source(compiler, device):
    module = cuda.compile(SAXPY, compiler=compiler, device=device)
    assert module.kernels == ("saxpy",)
    assert module.target == "sm_75"
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=1000).astype(np.float32), rng.normal(size=1000).astype(np.float32)
    on_device = device.array(x), device.array(y)
    trace = module.kernel("saxpy").launch(4, 256, *on_device, np.float32(2), 1000)
    assert np.array_equal(np.asarray(on_device[1]), 2 * x + y)  # a product by 2 is exact: fma too
    assert trace.num_warps == 32
    assert trace.source == "ptx"
    assert set(trace.instructions.source_line) <= {0, 2, 3, 4, 5}


def test_source_files_and_options(compiler, device, tmp_path):
    (tmp_path / "size.h").write_text("#define SIZE 3\n")
    path = tmp_path / "kernel.cu"
    path.write_text(
        '#include "size.h"\n__global__ void f(int* x) { x[threadIdx.x] = SIZE * N; }\n'
        "template <int n> __global__ void g(int* x) { x[0] = n; }\n"
        "template __global__ void g<4>(int*);\n"
    )
    module = cuda.compile(path, options=["-DN=5"], compiler=compiler, device=device)
    out = device.zeros(32, np.int32)
    module.kernel("f").launch(1, 32, out)
    assert (out.to_host() == 15).all()
    module.kernel("g").launch(1, 1, out)
    assert out.to_host()[0] == 4
    with pytest.raises(InputError, match=r"kernel.cu: there is no kernel 'h'; there are "):
        module.kernel("h")


def test_overloads_have_no_common_name(compiler, device):
    source = "__global__ void f(int* x) { *x = 1; } __global__ void f(float* x) { *x = 2; }"
    module = cuda.compile(source, compiler=compiler, device=device)
    with pytest.raises(
        InputError, match=r"2 kernels are called 'f': _Z1fP.*use one of these names"
    ):
        module.kernel("f")
    out = device.zeros(1, np.int32)
    module.kernel("_Z1fPi").launch(1, 1, out)
    assert out.to_host().tolist() == [1]


def test_errors_of_the_compiler(compiler, device):
    with pytest.raises(InputError) as caught:
        cuda.compile("__global__ void f() { oops; }\n", compiler=compiler, device=device)
    assert str(caught.value).startswith("<source>: the CUDA source does not compile:\n")
    assert 'source.cu(1): error: identifier "oops" is undefined' in str(caught.value)


def test_headers_of_the_c_library(compiler, device):
    """NVRTC has none of its own; the substitutes mean what nvcc's do."""
    source = (
        "".join(f"#include <{name}>\n" for name in headers.HEADERS)
        + r"""
#define NDEBUG
#include <assert.h>
#undef NDEBUG
#include <assert.h>
extern "C" __global__ void f(double* x, int n) {
  int i = threadIdx.x;
  assert(i < n);
  std::uint64_t big = UINT64_MAX;
  int8_t small = INT8_MIN;
  float a = std::sqrt((float)i) + std::fabs(-1.5f) + FLT_MAX * 0.0f;
  double b = std::pow(2.0, 3.0) + std::floor(2.5) + M_PI + std::isinf(INFINITY) + std::abs(-3);
  char text[8];
  std::memset(text, small, 8);
  x[i] = a + b + (big >> 63) + text[0] + INT_MAX + CHAR_BIT + DBL_EPSILON + UINT16_MAX +
         (INT64_MIN + INT64_MAX);
  void* p = std::malloc(8);
  if (p == NULL) x[i] = 0;
  std::free(p);
  if (i == 3) std::printf("%d %zu\n", i, sizeof(intptr_t));
}"""
    )
    printed = []
    device = cuda.Device(0.25, print_to=printed.append)
    kernel = cuda.compile(source, compiler=compiler, device=device).kernel("f")
    out = device.zeros(4, np.float64)
    kernel.launch(1, 4, out, 4)
    a = (np.sqrt(np.arange(4, dtype=np.float32)) + np.float32(1.5)).astype(np.float64)
    b = 8 + 2 + np.pi + 1 + 3
    expected = a + b + 1 - 128 + (2**31 - 1) + 8 + 2.0**-52 + 65535 - 1
    assert np.asarray(out) == pytest.approx(expected, rel=1e-15)
    assert printed == ["3 8\n"]
    with pytest.raises(InputError, match=r"assertion `i < n` failed \(source.cu:\d+\)"):
        kernel.launch(1, 5, out, 4)


def test_what_compile_refuses(device, monkeypatch, tmp_path):
    for arguments, message in {
        ("",): "compile: the source is empty",
        ("saxpy",): "is neither source text nor a path that ends in .cu, .cuh, .ptx",
        (str(tmp_path / "missing.cu"),): "missing.cu: No such file",
    }.items():
        with pytest.raises(InputError, match=message):
            cuda.compile(*arguments, device=device)
    with pytest.raises(InputError, match="arch = 'turing' is not like sm_75"):
        cuda.compile(SAXPY, arch="turing", device=device)
    with pytest.raises(InputError, match="compiler = 'gcc' is not one of nvrtc, nvcc"):
        cuda.compile(SAXPY, compiler="gcc", device=device)
    monkeypatch.setattr(toolchain, "find_nvrtc", lambda: None)
    with pytest.raises(InputError, match=r"NVRTC is found|pip install 'warpstack\[cuda\]'"):
        cuda.compile(SAXPY, compiler="nvrtc", device=device)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(
        InputError, match=r"no CUDA compiler is found; .*pip install 'warpstack\[cuda\]'"
    ):
        cuda.compile(SAXPY, device=device)
    for machine_code in (None, "sm_80"):
        with pytest.raises(InputError, match="compiler = 'gcc' is not one of"):
            cuda.compile(SAXPY, compiler="gcc", machine_code=machine_code)
        with pytest.raises(InputError, match="arch = 'foo' is not like sm_75"):
            cuda.compile(SAXPY, arch="foo", machine_code=machine_code)
        for option in ("-arch=sm_90", "--gpu-architecture=sm_90", "-gencode arch=compute_90"):
            with pytest.raises(InputError, match=r"is not taken; say arch= or machine_code="):
                cuda.compile(SAXPY, options=[option], machine_code=machine_code)
        with pytest.raises(InputError, match="'-dlto' the compiler makes neither"):
            cuda.compile(SAXPY, options=["-dlto"], machine_code=machine_code)


def test_errors_of_ptx_name_the_line(device, tmp_path):
    path = tmp_path / "k.ptx"
    path.write_text(HEADER + ".visible .entry k()\n{\n  bra nowhere;\n}\n")
    with pytest.raises(InputError, match=r"k.ptx:6: "):
        cuda.compile(path, device=device)


# ---- arguments ----

PARAMETERS = (
    ".param .u64 p, .param .f32 f, .param .f64 d, .param .s32 i, .param .u8 b, .param .s16 h,"
    ".param .align 4 .b8 s[12], .param .f16 z"
)
READ = (
    "ld.param.u64 %l0, [p]; ld.param.f32 %f0, [f]; cvt.f64.f32 %d0, %f0; ld.param.f64 %d1, [d];"
    "ld.param.s32 %r0, [i]; ld.param.u8 %r1, [b]; ld.param.s16 %r2, [h]; ld.param.u32 %r3, [s+8];"
    "ld.param.b16 %h0, [z]; cvt.f64.f16 %d7, %h0; st.global.f64 [%l0+48], %d7;"
    "cvt.rn.f64.s32 %d2, %r0; cvt.rn.f64.u32 %d3, %r1; cvt.rn.f64.s32 %d4, %r2; cvt.rn.f64.u32 %d5, %r3;"
    "st.global.f64 [%l0], %d0; st.global.f64 [%l0+8], %d1; st.global.f64 [%l0+16], %d2;"
    "st.global.f64 [%l0+24], %d3; st.global.f64 [%l0+32], %d4; st.global.f64 [%l0+40], %d5;"
)


def test_arguments_of_every_type(device):
    kernel = compile_body(READ, 0, device=device, parameters=PARAMETERS).kernel("k")
    out = device.zeros(7, np.float64)
    structure = np.array((1, 2, 3), dtype="u4,u4,u4")[()]
    for values in [
        (1.5, 2.5, -3, 200, -5, structure, 0.25),
        (
            np.float32(1.5), np.float64(2.5), np.int32(-3), np.uint8(200), np.int16(-5),
            structure.tobytes(), np.float16(0.25),
        ),
        (1.5, 2.5, 2**32 - 3, -56, 65531, bytearray(structure.tobytes()), 0.25),
    ]:  # fmt: skip
        kernel.launch(1, 1, out, *values)
        assert out.to_host().tolist() == [1.5, 2.5, -3, 200, -5, 3, 0.25]


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (0, np.zeros(4), "got a NumPy array; copy it to the device first: warpstack.cuda.array"),
        (0, 2**64, "18446744073709551616 does not fit the parameter of type u64"),
        (0, "x", "argument 1"),
        (1, None, "got a pointer for a number of type f32"),
        (1, np.float64(1), "the parameter is f32, got a float64"),
        (1, "one", "'one' is not of type f32"),
        (2, np.float32(1), "the parameter is f64, got a float32"),
        (3, np.int64(1), "the parameter is s32, got a int64"),
        (3, 2**32, "4294967296 does not fit the parameter of type s32"),
        (3, 1.5, "argument 4"),
        (4, np.float32(1), "the parameter is u8, got a float32"),
        (4, 256, "256 does not fit the parameter of type u8"),
        (
            6,
            b"abc",
            r"a structure of 12 bytes is needed \(bytes or a structured NumPy scalar\), got 3",
        ),
        (6, 5, "a structure of 12 bytes is needed .* got int"),
    ],
)
def test_arguments_that_do_not_fit(device, position, value, message):
    kernel = compile_body(READ, 0, device=device, parameters=PARAMETERS).kernel("k")
    arguments = [device.zeros(7, np.float64), 1.0, 1.0, 1, 1, 1, bytes(12), 1.0]
    arguments[position] = value
    with pytest.raises(InputError, match=message) as caught:
        kernel.launch(1, 1, *arguments)
    assert f"kernel k, argument {position + 1}" in str(caught.value)


def test_launches_that_are_impossible(device):
    module = compile_body("st.global.u32 [%a0], %t;", 1, device=device)
    kernel, out = module.kernel("k"), device.zeros(4, np.uint32)
    with pytest.raises(InputError, match="kernel k has 1 parameters, 2 are given"):
        kernel.launch(1, 1, out, out)
    with pytest.raises(InputError, match="argument 1: it is on another device"):
        kernel.launch(1, 1, cuda.Device(0.25).zeros(4))
    with pytest.raises(InputError, match="block dim x = 2048 is outside 1 to 1024"):
        kernel.launch(1, 2048, out)
    with pytest.raises(InputError, match="threads per block = 2048 is outside 1 to 1024"):
        kernel.launch(1, (1024, 2), out)
    with pytest.raises(InputError, match="a block needs 300000 bytes of shared memory"):
        kernel.launch(1, 32, out, shared_memory_bytes=300000)
    for grid in (0, (1, 2, 3, 4), -1, 1.5):
        with pytest.raises((InputError, TypeError)):
            kernel.launch(grid, 32, out)
    limited = compile_body("", 0, device=device, directives=".maxntid 64, 1, 1").kernel("k")
    with pytest.raises(InputError, match="a block of 65 threads is too large: at most 64"):
        limited.launch(1, 65)


# ---- arrays ----


def test_arrays_keep_type_and_shape(device):
    for values in (np.arange(6).reshape(2, 3), np.float16(2), np.zeros((0, 3)), [True, False]):
        array = device.array(values)
        assert np.array_equal(np.asarray(array), values)
        assert np.asarray(array).dtype == np.asarray(values).dtype
        assert (array.shape, array.ndim, array.size) == (
            np.shape(values),
            np.ndim(values),
            np.size(values),
        )
    array = device.zeros((2, 2), np.int32)
    assert len(array) == 2
    array.copy_from([[1, 2], [3, 4]])
    assert np.asarray(array, dtype=np.float64).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(InputError, match=r"got shape \(4,\), the array has \(2, 2\)"):
        array.copy_from(np.arange(4))
    with pytest.raises(InputError, match="copy_from: Cannot cast"):
        array.copy_from([[1.5, 2], [3, 4]])
    with pytest.raises(ValueError, match="can only be copied"):
        np.array(array, copy=False)
    with pytest.raises(InputError, match="no layout in device memory"):
        device.array(["text"])


def test_memory_is_freed_with_the_array():
    device = cuda.Device(2.0**-10)  # 1 MiB
    for _ in range(10):
        array = device.zeros(200_000, np.float32)
        assert device.used_bytes >= 800_000
        del array
    assert device.used_bytes == 0
    with pytest.raises(InputError, match="has no room for 2000000 bytes: 1048576 of 1048576 bytes"):
        device.empty(500_000, np.float32)
    with pytest.raises(InputError, match="memory_gib = 0 is outside"):
        cuda.Device(0)


def test_what_textures_refuse(device):
    source = device.zeros((4, 4), np.float32)
    for array, keywords, message in [
        (np.zeros(4), {}, "expected a DeviceArray, got a ndarray"),
        (device.zeros((1, 1, 1, 1)), {}, "4 dimensions, expected 1 to 3"),
        (source, {"filter_mode": "cubic"}, "filter_mode = 'cubic' is not one of point, linear"),
        (source, {"address_mode": "repeat"}, "address_mode = 'repeat' is not one of wrap"),
        (device.zeros(4, np.float64), {}, "elements of type float64 cannot be texels"),
        (device.zeros(4, "f4,f4,f4"), {}, "cannot be texels"),
        (device.zeros(4, "f4,i4"), {}, "the fields of its elements have different types"),
    ]:
        with pytest.raises(InputError, match=message):
            cuda.texture(array, **keywords)


# ---- traces ----


def test_traces_are_the_same_on_every_device():
    body = (
        "atom.global.add.u32 %r0, [%a0], %g; rem.u32 %r1, %r0, 7; setp.gt.u32 %p0, %r1, 3;"
        "mad.wide.u32 %l0, %g, 4, %a0; @%p0 st.global.u32 [%l0], %r1; mov.u64 %l1, %clock64;"
        "st.global.u64 [%a1], %l1;"
    )
    digests = set()
    for _ in range(2):
        (memory, clock), trace = run(
            body, np.zeros(96, np.uint32), np.zeros(1, np.uint64), grid=3, block=32
        )
        digests.add((trace.digest, memory.tobytes(), clock.tobytes()))
    assert len(digests) == 1
    (untraced, same_clock), nothing = run(
        body, np.zeros(96, np.uint32), np.zeros(1, np.uint64), grid=3, block=32, trace=False
    )
    assert nothing is None
    assert untraced.tobytes() == memory.tobytes()
    assert same_clock.tobytes() == clock.tobytes()


def opcodes(body, **options):
    _, trace = run(body, np.zeros(32, np.uint32), **options)
    return trace.instructions.opcode.tolist()[4:-1]


def test_address_conversions_and_parameters_take_no_row():
    assert opcodes(
        "cvta.to.global.u64 %l0, %a0; cvta.global.u64 %l1, %l0; ld.param.u32 %r0, [p0];"
        "ld.global.u32 %r1, [%l0]; cvta.to.shared.u64 %l2, %l1;"
    ) == ["ld.global.u32", "cvta.to.shared.u64"]


def test_registers_of_a_folded_conversion():
    """The load depends on the address's producer as if cvta were not there."""
    _, trace = run(
        "add.u64 %l0, %a0, 4; cvta.to.global.u64 %l1, %l0; ld.global.u32 %r1, [%l1];",
        np.zeros(32, np.uint32),
    )
    rows = trace.instructions.set_index("opcode")
    assert list(rows.sources["ld.global.u32"]) == list(rows.destinations["add.u64"])


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("div.rn.f32 %f0, %f1, %f2;", {"sfu": 1, "fp32": 7}),
        ("div.approx.f32 %f0, %f1, %f2;", {"sfu": 1, "fp32": 1}),
        ("div.full.f32 %f0, %f1, %f2;", {"sfu": 1, "fp32": 1}),
        ("div.rn.f64 %d0, %d1, %d2;", {"sfu": 1, "fp64": 8}),
        ("div.s32 %r0, %r1, %r2;", {"sfu": 3, "integer": 13}),
        ("rem.u32 %r0, %r1, %r2;", {"sfu": 3, "integer": 12}),
        ("div.u64 %l0, %l1, %l2;", {"sfu": 3, "integer": 64}),
        ("rcp.rn.f32 %f0, %f1;", {"sfu": 1, "fp32": 3}),
        ("rcp.approx.f32 %f0, %f1;", {"sfu": 1}),
        ("rcp.rn.f64 %d0, %d1;", {"sfu": 1, "fp64": 4}),
        ("sqrt.rn.f32 %f0, %f1;", {"sfu": 1, "fp32": 6}),
        ("sqrt.approx.f32 %f0, %f1;", {"sfu": 1, "fp32": 1}),
        ("sqrt.rn.f64 %d0, %d1;", {"sfu": 1, "fp64": 7}),
        ("sin.approx.f32 %f0, %f1;", {"sfu": 1, "fp32": 1}),
        ("ex2.approx.f32 %f0, %f1;", {"sfu": 1}),
        ("fma.rn.f32 %f0, %f1, %f2, %f3;", {"fp32": 1}),
    ],
)
def test_divisions_and_roots_are_sequences(instruction, expected):
    """Machine code has no instruction for them."""
    _, trace = run(instruction, np.zeros(32, np.uint32))
    classes = trace.instructions.op_class.tolist()[4:-1]
    assert {c: classes.count(c) for c in classes} == expected
    assert (trace.warp(0, 0)["active_mask"] == 2**32 - 1).all()


def test_header_of_a_trace(device):
    body = ".shared .align 4 .b8 s[100]; st.shared.u32 [s], %t;"
    module = compile_body(body, 1, device=device)
    kernel, out = module.kernel("k"), device.zeros(1)
    assert kernel.shared_memory_bytes == 100
    kernel.launch(1, 1, out, trace=False)
    trace = kernel.launch((2, 3), (8, 4, 2), out)
    assert (trace.name, trace.launch_id) == ("k", 2)
    assert (trace.grid, trace.block) == ((2, 3, 1), (8, 4, 2))
    assert trace.num_blocks == 6
    assert trace.warps_per_block == 2
    assert trace.shared_memory_bytes == 100
    assert trace.registers_per_thread == kernel.registers_per_thread == 16
    assert trace._core.header["binary_version"] == 90
    assert kernel.launch(1, 1, out, registers_per_thread=77).registers_per_thread == 77


def test_registers_that_are_live_at_once_count():
    """40 values are loaded before any is used; predicates do not count."""
    body = "".join(f"ld.global.u32 %r{i}, [%a0+{4 * i}];" for i in range(40))
    body += "".join(f"st.global.u32 [%a0+{4 * i}], %r{i};" for i in range(40))
    module = compile_body(body, 1, device=cuda.Device(0.25))
    assert module.kernel("k").registers_per_thread == 42  # and two for the pointer


def test_a_trace_is_predicted(device, pascal):
    x = device.array(np.zeros(4096, np.float32))
    body = (
        "mad.wide.u32 %l0, %g, 4, %a0; ld.global.f32 %f0, [%l0]; fma.rn.f32 %f0, %f0, %f0, %f0;"
        "st.global.f32 [%l0], %f0;"
    )
    trace = compile_body(body, 1, device=device).kernel("k").launch(32, 128, x)
    table = ws.predict(trace, pascal, models=["mdm"])
    assert table.instructions.tolist() == [trace.num_instructions]
    assert 0 < table.ipc[0] < pascal.num_sms
    totals = ws.simulate_caches(trace, pascal).totals
    assert totals["load_instructions"] == totals["store_instructions"] == 128
    # 4096 floats are 512 sectors of 32 bytes; the device's memory starts at a sector.
    counted = sum(trace.warp(b, w)["sector"].size for b in range(32) for w in range(4))
    assert counted == 2 * 512
    assert trace.warp(0, 0)["sector"][0] == x.address // 32


def test_traces_can_be_saved(device, tmp_path):
    out = device.zeros(64, np.uint32)
    body = "mad.wide.u32 %l0, %g, 4, %a0; st.global.u32 [%l0], %t; bar.sync 0;"
    trace = compile_body(body, 1, device=device).kernel("k").launch(2, 32, out)
    ws.save(ws.App([trace]), tmp_path / "saved")
    assert ws.load(tmp_path / "saved").kernels[0].digest == trace.digest


def test_mangled_names_may_be_long(device):
    """Those of templates are, and those of Numba, which have the types of all arguments."""
    name = "_Z" + "x" * 600
    module = cuda.compile(HEADER + f".visible .entry {name}() {{ ret; }}\n", device=device)
    assert module.kernel(name).launch(1, 32).num_warps == 1


HOST = """#include <vector>
__global__ void twice(float* x) { x[threadIdx.x] *= 2; }
"""


def test_code_of_the_host_is_for_nvcc(monkeypatch, device):
    """NVRTC refuses it; nvcc compiles it where it is there, and one line says so where it is not."""
    if cuda.compilers() == ["nvrtc", "nvcc"]:
        module = cuda.compile(HOST, device=device)
        assert len(module.kernels) == 1
        with pytest.raises(InputError, match="cannot open source file"):
            cuda.compile(HOST, compiler="nvrtc", device=device)
    if "nvrtc" not in cuda.compilers():
        pytest.skip("NVRTC is not here (warpstack[cuda] brings it)")
    monkeypatch.setattr("warpstack.cuda.toolchain.find_nvcc", lambda: None)
    with pytest.raises(InputError) as caught:
        cuda.compile(HOST, device=device)
    assert str(caught.value).startswith(
        "<source>, line 1, '#include <vector>': NVIDIA's run-time compiler does not take code of the "
        "host; put nvcc on the PATH, or pass the kernels without it\n<source>: the CUDA source does "
        "not compile:\n"
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("#include <cstdint>\n#include <cuda_fp16.h>\n#include <math.h>\nvoid f() {}", None),
        ("// int main() <<<1, 2>>>\n/*\nmain() */ domain(1);", None),
        ('f("main() <<<");', None),
        ("\n\nint main(int n, char** a) {}", "line 3, 'int main(int n, char** a) {}'"),
        ("/* a\nb */\nf<<<1, 2>>>();", "line 3, 'f<<<1, 2>>>();'"),
        ("  # include <iostream>", "line 1, '# include <iostream>'"),
    ],
)
def test_what_counts_as_code_of_the_host(text, found):
    assert host_code(text) == found


def test_headers_of_libcu_are_found(tmp_path, monkeypatch):
    include = tmp_path / "include"
    (include / "cccl" / "cuda").mkdir(parents=True)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert str(include) not in toolchain._include_folders()  # no CUDA is there
    (include / "cuda_runtime.h").touch()
    assert {str(include), str(include / "cccl")} <= set(toolchain._include_folders())
