"""Traces as bytes: for pickles, and to be sent to another machine."""

from __future__ import annotations

import copyreg
import os

from warpstack import _core
from warpstack._util.files import temporary_folder
from warpstack._util.trace_budget import default_budget

__all__ = ["packed", "unpacked"]


def packed(core: _core.KernelTrace) -> bytes:
    """Return the trace as the bytes of a trace file."""
    with temporary_folder() as folder:
        path = folder / "kernel"
        _core.write_trace_file(core, os.fsencode(path))
        return path.read_bytes()


def unpacked(data: bytes) -> _core.KernelTrace:
    """Return the trace that `packed` made bytes of."""
    with temporary_folder() as folder:
        path = folder / "kernel"
        path.write_bytes(data)
        return _core.read_trace_file(os.fsencode(path), default_budget())


copyreg.pickle(_core.KernelTrace, lambda core: (unpacked, (packed(core),)))
