"""Kernels written in Triton, compiled and run without a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from warpstack._util.arguments import as_integer
from warpstack._util.checked import strictly_checked
from warpstack._util.handle import Handle
from warpstack.cuda.device import Device, DeviceArray, device_of
from warpstack.cuda.host_tensors import HostTensors
from warpstack.cuda.kernel import DEFAULT_STEP_LIMIT
from warpstack.cuda.machine_code import load_kernel
from warpstack.cuda.triton_descriptors import TENSOR_MAP, arrays_of
from warpstack.cuda.triton_front_end import Compiled, compile_function
from warpstack.errors import InputError, shown
from warpstack.traces.trace import KernelTrace

#: Blocks of the grid: as in Triton, also as a function of the arguments by name.
Grid = int | Sequence[int] | Callable[[dict[str, Any]], Any]

#: Types of numbers as Triton writes them, and those of NumPy in which they reach the kernel.
_NUMBERS = {
    **{f"i{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": np.dtype(f"u{bits // 8}") for bits in (8, 16, 32, 64)},
    "i1": np.dtype("u1"),
    "u1": np.dtype("u1"),
    "fp16": np.dtype("f2"),
    "fp32": np.dtype("f4"),
    "fp64": np.dtype("f8"),
}


class TritonKernel(Handle):
    """A Triton kernel compiled for the arguments of a call. Made by `compile`."""

    _remedy = "compile the function again"

    @strictly_checked
    def __init__(
        self,
        compiled: Compiled,
        device: Device,
        machine_code: bool | None = None,
        *,
        host: HostTensors | None = None,
    ) -> None:
        self._compiled = compiled
        self.device = device
        self._host = host
        self._loaded = load_kernel(
            "ws.triton",
            compiled.name,
            compiled.ptx,
            compiled.target,
            device,
            machine_code,
            compiled.cubin,
        )
        self._kernel = self._loaded.kernel
        values = [_as_parameter(compiled.name, *one) for one in compiled.arguments]
        for number, parameter in enumerate(self._kernel._parameters[: len(values)]):
            if parameter["is_array"] and isinstance(values[number], np.generic):
                values[number] = values[number].tobytes()  # a half is a structure of two bytes
        self._values = values

    @property
    def name(self) -> str:
        """Name of the kernel in the PTX."""
        return self._compiled.name

    @property
    def target(self) -> str:
        """The target that it was compiled for, for example ``sm_80``."""
        return self._compiled.target

    @property
    def ptx(self) -> str:
        """The PTX."""
        return self._compiled.ptx

    @property
    def cubin(self) -> bytes:
        """The machine code that ptxas made of the PTX; see `warpstack.cuda.load_cubin`."""
        return self._compiled.cubin

    @property
    def code(self) -> str:
        """What runs: the architecture of the machine code, ``sm_80``, say, or ``ptx``."""
        return self._loaded.code

    @property
    def why_ptx(self) -> str:
        """Why PTX runs; empty where machine code does."""
        return self._loaded.why_ptx

    @property
    def num_warps(self) -> int:
        """Warps of a block."""
        return self._compiled.num_warps

    @property
    def num_stages(self) -> int:
        """Stages of the software pipeline of loops."""
        return self._compiled.num_stages

    @property
    def num_ctas(self) -> int:
        """Blocks of a cluster, which work on one program of the grid together."""
        return self._compiled.num_ctas

    @property
    def registers_per_thread(self) -> int:
        """Registers of a thread in the machine code."""
        return self._compiled.registers_per_thread

    @property
    def shared_memory_bytes(self) -> int:
        """Shared memory of a block, in bytes."""
        return self._compiled.shared_memory_bytes + self._kernel.shared_memory_bytes

    @strictly_checked
    def launch(
        self,
        grid: Grid,
        *,
        trace: bool = True,
        sample_blocks: int | str = 1,
        run_others: bool = True,
        step_limit: int = DEFAULT_STEP_LIMIT,
        check_uninitialized: bool = True,
        on_fault: str = "stop",
        check_races: bool = False,
        order: str | None = None,
        progress: bool = False,
    ) -> KernelTrace | None:
        """Run the kernel on its arguments and return its trace.

        Parameters
        ----------
        grid
            Programs: a number, up to three, or a function of the arguments by name, as in
            ``lambda meta: (triton.cdiv(n, meta["BLOCK"]),)``. Each is a thread block, or, with
            ``num_ctas``, as many of them as a cluster has, side by side along x.
        trace, sample_blocks, run_others, step_limit, check_uninitialized, on_fault
            As for `warpstack.cuda.Kernel.launch`.
        check_races, order, progress
            As for `warpstack.cuda.Kernel.launch`.

        Raises
        ------
        InputError
            If the launch is impossible, or the kernel fails.
        """
        options: dict[str, Any] = {
            "trace": trace,
            "sample_blocks": sample_blocks,
            "run_others": run_others,
            "step_limit": step_limit,
            "check_uninitialized": check_uninitialized,
            "on_fault": on_fault,
            "check_races": check_races,
            "order": order,
            "progress": progress,
        }
        if self._host is None:
            return self._run(grid, options)
        self._host.copy_in()
        try:
            return self._run(grid, options)
        finally:
            self._host.copy_out()

    def _run(self, grid: Grid, options: Mapping[str, Any]) -> KernelTrace | None:
        """Launch with options of `launch`, and leave tensors of the host as they are."""
        made = self._compiled
        blocks = grid
        if callable(grid):
            meta = dict(made.meta)
            if self._host is not None:
                meta = {name: self._host.given(value) for name, value in meta.items()}
            blocks = grid(meta)
        sizes = _grid_sizes(blocks)
        if made.num_ctas > 1:
            sizes = (as_integer("grid dim x", sizes[0], 1, 2**31 - 1) * made.num_ctas, *sizes[1:])
        return self._kernel.launch(
            sizes,
            32 * made.num_warps,
            *self._values,
            *self._scratch(sizes),
            cluster=made.num_ctas if made.num_ctas > 1 else None,  # machine code does not say it
            shared_memory_bytes=made.shared_memory_bytes,
            cooperative=made.cooperative,
            registers_per_thread=made.registers_per_thread,
            **options,
        )

    def _scratch(self, sizes: Sequence[int]) -> list[DeviceArray | None]:
        """Return what Triton adds to the parameters: scratch of all blocks, and a profiler's."""
        extra: list[DeviceArray | None]
        extra = [None] * (len(self._kernel._parameters) - len(self._values))
        if self._compiled.scratch_bytes and extra:
            blocks = int(np.prod(sizes, dtype=object))
            extra[0] = self.device.empty(blocks * self._compiled.scratch_bytes, np.uint8)
        return extra

    def __repr__(self) -> str:
        return (
            f"TritonKernel({self.name!r}, target={self.target!r}, num_warps={self.num_warps}, "
            f"num_stages={self.num_stages})"
        )


