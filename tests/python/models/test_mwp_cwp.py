"""MWP-CWP against the paper's example and figures, and its kernel descriptions against each other."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpstack as ws
from effort import rounds
from machines import plain_pascal
from warpstack.models import mwp_cwp
from warpstack.models.mwp_cwp import is_coalesced, symbols, transactions

TILED = mwp_cwp.KernelDescription(
    threads_per_block=128,
    num_blocks=80,
    active_blocks_per_sm=5,
    active_sms=16,
    comp_insts=27,
    uncoal_mem_insts=6,
    coal_mem_insts=0,
    synch_insts=6,
    uncoal_per_mw=32,
    load_bytes_per_warp=128,
    name="tiled",
)
#: Section 3.5: 80 GB/s, 1 GHz and 16 SMs.
EXAMPLE = mwp_cwp.machine("quadro-fx5600").replace(clock_ghz=1, memory_bandwidth_gbs=80)


class TestTable2:
    found = mwp_cwp.predict(TILED, EXAMPLE)

    def test_every_value(self):
        found = self.found
        assert found.active_warps_per_sm == 20
        assert found.departure_delay == 320
        assert found.mem_l == 730
        assert found.mwp_without_bw_full == 730 / 320  # 2.28125, printed as 2.28
        assert found.bw_per_warp_gbs == pytest.approx(128 / 730)  # 0.17534, printed as 0.175
        # 80 / (0.17534 * 16) = 28.516; the paper divides by the rounded 0.175: 28.57.
        assert found.mwp_peak_bw == pytest.approx(80 * 730 / 128 / 16)
        assert found.mwp == 2.28125
        assert found.comp_cycles == 132
        assert found.mem_cycles == 4380
        assert found.cwp_full == pytest.approx(34.18, abs=0.005)
        assert found.cwp == 20
        assert found.rep == 1
        assert found.case == 23
        # 4380 * 20 / 2.28125 + 22 * 1.28125 = 38400 + 28.1875
        assert found.exec_cycles == pytest.approx(38428.1875)
        # 320 * 1.28125 * 6 * 5
        assert found.synch_cost == pytest.approx(12300)
        assert found.cycles == pytest.approx(50728.1875)
        # 33 instructions, 4 warps a block, 5 blocks an SM: 660 instructions of an SM.
        assert found.cpi == pytest.approx(38428.1875 / 660)
        assert found.cpi_with_synch == pytest.approx(50728.1875 / 660)

    def test_with_the_papers_rounding(self):
        found = mwp_cwp.predict(TILED, EXAMPLE, mwp=2.28)
        assert found.exec_cycles == pytest.approx(38450, abs=1)  # 38421.05 + 28.16 = 38449.2
        assert found.synch_cost == pytest.approx(12288)
        assert found.cycles == pytest.approx(50738, abs=1)


def periods(count, warps, departure, *, computation=100, memory=300):
    """`count` computation periods and memory waiting periods of each of `warps` warps."""
    kernel = mwp_cwp.KernelDescription(
        threads_per_block=32 * warps,
        num_blocks=1,
        active_blocks_per_sm=1,
        comp_insts=(computation - 1) * count,
        coal_mem_insts=count,
    )
    machine = mwp_cwp.Machine(
        num_sms=1,
        clock_ghz=1,
        memory_bandwidth_gbs=1e9,
        dram_latency=memory,
        uncoalesced_departure=1,
        coalesced_departure=departure,
        issue_cycles=1,
        warps_per_sm=64,
    )
    return mwp_cwp.predict(kernel, machine)


@pytest.mark.parametrize(
    ("count", "warps", "departure", "mwp", "cwp", "case", "cycles"),
    [
        # Figure 5: MWP = 300 / 150 = 2, CWP = 400 / 100 = 4. Eight periods of memory, two at a
        # time, and the computation before the first: 4 * 300 + 100 (Eq. 23; the text of Section
        # 3.2.1 counts a second computation period, Eq. 1).
        (1, 8, 150, 2, 4, 23, 1300),
        (2, 4, 150, 2, 4, 23, 1300),
        # Figure 6a: MWP = 8, CWP = 4: eight periods of computation and one of memory.
        (1, 8, 37.5, 8, 4, 24, 1100),
        # Figure 6b: the same periods of four warps: 600 + 200 + 3 * 100.
        (2, 4, 37.5, 4, 4, 22, 1100),
        # Figure 8: one warp, everything in a row; two warps, two at a time.
        (2, 1, 37.5, 1, 1, 22, 800),
        (2, 2, 37.5, 2, 2, 22, 900),
    ],
)
def test_figures_5_to_8(count, warps, departure, mwp, cwp, case, cycles):
    found = periods(count, warps, departure)
    assert (found.mwp, found.cwp, found.case, found.cycles) == (mwp, cwp, case, cycles)


def test_figure_7_as_the_equations_print_it():
    """Computation periods of 300 cycles, memory of 100: Eq. 23, though the text counts 2500."""
    found = periods(1, 8, 12.5, computation=300, memory=100)
    assert (found.mwp, found.cwp, found.case) == (8, pytest.approx(4 / 3), 23)
    assert found.cycles == 100 * 8 / 8 + 300 * 7


def test_figure_21_saturation():
    """MWP stops growing with the warps; what Tables 3 and 6 give (docs/explanation/mwp-cwp.md compares)."""
    warps = np.arange(1, 33)
    kernel = mwp_cwp.KernelDescription(
        threads_per_block=32,
        num_blocks=960,
        active_blocks_per_sm=warps,
        comp_insts=10,
        coal_mem_insts=1,
    )
    found = mwp_cwp.predict(kernel, "gtx280")
    # 141.7 GB/s over 30 SMs of 1.3 GHz * 128 B / 450 cycles: bandwidth is the limit.
    limit = 141.7 * 450 / (1.3 * 128 * 30)
    assert limit == pytest.approx(12.773, abs=0.001)
    np.testing.assert_allclose(found.mwp, np.minimum(warps, limit))
    # The paper's 9 takes 181.7 bytes a warp, or 99.9 GB/s.
    wide = mwp_cwp.predict(kernel.replace(load_bytes_per_warp=181.65), "gtx280")
    assert wide.mwp.max() == pytest.approx(9, abs=0.01)
    # Uncoalesced: (450 + 40 (n - 1)) / (40 n) for n transactions never reaches the bandwidth.
    uncoalesced = kernel.replace(coal_mem_insts=0, uncoal_mem_insts=1, uncoal_per_mw=3)
    found = mwp_cwp.predict(uncoalesced, "gtx280")
    assert found.mwp.max() == pytest.approx(530 / 120)
    assert (found.mwp < found.mwp_peak_bw).all()
    # Two and three transactions surround the paper's 5.
    found = mwp_cwp.predict(uncoalesced.replace(uncoal_per_mw=2), "gtx280")
    assert found.mwp.max() == pytest.approx(490 / 80)


def test_machines_of_tables_3_and_6():
    fields = ("num_sms", "clock_ghz", "memory_bandwidth_gbs", "dram_latency")
    fields += ("uncoalesced_departure", "coalesced_departure", "compute_capability")
    table = {
        name: tuple(getattr(mwp_cwp.machine(name), field) for field in fields)
        for name in mwp_cwp.machines()
    }
    assert table == {
        "8800gtx": (16, 1.35, 86.4, 420, 10, 4, 1.0),
        "quadro-fx5600": (16, 1.35, 76.8, 420, 10, 4, 1.0),
        "8800gt": (14, 1.5, 57.6, 420, 10, 4, 1.1),
        "gtx280": (30, 1.3, 141.7, 450, 40, 4, 1.3),
    }
    # 768 threads of 10 registers: 8192 // (10 * 256) = 3 blocks of 256.
    assert mwp_cwp.machine("8800gtx").active_blocks_per_sm(256, 10) == 3
    # Tiled matrix multiplication: 3960 bytes of 16384.
    assert mwp_cwp.machine("8800gtx").active_blocks_per_sm(128, 10, 3960) == 4


def test_independent_accesses():
    """Eq. 29, 30: with two warps and three of four accesses independent, N_pw = 2 * 3 / 1."""
    kernel = mwp_cwp.KernelDescription(
        threads_per_block=64,
        num_blocks=16,
        active_blocks_per_sm=1,
        comp_insts=16,
        coal_mem_insts=4,
        independent_mem_insts=3,
    )
    found = mwp_cwp.predict(kernel, "quadro-fx5600")
    assert (found.parallel_warps, found.mwp, found.case) == (6, 6, 22)
    # Eq. 4: (4 * 420 + 80) * 2 / 6 + 20 * 5
    assert found.cycles == pytest.approx(1760 / 3 + 100)
    dependent = mwp_cwp.predict(kernel.replace(independent_mem_insts=0), "quadro-fx5600")
    assert (dependent.parallel_warps, dependent.mwp) == (2, 2)
    assert dependent.cycles == 4 * 420 + 80 + 20
    # Enough warps: both take the same time (Figure 26).
    many = kernel.replace(threads_per_block=512, active_blocks_per_sm=32)
    assert (
        mwp_cwp.predict(many, "8800gt").cycles
        == mwp_cwp.predict(many.replace(independent_mem_insts=0), "8800gt").cycles
    )


def test_long_latency_computation():
    """Eq. 31 with Table 7: 30 additions and 10 integer multiplications."""
    factor = (30 * mwp_cwp.m_factor("add.f32") + 10 * mwp_cwp.m_factor("mul.lo.s32")) / 40
    assert factor == pytest.approx((30 + 43) / 40)
    kernel = mwp_cwp.KernelDescription(
        threads_per_block=32,
        num_blocks=16,
        active_blocks_per_sm=1,
        comp_insts=40,
        m_factor=factor,
    )
    found = mwp_cwp.predict(kernel, "8800gtx")
    assert (found.case, found.cycles) == (0, pytest.approx(4 * 73))
    for opcode, factor in {
        "div.rn.f32": 4.2,
        "mad.lo.s32": 4.3,
        "fma.rn.f32": 1,
        "div.s32": 30,
        "rem.u32": 35,
        "IMAD.WIDE": 4.3,
        "IMAD.MOV.U32": 1,
        "FFMA": 1,
    }.items():
        assert mwp_cwp.m_factor(opcode) == factor, opcode


def test_divergent_paths_add_up():
    """Figure 27: B1B2B4B6B7, B1B2B5B6B7 and B1B3B7 of 7 blocks, 10 instructions each, run serially."""
    block = mwp_cwp.KernelDescription(
        threads_per_block=32, num_blocks=16, active_blocks_per_sm=1, comp_insts=10
    )
    load = block.replace(comp_insts=9, uncoal_mem_insts=1, uncoal_per_mw=8)
    whole = mwp_cwp.KernelDescription.of_paths([block, load, load.replace(uncoal_per_mw=4)])
    assert (whole.comp_insts, whole.uncoal_mem_insts, whole.uncoal_per_mw) == (28, 2, 6)
    assert whole.total_insts == 30
    with pytest.raises(ws.InputError, match="there is no path"):
        mwp_cwp.KernelDescription.of_paths([])


@pytest.mark.slow
@settings(max_examples=rounds(60))
@given(st.data())
def test_vectorised_is_one_by_one(data):
    """Arrays of configurations give what each configuration gives alone."""
    count = 4

    def values(low, high):
        return np.array(data.draw(st.lists(st.integers(low, high), min_size=count, max_size=count)))

    coal, uncoal = values(0, 4), values(0, 4)
    fields = {
        "threads_per_block": values(1, 512),
        "num_blocks": values(1, 300),
        "active_blocks_per_sm": values(1, 8),
        "comp_insts": values(1, 200),
        "coal_mem_insts": coal,
        "uncoal_mem_insts": uncoal,
        "uncoal_per_mw": values(2, 32),
        "synch_insts": values(0, 9),
        "independent_mem_insts": np.minimum(values(0, 8), coal + uncoal),
    }
    clocks = values(1, 4) / 2
    machine = mwp_cwp.machine("gtx280")
    table = mwp_cwp.predict(
        mwp_cwp.KernelDescription(**fields), machine.replace(clock_ghz=clocks)
    ).to_frame()
    assert len(table) == count
    for i in range(count):
        alone = mwp_cwp.predict(
            mwp_cwp.KernelDescription(**{name: value[i] for name, value in fields.items()}),
            machine.replace(clock_ghz=clocks[i]),
        )
        for name in table:
            assert table[name][i] == getattr(alone, name), name
        assert alone.mwp >= 0
        assert alone.cycles > 0


class TestAlgorithm1:
    tx, ty, bx, a, width = symbols("tx ty bx a width")

    def test_good(self):
        assert is_coalesced(self.tx, 4)
        assert is_coalesced(128 * self.bx + self.tx, 8)
        assert is_coalesced(16 * self.a + 32 * self.ty + self.tx + 48, 16)

    def test_step_1(self):
        assert not is_coalesced(self.tx, 1)
        assert not is_coalesced(self.tx, 2)
        assert not is_coalesced(self.tx, 12)

    def test_step_2(self):
        assert not is_coalesced(2 * self.tx, 4)
        assert not is_coalesced(self.a * 16, 4)
        assert not is_coalesced(-self.tx, 4)
        assert not is_coalesced(self.tx * self.tx, 4)
        assert not is_coalesced(self.width * self.tx, 4)

    def test_step_3(self):
        assert not is_coalesced(self.tx + 1, 4)
        assert not is_coalesced(self.tx + 8 * self.bx, 4)
        # Figure 12, lines 13 and 14.
        assert not is_coalesced(self.a + self.width * self.ty + self.tx, 4)
        # With a width of whole half-warps, and tiles that begin with one.
        aligned = (self.a + self.width * self.ty + self.tx).substitute({"width": 64})
        assert is_coalesced(aligned.substitute({"a": 16 * self.bx}), 4)


class TestAlgorithm2:
    tx, ty, a, width = symbols("tx ty a width")

    @pytest.mark.parametrize(
        ("size", "bytes_each"), [(1, 32), (2, 64), (4, 128), (8, 128), (16, 128)]
    )
    def test_sizes(self, size, bytes_each):
        # 16 elements: 16, 32, 64, 128 and 256 bytes.
        found = transactions(self.tx, size)
        assert (found.count, found.size_bytes) == (2 if size == 16 else 1, bytes_each)
        assert found.is_coalesced == (size < 16)

    def test_step_2_adds_one(self):
        assert transactions(self.tx + 1, 4).count == 2
        assert transactions(self.a + self.width * self.ty + self.tx, 4).count == 2

    def test_step_4(self):
        # 3 * 16 * 4 = 192 bytes: 2; 8 * 16 * 4 = 512: 4; unaligned one more.
        assert transactions(3 * self.tx, 4).count == 2
        assert transactions(8 * self.tx, 4).count == 4
        assert transactions(8 * self.tx + 3, 4).count == 5
        assert transactions(1000 * self.tx, 4).count == 16
        assert transactions(self.width * self.tx, 4).count == 16
        assert transactions(self.a * 16, 4).count == 1

    def test_bad_size(self):
        with pytest.raises(ws.InputError, match="size = 3"):
            transactions(self.tx, 3)


@given(
    st.integers(-40, 40),
    st.integers(-64, 64),
    st.integers(-40, 40),
    st.sampled_from([1, 2, 4, 8, 16]),
)
def test_algorithm_1_is_what_indexes_do(step, row, start, size):
    """The symbolic steps against the indexes themselves of 4 half-warps in 3 rows."""
    tx, ty = symbols("tx ty")
    index = np.array([[step * x + row * y + start for x in range(64)] for y in range(3)])
    good = size in (4, 8, 16) and (np.diff(index, axis=1) == 1).all()
    good = good and (index[:, ::16] % 16 == 0).all()
    assert is_coalesced(step * tx + row * ty + start, size) == good


#: Figure 13's loop, with the counting that it leaves out, and something before and after it.
TILED_PTX = """
.version 7.0
.target sm_50
.address_size 64
.visible .entry tiled(.param .u64 M, .param .u64 N, .param .u64 P, .param .u32 wM, .param .u32 wN,
                      .param .u32 steps)
{
  .reg .pred %p<3>;
  .reg .f32 %f<8>;
  .reg .b32 %r<32>;
  .reg .b64 %rd<32>;
  .shared .align 4 .b8 Msub[512];
  .shared .align 4 .b8 Nsub[512];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %tid.y;
  mov.u32 %r3, %ctaid.x;
  ld.param.u32 %r4, [wM];
  ld.param.u32 %r5, [wN];
  ld.param.u32 %r6, [steps];
  ld.param.u64 %rd1, [M];
  ld.param.u64 %rd2, [N];
  ld.param.u64 %rd3, [P];
  shl.b32 %r7, %r3, 3;
  add.s32 %r8, %r7, %r2;
  mad.lo.s32 %r9, %r8, %r4, %r1;
  mul.wide.s32 %rd4, %r9, 4;
  add.s64 %rd23, %rd1, %rd4;
  mad.lo.s32 %r10, %r2, %r5, %r1;
  mul.wide.s32 %rd5, %r10, 4;
  add.s64 %rd19, %rd2, %rd5;
  shl.b32 %r11, %r2, 4;
  add.s32 %r12, %r11, %r1;
  shl.b32 %r13, %r12, 2;
  mov.u32 %r14, Msub;
  add.s32 %r15, %r14, %r13;
  mov.u32 %r16, Nsub;
  add.s32 %r17, %r16, %r13;
  mov.f32 %f1, 0f00000000;
  mov.u32 %r21, 0;
OUTERLOOP:
  ld.global.f32 %f2, [%rd23+0];
  st.shared.f32 [%r15+0], %f2;
  ld.global.f32 %f3, [%rd19+0];
  st.shared.f32 [%r17+0], %f3;
  bar.sync 0;
  ld.shared.f32 %f4, [%r15+0];
  ld.shared.f32 %f5, [%r17+0];
  fma.rn.f32 %f1, %f4, %f5, %f1;
  bar.sync 0;
COUNTING
  setp.lt.s32 %p2, %r21, %r6;
  @%p2 bra OUTERLOOP;
  add.s64 %rd27, %rd3, %rd4;
  st.global.f32 [%rd27+0], %f1;
  ret;
}
"""
COUNTING = """  add.s64 %rd23, %rd23, 64;
  add.s64 %rd19, %rd19, 64;
  add.s32 %r21, %r21, 1;"""


class TestThreeDescriptions:
    def kernel(self, counting=COUNTING):
        return ws.cuda.compile(TILED_PTX.replace("COUNTING", counting)).kernel("tiled")

    def test_figure_13_as_printed(self):
        """The loop alone is Table 2's kernel."""
        table = mwp_cwp.static_instructions(self.kernel(""), trip_counts={"OUTERLOOP": 3})
        loop = table[(table["block"] == "OUTERLOOP") & (table["executions"] == 3)]
        runs = loop.groupby("kind")["executions"].sum()
        assert runs["comp"] + runs["synch"] == TILED.comp_insts
        assert runs["mem"] == TILED.uncoal_mem_insts
        assert runs["synch"] == TILED.synch_insts
        indexes = loop.loc[loop["kind"] == "mem", "index"]
        assert not any(is_coalesced(index, 4) for index in indexes)

    @pytest.mark.parametrize("width", [50, 64])
    def test_agree(self, width):
        """A width of 50 floats makes accesses uncoalesced; 64, and tiles of 16, coalesced ones."""
        # By hand: 22 instructions before the loop that are not parameters, 3 times 12 in it, and
        # add and ret after it; M, N and 3 times, and P once. 3 of mad and mul.wide and one mad
        # are integer multiplications: (58 + 7 + 4 * 3.3) / 65.
        mem = {"uncoal_mem_insts" if width == 50 else "coal_mem_insts": 7}
        typed = mwp_cwp.KernelDescription(
            threads_per_block=128,
            num_blocks=80,
            active_blocks_per_sm=5,
            comp_insts=20 + 3 * 12 + 2,
            synch_insts=6,
            m_factor=(65 + 4 * 3.3) / 65,
            name="tiled",
            **mem,
        )
        static = mwp_cwp.describe_ptx(
            self.kernel(),
            80,
            (16, 8),
            "quadro-fx5600",
            trip_counts={"OUTERLOOP": 3},
            parameters={"wM": width, "wN": width},
            active_blocks_per_sm=5,
        )
        m, n, p = (ws.cuda.zeros(80 * 8 * width + 100, np.float32) for _ in range(3))
        sizes = (np.int32(width), np.int32(width), np.int32(3))
        trace = self.kernel().launch(80, (16, 8), m, n, p, *sizes)
        measured = mwp_cwp.describe_trace(trace, "quadro-fx5600", active_blocks_per_sm=5)
        for found in (static, measured):
            for field, value in vars(typed).items():
                assert getattr(found, field) == pytest.approx(value), field
        cycles = mwp_cwp.predict(typed, "quadro-fx5600").cycles
        for found in (static, measured):
            assert mwp_cwp.predict(found, "quadro-fx5600").cycles == pytest.approx(cycles)

    def test_widths_that_are_not_known(self):
        found = mwp_cwp.describe_ptx(
            self.kernel(), 80, (16, 8), "8800gt", trip_counts={"OUTERLOOP": 3}
        )
        assert (found.uncoal_mem_insts, found.uncoal_per_mw) == (7, 32)
        # Algorithm 2: unaligned, 64 bytes of a half-warp.
        newer = mwp_cwp.describe_ptx(
            self.kernel(), 80, (16, 8), "gtx280", trip_counts={"OUTERLOOP": 3}
        )
        assert (newer.uncoal_mem_insts, newer.uncoal_per_mw) == (7, 2)
        # 20 registers at least: what fits is not the 8 that an SM has slots for.
        assert found.active_blocks_per_sm < 8

    def test_values_that_threads_may_disagree_on(self):
        """A step under a guard, and one of two values by a branch, are not counters."""
        guarded = COUNTING.replace("  add.s64 %rd23", "  @%p1 add.s64 %rd23")
        kernel = self.kernel("  setp.lt.s32 %p1, %r1, 3;\n" + guarded)
        table = mwp_cwp.static_instructions(kernel, trip_counts={"OUTERLOOP": 3})
        first, second, _ = table.loc[table["kind"] == "mem", "index"]
        assert first.differs_by_thread
        assert "?value %rd23" in first.names
        assert not any(name.startswith("?") for name in second.names)
        assert not is_coalesced(first * 16, 4)
        assert transactions(first, 4).count == 16

    def test_paths_by_hand(self):
        kernel = self.kernel()
        table = mwp_cwp.static_instructions(
            kernel, trip_counts={"OUTERLOOP": 3}, executions={"OUTERLOOP": 2}
        )
        assert set(table.loc[table["block"] == "OUTERLOOP", "executions"]) == {2}

    def test_errors(self):
        kernel = self.kernel()
        for arguments, message in (
            ({}, r"how often does the loop at OUTERLOOP \(line 41\) run\?"),
            ({"trip_counts": {"LOOP": 3}}, "there is no loop 'LOOP'; did you mean OUTERLOOP"),
            ({"trip_counts": {"OUTERLOOP": -1}}, "OUTERLOOP = -1 is not a count"),
            ({"trip_counts": {"OUTERLOOP": 3}, "executions": {"X": 1}}, "no branch leads to"),
            ({"trip_counts": {"OUTERLOOP": 3}, "parameters": {"w": 1}}, "no parameter 'w';"),
        ):
            with pytest.raises(ws.InputError, match=message):
                mwp_cwp.static_instructions(kernel, **arguments)


