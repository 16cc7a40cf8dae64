"""The source of a kernel with what each line costs beside it, as text."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

from warpstack._util.lazy import pandas as pd
from warpstack.reporting.lines import NOBODY, WRITTEN_BACK, costliest
from warpstack.tables import STACK_COMPONENTS

__all__ = ["ROWS_WITHOUT_LINE", "largest_cause", "listing", "short_bytes"]

#: Kinds of rows that belong to no line of source, in the order in which they are shown.
ROWS_WITHOUT_LINE = {
    0: "instructions without a line",
    NOBODY: "no warp waits or issues",
    WRITTEN_BACK: "L2 writes to DRAM",
}
_BAR = 10
_BLOCKS = " ▏▎▍▌▋▊▉█"
_GAP = "⋯"
_INSTRUCTION_INDENT = 2
#: Characters of a line that code is wrapped to; with fewer it is cut.
_LEAST_CODE = 30


def listing(
    table: pd.DataFrame,
    source: Sequence[str] | None = None,
    instructions: pd.DataFrame | None = None,
    *,
    width: int | None = None,
    context: int = 3,
) -> str:
    """Return the annotated listing of one kernel, and the three lines that cost most.

    Parameters
    ----------
    table
        Rows of `warpstack.lines` of one kernel.
    source
        Lines of the source; None where nobody has it.
    instructions
        Rows of `warpstack.lines` per instruction, which then stand below their line.
    width
        Columns of the terminal, to which code and advice are wrapped, or code is cut where there is little
        room for it; None: nothing is.
    context
        Lines of source before and after one with instructions.
    """
    rows = {int(row["source_line"]): row for row in table.to_dict("records")}
    known = sorted(line for line in rows if line > 0)
    shown = {
        near
        for line in known
        for near in range(max(line - context, 1), line + context + 1)
        if near in rows or (source is not None and near <= len(source))
    }
    text = [
        _clipped(
            f"{'share':>6} {'':{_BAR}} {'issued':>7} {'lanes':>5} {'sectors':>7} {'DRAM (B)':>8} "
            f"{'waits for':<9} {'line':>5}  source",
            width,
        )
    ]
    before = 0
    for line in sorted(shown):
        if before and line > before + 1:
            text.append(_GAP)
        before = line
        code = source[line - 1].expandtabs(4).rstrip() if source and line <= len(source) else ""
        text.extend(_with_code(f"{_cells(rows.get(line))} {line:>5}  ", code, width))
        text.extend(_folded(instructions, line, width))
    for line, what in ROWS_WITHOUT_LINE.items():
        if line in rows:
            text.append(_clipped(f"{_cells(rows[line])} {'-':>5}  ({what})", width))
            if line == 0:
                text.extend(_folded(instructions, line, width))
    text.append("")
    text.extend(_summary(table, source, width))
    return "\n".join(text)


def _cells(row: dict[Any, Any] | None) -> str:
    if row is None:
        return f"{'':6} {'':{_BAR}} {'':7} {'':5} {'':7} {'':8} {'':9}"
    lanes, sectors = row["active_lanes"], row["sectors_per_access"]
    moved = "" if math.isnan(sectors) and not row["dram_bytes"] else short_bytes(row["dram_bytes"])
    return (
        f"{row['share']:>6.1%} {_bar(row['share'])} {_short(row['executions']):>7} "
        f"{'' if math.isnan(lanes) else f'{lanes:.3g}':>5} "
        f"{'' if math.isnan(sectors) else f'{sectors:.3g}':>7} {moved:>8} {largest_cause(row):<9}"
    )


def _bar(share: float) -> str:
    eighths = round(min(max(share, 0.0), 1.0) * _BAR * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_BLOCKS[rest] if rest else "")).ljust(_BAR)


def _short(count: float) -> str:
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= 10 * size:
            value = count / size
            return f"{value:,.0f}{unit}" if value >= 100 else f"{value:.3g}{unit}"
    return f"{count:,.0f}"


def short_bytes(count: float) -> str:
    """Return a number of bytes in three digits, in powers of 1024: ``96``, ``1.5Ki``."""
    for unit, size in (("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
        if count >= size:
            value = count / size
            return f"{value:,.0f}{unit}" if value >= 100 else f"{value:.3g}{unit}"
    return f"{count:.0f}"


def largest_cause(row: dict[Any, Any]) -> str:
    """Return what the line's cycles are mostly lost to; empty where it mostly issues."""
    prefix = "for_" if "for_base" in row else "model_cpi_"
    part = max(STACK_COMPONENTS, key=lambda name: row[f"{prefix}{name}"])
    return "" if part == "base" or row["share"] <= 0 else part


def _folded(instructions: pd.DataFrame | None, line: int, width: int | None) -> list[str]:
    if instructions is None:
        return []
    rows = instructions[instructions["source_line"] == line].to_dict("records")
    indent = " " * _INSTRUCTION_INDENT
    return [
        _clipped(f"{_cells(row)} {'':>5}  {indent}{row['pc']:#06x} {row['opcode']}", width)
        for row in rows
    ]


def _with_code(cells: str, code: str, width: int | None) -> list[str]:
    room = None if width is None else width - len(cells)
    if room is None or len(code) <= room or room < _LEAST_CODE:
        return [_clipped(f"{cells}{code}", width)]
    indent = code[: min(len(code) - len(code.lstrip()), room // 2)]
    first, *more = textwrap.wrap(
        code.strip(),
        room,
        initial_indent=indent,
        subsequent_indent=f"{indent}    ",
        break_on_hyphens=False,
    )
    return [f"{cells}{first}", *(" " * len(cells) + line for line in more)]


def _clipped(text: str, width: int | None) -> str:
    text = text.rstrip()
    return text if width is None or len(text) <= width else text[: width - 1] + "…"


def _wrapped(text: str, width: int | None) -> list[str]:
    if width is None:
        return [f"    - {text}"]
    return textwrap.wrap(text, width, initial_indent="    - ", subsequent_indent="      ")


def _summary(table: pd.DataFrame, source: Sequence[str] | None, width: int | None) -> list[str]:
    text = ["The lines that cost most:"]
    for row in costliest(table).to_dict("records"):
        line = int(row["source_line"])
        code = source[line - 1].strip() if source and 0 < line <= len(source) else ""
        name = f"line {line}" if line else ROWS_WITHOUT_LINE[0]
        waits = largest_cause(row)
        why = f", mostly {waits}" if waits else ""
        text.append(_clipped(f"  {name}: {row['share']:.1%} of the cycles{why}  {code}", width))
        for one in row["advice"].splitlines():
            text.extend(_wrapped(one, width))
    return text
