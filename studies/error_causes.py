#!/usr/bin/env python3
"""Find out by ablation why models and simulator disagree.

    python studies/error_causes.py            # print the tables
    python studies/error_causes.py --write    # also write them into docs/data/validation-models

A resource is made so large that nobody waits for it, in the simulated GPU and in the models' GPU, or a
trace is changed so that all warps do the same, or every access stays in one line. Where the error goes
away, what was taken away was its cause.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pages
import pandas as pd

import warpstack as ws
from warpstack.interval.profile import IntervalProfile, representative_warp, warp_groups
from warpstack.memory.caches import MemorySystem

PAGE = pages.DOCS / "quality" / "validation-models.md"
PLENTY = 10**6
MODELS = ("gpumech", "mdm")
#: With the ports at its ends: of an SM, and of a slice, which takes a packet per cycle then.
NO_NOC = {
    "noc_bandwidth_gbs": PLENTY,
    "noc_sm_bytes_per_cycle": 0,
    "l2_slice_request_cycles": 1,
    "l2_slice_bytes_per_cycle": 0,
}
#: With its banks, whose commands take their time at any bandwidth.
NO_DRAM = {"dram_bandwidth_gbs": PLENTY, "dram_row_bytes": 0}
#: With the places of L1, which lines under way keep.
NO_MSHRS = {"l1_mshrs": 65536, "l1_mshr_targets": 65536, "lines_under_way": "replaceable"}
NO_QUEUES = {
    "l1_miss_queue_entries": 65536,
    "l2_queue_entries": 65536,
    "l2_mshrs": 65536,
    "l2_mshr_targets": 65536,
    "dram_queue_entries": 65536,
    "atomic_requests": "per_line",
}
#: The resources that are taken away.
ABLATIONS: dict[str, dict[str, Any]] = {
    "none": {},
    "greedy warps": {"scheduler": "lrr"},
    "NoC": NO_NOC,
    "DRAM": NO_DRAM,
    "NoC, DRAM": {**NO_NOC, **NO_DRAM},
    "MSHRs": NO_MSHRS,
    "all contention": {**NO_NOC, **NO_DRAM, **NO_MSHRS, **NO_QUEUES},
}
#: The last one, with the trace of `equal_warps`, of `coalesced`, and of both.
CHANGED = ("and inequality", "and divergence", "and both")
#: A global memory instruction of a trace: up to the operands, lane mask, width and first address.
ACCESS = re.compile(
    r"^(\w+ \w+ (\w+) .* (?:LDG|STG|LD|ST|ATOMG|ATOM|RED)[. ].*?) (\d+) [012] (0x[0-9a-f]+).*$",
    re.MULTILINE,
)
#: Counters of the traffic that are compared.
TRAFFIC = {"reads of L2": "l2_read_requests", "reads of DRAM": "dram_read_sectors"}
#: Arithmetic and L1 hits of `pascal-mdm` take 25 cycles alike; GPUMech's Eq. 4 adds one.
LATENCY = 24.0


def coalesced(app: ws.App, folder: Path) -> ws.App:
    """Return an application whose lanes all access the first one's address in global memory."""
    ws.save(app, folder, format="accelsim")

    def one_address(match: re.Match[str]) -> str:
        lanes = int(match[2], 16).bit_count()
        return f"{match[1]} {match[3]} 0{lanes * (' ' + match[4])}"

    for kernel in app.kernels:
        path = folder / f"kernel-{kernel.launch_id}.traceg"
        path.write_text(ACCESS.sub(one_address, path.read_text()))
    return ws.load(folder)


def equal_warps(app: ws.App, folder: Path) -> ws.App:
    """Return an application in which every warp of a kernel does what the representative one does."""
    ws.save(app, folder, format="accelsim")
    for kernel in app.kernels:
        path = folder / f"kernel-{kernel.launch_id}.traceg"
        text = path.read_text()
        block, warp = representative_warp(kernel)
        head, *blocks = text.split("#BEGIN_TB")
        parts = blocks[block].split("warp = ")[1 + warp]
        # The text after the number of the warp, up to the end of the block.
        copied = parts.split("\n", 1)[1].split("#END_TB")[0].rstrip("\n")
        changed = [head]
        for one in blocks:
            start, *warps = one.partition("#END_TB")[0].split("warp = ")
            numbers = [w.split("\n", 1)[0] for w in warps]
            body = "\n\n".join(f"warp = {n}\n{copied}" for n in numbers)
            changed.append(f"#BEGIN_TB{start}{body}\n\n#END_TB\n\n")
        path.write_text("".join(changed))
    return ws.load(folder)


