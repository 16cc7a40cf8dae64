"""CUDA sources that compilers turn into the rarer forms of machine code, against their PTX.

The kernels of rarer_forms.cu have what test_sass_forms.py does not reach.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from tested_forms import forms_are_executed, forms_by_test  # noqa: F401

import warpstack as ws
from warpstack.cuda.disassembly import find_nvdisasm
from warpstack.cuda.toolchain import find_ptxas
from warpstack.errors import InputError

SOURCE = Path(__file__).with_name("rarer_forms.cu")
KERNELS = re.findall(r"^KERNEL\((\w+)\)", SOURCE.read_text(), re.MULTILINE)
WORDS, BLOCK, GRID = 512, 64, 2

pytestmark = pytest.mark.skipif(
    find_nvdisasm() is None or not ws.cuda.compilers(),
    reason="nvdisasm or a CUDA compiler is not installed",
)

needs_ptxas = pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")


@pytest.fixture(scope="module")
def texts():
    """Return the PTX and the listing of the machine code."""
    machine = ws.cuda.compile(SOURCE, machine_code="sm_80", device=ws.cuda.Device(0.1))
    return ws.cuda.compile(SOURCE, arch="sm_80", device=ws.cuda.Device(0.1)).ptx, machine.listing


@pytest.mark.parametrize("name", KERNELS)
def test_it_gives_what_its_ptx_gives(name, texts):
    values = np.random.default_rng(5).integers(0, 2**32, WORDS, dtype=np.uint32)
    values[:8] = 3, 5, 5, 17, 0, 2**31, 2**32 - 1, 1
    values[128:192] &= 0x3FFFFFFF  # floats that are added up stay numbers
    results = []
    for text in texts:
        device = ws.cuda.Device(0.1, print_to=lambda text: None)
        kernel = ws.cuda.compile(text, device=device).kernel(name)
        a, o = device.array(values), device.array(values)
        kernel.launch(GRID, BLOCK, a, o, np.int32(7), np.int32(13), np.int32(-3), np.int8(-9))
        results.append(np.asarray(o))
    assert not np.array_equal(results[0], values)
    np.testing.assert_array_equal(*results)


SURFACES = """
extern "C" __global__ void k(cudaSurfaceObject_t s, const unsigned* a) {
  unsigned t = threadIdx.x;
  surf2Dwrite(a[t], s, 4 * (t % 8), t / 8);
  surf2Dwrite((unsigned short)(a[t + 64] >> 16), s, 4 * (t % 8) + 2, t / 8);
}
"""


def test_surfaces_that_are_parameters():
    """Their handles are operands by the place in constant bank 0."""
    values = np.random.default_rng(6).integers(0, 2**32, 128, dtype=np.uint32)
    expected = (values[:64] & 0xFFFF) | (values[64:] & 0xFFFF0000)
    for options in ({"arch": "sm_80"}, {"machine_code": "sm_80"}):
        device = ws.cuda.Device(0.1)
        texels = device.zeros((8, 8), np.uint32)
        kernel = ws.cuda.compile(SURFACES, device=device, **options).kernel("k")
        kernel.launch(1, 64, ws.cuda.texture(texels), device.array(values))
        np.testing.assert_array_equal(texels.to_host(), expected.reshape(8, 8))


WIDE = """
typedef unsigned long long u64;
typedef unsigned __int128 u128;
extern "C" __global__ void k(const u64* a, u64* o) {
  int t = threadIdx.x;
  u128 x = (u128)a[4 * t + 1] << 64 | a[4 * t], y = (u128)a[4 * t + 3] << 64 | a[4 * t + 2];
  u128 results[] = {x + y, x - y, y - x, x + (unsigned)y, y - 77, -x, ~x + y, x < y, x >= y};
  for (int i = 0; i < 9; ++i) {
    o[18 * t + 2 * i] = results[i];
    o[18 * t + 2 * i + 1] = results[i] >> 64;
  }
}
"""


@pytest.mark.parametrize("arch", ["sm_75", "sm_120"])
def test_carries_of_numbers_of_128_bits(arch):
    """From word to word; on sm_120, which adds 64 bits at a time, from pair to pair."""
    rng = np.random.default_rng(7)
    edges = np.array([0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1], np.uint64)
    words = rng.integers(0, 2**64, (64, 4), dtype=np.uint64)
    words = np.where(rng.random(words.shape) < 0.6, rng.choice(edges, words.shape), words)
    expected = []
    for a, b, c, d in words.tolist():
        x, y = b << 64 | a, d << 64 | c
        results = [x + y, x - y, y - x, x + y % 2**32, y - 77, -x, ~x + y, x < y, x >= y]
        expected.append([r >> s & (2**64 - 1) for r in map(int, results) for s in (0, 64)])
    device = ws.cuda.Device(0.1)
    module = ws.cuda.compile(WIDE, machine_code=arch, device=device)
    if arch == "sm_120":
        assert "IADD.64.X" in module.listing
    out = device.zeros((64, 18), np.uint64)
    module.kernel("k").launch(1, 64, device.array(words), out)
    np.testing.assert_array_equal(out.to_host(), np.array(expected, np.uint64))


LOOP = """
extern "C" __global__ void k(const float* a, float* o) {
  float x = a[threadIdx.x], y = x;
  for (int i = 0; i < 20; ++i) y = y * x + 1.0f;
  o[threadIdx.x] = y;
}
"""


def loop_as_ptx():
    """Return PTX of a version that an older ptxas reads, too."""
    return re.sub(r"\.version [\d.]+", ".version 8.3", ws.cuda.compile(LOOP, arch="sm_80").ptx)


@needs_ptxas
@pytest.mark.parametrize("kind", ["source", "nvcc", "PTX"])
def test_options_of_ptxas(kind):
    """Code of ptxas -O0 is longer, also where ptxas gets PTX of nvcc or PTX that is ready."""
    if kind == "nvcc" and kind not in ws.cuda.compilers():
        pytest.skip("nvcc is not installed")
    source = loop_as_ptx() if kind == "PTX" else LOOP
    compiler = "nvcc" if kind == "nvcc" else None
    how = {"machine_code": "sm_80", "compiler": compiler}
    lengths = [
        len(ws.cuda.compile(source, options=options, **how).instructions("k"))
        for options in ((), ("-Xptxas=-O0",), ("-Xptxas", "-O0"), ("--ptxas-options=-O0",), ("-G",))
    ]
    assert lengths[0] < lengths[1] == lengths[2] == lengths[3]
    assert lengths[0] < lengths[4]


@needs_ptxas
def test_an_option_that_ptxas_does_not_know():
    with pytest.raises(InputError, match=r"Unknown option .-no-such-option"):
        ws.cuda.compile(loop_as_ptx(), machine_code="sm_80", options=["-Xptxas=--no-such-option"])


SIGNED_EXTREMES = """.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .b64 %d<3>; .reg .b32 %r<4>; .reg .f32 %f<4>;
  ld.param.u64 %d0, [p];
  ld.global.u32 %r0, [%d0]; ld.global.u32 %r1, [%d0+4];
  min.NaN.xorsign.abs.f16x2 %r2, %r0, %r1; st.global.u32 [%d0+8], %r2;
  mov.b32 %f0, %r0; mov.b32 %f1, %r1;
  max.xorsign.abs.f32 %f2, %f0, %f1; st.global.f32 [%d0+12], %f2;
  ret;
}
"""


@pytest.mark.parametrize("machine_code", [None, pytest.param("sm_90", marks=needs_ptxas)])
def test_extremes_with_the_signs_of_both(machine_code):
    """Halves (2, 2) and (-1, 1): 1 in magnitude, of the product's sign; singles 3 and -0.5."""
    options = {} if machine_code is None else {"machine_code": machine_code}
    kernel = ws.cuda.compile(SIGNED_EXTREMES, **options).kernel("k")
    words = ws.cuda.array(np.array([0x40004000, 0xBC003C00, 0, 0], np.uint32))
    kernel.launch(1, 1, words)
    assert hex(np.asarray(words)[2]) == "0xbc003c00"
    words = ws.cuda.array(np.array([3, -0.5, 0, 0], np.float32).view(np.uint32))
    kernel.launch(1, 1, words)
    assert np.asarray(words).view(np.float32)[3] == -3
