#!/usr/bin/env python3
"""What each ingredient of the closed network model buys, and what it says where Accel-Sim was run.

    python studies/network_ablation.py --write                                   # the ablations
    python studies/network_ablation.py --write --accelsim REFERENCE TRACES       # also Accel-Sim

The ablations hold the model against the cycle-level simulator on the seventeen workloads at the baseline
(`pascal-mdm`), with one ingredient left out at a time. REFERENCE and TRACES are as for
`accelsim.py`. Nothing of the model is fitted, so that nothing need be left out to test it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pages
import pandas as pd
from accelsim import CHANGES, described_gpu

import warpstack as ws
from warpstack import _core

PAGE = pages.DOCS / "explanation" / "closed-network-model.md"
MODEL = "closed_network"
COMPARED = ("gpumech", "mdm", MODEL)
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


def ablations(
    kernel: ws.KernelTrace, gpu: ws.Gpu, memory: ws.MemoryProfile, per_line: ws.MemoryProfile
) -> dict[str, float]:
    """Return the cycles of a kernel with each ingredient of the model left out.

    per_line: the same caches with one request for all lanes of an atomic on a line.
    """
    profile = ws.interval_profile(kernel, gpu, memory)
    waves, phases = profile._core_waves(gpu), profile._core_phases(gpu)
    unawaited = ws.interval_profile(kernel, gpu.replace(store_acknowledgement="none"), memory)
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


ORDERS = {
    "greedy": "caches with the oldest warp first, not timed",
    "round_robin": "caches with warps in turn",
}


def ablation_table() -> pd.DataFrame:
    """Return mean and worst errors with each ingredient left out."""
    gpu = ws.gpu("pascal-mdm")
    rows = []
    for name in ws.workloads.names():
        app = ws.workloads.load(name, "small")
        simulated = sum(result.cycles for result in ws.simulate(app, gpu))
        memory = ws.simulate_caches(app, gpu)
        per_line = ws.simulate_caches(app, gpu.replace(atomic_requests="per_line"))
        found: dict[str, float] = {}
        for of_kernel in zip(app.kernels, memory, per_line, strict=True):
            kernel, profile, of_lines = of_kernel
            for what, cycles in ablations(kernel, gpu, profile, of_lines).items():
                found[what] = found.get(what, 0) + cycles
        for order, what in ORDERS.items():
            table = ws.predict(app, gpu, MODEL, access_order=order)
            found[what] = float(table["cycles"].sum())
        rows += [
            {"app": name, "variant": what, "error": cycles / simulated - 1}
            for what, cycles in found.items()
        ]
    table = pd.DataFrame(rows)
    table["ipc_error"] = 1 / (1 + table["error"]) - 1
    lines = []
    for variant, part in table.groupby("variant", sort=False):
        worst = part.loc[part["error"].abs().idxmax()]
        lines.append(
            {
                "variant": variant,
                "mean error of the IPC": f"{100 * part['ipc_error'].abs().mean():.1f} %",
                "mean error of the cycles": f"{100 * part['error'].abs().mean():.1f} %",
                "worst error of the cycles": f"{100 * worst['error']:+.0f} %",
                "worst application": worst["app"],
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
