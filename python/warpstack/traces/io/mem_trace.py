"""Logs of NVBit's tool ``mem_trace``: the memory instructions of a program, and nothing else."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from warpstack import _core
from warpstack._util.arguments import printable
from warpstack._util.input_file import open_input
from warpstack._util.progress import Progress, progress_bar
from warpstack.errors import InputError, TraceWarning, warn
from warpstack.traces.io.common import LoadOptions
from warpstack.traces.io.packed import chunks, errors_named
from warpstack.traces.trace import App, KernelTrace

#: Text before the first line of the tool, such as what the program prints.
_HEAD_BYTES = 1 << 20
#: A launch or an access, with and, before NVBit 1.4, without the tool's name.
_LINE = re.compile(
    rb"MEMTRACE: CTX 0x[0-9a-fA-F]+ - (?:grid_launch_id [0-9]+ - CTA |LAUNCH )"
    rb"|^Kernel [^\n]* - grid size [0-9]+,[0-9]+,[0-9]+ - block size "
    rb"|^CTA [0-9]+,[0-9]+,[0-9]+ - warp [0-9]+ - [A-Z][A-Z0-9._]* - 0x",
    re.MULTILINE,
)


def matches(path: Path) -> bool:
    """Whether the path is a log of ``mem_trace``, plain or compressed."""
    if not path.is_file():
        return False
    head = b""
    with contextlib.suppress(InputError, OSError):
        if path.suffix not in (".gz", ".xz", ".zst"):
            with open_input(path) as file:
                head = file.read(_HEAD_BYTES)
        elif ".trace" not in path.name:
            with errors_named(path), progress_bar(False, 0, "", "B") as bar:
                head = next(iter(chunks(path, bar)), b"")[:_HEAD_BYTES]
    return _LINE.search(head) is not None


def read(path: Path, options: LoadOptions) -> App:
    """Read a log as an application of its launches.

    Lanes with the address 0 count as inactive, and each opcode as one instruction: the log has no
    masks and no PCs. Warps of a thread block are in the order of their slots of the SM.
    """
    name = printable(path.name)
    with progress_bar(options.progress, path.stat().st_size, f"reading {name}", "B") as bar:
        kernels, without = _read(path, options.budget, bar)
    silent = f"; {without} launches without a memory access are left out" if without else ""
    warn(
        f"{printable(path)}: a log of NVBit's mem_trace has memory instructions only: use it for caches and "
        "reuse distances; times are those of kernels without arithmetic and without dependences, less than "
        "the program's (lanes with address 0 count as inactive; warps and thread blocks without an access "
        f"are missing{silent})",
        TraceWarning,
    )
    return options.select(App(kernels, path.name.split(".")[0] or name))


def _read(path: Path, budget: _core.StorageBudget, bar: Progress) -> tuple[list[KernelTrace], int]:
    reader = _core.MemTraceReader(printable(path), budget)
    with errors_named(path), contextlib.closing(chunks(path, bar)) as pieces:
        for piece in pieces:
            reader.feed(piece)
    return [KernelTrace(core) for core in reader.finish()], reader.num_without_access
