"""The memory stage against its plain definition, by hand, and against conservation laws."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_caches import assert_same, plain_system

import warpstack as ws
from accelsim_text import Instruction, grouped
from configurations import memory_config
from effort import rounds
from machines import plain_pascal
from python_reference.memory import ALL_BYTES, PlainCache, PlainMemorySystem
from strategies import POLICIES, gpus, kernels
from warpstack import _core

#: Of the lines of L2 that strangers have written.
SHARES = st.sampled_from([0.0, 0.0, 0.3, 0.5, 1.0]) | st.floats(0, 1)


@pytest.mark.slow
@settings(max_examples=rounds(150))
@given(kernels(), gpus(), SHARES)
def test_equals_plain_definition(kernel, gpu, written):
    profile = ws.simulate_caches(kernel, gpu, access_order="round_robin", initial_l2=written)
    plain = plain_system(gpu, access_order="round_robin", written=written)
    assert_same(profile, plain.run(kernel))


@pytest.mark.slow
@settings(max_examples=rounds(40))
@given(st.lists(kernels(max_blocks=3), min_size=2, max_size=3), gpus(), SHARES, st.booleans())
def test_l2_persists_between_kernels(launches, gpu, written, flush_l2):
    plain = plain_system(gpu, written=written)
    how = {"initial_l2": written, "flush_l2": flush_l2}
    for profile in ws.simulate_caches(ws.App(launches), gpu, **how):
        if flush_l2:
            plain.l2.flush()
        assert_same(profile, plain.run(profile.kernel))


@pytest.mark.slow
@settings(max_examples=rounds(40))
@given(kernels(), gpus())
def test_observed_warp_equals_plain_definition(kernel, gpu):
    observe = (kernel._core.num_traced_blocks - 1, kernel.warps_per_block - 1)
    profile = ws.simulate_caches(kernel, gpu, observe=observe)
    _, _, expected = plain_system(gpu).run(kernel, observe=observe)
    assert profile._core.num_observed == len(expected)
    # The observed accesses reach the outside through the intervals.
    built = ws.interval_profile(
        kernel, gpu, profile, representative=observe, misses="representative"
    )
    table = kernel.instructions
    reads = sum(
        s["l2_requests"] for row, s in expected if table.kind[row] in ("load", "async_copy")
    )
    assert built.intervals["read_misses"].sum() == pytest.approx(reads)
    assert built.intervals["dram_requests"].sum() == pytest.approx(
        sum(s["dram_requests"] for _, s in expected)
    )


@pytest.mark.slow
@settings(max_examples=rounds(150))
@given(kernels(), gpus(), st.sampled_from(_core.ENUM_NAMES["access order"]))
def test_conservation(kernel, gpu, order):
    """What leaves a level enters the next; reads and writes balance."""
    gpu = gpu.replace(atomic_requests="per_line")
    profile = ws.simulate_caches(kernel, gpu, access_order=order)
    t, per_pc = profile.totals, profile.per_pc
    cached = per_pc[per_pc["space"] != "shared"]
    assert (
        t["l1_read_sectors"] + t["l1_write_sectors"] + t["l2_atomic_sectors"]
        == cached["sectors"].sum()
    )
    for level, kind in (
        ("l1", "read"),
        ("l1", "write"),
        ("l2", "read"),
        ("l2", "write"),
        ("l2", "atomic"),
    ):
        assert 0 <= t[f"{level}_{kind}_sector_hits"] <= t[f"{level}_{kind}_sectors"]
    # All that instructions moved out of the SM entered L2 sooner or later.
    entered = t["l2_read_sectors"] + t["l2_write_sectors"] + t["l2_atomic_sectors"]
    assert entered == cached["l2_request_sectors"].sum()
    if gpu.l1_write_policy == "write_through":
        assert t["l2_write_sectors"] == t["l1_write_sectors"]
        assert t["l1_flush_sectors"] == 0
    elif gpu.l1_sector_bytes == 32:
        # A written sector stays dirty until it leaves; atomics take it away without a write-back.
        assert t["l1_flush_sectors"] <= t["l2_write_sectors"] <= t["l1_write_sectors"]
    if gpu.l2_line_bytes >= gpu.l1_line_bytes:
        # Each request is of one line of L2, and of its slice.
        assert sum(profile._core.slice_turns) == cached["l2_requests"].sum()
    # The SM that reads most reads no less than the mean.
    most = profile._core.most_read_sectors
    assert most <= t["l2_read_sectors"] <= most * gpu.num_sms
    events = cached[["l1_hit_events", "l2_hit_events", "dram_events"]].sum(axis=1)
    assert (events == cached["active_executions"]).all()
    assert (cached["dram_requests"] <= cached["l2_requests"]).all()
    assert (cached["active_executions"] <= cached["executions"]).all()
    # A sector becomes dirty by a write, and leaves by one write-back.
    if gpu.l2_write_policy == "write_back" and gpu.l2_sector_bytes == 32:
        assert (
            t["dram_write_sectors"] + t["l2_dirty_sectors"]
            <= t["l2_write_sectors"] + t["l2_atomic_sectors"]
        )
    if gpu.l2_write_policy == "write_through":
        assert t["dram_write_sectors"] == t["l2_write_sectors"] + t["l2_atomic_sectors"]


@st.composite
def cache_configs(draw):
    replacement = draw(st.sampled_from(["lru", "fifo", "plru"]))
    ways = draw(st.sampled_from([1, 2, 4, 8, 64] if replacement == "plru" else [1, 3, 8, 17, 40]))
    line = draw(st.sampled_from([32, 64, 128, 256]))
    slices = draw(st.integers(1, 3))
    indexings = st.sampled_from(["modulo", "xor", "ipoly", "scatter"])
    return {
        "size_bytes": ways * draw(st.integers(1, 5)) * line * slices,
        "ways": ways,
        "line_bytes": line,
        "sector_bytes": 32 if draw(st.booleans()) else line,
        "write_policy": draw(st.sampled_from(["write_through", "write_back"])),
        "write_miss": draw(st.sampled_from(POLICIES)),
        "replacement": replacement,
        "allocation": "on_miss",
        "set_index": draw(indexings),
        "slices": slices,
        "slice_interleave_bytes": line * 2,
        "slice_index": draw(indexings),
        "written_by_strangers": draw(SHARES),
    }


@pytest.mark.slow
@settings(max_examples=rounds(150))
@given(cache_configs(), st.integers(0, 2**32 - 1), st.integers(1, 300))
def test_cache_equals_plain_definition(config, seed, num_accesses):
    core, plain = _core.Cache(**config), PlainCache(**config)
    per_line = config["line_bytes"] // 32
    num_lines = config["size_bytes"] // config["line_bytes"]
    rng = np.random.default_rng(seed)

    def bits(sectors):
        return sum(1 << s for s in sectors)

    for _ in range(num_accesses):
        # A few lines more than the cache holds, some far away.
        number = int(rng.integers(0, 2 * num_lines + 2)) | int(rng.integers(0, 2)) << 33
        mask = int(rng.integers(1, 1 << per_line))
        sectors = {s for s in range(per_line) if mask >> s & 1}
        evict_first = bool(rng.random() < 0.2)
        if rng.random() < 0.1:
            core.invalidate(number, mask)
            plain.invalidate(number, sectors)
        elif rng.random() < 0.5:
            byte_mask = int(rng.choice([0xFFFFFFFF, 0xFFFF, 0xFFFF0000, 1]))
            hit, fetch, forward, evicted = core.write(number, mask, [byte_mask] * 8, 7, evict_first)
            expected = plain.write(number, dict.fromkeys(sectors, byte_mask), 7, evict_first)
            assert forward == bits(expected[2])
            assert (hit, fetch) == (bits(expected[0]), bits(expected[1]))
            assert evicted == expected[-1]
        else:
            hit, fetch, evicted = core.read(number, mask, evict_first)
            expected = plain.read(number, sectors, evict_first)
            assert (hit, fetch) == (bits(expected[0]), bits(expected[1]))
            assert evicted == expected[-1]
    assert core.dirty_sectors == plain.dirty_sectors()
    if config["written_by_strangers"] > 0:  # caches of an SM alone are flushed, and have none
        return
    assert core.flush() == plain.flush()
    assert core.dirty_sectors == core.read(1, 1)[0] == 0


@pytest.mark.slow
@settings(max_examples=rounds(80))
@given(
    kernels(),
    gpus(),
    st.sampled_from(["round_robin", "random", "breadth_first"]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2**64 - 1),
)
def test_block_schedules_equal_plain_definition(kernel, gpu, policy, first, filtered, seed):
    schedule = ws.memory.BlockSchedule(policy, seed, first_occupancy_only=first)
    options = {"filter_l1_hits": filtered, "access_order": "round_robin"}
    profile = ws.simulate_caches(kernel, gpu, blocks=schedule, **options)
    config = memory_config(gpu, schedule, **options)
    assert_same(profile, PlainMemorySystem(config).run(kernel))
    if first:
        per_sm = profile.occupancy["blocks_per_sm"]
        assert profile.num_simulated_blocks <= per_sm * gpu.num_sms
        # Instructions are those of the simulated blocks, and each was an event when active.
        cached = profile.per_pc[profile.per_pc["space"] != "shared"]
        events = cached[["l1_hit_events", "l2_hit_events", "dram_events"]].sum(axis=1)
        assert (events == cached["active_executions"]).all()
        assert profile.totals["load_instructions"] <= kernel.num_memory_instructions


@pytest.mark.slow
@settings(max_examples=rounds(150))
@given(kernels(), gpus(), st.integers(1, 40))
def test_greedy_order_equals_plain_definition(kernel, gpu, mshrs):
    gpu = gpu.replace(l1_mshrs=mshrs)
    config = memory_config(gpu, access_order="greedy")
    assert_same(
        ws.simulate_caches(kernel, gpu, access_order="greedy"),
        PlainMemorySystem(config).run(kernel),
    )


def test_greedy_order_by_hand(pascal):
    """Three warps load eight words of a line of their own each; L1 has two lines, the SM one MSHR.

    In turns each line takes the place of the one that is needed two accesses later: 24 misses.
    Greedy: warp 0 misses A and waits; warp 1 misses B and needs the MSHR, so A returns and warp 0
    goes on: 7 hits. Warp 2 misses C in the place of B, and B returns: warp 1 misses B again, in the
    place of A, and C returns: warp 2 has 7 hits. Then B returns, and warp 1 has 6 hits: 4 misses.
    """
    gpu = pascal.replace(num_sms=1, l1_size_kib=0.25, l1_ways=2, l1_mshrs=1)
    k = ws.patterns.KernelBuilder("k", grid=1, block=96)
    for word in range(8):
        k.emit("LDG.E", dst=4, src=2, address=128 * (k.thread // 32) + 4 * word + 0 * k.thread)
    kernel = k.build()
    for order, misses in (("round_robin", 24), ("greedy", 4)):
        totals = ws.simulate_caches(kernel, gpu, access_order=order).totals
        assert totals["l1_read_requests"] == 24
        assert totals["l2_read_requests"] == misses


def test_a_schedule_must_exist(pascal):
    kernel = ws.patterns.stream(blocks=2)
    with pytest.raises(
        ws.InputError,
        match=r"access_order = 'oldest' is not one of auto, round_robin, greedy, timed",
    ):
        ws.simulate_caches(kernel, pascal, access_order="oldest")
    with pytest.raises(ws.InputError, match=r"policy = 'depth_first' is not one of round_robin"):
        ws.simulate_caches(kernel, pascal, blocks="depth_first")
    with pytest.raises(ws.InputError, match="seed = -1 is outside"):
        ws.memory.BlockSchedule("random", -1)
    with pytest.raises(ws.InputError, match="workers = 1000 is outside 1 to 255"):
        ws.memory.MemorySystem(pascal, workers=1000)
    for flag in (np.eye(2), pd.Series([1, 2]), "x"):  # their texts may have several lines
        with pytest.raises(ws.InputError, match=r"\Afilter_l1_hits: expected True or False, .*\Z"):
            ws.memory.MemorySystem(pascal, filter_l1_hits=flag)


def test_write_back_state_machine_of_the_cache_paper():
    """Cache paper, Figure 4: one L2 line of one sector, write-back, write-allocate.

    Read A: miss, one sector read from memory. Write A: hit, A is dirty, nothing moves. Read B: miss,
    A is replaced and written back (1 write), B is read (1 read). Write C: miss, the sector is read
    first (1 read), then C is dirty. The end: C still has to be written, which the flush does.
    """
    gpu = plain_pascal(
        num_sms=1,
        l1_line_bytes=32,
        l1_sector_bytes=32,
        l1_size_kib=1 / 32,
        l1_ways=1,
        l1_global_loads="bypassed",
        l2_line_bytes=32,
        l2_sector_bytes=32,
        l2_slices=1,
        l2_ways=1,
        l2_size_kib=1 / 32,
    )
    steps = [("LDG.E", 0), ("STG.E", 0), ("LDG.E", 1), ("STG.E", 2)]
    reads, writes, dirty = [], [], []
    for n in range(1, 5):

        def emit(k, n=n):
            for opcode, line in steps[:n]:
                where = k.thread == 0
                registers = {"src": (2, 4)} if opcode == "STG.E" else {"src": 2, "dst": 4}
                k.emit(opcode, address=32 * line + 0 * k.thread, predicate=where, **registers)

        totals = ws.simulate_caches(one_warp(emit), gpu).totals
        reads.append(totals["dram_read_sectors"])
        writes.append(totals["dram_write_sectors"])
        dirty.append(totals["l2_dirty_sectors"])
    assert reads == [1, 1, 2, 3]
    assert writes == [0, 0, 1, 1]
    assert dirty == [0, 1, 0, 1]


def test_adaptive_l1_of_volta():
    """Cache paper, Section 4.2: 128 KiB, shared memory of 0, 8, 16, 32, 64 or 96 of them.

    Blocks of 64 threads: 2048 / 64 = 32 fit by threads. Without shared memory L1 has all 128 KiB.
    With 1 KiB a block 32 blocks need 32 KiB: 96 KiB are left. With 10 KiB, 96 / 10 = 9 blocks fit,
    which need 90 KiB: only the carve-out of 96 holds them, and 32 KiB are left.
    """
    volta = ws.gpu("pascal-mdm").replace(
        name="volta",
        shared_memory_kib_per_sm=96,
        unified_l1_kib=128,
        shared_memory_carve_outs_kib=(0, 8, 16, 32, 64, 96),
        adaptive_l1_keeps="ways",
        l1_ways=4,
        l1_size_kib=32,
    )
    sizes = []
    for shared in (0, 1024, 10240):
        k = ws.patterns.KernelBuilder("k", grid=1, block=64, shared_memory_bytes=shared)
        k.emit("LDG.E", dst=4, src=2, address=4 * k.thread)
        kernel = k.build()
        sizes.append(ws.simulate_caches(kernel, volta).l1_size_kib)
    assert sizes == [128, 96, 32]
    assert ws.simulate_caches(kernel, "pascal-mdm").l1_size_kib == 48


def test_streaming_l1_looks_up_all_lines_before_it_replaces_one(pascal):
    """A one-line L1 holds line 0; a warp then touches lines 1 and 0, in this order.

    On miss, line 1 takes the place of line 0 before line 0 is looked up: two misses. On fill, line 0
    still hits.
    """

    def emit(k):
        k.emit("LDG.E", dst=4, src=2, address=0 * k.thread)
        k.emit("LDG.E", dst=4, src=2, address=128 * (1 - k.thread % 2))

    gpu = pascal.replace(num_sms=1, l1_size_kib=0.125, l1_ways=1)
    hits = [
        ws.simulate_caches(one_warp(emit), gpu.replace(l1_allocation=allocation)).totals[
            "l1_read_request_hits"
        ]
        for allocation in ("on_miss", "on_fill")
    ]
    assert hits == [0, 1]


def test_hashed_sets_spread_a_stride_of_the_cache_size(pascal):
    """Eight lines a cache size apart fall into one of 8 sets of one way; hashes keep them all."""

    def emit(k):
        for _ in range(2):
            for line in range(8):
                k.emit("LDG.E", dst=4, src=2, address=8 * 128 * line + 0 * k.thread)

    hits = {}
    for index in ("modulo", "xor", "ipoly"):
        gpu = pascal.replace(num_sms=1, l1_size_kib=1, l1_ways=1, l1_set_index=index)
        hits[index] = ws.simulate_caches(one_warp(emit), gpu).totals["l1_read_request_hits"]
    assert hits == {"modulo": 0, "xor": 8, "ipoly": 8}


def test_evict_first_lines_make_room_first(pascal):
    """Two ways: A, then B with .EF, then C takes the place of B, and A hits."""

    def emit(k):
        for opcode, line in (("LDG.E", 0), ("LDG.E.EF", 1), ("LDG.E", 2), ("LDG.E", 0)):
            k.emit(opcode, dst=4, src=2, address=128 * line + 0 * k.thread)

    gpu = pascal.replace(num_sms=1, l1_size_kib=0.25, l1_ways=2)
    assert ws.simulate_caches(one_warp(emit), gpu).totals["l1_read_request_hits"] == 1


def test_ablations_of_the_cache_paper(bfs):
    """Table 5: each variant leaves one part out, and only what depends on it changes."""
    gpu = ws.gpu("titan-v").replace(
        unified_l1_kib=128,
        shared_memory_carve_outs_kib=(0, 8, 16, 32, 64, 96),
        adaptive_l1_keeps="ways",
        l1_size_kib=32,
        l1_ways=4,
    )
    app = bfs.select([5, 7, 9])
    table = ws.memory.ablate(app, gpu)
    assert list(dict.fromkeys(table["variant"])) == [
        "Final",
        "L1NonSec",
        "L2NonSec",
        "NoL1Filter",
        "NoAdaptL1",
    ]
    by = {variant: rows.reset_index() for variant, rows in table.groupby("variant")}
    final = by["Final"]
    in_turn = {"access_order": "round_robin"}
    profiles = ws.simulate_caches(app, gpu, flush_l2=True, **in_turn)
    assert final["l1_hit_rate"].tolist() == [p.hit_rates()["l1"] for p in profiles]
    # Without the filter, L2 reads are what loads ask of L1.
    unfiltered = by["NoL1Filter"]
    assert unfiltered["l2_reads"].tolist() == [p.totals["l1_read_sectors"] for p in profiles]
    assert unfiltered["l1_hit_rate"].equals(final["l1_hit_rate"])
    assert (unfiltered["l2_hit_rate"] > final["l2_hit_rate"]).all()
    for variant in ("L2NonSec", "NoL1Filter"):
        assert by[variant]["l1_hit_rate"].equals(final["l1_hit_rate"])
    assert (by["NoAdaptL1"]["l1_hit_rate"] <= final["l1_hit_rate"]).all()
    unadapted = gpu.replace(unified_l1_kib=0, shared_memory_carve_outs_kib=())
    small = ws.simulate_caches(app, unadapted, **in_turn)
    assert by["NoAdaptL1"]["l1_hit_rate"].tolist() == [p.hit_rates()["l1"] for p in small]


def test_divergence_and_hit_rates_by_hand(pascal):
    """Two loads of 4 and 1 lines, the second to a line of the first; a store of one line."""

    def emit(k):
        k.emit("LDG.E", dst=4, src=2, address=128 * (k.thread % 4))
        k.emit("LDG.E", dst=4, src=2, address=0 * k.thread)
        k.emit("STG.E", src=(2, 4), address=4096 + 4 * k.thread)
        k.emit("LDL", dst=4, src=2, address=0 * k.thread)
        k.emit("LDL", dst=4, src=2, address=0 * k.thread)

    profile = ws.simulate_caches(one_warp(emit), pascal)
    # Local words of the 32 lanes are neighbours: 4 sectors of one line, missed once and hit once.
    assert profile.divergence() == {
        "load_requests": (4 + 1 + 1 + 1) / 4,
        "load_sectors": (4 + 1 + 4 + 4) / 4,
        "store_requests": 1,
        "store_sectors": 4,
    }
    rates = profile.hit_rates()
    assert rates["l1_read"] == 5 / 13
    assert rates["l1"] == 5 / 17
    assert rates["l1_global"] == 1 / 9
    assert rates["l1_global_load"] == 1 / 5


def one_warp(emit, **header):
    k = ws.patterns.KernelBuilder("hand", grid=1, block=32, **header)
    emit(k)
    return k.build()


def test_sector_example_of_the_cache_paper(pascal):
    """Cache paper, Figure 2: four threads read 8 bytes each, 64 bytes apart.

    They touch four sectors in two lines. Without sectors L1 fetches 2 lines = 256 bytes, with
    sectors 4 * 32 = 128 bytes.
    """
    kernel = one_warp(
        lambda k: k.emit("LDG.E.64", dst=4, src=2, address=64 * k.thread, where=k.thread < 4)
    )
    whole = ws.simulate_caches(kernel, pascal)
    sectored = ws.simulate_caches(kernel, pascal.replace(l1_sector_bytes=32))
    assert whole.totals["l2_read_sectors"] * 32 == 256
    assert sectored.totals["l2_read_sectors"] * 32 == 128
    assert whole.totals["l1_read_sectors"] == sectored.totals["l1_read_sectors"] == 4


def test_lru_by_hand(pascal):
    """One set of two ways, lines A B A C B: B is the last used when C comes, so A hits once, B misses twice.

    Accesses: A miss, B miss, A hit, C miss (evicts B), B miss (evicts A).
    """
    gpu = pascal.replace(num_sms=1, l1_size_kib=0.25, l1_ways=2)
    lines = [0, 1, 0, 2, 1]

    def emit(k):
        for line in lines:
            k.emit("LDG.E", dst=4, src=2, address=128 * line + 0 * k.thread)

    profile = ws.simulate_caches(one_warp(emit), gpu)
    assert profile.totals["l1_read_requests"] == 5
    assert profile.totals["l1_read_request_hits"] == 1
    assert profile.totals["l2_read_requests"] == 4
    # B comes back from L2, which kept it: three lines of four sectors were read from DRAM.
    assert profile.totals["dram_read_sectors"] == 12


def test_slowest_request_decides_the_event(pascal):
    """A warp that touches a line in L1, one in L2 and one in neither is a DRAM access."""
    gpu = pascal.replace(num_sms=1, l1_size_kib=0.125, l1_ways=1)

    def emit(k):
        for line in (0, 1):  # line 1 pushes line 0 out of the one-line L1; both stay in L2
            k.emit("LDG.E", dst=4, src=2, address=128 * line + 0 * k.thread)
        k.emit("LDG.E", dst=4, src=2, address=128 * (1 - k.thread % 2))  # L1 hit, then L2 hit
        k.emit("LDG.E", dst=4, src=2, address=128 * (k.thread % 3))

    per_pc = ws.simulate_caches(one_warp(emit), gpu).per_pc
    assert per_pc["dram"].tolist() == [1, 1, 0, 1]
    assert per_pc["l2_hit"].tolist() == [0, 0, 1, 0]


def test_write_through_without_allocation():
    """Stores leave the SM each time and do not bring their line into L1."""

    def emit(k):
        k.emit("STG.E", src=(2, 4), address=4 * k.thread)
        k.emit("STG.E", src=(2, 4), address=4 * k.thread)
        k.emit("LDG.E", dst=4, src=2, address=4 * k.thread)

    t = ws.simulate_caches(one_warp(emit), plain_pascal()).totals
    assert t["l1_write_sectors"] == t["l2_write_sectors"] == 8
    assert t["l1_write_sector_hits"] == t["l1_read_sector_hits"] == 0
    assert t["l2_write_sector_hits"] == 4  # the second store
    assert t["dram_read_sectors"] == 4  # fetched by the first store
    assert t["dram_write_sectors"] == 0
    assert t["l2_dirty_sectors"] == 4


def test_a_missed_write_that_goes_on_fetches_its_line(pascal):
    """Accel-Sim's policy W: DRAM takes the first store and gives its line; the second one stays in L2."""
    assert pascal.l2_write_miss == "write_and_fetch"

    def emit(k):
        k.emit("STG.E", src=(2, 4), address=4 * k.thread)
        k.emit("STG.E", src=(2, 4), address=4 * k.thread)

    one, both = (
        ws.simulate_caches(one_warp(emit), gpu).totals
        for gpu in (pascal, pascal.replace(l2_write_policy="write_through"))
    )
    assert one["dram_read_sectors"] == one["dram_write_sectors"] == one["l2_dirty_sectors"] == 4
    assert both["dram_read_sectors"] == 4
    assert both["dram_write_sectors"] == 8
    assert both["l2_dirty_sectors"] == 0


