#include "timing/sm/bulk_groups.h"

#include <algorithm>

#include "timing/memory/load_store_unit.h"

namespace warpstack::timing {

void BulkGroups::add(std::uint32_t slot, std::uint32_t load, Cycle now) {
  WarpStores& warp = warps_[slot];
  std::erase_if(warp.stores,
                [now](const Store& one) { return one.read <= now && one.written <= now; });
  // Where no wait is for writing, nobody says when that is over.
  const Cycle written = load == LoadStoreUnit::no_load ? -1 : never;
  warp.stores.push_back({.load = load, .group = warp.groups, .written = written});
}

void BulkGroups::is_read(std::uint32_t slot, Cycle done) {
  const auto store = std::ranges::find(warps_[slot].stores, never, &Store::read);
  if (store != warps_[slot].stores.end()) store->read = done;
}

void BulkGroups::is_written(std::uint32_t slot, std::uint32_t load, Cycle done) {
  for (Store& store : warps_[slot].stores) {
    if (store.load == load && store.written == never) store.written = done;
  }
}

ControlBarriers::Wait BulkGroups::wait(std::uint32_t slot, std::uint32_t most,
                                       bool for_reading) const {
  const WarpStores& warp = warps_[slot];
  ControlBarriers::Wait result{.cause = static_cast<std::uint32_t>(StackDetail::phases)};
  for (const Store& store : warp.stores) {
    if (store.group + std::uint64_t{most} >= warp.groups) break;
    const Cycle until = for_reading ? store.read : store.written;
    if (until <= result.until) continue;
    result.until = until;
    if (until == never) {
      result.cause = for_reading ? load_store_unit_cause : first_load_cause + store.load;
      break;
    }
  }
  return result;
}

}  // namespace warpstack::timing
