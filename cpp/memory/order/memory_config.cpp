#include "memory/order/memory_config.h"

#include <algorithm>
#include <string>

#include "common/error.h"

namespace warpstack::memory {
namespace {

/// The L1 that a carve-out for shared memory leaves.
CacheConfig l1_beside(const MemoryConfig& config, std::uint64_t carve_out) {
  CacheConfig l1 = config.l1;
  l1.size_bytes = config.unified_bytes - carve_out;
  if (!config.adaptive_keeps_ways) {
    l1.ways = static_cast<std::uint32_t>(l1.num_lines() / config.l1.num_sets());
  }
  return l1;
}

}  // namespace

CacheConfig l1_of(const MemoryConfig& config, const trace::KernelHeader& kernel,
                  std::uint32_t blocks_per_sm) {
  if (config.carve_outs.empty()) return config.l1;
  const std::uint64_t needed = shared_memory_per_block(kernel, config.sm) * blocks_per_sm;
  const auto found = std::ranges::lower_bound(config.carve_outs, needed);
  return l1_beside(config, found == config.carve_outs.end() ? config.carve_outs.back() : *found);
}

void MemoryConfig::validate() const {
  if (num_sms == 0) throw InputError("num_sms = 0; a GPU has at least one SM");
  if (l1_mshrs == 0) throw InputError("l1_mshrs = 0; an SM has at least one MSHR");
  l1.validate("L1 cache");
  l2.validate("L2 cache");
  for (const std::uint64_t carve_out : carve_outs) {
    if (carve_out >= unified_bytes) {
      throw InputError("a carve-out of " + std::to_string(carve_out) +
                       " bytes for shared memory leaves nothing of " +
                       std::to_string(unified_bytes) + " bytes for L1");
    }
    l1_beside(*this, carve_out)
        .validate(
            ("L1 cache beside " + std::to_string(carve_out) + " bytes of shared memory").c_str());
  }
}

}  // namespace warpstack::memory
