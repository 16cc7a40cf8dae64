"""The equations of MWP-CWP (Hong and Kim, ISCA 2009, Eq. 1 to 31)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpstack._util.checked import checked, checked_fields
from warpstack.errors import InputError, shown, unknown
from warpstack.hardware.description import Gpu
from warpstack.models.mwp_cwp.machine import WARP_SIZE, Machine, Number, as_machine, check_numbers

__all__ = ["Estimate", "KernelDescription", "predict"]


@dataclass(frozen=True, kw_only=True)
class KernelDescription:
    """A kernel as the model sees it: counts of one warp. Every number may be an array.

    Attributes
    ----------
    threads_per_block, num_blocks
        The launch (#Threads_per_block, #Blocks).
    active_blocks_per_sm
        Thread blocks that an SM runs at once (#Active_blocks_per_SM).
    active_sms
        SMs with work (#Active_SMs); 0: as many as there are, or as there are blocks.
    comp_insts
        Instructions that are not accesses to off-chip memory (#Comp_insts): shared memory and
        barriers count here.
    uncoal_mem_insts, coal_mem_insts
        Accesses to off-chip memory (#Uncoal_Mem_insts, #Coal_Mem_insts).
    synch_insts
        Barriers (#Synch_insts).
    uncoal_per_mw, coal_per_mw
        Transactions of an uncoalesced and a coalesced access (#Uncoal_per_mw, #Coal_per_mw).
    load_bytes_per_warp
        Bytes of an access of a warp (Load_bytes_per_warp).
    independent_mem_insts
        Accesses that need not wait for the one before (#ind_mem_req, Eq. 29).
    m_factor
        Mean issue time of an instruction, in those of a fast one (M_Factor, Eq. 31).
    name
        A name for tables.

    Raises
    ------
    InputError
        If a value is not a number, is negative, or the launch has nothing to run.
    """

    threads_per_block: Number
    num_blocks: Number
    active_blocks_per_sm: Number
    comp_insts: Number
    uncoal_mem_insts: Number = 0
    coal_mem_insts: Number = 0
    synch_insts: Number = 0
    uncoal_per_mw: Number = 32
    coal_per_mw: Number = 1
    load_bytes_per_warp: Number = 128
    independent_mem_insts: Number = 0
    m_factor: Number = 1
    active_sms: Number = 0
    name: str = "hand-made"

    def __post_init__(self) -> None:
        checked_fields(self)
        where = f"kernel {self.name}"
        check_numbers(self, where)
        positive = ("threads_per_block", "num_blocks", "active_blocks_per_sm", "uncoal_per_mw")
        for field in (*positive, "coal_per_mw", "load_bytes_per_warp", "m_factor"):
            if not np.all(np.asarray(getattr(self, field)) > 0):
                raise InputError(
                    f"{where}: {field} = {shown(getattr(self, field))} is not positive"
                )
        if not np.all(np.asarray(self.total_insts) > 0):
            raise InputError(f"{where}: there are no instructions; nothing to predict")
        if np.any(np.asarray(self.independent_mem_insts) > np.asarray(self.mem_insts)):
            raise InputError(
                f"{where}: independent_mem_insts = {shown(self.independent_mem_insts)} is more than the "
                f"memory instructions, {shown(self.mem_insts)}"
            )

    @property
    def mem_insts(self) -> Number:
        """Accesses of a warp to off-chip memory (#Mem_insts)."""
        return self.uncoal_mem_insts + self.coal_mem_insts

    @property
    def total_insts(self) -> Number:
        """Instructions of a warp (#Total_insts)."""
        return self.comp_insts + self.mem_insts

    @checked
    def replace(self, **changes: Any) -> KernelDescription:
        """Return a copy with some fields changed."""
        known = [f.name for f in fields(self)]
        for name in changes:
            if name not in known:
                raise unknown("field", name, known, where=f"kernel {self.name}")
        return replace(self, **changes)

    @classmethod
    @checked
    def of_paths(cls, paths: Iterable[KernelDescription]) -> KernelDescription:
        """Sum the paths that a divergent warp runs one after another (Section 6.3).

        Counts add up; transactions, bytes and M_Factor are means over what they describe; the
        launch is that of the first path.

        Raises
        ------
        InputError
            If there is no path.
        """
        every = list(paths)
        if not every:
            raise InputError("of_paths: there is no path")

        def mean(field: str, weight: str) -> Number:
            weights = [np.asarray(getattr(path, weight), dtype=float) for path in every]
            total = np.sum(weights, axis=0)
            products = [w * getattr(path, field) for w, path in zip(weights, every, strict=True)]
            first = np.asarray(getattr(every[0], field), dtype=float)
            known = total > 0
            return _plain(
                np.where(known, np.sum(products, axis=0) / np.where(known, total, 1), first)
            )

        counts = (
            "comp_insts",
            "uncoal_mem_insts",
            "coal_mem_insts",
            "synch_insts",
            "independent_mem_insts",
        )
        return every[0].replace(
            **{field: sum(getattr(path, field) for path in every) for field in counts},
            uncoal_per_mw=mean("uncoal_per_mw", "uncoal_mem_insts"),
            coal_per_mw=mean("coal_per_mw", "coal_mem_insts"),
            load_bytes_per_warp=mean("load_bytes_per_warp", "mem_insts"),
            m_factor=mean("m_factor", "total_insts"),
        )


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The model's result for a kernel, with every intermediate value (Table 2).

    All values are numbers, or arrays of the shape to which the inputs broadcast. Cycles are SM
    cycles.

    Attributes
    ----------
    active_sms, active_warps_per_sm, rep
        SMs with work, N, and #Rep (Eq. 20, 21).
    mem_l_uncoal, mem_l_coal, mem_l
        Latency of a memory warp (Eq. 10 to 12).
    departure_delay
        Cycles between two memory warps (Eq. 15).
    mwp_without_bw_full, mwp_without_bw, bw_per_warp_gbs, mwp_peak_bw, parallel_warps, mwp
        Memory warp parallelism and what limits it (Eq. 16, 17, 7, 6, 29, 30).
    mem_cycles, comp_cycles, cwp_full, cwp
        Eq. 18, 31, 8, 9.
    case
        22, 23 or 24: the equation of `exec_cycles`; 0 for a kernel without memory instructions.
    exec_cycles, synch_cost, cycles
        Eq. 22 to 24, 26, 28.
    cpi, cpi_with_synch
        Eq. 25, of `exec_cycles` as printed and of `cycles`.
    """

    active_sms: Number
    active_warps_per_sm: Number
    rep: Number
    mem_l_uncoal: Number
    mem_l_coal: Number
    mem_l: Number
    departure_delay: Number
    mwp_without_bw_full: Number
    mwp_without_bw: Number
    bw_per_warp_gbs: Number
    mwp_peak_bw: Number
    parallel_warps: Number
    mwp: Number
    mem_cycles: Number
    comp_cycles: Number
    cwp_full: Number
    cwp: Number
    case: Number
    exec_cycles: Number
    synch_cost: Number
    cycles: Number
    cpi: Number
    cpi_with_synch: Number

    def __post_init__(self) -> None:
        checked_fields(self)

    def to_frame(self) -> pd.DataFrame:
        """Return a row per configuration, in C order of the arrays, and a column per value."""
        values = np.broadcast_arrays(*(getattr(self, f.name) for f in fields(self)))
        names = [f.name for f in fields(self)]
        return pd.DataFrame({n: v.reshape(-1) for n, v in zip(names, values, strict=True)})


def _plain(values: npt.ArrayLike) -> Number:
    array = np.asarray(values, dtype=float)
    return array if array.ndim else float(array)


def _over(above: npt.ArrayLike, below: npt.ArrayLike, otherwise: float) -> Any:
    """Divide, with a value where there is nothing to divide by."""
    above, below = np.broadcast_arrays(np.asarray(above, float), np.asarray(below, float))
    out = np.full(above.shape, float(otherwise))
    return np.divide(above, below, out=out, where=below > 0)


@checked
def predict(
    kernel: KernelDescription, gpu: Machine | Gpu | str, *, mwp: npt.ArrayLike | None = None
) -> Estimate:
    """Predict the execution time of a kernel (Hong and Kim, ISCA 2009).

    Parameters
    ----------
    kernel
        Counts of a warp, and the launch.
    gpu
        A `Machine`, the name of one of the paper's (`machines`), or a GPU with caches, of which
        `Machine.from_gpu` derives one.
    mwp
        Take this memory warp parallelism in place of that of Eq. 30, for example a rounded one.

    Returns
    -------
    Estimate
        An estimate of numbers, or of arrays where the kernel or the machine has some.

    Notes
    -----
    Where the paper prints an equation that cannot be meant: Eq. 29 makes N_pw zero when no access
    is independent; it is at least N here, the number of warps that it refines. Where independent
    accesses make MWP larger than N, Eq. 22 is taken in its form of Eq. 4, which is the same for MWP
    = N. A kernel without memory instructions takes Comp_cycles N #Rep (Eq. 24 without a memory
    period).

    Examples
    --------
    >>> from warpstack.models import mwp_cwp
    >>> tiled = mwp_cwp.KernelDescription(
    ...     threads_per_block=128, num_blocks=80, active_blocks_per_sm=5,
    ...     comp_insts=27, uncoal_mem_insts=6, synch_insts=6)
    >>> example = mwp_cwp.machine("quadro-fx5600").replace(clock_ghz=1, memory_bandwidth_gbs=80)
    >>> round(mwp_cwp.predict(tiled, example).cycles, 2)
    50728.19
    """
    machine, k = as_machine(gpu), kernel
    mem_insts = np.asarray(k.mem_insts, dtype=float)
    total_insts = np.asarray(k.total_insts, dtype=float)
    active_sms = np.where(
        np.asarray(k.active_sms) > 0, k.active_sms, np.minimum(machine.num_sms, k.num_blocks)
    )
    warps_per_block = np.ceil(np.asarray(k.threads_per_block) / WARP_SIZE)
    n = warps_per_block * k.active_blocks_per_sm  # 20
    rep = np.asarray(k.num_blocks) / (np.asarray(k.active_blocks_per_sm) * active_sms)  # 21

    mem_l_uncoal = (
        machine.dram_latency + (np.asarray(k.uncoal_per_mw) - 1) * machine.uncoalesced_departure
    )  # 10
    mem_l_coal = np.asarray(machine.dram_latency, dtype=float)  # 11
    weight_uncoal = _over(k.uncoal_mem_insts, mem_insts, 0)  # 13
    weight_coal = _over(k.coal_mem_insts, mem_insts, 0)  # 14
    mem_l = mem_l_uncoal * weight_uncoal + mem_l_coal * weight_coal  # 12
    departure_delay = (
        machine.uncoalesced_departure * np.asarray(k.uncoal_per_mw) * weight_uncoal
        + machine.coalesced_departure * np.asarray(k.coal_per_mw) * weight_coal
    )  # 15
    without_bw_full = _over(mem_l, departure_delay, np.inf)  # 16
    without_bw = np.minimum(without_bw_full, n)  # 17
    bw_per_warp = _over(np.asarray(machine.clock_ghz) * k.load_bytes_per_warp, mem_l, 0)  # 7
    peak_bw = _over(machine.memory_bandwidth_gbs, bw_per_warp * active_sms, np.inf)  # 6
    dependent = mem_insts - k.independent_mem_insts
    parallel = n * np.maximum(_over(k.independent_mem_insts, dependent, 1), 1)  # 29
    # All of them independent: one period has them all.
    parallel = np.where((dependent <= 0) & (mem_insts > 0), n * mem_insts, parallel)
    if mwp is None:
        # 30; Eq. 17 bounds MWP_Without_BW by N, which N_pw takes the place of.
        found = np.minimum(np.minimum(without_bw_full, peak_bw), parallel)
    else:
        found = np.asarray(mwp, dtype=float)
        if not (found > 0).all():
            raise InputError(f"mwp = {shown(mwp)} is not positive")

    mem_cycles = mem_l_uncoal * k.uncoal_mem_insts + mem_l_coal * k.coal_mem_insts  # 18
    comp_cycles = np.asarray(machine.issue_cycles) * k.m_factor * total_insts  # 31
    cwp_full = (mem_cycles + comp_cycles) / comp_cycles  # 8
    cwp = np.minimum(cwp_full, n)  # 9
    period = _over(comp_cycles, mem_insts, 0)  # 2
    too_few_warps = (found >= n) & (cwp >= n)
    by_memory = (cwp >= found) | (comp_cycles > mem_cycles)
    overlap = period * np.maximum(found - 1, 0)
    one_pass = np.select(
        [mem_insts == 0, too_few_warps, by_memory],
        [
            comp_cycles * n,
            (mem_cycles + comp_cycles) * n / found + overlap,
            mem_cycles * n / found + overlap,
        ],
        mem_l + comp_cycles * n,
    )
    case = np.select([mem_insts == 0, too_few_warps, by_memory], [0, 22, 23], 24)
    exec_cycles = one_pass * rep
    waiting_warps = np.minimum(found, warps_per_block)  # 27
    synch_cost = (
        departure_delay
        * np.maximum(waiting_warps - 1, 0)
        * k.synch_insts
        * k.active_blocks_per_sm
        * rep
    )  # 26
    cycles = exec_cycles + synch_cost  # 28
    # 25: Threads / 32 as printed, also where the last warp of a block is not full.
    instructions = total_insts * np.asarray(k.threads_per_block) / WARP_SIZE
    instructions = instructions * k.num_blocks / active_sms
    values = {
        "active_sms": active_sms,
        "active_warps_per_sm": n,
        "rep": rep,
        "mem_l_uncoal": mem_l_uncoal,
        "mem_l_coal": mem_l_coal,
        "mem_l": mem_l,
        "departure_delay": departure_delay,
        "mwp_without_bw_full": without_bw_full,
        "mwp_without_bw": without_bw,
        "bw_per_warp_gbs": bw_per_warp,
        "mwp_peak_bw": peak_bw,
        "parallel_warps": parallel,
        "mwp": found,
        "mem_cycles": mem_cycles,
        "comp_cycles": comp_cycles,
        "cwp_full": cwp_full,
        "cwp": cwp,
        "case": case,
        "exec_cycles": exec_cycles,
        "synch_cost": synch_cost,
        "cycles": cycles,
        "cpi": exec_cycles / instructions,
        "cpi_with_synch": cycles / instructions,
    }
    return Estimate(**{name: _plain(value) for name, value in values.items()})
