#include "memory/schedule.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace warpstack::memory {
namespace {

/// A window of a file-backed warp ends after these numbers of memory instructions or sectors, so
/// that a resident warp costs a few kilobytes however divergent it is.
constexpr std::uint64_t window_instructions = 64;
constexpr std::uint64_t window_sectors = 256;

/// Resident warps whose accesses are brought close before their turn: their data lie far apart, too
/// irregular for the hardware to foresee.
constexpr std::size_t warps_ahead = 4;

}  // namespace

RowFlags::RowFlags(const std::vector<trace::StaticInstruction>& instructions) {
  for (const trace::StaticInstruction& instruction : instructions) {
    uses_caches.push_back(instruction.uses_caches());
    writes.push_back(instruction.writes_memory());
  }
}

WarpStream::WarpStream(const trace::KernelTrace& trace, const RowFlags& flags,
                       trace::WarpPosition position)
    : trace_(&trace), flags_(&flags), position_(position) {
  window_end_ = trace.blocks().begin(position.block, position.warp);
  warp_end_ = window_end_;
  warp_end_ += trace.blocks().warps(position.block)[position.warp].counts();
  // Instructions other than memory instructions are never read.
  window_end_.instructions = warp_end_.instructions = 0;
  memory_ = static_cast<std::size_t>(-1);
  advance();
}

bool WarpStream::load_window() {
  const trace::ColumnCounts first = window_end_;
  if (first.memory == warp_end_.memory) return false;
  trace::ColumnCounts last = warp_end_;
  if (trace_->blocks().spilled()) {
    // How many sectors a window has is known only from its counts.
    last = first;
    last.memory = std::min(first.memory + window_instructions, warp_end_.memory);
    const trace::ColumnView counts = trace_->blocks().read(position_.block, first, last, scratch_);
    last = first;
    for (std::size_t i = 0; i < counts.memory_count.size(); ++i) {
      if (last.sectors - first.sectors > window_sectors) break;
      ++last.memory;
      const std::uint32_t row = counts.memory_static[i];
      if (!flags_->uses_caches[row]) continue;
      last.sectors += counts.memory_count[i];
      if (flags_->writes[row]) last.stores += counts.memory_count[i];
    }
  }
  window_ = trace_->blocks().read(position_.block, first, last, scratch_);
  window_end_ = last;
  memory_ = sector_ = store_ = 0;
  return true;
}

void WarpStream::advance() {
  while (true) {
    ++memory_;
    while (memory_ >= window_.memory_static.size()) {
      if (!load_window()) {
        done_ = true;
        return;
      }
    }
    const std::uint32_t row = window_.memory_static[memory_];
    const std::size_t count = window_.memory_count[memory_];
    if (count == 0 || !flags_->uses_caches[row]) continue;
    current_.row = row;
    current_.sectors = window_.sector.subspan(sector_, count);
    sector_ += count;
    if (flags_->writes[row]) {
      current_.store_bytes = window_.store_bytes.subspan(store_, count);
      store_ += count;
    } else {
      current_.store_bytes = {};
    }
    return;
  }
}

SmSchedule::SmSchedule(const trace::KernelTrace& trace, const RowFlags& flags,
                       std::vector<std::uint32_t> blocks, std::uint32_t blocks_per_sm)
    : trace_(&trace),
      flags_(&flags),
      blocks_(std::move(blocks)),
      slots_(std::min<std::size_t>(blocks_per_sm, blocks_.size())) {
  for (Slot& slot : slots_) fill(slot);
}

void SmSchedule::fill(Slot& slot) {
  while (slot.empty() && next_block_ < blocks_.size()) {
    const std::uint32_t block = blocks_[next_block_++];
    const std::size_t num_warps = trace_->blocks().warps(block).size();
    for (std::uint32_t warp = 0; warp < num_warps; ++warp) {
      WarpStream stream(*trace_, *flags_, {block, warp});
      if (!stream.done()) slot.push_back(std::move(stream));
    }
  }
}

void SmSchedule::end_round() {
  for (Slot& slot : slots_) {
    std::erase_if(slot, [](const WarpStream& warp) { return warp.done(); });
    fill(slot);
  }
  std::erase_if(slots_, [](const Slot& slot) { return slot.empty(); });
}

