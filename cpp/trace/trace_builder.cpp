#include "trace/trace_builder.h"

#include <bit>
#include <utility>

#include "common/error.h"

namespace warpstack {
namespace {

/// Text that is equal for equal table rows only.
std::string key_of(const StaticInstruction& instruction) {
  std::string key = instruction.opcode;
  const auto add = [&key](std::uint64_t value) { key += ' ' + std::to_string(value); };
  add(instruction.pc);
  add(instruction.source_line);
  add(static_cast<std::uint64_t>(instruction.space));
  add(instruction.destinations.size());
  for (const std::uint16_t reg : instruction.destinations) add(reg);
  for (const std::uint16_t reg : instruction.sources) add(reg);
  return key;
}

void add_to(Digest& digest, const StaticInstruction& instruction) {
  digest.add_text(instruction.opcode);
  for (const std::uint64_t value :
       {std::uint64_t{instruction.pc}, std::uint64_t{instruction.source_line},
        static_cast<std::uint64_t>(instruction.op_class),
        static_cast<std::uint64_t>(instruction.space), static_cast<std::uint64_t>(instruction.kind),
        static_cast<std::uint64_t>(instruction.cache_operator), std::uint64_t{instruction.width}}) {
    digest.add(value);
  }
  digest.add(instruction.destinations.size());
  for (const std::uint16_t reg : instruction.destinations) digest.add(reg);
  digest.add(instruction.sources.size());
  for (const std::uint16_t reg : instruction.sources) digest.add(reg);
}

void add_to(Digest& digest, const KernelHeader& header) {
  digest.add_text(header.name);
  for (const std::uint64_t value :
       {header.launch_id, header.grid[0], header.grid[1], header.grid[2], header.block[0],
        header.block[1], header.block[2], header.shared_memory_bytes, header.registers_per_thread,
        header.binary_version}) {
    digest.add(value);
  }
}

}  // namespace

TraceBuilder::TraceBuilder(KernelHeader header, std::shared_ptr<StorageBudget> budget)
    : header_(std::move(header)), blocks_(std::make_unique<BlockStorage>(std::move(budget))) {
  header_.validate();
}

std::uint32_t TraceBuilder::intern(StaticInstruction instruction) {
  const auto next = static_cast<std::uint32_t>(instructions_.size());
  const auto [entry, is_new] = rows_.try_emplace(key_of(instruction), next);
  if (is_new) {
    instructions_.push_back(std::move(instruction));
    row_counts_.emplace_back();
  }
  return entry->second;
}

void TraceBuilder::begin_record(BlockRecord& record, std::uint64_t linear_index) {
  if (linear_index >= header_.num_blocks()) {
    throw InputError("thread block " + std::to_string(linear_index) + " is outside the grid of " +
                     std::to_string(header_.num_blocks()) + " blocks");
  }
  if (linear_index < next_block_) {
    throw InputError("thread block " + std::to_string(linear_index) +
                     " appears twice or out of order");
  }
  next_block_ = linear_index + 1;
  record.linear_index = linear_index;
}

void TraceBuilder::begin_block(std::uint64_t linear_index) {
  open_record_ = BlockRecord{};
  begin_record(open_record_, linear_index);
  open_record_.begin.push_back({});
  open_columns_.clear();
}

void TraceBuilder::begin_warp(std::uint32_t warp) {
  if (warp >= header_.warps_per_block()) {
    throw InputError("warp " + std::to_string(warp) + " is outside a block of " +
                     std::to_string(header_.warps_per_block()) + " warps");
  }
  for (const std::uint32_t other : open_record_.warps) {
    if (other == warp) {
      throw InputError("warp " + std::to_string(warp) + " appears twice in thread block " +
                       std::to_string(open_record_.linear_index));
    }
  }
  if (!open_record_.warps.empty()) open_record_.begin.push_back(open_columns_.counts());
  open_record_.warps.push_back(warp);
  open_warp_id_ = open_record_.linear_index * header_.warps_per_block() + warp;
}

void TraceBuilder::append_columns(const ColumnView& columns) {
  const auto extend = [](auto& target, const auto& source) {
    target.insert(target.end(), source.begin(), source.end());
  };
  extend(open_columns_.instruction, columns.instruction);
  extend(open_columns_.active_mask, columns.active_mask);
  extend(open_columns_.memory_static, columns.memory_static);
  extend(open_columns_.memory_count, columns.memory_count);
  extend(open_columns_.sector, columns.sector);
  extend(open_columns_.store_bytes, columns.store_bytes);
}

void TraceBuilder::end_block() {
  if (open_record_.warps.empty()) {
    throw InputError("thread block " + std::to_string(open_record_.linear_index) + " has no warp");
  }
  open_record_.begin.push_back(open_columns_.counts());
  store(std::move(open_record_), open_columns_.view());
}

void TraceBuilder::store(BlockRecord record, const ColumnView& columns) {
  digest_.add(record.linear_index);
  for (std::size_t w = 0; w < record.warps.size(); ++w) {
    digest_.add(record.warps[w]);
    digest_.add(record.begin[w + 1].instructions);
  }
  digest_.add_bytes(columns.instruction.data(), columns.instruction.size_bytes());
  digest_.add_bytes(columns.active_mask.data(), columns.active_mask.size_bytes());
  digest_.add_bytes(columns.memory_count.data(), columns.memory_count.size_bytes());
  digest_.add_bytes(columns.sector.data(), columns.sector.size_bytes());
  digest_.add_bytes(columns.store_bytes.data(), columns.store_bytes.size_bytes());
  blocks_->append(std::move(record), columns);
}

MemorySpace TraceBuilder::space_of_lane(std::uint64_t address) const {
  const auto inside = [address](std::uint64_t base) {
    return base != 0 && address >= base && address - base < window_bytes;
  };
  if (inside(header_.shared_window)) return MemorySpace::shared;
  if (inside(header_.local_window)) return MemorySpace::local;
  return MemorySpace::global;
}

std::uint32_t TraceBuilder::resolve_generic(std::uint32_t row, const LaneAddresses& lanes) {
  auto space = MemorySpace::none;
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    const MemorySpace lane = space_of_lane(lanes.address[std::countr_zero(rest)]);
    space = space == MemorySpace::none || space == lane ? lane : MemorySpace::generic;
  }
  // An instruction with lanes in several spaces keeps its generic row.
  if (space == MemorySpace::none || space == MemorySpace::generic) return row;
  const auto [entry, is_new] =
      resolved_rows_.try_emplace(row * std::uint64_t{8} + static_cast<std::uint64_t>(space));
  if (is_new) {
    StaticInstruction resolved = instructions_[row];
    resolved.space = space;
    entry->second = intern(std::move(resolved));
  }
  return entry->second;
}

