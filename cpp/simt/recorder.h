#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "simt/execution.h"
#include "trace/trace_builder.h"

namespace warpstack::simt {

using trace::MovedBytes;

[[nodiscard]] constexpr bool is_matrix_access(Action action) {
  return action == Action::matrix_load || action == Action::matrix_store ||
         action == Action::fragment_load || action == Action::fragment_store;
}

[[nodiscard]] constexpr bool is_texel_access(Action action) {
  return action == Action::texture || action == Action::surface_load ||
         action == Action::surface_store;
}

/// Operations of async_operations.h with accesses.
[[nodiscard]] constexpr bool is_async_access(Action action) {
  return action == Action::bulk_copy || action == Action::tensor_copy ||
         action == Action::warpgroup_multiply;
}

[[nodiscard]] constexpr bool is_access(Action action) {
  return is_async_access(action) || action == Action::load || action == Action::store ||
         action == Action::atomic || action == Action::async_copy || is_texel_access(action) ||
         is_matrix_access(action);
}

/// Records what a launch does in its trace, if it makes one.
class Recorder {
 public:
  explicit Recorder(const Execution& execution);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// A step without memory accesses of the memory stage: all of its rows.
  void record(Warp& warp, const Step& step, std::uint32_t mask) {
    if (!builder_) return;
    for (std::uint32_t i = 0; i < step.num_rows; ++i) {
      builder_->append_plain(warp.columns, rows_[step.first_row + i], mask);
    }
  }

  /// Rows of several steps without accesses.
  void record_rows(Warp& warp, std::uint32_t first, std::uint32_t count, std::uint32_t mask) {
    if (!builder_ || count == 0) return;
    builder_->append_plain(warp.columns, std::span(rows_).subspan(first, count), mask);
  }

  /// One of the rows of a step, its first as a rule, with the addresses of an access.
  void record_access(Warp& warp, const Step& step, std::uint32_t mask, const LaneAddresses* lanes,
                     std::uint32_t row = 0) {
    if (!builder_ || step.num_rows == 0) return;
    builder_->append_to(warp.columns, execution_.block.number * execution_.num_warps + warp.number,
                        rows_[step.first_row + row], mask, lanes);
  }

  /// A read of a texture that touches the words at `addresses`.
  void record_texels(Warp& warp, const Step& step, std::uint32_t mask,
                     std::span<const std::uint64_t> addresses) {
    if (!builder_ || step.num_rows == 0) return;
    builder_->append_touched(warp.columns, rows_[step.first_row], mask, addresses);
  }

  /// A bulk copy from or to these bytes of global memory.
  void record_moved(Warp& warp, const Step& step, std::uint32_t mask,
                    std::span<const MovedBytes> moved) {
    if (!builder_ || step.num_rows == 0) return;
    builder_->append_moved(warp.columns, rows_[step.first_row], mask, moved);
  }

  /// An access that takes so many wavefronts of shared memory: the first row of a step.
  void record_wavefronts(Warp& warp, const Step& step, std::uint32_t mask, std::uint32_t count) {
    if (!builder_ || step.num_rows == 0) return;
    builder_->append_wavefronts(warp.columns, rows_[step.first_row], mask, count);
  }

  /// An access without an active lane is issued all the same.
  void record_idle_access(Warp& warp, const Step& step);

  /// The block that runs has ended.
  void store_block();
  /// The trace, when the launch has ended.
  std::optional<KernelTrace> finish();

 private:
  const Execution& execution_;
  std::optional<trace::TraceBuilder> builder_;
  std::vector<std::uint32_t> rows_;  ///< of the program, in the trace's table
};

}  // namespace warpstack::simt
