#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "common/interrupt.h"
#include "memory/system/fetches_under_way.h"
#include "memory/system/followers.h"
#include "memory/system/memory_system.h"
#include "memory/system/sm_caches.h"
#include "trace/columns/kernel_trace.h"

// Simulates some SMs of a launch in the timed order; the others follow them (followers.h).

namespace warpstack::memory {

/// An SM of the sample and the SMs that it stands for: itself and neighbours with as many blocks.
/// SMs are numbered among those that have blocks.
struct SampleGroup {
  std::size_t leader = 0;
  std::vector<std::size_t> followers;  ///< increasing
  [[nodiscard]] double weight() const { return 1 + static_cast<double>(followers.size()); }
};

/// Divides SMs, given by their blocks, into groups, so that `share` of all SMs are leaders. The SM
/// that runs `observed_block` leads its group. Empty if the sample would be too small to estimate
/// its error: then all SMs must be simulated.
std::vector<SampleGroup> sample_of(std::span<const std::vector<std::uint32_t>> blocks_of_sms,
                                   double share, std::optional<std::uint32_t> observed_block);

/// Half the width of the 95 % confidence interval of a ratio, relative to the ratio: the sum of
/// weight * y over that of weight * x, estimated from a sample without replacement. 0 for an empty
/// sum.
double ratio_error(std::span<const double> weights, std::span<const double> x,
                   std::span<const double> y);

/// Simulates the leaders of a launch on one thread, window by window as MemorySystem does.
class SampledSimulation {
 public:
  using MakeSm = std::function<std::unique_ptr<SmCaches>(std::size_t)>;

  SampledSimulation(std::vector<SampleGroup> groups, const MakeSm& make_sm,
                    const std::vector<std::vector<std::uint32_t>>& blocks_of_sms,
                    const Followers::Launch& launch, Cache& l2, FetchesUnderWay& under_way,
                    std::uint64_t most_under_way);

  /// Returns false, as early as possible, if L2 loses many lines that are used again: which lines
  /// are lost depends on the order of accesses of all SMs, which followers do not know well enough.
  [[nodiscard]] bool run(std::optional<trace::WarpPosition> observed,
                         const InterruptCheck& interrupt);

  /// Writes the estimates for all SMs into the profile: the counters of rows and totals that depend
  /// on caches, turns of slices, waits for places, and errors. `counts` are those of all blocks.
  void estimate(std::span<const trace::RowCounts> counts, MemoryProfile& profile) const;

 private:
  struct Leader {
    SampleGroup group;
    std::unique_ptr<SmCaches> sm;
    std::unique_ptr<Followers> followers;
    Worker worker;
  };

  void serve(std::size_t turns, ReferenceCycle begin);
  void serve_leader(Leader& leader, std::size_t first, std::size_t last);
  void note_miss(std::uint64_t line);
  [[nodiscard]] bool loses_lines() const;
  void flush();
  void estimate_row(std::size_t row, const trace::RowCounts& counts,
                    InstructionCounters& all) const;
  void estimate_totals(MemoryProfile& profile) const;
  void estimate_errors(MemoryProfile& profile) const;

  const std::vector<trace::StaticInstruction>& instructions_;
  Cache& l2_;
  FetchesUnderWay& under_way_;
  ReferenceCycle now_ = 0;  ///< of the turn that L2 serves
  std::vector<Leader> leaders_;
  std::vector<double> known_slice_turns_;  ///< of all requests that L2 gets
  double slice_turns_of_all_ = 0;          ///< estimated from the leaders
  std::vector<std::uint64_t> slice_dram_sectors_;
  SliceCrowding crowding_;
  bool is_flushing_ = false;
  MemoryTotals of_followers_;  ///< counts of L2 and DRAM for followers
  // Of every 16th line, chosen by a hash:
  std::unordered_set<std::uint64_t> missed_lines_;
  std::uint64_t repeated_misses_ = 0;
};

}  // namespace warpstack::memory
