"""Kernels at the same time in the closed network model: equations, a twin, conservation laws."""

import collections
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import kernel_recipes as kr
import random_cases as rc
import warpstack as ws
from effort import rounds
from python_reference import concurrent_grids, mixed_network, network
from warpstack import _core
from warpstack.cli import main
from warpstack.models.concurrent import played
from warpstack.models.pipeline import Pipeline
from warpstack.timing.concurrent import Places

#: More than any kernel holds.
MANY_MSHRS = 1e9


def visits(posted):
    """Draw what an instruction does at a station; some have stores that nobody waits for, too."""
    return st.builds(
        lambda demand, more, count, stores: _core.Visit(
            demand=demand,
            early=0,
            busy=demand * more + stores,
            count=count,
            service=demand / count if demand else 1.0,
            sharers=1,
            in_step=1,
        ),
        st.sampled_from([0.0, 0.5, 3.0, 20.0]),
        st.floats(0.25, 1),
        st.floats(0.05, 1),
        st.sampled_from(posted),
    )


def with_hot_stations(drawn):
    """Return visits of which some are to slices and channels that their class asks more than others."""
    *found, is_uneven = drawn
    if not is_uneven:
        return found
    rest = [_core.Visit(0, 0, 0, 0, 0, 1, 1)] * (mixed_network.PRIVATE[0] - len(found))
    return [*found, *rest, found[8], found[9]]


classes = st.builds(
    _core.CustomerClass,
    warps_per_block=st.integers(1, 8),
    think=st.floats(1, 300),
    visits=st.tuples(
        *[visits([0.0])] * 4, *[visits([0.0, 0.2])] * 6, st.sampled_from([False, True])
    ).map(with_hot_stations),
    held_misses=st.sampled_from([0.0, 0.1, 2.0]),
    waiting_loads=st.sampled_from([0.1, 0.5]),
    trip=st.floats(50, 500),
    posted=st.just(0.1),
)


@st.composite
def mixes(draw):
    """Draw classes, groups of SMs with at least a block each, and MSHRs."""
    number = draw(st.integers(1, 3))
    counts = st.lists(st.integers(0, 4), min_size=number, max_size=number).filter(any)
    groups = draw(
        st.lists(st.tuples(st.integers(1, 20).map(float), counts), min_size=1, max_size=3)
    )
    return (
        draw(st.lists(classes, min_size=number, max_size=number)),
        [(sms, [float(count) for count in blocks]) for sms, blocks in groups],
        draw(st.sampled_from([8.0, 48.0, 256.0])),
    )


def times_of(of_classes, groups, mshrs):
    found = _core.mixed_network_times(of_classes, groups, mshrs)
    return {
        (g, c): found[g * len(of_classes) + c]
        for g, (_, blocks) in enumerate(groups)
        for c, count in enumerate(blocks)
        if count
    }


def rates_of(of_classes, groups, times):
    return {
        (g, c): groups[g][1][c] * of_classes[c].warps_per_block / time
        for (g, c), time in times.items()
    }


def busiest(of_classes, groups, rates):
    """Return for how much of the time the busiest station works."""
    load = collections.Counter()
    for (g, c), rate in rates.items():
        for k, visit in enumerate(of_classes[c].visits):
            if k in mixed_network.PRIVATE:
                load[k, "class", c] += visit.busy * rate * groups[g][0]
            elif k in mixed_network.SHARED:
                load[k, "all"] += visit.busy * rate * groups[g][0]
            else:
                load[k, "group", g] += visit.busy * rate
    return max(load.values())


@given(mixes())
@settings(max_examples=rounds(150))
def test_times_solve_the_equations(mix):
    times = times_of(*mix)
    rates = rates_of(*mix[:2], times)
    assert busiest(*mix[:2], rates) < 1
    again = mixed_network.times(*mix, rates)
    assert again == {key: pytest.approx(time, rel=1e-4) for key, time in times.items()}


@given(mixes())
@settings(max_examples=rounds(60))
def test_groups_can_be_divided(mix):
    of_classes, groups, mshrs = mix
    sms, blocks = groups[0]
    assume(sms > 1)
    whole = times_of(of_classes, groups, mshrs)
    apart = times_of(of_classes, [*groups[1:], (sms - 1, blocks), (1.0, blocks)], mshrs)
    for c, count in enumerate(blocks):
        if count:
            for g in (len(groups) - 1, len(groups)):
                assert apart[g, c] == pytest.approx(whole[0, c], rel=1e-4)


