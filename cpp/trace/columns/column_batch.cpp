#include "trace/columns/column_batch.h"

#include "common/error.h"

namespace warpstack::trace {

BlockBatch read_batch(const KernelTrace& trace, std::size_t first, std::size_t last) {
  BlockBatch batch;
  std::vector<std::byte> scratch;
  for (std::size_t b = first; b < last; ++b) {
    for (const WarpEntry& warp : trace.blocks().warps(b)) {
      batch.block.push_back(trace.blocks().linear_index(b));
      batch.warp.push_back(warp.number);
      batch.instructions.push_back(warp.instructions);
      batch.memory.push_back(warp.memory);
      batch.sectors.push_back(warp.sectors);
      batch.stores.push_back(warp.stores);
    }
    batch.columns.append(trace.block(b, scratch));
  }
  // The form does not depend on what these blocks executed.
  if (trace.has_atomics()) batch.columns.atomic_lanes.resize(batch.columns.store_bytes.size());
  if (trace.blocks().has_passes()) {
    batch.columns.l1_passes.resize(batch.columns.memory_static.size());
  }
  return batch;
}

void add_batch(TraceBuilder& builder, const BlockBatchView& batch) {
  const std::size_t num_warps = batch.block.size();
  for (const std::size_t size : {batch.warp.size(), batch.instructions.size(), batch.memory.size(),
                                 batch.sectors.size(), batch.stores.size()}) {
    if (size != num_warps) throw InputError("the columns of the warp table differ in length");
  }
  if (batch.columns.active_mask.size() != batch.columns.instruction.size() ||
      batch.columns.memory_count.size() != batch.columns.memory_static.size() ||
      (!batch.columns.atomic_lanes.empty() &&
       batch.columns.atomic_lanes.size() != batch.columns.store_bytes.size()) ||
      (!batch.columns.l1_passes.empty() &&
       batch.columns.l1_passes.size() != batch.columns.memory_static.size())) {
    throw InputError("the columns of one table differ in length");
  }
  const ColumnCounts available{batch.columns.instruction.size(), batch.columns.memory_static.size(),
                               batch.columns.sector.size(), batch.columns.store_bytes.size()};
  ColumnCounts next;
  std::vector<WarpEntry> warps;
  for (std::size_t w = 0; w < num_warps;) {
    const std::uint64_t block = batch.block[w];
    const ColumnCounts first = next;
    warps.clear();
    for (; w < num_warps && batch.block[w] == block; ++w) {
      const WarpEntry warp{batch.warp[w], batch.instructions[w], batch.memory[w], batch.sectors[w],
                           batch.stores[w]};
      next += warp.counts();
      if (next.instructions > available.instructions || next.memory > available.memory ||
          next.sectors > available.sectors || next.stores > available.stores) {
        throw InputError("the warp table announces more entries than the columns have");
      }
      warps.push_back(warp);
    }
    const ColumnView& all = batch.columns;
    const auto part = [](const auto& column, std::uint64_t from, std::uint64_t to) {
      return column.subspan(from, to - from);
    };
    builder.add_block(
        block, warps,
        {part(all.instruction, first.instructions, next.instructions),
         part(all.active_mask, first.instructions, next.instructions),
         part(all.memory_static, first.memory, next.memory),
         part(all.memory_count, first.memory, next.memory),
         part(all.sector, first.sectors, next.sectors),
         part(all.store_bytes, first.stores, next.stores),
         all.atomic_lanes.empty() ? all.atomic_lanes
                                  : part(all.atomic_lanes, first.stores, next.stores),
         all.l1_passes.empty() ? all.l1_passes : part(all.l1_passes, first.memory, next.memory)});
  }
  if (next != available) {
    throw InputError("the columns have more entries than the warp table announces");
  }
}

}  // namespace warpstack::trace
