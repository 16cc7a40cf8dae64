#include "trace/column_batch.h"

#include <utility>

#include "common/error.h"

namespace warpstack {

BlockBatch read_batch(const KernelTrace& trace, std::size_t first, std::size_t last) {
  BlockBatch batch;
  std::vector<std::byte> scratch;
  const auto extend = [](auto& target, const auto& source) {
    target.insert(target.end(), source.begin(), source.end());
  };
  for (std::size_t b = first; b < last; ++b) {
    const BlockRecord& record = trace.blocks().record(b);
    for (std::size_t w = 0; w < record.warps.size(); ++w) {
      batch.block.push_back(record.linear_index);
      batch.warp.push_back(record.warps[w]);
      batch.instructions.push_back(record.begin[w + 1].instructions - record.begin[w].instructions);
      batch.memory.push_back(record.begin[w + 1].memory - record.begin[w].memory);
      batch.sectors.push_back(record.begin[w + 1].sectors - record.begin[w].sectors);
      batch.stores.push_back(record.begin[w + 1].stores - record.begin[w].stores);
    }
    const ColumnView view = trace.block(b, scratch);
    extend(batch.columns.instruction, view.instruction);
    extend(batch.columns.active_mask, view.active_mask);
    extend(batch.columns.memory_static, view.memory_static);
    extend(batch.columns.memory_count, view.memory_count);
    extend(batch.columns.sector, view.sector);
    extend(batch.columns.store_bytes, view.store_bytes);
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
      batch.columns.memory_count.size() != batch.columns.memory_static.size()) {
    throw InputError("the columns of one table differ in length");
  }
  const ColumnCounts available{batch.columns.instruction.size(), batch.columns.memory_static.size(),
                               batch.columns.sector.size(), batch.columns.store_bytes.size()};
  ColumnCounts next;
  for (std::size_t w = 0; w < num_warps;) {
    BlockRecord record;
    record.linear_index = batch.block[w];
    record.begin.emplace_back();
    const ColumnCounts first = next;
    for (; w < num_warps && batch.block[w] == record.linear_index; ++w) {
      const ColumnCounts counts{batch.instructions[w], batch.memory[w], batch.sectors[w],
                                batch.stores[w]};
      // Comparing with what is left, rather than adding first, survives absurd counts.
      if (counts.instructions > available.instructions - next.instructions ||
          counts.memory > available.memory - next.memory ||
          counts.sectors > available.sectors - next.sectors ||
          counts.stores > available.stores - next.stores) {
        throw InputError("the warp table announces more entries than the columns have");
      }
      next += counts;
      record.warps.push_back(batch.warp[w]);
      record.begin.push_back({next.instructions - first.instructions, next.memory - first.memory,
                              next.sectors - first.sectors, next.stores - first.stores});
    }
    const ColumnCounts counts = record.counts();
    const ColumnView& all = batch.columns;
    builder.add_block(std::move(record),
                      {all.instruction.subspan(first.instructions, counts.instructions),
                       all.active_mask.subspan(first.instructions, counts.instructions),
                       all.memory_static.subspan(first.memory, counts.memory),
                       all.memory_count.subspan(first.memory, counts.memory),
                       all.sector.subspan(first.sectors, counts.sectors),
                       all.store_bytes.subspan(first.stores, counts.stores)});
  }
  if (next != available) {
    throw InputError("the columns have more entries than the warp table announces");
  }
}

}  // namespace warpstack
