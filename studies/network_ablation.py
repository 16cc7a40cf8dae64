#!/usr/bin/env python3
"""What each ingredient of the closed network model buys, and what it says where Accel-Sim was run.

    python studies/network_ablation.py --write                                   # the ablations
    python studies/network_ablation.py --write --accelsim REFERENCE TRACES       # also Accel-Sim

The ablations hold the model against the cycle-level simulator on the seventeen workloads at the baseline
(`pascal-mdm`), and on random kernels on random GPUs, with one ingredient left out at a time. REFERENCE
and TRACES are as for `accelsim.py`. Nothing of the model is fitted, so nothing need be left out for it.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pages
import pandas as pd
from accelsim import CHANGES, described_gpu

import warpstack as ws
from warpstack import _core

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "python"))
import random_cases as rc

PAGE = pages.DOCS / "explanation" / "closed-network-model.md"
MODEL = "closed_network"
COMPARED = ("gpumech", "mdm", MODEL)
#: Random kernels (`tests/python/random_cases.py`), and their seed. Blocks start at once, as that is no part
#: of the model.
RANDOM_KERNELS, SEED = 200, 9091
AT_ONCE = {"block_interval_cycles": 0, "warp_start_cycles": 0, "block_replacement_ns": 0}
#: So many that they bound nothing.
MOST_MSHRS = 2**20


def of_events(
    kernel: ws.KernelTrace, gpu: ws.Gpu, memory: ws.MemoryProfile
) -> _core.PhaseList | None:
    """Return the phases with latencies by the misses of loads, not by what warps waited for."""
    profile = ws.interval_profile(kernel, gpu, memory)
    source = profile._source
    assert source is not None
    rows = memory._core.per_row
    levels = np.array([gpu.l1_latency, gpu.l2_latency, gpu.l2_latency + gpu.dram_latency])
    events = np.array([rows[f"{level}_events"] for level in ("l1_hit", "l2_hit", "dram")])
    all_events = events.sum(axis=0)
    latencies = np.where(
        all_events > 0, levels @ events / np.maximum(all_events, 1), source.latencies
    )
    profile._source = dataclasses.replace(source, latencies=latencies)
    return profile._core_phases(gpu)


def of_mean_rounds(profile: ws.IntervalProfile, gpu: ws.Gpu) -> _core.PhaseList:
    """Return the phases when the first round of a loop waits as long as the others."""
    source, launch = profile._source, profile.launch
    assert source is not None
    assert launch is not None
    work = _core.KernelWork(
        source.kernel._core,
        source.memory,
        source.latencies,
        source.warp_issue_rate,
        source.num_threads,
        gpu._core,
        knows_rounds=False,
    )
    return work.play(gpu.num_sms, launch.blocks_per_sm)


def ablations(
    kernel: ws.KernelTrace, gpu: ws.Gpu, memory_of: dict[str, ws.MemoryProfile]
) -> dict[str, float]:
    """Return the cycles of a kernel with each ingredient of the model left out.

    memory_of: what the caches did on the GPU (``full``), with one request for all lanes of an atomic on a
    line (``per_line``), and where warps go on beside their atomics (``beside``).
    """
    memory, per_line = memory_of["full"], memory_of["per_line"]
    profile = ws.interval_profile(kernel, gpu, memory)
    waves, phases = profile._core_waves(gpu), profile._core_phases(gpu)
    unawaited = ws.interval_profile(kernel, gpu.replace(store_acknowledgement="none"), memory)
    goes_on = gpu.replace(atomic_wait="for_data")
    beside = ws.interval_profile(kernel, goes_on, memory_of["beside"])
    assert phases is not None

    def demands(**changes: Any) -> _core.ResourceDemands:
        found = _core.demands_of(kernel._core, memory._core, gpu._core)
        for name, value in changes.items():
            setattr(found, name, value)
        return found

    full = demands()
    # A streaming L1 has a queue instead.
    queue = ("noc_queue_entries",) if gpu.noc_queue_entries else ("l1_mshrs",)

    def cycles(
        launch: _core.PhaseList | None = phases,
        demand: _core.ResourceDemands | None = full,
        **changes: Any,
    ) -> float:
        kernel_input = _core.ModelInput(profile._core, waves, launch, demand)
        result = _core.evaluate(MODEL, kernel_input, gpu._core.changed(changes))
        return float(profile.num_instructions * result["cycles"] / result["warp_instructions"])

    atomics = _core.demands_of(kernel._core, per_line._core)
    one_request = {
        name: getattr(atomics, name)
        for name in (
            *("lsu_cycles", "write_requests", "write_bytes"),
            *("slice_turns", "hottest_slice_turns"),
        )
    }
    table = phases.columns()
    return {
        "the model": cycles(),
        "waves of equal warps instead of phases": cycles(None),
        "no drain of the last warps (oldest first)": cycles(scheduler="lrr"),
        "last warps drain as if alone": cycles(phases.changed(drain_instructions=0)),
        "demands of the representative warp instead of all": cycles(demand=None),
        "latencies by misses instead of waits": cycles(of_events(kernel, gpu, memory)),
        "warps end before their stores are acknowledged": cycles(unawaited._core_phases(gpu)),
        "warps go on beside their atomics": cycles(beside._core_phases(goes_on)),
        "all rounds of a loop have the same latencies": cycles(of_mean_rounds(profile, gpu)),
        "nothing says when a launch ends at the latest": cycles(
            phases.changed(has_latest_end=False)
        ),
        "one request of an atomic per line": cycles(demand=demands(**one_request)),
        "warps wait while their stores are served": cycles(
            demand=demands(posted_requests=0, posted_bytes=0)
        ),
        "nobody has a way to and from what serves everybody": cycles(
            phases.changed(accesses=False)
        ),
        "all channels of DRAM alike": cycles(demand=demands(dram_imbalance=1)),
        "all slices alike": cycles(demand=demands(hottest_slice_turns=full.slice_turns)),
        "the port of the mean SM only": cycles(demand=demands(most_read_bytes=0)),
        "no waits for places in L1": cycles(demand=demands(place_wait_l2=0, place_wait_dram=0)),
        "lines of a load one after the other": cycles(demand=demands(missing_lines=1)),
        "loads past L1 hold MSHRs": cycles(demand=demands(misses_past_l1=0)),
        "units bound, but warps do not wait for them": cycles(
            demand=demands(unit_instructions=[0.0] * len(full.unit_instructions))
        ),
        "no bound by MSHRs": cycles(**dict.fromkeys(queue, MOST_MSHRS)),
        "MSHRs of SMs as full as this one": cycles(
            phases.changed(busy_sms=(table["all_warps"] / table["warps"]).tolist())
        ),
        "DRAM turns round at once": cycles(dram_row_bytes=0),
        "no contention for NoC, L2 and DRAM": cycles(
            noc_bandwidth_gbs=1e9,
            noc_sm_bytes_per_cycle=0,
            dram_bandwidth_gbs=1e9,
            dram_row_bytes=0,
            l2_clock_ghz=1e3,  # at which slices take requests
            l2_slice_bytes_per_cycle=0,
        ),
        "no burst of first accesses": cycles(demand=demands(loads=0)),
    }


#: Caches of the ablations, by what they differ in from the GPU.
CACHES: dict[str, dict[str, Any]] = {
    "full": {},
    "per_line": {"atomic_requests": "per_line"},
    "beside": {"atomic_wait": "for_data"},
}
ORDERS = {
    "greedy": "caches with the oldest warp first, not timed",
    "round_robin": "caches with warps in turn",
}


def variants_of(app: ws.App, gpu: ws.Gpu) -> pd.DataFrame:
    """Return a row per variant: the error of an application's cycles with an ingredient left out."""
    simulated = sum(result.cycles for result in ws.simulate(app, gpu))
    memory = {
        name: ws.simulate_caches(app, gpu.replace(**changes)) for name, changes in CACHES.items()
    }
    found: dict[str, float] = {}
    for number, kernel in enumerate(app.kernels):
        of_kernel = {name: profiles[number] for name, profiles in memory.items()}
        for what, cycles in ablations(kernel, gpu, of_kernel).items():
            found[what] = found.get(what, 0) + cycles
    for order, what in ORDERS.items():
        table = ws.predict(app, gpu, MODEL, access_order=order)
        found[what] = float(table["cycles"].sum())
    errors = [cycles / simulated - 1 for cycles in found.values()]
    return pd.DataFrame({"variant": list(found), "error": errors})


