"""CPI stacks one level below: the details sum to their components, and name what kernels wait for."""

import pytest
from hypothesis import HealthCheck, given, settings

import warpstack as ws
from effort import rounds
from machines import plain_pascal
from strategies import gpus, kernels
from warpstack import _core

COMPONENTS = ws.models.STACK_COMPONENTS
DETAILS = ws.models.STACK_DETAILS


def parts_of(details):
    """Return the sums of the components."""
    parts = dict.fromkeys(COMPONENTS, 0.0)
    for name, cycles in details.items():
        parts[DETAILS[name].component] += cycles
    return parts


def both(kernel, gpu):
    """Return the details of the simulator and of the model, as shares of the CPI."""
    simulated = ws.simulate(kernel, gpu)
    profile = ws.interval_profile(kernel, gpu)
    predicted = ws.models.evaluate(profile, gpu, "closed_network")
    return [
        {name: cycles / one.cpi for name, cycles in one.cpi_details.items()}
        for one in (simulated, predicted)
    ]


def largest(details, *components):
    """Return the largest detail of some components."""
    return max((n for n in details if DETAILS[n].component in components), key=details.get)


def test_details_stand_in_the_order_of_their_components():
    order = [COMPONENTS.index(detail.component) for detail in DETAILS.values()]
    assert order == sorted(order)
    assert set(order) == set(range(len(COMPONENTS)))
    assert list(DETAILS) == list(_core.STACK_DETAILS)


@pytest.mark.slow
@settings(max_examples=rounds(150), suppress_health_check=[HealthCheck.too_slow])
@given(kernels(mbarriers=True, spread_code=True), gpus())
def test_details_sum_to_the_components(kernel, gpu):
    result = ws.simulate(kernel, gpu)
    # The simulator counts in whole parts of slots.
    assert parts_of(result._core.details) == pytest.approx(result._core.slots, rel=1e-12, abs=0)
    profile = ws.interval_profile(kernel, gpu)
    prediction = ws.models.evaluate(profile, gpu, "closed_network")
    for one in (result, prediction):
        assert list(one.cpi_details) == list(DETAILS)
        assert min(one.cpi_details.values()) >= 0
        assert parts_of(one.cpi_details) == pytest.approx(one.cpi_stack, rel=1e-9, abs=1e-12)
        table = ws.models.stack_details(one)
        assert table["cycles"].sum() == pytest.approx(one.cpi, rel=1e-9)
        assert table["share"].sum() == pytest.approx(1, rel=1e-9)
        assert table["cycles"].is_monotonic_decreasing


def test_models_of_the_papers_have_none():
    kernel = ws.patterns.KernelBuilder("one", grid=1, block=32)
    kernel.emit("FADD", dst=4, src=4)
    profile = ws.interval_profile(kernel.build(), "a100")
    prediction = ws.models.evaluate(profile, "a100", "mdm")
    assert prediction.cpi_details == {}
    with pytest.raises(ws.InputError, match=r"mdm tells only the components .* closed_network"):
        ws.models.stack_details(prediction)


def tiled_transpose(pitch):
    """Return a transpose of tiles of 32 x 32 through shared memory, whose rows are `pitch` words apart."""
    k = ws.patterns.KernelBuilder("tiled", grid=432, block=256, shared_memory_bytes=32 * pitch * 4)
    lane, row = k.thread_in_block % 32, k.thread_in_block // 32
    tile = k.thread // 256
    for part in range(0, 32, 8):
        address = 0x10000000 + 4 * (tile * 1024 + (row + part) * 32 + lane)
        k.emit("LDG.E", dst=4 + part // 8, src=2, address=address)
    for part in range(0, 32, 8):
        k.emit("STS", src=(2, 4 + part // 8), address=4 * ((row + part) * pitch + lane))
    k.emit("BAR.SYNC")
    for part in range(0, 32, 8):
        k.emit("LDS", dst=12 + part // 8, src=2, address=4 * (lane * pitch + row + part))
    for part in range(0, 32, 8):
        address = 0x20000000 + 4 * (tile * 1024 + (row + part) * 32 + lane)
        k.emit("STG.E", src=(2, 12 + part // 8), address=address)
    k.emit("EXIT")
    return k.build()


def test_a_tile_without_padding_has_bank_conflicts():
    for details in both(tiled_transpose(32), ws.gpu("a100")):
        assert largest(details, "dep") == "bank_conflicts"
        assert details["bank_conflicts"] > 0.1
    for details in both(tiled_transpose(33), ws.gpu("a100")):
        assert details["bank_conflicts"] == 0


def histogram(bins):
    """Return a histogram in global memory, whose lanes meet in few bins."""
    k = ws.patterns.KernelBuilder("histogram", grid=216, block=256)
    for turn in range(4):
        k.emit("LDG.E", dst=4, src=2, address=0x10000000 + 4 * (k.thread + turn * 216 * 256))
        k.emit("RED.E.ADD", src=(2, 4), address=0x20000000 + 4 * (k.thread % bins))
    k.emit("EXIT")
    return k.build()


def test_lanes_that_meet_in_a_word_show_as_atomics():
    for details in both(histogram(1), ws.gpu("a100")):
        assert largest(details, *COMPONENTS) in ("atomics", "l2_atomics")


def naive_transpose(n):
    """Return a transpose that stores a column of sectors per warp."""
    k = ws.patterns.KernelBuilder("naive", grid=n * n // 256, block=256)
    column, row = k.thread % n, k.thread // n
    k.emit("LDG.E", dst=4, src=2, address=0x10000000 + 4 * k.thread)
    k.emit("STG.E", src=(2, 4), address=0x20000000 + 4 * (column * n + row))
    k.emit("EXIT")
    return k.build()


def test_a_naive_transpose_waits_for_slices():
    for details in both(naive_transpose(512), ws.gpu("a100")):
        assert largest(details, "noc") == "slices"
        assert details["slices"] > 0.2


def row(gpu, *steps, warps=1):
    """Return the details of a kernel of a block that does some steps, in cycles per instruction."""
    k = ws.patterns.KernelBuilder("row", grid=1, block=32 * warps, shared_memory_bytes=4096)
    for opcode, arguments in steps:
        k.emit(opcode, **arguments(k) if callable(arguments) else arguments)
    kernel = k.build()
    result = ws.simulate(kernel, gpu)
    return {n: round(v * result.instructions, 6) for n, v in result.cpi_details.items() if v > 0}


def test_a_warp_alone_by_hand():
    """Two FADD, a load of shared memory with a conflict of 32 turns, and its use."""
    gpu = plain_pascal(
        num_sms=1, issue_width=1, fp32_latency=4, shared_memory_latency=20, kernel_end="last_warp"
    )
    found = row(
        gpu,
        ("FADD", {"dst": 4, "src": 4}),
        ("LDS", lambda k: {"dst": 5, "src": 4, "address": 128 * (k.thread % 32)}),
        ("FADD", {"dst": 6, "src": 5}),
    )
    # The load waits for 4 cycles, of which one issues; it issues in the cycle before its first turn.
    assert found["issue"] == 3
    assert found["shared_memory"] + found["bank_conflicts"] == pytest.approx(20 + 31 + 1, abs=2)
    assert found["bank_conflicts"] == pytest.approx(31, abs=2)


@pytest.mark.parametrize("value", ["a" * 500, None, 5, ["closed_network"]])
def test_other_values_have_no_details(value):
    with pytest.raises(
        ws.InputError, match="result: expected a Prediction or a SimulationResult, got"
    ):
        ws.models.stack_details(value)
