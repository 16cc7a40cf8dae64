#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "memory/order/occupancy.h"
#include "timing/base/timing_config.h"
#include "timing/sm/grid_dispatcher.h"
#include "timing/sm/sm.h"

namespace warpstack::timing {

/// The launches that run together, and what an SM has for them.
struct Grids {
  std::vector<GridLaunch> launches;
  std::vector<const trace::KernelTrace*> traces;
  std::uint64_t blocks = 0;
  memory::CacheConfig l1;
  std::optional<std::uint64_t> shared_memory_bytes;  ///< of an SM
  memory::Occupancy occupancy;                       ///< of the first
  Residency most;
  bool has_dependents = false;  ///< some start behind the triggers of others

  Grids(std::span<const GridLaunch> all, const TimingConfig& config)
      : launches(all.begin(), all.end()) {
    const gpu::SmLimits& sm = config.memory.sm;
    std::uint64_t needed = 0;
    for (const GridLaunch& launch : launches) {
      has_dependents = has_dependents || !launch.after_trigger.empty();
      const trace::KernelHeader& header = launch.trace->header();
      const memory::Occupancy own = memory::occupancy(header, sm);
      const memory::CacheConfig own_l1 = l1_of(config.memory, header, own.blocks_per_sm);
      // The kernel that wants most shared memory decides how much of it there is.
      if (traces.empty() || own_l1.size_bytes < l1.size_bytes) l1 = own_l1;
      if (traces.empty()) occupancy = own;
      traces.push_back(launch.trace);
      blocks += launch.trace->blocks().size();
      most.blocks += std::min<std::size_t>(own.blocks_per_sm, launch.trace->blocks().size());
      most.warps += std::min<std::size_t>(own.blocks_per_sm, launch.trace->blocks().size()) *
                    own.warps_per_block;
      needed = std::max(needed, memory::carve_out_of(config.memory, header, own.blocks_per_sm));
    }
    if (launches.size() > 1) {
      most.blocks = std::min<std::size_t>(most.blocks, sm.blocks);
      most.warps = std::min<std::size_t>(most.warps, sm.warps);
    }
    shared_memory_bytes = sm.shared_memory_bytes;
    if (!config.memory.carve_outs.empty() && shared_memory_bytes) {
      shared_memory_bytes = std::min(*shared_memory_bytes, needed);
    }
  }
};

}  // namespace warpstack::timing
