"""The models against the papers' examples, their plain definition, and the bounds they must respect."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpstack as ws
from effort import rounds
from machines import plain_pascal
from python_reference import models as plain
from warpstack import _core

#: Those that read a profile; `test_interval_simulation.py` has the other one.
MODELS = [model for model in ws.models.names() if model != "interval_simulation"]
PARTS = list(ws.models.STACK_COMPONENTS)


def machine(**changes):
    """Return a GPU with the fields that an example needs and no influence of the others."""
    return plain_pascal(**{"num_sms": 1, "clock_ghz": 1.0, **changes})


# --- examples of the papers, worked by hand -----------------------------------------------------


class TestGpumechFigure8:
    """Four warps, one interval of 3 instructions and 6 stall cycles, one instruction per cycle.

    issue probability p = 3 / (3 + 6) = 1/3 (Eq. 9).
    Round robin (Eq. 10, 11): 1/3 * 3 warps * 2 waiting slots = 2 non-overlapped instructions (the
    figure's aligned warps have 6; the model is probabilistic): C = 3 + 6 + 2 = 11. Greedy then
    oldest (Eq. 12 to 16): min(1/3 * 6, 1) = 1, so 3 * 1 * 3 = 9 instructions issue in the stall, of
    which 9 - 6 = 3 do not hide in it: C = 3 + 6 + 3 = 12, as in Figure 8 (b). The SM issues 4 * 3 =
    12 instructions: it is busy in every cycle under both (11 < 12 is the bound).
    """

    profile = ws.IntervalProfile.from_arrays(instructions=[3], stall_cycles=[6], warps=4)

    def test_greedy_then_oldest(self):
        assert ws.models.evaluate(self.profile, machine(scheduler="gto"), "mt").cycles == 12

    def test_round_robin(self):
        prediction = ws.models.evaluate(self.profile, machine(scheduler="lrr"), "mt")
        assert prediction.cycles == 12  # max(11, 12 instructions at one per cycle)

    def test_round_robin_with_fewer_warps(self):
        """Two warps: 1/3 * 1 * 2 = 2/3 instructions do not overlap: C = 9 + 2/3, and 6 instructions issue."""
        profile = ws.IntervalProfile.from_arrays(instructions=[3], stall_cycles=[6], warps=2)
        prediction = ws.models.evaluate(profile, machine(scheduler="lrr"), "mt")
        assert prediction.cycles == pytest.approx(9 + 2 / 3)
        assert prediction.ipc == pytest.approx(6 / (9 + 2 / 3))

    def test_naive_interval(self):
        """All instructions hide: 9 cycles for 12 instructions would be 4/3 per cycle, more than one."""
        assert ws.models.evaluate(self.profile, machine(), "naive_interval").ipc == 1


def test_example_of_gpumech_figure_2():
    """Three warps; interval 1 has 1 instruction, interval 2 has 4, both stall for 10 cycles.

    Interval 1 alone: IPC = 1/11 * 3 = 3/11 (Eq. 1). Both: 5 / 25 * 3 = 0.6.
    Greedy then oldest: p = 5/25 = 0.2, mean 2.5 instructions per interval; 0.2 * 10 = 2, so every
    remaining warp issues: 2.5 * 2 = 5 instructions in each stall of 10: nothing is exposed, C = 25.
    The two instructions of warp 3 that miss the stall in the figure are beyond the mean that Eq. 13
    takes. Round robin: interval 2 exposes 0.2 * 2 * 3 = 1.2 instructions: C = 26.2.
    """
    first = ws.IntervalProfile.from_arrays(instructions=[1], stall_cycles=[10], warps=3)
    assert ws.models.evaluate(first, machine(), "naive_interval").ipc == pytest.approx(3 / 11)
    both = ws.IntervalProfile.from_arrays(instructions=[1, 4], stall_cycles=[10, 10], warps=3)
    assert ws.models.evaluate(both, machine(), "naive_interval").ipc == pytest.approx(0.6)
    assert ws.models.evaluate(both, machine(scheduler="gto"), "mt").cycles == pytest.approx(25)
    assert ws.models.evaluate(both, machine(scheduler="lrr"), "mt").cycles == pytest.approx(26.2)


def test_example_of_gpumech_figure_9():
    """Six MSHRs; each warp's load makes two requests. Three warps fit, the fourth waits one round trip.

    R = 4 * 2 = 8 > 6. Waits are ceil(j/6) - 1: six of 0 and two of 1, mean 1/4 of a round trip of
    120 cycles, for one load: 30 cycles. With three warps R = 6 and there is no delay.
    """
    gpu = machine(l1_mshrs=6)

    def delay(warps):
        profile = ws.IntervalProfile.from_arrays(
            instructions=[3], stall_cycles=[120], read_misses=2, warps=warps, llc_miss_ratio=0
        )
        with_mshr = ws.models.evaluate(profile, gpu, "mt_mshr").cycles
        return with_mshr - ws.models.evaluate(profile, gpu, "mt").cycles

    assert delay(3) == 0
    assert delay(4) == pytest.approx(30)


class TestMdmFigure4:
    """Three MSHRs, three warps, every request misses L1 and hits in the LLC; one SM.

    Take L_MinLLC = 100 cycles, no DRAM, a NoC that serves a 128-byte request in 50 cycles (2.56
    GB/s at 1 GHz). NMD (GS = 1): one request per warp: M_Read * W = 3 <= 3, one batch: S_MSHR = 0.
    Three requests are in flight; an SM waits for half of them: S_NoC = 0.5 * 3 * 50 = 75. MD (GS =
    32, six requests per warp in the figure): M_Read * W = 18 > 3: 18 / 3 = 6 batches. Three in
    flight; the NoC is saturated, 3 * 50 = 150 > 100: S_NoC = 150, S_Mem = 100 + 150 = 250, S_MSHR =
    (6 - 1) * 250 = 1250.
    """

    gpu = machine(
        l1_mshrs=3, l2_latency=100, dram_latency=0, noc_bandwidth_gbs=2.56, dram_bandwidth_gbs=1e9
    )

    def stack(self, requests, model="mdm"):
        profile = ws.IntervalProfile.from_arrays(
            instructions=[3], stall_cycles=[100], read_misses=requests, warps=3, llc_miss_ratio=0
        )
        prediction = ws.models.evaluate(profile, self.gpu, model)
        # C = 3 + 100, nothing exposed: cycles per part of the stack.
        return {k: v * 9 for k, v in prediction.cpi_stack.items()}, prediction.cycles

    def test_not_divergent(self):
        stack, cycles = self.stack(1)
        assert cycles == pytest.approx(103 + 75)
        assert stack["noc"] == pytest.approx(75)
        assert stack["mshr"] == 0

    def test_divergent(self):
        stack, cycles = self.stack(6)
        assert cycles == pytest.approx(103 + 150 + 1250)
        assert stack["noc"] == pytest.approx(150)
        assert stack["mshr"] == pytest.approx(1250)

    def test_batches_of_one_warp(self):
        """W1's six requests take two batches of three; alone, (2 - 1) * 250 cycles are added."""
        profile = ws.IntervalProfile.from_arrays(
            instructions=[3], stall_cycles=[100], read_misses=6, warps=1, llc_miss_ratio=0
        )
        prediction = ws.models.evaluate(profile, self.gpu, "mdm")
        assert prediction.cpi_stack["mshr"] * 3 == pytest.approx(250)

    def test_without_saturation_latency_stays_half_hidden(self):
        """A NoC of 1 cycle per request: 3 <= 100, so the factor is 0.5 although the interval diverges.

        S_NoC = 1.5, S_MSHR = 5 * 101.5 = 507.5. CAL 2019 has no such test: 3 and 5 * 103 = 515.
        """
        gpu = self.gpu.replace(noc_bandwidth_gbs=128)
        profile = ws.IntervalProfile.from_arrays(
            instructions=[3], stall_cycles=[100], read_misses=6, warps=3, llc_miss_ratio=0
        )
        mdm = ws.models.evaluate(profile, gpu, "mdm").cpi_stack
        cal = ws.models.evaluate(profile, gpu, "mdm_cal2019").cpi_stack
        assert (mdm["noc"] * 9, mdm["mshr"] * 9) == pytest.approx((1.5, 507.5))
        assert (cal["noc"] * 9, cal["mshr"] * 9) == pytest.approx((3, 515))


def test_dram_queue_of_gpumech_by_hand():
    """Ten warps on each of two SMs, one DRAM read of 128 bytes per warp, 100 cycles per interval.

    Service s = 1 GHz * 128 / 64 GB/s = 2 cycles; Q = 2 * 10 = 20; lambda = 20 / 100 = 0.2; rho =
    0.4; delay = 0.2 * 4 / (2 * 0.6) = 2/3, less than the bound 2 * 20 / 2 = 20. Ten times slower
    DRAM: s = 20, rho = 4: the bound holds, 20 * 20 / 2 = 200.
    """
    profile = ws.IntervalProfile.from_arrays(
        instructions=[10],
        stall_cycles=[90],
        read_misses=1,
        llc_miss_ratio=1,
        warps=10,
        active_sms=2,
    )

    def queue(bandwidth):
        gpu = machine(num_sms=2, dram_bandwidth_gbs=bandwidth)
        return (
            ws.models.evaluate(profile, gpu, "gpumech").cycles
            - ws.models.evaluate(profile, gpu, "mt").cycles
        )

    assert queue(64) == pytest.approx(2 / 3)
    assert queue(6.4) == pytest.approx(200)


def test_markov_chain_of_one_warp_is_exact():
    """One warp alternates: 1/p issue slots, then M stalled: IPC = 1 / (1 + p M)."""
    profile = ws.IntervalProfile.from_arrays(instructions=[5], stall_cycles=[20], warps=1)
    assert ws.models.evaluate(profile, machine(), "markov_chain").ipc == pytest.approx(5 / 25)


# --- the plain definition -----------------------------------------------------------------------

sizes = st.floats(0, 40, allow_nan=False).map(lambda v: round(v, 3))


@st.composite
def profiles(draw):
    count = draw(st.integers(1, 5))

    def column(elements):
        return draw(st.lists(elements, min_size=count, max_size=count))

    reads, writes = column(st.one_of(st.just(0.0), sizes)), column(st.one_of(st.just(0.0), sizes))
    return {
        "instructions": column(st.integers(1, 60)),
        "stall_cycles": column(
            st.one_of(st.just(0.0), st.floats(0.25, 900).map(lambda v: round(v, 3)))
        ),
        "read_misses": reads,
        "write_requests": writes,
        "llc_miss_ratio": column(st.floats(0, 1).map(lambda v: round(v, 3))),
        "memory_instructions": column(st.integers(0, 4)),
        "request_bytes": draw(st.one_of(st.none(), st.just([64] * count))),
        "stall_causes": column(
            st.sampled_from([(1, 0, 0, 0), (0, 0.25, 0.5, 0.25), (0.5, 0, 0, 0.5), (0, 0, 1, 0)])
        ),
        "warps": draw(st.integers(1, 12)),
        "active_sms": draw(st.integers(1, 80)),
    }


@st.composite
def machines(draw):
    return machine(
        num_sms=80,
        clock_ghz=draw(st.sampled_from([1.0, 1.4, 2.0])),
        issue_width=draw(st.sampled_from([1, 1, 2, 4])),
        scheduler=draw(st.sampled_from(["gto", "lrr"])),
        l1_mshrs=draw(st.integers(1, 300)),
        l2_latency=draw(st.integers(1, 300)),
        dram_latency=draw(st.integers(0, 400)),
        noc_bandwidth_gbs=draw(st.floats(1, 5000)),
        dram_bandwidth_gbs=draw(st.floats(1, 2000)),
    )


def plain_inputs(arrays, reads_to_dram):
    """Return a profile and its columns; reads and writes reach DRAM in any proportion."""
    profile = ws.IntervalProfile.from_arrays(**arrays)
    table = profile.intervals
    reads = np.clip(
        table["dram_read_requests"] * reads_to_dram,
        np.maximum(table["dram_requests"] - table["write_requests"], 0),
        np.minimum(table["read_misses"], table["dram_requests"]),
    )
    table["dram_read_requests"] = reads
    table["dram_write_requests"] = table["dram_requests"] - reads
    core = _core.IntervalColumns({name: values.to_numpy() for name, values in table.items()})
    columns = {name: list(values) for name, values in table.items()}
    return ws.IntervalProfile(core, tuple(profile.waves(ws.gpu("pascal-mdm")))), columns


@pytest.mark.slow
@pytest.mark.parametrize("model", [model for model in MODELS if model != "closed_network"])
@settings(max_examples=rounds(100))
@given(profiles(), machines(), st.floats(0, 2))
def test_equals_plain_definition(model, arrays, gpu, reads_to_dram):
    profile, columns = plain_inputs(arrays, reads_to_dram)
    warps, sms = arrays["warps"], arrays["active_sms"]
    cycles, on_sm, on_gpu, stack = plain.predict(
        model, columns, gpu.values(), [(warps, sms, warps * sms)]
    )
    found = ws.models.evaluate(profile, gpu, model)
    assert found.cycles == pytest.approx(cycles, rel=1e-9)
    assert found.ipc == pytest.approx(on_gpu / cycles, rel=1e-9)
    assert found.cpi == pytest.approx(cycles / on_sm, rel=1e-9)
    for part in PARTS:
        assert found.cpi_stack[part] == pytest.approx(stack[part], rel=1e-8, abs=1e-9 * found.cpi)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=rounds(100))
