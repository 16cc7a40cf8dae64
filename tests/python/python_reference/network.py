"""Plain definition of the closed network model: a launch block by block, rates by bisection."""

import itertools
import math

#: What the stalls of a warp alone are for, by detail of the stack.
CAUSES = (
    *("arithmetic", "l1_latency", "l2_latency", "dram_latency"),
    *("shared_memory", "bank_conflicts", "barriers"),
)
#: The components of stacks, with their details.
COMPONENTS = {
    "base": ["issue"],
    "dep": [
        "arithmetic",
        "units",
        "shared_memory",
        "bank_conflicts",
        "barriers",
        "instruction_fetch",
    ],
    "l1": ["l1_latency", "load_store_unit", "tags"],
    "l2": ["l2_latency"],
    "dram": ["dram_latency"],
    "mshr": ["mshrs", "places"],
    "noc": ["send_port", "receive_port", "network", "slices", "atomics"],
    "queue": ["dram_bandwidth", "dram_rows", "dram_turnarounds"],
}
DETAILS = [detail for details in COMPONENTS.values() for detail in details]

#: Levels of memory, and cycles of their round trips on the reference machine.
LEVELS = {"l1": 25, "l2": 120, "dram": 340}


def play(blocks, num_blocks, num_sms, blocks_per_sm):
    """Play a launch; blocks: [[(instructions, cycles alone, reference cycles, off_units)]] of the traced.

    Returns a dictionary: ``sms``, a list of ({phase: instructions of each warp}, instructions, cycles
    and instructions of a warp in which it drains, blocks of a place and their instructions) per SM;
    cycles per instruction ``alone``; ``span``; ``off_units``, by unit the mean of the warps that have its
    instructions; ``first``, the first warps of the fullest SM and of all, and ``at_start`` the shares of
    phases then (the fullest SM has no more warps); ``instructions`` of all. A phase is (warps of the SM,
    warps of all, SMs that have some).
    """
    warps = [warp for block in blocks for warp in block]
    issued = sum(n for n, *_ in warps)
    scale = issued / sum(reference for _, _, reference, _ in warps)
    off_units = {}
    for *_, off in warps:
        for unit, times in off.items():
            off_units.setdefault(unit, []).append(times)
    resident, totals = [], {}
    numbers = [b % len(blocks) for b in range(num_blocks) if blocks[b % len(blocks)]]
    launched = [blocks[number] for number in numbers]
    alone = [0.0] * (blocks_per_sm * num_sms)
    free, taken, first_blocks = {}, {}, {}
    places = assigned(launched, num_sms, blocks_per_sm)
    for number, block, (slot, sm) in zip(numbers, launched, places, strict=True):
        start = free.get((slot, sm), 0.0)
        if (slot, sm) not in free:
            first_blocks.setdefault(sm, []).append(number)
        free[slot, sm] = start + max(w[2] for w in block)
        taken[slot, sm] = taken.get((slot, sm), 0) + 1
        alone[alone.index(min(alone))] += max(w[1] for w in block)
        resident += [(start, start + reference, sm) for _, _, reference, _ in block]
        n, longest, most = totals.get(sm, (0, 0, 0))
        totals[sm] = (
            n + sum(w[0] for w in block),
            max(longest, max(w[1] for w in block)),
            max(most, max(w[0] for w in block)),
        )
    largest = max(map(len, blocks)) * blocks_per_sm
    times = sorted({time for start, end, _ in resident for time in (start, end)})
    counts = [[sm for start, end, sm in resident if start <= now < end] for now in times]
    # The largest populations of the launch are levels, too.
    of_sm = [*levels(largest), max(count.count(sm) for count in counts for sm in totals)]
    of_all = [*levels(largest * num_sms), max(map(len, counts))]
    of_busy = levels(min(num_sms, num_blocks))
    depth = {sm: {} for sm in totals}
    for now, later in itertools.pairwise(times):
        there = [sm for start, end, sm in resident if start <= now < end]
        for sm in set(there):
            for parts in itertools.product(
                between(of_sm, there.count(sm)),
                between(of_all, len(there)),
                between(of_busy, len(set(there))),
            ):
                phase = tuple(level for level, _ in parts)
                cycles = math.prod(share for _, share in parts) * (later - now)
                depth[sm][phase] = depth[sm].get(phase, 0) + cycles * scale
    first = [sm for start, _, sm in resident if start == 0]
    most_first = max(first.count(sm) for sm in first)
    sms = []
    for sm, (n, longest, most) in totals.items():
        at_once = max(sum(s <= now < e and i == sm for s, e, i in resident) for now in times)
        half = (1 - 1 / at_once) / 2
        of_places = [count for (_, here), count in taken.items() if here == sm]
        rounds = max(of_places)
        sms.append((depth[sm], n, longest * half, most * half, rounds, n / sum(of_places) * rounds))
    longest = sum(max(w[0] for w in block) for block in launched)
    return {
        "sms": sms,
        "alone": sum(w[1] for w in warps) / issued,
        "span": max(alone),
        "off_units": {
            unit: [len(each) / issued, *(sum(part) / len(each) for part in zip(*each, strict=True))]
            for unit, each in off_units.items()
        },
        "replacements": max(len(launched) - len(alone), 0) / longest,
        "first": (most_first, len(first)),
        "accessing": len(off_units.get("lsu", ())) / len(warps),
        "at_start": {
            tuple(level for level, _ in parts): math.prod(share for _, share in parts)
            for parts in itertools.product(
                [(between(of_sm, most_first)[0][0], 1)],
                between(of_all, len(first)),
                between(of_busy, len(set(first))),
            )
        },
        "instructions": sum(w[0] for block in launched for w in block),
        "first_blocks": first_blocks[max(totals, key=lambda sm: totals[sm][0])],
        "scale": scale,
    }


