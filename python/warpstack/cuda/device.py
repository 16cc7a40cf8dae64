"""The simulated device, and arrays in its memory."""

from __future__ import annotations

import copy
import functools
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from warpstack import _core
from warpstack._util.arguments import as_integer
from warpstack._util.checked import strictly_checked
from warpstack._util.handle import Handle
from warpstack.errors import InputError, shown

#: Address space of a device; pages take memory when they are written.
DEFAULT_MEMORY_GIB = 16.0


class Device(Handle):
    """A simulated device: memory at fixed addresses, and what kernels print.

    Addresses depend on the order of allocations alone, so the traces of a program are the same in
    every run. A new device starts afresh.

    Parameters
    ----------
    memory_gib
        Size of its memory, in GiB. Only what is written takes memory of this machine. Where the
        process may not reserve as much address space (``ulimit -v``), the device has less.
    print_to
        Receives what kernels print, as text; by default it goes to standard output.

    Raises
    ------
    InputError
        If the size is impossible.
    """

    @strictly_checked
    def __init__(
        self,
        memory_gib: float = DEFAULT_MEMORY_GIB,
        *,
        print_to: Callable[[str], object] | None = None,
    ) -> None:
        if not 0 < memory_gib <= 1024:
            raise InputError(f"memory_gib = {shown(memory_gib)} is outside 0 to 1024")
        try:
            self._core = _core.PtxDevice(int(memory_gib * 2**30))
        except MemoryError:
            raise InputError(
                "this process may reserve no address space for a device: raise its limit (ulimit -v)"
            ) from None
        self._print_to = print_to or _print_to_stdout
        # The core must not keep the device alive: nothing would ever end such a pair.
        this = weakref.ref(self)

        def print_text(text: bytes) -> None:
            device = this()
            if device is not None:
                device._print_to(text.decode("utf-8", "replace"))

        self._core.set_print(print_text)
        self._launches = 0

    @property
    def used_bytes(self) -> int:
        """Bytes in allocations."""
        return self._core.used

    @strictly_checked
    def array(self, values: Any) -> DeviceArray:
        """Copy an array to the device. See `warpstack.cuda.array`."""
        host = _as_array("array", values)
        check_dtype("array", host.dtype)
        return DeviceArray(self, host.shape, host.dtype).copy_from(host)

    @strictly_checked
    def empty(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32) -> DeviceArray:
        """Allocate an array that a kernel must write before it is read."""
        kind = np.dtype(dtype)
        check_dtype("empty", kind)
        return DeviceArray(self, _as_shape(shape), kind)

    @strictly_checked
    def zeros(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32) -> DeviceArray:
        """Allocate an array of zeros."""
        result = self.empty(shape, dtype)
        if result.nbytes:
            self._core.fill(result.address, 0, result.nbytes)
        return result

    def next_launch(self) -> int:
        """Return the number of the next launch, from 1."""
        self._launches += 1
        return self._launches


def of_mib(memory_mib: float | None) -> Device:
    """Return a new device with so much memory; with None, as much as by default."""
    if memory_mib is None:
        return Device()
    check_memory_mib(memory_mib)
    return Device(memory_mib / 1024)


def check_memory_mib(memory_mib: float) -> None:
    """Raise `InputError` for a size that no device has."""
    if not 1 <= memory_mib <= 2**20:
        raise InputError(
            f"device memory of {memory_mib:g} MiB is outside 1 to {2**20} (device_memory_mib, "
            "--device-memory)"
        )


def _print_to_stdout(text: str) -> None:
    sys.stdout.write(text)


@functools.cache
def default_device() -> Device:
    """Return the device of the functions of this module."""
    return Device()


def device_of(arguments: Sequence[Any]) -> Device:
    """Return the device of the first array among arguments and in their tuples, or the default."""
    arrays: list[Any] = list(arguments)
    while arrays:
        value = arrays.pop(0)
        if isinstance(value, DeviceArray):
            return value.device
        if isinstance(value, (tuple, list)):
            arrays[:0] = value
    return default_device()


