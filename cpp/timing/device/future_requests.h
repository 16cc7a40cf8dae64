#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "timing/base/clock.h"

namespace warpstack::timing {

/// Requests that SMs which have run ahead will send, by the cycle in which they do.
class FutureRequests {
 public:
  /// How far ahead they may be.
  static constexpr Cycle most_cycles = 1023;

  void add(std::uint32_t sm, Cycle sent) {
    by_cycle_[place(sent)].push_back(sm);
    next_ = std::min(next_, sent);
    last_ = std::max(last_, sent);
  }
  /// The first cycle with requests.
  [[nodiscard]] Cycle next() const { return next_; }
  /// Hands over those of the cycle next().
  template <typename Visit>
  void take(Visit visit) {
    std::vector<std::uint32_t>& requests = by_cycle_[place(next_)];
    for (const std::uint32_t sm : requests) visit(sm);
    requests.clear();
    do {
      ++next_;
    } while (next_ <= last_ && by_cycle_[place(next_)].empty());
    if (next_ > last_) next_ = never;
  }

 private:
  static std::size_t place(Cycle cycle) { return static_cast<std::size_t>(cycle & most_cycles); }

  std::array<std::vector<std::uint32_t>, most_cycles + 1> by_cycle_;  ///< by its last digits
  Cycle next_ = never;
  Cycle last_ = -1;
};

}  // namespace warpstack::timing
