#include "timing/sm/row_slots.h"

#include <algorithm>

#include "common/enum_names.h"

namespace warpstack::timing {

void RowSlots::wait_for_load(std::uint32_t load, std::uint32_t row, std::int64_t parts) {
  if (load >= waits_.size()) waits_.resize(load + 1);
  std::vector<Wait>& waits = waits_[load];
  const auto known = std::ranges::find(waits, row, &Wait::row);
  if (known != waits.end()) {
    known->parts += parts;
  } else {
    waits.push_back({row, parts});
  }
}

void RowSlots::finish_load(std::uint32_t load, std::uint32_t load_row,
                           const CpiStack<std::int64_t>& lost) {
  because_of_[load_row] += lost;
  std::vector<Wait>& waits = waits_[load];
  // What rounding leaves goes to the last, so that the parts of the stack keep their sums.
  CpiStack<std::int64_t> left = lost;
  for (std::size_t w = 0; w + 1 < waits.size(); ++w) {
    CpiStack<std::int64_t> share;
    add_in_proportion(share, waits[w].parts, lost);
    for (const StackComponent component : values_of<StackComponent>) {
      share[component] = std::min(share[component], left[component]);
      left[component] -= share[component];
    }
    at_[waits[w].row] += share;
  }
  at_[waits.back().row] += left;
  waits.clear();
}

RowSlots& RowSlots::operator+=(const RowSlots& other) {
  for (std::size_t row = 0; row < at_.size(); ++row) {
    at_[row] += other.at_[row];
    because_of_[row] += other.because_of_[row];
  }
  return *this;
}

}  // namespace warpstack::timing