def keep_step(launch, blocks, one, together):
    """Put the times of warps that keep step into a launch: by warps, cycles of an instruction.

    one: cycles of the longest block with which the fullest SM starts, alone; together: those of all of them.
    """
    most = max(map(len, blocks))
    first = launch["first_blocks"]
    depth = max(w[2] for b in first for w in blocks[b]) * launch["scale"]
    launch["in_step"] = {}
    for warps in {phase[0] for depths, *_ in launch["sms"] for phase in depths}:
        there = min(max(warps / most, 1), len(first))
        share = (there - 1) / (len(first) - 1) if len(first) > 1 else 0
        launch["in_step"][warps] = ((1 - share) * one + share * together) / depth


def assigned(launched, num_sms, blocks_per_sm):
    """Return (slot, SM) of each block: the slot that is free first when blocks share issue slots.

    Of an SM's blocks the oldest has what it needs of one instruction per cycle, then the next.
    """
    now, found = 0, []
    # The warps of an SM: {slot: [cycles left alone, issue rate]} by age.
    running = [{} for _ in range(num_sms)]
    free = {(slot, sm) for slot in range(blocks_per_sm) for sm in range(num_sms)}

    def speeds(of_sm):
        left = 1.0
        for slot, (_, rate) in of_sm.items():
            speed = min(left / rate, 1)
            left = max(left - rate * speed, 0)
            yield slot, speed

    for block in launched:
        while not free:
            # Times in whole cycles; what is left after rounding is none.
            ends = [
                math.ceil(now + max(of_sm[slot][0], 0) / speed - 1e-6)
                for of_sm in running
                for slot, speed in speeds(of_sm)
                if speed > 0
            ]
            later = min(ends)
            for sm, of_sm in enumerate(running):
                for slot, speed in dict(speeds(of_sm)).items():
                    of_sm[slot][0] -= speed * (later - now)
                    if of_sm[slot][0] <= 1e-6 * speed:
                        free.add((slot, sm))
            for slot, sm in free:
                running[sm].pop(slot, None)
            now = later
        place = min(free)
        free.remove(place)
        slot, sm = place
        cycles = max(w[2] for w in block)
        running[sm][slot] = [cycles, sum(w[0] for w in block) / cycles]
        found.append(place)
    return found


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


