"""The table of pictures, and what draws each from numbers that are kept.

A picture is drawn from files alone, so that it comes out the same at any time. Where its numbers take
seconds, they can be made anew, too; where they take hours or other people's traces, their study writes
the files that the picture is drawn from.
"""

from __future__ import annotations

import functools
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import design_space
import numpy as np
import originals
import pages
import pandas as pd
import random_kernels
from hardware_suites import pictures as hardware
from matplotlib.figure import Figure

import models
import warpstack as ws
from warpstack.memory.reuse import ReuseProfile, _Histogram

#: Points of pictures that no page shows as a table.
POINTS = pages.IMAGES / "data"
#: The trace of Rodinia's bfs, which belongs to others.
BFS = pages.REPOSITORY.parent / "shared" / "traces" / "rodinia-bfs-graph4096"
#: Columns of predictions that bars show.
SHOWN = ("kernel", "name", "gpu", "model", "time_us", "launch_us", "ipc", "cpi")
MODELS = ("gpumech", "mdm", "closed_network")


class NoNumbers(Exception):
    """What the numbers of a picture are made of is not here."""


@dataclass(frozen=True)
class Drawn:
    """A picture that a function draws.

    Attributes
    ----------
    name
        Its file in docs/images.
    draw
        Draws it, from nothing but `data`.
    data
        The files that it is drawn from.
    dpi
        Pixels per inch.
    numbers
        Makes the first of `data` anew; None if that is a study's work.
    of
        What makes the data, in words.
    """

    name: str
    draw: Callable[[], Figure]
    data: tuple[Path, ...]
    of: str
    dpi: int = 110
    numbers: Callable[[], pd.DataFrame] | None = None


@dataclass(frozen=True)
class Recorded:
    """A picture that a program of its own makes.

    Attributes
    ----------
    name
        Its file in docs.
    sources
        The files that decide what it shows.
    command
        What makes it, for `sys.executable`; empty if that is not a command of this machine.
    of
        What makes it, in words.
    """

    name: str
    sources: tuple[Path, ...]
    of: str
    command: tuple[str, ...] = ()


def kept(table: pd.DataFrame, path: Path) -> None:
    """Write numbers as pictures keep them: to six digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(path, index=False, float_format="%.6g", lineterminator="\n")


def traced(program: str) -> ws.App:
    """Return what a program of data/kernels launches; of the PTX beside it, so that no compiler is needed."""
    script = pages.REPOSITORY / "data" / "kernels" / f"{program}.py"
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / program
        subprocess.run([sys.executable, script, trace, "--ptx"], check=True, stdout=sys.stderr)
        return ws.load(trace)


def bars(table: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of predictions that pictures of bars read."""
    return table[[*SHOWN, *(name for name in table if str(name).startswith("cpi_"))]]


def matvec_numbers() -> pd.DataFrame:
    """Predict the kernels of the README."""
    return bars(ws.predict(traced("matvec"), "h100-pcie", "closed_network"))


def draw_matvec() -> Figure:
    """Draw the times of the kernels of the README."""
    table = pd.read_csv(POINTS / "matvec.csv")
    title = "Products of a 512 x 512 matrix and a vector on an H100 PCIe"
    return ws.plot.time_stack(table, title=title).figure


def cpi_stack_numbers() -> pd.DataFrame:
    """Predict the kernels of the tutorial."""
    return bars(ws.predict(traced("strided"), "pascal-mdm", MODELS))


def draw_cpi_stack() -> Figure:
    """Draw the CPI stacks of the tutorial."""
    return ws.plot.cpi_stacks(pd.read_csv(POINTS / "cpi-stack.csv"))


def roofline_numbers() -> pd.DataFrame:
    """Place the product of SPMV under the roofs."""
    kernel = ws.workloads.load("spmv")[0]
    table = ws.models.roofline(kernel, "pascal-mdm", ["gpumech", "mdm"], simulate=True)
    return table.drop(columns=["trace_digest", "gpu_digest", "version"], errors="ignore")


