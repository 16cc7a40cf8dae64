"""cp.async.bulk and cp.async.bulk.tensor: blocks of bytes and tiles of tensors, against NumPy."""

import numpy as np
import pytest

import warpstack as ws
from effort import rounds
from ptx_forms import access_counts, compile_body, message_of, run
from warpstack.errors import InputError

SHARED = 32768
OUTSIDE = f".shared .align 1024 .b8 data[{SHARED}]; .shared .align 8 .b64 bar;"
START = (
    "mov.u32 %r0, bar; mov.u32 %r1, data; setp.eq.u32 %p0, %t, 0;"
    "@%p0 mbarrier.init.shared::cta.b64 [%r0], 1; bar.sync 0;"
)
WAIT = "wait: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r0], 0; @!%p1 bra wait;\n"
#: All words of the tile's memory to the array %a0.
SHOW = """
mov.u32 %r20, %t; setp.lt.u32 %p2, %r20, %r30; @!%p2 bra shown;
show: shl.b32 %r21, %r20, 2; add.u32 %r22, %r21, %r1; ld.shared.u32 %r23, [%r22];
cvt.u64.u32 %l20, %r21; add.u64 %l20, %l20, %a0; st.global.u32 [%l20], %r23;
add.u32 %r20, %r20, 32; setp.lt.u32 %p2, %r20, %r30; @%p2 bra show;
shown:
"""


def test_bytes_there_and_back():
    body = (
        START
        + """
    @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 64;
    @%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
    [%r1], [%a0+32], 64, [%r0];
    """
        + WAIT
        + """
    fence.proxy.async; @%p0 cp.async.bulk.global.shared::cta.bulk_group [%a1+16], [%r1], 48;
    @%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group.read 0;
    """
    )
    source = np.arange(64, dtype=np.uint32)
    (_, out), trace = run(body, source, np.zeros(32, np.uint32), outside=OUTSIDE)
    expected = np.zeros(32, np.uint32)
    expected[4:16] = source[8:20]
    np.testing.assert_array_equal(out, expected)
    # 64 bytes from byte 32 of an array are sectors 1 and 2; 48 bytes from byte 16 are 0 and 1.
    assert access_counts(trace, "cp.async.bulk.shared") == [2]
    assert access_counts(trace, "cp.async.bulk.global") == [2]
    rows = trace.instructions
    is_copy = rows.opcode.str.startswith("cp.async.bulk.") & (rows.op_class == "memory")
    issued = set(trace.warp(0, 0)["instruction"].tolist())
    kinds = {rows.kind[row] for row in rows.index[is_copy] if row in issued}
    assert kinds == {"async_copy", "store"}


def test_reduction():
    body = (
        "mov.u32 %r1, data; shl.b32 %r2, %t, 2; add.u32 %r2, %r2, %r1; st.shared.u32 [%r2], %t;"
        "bar.sync 0; setp.eq.u32 %p0, %t, 0; fence.proxy.async;"
        "@%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%a0], [%r1], 128;"
    )
    (out,), _ = run(body, np.full(32, 100, np.uint32), outside=OUTSIDE)
    np.testing.assert_array_equal(out, 100 + np.arange(32))


def test_wrong_copies():
    copy = START + "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
    options = {"outside": OUTSIDE}
    message = message_of(copy + "[%r1], [%a0], 20, [%r0];", **options)
    assert "a number of bytes, 0x14, is not a multiple of 16" in message
    message = message_of(copy + "[%r1], [%a0+4], 32, [%r0];", **options)
    assert "is not a multiple of 16" in message
    message = message_of(copy + "[%r1], [%a0+112], 32, [%r0];", **options)
    assert "out-of-bounds copy of 16 bytes" in message


#: A barrier for one arrival, and what copies 16 bytes that it announces.
COPY = "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%a0], 16, [%r0];"


