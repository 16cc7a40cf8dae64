"""Memory profiles against those of the plain definition."""

from configurations import memory_config
from python_reference.memory import PlainMemorySystem

COUNTERS = [
    "sectors",
    "requests",
    "l2_requests",
    "l2_request_sectors",
    "dram_requests",
    "dram_sectors",
    "l1_hit_events",
    "l2_hit_events",
    "dram_events",
    "l1_waits",
    "l2_waits",
    "dram_waits",
    "l1_wait_cycles",
    "l2_wait_cycles",
    "dram_wait_cycles",
    "repeats",
    "l1_repeat_cycles",
    "l2_repeat_cycles",
    "dram_repeat_cycles",
]


def plain_system(gpu, **options):
    return PlainMemorySystem(memory_config(gpu, **options))


def assert_same(profile, plain):
    totals, rows, _ = plain
    instructions = ("load_instructions", "store_instructions", "atomic_instructions")
    for name, value in profile.totals.items():
        if name not in instructions:
            assert value == totals[name], name
    per_row = profile._core.per_row
    for row in range(len(profile.kernel.instructions)):
        for name in COUNTERS:
            assert per_row[name][row] == rows.get(row, {}).get(name, 0), (row, name)
