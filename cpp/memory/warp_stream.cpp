#include "memory/warp_stream.h"

#include <algorithm>

namespace warpstack::memory {
namespace {

/// A window of a file-backed warp ends after these numbers of memory instructions or sectors, so
/// that a resident warp costs a few kilobytes however divergent it is.
constexpr std::uint64_t window_instructions = 64;
constexpr std::uint64_t window_sectors = 256;

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

}  // namespace warpstack::memory