@given(classes, st.integers(1, 6), st.integers(1, 30))
@settings(max_examples=rounds(100))
def test_one_class_is_near_the_closed_network(one, blocks, sms):
    warps = blocks * one.warps_per_block
    stations = {}
    for k, visit in enumerate(one.visits):
        sharers = sms if k in mixed_network.SHARED else 1
        stations[k] = (visit.demand, visit.busy * sharers, warps * sharers)
    one = _core.CustomerClass(one.warps_per_block, one.think, one.visits, 0, 0, 0, 0)
    (time,) = times_of([one], [(float(sms), [float(blocks)])], MANY_MSHRS).values()
    _, bounded = network.network_rate(warps, one.think, stations)
    # Its bound is a corner, here rounded off.
    assert bounded * 0.6 <= warps / time <= bounded * (1 + 1e-6)


@given(classes, st.integers(1, 4), st.integers(1, 4), st.sampled_from([8.0, 64.0]))
@settings(max_examples=rounds(60))
def test_two_classes_that_are_alike_are_one(one, first, second, mshrs):
    # Those that a class asks most are its own.
    assume(not any(one.visits[k].busy for k in mixed_network.PRIVATE))
    both = times_of([one, one], [(4.0, [float(first), float(second)])], mshrs)
    whole = times_of([one], [(4.0, [float(first + second)])], mshrs)
    for time in both.values():
        assert time == pytest.approx(whole[0, 0], rel=1e-4)


def random_machine(seed):
    """Return grids, their classes and a machine, as the twin takes them."""
    rng = np.random.default_rng([5501, seed])

    def customers():
        return _core.CustomerClass(
            float(rng.integers(1, 5)),
            rng.uniform(5, 100),
            [
                _core.Visit(d, 0, d, 0.5, d / 0.5, 1, 1)
                for d in rng.choice([0.0, 0.5, 4.0], size=10)
            ],
            0.0,
            0.0,
            0.0,
            0.0,
        )

    room = (8.0, 32.0, 1024.0, 1000.0, 100.0)
    durations = rng.uniform(10, 1000, size=rng.integers(1, 4))
    made = [
        (
            float(duration),
            float(duration * rng.choice([0, 0, 0.1, 0.7])),
            int(rng.integers(1, 17)),
            float(rng.integers(1, 50)),
            (1.0, float(rng.integers(1, 9)), 32.0, float(rng.integers(0, 500)), 10.0),
            customers(),
        )
        for duration in durations
    ]
    grids = []
    for number in range(rng.integers(1, 7)):
        before = (int(rng.integers(number)),) if number and rng.random() < 0.4 else ()
        grids.append((int(rng.integers(len(made))), int(rng.integers(2)), before))
    machine = int(rng.integers(1, 5)), room, int(rng.choice([0, 2, 128])), MANY_MSHRS
    return grids, made, *machine, float(rng.choice([0, 0, 20, 300])), float(rng.choice([0, 0, 2]))


def play(grids, made, *machine_values):
    machine = _core.ConcurrentGrids.of_classes(made, *machine_values)
    number_of, ended = {}, {}
    while len(ended) < len(grids):
        for place, (of_class, priority, after) in enumerate(grids):
            if place not in number_of and all(before in ended for before in after):
                number_of[place] = machine.add(of_class, priority)
        assert machine.next() < math.inf
        machine.advance(machine.next())
        places = {number: place for place, number in number_of.items()}
        for number in machine.take_ended():
            ended[places[number]] = machine.end_of(number)
    return [(machine.start_of(number_of[place]), ended[place]) for place in range(len(grids))]


@pytest.mark.parametrize("seed", range(40))
def test_grids_equal_their_twin(seed):
    case = random_machine(seed)
    _, made, *machine = case
    core = _core.ConcurrentGrids.of_classes(made, *machine)
    paces = [core.pace_of(c) for c in range(len(made))]
    for c, (duration, *_) in enumerate(made):
        ((_, end),) = concurrent_grids.play([(c, 0, ())], made, *machine, paces)
        assert end == pytest.approx(duration)
        # Nothing is made shorter that could be longer beside the network.
        assert paces[c][0] >= 0
        assert paces[c][0] == 0 or paces[c][1] == pytest.approx(1, rel=1e-3)
    expected = concurrent_grids.play(*case, paces)
    assert play(*case) == [pytest.approx(times, rel=1e-6, abs=1e-6) for times in expected]