def microbenchmark_trace(name, coalesced, threads, blocks, iterations=10):
    """A trace of a micro-benchmark: loads, each followed by its share of dependent computation."""
    loads, computation = mwp_cwp.MICROBENCHMARKS[name]
    k = ws.patterns.KernelBuilder(name, grid=blocks, block=threads, registers_per_thread=16)
    instructions = [
        (k.instruction("LDG.E", dst=4, src=2), k.instruction("FADD", dst=6, src=(4, 6)))
        for _ in range(max(loads, 1))
    ]
    filler = [k.instruction("FADD", dst=8 + i % 8, src=(3,)) for i in range(computation)]
    for iteration in range(iterations):
        for i, (load, use) in enumerate(instructions):
            left = computation
            if loads:
                number = (iteration * loads + i) * blocks * threads + k.thread
                k.issue(load, address=0x1000_0000 + number * (4 if coalesced else 128))
                k.issue(use)
                left = computation * (i + 1) // loads - computation * i // loads - 1
            for one in filler[:left]:
                k.issue(one)
    return k.build()


@pytest.mark.slow
def test_fit_finds_what_the_simulator_was_given():
    """Mb1 to Mb7 on a GPU whose latency and departures are known (Section 5.1)."""
    gpu = plain_pascal(
        num_sms=4,
        clock_ghz=1,
        issue_width=1,
        fp32_latency=1,
        blocks_per_sm=5,
        l1_sector_bytes=32,
        l2_sector_bytes=32,
        l1_mshrs=8192,
        l2_mshrs=8192,
        l2_queue_entries=4096,
        dram_queue_entries=4096,
        l1_miss_queue_entries=4096,
        l2_latency=120,
        dram_latency=300,
        # An SM receives 32 bytes in 10 cycles, 128 in 40.
        noc_sm_bytes_per_cycle=3.2,
        noc_bandwidth_gbs=1000,
        dram_bandwidth_gbs=1000,
    )
    machine = mwp_cwp.Machine(
        num_sms=4,
        clock_ghz=1,
        memory_bandwidth_gbs=1000,
        issue_cycles=1,
        dram_latency=1,
        uncoalesced_departure=1,
        coalesced_departure=1,
    )
    measurements = {}
    # Twenty warps an SM show the departures, one warp the latency.
    for threads, per_sm in ((128, 5), (32, 1)):
        for coalesced in (True, False):
            for name in mwp_cwp.MICROBENCHMARKS:
                trace = microbenchmark_trace(name, coalesced, threads, 4 * per_sm)
                kernel = mwp_cwp.microbenchmark(
                    name,
                    coalesced=coalesced,
                    threads_per_block=threads,
                    num_blocks=4 * per_sm,
                    active_blocks_per_sm=per_sm,
                    iterations=10,
                )
                assert trace.num_instructions / trace.num_warps == kernel.total_insts
                result = ws.simulate(trace, gpu)
                cpi = result.cycles / (trace.num_instructions / 4)
                measurements[f"{kernel.name}_{threads}"] = (kernel, cpi)
    fit = mwp_cwp.fit(measurements, machine)
    assert fit.machine.uncoalesced_departure == pytest.approx(10, rel=0.1)
    assert fit.machine.coalesced_departure == pytest.approx(40, rel=0.15)
    assert fit.machine.dram_latency == pytest.approx(420, rel=0.1)
    assert fit.error_percent < 10
    assert list(fit.table["kernel"]) == list(measurements)


