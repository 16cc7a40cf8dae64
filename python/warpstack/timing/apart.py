"""Simulations of launches that need nothing of each other, on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any

from warpstack import _core
from warpstack._util.progress import progress_bar
from warpstack.traces.cluster import check_client, run_on_cluster
from warpstack.traces.trace import KernelTrace

if TYPE_CHECKING:
    import distributed
    import numpy as np

__all__ = ["ResultValues", "simulated_apart"]


@dataclass(frozen=True)
class ResultValues:
    """The core's results of a simulation, as values that can be sent to another machine."""

    cycles: int
    instructions: int
    tensor_cycles: int
    active_sms: int
    sm_cycles: int
    l1_size_bytes: int
    slots: dict[str, float]
    details: dict[str, float]
    store_slots: float
    critical_cycles: float
    misses: int
    miss_cycles: dict[str, float]
    totals: dict[str, int]
    occupancy: dict[str, Any]
    samples: dict[str, np.ndarray[Any, Any]]
    row_slots: dict[str, dict[str, np.ndarray[Any, Any]]]

    @classmethod
    def of(cls, core: _core.SimulationResult) -> ResultValues:
        """Return the values of a result."""
        return cls(**{field.name: getattr(core, field.name) for field in fields(cls)})


def simulated_apart(
    kernels: Sequence[KernelTrace],
    run: Callable[[KernelTrace], _core.SimulationResult | ResultValues],
    client: distributed.Client,
    *,
    progress: bool,
) -> list[ResultValues]:
    """Simulate each kernel on a cluster, and return what each did in order.

    `run` simulates one from an empty L2, on a worker, to which it goes as a pickle.
    """
    check_client(client)
    work = partial(_values_of_first, run)
    tasks = [(number, number, None) for number in range(len(kernels))]
    apps = [(kernel,) for kernel in kernels]
    found: dict[int, ResultValues] = {}
    total = sum(kernel.num_instructions for kernel in kernels)
    results: Iterator[tuple[int, ResultValues]]
    with progress_bar(progress, total, "simulating", "instruction") as bar:
        results = run_on_cluster(client, apps, tasks, work, shared=False)
        for number, result in results:
            found[number] = result
            bar.update(kernels[number].num_instructions)
    return [found[number] for number in range(len(kernels))]


def _values_of_first(
    run: Callable[[KernelTrace], _core.SimulationResult | ResultValues],
    kernels: tuple[KernelTrace, ...],
    _: None,
) -> ResultValues:
    found = run(kernels[0])
    return found if isinstance(found, ResultValues) else ResultValues.of(found)
