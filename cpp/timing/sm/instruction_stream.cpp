#include "timing/sm/instruction_stream.h"

#include <algorithm>

namespace warpstack::timing {

InstructionStream::InstructionStream(const trace::KernelTrace& trace, const memory::RowFlags& flags,
                                     const std::vector<std::uint8_t>& is_memory,
                                     trace::WarpPosition position)
    : trace_(&trace), flags_(&flags), is_memory_(&is_memory), position_(position) {
  window_end_ = trace.blocks().begin(position.block, position.warp);
  warp_end_ = window_end_;
  warp_end_ += trace.blocks().warps(position.block)[position.warp].counts();
  done_ = !load_window();
  if (!done_) read_cursor();
}

bool InstructionStream::load_window() {
  const trace::ColumnCounts first = window_end_;
  if (first.instructions == warp_end_.instructions) return false;
  trace::ColumnCounts last = warp_end_;
  if (trace_->blocks().copies_sectors(position_.block)) {
    // How long the other columns of a window are is known only from its instructions.
    last = first;
    last.instructions = std::min(first.instructions + window_instructions, warp_end_.instructions);
    trace::ColumnView view = trace_->blocks().read(position_.block, first, last, scratch_);
    for (const std::uint32_t row : view.instruction) last.memory += (*is_memory_)[row];
    view = trace_->blocks().read(position_.block, first, last, scratch_);
    for (std::size_t i = 0; i < view.memory_count.size(); ++i) {
      const std::uint32_t row = view.memory_static[i];
      if (!flags_->uses_caches[row]) continue;
      last.sectors += view.memory_count[i];
      if (flags_->writes[row]) last.stores += view.memory_count[i];
    }
  }
  window_ = trace_->blocks().read(position_.block, first, last, scratch_);
  window_end_ = last;
  instruction_ = memory_ = sector_ = store_ = 0;
  return true;
}

void InstructionStream::read_cursor() {
  row_ = window_.instruction[instruction_];
  mask_ = window_.active_mask[instruction_];
  memory_count_ = (*is_memory_)[row_] ? window_.memory_count[memory_] : 0;
}

memory::MemoryAccess InstructionStream::access() const {
  memory::MemoryAccess result;
  result.row = row_;
  result.sectors = window_.sector.subspan(sector_, memory_count_);
  if (!window_.l1_passes.empty()) result.kept_passes = window_.l1_passes[memory_];
  if (flags_->writes[row_]) result.store_bytes = window_.store_bytes.subspan(store_, memory_count_);
  if (flags_->is_atomic[row_]) result.atomics = window_.atomic_lanes.subspan(store_, memory_count_);
  return result;
}

void InstructionStream::advance() {
  if ((*is_memory_)[row_]) {
    ++memory_;
    if (flags_->uses_caches[row_]) {
      sector_ += memory_count_;
      if (flags_->writes[row_]) store_ += memory_count_;
    }
  }
  if (++instruction_ == window_.instruction.size() && !load_window()) {
    done_ = true;
    return;
  }
  read_cursor();
}

}  // namespace warpstack::timing
