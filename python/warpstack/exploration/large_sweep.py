"""Sweeps whose rows are on disk alone: more than fit in memory, written by one program or several."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from warpstack._util.arguments import as_integer, as_path, printable
from warpstack._util.checked import checked
from warpstack._util.choices import DEFAULT_MODEL, CacheRuns
from warpstack._util.former import former_keywords
from warpstack._util.options import Options, TimeChanges, options_of
from warpstack._util.progress import progress_bar
from warpstack.errors import InputError, not_a
from warpstack.exploration.stage_cache import CacheLike
from warpstack.exploration.store import SweepStore
from warpstack.exploration.sweep import Apps, Axes, Design, Work
from warpstack.hardware.description import GpuLike, as_gpu

if TYPE_CHECKING:
    import distributed
    import pyarrow.dataset
    from typing_extensions import Unpack

__all__ = ["open_store", "sweep_to_store"]

_MOST_PARTS = 10**6 - 1


@former_keywords(app_or_kernels="app", share="part")
@checked
def sweep_to_store(
    app: Apps,
    gpu: GpuLike,
    axes: Axes,
    models: str | Iterable[str] = (DEFAULT_MODEL,),
    *,
    store: str | os.PathLike[str],
    part: tuple[int, int] | None = None,
    workers: int | None = None,
    client: distributed.Client | None = None,
    cache: CacheLike = True,
    options: Options | None = None,
    caches: CacheRuns = "exact",
    anchor: str | None = None,
    progress: bool = False,
    **changes: Unpack[TimeChanges],
) -> pyarrow.dataset.Dataset:
    """Do a sweep whose rows go to a folder and not through memory.

    The rows are those of `sweep`, in any order; ``point`` and ``kernel`` say which they are. The same
    call again computes only what the folder lacks.

    Parameters
    ----------
    app, gpu, axes, models
        As for `sweep`.
    store
        Folder for the rows, a Parquet dataset; each of its files has at most some 260,000 rows.
    part
        Which part of the work of how many this program computes, from 0: ``(0, 4)`` to ``(3, 4)`` are four
        programs, on one machine or several, that write to one folder.
    workers, client, cache, options, caches, anchor, progress, **changes
        As for `sweep`. Each program finds the answers at the base, or takes them from the cache.

    Returns
    -------
    pyarrow.dataset.Dataset
        What `open_store` returns: the rows that are there now, read when they are asked for.

    Raises
    ------
    InputError
        If an argument is unknown, the folder holds something else, another program writes the same
        part or parts of another number, or the anchor has no answer at the base.
    """
    how = options_of("sweep_to_store", options, changes, TimeChanges)
    design = Design.of(app, as_gpu(gpu), axes, models, how.profiler)
    first, count = (0, 1) if part is None else _checked_part(part)
    work = Work(
        design, how, workers=workers, client=client, cache=cache, caches=caches, anchor=anchor
    )
    sizes = work.sizes
    kept = SweepStore(store, work.identity, resume=True, share=part)
    with contextlib.closing(kept):
        mine = range(first, len(sizes), count)
        finished = kept.finished(sizes)
        missing = [number for number in mine if number not in finished]
        total = sum(sizes[number] for number in mine)
        work.find_bases(missing, progress)
        with (
            progress_bar(progress, total, "sweeping", "prediction") as bar,
            contextlib.closing(work.run(missing)) as running,
        ):
            bar.update(total - sum(sizes[number] for number in missing))
            for number, table in running:
                kept.add(number, table)
                bar.update(len(table))
    return open_store(store)


@checked
def open_store(store: str | os.PathLike[str]) -> pyarrow.dataset.Dataset:
    """Open the rows of a sweep's store without reading them.

    Parameters
    ----------
    store
        The folder that `sweep` or `sweep_to_store` writes to, perhaps at this moment.

    Returns
    -------
    pyarrow.dataset.Dataset
        The rows that are there now, in any order: ``to_table(columns=..., filter=...)`` and
        ``to_batches`` read what is asked for; DuckDB and Polars take it as it is.

    Raises
    ------
    InputError
        If the folder holds no rows.
    """
    import pyarrow.dataset as dataset

    folder = as_path("store", store)
    parts = sorted(str(path) for path in folder.glob("part-*.parquet"))
    if not parts:
        raise InputError(f"store {printable(folder)}: there are no rows of a sweep; run one first")
    return dataset.dataset(parts, format="parquet")


def _checked_part(part: tuple[int, int]) -> tuple[int, int]:
    if not isinstance(part, (tuple, list)) or len(part) != 2:
        raise not_a("part", "a pair of numbers, such as (0, 4)", part)
    count = as_integer("part: the number of parts", part[1], 1, _MOST_PARTS)
    return as_integer("part", part[0], 0, count - 1), count
