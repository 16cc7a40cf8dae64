"""Races between warps of a block, and reads of shared and local memory that nobody wrote."""

import random
import re
import warnings

import numpy as np
import pytest

import warpstack as ws
from python_reference.races import Event, races
from warpstack.errors import InputError

REGISTERS = (
    ".reg .pred %p<8>; .reg .b16 %h<4>; .reg .b32 %r<16>; .reg .f32 %f<4>; .reg .b64 %l<16>;"
)


def kernel(body, shared=64, local=0, device=None):
    """Return a kernel `k(p)`: %r0 is the thread, %r1 the warp, %l0 the global array."""
    text = f"""
.version 8.3
.target sm_80
.address_size 64
.visible .entry k(.param .u64 k_p) {{
{REGISTERS}
{f".shared .align 16 .b8 tile[{shared}];" if shared else ""}
{f".local .align 16 .b8 depot[{local}];" if local else ""}
ld.param.u64 %l0, [k_p]; mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5;
shl.b32 %r2, %r0, 2; mul.wide.u32 %l1, %r0, 4; add.u64 %l2, %l0, %l1;
{"mov.u32 %r3, tile; add.u32 %r4, %r3, %r2;" if shared else ""}
setp.eq.u32 %p0, %r1, 0; setp.eq.u32 %p1, %r1, 1; setp.eq.u32 %p2, %r0, 0;
{body}
ret;
}}
"""
    return ws.cuda.compile(text, device=device or ws.cuda.Device(0.05)).kernel("k")


def launch(body, *, threads=64, words=1024, shared=64, local=0, **options):
    device = ws.cuda.Device(0.05)
    array = device.array(np.arange(words, dtype=np.uint32))
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        kernel(body, shared, local, device).launch(1, threads, array, **options)
    return array.to_host(), [str(note.message) for note in notes]


def found(body, **options):
    """Return the message of the race that a launch stops at, or None."""
    try:
        launch(body, check_races=True, **options)
    except InputError as error:
        if " race between warps " not in str(error):
            raise
        return str(error)
    return None


# ---- turns ----

STALE = """
@%p2 mov.u32 %r5, 2; @%p2 st.shared.u32 [tile], %r5;
bar.sync 0;
ld.shared.u32 %r6, [tile];
mov.u32 %r7, 0;
AGAIN:
add.u32 %r7, %r7, 1; setp.lt.u32 %p3, %r7, 100; @%p3 bra AGAIN;
mov.u32 %r8, 9;
@%p2 st.shared.u32 [tile], %r8;
st.global.u32 [%l2], %r6;
"""


def test_warps_stay_close_to_each_other():
    """A warp that reads soon after a barrier does so before another has gone far."""
    values, _ = launch(STALE, threads=1024)
    assert values[:1024].tolist() == [2] * 1024
    assert "read-write race" in found(STALE, threads=1024)


def test_the_order_of_turns_does_not_change():
    body = """
mov.u32 %r5, 1;
AGAIN:
atom.global.add.u32 %r6, [%l0], %r5;
mad.lo.u32 %r7, %r7, 31, %r6;
add.u32 %r8, %r8, 1; setp.lt.u32 %p3, %r8, 20; @%p3 bra AGAIN;
st.global.u32 [%l2+4096], %r7;
"""
    first, _ = launch(body, words=4096)
    second, _ = launch(body, words=4096)
    assert first.tolist() == second.tolist()


def test_lanes_that_wait_for_spinning_ones_go_on():
    """A lane spins on a plain volatile load until another lane of its warp writes."""
    body = """
setp.eq.u32 %p3, %r0, 0; @%p3 bra WAIT; bra WRITE;
WAIT:
ld.volatile.global.u32 %r5, [%l0]; setp.ne.u32 %p4, %r5, 77; @%p4 bra WAIT;
bra END;
WRITE:
setp.eq.u32 %p5, %r0, 1; mov.u32 %r6, 77; @%p5 st.volatile.global.u32 [%l0], %r6;
END:
"""
    values, _ = launch(body, threads=32, step_limit=20_000_000)
    assert values[0] == 77


def test_the_step_limit_holds_among_many_warps():
    with pytest.raises(InputError, match="more than 1000 warp instructions"):
        launch("AGAIN: add.u32 %r5, %r5, 1; bra AGAIN;", threads=1024, step_limit=1000)


