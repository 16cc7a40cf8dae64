"""The way from a trace to what the models read: representative warps, caches, intervals.

One prediction, a sweep, sliders, a roofline and frequencies all go this way. Interval simulation
reads the traces themselves.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from warpstack import _core
from warpstack._util.options import Options
from warpstack.hardware.description import Gpu
from warpstack.hardware.stages import values_of
from warpstack.interval.profile import (
    INTERVAL_FIELDS,
    IntervalProfile,
    profile_of,
    representative_warp,
)
from warpstack.memory.caches import (
    MemoryProfile,
    MemorySystem,
    cache_fields,
)
from warpstack.models import interval_simulation
from warpstack.models.interval_simulation import IntervalSimulator, SimulatedLaunch
from warpstack.traces.trace import App, KernelTrace, kernels_of, nothing_launched

__all__ = ["Found", "Memo", "Needs", "Pipeline", "Recent"]

#: Position of a warp: its block in the trace, and itself in the block.
Warp = tuple[int, int]
#: The inputs of a result besides the traces, by name.
Settings = Mapping[str, Any]


class Memo(Protocol):
    """Results of the stages of one application that are kept, by what they depend on.

    The stages are ``warp`` (the representative warp of each kernel), ``memory`` (what the caches do
    with each, as the core has it), ``interval`` (an `IntervalProfile` of each) and
    ``interval_simulation`` (a `SimulatedLaunch` of each).
    """

    def get(self, stage: str, settings: Settings) -> Sequence[Any] | None:
        """Return a result with an entry per kernel, or None where it is not kept."""

    def put(self, stage: str, settings: Settings, results: Sequence[Any]) -> None:
        """Keep a result."""


class Recent:
    """A memo in memory of the results of each stage that were used last.

    Parameters
    ----------
    kept
        Number of results of a stage.
    """

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._results: dict[str, OrderedDict[tuple[Any, ...], Sequence[Any]]] = {}

    def get(self, stage: str, settings: Settings) -> Sequence[Any] | None:
        """Return a result, which is then the one used last."""
        results = self._results.get(stage, OrderedDict())
        key = tuple(settings.items())
        if key in results:
            results.move_to_end(key)
        return results.get(key)

    def put(self, stage: str, settings: Settings, results: Sequence[Any]) -> None:
        """Keep a result; the one used least recently goes."""
        kept = self._results.setdefault(stage, OrderedDict())
        kept[tuple(settings.items())] = results
        while len(kept) > self._kept:
            kept.popitem(last=False)


@dataclass(frozen=True)
class Needs:
    """What some models read of a launch.

    Attributes
    ----------
    profiles
        Its intervals.
    simulation
        What interval simulation finds of it.
    """

    profiles: bool
    simulation: bool


@dataclass(frozen=True)
class Found:
    """What the stages found of a launch; None for what no model needs.

    Attributes
    ----------
    kernel
        The launch.
    memory, profile
        What the caches do with it, where the stages were run for it alone; and its intervals.
    simulated
        What interval simulation found.
    """

    kernel: KernelTrace
    memory: MemoryProfile | None = None
    profile: IntervalProfile | None = None
    simulated: SimulatedLaunch | None = None


class Pipeline:
    """The stages of an application, from its traces to the intervals that the models read.

    Threads can share one whose memo they can share.

    Parameters
    ----------
    app
        An application, whose kernels share an L2 in order, or one kernel.
    options
        How the stages work.
    memo
        Where results of the stages are kept; None: nowhere.

    Attributes
    ----------
    kernels
        The kernels in order.
    options
        The options.

    Raises
    ------
    InputError
        If the application has no kernels.
    """

    def __init__(
        self,
        app: App | KernelTrace | Iterable[KernelTrace],
        options: Options,
        *,
        memo: Memo | None = None,
    ) -> None:
        self.kernels = kernels_of(app) if isinstance(app, (App, KernelTrace)) else tuple(app)
        if not self.kernels:
            raise nothing_launched(app, "predict")
        self.options = options
        self._memo = memo
        self._lock = threading.Lock()
        self._warps: list[Warp | None] | None = None

    @property
    def memory_fields(self) -> frozenset[str]:
        """Fields of `Gpu` that the memory stage reads."""
        return cache_fields(self.options.access_order)

    def warp(self, number: int, num_threads: int = 0) -> Warp:
        """Return the representative warp of a kernel, chosen once."""
        with self._lock:
            settings = {"selection": self.options.selection}
            if self._warps is None:
                kept = self._memo.get("warp", settings) if self._memo else None
                self._warps = [None] * len(self.kernels) if kept is None else list(kept)
            chosen = self._warps[number]
            if chosen is None:
                chosen = representative_warp(
                    self.kernels[number], self.options.selection, workers=num_threads or None
                )
                self._warps[number] = chosen
                if self._memo is not None and None not in self._warps:
                    self._memo.put("warp", settings, self._warps)
            return chosen

    def warps(self, num_threads: int = 0) -> list[Warp]:
        """Return the representative warp of every kernel."""
        return [self.warp(number, num_threads) for number in range(len(self.kernels))]

    def memory(self, gpu: Gpu, num_threads: int = 0) -> Iterator[MemoryProfile]:
        """Yield what the caches do with each kernel, in order.

        Raises
        ------
        InputError
            If a thread block does not fit on an SM.
        """
        options, memo = self.options, self._memo
        settings = self._memory_settings(gpu, num_threads) if memo is not None else {}
        kept = None if memo is None else memo.get("memory", settings)
        if kept is not None:
            for core, kernel in zip(kept, self.kernels, strict=True):
                yield MemoryProfile(core, kernel, gpu, options.access_order, options.written_share)
            return
        system = MemorySystem(
            gpu,
            access_order=options.access_order,
            workers=num_threads or None,
            initial_l2=options.written_share,
        )
        cores: list[_core.MemoryProfile] = []
        for number, kernel in enumerate(self.kernels):
            observed = self.warp(number, num_threads) if options.observes else None
            if options.flush_l2:
                system.flush_l2()
            profile = system.run(kernel, observe=observed)
            if memo is not None:
                cores.append(profile._core)
            yield profile
        if memo is not None:
            memo.put("memory", settings, cores)

    def interval(
        self, number: int, gpu: Gpu, memory: MemoryProfile, num_threads: int = 0
    ) -> IntervalProfile:
        """Return the intervals of a kernel, given what the caches do with it."""
        warp = self.warp(number, num_threads)
        workers = num_threads or None
        return profile_of(self.kernels[number], gpu, memory, warp, self.options, workers)

    def profiles(
        self, gpu: Gpu, num_threads: int = 0, *, caches_of: Gpu | None = None
    ) -> Sequence[IntervalProfile]:
        """Return the intervals of every kernel, which the memo keeps.

        The caches do what they do on the GPU `caches_of`; None: on `gpu` itself.
        """
        memo = self._memo
        caches_of = caches_of or gpu
        settings: dict[str, Any] = {}
        if memo is not None:
            settings = self._memory_settings(caches_of, num_threads)
            settings["latencies"] = values_of(gpu, INTERVAL_FIELDS)
            kept: Sequence[IntervalProfile] | None = memo.get("interval", settings)
            if kept is not None:
                return kept
        profiles = [
            self.interval(number, gpu, memory, num_threads)
            for number, memory in enumerate(self.memory(caches_of, num_threads))
        ]
        if memo is not None:
            memo.put("interval", settings, profiles)
        return profiles

    def simulated(self, gpu: Gpu) -> Iterator[SimulatedLaunch]:
        """Yield what interval simulation finds of each kernel, in order.

        Raises
        ------
        InputError
            If a thread block does not fit on an SM.
        """
        memo = self._memo
        settings = {
            "gpu": values_of(gpu, interval_simulation.FIELDS),
            **self.options.l2_identity,
        }
        kept = None if memo is None else memo.get(interval_simulation.NAME, settings)
        if kept is not None:
            yield from kept
            return
        simulator = IntervalSimulator(gpu, self.options.written_share)
        launches = []
        for kernel in self.kernels:
            if self.options.flush_l2:
                simulator.flush_l2()
            launches.append(simulator.run(kernel))
            yield launches[-1]
        if memo is not None:
            memo.put(interval_simulation.NAME, settings, launches)

    def found(self, gpu: Gpu, needs: Needs) -> Iterator[Found]:
        """Yield what models need of each kernel, in order."""
        nothing = [None] * len(self.kernels)
        launches = zip(
            self.kernels,
            self.memory(gpu) if needs.profiles else nothing,
            self.simulated(gpu) if needs.simulation else nothing,
            strict=True,
        )
        for number, (kernel, memory, simulated) in enumerate(launches):
            profile = None if memory is None else self.interval(number, gpu, memory)
            yield Found(kernel, memory, profile, simulated)

    def all_found(self, gpu: Gpu, needs: Needs, *, caches_of: Gpu | None = None) -> list[Found]:
        """Return what models need of every kernel, which the memo keeps.

        Where profiles are needed, the caches do what they do on the GPU `caches_of`; None: on `gpu` itself.
        """
        nothing = [None] * len(self.kernels)
        return [
            Found(kernel, profile=profile, simulated=simulated)
            for kernel, profile, simulated in zip(
                self.kernels,
                self.profiles(gpu, caches_of=caches_of) if needs.profiles else nothing,
                self.simulated(gpu) if needs.simulation else nothing,
                strict=True,
            )
        ]

    def _memory_settings(self, gpu: Gpu, num_threads: int) -> dict[str, Any]:
        """Return what the memory stage depends on beside the traces."""
        options = self.options
        return {
            "gpu": values_of(gpu, self.memory_fields),
            "access_order": options.access_order,
            **options.l2_identity,
            "observed": tuple(self.warps(num_threads)) if options.observes else (),
        }
