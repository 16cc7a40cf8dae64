"""Samples of the SMs against their plain definition, and what they leave uncertain against all SMs."""

import numpy as np
import pytest
from plain_caches import COUNTERS

import warpstack as ws
from configurations import memory_config
from effort import rounds
from python_reference.sampling import SampledMemorySystem, error
from warpstack import _core
from warpstack._core import ENUM_NAMES
from warpstack.memory.caches import BlockSchedule


def mixture(seed, blocks=90):
    """Return a kernel of coalesced and scattered loads, stores and atomics, with warps of many lengths.

    Most threads share what they read with those of other blocks; 20,000 sectors make it worth a sample.
    """
    draw = np.random.default_rng(seed)
    k = ws.patterns.KernelBuilder("mixture", grid=blocks, block=96)
    block, lane = k.thread // 96, k.thread % 32
    shared = 4 * ((block // int(draw.integers(1, 8))) * 512 + k.thread % 96)
    for step in range(5):
        k.emit("LDG.E", dst=4, src=2, address=shared + 4096 * step)
        k.emit("FFMA", dst=5, src=(4, 5))
        scattered = 32 * ((k.thread * int(draw.integers(1, 99))) % int(draw.integers(2000, 9000)))
        longer = (k.thread // 32 + step) % int(draw.integers(2, 5)) > 0
        k.emit("LDG.E", dst=6, src=5, address=2**22 + scattered, predicate=longer)
        if step % 2:
            k.emit("STG.E", src=(2, 6), address=2**23 + 4 * k.thread + 2**20 * step)
    k.emit("RED.E.ADD", src=(2, 6), address=2**24 + 4 * (lane % int(draw.integers(1, 9))))
    return k.build()


def small_gpu(**changes):
    few = {"num_sms": 10, "blocks_per_sm": 2, "l1_size_kib": 6, "l1_ways": 6, "l1_mshrs": 16}
    return ws.gpu("pascal-mdm").replace(**{**few, **changes})


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(rounds(6, costly=True)))
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"l1_allocation": "on_fill", "l1_sector_bytes": 32, "l2_sector_bytes": 32},
        {"l1_write_policy": "write_back", "l1_write_miss": "write_validate", "num_sms": 13},
        {"l1_global_loads": "bypassed", "atomic_requests": "per_line"},
    ],
)
def test_equals_plain_definition(seed, changes):
    kernel, gpu = mixture(seed), small_gpu(**changes)
    share = (0.5, 0.25, 0.34)[seed % 3]
    profile = ws.simulate_caches(kernel, gpu, sample_sms=share)
    system = SampledMemorySystem(memory_config(gpu, BlockSchedule()))
    totals, rows = system.run(kernel, share)
    assert profile.sampled_sms == len(system.weights)
    for name, value in profile.totals.items():
        if not name.endswith("_instructions"):
            assert value == pytest.approx(totals[name], abs=1), name
    per_row = profile._core.per_row
    for row in range(len(kernel.instructions)):
        of_row = dict(rows.get(row, {}))
        active = int(per_row["active_executions"][row])
        for name in COUNTERS:
            expected = of_row.get(name, 0)
            if name.endswith(("_events", "_waits", "_cycles", "repeats")):
                expected *= active
            assert per_row[name][row] == pytest.approx(expected, abs=1), (row, name)
    assert profile._core.slice_turns == pytest.approx(system.slice_turns)
    assert profile._core.slice_dram_sectors == system.slice_dram_sectors
    assert profile._core.slice_crowding == pytest.approx(system.slice_crowding, rel=1e-3)
    for name, expected in system.errors().items():
        assert profile.errors[name] == pytest.approx(expected, rel=3e-3), name
    for row, found in profile.errors_per_pc.iterrows():
        for name, expected in system.errors(of_row=row).items():
            assert found[name] == pytest.approx(expected, rel=3e-3), (row, name)
    for name in ("l1_read", "l1_write", "l2_read", "l2_write"):
        expected = system.rate_error(f"{name}_sector_hits", f"{name}_sectors")
        assert profile.hit_rate_errors()[name] == pytest.approx(expected, rel=3e-3), name


