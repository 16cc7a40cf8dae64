#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/digest.h"
#include "trace/columns/issue_log.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::trace {

/// Builds a KernelTrace from issued instructions, warp by warp and block by block. Readers,
/// patterns and functional simulation all use it, so that the renumbering of registers and the
/// digest exist once.
class TraceBuilder final : public IssueLog {
 public:
  /// Throws InputError when the header is impossible. Messages do not name the file: callers add
  /// it.
  TraceBuilder(KernelHeader header, std::shared_ptr<StorageBudget> budget);

  /// Row of an instruction in the static table; a new instruction gets the next row. Throws
  /// InputError when its control fields are impossible, or the header lacks its source.
  std::uint32_t intern(StaticInstruction instruction);

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
  void append_columns(const ColumnView& columns) { open_columns_.append(columns); }
  /// Instructions of the open warp so far.
  [[nodiscard]] std::uint64_t open_warp_instructions() const {
    return open_columns_.instruction.size() - open_begin_.instructions;
  }
  /// Bytes of the columns of the open block so far.
  [[nodiscard]] std::uint64_t open_block_bytes() const { return bytes_of(open_columns_.counts()); }
  /// Stores the open block.
  void end_block();

  /// The entry of a block's warp with these column counts. Throws InputError if they exceed what an
  /// entry holds.
  static WarpEntry entry_of(std::uint64_t block, std::uint32_t warp, const ColumnCounts& counts);
  /// Stores a block with finished columns, in one view per warp or one for all. They come from
  /// append_to() and the like, of this builder or of a branch of it.
  void add_recorded(std::uint64_t linear_index, std::span<const WarpEntry> warps,
                    std::span<const ColumnView> columns);
  /// The lowest linear index that the next block may have.
  [[nodiscard]] std::uint64_t next_block() const { return next_block_; }
  /// What the launch has waited for, which is known at its end.
  void set_awaited(const AwaitedTicks& cycles, const AwaitedTicks& ns) {
    header_.awaited_cycles = cycles;
    header_.awaited_ns = ns;
  }
  /// Adds the counts of a branch.
  void add_counts(std::span<const RowCounts> counts);
  /// The row of a generic instruction whose addresses all lie in `space`, if it exists already.
  [[nodiscard]] std::optional<std::uint32_t> find_resolved(std::uint32_t row,
                                                           MemorySpace space) const;

  std::uint32_t step_row(std::uint32_t row, const NamedStep& step) override;
  /// The same if it exists already.
  [[nodiscard]] std::optional<std::uint32_t> find_step_row(std::uint32_t row,
                                                           const NamedStep& step) const;

  /// Whether instructions of the table are atomics or reductions that go through the caches.
  [[nodiscard]] bool has_atomics() const;
  /// Whether memory instructions of a row have sectors, by row of the table.
  [[nodiscard]] std::span<const std::uint8_t> has_sectors() const { return has_sectors_; }

  /// Stores a block whose packed columns come from a file; throws InputError when they contradict
  /// each other or the static table. If the lanes of atomics are missing, they are spread evenly.
  /// `is_distinct` says that no earlier block has the same columns, so that none is looked for.
  void add_block(std::uint64_t linear_index, std::span<const WarpEntry> warps,
                 const ColumnView& columns, bool is_distinct = false);
  /// Stores a block of a file with the columns of class `number`; see BlockStorage::append_like.
  /// Throws InputError when there is no such class or it takes another number of shifts.
  void add_like(std::uint64_t linear_index, std::uint32_t number,
                std::span<const std::int32_t> shifts);

  /// Renumbers registers densely and seals the trace. The builder is empty afterwards. Throws
  /// InputError when it has no instruction, or only some have control fields.
  KernelTrace finish();

 private:
  void check_block_index(std::uint64_t linear_index);
  void end_warp();
  void store(std::uint64_t linear_index, std::span<const WarpEntry> warps,
             std::span<const ColumnView> columns, bool is_distinct = false);
  void count_rows(const ColumnView& columns, std::uint64_t times);
  void count_repeats();
  void add_to_digests(std::uint64_t linear_index, std::span<const WarpEntry> warps,
                      const ColumnView& stored);
  void check_columns(std::uint64_t linear_index, std::span<const WarpEntry> warps,
                     const ColumnView& columns) const;
  /// The lanes of atomics for columns without them; empty without an atomic.
  [[nodiscard]] std::vector<AtomicLanes> even_lanes(const ColumnView& columns) const;
  std::uint32_t resolved_row(std::uint32_t row, MemorySpace space) override;
  std::uint32_t renumber_registers();

  std::unique_ptr<BlockStorage> blocks_;
  std::vector<std::uint8_t> has_sectors_;  ///< by row, whether its accesses have sectors
  std::unordered_map<std::string, std::uint32_t> rows_;
  std::unordered_map<std::uint64_t, std::uint32_t> resolved_rows_;  ///< of generic rows, by space
  /// By row, kind and numbers of a step: the row of the instruction with it.
  std::map<std::array<std::uint32_t, 4>, std::uint32_t> step_rows_;
  std::uint64_t open_block_ = 0;
  std::vector<WarpEntry> open_warps_;
  ColumnBuffers open_columns_;
  ColumnCounts open_begin_;  ///< first entries of the open warp
  std::uint64_t open_warp_id_ = 0;
  std::uint64_t next_block_ = 0;
  std::vector<std::uint64_t> repeats_;  ///< blocks that add_like() has added, by class
  Digest digest_;
  Digest lanes_digest_;   ///< of the lanes of atomics, if has_lanes_
  Digest passes_digest_;  ///< of the passes of L1, if the blocks have some
  bool has_lanes_ = false;
};

/// Records blocks for a builder in another thread. It has the builder's rows and its own counts,
/// and adds no row. The builder may store blocks in the meantime, but not intern.
class TraceBranch final : public IssueLog {
 public:
  explicit TraceBranch(const TraceBuilder& trunk);

  /// Thrown when a new row would be needed, whose number depends on the order of blocks.
  struct NewRow {};

  /// Copies the builder's new rows, and forgets the counts.
  void begin();
  std::uint32_t step_row(std::uint32_t row, const NamedStep& step) override;

 private:
  std::uint32_t resolved_row(std::uint32_t row, MemorySpace space) override;

  const TraceBuilder& trunk_;
};

}  // namespace warpstack::trace
