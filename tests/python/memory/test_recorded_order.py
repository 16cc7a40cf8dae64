"""Recorded orders of accesses, replayed through other caches: against exact runs and a plain definition."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import warpstack as ws
from effort import rounds
from python_reference.recorded import replay_loads
from strategies import gpus, kernels
from warpstack import _core
from warpstack._util.choices import order_of
from warpstack.memory.caches import MemorySystem


def record(kernel, gpu, order, written=0.0):
    system = MemorySystem(gpu, access_order=order, initial_l2=written)
    return _core.record_order(system._core, kernel._core)


def replay(kernel, recording, gpu, order, share=1.0, written=0.0):
    return replay_all([kernel], [recording], [gpu], order, share, written=written)[0][0]


def replay_all(kernels, recordings, gpus, order, share=1.0, flush_l2=False, written=0.0):
    """Return the profiles of each GPU and kernel."""
    traces = [kernel._core for kernel in kernels]
    distinct, of_configs = _core.replay_order(
        traces, recordings, [gpu._core for gpu in gpus], order_of(order), share, flush_l2, written
    )
    return [
        [profiles[number] for profiles, number in zip(distinct, numbers, strict=True)]
        for numbers in of_configs
    ]


def assert_same(profile, exact):
    assert profile.totals == exact.totals
    for name, column in exact.per_row.items():
        np.testing.assert_array_equal(profile.per_row[name], column, err_msg=name)
    assert profile.slice_turns == exact.slice_turns
    assert sum(exact.slice_dram_sectors) == (
        exact.totals["dram_read_sectors"] + exact.totals["dram_write_sectors"]
    )
    assert profile.most_read_sectors == exact.most_read_sectors
    assert profile.atomic_lanes == exact.atomic_lanes
    assert profile.l1_size_bytes == exact.l1_size_bytes


@pytest.mark.slow
@settings(max_examples=rounds(200))
@given(
    kernels(),
    gpus(),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([1, 2, 5]),
    st.sampled_from([0.0, 0.4, 1.0]),
)
def test_an_order_without_caches_in_it_is_exact(kernel, gpu, l1_times, l2_times, written):
    """Round robin does not depend on hits: other sizes do what an exact run of them does."""
    assume(gpu.l1_allocation == "on_miss")  # else the lines of an access wait for those in L1
    if gpu.shared_memory_carve_outs_kib:
        l1_times = 1  # these say how large L1 is
    other = gpu.replace(
        l1_size_kib=l1_times * gpu.l1_size_kib, l2_size_kib=l2_times * gpu.l2_size_kib
    )
    recording = record(kernel, gpu, "round_robin", written)
    how = {"access_order": "round_robin", "initial_l2": written}
    exact = ws.simulate_caches(kernel, other, **how)._core
    assert_same(replay(kernel, recording, other, "round_robin", written=written), exact)


@settings(max_examples=rounds(60))
@given(kernels(), gpus(), st.data())
def test_many_caches_at_once_are_what_each_is_alone(kernel, gpu, data):
    assume(gpu.l1_allocation == "on_miss")
    l1_times = [1] if gpu.shared_memory_carve_outs_kib else [1, 2]
    sizes = [(l1, l2) for l1 in l1_times for l2 in (1, 2, 3, 7)]
    chosen = data.draw(st.lists(st.sampled_from(sizes), min_size=1, max_size=6))
    others = [
        gpu.replace(l1_size_kib=l1 * gpu.l1_size_kib, l2_size_kib=l2 * gpu.l2_size_kib)
        for l1, l2 in chosen
    ]
    order = data.draw(st.sampled_from(["round_robin", "timed"]))
    # Twice the same launch: the second finds what the first left in L2.
    recordings = [record(kernel, gpu, order)] * 2
    together = replay_all([kernel] * 2, recordings, others, order)
    for other, profiles in zip(others, together, strict=True):
        (alone,) = replay_all([kernel] * 2, recordings, [other], order)
        for profile, expected in zip(profiles, alone, strict=True):
            np.testing.assert_array_equal(profile.words, expected.words)


def test_more_caches_than_a_word_has_bits():
    gpu = ws.gpu("pascal-mdm").replace(num_sms=2, l1_size_kib=6, l2_size_kib=96)
    kernel = loads(3)
    recording = record(kernel, gpu, "timed")
    others = [gpu.replace(l2_ways=ways, l2_size_kib=12.0 * ways) for ways in range(1, 41)]
    found = replay_all([kernel], [recording], others, "timed")
    for other, (profile,) in zip(others, found, strict=True):
        expected = replay(kernel, recording, other, "timed")
        np.testing.assert_array_equal(profile.words, expected.words)


def test_equal_profiles_are_one():
    gpu = ws.gpu("pascal-mdm").replace(num_sms=2)
    kernel = loads(1)
    recording = record(kernel, gpu, "timed")
    gpus = [gpu.replace(l2_size_kib=size)._core for size in (3072, 6144, 4608)]
    arguments = (gpus, "timed", 1.0, False)
    distinct, of_configs = _core.replay_order([kernel._core], [recording], *arguments)
    assert len(distinct[0]) == 1  # all that is touched fits
    assert of_configs == [[0], [0], [0]]


def test_a_replay_can_be_given_up():
    def give_up():
        raise InterruptedError

    gpu = ws.gpu("pascal-mdm").replace(num_sms=2)
    kernel = loads(1)
    recordings = [record(kernel, gpu, "timed")]
    arguments = ([kernel._core], recordings, [gpu._core], "timed", 1.0, False)
    with pytest.raises(InterruptedError):
        _core.replay_order(*arguments, interrupt=give_up)


@settings(max_examples=rounds(60))
@given(kernels(), gpus())
def test_the_caches_of_the_order_itself(kernel, gpu):
    """The timed order, too, is exact for the caches that it is from: all but times of waits."""
    assume(gpu.l1_allocation == "on_miss")
    recording = record(kernel, gpu, "timed")
    profile = replay(kernel, recording, gpu, "timed")
    exact = ws.simulate_caches(kernel, gpu)._core
    assert recording.reference.totals == exact.totals
    assert profile.totals == exact.totals
    for name in ("l2_requests", "dram_requests", "dram_sectors", "l2_hit_events", "dram_events"):
        np.testing.assert_array_equal(profile.per_row[name], exact.per_row[name], err_msg=name)


def loads(seed, blocks=4):
    """Return a kernel of loads that are sometimes scattered."""
    k = ws.patterns.KernelBuilder("loads", grid=blocks, block=64)
    rng = np.random.default_rng(seed)
    made = []
    for register in range(4, 10):
        address = 128 * rng.integers(0, 40, (blocks, 64))
        if rng.random() < 0.5:
            address = 128 * (rng.integers(0, 40) + k.thread // 32)
        if made and rng.random() < 0.4:
            again = made[rng.integers(len(made))]
        else:
            again = k.instruction("LDG.E", dst=register, src=2)
            made.append(again)
        k.issue(again, address=0x100000 + address)
        if rng.random() < 0.5:
            k.emit("FADD", dst=2, src=register)
    return k.build()


WHOLE_LINES = {"l1_sector_bytes": 128, "l2_sector_bytes": 128, "l2_slices": 1}


@pytest.mark.parametrize("seed", range(8))
def test_equals_plain_definition(seed):
    gpu = ws.gpu("pascal-mdm").replace(
        num_sms=2, l1_size_kib=2, l1_ways=2, l2_size_kib=4, l2_ways=4, **WHOLE_LINES
    )
    kernel = loads(seed)
    recording = record(kernel, gpu, "timed")
    other = gpu.replace(l1_size_kib=1.5, l1_ways=3, l2_size_kib=3, l2_ways=2)
    profile = replay(kernel, recording, other, "timed")
    rows = replay_loads(recording.lines, recording.accesses, 2, l1=(4, 3), l2=(12, 2))
    names = [
        ("l1_waits", "l2_waits", "dram_waits"),
        ("l1_wait_cycles", "l2_wait_cycles", "dram_wait_cycles"),
        ("l1_repeat_cycles", "l2_repeat_cycles", "dram_repeat_cycles"),
    ]
    assert rows
    for row, (misses, dram, waits, cycles, repeats, repeat_cycles) in rows.items():
        assert profile.per_row["repeats"][row] == repeats
        assert [profile.per_row[name][row] for name in names[2]] == repeat_cycles
        assert profile.per_row["l2_requests"][row] == misses
        assert profile.per_row["dram_requests"][row] == dram
        assert [profile.per_row[name][row] for name in names[0]] == waits
        assert [profile.per_row[name][row] for name in names[1]] == cycles


def test_a_part_of_the_sets_stands_for_all():
    gpu = ws.gpu("pascal-mdm")
    k = ws.patterns.KernelBuilder("reuse", grid=64, block=256)
    for step in range(6):
        k.emit(
            "LDG.E",
            dst=4 + step,
            src=2,
            address=0x100000 + 128 * ((k.thread * 37 + step * 5) % 30_000),
        )
    kernel = k.build()
    recording = record(kernel, gpu, "timed")
    whole = replay(kernel, recording, gpu.replace(l2_size_kib=1536), "timed")
    part = replay(kernel, recording, gpu.replace(l2_size_kib=1536), "timed", share=0.25)
    for name in ("l1_read_sector_hits", "l2_read_requests", "l2_read_sectors"):
        assert part.totals[name] == whole.totals[name]  # L1 is followed as a whole
    for name in ("l2_read_sector_hits", "dram_read_sectors"):
        assert part.totals[name] == pytest.approx(whole.totals[name], rel=0.1)
    for name in ("dram_requests", "dram_events"):
        assert int(part.per_row[name].sum()) == pytest.approx(
            int(whole.per_row[name].sum()), rel=0.1
        )
