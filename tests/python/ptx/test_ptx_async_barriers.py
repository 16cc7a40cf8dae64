"""mbarrier: arrivals, phases and bytes, and warps that wait for each other at them."""

import numpy as np
import pytest

from ptx_forms import at, message_of, run

OUTSIDE = ".shared .align 8 .b64 bar[2]; .shared .align 128 .b8 data[4096];"
START = "mov.u32 %r0, bar; mov.u32 %r1, data; setp.eq.u32 %p0, %t, 0;"


def numbers(body, count, **options):
    """Return the words that thread 0 stores from %r10 on."""
    stores = "".join(f"@%p0 st.global.u32 [%a0+{4 * i}], %r{10 + i};" for i in range(count))
    (out, *_), _ = run(START + body + stores, np.zeros(32, np.uint32), outside=OUTSIDE, **options)
    return out[:count].tolist()


def test_phases_by_hand():
    # Two arrivals end a phase: its state is tested before and after the second, then the next
    # phase waits for two again.
    body = """
    @%p0 mbarrier.init.shared.b64 [%r0], 2;
    @%p0 mbarrier.arrive.shared.b64 %l0, [%r0];
    @%p0 mbarrier.pending_count.b64 %r10, %l0;
    @%p0 mbarrier.test_wait.shared.b64 %p1, [%r0], %l0; selp.u32 %r11, 1, 0, %p1;
    @%p0 mbarrier.arrive.shared.b64 %l1, [%r0];
    @%p0 mbarrier.pending_count.b64 %r12, %l1;
    @%p0 mbarrier.test_wait.shared.b64 %p1, [%r0], %l0; selp.u32 %r13, 1, 0, %p1;
    @%p0 mbarrier.try_wait.parity.shared.b64 %p1, [%r0], 0; selp.u32 %r14, 1, 0, %p1;
    @%p0 mbarrier.try_wait.parity.shared.b64 %p1, [%r0], 1, 100; selp.u32 %r15, 1, 0, %p1;
    @%p0 mbarrier.arrive.shared.b64 %l1, [%r0];
    @%p0 mbarrier.pending_count.b64 %r16, %l1;
    """
    assert numbers(body, 7) == [2, 0, 1, 1, 1, 0, 2]


def test_bytes_and_drops_by_hand():
    # A phase ends when all have come and all bytes are there, whichever is last; who drops out is
    # not waited for later.
    body = """
    @%p0 mbarrier.init.shared::cta.b64 [%r0], 3;
    @%p0 mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r0], 16;
    @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 %l0, [%r0], 48;
    @%p0 mbarrier.arrive_drop.shared.b64 _, [%r0], 2;
    @%p0 mbarrier.test_wait.parity.shared.b64 %p1, [%r0], 0; selp.u32 %r10, 1, 0, %p1;
    @%p0 mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r0], 32;
    @%p0 mbarrier.test_wait.parity.shared.b64 %p1, [%r0], 0; selp.u32 %r11, 1, 0, %p1;
    @%p0 mbarrier.arrive.shared.b64 %l1, [%r0];
    @%p0 mbarrier.pending_count.b64 %r12, %l1;
    @%p0 mbarrier.test_wait.parity.shared.b64 %p1, [%r0], 1; selp.u32 %r13, 1, 0, %p1;
    """
    assert numbers(body, 4) == [0, 1, 1, 1]


