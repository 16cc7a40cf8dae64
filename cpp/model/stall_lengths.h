#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "interval/interval.h"

namespace warpstack::model {

/// Parts of stall cycles by cause, as `interval::stall_causes`; what they leave of 1 is `dep`.
using StallShares = std::array<double, interval::num_stall_causes>;

/// The stalls of a warp by their lengths. Where warps run side by side, others cover the first
/// cycles of each stall: short ones are gone before long ones show.
class StallLengths {
 public:
  StallLengths() = default;  ///< of a warp that never stalls
  explicit StallLengths(const interval::IntervalColumns& intervals);

  /// The causes of the cycles that are left when as much of every stall is covered as leaves
  /// `share` (0 to 1) of all stall cycles: max(stall - covered, 0), summed over the stalls. All
  /// zeros where a warp never stalls.
  [[nodiscard]] StallShares uncovered(double share) const;

 private:
  /// Sums over all stalls that are as long as this or longer.
  struct Sums {
    double count = 0;
    double cycles = 0;
    StallShares cycles_of{};  ///< by cause
    StallShares shares_of{};  ///< sum of the causes' parts of each stall
  };
  std::vector<double> lengths_;  ///< longest first, each once
  std::vector<Sums> sums_;
};

}  // namespace warpstack::model
