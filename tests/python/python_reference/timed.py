"""Plain definition of the timed order of accesses: each SM on the reference machine, with lists."""

import math
from collections import Counter

#: Latencies of the reference machine: of L1 and arithmetic, of L2, and of DRAM with it.
LATENCY = (25, 120, 120 + 220)
LEVELS = ("l1", "l2", "dram")
#: Cycles after which L2 answers, and cycles that reach it in the order of the SMs.
WINDOW, TURN = 120, 8
#: Lines with the same remainder share a note of the last miss.
NOTES = 256
BYTES_PER_CYCLE = 32


def sample(kernel):
    """Return the warps whose pace is looked at: 16, evenly, of as many blocks as possible."""
    counts = [len(warps) for _, warps in kernel.blocks()]
    blocks = min(len(counts), 16)
    chosen = []
    for n in range(blocks):
        block = n * len(counts) // blocks
        taken = min(counts[block], 16 // blocks)
        chosen += [(block, (n + i * counts[block] // taken) % counts[block]) for i in range(taken)]
    return chosen


def paces(kernel, atomics_stop_warps=False):
    """Return {row, or None before the first access: (instructions, cycles, waits)}: means of the sample."""
    table = kernel.instructions
    is_access = (table.op_class == "memory") & ~table.space.isin(("shared", "none"))
    stops = is_access & table.kind.isin(("atomic", "reduction")) & atomics_stop_warps
    found = {}
    for position in sample(kernel):
        columns = kernel.warp(*position)
        rows = columns["instruction"].tolist()[:8192]
        masks = columns["active_mask"].tolist()
        there = {}  # register -> when its data are
        unawaited = set()  # registers whose loads the warp has not waited for
        issue, since, begin, instructions, waited = 0, None, 0, 0, False
        for k, row in enumerate(rows):
            issue += k > 0
            for register in ("warp", *table.sources[row], *table.destinations[row]):
                issue = max(issue, there.get(register, 0))
                if register in unawaited:
                    unawaited, waited = set(), True
            if masks[k] and is_access[row]:
                found.setdefault(since, []).append((instructions, issue - begin, waited))
                since, begin, instructions, waited = row, issue, 0, False
            instructions += 1
            if masks[k]:
                if stops[row]:
                    unawaited = unawaited | {"warp"}
                for register in table.destinations[row]:
                    there[register] = issue + (1 if is_access[row] else LATENCY[0])
                    unawaited = (
                        (unawaited | {register}) if is_access[row] else unawaited - {register}
                    )
        if rows and len(rows) == len(columns["instruction"]):
            found.setdefault(since, []).append((instructions, issue - begin, waited))
    result = dict.fromkeys([None, *range(len(table))], (8, 32, True))
    for row, notes in found.items():
        n = len(notes)
        result[row] = (
            sum(note[0] for note in notes) / n,
            sum(note[1] for note in notes) / n,
            2 * sum(note[2] for note in notes) >= n,
        )
    return result


def unread_atomics(table):
    """Return the rows of atomics whose results no row reads or writes anew: nobody waits for them."""
    used = Counter()  # rows that read or write a register
    for column in ("sources", "destinations"):
        for registers in table[column]:
            used.update(registers)
    return {
        row
        for row, registers in enumerate(table["destinations"])
        if table["kind"][row] == "atomic"
        and len(registers)
        and all(used[register] == 1 for register in registers)
    }


def atomic_requests(kernel):
    """Return the mean requests of a sector of atomics by row, where lanes of a word have one each."""
    found = {}
    for block, (_, warps) in enumerate(kernel.blocks()):
        for warp in range(len(warps)):
            columns = kernel.warp(block, warp)
            words = iter(columns["word_lanes"].tolist())
            counts = zip(
                columns["memory_static"].tolist(), columns["memory_count"].tolist(), strict=True
            )
            for row, count in counts:
                instruction = kernel.instructions.iloc[row]
                if instruction.space == "shared" or instruction.kind not in (
                    "store",
                    "atomic",
                    "reduction",
                ):
                    continue
                here = [next(words, 0) for _ in range(count)]
                if instruction.kind != "store":
                    found.setdefault(row, []).extend(here)
    return {row: sum(words) / len(words) for row, words in found.items() if words}


def in_parts(value):
    """Return a number in parts of 1024, half a part up, as in C++."""
    return math.floor(1024 * value + 0.5) / 1024


class Warp:
    """A warp with what it does next; `data`: when its data are there, and from which level."""

    def __init__(self, position, slot, accesses, now, pace):
        self.position, self.slot, self.accesses = position, slot, accesses
        self.issued = self.begin = now
        self.data = (now, 0)
        self.instructions, self.cycles, self.waits = pace
        self.ready = None
        self.flights = []  # which L2 has not answered
        self.unread, self.unread_flights = 0, []  # of data that it waits for only at its end
        self.loads = []  # (row, when it was sent, is it a repeat) that the warp has not waited for
        self.furthest = -1  # last row of all accesses so far


class Flight:
    """A request that is on its way, of a line of L1 or (None) past it."""

    def __init__(self, line, sent):
        self.line, self.sent, self.back, self.source = line, sent, None, None


class Access:
    """An access that the SM has issued."""

    def __init__(self, warp, row, lines):
        self.warp, self.row, self.lines = warp, row, lines
        self.data = (0, 0)  # as far as it is known
        self.has_data = False
        self.seen = Counter(event=0)


class Sm:
    """An SM of the reference machine."""

    def __init__(self, system, kernel, pace, blocks, slots, l1, rows, totals):
        self.system, self.table, self.pace, self.l1 = system, kernel.instructions, pace, l1
        self.config, self.rows, self.totals = system.config, rows, totals
        self.reserves = self.config["reserves_lines"] and not l1.on_fill
        self.blocks = list(blocks)
        self.warps = []  # oldest first
        self.last = None
        self.now = self.busy = self.port = 0
        self.slots = 0.0
        self.left = [0] * self.config["lsu_queue_entries"]  # when accesses left the queue
        self.access = None  # in the middle of
        self.held = []  # flights with an MSHR
        self.notes = {}
        self.unread_rows = unread_atomics(self.table)
        self.pending, self.place_waits = 0, [0, 0]
        self.sent = []  # (turn, request of L2, access, flight) of the window
        self.ended = []  # accesses of the window, and how much of `sent` they take
        self.observed = []
        for slot in range(slots):
            self.launch(slot, 0)

    def launch(self, slot, now):
        while self.blocks and not any(warp.slot == slot for warp in self.warps):
            block, warps = self.blocks.pop(0)
            for number, accesses in warps:
                if accesses:
                    warp = Warp((block, number), slot, list(accesses), now, self.pace[None])
                    self.warps.append(warp)
                    self.decide(warp)

    def decide(self, warp):
        """Decide when a warp is ready; that is not known while it waits for what L2 has not answered."""
        begin = warp.issued
        if warp.waits or not warp.accesses:
            if warp.flights or (not warp.accesses and warp.unread_flights):
                warp.ready = None
                return
            begin = max(begin, warp.data[0])
            if not warp.accesses:
                begin = max(begin, warp.unread)
            level = warp.data[1]
            for row, sent, is_repeat in warp.loads:
                cycles = min(max(warp.data[0] - sent, 0), LATENCY[level])
                self.rows.setdefault(row, Counter()).update(
                    {f"{LEVELS[level]}_waits": 1, f"{LEVELS[level]}_wait_cycles": cycles}
                )
                if is_repeat:
                    self.rows[row].update({"repeats": 1, f"{LEVELS[level]}_repeat_cycles": cycles})
            warp.loads = []
            warp.data = (warp.data[0], 0)
        warp.begin = begin
        warp.ready = begin + int(warp.cycles)

    def choose(self, ready):
        scheduler = self.config["scheduler"]
        if scheduler in ("gto", "gty") and self.last in ready:
            return self.last
        if scheduler == "gty":
            return ready[-1]
        if scheduler == "lrr" and self.last in self.warps:
            later = self.warps[self.warps.index(self.last) + 1 :]
            return next((warp for warp in later if warp in ready), ready[0])
        return ready[0]

    def issue(self, end):
        """Take the next access into the queue; return whether there is one before the end."""
        while True:
            now = max(self.now, self.left[-self.config["lsu_queue_entries"]])
            times = [warp.ready for warp in self.warps if warp.ready is not None]
            if not times:
                return False
            if min(times) > now:
                now = min(times)
                if now >= end:
                    return False
            ready = [warp for warp in self.warps if warp.ready is not None and warp.ready <= now]
            self.now = now
            if max(now, self.busy) >= end:
                return False
            warp = self.choose(ready)
            taken = 0
            if warp.instructions:
                # The instructions since its last access took their share of the issue slots.
                self.slots = max(self.slots, float(warp.begin))
                self.slots += warp.instructions / self.config["issue_width"]
                warp.instructions, taken = 0, self.slots
            if taken > now + 1:
                warp.ready = int(taken)
            elif warp.accesses:
                row, sectors, masks = warp.accesses[0]
                kind = self.table.kind[row]
                lines = self.system.lines_of(kind, sectors, masks, self.l1)
                self.rows.setdefault(row, Counter()).update(
                    sectors=len(sectors), requests=len(lines)
                )
                self.access = Access(warp, row, list(lines.items()))
                self.last = warp
                self.busy = max(self.busy, now)
                return True
            else:
                self.warps.remove(warp)
                if not any(other.slot == warp.slot for other in self.warps):
                    self.launch(warp.slot, now)

    def run(self, end):
        """Send everything that L1 takes before the end."""
        self.sent, self.ended = [], []
        while self.access or self.issue(end):
            if self.busy >= end:
                return
            access, before = self.access, len(self.sent)
            is_whole = self.send(access, end)
            self.ended.append((access, len(self.sent) - before, is_whole))
            warp = access.warp
            if access.row in self.unread_rows:
                warp.unread = max(warp.unread, access.data[0])
            else:
                warp.data = max(warp.data, access.data)
            if not is_whole:
                return
            self.access = None
            self.left.append(self.busy)
            warp.accesses.pop(0)
            warp.issued = self.now
            if access.has_data and access.row not in self.unread_rows:
                warp.loads.append((access.row, self.busy, access.row <= warp.furthest))
            warp.furthest = max(warp.furthest, access.row)
            warp.instructions, warp.cycles, warp.waits = self.pace[access.row]
            self.decide(warp)
            self.complete(access, end)

    def complete(self, access, end):
        """Do what an access that is complete brings about; here nothing."""

    def send(self, access, end):
        """Send the lines of an access, of a load as far as they get; return whether that is all."""
        instruction = self.table.loc[access.row]
        is_load = instruction.kind in ("load", "async_copy")
        while access.lines:
            line, touched = access.lines[0]
            passes = is_load and self.system.bypasses(instruction, line, self.l1)
            misses = is_load and not passes and self.misses(line, touched)
            if is_load and (self.busy >= end or (misses and not self.find_room(line, end))):
                return False
            access.lines.pop(0)
            turn = min((self.busy - (end - WINDOW)) // TURN, WINDOW // TURN - 1)
            requests, _ = self.system.look_up(
                access.row, instruction, line, touched, self.l1, self.totals
            )
            self.busy += 1
            flight = None
            is_stop = instruction.kind == "reduction" and self.config["atomics_stop_warps"]
            if is_load or instruction.kind == "atomic" or is_stop:
                access.has_data = True
                if misses:
                    flight = Flight(line, self.busy)
                    self.held = [f for f in self.held if f.back is None or f.back > self.busy]
                    self.held.append(flight)
                    self.notes[line % NOTES] = flight
                elif passes or not is_load:
                    flight = Flight(None, self.busy)
                else:
                    self.hit(access, line)
            if flight:
                self.awaiting(access).append(flight)
            for request in requests:
                own = flight if request[0] != "write_back" else None
                self.sent.append((turn, request, access, own))
        return True

    def awaiting(self, access):
        return access.warp.unread_flights if access.row in self.unread_rows else access.warp.flights

    def misses(self, line, touched):
        resident = [one for one in self.l1.set_of(line).lines if one and one.number == line]
        return not resident or any(not resident[0].full(sector) for sector in touched)

    def hit(self, access, line):
        access.data = max(access.data, (self.busy + LATENCY[0], 0))
        note = self.notes.get(line % NOTES)
        if note and note.line == line:
            if note.back is None:
                self.awaiting(access).append(note)
            else:
                access.data = max(access.data, (note.back, note.source))

    def is_full(self, line):
        if len(self.held) >= self.config["l1_mshrs"]:
            return True
        place = self.l1.place(line)
        under_way = {f.line for f in self.held if self.l1.place(f.line) == place}
        return self.reserves and len(under_way) >= self.l1.ways and line not in under_way

    def find_room(self, line, end):
        """Wait for an MSHR, and for a place that no line under way keeps; return whether in time."""
        while self.is_full(line):
            if self.busy >= end:
                return False
            # Answers to requests of this window come after its end.
            known = [f for f in self.held if f.back is not None]
            first = min(known, key=lambda f: (f.back, f.source), default=None)
            until = max(self.busy, min(first.back, end) if first else end)
            if len(self.held) < self.config["l1_mshrs"]:
                self.pending += max(until - max(self.busy, self.port), 0)
            self.busy = until
            if first and first.back <= self.busy:
                self.held.remove(first)
                if not self.is_full(line):
                    self.place_waits[first.source - 1] += self.pending
                    self.pending = 0
        return self.busy < end

    def settle(self, outcomes):
        """Take L2's answers to the window, in the order in which it was asked."""
        outcomes = list(outcomes)
        sent = list(self.sent)
        for access, count, is_whole in self.ended:
            for _ in range(count):
                (_, request, _, flight), outcome = sent.pop(0), outcomes.pop(0)
                self.system.count(request, outcome, access.seen, self.rows)
                if flight:
                    start = max(flight.sent, self.port)
                    self.port = start + math.ceil(32 * outcome[0] / BYTES_PER_CYCLE)
                    flight.source = 2 if outcome[1] or outcome[4] else 1
                    flight.back = start + LATENCY[flight.source]
            if is_whole:
                counters = self.rows.setdefault(access.row, Counter())
                counters.update({n: c for n, c in access.seen.items() if n != "event"})
                counters[f"{('l1_hit', 'l2_hit', 'dram')[access.seen['event']]}_events"] += 1
                self.observed.append((access.warp.position, access.row, access.seen))
        self.sent, self.ended = [], []
        for warp in self.warps:
            for flight in warp.flights:
                warp.data = max(warp.data, (flight.back, flight.source))
            warp.flights = []
            for flight in warp.unread_flights:
                warp.unread = max(warp.unread, flight.back)
            warp.unread_flights = []
            if warp.ready is None:
                self.decide(warp)

    def next_event(self):
        """Return a time before which nothing happens, None when nothing is left."""
        if self.access:
            return self.busy
        if not self.warps:
            return None
        times = [0 if warp.ready is None else warp.ready for warp in self.warps]
        room = self.left[-self.config["lsu_queue_entries"]]
        return max(min(times), self.now, self.busy, room)


def run(system, sms):
    """Run the SMs of a kernel to their ends."""
    end = WINDOW
    while True:
        for sm in sms:
            sm.run(end)
        outcomes = [[None] * len(sm.sent) for sm in sms]
        order = sorted(
            (turn, number, i)
            for number, sm in enumerate(sms)
            for i, (turn, *_) in enumerate(sm.sent)
        )
        for turn, number, i in order:
            sm = sms[number]
            system.now = end - WINDOW + max(turn, 0) * TURN
            outcomes[number][i] = system.serve(sm.sent[i][1], sm.l1, sm.totals)
        # Requests that L2 has not answered may be answered at any time from here on.
        events = [sm.next_event() for sm in sms]
        for sm, answers in zip(sms, outcomes, strict=True):
            sm.settle(answers)
        left = [event for event in events if event is not None]
        if not left:
            return
        end = max(end, min(left)) + WINDOW
