"""The report: all that is known of a kernel, on one page that needs nothing else."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from warpstack import _core
from warpstack._util.arguments import as_path, printable
from warpstack._util.checked import checked
from warpstack._util.choices import DEFAULT_MODEL
from warpstack._util.former import former_keywords
from warpstack._util.lazy import pandas as pd
from warpstack._util.options import FlushChanges, Options, options_of
from warpstack._util.output_file import MADE_BY, OutputFile
from warpstack.errors import InputError, shown
from warpstack.hardware.description import Gpu, GpuLike, as_gpu
from warpstack.hardware.doubt import RANGE
from warpstack.memory.caches import simulate_caches
from warpstack.models.changed_times import changed_times
from warpstack.models.prediction import (
    blind_to_write_backs,
    predicted_rows,
    warn_of_unread,
)
from warpstack.models.rooflines import roofline
from warpstack.reporting.drawing import area_chart, legend, stacked_bars
from warpstack.reporting.lines import LAUNCH, costliest, lines_and_instructions
from warpstack.reporting.listing import (
    ROWS_WITHOUT_LINE,
    has_inlined,
    largest_cause,
    short_us,
)
from warpstack.reporting.pdf import as_pdf
from warpstack.reporting.roofline_picture import roofline_picture
from warpstack.reporting.source_text import Sources, short_names
from warpstack.reporting.style import STYLE
from warpstack.tables import STACK_COMPONENTS
from warpstack.timing.simulation import SimulationResult, simulate
from warpstack.traces.trace import App, KernelTrace, distinct_names, kernels_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["report"]

_CAUSES = {
    "base": "issuing instructions",
    "dep": "waiting for results of arithmetic, barriers and units",
    "l1": "waiting for L1 and shared memory",
    "l2": "waiting for data from L2",
    "dram": "waiting for data from DRAM",
    "mshr": "waiting for a free MSHR of L1",
    "noc": "waiting for the network between the SMs and L2",
    "queue": "waiting in queues in front of DRAM",
}
_MOST_STEPS = 240
#: Fields of a change that are named; the words of the change say the rest.
_MOST_FIELDS = 4


@former_keywords(app_or_kernel="app")
@checked
def report(
    app: App | KernelTrace,
    gpu: GpuLike,
    path: str | os.PathLike[str],
    *,
    models: Sequence[str] = (DEFAULT_MODEL, "mdm"),
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    overwrite: bool = False,
    options: Options | None = None,
    progress: bool = False,
    **changes: Unpack[FlushChanges],
) -> None:
    """Write a report as one HTML file, which needs no network, or as PDF.

    The report of an application has all launches in a table, and the details of the longest one.

    Parameters
    ----------
    app
        An application, whose kernels share an L2 in order, or one kernel. They are simulated, too.
    gpu
        The GPU: a description, its name, or the path of one.
    path
        The file to write: HTML if its name ends in ``.html``, PDF if it ends in ``.pdf``.
    models
        Models beside the simulation; the first one divides its cycles among the lines of source and
        answers what other hardware would do.
    source
        The file of source that the trace's lines are of, or several, where they are not where they
        were compiled.
    overwrite
        Replace a file that is there and is not a report. A report is replaced anyhow, the source never.
    options, **changes
        What is shared with other functions; see `warpstack.Options`: ``flush_l2``, ``initial_l2``.
    progress
        Show a progress bar on standard error.

    Raises
    ------
    InputError
        If the file has another ending, a model is unknown, launches share a number, the
        source cannot be read, or the file cannot be written or must not be replaced.
    """
    if source is None:
        source = ()
    given = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    output = OutputFile(
        as_path("path", path),
        overwrite=overwrite,
        inputs=tuple(Path(path) for path in given),
        option="overwrite=True",
    )
    output.check()
    ending = checked_ending(output.path)
    target = as_gpu(gpu)
    wanted = list(models)
    if not wanted:
        raise InputError("models: none is given; give ['mdm'], say")
    app = App(kernels_of(app))
    if len({kernel.launch_id for kernel in app}) < len(app):
        raise InputError("two launches of the application have the same number; give each its own")
    sources = Sources(app, given)
    how = options_of("report", options, changes, FlushChanges)
    stages: FlushChanges = {"flush_l2": how.flush_l2, "initial_l2": how.initial_l2}
    results = simulate(app, target, timeline=True, progress=progress, **stages)
    longest = max(range(len(results)), key=lambda number: results[number].cycles)
    warn_of_unread(how, wanted, counts_write_backs=True)
    predicted = pd.DataFrame(predicted_rows(app, target, wanted, how))
    content = _page(app, target, results, longest, predicted, wanted, sources, how)
    output.write(as_pdf(content) if ending == ".pdf" else content.encode())


def checked_ending(path: Path) -> str:
    """Return the ending of a report's name; `InputError` for one that is neither a page's nor PDF's."""
    ending = path.suffix.lower()
    if ending not in (".html", ".pdf"):
        raise InputError(
            f"{printable(path)}: a report is a page or a PDF; give a name that ends in .html or .pdf"
        )
    return ending


