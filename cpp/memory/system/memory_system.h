#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "common/interrupt.h"
#include "memory/cache/cache.h"
#include "memory/cache/counters.h"
#include "memory/cache/repeated_launches.h"
#include "memory/cache/totals.h"
#include "memory/order/memory_config.h"
#include "memory/system/fetches_under_way.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::memory {

class OrderRecorder;
struct OrderRecording;

/// The uncertainty of a sample: half widths of 95 % confidence intervals, relative to the value.
struct SampleErrors {
  double requests = 0;  ///< of requests that leave L1
  double waits = 0;     ///< of the cycles that warps wait for data from L2 and DRAM
};

/// How a sample of the SMs stands for all (sampling.h); empty if all were simulated.
struct SampleSummary {
  /// A simulated SM.
  struct SampledSm {
    double weight = 1;    ///< SMs that it stands for, itself included
    MemoryTotals totals;  ///< its own
  };
  std::vector<SampledSm> sms;
  std::uint32_t working_sms = 0;  ///< SMs that have blocks
  SampleErrors errors;
  std::vector<SampleErrors> row_errors;  ///< by row of the static instruction table
};

/// One access of the observed warp, without later write-backs of L1.
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
  std::uint64_t l1_size_bytes = 0;           ///< as simulated, also if L1 adapts
  std::uint64_t simulated_blocks = 0;        ///< traced blocks that were simulated
  std::uint64_t simulated_instructions = 0;  ///< warp instructions of these blocks
  std::vector<ObservedAccess> observed;      ///< in program order; empty if no warp was observed
  /// Turns by slice of L2: one for each request, or for an atomic as many as AtomicRule says.
  std::vector<double> slice_turns;
  /// Sectors that each slice of L2 reads from DRAM and writes to it.
  std::vector<std::uint64_t> slice_dram_sectors;
  /// How much longer slices take because requests that are under way together ask some of them more
  /// than others, at least 1 (slice_crowding.h). Without what L1 writes back at the end.
  double slice_crowding = 1;
  /// By row: mean requests per sector of an atomic with MemoryConfig::atomics_per_lane, at least 1;
  /// 0 if the sectors of a line share a request.
  std::vector<double> atomic_lanes;
  /// Cycles of the reference machine in which loads waited for a place in their set of L1, by the
  /// source of the data whose arrival freed it: L2, DRAM. Sums over the SMs; only in the timed
  /// order.
  std::array<std::uint64_t, 2> place_wait_cycles{};
  /// The most sectors that one SM reads from L2.
  std::uint64_t most_read_sectors = 0;
  /// Set if only a part of the SMs was simulated (sampling.h).
  SampleSummary sample;
};

/// The caches of a GPU, simulated by content in a fixed order of accesses (cache paper, Section 4;
/// GPUMech, Section V). The SMs take turns, one warp instruction each, in the order that
/// SmSchedule, GreedySchedule or TimedSchedule says. L2 keeps its contents from kernel to kernel.
///
/// An SM's L1 does not depend on other SMs, nor a set of L2 on other sets. So the SMs run a number
/// of turns each and note what leaves them; then the sets of L2 take these requests in the order of
/// turns. Both steps run in parallel; the result does not depend on the threads.
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
  /// With `share` below 1, about that part of the SMs of a large launch is simulated, and the
  /// others follow (sampling.h). This is only done in the timed order, and not if L2 loses lines
  /// that are used again: then the order of accesses of all SMs matters.
  MemoryProfile run(const trace::KernelTrace& trace,
                    std::optional<trace::WarpPosition> observed = {},
                    const InterruptCheck& interrupt = {}, double share = 1);
  /// Runs all SMs on one thread, and records the order in which they access their L1 caches.
  OrderRecording record(const trace::KernelTrace& trace, const InterruptCheck& interrupt = {});
  /// Leaves L2 about as run() would, in a fraction of the time: L2 sees all accesses of the kernel,
  /// warp by warp, without an L1 that filters hits.
  void warm(const trace::KernelTrace& trace, const InterruptCheck& interrupt = {});
  /// If the last launch was sampled, restores L2 to its state before it, so that it can run again
  /// with more SMs. Returns whether it was sampled.
  bool undo_sampled();
  /// Empties L2, as profilers do between kernels. It has the lines of strangers again.
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
  FetchesUnderWay under_way_;  ///< from L2's DRAM, in the timed order
  RepeatedLaunches<MemoryProfile> repeated_;
  /// Empty L1 caches of SMs that are done, by SM: a short launch would spend half of its time on
  /// the memory of new ones.
  std::vector<std::optional<Cache>> idle_l1s_;
  std::optional<Cache> before_sampled_;  ///< L2 before the last launch, if that one was sampled
};

}  // namespace warpstack::memory
