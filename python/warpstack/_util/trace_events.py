"""Files of the Trace Event Format, which ui.perfetto.dev and chrome://tracing open."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warpstack._util.arguments import printable
from warpstack._util.files import write_file
from warpstack._util.output_file import MADE_BY
from warpstack.errors import InputError

__all__ = ["named_process", "named_thread", "write_events"]


def named_process(process: int, name: str) -> list[dict[str, Any]]:
    """Return the events that name a process."""
    return [{"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}}]


def named_thread(process: int, thread: int, name: str) -> list[dict[str, Any]]:
    """Return the events that name a track of a process, in the order of their numbers.

    Perfetto draws track 0, and one with the number of its process, as the main thread of the process.
    """
    where = {"pid": process, "tid": thread}
    return [
        {"ph": "M", "name": "thread_name", **where, "args": {"name": name}},
        {"ph": "M", "name": "thread_sort_index", **where, "args": {"sort_index": thread}},
    ]


def write_events(path: Path, events: Sequence[Mapping[str, Any]], about: Mapping[str, str]) -> None:
    """Write events as a file, packed if its name ends in ``.gz``.

    Parameters
    ----------
    path
        The file.
    events
        The events; ``ts`` and ``dur`` are microseconds.
    about
        What the file is about, for readers of its text.

    Raises
    ------
    InputError
        If the operating system does not write it.
    """
    document = {
        "otherData": {"generator": MADE_BY, **about},
        "displayTimeUnit": "ns",
        "traceEvents": events,
    }
    data = json.dumps(document, separators=(",", ":")).encode()
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    try:
        write_file(path, data)
    except OSError as error:
        raise InputError(
            f"{printable(path)}: the timeline cannot be written: {error.strerror or error}"
        ) from None
