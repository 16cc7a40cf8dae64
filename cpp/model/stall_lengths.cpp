#include "model/stall_lengths.h"

#include <algorithm>
#include <functional>
#include <ranges>
#include <utility>

namespace warpstack::model {
namespace {

static_assert(interval::stall_causes[0] == StackComponent::dep);
constexpr std::size_t of_shared = interval::num_stall_causes;
constexpr std::size_t of_conflicts = of_shared + 1;
constexpr std::size_t of_barriers = of_shared + 2;

/// Cycles of a stall by detail.
DetailShares stall_details_of(const interval::IntervalColumns& intervals, std::size_t i,
                              const std::vector<interval::RowWait>* row_waits) {
  DetailShares cycles{};
  for (std::size_t c = 0; c < interval::num_stall_causes; ++c) {
    cycles[c] = intervals.stall_by_cause[c][i];
  }
  const std::int64_t row = i < intervals.cause_row.size() ? intervals.cause_row[i] : -1;
  if (row_waits == nullptr || row < 0 || static_cast<std::size_t>(row) >= row_waits->size()) {
    return cycles;
  }
  const interval::RowWait& wait = (*row_waits)[static_cast<std::size_t>(row)];
  if (wait.is_barrier) std::swap(cycles[0], cycles[of_barriers]);
  if (wait.is_shared) {
    cycles[of_conflicts] = cycles[0] * wait.conflicts;
    cycles[of_shared] = cycles[0] - cycles[of_conflicts];
    cycles[0] = 0;
  }
  return cycles;
}

}  // namespace

StallLengths::StallLengths(const interval::IntervalColumns& intervals,
                           const std::vector<interval::RowWait>* row_waits) {
  std::vector<std::pair<double, std::size_t>> stalls;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    if (intervals.stall_cycles[i] > 0) stalls.emplace_back(intervals.stall_cycles[i], i);
  }
  std::ranges::sort(stalls, std::greater<>());
  Sums sums;
  for (const auto& [length, i] : stalls) {
    ++sums.count;
    sums.cycles += length;
    const DetailShares cycles = stall_details_of(intervals, i, row_waits);
    for (std::size_t c = 0; c < cycles.size(); ++c) {
      sums.cycles_of[c] += cycles[c];
      sums.shares_of[c] += cycles[c] / length;
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
  const DetailShares details = uncovered_details(share);
  StallShares result{};
  std::copy_n(details.begin(), result.size(), result.begin());
  result[0] += details[of_shared] + details[of_conflicts] + details[of_barriers];
  return result;
}

DetailShares StallLengths::uncovered_details(double share) const {
  DetailShares result{};
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
