"""GPUs as MWP-CWP sees them (Hong and Kim, ISCA 2009, Tables 1, 3 and 6)."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack._util.arguments import as_integer
from warpstack._util.checked import checked, checked_fields
from warpstack.errors import InputError, shown, unknown
from warpstack.hardware.description import Gpu, as_gpu

__all__ = ["Machine", "Number", "as_machine", "machine", "machines"]

#: Parameters are numbers, or arrays that broadcast against each other.
Number = float | npt.NDArray[np.float64]

WARP_SIZE = 32


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The properties of a GPU that the model reads. Every field but the names may be an array.

    Attributes
    ----------
    name
        A name for tables.
    num_sms
        SMs (#SM, Table 3).
    clock_ghz
        Clock of the SMs, GHz (Freq).
    memory_bandwidth_gbs
        Between DRAM and the SMs, GB/s (Mem_Bandwidth).
    dram_latency
        Round trip of one memory transaction, cycles (Mem_LD).
    uncoalesced_departure
        Cycles between two uncoalesced transactions (Departure_del_uncoal).
    coalesced_departure
        Cycles between two coalesced transactions (Departure_del_coal).
    issue_cycles
        Cycles that an SM takes to issue one warp instruction (Issue_cycles).
    compute_capability
        Below 1.3 an uncoalesced access is one transaction per thread (Section 3.4.5).
    uncoalesced_transactions
        Transactions of an uncoalesced access below 1.3 (#Uncoal_per_mw, Table 3).
    blocks_per_sm, warps_per_sm, registers_per_sm, shared_memory_per_sm
        What an SM holds (CUDA Programming Guide 3.0, Appendix G); bytes of shared memory.

    Raises
    ------
    InputError
        If a value is not a positive number.
    """

    name: str = "hand-made"
    num_sms: Number
    clock_ghz: Number
    memory_bandwidth_gbs: Number
    dram_latency: Number
    uncoalesced_departure: Number
    coalesced_departure: Number
    issue_cycles: Number = 4
    compute_capability: float = 1.0
    uncoalesced_transactions: Number = 32
    blocks_per_sm: Number = 8
    warps_per_sm: Number = 24
    registers_per_sm: Number = 8192
    shared_memory_per_sm: Number = 16384

    def __post_init__(self) -> None:
        checked_fields(self)
        check_numbers(self, f"machine {self.name}", least_above=0)

    @checked
    def replace(self, **changes: Any) -> Machine:
        """Return a copy with some fields changed.

        Raises
        ------
        InputError
            If there is no such field (the message suggests the nearest) or a value is impossible.
        """
        known = [f.name for f in fields(self)]
        for name in changes:
            if name not in known:
                raise unknown("field", name, known, where=f"machine {self.name}")
        return replace(self, **changes)

    @checked
    def active_blocks_per_sm(
        self, threads_per_block: int, registers_per_thread: int = 0, shared_memory_bytes: int = 0
    ) -> int:
        """Return how many thread blocks an SM holds at once (#Active_blocks_per_SM).

        Raises
        ------
        InputError
            If not even one fits, or a number is out of range.
        """
        as_integer("threads_per_block", threads_per_block, 1, 2**31 - 1)
        as_integer("registers_per_thread", registers_per_thread, 0, 2**31 - 1)
        as_integer("shared_memory_bytes", shared_memory_bytes, 0, 2**63 - 1)
        warps = math.ceil(threads_per_block / WARP_SIZE)
        limits = [float(self.blocks_per_sm), float(self.warps_per_sm) / warps]
        if registers_per_thread:
            limits.append(float(self.registers_per_sm) / (registers_per_thread * warps * WARP_SIZE))
        if shared_memory_bytes:
            limits.append(float(self.shared_memory_per_sm) / shared_memory_bytes)
        blocks = int(min(limits))
        if blocks < 1:
            raise InputError(
                f"a thread block of {threads_per_block} threads, {registers_per_thread} registers each "
                f"and {shared_memory_bytes} bytes of shared memory does not fit on an SM of {self.name}"
            )
        return blocks

    @classmethod
    @checked
    def from_gpu(cls, gpu: Gpu | str) -> Machine:
        """Derive the parameters from a description of a GPU with caches.

        A transaction is what L1 fetches at once. `dram_latency` is the round trip of a miss in
        both caches, a departure is the SM's share of the NoC, at least one cycle.
        """
        gpu = as_gpu(gpu)
        departure = max(
            gpu.l1_sector_bytes * gpu.clock_ghz * gpu.num_sms / gpu.noc_bandwidth_gbs, 1.0
        )
        coalesced = max(128 * gpu.clock_ghz * gpu.num_sms / gpu.noc_bandwidth_gbs, 1.0)
        return cls(
            name=gpu.title,
            num_sms=gpu.num_sms,
            clock_ghz=gpu.clock_ghz,
            memory_bandwidth_gbs=gpu.dram_bandwidth_gbs,
            dram_latency=gpu.l2_latency + gpu.dram_latency,
            uncoalesced_departure=departure,
            coalesced_departure=coalesced,
            issue_cycles=1 / gpu.issue_width,
            compute_capability=2.0,
            blocks_per_sm=gpu.blocks_per_sm,
            warps_per_sm=gpu.warps_per_sm,
            registers_per_sm=gpu.registers_per_sm,
            shared_memory_per_sm=gpu.shared_memory_kib_per_sm * 1024,
        )


