"""A tensor of another package: NumPy's memory, seen through DLPack alone."""

import ctypes

import numpy as np

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
#: Where DLTensor has its type code (dlpack.h): after address, device and number of dimensions.
CODE_AT = 20
BFLOAT = 4


class Tensor:
    """Memory of an array; arrays of bfloat16 go as halves whose type code is then that of bfloat16."""

    def __init__(self, array, *, versioned=True, place=None):
        self.array = array
        self.versioned = versioned
        self.place = place

    @property
    def dtype(self):
        return self.array.dtype

    def stride(self, dim):
        return self.array.strides[dim] // self.array.itemsize

    def __dlpack_device__(self):
        return self.place or self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        if not self.versioned and options:  # as packages before DLPack 1.0
            raise TypeError("__dlpack__() got an unexpected keyword argument")
        if self.array.dtype.name != "bfloat16":
            return self.array.__dlpack__(**options)
        capsule = self.array.view(np.float16).__dlpack__()
        address = _pointer(capsule, b"dltensor")
        ctypes.c_uint8.from_address(address + CODE_AT).value = BFLOAT
        return capsule