def pairs(seed, number):
    for n in range(number):
        one, other = rc.random_case(seed, 2 * n), rc.random_case(seed, 2 * n + 1)
        gpu = one.on()
        yield kr.trace(one.launches[0]), kr.trace(rc._fitting(other.launches[0], gpu)), gpu


def test_one_kernel_takes_what_it_takes_alone():
    for one, _, gpu in pairs(8201, 6):
        (row,) = ws.predict(one, gpu, concurrent=True).to_dict("records")
        alone = ws.predict(one, gpu)["cycles"][0]
        assert (row["start"], row["end"]) == (0, pytest.approx(alone))
        assert row["cycles_alone"] == pytest.approx(alone)


def test_a_pair_takes_no_longer_than_its_sum_and_no_less_than_its_larger_part():
    overlapped = 0
    for one, other, gpu in pairs(8202, 30):
        alone = ws.predict(ws.App([one, other]), gpu)["cycles"]
        table = ws.predict(ws.App([one, other]), gpu, concurrent=True)
        both = table["end"].max()
        assert alone.max() * (1 - 1e-6) <= both <= alone.sum() * 1.02
        overlapped += both < 0.95 * alone.sum()
    assert overlapped >= 15


def computing(blocks, length=200):
    k = ws.patterns.KernelBuilder("computing", grid=blocks, block=256)
    for _ in range(length):
        k.emit("FFMA", dst=1, src=1)
    return k.build()


def test_who_does_nothing_takes_no_time():
    nothing = _core.CustomerClass(1, 0, [], 0, 0, 0, 0)
    (time,) = _core.mixed_network_times([nothing], [(4.0, [2.0])], 8.0)
    assert 0 < time < 1e-6
    assert _core.mixed_network_times([nothing], [(4.0, [0.0])], 8.0) == [math.inf]
    assert _core.mixed_network_times([], [], 8.0) == []


def test_launches_that_wait_for_one_another():
    kernel = computing(2)
    places = Places([0, 1], [0, 0], [[1], [0]], [[], []])
    gpu = ws.gpu("a100")
    profiles = list(Pipeline(ws.App([kernel] * 2), ws.Options()).profiles(gpu))
    with pytest.raises(ws.InputError, match="in a circle"):
        played([kernel] * 2, profiles, [10.0, 10.0], gpu, places)


def test_eight_kernels_of_one_block_take_the_time_of_one():
    app = ws.App([computing(1) for _ in range(8)])
    one = ws.predict(app.kernels[0], "a100")["cycles"][0]
    table = ws.predict(app, "a100", concurrent=True)
    # One block after the other starts.
    latest = 7 * ws.gpu("a100").block_interval_cycles
    assert table["end"].max() == pytest.approx(one + latest)
    assert table["start"].max() == pytest.approx(latest)


def reading(number, blocks, load=True):
    """Return a kernel that computes on what it reads, or on nothing, and stores."""
    k = ws.patterns.KernelBuilder("reading", grid=blocks, block=256, launch_id=number)
    for n in range(4):
        if load:
            k.emit("LDG.E", dst=4 + n, src=2, address=(number << 32) + n * (1 << 20) + 4 * k.thread)
        for _ in range(8 if load else 16):
            k.emit("FFMA", dst=4 + n, src=[4 + n, 4 + n])
    k.emit("STG.E", src=[2, 4], address=(number << 32) + (1 << 30) + 4 * k.thread)
    k.emit("EXIT")
    return k.build()


def small():
    return ws.gpu("gpumech-baseline").replace(
        num_sms=4, dram_bandwidth_gbs=60, noc_bandwidth_gbs=400
    )


@pytest.mark.parametrize("blocks", [16, 32])
def test_short_kernels_of_whole_waves_overlap_at_their_ends(blocks):
    """Each leaves its places to the next one while its last requests are on their way."""
    app, gpu = ws.App([reading(n + 1, blocks) for n in range(4)]), small()
    table = ws.predict(app, gpu, concurrent=True)
    assert table["end"].max() < 0.97 * table["cycles_alone"].sum()
    simulated = ws.simulate(app, gpu, concurrent=True).cycles
    assert table["end"].max() == pytest.approx(simulated, rel=0.08)


