"""The table of the values of a GPU: each field once, with its meaning, unit, range, default and stages."""

from __future__ import annotations

import dataclasses
from typing import Any

from warpstack._core import ENUM_NAMES
from warpstack.hardware.fields import Stage, choice, number, several

__all__ = ["GpuValues"]


#: What the memory stage reads, the simulation reads too: it has the same caches.
_MEMORY = Stage.MEMORY | Stage.TIMING
_INTERVAL = Stage.INTERVAL | Stage.TIMING
_MODEL = Stage.MODEL | Stage.TIMING
_TIMING = Stage.TIMING


def _class_latency(op_class: str, doc: str) -> Any:
    """Return a field for the latency of a class of operations that the core knows."""
    return number(doc, "cycles", stages=_INTERVAL, core=f"latency.{op_class}")


def _class_interval(op_class: str, doc: str, *, stages: Stage = Stage.TIMING) -> Any:
    doc = f"cycles from one {doc} instruction of a scheduler to the next"
    core = f"interval.{op_class}"
    return number(doc, "cycles", stages=stages, core=core, at_most=4096, default=1)


def _tensor_rate(tensor_type: str, doc: str) -> Any:
    doc = (
        f"multiply-adds per cycle of a scheduler's tensor cores, of {doc} without a structure of zeros;"
        " 0: every instruction takes tensor_interval"
    )
    return number(doc, stages=_INTERVAL, core=f"tensor_unit.{tensor_type}", default=0)


def _launch_us(doc: str) -> Any:
    doc = f"what {doc} contains beside the cycles of a kernel: its launch and its end"
    return number(doc, "us", default=0, stages=Stage.LAUNCH)


