"""Types of the arguments of `Gpu.replace`, one per field: made by tools/gpu-changes."""

from collections.abc import Sequence
from typing import Literal, TypedDict

__all__ = ["GpuChanges"]


class GpuChanges(TypedDict, total=False):
    """New values by field name; `Gpu` says what each means."""

    name: str
    description: str
    num_sms: int
    clock_ghz: float
    base_clock_ghz: float
    launch_us_nsys: float
    launch_us_ncu: float
    launch_us_nvprof: float
    launch_us_events: float
    block_interval_cycles: float
    block_replacement_ns: float
    warp_start_cycles: float
    compute_capability: float
    issue_width: float
    scheduler: Literal["gto", "lrr", "oldest", "gty"]
    schedulers_per_sm: int
    warps_per_sm: int
    threads_per_sm: int
    blocks_per_sm: int
    registers_per_sm: int
    register_allocation_unit: int
    shared_memory_kib_per_sm: float
    shared_memory_allocation_bytes: int
    shared_memory_reserved_bytes: int
    l1_size_kib: float
    l1_ways: int
    l1_line_bytes: int
    l1_sector_bytes: int
    l1_mshrs: int
    l1_mshr_targets: int
    l1_latency: float
    l1_latency_place: Literal["after_tags", "before_tags"]
    lines_under_way: Literal["replaceable", "reserved"]
    l1_write_policy: Literal["write_through", "write_back"]
    l1_write_miss: Literal[
        "no_allocate",
        "fetch_on_write",
        "write_validate",
        "fetch_on_partial_write",
        "write_and_fetch",
    ]
    l1_replacement: Literal["lru", "fifo", "plru"]
    l1_allocation: Literal["on_miss", "on_fill"]
    l1_set_index: Literal["modulo", "xor", "ipoly"]
    l1_global_loads: Literal["cached", "bypassed"]
    unified_l1_kib: float
    shared_memory_carve_outs_kib: Sequence[float]
    adaptive_l1_keeps: Literal["sets", "ways"]
    noc_queue_entries: int
    l1_miss_queue_entries: int
    lsu_queue_entries: int
    atomic_requests: Literal["per_line", "per_lane"]
    l2_atomic_lane_turns: float
    store_acknowledgement: Literal["none", "awaited"]
    kernel_end: Literal["last_store", "last_warp", "last_transfer"]
    l2_size_kib: float
    l2_ways: int
    l2_line_bytes: int
    l2_sector_bytes: int
    l2_slices: int
    l2_slice_interleave_bytes: int
    l2_latency: float
    l2_clock_ghz: float
    l2_write_policy: Literal["write_through", "write_back"]
    l2_write_miss: Literal[
        "no_allocate",
        "fetch_on_write",
        "write_validate",
        "fetch_on_partial_write",
        "write_and_fetch",
    ]
    l2_replacement: Literal["lru", "fifo", "plru"]
    l2_set_index: Literal["modulo", "xor", "ipoly"]
    l2_slice_index: Literal["modulo", "xor", "ipoly"]
    l2_mshrs: int
    l2_mshr_targets: int
    l2_queue_entries: int
    l2_slice_request_cycles: float
    l2_slice_bytes_per_cycle: float
    dram_latency: float
    noc_bandwidth_gbs: float
    noc_sm_bytes_per_cycle: float
    noc_control_bytes: int
    dram_bandwidth_gbs: float
    dram_efficiency: float
    dram_channels: int
    dram_clock_ghz: float
    dram_queue_entries: int
    dram_row_bytes: int
    dram_banks: int
    dram_bank_groups: int
    dram_interleaved_banks: int
    dram_bank_interleave_bytes: int
    dram_burst_bytes: int
    dram_tccd: int
    dram_tccdl: int
    dram_trrd: int
    dram_trcd: int
    dram_tras: int
    dram_trp: int
    dram_trtp: int
    dram_cl: int
    dram_wl: int
    dram_twtr: int
    dram_twr: int
    dram_trefi: int
    dram_trfc: int
    integer_interval: int
    fp32_interval: int
    fp16_interval: int
    fp64_interval: int
    sfu_interval: int
    tensor_interval: int
    tensor_f16_rate: float
    tensor_f16_f32_rate: float
    tensor_bf16_rate: float
    tensor_tf32_rate: float
    tensor_f64_rate: float
    tensor_f8_rate: float
    tensor_s8_rate: float
    tensor_s4_rate: float
    tensor_b1_rate: float
    latency_counts: Literal["execution", "issue_to_issue"]
    integer_latency: float
    fp32_latency: float
    fp16_latency: float
    fp64_latency: float
    sfu_latency: float
    tensor_latency: float
    uniform_latency: float
    control_latency: float
    barrier_latency: float
    shuffle_latency: float
    constant_latency: float
    texture_latency: float
    shared_memory_latency: float
