"""The contribution of each part of the memory stage (cache paper, Section 5.3, Table 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from warpstack._util.checked import checked
from warpstack._util.former import former_keywords
from warpstack._util.options import FlushChanges, Options, options_of
from warpstack._util.progress import progress_bar
from warpstack.hardware.description import Gpu, GpuLike, as_gpu
from warpstack.memory.caches import MemorySystem
from warpstack.traces.trace import App, KernelTrace, kernels_of, warn_of_samples

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["VARIANTS", "ablate"]

#: The columns of the paper's Table 5, in its order.
VARIANTS = ("Final", "L1NonSec", "L2NonSec", "NoL1Filter", "NoAdaptL1")


@former_keywords(app_or_kernel="app", num_threads="workers")
@checked
def ablate(
    app: App | KernelTrace,
    gpu: GpuLike,
    *,
    options: Options | None = None,
    workers: int | None = None,
    progress: bool = False,
    **changes: Unpack[FlushChanges],
) -> pd.DataFrame:
    """Simulate the caches as they are, and with one part of the model left out at a time.

    The accesses are in the paper's order, ``round_robin``, which does not depend on what is left out.

    ``L1NonSec`` and ``L2NonSec``: that cache has lines of 32 bytes without sectors, in as many bytes
    and ways (the paper's stand-in for a cache without sectors). ``NoL1Filter``: L2 sees what hits in
    L1 too. ``NoAdaptL1``: L1 has `Gpu.l1_size_kib` whatever the kernel's shared memory; the same as
    ``Final`` on a GPU without an adaptive L1.

    Parameters
    ----------
    app
        An application or one kernel.
    gpu
        The GPU: a description, its name, or the path of one.
    options, **changes
        How the stage works; see `warpstack.Options`: ``flush_l2``, ``initial_l2``. Without
        options L2 is emptied before each kernel, as by the profilers that the paper compares with.
    workers
        As for `MemorySystem`.
    progress
        Show a progress bar on standard error.

    Returns
    -------
    DataFrame
        One row per variant and kernel: ``variant``, ``kernel``, ``name``, ``l1_hit_rate``,
        ``l1_global_load_hit_rate``, ``l2_hit_rate``, ``l2_read_hit_rate``, and in sectors
        ``l2_reads``, ``l2_writes``, ``dram_reads``, ``dram_writes`` (with what L2 holds dirty at the
        end, which a flush writes) and ``dram_total``.

    Raises
    ------
    InputError
        If a thread block does not fit on an SM, or a variant's cache is impossible.
    """
    given = Options(flush_l2=True) if options is None else options
    how = options_of("ablate", given, changes, FlushChanges)
    flush_l2 = how.flush_l2
    base = as_gpu(gpu)
    kernels = kernels_of(app)
    warn_of_samples(kernels, "ablate")
    rows = []
    with progress_bar(progress, len(VARIANTS) * len(kernels), "ablations", "kernel") as bar:
        for variant in VARIANTS:
            system = MemorySystem(
                _variant(base, variant),
                access_order="round_robin",
                filter_l1_hits=variant != "NoL1Filter",
                workers=workers,
                initial_l2=how.written_share,
            )
            for kernel in kernels:
                if flush_l2:
                    system.flush_l2()
                profile = system.run(kernel)
                rates, totals = profile.hit_rates(), profile.totals
                dram_writes = totals["dram_write_sectors"]
                if flush_l2:
                    dram_writes += totals["l2_dirty_sectors"]
                rows.append(
                    {
                        "variant": variant,
                        "kernel": kernel.launch_id,
                        "name": kernel.short_name,
                        "l1_hit_rate": rates["l1"],
                        "l1_global_load_hit_rate": rates["l1_global_load"],
                        "l2_hit_rate": rates["l2"],
                        "l2_read_hit_rate": rates["l2_read"],
                        "l2_reads": totals["l2_read_sectors"],
                        "l2_writes": totals["l2_write_sectors"],
                        "dram_reads": totals["dram_read_sectors"],
                        "dram_writes": dram_writes,
                        "dram_total": totals["dram_read_sectors"] + dram_writes,
                    }
                )
                bar.update(1)
    return pd.DataFrame(rows)


def _variant(gpu: Gpu, variant: str) -> Gpu:
    if variant == "L1NonSec":
        return gpu.replace(l1_line_bytes=32, l1_sector_bytes=32)
    if variant == "L2NonSec":
        return gpu.replace(l2_line_bytes=32, l2_sector_bytes=32)
    if variant == "NoAdaptL1":
        return gpu.replace(unified_l1_kib=0, shared_memory_carve_outs_kib=())
    return gpu
