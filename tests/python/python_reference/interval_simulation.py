"""Plain definition of interval simulation: warps by steps, everything else one event after another.

Lines are looked up and slices of L2 read and written as in the plain timing stage. With a window of
one cycle, all of the GPU goes on in the order of time; with the core's, SMs go on alone as long as
answers take at least. Left out: rows of DRAM, and what warps wait for (the CPI stack).
"""

import heapq
import itertools
import math

import numpy as np

from python_reference import barriers, timing
from python_reference.instruction_cache import Code
from python_reference.interval_scheduler import Scheduler
from python_reference.interval_steps import issue_step, steps
from python_reference.memory import resident_blocks, store_turns
from python_reference.timing_memory import Slice
from python_reference.timing_trace import instructions_of, parts_of


def up(time):
    """Return the cycle in which something is seen, but for rounding."""
    return math.ceil(time - 1e-6)


class Agenda:
    """Events by their cycle, those of one cycle in the order in which they were added."""

    def __init__(self):
        self.events, self.added, self.now = [], itertools.count(), 0

    def add(self, time, happen, *what):
        cycle = max(math.floor(time), self.now)
        heapq.heappush(self.events, (cycle, next(self.added), time, happen, what))

    def first(self):
        return self.events[0][0] if self.events else math.inf

    def run(self, end):
        while self.first() < end:
            self.now, _, time, happen, what = heapq.heappop(self.events)
            happen(*what, time)
        self.now = max(self.now, end)


class Machine(timing.Machine):
    """A GPU; L2 persists from kernel to kernel."""

    def __init__(self, config, window=None):
        super().__init__(config)
        clock = config["clock_ghz"]
        l2_clock = config["l2_clock_ghz"] or clock
        self.l2_period = clock / l2_clock
        self.dram_period = clock / (config["dram_clock_ghz"] or l2_clock)
        is_first = config["l1_latency_place"] == "before_tags"
        self.pipeline = max(math.ceil(config["l1_latency"]) - 1, 0) if is_first else 0
        self.window = window or max(int(config["l2_latency"]) - self.pipeline, 1)

    def run(self, kernel):
        config, self.kernel = self.config, kernel
        self.table = kernel.instructions.to_dict("records")
        self.code = Code(kernel, config)
        self.totals = timing.Counter()
        self.blocks = [
            (block, len(warps))
            for block, (_, warps) in enumerate(kernel.blocks())
            if any(len(kernel.warp(block, w)["instruction"]) for w in range(len(warps)))
        ]
        num_blocks = sum(1 for _ in kernel.blocks())
        places = min(resident_blocks(config["memory"]["sm"], kernel), num_blocks)
        num_sms = min(config["memory"]["num_sms"], num_blocks)
        self.packets, self.starts_free = 0, 0.0
        self.sms = [Sm(self, places) for _ in range(num_sms)]
        self.memory_side = MemorySide(self)
        for _ in range(places):
            for sm in self.sms:
                self.start_next(sm, 0)
        now = 0
        while now < math.inf:
            end = now + self.window
            for sm in self.sms:
                sm.begin_window()
            self.run_sms(end)
            for sm in self.sms:
                for packet in sm.outbox:
                    self.memory_side.send(sm, packet)
                sm.outbox.clear()
            self.memory_side.agenda.run(end)
            # Where nothing happens, nothing is looked at.
            now = min([self.memory_side.agenda.first(), *(sm.next_window(end) for sm in self.sms)])
            now = max(now, end)
        return self.result()

    def run_sms(self, end):
        while (now := min(sm.next() for sm in self.sms)) < end:
            awake = [sm for sm in self.sms if sm.next() <= now]
            for sm in awake:
                sm.wake(now)
            for sm in awake:
                for _ in range(sm.freed):
                    self.start_next(sm, now + math.ceil(self.config["block_replacement_cycles"]))
                sm.freed = 0
            for sm in awake:
                sm.serve(now)

    def start_next(self, sm, now):
        if self.blocks:
            start = max(now, up(self.starts_free))
            self.starts_free = (
                max(self.starts_free, start - 1) + self.config["block_interval_cycles"]
            )
            sm.start(*self.blocks.pop(0), start)

    def result(self):
        assert self.packets == 0
        assert not any(sm.by_age for sm in self.sms)
        for sm in self.sms:
            for line, dirty, _ in sm.l1.flush():
                self.totals["l1_flush_sectors"] += len(dirty)
                for l2_line, part in parts_of(line, dirty, sm.l1.per_line, self.l2.per_line):
                    hits, fetch, forward, evicted = self.l2.write(l2_line, part)
                    self.totals.update(
                        l2_write_requests=1,
                        l2_write_sectors=len(part),
                        l2_write_sector_hits=len(hits),
                        dram_read_sectors=len(fetch),
                        dram_write_sectors=len(forward) + (len(evicted[1]) if evicted else 0),
                    )
        self.totals["l2_dirty_sectors"] = self.l2.dirty_sectors()
        ends = [sm.end for sm in self.sms]
        if self.config["kernel_end"] != "last_warp":
            ends += [one.last_write + 1 for one in self.memory_side.slices if one.last_write >= 0]
        if self.config["kernel_end"] == "last_transfer":
            ends += [one.last + 1 for one in self.memory_side.channels if one.last >= 0]
        if self.config["kernel_end"] == "last_acknowledgement":
            stored = [one.last_write for one in self.memory_side.slices if one.last_write >= 0]
            way_back = self.config["l2_latency"] - self.pipeline
            ends += [time + 1 + way_back for time in stored]
        return {
            "cycles": math.floor(max(*ends, 0)),
            "instructions": sum(sm.instructions for sm in self.sms),
            "sm_cycles": sum(sm.end for sm in self.sms),
            "totals": self.totals,
        }


