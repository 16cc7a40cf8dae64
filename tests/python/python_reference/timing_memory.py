"""Plain definition of slices of L2 and DRAM channels, for the timing stage (timing.py)."""

import math
from collections import Counter

from python_reference.memory import store_turns

#: Time is counted in 2^-20 SM cycles.
TICKS = 2**20


def ticks(cycles):
    return math.floor(cycles * TICKS + 0.5)


class Link:
    """Serves one after the other; may start at an edge when it gets free before the next one."""

    def __init__(self, period):
        self.period, self.busy_until = period, 0

    def is_free(self, edge):
        return self.busy_until < edge + self.period

    def take(self, edge, service):
        self.busy_until = max(self.busy_until, edge) + service


class Slice:
    """A slice of L2."""

    def __init__(self, machine, index):
        self.machine, self.config, self.index = machine, machine.config, index
        self.channel = machine.channels[index // machine.sharers]
        self.requests, self.replies, self.mshrs, self.fills = [], [], [], []
        self.waited = {"dram": 0, "reply": 0}
        self.stats, self.room_since = Counter(), 0
        self.port, self.fill_port = Link(machine.l2_period), Link(machine.l2_period)
        self.ready = []
        self.last_write = -1

    def cycle(self, now):
        self.take_fills(now)
        if not self.requests or not self.port.is_free(now):
            return
        packet = self.requests[0]
        serve = self.write if packet["kind"] == "write" else self.read
        cause = serve(packet, now)
        if cause:
            self.waited["dram" if cause == "mshr" else cause] += self.machine.l2_period
            self.stats[f"for_{cause}"] += self.machine.l2_period
        else:
            self.requests.pop(0)
            for_dram = self.waited["dram"] - packet["marks"]["dram"]
            late = self.waited["reply"] - packet["marks"]["reply"]
            packet["waited"]["queue"] += for_dram
            packet["waited"]["noc"] += late
            queued = now - packet["mark"] - for_dram - late
            self.stats.update(queued=queued, queued_for_dram=for_dram, late=late)
            packet["mark"] = now
            if packet["left"] == 0:
                self.finish(packet)

    def use_port(self, sectors, lanes, now, written=()):
        turns = max(1, self.config["l2_atomic_lane_turns"] * lanes)
        if written:
            turns = store_turns(self.config["l2_partial_write_turns"], written)
        cycles = self.config["l2_slice_request_cycles"] * turns
        if self.config["l2_slice_bytes_per_cycle"]:
            count = 32 * len(sectors)
            cycles = max(cycles, count / self.config["l2_slice_bytes_per_cycle"])
        time = math.floor(cycles * self.machine.l2_period + 0.5)
        self.port.take(now, time)
        alone = self.config["l2_slice_request_cycles"]
        if self.config["l2_slice_bytes_per_cycle"]:
            alone = max(alone, count / self.config["l2_slice_bytes_per_cycle"])
        further = 0
        if not written and turns > 1:
            further = time - math.floor(alone * self.machine.l2_period + 0.5)
        self.stats.update(requests=time - further, atomics=further)

    def queue_is_full(self):
        return len(self.requests) >= self.config["l2_queue_entries"]

    def is_full(self):
        return len(self.replies) >= self.config["l2_queue_entries"]

    def take_fills(self, now):
        self.take_fill(now)
        if self.ready and self.take(*self.ready[0], now):
            self.ready.pop(0)

    def take_fill(self, now):
        if not self.fills or self.fills[0][0] > now:
            return
        time, start, mshr, written = self.fills[0]
        if mshr is None:
            if self.take(written, start, time, now):
                self.fills.pop(0)
        elif self.fill_port.is_free(now):
            self.ready += [(packet, start, time) for packet in mshr["targets"]]
            rate = self.config["l2_slice_bytes_per_cycle"]
            cycles = max(32 * len(mshr["sectors"]) / rate, 1) if rate else 1
            self.fill_port.take(now, math.floor(cycles * self.machine.l2_period + 0.5))
            self.mshrs = [m for m in self.mshrs if m is not mshr]
            self.fills.pop(0)

    def take(self, packet, start, time, now):
        """Hand a packet what DRAM did for it; return whether there was room for its reply."""
        if packet is None:
            return True
        if packet["left"] == 1 and packet["fetch"] and self.is_full():
            return False
        period = self.machine.l2_period
        seen = max(-(-time // period), start // period + 1) * period
        queued = min(max(start - packet["mark"], 0), now - packet["mark"])
        late = max(now - max(packet["mark"], seen), 0)
        self.stats.update(in_channel=queued, late=late)
        packet["waited"]["queue"] += queued
        packet["waited"]["noc"] += late
        packet["waited"]["dram"] += now - packet["mark"] - queued - late
        packet["mark"] = now
        packet["left"] -= 1
        if packet["left"] == 0:
            self.finish(packet)
        return True

    def finish(self, packet):
        if packet["fetch"]:
            self.replies.append(packet)
        else:
            self.machine.packets -= 1

    def absent(self, line, wanted):
        l2 = self.machine.l2
        found = [one for one in l2.set_of(line).lines if one is not None and one.number == line]
        valid = {s for s in range(l2.per_line) if found and found[0].full(s)}
        units = {u for s in set(wanted) - valid for u in l2.unit(s)}
        return units - valid

    def dram_is_full(self):
        waiting = self.config["l2_miss_queue_entries"] * self.machine.sharers
        return len(self.channel.queue) >= self.config["dram_queue_entries"] + waiting

    def mshrs_are_full(self):
        return len(self.mshrs) >= self.config["l2_mshrs"]

    def read(self, packet, now):
        l2, totals = self.machine.l2, self.machine.totals
        modifies = packet["kind"] != "read"
        wanted = set(packet["sectors"])
        fetched = self.absent(packet["line"], wanted)
        joined = [
            m
            for m in self.mshrs
            if m["line"] == packet["line"] and m["sectors"] & (wanted - fetched)
        ]
        if any(len(m["targets"]) >= self.config["l2_mshr_targets"] for m in joined):
            return "mshr"
        if fetched and self.mshrs_are_full():
            return "mshr"
        if (fetched or (modifies and l2.through)) and self.dram_is_full():
            return "dram"
        if not fetched and not joined and packet["fetch"] and self.is_full():
            return "reply"
        if fetched and not self.can_take(packet["line"]):
            return "dram"
        hits, _, written_back = l2.read(packet["line"], wanted, packet["evict_first"])
        if modifies:
            totals.update(l2_atomic_sectors=len(wanted), l2_atomic_sector_hits=len(hits))
            self.last_write = now
        else:
            pending = {s for m in joined for s in m["sectors"]} & (wanted - fetched)
            totals.update(
                l2_read_requests=1,
                l2_read_request_hits=int(hits == wanted),
                l2_read_sectors=len(wanted),
                l2_read_sector_hits=len(hits),
                l2_pending_sector_hits=len(pending),
            )
        for mshr in joined:
            mshr["targets"].append(packet)
            packet["left"] += 1
        waits = fetched or joined
        moved = (written_back[1] if written_back else ()) if waits else wanted
        self.use_port(moved, packet["lanes"], now)
        if fetched:
            packet["left"] += 1
            self.fetch(packet["line"], fetched, [packet])
        if written_back:
            self.write_to_dram(written_back[0], written_back[1])
        if modifies:
            _, _, forward, _ = l2.write(packet["line"], packet["sectors"], 0, packet["evict_first"])
            self.write_to_dram(packet["line"], forward)
        return None

    def write(self, packet, now):
        l2, totals = self.machine.l2, self.machine.totals
        line = packet["line"]
        fetches = l2.write_fetch(line, packet["sectors"])
        if fetches and self.mshrs_are_full():
            return "mshr"
        # What is on its way does not change by a store that writes beside it.
        passed = {}
        joined = []
        if l2.write_miss == "write_and_fetch":
            joined = [
                m
                for m in self.mshrs
                if m["line"] == line and m["sectors"] & (set(packet["sectors"]) - set(fetches))
            ]
            under_way = {s for m in joined for s in m["sectors"]} - set(fetches)
            passed = {s: mask for s, mask in packet["sectors"].items() if s in under_way}
        if any(len(m["targets"]) >= self.config["l2_mshr_targets"] for m in joined):
            return "mshr"
        needs_dram = (
            fetches
            or passed
            or l2.through
            or not l2.contains(line)
            or l2.write_miss == "no_allocate"
        )
        if needs_dram and self.dram_is_full():
            return "dram"
        if packet["fetch"] and self.is_full():
            return "reply"
        if l2.write_miss != "no_allocate" and not self.can_take(line):
            return "dram"
        for mshr in joined:
            mshr["targets"].append(None)
        hits, fetch, forward, written_back = l2.write(
            line,
            {s: mask for s, mask in packet["sectors"].items() if s not in passed},
            0,
            packet["evict_first"],
        )
        hits, forward = set(hits) | set(passed), set(forward) | set(passed)
        totals.update(
            l2_write_requests=1,
            l2_write_sectors=len(packet["sectors"]),
            l2_write_sector_hits=len(hits),
        )
        passes = fetch or forward
        moved = (written_back[1] if written_back else ()) if passes else packet["sectors"]
        self.use_port(moved, 0, now, packet["sectors"])
        answers = packet["fetch"] is not None
        packet["left"] = int(answers and bool(passes))
        self.write_to_dram(line, forward, packet if answers else None)
        if fetch:
            self.fetch(line, fetch, [packet if answers and not forward else None])
        if written_back:
            self.write_to_dram(written_back[0], written_back[1])
        self.last_write = now
        return None

    def can_take(self, line):
        if self.config["lines_under_way"] != "reserved":
            return True
        return self.machine.l2.make_room(line, {mshr["line"] for mshr in self.mshrs})

    def fetch(self, line, sectors, targets):
        mshr = {"line": line, "sectors": sectors, "targets": targets}
        self.mshrs.append(mshr)
        self.machine.totals["dram_read_sectors"] += len(sectors)
        self.to_dram(line, sectors, mshr)

    def write_to_dram(self, line, sectors, packet=None):
        if sectors:
            self.machine.totals["dram_write_sectors"] += len(sectors)
            self.to_dram(line, sectors, None, packet)

    def to_dram(self, line, sectors, mshr, packet=None):
        self.channel.queue.append((self, mshr, packet, 32 * len(sectors), self.row_of(line)))

    def row_of(self, line):
        if not self.config["dram_row_bytes"]:
            return 0
        l2 = self.config["memory"]["l2"]
        chunk, rest = divmod(line * l2["line_bytes"], l2["slice_interleave_bytes"])
        address = chunk // l2["slices"] * l2["slice_interleave_bytes"] + rest
        sharers = self.machine.sharers
        turn, takers = (
            self.config["dram_bank_interleave_bytes"],
            self.config["dram_interleaved_banks"],
        )
        part, rest = divmod(address, turn)
        row = (part // takers * turn + rest) // self.config["dram_row_bytes"]
        return (row * sharers + self.index % sharers) * takers + part % takers


class Channel:
    """A DRAM channel."""

    def __init__(self, machine):
        self.machine, self.config = machine, machine.config
        self.bus = Link(machine.dram_period)
        self.queue = []
        self.rate = machine.transfer_time(
            1024.0 * self.config["dram_channels"], self.config["dram_bandwidth_gbs"]
        )
        self.last = None
        self.banks = [
            {"row": None, "request": None, "left": 0, "free": Counter(), "changed": False}
            for _ in range(self.config["dram_banks"])
        ]
        self.groups = [0] * self.config["dram_bank_groups"]
        self.turn, self.free = 0, Counter()
        self.next_refresh = self.cycles("dram_trefi")
        self.stats = Counter()

    def cycles(self, *names):
        return sum(self.config[name] for name in names) * self.machine.dram_period

    def is_busy(self):
        return self.queue or any(bank["request"] for bank in self.banks)

    def time_of(self, count):
        return count * self.rate // 1024

    def done(self, request, now):
        owner, mshr, packet, _, _ = request
        self.machine.totals["dram_writes" if mshr is None else "dram_reads"] += 1
        latency = ticks(self.config["dram_latency"])
        if self.config["dram_row_bytes"]:
            latency = max(latency - self.cycles("dram_trcd"), 0)
            if mshr is None:
                latency = max(latency - self.cycles("dram_cl") + self.cycles("dram_wl"), 0)
        if mshr is not None or packet is not None:
            owner.fills.append((now + latency, now, mshr, packet))

    def cycle(self, now):
        if self.config["dram_row_bytes"]:
            self.command(now)
            return
        while self.queue and self.bus.is_free(now):
            request = self.queue.pop(0)
            self.bus.take(now, self.time_of(request[3]))
            self.last = self.bus.busy_until
            self.done(request, now)

    def command(self, now):
        while self.config["dram_trefi"] and self.next_refresh <= now:
            for bank in self.banks:
                bank["row"] = None
                end = self.next_refresh + self.cycles("dram_trfc")
                bank["free"]["open"] = max(bank["free"]["open"], end)
            self.next_refresh += self.cycles("dram_trefi")
        self.give_work(now)
        has_changed_row = False
        for i in range(len(self.banks)):
            # A row command has moved the turn.
            b = (self.turn + i) % len(self.banks)
            bank = self.banks[b]
            if bank["request"] is None:
                continue
            if bank["row"] == bank["request"][4]:
                if self.can_burst(b, now):
                    self.burst(b, now)
                    return
            elif not has_changed_row:
                has_changed_row = self.change_row(b, now)

    def give_work(self, now):
        queue = self.queue[: self.config["dram_queue_entries"]]
        for b in ((self.turn + i) % len(self.banks) for i in range(len(self.banks))):
            bank = self.banks[b]
            waiting = [request for request in queue if request[4] % len(self.banks) == b]
            if bank["request"] is None and waiting:
                hits = [request for request in waiting if request[4] == bank["row"]]
                bank["request"] = (hits or waiting)[0]
                bank["left"] = bank["request"][3]
                bank["since"], bank["changed"] = now, False
                self.queue = [other for other in self.queue if other is not bank["request"]]
                self.turn = (self.turn + 1) % len(self.banks)
                return

    def change_row(self, b, now):
        bank = self.banks[b]
        if bank["row"] is None:
            if max(bank["free"]["open"], self.free["open"]) > now:
                return False
            self.open(b, now)
            bank["changed"] = True
            return True
        if bank["free"]["close"] > now:
            return False
        bank["row"], bank["changed"] = None, True
        closed = now + self.cycles("dram_trp")
        bank["free"]["open"] = max(bank["free"]["open"], closed)
        self.turn = (b + 1) % len(self.banks)
        return True

    def can_burst(self, b, now):
        kind = "write" if self.banks[b]["request"][1] is None else "read"
        return (
            self.bus.is_free(now)
            and self.banks[b]["free"][kind] <= now
            and self.free[kind] <= now
            and self.groups[b % len(self.groups)] <= now
        )

    def burst(self, b, now):
        bank, config = self.banks[b], self.config
        self.count_wait(bank, now)
        count = min(bank["left"], config["dram_burst_bytes"])
        bank["left"] -= count
        time = self.time_of(count)
        self.bus.take(now, time)
        self.stats["transfers"] += time
        self.last = self.bus.busy_until
        full = self.time_of(config["dram_burst_bytes"])
        self.groups[b % len(self.groups)] = now + full * config["dram_tccdl"] // config["dram_tccd"]
        if bank["request"][1] is None:
            self.free["read"] = now + self.cycles("dram_wl", "dram_twtr") + time
            closed = now + self.cycles("dram_wl", "dram_twr") + time
        else:
            turn = max(config["dram_cl"] + 2 - config["dram_wl"], 0)
            self.free["write"] = now + turn * self.machine.dram_period + time
            closed = now + self.cycles("dram_trtp")
        bank["free"]["close"] = max(bank["free"]["close"], closed)
        if bank["left"] == 0:
            self.done(bank["request"], now)
            bank["request"] = None

    def count_wait(self, bank, now):
        """Count for what the bus has waited before a burst."""
        kind = "write" if bank["request"][1] is None else "read"
        waited = max(now - max(self.bus.busy_until, bank["since"]), 0)
        if bank["changed"] and bank["free"][kind] >= self.free[kind]:
            self.stats["rows"] += waited
        elif self.free[kind] > self.bus.busy_until:
            self.stats["turnarounds"] += waited
        else:
            self.stats["transfers"] += waited
        bank["changed"] = False

    def open(self, b, now):
        bank = self.banks[b]
        bank["row"] = bank["request"][4]
        self.machine.totals["dram_row_misses"] += 1
        self.turn = (b + 1) % len(self.banks)
        self.free["open"] = now + self.cycles("dram_trrd")
        sooner = max(self.config["dram_trcd"] - self.config["dram_wl"] - 1, 0)
        bank["free"] = Counter(
            read=now + self.cycles("dram_trcd"),
            write=now + sooner * self.machine.dram_period,
            close=now + self.cycles("dram_tras"),
            open=now + self.cycles("dram_tras", "dram_trp"),
        )