def network_rate(customers, think, stations, lines=1):
    """Solve the network by bisection; stations: {name: (demand, capacity cycles, competitors)}.

    Of a load of ``lines`` lines all count where it takes longest, elsewhere one. Returns the root, and
    no more than the capacities allow.
    """
    bound = min((1 / c for _, c, *_ in stations.values() if c > 0), default=math.inf)

    def time(rate):
        visits = {name: stay(station, rate) for name, station in stations.items()}
        issuing = sum(visits.pop(name, 0) for name in ("issue", "tensor", "unit"))
        longest = max(visits.values(), default=0)
        if longest == math.inf:
            return math.inf
        return think + issuing + longest + (sum(visits.values()) - longest) / lines

    if time(0) == 0:
        return bound, bound
    low, high = 0.0, customers / time(0)
    if high * time(high) <= customers:
        return high, min(high, bound)
    for _ in range(80):
        middle = (low + high) / 2
        if middle * time(middle) > customers:
            high = middle
        else:
            low = middle
    return low, min(low, bound)


def stay(station, rate):
    """Cycles of a visit, waiting included."""
    demand, cycles, competitors, *early = station
    free = 1 - (1 - 1 / max(competitors, 1)) * cycles * rate
    if demand == 0:
        return 0.0
    # The customer that is being served is half done in the mean.
    return demand / 2 + demand / 2 / free - sum(early) if free > 0 else math.inf


def uncovered(stalls, share):
    """Return the parts by cause of what is left when others cover the first cycles of each stall.

    stalls: [{cause: cycles}]; share: of all stall cycles that is left, by bisection.
    """
    lengths = [sum(stall.values()) for stall in stalls]
    if not any(lengths):
        return dict.fromkeys(CAUSES, 0.0)
    low, high = 0.0, max(lengths)
    for _ in range(100):
        covered = (low + high) / 2
        if sum(max(length - covered, 0) for length in lengths) > share * sum(lengths):
            low = covered
        else:
            high = covered
    left = [max(length - low, 0) for length in lengths]
    return {
        cause: sum(
            stall[cause] / length * part
            for stall, length, part in zip(stalls, lengths, left, strict=True)
            if length
        )
        / sum(left)
        for cause in CAUSES
    }


#: Where waiting shows in the stack, but for what `shown` divides.
SHOWN = {
    "tensor": "units",
    "unit": "units",
    "send": "send_port",
    "receive": "receive_port",
    "request": "network",
    "reply": "network",
}
#: Latencies of the reference machine: L2, and what DRAM adds.
REFERENCE_L2, REFERENCE_DRAM = 120, 220


def services(d, gpu):
    """Return the cycles of an instruction at what an SM has for itself, and at what all share."""
    noc = gpu["clock_ghz"] / gpu["noc_bandwidth_gbs"]
    sent = d["write_bytes"] + d["read_misses"] * gpu["noc_control_bytes"]
    own = {"lsu": d["lsu_cycles"]}
    if port := gpu["noc_sm_bytes_per_cycle"]:
        own |= {"send": sent / port, "receive": d["read_bytes"] / port}
    at_slice = d["hottest_slice_turns"] / gpu["l2_requests_per_cycle"]
    if gpu["l2_bytes_per_cycle"] and d["slice_turns"]:
        filled = (d["dram_bytes"] - d["dram_write_bytes"]) * d["dram_imbalance"]
        answered = d["hottest_slice_turns"] * d["hit_bytes"] / d["slice_turns"]
        at_slice = max(at_slice, max(filled, answered) / gpu["l2_bytes_per_cycle"])
    at_dram = d["dram_bytes"] * gpu["clock_ghz"] / gpu["dram_bandwidth_gbs"]
    if d["dram_bytes"]:
        written = d["dram_write_bytes"]
        read = d["dram_bytes"] - written
        # Banks with a request each: so many requests until all of them go the other way, and back.
        between_turns = d["dram_bytes"] ** 2 / (read * written) if read * written else math.inf
        requests = d["dram_bytes"] / gpu["l2_sector_bytes"]
        at_dram += requests / between_turns * gpu["dram_turnaround_cycles"]
    at_dram *= d["dram_imbalance"]
    shared = {"request": sent * noc, "reply": d["read_bytes"] * noc}
    return own, shared | {"slice": at_slice, "dram": at_dram}


def turnarounds(d, gpu):
    """Return the cycles of DRAM, of an instruction, for its turns between reads and writes."""
    written = d["dram_write_bytes"]
    read = d["dram_bytes"] - written
    if not written * read:
        return 0
    requests = d["dram_bytes"] / gpu["l2_sector_bytes"]
    return requests * read * written / d["dram_bytes"] ** 2 * gpu["dram_turnaround_cycles"]


