#!/usr/bin/env python3
"""Measure the speed of each stage on one core.

    python benchmarks/run.py                 # print the table
    python benchmarks/run.py --write         # also write docs/data/benchmarks
    python benchmarks/run.py --only caches   # one group

Each figure is the median of several runs in one process. Machines are shared and noisy: compare ratios
of figures from one run, not figures of different days.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.append(str(Path(__file__).resolve().parents[1] / "studies"))

import numpy as np
import pandas as pd
from pages import DOCS, REPOSITORY, machine, publish

import warpstack as ws
from warpstack import _core

SHARED = REPOSITORY.parent / "shared"
RUNS = 7

Row = tuple[str, str, float, float, float, str]


def timed(
    work: Callable[[], object], amount: float, runs: int = RUNS
) -> tuple[float, float, float]:
    """Return median, lowest and highest rate in millions per second."""
    work()
    rates = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        rates.append(amount / (time.perf_counter() - start) / 1e6)
    return statistics.median(rates), min(rates), max(rates)


def kernels() -> dict[str, ws.KernelTrace]:
    """Return the kernels that the figures are measured on."""
    found = {
        "strided GS=1": ws.patterns.strided(1),
        "strided GS=32": ws.patterns.strided(32),
        "stream": ws.patterns.stream(loads=2, blocks=4000),
        "gather": ws.patterns.gather(loads=4),
    }
    bfs = SHARED / "traces" / "rodinia-bfs-graph4096"
    if bfs.is_dir():
        found["bfs launch 9 (real)"] = ws.load(bfs, kernels=[9]).kernels[0]
    return found


def text_traces(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield plain text traces: the strided kernel, and the real one where it is present."""
    subprocess.run(
        [
            sys.executable,
            REPOSITORY / "data" / "traces" / "make_strided.py",
            folder / "strided",
            "--plain",
        ],
        check=True,
    )
    yield "strided GS=1, plain text", folder / "strided" / "kernel-1.traceg"
    yield "strided GS=32, plain text", folder / "strided" / "kernel-2.traceg"
    yield "strided GS=32, .xz", REPOSITORY / "data" / "traces" / "strided" / "kernel-2.traceg.xz"
    real = SHARED / "traces" / "rodinia-bfs-graph4096" / "kernel-9.traceg.xz"
    if real.is_file():
        plain = folder / "kernel-9.traceg"
        plain.write_bytes(lzma.decompress(real.read_bytes()))
        yield "bfs launch 9 (real), plain text", plain
        yield "bfs launch 9 (real), .xz", real


def reading() -> Iterator[Row]:
    """Yield rates of reading traces."""
    with tempfile.TemporaryDirectory() as name:
        for what, path in text_traces(Path(name)):
            count = ws.load(path).kernels[0].num_instructions
            rates = timed(lambda path=path: ws.load(path), count)
            yield "reading", what, *rates, "M warp instructions/s"
            if path.suffix == ".traceg":
                saved = Path(name) / f"saved-{path.parent.name}-{path.stem}"
                ws.save(ws.load(path), saved)
                rates = timed(lambda saved=saved: ws.load(saved), count)
                yield (
                    "reading",
                    what.replace("plain text", "Parquet"),
                    *rates,
                    "M warp instructions/s",
                )


def loops() -> Iterator[tuple[str, Callable[..., ws.KernelTrace]]]:
    """Yield launches whose warps spend their time in loops of one lane, of few, and of all.

    They take the options of `Kernel.launch`.
    """
    module = ws.cuda.compile(REPOSITORY / "benchmarks" / "loops.ptx")
    random = np.random.default_rng(0)
    nodes = 4096
    following = ws.cuda.array(random.permutation(nodes).astype(np.int32))
    out = ws.cuda.zeros(nodes, np.int32)
    for lanes in (1, 4, 32):
        plural = "s" if lanes > 1 else ""
        for name, arguments in (("escape", (out, 64, 2000)), ("follow", (following, out, 2000))):
            yield (
                f"{name}, {lanes} lane{plural}",
                lambda n=name, a=arguments, lanes=lanes, **options: module.kernel(n).launch(
                    16, 128, *a, lanes, **options
                ),
            )
    rows = 1 << 14
    first = np.zeros(rows + 1, np.int32)
    np.cumsum(np.minimum(4 * (1 + random.pareto(1.2, rows)), 600).astype(int), out=first[1:])
    columns = random.integers(0, rows, first[-1]).astype(np.int32)
    matrix = [ws.cuda.array(x) for x in (first, columns, np.ones(len(columns), np.float32))]
    x, y = ws.cuda.array(np.ones(rows, np.float32)), ws.cuda.zeros(rows, np.float32)
    yield (
        "spmv, rows of 4 to 600",
        lambda **options: module.kernel("spmv").launch(
            rows // 256, 256, *matrix, x, y, rows, **options
        ),
    )
    for name, target, count in (
        ("iterate", ws.cuda.zeros(1, np.float64), 20_000),
        ("sort_local", out, 20),
    ):
        yield (
            f"{name}, one thread",
            lambda n=name, t=target, c=count, **options: module.kernel(n).launch(
                1, 1, t, c, **options
            ),
        )
    elements = 1 << 18
    yield (
        "fill, memory not written before",
        lambda **options: module.kernel("fill").launch(
            elements // 256, 256, ws.cuda.empty(2 * elements, np.int32), elements, **options
        ),
    )