def test_fit_of_its_own_predictions_and_errors():
    truth = mwp_cwp.machine("gtx280").replace(num_sms=4)
    kernels = {
        f"{name}{c}{blocks}": mwp_cwp.microbenchmark(
            name, coalesced=c, active_blocks_per_sm=blocks, num_blocks=80, uncoal_per_mw=8
        )
        for name in ("Mb1", "Mb2", "Mb4", "Mb6")
        for c in (True, False)
        for blocks in (1, 8)
    }
    measured = {name: (k, mwp_cwp.predict(k, truth).cpi) for name, k in kernels.items()}
    fit = mwp_cwp.fit(measured, truth.replace(dram_latency=7, uncoalesced_departure=7))
    assert fit.machine.dram_latency == pytest.approx(450, rel=0.01)
    assert fit.machine.uncoalesced_departure == pytest.approx(40, rel=0.01)
    assert fit.error_percent < 0.1
    few = {"a": (mwp_cwp.microbenchmark("Mb2", coalesced=True), 4.0)}
    with pytest.raises(ws.InputError, match="cannot tell 2 parameters"):
        mwp_cwp.fit(few, truth)
    with pytest.raises(ws.InputError, match="is not positive"):
        mwp_cwp.fit({"a": (few["a"][0], math.nan)}, truth)