def shown(name, d, gpu):
    """Return the share of each detail in the time at a station."""
    if name == "lsu":
        parts = {
            "tags": d.get("tag_cycles", 0),
            "shared_memory": d.get("shared_cycles", 0),
            "bank_conflicts": d.get("conflict_cycles", 0),
        }
        all_, usual = d["lsu_cycles"], "load_store_unit"
    elif name == "slice":
        parts, all_, usual = {"atomics": d.get("atomic_turns", 0)}, d["slice_turns"], "slices"
    elif name == "dram":
        moving = d["dram_bytes"] * gpu["clock_ghz"] / gpu["dram_bandwidth_gbs"]
        turning = turnarounds(d, gpu)
        parts = {
            "dram_turnarounds": turning,
            "dram_rows": moving * (1 - gpu["dram_efficiency"]),
        }
        all_, usual = moving + turning, "dram_bandwidth"
    else:
        return {SHOWN[name]: 1}
    shares = {detail: part / all_ if all_ else 0 for detail, part in parts.items()}
    return shares | {usual: 1 - sum(shares.values())}


def busy_times(d, gpu):
    """Return the same of the capacity: together, slices serve what comes unevenly more slowly."""
    return services(
        d | {"hottest_slice_turns": max(d["hottest_slice_turns"], d["crowded_slice_turns"])}, gpu
    )


def awaited(d):
    """Return the demands without the writes whose warps go on."""
    kept = d["write_requests"] - d["posted_requests"]
    found = d | {"write_requests": kept, "write_bytes": d["write_bytes"] - d["posted_bytes"]}
    found["hit_bytes"] = min(d["hit_bytes"], d["read_bytes"] + found["write_bytes"])
    found |= {"dram_bytes": d["dram_bytes"] - d["dram_write_bytes"], "dram_write_bytes": 0}
    turns = d["slice_turns"]
    share = min((d["read_misses"] + kept) / turns, 1) if turns else 0
    return found | {name: d[name] * share for name in ("slice_turns", "hottest_slice_turns")}


def end_of_services(launch, d, gpu, places):
    """Return when the launch ends at the earliest, by what each resource has to serve.

    Somebody is the first to come, and who is served last goes on to its end. For what an SM has for
    itself the same holds of each block, between barriers, one block of a place after the other.
    """
    off = launch["off_units"]
    ends = [0]
    if "lsu" in off:
        _, before, after, for_stores, parts = off["lsu"]
        stored = min(for_stores, gpu["l2_latency"])
        after += stored
        own, shared = busy_times(d, gpu)
        own = own | {"lsu": own["lsu"] + places}
        ends += [before + launch["instructions"] * s + after for s in shared.values() if s]
        for _, n, _, _, rounds, of_rounds in launch["sms"]:
            for s in filter(None, own.values()):
                ends += [before + n * s + after, rounds * parts + of_rounds * s + stored]
    for name, interval in gpu["unit_intervals"].items():
        if interval > 1 and name in off:
            warps, before, after, for_stores, _ = off[name]
            for _, n, *_ in launch["sms"]:
                # All of the SM's, but for what the last one leaves behind.
                busy = max(n * d["unit_instructions"][name] / gpu["schedulers_per_sm"] - 1, 0)
                one_each = n * warps / gpu["schedulers_per_sm"]
                later = min(after + min(for_stores, gpu["l2_latency"]), one_each * interval)
                ends.append(before + busy * interval + later)
    return max(ends)


def first_burst(first, d, gpu, accessing=1):
    """Return (the busiest station, cycles of an instruction) when all warps make their first load at once.

    accessing: the share of warps that make one.

    All of them pass that station one after the other, and each the other stations alone.
    """
    warps, of_all = (count * accessing for count in first)
    if not d["loads"] or not warps:
        return None, 0
    no_writes = dict.fromkeys(("write_requests", "write_bytes", "dram_write_bytes"), 0)
    fetched = d["dram_bytes"] - d["dram_write_bytes"] if d["read_misses"] else 0
    loads = {"dram_bytes": fetched}
    loads["lsu_cycles"] = max(d["lsu_cycles"] - d["write_requests"], 0)
    turns = ("slice_turns", "hottest_slice_turns", "crowded_slice_turns")
    loads |= dict.fromkeys(turns, d["read_misses"])
    loads["hit_bytes"] = min(d["hit_bytes"], d["read_bytes"])
    own, shared = services(d | no_writes | loads, gpu)
    together = (min(d["warps_in_step"], max(first[0], 1)) + 1) / 2
    alone = {**own, **shared, "lsu": own["lsu"] * together}
    bursts = {name: warps * s for name, s in own.items()}
    bursts |= {name: of_all * s for name, s in shared.items()}
    cycles = {name: burst + sum(alone.values()) - alone[name] for name, burst in bursts.items()}
    busy = [name for name in cycles if bursts[name] > 0]
    slowest = max(busy, key=bursts.get, default=None)
    return slowest, max((cycles[name] for name in busy), default=0)


