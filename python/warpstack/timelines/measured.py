"""A measured time line beside the predicted one: which operation is which, and how far apart they are."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from warpstack._util.lazy import pandas as pd
from warpstack.errors import InputError, shown, warn
from warpstack.tables import checked_table, require
from warpstack.timelines import spans
from warpstack.timelines.operations import Columns
from warpstack.timelines.plan import Plan
from warpstack.timelines.schedule import Schedule
from warpstack.traces.names import plain_name, whole_name
from warpstack.traces.trace import without_parameters

__all__ = ["Pairs", "Side", "predicted_side"]

_F64 = npt.NDArray[np.float64]
_I64 = npt.NDArray[np.int64]

_NEEDED = ("operation", "name", "start_us", "end_us")
_NUMBERS = ("start_us", "end_us")
#: Columns that a table can leave out, and what they then are.
_USUAL = {"stream": -1, "bytes": 0, "correlation": -1, "bytes_step": 1}
_USUAL_TEXTS = ("direction", "full_name", "device")
#: Operations that profilers see.
_SEEN = ("kernel", "copy", "memset", "library", "nccl")
#: Engines of measured operations, as those of predicted ones are called.
_ENGINES = {"HtoD": "to_gpu", "DtoH": "to_host", "PtoP": "to_host", "HtoH": "callback"}
_OF_GPU = ("kernels", "to_gpu", "to_host", "on_gpu", "memset")


class Side(NamedTuple):
    """Operations of one of both time lines, a value each, in the order of their calls."""

    operation: list[str]
    name: list[str]
    full_name: list[str]
    direction: list[str]
    engine: list[str]
    stream: _I64
    bytes: _I64
    start: _F64
    end: _F64
    row: _I64  #: of the table that it is from
    bytes_step: _I64  #: what the bytes are rounded to


class Pairs:
    """Predicted and measured operations, and which measured one is which predicted one.

    Attributes
    ----------
    ours, theirs
        Operations of both sides.
    pair_of, run_of
        Of each measured operation: its predicted partner (-1: none), and its iteration from 0.
    counts
        See `warpstack.timelines.TimelineComparison`.
    """

    def __init__(
        self,
        ours: Side,
        measured: pd.DataFrame,
        iterations: int,
        iteration: int | None,
        between_us: tuple[float, float] | None,
    ) -> None:
        _check(iterations, iteration)
        theirs, outside = _measured(measured, between_us)
        if iterations > len(theirs.name):
            raise InputError(
                f"iterations = {iterations}: there are {len(theirs.name)} measured operations; say how "
                "often the profile holds the program"
            )
        places = _places(ours, theirs)
        is_repeated = _warn_of_repeats(places, iterations)
        pair_of, run_of = _runs(theirs, places, iterations)
        if iteration is not None:
            kept = run_of == iteration - 1
            if not kept.any():
                raise InputError(
                    f"iteration = {iteration}: no measured operation is of it; the profile holds the "
                    f"program less than {iterations} times"
                )
            outside += int((~kept).sum())
            theirs, pair_of, run_of = _part(theirs, kept), pair_of[kept], run_of[kept]
        if not is_repeated:
            _warn_of_the_unmatched(len(ours.name), pair_of, run_of, iterations, iteration)
        self.ours, self.theirs = ours, theirs
        self.pair_of, self.run_of = pair_of, run_of
        #: How often the program is in the measured operations.
        self.times = 1 if iteration is not None else iterations
        matched = len(np.unique(pair_of[pair_of >= 0]))
        self.counts = {
            "pairs": matched,
            "only_predicted": len(ours.name) - matched,
            "only_measured": int((pair_of < 0).sum()),
            "outside": outside,
        }

    @property
    def _zeros(self) -> tuple[float, dict[int, float]]:
        """When both begin: the first predicted operation with a partner, and by run that partner.

        Without a pair each begins with its own first operation.
        """
        ours, theirs = self.ours, self.theirs
        runs = np.unique(self.run_of).tolist()
        found: dict[int, float] = {}
        matched = np.unique(self.pair_of[self.pair_of >= 0])
        if not len(matched):
            first = float(theirs.start.min()) if len(theirs.start) else 0.0
            began = float(ours.start.min()) if len(ours.start) else 0.0
            return began, dict.fromkeys(runs, first)
        first_row = matched[np.argmin(ours.start[matched])]
        began = float(ours.start[first_row])
        for run in runs:
            mine = (self.run_of == run) & (self.pair_of >= 0)
            exact = mine & (self.pair_of == first_row)
            if exact.any():
                found[run] = float(theirs.start[exact].min())
            elif mine.any():
                # The run lacks it: its first pair lies as far behind as the predicted one does.
                place = np.flatnonzero(mine)[np.argmin(theirs.start[mine])]
                lag = float(ours.start[self.pair_of[place]]) - began
                found[run] = float(theirs.start[place]) - lag
            else:
                found[run] = float(theirs.start[self.run_of == run].min())
        return began, found

    @property
    def table(self) -> pd.DataFrame:
        """See `warpstack.timelines.TimelineComparison.table`."""
        ours, theirs = self.ours, self.theirs
        names, other_names = _told_apart(ours, theirs)
        began, zeros = self._zeros
        start = theirs.start - np.array([zeros[run] for run in self.run_of.tolist()])
        lasted = theirs.end - theirs.start
        paired = self.pair_of >= 0
        count = len(ours.name)
        runs = np.bincount(self.pair_of[paired], minlength=count)

        def mean(values: _F64) -> _F64:
            sums = np.bincount(self.pair_of[paired], values[paired], minlength=count)
            return np.where(runs > 0, sums / np.maximum(runs, 1), np.nan)

        stream = np.full(count, -1, np.int64)
        stream[self.pair_of[paired][::-1]] = theirs.stream[paired][::-1]  # of the first run
        alone = ~paired
        no = np.full(int(alone.sum()), np.nan)
        both = {
            "operation": [*ours.operation, *_chosen(theirs.operation, alone)],
            "name": [*names, *_chosen(other_names, alone)],
            "direction": [*ours.direction, *_chosen(theirs.direction, alone)],
            "bytes": np.append(ours.bytes, theirs.bytes[alone]),
            "row": np.append(ours.row, np.full(len(no), -1)),
            "runs": np.append(runs, np.ones(len(no), np.int64)),
            "predicted_stream": np.append(ours.stream, np.full(len(no), -1)),
            "measured_stream": np.append(stream, theirs.stream[alone]),
            "predicted_us": np.append(ours.end - ours.start, no),
            "measured_us": np.append(mean(lasted), lasted[alone]),
            "predicted_start_us": np.append(ours.start - began, no),
            "measured_start_us": np.append(mean(start), start[alone]),
        }
        table = pd.DataFrame(both)
        table["error"] = _ratio(table["predicted_us"], table["measured_us"]) - 1
        order = table["predicted_start_us"].fillna(table["measured_start_us"])
        return table.iloc[np.argsort(order.to_numpy(), kind="stable")].reset_index(drop=True)

    @property
    def by_name(self) -> pd.DataFrame:
        """See `warpstack.timelines.TimelineComparison.by_name`."""
        table = self.table
        copies = table["operation"] == "copy"
        directions = table["direction"].where(table["direction"] != "", "other") + " copies"
        fills = table["operation"] == "memset"
        name = table["name"].where(~copies, directions).where(~fills, "memsets")
        is_pair = table["predicted_us"].notna() & table["measured_us"].notna()
        rows = []
        for (operation, text), group in table.groupby([table["operation"], name], sort=False):
            pairs = group[is_pair[group.index]]
            ours, theirs = (float(pairs[f"{side}_us"].sum()) for side in ("predicted", "measured"))
            rows.append(
                {
                    "operation": operation,
                    "name": text,
                    "pairs": len(pairs),
                    "only_predicted": int(group["measured_us"].isna().sum()),
                    "only_measured": int(group["predicted_us"].isna().sum()),
                    "predicted_us": ours if len(pairs) else np.nan,
                    "measured_us": theirs if len(pairs) else np.nan,
                    "ratio": ours / theirs if theirs else np.nan,
                    "mean_error": float(pairs["error"].abs().mean()),
                }
            )
        columns = ["operation", "name", "pairs", "only_predicted", "only_measured"]
        columns += ["predicted_us", "measured_us", "ratio", "mean_error"]
        found = pd.DataFrame(rows, columns=columns)
        return found.sort_values("measured_us", ascending=False, kind="stable", ignore_index=True)

    @property
    def totals(self) -> pd.DataFrame:
        """See `warpstack.timelines.TimelineComparison.totals`."""
        ours = _totals(self.ours, 1)
        theirs = _totals(self.theirs, self.times)
        rows = [(name, ours[name], theirs[name]) for name in ours]
        table = pd.DataFrame(rows, columns=["total", "predicted", "measured"])
        return table.assign(ratio=_ratio(table["predicted"], table["measured"]))

    @property
    def drawn(self) -> pd.DataFrame:
        """Return the measured operations of one iteration, in the time of the predicted time line."""
        run = int(self.run_of.min())
        theirs = _part(self.theirs, self.run_of == run)
        began, zeros = self._zeros
        shift = began - zeros.get(run, 0.0)
        return pd.DataFrame(
            {
                "operation": theirs.operation,
                "name": theirs.name,
                "direction": theirs.direction,
                "engine": theirs.engine,
                "stream": theirs.stream,
                "bytes": theirs.bytes,
                "start_us": theirs.start + shift,
                "end_us": theirs.end + shift,
            }
        )


def _check(iterations: int, iteration: int | None) -> None:
    if not 1 <= iterations < 2**31:
        raise InputError(f"iterations = {shown(iterations)}: expected 1 or more")
    if iteration is not None and not 1 <= iteration <= iterations:
        raise InputError(
            f"iteration = {shown(iteration)}: expected one from 1 to iterations = {iterations}"
        )


def predicted_side(
    columns: Columns, order: Plan, made: Schedule, engines: Sequence[str], names: Sequence[str]
) -> Side:
    """Return the work of the GPU in the order of its calls; nodes of a graph follow its launch.

    Parameters
    ----------
    columns, order, made, engines
        Of the time line.
    names
        Of the kernels of the application.
    """
    rows = [
        row
        for row, (operation, on_device) in enumerate(
            zip(columns["operation"], order.columns["has_device"].tolist(), strict=True)
        )
        if on_device and operation in _SEEN
    ]
    launch_of: dict[int, int] = {}
    graphs, starts = columns["graph"].tolist(), made.start.tolist()
    for row, graph in enumerate(graphs):
        if graph >= 0:
            launch_of.setdefault(graph, row)
    rows.sort(
        key=lambda row: (launch_of[graphs[row]], starts[row]) if graphs[row] >= 0 else (row, 0.0)
    )
    traced = columns["kernel"].tolist()
    whole = {name: whole_name(name) for name in set(names)}
    own = {name: plain_name(name) for name in set(names)}
    chosen = np.array(rows, np.int64)
    is_traced = [columns["operation"][row] == "kernel" and traced[row] >= 0 for row in rows]
    return Side(
        [columns["operation"][row] for row in rows],
        [
            own[names[traced[row]]] if is_there else _name(columns, row)
            for row, is_there in zip(rows, is_traced, strict=True)
        ],
        [
            whole[names[traced[row]]] if is_there else ""
            for row, is_there in zip(rows, is_traced, strict=True)
        ],
        [columns["direction"][row] for row in rows],
        [engines[row] for row in rows],
        columns["stream"][chosen],
        columns["bytes"][chosen],
        made.start[chosen],
        made.end[chosen],
        chosen,
        np.ones(len(rows), np.int64),
    )


def _name(columns: Mapping[str, Any], row: int) -> str:
    text = columns["name"][row] or columns["api"][row] or columns["operation"][row]
    return plain_name(text) if columns["operation"][row] == "kernel" else str(text)


def _measured(table: pd.DataFrame, between_us: tuple[float, float] | None) -> tuple[Side, int]:
    """Return what a profiler saw in the order of the calls, and how many operations are left out.

    A profile that does not number its calls is in the order of its starts.
    """
    require(table, _NEEDED, "the result of ws.validation.reference.read_timeline")
    texts = [name for name in ("operation", "name", *_USUAL_TEXTS) if name in table]
    numbers = [*_NUMBERS, *(name for name in _USUAL if name in table)]
    table = checked_table(
        "measured", table, numbers=numbers, whole=_USUAL, texts=texts
    ).reset_index(drop=True)
    table = table.assign(**{name: usual for name, usual in _USUAL.items() if name not in table})
    table = table.assign(**{name: "" for name in _USUAL_TEXTS if name not in table})
    for row, operation in enumerate(table["operation"]):
        if operation not in _SEEN[:3]:
            raise InputError(
                f"measured: row {row}: operation = {shown(operation)}: expected kernel, copy or memset"
            )
    late = (table["end_us"] < table["start_us"]).to_numpy()
    if late.any():
        row = int(np.argmax(late))
        raise InputError(f"measured: row {row}: end_us is before start_us")
    before = len(table)
    if between_us is not None:
        first, last = between_us
        if not first < last:
            raise InputError(
                f"between_us = {shown(between_us)}: expected two times, the earlier first"
            )
        table = table[(table["start_us"] >= first) & (table["start_us"] < last)]
    if table.empty:
        part = "" if between_us is None else f" between {first:g} and {last:g} us"
        raise InputError(f"measured: no operation{part}; profile again, or give another part")
    devices = sorted(set(table["device"]))
    if len(devices) > 1:
        warn(
            f"measured: operations of {len(devices)} devices ({', '.join(devices[:4])}) are compared with "
            "those of one GPU; give the rows of one device",
            UserWarning,
        )
    calls = table["correlation"].to_numpy(np.int64)
    by = ["correlation", "start_us"] if (calls >= 0).all() else ["start_us"]
    table = table.sort_values(by, kind="stable")
    operation = table["operation"].tolist()
    direction = table["direction"].tolist()
    side = Side(
        operation,
        [
            plain_name(name) if kind == "kernel" else name
            for kind, name in zip(operation, table["name"], strict=True)
        ],
        [
            _whole(kind, full, name)
            for kind, full, name in zip(operation, table["full_name"], table["name"], strict=True)
        ],
        direction,
        [_engine(kind, way) for kind, way in zip(operation, direction, strict=True)],
        table["stream"].to_numpy(np.int64),
        table["bytes"].to_numpy(np.int64),
        table["start_us"].to_numpy(np.float64),
        table["end_us"].to_numpy(np.float64),
        table.index.to_numpy(np.int64),
        table["bytes_step"].to_numpy(np.int64),
    )
    return side, before - len(table)


def _whole(operation: str, full_name: str, name: str) -> str:
    return whole_name(full_name or name) if operation == "kernel" else ""


def _engine(operation: str, direction: str) -> str:
    if operation != "copy":
        return "kernels" if operation == "kernel" else "memset"
    return _ENGINES.get(direction, "on_gpu")


def _part(side: Side, kept: npt.NDArray[np.bool_]) -> Side:
    found: dict[str, Any] = {
        name: values[kept] if isinstance(values, np.ndarray) else _chosen(values, kept)
        for name, values in side._asdict().items()
    }
    return Side(**found)


def _chosen(values: Sequence[str], kept: npt.NDArray[np.bool_]) -> list[str]:
    return [value for value, is_kept in zip(values, kept.tolist(), strict=True) if is_kept]


def _told_apart(ours: Side, theirs: Side) -> tuple[list[str], list[str]]:
    """Return names for people: a kernel's own where it is that of one kernel alone."""
    whole: dict[str, set[str]] = defaultdict(set)
    for side in (ours, theirs):
        for name, full in zip(side.name, side.full_name, strict=True):
            if full:
                whole[name].add(full)
    of_arguments = Counter(without_parameters(full) for fulls in whole.values() for full in fulls)

    def shown_name(name: str, full: str) -> str:
        if not full or len(whole[name]) < 2:
            return name
        short = without_parameters(full)
        return (short if of_arguments[short] == 1 else full).replace(",", ", ")

    first, second = (
        [shown_name(name, full) for name, full in zip(side.name, side.full_name, strict=True)]
        for side in (ours, theirs)
    )
    return first, second


