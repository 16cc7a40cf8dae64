"""Workloads, and what is computed of them, for several figures: in threads, and kept on disk."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpstack import workloads
from warpstack._util.data_folder import data_folder
from warpstack._util.progress import progress_bar
from warpstack.errors import InputError, not_one_of
from warpstack.exploration.stage_cache import CacheLike, as_cache, key_of
from warpstack.figures.hardware import Hardware
from warpstack.figures.stages import COLUMNS, TEXTS
from warpstack.hardware.description import as_gpu
from warpstack.traces.trace import App

__all__ = ["SIZES", "Study"]

#: The order of benchmarks in every figure: that of MDM's Figure 5, then what CAL does not have.
ORDER = (
    "hotspot",
    "b+tree",
    "backprop",
    "fdtd3d",
    "srad",
    "ray-tracing",
    "2d-convolution",
    "stencil",
    "cfd",
    "bfs",
    "pageview-rank",
    "spmv",
    "pageview-count",
    "inverted-index",
    "k-means",
    "alexnet",
    "resnet",
)
SIZES = ("small", "paper")
#: Warp instructions of the traces that are kept in memory for the next figure.
_KEPT_INSTRUCTIONS = 100_000_000

Stage = Callable[..., pd.DataFrame]


class Study:
    """Traced workloads and a cache of what was computed of them.

    Parameters
    ----------
    size
        ``small`` or ``paper``, the sizes of `warpstack.workloads`.
    only
        Workloads to take; all seventeen by default.
    cache
        Where results are kept: as for `warpstack.sweep`.
    workers
        Threads.
    progress
        Show progress bars on standard error.
    hardware
        Measured cycles, for the figure that needs them.

    Raises
    ------
    InputError
        If a size or workload is unknown.
    """

    def __init__(
        self,
        size: str = "small",
        *,
        only: Iterable[str] | None = None,
        cache: CacheLike = True,
        workers: int = 2,
        progress: bool = False,
        hardware: Hardware | None = None,
    ) -> None:
        if size not in SIZES:
            raise not_one_of("size", size, ("small", "paper"))
        wanted = set(ORDER if only is None else only)
        for name in wanted:
            workloads.get(name)
        if not wanted:
            raise InputError("workloads: none given")
        if workers < 1:
            raise InputError(f"workers = {workers!r} is not at least 1")
        self.size = size
        self.names = tuple(name for name in ORDER if name in wanted)
        self.cache = as_cache(cache)
        self.workers = workers
        self.progress = progress
        self.hardware = hardware
        self._apps: dict[str, App] = {}
        self._locks = {name: threading.Lock() for name in ORDER}

    def divergent(self) -> tuple[str, ...]:
        """Return the names of the memory-divergent (MD) workloads."""
        return tuple(name for name in self.names if class_of(name) == "MD")

    def app(self, name: str) -> App:
        """Return a traced workload."""
        with self._locks[name]:
            if name not in self._apps:
                self._apps[name] = workloads.load(name, self.size)
            return self._apps[name]

    def run(
        self,
        stage: Stage,
        settings: Sequence[Mapping[str, Any]],
        names: Sequence[str] | None = None,
        *,
        alone: bool = False,
    ) -> pd.DataFrame:
        """Compute a stage of each workload with each of some settings.

        Parameters
        ----------
        stage
            A function of `warpstack.figures.stages`: of an application and settings to a table.
        settings
            Keyword arguments of the stage, of plain values, except ``gpu``.
        names
            The workloads; by default those of the study.
        alone
            One at a time, where time is measured.

        Returns
        -------
        DataFrame
            The tables one below the other, settings first, with ``app``, ``label`` (its
            abbreviation) and ``class`` in front, and ``setting``, the position of the settings.
        """
        names = self.names if names is None else names
        tasks = [(name, i) for name in names for i in range(len(settings))]
        found: dict[tuple[str, int], pd.DataFrame] = {}
        keys = {task: self._key(stage, task[0], settings[task[1]]) for task in tasks}
        for task in tasks:
            arrays = self.cache.get("figure", keys[task]) if self.cache else None
            table = None if arrays is None else _table(stage, arrays)
            if table is not None:
                found[task] = table
        missing = [task for task in tasks if task not in found]

        def compute(task: tuple[str, int]) -> pd.DataFrame:
            table = stage(self.app(task[0]), **settings[task[1]])
            if self.cache:
                arrays = {str(name): _array(column) for name, column in table.items()}
                self.cache.put("figure", keys[task], arrays)
            return table

        if missing:
            # Without `with`, whose end waits for the stages that run: Ctrl-C would.
            pool = ThreadPoolExecutor(1 if alone else self.workers)
            try:
                with progress_bar(self.progress, len(missing), stage.__name__, "run") as bar:
                    futures = {pool.submit(compute, task): task for task in missing}
                    for future in as_completed(futures):
                        found[futures[future]] = future.result()
                        bar.update(1)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
            self._forget()
        parts = []
        for i in range(len(settings)):
            for name in names:
                table = found[name, i].copy()
                table.insert(0, "app", name)
                table.insert(1, "label", label_of(name))
                table.insert(2, "class", class_of(name))
                table.insert(3, "setting", i)
                parts.append(table)
        return pd.concat(parts, ignore_index=True)

    def _forget(self) -> None:
        """Drop traces until the others are few enough to keep."""
        sizes = {n: sum(k.num_instructions for k in app) for n, app in self._apps.items()}
        for name in sorted(sizes, key=lambda n: -sizes[n]):
            if sum(sizes.values()) <= _KEPT_INSTRUCTIONS:
                break
            del self._apps[name], sizes[name]

    def _key(self, stage: Stage, name: str, settings: Mapping[str, Any]) -> str:
        # The inputs are seeded, so a workload's name, size and sources stand for its trace, which
        # then need not be made to find a result.
        about = dict(settings)
        if "gpu" in about:
            about["gpu"] = as_gpu(about["gpu"]).digest
        what = [stage.__name__, name, self.size]
        return key_of([_sources(), *what], about)


def label_of(name: str) -> str:
    """Return the abbreviation of a workload (MDM, Table IV)."""
    return workloads.get(name).abbreviation


def class_of(name: str) -> str:
    """Return ``MD`` for a memory-divergent workload, else ``NMD`` (MDM, Table IV)."""
    return "MD" if workloads.get(name).memory_divergent else "NMD"


def _array(column: pd.Series) -> npt.NDArray[Any]:
    if column.dtype == object or isinstance(column.dtype, (pd.CategoricalDtype, pd.StringDtype)):
        return np.array([str(value) for value in column], dtype=np.str_)
    return column.to_numpy()


def _table(stage: Stage, arrays: Mapping[str, npt.NDArray[Any]]) -> pd.DataFrame | None:
    """Return the table that an entry of the cache holds; None unless it is one of the stage."""
    needed = COLUMNS.get(stage.__name__, ())
    sizes = {array.shape for array in arrays.values()}
    if len(sizes) != 1 or len(sizes.pop()) != 1 or not all(name in arrays for name in needed):
        return None
    if any((arrays[name].dtype.kind == "U") != (name in TEXTS) for name in needed):
        return None
    return pd.DataFrame({name: _plain(array) for name, array in arrays.items()})


def _plain(array: npt.NDArray[Any]) -> Any:
    return array.tolist() if array.dtype.kind == "U" else array


@cache
def _sources() -> str:
    """Return a digest of all that results depend on besides the core: Python sources and PTX."""
    package = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        place = file.relative_to(package)
        if place.parts[0] in ("plot", "cli") or (
            place.parts[0] == "figures" and place.name != "stages.py"
        ):
            continue
        digest.update(f"{place}\0".encode() + file.read_bytes())
    for file in sorted(data_folder("workloads").rglob("*.ptx")):
        digest.update(f"{file.name}\0".encode() + file.read_bytes())
    return digest.hexdigest()
