#pragma once

#include <algorithm>
#include <cstdint>

namespace warpstack::memory {

/// How far a warp has come: the last row of the instruction table that it made an access with.
class Progress {
 public:
  /// Whether the warp goes back to a row, as in the later rounds of a loop: it has made an access
  /// with this row or a later one before.
  [[nodiscard]] bool goes_back_to(std::uint32_t row) const { return row < end_; }
  void access(std::uint32_t row) { end_ = std::max(end_, row + 1); }

 private:
  std::uint32_t end_ = 0;  ///< the row after it
};

}  // namespace warpstack::memory