@given(profiles(), machines())
def test_stack_sums_and_bounds(model, arrays, gpu):
    """The stack sums to the CPI; no part is negative; no SM issues faster than it can."""
    profile = ws.IntervalProfile.from_arrays(**arrays)
    found = ws.models.evaluate(profile, gpu, model)
    assert math.fsum(found.cpi_stack.values()) == pytest.approx(found.cpi, rel=1e-9)
    assert min(found.cpi_stack.values()) >= 0
    assert found.cpi_stack["base"] == pytest.approx(1 / gpu.issue_width)
    assert found.ipc <= arrays["active_sms"] * gpu.issue_width * (1 + 1e-12)
    assert found.ipc == pytest.approx(found.instructions / found.cycles)
    # One wave of equal SMs: CPI of an SM and IPC of the GPU are two views of one number.
    assert found.ipc * found.cpi == pytest.approx(arrays["active_sms"])


@pytest.mark.slow
@settings(max_examples=rounds(100))
@given(profiles(), machines())
def test_models_refine_each_other(arrays, gpu):
    """Each part that a model adds can only cost cycles."""
    profile = ws.IntervalProfile.from_arrays(**arrays)
    cycles = {m: ws.models.evaluate(profile, gpu, m).cycles * (1 + 1e-9) for m in MODELS}
    assert cycles["naive_interval"] <= cycles["mt"] * (1 + 1e-9)
    for less, more in (
        ("mt", "mt_mshr"),
        ("mt_mshr", "gpumech"),
        ("gpumech", "gpumech_plus"),
        ("mdm", "mdm_cal2019"),
    ):
        assert cycles[less] <= cycles[more] * (1 + 1e-9)


