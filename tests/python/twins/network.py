"""Plain definition of the closed network model: a launch block by block, rates by bisection."""

import itertools
import math

CAUSES = ("dep", "l1", "l2", "dram")


def play(blocks, num_blocks, num_sms, blocks_per_sm):
    """Play a launch; blocks: [[(instructions, cycles alone, reference cycles)]] of the traced ones.

    Returns {SM: {(warps, all warps): instructions of each warp}}, {SM: (instructions, cycles in
    which it drains)}, cycles per instruction alone, span, and the first warps of the fullest SM and of all.
    """
    warps = [warp for block in blocks for warp in block]
    issued = sum(n for n, _, _ in warps)
    scale = issued / sum(reference for _, _, reference in warps)
    resident, totals = [], {}
    free = [(0.0, slot, sm) for slot in range(blocks_per_sm) for sm in range(num_sms)]
    alone = [0.0] * len(free)
    for block in (blocks[b % len(blocks)] for b in range(num_blocks)):
        if not block:
            continue
        slot = min(free)
        free[free.index(slot)] = (slot[0] + max(w[2] for w in block), *slot[1:])
        alone[alone.index(min(alone))] += max(w[1] for w in block)
        resident += [(slot[0], slot[0] + reference, slot[2]) for _, _, reference in block]
        n, longest = totals.get(slot[2], (0, 0))
        totals[slot[2]] = (
            n + sum(w[0] for w in block),
            max(longest, max(w[1] for w in block)),
        )
    most = max(map(len, blocks)) * blocks_per_sm
    of_sm, of_all = levels(most), levels(most * num_sms)
    times = sorted({time for start, end, _ in resident for time in (start, end)})
    depth = {sm: {} for sm in totals}
    for now, later in itertools.pairwise(times):
        there = [sm for start, end, sm in resident if start <= now < end]
        for sm in set(there):
            for w, share in between(of_sm, there.count(sm)):
                for v, other_share in between(of_all, len(there)):
                    key = (w, max(w, v))
                    cycles = share * other_share * (later - now)
                    depth[sm][key] = depth[sm].get(key, 0) + cycles * scale
    first = [sm for start, _, sm in resident if start == 0]
    fullest = max(first.count(sm) for sm in first)
    drains = {}
    for sm, (n, longest) in totals.items():
        at_once = max(sum(s <= now < e and i == sm for s, e, i in resident) for now in times)
        drains[sm] = (n, longest / 2 * (1 - 1 / at_once))
    return (
        depth,
        drains,
        sum(w[1] for w in warps) / issued,
        max(alone),
        (fullest, len(first)),
    )


def levels(most):
    """Populations from the largest down, each half of the one before, and 1."""
    found = [most]
    while found[-1] / 2 > 1:
        found.append(found[-1] / 2)
    return found + ([1] if found[-1] > 1 else [])


def between(of_levels, count):
    """Return the levels beside a count with their shares of it."""
    above = min(level for level in of_levels if level >= count)
    if above == count:
        return [(above, 1)]
    below = max(level for level in of_levels if level < count)
    share = (count - below) / (above - below)
    return [(above, share), (below, 1 - share)]


def network_rate(customers, think, stations):
    """Solve the network by bisection; stations: [(demand, capacity cycles, competitors)]."""
    bound = min((1 / c for _, c, _ in stations if c > 0), default=math.inf)

    def time(rate):
        total = think
        for demand, cycles, competitors in stations:
            free = 1 - (1 - 1 / max(competitors, 1)) * cycles * rate
            if demand > 0:
                total += demand / free if free > 0 else math.inf
        return total

    if time(0) == 0:
        return bound
    low, high = 0.0, min(bound, customers / time(0))
    if high * time(high) <= customers:
        return high
    for _ in range(80):
        middle = (low + high) / 2
        if middle * time(middle) > customers:
            high = middle
        else:
            low = middle
    return low


