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

from __future__ import annotations

import ctypes
import ctypes.util
import difflib
import functools
import importlib.util
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from warpstack import _core
from warpstack.arguments import as_integer, as_path, printable
from warpstack.checked import strictly_checked
from warpstack.cuda_headers import HEADERS
from warpstack.errors import InputError, not_one_of, shown, warn
from warpstack.input_file import MAX_SOURCE_BYTES, read_input
from warpstack.progress import progress_bar
from warpstack.storage import default_budget
from warpstack.trace import KernelTrace

__all__ = [
    "Device",
    "DeviceArray",
    "Kernel",
    "KernelWarning",
    "Module",
    "Texture",
    "array",
    "compile",
    "compilers",
    "default_device",
    "empty",
    "texture",
    "zeros",
]

#: Address space of a device; pages take memory when they are written.
DEFAULT_MEMORY_GIB = 16.0
#: Warp instructions after which a launch counts as endless.
DEFAULT_STEP_LIMIT = 10_000_000_000

_MOST = 2**32 - 1
_SOURCE_SUFFIXES = (".cu", ".cuh", ".ptx")


class KernelWarning(UserWarning):
    """A fault of a kernel after which its launch went on, since `on_fault` is "continue"."""


class _Handle:
    """Something of one device in this process, which is neither copied nor pickled."""

    _remedy = "make another one"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        # copy.copy, copy.deepcopy and pickle all ask here.
        raise InputError(
            f"a warpstack.cuda.{type(self).__name__} stands for a part of a device in this "
            f"process and can be neither copied nor pickled; {self._remedy}"
        )


