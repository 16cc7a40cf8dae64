"""Tensors of other packages in the memory of the host, PyTorch's say, as arguments of kernels.

A tensor is read through the DLPack protocol (``__dlpack__``), so that none of these packages is
needed. A kernel gets its strides as numbers and may reach all that lies between its elements:
copied to the device and back is the memory that a tensor covers (PyTorch's whole storage), once for
tensors that share it, and where in it they begin stays as it is.
"""

from __future__ import annotations

import copy
import ctypes
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack.cuda.device import Device, DeviceArray
from warpstack.cuda.extras import load_extra
from warpstack.cuda.triton_descriptors import is_descriptor
from warpstack.errors import InputError

#: DLDeviceType of memory that the processor reads: of the host, and of the host for a GPU (pinned).
_OF_THE_HOST = (1, 3)
#: DLDataTypeCode and bits of NumPy's numbers, and of those of ml_dtypes.
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c"}
_OF_ML_DTYPES = {
    (4, 16): "bfloat16",
    (7, 8): "float8_e3m4",
    (8, 8): "float8_e4m3",
    (9, 8): "float8_e4m3b11fnuz",
    (10, 8): "float8_e4m3fn",
    (11, 8): "float8_e4m3fnuz",
    (12, 8): "float8_e5m2",
    (13, 8): "float8_e5m2fnuz",
    (14, 8): "float8_e8m0fnu",
}
#: Flags of a versioned capsule: read only, and a copy of what was asked.
_READ_ONLY, _IS_COPY = 1, 2


#: Copies of tensors that live, by device, and the bytes that they are copies of: a tensor has one
#: address in all launches, as on a GPU.
_kept: weakref.WeakKeyDictionary[Device, dict[tuple[int, int], tuple[Any, DeviceArray]]]
_kept = weakref.WeakKeyDictionary()


class _Tensor(ctypes.Structure):
    """DLTensor of dlpack.h."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned of dlpack.h."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = (ctypes.py_object, ctypes.c_char_p)
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype = ctypes.c_int
_is_valid.argtypes = (ctypes.py_object, ctypes.c_char_p)


class _Strided(DeviceArray):
    """The copy of a tensor whose elements do not follow one another: an address for kernels."""

    def _refuse(self, *_: Any) -> Any:
        raise InputError(
            "the elements of this tensor do not follow one another, so that only kernels change them "
            "on the device; give a contiguous one: x.contiguous()"
        )

    zero_ = clone = to_host = __copy__ = _refuse
    copy_ = _refuse  # type: ignore[assignment]


@dataclass
class _View:
    """A tensor of the host: its elements, and the memory that is copied for it."""

    name: str
    owner: tuple[Any, Any]  # what keeps the memory: the tensor, and what tells of it
    address: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    contiguous: bool
    read_only: bool
    start: int
    end: int


@dataclass
class _Block:
    """Memory of the host and its copy."""

    start: int
    end: int
    copy: DeviceArray  # bytes, among them some before the first, for its place
    names: list[str]  # of the read-only tensors in it
    owners: list[Any]

    @property
    def before(self) -> int:
        """Bytes of the copy before the first one."""
        return self.copy.nbytes - (self.end - self.start)

    def host(self) -> npt.NDArray[np.uint8]:
        """Return the memory itself."""
        memory = (ctypes.c_uint8 * (self.end - self.start)).from_address(self.start)
        return np.ctypeslib.as_array(memory)


def is_host_tensor(value: Any) -> bool:
    """Return whether an argument is a tensor of another package, not an array of NumPy's."""
    return hasattr(type(value), "__dlpack__") and not isinstance(value, (DeviceArray, np.ndarray))


