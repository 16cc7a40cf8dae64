#!/usr/bin/env python3
"""Two kernels at the same time: the simulator beside Accel-Sim on ten pairs.

    python studies/accelsim_pairs.py --traces FOLDER          # write what Accel-Sim runs
    python studies/accelsim_pairs.py --logs FOLDER            # read what it printed, and simulate
    python studies/accelsim_pairs.py --logs FOLDER --write    # also into docs/data/concurrent-kernels

Of each pair FOLDER gets three traces: ``NAME-first``, ``NAME-second``, and ``NAME-both`` with two
streams. What Accel-Sim prints of ``NAME-both/kernelslist.g`` goes to ``NAME-both.log`` in the folder of
the logs. It runs with ``-gpgpu_concurrent_kernel_sm 1``, on the machine of the other comparisons with it
and as docs/explanation/concurrent-kernels.md says. The kernels are made here, from the steps of
`tests/python/kernel_recipes.py`; nothing was chosen by their results.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import accelsim_fresh
import numpy as np
import pages
import pandas as pd

import warpstack as ws
from warpstack.traces.io.accelsim import MANIFEST

sys.path.append(str(pages.DOCS.parent / "tests" / "python"))
import kernel_recipes as kr

PAGE = pages.DOCS / "quality" / "concurrent-kernels.md"
SEED = 20_75
#: What Accel-Sim runs of a pair.
RUNS = ("first", "second", "both")
#: A compute capability whose opcodes Accel-Sim knows.
BINARY_VERSION = 75
#: What the two kernels do, and how much room the first one leaves.
PAIRS = (
    ("compute", "compute", "half"),
    ("compute", "compute", "none"),
    ("compute", "compute", "other SMs"),
    ("compute", "memory", "half"),
    ("compute", "memory", "none"),
    ("compute", "memory", "shared memory"),
    ("memory", "compute", "half"),
    ("memory", "compute", "none"),
    ("memory", "memory", "half"),
    ("memory", "memory", "none"),
)
#: Blocks, threads of a block, and bytes of shared memory of the first and the second kernel, on 28 SMs
#: of 2,048 threads, 32 blocks and 96 KiB.
ROOMS = {
    # Four blocks of an SM's eight each.
    "half": ((112, 256, 0), (112, 256, 0)),
    # The first one fills all places, and has a second wave of a quarter.
    "none": ((280, 256, 0), (168, 256, 0)),
    # One large block each, on half of the SMs.
    "other SMs": ((14, 1024, 0), (14, 1024, 0)),
    # Two blocks of the first one leave 16 KiB: one block of the second one.
    "shared memory": ((112, 256, 40 << 10), (112, 256, 12 << 10)),
}
_TOTAL = re.compile(r"^gpu_tot_sim_cycle = (\d+)$", re.MULTILINE)
_INSTRUCTIONS = re.compile(r"^gpu_tot_sim_insn = (\d+)$", re.MULTILINE)
#: The last line of a run that was not broken off.
_DONE = "GPGPU-Sim: *** exit detected ***"


def recipe(rng: np.random.Generator, does: str, room: tuple[int, int, int]) -> kr.Recipe:
    """Return a random kernel that computes, or moves data."""
    blocks, block, shared = room
    seed = int(rng.integers(2**31))
    if does == "compute":
        steps = (
            kr.Step("independent", 0, int(rng.integers(2, 10))),
            kr.Step("dependent", 1, int(rng.integers(2, 8))),
            kr.Step("load", 2, 1, "tile", footprint=1 << 12),
        )
        iterations = int(rng.integers(12, 25))
    else:
        pattern = str(rng.choice(["coalesced", "strided", "random"], p=[0.6, 0.2, 0.2]))
        large = kr.Step("load", 0, int(rng.integers(1, 3)), pattern, 4, 1 << 23, late=True)
        steps = (
            replace(large, stride=4 if pattern == "strided" else 1),
            kr.Step("dependent", 1, int(rng.integers(1, 5))),
            kr.Step("store", 2, 1, footprint=1 << 22, share=float(rng.choice([0.5, 1.0]))),
        )
        iterations = int(rng.integers(3, 7) if pattern == "coalesced" else rng.integers(2, 4))
    return kr.Recipe(
        seed=seed, blocks=blocks, block=block, shared=shared, iterations=iterations, body=steps
    )


def pairs() -> dict[str, ws.App]:
    """Return the pairs by their names; the two kernels of a pair have memory of their own."""
    made = {}
    for number, (first, second, room) in enumerate(PAIRS, 1):
        rng = np.random.default_rng([SEED, number])
        recipes = (recipe(rng, first, ROOMS[room][0]), recipe(rng, second, ROOMS[room][1]))
        other = replace(recipes[1], body=tuple(_apart(step) for step in recipes[1].body))
        made[f"pair-{number}"] = ws.App([kr.trace(recipes[0]), kr.trace(other)], f"pair-{number}")
    return made


def _apart(step: kr.Step) -> kr.Step:
    """Return a step on data that no step of the first kernel has."""
    return replace(step, key=step.key + 8)


def write_traces(folder: Path) -> None:
    """Write the traces that Accel-Sim runs: of a pair each kernel alone, and both in two streams."""
    for name, app in pairs().items():
        chosen = {"first": app.kernels[:1], "second": app.kernels[1:], "both": app.kernels}
        for run, kernels in chosen.items():
            path = folder / f"{name}-{run}"
            of_run = ws.App(list(kernels), path.name)
            ws.save(of_run, path, format="accelsim", binary_version=BINARY_VERSION)
            for place in range(len(kernels)):
                _put_in_stream(path / f"kernel-{place + 1}.traceg", place + 1)
            (path / MANIFEST).unlink()  # its digests are those of the files before


def _put_in_stream(file: Path, stream: int) -> None:
    """Put a kernel into a stream of its own: Accel-Sim runs those of one stream one after the other."""
    text = file.read_text()
    head, found, rest = text.partition("-cuda stream id = 0\n")
    if not found:
        raise SystemExit(f"{file}: its head has no stream")
    file.write_text(f"{head}-cuda stream id = {stream}\n{rest}")


def read_log(file: Path) -> tuple[list[int], int]:
    """Return the cycle in which each kernel of a run of Accel-Sim ended, and its thread instructions."""
    text = file.read_text(errors="replace")
    ends = [int(cycle) for cycle in _TOTAL.findall(text)]
    counts = _INSTRUCTIONS.findall(text)
    if _DONE not in text or not ends or not counts:
        raise SystemExit(f"{file}: not the log of a run of Accel-Sim that came to its end")
    return ends, int(counts[-1])


def measured(logs: Path, name: str, app: ws.App, gpu: ws.Gpu) -> dict[str, Any]:
    """Return the row of a pair: cycles of both simulators, each kernel alone and both together."""
    runs = {run: read_log(logs / f"{name}-{run}.log") for run in RUNS}
    if runs["first"][1] + runs["second"][1] != runs["both"][1] or len(runs["both"][0]) != 2:
        raise SystemExit(f"{logs}/{name}-both.log: not the two kernels that ran alone")
    alone = [ws.simulate(kernel, gpu) for kernel in app.kernels]
    both = ws.simulate(app, gpu, concurrent=True)
    number = int(name.removeprefix("pair-"))
    first, second, room = PAIRS[number - 1]
    row: dict[str, Any] = {"pair": number, "first": first, "second": second, "room": room}
    for place, run in enumerate(RUNS[:2]):
        row[f"{run} alone, Accel-Sim"] = runs[run][0][-1]
        row[f"{run} alone"] = alone[place].cycles
    row["together, Accel-Sim"] = runs["both"][0][-1]
    row["together"] = both.cycles
    row["first one to end, Accel-Sim"] = runs["both"][0][0]
    row["first one to end"] = int(both.to_frame()["end"].min())
    return row


def with_shares(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with the time together over that of one after the other, in both, and the errors."""
    table = rows.copy()
    for who in (", Accel-Sim", ""):
        alone = rows[f"first alone{who}"] + rows[f"second alone{who}"]
        table[f"share of the sum{who} (%)"] = 100 * rows[f"together{who}"] / alone
    table["error of cycles together (%)"] = 100 * (
        rows["together"] / rows["together, Accel-Sim"] - 1
    )
    ratio = table["share of the sum (%)"] / table["share of the sum, Accel-Sim (%)"]
    table["error of the share (%)"] = 100 * (ratio - 1)
    return table


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return mean, median and largest errors: of kernels alone, of both together, of the gain."""
    alone = np.concatenate(
        [100 * (table[f"{run} alone"] / table[f"{run} alone, Accel-Sim"] - 1) for run in RUNS[:2]]
    )
    named: Mapping[str, np.ndarray] = {
        "each kernel alone": alone,
        "both together": table["error of cycles together (%)"].to_numpy(),
        "share of the sum": table["error of the share (%)"].to_numpy(),
    }
    return pd.DataFrame(
        [
            {
                "error of": name,
                "mean (%)": float(np.abs(errors).mean()),
                "median (%)": float(np.median(np.abs(errors))),
                "largest (%)": float(errors[np.abs(errors).argmax()]),
            }
            for name, errors in named.items()
        ]
    )


def main() -> None:
    """Write the traces, or hold both simulators against each other."""
    parser = pages.parser(__doc__, PAGE)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--traces", type=Path, metavar="FOLDER", help="write the traces to it")
    what.add_argument("--logs", type=pages.existing(), metavar="FOLDER", help="Accel-Sim's output")
    arguments = parser.parse_args()
    if arguments.traces:
        arguments.traces.mkdir(parents=True, exist_ok=True)
        write_traces(arguments.traces)
        return
    gpu = accelsim_fresh.simulated_gpu()
    rows = [measured(arguments.logs, name, app, gpu) for name, app in pairs().items()]
    table = with_shares(pd.DataFrame(rows))
    tables = {"accelsim": table, "accelsim-summary": summary(table)}
    pages.publish(PAGE, tables, arguments.write)


if __name__ == "__main__":
    main()