void TraceBuilder::count_access(std::uint32_t row, std::uint32_t count) {
  if (count > 0) ++row_counts_[row].active;
  if (!instructions_[row].uses_caches()) row_counts_[row].shared_wavefronts += count;
}

LaneAddresses TraceBuilder::lanes_in(MemorySpace space, const LaneAddresses& lanes) const {
  LaneAddresses kept = lanes;
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (space_of_lane(lanes.address[lane]) != space) kept.mask &= ~(1u << lane);
    // Through its window, local memory is addressed from the window's base.
    if (space == MemorySpace::local) kept.address[lane] -= header_.local_window;
  }
  return kept;
}

std::uint32_t TraceBuilder::append_access(ColumnBuffers& columns, std::uint64_t warp_id,
                                          std::uint32_t row, const LaneAddresses& lanes) {
  const bool is_generic = instructions_[row].space == MemorySpace::generic;
  if (is_generic) row = resolve_generic(row, lanes);
  const StaticInstruction& instruction = instructions_[row];
  std::vector<std::uint32_t>* bytes = instruction.writes_memory() ? &columns.store_bytes : nullptr;
  std::uint32_t count = 0;
  switch (instruction.space) {
    case MemorySpace::shared:
      count = shared_wavefronts(lanes, instruction.width);
      break;
    case MemorySpace::local:
      count = coalesce_local(is_generic ? lanes_in(MemorySpace::local, lanes) : lanes,
                             instruction.width, warp_id, columns.sector, bytes);
      break;
    case MemorySpace::generic:
      // Lanes in several spaces: what goes through the caches is kept, shared lanes are not.
      count =
          coalesce(lanes_in(MemorySpace::global, lanes), instruction.width, columns.sector, bytes) +
          coalesce_local(lanes_in(MemorySpace::local, lanes), instruction.width, warp_id,
                         columns.sector, bytes);
      break;
    default:
      count = coalesce(lanes, instruction.width, columns.sector, bytes);
      break;
  }
  columns.memory_count.push_back(static_cast<std::uint16_t>(count));
  count_access(row, count);
  return row;
}