class HostTensors:
    """The tensors of the host among the arguments of a call, and their copies.

    Parameters
    ----------
    what
        The function that was called, for messages.
    device
        Where the copies are.
    arguments
        By name; also in tuples and under tensor descriptors.

    Raises
    ------
    InputError
        If the memory of a tensor is not that of the host, or its type has no counterpart here.
    """

    def __init__(self, what: str, device: Device, arguments: Mapping[str, Any]) -> None:
        self._what = what
        self.device = device
        self._found: dict[int, tuple[Any, DeviceArray]] = {}
        self._originals: dict[int, Any] = {}
        tensors = {id(one): (name, one) for name, one in _tensors_of(arguments)}
        views = {key: _view(what, name, one) for key, (name, one) in tensors.items()}
        self._blocks = _blocks_of(device, list(views.values()))
        for key, view in views.items():
            block = next(
                one for one in self._blocks if one.start <= view.start and view.end <= one.end
            )
            kind = DeviceArray if view.contiguous else _Strided
            address = block.copy.address + block.before + view.address - block.start
            array = kind(device, view.shape, view.dtype, address=address)
            array._of = block.copy  # type: ignore[attr-defined]  # keeps the memory
            self._found[key] = tensors[key][1], array
            self._originals[id(array)] = tensors[key][1]

    def __bool__(self) -> bool:
        return bool(self._found)

    @property
    def copies(self) -> list[DeviceArray]:
        """The memory of all copies, as arrays of bytes."""
        return [block.copy for block in self._blocks]

    def has(self, array: DeviceArray) -> bool:
        """Return whether an array is the copy of one of the tensors."""
        return id(array) in self._originals

    def on_device(self, value: Any) -> Any:
        """Return an argument with its tensors on the device."""
        return _replaced(value, lambda one: self._found.get(id(one), (None, one))[1])

    def given(self, value: Any) -> Any:
        """Return an argument with the tensors that were given."""
        return _replaced(value, lambda one: self._originals.get(id(one), one))

    def given_all(self, named: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments by name with the tensors that were given."""
        return {name: self.given(value) for name, value in named.items()}

    def copy_in(self) -> None:
        """Copy what the tensors hold to the device."""
        for block in self._blocks:
            if block.end > block.start:
                device = block.copy.device._core
                device.write(block.copy.address + block.before, block.host())

    def copy_out(self) -> None:
        """Copy what the device holds into the tensors.

        Raises
        ------
        InputError
            If a kernel has changed one that is read-only.
        """
        for block in self._blocks:
            host = block.host()
            found = np.empty_like(host)
            if host.size:
                block.copy.device._core.read(block.copy.address + block.before, found)
            if np.array_equal(host, found):
                continue
            if block.names:
                raise InputError(
                    f"{self._what}: {block.names[0]}: the kernel writes to a tensor that cannot be "
                    "written (its package says so); give a copy on the device, warpstack.cuda.array(x), "
                    "and read np.asarray of it"
                )
            host[:] = found


def _tensors_of(arguments: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in arguments.items():
        if isinstance(value, (tuple, list)):
            yield from _tensors_of({f"{name}[{n}]": one for n, one in enumerate(value)})
        elif is_descriptor(value):
            yield from _tensors_of({f"{name}.base": value.base})
        elif is_host_tensor(value):
            yield name, value


def _replaced(value: Any, replace: Callable[[Any], Any]) -> Any:
    """Return an argument in which arrays are others, also in tuples and under descriptors."""
    if isinstance(value, (tuple, list)):
        parts = [_replaced(one, replace) for one in value]
        if all(new is old for new, old in zip(parts, value, strict=True)):
            return value
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if is_descriptor(value):
        base = replace(value.base)
        if base is value.base:
            return value
        value = copy.copy(value)
        value.base = base
        return value
    return replace(value)


def _view(what: str, name: str, tensor: Any) -> _View:
    """Return where a tensor is.

    Raises
    ------
    InputError
        If this process cannot read it.
    """
    given = tensor
    if getattr(tensor, "requires_grad", False):
        tensor = tensor.detach()  # the same memory
    try:
        if hasattr(tensor, "__dlpack_device__"):
            _check_place(what, name, tensor.__dlpack_device__()[0])
        capsule = _capsule(tensor)
    except InputError:
        raise
    except Exception as error:  # of any package
        raise InputError(
            f"{what}: {name}: its memory cannot be read: {type(error).__name__}: {error}; give a "
            "plain tensor in the CPU's memory"
        ) from None
    flags = 0
    if _is_valid(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(_pointer_of(capsule, b"dltensor_versioned"))
        if versioned.major > 1:
            raise InputError(f"{what}: {name}: it speaks DLPack {versioned.major}, not 1")
        flags, found = versioned.flags, versioned.tensor
    elif _is_valid(capsule, b"dltensor"):
        found = _Tensor.from_address(_pointer_of(capsule, b"dltensor"))
    else:
        raise InputError(f"{what}: {name}: its __dlpack__ does not return a capsule of a tensor")
    _check_place(what, name, found.device_type)
    dtype = _dtype_of(what, name, found)
    shape = tuple(found.shape[: found.ndim])
    steps = [int(np.prod(shape[n + 1 :], dtype=object)) for n in range(len(shape))]
    strides = found.strides[: found.ndim] if found.strides else steps
    address = (found.data or 0) + found.byte_offset
    reach = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True)]
    start = address + dtype.itemsize * sum(min(one, 0) for one in reach)
    end = address + dtype.itemsize * (1 + sum(max(one, 0) for one in reach))
    if 0 in shape:
        start = end = address
    if hasattr(tensor, "untyped_storage"):  # PyTorch's, of which the tensor is a part
        storage = tensor.untyped_storage()
        start, end = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
    return _View(
        name=name,
        owner=(given, capsule),
        address=address,
        dtype=dtype,
        shape=shape,
        contiguous=all(
            size == 1 or stride == step
            for size, stride, step in zip(shape, strides, steps, strict=True)
        ),
        read_only=bool(flags & (_READ_ONLY | _IS_COPY)),
        start=start,
        end=end,
    )


def _capsule(tensor: Any) -> Any:
    """Return a tensor's capsule, of the newest protocol that it knows.

    It is not consumed: its own destructor frees what belongs to it.
    """
    try:
        return tensor.__dlpack__(max_version=(1, 0))
    except TypeError:
        return tensor.__dlpack__()


def _check_place(what: str, name: str, device_type: int) -> None:
    if device_type not in _OF_THE_HOST:
        raise InputError(
            f"{what}: {name}: a tensor in the memory of another device (DLPack's type {device_type}); "
            "copy it to the CPU first: x.cpu()"
        )


def _dtype_of(what: str, name: str, tensor: _Tensor) -> np.dtype[Any]:
    code, bits = tensor.code, tensor.bits
    if tensor.lanes == 1 and (code, bits) in _OF_ML_DTYPES:
        types = load_extra(what, "ml_dtypes", "triton")
        brief: np.dtype[Any] = np.dtype(getattr(types, _OF_ML_DTYPES[code, bits]))
        return brief
    if tensor.lanes == 1 and (code, bits) == (6, 8):
        return np.dtype(bool)
    if tensor.lanes == 1 and code in _KINDS and bits in (8, 16, 32, 64, 128):
        try:
            return np.dtype(f"{_KINDS[code]}{bits // 8}")
        except TypeError:
            pass
    raise InputError(
        f"{what}: {name}: elements of DLPack's type code {code} with {bits} bits and {tensor.lanes} "
        "lanes have no counterpart; convert the tensor to float32, float16, bfloat16 or an integer"
    )


def _blocks_of(device: Device, views: Sequence[_View]) -> list[_Block]:
    """Return the memory of views: that of overlapping ones once, with room on the device."""
    merged: list[list[_View]] = []
    end = -1
    for view in sorted(views, key=lambda one: (one.start, one.end)):
        if merged and (view.start < end or view.start == merged[-1][0].start):
            merged[-1].append(view)
        else:
            merged.append([view])
            end = -1
        end = max(end, view.end)
    blocks = []
    for group in merged:
        start, end = group[0].start, max(one.end for one in group)
        blocks.append(
            _Block(
                start,
                end,
                _copy_of(device, start, end, group[0].owner[0]),
                [one.name for one in group if one.read_only],
                [one.owner for one in group],
            )
        )
    return blocks


def _copy_of(device: Device, start: int, end: int, owner: Any) -> DeviceArray:
    """Return room for a copy of memory, the same one as long as its tensor lives."""
    kept = _kept.setdefault(device, {})
    known = kept.get((start, end))
    if known is not None and known[0]() is owner:
        return known[1]
    before = start % 16  # Triton asks whether addresses are divisible by 16
    made = DeviceArray(device, (before + end - start,), np.dtype(np.uint8))

    def forget(reference: Any) -> None:
        if kept.get((start, end), (None,))[0] is reference:
            del kept[start, end]

    try:
        kept[start, end] = weakref.ref(owner, forget), made
    except TypeError:  # of a class whose objects have no weak references
        kept.pop((start, end), None)
    return made
