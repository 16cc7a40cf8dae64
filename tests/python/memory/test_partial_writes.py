"""What a sector that is written in part costs a slice of L2."""

import pytest

import warpstack as ws


def scattered_stores(opcode, spread):
    """Return a kernel whose warps store a word or 32 bytes per lane, `spread` bytes apart."""
    builder = ws.patterns.KernelBuilder("stores", grid=40, block=256)
    for turn in range(8):
        builder.emit(opcode, src=(2, 4), address=(1 << 30) + (turn << 24) + spread * builder.thread)
    builder.emit("EXIT")
    return builder.build()


def on(turns):
    return ws.gpu("a100").replace(
        num_sms=4,
        l2_slices=2,
        dram_channels=1,
        dram_bandwidth_gbs=1e6,
        l2_partial_write_turns=turns,
    )


@pytest.mark.parametrize("turns", [1, 3])
def test_a_word_of_a_sector_takes_more_turns(turns):
    """Each sector of a line is one request here, with one more turn or three."""
    kernel = scattered_stores("STG.E", 128)
    plain, partial = on(0), on(turns)
    models = ["closed_network", "interval_simulation"]
    before = [ws.simulate(kernel, plain).cycles, *ws.predict(kernel, plain, models)["cycles"]]
    after = [ws.simulate(kernel, partial).cycles, *ws.predict(kernel, partial, models)["cycles"]]
    for a, b in zip(before, after, strict=True):
        assert b / a == pytest.approx(1 + turns, rel=0.25)
    requests = kernel.num_blocks * 256 * 8
    assert sum(ws.simulate_caches(kernel, plain)._core.slice_turns) == requests
    assert sum(ws.simulate_caches(kernel, partial)._core.slice_turns) == requests * (1 + turns)


def test_whole_sectors_cost_nothing_more():
    kernel = scattered_stores("STG.E", 4)
    assert ws.simulate(kernel, on(0)).cycles == ws.simulate(kernel, on(3)).cycles
    models = ["closed_network", "interval_simulation"]
    assert (
        ws.predict(kernel, on(0), models)["cycles"].tolist()
        == ws.predict(kernel, on(3), models)["cycles"].tolist()
    )


def test_families_of_caches_count_the_same():
    """A sweep of cache sizes answers as each point alone."""
    kernel = scattered_stores("STG.E", 12)
    gpu = on(2)
    sizes = [256, 512, 1024]
    swept = ws.sweep(kernel, gpu, {"l2_size_kib": sizes}, models=["closed_network"])
    for size, cycles in zip(sizes, swept["cycles"], strict=True):
        alone = ws.predict(kernel, gpu.replace(l2_size_kib=size), ["closed_network"])
        assert cycles == pytest.approx(alone["cycles"][0], rel=1e-9)
