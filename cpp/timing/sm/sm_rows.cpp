// What is counted only where somebody asks: the warps of each scheduler, and which instruction an
// issue slot was lost at, which is what Sm::lose() counts for the SM by row of the instruction
// table.

#include "timing/sm/sm.h"

namespace warpstack::timing {

void Sm::count_scheduler_warps(std::vector<std::uint32_t>& counts) const {
  const std::size_t first = counts.size();
  counts.resize(first + schedulers_.size());
  for (const std::uint32_t slot : by_age_) ++counts[first + warps_[slot].scheduler];
}

void Sm::count_rows() { row_slots_.emplace(rows_.size()); }

/// As lose(), for the warps that wait for something else than data, whose parts settle() counts.
void Sm::lose_at_rows(std::int64_t slots, std::int64_t each, std::int64_t rest, Cycle cycle) {
  const bool accepts = lsu_.accepts(cycle);
  bool oldest = true;
  bool somebody = false;
  for (const std::uint32_t slot : by_age_) {
    const ResidentWarp& warp = warps_[slot];
    const bool for_data = warp.place == Place::at_data;
    const bool for_load_store_unit =
        warp.place == Place::at_load_store_unit || (warp.place == Place::before_access && !accepts);
    const bool for_unit =
        warp.place == Place::before_unit && units_[warp.scheduler].free[warp.unit] > cycle;
    if (!for_data && !for_load_store_unit && !for_unit) continue;
    somebody = true;
    const std::int64_t parts = each + (oldest ? rest : 0);
    oldest = false;
    if (for_load_store_unit) {
      row_slots_->add(warps_[slot].row, component_of(lsu_.cause_of_waiting()), parts);
    } else if (for_unit) {
      row_slots_->add(warps_[slot].row, StackComponent::dep, parts);
    }
  }
  if (!somebody) {
    row_slots_->add(row_slots_->nobody(), StackComponent::base, slots * parts_per_slot);
  }
}

}  // namespace warpstack::timing
