"""A program's time line, tick by tick: the slow, obvious form of `warpstack.timelines`.

What operations take are whole numbers; where copies slow each other down there are ticks between them.
Which operations one follows is asked of each pair of rows; at each tick everything that can happen does.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor

ON_DEVICE = {
    "kernel",
    "copy",
    "memset",
    "event_record",
    "event_wait",
    "graph_launch",
    "host_function",
}


@dataclass
class Row:
    """An operation with its costs; `waves` of a kernel divide its duration."""

    operation: str
    stream: int = -1
    blocking: bool = True
    thread: int = 0
    process: int = 0
    priority: int = 0
    event: int = -1
    direction: str = ""
    pinned: bool = True
    asynchronous: bool = True
    programmatic: bool = False
    graph: int = -1
    after: tuple = ()
    parent: int = -1
    begins_after: tuple | None = None  # None: not known
    connections: int = 8
    host_before: int = 0
    call: int = 0
    duration: int = 0
    blocks: int = 1
    places: int = 1
    trigger: int | None = None  # ticks of a block before it triggers; None: at its end
    wait: int | None = None  # and before it waits; None: never

    @property
    def block(self):
        return self.duration // ceil(Fraction(self.blocks, self.places))


@dataclass
class Rules:
    """What holds of the whole machine."""

    delay: int = 0
    gap: int = 0
    graph_gap: int = 0
    synchronize: int = 0
    grids: int = 128
    in_order: bool = False
    copy_engines: int = 2
    queues: int = 32
    both_ways: Fraction = Fraction(1)


@dataclass
class Times:
    """When each row was where; None: never."""

    host_start: list = field(default_factory=list)
    host_end: list = field(default_factory=list)
    start: list = field(default_factory=list)
    end: list = field(default_factory=list)
    held_up_by: dict = field(default_factory=dict)  # the row of its connection that it waited for


def is_on_device(row):
    return row.operation in ON_DEVICE and row.stream >= 0


def source_of(rows, r):
    """Return the row that starts this one in the place of a call: a launch of its graph, or a kernel."""
    row = rows[r]
    if not is_on_device(row):
        return None
    if row.graph >= 0 and row.operation != "graph_launch":
        launches = [q for q in range(r) if rows[q].operation == "graph_launch"]
        launches = [
            q for q in launches if rows[q].graph == row.graph and rows[q].process == row.process
        ]
        if launches:
            return launches[-1]
    if row.parent >= 0 and rows[row.parent].operation == "kernel":
        return row.parent
    return None


def called_for(rows, r):
    """Return the called row that this one belongs to."""
    while (source := source_of(rows, r)) is not None:
        r = source
    return r


def last_record(rows, r):
    records = [
        q
        for q in range(r)
        if rows[q].operation == "event_record"
        and is_on_device(rows[q])
        and (rows[q].event, rows[q].process) == (rows[r].event, rows[r].process)
    ]
    return records[-1:]


def ordered(rows, q, stream, blocking, process):
    """Return whether an operation that is called now in a stream follows row q."""
    if not is_on_device(rows[q]) or rows[q].process != process:
        return False
    before = rows[called_for(rows, q)]
    if before.stream == stream:
        return True
    if stream == 0:
        return before.blocking
    return before.stream == 0 and blocking


def follows(rows, r):
    """Return all rows that must end before a row of the device starts."""
    row, source = rows[r], source_of(rows, r)
    found = set(row.after)
    if source is not None:
        return found | {source}
    found |= {q for q in range(r) if ordered(rows, q, row.stream, row.blocking, row.process)}
    if row.operation == "event_wait":
        found |= set(last_record(rows, r))
    return found


def is_node(rows, r):
    source = source_of(rows, r)
    return source is not None and rows[r].graph >= 0 and rows[source].operation == "graph_launch"


def early(rows, r):
    """Return the rows of which the trigger, and not the end, comes before a row starts."""
    row = rows[r]
    if row.operation != "kernel" or not row.programmatic:
        return set()
    if source_of(rows, r) is not None:
        if not is_node(rows, r):
            return set()
        mates = {q for q in row.after if is_node(rows, q) and rows[q].graph == row.graph}
        return {q for q in mates if rows[q].operation == "kernel"}
    last = in_stream_before(rows, r)[-1:]
    return {q for q in last if rows[q].operation == "kernel" and source_of(rows, q) is None}


def in_stream_before(rows, r):
    """Return the earlier rows of a called row's stream, with those that they have started."""
    mine = rows[r].process, rows[r].stream
    earlier = [q for q in range(r) if is_on_device(rows[q])]
    homes = {q: rows[called_for(rows, q)] for q in earlier}
    return [q for q in earlier if (homes[q].process, homes[q].stream) == mine]


