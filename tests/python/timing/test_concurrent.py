"""Several grids on one simulated machine: equalities, closed forms, conservation laws."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from timed_gpus import BLOCK_STARTS, timed_gpus

import kernel_recipes as kr
import random_cases as rc
import warpstack as ws
from configurations import simulator_config
from effort import rounds
from machines import plain_pascal
from python_reference.timing import PARTS
from python_reference.timing_concurrent import ConcurrentMachine
from strategies import copying_kernels, kernels, overlapping_kernels
from warpstack.cli import main
from warpstack.timing.concurrent import checked_places, places_of
from warpstack.traces.connections import connections_of
from warpstack.traces.operations import columns_of
from warpstack.traces.order import order_of
from warpstack.traces.trace import App

#: What a single run and a run of one grid among several have in common.
FIELDS = (
    "cycles",
    "instructions",
    "tensor_cycles",
    "active_sms",
    "sm_cycles",
    "l1_size_bytes",
    "slots",
    "store_slots",
    "critical_cycles",
    "misses",
    "miss_cycles",
    "totals",
    "occupancy",
    "details",
)
MISSES = ("dram_read_sectors", "dram_write_sectors")


def values(core):
    return {name: getattr(core, name) for name in FIELDS}


def computing(blocks, warps=8, length=200, name="computing", **header):
    """Return a kernel whose warps only compute, each instruction after the one before."""
    k = ws.patterns.KernelBuilder(name, grid=blocks, block=32 * warps, **header)
    for _ in range(length):
        k.emit("FFMA", dst=1, src=1)
    return k.build()


def together(kernels, gpu, **how):
    """Simulate kernels at the same time."""
    return ws.timing.Simulator(gpu).run_concurrently(kernels, **how)


def pairs(seed, number):
    """Return random pairs of kernels with random GPUs."""
    for n in range(number):
        one, other = rc.random_case(seed, 2 * n), rc.random_case(seed, 2 * n + 1)
        gpu = one.on()
        yield kr.trace(one.launches[0]), kr.trace(rc._fitting(other.launches[0], gpu)), gpu


@pytest.mark.parametrize("number", range(12))
def test_one_grid_equals_the_plain_simulation(number):
    case = rc.random_case(8101, number)
    kernel, gpu = kr.trace(case.launches[0]), case.on()
    plain = ws.simulate(kernel, gpu, timeline_cycles=50)
    whole = ws.simulate(kernel, gpu, timeline_cycles=50, concurrent=True)
    assert values(whole._core) == values(plain._core)
    assert whole.timeline.equals(plain.timeline)
    (row,) = whole.to_frame().to_dict("records")
    assert (row["end"], row["instructions"]) == (plain.cycles, plain.instructions)


@pytest.mark.parametrize("number", range(6))
def test_one_stream_is_the_plain_sum(number):
    (one, other, gpu) = list(pairs(8102, number + 1))[-1]
    plain = ws.simulate(ws.App([one, other, one]), gpu)
    chain = together([one, other, one], gpu, streams=[5, 5, 5])
    assert chain.cycles == sum(result.cycles for result in plain)
    table = chain.to_frame()
    assert list(table["end"]) == list(np.cumsum([result.cycles for result in plain]))
    for name, total in chain.totals.items():
        if name != "l2_dirty_sectors":
            assert total == sum(result.totals[name] for result in plain)
    assert chain._core.slots == pytest.approx(
        {part: sum(r._core.slots[part] for r in plain) for part in chain._core.slots}
    )


def reasons(both, alone):
    """Return why launches may take longer together than one after the other, each with its measure."""

    def more(*names):
        return sum(both.totals[name] for name in names) > 1.01 * sum(
            result.totals[name] for result in alone for name in names
        )

    spread = [result._core.active_sms for result in alone]
    named = {
        "blocks share SMs that they had alone": any(both.to_frame()["sms"] < spread),
        "L1 holds less of each": more("l2_read_sectors"),
        "L2 holds less of each": more(*MISSES),
    }
    return [name for name, holds in named.items() if holds]


def test_a_pair_takes_no_longer_than_its_sum_and_no_less_than_its_larger_part():
    overlapped = unnamed = 0
    for one, other, gpu in pairs(8103, 40):
        alone = [ws.simulate(kernel, gpu) for kernel in (one, other)]
        plain = [result.cycles for result in ws.simulate(ws.App([one, other]), gpu)]
        both = ws.simulate(ws.App([one, other]), gpu, concurrent=True)
        assert both.instructions == sum(result.instructions for result in alone)
        named = reasons(both, alone)
        unnamed += not named
        assert both.cycles <= sum(plain) * 1.02 or named
        # What one fetches into L2 the other finds there.
        moved = [sum(r.totals[name] for name in MISSES) for r in (both, *alone)]
        shares = moved[0] < 0.99 * sum(moved[1:])
        assert both.cycles >= max(result.cycles for result in alone) * 0.98 or shares
        overlapped += both.cycles < 0.95 * sum(plain)
        stack = sum(both.cpi_stack.values())
        assert stack == pytest.approx(both.cpi)
    # Most pairs overlap, and most have no excuse.
    assert overlapped >= 25
    assert unnamed >= 20


class TestClosedForms:
    """Machines without any latency of launches, on which times follow by hand."""

    def test_eight_kernels_of_one_block_take_the_time_of_one(self):
        gpu = ws.gpu("a100")
        one = ws.simulate(computing(1), gpu).cycles
        both = together([computing(1) for _ in range(8)], gpu)
        assert one <= both.cycles <= one * 1.01 + 8 * gpu.block_interval_cycles + 1
        assert both._core.active_sms == 8

    def test_two_grids_of_half_of_the_places_take_the_time_of_one(self):
        # Eight warps of a chain leave most issue slots free.
        gpu = plain_pascal(num_sms=4, fp32_latency=16, issue_width=4)
        blocks = gpu.num_sms * gpu.warps_per_sm // 8 // 2
        one = ws.simulate(computing(blocks), gpu).cycles
        both = together([computing(blocks), computing(blocks)], gpu)
        assert both.cycles <= one * 1.05
        assert (both.to_frame()["start"] == 0).all()

    def test_a_grid_on_an_empty_machine_pays_no_replacement(self):
        # One place: the second grid starts when the first one has ended, as in a plain run.
        gpu = plain_pascal(num_sms=1, blocks_per_sm=1).replace(block_replacement_ns=100)
        one, two = computing(3, length=50), computing(2, length=70)
        alone = [ws.simulate(kernel, gpu).cycles for kernel in (one, two)]
        table = together([one, two], gpu).to_frame()
        assert list(table["end"]) == [alone[0], sum(alone)]

    def test_a_grid_behind_a_running_block_waits_for_the_replacement(self):
        # Two places: one of the first grid's blocks still runs when the second grid gets the other.
        gpu = plain_pascal(num_sms=2, blocks_per_sm=1)
        first, second = computing(3, length=200), computing(1, length=50)
        slow = gpu.replace(block_replacement_ns=100)
        fast, paid = (together([first, second], g).to_frame()["start"][1] for g in (gpu, slow))
        # The third block of the first grid pays as well, on the other SM.
        assert paid == fast + np.ceil(100 * gpu.clock_ghz)

    def test_blocks_crowd_where_there_is_room(self):
        # Alone each block has an SM; beside the other grid both go where there is room.
        gpu = plain_pascal(num_sms=2, blocks_per_sm=2, warps_per_sm=32)
        first = computing(1, warps=32, length=2000)
        second = computing(2, length=200)
        assert ws.simulate(second, gpu)._core.active_sms == 2
        assert list(together([first, second], gpu).to_frame()["sms"]) == [1, 1]

    def test_older_grids_get_places_first(self):
        # One place: blocks in the order of the grids, whatever there is of the second one.
        gpu = plain_pascal(num_sms=1, blocks_per_sm=1)
        one, two = computing(3, length=50), computing(2, length=70)
        alone = [ws.simulate(kernel, gpu).cycles for kernel in (one, two)]
        table = together([one, two], gpu).to_frame()
        assert list(table["end"]) == [alone[0], sum(alone)]
        assert list(table["start"]) == [0, alone[0]]

    def test_higher_priorities_get_places_first(self):
        gpu = plain_pascal(num_sms=1, blocks_per_sm=1)
        table = together([computing(3), computing(2)], gpu, priorities=[0, 1]).to_frame()
        assert table["end"][1] == table["start"][0]
        assert table["start"][1] == 0

    def test_a_higher_priority_overtakes_a_grid_that_waits_for_places(self):
        # The third grid follows the second, and is served before the rest of the first.
        gpu = plain_pascal(num_sms=2, blocks_per_sm=1)
        first, second, third = computing(6, length=100), computing(1, length=30), computing(2)
        plain = together([first, second, third], gpu, streams=[0, 1, 1]).to_frame()
        urgent = together(
            [first, second, third], gpu, streams=[0, 1, 1], priorities=[0, 1, 1]
        ).to_frame()
        assert plain["start"][2] >= plain["start"][0] + 200
        assert urgent["start"][2] < plain["start"][2]
        assert (urgent["start"][2] >= urgent["end"][1]).all()

    def test_so_many_grids_at_once(self):
        gpu = plain_pascal(num_sms=8)
        kernels = [computing(1, length=50 * (1 + i % 2)) for i in range(6)]
        for most in (1, 2, 3, 6):
            result = together(kernels, gpu.replace(concurrent_grids=most))
            table = result.to_frame()
            for start in table["start"]:
                assert ((table["start"] <= start) & (table["end"] > start)).sum() <= most
        # Another SM gets the next grid in the cycle after the end of the one before.
        one_by_one = together(kernels, gpu.replace(concurrent_grids=1)).cycles
        plain = sum(ws.simulate(kernel, gpu).cycles for kernel in kernels)
        assert plain <= one_by_one <= plain + len(kernels)

    @pytest.mark.parametrize(
        ("first", "second", "fits"),
        [
            ({"shared_memory_bytes": 24 << 10}, {"shared_memory_bytes": 24 << 10}, True),
            ({"shared_memory_bytes": 40 << 10}, {"shared_memory_bytes": 24 << 10}, False),
            ({"registers_per_thread": 128}, {"registers_per_thread": 128}, True),
            ({"registers_per_thread": 200}, {"registers_per_thread": 128}, False),
        ],
    )
    def test_grids_share_the_room_of_an_sm(self, first, second, fits):
        gpu = plain_pascal(
            num_sms=1, shared_memory_kib_per_sm=48, registers_per_sm=65536, fp32_latency=8
        )
        table = together([computing(1, **first), computing(1, **second)], gpu).to_frame()
        assert (table["start"][1] == 0) == fits
        assert fits or table["start"][1] == table["end"][0]


def test_streams_and_places_never_break_a_law():
    """Random streams: no two of one stream overlap, all instructions are issued, nobody is early."""
    rng = np.random.default_rng(8104)
    for one, other, gpu in pairs(8105, 12):
        kernels = [one, other, one, other]
        streams = [int(s) for s in rng.integers(0, 3, 4)]
        priorities = [int(p) for p in rng.integers(-1, 2, 4)]
        result = together(kernels, gpu, streams=streams, priorities=priorities)
        table = result.to_frame()
        for _, rows in table.groupby("stream"):
            assert (rows["start"].to_numpy()[1:] >= rows["end"].to_numpy()[:-1]).all()
        assert table["end"].max() == result.cycles
        assert list(table["instructions"]) == [kernel.num_instructions for kernel in kernels]
        assert result.instructions == sum(kernel.num_instructions for kernel in kernels)
        again = together(kernels, gpu, streams=streams, priorities=priorities)
        assert values(again._core) == values(result._core)


def test_launches_wait_for_all_that_they_name():
    """Random acyclic orders: nobody starts early, all is issued, and none waits without a reason."""
    rng = np.random.default_rng(8106)
    gpu = ws.gpu("a100")
    most = overlapping = 0
    for _ in range(rounds(60)):
        number = int(rng.integers(2, 12))
        kernels = [
            computing(int(rng.integers(0, 4)) or 1, length=int(rng.integers(20, 200)))
            for _ in range(number)
        ]
        after = [
            [other for other in range(place) if rng.random() < rng.choice([0.1, 0.4])]
            for place in range(number)
        ]
        result = together(kernels, gpu, after=after)
        table = result.to_frame()
        start, end = table["start"].to_numpy(), table["end"].to_numpy()
        for place, before in enumerate(after):
            ready = max((end[other] for other in before), default=0)
            assert start[place] >= ready
            # There is room for all of them: a block starts some cycles after those before it.
            assert start[place] <= ready + 4 * number * gpu.block_interval_cycles + 10
        assert end.max() == result.cycles
        assert result.instructions == sum(kernel.num_instructions for kernel in kernels)
        most += number
        overlapping += sum(start[i] < end[:i].max() for i in range(1, number))
    assert overlapping > most / 4


def test_an_order_that_is_a_chain_is_the_plain_sum():
    for one, other, gpu in pairs(8107, 4):
        kernels = [one, other, other, one]
        plain = ws.simulate(ws.App(kernels), gpu)
        # Each waits for all before it, in any order.
        chain = together(kernels, gpu, after=[[], [0], [1, 0], [0, 2, 1]])
        assert list(chain.to_frame()["end"]) == list(np.cumsum([r.cycles for r in plain]))
        stream = together(kernels, gpu, streams=[1, 1, 1, 1])
        assert values(chain._core) == values(stream._core)


def recorded(rows, number, length=200):
    """Return a program of kernels of one block with these operations."""
    kernels = [computing(1, length=length, name=f"k{n}") for n in range(number)]
    return App._recorded(kernels, "recorded", columns_of(rows))


def launch(kernel, stream, **more):
    return {
        "operation": "kernel", "name": "k", "stream": stream, "kernel": kernel,
        "asynchronous": True, "blocking": True, **more,
    }  # fmt: skip


class TestRecordedOrder:
    def test_events(self):
        rows = [
            launch(0, 1),
            {"operation": "event_record", "stream": 1, "event": 5, "blocking": True},
            launch(1, 1),
            {"operation": "event_wait", "stream": 2, "event": 5, "blocking": True},
            launch(2, 2),
        ]
        app = recorded(rows, 3)
        assert places_of(app).after == [[], [0], [0]]
        table = ws.simulate(app, "a100", concurrent=True).to_frame()
        assert (table["start"][1:] >= table["end"][0]).all()
        assert table["start"][2] < table["end"][1]

    def test_the_default_stream(self):
        rows = [
            launch(0, 1),
            launch(1, 2),
            launch(2, 0),
            launch(3, 1),
            launch(4, 3, blocking=False),
        ]
        assert places_of(recorded(rows, 5)).after == [[], [], [0, 1], [2], []]

    def test_graphs(self):
        rows = [
            launch(0, 1),
            {"operation": "graph_launch", "stream": 1, "graph": 3, "blocking": True},
            launch(1, 1, graph=3),
            launch(2, 1, graph=3),
            launch(3, 1, graph=3, after=(2, 3)),
            launch(4, 1),
        ]
        assert places_of(recorded(rows, 5)).after == [[], [0], [0], [1, 2], [3]]

    def test_the_host_waits(self):
        wait = {"operation": "stream_synchronize", "stream": 1, "blocking": True}
        rows = [launch(0, 1), launch(1, 2), wait, launch(2, 3), launch(3, 1)]
        assert places_of(recorded(rows, 4)).after == [[], [], [0], [0]]
        rows[2] = {"operation": "device_synchronize"}
        assert places_of(recorded(rows, 4)).after == [[], [], [0, 1], [0, 1]]
        # Another thread has not waited.
        rows[3] = launch(2, 3, thread=1)
        assert places_of(recorded(rows, 4)).after == [[], [], [], [0, 1]]

    def test_copies_hand_on_what_they_wait_for(self):
        copy = {"operation": "copy", "stream": 2, "direction": "DtoH", "bytes": 4, "blocking": True}
        asynchronous = {**copy, "asynchronous": True, "pinned": True}
        event = {"event": 1, "blocking": True}
        rows = [
            launch(0, 1),
            {"operation": "event_record", "stream": 1, **event},
            {"operation": "event_wait", "stream": 2, **event},
            asynchronous,
            launch(1, 2),
            launch(2, 3),
        ]
        assert places_of(recorded(rows, 3)).after == [[], [0], []]
        rows[3] = copy  # the host waits for this one
        assert places_of(recorded(rows, 3)).after == [[], [0], [0]]

    def test_connections(self):
        # Stream 9 shares that of stream 1, whose second kernel waits for the first.
        rows = [launch(0, 1), launch(1, 1), *(launch(n, n) for n in range(2, 10))]
        assert places_of(recorded(rows, 10)).after == [[], [0], *([[]] * 7), [0]]
        assert places_of(recorded(rows, 10), hardware_queues=9).after[9] == [0]
        more = [{**row, "connections": 9} for row in rows]
        assert places_of(recorded(more, 10)).after[9] == []
        assert places_of(recorded(more, 10), hardware_queues=4).after[5] == [0]

    def test_launches_that_are_not_traced_take_no_time(self):
        rows = [launch(0, 1), launch(-1, 1), launch(1, 1)]
        assert places_of(recorded(rows, 2)).after == [[], [0]]

    def test_random_operations(self):
        """Who waits for whom, by all ways through the operations, is what the named launches hand on."""
        rng = np.random.default_rng(8108)
        for _ in range(rounds(200)):
            rows, kernels, recorded_events = [], 0, []
            connections = int(rng.choice([1, 2, 8]))
            for row in range(int(rng.integers(5, 30))):
                kind = rng.choice(["kernel", "kernel", "record", "wait", "sync", "copy", "all"])
                stream = int(rng.integers(0, 4))
                common = {"stream": stream, "blocking": bool(rng.integers(2)) or stream == 0}
                common["thread"] = int(rng.integers(2))
                common["connections"] = connections
                if kind == "kernel":
                    rows.append({**launch(kernels, stream), **common})
                    kernels += 1
                elif kind == "record":
                    rows.append({"operation": "event_record", "event": row, **common})
                    recorded_events.append(row)
                elif kind == "wait" and recorded_events:
                    event = int(rng.choice(recorded_events))
                    rows.append({"operation": "event_wait", "event": event, **common})
                elif kind == "sync":
                    rows.append({"operation": "stream_synchronize", **common})
                elif kind == "copy":
                    found = {"operation": "copy", "direction": "DtoH", "bytes": 4}
                    rows.append({**found, "asynchronous": bool(rng.integers(2)), **common})
                else:
                    rows.append({"operation": "device_synchronize", "thread": common["thread"]})
            app = recorded(rows, kernels, length=20)
            if kernels == 0:
                continue
            after = places_of(app).after
            handed_on = []
            for before in after:
                handed_on.append(set(before).union(*(handed_on[one] for one in before)))
                # Nobody is named whom another one named waits for.
                assert not any(one in handed_on[other] for one in before for other in before)
            assert handed_on == all_before(columns_of(rows), kernels)


def all_before(columns, kernels):
    """Return the launches before each, by a search through all that rows wait for."""
    order = order_of(columns)
    connection = connections_of(columns, order, 32).tolist()
    waited, before = {}, []  # by thread; by row: rows that end before it does
    for row in range(len(columns["operation"])):
        thread = columns["thread"][row]
        found = set(waited.setdefault(thread, set()))
        found |= set(order.after.of(row)) if order.has_device[row] else set(order.waits.of(row))
        if connection[row] >= 0:
            mine = [one for one in range(row) if connection[one] == connection[row]]
            found |= {other for one in mine for other in order.after.of(one)}
        reached = set(found).union(*(before[one] for one in found))
        before.append(reached)
        for other in order.waits.of(row):
            waited[thread] |= {other, *before[other]}
    numbers = columns["kernel"].tolist()
    rows = {kernel: row for row, kernel in enumerate(numbers) if kernel >= 0}
    return [{numbers[o] for o in before[rows[k]] if numbers[o] >= 0} for k in range(kernels)]


@pytest.mark.parametrize("streams", [1, 8])
def test_recorded_streams_decide(tmp_path, streams):
    # As cuda-samples' concurrentKernels: eight kernels of one block, each in a stream of its own.
    gpu = ws.gpu("a100")
    rows = [launch(n, 1 + n % streams) for n in range(8)]
    recorded = App._recorded([computing(1) for _ in range(8)], "samples", columns_of(rows))
    ws.save(recorded, tmp_path / "app")
    app = ws.load(tmp_path / "app")
    one = ws.simulate(computing(1), gpu).cycles
    result = ws.simulate(app, gpu, concurrent=True)
    assert len(set(result.streams)) == streams
    if streams == 1:
        assert result.cycles == 8 * one
    else:
        assert one <= result.cycles <= one * 1.02
    # A copy of one process's stream is another one.
    other = columns_of([{**row, "process": n % 2} for n, row in enumerate(rows)])
    found = places_of(App._recorded(recorded.kernels, "two", other))
    assert len(set(found.streams)) == max(streams, 2)


def test_high_priorities_are_the_least_numbers():
    rows = [launch(n, 1 + n, priority=-3 * n) for n in range(2)]
    app = App._recorded([computing(1), computing(1)], "both", columns_of(rows))
    found = places_of(app)
    assert (found.streams, found.priorities, found.after) == ([1, 2], [0, 3], [[], []])


def test_streams_are_those_of_the_program():
    """Numbers of `App.operations`; with the process where several have a stream of one number."""
    gpu = plain_pascal()
    rows = [launch(0, 7), launch(1, 3), launch(2, 7)]
    app = App._recorded([computing(1)] * 3, "one", columns_of(rows))
    assert ws.simulate(app, gpu, concurrent=True).to_frame()["stream"].tolist() == [7, 3, 7]
    assert ws.predict(app, gpu, concurrent=True)["stream"].tolist() == [7, 3, 7]
    both = columns_of([{**row, "process": n // 2} for n, row in enumerate(rows)])
    app = App._recorded([computing(1)] * 3, "two", both)
    assert places_of(app).streams == ["0:7", "0:3", "1:7"]
    assert ws.simulate(app, gpu, concurrent=True).to_frame()["stream"].tolist() == [
        "0:7",
        "0:3",
        "1:7",
    ]


@pytest.mark.parametrize("call", [ws.simulate, ws.predict])
@pytest.mark.parametrize("value", ["yes", None, 2, 0.5])
def test_concurrent_is_true_or_false(call, value):
    with pytest.raises(ws.InputError, match="concurrent: expected True or False, got"):
        call(computing(1), "pascal-mdm", concurrent=value)


def test_concurrent_results_have_no_stack_to_draw():
    found = ws.predict(ws.App([computing(1)] * 2, "two"), "pascal-mdm", concurrent=True)
    for draw in (ws.plot.cpi_stack, ws.plot.cpi_stacks):
        with pytest.raises(ws.InputError, match="concurrent=True have no CPI stacks"):
            draw(found)


TRIGGER, WAIT = "PREEXIT", "ACQBULK"


def overlapping(*parts, blocks=1, warps=8, name="overlapping"):
    """Return a kernel of instructions one after the other: numbers of these, and opcodes between."""
    k = ws.patterns.KernelBuilder(name, grid=blocks, block=32 * warps)
    for part in parts:
        if isinstance(part, str):
            k.emit(part)
        else:
            for _ in range(part):
                k.emit("FFMA", dst=1, src=1)
    return k.build()


class TestDependentLaunch:
    """Programmatic dependent launch: kernels that start behind triggers."""

    def times(self, kernels, gpu, after_trigger, **how):
        result = together(
            kernels, gpu, streams=[0] * len(kernels), after_trigger=after_trigger, **how
        )
        table = result.to_frame()
        return result, list(zip(table["start"], table["end"], strict=True))

    def test_a_prologue_is_hidden(self):
        gpu = plain_pascal(num_sms=2)
        first, second = overlapping(20, TRIGGER, 180), overlapping(150, WAIT, 50)
        alone = [ws.simulate(kernel, gpu).cycles for kernel in (first, second)]
        whole, ((_, end), (start, last)) = self.times([first, second], gpu, [[], [0]])
        rest = ws.simulate(overlapping(WAIT, 50), gpu).cycles
        assert 0 < start < alone[0] / 4
        assert end == alone[0]  # each has an SM
        assert last == pytest.approx(end + rest, abs=3)
        assert max(alone) < whole.cycles < sum(alone) - 100

    def test_a_wait_at_the_beginning_gains_the_start_alone(self):
        gpu = plain_pascal(num_sms=2)
        first, second = overlapping(20, TRIGGER, 180), overlapping(WAIT, 100)
        alone = [ws.simulate(kernel, gpu).cycles for kernel in (first, second)]
        whole, _ = self.times([first, second], gpu, [[], [0]])
        # The wait is over in the cycle after the end.
        assert sum(alone) - 20 <= whole.cycles <= sum(alone) + 1

    def test_without_a_wait_nobody_waits(self):
        gpu = plain_pascal(num_sms=2)
        first, second = overlapping(20, TRIGGER, 400), overlapping(30)
        _, ((_, end), (start, last)) = self.times([first, second], gpu, [[], [0]])
        assert start < last < end

    def test_what_follows_waits_for_all_before(self):
        # The second ends before the first one does, and the third still waits for both.
        gpu = plain_pascal(num_sms=3)
        kernels = [
            overlapping(20, TRIGGER, 400),
            overlapping(10, TRIGGER, 20),
            overlapping(WAIT, 30),
        ]
        _, times = self.times(kernels, gpu, [[], [0], [1]])
        assert times[1][1] < times[0][1] < times[2][1]
        assert times[2][0] < times[0][1]  # it starts behind the second one's trigger
        _, times = self.times(kernels, gpu, [[], [0], []])
        assert times[1][1] < times[0][1] <= times[2][0]

    def test_all_blocks_trigger_or_end(self):
        # Three blocks in two places: the last one starts when one of the others ends.
        gpu = plain_pascal(num_sms=2, blocks_per_sm=1)
        first = overlapping(5, TRIGGER, 100, blocks=3)
        _, ((_, end), (start, _)) = self.times([first, overlapping(10)], gpu, [[], [0]])
        assert end / 2 < start < end  # in the place of the other block

    @pytest.mark.parametrize("second", [overlapping(50), overlapping(20, WAIT, 30)])
    def test_who_never_triggers_triggers_at_its_end(self, second):
        gpu = plain_pascal(num_sms=2)
        kernels = [overlapping(200), second]
        whole, _ = self.times(kernels, gpu, [[], [0]])
        plain = ws.simulate(ws.App(kernels), gpu)
        assert whole.cycles == sum(result.cycles for result in plain)

    def test_idle_lanes_neither_trigger_nor_wait(self):
        k = ws.patterns.KernelBuilder("idle", grid=1, block=32)
        nobody = np.zeros(k.thread.shape, bool)
        for opcode in (WAIT, TRIGGER):
            k.emit(opcode, predicate=nobody)
        k.emit("FFMA", dst=1, src=1)
        idle, gpu = k.build(), plain_pascal(num_sms=2)
        _, times = self.times([idle, computing(1)], gpu, [[], [0]])
        assert times[1][0] >= times[0][1]
        _, times = self.times([overlapping(1, TRIGGER, 200), idle], gpu, [[], [0]])
        assert times[1][1] < times[0][1]

    @pytest.mark.parametrize(("gpu", "overlaps"), [("h100-sxm", True), ("a100", False)])
    def test_older_gpus_have_none(self, gpu, overlaps):
        kernels = [overlapping(20, TRIGGER, 4000), overlapping(150, WAIT, 50)]
        rows = [launch(n, 5, programmatic=n == 1) for n in range(2)]
        app = App._recorded(kernels, "two", columns_of(rows))
        table = ws.simulate(app, gpu, concurrent=True).to_frame()
        assert (table["start"][1] < table["end"][0]) == overlaps
        line = ws.timeline(app, gpu).table
        line = line[line["operation"] == "kernel"]
        assert (line["start_us"].iloc[1] < line["end_us"].iloc[0]) == overlaps

    def test_time_lines_wait_for_the_block_that_triggers_last(self):
        """Of four blocks one triggers at once; the others do at their end."""
        k = ws.patterns.KernelBuilder("some", grid=4, block=32)
        k.emit(TRIGGER, predicate=np.arange(4)[:, None] + np.zeros(32) == 0)
        for _ in range(400):
            k.emit("FFMA", dst=1, src=1)
        kernels = [k.build(), overlapping(150, WAIT, 50)]
        rows = [launch(n, 5, programmatic=n == 1) for n in range(2)]
        line = ws.timeline(App._recorded(kernels, "two", columns_of(rows)), "h100-sxm").table
        line = line[line["operation"] == "kernel"]
        assert line["start_us"].iloc[1] >= line["end_us"].iloc[0]

    def test_the_start_of_a_launch_is_before_its_wait(self):
        """What is behind the wait takes its instructions' time, and no second start."""
        kernels = [overlapping(20, TRIGGER, 2000), overlapping(WAIT, 400)]
        rows = [launch(n, 5, programmatic=n == 1) for n in range(2)]
        app = App._recorded(kernels, "two", columns_of(rows))
        gpu = ws.gpu("h100-sxm").replace(host_launch_us=0, launch_delay_us=0)
        line = ws.timeline(app, gpu).table
        line = line[line["operation"] == "kernel"]
        alone = ws.predict(kernels[1], gpu)["time_us"][0]
        behind = line["end_us"].iloc[1] - line["end_us"].iloc[0]
        start = gpu.launch_us_nsys
        assert 0 < behind < alone - 0.8 * start

    def test_kernels_alone_take_no_notice(self):
        gpu = plain_pascal(num_sms=2)
        kernel = overlapping(20, TRIGGER, 30, WAIT, 40, blocks=5)
        alone = ws.simulate(kernel, gpu)
        (row,) = together([kernel], gpu).to_frame().to_dict("records")
        assert row["end"] == alone.cycles
        named = overlapping(20, "NOP", 30, "NOP", 40, blocks=5)
        assert ws.simulate(named, gpu).cycles == alone.cycles

    def test_random_chains_take_no_longer_than_their_sum(self):
        rng = np.random.default_rng(8110)
        gained = 0
        for number in range(rounds(40)):
            gpu = ws.gpu("h100-sxm") if number % 2 else plain_pascal(num_sms=4)
            kernels = []
            for _ in range(int(rng.integers(2, 6))):
                parts = [int(n) for n in rng.integers(1, 80, 4)]
                steps = [WAIT, TRIGGER] if rng.integers(2) else [TRIGGER, WAIT]
                parts = [parts[0], steps[0], parts[1], steps[1], *parts[2:]]
                # With more, blocks that find some SMs partly full are spread unevenly.
                blocks = int(rng.integers(1, min(gpu.num_sms, 40) + 1))
                kernels.append(overlapping(*parts, blocks=blocks))
            behind = [[place - 1] if place else [] for place in range(len(kernels))]
            plain = [result.cycles for result in ws.simulate(ws.App(kernels), gpu)]
            whole, times = self.times(kernels, gpu, behind)
            # Blocks beside those of another kernel may have fewer SMs.
            spread = [ws.simulate(kernel, gpu)._core.active_sms for kernel in kernels]
            crowded = (whole.to_frame()["sms"] < spread).any()
            assert whole.cycles <= sum(plain) + len(kernels) or crowded
            assert whole.cycles >= max(ws.simulate(kernel, gpu).cycles for kernel in kernels) - 2
            assert all(one[0] <= other[0] for one, other in itertools.pairwise(times))
            assert whole.instructions == sum(kernel.num_instructions for kernel in kernels)
            gained += whole.cycles < 0.95 * sum(plain)
        assert gained > rounds(40) / 3


