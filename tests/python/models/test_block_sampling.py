"""Predictions and simulations from a sample of the thread blocks against those from all."""

import pickle

import numpy as np
import pytest

import warpstack as ws
from block_samples import sample_of

MODELS = ("mdm", "closed_network", "interval_simulation")
GPUS = ("h100-sxm", "titan-v", "pascal-mdm")


def with_a_table(blocks):
    """Return a kernel whose blocks all read one table of 1 MiB, and each data of its own."""
    kernel = ws.patterns.KernelBuilder("table", grid=blocks, block=128)
    thread = kernel.thread
    for turn in range(8):
        table = (thread * 97 + turn * 4096) % 2**18 * 4
        kernel.emit("LDG.E", dst=1, src=9, address=table)
        kernel.emit("LDG.E", dst=2, src=9, address=2**30 + (thread + turn * blocks * 128) * 4)
        kernel.emit("FFMA", dst=3, src=[1, 2])
    kernel.emit("EXIT")
    return kernel.build()


def strided(launch_id):
    """Return a launch that depends on what L2 holds."""
    return ws.patterns.strided(gs=8, iterations=4, blocks=2112, launch_id=launch_id)


KERNELS = {
    "stream": lambda: ws.patterns.stream(blocks=2112),
    "strided": lambda: ws.patterns.strided(gs=8, iterations=4, blocks=2112),
    "table": lambda: with_a_table(2112),
}


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("name", KERNELS)
def test_a_sample_tells_what_all_do(name, gpu):
    kernel = KERNELS[name]()
    exact = ws.predict(kernel, gpu, MODELS)
    rows = ws.predict(kernel, gpu, MODELS, sample_blocks=4)
    assert (rows["sampled_blocks"] > 256).all()
    assert (rows["sampled_blocks"] < 600).all()
    assert rows["instructions"].tolist() == pytest.approx(exact["instructions"].tolist())
    for model, ipc, whole in zip(rows["model"], rows["ipc"], exact["ipc"], strict=True):
        # MDM's queues are of the whole GPU, which do not shrink with it.
        assert ipc == pytest.approx(
            whole, rel=0.25 if model == "mdm" or name == "table" else 0.05
        ), model
    assert (rows["ipc_low"] < rows["ipc"]).all()
    assert (rows["ipc"] < rows["ipc_high"]).all()
    stack = rows[[f"cpi_{part}" for part in ws.tables.STACK_COMPONENTS]].sum(axis=1)
    assert stack.tolist() == pytest.approx(rows["cpi"].tolist())


@pytest.mark.parametrize("name", KERNELS)
def test_simulations_of_a_sample(name):
    kernel = KERNELS[name]()
    whole = ws.simulate(kernel, "titan-v")
    result = ws.simulate(kernel, "titan-v", sample_blocks=4)
    assert result.cycles == pytest.approx(whole.cycles, rel=0.06)
    assert result.instructions == pytest.approx(whole.instructions, abs=2)
    assert result.active_sms == 80
    assert 256 < result.sampled_blocks < 600
    assert result.ipc_bounds[0] < result.ipc < result.ipc_bounds[1]
    for count in ("l1_read_sectors", "l2_read_sectors", "noc_request_packets"):
        assert result.totals[count] == pytest.approx(whole.totals[count], rel=0.1), count
    assert sum(result.cpi_stack.values()) == pytest.approx(result.cpi)
    assert pickle.loads(pickle.dumps(result)) == result
    (row,) = result.to_frame().to_dict("records")
    assert row["sampled_blocks"] == result.sampled_blocks
    assert whole.sampled_blocks == 0
    assert whole.ipc_bounds == (whole.ipc, whole.ipc)


