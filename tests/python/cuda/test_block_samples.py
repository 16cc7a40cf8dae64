"""Launches that record a sample of their blocks: these are the blocks of the whole trace."""

import inspect
import json

import numpy as np
import pytest

import warpstack as ws
from effort import rounds
from ptx_forms import at, run
from python_reference import block_sample as reference
from warpstack.cli import main
from warpstack.errors import InputError

#: Thread g adds g to the cell from[g] and puts the sum to the same cell, in a loop of as many rounds as
#: block and warp say.
BODY = (
    at("%l0", "%a1", "%g", 4)
    + "ld.global.u32 %r0, [%l0];"
    + at("%l0", "%a0", "%r0", 4)
    + "mov.u32 %r3, %ctaid.x; shr.u32 %r4, %t, 5; add.u32 %r3, %r3, %r4; rem.u32 %r3, %r3, 3;\n"
    "again: ld.global.u32 %r1, [%l0]; add.u32 %r1, %r1, %g; st.global.u32 [%l0], %r1;"
    "sub.u32 %r3, %r3, 1; setp.ge.s32 %p0, %r3, 0; @%p0 bra again;\n"
)
#: Block b waits until block b + 1 has set its flag: all blocks take turns. Then thread 0 sets b's.
CHAIN = (
    "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %nctaid.x; add.u32 %r4, %r2, 1;"
    + at("%l1", "%a0", "%r4", 4)
    + "setp.eq.u32 %p0, %r4, %r3; @%p0 bra on;\n"
    "wait: ld.volatile.global.u32 %r5, [%l1]; setp.eq.u32 %p1, %r5, 0; @%p1 bra wait;\n"
    "on: setp.ne.u32 %p2, %t, 0; @%p2 bra end;"
    + at("%l2", "%a0", "%r2", 4)
    + "add.u32 %r6, %r2, 5; st.volatile.global.u32 [%l2], %r6;\nend:"
)


@pytest.fixture
def short_shares(short_shares):
    short_shares(30)
    return short_shares


def warps_of(trace):
    """Return by block number the columns of each warp, instructions as text."""
    rows = trace.instructions
    names = [f"{row.pc} {row.opcode} {row.space}" for row in rows.itertuples()]
    found = {}
    for position, (number, warps) in enumerate(trace.blocks()):
        found[number] = []
        for warp in range(len(warps)):
            columns = {key: values.tolist() for key, values in trace.warp(position, warp).items()}
            for key in ("instruction", "memory_static"):
                columns[key] = [names[row] for row in columns[key]]
            found[number].append(columns)
    return found


def expect_sample(trace, whole, one_in):
    num_blocks = whole.num_blocks
    chosen = reference.sampled_blocks(num_blocks, reference.sample_size(num_blocks, one_in))
    assert (trace.grid, trace.num_blocks) == (whole.grid, num_blocks)
    assert trace.num_missing_blocks == num_blocks - len(chosen)
    every = warps_of(whole)
    assert warps_of(trace) == {number: every[number] for number in chosen}


def test_random_launches(short_shares):
    rng = np.random.default_rng(3)
    for case in range(rounds(12)):
        blocks = int(rng.integers(256, 700))
        own = np.arange(64 * blocks, dtype=np.uint32)
        others = rng.integers(0, len(own), len(own), dtype=np.uint32)
        source = np.where(rng.random(len(own)) < rng.choice([0, 0.001, 0.02]), others, own)
        cells = rng.integers(0, 2**32, len(own), dtype=np.uint32)
        one_in = int(rng.choice([2, 3, 8, 1000]))
        given = {"grid": blocks, "block": 64}
        (expected, _), whole = run(BODY, cells, source, workers=1, **given)
        digests = set()
        for workers, ahead in ((1, 30), (2, 1), (2, 400), (3, 3000)):
            short_shares(ahead)
            (got, _), trace = run(
                BODY, cells, source, workers=workers, sample_blocks=one_in, **given
            )
            assert np.array_equal(got, expected), case
            digests.add(trace.digest)
            expect_sample(trace, whole, one_in)
        assert len(digests) == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_blocks_in_turns(short_shares, workers):
    given = {"grid": 300, "block": 64, "workers": workers}
    (expected,), whole = run(CHAIN, np.zeros(301, np.uint32), **given)
    (flags,), trace = run(CHAIN, np.zeros(301, np.uint32), sample_blocks=8, **given)
    assert np.array_equal(flags[:300], np.arange(5, 305))
    assert np.array_equal(flags, expected)
    expect_sample(trace, whole, 8)


