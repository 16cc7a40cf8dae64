"""Kernel traces: the builder, coalescing against its plain definition, columns, storage."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpstack as ws
from strategies import kernels
from twins import access as plain

OPCODES = [
    "LDG.E.U8",
    "LDG.E",
    "LDG.E.64",
    "LDG.E.128",
    "STG.E.U16",
    "STG.E.128",
    "LDL.128",
    "STL",
    "LDS",
    "LDS.64",
]


@settings(max_examples=200)
@given(
    st.sampled_from([*OPCODES, "LDS.128", "ATOMG.E.ADD", "STS.U8"]),
    st.lists(st.integers(0, 2**20), min_size=40, max_size=40),
    st.lists(st.booleans(), min_size=40, max_size=40),
    st.sampled_from([1, 4, 64, 4096]),
)
def test_coalescing_equals_plain_definition(opcode, values, active, spread):
    """40 threads: a full warp and one of eight lanes, any addresses, aligned or not."""
    addresses = np.array(values) % (spread * 40) + 0x5000
    k = ws.patterns.KernelBuilder("coalesce", grid=1, block=40)
    k.emit(opcode, dst=4, src=2, address=addresses, predicate=active)
    kernel = k.build()
    row = kernel.instructions.iloc[0]
    for warp, first in ((0, 0), (1, 32)):
        lanes = [
            (t - first, int(addresses[t])) for t in range(first, min(first + 32, 40)) if active[t]
        ]
        columns = kernel.warp(0, warp)
        assert columns["active_mask"].tolist() == [sum(1 << lane for lane, _ in lanes)]
        if row.space == "shared":
            assert columns["memory_count"].tolist() == [plain.wavefronts(lanes, row.width)]
            assert columns["sector"].size == 0
            continue
        if row.space == "local":
            touched = plain.local_sectors(lanes, row.width, warp)
        else:
            touched = plain.sectors(lanes, row.width)
        assert columns["sector"].tolist() == list(touched)
        assert columns["memory_count"].tolist() == [len(touched)]
        if row.kind == "load":
            assert columns["store_bytes"].size == 0
        else:
            assert columns["store_bytes"].tolist() == [plain.byte_mask(b) for b in touched.values()]


def test_sectors_by_hand():
    """Lane i reads 4 bytes at 12 + 4 i: bytes 12 to 139, five sectors from 0."""
    k = ws.patterns.KernelBuilder("hand", grid=1, block=32)
    k.emit("STG.E", src=(2, 4), address=12 + 4 * k.thread)
    columns = k.build().warp(0, 0)
    assert columns["sector"].tolist() == [0, 1, 2, 3, 4]
    assert columns["store_bytes"].tolist() == [0xFFFFF000, *[0xFFFFFFFF] * 3, 0x00000FFF]


def test_local_memory_is_interleaved():
    """32 lanes at one private offset touch 128 consecutive bytes: four sectors, other ones in each warp."""
    k = ws.patterns.KernelBuilder("local", grid=1, block=64)
    k.emit("LDL", dst=4, src=1, address=0xFFFBD0 + 0 * k.thread)
    k.emit("LDL", dst=4, src=1, address=0xFFFBD4 + 0 * k.thread)
    kernel = k.build()
    first, second = (kernel.warp(0, w)["sector"].tolist() for w in (0, 1))
    assert np.diff(first[:4]).tolist() == [1, 1, 1]
    assert first[4] == first[0] + 4  # the next word of all lanes follows
    assert not set(first) & set(second)


def test_bank_conflicts_by_hand():
    def wavefronts(opcode, address):
        k = ws.patterns.KernelBuilder("lds", grid=1, block=32)
        k.emit(opcode, dst=4, src=2, address=address(k.thread))
        return k.build().warp(0, 0)["memory_count"].tolist()

    assert wavefronts("LDS", lambda t: 4 * t) == [1]
    assert wavefronts("LDS", lambda t: 0 * t) == [1]  # broadcast
    assert wavefronts("LDS", lambda t: 128 * t) == [32]
    assert wavefronts("LDS", lambda t: 4 * (t // 2)) == [1]
    assert wavefronts("LDS.64", lambda t: 8 * t) == [2]
    assert wavefronts("LDS.128", lambda t: 16 * t) == [4]
    assert wavefronts("LDSM.16.M88.4", lambda t: 16 * t) == [4]


class TestBuilder:
    def test_divergence_and_predication(self):
        """A warp that no thread of reaches does not issue; a guarded-off one issues without access."""
        k = ws.patterns.KernelBuilder("divergent", grid=1, block=64)
        k.emit("LDG.E", dst=4, src=2, address=4 * k.thread, where=k.thread < 32)
        k.emit("LDG.E", dst=4, src=2, address=4 * k.thread, predicate=k.thread < 32)
        kernel = k.build()
        assert kernel.warp(0, 0)["active_mask"].tolist() == [0xFFFFFFFF] * 2
        assert kernel.warp(0, 1)["active_mask"].tolist() == [0]
        assert kernel.warp(0, 1)["memory_count"].tolist() == [0]
        assert kernel.num_instructions == 3
        assert kernel.num_memory_instructions == 3

    def test_partly_filled_warps(self):
        k = ws.patterns.KernelBuilder("partial", grid=(2, 1, 1), block=(5, 5, 2))
        k.emit("EXIT")
        kernel = k.build()
        assert kernel.warps_per_block == 2
        assert kernel.warp(1, 1)["active_mask"].tolist() == [(1 << 18) - 1]

    def test_loops_share_static_instructions(self):
        k = ws.patterns.KernelBuilder("loop", grid=1, block=32)
        load = k.instruction("LDG.E", dst=4, src=2)
        for i in range(5):
            k.issue(load, address=4 * k.thread + 128 * i)
        kernel = k.build()
        assert len(kernel.instructions) == 1
        assert kernel.instructions.executions.tolist() == [5]

    def test_registers_are_numbered_densely(self):
        k = ws.patterns.KernelBuilder("dense", grid=1, block=32)
        k.emit("DFMA", dst=10, src=(20, 255, 254))
        kernel = k.build()
        # R10 R11, R20 R21 and R254 (the pair R254:R255 ends in RZ) become 0 1, 2 3 and 4.
        assert kernel.instructions.destinations.tolist() == [[0, 1]]
        assert kernel.instructions.sources.tolist() == [[2, 3, 4]]
        assert kernel._core.num_registers == 5

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"grid": 0, "block": 32}, "grid = 0"),
            ({"grid": 1, "block": (8, 8, 8, 8)}, "block ="),
            ({"grid": 1, "block": 2048}, "block dim x = 2048 is outside 1 to 1024"),
            ({"grid": (1, 70000), "block": 32}, "grid dim y = 70000"),
        ],
    )
    def test_impossible_launches(self, arguments, message):
        with pytest.raises(ws.InputError, match=message):
            ws.patterns.KernelBuilder("bad", **arguments)

    def test_impossible_operands(self):
        k = ws.patterns.KernelBuilder("bad", grid=2, block=32)
        with pytest.raises(ws.InputError, match="dst: register 256 is outside 0 to 255"):
            k.emit("MOV", dst=256)
        with pytest.raises(ws.InputError, match=r"address has the shape \(3,\).*\(2, 32\)"):
            k.emit("LDG.E", dst=4, src=2, address=[1, 2, 3])
        with pytest.raises(ws.InputError, match="addresses are non-negative whole numbers"):
            k.emit("LDG.E", dst=4, src=2, address=-4 * k.thread - 4)
        with pytest.raises(ws.InputError, match="addresses are non-negative whole numbers"):
            k.emit("LDG.E", dst=4, src=2, address=0.5 * k.thread)

    def test_addresses_beyond_the_address_space(self):
        k = ws.patterns.KernelBuilder("bad", grid=1, block=32)
        k.emit("LDG.E", dst=4, src=2, address=np.full((1, 32), 2**64 - 8, dtype=np.uint64))
        with pytest.raises(ws.InputError, match="beyond the address space"):
            k.build()


def test_views_are_read_only_and_outlive_the_trace():
    kernel = ws.patterns.stream(blocks=1)
    sectors = kernel.warp(0, 0)["sector"]
    before = sectors.tolist()
    with pytest.raises(ValueError, match="read-only"):
        sectors[0] = 1
    del kernel
    assert sectors.tolist() == before


def test_dpki():
    """4 loads of two lines in 10 instructions: 400; of lines of 256 bytes only every other one: 200."""
    k = ws.patterns.KernelBuilder("dpki", grid=1, block=32)
    for i in range(4):
        k.emit("LDG.E", dst=4, src=2, address=64 + 128 * i + 4 * k.thread)
    for _ in range(6):
        k.emit("MOV", dst=1)
    kernel = k.build()
    assert kernel.dpki() == 400
    assert kernel.dpki(line_bytes=256) == 200
    with pytest.raises(ws.InputError, match="line_bytes = 48"):
        kernel.dpki(line_bytes=48)


def test_divergence_of_the_strided_kernel():
    """With GS = 32 each of the 16 loads of 116 instructions touches 32 lines: 1000 * 16 / 116."""
    assert ws.patterns.strided(32, blocks=4).dpki() == pytest.approx(1000 * 16 / 116)
    # With GS = 1 the first load of a warp is aligned and touches one line, the others two.
    assert ws.patterns.strided(1, blocks=4).dpki() == pytest.approx(1000 * 15 / 116)


def test_dpki_counts_loads_only():
    """A store of two lines does not count, a load of one line does not, an LDGSTS of two does."""
    k = ws.patterns.KernelBuilder("dpki", grid=1, block=32)
    k.emit("STG.E", src=(2, 4), address=64 + 4 * k.thread)
    k.emit("LDG.E", dst=4, src=2, address=4 * k.thread)
    k.emit("LDGSTS.E", src=(2, 3), address=64 + 4 * k.thread)
    k.emit("RED.E.ADD", src=(2, 4), address=64 + 4 * k.thread)
    assert k.build().dpki() == 250


def test_digest_covers_masks_and_the_launch():
    def build(where=32, grid=2, **launch):
        k = ws.patterns.KernelBuilder("digest", grid=grid, block=32, **launch)
        k.emit("MOV", dst=1, predicate=k.thread % 32 < where)
        return k.build().digest

    digests = {
        build(),
        build(where=31),
        build(grid=(1, 2)),
        build(registers_per_thread=99),
        build(shared_memory_bytes=512),
        build(launch_id=7),
    }
    assert len(digests) == 6
    assert build() == build()


@settings(max_examples=50)
@given(kernels())
def test_digest_depends_on_content_only(kernel):
    assert len(kernel.digest) == 32
    k = ws.patterns.KernelBuilder("random", grid=kernel.num_blocks, block=kernel.block[0])
    k.emit("NOP")
    assert k.build().digest != kernel.digest


def test_equal_kernels_have_equal_digests():
    assert ws.patterns.gather(blocks=3).digest == ws.patterns.gather(blocks=3).digest
    assert ws.patterns.gather(blocks=3).digest != ws.patterns.gather(blocks=3, seed=1).digest


def test_names():
    def short(name):
        k = ws.patterns.KernelBuilder(name, grid=1, block=32)
        k.emit("EXIT")
        return k.build().short_name

    assert short("_Z6KernelP4NodePiPbS2_S2_S1_i") == "Kernel"
    assert short("_ZN3foo3barILi4EEEvPf") == "bar"
    assert short("_ZN7cutlass6KernelI4GemmEEvT_") == "Kernel"
    assert short("saxpy(int, float*)") == "saxpy"
    assert short("_Zbroken") == "_Zbroken"
    assert short("_Z99short") == "_Z99short"
    assert short("plain") == "plain"


def test_selection_of_kernels():
    app = ws.App([ws.patterns.strided(1, blocks=1, launch_id=i) for i in (1, 2, 3)], "three")
    assert [k.launch_id for k in app.select([3, 1])] == [1, 3]
    with pytest.raises(ws.InputError, match="three has no kernel 4; its kernels are 1, 2, 3"):
        app.select([4])
    assert len(app) == 3
    assert app[1].launch_id == 2


def test_representations():
    app = ws.App([ws.patterns.strided(1, blocks=2)], "demo")
    assert "strided_gs1" in repr(app.kernels[0])
    assert "1 kernels" in repr(app)
    assert "<table" in app._repr_html_()
