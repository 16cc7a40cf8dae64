"""How many memory instructions the load-store unit of an SM takes per cycle."""

import pytest

import warpstack as ws

LOADS, WARPS = 64, 8


def cycles_per_instruction(opcode, spread=4, **fields):
    """Return cycles per instruction of an SM by simulator, interval simulation and closed_network.

    Eight warps load what L1 has, or use shared memory; lanes are `spread` bytes apart.
    """
    plain = {"lsu_interval": 1, "shared_wavefront_cycles": 1, "l1_tags_per_cycle": 0}
    gpu = ws.gpu("h100-pcie").replace(num_sms=1, **(plain | fields))
    times = []
    for count in (LOADS, 3 * LOADS):
        builder = ws.patterns.KernelBuilder(
            "rates", grid=1, block=32 * WARPS, shared_memory_bytes=8192
        )
        lane = builder.thread % 32
        for number in range(count):
            address = spread * lane
            builder.emit(opcode, dst=10 + 4 * (number % 48), src=2, address=address)
        builder.emit("EXIT")
        kernel = builder.build()
        models = ["interval_simulation", "closed_network"]
        times.append([ws.simulate(kernel, gpu).cycles, *ws.predict(kernel, gpu, models)["cycles"]])
    return [(b - a) / (2 * LOADS * WARPS) for a, b in zip(*times, strict=True)]


@pytest.mark.parametrize(
    ("opcode", "fields", "expected"),
    [
        ("LDG.E", {}, 1),
        ("LDG.E", {"lsu_interval": 2}, 2),
        ("LDG.E", {"lsu_interval": 2, "shared_wavefront_cycles": 3}, 2),
        ("LDS", {}, 1),
        ("LDS", {"lsu_interval": 2}, 2),
        ("LDS", {"shared_wavefront_cycles": 2}, 2),
        ("LDS", {"lsu_interval": 3, "shared_wavefront_cycles": 2}, 3),
        ("ATOMS.ADD", {"lsu_interval": 3, "shared_wavefront_cycles": 2}, 2),
    ],
)
def test_one_pass_each(opcode, fields, expected):
    for each in cycles_per_instruction(opcode, **fields):
        assert each == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize(
    ("opcode", "spread", "fields", "expected"),
    [
        ("LDS", 16, {"lsu_interval": 2}, 4),  # bank conflicts of four lanes
        ("LDS", 16, {"lsu_interval": 2, "shared_wavefront_cycles": 2}, 8),
        ("LDG.E", 32, {"lsu_interval": 2}, 8),  # eight lines
    ],
)
def test_several_passes_take_their_time(opcode, spread, fields, expected):
    for each in cycles_per_instruction(opcode, spread=spread, **fields):
        assert each == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize(
    ("opcode", "words", "fields", "expected"),
    [
        ("LDG.E", 1, {}, 1),
        ("LDG.E", 1, {"lsu_interval": 2}, 2),
        ("LDG.E", 4, {"lsu_interval": 2}, 4),
        ("LDG.E", 8, {}, 8),
        ("LDG.E", 3, {}, 1),  # 12 sectors, no conflict
        ("LDG.E", 3, {"l1_tags_per_cycle": 1}, 3),
        ("LDG.E.64", 6, {}, 2),
        ("LDG.E", 32, {}, 32),  # all lanes in one bank
        ("LDG.E", 33, {}, 8),  # 32 lines, no conflict
        ("LDG.E", 48, {}, 16),
        ("LDG.E.64", 2, {}, 2),
        ("LDG.E.128", 4, {}, 4),
        ("LDG.E", 33, {"l1_tags_per_cycle": 1}, 32),
        ("LDG.E", 33, {"l1_tags_per_cycle": 2}, 16),
        ("LDG.E.128", 4, {"l1_tags_per_cycle": 2}, 4),
        ("RED.E.ADD", 32, {}, 32),  # atomics as ever
    ],
)
def test_tags_and_banks_of_l1(opcode, words, fields, expected):
    fields = {"l1_tags_per_cycle": 4} | fields
    for each in cycles_per_instruction(opcode, spread=4 * words, **fields):
        assert each == pytest.approx(expected, rel=0.15)
