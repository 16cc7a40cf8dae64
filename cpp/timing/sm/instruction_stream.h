#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/order/warp_stream.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::timing {

/// The instructions of one warp in program order. A trace in a file is read in windows, so that a
/// resident warp costs some kilobytes whatever its length.
class InstructionStream {
 public:
  /// What it needs to know of a row of the instruction table.
  struct RowKind {
    explicit RowKind(const trace::StaticInstruction& instruction);

    bool is_memory;  ///< it has an entry in the memory columns
    bool uses_caches;
    bool writes;
    bool is_atomic;
  };

  InstructionStream() = default;
  /// `kinds` begin with the first row of the trace, which has the number `first_row`; its sectors
  /// of local memory lie `local_offset` behind where the trace has them.
  InstructionStream(const trace::KernelTrace& trace, std::span<const RowKind> kinds,
                    trace::WarpPosition position, std::uint32_t first_row = 0,
                    std::uint64_t local_offset = 0);
  // Spans point into the stream's own buffer: it moves, but does not copy.
  InstructionStream(InstructionStream&&) = default;
  InstructionStream& operator=(InstructionStream&&) = default;

  [[nodiscard]] bool done() const { return done_; }
  // The instruction at the cursor, while not done():
  [[nodiscard]] std::uint32_t row() const { return first_row_ + row_; }
  [[nodiscard]] std::uint32_t mask() const { return *mask_; }
  /// Touched sectors or shared-memory wavefronts of a memory instruction; 0: no active lane.
  [[nodiscard]] std::uint32_t memory_count() const { return memory_count_; }
  /// The access of an instruction that goes through the caches with at least one sector.
  [[nodiscard]] memory::MemoryAccess access();
  [[nodiscard]] trace::WarpPosition position() const { return position_; }
  static constexpr std::uint32_t no_row = ~std::uint32_t{0};
  /// The row after that at the cursor, where it is known.
  [[nodiscard]] std::uint32_t next_row() const {
    return last_ - instruction_ > 1 ? first_row_ + instruction_[1] : no_row;
  }
  /// Brings the mask at the cursor close, which stands apart from the rows.
  void prefetch() const { __builtin_prefetch(mask_); }
  void advance() {
    const RowKind kind = kinds_[row_];
    if (kind.is_memory) {
      ++memory_;
      if (kind.uses_caches) {
        sector_ += memory_count_;
        if (kind.writes) store_ += memory_count_;
      }
    }
    ++mask_;
    if (++instruction_ == last_ && !load_window()) {
      done_ = true;
      return;
    }
    read_cursor();
  }

 private:
  bool load_window();
  void read_cursor() {
    row_ = *instruction_;
    memory_count_ = kinds_[row_].is_memory ? window_.memory_count[memory_] : 0;
  }

  static constexpr std::uint64_t window_instructions = 64;

  const RowKind* kinds_ = nullptr;
  // Positions in the window, of the instruction at the cursor:
  const std::uint32_t* instruction_ = nullptr;
  const std::uint32_t* last_ = nullptr;  ///< one past the window
  const std::uint32_t* mask_ = nullptr;
  std::uint32_t row_ = 0;  ///< of the trace
  std::uint32_t first_row_ = 0;
  std::uint32_t memory_count_ = 0;
  std::size_t memory_ = 0;
  std::size_t sector_ = 0;
  std::size_t store_ = 0;
  bool done_ = true;
  trace::ColumnView window_;
  const trace::KernelTrace* trace_ = nullptr;
  trace::WarpPosition position_;
  trace::ColumnCounts window_end_;  ///< one past the window, within the block
  trace::ColumnCounts warp_end_;    ///< one past the warp
  std::vector<std::byte> scratch_;
  std::uint64_t local_offset_ = 0;
  std::vector<std::uint64_t> moved_;  ///< sectors of an access to local memory
};

}  // namespace warpstack::timing