@pytest.mark.parametrize("blocks", [377, 1380])
def test_a_tiny_kernel_delays_nobody(blocks):
    """Three SMs end a little earlier than the others, and do not get all that is left."""
    k = ws.patterns.KernelBuilder("doubles", grid=blocks, block=64, shared_memory_bytes=0)
    for _ in range(400):
        k.emit("DFMA", dst=4, src=(4, 6, 8))
    table = ws.predict(ws.App([computing(3, 5), k.build()]), "rtx4070", concurrent=True)
    assert table["end"].max() <= 1.02 * table["cycles_alone"].sum()


def test_blocks_of_the_next_kernel_wait_for_those_before():
    gpu = ws.gpu("a100")
    first = ws.patterns.KernelBuilder("many", grid=750, block=32)
    first.emit("FFMA", dst=1, src=1)
    app = ws.App([first.build(), computing(3, 9)])
    start = ws.predict(app, gpu, concurrent=True)["start"][1]
    assert start == pytest.approx(750 * gpu.block_interval_cycles)
    assert start == pytest.approx(
        ws.simulate(app, gpu, concurrent=True).to_frame()["start"][1], rel=0.02
    )


def test_an_adaptive_l1_has_one_split():
    """A tiny kernel with much shared memory leaves the other one an L1 that its lines do not fit in."""
    k = ws.patterns.KernelBuilder("again", grid=1, block=1024)
    for n in range(40):
        k.emit("LDG.E", dst=4, src=2, address=(1 << 30) + (n % 8) * 8192 * 2 + 16 * k.thread)
        k.emit("FFMA", dst=5, src=(4, 5))
    tiny = ws.patterns.KernelBuilder("tiny", grid=1, block=32, shared_memory_bytes=160 << 10)
    tiny.emit("FFMA", dst=1, src=1)
    app = ws.App([k.build(), tiny.build()])
    table = ws.predict(app, "a100", concurrent=True)
    assert table["cycles"][0] > 1.3 * table["cycles_alone"][0]
    alone = ws.simulate(app, "a100")[0].cycles
    both = ws.simulate(app, "a100", concurrent=True).to_frame()["cycles"][0]
    assert both > 1.3 * alone


def test_nobody_waits_for_what_stores_fetch():
    """Two kernels that take half of the places each, and wait for nothing but their own results."""
    app, gpu = ws.App([reading(n + 1, 8, load=False) for n in range(2)]), small()
    both = ws.predict(app, gpu, concurrent=True)["end"].max()
    assert both == pytest.approx(ws.simulate(app, gpu, concurrent=True).cycles, rel=0.12)


def test_two_kernels_that_fill_dram_share_it():
    kernel = ws.patterns.strided(gs=32, iterations=8, blocks=432)
    alone = ws.predict(kernel, "a100", flush_l2=True)["cycles"][0]
    table = ws.predict(ws.App([kernel] * 2), "a100", flush_l2=True, concurrent=True)
    assert alone * 1.2 < table["end"].max() < alone * 2.02


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"models": "mdm"}, "has no launches that run at the same time"),
        ({"sample_sms": "quick"}, "sample_sms"),
        ({"sample_blocks": 0.5}, "sample_blocks"),
        ({"sample_launches": True}, "sample_launches"),
    ],
)
def test_what_it_does_not_go_with(how, said):
    with pytest.raises(ws.InputError, match=said):
        ws.predict(computing(1), "a100", concurrent=True, **how)


def test_command(tmp_path, capsys):
    ws.save(ws.App([computing(4), computing(8)]), tmp_path / "two")
    main(["predict", str(tmp_path / "two"), "--gpu", "a100", "--concurrent", "--csv"])
    header, first, second = capsys.readouterr().out.splitlines()
    assert header.startswith("kernel,name,gpu,gpu_changes,model,stream,start,end,cycles")
    assert (first.split(",")[5], second.split(",")[5]) == ("0", "1")
    main(["predict", str(tmp_path / "two"), "--gpu", "a100", "--concurrent"])
    assert "2 kernels at the same time" in capsys.readouterr().out