def waits(rows, r):
    """Return the rows that the host waits for in a call."""
    row = rows[r]
    earlier = [q for q in range(r) if is_on_device(rows[q]) and rows[q].process == row.process]
    if is_on_device(row):
        staged = row.direction in ("HtoD", "DtoH") and not row.pinned
        waits_for_copy = row.operation == "copy" and (
            staged or (not row.asynchronous and row.direction != "DtoD")
        )
        return [r] if waits_for_copy or (row.operation == "kernel" and not row.asynchronous) else []
    if row.operation == "event_synchronize":
        return last_record(rows, r)
    if row.operation == "stream_synchronize" and row.stream >= 0:
        # Streams have one kind.
        blocking = [rows[q].blocking for q in earlier if rows[q].stream == row.stream]
        if row.stream == 0:
            return [q for q in earlier if ordered(rows, q, 0, True, row.process)]
        return [q for q in earlier if blocking and rows[called_for(rows, q)].stream == row.stream]
    if row.operation in ("device_synchronize", "stream_synchronize", "free"):
        return earlier
    return []


def begins(rows, r):
    """Return the calls that must have returned before the host's time before a call begins."""
    row = rows[r]
    if row.begins_after is not None:
        found = row.begins_after
    else:
        mine = [q for q in range(r) if rows[q].process == row.process]
        is_first = all(rows[q].thread != row.thread for q in mine)
        found = mine[-1:] if is_first else ()
    return [called_for(rows, q) for q in found]


def engine_of(row, rules):
    if row.operation == "copy":
        if row.direction == "HtoH":
            return None
        if row.direction in ("DtoH", "PtoP"):
            return "to_gpu" if rules.copy_engines == 1 else "to_host"
        return "to_gpu" if row.direction == "HtoD" else "on_gpu"
    return {"kernel": "kernels", "memset": "memset"}.get(row.operation)


def connection_of(rows, r, rules):
    """Return the queue by which a call reaches the device; None: by none."""
    row = rows[r]
    sort = row.direction if row.operation == "copy" else row.operation
    sorts = {"kernel": 0, "memset": 0, "HtoD": 1, "DtoH": 2, "PtoP": 2, "DtoD": 3}
    if not is_on_device(row) or source_of(rows, r) is not None or sort not in sorts:
        return None
    streams = [0]  # in the order in which the process has made them
    for other in rows[: r + 1]:
        if other.process == row.process and other.stream >= 0 and other.stream not in streams:
            streams.append(other.stream)
    place = streams.index(row.stream) % min(row.connections, rules.queues)
    return row.process, sorts[sort], place


def fills_link(row):
    return row.operation == "copy" and row.direction in ("HtoD", "DtoH") and row.pinned