class Device(_Handle):
    """A simulated device: memory at fixed addresses, and what kernels print.

    Addresses depend on the order of allocations alone, so the traces of a program are the same in
    every run. A new device starts afresh.

    Parameters
    ----------
    memory_gib
        Size of its memory, in GiB. Only what is written takes memory of this machine.
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
                f"memory_gib = {memory_gib}: this process cannot reserve so much address space"
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
        _check_dtype("array", host.dtype)
        return DeviceArray(self, host.shape, host.dtype).copy_from(host)

    @strictly_checked
    def empty(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32) -> DeviceArray:
        """Allocate an array that a kernel must write before it is read."""
        kind = np.dtype(dtype)
        _check_dtype("empty", kind)
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


def _print_to_stdout(text: str) -> None:
    sys.stdout.write(text)


@functools.cache
def default_device() -> Device:
    """Return the device of the functions of this module."""
    return Device()


class DeviceArray(_Handle):
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
        _check_dtype("DeviceArray", dtype)
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


def _check_dtype(what: str, dtype: np.dtype[Any]) -> None:
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

_ADDRESS_MODES = ("wrap", "clamp", "mirror", "border")  # in the order of cudaTextureAddressMode


class Texture(_Handle):
    """A texture object over an array of the device; pass it to a kernel. Made by `texture`."""

    _remedy = "make another one with warpstack.cuda.texture"

    @strictly_checked
    def __init__(self, source: DeviceArray, handle: int) -> None:
        self.source = source
        self.handle = as_integer("handle", handle, 0, 2**64 - 1)

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            self.source.device._core.remove_texture(self.handle)


@strictly_checked
def texture(
    source: DeviceArray,
    *,
    filter_mode: str = "point",
    address_mode: str = "clamp",
    normalized_coordinates: bool = False,
    normalized_read: bool = False,
    layered: bool = False,
    cube: bool = False,
) -> Texture:
    """Make a texture object over an array of the device.

    Parameters
    ----------
    source
        Texels in C order, of one to three dimensions (slices, rows, columns). Elements are 8-, 16-
        or 32-bit integers, half or single floats; a structured type of 2 or 4 equal fields makes
        texels of that many channels.
    filter_mode
        ``"point"`` or ``"linear"``.
    address_mode
        Outside the texture: ``"wrap"``, ``"clamp"``, ``"mirror"`` or ``"border"``.
    normalized_coordinates
        Coordinates run from 0 to 1.
    normalized_read
        Integers are read as floats of 0 to 1, or -1 to 1.
    layered
        The first of two or three dimensions counts layers.
    cube
        Each six layers are the faces of a cube: +x, -x, +y, -y, +z, -z.

    Raises
    ------
    InputError
        If the array cannot be a texture or a mode is unknown.
    """
    if not 1 <= source.ndim <= 3:
        raise InputError(f"texture: {source.ndim} dimensions, expected 1 to 3")
    if (layered or cube) and source.ndim == 1:
        raise InputError("texture: an array of one dimension has no layers")
    if cube and (source.ndim != 3 or source.shape[0] % 6 or source.shape[1] != source.shape[2]):
        raise InputError(f"texture: {source.shape} is not the shape of cubes, (6 n, size, size)")
    if filter_mode not in ("point", "linear"):
        raise not_one_of("texture: filter_mode", filter_mode, ("point", "linear"))
    if address_mode not in _ADDRESS_MODES:
        raise not_one_of("texture: address_mode", address_mode, _ADDRESS_MODES)
    channel, channels = source.dtype, 1
    if source.dtype.fields:
        kinds = {field[0] for field in source.dtype.fields.values()}
        if len(kinds) != 1:
            raise InputError("texture: the fields of its elements have different types")
        channel, channels = kinds.pop(), len(source.dtype.fields)
    kinds_of = {"i": 0, "u": 1, "f": 2}
    if channel.kind not in kinds_of or channel.itemsize > 4 or channels not in (1, 2, 4):
        raise InputError(f"texture: elements of type {source.dtype} cannot be texels")
    layers = source.shape[0] if layered or cube else 0
    shape = source.shape[1:] if layers else source.shape
    columns, rows, slices = (*reversed(shape), 1, 1)[:3]
    row_bytes = columns * source.dtype.itemsize
    mode = _ADDRESS_MODES.index(address_mode)
    handle = source.device._core.add_texture(
        {
            "address": source.address,
            "dimensions": len(shape),
            "size": [columns, rows, slices],
            "row_bytes": row_bytes,
            "slice_bytes": row_bytes * rows,
            "layers": layers,
            "cube": bool(cube),
            "format": kinds_of[channel.kind],
            "channels": channels,
            "channel_bytes": channel.itemsize,
            "address_mode": [mode] * 3,
            "linear_filter": filter_mode == "linear",
            "normalized_coordinates": bool(normalized_coordinates),
            "normalized_read": bool(normalized_read),
        }
    )
    return Texture(source, handle)


# ---- modules and kernels ----


def _plain(name: str) -> str:
    """Return a name for messages as it is, or shortened where it is not like one."""
    return name if re.fullmatch(r"[\w$%.]{1,200}", name) else shown(name)


class Module(_Handle):
    """A compiled CUDA source or PTX file on a device. Made by `compile`."""

    _remedy = "pickle its text, Module.ptx, and compile that again"

    @strictly_checked
    def __init__(self, text: str, file: str, device: Device) -> None:
        self.ptx = text
        self.file = file
        self.device = device
        self._text = _core.PtxModule(text, file)
        self._core = _core.PtxLoadedModule(self._text, device._core)

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels, as in the PTX (mangled unless ``extern "C"``)."""
        return tuple(self._text.kernels)

    @property
    def target(self) -> str:
        """What the PTX was made for, for example ``sm_75``."""
        return self._text.target

    @strictly_checked
    def kernel(self, name: str) -> Kernel:
        """Return a kernel by its name in the PTX or in the source.

        Raises
        ------
        InputError
            If there is no such kernel, if several overloads have this name, or if it contains an
            instruction that cannot be simulated: the message names it and its line.
        """
        return Kernel(self, self._resolve(name))

    def _resolve(self, name: str) -> str:
        names = self.kernels
        if name in names:
            return name
        sought = f"{len(name)}{name}"
        found = [
            mangled
            for mangled in names
            if re.match(rf"_ZN?(?:\d+\w+?)*?{re.escape(sought)}(?![a-z_]*\d*_\b)", mangled)
        ]
        if len(found) == 1:
            return found[0]
        if found:
            raise InputError(
                f"{self.file}: {len(found)} kernels are called {shown(name)}: {', '.join(found)}; "
                "use one of these names"
            )
        near = difflib.get_close_matches(name[:200], names, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        listed = ", ".join(names) if names else "none"
        raise InputError(
            f"{self.file}: there is no kernel {_plain(name)}{hint} (kernels: {listed})"
        )

    @strictly_checked
    def symbol(self, name: str, dtype: npt.DTypeLike) -> DeviceArray:
        """Return a ``__device__`` or ``__constant__`` variable as an array of one dimension.

        Raises
        ------
        InputError
            If there is no such variable or its size is no multiple of the type's.
        """
        kind = np.dtype(dtype)
        _check_dtype("symbol", kind)
        address, size = self._core.symbol(_plain(name))
        if kind.itemsize == 0 or size % kind.itemsize:
            raise InputError(f"{name} has {size} bytes, no multiple of {kind}'s {kind.itemsize}")
        result = DeviceArray(self.device, (size // kind.itemsize,), kind, address=address)
        result._module = self  # type: ignore[attr-defined]  # keeps the memory
        return result

    @strictly_checked
    def bind_texture(self, name: str, source: Texture) -> None:
        """Bind a texture reference (a ``texture<>`` variable of older sources)."""
        self._core.bind_texture(_plain(name), source.handle)

    def __repr__(self) -> str:
        return f"Module({self.file!r}, kernels={list(self.kernels)})"


class Kernel(_Handle):
    """A kernel of a module. Made by `Module.kernel`."""

    _remedy = "ask Module.kernel for another one, or pickle Module.ptx"

    @strictly_checked
    def __init__(self, module: Module, name: str) -> None:
        self.module = module
        self.name = name
        self._parameters = module._text.parameters(_plain(name))
        self._facts = module._core.prepare(_plain(name))

    @property
    def registers_per_thread(self) -> int:
        """Registers that are live at once in the PTX, at least 16.

        An estimate: the machine code that a GPU runs may use more or fewer.
        """
        return int(self._facts["registers_per_thread"])

    @property
    def shared_memory_bytes(self) -> int:
        """Static shared memory of a block, in bytes."""
        return int(self._facts["shared_memory_bytes"])

    @property
    def local_memory_bytes(self) -> int:
        """Local memory of a thread, in bytes."""
        return int(self._facts["local_memory_bytes"])

    @strictly_checked
    def launch(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        *arguments: Any,
        shared_memory_bytes: int = 0,
        trace: bool = True,
        step_limit: int = DEFAULT_STEP_LIMIT,
        check_uninitialized: bool = True,
        on_fault: str = "stop",
        check_races: bool = False,
        cooperative: bool = False,
        registers_per_thread: int | None = None,
        progress: bool = False,
    ) -> KernelTrace | None:
        """Run the kernel to its end and return its trace.

        Parameters
        ----------
        grid, block
            Thread blocks of the grid and threads of a block: a number, or up to three.
        *arguments
            The kernel's parameters: `DeviceArray` for pointers (``None``: a null pointer), `Texture`
            for texture objects, numbers of Python or NumPy for numbers, bytes or a structured NumPy
            scalar for structures.
        shared_memory_bytes
            Dynamic shared memory of a block.
        trace
            Without it the kernel runs faster and None is returned.
        step_limit
            Warp instructions after which the launch is abandoned as endless.
        check_uninitialized
            Reading memory that nobody has written is an error.
        on_fault
            "stop": every fault of the kernel is an error. "continue": those that a GPU may let pass
            (accesses out of bounds or of memory that nobody has written, divergent barriers, wrong
            masks of ``_sync`` operations, races) are `KernelWarning`, one for each kind and source
            line of a launch, and the kernel goes on as it does on a GPU.
        check_races
            Two accesses of different warps of a block to one address of shared or global memory,
            one of them a write, without a barrier between them are a fault that names both lines.
        cooperative
            All blocks are resident at once and take turns, so that the kernel may synchronize its
            grid (`cudaLaunchCooperativeKernel`).
        registers_per_thread
            What the trace says, for occupancy; by default an estimate from the PTX.
        progress
            Show a progress bar on a terminal.

        Raises
        ------
        InputError
            If an argument does not fit its parameter, the launch is impossible, or the kernel fails:
            an out-of-bounds, misaligned or uninitialised access, a divergent barrier, a deadlock, a
            failed assertion. The message names the source line, block, thread and address. What the
            kernel wrote before stays written.
        """
        if on_fault not in ("stop", "continue"):
            raise not_one_of("on_fault", on_fault, ("stop", "continue"))
        parameters = self._pack(arguments)
        device = self.module.device
        sizes = [_as_dim3("grid", grid), _as_dim3("block", block)]
        registers = 0
        if registers_per_thread is not None:
            registers = as_integer("registers_per_thread", registers_per_thread, 1, 255)
        num_blocks = sizes[0][0] * sizes[0][1] * sizes[0][2]
        notes: list[str] = []

        def tell() -> None:
            for note in notes:
                warn(note, KernelWarning)

        with progress_bar(progress, num_blocks, self.name, " blocks") as bar:
            done = 0

            def advance(blocks: int, _all: int) -> None:
                nonlocal done
                bar.update(blocks - done)
                done = blocks

            try:
                core, *_ = self.module._core.launch(
                    self.name,
                    parameters,
                    sizes[0],
                    sizes[1],
                    as_integer("shared_memory_bytes", shared_memory_bytes, 0, _MOST),
                    bool(trace),
                    as_integer("step_limit", step_limit, 1, 2**63),
                    bool(check_uninitialized),
                    on_fault == "continue",
                    bool(check_races),
                    bool(cooperative),
                    registers,
                    device.next_launch(),
                    default_budget(),
                    advance if progress else None,
                    notes,
                )
            except InputError as error:
                try:
                    tell()  # what may have led to the error
                except KernelWarning as note:  # where warnings are errors
                    raise error from note
                raise
        tell()
        return None if core is None else KernelTrace(core)

    def _pack(self, arguments: Sequence[Any]) -> bytes:
        if len(arguments) != len(self._parameters):
            raise InputError(
                f"kernel {self.name} has {len(self._parameters)} parameters, "
                f"{len(arguments)} are given"
            )
        buffer = bytearray()
        for number, (parameter, value) in enumerate(zip(self._parameters, arguments, strict=True)):
            buffer.extend(b"\0" * (parameter["offset"] - len(buffer)))
            packed = _pack_argument(f"kernel {self.name}, argument {number + 1}", parameter, value)
            if isinstance(value, (DeviceArray, Texture)):
                owner = value.device if isinstance(value, DeviceArray) else value.source.device
                if owner is not self.module.device:
                    raise InputError(
                        f"kernel {self.name}, argument {number + 1}: it is on another device"
                    )
            buffer.extend(packed)
        return bytes(buffer)

    def __repr__(self) -> str:
        return f"Kernel({self.name!r})"


_INTEGERS = frozenset({"pred", *(f"{kind}{bits}" for kind in "usb" for bits in (8, 16, 32, 64))})
_FLOATS = {"f16": "e", "f32": "f", "f64": "d"}


def _pack_argument(what: str, parameter: dict[str, Any], value: Any) -> bytes:
    """Return the bytes of one argument, or say why it does not fit."""
    kind, size = parameter["type"], parameter["bytes"]
    if parameter["is_array"]:  # a structure by value
        data = value if isinstance(value, (bytes, bytearray)) else None
        if isinstance(value, (np.void, np.ndarray)):
            data = np.asarray(value).tobytes()
        if data is None or len(data) != size:
            got = f"{len(data)} bytes" if data is not None else type(value).__name__
            raise InputError(
                f"{what}: a structure of {size} bytes is needed (bytes or a structured NumPy "
                f"scalar), got {got}"
            )
        return bytes(data)
    if isinstance(value, (DeviceArray, Texture)) or value is None:
        if size != 8 or kind in _FLOATS:
            raise InputError(f"{what}: got a pointer for a number of type {kind}")
        if value is None:
            return bytes(8)
        return struct.pack("<Q", value.address if isinstance(value, DeviceArray) else value.handle)
    if isinstance(value, np.ndarray) and value.ndim > 0:
        raise InputError(
            f"{what}: got a NumPy array; copy it to the device first: warpstack.cuda.array(x)"
        )
    if kind in _FLOATS:
        if isinstance(value, np.generic) and value.dtype.itemsize != size:
            raise InputError(f"{what}: the parameter is {kind}, got a {value.dtype}")
        try:
            return struct.pack(f"<{_FLOATS[kind]}", float(value))
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{what}: {shown(value)} is no {kind}: {error}") from None
    if kind not in _INTEGERS:
        raise InputError(f"{what}: parameters of type {kind} are not supported")
    if isinstance(value, np.generic):
        if value.dtype.itemsize != size or (value.dtype.kind == "f" and kind[0] != "b"):
            raise InputError(f"{what}: the parameter is {kind}, got a {value.dtype}")
        return bytes(value.tobytes())
    bits = 8 * size
    if isinstance(value, (bool, int)):
        number = int(value)
    else:
        number = as_integer(what, value, -(2 ** (bits - 1)), 2**bits - 1)
    if not -(2 ** (bits - 1)) <= number < 2**bits:
        raise InputError(f"{what}: {shown(number)} does not fit the parameter of type {kind}")
    return int(number % 2**bits).to_bytes(size, "little")


def _as_dim3(what: str, value: int | Sequence[int]) -> tuple[int, int, int]:
    sizes: Sequence[Any] = (value,) if isinstance(value, (int, np.integer)) else tuple(value)
    if not 1 <= len(sizes) <= 3:
        raise InputError(f"{what} = {shown(value)}: expected one to three numbers")
    x, y, z = (*(as_integer(what, size, 1, _MOST) for size in sizes), 1, 1)[:3]
    return (x, y, z)


# ---- compiling ----


@strictly_checked
def compile(
    source: str | os.PathLike[str],
    *,
    arch: str = "sm_75",
    options: Sequence[str] = (),
    compiler: str | None = None,
    device: Device | None = None,
) -> Module:
    """Compile CUDA C++ for the simulated device, or load ready PTX.

    Parameters
    ----------
    source
        CUDA C++ or PTX: a path ending in ``.cu`` or ``.ptx``, or the text itself.
    arch
        What to compile for, ``sm_75`` or later as far as the compiler goes.
    options
        More options of the compiler, such as ``-DN=4`` or ``-I<folder>``.
    compiler
        ``"nvrtc"`` (NVIDIA's run-time compiler; the extra ``warpstack[cuda]`` installs it), ``"nvcc"``
        (of an installed CUDA toolkit), or None: the first of them that is there.
    device
        Where the module's variables live; the default device by default.

    Raises
    ------
    InputError
        If the file cannot be read, no compiler is found, the source has an error (the compiler's
        messages follow), or the PTX cannot be read.
    """
    text, file = _read_source(source)
    if not _is_ptx(text):
        text = _compile_text(text, file, arch, tuple(options), compiler)
    return Module(text, file, device or default_device())


def _read_source(source: str | os.PathLike[str]) -> tuple[str, str]:
    is_text = isinstance(source, str) and (
        "\n" in source or "{" in source or not source.endswith(_SOURCE_SUFFIXES)
    )
    if is_text:
        text = str(source)
        if not text.strip():
            raise InputError("compile: the source is empty")
        if "\n" not in text and "{" not in text and ";" not in text:
            raise InputError(
                f"compile: {shown(text)} is neither source text nor a path that ends in "
                f"{', '.join(_SOURCE_SUFFIXES)}"
            )
        return text, "<source>"
    path = as_path("compile", source)
    try:
        data = read_input(path, "source", MAX_SOURCE_BYTES)
        text = data.decode("utf-8", "replace")
        return text.replace("\r\n", "\n").replace("\r", "\n"), printable(path)
    except OSError as error:
        raise InputError(f"{printable(path)}: {error.strerror or error}") from None


def _is_ptx(text: str) -> bool:
    bare = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL).lstrip("\0 \t\r\n")
    return bare.startswith(".version")


def _compile_text(
    text: str, file: str, arch: str, options: tuple[str, ...], compiler: str | None
) -> str:
    if re.fullmatch(r"(sm|compute)_\d+[a-z]?", arch) is None:
        raise InputError(f"compile: arch = {shown(arch)} is not like sm_75")
    if compiler not in (None, "nvrtc", "nvcc"):
        raise not_one_of("compile: compiler", compiler, ("nvrtc", "nvcc"))
    arch = arch.replace("sm_", "compute_")
    if compiler != "nvcc":
        library = _find_nvrtc()
        if library is not None:
            return _compile_with_nvrtc(library, text, file, arch, options)
        if compiler == "nvrtc":
            raise InputError(_NO_COMPILER.format(what="NVRTC is not"))
    nvcc = _find_nvcc()
    if nvcc is None:
        raise InputError(_NO_COMPILER.format(what="no CUDA compiler is"))
    return _compile_with_nvcc(nvcc, text, file, arch, options)


_NO_COMPILER = (
    "compile: {what} found; install NVIDIA's run-time compiler with: pip install 'warpstack[cuda]' "
    "(or put nvcc on the PATH, or pass ready PTX)"
)


def compilers() -> list[str]:
    """Return which of the compilers of `compile` are there, in the order in which it looks."""
    found = {"nvrtc": _find_nvrtc(), "nvcc": _find_nvcc()}
    return [name for name, place in found.items() if place is not None]


def _find_nvcc() -> str | None:
    return shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")


def _nvidia_packages() -> Iterator[Path]:
    """Folders that NVIDIA's packages from PyPI have installed."""
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or ()) if spec is not None else ():
        yield from sorted(Path(root).iterdir(), reverse=True)


@functools.cache
def _find_nvrtc() -> ctypes.CDLL | None:
    candidates = [
        str(library)
        for package in _nvidia_packages()
        for library in sorted((package / "lib").glob("libnvrtc.so.*"))
        if "builtins" not in library.name and "alt" not in library.name
    ]
    toolkit = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "lib64" / "libnvrtc.so"
    candidates.append(str(toolkit))
    system = ctypes.util.find_library("nvrtc")
    if system:
        candidates.append(system)
    for candidate in candidates:
        try:
            return ctypes.CDLL(candidate)
        except OSError:
            continue
    return None


def _include_folders() -> list[str]:
    """Return where the headers of CUDA are, for sources that include some."""
    folders = [package / "include" for package in _nvidia_packages()]
    folders.append(Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include")
    return [str(folder) for folder in folders if (folder / "cuda_runtime.h").exists()]


def _compile_with_nvrtc(
    library: ctypes.CDLL, text: str, file: str, arch: str, options: tuple[str, ...]
) -> str:
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    program = ctypes.c_void_p()

    def check(code: int) -> None:
        if code != 0:
            message = library.nvrtcGetErrorString(code).decode()
            raise InputError(f"{file}: NVRTC: {message}")

    def text_of(kind: str) -> str:
        size = ctypes.c_size_t()
        check(getattr(library, f"nvrtcGet{kind}Size")(program, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(size.value)
        check(getattr(library, f"nvrtcGet{kind}")(program, buffer))
        return buffer.value.decode("utf-8", "replace")

    name = "source.cu" if file.startswith("<") else Path(file).name
    texts = (ctypes.c_char_p * len(HEADERS))(*(header.encode() for header in HEADERS.values()))
    names = (ctypes.c_char_p * len(HEADERS))(*(header.encode() for header in HEADERS))
    check(
        library.nvrtcCreateProgram(
            ctypes.byref(program), text.encode(), name.encode(), len(HEADERS), texts, names
        )
    )
    try:
        all_options = [f"--gpu-architecture={arch}", "-lineinfo", "--std=c++17", *options]
        all_options += [f"-I{folder}" for folder in _include_folders()]
        if not file.startswith("<"):
            all_options.append(f"-I{Path(file).resolve().parent}")
        encoded = (ctypes.c_char_p * len(all_options))(*(o.encode() for o in all_options))
        code = library.nvrtcCompileProgram(program, len(all_options), encoded)
        if code != 0:
            log = text_of("ProgramLog").strip()
            raise InputError(f"{file}: the CUDA source does not compile:\n{log}")
        return text_of("PTX")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _compile_with_nvcc(nvcc: str, text: str, file: str, arch: str, options: tuple[str, ...]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        name = "source.cu" if file.startswith("<") else Path(file).name
        source = Path(folder) / name
        source.write_text(text, encoding="utf-8")
        target = Path(folder) / "module.ptx"
        command = [nvcc, "-ptx", "-O3", f"-arch={arch}", "-lineinfo", *options, name, "-o"]
        if not file.startswith("<"):
            command[1:1] = ["-I", str(Path(file).resolve().parent)]
        result = subprocess.run(
            [*command, str(target)], capture_output=True, text=True, cwd=folder, check=False
        )
        if result.returncode != 0:
            log = (result.stderr or result.stdout).strip()
            raise InputError(f"{file}: the CUDA source does not compile:\n{log}")
        return target.read_text(encoding="utf-8")
