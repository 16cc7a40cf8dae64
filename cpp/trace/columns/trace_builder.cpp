#include "trace/columns/trace_builder.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <utility>

#include "common/error.h"

namespace warpstack::trace {
namespace {

/// The instruction's control fields as a number; 0 without them.
std::uint64_t packed_control(const StaticInstruction& instruction) {
  if (!instruction.control) return 0;
  const Control& control = *instruction.control;
  std::uint64_t result = 1;
  // No field has more bits.
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
  if (instruction.source_file != 0) key += " f" + std::to_string(instruction.source_file);
  if (instruction.inlined_at != 0) key += " i" + std::to_string(instruction.inlined_at);
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
  // Instructions without control fields keep their former digests.
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

std::uint64_t resolved_key(std::uint32_t row, MemorySpace space) {
  return row * std::uint64_t{8} + static_cast<std::uint64_t>(space);
}

/// Whether these can be the lanes in the written sectors of an instruction with these active lanes.
bool are_possible(const StaticInstruction& instruction, std::uint32_t active_mask,
                  std::span<const AtomicLanes> lanes) {
  std::uint32_t sum = 0;
  for (const AtomicLanes& of_sector : lanes) {
    if ((of_sector.word != 0) != instruction.is_atomic()) return false;
    if (of_sector.word > std::max<std::uint8_t>(of_sector.sector, 1)) return false;
    sum += of_sector.sector;
  }
  // Lanes of a generic access that reach shared memory have no sector.
  return sum <=
         (instruction.is_atomic() ? static_cast<std::uint32_t>(std::popcount(active_mask)) : 0u);
}

/// Barrier and, for waits, count plus one.
std::array<std::uint32_t, 3> step_numbers(const PhaseStep& step) {
  return {0, step.barrier, step.kind == PhaseStep::Kind::wait ? step.count + 1 : 0};
}

/// Barrier and the threads that it awaits.
std::array<std::uint32_t, 3> step_numbers(const BarrierStep& step) {
  const bool is_part = step.kind == BarrierStep::Kind::part;
  return {1, step.number, is_part ? std::numeric_limits<std::uint32_t>::max() : step.threads};
}

/// Shape and types, in bits enough for each.
std::array<std::uint32_t, 3> step_numbers(const ProductStep& step) {
  return {2, step.m << 20 | step.n << 10 | step.k,
          static_cast<std::uint32_t>(step.d) << 16 | static_cast<std::uint32_t>(step.a) << 8 |
              static_cast<std::uint32_t>(step.b)};
}

std::string named_opcode(const std::string& opcode, const PhaseStep& step) {
  return phase_opcode(opcode, step);
}
std::string named_opcode(const std::string& opcode, const BarrierStep& step) {
  return barrier_opcode(opcode, step);
}
std::string named_opcode(const std::string& opcode, const ProductStep& step) {
  return product_opcode(opcode, step);
}

std::array<std::uint32_t, 4> step_key(std::uint32_t row, const NamedStep& step) {
  const auto [kind, barrier, count] =
      std::visit([](const auto& one) { return step_numbers(one); }, step);
  return {row, kind, barrier, count};
}

}  // namespace

TraceBuilder::TraceBuilder(KernelHeader header, std::shared_ptr<StorageBudget> budget)
    : IssueLog(std::move(header)), blocks_(std::make_unique<BlockStorage>(std::move(budget))) {
  header_.validate();
}

std::uint32_t TraceBuilder::intern(StaticInstruction instruction) {
  header_.sources.check(instruction);
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
    const Effects effects = effects_of(instruction);
    has_sectors_.push_back(instruction.uses_caches());
    add_row(std::move(instruction), effects);
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

WarpEntry TraceBuilder::entry_of(std::uint64_t block, std::uint32_t warp,
                                 const ColumnCounts& counts) {
  const auto narrow = [&](std::uint64_t count) {
    if (count > std::numeric_limits<std::uint32_t>::max()) {
      throw InputError("warp " + std::to_string(warp) + " of thread block " +
                       std::to_string(block) + " has more than 4294967295 entries");
    }
    return static_cast<std::uint32_t>(count);
  };
  return {.number = warp,
          .instructions = narrow(counts.instructions),
          .memory = narrow(counts.memory),
          .sectors = narrow(counts.sectors),
          .stores = narrow(counts.stores)};
}

void TraceBuilder::end_warp() {
  const ColumnCounts end = open_columns_.counts();
  open_warps_.back() =
      entry_of(open_block_, open_warps_.back().number,
               {end.instructions - open_begin_.instructions, end.memory - open_begin_.memory,
                end.sectors - open_begin_.sectors, end.stores - open_begin_.stores});
}

void TraceBuilder::end_block() {
  if (open_warps_.empty()) {
    throw InputError("thread block " + std::to_string(open_block_) + " has no warp");
  }
  end_warp();
  const ColumnView columns = open_columns_.view();
  store(open_block_, open_warps_, {&columns, 1});
}

void TraceBuilder::store(std::uint64_t linear_index, std::span<const WarpEntry> warps,
                         std::span<const ColumnView> columns, bool is_distinct) {
  const std::span<const std::uint8_t> has_sectors(has_sectors_);
  add_to_digests(linear_index, warps,
                 blocks_->append(linear_index, warps, columns,
                                 is_distinct ? has_sectors.first(0) : has_sectors));
}

void TraceBuilder::add_to_digests(std::uint64_t linear_index, std::span<const WarpEntry> warps,
                                  const ColumnView& stored) {
  digest_.add(linear_index);
  for (const WarpEntry& warp : warps) {
    digest_.add(warp.number);
    digest_.add(warp.instructions);
  }
  digest_.add_bytes(stored.instruction.data(), stored.instruction.size_bytes());
  digest_.add_bytes(stored.active_mask.data(), stored.active_mask.size_bytes());
  digest_.add_bytes(stored.memory_count.data(), stored.memory_count.size_bytes());
  digest_.add_bytes(stored.sector.data(), stored.sector.size_bytes());
  digest_.add_bytes(stored.store_bytes.data(), stored.store_bytes.size_bytes());
  // Lanes and passes have digests of their own, because files of older versions have the digest of
  // the rest.
  if (!stored.atomic_lanes.empty()) {
    has_lanes_ = true;
    lanes_digest_.add(linear_index);
    lanes_digest_.add_bytes(stored.atomic_lanes.data(), stored.atomic_lanes.size_bytes());
  }
  if (!stored.l1_passes.empty()) {
    passes_digest_.add(linear_index);
    passes_digest_.add_bytes(stored.l1_passes.data(), stored.l1_passes.size_bytes());
  }
}

void TraceBuilder::add_recorded(std::uint64_t linear_index, std::span<const WarpEntry> warps,
                                std::span<const ColumnView> columns) {
  check_block_index(linear_index);
  store(linear_index, warps, columns);
}

void TraceBuilder::add_counts(std::span<const RowCounts> counts) {
  for (std::size_t row = 0; row < counts.size(); ++row) {
    row_counts_[row].issued += counts[row].issued;
    row_counts_[row].active += counts[row].active;
    row_counts_[row].shared_wavefronts += counts[row].shared_wavefronts;
  }
}

std::optional<std::uint32_t> TraceBuilder::find_resolved(std::uint32_t row,
                                                         MemorySpace space) const {
  const auto found = resolved_rows_.find(resolved_key(row, space));
  if (found == resolved_rows_.end()) return std::nullopt;
  return found->second;
}

std::uint32_t TraceBuilder::resolved_row(std::uint32_t row, MemorySpace space) {
  const auto [entry, is_new] = resolved_rows_.try_emplace(resolved_key(row, space));
  if (is_new) {
    StaticInstruction resolved = instructions_[row];
    resolved.space = space;
    entry->second = intern(std::move(resolved));
  }
  return entry->second;
}

std::uint32_t TraceBuilder::step_row(std::uint32_t row, const NamedStep& step) {
  const auto [entry, is_new] = step_rows_.try_emplace(step_key(row, step));
  if (is_new) {
    StaticInstruction named = instructions_[row];
    named.opcode =
        std::visit([&](const auto& one) { return named_opcode(named.opcode, one); }, step);
    entry->second = intern(std::move(named));
  }
  return entry->second;
}

std::optional<std::uint32_t> TraceBuilder::find_step_row(std::uint32_t row,
                                                         const NamedStep& step) const {
  const auto found = step_rows_.find(step_key(row, step));
  if (found == step_rows_.end()) return std::nullopt;
  return found->second;
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
  require(
      total == ColumnCounts{columns.instruction.size(), columns.memory_static.size(),
                            columns.sector.size(), columns.store_bytes.size()} &&
          columns.active_mask.size() == columns.instruction.size() &&
          columns.memory_count.size() == columns.memory_static.size() &&
          (columns.atomic_lanes.empty() ||
           columns.atomic_lanes.size() == columns.store_bytes.size()) &&
          (columns.l1_passes.empty() || columns.l1_passes.size() == columns.memory_static.size()),
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
      require(columns.l1_passes.empty() || columns.l1_passes[found.memory] == 0 ||
                  (columns.memory_count[found.memory] > 0 && instruction.uses_caches() &&
                   !instruction.is_atomic()),
              "an access without passes over the banks of L1 has some");
      const std::uint16_t count = columns.memory_count[found.memory++];
      if (!instruction.uses_caches()) continue;
      found.sectors += count;
      if (!instruction.writes_memory()) continue;
      if (!columns.atomic_lanes.empty() && found.stores + count <= columns.atomic_lanes.size()) {
        require(are_possible(instruction, columns.active_mask[found.instructions],
                             columns.atomic_lanes.subspan(found.stores, count)),
                "the lanes of an atomic's sectors are not those of an atomic");
      }
      found.stores += count;
    }
    require(found == end, "the sector columns do not match the memory instructions");
  }
}

void TraceBuilder::count_rows(const ColumnView& columns, std::uint64_t times) {
  for (const std::uint32_t row : columns.instruction) row_counts_[row].issued += times;
  for (std::size_t i = 0; i < columns.memory_static.size(); ++i) {
    count_access(columns.memory_static[i], columns.memory_count[i], times);
  }
}

void TraceBuilder::count_repeats() {
  std::vector<std::byte> scratch;
  for (std::uint32_t number = 0; number < repeats_.size(); ++number) {
    if (repeats_[number] == 0) continue;
    const std::size_t block = blocks_->first_of_class(number);
    const ColumnCounts& counts = blocks_->counts(block);
    count_rows(blocks_->read(block, {}, {counts.instructions, counts.memory, 0, 0}, scratch),
               repeats_[number]);
  }
  repeats_.clear();
}

void TraceBuilder::add_like(std::uint64_t linear_index, std::uint32_t number,
                            std::span<const std::int32_t> shifts) {
  check_block_index(linear_index);
  const auto fail = [linear_index](const std::string& what) {
    throw InputError("thread block " + std::to_string(linear_index) + ": " + what +
                     "; the file is damaged, convert the original trace again");
  };
  if (number >= blocks_->num_classes()) {
    fail("it repeats distinct block " + std::to_string(number) + " of " +
         std::to_string(blocks_->num_classes()));
  }
  const auto stored = blocks_->append_like(linear_index, number, shifts, has_sectors_);
  if (!stored) {
    fail("its " + std::to_string(shifts.size()) + " shifts are not those of distinct block " +
         std::to_string(number));
  }
  repeats_.resize(std::max<std::size_t>(repeats_.size(), number + std::size_t{1}));
  ++repeats_[number];
  add_to_digests(linear_index, blocks_->warps(blocks_->size() - 1), *stored);
}

void TraceBuilder::add_block(std::uint64_t linear_index, std::span<const WarpEntry> warps,
                             const ColumnView& columns, bool is_distinct) {
  check_block_index(linear_index);
  check_columns(linear_index, warps, columns);
  count_rows(columns, 1);
  std::vector<AtomicLanes> lanes;
  ColumnView complete = columns;
  if (columns.atomic_lanes.empty()) {
    lanes = even_lanes(columns);
    complete.atomic_lanes = lanes;
  }
  store(linear_index, warps, {&complete, 1}, is_distinct);
}

bool TraceBuilder::has_atomics() const {
  return std::ranges::any_of(instructions_, &StaticInstruction::is_cached_atomic);
}

std::vector<AtomicLanes> TraceBuilder::even_lanes(const ColumnView& columns) const {
  std::vector<AtomicLanes> lanes;
  if (!has_atomics()) return lanes;
  std::size_t memory = 0;
  for (std::size_t i = 0; i < columns.instruction.size(); ++i) {
    const StaticInstruction& instruction = instructions_[columns.instruction[i]];
    if (!instruction.is_memory()) continue;
    const std::size_t count = columns.memory_count[memory++];
    if (!instruction.writes_memory()) continue;
    if (!instruction.is_atomic()) {
      lanes.resize(lanes.size() + count);
      continue;
    }
    append_even_lanes(static_cast<std::uint32_t>(std::popcount(columns.active_mask[i])),
                      columns.store_bytes.subspan(lanes.size(), count), instruction.width, lanes);
  }
  return lanes;
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
  count_repeats();
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
  blocks_->seal();
  const std::uint32_t num_registers = renumber_registers();
  for (const StaticInstruction& instruction : instructions_) add_to(digest_, instruction);
  KernelHeader of_any_launch = header_;
  of_any_launch.launch_id = of_any_launch.stream = 0;
  Digest without_lanes = digest_;
  add_to(without_lanes, header_);
  // Kernels without atomics keep their former digests.
  if (has_lanes_) digest_.add_text(lanes_digest_.hex());
  // So do kernels whose accesses take the passes that their sectors imply.
  if (blocks_->has_passes()) digest_.add_text(passes_digest_.hex());
  Digest content = digest_;
  add_to(content, of_any_launch);
  add_to(digest_, header_);
  return KernelTrace(std::move(header_), std::move(instructions_), std::move(effects_),
                     std::move(row_counts_), num_registers, std::move(blocks_), digest_.hex(),
                     content.hex(), without_lanes.hex());
}

TraceBranch::TraceBranch(const TraceBuilder& trunk) : IssueLog(trunk.header()), trunk_(trunk) {}

void TraceBranch::begin() {
  for (auto row = static_cast<std::uint32_t>(instructions_.size()); row < trunk_.num_instructions();
       ++row) {
    add_row(trunk_.instruction(row), trunk_.effects(row));
  }
  row_counts_.assign(instructions_.size(), {});
}

std::uint32_t TraceBranch::resolved_row(std::uint32_t row, MemorySpace space) {
  const std::optional<std::uint32_t> known = trunk_.find_resolved(row, space);
  if (!known) throw NewRow{};
  return *known;
}

std::uint32_t TraceBranch::step_row(std::uint32_t row, const NamedStep& step) {
  const std::optional<std::uint32_t> known = trunk_.find_step_row(row, step);
  if (!known) throw NewRow{};
  return *known;
}

}  // namespace warpstack::trace
