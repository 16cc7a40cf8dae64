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

std::uint64_t carve_out_of(const MemoryConfig& config, const trace::KernelHeader& kernel,
                           std::uint32_t blocks_per_sm) {
  const std::uint64_t needed = shared_memory_per_block(kernel, config.sm) * blocks_per_sm;
  const auto found = std::ranges::lower_bound(config.carve_outs, needed);
  return found == config.carve_outs.end() ? needed : *found;
}

CacheConfig l1_of(const MemoryConfig& config, const trace::KernelHeader& kernel,
                  std::uint32_t blocks_per_sm) {
  if (config.carve_outs.empty()) return config.l1;
  return l1_beside(config,
                   std::min(carve_out_of(config, kernel, blocks_per_sm), config.carve_outs.back()));
}

MemoryConfig MemoryConfig::of(const gpu::Gpu& gpu, const CacheOptions& options) {
  MemoryConfig config;
  config.num_sms = gpu.num_sms;
  config.sm = gpu::SmLimits::of(gpu);
  config.l1 = {.size_bytes = gpu::bytes_of_kib(gpu.l1_size_kib),
               .ways = gpu.l1_ways,
               .line_bytes = gpu.l1_line_bytes,
               .sector_bytes = gpu.l1_sector_bytes,
               .write_policy = gpu.l1_write_policy,
               .write_miss = gpu.l1_write_miss,
               .replacement = gpu.l1_replacement,
               .allocation = gpu.l1_allocation,
               .set_index = gpu.l1_set_index,
               .slice_interleave_bytes = gpu.l1_line_bytes};
  config.l2 = {.size_bytes = gpu::bytes_of_kib(gpu.l2_size_kib),
               .ways = gpu.l2_ways,
               .line_bytes = gpu.l2_line_bytes,
               .sector_bytes = gpu.l2_sector_bytes,
               .write_policy = gpu.l2_write_policy,
               .write_miss = gpu.l2_write_miss,
               .replacement = gpu.l2_replacement,
               .set_index = gpu.l2_set_index,
               .slices = gpu.l2_slices,
               .slice_interleave_bytes = gpu.l2_slice_interleave_bytes,
               .slice_index = gpu.l2_slice_index,
               .written_by_strangers = options.written_by_strangers};
  config.unified_bytes = gpu::bytes_of_kib(gpu.unified_l1_kib);
  for (const double carve_out : gpu.shared_memory_carve_outs_kib) {
    config.carve_outs.push_back(gpu::bytes_of_kib(carve_out));
  }
  config.adaptive_keeps_ways = gpu.adaptive_l1_keeps == gpu::AdaptiveL1::ways;
  config.l1_caches_global = gpu.l1_global_loads == gpu::GlobalLoads::cached;
  config.filter_l1_hits = options.filter_l1_hits;
  config.block_order = options.block_order;
  config.access_order = options.access_order;
  // A streaming L1 is limited by its request queue (MDM, footnote 2).
  config.l1_mshrs = gpu.has_streaming_l1() ? gpu.noc_queue_entries : gpu.l1_mshrs;
  config.atomics_per_lane = gpu.atomic_requests == gpu::AtomicRequests::per_lane;
  config.atomic_lane_turns = gpu.l2_atomic_lane_turns;
  config.atomic_words_at_once = gpu.l2_atomic_words_at_once;
  config.partial_write_turns = gpu.l2_partial_write_turns;
  config.scheduler = gpu.scheduler;
  config.issue_width = gpu.issue_width;
  config.lsu_queue_entries = gpu.lsu_queue_entries;
  config.atomics_stop_warps = gpu.atomic_wait == gpu::AtomicWait::until_done;
  config.reserves_lines = gpu.lines_under_way == gpu::LinesUnderWay::reserved;
  return config;
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
