"""A program of a public suite, and what all are built with."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

#: What every program is built with: only PTX goes into the binary.
NVCC = ("nvcc", "-cudart", "shared", "-arch=compute_75", "-O2", "-w")
#: What older suites call, and CUDA 13 has no more.
OLD_NAMES = (
    *("-DcudaThreadSynchronize=cudaDeviceSynchronize", "-DcudaThreadExit=cudaDeviceReset"),
    # Members of cudaDeviceProp that are printed.
    *("-DclockRate=warpSize", "-DmemoryClockRate=warpSize", "-DdeviceOverlap=warpSize"),
)


@dataclasses.dataclass(frozen=True)
class Program:
    """A program of a suite.

    Attributes
    ----------
    name
        In the tables.
    root
        The suite's folder; a copy of it, or of the part that is needed, is where it is built.
    folder
        Where commands run, in the root.
    build
        Commands that build it.
    command
        The program and its arguments.
    verified
        What it says when its own check of the results is passed; empty: it has none.
    needs
        What it needs that is not there; such programs are not tried.
    edits
        Constants of its sources that arguments do not change: in which file of `folder`, which regular
        expression, and what comes in its place.
    make_input
        Writes what it reads into a folder, when that is not in the suite.
    """

    name: str
    root: Path
    folder: str
    build: tuple[list[str], ...]
    command: tuple[str, ...]
    verified: str = ""
    needs: str = ""
    edits: tuple[tuple[str, str, str], ...] = ()
    make_input: Callable[[Path], None] | None = None
