"""Plain definition of the interval algorithm (GPUMech, Section III-B, Eq. 4)."""


def run(instructions, issue_rate):
    """Yield (index, stall before it, producer index or None) of a warp's instructions.

    instructions: [(sources, destinations, latency, active)].
    """
    issue = 0.0
    written = {}  # register -> (done cycle, index of the producer)
    for k, (sources, destinations, latency, active) in enumerate(instructions):
        stall, producer = 0.0, None
        if k > 0:
            next_slot = issue + 1 / issue_rate
            issue = next_slot
            for reg in sources:
                # 1e-6 of a cycle is rounding, as of 1/3, and no stall.
                if reg in written and written[reg][0] + 1 > issue + (issue == next_slot) * 1e-6:
                    issue, producer = written[reg][0] + 1, written[reg][1]
            if producer is not None:
                stall = issue - next_slot
        yield k, stall, producer
        if active:
            for reg in destinations:
                written[reg] = (issue + latency, k)


def cycles(instructions, issue_rate):
    """Return the issue and stall cycles of the warp alone."""
    instructions = list(instructions)
    stalls = sum(stall for _, stall, _ in run(instructions, issue_rate))
    return len(instructions) / issue_rate + stalls


def store_cycles(instructions, awaited, issue_rate):
    """Return the cycles at its end in which the warp waits for the latencies of its stores.

    awaited: whether an instruction is a store.
    """
    stalled, done = 0.0, 0.0
    for k, stall, _ in run(instructions, issue_rate):
        stalled += stall
        *_, latency, active = instructions[k]
        if awaited[k] and active:
            done = max(done, k / issue_rate + stalled + latency)
    return max(done - cycles(instructions, issue_rate), 0)


def intervals(instructions, issue_rate, threshold=0.0):
    """Return [(indices of the instructions, [(stall, producer)])]: short stalls stay in the interval."""
    found, members, stalls = [], [], []
    for k, stall, producer in run(instructions, issue_rate):
        if producer is not None:
            stalls.append((stall, producer))
            if stall > threshold:
                found.append((members, stalls))
                members, stalls = [], []
        members.append(k)
    return [*found, (members, stalls)]
