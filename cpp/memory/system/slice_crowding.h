#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/cache/atomic_turns.h"

namespace warpstack::memory {

/// How unevenly requests that are under way together fall on the slices of L2, though a whole
/// launch may ask all slices alike: rows of an array may lie a multiple of all slices apart.
///
/// The requests of a launch pass in the order in which L2 gets them. A window has as many as may be
/// under way at once, so that what is uneven within it does not even out in queues. It takes as
/// long as its most asked slice, which counts with what it has at least if chance gave it more than
/// others: of `c` turns in requests of up to `t`, c - sqrt(2 c t ln slices). The second term is how
/// far the largest of so many Poisson numbers lies above their mean (Boucheron, Lugosi and Massart,
/// Concentration Inequalities, 2013, Theorem 2.5). Twice the slices never make it longer: no slice
/// gets more, and ln grows.
class SliceCrowding {
 public:
  SliceCrowding() = default;
  /// Counts every `parts`-th window of `requests` requests, from that with number `part` on.
  SliceCrowding(std::uint32_t slices, std::uint64_t requests, std::uint64_t parts = 1,
                std::uint64_t part = 0)
      : window_(std::max<std::uint64_t>(requests, 1)),
        parts_(parts),
        windows_before_(part),
        turns_(slices),
        twice_log_(2 * std::log(static_cast<double>(std::max(slices, 1U)))) {}

  /// Passes the next request to L2. Calls `turns_of(add)` if it is to be counted, which calls
  /// `add(slice, turns)`.
  template <typename Turns>
  void pass(const Turns& turns_of) {
    if (passed_ == window_) begin_window();
    ++passed_;
    if (windows_before_ != 0) return;
    turns_of([this](std::uint32_t slice, double turns) {
      turns_[slice] += turns;
      longest_ = std::max(longest_, turns);
    });
  }
  /// Ends the last window.
  void finish() {
    begin_window();
    windows_before_ = parts_;
  }

  /// The turns that passed in the counted windows.
  [[nodiscard]] double turns() const { return sum_; }
  /// The turns that they would have taken if all slices had always had as many as the most asked
  /// one. Both are multiples of 1/1024, so that sums do not depend on the order of threads.
  [[nodiscard]] double crowded_turns() const { return crowded_; }

 private:
  void begin_window() {
    passed_ = 0;
    if (windows_before_ != 0) {
      --windows_before_;
      return;
    }
    windows_before_ = parts_ - 1;
    double sum = 0;
    double most = 0;
    for (double& turns : turns_) {
      sum += turns;
      most = std::max(most, turns);
      turns = 0;
    }
    const double least = most - std::sqrt(most * longest_ * twice_log_);
    sum_ += sum;
    crowded_ += std::max(sum, in_parts(least * static_cast<double>(turns_.size())));
    longest_ = 0;
  }

  std::uint64_t window_ = 1;
  std::uint64_t parts_ = 1;
  std::uint64_t windows_before_ = 0;  ///< until the next counted one begins; 0: it is running
  std::uint64_t passed_ = 0;          ///< requests of the running window
  std::vector<double> turns_;         ///< by slice
  double twice_log_ = 0;              ///< of the slices
  double longest_ = 0;                ///< turns of a request of the window
  double sum_ = 0;
  double crowded_ = 0;
};

/// What slices take longer for requests that come together than if all had always as many to do.
inline double crowding_of(double turns, double crowded_turns) {
  return turns > 0 ? crowded_turns / turns : 1;
}

}  // namespace warpstack::memory
