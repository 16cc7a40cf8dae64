#pragma once

#include <cstdint>

#include "timing/base/timing_config.h"

namespace warpstack::timing {

// What a warp waits for: a part of the stack, which is smaller than these, the load-store unit, or
// (from the second one on) a load in flight.
inline constexpr std::uint32_t load_store_unit_cause = num_values<StackComponent>;
inline constexpr std::uint32_t first_load_cause = load_store_unit_cause + 1;
inline constexpr auto dep_cause = static_cast<std::uint32_t>(StackComponent::dep);

/// Until when a warp waits, as far as is known, and for what; `never`: that is not known yet.
struct Wait {
  Cycle until = -1;
  std::uint32_t cause = dep_cause;

  /// The later of two.
  void take(const Wait& other) {
    if (other.until > until) *this = other;
  }
};

}  // namespace warpstack::timing
