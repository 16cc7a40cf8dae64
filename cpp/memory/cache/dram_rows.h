#pragma once

#include <algorithm>
#include <cstdint>

#include "gpu/gpu.h"
#include "memory/cache/address_map.h"
#include "memory/cache/cache.h"

namespace warpstack::memory {

/// Which row of its DRAM channel a line of L2 lies in. A channel has the lines of some slices of
/// L2, whose rows alternate; rows go to its banks in turn.
class DramRows {
 public:
  DramRows(const gpu::Gpu& gpu, const CacheConfig& l2, std::uint32_t channels)
      : has_rows_(gpu.dram_row_bytes > 0),
        line_bytes_(l2.line_bytes),
        sharers_(l2.slices / channels),
        by_chunk_bytes_(l2.slice_interleave_bytes),
        by_slices_(l2.slices),
        by_turn_bytes_(std::max(gpu.dram_bank_interleave_bytes, 1u)),
        by_takers_(std::max(gpu.dram_interleaved_banks, 1u)),
        by_row_bytes_(std::max(gpu.dram_row_bytes, 1u)) {}

  /// 0 without rows.
  [[nodiscard]] std::uint64_t row_of(std::uint32_t slice, std::uint64_t line) const {
    if (!has_rows_) return 0;
    const std::uint64_t address = line * line_bytes_;
    const std::uint64_t in_slice =
        by_slices_.quotient(by_chunk_bytes_.quotient(address)) * by_chunk_bytes_.value() +
        by_chunk_bytes_.remainder(address);
    // Banks that take turns are neighbours: each turn of each one has its bytes side by side.
    const std::uint64_t turn = by_turn_bytes_.quotient(in_slice);
    const std::uint64_t round = by_takers_.quotient(turn);
    const std::uint64_t taker = turn - round * by_takers_.value();
    const std::uint64_t in_bank =
        round * by_turn_bytes_.value() + by_turn_bytes_.remainder(in_slice);
    return (by_row_bytes_.quotient(in_bank) * sharers_ + slice % sharers_) * by_takers_.value() +
           taker;
  }

 private:
  bool has_rows_;
  std::uint32_t line_bytes_;
  std::uint32_t sharers_;  ///< slices of a channel
  Divisor by_chunk_bytes_;
  Divisor by_slices_;
  Divisor by_turn_bytes_;
  Divisor by_takers_;
  Divisor by_row_bytes_;
};

}  // namespace warpstack::memory
