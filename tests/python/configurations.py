"""What each stage makes of a GPU, in plain Python: what the references are given.

The core's own way is in ``MemoryConfig::of``, ``ModelParameters::of`` and ``TimingConfig::of``.
"""

from warpstack._util.choices import order_of
from warpstack.memory.caches import BlockSchedule

CLASSES = ("integer", "fp32", "fp16", "fp64", "sfu", "tensor")
SLOW_CLASSES = ("uniform", "control", "barrier", "shuffle", "texture", "shared_memory")
TENSOR_TYPES = ("f16", "f16_f32", "bf16", "tf32", "f64", "f8", "s8", "s4", "b1")


def _bytes(kib):
    return int(kib * 1024)


def class_latencies(gpu):
    """Return latencies by class of operations; unknown ones are taken for integer ones."""
    found = {name: getattr(gpu, f"{name}_latency") for name in (*CLASSES, *SLOW_CLASSES)}
    return {**found, "constant_load": gpu.constant_latency, "unknown": gpu.integer_latency}


def tensor_unit(gpu):
    """Return the rates of a scheduler's tensor cores by type, and the cycles beside them."""
    rates = {name: getattr(gpu, f"tensor_{name}_rate") for name in TENSOR_TYPES}
    return {**rates, "interval": gpu.tensor_interval, "more_of_warp": gpu.tensor_warp_cycles}


def cache_config(gpu, level):
    """Return what `Cache` takes, for ``l1`` or ``l2``."""
    parts = ("ways", "line_bytes", "sector_bytes", "write_policy", "write_miss", "replacement")
    config = {part: getattr(gpu, f"{level}_{part}") for part in (*parts, "set_index")}
    config["size_bytes"] = _bytes(getattr(gpu, f"{level}_size_kib"))
    if level == "l1":
        own = {"slices": 1, "slice_interleave_bytes": gpu.l1_line_bytes, "slice_index": "modulo"}
        return {**config, **own, "allocation": gpu.l1_allocation}
    slices = ("slices", "slice_interleave_bytes", "slice_index")
    own = {part: getattr(gpu, f"l2_{part}") for part in slices}
    return {**config, **own, "allocation": "on_miss"}


def memory_config(gpu, blocks=None, *, access_order="auto", filter_l1_hits=True, written=0.0):
    """Return the memory system of a GPU."""
    blocks = blocks or BlockSchedule()
    return {
        "num_sms": gpu.num_sms,
        "sm": {
            "warps": gpu.warps_per_sm,
            "threads": gpu.threads_per_sm,
            "blocks": gpu.blocks_per_sm,
            "registers": gpu.registers_per_sm,
            "shared_memory_bytes": _bytes(gpu.shared_memory_kib_per_sm),
            "register_allocation_unit": gpu.register_allocation_unit,
            "shared_memory_allocation_bytes": gpu.shared_memory_allocation_bytes,
            "shared_memory_reserved_bytes": gpu.shared_memory_reserved_bytes,
        },
        "l1": cache_config(gpu, "l1"),
        "l2": {**cache_config(gpu, "l2"), "written_by_strangers": written},
        "unified_bytes": _bytes(gpu.unified_l1_kib),
        "carve_outs": list(map(_bytes, gpu.shared_memory_carve_outs_kib)),
        "adaptive_keeps_ways": gpu.adaptive_l1_keeps == "ways",
        "l1_caches_global": gpu.l1_global_loads == "cached",
        "filter_l1_hits": filter_l1_hits,
        "block_policy": blocks.policy,
        "seed": int(blocks.seed),
        "first_occupancy_only": blocks.first_occupancy_only,
        "access_order": order_of(access_order),
        "scheduler": gpu.scheduler,
        "issue_width": gpu.issue_width,
        "lsu_queue_entries": gpu.lsu_queue_entries,
        "atomics_per_lane": gpu.atomic_requests == "per_lane",
        "atomic_lane_turns": gpu.l2_atomic_lane_turns,
        "atomic_words_at_once": gpu.l2_atomic_words_at_once,
        "partial_write_turns": gpu.l2_partial_write_turns,
        "reserves_lines": gpu.lines_under_way == "reserved",
        "atomics_stop_warps": gpu.atomic_wait == "until_done",
        # A streaming L1 is bounded by its queue of requests (MDM, footnote 2).
        "l1_mshrs": gpu.noc_queue_entries or gpu.l1_mshrs,
    }


def simulator_config(gpu, written=0.0):
    """Return the GPU as the simulator has it, with this share of L2's lines written by strangers."""
    intervals = {name: getattr(gpu, f"{name}_interval") for name in CLASSES}
    return {
        **gpu.values(),
        "memory": memory_config(gpu, written=written),
        "block_replacement_cycles": gpu.block_replacement_cycles,
        "dram_bandwidth_gbs": gpu.sustained_dram_bandwidth_gbs,
        "schedulers_per_sm": gpu.num_schedulers,
        "latency": {**class_latencies(gpu), "tensor_unit": tensor_unit(gpu)},
        "interval": {**intervals, "unknown": gpu.integer_interval},
        # A streaming L1 blocks on its NoC queue, not on MSHRs (MDM, footnote 2).
        "l1_mshrs": 0 if gpu.noc_queue_entries else gpu.l1_mshrs,
        "noc_queue_entries": gpu.noc_queue_entries or gpu.l1_miss_queue_entries,
        "dram_channels": gpu.dram_channels or gpu.l2_slices,
    }


def model_parameters(gpu):
    """Return what the models read of a GPU. Ports and slices work at the clock of L2."""
    l2_clock = gpu.l2_clock_ghz or gpu.clock_ghz
    channels = gpu.dram_channels or gpu.l2_slices
    # CL + 2 - WL from reads to writes, WL + tWTR from writes to reads.
    turn = (gpu.dram_cl + 2 + gpu.dram_twtr) * gpu.clock_ghz / (gpu.dram_clock_ghz or l2_clock)
    as_they_are = (
        *("scheduler", "issue_width", "clock_ghz", "l1_sector_bytes", "l2_sector_bytes"),
        *("l2_latency", "dram_latency", "noc_bandwidth_gbs", "noc_control_bytes"),
        "dram_efficiency",
    )
    return {
        **{name: getattr(gpu, name) for name in as_they_are},
        "schedulers_per_sm": gpu.num_schedulers,
        "l1_mshrs": gpu.noc_queue_entries or gpu.l1_mshrs,
        "dram_bandwidth_gbs": gpu.sustained_dram_bandwidth_gbs,
        "noc_sm_bytes_per_cycle": gpu.noc_sm_bytes_per_cycle * l2_clock / gpu.clock_ghz,
        "l2_requests_per_cycle": gpu.l2_slices
        / gpu.l2_slice_request_cycles
        * l2_clock
        / gpu.clock_ghz,
        "l2_bytes_per_cycle": gpu.l2_slices
        * gpu.l2_slice_bytes_per_cycle
        * l2_clock
        / gpu.clock_ghz,
        "dram_turnaround_cycles": turn / channels / gpu.dram_banks if gpu.dram_row_bytes else 0.0,
        "unit_intervals": {
            **{name: getattr(gpu, f"{name}_interval") for name in CLASSES if name != "tensor"},
            "unknown": gpu.integer_interval,
        },
        "block_replacement_cycles": gpu.block_replacement_cycles,
    }
