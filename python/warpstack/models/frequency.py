"""Performance against core frequency: the models, CRISP, and the simulator."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warpstack._util.checked import checked, checked_fields
from warpstack._util.choices import DEFAULT_MODEL
from warpstack._util.former import former_keywords
from warpstack._util.lazy import pandas as pd
from warpstack._util.options import Options, TimeChanges, options_of
from warpstack._util.progress import progress_bar
from warpstack.errors import InputError, shown
from warpstack.hardware.description import Gpu, GpuLike, as_gpu, check_gigahertz
from warpstack.hardware.profiler import times
from warpstack.models import prediction
from warpstack.models.pipeline import Found, Pipeline
from warpstack.tables import result_table, row, settings_of
from warpstack.timing.simulation import MODEL_NAME, SimulationResult, Simulator
from warpstack.traces.trace import App, KernelTrace, warn_of_samples

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["CrispCounters", "dvfs"]

#: The name of the CRISP model in `dvfs`.
CRISP = "crisp"
#: Parts of a CPI stack that are time outside the SM's clock domain.
_MEMORY_PARTS = ("mshr", "noc", "queue", "dram")


@dataclass(frozen=True)
class CrispCounters:
    """CRISP's inputs at the nominal frequency (Nath and Tullsen, MICRO 2015): cycles of an SM.

    Attributes
    ----------
    cycles
        Cycles until the last warp of the SM was done.
    load_critical
        Memory time on the longest chain of loads of which each was issued after the one before had
        its data: the load critical path.
    load_stall
        Cycles in which no warp could issue because of the memory time of loads.
    store_stall
        Cycles in which no warp could issue because stores waited for the memory system.
    """

    cycles: float
    load_critical: float
    load_stall: float
    store_stall: float

    def __post_init__(self) -> None:
        checked_fields(self)
        for name, value in vars(self).items():
            if not (math.isfinite(value) and value >= 0):
                raise InputError(f"CRISP: {name} = {shown(value)} is not a number of cycles")

    @classmethod
    @checked
    def of(cls, result: SimulationResult) -> CrispCounters:
        """Read the counters of a simulation: means over the SMs with work."""
        sms = max(result.active_sms, 1)
        cycles = result._core.sm_cycles / sms
        slots = result._core.slots
        gpu = result.gpu
        parts = [*_MEMORY_PARTS, *(["l2"] if gpu.l2_clock_ghz else [])]
        waiting = sum(slots[part] for part in parts)
        beyond_l1 = gpu.l2_latency + gpu.dram_latency
        if not gpu.l2_clock_ghz and beyond_l1:
            # Loads that wait for DRAM count their way through L2, which is at the clock of the SM.
            waiting -= slots["dram"] * gpu.l2_latency / beyond_l1
        total = sum(slots.values())
        per_slot = cycles / total if total else 0.0
        store_stall = result.store_stall_slots * per_slot
        return cls(
            cycles=cycles,
            load_critical=result.load_critical_cycles / sms,
            load_stall=max(waiting * per_slot - store_stall, 0.0),
            store_stall=store_stall,
        )

    @property
    def overlapped_compute(self) -> float:
        """Cycles of the load critical path in which the SM computes."""
        return max(self._critical - self.load_stall, 0.0)

    @property
    def other_compute(self) -> float:
        """Cycles outside the load critical path, without store stalls."""
        return max(self.cycles - self._critical - self.store_stall, 0.0)

    @property
    def _critical(self) -> float:
        return min(self.load_critical, max(self.cycles - self.store_stall, 0.0))

    @checked
    def relative_time(self, clock_ratio: float) -> float:
        """Return the time at another frequency, in that at the nominal one.

        The load critical path takes its time until the computation overlapped with it, slowed down,
        takes longer; what is outside takes the time of the slowed computation, but store stalls
        give way to it first.

        Parameters
        ----------
        clock_ratio
            The frequency over the nominal one, at most 1: CRISP says what lowering it costs.

        Raises
        ------
        InputError
            If the ratio is not above 0 and at most 1.
        """
        if not 0 < clock_ratio <= 1:
            raise InputError(
                f"CRISP: clock ratio {shown(clock_ratio)} is not above 0 and at most 1; take the highest "
                "frequency for the nominal one"
            )
        if not self.cycles:
            return 1.0
        slower = 1 / clock_ratio
        loads = max(self._critical, self.overlapped_compute * slower)
        rest = max(self.other_compute * slower, self.other_compute + self.store_stall)
        return (loads + rest) / self.cycles


@former_keywords(app_or_kernel="app")
@checked
def dvfs(
    app: App | KernelTrace,
    gpu: GpuLike,
    clocks_ghz: Iterable[float],
    models: str | Iterable[str] = (DEFAULT_MODEL,),
    *,
    options: Options | None = None,
    progress: bool = False,
    **changes: Unpack[TimeChanges],
) -> pd.DataFrame:
    """Predict performance against the frequency of the SMs.

    Latencies in the SMs' clock domain stay in cycles; those of DRAM, and of L2 where it has a clock
    of its own, stay in nanoseconds; bandwidths stay (see `Gpu.replace`). The caches are simulated
    once.

    Parameters
    ----------
    app
        An application, whose kernels share an L2 in order, or one kernel.
    gpu
        The GPU; its clock is the nominal one.
    clocks_ghz
        Frequencies of the SMs, GHz.
    models
        Names of models (`warpstack.models.names`), ``crisp``, which predicts from counters of a
        simulation at the nominal frequency and no higher than that, and ``simulation``.
    options, **changes
        How the stages work; see `warpstack.Options`: ``selection``, ``misses``, ``merge_threshold``,
        ``access_order``, ``flush_l2``, ``initial_l2``, ``profiler``.
        Simulations empty their L2 between kernels, too; the clocks are those given, whatever the profiler.
    progress
        Show a progress bar on standard error.

    Returns
    -------
    DataFrame
        One row per kernel, model and frequency: ``kernel``, ``name``, ``gpu``, ``gpu_changes``,
        ``model``, ``clock_ghz``, ``instructions``, ``cycles``, ``time_us`` (as the profiler reports it,
        launch included), ``launch_us``, ``ipc``,
        ``relative_time`` (to the same model at the nominal frequency), ``initial_l2``, ``profiler``,
        ``trace_digest``, ``gpu_digest`` (of the nominal description), ``version``. The nominal frequency
        comes first, then the others as given.

    Raises
    ------
    InputError
        If a name or a frequency is wrong.
    """
    gpu = as_gpu(gpu)
    how = options_of("dvfs", options, changes, TimeChanges)
    wanted = [models] if isinstance(models, str) else list(models)
    clocks = _clocks(gpu, clocks_ghz)
    analytical = [name for name in wanted if name not in (CRISP, MODEL_NAME)]
    if analytical or not wanted:
        analytical = prediction.model_list(analytical)
    if CRISP in wanted and max(clocks) > gpu.clock_ghz:
        raise InputError(
            f"crisp predicts no clock above the nominal one, {gpu.clock_ghz:g} GHz; got "
            f"{max(clocks):g}"
        )
    simulates = CRISP in wanted or MODEL_NAME in wanted
    prediction.warn_of_unread(how, analytical, counts_write_backs=simulates)
    pipeline = Pipeline(app, how)
    warn_of_samples(pipeline.kernels, "dvfs")
    described = {clock: gpu.replace(clock_ghz=clock) for clock in clocks}
    simulated = [c for c in clocks if MODEL_NAME in wanted or (CRISP in wanted and c == clocks[0])]
    simulators = {
        clock: Simulator(described[clock], initial_l2=how.written_share) for clock in simulated
    }
    settings = settings_of(how)
    rows: list[dict[str, Any]] = []

    def add(kernel: KernelTrace, model: str, clock: float, count: float, cycles: float) -> None:
        values = {
            "clock_ghz": clock,
            "instructions": int(count),
            "cycles": cycles,
            **times(cycles, described[clock], how.profiler),
            "ipc": count / cycles if cycles else 0.0,
        }
        rows.append(row(kernel, gpu, model, values, settings))

    with progress_bar(progress, len(pipeline.kernels), "frequencies", "kernel") as bar:
        needs = prediction.needs_of(analytical)
        # The caches know nothing of the clock; interval simulation does.
        memories = pipeline.memory(gpu) if needs.profiles else None
        launches = {
            clock: pipeline.simulated(one) for clock, one in described.items() if needs.simulation
        }
        for number, kernel in enumerate(pipeline.kernels):
            results = {}
            for clock, simulator in simulators.items():
                if how.flush_l2:
                    simulator.flush_l2()
                results[clock] = simulator.run(kernel)
            if analytical:
                memory = None if memories is None else next(memories)
                for clock, one in described.items():
                    found = Found(
                        kernel,
                        memory,
                        None if memory is None else pipeline.interval(number, one, memory),
                        next(launches[clock]) if launches else None,
                    )
                    for said in prediction.predictions_of(found, one, analytical):
                        add(kernel, said.model, clock, said.instructions, said.cycles)
            if CRISP in wanted:
                nominal = results[clocks[0]]
                counters = CrispCounters.of(nominal)
                for clock in clocks:
                    ratio = clock / gpu.clock_ghz
                    cycles = nominal.cycles * counters.relative_time(ratio) * ratio
                    add(kernel, CRISP, clock, nominal.instructions, cycles)
            if MODEL_NAME in wanted:
                for clock in clocks:
                    result = results[clock]
                    add(kernel, MODEL_NAME, clock, result.instructions, float(result.cycles))
            bar.update(1)
    table = pd.DataFrame(rows)
    keys = ["kernel", "trace_digest", "model"]
    nominal_time = table.groupby(keys, sort=False)["time_us"].transform("first")
    table.insert(
        list(table.columns).index("ipc") + 1, "relative_time", table["time_us"] / nominal_time
    )
    return result_table(table)


def _clocks(gpu: Gpu, clocks_ghz: Iterable[float]) -> list[float]:
    """Return the nominal clock and the others, each once."""
    try:
        given = [float(clock) for clock in clocks_ghz]
    except (TypeError, ValueError):
        raise InputError(f"clocks_ghz = {shown(clocks_ghz)} is not a list of numbers") from None
    for clock in given:
        if not (math.isfinite(clock) and clock > 0):
            raise InputError(f"clocks_ghz: {shown(clock)} GHz is not a positive clock")
        check_gigahertz(clock, "clocks_ghz")
    return list(dict.fromkeys([float(gpu.clock_ghz), *given]))
