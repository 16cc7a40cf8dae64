"""Lanes of atomics: which sector and word they want, from every source of traces and through every format."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accelsim_text as text
import warpstack as ws
from effort import rounds
from python_reference import access as plain

#: A histogram of random bins, saved by the version before lanes were kept.
OLD = Path(__file__).parent / "saved_version_3"


def lanes_of(kernel):
    """Return [(sectors' lanes, the most of one word)] of each executed atomic, in order."""
    table = kernel.instructions
    found = []
    for block, (_, warps) in enumerate(kernel.blocks()):
        for warp in range(len(warps)):
            columns = kernel.warp(block, warp)
            numbers = zip(
                columns["sector_lanes"].tolist(), columns["word_lanes"].tolist(), strict=True
            )
            counts = zip(
                columns["memory_static"].tolist(), columns["memory_count"].tolist(), strict=True
            )
            for row, count in counts:
                if table.kind[row] not in ("store", "atomic", "reduction"):
                    continue
                here = [next(numbers, (0, 0)) for _ in range(count)]
                if table.kind[row] == "store":
                    assert here == [(0, 0)] * count
                elif count:
                    found.append(here)
    return found


def histogram(bins, opcode="ATOMG.E.ADD", width=4, seed=0, **shape):
    k = ws.patterns.KernelBuilder("histogram", **{"grid": 2, "block": 72, **shape})
    rng = np.random.default_rng(seed)
    for _ in range(3):
        k.emit("STG.E", src=(2, 3), address=0x9000 + 4 * k.thread)
        address = 0x7000_0000 + width * rng.integers(0, bins, k.thread.shape)
        k.emit(opcode, dst=4 if opcode[0] == "A" else (), src=(2, 3), address=address)
    k.emit("EXIT")
    return k.build()


@settings(max_examples=rounds(100))
@given(
    st.sampled_from([("ATOMG.E.ADD", 4), ("RED.E.ADD.64", 8), ("ATOMG.E.CAS.128", 16)]),
    st.lists(st.integers(0, 2**20), min_size=32, max_size=32),
    st.integers(1, text.FULL),
    st.sampled_from([1, 2, 5, 40, 4096]),
    st.booleans(),
)
def test_equal_plain_definition(opcode, values, mask, bins, aligned):
    opcode, width = opcode
    addresses = np.array(values) % bins * width + (0x5000 if aligned else 0x5003)
    active = np.array([mask >> lane & 1 for lane in range(32)], dtype=bool)
    k = ws.patterns.KernelBuilder("atomic", grid=1, block=32)
    k.emit(opcode, dst=4 if opcode[0] == "A" else (), src=2, address=addresses, predicate=active)
    kernel = k.build()
    lanes = [(lane, int(addresses[lane])) for lane in range(32) if active[lane]]
    (found,) = lanes_of(kernel)
    assert found == plain.atomic_lanes(lanes, plain.sectors(lanes, width))
    assert sum(sector for sector, _ in found) == mask.bit_count()  # each lane is in one sector


def test_by_hand():
    """17 lanes on word 0 of a sector, 10 on three others, 5 on a word of another sector."""
    lane = np.arange(32)
    address = np.where(lane < 17, 0, np.where(lane < 27, 4 + 4 * (lane % 3), 96))
    k = ws.patterns.KernelBuilder("hand", grid=1, block=32)
    k.emit("RED.E.ADD", src=(2, 4), address=0x7000_0000 + address)
    columns = k.build().warp(0, 0)
    assert columns["sector_lanes"].tolist() == [27, 5]
    assert columns["word_lanes"].tolist() == [17, 5]


def test_kernels_without_atomics_have_no_lanes(tmp_path):
    kernel = ws.patterns.stream(blocks=2)
    columns = kernel.warp(0, 0)
    assert columns["sector_lanes"].size == columns["word_lanes"].size == 0
    assert kernel._core.digest_without_lanes == kernel.digest
    ws.save(kernel, tmp_path / "stream")
    stores = pq.read_table(tmp_path / "stream" / "kernel-1" / "stores.parquet")
    assert stores.column_names == ["store_bytes"]


@pytest.mark.parametrize("bins", [1, 3, 16, 500])
@pytest.mark.parametrize(("opcode", "width"), [("ATOMG.E.ADD", 4), ("RED.E.ADD.64", 8)])
def test_accelsim_files_keep_lanes(tmp_path, bins, opcode, width):
    kernel = histogram(bins, opcode, width)
    ws.save(kernel, tmp_path / "out", format="accelsim")
    (again,) = ws.load(tmp_path / "out")
    assert lanes_of(again) == lanes_of(kernel)
    assert any(word > 1 for found in lanes_of(again) for _, word in found)


@pytest.mark.parametrize("mode", [0, 2])
@pytest.mark.parametrize("opcode", ["ATOMG.E.ADD", "ATOM.E.ADD", "RED.E.ADD.STRONG.GPU"])
def test_accelsim_addresses_give_lanes(tmp_path, mode, opcode):
    rng = np.random.default_rng(7)
    base = 0x7FC8_4150_0000
    addresses = {lane: base + 4 * int(rng.integers(0, 12)) for lane in range(32)}
    mask = 0xFFFF_F0FF
    dst = [] if opcode.startswith("RED") else [4]
    instructions = [
        text.Instruction(0, opcode, dst, [2, 6], mask, addresses, 4),
        text.Instruction(16, "EXIT"),
    ]
    (tmp_path / "kernel-1.traceg").write_text(text.grouped({(0, 0, 0): {0: instructions}}, 4, mode))
    (kernel,) = ws.load(tmp_path)
    lanes = [(lane, a) for lane, a in addresses.items() if mask >> lane & 1]
    assert lanes_of(kernel) == [plain.atomic_lanes(lanes, plain.sectors(lanes, 4))]


def test_accelsim_strides_give_lanes(tmp_path):
    """Stride 0: all on one word. Stride 8: four lanes of a sector, each with a word of its own."""
    instructions = [
        text.Instruction(0, "RED.E.ADD", [], [2, 6], text.FULL, dict.fromkeys(range(32), 4096), 4),
        text.Instruction(
            16, "RED.E.ADD", [], [2, 6], text.FULL, {i: 8192 + 8 * i for i in range(32)}, 4
        ),
        text.Instruction(32, "EXIT"),
    ]
    (tmp_path / "kernel-1.traceg").write_text(text.grouped({(0, 0, 0): {0: instructions}}, 4, 1))
    (kernel,) = ws.load(tmp_path)
    assert lanes_of(kernel) == [[(32, 32)], [(4, 1)] * 8]


@pytest.mark.parametrize("spilled", [False, True])
def test_saved_traces_keep_lanes(tmp_path, spilled):
    kernel = histogram(20)
    ws.save(kernel, tmp_path / "app")
    options = {"memory_limit_mib": 0} if spilled else {}
    (again,) = ws.load(tmp_path / "app", **options)
    assert again.digest == kernel.digest
    assert lanes_of(again) == lanes_of(kernel)


def test_digests_tell_lanes_apart():
    """The same sectors and bytes, other lanes on the words."""
    digests = []
    for split in (8, 16):
        k = ws.patterns.KernelBuilder("split", grid=1, block=32)
        k.emit("RED.E.ADD", src=(2, 4), address=0x7000_0000 + 4 * (k.thread < split))
        digests.append(k.build().digest)
    assert digests[0] != digests[1]


class TestFilesOfVersion3:
    def test_lanes_are_spread_evenly(self):
        (kernel,) = ws.load(OLD)
        table = kernel.instructions
        expected = []
        for block, (_, warps) in enumerate(kernel.blocks()):
            for warp in range(len(warps)):
                columns = kernel.warp(block, warp)
                counts, stores = (
                    iter(columns["memory_count"].tolist()),
                    iter(columns["store_bytes"]),
                )
                for row, mask in zip(
                    columns["instruction"], columns["active_mask"].tolist(), strict=True
                ):
                    if table.op_class[row] != "memory":
                        continue
                    count = next(counts)
                    if table.kind[row] == "load":
                        continue
                    masks = [int(next(stores)) for _ in range(count)]
                    if table.kind[row] != "store" and count:
                        width = int(table.width[row])
                        expected.append(plain.even_lanes(mask.bit_count(), masks, width))
        assert expected
        assert lanes_of(kernel) == expected

    def test_they_become_files_of_this_version(self, tmp_path):
        (kernel,) = ws.load(OLD)
        ws.save(kernel, tmp_path / "new")
        (again,) = ws.load(tmp_path / "new")
        assert again.digest == kernel.digest
        assert lanes_of(again) == lanes_of(kernel)
        ws.save(kernel, tmp_path / "accelsim", format="accelsim")
        assert lanes_of(ws.load(tmp_path / "accelsim").kernels[0]) == lanes_of(kernel)

    def test_their_digest_is_checked(self, tmp_path):
        (kernel,) = ws.load(OLD)
        manifest = (OLD / "warpstack-trace.json").read_text()
        assert kernel._core.digest_without_lanes in manifest
        assert kernel.digest not in manifest


def test_functional_simulation_keeps_lanes():
    source = """.version 7.0
.target sm_75
.address_size 64
.visible .entry count(.param .u64 data, .param .u64 bins) {
.reg .b32 %r<4>; .reg .b64 %rd<6>;
ld.param.u64 %rd1, [data];
ld.param.u64 %rd2, [bins];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd3, %r1, 4;
add.s64 %rd4, %rd1, %rd3;
ld.global.u32 %r2, [%rd4];
mul.wide.u32 %rd3, %r2, 4;
add.s64 %rd5, %rd2, %rd3;
red.global.add.u32 [%rd5], 1;
ret;
}
"""
    values = np.random.default_rng(5).integers(0, 20, 96).astype(np.uint32)
    data, bins = ws.cuda.array(values), ws.cuda.array(np.zeros(20, np.uint32))
    kernel = ws.cuda.compile(source).kernel("count").launch(1, 96, data, bins)
    expected = []
    for warp in values.reshape(-1, 32).tolist():
        lanes = [(lane, 4 * value) for lane, value in enumerate(warp)]
        expected.append(plain.atomic_lanes(lanes, plain.sectors(lanes, 4)))
    assert lanes_of(kernel) == expected


@pytest.mark.parametrize("requests", ["per_line", "per_lane"])
def test_stages_agree_on_the_turns(requests):
    """What the caches count by slice is what the simulator sends, whatever words the lanes want."""
    gpu = ws.gpu("pascal-mdm").replace(atomic_requests=requests, l2_atomic_lane_turns=0)
    for bins in (1, 8, 64):
        kernel = histogram(bins, grid=4, block=256)
        atomics = lanes_of(kernel)
        profile = ws.simulate_caches(kernel, gpu)
        stores = 3 * 4 * 8  # a line each
        traffic = ws.simulate(kernel, gpu).totals["noc_request_packets"]
        assert sum(profile._core.slice_turns) == traffic
        if requests == "per_lane":
            assert traffic == stores + sum(word for found in atomics for _, word in found)
