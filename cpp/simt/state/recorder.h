#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "simt/state/execution.h"
#include "trace/columns/trace_builder.h"

namespace warpstack::simt {

using trace::MovedBytes;

[[nodiscard]] constexpr bool is_matrix_access(Action action) {
  return action == Action::matrix_load || action == Action::matrix_store ||
         action == Action::fragment_load || action == Action::fragment_store;
}

/// Whether an action is an operation of async_operations.h or tensor_memory.h with accesses.
[[nodiscard]] constexpr bool is_async_access(Action action) {
  return action == Action::bulk_copy || action == Action::tensor_copy ||
         action == Action::warpgroup_multiply || action == Action::tensor_product ||
         action == Action::tensor_fill;
}

[[nodiscard]] constexpr bool is_access(Action action) {
  return is_async_access(action) || action == Action::load || action == Action::store ||
         action == Action::atomic || action == Action::async_copy || is_texel_access(action) ||
         is_matrix_access(action);
}

/// Finished blocks whose columns are not in the trace yet.
struct RecordedBlocks {
  struct Entry {
    std::uint64_t number = 0;  ///< of the block
    std::size_t end = 0;       ///< of its warps in `warps`
  };
  std::vector<Entry> blocks;
  std::vector<trace::WarpEntry> warps;
  trace::ColumnBuffers columns;
  std::vector<trace::RowCounts> counts;

  /// Forgets the blocks but keeps the memory.
  void clear();
};

/// Records a launch in its trace, if it makes one.
class Recorder {
 public:
  explicit Recorder(const Execution& execution);
  /// For blocks that run ahead of their turn; `trunk` is the recorder of the launch.
  Recorder(const Execution& execution, const Recorder& trunk);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Turns to the block at hand, which is recorded if it is in the launch's sample.
  void take_block() { take_block(execution_.block); }
  /// Turns to another block of its cluster, for what an instruction does there.
  void take_block(const Block& block) { log_ = block.is_recorded ? log_of_launch_ : nullptr; }

  /// Records all rows of a step without accesses of the memory stage.
  void record(Warp& warp, const Step& step, std::uint32_t mask) {
    if (log_ == nullptr) return;
    for (std::uint32_t i = 0; i < step.num_rows; ++i) {
      log_->append_plain(warp.columns, rows_[step.first_row + i], mask);
    }
  }

  /// Records rows of several steps without accesses.
  void record_rows(Warp& warp, std::uint32_t first, std::uint32_t count, std::uint32_t mask) {
    if (log_ == nullptr || count == 0) return;
    log_->append_plain(warp.columns, std::span(rows_).subspan(first, count), mask);
  }

  /// Records a row of a step, by default its first, with the addresses of an access.
  void record_access(Warp& warp, const Step& step, std::uint32_t mask, const LaneAddresses* lanes,
                     std::uint32_t row = 0) {
    if (log_ == nullptr || step.num_rows == 0) return;
    if (moves_addresses_ && lanes != nullptr) lanes = without_gaps(*lanes);
    log_->append_to(warp.columns, execution_.block.number * execution_.num_warps + warp.number,
                    rows_[step.first_row + row], mask, lanes);
  }

  /// Records a step at an mbarrier, which the opcode of its row then names; none: its row as it is.
  void record_phase(Warp& warp, const Step& step, std::uint32_t mask,
                    const trace::PhaseStep& phase) {
    if (log_ == nullptr || step.num_rows == 0) return;
    log_->append_plain(warp.columns, row_of(step, phase), mask);
  }

  /// Records a step at a barrier of the block, which the opcode of its row then names.
  void record_barrier(Warp& warp, const Step& step, std::uint32_t mask,
                      const trace::BarrierStep& barrier) {
    if (log_ == nullptr || step.num_rows == 0) return;
    log_->append_plain(warp.columns, log_->step_row(rows_[step.first_row], barrier), mask);
  }

