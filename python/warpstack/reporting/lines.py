"""Statistics of kernels by line of source: what each did, and the cycles that it costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from warpstack._core import SECTOR_BYTES
from warpstack._util.checked import strictly_checked
from warpstack._util.choices import DEFAULT_MODEL, InitialL2
from warpstack._util.former import former_keywords
from warpstack._util.lazy import pandas as pd
from warpstack._util.options import FlushChanges, Options, options_of
from warpstack.errors import not_one_of
from warpstack.hardware.description import Gpu, GpuLike, as_gpu
from warpstack.hardware.profiler import times
from warpstack.interval.profile import IntervalProfile
from warpstack.models.pipeline import Found, Pipeline
from warpstack.models.prediction import needs_of, prediction_of
from warpstack.models.program_changes import room_of
from warpstack.reporting.advice import (
    OF_LAUNCH,
    Advice,
    Suggestion,
    advise,
    for_launch,
    for_line,
    with_room,
)
from warpstack.reporting.row_counts import instruction_counts
from warpstack.tables import STACK_COMPONENTS, result_table
from warpstack.timing.simulation import SimulationResult
from warpstack.timing.simulation import simulate as simulate_kernels
from warpstack.traces.trace import App, KernelTrace, distinct_names, warn_of_samples

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["LAUNCH", "NOBODY", "WRITTEN_BACK", "costliest", "lines", "lines_and_instructions"]

#: Line of the cycles in which no warp waited for anything.
NOBODY = -1
#: Line of the bytes that L2 writes to DRAM, mostly when it gives up dirty lines, whoever wrote them.
WRITTEN_BACK = -2
#: Line of the advice that concerns the launch as a whole; there only if there is some.
LAUNCH = -3

#: A line that has less of all of these is not asked what would help it.
_HOT = 0.05

#: What `lines` takes for ``inlined``.
Inlined = Literal["own", "caller"]
_INLINED = ("own", "caller")
#: Columns that are not a number where nothing was executed.
_RATIOS = (
    "active_lanes",
    "sectors_per_access",
    "least_sectors_per_access",
    "l1_hit_rate",
    "l2_hit_rate",
)
_PARTS = [f"cpi_{part}" for part in STACK_COMPONENTS]
_FOR_PARTS = [f"for_{part}" for part in STACK_COMPONENTS]
_MODEL_PARTS = [f"model_cpi_{part}" for part in STACK_COMPONENTS]


@former_keywords(app_or_kernel="app")
@strictly_checked
def lines(
    app: App | KernelTrace,
    gpu: GpuLike,
    *,
    model: str = DEFAULT_MODEL,
    simulate: bool = True,
    per_instruction: bool = False,
    inlined: Inlined = "own",
    options: Options | None = None,
    progress: bool = False,
    **changes: Unpack[FlushChanges],
) -> pd.DataFrame:
    """Return what each line of source does, and the cycles that it costs.

    Parameters
    ----------
    app
        An application, whose kernels share an L2 in order, or one kernel. Traces of ``nvcc -lineinfo``
        know their lines; without lines, all instructions are of line 0.
    gpu
        The GPU: a description, its name, or the path of one.
    model
        The model whose cycles are divided among the lines.
    simulate
        Simulate the kernels, too. Without it, the columns of the simulation are missing, and `share`
        is the model's.
    per_instruction
        One row per instruction instead, with its ``pc`` and ``opcode``, and the places of the calls
        around it that were inlined, ``inlined_at``, innermost first.
    inlined
        Which line an instruction of an inlined function counts for: its ``own``, in the file where that
        function is written, or that of the outermost ``caller``, in the kernel or function that was not
        inlined.
    options, **changes
        What is shared with other functions; see `warpstack.Options`: ``flush_l2``,
        ``initial_l2``.
    progress
        Show a progress bar on standard error.

    Returns
    -------
    pandas.DataFrame
        One row per kernel and line, in order of files and lines: ``kernel``, ``name`` (with template
        arguments where kernels would else have the same), ``file`` (as the compiler names it; empty:
        unknown), ``source_line`` (0: unknown; -1: cycles in which no warp waited for anything; -2: what
        L2 writes to DRAM; -3: the launch as a whole, where there is advice for it); ``executions`` (warp
        instructions) and ``active_lanes`` (mean); of accesses through the caches ``sectors_per_access``,
        ``least_sectors_per_access``, ``l1_hit_rate`` (of requests of loads), ``l2_hit_rate``,
        ``dram_bytes`` (fetched for the line); ``bank_conflicts`` of shared memory; ``share`` of the
        cycles that the line causes, and ``time_us``, as much of the launch's time (simulated, or
        the model's without a simulation); ``share_with_inlined`` and ``time_us_with_inlined`` of the line
        with the functions that were inlined there, which have lines of their own, too. A line whose
        only instructions are theirs has a row. The simulated cycles per instruction stand twice:
        ``cpi_base`` to
        ``cpi_queue`` at the line that issued, or whose next instruction a warp could not issue yet, and
        ``for_base`` to ``for_queue`` at the line of the load that it waited for. ``model_cpi_base`` to
        ``model_cpi_queue`` are the model's. Each set sums to the CPI stack of the launch, and
        ``dram_bytes`` to what `warpstack.simulate_caches` counts.
        ``advice`` says what would help, a line of text each with how much faster the launch would be, or
        is empty; ``changes`` has the key of `warpstack.models.PROGRAM_CHANGES` that each stands for,
        and ``gain`` is the largest of these speed-ups, or NaN: what `interval_simulation` (of a large
        launch `model`) says of the change of this line alone, as `warpstack.models.program_gains` does,
        1.05 at least. Asked are lines with 5 % of the cycles, instructions or sectors. ``initial_l2`` is
        the share of L2's lines that strangers had written before the first launch.

    Raises
    ------
    InputError
        If a thread block does not fit on an SM, the model is unknown, or `inlined` is neither.

    Notes
    -----
    Models know the kernel's CPI stack, not where it comes from. A line gets a share of each
    component: of ``base`` that of the warp instructions; of ``dep``, ``l1``, ``l2`` and ``dram`` that of
    the stalls that the representative warp waits for the line's instructions; of ``mshr`` that of
    load misses of L1, of ``noc`` of requests to L2, and of ``queue`` of the sectors of DRAM. Where
    nothing has such a share, the component follows the warp instructions.
    """
    how = options_of("lines", options, changes, FlushChanges)
    by_line, by_instruction = lines_and_instructions(
        app,
        gpu,
        model=model,
        simulate=simulate,
        flush_l2=how.flush_l2,
        initial_l2=how.initial_l2,
        inlined=inlined,
        progress=progress,
    )
    return result_table(by_instruction if per_instruction else by_line)


def lines_and_instructions(
    app: App | KernelTrace,
    gpu: GpuLike,
    *,
    model: str = DEFAULT_MODEL,
    simulate: bool = True,
    flush_l2: bool = False,
    initial_l2: InitialL2 | float | None = None,
    inlined: Inlined = "own",
    progress: bool = False,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return `lines`, and the same with one row per instruction."""
    if inlined not in _INLINED:
        raise not_one_of("lines: inlined", inlined, _INLINED)
    target = as_gpu(gpu)
    options = Options(flush_l2=flush_l2, initial_l2=initial_l2)
    pipeline = Pipeline(app, options)
    kernels = pipeline.kernels
    warn_of_samples(pipeline.kernels, "lines")
    results: list[SimulationResult | None] = [None] * len(kernels)
    if simulate:
        whole = App(kernels)
        results = list(
            simulate_kernels(
                whole,
                target,
                flush_l2=flush_l2,
                initial_l2=initial_l2,
                per_instruction=True,
                progress=progress,
            )
        )
    tables: list[pd.DataFrame] = []
    instructions: list[pd.DataFrame] = []
    names = distinct_names(kernels)
    needs = needs_of([model])
    launches = pipeline.simulated(target) if needs.simulation else [None] * len(kernels)
    for number, (memory, launch) in enumerate(zip(pipeline.memory(target), launches, strict=True)):
        kernel = kernels[number]
        counts = instruction_counts(kernel, memory)
        profile = pipeline.interval(number, target, memory)
        prediction = prediction_of(Found(kernel, memory, profile, launch), target, model)
        stack = prediction.cpi_stack
        time_us = float(times(prediction.cycles, target, options.profiler)["time_us"])
        for part, weight in _weights(counts, profile).items():
            counts[f"model_cpi_{part}"] = stack[part] * weight
        moved = memory.totals["dram_read_sectors"] + memory.totals["dram_write_sectors"]
        counts["fetched_sectors"] = _fetched(kernel, counts, memory.totals["dram_read_sectors"])
        counts = _with_row(
            counts, WRITTEN_BACK, fetched_sectors=moved - int(counts["fetched_sectors"].sum())
        )
        simulated = results[number]
        if simulated is not None:
            counts = _with_row(counts, NOBODY).join(simulated.per_pc).fillna(0)
            time_us = simulated.time_us
        places = _places(kernel, inlined)
        counts[["file", "source_line"]] = [
            places[row].own if row >= 0 else ("", row) for row in counts.index
        ]
        counts["inlined_at"] = [places[row].text if row >= 0 else "" for row in counts.index]
        is_known = number == 0 and initial_l2 is None and not kernel.is_sampled
        advised = _advised(
            kernel, target, model, counts, float(prediction.cycles) if is_known else None
        )
        for found, keys in ((tables, []), (instructions, ["pc", "opcode", "inlined_at"])):
            of_kernel = _table(
                kernel, names[number], counts, ["file", "source_line", *keys], time_us
            )
            of_kernel = _with_advice(of_kernel, advised, counts)
            if found is tables:
                of_kernel = _with_calls(of_kernel, _inclusive_shares(counts, places), time_us)
            found.append(of_kernel.assign(initial_l2=options.written_share))
    return pd.concat(tables, ignore_index=True), pd.concat(instructions, ignore_index=True)


