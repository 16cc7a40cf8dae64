"""Plain definition of the blocks of an SM that are played alone: instruction by instruction."""

import itertools

from python_reference import barriers, phases


def play(blocks, table, latencies, cycles, unit_of_row, machine):
    """Return the cycles until the last warp has ended.

    blocks: [[(row, active, whether it accesses memory) of each instruction] of each warp]. table: rows as
    dictionaries. latencies: (when a warp comes to a row, when it goes back) by row. cycles, unit_of_row:
    what a row keeps busy, and how long. machine: ``schedulers``, ``interval`` between two of a scheduler's
    instructions, ``queue`` of the load-store unit, ``scheduler``, ``stops_for_atomics``, ``awaits_stores``.
    """
    warps = []
    for b, block in enumerate(blocks):
        warps += [
            {"block": b, "rows": rows, "done": [], "ready": 0.0, "written": {}, "furthest": -1}
            for rows in block
            if rows
        ]
    for number, warp in enumerate(warps):
        warp |= {"scheduler": number % machine["schedulers"], "passed": {}, "reads": []}
    meetings = [barriers.Block() for _ in blocks]
    completions = [{} for _ in blocks]  # by mbarrier, the times
    waiting = [[] for _ in blocks]  # at mbarriers
    stopped = [[] for _ in blocks]  # (warp, barrier)
    unfinished = [sum(warp["block"] == b for warp in warps) for b in range(len(blocks))]
    free = {}  # by scheduler, by (scheduler, unit)
    left = [0.0] * machine["queue"]  # when instructions left the queue of the load-store unit
    accepted = -1.0  # when it took the last one
    last = {}  # by scheduler, who issued last
    ready, end = {}, 0.0  # {number of a warp: time of its next instruction}

    def look_at(number, forced=False):
        warp = warps[number]
        row, active, _ = warp["rows"][len(warp["done"])]
        step = phases.step_of(table[row]["opcode"])
        time = max(warp["ready"], waits_for(warp, table, row))
        if step is not None and step[1] is not None:
            needed = warp["passed"].get(step[0], 0) + step[1]
            made = sorted(completions[warp["block"]].get(step[0], ()))
            if active and not forced and len(made) < needed:
                waiting[warp["block"]].append(number)
                return
            time = max([time, *made[:needed][-1:]])
        ready[number] = time

    def go_on(block, barrier, time):
        here = [number for number, at in stopped[block] if at == barrier]
        stopped[block][:] = [one for one in stopped[block] if one[1] != barrier]
        for number in here:
            warps[number]["ready"] = max(warps[number]["ready"], time)
            look_at(number)

    def possible(number):
        warp = warps[number]
        row, _, is_access = warp["rows"][len(warp["done"])]
        of_unit = free.get((warp["scheduler"], unit_of_row[row]), 0.0)
        if is_access:
            of_unit = max(left[-machine["queue"]], accepted + 1)
        return max(ready[number], free.get(warp["scheduler"], 0.0), of_unit)

    def order(number):
        """Return the time, then in the order of schedulers and of their warps who comes first."""
        time = possible(number)
        scheduler = warps[number]["scheduler"]
        before = last.get(scheduler)
        turn = (scheduler - int(time)) % machine["schedulers"]
        if machine["scheduler"] == "lrr":
            after = before is not None and number <= before
            return time, turn, after, number
        is_greedy = machine["scheduler"] in ("gto", "gty") and number == before
        return time, turn, not is_greedy, -number if machine["scheduler"] == "gty" else number

    for number in range(len(warps)):
        look_at(number)
    while True:
        if not ready:
            # Somebody waits for what was not traced.
            block = next((b for b in range(len(blocks)) if waiting[b] or stopped[b]), None)
            if block is None:
                return end
            if waiting[block]:
                look_at(waiting[block].pop(0), forced=True)
            else:
                go_on(block, stopped[block][0][1], 0.0)
            continue
        number = min(ready, key=order)
        time = possible(number)
        del ready[number]
        warp = warps[number]
        last[warp["scheduler"]] = number
        row, active, is_access = warp["rows"][len(warp["done"])]
        instruction = table[row]
        latency = latencies[row][row <= warp["furthest"]]
        warp["ready"] = free[warp["scheduler"]] = time + machine["interval"]
        read_at = time
        if is_access:
            accepted = time
            begins = max(time, left[-1])
            left.append(begins + cycles[row])
            read_at = left[-1]
            latency += begins - time
            if instruction["space"] not in ("shared", "none"):
                warp["furthest"] = max(warp["furthest"], row)
        elif instruction["op_class"] == "memory":
            latency = 1.0
        else:
            free[warp["scheduler"], unit_of_row[row]] = time + cycles[row]
        done = time + latency
        warp["done"].append((row, active, time, done, read_at if is_access else None))
        end = max(end, warp["ready"])
        is_cached = instruction["space"] not in ("shared", "none")
        is_atomic = instruction["kind"] in ("atomic", "reduction") and is_cached
        is_store = (instruction["kind"] == "store" and is_cached) or is_atomic
        if active:
            for reg in instruction["destinations"]:
                warp["written"][reg] = done
            if is_atomic and machine["stops_for_atomics"]:
                warp["written"]["all"] = done
            has_result = instruction["destinations"] or instruction["kind"] == "async_copy"
            if has_result or (is_store and machine["awaits_stores"]):
                end = max(end, done)
        block = warp["block"]
        has_ended = len(warp["done"]) == len(warp["rows"])
        unfinished[block] -= has_ended
        step = phases.step_of(instruction["opcode"])
        if step is not None:
            if active and step[1] is not None:
                warp["passed"][step[0]] = warp["passed"].get(step[0], 0) + step[1]
            elif active:
                completions[block].setdefault(step[0], []).append(done + 1)
            woken, waiting[block] = waiting[block], []
            for one in woken:
                look_at(one)
        step = barriers.step_of(instruction["opcode"])
        if step is not None:
            meetings[block].arrive(step, exits=has_ended)
            if step[0] and not has_ended:
                stopped[block].append((number, step[1]))
        if step is not None or has_ended:
            for barrier in sorted(meetings[block].open(unfinished[block])):
                go_on(block, barrier, done + 1)
        if not has_ended and not (step is not None and step[0]):
            look_at(number)