def check_numbers(value: Any, where: str, *, least_above: float | None = None) -> None:
    """Raise `InputError` for the first field that is not a number, or is not above or at zero."""
    for field in fields(value):
        content = getattr(value, field.name)
        if isinstance(content, str) or content is None:
            continue
        try:
            array = np.asarray(content, dtype=float)
        except (TypeError, ValueError):
            array = np.asarray(np.nan)
        good = np.isfinite(array) & (array > 0 if least_above is not None else array >= 0)
        if isinstance(content, bool) or not good.all():
            least = "positive" if least_above is not None else "at least 0"
            raise InputError(f"{where}: {field.name} = {shown(content)} is not a number {least}")


#: Table 3 (SMs, processor clock, bandwidth, compute capability) and Table 6 (the memory parameters;
#: "FX5600, 8800GTX and 8800GT use the same model parameters", Section 5.1).
_G80 = {"dram_latency": 420.0, "uncoalesced_departure": 10.0, "coalesced_departure": 4.0}
_MACHINES = {
    entry.name: entry
    for entry in (
        Machine(name="8800gtx", num_sms=16, clock_ghz=1.35, memory_bandwidth_gbs=86.4, **_G80),
        Machine(
            name="quadro-fx5600", num_sms=16, clock_ghz=1.35, memory_bandwidth_gbs=76.8, **_G80
        ),
        Machine(
            name="8800gt",
            num_sms=14,
            clock_ghz=1.5,
            memory_bandwidth_gbs=57.6,
            compute_capability=1.1,
            **_G80,
        ),
        Machine(
            name="gtx280",
            num_sms=30,
            clock_ghz=1.3,
            memory_bandwidth_gbs=141.7,
            dram_latency=450,
            uncoalesced_departure=40,
            coalesced_departure=4,
            compute_capability=1.3,
            warps_per_sm=32,
            registers_per_sm=16384,
        ),
    )
}


def machines() -> list[str]:
    """Return the names of the GPUs that the paper measured."""
    return list(_MACHINES)


@checked
def machine(name: str) -> Machine:
    """Return one of the paper's GPUs.

    Raises
    ------
    InputError
        If no machine has that name (the message lists them).
    """
    if name not in _MACHINES:
        raise unknown("machine", name, _MACHINES)
    return _MACHINES[name]


@checked
def as_machine(gpu: Machine | Gpu | str) -> Machine:
    """Return the machine itself, the paper's GPU of that name, or what `from_gpu` derives."""
    if isinstance(gpu, Machine):
        return gpu
    if isinstance(gpu, str) and gpu in _MACHINES:
        return _MACHINES[gpu]
    return Machine.from_gpu(gpu)
