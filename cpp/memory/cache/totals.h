#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/enum_names.h"
#include "trace/instructions/static_instruction.h"

namespace warpstack::memory {

/// Sums over a kernel, in 32-byte sectors unless the name says otherwise; see
/// docs/reference/statistics.md.
enum class Total : std::uint8_t {
  load_instructions,
  store_instructions,
  atomic_instructions,
  l1_read_sectors,
  l1_read_sector_hits,
  l1_write_sectors,
  l1_write_sector_hits,
  l1_local_read_sectors,
  l1_local_read_sector_hits,
  l1_local_write_sectors,
  l1_local_write_sector_hits,
  l1_read_requests,
  l1_read_request_hits,
  l1_write_requests,
  l1_flush_sectors,
  l2_read_sectors,
  l2_read_sector_hits,
  l2_write_sectors,
  l2_write_sector_hits,
  l2_atomic_sectors,
  l2_atomic_sector_hits,
  l2_read_requests,
  l2_read_request_hits,
  l2_write_requests,
  dram_read_sectors,
  dram_write_sectors,
  l2_dirty_sectors,
};
constexpr auto names_of(Total) {
  return enum_names(
      "total", "load_instructions", "store_instructions", "atomic_instructions", "l1_read_sectors",
      "l1_read_sector_hits", "l1_write_sectors", "l1_write_sector_hits", "l1_local_read_sectors",
      "l1_local_read_sector_hits", "l1_local_write_sectors", "l1_local_write_sector_hits",
      "l1_read_requests", "l1_read_request_hits", "l1_write_requests", "l1_flush_sectors",
      "l2_read_sectors", "l2_read_sector_hits", "l2_write_sectors", "l2_write_sector_hits",
      "l2_atomic_sectors", "l2_atomic_sector_hits", "l2_read_requests", "l2_read_request_hits",
      "l2_write_requests", "dram_read_sectors", "dram_write_sectors", "l2_dirty_sectors");
}
inline constexpr std::size_t num_totals = num_values<Total>;
/// The total that counts instructions of this kind, which go through the caches.
Total total_of(const trace::StaticInstruction& instruction);

class MemoryTotals {
 public:
  std::uint64_t& operator[](Total total) { return values_[static_cast<std::size_t>(total)]; }
  std::uint64_t operator[](Total total) const { return values_[static_cast<std::size_t>(total)]; }
  MemoryTotals& operator+=(const MemoryTotals& other) {
    for (std::size_t i = 0; i < num_totals; ++i) values_[i] += other.values_[i];
    return *this;
  }

 private:
  std::array<std::uint64_t, num_totals> values_{};
};

}  // namespace warpstack::memory
