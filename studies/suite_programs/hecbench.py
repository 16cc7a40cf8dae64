"""HeCBench: every sixteenth program, with smaller inputs than its own."""

from __future__ import annotations

import dataclasses

from .program import Program

_DATA = "inputs that are not in its repository"


@dataclasses.dataclass(frozen=True)
class _Run:
    """How a program is run.

    Attributes
    ----------
    arguments
        In place of those of its ``make run``, which keep a GPU busy for seconds.
    build, beside, needs
        As those of `Program`.
    """

    arguments: str = ""
    build: str = ""
    beside: str = ""
    needs: str = ""


_RUNS = {
    "accuracy": _Run("512 1000 10 1"),
    "aobench": _Run("1"),
    "attentionMultiHead": _Run("1"),
    "binomial": _Run(build="NUM_ITERATIONS 1, MAX_OPTIONS 64"),
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
    "mcpr": _Run("alphas.csv 1", "M = 100", "alphas.csv, unpacked"),
    "miniFE": _Run("-nx 16 -ny 16 -nz 16"),
    "mpc": _Run(needs=_DATA),
    "nms": _Run("detections.txt output.txt 1", beside="detections.txt"),
    "particle-diffusion": _Run("10 1"),
    "pool": _Run("2 4 56 56 14 14 1"),
    "radixsort": _Run("1", "128 x 128 x 8 x 2 keys"),
    "rle": _Run("--n=10000 --i=1"),
    "sampling": _Run("1"),
    "sheath": _Run(build="NUM_IONS 5000, NUM_ELECTRONS 5000, NUM_TS 20"),
    "softmax-online": _Run("1", "B = 1, T = 32, V = 1024"),
    "spsm": _Run("64 16 400 1 1"),
    "streamPriority": _Run("1", "`1 << 16` instead of `1 << 24`"),
    "topk": _Run("2 1", "one repetition instead of 100"),
    "voxelization": _Run("data/test/ 1", beside="data"),
    "zoom": _Run("1 3 64 64 1"),
}

#: Programs of https://github.com/zjin-lcf/HeCBench.
HECBENCH = tuple(
    Program(
        name,
        f"src/{name}-cuda",
        tuple(run.arguments.split()),
        r"PASS|[Pp]assed|[Ss]uccess|[Cc]orrect|match",
        run.needs,
        run.build,
        run.beside,
    )
    for name, run in _RUNS.items()
)
