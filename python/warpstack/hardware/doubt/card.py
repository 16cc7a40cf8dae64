"""What values of a GPU that are guesses add to the doubt about a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from warpstack._util.choices import Profiler
from warpstack.errors import InputError
from warpstack.hardware.description import Gpu
from warpstack.hardware.profiler import launch_field

__all__ = ["PLAUSIBLE", "card_doubt", "guesses", "time_doubt"]

#: By what factor, up or down, the true value of a guess may differ: rates of chips of one family differ
#: by a fifth to a third, the entries of a table by a power of two, and what is sustained of a bandwidth by a
#: tenth. Fields that are left out name a policy, or are of units that few kernels use.
PLAUSIBLE = {
    **dict.fromkeys(
        ("l1_latency", "l2_latency", "dram_latency", "integer_latency", "fp32_latency"), 1.2
    ),
    **dict.fromkeys(("noc_bandwidth_gbs", "noc_sm_bytes_per_cycle"), 1.3),
    **{"l2_slices": 1.25, "l2_slice_bytes_per_cycle": 1.3, "l2_slice_request_cycles": 1.3},
    **{"dram_bandwidth_gbs": 1.1, "dram_efficiency": 1.1},
    **{"l1_mshrs": 2.0, "block_replacement_ns": 1.3},
    **dict.fromkeys(
        ("fp16_interval", "fp32_interval", "fp64_interval", "integer_interval", "sfu_interval"), 2.0
    ),
}
#: By what factor a launch that is a guess may be longer or shorter: those of one profiler differ so much
#: between cards.
_LAUNCH = 1.3
#: The part of the CPI stack that a value stretches, about in proportion.
_PART_OF = {
    **{"l1_latency": "l1", "l2_latency": "l2", "dram_latency": "dram"},
    **{"integer_latency": "dep", "fp32_latency": "dep", "l1_mshrs": "mshr"},
    **dict.fromkeys(("noc_bandwidth_gbs", "noc_sm_bytes_per_cycle", "l2_slices"), "noc"),
    **dict.fromkeys(("dram_bandwidth_gbs", "dram_efficiency"), "queue"),
}
#: The field by which a model that reads it is known, where it is another one.
_READ_WITH = {"l2_slices": "l2_slice_request_cycles", "dram_efficiency": "dram_bandwidth_gbs"}
#: What stands for a number that other stages read, too: the rate of all slices of L2 is what a model sees of
#: their number.
_STAND_INS = {"l2_slices": ("l2_slice_bytes_per_cycle", "l2_slice_request_cycles")}


def guesses(gpu: Gpu) -> tuple[str, ...]:
    """Return the values of a GPU that are guesses and that may differ: names in `PLAUSIBLE`."""
    known = gpu.confidences
    return tuple(name for name in PLAUSIBLE if known.get(name) == "guessed" and getattr(gpu, name))


#: Other GPUs, by the digest of a GPU and the guess that they differ in.
_others: dict[tuple[str, str], list[Gpu]] = {}
_MOST_OTHERS = 1000


def _varied(gpu: Gpu, name: str) -> list[Gpu]:
    """Return GPUs in which a guess, or what stands for it, is at the ends of its range."""
    key = (gpu.digest, name)
    if key not in _others:
        if len(_others) >= _MOST_OTHERS:
            _others.clear()
        _others[key] = [
            other
            for times in (1 / PLAUSIBLE[name], PLAUSIBLE[name])
            if (other := _changed(gpu, name, times)) is not None
        ]
    return _others[key]


def _changed(gpu: Gpu, name: str, times: float) -> Gpu | None:
    changes: dict[str, Any] = {}
    for field in _STAND_INS.get(name, (name,)):
        value = getattr(gpu, field)
        # A request takes the longer the lower the rate is.
        changes[field] = type(value)(value / times if field.endswith("_cycles") else value * times)
    try:
        return gpu.replace(**changes)
    except InputError:
        return None  # no GPU can be so, and the guess cannot be so wrong


def card_doubt(
    gpu: Gpu,
    cycles: float,
    cpi: float,
    cpi_stack: Mapping[str, float],
    cycles_on: Callable[[Gpu], float] | None = None,
    reads: frozenset[str] = frozenset(),
) -> float:
    """Return half the width of the range of cycles, as a logarithm, that guessed values of a GPU make.

    Each guess that the model reads is moved to both ends of its plausible range with the interval
    profile kept; the farther cycles count. For a latency, whose cycles the profile has, and a model
    without a profile, the part of the CPI stack moves in proportion. Guesses are independent of each
    other: they add up in quadrature.

    Parameters
    ----------
    gpu
        The GPU.
    cycles, cpi, cpi_stack
        What the model predicts on it.
    cycles_on
        The cycles of the model on another GPU; None: it has no profile.
    reads
        The fields of `Gpu` that it reads.
    """
    squares = 0.0
    for name in guesses(gpu):
        if cycles_on is not None and _READ_WITH.get(name, name) in reads:
            others = [cycles_on(other) / cycles for other in _varied(gpu, name)]
            doubt = max((abs(math.log(ratio)) for ratio in others), default=0.0)
        else:
            share = cpi_stack[_PART_OF[name]] / cpi if name in _PART_OF and cpi else 0.0
            doubt = math.log1p(share * (PLAUSIBLE[name] - 1))
        squares += doubt**2
    return math.sqrt(squares)


def time_doubt(values: Mapping[str, Any], gpu: Gpu, profiler: Profiler, card: float) -> float:
    """Return half the width of the range of a time: that of its cycles, and of a guessed launch.

    Parameters
    ----------
    values
        ``time_us`` and ``launch_us`` of a row.
    gpu, profiler
        Whose launch it is.
    card
        What `card_doubt` says of its cycles.
    """
    time, launch = float(values["time_us"]), float(values["launch_us"])
    if not time > 0:
        return 0.0
    is_guess = gpu.confidences.get(launch_field(profiler)) == "guessed"
    return math.hypot(
        (1 - launch / time) * card, launch / time * math.log(_LAUNCH) if is_guess else 0.0
    )