def test_spaces_that_only_some_blocks_reach(short_shares):
    # Generic loads of shared memory in even runs of 16 blocks, of global memory in others.
    body = (
        "mov.u32 %r0, %ctaid.x; shr.u32 %r0, %r0, 4; and.b32 %r0, %r0, 1; setp.eq.u32 %p0, %r0, 0;"
        "mov.u32 %r1, held; st.shared.u32 [%r1], %g; cvta.shared.u64 %l0, held; bar.sync 0;"
        + at("%l1", "%a0", "%g", 4)
        + "selp.b64 %l2, %l0, %l1, %p0; ld.u32 %r2, [%l2]; st.global.u32 [%l1], %r2;"
    )
    given = {"grid": 600, "block": 32, "outside": ".shared .align 4 .b8 held[4];"}
    zeros = np.zeros(32 * 600, np.uint32)
    _, whole = run(body, zeros, workers=1, **given)
    for workers in (1, 2):
        _, trace = run(body, zeros, sample_blocks=4, workers=workers, **given)
        expect_sample(trace, whole, 4)


@pytest.mark.parametrize("workers", [1, 2])
def test_others_do_not_run(short_shares, workers):
    blocks = 500
    cells = np.full(64 * blocks, 7, np.uint32)
    source = np.arange(64 * blocks, dtype=np.uint32)
    given = {"grid": blocks, "block": 64, "workers": workers}
    (expected, _), whole = run(BODY, cells, source, **given)
    (got, _), trace = run(BODY, cells, source, sample_blocks=3, run_others=False, **given)
    runs = np.zeros(blocks, bool)
    runs[reference.sampled_blocks(blocks, reference.sample_size(blocks, 3))] = True
    assert 0 < runs.sum() < blocks
    runs = np.repeat(runs, 64)
    assert np.array_equal(got, np.where(runs, expected, 7))
    assert np.any(expected[~runs] != 7)
    expect_sample(trace, whole, 3)


ATOMIC = at("%l0", "%a0", "%t", 4) + "red.{}add.u32 [%l0], 1;"


@pytest.mark.parametrize(
    ("body", "options", "why"),
    [
        (
            ATOMIC.format("global."),
            {},
            r"has an atomic operation on global memory \(PTX line \d+, red",
        ),
        (ATOMIC.format(""), {}, "has an atomic operation on global memory"),
        ("ret;", {"cooperative": True}, "blocks of a cooperative launch wait for each other"),
        ("mov.b32 %r0, %envreg2;", {}, "it synchronizes its grid"),
    ],
)
def test_others_that_may_be_missed(body, options, why):
    zeros = np.zeros(64, np.uint32)
    given = {"grid": 300, "block": 64, "sample_blocks": 8, **options}
    begin = "kernel k: run_others = False would leave out 172 of its 300 blocks, and "
    with pytest.raises(InputError, match=f"{begin}.*{why}.*; let all blocks run"):
        run(body, zeros, run_others=False, **given)
    if "envreg" not in body:
        missing = 0 if options else 172
        assert run(body, zeros, **given)[1].num_missing_blocks == missing
    # Nobody would be left out.
    assert run(body, zeros, run_others=False, **{**given, "grid": 7})[1].num_missing_blocks == 0


#: Tiles from a queue: thread 0 takes the next number until it is beyond the last tile, and its block works
#: for as many rounds as the tile says. It counts its tiles.
QUEUE = (
    "mov.u32 %r9, 0; mov.u32 %r8, slot;\n"
    "next: setp.eq.u32 %p0, %t, 0; @%p0 atom.global.add.u32 %r0, [%a0], 1;"
    "@%p0 st.shared.u32 [%r8], %r0; bar.sync 0; ld.shared.u32 %r1, [%r8]; bar.sync 0;"
    "ld.global.u32 %r2, [%a1]; setp.ge.u32 %p1, %r1, %r2; @%p1 bra done;"
    "rem.u32 %r3, %r1, 7; add.u32 %r3, %r3, 20;\n"
    "work: sub.u32 %r3, %r3, 1; setp.gt.s32 %p2, %r3, 0; @%p2 bra work;"
    "add.u32 %r9, %r9, 1; bra next;\ndone:"
    + at("%l2", "%a2", "%i0", 4)
    + "st.global.u32 [%l2], %r9;"
)


