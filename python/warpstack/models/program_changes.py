"""What a change of the program would gain, by models and by the simulator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from warpstack._util.checked import checked
from warpstack._util.choices import DEFAULT_MODEL
from warpstack._util.lazy import pandas as pd
from warpstack._util.options import Options
from warpstack._util.trace_budget import default_budget
from warpstack.errors import InputError, not_one_of
from warpstack.hardware.description import Gpu, GpuLike, as_gpu
from warpstack.memory.caches import occupancy
from warpstack.models.prediction import model_list, predicted_rows
from warpstack.timing import simulation
from warpstack.traces.trace import App, KernelTrace

__all__ = ["PROGRAM_CHANGES", "changes_that_apply", "program_gains"]

#: What each change means for the one who writes the program.
PROGRAM_CHANGES = {
    "coalesced": "neighbouring lanes access neighbouring addresses",
    "padded_pitch": "rows of arrays are 128 bytes longer",
    "no_bank_conflicts": "lanes access different banks of shared memory",
    "no_divergence": "threads that take the same way are in the same warps",
    "combined_atomics": "lanes that change the same word are added up in their warp first",
    "private_atomics": "each thread block adds up in shared memory first",
    "kept_in_block": "each thread block keeps in shared memory what it loads again",
    "kept_in_registers": "what an instruction loads or stores time after time stays in a register",
    "register_tiles": "threads make 4 x 4 results each of what they load from shared memory",
    "cheap_division": "quotients and remainders of integers are shifts and masks",
    "no_dependencies": "no instruction waits for the result of another",
    "no_barriers": "warps of a thread block do not wait for each other",
    "free_occupancy": "registers and shared memory do not limit the thread blocks of an SM",
    "full_last_wave": "the last thread blocks fill all SMs, as those before them do",
}

#: What prices advice, and up to how many warp instructions: each million takes about a second.
PRICED_BY = "interval_simulation"
MOST_PRICED = 10_000_000
#: The one that depends on the GPU.
_LAST_WAVE = "full_last_wave"
#: Below this share of what there is a change has nothing to change.
_LEAST_SHARE = 0.01
#: Barriers are few, and their waits long.
_LEAST_BARRIERS = 0.001
#: The fields of `Gpu` that limit the blocks of an SM by what a program may change.
_FREE_LIMITS = ("registers_per_sm", "shared_memory_kib_per_sm")


class _Variant(NamedTuple):
    """A launch that is changed, and the work of the launch over its own."""

    kernel: KernelTrace
    times: float = 1.0


def _wave(kernel: KernelTrace, gpu: Gpu) -> int:
    """Return how many thread blocks all SMs hold at once."""
    return int(occupancy(kernel, gpu)["blocks_per_sm"]) * gpu.num_sms


def _blocks_of_whole_waves(kernel: KernelTrace, gpu: Gpu) -> int:
    """Return how many blocks whole waves have; 0 where the last one is full, or the only one."""
    wave = _wave(kernel, gpu)
    blocks = kernel.num_blocks // wave * wave
    blocks -= blocks % kernel._core.blocks_together
    return 0 if blocks == kernel.num_blocks or kernel.num_missing_blocks else blocks


def room_of(kernel: KernelTrace) -> pd.DataFrame:
    """Return what each row of `KernelTrace.instructions` would have to gain, as the core counts it."""
    return pd.DataFrame(kernel._core.room_for_changes())


def applying(
    kernel: KernelTrace, gpu: Gpu, rows: list[int] | None, room: pd.DataFrame | None = None
) -> list[str]:
    """Return `changes_that_apply` to one kernel, whose `room_of` may be known."""
    room = room_of(kernel) if room is None else room
    if rows is not None:
        room = room.loc[sorted(set(rows))]
    total = room.sum()
    instructions = kernel.num_instructions
    many = _LEAST_SHARE * instructions
    applies = {
        "coalesced": total["sectors"] > _LEAST_SHARE * kernel._core.num_sectors,
        "padded_pitch": total["pitch"] > 0,
        "no_bank_conflicts": total["passes"] > many,
        "no_divergence": total["partial"] > many and kernel.warps_per_block > 1,
        "combined_atomics": total["meeting_lanes"] > many,
        "private_atomics": total["atomics"] > many,
        "kept_in_block": total["again"] > _LEAST_SHARE * kernel._core.num_sectors,
        "kept_in_registers": total["held"] > many,
        "register_tiles": total["tiled"] > many,
        "cheap_division": total["divisions"] > many,
        "no_dependencies": True,
        "no_barriers": total["waits"] > _LEAST_BARRIERS * instructions,
        "free_occupancy": rows is None and occupancy(kernel, gpu)["limit"] in _FREE_LIMITS,
        _LAST_WAVE: rows is None and _blocks_of_whole_waves(kernel, gpu) > 0,
    }
    return [change for change in PROGRAM_CHANGES if applies[change]]


@checked
def changes_that_apply(
    app: App | KernelTrace, gpu: GpuLike, *, rows: Iterable[int] | None = None
) -> list[str]:
    """Return the changes of `PROGRAM_CHANGES` that have something to change.

    They are those of at least one kernel: where 1 % of the sectors are beyond the least that the lanes'
    bytes need (``coalesced``); where neighbouring rows of an array lie a multiple of 512 bytes apart
    (``padded_pitch``); where 1 % of the sectors were loaded by the same block before
    (``kept_in_block``); where passes through shared memory, executions with a part of the lanes, lanes of
    atomics that meet, atomics, accesses that repeat the one before,
    loads of shared memory beyond every fourth, and instructions of divisions beyond
    one for each are 1 % of the instructions, and barriers 0.1 %; where registers or
    shared memory limit occupancy, and where the last wave is not full.

    Parameters
    ----------
    app
        An application, or one kernel.
    gpu
        The GPU: a description, its name, or the path of one.
    rows
        Of one kernel: rows of `KernelTrace.instructions` that may be changed; by default all.

    Raises
    ------
    InputError
        If a thread block does not fit on an SM, or there is no such row.
    """
    one = as_gpu(gpu)
    chosen = _rows_of(app, rows)
    found = {change for kernel in _kernels(app) for change in applying(kernel, one, chosen)}
    return [change for change in PROGRAM_CHANGES if change in found]


def _kernels(app: App | KernelTrace) -> list[KernelTrace]:
    return list(app.kernels) if isinstance(app, App) else [app]


def _rows_of(app: App | KernelTrace, rows: Iterable[int] | None) -> list[int] | None:
    if rows is None:
        return None
    if isinstance(app, App) and len(app.kernels) != 1:
        raise InputError("rows are of one kernel, not of an application; give one of app.kernels")
    chosen = list(rows)
    num_rows = len(_kernels(app)[0].instructions)
    for row in chosen:
        if row not in range(num_rows):
            raise InputError(f"rows: {row} is outside 0 to {num_rows - 1}")
    return chosen


def _variant(kernel: KernelTrace, change: str, gpu: Gpu, rows: list[int] | None) -> _Variant:
    if change != _LAST_WAVE:
        return _Variant(kernel.changed(change, rows))
    blocks = _blocks_of_whole_waves(kernel, gpu)
    if blocks == 0:
        return _Variant(kernel)
    core = kernel._core.launch_of_blocks(range(blocks), default_budget())
    return _Variant(KernelTrace(core), kernel.num_blocks / blocks)


def gains_of(
    kernel: KernelTrace,
    gpu: Gpu,
    model: str,
    tried: Iterable[tuple[str, list[int] | None]],
    before: float | None = None,
) -> list[float]:
    """Return the speed-ups of changes of some rows each.

    They are those of `interval_simulation`, which sees what limits each access, or of the model where the
    launch is too large for that: it would execute more than `MOST_PRICED` warp instructions for all changes.
    `before` are the model's cycles of the kernel alone, where they are known.
    """
    tried = list(tried)
    if kernel.num_instructions * (1 + len(tried)) <= MOST_PRICED and model != PRICED_BY:
        model, before = PRICED_BY, None

    def cycles_of(variant: _Variant) -> float:
        (row,) = predicted_rows(variant.kernel, gpu, [model], Options())
        return float(row["cycles"]) * variant.times

    after = [cycles_of(_variant(kernel, change, gpu, rows)) for change, rows in tried]
    if after and before is None:
        before = cycles_of(_Variant(kernel))
    return [(before or 0.0) / cycles for cycles in after]


@checked
def program_gains(
    app: App | KernelTrace,
    gpu: GpuLike,
    models: str | Iterable[str] = (DEFAULT_MODEL,),
    changes: Iterable[str] | None = None,
    *,
    rows: Iterable[int] | None = None,
    simulate: bool = False,
) -> pd.DataFrame:
    """Return how much faster an application would be with each change of its program.

    The trace is transformed as `KernelTrace.changed` does, and model and simulator take the result as any
    trace. A gain is an upper bound: what the change itself costs, such as a detour through shared memory, is
    not in it.

    Parameters
    ----------
    app
        An application, whose kernels share an L2 in order, or one kernel.
    gpu
        The GPU: a description, its name, or the path of one.
    models
        Names of models, or ``all``.
    changes
        Keys of `PROGRAM_CHANGES`; by default those that `changes_that_apply` returns.
    rows
        Of one kernel: rows of `KernelTrace.instructions` that are changed, such as those of one source
        line; by default all.
    simulate
        Simulate each change, too.

    Returns
    -------
    DataFrame
        One row per model, then ``simulation``, and change: ``model``, ``change``, ``meaning``, ``cycles``
        (SM cycles, summed over the kernels), and ``speedup``, the cycles without it over these.

    Raises
    ------
    InputError
        If a model, change or row does not exist, or a thread block does not fit on an SM.

    Examples
    --------
    >>> import warpstack as ws
    >>> kernel = ws.patterns.strided(gs=32, iterations=8, blocks=56)
    >>> gains = ws.models.program_gains(kernel, "pascal-mdm", changes=["coalesced"])
    >>> bool(gains["speedup"][0] > 2)
    True
    """
    wanted = model_list(models)
    one = as_gpu(gpu)
    chosen = _rows_of(app, rows)
    tried = changes_that_apply(app, one, rows=chosen) if changes is None else list(changes)
    for change in tried:
        if change not in PROGRAM_CHANGES:
            raise not_one_of("change", change, PROGRAM_CHANGES)
    kernels = _kernels(app)

    def cycles_of(variants: list[_Variant]) -> dict[str, float]:
        whole = App([variant.kernel for variant in variants], "changed")
        times = [variant.times for variant in variants]
        cycles = dict.fromkeys(wanted, 0.0)
        said = predicted_rows(whole, one, wanted, Options())
        for model in wanted:
            of_kernels = [row["cycles"] for row in said if row["model"] == model]
            cycles[model] = float(sum(a * b for a, b in zip(of_kernels, times, strict=True)))
        if simulate:
            results = simulation.simulate(whole, one)
            cycles[simulation.MODEL_NAME] = float(
                sum(result.cycles * b for result, b in zip(results, times, strict=True))
            )
        return cycles

    before = cycles_of([_Variant(kernel) for kernel in kernels])
    after = {
        change: cycles_of([_variant(kernel, change, one, chosen) for kernel in kernels])
        for change in tried
    }
    rows_of_table = [
        {
            "model": model,
            "change": change,
            "meaning": PROGRAM_CHANGES[change],
            "cycles": after[change][model],
            "speedup": before[model] / after[change][model],
        }
        for model in before
        for change in tried
    ]
    return pd.DataFrame(rows_of_table, columns=["model", "change", "meaning", "cycles", "speedup"])
