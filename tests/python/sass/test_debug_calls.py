"""Machine code compiled with -G calls functions by their names, and finds variables by relocations."""

import numpy as np
import pytest

import warpstack as ws
from warpstack.cuda.disassembly import find_nvdisasm

pytestmark = pytest.mark.skipif(
    find_nvdisasm() is None or not ws.cuda.compilers(),
    reason="nvdisasm or a CUDA compiler is not installed",
)

SOURCE = r"""
extern "C" __global__ void sines(double *x) { x[threadIdx.x] = sin(x[threadIdx.x]); }

extern "C" __global__ void greet(int n) {
  if (threadIdx.x == 3) printf("%d from %d\n", n, (int)threadIdx.x);
}

extern "C" __global__ void heap(int *out, int n) {
  int *values = (int *)malloc(n * sizeof(int));
  for (int i = 0; i < n; ++i) values[i] = i * (int)threadIdx.x;
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += values[i];
  free(values);
  int *one = new int(sum);
  out[threadIdx.x] = *one;
  delete one;
}
"""


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize("options", [["-G"], []])
def test_functions_of_the_library(target, options, capfd):
    device = ws.cuda.Device(0.5)
    module = ws.cuda.compile(SOURCE, device=device, machine_code=target, options=options)
    values = np.linspace(-1e6, 1e6, 32)  # large ones take a slow path, a call within the call
    sines = device.array(values)
    module.kernel("sines").launch(1, 32, sines)
    np.testing.assert_allclose(sines.to_host(), np.sin(values), rtol=1e-13, atol=1e-15)

    sums = device.zeros(32, np.int32)
    module.kernel("heap").launch(1, 32, sums, np.int32(5))
    np.testing.assert_array_equal(sums.to_host(), 10 * np.arange(32))

    module.kernel("greet").launch(1, 32, np.int32(7))
    assert capfd.readouterr().out == "7 from 3\n"
