"""warpstack: from a GPU kernel's warp traces to its performance and the reasons for it.

Examples
--------
>>> import warpstack as ws
>>> kernel = ws.patterns.strided(gs=32, iterations=2, blocks=28)
>>> table = ws.predict(kernel, ws.gpu("pascal-mdm"), models=["gpumech", "mdm"])
>>> list(table["model"])
['gpumech', 'mdm']
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from warpstack._core import __version__

if TYPE_CHECKING:
    from warpstack import (
        calibration,
        cuda,
        errors,
        exploration,
        interval,
        memory,
        models,
        plot,
        timelines,
        timing,
        validation,
        workloads,
    )
    from warpstack._util.options import Options
    from warpstack.cuda import numba
    from warpstack.errors import InputError
    from warpstack.exploration.search import search
    from warpstack.exploration.sweep import sweep
    from warpstack.hardware.description import Gpu, gpu, gpus
    from warpstack.interval.profile import IntervalProfile, interval_profile
    from warpstack.memory.caches import MemoryProfile, simulate_caches
    from warpstack.models import triton
    from warpstack.models.prediction import Prediction, predict
    from warpstack.reporting.lines import lines
    from warpstack.reporting.page import report
    from warpstack.timelines.result import Timeline, timeline
    from warpstack.timing.simulation import SimulationResult, simulate
    from warpstack.traces import io, patterns
    from warpstack.traces.io import load, save
    from warpstack.traces.trace import App, KernelTrace
    from warpstack.validation.compare import compare
    from warpstack.validation.validate import validate

#: Where the modules and the public names are. They are imported when they are first asked for,
#: so that `import warpstack` takes no time: pandas alone takes longer than all the rest.
_MODULES = {
    "calibration": "warpstack.calibration",
    "cuda": "warpstack.cuda",
    "errors": "warpstack.errors",
    "exploration": "warpstack.exploration",
    "interval": "warpstack.interval",
    "io": "warpstack.traces.io",
    "memory": "warpstack.memory",
    "models": "warpstack.models",
    "numba": "warpstack.cuda.numba",
    "patterns": "warpstack.traces.patterns",
    "plot": "warpstack.plot",
    "timelines": "warpstack.timelines",
    "timing": "warpstack.timing",
    "triton": "warpstack.models.triton",
    "validation": "warpstack.validation",
    "workloads": "warpstack.workloads",
}
_NAMES = {
    "App": "warpstack.traces.trace",
    "Gpu": "warpstack.hardware.description",
    "InputError": "warpstack.errors",
    "IntervalProfile": "warpstack.interval.profile",
    "KernelTrace": "warpstack.traces.trace",
    "MemoryProfile": "warpstack.memory.caches",
    "Options": "warpstack._util.options",
    "Prediction": "warpstack.models.prediction",
    "SimulationResult": "warpstack.timing.simulation",
    "Timeline": "warpstack.timelines.result",
    "compare": "warpstack.validation.compare",
    "gpu": "warpstack.hardware.description",
    "gpus": "warpstack.hardware.description",
    "interval_profile": "warpstack.interval.profile",
    "lines": "warpstack.reporting.lines",
    "load": "warpstack.traces.io",
    "predict": "warpstack.models.prediction",
    "report": "warpstack.reporting.page",
    "save": "warpstack.traces.io",
    "search": "warpstack.exploration.search",
    "simulate": "warpstack.timing.simulation",
    "simulate_caches": "warpstack.memory.caches",
    "sweep": "warpstack.exploration.sweep",
    "timeline": "warpstack.timelines.result",
    "validate": "warpstack.validation.validate",
}
#: Where the names are now that were here in 0.2. They work with a warning, and go in 0.4.
_MOVED = {
    "Calibration": "calibration",
    "calibrate": "calibration",
    "host": "cuda",
    "DamageWarning": "errors",
    "TraceWarning": "errors",
    "UnmatchedWarning": "errors",
    "UnusedOptionWarning": "errors",
    "StageCache": "exploration",
    "one_at_a_time": "exploration",
    "open_store": "exploration",
    "point_totals": "exploration",
    "samples": "exploration",
    "sobol_indices": "exploration",
    "speedups": "exploration",
    "sweep_to_store": "exploration",
    "swings": "exploration",
    "to_xarray": "exploration",
    "representative_warp": "interval",
    "BlockSchedule": "memory",
    "MemorySystem": "memory",
    "PptGpuMem": "memory",
    "ReuseProfile": "memory",
    "ablate": "memory",
    "cache_family": "memory",
    "line_stream": "memory",
    "occupancy": "memory",
    "ppt_gpu_mem": "memory",
    "reuse_profile": "memory",
    "stack_distances": "memory",
    "CrispCounters": "models",
    "application_totals": "models",
    "dvfs": "models",
    "mwp_cwp": "models",
    "roofline": "models",
    "explore": "plot",
    "Simulator": "timing",
    "measures": "validation",
    "reference": "validation",
    "validation_errors": "validation",
    "what_if": "validation",
    "what_if_agreement": "validation",
}

__all__ = [
    "App",
    "Gpu",
    "InputError",
    "IntervalProfile",
    "KernelTrace",
    "MemoryProfile",
    "Options",
    "Prediction",
    "SimulationResult",
    "Timeline",
    "__version__",
    "calibration",
    "compare",
    "cuda",
    "errors",
    "exploration",
    "gpu",
    "gpus",
    "interval",
    "interval_profile",
    "io",
    "lines",
    "load",
    "memory",
    "models",
    "numba",
    "patterns",
    "plot",
    "predict",
    "report",
    "save",
    "search",
    "simulate",
    "simulate_caches",
    "sweep",
    "timeline",
    "timelines",
    "timing",
    "triton",
    "validate",
    "validation",
    "workloads",
]


def __getattr__(name: str) -> Any:
    if name == "tables":  # where `to_latex` is; no name of the face
        value: Any = importlib.import_module("warpstack.tables")
    elif name in _MODULES:
        value = importlib.import_module(_MODULES[name])
    elif name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
    elif name in _MOVED:
        value = getattr(importlib.import_module(f"{__name__}.{_MOVED[name]}"), name)
        from warpstack.errors import warn

        warn(
            f"warpstack.{name} is warpstack.{_MOVED[name]}.{name} now; the former name goes in 0.4",
            FutureWarning,
        )
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
