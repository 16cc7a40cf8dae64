#include "trace/columns/column_batch.h"

#include <functional>
#include <unordered_map>

#include "common/error.h"

namespace warpstack::trace {

namespace {

void append_block(BlockBatch& batch, const KernelTrace& trace, std::size_t block,
                  std::vector<std::byte>& scratch) {
  for (const WarpEntry& warp : trace.blocks().warps(block)) {
    batch.block.push_back(trace.blocks().linear_index(block));
    batch.warp.push_back(warp.number);
    batch.instructions.push_back(warp.instructions);
    batch.memory.push_back(warp.memory);
    batch.sectors.push_back(warp.sectors);
    batch.stores.push_back(warp.stores);
  }
  batch.columns.append(trace.block(block, scratch));
}

/// Makes the form of a batch independent of what its blocks executed.
void complete(BlockBatch& batch, const KernelTrace& trace) {
  if (trace.has_atomics()) batch.columns.atomic_lanes.resize(batch.columns.store_bytes.size());
  if (trace.blocks().has_passes()) {
    batch.columns.l1_passes.resize(batch.columns.memory_static.size());
  }
}

/// Shifts as differences from those of the last block of the same class, and back.
class ShiftDifferences {
 public:
  /// Appends the differences of a block of a class.
  void encode(std::uint32_t number, std::span<const std::int32_t> shifts,
              std::vector<std::int32_t>& differences) {
    std::vector<std::int32_t>& last = last_[number];
    last.resize(shifts.size());
    for (std::size_t i = 0; i < shifts.size(); ++i) {
      differences.push_back(wrapped(shifts[i], last[i], std::minus<>()));
    }
    last.assign(shifts.begin(), shifts.end());
  }
  /// The shifts of a block of a class, valid until the next call.
  std::span<const std::int32_t> decode(std::uint32_t number,
                                       std::span<const std::int32_t> differences) {
    if (differences.empty()) return {};
    std::vector<std::int32_t>& last = last_[number];
    last.resize(differences.size());
    for (std::size_t i = 0; i < differences.size(); ++i) {
      last[i] = wrapped(differences[i], last[i], std::plus<>());
    }
    return last;
  }

 private:
  template <typename Operation>
  static std::int32_t wrapped(std::int32_t one, std::int32_t other, Operation operation) {
    return static_cast<std::int32_t>(
        operation(static_cast<std::uint32_t>(one), static_cast<std::uint32_t>(other)));
  }

  std::unordered_map<std::uint32_t, std::vector<std::int32_t>> last_;  ///< by class
};

}  // namespace

BlockBatch read_batch(const KernelTrace& trace, std::size_t first, std::size_t last) {
  BlockBatch batch;
  std::vector<std::byte> scratch;
  for (std::size_t b = first; b < last; ++b) append_block(batch, trace, b, scratch);
  complete(batch, trace);
  return batch;
}

DistinctBatch read_distinct_batch(const KernelTrace& trace, std::size_t first, std::size_t last) {
  const BlockStorage& blocks = trace.blocks();
  DistinctBatch batch;
  std::vector<std::byte> scratch;
  ShiftDifferences differences;
  for (std::size_t b = first; b < last; ++b) {
    if (blocks.is_first_of_class(b)) {
      append_block(batch.distinct, trace, b, scratch);
      continue;
    }
    const std::span<const std::int32_t> shifts = blocks.shifts(b, scratch);
    batch.repeats.block.push_back(blocks.linear_index(b));
    batch.repeats.like.push_back(blocks.class_of(b));
    batch.repeats.shifts.push_back(static_cast<std::uint32_t>(shifts.size()));
    if (!shifts.empty()) differences.encode(blocks.class_of(b), shifts, batch.repeats.shift);
  }
  complete(batch.distinct, trace);
  return batch;
}

std::vector<std::size_t> batch_ends(const KernelTrace& trace, std::uint64_t bytes) {
  std::vector<std::size_t> ends;
  std::uint64_t sum = 0;
  for (std::size_t b = 0; b < trace.blocks().size(); ++b) {
    const std::uint64_t here = trace.blocks().stored_bytes(b);
    if (sum > 0 && sum + here > bytes) {
      ends.push_back(b);
      sum = 0;
    }
    sum += here;
  }
  ends.push_back(trace.blocks().size());
  return ends;
}

namespace {

/// Stores the blocks of a batch, and calls `before(block)` before each.
template <typename Before>
void add_blocks(TraceBuilder& builder, const BlockBatchView& batch, bool are_distinct,
                Before before) {
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
    before(block);
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
         all.l1_passes.empty() ? all.l1_passes : part(all.l1_passes, first.memory, next.memory)},
        are_distinct);
  }
  if (next != available) {
    throw InputError("the columns have more entries than the warp table announces");
  }
}

}  // namespace

void add_batch(TraceBuilder& builder, const BlockBatchView& batch) {
  add_blocks(builder, batch, false, [](std::uint64_t) {});
}

void add_batch(TraceBuilder& builder, const BlockBatchView& distinct, const RepeatsView& repeats) {
  if (repeats.like.size() != repeats.block.size() ||
      repeats.shifts.size() != repeats.block.size()) {
    throw InputError("the columns of the repeated blocks differ in length");
  }
  ShiftDifferences differences;
  std::size_t next = 0;
  std::size_t next_shift = 0;
  const auto add_before = [&](std::uint64_t block) {
    for (; next < repeats.block.size() && repeats.block[next] < block; ++next) {
      const std::size_t count = repeats.shifts[next];
      if (count > repeats.shift.size() - next_shift) {
        throw InputError("the repeated blocks announce more shifts than there are");
      }
      const std::uint32_t like = repeats.like[next];
      builder.add_like(repeats.block[next], like,
                       differences.decode(like, repeats.shift.subspan(next_shift, count)));
      next_shift += count;
    }
  };
  add_blocks(builder, distinct, true, add_before);
  add_before(~std::uint64_t{0});
  if (next != repeats.block.size() || next_shift != repeats.shift.size()) {
    throw InputError("there are more shifts than the repeated blocks announce");
  }
}

}  // namespace warpstack::trace
