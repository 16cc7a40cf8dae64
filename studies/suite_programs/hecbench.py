"""HeCBench: every sixteenth program, with smaller inputs than its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from .program import Program

_DATA = "inputs that are not in its repository"


@dataclasses.dataclass(frozen=True)
class _Run:
    """How a program is run.

    Attributes
    ----------
    arguments
        In place of those of its ``make run``, which keep a GPU busy for seconds.
    edits
        As those of `Program`.
    before
        What is done before it is built.
    program
        Where it is built.
    needs
        What it needs that is not there.
    """

    arguments: str = ""
    edits: tuple[tuple[str, str, str], ...] = ()
    before: tuple[list[str], ...] = ()
    program: str = "main"
    needs: str = ""


_RUNS = {
    "accuracy": _Run("512 1000 10 1"),
    "aobench": _Run("1"),
    "attentionMultiHead": _Run("1"),
    "binomial": _Run(
        edits=(
            ("binomialOptions.h", "NUM_ITERATIONS 1000", "NUM_ITERATIONS 1"),
            ("binomialOptions.h", "MAX_OPTIONS 1024", "MAX_OPTIONS 64"),
        )
    ),
    "bm3d": _Run(needs="ImageMagick"),
    "ccl": _Run(needs="MPI"),
    "cmp": _Run(needs=_DATA),
    "coordinates": _Run("10000 1"),
    "determinant": _Run("1"),
    "egs": _Run(needs=_DATA),
    "fft": _Run("0 1"),
    "gabor": _Run("270 480 1"),
    "goulash": _Run("1 0.01"),
    "heat2d": _Run("256 256 10"),
    "interval": _Run("0 1"),
    "kmeans": _Run(needs="copies of its neighbours"),
    "lfib4": _Run("1100000"),
    "lud": _Run("-s 256"),
    "mcpr": _Run(
        "alphas.csv 1",
        edits=(("main.cu", "M = 10000", "M = 100"),),
        before=(["bzip2", "-dkf", "alphas.csv.bz2"],),
    ),
    "miniFE": _Run("-nx 16 -ny 16 -nz 16", program="src/main"),
    "mpc": _Run(needs=_DATA),
    "nms": _Run("detections.txt output.txt 1"),
    "particle-diffusion": _Run("10 1"),
    "pool": _Run("2 4 56 56 14 14 1"),
    "radixsort": _Run("1", edits=(("main.cu", r"128\*128\*128\*2", "128*128*8*2"),)),
    "rle": _Run("--n=10000 --i=1"),
    "sampling": _Run("1"),
    "sheath": _Run(
        edits=(
            ("main.cu", "NUM_IONS 500000", "NUM_IONS 5000"),
            ("main.cu", "NUM_ELECTRONS 500000", "NUM_ELECTRONS 5000"),
            ("main.cu", "NUM_TS 1000 ", "NUM_TS 20 "),
        )
    ),
    "softmax-online": _Run(
        "1",
        edits=(
            ("main.cu", "int B = 8;", "int B = 1;"),
            ("main.cu", "T = 1024", "T = 32"),
            ("main.cu", "V = 50257", "V = 1024"),
        ),
    ),
    "spsm": _Run("64 16 400 1 1"),
    "streamPriority": _Run("1", edits=(("main.cu", r"1 << 24", "1 << 16"),)),
    "topk": _Run("2 1", edits=(("main.cu", "i < 100;", "i < 1;"),)),
    "voxelization": _Run("data/test/ 1"),
    "zoom": _Run("1 3 64 64 1"),
}


def hecbench(suites: Path) -> Iterator[Program]:
    """Yield every sixteenth program of https://github.com/zjin-lcf/HeCBench."""
    root = suites / "HeCBench" / "src"
    for folder in sorted(root.glob("*-cuda"), key=lambda path: path.name.lower())[::16]:
        name = folder.name.removesuffix("-cuda")
        run = _RUNS.get(name, _Run())
        make = ["env", "NVCC_APPEND_FLAGS=-cudart shared -w", "make", "-j1"]
        make += ["ARCH=compute_75", "EXTRA_CFLAGS=-I."]
        yield Program(
            name,
            folder,
            ".",
            (*run.before, make),
            (f"./{run.program}", *run.arguments.split()),
            r"PASS|[Pp]assed|[Ss]uccess|[Cc]orrect|match",
            run.needs,
            run.edits,
        )