class Sm(timing.PlainSm):
    """An SM: its warps go from head to head; its load-store unit looks a line up per cycle."""

    def __init__(self, machine, places):
        super().__init__(machine, 0, machine.memory.l1_config(machine.kernel))
        self.free = list(range(places))
        self.warps_per_block = machine.kernel.warps_per_block
        config = self.config
        self.issue_step = issue_step(config)
        self.count = config["schedulers_per_sm"]
        rate = config["issue_width"] / self.count
        self.schedulers = [Scheduler(rate, config["scheduler"]) for _ in range(self.count)]
        self.first_slots = [0.0] * self.count
        self.wakes, self.ready, self.last = [], [], [None] * self.count
        self.waiting, self.replies = [], []
        self.freed, self.now, self.unit_free, self.starts = 0, 0, 0, 0.0
        self.passes_l1 = False

    def begin_window(self):
        self.arrivals += self.replies
        self.replies = []

    def next(self):
        times = [self.wakes[0][0]] if self.wakes else []
        times += [up(self.arrivals[0][0])] if self.arrivals else []
        times += [up(time) for one in self.schedulers if (time := one.next()) < math.inf]
        if self.ready or self.queue:  # looked at in each cycle
            times.append(max(self.now + 1, self.unit_free if not self.ready else 0))
        return min(times, default=math.inf)

    def next_window(self, end):
        if self.ready or any(entry["lines"] for entry in self.queue):
            return end
        coming = [time for time, _ in (*self.arrivals[:1], *self.replies[:1])]
        coming += [time for one in self.schedulers if (time := one.next()) < math.inf]
        return min([*(wake[0] for wake in self.wakes[:1]), *map(up, coming)], default=math.inf)

    # Warps

    def start(self, block, num_warps, now):
        machine, config = self.machine, self.config
        slot = self.free.pop(0)
        self.starts = max(self.starts, float(now))
        mates = {"slot": slot, "warps": []}
        has_all = num_warps == self.warps_per_block
        place = slot * self.warps_per_block
        for w in range(num_warps):
            program = instructions_of(machine.kernel, machine.table, block, w)
            if not program:
                has_all = False
                continue
            scheduler = place % self.count
            first = max(self.first_slots[scheduler], self.starts)
            start = up(first)
            self.first_slots[scheduler] = first + self.count / config["issue_width"]
            self.starts += config["warp_start_cycles"]
            accesses = [
                one for one in program if machine.table[one[0]]["op_class"] == "memory" and one[1]
            ]
            warp = {
                "steps": steps(machine.kernel, config, block, w),
                "accesses": [one for one in accesses if one[2]],
                "sent": [],
                "step": 0,
                "block": mates,
                "scheduler": place % self.count,
                "age": self.age,
                "head": start - self.issue_step,
                "head_before": start - self.issue_step,
                "all_done": start,
                "is_blocked": False,
                "at_barrier": None,
                "starts": True,
            }
            self.age += 1
            place += 1
            self.instructions += len(program)
            mates["warps"].append(warp)
            self.by_age.append(warp)
            heapq.heappush(self.wakes, (start, warp["age"], warp))
        mates["barriers"] = barriers.Block(has_all)

    def begin_step(self, warp):
        step, head = warp["steps"][warp["step"]], warp["head"]
        own = head + float(np.float32(step["fresh"]))
        if step["carried"]:
            own = max(own, warp["head_before"] + float(np.float32(step["carried"])))
        warp["is_blocked"] = False
        self.schedulers[warp["scheduler"]].begin_step(
            warp["age"], own - head, step["instructions"], step["uses"], head
        )

    def end_steps(self, now):
        """Go on with warps whose instructions have issued."""
        for scheduler in self.schedulers:
            while (time := scheduler.next()) <= now + 1e-6:
                ages = scheduler.finish()
                for warp in [w for age in ages for w in self.by_age if w["age"] == age]:
                    warp["ready"] = time
                    self.look_at_waits(warp, now)

    def look_at_waits(self, warp, now):
        step, ready = warp["steps"][warp["step"]], warp["ready"]
        warp["is_blocked"] = False
        loads = [entry["load"] for entry in warp["sent"] if entry["load"]]
        for number, until_sent in step["waits"].items():
            entry = warp["sent"][number]
            if until_sent:
                warp["is_blocked"] |= entry["sent"] is None
                ready = max(ready, (entry["sent"] or 0) + 1)
            else:
                warp["is_blocked"] |= entry["load"]["left"] > 0
                ready = max(ready, entry["load"]["done"])
        if step["action"] == "end":
            warp["is_blocked"] |= any(load["left"] for load in loads)
            ready = max([ready, warp["all_done"], *(load["done"] for load in loads)])
        if not warp["is_blocked"]:
            if step["comes_to_code"]:
                line = self.machine.code.of_row[step["row"]]
                ready = max(ready, self.instruction_cache.come_to(line, now))
            heapq.heappush(self.wakes, (max(up(ready), now), warp["age"], warp))

    def arrive(self, load, done, latency):
        load["done"] = max(load["done"], done)
        load["left"] -= 1
        if not load["left"] and load["warp"]["is_blocked"]:
            self.look_at_waits(load["warp"], self.now)

    def head_issued(self, warp, now):
        warp["head_before"], warp["head"] = warp["head"], float(now)
        warp["step"] += 1
        self.begin_step(warp)

    def wake(self, now):
        """Take what has arrived, and go on with warps whose heads are ready, the oldest first."""
        self.now = now
        while self.arrivals and up(self.arrivals[0][0]) <= now:
            self.deliver(self.arrivals.pop(0)[1], now)
        self.end_steps(now)
        while self.wakes and self.wakes[0][0] <= now:
            warp = heapq.heappop(self.wakes)[2]
            action = warp["steps"][warp["step"]]["action"]
            if warp.pop("starts", False):
                self.begin_step(warp)
                self.end_steps(now)
            elif action in ("access", "shared"):
                self.ready.append(warp)
            elif action in ("barrier", "arrive"):
                block, row = warp["block"], warp["steps"][warp["step"]]["row"]
                step = block["barriers"].step_of(self.machine.table[row]["opcode"])
                if step:
                    block["barriers"].arrive(step)
                if action == "barrier":
                    warp["at_barrier"] = step[1]
                else:
                    self.head_issued(warp, now)
                self.check_barrier(block, now)
            elif action == "end":
                self.end_warp(warp, now)
            else:
                self.head_issued(warp, now)

    def check_barrier(self, block, now):
        open_now = block["barriers"].open(len(block["warps"]))
        for warp in block["warps"]:
            if warp["at_barrier"] in open_now:
                warp["at_barrier"] = None
                self.head_issued(warp, now)

    def end_warp(self, warp, now):
        self.end = max(self.end, now)
        self.by_age = [other for other in self.by_age if other is not warp]
        self.last = [None if one is warp else one for one in self.last]
        block = warp["block"]
        block["warps"] = [other for other in block["warps"] if other is not warp]
        if block["warps"]:
            self.check_barrier(block, now)
        else:
            self.free = sorted([*self.free, block["slot"]])
            self.freed += 1

    # The load-store unit

    def choose(self, now):
        """Return the first warp of the first scheduler that has one; they begin in turn."""
        kind = self.config["scheduler"]
        for i in range(self.count):
            scheduler = (now + i) % self.count
            last = self.last[scheduler]
            order = [w for w in self.by_age if w["scheduler"] == scheduler]
            if kind in ("gto", "gty"):
                order = [w for w in order if w is last] + (order[::-1] if kind == "gty" else order)
            elif kind == "lrr" and last is not None:
                after = order.index(last) + 1
                order = order[after:] + order[:after]
            for warp in order:
                if any(warp is ready for ready in self.ready):
                    return warp
        raise AssertionError("no warp is ready")

    def serve(self, now):
        """Take an access of a warp, and look up a line of the first access."""
        self.queue = [entry for entry in self.queue if entry.get("leaves", math.inf) > now]
        if self.ready and self.accepts(now):
            warp = self.choose(now)
            self.last[warp["scheduler"]] = warp
            self.ready = [other for other in self.ready if other is not warp]
            row, mask, count, sectors, masks = warp["accesses"][len(warp["sent"])]
            self.enqueue(warp, row, mask, count, sectors, masks, now)
            warp["sent"].append(self.queue[-1])
            self.head_issued(warp, now)
        entry = next((one for one in self.queue if "leaves" not in one), None)
        if entry is not None and self.unit_free <= now:
            if "begun" not in entry:
                self.begin(entry, now)
            interval = max(self.config["lsu_interval"], entry["passes"])
            if entry["wavefronts"]:
                is_atomic = entry["kind"] in ("atomic", "reduction")
                each = self.config["shared_wavefront_cycles"]
                entry["sent"] = now + each * (entry["wavefronts"] - 1)
                free = now + (1 if is_atomic else interval)
                self.leave(entry, entry["sent"] + 1, max(entry["sent"] + each, free))
                if entry["load"]:
                    latency = math.ceil(self.config["latency"]["shared_memory"])
                    self.arrive(entry["load"], entry["sent"] + latency, {})
            else:
                self.look_up_lines(entry, interval, now)
        self.end_steps(now)
        if self.wakes and self.wakes[0][0] <= now:
            self.wake(now)

    def look_up_lines(self, entry, interval, now):
        for _ in range(self.config["l1_tags_per_cycle"] if entry["passes"] else 1):
            if self.look_up(entry, *entry["lines"][0], now):
                return
            entry["lines"].pop(0)
            if not entry["lines"]:
                entry["sent"] = now
                self.leave(entry, now + 1, max(now + 1, entry["begun"] + interval))
                return

    def leave(self, entry, time, free):
        entry["leaves"], self.unit_free = time, free
        if entry["load"] is None or entry["load"]["warp"]["is_blocked"]:
            for warp in self.by_age:
                if warp["is_blocked"] and any(one is entry for one in warp["sent"]):
                    self.look_at_waits(warp, self.now)

    def look_up(self, entry, line, touched, now):
        self.passes_l1 = self.reaches_l1(entry, line)
        return super().look_up(entry, line, touched, now)

    def write_back(self, written_back, now):
        passes, self.passes_l1 = self.passes_l1, False
        super().write_back(written_back, now)
        self.passes_l1 = passes

    def noc_is_full(self):
        most = self.config["noc_queue_entries"] + self.machine.pipeline
        return len(self.waiting) >= most

    def send(self, line, sectors, kind, evict_first, fetch, now):
        first = len(self.outbox)
        super().send(line, sectors, kind, evict_first, fetch, now)
        for packet in self.outbox[first:]:
            packet["sent"] = float(now + (self.machine.pipeline if self.passes_l1 else 0))
            packet["lanes"] = float(np.float32(packet["lanes"]))
            self.waiting.append(packet)