@pytest.mark.slow
@given(st.integers(1, 10), st.floats(0.01, 1), st.floats(0.01, 1))
def test_markov_chain_equals_plain_definition(warps, suspend, wake):
    instructions = 1 / suspend
    columns = {"instructions": [instructions], "stall_cycles": [1 / wake]}
    gpu = {"issue_width": 1}
    idle = 1 - warps * instructions / plain.markov(columns, gpu, warps)
    assert _core.markov_all_suspended(warps, suspend, wake) == pytest.approx(idle, abs=1e-9)


# --- launches -----------------------------------------------------------------------------------


@given(st.integers(1, 5000), st.integers(1, 32), st.integers(1, 32), st.integers(1, 132))
def test_waves_equal_plain_definition(blocks, warps_per_block, per_sm, sms):
    found = [
        (w.warps, w.active_sms, w.total_warps)
        for w in _core.waves_of(blocks, warps_per_block, per_sm, sms)
        for _ in range(int(w.count))
    ]
    expected = [
        (w, s, b * warps_per_block) for w, s, b in plain.waves(blocks, warps_per_block, per_sm, sms)
    ]
    assert found == expected


def compute_kernel(blocks):
    k = ws.patterns.KernelBuilder("compute", grid=blocks, block=64)
    for i in range(64):
        k.emit("FADD", dst=i, src=i)
    return k.build()


