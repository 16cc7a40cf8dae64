"""Design spaces: sweeps and their stores, search, sensitivity."""

from typing import TYPE_CHECKING

from warpstack._util.lazy import lazy_exports

if TYPE_CHECKING:
    from warpstack.exploration import samples
    from warpstack.exploration.arrays import to_xarray
    from warpstack.exploration.large_sweep import open_store, sweep_to_store
    from warpstack.exploration.sensitivity import one_at_a_time, sobol_indices, swings
    from warpstack.exploration.stage_cache import StageCache
    from warpstack.exploration.totals import point_totals, speedups

__all__ = [
    "StageCache",
    "one_at_a_time",
    "open_store",
    "point_totals",
    "samples",
    "sobol_indices",
    "speedups",
    "sweep_to_store",
    "swings",
    "to_xarray",
]

_LAZY_EXPORTS = {
    "StageCache": "stage_cache",
    "one_at_a_time": "sensitivity",
    "open_store": "large_sweep",
    "point_totals": "totals",
    "samples": "samples",
    "sobol_indices": "sensitivity",
    "speedups": "totals",
    "sweep_to_store": "large_sweep",
    "swings": "sensitivity",
    "to_xarray": "arrays",
}

__getattr__, __dir__ = lazy_exports(__name__, _LAZY_EXPORTS)
