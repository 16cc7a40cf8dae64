"""Predictions for one profiler against what another one measured."""

from __future__ import annotations

import functools
import math

import pandas as pd

from warpstack.errors import warn
from warpstack.hardware.description import gpu, gpus
from warpstack.hardware.profiler import PROFILERS, launch_us

__all__ = ["TIMED", "warn_of_other_profilers"]

#: Metrics that a profiler's clock and launch are part of.
TIMED = ("cycles", "time_s", "time_us")
#: By what ``launch_us`` of predictions is for: those that take the driver's records of start and end
#: are alike.
_KINDS = {
    **{"nsys": "traced", "nvprof": "traced", "torch": "traced", "ncu": "ncu"},
    **{"events": "events", "do_bench": "events", "batch": "batch"},
}
_NAMES = {
    **{"nsys": "Nsight Systems", "nvprof": "nvprof", "torch": "PyTorch's profiler"},
    **{"ncu": "Nsight Compute", "events": "CUDA events", "do_bench": "Triton's do_bench"},
    "batch": "batches of launches",
}


def warn_of_other_profilers(table: pd.DataFrame, predicted: pd.DataFrame) -> None:
    """Warn where times are for another kind of profiler than the one that measured them.

    Parameters
    ----------
    table
        The rows of `warpstack.validate`.
    predicted
        The predictions; their ``launch_us`` says for which profiler they are.
    """
    if "launch_us" not in predicted:
        return
    compared = table[(table["status"] == "matched") & table["metric"].isin(TIMED)]
    launches = predicted[["gpu", "launch_us"]].dropna().drop_duplicates()
    sources = [str(s) for s in compared["source"].unique() if str(s) in _KINDS]
    for source in sources:
        for name, launch in launches.itertuples(index=False):
            meant = _meant_for(str(name), float(launch))
            if not meant or _KINDS[source] in {_KINDS[profiler] for profiler in meant}:
                continue
            if name not in set(compared["gpu"]):
                continue
            warn(_text(source, meant[0]), UserWarning)
            break


def _text(measured_by: str, meant_for: str) -> str:
    text = f"measured by {_NAMES[measured_by]}, but predicted for {_NAMES[meant_for]}"
    if measured_by == "ncu":
        return (
            f"{text}: Nsight Compute holds the base clock, empties L2 before each kernel and has a longer "
            "launch; predict with --profiler ncu --flush-l2 (profiler='ncu', flush_l2=True)"
        )
    profiler = measured_by if measured_by in PROFILERS else "nsys"
    less = ""
    if meant_for == "ncu":
        text += (
            ", which holds the base clock, empties L2 before each kernel and has a longer launch"
        )
        less = ", without --flush-l2"
    return f"{text}; predict with --profiler {profiler}{less} (profiler='{profiler}')"


@functools.lru_cache(maxsize=256)
def _meant_for(name: str, launch: float) -> list[str]:
    """Return the profilers whose launch on a GPU takes so long; none where it is not known."""
    if name not in gpus():
        return []
    target = gpu(name)
    return [p for p in PROFILERS if math.isclose(launch_us(target, p), launch, rel_tol=1e-9)]
