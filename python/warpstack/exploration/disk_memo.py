"""Which results of an application's stages a `StageCache` keeps, and how they become arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack import _core
from warpstack.errors import InputError
from warpstack.exploration.stage_cache import StageCache, key_of
from warpstack.models import interval_simulation
from warpstack.models.interval_simulation import SimulatedLaunch
from warpstack.models.pipeline import Settings
from warpstack.tables import STACK_COMPONENTS
from warpstack.traces.trace import KernelTrace

__all__ = ["DiskMemo"]

#: Columns of what interval simulation finds.
_CYCLES = ("cycles", "sm_cycles", *STACK_COMPONENTS)
#: Most words of a memory profile, so that their sum fits 64 bits.
_MOST_WORDS = 2**40


class DiskMemo:
    """A memo (`warpstack.models.pipeline.Memo`) of an application's kernels in a `StageCache`.

    It keeps representative warps, what interval simulation finds, and what the caches do, of one GPU or
    (``recorded``) of several, GPU by GPU. Intervals are made again faster than read.
    An entry that does not fit the traces counts as missing.
    """

    def __init__(self, cache: StageCache, kernels: Sequence[KernelTrace]) -> None:
        self._cache = cache
        self._kernels = tuple(kernels)

    def get(self, stage: str, settings: Settings) -> Sequence[Any] | None:
        """Return the result of a stage, or None if the entry is missing or damaged."""
        if stage == "interval":
            return None
        arrays = self._cache.get(stage, key_of(self._digests, settings)) or {}
        if stage == "warp":
            return self._warps(arrays)
        if stage == interval_simulation.NAME:
            return self._simulated(arrays)
        return self._memory(arrays, len(settings["gpus"]) if stage == "recorded" else 1)

    def put(self, stage: str, settings: Settings, results: Sequence[Any]) -> None:
        """Keep the result of a stage."""
        arrays: dict[str, npt.NDArray[Any]]
        if stage == "warp":
            arrays = {"position": np.array(results, dtype=np.int64)}
        elif stage in ("memory", "recorded"):
            words = [core.words for core in results]
            sizes = np.array([len(one) for one in words], dtype=np.int64)
            arrays = {"words": np.concatenate(words), "sizes": sizes}
        elif stage == interval_simulation.NAME:
            arrays = _arrays_of(results)
        else:
            return
        self._cache.put(stage, key_of(self._digests, settings), arrays)

    def _warps(self, arrays: Mapping[str, npt.NDArray[Any]]) -> list[tuple[int, int]] | None:
        kept = _array(arrays, "position", np.int64, (len(self._kernels), 2))
        if kept is None or not all(map(_has_warp, self._kernels, kept.tolist())):
            return None
        return [(int(block), int(warp)) for block, warp in kept]

    def _simulated(self, arrays: Mapping[str, npt.NDArray[Any]]) -> list[SimulatedLaunch] | None:
        count = len(self._kernels)
        cycles = _array(arrays, "cycles", np.float64, (count, len(_CYCLES)))
        counts = _array(arrays, "counts", np.uint64, (count, 2))
        names = arrays.get("names", np.empty(0))
        totals = _array(arrays, "totals", np.uint64, (count, len(names)))
        sound = cycles is not None and bool(np.isfinite(cycles).all() and (cycles >= 0).all())
        if cycles is None or counts is None or totals is None or names.dtype.kind != "U":
            return None
        if not sound or not counts.all():
            return None
        return [
            SimulatedLaunch(
                instructions,
                blocks,
                of_launch[0],
                of_launch[1],
                dict(zip(STACK_COMPONENTS, of_launch[2:], strict=True)),
                dict(zip(names.tolist(), counted, strict=True)),
            )
            for (instructions, blocks), of_launch, counted in zip(
                counts.tolist(), cycles.tolist(), totals.tolist(), strict=True
            )
        ]

    def _memory(
        self, arrays: Mapping[str, npt.NDArray[Any]], num_gpus: int
    ) -> list[_core.MemoryProfile] | None:
        sizes = _array(arrays, "sizes", np.int64, (num_gpus * len(self._kernels),))
        if sizes is None or not ((sizes >= 0) & (sizes <= _MOST_WORDS)).all():
            return None
        words = _array(arrays, "words", np.uint64, (int(sizes.sum()),))
        if words is None:
            return None
        try:
            parts = np.split(words, np.cumsum(sizes)[:-1])
            cores = [_core.MemoryProfile.from_words(part) for part in parts]
        except InputError:
            return None
        kernels = self._kernels * num_gpus
        return cores if all(map(_is_profile_of, cores, kernels)) else None

    @cached_property
    def _digests(self) -> list[str]:
        return [kernel.digest for kernel in self._kernels]


def _arrays_of(launches: Sequence[SimulatedLaunch]) -> dict[str, npt.NDArray[Any]]:
    """Return what interval simulation found of the launches of an application, as arrays."""
    names = sorted(launches[0].totals)
    cycles = [
        [one.cycles, one.sm_cycles, *(one.stack[part] for part in STACK_COMPONENTS)]
        for one in launches
    ]
    return {
        "counts": np.array([[one.instructions, one.blocks] for one in launches], dtype=np.uint64),
        "cycles": np.array(cycles, dtype=np.float64),
        "names": np.array(names),
        "totals": np.array([[one.totals[n] for n in names] for one in launches], dtype=np.uint64),
    }


def _array(
    arrays: Mapping[str, npt.NDArray[Any]], name: str, dtype: type, shape: tuple[int, ...]
) -> npt.NDArray[Any] | None:
    """Return an array of an entry of the cache; None unless it is what a stage keeps."""
    array = arrays.get(name)
    sound = array is not None and array.dtype == dtype and array.shape == shape
    return array if sound else None


def _has_warp(kernel: KernelTrace, position: Sequence[int]) -> bool:
    """Return whether a trace has a warp at a position: of its block, and in it."""
    block, warp = position
    core = kernel._core
    return 0 <= block < core.num_traced_blocks and 0 <= warp < len(core.block_warps(block)[1])


def _is_profile_of(profile: _core.MemoryProfile, kernel: KernelTrace) -> bool:
    """Return whether a memory profile counts each instruction of a trace's table."""
    rows = len(kernel._core.instruction_table()["pc"])
    return all(len(counts) == rows for counts in profile.per_row.values())
