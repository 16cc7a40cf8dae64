"""Plain definition of the timing stage: every component looked at in every cycle of its clock.

Here are the GPU as a whole and its SMs; slices of L2 and DRAM channels are in timing_memory.py.
"""

import math
import re
from collections import Counter

from python_reference import barriers, memory, phases, tensor
from python_reference.instruction_cache import Code, InstructionCache, WarpCode
from python_reference.lost_slots import PARTS, LostSlots, component_of, in_detail
from python_reference.memory import ALL_BYTES, LOCAL, PlainCache, grouped, resident_blocks
from python_reference.timing_control import ControlledWarp, unit_of
from python_reference.timing_memory import TICKS, Channel, Link, Slice, ticks
from python_reference.timing_trace import instructions_of, parts_of

NEVER = 2**62
#: In which lost issue slots are shared.
PARTS_PER_SLOT = 2**20


def in_proportion(amount, shares):
    """Divide whole parts in proportion to shares; the largest takes what rounding leaves."""
    total = sum(shares.values())
    parts = {name: amount * shares.get(name, 0) // total for name in PARTS}
    largest = max(PARTS, key=lambda name: (shares.get(name, 0), -PARTS.index(name)))
    parts[largest] += amount - sum(parts.values())
    return parts


class Machine:
    """A GPU; L2 persists from kernel to kernel."""

    def __init__(self, config):
        self.config = config
        self.memory = memory.PlainMemorySystem(config["memory"])
        self.l2 = self.memory.l2
        ratio = config["clock_ghz"]
        l2_clock, dram_clock = config["l2_clock_ghz"], config["dram_clock_ghz"]
        self.l2_period = ticks(ratio / l2_clock) if l2_clock else TICKS
        self.dram_period = ticks(ratio / dram_clock) if dram_clock else self.l2_period

    def transfer_time(self, count, rate):
        return ticks(count * self.config["clock_ghz"] / rate)

    def run(self, kernel):
        config = self.config
        self.kernel = kernel
        self.table = kernel.instructions.to_dict("records")
        self.code = Code(kernel, config)
        self.totals, self.waited = Counter(), Counter()
        self.waiting_blocks = [
            position
            for position, (_, warps) in enumerate(kernel.blocks())
            if any(len(kernel.warp(position, w)["instruction"]) for w in range(len(warps)))
        ]
        num_blocks = sum(1 for _ in kernel.blocks())
        num_sms = min(config["memory"]["num_sms"], num_blocks)
        slots = min(resident_blocks(config["memory"]["sm"], kernel), num_blocks)
        l1 = self.memory.l1_config(kernel)
        self.build(num_sms, slots * kernel.warps_per_block, l1)
        # Places for blocks: the cycle from which on they are free, in the order in which they got so.
        self.places = [(0, sm) for _ in range(slots) for sm in self.sms]
        self.go()
        return self.result()

    def build(self, num_sms, warp_slots, l1):
        config = self.config
        self.packets = 0
        sm_class = getattr(self, "sm_class", PlainSm)
        self.sms = [sm_class(self, warp_slots, l1) for _ in range(num_sms)]
        num_slices = config["memory"]["l2"]["slices"]
        self.channels = [Channel(self) for _ in range(config["dram_channels"])]
        self.sharers = num_slices // config["dram_channels"]
        self.slices = [Slice(self, s) for s in range(num_slices)]
        self.request_link, self.reply_link = Link(self.l2_period), Link(self.l2_period)
        self.source_turns = [0, 0]
        self.request_ports = [Link(self.l2_period) for _ in self.sms]
        self.slice_ports = [[Link(self.l2_period) for _ in self.slices] for _ in range(2)]
        self.reply_ports = [0 for _ in self.sms]
        # In a crossbar each destination has turns and a port of its own.
        self.turns = [[0 for _ in self.slices], [0 for _ in self.sms]]
        self.sm_ports = [Link(self.l2_period) for _ in self.sms]
        self.next_start = 0

    def go(self):
        now = 0
        while not self.is_done():
            if now % TICKS == 0:
                self.start_blocks(now // TICKS)
                for sm in self.sms:
                    sm.cycle(now // TICKS)
            if now % self.l2_period == 0:
                self.move_requests(now)
                for one in self.slices:
                    was_full = one.queue_is_full()
                    one.cycle(now)
                    if was_full and not one.queue_is_full():
                        one.room_since = now
            if now % self.dram_period == 0:
                for channel in self.channels:
                    channel.cycle(now)
            if now % self.l2_period == 0:
                self.move_replies(now)
            periods = (TICKS, self.l2_period, self.dram_period)
            now = min((now // period + 1) * period for period in periods)

    def is_product(self, row):
        """Whether an instruction goes on without its warp, which waits for it by number."""
        waits = (re.match(r"wgmma\.wait_group.*\.\d+$", one["opcode"]) for one in self.table)
        return row["opcode"].startswith("wgmma.mma_async") and any(waits)

    def is_done(self):
        return (
            not self.waiting_blocks
            and self.packets == 0
            and not any(sm.num_warps or sm.queue or sm.pipeline for sm in self.sms)
            and not any(one.mshrs or one.fills or one.ready for one in self.slices)
            and not any(channel.is_busy() for channel in self.channels)
        )

    def program(self, position, warp):
        """Return the instructions of a warp, with rows of `table`."""
        return instructions_of(self.kernel, self.table, position, warp)

    def warps_of(self, position):
        """Return how many warps of a block the trace has, and how many the launch has."""
        return len(list(self.kernel.blocks())[position][1]), self.kernel.warps_per_block

    def end_of_awaited_grids(self, warp):
        """Return until when a warp waits for other grids; a kernel alone waits for none."""
        return -1

    def note_trigger(self, warp, instruction, now):
        """Let those start that wait for the trigger of a block; of a kernel alone nobody does."""

    def free_place(self, sm, position, now):
        pause = math.ceil(self.config["block_replacement_cycles"])
        self.places.append((now + pause, sm))

    def start_blocks(self, now, only=None):
        while self.waiting_blocks and self.places:
            place = min(self.places, key=lambda place: place[0])
            if place[0] > now or self.next_start > now * TICKS:
                return
            self.places.remove(place)
            place[1].launch(self.waiting_blocks.pop(0), now)
            # Waiting for the edge of a cycle does not delay the blocks behind.
            earliest = max(self.next_start, (now - 1) * TICKS)
            self.next_start = earliest + ticks(self.config["block_interval_cycles"])

    def port_time(self, count):
        rate = self.config["noc_sm_bytes_per_cycle"]
        return math.floor(count / rate * self.l2_period + 0.5) if rate else 0

    def link_time(self, count):
        if self.config["noc_topology"] == "crossbar":
            return 0
        return self.transfer_time(count, self.config["noc_bandwidth_gbs"])

    def slice_port_time(self):
        if self.config["noc_topology"] != "crossbar":
            return 0
        return math.floor(self.config["l2_slice_request_cycles"] * self.l2_period + 0.5)

    def is_crossbar(self):
        return self.config["noc_topology"] == "crossbar"

    def pairs(self, direction, sources, first_of, now):
        """Yield the numbers of sources that may send; who is told True has sent."""
        link = (self.request_link, self.reply_link)[direction]
        turns = self.turns[direction]
        if self.is_crossbar():
            for to in range(len(turns)):
                for source in ((turns[to] + i) % len(sources) for i in range(len(sources))):
                    if first_of(source) == to and (yield source):
                        turns[to] = (source + 1) % len(sources)
                        break
            return
        refused = 0
        while refused < len(sources) and link.is_free(now):
            source = self.source_turns[direction]
            self.source_turns[direction] = (source + 1) % len(sources)
            sent = first_of(source) is not None and (yield source)
            refused = 0 if sent else refused + 1

    def move(self, direction, sources, first_of, send, now):
        moves = self.pairs(direction, sources, first_of, now)
        source = next(moves, None)
        while source is not None:
            try:
                source = moves.send(send(source, now))
            except StopIteration:
                return

    def move_requests(self, now):
        def slice_of(source):
            outbox = self.sms[source].outbox
            return outbox[0]["slice"] if outbox else None

        self.move(0, self.sms, slice_of, self.send_request, now)

    def send_request(self, source, now):
        sm, port = self.sms[source], self.request_ports[source]
        packet = sm.outbox[0]
        count = 32 * len(packet["sectors"])
        if packet["kind"] == "read":
            count = self.config["noc_control_bytes"]
        target = self.slices[packet["slice"]]
        port_time = self.port_time(count)
        if target.queue_is_full():
            return False
        if port_time and not port.is_free(now):
            return False
        slice_port = self.slice_ports[0][packet["slice"]]
        if self.slice_port_time() and not slice_port.is_free(now):
            return False
        self.request_link.take(now, self.link_time(count))
        if port_time:
            port.take(now, port_time)
        slice_port.take(now, self.slice_port_time())
        sm.outbox.pop(0)
        self.totals.update(noc_request_packets=1, noc_request_bytes=count)
        packet["waited"]["noc"] += now - packet["mark"]
        packet["mark"] = now
        packet["marks"] = dict(target.waited)
        self.count_request(sm, target, packet, port_time, now)
        target.requests.append(packet)
        return True

    def count_request(self, sm, target, packet, port_time, now):
        """Count what a request has waited for: the first of a queue for its port, then its slice."""
        self.waited["requests"] += now - packet["entered"]
        since = max(packet["entered"], sm.first_since)
        waited = now - since
        port = min(max(sm.port_free - since, 0), waited)
        full = waited - port
        if not self.is_crossbar():
            full = min(max(target.room_since - since - port, 0), full)
        self.waited.update(send_port=port, network=waited - port - full)
        target.stats["waited_for"] += full
        sm.first_since, sm.port_free = now, max(sm.port_free, now) + port_time

    def move_replies(self, now):
        def sm_of(source):
            replies = self.slices[source].replies
            return self.sms.index(replies[0]["sm"]) if replies else None

        self.move(1, self.slices, sm_of, self.send_reply, now)

    def send_reply(self, source, now):
        slice_port = self.slice_ports[1][source]
        packet = self.slices[source].replies[0]
        sm = self.sms.index(packet["sm"])
        for port in (slice_port, self.sm_ports[sm]):
            if self.slice_port_time() and not port.is_free(now):
                return False
        self.slices[source].replies.pop(0)
        count = 32 * len(packet["sectors"])
        if packet["kind"] not in ("read", "atomic"):
            count = self.config["noc_control_bytes"]
        self.reply_link.take(now, self.link_time(count))
        for port in (slice_port, self.sm_ports[sm]):
            port.take(now, self.slice_port_time())
        self.totals.update(noc_reply_packets=1, noc_reply_bytes=count)
        sent = max(now, self.reply_ports[sm])
        self.reply_ports[sm] = sent + self.port_time(count)
        self.waited.update(replies=now - packet["mark"], receive_port=sent - now)
        self.waited["l2_latency"] += ticks(self.config["l2_latency"])
        packet["waited"]["noc"] += sent - packet["mark"]
        packet["sm"].arrivals.append((sent + self.way_back(), packet))
        return True

    def way_back(self):
        """Return the ticks of a round trip to L2, which all pass on the way back."""
        back = ticks(self.config["l2_latency"])
        # Beside the pipeline before the tags of L1, through which loads and stores have passed.
        if self.config["l1_latency_place"] == "before_tags":
            back -= max(math.ceil(self.config["l1_latency"]) - 1, 0) * TICKS
        return back

    def result(self):
        l2 = self.l2
        for sm in self.sms:
            for line, dirty, _ in sm.l1.flush():
                self.totals["l1_flush_sectors"] += len(dirty)
                for l2_line, part in parts_of(line, dirty, sm.l1.per_line, l2.per_line):
                    hits, fetch, forward, evicted = l2.write(l2_line, part)
                    self.totals.update(
                        l2_write_requests=1,
                        l2_write_sectors=len(part),
                        l2_write_sector_hits=len(hits),
                        dram_read_sectors=len(fetch),
                        dram_write_sectors=len(forward) + (len(evicted[1]) if evicted else 0),
                    )
        self.totals["l2_dirty_sectors"] = l2.dirty_sectors()
        ends = [sm.end for sm in self.sms]
        if self.config["kernel_end"] != "last_warp":
            ends += [one.last_write // TICKS + 1 for one in self.slices if one.last_write >= 0]
        if self.config["kernel_end"] == "last_transfer":
            ends += [one.last // TICKS + 1 for one in self.channels if one.last is not None]
        if self.config["kernel_end"] == "last_acknowledgement":
            stored = [one.last_write for one in self.slices if one.last_write >= 0]
            ends += [(time + self.way_back()) // TICKS + 1 for time in stored]
        slots, miss_ticks = Counter(), Counter()
        for sm in self.sms:
            slots.update(sm.slots.stack())
            miss_ticks.update(sm.miss_ticks)
        return {
            "cycles": max(*ends, 0),
            "instructions": sum(sm.instructions for sm in self.sms),
            "sm_cycles": sum(sm.end for sm in self.sms),
            "slots": {part: slots[part] / PARTS_PER_SLOT for part in PARTS},
            "details": {name: n / PARTS_PER_SLOT for name, n in in_detail(self).items()},
            "store_slots": sum(sm.store_slots for sm in self.sms) / PARTS_PER_SLOT,
            "critical_ticks": sum(sm.critical_path for sm in self.sms),
            "misses": sum(sm.misses for sm in self.sms),
            "miss_ticks": miss_ticks,
            "totals": self.totals,
        }


class PlainSm:
    """An SM with its load-store unit and L1."""

    def __init__(self, machine, warp_slots, l1):
        self.machine, self.config = machine, machine.config
        self.l1 = PlainCache(**l1)
        self.free = list(range(warp_slots))
        self.by_age = []
        self.schedulers = [
            {"warps": [], "last": None, "last_age": -1}
            for _ in range(self.config["schedulers_per_sm"])
        ]
        self.instruction_cache = InstructionCache(machine.code)
        self.units = {}
        self.next_warp_start = 0
        self.num_warps = self.instructions = self.end = self.age = 0
        self.slots, self.miss_ticks, self.misses = LostSlots(), Counter(), 0
        self.first_since = self.port_free = 0
        self.store_slots = self.critical_path = 0
        self.arrivals, self.outbox = [], []
        self.queue, self.pipeline, self.accepted, self.unit_free = [], [], -1, 0
        self.tags_wait_for, self.dispatch_waits_for = None, None
        self.at_tags = False
        self.waited, self.turns = {"mshr": 0, "noc": 0}, Counter()
        self.mshrs, self.completed = [], []

    # Warps

    def instruction_cache_of(self, position):
        return self.instruction_cache

    def launch(self, position, now):
        self.next_warp_start = max(self.next_warp_start, now * TICKS)
        num_warps, of_launch = self.machine.warps_of(position)
        slots, self.free = self.free[:of_launch], self.free[of_launch:]
        block = {"slots": slots, "position": position, "warps": [], "phases": phases.Block()}
        has_all = num_warps == of_launch
        for w in range(num_warps):
            program = self.machine.program(position, w)
            if not program:
                has_all = False
                continue
            start = -(-self.next_warp_start // TICKS)
            self.next_warp_start += ticks(self.config["warp_start_cycles"])
            warp = {
                "program": program,
                "next": 0,
                "block": block,
                "registers": {},
                "at_barrier": None,
                "barrier_until": start,
                "barrier_detail": "starts",
                "finish": start,
                "loads": [],
                "age": self.age,
                "control": ControlledWarp(),
                "code": WarpCode(self.instruction_cache_of(position)),
                "scheduler": slots[len(block["warps"])] % len(self.schedulers),
            }
            warp["code"].come_to(program[0][0], start)
            self.age += 1
            block["warps"].append(warp)
            self.by_age.append(warp)
            self.schedulers[warp["scheduler"]]["warps"].append(warp)
            self.num_warps += 1
        block["barriers"] = barriers.Block(has_all)

    def cycle(self, now):
        while self.arrivals and self.arrivals[0][0] <= now * TICKS:
            self.deliver(self.arrivals.pop(0)[1], now)
        self.complete_loads(now)
        self.retire(now)
        if self.num_warps:
            self.issue(now)
        if self.queue or self.pipeline:
            self.step_load_store_unit(now)
            self.complete_loads(now)

    def retire(self, now):
        has_retired = False
        for warp in list(self.by_age):
            if warp["next"] == len(warp["program"]) and not warp["loads"] and warp["finish"] <= now:
                self.by_age.remove(warp)
                self.num_warps -= 1
                self.end, has_retired = now, True
                warp["block"]["warps"].remove(warp)
                if not warp["block"]["warps"]:
                    self.free = sorted([*self.free, *warp["block"]["slots"]])
                    self.machine.free_place(self, warp["block"]["position"], now)
        # An SM that nothing has left has had its turn.
        if has_retired:
            self.machine.start_blocks(now, self)

    def width(self):
        return ticks(self.config["issue_width"])

    def slots_before(self, cycle):
        return -(-cycle * self.width() // TICKS)

    def issue(self, now):
        available = left = self.slots_before(now + 1) - self.slots_before(now)
        count = len(self.schedulers)
        each = math.ceil(self.config["issue_width"] / count)
        for i in range(count):
            scheduler = self.schedulers[(now + i) % count]
            for _ in range(each):
                warp = self.pick(scheduler, now) if left else None
                if warp is None:
                    break
                scheduler["last"], scheduler["last_age"] = warp, warp["age"]
                self.issue_one(warp, now)
                left -= 1
        self.slots.known["issue"] += (available - left) * PARTS_PER_SLOT
        if left:
            self.lose(left, now)

    def pick(self, scheduler, now):
        running = [w for w in scheduler["warps"] if w["next"] < len(w["program"])]
        order = running
        if self.config["scheduler"] in ("gto", "gty"):
            last = [w for w in running if w is scheduler["last"]]
            order = last + (running if self.config["scheduler"] == "gto" else running[::-1])
        elif self.config["scheduler"] == "lrr":
            order = [w for w in running if w["age"] > scheduler["last_age"]]
            order = order + [w for w in running if w["age"] <= scheduler["last_age"]]
        for warp in order:
            if self.obstacle(warp, now) is None:
                return warp
        return None

    def register_wait(self, warp):
        """Return when the next instruction may issue for its data, and what makes them late."""
        row = self.machine.table[warp["program"][warp["next"]][0]]
        ready, cause = -1, "arithmetic"
        if self.machine.kernel.has_control_fields:
            ready, cause = warp["control"].wait(row)
            row = {"opcode": "", "sources": (), "destinations": ()}  # nobody looks them up
        elif self.machine.is_product(row):
            others = set(row["sources"]) - set(row["destinations"])
            row = {**row, "sources": others, "destinations": ()}
        for register in [*row["sources"], *row["destinations"]]:
            time, why = warp["registers"].get(register, (0, "arithmetic"))
            if time > ready:
                ready, cause = time, why
        if not self.machine.kernel.has_control_fields:
            waits = (warp["control"].copy_wait(row), warp["block"]["phases"].wait(warp, row))
            for time, why in waits:
                if time > ready:
                    ready, cause = time, why
        grids_end = self.machine.end_of_awaited_grids(warp)
        if grids_end > ready:
            ready, cause = grids_end, "starts"
        if warp["barrier_until"] > ready:
            ready, cause = warp["barrier_until"], warp["barrier_detail"]
        if warp["code"].ready > ready:
            ready, cause = warp["code"].ready, "instruction_fetch"
        for load in warp["loads"]:
            if load["stops_warp"]:
                ready, cause = NEVER, load
        return ready, cause

    def accepts(self, now):
        return len(self.queue) < self.config["lsu_queue_entries"] and self.accepted < now

    def obstacle(self, warp, now):
        """Return why a warp cannot issue: a detail of the stack, a load, 'barrier', or None."""
        if warp["at_barrier"] is not None:
            return "barrier"
        if warp["next"] == len(warp["program"]):
            return warp["loads"][0] if warp["loads"] else "arithmetic"
        ready, cause = self.register_wait(warp)
        if ready > now:
            return self.what_the_unit_waits_for() if cause == "unit" else cause
        row, mask, count, _, _ = warp["program"][warp["next"]]
        instruction = self.machine.table[row]
        if mask and instruction["op_class"] == "memory" and count and not self.accepts(now):
            return self.what_the_unit_waits_for()
        unit = (warp["scheduler"], unit_of(instruction))
        if self.units.get(unit, 0) > now:
            return "units"
        return None

    def what_the_unit_waits_for(self):
        if self.tags_wait_for or self.dispatch_waits_for:
            return self.tags_wait_for or self.dispatch_waits_for
        if not self.queue:
            return "load_store_unit"
        first = self.queue[0]
        if not first["wavefronts"]:
            return "tags" if first["num_lines"] > 1 or first["passes"] > 1 else "load_store_unit"
        return "bank_conflicts" if first["all_wavefronts"] > first["needed"] else "shared_memory"

    def lose(self, slots, now):
        """Share slots among all warps that wait, in parts; the oldest gets what is left over."""
        causes = [self.obstacle(warp, now) for warp in self.by_age]
        causes = [cause for cause in causes if cause not in (None, "barrier")] or ["idle"]
        each, left = divmod(PARTS_PER_SLOT, len(causes))
        for i, cause in enumerate(causes):
            parts = slots * (each + (left if i == 0 else 0))
            if not isinstance(cause, str):
                cause["lost"] += parts
                continue
            self.slots.known[cause] += parts
            if component_of(cause) in ("mshr", "noc"):
                first = self.pipeline[0]["entry"] if self.tags_wait_for else self.queue[0]
                self.store_slots += parts if first["kind"] in ("store", "reduction") else 0

    def issue_one(self, warp, now):
        row, mask, count, sectors, masks = warp["program"][warp["next"]]
        instruction = self.machine.table[row]
        op_class = instruction["op_class"]
        self.instructions += 1
        warp["next"] += 1
        if warp["next"] < len(warp["program"]):
            warp["code"].come_to(warp["program"][warp["next"]][0], now)
        warp["finish"] = max(warp["finish"], now + 1)
        barrier = None
        unit, interval = unit_of(instruction), 0
        if op_class != "memory":
            interval = self.config["interval"].get(unit, 0)
        if op_class == "tensor":
            interval = tensor.cycles(instruction["opcode"], self.config["latency"]["tensor_unit"])
        if interval:
            self.units[warp["scheduler"], unit] = now + interval
        if mask and op_class == "memory":
            if count:
                load = self.enqueue(warp, row, mask, count, sectors, masks, now)
                if self.machine.kernel.has_control_fields:
                    warp["control"].access(instruction, load, self.queue[-1])
                else:
                    warp["control"].copy_step(instruction, load, now)
                if load is not None:
                    warp["loads"].append(load)
                    for register in instruction["destinations"]:
                        warp["registers"][register] = (NEVER, load)
            if not self.machine.kernel.has_control_fields:
                warp["block"]["phases"].step(warp, instruction, load if count else None, now + 1)
        elif mask:
            latency = self.config["latency"][op_class]
            if op_class == "tensor":
                unit_values = self.config["latency"]["tensor_unit"]
                latency = tensor.latency(instruction["opcode"], unit_values, latency)
            latency = math.ceil(latency)
            if self.machine.kernel.has_control_fields:
                warp["control"].operation(instruction, now, latency, interval)
            else:
                warp["control"].copy_step(instruction, None, now, latency)
                done = now + max(latency, 1)
                warp["block"]["phases"].step(warp, instruction, None, done)
            if self.machine.is_product(instruction):
                warp["finish"] = max(warp["finish"], now + latency)
                instruction = {**instruction, "destinations": ()}
            for register in instruction["destinations"]:
                warp["registers"][register] = (now + latency, "arithmetic")
                warp["finish"] = max(warp["finish"], now + latency)
            barrier = warp["block"]["barriers"].step_of(instruction["opcode"])
        if mask:
            self.machine.note_trigger(warp, instruction, now)
        if self.machine.kernel.has_control_fields:
            warp["control"].issued(instruction, now)
        exits = warp["next"] == len(warp["program"])
        if barrier:
            warp["block"]["barriers"].arrive(barrier, exits)
            if barrier[0] and not exits:
                warp["at_barrier"] = barrier[1]
        mates = warp["block"]["warps"]
        unfinished = sum(mate["next"] < len(mate["program"]) for mate in mates)
        open_now = warp["block"]["barriers"].open(unfinished)
        for mate in mates:
            if mate["at_barrier"] in open_now:
                mate["at_barrier"] = None
                mate["barrier_detail"] = "barriers"
                mate["barrier_until"] = now + max(math.ceil(self.config["latency"]["barrier"]), 1)

    # The load-store unit

    def enqueue(self, warp, row, mask, count, sectors, masks, now):
        instruction = self.machine.table[row]
        kind, operator = instruction["kind"], instruction["cache_operator"]
        shared = instruction["space"] == "shared"
        lines = [] if shared else list(grouped(sectors, masks, self.l1.per_line).items())
        atomic = not shared and kind in ("atomic", "reduction")
        if atomic and self.config["atomic_requests"] == "per_lane":
            lines = [
                (line, {sector: touched[sector]})
                for line, touched in lines
                for sector in sorted(touched)
                for _ in range(touched[sector].word)
            ]
        load = None
        returns = kind in ("load", "async_copy", "atomic")
        stops = atomic and self.config["atomic_wait"] == "until_done"
        if returns or stops or (self.config["store_acknowledgement"] == "awaited" and not shared):
            load = {
                "warp": warp,
                "instruction": instruction,
                "left": 1 if shared else len(lines),
                "issued": now,
                "done": 0,
                "lost": 0,
                "critical_before": self.critical_path,
                "latency": {},
                "shared": shared,
                "returns": returns,
                "stops_warp": stops,
            }
        self.queue.append(
            {
                "load": load,
                "row": row,
                "kind": kind,
                "operator": operator,
                "evict_first": operator == "evict_first",
                "wavefronts": count if shared else 0,
                "all_wavefronts": count if shared else 0,
                "needed": max(-(-int(mask).bit_count() * instruction["width"] // 128), 1),
                "num_lines": len(lines),
                "passes": 0 if shared or atomic else self.passes(sectors),
                "lines": lines,
                "issued": now,
                "marks": dict(self.waited),
                "sent": None,
            }
        )
        self.accepted = now
        return load

    def time_before_miss(self, entry, now):
        before = self.time_before(entry, now)
        if self.at_tags:
            passed = min((math.ceil(self.config["l1_latency"]) - 1) * TICKS, before["l1"])
            before["l1"] -= passed
            before["l2"] = passed
        return before

    def time_before(self, entry, now):
        waited = {name: self.waited[name] - entry["marks"][name] for name in ("mshr", "noc")}
        waited["l1"] = now - entry["issued"] - sum(waited.values())
        return {name: count * TICKS for name, count in waited.items()}

    def passes(self, sectors):
        """Return passes over the banks of L1; 0: they do not count."""
        if not self.config["l1_tags_per_cycle"]:
            return 0
        return sectors.l1_passes

    def begin(self, entry, now):
        entry["begun"] = now
        load = entry["load"]
        if entry["passes"] and load and load["returns"]:
            after = entry["passes"] - 1 + math.ceil(self.config["l1_latency"])
            load["done"], load["latency"] = now + after, self.time_before(entry, now)
            load["latency"]["l1"] += after * TICKS

    def step_load_store_unit(self, now):
        for _ in range(max(self.config["l1_tags_per_cycle"], 1)):
            if not self.pipeline or self.pipeline[0]["ready"] > now:
                break
            request = self.pipeline[0]
            self.at_tags = True
            self.tags_wait_for = self.look_up(
                request["entry"], request["line"], request["touched"], now
            )
            self.at_tags = False
            if self.tags_wait_for:
                break
            self.pipeline.pop(0)
        if self.queue and self.unit_free <= now:
            self.dispatch(now)
        cause = self.tags_wait_for or self.dispatch_waits_for
        if cause:
            self.waited[component_of(cause)] += 1
            self.turns[cause] += 1

    def reaches_l1(self, entry, line):
        if entry["kind"] in ("atomic", "reduction", "store"):
            return entry["kind"] == "store"
        keeps = self.config["memory"]["l1_caches_global"] or entry["operator"] == "read_only"
        is_local = line * self.l1.per_line >= LOCAL
        return (is_local or keeps) and entry["operator"] != "bypass_l1"

    def dispatch(self, now):
        entry = self.queue[0]
        if "begun" not in entry:
            self.begin(entry, now)
        of_shared = entry["wavefronts"] > 0
        atomic = entry["kind"] in ("atomic", "reduction")
        interval = 1 if of_shared and atomic else self.config["lsu_interval"]
        free = entry["begun"] + max(interval, entry["passes"])
        if of_shared:
            self.unit_free = now + self.config["shared_wavefront_cycles"]
            is_needed = entry["all_wavefronts"] - entry["wavefronts"] < entry["needed"]
            detail = "shared_memory" if is_needed else "bank_conflicts"
            self.turns[detail] += self.unit_free - now
            entry["wavefronts"] -= 1
            if entry["wavefronts"]:
                return
            self.turns["shared_memory"] += max(free - self.unit_free, 0)
            self.unit_free = max(self.unit_free, free)
            if entry["load"]:
                latency = math.ceil(self.config["latency"]["shared_memory"])
                before = self.time_before(entry, now)
                before["dep"] = before.pop("l1") + latency * TICKS
                self.arrive(entry["load"], now + latency, before)
            self.queue.pop(0)["sent"] = now
            return
        tags = max(self.config["l1_tags_per_cycle"], 1)
        is_first = len(entry["lines"]) == entry["num_lines"]
        for _ in range(tags if entry["passes"] else 1):
            if not self.send_line(entry, tags, now):
                return
            if not entry["lines"]:
                break
        self.turns["load_store_unit" if is_first else "tags"] += 1
        if not entry["lines"]:
            is_for_banks = entry["passes"] > self.config["lsu_interval"]
            detail = "tags" if is_for_banks else "load_store_unit"
            self.turns[detail] += max(free - now - 1, 0)
            self.unit_free = max(now + 1, free)
            self.queue.pop(0)["sent"] = now

    def send_line(self, entry, tags, now):
        """Look up the next line, or send it to the tags; return whether there was room for it."""
        line, touched = entry["lines"][0]
        depth = math.ceil(self.config["l1_latency"])
        if (
            self.config["l1_latency_place"] == "before_tags"
            and depth
            and self.reaches_l1(entry, line)
        ):
            if len(self.pipeline) == depth * tags:
                return False
            ready = now + depth - 1
            self.pipeline.append({"entry": entry, "line": line, "touched": touched, "ready": ready})
        else:
            self.dispatch_waits_for = self.look_up(entry, line, touched, now)
            if self.dispatch_waits_for:
                return False
        entry["lines"].pop(0)
        return True

    def noc_is_full(self):
        return len(self.outbox) >= self.config["noc_queue_entries"]

    def mshrs_are_full(self):
        most = self.config["l1_mshrs"]
        return most > 0 and len(self.mshrs) >= most

    def absent(self, line, wanted):
        """Return the sectors that a read would fetch."""
        found = [
            one for one in self.l1.set_of(line).lines if one is not None and one.number == line
        ]
        valid = {s for s in range(self.l1.per_line) if found and found[0].full(s)}
        units = {u for s in set(wanted) - valid for u in self.l1.unit(s)}
        return units - valid

    def look_up(self, entry, line, touched, now):
        """Send the request for one line, or return what it has to wait for."""
        l1, totals, kind = self.l1, self.machine.totals, entry["kind"]
        wanted = set(touched)
        is_local = line * l1.per_line >= LOCAL
        if kind in ("atomic", "reduction"):
            if self.noc_is_full():
                return "room"
            l1.invalidate(line, wanted)
            fetch = self.fetch(entry, entry["load"], None, now) if entry["load"] else None
            self.send(line, touched, kind, entry["evict_first"], fetch, now)
            return None
        if kind == "store":
            return self.store(entry, line, touched, is_local, now)
        counts = {"l1_read_requests": 1, "l1_read_sectors": len(wanted)}
        if is_local:
            counts["l1_local_read_sectors"] = len(wanted)
        if not self.reaches_l1(entry, line):
            if self.noc_is_full():
                return "room"
            totals.update(counts)
            fetch = self.fetch(entry, entry["load"], None, now)
            self.send(line, dict.fromkeys(wanted, 0), "read", entry["evict_first"], fetch, now)
            return None
        fetched = self.absent(line, wanted)
        under_way = [m for m in self.mshrs if m["line"] == line]
        if l1.on_fill:
            fetched -= {s for m in under_way for s in m["sectors"]}
        joined = [m for m in under_way if m["sectors"] & (wanted - fetched)]
        if any(len(m["targets"]) >= self.config["l1_mshr_targets"] for m in joined):
            return "mshr_targets"
        if fetched and self.mshrs_are_full():
            return "mshrs"
        if fetched and self.noc_is_full():
            return "room"
        if fetched and not self.can_take(line):
            return "places"
        hits = wanted - fetched
        totals.update(counts)
        totals["l1_read_sector_hits"] += len(hits)
        totals["l1_local_read_sector_hits"] += len(hits) if is_local else 0
        totals["l1_read_request_hits"] += not wanted & fetched
        pending = {s for m in joined for s in m["sectors"]} & hits
        totals["l1_pending_sector_hits"] += len(pending)
        load, before = entry["load"], self.time_before_miss(entry, now)
        written_back = None
        if not l1.on_fill:
            _, _, written_back = l1.read(line, wanted, entry["evict_first"])
        elif l1.contains(line):
            l1.read(line, wanted - self.absent(line, wanted), entry["evict_first"])
        self.write_back(written_back, now)
        for mshr in joined:
            mshr["targets"].append((load, before))
            load["left"] += 1
        if fetched:
            mshr = {"line": line, "sectors": fetched, "targets": [(load, before)]}
            self.mshrs.append(mshr)
            load["left"] += 1
            fetch = self.fetch(entry, load, mshr, now)
            self.send(line, dict.fromkeys(fetched, 0), "read", entry["evict_first"], fetch, now)
        if not joined and not fetched:
            latency = 1 if self.at_tags else math.ceil(self.config["l1_latency"])
            before = self.time_before(entry, now)
            load["left"] += 1
            self.arrive(load, now + latency, {**before, "l1": before["l1"] + latency * TICKS})
        self.arrive(load, now, {})
        return None

    def store(self, entry, line, touched, is_local, now):
        l1, totals = self.l1, self.machine.totals
        if self.noc_is_full():
            return "room"
        fetches = set(l1.write_fetch(line, touched))
        if fetches and self.mshrs_are_full():
            return "mshrs"
        # What is on its way does not change by a store that writes beside it.
        joined, passed = [], {}
        if l1.write_miss == "write_and_fetch":
            wanted = set(touched) - fetches
            joined = [m for m in self.mshrs if m["line"] == line and set(m["sectors"]) & wanted]
            under_way = {s for m in joined for s in m["sectors"]} - fetches
            passed = {s: mask for s, mask in touched.items() if s in under_way}
        if any(len(m["targets"]) >= self.config["l1_mshr_targets"] for m in joined):
            return "mshr_targets"
        if l1.write_miss != "no_allocate" and not self.can_take(line):
            return "places"
        for mshr in joined:
            mshr["targets"].append((None, {}))
        hits, fetch, forward, written_back = l1.write(
            line,
            {s: mask for s, mask in touched.items() if s not in passed},
            entry["row"],
            entry["evict_first"],
        )
        hits, forward = set(hits) | set(passed), set(forward) | set(passed)
        names = ["l1_write", "l1_local_write"] if is_local else ["l1_write"]
        totals["l1_write_requests"] += 1
        for name in names:
            totals[f"{name}_sectors"] += len(touched)
            totals[f"{name}_sector_hits"] += len(hits)
        self.write_back(written_back, now)
        if fetch:
            mshr = {"line": line, "sectors": fetch, "targets": []}
            self.mshrs.append(mshr)
            request = self.fetch(entry, None, mshr, now)
            self.send(line, dict.fromkeys(fetch, 0), "read", entry["evict_first"], request, now)
        if forward:
            part = {s: touched[s] for s in forward}
            request = None
            if entry["load"]:
                entry["load"]["left"] += 1
                request = self.fetch(entry, entry["load"], None, now)
            self.send(line, part, "write", entry["evict_first"], request, now)
        if entry["load"]:
            self.arrive(entry["load"], now, {})
        return None

    def can_take(self, line):
        if self.config["lines_under_way"] != "reserved" or self.l1.on_fill:
            return True
        return self.l1.make_room(line, {mshr["line"] for mshr in self.mshrs})

    def write_back(self, written_back, now):
        if written_back:
            self.send(written_back[0], written_back[1], "write", False, None, now)

    def fetch(self, entry, load, mshr, now):
        return {
            "load": load,
            "mshr": mshr,
            "packets": 0,
            "evict_first": entry["evict_first"],
            "before": self.time_before_miss(entry, now),
        }

    def lanes_in_turn(self, part, shared):
        """Return how many lanes of an atomic's {sector: bytes} a slice serves one after the other."""
        lanes = sum(mask.lanes / (1 if shared else mask.word) for mask in part.values())
        if not lanes:
            return 0
        in_word = max(mask.word for mask in part.values()) if shared else 1
        return max(lanes / self.config["l2_atomic_words_at_once"], in_word)

    def send(self, line, sectors, kind, evict_first, fetch, now):
        machine = self.machine
        shared = self.config["atomic_requests"] == "per_line"
        for l2_line, part in parts_of(line, sectors, self.l1.per_line, machine.l2.per_line):
            machine.packets += 1
            if fetch is not None:
                fetch["packets"] += 1
            self.outbox.append(
                {
                    "sm": self,
                    "line": l2_line,
                    "slice": machine.l2.place(l2_line)[0],
                    "sectors": part,
                    "lanes": self.lanes_in_turn(part, shared)
                    if kind in ("atomic", "reduction")
                    else 0,
                    "kind": kind,
                    "evict_first": evict_first,
                    "fetch": fetch,
                    "entered": now * TICKS,
                    "mark": now * TICKS,
                    "waited": Counter(),
                    "left": 0,
                }
            )

    def deliver(self, packet, now):
        self.machine.packets -= 1
        fetch = packet["fetch"]
        fetch["packets"] -= 1
        if fetch["packets"]:
            return
        latency = dict(packet["waited"])
        latency["l2"] = now * TICKS - packet["entered"] - sum(latency.values())
        if fetch["load"] and fetch["load"]["returns"]:
            self.misses += 1
            self.miss_ticks.update(latency)
            self.miss_ticks.update(fetch["before"])
        targets = [(fetch["load"], fetch["before"])]
        if fetch["mshr"]:
            mshr = fetch["mshr"]
            if self.l1.on_fill:
                _, _, written_back = self.l1.read(
                    mshr["line"], mshr["sectors"], fetch["evict_first"]
                )
                self.write_back(written_back, now)
            targets = mshr["targets"]
            self.mshrs = [m for m in self.mshrs if m is not mshr]
        for load, before in targets:
            if load:
                whole = Counter(latency)
                whole.update(before)
                self.arrive(load, now, whole)

    def arrive(self, load, done, latency):
        if done >= load["done"]:
            load["done"] = done
            if sum(latency.values()):
                load["latency"] = latency
        load["left"] -= 1
        if load["left"] == 0:
            self.completed.append(load)
            if not load["returns"]:
                return
            parts = ["mshr", "noc", "queue", "dram", *(["l2"] * bool(self.config["l2_clock_ghz"]))]
            memory = sum(load["latency"].get(part, 0) for part in parts)
            memory = min(memory, (done - load["issued"]) * TICKS)
            self.critical_path = max(self.critical_path, load["critical_before"] + memory)

    def complete_loads(self, now):
        for load in self.completed:
            warp, cause = load["warp"], "shared_memory" if load["shared"] else "l1_latency"
            if load["lost"]:
                if sum(load["latency"].values()):
                    latency = dict(load["latency"])
                    if latency.get("dram"):  # it waits for DRAM, on its way through L2, too
                        latency["dram"] += latency.pop("l2", 0)
                    self.slots.of_loads.update(in_proportion(load["lost"], latency))
                else:
                    self.slots.of_loads[component_of(cause)] += load["lost"]
            done = max(load["done"], now)
            load["finished"] = (done, cause)
            for register in load["instruction"]["destinations"]:
                warp["registers"][register] = (done, cause)
            warp["finish"] = max(warp["finish"], done)
            warp["loads"] = [other for other in warp["loads"] if other is not load]
        self.completed = []


__all__ = ["ALL_BYTES", "PARTS", "TICKS", "Machine"]
