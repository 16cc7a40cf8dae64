#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "timing/base/timing_config.h"

namespace warpstack::timing {

/// The issue slots of a number of cycles when `issue_width` need not be whole: the first
/// ceil(t * issue_width) slots belong to the first t cycles.
class IssueSlots {
 public:
  explicit IssueSlots(double issue_width)
      : width_(to_ticks(issue_width)),
        whole_(width_ % ticks_per_cycle == 0 ? width_ / ticks_per_cycle : 0) {}
  /// Slots before a cycle.
  [[nodiscard]] std::int64_t before(Cycle cycle) const {
    if (whole_ > 0) return cycle * whole_;
    return static_cast<std::int64_t>((static_cast<__int128>(cycle) * width_ + ticks_per_cycle - 1) /
                                     ticks_per_cycle);
  }
  [[nodiscard]] std::int64_t in(Cycle cycle) const { return before(cycle + 1) - before(cycle); }

 private:
  std::int64_t width_;
  std::int64_t whole_;  ///< 0: it is not
};

/// A set of warps by age: bit 0 of the first word is the oldest.
using WarpBits = std::vector<std::uint64_t>;
inline std::uint64_t bit_of(std::uint32_t age) { return std::uint64_t{1} << (age % 64); }

/// Decides which of its warps issues next. Warps have numbers in the order of their age.
class WarpScheduler {
 public:
  /// `words`: of the sets; ages are smaller than 64 times that.
  WarpScheduler(gpu::Scheduler order, std::size_t words) : order_(order), warps_(words) {}

  /// Adds a warp, younger than all others.
  void add(std::uint32_t age) { warps_[age / 64] |= bit_of(age); }
  void remove(std::uint32_t age) {
    warps_[age / 64] &= ~bit_of(age);
    if (last_ == age && is_greedy()) last_ = nobody;
  }
  /// Gives the warps with these ages, in ascending order, the ages 0, 1, 2, ...
  void renumber(std::span<const std::uint32_t> ages) {
    const WarpBits before = warps_;
    std::fill(warps_.begin(), warps_.end(), 0);
    for (std::uint32_t age = 0; age < ages.size(); ++age) {
      if (before[ages[age] / 64] & bit_of(ages[age])) add(age);
    }
    if (last_ == nobody) return;
    // What has left has no age any more: it was after those that are older.
    const auto older = std::ranges::upper_bound(ages, last_) - ages.begin();
    last_ = older == 0 ? nobody : static_cast<std::uint32_t>(older - 1);
  }

  static constexpr std::uint32_t nobody = ~std::uint32_t{0};

  [[nodiscard]] const WarpBits& warps() const { return warps_; }
  /// The first of its warps in the scheduler's order that is in `can_issue`, which then is the last
  /// to have issued; `nobody` without one.
  std::uint32_t pick(std::span<const std::uint64_t> can_issue) {
    std::uint32_t found = nobody;
    if (is_greedy() && last_ != nobody && (can_issue[last_ / 64] & bit_of(last_))) return last_;
    if (order_ == gpu::Scheduler::gty) {
      found = youngest(can_issue);
    } else {
      if (order_ == gpu::Scheduler::lrr && last_ != nobody) found = oldest(can_issue, last_ + 1);
      if (found == nobody) found = oldest(can_issue, 0);
    }
    if (found != nobody) last_ = found;
    return found;
  }

 private:
  [[nodiscard]] bool is_greedy() const {
    return order_ == gpu::Scheduler::gto || order_ == gpu::Scheduler::gty;
  }
  /// The oldest of those with at least this age number.
  [[nodiscard]] std::uint32_t oldest(std::span<const std::uint64_t> set, std::uint32_t from) const {
    std::uint64_t younger = ~std::uint64_t{0} << (from % 64);
    for (std::size_t w = from / 64; w < warps_.size(); ++w) {
      const std::uint64_t bits = set[w] & warps_[w] & younger;
      younger = ~std::uint64_t{0};
      if (bits != 0) return static_cast<std::uint32_t>(w * 64) + lowest(bits);
    }
    return nobody;
  }
  [[nodiscard]] std::uint32_t youngest(std::span<const std::uint64_t> set) const {
    for (std::size_t w = warps_.size(); w-- > 0;) {
      const std::uint64_t bits = set[w] & warps_[w];
      if (bits != 0) return static_cast<std::uint32_t>(w * 64) + 63 - highest_gap(bits);
    }
    return nobody;
  }
  [[nodiscard]] static std::uint32_t lowest(std::uint64_t bits) {
    return static_cast<std::uint32_t>(std::countr_zero(bits));
  }
  [[nodiscard]] static std::uint32_t highest_gap(std::uint64_t bits) {
    return static_cast<std::uint32_t>(std::countl_zero(bits));
  }

  gpu::Scheduler order_;
  WarpBits warps_;
  std::uint32_t last_ = nobody;  ///< the age of who issued last
};

}  // namespace warpstack::timing
