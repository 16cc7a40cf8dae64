"""Computations of figures for an application: functions to tidy tables, cached by `Study`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from warpstack import workloads
from warpstack._util.choices import Selection
from warpstack.hardware.description import Gpu
from warpstack.hardware.description import gpu as named_gpu
from warpstack.interval.profile import representative_warp
from warpstack.memory.ablation import ablate
from warpstack.memory.caches import MemorySystem, hit_rates
from warpstack.memory.reuse import PptGpuMem, ppt_gpu_mem, reuse_profile
from warpstack.models import prediction
from warpstack.models.frequency import dvfs
from warpstack.tables import STACK
from warpstack.timing import simulation
from warpstack.traces.trace import App, KernelTrace

_STACK = list(STACK)


_PREDICTED = ("kernel", "name", "model", "instructions", "cycles")
_TRAFFIC = (
    *("l1_hit_rate", "l1_global_load_hit_rate", "l2_hit_rate", "l2_read_hit_rate"),
    *("l2_reads", "l2_writes", "dram_reads", "dram_writes", "dram_total"),
)
#: Columns that the table of each stage has at least.
COLUMNS: Mapping[str, Sequence[str]] = {
    "performance": (
        *(*_PREDICTED, "ipc", "cpi", *_STACK),
        *(f"miss_{part}" for part in simulation.LATENCY_PARTS),
        *("misses", "seconds"),
    ),
    "predictions": _PREDICTED,
    "selections": (*_PREDICTED, "ipc", "cpi", "control_divergent"),
    "divergence": ("instructions", "dpki"),
    "frequencies": ("model", "clock_ghz", "time_us"),
    "costs": ("simulation", "tracing", "selection", "prediction"),
    "caches": ("kernel", "name", "source", "l2_total", *_TRAFFIC),
    "ablations": ("variant", "kernel", "name", *_TRAFFIC),
    "locality": ("name", "filtered", "lines", "share"),
}
#: Columns that hold text.
TEXTS = ("name", "model", "source", "variant")


def performance(
    app: App,
    *,
    gpu: str,
    changes: Mapping[str, Any],
    models: Sequence[str],
    selection: Selection = "clustering",
) -> pd.DataFrame:
    """Simulate and predict: a row per kernel and model, the simulation's with the latency of misses.

    ``seconds`` is what the simulation took, and all models together.
    """
    target = _changed(gpu, changes)
    start = time.perf_counter()
    results = simulation.simulate(app, target)
    middle = time.perf_counter()
    simulated = simulation.as_table(results)
    latency = pd.DataFrame([result.miss_latency["cycles"].to_dict() for result in results])
    latency = latency.add_prefix("miss_").assign(misses=[result.misses for result in results])
    simulated = pd.concat([simulated, latency], axis=1).assign(seconds=middle - start)
    predicted = _predict(app, target, models, selection)
    predicted["seconds"] = time.perf_counter() - middle
    columns = ["kernel", "name", "model", "instructions", "cycles", "ipc", "cpi", *_STACK]
    columns += [*latency.columns, "seconds"]
    return pd.concat([simulated, predicted], ignore_index=True).reindex(columns=columns)


def predictions(app: App, *, gpu: Gpu, models: Sequence[str]) -> pd.DataFrame:
    """Predict on a GPU: a row per kernel and model."""
    table = _predict(app, gpu, models, "clustering")
    return table[["kernel", "name", "model", "instructions", "cycles"]]


def selections(
    app: App, *, gpu: str, changes: Mapping[str, Any], model: str, ways: Sequence[Selection]
) -> pd.DataFrame:
    """Simulate, and predict with each way to select a warp: ``model`` is ``simulation`` or the way."""
    target = _changed(gpu, changes)
    parts = [simulation.as_table(simulation.simulate(app, target))]
    parts += [_predict(app, target, [model], way).assign(model=way) for way in ways]
    table = pd.concat(parts, ignore_index=True)
    table = table[["kernel", "name", "model", "instructions", "cycles", "ipc", "cpi"]]
    divergent = {kernel.launch_id: _is_control_divergent(kernel) for kernel in app}
    return table.assign(control_divergent=table["kernel"].map(divergent))


def divergence(app: App) -> pd.DataFrame:
    """Count divergent loads: one row of the application."""
    instructions = sum(kernel.num_instructions for kernel in app)
    loads = sum(kernel.dpki() * kernel.num_instructions / 1000 for kernel in app)
    return pd.DataFrame([{"instructions": instructions, "dpki": 1000 * loads / instructions}])


def frequencies(
    app: App, *, gpu: str, nominal_ghz: float, clocks_ghz: Sequence[float], models: Sequence[str]
) -> pd.DataFrame:
    """Predict and simulate at several clocks: a row per clock and model, with the ``time_us``."""
    table = dvfs(app, named_gpu(gpu).replace(clock_ghz=nominal_ghz), clocks_ghz, models)
    return table.groupby(["model", "clock_ghz"], sort=False)["time_us"].sum().reset_index()


def costs(
    app: App,
    *,
    gpu: str,
    points: Sequence[Mapping[str, Any]],
    models: Sequence[str],
    workload: str,
    size: str,
) -> pd.DataFrame:
    """Measure seconds: of a simulation, of what is done once, and of a prediction at each point."""
    target = named_gpu(gpu)
    start = time.perf_counter()
    simulation.simulate(app, target)
    seconds = {"simulation": time.perf_counter() - start}
    start = time.perf_counter()
    workloads.load(workload, size)
    seconds["tracing"] = time.perf_counter() - start
    start = time.perf_counter()
    for kernel in app:
        representative_warp(kernel)
    seconds["selection"] = time.perf_counter() - start
    start = time.perf_counter()
    for point in points:
        _predict(app, target.replace(**point), models, "clustering")
    each = (time.perf_counter() - start) / len(points)
    # `predict` selects the warp, too; over a design space that is done once.
    seconds["prediction"] = max(each - seconds["selection"], 0.0)
    return pd.DataFrame([seconds])


def caches(app: App, *, gpu: str) -> pd.DataFrame:
    """Count hits and traffic by the memory stage, by PPT-GPU-Mem and by the simulation.

    L2 is emptied before each kernel, as profilers do. A row per kernel and ``source``.
    """
    target = named_gpu(gpu)
    system = MemorySystem(target)
    simulator = simulation.Simulator(target)
    rows = []
    for kernel in app:
        about = {"kernel": kernel.launch_id, "name": kernel.short_name}
        system.flush_l2()
        simulator.flush_l2()
        for source, totals in (
            ("warpstack", system.run(kernel).totals),
            ("simulation", simulator.run(kernel).totals),
        ):
            rows.append({**about, "source": source, **_traffic(totals)})
        estimate = ppt_gpu_mem(kernel, target)
        rows.append({**about, "source": "ppt_gpu_mem", **_estimated(estimate)})
    return pd.DataFrame(rows)


def ablations(app: App, *, gpu: str) -> pd.DataFrame:
    """Leave one part of the memory stage out at a time: a row per kernel and ``variant``."""
    return ablate(app, gpu, workers=1)


def locality(app: App, *, gpu: str, distances: Sequence[int]) -> pd.DataFrame:
    """Return the share of L2's accesses within each stack distance, with and without L1's hits.

    The kernel is the longest one.
    """
    kernel = max(app, key=lambda one: one.num_instructions)
    rows = []
    for filtered in (False, True):
        profile = reuse_profile(kernel, gpu, level="l2", filtered=filtered)
        for distance in distances:
            share = float(profile.hit_rate(distance)) if profile.accesses else float("nan")
            rows.append(
                {"name": kernel.short_name, "filtered": filtered, "lines": distance, "share": share}
            )
    return pd.DataFrame(rows)


def _changed(name: str, changes: Mapping[str, Any]) -> Gpu:
    target = named_gpu(name)
    return target.replace(**changes) if changes else target


def _predict(app: App, target: Gpu, wanted: Sequence[str], selection: Selection) -> pd.DataFrame:
    return prediction.predict(app, target, wanted, selection=selection)


def _is_control_divergent(kernel: KernelTrace) -> bool:
    """Return whether its warps have different numbers of instructions."""
    lengths: set[int] = set()
    for position, (_, warps) in enumerate(kernel.blocks()):
        for warp in range(len(warps)):
            lengths.add(len(kernel.warp(position, warp)["instruction"]))
            if len(lengths) > 1:
                return True
    return False


def _traffic(totals: Mapping[str, int]) -> dict[str, float]:
    """Return the metrics of the cache paper's Table 4.

    What L2 holds dirty at the end counts as written: the flush before the next kernel writes it.
    """
    rates = hit_rates(dict(totals))
    dram_writes = totals["dram_write_sectors"] + totals["l2_dirty_sectors"]
    reads, writes = totals["l2_read_sectors"], totals["l2_write_sectors"]
    return {
        "l1_hit_rate": rates["l1"],
        "l1_global_load_hit_rate": rates["l1_global_load"],
        "l2_reads": reads,
        "l2_writes": writes,
        "l2_total": reads + writes,
        "l2_hit_rate": rates["l2"],
        "l2_read_hit_rate": rates["l2_read"],
        "dram_reads": totals["dram_read_sectors"],
        "dram_writes": dram_writes,
        "dram_total": totals["dram_read_sectors"] + dram_writes,
    }


def _estimated(estimate: PptGpuMem) -> dict[str, float]:
    totals = estimate.totals
    reads, writes = totals["l2_read_sectors"], totals["l2_write_sectors"]
    hits = totals["l1_read_sector_hits"] + totals["l1_write_sector_hits"]
    accesses = totals["l1_read_sectors"] + totals["l1_write_sectors"]
    return {
        "l1_hit_rate": hits / accesses if accesses else float("nan"),
        "l1_global_load_hit_rate": estimate.l1_read_hit_rate,
        "l2_reads": reads,
        "l2_writes": writes,
        "l2_total": reads + writes,
        "l2_hit_rate": estimate.l2_hit_rate,
        "l2_read_hit_rate": estimate.l2_hit_rate if reads else float("nan"),
        "dram_reads": totals["dram_read_sectors"],
        "dram_writes": totals["dram_write_sectors"],
        "dram_total": totals["dram_read_sectors"] + totals["dram_write_sectors"],
    }
