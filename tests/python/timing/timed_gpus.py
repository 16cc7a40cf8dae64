"""GPUs for comparisons of the simulator with its plain definition."""

from hypothesis import strategies as st

from python_reference.timing import PARTS, TICKS
from strategies import gpus


@st.composite
def timed_gpus(draw):
    """Draw a small GPU with short queues, few MSHRs and any clocks."""
    gpu = draw(gpus())
    slices = gpu.l2_slices
    l1_latency = draw(st.sampled_from([0, 1, 3, 25]))
    l2_latency = draw(st.sampled_from([0, 17, 120, 61.5]))
    places = ["after_tags", "before_tags"] if l1_latency <= l2_latency else ["after_tags"]
    place = draw(st.sampled_from(places))
    return gpu.replace(
        scheduler=draw(st.sampled_from(["gto", "lrr", "oldest"])),
        schedulers_per_sm=draw(st.sampled_from([0, 0, 1, 2, 3])),
        issue_width=draw(st.sampled_from([1, 1, 2, 4, 0.4, 1.5])),
        lsu_queue_entries=draw(st.integers(1, 4)),
        integer_latency=draw(st.sampled_from([0, 1, 4, 5.5])),
        fp32_latency=draw(st.sampled_from([1, 4])),
        fp64_interval=draw(st.sampled_from([0, 1, 16])),
        integer_interval=draw(st.sampled_from([0, 1, 2])),
        tensor_interval=draw(st.sampled_from([0, 1, 8])),
        tensor_f16_f32_rate=draw(st.sampled_from([0, 0, 100, 2048])),
        barrier_latency=draw(st.sampled_from([0, 3])),
        shared_memory_latency=draw(st.sampled_from([0, 20])),
        l1_latency=l1_latency,
        l1_mshrs=draw(st.sampled_from([1, 2, 5, 128])),
        l1_mshr_targets=draw(st.sampled_from([1, 2, 8])),
        l1_miss_queue_entries=draw(st.sampled_from([1, 2, 16])),
        noc_queue_entries=draw(st.sampled_from([0, 0, 3])),
        noc_bandwidth_gbs=draw(st.sampled_from([20, 100, 1050])),
        noc_sm_bytes_per_cycle=draw(st.sampled_from([0, 0, 5, 32])),
        noc_control_bytes=draw(st.sampled_from([0, 8, 40])),
        l2_clock_ghz=draw(st.sampled_from([0, 0, 1.172, 2.1])),
        l2_latency=l2_latency,
        l2_mshrs=draw(st.sampled_from([1, 3, 128])),
        l2_mshr_targets=draw(st.sampled_from([1, 2, 8])),
        l2_queue_entries=draw(st.sampled_from([1, 2, 32])),
        dram_clock_ghz=draw(st.sampled_from([0, 0, 0.9])),
        dram_latency=draw(st.sampled_from([0, 1, 220, 100.25])),
        dram_bandwidth_gbs=draw(st.sampled_from([10, 100, 480])),
        dram_channels=draw(
            st.sampled_from([n for n in (0, 1, slices) if n == 0 or slices % n == 0])
        ),
        dram_queue_entries=draw(st.sampled_from([1, 2, 64])),
        l2_miss_queue_entries=draw(st.sampled_from([0, 0, 1, 3])),
        l1_write_miss=draw(
            st.sampled_from([gpu.l1_write_miss, gpu.l1_write_miss, "write_and_fetch"])
        ),
        l2_write_miss=draw(st.sampled_from([gpu.l2_write_miss, "write_and_fetch"])),
        noc_topology=draw(st.sampled_from(["shared", "crossbar"])),
        dram_row_bytes=draw(st.sampled_from([0, 0, 1024])),
        dram_banks=draw(st.sampled_from([2, 4])),
        dram_bank_groups=draw(st.sampled_from([1, 2])),
        dram_interleaved_banks=draw(st.sampled_from([1, 2])),
        dram_bank_interleave_bytes=draw(st.sampled_from([128, 96])),
        dram_burst_bytes=draw(st.sampled_from([32, 48])),
        dram_tccdl=draw(st.sampled_from([0, 4, 7])),
        dram_trrd=draw(st.sampled_from([0, 12])),
        dram_trcd=draw(st.sampled_from([0, 24])),
        dram_tras=draw(st.sampled_from([0, 55])),
        dram_trp=draw(st.sampled_from([0, 24])),
        dram_trtp=draw(st.sampled_from([0, 4])),
        dram_cl=draw(st.sampled_from([0, 24])),
        dram_wl=draw(st.sampled_from([0, 8])),
        dram_twtr=draw(st.sampled_from([0, 10])),
        dram_twr=draw(st.sampled_from([0, 24])),
        dram_trefi=draw(st.sampled_from([0, 0, 200])),
        dram_trfc=draw(st.sampled_from([0, 60])),
        l1_latency_place=place,
        lines_under_way=draw(st.sampled_from(["replaceable", "reserved"])),
        atomic_requests=draw(st.sampled_from(["per_line", "per_lane"])),
        store_acknowledgement=draw(st.sampled_from(["none", "awaited"])),
        kernel_end=draw(
            st.sampled_from(["last_store", "last_warp", "last_transfer", "last_acknowledgement"])
        ),
        atomic_wait=draw(st.sampled_from(["for_data", "until_done"])),
        # No GPU has both: where the latency passes before the tags, a few slots of rows may differ.
        lsu_interval=draw(st.sampled_from([1, 1, 2, 5])) if place == places[0] else 1,
        shared_wavefront_cycles=draw(st.sampled_from([1, 1, 2, 3])),
        l2_partial_write_turns=draw(st.sampled_from([0, 0, 1, 2.5])),
        l1_tags_per_cycle=draw(st.sampled_from([0, 0, 1, 2, 4])),
        l2_atomic_lane_turns=draw(st.sampled_from([0, 0, 1, 0.3])),
        l2_atomic_words_at_once=draw(st.sampled_from([1, 2, 3.5])),
        l2_slice_request_cycles=draw(st.sampled_from([1, 1, 1.2, 3])),
        l2_slice_bytes_per_cycle=draw(st.sampled_from([0, 0, 32, 20])),
    )


#: Fields of the start of blocks and warps, and how warps share issue slots.
BLOCK_STARTS = st.fixed_dictionaries(
    {
        "block_interval_cycles": st.sampled_from([0, 1, 1.4, 30]),
        "block_replacement_ns": st.sampled_from([0, 0.6, 100]),
        "warp_start_cycles": st.sampled_from([0, 0.3, 4]),
        "scheduler": st.sampled_from(["gto", "lrr", "gty"]),
        "issue_width": st.sampled_from([1, 2, 0.4]),
        "num_sms": st.sampled_from([1, 2, 5]),
    }
)

INSTRUCTIONS = ("load_instructions", "store_instructions", "atomic_instructions")


def assert_same(result, plain):
    core = result._core
    assert result.cycles == plain["cycles"]
    assert result.instructions == plain["instructions"]
    assert core.store_slots == plain["store_slots"]
    assert core.details == plain["details"]
    assert core.critical_cycles == plain["critical_ticks"] / TICKS
    assert core.sm_cycles == plain["sm_cycles"]
    for name, value in result.totals.items():
        if name not in INSTRUCTIONS:
            assert value == plain["totals"][name], name
    assert core.slots == plain["slots"]
    assert core.misses == plain["misses"]
    assert core.miss_cycles == {part: plain["miss_ticks"][part] / TICKS for part in PARTS}