def _dram_cycles(doc: str, default: int, *, at_least: int = 0, stages: Stage = Stage.TIMING) -> Any:
    return number(
        f"cycles of the DRAM clock {doc}",
        at_least=at_least,
        at_most=1 << 20,
        default=default,
        stages=stages,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class GpuValues:
    """The values of a GPU; `Gpu` checks them and adds where they come from."""

    name: str
    description: str = ""

    num_sms: int = number("streaming multiprocessors", at_least=1, at_most=65536, stages=_MEMORY)
    clock_ghz: float = number("SM clock", "GHz", stages=_MODEL)
    base_clock_ghz: float = number(
        "SM clock that Nsight Compute holds; 0: clock_ghz",
        "GHz",
        or_zero=True,
        default=0,
        stages=Stage.LAUNCH,
    )
    launch_us_nsys: float = _launch_us("Nsight Systems' duration")
    launch_us_ncu: float = _launch_us("Nsight Compute's duration, at base_clock_ghz,")
    launch_us_nvprof: float = _launch_us("nvprof's duration")
    launch_us_events: float = _launch_us("the time between CUDA events around a launch")
    block_interval_cycles: float = number(
        "cycles between the starts of two thread blocks, of the whole GPU; 0: all at once",
        "cycles",
        default=0,
        stages=Stage.LAUNCH | _TIMING,
    )
    block_replacement_ns: float = number(
        "time from the end of a thread block to the start of the one that takes its place",
        "ns",
        default=0,
        stages=Stage.LAUNCH | _MODEL,
        core="",
    )
    warp_start_cycles: float = number(
        "cycles of an SM between the starts of two warps",
        "cycles",
        default=0,
        stages=Stage.LAUNCH | _TIMING,
    )
    compute_capability: float = number(
        "compute capability that CUDA programs see, major.minor; 0: 9.0",
        at_most=99.9,
        default=0,
        stages=Stage(0),
    )
    issue_width: float = number(
        "warp instructions per cycle per SM",
        at_least=1e-3,
        at_most=1024,
        stages=_INTERVAL | Stage.MODEL | Stage.TIMED,
    )
    scheduler: str = choice(
        "warp scheduler: greedy then oldest, loose round robin, oldest first, or greedy then youngest "
        "(the models take the last two for greedy then oldest)",
        *ENUM_NAMES["scheduler"],
        stages=Stage.TIMED | _MODEL,
    )
    schedulers_per_sm: int = number(
        "warp schedulers of an SM, each with its share of the warps; 0: issue_width, rounded up",
        at_most=1024,
        default=0,
        stages=_INTERVAL | Stage.MODEL,
        core="",
    )

    warps_per_sm: int = number("warp slots per SM", at_least=1, stages=_MEMORY, core="sm.warps")
    threads_per_sm: int = number(
        "resident threads per SM", at_least=1, at_most=2**25, stages=_MEMORY, core="sm.threads"
    )
    blocks_per_sm: int = number(
        "resident thread blocks per SM", at_least=1, stages=_MEMORY, core="sm.blocks"
    )
    registers_per_sm: int = number(
        "32-bit registers per SM", at_least=1, at_most=2**30, stages=_MEMORY, core="sm.registers"
    )
    register_allocation_unit: int = number(
        "registers of a warp are rounded up to a multiple of this",
        at_least=1,
        default=256,
        stages=_MEMORY,
        core="sm.register_allocation_unit",
    )
    shared_memory_kib_per_sm: float = number(
        "shared memory for thread blocks, per SM",
        "KiB",
        at_most=2**24,
        stages=_MEMORY,
        core="sm.shared_memory_bytes",
    )
    shared_memory_allocation_bytes: int = number(
        "shared memory of a block is rounded up to a multiple of this",
        "bytes",
        at_least=1,
        default=256,
        stages=_MEMORY,
        core="sm.shared_memory_allocation_bytes",
    )
    shared_memory_reserved_bytes: int = number(
        "shared memory that the system adds to each block that uses some",
        "bytes",
        default=0,
        stages=_MEMORY,
        core="sm.shared_memory_reserved_bytes",
    )

    l1_size_kib: float = number(
        "L1 data cache per SM", "KiB", at_least=1 / 32, stages=_MEMORY, core="l1.size_bytes"
    )
    l1_ways: int = number("L1 associativity", at_least=1, stages=_MEMORY, core="l1.ways")
    l1_line_bytes: int = number(
        "L1 line", "bytes", at_least=32, stages=_MEMORY, core="l1.line_bytes"
    )
    l1_sector_bytes: int = number(
        "L1 fill unit; equal to the line: not sectored",
        "bytes",
        at_least=32,
        stages=_MEMORY | Stage.MODEL,
        core="l1.sector_bytes",
    )
    l1_mshrs: int = number(
        "L1 miss status holding registers per SM",
        at_least=1,
        stages=Stage.GREEDY | Stage.TIMED | _MODEL,
        core="",
    )
    l1_mshr_targets: int = number(
        "requests that wait for one MSHR of L1", at_least=1, default=8, stages=_TIMING
    )
    l1_latency: float = number("load-to-use latency of an L1 hit", "cycles", stages=_INTERVAL)
    l1_latency_place: str = choice(
        "where the latency of an L1 hit passes: after its look-up, or before, in a pipeline of as many "
        "requests, which one that cannot be served blocks",
        *ENUM_NAMES["place of the latency of L1"],
        default="after_tags",
        stages=_TIMING,
    )
    lines_under_way: str = choice(
        "whether a line of L1 or L2 whose data are on their way can make room for another one; where all "
        "lines of a set are reserved, requests wait",
        *ENUM_NAMES["lines under way"],
        default="replaceable",
        stages=Stage.TIMED | _TIMING,
    )
    l1_write_policy: str = choice(
        "what a store does to lower levels",
        *ENUM_NAMES["write policy"],
        default="write_through",
        stages=_MEMORY,
        core="l1.write_policy",
    )
    l1_write_miss: str = choice(
        "what a store miss does in L1",
        *ENUM_NAMES["write-miss policy"],
        default="no_allocate",
        stages=_MEMORY,
        core="l1.write_miss",
    )
    l1_replacement: str = choice(
        "which line makes room in L1: least recently used, first in first out, or tree pseudo-LRU",
        *ENUM_NAMES["replacement policy"],
        default="lru",
        stages=_MEMORY,
        core="l1.replacement",
    )
    l1_allocation: str = choice(
        "when a line that missed L1 takes its place: at once, or when its data arrive (streaming)",
        *ENUM_NAMES["allocation"],
        default="on_miss",
        stages=_MEMORY,
        core="l1.allocation",
    )
    l1_set_index: str = choice(
        "how lines spread over the sets of L1",
        *ENUM_NAMES["indexing"],
        default="modulo",
        stages=_MEMORY,
        core="l1.set_index",
    )
    l1_global_loads: str = choice(
        "whether loads of global memory go through L1",
        "cached",
        "bypassed",
        default="cached",
        stages=_MEMORY,
        core="",
    )
    unified_l1_kib: float = number(
        "storage of an SM that an adaptive L1 and shared memory divide; 0: L1 is as large as l1_size_kib",
        "KiB",
        default=0,
        stages=_MEMORY,
        core="unified_bytes",
    )
    shared_memory_carve_outs_kib: tuple[float, ...] = several(
        "sizes that shared memory can take of unified_l1_kib; a kernel has the smallest that costs no "
        "resident block (cache paper, Eq. 7)",
        "KiB",
        stages=_MEMORY,
        core="carve_outs",
    )
    adaptive_l1_keeps: str = choice(
        "what an adaptive L1 keeps of the geometry that l1_size_kib and l1_ways give",
        "sets",
        "ways",
        default="sets",
        stages=_MEMORY,
        core="",
    )
    noc_queue_entries: int = number(
        "requests that the NoC queue of an SM holds; takes the place of the MSHRs in the models when L1 "
        "is a streaming cache (MDM, footnote 2); 0: L1 is not a streaming cache",
        default=0,
        stages=Stage.GREEDY | Stage.TIMED | _MODEL,
        core="",
    )
    l1_miss_queue_entries: int = number(
        "requests of an SM that wait for the NoC where noc_queue_entries is 0",
        at_least=1,
        at_most=1 << 20,
        default=16,
        stages=_TIMING,
        core="",
    )
    lsu_queue_entries: int = number(
        "memory instructions in the load-store unit of an SM",
        at_least=1,
        at_most=1 << 16,
        default=2,
        stages=Stage.TIMED | _TIMING,
    )
    atomic_requests: str = choice(
        "requests of an atomic: one for all lanes of a line, or of each sector one for each of several "
        "lanes of one word",
        *ENUM_NAMES["requests of atomics"],
        default="per_line",
        stages=Stage.REQUESTS | _TIMING,
    )
    l2_atomic_lane_turns: float = number(
        "times of a request that each lane of an atomic takes at an L2 slice; 0: the atomic is one request",
        at_most=1 << 10,
        default=0,
        stages=Stage.REQUESTS | _TIMING,
    )
    store_acknowledgement: str = choice(
        "whether a warp is done only when L2, or DRAM where L2 passes them on, has its stores and "
        "reductions",
        *ENUM_NAMES["acknowledgement of stores"],
        default="none",
        stages=_INTERVAL,
    )
    kernel_end: str = choice(
        "when a kernel ends: when L2 has its last store, when its last warp is done, or when DRAM has "
        "nothing left to transfer",
        *ENUM_NAMES["end of a kernel"],
        default="last_store",
        stages=_TIMING,
    )

    l2_size_kib: float = number(
        "L2 cache, all slices together",
        "KiB",
        at_least=1 / 32,
        stages=_MEMORY,
        core="l2.size_bytes",
    )
    l2_ways: int = number("L2 associativity", at_least=1, stages=_MEMORY, core="l2.ways")
    l2_line_bytes: int = number(
        "L2 line", "bytes", at_least=32, stages=_MEMORY, core="l2.line_bytes"
    )
    l2_sector_bytes: int = number(
        "L2 fill unit; equal to the line: not sectored",
        "bytes",
        at_least=32,
        stages=_MEMORY | Stage.MODEL,
        core="l2.sector_bytes",
    )
    l2_slices: int = number(
        "L2 slices", at_least=1, at_most=65536, stages=_MEMORY | Stage.MODEL, core="l2.slices"
    )
    l2_slice_interleave_bytes: int = number(
        "consecutive addresses in one slice",
        "bytes",
        at_least=32,
        default=256,
        stages=_MEMORY,
        core="l2.slice_interleave_bytes",
    )
    l2_latency: float = number("round trip of an L2 hit", "cycles", stages=_INTERVAL | Stage.MODEL)
    l2_clock_ghz: float = number(
        "clock of L2 and the NoC where they have their own: l2_latency is then constant in time when "
        "the SM clock changes; 0: they run on the SM clock",
        "GHz",
        or_zero=True,
        default=0,
        stages=_MODEL,
    )
    l2_write_policy: str = choice(
        "what a store does to DRAM",
        *ENUM_NAMES["write policy"],
        default="write_back",
        stages=_MEMORY,
        core="l2.write_policy",
    )
    l2_write_miss: str = choice(
        "what a store miss does in L2",
        *ENUM_NAMES["write-miss policy"],
        default="fetch_on_write",
        stages=_MEMORY,
        core="l2.write_miss",
    )

    l2_replacement: str = choice(
        "which line makes room in L2",
        *ENUM_NAMES["replacement policy"],
        default="lru",
        stages=_MEMORY,
        core="l2.replacement",
    )
    l2_set_index: str = choice(
        "how lines spread over the sets of an L2 slice",
        *ENUM_NAMES["indexing"],
        default="modulo",
        stages=_MEMORY,
        core="l2.set_index",
    )
    l2_slice_index: str = choice(
        "how chunks of l2_slice_interleave_bytes spread over the slices",
        *ENUM_NAMES["indexing"],
        default="modulo",
        stages=_MEMORY,
        core="l2.slice_index",
    )

    l2_mshrs: int = number(
        "miss status holding registers of an L2 slice", at_least=1, default=128, stages=_TIMING
    )
    l2_mshr_targets: int = number(
        "requests that wait for one MSHR of L2", at_least=1, default=8, stages=_TIMING
    )
    l2_queue_entries: int = number(
        "requests that wait for an L2 slice, and replies that wait in it",
        at_least=1,
        at_most=1 << 20,
        default=32,
        stages=_TIMING,
    )
    l2_slice_request_cycles: float = number(
        "cycles of its clock that an L2 slice takes for a request, at least; more than 1 where the NoC "
        "brings fewer",
        at_least=1,
        at_most=1 << 10,
        default=1,
        stages=_MODEL,
    )
    l2_slice_bytes_per_cycle: float = number(
        "what an L2 slice reads or writes of its data per cycle of its clock, on hits and for lines that "
        "it writes back; 0: no limit",
        "bytes",
        at_most=1 << 20,
        default=0,
        stages=_MODEL,
    )

    dram_latency: float = number(
        "what a DRAM access adds to an L2 hit", "cycles", stages=_INTERVAL | Stage.MODEL
    )
    noc_bandwidth_gbs: float = number(
        "between all SMs and L2, one direction", "GB/s", stages=_MODEL
    )
    noc_sm_bytes_per_cycle: float = number(
        "what one SM can send and receive per cycle of l2_clock_ghz; 0: no limit of its own",
        "bytes",
        default=0,
        stages=_MODEL,
    )
    noc_control_bytes: int = number(
        "what a packet without data, a read request, takes of the NoC bandwidth",
        "bytes",
        at_most=4096,
        default=8,
        stages=_MODEL,
    )
    dram_bandwidth_gbs: float = number("of all channels", "GB/s", stages=_MODEL)
    dram_efficiency: float = number(
        "share of dram_bandwidth_gbs that long streams reach, where refreshes, rows and turnarounds are "
        "not simulated",
        at_least=0.01,
        at_most=1,
        default=1,
        stages=_MODEL,
        core="",
    )
    dram_channels: int = number(
        "DRAM channels, each of as many L2 slices; 0: one per slice",
        at_most=65536,
        default=0,
        stages=_MODEL,
        core="",
    )
    dram_clock_ghz: float = number(
        "clock at whose edges DRAM transfers start; 0: the clock of L2",
        "GHz",
        or_zero=True,
        default=0,
        stages=_MODEL,
    )
    dram_queue_entries: int = number(
        "requests that wait for a DRAM channel",
        at_least=1,
        at_most=1 << 20,
        default=64,
        stages=_TIMING,
    )
    dram_row_bytes: int = number(
        "row of a DRAM bank; 0: no banks, every access takes the same time, whatever the fields that "
        "follow",
        "bytes",
        at_most=1 << 24,
        default=0,
        stages=_MODEL,
    )
    dram_banks: int = number(
        "banks of a DRAM channel", at_least=1, at_most=4096, default=16, stages=_TIMING
    )
    dram_bank_groups: int = number(
        "groups of these banks, to which they belong in turn",
        at_least=1,
        at_most=4096,
        default=4,
        stages=_TIMING,
    )
    dram_interleaved_banks: int = number(
        "banks over which neighbouring addresses spread; a divisor of dram_banks",
        at_least=1,
        at_most=4096,
        default=1,
        stages=_TIMING,
    )
    dram_bank_interleave_bytes: int = number(
        "consecutive bytes in each of them", "bytes", at_least=32, default=128, stages=_TIMING
    )
    dram_burst_bytes: int = number(
        "bytes that one command reads or writes",
        "bytes",
        at_least=1,
        at_most=4096,
        default=32,
        stages=_TIMING,
    )
    dram_tccd: int = _dram_cycles(
        "between two bursts at the full bandwidth: what dram_tccdl is compared with", 4, at_least=1
    )
    dram_tccdl: int = _dram_cycles("between two bursts of one bank group", 6)
    dram_trrd: int = _dram_cycles("between the opening of rows in two banks", 12)
    dram_trcd: int = _dram_cycles("from the opening of a row to its first read", 24)
    dram_tras: int = _dram_cycles("from the opening of a row to its closing", 55)
    dram_trp: int = _dram_cycles("from the closing of a row to the opening of the next one", 24)
    dram_trtp: int = _dram_cycles("from a read to the closing of its row", 4)
    dram_cl: int = _dram_cycles("from a read to its data", 24, stages=_MODEL)
    dram_wl: int = _dram_cycles("from a write to its data", 8)
    dram_twtr: int = _dram_cycles("from a write's data to a read", 10, stages=_MODEL)
    dram_twr: int = _dram_cycles("from a write's data to the closing of its row", 24)
    dram_trefi: int = _dram_cycles("between two refreshes, which close all rows; 0: none", 0)
    dram_trfc: int = _dram_cycles("that a refresh takes", 0)

    integer_interval: int = _class_interval("integer", "integer and move")
    fp32_interval: int = _class_interval("fp32", "single precision")
    fp16_interval: int = _class_interval("fp16", "half precision")
    fp64_interval: int = _class_interval("fp64", "double precision")
    sfu_interval: int = _class_interval("sfu", "special function and conversion")
    tensor_interval: int = _class_interval(
        "tensor",
        "matrix (of types that have a rate below, that which tensor_latency is of)",
        stages=_INTERVAL,
    )
    tensor_f16_rate: float = _tensor_rate("f16", "half precision with sums in half precision")
    tensor_f16_f32_rate: float = _tensor_rate(
        "f16_f32", "half precision with sums in single precision"
    )
    tensor_bf16_rate: float = _tensor_rate("bf16", "bfloat16")
    tensor_tf32_rate: float = _tensor_rate("tf32", "TF32")
    tensor_f64_rate: float = _tensor_rate("f64", "double precision")
    tensor_f8_rate: float = _tensor_rate("f8", "8-bit floating point")
    tensor_s8_rate: float = _tensor_rate("s8", "8-bit integers")
    tensor_s4_rate: float = _tensor_rate("s4", "4-bit integers")
    tensor_b1_rate: float = _tensor_rate("b1", "single bits")

    latency_counts: str = choice(
        "what latencies count from an instruction's issue to: its result, after which one that needs it "
        "issues a cycle later (GPUMech, Eq. 4), or the issue of that one, as chains of dependent "
        "instructions measure it and as the simulation always takes it",
        "execution",
        "issue_to_issue",
        default="execution",
        stages=Stage.INTERVAL,
        core="",
    )
    integer_latency: float = _class_latency("integer", "integer and move instructions")
    fp32_latency: float = _class_latency("fp32", "single precision")
    fp16_latency: float = _class_latency("fp16", "half precision")
    fp64_latency: float = _class_latency("fp64", "double precision")
    sfu_latency: float = _class_latency("sfu", "special functions and conversions")
    tensor_latency: float = _class_latency("tensor", "matrix instructions")
    uniform_latency: float = _class_latency("uniform", "uniform datapath")
    control_latency: float = _class_latency("control", "branches")
    barrier_latency: float = _class_latency("barrier", "barriers and fences, without waiting")
    shuffle_latency: float = _class_latency("shuffle", "shuffles and matches")
    constant_latency: float = _class_latency("constant_load", "constant loads that hit")
    texture_latency: float = _class_latency("texture", "texture and surface accesses")
    shared_memory_latency: float = _class_latency(
        "shared_memory", "shared memory without bank conflicts"
    )
