#!/usr/bin/env python3
"""What each ingredient of the closed network model buys, and what it says where Accel-Sim was run.

    python studies/network_ablation.py --write                                   # the ablations
    python studies/network_ablation.py --write --accelsim REFERENCE TRACES       # also Accel-Sim

The ablations hold the model against the cycle-level simulator on the seventeen workloads at the baseline
(`pascal-mdm`), with one ingredient left out at a time. REFERENCE and TRACES are as for
`accelsim.py`. Nothing of the model is fitted, so that nothing need be left out to test it.
"""

from __future__ import annotations

from pathlib import Path

import pages
import pandas as pd
from accelsim import CHANGES, described_gpu

import warpstack as ws
from warpstack import _core
from warpstack.models.prediction import _parameters

PAGE = pages.DOCS / "explanation" / "closed-network-model.md"
MODEL = "closed_network"
COMPARED = ("gpumech", "mdm", MODEL)


def burst(gpu: ws.Gpu, demands: _core.ResourceDemands, launch: _core.PhaseList) -> float:
    """Return the cycles that the model adds for the first accesses of all warps."""
    p = _parameters(gpu)
    sent = demands.write_bytes + demands.read_misses * gpu.noc_control_bytes
    cycles_per_byte = gpu.clock_ghz / gpu.noc_bandwidth_gbs
    shared = (
        sent * cycles_per_byte,
        demands.read_bytes * cycles_per_byte,
        (demands.read_misses + demands.write_requests) / p["l2_requests_per_cycle"],
        demands.dram_bytes * gpu.clock_ghz / gpu.dram_bandwidth_gbs,
    )
    port = p["noc_sm_bytes_per_cycle"]
    own = (demands.lsu_cycles, *((n / port for n in (sent, demands.read_bytes)) if port else ()))
    longest = max(
        *(launch.first_warps * cycles for cycles in own),
        *(launch.first_all_warps * cycles for cycles in shared),
    )
    return longest / demands.memory_instructions


def ablations(kernel: ws.KernelTrace, gpu: ws.Gpu, memory: ws.MemoryProfile) -> dict[str, float]:
    """Return the cycles of a kernel with each ingredient of the model left out."""
    profile = ws.interval_profile(kernel, gpu, memory)
    demands = _core.demands_of(kernel._core, memory._core)
    waves, phases = profile._core_waves(gpu), profile._core_phases(gpu)
    assert phases is not None
    whole = _core.ModelInput(profile._core, waves, phases, demands)

    def cycles(demand: _core.ModelInput, **changes: float) -> float:
        result = _core.evaluate(MODEL, demand, _parameters(gpu) | changes)
        return float(profile.num_instructions * result["cycles"] / result["warp_instructions"])

    full = cycles(whole)
    active = demands.memory_instructions > 0
    return {
        "the model": full,
        "waves of equal warps instead of phases": cycles(
            _core.ModelInput(profile._core, waves, None, demands)
        ),
        "no drain of the last warps (oldest first)": cycles(whole, scheduler="lrr"),
        "demands of the representative warp instead of all": cycles(
            _core.ModelInput(profile._core, waves, phases, None)
        ),
        "no bound by MSHRs": cycles(whole, l1_mshrs=1e9),
        "no contention for NoC, L2 and DRAM": cycles(
            whole,
            noc_bandwidth_gbs=1e9,
            noc_sm_bytes_per_cycle=0,
            dram_bandwidth_gbs=1e9,
            l2_requests_per_cycle=1e9,
        ),
        "no burst of first accesses": full - (burst(gpu, demands, phases) if active else 0),
    }


def ablation_table() -> str:
    """Return mean and worst errors with each ingredient left out."""
    gpu = ws.gpu("pascal-mdm")
    rows = []
    for name in ws.workloads.names():
        app = ws.workloads.load(name, "small")
        simulated = sum(result.cycles for result in ws.simulate(app, gpu))
        for order in ("greedy", "round_robin"):
            memory = ws.simulate_caches(app, gpu, access_order=order)
            found: dict[str, float] = {}
            for kernel, of_kernel in zip(app.kernels, memory, strict=True):
                for what, cycles in ablations(kernel, gpu, of_kernel).items():
                    found[what] = found.get(what, 0) + cycles
            if order == "round_robin":
                found = {"caches with warps in turn": found["the model"]}
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
                "of the cycles": f"{100 * part['error'].abs().mean():.1f} %",
                "worst, cycles": f"{100 * worst['error']:+.0f} % ({worst['app']})",
            }
        )
    return f"{pages.markdown(pd.DataFrame(lines))}\n\nMeasured on: {pages.machine()}."


def accelsim_table(reference: pd.DataFrame, app: ws.App) -> str:
    """Return the models' errors of Accel-Sim's cycles."""
    gpu = described_gpu()
    lines = []
    for order in ("round_robin", "greedy"):
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
            line = {"caches in order": order, f"mean error, {len(frame)} rows": what}
            lines.append(line | {m: f"{100 * values[m].abs().mean():.0f} %" for m in COMPARED})
    return pages.markdown(pd.DataFrame(lines))


def main() -> None:
    """Measure what was asked for and print or write the tables."""
    parser = pages.parser(__doc__, PAGE)
    parser.add_argument("--accelsim", nargs=2, type=Path, metavar=("REFERENCE", "TRACES"))
    arguments = parser.parse_args()
    texts = {"ablations": ablation_table()}
    if arguments.accelsim:
        reference, traces = arguments.accelsim
        table = pd.read_csv(reference, keep_default_na=False)
        texts["accelsim"] = accelsim_table(table, ws.load(traces / "rodinia-bfs-graph4096"))
    print("\n\n".join(texts.values()))
    if arguments.write:
        for name, text in texts.items():
            pages.write_between_marks(PAGE, name, text)


if __name__ == "__main__":
    main()
