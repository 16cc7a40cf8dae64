"""Control fields of machine code: columns of traces, and when the simulator lets warps issue."""

import numpy as np
import pytest
from hypothesis import given, settings
from timed_gpus import assert_same, timed_gpus

import warpstack as ws
from configurations import simulator_config
from effort import rounds
from machines import plain_pascal
from python_reference.timing import Machine
from strategies import controlled_kernels, kernels, with_control
from warpstack._util.trace_budget import default_budget

FIELDS = ws._core.CONTROL_FIELDS


@pytest.mark.slow
@settings(max_examples=rounds(50, costly=True))
@given(controlled_kernels(), timed_gpus())
def test_equals_plain_definition(kernel, gpu):
    result = ws.simulate(kernel, gpu)
    assert_same(result, Machine(simulator_config(gpu)).run(kernel))
    assert sum(result.cpi_stack.values()) == pytest.approx(result.cpi, rel=1e-12)


def warp(*steps):
    """Return a kernel of one warp; steps: (opcode, control fields, sectors or None)."""
    k = ws.patterns.KernelBuilder("hand", grid=1, block=32)
    fields = []
    for opcode, control, address in (*steps, ("EXIT", {}, None)):
        writes = not opcode.startswith(("ST", "LDGSTS", "LDGDEPBAR", "DEPBAR", "EXIT", "BAR"))
        k.emit(opcode, dst=4 if writes else (), src=4, address=address, pc=16 * len(fields))
        fields.append(control)
    return with_control(k.build(), fields)


def line(number, stride=0):
    """Return addresses of lanes in one line, or `stride` lines apart."""
    return 0x10000 + 128 * (2 * number + stride * np.arange(32))


@pytest.fixture(scope="module")
def machine():
    """Return a machine where arithmetic takes 4 cycles, L2 120, and DRAM 220 more."""
    return plain_pascal(
        fp32_latency=4,
        integer_latency=4,
        sfu_latency=20,
        barrier_latency=4,
        dram_bandwidth_gbs=1e6,
        noc_bandwidth_gbs=1e6,
        noc_queue_entries=64,
        kernel_end="last_warp",
        issue_width=1,
    )


