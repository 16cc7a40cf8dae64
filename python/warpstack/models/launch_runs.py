"""Predictions of some launches of an application: here, or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from warpstack._util.options import Options
from warpstack.hardware.description import Gpu
from warpstack.memory.caches import MemorySystem
from warpstack.models.interval_simulation import IntervalSimulator
from warpstack.models.pipeline import Found, Needs, Pipeline
from warpstack.traces.cluster import run_on_cluster
from warpstack.traces.trace import KernelTrace

if TYPE_CHECKING:
    import distributed

__all__ = ["Run", "predicted_runs", "runs_of"]

#: Warp instructions of a run of launches that do not share an L2: some tenths of a second.
_RUN_INSTRUCTIONS = 2_000_000
#: Launches of such a run at most.
_RUN_LAUNCHES = 200

Result = TypeVar("Result")


@dataclass(frozen=True)
class Run:
    """Launches that one L2 sees in order.

    Attributes
    ----------
    launches
        Their positions in the application, ascending.
    wanted
        Those of them that are predicted; of the others L2 sees the accesses, for which interval simulation
        runs them, too.
    """

    launches: Sequence[int]
    wanted: frozenset[int]


def runs_of(kernels: Sequence[KernelTrace], wanted: Sequence[int], options: Options) -> list[Run]:
    """Return the runs that predict some launches of an application.

    Where L2 keeps its contents, one run has all launches up to the last wanted one. Where it is
    empty before each, the wanted ones are divided into runs that need nothing of each other.

    Parameters
    ----------
    kernels
        The launches of the application.
    wanted
        Positions of those to predict, ascending.
    options
        Whether L2 is emptied.
    """
    if not wanted:
        return []
    if not options.flush_l2:
        return [Run(range(wanted[-1] + 1), frozenset(wanted))]
    runs = []
    chosen: list[int] = []
    work = 0
    for position in wanted:
        chosen.append(position)
        work += kernels[position].num_instructions
        if work >= _RUN_INSTRUCTIONS or len(chosen) == _RUN_LAUNCHES:
            runs.append(Run(tuple(chosen), frozenset(chosen)))
            chosen, work = [], 0
    if chosen:
        runs.append(Run(tuple(chosen), frozenset(chosen)))
    return runs


def predicted_runs(
    kernels: Sequence[KernelTrace],
    runs: Sequence[Run],
    gpu: Gpu,
    options: Options,
    needs: Needs,
    evaluate: Callable[[Found], Result],
    client: distributed.Client | None,
) -> Iterator[tuple[int, Result]]:
    """Yield the position of each wanted launch and what the models say of it.

    Each run begins with the same in L2, so that neither the order of the runs nor the machine that
    computes one changes a result.

    Parameters
    ----------
    kernels
        The launches of the application.
    runs
        Which of them run, and which of these are predicted.
    gpu, options
        The GPU, and how predictions are made.
    needs
        What the models read.
    evaluate
        The models; for a cluster a function that can be pickled.
    client
        A Dask cluster; None: this process.
    """
    if client is None:
        for run in runs:
            launches = [kernels[position] for position in run.launches]
            yield from _predicted(gpu, options, needs, evaluate, launches, run)
        return
    work = partial(_predicted_list, gpu, options, needs, evaluate)
    apps = [[kernels[position] for position in run.launches] for run in runs]
    tasks = [(number, number, run) for number, run in enumerate(runs)]
    for _, found in run_on_cluster(client, apps, tasks, work, shared=False):
        yield from found


def _predicted(
    gpu: Gpu,
    options: Options,
    needs: Needs,
    evaluate: Callable[[Found], Result],
    launches: Sequence[KernelTrace],
    run: Run,
) -> Iterator[tuple[int, Result]]:
    pipeline = Pipeline(launches, options)
    written = options.written_share
    system = (
        MemorySystem(gpu, access_order=options.access_order, initial_l2=written)
        if needs.profiles
        else None
    )
    simulator = IntervalSimulator(gpu, written) if needs.simulation else None
    for number, position in enumerate(run.launches):
        kernel = launches[number]
        simulated = None
        if simulator is not None:
            if options.flush_l2:
                simulator.flush_l2()
            simulated = simulator.run(kernel)
        memory = profile = None
        if system is not None:
            if position not in run.wanted:
                system.warm(kernel)
                continue
            if options.flush_l2:
                system.flush_l2()
            observed = pipeline.warp(number) if options.observes else None
            memory = system.run(kernel, observe=observed)
            profile = pipeline.interval(number, gpu, memory)
        if position in run.wanted:
            yield position, evaluate(Found(kernel, memory, profile, simulated))


def _predicted_list(
    gpu: Gpu,
    options: Options,
    needs: Needs,
    evaluate: Callable[[Found], Result],
    launches: tuple[KernelTrace, ...],
    run: Run,
) -> list[tuple[int, Result]]:
    return list(_predicted(gpu, options, needs, evaluate, launches, run))