def ways_to_run(threads: tuple[int, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield options of a launch, with what they mean."""
    for number in threads:
        for traced in (True, False):
            what = "traced" if traced else "not traced"
            what += f", {number} threads" if number > 1 else ""
            yield what, {"trace": traced, "workers": number}


def simulation() -> Iterator[Row]:
    """Yield rates of running CUDA kernels, with and without tracing, in thread instructions."""
    module = ws.cuda.compile(REPOSITORY / "benchmarks" / "gemm.ptx")
    size = 256
    a = ws.cuda.array(np.random.default_rng(0).random((size, size), dtype=np.float32))
    c = ws.cuda.zeros((size, size))
    for name, block in (("gemm_plain", (32, 8)), ("gemm_tiled", (16, 16))):
        kernel = module.kernel(name)
        grid = (size // block[0], size // block[1])
        count = kernel.launch(grid, block, a, a, c, size).num_thread_instructions
        for what, options in ways_to_run(threads=(1, 2)):
            rates = timed(
                lambda k=kernel, g=grid, b=block, o=options: k.launch(g, b, a, a, c, size, **o),
                count,
            )
            yield "running CUDA", f"{name}, {what}", *rates, "M thread instructions/s"
    for name, launch in loops():
        count = launch().num_instructions
        has_blocks = not name.endswith("one thread")
        for what, options in ways_to_run(threads=(1, 2) if has_blocks else (1,)):
            rates = timed(lambda f=launch, o=options: f(**o), count)
            yield "running CUDA", f"{name}, {what}", *rates, "M warp instructions/s"
    for name in ("bfs", "k-means"):
        count = sum(kernel.num_thread_instructions for kernel in ws.workloads.load(name))
        rates = timed(lambda name=name: ws.workloads.load(name, workers=1), count)
        yield "running CUDA", f"{name} (small), traced", *rates, "M thread instructions/s"


def intervals() -> Iterator[Row]:
    """Yield rates of the interval algorithm over all warps, one thread."""
    for what, kernel in kernels().items():
        latencies = _core.nominal_latencies(kernel._core)
        rates = timed(
            lambda k=kernel, latencies=latencies: _core.group_warps(k._core, latencies, 1.0, 1),
            kernel.num_instructions,
        )
        yield "intervals", what, *rates, "M warp instructions/s"


def caches() -> Iterator[Row]:
    """Yield rates of L1 and L2 simulation, on one thread and on two."""
    for gpu in (ws.gpu("pascal-mdm"), ws.gpu("titan-v"), ws.gpu("h100-pcie")):
        for what, kernel in kernels().items():
            totals = ws.simulate_caches(kernel, gpu).totals
            sectors = totals["l1_read_sectors"] + totals["l1_write_sectors"]
            for threads in (1, 2):
                rates = timed(
                    lambda k=kernel, gpu=gpu, threads=threads: ws.simulate_caches(
                        k, gpu, workers=threads
                    ),
                    sectors,
                )
                plural = "s" if threads > 1 else ""
                what_on = f"{what}, {gpu.name}, {threads} thread{plural}"
                yield "caches", what_on, *rates, "M sector accesses/s"


def timing() -> Iterator[Row]:
    """Yield rates of cycle-level simulation, one thread, and how much faster MDM is."""
    gpu = ws.gpu("pascal-mdm")
    for what, kernel in kernels().items():
        rates = timed(lambda k=kernel: ws.simulate(k, gpu), kernel.num_instructions)
        yield "cycle by cycle", what, *rates, "M warp instructions/s"
    for what, kernel in kernels().items():
        warp = ws.interval.representative_warp(kernel)
        memory = ws.simulate_caches(kernel, gpu, workers=1)
        profile = ws.interval_profile(kernel, gpu, memory, representative=warp)
        model = timed(lambda p=profile: [ws.models.evaluate(p, gpu, "mdm") for _ in range(50)], 50)
        whole = timed(lambda k=kernel: ws.simulate(k, gpu), 1)
        ratios = (model[0] / whole[0], model[1] / whole[2], model[2] / whole[1])
        yield "cycle by cycle", f"{what}: one MDM evaluation is faster by", *ratios, "times"


def models() -> Iterator[Row]:
    """Yield rates of evaluating models, one call each from Python."""
    gpu = ws.gpu("pascal-mdm")
    kernel = kernels()["strided GS=32"]
    profile = ws.interval_profile(kernel, gpu)
    for model in ("gpumech", "mdm", "markov_chain"):
        rates = timed(
            lambda model=model: [ws.models.evaluate(profile, gpu, model) for _ in range(200)], 200
        )
        yield "models", f"{model}, {len(profile)} intervals", *rates, "M evaluations/s"


def pipeline() -> Iterator[Row]:
    """Yield rates of a whole prediction, from the text file to the table."""
    gpu = ws.gpu("pascal-mdm")
    with tempfile.TemporaryDirectory() as name:
        for what, path in text_traces(Path(name)):
            count = ws.load(path).kernels[0].num_instructions
            rates = timed(lambda path=path: ws.predict(ws.load(path), gpu, "all"), count)
            yield "file to ten models", what, *rates, "M warp instructions/s"


def starting() -> Iterator[Row]:
    """Yield the CPU seconds of programs that are over soon, those of Python's own start included."""
    trace = REPOSITORY / "data" / "traces" / "strided"
    with tempfile.TemporaryDirectory() as name:
        short = Path(name) / "short"
        ws.save(ws.App([ws.patterns.strided(1, blocks=64)], "short"), short)
        yield from _seconds_of_programs(trace, short)


def _seconds_of_programs(trace: Path, short: Path) -> Iterator[Row]:
    for what, arguments in (
        ("Python alone", ["-c", "pass"]),
        ("import warpstack", ["-c", "import warpstack"]),
        ("warpstack --help", ["-m", "warpstack", "--help"]),
        ("warpstack predict data/traces/strided", ["-m", "warpstack", "predict", str(trace)]),
        ("warpstack predict a short launch", ["-m", "warpstack", "predict", str(short)]),
    ):
        seconds = []
        for _ in range(RUNS + 1):  # the first one writes byte code
            program = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL)
            _, status, used = os.wait4(program.pid, 0)
            program.returncode = os.waitstatus_to_exitcode(status)
            if program.returncode:
                raise SystemExit(f"{what} ends with {program.returncode}")
            seconds.append(used.ru_utime + used.ru_stime)
        seconds = seconds[1:]
        yield "starting", what, statistics.median(seconds), min(seconds), max(seconds), "s of CPU"


GROUPS = {
    "starting": starting,
    "reading": reading,
    "simulation": simulation,
    "intervals": intervals,
    "caches": caches,
    "timing": timing,
    "models": models,
    "pipeline": pipeline,
}


def table(rows: list[Row]) -> pd.DataFrame:
    """Return the rows as a table."""
    return pd.DataFrame(
        {
            "stage": stage,
            "what": what,
            "median": f"{median:.3g}",
            "lowest": f"{low:.3g}",
            "highest": f"{high:.3g}",
            "unit": unit,
        }
        for stage, what, median, low, high, unit in rows
    )


def main() -> None:
    """Run the groups that were asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument(
        "--write", action="store_true", help="write the tables of docs/quality/benchmarks.md"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    rows = []
    for group in arguments.only:
        for row in GROUPS[group]():
            rows.append(row)
            print(f"{row[0]:20} {row[1]:36} {row[2]:9.3g} {row[5]}", file=sys.stderr)
    if arguments.json:
        print(json.dumps(rows))
        return
    page = DOCS / "quality" / "benchmarks.md"
    publish(page, {"figures": table(rows)}, arguments.write, where=machine())


if __name__ == "__main__":
    main()
