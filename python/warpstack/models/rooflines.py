"""The hierarchical roofline of kernels (Williams et al., CACM 2009; Ding and Williams, PMBS 2019)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from warpstack._core import SECTOR_BYTES
from warpstack._util.checked import checked
from warpstack._util.choices import DEFAULT_MODEL
from warpstack._util.former import former_keywords
from warpstack._util.lazy import pandas as pd
from warpstack._util.options import Options, TimeChanges, options_of
from warpstack._util.progress import progress_bar
from warpstack.hardware.description import Gpu, GpuLike, as_gpu
from warpstack.hardware.profiler import profiled, times
from warpstack.models import interval_simulation, prediction
from warpstack.models.pipeline import Found, Pipeline
from warpstack.tables import row, settings_of
from warpstack.timing import simulation
from warpstack.traces.trace import App, KernelTrace, warn_of_samples

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["LEVELS", "ceilings", "roofline"]

_WARP_SIZE = 32
LEVELS = ("L1", "L2", "DRAM")
#: Sectors that cross each level's interface, both ways.
_TRAFFIC = {
    "L1": ("l1_read_sectors", "l1_write_sectors", "l2_atomic_sectors"),
    "L2": ("l2_read_sectors", "l2_write_sectors", "l2_atomic_sectors"),
    "DRAM": ("dram_read_sectors", "dram_write_sectors"),
}


@checked
def ceilings(gpu: GpuLike) -> dict[str, float]:
    """Return what bounds performance.

    Returns
    -------
    dict
        ``issue``: giga warp instructions per second that all SMs can issue. ``L1``, ``L2``,
        ``DRAM``: GB/s; an L1 serves one line per cycle, the bandwidth of L2 is the NoC's, that of
        DRAM is what long streams reach of it (``dram_efficiency``).
    """
    gpu = as_gpu(gpu)
    return {
        "issue": gpu.num_sms * gpu.issue_width * gpu.clock_ghz,
        "L1": gpu.num_sms * gpu.l1_line_bytes * gpu.clock_ghz,
        "L2": gpu.noc_bandwidth_gbs,
        "DRAM": gpu.sustained_dram_bandwidth_gbs,
    }


#: Of an arithmetic: the field of the interval between two warp instructions of a scheduler, and the
#: multiply-adds of a lane in one.
_LANES = {
    "fp64": ("fp64_interval", 1),
    "fp32": ("fp32_interval", 1),
    "tf32": ("fp32_interval", 1),
    "bf16": ("fp16_interval", 2),
    "fp16": ("fp16_interval", 2),
    "fp8": ("fp16_interval", 2),
    "int8": ("integer_interval", 1),
    "int32": ("integer_interval", 1),
}
#: The field of the rate of tensor cores; of half precision with sums in single precision, as libraries
#: have it unless they are asked for another.
_TENSOR_RATES = {
    "fp64": "tensor_f64_rate",
    "tf32": "tensor_tf32_rate",
    "bf16": "tensor_bf16_rate",
    "fp16": "tensor_f16_f32_rate",
    "fp8": "tensor_f8_rate",
    "int8": "tensor_s8_rate",
}


def peak_gflops(gpu: Gpu, arithmetic: str, tensor_cores: bool = False) -> float:
    """Return the most operations of an arithmetic that a GPU can do, in 1e9 per second.

    A multiply-add is two. With tensor cores it is the higher of their rate and that of the lanes; a rate
    of 0 is none. Narrow numbers that lanes do not have are those of the next wider kind.

    Parameters
    ----------
    gpu
        The GPU.
    arithmetic
        ``fp64``, ``fp32``, ``tf32``, ``bf16``, ``fp16``, ``fp8``, ``int8`` or ``int32``.
    tensor_cores
        Whether tensor cores may be used.
    """
    interval, of_lane = _LANES[arithmetic]
    of_scheduler = _WARP_SIZE * of_lane / getattr(gpu, interval)
    if tensor_cores and arithmetic in _TENSOR_RATES:
        of_scheduler = max(of_scheduler, getattr(gpu, _TENSOR_RATES[arithmetic]))
    return float(2 * of_scheduler * gpu.num_schedulers * gpu.num_sms * gpu.clock_ghz)


@former_keywords(app_or_kernel="app")
@checked
def roofline(
    app: App | KernelTrace,
    gpu: GpuLike,
    models: str | Iterable[str] = (DEFAULT_MODEL,),
    *,
    simulate: bool = False,
    options: Options | None = None,
    progress: bool = False,
    **changes: Unpack[TimeChanges],
) -> pd.DataFrame:
    """Place kernels under the roofs of L1, L2 and DRAM.

    Performance is in warp instructions per second, intensity in warp instructions per byte that
    crosses a level's interface, so that kernels of every kind have a place (the instruction
    roofline). Traffic is that of the memory stage for the models, and their own for interval simulation
    and the simulator, whose caches see the accesses in another order.

    Parameters
    ----------
    app
        An application, whose kernels share an L2 in order, or one kernel.
    gpu
        The GPU: a description, its name, or the path of one.
    models
        Names of models, or ``all``.
    simulate
        Add the cycle-level simulation of each kernel.
    options, **changes
        How the stages work; see `warpstack.Options`: ``selection``, ``misses``, ``merge_threshold``,
        ``access_order``, ``flush_l2``, ``initial_l2``, ``profiler``.
        The simulation empties its L2 between kernels, too.
    progress
        Show a progress bar on standard error.

    Returns
    -------
    DataFrame
        One row per kernel, model and level: ``kernel``, ``name``, ``gpu``, ``gpu_changes``,
        ``model``, ``level``, ``bytes``, ``instructions``, ``time_us`` (as the profiler reports it,
        launch included), ``launch_us``, ``intensity`` (warp instructions per byte; NaN without
        traffic), ``gips`` (performance without the launch, giga warp instructions per second),
        ``bandwidth_gbs`` (of the level), ``issue_gips``, ``roof_gips`` (the least of its roof at that
        intensity and of the issue roof), ``roof_fraction``, ``limit`` (``issue`` or the level,
        whichever is the lowest roof of the kernel), and `warpstack.predict`'s columns from
        ``initial_l2`` on.

    Raises
    ------
    InputError
        If a name is unknown, there is no kernel, or a thread block does not fit on an SM.
    """
    wanted = prediction.model_list(models)
    how = options_of("roofline", options, changes, TimeChanges)
    prediction.warn_of_unread(how, wanted, counts_write_backs=True)
    gpu = profiled(as_gpu(gpu), how.profiler)
    roofs = ceilings(gpu)
    pipeline = Pipeline(app, how)
    warn_of_samples(pipeline.kernels, "roofline")
    simulator = simulation.Simulator(gpu, initial_l2=how.written_share) if simulate else None
    settings = settings_of(how)
    rows = []
    with progress_bar(progress, len(pipeline.kernels), "roofline", "kernel") as bar:
        for launch in pipeline.found(gpu, prediction.needs_of(wanted)):
            kernel = launch.kernel
            points: dict[str, tuple[Any, Any]] = {
                model: (prediction.prediction_of(launch, gpu, model), _totals(launch, model))
                for model in wanted
            }
            if simulator is not None:
                if how.flush_l2:
                    simulator.flush_l2()
                result = simulator.run(kernel)
                points[simulation.MODEL_NAME] = (result, result.totals)
            instructions = kernel.num_instructions
            for model, (found, totals) in points.items():
                gips = found.ipc * gpu.clock_ghz
                moved = {
                    level: SECTOR_BYTES * sum(totals[name] for name in names)
                    for level, names in _TRAFFIC.items()
                }
                intensity = {
                    level: instructions / count if count else float("nan")
                    for level, count in moved.items()
                }
                # Without traffic there is no roof but that of issue.
                roof = {
                    level: min(
                        roofs["issue"], instructions * roofs[level] / max(moved[level], 1e-9)
                    )
                    for level in LEVELS
                }
                lowest = min(LEVELS, key=roof.__getitem__)
                limit = lowest if roof[lowest] < roofs["issue"] else "issue"
                for level in LEVELS:
                    values = {
                        "level": level,
                        "bytes": moved[level],
                        "instructions": instructions,
                        **times(float(found.cycles), gpu, how.profiler),
                        "intensity": intensity[level],
                        "gips": gips,
                        "bandwidth_gbs": roofs[level],
                        "issue_gips": roofs["issue"],
                        "roof_gips": roof[level],
                        "roof_fraction": gips / roof[level],
                        "limit": limit,
                    }
                    rows.append(row(kernel, gpu, model, values, settings))
            bar.update(1)
    return pd.DataFrame(rows)


def _totals(launch: Found, model: str) -> Mapping[str, int]:
    """Return what caches counted, as a model has it."""
    counted = launch.simulated if model == interval_simulation.NAME else launch.memory
    assert counted is not None
    return counted.totals
