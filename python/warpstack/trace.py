"""Kernel traces in memory: applications, kernels and their columns."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from warpstack import _core
from warpstack.errors import InputError, TraceWarning

__all__ = ["App", "KernelTrace"]

Dim3 = tuple[int, int, int]


class KernelTrace:
    """The immutable trace of one kernel launch.

    Made by `warpstack.load`, by `warpstack.patterns` or by a `warpstack.patterns.KernelBuilder`.
    The columns live in the compiled core, in memory or in a temporary file, and are never copied
    into Python unless asked for.
    """

    def __init__(self, core: _core.KernelTrace) -> None:
        self._core = core
        self._header = core.header

    @property
    def name(self) -> str:
        """Name as in the trace, usually mangled."""
        return str(self._header["name"])

    @cached_property
    def short_name(self) -> str:
        """Readable function name: demangled, without arguments and namespaces."""
        return _short_name(self.name)

    @property
    def launch_id(self) -> int:
        """Number of the launch in its application, from 1."""
        return int(self._header["launch_id"])

    @property
    def grid(self) -> Dim3:
        """Thread blocks of the launch (x, y, z)."""
        x, y, z = self._header["grid"]
        return (x, y, z)

    @property
    def block(self) -> Dim3:
        """Threads of a block (x, y, z)."""
        x, y, z = self._header["block"]
        return (x, y, z)

    @property
    def shared_memory_bytes(self) -> int:
        """Shared memory of a thread block, static and dynamic, in bytes."""
        return int(self._header["shared_memory_bytes"])

    @property
    def registers_per_thread(self) -> int:
        """32-bit registers of a thread."""
        return int(self._header["registers_per_thread"])

    @property
    def source(self) -> str:
        """What made the trace: ``accelsim``, ``pptgpu``, ``builder``."""
        return str(self._header["source"])

    @property
    def num_blocks(self) -> int:
        """Thread blocks of the launch, traced or not."""
        return self._core.num_blocks

    @property
    def num_missing_blocks(self) -> int:
        """Thread blocks of the launch that the trace leaves out."""
        return self._core.num_missing_blocks

    @property
    def warps_per_block(self) -> int:
        """Warps of a thread block, the last one perhaps partly filled."""
        return self._core.warps_per_block

    @property
    def num_warps(self) -> int:
        """Traced warps."""
        return self._core.num_warps

    @property
    def num_instructions(self) -> int:
        """Issued warp instructions, those without an active lane included."""
        return self._core.num_instructions

    @property
    def num_memory_instructions(self) -> int:
        """Issued warp instructions that address global or local memory."""
        return self._core.num_memory_instructions

    @property
    def digest(self) -> str:
        """Content digest of everything the stages read, 32 hexadecimal digits."""
        return self._core.digest

    @property
    def nbytes(self) -> int:
        """Bytes of the dynamic columns."""
        return self._core.bytes

    @property
    def in_file(self) -> bool:
        """Whether the columns live in a temporary file because they exceed the memory limit."""
        return self._core.in_file

    @property
    def unknown_opcodes(self) -> dict[str, int]:
        """Opcodes outside the table and how many warp instructions have them."""
        return self._core.unknown_opcodes

    def dpki(self, line_bytes: int = 128) -> float:
        """Divergent loads per kilo-instruction.

        Load warp instructions that touch more than one line of `line_bytes`, per 1000 issued warp
        instructions; an application above 10 is memory-divergent (MDM, Section I).
        """
        return self._core.dpki(line_bytes)

    @cached_property
    def instructions(self) -> pd.DataFrame:
        """The static instruction table.

        One row per static instruction: ``pc``, ``opcode``, ``op_class``, ``space``, ``kind``,
        ``cache_operator``, ``width`` (bytes per thread), ``destinations`` and ``sources`` (vector
        registers, tuples expanded, numbered densely per kernel), ``source_line`` and ``executions``
        (issued warp instructions).
        """
        return pd.DataFrame(self._core.instruction_table()).astype({"known_opcode": bool})

    def blocks(self) -> Iterator[tuple[int, list[int]]]:
        """Yield the linear index and the warp numbers of each traced thread block."""
        for position in range(self._core.num_traced_blocks):
            yield self._core.block_warps(position)

    def warp(self, block: int, warp: int) -> dict[str, np.ndarray[Any, Any]]:
        """Return the columns of one warp.

        Parameters
        ----------
        block
            Position of the thread block in the trace (its linear index when none is missing).
        warp
            Position of the warp in the block.

        Returns
        -------
        dict
            Read-only arrays. ``instruction`` (row of `instructions`) and ``active_mask`` have an
            entry per issued instruction; ``memory_static`` (row) and ``memory_count`` (touched
            sectors, or shared-memory wavefronts) one per instruction with an address operand;
            ``sector`` (address / 32) and ``store_bytes`` (byte mask) one per touched and per
            written sector.
        """
        return self._core.warp_columns(block, warp)

    def __repr__(self) -> str:
        missing = f", {self.num_missing_blocks} missing" if self.num_missing_blocks else ""
        return (
            f"<KernelTrace {self.launch_id} {self.short_name}: grid {self.grid} block {self.block}, "
            f"{self.num_blocks} thread blocks{missing}, {self.num_warps} warps, "
            f"{self.num_instructions:,} warp instructions>"
        )


class App:
    """An application: kernel launches in order.

    Parameters
    ----------
    kernels
        The launches.
    name
        A name for tables and plots.
    """

    def __init__(self, kernels: Sequence[KernelTrace], name: str = "app") -> None:
        self._kernels = tuple(kernels)
        self.name = name

    @property
    def kernels(self) -> tuple[KernelTrace, ...]:
        """The launches in order."""
        return self._kernels

    def __len__(self) -> int:
        return len(self._kernels)

    def __iter__(self) -> Iterator[KernelTrace]:
        return iter(self._kernels)

    def __getitem__(self, index: int) -> KernelTrace:
        return self._kernels[index]

    def select(self, launch_ids: Sequence[int]) -> App:
        """Return an application of some launches only, in their order here.

        Raises
        ------
        InputError
            If a launch does not exist.
        """
        known = {kernel.launch_id for kernel in self._kernels}
        for launch_id in launch_ids:
            if launch_id not in known:
                numbers = ", ".join(map(str, sorted(known)))
                raise InputError(
                    f"{self.name} has no kernel {launch_id}; its kernels are {numbers}"
                )
        wanted = set(launch_ids)
        return App([k for k in self._kernels if k.launch_id in wanted], self.name)

    @cached_property
    def digest(self) -> str:
        """Content digest of all kernels in order, 32 hexadecimal digits."""
        text = "".join(kernel.digest for kernel in self._kernels)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def info(self) -> pd.DataFrame:
        """Return one row per kernel with its launch geometry and counts."""
        return pd.DataFrame(
            [
                {
                    "kernel": kernel.launch_id,
                    "name": kernel.short_name,
                    "grid": kernel.grid,
                    "block": kernel.block,
                    "blocks": kernel.num_blocks,
                    "missing_blocks": kernel.num_missing_blocks,
                    "warps": kernel.num_warps,
                    "registers_per_thread": kernel.registers_per_thread,
                    "shared_memory_bytes": kernel.shared_memory_bytes,
                    "instructions": kernel.num_instructions,
                    "memory_instructions": kernel.num_memory_instructions,
                    "dpki": kernel.dpki(),
                    "digest": kernel.digest,
                }
                for kernel in self._kernels
            ]
        )

    def __repr__(self) -> str:
        total = sum(kernel.num_instructions for kernel in self._kernels)
        return f"<App {self.name}: {len(self._kernels)} kernels, {total:,} warp instructions>"

    def _repr_html_(self) -> str:
        return str(self.info().drop(columns="digest").to_html(index=False))


def kernels_of(app_or_kernel: App | KernelTrace) -> tuple[KernelTrace, ...]:
    """Return the kernels of an application, or the kernel itself."""
    if isinstance(app_or_kernel, App):
        return app_or_kernel.kernels
    if isinstance(app_or_kernel, KernelTrace):
        return (app_or_kernel,)
    raise InputError(f"expected an App or a KernelTrace, got {type(app_or_kernel).__name__}")


def warn_of_gaps(kernels: Sequence[KernelTrace], where: str) -> None:
    """Warn once of unknown opcodes, and once of thread blocks that the trace leaves out."""
    unknown: dict[str, int] = {}
    for kernel in kernels:
        for opcode, count in kernel.unknown_opcodes.items():
            unknown[opcode] = unknown.get(opcode, 0) + count
    if unknown:
        total = sum(unknown.values())
        listed = ", ".join(f"{opcode} ({count})" for opcode, count in sorted(unknown.items())[:8])
        more = f" and {len(unknown) - 8} more" if len(unknown) > 8 else ""
        warnings.warn(
            f"{where}: {total} warp instructions have unknown opcodes: {listed}{more}; with an address "
            "they count as generic loads or stores, otherwise as integer instructions",
            TraceWarning,
            stacklevel=3,
        )
    gaps = [kernel for kernel in kernels if kernel.num_missing_blocks]
    if gaps:
        listed = ", ".join(
            f"{k.num_missing_blocks} of {k.num_blocks} in kernel {k.launch_id}" for k in gaps[:4]
        )
        more = f" and in {len(gaps) - 4} more kernels" if len(gaps) > 4 else ""
        warnings.warn(
            f"{where}: thread blocks are missing from the trace: {listed}{more}; they count as blocks "
            "like the traced ones",
            TraceWarning,
            stacklevel=3,
        )


def _short_name(name: str) -> str:
    """Return the function's own name from an Itanium-mangled or a plain name."""
    if not name.startswith("_Z"):
        return name.split("(")[0].strip() or name
    rest = name[2:]
    nested = rest.startswith("N")
    rest = rest.lstrip("NKVr") if nested else rest
    last = ""
    while rest[:1].isdigit():
        digits = len(rest) - len(rest.lstrip("0123456789"))
        length = int(rest[:digits])
        rest = rest[digits:]
        if length > len(rest):
            break
        last, rest = rest[:length], rest[length:]
        if not nested:
            break
    return last or name
