#include "trace/trace_builder.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <utility>

#include "common/error.h"

namespace warpstack::trace {
namespace {

/// Its control fields as a number; 0 without them.
std::uint64_t packed_control(const StaticInstruction& instruction) {
  if (!instruction.control) return 0;
  const Control& control = *instruction.control;
  std::uint64_t result = 1;
  // None has more bits.
  for_each_control_field(
      [&](const char*, auto field) { result = result << 6 | std::uint8_t{control.*field}; });
  return result;
}

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
  if (instruction.control) key += ':' + std::to_string(packed_control(instruction));
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
  // Others have the digests that they always had.
  if (instruction.control) digest.add(packed_control(instruction));
}

void add_to(Digest& digest, const KernelHeader& header) {
  digest.add_text(header.name);
  digest.add_text(header.source);
  for (const std::uint64_t value :
       {header.launch_id, header.grid[0], header.grid[1], header.grid[2], header.block[0],
        header.block[1], header.block[2], header.shared_memory_bytes, header.registers_per_thread,
        header.binary_version, header.stream, header.shared_window, header.local_window}) {
    digest.add(value);
  }
}

}  // namespace

TraceBuilder::TraceBuilder(KernelHeader header, std::shared_ptr<StorageBudget> budget)
    : header_(std::move(header)), blocks_(std::make_unique<BlockStorage>(std::move(budget))) {
  header_.validate();
}

std::uint32_t TraceBuilder::intern(StaticInstruction instruction) {
  if (instruction.control) {
    try {
      instruction.control->validate();
    } catch (const InputError& error) {
      throw InputError("instruction " + instruction.opcode + " at pc " +
                       std::to_string(instruction.pc) + ": " + error.what());
    }
  }
  const auto next = static_cast<std::uint32_t>(instructions_.size());
  const auto [entry, is_new] = rows_.try_emplace(key_of(instruction), next);
  if (is_new) {
    instructions_.push_back(std::move(instruction));
    row_counts_.emplace_back();
  }
  return entry->second;
}

void TraceBuilder::check_block_index(std::uint64_t linear_index) {
  if (linear_index >= header_.num_blocks()) {
    throw InputError("thread block " + std::to_string(linear_index) + " is outside the grid of " +
                     std::to_string(header_.num_blocks()) + " blocks");
  }
  if (linear_index < next_block_) {
    throw InputError("thread block " + std::to_string(linear_index) +
                     " appears twice or out of order");
  }
  next_block_ = linear_index + 1;
}

void TraceBuilder::begin_block(std::uint64_t linear_index) {
  check_block_index(linear_index);
  open_block_ = linear_index;
  open_warps_.clear();
  open_columns_.clear();
}

void TraceBuilder::begin_warp(std::uint32_t warp) {
  if (warp >= header_.warps_per_block()) {
    throw InputError("warp " + std::to_string(warp) + " is outside a block of " +
                     std::to_string(header_.warps_per_block()) + " warps");
  }
  if (!open_warps_.empty()) {
    if (warp <= open_warps_.back().number) {
      throw InputError("warp " + std::to_string(warp) + " of thread block " +
                       std::to_string(open_block_) + " appears twice or out of order");
    }
    end_warp();
  }
  open_warps_.push_back({.number = warp});
  open_begin_ = open_columns_.counts();
  open_warp_id_ = open_block_ * header_.warps_per_block() + warp;
}

void TraceBuilder::end_warp() {
  const ColumnCounts end = open_columns_.counts();
  const auto count = [this](std::uint64_t from, std::uint64_t to) {
    if (to - from > std::numeric_limits<std::uint32_t>::max()) {
      throw InputError("warp " + std::to_string(open_warps_.back().number) + " of thread block " +
                       std::to_string(open_block_) + " has more than 4294967295 entries");
    }
    return static_cast<std::uint32_t>(to - from);
  };
  WarpEntry& warp = open_warps_.back();
  warp.instructions = count(open_begin_.instructions, end.instructions);
  warp.memory = count(open_begin_.memory, end.memory);
  warp.sectors = count(open_begin_.sectors, end.sectors);
  warp.stores = count(open_begin_.stores, end.stores);
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
  if (open_warps_.empty()) {
    throw InputError("thread block " + std::to_string(open_block_) + " has no warp");
  }
  end_warp();
  store(open_block_, open_warps_, open_columns_.view());
}

void TraceBuilder::store(std::uint64_t linear_index, std::span<const WarpEntry> warps,
                         const ColumnView& columns) {
  digest_.add(linear_index);
  for (const WarpEntry& warp : warps) {
    digest_.add(warp.number);
    digest_.add(warp.instructions);
  }
  digest_.add_bytes(columns.instruction.data(), columns.instruction.size_bytes());
  digest_.add_bytes(columns.active_mask.data(), columns.active_mask.size_bytes());
  digest_.add_bytes(columns.memory_count.data(), columns.memory_count.size_bytes());
  digest_.add_bytes(columns.sector.data(), columns.sector.size_bytes());
  digest_.add_bytes(columns.store_bytes.data(), columns.store_bytes.size_bytes());
  blocks_->append(linear_index, warps, columns);
}

