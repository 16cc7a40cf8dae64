"""Kernels written for Numba, compiled and run without a GPU.

Examples
--------
>>> import numpy as np
>>> import warpstack as ws
>>> from numba import cuda  # doctest: +SKIP
>>> @cuda.jit
... def double(x):
...     i = cuda.grid(1)
...     if i < x.size:
...         x[i] *= 2  # doctest: +SKIP
>>> x = ws.cuda.array(np.arange(1000, dtype=np.float32))
>>> trace = ws.numba.launch(double, 4, 256, x)  # doctest: +SKIP
>>> np.asarray(x)[:3]  # doctest: +SKIP
array([0., 2., 4.], dtype=float32)
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from warpstack._util.checked import strictly_checked
from warpstack._util.handle import Handle
from warpstack.cuda.device import Device, DeviceArray, device_of
from warpstack.cuda.kernel import DEFAULT_STEP_LIMIT
from warpstack.cuda.machine_code import load_kernel
from warpstack.cuda.numba_front_end import (
    argument_types,
    compile_function,
    python_function,
    signature_types,
)
from warpstack.cuda.toolchain import target_number
from warpstack.errors import InputError, shown
from warpstack.traces.trace import KernelTrace

__all__ = ["NumbaKernel", "compile", "launch"]

#: PTX that `launch` has compiled, by function: by types, target and options.
_compiled: weakref.WeakKeyDictionary[Any, dict[tuple[Any, ...], str]]
_compiled = weakref.WeakKeyDictionary()


class NumbaKernel(Handle):
    """A function compiled with Numba for arguments of some types. Made by `compile`."""

    _remedy = "compile the function again"

    @strictly_checked
    def __init__(
        self,
        name: str,
        ptx: str,
        types: tuple[Any, ...],
        device: Device,
        target: str,
        machine_code: bool | None = None,
    ) -> None:
        self.name = name
        self.ptx = ptx
        self.types = types
        self.device = device
        self._loaded = load_kernel("ws.numba", name, ptx, target, device, machine_code)
        self._kernel = self._loaded.kernel
        self._cooperative = "cudaCGSynchronize" in ptx

    @property
    def code(self) -> str:
        """What runs: the architecture of the machine code, ``sm_80``, say, or ``ptx``."""
        return self._loaded.code

    @property
    def why_ptx(self) -> str:
        """Why PTX runs; empty where machine code does."""
        return self._loaded.why_ptx

    @property
    def registers_per_thread(self) -> int:
        """Registers of a thread, for PTX an estimate."""
        return self._kernel.registers_per_thread

    @property
    def shared_memory_bytes(self) -> int:
        """Static shared memory of a block, in bytes."""
        return self._kernel.shared_memory_bytes

    @strictly_checked
    def launch(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        *args: Any,
        shared_memory_bytes: int = 0,
        trace: bool = True,
        sample_blocks: int | str = 1,
        run_others: bool = True,
        step_limit: int = DEFAULT_STEP_LIMIT,
        check_uninitialized: bool = True,
        on_fault: str = "stop",
        check_races: bool = False,
        cooperative: bool = False,
        order: str | None = None,
        registers_per_thread: int | None = None,
        progress: bool = False,
    ) -> KernelTrace | None:
        """Run the kernel to its end and return its trace.

        Parameters
        ----------
        grid, block
            Thread blocks of the grid and threads of a block: a number, or up to three.
        *args
            The function's arguments: `DeviceArray` for arrays, numbers of Python or NumPy, tuples.
        shared_memory_bytes
            Dynamic shared memory of a block (``cuda.shared.array(0, ...)``).
        trace, sample_blocks, run_others, step_limit, check_uninitialized, on_fault
            As for `warpstack.cuda.Kernel.launch`.
        check_races, order, registers_per_thread, progress
            As for `warpstack.cuda.Kernel.launch`.
        cooperative
            All blocks are resident at once; kernels that synchronize their grid are launched so anyway.

        Raises
        ------
        InputError
            If an argument does not have its type, the launch is impossible, or the kernel fails.
        """
        if len(args) != len(self.types):
            raise InputError(
                f"kernel {self.name} has {len(self.types)} parameters, {len(args)} are given"
            )
        values: list[Any] = []
        for number, (kind, value) in enumerate(zip(self.types, args, strict=True)):
            values += _parameters(f"kernel {self.name}, argument {number + 1}", kind, value)
        return self._kernel.launch(
            grid,
            block,
            *values,
            shared_memory_bytes=shared_memory_bytes,
            trace=trace,
            sample_blocks=sample_blocks,
            run_others=run_others,
            step_limit=step_limit,
            check_uninitialized=check_uninitialized,
            on_fault=on_fault,
            check_races=check_races,
            cooperative=cooperative or self._cooperative,
            order=order,
            registers_per_thread=registers_per_thread,
            progress=progress,
        )

    def __repr__(self) -> str:
        return f"NumbaKernel({self.name!r}, ({', '.join(map(str, self.types))}))"


def _parameters(what: str, kind: Any, value: Any) -> Iterator[Any]:
    """Yield what the PTX of a kernel takes for one argument of its function.

    An array is passed as in Numba: two pointers that are null here (its reference count and the
    object that it belongs to), the number of elements and their bytes, the address, the shape, and
    the strides in bytes.
    """
    name = type(kind).__name__
    if name == "Array":
        if not isinstance(value, DeviceArray):
            raise InputError(
                f"{what}: got {shown(value)} for {kind}; copy an array to the device: "
                "warpstack.cuda.array(x)"
            )
        if value.ndim != kind.ndim or argument_types(what, [value])[0].dtype != kind.dtype:
            raise InputError(f"{what}: got {value.dtype} of shape {value.shape} for {kind}")
        bytes_of_element = value.dtype.itemsize
        yield from (None, None, value.size, bytes_of_element, value, *value.shape)
        strides = [bytes_of_element]
        for size in reversed(value.shape[1:]):
            strides.insert(0, strides[0] * size)
        yield from strides[: value.ndim]
    elif name in ("UniTuple", "Tuple"):
        parts = list(kind)
        if not isinstance(value, (tuple, list)) or len(value) != len(parts):
            raise InputError(f"{what}: got {shown(value)} for {kind}")
        for part, one in zip(parts, value, strict=True):
            yield from _parameters(what, part, one)
    elif name in ("Integer", "IntegerLiteral", "Float", "Boolean", "Complex"):
        number = _number(what, kind, value)
        yield from (number.real, number.imag) if name == "Complex" else (number,)
    else:
        raise InputError(f"{what}: arguments of Numba's type {kind} do not run")


def _number(what: str, kind: Any, value: Any) -> Any:
    """Return a number as the type that the kernel was compiled for."""
    dtype = np.dtype("?" if str(kind) in ("bool", "boolean") else str(kind))
    try:
        if isinstance(value, (DeviceArray, np.ndarray, str, bytes)):
            raise TypeError
        result = dtype.type(value)
        if dtype.kind in "iu" and result != value:
            raise OverflowError
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what}: got {shown(value)} for {kind}") from None
    return np.uint8(result) if dtype.kind == "b" else result


@strictly_checked
def compile(
    kernel: Any,
    *args: Any,
    signature: Any = None,
    target: str = "sm_80",
    device: Device | None = None,
    machine_code: bool | None = None,
) -> NumbaKernel:
    """Compile a function with Numba for the types of arguments.

    Parameters
    ----------
    kernel
        A function, plain or decorated with ``numba.cuda.jit``. ``fastmath`` and
        ``launch_bounds`` are used of the decorator's options. A decorator with a signature compiles at once,
        for which Numba wants a GPU: leave the signature out and give it here.
    *args
        Arguments of a call, for their types: `DeviceArray` for arrays, numbers of Python (64 bits) or
        NumPy, tuples.
    signature
        Instead of `args`: ``"void(float32[::1], int32)"``, or types of Numba.
    target
        The GPU's architecture.
    device
        Where the kernel runs; that of the arrays, or the default device.
    machine_code
        Run the machine code that ptxas makes, as a GPU does, or the PTX. None: the machine
        code where every instruction of it is executed, else the PTX; `NumbaKernel.code` says which.

    Raises
    ------
    InputError
        If Numba for CUDA is not installed, there are both `args` and a `signature`, the function does
        not compile, its PTX has an instruction that is not executed, or, with `machine_code`, its
        machine code has one or cannot be made.
    """
    what = "ws.numba.compile"
    number = target_number(f"{what}: target", target)
    function, options = python_function(what, kernel)
    if signature is not None and args:
        raise InputError(f"{what}: give arguments or a signature, not both")
    types = argument_types(what, args) if signature is None else signature_types(what, signature)
    ptx = compile_function(what, function, options, types, number)
    where = device or device_of(args)
    return NumbaKernel(function.__name__, ptx, types, where, target, machine_code)


@strictly_checked
def launch(
    kernel: Any,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    *args: Any,
    signature: Any = None,
    target: str = "sm_80",
    shared_memory_bytes: int = 0,
    trace: bool = True,
    sample_blocks: int | str = 1,
    run_others: bool = True,
    order: str | None = None,
    machine_code: bool | None = None,
) -> KernelTrace | None:
    """Compile a kernel with Numba, run it without a GPU, and return its trace.

    What ``kernel[grid, block](*args)`` does on a GPU; read results back with ``np.asarray``. A
    function is compiled once for arguments of the same types.

    Parameters
    ----------
    kernel, signature, target, machine_code
        As for `compile`; `signature` if the types are not those of the arguments.
    grid, block
        Thread blocks of the grid and threads of a block: a number, or up to three.
    *args
        The function's arguments: `DeviceArray` for arrays, numbers of Python or NumPy, tuples.
    shared_memory_bytes
        Dynamic shared memory of a block (``cuda.shared.array(0, ...)``).
    trace
        Whether to trace; without a trace the kernel runs faster and None is returned.
    sample_blocks, run_others, order
        How many thread blocks are recorded, whether the others run, and in which order: as for
        `warpstack.cuda.Kernel.launch`.

    Returns
    -------
    KernelTrace
        The trace; `KernelTrace.code` says whether of machine code or PTX. `compile` gives more options
        of the launch.

    Raises
    ------
    InputError
        As for `compile`; or if the launch is impossible, or the kernel fails.
    """
    what = "ws.numba.launch"
    number = target_number(f"{what}: target", target)
    function, options = python_function(what, kernel)
    given = argument_types(what, args) if signature is None else signature_types(what, signature)
    known = _compiled.setdefault(function, {})
    key = (given, number, *sorted(options.items()))
    if key not in known:
        known[key] = compile_function(what, function, options, given, number)
    made = NumbaKernel(function.__name__, known[key], given, device_of(args), target, machine_code)
    return made.launch(
        grid,
        block,
        *args,
        shared_memory_bytes=shared_memory_bytes,
        trace=trace,
        sample_blocks=sample_blocks,
        run_others=run_others,
        order=order,
    )
