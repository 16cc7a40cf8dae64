#include "model/stall_lengths.h"

#include <algorithm>
#include <functional>
#include <ranges>
#include <utility>

namespace warpstack::model {

StallLengths::StallLengths(const interval::IntervalColumns& intervals) {
  std::vector<std::pair<double, std::size_t>> stalls;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    if (intervals.stall_cycles[i] > 0) stalls.emplace_back(intervals.stall_cycles[i], i);
  }
  std::ranges::sort(stalls, std::greater<>());
  Sums sums;
  for (const auto& [length, i] : stalls) {
    ++sums.count;
    sums.cycles += length;
    for (std::size_t c = 0; c < interval::num_stall_causes; ++c) {
      const double cycles = intervals.stall_by_cause[c][i];
      sums.cycles_of[c] += cycles;
      sums.shares_of[c] += cycles / length;
    }
    if (lengths_.empty() || lengths_.back() != length) {
      lengths_.push_back(length);
      sums_.push_back(sums);
    } else {
      sums_.back() = sums;
    }
  }
}

StallShares StallLengths::uncovered(double share) const {
  StallShares result{};
  if (sums_.empty()) return result;
  const double left = std::clamp(share, 0.0, 1.0) * sums_.back().cycles;
  // How much is left when stalls are covered down to the next shorter ones, all in the end.
  const auto left_at = [this](std::size_t k) {
    const double next = k + 1 < lengths_.size() ? lengths_[k + 1] : 0;
    return sums_[k].cycles - sums_[k].count * next;
  };
  const auto all = std::views::iota(std::size_t{0}, lengths_.size() - 1);
  const auto shortest = std::ranges::lower_bound(all, left, {}, left_at);
  const Sums& sums = sums_[static_cast<std::size_t>(shortest - all.begin())];
  const double covered = (sums.cycles - left) / sums.count;
  const bool none_left = !(left > 0);
  for (std::size_t c = 0; c < result.size(); ++c) {
    // Where nothing is left, the longest stalls have all.
    result[c] = none_left ? sums.shares_of[c] / sums.count
                          : (sums.cycles_of[c] - covered * sums.shares_of[c]) / left;
  }
  return result;
}

}  // namespace warpstack::model