def _places(ours: Side, theirs: Side) -> dict[Hashable, tuple[list[int], list[int]]]:
    """Return the places of operations that can be partners, by what they are, in their order.

    Kernels whose name with template arguments and parameters both have are those of that name; others,
    and those that one side calls by their own name alone, are those of their own name.
    """
    found: dict[Hashable, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    both = set(ours.full_name) & set(theirs.full_name) - {""}
    vague = {
        name
        for side in (ours, theirs)
        for kind, name, full in zip(side.operation, side.name, side.full_name, strict=True)
        if kind == "kernel" and not full
    }
    for which, side in enumerate((ours, theirs)):
        for place, kind in enumerate(side.operation):
            if kind == "kernel":
                name, full = side.name[place], side.full_name[place]
                is_whole = full in both and name not in vague
                found["kernel", is_whole, full if is_whole else name][which].append(place)
            elif kind not in ("copy", "memset"):
                found[kind, side.name[place]][which].append(place)
    for place, key in _sizes(ours, theirs):
        found[key][0 if place >= 0 else 1].append(place if place >= 0 else ~place)
    return found


def _sizes(ours: Side, theirs: Side) -> list[tuple[int, Hashable]]:
    """Return what copies and fills are: kind, direction and size, measured ones with ``~place``.

    Measured sizes can be rounded: a size is that measured one whose last digit is nearest, and of two
    that are as near the one of which more are left.
    """
    sized = ("copy", "memset")
    steps: dict[tuple[str, str], int] = {}
    for place, kind in enumerate(theirs.operation):
        group = (kind, theirs.direction[place])
        steps[group] = max(1, int(theirs.bytes_step[place]), steps.get(group, 1))
    left: Counter[Hashable] = Counter()
    found: list[tuple[int, Hashable]] = []
    for place, kind in enumerate(theirs.operation):
        if kind in sized:
            group = (kind, theirs.direction[place])
            key = (*group, round(int(theirs.bytes[place]) / steps[group]) * steps[group])
            left[key] += 1
            found.append((~place, key))
    for place, kind in enumerate(ours.operation):
        if kind in sized:
            group = (kind, ours.direction[place])
            step, size = steps.get(group, 1), int(ours.bytes[place])
            below = size // step * step
            near = [
                (*group, rounded)
                for rounded in (below, below + step)
                if 2 * abs(size - rounded) <= step and (step > 1 or rounded == size)
            ]
            key = max(near, key=lambda one: left[one])
            left[key] -= 1
            found.append((place, key))
    return found


def _warn_of_repeats(
    places: Mapping[Hashable, tuple[list[int], list[int]]], iterations: int
) -> bool:
    """Warn where a profile holds most of the program, and all of that more often than is said."""
    both = [(len(mine), len(seen)) for mine, seen in places.values() if mine and seen]
    repeats = min((seen // mine for mine, seen in both), default=1)
    is_most = 2 * sum(mine for mine, _ in both) > sum(len(mine) for mine, _ in places.values())
    is_repeated = repeats > iterations and is_most
    if is_repeated:
        warn(
            f"measured: each operation is in it {repeats} times as often as in the program, or more; the "
            f"first ones are compared. Give iterations={repeats} if it holds the program so often",
            UserWarning,
        )
    return is_repeated


def _warn_of_the_unmatched(
    operations: int, pair_of: _I64, run_of: _I64, iterations: int, iteration: int | None
) -> None:
    """Warn where an iteration lacks half of the program, or more than half of either side has no partner."""
    paired = pair_of >= 0
    remedy = (
        "give the profile of this program, or between_us for the part of it that is the program"
    )
    if iterations > 1 and iteration is None:
        counts = np.bincount(run_of[paired], minlength=iterations)
        whole = int((2 * counts > operations).sum())
        if 0 < whole < iterations:
            warn(
                f"measured: iterations = {iterations}, but of these only {whole} have more than half of the "
                f"program's {operations} operations: {int(paired.sum())} of {iterations * operations} have a "
                f"measured one. Give iterations={whole} if the profile holds the program so often",
                UserWarning,
            )
            return
    expected = operations * (1 if iteration is not None else iterations)
    alone, lacking = int((~paired).sum()), expected - int(paired.sum())
    if 2 * alone > len(paired) or 2 * lacking > expected:
        warn(
            f"measured: {lacking} of {expected} predicted operations have no measured one, and {alone} of "
            f"{len(paired)} measured ones no predicted one; {remedy}",
            UserWarning,
        )


def _runs(
    theirs: Side,
    places: Mapping[Hashable, tuple[list[int], list[int]]],
    iterations: int,
) -> tuple[_I64, _I64]:
    """Return the predicted partner of each measured operation (-1: none), and its iteration from 0.

    The program has n operations of a name: the first n measured ones are those of the first iteration, in
    their order, the next n those of the second. What has no partner is in the iteration that has begun.
    """
    pair_of = np.full(len(theirs.name), -1, np.int64)
    run_of = np.zeros(len(theirs.name), np.int64)
    for mine, measured in places.values():
        if not mine:
            continue
        for count, place in enumerate(measured[: iterations * len(mine)]):
            pair_of[place] = mine[count % len(mine)]
            run_of[place] = count // len(mine)
    paired = pair_of >= 0
    begins = np.full(iterations, np.inf)
    np.minimum.at(begins, run_of[paired], theirs.start[paired])
    # An iteration begins before the later ones do.
    begins = np.minimum.accumulate(begins[::-1])[::-1]
    alone = np.searchsorted(begins, theirs.start[~paired], side="right") - 1
    run_of[~paired] = np.clip(alone, 0, iterations - 1)
    return pair_of, run_of


def _totals(side: Side, times: int) -> dict[str, float]:
    engine = np.array(side.engine, object)
    on_gpu = np.isin(engine, _OF_GPU)

    def ran(rows: npt.NDArray[np.bool_]) -> spans.Spans:
        return spans.union(side.start[rows], side.end[rows])

    kernels = ran(engine == "kernels")
    copies = ran(np.isin(np.array(side.direction, object), ("HtoD", "DtoH")) & on_gpu)
    hidden, copied = spans.length(spans.common(copies, kernels)), spans.length(copies)
    busy = spans.length(ran(on_gpu))
    time = float(side.end[on_gpu].max() - side.start[on_gpu].min()) if on_gpu.any() else 0.0
    return {
        "time_us": time / times,
        "gpu_busy_us": busy / times,
        "gpu_idle_us": (time - busy) / times,
        "kernels_us": spans.length(kernels) / times,
        "copies_us": copied / times,
        "copies_hidden_us": hidden / times,
        "copies_hidden": hidden / copied if copied else float("nan"),
    }


def _ratio(over: pd.Series, under: pd.Series) -> pd.Series:
    return over / under.where(under > 0)