class L2Slice(Slice):
    """A slice of L2: its requests one after the other, each when it gets free or a period before."""

    def __init__(self, side, index):
        super().__init__(side.machine, index)
        self.side = side
        self.channel = side.channels[index // side.sharers]
        self.time_free = self.request_port = self.reply_port = 0.0
        self.replies = 0
        self.is_awake = self.waits_for_reply = False
        self.senders = []

    def is_full(self):
        return self.replies >= self.config["l2_queue_entries"]

    def dram_is_full(self):
        waiting = self.config["l2_miss_queue_entries"] * self.side.sharers
        return len(self.channel.queue) >= self.config["dram_queue_entries"] + waiting

    def use_port(self, sectors, lanes, now, written=()):
        side, rate = self.side, self.config["l2_slice_bytes_per_cycle"]
        turns = max(1.0, self.config["l2_atomic_lane_turns"] * lanes)
        if written:
            turns = store_turns(self.config["l2_partial_write_turns"], written)
        cycles = side.request_cycles * turns
        if rate:
            cycles = max(cycles, 32 * len(sectors) * (side.period / rate))
        self.time_free = max(self.time_free, now) + cycles

    def to_dram(self, line, sectors, mshr, packet=None):
        self.channel.queue.append((self, mshr, packet, 32 * len(sectors)))
        if not self.channel.is_awake:
            self.channel.step(self.now)

    def turn(self, now):
        """Serve requests until one has to wait."""
        self.now, side = now, self.side
        while self.requests:
            if self.time_free - side.period > now:
                self.wake(now)
                return
            packet = self.requests[0]
            cause = (self.write if packet["kind"] == "write" else self.read)(packet, now)
            if cause == "reply":
                self.waits_for_reply = True
                return
            if cause:
                if self not in self.channel.slices:
                    self.channel.slices.append(self)
                return
            packet["mark"] = now
            if not packet["left"]:
                self.finish(packet, now)
            self.requests.pop(0)
            if self.senders:
                side.agenda.add(now, side.sender_comes, self.senders.pop(0))

    def come(self, now):
        self.is_awake = False
        self.turn(now)

    def wake(self, now):
        if self.is_awake or not self.requests:
            return
        when = max(now, self.time_free - self.side.period)
        if when <= now:
            self.turn(now)
        else:
            self.wake_at(when)

    def wake_at(self, when):
        if not self.is_awake:
            self.is_awake = True
            self.side.agenda.add(when, self.come)

    def fill(self, mshr, written, now):
        self.now = now
        for packet in [written] if mshr is None else mshr["targets"]:
            if packet is not None:
                packet["left"] -= 1
                if not packet["left"]:
                    self.finish(packet, now)
        if mshr is not None:
            self.mshrs = [other for other in self.mshrs if other is not mshr]
            if self in self.channel.slices:
                self.channel.slices.remove(self)
                self.wake(now)

    def finish(self, packet, now):
        side = self.side
        if not packet["fetch"]:
            side.machine.packets -= 1
            return
        self.replies += 1
        if side.is_crossbar:
            start = max(now, self.reply_port - side.period)
            self.reply_port = max(self.reply_port, start) + side.request_cycles
            if start <= now:
                side.send_reply(packet, now)
            else:
                side.agenda.add(start, side.send_reply, packet)
            return
        side.waiting_replies.append(packet)
        if not side.replies_are_awake:
            side.step_replies(now)


class DramChannel:
    """A channel of DRAM without rows."""

    def __init__(self, side):
        self.side, self.queue, self.slices = side, [], []
        self.time_free, self.last, self.is_awake = 0.0, -1.0, False

    def come(self, now):
        self.is_awake = False
        self.step(now)

    def step(self, now):
        side, before = self.side, len(self.queue)
        while self.queue:
            start = self.time_free - side.machine.dram_period
            if start > now:
                if not self.is_awake:
                    self.is_awake = True
                    side.agenda.add(start, self.come)
                break
            owner, mshr, packet, count = self.queue.pop(0)
            self.time_free = max(self.time_free, now) + count * side.dram_cycles_per_byte
            self.last = max(self.last, self.time_free)
            if mshr is not None or packet is not None:
                side.agenda.add(now + side.dram_latency, owner.fill, mshr, packet)
        if len(self.queue) < before:
            waiting, self.slices = self.slices, []
            for one in waiting:
                one.wake(now)


class MemorySide:
    """The NoC, the slices of L2 and the channels of DRAM."""

    def __init__(self, machine):
        self.machine, config = machine, machine.config
        self.config, self.period = config, machine.l2_period
        self.agenda = Agenda()
        clock, channels = config["clock_ghz"], config["dram_channels"]
        self.is_crossbar = config["noc_topology"] == "crossbar"
        self.noc_cycles_per_byte = 0.0 if self.is_crossbar else clock / config["noc_bandwidth_gbs"]
        port = config["noc_sm_bytes_per_cycle"]
        self.port_cycles_per_byte = self.period / port if port else 0.0
        self.request_cycles = config["l2_slice_request_cycles"] * self.period
        self.dram_cycles_per_byte = clock * channels / config["dram_bandwidth_gbs"]
        self.dram_latency = config["dram_latency"]
        machine.sharers = self.sharers = config["memory"]["l2"]["slices"] // channels
        machine.channels = self.channels = [DramChannel(self) for _ in range(channels)]
        self.slices = [L2Slice(self, s) for s in range(config["memory"]["l2"]["slices"])]
        self.ports = {id(sm): 0.0 for sm in machine.sms}
        self.reply_ports = {id(sm): 0.0 for sm in machine.sms}
        self.queues = {id(sm): [] for sm in machine.sms}
        self.is_queued = {id(sm): False for sm in machine.sms}
        self.waiting_senders, self.requests_free, self.requests_are_awake = [], 0.0, False
        self.waiting_replies, self.replies_free, self.replies_are_awake = [], 0.0, False

    def bytes_of(self, packet, is_data):
        return 32 * len(packet["sectors"]) if is_data else self.config["noc_control_bytes"]

    def send(self, sm, packet):
        self.queues[id(sm)].append(packet)
        self.wake_sender(sm, 0.0)

    def wake_sender(self, sm, now):
        queue = self.queues[id(sm)]
        if queue and not self.is_queued[id(sm)]:
            self.is_queued[id(sm)] = True
            port = self.ports[id(sm)] - self.period
            self.agenda.add(max(now, queue[0]["sent"], port), self.sender_comes, sm)

    def sender_comes(self, sm, now):
        self.waiting_senders.append(sm)
        if not self.requests_are_awake:
            self.step_requests(now)

    def requests_come(self, now):
        self.requests_are_awake = False
        self.step_requests(now)

    def step_requests(self, now):
        while self.waiting_senders:
            if self.requests_free - self.period > now:
                self.requests_are_awake = True
                self.agenda.add(self.requests_free - self.period, self.requests_come)
                return
            self.grant(self.waiting_senders.pop(0), now)

    def grant(self, sm, now):
        packet = self.queues[id(sm)][0]
        one = self.slices[packet["slice"]]
        if len(one.requests) >= self.config["l2_queue_entries"]:
            one.senders.append(sm)
            return
        if self.is_crossbar:
            if one.request_port - self.period > now:
                self.agenda.add(one.request_port - self.period, self.sender_comes, sm)
                return
            one.request_port = max(one.request_port, now) + self.request_cycles
        count = self.bytes_of(packet, packet["kind"] != "read")
        self.requests_free = max(self.requests_free, now) + count * self.noc_cycles_per_byte
        port = self.ports[id(sm)]
        self.ports[id(sm)] = max(port, now) + count * self.port_cycles_per_byte
        self.queues[id(sm)].pop(0)
        sm.waiting.pop(0)
        self.is_queued[id(sm)] = False
        one.requests.append(packet)
        if len(one.requests) == 1:
            one.wake(now)
        self.wake_sender(sm, now)

    def replies_come(self, now):
        self.replies_are_awake = False
        self.step_replies(now)

    def step_replies(self, now):
        while self.waiting_replies:
            if self.replies_free - self.period > now:
                self.replies_are_awake = True
                self.agenda.add(self.replies_free - self.period, self.replies_come)
                return
            self.send_reply(self.waiting_replies.pop(0), now)

    def send_reply(self, packet, now):
        sm, one = packet["sm"], self.slices[packet["slice"]]
        count = self.bytes_of(packet, packet["kind"] in ("read", "atomic"))
        self.replies_free = max(self.replies_free, now) + count * self.noc_cycles_per_byte
        sent = max(now, self.reply_ports[id(sm)])
        self.reply_ports[id(sm)] = sent + count * self.port_cycles_per_byte
        arrival = sent + self.config["l2_latency"] - self.machine.pipeline
        sm.replies.append((arrival, packet))
        one.replies -= 1
        if one.waits_for_reply:
            one.waits_for_reply = False
            one.wake_at(now)


__all__ = ["Agenda", "Machine"]
