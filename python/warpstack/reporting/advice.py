"""What would help a line of source, or a launch, and what it would gain."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from warpstack._util.lazy import pandas as pd
from warpstack.hardware.description import Gpu
from warpstack.memory.caches import occupancy
from warpstack.models.program_changes import applying, gains_of
from warpstack.traces.trace import KernelTrace

__all__ = [
    "LEAST_GAIN",
    "OF_LAUNCH",
    "Advice",
    "Suggestion",
    "advise",
    "for_launch",
    "for_line",
    "with_room",
]

#: Advice that gains less is not given.
LEAST_GAIN = 1.05
#: An access that moves this many times the sectors that its bytes need is scattered.
_SCATTERED = 2.0
#: Hit rate of L1 below which data that are used again come too late for it.
_LOW_L1 = 0.5
#: Part of the loaded sectors that the thread block had loaded before, from which on it uses data again.
_AGAIN = 0.5
#: Part of a line's accesses that repeat the one before them which is worth a word.
_HELD = 0.25
#: Passes through shared memory per access beyond the least that are worth a word.
_CONFLICTS = 0.5
#: Part of a warp's threads that is active, below which control flow diverges.
_FEW_LANES = 0.75
#: Lanes of atomics per different sector from which on they wait for each other.
_CROWD = 256
#: Part of a line's instructions that are of integer divisions which is worth a word.
_DIVISIONS = 0.25
#: Times that a word of shared memory is read, from which on threads may make tiles of results.
_SHARED_REUSE = 8.0
#: Loads of shared memory per operation of floating point that tiles of 4 x 4 results have.
_SHARED_LOADS = 0.5
#: Warp instructions from barrier to barrier below which the barrier takes longer than the work.
_LITTLE_WORK = 32

#: Changes that a programmer makes for all lines of a branch at once.
_TOGETHER = ("no_divergence",)
#: Columns of `with_room` that say the same of each row.
OF_LAUNCH = ("shared_reuse", "all_executions")


class Suggestion(NamedTuple):
    """What the counters of a line support: a key of `PROGRAM_CHANGES`, and what it would mean here."""

    change: str
    text: str


class Advice(NamedTuple):
    """A suggestion with its price.

    Attributes
    ----------
    text
        What would help, and why.
    change
        The key of `warpstack.models.PROGRAM_CHANGES` that stands for it.
    gain
        Cycles of the launch without the change over those with it, by `interval_simulation`; of a large
        launch by the model.
    """

    text: str
    change: str
    gain: float

    def __str__(self) -> str:
        return f"{self.text}: {self.gain:.3g} times faster"


def with_room(counts: pd.DataFrame, room: pd.DataFrame, kernel: KernelTrace) -> pd.DataFrame:
    """Return counts with the columns of `room_of`, as ``room_`` and their name.

    Lanes of atomics that meet are those of the caches, and ``room_shared_meeting`` those of shared memory.
    ``shared_atomics`` and ``shared_loads`` are the atomics and loads there, ``load_sectors`` the sectors of
    loads, ``floating`` the executed operations of floating point. Each row has ``shared_reuse``, how often
    the launch reads a word of shared memory that it wrote, and ``all_executions``.
    """
    table = kernel.instructions
    own = room.add_prefix("room_")
    is_shared = (table["space"] == "shared").to_numpy()
    meeting = own.pop("room_meeting_lanes").to_numpy()
    own["room_meeting_lanes"] = np.where(is_shared, 0, meeting)
    own["room_shared_meeting"] = np.where(is_shared, meeting, 0)
    is_atomic = table["kind"].isin(["atomic", "reduction"]).to_numpy()
    own["shared_atomics"] = np.where(is_shared & is_atomic, counts["shared_accesses"], 0)
    is_load = (table["kind"] == "load").to_numpy()
    own["load_sectors"] = np.where(is_load, counts["sectors"], 0)
    stores = np.where(is_shared & (table["kind"] == "store"), counts["lanes"], 0).sum()
    loads = np.where(is_shared & is_load, counts["lanes"], 0).sum()
    own["shared_loads"] = np.where(is_shared & is_load, counts["executions"], 0)
    own["shared_reuse"] = loads / stores if stores else 0.0
    is_floating = table["op_class"].isin(["fp16", "fp32", "fp64"]).to_numpy()
    own["floating"] = np.where(is_floating, counts["executions"], 0)
    own["all_executions"] = counts["executions"].sum()
    own.index = counts.index
    return counts.join(own)


def for_line(line: pd.Series[Any], threads_per_warp: float) -> list[Suggestion]:
    """Return what the counters of a line support.

    Parameters
    ----------
    line
        Sums of `instruction_counts`, `with_room`, over the line.
    threads_per_warp
        Threads that a warp of the launch has in the mean: lanes beyond them are not diverged.
    """
    return [
        *_atomics(line),
        *_places(line),
        *_reuse(line),
        *_banks(line),
        *_tiles(line),
        *_issued(line, threads_per_warp),
    ]


def _atomics(line: pd.Series[Any]) -> Iterable[Suggestion]:
    sectors = int(line["atomic_sectors"])
    if sectors and line["atomic_lanes"] / sectors >= _CROWD:
        crowd = (
            f"{int(line['atomic_lanes']):,} atomic operations meet in {sectors} "
            f"sector{'s' if sectors > 1 else ''} of 32 bytes"
        )
        yield Suggestion(
            "private_atomics",
            f"{crowd}: add up in shared memory first, then do one atomic per word and thread block",
        )
    if line["room_meeting_lanes"] >= line["atomics"] > 0:
        more = line["room_meeting_lanes"] / line["atomics"]
        yield Suggestion(
            "combined_atomics",
            f"{more:.3g} more lanes of a warp change a word that another one changes: add up in the "
            "warp first, by shuffles, then do one atomic per warp",
        )
    here = line["shared_atomics"]
    if here and line["room_shared_meeting"] >= _CONFLICTS * here:
        yield Suggestion(
            "combined_atomics",
            f"an atomic of shared memory takes {1 + line['room_shared_meeting'] / here:.3g} turns, as "
            "lanes of a warp meet at words or banks: keep several copies of the bins, for neighbouring "
            "lanes one each, or add equal ones up in registers",
        )


def _places(line: pd.Series[Any]) -> Iterable[Suggestion]:
    accesses = line["cached_accesses"] - line["atomics"]
    if accesses <= 0:
        return
    each = line["sectors"] / line["cached_accesses"]
    least = line["least_sectors"] / line["cached_accesses"]
    # One lane alone needs its sector, however few bytes it takes of it.
    if line["room_sectors"] and each >= _SCATTERED * max(least, 1):
        yield Suggestion(
            "coalesced",
            f"{each:.3g} sectors per access where {math.ceil(least):.0f} would do: neighbouring "
            "lanes should access neighbouring addresses; transpose the index or the data",
        )
    if line["room_pitch"]:
        yield Suggestion(
            "padded_pitch",
            "rows of the array lie a multiple of 512 bytes apart, so that a column falls on few sets, "
            "slices and banks: make the rows 128 bytes longer",
        )


def _reuse(line: pd.Series[Any]) -> Iterable[Suggestion]:
    loads = line["load_requests"]
    if loads and line["room_again"] >= _AGAIN * line["load_sectors"]:
        l1 = 1 - line["load_misses"] / loads
        again = line["room_again"] / line["load_sectors"]
        if l1 < _LOW_L1:
            why = (
                f"L1 has {l1:.0%} of what is loaded, though the thread block had loaded {again:.0%} "
                "before: the data are used again, too late for L1; work on smaller tiles, or keep them "
                "in shared memory or registers"
            )
        else:
            why = (
                f"{again:.0%} of what is loaded the thread block had loaded before: load it once, into "
                "shared memory, or let a thread make several results of what it has in registers"
            )
        yield Suggestion("kept_in_block", why)
    accesses = line["cached_accesses"]
    if accesses and line["room_held"] >= _HELD * accesses:
        yield Suggestion(
            "kept_in_registers",
            f"{line['room_held'] / accesses:.0%} of the accesses are those that the warp made just "
            "before: keep the value in a variable of the thread, and store it once, behind the loop",
        )


def _banks(line: pd.Series[Any]) -> Iterable[Suggestion]:
    accesses = line["shared_accesses"] - line["shared_atomics"]
    if accesses > 0 and line["room_passes"] >= _CONFLICTS * accesses:
        yield Suggestion(
            "no_bank_conflicts",
            f"bank conflicts: {line['room_passes'] / accesses:.3g} more passes through shared memory per "
            "access than needed; pad the rows of the array by one element, or exchange the indices",
        )


def _tiles(line: pd.Series[Any]) -> Iterable[Suggestion]:
    loads = line["shared_loads"]
    are_many = line["room_tiled"] and loads > _SHARED_LOADS * line["floating"] > 0
    if are_many and line["shared_reuse"] >= _SHARED_REUSE:
        yield Suggestion(
            "register_tiles",
            f"{loads / line['floating']:.2g} loads of shared memory per operation, and each word is read "
            f"{line['shared_reuse']:.3g} times: let a thread make several results, 4 x 4 say, of what it "
            "loads into registers",
        )


def _issued(line: pd.Series[Any], threads_per_warp: float) -> Iterable[Suggestion]:
    if line["busy"] and line["room_partial"]:
        # Without the branches that no lane takes: `if (i < n)` is not diverged where all lanes enter.
        active = line["lanes"] / line["busy"]
        if active < _FEW_LANES * threads_per_warp and not line["atomics"]:
            yield Suggestion(
                "no_divergence",
                f"{active:.3g} of {threads_per_warp:.3g} lanes are active: branch by warp rather than by "
                "thread, or sort the work so that neighbouring threads take the same way",
            )
    if line["room_divisions"] >= _DIVISIONS * line["executions"] > 0:
        yield Suggestion(
            "cheap_division",
            f"{line['room_divisions'] / line['executions']:.0%} of the instructions are of integer "
            "quotients or remainders by what the compiler does not know: make it a power of two (shift "
            "and mask) or a constant, or count along",
        )
    if line["room_waits"] and line["all_executions"] < _LITTLE_WORK * line["room_waits"]:
        work = line["all_executions"] / line["room_waits"]
        yield Suggestion(
            "no_barriers",
            f"a warp meets the others at a barrier after every {work:.0f} instructions: exchange values "
            "within warps, by shuffles, and between warps once",
        )


def for_launch(kernel: KernelTrace, gpu: Gpu) -> list[Suggestion]:
    """Return what would help the launch as a whole, as far as its size and resources support it."""
    known = occupancy(kernel, gpu)
    blocks = int(known["blocks_per_sm"])
    found = []
    rest = kernel.num_blocks % (blocks * gpu.num_sms)
    if kernel.num_blocks > rest > 0:
        found.append(
            Suggestion(
                "full_last_wave",
                f"the last wave has {rest:,} of {blocks * gpu.num_sms:,} thread blocks: launch whole "
                "waves, smaller thread blocks, or one wave whose blocks take turns at the work",
            )
        )
    what = {"registers_per_sm": "registers", "shared_memory_kib_per_sm": "shared memory"}
    if known["limit"] in what:
        found.append(
            Suggestion(
                "free_occupancy",
                f"{what[known['limit']]} let{'s' if 'shared' in known['limit'] else ''} an SM hold "
                f"{blocks} thread block{'s' if blocks > 1 else ''} at once: use less of them",
            )
        )
    return found


def advise(
    kernel: KernelTrace,
    gpu: Gpu,
    model: str,
    room: pd.DataFrame,
    wanted: Mapping[Any, tuple[Sequence[int] | None, Sequence[Suggestion]]],
    before: float | None = None,
) -> dict[Any, list[Advice]]:
    """Return the advice for each line that gains `LEAST_GAIN` at least, most important first.

    Parameters
    ----------
    kernel, gpu, model
        What is predicted, and by which model, which prices what is too large for `interval_simulation`.
    room
        What `room_of` says of the kernel.
    wanted
        Rows of each line (None: the launch), and what its counters support.
    before
        The model's cycles of the kernel alone, where they are known.
    """
    together = {
        change: sorted(
            {
                row
                for rows, found in wanted.values()
                if rows is not None
                for one in found
                if one.change == change
                for row in rows
            }
        )
        for change in _TOGETHER
    }
    keys: list[tuple[Any, Suggestion, int]] = []
    tried: list[tuple[str, list[int] | None]] = []
    prices: dict[tuple[str, tuple[int, ...] | None], int] = {}
    for key, (rows, found) in wanted.items():
        for one in found:
            own = together.get(one.change, rows)
            chosen = None if own is None else sorted(own)
            place = (one.change, None if chosen is None else tuple(chosen))
            if place not in prices:
                if one.change not in applying(kernel, gpu, chosen, room):
                    continue
                prices[place] = len(tried)
                tried.append((one.change, chosen))
            keys.append((key, one, prices[place]))
    gains = gains_of(kernel, gpu, model, tried, before)
    result: dict[Any, list[Advice]] = {key: [] for key in wanted}
    for key, one, number in keys:
        if gains[number] >= LEAST_GAIN:
            result[key].append(Advice(one.text, one.change, gains[number]))
    return {key: sorted(found, key=lambda one: -one.gain) for key, found in result.items()}
