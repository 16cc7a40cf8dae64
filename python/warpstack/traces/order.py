"""The rules of CUDA's streams: which operations end before another one starts, or before a call returns.

Rows are in the order of the program's calls, so that what an operation follows is known when it is called:

- An operation follows the one before it in its stream.
- One in the legacy default stream follows all blocking streams, and those follow it.
- One behind a wait for an event follows what was before the last record of the event.
- A node of a graph follows the nodes that it names, or the launch; what comes behind the launch in its
  stream follows all nodes.
- A kernel that a kernel launched follows that one, and what follows that one follows it.
- A kernel with programmatic dependent launch (`programmatic`) follows the kernels right before it in its
  stream or graph early: it starts when each block of these has triggered or ended, and waits for their end
  where it says so itself. It has ended when it is done and these have ended, so that what follows it follows
  them.

A thread's first call begins after the row before the thread was made, and the one after a join after the
last row of the joined thread, as `begins_after` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from warpstack.traces.operations import Columns

__all__ = ["KINDS", "Lists", "Order", "order_of"]

#: What an operation follows another one for.
KINDS = ("stream order", "event", "default stream", "graph", "dependence")
_STREAM, _EVENT, _DEFAULT, _GRAPH, _OTHER = range(len(KINDS))

#: Operations that are on the device where they are in a stream.
_ON_DEVICE = frozenset(
    (
        *("kernel", "copy", "memset", "event_record", "event_wait", "graph_launch"),
        *("host_function", "nccl", "library"),
    )
)


@dataclass
class _Process:
    """What has been called in the streams of a process so far; rows as the keys of dictionaries."""

    legacy: dict[int, None] = field(default_factory=dict)
    epoch: int = 0
    #: By stream: its last operations, and the last epoch of the legacy stream that it has followed.
    tails: dict[int, dict[int, None]] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=dict)
    #: Blocking streams with operations since the last one of the legacy stream.
    since_legacy: dict[int, None] = field(default_factory=dict)
    #: By host thread: streams with operations since it last waited for all.
    unsynchronized: dict[int, dict[int, None]] = field(default_factory=dict)
    events: dict[int, int] = field(default_factory=dict)
    graphs: dict[int, int] = field(default_factory=dict)

    def in_legacy_order(self) -> list[int]:
        """Return the rows that an operation of the legacy stream follows."""
        return [*self.legacy, *(row for s in self.since_legacy for row in self.tails[s])]

    def of_stream(self, stream: int) -> list[int]:
        return self.in_legacy_order() if stream == 0 else list(self.tails.get(stream, ()))

    def of_all(self, thread: int) -> list[int]:
        """Return the rows that a thread waits for that waits for all; it has not done so yet."""
        streams = self.unsynchronized.get(thread, {**self.tails, 0: None})
        self.unsynchronized[thread] = {}
        return [
            row
            for stream in streams
            for row in (self.tails.get(stream, ()) if stream else self.legacy)
        ]

    def note_work(self, stream: int) -> None:
        for streams in self.unsynchronized.values():
            streams[stream] = None


class Lists:
    """Rows of each row, one after the other."""

    def __init__(self) -> None:
        self.first = [0]
        self.rows: list[int] = []

    def add(self, rows: Sequence[int]) -> None:
        """Add the rows of the next row."""
        self.rows.extend(rows)
        self.first.append(len(self.rows))

    def of(self, row: int) -> list[int]:
        """Return the rows of a row."""
        return self.rows[self.first[row] : self.first[row + 1]]


@dataclass
class Order:
    """What each row of a table waits for.

    Attributes
    ----------
    after
        The rows that end before it starts on the device.
    kinds
        Why it follows those, as places in `KINDS`.
    early
        A byte for each row of `after`: whether the later kernel starts behind the earlier one's trigger.
    waits
        The rows whose end its call waits for, before the next one of its thread.
    begins
        The rows whose calls return before the host's time before its call begins.
    has_device, is_called, is_node
        A byte for each row: whether it is work on the device, whether a thread of the host calls it, and
        whether it is a node of a graph.
    """

    after: Lists
    kinds: npt.NDArray[np.uint8]
    early: npt.NDArray[np.uint8]
    waits: Lists
    begins: Lists
    has_device: bytearray
    is_called: bytearray
    is_node: bytearray


def order_of(columns: Columns) -> Order:
    """Return what the operations of a table wait for."""
    count = len(columns["operation"])
    after, waits, begins = Lists(), Lists(), Lists()
    kinds: list[int] = []
    processes: dict[int, _Process] = {}
    has_device = bytearray(count)
    is_called = bytearray(b"\1") * count
    nodes = bytearray(count)
    operations, follow_lists = columns["operation"], columns["after"]
    begin_lists = columns["begins_after"]
    streams, graphs = columns["stream"].tolist(), columns["graph"].tolist()
    threads = columns["thread"].tolist()
    events, parents = columns["event"].tolist(), columns["parent"].tolist()
    # The streams in whose order rows are that nobody calls: those of the calls that they belong to.
    homes: dict[int, int] = {}
    # The calls that those rows belong to.
    callers: dict[int, int] = {}
    waits_for_itself = _waits_for_itself(columns)
    apis = columns["api"]
    for row, (operation, stream, blocking, number) in enumerate(
        zip(
            operations,
            streams,
            columns["blocking"].tolist(),
            columns["process"].tolist(),
            strict=True,
        )
    ):
        process = processes.get(number)
        if process is None:
            process = processes[number] = _Process()
        before = follow_lists[row]
        begins.add([callers.get(other, other) for other in begin_lists[row]])
        # Memory of a stream's order (cudaMallocAsync) or of a graph.
        in_order = operation in ("allocate", "free") and ("Async" in apis[row] or graphs[row] >= 0)
        if stream < 0 or not (operation in _ON_DEVICE or in_order):
            after.add(before)
            kinds.extend([_OTHER] * len(before))
            waits.add(_host_waits(process, operation, stream, events[row], threads[row]))
            continue
        has_device[row] = 1
        graph, parent = graphs[row], parents[row]
        launch = process.graphs.get(graph, -1) if graph >= 0 and operation != "graph_launch" else -1
        is_child = parent >= 0 and operations[parent] == "kernel"
        if launch >= 0 or is_child:
            is_called[row] = 0
            nodes[row] = launch >= 0
            source = launch if launch >= 0 else parent
            follows = before if before and max(before) > source else (*before, source)
            after.add(follows)
            kinds.extend([_GRAPH if launch >= 0 else _OTHER] * len(follows))
            waits.add(())
            callers[row] = callers.get(source, source)
            home = homes[row] = homes.get(source, streams[source])
            tail = process.legacy if home == 0 else process.tails.setdefault(home, {})
            for other in follows:
                tail.pop(other, None)
            tail[row] = None
            if home == 0:
                process.epoch += 1  # what blocking streams have waited for is not all any more
            process.note_work(home)
            continue
        if stream == 0:
            own = list(process.legacy)
            follows = process.in_legacy_order()
            kinds.extend([_STREAM] * len(own) + [_DEFAULT] * (len(follows) - len(own)))
            process.legacy = {row: None}
            process.since_legacy.clear()
            process.epoch += 1
        else:
            follows = list(process.tails.get(stream, ()))
            kinds.extend([_STREAM] * len(follows))
            if blocking:
                if process.epochs.get(stream, 0) != process.epoch:
                    process.epochs[stream] = process.epoch
                    follows += process.legacy
                    kinds.extend([_DEFAULT] * len(process.legacy))
                process.since_legacy[stream] = None
            process.tails[stream] = {row: None}
        process.note_work(stream)
        event = events[row]
        if operation == "event_record":
            process.events[event] = row
        elif operation == "event_wait" and event in process.events:
            follows.append(process.events[event])
            kinds.append(_EVENT)
        elif operation == "graph_launch":
            process.graphs[graph] = row
        if before:
            follows.extend(before)
            kinds.extend([_OTHER] * len(before))
        after.add(follows)
        waits.add((row,) if waits_for_itself[row] else ())
    found = np.array(kinds, np.uint8)
    early = _early(columns, after, found, is_called, nodes)
    return Order(after, found, early, waits, begins, has_device, is_called, nodes)


def _early(
    columns: Columns,
    after: Lists,
    kinds: npt.NDArray[np.uint8],
    is_called: bytearray,
    is_node: bytearray,
) -> npt.NDArray[np.uint8]:
    """Return which dependences are of kernels with programmatic dependent launch on kernels before them.

    Those are calls of one stream, or nodes of one graph: what kernels have launched is neither.
    """
    early = np.zeros(len(kinds), np.uint8)
    operations, graphs = columns["operation"], columns["graph"]
    for row in np.flatnonzero(columns["programmatic"]).tolist():
        if operations[row] != "kernel":
            continue
        for place in range(after.first[row], after.first[row + 1]):
            other = after.rows[place]
            if operations[other] != "kernel":
                continue
            if is_node[row]:
                early[place] = bool(is_node[other]) and graphs[row] == graphs[other]
            else:
                early[place] = bool(is_called[other]) and kinds[place] == _STREAM
    return early


def _host_waits(
    process: _Process, operation: str, stream: int, event: int, thread: int
) -> list[int]:
    """Return the rows that the host waits for in a call that starts nothing."""
    if operation == "event_synchronize":
        row = process.events.get(event)
        return [] if row is None else [row]
    if operation == "stream_synchronize" and stream >= 0:
        return process.of_stream(stream)
    if operation in ("device_synchronize", "stream_synchronize", "free"):
        return process.of_all(thread)
    return []


def _waits_for_itself(columns: Columns) -> list[bool]:
    """Return whether the host waits in the call of each row for its own work.

    It does for copies that are not asynchronous, but for those within the GPU's memory, and for
    asynchronous ones from or to memory that is not pinned: they go through a buffer that is.
    """
    operation = np.array(columns["operation"], object)
    direction = np.array(columns["direction"], object)
    synchronous = ~columns["asynchronous"]
    staged = np.isin(direction, ("HtoD", "DtoH")) & ~columns["pinned"]
    copies = (operation == "copy") & ((synchronous & (direction != "DtoD")) | staged)
    found: list[bool] = (copies | ((operation == "kernel") & synchronous)).tolist()
    return found
