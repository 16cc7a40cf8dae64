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
    from warpstack import cuda, models, plot, timing, workloads
    from warpstack.calibration import Calibration, calibrate
    from warpstack.cuda import host, numba
    from warpstack.errors import (
        DamageWarning,
        InputError,
        TraceWarning,
        UnmatchedWarning,
        UnusedOptionWarning,
    )
    from warpstack.exploration import samples
    from warpstack.exploration.arrays import to_xarray
    from warpstack.exploration.large_sweep import open_store, sweep_to_store
    from warpstack.exploration.point_totals import point_totals, speedups
    from warpstack.exploration.search import search
    from warpstack.exploration.sensitivity import one_at_a_time, sobol_indices, swings
    from warpstack.exploration.stage_cache import StageCache
    from warpstack.exploration.sweep import sweep
    from warpstack.hardware.description import Gpu, gpu, gpus
    from warpstack.interval.profile import IntervalProfile, interval_profile, representative_warp
    from warpstack.memory.ablation import ablate
    from warpstack.memory.caches import (
        BlockSchedule,
        MemoryProfile,
        MemorySystem,
        occupancy,
        simulate_caches,
    )
    from warpstack.memory.reuse import (
        PptGpuMem,
        ReuseProfile,
        cache_family,
        line_stream,
        ppt_gpu_mem,
        reuse_profile,
        stack_distances,
    )
    from warpstack.models import mwp_cwp, triton
    from warpstack.models.frequency import CrispCounters, dvfs
    from warpstack.models.prediction import Prediction, application_totals, predict
    from warpstack.models.rooflines import roofline
    from warpstack.plot.sliders import explore
    from warpstack.reporting.lines import lines
    from warpstack.reporting.page import report
    from warpstack.timing.simulation import SimulationResult, Simulator, simulate
    from warpstack.traces import io, patterns
    from warpstack.traces.io import load, save
    from warpstack.traces.trace import App, KernelTrace
    from warpstack.validation import measures, reference
    from warpstack.validation.changes import what_if, what_if_agreement
    from warpstack.validation.compare import compare
    from warpstack.validation.validate import validate, validation_errors

#: Where the modules and the names of the face are. They are imported when they are first asked for,
#: so that `import warpstack` takes no time: pandas alone takes longer than all the rest.
_MODULES = {
    "cuda": "warpstack.cuda",
    "host": "warpstack.cuda.host",
    "io": "warpstack.traces.io",
    "measures": "warpstack.validation.measures",
    "models": "warpstack.models",
    "mwp_cwp": "warpstack.models.mwp_cwp",
    "numba": "warpstack.cuda.numba",
    "patterns": "warpstack.traces.patterns",
    "plot": "warpstack.plot",
    "reference": "warpstack.validation.reference",
    "samples": "warpstack.exploration.samples",
    "timing": "warpstack.timing",
    "triton": "warpstack.models.triton",
    "workloads": "warpstack.workloads",
}
_NAMES = {
    "App": "warpstack.traces.trace",
    "BlockSchedule": "warpstack.memory.caches",
    "Calibration": "warpstack.calibration",
    "CrispCounters": "warpstack.models.frequency",
    "DamageWarning": "warpstack.errors",
    "Gpu": "warpstack.hardware.description",
    "InputError": "warpstack.errors",
    "IntervalProfile": "warpstack.interval.profile",
    "KernelTrace": "warpstack.traces.trace",
    "MemoryProfile": "warpstack.memory.caches",
    "MemorySystem": "warpstack.memory.caches",
    "PptGpuMem": "warpstack.memory.reuse",
    "Prediction": "warpstack.models.prediction",
    "ReuseProfile": "warpstack.memory.reuse",
    "SimulationResult": "warpstack.timing.simulation",
    "Simulator": "warpstack.timing.simulation",
    "StageCache": "warpstack.exploration.stage_cache",
    "TraceWarning": "warpstack.errors",
    "UnmatchedWarning": "warpstack.errors",
    "UnusedOptionWarning": "warpstack.errors",
    "ablate": "warpstack.memory.ablation",
    "application_totals": "warpstack.models.prediction",
    "cache_family": "warpstack.memory.reuse",
    "calibrate": "warpstack.calibration",
    "compare": "warpstack.validation.compare",
    "dvfs": "warpstack.models.frequency",
    "explore": "warpstack.plot.sliders",
    "gpu": "warpstack.hardware.description",
    "gpus": "warpstack.hardware.description",
    "interval_profile": "warpstack.interval.profile",
    "line_stream": "warpstack.memory.reuse",
    "lines": "warpstack.reporting.lines",
    "load": "warpstack.traces.io",
    "occupancy": "warpstack.memory.caches",
    "open_store": "warpstack.exploration.large_sweep",
    "one_at_a_time": "warpstack.exploration.sensitivity",
    "point_totals": "warpstack.exploration.point_totals",
    "ppt_gpu_mem": "warpstack.memory.reuse",
    "predict": "warpstack.models.prediction",
    "representative_warp": "warpstack.interval.profile",
    "reuse_profile": "warpstack.memory.reuse",
    "report": "warpstack.reporting.page",
    "roofline": "warpstack.models.rooflines",
    "save": "warpstack.traces.io",
    "search": "warpstack.exploration.search",
    "simulate": "warpstack.timing.simulation",
    "simulate_caches": "warpstack.memory.caches",
    "sobol_indices": "warpstack.exploration.sensitivity",
    "speedups": "warpstack.exploration.point_totals",
    "stack_distances": "warpstack.memory.reuse",
    "sweep": "warpstack.exploration.sweep",
    "sweep_to_store": "warpstack.exploration.large_sweep",
    "to_xarray": "warpstack.exploration.arrays",
    "swings": "warpstack.exploration.sensitivity",
    "validate": "warpstack.validation.validate",
    "validation_errors": "warpstack.validation.validate",
    "what_if": "warpstack.validation.changes",
    "what_if_agreement": "warpstack.validation.changes",
}

__all__ = [
    "App",
    "BlockSchedule",
    "Calibration",
    "CrispCounters",
    "DamageWarning",
    "Gpu",
    "InputError",
    "IntervalProfile",
    "KernelTrace",
    "MemoryProfile",
    "MemorySystem",
    "PptGpuMem",
    "Prediction",
    "ReuseProfile",
    "SimulationResult",
    "Simulator",
    "StageCache",
    "TraceWarning",
    "UnmatchedWarning",
    "UnusedOptionWarning",
    "__version__",
    "ablate",
    "application_totals",
    "cache_family",
    "calibrate",
    "compare",
    "cuda",
    "dvfs",
    "explore",
    "gpu",
    "gpus",
    "host",
    "interval_profile",
    "io",
    "line_stream",
    "lines",
    "load",
    "measures",
    "models",
    "mwp_cwp",
    "numba",
    "occupancy",
    "one_at_a_time",
    "open_store",
    "patterns",
    "plot",
    "point_totals",
    "ppt_gpu_mem",
    "predict",
    "reference",
    "report",
    "representative_warp",
    "reuse_profile",
    "roofline",
    "samples",
    "save",
    "search",
    "simulate",
    "simulate_caches",
    "sobol_indices",
    "speedups",
    "stack_distances",
    "sweep",
    "sweep_to_store",
    "swings",
    "timing",
    "to_xarray",
    "triton",
    "validate",
    "validation_errors",
    "what_if",
    "what_if_agreement",
    "workloads",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = importlib.import_module(_MODULES[name])
    elif name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
