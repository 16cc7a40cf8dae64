"""Which instruction issue slots are used or lost at, computed the plain way: reference of `RowSlots`."""

from __future__ import annotations

from collections import Counter

from python_reference.lost_slots import component_of
from python_reference.timing import PARTS_PER_SLOT, Machine, PlainSm, in_proportion

#: Row of the slots that nobody waited for.
NOBODY = -1


class RowSm(PlainSm):
    """An SM that notes for each part of a slot the row that a warp was at, and why."""

    def __init__(self, machine, warp_slots, l1):
        super().__init__(machine, warp_slots, l1)
        self.at, self.because_of = Counter(), Counter()

    def row_of(self, warp):
        return warp["program"][min(warp["next"], len(warp["program"]) - 1)][0]

    def add(self, row, part, amount):
        self.at[row, part] += amount
        self.because_of[row, part] += amount

    def issue_one(self, warp, now):
        self.add(self.row_of(warp), "base", PARTS_PER_SLOT)
        super().issue_one(warp, now)

    def lose(self, slots, now):
        found = [(warp, self.obstacle(warp, now)) for warp in self.by_age]
        waiting = [(w, cause) for w, cause in found if cause not in (None, "barrier")]
        each, left = divmod(PARTS_PER_SLOT, max(len(waiting), 1))
        for i, (warp, cause) in enumerate(waiting):
            parts = slots * (each + (left if i == 0 else 0))
            if isinstance(cause, str):
                self.add(self.row_of(warp), component_of(cause), parts)
            else:
                cause.setdefault("lost_at", Counter())[self.row_of(warp)] += parts
        if not waiting:
            self.add(NOBODY, "base", slots * PARTS_PER_SLOT)
        super().lose(slots, now)

    def complete_loads(self, now):
        for load in self.completed:
            if not load["lost"]:
                continue
            table = self.machine.table
            load_row = next(i for i, row in enumerate(table) if row is load["instruction"])
            latency = dict(load["latency"])
            if latency.get("dram"):
                latency["dram"] += latency.pop("l2", 0)
            if not sum(latency.values()):
                latency = {"dep" if load["shared"] else "l1": 1}
            for part, amount in in_proportion(load["lost"], latency).items():
                self.because_of[load_row, part] += amount
            for row, lost in load["lost_at"].items():
                for part, amount in in_proportion(lost, latency).items():
                    self.at[row, part] += amount
        super().complete_loads(now)


class RowMachine(Machine):
    """A machine of such SMs."""

    sm_class = RowSm

    def rows(self, name):
        """Return the slots of ``at`` or ``because_of`` by row and part, over all SMs."""
        total = Counter()
        for sm in self.sms:
            total.update(getattr(sm, name))
        return {key: value / PARTS_PER_SLOT for key, value in total.items() if value}