def draw_roofline() -> Figure:
    """Draw the roofs of the page on the roofline."""
    table = pd.read_csv(POINTS / "roofline.csv", keep_default_na=False, na_values=["nan"])
    return ws.plot.roofline(table.assign(gpu_digest="")).figure


def stack_distances_numbers() -> pd.DataFrame:
    """Profile launch 9 of bfs; points between which no step is seen stand for all."""
    if not BFS.is_dir():
        raise NoNumbers(f"the trace {BFS.name} is not in ../shared/traces")
    kernel = ws.load(BFS).select([9]).kernels[0]
    gpu = ws.gpu("titan-v").replace(l1_size_kib=128)
    tables = []
    for name, filtered in (("all accesses", False), ("without L1 hits", True)):
        profile = ws.memory.reuse_profile(kernel, gpu, level="l2", line_bytes=32, filtered=filtered)
        last = int(profile.distances[-1]) + 1
        lines = np.unique(np.geomspace(1, last, 300).round().astype(int))
        shares = profile.hit_rate(lines)
        tables.append(pd.DataFrame({"stream": name, "lines": lines, "share": shares}))
    return pd.concat(tables)


def draw_stack_distances() -> Figure:
    """Draw the cumulative stack distances of the page on reuse."""
    profiles = {}
    for name, rows in pd.read_csv(POINTS / "stack-distances.csv").groupby("stream", sort=False):
        counts = 1e6 * np.diff(rows["share"], prepend=0)
        cold = 1e6 - counts.sum()
        histogram = _Histogram(rows["lines"].to_numpy() - 1, counts, cold)
        profiles[str(name)] = ReuseProfile(1_000_000, histogram)
    return ws.plot.stack_distances(
        profiles,
        capacities={"L1 of one SM": 128 * 32, "L2": 4608 * 32},
        title="Rodinia bfs, launch 9, on titan-v: the stream to L2, lines of 32 bytes",
    ).figure


def hardware_times(model: str) -> pd.DataFrame:
    """Return what a model says of all measured times."""
    table = pd.read_csv(pages.DATA / "trust" / "hardware.csv")
    return table.rename(columns={model: "time_us"})


def draw_hardware_simulator() -> Figure:
    """Draw the simulator's times over measured ones."""
    return hardware.draw(hardware_times("simulator"))


def draw_hardware_closed_network() -> Figure:
    """Draw our model's times over measured ones."""
    return hardware.draw(hardware_times("closed_network"))


def draw_axis(field: str) -> Figure:
    """Draw the models' errors along an axis."""
    return models.draw_axis(pd.read_csv(models_data("axes")), field)


def models_data(name: str) -> Path:
    """Return a table of the page on the models."""
    return pages.DATA / "validation-models" / f"{name}.csv"


def draw_validation_baseline() -> Figure:
    """Draw the errors of the models by application."""
    return models.draw_baseline(pd.read_csv(models_data("baseline-applications")))


def draw_random_kernels() -> Figure:
    """Draw the distribution of the models' errors on random kernels."""
    return random_kernels.draw(pd.read_csv(pages.DATA / "random-kernels" / "cases.csv"))


def draw_btree() -> Figure:
    """Draw the maps of b+tree."""
    return design_space.draw(pd.read_csv(POINTS / "design-space-btree.csv"), "b+tree")


def draw_cfd() -> Figure:
    """Draw the maps of cfd."""
    return design_space.draw(pd.read_csv(POINTS / "design-space-cfd.csv"), "cfd")


def draw_axis_stacks() -> Figure:
    """Draw the CPI stacks of bfs as bandwidths grow."""
    return design_space.draw_axis_stacks(pd.read_csv(POINTS / "axis-stacks.csv"))


def draw_exploring() -> Figure:
    """Draw the four kinds of pictures of a design space."""
    return design_space.draw_exploring(pd.read_csv(POINTS / "exploring.csv"))


def draw_originals_errors() -> Figure:
    """Draw the errors of the papers' own benchmarks."""
    return originals.draw_errors(originals.kept())


