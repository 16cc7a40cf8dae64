#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "timing/base/timing_config.h"
#include "timing/sm/control_barriers.h"

namespace warpstack::timing {

/// The groups of bulk stores of each warp (trace::CopyGroupStep::Of::bulk_stores): when the
/// load-store unit has read what they store, and when L2 or DRAM has it.
class BulkGroups {
 public:
  explicit BulkGroups(std::size_t slots) : warps_(slots) {}

  /// A new warp takes the slot.
  void clear(std::uint32_t slot) { warps_[slot] = {}; }

  /// A store issues at `now`; `load` is what the load-store unit gave for it, if anything.
  void add(std::uint32_t slot, std::uint32_t load, Cycle now);
  /// The stores since the last group are one.
  void commit(std::uint32_t slot) { ++warps_[slot].groups; }
  /// The warp's oldest store that was not read has been, at `done`.
  void is_read(std::uint32_t slot, Cycle done);
  /// A store is where it goes to.
  void is_written(std::uint32_t slot, std::uint32_t load, Cycle done);

  /// When all groups but the last `most` have been read, or written, as far as is known, and what
  /// a warp waits for until then.
  [[nodiscard]] ControlBarriers::Wait wait(std::uint32_t slot, std::uint32_t most,
                                           bool for_reading) const;

 private:
  struct Store {
    std::uint32_t load = 0;
    std::uint32_t group = 0;
    Cycle read = never;
    Cycle written = never;
  };
  struct WarpStores {
    std::vector<Store> stores;  ///< in the order of issue
    std::uint32_t groups = 0;
  };
  std::vector<WarpStores> warps_;
};

}  // namespace warpstack::timing