def test_a_deadlock_is_told_after_short_turns():
    with pytest.raises(InputError, match="deadlock: all warps that have not finished wait"):
        launch("@%p0 bra FIRST; bar.sync 1, 64; bra END; FIRST: bar.sync 2, 64; END:")


# ---- races that people make ----


def reduction(barrier):
    return f"""
st.shared.u32 [%r4], %r0; bar.sync 0;
mov.u32 %r5, 64;
AGAIN:
shr.u32 %r5, %r5, 1;
setp.lt.u32 %p3, %r0, %r5;
shl.b32 %r6, %r5, 2; add.u32 %r6, %r6, %r4;
@%p3 ld.shared.u32 %r7, [%r6]; @%p3 ld.shared.u32 %r8, [%r4];
@%p3 add.u32 %r7, %r7, %r8; @%p3 st.shared.u32 [%r4], %r7;
{barrier}
setp.gt.u32 %p4, %r5, 1; @%p4 bra AGAIN;
@%p2 ld.shared.u32 %r7, [tile]; @%p2 st.global.u32 [%l0], %r7;
"""


def test_tree_reduction():
    # 128 threads: two warps add in the first round, one in the others.
    wide = reduction("bar.sync 0;").replace("mov.u32 %r5, 64;", "mov.u32 %r5, 128;")
    assert found(wide, shared=512, threads=128) is None
    wrong = found(wide.replace("bar.sync 0;\nsetp.gt", "\nsetp.gt"), shared=512, threads=128)
    assert re.search(
        r"kernel k \(PTX line \d+, st\.shared\.u32\), block \(0, 0, 0\), thread \(\d+, 0, 0\): "
        r"read-write race between warps 1 and 0 at 0x\w+ of shared memory, \d+ bytes into the "
        r"shared variable tile: this store and the read at PTX line \d+, ld\.shared\.u32, thread "
        r"\(\d+, 0, 0\), have no barrier between them",
        wrong,
    )
    # Two warps whose second half only loads: the rounds within a warp need no barrier.
    assert found(reduction(""), shared=256) is None


def double_buffering(buffers):
    return f"""
mov.u32 %r5, 0;
AGAIN:
rem.u32 %r6, %r5, {buffers}; shl.b32 %r6, %r6, 8; add.u32 %r6, %r6, %r4;
st.shared.u32 [%r6], %r5;
bar.sync 0;
rem.u32 %r7, %r5, {buffers}; shl.b32 %r7, %r7, 8;
xor.b32 %r8, %r2, 128; add.u32 %r8, %r8, %r3; add.u32 %r8, %r8, %r7;
ld.shared.u32 %r9, [%r8];
add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 6; @%p3 bra AGAIN;
"""


def test_double_buffering():
    assert found(double_buffering(2), shared=512) is None
    assert "read-write race" in found(double_buffering(1), shared=512)


def test_histogram():
    fill = "setp.lt.u32 %p3, %r0, 16; mov.u32 %r5, 0; @%p3 st.shared.u32 [%r4], %r5; bar.sync 0;"
    count = """
and.b32 %r6, %r0, 15; shl.b32 %r6, %r6, 2; add.u32 %r6, %r6, %r3; mov.u32 %r7, 1;
"""
    atomic = "red.shared.add.u32 [%r6], %r7;"
    plain = "ld.shared.u32 %r8, [%r6]; add.u32 %r8, %r8, 1; st.shared.u32 [%r6], %r8;"
    read = "@%p3 ld.shared.u32 %r9, [%r4]; @%p3 st.global.u32 [%l2], %r9;"
    assert found(fill + count + atomic + "bar.sync 0;" + read) is None
    values, _ = launch(fill + count + atomic + "bar.sync 0;" + read)
    assert values[:16].tolist() == [4] * 16
    assert "read-write race" in found(fill + count + plain + "bar.sync 0;" + read)
    assert "read-write race" in found(fill + count + atomic + read)


def flag(before, after, load="ld.volatile.global.u32", store="st.volatile.global.u32"):
    return f"""
@%p0 bra PRODUCE;
WAIT: {load} %r5, [%l0+2048]; setp.ne.u32 %p4, %r5, 7; @%p4 bra WAIT;
{after}
ld.global.u32 %r6, [%l0]; st.global.u32 [%l2+1024], %r6;
bra END;
PRODUCE:
mov.u32 %r7, 41; @%p2 st.global.u32 [%l0], %r7;
{before}
mov.u32 %r8, 7; @%p2 {store} [%l0+2048], %r8;
END:
"""


