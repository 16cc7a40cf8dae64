#pragma once

#include "memory/cache/cache.h"
#include "memory/cache/totals.h"

namespace warpstack::memory {

// These functions add the access of a line to the totals of a kernel. Only they count hits. `asked`
// and `hit` are sectors of the line. Requests of loads are counted where they are issued.

/// A load that goes past L1.
inline void count_l1_bypass(MemoryTotals& totals, SectorMask asked, bool is_local) {
  const std::uint32_t sectors = count_sectors(asked);
  totals[Total::l1_read_sectors] += sectors;
  if (is_local) totals[Total::l1_local_read_sectors] += sectors;
}

inline void count_l1_load(MemoryTotals& totals, SectorMask asked, SectorMask hit, bool is_local) {
  count_l1_bypass(totals, asked, is_local);
  const std::uint32_t hits = count_sectors(hit);
  totals[Total::l1_read_sector_hits] += hits;
  if (is_local) totals[Total::l1_local_read_sector_hits] += hits;
  totals[Total::l1_read_request_hits] += hit == asked;
}

inline void count_l1_store(MemoryTotals& totals, SectorMask asked, SectorMask hit, bool is_local) {
  const std::uint32_t sectors = count_sectors(asked);
  const std::uint32_t hits = count_sectors(hit);
  ++totals[Total::l1_write_requests];
  totals[Total::l1_write_sectors] += sectors;
  totals[Total::l1_write_sector_hits] += hits;
  if (is_local) {
    totals[Total::l1_local_write_sectors] += sectors;
    totals[Total::l1_local_write_sector_hits] += hits;
  }
}

inline void count_l2_read(MemoryTotals& totals, SectorMask asked, SectorMask hit) {
  ++totals[Total::l2_read_requests];
  totals[Total::l2_read_request_hits] += hit == asked;
  totals[Total::l2_read_sectors] += count_sectors(asked);
  totals[Total::l2_read_sector_hits] += count_sectors(hit);
}

inline void count_l2_write(MemoryTotals& totals, SectorMask asked, SectorMask hit) {
  ++totals[Total::l2_write_requests];
  totals[Total::l2_write_sectors] += count_sectors(asked);
  totals[Total::l2_write_sector_hits] += count_sectors(hit);
}

inline void count_l2_atomic(MemoryTotals& totals, SectorMask asked, SectorMask hit) {
  totals[Total::l2_atomic_sectors] += count_sectors(asked);
  totals[Total::l2_atomic_sector_hits] += count_sectors(hit);
}

/// Sectors between L2 and DRAM.
inline void count_dram(MemoryTotals& totals, SectorMask read, SectorMask written) {
  totals[Total::dram_read_sectors] += count_sectors(read);
  totals[Total::dram_write_sectors] += count_sectors(written);
}

}  // namespace warpstack::memory