def test_a_trace_of_a_sample_is_predicted_as_one():
    kernel = KERNELS["stream"]()
    sample = sample_of(kernel, 2112 // 4)
    ours, theirs = (
        ws.predict(one, "h100-sxm", MODELS, sample_blocks=how)
        for one, how in ((sample, 1), (kernel, 4))
    )
    for column in ("instructions", "cycles", "ipc", "ipc_low", "ipc_high", "sampled_blocks"):
        assert ours[column].tolist() == theirs[column].tolist(), column
    both = [ws.simulate(sample, "h100-sxm"), ws.simulate(kernel, "h100-sxm", sample_blocks=4)]
    assert both[0].cycles == both[1].cycles
    assert both[0].ipc_bounds == both[1].ipc_bounds


@pytest.mark.parametrize("model", ["closed_network", "interval_simulation"])
def test_launches_find_in_l2_what_earlier_ones_left(model):
    app = ws.App([strided(launch_id) for launch_id in (1, 2)])
    exact = ws.predict(app, "h100-sxm", model)["cycles"].tolist()
    assert exact[1] < 0.9 * exact[0]  # or the test would see nothing
    rows = ws.predict(app, "h100-sxm", model, sample_blocks=4)
    assert rows["cycles"].tolist() == pytest.approx(exact, rel=0.05)
    flushed = ws.predict(app, "h100-sxm", model, sample_blocks=4, flush_l2=True)["cycles"]
    assert flushed[0] == pytest.approx(flushed[1])
    simulated = [one.cycles for one in ws.simulate(app, "h100-sxm", sample_blocks=4)]
    assert simulated[1] < 0.95 * simulated[0]


@pytest.mark.parametrize("counters", [32, 2048 * 128])
def test_bars_know_that_atomics_of_all_blocks_may_meet(counters):
    kernel = ws.patterns.KernelBuilder("count", grid=2048, block=128)
    for _ in range(4):
        kernel.emit("RED.E.ADD", src=[2, 3], address=2**30 + kernel.thread % counters * 4)
    kernel.emit("EXIT")
    launch = kernel.build()
    whole = ws.predict(launch, "h100-sxm")["ipc"][0]
    (row,) = ws.predict(launch, "h100-sxm", sample_blocks=4).to_dict("records")
    assert row["ipc_low"] <= whole <= row["ipc_high"]
    simulated = ws.simulate(launch, "h100-sxm")
    low, high = ws.simulate(launch, "h100-sxm", sample_blocks=4).ipc_bounds
    assert 0 <= low <= simulated.ipc <= high


def test_small_launches_run_whole_behind_samples():
    app = ws.App([strided(1), ws.patterns.strided(gs=8, iterations=4, blocks=64, launch_id=2)])
    rows = ws.predict(app, "titan-v", MODELS, sample_blocks=8)
    exact = ws.predict(app, "titan-v", MODELS)
    small = rows["kernel"] == 2
    assert (rows["sampled_blocks"][small] == 0).all()
    assert rows["ipc_low"][small].tolist() == rows["ipc"][small].tolist()
    assert rows["cycles"][small].tolist() == pytest.approx(
        exact["cycles"][small].tolist(), rel=0.02
    )
    simulated = ws.simulate(app, "titan-v", sample_blocks=8)
    assert simulated[1].sampled_blocks == 0


def test_auto_takes_as_many_blocks_as_it_needs():
    alike, random = ws.patterns.stream(blocks=4096), ws.patterns.gather(loads=4)
    rows = ws.predict(ws.App([alike]), "h100-sxm", sample_blocks="auto")
    assert 0 < rows["sampled_blocks"][0] < 4096
    width = (rows["ipc_high"] - rows["ipc_low"]) / (2 * rows["ipc"])
    assert (width <= 0.05 + 1e-9).all()
    rows = ws.predict(random, "h100-sxm", sample_blocks="auto")
    assert ((rows["ipc_high"] - rows["ipc_low"]) / (2 * rows["ipc"]) <= 0.05 + 1e-9).all()


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "some", True, None, 10**30, float("nan")])
def test_what_sample_blocks_is(wrong):
    for call in (ws.predict, ws.simulate):
        with pytest.raises(ws.InputError, match=r"sample_blocks = .* is not a whole number"):
            call(ws.patterns.stream(blocks=4), "pascal-mdm", sample_blocks=wrong)
    assert ws.Options(sample_blocks=np.int64(8)).sample_blocks == 8


@pytest.mark.parametrize("other", [{"sample_sms": 0.5}, {"sample_launches": True}])
def test_one_sample_at_a_time(other):
    with pytest.raises(ws.InputError, match=r"sample_.*: thread blocks are a sample already"):
        ws.predict(ws.patterns.stream(blocks=4), "pascal-mdm", sample_blocks=4, **other)


TAKE_BLOCKS_AS_THEY_ARE = {
    "sweep": lambda kernel: ws.sweep(kernel, "titan-v", {"num_sms": [40, 80]}),
    "what_if": lambda kernel: ws.validation.what_if(kernel, "titan-v"),
    "lines": lambda kernel: ws.lines(kernel, "titan-v"),
    "roofline": lambda kernel: ws.models.roofline(kernel, "titan-v"),
    "dvfs": lambda kernel: ws.models.dvfs(kernel, "titan-v", [1.0]),
    "simulate_caches": lambda kernel: ws.simulate_caches(kernel, "titan-v"),
    "ablate": lambda kernel: ws.memory.ablate(kernel, "titan-v"),
    "reuse_profile": lambda kernel: ws.memory.reuse_profile(kernel, "titan-v"),
    "line_stream": lambda kernel: ws.memory.line_stream(kernel, "titan-v"),
}


@pytest.mark.parametrize("name", TAKE_BLOCKS_AS_THEY_ARE)
def test_who_cannot_take_a_sample_says_so(name):
    kernel = ws.patterns.stream(blocks=300)
    TAKE_BLOCKS_AS_THEY_ARE[name](kernel)
    with pytest.warns(ws.errors.TraceWarning, match=rf"^{name}: .* lack 172 of 300 in kernel"):
        TAKE_BLOCKS_AS_THEY_ARE[name](sample_of(kernel, 128))
