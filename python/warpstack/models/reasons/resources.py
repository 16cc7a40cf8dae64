"""The changes of a GPU that can be a reason: each of its resources made better by two."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from warpstack._core import GPU_FIELDS
from warpstack.errors import InputError
from warpstack.hardware.description import Gpu

__all__ = [
    "CHANGES",
    "LEAST_OF_PAIR",
    "Change",
    "Pair",
    "changed_fields",
    "changed_gpus",
    "changed_values",
    "pair_gpu",
    "pair_name",
    "pair_words",
]

#: By which each resource is made better.
_FACTOR = 2


class Change(NamedTuple):
    """A resource of a GPU made better by two, with the fields of `Gpu` that belong to it.

    Fields that are 0, which means off, stay, and each goes only as far as its range.

    Attributes
    ----------
    words
        What it is, as in "twice the SMs".
    more
        Fields that are doubled: sizes, counts and bandwidths.
    less
        Fields that are halved: times.
    parts
        The parts of a CPI stack that speak of the resource.
    moves_caches
        Whether the caches are then simulated anew. Where they are not, the accesses keep their order and
        their hits.
    """

    words: str
    more: tuple[str, ...] = ()
    less: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    moves_caches: bool = False


_UNITS = ("integer", "fp32", "fp16", "fp64", "sfu", "tensor")
_MATRICES = ("f16", "f16_f32", "bf16", "tf32", "f64", "f8", "s8", "s4", "b1")
_RESULTS = (*_UNITS, "uniform", "control", "barrier", "shuffle", "constant")

#: Changes by name. Of several that gain the same, the first one is the reason: those that say most come
#: first, those that buy several things at once come last.
CHANGES = {
    "2 x DRAM bandwidth": Change(
        "twice the DRAM bandwidth", ("dram_bandwidth_gbs", "dram_clock_ghz"), parts=("queue",)
    ),
    "2 x L2 slice requests": Change(
        "twice the requests per slice of L2 at once",
        ("l2_slices",),
        parts=("l2",),
        moves_caches=True,
    ),
    "2 x NoC": Change(
        "twice the bandwidth of the NoC and its ports",
        ("noc_bandwidth_gbs", "noc_sm_bytes_per_cycle", "l2_slice_bytes_per_cycle"),
        ("l2_slice_request_cycles",),
        parts=("noc",),
    ),
    "2 x MSHRs": Change(
        "twice the MSHRs",
        ("l1_mshrs", "l1_mshr_targets", "noc_queue_entries", "l1_miss_queue_entries"),
        parts=("mshr",),
    ),
    "2 x atomics": Change(
        "twice the lanes of atomics at once",
        less=("l2_atomic_lane_turns",),
        parts=("l2",),
        moves_caches=True,
    ),
    "2 x shared memory": Change(
        "twice the passes through shared memory at once",
        less=("shared_wavefront_cycles",),
        parts=("l1",),
    ),
    "2 x L1 tags": Change(
        "twice the lines that L1 looks up at once", ("l1_tags_per_cycle",), parts=("l1",)
    ),
    "2 x load-store unit": Change(
        "twice the load-store unit and its queue",
        ("lsu_queue_entries",),
        ("lsu_interval",),
        parts=("l1",),
    ),
    "2 x L1 ways": Change("twice the ways of L1", ("l1_ways",), moves_caches=True),
    "2 x L1 size": Change(
        "twice the L1",
        ("l1_size_kib", "unified_l1_kib", "shared_memory_carve_outs_kib"),
        parts=("l2", "dram", "mshr", "noc", "queue"),
        moves_caches=True,
    ),
    "2 x L2 size": Change(
        "twice the L2", ("l2_size_kib",), parts=("dram", "queue"), moves_caches=True
    ),
    "2 x instruction cache": Change(
        "twice the instruction cache and what it fetches at once",
        ("instruction_cache_kib", "instruction_preload_kib"),
        ("instruction_fetch_cycles",),
    ),
    "2 x arithmetic units": Change(
        "twice the arithmetic units",
        (*(f"tensor_{name}_rate" for name in _MATRICES),),
        (*(f"{name}_interval" for name in _UNITS), "tensor_warp_cycles"),
        parts=("dep",),
    ),
    "2 x issue width": Change(
        "twice the schedulers with their units",
        ("issue_width", "schedulers_per_sm"),
        parts=("base", "dep"),
    ),
    "arithmetic latencies / 2": Change(
        "half the latencies of arithmetic",
        less=tuple(f"{name}_latency" for name in _RESULTS),
        parts=("dep",),
    ),
    "L1 latency / 2": Change(
        "half the latency of L1 and shared memory",
        less=("l1_latency", "shared_memory_latency", "texture_latency"),
        parts=("l1",),
    ),
    "L2 latency / 2": Change("half the latency of L2", less=("l2_latency",), parts=("l2",)),
    "DRAM latency / 2": Change("half the latency of DRAM", less=("dram_latency",), parts=("dram",)),
    "2 x block starts": Change(
        "thread blocks and warps that start twice as fast",
        less=("block_interval_cycles", "block_replacement_ns", "warp_start_cycles"),
    ),
    "2 x SMs": Change(
        "twice the SMs",
        ("num_sms",),
        parts=("base", "dep", "l1", "l2", "dram", "mshr"),
        moves_caches=True,
    ),
}
#: Times of units: 0 cycles is not half of 1 but no limit.
_AT_LEAST_ONE = frozenset(f"{name}_interval" for name in _UNITS)


@cache
def _ranges() -> dict[str, tuple[float, float, bool]]:
    """Return least and most value of each field, and whether it is a whole number."""
    return {field.name: (field.least, field.most, field.kind == "whole") for field in GPU_FIELDS}


def changed_values(gpu: Gpu) -> dict[str, dict[str, Any]]:
    """Return the new values of each of `CHANGES` for a GPU, as far as their ranges go."""
    ranges = _ranges()

    def times(field: str, factor: float) -> Any:
        value = getattr(gpu, field)
        if isinstance(value, (list, tuple)):
            return [factor * one for one in value]
        least, most, is_whole = ranges[field]
        if field in _AT_LEAST_ONE:
            least = 1
        elif field == "l2_latency":
            least = gpu.l1_latency  # the way to L2 contains that to L1
        if not value:
            return value
        new = min(max(value * factor, min(least, value)), most)
        # Of a whole number of cycles, half is rounded up: no more than half is taken away.
        return -int(-new // 1) if is_whole else new

    changes = {
        name: {field: times(field, _FACTOR) for field in change.more}
        | {field: times(field, 1 / _FACTOR) for field in change.less}
        for name, change in CHANGES.items()
    }
    if not gpu.dram_channels:  # else there would be twice the channels, too
        changes["2 x L2 slice requests"]["dram_channels"] = gpu.l2_slices
    return changes


def changed_gpus(gpu: Gpu) -> dict[str, Gpu]:
    """Return the GPU with each of `CHANGES` that it allows and that changes something, by name."""
    gpus = {}
    for name, values in changed_values(gpu).items():
        other = {field: new for field, new in values.items() if _differs(getattr(gpu, field), new)}
        if not other or set(other) == {"dram_channels"}:
            continue
        try:
            gpus[name] = gpu.replace(**other)
        except InputError:
            continue  # a GPU that cannot be: half of its sets, say
    return gpus


#: Two of `CHANGES` at once, by their names.
Pair = tuple[str, str]
#: Pairs are tried where no change gains so much, and named where they do.
LEAST_OF_PAIR = 1.05


def pair_name(pair: Pair) -> str:
    """Return the name of two changes at once."""
    return " + ".join(pair)


def pair_words(pair: Pair) -> str:
    """Return two changes at once in words."""
    return " and ".join(CHANGES[name].words for name in pair)


def pair_gpu(gpu: Gpu, changed: Mapping[str, Gpu], pair: Pair) -> Gpu | None:
    """Return the GPU with two of `CHANGES`, from those with each alone; None if there is none."""
    fields: dict[str, Any] = {}
    for name in pair:
        fields |= changed_fields(gpu, changed[name], name)
    try:
        return gpu.replace(**fields)
    except InputError:
        return None


def changed_fields(gpu: Gpu, changed: Gpu, change: str) -> dict[str, Any]:
    """Return the fields that one of `CHANGES` changed, with their new values."""
    fields = (*CHANGES[change].more, *CHANGES[change].less, "dram_channels")
    return {
        field: getattr(changed, field)
        for field in fields
        if getattr(changed, field) != getattr(gpu, field)
    }


def _differs(old: Any, new: Any) -> bool:
    return list(old) != list(new) if isinstance(new, list) else bool(old != new)