  /// Records a row of a step that multiplies so, which the opcode of its row then names.
  void record_product(Warp& warp, const Step& step, std::uint32_t mask,
                      const trace::ProductStep& product, std::uint32_t row) {
    if (log_ == nullptr || step.num_rows == 0) return;
    log_->append_plain(warp.columns, log_->step_row(rows_[step.first_row + row], product), mask);
  }

  /// Records a read of a texture that touches the words at `addresses`.
  void record_texels(Warp& warp, const Step& step, std::uint32_t mask,
                     std::span<const std::uint64_t> addresses) {
    if (log_ == nullptr || step.num_rows == 0) return;
    if (moves_addresses_) addresses = without_gaps(addresses);
    log_->append_touched(warp.columns, rows_[step.first_row], mask, addresses);
  }

  /// Records a bulk copy from or to these bytes of global memory, and what it completes.
  void record_moved(Warp& warp, const Step& step, std::uint32_t mask,
                    std::span<const MovedBytes> moved, const trace::PhaseStep& phase) {
    if (log_ == nullptr || step.num_rows == 0) return;
    if (moves_addresses_) moved = without_gaps(moved);
    log_->append_moved(warp.columns, row_of(step, phase), mask, moved);
  }

  /// Records the first row of a step, an access of `count` wavefronts of shared memory.
  void record_wavefronts(Warp& warp, const Step& step, std::uint32_t mask, std::uint32_t count,
                         const trace::PhaseStep& phase = {}) {
    if (log_ == nullptr || step.num_rows == 0) return;
    log_->append_wavefronts(warp.columns, row_of(step, phase), mask, count);
  }

  /// Records an access without an active lane, which is issued all the same.
  void record_idle_access(Warp& warp, const Step& step);

  /// Stores the running block, which has ended, if it is recorded.
  void store_block();

  /// For a recorder of blocks ahead of their turn: begins, keeps a finished block, and returns its
  /// counts.
  void begin_ahead();
  void keep_block(RecordedBlocks& kept) const;
  void keep_counts(RecordedBlocks& kept) const;
  /// Stores what such a recorder has kept. It only reads its argument, so others may run.
  void store(const RecordedBlocks& kept);

  /// The trace, when the launch has ended.
  std::optional<KernelTrace> finish();

 private:
  /// The first row of a step that does something at an mbarrier.
  std::uint32_t row_of(const Step& step, const trace::PhaseStep& phase) {
    const std::uint32_t row = rows_[step.first_row];
    return phase.kind == trace::PhaseStep::Kind::none ? row : log_->step_row(row, phase);
  }

  // Addresses as if allocations lay back to back, unless Device::records_gaps. Results are valid
  // until the next call.
  const LaneAddresses* without_gaps(const LaneAddresses& lanes);
  std::span<const std::uint64_t> without_gaps(std::span<const std::uint64_t> addresses);
  std::span<const MovedBytes> without_gaps(std::span<const MovedBytes> moved);
  /// How far gaps have moved an address of device memory; 0 for other addresses.
  std::uint64_t moved_by(std::uint64_t address) {
    if (address - known_.begin >= known_.bytes || known_.changes != memory_.changes()) {
      find_move(address);
    }
    return known_.by;
  }
  void find_move(std::uint64_t address);

  const Execution& execution_;
  const DeviceMemory& memory_;
  const bool moves_addresses_;
  /// The last result of moved_by(), for `bytes` bytes from `begin` on.
  struct {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
    std::uint64_t by = 0;
    std::uint64_t changes = 0;
  } known_;
  LaneAddresses moved_lanes_;
  std::vector<std::uint64_t> moved_words_;
  std::vector<MovedBytes> moved_ranges_;
  std::optional<trace::TraceBuilder> builder_;
  std::optional<trace::TraceBranch> branch_;  ///< of the launch's builder
  trace::IssueLog* log_of_launch_ = nullptr;  ///< one of the two; null without a trace
  trace::IssueLog* log_ = nullptr;            ///< the same; null for a block that is not recorded
  std::vector<std::uint32_t> rows_;           ///< of the program, in the trace's table
  std::vector<trace::WarpEntry> warps_;       ///< of the block at hand
  std::vector<trace::ColumnView> columns_;
};

}  // namespace warpstack::simt
