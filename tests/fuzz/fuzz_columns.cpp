// Columns from a damaged file are blocks that fit together or an InputError.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "common/error.h"
#include "trace/columns/column_batch.h"
#include "trace/columns/sector_steps.h"

namespace {

/// Hands out numbers from the fuzzer's bytes, zeros when they are used up.
class Source {
 public:
  Source(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  std::uint64_t next(std::uint64_t bound) {
    std::uint64_t value = 0;
    const std::size_t count = bound > 255 ? 8 : 1;
    for (std::size_t i = 0; i < count && size_ > 0; ++i, ++data_, --size_)
      value = value << 8 | *data_;
    return bound == 0 ? value : value % bound;
  }

  template <typename T>
  std::vector<T> column(std::uint64_t bound) {
    std::vector<T> values(next(24));
    for (T& value : values) value = static_cast<T>(next(bound));
    return values;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace warpstack;
  Source source(data, size);
  trace::KernelHeader header;
  header.grid = {4, 1, 1};
  header.block = {64, 1, 1};
  trace::TraceBuilder builder(
      header, std::make_shared<trace::StorageBudget>(std::uint64_t{1} << 30, "/tmp"));
  const std::vector<std::uint16_t> registers{1, 2};
  for (const char* opcode : {"MOV", "LDG.E", "STG.E", "LDS", "ATOMG.E.ADD"}) {
    builder.intern(trace::make_static_instruction(0, opcode, registers, registers));
  }
  try {
    for (int i = 0; i < 3; ++i) {
      trace::BlockBatch batch;
      batch.block = source.column<std::uint64_t>(5);
      batch.warp = source.column<std::uint32_t>(3);
      batch.instructions = source.column<std::uint32_t>(source.next(2) ? 4 : 0);
      batch.memory = source.column<std::uint32_t>(3);
      batch.sectors = source.column<std::uint32_t>(5);
      batch.stores = source.column<std::uint32_t>(5);
      batch.columns.instruction = source.column<std::uint32_t>(6);
      batch.columns.active_mask = source.column<std::uint32_t>(3);
      batch.columns.memory_static = source.column<std::uint32_t>(6);
      batch.columns.memory_count = source.column<std::uint16_t>(4);
      batch.columns.sector = source.column<std::uint64_t>(0);
      batch.columns.store_bytes = source.column<std::uint32_t>(0);
      for (std::uint64_t left = source.next(2) * source.next(24); left > 0; --left) {
        batch.columns.atomic_lanes.push_back({static_cast<std::uint8_t>(source.next(34)),
                                              static_cast<std::uint8_t>(source.next(34))});
      }
      if (source.next(2) != 0) batch.columns.l1_passes = source.column<std::uint8_t>(3);
      if (source.next(2) != 0) {
        // The sectors are steps, which become sectors that have these steps, or an InputError.
        const std::vector<std::uint64_t> steps = batch.columns.sector;
        batch.columns.sector = trace::sectors_of_steps(batch.columns.view(), builder.has_sectors());
        if (trace::steps_of_sectors(batch.columns.view(), builder.has_sectors()) != steps) {
          std::abort();
        }
      }
      if (source.next(2) == 0) {
        trace::add_batch(builder, trace::view_of(batch));
        continue;
      }
      const auto repeat = source.column<std::uint64_t>(5);
      const auto like = source.column<std::uint32_t>(4);
      const auto shifts = source.column<std::uint32_t>(4);
      const auto shift = source.column<std::int32_t>(0);
      trace::add_batch(builder, trace::view_of(batch), {repeat, like, shifts, shift});
    }
    builder.finish();
  } catch (const InputError&) {
  }
  return 0;
}