def waits_for(warp, table, row):
    """Return when all is there that a warp waits for before a row, but for mbarriers."""
    written = warp["written"]
    if "stall" not in table[row]:
        registers = ("all", *table[row]["sources"], *table[row]["destinations"])
        return max([written[reg] + 1 for reg in registers if reg in written], default=0.0)
    fields = table[row]
    times = [written["all"] + 1] if "all" in written else []
    holds = [[] for _ in range(6)]
    copies = 0.0
    for number, active, time, done, read_at in warp["done"]:
        before = table[number]
        last = time + max(before["stall"], 2 if before["yield"] else 1)
        if read_at is not None and before["read_barrier"] < 6:
            holds[before["read_barrier"]].append(read_at)
        if not active:
            continue
        if before["kind"] == "async_copy":
            copies = max(copies, done)
        if before["write_barrier"] < 6 and before["kind"] not in ("store", "reduction"):
            is_group = before["opcode"].startswith("LDGDEPBAR")
            holds[before["write_barrier"]].append(copies if is_group else done)
    if warp["done"]:
        times.append(last)
    times += itertools.chain(
        *(held for b, held in enumerate(holds) if fields["wait_mask"] >> b & 1)
    )
    if fields["counted_barrier"] < 6:
        held = sorted(holds[fields["counted_barrier"]], reverse=True)
        times += held[fields["counted_most"] :][:1]
    return max(times, default=0.0)