def test_write_validate_reads_nothing_until_a_read_needs_it(pascal):
    gpu = pascal.replace(l2_write_miss="write_validate", l2_sector_bytes=32)

    def whole(k):
        k.emit("STG.E", src=(2, 4), address=4 * k.thread)
        k.emit("LDG.E", dst=4, src=2, address=4 * k.thread)

    def partial(k):
        k.emit("STG.E.U8", src=(2, 4), address=4 * k.thread)
        k.emit("LDG.E", dst=4, src=2, address=4 * k.thread)

    assert ws.simulate_caches(one_warp(whole), gpu).totals["dram_read_sectors"] == 0
    t = ws.simulate_caches(one_warp(partial), gpu).totals
    assert t["dram_read_sectors"] == 4
    assert t["l2_dirty_sectors"] == 4


def test_a_write_back_l1_loses_nothing_when_the_kernel_ends():
    """Two stores to a line, one load that evicts it from a one-line L1, one store that stays.

    The first store's 4 sectors leave when the load evicts them, on the account of the second store,
    which wrote last; the third store's leave with the flush.
    """
    gpu = plain_pascal(
        num_sms=1,
        l1_size_kib=0.125,
        l1_ways=1,
        l1_sector_bytes=32,
        l1_write_policy="write_back",
        l1_write_miss="write_validate",
    )

    def emit(k):
        for _ in range(2):
            k.emit("STG.E", src=(2, 4), address=4 * k.thread)
        k.emit("LDG.E", dst=4, src=2, address=1024 + 4 * k.thread)
        k.emit("STG.E", src=(2, 4), address=2048 + 4 * k.thread)

    profile = ws.simulate_caches(one_warp(emit), gpu)
    assert profile.totals["l2_write_sectors"] == 8
    assert profile.totals["l1_flush_sectors"] == 4
    assert profile.totals["l2_dirty_sectors"] == 8
    assert profile.per_pc["l2_request_sectors"].tolist() == [0, 4, 4, 4]