void TraceBuilder::append_to(ColumnBuffers& columns, std::uint64_t warp_id, std::uint32_t row,
                             std::uint32_t active_mask, const LaneAddresses* lanes) {
  if (instructions_[row].is_memory()) {
    if (lanes != nullptr && lanes->mask != 0) {
      row = append_access(columns, warp_id, row, *lanes);
    } else {
      columns.memory_count.push_back(0);
    }
    columns.memory_static.push_back(row);
  }
  columns.instruction.push_back(row);
  columns.active_mask.push_back(active_mask);
  ++row_counts_[row].issued;
}

void TraceBuilder::check_columns(const BlockRecord& record, const ColumnView& columns) const {
  const auto require = [&record](bool holds, const char* what) {
    if (holds) return;
    throw InputError("thread block " + std::to_string(record.linear_index) + ": " + what +
                     "; the file is damaged, convert the original trace again");
  };
  require(record.begin.size() == record.warps.size() + 1 && !record.warps.empty(),
          "it has no warp or the warp table is cut");
  require(
      record.begin.front() == ColumnCounts{} &&
          record.counts() == ColumnCounts{columns.instruction.size(), columns.memory_static.size(),
                                          columns.sector.size(), columns.store_bytes.size()} &&
          columns.active_mask.size() == columns.instruction.size() &&
          columns.memory_count.size() == columns.memory_static.size(),
      "its columns have other lengths than its warps say");
  std::uint64_t memory = 0;
  std::uint64_t sectors = 0;
  std::uint64_t stores = 0;
  for (std::size_t w = 0; w < record.warps.size(); ++w) {
    require(record.warps[w] < header_.warps_per_block(), "a warp number is outside the block");
    const ColumnCounts& end = record.begin[w + 1];
    require(end.instructions >= record.begin[w].instructions &&
                end.instructions <= columns.instruction.size(),
            "the warp table is not in order");
    for (std::uint64_t i = record.begin[w].instructions; i < end.instructions; ++i) {
      const std::uint32_t row = columns.instruction[i];
      require(row < instructions_.size(), "an instruction is not in the instruction table");
      const StaticInstruction& instruction = instructions_[row];
      if (!instruction.is_memory()) continue;
      require(memory < columns.memory_static.size() && columns.memory_static[memory] == row,
              "the memory columns do not match the instructions");
      const std::uint16_t count = columns.memory_count[memory++];
      if (!instruction.uses_caches()) continue;
      sectors += count;
      if (instruction.writes_memory()) stores += count;
    }
    require(end.memory == memory && end.sectors == sectors && end.stores == stores,
            "the sector columns do not match the memory instructions");
  }
}

void TraceBuilder::add_block(BlockRecord record, const ColumnView& columns) {
  begin_record(record, record.linear_index);
  check_columns(record, columns);
  for (const std::uint32_t row : columns.instruction) ++row_counts_[row].issued;
  for (std::size_t i = 0; i < columns.memory_static.size(); ++i) {
    count_access(columns.memory_static[i], columns.memory_count[i]);
  }
  store(std::move(record), columns);
}

std::uint32_t TraceBuilder::renumber_registers() {
  std::map<std::uint16_t, std::uint16_t> dense;
  for (const StaticInstruction& instruction : instructions_) {
    for (const std::uint16_t reg : instruction.destinations) dense[reg] = 0;
    for (const std::uint16_t reg : instruction.sources) dense[reg] = 0;
  }
  std::uint16_t next = 0;
  for (auto& [original, number] : dense) number = next++;
  for (StaticInstruction& instruction : instructions_) {
    for (std::uint16_t& reg : instruction.destinations) reg = dense[reg];
    for (std::uint16_t& reg : instruction.sources) reg = dense[reg];
  }
  return next;
}

KernelTrace TraceBuilder::finish() {
  if (blocks_->size() == 0) {
    throw InputError("the trace has no thread block");
  }
  const std::uint32_t num_registers = renumber_registers();
  for (const StaticInstruction& instruction : instructions_) add_to(digest_, instruction);
  add_to(digest_, header_);
  return KernelTrace(std::move(header_), std::move(instructions_), std::move(row_counts_),
                     num_registers, std::move(blocks_), digest_.hex());
}

}  // namespace warpstack
