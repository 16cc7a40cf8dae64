"""Which launches of a program end or trigger before another one begins, where all else takes no time."""

from __future__ import annotations

from typing import NamedTuple

from warpstack.traces.connections import connections_of
from warpstack.traces.operations import Columns
from warpstack.traces.order import order_of

__all__ = ["Before", "launches_before"]

#: By chain the last launch that has ended. Launches of a chain wait for one another, so that all before
#: it in the chain have ended, too.
_Done = dict[int, int]


class _Chains:
    """Launches in chains, as few as streams, and what has ended before each begins."""

    def __init__(self) -> None:
        self.tails: list[int] = []
        #: By launch: what has ended when it has.
        self.done: dict[int, _Done] = {}
        self.chain_of: dict[int, int] = {}

    def nearest(self, done: _Done) -> list[int]:
        """Return the launches of `done` that no other one of it waits for."""
        return sorted(
            launch
            for chain, launch in done.items()
            if not any(
                other != launch and self.done[other].get(chain, -1) >= launch
                for other in done.values()
            )
        )

    def has_ended(self, launch: int, done: _Done) -> bool:
        """Return whether a launch is one of those that have ended."""
        chain = self.chain_of[launch]
        return done.get(chain, -1) >= launch

    def add(self, launch: int, done: _Done) -> _Done:
        """Add a launch that ends after others. Return what has ended when it has."""
        chain = next(
            (number for number, last in done.items() if self.tails[number] == last),
            len(self.tails),
        )
        if chain == len(self.tails):
            self.tails.append(launch)
        self.tails[chain] = launch
        self.chain_of[launch] = chain
        self.done[launch] = {**done, chain: launch}
        return self.done[launch]


class Before(NamedTuple):
    """The rows of the launches that one waits for.

    Attributes
    ----------
    ended
        Those that end before it begins.
    triggered
        Those of which each block triggers or ends before it begins.
    """

    ended: list[int]
    triggered: list[int]


def launches_before(columns: Columns, hardware_queues: int = 32) -> dict[int, Before]:
    """Return for each row with a launch of the trace the rows of the launches that it waits for.

    A row waits for what `order_of` says, through copies, events, nodes of graphs and launches that are
    not traced, and for what its thread has waited for before it called it, or the thread that made it.
    All but launches takes no time. Of launches that wait for one another only the last ones are named. Those
    that are not traced do not trigger. Behind a row that waits, in its connection of the `hardware_queues` of
    the GPU at most, others wait as well.
    """
    order = order_of(columns)
    connections = connections_of(columns, order, hardware_queues).tolist()
    passed: dict[int, _Done] = {}  # what has ended when the last row of a connection has passed
    chains = _Chains()
    launches: dict[int, Before] = {}
    early, first = order.early, order.after.first
    rows: list[_Done] = []
    returned: list[_Done] = []  # what each row's thread has waited for when its call returns
    threads: dict[tuple[int, int], _Done] = {}
    kernels = columns["kernel"].tolist()
    callers = zip(columns["process"].tolist(), columns["thread"].tolist(), strict=True)
    for row, (kernel, caller) in enumerate(zip(kernels, callers, strict=True)):
        host = threads.get(caller, {}) if order.is_called[row] else {}
        host = _merged(host, [returned[other] for other in order.begins.of(row)])
        done = host
        triggered: list[int] = []
        if order.has_device[row]:
            others = order.after.of(row)
            if early[first[row] : first[row + 1]].any():
                is_early = early[first[row] : first[row + 1]].tolist()
                pairs = list(zip(others, is_early, strict=True))
                triggered = [other for other, one in pairs if one and kernels[other] >= 0]
                others = [other for other in others if other not in triggered]
            own = _merged({}, [rows[other] for other in others])
            connection = connections[row]
            if connection >= 0:
                own = passed[connection] = _merged(own, [passed.get(connection, {})])
            done = _merged(done, [own])
        if kernel >= 0:
            # Who has ended anyway has triggered.
            triggered = [other for other in triggered if not chains.has_ended(other, done)]
            launches[row] = Before(chains.nearest(done), triggered)
            # It has ended when those have, too.
            done = chains.add(row, _merged(done, [rows[other] for other in triggered]))
        rows.append(done)
        waits = order.waits.of(row)
        if waits:
            host = _merged(host, [rows[other] for other in waits])
            if not order.has_device[row]:
                rows[row] = host
        returned.append(host)
        if order.is_called[row]:
            threads[caller] = host
    return launches


def _merged(one: _Done, others: list[_Done]) -> _Done:
    """Return what has ended when each of several is done; the same dictionary where it is one of them."""
    for other in others:
        if other is one or not other:
            continue
        if not one:
            one = other
        elif any(one.get(chain, -1) < launch for chain, launch in other.items()):
            if all(other.get(chain, -1) >= launch for chain, launch in one.items()):
                one = other
            else:
                one = {
                    chain: max(one.get(chain, -1), other.get(chain, -1))
                    for chain in {**one, **other}
                }
    return one
