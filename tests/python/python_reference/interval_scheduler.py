"""Plain definition of how the warps of a scheduler share its slots and units."""

import math


class Scheduler:
    """Steps that go on as fluids: each asks for its share of slots and units per cycle.

    Who goes first has what it asks for and who comes later the rest; with loose round robin all go on
    alike. Shares are dealt anew at every look, from the definition.
    """

    def __init__(self, rate, order):
        self.rate, self.order = rate, order
        self.running = {}  # by age
        self.now = 0.0

    def in_order(self):
        """Return the ages of steps that are running, who goes first first."""
        return sorted(self.running, reverse=self.order == "gty")

    def speeds(self):
        """Return the cycles alone that each step goes on per cycle, by age."""
        if self.order == "lrr":
            slots = sum(step["slots"] for step in self.running.values())
            units = {}
            for step in self.running.values():
                for unit, share in step["uses"].items():
                    units[unit] = units.get(unit, 0.0) + share
            alike = min(1.0, self.rate / slots) if slots else 1.0
            return {
                age: min([alike, *(1 / units[unit] for unit in step["uses"])])
                for age, step in self.running.items()
            }
        slots, units, speeds = self.rate, {}, {}
        for age in self.in_order():
            step = self.running[age]
            if slots <= 1e-9:
                speeds[age] = 0.0
                continue
            by_units = [units.get(unit, 1.0) / share for unit, share in step["uses"].items()]
            by_units += [slots / step["slots"]] if step["slots"] else []
            speed = max(min([1.0, *by_units]), 0.0)
            slots -= speed * step["slots"]
            for unit, share in step["uses"].items():
                units[unit] = units.get(unit, 1.0) - speed * share
            speeds[age] = speed
        return speeds

    def advance(self, now):
        if now > self.now:
            for age, speed in self.speeds().items():
                self.running[age]["left"] -= speed * (now - self.now)
            self.now = now

    def begin_step(self, age, span, instructions, uses, now):
        """Begin a step that takes `span` cycles alone; `uses`: cycles of units."""
        self.advance(now)
        self.running[age] = {
            "left": span - max(self.now - now, 0.0),
            "slots": instructions / span,
            # A scheduler looks at four units between two heads, those that are used most.
            "uses": {
                unit: cycles / span
                for unit, cycles in sorted(uses.items(), key=lambda use: (-use[1], use[0]))[:4]
            },
        }

    def next(self):
        """Return when the next step ends."""
        speeds = self.speeds()
        times = [math.inf]
        for age, step in self.running.items():
            if speeds[age] > 1e-9 or (step["left"] <= 1e-9 and speeds[age] >= 0):
                times.append(self.now + max(step["left"], 0.0) / max(speeds[age], 1e-9))
        return min(times)

    def finish(self):
        """Take out the steps that end at next(), and return their ages, who goes first first."""
        self.advance(self.next())
        ended = [age for age in self.in_order() if self.running[age]["left"] <= 1e-6]
        for age in ended:
            del self.running[age]
        return ended