def predict(sms, alone_cycles, span, first, demands, stall_shares, gpu):
    """Return (cycles, stack per instruction of the SM that ends last).

    sms: [({(warps, all warps): instructions of each warp}, instructions, cycles in which it drains)];
    alone_cycles: per instruction; first: warps of the fullest SM and of all at the start; demands: a
    dictionary per instruction; stall_shares: of the stall cycles by cause; gpu: parameters by name.
    """
    noc = gpu["clock_ghz"] / gpu["noc_bandwidth_gbs"]
    issue = 1 / gpu["issue_width"]
    shown = {"lsu": "l1", "send": "noc", "receive": "noc", "request": "noc", "reply": "noc"}
    shown |= {"l2": "l2", "dram": "queue"}
    think = max(alone_cycles - issue, 0)
    d, port = demands, gpu["noc_sm_bytes_per_cycle"]
    sent = d["write_bytes"] + d["read_misses"] * gpu["noc_control_bytes"]
    own = {"issue": issue, "lsu": d["lsu_cycles"]}
    if port:
        own |= {"send": sent / port, "receive": d["read_bytes"] / port}
    shared = {
        "request": sent * noc,
        "reply": d["read_bytes"] * noc,
        "l2": (d["read_misses"] + d["write_requests"]) / gpu["l2_requests_per_cycle"],
        "dram": d["dram_bytes"] * gpu["clock_ghz"] / gpu["dram_bandwidth_gbs"],
    }
    stalls = {cause: think * stall_shares[cause] for cause in CAUSES}
    stalls["dep"] += think * max(1 - sum(stall_shares.values()), 0)

    def solve(warps, all_warps):
        """Return (cycles per instruction of a warp, of these by cause what is not issue)."""
        ratio = all_warps / warps
        stations = {name: (s, s, warps) for name, s in own.items()}
        stations |= {name: (s, s * ratio, all_warps) for name, s in shared.items()}
        free = network_rate(warps, think, list(stations.values()))
        rate, trip = free, {}
        if d["read_misses"] > 0:
            m, mshrs = d["read_misses"], gpu["l1_mshrs"]
            latency = gpu["l2_latency"] + d["dram_read_requests"] / m * gpu["dram_latency"]
            inner = {
                name: (s / m, s / m, mshrs)
                for name, s in own.items()
                if name in ("send", "receive")
            }
            inner |= {name: (s / m, s * ratio / m, mshrs * ratio) for name, s in shared.items()}
            misses = network_rate(mshrs, latency, list(inner.values()))
            rate = min(free, misses / m)
            trip = {"mshr": latency} | {k: stay(s, misses) for k, s in inner.items()}
        where = dict.fromkeys((*CAUSES, "mshr", "noc", "queue"), 0.0) | stalls
        for name, station in stations.items():
            if name != "issue":
                where[shown[name]] += stay(station, rate)
        time = think + sum(stay(station, rate) for station in stations.values())
        waiting = max(warps / rate - time, 0)
        if rate < free * (1 - 1e-9):
            for name, cycles_of in trip.items():
                where[shown.get(name, name)] += waiting * cycles_of / sum(trip.values())
        else:
            busiest = max(stations, key=lambda name: stations[name][1])
            if busiest != "issue":
                where[shown[busiest]] += waiting
        return warps / rate, where

    solved = {key: solve(*key) for sm in sms for key in sm[0]}
    times = [sum(n * solved[key][0] for key, n in sm[0].items()) for sm in sms]
    last = times.index(max(times))
    cycles = max(times[last], span)
    if gpu["scheduler"] == "gto":
        cycles = max(cycles, *(n * issue + drain for _, n, drain in sms), 0)
    stack = dict.fromkeys(("base", *CAUSES, "mshr", "noc", "queue"), 0.0)

    def divide(value, where):
        for part, share in where.items():
            if sum(where.values()) > 0:
                stack[part] += value * share / sum(where.values())
            elif part == "dep":
                stack[part] += value

    instructions = 0
    for (warps, all_warps), depth in sms[last][0].items():
        time, where = solved[warps, all_warps]
        stack["base"] += depth * warps * issue
        divide(depth * max(time - warps * issue, 0), where)
        instructions += depth * warps
    divide(cycles - times[last], stalls)
    if d["memory_instructions"]:
        bursts = {name: first[0] * s for name, s in own.items() if name != "issue"}
        bursts |= {name: first[1] * s for name, s in shared.items()}
        slowest = max(bursts, key=bursts.get)
        burst = bursts[slowest] / d["memory_instructions"]
        cycles += burst
        stack[shown[slowest]] += burst
    return cycles, {part: value / instructions for part, value in stack.items()}


def stay(station, rate):
    """Cycles of a visit, waiting included."""
    demand, cycles, competitors = station
    return demand / (1 - (1 - 1 / max(competitors, 1)) * cycles * rate) if demand else 0.0
