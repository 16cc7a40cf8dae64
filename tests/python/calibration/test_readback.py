"""Descriptions are recovered from the times of the program's kernels on simulated GPUs.

Two GPUs as different as a Hopper and a Pascal, with values of their own and few SMs, so that simulations
are short. The bases differ from them in everything that is measured.
"""

import re
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
    unified_l1_kib=0, shared_memory_carve_outs_kib=(), l2_slices=8, l2_set_index="modulo"
)
# Chance would leave an L2 as small as these some sets with too much of any footprint.
_PASCAL = ws.gpu("gtx1080").replace(l2_set_index="modulo")
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


#: The part of the program that measures a field, values of it, and how far the found one may be off.
ONE_BY_ONE = [
    ("memory_instructions", "lsu_interval", (1, 2, 3), 1e-6),
    ("memory_instructions", "shared_wavefront_cycles", (1, 2, 3), 1e-6),
    ("memory_instructions", "l1_tags_per_cycle", (0, 2, 4), 1e-6),
    (
        "l2_writes",
        "l2_partial_write_turns",
        (5, 9),
        0.12,
    ),  # slices do not get alike many of the stores
    ("atomics", "l2_atomic_lane_turns", (0, 1, 2), 0.05),
    ("atomics", "atomic_wait", ("for_data", "until_done"), None),
    ("ends_of_blocks", "store_acknowledgement", ("none", "awaited"), None),
    ("ends_of_blocks", "kernel_end", ("last_store", "last_acknowledgement"), None),
]


def recovered(tmp_path, module, known, base, parts):
    (tmp_path / "run.txt").write_text(SimulatedCard(module, known).run(("clock", *parts)))
    # These are measured by other parts.
    base = base.replace(l1_global_loads="cached", fp32_latency=known.fp32_latency)
    return ws.calibration.calibrate(tmp_path / "run.txt", base=base)


@pytest.mark.parametrize("name", CARDS)
@pytest.mark.parametrize(
    ("part", "field", "value", "tolerance"),
    [(part, field, v, tolerance) for part, field, values, tolerance in ONE_BY_ONE for v in values],
)
def test_one_field_is_recovered(name, part, field, value, tolerance, module, tmp_path):
    card, base = CARDS[name]
    others = next(values for _, known, values, _ in ONE_BY_ONE if known == field)
    if field == "l1_tags_per_cycle":
        base = base.replace(l1_tags_per_cycle=value and 1)  # whether a line per cycle is 0 or 1
    else:
        base = base.replace(**{field: next(v for v in others if v != value)})
    found = recovered(tmp_path, module, card.replace(**{field: value}), base, [part])
    assert field in found.measured, found.notes
    expected = value if tolerance is None else pytest.approx(value, rel=tolerance)
    assert getattr(found.gpu, field) == expected, found.gpu.sources[field]


def test_turns_of_stores_that_the_network_hides_leave_the_base(module, tmp_path):
    card, base = CARDS["pascal"]
    card = card.replace(l2_partial_write_turns=1)
    found = recovered(tmp_path, module, card, base, ["l2_writes"])
    assert "l2_partial_write_turns" not in found.measured
    assert [note for note in found.notes if "turns cannot be seen" in note]


@pytest.mark.parametrize("name", CARDS)
@pytest.mark.parametrize("acknowledgement", ["none", "awaited"])
def test_replacement_does_not_contain_the_wait_for_stores(name, acknowledgement, module, tmp_path):
    card, base = CARDS[name]
    card = card.replace(store_acknowledgement=acknowledgement)
    parts = ["l2_and_dram_latency", "dispatch", "ends_of_blocks"]
    found = recovered(tmp_path, module, card, base, parts)
    assert found.gpu.block_replacement_ns == pytest.approx(card.block_replacement_ns, abs=10)


@pytest.mark.parametrize("name", CARDS)
@pytest.mark.parametrize("size", [1, 2])
def test_what_l2_keeps_and_what_written_lines_cost(name, size, module, tmp_path):
    card, base = CARDS[name]
    card = card.replace(l2_size_kib=size * card.l2_size_kib)
    times = {}
    for policy in ("write_back", "write_through"):
        changed = card.replace(l2_write_policy=policy)
        found = recovered(tmp_path, module, changed, base, ["l2_contents"])
        said = "; ".join(found.notes)
        kept, whole = re.search(r"L2 keeps (\d+) of (\d+) KiB from one launch", said).groups()
        assert int(whole) == card.l2_size_kib
        assert 7 / 8 <= int(kept) / int(whole) <= 1  # sets are not filled alike
        half = f"reading {card.l2_size_kib / 2:g} KiB takes"
        times[policy] = re.search(rf"{half} ([\d.]+) us .* lines, ([\d.]+) us", said).groups()
    dirty, clean = map(float, times["write_back"])
    assert dirty > 1.2 * clean
    dirty, clean = map(float, times["write_through"])
    assert dirty == pytest.approx(clean, rel=0.05)


def test_straight_code_takes_its_latency(module, tmp_path):
    card, base = CARDS["hopper"]
    said = "; ".join(recovered(tmp_path, module, card, base, ["straight_code"]).notes)
    each = [float(number) for number in re.findall(r"(?:1024|5120|10240) ([\d.]+)", said)]
    assert each == pytest.approx(3 * [card.integer_latency], rel=0.02)
    assert "instruction caches" not in said  # the simulated GPU fetches without delay