def play(rows, rules):
    """Return the times of rows."""
    n = len(rows)
    made = Times([None] * n, [None] * n, [None] * n, [None] * n)
    device = [is_on_device(row) for row in rows]
    engine = [engine_of(row, rules) if device[r] else None for r, row in enumerate(rows)]
    before = [follows(rows, r) if device[r] else set() for r in range(n)]
    host_waits = [waits(rows, r) if source_of(rows, r) is None else [] for r in range(n)]
    called = [source_of(rows, r) is None for r in range(n)]
    host_before = [begins(rows, r) for r in range(n)]
    issued, ready = [None] * n, [None] * n
    free_since = [None] * n  # when it waited for nothing but its connection
    connections = [None if rules.in_order else connection_of(rows, r, rules) for r in range(n)]
    to_copy = {}  # of the copies that fill the link: what is left of their time alone
    behind = [early(rows, r) if device[r] else set() for r in range(n)]
    for r in range(n):
        # The stream's other rows are before that one.
        before[r] -= behind[r] | (
            set(in_stream_before(rows, r)) if behind[r] and called[r] else set()
        )
    triggered = [None] * n
    threads = sorted({(row.process, row.thread) for r, row in enumerate(rows) if called[r]})
    calls = {
        t: [r for r in range(n) if called[r] and (rows[r].process, rows[r].thread) == t]
        for t in threads
    }
    left = [row.blocks for row in rows]
    chunks = []  # of blocks that run

    def ended(q, t):
        return made.end[q] is not None and made.end[q] <= t

    def held_up(r):
        """Return the row before one, in its connection, that has been called and cannot go yet."""
        mine = [q for q in range(r) if connections[q] == connections[r] and issued[q] is not None]
        return next((q for q in mine if connections[r] is not None and ready[q] is None), None)

    def link_speed():
        """Return how fast the copies are that fill the link."""
        engines = {engine[r] for r in to_copy}
        return rules.both_ways if len(engines) > 1 else 1

    def has_no_primary(r, t):
        """Return whether those have ended that a kernel started behind the triggers of."""
        return all(ended(q, t) for q in behind[r])

    def has_triggered(chunk, t):
        is_known = not chunk["is_held"] or chunk["trigger"] <= chunk["wait"]
        return is_known and chunk["trigger"] <= t

    def advance(t):
        """Let happen what happens without anybody's choice; return whether anything did."""
        changed = False
        for r in [r for r, work in to_copy.items() if work == 0]:
            del to_copy[r]
            made.end[r] = t
            changed = True
        for chunk in [c for c in chunks if c["is_held"] and has_no_primary(c["row"], t)]:
            waited = max(t - chunk["wait"], 0)
            if chunk["trigger"] > chunk["wait"]:
                chunk["trigger"] += waited
            chunk["end"] += waited
            chunk["is_held"] = False
            changed = True
        for chunk in [c for c in chunks if not c["is_held"] and c["end"] <= t]:
            chunks.remove(chunk)
            changed = True
        for r in range(n):
            if engine[r] != "kernels" or made.start[r] is None or left[r] > 0:
                continue
            mine = [c for c in chunks if c["row"] == r]
            if triggered[r] is None and all(has_triggered(c, t) for c in mine):
                triggered[r] = t
                changed = True
            if made.end[r] is None and not mine and has_no_primary(r, t):
                made.end[r] = t
                changed = True
        for t_calls in calls.values():
            for place, r in enumerate(t_calls):
                if made.host_end[r] is not None and made.host_end[r] <= t:
                    continue
                if made.host_start[r] is None:
                    others = [made.host_end[q] for q in host_before[r]]
                    if any(end is None or end > t for end in others):
                        break
                    returned = made.host_end[t_calls[place - 1]] if place else 0
                    made.host_start[r] = max([returned, *others]) + rows[r].host_before
                    changed = True
                if issued[r] is None and made.host_start[r] + rows[r].call <= t:
                    issued[r] = t
                    changed = True
                if issued[r] is not None and made.host_end[r] is None:
                    if not host_waits[r]:
                        made.host_end[r] = t
                    elif all(ended(q, t) for q in host_waits[r]):
                        latest = max(made.end[q] for q in host_waits[r])
                        made.host_end[r] = max(t, latest + rules.synchronize)
                    changed |= made.host_end[r] is not None
                    if made.host_end[r] is not None and not device[r]:
                        made.start[r], made.end[r] = made.host_start[r], made.host_end[r]
                if made.host_end[r] is None or made.host_end[r] > t:
                    break
        if changed:
            return True  # calls come first
        for r in range(n):
            if not device[r] or ready[r] is not None:
                continue
            gap = rules.graph_gap if is_node(rows, r) else rules.gap
            gap = gap if engine[r] == "kernels" else 0
            if called[r] and (issued[r] is None or issued[r] + rules.delay > t):
                continue
            times = [made.end[q] for q in before[r]] + [triggered[q] for q in behind[r]]
            if all(time is not None and time + gap <= t for time in times):
                free_since[r] = t if free_since[r] is None else free_since[r]
                first = held_up(r)
                if first is not None:
                    made.held_up_by[r] = first
                    continue
                ready[r] = t
                if engine[r] is None:
                    made.start[r], made.end[r] = t, t + rows[r].duration
                if free_since[r] == t:
                    made.held_up_by.pop(r, None)
                return True  # what follows from it comes first
        return False

    def started():
        """Return the kernels that have started and not ended."""
        mine = [q for q in range(n) if engine[q] == "kernels" and made.start[q] is not None]
        return [q for q in mine if left[q] > 0 or any(c["row"] == q for c in chunks)]

    def first_of(name):
        mine = [r for r in range(n) if engine[r] == name]
        waiting = [r for r in mine if (left[r] > 0 if name == "kernels" else made.start[r] is None)]
        if rules.in_order:
            waiting = waiting[:1]
        waiting = [r for r in waiting if ready[r] is not None]
        if name == "kernels" and len(started()) >= rules.grids:
            waiting = [r for r in waiting if made.start[r] is not None]
        key = lambda r: (rows[r].priority if name == "kernels" else 0, ready[r], r)  # noqa: E731
        return min(waiting, key=key, default=None)

    def dispatch(t):
        changed = False
        for name in ("to_gpu", "to_host", "on_gpu", "memset"):
            busy = any(
                engine[r] == name and made.start[r] is not None and not ended(r, t)
                for r in range(n)
            )
            r = first_of(name)
            if not busy and r is not None:
                made.start[r] = t
                if fills_link(rows[r]):
                    to_copy[r] = Fraction(rows[r].duration)
                else:
                    made.end[r] = t + rows[r].duration
                changed = True
        while (r := first_of("kernels")) is not None:
            places = rows[r].places
            free = 1 - sum(c["share"] for c in chunks)
            taken = min(left[r], floor(free * places))
            if taken < 1:
                break
            waves = 1
            if left[r] > taken:
                waves = left[r] // places if taken == places else max(1, left[r] // places // 2)
            all_waves = ceil(Fraction(rows[r].blocks, places))
            assert rows[r].duration % all_waves == 0
            left[r] -= taken * waves
            if made.start[r] is None:
                made.start[r] = t
            block, end = rows[r].block, t + rows[r].block * waves
            trigger = end if rows[r].trigger is None else end - block + rows[r].trigger
            wait = end if rows[r].wait is None else t + rows[r].wait
            chunks.append(
                {
                    "row": r,
                    "share": Fraction(taken, places),
                    "end": end,
                    "trigger": trigger,
                    "wait": wait,
                    "is_held": rows[r].wait is not None and not has_no_primary(r, t),
                }
            )
            changed = True
        return changed

    t = Fraction(0)
    while any(made.end[r] is None or made.end[r] > t for r in range(n)) or any(
        called[r] and (made.host_end[r] is None or made.host_end[r] > t) for r in range(n)
    ):
        changed = True
        while changed:
            while advance(t):
                pass
            changed = dispatch(t)
        speed = link_speed()
        # All that lasts whole numbers began at a whole time, or when a copy ended.
        parts = {0, *(end % 1 for end in made.end if end is not None)}
        ticks = [floor(t - part) + 1 + part for part in parts]
        after = min([*ticks, *(t + work / speed for work in to_copy.values())])
        for r in to_copy:
            to_copy[r] -= (after - t) * speed
        t = after
        assert t < 100_000, "it does not end"
    return made
