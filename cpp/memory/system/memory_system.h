#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "common/enum_names.h"
#include "common/interrupt.h"
#include "gpu/scheduler.h"
#include "memory/cache/cache.h"
#include "memory/cache/counters.h"
#include "memory/cache/repeated_launches.h"
#include "memory/order/block_assignment.h"
#include "memory/order/occupancy.h"
#include "memory/order/schedule.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::memory {

class OrderRecorder;
struct OrderRecording;

struct MemoryConfig {
  std::uint32_t num_sms = 1;
  gpu::SmLimits sm;
  CacheConfig l1;  ///< one per SM
  CacheConfig l2;  ///< shared; its size is that of all slices together
  /// Adaptive L1: L1 and shared memory share `unified_bytes`, and L1 gets what the smallest of
  /// `carve_outs` (bytes, increasing) that does not cost occupancy leaves. Empty: L1 as configured.
  std::uint64_t unified_bytes = 0;
  std::vector<std::uint64_t> carve_outs;
  bool adaptive_keeps_ways = false;  ///< and changes its sets; else it keeps its sets
  bool l1_caches_global = true;      ///< false: loads of global memory go past L1
  bool filter_l1_hits = true;        ///< false: L2 sees what hits in L1 too, as in PPT-GPU-Mem
  BlockOrder block_order;
  AccessOrder access_order = AccessOrder::round_robin;
  std::uint32_t l1_mshrs = 1;     ///< per SM; only the greedy and the timed order ask
  bool atomics_per_lane = false;  ///< several lanes of one word have a request each
  double atomic_lane_turns = 0;   ///< of a slice of L2 for each lane of an atomic; 0: one a request
  // Only the timed order asks:
  gpu::Scheduler scheduler = gpu::Scheduler::gto;
  double issue_width = 1;               ///< warp instructions per cycle per SM
  std::uint32_t lsu_queue_entries = 2;  ///< memory instructions in front of L1
  bool reserves_lines = false;          ///< a line of L1 under way keeps its place

  /// Throws InputError on impossible values.
  void validate() const;
};

/// The L1 of a kernel: as configured or, where it adapts, beside the smallest carve-out that costs
/// no resident block (cache paper, Eq. 7).
CacheConfig l1_of(const MemoryConfig& config, const trace::KernelHeader& kernel,
                  std::uint32_t blocks_per_sm);

/// Sums over a kernel, in 32-byte sectors unless the name says otherwise;
/// docs/reference/statistics.md.
enum class Total : std::uint8_t {
  load_instructions,
  store_instructions,
  atomic_instructions,
  l1_read_sectors,
  l1_read_sector_hits,
  l1_write_sectors,
  l1_write_sector_hits,
  l1_local_read_sectors,
  l1_local_read_sector_hits,
  l1_local_write_sectors,
  l1_local_write_sector_hits,
  l1_read_requests,
  l1_read_request_hits,
  l1_write_requests,
  l1_flush_sectors,
  l2_read_sectors,
  l2_read_sector_hits,
  l2_write_sectors,
  l2_write_sector_hits,
  l2_atomic_sectors,
  l2_atomic_sector_hits,
  l2_read_requests,
  l2_read_request_hits,
  l2_write_requests,
  dram_read_sectors,
  dram_write_sectors,
  l2_dirty_sectors,
};
constexpr auto names_of(Total) {
  return enum_names(
      "total", "load_instructions", "store_instructions", "atomic_instructions", "l1_read_sectors",
      "l1_read_sector_hits", "l1_write_sectors", "l1_write_sector_hits", "l1_local_read_sectors",
      "l1_local_read_sector_hits", "l1_local_write_sectors", "l1_local_write_sector_hits",
      "l1_read_requests", "l1_read_request_hits", "l1_write_requests", "l1_flush_sectors",
      "l2_read_sectors", "l2_read_sector_hits", "l2_write_sectors", "l2_write_sector_hits",
      "l2_atomic_sectors", "l2_atomic_sector_hits", "l2_read_requests", "l2_read_request_hits",
      "l2_write_requests", "dram_read_sectors", "dram_write_sectors", "l2_dirty_sectors");
}
inline constexpr std::size_t num_totals = num_values<Total>;
/// The total that counts an instruction which goes through the caches.
Total total_of(const trace::StaticInstruction& instruction);

class MemoryTotals {
 public:
  std::uint64_t& operator[](Total total) { return values_[static_cast<std::size_t>(total)]; }
  std::uint64_t operator[](Total total) const { return values_[static_cast<std::size_t>(total)]; }
  MemoryTotals& operator+=(const MemoryTotals& other) {
    for (std::size_t i = 0; i < num_totals; ++i) values_[i] += other.values_[i];
    return *this;
  }