def test_bad_input():
    for arguments, message in (
        ({"comp_insts": 0, "uncoal_mem_insts": 0}, "there are no instructions"),
        ({"comp_insts": -1}, "comp_insts = -1 is not a number at least 0"),
        ({"num_blocks": 0}, "num_blocks = 0 is not positive"),
        ({"independent_mem_insts": 7}, "more than the memory instructions"),
        ({"comp": 1}, "there is no field 'comp'"),
    ):
        with pytest.raises(ws.InputError, match=message):
            TILED.replace(**arguments)
    with pytest.raises(ws.InputError, match="did you mean num_sms"):
        EXAMPLE.replace(nums_sms=3)
    with pytest.raises(ws.InputError, match="not a number positive"):
        EXAMPLE.replace(clock_ghz=0)
    with pytest.raises(ws.InputError, match=r"did you mean gtx280\?; there are 8800gtx"):
        mwp_cwp.machine("gtx1")
    with pytest.raises(ws.InputError, match="does not fit"):
        EXAMPLE.active_blocks_per_sm(512, 200)
    with pytest.raises(ws.InputError, match="mwp = 0 is not positive"):
        mwp_cwp.predict(TILED, EXAMPLE, mwp=0)
    with pytest.raises(ws.InputError, match="no micro-benchmark"):
        mwp_cwp.microbenchmark("Mb8", coalesced=True)