def costliest(table: pd.DataFrame, count: int = 3) -> pd.DataFrame:
    """Return the lines of a kernel with the largest `share`, largest first."""
    rows = table[(table["source_line"] >= 0) & (table["share"] > 0)]
    return rows.sort_values("share", ascending=False, kind="stable").head(count)


class _Place(NamedTuple):
    """Where an instruction counts."""

    #: File and line.
    own: tuple[str, int]
    #: Those of the calls around it, which count it, too.
    calls: tuple[tuple[str, int], ...]
    #: The calls as text, innermost first.
    text: str


class _Advised(NamedTuple):
    """What helps a kernel."""

    #: By file and line.
    lines: dict[tuple[str, int], list[Advice]]
    launch: list[Advice]
    #: What the counters of each row of `KernelTrace.instructions` support, of those lines.
    rows: dict[int, set[str]]


def _advised(
    kernel: KernelTrace, gpu: Gpu, model: str, counts: pd.DataFrame, before: float | None
) -> _Advised:
    """Return what would help the hot lines of a kernel, and the kernel as a whole."""
    room = room_of(kernel)
    own = with_room(counts.iloc[: len(room)], room, kernel)  # rows of no instruction come last
    x, y, z = kernel.block
    threads = x * y * z / kernel.warps_per_block
    own["cost"] = own[_FOR_PARTS if "for_base" in own else _MODEL_PARTS].sum(axis=1)
    numbers = own.select_dtypes("number").columns.drop("source_line", errors="ignore")
    weights = ["cost", "executions", "sectors"]
    least = _HOT * own[weights].sum()
    wanted: dict[Any, tuple[Sequence[int] | None, Sequence[Suggestion]]] = {}
    for place, rows in own.groupby(["file", "source_line"], sort=True).groups.items():
        line = own[numbers].loc[rows].sum()
        for whole in OF_LAUNCH:
            line[whole] = own[whole].iloc[0]
        if (line[weights] < least).all():
            continue
        found = for_line(line, threads)
        if found:
            wanted[place] = ([int(row) for row in rows], found)
    found = for_launch(kernel, gpu)
    if found:
        wanted[None] = (None, found)
    given = advise(kernel, gpu, model, room, wanted, before)
    supported = {
        row: {one.change for one in for_line(own[numbers].loc[[row]].sum(), threads)}
        for place, advice in given.items()
        if place is not None and advice
        for row in wanted[place][0] or ()
    }
    launch = given.pop(None, [])
    return _Advised(given, launch, supported)


