#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/order/warp_stream.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::timing {

/// The instructions of one warp in program order. A trace in a file is read in windows, so that a
/// resident warp costs some kilobytes whatever its length.
class InstructionStream {
 public:
  InstructionStream() = default;
  /// `is_memory`: by row, whether the instruction has an entry in the memory columns.
  InstructionStream(const trace::KernelTrace& trace, const memory::RowFlags& flags,
                    const std::vector<std::uint8_t>& is_memory, trace::WarpPosition position);
  // Spans point into the stream's own buffer: it moves, but does not copy.
  InstructionStream(InstructionStream&&) = default;
  InstructionStream& operator=(InstructionStream&&) = default;

  [[nodiscard]] bool done() const { return done_; }
  // The instruction at the cursor, while not done():
  [[nodiscard]] std::uint32_t row() const { return row_; }
  [[nodiscard]] std::uint32_t mask() const { return mask_; }
  /// Touched sectors or shared-memory wavefronts of a memory instruction; 0: no active lane.
  [[nodiscard]] std::uint32_t memory_count() const { return memory_count_; }
  /// The access of an instruction that goes through the caches with at least one sector.
  [[nodiscard]] memory::MemoryAccess access() const;
  [[nodiscard]] trace::WarpPosition position() const { return position_; }
  void advance();

 private:
  bool load_window();
  void read_cursor();

  static constexpr std::uint64_t window_instructions = 64;

  const trace::KernelTrace* trace_ = nullptr;
  const memory::RowFlags* flags_ = nullptr;
  const std::vector<std::uint8_t>* is_memory_ = nullptr;
  trace::WarpPosition position_;
  trace::ColumnCounts window_end_;  ///< one past the window, within the block
  trace::ColumnCounts warp_end_;    ///< one past the warp
  trace::ColumnView window_;
  std::size_t instruction_ = 0;  ///< positions in the window
  std::size_t memory_ = 0;
  std::size_t sector_ = 0;
  std::size_t store_ = 0;
  std::uint32_t row_ = 0;
  std::uint32_t mask_ = 0;
  std::uint32_t memory_count_ = 0;
  bool done_ = true;
  std::vector<std::byte> scratch_;
};

}  // namespace warpstack::timing