def test_strong_loads_bypass_l1(pascal):
    def emit(k):
        for _ in range(3):
            k.emit("LDG.E.STRONG.GPU", dst=4, src=2, address=4 * k.thread)

    t = ws.simulate_caches(one_warp(emit), pascal).totals
    assert (t["l1_read_sectors"], t["l1_read_sector_hits"]) == (12, 0)
    assert (t["l2_read_sectors"], t["l2_read_sector_hits"]) == (12, 8)


def test_atomics_are_served_by_l2(pascal):
    def emit(k):
        k.emit("LDG.E", dst=4, src=2, address=4 * k.thread)
        k.emit("ATOMG.E.ADD", dst=4, src=(2, 5), address=4 * k.thread)
        k.emit("LDG.E", dst=4, src=2, address=4 * k.thread)

    t = ws.simulate_caches(one_warp(emit), pascal).totals
    assert (t["l2_atomic_sectors"], t["l2_atomic_sector_hits"]) == (4, 4)
    assert t["l1_read_sector_hits"] == 0  # the atomic took the line out of L1
    assert t["atomic_instructions"] == 1


def test_blocks_go_round_robin_and_share_nothing_in_l1(pascal):
    """Four blocks on two SMs read one line: each SM misses once, blocks on the same SM share."""
    k = ws.patterns.KernelBuilder("shared_line", grid=4, block=32)
    k.emit("LDG.E", dst=4, src=2, address=4 * k.thread_in_block)
    t = ws.simulate_caches(k.build(), pascal.replace(num_sms=2)).totals
    assert t["l1_read_requests"] == 4
    assert t["l1_read_request_hits"] == 2
    assert t["l2_read_request_hits"] == 1


