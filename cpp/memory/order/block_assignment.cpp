#include "memory/order/block_assignment.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <utility>

namespace warpstack::memory {
namespace {

using BlocksOfSms = std::vector<std::vector<std::uint32_t>>;

/// A hash that mixes every bit (Steele, Lea and Flood, OOPSLA 2014).
std::uint64_t split_mix(std::uint64_t n) {
  n += 0x9e3779b97f4a7c15;
  n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9;
  n = (n ^ n >> 27) * 0x94d049bb133111eb;
  return n ^ n >> 31;
}

/// Plays the launch in turns, as SmSchedule does for an SM: which SM first has a free slot depends
/// on how many accesses each warp has.
class BreadthFirst {
 public:
  BreadthFirst(const trace::KernelTrace& trace, const RowFlags& flags, std::uint32_t num_sms,
               std::uint32_t blocks_per_sm)
      : trace_(trace), flags_(flags), blocks_(num_sms), slots_(num_sms) {
    for (std::uint32_t slot = 0; slot < blocks_per_sm; ++slot) {
      for (std::uint32_t sm = 0; sm < num_sms; ++sm) take_block(sm);
    }
  }

  BlocksOfSms assign() {
    using Event = std::pair<std::uint64_t, std::uint32_t>;  // turn, SM
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
    const auto play = [&](std::uint64_t turn, std::uint32_t sm) {
      if (!slots_[sm].empty()) events.emplace(turn + play_until_free(sm), sm);
    };
    for (std::uint32_t sm = 0; sm < slots_.size(); ++sm) play(0, sm);
    while (!events.empty()) {
      const auto [turn, sm] = events.top();
      events.pop();
      const std::size_t resident = slots_[sm].size();
      std::erase_if(slots_[sm], [](const Slot& slot) { return slot.empty(); });
      for (std::size_t free = resident - slots_[sm].size(); free > 0; --free) take_block(sm);
      play(turn, sm);
    }
    return std::move(blocks_);
  }

 private:
  using Slot = std::vector<std::uint64_t>;  ///< accesses that each unfinished warp has left

  /// Gives the SM the next block that has an access.
  void take_block(std::uint32_t sm) {
    while (next_ < trace_.blocks().size()) {
      const auto block = static_cast<std::uint32_t>(next_++);
      blocks_[sm].push_back(block);
      Slot slot = accesses_of(block);
      if (slot.empty()) continue;
      slots_[sm].push_back(std::move(slot));
      return;
    }
  }

  Slot accesses_of(std::uint32_t block) {
    const trace::BlockStorage& storage = trace_.blocks();
    const trace::ColumnView view =
        storage.read(block, {}, {0, storage.counts(block).memory, 0, 0}, scratch_);
    Slot slot;
    std::size_t next = 0;
    for (const trace::WarpEntry& warp : storage.warps(block)) {
      std::uint64_t accesses = 0;
      for (const std::size_t end = next + warp.memory; next < end; ++next) {
        accesses += view.memory_count[next] > 0 && flags_.uses_caches[view.memory_static[next]];
      }
      if (accesses > 0) slot.push_back(accesses);
    }
    return slot;
  }

  /// Runs the SM until the first of its blocks has no access left. Returns the number of turns.
  std::uint64_t play_until_free(std::uint32_t sm) {
    std::uint64_t rounds = ~std::uint64_t{0};
    for (const Slot& slot : slots_[sm]) rounds = std::min(rounds, std::ranges::max(slot));
    std::uint64_t turns = 0;
    for (Slot& slot : slots_[sm]) {
      for (std::uint64_t& left : slot) {
        const std::uint64_t issued = std::min(left, rounds);
        left -= issued;
        turns += issued;
      }
      std::erase(slot, std::uint64_t{0});
    }
    return turns;
  }

  const trace::KernelTrace& trace_;
  const RowFlags& flags_;
  BlocksOfSms blocks_;
  std::vector<std::vector<Slot>> slots_;  ///< by SM
  std::size_t next_ = 0;
  std::vector<std::byte> scratch_;
};

}  // namespace

BlocksOfSms assign_blocks(const trace::KernelTrace& trace, const RowFlags& flags,
                          std::uint32_t num_sms, std::uint32_t blocks_per_sm,
                          const BlockOrder& order) {
  BlocksOfSms blocks(num_sms);
  if (order.policy == BlockPolicy::breadth_first) {
    blocks = BreadthFirst(trace, flags, num_sms, blocks_per_sm).assign();
  } else {
    for (std::uint32_t b = 0; b < trace.blocks().size(); ++b) {
      const std::uint64_t number = trace.blocks().linear_index(b);
      const std::uint64_t draw =
          order.policy == BlockPolicy::random ? split_mix(order.seed ^ split_mix(number)) : number;
      blocks[draw % num_sms].push_back(b);
    }
  }
  if (order.first_occupancy_only) {
    for (auto& of_sm : blocks) of_sm.resize(std::min<std::size_t>(of_sm.size(), blocks_per_sm));
  }
  return blocks;
}

}  // namespace warpstack::memory