def draw_originals_latency() -> Figure:
    """Draw the latencies of the papers' own benchmarks."""
    return originals.draw_latency(originals.kept())


ORIGINALS = "`studies/originals.py FOLDER --write`, hours, of programs that one builds"
HARDWARE = (
    "`studies/hardware.py REFERENCE --keep CSV`, then `studies/trust.py --hardware CSV --write`"
)
MAPS = "`studies/design_space.py --write`, half an hour"
FIGURES = pages.DOCS / "figures"
KERNELS = pages.REPOSITORY / "data" / "kernels"
TOOLS = pages.REPOSITORY / "tools"
PLOT = pages.REPOSITORY / "python" / "warpstack" / "plot"
DEMO = (TOOLS / "record-demo", *(KERNELS / f"matvec.{kind}" for kind in ("cu", "ptx", "py")))

PICTURES: tuple[Drawn | Recorded, ...] = (
    Drawn(
        "matvec.png", draw_matvec, (POINTS / "matvec.csv",),
        "seconds, of data/kernels/matvec.ptx", 150, matvec_numbers,
    ),
    Drawn(
        "cpi-stack.png", draw_cpi_stack, (POINTS / "cpi-stack.csv",),
        "seconds, of data/kernels/strided.ptx", 150, cpi_stack_numbers,
    ),
    Drawn(
        "roofline.png", draw_roofline, (POINTS / "roofline.csv",),
        "a minute, of the workload spmv", 110, roofline_numbers,
    ),
    Drawn(
        "stack-distances.png", draw_stack_distances, (POINTS / "stack-distances.csv",),
        "seconds, of ../shared/traces/rodinia-bfs-graph4096", 100, stack_distances_numbers,
    ),
    Drawn(
        "axis-stacks.png", draw_axis_stacks, (POINTS / "axis-stacks.csv",),
        "a minute, of the workload bfs", 110, design_space.axis_stacks_numbers,
    ),
    Drawn(
        "exploring.png", draw_exploring, (POINTS / "exploring.csv",),
        "a minute, of the workload bfs", 100, design_space.exploring_numbers,
    ),
    Drawn("design-space-btree.png", draw_btree, (POINTS / "design-space-btree.csv",), MAPS),
    Drawn("design-space-cfd.png", draw_cfd, (POINTS / "design-space-cfd.csv",), MAPS),
    Drawn(
        "hardware-simulator.png", draw_hardware_simulator,
        (pages.DATA / "trust" / "hardware.csv",), HARDWARE, 100,
    ),
    Drawn(
        "hardware-closed_network.png", draw_hardware_closed_network,
        (pages.DATA / "trust" / "hardware.csv",), HARDWARE, 100,
    ),
    Drawn(
        "validation-baseline.png", draw_validation_baseline,
        (models_data("baseline-applications"),), "`studies/models.py --axes --write`, hours",
    ),
    *(
        Drawn(
            f"validation-{field}.png", functools.partial(draw_axis, field),
            (models_data("axes"),), "`studies/models.py --axes --write`, hours",
        )
        for field in models.AXES
    ),
    Drawn(
        "random-kernels.png", draw_random_kernels,
        (pages.DATA / "random-kernels" / "cases.csv",),
        "`studies/random_kernels.py --write`, minutes",
    ),
    Drawn(
        "originals-errors.png", draw_originals_errors,
        (originals.MEASURED, FIGURES / originals.OURS["errors"]), ORIGINALS,
    ),
    Drawn(
        "originals-latency.png", draw_originals_latency,
        (originals.MEASURED, FIGURES / originals.OURS["latency"]), ORIGINALS,
    ),
    Recorded("images/demo.svg", DEMO, "`tools/record-demo`", (str(TOOLS / "record-demo"),)),
    Recorded("_static/demo-still.svg", DEMO, "`tools/record-demo`", (str(TOOLS / "record-demo"),)),
    Recorded(
        "images/explorer.png", (PLOT / "sliders.py",),
        "a photograph of `notebooks/explore.ipynb` in a browser",
    ),
)  # fmt: skip