def test_machine_of_a_gpu_with_caches():
    found = mwp_cwp.Machine.from_gpu("pascal-mdm")
    # 120 + 220 cycles; 128 bytes over 28 SMs' share of 1050 GB/s at 1.4 GHz.
    assert found.dram_latency == 340
    assert found.coalesced_departure == pytest.approx(128 * 1.4 * 28 / 1050)
    kernel = mwp_cwp.describe_trace(ws.patterns.strided(gs=32, iterations=2, blocks=28), found)
    assert kernel.uncoal_per_mw == 32
    assert mwp_cwp.predict(kernel, "pascal-mdm").cycles > 0


def test_independent_accesses_of_a_trace_and_of_ptx():
    """Four loads in a row, then their sum and a store: three need not wait for the one before."""
    k = ws.patterns.KernelBuilder("sum", grid=4, block=64)
    for i in range(4):
        k.emit("LDG.E", dst=4 + i, src=2, address=0x10000 * (i + 1) + 4 * k.thread)
    k.emit("FADD", dst=8, src=(4, 5))
    k.emit("FADD", dst=8, src=(8, 7))
    k.emit("STG.E", src=(2, 8), address=0x90000 + 4 * k.thread)
    found = mwp_cwp.describe_trace(k.build(), "8800gtx", active_blocks_per_sm=1)
    assert (found.coal_mem_insts, found.independent_mem_insts) == (5, 3)
    ptx = """
    .version 7.0
    .target sm_50
    .address_size 64
    .visible .entry sum(.param .u64 a, .param .u64 b)
    {
      .reg .f32 %f<4>; .reg .b32 %r<2>; .reg .b64 %d<6>;
      ld.param.u64 %d1, [a];
      ld.param.u64 %d2, [b];
      mov.u32 %r1, %tid.x;
      mul.wide.u32 %d3, %r1, 4;
      add.s64 %d4, %d1, %d3;
      add.s64 %d5, %d2, %d3;
      ld.global.f32 %f1, [%d4];
      ld.global.f32 %f2, [%d5+128];
      add.f32 %f3, %f1, %f2;
      st.global.f32 [%d4], %f3;
      ret;
    }
    """
    kernel = ws.cuda.compile(ptx).kernel("sum")
    static = mwp_cwp.describe_ptx(kernel, 4, 64, "8800gtx", active_blocks_per_sm=1)
    assert (static.coal_mem_insts, static.independent_mem_insts) == (3, 1)
    a, b = ws.cuda.zeros(64), ws.cuda.zeros(96)
    measured = mwp_cwp.describe_trace(kernel.launch(4, 64, a, b), "8800gtx", active_blocks_per_sm=1)
    for field, value in vars(static).items():
        assert getattr(measured, field) == pytest.approx(value), field


