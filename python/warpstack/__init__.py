"""warpstack: from a GPU kernel's warp traces to its performance and the reasons for it.

Examples
--------
>>> import warpstack as ws
>>> kernel = ws.patterns.strided(gs=32, iterations=2, blocks=28)
>>> table = ws.predict(kernel, ws.gpu("pascal-mdm"), models=["gpumech", "mdm"])
>>> list(table["model"])
['gpumech', 'mdm']
"""

from warpstack import (
    cuda,
    host,
    measures,
    models,
    mwp_cwp,
    patterns,
    plot,
    reference,
    samples,
    timing,
    workloads,
)
from warpstack._core import __version__
from warpstack.ablation import ablate
from warpstack.dvfs import CrispCounters, dvfs
from warpstack.errors import (
    DamageWarning,
    InputError,
    TraceWarning,
    UnmatchedWarning,
    UnusedOptionWarning,
)
from warpstack.explore import explore
from warpstack.gpu import Gpu, gpu, gpus
from warpstack.interval import IntervalProfile, interval_profile, representative_warp
from warpstack.io import load, save
from warpstack.memory import (
    BlockSchedule,
    MemoryProfile,
    MemorySystem,
    occupancy,
    simulate_caches,
)
from warpstack.models import Prediction, application_totals, predict
from warpstack.points import point_totals, speedups
from warpstack.reuse import (
    PptGpuMem,
    ReuseProfile,
    cache_family,
    line_stream,
    ppt_gpu_mem,
    reuse_profile,
    stack_distances,
)
from warpstack.roofline import roofline
from warpstack.search import search
from warpstack.sensitivity import one_at_a_time, sobol_indices, swings
from warpstack.stage_cache import StageCache
from warpstack.sweep import sweep
from warpstack.timing import SimulationResult, Simulator, simulate
from warpstack.trace import App, KernelTrace
from warpstack.validate import validate, validation_errors

__all__ = [
    "App",
    "BlockSchedule",
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
    "cuda",
    "dvfs",
    "explore",
    "gpu",
    "gpus",
    "host",
    "interval_profile",
    "line_stream",
    "load",
    "measures",
    "models",
    "mwp_cwp",
    "occupancy",
    "one_at_a_time",
    "patterns",
    "plot",
    "point_totals",
    "ppt_gpu_mem",
    "predict",
    "reference",
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
    "swings",
    "timing",
    "validate",
    "validation_errors",
    "workloads",
]
