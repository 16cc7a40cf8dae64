"""Plain definition of the warpstack model: phases by small steps of time, rates by bisection."""

import math

CAUSES = ("dep", "l1", "l2", "dram")


def play(blocks, num_blocks, issue_rate, num_sms, blocks_per_sm, oldest_first=True):
    """Play a launch; blocks: [[(instructions, cycles alone)]] of the traced ones.

    Returns {(level of active SMs, level of warps): [instructions, warp cycles, warps, active SMs]}.
    """
    waiting = [[list(warp) for warp in blocks[b % len(blocks)]] for b in range(num_blocks)]
    waiting = [block for block in waiting if block]
    sms = [[] for _ in range(num_sms)]  # resident blocks: [[instructions left, alone rate, done]]

    def launch(sm):
        if waiting:
            sm.append([[n, n / cycles] for n, cycles in waiting.pop(0)])

    for _ in range(blocks_per_sm):
        for sm in sms:
            launch(sm)
    sums = {}
    while any(sms):
        active = sum(bool(sm) for sm in sms)
        rates = []
        for sm in sms:
            slots, of_sm = issue_rate, []
            wanted = sum(warp[1] for block in sm for warp in block)
            for block in sm:
                for _, alone in block:
                    share = min(alone, slots) if oldest_first else alone * min(slots / wanted, 1)
                    slots -= share if oldest_first else 0
                    of_sm.append(0.0 if share < 1e-9 * alone else share)
            rates.append(of_sm)
        # All SMs go on to the time at which the next warp anywhere is done.
        step = min(
            warp[0] / rate
            for sm, of_sm in zip(sms, rates, strict=True)
            for warp, rate in zip([w for block in sm for w in block], of_sm, strict=True)
            if rate > 0
        )
        for sm, of_sm in zip(sms, rates, strict=True):
            warps = [warp for block in sm for warp in block]
            if not warps:
                continue
            key = (round_half_up(2 * math.log2(active)), round_half_up(4 * math.log2(len(warps))))
            entry = sums.setdefault(key, [0, 0, 0, 0, 0])
            for warp, rate in zip(warps, of_sm, strict=True):
                done = min(rate * step, warp[0])
                warp[0] -= done
                entry[0] += done
                entry[1] += done / warp[1]
            entry[2] += step * len(warps)
            entry[3] += step * active
            entry[4] += step
        for sm in sms:
            for block in list(sm):
                block[:] = [warp for warp in block if warp[0] > 1e-9 * max(warp[0], 1)]
                if not block:
                    sm.remove(block)
                    launch(sm)
    return {
        key: [n, cycles, warps / time, active / time]
        for key, (n, cycles, warps, active, time) in sorted(sums.items())
    }


def round_half_up(value):
    """Round halves away from zero, as C does."""
    return math.floor(value + 0.5)


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
    for _ in range(200):
        middle = (low + high) / 2
        if middle * time(middle) > customers:
            high = middle
        else:
            low = middle
    return low


def predict(phases, first, demands, stall_shares, gpu):
    """Return (cycles, IPC, stack per instruction of an SM).

    phases: [(instructions, warp cycles, warps, active SMs)]; first: warps per SM and active SMs at the
    start; demands: a dictionary per instruction; stall_shares: of the stall cycles by cause; gpu:
    the parameters by name.
    """
    noc = gpu["clock_ghz"] / gpu["noc_bandwidth_gbs"]
    dram = gpu["clock_ghz"] / gpu["dram_bandwidth_gbs"]
    issue = 1 / gpu["issue_width"]
    shown = {"lsu": "l1", "send": "noc", "receive": "noc", "request": "noc", "reply": "noc"}
    shown |= {"l2": "l2", "dram": "queue"}
    total, cycles, stack = 0, 0, dict.fromkeys(("base", *CAUSES, "mshr", "noc", "queue"), 0.0)
    for n, warp_cycles, warps, sms in phases:
        warps, sms = max(warps, 1), max(sms, 1)
        think = max(warp_cycles / n - issue, 0)
        d = demands
        control = d["read_misses"] * gpu["noc_control_bytes"]
        shared = {
            "request": (d["write_bytes"] + control) * noc,
            "reply": d["read_bytes"] * noc,
            "l2": (d["read_misses"] + d["write_requests"]) / gpu["l2_requests_per_cycle"],
            "dram": d["dram_bytes"] * dram,
        }
        stations = {"issue": (issue, issue, warps)}
        stations["lsu"] = (d["lsu_cycles"], d["lsu_cycles"], warps)
        port = gpu["noc_sm_bytes_per_cycle"]
        if port:
            stations["send"] = ((d["write_bytes"] + control) / port,) * 2 + (warps,)
            stations["receive"] = (d["read_bytes"] / port,) * 2 + (warps,)
        stations |= {name: (s, s * sms, warps * sms) for name, s in shared.items()}
        free = network_rate(warps, think, list(stations.values()))
        rate, trip = free, {}
        if d["read_misses"] > 0:
            m = d["read_misses"]
            latency = gpu["l2_latency"] + d["dram_read_requests"] / m * gpu["dram_latency"]
            mshrs = gpu["l1_mshrs"]
            inner = {
                name: (stations[name][0] / m, stations[name][1] / m, mshrs)
                for name in ("send", "receive")
                if name in stations
            }
            inner |= {name: (s / m, s * sms / m, mshrs * sms) for name, s in shared.items()}
            misses = network_rate(gpu["l1_mshrs"], latency, list(inner.values()))
            rate = min(free, misses / m)
            trip = {"mshr": latency} | {k: stay(s, misses) for k, s in inner.items()}
        where = dict.fromkeys(stack, 0.0)
        for cause in CAUSES:
            where[cause] += think * stall_shares[cause]
        where["dep"] += think * max(1 - sum(stall_shares.values()), 0)
        time = think
        for name, station in stations.items():
            time += stay(station, rate)
            if name != "issue":
                where[shown[name]] += stay(station, rate)
        waiting = max(warps / rate - time, 0)
        if rate < free:
            for name, cycles_of in trip.items():
                share = waiting * cycles_of / sum(trip.values())
                where[shown.get(name, name)] += share
        else:
            busiest = max(stations, key=lambda name: stations[name][1])
            if busiest != "issue":
                where[shown[busiest]] += waiting
        hidden = max(1 / rate - issue, 0)
        stack["base"] += n * issue
        for part, value in where.items():
            if sum(where.values()) > 0:
                stack[part] += n * hidden * value / sum(where.values())
            elif part == "dep":
                stack[part] += n * hidden
        cycles += n / rate / sms
        total += n
    if demands["memory_instructions"]:
        warps, sms = first
        bursts = {"lsu": warps * demands["lsu_cycles"]}
        bursts |= {name: warps * stations[name][1] for name in ("send", "receive") if port}
        bursts |= {name: warps * sms * s for name, s in shared.items()}
        slowest = max(bursts, key=bursts.get)
        burst = bursts[slowest] / demands["memory_instructions"]
        cycles += burst
        stack[shown[slowest]] += burst * sms
    return cycles, total / cycles, {part: value / total for part, value in stack.items()}


def stay(station, rate):
    """Cycles of a visit, waiting included."""
    demand, cycles, competitors = station
    return demand / (1 - (1 - 1 / max(competitors, 1)) * cycles * rate) if demand else 0.0
