"""CUDA kernels without a GPU: compile, run on NumPy arrays, and trace.

A warp-wide interpreter of PTX in the compiled core runs a kernel as a GPU would, warp by warp with
divergence and barriers, and yields both its results and its trace.

Examples
--------
>>> import numpy as np
>>> import warpstack as ws
>>> source = r'''
... extern "C" __global__ void saxpy(const float* x, float* y, float a, int n) {
...   int i = blockIdx.x * blockDim.x + threadIdx.x;
...   if (i < n) y[i] = a * x[i] + y[i];
... }'''
>>> module = ws.cuda.compile(source)  # doctest: +SKIP
>>> x = ws.cuda.array(np.arange(1000, dtype=np.float32))  # doctest: +SKIP
>>> y = ws.cuda.array(np.ones(1000, dtype=np.float32))  # doctest: +SKIP
>>> trace = module.kernel("saxpy").launch(4, 256, x, y, np.float32(2), 1000)  # doctest: +SKIP
>>> np.asarray(y)[:3]  # doctest: +SKIP
array([1., 3., 5.], dtype=float32)
"""

from typing import TYPE_CHECKING

from warpstack._util.lazy import lazy_exports
from warpstack.cuda.compiler import compile, compilers
from warpstack.cuda.device import Device, DeviceArray, array, default_device, empty, zeros
from warpstack.cuda.kernel import Kernel, KernelWarning, Module
from warpstack.cuda.machine_code import MachineCodeWarning, MachineModule, load_cubin
from warpstack.cuda.tensor_map import tensor_map
from warpstack.cuda.texture import Texture, texture

if TYPE_CHECKING:
    from warpstack.cuda import host

__all__ = [
    "Device",
    "DeviceArray",
    "Kernel",
    "KernelWarning",
    "MachineCodeWarning",
    "MachineModule",
    "Module",
    "Texture",
    "array",
    "compile",
    "compilers",
    "default_device",
    "empty",
    "host",
    "load_cubin",
    "tensor_map",
    "texture",
    "zeros",
]

__getattr__, __dir__ = lazy_exports(__name__, {"host": "host"})