@pytest.mark.slow
@settings(max_examples=rounds(40, costly=True))
@given(
    st.lists(
        st.one_of(kernels(max_blocks=4), copying_kernels(), overlapping_kernels()),
        min_size=1,
        max_size=4,
    ),
    timed_gpus(),
    BLOCK_STARTS,
    st.integers(1, 4),
    st.data(),
)
def test_equals_plain_definition(launches, gpu, starts, most, data):
    gpu = gpu.replace(**starts, concurrent_grids=most)
    streams = [data.draw(st.integers(0, 2)) for _ in launches]
    priorities = [data.draw(st.integers(-1, 1)) for _ in launches]
    # By streams, or any earlier launches.
    after = None
    if data.draw(st.booleans()):
        after = [
            sorted(data.draw(st.sets(st.integers(0, place - 1)))) if place else []
            for place in range(len(launches))
        ]
    # Behind triggers, too.
    behind = None
    if data.draw(st.booleans()):
        behind = [
            sorted(data.draw(st.sets(st.integers(0, place - 1)))) if place else []
            for place in range(len(launches))
        ]
    places = checked_places(len(launches), streams, priorities, after, behind)
    cycles, times, results = ConcurrentMachine(simulator_config(gpu, 0.0)).run_together(
        launches, places.after, priorities, most, places.after_trigger
    )
    how = {"streams": streams, "priorities": priorities, "after": after, "after_trigger": behind}
    found = together(launches, gpu, **how)
    table = found.to_frame()
    assert list(zip(table["start"], table["end"], strict=True)) == times
    assert found.cycles == cycles
    for part in PARTS:
        assert found._core.slots[part] == pytest.approx(sum(r["slots"][part] for r in results))
    for name, count in found._core.details.items():
        assert count == pytest.approx(sum(r["details"][name] for r in results), abs=1e-6)
    for name in ("noc_request_packets", "noc_reply_bytes", "l1_read_sector_hits", *MISSES):
        assert found.totals[name] == sum(r["totals"][name] for r in results)


