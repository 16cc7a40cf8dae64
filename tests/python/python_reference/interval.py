"""Plain definition of the interval algorithm (GPUMech, Section III-B, Eq. 4)."""

import copy
import itertools
import re

from python_reference import phases


def is_cached_atomic(table):
    """Return which rows of a table of instructions are atomics of global or local memory."""
    return table["kind"].isin(["atomic", "reduction"]) & ~table["space"].isin(["shared", "none"])


def run(instructions, issue_rate):
    """Yield (index, stall before it, producer index or None) of a warp's instructions.

    instructions: [(sources, destinations, latency, active)]; with True before these, nothing else issues
    until it is done.
    """
    if isinstance(instructions, (Controlled, WithCopies)):
        yield from instructions.run(issue_rate)
        return
    issue = 0.0
    written = {}  # register -> (done cycle, index of the producer)
    for k, (*stops, sources, destinations, latency, active) in enumerate(instructions):
        stall, producer = 0.0, None
        if k > 0:
            next_slot = issue + 1 / issue_rate
            issue = next_slot
            # A register is not written anew before it has been written.
            for reg in ("all", *sources, *destinations):
                # 1e-6 of a cycle is rounding, as of 1/3, and no stall.
                if reg in written and written[reg][0] + 1 > issue + (issue == next_slot) * 1e-6:
                    issue, producer = written[reg][0] + 1, written[reg][1]
            if producer is not None:
                stall = issue - next_slot
        yield k, stall, producer
        if active:
            for reg in (*destinations, *(["all"] if any(stops) else [])):
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
        stopped = []
        for k, (*stops, fields, latency, active) in enumerate(self):
            stall, producer = 0.0, None
            if k > 0:
                waits = [*stopped, (issue + max(last["stall"], 2 if last["yield"] else 1), -1)]
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
            stopped = [(issue + latency + 1, k)] if any(stops) else stopped
            if kind == "async_copy" and issue + latency > copies[0]:
                copies = (issue + latency, k)
            if barrier < 6 and kind not in ("store", "reduction"):
                is_group = fields["opcode"].startswith("LDGDEPBAR")
                holds[barrier].append(copies if is_group else (issue + latency, k))


class WithCopies(list):
    """A warp that waits for registers, groups and mbarriers: [(row, latency, active)].

    row: that in the table of instructions. table: all of them. block: the warps of its block, of
    which it is one, or None where it is looked at alone.
    """

    table, block = (), None

    def run(self, issue_rate):
        """Yield what `run` does; the producer of a completion is a row, as ("row", opcode and pc)."""
        yield from self.walk(issue_rate, *self.all_completions(issue_rate))

    def all_completions(self, issue_rate):
        """Return the completions of the block, and whether these are all; none of a warp alone."""
        if self.block is None:
            return {}, False
        known = {}
        while True:  # until nobody completes anything more
            found = {}
            for warp in self.block:
                for _ in warp.walk(issue_rate, known, True, found):
                    pass
            if found == known:
                return known, True
            known = found

    def walk(self, issue_rate, known, is_all, found=None):
        """Yield what `run` does, up to a wait for what is not known where `found` takes completions."""
        issue, written = 0.0, {}
        # (end, producer) of all of a kind; how many of them a group ends with.
        ends, groups = {"cp": [], "wgmma": []}, {"cp": [], "wgmma": []}
        own, passed = {}, {}
        has_product_waits = any(
            re.match(r"wgmma\.wait_group.*\.\d+$", row["opcode"]) for row in self.table
        )
        for k, (*stops, row, latency, active) in enumerate(self):
            opcode, kind = row["opcode"], row["opcode"].partition(".")[0]
            is_product = opcode.startswith("wgmma.mma_async")
            is_free = is_product and has_product_waits  # its sums are nobody's before a wait
            own_sums = set(row["destinations"]) if is_free else set()
            registers = ["all", *row["sources"], *row["destinations"]]
            waits = [written[reg] for reg in registers if reg in written and reg not in own_sums]
            step = phases.step_of(opcode)
            last = opcode.rpartition(".")[2]
            if opcode == "cp.async.wait_all":
                waits += ends["cp"]
            elif ".wait_group" in opcode and last.isdigit():
                most = int(last)
                in_groups = groups[kind][-1 - most] if most < len(groups[kind]) else 0
                waits += ends[kind][:in_groups]
            elif step is not None and step[1] is not None:
                needed = passed.get(step[0], 0) + step[1]
                made = sorted((known if is_all else own).get(step[0], ()))
                if found is not None and len(made) < needed and active:
                    return
                if made[:needed]:
                    waits.append(made[:needed][-1])
                if active:
                    passed[step[0]] = needed
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
            for reg in () if is_free else row["destinations"]:
                written[reg] = (issue + latency, k)
            if any(stops):
                written["all"] = (issue + latency, k)
            if row["kind"] == "async_copy" and step is None:
                ends["cp"].append((issue + latency, k))
            elif is_product:
                ends["wgmma"].append((issue + latency, k))
            elif ".commit_group" in opcode:
                groups[kind].append(len(ends[kind]))
            elif step is not None and step[1] is None:
                completion = (issue + latency, ("row", row["number"]))
                if opcode.startswith("cp.async.mbarrier.") and ends["cp"]:
                    end, copy = max(ends["cp"], key=lambda end: end[0])
                    if end > completion[0]:
                        completion = (end, ("row", self[copy][-3]["number"]))
                for where in (own, found):
                    if where is not None:
                        where.setdefault(step[0], []).append(completion)


