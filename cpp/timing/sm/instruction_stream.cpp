#include "timing/sm/instruction_stream.h"

#include <algorithm>

#include "trace/instructions/coalescing.h"

namespace warpstack::timing {

InstructionStream::RowKind::RowKind(const trace::StaticInstruction& instruction)
    : is_memory(instruction.is_memory()),
      uses_caches(instruction.uses_caches()),
      writes(instruction.writes_memory()),
      is_atomic(instruction.is_cached_atomic()) {}

InstructionStream::InstructionStream(const trace::KernelTrace& trace,
                                     std::span<const RowKind> kinds, trace::WarpPosition position,
                                     std::uint32_t first_row, std::uint64_t local_offset)
    : kinds_(kinds.data()),
      first_row_(first_row),
      trace_(&trace),
      position_(position),
      local_offset_(local_offset) {
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
    for (const std::uint32_t row : view.instruction) last.memory += kinds_[row].is_memory;
    view = trace_->blocks().read(position_.block, first, last, scratch_);
    for (std::size_t i = 0; i < view.memory_count.size(); ++i) {
      const std::uint32_t row = view.memory_static[i];
      if (!kinds_[row].uses_caches) continue;
      last.sectors += view.memory_count[i];
      if (kinds_[row].writes) last.stores += view.memory_count[i];
    }
  }
  window_ = trace_->blocks().read(position_.block, first, last, scratch_);
  window_end_ = last;
  instruction_ = window_.instruction.data();
  last_ = instruction_ + window_.instruction.size();
  mask_ = window_.active_mask.data();
  memory_ = sector_ = store_ = 0;
  return true;
}

memory::MemoryAccess InstructionStream::access() {
  memory::MemoryAccess result;
  result.row = row();
  result.sectors = window_.sector.subspan(sector_, memory_count_);
  if (local_offset_ > 0 && result.sectors.back() >= trace::local_region_sector) {
    moved_.assign(result.sectors.begin(), result.sectors.end());
    for (std::uint64_t& sector : moved_) sector += local_offset_;
    result.sectors = moved_;
  }
  if (!window_.l1_passes.empty()) result.kept_passes = window_.l1_passes[memory_];
  if (kinds_[row_].writes) result.store_bytes = window_.store_bytes.subspan(store_, memory_count_);
  if (kinds_[row_].is_atomic) result.atomics = window_.atomic_lanes.subspan(store_, memory_count_);
  return result;
}

}  // namespace warpstack::timing