def straight_ptx(body):
    return ws.cuda.compile(
        ".version 7.0\n.target sm_70\n.address_size 64\n"
        ".visible .entry k(.param .u64 p) {\n.reg .b32 %r<4>; .reg .b64 %rd<4>;\n"
        "ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;\n"
        + body
        + "\nret;\n}\n"
    ).kernel("k")


def chain_ptx(count):
    """Return a kernel that squares a sum again and again: 2 ** count is its degree."""
    lines = ["add.u32 %s0, %r1, %r2;"]
    lines += [f"mul.lo.u32 %s{i + 1}, %s{i}, %s{i};" for i in range(count)]
    return straight_ptx(
        f".reg .b32 %s<{count + 1}>;\n"
        + "\n".join(lines)
        + f"\nmul.wide.u32 %rd2, %s{count}, 4; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r1;"
    )


def test_indexes_of_high_degree_are_unknown():
    """(tx + bx)^4 is kept, what is beyond it is not: 2^60 terms would be."""
    for count, known in ((0, True), (2, True), (3, False), (60, False)):
        table = mwp_cwp.static_instructions(chain_ptx(count))
        (index,) = table.loc[table["kind"] == "mem", "index"]
        assert {"tx", "bx"} <= index.names if known else any("?" in name for name in index.names)


