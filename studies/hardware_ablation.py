#!/usr/bin/env python3
"""Show what each step towards the time of a real GPU buys on each kernel.

    python studies/hardware_ablation.py REFERENCE            # print the table
    python studies/hardware_ablation.py REFERENCE --write    # into docs/data/hardware

Kernels of `hardware.py` that wait for barriers, double precision, conversions, shared memory, stores or
launches are simulated again, each time without one thing that the descriptions of the GPUs have.
"""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pages
import pandas as pd
from hardware_suites import SUITES, evaluate
from hardware_suites.row import Row, State

PAGE = pages.DOCS / "quality" / "hardware.md"
#: Warp instructions of the longest launch.
LARGEST = 1e7
#: Sets, and patterns of ``GPU | kernel | application | launch`` of their rows.
KERNELS: dict[str, tuple[str, ...]] = {
    "rodinia": (
        "gtx1080 | calculate_temp | hotspot* | 2",
        "gtx1080 | needle_cuda_shared_1 | nw* | 5",
        "gtx1080 | dynproc_kernel | pathfinder* | 4",
    ),
    "microbenchmarks": (
        *(f"{gpu} | dot_kernel | *1024-numtimes-2 | 11" for gpu in ("gtx1080", "rtx-a4000")),
        *(f"{gpu} | MatrixMulCUDA | *wa128* | 1" for gpu in ("gtx1080", "rtx3070")),
        *(f"{gpu} | transposeNaive | *dimx128* | 6" for gpu in ("gtx1080", "rtx3070")),
        "rtx3070 | triad_kernel | *10240* | 5",
    ),
    "pmpp": (
        "rtx2060 | array_add_not_coalesced | * axis_size=512 *",
        "rtx3080 | simple_histogram | * array_size=8192 *",
        "rtx3080 | mat_mat_mul | * num_rows_1=128 *",
    ),
    "kpp": (
        "rtx2080ti | naive_transpose_kernel | * rows=1024 * data=predict-kernel-perf *",
        "rtx2080ti | shared_transpose_kernel | * rows=512 *",
        "rtx4070 | naive_transpose_kernel | * rows=1024 * data=predict-kernel-perf *",
    ),
    "strides": tuple(f"a40 | fstride | fstride {stride} |*" for stride in (1, 9, 33)),
    "streams": ("a100 | write | * 96x1 threads/SM, *",),
    "triton": ("a100-80gb | Liger rms_norm fwd | 2048x2048 bf16 |*",),
    "h100": (
        "h100-pcie | vectorAdd | * size=16384 | *",
        "h100-pcie | vectorAdd | * size=2097152 | *",
        "h100-pcie | ffmaKernel | * block=600 thread=128 iters=20 | *",
        "h100-pcie | emptyKernel | * block=16384 thread=64 | *",
    ),
}
INTERVALS = ("integer", "fp32", "fp16", "fp64", "sfu", "tensor")


@dataclasses.dataclass(frozen=True)
class Step:
    """What is taken away: fields of the GPU, machine code, the launch, or what L2 held."""

    label: str
    changes: tuple[tuple[str, Any], ...] = ()
    code: str = "machine"
    launch: bool = True
    state: State | None = None  #: another than that of the row


STEPS = (
    Step("as it is"),
    Step("launch", launch=False),
    Step(
        "starts of blocks",
        tuple(
            dict.fromkeys(
                ("block_interval_cycles", "block_replacement_ns", "warp_start_cycles"), 0
            ).items()
        ),
    ),
    Step("machine code", code="ptx"),
    Step("sub-cores", (("schedulers_per_sm", 1),)),
    Step("greedy scheduler", (("scheduler", "lrr"),)),
    Step("rates of units", tuple((f"{name}_interval", 1) for name in INTERVALS)),
    Step("cost of barriers", (("barrier_latency", 0),)),
    Step("waits for the last stores", (("kernel_end", "last_warp"),)),
    Step(
        "places free before stores are acknowledged",
        (("store_acknowledgement", "awaited"), ("kernel_end", "last_warp")),
    ),
    Step("slower load-store units", (("lsu_interval", 1), ("shared_wavefront_cycles", 1))),
    Step("tags and banks of L1", (("l1_tags_per_cycle", 0),)),
    Step("sectors written in part", (("l2_partial_write_turns", 0),)),
    Step("atomics of several words", (("l2_atomic_words_at_once", 1),)),
    Step("sets of L2 by chance", (("l2_set_index", "xor"),)),
    Step("slices of L2", (("l2_slice_bytes_per_cycle", 0), ("l2_slice_index", "modulo"))),
    Step("what L2 holds before", state="cold"),
    Step("empty L2", state="repeated"),
    Step("sustained DRAM", (("dram_efficiency", 1),)),
)


def chosen(reference: Path) -> list[Row]:
    """Return the rows of the kernels."""
    found = []
    for name, patterns in KERNELS.items():
        for row in SUITES[name](reference):
            text = f"{row.gpu} | {row.kernel} | {row.application} | {row.kernel_index}"
            is_time = row.unit == "us" or row.metric in ("cycles_nsys", "cycles_per_load")
            if is_time and any(fnmatch.fnmatchcase(text, pattern) for pattern in patterns):
                found.append(row)
    return found


def simulated(step: Step, rows: Sequence[Row], cache: Path) -> pd.DataFrame:
    """Return the simulated times of the rows, their ``error`` and ``measured_us``."""
    firsts = [row.settings[0] for row in rows]
    if step.state:
        firsts = [dataclasses.replace(first, state=step.state) for first in firsts]
    rows = [dataclasses.replace(r, settings=(s,)) for r, s in zip(rows, firsts, strict=True)]
    tasks = [
        dataclasses.replace(task, changes=step.changes)
        for task in evaluate.tasks_of(rows, step.code, cache)
    ]
    results = [evaluate.evaluated(task) for task in tasks]
    times = evaluate.rows_with_times(rows, results, step.code, LARGEST)
    times = times[times["model"] == evaluate.SIMULATOR].reset_index(drop=True)
    predicted = times["us"] + (times["launch_us"] if step.launch else 0)
    return times.assign(error=predicted / times["measured_us"] - 1)


def table(reference: Path, cache: Path) -> pd.DataFrame:
    """Return the errors without each step."""
    rows = chosen(reference)
    times = [simulated(step, rows, cache) for step in STEPS]
    cells = []
    for number, row in enumerate(rows):
        is_size = row.gpu == "h100-pcie" or row.suite == "L1 strides"
        name = row.application.split(",")[0] if is_size else row.kernel
        each = [f"{100 * of_step['error'][number]:+.0f} %" for of_step in times]
        cells.append([name, row.gpu, f"{times[0]['measured_us'][number]:.3g}", *each])
    head = ["kernel", "GPU", "measured (us)", STEPS[0].label]
    head += [f"without {step.label}" for step in STEPS[1:]]
    return pd.DataFrame(cells, columns=head)


def main() -> None:
    """Compute the table and print or write it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "reference", type=pages.existing("gtx1080-rodinia.csv"), help="the folder hardware"
    )
    parser.add_argument("--cache", type=Path, default=evaluate.cache_folder(), help="of traces")
    parser.add_argument("--write", action="store_true", help="write the table that the page names")
    arguments = parser.parse_args()
    tables = {"ablation": table(arguments.reference, arguments.cache)}
    pages.publish(PAGE, tables, arguments.write)


if __name__ == "__main__":
    main()
