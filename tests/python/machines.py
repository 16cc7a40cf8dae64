"""Machines whose numbers tests compute by hand."""

import warpstack as ws

#: What `pascal-mdm` has from Accel-Sim, as it is without: the defaults of `Gpu`, and barriers that
#: take as long as GPUMech's other instructions.
PLAIN = {
    "l1_latency_place": "after_tags",
    "lines_under_way": "replaceable",
    "l1_miss_queue_entries": 16,
    "lsu_queue_entries": 2,
    "atomic_requests": "per_line",
    "atomic_wait": "for_data",
    "store_acknowledgement": "none",
    "kernel_end": "last_store",
    "l2_write_miss": "fetch_on_write",
    "l2_queue_entries": 32,
    "l2_miss_queue_entries": 0,
    "l2_slice_request_cycles": 1,
    "l2_slice_bytes_per_cycle": 0,
    "noc_sm_bytes_per_cycle": 0,
    "dram_clock_ghz": 0,
    "dram_row_bytes": 0,
    "dram_interleaved_banks": 1,
    "barrier_latency": 25,
}


def plain_pascal(**changes):
    """Return `pascal-mdm` with the resources of MDM's paper and nothing else, and some fields changed.

    Its numbers can be computed by hand: a queue, a port or a row of DRAM that the paper does not name
    adds no cycle.
    """
    return ws.gpu("pascal-mdm").replace(**PLAIN | changes)
