"""Descriptions are recovered from the times of the program's kernels on simulated GPUs.

Two GPUs as different as a Hopper and a Pascal, with values of their own and few SMs, so that simulations
are short. The bases differ from them in everything that is measured.
"""

from pathlib import Path

import pytest
from simulated_card import SimulatedCard

import warpstack as ws

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not ws.cuda.compilers(), reason="needs a CUDA compiler"),
]

SOURCE = Path(ws.__file__).parent / "calibration/calibrate.cu"

_HOPPER = ws.gpu("h100-pcie").replace(
    unified_l1_kib=0, shared_memory_carve_outs_kib=(), l2_slices=8
)
_PASCAL = ws.gpu("gtx1080")
#: The known GPU and the base of its description.
CARDS = {
    "hopper": (
        _HOPPER.replace(
            num_sms=6,
            clock_ghz=1.5,
            l1_size_kib=64,
            l1_ways=128,
            l1_mshrs=96,
            l2_size_kib=640,
            noc_bandwidth_gbs=400,
            dram_bandwidth_gbs=100,
            dram_efficiency=0.9,
            launch_us_events=2.5,
            block_interval_cycles=20,
            block_replacement_ns=300,
            warp_start_cycles=5,
        ),
        _HOPPER.replace(
            fp32_latency=9,
            integer_latency=9,
            fp64_latency=20,
            sfu_latency=30,
            shuffle_latency=10,
            constant_latency=50,
            shared_memory_latency=10,
            l1_latency=99,
            l2_latency=400,
            dram_latency=500,
            integer_interval=1,
            fp64_interval=8,
            sfu_interval=2,
            barrier_latency=30,
        ),
    ),
    "pascal": (
        _PASCAL.replace(
            num_sms=4,
            clock_ghz=1.2,
            l1_global_loads="cached",
            l1_size_kib=24,
            l1_ways=48,
            l1_mshrs=48,
            l2_size_kib=512,
            integer_latency=7,
            fp32_latency=5,
            l2_latency=240,
            dram_latency=300,
            noc_bandwidth_gbs=200,
            dram_bandwidth_gbs=60,
            dram_efficiency=0.8,
            launch_us_events=6,
            block_interval_cycles=2.5,
            block_replacement_ns=60,
            warp_start_cycles=2,
        ),
        _PASCAL,
    ),
}
#: How far a value may be from that of the known GPU: nothing where only whole cycles are lost or won.
TOLERANCES = {
    **dict.fromkeys(
        (
            "num_sms",
            "warps_per_sm",
            "threads_per_sm",
            "blocks_per_sm",
            "registers_per_sm",
            "shared_memory_kib_per_sm",
            "shared_memory_reserved_bytes",
            "l2_size_kib",
            "l1_size_kib",
            "l1_mshrs",
            "issue_width",
            "integer_interval",
            "fp32_interval",
            "fp16_interval",
            "fp64_interval",
            "sfu_interval",
            "clock_ghz",
        ),
        1e-6,
    ),
    **dict.fromkeys(
        (
            "integer_latency",
            "fp32_latency",
            "fp64_latency",
            "sfu_latency",
            "barrier_latency",
            "shuffle_latency",
            "shared_memory_latency",
            "l1_latency",
            "l2_latency",
            "dram_latency",
            "launch_us_events",
        ),
        0.01,
    ),
    "constant_latency": 0.02,  # 20.7 cycles end at the next edge of the clock, after 21
    "dram_bandwidth_gbs": 0.001,
    "dram_efficiency": 0.06,  # few warps do not keep all channels busy all the time
    "noc_bandwidth_gbs": 0.1,  # nor all slices
    "block_interval_cycles": 0.02,
    "block_replacement_ns": 0.05,
    "warp_start_cycles": 0.05,
}


@pytest.fixture(scope="module")
def module():
    return ws.cuda.compile(SOURCE)


@pytest.mark.parametrize("name", CARDS)
def test_a_known_gpu_is_recovered(name, module, tmp_path):
    known, base = CARDS[name]
    (tmp_path / "run.txt").write_text(SimulatedCard(module, known).run())
    found = ws.calibration.calibrate(tmp_path / "run.txt", base=base)
    for field, tolerance in TOLERANCES.items():
        value, truth = getattr(found.gpu, field), getattr(known, field)
        assert field in found.measured, field
        assert value == pytest.approx(truth, rel=tolerance), field
    assert found.gpu.l1_global_loads == "cached"
    assert found.gpu.latency_counts == "issue_to_issue"
    (knee,) = (note for note in found.notes if note.startswith("L2 holds"))
    size = known.l2_size_kib
    assert knee.startswith(
        f"L2 holds footprints of {size:g} KiB, and not those of {size * 9 / 8:g}"
    )