def _with_advice(table: pd.DataFrame, advised: _Advised, counts: pd.DataFrame) -> pd.DataFrame:
    """Return rows of lines or instructions with ``advice`` and ``gain``, and that of the launch."""
    table = table.copy()
    found = []
    rows_of: dict[tuple[str, int, str], list[int]] = {}
    if "pc" in table:
        keys = zip(counts["pc"], counts["opcode"], counts["inlined_at"], strict=True)
        for row, key in zip(counts.index, keys, strict=True):
            rows_of.setdefault(key, []).append(row)
    for row in table.to_dict("records"):
        advice = advised.lines.get((row["file"], row["source_line"]), [])
        if "pc" in table:
            changes: set[str] = set()
            for number in rows_of[row["pc"], row["opcode"], row["inlined_at"]]:
                changes |= advised.rows.get(number, set())
            advice = [one for one in advice if one.change in changes]
        found.append(advice)
    if advised.launch:
        texts = [column for column in table if table[column].dtype == object]
        added: dict[Any, Any] = dict.fromkeys(table.columns, 0)
        added |= dict.fromkeys(texts, "") | dict.fromkeys(_RATIOS, np.nan)
        added |= {name: table[name].iloc[0] for name in ("kernel", "name")}
        added["source_line"] = LAUNCH
        if "pc" in table:
            added["pc"] = -1
        first = pd.DataFrame([added], columns=table.columns).astype(table.dtypes)
        # Files without a name come first, and of these the lowest line.
        table = pd.concat([first, table], ignore_index=True)
        found.insert(0, advised.launch)
    table["advice"] = ["\n".join(map(str, advice)) for advice in found]
    table["changes"] = ["\n".join(one.change for one in advice) for advice in found]
    table["gain"] = [max((one.gain for one in advice), default=np.nan) for advice in found]
    return table


