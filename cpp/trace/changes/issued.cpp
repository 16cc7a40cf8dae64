#include "trace/changes/issued.h"

#include "trace/columns/trace_builder.h"
#include "trace/instructions/coalescing.h"

namespace warpstack::trace {

void BlockWriter::append(const Issued& one) {
  columns_.instruction.push_back(one.row);
  columns_.active_mask.push_back(one.mask);
  if (!one.is_memory) return;
  if (one.passes != 0) {
    columns_.l1_passes.resize(columns_.memory_static.size());
    columns_.l1_passes.push_back(one.passes);
  }
  columns_.memory_static.push_back(one.row);
  columns_.fill_passes();
  columns_.memory_count.push_back(one.count);
  columns_.sector.insert(columns_.sector.end(), one.sectors.begin(), one.sectors.end());
  if (!one.lanes.empty()) {
    columns_.atomic_lanes.resize(columns_.store_bytes.size());
    columns_.atomic_lanes.insert(columns_.atomic_lanes.end(), one.lanes.begin(), one.lanes.end());
  }
  columns_.store_bytes.insert(columns_.store_bytes.end(), one.bytes.begin(), one.bytes.end());
  columns_.fill_lanes();
}

void BlockWriter::end_warp() {
  if (warps_.empty()) return;
  const ColumnCounts end = columns_.counts();
  warps_.back() =
      TraceBuilder::entry_of(0, warps_.back().number,
                             {end.instructions - begin_.instructions, end.memory - begin_.memory,
                              end.sectors - begin_.sectors, end.stores - begin_.stores});
}

bool is_of_lanes(const StaticInstruction& row) {
  return row.width > 0 && !row.opcode.starts_with("wmma") && !row.opcode.starts_with('U') &&
         row.opcode.find(".bulk") == std::string::npos;
}

bool is_seen_by_others(const StaticInstruction& row) {
  for (const char* word : {"volatile", "acquire", "release", "relaxed", "mmio", "STRONG"}) {
    if (row.opcode.find(word) != std::string::npos) return true;
  }
  return false;
}

std::uint32_t least_sectors(const StaticInstruction& row, const Issued& one) {
  std::uint32_t bytes = one.active() * row.width;
  if (!one.bytes.empty()) {
    std::uint32_t written = 0;
    for (const std::uint32_t mask : one.bytes) {
      written += static_cast<std::uint32_t>(std::popcount(mask));
    }
    bytes = std::min(bytes, written);
  }
  return std::max(least_of(bytes, sector_bytes), 1u);
}

std::uint16_t least_passes(const StaticInstruction& row, const Issued& one) {
  if (one.count == 0 || !is_of_lanes(row)) return one.count;
  const std::uint32_t least = std::max(least_of(one.active() * row.width, bytes_of_pass), 1u);
  return static_cast<std::uint16_t>(std::min<std::uint32_t>(one.count, least));
}

namespace {

bool is_ptx(const StaticInstruction& row) {
  return !row.opcode.empty() && row.opcode.front() >= 'a' && row.opcode.front() <= 'z';
}

/// A row at the place of another, without its access and registers.
StaticInstruction plain_beside(const StaticInstruction& row, const char* ptx, const char* sass) {
  StaticInstruction result = row;
  result.opcode = is_ptx(row) ? ptx : sass;
  result.known_opcode = true;
  result.cache_operator = CacheOperator::none;
  result.destinations.clear();
  result.sources.clear();
  if (row.control) {
    result.control = Control{.stall = 1};
    // What the row loads must be there.
    if (row.control->write_barrier != no_control_barrier) {
      result.control->wait_mask = static_cast<std::uint8_t>(1u << row.control->write_barrier);
    }
  }
  return result;
}

}  // namespace

StaticInstruction barrier_beside(const StaticInstruction& row) {
  StaticInstruction result = plain_beside(row, "bar.sync", "BAR.SYNC");
  result.op_class = OpClass::barrier;
  result.space = MemorySpace::none;
  result.kind = MemoryKind::none;
  result.width = 0;
  return result;
}

StaticInstruction shared_store_beside(const StaticInstruction& row) {
  StaticInstruction result = plain_beside(row, "st.shared.b32", "STS");
  result.space = MemorySpace::shared;
  result.kind = MemoryKind::store;
  if (row.kind == MemoryKind::load) result.sources = row.destinations;
  return result;
}

AtomicLanes combined(const AtomicLanes& lanes, std::uint32_t bytes, std::uint32_t width) {
  if (lanes.word == 0) return lanes;
  const auto touched = static_cast<std::uint32_t>(std::popcount(bytes));
  const std::uint32_t words = least_of(touched, std::max(width, 1u));
  return {.sector = static_cast<std::uint8_t>(std::min<std::uint32_t>(lanes.sector, words)),
          .word = 1};
}

}  // namespace warpstack::trace