def test_idle_sms_are_not_credited(pascal):
    """Three blocks of two warps on 28 SMs: three SMs work, each issues one instruction per cycle."""
    predictions = ws.predict(compute_kernel(3), pascal, MODELS)
    assert (predictions["ipc"] <= 3 + 1e-9).all()


def test_last_partial_wave_takes_its_time(pascal):
    """32 blocks fit on each of 28 SMs. One block more needs a second wave, though only one SM works."""
    whole = ws.predict(compute_kernel(28 * 32), pascal, "mt")
    one_more = ws.predict(compute_kernel(28 * 32 + 1), pascal, "mt")
    single = ws.predict(compute_kernel(1), pascal, "mt")
    assert one_more["cycles"].item() == pytest.approx(
        whole["cycles"].item() + single["cycles"].item()
    )
    assert one_more["ipc"].item() < whole["ipc"].item()


def test_longer_warps_than_the_representative_one_cost_their_instructions(pascal):
    """IPC is a rate (MDM, Eq. 1): the kernel's own instruction count decides its cycles."""
    k = ws.patterns.KernelBuilder("uneven", grid=28, block=320)
    for i in range(40):
        k.emit("FADD", dst=i, src=i, where=(k.thread_in_block < 32) | (i < 10))
    kernel = k.build()
    assert kernel.num_instructions == 28 * (9 * 10 + 40)
    row = ws.predict(kernel, pascal, "mt").iloc[0]
    assert row["instructions"] == kernel.num_instructions
    assert row["cycles"] == pytest.approx(kernel.num_instructions / row["ipc"])


