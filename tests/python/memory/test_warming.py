"""L2 that has seen a kernel without being asked what it did."""

import pytest
from hypothesis import given, settings
from plain_caches import assert_same, plain_system

import warpstack as ws
from effort import rounds
from strategies import gpus, kernels


@pytest.mark.slow
@settings(max_examples=rounds(60))
@given(kernels(), kernels(), gpus())
def test_equals_plain_definition(first, second, gpu):
    """What is in L2 shows in what the next kernel finds there."""
    system, plain = ws.memory.MemorySystem(gpu), plain_system(gpu)
    system.warm(first)
    plain.warm(first)
    assert_same(system.run(second), plain.run(second))


def reader(lines, first=0, launch_id=1):
    """Return a warp that loads the first word of lines, one after the other."""
    k = ws.patterns.KernelBuilder("reader", grid=1, block=32, launch_id=launch_id)
    for line in range(first, first + lines):
        k.emit("LDG.E", dst=4, src=2, address=0x100000 + 128 * line + 0 * k.thread)
    return k.build()


def test_by_hand(pascal):
    """Sixteen lines are read: of those that were warm all hit, of the others none."""
    system = ws.memory.MemorySystem(pascal)
    system.warm(reader(10))
    totals = system.run(reader(16)).totals
    assert totals["l2_read_requests"] == 16
    assert totals["l2_read_request_hits"] == 10
    system.flush_l2()
    assert system.run(reader(16)).totals["l2_read_request_hits"] == 0


def test_is_what_a_run_leaves_where_l1_keeps_nothing_back(pascal):
    """Launches that read each line once: a run of the first and its warming are the same to L2."""
    launches = [reader(40), reader(40, first=20)]
    found = []
    for how in ("run", "warm"):
        system = ws.memory.MemorySystem(pascal.replace(l2_size_kib=96))
        getattr(system, how)(launches[0])
        found.append(system.run(launches[1]).totals)
    assert found[0] == found[1]
    assert found[0]["l2_read_request_hits"] > 0


def test_other_things_are_refused(pascal):
    with pytest.raises(ws.InputError, match="kernel"):
        ws.memory.MemorySystem(pascal).warm("stream")