def test_blocks_go_to_sms_by_their_number_in_the_launch(tmp_path, pascal):
    """Of 4 blocks 0 and 2 are traced: both go to SM 0 of 2, so the second hits in L1."""
    load = Instruction(
        0, "LDG.E", dst=[4], src=[2], width=4, addresses={i: 4096 + 4 * i for i in range(32)}
    )
    blocks = {(b, 0, 0): {0: [load, Instruction(16, "EXIT")]} for b in (0, 2)}
    (tmp_path / "kernel-1.traceg").write_text(grouped(blocks, 4, grid=(4, 1, 1)))
    with pytest.warns(ws.errors.TraceWarning, match="blocks are missing"):
        app = ws.load(tmp_path / "kernel-1.traceg")
    (profile,) = ws.simulate_caches(app, pascal.replace(num_sms=2))
    assert profile.totals["l1_read_request_hits"] == 1
    (profile,) = ws.simulate_caches(app, pascal.replace(num_sms=4))
    assert profile.totals["l1_read_request_hits"] == 0


def test_occupancy_by_hand(pascal):
    """Each limit of 65536 registers, 64 warps, 2048 threads, 96 KiB and 32 blocks in turn."""

    def resident(block, registers, shared):
        k = ws.patterns.KernelBuilder(
            "k", grid=1, block=block, registers_per_thread=registers, shared_memory_bytes=shared
        )
        k.emit("EXIT")
        result = ws.memory.occupancy(k.build(), pascal)
        return result["blocks_per_sm"], result["limit"]

    assert resident(32, 16, 0) == (32, "blocks_per_sm")
    # 256 threads are 8 warps: 64 / 8 = 8.
    assert resident(256, 16, 0) == (8, "warps_per_sm")
    # 65 threads are 3 warps: 64 / 3 = 21.
    assert resident(65, 16, 0) == (21, "warps_per_sm")
    # A warp of 33 registers takes 33 * 32 = 1056, rounded up to 1280; 65536 / (8 * 1280) = 6.4.
    assert resident(256, 33, 0) == (6, "registers_per_sm")
    # 20000 bytes round up to 20224; 98304 / 20224 = 4.86.
    assert resident(256, 16, 20000) == (4, "shared_memory_kib_per_sm")