def ablation_table() -> pd.DataFrame:
    """Return errors with each ingredient left out, of the workloads and of random kernels."""
    gpu = ws.gpu("pascal-mdm")
    workloads, kernels = [], []
    for name in ws.workloads.names():
        workloads.append(variants_of(ws.workloads.load(name, "small"), gpu).assign(app=name))
    for number in range(RANDOM_KERNELS):
        case = rc.random_case(SEED, number)
        kernels.append(variants_of(case.app(), case.on().replace(**AT_ONCE)))
    of_workloads, of_kernels = pd.concat(workloads), pd.concat(kernels)
    of_workloads["ipc_error"] = 1 / (1 + of_workloads["error"]) - 1
    lines = []
    for variant, part in of_workloads.groupby("variant", sort=False):
        worst = part.iloc[part["error"].abs().argmax()]
        errors = of_kernels.loc[of_kernels["variant"] == variant, "error"]
        lines.append(
            {
                "variant": variant,
                "mean error of the IPC": f"{100 * part['ipc_error'].abs().mean():.1f} %",
                "mean error of the cycles": f"{100 * part['error'].abs().mean():.1f} %",
                "worst error of the cycles": f"{100 * worst['error']:+.0f} %",
                "worst application": worst["app"],
                "random kernels: mean": f"{100 * errors.abs().mean():.1f} %",
                "random kernels: 90th percentile": f"{100 * errors.abs().quantile(0.9):.1f} %",
                "random kernels: worst": f"{100 * errors.iloc[errors.abs().argmax()]:+.0f} %",
            }
        )
    return pd.DataFrame(lines)


