"""What a launch does, counted without caches, against its plain definition."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpstack as ws
from effort import rounds
from strategies import kernels


def plain(kernel):
    """Count again from the columns of every warp."""
    table = kernel.instructions
    found = Counter()
    for position, (_, warps) in enumerate(kernel.blocks()):
        for warp in range(len(warps)):
            columns = kernel.warp(position, warp)
            for row in columns["instruction"]:
                if table.op_class[row] != "memory":
                    found["not memory"] += 1
            for row, count in zip(
                columns["memory_static"], columns["memory_count"].tolist(), strict=True
            ):
                if table.space[row] == "shared":
                    found["shared_wavefronts"] += count
                    continue
                kind = {"load": "loads", "async_copy": "loads", "store": "stores"}.get(
                    table.kind[row], "atomics"
                )
                found[kind] += count > 0
                found["read_sectors" if kind == "loads" else "written_sectors"] += count
    return found


@pytest.mark.slow
@settings(max_examples=rounds(100))
@given(kernels())
def test_equals_plain_definition(kernel):
    features = kernel._core.launch_features()
    expected = plain(kernel)
    units = kernel._core.unit_instructions()
    assert sum(units.values()) == expected["not memory"]
    assert {name: features[name] for name in units} == units
    for name in features.keys() - units.keys():
        assert features[name] == expected[name], name


def test_by_hand():
    """Two warps: an addition, a load of 4 sectors, a store of 32, an atomic of one, shared memory."""
    k = ws.patterns.KernelBuilder("all", grid=1, block=64)
    k.emit("FADD", dst=1, src=2)
    k.emit("LDG.E", dst=4, src=2, address=0x1000 + 4 * k.thread)
    k.emit("STG.E", src=(2, 4), address=0x10000 + 128 * k.thread)
    k.emit("RED.E.ADD", src=(2, 4), address=0x1000 + 0 * k.thread)
    k.emit("LDS", dst=5, src=3, address=8 * k.thread_in_block)
    features = k.build()._core.launch_features()
    assert features["fp32"] == 2
    assert (features["loads"], features["stores"], features["atomics"]) == (2, 2, 2)
    assert features["read_sectors"] == 2 * 4
    assert features["written_sectors"] == 2 * 32 + 2 * 1
    assert features["shared_wavefronts"] == 2 * 2


# --- pages ----------------------------------------------------------------------------------------


def sectors_of(kernel):
    """Return the sectors of every access, in any order."""
    return [
        sector
        for position, (_, warps) in enumerate(kernel.blocks())
        for warp in range(len(warps))
        for sector in kernel.warp(position, warp)["sector"].tolist()
    ]


@pytest.mark.slow
@settings(max_examples=rounds(60))
@given(st.lists(kernels(), min_size=1, max_size=4))
def test_new_pages_equal_their_plain_definition(launches):
    pages, touched = ws._core.TouchedPages(), set()
    for kernel in launches:
        found = [sector * 32 // 4096 for sector in sectors_of(kernel)]
        expected = sum(page not in touched for page in found) / max(len(found), 1)
        assert pages.add(kernel._core) == pytest.approx(expected)
        touched.update(found)


def test_new_pages_by_hand():
    """Four sectors of page 1, and four of page 1 with eight of page 2; then the same again."""
    one = ws.patterns.KernelBuilder("one", grid=1, block=32)
    one.emit("LDG.E", dst=4, src=2, address=0x1000 + 4 * one.thread)
    two = ws.patterns.KernelBuilder("two", grid=1, block=32)
    two.emit("LDG.E", dst=4, src=2, address=0x1000 + 4 * two.thread)
    two.emit("STG.E.64", src=(2, 4), address=0x2000 + 8 * two.thread)
    one, two = one.build()._core, two.build()._core
    pages = ws._core.TouchedPages()
    assert [pages.add(kernel) for kernel in (one, two, two, one)] == [1, 8 / 12, 0, 0]
