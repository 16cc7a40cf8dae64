"""How long it takes to start the thread blocks of a launch, whatever the model says of running them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from warpstack.hardware.description import Gpu
from warpstack.interval.profile import IntervalProfile

__all__ = ["with_block_starts"]


def with_block_starts(
    cycles: npt.NDArray[np.float64], profile: IntervalProfile, gpus: Sequence[Gpu]
) -> npt.NDArray[np.float64]:
    """Return the cycles of a launch on each GPU, the starts of its thread blocks included.

    Blocks start ``block_interval_cycles`` apart, so that the last SM begins later than the first.
    A launch takes no less than three chains do: the starts of all blocks and the run of the last
    one; the blocks that follow each other in one place of an SM, each ``block_replacement_ns``
    after the end of the one before; and the starts of all warps of an SM, ``warp_start_cycles``
    apart. A block alone runs as long as the representative warp.

    Parameters
    ----------
    cycles
        What a model predicts, shape (GPUs,).
    profile
        The kernel; a hand-made one, which has no blocks, keeps its cycles.
    gpus
        The GPUs.
    """
    launch = profile.launch
    fields = ("block_interval_cycles", "block_replacement_ns", "warp_start_cycles")
    if launch is None or not any(getattr(gpu, field) for gpu in gpus for field in fields):
        return cycles
    interval, replacement, warp_start = (
        np.array([getattr(gpu, field) for gpu in gpus], dtype=float) for field in fields
    )
    replacement = np.ceil(replacement * np.array([gpu.clock_ghz for gpu in gpus]))
    instructions, stalled = profile.issued_and_stalled
    alone = instructions / np.array([gpu.issue_width for gpu in gpus]) + stalled
    blocks = launch.num_blocks
    sms = np.minimum([gpu.num_sms for gpu in gpus], blocks)
    places = np.minimum(sms * launch.blocks_per_sm, blocks)
    of_block = alone + (launch.warps_per_block - 1) * warp_start
    in_one_place = np.ceil(blocks / places)
    of_one_sm = np.ceil(blocks / sms) * launch.warps_per_block
    chains = (
        sms * interval + cycles,
        blocks * interval + of_block,
        places * interval + in_one_place * (of_block + replacement) - replacement,
        of_one_sm * warp_start + alone,
    )
    waits = (interval > 0) | (replacement > 0) | (warp_start > 0)
    return np.where(waits, np.max(chains, axis=0), cycles)
