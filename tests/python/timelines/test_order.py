"""Operations in time against the tick-by-tick form, on random tables, and laws that hold of all."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import rounds
from python_reference import program_timeline as slow
from warpstack.errors import InputError
from warpstack.timelines.costs import Costs
from warpstack.timelines.critical import critical_path
from warpstack.timelines.operations import operations_of
from warpstack.timelines.plan import plan_of
from warpstack.timelines.schedule import WORDS, play

STREAMS = {0: True, 1: True, 2: True, 3: False}


@st.composite
def tables(draw, most=24):
    """Return rows of a program: streams of both kinds, events, graphs, waits, threads and processes."""
    rows, graphs = [], 0
    knows_threads = draw(st.booleans())
    connections = draw(st.sampled_from([[8, 8], [1, 2], [2, 1], [3, 32]]))
    while len(rows) < most:
        kind = draw(
            st.sampled_from(
                ["kernel"] * 6
                + ["copy"] * 4
                + [
                    "memset",
                    "event_record",
                    "event_wait",
                    "event_synchronize",
                    "stream_synchronize",
                ]
                + [
                    "device_synchronize",
                    "free",
                    "allocate",
                    "host_function",
                    "graph",
                    "child",
                    "stop",
                ]
            )
        )
        stream = draw(st.sampled_from([0, 1, 1, 2, 2, 3]))
        common = {
            "stream": stream,
            "blocking": STREAMS[stream],
            "priority": draw(st.sampled_from([0, 0, -1])),
            "thread": draw(st.sampled_from([0, 0, 1])),
            "process": draw(st.sampled_from([0, 0, 0, 1])),
            "host_before": draw(st.integers(0, 3)),
            "call": draw(st.integers(0, 3)),
        }
        common["connections"] = connections[common["process"]]
        if knows_threads:
            earlier = range(len(rows))
            chosen = draw(st.sets(st.sampled_from(earlier), max_size=2)) if earlier else ()
            common["begins_after"] = tuple(sorted(chosen)) if draw(st.booleans()) else ()
        if kind == "stop":
            break
        if kind == "graph":
            rows.append(slow.Row("graph_launch", graph=graphs, **common))
            launch = len(rows) - 1
            for _ in range(draw(st.integers(0, 4))):
                nodes = range(launch + 1, len(rows))
                after = draw(st.sets(st.sampled_from(list(nodes)), max_size=2)) if nodes else ()
                node = {**common, "graph": graphs, "after": tuple(sorted(after)), "parent": launch}
                rows.append(_worker(draw, draw(st.sampled_from(["kernel", "copy"])), node))
            graphs += 1
            continue
        parents = [r for r, row in enumerate(rows) if row.operation == "kernel"]
        if kind == "child":
            if parents:
                parent = draw(st.sampled_from(parents))
                common["process"] = rows[parent].process
                common["connections"] = rows[parent].connections
                rows.append(_worker(draw, "kernel", {**common, "parent": parent}))
            continue
        if kind in ("kernel", "copy", "memset", "host_function"):
            rows.append(_worker(draw, kind, common))
            continue
        if kind in ("free", "allocate", "event_synchronize", "device_synchronize"):
            common["stream"] = -1
        event = draw(st.integers(0, 1)) if kind.startswith("event") else -1
        rows.append(slow.Row(kind, event=event, **common))
    return rows


def _worker(draw, kind, common):
    blocks, places = 1, 1
    if kind == "kernel":
        places = draw(st.sampled_from([1, 4, 6, 32]))
        blocks = draw(st.integers(1, 40))
    waves = -(-blocks // places)
    block = draw(st.sampled_from([0, 1, 2, 4]))  # whose shares are exact
    shares = st.none() if kind != "kernel" or block == 0 else st.integers(0, block - 1)
    shares = st.one_of(st.none(), shares)
    return slow.Row(
        kind,
        direction=draw(st.sampled_from(["HtoD", "DtoH", "DtoD", "HtoH"])) if kind == "copy" else "",
        pinned=draw(st.booleans()),
        asynchronous=kind not in ("kernel", "copy") or draw(st.sampled_from([True, True, False])),
        programmatic=kind == "kernel" and draw(st.booleans()),
        trigger=draw(shares),
        wait=draw(shares),
        duration=waves * block,
        blocks=blocks,
        places=places,
        **common,
    )


@st.composite
def rules(draw):
    return slow.Rules(
        delay=draw(st.integers(0, 2)),
        gap=draw(st.integers(0, 2)),
        graph_gap=draw(st.integers(0, 1)),
        synchronize=draw(st.integers(0, 2)),
        grids=draw(st.sampled_from([1, 2, 128])),
        in_order=draw(st.sampled_from([False, False, True])),
        copy_engines=draw(st.sampled_from([1, 2])),
        queues=draw(st.sampled_from([2, 32])),
        # Halves have no rounding.
        both_ways=draw(st.sampled_from([Fraction(1), Fraction(1), Fraction(1, 2)])),
    )


def ordered(rows, how):
    """Return the order of rows as the package makes it, with these costs."""
    names = ("operation", "stream", "blocking", "thread", "process", "priority", "event")
    names += ("direction", "pinned", "asynchronous", "programmatic", "graph", "after", "parent")
    names += ("connections",)
    table = pd.DataFrame({name: [getattr(row, name) for row in rows] for name in names})
    if rows and rows[0].begins_after is not None:
        table["begins_after"] = [row.begins_after for row in rows]
    table["bytes"] = 0  # durations are given
    table["host_ns"] = [1000 * row.host_before for row in rows]
    gpu = gpu_of(how)
    columns = operations_of(SimpleNamespace(kernels=()), table)

    def of(name):
        return np.array([getattr(row, name) for row in rows], float)

    duration = of("duration")
    estimated = np.zeros(len(rows), bool)
    unknown = np.full(len(rows), -1, np.int32)
    trigger, wait = (
        np.array(
            [1 if (ticks := getattr(row, name)) is None else ticks / row.block for row in rows]
        )
        for name in ("trigger", "wait")
    )
    kernel = of("blocks"), of("places"), trigger, wait, unknown
    costs = Costs(duration, duration, duration, *kernel, of("call"), estimated)
    return plan_of(columns, costs, gpu), gpu


def gpu_of(how):
    return SimpleNamespace(
        compute_capability=0,
        copy_engines=how.copy_engines,
        graph_gap_us=how.graph_gap,
        launch_us_batch=how.gap,
        synchronize_us=how.synchronize,
        launch_delay_us=how.delay,
        concurrent_grids=how.grids,
        hardware_queues=1 if how.in_order else how.queues,
        host_link_both_ways=float(how.both_ways),
    )


class TestSlowForm:
    @given(tables(), rules())
    @settings(max_examples=rounds(300), deadline=None)
    def test_times_are_equal(self, rows, how):
        if not rows:
            return
        order, gpu = ordered(rows, how)
        made, expected = play(order, gpu), slow.play(rows, how)
        called = order.columns["thread"] >= 0
        held_up = {
            row: int(made.released_by[row])
            for row in range(len(rows))
            if WORDS[made.why[row]] == "queue"
        }
        assert held_up.items() <= expected.held_up_by.items()
        for name in ("host_start", "host_end", "start", "end"):
            found = getattr(made, name).tolist()
            wanted = getattr(expected, name)
            for row in range(len(rows)):
                if called[row] or not name.startswith("host"):
                    assert found[row] == pytest.approx(wanted[row]), (name, row)


class TestLaws:
    @given(tables(60), rules())
    @settings(max_examples=rounds(200), deadline=None)
    def test_nothing_starts_before_what_it_follows(self, rows, how):
        order, gpu = ordered(rows, how)
        made = play(order, gpu)
        first, before = order.columns["after_first"], order.columns["after_rows"]
        owner = np.repeat(np.arange(len(rows)), np.diff(first))
        on_device = order.columns["has_device"].astype(bool)[owner]
        early = order.columns["after_early"].astype(bool)
        ended = on_device & ~early
        assert (made.start[owner][ended] >= made.end[before][ended] - 1e-9).all()
        # Nobody overtakes: who starts behind a trigger starts and ends after the other one does.
        assert (made.start[owner][early] >= made.start[before][early] - 1e-9).all()
        assert (made.end[owner][early] >= made.end[before][early] - 1e-9).all()
        assert (
            made.end - made.start >= order.columns["duration"] * on_device_of(order) - 1e-9
        ).all()

    @given(tables(60), rules())
    @settings(max_examples=rounds(200), deadline=None)
    def test_an_engine_does_one_at_a_time(self, rows, how):
        order, gpu = ordered(rows, how)
        made = play(order, gpu)
        for engine in range(2, 6):  # but none, kernels and functions of the host
            mine = on_device_of(order) & (order.columns["engine"] == engine)
            lasts = mine & (made.end > made.start)
            place = np.argsort(made.start[lasts])
            assert (made.start[lasts][place][1:] >= made.end[lasts][place][:-1]).all()

    @given(tables(60), rules())
    @settings(max_examples=rounds(200), deadline=None)
    def test_the_steps_of_the_critical_path_follow_one_another(self, rows, how):
        order, gpu = ordered(rows, how)
        made = play(order, gpu)
        steps = critical_path(order, made)
        time = 0.0
        for step in steps:
            assert step.start == pytest.approx(time)
            time = step.end
        assert time == pytest.approx(made.time_us)

    @given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 9)), min_size=1, max_size=20))
    def test_one_stream_takes_the_sum(self, kernels):
        rows = [
            slow.Row("kernel", stream=1, blocks=b, places=4, duration=-(-b // 4) * d)
            for b, d in kernels
        ]
        order, gpu = ordered(rows, slow.Rules())
        assert play(order, gpu).time_us == pytest.approx(sum(row.duration for row in rows))

    @given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 9)), min_size=1, max_size=20))
    def test_streams_take_no_longer_than_one_and_do_no_less_work(self, kernels):
        rows = [
            slow.Row("kernel", stream=s, blocks=b, places=8, duration=-(-b // 8) * d)
            for s, (b, d) in enumerate(kernels, 1)
        ]
        order, gpu = ordered(rows, slow.Rules())
        time = play(order, gpu).time_us
        assert time <= sum(row.duration for row in rows) + 1e-9
        places_in_time = sum(b / 8 * d for b, d in kernels)
        assert time >= max(places_in_time, max(row.duration for row in rows)) - 1e-9

    @given(
        st.lists(
            st.tuples(st.integers(1, 12), st.integers(0, 5), st.booleans()), min_size=1, max_size=40
        ),
        st.sampled_from([1, 2, 3]),
        st.sampled_from([2, 4, 32]),
    )
    @settings(max_examples=rounds(200), deadline=None)
    def test_more_connections_start_nothing_later_where_there_is_room(self, kernels, few, factor):
        def starts(connections):
            rows = [
                slow.Row(
                    "event_wait" if waits else "kernel",
                    stream=stream,
                    event=0,
                    duration=duration * (not waits),
                    places=1000,
                    connections=connections,
                )
                if not waits or stream % 2
                else slow.Row("event_record", stream=stream, event=0, connections=connections)
                for stream, duration, waits in kernels
            ]
            order, gpu = ordered(rows, slow.Rules(queues=1024))
            return play(order, gpu).start

        # Streams that share one of the more share one of the fewer.
        assert (starts(few * factor) <= starts(few)).all()

    @given(st.lists(st.tuples(st.integers(1, 60), st.integers(1, 9)), min_size=1, max_size=60))
    @settings(max_examples=rounds(100), deadline=None)
    def test_connections_hold_up_nothing_that_is_ready_when_called(self, kernels):
        times = [
            play(
                *ordered(
                    [
                        slow.Row("kernel", stream=s, blocks=b, places=8, duration=-(-b // 8) * d)
                        for s, (b, d) in enumerate(kernels, 1)
                    ],
                    slow.Rules(queues=queues),
                )
            ).end.tolist()
            for queues in (2, 8, 1024)
        ]
        assert times[0] == times[1] == times[2]

    @given(
        st.integers(0, 30),
        st.integers(0, 30),
        st.integers(0, 30),
        st.floats(0.5, 1, exclude_min=True),
    )
    @settings(max_examples=rounds(200), deadline=None)
    def test_copies_both_ways_take_between_the_longer_and_both(self, up, down, later, both_ways):
        rows = [
            slow.Row("copy", stream=1, direction="HtoD", duration=up),
            slow.Row("copy", stream=2, direction="DtoH", duration=down, host_before=later),
        ]
        order, gpu = ordered(rows, slow.Rules(both_ways=both_ways))
        made = play(order, gpu)
        alone, apart = max(up, later + down), max(up, later) + down
        assert alone - 1e-9 <= made.time_us <= apart + 1e-9
        # What they move: while both go, each at its share.
        together = max(min(made.end) - later, 0) if up > later and down else 0
        busy = (made.end - made.start).sum() - 2 * together
        assert busy + 2 * together * both_ways == pytest.approx(up + down)

    @given(tables(60), rules())
    @settings(max_examples=rounds(200), deadline=None)
    def test_what_holds_up_a_connection_is_called_before(self, rows, how):
        order, gpu = ordered(rows, how)
        made = play(order, gpu)
        connection, called = order.columns["connection"], made.host_start
        for row in np.flatnonzero(made.why == WORDS.index("queue")).tolist():
            other = int(made.released_by[row])
            assert other < row
            assert connection[other] == connection[row] >= 0
            assert called[other] <= made.start[row]
            assert made.start[other] >= made.ready[row] == made.ready[other]


def on_device_of(order):
    return order.columns["has_device"].astype(bool)


class TestByHand:
    def why(self, made, row):
        return WORDS[made.why[row]], int(made.released_by[row])

    def test_eight_kernels_of_one_block_take_the_time_of_one(self):
        # concurrentKernels: one block in each of eight streams.
        rows = [
            slow.Row("kernel", stream=s, blocks=1, places=108, duration=10) for s in range(1, 9)
        ]
        order, gpu = ordered(rows, slow.Rules())
        assert play(order, gpu).time_us == 10

    @pytest.mark.parametrize(("connections", "kernels"), [(32, 2), (16, 3), (8, 5), (1, 33)])
    def test_simple_hyper_q(self, connections, kernels):
        # 32 streams of two kernels each; with one queue 33, as the sample itself says.
        rows = [
            slow.Row("kernel", stream=s, places=108, duration=10, connections=connections)
            for s in range(1, 33)
            for _ in range(2)
        ]
        order, gpu = ordered(rows, slow.Rules())
        made = play(order, gpu)
        assert made.time_us == 10 * kernels
        if connections == 8:
            # Stream 8 shares its queue with the default stream alone, which has no work. The first kernel
            # of stream 9 is behind the second one of stream 1.
            assert made.start[14] == 0
            assert self.why(made, 16) == ("queue", 1)
            # What the second one waited for is the step before.
            path = [(step.row, step.part) for step in critical_path(order, made)]
            assert all(part == "device" for _, part in path)
            assert len(path) == kernels

    def test_a_wait_for_an_event_holds_up_what_is_behind_it_in_its_stream_and_connection(self):
        rows = [
            slow.Row("kernel", stream=1, duration=7, places=8, connections=2),
            slow.Row("event_record", stream=1, event=0, connections=2),
            slow.Row("event_wait", stream=2, event=0, connections=2),
            slow.Row("kernel", stream=2, duration=1, places=8, connections=2),
            slow.Row("kernel", stream=3, duration=1, places=8, connections=2),
            slow.Row("kernel", stream=4, duration=1, places=8, connections=2),
            slow.Row("copy", stream=4, direction="HtoD", duration=1, connections=2),
        ]
        order, gpu = ordered(rows, slow.Rules())
        made = play(order, gpu)
        # Streams 2 and 4 share a connection with the default stream, 1 and 3 have the other one.
        assert made.start.tolist() == [0, 7, 7, 7, 0, 7, 8]
        assert self.why(made, 5) == ("queue", 3)
        # Without the kernel behind it, the wait holds up nobody.
        del rows[3]
        order, gpu = ordered(rows, slow.Rules())
        assert play(order, gpu).start.tolist() == [0, 7, 7, 0, 0, 1]

    def test_connections_are_those_of_a_process(self):
        rows = [
            slow.Row("kernel", stream=s, process=p, duration=5, places=108, connections=1)
            for p in (0, 1)
            for s in (1, 1, 2)
        ]
        order, gpu = ordered(rows, slow.Rules())
        assert play(order, gpu).start.tolist() == [0, 5, 5, 0, 5, 5]

    def test_copies_of_both_directions_slow_each_other_down(self):
        rows = [
            slow.Row("copy", stream=1, direction="HtoD", duration=8),
            slow.Row("copy", stream=2, direction="DtoH", duration=4),
            slow.Row("copy", stream=3, direction="DtoH", duration=2, pinned=False, thread=1),
        ]
        order, gpu = ordered(rows[:2], slow.Rules(both_ways=0.8))
        assert play(order, gpu).end.tolist() == [9, 5]
        # What goes through a buffer leaves the link alone; one engine does one at a time.
        order, gpu = ordered([rows[0], rows[2]], slow.Rules(both_ways=0.8))
        assert play(order, gpu).end.tolist() == [8, 2]
        order, gpu = ordered(rows[:2], slow.Rules(both_ways=0.8, copy_engines=1))
        assert play(order, gpu).end.tolist() == [8, 12]

    def test_a_later_grid_takes_what_the_last_wave_leaves(self):
        # 12 blocks on 8 places: 8 until 5, 4 until 10, and 4 of 8 places from 5 on for the other's 4.
        rows = [
            slow.Row("kernel", stream=1, blocks=12, places=8, duration=10),
            slow.Row("kernel", stream=2, blocks=4, places=8, duration=6),
        ]
        order, gpu = ordered(rows, slow.Rules())
        made = play(order, gpu)
        assert made.start.tolist() == [0, 5]
        assert made.end.tolist() == [10, 11]
        assert self.why(made, 1) == ("places", 0)

    @pytest.mark.parametrize(
        ("trigger", "wait", "start", "end"),
        [
            (2, 6, 3, 12),  # it triggers at 2, and the other one has computed for 6 before 10
            (2, 0, 3, 18),
            (2, None, 3, 11),
            (8, 2, 9, 17),
            (8, 0, 9, 18),
            (None, 4, 11, 19),
        ],
    )
    def test_a_kernel_behind_a_trigger(self, trigger, wait, start, end):
        places = {"places": 8, "programmatic": True}
        rows = [
            slow.Row("kernel", stream=1, blocks=4, duration=10, trigger=trigger, **places),
            slow.Row("kernel", stream=1, blocks=4, duration=8, wait=wait, **places),
        ]
        order, gpu = ordered(rows, slow.Rules(gap=1))
        made = play(order, gpu)
        assert made.start.tolist() == pytest.approx([0, start])
        assert made.end.tolist() == pytest.approx([10, end])
        assert self.why(made, 1) == ("stream order", 0)
        assert made.held_by.tolist() == [-1, 0 if wait is not None and start + wait < 10 else -1]
        steps = critical_path(order, made)
        assert sum(step.end - step.start for step in steps) == pytest.approx(made.time_us)

    def test_who_overtakes_ends_behind_those_before_it(self):
        rows = [
            slow.Row("kernel", stream=1, places=8, duration=8, trigger=2),
            slow.Row("kernel", stream=1, places=8, duration=2, programmatic=True),
            slow.Row("kernel", stream=1, places=8, duration=3),
        ]
        order, gpu = ordered(rows, slow.Rules())
        made = play(order, gpu)
        assert made.start.tolist() == [0, 2, 8]
        assert made.end.tolist() == [8, 8, 11]

    def test_a_kernel_in_all_places_leaves_none_before_its_end(self):
        # Its last wave has half of the places: the other one starts behind its trigger, in the others.
        rows = [
            slow.Row("kernel", stream=1, blocks=12, places=8, duration=8, trigger=1),
            slow.Row("kernel", stream=1, blocks=8, places=8, duration=4, programmatic=True),
        ]
        order, gpu = ordered(rows, slow.Rules())
        made = play(order, gpu)
        assert made.start.tolist() == [0, 5]
        assert made.end.tolist() == [8, 12]

    def test_priority_goes_first_where_a_wave_ends(self):
        rows = [
            slow.Row("kernel", stream=1, blocks=12, places=8, duration=10),
            slow.Row("kernel", stream=2, blocks=8, places=8, duration=6),
            slow.Row("kernel", stream=3, priority=-1, blocks=8, places=8, duration=3, call=1),
        ]
        # At 5 the first one's last wave waits for the stream of high priority, which has all places
        # until 8; then the last wave has 4 of them until 13, and the second kernel the others.
        order, gpu = ordered(rows, slow.Rules())
        made = play(order, gpu)
        assert made.start.tolist() == [0, 8, 5]
        assert made.end[0] == 13

    def test_the_default_stream_waits_for_blocking_streams_and_they_for_it(self):
        rows = [
            slow.Row("kernel", stream=1, duration=4, places=8),
            slow.Row("kernel", stream=3, blocking=False, duration=9, places=8),
            slow.Row("kernel", stream=0, duration=2, places=8),
            slow.Row("kernel", stream=2, duration=1, places=8),
        ]
        order, gpu = ordered(rows, slow.Rules())
        made = play(order, gpu)
        assert made.start.tolist() == [0, 0, 4, 6]
        assert self.why(made, 2) == ("default stream", 0)
        assert self.why(made, 3) == ("default stream", 2)

    def test_an_event_is_what_was_recorded_when_the_wait_was_called(self):
        rows = [
            slow.Row("kernel", stream=1, duration=5, places=8),
            slow.Row("event_record", stream=1, event=7),
            slow.Row("event_wait", stream=2, event=7),
            slow.Row("kernel", stream=1, duration=5, places=8),
            slow.Row("event_record", stream=1, event=7),
            slow.Row("kernel", stream=2, duration=1, places=8),
        ]
        order, gpu = ordered(rows, slow.Rules())
        made = play(order, gpu)
        assert made.start[5] == 5
        assert self.why(made, 2) == ("event", 1)

    @pytest.mark.parametrize(
        ("engines", "in_order", "version", "expected"),
        [
            # The example of "How to Overlap Data Transfers in CUDA C/C++": four streams, each of which
            # copies 4 units to the GPU, computes 3 and copies 4 back; one after the other 44.
            # One engine and one queue (C1060): copies wait for the copies before them, in both orders;
            # version 1 has no overlap, version 2 hides all kernels but none of the copies.
            (1, True, 1, 44),
            (1, True, 2, 32),
            # Two engines: the last stream's copy to the GPU ends at 16, its kernel at 19.
            (2, False, 1, 23),
            (2, False, 2, 23),
            # One engine that takes what is ready: 32 units of copies, at no time idle.
            (1, False, 1, 32),
            (1, False, 2, 32),
        ],
    )
    def test_overlap_of_copies(self, engines, in_order, version, expected):
        def steps(stream):
            return [
                slow.Row("copy", stream=stream, direction="HtoD", duration=4),
                slow.Row("kernel", stream=stream, duration=3),
                slow.Row("copy", stream=stream, direction="DtoH", duration=4),
            ]

        streams = [steps(stream) for stream in range(1, 5)]
        rows = [row for stream in streams for row in stream]
        if version == 2:
            rows = [row for step in zip(*streams, strict=True) for row in step]
        order, gpu = ordered(rows, slow.Rules(copy_engines=engines, in_order=in_order))
        assert play(order, gpu).time_us == expected

    def test_the_host_waits_for_copies_that_are_not_pinned(self):
        rows = [
            slow.Row("copy", stream=1, direction="HtoD", pinned=False, duration=8, call=1),
            slow.Row("kernel", stream=2, duration=2, call=1),
        ]
        order, gpu = ordered(rows, slow.Rules(synchronize=1))
        made = play(order, gpu)
        assert made.host_end.tolist() == [10, 11]
        assert made.start.tolist() == [1, 11]

    def test_nodes_of_a_graph_go_by_their_dependences(self):
        rows = [
            slow.Row("graph_launch", stream=1, graph=0, call=2),
            slow.Row("kernel", stream=1, graph=0, places=8, duration=3),
            slow.Row("kernel", stream=1, graph=0, places=8, duration=5),
            slow.Row("kernel", stream=1, graph=0, after=(1, 2), places=8, duration=1),
            slow.Row("kernel", stream=1, places=8, duration=1),
        ]
        order, gpu = ordered(rows, slow.Rules())
        made = play(order, gpu)
        assert made.start.tolist() == [2, 2, 2, 7, 8]
        assert self.why(made, 3) == ("graph", 2)

    def test_a_thread_begins_after_the_call_before_it_was_made(self):
        rows = [
            slow.Row("allocate", call=5, begins_after=()),
            slow.Row("kernel", stream=1, duration=9, places=8, call=1, begins_after=()),
            slow.Row("device_synchronize", begins_after=()),
            # A thread that was made after the launch, and one that nobody made.
            slow.Row("allocate", thread=1, host_before=2, call=1, begins_after=(1,)),
            slow.Row("allocate", thread=2, call=1, begins_after=()),
            # It waits for the second thread's end, not for that of the third.
            slow.Row("free", thread=1, call=1, begins_after=(2, 4)),
        ]
        order, gpu = ordered(rows, slow.Rules())
        made = play(order, gpu)
        assert made.host_start.tolist() == [0, 5, 6, 8, 0, 15]
        assert made.host_end.tolist() == [5, 6, 15, 9, 1, 16]
        parts = [(step.row, step.part) for step in critical_path(order, made)]
        assert parts == [(0, "call"), (1, "call"), (1, "device"), (5, "call")]

    def test_without_its_maker_a_thread_begins_after_the_row_before(self):
        rows = [
            slow.Row("kernel", stream=1, duration=9, places=8, call=1),
            slow.Row("device_synchronize"),
            slow.Row("allocate", thread=1, call=1),
            slow.Row("allocate", process=1, call=1),
        ]
        order, gpu = ordered(rows, slow.Rules())
        assert play(order, gpu).host_start.tolist() == [0, 1, 10, 0]

    def test_no_call_begins_after_what_nobody_calls(self):
        order, gpu = ordered(
            [slow.Row("graph_launch", stream=1, graph=0), slow.Row("kernel", stream=1, graph=0)],
            slow.Rules(),
        )
        order.columns["begins_rows"] = np.array([1], np.int32)
        order.columns["begins_first"] = np.array([0, 1, 1], np.int64)
        with pytest.raises(InputError, match="begins: operation 1 is no call of a host thread"):
            play(order, gpu)

    def test_circles_are_refused(self):
        # A row whose call is behind a wait for it: only after= of later rows could make one.
        order, gpu = ordered(
            [slow.Row("kernel", stream=1), slow.Row("kernel", stream=1)], slow.Rules()
        )
        order.columns["after_rows"] = np.array([1], np.int32)
        order.columns["after_first"] = np.array([0, 0, 1], np.int64)
        with pytest.raises(InputError, match="operation 1 waits for operations that wait for it"):
            play(order, gpu)
