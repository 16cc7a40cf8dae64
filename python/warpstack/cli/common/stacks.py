"""CPI stacks of kernels as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import warpstack as ws
from warpstack._util.lazy import pandas as pd
from warpstack.cli.common.output import text_table

if TYPE_CHECKING:
    from warpstack.hardware.description import Gpu
    from warpstack.traces.trace import App

__all__ = ["print_stacks"]


def print_stacks(app: App, target: Gpu, table: pd.DataFrame, by: Sequence[str]) -> None:
    """Print the CPI stacks of kernels and their sum, told apart by columns besides the kernel."""
    about = f": {target.description}" if target.description else ""
    print(f"{app.name} on {target.title}{about}\n")
    print(_stack_table(table, ["kernel", "name", *by]))
    if len(app) > 1:
        print("\nAll kernels: sum of instructions / sum of cycles\n")
        print(_stack_table(ws.application_totals(table), [*by, "kernels"]))


def _stack_table(predictions: pd.DataFrame, of: Sequence[str]) -> str:
    """Return predictions as text: what they are of, and the stack under short names."""
    parts = ws.models.STACK_COMPONENTS
    shown = [*of, "instructions", "cycles", "ipc", "cpi"]
    formats = {"cycles": "{:.0f}", **dict.fromkeys(["ipc", "cpi", *parts], "{:.3f}")}
    table = predictions[[*shown, *(f"cpi_{part}" for part in parts)]]
    rows = table.itertuples(index=False, name=None)
    return text_table([*shown, *parts], rows, formats, ("name", "model"))
