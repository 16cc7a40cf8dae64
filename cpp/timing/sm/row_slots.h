#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "common/cpi_stack.h"
#include "timing/base/timing_config.h"

namespace warpstack::timing {

/// The issue slots of an SM by row of the instruction table, in parts_per_slot. Each slot counts
/// twice, in two tables with the same sums: once *at* the instruction that used it or that a warp
/// could not issue yet, and once *for* the instruction whose data the warp waited for, which is the
/// same one where it waited for anything else than a load.
class RowSlots {
 public:
  /// `rows`: of the instruction table. One more entry takes the slots that nobody waited for.
  explicit RowSlots(std::size_t rows) : at_(rows + 1), because_of_(rows + 1) {}

  using Stacks = std::vector<CpiStack<std::int64_t>>;
  [[nodiscard]] const Stacks& at() const { return at_; }
  [[nodiscard]] const Stacks& because_of() const { return because_of_; }
  [[nodiscard]] std::uint32_t nobody() const { return static_cast<std::uint32_t>(at_.size() - 1); }

  void add(std::uint32_t row, StackComponent component, std::int64_t parts) {
    at_[row][component] += parts;
    because_of_[row][component] += parts;
  }
  /// Slots lost by a warp that waited at `row` for a load in flight.
  void wait_for_load(std::uint32_t load, std::uint32_t row, std::int64_t parts);
  /// The load of `load_row` is done; `lost` is all that was lost to it, by the parts of its
  /// latency.
  void finish_load(std::uint32_t load, std::uint32_t load_row, const CpiStack<std::int64_t>& lost);

  RowSlots& operator+=(const RowSlots& other);

 private:
  struct Wait {
    std::uint32_t row = 0;
    std::int64_t parts = 0;
  };

  Stacks at_;
  Stacks because_of_;
  /// By number of the load: a warp may pass an instruction that waits for all but a few loads, and
  /// wait for one of these at a later one.
  std::vector<std::vector<Wait>> waits_;
};

}  // namespace warpstack::timing