@pytest.mark.parametrize(
    ("blocks", "tiles", "one_in"), [(132, 2000, 4), (132, 1000, 8), (66, 300, 4)]
)
def test_a_queue_gives_each_block_of_a_sample_its_share(blocks, tiles, one_in):
    """Blocks that do not run take the tiles of their share, so that those that do get theirs."""
    numbers = (np.zeros(1, np.uint32), np.array([tiles], np.uint32), np.zeros(blocks, np.uint32))
    given = {"grid": blocks, "block": 64, "outside": ".shared .b32 slot;"}
    (_, _, of_whole), whole = run(QUEUE, *numbers, **given)
    (last, _, found), trace = run(QUEUE, *numbers, sample_blocks=one_in, run_others=False, **given)
    size = reference.sample_size(blocks, one_in, are_persistent=True)
    runs = reference.sampled_blocks(blocks, size)
    assert trace.is_sampled
    assert trace.num_missing_blocks == blocks - size
    assert not found[[block for block in range(blocks) if block not in runs]].any()
    assert of_whole.sum() == tiles
    assert abs(found.sum() - tiles * size / blocks) <= 1
    assert found[runs].max() - found[runs].min() <= 2
    # Each block asks once in vain.
    assert abs(int(last[0]) - (tiles + blocks)) <= blocks / size
    share = trace.num_instructions / whole.num_instructions
    assert share == pytest.approx(size / blocks, rel=0.03)


def test_the_last_block_of_a_sample_is_the_last_of_all():
    """Who gets the last number has come last, as in a reduction whose last block adds up all sums."""
    body = (
        "setp.ne.u32 %p0, %t, 0; @%p0 bra end; mov.u32 %r2, %nctaid.x; sub.u32 %r2, %r2, 1;"
        "atom.global.add.u32 %r0, [%a0], 1; setp.ne.u32 %p1, %r0, %r2; @%p1 bra end;"
        "atom.global.add.u32 %r1, [%a1], 5;\nend:"
    )
    numbers = (np.zeros(1, np.uint32), np.zeros(1, np.uint32))
    for blocks, one_in in [(700, 3), (1000, 7), (132, 5)]:
        (count, once), trace = run(
            body, *numbers, grid=blocks, block=32, sample_blocks=one_in, run_others=False
        )
        assert trace.num_missing_blocks > 0
        assert count[0] == blocks
        # All others of the sample's block would have been there, too.
        assert once[0] > 0


def test_a_sample_of_clusters():
    body = (
        "mov.u32 %r0, %cluster_ctarank;" + at("%l0", "%a0", "%i0", 4) + "st.global.u32 [%l0], %r0;"
    )
    body += "barrier.cluster.arrive; barrier.cluster.wait;"
    (got,), trace = run(
        body,
        np.full(264, 9, np.uint32),
        grid=264,
        block=32,
        cluster=4,
        sample_blocks=2,
        run_others=False,
    )
    blocks = reference.sampled_blocks(264, 132, 4)
    assert trace.cluster == (4, 1, 1)
    assert trace.is_sampled
    assert [number for number, _ in trace.blocks()] == blocks
    expected = np.full(264, 9)
    expected[blocks] = np.array(blocks) % 4
    assert got.tolist() == expected.tolist()


def test_a_launch_of_a_kernel_is_refused():
    outside = (
        ".extern .func (.param .b64 r) cudaGetParameterBuffer"
        " (.param .b64 a, .param .b64 b);\n"
        ".extern .func (.param .b32 r) cudaLaunchDeviceV2 (.param .b64 a, .param .b64 b);\n"
    )
    body = (
        "setp.ne.u32 %p0, %g, 12345678; @%p0 ret; mov.u64 %l0, 0;"
        "{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %l0; st.param.b64 [b], %l0;"
        "call.uni (r), cudaLaunchDeviceV2, (a, b); ld.param.b32 %r1, [r]; }"
    )
    zeros = np.zeros(1, np.uint32)
    given = {"grid": 300, "outside": outside, "sample_blocks": 8}
    assert run(body, zeros, **given)[1].num_missing_blocks == 172
    with pytest.raises(InputError, match=r"has a launch of a kernel \(PTX line \d+"):
        run(body, zeros, run_others=False, **given)