def accelsim_table(reference: pd.DataFrame, app: ws.App) -> pd.DataFrame:
    """Return the models' errors of Accel-Sim's cycles."""
    gpu = described_gpu()
    lines = []
    for order in ("timed", "greedy", "round_robin"):
        bfs = ws.predict(app, gpu, COMPARED, access_order=order)
        errors = []
        for row in reference.itertuples():
            if row.trace.startswith("strided"):
                stride = int(row.trace.partition("GS=")[2])
                kernel = ws.patterns.strided(
                    gs=stride, iterations=16, blocks=448, warps_per_block=8
                )
                table = ws.predict(
                    kernel, gpu.replace(**CHANGES[row.change]), COMPARED, access_order=order
                )
            else:
                table = bfs[bfs["kernel"] == row.kernel]
            errors.append(table.set_index("model")["cycles"] / row.cycles - 1)
        frame = pd.DataFrame(errors)
        ipc = 1 / (1 + frame) - 1
        for what, values in (("cycles", frame), ("IPC", ipc)):
            line = {"caches in order": order, "mean error of": what, "rows": len(frame)}
            lines.append(line | {m: f"{100 * values[m].abs().mean():.0f} %" for m in COMPARED})
    return pd.DataFrame(lines)


def main() -> None:
    """Measure what was asked for and print or write the tables."""
    parser = pages.parser(__doc__, PAGE)
    parser.add_argument(
        "--accelsim", nargs=2, type=pages.existing(), metavar=("REFERENCE", "TRACES")
    )
    arguments = parser.parse_args()
    tables = {"ablations": ablation_table()}
    if arguments.accelsim:
        reference, traces = arguments.accelsim
        table = pd.read_csv(reference, keep_default_na=False)
        tables["accelsim"] = accelsim_table(table, ws.load(traces / "rodinia-bfs-graph4096"))
    pages.publish(PAGE, tables, arguments.write)


if __name__ == "__main__":
    main()
