#pragma once

#include <cstdint>
#include <unordered_map>

#include "common/interrupt.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::trace {

/// The pages of memory that launches have touched, one launch after the other.
class TouchedPages {
 public:
  static constexpr std::uint64_t bytes_per_page = 4096;

  /// Adds the pages of the next launch. Returns the share of the sectors its instructions touch
  /// that lie in pages no launch before it touched; 0 if it touches none.
  double add(const KernelTrace& trace, const InterruptCheck& interrupt = {});

 private:
  std::uint64_t num_launches_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> first_launch_;  ///< by page
};

}  // namespace warpstack::trace