def test_bytes_that_no_phase_expects():
    """An arrival without bytes ends the phase before the copy comes: nobody waits for the copy."""
    early = START + "@%p0 mbarrier.arrive.shared::cta.b64 _, [%r0];" + COPY
    values = np.arange(32, dtype=np.uint32)
    options = {"outside": OUTSIDE}
    for rest in ("", WAIT):
        message = message_of(early + rest, values, **options)
        assert message.startswith("kernel k (PTX line N, cp.async.bulk.shared::cluster.global")
        assert (
            "the block ends, and copies have brought the mbarrier at 0x8000 16 bytes more than it "
            "expects (mbarrier.arrive.expect_tx says how many, before the phase ends)" in message
        )
    message = message_of(
        early + WAIT + "@%p0 mbarrier.inval.shared::cta.b64 [%r0];", values, **options
    )
    assert "the mbarrier at 0x8000 is invalidated, and copies have brought it 16 bytes" in message
    # Expected in the next phase they are in order, and before the arrival of this one.
    run(early + "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 16;", values, **options)
    run(
        START + COPY + "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 16;",
        values,
        **options,
    )


def test_a_deadlock_says_how_many_bytes_are_too_many():
    message = message_of(
        START + COPY + "@%p0 mbarrier.arrive.shared::cta.b64 _, [%r0];" + WAIT, outside=OUTSIDE
    )
    assert (
        "deadlock: all warps that have not finished wait: warp 0 at mbarrier at 0x8000, whose phase "
        "waits for 0 arrivals; copies have brought it 16 bytes more than it expects" in message
    )


LOAD = "ld.shared.u32 %r5, [%r1];"
EXPECT = "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 16;"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        # A thread that waits at the mbarrier comes after the copy, also through a barrier of the block.
        (EXPECT + COPY + WAIT + LOAD, None),
        (EXPECT + COPY + "@!%p4 bra past;" + WAIT + "past: bar.sync 0;" + LOAD, None),
        # A barrier of the block alone does not wait for it, not even in the thread that began it.
        (EXPECT + COPY + "bar.sync 0;" + LOAD, "read-write race between warp 0 and a bulk copy"),
        (EXPECT + COPY + "bar.sync 0; @%p0 " + LOAD, "waits for the copy (wait at its mbarrier)"),
        # Another mbarrier does not order them either.
        (
            "@%p0 mbarrier.init.shared::cta.b64 [%r0+8], 1; bar.sync 0;"
            "@%p0 mbarrier.arrive.shared::cta.b64 _, [%r0+8];" + EXPECT + COPY
            + WAIT.replace("[%r0]", "[%r0+8]") + LOAD,
            "a bulk copy",
        ),
        # A read before the copy is ordered by a barrier, or not.
        (LOAD + "bar.sync 0;" + EXPECT + COPY + WAIT, None),
        ("@%p5 " + LOAD + EXPECT + COPY + WAIT, "race between a bulk copy and warp 1"),
        # Another copy into the same place, before somebody has waited for the first.
        (
            "@%p0 mbarrier.init.shared::cta.b64 [%r0+8], 1; bar.sync 0;" + EXPECT + COPY
            + (EXPECT + COPY).replace("[%r0]", "[%r0+8]").replace("[%a0]", "[%a0+16]") + WAIT,
            "write-write race between a bulk copy and a bulk copy",
        ),
    ],
)  # fmt: skip
def test_races_of_copies(body, found):
    body = START + "setp.lt.u32 %p4, %t, 32; setp.ge.u32 %p5, %t, 32;\n" + body
    options = {
        "outside": OUTSIDE.replace(".b64 bar", ".b64 bar[2]"),
        "block": 64,
        "check_races": True,
        "check_uninitialized": False,
    }
    values = np.arange(1, 33, dtype=np.uint32)
    if found is None:
        run(body, values, **options)
    else:
        assert found in message_of(body, values, **options)


def test_a_map_of_an_array_that_was_freed():
    device = ws.cuda.Device(0.25)
    first, gone = device.empty(1024), device.array(np.zeros((8, 16), np.float32))
    described = ws.cuda.tensor_map(gone, (4, 8))
    text = (
        ".version 8.3\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .align 64 .b8 map[128]) { .reg .b64 %l<2>; .reg .b32 %r<3>;"
        f"{OUTSIDE} mov.b64 %l0, map; cvta.param.u64 %l1, %l0; mov.u32 %r0, bar; mov.u32 %r1, data;"
        "mbarrier.init.shared::cta.b64 [%r0], 1; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 128;"
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%r1], [%l1, {0, 0}], [%r0]; ret; }"
    )
    kernel = ws.cuda.compile(text, device=device).kernel("k")
    kernel.launch(1, 1, described)
    del first, gone  # parameters of the kernel will lie where the first was
    with pytest.raises(
        InputError, match=r"the tensor map at .* describes a tensor at .*: no array is there \(one"
    ):
        kernel.launch(1, 1, described)