def test_flag():
    fence = "membar.gl;"
    assert found(flag(fence, fence)) is None
    assert found(flag("fence.acq_rel.gpu;", "fence.sc.cta;")) is None
    assert "read-write race" in found(flag("", ""))
    assert "read-write race" in found(flag("", fence))
    assert "read-write race" in found(flag(fence, ""))
    acquire, release = "ld.acquire.gpu.global.u32", "st.release.gpu.global.u32"
    assert found(flag("", "", acquire, release)) is None
    assert found(flag(fence, "", acquire)) is None
    assert found(flag("", fence, store=release)) is None
    # A flag that is not strong is itself a race, and orders nothing.
    assert found(flag(fence, fence, store="st.global.u32")) is not None


def test_lock():
    def locked(take, give):
        return f"""
and.b32 %r9, %r0, 31; setp.ne.u32 %p5, %r9, 0; @%p5 bra END;
mov.u32 %r5, 1; mov.u32 %r6, 0;
TRY: {take}.cas.b32 %r7, [%l0+2048], 512, 1; setp.ne.u32 %p3, %r7, 512; @%p3 bra TRY;
ld.global.u32 %r8, [%l0]; add.u32 %r8, %r8, 1; st.global.u32 [%l0], %r8;
{give}.exch.b32 %r7, [%l0+2048], 512;
END:
"""

    assert found(locked("atom.acquire.gpu.global", "atom.release.gpu.global"), threads=128) is None
    assert found(locked("atom.acquire.gpu.global", "atom.relaxed.gpu.global"), threads=128)
    fenced = locked("atom.global", "membar.gl; atom.global").replace(
        "@%p3 bra TRY;", "@%p3 bra TRY; membar.gl;"
    )
    assert found(fenced, threads=128) is None
    values, _ = launch(fenced, threads=128)
    assert values[0] == 4


def test_named_barriers():
    both = """
@%p0 bra PRODUCE;
{wait} ld.shared.u32 %r5, [tile]; bra END;
PRODUCE: st.shared.u32 [%r4], %r0; {arrive}
END:
"""
    right = both.format(wait="bar.sync 3, 64;", arrive="bar.arrive 3, 64;")
    assert found(right, shared=128) is None
    other = both.format(wait="bar.sync 3, 32;", arrive="bar.sync 4, 32;")
    assert "read-write race" in found(other, shared=128, check_uninitialized=False)
    # An arrival is not a wait: what the arriving warp does next is unordered.
    early = right.replace("bar.arrive 3, 64;", "bar.arrive 3, 64; st.shared.u32 [%r4], %r1;")
    assert "read-write race" in found(early.replace("%r1;", "%r2;"), shared=128)


def test_warps_that_have_ended_count_as_arrived():
    body = """
st.shared.u32 [%r4], %r0; @%p1 ret;
bar.sync 0; ld.shared.u32 %r5, [tile+128];
"""
    assert found(body, shared=256) is None
    assert found(
        body.replace("bar.sync 0;", "bar.sync 0, 32;"), shared=256, check_uninitialized=False
    )


def test_lanes_of_one_warp_do_not_race():
    body = "st.shared.u32 [tile], %r0; ld.shared.u32 %r5, [tile]; st.shared.u32 [tile], %r5;"
    assert found(body, threads=32) is None
    assert "write-write race" in found(body, threads=64)


def test_stores_of_what_is_there_already():
    """The order of stores of one value does not matter, a read beside them may."""
    store = "mov.u32 %r5, 1; st.global.u32 [%l0], %r5;"
    assert found(store) is None
    assert "read-write race" in found("ld.global.u32 %r6, [%l0];" + store)
    assert "write-write race" in found("add.u32 %r5, %r1, 5; st.global.u32 [%l0], %r5;")


def test_neighbouring_bytes():
    own = "cvt.u64.u32 %l3, %r1; add.u64 %l3, %l3, %l0; st.global.u8 [%l3], %r0;"
    assert found(own, threads=128) is None
    assert "write-write race" in found(own + "st.global.u16 [%l0], %r0;", threads=128)
    whole = own + "bar.sync 0; ld.global.u32 %r5, [%l0];"
    assert found(whole, threads=128) is None
    assert found(whole.replace("bar.sync 0;", ""), threads=128) is not None