def test_application_totals(bfs, pascal):
    predictions = ws.predict(bfs, pascal, ["gpumech", "mdm"])
    totals = ws.models.application_totals(predictions)
    assert totals["model"].tolist() == ["gpumech", "mdm"]
    for _, total in totals.iterrows():
        rows = predictions[predictions["model"] == total["model"]]
        assert total["kernels"] == 16
        assert total["ipc"] == pytest.approx(rows["instructions"].sum() / rows["cycles"].sum())
        stack = total[[f"cpi_{part}" for part in PARTS]].sum()
        assert stack == pytest.approx(total["cpi"], rel=1e-9)


def test_kernels_of_an_application_share_l2(pascal):
    kernel = ws.patterns.stream(blocks=28)
    alone = ws.predict(kernel, pascal)
    twice = ws.predict(ws.App([kernel, kernel]), pascal)
    cold = ws.predict(ws.App([kernel, kernel]), pascal, flush_l2=True)
    assert twice["cycles"].iloc[0] == alone["cycles"].item()
    assert twice["cycles"].iloc[1] < twice["cycles"].iloc[0]
    assert cold["cycles"].iloc[1] == cold["cycles"].iloc[0]


# --- what the models are for --------------------------------------------------------------------


def test_strided_kernel(strided_path, pascal):
    """With GS = 1 MDM and GPUMech agree; with GS = 32 MDM sees batches and queues that GPUMech does not."""
    predictions = ws.predict(ws.load(strided_path), pascal, ["gpumech", "mdm"]).set_index(
        ["kernel", "model"]
    )
    coalesced, divergent = predictions.loc[1], predictions.loc[2]
    assert coalesced.loc["mdm", "ipc"] == pytest.approx(coalesced.loc["gpumech", "ipc"], rel=0.2)
    assert divergent.loc["mdm", "ipc"] < divergent.loc["gpumech", "ipc"] / 3
    stack = divergent.loc["mdm", [f"cpi_{part}" for part in PARTS]].astype(float)
    assert stack.idxmax() == "cpi_mshr"
    assert stack["cpi_noc"] > stack["cpi_base"]
    assert divergent.loc["gpumech", "cpi_noc"] == 0