def bounds(kernel: ws.KernelTrace, result: ws.timing.SimulationResult) -> dict[str, float]:
    """Return the cycles that a kernel needs of each resource if it is never idle."""
    gpu, totals = result.gpu, result.totals
    lines = gpu.l2_line_bytes
    dram_bytes = 32 * (totals["dram_read_sectors"] + totals["dram_write_sectors"])
    latency = result.misses * gpu.l2_latency + dram_bytes / lines * gpu.dram_latency
    longest = warp_groups(kernel, np.full(len(kernel.instructions), LATENCY))["cycles"].max()
    to_l1 = totals["l1_read_requests"] + totals["l1_write_requests"]
    return {
        "issue": kernel.num_instructions / gpu.num_sms / gpu.issue_width,
        "longest warp": float(longest),
        "L1 port": to_l1 / gpu.num_sms,
        "MSHRs": latency / gpu.l1_mshrs / gpu.num_sms,
        "NoC requests": totals["noc_request_bytes"] * gpu.clock_ghz / gpu.noc_bandwidth_gbs,
        "NoC replies": totals["noc_reply_bytes"] * gpu.clock_ghz / gpu.noc_bandwidth_gbs,
        "DRAM": dram_bytes * gpu.clock_ghz / gpu.dram_bandwidth_gbs,
    }


def traffic_ratio(
    memory: ws.MemoryProfile, result: ws.timing.SimulationResult
) -> tuple[float, float]:
    """Return what the simulator reads from L2 and from DRAM, over what the models' caches read."""
    return tuple(
        result.totals[name] / memory.totals[name] if memory.totals[name] else 1.0
        for name in TRAFFIC.values()
    )


def delays(
    profile: IntervalProfile,
    wave: ws.interval.profile.Wave,
    gpu: ws.Gpu,
    overlapped: bool,
    ratio: tuple[float, float],
) -> float:
    """Return the contention delays of a wave: MDM's (Eq. 5 to 10), or a variant of them.

    Overlapped: in memory-divergent intervals the latencies of the batches, the NoC and DRAM run side by
    side, so that the slowest counts. `ratio` multiplies the reads from L2 and from DRAM.
    """
    x = profile.intervals
    size = float(gpu.l1_sector_bytes)
    read_bytes = x["read_bytes"].where(x["read_bytes"] > 0, size)
    write_bytes = x["write_bytes"].where(x["write_bytes"] > 0, size)
    dram_bytes = x["dram_bytes"].where(x["dram_bytes"] > 0, float(gpu.l2_sector_bytes))
    reads, writes = ratio[0] * x["read_misses"] * wave.warps, x["write_requests"] * wave.warps
    miss_ratio = np.minimum(x["llc_miss_ratio"] * (ratio[1] / ratio[0] if ratio[0] else 1), 1)
    in_flight = np.minimum(reads, gpu.l1_mshrs)
    noc_cycles = wave.active_sms * gpu.clock_ghz / gpu.noc_bandwidth_gbs
    dram_cycles = wave.active_sms * gpu.clock_ghz / gpu.dram_bandwidth_gbs
    noc = (in_flight * read_bytes + writes * write_bytes) * noc_cycles
    dram = (in_flight + writes) * miss_ratio * dram_bytes * dram_cycles
    divergent = reads > gpu.l1_mshrs
    batches = np.ceil(reads / gpu.l1_mshrs)
    factor = np.where(divergent & (noc > gpu.l2_latency + gpu.dram_latency), 1.0, 0.5)
    alone = gpu.l2_latency + miss_ratio * gpu.dram_latency
    queues = factor * (noc + dram)
    of_divergent = queues + (batches - 1) * (alone + queues)
    if overlapped:
        all_noc = (reads * read_bytes + writes * write_bytes) * noc_cycles
        all_dram = (reads + writes) * miss_ratio * dram_bytes * dram_cycles
        of_divergent = np.maximum((batches - 1) * alone, np.maximum(all_noc, all_dram))
    return float(np.where(divergent, of_divergent, queues).sum())


#: Whether delays overlap, and whether the traffic is the simulator's.
VARIANTS = {
    "mdm": (False, False),
    "delays overlap": (True, False),
    "simulated traffic": (False, True),
    "both": (True, True),
}


def variants_of_mdm(
    app: ws.App,
    gpu: ws.Gpu,
    results: list[ws.timing.SimulationResult],
    system: MemorySystem | None = None,
) -> dict[str, float]:
    """Return the application's cycles by variant of MDM, with the misses of a memory system."""
    system = system or MemorySystem(gpu)
    cycles = dict.fromkeys(VARIANTS, 0.0)
    for kernel, result in zip(app.kernels, results, strict=True):
        memory = system.run(kernel)
        simulated = traffic_ratio(memory, result)
        profile = ws.interval_profile(kernel, gpu, memory)
        per_warp = profile.intervals["instructions"].sum()
        waves = profile.waves(gpu)
        covered = sum(wave.count * wave.total_warps for wave in waves) * per_warp
        for variant, (overlapped, uses_simulated) in VARIANTS.items():
            ratio = simulated if uses_simulated else (1.0, 1.0)
            total = 0.0
            for wave in waves:
                alone = IntervalProfile(profile._core, (wave,))
                undisturbed = ws.models.evaluate(alone, gpu, "mt").cycles / wave.count
                total += wave.count * (undisturbed + delays(profile, wave, gpu, overlapped, ratio))
            cycles[variant] += total * kernel.num_instructions / covered
    return cycles


