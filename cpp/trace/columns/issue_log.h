#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "trace/columns/kernel_trace.h"
#include "trace/columns/moved_bytes.h"
#include "trace/instructions/effects.h"
#include "trace/instructions/product_step.h"

namespace warpstack::trace {

/// A step at an mbarrier or at a barrier of the block, or what a product multiplies.
using NamedStep = std::variant<PhaseStep, BarrierStep, ProductStep>;

/// Turns issued instructions into columns and counts them by row. Coalescing and the resolution of
/// generic addresses are only done here. The columns are the caller's, so that warps may
/// interleave.
class IssueLog {
 public:
  virtual ~IssueLog() = default;
  IssueLog(const IssueLog&) = delete;
  IssueLog& operator=(const IssueLog&) = delete;

  [[nodiscard]] const KernelHeader& header() const { return header_; }
  [[nodiscard]] std::size_t num_instructions() const { return instructions_.size(); }
  [[nodiscard]] const StaticInstruction& instruction(std::uint32_t row) const {
    return instructions_[row];
  }
  [[nodiscard]] const Effects& effects(std::uint32_t row) const { return effects_[row]; }
  [[nodiscard]] const std::vector<RowCounts>& row_counts() const { return row_counts_; }

  /// Appends an issued instruction. `lanes` holds the addresses of a memory instruction and is null
  /// for others; without an active lane there is no access. `warp_id` numbers the warp in the
  /// launch; it places local memory.
  void append_to(ColumnBuffers& columns, std::uint64_t warp_id, std::uint32_t row,
                 std::uint32_t active_mask, const LaneAddresses* lanes);

  /// The same for a load of global memory that touches `addresses`, any number per lane.
  void append_touched(ColumnBuffers& columns, std::uint32_t row, std::uint32_t active_mask,
                      std::span<const std::uint64_t> addresses);

  /// The same for a copy of ranges of global memory by the active lanes, in any order.
  void append_moved(ColumnBuffers& columns, std::uint32_t row, std::uint32_t active_mask,
                    std::span<const MovedBytes> moved);

  /// The same for an access to shared memory that takes `count` wavefronts.
  void append_wavefronts(ColumnBuffers& columns, std::uint32_t row, std::uint32_t active_mask,
                         std::uint32_t count);

  /// The same for an instruction without an access, and for several of them.
  void append_plain(ColumnBuffers& columns, std::uint32_t row, std::uint32_t active_mask) {
    columns.instruction.push_back(row);
    columns.active_mask.push_back(active_mask);
    ++row_counts_[row].issued;
  }

  void append_plain(ColumnBuffers& columns, std::span<const std::uint32_t> rows,
                    std::uint32_t active_mask) {
    columns.instruction.insert(columns.instruction.end(), rows.begin(), rows.end());
    columns.active_mask.insert(columns.active_mask.end(), rows.size(), active_mask);
    for (const std::uint32_t row : rows) ++row_counts_[row].issued;
  }

  /// The row of an instruction with such a step, which its opcode names.
  virtual std::uint32_t step_row(std::uint32_t row, const NamedStep& step) = 0;

 protected:
  explicit IssueLog(KernelHeader header) : header_(std::move(header)) {}

  void add_row(StaticInstruction instruction, const Effects& effects) {
    effects_.push_back(effects);
    instructions_.push_back(std::move(instruction));
    row_counts_.emplace_back();
  }
  /// The row of a generic instruction whose addresses all lie in `space`.
  virtual std::uint32_t resolved_row(std::uint32_t row, MemorySpace space) = 0;
  void count_access(std::uint32_t row, std::uint32_t count, std::uint64_t times = 1);

  KernelHeader header_;
  std::vector<StaticInstruction> instructions_;
  std::vector<Effects> effects_;
  std::vector<RowCounts> row_counts_;

 private:
  std::uint32_t append_access(ColumnBuffers& columns, std::uint64_t warp_id, std::uint32_t row,
                              const LaneAddresses& lanes);
  std::uint32_t resolve_generic(std::uint32_t row, const LaneAddresses& lanes);
};

}  // namespace warpstack::trace