def test_reserved_shared_memory_is_taken_by_every_block(pascal):
    """1 KiB a block: 16 KiB hold 16 blocks of none of their own, 8 of 1 KiB."""
    gpu = pascal.replace(shared_memory_kib_per_sm=16, shared_memory_reserved_bytes=1024)
    for shared, blocks in ((0, 16), (1024, 8)):
        k = ws.patterns.KernelBuilder("k", grid=1, block=32, shared_memory_bytes=shared)
        k.emit("EXIT")
        assert ws.memory.occupancy(k.build(), gpu)["blocks_per_sm"] == blocks


def test_a_block_that_does_not_fit_is_an_error(pascal):
    k = ws.patterns.KernelBuilder("huge", grid=1, block=1024, registers_per_thread=128)
    k.emit("EXIT")
    with pytest.raises(
        ws.InputError,
        match=r"\(huge\): a thread block needs 131072 registers, an SM has 65536; raise registers_per_sm",
    ):
        ws.simulate_caches(k.build(), pascal)


def test_flush_l2_makes_kernels_independent(pascal):
    kernel = ws.patterns.stream(blocks=28)
    app = ws.App([kernel, kernel])
    kept = ws.simulate_caches(app, pascal)
    flushed = ws.simulate_caches(app, pascal, flush_l2=True)
    assert kept[1].totals["dram_read_sectors"] == 0
    assert flushed[1].totals["dram_read_sectors"] == flushed[0].totals["dram_read_sectors"] > 0