def test_atomics_on_shared_memory_are_no_reason():
    body = (
        "mov.u32 %r1, held; st.shared.u32 [%r1], 0; bar.sync 0; red.shared.add.u32 [%r1], 1;"
        "bar.sync 0; ld.shared.u32 %r2, [%r1];" + at("%l0", "%a0", "%g", 4)
        + "st.global.u32 [%l0], %r2;"
    )  # fmt: skip
    given = {"grid": 300, "block": 64, "outside": ".shared .align 4 .b8 held[4];"}
    (got,), trace = run(
        body, np.zeros(64 * 300, np.uint32), sample_blocks=4, run_others=False, **given
    )
    assert np.bincount(got).nonzero()[0].tolist() == [0, 64]
    assert trace.num_missing_blocks == 172


def test_a_deadlock_says_that_others_did_not_run():
    with pytest.raises(InputError, match=r"deadlock: .*172 blocks .*not in the sample do not run"):
        run(CHAIN, np.zeros(301, np.uint32), grid=300, sample_blocks=8, run_others=False)


def test_the_automatic_sample():
    zeros = np.zeros(1, np.uint32)
    for blocks, recorded in ((255, 255), (1024, 1024), (1025, 513), (5000, 1000), (40000, 2500)):
        _, trace = run("ret;", zeros, grid=blocks, sample_blocks="auto")
        assert trace.num_blocks - trace.num_missing_blocks == recorded


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "all", None, 2**63])
def test_wrong_values(value):
    with pytest.raises(InputError, match="sample_blocks"):
        run("ret;", np.zeros(1, np.uint32), sample_blocks=value)
    with pytest.raises(InputError, match="sample_blocks"):
        ws.workloads.load("hotspot", sample_blocks=value)
    with pytest.raises(InputError, match="sample_blocks"):
        ws.cuda.host.trace_program(["/bin/true"], "unused", sample_blocks=value)


def test_others_without_a_trace():
    with pytest.raises(InputError, match=r"run_others = False: .*trace is False"):
        run("ret;", np.zeros(1, np.uint32), run_others=False, trace=False)


def test_saved_and_loaded_again(tmp_path):
    source = np.arange(64 * 400, dtype=np.uint32)
    _, trace = run(BODY, source, source, grid=400, block=64, sample_blocks=8)
    ws.save(trace, tmp_path / "saved")
    (back,) = ws.load(tmp_path / "saved")
    assert back.num_missing_blocks == trace.num_missing_blocks == 272
    assert back.digest == trace.digest
    assert warps_of(back) == warps_of(trace)


def test_workloads_and_the_command(tmp_path, capsys):
    whole = ws.workloads.load("backprop")
    app = ws.workloads.load("backprop", sample_blocks=4)
    assert any(k.num_missing_blocks for k in app)
    for part, launch in zip(app, whole, strict=True):
        expect_sample(part, launch, 4)
    saved = tmp_path / "saved"
    command = ["trace", "--workload", "backprop", "-o", str(saved), "--sample-blocks", "4"]
    assert main(command) == 0
    assert [k.digest for k in ws.load(saved)] == [k.digest for k in app]
    capsys.readouterr()
    assert main(["info", str(saved), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["missing_blocks"] for row in rows] == [k.num_missing_blocks for k in app]
    assert main([*command, "--overwrite", "--sample-blocks", "0"]) == 2
    assert "sample_blocks = 0 is outside 1 to" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*command, "--overwrite", "--sample-blocks", "few"])
    assert "neither a whole number such as 8 nor auto" in capsys.readouterr().err


def test_all_that_launches_takes_both():
    for launch in (
        ws.cuda.Kernel.launch,
        ws.triton.launch,
        ws.triton.TritonKernel.launch,
        ws.numba.launch,
        ws.numba.NumbaKernel.launch,
    ):
        parameters = inspect.signature(launch).parameters
        assert (parameters["sample_blocks"].default, parameters["run_others"].default) == (1, True)