def test_pairs_of_halves_and_arrivals():
    table = mwp_cwp.static_instructions(
        straight_ptx(
            "red.global.add.noftz.f16x2 [%rd1], %r1;\nbar.arrive 1, 64;\nbar.sync 0;\n"
            "barrier.cta.arrive 2, 64;"
        )
    )
    assert table.loc[table["kind"] == "mem", "size"].tolist() == [4]
    assert table.loc[table["kind"] == "synch", "opcode"].tolist() == ["bar.sync"]


@pytest.mark.parametrize(
    ("grid", "block", "message"),
    [
        (0, 64, "grid = 0"),
        (1, 0, "block = 0"),
        (1, (8, 0), "block = 0"),
        (1, (1,) * 4, "4 sizes"),
        ((), 64, "0 sizes"),
        (1.5, 64, "grid = 1.5"),
    ],
)
def test_grids_and_blocks_are_checked(grid, block, message):
    with pytest.raises(ws.InputError, match=message):
        mwp_cwp.describe_ptx(chain_ptx(0), grid, block, "gtx280")
    with pytest.raises(ws.InputError, match="threads_per_block = 0"):
        mwp_cwp.machine("gtx280").active_blocks_per_sm(0)


def test_a_fit_keeps_what_the_measurements_do_not_tell():
    """Mb1 computes only: whatever decides nothing stays that of the machine."""
    machine = mwp_cwp.machine("gtx280").replace(dram_latency=1234.5, coalesced_departure=3.25)
    kernels = {
        name: mwp_cwp.microbenchmark(name, coalesced=True, active_blocks_per_sm=1)
        for name in ("Mb2", "Mb4")
    }
    measured = {name: (k, mwp_cwp.predict(k, machine).cpi) for name, k in kernels.items()}
    found = mwp_cwp.fit(measured, machine).machine
    assert found.dram_latency == pytest.approx(1234.5, rel=1e-6)
    assert found.coalesced_departure == pytest.approx(3.25, rel=1e-6)
