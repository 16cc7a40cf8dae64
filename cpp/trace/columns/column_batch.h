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

/// The same columns, borrowed.
struct BlockBatchView {
  std::span<const std::uint64_t> block;
  std::span<const std::uint32_t> warp;
  std::span<const std::uint32_t> instructions, memory, sectors, stores;
  ColumnView columns;
};

/// Stores the blocks of a batch. Throws InputError when its columns contradict each other.
void add_batch(TraceBuilder& builder, const BlockBatchView& batch);

}  // namespace warpstack::trace