 private:
  std::array<std::uint64_t, num_totals> values_{};
};

/// What a sample leaves uncertain: half the widths of intervals of 95 % confidence, relative to the
/// value.
struct SampleErrors {
  double requests = 0;  ///< of what leaves L1
  double waits = 0;     ///< of the cycles that warps wait for data from L2 and DRAM
};

/// How a sample of the SMs stands for all (sampling.h). Where all were simulated, it is empty.
struct SampleSummary {
  /// A simulated SM.
  struct Sm {
    double weight = 1;    ///< SMs that it stands for, itself included
    MemoryTotals totals;  ///< its own
  };
  std::vector<Sm> sms;
  std::uint32_t working_sms = 0;  ///< that have blocks
  SampleErrors errors;
  std::vector<SampleErrors> row_errors;  ///< by row of the static instruction table
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
  std::uint64_t l1_size_bytes = 0;           ///< as simulated, where L1 adapts
  std::uint64_t simulated_blocks = 0;        ///< of the traced ones
  std::uint64_t simulated_instructions = 0;  ///< warp instructions of these blocks
  std::vector<ObservedAccess> observed;      ///< in program order; empty when no warp was observed
  /// Turns by slice of L2: one for each request, of an atomic what AtomicRule says.
  std::vector<double> slice_turns;
  /// By row: mean requests of an atomic's sector where MemoryConfig::atomics_per_lane, at least 1;
  /// 0 where the sectors of a line share a request.
  std::vector<double> atomic_lanes;
  /// Cycles of the reference machine in which a load waited for a place in its set of L1, by where
  /// the data came from that made room: L2, DRAM. Sums over the SMs; only the timed order knows.
  std::array<std::uint64_t, 2> place_wait_cycles{};
  /// Sectors that the SM which gets most reads from L2.
  std::uint64_t most_read_sectors = 0;
  /// Where a part of the SMs was simulated (sampling.h).
  SampleSummary sample;
};

/// The caches of a GPU, simulated by content in a fixed order of accesses (cache paper, Section 4;
/// GPUMech, Section V). The SMs take turns, one warp instruction each, in the order that
/// SmSchedule, GreedySchedule or TimedSchedule says. L2 keeps its contents from kernel to kernel.
///
/// An SM's L1 does not depend on the other SMs, nor a set of L2 on the other sets: the SMs run a
/// number of turns each and note what leaves them, then the sets of L2 take these requests in the
/// order of turns. Both steps run in parallel; the result does not depend on the threads.
class MemorySystem {
 public:
  /// `num_threads` 0: as many as the machine runs at once. Throws InputError on impossible
  /// geometry.
  explicit MemorySystem(const MemoryConfig& config, unsigned num_threads = 1);

  /// Runs a kernel with empty L1 caches, which write their dirty sectors back when it ends, SM by
  /// SM. A launch that is equal to an earlier one and finds the same in L2 is not simulated again.
  /// Records the accesses of warp `observed`. Throws InputError when a thread block does not fit on
  /// an SM. Calls from several threads run one after another.
  ///
  /// With `share` below 1 about that part of the SMs of a large launch is simulated, and the others
  /// follow (sampling.h): in the timed order, and unless L2 loses lines that are used again, for
  /// then the order of accesses of all SMs matters.
  MemoryProfile run(const trace::KernelTrace& trace,
                    std::optional<trace::WarpPosition> observed = {},
                    const InterruptCheck& interrupt = {}, double share = 1);
  /// The same of all SMs, on one thread, and in which order they access their L1 caches.
  OrderRecording record(const trace::KernelTrace& trace, const InterruptCheck& interrupt = {});
  /// Leaves about that in L2 which run() would, in a fraction of its time: L2 sees all accesses of
  /// the kernel, warp by warp, without an L1 that keeps hits from it.
  void warm(const trace::KernelTrace& trace, const InterruptCheck& interrupt = {});
  /// Puts L2 back to what it was before the last launch, if that one was sampled; so that it can
  /// run again with more SMs. Returns whether it was.
  bool undo_sampled();
  /// Empties L2, as profilers do between kernels.
  void flush_l2() {
    const std::scoped_lock lock(mutex_);
    l2_.clear();
  }

 private:
  MemoryProfile simulate(const trace::KernelTrace& trace,
                         std::optional<trace::WarpPosition> observed,
                         const InterruptCheck& interrupt, double share, OrderRecorder* recorder);
  bool put_back();

  MemoryConfig config_;
  unsigned num_threads_;
  std::mutex mutex_;
  Cache l2_;
  RepeatedLaunches<MemoryProfile> repeated_;
  std::optional<Cache> before_sampled_;  ///< L2 before the last launch, if that one was sampled
};

}  // namespace warpstack::memory