def test_blocks_are_apart():
    """Blocks are not compared, and nothing of one is left for the next."""
    device = ws.cuda.Device(0.05)
    array = device.array(np.zeros(64, np.uint32))
    body = "mov.u32 %r5, %ctaid.x; @%p0 st.global.u32 [%l0], %r5; st.shared.u32 [%r4], %r5;"
    one = kernel(body, 256, device=device)
    one.launch(8, 64, array, check_races=True)
    one.launch(8, 64, array, check_races=True, cooperative=True)


def test_races_as_notes():
    body = """
AGAIN:
st.global.u32 [%l0], %r0;
ld.global.u32 %r6, [%l0];
add.u32 %r7, %r7, 1; setp.lt.u32 %p3, %r7, 5; @%p3 bra AGAIN;
"""
    _, notes = launch(body, check_races=True, on_fault="continue")
    kinds = sorted(re.search(r"(\S+) race", note)[1] for note in notes)
    assert kinds == ["read-write", "write-write"]  # one for each pair of lines
    assert all(re.search(r"\(\d+ times at this line\)", note) for note in notes)
    assert launch(body, on_fault="continue")[1] == []


# ---- random kernels ----

ORDERS = {"": (False, False), ".acquire": (True, False), ".release": (False, True)}


def random_kernel(rng, space):
    """Return PTX of a few warps with accesses and barriers, and the events of each warp.

    Writes have values of their own, and strong reads keep theirs, so that the reference knows which
    write each of them saw.
    """
    warps = rng.randint(2, 4)
    programs = [[] for _ in range(warps)]
    bodies = [[] for _ in range(warps)]
    logs = []
    line = 0
    base = "tile" if space == "shared" else "%l0"
    for phase in range(rng.randint(1, 5)):
        for warp in range(warps):
            for _ in range(rng.randint(0, 3)):
                line += 1
                if line > 200:
                    break
                width = rng.choice([1, 1, 2, 4, 4, 4, 8])
                first = rng.randrange(0, 12 if rng.random() < 0.5 else 32) // width * width
                kind = rng.choice(
                    ["load", "store", "strong_load", "strong_store", "atomic", "fence", "load"]
                )
                place = f"[{base}+{first}]"
                value = line * 0x0101010101010101
                if kind == "fence":
                    bodies[warp].append("membar.cta;")
                    programs[warp].append(Event(warp, kind))
                    continue
                acquires = releases = False
                # Strong accesses have words of their own, or share those of plain ones.
                if kind not in ("load", "store"):
                    width = 4
                    first = rng.choice([0, 4, 8, 32, 36])
                    place = f"[{base}+{first}]"
                if kind == "load":
                    register = "%l5" if width == 8 else "%r5"
                    text = f"ld.{space}.u{8 * width} {register}, {place};"
                elif kind == "store":
                    register = "%l5" if width == 8 else "%r5"
                    mask = (1 << (8 * width)) - 1
                    bits = 64 if width == 8 else 32
                    text = f"mov.b{bits} {register}, {value & mask};"
                    text += f"st.{space}.u{8 * width} {place}, {register};"
                elif kind == "strong_load":
                    acquires = rng.random() < 0.5
                    order = "acquire.cta" if acquires else "volatile"
                    text = f"ld.{order}.{space}.u32 %r5, {place};"
                elif kind == "strong_store":
                    releases = rng.random() < 0.5
                    order = "release.cta" if releases else "relaxed.cta"
                    text = f"st.{order}.{space}.u32 {place}, {value & 0xFFFFFFFF};"
                else:
                    order = rng.choice(["", ".relaxed", ".acquire", ".release", ".acq_rel"])
                    acquires = order in (".acquire", ".acq_rel")
                    releases = order in (".release", ".acq_rel")
                    scope = ".cta" if order else ""
                    text = (
                        f"atom{order}{scope}.{space}.exch.b32 %r5, {place}, {value & 0xFFFFFFFF};"
                    )
                event = Event(warp, kind, line, first, width, acquires, releases)
                if kind in ("strong_load", "atomic"):
                    text += f"st.global.u32 [%l0+{1024 + 4 * len(logs)}], %r5;"
                    logs.append(event)
                programs[warp].append(event)
                bodies[warp].append(f".loc 1 {line} 0\n{text}\n.loc 1 900 0\n")
        use = rng.choice(["none", "all", "all", "pair", "arrive"])
        if use == "all":
            for warp in range(warps):
                bodies[warp].append("bar.sync 0;")
                programs[warp].append(Event(warp, "barrier", barrier=10 * phase))
        elif use != "none":
            one, other = rng.sample(range(warps), 2)
            bodies[one].append("bar.sync 1, 64;")
            programs[one].append(Event(one, "barrier", barrier=10 * phase + 1))
            waits = use == "pair"
            bodies[other].append("bar.sync 1, 64;" if waits else "bar.arrive 1, 64;")
            programs[other].append(Event(other, "barrier", barrier=10 * phase + 1, waits=waits))
            # Uses of one barrier must not meet.
            for warp in range(warps):
                bodies[warp].append("bar.sync 2;")
                programs[warp].append(Event(warp, "barrier", barrier=10 * phase + 2))
    text = f"""
.version 8.3
.target sm_80
.address_size 64
.file 1 "random.cu"
.visible .entry k(.param .u64 k_p) {{
{REGISTERS}
.shared .align 16 .b8 tile[64];
ld.param.u64 %l0, [k_p]; mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5;
mov.u32 %r2, 0;
"""
    for warp in range(warps - 1):
        text += f"setp.eq.u32 %p1, %r1, {warp}; @%p1 bra W{warp};\n"
    text += f"bra W{warps - 1};\n"
    for warp, body in enumerate(bodies):
        # One lane acts, all come to the barriers.
        lines = [f"@%p0 {part}" for part in re.split(r"(?<=;)", "\n".join(body))]
        lines = [re.sub(r"^@%p0 (\s*(?:\.loc[^\n]*\n\s*)*)", r"\1@%p0 ", part) for part in lines]
        joined = "".join(part for part in lines if ";" in part).replace("@%p0 bar", "bar")
        text += f"W{warp}: and.b32 %r3, %r0, 31; setp.eq.u32 %p0, %r3, {warp};\n{joined}\nret;\n"
    return text + "}\n", programs, logs, warps