std::uint32_t TraceBuilder::resolve_generic(std::uint32_t row, const LaneAddresses& lanes) {
  auto space = MemorySpace::none;
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    const MemorySpace lane = header_.space_of(lanes.address[std::countr_zero(rest)]);
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
      count = coalesce_local(is_generic ? header_.lanes_in(MemorySpace::local, lanes) : lanes,
                             instruction.width, warp_id, columns.sector, bytes);
      break;
    case MemorySpace::generic:
      // Lanes in several spaces: what goes through the caches is kept, shared lanes are not.
      count = coalesce(header_.lanes_in(MemorySpace::global, lanes), instruction.width,
                       columns.sector, bytes) +
              coalesce_local(header_.lanes_in(MemorySpace::local, lanes), instruction.width,
                             warp_id, columns.sector, bytes);
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
  append_plain(columns, row, active_mask);
}

void TraceBuilder::append_touched(ColumnBuffers& columns, std::uint32_t row,
                                  std::uint32_t active_mask,
                                  std::span<const std::uint64_t> addresses) {
  const std::uint32_t count = coalesce(addresses, instructions_[row].width, columns.sector);
  columns.memory_count.push_back(static_cast<std::uint16_t>(count));
  columns.memory_static.push_back(row);
  count_access(row, count);
  append_plain(columns, row, active_mask);
}

void TraceBuilder::append_moved(ColumnBuffers& columns, std::uint32_t row,
                                std::uint32_t active_mask, std::span<const MovedBytes> moved) {
  std::vector<std::uint32_t>* const bytes =
      instructions_[row].writes_memory() ? &columns.store_bytes : nullptr;
  const std::uint32_t count = coalesce(moved, columns.sector, bytes);
  columns.memory_count.push_back(static_cast<std::uint16_t>(count));
  columns.memory_static.push_back(row);
  count_access(row, count);
  append_plain(columns, row, active_mask);
}

void TraceBuilder::append_wavefronts(ColumnBuffers& columns, std::uint32_t row,
                                     std::uint32_t active_mask, std::uint32_t count) {
  columns.memory_count.push_back(static_cast<std::uint16_t>(std::min(count, 0xffffu)));
  columns.memory_static.push_back(row);
  count_access(row, columns.memory_count.back());
  append_plain(columns, row, active_mask);
}

void TraceBuilder::check_columns(std::uint64_t linear_index, std::span<const WarpEntry> warps,
                                 const ColumnView& columns) const {
  const auto require = [linear_index](bool holds, const char* what) {
    if (holds) return;
    throw InputError("thread block " + std::to_string(linear_index) + ": " + what +
                     "; the file is damaged, convert the original trace again");
  };
  require(!warps.empty(), "it has no warp");
  ColumnCounts total;
  for (const WarpEntry& warp : warps) total += warp.counts();
  require(total == ColumnCounts{columns.instruction.size(), columns.memory_static.size(),
                                columns.sector.size(), columns.store_bytes.size()} &&
              columns.active_mask.size() == columns.instruction.size() &&
              columns.memory_count.size() == columns.memory_static.size(),
          "its columns have other lengths than its warps say");
  ColumnCounts end;
  ColumnCounts found;
  for (std::size_t w = 0; w < warps.size(); ++w) {
    require(warps[w].number < header_.warps_per_block(), "a warp number is outside the block");
    require(w == 0 || warps[w].number > warps[w - 1].number, "its warps are not in order");
    end += warps[w].counts();
    for (; found.instructions < end.instructions; ++found.instructions) {
      const std::uint32_t row = columns.instruction[found.instructions];
      require(row < instructions_.size(), "an instruction is not in the instruction table");
      const StaticInstruction& instruction = instructions_[row];
      if (!instruction.is_memory()) continue;
      require(
          found.memory < columns.memory_static.size() && columns.memory_static[found.memory] == row,
          "the memory columns do not match the instructions");
      const std::uint16_t count = columns.memory_count[found.memory++];
      if (!instruction.uses_caches()) continue;
      found.sectors += count;
      if (instruction.writes_memory()) found.stores += count;
    }
    require(found == end, "the sector columns do not match the memory instructions");
  }
}

void TraceBuilder::add_block(std::uint64_t linear_index, std::span<const WarpEntry> warps,
                             const ColumnView& columns) {
  check_block_index(linear_index);
  check_columns(linear_index, warps, columns);
  for (const std::uint32_t row : columns.instruction) ++row_counts_[row].issued;
  for (std::size_t i = 0; i < columns.memory_static.size(); ++i) {
    count_access(columns.memory_static[i], columns.memory_count[i]);
  }
  store(linear_index, warps, columns);
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
  const bool has_instruction =
      std::ranges::any_of(row_counts_, [](const RowCounts& counts) { return counts.issued > 0; });
  if (!has_instruction) throw InputError("the trace has no instruction");
  const auto odd = std::ranges::find_if(instructions_, [this](const StaticInstruction& one) {
    return one.control.has_value() != instructions_.front().control.has_value();
  });
  if (odd != instructions_.end()) {
    throw InputError("instruction " + odd->opcode + " at pc " + std::to_string(odd->pc) +
                     (odd->control ? " has control fields and others have none"
                                   : " has no control fields and others have them"));
  }
  const std::uint32_t num_registers = renumber_registers();
  for (const StaticInstruction& instruction : instructions_) add_to(digest_, instruction);
  add_to(digest_, header_);
  return KernelTrace(std::move(header_), std::move(instructions_), std::move(row_counts_),
                     num_registers, std::move(blocks_), digest_.hex());
}

}  // namespace warpstack::trace
