"""Plain definition of slices of L2 and DRAM channels, for the timing stage (timing.py)."""

import math

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
        self.last_write = -1

    def cycle(self, now):
        self.take_fills(now)
        if not self.requests:
            return
        packet = self.requests[0]
        serve = self.write if packet["kind"] == "write" else self.read
        cause = serve(packet, now)
        if cause:
            self.waited[cause] += self.machine.l2_period
        else:
            self.requests.pop(0)
            packet["waited"]["queue"] += self.waited["dram"] - packet["marks"]["dram"]
            packet["waited"]["noc"] += self.waited["reply"] - packet["marks"]["reply"]

    def is_full(self):
        return len(self.replies) >= self.config["l2_queue_entries"]

    def take_fills(self, now):
        while self.fills and self.fills[0][0] <= now:
            time, start, mshr = self.fills[0]
            period = self.machine.l2_period
            seen = max(-(-time // period), start // period + 1) * period
            while mshr["targets"]:
                packet = mshr["targets"][0]
                answers = packet["kind"] != "reduction"
                if packet["left"] == 1 and answers and self.is_full():
                    return
                mshr["targets"].pop(0)
                mshr["served"] += 1
                queued = min(max(start - packet["mark"], 0), now - packet["mark"])
                late = max(now - max(packet["mark"], seen), 0)
                packet["waited"]["queue"] += queued
                packet["waited"]["noc"] += late
                packet["waited"]["dram"] += now - packet["mark"] - queued - late
                packet["mark"] = now
                packet["left"] -= 1
                if packet["left"] == 0:
                    self.finish(packet, answers)
            self.mshrs = [m for m in self.mshrs if m is not mshr]
            self.fills.pop(0)

    def finish(self, packet, answers):
        if answers:
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
        return len(self.channel.queue) >= self.config["dram_queue_entries"]

    def mshrs_are_full(self):
        return len(self.mshrs) >= self.config["l2_mshrs"]

    def read(self, packet, now):
        l2, totals = self.machine.l2, self.machine.totals
        modifies = packet["kind"] != "read"
        answers = packet["kind"] != "reduction"
        wanted = set(packet["sectors"])
        fetched = self.absent(packet["line"], wanted)
        joined = [
            m
            for m in self.mshrs
            if m["line"] == packet["line"] and m["sectors"] & (wanted - fetched)
        ]
        if any(len(m["targets"]) + m["served"] >= self.config["l2_mshr_targets"] for m in joined):
            return "dram"
        if fetched and self.mshrs_are_full():
            return "dram"
        if (fetched or (modifies and l2.through)) and self.dram_is_full():
            return "dram"
        if not fetched and not joined and answers and self.is_full():
            return "reply"
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
        if fetched:
            packet["left"] += 1
            self.fetch(packet["line"], fetched, [packet])
        if written_back:
            self.write_to_dram(written_back[0], written_back[1])
        if modifies:
            _, _, forward, _ = l2.write(packet["line"], packet["sectors"], 0, packet["evict_first"])
            self.write_to_dram(packet["line"], forward)
        packet["mark"] = now
        if packet["left"] == 0:
            self.finish(packet, answers)
        return None

    def write(self, packet, now):
        l2, totals = self.machine.l2, self.machine.totals
        line = packet["line"]
        fetches = l2.write_miss == "fetch_on_write" and self.absent(line, packet["sectors"])
        if fetches and self.mshrs_are_full():
            return "dram"
        needs_dram = (
            fetches or l2.through or not l2.contains(line) or l2.write_miss == "no_allocate"
        )
        if needs_dram and self.dram_is_full():
            return "dram"
        hits, fetch, forward, written_back = l2.write(
            line, packet["sectors"], 0, packet["evict_first"]
        )
        totals.update(
            l2_write_requests=1,
            l2_write_sectors=len(packet["sectors"]),
            l2_write_sector_hits=len(hits),
        )
        if fetch:
            self.fetch(line, fetch, [])
        self.write_to_dram(line, forward)
        if written_back:
            self.write_to_dram(written_back[0], written_back[1])
        self.last_write = now
        self.machine.packets -= 1
        return None

    def fetch(self, line, sectors, targets):
        mshr = {"line": line, "sectors": sectors, "targets": targets, "served": 0}
        self.mshrs.append(mshr)
        self.machine.totals["dram_read_sectors"] += len(sectors)
        self.to_dram(line, sectors, mshr)

    def write_to_dram(self, line, sectors):
        if sectors:
            self.machine.totals["dram_write_sectors"] += len(sectors)
            self.to_dram(line, sectors, None)

    def to_dram(self, line, sectors, mshr):
        self.channel.queue.append((self, mshr, 32 * len(sectors), self.row_of(line)))

    def row_of(self, line):
        if not self.config["dram_row_bytes"]:
            return 0
        l2 = self.config["memory"]["l2"]
        chunk, rest = divmod(line * l2["line_bytes"], l2["slice_interleave_bytes"])
        address = chunk // l2["slices"] * l2["slice_interleave_bytes"] + rest
        sharers = self.machine.sharers
        return address // self.config["dram_row_bytes"] * sharers + self.index % sharers


class Channel:
    """A DRAM channel."""

    def __init__(self, machine):
        self.machine, self.config = machine, machine.config
        self.bus = Link(machine.dram_period)
        self.queue = []
        self.rate = machine.transfer_time(
            1024.0 * self.config["dram_channels"], self.config["dram_bandwidth_gbs"]
        )
        self.banks = {}

    def first_ready(self, now):
        for request in self.queue:
            if not self.config["dram_row_bytes"]:
                return request
            row, ready = self.banks.get(request[3] % self.config["dram_banks"], (None, 0))
            if row == request[3] and ready <= now:
                return request
        return None

    def cycle(self, now):
        while self.bus.is_free(now):
            request = self.first_ready(now)
            if request is None:
                break
            self.queue = [other for other in self.queue if other is not request]
            owner, mshr, count, _ = request
            self.bus.take(now, count * self.rate // 1024)
            self.machine.totals["dram_writes" if mshr is None else "dram_reads"] += 1
            if mshr is not None:
                owner.fills.append((now + ticks(self.config["dram_latency"]), now, mshr))
        if not self.config["dram_row_bytes"]:
            return
        for _, _, _, row in self.queue:
            bank = row % self.config["dram_banks"]
            is_open, _ = self.banks.get(bank, (None, 0))
            if not any(other[3] == is_open for other in self.queue):
                self.banks[bank] = (row, now + ticks(self.config["dram_row_miss_cycles"]))
                self.machine.totals["dram_row_misses"] += 1