class DeviceArray(Handle):
    """An array in the memory of a simulated device.

    ``np.asarray(x)`` copies it back. Passed to a kernel, it is a pointer to its first element. Its
    memory is freed with the object. Made by `array`, `empty`, `zeros` and `Module.symbol`.
    ``copy.copy(x)`` and ``copy.deepcopy(x)`` make an array with memory of its own on the same device;
    to pickle it, copy it back first.
    """

    _remedy = "pickle np.asarray(x) instead"

    @strictly_checked
    def __init__(
        self,
        device: Device,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        *,
        address: int | None = None,
    ) -> None:
        check_dtype("DeviceArray", dtype)
        shape = _as_shape(shape)
        self.device = device
        self.shape = shape
        self.dtype = dtype
        self.nbytes = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if self.nbytes >= 2**63:
            raise InputError(
                f"an array of shape {shown(shape)} has {shown(self.nbytes)} bytes; no device has"
            )
        self._owns = address is None
        self.address: int = device._core.allocate(self.nbytes) if address is None else address

    def __del__(self) -> None:
        if getattr(self, "_owns", False) and hasattr(self, "address"):
            self.device._core.free(self.address)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=object))

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def data_ptr(self) -> int:
        """Return `address`, by the name that tensors of PyTorch have for it.

        With `stride` it lets Triton's ``TensorDescriptor`` describe an array.
        """
        return self.address

    @overload
    def stride(self) -> tuple[int, ...]: ...
    @overload
    def stride(self, dim: int) -> int: ...
    @strictly_checked
    def stride(self, dim: int | None = None) -> tuple[int, ...] | int:
        """Return the elements from one index to the next along each dimension, as PyTorch does.

        With `dim`, along that one; negative ones count from the last.
        """
        steps = tuple(int(np.prod(self.shape[d + 1 :], dtype=object)) for d in range(self.ndim))
        if dim is None:
            return steps
        if not -self.ndim <= dim < self.ndim:
            raise InputError(f"stride: dim = {shown(dim)}: the array has {self.ndim} dimensions")
        return steps[dim]

    def zero_(self) -> DeviceArray:
        """Set all elements to zero and return the array, as PyTorch's tensors do.

        With `clone` and `copy_` it serves the hooks of Triton's autotuner.
        """
        if self.nbytes:
            self.device._core.fill(self.address, 0, self.nbytes)
        return self

    def clone(self) -> DeviceArray:
        """Return a copy on the device."""
        return copy.copy(self)

    @strictly_checked
    def copy_(self, source: DeviceArray) -> DeviceArray:
        """Overwrite all bytes with those of an array of this device, unwritten ones included.

        Raises
        ------
        InputError
            If it has another device or size.
        """
        if source.device is not self.device or source.nbytes != self.nbytes:
            raise InputError(
                f"copy_: got {source!r}; expected an array of {self.nbytes} bytes on this device"
            )
        restore(self, source)
        return self

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-dimensional array")
        return self.shape[0]

    @strictly_checked
    def copy_from(self, values: Any) -> DeviceArray:
        """Overwrite all elements and return the array.

        Raises
        ------
        InputError
            If the values do not have the array's shape or cannot become its type.
        """
        try:
            host = _as_array("copy_from", values).astype(
                self.dtype, casting="same_kind", copy=False
            )
        except (TypeError, ValueError) as error:
            raise InputError(f"copy_from: {error}") from None
        if host.shape != self.shape:
            raise InputError(f"copy_from: got shape {host.shape}, the array has {self.shape}")
        if self.nbytes:
            self.device._core.write(self.address, _as_bytes(host))
        return self

    def to_host(self) -> npt.NDArray[Any]:
        """Return a copy of the elements."""
        host = np.empty(self.shape, self.dtype)
        if self.nbytes:
            self.device._core.read(self.address, host.reshape(-1).view(np.uint8))
        return host

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("an array of the device can only be copied")
        host = self.to_host()
        return host if dtype is None else host.astype(dtype, copy=False)

    def __copy__(self) -> DeviceArray:
        result = DeviceArray(self.device, self.shape, self.dtype)
        if self.nbytes:
            self.device._core.copy(result.address, self.address, self.nbytes)
        return result

    def __deepcopy__(self, memo: dict[int, Any]) -> DeviceArray:
        return self.__copy__()

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, address={self.address:#x})"


def restore(array: DeviceArray, kept: DeviceArray) -> None:
    """Give an array the bytes of a copy of it; unwritten bytes become unwritten again."""
    if array.nbytes:
        array.device._core.copy(array.address, kept.address, array.nbytes)


def _as_bytes(host: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(host).reshape(-1).view(np.uint8)


def _as_array(what: str, values: Any) -> npt.NDArray[Any]:
    try:
        return np.asarray(values)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise InputError(
            f"{what}: the values do not make an array; rows have different lengths, say"
        ) from None


def _as_shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    sizes = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    return tuple(as_integer("shape", size, 0, 2**48) for size in sizes)


def check_dtype(what: str, dtype: np.dtype[Any]) -> None:
    """Raise `InputError` for types whose values a device cannot hold."""
    if dtype.hasobject or dtype.kind not in "biufcV":
        raise InputError(f"{what}: elements of type {dtype} have no layout in device memory")


@strictly_checked
def array(values: Any, device: Device | None = None) -> DeviceArray:
    """Copy an array to the device.

    Parameters
    ----------
    values
        A NumPy array or what becomes one; its type is kept.
    device
        Where to; the module's default device by default.

    Raises
    ------
    InputError
        If the elements have no layout in device memory, or the device is full.
    """
    return (device or default_device()).array(values)


@strictly_checked
def empty(
    shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32, device: Device | None = None
) -> DeviceArray:
    """Allocate an array whose elements a kernel must write before one reads them.

    Reading an element that nobody has written is an error of the launch.
    """
    return (device or default_device()).empty(shape, dtype)


@strictly_checked
def zeros(
    shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32, device: Device | None = None
) -> DeviceArray:
    """Allocate an array of zeros."""
    return (device or default_device()).zeros(shape, dtype)


# ---- textures ----
