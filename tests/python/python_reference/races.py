"""Races of a list of accesses, by definition: happens-before is a path in a graph."""

import itertools
from dataclasses import dataclass, field


@dataclass
class Event:
    """One step of a warp: an access, a fence, or an arrival at a barrier.

    `reads_from` of a strong read is the strong write whose value it saw (None: another value).
    """

    warp: int
    kind: str  # load, store, strong_load, strong_store, atomic, fence, barrier
    line: int = 0
    first: int = 0
    bytes: int = 0
    acquires: bool = False
    releases: bool = False
    barrier: int = 0  # which use of which barrier: unique
    waits: bool = True
    reads_from: "Event | None" = field(default=None, repr=False)

    def addresses(self):
        return range(self.first, self.first + self.bytes)

    def is_strong(self):
        return self.kind in ("strong_load", "strong_store", "atomic")

    def writes(self):
        return self.kind in ("store", "strong_store", "atomic")


def _edges(programs):
    """Yield the pairs of events that are ordered directly."""
    for program in programs:
        yield from itertools.pairwise(program)
    events = [event for program in programs for event in program]
    for one in events:
        for other in events:
            meet = one.kind == other.kind == "barrier" and one.barrier == other.barrier
            if not meet or one is other or not other.waits:
                continue
            # All before the arrival comes before all behind the wait.
            program = programs[other.warp]
            place = program.index(other) + 1
            before = programs[one.warp].index(one) - 1
            if before >= 0 and place < len(program):
                yield programs[one.warp][before], program[place]
    for program in programs:
        for n, read in enumerate(program):
            if not read.is_strong() or read.reads_from is None:
                continue
            begins = [read] if read.acquires else []
            begins += [event for event in program[n + 1 :] if event.kind == "fence"][:1]
            write = read.reads_from
            while write is not None:
                writer = programs[write.warp]
                ends = [write] if write.releases else []
                ends += [e for e in writer[: writer.index(write)] if e.kind == "fence"][-1:]
                for end in ends:
                    for begin in begins:
                        yield end, begin
                # An atomic operation hands on what the value that it read carried.
                write = write.reads_from if write.kind == "atomic" else None


def races(programs):
    """Return {byte: {frozenset of two lines}} of what is unordered."""
    events = [event for program in programs for event in program]
    after = {id(event): [] for event in events}
    for one, other in _edges(programs):
        after[id(one)].append(other)

    reached = {}
    for event in events:
        seen, rest = set(), [event]
        while rest:
            for following in after[id(rest.pop())]:
                if id(following) not in seen:
                    seen.add(id(following))
                    rest.append(following)
        reached[id(event)] = seen
    found = {}
    accesses = [event for event in events if event.bytes]
    for n, one in enumerate(accesses):
        for other in accesses[n + 1 :]:
            if one.warp == other.warp or (one.is_strong() and other.is_strong()):
                continue
            if not (one.writes() or other.writes()):
                continue
            if id(other) in reached[id(one)] or id(one) in reached[id(other)]:
                continue
            for byte in set(one.addresses()) & set(other.addresses()):
                found.setdefault(byte, set()).add(frozenset((one.line, other.line)))
    return found
