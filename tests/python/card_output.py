"""What `calibrate.cu` would print on a card whose times follow from a few numbers, by the formulas below.

Constants that no slope sees are odd numbers; one repeat in five is disturbed, which no median sees.
"""

from __future__ import annotations

import math
from typing import Any

KIB = 1024

#: The numbers of the card, by the fields of `Gpu` that they are recovered as.
TRUTH: dict[str, Any] = {
    "compute_capability": 8.6,
    "num_sms": 20,
    "clock_ghz": 1.25,
    "issue_width": 4.0,
    "warps_per_sm": 64,
    "threads_per_sm": 2048,
    "blocks_per_sm": 32,
    "registers_per_sm": 65536,
    "shared_memory_kib_per_sm": 100.0,
    "shared_memory_reserved_bytes": 1024,
    "l1_size_kib": 128.0,
    "l1_mshrs": 64,
    "l1_latency": 33.0,
    "l1_global_loads": "cached",
    "l2_size_kib": 5120.0,
    "l2_latency": 212.0,
    "dram_latency": 251.0,
    "noc_bandwidth_gbs": 1500.0,
    "dram_bandwidth_gbs": 448.0,
    "dram_efficiency": 0.875,
    "latency_counts": "issue_to_issue",
    "integer_interval": 2,
    "fp32_interval": 1,
    "fp16_interval": 1,
    "fp64_interval": 32,
    "sfu_interval": 8,
    "integer_latency": 4.5,
    "fp32_latency": 4.0,
    "fp16_latency": 5.0,
    "fp64_latency": 40.0,
    "sfu_latency": 18.0,
    "barrier_latency": 7.0,
    "shuffle_latency": 23.0,
    "constant_latency": 26.0,
    "shared_memory_latency": 24.0,
    "launch_us_events": 3.5,
    "block_interval_cycles": 1.5,
    "block_replacement_ns": 400.0,
    "warp_start_cycles": 3.0,
    "lsu_interval": 1,
    "shared_wavefront_cycles": 2,
    "l1_tags_per_cycle": 2,
    "store_acknowledgement": "none",
    "kernel_end": "last_acknowledgement",
    "l2_partial_write_turns": 1.5,
    "l2_atomic_lane_turns": 0.5,
    "atomic_wait": "for_data",
}
#: What no field has, or only the base.
BESIDE: dict[str, Any] = {
    "conversion_latency": 14.0,
    "conversion_interval": 2,
    "name": "Plain_Card_7",
    "clock": 1_400_000,  # that the driver says
    "l2_slices": 40,
    "request_turns": 1.0,  # of what brings requests to L2
    "word_turns": None,  # of a lane where all use one word; by default as in distinct ones
    "stores_trips": None,  # that a place waits; by default as store_acknowledgement says
    "end_trips": None,  # that a kernel waits
    "l2_kept_kib": 4160,
    "code_kept": 4096,
}