@pytest.mark.slow
def test_bandwidth_and_mshrs_move_the_prediction_the_right_way(strided_path, pascal):
    kernel = ws.load(strided_path, kernels=[2]).kernels[0]
    ipc = [
        ws.predict(kernel, pascal.replace(dram_bandwidth_gbs=b))["ipc"].item()
        for b in (120, 240, 480, 960)
    ]
    assert ipc == sorted(ipc)
    ipc = [
        ws.predict(kernel, pascal.replace(noc_bandwidth_gbs=b))["ipc"].item()
        for b in (250, 1000, 4000)
    ]
    assert ipc == sorted(ipc)


@pytest.mark.slow
def test_streaming_l1_is_bounded_by_the_noc_queue(strided_path, pascal):
    """MDM, footnote 2: the entries of the NoC queue take the place of the MSHRs."""
    kernel = ws.load(strided_path, kernels=[2]).kernels[0]
    streaming = pascal.replace(l1_mshrs=4096, noc_queue_entries=128)
    assert ws.predict(kernel, streaming)["ipc"].item() == ws.predict(kernel, pascal)["ipc"].item()


def test_representative_misses_are_another_choice(bfs, pascal):
    own = ws.predict(bfs, pascal, "mdm", misses="representative")
    mean = ws.predict(bfs, pascal, "mdm")
    assert not np.allclose(own["cycles"], mean["cycles"])


# --- interface ----------------------------------------------------------------------------------


def test_unknown_model_lists_the_names(pascal):
    profile = ws.IntervalProfile.from_arrays(instructions=[1], stall_cycles=[0])
    with pytest.raises(
        ws.InputError,
        match=r"no model 'mdmm'; did you mean mdm\?; there are naive_interval, .* mdm, ",
    ):
        ws.models.evaluate(profile, pascal, "mdmm")
    with pytest.raises(ws.InputError, match="there is no model 'mdmm'"):
        ws.predict(compute_kernel(1), pascal, ["mdm", "mdmm"])
    with pytest.raises(ws.InputError, match="no model given"):
        ws.predict(compute_kernel(1), pascal, [])


def test_writes_to_dram_are_not_bounded_by_the_mshrs():
    """GPUMech, Eq. 21 to 23, with reads and writes apart.

    8 warps with 4 read misses, all in L2, and 1 write, which reaches DRAM, 1 SM, 4 MSHRs, interval
    of 1000 cycles. Q = min(32, 4) * 0 + 8 * 1 = 8 requests of 128 bytes at 1 GB/s and 1 GHz: s =
    128, lambda = 8 / 1000, rho = 1.024 >= 1, so the delay is s Q / 2 = 512. A ratio of all requests
    would make it (4 + 8) * 1 / 5 = 2.4 requests.
    """
    gpu = machine(num_sms=1, clock_ghz=1, issue_width=1, l1_mshrs=4, dram_bandwidth_gbs=1)
    profile = ws.IntervalProfile.from_arrays(
        instructions=[100],
        stall_cycles=[900],
        read_misses=[4],
        write_requests=[1],
        dram_requests=[1],
        warps=8,
        request_bytes=128,
    )
    table = profile.intervals.assign(dram_read_requests=0.0, dram_write_requests=1.0)
    core = _core.IntervalColumns({name: values.to_numpy() for name, values in table.items()})
    split = ws.IntervalProfile(core, tuple(profile.waves(gpu)))

    def queue(profile):
        stacks = [ws.models.evaluate(profile, gpu, m) for m in ("gpumech", "mt_mshr")]
        return stacks[0].cycles - stacks[1].cycles

    assert queue(split) == pytest.approx(512)
    assert queue(profile) < 200


