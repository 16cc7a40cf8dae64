#include "memory/system/sample_bounds.h"

#include <algorithm>
#include <cmath>

namespace warpstack::memory {
namespace {

void scale(std::uint64_t& count, double factor) {
  count = static_cast<std::uint64_t>(std::llround(static_cast<double>(count) * factor));
}

}  // namespace

MemoryProfile bound_of(const MemoryProfile& profile, double sign) {
  MemoryProfile bound = profile;
  const double requests = std::max(1 + sign * profile.sample.errors.requests, 0.0);
  const double waits = std::max(1 + sign * profile.sample.errors.waits, 0.0);
  for (InstructionCounters& row : bound.per_row) {
    scale(row.l2_requests, requests);
    scale(row.l2_request_sectors, requests);
    // Requests to DRAM are known for all SMs, and are a part of those that leave L1.
    row.dram_requests = std::min(row.dram_requests, row.l2_requests);
    const std::uint64_t all = row.events[0] + row.events[1] + row.events[2];
    scale(row.events[1], requests);
    row.events[1] = std::min(row.events[1], all - row.events[2]);
    row.events[0] = all - row.events[1] - row.events[2];
    for (std::size_t e = 1; e < num_miss_events; ++e) {
      scale(row.wait_cycles[e], waits);
      scale(row.repeat_cycles[e], waits);
    }
  }
  for (const Total total :
       {Total::l2_read_sectors, Total::l2_read_sector_hits, Total::l2_read_requests,
        Total::l2_read_request_hits, Total::l2_write_sectors, Total::l2_write_sector_hits,
        Total::l2_write_requests}) {
    scale(bound.totals[total], requests);
  }
  for (double& turns : bound.slice_turns) turns *= requests;
  for (std::uint64_t& cycles : bound.place_wait_cycles) scale(cycles, waits);
  scale(bound.most_read_sectors, requests);
  return bound;
}

}  // namespace warpstack::memory
