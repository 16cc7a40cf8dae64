"""Time as profilers report it: the clock that they hold and the launch that they include."""

from __future__ import annotations

from typing import Any, get_args

from warpstack._util.choices import Profiler
from warpstack.errors import not_one_of, warn
from warpstack.hardware.description import Gpu

__all__ = ["PROFILERS", "checked_profiler", "launch_field", "launch_us", "profiled", "times"]

#: What measures a kernel; `Profiler` says what they are.
PROFILERS: tuple[Profiler, ...] = get_args(Profiler)
#: Whose launch a profiler has, where no field of `Gpu` has its name.
_LAUNCH_OF = {"do_bench": "events"}


def checked_profiler(profiler: str) -> Profiler:
    """Return the name of a profiler, or raise `InputError` with the names that there are."""
    for known in PROFILERS:
        if profiler == known:
            return known
    raise not_one_of("profiler", profiler, PROFILERS)


def profiled(gpu: Gpu, profiler: Profiler, *, told: bool = False) -> Gpu:
    """Return the GPU as it runs under a profiler.

    Nsight Compute holds the clock of the SMs at `Gpu.base_clock_ghz`, unless it is told otherwise:
    a clock that `Gpu.replace` gave stays. Where the description does not say which one it holds, a
    warning does, unless that was `told` already, and the GPU runs at its own.
    """
    if checked_profiler(profiler) != "ncu" or "clock_ghz" in gpu.changes:
        return gpu
    if not gpu.base_clock_ghz:
        if not told:
            warn(
                f"GPU {gpu.name}: its description has no base_clock_ghz, the clock that Nsight Compute"
                f" holds; times are at {gpu.clock_ghz:g} GHz (Gpu.replace(clock_ghz=...) gives another"
                " one)",
                UserWarning,
            )
        return gpu
    if gpu.base_clock_ghz == gpu.clock_ghz:
        return gpu
    return gpu.replace(clock_ghz=gpu.base_clock_ghz)


def launch_field(profiler: Profiler) -> str:
    """Return the field of `Gpu` with the launch that a profiler's time has."""
    return f"launch_us_{_LAUNCH_OF.get(profiler, profiler)}"


def launch_us(gpu: Gpu, profiler: Profiler) -> float:
    """Return the microseconds that a profiler's time has beside the cycles of a kernel."""
    return float(getattr(gpu, launch_field(profiler)))


def times(cycles: Any, gpu: Gpu, profiler: Profiler) -> dict[str, Any]:
    """Return the columns ``time_us``, launch included, and ``launch_us`` of cycles."""
    launch = launch_us(gpu, profiler)
    return {"time_us": cycles / gpu.clock_ghz / 1e3 + launch, "launch_us": launch}
