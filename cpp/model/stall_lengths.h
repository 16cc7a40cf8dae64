#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <vector>

#include "interval/interval.h"
#include "interval/work.h"

namespace warpstack::model {

/// Parts of stall cycles by cause, as `interval::stall_causes`; what they leave of 1 is `dep`.
using StallShares = std::array<double, interval::num_stall_causes>;

/// Parts of stall cycles by detail: of `dep` only what is not arithmetic, of memory its latencies.
using DetailShares = std::array<double, interval::num_stall_causes + 3>;
inline constexpr std::array<StackDetail, std::tuple_size_v<DetailShares>> stall_details = {
    StackDetail::arithmetic,   StackDetail::l1_latency,    StackDetail::l2_latency,
    StackDetail::dram_latency, StackDetail::shared_memory, StackDetail::bank_conflicts,
    StackDetail::barriers};

/// The stalls of a warp by their lengths. Where warps run side by side, others cover the first
/// cycles of each stall: short ones are gone before long ones show.
class StallLengths {
 public:
  StallLengths() = default;  ///< of a warp that never stalls
  /// `row_waits`: of the instructions that stalls wait for; null: all `dep` is arithmetic.
  explicit StallLengths(const interval::IntervalColumns& intervals,
                        const std::vector<interval::RowWait>* row_waits = nullptr);

  /// The causes of the cycles that are left when as much of every stall is covered as leaves
  /// `share` (0 to 1) of all stall cycles: max(stall - covered, 0), summed over the stalls. All
  /// zeros where a warp never stalls.
  [[nodiscard]] StallShares uncovered(double share) const;
  /// The same by detail, as `stall_details`.
  [[nodiscard]] DetailShares uncovered_details(double share) const;

 private:
  /// Sums over all stalls that are as long as this or longer.
  struct Sums {
    double count = 0;
    double cycles = 0;
    DetailShares cycles_of{};  ///< by detail
    DetailShares shares_of{};  ///< sum of the details' parts of each stall
  };
  std::vector<double> lengths_;  ///< longest first, each once
  std::vector<Sums> sums_;
};

}  // namespace warpstack::model
