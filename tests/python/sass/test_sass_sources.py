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

SOURCE = Path(__file__).with_name("rarer_forms.cu")
KERNELS = re.findall(r"^KERNEL\((\w+)\)", SOURCE.read_text(), re.MULTILINE)
WORDS, BLOCK, GRID = 512, 64, 2

pytestmark = pytest.mark.skipif(
    find_nvdisasm() is None or not ws.cuda.compilers(),
    reason="nvdisasm or a CUDA compiler is not installed",
)


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
