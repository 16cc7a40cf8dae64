"""Plain definition of a launch of which some SMs are simulated, the leaders, and the others follow."""

import math
from collections import Counter

from scipy import stats

from python_reference import timed
from python_reference.memory import (
    ALL_BYTES,
    PlainCache,
    PlainMemorySystem,
    grouped,
    resident_blocks,
    warp_accesses,
)

LEVELS = ("l1_hit", "l2_hit", "dram")
LAST_TURN = timed.WINDOW // timed.TURN - 1


def groups(blocks, share):
    """Return [(leader, followers)] of SMs given by their blocks: neighbours with as many blocks."""
    per_group = max(1, math.floor(1 / share + 0.5))
    if per_group == 1 or len(blocks) < 6:
        return []
    result = []
    for count in sorted({len(mine) for mine in blocks}, reverse=True):
        alike = [sm for sm, mine in enumerate(blocks) if len(mine) == count]
        parts = -(-len(alike) // per_group)
        for g in range(parts):
            members = alike[len(alike) * g // parts : len(alike) * (g + 1) // parts]
            leader = members[len(result) * 7 // 3 % len(members)]
            result.append((leader, [sm for sm in members if sm != leader]))
    if len(result) < 3 or len(result) == len(blocks):
        return []
    return sorted(result)


class Leader(timed.Sm):
    """An SM that others follow; `followers`: (number of the SM, its blocks)."""

    def __init__(self, number, followers, memory, *arguments):
        super().__init__(*arguments)
        self.number = number
        self.own_blocks = list(arguments[3])
        self.numbers = [sm for sm, _ in followers]
        self.of_followers = [blocks for _, blocks in followers]
        self.memory = memory  # (block, warp) -> memory instructions
        self.made = Counter()
        self.left_of = {}  # (place, follower, warp) -> accesses that it has not made
        self.counts = Counter()  # made by followers, with the same key
        self.opened = 0
        self.hits = {}
        self.asked = []  # (turn, follower, request, whether an access begins)
        self.followed = {}  # row -> Counter

    def misses(self, line, touched):
        missed = super().misses(line, touched)
        self.hits[line] = not missed
        return missed

    def run(self, end):
        self.asked = []
        super().run(end)
        if not self.warps and not self.access:
            while self.opened < max(map(len, [self.own_blocks, *self.of_followers])):
                self.open(LAST_TURN)
            for key in sorted(self.left_of):
                self.follow(key, None, LAST_TURN, [])

    def complete(self, access, end):
        turn = max(min((self.busy - 1 - (end - timed.WINDOW)) // timed.TURN, LAST_TURN), 0)
        block, warp = access.warp.position
        places = [number for number, _ in self.own_blocks]
        place = places.index(block)
        hits, self.hits = list(self.hits.values()), {}
        while self.opened <= place:
            self.open(turn, hits)
        self.made[block, warp] += 1
        for f, blocks in enumerate(self.of_followers):
            if (place, f, warp) not in self.left_of:
                continue
            until = None
            if access.warp.accesses:
                theirs = self.memory[blocks[place][0], warp]
                until = self.made[block, warp] * theirs // self.memory[block, warp]
            self.follow((place, f, warp), until, turn, hits)

    def open(self, turn, hits=()):
        place, self.opened = self.opened, self.opened + 1
        for f, blocks in enumerate(self.of_followers):
            if place >= len(blocks):
                continue
            for warp, accesses in blocks[place][1]:
                self.left_of[place, f, warp] = list(accesses)
                led = place < len(self.own_blocks)
                led = led and self.memory.get((self.own_blocks[place][0], warp), 0) > 0
                self.follow((place, f, warp), 0 if led else None, turn, hits)

    def follow(self, key, until, turn, hits):
        accesses = self.left_of.get(key, [])
        while accesses and (until is None or self.counts[key] < until):
            self.make(key[1], accesses.pop(0), turn, hits)
            self.counts[key] += 1
        if not accesses:
            self.left_of.pop(key, None)

    def make(self, follower, access, turn, hits):
        """Make an access of a follower: what leaves its SM is asked of L2 in this turn."""
        row, sectors, masks = access
        instruction = self.table.loc[row]
        lines = grouped(sectors, masks, self.l1.per_line)
        counters = self.followed.setdefault(row, Counter())
        counters.update(sectors=len(sectors), requests=len(lines))
        begins = True
        for i, (line, touched) in enumerate(lines.items()):
            evict_first = instruction.cache_operator == "evict_first"
            kind, part = "read", dict.fromkeys(touched, ALL_BYTES)
            if instruction.kind in ("store", "atomic", "reduction"):
                kind, part = "write" if instruction.kind == "store" else "atomic", touched
            elif not self.system.bypasses(instruction, line, self.l1):
                if len(hits) == len(lines) and hits[i]:
                    continue
                part = dict.fromkeys({u for s in touched for u in self.l1.unit(s)}, ALL_BYTES)
            self.asked.append((turn, follower, (kind, line, part, evict_first, row), begins))
            begins = False


def have_all_loads(table, lists, chosen):
    """Return whether the leaders execute all rows but stores that anybody executes."""

    def rows(mine):
        return {
            row
            for _, warps in mine
            for _, accesses in warps
            for row, *_ in accesses
            if table.kind[row] != "store"
        }

    return set().union(*map(rows, lists)) == set().union(*(rows(lists[n]) for n, _ in chosen))


class SampledMemorySystem(PlainMemorySystem):
    """The memory system of a GPU that simulates a part of the SMs."""

    def run(self, kernel, share):
        """Return (totals, {row: counters}) as they are estimated, or None if all are to be simulated."""
        slots = resident_blocks(self.config["sm"], kernel)
        warps = [warps for _, warps in kernel.blocks()]
        lists = [
            [(b, [(w, warp_accesses(kernel, b, w)) for w in range(len(warps[b]))]) for b in mine]
            for mine in self.assign(kernel, slots)
            if mine
        ]
        memory = {
            (b, w): len(kernel.warp(b, w)["memory_static"])
            for b in range(len(warps))
            for w in range(len(warps[b]))
        }
        chosen = groups(lists, share)
        if not chosen or not have_all_loads(kernel.instructions, lists, chosen):
            return None
        self.lanes = timed.atomic_requests(kernel) if self.config["atomics_per_lane"] else {}
        self.now, self.under_way = None, {}
        self.slice_turns, self.turns_of_all = [0] * self.l2.slices, 0
        self.slice_dram_sectors = [0] * self.l2.slices
        self.passed = []
        self.read_sectors = Counter()
        pace, l1 = timed.paces(kernel, self.config["atomics_stop_warps"]), self.l1_config(kernel)
        self.weights = [1 + len(followers) for _, followers in chosen]
        leaders = [
            Leader(
                number,
                [(sm, lists[sm]) for sm in followers],
                memory,
                *(self, kernel, pace, lists[number], slots, PlainCache(**l1), {}, Counter()),
            )
            for number, followers in chosen
        ]
        self.of_followers, self.leaders = Counter(), leaders
        self.play(leaders)
        self.slice_crowding = self.crowding(len(lists))
        for leader, weight in zip(leaders, self.weights, strict=True):
            for written_back in leader.l1.flush():
                leader.totals["l1_flush_sectors"] += len(written_back[1])
                for request in self.leaving_line(written_back):
                    outcome = self.serve_leader(leader, weight, request)
                    self.count(request, outcome, None, leader.rows)
        known = sum(self.slice_turns)
        self.slice_turns = [t * self.turns_of_all / known if known else 0 for t in self.slice_turns]
        return self.estimate(kernel, leaders)

    def play(self, leaders):
        end = timed.WINDOW
        while True:
            for leader in leaders:
                leader.run(end)
            outcomes = [[None] * len(leader.sent) for leader in leaders]
            for turn in range(LAST_TURN + 1):
                self.now = end - timed.WINDOW + turn * timed.TURN
                for n, leader in enumerate(leaders):
                    first = [f < leader.number for f in leader.numbers]
                    self.serve_followers(
                        leader, turn, [f for f, is_so in enumerate(first) if is_so]
                    )
                    for i, (when, request, *_) in enumerate(leader.sent):
                        if max(when, 0) == turn:
                            outcomes[n][i] = self.serve_leader(leader, self.weights[n], request)
                    self.serve_followers(
                        leader, turn, [f for f, is_so in enumerate(first) if not is_so]
                    )
            events = [leader.next_event() for leader in leaders]
            busy = any(leader.asked for leader in leaders)
            for leader, answers in zip(leaders, outcomes, strict=True):
                leader.settle(answers)
            left = [event for event in events if event is not None]
            if not left and not busy:
                return
            end = (max(end, min(left)) + timed.WINDOW) if left else end

    def serve_leader(self, leader, weight, request):
        before = sum(self.slice_turns)
        outcome = self.serve(request, leader.l1, leader.totals)
        self.turns_of_all += weight * (sum(self.slice_turns) - before)
        return outcome

    def serve_followers(self, leader, turn, followers):
        asks = []  # of the accesses in order: [row, whether DRAM is asked]
        for when, follower, request, begins in leader.asked:
            if when != turn or follower not in followers:
                continue
            self.count_turns(request, leader.l1)
            kind, line, part, evict_first, row = request
            serve = {"read": self.l2_read, "atomic": self.l2_atomic}.get(kind, self.l2_write)
            missed, moved, asks_dram = serve(line, part, leader.l1, self.of_followers, evict_first)
            leader.followed[row].update(dram_requests=int(missed), dram_sectors=moved)
            if begins:
                asks.append([row, False])
            asks[-1][1] |= asks_dram
        for row, asked in asks:
            leader.followed[row]["dram_events" if asked else "l2_hit_events"] += 1

    def estimate(self, kernel, leaders):
        totals = Counter()
        for leader, weight in zip(leaders, self.weights, strict=True):
            totals.update({name: weight * count for name, count in leader.totals.items()})
        known = Counter(self.of_followers)
        for leader in leaders:
            known.update(leader.totals)
        for accesses, hits in (
            ("l2_read_sectors", "l2_read_sector_hits"),
            ("l2_write_sectors", "l2_write_sector_hits"),
            ("l2_atomic_sectors", "l2_atomic_sector_hits"),
            ("l2_read_requests", "l2_read_request_hits"),
        ):
            totals[hits] = max(totals[accesses] - (known[accesses] - known[hits]), 0)
        for name in ("dram_read_sectors", "dram_write_sectors"):
            totals[name] = known[name]
        totals["l2_dirty_sectors"] = self.l2.dirty_sectors()
        rows = {row: self.estimate_row(row, leaders) for leader in leaders for row in leader.rows}
        return totals, rows

    def estimate_row(self, row, leaders):
        """Return the counters of a row: `active` accesses, of which the leaders' are a part."""
        weighted, known = Counter(), Counter()
        for leader, weight in zip(leaders, self.weights, strict=True):
            mine = leader.rows.get(row, Counter())
            weighted.update({name: weight * count for name, count in mine.items()})
            known.update(mine)
            known.update(leader.followed.get(row, Counter()))
        result = Counter(
            {name: known[name] for name in ("sectors", "requests", "dram_requests", "dram_sectors")}
        )
        if not weighted["requests"]:
            weighted.update(
                requests=known["requests"],
                l2_requests=known["requests"],
                l2_request_sectors=known["sectors"],
                l2_hit_events=known["l2_hit_events"],
                dram_events=known["dram_events"],
            )
        lines = known["requests"] / weighted["requests"] if weighted["requests"] else 1
        for name in ("l2_requests", "l2_request_sectors"):
            result[name] = weighted[name] * lines
        if known["dram_requests"] > round(result["l2_requests"]):
            most = round(result["l2_requests"])
            result["dram_sectors"] = known["dram_sectors"] * most / known["dram_requests"]
            result["dram_requests"] = most
        beyond = weighted["l2_hit_events"] + weighted["dram_events"]
        all_beyond = known["l2_hit_events"] + known["dram_events"]
        if weighted["dram_requests"]:
            more = result["dram_requests"] / (lines * weighted["dram_requests"])
            dram = min(weighted["dram_events"] * more, beyond)
        else:
            dram = beyond * known["dram_events"] / all_beyond if all_beyond else 0
        events = [weighted["l1_hit_events"], beyond - dram, dram]
        waiting = weighted["l2_waits"] + weighted["dram_waits"]
        more = dram / weighted["dram_events"] if weighted["dram_events"] else 1
        dram_waits = min(weighted["dram_waits"] * more, waiting)
        waits = [weighted["l1_waits"], waiting - dram_waits, dram_waits]
        cycles = [weighted["l1_wait_cycles"]]
        repeat_cycles = [weighted["l1_repeat_cycles"]]
        for level, name in ((1, "l2"), (2, "dram")):
            mean = timed.LATENCY[level]
            if weighted[f"{name}_waits"]:
                mean = weighted[f"{name}_wait_cycles"] / weighted[f"{name}_waits"]
            cycles.append(waits[level] * mean)
            before = weighted[f"{name}_wait_cycles"]
            repeat_cycles.append(
                weighted[f"{name}_repeat_cycles"] * (cycles[level] / before if before else 1)
            )
        result["repeats"] = weighted["repeats"] / sum(events) if sum(events) else 0
        for names, values in (
            (("l1_hit_events", "l2_hit_events", "dram_events"), events),
            (("l1_waits", "l2_waits", "dram_waits"), waits),
            (("l1_wait_cycles", "l2_wait_cycles", "dram_wait_cycles"), cycles),
            (("l1_repeat_cycles", "l2_repeat_cycles", "dram_repeat_cycles"), repeat_cycles),
        ):
            for name, value in zip(names, values, strict=True):
                result[name] = value / sum(events) if sum(events) else 0
        return result

    def errors(self, of_row=None):
        """Return the errors of what leaves L1, per line, and of the cycles waited, per access.

        Those of one row, or of all of them.
        """

        def sums(*names):
            return [
                sum(
                    counts[name]
                    for row, counts in leader.rows.items()
                    for name in names
                    if of_row in (None, row)
                )
                for leader in self.leaders
            ]

        accesses = sums("l1_hit_events", "l2_hit_events", "dram_events")
        return {
            "requests": error(self.weights, sums("requests"), sums("l2_requests")),
            "waits": error(self.weights, accesses, sums("l2_wait_cycles", "dram_wait_cycles")),
        }

    def rate_error(self, hits, accesses):
        """Return the error of a rate of two totals, absolute."""
        hits, accesses = (
            [leader.totals[name] for leader in self.leaders] for name in (hits, accesses)
        )
        of_sample = sum(w * count for w, count in zip(self.weights, hits, strict=True)) / max(
            sum(w * count for w, count in zip(self.weights, accesses, strict=True)), 1
        )
        return of_sample * error(self.weights, accesses, hits)


def error(weights, x, y):
    """Return half the relative width of the interval of 95 % confidence of a ratio, of sums y to sums x."""
    n, everything = len(weights), sum(weights)
    sum_x = sum(w * value for w, value in zip(weights, x, strict=True))
    sum_y = sum(w * value for w, value in zip(weights, y, strict=True))
    if not sum_x or not sum_y:
        return 0
    rest = [w * (b - sum_y / sum_x * a) for w, a, b in zip(weights, x, y, strict=True)]
    variance = (1 - n / everything) * n / (n - 1) * sum(value**2 for value in rest)
    return stats.t.ppf(0.975, n - 1) * math.sqrt(variance) / sum_y
