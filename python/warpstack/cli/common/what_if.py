"""``--what-if``: how fast kernels were on a GPU with more of one resource."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from warpstack.cli.common.layout import Look, paragraph, text_table
from warpstack.cli.common.output import plain

if TYPE_CHECKING:
    from warpstack._util.options import Options
    from warpstack.cli.common.subject import Subject
    from warpstack.hardware.description import Gpu

__all__ = ["changed_times", "print_changes"]

#: A change by less than this part of the time brings nothing.
_LEAST = 0.01


def changed_times(subject: Subject, gpu: Gpu, model: str, options: Options) -> list[dict[str, Any]]:
    """Return the time of the launches that are reported, together, with each change of the GPU.

    The rows, the largest gain first, have ``app``, ``gpu``, ``model``, ``change``, ``fields`` (the new values
    by field of `Gpu`), ``before`` (those that they replace), ``time_us`` (as the profiler reports it) and
    ``speedup``.
    """
    from warpstack.models import changed_times as tried

    found = tried.changed_times(subject.ran, gpu, model, options, subject.places, progress=True)
    return [
        {
            "app": subject.app.name,
            "gpu": gpu.name,
            "model": model,
            "change": one.words,
            "fields": one.fields,
            "before": {name: getattr(gpu, name) for name in one.fields},
            "time_us": one.time_us,
            "speedup": one.speedup,
        }
        for one in found
    ]


def print_changes(rows: Sequence[Mapping[str, Any]], title: str, width: int | None) -> None:
    """Print what changes bring, and in one line those that bring nothing.

    `rows` are those of `changed_times`, and `title` the GPU.
    """
    print(
        paragraph(
            f"What other hardware would do: {title}, one change at a time, by {rows[0]['model']}; "
            "launches included",
            width,
        )
    )
    print()
    pays = [row for row in rows if abs(row["speedup"] - 1) >= _LEAST]
    if pays:
        columns = ["change", "time (us)", "times as fast", "--set"]
        formats = {"time (us)": "{:,.2f}", "times as fast": "{:,.2f}"}
        cells = [[row["change"], row["time_us"], row["speedup"], _settings(row)] for row in pays]
        print(text_table(columns, cells, Look({}, formats, ("change", "--set")), width=width))
    rest = [row["change"] for row in rows if row not in pays]
    if rest:
        print(
            paragraph(
                f"{'nothing or ' if pays else 'All bring nothing or '}less than 1 %: {', '.join(rest)}",
                width,
                "  ",
            )
        )


def _settings(row: Mapping[str, Any]) -> str:
    """Return the new values, each as ``--set`` takes it, and the former ones."""
    before = row["before"]
    return ", ".join(
        f"{field}={plain(value)} (was {plain(before[field])})"
        for field, value in row["fields"].items()
    )