def test_bfs_sectors_and_instructions(bfs, bfs_reference, pascal):
    """Unique 32-byte sectors per warp instruction and instruction counts of the real trace."""
    loads = [180, 128, 468, 128, 2139, 128, 10222, 128, 31003, 128, 25167, 128, 2274, 128, 138, 128]
    stores = [21, 40, 130, 196, 757, 488, 3758, 512, 9340, 512, 1694, 440, 116, 8, 2, 0]
    profiles = ws.simulate_caches(bfs, pascal)
    assert (
        [p.totals["l1_read_sectors"] for p in profiles]
        == loads
        == list(bfs_reference.trace_ld_sect)
    )
    assert (
        [p.totals["l1_write_sectors"] for p in profiles]
        == stores
        == list(bfs_reference.trace_st_sect)
    )
    assert [p.totals["l1_read_requests"] for p in profiles] == list(bfs_reference.trace_ld_line128)
    assert [p.totals["load_instructions"] for p in profiles] == list(bfs_reference.trace_ld_winsn)
    assert [p.totals["store_instructions"] for p in profiles] == list(bfs_reference.trace_st_winsn)
    for profile, active_loads, active_stores in zip(
        profiles,
        bfs_reference.trace_ld_active_winsn,
        bfs_reference.trace_st_active_winsn,
        strict=True,
    ):
        active = profile.per_pc.groupby("kind")["active_executions"].sum()
        assert active.get("load", 0) == active_loads
        assert active.get("store", 0) == active_stores


