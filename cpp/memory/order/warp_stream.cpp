#include "memory/order/warp_stream.h"

#include <algorithm>

namespace warpstack::memory {
namespace {

/// The window of a warp in a file ends after so many memory instructions or sectors, so that a
/// resident warp costs a few kilobytes however divergent it is.
constexpr std::uint64_t window_instructions = 64;
constexpr std::uint64_t window_sectors = 128;

}  // namespace

RowFlags::RowFlags(const std::vector<trace::StaticInstruction>& instructions) {
  for (const trace::StaticInstruction& instruction : instructions) {
    uses_caches.push_back(instruction.uses_caches());
    writes.push_back(instruction.writes_memory());
    is_atomic.push_back(instruction.is_cached_atomic());
  }
  // How many rows read or write a register.
  std::vector<std::uint32_t> users;
  const auto count = [&](std::uint16_t reg) {
    if (reg >= users.size()) users.resize(reg + std::size_t{1});
    ++users[reg];
  };
  for (const trace::StaticInstruction& instruction : instructions) {
    std::ranges::for_each(instruction.sources, count);
    std::ranges::for_each(instruction.destinations, count);
  }
  for (const trace::StaticInstruction& instruction : instructions) {
    is_read.push_back(!instruction.is_cached_atomic() || instruction.destinations.empty() ||
                      std::ranges::any_of(instruction.destinations,
                                          [&](std::uint16_t reg) { return users[reg] > 1; }));
  }
}

WarpStream::WarpStream(const trace::KernelTrace& trace, const RowFlags& flags,
                       trace::WarpPosition position, bool with_shared)
    : flags_(&flags), position_(position), with_shared_(with_shared), trace_(&trace) {
  window_end_ = trace.blocks().begin(position.block, position.warp);
  warp_end_ = window_end_;
  warp_end_ += trace.blocks().warps(position.block)[position.warp].counts();
  // Instructions other than memory instructions are never read.
  window_end_.instructions = warp_end_.instructions = 0;
  advance();
}

bool WarpStream::load_window() {
  const trace::ColumnCounts first = window_end_;
  if (first.memory == warp_end_.memory) return false;
  trace::ColumnCounts last = warp_end_;
  if (trace_->blocks().copies_sectors(position_.block)) {
    // The number of a window's sectors is only known from its counts.
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
  const trace::ColumnView window = trace_->blocks().read(position_.block, first, last, scratch_);
  rows_ = window.memory_static;
  counts_ = window.memory_count.data();
  sectors_ = window.sector.data();
  stores_ = window.store_bytes.data();
  lanes_ = window.atomic_lanes.empty() ? nullptr : window.atomic_lanes.data();
  passes_ = window.l1_passes.empty() ? nullptr : window.l1_passes.data();
  window_end_ = last;
  return true;
}

void WarpStream::advance() {
  while (true) {
    while (rows_.empty()) {
      if (!load_window()) {
        done_ = true;
        scratch_ = std::vector<std::byte>();  // a done warp may stay for long
        return;
      }
    }
    const std::uint32_t row = rows_.front();
    const std::size_t count = *counts_;
    rows_ = rows_.subspan(1);
    ++counts_;
    current_.kept_passes = passes_ != nullptr ? *passes_++ : 0;
    if (count == 0 || !flags_->uses_caches[row]) {
      if (count == 0 || !with_shared_) continue;
      current_ = {row, {}, {}, {}, static_cast<std::uint32_t>(count), 0};
      return;
    }
    current_.row = row;
    current_.wavefronts = 0;
    current_.sectors = {sectors_, count};
    sectors_ += count;
    current_.store_bytes = {};
    current_.atomics = {};
    if (flags_->writes[row]) {
      current_.store_bytes = {stores_, count};
      stores_ += count;
      if (lanes_ != nullptr) {
        if (flags_->is_atomic[row]) current_.atomics = {lanes_, count};
        lanes_ += count;
      }
    }
    return;
  }
}

}  // namespace warpstack::memory