def output(**changes: Any) -> str:
    """Return the text that the program prints on a card with these numbers, some of them changed."""
    t = {**TRUTH, **BESIDE, **changes}
    lines: list[str] = []

    def emit(key: str, value: Any, unit: str, **parameters: int) -> None:
        texts = "".join(f" {name}={number}" for name, number in parameters.items())
        lines.append(f"{key}{texts} {value} {unit}")

    def sample(key: str, value: float, unit: str, **parameters: int) -> None:
        for repeat in range(5):
            emit(key, round(value * (3 if repeat == 3 else 1), 3), unit, **parameters)

    emit("warpstack-calibration", 1, "format")
    emit("device.name", t["name"], "text")
    emit("device.capability", t["compute_capability"], "version")
    emit("device.driver", "12.4", "version")
    emit("device.runtime", "12.1", "version")
    emit("device.sms", t["num_sms"], "count")
    emit("device.clock", t["clock"], "kHz")
    emit("device.threads_per_sm", t["threads_per_sm"], "count")
    emit("device.blocks_per_sm", t["blocks_per_sm"], "count")
    emit("device.registers_per_sm", t["registers_per_sm"], "count")
    emit("device.shared_per_sm", int(t["shared_memory_kib_per_sm"] * KIB), "bytes")
    emit("device.shared_reserved", t["shared_memory_reserved_bytes"], "bytes")
    emit("device.l2_size", int(t["l2_size_kib"] * KIB), "bytes")
    emit("device.memory_clock", round(t["dram_bandwidth_gbs"] * 8e9 / 256 / 2e3), "kHz")
    emit("device.memory_bus", 256, "bits")

    for iterations in (1000, 3000):
        cycles = 777 + 256.0 * iterations
        sample("clock.cycles", cycles, "cycles", iterations=iterations)
        sample("clock.time", 5000 + cycles / t["clock_ghz"], "ns", iterations=iterations)
    classes = ("integer", "fp32", "fp16", "fp64", "sfu", "conversion")
    for length in (64, 192):
        for iterations in (10, 30):
            point = {"warps": 1, "length": length, "iterations": iterations}
            for name in (*classes, "shuffle", "barrier"):
                # A unit that is busy for longer than its latency lets the next instruction wait.
                each = max(t[f"{name}_latency"], t.get(f"{name}_interval", 0))
                sample(f"latency.{name}", 91 + iterations * (13 + each * length), "cycles", **point)
            point["warps"] = 16
            for name in classes:
                each = 16 * t[f"{name}_interval"] / 4
                sample(
                    f"interval.{name}", 91 + iterations * (13 + each * length), "cycles", **point
                )
            each = 16 / t["issue_width"]
            sample("interval.issue", 91 + iterations * (13 + each * length), "cycles", **point)
    for steps in (256, 768):
        shared, constant = t["shared_memory_latency"], t["constant_latency"]
        sample("latency.shared", 55 + steps * shared, "cycles", steps=steps)
        sample("latency.constant", 55 + steps * constant, "cycles", steps=steps)

    hit = t["l1_latency"] if t["l1_global_loads"] == "cached" else t["l2_latency"]
    for kib in (4, 8, 16, 32, 64, 96, 112, 120, 127, 136, 160, 256, 512):
        each = hit if kib <= t["l1_size_kib"] else t["l2_latency"]
        for steps in (4096, 8192):
            sample("chase.ca", 70 + steps * each, "cycles", footprint=kib * KIB, steps=steps)
    for steps in (1024, 3072):
        l2 = t["l2_latency"]
        sample("chase.cg", 70 + steps * l2, "cycles", footprint=64 * KIB, steps=steps)
        sample("chase.dram", 70 + steps * (l2 + t["dram_latency"]), "cycles", steps=steps)

    launch = t["launch_us_events"] * 1e3
    reached = t["dram_bandwidth_gbs"] * t["dram_efficiency"]
    eighth = int(t["l2_size_kib"] * KIB) // 8
    for eighths in (2, 4, 8):
        for passes in (4, 12):
            time = launch + passes * eighths * eighth / t["noc_bandwidth_gbs"]
            sample("stream.passes", time, "ns", footprint=eighths * eighth, passes=passes)
    for eighths in (16, 24, 32):
        time = launch + eighths * eighth / reached
        sample("stream.once", time, "ns", footprint=eighths * eighth)
    for eighths in (4, 6, 7, 8, 9, 10, 12):
        speed = t["noc_bandwidth_gbs"] if eighths <= 8 else reached
        sample("stream.again", launch + eighths * eighth / speed, "ns", footprint=eighths * eighth)

    for misses in (*range(4, 128, 4), *range(128, 256, 8)):
        turns = math.ceil(misses / t["l1_mshrs"])
        for rounds in (2, 6):
            cycles = 80 + rounds * (turns * t["l2_latency"] + misses)
            sample("misses", cycles, "cycles", lines=misses, rounds=rounds)

    for warps in (16, 32):
        for iterations in (8, 24):
            point = {"warps": warps, "iterations": iterations}
            for touched in (1, 8, 16, 24, 32):
                each = max(t["lsu_interval"], touched / (t["l1_tags_per_cycle"] or 1))
                cycles = 70 + iterations * (90 + 32 * warps * each)
                sample("loads.global", cycles, "cycles", lines=touched, **point)
            for passes in (1, 2, 4, 8, 16, 32):
                each = max(t["lsu_interval"], passes * t["shared_wavefront_cycles"])
                cycles = 70 + iterations * (90 + 32 * warps * each)
                sample("loads.shared", cycles, "cycles", passes=passes, **point)
    turn = 1 / t["clock_ghz"] / t["l2_slices"]  # of all slices, in ns
    of_lane, of_request = t["l2_atomic_lane_turns"], t["request_turns"]
    for lanes in (1, 4, 8, 16, 32):
        for requests in (20_000, 60_000):
            time = launch + requests * turn * max(of_request, lanes * of_lane)
            sample("reductions.lines", time, "ns", lanes=lanes, requests=requests)
    for requests in (20_000, 60_000):
        time = launch + requests * turn * of_request
        sample("reductions.stores", time, "ns", lanes=32, requests=requests)
    for lanes in (65536, 262_144):
        time = launch + lanes * max(t["word_turns"] or of_lane, 1 / 32) / t["clock_ghz"]
        sample("reductions.word", time, "ns", lanes=lanes)
    for length in (8, 24):
        for iterations in (64, 192):
            beside = length * t["fp32_latency"]
            each = 250 + beside if t["atomic_wait"] == "until_done" else max(250, beside)
            point = {"length": length, "iterations": iterations}
            sample("atomic.beside", 60 + iterations * each, "cycles", **point)
    for sectors in (200_000, 600_000):
        for what, turns in (("whole", 1), ("partial", 1 + t["l2_partial_write_turns"])):
            time = launch + sectors * turn * max(of_request, turns)
            sample(f"stores.{what}", time, "ns", sectors=sectors)
    for sixteenths in range(4, 25):
        footprint = sixteenths * eighth // 2
        speed = t["noc_bandwidth_gbs"] if footprint <= t["l2_kept_kib"] * KIB else reached
        for launches in (4, 12):
            time = launch + launches * (1100 + footprint / speed)
            sample("stream.curve", time, "ns", footprint=footprint, launches=launches)
    for written in (0, 1):
        time = launch + (1 + written) * 4 * eighth / reached
        sample("stream.behind", time, "ns", written=written, footprint=4 * eighth)

    trip = t["l2_latency"] / t["clock_ghz"]
    is_awaited = t["store_acknowledgement"] == "awaited"
    place = t["stores_trips"] if t["stores_trips"] is not None else float(is_awaited)
    is_acknowledged = is_awaited or t["kernel_end"] == "last_acknowledgement"
    end = t["end_trips"] if t["end_trips"] is not None else float(is_acknowledged)
    for stores in (0, 1):
        for waves in (4, 16, 64):
            time = launch + waves * (7000 + stores * place * trip)
            sample("turnover.waves", time, "ns", stores=stores, waves=waves)
        for launches in (100, 300):
            time = launch + launches * (20_000 + stores * end * trip)
            sample("turnover.launches", time, "ns", stores=stores, launches=launches)
    for instructions in range(1024, 10241, 1024):
        each = 4 if instructions <= t["code_kept"] else 5.5
        for iterations in (4, 12):
            cycles = 300 + iterations * instructions * each
            point = {"instructions": instructions, "iterations": iterations}
            sample("code.straight", cycles, "cycles", **point)

    sample("launch.events", launch, "ns")
    for launches in (200, 600):
        sample("launch.rate", 900 + 1700 * launches, "ns", launches=launches)
    places = t["num_sms"] * t["blocks_per_sm"]
    per_block = max(t["block_interval_cycles"] / t["clock_ghz"], t["block_replacement_ns"] / places)
    for threads in (32, 256):
        for blocks in (16384, 65536):
            time = launch + blocks * per_block
            sample("dispatch.grid", time, "ns", threads=threads, blocks=blocks)
    for warps in (1, 8, 32):
        sample("dispatch.warps", (warps - 1) * t["warp_start_cycles"], "cycles", warps=warps)
    block = 12_500.0
    for waves in (2, 4, 8):
        wave = block / t["clock_ghz"] + t["block_replacement_ns"] + place * trip
        sample("dispatch.waves", launch + waves * wave, "ns", iterations=200, waves=waves)
    sample("dispatch.block", block, "cycles", iterations=200)
    for number in range(t["num_sms"]):
        emit("map.block", (number * 7) % t["num_sms"], "sm", block=number)
    emit("end", len(lines), "lines")
    return "\n".join(lines) + "\n"
