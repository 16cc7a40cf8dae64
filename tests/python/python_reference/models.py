"""Plain definition of the models, interval by interval, from the papers' equations."""

import math
from itertools import product

import numpy as np


def waves(num_blocks, warps_per_block, blocks_per_sm, num_sms):
    """Return [(warps on the fullest SM, SMs at work, blocks)], wave by wave."""
    result = []
    while num_blocks:
        blocks = min(num_blocks, blocks_per_sm * num_sms)
        sms = min(blocks, num_sms)
        result.append((math.ceil(blocks / sms) * warps_per_block, sms, blocks))
        num_blocks -= blocks
    return result


def warp_cycles(x, gpu):
    """Cycles of the representative warp alone."""
    return sum(
        n / gpu["issue_width"] + s
        for n, s in zip(x["instructions"], x["stall_cycles"], strict=True)
    )


def multithreaded(x, gpu, warps):
    """Sum of C_i (GPUMech, Eq. 9 to 16)."""
    rate = gpu["issue_width"]
    n, s = x["instructions"], x["stall_cycles"]
    probability = sum(n) / warp_cycles(x, gpu)
    total = 0
    for n_i, s_i in zip(n, s, strict=True):
        if gpu["scheduler"] == "lrr":
            nonoverlapped = min(probability, 1) * (warps - 1) * (n_i - 1)
        else:
            issued = sum(n) / len(n) * min(probability * s_i, 1) * (warps - 1)
            nonoverlapped = max(issued - s_i * rate, 0)
        total += n_i / rate + s_i + nonoverlapped / rate
    return total


def markov(x, gpu, warps):
    """The chain over the number of suspended warps, its transition matrix from first principles."""
    rate = gpu["issue_width"]
    n, s = sum(x["instructions"]), sum(x["stall_cycles"])
    if s == 0:
        return warps * n / rate
    suspend = min(len(x["instructions"]) / n, 1)
    wake = min(1 / (s / len(x["instructions"]) * rate), 1)
    matrix = np.zeros((warps + 1, warps + 1))
    for j in range(warps + 1):
        for woken in range(j + 1):
            chance = math.comb(j, woken) * wake**woken * (1 - wake) ** (j - woken)
            if j < warps:
                matrix[j, j - woken] += chance * (1 - suspend)
                matrix[j, j - woken + 1] += chance * suspend
            else:
                matrix[j, j - woken] += chance
    # Stationary distribution: pi (P - 1) = 0 with sum 1.
    equations = np.vstack([(matrix - np.eye(warps + 1)).T, np.ones(warps + 1)])
    pi = np.linalg.lstsq(equations, np.append(np.zeros(warps + 1), 1), rcond=None)[0]
    return warps * n / (rate * (1 - pi[warps]))


def md1(requests, cycles, service):
    """GPUMech, Eq. 21 to 23."""
    arrival = requests / cycles
    bound = service * requests / 2
    if arrival * service >= 1:
        return bound
    return min(arrival * service**2 / (2 * (1 - arrival * service)), bound)


def delays(model, x, i, gpu, warps, sms, mean_latency):
    """Return (mshr, noc, dram queue) cycles of interval i."""
    m, w = x["read_misses"][i], x["write_requests"][i]
    if m + w == 0 or model in ("naive_interval", "markov_chain", "mt"):
        return 0, 0, 0
    mshrs, ratio = gpu["l1_mshrs"], x["llc_miss_ratio"][i]
    cycles = x["instructions"][i] / gpu["issue_width"] + x["stall_cycles"][i]
    reads = min(m * warps, mshrs)
    writes = w * warps
    noc_service = gpu["clock_ghz"] / gpu["noc_bandwidth_gbs"]  # cycles per byte
    dram_service = gpu["clock_ghz"] / gpu["dram_bandwidth_gbs"]
    traffic = reads * (x["read_bytes"][i] or gpu["l1_sector_bytes"]) + writes * (
        x["write_bytes"][i] or gpu["l1_sector_bytes"]
    )
    divergent = m * warps > mshrs

    noc = dram = 0
    if model in ("gpumech", "gpumech_plus", "mdm_mshr"):
        missing_reads = x["dram_read_requests"][i] / m if m else 0
        to_dram = reads * missing_reads + x["dram_write_requests"][i] * warps
        dram = md1(
            sms * to_dram, cycles, dram_service * (x["dram_bytes"][i] or gpu["l2_sector_bytes"])
        )
        if model != "gpumech":
            noc = md1(sms * (reads + writes), cycles, noc_service * traffic / (reads + writes))
    elif model in ("mdm", "mdm_queue", "mdm_cal2019"):
        noc = sms * traffic * noc_service
        dram = (
            sms
            * (reads + writes)
            * ratio
            * (x["dram_bytes"][i] or gpu["l2_sector_bytes"])
            * dram_service
        )
        saturated = noc > gpu["l2_latency"] + gpu["dram_latency"]
        if not (divergent and (saturated or model == "mdm_cal2019")):
            noc, dram = noc / 2, dram / 2

    memory = gpu["l2_latency"] + ratio * gpu["dram_latency"] + noc + dram  # S_Mem
    mshr = 0
    if model in ("mdm", "mdm_mshr", "mdm_cal2019"):
        mshr = (math.ceil(m * warps / mshrs) - 1) * memory if divergent else 0
    elif divergent:
        latency = {
            "mdm_queue": memory,
            "gpumech_plus": mean_latency + noc + dram,
        }.get(model, mean_latency)
        waits = [math.ceil(j / mshrs) for j in range(1, math.floor(m * warps) + 1)]
        mshr = latency * (sum(waits) / len(waits) - 1) * x["memory_instructions"][i]
    return mshr, noc, dram


