#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "timing/base/timing_config.h"

namespace warpstack::timing {

/// The issue slots of a number of cycles when `issue_width` need not be whole: the first
/// ceil(t * issue_width) slots belong to the first t cycles.
class IssueSlots {
 public:
  explicit IssueSlots(double issue_width) : width_(to_ticks(issue_width)) {}
  /// Slots before a cycle.
  [[nodiscard]] std::int64_t before(Cycle cycle) const {
    return static_cast<std::int64_t>((static_cast<__int128>(cycle) * width_ + ticks_per_cycle - 1) /
                                     ticks_per_cycle);
  }
  [[nodiscard]] std::int64_t in(Cycle cycle) const { return before(cycle + 1) - before(cycle); }

 private:
  std::int64_t width_;
};

/// Decides which of its warps issues next.
class WarpScheduler {
 public:
  explicit WarpScheduler(gpu::Scheduler order) : order_(order) {}

  /// Adds a warp, younger than all others.
  void add(std::uint32_t warp) { warps_.push_back({next_age_++, warp}); }
  void remove(std::uint32_t warp) {
    std::erase_if(warps_, [warp](const Entry& entry) { return entry.warp == warp; });
    if (last_warp_ == warp) last_warp_ = nobody;
  }

  static constexpr std::uint32_t nobody = ~std::uint32_t{0};

  /// The first warp in the scheduler's order that `can_issue`, which then is the last to have
  /// issued; `nobody` without one.
  template <typename CanIssue>
  std::uint32_t pick(CanIssue can_issue) {
    const bool is_greedy = order_ == gpu::Scheduler::gto || order_ == gpu::Scheduler::gty;
    if (is_greedy && last_warp_ != nobody && can_issue(last_warp_)) return last_warp_;
    const std::size_t count = warps_.size();
    std::size_t first = 0;
    if (order_ == gpu::Scheduler::lrr) {
      while (first < count && warps_[first].age <= last_age_) ++first;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t turn = first + i < count ? first + i : first + i - count;
      const Entry& entry = warps_[order_ == gpu::Scheduler::gty ? count - 1 - turn : turn];
      if (!can_issue(entry.warp)) continue;
      last_age_ = entry.age;
      last_warp_ = entry.warp;
      return entry.warp;
    }
    return nobody;
  }

 private:
  struct Entry {
    std::int64_t age;
    std::uint32_t warp;
  };

  gpu::Scheduler order_;
  std::vector<Entry> warps_;  ///< oldest first
  std::int64_t next_age_ = 0;
  std::int64_t last_age_ = -1;  ///< of the warp that issued last
  std::uint32_t last_warp_ = nobody;
};

}  // namespace warpstack::timing
