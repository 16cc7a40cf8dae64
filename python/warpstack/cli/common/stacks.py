"""CPI stacks of kernels as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from warpstack.cli.common.layout import Look, paragraph, text_table

if TYPE_CHECKING:
    from warpstack.hardware.description import Gpu
    from warpstack.traces.trace import App

__all__ = ["least_parts", "print_stacks"]


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


def least_parts(rows: Sequence[Mapping[Any, Any]]) -> list[str]:
    """Return the parts of CPI stacks, that with the least of the cycles first."""
    from warpstack.tables import STACK_COMPONENTS as parts

    shares = {part: sum(row[f"cpi_{part}"] / row["cpi"] for row in rows) for part in parts}
    return sorted(parts, key=lambda part: shares[part])