def mwp_cwp(x, gpu, warps, sms, mean_latency):
    """Return {part: cycles} of a wave: Hong and Kim's equations over L1 misses."""
    f, r, n = gpu["clock_ghz"], gpu["issue_width"], sum(x["instructions"])
    comp = n / r
    loads, all_requests, noc_bytes, dram_bytes = [], 0, 0, 0
    for i in range(len(x["instructions"])):
        m, w = x["read_misses"][i], x["write_requests"][i]
        all_requests += m + w
        noc_bytes += m * (x["read_bytes"][i] or gpu["l1_sector_bytes"])
        noc_bytes += w * (x["write_bytes"][i] or gpu["l1_sector_bytes"])
        dram_bytes += (x["dram_read_requests"][i] + x["dram_write_requests"][i]) * (
            x["dram_bytes"][i] or gpu["l2_sector_bytes"]
        )
        if m:
            loads.append((min(max(x["memory_instructions"][i], 1), m), m))
    departures = max(noc_bytes * f * sms / gpu["noc_bandwidth_gbs"], all_requests)
    transfers = dram_bytes * f * sms / gpu["dram_bandwidth_gbs"]
    stack = {"base": warps * comp}
    if not loads:
        limiter = "noc" if departures >= transfers else "queue"
        stack[limiter] = max(warps * max(departures, transfers) - warps * comp, 0)
        return stack
    mem_insts = sum(k for k, _ in loads)
    each = departures / all_requests
    mem_l = sum(k * (mean_latency + (m / k - 1) * each) for k, m in loads) / mem_insts
    mem_cycles = mem_l * mem_insts
    independent = sum(max(k - 1, 0) for k, _ in loads)
    n_pw = max(warps * independent / (mem_insts - independent), warps)
    without_bandwidth = mem_l / (departures / mem_insts) if departures else math.inf
    peak = mem_l / (transfers / mem_insts) if transfers else math.inf
    cwp = min((mem_cycles + comp) / comp, warps)
    period = comp / max(mem_insts, 1)

    def cycles(mwp):
        if mwp >= warps and cwp >= warps:
            return mem_cycles * warps / mwp + comp * warps / mwp + period * (mwp - 1)
        if cwp >= mwp or comp > mem_cycles:
            return mem_cycles * warps / mwp + period * max(mwp - 1, 0)
        return mem_l + comp * warps

    mwp = min(without_bandwidth, peak, n_pw)
    exposed = max(cycles(mwp) - warps * comp, 0) if mwp else 0
    latency = min(max(cycles(n_pw) - warps * comp, 0), exposed)
    to_l2 = min(gpu["l2_latency"] / mean_latency, 1) if mean_latency else 0
    stack["l2"] = latency * to_l2
    stack["dram"] = latency * (1 - to_l2)
    stack["noc" if without_bandwidth <= peak else "queue"] = exposed - latency
    return stack


def predict(model, x, gpu, launch_waves):
    """Return cycles, instructions of the fullest SM, instructions of all SMs, and the CPI stack."""
    n, s = x["instructions"], x["stall_cycles"]
    misses = sum(x["read_misses"])
    to_dram = sum(x["dram_read_requests"])
    mean_latency = gpu["l2_latency"] + (to_dram / misses if misses else 0) * gpu["dram_latency"]
    cycles = on_sm = on_gpu = 0
    stack = dict.fromkeys(["base", "dep", "l1", "l2", "dram", "mshr", "noc", "queue"], 0)
    for warps, sms, total_warps in launch_waves:
        if model == "mwp_cwp":
            parts = mwp_cwp(x, gpu, warps, sms, mean_latency)
            for name, part in parts.items():
                stack[name] += part
            cycles += sum(parts.values())
            on_sm += warps * sum(n)
            on_gpu += total_warps * sum(n)
            continue
        if model == "naive_interval":
            unloaded = warp_cycles(x, gpu)
        elif model == "markov_chain":
            unloaded = markov(x, gpu, warps)
        else:
            unloaded = multithreaded(x, gpu, warps)
        lost = [delays(model, x, i, gpu, warps, sms, mean_latency) for i in range(len(n))]
        mshr, noc, queue = (sum(column) for column in zip(*lost, strict=True))
        issue = warps * sum(n) / gpu["issue_width"]
        wave = max(unloaded + mshr + noc + queue, issue)
        exposed = max(unloaded - issue, 0)
        stack["base"] += issue
        for cause, part in product(["dep", "l1", "l2", "dram"], [exposed]):
            stack[cause] += part * sum(x[f"stall_{cause}"]) / sum(s) if sum(s) else 0
        shown = wave - issue - exposed
        for name, part in (("mshr", mshr), ("noc", noc), ("queue", queue)):
            stack[name] += shown * part / (mshr + noc + queue) if mshr + noc + queue else 0
        cycles += wave
        on_sm += warps * sum(n)
        on_gpu += total_warps * sum(n)
    return cycles, on_sm, on_gpu, {name: part / on_sm for name, part in stack.items()}
