#pragma once

#include <bit>
#include <cstdint>

#include "memory/cache/atomic_turns.h"
#include "memory/cache/cache.h"

namespace warpstack::memory {

/// What stores cost a slice of L2, wherever it is counted: in the caches, which hand the sums to
/// the models, and in the simulators.
struct StoreRule {
  double partial_turns = 0;  ///< more, for each sector that is written in part

  [[nodiscard]] bool counts_bytes() const { return partial_turns > 0; }
  /// Turns of a request that writes these bytes of its sectors.
  [[nodiscard]] double turns(SectorMask mask, const ByteMasks& bytes) const {
    constexpr std::uint32_t whole = ~std::uint32_t{0};
    std::uint32_t partial = 0;
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      partial += bytes[static_cast<std::size_t>(std::countr_zero(rest))] != whole;
    }
    return in_parts(1 + partial_turns * partial);
  }
};

}  // namespace warpstack::memory