def _page(
    app: App,
    gpu: Gpu,
    results: Sequence[SimulationResult],
    longest: int,
    predicted: pd.DataFrame,
    models: Sequence[str],
    sources: Sources,
    how: Options,
) -> str:
    stages: FlushChanges = {"flush_l2": how.flush_l2, "initial_l2": how.initial_l2}
    kernel, result = app[longest], results[longest]
    names = distinct_names(app.kernels)
    own, instructions = (
        table[table["kernel"] == kernel.launch_id]
        for table in lines_and_instructions(app, gpu, model=models[0], **stages)
    )
    sources.warn_of_doubts(own)
    rows = predicted[predicted["kernel"] == kernel.launch_id]
    stacks = {"simulation": result.cpi_stack}
    for row in rows.to_dict("records"):
        stacks[row["model"]] = {part: row[f"cpi_{part}"] for part in STACK_COMPONENTS}
    name = f"{names[longest]} on {gpu.title}"
    sections = {
        "Summary": _summary(kernel, gpu, result, rows, own, sources),
        "Time and launch": _times(app, names, results, predicted, models),
        "Where the cycles go": "<p>Cycles per warp instruction of an SM.</p>"
        + stacked_bars(stacks, "cycles per instruction")
        + legend(STACK_COMPONENTS),
        "Timeline": _timeline(result),
        "Lines of source": _lines(own, instructions, sources),
        "Roofline": _roofline(
            kernel, gpu, models, how if how.flush_l2 or not longest else Options()
        ),
        "Caches": _caches(app, gpu, longest, stages),
        "Occupancy": _occupancy(kernel, result),
        "What other hardware would do": _what_if(app, gpu, models[0], how),
        "Provenance": _pairs(
            {
                "warpstack": _core.__version__,
                "GPU": gpu.title,
                "trace": f"{kernel.name}, {kernel.num_blocks:,} blocks, {kernel.code or kernel.source}",
                "digest of the application": app.digest,
                "digest of the kernel": kernel.digest,
                "models": ", ".join(models),
                **_l2(how, models),
            }
        ),
    }
    ids = {head: head.lower().replace(" ", "-") for head in sections}
    links = "".join(f'<li><a href="#{ids[head]}">{head}</a></li>' for head in sections)
    body = "".join(
        f'<section id="{ids[head]}"><h2>{head}</h2>{content}</section>'
        for head, content in sections.items()
    )
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="generator" content="{MADE_BY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(name)}</title><style>{STYLE}</style></head><body>"
        f'<header><h1>{escape(name)}</h1><nav aria-label="Sections"><ul>{links}</ul></nav></header>'
        f"<main>{body}</main></body></html>"
    )


def _l2(how: Options, models: Sequence[str]) -> dict[str, str]:
    """Return what L2 holds before the launches, if it is not what it holds by default."""
    if not (how.written_share or how.flush_l2):
        return {}
    blind = blind_to_write_backs(how, models)
    unseen = f"; models that do not see it: {', '.join(blind)}" if blind else ""
    when = "each launch" if how.flush_l2 else "the first launch"
    return {f"L2 before {when}": how.initial_words + unseen}


def _summary(
    kernel: KernelTrace,
    gpu: Gpu,
    result: SimulationResult,
    rows: pd.DataFrame,
    own: pd.DataFrame,
    sources: Sources,
) -> str:
    stack = result.cpi_stack
    worst = max(stack, key=lambda part: stack[part])
    total = sum(stack.values()) or 1.0
    text = [
        f"The launch takes {_time(result.time_us)} in the simulation: {result.cycles:,} cycles at "
        f"{gpu.clock_ghz:g} GHz, {result.ipc:.3g} warp instructions per cycle.",
        f"{'Most of it' if stack[worst] > total / 2 else 'The largest part'}, "
        f"{stack[worst] / total:.0%}, goes into {_CAUSES[worst]}.",
    ]
    for row in rows.to_dict("records"):
        error = row["cycles"] / result.cycles - 1
        text.append(f"The model {row['model']} says {_ranged(row)}; {error:+.0%}.")
    items = []
    names = short_names(own["file"])
    for row in costliest(own).to_dict("records"):
        line = int(row["source_line"])
        where = f" of {escape(names[row['file']])}" if len(names) > 1 and row["file"] else ""
        name = f"Line {line}{where}" if line else "What has no line of source"
        text_of_line = sources.code(row["file"], line).strip()
        code = f" <code>{escape(text_of_line)}</code>" if text_of_line else ""
        advice = "".join(f"<br>{escape(one)}" for one in row["advice"].splitlines())
        items.append(
            f"<li><b>{name}</b> causes {row['share']:.0%} of the cycles.{code}{advice}</li>"
        )
    for whole in own[own["source_line"] == LAUNCH]["advice"]:
        advice = "<br>".join(escape(one) for one in whole.splitlines())
        items.append(f"<li><b>The launch as a whole</b><br>{advice}</li>")
    return f"<p>{escape(' '.join(text))}</p><ol>{''.join(items)}</ol>"


