#include "memory/order/schedule.h"

#include <algorithm>
#include <utility>

namespace warpstack::memory {
namespace {

/// Warps whose accesses are prefetched before their turn: their data lie too irregularly for the
/// hardware's prefetcher.
constexpr std::size_t warps_ahead = 4;

}  // namespace

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
      warps_.push_back(std::make_unique<ScheduledWarp>(std::move(stream), next_age_++, slot));
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
    const auto oldest = [this] { return std::ranges::find(warps_, false, &ScheduledWarp::waits); };
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
  const auto warp = std::ranges::lower_bound(warps_, miss.age, {}, &ScheduledWarp::age);
  if (warp != warps_.end() && (*warp)->age == miss.age) (*warp)->waits = false;
}

void GreedySchedule::remove_issued() {
  const std::uint32_t slot = issued().slot;
  warps_.erase(warps_.begin() + static_cast<std::ptrdiff_t>(issued_));
  issued_ = nobody;
  if (--left_[slot] == 0) fill(slot);
}

}  // namespace warpstack::memory
