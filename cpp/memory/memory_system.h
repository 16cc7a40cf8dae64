#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "common/interrupt.h"
#include "memory/cache.h"
#include "memory/occupancy.h"
#include "trace/kernel_trace.h"

namespace warpstack {

struct MemoryConfig {
  std::uint32_t num_sms = 1;
  SmLimits sm;
  CacheConfig l1;  ///< one per SM
  CacheConfig l2;  ///< shared; its size is that of all slices together

  /// Throws InputError on impossible values.
  void validate() const;
};

/// Where the slowest request of an instruction was served (GPUMech, Section V-B).
enum class MissEvent : std::uint8_t { l1_hit, l2_hit, dram };
inline constexpr std::size_t num_miss_events = 3;

/// Counters of one static instruction over all warps. A *request* is what an instruction asks of
/// one L1 line; it leaves the SM when one of its sectors misses, when it writes through, or when
/// the instruction bypasses L1. A line that a write-back L1 writes back is a request of the
/// instruction that wrote to it last.
struct InstructionCounters {
  std::uint64_t executions = 0;          ///< issued warp instructions
  std::uint64_t active_executions = 0;   ///< of these, with at least one active lane
  std::uint64_t sectors = 0;             ///< touched 32-byte sectors
  std::uint64_t requests = 0;            ///< touched L1 lines
  std::uint64_t l2_requests = 0;         ///< requests that left the SM
  std::uint64_t l2_request_sectors = 0;  ///< sectors that these moved between SM and L2
  std::uint64_t dram_requests = 0;       ///< requests with a sector that missed in L2
  std::uint64_t dram_sectors = 0;        ///< sectors that these moved between L2 and DRAM
  std::uint64_t shared_wavefronts = 0;   ///< passes through shared memory
  std::array<std::uint64_t, num_miss_events> events{};  ///< active executions by slowest request
};

/// Sums over a kernel, in 32-byte sectors unless the name says otherwise.
struct MemoryTotals {
  std::uint64_t load_instructions = 0;  ///< issued loads of global and local memory
  std::uint64_t store_instructions = 0;
  std::uint64_t atomic_instructions = 0;  ///< atomics and reductions
  std::uint64_t l1_read_sectors = 0;
  std::uint64_t l1_read_sector_hits = 0;
  std::uint64_t l1_write_sectors = 0;
  std::uint64_t l1_write_sector_hits = 0;
  std::uint64_t l1_read_requests = 0;      ///< lines
  std::uint64_t l1_read_request_hits = 0;  ///< lines of which every requested sector hit
  std::uint64_t l1_write_requests = 0;     ///< lines
  std::uint64_t l1_flush_sectors = 0;      ///< dirty in L1 when the kernel ends, written to L2 then
  std::uint64_t l2_read_sectors = 0;
  std::uint64_t l2_read_sector_hits = 0;
  std::uint64_t l2_write_sectors = 0;
  std::uint64_t l2_write_sector_hits = 0;
  std::uint64_t l2_atomic_sectors = 0;
  std::uint64_t l2_atomic_sector_hits = 0;
  std::uint64_t l2_read_requests = 0;      ///< lines
  std::uint64_t l2_read_request_hits = 0;  ///< lines of which every requested sector hit
  std::uint64_t l2_write_requests = 0;     ///< lines
  std::uint64_t dram_read_sectors = 0;
  std::uint64_t dram_write_sectors = 0;  ///< written back by evictions, or not allocated in L2
  std::uint64_t l2_dirty_sectors = 0;    ///< still dirty in L2 when the kernel ends
};

/// One access of the observed warp, without what L1 writes back later.
struct ObservedAccess {
  std::uint32_t row = 0;
  std::uint32_t l2_requests = 0;
  std::uint32_t l2_request_sectors = 0;
  std::uint32_t dram_requests = 0;
  std::uint32_t dram_sectors = 0;
  MissEvent event = MissEvent::l1_hit;
};

struct MemoryProfile {
  MemoryTotals totals;
  std::vector<InstructionCounters> per_row;  ///< by row of the static instruction table
  Occupancy occupancy;
  std::vector<ObservedAccess> observed;  ///< in program order; empty when no warp was observed
};

/// The caches of a GPU, simulated by content in a fixed order of accesses (cache paper, Section 4;
/// GPUMech, Section V). Thread blocks go to SMs round robin; each SM orders its accesses as
/// SmSchedule says; the SMs take turns, one warp instruction each. L2 keeps its contents from
/// kernel to kernel.
class MemorySystem {
 public:
  /// Throws InputError on impossible geometry.
  explicit MemorySystem(const MemoryConfig& config);

  /// Runs a kernel with empty L1 caches, which write their dirty sectors back when it ends, SM by
  /// SM. Records the accesses of warp `observed`. Throws InputError when a thread block does not
  /// fit on an SM. Calls from several threads run one after another.
  MemoryProfile run(const KernelTrace& trace, std::optional<WarpPosition> observed = {},
                    const InterruptCheck& interrupt = {});
  /// Empties L2, as profilers do between kernels.
  void flush_l2() {
    const std::scoped_lock lock(mutex_);
    l2_.clear();
  }

 private:
  MemoryConfig config_;
  std::mutex mutex_;
  Cache l2_;
};

}  // namespace warpstack