def _places(kernel: KernelTrace, inlined: Inlined) -> list[_Place]:
    """Return the place of each row of `KernelTrace.instructions`."""
    table = kernel.instructions
    found = []
    for file, line, chain in zip(
        table["source_file"], table["source_line"], table["inlined_at"], strict=True
    ):
        own = (file, int(line))
        calls = tuple((call.file, call.line) for call in chain if call.line)
        text = ", ".join(f"{Path(name).name}:{number}" for name, number in calls)
        if inlined == "caller" and calls:
            own, calls = calls[-1], ()
        found.append(_Place(own, calls, text))
    return found


def _inclusive_shares(
    counts: pd.DataFrame, places: Sequence[_Place]
) -> dict[tuple[str, int], float]:
    """Return the share of each line that has instructions or calls, with what was inlined there."""
    cost = counts[_FOR_PARTS if "for_base" in counts else _MODEL_PARTS].sum(axis=1)
    total = float(cost.sum())
    shares: dict[tuple[str, int], float] = {}
    # Rows of no instruction come last.
    for place, cycles in zip(places, cost, strict=False):
        for one in {place.own, *place.calls}:  # a function may be inlined into itself
            shares[one] = shares.get(one, 0.0) + (cycles / total if total > 0 else 0.0)
    return shares


def _with_calls(
    table: pd.DataFrame, shares: dict[tuple[str, int], float], time_us: float
) -> pd.DataFrame:
    """Return rows of lines with the columns of what was inlined there, and rows of lines that only call."""
    own = list(zip(table["file"], table["source_line"], strict=True))
    absent = sorted(shares.keys() - set(own))
    if absent:
        added = pd.DataFrame(0, index=range(len(absent)), columns=table.columns).astype(
            table.dtypes
        )
        added[["kernel", "name"]] = table[["kernel", "name"]].iloc[0].tolist()
        added["file"] = [file for file, _ in absent]
        added["source_line"] = [line for _, line in absent]
        added[["advice", "changes"]] = ""
        for column in _RATIOS:
            added[column] = np.nan
        added["gain"] = np.nan
        table = pd.concat([table, added], ignore_index=True)
        table = table.sort_values(["file", "source_line"], ignore_index=True)
        own = list(zip(table["file"], table["source_line"], strict=True))
    inclusive = [shares.get(place, share) for place, share in zip(own, table["share"], strict=True)]
    at = list(table.columns).index("time_us") + 1
    table.insert(at, "share_with_inlined", inclusive)
    table.insert(at + 1, "time_us_with_inlined", table["share_with_inlined"] * time_us)
    return table


