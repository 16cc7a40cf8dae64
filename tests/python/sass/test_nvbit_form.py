"""Traces of machine code in the form of NVBit's tracer: read back, they are what they were."""

import numpy as np
import pytest

import warpstack as ws
from effort import rounds

#: Small inputs: the form of a trace does not depend on its length.
WORKLOADS = {
    "hotspot": {"width": 64, "height": 64},
    "spmv": {"rows": 512},
    "bfs": {"nodes": 256},
    "k-means": {"points": 512},
}


def rows_of(kernel):
    """Return what a trace says of each of its static instructions."""
    columns = [
        "pc",
        "opcode",
        "op_class",
        "space",
        "kind",
        "width",
        "cache_operator",
        "source_line",
    ]
    return list(kernel.instructions[columns].itertuples(index=False, name=None))


def registers_of(kernel):
    """Return the destinations and sources of each of them."""
    table = kernel.instructions
    return list(zip(map(tuple, table.destinations), map(tuple, table.sources), strict=True))


def assert_same(before, after):
    """Assert that two traces have the same instructions, masks and addresses, warp by warp."""
    kept = (
        "grid",
        "block",
        "shared_memory_bytes",
        "registers_per_thread",
        "name",
        "launch_id",
        "code",
    )
    assert [getattr(before, name) for name in kept] == [getattr(after, name) for name in kept]
    assert before.num_instructions == after.num_instructions
    tables = rows_of(before), rows_of(after)
    registers = registers_of(before), registers_of(after)
    # A reader numbers the registers by their first appearance.
    renamed, back = {}, {}
    blocks = list(before.blocks())
    assert blocks == list(after.blocks())
    for block, (_, warps) in enumerate(blocks[:: max(len(blocks) // rounds(60), 1)]):
        for warp in range(len(warps)):
            old, new = before.warp(block, warp), after.warp(block, warp)
            pairs = list(zip(old["instruction"].tolist(), new["instruction"].tolist(), strict=True))
            for a, b in set(pairs):
                assert tables[0][a] == tables[1][b]
                for x, y in zip(registers[0][a], registers[1][b], strict=True):
                    for r, s in zip(x, y, strict=True):
                        assert renamed.setdefault(r, s) == s
                        assert back.setdefault(s, r) == r
            for name in ("active_mask", "memory_count", "sector", "store_bytes"):
                np.testing.assert_array_equal(old[name], new[name])


@pytest.mark.parametrize("name", WORKLOADS)
def test_workloads(name, tmp_path):
    app = ws.workloads.load(name, WORKLOADS[name], machine_code="sm_80")
    ws.save(app, tmp_path / "out", format="accelsim")
    again = ws.load(tmp_path / "out")
    assert len(again) == len(app)
    for before, after in zip(app, again, strict=True):
        assert (before.code, before.source, after.source) == ("sm_80", "sass", "accelsim")
        assert_same(before, after)
    (text,) = [path.read_text() for path in (tmp_path / "out").glob("kernel-1.traceg")]
    assert "-binary version = 80\n" in text
    assert f"-nregs = {app.kernels[0].registers_per_thread}\n" in text
    assert all(f" {opcode} " in text for opcode in {"EXIT", "IMAD.WIDE"})
