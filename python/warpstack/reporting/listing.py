"""The source of a kernel with what each line costs beside it, as text."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

from warpstack._util.lazy import pandas as pd
from warpstack.reporting.lines import LAUNCH, NOBODY, WRITTEN_BACK, costliest
from warpstack.reporting.source_text import Sources, short_names
from warpstack.tables import STACK_COMPONENTS

__all__ = [
    "ROWS_WITHOUT_LINE",
    "has_inlined",
    "largest_cause",
    "listing",
    "short_bytes",
    "short_us",
]

#: Kinds of rows that belong to no line of source, in the order in which they are shown.
ROWS_WITHOUT_LINE = {
    0: "instructions without a line",
    NOBODY: "no warp waits or issues",
    WRITTEN_BACK: "L2 writes to DRAM",
}
#: Share of the cycles from which on a line's inlined functions are shown.
_LEAST_INLINED = 5e-4
_BAR = 10
_BLOCKS = " ▏▎▍▌▋▊▉█"
_GAP = "⋯"
_INSTRUCTION_INDENT = 2
#: Characters of a line that code is wrapped to; with fewer it is cut.
_LEAST_CODE = 24


def listing(
    table: pd.DataFrame,
    sources: Sources | None = None,
    instructions: pd.DataFrame | None = None,
    *,
    width: int | None = None,
    context: int = 3,
) -> str:
    """Return the annotated listing of one kernel, and the three lines that cost most.

    Each file has a heading, that whose lines cost most first; a single file that the reader gave has none.

    Parameters
    ----------
    table
        Rows of `warpstack.lines` of one kernel.
    sources
        Texts of the files; None where nobody has one.
    instructions
        Rows of `warpstack.lines` per instruction, which then stand below their line.
    width
        Columns of the terminal, to which code and advice are wrapped, or code is cut where there is little
        room for it; None: nothing is.
    context
        Lines of source before and after one with instructions.
    """
    sources = Sources(()) if sources is None else sources
    with_inlined = has_inlined(table)
    text = [
        _clipped(
            f"{'share':>6} {'':{_BAR}} {_optional('incl.', with_inlined)}{'µs':>6} {'issued':>7} "
            f"{'lanes':>5} {'sectors':>7} {'DRAM (B)':>8} {'waits for':<9} {'line':>5}  source",
            width,
        )
    ]
    lines = table[table["source_line"] > 0]
    order = lines.groupby("file")["share"].sum().sort_values(ascending=False, kind="stable")
    names = short_names(order.index)
    for name in map(str, order.index):
        if len(order) > 1 or (name and not sources.is_given(name)):
            text.append(
                _clipped(f"{names.get(name, '(a file that the trace does not name)')}:", width)
            )
        own = lines[lines["file"] == name]
        below = None if instructions is None else instructions[instructions["file"] == name]
        text.extend(_file(own, sources[name], below, width, context, with_inlined))
    rows = table[table["source_line"] <= 0].to_dict("records")
    for line, what in ROWS_WITHOUT_LINE.items():
        for row in rows:
            if row["source_line"] != line:
                continue
            where = f" of {names.get(row['file'], row['file'])}" if row["file"] else ""
            cells = _cells(row, with_inlined)
            text.append(_clipped(f"{cells} {'-':>5}  ({what}{where})", width))
            if line == 0 and instructions is not None:
                of_file = instructions[instructions["file"] == row["file"]]
                text.extend(_folded(of_file, line, width, with_inlined))
    text.append("")
    text.extend(_summary(table, sources, names if len(order) > 1 else {}, width))
    return "\n".join(text)


def has_inlined(table: pd.DataFrame) -> bool:
    """Return whether a line has functions that were inlined there."""
    return bool((table["share_with_inlined"] > table["share"] + _LEAST_INLINED).any())


def _file(
    table: pd.DataFrame,
    source: Sequence[str],
    instructions: pd.DataFrame | None,
    width: int | None,
    context: int,
    with_inlined: bool,
) -> list[str]:
    """Return the lines of one file."""
    rows = {int(row["source_line"]): row for row in table.to_dict("records")}
    shown = {
        near
        for line in rows
        for near in range(max(line - context, 1), line + context + 1)
        if near in rows or near <= len(source)
    }
    text = []
    before = 0
    for line in sorted(shown):
        if before and line > before + 1:
            text.append(_GAP)
        before = line
        code = source[line - 1].expandtabs(4).rstrip() if line <= len(source) else ""
        cells = _cells(rows.get(line), with_inlined)
        text.extend(_with_code(f"{cells} {line:>5}  ", code, width))
        text.extend(_folded(instructions, line, width, with_inlined))
    return text


def _optional(cell: str, wanted: bool) -> str:
    """Return a cell of the column that only listings with inlined functions have."""
    return f"{cell:>6} " if wanted else ""


def _cells(row: dict[Any, Any] | None, with_inlined: bool) -> str:
    if row is None:
        return f"{'':6} {'':{_BAR}} {_optional('', with_inlined)}{'':6} {'':7} {'':5} {'':7} {'':8} {'':9}"
    lanes, sectors = row["active_lanes"], row["sectors_per_access"]
    moved = "" if math.isnan(sectors) and not row["dram_bytes"] else short_bytes(row["dram_bytes"])
    inclusive = row.get("share_with_inlined", row["share"])
    more = f"{inclusive:.1%}" if inclusive > row["share"] + _LEAST_INLINED else ""
    return (
        f"{row['share']:>6.1%} {_bar(row['share'])} {_optional(more, with_inlined)}"
        f"{short_us(row['time_us']):>6} {_short(row['executions']):>7} "
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


def short_us(time: float) -> str:
    """Return microseconds in three digits: ``0.51``, ``41.2``, ``5,120``."""
    return f"{time:,.0f}" if time >= 100 else f"{time:.2f}" if time < 10 else f"{time:.1f}"


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


def _folded(
    instructions: pd.DataFrame | None, line: int, width: int | None, with_inlined: bool
) -> list[str]:
    if instructions is None:
        return []
    rows = instructions[instructions["source_line"] == line].to_dict("records")
    indent = " " * _INSTRUCTION_INDENT
    return [
        _clipped(
            f"{_cells(row, with_inlined)} {'':>5}  {indent}{row['pc']:#06x} {row['opcode']}"
            + (f"  (inlined at {row['inlined_at']})" if row["inlined_at"] else ""),
            width,
        )
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


def _summary(
    table: pd.DataFrame, sources: Sources, names: dict[str, str], width: int | None
) -> list[str]:
    text = ["The lines that cost most:"]
    whole = table[table["source_line"] == LAUNCH]
    for row in costliest(table).to_dict("records"):
        line = int(row["source_line"])
        code = sources.code(row["file"], line).strip()
        file = names.get(row["file"])
        name = (
            f"{file}:{line}" if file and line else f"line {line}" if line else ROWS_WITHOUT_LINE[0]
        )
        waits = largest_cause(row)
        why = f", mostly {waits}" if waits else ""
        text.append(_clipped(f"  {name}: {row['share']:.1%} of the cycles{why}  {code}", width))
        for one in row["advice"].splitlines():
            text.extend(_wrapped(one, width))
    for advice in whole["advice"]:
        text.append("  The launch as a whole:")
        for one in advice.splitlines():
            text.extend(_wrapped(one, width))
    return text