def measure(task: tuple[str, str]) -> dict[str, pd.DataFrame]:
    """Return what is to be known of a workload: a row for each of the tables."""
    name, size = task
    app = ws.workloads.load(name, size)
    kind = "MD" if ws.workloads.get(name).memory_divergent else "NMD"
    labels = {"application": name, "class": kind}
    rows = []
    of_bounds = pd.DataFrame()
    variants = {}
    memory = pd.DataFrame([one.totals for one in ws.simulate_caches(app, "pascal-mdm")])
    traffic = {}

    def compare(label: str, ablated: ws.App, gpu: ws.Gpu) -> list[ws.timing.SimulationResult]:
        results = ws.simulate(ablated, gpu)
        predicted = ws.predict(ablated, gpu, MODELS).groupby("model")["cycles"].sum()
        cycles = sum(result.cycles for result in results)
        busy = sum(result._core.sm_cycles for result in results) / cycles / gpu.num_sms
        errors = {model: cycles / predicted[model] - 1 for model in MODELS}
        rows.append({**labels, "without": label, "cycles": cycles, "busy": busy, **errors})
        return results

    for label, change in ABLATIONS.items():
        gpu = ws.gpu("pascal-mdm").replace(**change)
        results = compare(label, app, gpu)
        if label == "none":
            of_bounds = pd.DataFrame(
                [
                    bounds(kernel, result)
                    for kernel, result in zip(app.kernels, results, strict=True)
                ]
            )
            variants = variants_of_mdm(app, gpu, results)
        if label in ("none", "greedy warps"):
            for what, counter in TRAFFIC.items():
                count = sum(result.totals[counter] for result in results)
                traffic[f"{what}, {gpu.scheduler}"] = count / max(memory[counter].sum(), 1)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        one_line = coalesced(app, place / "coalesced")
        compare(CHANGED[0], equal_warps(app, place / "equal"), gpu)
        compare(CHANGED[1], one_line, gpu)
        compare(CHANGED[2], equal_warps(one_line, place / "both"), gpu)

    table = pd.DataFrame(rows)
    cycles = table["cycles"].iloc[0]
    sums = of_bounds.sum()
    sums["largest per launch"] = of_bounds.max(axis=1).sum()
    print(f"{name} done", file=sys.stderr)
    return {
        "ablations": table,
        "traffic": pd.DataFrame([{**labels, **traffic}]),
        "bounds": pd.DataFrame([{**labels, **(sums / cycles)}]),
        "variants": pd.DataFrame([{**labels, **{v: cycles / variants[v] - 1 for v in VARIANTS}}]),
    }


def percent(values: pd.DataFrame, sign: str = "+") -> pd.DataFrame:
    """Return the labels of a table and its numbers as text in percent."""
    return values.apply(
        lambda column: (
            column.map(lambda x: f"{100 * x:{sign}.0f} %") if column.dtype == float else column
        )
    )


def with_means(table: pd.DataFrame) -> pd.DataFrame:
    """Append the mean absolute errors of the classes."""
    rows = [table]
    for kind, part in table.groupby("class", sort=False):
        means = part.drop(columns=["application", "class"]).abs().mean()
        rows.append(
            pd.DataFrame([{"application": "mean of absolute values", "class": kind, **means}])
        )
    return pd.concat(rows, ignore_index=True)


def tables(measured: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return all tables by name.

    ``bounds``: cycles that each resource needs if it is never idle, over the simulated cycles.
    ``traffic``: simulated traffic over that of the models' caches, by scheduler of the simulator.
    ``cycles``: simulated cycles without something, over those of the baseline. ``errors-...``: errors
    of a model without it, in the simulator and in the model. ``variants``: errors of MDM with other
    delays in memory-divergent intervals.
    """
    ablations = measured["ablations"]
    order = [*ABLATIONS, *CHANGED]
    index = ["application", "class"]

    def wide(column: str) -> pd.DataFrame:
        return ablations.pivot_table(column, index, "without", sort=False)[order].reset_index()

    relative = wide("cycles")
    relative[order] = relative[order].div(relative["none"], axis=0)
    return {
        "bounds": percent(measured["bounds"], ""),
        "traffic": percent(measured["traffic"], ""),
        "cycles": percent(relative, ""),
        **{f"errors-{model}": percent(with_means(wide(model))) for model in MODELS},
        "variants": percent(with_means(measured["variants"])),
    }


def main() -> None:
    """Measure, print the tables and write them where asked to."""
    parser = pages.parser(__doc__, PAGE)
    pages.add_workloads(parser)
    arguments = parser.parse_args()
    names = arguments.only or ws.workloads.names()
    tasks = [(name, arguments.size) for name in names]
    results = pages.in_processes(measure, tasks, arguments.processes)
    measured = {
        key: pd.concat([one[key] for one in results]).sort_values(
            ["class", "application"], kind="stable", ignore_index=True
        )
        for key in results[0]
    }
    pages.publish(PAGE, tables(measured), arguments.write)


if __name__ == "__main__":
    main()