class TestByHand:
    def test_stall_counts(self, machine):
        # Five FFMA issue at 0, 4, 8, 12, 16, whatever their registers; EXIT at 20 ends the warp at 21.
        chain = [("FFMA", {"stall": 4}, None)] * 5
        result = ws.simulate(warp(*chain), machine)
        assert result.cycles == 21
        # Six cycles have an instruction, the others wait.
        assert result.cpi_stack["dep"] * 6 == pytest.approx(15)
        assert result.cpi_stack["base"] * 6 == pytest.approx(6)
        # With a stall of 2 they issue at 0, 2, ..., 8 and EXIT at 10; the last result is there at 12.
        assert ws.simulate(warp(*[("FFMA", {"stall": 2}, None)] * 5), machine).cycles == 12

    def test_a_stall_of_zero_is_one(self, machine):
        # Issue at 0 to 4 and EXIT at 5; the last result is there at 8.
        for stall in (0, 1):
            chain = [("FFMA", {"stall": stall}, None)] * 5
            assert ws.simulate(warp(*chain), machine).cycles == 8

    def test_a_warp_that_yields_leaves_the_next_cycle(self, machine):
        # Alone, it issues at 0, 2, 4, 6, 8 and EXIT at 10; the last result is there at 12.
        chain = [("FFMA", {"yield": True}, None)] * 5
        assert ws.simulate(warp(*chain), machine).cycles == 12

    def test_yielding_warps_take_turns(self, machine):
        # Two warps issue in turns: all slots from 0 to 11 are used.
        k = ws.patterns.KernelBuilder("two", grid=1, block=64)
        for i in range(5):
            k.emit("FFMA", dst=4, src=4, pc=16 * i)
        k.emit("EXIT", pc=80)
        kernel = with_control(k.build(), [{"yield": True}] * 6)
        result = ws.simulate(kernel, machine)
        assert result._core.slots["base"] == 12
        assert result.cycles == 13  # the last result is there at 9 + 4

    def test_a_load_and_its_use(self, machine):
        # Data of DRAM are there at 120 + 220 = 340. FADD issues then; its result is there at 344.
        load = ("LDG.E", {"stall": 2, "write_barrier": 3}, line(0))
        result = ws.simulate(warp(load, ("FADD", {"wait_mask": 8}, None)), machine)
        assert result.cycles == 344
        # 1 to 339 are lost to DRAM, 342 and 343 to the last result; EXIT issues at 341.
        slots = result._core.slots
        assert slots["dram"] == 339
        assert slots["dep"] == 2
        assert slots["base"] == 3
        # Registers are not looked up: without the wait, FADD issues at 2. The warp ends with its data.
        assert ws.simulate(warp(load, ("FADD", {}, None)), machine).cycles == 340
        # It waits for its own barrier only.
        other = ("FADD", {"wait_mask": 4 + 16}, None)
        assert ws.simulate(warp(load, other), machine).cycles == 340

    def test_other_operations_of_variable_latency(self, machine):
        # MUFU has its result at 20: FADD issues then, EXIT at 21, and the result of FADD is there at 24.
        reciprocal = ("MUFU.RCP", {"write_barrier": 0}, None)
        result = ws.simulate(warp(reciprocal, ("FADD", {"wait_mask": 1}, None)), machine)
        assert result.cycles == 24
        # Its sources are read when its unit takes the next one: after sfu_interval = 1 cycle, or 9.
        reads = warp(("MUFU.RCP", {"read_barrier": 0}, None), ("FADD", {"wait_mask": 1}, None))
        assert ws.simulate(reads, machine).cycles == 20
        assert ws.simulate(reads, machine.replace(sfu_interval=18)).cycles == 18 + 4

    def test_sources_of_a_store(self, machine):
        # The 32 lines of the store leave at 0 to 31. IADD3 issues at 32; its result is there at 36.
        store = ("STG.E", {"read_barrier": 1}, line(0, stride=1))
        result = ws.simulate(warp(store, ("IADD3", {"wait_mask": 2}, None)), machine)
        assert result.cycles == 36
        # 1 to 31 are lost to the turns of L1.
        assert result._core.slots["l1"] == 31
        # A load has read its sources long before it has its data, the last at 31 + 340.
        load = ("LDG.E", {"read_barrier": 1, "write_barrier": 0}, line(0, stride=1))
        early = ws.simulate(warp(load, ("IADD3", {"wait_mask": 2}, None)), machine)
        late = ws.simulate(warp(load, ("IADD3", {"wait_mask": 1}, None)), machine)
        assert (early.cycles, late.cycles) == (371, 375)

    @pytest.mark.parametrize(("most", "issue"), [(0, 344), (1, 342), (2, 340), (3, 6)])
    def test_depbar_counts(self, machine, most, issue):
        # Copies issue at 0, 2, 4, each with a group of its own: they are there at 340, 342, 344.
        copies = [
            step
            for i in range(3)
            for step in (
                ("LDGSTS.E", {}, line(i)),
                ("LDGDEPBAR", {"write_barrier": 0}, None),
            )
        ]
        depbar = ("DEPBAR.LE", {"counted_barrier": 0, "counted_most": most, "stall": 4}, None)
        result = ws.simulate(warp(*copies, depbar, ("FADD", {}, None)), machine)
        # FADD issues 4 cycles after DEPBAR, its result is there another 4 later; so are all data.
        assert result.cycles == max(344, issue + 8)

    def test_a_group_of_several_copies(self, machine):
        # One group for copies at 0 and 1: DEPBAR waits for both, until 341, the copy at 3 is not in it.
        steps = [
            ("LDGSTS.E", {}, line(0)),
            ("LDGSTS.E", {}, line(1)),
            ("LDGDEPBAR", {"write_barrier": 2}, None),
            ("LDGSTS.E", {}, line(2)),
            ("FADD", {"wait_mask": 4}, None),
        ]
        # FADD issues at 341, its result is there at 345, after the last data at 343.
        assert ws.simulate(warp(*steps), machine).cycles == 345

    def test_a_block_barrier_keeps_its_stall(self, machine):
        # BAR.SYNC alone lets go on after barrier_latency = 4, or its stall.
        sync = [("BAR.SYNC", {"stall": stall}, None) for stall in (2, 9)]
        cycles = [ws.simulate(warp(one, ("FADD", {}, None)), machine).cycles for one in sync]
        assert cycles == [4 + 4, 9 + 4]