def _grid_sizes(grid: Any) -> tuple[int, ...]:
    if isinstance(grid, (int, np.integer)):
        return (int(grid),)
    if not isinstance(grid, (tuple, list)):
        raise InputError(f"grid = {shown(grid)}: expected one to three numbers")
    return tuple(grid)


def _as_parameter(name: str, kind: str, value: Any) -> Any:
    """Return an argument as the kernel of the PTX takes it."""
    if kind.startswith("*"):
        if not isinstance(value, DeviceArray):
            raise InputError(
                f"kernel {name}: a parameter is a pointer, got {shown(value)}; copy an array to the "
                "device: warpstack.cuda.array(x)"
            )
        return value
    if kind == TENSOR_MAP:
        return value
    if kind == "bf16":  # the upper half of an f32, rounded to even
        bits = int(np.float32(value).view(np.uint32))
        return np.uint16((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)
    if kind not in _NUMBERS:
        raise InputError(f"kernel {name}: parameters of type {kind} do not run")
    try:
        return _NUMBERS[kind].type(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"kernel {name}: {shown(value)} is not of type {kind}: {error}") from None


@strictly_checked
def compile(
    kernel: Any,
    *args: Any,
    target: str = "sm_80",
    num_warps: int = 4,
    num_stages: int = 3,
    machine_code: bool | None = None,
    **constexprs: Any,
) -> TritonKernel:
    """Compile a Triton kernel for the arguments of a call, as Triton does at a launch.

    Parameters
    ----------
    kernel
        A function decorated with ``triton.jit`` or ``gluon.jit``, perhaps with ``triton.heuristics``.
    *args
        Its arguments, in order: `DeviceArray` for pointers, or tensors in the memory of the host that
        have ``__dlpack__``, PyTorch's say, into which a launch writes; numbers of Python or NumPy,
        ``None``, Triton's ``TensorDescriptor`` of an array, tuples of these. As in Triton, integers
        equal to 1 become constants, and the code knows which integers and addresses are divisible
        by 16.
    target
        The GPU's architecture, ``sm_75`` or later.
    num_warps, num_stages
        Warps of a block, and stages of the software pipeline.
    machine_code
        Run the machine code that Triton makes, as a GPU does, or the PTX. None: the machine
        code where every instruction of it is executed, else the PTX; `TritonKernel.code` says which.
    **constexprs
        Arguments by name, above all ``tl.constexpr`` ones, and other options of Triton, such as
        ``maxnreg`` and, from ``sm_90`` on, ``num_ctas``.

    Raises
    ------
    InputError
        If Triton is not installed, an argument does not fit, the kernel does not compile, its PTX has
        an instruction that is not executed, which the message names, or, with `machine_code`, its
        machine code has one.

    Notes
    -----
    Triton keeps what it compiled in the folder that its environment variable ``TRITON_CACHE_DIR``
    names; without one, in a temporary folder until the process ends.
    """
    what = "ws.triton.compile"
    options = {"num_warps": num_warps, "num_stages": num_stages, **constexprs}
    host, arguments, named = on_device(what, kernel, args, options)
    compiled = compile_function(what, kernel, arguments, named, target, host.given)
    return TritonKernel(compiled, host.device, machine_code, host=host)


def on_device(
    what: str, kernel: Any, args: Sequence[Any], named: Mapping[str, Any]
) -> tuple[HostTensors, tuple[Any, ...], dict[str, Any]]:
    """Return the tensors of the host among arguments, and the arguments with their copies.

    Raises
    ------
    InputError
        If the memory of one cannot be reached.
    """
    device = device_of(arrays_of([*args, *named.values()]))
    names = [*getattr(kernel, "arg_names", ())][: len(args)]
    names += [f"argument {n + 1}" for n in range(len(names), len(args))]
    host = HostTensors(what, device, {**dict(zip(names, args, strict=True)), **named})
    return (
        host,
        tuple(host.on_device(value) for value in args),
        {name: host.on_device(value) for name, value in named.items()},
    )
