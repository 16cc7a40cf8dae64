"""Advice for a line of source, derived from its counters."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpstack._util.lazy import pandas as pd

__all__ = ["advice_for", "may_be_used_again"]

#: An access that moves this many times the sectors that its bytes need is scattered.
_SCATTERED = 2.0
#: Hit rate of L1 below which, and of L2 above which, data are used again, but too late for L1.
_LOW_L1, _HIGH_L2 = 0.5, 0.5
#: Passes through shared memory per access beyond the least that are worth a word.
_CONFLICTS = 0.5
#: Part of a warp's threads that is active, below which control flow diverges.
_FEW_LANES = 0.75
#: Lanes of atomics per different sector from which on they wait for each other.
_CROWD = 256


def advice_for(line: pd.Series[Any], threads_per_warp: float) -> list[str]:
    """Return what would help a line, most important first; empty where nothing stands out.

    Parameters
    ----------
    line
        Sums of `instruction_counts` over the line, and of ``cold_dram_requests``, those of
        its loads to DRAM with an empty L2 before the launch.
    threads_per_warp
        Threads that a warp of the launch has in the mean: lanes beyond them are not diverged.
    """
    advice = []
    if line["atomic_sectors"] and line["atomic_lanes"] / line["atomic_sectors"] >= _CROWD:
        sectors = int(line["atomic_sectors"])
        advice.append(
            f"{int(line['atomic_lanes']):,} atomic operations meet in {sectors} "
            f"sector{'s' if sectors > 1 else ''} of 32 bytes: add up in registers or shared memory "
            "first, then do one atomic per warp or thread block"
        )
    elif line["least_sectors"] and line["sectors"] >= _SCATTERED * line["least_sectors"]:
        each = line["sectors"] / line["cached_accesses"]
        least = max(line["least_sectors"] / line["cached_accesses"], 1)
        # One lane alone needs its sector, however few bytes it takes of it.
        if each >= _SCATTERED * least:
            advice.append(
                f"{each:.3g} sectors per access where {np.ceil(least):.0f} would do: neighbouring "
                "lanes should access neighbouring addresses; transpose the index or the data"
            )
    if line["load_requests"] and line["load_misses"]:
        l1 = 1 - line["load_misses"] / line["load_requests"]
        # What only a launch before has left in L2 is not used again.
        l2 = 1 - line["cold_dram_requests"] / line["load_misses"]
        if l1 < _LOW_L1 and l2 > _HIGH_L2:
            advice.append(
                f"L1 has {l1:.0%} of what is loaded, but L2 {l2:.0%} of the rest: the data are used "
                "again, too late for L1; work on smaller tiles, or keep them in shared memory or "
                "registers"
            )
    if line["shared_accesses"] and line["bank_conflicts"] >= _CONFLICTS * line["shared_accesses"]:
        more = line["bank_conflicts"] / line["shared_accesses"]
        advice.append(
            f"bank conflicts: {more:.3g} more passes through shared memory per access than needed; "
            "pad the rows of the array by one element, or exchange the indices"
        )
    if line["busy"]:
        # Without the branches that no lane takes: `if (i < n)` is not diverged where all lanes enter.
        active = line["lanes"] / line["busy"]
        if active < _FEW_LANES * threads_per_warp and not line["atomics"]:
            advice.append(
                f"{active:.3g} of {threads_per_warp:.3g} lanes are active: branch by warp rather than by "
                "thread, or sort the work so that neighbouring threads take the same way"
            )
    return advice


def may_be_used_again(counts: pd.DataFrame) -> bool:
    """Return whether a line may get the advice on data that come too late for L1, as far as L2 is warm.

    Of the sums of a line, shares are between those of its instructions: `counts` has a row of each.
    """
    l1 = 1 - counts["load_misses"] / counts["load_requests"]
    l2 = 1 - counts["load_dram_requests"] / counts["load_misses"]
    return bool((l1 < _LOW_L1).any() and (l2 > _HIGH_L2).any())