class TestColumns:
    def test_of_machine_code(self):
        machine = ws.workloads.load("spmv", machine_code="sm_80")
        for kernel in machine:
            table = kernel.instructions
            assert kernel.has_control_fields
            assert table["yield"].dtype == bool
            assert set(table["write_barrier"]) <= {*range(6), 7}
            loads = table[table["opcode"].str.startswith("LDG")]
            assert (loads["write_barrier"] < 6).all()
            assert (table.loc[table["opcode"].str.startswith("FFMA"), "write_barrier"] == 7).all()
            assert (table["stall"] > 0).any()

    def test_of_a_listing(self):
        text = (
            ".sass 1\n.target sm_80\n.kernel k\n.needs 8 0 0 1024\n.parameters 352 0\n"
            "711 0:0 LDGDEPBAR\n7e4 0:0 DEPBAR.LE SB2,0x1,{4,3}\n17f5 0:0 EXIT\n.end\n"
        )
        table = ws.cuda.compile(text, device=ws.cuda.Device(0.1)).kernel("k").launch(1, 32)
        assert [tuple(row) for row in table.instructions[list(FIELDS)].to_numpy().tolist()] == [
            (1, False, 0, 7, 0, 0, 7, 0),
            (4, True, 7, 7, 8 + 16, 0, 2, 1),
            (5, False, 7, 7, 2, 0, 7, 0),
        ]

    def test_ptx_has_none(self):
        for kernel in ws.workloads.load("spmv"):
            assert not kernel.has_control_fields
            assert not set(FIELDS) & set(kernel.instructions.columns)

    @pytest.mark.slow
    @settings(max_examples=rounds(20))
    @given(controlled_kernels())
    def test_saved_traces_keep_them(self, tmp_path_factory, kernel):
        path = tmp_path_factory.mktemp("saved") / "app"
        ws.save(kernel, path)
        (again,) = ws.load(path)
        assert again.digest == kernel.digest
        assert again.instructions.equals(kernel.instructions)
        file = path.with_name("one.trace")
        ws._core.write_trace_file(kernel._core, str(file))
        back = ws._core.read_trace_file(str(file), default_budget())
        assert back.digest == kernel.digest
        assert back.has_control

    @settings(max_examples=rounds(20))
    @given(kernels())
    def test_they_are_part_of_the_digest(self, kernel):
        assert with_control(kernel, None).digest == kernel.digest
        fields = [{} for _ in kernel.instructions.index]
        one = with_control(kernel, fields)
        fields[0] = {"stall": 3}
        assert len({kernel.digest, one.digest, with_control(kernel, fields).digest}) == 3

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"stall": 16}, "FFMA at pc 0: stall = 16 is not from 0 to 15"),
            ({"wait_mask": 64}, "wait_mask = 64 is not from 0 to 63"),
            ({"reuse": 16}, "reuse = 16 is not from 0 to 15"),
            ({"counted_most": 64}, "counted_most = 64 is not from 0 to 63"),
            ({"write_barrier": 6}, r"write_barrier = 6 is neither a barrier \(0 to 5\) nor none"),
            ({"read_barrier": 8}, "read_barrier = 8 is neither"),
            ({"counted_barrier": 6}, "counted_barrier = 6 is neither"),
        ],
    )
    def test_impossible_values(self, fields, message):
        with pytest.raises(ws.InputError, match=message):
            warp(("FFMA", fields, None))

    def test_some_without(self):
        kernel = warp(("FFMA", {}, None))
        builder = ws._core.TraceBuilder(kernel._core.header, default_budget())
        table = kernel.instructions.drop(columns=["source_file", "inlined_at"])
        first, last = table.to_dict("records")
        builder.intern_row(first)
        builder.intern_row({k: v for k, v in last.items() if k not in FIELDS})
        builder.add_batch(kernel._core.read_batch(0, 1))
        with pytest.raises(ws.InputError, match="EXIT at pc 16 has no control fields and others"):
            builder.finish()


def test_dropping_them_gives_the_scoreboard(machine):
    # With a scoreboard FFMA wait for each other's 4 cycles; the stall counts here say 1.
    chain = warp(*[("FFMA", {"stall": 1}, None)] * 5)
    assert ws.simulate(chain, machine).cycles == 8
    assert ws.simulate(with_control(chain, None), machine).cycles == 21
