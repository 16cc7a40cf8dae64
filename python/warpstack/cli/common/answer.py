"""The answer of ``warpstack predict`` in plain words: time, speed, and what most cycles go to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from warpstack._util.headings import number
from warpstack._util.lazy import pandas as pd
from warpstack.cli.common.layout import Look, paragraph, text_table
from warpstack.cli.common.stacks import details_of_sum, least_parts, print_details
from warpstack.hardware.doubt import RANGE, range_of_sum
from warpstack.tables import STACK, STACK_COMPONENTS, add_up

__all__ = [
    "HEADS",
    "LEFT",
    "OCCUPANCY",
    "SORTS",
    "WORDS",
    "Sums",
    "added_up",
    "largest_part",
    "print_answer",
    "print_reasons",
    "print_stack_table",
    "sums_of",
]

#: The meaning of each part of a CPI stack.
WORDS = {
    "base": "issuing instructions",
    "dep": "waiting for arithmetic",
    "l1": "waiting for L1",
    "l2": "waiting for L2",
    "dram": "waiting for DRAM",
    "mshr": "waiting for a free MSHR",
    "noc": "waiting for the NoC",
    "queue": "waiting for DRAM bandwidth",
}

#: Properties that differ between rows, besides the kernel, and the names of their columns.
_KEYS = ("app", "gpu", "model")
HEADS = {"app": "trace", "gpu": "GPU", "model": "model"}
LEFT = ("kernel", "trace", "GPU", "model", "most cycles go to")


#: The heading of the range of a time.
_RANGE = "90 % (us)"
#: Columns that rows may have, of which a sum has the range; with their headings.
OCCUPANCY = {"warps_per_sm": "warps per SM", "occupancy": "occupancy (%)"}


class Sums(NamedTuple):
    """Rows of predictions that are added up: those of a name, or of all kernels, or a single launch."""

    title: str
    #: Index of the kernel, in the order of the rows; -1: all kernels; -2: all kernels of all traces.
    number: int
    #: ``app``, ``gpu`` and ``model`` where there are several of them; of all traces ``app`` is empty.
    key: tuple[str, ...]
    values: Mapping[str, Any]
    #: How many launches are added up.
    launches: int = 1


#: Orders of kernels: their names, and whether the largest comes first.
SORTS: dict[str, tuple[Callable[[Mapping[str, Any]], Any], bool]] = {
    "time": (lambda values: values["time_us"], True),
    "ipc": (lambda values: values["ipc"], False),
    "instructions": (lambda values: values["instructions"], True),
    "launch": (lambda values: values["kernel"], False),
    "name": (lambda values: values["name"], False),
}


def sums_of(
    rows: Sequence[Mapping[str, Any]], *, per_launch: bool, sort: str, top: int
) -> tuple[list[str], list[Sums], int]:
    """Add up rows of predictions.

    Parameters
    ----------
    rows
        Rows of `warpstack.predict`; ``app``, the name of the trace, is among the columns where there are
        several. Where they have ``simulated``, these cycles are added up, too.
    per_launch
        Whether each launch has sums of its own; else those of a name are added up.
    sort
        One of `SORTS`: the order of kernels, by what the first rows of each say.
    top
        How many kernels to keep.

    Returns
    -------
    (list of str, list of Sums, int)
        Which of ``app``, ``gpu`` and ``model`` differ between rows; the sums of all traces, if there are
        several, of all kernels of each, if it has several, then those of each kernel; and how many kernels
        were left out.
    """
    by = [key for key in _KEYS if len({row.get(key, "") for row in rows}) > 1]
    groups: dict[Any, dict[tuple[str, ...], list[Mapping[str, Any]]]] = {}
    totals: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        key = tuple(str(row[name]) for name in by)
        # Launches of an application may have the same number.
        which = (
            (len(totals.get(key, ())), row["kernel"], row["name"]) if per_launch else row["name"]
        )
        groups.setdefault(which, {}).setdefault(key, []).append(row)
        totals.setdefault(key, []).append(row)

    first, reverse = SORTS[sort]
    kernels = []
    for place, (which, group) in enumerate(groups.items()):
        sums = []
        for key, some in group.items():
            title = f"{which[1]} {which[2]}" if per_launch else which
            if len(some) > 1:
                title += f" ({len(some):,} launches)"
            sums.append(Sums(title, place, key, _added(some), len(some)))
        kernels.append(sums)
    kernels.sort(key=lambda sums: first(sums[0].values), reverse=reverse)
    found = [sums for kernel in kernels[:top] for sums in kernel]
    each = "launches" if per_launch else "kernels"
    everything = []
    for key, some in totals.items():
        count = sum(key in group for group in groups.values())
        if count > 1:
            title = f"all {count:,} {each}"
            everything.append(Sums(title, -1, key, _added(some), len(some)))
    return by, [*_of_all_traces(by, totals), *everything, *found], max(len(kernels) - top, 0)


def _of_all_traces(
    by: Sequence[str], totals: Mapping[tuple[str, ...], Sequence[Mapping[str, Any]]]
) -> list[Sums]:
    """Return the sums of several traces, for each GPU and model; nothing of one trace."""
    if "app" not in by:
        return []
    place = list(by).index("app")
    traces: dict[tuple[str, ...], list[Sequence[Mapping[str, Any]]]] = {}
    for key, rows in totals.items():
        traces.setdefault((*key[:place], "", *key[place + 1 :]), []).append(rows)
    return [
        Sums(
            f"all {len(parts)} traces",
            -2,
            key,
            _added([row for rows in parts for row in rows], parts),
            sum(map(len, parts)),
        )
        for key, parts in traces.items()
    ]


def _added(
    rows: Sequence[Mapping[str, Any]], parts: Sequence[Sequence[Mapping[str, Any]]] = ()
) -> dict[str, Any]:
    """Add up rows, which are those of several traces if there are `parts`."""
    columns = ("instructions", "cycles", "time_us", "launch_us", "cpi", *STACK)
    values: dict[str, Any] = {"kernel": rows[0]["kernel"], "name": rows[0]["name"]}
    values |= add_up({name: [row[name] for row in rows] for name in columns})
    if all("simulated" in row for row in rows):
        values["simulated"] = sum(row["simulated"] for row in rows)
        values["error"] = values["cycles"] / values["simulated"] - 1
    for name in OCCUPANCY:
        if all(name in row for row in rows):
            found = sorted({row[name] for row in rows})
            values[name] = " to ".join(f"{end:g}" for end in dict.fromkeys((found[0], found[-1])))
    if all("cpi_details" in row for row in rows):
        values["cpi_details"] = details_of_sum(rows)
    if all("gain" in row for row in rows):
        from warpstack.models.reasons.words import reason_of_sum

        values["reason"], values["gain"] = reason_of_sum(rows)
    if all("ipc_low" in row for row in rows):
        # A sample of launches is one of a trace.
        values |= _at_one_end([*map(_added, parts)], values) if parts else _bars(rows, values)
    if all(RANGE[0] in row for row in rows):
        values |= range_of_sum(rows)
    return values


def _bars(rows: Sequence[Mapping[str, Any]], sums: Mapping[str, Any]) -> dict[str, float]:
    """Return between which values the IPC of a sum lies, of rows from a sample of launches or SMs."""
    if len(rows) > 1 and "launch_group" in rows[0]:
        from warpstack.models.launch_rows import bars_of_totals

        return bars_of_totals(pd.DataFrame(rows), sums)
    return _at_one_end(rows, sums)


def _at_one_end(rows: Sequence[Mapping[str, Any]], sums: Mapping[str, Any]) -> dict[str, float]:
    """Return the bars of the IPC of a sum where all are at the same end: they may err in the same way."""
    if not all("ipc_low" in row for row in rows):
        return {}
    return {
        end: sums["instructions"] / sum(row["instructions"] / row[end] for row in rows)
        for end in ("ipc_low", "ipc_high")
    }


def added_up(sums: Sequence[Sums]) -> str:
    """Return a sentence that names the kernels whose launches are added up; empty if none are."""
    several = [one for one in sums if one.number >= 0 and one.launches > 1]
    names = list(dict.fromkeys(str(one.values["name"]) for one in several))
    if not names:
        return ""
    if len(names) == 1 and len({one.launches for one in several}) == 1:
        return f"{several[0].launches:,} launches of {names[0]}: --per-launch lists them"
    of = names[0] if len(names) == 1 else f"{len(names):,} kernels"
    return f"launches of {of} are added up: --per-launch lists them"


def largest_part(values: Mapping[str, Any]) -> str:
    """Return the part of the CPI stack that most cycles go to."""
    return max(STACK_COMPONENTS, key=lambda part: float(values[f"cpi_{part}"]))


def print_answer(
    by: Sequence[str], sums: Sequence[Sums], peak: float | None, width: int | None
) -> None:
    """Print kernel, time, speed and what most cycles go to.

    `peak` is the most instructions per cycle of the GPU; None where there are several. Where there are
    several GPUs, their times are compared with those of the first. `width` is the characters of a line;
    None: as many as it takes, and there are all columns.
    """
    is_wide = width is None
    speed = "IPC" if peak is None else f"IPC (of {number(peak)})"
    simulated = (
        ["cycles", "simulated (cycles)", "error (%)"] if "simulated" in sums[0].values else []
    )
    sampled = "ipc_low" in sums[0].values
    compared = ["times the first"] if "gpu" in by else []
    ranged = [_RANGE] if RANGE[0] in sums[0].values else []
    columns = ["kernel", *(HEADS[key] for key in by), *simulated, "time (us)", *ranged, *compared]
    # The columns of rows that have room: how the time, the speed and what cycles go to come about.
    before = ["launch (us)", *(["cycles"] if not simulated else []), "instructions"] * is_wide
    occupancy = [name for name in OCCUPANCY if is_wide and name in sums[0].values]
    parts = list(STACK_COMPONENTS) * is_wide
    firsts: dict[Any, float] = {}
    rows = []
    for one in sums:
        values = one.values
        row: list[Any] = [one.title, *one.key]
        if simulated:
            row += [values["cycles"], values["simulated"], 100 * values["error"]]
        row.append(values["time_us"])
        if ranged:
            row.append(" to ".join(f"{values[end]:,.3g}" for end in RANGE))
        if compared:
            place = list(by).index("gpu")
            others = one.key[:place] + one.key[place + 1 :]
            row.append(
                values["time_us"] / firsts.setdefault((one.number, others), values["time_us"])
            )
        part = largest_part(values)
        share = 100 * values[f"cpi_{part}"] / values["cpi"]
        bar = []
        if sampled:
            bar = [50 * (values["ipc_high"] - values["ipc_low"]) / values["ipc"]]
        row += [values[name.replace("launch (us)", "launch_us")] for name in before]
        row += [values["ipc"], *bar, *(values[name] for name in occupancy)]
        row.append(f"{WORDS[part]} ({part}), {share:.0f} %")
        rows.append([*row, *(100 * values[f"cpi_{name}"] / values["cpi"] for name in parts)])
    formats = {
        **dict.fromkeys(["cycles", "simulated (cycles)", "instructions"], "{:,.0f}"),
        **dict.fromkeys((f"{name} (%)" for name in parts), "{:,.1f}"),
        "launch (us)": "{:,.2f}",
        "error (%)": "{:+,.0f}",
        "time (us)": "{:,.2f}",
        "times the first": "{:,.3f}",
        speed: "{:,.3f}",
        "+- (%)": "{:,.1f}",
    }
    columns += [*before, speed, *(["+- (%)"] if sampled else [])]
    columns += [*(OCCUPANCY[name] for name in occupancy), "most cycles go to"]
    columns += [f"{name} (%)" for name in parts]
    look = Look({}, formats, LEFT, ("cycles", "simulated (cycles)", speed))
    print(text_table(columns, rows, look, width=width))


def print_reasons(by: Sequence[str], sums: Sequence[Sums], width: int | None) -> None:
    """Print a line for each kernel: what would make it how much faster."""
    from warpstack.models.reasons.words import sentence

    lines = []
    for one in sums:
        if "gain" not in one.values:
            continue
        said = sentence(one.values["reason"], one.values["gain"], largest_part(one.values))
        if said:
            of = ", ".join((one.title, *one.key)) if by else one.title
            lines.append(f"{of}: {said}")
    if lines:
        print("\nWhat would gain most, one change of the GPU at a time:")
        for line in lines:
            print(paragraph(f"- {line}", width, indent="  "))


def print_stack_table(by: Sequence[str], sums: Sequence[Sums], width: int | None) -> None:
    """Print cycles per instruction and their parts, the largest of each row marked."""
    columns = ["kernel", *(HEADS[key] for key in by), "CPI", *STACK_COMPONENTS]
    rows = [
        [one.title, *one.key, one.values["cpi"], *(one.values[name] for name in STACK)]
        for one in sums
    ]
    offset = len(columns) - len(STACK_COMPONENTS)
    marked = {
        (row, offset + STACK_COMPONENTS.index(largest_part(one.values)))
        for row, one in enumerate(sums)
    }
    look = Look(
        {part: part for part in STACK_COMPONENTS},
        dict.fromkeys(["CPI", *STACK_COMPONENTS], "{:,.3f}"),
        LEFT,
        least_parts([one.values for one in sums]),
    )
    print(text_table(columns, rows, look, width=width, marked=marked))
    detailed = [one for one in sums if "cpi_details" in one.values]
    if detailed:
        titles = [", ".join((one.title, *one.key)) for one in detailed]
        print("\nWhat the components consist of, from 1 % of the cycles on\n")
        print_details(titles, [one.values["cpi_details"] for one in detailed], width)
