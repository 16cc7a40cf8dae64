#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/digest.h"
#include "trace/kernel_trace.h"
#include "trace/moved_bytes.h"

namespace warpstack::trace {

/// Builds a KernelTrace from issued instructions, warp by warp and block by block. Readers,
/// patterns and functional simulation all end here, so that coalescing, the resolution of generic
/// addresses and the renumbering of registers exist once.
class TraceBuilder {
 public:
  /// Throws InputError when the header is impossible. Messages do not know the file: callers add
  /// it.
  TraceBuilder(KernelHeader header, std::shared_ptr<StorageBudget> budget);

  [[nodiscard]] const KernelHeader& header() const { return header_; }

  /// Row of an instruction in the static table; a new instruction gets the next row. Throws
  /// InputError when its control fields are impossible.
  std::uint32_t intern(StaticInstruction instruction);
  [[nodiscard]] std::size_t num_instructions() const { return instructions_.size(); }
  [[nodiscard]] const StaticInstruction& instruction(std::uint32_t row) const {
    return instructions_[row];
  }

  /// Opens the block with this linear index. Blocks come in increasing order.
  void begin_block(std::uint64_t linear_index);
  /// Opens a warp of the open block, numbered within the block. Warps come in increasing order.
  void begin_warp(std::uint32_t warp);
  /// Appends an issued instruction to the open warp. `lanes` holds the addresses of a memory
  /// instruction and is null for others; without an active lane there is no access.
  void append(std::uint32_t row, std::uint32_t active_mask, const LaneAddresses* lanes = nullptr) {
    append_to(open_columns_, open_warp_id_, row, active_mask, lanes);
  }
  /// Appends finished columns of the open warp.
  void append_columns(const ColumnView& columns);
  /// Instructions of the open warp so far.
  [[nodiscard]] std::uint64_t open_warp_instructions() const {
    return open_columns_.instruction.size() - open_begin_.instructions;
  }
  /// Bytes of the columns of the open block so far.
  [[nodiscard]] std::uint64_t open_block_bytes() const { return bytes_of(open_columns_.counts()); }
  /// Stores the open block.
  void end_block();

  /// Appends an issued instruction to columns of the caller's, for traces whose warps interleave.
  /// `warp_id` numbers the warp in the launch; it places local memory.
  void append_to(ColumnBuffers& columns, std::uint64_t warp_id, std::uint32_t row,
                 std::uint32_t active_mask, const LaneAddresses* lanes);

  /// The same for a load of global memory that touches `addresses`, any number of each lane.
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

  /// Stores a block whose packed columns come from a file; throws InputError when they contradict
  /// each other or the static table.
  void add_block(std::uint64_t linear_index, std::span<const WarpEntry> warps,
                 const ColumnView& columns);

  /// Renumbers registers densely and seals the trace. The builder is empty afterwards. Throws
  /// InputError when it has no instruction, or only some have control fields.
  KernelTrace finish();

 private:
  void count_access(std::uint32_t row, std::uint32_t count);
  void check_block_index(std::uint64_t linear_index);
  void end_warp();
  void store(std::uint64_t linear_index, std::span<const WarpEntry> warps,
             const ColumnView& columns);
  void check_columns(std::uint64_t linear_index, std::span<const WarpEntry> warps,
                     const ColumnView& columns) const;
  std::uint32_t append_access(ColumnBuffers& columns, std::uint64_t warp_id, std::uint32_t row,
                              const LaneAddresses& lanes);
  std::uint32_t resolve_generic(std::uint32_t row, const LaneAddresses& lanes);
  std::uint32_t renumber_registers();

  KernelHeader header_;
  std::unique_ptr<BlockStorage> blocks_;
  std::vector<StaticInstruction> instructions_;
  std::vector<RowCounts> row_counts_;
  std::unordered_map<std::string, std::uint32_t> rows_;
  std::unordered_map<std::uint64_t, std::uint32_t> resolved_rows_;  ///< of generic rows, by space
  std::uint64_t open_block_ = 0;
  std::vector<WarpEntry> open_warps_;
  ColumnBuffers open_columns_;
  ColumnCounts open_begin_;  ///< first entries of the open warp
  std::uint64_t open_warp_id_ = 0;
  std::uint64_t next_block_ = 0;
  Digest digest_;
};

}  // namespace warpstack::trace
