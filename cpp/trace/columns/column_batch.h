#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trace/columns/trace_builder.h"

namespace warpstack::trace {

/// Consecutive thread blocks as flat columns, the form of traces in columnar files. The warp
/// columns have one entry per warp; `columns` holds the entries of all warps in order.
struct BlockBatch {
  std::vector<std::uint64_t> block;         ///< linear index of the warp's block
  std::vector<std::uint32_t> warp;          ///< number in the block
  std::vector<std::uint32_t> instructions;  ///< number of the warp's entries in each column
  std::vector<std::uint32_t> memory;
  std::vector<std::uint32_t> sectors;
  std::vector<std::uint32_t> stores;
  ColumnBuffers columns;
};

/// Copies blocks `first` to `last` - 1 of the trace.
BlockBatch read_batch(const KernelTrace& trace, std::size_t first, std::size_t last);

/// Blocks that have the columns of an earlier one, with one entry per block.
struct Repeats {
  std::vector<std::uint64_t> block;   ///< linear index
  std::vector<std::uint32_t> like;    ///< number of the distinct block, in order of appearance
  std::vector<std::uint32_t> shifts;  ///< entries in `shift`: one per row with sectors, or none
  /// How far the sectors of a row lie from those of the distinct block, less the same shift of the
  /// batch's last such block with shifts, if there is one: so they are mostly equal.
  std::vector<std::int32_t> shift;
};

/// Consecutive thread blocks, distinct ones as columns.
struct DistinctBatch {
  BlockBatch distinct;
  Repeats repeats;
};

/// Copies blocks `first` to `last` - 1 of the trace, those that repeat another as such.
DistinctBatch read_distinct_batch(const KernelTrace& trace, std::size_t first, std::size_t last);

/// The ends of batches of about `bytes` bytes, for read_distinct_batch().
std::vector<std::size_t> batch_ends(const KernelTrace& trace, std::uint64_t bytes);

/// The same columns, borrowed.
struct BlockBatchView {
  std::span<const std::uint64_t> block;
  std::span<const std::uint32_t> warp;
  std::span<const std::uint32_t> instructions, memory, sectors, stores;
  ColumnView columns;
};

/// A batch as such.
inline BlockBatchView view_of(const BlockBatch& batch) {
  return {batch.block,   batch.warp,   batch.instructions,  batch.memory,
          batch.sectors, batch.stores, batch.columns.view()};
}

/// The same of repeats.
struct RepeatsView {
  std::span<const std::uint64_t> block;
  std::span<const std::uint32_t> like, shifts;
  std::span<const std::int32_t> shift;
};

/// Stores the blocks of a batch. Throws InputError when its columns contradict each other.
void add_batch(TraceBuilder& builder, const BlockBatchView& batch);

/// Stores the blocks of a batch of read_distinct_batch(), likewise.
void add_batch(TraceBuilder& builder, const BlockBatchView& distinct, const RepeatsView& repeats);

}  // namespace warpstack::trace
