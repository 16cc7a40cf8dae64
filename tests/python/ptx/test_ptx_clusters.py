"""Thread block clusters: positions, barriers, and each other's shared memory."""

import numpy as np
import pytest

import warpstack as ws
from ptx_forms import access_counts, at, compile_body, message_of, run

OUTSIDE = ".shared .align 128 .b8 data[256]; .shared .align 8 .b64 bar;"
SYNC = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"


def test_positions_by_hand():
    # Clusters of 2 x 2 in a grid of 4 x 2: block (3, 1) is (1, 1) in the cluster (1, 0), rank 3.
    names = ["cluster_ctaid.x", "cluster_ctaid.y", "cluster_ctarank", "clusterid.x", "clusterid.y",
             "nclusterid.x", "nclusterid.y", "cluster_nctaid.x", "cluster_nctarank"]  # fmt: skip
    body = (
        "mov.u32 %r20, %ctaid.y; mov.u32 %r21, %nctaid.x; mad.lo.u32 %r20, %r20, %r21, %i0;"
        + at("%l0", "%a0", "%r20", 4 * len(names))
        + "".join(
            f"mov.u32 %r0, %{name}; st.global.u32 [%l0+{4 * i}], %r0;"
            for i, name in enumerate(names)
        )
    )
    out = np.zeros(8 * len(names), np.uint32)
    (out,), _ = run(body, out, grid=(4, 2), block=1, cluster=(2, 2))
    found = out.reshape(8, -1).tolist()
    for number in range(8):
        x, y = number % 4, number // 4
        assert found[number] == [x % 2, y, x % 2 + 2 * y, x // 2, 0, 2, 1, 2, 4]


@pytest.mark.parametrize(
    ("grid", "cluster"), [(8, 4), ((2, 4), (1, 2)), ((2, 2, 2), (2, 1, 2)), (6, 2)]
)
@pytest.mark.parametrize("generic", [False, True])
def test_shared_memory_of_the_next_block(grid, cluster, generic):
    count = int(np.prod(cluster))
    map_address = (
        "cvta.shared.u64 %l5, %l4; mapa.u64 %l6, %l5, %r4; ld.u32 %r5, [%l6];"
        if generic
        else "cvt.u32.u64 %r7, %l4; mapa.shared::cluster.u32 %r6, %r7, %r4;"
        "ld.shared::cluster.u32 %r5, [%r6]; getctarank.shared::cluster.u32 %r8, %r6;"
    )
    body = (
        "mov.u32 %r10, %ctaid.y; mov.u32 %r11, %nctaid.x; mov.u32 %r12, %ctaid.z;"
        "mov.u32 %r13, %nctaid.y; mad.lo.u32 %r10, %r12, %r13, %r10; mad.lo.u32 %r10, %r10, %r11, %i0;"
        "mad.lo.u32 %r10, %r10, 32, %t; mov.u32 %r0, data; shl.b32 %r1, %t, 2; add.u32 %r1, %r1, %r0;"
        "mov.u32 %r2, %cluster_ctarank; st.shared.u32 [%r1], %r10;"
        + SYNC
        + f"add.u32 %r4, %r2, 1; rem.u32 %r4, %r4, {count}; cvt.u64.u32 %l4, %r1;"
        + map_address
        + SYNC
        + at("%l0", "%a0", "%r10", 4)
        + "st.global.u32 [%l0], %r5;"
    )
    blocks = int(np.prod(grid))
    (out,), _ = run(
        body, np.zeros(32 * blocks, np.uint32), grid=grid, outside=OUTSIDE, cluster=cluster
    )
    sizes, shape = (np.array((*np.atleast_1d(v), 1, 1)[:3]) for v in (grid, cluster))
    for number in range(blocks):
        index = np.array(
            [number % sizes[0], number // sizes[0] % sizes[1], number // (sizes[0] * sizes[1])]
        )
        own = index % shape
        rank = (own[0] + shape[0] * (own[1] + shape[1] * own[2]) + 1) % count
        next_one = (
            index
            - own
            + [rank % shape[0], rank // shape[0] % shape[1], rank // (shape[0] * shape[1])]
        )
        other = next_one[0] + sizes[0] * (next_one[1] + sizes[1] * next_one[2])
        np.testing.assert_array_equal(
            out[32 * number : 32 * number + 32], 32 * other + np.arange(32)
        )


def test_one_copy_for_all_blocks():
    one_copy_for_all_blocks("cp.async.bulk.shared::cluster")


def one_copy_for_all_blocks(copy):
    # Rank 0 loads 128 bytes into blocks 0 and 2 of four; their own barriers tell them.
    body = (
        "mov.u32 %r0, bar; mov.u32 %r1, data; setp.eq.u32 %p0, %t, 0; mov.u32 %r2, %cluster_ctarank;"
        "setp.eq.u32 %p1, %r2, 0; and.pred %p1, %p0, %p1; shl.b32 %r3, %t, 2; add.u32 %r3, %r3, %r1;"
        "mov.u32 %r4, 77; st.shared.u32 [%r3], %r4; and.b32 %r5, %r2, 1; setp.eq.u32 %p2, %r5, 0;"
        "@%p0 mbarrier.init.shared::cta.b64 [%r0], 1;"
        "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 128;" + SYNC + "mov.b16 %h0, 5;"
        "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%r1], [%a1], 128, [%r0], %h0;"
        "@!%p2 bra out; wait: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r0], 0; @!%p3 bra wait;\n"
        "out: ld.shared.u32 %r6, [%r3];"
        + at("%l0", "%a0", "%g", 4)
        + "st.global.u32 [%l0], %r6;"
        + SYNC
    )
    values = np.arange(32, dtype=np.uint32)
    (out, _), trace = run(
        body, np.zeros(128, np.uint32), values, grid=4, outside=OUTSIDE, cluster=4
    )
    expected = np.full((4, 32), 77)
    expected[0] = expected[2] = values
    np.testing.assert_array_equal(out.reshape(4, 32), expected)
    assert access_counts(trace, copy) == [4]


def test_arrival_in_another_block():
    # Rank 1 tells rank 0 that its value is there.
    body = (
        "mov.u32 %r0, bar; mov.u32 %r1, data; setp.eq.u32 %p0, %t, 0; mov.u32 %r2, %cluster_ctarank;"
        "@%p0 mbarrier.init.shared::cta.b64 [%r0], 32; fence.mbarrier_init.release.cluster;"
        + SYNC
        + "setp.eq.u32 %p1, %r2, 0; @%p1 bra first; shl.b32 %r3, %t, 2; add.u32 %r3, %r3, %r1;"
        "mapa.shared::cluster.u32 %r4, %r3, 0; mapa.shared::cluster.u32 %r5, %r0, 0;"
        "add.u32 %r6, %t, 500; st.shared::cluster.u32 [%r4], %r6;"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5]; bra out;"
        "first: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [%r0], 0; @!%p3 bra first;\n"
        "shl.b32 %r3, %t, 2; add.u32 %r3, %r3, %r1; ld.shared.u32 %r6, [%r3];"
        + at("%l0", "%a0", "%t", 4)
        + "st.global.u32 [%l0], %r6;\nout:"
        + SYNC
    )
    (out,), _ = run(body, np.zeros(32, np.uint32), grid=2, outside=OUTSIDE, cluster=2)
    np.testing.assert_array_equal(out, 500 + np.arange(32))


@pytest.mark.parametrize("kind", ["b32", "b64", "v2.b32", "v4.b32", "v2.b64"])
def test_stores_that_complete(kind):
    """Each block stores into the other one, whose barrier counts the bytes."""
    words = int(kind[-2:]) // 32 * int(kind[1] if kind[0] == "v" else 1)
    count = words if kind[-2:] == "32" else words // 2
    registers = [f"%{'r' if kind[-2:] == '32' else 'l'}{10 + i}" for i in range(count)]
    operand = registers[0] if count == 1 else "{" + ", ".join(registers) + "}"
    size = int(kind[-2:]) // 8
    body = (
        "mov.u32 %r0, bar; mov.u32 %r1, data; setp.eq.u32 %p0, %t, 0; mov.u32 %r2, %cluster_ctarank;"
        "@%p0 mbarrier.init.shared::cta.b64 [%r0], 1; fence.mbarrier_init.release.cluster;"
        f"@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], {32 * 4 * words};"
        + SYNC
        + f"mad.lo.u32 %r3, %t, {4 * words}, %r1; xor.b32 %r2, %r2, 1;"
        "mapa.shared::cluster.u32 %r4, %r3, %r2; mapa.shared::cluster.u32 %r5, %r0, %r2;"
        + at("%l0", "%a0", "%g", 4 * words)
        + "".join(f"ld.global.b{8 * size} {r}, [%l0+{size * i}];" for i, r in enumerate(registers))
        + f"st.async.shared::cluster.mbarrier::complete_tx::bytes.{kind} [%r4], {operand}, [%r5];\n"
        "wait: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [%r0], 0;"
        "@!%p3 bra wait;\n"
        + "".join(f"ld.shared.b{8 * size} {r}, [%r3+{size * i}];" for i, r in enumerate(registers))
        + "".join(f"st.global.b{8 * size} [%l0+{size * i}], {r};" for i, r in enumerate(registers))
        + SYNC
    )
    before = np.random.default_rng(3).integers(0, 2**32, 64 * words, dtype=np.uint32)
    outside = OUTSIDE.replace("data[256]", "data[512]")
    (out,), trace = run(body, before, grid=2, outside=outside, cluster=2)
    np.testing.assert_array_equal(out.reshape(2, -1), before.reshape(2, -1)[::-1])
    assert ws.simulate(trace, ws.gpu("h100-pcie")).cycles > 0


@pytest.mark.parametrize("atomic", ["add.f32", "add.f64", "add.u32", "exch.b64"])
def test_atomics_in_another_block(atomic):
    """Each block adds to a word of the next one; addresses say in which space they lie."""
    kind = atomic.split(".")[1]
    register = {"f32": "%f", "f64": "%d", "u32": "%r", "b64": "%l"}[kind]
    one = {"f32": "0f3F800000", "f64": "0d3FF0000000000000"}.get(kind, "1")
    queries = [("cta", 4), ("cluster", 4), ("cta", 2), ("cluster", 2)]
    body = (
        "mov.u32 %r0, data; setp.eq.u32 %p0, %t, 0; mov.u32 %r2, %cluster_ctarank;"
        f"mov.{kind} {register}5, {one}; cvt.u64.u32 %l1, %r0; cvta.shared.u64 %l2, %l1;"
        "mov.u64 %l3, 0; @%p0 st.u64 [%l2], %l3; xor.b32 %r3, %r2, 1;"
        + SYNC
        + f"mapa.u64 %l4, %l2, %r3; atom.{atomic} {register}6, [%l4], {register}5;"
        + SYNC
        + at("%l0", "%a0", "%i0", 24)
        + f"ld.{kind} {register}7, [%l2]; @%p0 st.global.{kind} [%l0], {register}7;"
        + "".join(
            f"isspacep.shared::{space} %p1, %l{pointer}; selp.u32 %r4, 1, 0, %p1;"
            f"@%p0 st.global.u32 [%l0+{8 + 4 * number}], %r4;"
            for number, (space, pointer) in enumerate(queries)
        )
    )
    (out,), _ = run(body, np.zeros(4 * 6, np.uint32), grid=4, outside=OUTSIDE, cluster=2)
    rows = out.reshape(4, 6)
    dtype = {"f32": np.float32, "f64": np.float64, "u32": np.uint32, "b64": np.uint64}[kind]
    values = rows[:, :2].copy().view(dtype)[:, 0]
    assert values.tolist() == [1 if atomic == "exch.b64" else 32] * 4
    assert rows[:, 2:].tolist() == [[0, 1, 1, 1]] * 4


def test_the_kernel_asks_for_clusters():
    body = (
        "mov.u32 %r0, %cluster_nctarank;" + at("%l0", "%a0", "%g", 4) + "st.global.u32 [%l0], %r0;"
    )
    directives = ".explicitcluster .reqnctapercluster 2, 1, 1"
    (out,), _ = run(body, np.zeros(4, np.uint32), grid=4, block=1, directives=directives)
    assert out.tolist() == [2] * 4
    assert "which is not a multiple of the cluster's 2" in message_of(
        body, np.zeros(4, np.uint32), grid=3, block=1, directives=directives
    )


def test_mistakes():
    zeros = np.zeros(32, np.uint32)
    declare = {"outside": OUTSIDE, "grid": 2, "cluster": 2}
    far = "mov.u32 %r0, data; mapa.shared::cluster.u32 %r1, %r0, {}; ld.shared::cluster.u32 %r2, [%r1];"
    assert "of rank 5 in the cluster, which has 2 blocks" in message_of(
        far.format(5), zeros, **declare
    )
    wait = "mov.u32 %r2, %cluster_ctarank; setp.eq.u32 %p0, %r2, 0; @%p0 bra out;" + SYNC
    wait += "out: mov.u32 %r0, bar; setp.eq.u32 %p1, %t, 0; @%p1 mbarrier.init.shared.b64 [%r0], 1;"
    wait += "bar.warp.sync -1; again: mbarrier.try_wait.parity.shared.b64 %p2, [%r0], 0; @!%p2 bra again;"
    message = message_of(wait, zeros, **declare)
    assert "deadlock" in message
    device = ws.cuda.Device(0.25)
    module = compile_body("", 0, device=device)
    with pytest.raises(ws.errors.InputError, match="a cluster of 4 x 4 x 2 blocks is too large"):
        module.kernel("k").launch((4, 4, 2), 32, cluster=(4, 4, 2))


#: Makes addresses of shared variables those of the cluster; never executed.
OF_PAIRS = "setp.ne.u32 %p7, %t, %t; @%p7 tcgen05.shift.cta_group::2.down [%t];"


@pytest.mark.parametrize("blocks", [1, 4])
def test_own_shared_memory_where_addresses_have_ranks(blocks):
    """Loads, stores and atomics of both spaces, mapa and questions, and a function's own variable."""
    outside = OUTSIDE + (
        ".func (.param .u32 r) address() { .reg .b32 %x; mov.u32 %x, data; st.param.u32 [r], %x; ret; }"
    )
    body = (
        OF_PAIRS
        + "mov.u32 %r0, data; shl.b32 %r1, %t, 2; add.u32 %r2, %r0, %r1; mov.u64 %l2, data;"
        "cvta.shared.u64 %l3, %l2; cvt.u64.u32 %l4, %r1; add.u64 %l3, %l3, %l4;"
        "mov.u32 %r3, %cluster_ctarank; mad.lo.u32 %r4, %r3, 1000, %t;"
        "st.shared.u32 [%r2], %r4; ld.u32 %r5, [%l3]; add.u32 %r5, %r5, 1; st.u32 [%l3], %r5;"
        "atom.shared.add.u32 %r6, [%r2], 1; atom.add.u32 %r6, [%l3], 1; bar.sync 0;"
        "ld.shared.u32 %r7, [data]; ld.shared.u32 %r8, [%r2]; add.u32 %r8, %r8, %r7;"
        "isspacep.shared::cta %p0, %l3; @!%p0 add.u32 %r8, %r8, 100000;"
        "getctarank.shared::cluster.u32 %r9, %r2; sub.u32 %r9, %r9, %r3;"
        "mad.lo.u32 %r8, %r9, 200000, %r8;"
        ".param .u32 found; call (found), address, (); ld.param.u32 %r10, [found];"
        "sub.u32 %r10, %r10, %r0; mad.lo.u32 %r8, %r10, 300000, %r8;"
        f"add.u32 %r11, %r3, 1; rem.u32 %r11, %r11, {blocks}; mapa.shared::cluster.u32 %r12, %r2, %r11;"
        f"mapa.u64 %l5, %l3, %r11; {SYNC} ld.shared::cluster.u32 %r13, [%r12]; ld.u32 %r14, [%l5];"
        f"{SYNC} mad.lo.u32 %r13, %r13, 1000, %r14; "
        + at("%l0", "%a0", "%g", 8)
        + "st.global.v2.u32 [%l0], {%r8, %r13};"
    )
    out, _ = run(body, np.zeros(64 * blocks, np.uint32), grid=blocks, cluster=blocks, outside=outside,
                 check_races=True)  # fmt: skip
    rank, thread = np.divmod(np.arange(32 * blocks), 32)
    value = 1000 * rank + thread + 3
    beside = 1000 * ((rank + 1) % blocks) + thread + 3
    expected = np.stack([value + 1000 * rank + 3, 1001 * beside], axis=1)
    np.testing.assert_array_equal(out[0].reshape(-1, 2), expected)


@pytest.mark.parametrize(("of", "blocks"), [("", 1), ("", 2), (".multicast::cluster::all", 4)])
def test_no_cluster_is_left_to_cancel(of, blocks):
    """All blocks begin, so the answer is that there is none; it has 16 bytes in each block."""
    outside = OUTSIDE + ".shared .align 16 .b8 answer[16];"
    asks = "setp.eq.and.u32 %p2, %r1, 0, %p0;" if of else "mov.pred %p2, %p0;"
    body = (
        ".reg .b128 %q; setp.eq.u32 %p0, %t, 0; mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, answer;"
        f"mov.u32 %r3, bar; @%p0 mbarrier.init.shared.b64 [%r3], 1; bar.sync 0; {asks}"
        f"@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 16; {SYNC}"
        "@%p2 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
        f"{of}.b128 [%r2], [%r3];"
        "wait: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r3], 0; @!%p1 bra wait;"
        "ld.shared.b128 %q, [%r2]; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q;"
        "selp.u32 %r4, 1, 2, %p3; mov.u32 %r5, 7;"
        "@%p3 clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r5, %q;"
        + at("%l0", "%a0", "%g", 8)
        + f"st.global.v2.u32 [%l0], {{%r4, %r5}}; {SYNC}"
    )
    out, _ = run(
        body, np.zeros(64 * blocks, np.uint32), grid=blocks, cluster=blocks, outside=outside
    )
    assert out[0].reshape(-1, 2).tolist() == [[2, 7]] * (32 * blocks)


def test_registers_of_128_bits():
    """Loads, stores and moves, and the words of an answer."""
    body = (
        ".reg .b128 %q, %s; " + at("%l0", "%a0", "%g", 16) + at("%l1", "%a1", "%g", 16) +
        at("%l2", "%a2", "%g", 16) + "ld.global.b128 %q, [%l0]; mov.b128 {%l3, %l4}, %q;"
        "mov.b128 %s, {%l4, %l3}; mov.b128 %q, %s; st.global.b128 [%l1], %q;"
        "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p0, %q; selp.u32 %r3, 1, 0, %p0;"
        "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r0, %r1, %r2, _}, %q;"
        "st.global.v4.u32 [%l2], {%r0, %r1, %r2, %r3};"
    )  # fmt: skip
    rng = np.random.default_rng(0)
    words = rng.integers(0, 2**32, (32, 4), dtype=np.uint32)
    words[::2, 1] = 0
    (_, out, parts), _ = run(body, words.reshape(-1), *(np.zeros(128, np.uint32) for _ in range(2)))
    swapped = words[:, [2, 3, 0, 1]]
    np.testing.assert_array_equal(out.reshape(32, 4), swapped)
    parts = parts.reshape(32, 4)
    np.testing.assert_array_equal(parts[:, :3], swapped[:, :3])
    np.testing.assert_array_equal(parts[:, 3], swapped[:, 3] != 0)
    assert "no 128-bit register" in message_of(".reg .b128 %q; mov.b128 %q, %l0;")
    assert "128-bit registers are not supported here" in message_of(
        ".reg .b128 %q; add.u64 %l0, %l0, %q;"
    )
