"""Cards that people have: what their compute capability allows, and how `warpstack gpus` lists them."""

import csv
import io
import json
import re

import pytest

import warpstack as ws
from warpstack.cli import main
from warpstack.hardware.architectures import ARCHITECTURES, architecture, by_architecture

PAPERS = ("gpumech-baseline", "pascal-mdm")
CARDS = [name for name in ws.gpus() if name not in PAPERS]
#: Those with limits and units as on the chip; the others follow Accel-Sim.
CHIPS = [name for name in CARDS if name not in ("rtx2060", "rtx3070", "qv100", "titan-v")]
#: By compute capability, after NVIDIA's tables: warps, blocks and KiB of shared memory of an SM, KiB
#: that L1 shares with it (0: nothing), bytes of shared memory that a block has besides its own, and the
#: results of single and double precision per clock.
LIMITS = {
    5.2: (64, 32, 96, 0, 0, 128, 4),
    6.0: (64, 32, 64, 0, 0, 64, 32),
    6.1: (64, 32, 96, 0, 0, 128, 4),
    7.0: (64, 32, 96, 128, 0, 64, 32),
    7.5: (32, 16, 64, 96, 0, 64, 2),
    8.0: (64, 32, 164, 192, 1024, 64, 32),
    8.6: (48, 16, 100, 128, 1024, 128, 2),
    8.7: (48, 16, 164, 192, 1024, 128, 2),
    8.9: (48, 24, 100, 128, 1024, 128, 2),
    9.0: (64, 32, 228, 256, 1024, 128, 64),
    10.0: (64, 32, 228, 256, 1024, 128, 64),
    10.3: (64, 32, 228, 256, 1024, 128, 2),
    12.0: (48, 24, 100, 128, 1024, 128, 2),
}


@pytest.mark.parametrize("name", CHIPS)
def test_limits_of_the_compute_capability(name):
    card = ws.gpu(name)
    warps, blocks, shared, unified, reserved, _, _ = LIMITS[card.compute_capability]
    assert (card.warps_per_sm, card.threads_per_sm) == (warps, 32 * warps)
    assert card.blocks_per_sm == blocks
    assert card.registers_per_sm == 65536
    assert card.register_allocation_unit == 256
    assert (card.shared_memory_kib_per_sm, card.unified_l1_kib) == (shared, unified)
    assert card.shared_memory_reserved_bytes == reserved
    assert card.shared_memory_allocation_bytes == (128 if card.compute_capability >= 8 else 256)


@pytest.mark.parametrize("name", CHIPS)
def test_rates_of_the_compute_capability(name):
    card = ws.gpu(name)
    *_, single, double = LIMITS[card.compute_capability]
    assert 32 * card.issue_width / card.fp32_interval == single
    assert 32 * card.issue_width / card.fp64_interval == double


@pytest.mark.parametrize(
    ("name", "threads", "registers", "shared", "blocks", "limit"),
    [
        # 48 warps are 6 blocks of 8; 64 are 8, and 32 are 4.
        ("rtx5090", 256, 32, 0, 6, "warps_per_sm"),
        ("orin-agx", 256, 32, 0, 6, "warps_per_sm"),
        ("p100", 256, 32, 0, 8, "warps_per_sm"),
        ("t4", 256, 32, 0, 4, "warps_per_sm"),
        # Small blocks: 24, 16 or 32 of them.
        ("rtx-pro6000", 32, 16, 0, 24, "blocks_per_sm"),
        ("rtx4060", 32, 16, 0, 24, "blocks_per_sm"),
        ("orin-agx", 32, 16, 0, 16, "blocks_per_sm"),
        ("a10", 32, 16, 0, 16, "blocks_per_sm"),
        ("gh200", 32, 16, 0, 32, "blocks_per_sm"),
        # 65,536 registers hold 512 threads of 128.
        ("b300", 128, 128, 0, 4, "registers_per_sm"),
        ("l40", 128, 128, 0, 4, "registers_per_sm"),
        # Blocks of 32 KiB and the one that each has besides: 33 KiB in 100, 164 and 228; 32 in 64.
        ("rtx5090", 128, 32, 32768, 3, "shared_memory_kib_per_sm"),
        ("orin-agx", 128, 32, 32768, 4, "shared_memory_kib_per_sm"),
        ("a100-80gb", 128, 32, 32768, 4, "shared_memory_kib_per_sm"),
        ("b300", 128, 32, 32768, 6, "shared_memory_kib_per_sm"),
        ("p100", 128, 32, 32768, 2, "shared_memory_kib_per_sm"),
        ("t4", 128, 32, 32768, 2, "shared_memory_kib_per_sm"),
    ],
)
def test_occupancy(name, threads, registers, shared, blocks, limit):
    kernel = ws.patterns.KernelBuilder(
        "occupancy",
        grid=64,
        block=threads,
        registers_per_thread=registers,
        shared_memory_bytes=shared,
    )
    kernel.emit("EXIT")
    found = ws.memory.occupancy(kernel.build(), name)
    assert (found["blocks_per_sm"], found["limit"]) == (blocks, limit)
    assert found["warps_per_sm"] == blocks * threads // 32


@pytest.mark.parametrize("name", CARDS)
def test_description_names_the_architecture(name):
    """The architecture follows from the compute capability, the description is written by hand."""
    assert architecture(ws.gpu(name)) in ws.gpu(name).description


def test_architectures_of_papers():
    assert {architecture(ws.gpu(name)) for name in PAPERS} == {"papers"}
    assert {architecture(ws.gpu(name)) for name in ws.gpus()} == set(ARCHITECTURES)


def test_order_of_the_list():
    names = [one.name for one in by_architecture(map(ws.gpu, reversed(ws.gpus())))]
    assert sorted(names) == ws.gpus()
    assert names[0] == "titan-x-maxwell"
    assert tuple(names[-2:]) == PAPERS
    ampere = [name for name in names if architecture(ws.gpu(name)) == "Ampere"]
    assert ampere[:6] == ["a10", "a40", "a100", "a100-80gb", "a100-80gb-pcie", "a100-pcie"]
    places = [ARCHITECTURES.index(architecture(ws.gpu(name))) for name in names]
    assert places == sorted(places)


def test_list_names_each_architecture_once(capsys):
    assert main(["gpus", "--wide"]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = [re.match(r"\S+", line) for line in lines]
    begun = [match[0] for match in first if match and match[0] in ARCHITECTURES]
    assert begun == list(ARCHITECTURES)


@pytest.mark.parametrize("form", ["--json", "--csv"])
def test_rows_for_programs_have_the_architecture(form, capsys):
    assert main(["gpus", form]) == 0
    out = capsys.readouterr().out
    rows = json.loads(out) if form == "--json" else list(csv.DictReader(io.StringIO(out)))
    assert {row["name"]: row["architecture"] for row in rows} == {
        name: architecture(ws.gpu(name)) for name in ws.gpus()
    }