@pytest.mark.parametrize("seed", range(120))
def test_random_kernels_against_the_reference(seed):
    rng = random.Random(seed)
    space = rng.choice(["shared", "global"])
    text, programs, logs, warps = random_kernel(rng, space)
    device = ws.cuda.Device(0.05)
    one = ws.cuda.compile(text, device=device).kernel("k")
    array = device.array(np.zeros(2048, np.uint32))
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        one.launch(
            1, 32 * warps, array, check_races=True, on_fault="continue", check_uninitialized=False
        )
    seen = array.to_host()[256:]
    strong = {
        e.line: e for p in programs for e in p if e.kind in ("strong_store", "atomic") and e.bytes
    }
    for event, value in zip(logs, seen, strict=False):
        source = strong.get(int(value) & 255)
        if source is not None and int(value) == (source.line * 0x01010101) & 0xFFFFFFFF:
            event.reads_from = source
    expected = races(programs)
    reported = set()
    for note in notes:
        text = str(note.message)
        lines = [int(line) for line in re.findall(r"random\.cu:(\d+)", text)]
        assert len(lines) == 2, text
        reported.add(frozenset(lines))
    every = set().union(*expected.values()) if expected else set()
    assert reported <= every, (reported - every, every)  # no false alarm
    for byte, pairs in expected.items():
        assert pairs & reported, (byte, pairs, reported)  # no racing byte is missed
    array.copy_from(np.zeros(2048, np.uint32))
    if every:
        with pytest.raises(InputError, match="race between warps"):
            one.launch(1, 32 * warps, array, check_races=True, check_uninitialized=False)


# ---- reads of what nobody wrote ----


def stops(body, **options):
    with pytest.raises(InputError) as error:
        launch(body, **options)
    assert launch(body, check_uninitialized=False, **options)[1] == []
    return str(error.value)