def _times(
    app: App,
    names: Sequence[str],
    results: Sequence[SimulationResult],
    predicted: pd.DataFrame,
    models: Sequence[str],
) -> str:
    texts = [_ranged(row) for row in predicted.to_dict("records")]
    times = predicted.assign(text=texts).set_index(["kernel", "model"])["text"]
    table = [
        {
            "launch": kernel.launch_id,
            "kernel": name,
            "grid": "x".join(map(str, kernel.grid)),
            "block": "x".join(map(str, kernel.block)),
            "simulation": _time(result.time_us),
            **{model: times.get((kernel.launch_id, model), "-") for model in models},
        }
        for kernel, name, result in zip(app, names, results, strict=True)
    ]
    return _html(table)


def _timeline(result: SimulationResult) -> str:
    samples = result.timeline
    if len(samples) < 2:
        return "<p>The launch is too short for one.</p>"
    at = samples.iloc[:: -(-(len(samples) - 1) // _MOST_STEPS)]
    slots = np.diff(at[[f"slots_{part}" for part in STACK_COMPONENTS]].to_numpy(float), axis=0)
    total = slots.sum(axis=1, keepdims=True)
    shares = np.divide(slots, total, out=np.zeros_like(slots), where=total > 0)
    parts = {part: list(shares[:, i]) for i, part in enumerate(STACK_COMPONENTS)}
    note = (
        "<p>Issue slots by use, over time; those lost to a load count when it is done: where nothing "
        "is drawn, all warps wait for loads that end later.</p>"
    )
    return (
        note
        + area_chart(list(at["cycle"].astype(float)), parts, "cycles")
        + legend(STACK_COMPONENTS)
    )


def _lines(own: pd.DataFrame, instructions: pd.DataFrame, sources: Sources) -> str:
    """Return a row per line, with its instructions folded below it; lines of no source come last."""
    table, below = [], []
    of_lines = dict(iter(instructions.groupby(["file", "source_line"])))
    names = short_names(own["file"])
    with_inlined = has_inlined(own)
    rows = own.to_dict("records")
    for row in [row for row in rows if row["source_line"] > 0] + [
        row for line in ROWS_WITHOUT_LINE for row in rows if row["source_line"] == line
    ]:
        line = int(row["source_line"])
        file = row["file"]
        code = sources.code(file, line)
        table.append(
            {
                **({"file": names.get(file, "-")} if len(names) > 1 else {}),
                "line": line if line > 0 else "-",
                "source": ROWS_WITHOUT_LINE.get(line, code.rstrip()),
                "cycles": f"{row['share']:.1%}",
                **({"with inlined": f"{row['share_with_inlined']:.1%}"} if with_inlined else {}),
                "µs": short_us(row["time_us"]),
                "waits for": largest_cause(row) or "-",
                "executions": f"{row['executions']:,}",
                "lanes": _number(row["active_lanes"]),
                "sectors": _number(row["sectors_per_access"]),
                "L1 hits": _percent(row["l1_hit_rate"]),
                "L2 hits": _percent(row["l2_hit_rate"]),
                "DRAM bytes": f"{row['dram_bytes']:,}",
                "conflicts": f"{row['bank_conflicts']:,}",
            }
        )
        has_some = line >= 0 and (file, line) in of_lines
        below.append(_folded(of_lines[file, line]) if has_some else "")
    return _html(table, code="source", below=below)


def _folded(instructions: pd.DataFrame) -> str:
    """Return the instructions of a line, which open on request."""
    text = "\n".join(
        f"{row['share']:>6.1%} {row['executions']:>12,}  {row['pc']:#06x} {row['opcode']}"
        for row in instructions.to_dict("records")
    )
    count = f"{len(instructions)} instruction{'s' if len(instructions) > 1 else ''}"
    return f"<details><summary>{count}</summary><pre>{escape(text)}</pre></details>"


def _roofline(kernel: KernelTrace, gpu: Gpu, models: Sequence[str], how: Options) -> str:
    table = roofline(
        kernel,
        gpu,
        [models[0]],
        simulate=True,
        flush_l2=how.flush_l2,
        initial_l2=how.initial_l2,
    )
    rows = [
        dict(zip(map(str, table.columns), row, strict=True))
        for row in table.itertuples(index=False)
    ]
    return roofline_picture(rows) + _html(
        [
            {
                "by": row["model"],
                "level": row["level"],
                "instructions per byte": _number(row["intensity"]),
                "reached (G/s)": _number(row["gips"]),
                "roof (G/s)": _number(row["roof_gips"]),
                "of the roof": _percent(row["roof_fraction"]),
            }
            for row in rows
        ]
    )


def _caches(app: App, gpu: Gpu, longest: int, stages: FlushChanges) -> str:
    profile = simulate_caches(app, gpu, **stages)[longest]
    totals = profile.totals
    rates = {
        f"hits of {name.replace('_', ' ').replace('l', 'L', 1)}": _percent(rate)
        for name, rate in profile.hit_rates().items()
    }
    moved = {
        f"DRAM {way}": f"{totals[f'dram_{way}_sectors'] * 32:,} bytes" for way in ("read", "write")
    }
    return _pairs({**rates, **moved, "size of L1": f"{profile.l1_size_kib:g} KiB"})


def _occupancy(kernel: KernelTrace, result: SimulationResult) -> str:
    found = result.occupancy
    return _pairs(
        {
            "thread blocks per SM": found["blocks_per_sm"],
            "warps per SM": found["warps_per_sm"],
            "limited by": str(found["limit"]).replace("_", " "),
            "registers per thread": kernel.registers_per_thread,
            "shared memory of a block": f"{kernel.shared_memory_bytes:,} bytes",
            "SMs with work": result.active_sms,
        }
    )


def _what_if(app: App, gpu: Gpu, model: str, how: Options) -> str:
    """Return a table of what each change of the GPU would do, the largest gain first."""
    table = []
    for one in changed_times(app, gpu, model, how):
        values = [f"{field} = {_value(value)}" for field, value in one.fields.items()]
        if len(values) > _MOST_FIELDS:
            values[_MOST_FIELDS:] = [f"and {len(values) - _MOST_FIELDS} more"]
        table.append(
            {
                "change": one.words,
                "fields": ", ".join(values),
                "time": _time(one.time_us),
                "times as fast": f"{one.speedup:.3g}",
            }
        )
    return f"<p>By the model {escape(model)}, all launches, one change at a time.</p>" + _html(
        table
    )


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else shown(value)


def _html(
    rows: Sequence[Mapping[str, Any]], code: str = "", below: Sequence[str] | None = None
) -> str:
    """Return a table; the column `code` is source, and `below` has what stands below each row."""
    if not rows:
        return "<p>There is nothing to show.</p>"
    texts = {
        column
        for column in rows[0]
        if column == code
        or any(not (str(row[column])[:1].isdigit() or row[column] == "-") for row in rows)
    }
    head = "".join(
        f'<th scope="col"{"" if column in texts else num}>{escape(column)}</th>'
        for column in rows[0]
        for num in [' class="num"']
    )
    body = []
    for row, more in zip(rows, below or [""] * len(rows), strict=True):
        cells = []
        for column, value in row.items():
            text = escape(str(value))
            kind = "" if column in texts else ' class="num"'
            cells.append(f"<td{kind}>{f'<code>{text}</code>' if column == code else text}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
        if more:
            body.append(f'<tr class="more"><td colspan="{len(rows[0])}">{more}</td></tr>')
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _pairs(values: Mapping[str, Any]) -> str:
    items = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in values.items()
    )
    return f"<dl>{items}</dl>"


def _time(micro: float) -> str:
    if micro >= 1000:
        return f"{micro / 1000:.4g} ms"
    return f"{micro:.4g} us"


def _ranged(row: Mapping[Hashable, Any]) -> str:
    """Return a time and between which values nine of ten measured ones lie."""
    return f"{_time(row['time_us'])} ({_time(row[RANGE[0]])} to {_time(row[RANGE[1]])})"


def _number(value: float) -> str:
    return "-" if value != value else f"{value:.3g}"


def _percent(value: float) -> str:
    return "-" if value != value else f"{value:.1%}"