# Warp 0 fills a buffer of 32 words of two, the other warps add them up: full[b] at bar, empty[b]
# behind it is not needed for two rounds, whose buffers are different.
def test_producer_and_consumers():
    rounds, consumers = 9, 3
    body = (
        START
        + f"""
    .reg .b32 %round, %parity, %sum; mov.u32 %round, 0; mov.u32 %sum, 0;
    @%p0 mbarrier.init.shared.b64 [%r0], 32;
    @%p0 mbarrier.init.shared.b64 [%r0+8], {32 * consumers};
    bar.sync 0; setp.lt.u32 %p1, %t, 32;
    and.b32 %r2, %t, 31; shl.b32 %r2, %r2, 2; add.u32 %r2, %r2, %r1;
    next: and.b32 %parity, %round, 1; xor.b32 %r5, %parity, 1; @!%p1 bra consume;
    free: mbarrier.try_wait.parity.shared.b64 %p2, [%r0+8], %r5; @!%p2 bra free;
    mad.lo.u32 %r3, %round, 1000, %t; st.shared.u32 [%r2], %r3;
    mbarrier.arrive.shared.b64 _, [%r0]; bra done;
    consume: mbarrier.try_wait.parity.shared.b64 %p2, [%r0], %parity; @!%p2 bra consume;
    ld.shared.u32 %r3, [%r2]; add.u32 %sum, %sum, %r3;
    mbarrier.arrive.shared.b64 _, [%r0+8];
    done: add.u32 %round, %round, 1; setp.lt.u32 %p3, %round, {rounds}; @%p3 bra next;
    """
        + at("%l0", "%a0", "%t", 4)
        + "st.global.u32 [%l0], %sum;"
    )
    for options in ({}, {"check_races": True}):
        threads = 32 * (1 + consumers)
        (out, *_), _ = run(
            body, np.zeros(threads, np.uint32), block=threads, outside=OUTSIDE, **options
        )
        lane = np.arange(threads) % 32
        expected = sum(1000 * r + lane for r in range(rounds))
        expected[:32] = 0
        np.testing.assert_array_equal(out, expected)


def test_what_no_barrier_orders_is_still_a_race():
    body = (
        START
        + """
    @%p0 mbarrier.init.shared.b64 [%r0], 32; bar.sync 0; setp.lt.u32 %p1, %t, 32;
    @%p1 st.shared.u32 [%r1], 7; @!%p1 st.shared.u32 [%r1], 8;
    """
    )
    assert "race" in message_of(body, block=64, outside=OUTSIDE, check_races=True)


def test_a_wait_for_nobody_is_a_deadlock():
    body = START + "@%p0 mbarrier.init.shared.b64 [%r0], 5; bar.sync 0; "
    body += "@%p0 mbarrier.arrive.shared.b64 _, [%r0], 2; wait: "
    body += "mbarrier.try_wait.parity.shared.b64 %p2, [%r0], 0; @!%p2 bra wait;"
    message = message_of(body, block=64, outside=OUTSIDE)
    assert "block (0, 0, 0): deadlock" in message
    assert "at mbarrier at 0x0, whose phase waits for 3 arrivals and 0 bytes" in message


def test_mistakes():
    options = {"outside": OUTSIDE}
    assert "there is no mbarrier at 0x0" in message_of(
        START + "st.shared.u64 [%r0], 5; mbarrier.arrive.shared.b64 _, [%r0];", **options
    )
    ready = START + "@%p0 mbarrier.init.shared.b64 [%r0], 1; bar.sync 0;"
    assert "1 arrivals at an mbarrier whose phase waits for 0" not in message_of(
        ready + "mbarrier.arrive.shared.b64 _, [%r0+4];", **options
    )
    assert "which is not a multiple of 8" in message_of(
        ready + "mbarrier.arrive.shared.b64 _, [%r0+4];", **options
    )
    assert "4 arrivals at an mbarrier whose phase waits for 1" in message_of(
        ready + "mbarrier.arrive.shared.b64 _, [%r0], 4;", **options
    )
    assert "an mbarrier for 0 arrivals" in message_of(
        START + "mbarrier.init.shared.b64 [%r0], 0;", **options
    )


@pytest.mark.parametrize("increments", [False, True])
def test_copies_that_arrive(increments):
    # Without .noinc an arrival counts itself, so that the phase waits for the 32 plain ones alone.
    count = 32 if increments else 64
    form = "" if increments else ".noinc"
    body = (
        START
        + f"@%p0 mbarrier.init.shared.b64 [%r0], {count}; bar.sync 0;"
        + at("%l0", "%a0", "%t", 4)
        + f"""
    shl.b32 %r2, %t, 2; add.u32 %r2, %r2, %r1; cp.async.ca.shared.global [%r2], [%l0], 4;
    cp.async.mbarrier.arrive{form}.shared.b64 [%r0]; mbarrier.arrive.shared.b64 _, [%r0];
    wait: mbarrier.test_wait.parity.shared.b64 %p2, [%r0], 0; @!%p2 bra wait;
    ld.shared.u32 %r3, [%r2]; add.u32 %r3, %r3, 1; st.global.u32 [%l0], %r3;
    """
    )
    values = np.arange(32, dtype=np.uint32)
    (out, *_), _ = run(body, values, outside=OUTSIDE)
    np.testing.assert_array_equal(out, values + 1)
