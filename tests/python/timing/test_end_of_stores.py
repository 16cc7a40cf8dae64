"""Who waits until stores are acknowledged: blocks, or only the launch."""

import pytest

import warpstack as ws

ROUND_TRIP = 400


def cycles(blocks, **ends):
    """Return the cycles of simulator, interval simulation and closed_network of blocks that store."""
    gpu = ws.gpu("h100-pcie").replace(
        num_sms=1, blocks_per_sm=1, l2_latency=ROUND_TRIP, block_replacement_ns=0.0, **ends
    )
    builder = ws.patterns.KernelBuilder("stores", grid=blocks, block=32)
    builder.emit("STG.E", src=(2, 4), address=(1 << 30) + 4 * builder.thread)
    builder.emit("EXIT")
    kernel = builder.build()
    models = ["interval_simulation", "closed_network"]
    return [ws.simulate(kernel, gpu).cycles, *ws.predict(kernel, gpu, models)["cycles"]]


@pytest.mark.parametrize("blocks", [1, 10])
def test_only_the_launch_waits(blocks):
    """Blocks make room before; each of them takes some cycles to start and issue."""
    at_end = cycles(blocks, store_acknowledgement="none", kernel_end="last_acknowledgement")
    for each in at_end:
        assert ROUND_TRIP <= each <= ROUND_TRIP + 15 * blocks
    nobody = cycles(blocks, store_acknowledgement="none", kernel_end="last_store")
    assert at_end[0] - nobody[0] == pytest.approx(ROUND_TRIP, abs=4)


def test_blocks_wait():
    for each in cycles(10, store_acknowledgement="awaited"):
        assert each >= 10 * ROUND_TRIP


def test_a_launch_without_stores_waits_for_nothing():
    builder = ws.patterns.KernelBuilder("none", grid=3, block=64)
    builder.emit("FFMA", dst=10, src=(10, 11))
    builder.emit("EXIT")
    kernel = builder.build()
    gpu = ws.gpu("h100-pcie")
    assert gpu.kernel_end == "last_acknowledgement"
    other = gpu.replace(kernel_end="last_warp")
    models = ["interval_simulation", "closed_network"]
    assert ws.simulate(kernel, gpu).cycles == ws.simulate(kernel, other).cycles
    assert (
        ws.predict(kernel, gpu, models)["cycles"].tolist()
        == ws.predict(kernel, other, models)["cycles"].tolist()
    )