def _weights(counts: pd.DataFrame, profile: IntervalProfile) -> dict[str, npt.NDArray[np.float64]]:
    """Return the share of each instruction in each component of the model's CPI stack."""
    rows = len(counts)
    issued = counts["executions"].to_numpy(dtype=float)
    intervals = profile.intervals
    cause = intervals["cause_row"].to_numpy()
    known = cause >= 0

    def stalls(part: str) -> npt.NDArray[np.float64]:
        cycles = intervals[f"stall_{part}"].to_numpy(dtype=float)
        return np.bincount(cause[known], cycles[known], rows).astype(float)

    weights = {
        "base": issued,
        **{part: stalls(part) for part in ("dep", "l1", "l2", "dram")},
        "mshr": counts["load_misses"].to_numpy(dtype=float),
        "noc": counts["l2_requests"].to_numpy(dtype=float),
        "queue": counts["dram_sectors"].to_numpy(dtype=float),
    }
    return {
        part: (weight if weight.sum() > 0 else issued) / (weight.sum() or issued.sum())
        for part, weight in weights.items()
    }


def _fetched(kernel: KernelTrace, counts: pd.DataFrame, total: int) -> npt.NDArray[np.int64]:
    """Return the sectors that are fetched from DRAM for each instruction, given their total.

    What the caches count for a store is fetched, or becomes dirty in L2. Where one launch has both,
    each store has the same part of what is left for stores.
    """
    sectors = counts["dram_sectors"].to_numpy(dtype=np.int64)
    is_store = (kernel.instructions["kind"] == "store").to_numpy()
    stored = int(sectors[is_store].sum())
    fetched = min(max(total - int(sectors[~is_store].sum()), 0), stored)
    return np.where(is_store, sectors * fetched // max(stored, 1), sectors)


def _with_row(counts: pd.DataFrame, line: int, **values: int) -> pd.DataFrame:
    """Return counts with a row of what belongs to no instruction; its index is its line."""
    added: dict[Any, Any] = dict.fromkeys(counts.columns, 0)
    added |= {"file": "", "source_line": line, "pc": -1, "opcode": "", **values}
    return pd.concat([counts, pd.DataFrame([added], index=[line])])


def _ratio(part: pd.Series[Any], whole: pd.Series[Any]) -> pd.Series[Any]:
    return part / whole.where(whole > 0)


def _table(
    kernel: KernelTrace, name: str, counts: pd.DataFrame, keys: list[str], time_us: float
) -> pd.DataFrame:
    """Return the rows of one kernel."""
    texts = ("file", "source_line", "pc", "opcode", "inlined_at")
    numbers = [str(c) for c in counts.columns if c not in texts]
    sums = counts.groupby(keys, sort=True)[numbers].sum().reset_index()
    cost = _FOR_PARTS if "for_base" in sums else _MODEL_PARTS
    total = float(sums[cost].to_numpy().sum())
    table = pd.DataFrame(
        {
            "kernel": kernel.launch_id,
            "name": name,
            **{key: sums[key] for key in keys},
            "executions": sums["executions"].astype(np.int64),
            "active_lanes": _ratio(sums["lanes"], sums["executions"]),
            "sectors_per_access": _ratio(sums["sectors"], sums["cached_accesses"]),
            "least_sectors_per_access": _ratio(sums["least_sectors"], sums["cached_accesses"]),
            "l1_hit_rate": 1 - _ratio(sums["load_misses"], sums["load_requests"]),
            "l2_hit_rate": 1 - _ratio(sums["dram_requests"], sums["l2_requests"]),
            "dram_bytes": (sums["fetched_sectors"] * SECTOR_BYTES).astype(np.int64),
            "bank_conflicts": sums["bank_conflicts"].astype(np.int64),
            "share": sums[cost].sum(axis=1) / total if total > 0 else 0.0,
        }
    )
    table["time_us"] = table["share"] * time_us
    for column in ([*_PARTS, *_FOR_PARTS] if "for_base" in sums else []) + _MODEL_PARTS:
        table[column] = sums[column]
    for key in ("source_line", "pc"):
        if key in table:
            table[key] = table[key].astype(np.int64)
    return table
