#include "trace/columns/issue_log.h"

#include <algorithm>
#include <bit>

#include "trace/instructions/coalescing.h"

namespace warpstack::trace {
void IssueLog::count_access(std::uint32_t row, std::uint32_t count, std::uint64_t times) {
  if (count > 0) row_counts_[row].active += times;
  if (!instructions_[row].uses_caches()) row_counts_[row].shared_wavefronts += times * count;
}

std::uint32_t IssueLog::resolve_generic(std::uint32_t row, const LaneAddresses& lanes) {
  auto space = MemorySpace::none;
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    const MemorySpace lane = header_.space_of(lanes.address[std::countr_zero(rest)]);
    space = space == MemorySpace::none || space == lane ? lane : MemorySpace::generic;
  }
  // An instruction with lanes in several spaces keeps its generic row.
  if (space == MemorySpace::none || space == MemorySpace::generic) return row;
  return resolved_row(row, space);
}

std::uint32_t IssueLog::append_access(ColumnBuffers& columns, std::uint64_t warp_id,
                                      std::uint32_t row, const LaneAddresses& lanes) {
  const bool is_generic = instructions_[row].space == MemorySpace::generic;
  if (is_generic) row = resolve_generic(row, lanes);
  const StaticInstruction& instruction = instructions_[row];
  std::vector<std::uint32_t>* bytes = instruction.writes_memory() ? &columns.store_bytes : nullptr;
  std::uint32_t count = 0;
  std::uint32_t passes = 0;     // over the banks of L1; 0: as the sectors imply
  std::uint32_t num_local = 0;  // sectors of local memory, which follow the others
  switch (instruction.space) {
    case MemorySpace::shared:
      count = shared_wavefronts(lanes, instruction.width, effects_[row].shared_access);
      break;
    case MemorySpace::local:
      count = num_local =
          coalesce_local(is_generic ? header_.lanes_in(MemorySpace::local, lanes) : lanes,
                         instruction.width, warp_id, columns.sector, bytes);
      // Lanes have a bank each.
      passes = std::max(instruction.width / 4, 1u);
      break;
    case MemorySpace::generic:
      // The lanes are in several spaces: accesses through the caches are kept, shared lanes are
      // not.
      count = coalesce(header_.lanes_in(MemorySpace::global, lanes), instruction.width,
                       columns.sector, bytes);
      num_local = coalesce_local(header_.lanes_in(MemorySpace::local, lanes), instruction.width,
                                 warp_id, columns.sector, bytes);
      count += num_local;
      break;
    default:
      count = coalesce(lanes, instruction.width, columns.sector, bytes, &passes);
      break;
  }
  if (bytes != nullptr && instruction.is_atomic()) {
    const bool is_mixed = instruction.space == MemorySpace::generic;
    columns.atomic_lanes.resize(columns.store_bytes.size() - count);
    const auto sectors = std::span<const std::uint64_t>(columns.sector).last(count);
    append_atomic_lanes(is_mixed ? header_.lanes_in(MemorySpace::global, lanes) : lanes,
                        sectors.first(count - num_local), columns.atomic_lanes);
    if (num_local > 0) {
      const LaneAddresses local = is_generic ? header_.lanes_in(MemorySpace::local, lanes) : lanes;
      append_atomic_lanes(local_addresses(local, warp_id), sectors.last(num_local),
                          columns.atomic_lanes);
    }
  }
  columns.fill_lanes();
  if (passes != 0 && !instruction.is_atomic() &&
      passes != implied_passes(std::span<const std::uint64_t>(columns.sector).last(count))) {
    columns.l1_passes.resize(columns.memory_static.size());
    columns.l1_passes.push_back(static_cast<std::uint8_t>(std::min(passes, 0xffu)));
  }
  columns.memory_count.push_back(static_cast<std::uint16_t>(count));
  count_access(row, count);
  return row;
}

void IssueLog::append_to(ColumnBuffers& columns, std::uint64_t warp_id, std::uint32_t row,
                         std::uint32_t active_mask, const LaneAddresses* lanes) {
  if (instructions_[row].is_memory()) {
    if (lanes != nullptr && lanes->mask != 0) {
      row = append_access(columns, warp_id, row, *lanes);
    } else {
      columns.memory_count.push_back(0);
    }
    columns.memory_static.push_back(row);
    columns.fill_passes();
  }
  append_plain(columns, row, active_mask);
}

void IssueLog::append_touched(ColumnBuffers& columns, std::uint32_t row, std::uint32_t active_mask,
                              std::span<const std::uint64_t> addresses) {
  const std::uint32_t count = coalesce(addresses, instructions_[row].width, columns.sector);
  columns.memory_count.push_back(static_cast<std::uint16_t>(count));
  columns.memory_static.push_back(row);
  columns.fill_passes();
  count_access(row, count);
  append_plain(columns, row, active_mask);
}

void IssueLog::append_moved(ColumnBuffers& columns, std::uint32_t row, std::uint32_t active_mask,
                            std::span<const MovedBytes> moved) {
  std::vector<std::uint32_t>* const bytes =
      instructions_[row].writes_memory() ? &columns.store_bytes : nullptr;
  const std::uint32_t count = coalesce(moved, columns.sector, bytes);
  if (bytes != nullptr && instructions_[row].is_atomic()) {
    // No lanes take part in the additions of a bulk copy.
    columns.atomic_lanes.resize(bytes->size() - count);
    columns.atomic_lanes.resize(bytes->size(), {.sector = 0, .word = 1});
  }
  columns.fill_lanes();
  columns.memory_count.push_back(static_cast<std::uint16_t>(count));
  columns.memory_static.push_back(row);
  columns.fill_passes();
  count_access(row, count);
  append_plain(columns, row, active_mask);
}

void IssueLog::append_wavefronts(ColumnBuffers& columns, std::uint32_t row,
                                 std::uint32_t active_mask, std::uint32_t count) {
  columns.memory_count.push_back(static_cast<std::uint16_t>(std::min(count, 0xffffu)));
  columns.memory_static.push_back(row);
  columns.fill_passes();
  count_access(row, columns.memory_count.back());
  append_plain(columns, row, active_mask);
}

}  // namespace warpstack::trace