def test_uninitialized_shared_memory():
    message = stops(
        "@%p2 st.shared.u32 [tile], %r0; bar.sync 0; ld.shared.u32 %r5, [tile+8];", threads=32
    )
    assert re.fullmatch(
        r"kernel k \(PTX line \d+, ld\.shared\.u32\), block \(0, 0, 0\), thread \(0, 0, 0\): load "
        r"of 4 bytes at 0x8 of shared memory, which nobody has written: 8 bytes into the shared "
        r"variable tile \(write it first, or launch with check_uninitialized off\)",
        message,
    )
    for access in (
        "ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [tile];",
        "atom.shared.add.u32 %r5, [tile], 1;",
        "mov.u64 %l3, tile; cvta.shared.u64 %l3, %l3; ld.u32 %r5, [%l3];",
        "and.b32 %r9, %r0, 7; shl.b32 %r9, %r9, 4; add.u32 %r9, %r9, %r3;"
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r5}, [%r9];",
    ):
        assert "of shared memory, which nobody has written" in stops(
            access, threads=32, shared=128
        ), access


def test_what_writes_shared_memory():
    for write in (
        "st.shared.u32 [%r4], %r0;",
        "mov.u64 %l3, tile; cvta.shared.u64 %l3, %l3; add.u64 %l3, %l3, %l1; st.u32 [%l3], %r0;",
        "cp.async.ca.shared.global [%r4], [%l2], 4; cp.async.wait_all;",
    ):
        launch(write + "bar.sync 0; ld.shared.u32 %r5, [tile+128];", shared=256)
    # Nothing is left of the block before.
    device = ws.cuda.Device(0.05)
    body = "mov.u32 %r9, %ctaid.x; setp.eq.u32 %p3, %r9, 0; @%p3 st.shared.u32 [tile], %r0;"
    one = kernel(body + "ld.shared.u32 %r5, [tile];", device=device)
    one.launch(1, 32, device.array(np.zeros(4, np.uint32)))
    with pytest.raises(InputError, match=r"block \(1, 0, 0\)"):
        one.launch(2, 32, device.array(np.zeros(4, np.uint32)))


def test_padding_is_copied_with_what_surrounds_it():
    """A byte and an integer, copied as one value or as parts of a vector; padding alone is told."""
    parts = "st.shared.u8 [tile], %r0; st.shared.u32 [tile+4], %r0;"
    launch(parts + "ld.shared.u64 %l5, [tile]; ld.shared.v2.u32 {%r5, %r6}, [tile];", threads=32)
    launch(parts + "ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [tile];", threads=32)
    assert "load of 8 bytes at 0x8" in stops(
        parts + "ld.shared.v2.u32 {%r5, %r6}, [tile+8];", threads=32
    )
    launch(
        parts.replace("shared", "local").replace("tile", "depot") + "ld.local.u64 %l5, [depot];",
        local=16,
    )


def test_uninitialized_local_memory():
    """A note and not an error: compilers load a variable ahead of the branch that needs it."""
    body = "@%p2 st.local.u32 [depot+4], %r0; ld.local.u32 %r5, [depot+4];"
    _, notes = launch(body, local=64)
    assert len(notes) == 1
    assert re.search(
        r"thread \(1, 0, 0\): load of 4 bytes at 0x4 of local memory, which nobody has written \(",
        notes[0],
    )
    written = "st.local.v2.u32 [depot], {%r0, %r1}; ld.local.u64 %l5, [depot];"
    assert launch(written, local=64)[1] == []
    assert launch(body, local=64, check_uninitialized=False)[1] == []


def test_a_call_starts_with_fresh_local_memory():
    text = """
.version 8.3
.target sm_80
.address_size 64
.func f(.param .b32 writes) {
.local .align 4 .b8 own[8];
.reg .pred %p; .reg .b32 %r<3>;
ld.param.u32 %r0, [writes]; setp.ne.u32 %p, %r0, 0;
@%p st.local.u32 [own], %r0;
ld.local.u32 %r1, [own];
ret;
}
.visible .entry k() {
.reg .b32 %r<3>;
mov.u32 %r0, 1;
{ .param .b32 a; st.param.b32 [a], %r0; call f, (a); }
mov.u32 %r0, 0;
{ .param .b32 a; st.param.b32 [a], %r0; call f, (a); }
ret;
}
"""
    one = ws.cuda.compile(text, device=ws.cuda.Device(0.05)).kernel("k")
    with pytest.warns(ws.cuda.KernelWarning, match="of local memory, which nobody has written"):
        one.launch(1, 32)