def tile_of(array, start, box, steps, fill):
    """Return the tile of an array from `start` on, all dimensions outermost first."""
    result = np.full([-(-b // s) for b, s in zip(box, steps, strict=True)], fill, array.dtype)
    for index in np.ndindex(result.shape):
        place = tuple(f + i * s for f, i, s in zip(start, index, steps, strict=True))
        if all(0 <= p < n for p, n in zip(place, array.shape, strict=True)):
            result[index] = array[place]
    return result


def swizzled(data, swizzle, size=16):
    """Return bytes of shared memory with the pieces of each pattern exchanged."""
    if swizzle == 0:
        return data
    rows = data.reshape(-1, swizzle // size, size)
    shift = {128: 1, 64: 2, 32: 4}[swizzle]
    result = np.empty_like(rows)
    for r in range(len(rows)):
        for piece in range(swizzle // size):
            result[r, piece ^ r % 8 // shift % (128 // size)] = rows[r, piece]
    return result.reshape(-1)


def load_tile(array, start, box, **options):
    """Load a tile by a kernel. Return its bytes of shared memory, and the trace."""
    device = ws.cuda.Device(0.25)
    rank = len(box)
    itemsize = 1 if options.get("element") == "uint8" else array.itemsize
    bytes_of_tile = int(
        itemsize
        * np.prod(
            [
                -(-b // s)
                for b, s in zip(box, options.get("element_strides", [1] * rank), strict=True)
            ]
        )
    )
    coordinates = ", ".join(str(c) for c in reversed(start))
    body = (
        START
        + f"""
    mov.b64 %l0, map; cvta.param.u64 %l0, %l0; prefetch.tensormap [%l0];
    mov.u32 %r30, {bytes_of_tile // 4};
    @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], {bytes_of_tile};
    @%p0 cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes
    [%r1], [%l0, {{{coordinates}}}], [%r0];
    """
        + WAIT
        + SHOW
    )
    module = compile_body(
        body, 1, outside=OUTSIDE, device=device, parameters=".param .align 64 .b8 map[128]"
    )
    out = device.zeros(bytes_of_tile // 4, np.uint32)
    held = device.array(array)
    tensor = ws.cuda.tensor_map(held, box, **options)
    trace = module.kernel("k").launch(1, 32, out, tensor)
    return out.to_host().view(np.uint8), trace


def test_tile_by_hand():
    # Rows 1 and 2, columns 8 to 11 of a matrix of 4 x 16 words: 24 to 27 and 40 to 43. Each row is
    # half a sector of 32 bytes.
    array = np.arange(64, dtype=np.uint32).reshape(4, 16)
    data, trace = load_tile(array, (1, 8), (2, 4))
    assert data.view(np.uint32).tolist() == [24, 25, 26, 27, 40, 41, 42, 43]
    assert access_counts(trace, "cp.async.bulk.tensor") == [2]


def test_random_tiles():
    rng = np.random.default_rng(3)
    kinds = [np.uint8, np.uint16, np.float16, np.float32, np.int32, np.float64, np.uint64]
    for _ in range(rounds(60)):
        kind = np.dtype(kinds[rng.integers(len(kinds))])
        rank = int(rng.integers(1, 6))
        per_piece = 16 // kind.itemsize
        swizzle = int(rng.choice([0, 32, 64, 128]))
        row = swizzle // 16 if swizzle else int(rng.integers(1, 5))
        row = min(row, 256 // per_piece)
        if swizzle and row * 16 != swizzle:
            swizzle = 0
        size = int(rng.choice([16, 32, 64])) if swizzle == 128 else 16
        box = [int(b) for b in rng.integers(1, 5, rank - 1)] + [row * per_piece]
        shape = [int(n) for n in rng.integers(1, 9, rank - 1)]
        shape.append(per_piece * int(rng.integers(1, 7)))
        steps = [int(s) for s in rng.integers(1, 3, rank)]
        steps[-1] = 1
        start = [int(rng.integers(-3, n + 2)) for n in shape]
        nan = kind.kind == "f" and rng.random() < 0.5
        array = rng.integers(0, 100, shape).astype(kind)
        data, _ = load_tile(
            array,
            start,
            box,
            swizzle=swizzle,
            swizzle_piece=size,
            element_strides=steps,
            fill="nan" if nan else "zeros",
        )
        tile = tile_of(array, start, box, steps, np.nan if nan else 0)
        expected = np.frombuffer(tile.tobytes(), np.uint8)
        if swizzle == 0 or len(expected) % swizzle == 0:
            if swizzle:
                data = swizzled(data, swizzle, size)  # twice is as it was
            np.testing.assert_array_equal(
                data.view(kind), tile.reshape(-1), err_msg=f"{shape} {start} {box} {steps}"
            )


def test_random_views():
    """Tensors that are not packed, against NumPy's views of the same bytes: K-major, overlapping."""
    rng = np.random.default_rng(4)
    for _ in range(rounds(40)):
        kind = np.dtype(rng.choice(["u1", "f2", "f4", "f8"]))
        rank = int(rng.integers(1, 6))
        pieces = rng.integers(1, 4, rank)
        shape = [int(n) for n in rng.integers(1, 6, rank - 1)]
        shape.append(16 // kind.itemsize * int(pieces[-1]))
        strides = [16 * int(n) for n in rng.integers(1, 40, rank - 1)] + [kind.itemsize]
        offset = 16 * int(rng.integers(0, 4))
        span = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + kind.itemsize
        array = rng.integers(0, 100, (offset + span) // kind.itemsize).astype(kind)
        view = np.lib.stride_tricks.as_strided(array[offset // kind.itemsize :], shape, strides)
        box = [int(b) for b in rng.integers(1, 4, rank - 1)] + [16 // kind.itemsize]
        start = [int(rng.integers(-2, n + 1)) for n in shape]
        data, _ = load_tile(
            array,
            start,
            box,
            shape=shape,
            strides=strides if rng.random() < 0.5 else strides[:-1],
            offset=offset,
        )
        tile = tile_of(view, start, box, [1] * rank, 0)
        np.testing.assert_array_equal(data.view(kind), tile.reshape(-1))
        with pytest.raises(InputError, match="the tensor ends at byte"):
            ws.cuda.tensor_map(
                ws.cuda.array(array[:-1]) if len(array) > 1 else ws.cuda.empty(0, kind),
                box,
                shape=shape,
                strides=strides,
                offset=offset,
            )


def test_views_that_are_refused():
    array = ws.cuda.array(np.zeros((8, 16), np.float32))
    for options, reason in [
        ({"strides": (56,)}, "56"),
        ({"strides": (64, 8)}, "strides: elements of the last dimension are 8 bytes apart"),
        ({"strides": (64, 64, 4)}, "strides has 3 values, the tensor has 2 dimensions"),
        ({"shape": (9, 16)}, "the tensor ends at byte 576 of an array of 512 bytes"),
        ({"shape": (1, 1, 1, 1, 8, 16)}, "shape has 6 dimensions, 1 to 5 are possible"),
        ({"offset": 8}, "offset = 8 is not a multiple of 16"),
        ({"offset": 16}, "the tensor ends at byte 528 of an array of 512 bytes"),
        ({"shape": (0, 16)}, "shape"),
        ({"element": "float64"}, "the tensor ends at byte 1,024 of an array of 512 bytes"),
        ({"element": "uint8", "shape": (8, 65)}, "the tensor ends at byte 520"),
        ({"element": "uint8", "shape": (8, 64), "strides": (64, 4)}, "not the 1 of an element"),
    ]:
        with pytest.raises(InputError, match=reason):
            ws.cuda.tensor_map(array, (4, 8), **options)


def test_elements_of_another_size_than_the_arrays():
    words = np.arange(64, dtype=np.uint32).reshape(4, 16)
    for options in ({}, {"strides": (64, 1)}):
        data, _ = load_tile(words, (1, 16), (2, 32), element="uint8", shape=(4, 64), **options)
        np.testing.assert_array_equal(data, words.view(np.uint8)[1:3, 16:48].reshape(-1))


@pytest.mark.parametrize("operation", ["", "add"])
def test_store_of_a_tile(operation):
    device = ws.cuda.Device(0.25)
    before = np.arange(6 * 8, dtype=np.int32).reshape(6, 8)
    held = device.array(before)
    name = "cp.reduce.async.bulk" if operation else "cp.async.bulk"
    body = f"""
    mov.u32 %r1, data; shl.b32 %r2, %t, 2; add.u32 %r3, %r2, %r1; add.u32 %r4, %t, 1000;
    st.shared.u32 [%r3], %r4; bar.sync 0; fence.proxy.async; setp.eq.u32 %p0, %t, 0;
    mov.b64 %l0, map; cvta.param.u64 %l0, %l0;
    @%p0 {name}.tensor.2d.global.shared::cta{"." * bool(operation)}{operation}.tile.bulk_group
    [%l0, {{6, -1}}], [%r1];
    """
    module = compile_body(
        body, 0, outside=OUTSIDE, device=device, parameters=".param .align 64 .b8 map[128]"
    )
    module.kernel("k").launch(1, 32, ws.cuda.tensor_map(held, (4, 8)))
    # The tile of 4 x 8 begins at row -1 and column 6: three rows of two columns lie in the array.
    expected = before.copy()
    tile = 1000 + np.arange(32, dtype=np.int32).reshape(4, 8)
    expected[:3, 6:] = tile[1:, :2] + (before[:3, 6:] if operation else 0)
    np.testing.assert_array_equal(held.to_host(), expected)


def test_a_map_made_by_the_kernel():
    device = ws.cuda.Device(0.25)
    array = device.array(np.arange(128, dtype=np.float16).reshape(8, 16))
    replace = "@%p0 tensormap.replace.tile."
    body = (
        START
        + "mov.u32 %r5, map; shl.b32 %r6, %t, 2; add.u32 %r6, %r6, %r5; mov.u32 %r7, 0;"
        + "st.shared.u32 [%r6], %r7; bar.sync 0;"
        + f"{replace}global_address.shared::cta.b1024.b64 [%r5], %a1;"
        + f"{replace}rank.shared::cta.b1024.b32 [%r5], 1;"
        + "".join(
            f"{replace}{field}.shared::cta.b1024.b32 [%r5], {d}, {value};"
            for field, values in {
                "box_dim": (8, 4),
                "global_dim": (16, 8),
                "element_stride": (1, 1),
            }.items()
            for d, value in enumerate(values)
        )
        + "mov.b64 %l1, 32;"
        + f"{replace}global_stride.shared::cta.b1024.b64 [%r5], 0, %l1;"
        + f"{replace}elemtype.shared::cta.b1024.b32 [%r5], 0x6;"
        + f"{replace}interleave_layout.shared::cta.b1024.b32 [%r5], 0x0;"
        + f"{replace}swizzle_mode.shared::cta.b1024.b32 [%r5], 0x0;"
        + f"{replace}fill_mode.shared::cta.b1024.b32 [%r5], 0x0;"
        + "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
        + " [%a2], [%r5], 128;"
        + "fence.proxy.tensormap::generic.acquire.gpu [%a2], 128; mov.u32 %r30, 16;"
        + "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 64;"
        + "@%p0 cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes"
        + " [%r1], [%a2, {8, 2}], [%r0];"
        + WAIT
        + SHOW
    )
    outside = OUTSIDE + ".shared .align 128 .b8 map[128];"
    module = compile_body(body, 3, outside=outside, device=device)
    out = device.zeros(32, np.uint32)
    module.kernel("k").launch(1, 32, out, array, device.zeros(32, np.uint32))
    got = out.to_host().view(np.float16)[:32].reshape(4, 8)
    np.testing.assert_array_equal(got, array.to_host()[2:6, 8:])


def test_maps_that_are_refused():
    array = ws.cuda.Device(0.25).array(np.zeros((8, 16), np.float32))
    for options, reason in [
        ({"box": (4, 2)}, "a row of the box has 8 bytes, which is not a multiple of 16"),
        (
            {"box": (4, 16), "swizzle": 32},
            "a row of the box has 64 bytes, and its swizzle is of 32",
        ),
        ({"box": (4,)}, "box has 1 values, the tensor has 2 dimensions"),
        ({"box": (4, 8), "swizzle": 16}, "swizzle"),
        ({"box": (4, 8), "element": "float8"}, "element"),
        ({"box": (4, 8), "fill": "ones"}, "fill"),
    ]:
        with pytest.raises(InputError, match=reason.replace("(", r"\(")):
            ws.cuda.tensor_map(array, **options)
    with pytest.raises(InputError, match="only tensors of floats are filled with NaN"):
        ws.cuda.tensor_map(array, (4, 8), element="int32", fill="nan")
