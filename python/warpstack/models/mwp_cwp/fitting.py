"""The memory parameters from micro-benchmarks (Hong and Kim, ISCA 2009, Section 5.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from warpstack._util.checked import checked, checked_fields
from warpstack.errors import InputError, shown, unknown
from warpstack.hardware.description import Gpu
from warpstack.models.mwp_cwp.machine import Machine, as_machine
from warpstack.models.mwp_cwp.model import KernelDescription, predict

__all__ = ["FITTED", "MICROBENCHMARKS", "Fit", "fit", "microbenchmark"]

#: Memory and computation instructions of the loop of each micro-benchmark (Table 4).
MICROBENCHMARKS = {
    "Mb1": (0, 23),
    "Mb2": (1, 17),
    "Mb3": (1, 29),
    "Mb4": (2, 27),
    "Mb5": (2, 35),
    "Mb6": (4, 47),
    "Mb7": (6, 59),
}
#: The results of `fit`.
FITTED = ("dram_latency", "uncoalesced_departure", "coalesced_departure")

#: Points of the grid along each parameter, and how often it shrinks around the best point.
_POINTS = 9
_ROUNDS = 24


@checked
def microbenchmark(
    name: str,
    *,
    coalesced: bool,
    threads_per_block: int = 128,
    num_blocks: int = 80,
    active_blocks_per_sm: int = 5,
    iterations: int = 1000,
    uncoal_per_mw: float = 32,
) -> KernelDescription:
    """Describe a micro-benchmark (Table 4): a loop of loads and floating-point instructions.

    Raises
    ------
    InputError
        If no micro-benchmark has that name.
    """
    if name not in MICROBENCHMARKS:
        raise unknown("micro-benchmark", name, MICROBENCHMARKS)
    memory, computation = MICROBENCHMARKS[name]
    return KernelDescription(
        name=f"{name}_{'C' if coalesced else 'UC'}",
        threads_per_block=threads_per_block,
        num_blocks=num_blocks,
        active_blocks_per_sm=active_blocks_per_sm,
        comp_insts=computation * iterations,
        coal_mem_insts=memory * iterations if coalesced else 0,
        uncoal_mem_insts=0 if coalesced else memory * iterations,
        uncoal_per_mw=uncoal_per_mw,
    )


@dataclass(frozen=True)
class Fit:
    """Memory parameters that measurements suggest.

    Attributes
    ----------
    machine
        The machine with these parameters.
    table
        One row per micro-benchmark: ``kernel``, ``measured`` and ``predicted`` CPI,
        ``error_percent``.
    error_percent
        Geometric mean of 1 + the absolute relative errors, less 1, in percent.
    """

    machine: Machine
    table: pd.DataFrame
    error_percent: float

    def __post_init__(self) -> None:
        checked_fields(self)


@checked
def fit(
    measurements: Mapping[str, tuple[KernelDescription, float]], gpu: Machine | Gpu | str
) -> Fit:
    """Find Mem_LD and the departure delays that explain measured CPIs best (Section 5.1).

    The parameters minimise the sum of the squared logarithms of predicted over measured CPI: a grid
    of all three, from a hundredth to a hundred times the machine's own values at first, shrinks
    around its best point: the result does not depend on slopes, which the minima of Eq. 5 do not
    have everywhere.

    Parameters
    ----------
    measurements
        Per name a description and the measured CPI (Eq. 25).
    gpu
        Everything else of the machine.

    Raises
    ------
    InputError
        If a CPI is not positive, or there are fewer measurements with memory instructions than
        parameters that they depend on.

    Notes
    -----
    Without coalesced accesses the measurements do not depend on `coalesced_departure`, and without
    uncoalesced ones not on `uncoalesced_departure`: such a parameter keeps the machine's value. So
    does one that never decides MWP, up to the grid: `table` says how well the rest explains.
    """
    machine = as_machine(gpu)
    for name, (_, cpi) in measurements.items():
        if not (np.isfinite(cpi) and cpi > 0):
            raise InputError(f"fit: the CPI of {name}, {shown(cpi)}, is not positive")
    kernels = [kernel for kernel, _ in measurements.values()]
    measured = np.array([float(cpi) for _, cpi in measurements.values()])
    wanted = ["dram_latency"]
    if any(np.any(np.asarray(k.uncoal_mem_insts) > 0) for k in kernels):
        wanted.append("uncoalesced_departure")
    if any(np.any(np.asarray(k.coal_mem_insts) > 0) for k in kernels):
        wanted.append("coalesced_departure")
    informative = sum(bool(np.any(np.asarray(k.mem_insts) > 0)) for k in kernels)
    if informative < len(wanted):
        raise InputError(
            f"fit: {informative} measurements with memory instructions cannot tell "
            f"{len(wanted)} parameters; measure more micro-benchmarks"
        )

    centre = {
        name: float(np.exp(np.mean(np.log(np.asarray(getattr(machine, name), dtype=float)))))
        for name in FITTED
    }
    reach = np.log(100.0)
    for _ in range(_ROUNDS):
        steps = np.exp(np.linspace(-reach, reach, _POINTS))
        axes = np.meshgrid(*(centre[name] * steps for name in wanted), indexing="ij")
        grid = dict(zip(wanted, axes, strict=True))
        candidate = machine.replace(**grid)
        loss = np.zeros(axes[0].shape)
        for kernel, cpi in zip(kernels, measured, strict=True):
            loss += np.log(np.asarray(predict(kernel, candidate).cpi) / cpi) ** 2
        # The middle one of equally good points: parameters that decide nothing stay.
        distance = sum(np.log(grid[name] / centre[name]) ** 2 for name in wanted)
        good = loss <= loss.min() * (1 + 1e-12) + 1e-15
        best = np.unravel_index(int(np.argmin(np.where(good, distance, np.inf))), loss.shape)
        centre |= {name: float(grid[name][best]) for name in wanted}
        reach *= 0.6
    fitted = machine.replace(**{name: centre[name] for name in wanted})
    predicted = np.array([float(np.asarray(predict(k, fitted).cpi)) for k in kernels])
    errors = np.abs(predicted / measured - 1)
    table = pd.DataFrame(
        {
            "kernel": list(measurements),
            "measured": measured,
            "predicted": predicted,
            "error_percent": 100 * (predicted / measured - 1),
        }
    )
    return Fit(fitted, table, 100 * float(np.exp(np.log1p(errors).mean()) - 1))
