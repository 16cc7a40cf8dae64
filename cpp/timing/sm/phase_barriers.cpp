#include "timing/sm/phase_barriers.h"

#include <algorithm>

namespace warpstack::timing {

void PhaseBarriers::complete(std::uint32_t block, std::uint32_t barrier,
                             std::span<const std::uint32_t> loads, Cycle earliest) {
  if (loads.empty()) {
    make(blocks_[block], barrier, earliest);
  } else {
    blocks_[block].pending.push_back({barrier, {loads.begin(), loads.end()}, earliest});
  }
}

bool PhaseBarriers::load_is_done(std::uint32_t block, std::uint32_t load, Cycle done) {
  bool is_awaited = false;
  std::erase_if(blocks_[block].pending, [&](Pending& pending) {
    if (std::erase(pending.loads, load) == 0) return false;
    is_awaited = true;
    pending.at = std::max(pending.at, done);
    if (!pending.loads.empty()) return false;
    make(blocks_[block], pending.barrier, pending.at);
    return true;
  });
  return is_awaited;
}

ControlBarriers::Wait PhaseBarriers::wait(std::uint32_t block, std::uint32_t slot,
                                          std::uint32_t barrier, std::uint32_t count) const {
  const auto passed = std::ranges::find(warps_[slot], barrier, &Passed::barrier);
  const std::size_t needed = (passed == warps_[slot].end() ? 0 : passed->count) + count;
  if (needed == 0) return {};
  constexpr auto phases = static_cast<std::uint32_t>(StackDetail::phases);
  const Block& all = blocks_[block];
  const auto found = std::ranges::find(all.barriers, barrier, &Barrier::address);
  if (found != all.barriers.end() && found->made.size() >= needed) {
    return {found->made[needed - 1], phases};
  }
  const auto pending = std::ranges::find(all.pending, barrier, &Pending::barrier);
  // Another warp has yet to arrive.
  if (pending == all.pending.end()) return {never, phases};
  return {never, first_load_cause + pending->loads.front()};
}

void PhaseBarriers::pass(std::uint32_t slot, std::uint32_t barrier, std::uint32_t count) {
  const auto passed = std::ranges::find(warps_[slot], barrier, &Passed::barrier);
  if (passed != warps_[slot].end()) {
    passed->count += count;
  } else {
    warps_[slot].push_back({barrier, count});
  }
}

void PhaseBarriers::make(Block& block, std::uint32_t barrier, Cycle at) {
  auto found = std::ranges::find(block.barriers, barrier, &Barrier::address);
  if (found == block.barriers.end()) {
    found = block.barriers.insert(block.barriers.end(), Barrier{barrier, {}});
  }
  found->made.insert(std::ranges::upper_bound(found->made, at), at);
}

}  // namespace warpstack::timing