def at_units(d, gpu):
    """Return cycles of the busiest unit per warp instruction; one cycle is the issue slot."""
    cycles = [
        d["unit_instructions"].get(name, 0) * interval
        for name, interval in gpu["unit_intervals"].items()
        if interval > 1
    ]
    return max(cycles, default=0)


def one_after_another(launch, d, gpu, places):
    """Return the cycles of a launch if nothing happened at the same time as anything else."""
    own, shared = busy_times(d, gpu)
    most = max(
        sum(deep * max(phase[0], 1) for phase, deep in sm[0].items()) for sm in launch["sms"]
    )
    of_sm = sum(own.values()) + places + 1 / gpu["issue_width"]
    of_sm += (d["tensor_cycles"] + at_units(d, gpu)) / gpu["schedulers_per_sm"]
    held = d["read_misses"] - d["misses_past_l1"]
    if held > 0:
        beyond = d["dram_read_requests"] / d["read_misses"]
        of_sm += held * (gpu["l2_latency"] + beyond * gpu["dram_latency"]) / gpu["l1_mshrs"]
    rounds = max([1, *(sm[4] for sm in launch["sms"])])
    return (
        launch["span"]
        + (rounds - 1) * gpu["block_replacement_cycles"]
        + most * of_sm
        + launch["instructions"] * sum(shared.values())
    )


