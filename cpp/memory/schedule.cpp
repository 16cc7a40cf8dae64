#include "memory/schedule.h"

#include <algorithm>
#include <utility>

namespace warpstack {
namespace {

/// A window of a file-backed warp ends after so many memory instructions or sectors, so that a
/// resident warp costs a few kilobytes however divergent it is.
constexpr std::uint64_t window_instructions = 64;
constexpr std::uint64_t window_sectors = 256;

/// A warp's next access is due after a turn of all resident warps, whose data lie far apart: time
/// enough to bring it close, and too irregular for the hardware to foresee.
void prefetch(const void* data, std::size_t bytes) {
  const auto* begin = static_cast<const char*>(data);
  for (std::size_t offset = 0; offset < bytes; offset += 64) __builtin_prefetch(begin + offset);
}

}  // namespace

RowFlags::RowFlags(const std::vector<StaticInstruction>& instructions) {
  for (const StaticInstruction& instruction : instructions) {
    uses_caches.push_back(instruction.uses_caches());
    writes.push_back(instruction.writes_memory());
  }
}

WarpStream::WarpStream(const KernelTrace& trace, const RowFlags& flags, WarpPosition position)
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
  const ColumnCounts first = window_end_;
  if (first.memory == warp_end_.memory) return false;
  ColumnCounts last = warp_end_;
  if (trace_->blocks().spilled()) {
    // How many sectors a window has is known only from its counts.
    last = first;
    last.memory = std::min(first.memory + window_instructions, warp_end_.memory);
    const ColumnView counts = trace_->blocks().read(position_.block, first, last, scratch_);
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
    prefetch(window_.sector.data() + sector_, count * sizeof(std::uint64_t));
    return;
  }
}

SmSchedule::SmSchedule(const KernelTrace& trace, const RowFlags& flags,
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
      return &issued_->current();
    }
    ++slot_;
    warp_ = 0;
  }
}

}  // namespace warpstack