class TestErrors:
    def test_what_does_not_go_together(self):
        kernel = computing(1)
        for name, value in (("per_instruction", True), ("sample_blocks", 2)):
            with pytest.raises(ws.InputError, match=f"^{name}: not with concurrent=True"):
                ws.simulate(kernel, "a100", concurrent=True, **{name: value})

    def test_streams_of_all_launches(self):
        with pytest.raises(ws.InputError, match="streams: there are 1 for 2 launches"):
            together([computing(1), computing(1)], ws.gpu("a100"), streams=[0])
        with pytest.raises(ws.InputError, match="there are no launches"):
            together([], ws.gpu("a100"))

    def test_what_launches_wait_for(self):
        kernels = [computing(1), computing(1)]
        for after, message in [
            ([[]], "after: there are 1 for 2 launches"),
            ([[], [1]], "after: launch 1 waits for 1"),
            ([[1], []], "after: launch 0 waits for 1"),
            ([[], [-1]], "after: launch 1 waits for -1"),
        ]:
            with pytest.raises(ws.InputError, match=message):
                together(kernels, ws.gpu("a100"), after=after)
            message = message.replace("after:", "after_trigger:")
            with pytest.raises(ws.InputError, match=message):
                together(kernels, ws.gpu("a100"), after_trigger=after)

    def test_max_cycles_names_the_launches(self):
        kernels = [computing(1, name="first"), computing(1, name="second")]
        with pytest.raises(
            ws.InputError, match=r"kernels 1 \(first\), \d+ \(second\) are not done"
        ):
            together(kernels, ws.gpu("a100"), max_cycles=20)


def test_command(capsys, tmp_path):
    trace = tmp_path / "app.parquet"
    ws.save(ws.App([computing(2, name="one"), computing(2, name="two")], "both"), trace)
    main(["simulate", str(trace), "--gpu", "a100", "--concurrent", "--csv"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split(",")[:4] == ["kernel", "name", "gpu", "stream"]
    assert len(lines) == 3
