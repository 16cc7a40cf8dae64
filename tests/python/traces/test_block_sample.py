"""Samples of the thread blocks of a launch: which they are, and what they touch of memory."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
import warpstack as ws
from block_samples import sample_of
from effort import rounds
from python_reference import block_sample as reference
from warpstack import _core
from warpstack._util.trace_budget import default_budget
from warpstack.hardware.part import part_of
from warpstack.traces.block_sample import _whole_lines, parts_of
from warpstack.traces.trace import KernelTrace


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_blocks_of_a_sample(num_blocks, sampled):
    sampled = min(num_blocks, sampled)
    runs = _core.sampled_blocks(num_blocks, sampled)
    blocks = [first + b for first, length in runs for b in range(length)]
    assert blocks == reference.sampled_blocks(num_blocks, sampled)
    assert len(set(blocks)) == sampled
    assert blocks == sorted(blocks)
    assert 0 <= blocks[0] <= blocks[-1] < num_blocks


@given(st.integers(1, 3000), st.integers(1, 3000), st.integers(1, 16))
def test_clusters_of_a_sample(num_blocks, sampled, together):
    sampled = min(num_blocks, sampled)
    runs = _core.sampled_blocks(num_blocks, sampled, together)
    blocks = [first + b for first, length in runs for b in range(length)]
    assert blocks == reference.sampled_blocks(num_blocks, sampled, together)
    assert all(
        {block // together * together + rank for rank in range(together)} <= {*blocks}
        for block in blocks[: len(blocks) if num_blocks % together == 0 else 0]
    )
    assert sampled <= len(blocks) < sampled + together or len(blocks) == num_blocks


@given(
    st.one_of(st.integers(1, 2**40), st.integers(1, 600)),
    st.one_of(st.integers(1, 2**20), st.integers(1, 40)),
    st.booleans(),
)
def test_size_of_a_sample(num_blocks, one_in, are_persistent):
    assert _core.sample_size(
        num_blocks, one_in, are_persistent=are_persistent
    ) == reference.sample_size(num_blocks, one_in, are_persistent=are_persistent)


def test_what_is_cut_to_whole_sms_is_not_few():
    # 128 blocks are chosen of 640 on 6 SMs: those of one SM remain.
    part = parts_of(ws.patterns.stream(blocks=640), 6, 16, 128)[0]
    assert part.blocks < 128
    assert not part.few
    persistent = parts_of(ws.patterns.stream(blocks=160), 80, 16, 128)[0]
    assert persistent.blocks < 128
    assert persistent.few


def test_fewer_blocks_are_no_sample():
    assert not sample_of(ws.patterns.stream(blocks=300), 127).is_sampled
    assert not sample_of(ws.patterns.stream(blocks=200), 3).is_sampled
    assert sample_of(ws.patterns.stream(blocks=200), 4).is_sampled


@pytest.mark.parametrize("sampled", [128, 200, 299])
def test_a_sampled_trace_is_known(sampled):
    whole = ws.patterns.stream(blocks=300)
    trace = sample_of(whole, sampled)
    assert trace.is_sampled
    assert not whole.is_sampled
    assert trace.num_missing_blocks == 300 - sampled
    core = trace._core.launch_of_blocks([0], default_budget())
    assert not KernelTrace(core).is_sampled


def test_other_missing_blocks_are_no_sample():
    whole = ws.patterns.stream(blocks=300)
    core = whole._core
    builder = _core.TraceBuilder(core.header, default_budget())
    table = core.instruction_table()
    for row in range(len(table["pc"])):
        builder.intern_row({name: values[row] for name, values in table.items()})
    for block in range(150):
        builder.add_batch(core.read_batch(block, block + 1))
    assert not KernelTrace(builder.finish()).is_sampled


@settings(max_examples=rounds(30))
@given(strategies.kernels(), st.data())
def test_a_launch_of_blocks_has_their_columns(kernel, data):
    traced = kernel._core.num_traced_blocks
    positions = sorted(data.draw(st.sets(st.integers(0, traced - 1), min_size=1)))
    try:
        launch = KernelTrace(kernel._core.launch_of_blocks(positions, default_budget()))
    except ws.InputError as error:
        assert "no instruction" in str(error)  # noqa: PT017  (blocks may be idle)
        return
    assert launch.grid == (len(positions), 1, 1)
    assert launch.num_missing_blocks == 0
    warps = [numbers for _, numbers in kernel.blocks()]
    for block, position in enumerate(positions):
        for warp in range(len(warps[position])):
            ours, theirs = launch.warp(block, warp), kernel.warp(position, warp)
            for name, values in theirs.items():
                np.testing.assert_array_equal(ours[name], values, name)


@settings(max_examples=rounds(30))
@given(strategies.kernels(), st.data())
def test_lines_that_blocks_touch(kernel, data):
    traced = kernel._core.num_traced_blocks
    levels = data.draw(st.lists(st.integers(0, 3), min_size=traced, max_size=traced))
    lines = kernel._core.touched_lines(levels, 3, 128)
    for level in (1, 2, 3):
        positions = [position for position, deepest in enumerate(levels) if deepest >= level]
        assert lines[level - 1] == len(reference.touched_lines(kernel, positions, 128))


def test_lines_are_estimated_from_a_sample_of_them():
    kernel = ws.patterns.stream(blocks=512)
    levels = [1] * 512
    (exact,) = kernel._core.touched_lines(levels, 1, 128)
    (about,) = kernel._core.touched_lines(levels, 1, 128, 8)
    assert about == pytest.approx(exact, rel=0.05)


def lines_of(share: float, own: float, shared: float, sharers: float) -> list[float]:
    """Return the lines of a share of the blocks, of half and of a quarter of it."""
    return [own * x + shared * (1 - math.exp(-sharers * x)) for x in (share, share / 2, share / 4)]


@given(
    st.sampled_from([1 / 16, 1 / 8, 1 / 4, 1 / 2]),
    st.floats(0, 1e6),
    st.floats(1e4, 1e6),
    st.floats(4, 400),
)
def test_lines_of_all_blocks_by_hand(share, own, shared, sharers):
    exact = own + shared * (1 - math.exp(-sharers))
    lines = lines_of(share, own, shared, sharers)
    enough = 2 * lines[1] - lines[0] > 0.01 * lines[0] and sharers * share > 0.2
    if enough:
        assert _whole_lines(lines, share) == pytest.approx(exact, rel=0.01)


def test_lines_of_all_blocks_at_the_ends():
    assert _whole_lines([800, 400, 200], 1 / 8) == 6400  # nothing is shared
    assert _whole_lines([500, 500, 500], 1 / 8) == pytest.approx(500)  # everything is
    assert _whole_lines([0, 0, 0], 1 / 8) == 0
    # 36 of 64 tiles of a product: 32 of all blocks, and 4 of one row each.
    assert _whole_lines([36, 34, 33], 1 / 8) == pytest.approx(64)


def test_parts_by_hand():
    kernel = ws.patterns.stream(blocks=2048)
    full, even, odd = parts_of(kernel, 132, 8, 128)
    # 256 of 2,048 blocks are enough for 16 of 132 SMs, which have 248.2.
    assert (full.num_sms, full.blocks, even.num_sms, even.blocks) == (16, 249, 8, 125)
    assert odd.blocks == 125
    assert full.counts == 2048 / 249
    assert full.times == pytest.approx(2048 / 249 * 16 / 132)
    assert full.memory_share == pytest.approx(249 / 2048, rel=0.05)  # no line is shared
    assert parts_of(kernel, 132, 1, 128) is None
    assert parts_of(ws.patterns.stream(blocks=255), 132, 8, 128) is None


@given(st.integers(256, 5000), st.integers(2, 32), st.integers(1, 200), st.integers(1, 16))
def test_parts_have_as_many_waves_as_the_whole(blocks, one_in, num_sms, at_once):
    parts = parts_of(ws.patterns.stream(blocks=blocks, loads=1), num_sms, one_in, 128)
    for part in parts or ():
        if part.blocks * num_sms >= blocks * part.num_sms:  # all but the smallest GPUs
            waves = math.ceil(part.blocks / (part.num_sms * at_once))
            assert waves == math.ceil(blocks / (num_sms * at_once))


@settings(max_examples=rounds(30))
@given(strategies.kernels())
def test_work_of_blocks(kernel):
    instructions, longest = kernel._core.block_work()
    for block, (_, warps) in enumerate(kernel.blocks()):
        issued = [len(kernel.warp(block, warp)["instruction"]) for warp in range(len(warps))]
        assert (instructions[block], longest[block]) == (sum(issued), max(issued))


def uneven(work: list[int]) -> KernelTrace:
    """Return a launch with so many instructions in a warp of each block."""
    kernel = ws.patterns.KernelBuilder("uneven", grid=len(work), block=32)
    left = np.repeat(work, 32).reshape(-1, 32)
    for turn in range(max(work)):
        kernel.emit("FFMA", dst=1, src=[1, 2], where=left > turn)
    return kernel.build()


def test_a_launch_whose_work_a_sample_misses_is_whole():
    alike = [20] * 1024
    assert parts_of(uneven(alike), 80, 4, 128)[0].uneven == 0
    sampled = {b for first, n in _core.sampled_blocks(1024, 256) for b in range(first, first + n)}
    missed = next(block for block in range(1024) if block not in sampled)
    # One block that takes as long as all others, and many that others do not stand for.
    assert parts_of(uneven([*alike[:missed], 60, *alike[missed + 1 :]]), 80, 4, 128) is None
    few = [20 if block in sampled else 5 for block in range(1024)]
    assert parts_of(uneven(few), 80, 4, 128) is None
    # A few per cent are doubts.
    some = [20 if block in sampled else 19 for block in range(1024)]
    doubt = 20 / np.mean(some) - 1
    assert parts_of(uneven(some), 80, 4, 128)[0].uneven == pytest.approx(doubt, rel=0.05)
    # Of a trace of a sample the others are not known.
    assert parts_of(sample_of(uneven(few), 256), 80, 4, 128)[0].uneven == 0


@pytest.mark.parametrize("name", ws.gpus())
def test_parts_of_every_gpu(name):
    gpu = ws.gpu(name)
    for num_sms in {1, 2, 3, gpu.num_sms // 8, gpu.num_sms // 3, gpu.num_sms} - {0}:
        part = part_of(gpu, num_sms, num_sms / gpu.num_sms)
        share = num_sms / gpu.num_sms
        assert part.num_sms == num_sms
        assert part.noc_bandwidth_gbs == pytest.approx(gpu.noc_bandwidth_gbs * share)
        assert part.dram_bandwidth_gbs == pytest.approx(gpu.dram_bandwidth_gbs * share)
        # What all slices serve together is in proportion.
        requests = part.l2_slices / part.l2_slice_request_cycles
        assert requests == pytest.approx(gpu.l2_slices / gpu.l2_slice_request_cycles * share)
        assert part.l2_slices * part.l2_slice_bytes_per_cycle == pytest.approx(
            gpu.l2_slices * gpu.l2_slice_bytes_per_cycle * share
        )
        unit = part.l2_line_bytes * part.l2_ways * part.l2_slices / 1024
        assert abs(part.l2_size_kib - gpu.l2_size_kib * share) <= unit
    whole = part_of(gpu, gpu.num_sms, 1.0)
    assert whole.changes == {}