def test_the_error_is_students_interval_of_a_ratio():
    """By hand: 4 of 8 SMs, y = 1, 1, 2, 2 of x = 1: rate 1.5, rests of 1, variance 4/2 * 4/3."""
    found = error([2, 2, 2, 2], [1, 1, 1, 1], [1, 1, 2, 2])
    assert found == pytest.approx(3.182 * np.sqrt(4 / 2 * 4 / 3) / 12, rel=1e-3)


@pytest.mark.parametrize("leaders", [2, 5, 13, 14, 15, 20, 40, 100])
def test_the_quantile_is_students(leaders):
    draw = np.random.default_rng(leaders)
    weights, x, y = 4 * np.ones(leaders), draw.random(leaders), draw.random(leaders)
    assert _core.ratio_error(weights, x, y) == pytest.approx(error(weights, x, y), rel=1e-3)
    with pytest.raises(ws.InputError, match="as many weights"):
        _core.ratio_error(weights, x, y[1:])


def one_block_does_more(kind, block):
    """Return a launch one block of which executes what no other does."""
    k = ws.patterns.KernelBuilder("apart", grid=60, block=256)
    for step in range(12):
        k.emit("LDG.E", dst=4, src=2, address=2**23 + 4 * k.thread + 2**22 * step)
    for step in range(6):
        scattered = 2**26 + 128 * ((k.thread * 13 + step * 977) % 50000)
        registers = {"src": (2, 4)} if kind == "STG.E" else {"dst": 4, "src": 4}
        k.emit(kind, address=scattered, where=k.thread // 256 == block, **registers)
    return k.build()


@pytest.mark.parametrize("block", range(3))
def test_loads_that_no_leader_executes_are_not_guessed(block):
    """Of three SMs in a row one is simulated: of three blocks in a row two have loads it has not."""
    kernel, gpu = one_block_does_more("LDG.E", block), small_gpu()
    exact = ws.simulate_caches(kernel, gpu).per_pc
    of_sample = ws.simulate_caches(kernel, gpu, sample_sms=0.34).per_pc
    events = ["l1_hit_events", "l2_hit_events", "dram_events"]
    assert of_sample[events].sum(axis=1).tolist() == exact[events].sum(axis=1).tolist()
    assert (of_sample["dram_events"] > 0).all()


def test_stores_that_no_leader_executes_reach_l2():
    gpu, profiles = small_gpu(), []
    for block in range(3):
        kernel = one_block_does_more("STG.E", block)
        profiles.append(ws.simulate_caches(kernel, gpu, sample_sms=0.34))
        rows = profiles[-1].per_pc
        events = rows[["l1_hit_events", "l2_hit_events", "dram_events"]].sum(axis=1)
        assert events.tolist() == rows["active_executions"].tolist()
        assert rows["l2_requests"].iloc[-6:].tolist() == [256] * 6
    assert all(profile.sampled_sms for profile in profiles)


@pytest.mark.parametrize("share", [1e-3, 1e-21, 5e-324])
def test_the_smallest_shares_are_shares(share):
    profile = ws.simulate_caches(mixture(3), small_gpu(), sample_sms=share)
    assert profile.totals["load_instructions"] > 0


def test_small_launches_and_other_orders_simulate_all_sms():
    gpu, short = small_gpu(), ws.patterns.stream(blocks=20)
    one = ws.simulate_caches(short, gpu, sample_sms=0.25)
    assert one.sampled_sms == 0
    assert np.array_equal(one._core.words, ws.simulate_caches(short, gpu)._core.words)
    kernel = mixture(1)
    for order in set(ENUM_NAMES["access order"]) - {"timed"}:
        one = ws.simulate_caches(kernel, gpu, access_order=order, sample_sms=0.25)
        other = ws.simulate_caches(kernel, gpu, access_order=order)
        assert np.array_equal(one._core.words, other._core.words)


def test_where_l2_loses_lines_all_sms_are_simulated():
    """8192 lines that all blocks read, in an L2 of 1536: what is found there depends on who comes when."""
    k = ws.patterns.KernelBuilder("thrash", grid=60, block=128)
    for step in range(4):
        k.emit("LDG.E", dst=4, src=2, address=128 * ((k.thread * 61 + 1999 * step) % 8192))
    kernel, gpu = k.build(), small_gpu(l2_size_kib=192)
    systems = [ws.memory.MemorySystem(gpu) for _ in range(2)]
    for _ in range(2):
        one = systems[0].run(kernel, sample_sms=0.25)
        assert one.sampled_sms == 0
        assert np.array_equal(one._core.words, systems[1].run(kernel)._core.words)


def test_a_sampled_launch_can_run_again():
    gpu, kernel = small_gpu(), mixture(2)
    system = ws.memory.MemorySystem(gpu)
    assert not system.undo_sampled()
    assert system.run(kernel, sample_sms=0.25).sampled_sms > 0
    assert system.undo_sampled()
    again = system.run(kernel)
    assert np.array_equal(again._core.words, ws.simulate_caches(kernel, gpu)._core.words)
    assert not system.undo_sampled()


def test_a_profile_says_that_it_is_of_a_sample():
    profile = ws.simulate_caches(mixture(3), small_gpu(), sample_sms=0.25)
    assert profile.sampled_sms == 3
    assert repr(profile).endswith("from 3 of 10 SMs>")
    assert profile.to_frame()["sampled_sms"].tolist() == [3]
    assert profile.errors["requests"] > 0
    core = type(profile._core).from_words(profile._core.words)
    assert np.array_equal(core.words, profile._core.words)
    again = ws.MemoryProfile(core, profile.kernel, profile.gpu)
    assert again.errors_per_pc.equals(profile.errors_per_pc)
    assert again.hit_rate_errors() == profile.hit_rate_errors()


def test_a_profile_of_all_sms_has_no_errors():
    profile = ws.simulate_caches(mixture(3), small_gpu())
    assert profile.errors == {"requests": 0, "waits": 0}
    assert profile.errors_per_pc["pc"].tolist() == profile.per_pc["pc"].tolist()
    assert not profile.errors_per_pc[["requests", "waits"]].to_numpy().any()
    # Nothing is local, and every rate is of something.
    assert profile.hit_rate_errors() == dict.fromkeys(profile.hit_rates(), 0)


@pytest.mark.slow
def test_what_followers_do_not_know_is_not_taken_from_them():
    """Warps that read texts: lanes come to their next lines at steps of their own, in each SM at others.

    A follower's lines miss where its leader's do. So they come from DRAM, but not in as many accesses
    as they would; and the busiest slice of a few SMs is not that of all.
    """
    app = ws.workloads.load("pageview-count")
    for number in (0, 4):
        exact = ws.simulate_caches(app[number], "v100-sxm2")
        of_sample = ws.simulate_caches(app[number], "v100-sxm2", sample_sms=0.25)
        assert of_sample.sampled_sms
        for column in ("dram_events", "dram_wait_cycles"):
            found = of_sample.per_pc[column].sum() / exact.per_pc[column].sum()
            assert found == pytest.approx(1, abs=0.1), column
        turns = [max(profile._core.slice_turns) for profile in (of_sample, exact)]
        assert turns[0] == pytest.approx(turns[1], rel=0.1)


@pytest.mark.parametrize("share", [0, -1, 1.5, float("nan")])
def test_a_share_is_a_part(share):
    with pytest.raises(ws.InputError, match="is not a share of the SMs"):
        ws.simulate_caches(mixture(3), small_gpu(), sample_sms=share)


def test_the_bounds_of_a_profile_of_all_sms_are_itself():
    core = ws.simulate_caches(mixture(3), small_gpu())._core
    for sign in (1.0, -1.0):
        assert np.array_equal(core.bound(sign).words, core.words)
