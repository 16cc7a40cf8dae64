"""Tensor descriptors of Triton that are made on the host: what its launcher makes of them.

Code for compute capability 9.0 gets a tensor map in place of the descriptor, whose boxes Triton's
compiler chose. Other code gets the address, and reads and writes tiles element by element. Both get
the shape and the strides behind it.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from warpstack import _core
from warpstack.cuda.device import DeviceArray
from warpstack.errors import InputError, shown

#: The type of a parameter that is a tensor map, as Triton names it.
TENSOR_MAP = "nvTmaDesc"


def is_descriptor(value: Any) -> bool:
    """Return whether an argument is a ``triton.tools.tensor_descriptor.TensorDescriptor``."""
    return type(value).__name__ == "TensorDescriptor"


def arrays_of(arguments: Sequence[Any]) -> list[DeviceArray]:
    """Return the arrays among arguments, in their tuples and under descriptors, each once."""
    found: list[DeviceArray] = []
    for value in arguments:
        if isinstance(value, (tuple, list)):
            inner = arrays_of(value)
        else:
            inner = [value.base if is_descriptor(value) else value]
        for one in inner:
            if isinstance(one, DeviceArray) and not any(one is other for other in found):
                found.append(one)
    return found


def with_base(what: str, descriptor: Any, wrap: Any) -> Any:
    """Return a copy of a descriptor whose array is as Triton's binder asks one.

    Raises
    ------
    InputError
        If it does not describe an array of the device.
    """
    if not isinstance(descriptor.base, DeviceArray):
        raise InputError(
            f"{what}: a tensor descriptor of {shown(descriptor.base)}; it takes an array of the "
            "device: TensorDescriptor.from_tensor(warpstack.cuda.array(x), [64, 64])"
        )
    result = copy.copy(descriptor)
    result.base = wrap(descriptor.base)
    return result


def descriptor_parameters(
    what: str, kind: str, descriptor: Any, metadata: Mapping[str, Any] | None
) -> Iterator[tuple[str, Any]]:
    """Yield type and value of each parameter of the PTX that a descriptor becomes.

    Parameters
    ----------
    what
        The function that was called, for messages.
    kind
        Its type in the signature, ``tensordesc<fp16[64, 64]>``.
    descriptor
        The argument, with an array of the device.
    metadata
        What the compiler says of its tensor map; None: the code has none.

    Raises
    ------
    InputError
        If no tensor map describes it.
    """
    if metadata is None:
        element = re.match(r"tensordesc<([^\[>]*)", kind)
        yield f"*{element[1] if element else ''}", descriptor.base
        for value in (*descriptor.shape, *descriptor.strides):
            yield "i64", value
        yield "i1", descriptor.padding == "nan"
        if hasattr(descriptor, "round_f32_to_tf32"):  # of newer Tritons
            yield "i1", descriptor.round_f32_to_tf32
    else:
        yield TENSOR_MAP, _tensor_map(what, descriptor, metadata)
    for value in descriptor.shape:
        yield "i32", value
    for value in descriptor.strides:
        yield "i64", value


def _tensor_map(what: str, descriptor: Any, metadata: Mapping[str, Any]) -> bytes:
    """Return the map of a descriptor, with dimensions from the innermost one."""
    refused = {
        "a tensor descriptor of im2col copies": metadata.get("is_im2col"),
        "a tensor descriptor of padded 4-bit floats": metadata.get("fp4_padded"),
        "a tensor descriptor with round_f32_to_tf32": getattr(
            descriptor, "round_f32_to_tf32", False
        ),
    }
    for name, asked in refused.items():
        if asked:
            raise InputError(f"{what}: {name} is not supported for sm_90 and later")
    size = metadata["elem_size"]
    try:
        return _core.tensor_map(
            descriptor.base.address,
            [int(extent) for extent in reversed(descriptor.shape)],
            [size * int(stride) for stride in reversed(descriptor.strides[:-1])],
            [int(extent) for extent in reversed(metadata["block_size"])],
            [1] * len(descriptor.shape),
            metadata["elem_type"],  # numbered as tensormap.replace does
            metadata["swizzle"],
            descriptor.padding == "nan",
        )
    except InputError as error:
        raise InputError(f"{what}: a tensor descriptor: {error}") from None
