"""Plain definition of grids that run at the same time, on the machine of timing.py."""

import math
from collections import Counter
from types import SimpleNamespace

from python_reference.instruction_cache import Code, InstructionCache
from python_reference.memory import LOCAL, resident_blocks
from python_reference.timing import NEVER, TICKS, Machine, PlainSm, ticks
from python_reference.timing_trace import instructions_of

RESOURCES = ("blocks", "warps", "threads", "registers", "shared_memory_bytes")
ENDLESS = 2**60
TRIGGERS = ("griddepcontrol.launch_dependents", "PREEXIT")
WAITS = ("griddepcontrol.wait", "ACQBULK")


class ConcurrentSm(PlainSm):
    """An SM that notes when the last warp of each grid was done."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.ends, self.caches = {}, {}

    def instruction_cache_of(self, position):
        g = position[0]
        if g not in self.caches:
            self.caches[g] = InstructionCache(self.machine.codes[g])
        return self.caches[g]


class ConcurrentMachine(Machine):
    """A GPU that runs several grids; blocks are (grid, position)."""

    sm_class = ConcurrentSm

    def run_together(self, kernels, after, priorities, most_grids, after_trigger=None):
        """Return the cycles of all, and (start, end) of each."""
        self.kernels, self.priorities, self.most_grids = kernels, priorities, most_grids
        triggers = {
            g for g, k in enumerate(kernels) if set(TRIGGERS) & set(k.instructions["opcode"])
        }
        behind = after_trigger or [[] for _ in kernels]
        # Who has no trigger triggers at its end.
        self.after = [{*a, *(set(b) - triggers)} for a, b in zip(after, behind, strict=True)]
        self.behind = [triggers & set(b) for b in behind]
        total, times, results = 0, {}, []
        ended = set()
        while len(ended) < len(kernels):
            left = [g for g in range(len(kernels)) if g not in ended]
            ready = [g for g in left if ended.issuperset(self.after[g] | self.behind[g])]
            if len(ready) == 1 and not any(ready[0] in one for one in self.behind):
                left = ready
            self.ended, self.finished, self.grids = set(ended), set(ended), left
            self.end_cycles = dict.fromkeys(ended, -2)
            result = self.run_grids()
            results.append(result)
            now_ended = self.ended - ended
            ends = {g: max((sm.ends.get(g, 0) for sm in self.sms), default=0) for g in now_ended}
            last = max(ends.values())
            for g in now_ended:
                end = result["cycles"] if ends[g] == last else ends[g]
                empty = g not in self.started
                times[g] = (
                    total + (last if empty else self.started[g]),
                    total + (last if empty else end),
                )
            total += result["cycles"]
            ended = set(self.ended)
        return total, [times[g] for g in range(len(kernels))], results

    def run_grids(self):
        config = self.config
        limits = config["memory"]["sm"]
        # One table of instructions after the other.
        self.table, self.first_row = [], {}
        for g in self.grids:
            self.first_row[g] = len(self.table)
            self.table += self.kernels[g].instructions.to_dict("records")
        first = self.kernels[self.grids[0]]
        self.kernel = SimpleNamespace(has_control_fields=first.has_control_fields)
        self.code = Code(first, config)
        # Each grid has an instruction cache of its own.
        self.codes = {g: Code(self.kernels[g], config) for g in self.grids}
        for g in self.grids:
            self.codes[g].of_row = [None] * self.first_row[g] + self.codes[g].of_row
        self.totals, self.waited = Counter(), Counter()
        counts = {g: sum(1 for _ in self.kernels[g].blocks()) for g in self.grids}
        num_sms = min(config["memory"]["num_sms"], sum(counts.values()))
        most = {g: resident_blocks(limits, self.kernels[g]) for g in self.grids}
        slots = sum(min(most[g], counts[g]) * self.kernels[g].warps_per_block for g in self.grids)
        if len(self.grids) > 1:
            slots = min(slots, limits["warps"])
        l1s = [self.memory.l1_config(self.kernels[g]) for g in self.grids]
        self.build(num_sms, slots, min(l1s, key=lambda one: one["size_bytes"]))
        self.capacity = {
            name: ENDLESS if limits.get(name) is None else limits[name] for name in RESOURCES
        }
        if config["memory"]["carve_outs"]:
            shared = [
                min(
                    (c for c in config["memory"]["carve_outs"] if c >= self.need(g)[4] * most[g]),
                    default=self.need(g)[4] * most[g],
                )
                for g in self.grids
            ]
            whole = self.capacity["shared_memory_bytes"]
            self.capacity["shared_memory_bytes"] = min(whole, max(shared))
        self.blocks = {
            g: [
                position
                for position, (_, warps) in enumerate(self.kernels[g].blocks())
                if any(
                    len(self.kernels[g].warp(position, w)["instruction"]) for w in range(len(warps))
                )
            ]
            for g in self.grids
        }
        self.running, self.started, self.not_before = {}, {}, 0
        self.triggered = {g: set() for g in self.grids}
        self.blocks_in_all = {g: len(self.blocks[g]) for g in self.grids}
        self.end_those_that_are_done(-1)
        self.number = num_sms
        self.rooms = {
            sm: [(0, number, [self.capacity[name] for name in RESOURCES])]
            for number, sm in enumerate(self.sms)
        }
        self.go()
        return self.result()

    def need(self, g):
        kernel, limits = self.kernels[g], self.config["memory"]["sm"]

        def up(value, unit):
            return -(-value // unit) * unit

        threads = kernel.block[0] * kernel.block[1] * kernel.block[2]
        warps = -(-threads // 32)
        registers = warps * up(kernel.registers_per_thread * 32, limits["register_allocation_unit"])
        asked = kernel.shared_memory_bytes + limits["shared_memory_reserved_bytes"]
        shared = up(asked, limits["shared_memory_allocation_bytes"])
        return [1, warps, threads, registers, shared]

    def may_start(self, g):
        """Return whether a grid waits for no other one."""
        return self.ended.issuperset(self.after[g]) and all(
            one in self.finished or len(self.triggered[one]) == self.blocks_in_all[one]
            for one in self.behind[g]
        )

    def end_of_awaited_grids(self, warp):
        g = warp["block"]["position"][0]
        row, mask = warp["program"][warp["next"]][:2]
        if not mask or self.table[row]["opcode"] not in WAITS:
            return -1
        if not self.ended.issuperset(self.behind[g]):
            return NEVER
        return max((self.end_cycles[one] + 1 for one in self.behind[g]), default=-1)

    def note_trigger(self, warp, instruction, now):
        if instruction["opcode"] in TRIGGERS:
            self.add_trigger(warp["block"]["position"], now)

    def add_trigger(self, position, now):
        g = position[0]
        before = len(self.triggered[g])
        self.triggered[g].add(position)
        if before < len(self.triggered[g]) == self.blocks_in_all[g]:
            self.not_before = now + 1
            self.end_those_that_are_done(now)

    def ready(self):
        """Return the grids that may place blocks, the one in line first."""
        found = []
        for g in self.grids:
            if g in self.ended or not self.blocks[g]:
                continue
            if not self.may_start(g):
                continue
            if g not in self.started and len(self.running) >= self.most_grids:
                continue
            found.append(g)
        return sorted(found, key=lambda g: (-self.priorities[g], g))

    @property
    def waiting_blocks(self):
        """Whether blocks will start: those of the last grid do, or of one behind a running one."""
        return bool(self.ready())

    @waiting_blocks.setter
    def waiting_blocks(self, value):
        raise AssertionError

    def program(self, position, warp):
        g, block = position
        table = self.kernels[g].instructions.to_dict("records")
        place = self.grids.index(g)
        found = []
        for row, mask, count, sectors, masks in instructions_of(
            self.kernels[g], table, block, warp
        ):
            if place and sectors and sectors[0] >= LOCAL:
                sectors[:] = [s + place * 2**48 for s in sectors]
            found.append((row + self.first_row[g], mask, count, sectors, masks))
        return found

    def warps_of(self, position):
        kernel = self.kernels[position[0]]
        return len(list(kernel.blocks())[position[1]][1]), kernel.warps_per_block

    def free_place(self, sm, position, now):
        g = position[0]
        pause = math.ceil(self.config["block_replacement_cycles"])
        self.rooms[sm].append((now + pause, self.number, self.need(g)))
        self.number += 1
        self.not_before = now + 1
        sm.ends[g] = now
        self.running[g] -= 1
        if self.running[g] == 0 and not self.blocks[g]:
            del self.running[g]
            others = bool(self.running) or bool(self.ready())
            # Where nothing else runs, those behind it are left to another run.
            self.finished.add(g)
            if not others:
                self.grids = [one for one in self.grids if one in self.finished]
            self.end_those_that_are_done(now)
        else:
            self.add_trigger(position, now)
        # A grid that finds an empty machine starts as any launch does.
        if not any(self.running.values()) and self.ready() and self.ready()[0] not in self.started:
            self.rooms = {
                one: [(min(cycle, now), number, room) for cycle, number, room in rooms]
                for one, rooms in self.rooms.items()
            }

    def end_those_that_are_done(self, now):
        """End grids whose blocks are done, or that have none, once those before them have ended."""
        before = None
        while before != (len(self.finished), len(self.ended)):
            before = len(self.finished), len(self.ended)
            for g in self.grids:
                if self.may_start(g) and g not in self.started and not self.blocks[g]:
                    self.finished.add(g)
                if g in self.finished - self.ended and self.ended.issuperset(self.behind[g]):
                    self.ended.add(g)
                    self.end_cycles[g] = now

    def since(self, sm, need):
        """Return since when an SM has room."""
        total = [0] * len(RESOURCES)
        for cycle, number, room in sorted(self.rooms[sm], key=lambda one: one[:2]):
            total = [a + b for a, b in zip(total, room, strict=True)]
            if all(a >= b for a, b in zip(total, need, strict=True)):
                return cycle, number
        return None

    def take(self, sm, need):
        left, rooms = list(need), []
        newest = self.since(sm, need)
        for cycle, number, room in sorted(self.rooms[sm], key=lambda one: one[:2]):
            part = [min(a, b) for a, b in zip(room, left, strict=True)]
            left = [a - b for a, b in zip(left, part, strict=True)]
            rest = [a - b for a, b in zip(room, part, strict=True)]
            if (cycle, number) == newest:
                number, self.number = self.number, self.number + 1
            if any(rest):
                rooms.append((cycle, number, rest))
        self.rooms[sm] = rooms

    def start_blocks(self, now, only=None):
        while self.ready():
            g = self.ready()[0]
            need = self.need(g)
            since = {sm: self.since(sm, need) for sm in self.sms}
            places = [sm for sm in self.sms if since[sm] is not None]
            if not places:
                return
            sm = min(places, key=lambda one: since[one])
            if since[sm][0] > now or self.next_start > now * TICKS:
                return
            # Only an SM that has just got room starts blocks after the others have had their turns.
            if only is None and self.not_before > now:
                return
            if only is not None and sm is not only:
                return
            self.take(sm, need)
            self.started.setdefault(g, now)
            self.running[g] = self.running.get(g, 0) + 1
            sm.launch((g, self.blocks[g].pop(0)), now)
            earliest = max(self.next_start, (now - 1) * TICKS)
            self.next_start = earliest + ticks(self.config["block_interval_cycles"])
