"""Modules of PTX and the launch of their kernels."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack import _core
from warpstack._util.arguments import as_integer, block_sample, thread_count
from warpstack._util.checked import strictly_checked
from warpstack._util.former import former_keywords
from warpstack._util.handle import Handle
from warpstack._util.progress import progress_bar
from warpstack._util.trace_budget import default_budget
from warpstack.cuda.device import Device, DeviceArray, check_dtype
from warpstack.cuda.texture import Texture
from warpstack.errors import InputError, not_one_of, shown, unknown, warn
from warpstack.traces.trace import KernelTrace, short_name

#: Warp instructions after which a launch counts as endless.
DEFAULT_STEP_LIMIT = 10_000_000_000
#: cudaLimitStackSize unless a program sets it.
USUAL_STACK_BYTES = 1024
_MOST_STACK_BYTES = 512 << 10
_MOST = 2**32 - 1
#: Blocks of a grid and threads of a block in x, y and z (CUDA C++ Programming Guide).
_MOST_BLOCKS = (2**31 - 1, 65535, 65535)
_MOST_THREADS = (1024, 1024, 64)
#: Threads of the computer that run a launch.
MOST_LAUNCH_THREADS = 255
#: Warp instructions that one of these threads runs at a time; 0: the default of the core. Tests lower it,
#: so that short launches have several threads.
_instructions_ahead = 0


class KernelWarning(UserWarning):
    """A fault of a kernel after which its launch went on, since `on_fault` is "continue"."""


def _plain(name: str) -> str:
    """Return a name for messages as it is, or shortened where it is not like one."""
    return name if re.fullmatch(r"[\w$%.]{1,4096}", name) else shown(name)


class Module(Handle):
    """A compiled CUDA source or PTX file on a device. Made by `compile`."""

    _remedy = "pickle its text, Module.ptx, and compile that again"

    @strictly_checked
    def __init__(self, text: str, file: str, device: Device) -> None:
        self.ptx = text
        self.file = file
        self.device = device
        self._text: _core.PtxModule | _core.SassModule
        self._core: _core.PtxLoadedModule | _core.SassLoadedModule
        self._load(text)

    def _load(self, text: str) -> None:
        module = _core.PtxModule(text, self.file)
        self._text = module
        self._core = _core.PtxLoadedModule(module, self.device._core)

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels, as in the PTX (mangled unless ``extern "C"``)."""
        return tuple(self._text.kernels)

    @property
    def target(self) -> str:
        """The target of the PTX, for example ``sm_75``."""
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
        # Names as the source has them, where that is enough to find them.
        plain = [short_name(mangled) for mangled in names]
        known = [one if plain.count(one) == 1 else names[n] for n, one in enumerate(plain)]
        raise unknown("kernel", name, known, where=self.file)

    @strictly_checked
    def symbol(self, name: str, dtype: npt.DTypeLike) -> DeviceArray:
        """Return a ``__device__`` or ``__constant__`` variable as an array of one dimension.

        Raises
        ------
        InputError
            If there is no such variable or its size is not a multiple of the type's.
        """
        kind = np.dtype(dtype)
        check_dtype("symbol", kind)
        address, size = self._core.symbol(_plain(name))
        if kind.itemsize == 0 or size % kind.itemsize:
            raise InputError(
                f"{name} has {size} bytes, which is not a multiple of {kind}'s {kind.itemsize}"
            )
        result = DeviceArray(self.device, (size // kind.itemsize,), kind, address=address)
        result._module = self  # type: ignore[attr-defined]  # keeps the memory
        return result

    @strictly_checked
    def bind_texture(self, name: str, source: Texture) -> None:
        """Bind a texture reference (a ``texture<>`` variable of older sources)."""
        if isinstance(self._core, _core.SassLoadedModule):
            raise InputError(f"{self.file}: texture references of machine code are not executed")
        self._core.bind_texture(_plain(name), source.handle)

    def __repr__(self) -> str:
        return f"Module({self.file!r}, kernels={list(self.kernels)})"


class Kernel(Handle):
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
        """Registers of a thread.

        For PTX this is the number that is live at once, at least 16: an estimate, since the machine
        code that a GPU runs may use more or fewer. Machine code has its own number.
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

    @former_keywords(num_threads="workers")
    @strictly_checked
    def launch(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        *arguments: Any,
        cluster: int | Sequence[int] | None = None,
        shared_memory_bytes: int = 0,
        stack_bytes: int = USUAL_STACK_BYTES,
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
        workers: int | None = None,
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
            scalar for structures, among them what `tensor_map` makes.
        cluster
            Blocks of a cluster, of which the grid consists: a number, or up to three; together at
            most 16. Blocks of a cluster are resident together and reach each other's shared memory.
            By default what the kernel itself asks for (``__cluster_dims__``), else there are no
            clusters.
        shared_memory_bytes
            Dynamic shared memory of a block.
        stack_bytes
            Local memory of a thread where machine code does not say how much its functions need: those
            called by address, recursion, `alloca` (`cudaLimitStackSize`, at most 512 KiB).
        trace
            Whether to trace; without a trace the kernel runs faster and None is returned.
        sample_blocks
            Record about one in so many thread blocks, at least 128: a few runs of consecutive blocks.
            "auto" records some 1,024: one in a 1,024th of the blocks, rounded up, and at most 16. All
            blocks run, so that arrays are complete; `KernelTrace.num_missing_blocks` counts those that
            are not recorded. Clusters are recorded whole or not at all. All blocks of cooperative
            launches are recorded, and of those of fewer than 256 if `run_others`.
        run_others
            False: blocks that are not sampled do not run, so that the launch costs that much less.
            Arrays then hold only what the sampled blocks wrote: results are not to be used, nor to be
            read by a later kernel. Kernels whose blocks may see each other's work are refused, but an
            integer on global memory to which they add, and whose old value they use, grows as if all
            blocks ran. Of fewer than 256 blocks 4 at least run.
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
            grid (`cudaLaunchCooperativeKernel`). Those of a plain launch run in `order`.
        order
            "blocks": one thread block after the other, until one only waits for others. "time": those
            that a GPU holds at once run beside each other by an estimate of their time, as for queues
            of work. By default "time" for kernels that use what an atomic operation on global memory
            returns, or have a loop with a volatile, relaxed or acquire load of it, else "blocks".
        registers_per_thread
            What the trace says, for occupancy; by default `Kernel.registers_per_thread`.
        workers
            Threads that run blocks of a long launch at once; None takes as many as the machine runs.
            Results, traces and messages are those of one thread.
        progress
            Show a progress bar on a terminal.

        Raises
        ------
        InputError
            If an argument does not fit its parameter, the launch is impossible, `run_others` is off for
            a kernel with other atomic operations on global memory than counts, grid synchronization or
            launches of its own, or the kernel fails:
            an out-of-bounds, misaligned or uninitialised access, a divergent barrier, a deadlock, a
            failed assertion. The message names the source line, block, thread and address. What the
            kernel wrote before stays written.
        """
        if on_fault not in ("stop", "continue"):
            raise not_one_of("on_fault", on_fault, ("stop", "continue"))
        if order not in (None, "time", "blocks"):
            raise not_one_of("order", order, ("time", "blocks"))
        one_in = block_sample(sample_blocks)
        if not (run_others or trace):
            raise InputError(
                "run_others = False: only the blocks that are traced would run, and trace is False; "
                "leave one of them out"
            )
        parameters = self._pack(arguments)
        device = self.module.device
        sizes = [_as_dim3("grid", grid, _MOST_BLOCKS), _as_dim3("block", block, _MOST_THREADS)]
        clusters = (0, 0, 0)
        if cluster is not None:
            clusters = _as_dim3("cluster", cluster, (16, 16, 16))
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

            def advance(run: int, to_run: int) -> None:
                nonlocal done
                blocks = run * num_blocks // to_run  # with those that are passed over
                bar.update(blocks - done)
                done = blocks

            try:
                core, *_ = self.module._core.launch(
                    self.name,
                    parameters,
                    sizes[0],
                    sizes[1],
                    clusters,
                    as_integer("shared_memory_bytes", shared_memory_bytes, 0, _MOST),
                    as_integer("stack_bytes", stack_bytes, 1, _MOST_STACK_BYTES),
                    bool(trace),
                    one_in,
                    bool(run_others),
                    as_integer("step_limit", step_limit, 1, 2**63),
                    bool(check_uninitialized),
                    on_fault == "continue",
                    bool(check_races),
                    bool(cooperative),
                    order or "",
                    registers,
                    thread_count(workers, MOST_LAUNCH_THREADS),
                    _instructions_ahead,
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
            raise InputError(f"{what}: {shown(value)} is not of type {kind}: {error}") from None
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


def _as_dim3(what: str, value: int | Sequence[int], most: Sequence[int]) -> tuple[int, int, int]:
    sizes: Sequence[Any] = (value,) if isinstance(value, (int, np.integer)) else tuple(value)
    if not 1 <= len(sizes) <= 3:
        raise InputError(f"{what} = {shown(value)}: expected one to three numbers")
    checked = (
        as_integer(f"{what} dim {name}", size, 1, limit)
        for name, size, limit in zip("xyz", sizes, most, strict=False)
    )
    x, y, z = (*checked, 1, 1)[:3]
    return (x, y, z)


# ---- compiling ----
