"""Descriptions of tensors for the copies of tiles of compute capability 9.0 (CUtensorMap)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpstack import _core
from warpstack._util.arguments import as_integer
from warpstack._util.checked import strictly_checked
from warpstack.cuda.device import DeviceArray
from warpstack.errors import InputError, not_one_of

#: Elements by the names of tensormap.replace, in the order of its numbers (PTX ISA).
_ELEMENTS = (
    *("uint8", "uint16", "uint32", "int32", "uint64", "int64"),
    *("float16", "float32", "float32_ftz", "float64", "bfloat16", "tfloat32", "tfloat32_ftz"),
)
#: Types of NumPy that have no name of their own there: their bytes are copied all the same.
_SAME_BYTES = {"int8": "uint8", "int16": "uint16", "bool": "uint8"}
_SWIZZLES = (0, 32, 64, 128)
_MOST_DIMENSIONS = 5


@strictly_checked
def tensor_map(
    source: DeviceArray,
    box: Sequence[int],
    *,
    swizzle: int = 0,
    element_strides: Sequence[int] | None = None,
    element: str | None = None,
    fill: str = "zeros",
) -> bytes:
    """Describe an array to kernels that copy tiles of it, as CUDA's ``cuTensorMapEncodeTiled`` does.

    Parameters
    ----------
    source
        The array, in C order, of one to five dimensions.
    box
        Elements of a tile along each dimension of the array, 1 to 256; those of the last one take a
        multiple of 16 bytes.
    swizzle
        How the rows of a tile lie in shared memory: 0, or the bytes in which 16-byte pieces are
        exchanged, 32, 64 or 128; a row of the tile has at most as many.
    element_strides
        Every how many elements are copied along each dimension, 1 to 8; by default all.
    element
        The type of the elements: by default that of the array. "bfloat16", "float32_ftz",
        "tfloat32" and "tfloat32_ftz" are types that NumPy lacks.
    fill
        What a tile gets that lies outside the array: "zeros" or "nan".

    Returns
    -------
    bytes
        The 128 bytes of a ``CUtensorMap``, for a parameter of a kernel (``const __grid_constant__
        CUtensorMap``). Their layout is warpstack's own.

    Raises
    ------
    InputError
        If there is no such tile, with the field that is wrong.
    """
    if not 1 <= source.ndim <= _MOST_DIMENSIONS:
        raise InputError(f"source has {source.ndim} dimensions, 1 to 5 are possible")
    name = source.dtype.name if element is None else element
    name = _SAME_BYTES.get(name, name)
    if name not in _ELEMENTS:
        raise not_one_of("element", name, _ELEMENTS)
    if swizzle not in _SWIZZLES:
        raise not_one_of("swizzle", swizzle, _SWIZZLES)
    if fill not in ("zeros", "nan"):
        raise not_one_of("fill", fill, ("zeros", "nan"))
    steps = [1] * source.ndim if element_strides is None else list(element_strides)
    for what, values in (("box", box), ("element_strides", steps)):
        if len(values) != source.ndim:
            raise InputError(
                f"{what} has {len(values)} values, source has {source.ndim} dimensions"
            )
    # The core counts dimensions from the innermost one.
    sizes = [int(size) for size in reversed(source.shape)]
    strides = np.cumprod([source.dtype.itemsize, *sizes])[1:-1]
    return _core.tensor_map(
        source.address,
        sizes,
        [int(stride) for stride in strides],
        [as_integer("box", size, 1, 256) for size in reversed(list(box))],
        [as_integer("element_strides", step, 1, 8) for step in reversed(steps)],
        _ELEMENTS.index(name),
        _SWIZZLES.index(swizzle),
        fill == "nan",
    )
