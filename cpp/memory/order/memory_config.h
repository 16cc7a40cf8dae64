#pragma once

#include <cstdint>
#include <vector>

#include "gpu/gpu.h"
#include "memory/cache/cache.h"
#include "memory/order/block_assignment.h"
#include "memory/order/occupancy.h"
#include "memory/order/schedule.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::memory {

/// Options of the memory stage that are no property of the GPU.
struct CacheOptions {
  BlockOrder block_order;
  AccessOrder access_order = AccessOrder::round_robin;
  bool filter_l1_hits = true;
  double written_by_strangers = 0;  ///< of L2: see CacheConfig
};

/// The memory system of a GPU, and the order in which its SMs access it.
struct MemoryConfig {
  std::uint32_t num_sms = 1;
  gpu::SmLimits sm;
  CacheConfig l1;  ///< one per SM
  CacheConfig l2;  ///< shared; its size is that of all slices together
  /// Adaptive L1: L1 and shared memory share `unified_bytes`. Shared memory gets the smallest of
  /// `carve_outs` (bytes, increasing) that does not cost occupancy, and L1 the rest. Empty: L1 as
  /// configured.
  std::uint64_t unified_bytes = 0;
  std::vector<std::uint64_t> carve_outs;
  bool adaptive_keeps_ways = false;  ///< its number of sets changes; else its ways change
  bool l1_caches_global = true;      ///< false: loads of global memory go past L1
  bool filter_l1_hits = true;        ///< false: L2 sees what hits in L1 too, as in PPT-GPU-Mem
  BlockOrder block_order;
  AccessOrder access_order = AccessOrder::round_robin;
  std::uint32_t l1_mshrs = 1;       ///< per SM; only for the greedy and the timed order
  bool atomics_per_lane = false;    ///< lanes that share a word have a request each
  double atomic_lane_turns = 0;     ///< of an L2 slice per lane of an atomic; 0: one per request
  double atomic_words_at_once = 1;  ///< different words of an atomic that it serves meanwhile
  double partial_write_turns = 0;   ///< of an L2 slice per sector that a store writes in part
  // Only for the timed order:
  gpu::Scheduler scheduler = gpu::Scheduler::gto;
  double issue_width = 1;               ///< warp instructions per cycle per SM
  std::uint32_t lsu_queue_entries = 2;  ///< memory instructions in front of L1
  bool reserves_lines = false;          ///< a line on its way to L1 keeps its place
  bool atomics_stop_warps = false;      ///< until they are done, in the timed order

  static MemoryConfig of(const gpu::Gpu& gpu, const CacheOptions& options = {});

  /// Throws InputError on impossible values.
  void validate() const;
};

/// What an adaptive L1 leaves a kernel as shared memory, in bytes: the smallest carve-out that
/// costs no resident block, or more than there is, if none does.
std::uint64_t carve_out_of(const MemoryConfig& config, const trace::KernelHeader& kernel,
                           std::uint32_t blocks_per_sm);

/// The L1 of a kernel: as configured, or if it adapts, what the smallest carve-out that costs no
/// resident block leaves (cache paper, Eq. 7).
CacheConfig l1_of(const MemoryConfig& config, const trace::KernelHeader& kernel,
                  std::uint32_t blocks_per_sm);

}  // namespace warpstack::memory