def test_bfs_l2_traffic_equals_the_counters_of_a_gtx_1080(bfs, bfs_reference):
    """Loads pass L1. Hardware stores 3 and 47 sectors more in the two launches with the widest frontiers."""
    gpu = ws.gpu("gtx1080").replace(l1_global_loads="bypassed")
    totals = [p.totals for p in ws.simulate_caches(bfs, gpu)]
    counters = bfs_reference.filter(like="hw_gtx1080_l2_tex_")
    reads = counters["hw_gtx1080_l2_tex_read_transactions"]
    assert [t["l2_read_sectors"] for t in totals] == list(reads)
    writes = counters["hw_gtx1080_l2_tex_write_transactions"]
    equal = [t["l2_write_sectors"] == n for t, n in zip(totals, writes, strict=True)]
    assert sum(equal) >= 14


@pytest.mark.slow
def test_bfs_equals_plain_definition(bfs, pascal):
    plain = plain_system(pascal)
    for profile in ws.simulate_caches(bfs.select([1, 2, 3, 5]), pascal):
        assert_same(profile, plain.run(profile.kernel))


def test_counters_are_exact_in_a_file_backed_trace(tmp_path, pascal):
    """Windows of a trace that does not fit the memory limit give the same counters."""
    kernel = ws.patterns.gather(loads=600, blocks=3, warps_per_block=2, footprint_mib=1)
    ws.save(ws.App([kernel]), tmp_path / "saved")
    (filed,) = ws.load(tmp_path / "saved", memory_limit_mib=0).kernels
    assert filed.in_file
    assert not kernel.in_file
    assert ws.simulate_caches(filed, pascal).totals == ws.simulate_caches(kernel, pascal).totals


def test_per_pc_distribution_sums_to_one(bfs, pascal):
    per_pc = ws.simulate_caches(bfs.kernels[8], pascal).per_pc
    active = per_pc[(per_pc["active_executions"] > 0) & (per_pc["space"] != "shared")]
    assert np.allclose(active[["l1_hit", "l2_hit", "dram"]].sum(axis=1), 1)


def test_reference_masks_are_whole_sectors():
    assert ALL_BYTES == 0xFFFFFFFF
