"""Kernels written by hand: a builder of traces, and the access patterns that papers use."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack import _core
from warpstack._util.arguments import as_integer
from warpstack._util.checked import checked, checked_fields
from warpstack._util.trace_budget import check_memory, default_budget
from warpstack.errors import InputError, not_a, shown
from warpstack.traces.trace import KernelTrace

__all__ = ["Instruction", "KernelBuilder", "gather", "stream", "strided"]

WARP_SIZE = 32
_INSTRUCTION_BYTES = 16
#: Bytes that the table of a trace holds for each thread block and for each warp.
_BLOCK_BYTES, _WARP_BYTES = 24, 20
#: Largest number of a launch; the core has limits of its own for each.
_MOST = 2**32 - 1
_MOST_BASE = 2**48
#: Start of the first array of a pattern: a plausible device address.
DEFAULT_BASE = 0x7F00_0000_0000


@dataclass(frozen=True)
class Instruction:
    """A static instruction of a `KernelBuilder`."""

    row: int
    pc: int
    opcode: str

    def __post_init__(self) -> None:
        checked_fields(self)


class KernelBuilder:
    """Builds the trace of a kernel, instruction by instruction, for all its threads at once.

    Parameters
    ----------
    name
        Name of the kernel.
    grid, block
        Thread blocks and threads per block: a number, or up to three.
    registers_per_thread, shared_memory_bytes
        What limits occupancy.
    launch_id
        Number of the launch.

    Raises
    ------
    InputError
        If no GPU launches such a kernel.

    Notes
    -----
    Per-thread arrays have the shape (thread blocks, threads per block), or one that broadcasts to
    it. `thread` numbers the threads of the launch in that shape.

    Examples
    --------
    >>> import warpstack as ws
    >>> k = ws.patterns.KernelBuilder("copy", grid=2, block=64)
    >>> _ = k.emit("LDG.E", dst=4, src=2, address=0x1000 + 4 * k.thread)
    >>> _ = k.emit("STG.E", src=(6, 4), address=0x8000 + 4 * k.thread)
    >>> _ = k.emit("EXIT")
    >>> k.build().num_instructions
    12
    """

    @checked
    def __init__(
        self,
        name: str,
        *,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        registers_per_thread: int = 32,
        shared_memory_bytes: int = 0,
        launch_id: int = 1,
    ) -> None:
        if not isinstance(name, str) or not name.isprintable():
            raise InputError(
                f"name = {ascii(name) if isinstance(name, str) else shown(name)} is not printable text"
            )
        grid_dim, block_dim = _dim3("grid", grid), _dim3("block", block)
        header = {
            "name": name,
            "launch_id": as_integer("launch_id", launch_id, 0, _MOST),
            "grid": grid_dim,
            "block": block_dim,
            "shared_memory_bytes": as_integer("shared_memory_bytes", shared_memory_bytes, 0, _MOST),
            "registers_per_thread": as_integer(
                "registers_per_thread", registers_per_thread, 0, _MOST
            ),
            "binary_version": 0,
            "stream": 0,
            "shared_window": 0,
            "local_window": 0,
            "source": "builder",
        }
        self._blocks = math.prod(grid_dim)
        self._threads = math.prod(block_dim)
        self._warps = self._blocks * -(-self._threads // WARP_SIZE)
        self._builder = _core.TraceBuilder(header, default_budget())
        self._check_memory(_BLOCK_BYTES * self._blocks + _WARP_BYTES * self._warps)
        self._declared: dict[int, Instruction] = {}
        self._steps: list[tuple[int, Any, Any, Any]] = []
        self._next_pc = 0
        self._built = False

    @property
    def thread(self) -> npt.NDArray[np.int64]:
        """Number of each thread in the launch, shape (thread blocks, threads per block)."""
        self._check_memory(8 * self._blocks * self._threads)
        return np.arange(self._blocks * self._threads).reshape(self._blocks, self._threads)

    @property
    def thread_in_block(self) -> npt.NDArray[np.int64]:
        """Number of each thread in its block, shape (1, threads per block)."""
        return np.arange(self._threads)[np.newaxis, :]

    def instruction(
        self,
        opcode: str,
        *,
        dst: int | Sequence[int] = (),
        src: int | Sequence[int] = (),
        pc: int | None = None,
    ) -> Instruction:
        """Declare a static instruction.

        Parameters
        ----------
        opcode
            SASS opcode with modifiers, such as ``LDG.E.64``: it decides class, memory space and
            access width.
        dst, src
            First vector registers of the operands, 0 to 255 (255: RZ); tuples expand by opcode and
            width.
        pc
            Byte offset in the code; by default the next one.

        Raises
        ------
        InputError
            If a register is out of range, or the opcode is not valid.
        """
        if not isinstance(opcode, str) or not re.fullmatch(r"[!-~]+", opcode):
            raise InputError(f"opcode = {shown(opcode)} is not an opcode")
        registers = [_registers("dst", dst), _registers("src", src)]
        pc = as_integer("pc", self._next_pc if pc is None else pc, 0, 2**32 - 1)
        self._next_pc = pc + _INSTRUCTION_BYTES
        declared = Instruction(self._builder.intern(pc, opcode, *registers), pc, opcode)
        self._declared[declared.row] = declared
        return declared

    def issue(
        self,
        instruction: Instruction,
        *,
        address: npt.ArrayLike | None = None,
        where: npt.ArrayLike | None = None,
        predicate: npt.ArrayLike | None = None,
    ) -> None:
        """Issue an instruction once by every warp.

        Parameters
        ----------
        instruction
            What `instruction` returned.
        address
            Byte address of each thread: global addresses, offsets in the block's shared memory, or
            private offsets of local memory, as the opcode says.
        where
            Threads that reach the instruction; a warp without such a thread does not issue it.
        predicate
            Threads that pass its guard; a warp whose threads all fail still issues it, without
            access.

        Raises
        ------
        InputError
            If an array does not broadcast to (thread blocks, threads per block), or the instruction
            is of another builder.
        """
        if not isinstance(instruction, Instruction):
            raise not_a("instruction", "what `instruction` returned", instruction)
        if self._declared.get(instruction.row) != instruction:
            raise InputError(f"{instruction.opcode} was declared by another builder")
        reaching = None if where is None else self._per_warp("where", where, bool)
        issued = None if reaching is None else reaching.any(axis=1).astype(np.uint8)
        active = reaching
        if predicate is not None:
            passing = self._per_warp("predicate", predicate, bool)
            active = passing if reaching is None else passing & reaching
        mask = None
        if active is not None:
            bits = np.left_shift(np.uint32(1), np.arange(WARP_SIZE, dtype=np.uint32))
            mask = np.where(active, bits, np.uint32(0)).sum(axis=1, dtype=np.uint32)
        addresses = None if address is None else self._per_warp("address", address, np.uint64)
        self._steps.append((instruction.row, issued, mask, addresses))

    def emit(
        self,
        opcode: str,
        *,
        dst: int | Sequence[int] = (),
        src: int | Sequence[int] = (),
        address: npt.ArrayLike | None = None,
        where: npt.ArrayLike | None = None,
        predicate: npt.ArrayLike | None = None,
        pc: int | None = None,
    ) -> Instruction:
        """Declare an instruction and issue it; see `instruction` and `issue`."""
        declared = self.instruction(opcode, dst=dst, src=src, pc=pc)
        self.issue(declared, address=address, where=where, predicate=predicate)
        return declared

    def build(self) -> KernelTrace:
        """Return the trace. The builder is used up then.

        Raises
        ------
        InputError
            If an address is beyond the address space, or the kernel was built before.
        """
        if self._built:
            raise InputError("the kernel was built already; make another KernelBuilder")
        self._built = True
        self._builder.append_program(self._steps)
        self._steps = []
        return KernelTrace(self._builder.finish())

    def _check_memory(self, needed_bytes: int) -> None:
        check_memory(
            f"a launch of {self._blocks:,} blocks of {self._threads:,} threads",
            needed_bytes,
            "give a smaller grid or block",
        )

    def _per_warp(self, what: str, values: npt.ArrayLike, dtype: Any) -> npt.NDArray[Any]:
        """Return the values per warp and lane, shape (warps, 32), zero where a warp has no thread."""
        try:
            array = np.asarray(values)
        except (TypeError, ValueError, OverflowError, RecursionError):
            raise InputError(f"{what}: the rows have different lengths") from None
        if dtype is bool:
            if array.dtype.kind not in "biu":
                raise InputError(f"{what}: expected booleans, got {array.dtype}")
        elif array.size and (array.dtype.kind not in "iu" or (array < 0).any()):
            raise InputError(f"{what}: addresses are non-negative whole numbers")
        try:
            full = np.broadcast_to(array, (self._blocks, self._threads))
        except ValueError:
            raise InputError(
                f"{what} has the shape {array.shape}, which does not broadcast to (blocks, threads per "
                f"block) = ({self._blocks}, {self._threads})"
            ) from None
        warps = -(-self._threads // WARP_SIZE)
        self._check_memory(np.dtype(dtype).itemsize * self._warps * WARP_SIZE)
        padded = np.zeros((self._blocks, warps * WARP_SIZE), dtype=dtype)
        padded[:, : self._threads] = full
        return padded.reshape(self._blocks * warps, WARP_SIZE)


def _numbers(what: str, value: int | Iterable[int], at_least: int, at_most: int) -> list[int]:
    """Return one number or several as a list."""
    values: list[Any]
    try:
        values = list(value)  # type: ignore[arg-type]
    except TypeError:
        values = [value]
    return [as_integer(what, number, at_least, at_most) for number in values]


def _dim3(what: str, value: int | Sequence[int]) -> tuple[int, int, int]:
    given = _numbers(what, value, 1, _MOST)
    if not 1 <= len(given) <= 3:
        raise InputError(f"{what} = {shown(value)} has {len(given)} numbers; expected one to three")
    x, y, z = given + [1] * (3 - len(given))
    return (x, y, z)


def _registers(what: str, value: int | Sequence[int]) -> list[int]:
    return _numbers(what, value, 0, 255)


def _threads_of(warps_per_block: int) -> int:
    return as_integer("warps_per_block", warps_per_block, 1, 32) * WARP_SIZE


@checked
def strided(
    gs: int,
    iterations: int = 16,
    blocks: int = 448,
    warps_per_block: int = 8,
    *,
    base: int = DEFAULT_BASE,
    launch_id: int = 1,
) -> KernelTrace:
    """Return the strided kernel of MDM's Listing 1.

    In iteration i thread ix loads the 4-byte element ``gs * ix + i``, squares it and stores it to
    shared memory: with a grid stride of 1 a warp's load touches one or two lines of 128 bytes, with
    32 it touches 32 of them.

    Parameters
    ----------
    gs
        Grid stride in elements.
    iterations
        Loop count.
    blocks, warps_per_block
        Launch geometry.
    base
        Address of the input array.
    launch_id
        Number of the launch.

    Returns
    -------
    KernelTrace
        Per warp: 3 instructions, 7 per iteration, and the exit.
    """
    gs = as_integer("gs", gs, 0, _MOST)
    iterations = as_integer("iterations", iterations, 0, _MOST)
    base = as_integer("base", base, 0, _MOST_BASE)
    threads = _threads_of(warps_per_block)
    k = KernelBuilder(
        f"_Z{len(f'strided_gs{gs}')}strided_gs{gs}Pfi",
        grid=blocks,
        block=threads,
        registers_per_thread=32,
        launch_id=launch_id,
    )
    k.emit("MOV", dst=1)
    k.emit("S2R", dst=0)
    k.emit("IMAD", dst=2, src=(0, 1))
    index = k.instruction("IADD3", dst=6, src=(2, 1))
    load = k.instruction("LDG.E", dst=4, src=6)
    square = k.instruction("FMUL", dst=5, src=(4, 4))
    store = k.instruction("STS", src=(8, 5))
    count = k.instruction("IADD3", dst=2, src=(2, 1))
    test = k.instruction("ISETP.NE.AND", src=2)
    branch = k.instruction("BRA")
    for i in range(iterations):
        k.issue(index)
        k.issue(load, address=base + 4 * (gs * k.thread + i))
        k.issue(square)
        k.issue(store, address=(4 * (i * threads + k.thread_in_block)) % 32768)
        k.issue(count)
        k.issue(test)
        k.issue(branch)
    k.emit("EXIT")
    return k.build()


@checked
def stream(
    loads: int = 1, blocks: int = 448, warps_per_block: int = 8, *, base: int = DEFAULT_BASE
) -> KernelTrace:
    """Return a coalesced streaming kernel: each thread adds `loads` arrays and stores the sum.

    Arrays lie one after the other, 4 bytes per thread; every byte is used once.
    """
    loads = as_integer("loads", loads, 0, _MOST)
    base = as_integer("base", base, 0, _MOST_BASE)
    k = KernelBuilder("stream", grid=blocks, block=_threads_of(warps_per_block))
    array_bytes = 4 * k.thread.size
    k.emit("S2R", dst=0)
    for i in range(loads):
        k.emit("IMAD.WIDE", dst=2, src=(0, 1))
        k.emit("LDG.E", dst=4, src=2, address=base + i * array_bytes + 4 * k.thread)
        k.emit("FADD", dst=8, src=(8, 4))
    k.emit("IMAD.WIDE", dst=6, src=(0, 1))
    k.emit("STG.E", src=(6, 8), address=base + loads * array_bytes + 4 * k.thread)
    k.emit("EXIT")
    return k.build()


@checked
def gather(
    loads: int = 4,
    blocks: int = 448,
    warps_per_block: int = 8,
    *,
    footprint_mib: float = 64,
    seed: int = 0,
    base: int = DEFAULT_BASE,
) -> KernelTrace:
    """Return a kernel of random gathers.

    Each thread loads an index, then the element it names, `loads` times, and stores the sum.

    Parameters
    ----------
    loads
        Gathers per thread.
    blocks, warps_per_block
        Launch geometry.
    footprint_mib
        Size of the gathered array.
    seed
        Seed of the indices; the same seed gives the same trace.
    base
        Address of the index array; the gathered array follows it.
    """
    loads = as_integer("loads", loads, 0, _MOST)
    base = as_integer("base", base, 0, _MOST_BASE)
    k = KernelBuilder("gather", grid=blocks, block=_threads_of(warps_per_block))
    if not isinstance(footprint_mib, numbers.Real) or not 2**-18 <= footprint_mib <= 2**28:
        raise InputError(
            f"footprint_mib = {shown(footprint_mib)} is not a size from 4 bytes to 256 TiB"
        )
    elements = int(footprint_mib * 2**20) // 4
    rng = np.random.default_rng(as_integer("seed", seed, 0, 2**64 - 1))
    index_bytes = 4 * k.thread.size * loads
    k.emit("S2R", dst=0)
    for i in range(loads):
        k.emit("IMAD.WIDE", dst=2, src=(0, 1))
        k.emit("LDG.E", dst=4, src=2, address=base + 4 * (loads * k.thread + i))
        k.emit("IMAD.WIDE", dst=6, src=(4, 1))
        target = rng.integers(elements, size=k.thread.shape)
        k.emit("LDG.E", dst=8, src=6, address=base + index_bytes + 4 * target)
        k.emit("FADD", dst=9, src=(9, 8))
    k.emit("IMAD.WIDE", dst=10, src=(0, 1))
    k.emit("STG.E", src=(10, 9), address=base + index_bytes + 4 * elements + 4 * k.thread)
    k.emit("EXIT")
    return k.build()
