"""Kernel traces: the builder, coalescing against its plain definition, columns, storage."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpstack as ws
from effort import rounds
from python_reference import access as plain
from strategies import kernels
from warpstack.traces.launches import launches_named

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


@pytest.mark.slow
@settings(max_examples=rounds(200))
@given(
    st.sampled_from([*OPCODES, "LDS.128", "ATOMG.E.ADD", "STS.U8"]),
    st.lists(st.integers(0, 2**20), min_size=40, max_size=40),
    st.lists(st.booleans(), min_size=40, max_size=40),
    st.sampled_from([1, 4, 64, 4096]),
    st.sampled_from([0, 0, 1, 2, 4]),
)
def test_coalescing_equals_plain_definition(opcode, values, active, spread, distance):
    """40 threads: a full warp and one of eight lanes, any addresses, aligned or not, also in pairs."""
    addresses = np.array(values) % (spread * 40) + 0x5000
    if distance:
        addresses = addresses[np.arange(40) & ~distance]
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
            expected = plain.wavefronts(lanes, row.width, load=row.kind == "load")
            assert columns["memory_count"].tolist() == [expected]
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


@pytest.mark.parametrize(
    ("place", "halves", "quarters"),
    [
        (lambda t: t // 2, 1, 2),  # lanes n and n ^ 1
        (lambda t: (t & 1) | (t // 4 * 2), 1, 2),  # lanes n and n ^ 2
        (lambda t: 0 * t + 5, 1, 2),
        (lambda t: t, 2, 4),
        (lambda t: (t & 3) | (t // 8 * 4), 2, 4),  # lanes n and n ^ 4
        (lambda t: np.where(t == 31, 48, t // 2), 2, 4),  # all pairs but one
    ],
)
def test_pairs_of_wide_shared_loads_by_hand(place, halves, quarters):
    """A wavefront returns 128 bytes: equal addresses of all pairs go back once (NVIDIA, 7.0 to 7.5)."""

    def wavefronts(opcode, width):
        k = ws.patterns.KernelBuilder("lds", grid=1, block=32)
        k.emit(opcode, dst=4 if opcode[0] == "L" else (), src=2, address=width * place(k.thread))
        return k.build().warp(0, 0)["memory_count"].tolist()

    assert wavefronts("LDS.64", 8) == [halves]
    assert wavefronts("LDS.128", 16) == [quarters]
    assert wavefronts("STS.64", 8) == [2]  # nothing goes back
    assert wavefronts("STS.128", 16) == [4]


def test_pairs_of_matrix_loads_are_rows():
    k = ws.patterns.KernelBuilder("ldsm", grid=1, block=32)
    k.emit("LDSM.16.M88.4", dst=4, src=2, address=16 * (k.thread // 2))
    assert k.build().warp(0, 0)["memory_count"].tolist() == [4]


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
            ({"grid": 1.5, "block": 32}, "grid = 1.5 is not a whole number"),
            ({"grid": (), "block": 32}, "grid = .* has 0 numbers; expected one to three"),
            ({"grid": 1, "block": 32, "launch_id": -1}, "launch_id = -1 is outside"),
            ({"grid": 1, "block": 32, "registers_per_thread": 1.5}, "registers_per_thread = 1.5"),
        ],
    )
    def test_impossible_launches(self, arguments, message):
        with pytest.raises(ws.InputError, match=message):
            ws.patterns.KernelBuilder("bad", **arguments)

    def test_impossible_operands(self):
        k = ws.patterns.KernelBuilder("bad", grid=2, block=32)
        with pytest.raises(ws.InputError, match="dst = 256 is outside 0 to 255"):
            k.emit("MOV", dst=256)
        with pytest.raises(ws.InputError, match=r"address has the shape \(3,\).*\(2, 32\)"):
            k.emit("LDG.E", dst=4, src=2, address=[1, 2, 3])
        with pytest.raises(ws.InputError, match="addresses are non-negative whole numbers"):
            k.emit("LDG.E", dst=4, src=2, address=-4 * k.thread - 4)
        with pytest.raises(ws.InputError, match="addresses are non-negative whole numbers"):
            k.emit("LDG.E", dst=4, src=2, address=0.5 * k.thread)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"opcode": 3}, "opcode = 3 is not an opcode"),
            ({"opcode": ""}, "opcode = '' is not an opcode"),
            ({"opcode": "LD G"}, "opcode = 'LD G' is not an opcode"),
            ({"opcode": "\ud800"}, "is not an opcode"),
            ({"dst": 1.5}, "dst = 1.5 is not a whole number"),
            ({"src": "R1"}, "src = 'R' is not a whole number"),
            ({"pc": -1}, "pc = -1 is outside 0"),
            ({"where": "all"}, "where: expected booleans"),
            ({"predicate": [0.5] * 32}, "predicate: expected booleans"),
            ({"address": [[1, 2], [3]]}, "address: the rows have different lengths"),
            ({"address": "x"}, "addresses are non-negative whole numbers"),
        ],
    )
    def test_wrong_arguments(self, arguments, message):
        k = ws.patterns.KernelBuilder("bad", grid=2, block=32)
        with pytest.raises(ws.InputError, match=message):
            k.emit(**{"opcode": "LDG.E", "dst": 4, "src": 2, **arguments})

    def test_numbers_of_numpy(self):
        def build(integer):
            k = ws.patterns.KernelBuilder(
                "numpy", grid=np.array([2, 1]), block=integer(32), launch_id=integer(3)
            )
            k.emit("LDG.E", dst=integer(4), src=np.array([2]), pc=integer(16), address=integer(64))
            return k.build()

        assert build(np.int32).digest == build(np.uint64).digest == build(int).digest

    def test_instructions_of_another_builder(self):
        """Its row is another instruction here, or none at all."""
        one = ws.patterns.KernelBuilder("one", grid=1, block=32)
        declared = one.instruction("MOV")
        with pytest.raises(ws.InputError, match="MOV was declared by another builder"):
            ws.patterns.KernelBuilder("two", grid=1, block=32).issue(declared)
        with pytest.raises(ws.InputError, match="expected what `instruction` returned, got 0"):
            one.issue(0)

    def test_is_used_up_by_building(self):
        k = ws.patterns.KernelBuilder("once", grid=1, block=32)
        k.emit("EXIT")
        k.build()
        with pytest.raises(ws.InputError, match="was built already"):
            k.build()

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


@pytest.mark.slow
@settings(max_examples=rounds(50))
@given(kernels())
def test_digest_depends_on_content_only(kernel):
    assert len(kernel.digest) == 32
    k = ws.patterns.KernelBuilder("random", grid=kernel.num_blocks, block=kernel.block[0])
    k.emit("NOP")
    assert k.build().digest != kernel.digest


def test_equal_kernels_have_equal_digests():
    assert ws.patterns.gather(blocks=3).digest == ws.patterns.gather(blocks=3).digest
    assert ws.patterns.gather(blocks=3).digest != ws.patterns.gather(blocks=3, seed=1).digest


@pytest.mark.parametrize("name", [3, "\ud800", "a\nb"])
def test_names_are_printable_text(name):
    with pytest.raises(ws.InputError, match=r"name = .* is not printable text"):
        ws.patterns.KernelBuilder(name, grid=1, block=32)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ws.patterns.strided(1.5), "gs = 1.5 is not a whole number"),
        (lambda: ws.patterns.strided(1, iterations=-1), "iterations = -1 is outside"),
        (lambda: ws.patterns.strided(1, warps_per_block=33), "warps_per_block = 33 is outside 1"),
        (lambda: ws.patterns.stream(loads="2"), "loads = '2' is not a whole number"),
        (lambda: ws.patterns.gather(footprint_mib=0), "footprint_mib = 0 is not a size"),
        (
            lambda: ws.patterns.gather(footprint_mib=float("nan")),
            "footprint_mib = nan is not a size",
        ),
        (lambda: ws.patterns.gather(seed=-1), "seed = -1 is outside"),
    ],
)
def test_wrong_arguments_of_patterns(make, message):
    with pytest.raises(ws.InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("block", "warp", "message"),
    [
        (-1, 0, "block = -1 is outside 0 to 1"),
        (2, 0, "block = 2 is outside 0 to 1"),
        (0, 8, "warp = 8 is outside 0 to 7"),
        (0, -1, "warp = -1 is outside 0 to 7"),
        (0.0, 0, "block = 0.0 is not a whole number"),
        (2**40, 0, "block = 1099511627776 is outside"),
        (0, True, "warp = True is not a whole number"),
    ],
)
def test_warps_that_are_not_there(block, warp, message):
    with pytest.raises(ws.InputError, match=message):
        ws.patterns.stream(blocks=2).warp(block, warp)


def test_positions_may_be_numbers_of_numpy():
    kernel = ws.patterns.stream(blocks=2)
    columns = kernel.warp(np.int64(1), np.uint8(3))
    np.testing.assert_array_equal(columns["sector"], kernel.warp(1, 3)["sector"])
    assert kernel.dpki(np.int64(128)) == kernel.dpki(128)
    with pytest.raises(ws.InputError, match="line_bytes = 'x' is not a whole number"):
        kernel.dpki("x")


def test_names():
    def short(name):
        k = ws.patterns.KernelBuilder(name, grid=1, block=32)
        k.emit("EXIT")
        return k.build().short_name

    assert short("_Z6KernelP4NodePiPbS2_S2_S1_i") == "Kernel"
    assert short("_ZN3foo3barILi4EEEvPf") == "bar"
    assert short("_ZN7cutlass6KernelI4GemmEEvT_") == "Kernel"
    assert short("saxpy(int, float*)") == "saxpy"
    assert short("__nv_static_23__f2b5740a_4_b_cu__Z2fbi__Z5samekPi") == "samek"
    assert short("__nv_static_odd") == "__nv_static_odd"
    assert short("_Zbroken") == "_Zbroken"
    assert short("_Z99short") == "_Z99short"
    assert short("_Z" + "9" * 5000) == "_Z" + "9" * 5000
    assert short("_ZN3foo" + "1" * 5000 + "E") == "foo"
    assert short("_Z\N{SUPERSCRIPT TWO}ab") == "_Z\N{SUPERSCRIPT TWO}ab"
    assert short("plain") == "plain"


def test_selection_of_kernels():
    app = ws.App([ws.patterns.strided(1, blocks=1, launch_id=i) for i in (1, 2, 3)], "three")
    assert [k.launch_id for k in app.select([3, 1])] == [1, 3]
    with pytest.raises(ws.InputError, match="three has no kernel 4; its kernels are 1, 2, 3"):
        app.select([4])
    assert len(app) == 3
    assert app[1].launch_id == 2
    assert [k.launch_id for k in app.select(2)] == [2]
    assert [k.launch_id for k in app.select([np.int64(1), range(2, 4)])] == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("gemm", [1, 3]),
        ("gemm,add", [1, 3, 2]),
        ("g*", [1, 3]),
        ("*", [1, 2, 3, 4]),
        ("2,gemm", [2, 1, 3]),
        ("2-3,add", [2, 3, 2]),
        ("pair<int, 4>", [4]),
        ("pair<*", [4]),
        ("gemm(float*)", [1, 3]),
    ],
)
def test_launches_are_chosen_by_names(text, chosen):
    kernels = [
        dataclasses.make_dataclass("Kernel", ["launch_id", "short_name", "name"])(*values)
        for values in (
            (1, "gemm", "gemm(float*)"),
            (2, "add", "add(float*)"),
            (3, "gemm", "gemm(float*)"),
            (4, "pair<int, 4>", "void pair<int, 4>(int*)"),
        )
    ]
    assert [i for part in launches_named(kernels, text, "--") for i in part] == chosen
    with pytest.raises(ws.InputError, match="no kernel is called 'x'; there are gemm, add, pair"):
        launches_named(kernels, f"{text},x" if "," not in text else "x", "--")


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (range(2, 10**30), "three has no kernel 4; its kernels are 1, 2, 3"),
        ([range(1, 3), range(3, 2**62)], "three has no kernel 4"),
        ([], "no launch is chosen"),
        (range(3, 1), r"range\(3, 1\) is empty"),
        ("1", "expected launch numbers such as"),
        ([1.5], "kernels = 1.5 is not a whole number"),
        ([-1], "kernels = -1 is outside"),
        (None, "kernels = None is not a whole number"),
    ],
)
def test_wrong_selections(choice, message):
    app = ws.App([ws.patterns.strided(1, blocks=1, launch_id=i) for i in (1, 2, 3)], "three")
    with pytest.raises(ws.InputError, match=message):
        app.select(choice)


def test_many_launches_are_not_all_named():
    app = ws.App([ws.patterns.strided(1, 1, 1, launch_id=i) for i in range(1, 31)])
    with pytest.raises(ws.InputError, match="its 30 kernels have numbers from 1 to 30"):
        app.select(31)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3,), "kernels: expected a sequence of KernelTraces, got 3"),
        (([3],), "kernels: an item: expected a KernelTrace, got"),
        (([], 3), "name: expected text, got 3"),
    ],
)
def test_wrong_applications(arguments, message):
    with pytest.raises(ws.InputError, match=message):
        ws.App(*arguments)
    with pytest.raises(ws.InputError, match=r"write App\(\[kernel\]\)"):
        ws.App(ws.patterns.stream(blocks=1))


def test_representations():
    app = ws.App([ws.patterns.strided(1, blocks=2)], "demo")
    assert "strided_gs1" in repr(app.kernels[0])
    assert "1 kernels" in repr(app)
    assert "<table" in app._repr_html_()
