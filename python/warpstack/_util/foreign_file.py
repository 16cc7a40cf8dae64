"""Files of other tools that are given where they cannot be read: what they are, and what to do instead."""

from __future__ import annotations

import re

__all__ = ["foreign"]

_CSV_OF_NCU = "ncu --import REPORT --csv --page raw > report.csv"
_CSV_OF_NSYS = "nsys stats --report cuda_gpu_trace --format csv REPORT > trace.csv"

#: First bytes of a file, what it is and what to do instead.
_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"NVR\0", "a report of Nsight Compute under another name", "call it *.ncu-rep"),
    (b"SQLite format 3\0", "a database of Nsight Systems or another program", _CSV_OF_NSYS),
    (b"\x1f\x8b", "packed by gzip", "unpack it"),
    (b"\xfd7zXZ\0", "packed by xz", "unpack it"),
    (b"\x28\xb5\x2f\xfd", "packed by zstd", "unpack it"),
    (b"PK\x03\x04", "a ZIP archive or a spreadsheet", "unpack it, or save it as CSV"),
    (b"PAR1", "a Parquet file", "write it as CSV"),
    (b"\x7fELF", "a program", "give what a profiler wrote of it"),
)
#: A pattern in a line of a text file, what the file is and what to do instead.
_TEXTS: tuple[tuple[str, str, str], ...] = (
    (
        r"CTX 0x[0-9a-fA-F]+ - (?:grid_launch_id [0-9]+ - CTA |LAUNCH )",
        "a log of NVBit's mem_trace, which has the addresses of memory instructions but not the other "
        "instructions, registers and active lanes",
        "trace with Accel-Sim's tracer (util/tracer_nvbit), whose kernelslist.g ws.load reads",
    ),
    (
        r"^\s*\*\* .*\((?:cuda|osrt|nvtx|um|open|vulkan)[a-z0-9_]*\):",
        "the text that nsys stats prints",
        f"write it as CSV: {_CSV_OF_NSYS}",
    ),
    (
        r"^\s+Section: |^\s+\S.*\(\d+, \d+, \d+\)x\(\d+, \d+, \d+\), Context \d+, Stream \d+",
        "the text that Nsight Compute prints",
        f"write it as CSV: ncu --csv --page raw ..., or {_CSV_OF_NCU}",
    ),
    (
        r"^\s*GPU activities:|^\s*Type\s+Time\(%\)\s+Time\s+Calls|^\s+Start\s+Duration\s+Grid Size",
        "the text that nvprof prints",
        "write it as CSV: nvprof --print-gpu-trace --csv --log-file trace.csv ...",
    ),
)
_NSYS_ENDINGS = (".nsys-rep", ".qdrep", ".sqlite")


def foreign(name: str, head: bytes) -> tuple[str, str] | None:
    """Return what a file is and what to do instead, None where it is not known.

    Parameters
    ----------
    name
        The name of the file.
    head
        Its first bytes, some ten thousand of a longer one.
    """
    if name.lower().endswith(_NSYS_ENDINGS):
        return "a report of Nsight Systems", f"write its kernels as CSV: {_CSV_OF_NSYS}"
    if name.lower().endswith((".cu", ".cuh")):
        return "a CUDA source", f"run it for its trace: warpstack trace {name} -o FOLDER"
    for magic, what, remedy in _MAGIC:
        if head.startswith(magic):
            return what, remedy
    text = head.decode("utf-8", "replace")
    for pattern, what, remedy in _TEXTS:
        if re.search(pattern, text, re.MULTILINE):
            return what, remedy
    return None