def test_requests_have_the_size_that_the_caches_move_at_once():
    """64 requests queue for the NoC as lines of 128 bytes, or as sectors of 32."""
    profile = ws.IntervalProfile.from_arrays(
        instructions=[10], stall_cycles=[10], read_misses=[1], warps=8, active_sms=8
    )
    whole = machine(num_sms=8, l1_line_bytes=128, l1_sector_bytes=128)
    sectored = machine(num_sms=8, l1_line_bytes=128, l1_sector_bytes=32)
    given = ws.IntervalProfile.from_arrays(
        instructions=[10],
        stall_cycles=[10],
        read_misses=[1],
        warps=8,
        active_sms=8,
        request_bytes=32,
    )

    def noc(profile, gpu):
        return ws.models.evaluate(profile, gpu, "mdm").cpi_stack["noc"]

    assert noc(profile, whole) == pytest.approx(4 * noc(profile, sectored))
    assert noc(given, whole) == noc(profile, sectored) > 0


def test_markov_chain_refuses_absurd_numbers_of_warps(pascal):
    profile = ws.IntervalProfile.from_arrays(instructions=[3], stall_cycles=[6], warps=1e6)
    with pytest.raises(
        ws.InputError, match=r"markov_chain: 1000000.* warps on an SM are more than"
    ):
        ws.models.evaluate(profile, pascal, "markov_chain")
    assert ws.models.evaluate(profile, pascal, "mdm").ipc > 0


def test_frame_has_a_row_per_kernel_and_model(bfs, pascal):
    predictions = ws.predict(bfs.select([1, 2]), pascal, MODELS)
    assert isinstance(predictions, pd.DataFrame)
    assert len(predictions) == 2 * len(MODELS)
    assert predictions["trace_digest"].nunique() == 2
    assert set(predictions["gpu_digest"]) == {pascal.digest}
    assert set(predictions["version"]) == {ws.__version__}


class TestMwpCwp:
    """Two loads that miss in both caches and 20 instructions of each of 8 warps, by hand."""

    def profile(self, **changes):
        arrays = {
            "instructions": [10, 10],
            "stall_cycles": [100, 0],
            "read_misses": [1, 1],
            "llc_miss_ratio": 1,
            "request_bytes": 128,
            "warps": 8,
        }
        return ws.IntervalProfile.from_arrays(**{**arrays, **changes})

    gpu = ws.gpu("pascal-mdm").replace(
        clock_ghz=1,
        issue_width=1,
        l2_latency=100,
        dram_latency=200,
        noc_bandwidth_gbs=128 / 150,
        dram_bandwidth_gbs=1000,
    )

    def test_limited_by_departures(self):
        """MWP = 300 / 150 = 2, CWP = 8: 2 * 300 * 8 / 2 + 10 cycles (Eq. 23)."""
        found = ws.models.evaluate(self.profile(), self.gpu, "mwp_cwp")
        assert found.cycles == pytest.approx(2410)
        # With MWP = 8 it would take 600 + 20 + 7 * 10 = 690 (Eq. 22): latency hides all but 530.
        parts = {part: value * 160 for part, value in found.cpi_stack.items()}
        expected = {"base": 160, "l2": 530 / 3, "dram": 1060 / 3, "noc": 1720}
        assert parts == pytest.approx({**dict.fromkeys(parts, 0), **expected})

    def test_limited_by_bandwidth(self):
        """DRAM moves 128 bytes in 100 cycles: MWP = 3, 600 * 8 / 3 + 2 * 10."""
        gpu = self.gpu.replace(noc_bandwidth_gbs=1000, dram_bandwidth_gbs=1.28)
        found = ws.models.evaluate(self.profile(), gpu, "mwp_cwp")
        assert found.cycles == pytest.approx(1620)
        assert found.cpi_stack["queue"] * 160 == pytest.approx(1620 - 690)

    def test_enough_computation(self):
        """CWP = 800 / 200 = 4, MWP = 8: one period and all computation, 300 + 8 * 200 (Eq. 24)."""
        profile = self.profile(instructions=[100, 100])
        found = ws.models.evaluate(
            profile, self.gpu.replace(noc_bandwidth_gbs=128, warps_per_sm=64), "mwp_cwp"
        )
        # Eq. 8: (600 + 200) / 200 = 4 < 8.
        assert found.cycles == pytest.approx(300 + 1600)

    def test_scattered_accesses(self):
        """Four transactions each: Mem_L = 300 + 3 * 50, departures of 200: MWP = 2.25."""
        gpu = self.gpu.replace(noc_bandwidth_gbs=128 / 50)
        found = ws.models.evaluate(self.profile(read_misses=[4, 4]), gpu, "mwp_cwp")
        assert found.cycles == pytest.approx(900 * 8 / 2.25 + 10 * 1.25)

    def test_no_misses(self):
        profile = self.profile(read_misses=0, llc_miss_ratio=None)
        found = ws.models.evaluate(profile, self.gpu, "mwp_cwp")
        assert found.cycles == 160