def cycles(instructions, issue_rate):
    """Return the issue and stall cycles of the warp alone."""
    stalls = sum(stall for _, stall, _ in run(instructions, issue_rate))
    return len(instructions) / issue_rate + stalls


def end_cycles(instructions, has_result, awaited, issue_rate, by_launch=False):
    """Return the cycles of a warp until results and stores are done, and the last of these, for stores.

    has_result, awaited: whether an instruction writes registers, is a store that the warp waits for, or
    only the launch (`by_launch`): then its cycles are without the wait.
    """
    stalled, results, stored = 0.0, 0.0, 0.0
    for k, stall, _ in run(instructions, issue_rate):
        stalled += stall
        *_, latency, active = instructions[k]
        if active:
            done = k / issue_rate + stalled + latency
            results = max(results, done) if has_result[k] else results
            stored = max(stored, done) if awaited[k] else stored
    own = max(cycles(instructions, issue_rate), results)
    return own if by_launch else max(own, stored), max(stored - own, 0)


def off_unit(instructions, accesses, barriers, has_result, awaited, issue_rate, by_launch):
    """Return a warp's cycles without a unit: (before, after, then for stores, by parts).

    before: until its first instruction of the unit; after: from the last one to its end; `by_launch`,
    the launch then waits for its stores. Parts are between barriers. Each stretch runs with nothing under
    way. accesses, barriers: whether an instruction is of the unit, or a barrier; has_result, awaited: as
    of `end_cycles`. None without such instructions.
    """
    made = [k for k, is_one in enumerate(accesses) if is_one]
    if not made:
        return None

    def until_issue(first, last):
        """Return when the instruction `last` issues after `first` has."""
        stretch = part_of(instructions, first, last + 1)
        stalls = sum(stall for _, stall, _ in run(stretch, issue_rate))
        return stalls + (last - first) / issue_rate

    def until_end(first):
        stretch = part_of(instructions, first, len(instructions))
        return end_cycles(stretch, has_result[first:], awaited[first:], issue_rate, by_launch)

    ends = [k for k, is_one in enumerate(barriers) if is_one]
    parts = 0
    for begin, end in itertools.pairwise([0, *ends, None]):
        inside = [k for k in made if k >= begin and (end is None or k < end)]
        if inside:
            parts += until_issue(begin, inside[0])
        last = inside[-1] if inside else begin
        parts += until_end(last)[0] if end is None else until_issue(last, end)
    after, for_stores = until_end(made[-1])
    return until_issue(0, made[0]), after, for_stores if by_launch else 0, parts


def part_of(instructions, first, last):
    """Return a stretch of a warp, of its own kind."""
    stretch = copy.copy(instructions)
    stretch[:] = list(instructions)[first:last]
    return stretch


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
