"""CPI stacks of kernels as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from warpstack.cli.common.layout import Look, paragraph, text_table

if TYPE_CHECKING:
    from warpstack.hardware.description import Gpu
    from warpstack.traces.trace import App

__all__ = ["details_of_sum", "least_parts", "print_details", "print_stacks"]

#: The share of the cycles that a detail has at least to be printed.
_LEAST_SHARE = 0.01


def print_stacks(
    app: App,
    target: Gpu,
    rows: Sequence[Mapping[Any, Any]],
    by: Sequence[str],
    width: int | None,
) -> None:
    """Print the CPI stacks of kernels and their sum, in lines of `width` characters.

    Rows of a kernel differ in the columns of `by`: the model, say. Where they have the cycles that
    were ``simulated``, too, these and the error are beside the cycles.
    """
    from warpstack.tables import PERFORMANCE, STACK, TIME, add_up

    about = f": {target.description}" if target.description else ""
    print(paragraph(f"{app.name} on {target.title}{about}", width) + "\n")
    print(_stack_table(rows, ["kernel", "name", *by], width))
    if len(app) > 1:
        groups: dict[tuple[Any, ...], list[Mapping[Any, Any]]] = {}
        for row in rows:
            groups.setdefault(tuple(row[name] for name in by), []).append(row)
        totals = []
        for key, group in groups.items():
            columns = {name: [row[name] for row in group] for name in (*PERFORMANCE, *TIME, *STACK)}
            identity = dict(zip(by, key, strict=True))
            total = {**identity, "kernels": len(group), **add_up(columns)}
            if all("simulated" in row for row in group):
                total["simulated"] = sum(row["simulated"] for row in group)
                total["error"] = total["cycles"] / total["simulated"] - 1
            totals.append(total)
        print("\nAll kernels: sum of instructions / sum of cycles\n")
        print(_stack_table(totals, [*by, "kernels"], width))


def _stack_table(rows: Sequence[Mapping[Any, Any]], of: Sequence[str], width: int | None) -> str:
    """Return predictions as text: what they are of, and the stack under short names."""
    from warpstack.tables import STACK_COMPONENTS as parts

    simulated = ["simulated", "error"] if rows and "simulated" in rows[0] else []
    shown = [*of, "instructions", "cycles", *simulated, "time_us", "ipc", "cpi"]
    formats = {
        **dict.fromkeys(["cycles", "simulated"], "{:,.0f}"),
        "time_us": "{:,.2f}",
        "error_%": "{:+,.0f}",
        **dict.fromkeys(["ipc", "cpi", *parts], "{:,.3f}"),
    }
    columns = [*shown, *(f"cpi_{part}" for part in parts)]
    values = [[row[name] for name in columns] for row in rows]
    if simulated:
        place = shown.index("error")
        shown[place] = "error_%"
        for cells in values:
            cells[place] *= 100
    look = Look(
        {part: part for part in parts},
        formats,
        ("name", "model"),
        ("instructions", "ipc", *least_parts(rows)),
    )
    return text_table([*shown, *parts], values, look, width=width)


def details_of_sum(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the details of kernels that are added up: as for CPI, means weighted by instructions."""
    total = sum(row["instructions"] for row in rows)
    return {
        name: sum(row["cpi_details"][name] * row["instructions"] for row in rows) / total
        for name in rows[0]["cpi_details"]
    }


def print_details(
    titles: Sequence[str], stacks: Sequence[Mapping[str, float]], width: int | None
) -> None:
    """Print what the components of CPI stacks consist of, as far as it has a hundredth of the cycles.

    `stacks` has the details of each kernel of `titles`; empty where a model has none.
    """
    from warpstack.models.details import STACK_DETAILS

    rows = []
    for title, details in zip(titles, stacks, strict=True):
        cpi = sum(details.values())
        parts: dict[str, float] = {}
        for name, cycles in details.items():
            part = STACK_DETAILS[name].component
            parts[part] = parts.get(part, 0.0) + cycles
        for part, cycles in parts.items():
            if cycles < _LEAST_SHARE * cpi or not cycles:
                continue
            rows.append([title, part, "", cycles, 100 * cycles / cpi, ""])
            for name, of_it in sorted(details.items(), key=lambda item: -item[1]):
                if STACK_DETAILS[name].component == part and of_it >= _LEAST_SHARE * cpi:
                    share = 100 * of_it / cpi
                    rows.append(["", "", name, of_it, share, STACK_DETAILS[name].words])
            title = ""
    columns = ["kernel", "component", "detail", "CPI", "share (%)", "the cycles go to"]
    formats = {"CPI": "{:,.3f}", "share (%)": "{:,.1f}"}
    left = ("kernel", "component", "detail", "the cycles go to")
    if rows:
        print(text_table(columns, rows, Look({}, formats, left, ("CPI",)), width=width))
    if missing := [title for title, details in zip(titles, stacks, strict=True) if not details]:
        names = ", ".join(missing)
        print(paragraph(f"No details of {names}: the model tells only the components apart", width))


def least_parts(rows: Sequence[Mapping[Any, Any]]) -> list[str]:
    """Return the parts of CPI stacks, that with the least of the cycles first."""
    from warpstack.tables import STACK_COMPONENTS as parts

    shares = {part: sum(row[f"cpi_{part}"] / row["cpi"] for row in rows) for part in parts}
    return sorted(parts, key=lambda part: shares[part])
