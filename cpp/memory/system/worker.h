#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/cache/counters.h"
#include "memory/cache/totals.h"
#include "memory/order/line_grouper.h"
#include "memory/order/schedule.h"
#include "memory/order/timed_schedule.h"
#include "memory/system/memory_system.h"
#include "memory/system/slice_crowding.h"

namespace warpstack::memory {

class SmCaches;

/// Accesses within so many cycles of the timed order reach L2 in the order of SMs.
inline constexpr ReferenceCycle cycles_of_turn = 8;
inline constexpr std::size_t turns_of_window = TimedSchedule::window / cycles_of_turn;

/// What the SMs of a part did in a batch.
struct Batch {
  std::size_t most_turns = 0;  ///< the most turns of one SM
  std::size_t requests = 0;
  ReferenceCycle next_event = never;  ///< in the timed order
};

/// The working state and the counts of a thread; the sum over the threads is the profile.
struct alignas(128) Worker {
  Worker(std::size_t rows, std::uint32_t l1_line_bytes, std::size_t l2_slices)
      : per_row(rows),
        slice_turns(l2_slices),
        slice_dram_sectors(l2_slices),
        grouper(l1_line_bytes) {}

  MemoryTotals totals;
  std::vector<InstructionCounters> per_row;
  // See MemoryProfile:
  std::vector<double> slice_turns;
  std::vector<std::uint64_t> slice_dram_sectors;
  SliceCrowding crowding;
  std::vector<SmCaches*> asking;  ///< SMs with requests in the batch
  /// Requests [first, last) of an SM.
  struct Slice {
    SmCaches* sm;
    std::size_t first;
    std::size_t last;
  };
  /// In the timed order: the requests of each turn, SM by SM.
  std::array<std::vector<Slice>, turns_of_window> slices_of_turns;
  Batch batch;
  LineGrouper grouper;
};

inline void add(InstructionCounters& counters, const ObservedAccess& seen) {
  counters.l2_requests += seen.l2_requests;
  counters.l2_request_sectors += seen.l2_request_sectors;
  counters.dram_requests += seen.dram_requests;
  counters.dram_sectors += seen.dram_sectors;
}

}  // namespace warpstack::memory