def predict(launch, demands, stalls, gpu, store_cycles=0.0):
    """Return (cycles, stack per instruction of the mean SM, the same by detail).

    launch: as from `play`; demands: a dictionary per instruction; stalls: of the representative warp,
    [{cause: cycles}]; gpu: parameters by name; store_cycles: per instruction, of those alone, waiting for
    stores.
    """
    d = demands
    own, shared = services(d, gpu)
    busy_with = busy_times(d, gpu)[1]
    holding = d["read_misses"] - d["misses_past_l1"]
    issue = 1 / gpu["issue_width"]
    schedulers = gpu["schedulers_per_sm"]
    think = max(launch["alone"] - schedulers * issue, 0)
    beside_it = launch.get("replacements", 0) * gpu["block_replacement_cycles"]
    # The launch waits for its last stores as the last block of each place would.
    deepest = max((sum(depth.values()) for depth, *_ in launch["sms"]), default=0)
    after_stores = min(launch.get("after_stores", 0), gpu["l2_latency"])
    at_the_end = after_stores / deepest if deepest else 0
    beside_it += at_the_end
    think += beside_it
    for_stores = min(store_cycles + at_the_end, think)
    places = d["place_wait_l2"] * gpu["l2_latency"] / REFERENCE_L2
    beyond = gpu["l2_latency"] + gpu["dram_latency"]
    places += d["place_wait_dram"] * beyond / (REFERENCE_L2 + REFERENCE_DRAM)
    of_places = places / (own["lsu"] + places) if places else 0

    first_share, later_share, fetch_cycles = d.get("code", (0, 0, 0))
    rounds = max([1, *(sm[4] for sm in launch["sms"])])
    fetched = (first_share + (rounds - 1) * later_share) / rounds

    def with_code(time):
        """Return cycles per instruction of a warp when some instructions wait for their code."""
        return (1 - fetched) * time + fetched * max(time, fetch_cycles)

    def alone(share, think=think):
        """Return the time alone by cause when others leave a share of it uncovered."""
        parts = uncovered(stalls, share)
        stalled = max(think - for_stores, 0)
        time = {cause: stalled * parts[cause] for cause in CAUSES}
        time["arithmetic"] += stalled * max(1 - sum(parts.values()), 0)
        time["l2_latency"] += for_stores
        return time

    def show(where, name, cycles):
        if name == "lsu":
            where["places"] += cycles * of_places
            cycles *= 1 - of_places
        for detail, share in shown(name, d, gpu).items():
            where[detail] += cycles * share

    def trips(busy):
        """Return misses per cycle of an SM whose MSHRs are all taken, a trip's queues and latency."""
        m, mshrs = holding, gpu["l1_mshrs"]
        beyond = d["dram_read_requests"] / d["read_misses"]
        latency = gpu["l2_latency"] + beyond * gpu["dram_latency"]
        inner = {
            name: (cycles / m, cycles / m, mshrs)
            for name, cycles in own.items()
            if name in ("send", "receive")
        }
        inner |= {
            n: (cycles / m, busy_with[n] * busy / m, mshrs * busy) for n, cycles in shared.items()
        }
        _, misses = network_rate(mshrs, latency, inner)
        return misses, {name: stay(station, misses) for name, station in inner.items()}, latency

    def solve(phase):
        """Return (cycles per instruction of a warp, the same without MSHRs and issue queue, by cause)."""
        warps, all_warps, busy = phase
        all_warps = max(warps, all_warps)
        stations = {name: (s, s, warps) for name, s in own.items()}
        # A scheduler has its part of the warps and of the issue slots.
        stations["issue"] = (schedulers * issue, issue, max(warps / schedulers, 1))
        # Warps of a block come together: a group waits for whole groups, and a warp of it for half of
        # the others on the mean.
        group = min(d["warps_in_step"], max(warps, 1))
        together = max(group / schedulers, 1)
        unit, tensor = own["lsu"], d["tensor_cycles"]
        stations["lsu"] = (
            unit * group + places,
            unit + places,
            warps / group,
            unit * (group - 1) / 2,
        )
        # Each scheduler has its own tensor cores.
        stations["tensor"] = (
            tensor * together,
            tensor / schedulers,
            max(warps / schedulers / together, 1),
            tensor * (together - 1) / 2
            + d["spaced_tensor_cycles"] / max(warps / (together * schedulers), 1),
        )
        # An instruction goes on when it has issued, and the unit takes the next one later.
        at_unit = at_units(d, gpu)
        stations["unit"] = (at_unit, at_unit / schedulers, max(warps / schedulers, 1), at_unit)
        ratio = all_warps / warps
        stations |= {name: (s, busy_with[name] * ratio, all_warps) for name, s in shared.items()}
        # Warps do not wait for their stores.
        for part in services(awaited(d), gpu):
            for name in part.keys() - {"lsu"}:
                demand, *others = stations[name]
                stations[name] = (min(demand, part[name]), *others)
        in_step = launch.get("in_step", {}).get(warps, 0)
        own_time = think
        if in_step:
            # What warps wait for at the units of their SM is in the time that was played.
            own_time = in_step + beside_it
            for name in ("issue", "tensor", "unit", "lsu"):
                stations[name] = (0, *stations[name][1:3])
        root, free = network_rate(warps, own_time, stations, d["missing_lines"])
        own_time = max(own_time, for_stores)
        rate, queues = free, {}
        if holding > 0:
            misses, queues, latency = trips(busy)
            # No longer than all that the SMs share takes to serve everybody, and then alone.
            everybody = max(s * ratio for s in busy_with.values())
            then_alone = holding / trips(1)[0]
            rate = min(free, max(misses / holding, 1 / (everybody + then_alone)))
        where = dict.fromkeys(DETAILS, 0.0)
        visits = {name: stay(station, rate) for name, station in stations.items()}
        issuing = visits.pop("issue")
        where["units"] += visits.pop("tensor") + visits.pop("unit")
        longest = max(visits, key=visits.get)
        for name, cycles in visits.items():
            show(where, name, cycles / (1 if name == longest else d["missing_lines"]))
        passing = min(rate * d["lsu_cycles"], 1)

        def wait_for_mshr(cycles):
            """Others pass L1 meanwhile, at times."""
            where["load_store_unit"] += cycles * passing
            where["mshrs"] += cycles * (1 - passing)

        rest = max(warps / rate - own_time - sum(where.values()) - issuing, 0)
        if rate < free * (1 - 1e-9):
            if not sum(queues.values()):
                wait_for_mshr(rest)
            for name, cycles in queues.items():
                show(where, name, rest * cycles / (sum(queues.values()) or 1))
        else:
            busiest = max(stations, key=lambda name: stations[name][1])
            if busiest != "issue":
                show(where, busiest, rest)
        if holding > 0:
            # No more is on its way than there are MSHRs.
            held = gpu["l1_mshrs"] / holding / rate
            most = d["missing_loads"] * max(held - latency, 0)
            queued = COMPONENTS["noc"] + COMPONENTS["queue"]
            waiting = sum(where[name] for name in queued)
            if waiting > most:
                wait_for_mshr(waiting - most)
                where |= {name: where[name] * most / waiting for name in queued}
        lost, all_time = warps / rate - warps * issue, own_time + sum(where.values())
        for cause, cycles in alone(max(lost, 0) / all_time if all_time else 0, own_time).items():
            where[cause] += cycles
        paced = warps / root - stay(stations["issue"], root) + schedulers * issue * (not in_step)
        return warps / rate, paced, where

    sms = launch["sms"]
    solved = {phase: solve(phase) for sm in sms for phase in sm[0]}
    share = launch.get("accessing", 1)
    slowest, first_access = first_burst(launch["first"], d, gpu, share)
    to_issue = launch["first"][0] * issue
    beside = max(think + schedulers * issue, to_issue) + to_issue * d["loads"]
    works = []  # of each SM: cycles, by how much the first access makes them longer, and of issue
    for depth, *_ in sms:
        longer = 0
        for phase, deep in depth.items():
            if first_access:
                first = min(launch["at_start"].get(phase, 0) / d["loads"], deep)
                longer += first * max(first_access + beside - with_code(solved[phase][0]), 0)
        work = sum(deep * with_code(solved[phase][0]) for phase, deep in depth.items())
        issued = sum(deep * phase[0] * issue for phase, deep in depth.items())
        works.append((work, longer, issued))
    at_burst = first_access * min(1 / d["loads"], deepest) if first_access else 0
    in_phases, of_burst, issued = max(((w + longer, longer, i) for w, longer, i in works))
    latest = one_after_another(launch, d, gpu, places) + after_stores
    latest += deepest * fetched * fetch_cycles
    shorter = 1
    if "in_step" in launch:
        latest = math.inf
    if in_phases > latest:
        shorter = max(latest - issued, 0) / (in_phases - issued)
    in_phases = min(in_phases, latest)
    depths = {p: sum(sm[0].get(p, 0) for sm in sms) / len(sms) for p in solved}
    served = end_of_services(launch, d, gpu, places)
    cycles = max(in_phases, launch["span"] + at_burst + after_stores, served)
    if gpu["scheduler"] == "gto":
        pace = sum(share * with_code(solved[p][1]) for p, share in launch["at_start"].items())
        for (_, n, alone_, most, *_), (work, longer, _) in zip(sms, works, strict=True):
            drain = max(alone_ + after_stores, min(most * pace, work))
            drained = n * issue + min(drain + at_burst, max(drain, work + longer))
            cycles = max(cycles, min(drained, latest + at_burst))
    stack = dict.fromkeys(DETAILS, 0.0)

    def divide(value, where):
        for part, share in where.items():
            if sum(where.values()) > 0:
                stack[part] += value * share / sum(where.values())
            elif part == "arithmetic":
                stack[part] += value

    instructions = 0
    for phase, (time, _, where) in solved.items():
        depth = depths[phase]
        stack["issue"] += depth * phase[0] * issue
        divide(depth * shorter * max(time - phase[0] * issue, 0), where)
        stack["instruction_fetch"] += depth * (with_code(time) - time) * shorter
        instructions += depth * phase[0]
    divide(cycles - in_phases, alone(1))
    if port := gpu["noc_sm_bytes_per_cycle"]:
        cycles = max(cycles, launch["instructions"] * d["most_read_bytes"] / port)
    if first_access:
        # No load waits for a place yet.
        for detail, share in shown(slowest, d, gpu).items():
            stack[detail] += of_burst * shorter * share
    found = {detail: value / instructions for detail, value in stack.items()}
    parts = {part: sum(found[name] for name in names) for part, names in COMPONENTS.items()}
    return cycles, parts, found