void SmSchedule::prefetch_ahead() const {
  const Slot* slot = &slots_[slot_];
  std::size_t warp = warp_ + warps_ahead;
  if (warp >= slot->size()) {
    warp -= slot->size();
    slot = &slots_[(slot_ + 1) % slots_.size()];
    if (warp >= slot->size()) return;
  }
  (*slot)[warp].prefetch();
}

const MemoryAccess* SmSchedule::next() {
  if (issued_ != nullptr) {
    issued_->advance();
    ++warp_;
    issued_ = nullptr;
  }
  while (true) {
    if (slot_ == slots_.size()) {
      end_round();
      slot_ = warp_ = 0;
      if (slots_.empty()) return nullptr;
    }
    // Warps that have finished stay in their slot until the round ends.
    Slot& slot = slots_[slot_];
    while (warp_ < slot.size() && slot[warp_].done()) ++warp_;
    if (warp_ < slot.size()) {
      issued_ = &slot[warp_];
      prefetch_ahead();
      return &issued_->current();
    }
    ++slot_;
    warp_ = 0;
  }
}

GreedySchedule::GreedySchedule(const trace::KernelTrace& trace, const RowFlags& flags,
                               std::vector<std::uint32_t> blocks, std::uint32_t blocks_per_sm,
                               std::uint32_t mshrs)
    : trace_(&trace),
      flags_(&flags),
      blocks_(std::move(blocks)),
      left_(std::min<std::size_t>(blocks_per_sm, blocks_.size())),
      mshrs_(mshrs) {
  for (std::uint32_t slot = 0; slot < left_.size(); ++slot) fill(slot);
}

void GreedySchedule::fill(std::uint32_t slot) {
  while (left_[slot] == 0 && next_block_ < blocks_.size()) {
    const std::uint32_t block = blocks_[next_block_++];
    const std::size_t num_warps = trace_->blocks().warps(block).size();
    for (std::uint32_t warp = 0; warp < num_warps; ++warp) {
      WarpStream stream(*trace_, *flags_, {block, warp});
      if (stream.done()) continue;
      warps_.push_back(std::make_unique<Warp>(std::move(stream), next_age_++, slot));
      ++left_[slot];
    }
  }
}

const MemoryAccess* GreedySchedule::next() {
  if (issued_ != nobody) {
    issued().stream.advance();
    if (issued().stream.done()) remove_issued();
  }
  if (warps_.empty()) return nullptr;
  if (issued_ == nobody || issued().waits) {
    const auto oldest = [this] { return std::ranges::find(warps_, false, &Warp::waits); };
    auto ready = oldest();
    for (; ready == warps_.end(); ready = oldest()) return_first_miss();
    issued_ = static_cast<std::size_t>(ready - warps_.begin());
  }
  return &issued().stream.current();
}

void GreedySchedule::missed(std::uint32_t mshrs) {
  issued().waits = true;
  misses_.push_back({issued().age, mshrs});
  taken_mshrs_ += mshrs;
  while (taken_mshrs_ > mshrs_) return_first_miss();
}

void GreedySchedule::return_first_miss() {
  const Miss miss = misses_.front();
  misses_.pop_front();
  taken_mshrs_ -= miss.mshrs;
  // The access may have been the warp's last.
  const auto warp = std::ranges::lower_bound(warps_, miss.age, {}, &Warp::age);
  if (warp != warps_.end() && (*warp)->age == miss.age) (*warp)->waits = false;
}

void GreedySchedule::remove_issued() {
  const std::uint32_t slot = issued().slot;
  warps_.erase(warps_.begin() + static_cast<std::ptrdiff_t>(issued_));
  issued_ = nobody;
  if (--left_[slot] == 0) fill(slot);
}

namespace {

using BlocksOfSms = std::vector<std::vector<std::uint32_t>>;

/// A hash that mixes every bit (Steele, Lea and Flood, OOPSLA 2014).
std::uint64_t split_mix(std::uint64_t n) {
  n += 0x9e3779b97f4a7c15;
  n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9;
  n = (n ^ n >> 27) * 0x94d049bb133111eb;
  return n ^ n >> 31;
}

/// Plays the launch with turns for time, as SmSchedule plays each SM: which SM has a free slot
/// first depends on how many accesses each warp has.
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

  /// Runs the SM until the first of its blocks has no access left; returns the turns that takes.
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