@pytest.mark.slow
def test_prediction_depends_on_exactly_the_fields_it_names(strided_path):
    """A field that a model is said not to read changes nothing; those it is said to read may."""
    kernel = ws.load(strided_path, kernels=[2]).kernels[0]
    base = ws.gpu("pascal-mdm")
    # Turns count where the last one is a large part of what the SM does: few misses, many warps.
    crowded = ws.patterns.strided(gs=1, iterations=8, blocks=56, warps_per_block=8)
    changes = {
        "scheduler": "lrr",
        "l1_mshrs": 32,
        "noc_queue_entries": 16,
        "clock_ghz": 0.7,
        "dram_bandwidth_gbs": 30,
        "noc_bandwidth_gbs": 60,
    }
    for field, value in changes.items():
        of = crowded if field == "scheduler" else kernel
        order = {"access_order": "round_robin"}
        reference = ws.predict(of, base, MODELS, **order).set_index("model")["cycles"]
        # A clock brings its latencies along, unless they are given.
        gpu = base.replace(**{"dram_latency": base.dram_latency, field: value})
        changed = ws.predict(of, gpu, MODELS, **order).set_index("model")["cycles"]
        for model in MODELS:
            used = ws.models.fields_used(model)
            is_other = changed[model] != reference[model]
            if (
                field == "scheduler"
            ):  # interval profiles of warps in step read it, and these are not
                assert field in used or not is_other, model
                continue
            assert is_other == (field in used), (model, field)
        assert (changed != reference).any(), field


def test_a_former_name_answers_and_is_said_once(pascal):
    """Rows have the name that was asked for; the numbers are those of the present one."""
    kernel = ws.patterns.strided(gs=4, iterations=2, blocks=28)
    ws.models.prediction._say_former.cache_clear()
    with pytest.warns(FutureWarning, match="the model warpstack is called closed_network now"):
        former = ws.predict(kernel, pascal, ["mdm", "warpstack"])
    assert former["model"].tolist() == ["mdm", "warpstack"]
    present = ws.predict(kernel, pascal, ["mdm", "closed_network"])
    pd.testing.assert_frame_equal(former.drop(columns="model"), present.drop(columns="model"))
    axes = {"num_sms": [14, 28]}
    swept = ws.sweep(kernel, pascal, axes, "warpstack", cache=False)  # says nothing again
    assert set(swept["model"]) == {"warpstack"}
    assert swept["cycles"].tolist()[1] == present["cycles"].tolist()[1]
    assert ws.models.fields_used("warpstack") == ws.models.fields_used("closed_network")
    assert "warpstack" not in ws.models.names()
    with pytest.raises(ws.InputError, match="there is a model warpstack already"):
        ws.models.register("warpstack", lambda intervals, wave, gpu: {})


def test_an_error_of_an_own_model_names_it():
    def broken(intervals, wave, gpu):
        raise ValueError("no such pipe")

    ws.models.register("broken", broken)
    try:
        with pytest.raises(ws.InputError, match="model broken: ValueError: no such pipe"):
            ws.predict(ws.patterns.strided(gs=1, blocks=1), "a100", ["broken"])
    finally:
        ws.models.unregister("broken")
