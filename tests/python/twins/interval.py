"""Plain definition of the interval algorithm (GPUMech, Section III-B, Eq. 4)."""


def run(instructions, issue_rate):
    """Yield (index, stall before it, producer index or None) of a warp's instructions.

    instructions: [(sources, destinations, latency, active)].
    """
    if isinstance(instructions, (Controlled, WithCopies)):
        yield from instructions.run(issue_rate)
        return
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


class Controlled(list):
    """A warp whose instructions say when they may issue: [(fields, latency, active)].

    fields: those of the row in the table of instructions.
    """

    def run(self, issue_rate):
        """Yield what `run` does; a stall that the instruction before asked for has no producer, -1."""
        issue = last = 0.0
        holds = [[] for _ in range(6)]  # (end, producer) of each barrier
        copies = (0.0, None)
        for k, (fields, latency, active) in enumerate(self):
            stall, producer = 0.0, None
            if k > 0:
                waits = [(issue + max(last["stall"], 2 if last["yield"] else 1), -1)]
                for barrier, held in enumerate(holds):
                    waits += held if fields["wait_mask"] >> barrier & 1 else []
                if fields["counted_barrier"] < 6:
                    held = sorted(holds[fields["counted_barrier"]], key=lambda hold: -hold[0])
                    waits += held[fields["counted_most"] :][:1]
                issue += 1 / issue_rate
                end, cause = max(waits, key=lambda wait: wait[0])
                if end > issue + 1e-6:
                    stall, producer = end - issue, cause
                    issue = end
            yield k, stall, producer
            last = fields
            kind, barrier = fields["kind"], fields["write_barrier"]
            if not active:
                continue
            if kind == "async_copy" and issue + latency > copies[0]:
                copies = (issue + latency, k)
            if barrier < 6 and kind not in ("store", "reduction"):
                is_group = fields["opcode"].startswith("LDGDEPBAR")
                holds[barrier].append(copies if is_group else (issue + latency, k))


class WithCopies(list):
    """A warp that waits for registers and for groups of copies: [(row, latency, active)].

    row: that in the table of instructions.
    """

    def run(self, issue_rate):
        """Yield what `run` does."""
        issue, written = 0.0, {}
        copies, groups = [], []  # (end, producer) of all copies; how many copies a group ends with
        for k, (row, latency, active) in enumerate(self):
            waits = [written[reg] for reg in row["sources"] if reg in written]
            if row["opcode"] == "cp.async.wait_all":
                waits += copies
            elif row["opcode"].startswith("cp.async.wait_group."):
                most = int(row["opcode"].rpartition(".")[2])
                waits += copies[: groups[-1 - most] if most < len(groups) else 0]
            stall, producer = 0.0, None
            if k > 0:
                issue += 1 / issue_rate
                end, cause = max(waits, key=lambda wait: wait[0], default=(-1.0, None))
                if end + 1 > issue + 1e-6:
                    stall, producer = end + 1 - issue, cause
                    issue = end + 1
            yield k, stall, producer
            if not active:
                continue
            for reg in row["destinations"]:
                written[reg] = (issue + latency, k)
            if row["kind"] == "async_copy":
                copies.append((issue + latency, k))
            elif row["opcode"] == "cp.async.commit_group":
                groups.append(len(copies))


def cycles(instructions, issue_rate):
    """Return the issue and stall cycles of the warp alone."""
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
