"""Bounds of every model: the units of the schedulers, and the starts of thread blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack.hardware.description import Gpu
from warpstack.interval.profile import IntervalProfile, Launch

__all__ = [
    "UNIT_FIELDS",
    "unit_cycles",
    "unit_cycles_on",
    "with_block_starts",
    "with_block_starts_on",
]

#: Field of the interval between two instructions of a scheduler, by class of operations.
_INTERVALS = {
    name: f"{name}_interval" for name in ("integer", "fp32", "fp16", "fp64", "sfu", "tensor")
}
#: Field of the rate of the tensor cores, by type of matrices.
_TENSOR_RATES = {
    name: f"tensor_{name}_rate"
    for name in ("f16", "f16_f32", "bf16", "tf32", "f64", "f8", "s8", "s4", "b1")
}
#: Fields of `Gpu` that `unit_cycles` reads.
UNIT_FIELDS = frozenset(
    (*_INTERVALS.values(), *_TENSOR_RATES.values(), "tensor_warp_cycles", "schedulers_per_sm")
)
_read_units = attrgetter(
    "num_sms",
    "num_schedulers",
    "tensor_warp_cycles",
    *_INTERVALS.values(),
    *_TENSOR_RATES.values(),
)
_read_starts = attrgetter("block_interval_cycles", "block_replacement_cycles", "warp_start_cycles")


def unit_cycles(
    profiles: Sequence[IntervalProfile], gpus: Sequence[Gpu]
) -> npt.NDArray[np.float64]:
    """Return the cycles for which the busiest unit of the fullest SM works, shape (GPUs, kernels).

    Each scheduler has a unit for each class of operations, which takes an instruction every
    ``*_interval`` cycles; matrix instructions take as long as their multiply-adds at the rate of
    their type (``tensor_*_rate``), those of one warp ``tensor_warp_cycles`` longer. The warps of the
    blocks that an SM has at one time take the schedulers in turn, so that one that is left over has a
    unit for itself. 0 for a hand-made profile.
    """
    # Most of many GPUs are alike in what counts here.
    numbers: dict[tuple[Any, ...], int] = {}
    rows = [numbers.setdefault(values, len(numbers)) for values in map(_read_units, gpus)]
    found = [
        [_unit_cycles(profile.launch, values) if profile.launch else 0.0 for profile in profiles]
        for values in numbers
    ]
    return np.array(found, dtype=float)[rows]


def unit_cycles_on(profile: IntervalProfile, gpu: Gpu) -> float:
    """Return `unit_cycles` of one GPU, without arrays, which take longer than a model."""
    return _unit_cycles(profile.launch, _read_units(gpu)) if profile.launch else 0.0


def _unit_cycles(launch: Launch, values: tuple[Any, ...]) -> float:
    num_sms, schedulers, more_of_warp, *of_units = values
    counts = launch.unit_instructions
    intervals = dict(zip(_INTERVALS, of_units, strict=False))
    busy = {name: counts.get(name, 0) * interval for name, interval in intervals.items()}
    busy["integer"] = (counts.get("integer", 0) + counts.get("unknown", 0)) * intervals["integer"]
    if launch.tensor_operations:
        rates = dict(zip(_TENSOR_RATES, of_units[len(_INTERVALS) :], strict=True))
        for tensor_type, multiply_adds, is_of_group, count in launch.tensor_operations:
            if rate := rates[tensor_type]:
                more = 0.0 if is_of_group else more_of_warp
                each = max(math.ceil(multiply_adds / rate + more), 1)
                busy["tensor"] += count * (each - intervals["tensor"])
    warps = launch.warps_per_block
    if not warps > 0:
        return 0.0
    blocks = math.ceil(launch.num_blocks / num_sms)
    full, rest = divmod(blocks, launch.blocks_per_sm)
    of_one_scheduler = full * math.ceil(launch.blocks_per_sm * warps / schedulers)
    of_one_scheduler += math.ceil(rest * warps / schedulers)
    return float(max(busy.values()) / warps * of_one_scheduler)


def with_block_starts(
    cycles: npt.NDArray[np.float64], profiles: Sequence[IntervalProfile], gpus: Sequence[Gpu]
) -> npt.NDArray[np.float64]:
    """Return the cycles of launches on each GPU, the starts of their thread blocks included.

    Blocks start ``block_interval_cycles`` apart, so that the last SM begins later than the first.
    A launch takes no less than three chains do: the starts of all blocks and the run of the last
    one; the blocks that follow each other in one place of an SM, each ``block_replacement_ns``
    after the end of the one before; and the starts of all warps of an SM, ``warp_start_cycles``
    apart. A block alone runs as long as the representative warp, or as its warps take to issue.

    Parameters
    ----------
    cycles
        What a model predicts, shape (GPUs, kernels).
    profiles
        The kernels; a hand-made one, which has no blocks, keeps its cycles.
    gpus
        The GPUs.
    """
    starts: npt.NDArray[np.float64] = np.array(list(map(_read_starts, gpus)), dtype=float)
    launches = {number: profile.launch for number, profile in enumerate(profiles) if profile.launch}
    with_blocks = list(launches)
    if not with_blocks or not starts.any():
        return cycles
    issued = np.array([profiles[number].issued_and_stalled for number in with_blocks])
    # GPUs go down, kernels to the right.
    sms = np.array([gpu.num_sms for gpu in gpus])[:, np.newaxis]
    width = np.array([gpu.issue_width for gpu in gpus])[:, np.newaxis]
    given = cycles[:, with_blocks]
    latest = _longest_chain(
        (issued[:, 0], issued[:, 1]),
        np.array([launch.num_blocks for launch in launches.values()]),
        np.array([launch.warps_per_block for launch in launches.values()]),
        np.array([launch.blocks_per_sm for launch in launches.values()]),
        given,
        list(starts.T[:, :, np.newaxis]),
        sms,
        width,
        least=np.minimum,
        most=np.maximum,
    )
    result = cycles.copy()
    result[:, with_blocks] = np.where(np.any(starts, axis=1, keepdims=True), latest, given)
    return result


def with_block_starts_on(cycles: float, profile: IntervalProfile, gpu: Gpu) -> float:
    """Return `with_block_starts` of one GPU, without arrays, which take longer than a model."""
    starts = _read_starts(gpu)
    launch = profile.launch
    if launch is None or not any(starts):
        return cycles
    return float(
        _longest_chain(
            profile.issued_and_stalled,
            launch.num_blocks,
            launch.warps_per_block,
            launch.blocks_per_sm,
            cycles,
            starts,
            gpu.num_sms,
            gpu.issue_width,
            least=min,
            most=max,
        )
    )


def _longest_chain(
    issued_and_stalled: tuple[Any, Any],
    blocks: Any,
    warps: Any,
    blocks_per_sm: Any,
    cycles: Any,
    starts: Sequence[Any],
    num_sms: Any,
    issue_width: Any,
    *,
    least: Callable[[Any, Any], Any],
    most: Callable[[Any, Any], Any],
) -> Any:
    """Return the cycles of the longest chain of `with_block_starts`.

    What depends on the kernel or the GPU is a number with Python's `min` and `max`, or an array with
    NumPy's.
    """
    interval, replacement, warp_start = starts
    replacement = -(-replacement // 1)  # a block is replaced at the end of a cycle
    instructions, stalled = issued_and_stalled
    alone = instructions / issue_width + stalled
    sms = least(num_sms, blocks)
    places = least(sms * blocks_per_sm, blocks)
    of_block = most(alone + (warps - 1) * warp_start, warps * instructions / issue_width)
    in_one_place = -(-blocks // places)
    of_one_sm = -(-blocks // sms) * warps
    return reduce(
        most,
        (
            (sms - 1) * interval + cycles,
            (blocks - 1) * interval + of_block,
            (places - 1) * interval + in_one_place * (of_block + replacement) - replacement,
            (of_one_sm - 1) * warp_start + alone,
        ),
    )
