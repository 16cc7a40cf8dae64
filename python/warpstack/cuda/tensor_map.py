"""Descriptions of tensors for the copies of tiles of compute capability 9.0 (CUtensorMap)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

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
#: Sizes of the pieces that a swizzle of 128 bytes exchanges, and the numbers of these swizzles.
_PIECES = {16: 3, 32: 4, 64: 6}
_MOST_DIMENSIONS = 5


@strictly_checked
def tensor_map(
    source: DeviceArray,
    box: Sequence[int],
    *,
    swizzle: int = 0,
    swizzle_piece: int = 16,
    element_strides: Sequence[int] | None = None,
    element: str | None = None,
    fill: str = "zeros",
    shape: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    offset: int = 0,
) -> bytes:
    """Describe an array to kernels that copy tiles of it, as CUDA's ``cuTensorMapEncodeTiled`` does.

    Parameters
    ----------
    source
        The array, in C order, of one to five dimensions, or of any number with `shape`.
    box
        Elements of a tile along each dimension, 1 to 256; those of the last one take a multiple of 16
        bytes.
    swizzle
        How the rows of a tile lie in shared memory: 0, or the bytes in which pieces are exchanged,
        32, 64 or 128; a row of the tile has at most as many.
    swizzle_piece
        Bytes of a piece: 16, or with a swizzle of 128 also 32 or 64.
    element_strides
        Every how many elements are copied along each dimension, 1 to 8; by default all.
    element
        The type of the elements: by default that of the array. "bfloat16", "float32_ftz",
        "tfloat32" and "tfloat32_ftz" are types that NumPy lacks.
    fill
        What a tile gets that lies outside the array: "zeros" or "nan".
    shape
        Elements along each of one to five dimensions of the tensor, outermost first as in NumPy (CUDA's
        ``globalDim`` is innermost first); by default those of the array.
    strides
        Bytes from an element to the next one along each dimension of the tensor, in the order of `shape`
        (CUDA's ``globalStrides`` is the other way round). That of the last dimension is the size of an
        element and may be left out; the others are multiples of 16. By default, the tensor is packed.
    offset
        Bytes of the array before the tensor's first element, a multiple of 16.

    Returns
    -------
    bytes
        The 128 bytes of a ``CUtensorMap``, for a parameter of a kernel (``const __grid_constant__
        CUtensorMap``). Their layout is warpstack's own.

    Raises
    ------
    InputError
        If there is no such tile or the tensor is not within the array, with the field that is wrong.

    Examples
    --------
    A matrix of 128 x 256 halves as tiles of 64 columns, which lie 128 bytes apart:

    >>> import numpy as np
    >>> import warpstack as ws
    >>> matrix = ws.cuda.empty((128, 256), np.float16)
    >>> map_ = ws.cuda.tensor_map(
    ...     matrix, (1, 64, 64), shape=(4, 128, 64), strides=(128, 512), swizzle=128
    ... )
    """
    sizes = (
        list(source.shape) if shape is None else [as_integer("shape", n, 1, 2**32) for n in shape]
    )
    if not 1 <= len(sizes) <= _MOST_DIMENSIONS:
        what = "source" if shape is None else "shape"
        raise InputError(f"{what} has {len(sizes)} dimensions, 1 to 5 are possible")
    name = source.dtype.name if element is None else element
    name = _SAME_BYTES.get(name, name)
    if name not in _ELEMENTS:
        raise not_one_of("element", name, _ELEMENTS)
    if swizzle not in _SWIZZLES:
        raise not_one_of("swizzle", swizzle, _SWIZZLES)
    if swizzle_piece not in _PIECES:
        raise not_one_of("swizzle_piece", swizzle_piece, _PIECES)
    if swizzle_piece != 16 and swizzle != 128:
        raise InputError(
            f"swizzle_piece = {swizzle_piece} is for swizzle = 128, and swizzle is {swizzle}"
        )
    if fill not in ("zeros", "nan"):
        raise not_one_of("fill", fill, ("zeros", "nan"))
    steps = [1] * len(sizes) if element_strides is None else list(element_strides)
    for what, values in (("box", box), ("element_strides", steps)):
        if len(values) != len(sizes):
            raise InputError(
                f"{what} has {len(values)} values, the tensor has {len(sizes)} dimensions"
            )
    itemsize = int(re.findall(r"\d+", name)[0]) // 8
    pitches = _pitches(sizes, itemsize, strides)
    offset = as_integer("offset", offset, 0, source.nbytes)
    if offset % 16:
        raise InputError(f"offset = {offset} is not a multiple of 16 bytes")
    last = sum((n - 1) * pitch for n, pitch in zip(sizes, pitches, strict=True))
    end = offset + last + itemsize
    if min(sizes) > 0 and end > source.nbytes:
        raise InputError(
            f"shape, strides, offset and element: the tensor ends at byte {end:,} of an array of "
            f"{source.nbytes:,} bytes"
        )
    # The core counts dimensions from the innermost one.
    return _core.tensor_map(
        source.address + offset,
        sizes[::-1],
        pitches[-2::-1],
        [as_integer("box", size, 1, 256) for size in reversed(list(box))],
        [as_integer("element_strides", step, 1, 8) for step in reversed(steps)],
        _ELEMENTS.index(name),
        _PIECES[swizzle_piece] if swizzle == 128 else _SWIZZLES.index(swizzle),
        fill == "nan",
    )


def _pitches(sizes: Sequence[int], itemsize: int, strides: Sequence[int] | None) -> list[int]:
    """Return the bytes between elements along each dimension."""
    if strides is None:
        return [itemsize * math.prod(sizes[place:]) for place in range(1, len(sizes) + 1)]
    given = [as_integer("strides", stride, 1, 2**40) for stride in strides]
    if len(given) == len(sizes) - 1:
        return [*given, itemsize]
    if len(given) != len(sizes):
        raise InputError(
            f"strides has {len(given)} values, the tensor has {len(sizes)} dimensions; the last one may "
            "be left out"
        )
    if given[-1] != itemsize:
        raise InputError(
            f"strides: elements of the last dimension are {given[-1]} bytes apart, not the {itemsize} of an "
            "element"
        )
    return given
