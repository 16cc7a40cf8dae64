#include "trace/changes/program_change.h"

#include <algorithm>
#include <unordered_set>

#include "common/error.h"
#include "trace/changes/block_change.h"

namespace warpstack::trace {

void BlockChange::write(const Block& block, BlockWriter& writer) {
  write_each(block, writer, [](const Issued&) { return true; });
}

namespace {

/// Of so many loads of shared memory tiles of results leave one.
constexpr std::uint64_t loads_of_tile = 4;

bool is_shared_load(const StaticInstruction& row) {
  return row.is_memory() && row.space == MemorySpace::shared && row.kind == MemoryKind::load &&
         is_of_lanes(row);
}

/// Loads and stores of shared memory take the least passes that move their bytes.
class NoBankConflicts final : public BlockChange {
 public:
  using BlockChange::BlockChange;
  void write(const Block& block, BlockWriter& writer) override {
    write_each(block, writer, [this](Issued& one) {
      const StaticInstruction& row = rows_[one.row];
      if (one.is_memory && !row.uses_caches() && !row.is_atomic() && rows_.contains(one.row)) {
        one.count = least_passes(row, one);
      }
      return true;
    });
  }
};

/// Lanes of an atomic that meet at a word are added up first: one lane for each word and warp.
/// Those of shared memory take the least passes.
class CombinedAtomics final : public BlockChange {
 public:
  using BlockChange::BlockChange;
  void write(const Block& block, BlockWriter& writer) override {
    write_each(block, writer, [this](Issued& one) {
      const StaticInstruction& row = rows_[one.row];
      if (!one.is_memory || !row.is_atomic() || !rows_.contains(one.row)) return true;
      if (!row.uses_caches()) {
        one.count = least_passes(row, one);
        return true;
      }
      lanes_.clear();
      for (std::size_t i = 0; i < one.lanes.size(); ++i) {
        lanes_.push_back(combined(one.lanes[i], one.bytes[i], row.width));
      }
      one.lanes = lanes_;
      return true;
    });
  }

 private:
  std::vector<AtomicLanes> lanes_;
};

/// Threads make a tile of 4 x 4 results of what they load: 8 loads for 16 products, where each
/// product had two. Of each load of shared memory a warp executes every fourth.
class RegisterTiles final : public BlockChange {
 public:
  using BlockChange::BlockChange;
  void write(const Block& block, BlockWriter& writer) override {
    std::size_t warp = 0;
    times_.assign(rows_.trace.instructions().size(), 0);
    write_each(block, writer, [&](const Issued& one) {
      if (one.warp != warp) {
        warp = one.warp;
        times_.assign(times_.size(), 0);
      }
      if (!is_shared_load(rows_[one.row]) || !rows_.contains(one.row)) return true;
      return times_[one.row]++ % loads_of_tile == 0;
    });
  }

 private:
  std::vector<std::uint64_t> times_;
};

/// Instructions wait for nothing: they read no register, hold no barrier of their warp's scoreboard
/// and await none. If all do so, they write none, either.
class NoDependencies final : public BlockChange {
 public:
  using BlockChange::BlockChange;
  [[nodiscard]] StaticInstruction row(std::uint32_t number) const override {
    StaticInstruction result = rows_[number];
    if (!rows_.contains(number)) return result;
    result.sources.clear();
    if (rows_.is_chosen.empty()) result.destinations.clear();
    if (result.control) {
      result.control->stall = 1;
      result.control->yield = false;
      result.control->wait_mask = 0;
      result.control->counted_barrier = no_control_barrier;
      result.control->counted_most = 0;
      if (rows_.is_chosen.empty()) {
        result.control->write_barrier = result.control->read_barrier = no_control_barrier;
      }
    }
    return result;
  }
};

/// Warps do not meet at the barriers of their block.
class NoBarriers final : public BlockChange {
 public:
  using BlockChange::BlockChange;
  void write(const Block& block, BlockWriter& writer) override {
    write_each(block, writer, [this](const Issued& one) {
      const Effects& effects = rows_.effects(one.row);
      const bool is_barrier =
          effects.is_block_barrier || effects.barrier.kind != BarrierStep::Kind::none;
      return !(is_barrier && rows_.contains(one.row));
    });
  }
};

/// Registers and shared memory do not limit how many blocks an SM holds.
class FreeOccupancy final : public BlockChange {
 public:
  using BlockChange::BlockChange;
  void change_header(KernelHeader& header) const override {
    header.registers_per_thread = 0;
    header.shared_memory_bytes = 0;
  }
};

std::unique_ptr<BlockChange> change_of(ProgramChange change, const ChosenRows& rows) {
  switch (change) {
    case ProgramChange::coalesced:
      return coalesced_change(rows);
    case ProgramChange::padded_pitch:
      return padded_change(rows);
    case ProgramChange::no_bank_conflicts:
      return std::make_unique<NoBankConflicts>(rows);
    case ProgramChange::no_divergence:
      return divergence_change(rows);
    case ProgramChange::combined_atomics:
      return std::make_unique<CombinedAtomics>(rows);
    case ProgramChange::private_atomics:
      return private_atomics_change(rows);
    case ProgramChange::kept_in_block:
      return kept_in_block_change(rows);
    case ProgramChange::kept_in_registers:
      return kept_in_registers_change(rows);
    case ProgramChange::register_tiles:
      return std::make_unique<RegisterTiles>(rows);
    case ProgramChange::cheap_division:
      return cheap_division_change(rows);
    case ProgramChange::no_dependencies:
      return std::make_unique<NoDependencies>(rows);
    case ProgramChange::no_barriers:
      return std::make_unique<NoBarriers>(rows);
    case ProgramChange::free_occupancy:
      return std::make_unique<FreeOccupancy>(rows);
  }
  throw InputError("there is no such change of the program");
}

Block block_of(const KernelTrace& trace, std::size_t position, std::vector<std::byte>& scratch) {
  return {trace.blocks().linear_index(position), trace.blocks().warps(position),
          trace.block(position, scratch)};
}

}  // namespace

KernelTrace changed(const KernelTrace& trace, ProgramChange change,
                    std::span<const std::uint8_t> is_chosen, std::shared_ptr<StorageBudget> budget,
                    const InterruptCheck& interrupt) {
  const std::size_t num_rows = trace.instructions().size();
  if (!is_chosen.empty() && is_chosen.size() != num_rows) {
    throw InputError("a choice among " + std::to_string(is_chosen.size()) +
                     " instructions for a table of " + std::to_string(num_rows));
  }
  const ChosenRows rows{trace, is_chosen};
  const std::unique_ptr<BlockChange> how = change_of(change, rows);
  const BlockStorage& blocks = trace.blocks();
  std::vector<std::byte> scratch;
  const auto check = [&](std::size_t block) {
    if (interrupt && block % 64 == 0) interrupt();
  };
  if (how->looks()) {
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      check(b);
      how->look(block_of(trace, b, scratch));
    }
    how->end_of_look();
  }
  KernelHeader header = trace.header();
  how->change_header(header);
  TraceBuilder builder(std::move(header), std::move(budget));
  for (std::uint32_t row = 0; row < num_rows; ++row) {
    // Rows that differed in their registers alone are told apart by their places.
    StaticInstruction one = how->row(row);
    while (builder.intern(one) != row) one.pc += 1;
  }
  how->add_rows(builder);
  BlockWriter writer;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    check(b);
    const bool is_like = how->keeps_classes() && !blocks.is_first_of_class(b);
    if (is_like) {
      builder.add_like(blocks.linear_index(b), blocks.class_of(b), blocks.shifts(b, scratch));
      continue;
    }
    const Block block = block_of(trace, b, scratch);
    writer.begin_block();
    how->write(block, writer);
    writer.end_block();
    builder.add_block(block.linear_index, writer.warps(), writer.columns(), how->keeps_classes());
  }
  return builder.finish();
}

std::vector<RowRoom> room_for_changes(const KernelTrace& trace, const InterruptCheck& interrupt) {
  const BlockStorage& blocks = trace.blocks();
  std::vector<std::uint64_t> times(blocks.num_classes());
  for (std::size_t b = 0; b < blocks.size(); ++b) ++times[blocks.class_of(b)];
  std::vector<RowRoom> room(trace.instructions().size());
  const ChosenRows rows{trace, {}};
  const std::unique_ptr<BlockChange> padded = padded_change(rows);
  const std::uint64_t threads = trace.header().threads_per_block();
  const std::vector<std::uint32_t> division = divisions_of(trace.instructions());
  HeldAccesses held;
  std::vector<std::uint8_t> may_keep;
  for (const StaticInstruction& row : trace.instructions()) {
    may_keep.push_back(may_keep_in_block(row));
  }
  std::unordered_set<std::uint64_t> loaded;
  std::vector<std::byte> scratch;
  for (std::uint32_t number = 0; number < times.size(); ++number) {
    if (interrupt && number % 64 == 0) interrupt();
    const Block block = block_of(trace, blocks.first_of_class(number), scratch);
    const std::uint64_t repeats = times[number];
    padded->look(block);
    held.find(block, rows);
    loaded.clear();
    std::size_t place = 0;
    std::size_t warp = 0;
    std::vector<std::uint64_t> loads(room.size());
    block.for_each(trace.instructions(), [&](const Issued& one) {
      const StaticInstruction& row = rows[one.row];
      RowRoom& found = room[one.row];
      if (one.warp != warp) {
        warp = one.warp;
        loads.assign(room.size(), 0);
      }
      if (held.is_held(place++)) found.held += repeats;
      const bool is_of_division = division[one.row] != no_division;
      // The last row of a sequence stays.
      if (is_of_division && one.row + 1 < division.size() &&
          division[one.row + 1] == division[one.row]) {
        found.divisions += repeats;
      }
      const std::uint64_t lanes =
          std::min<std::uint64_t>(warp_size, threads - warp_size * block.warps[one.warp].number);
      if (one.mask != 0 && one.active() < lanes) found.partial += repeats;
      const Effects& effects = rows.effects(one.row);
      if (effects.is_block_barrier || effects.barrier.kind != BarrierStep::Kind::none) {
        found.waits += repeats;
      }
      if (!one.is_memory || one.count == 0) return;
      if (is_shared_load(row) && loads[one.row]++ % loads_of_tile != 0) found.tiled += repeats;
      if (!row.uses_caches()) {
        const std::uint64_t beyond = repeats * (one.count - least_passes(row, one));
        (row.is_atomic() ? found.meeting_lanes : found.passes) += beyond;
      } else if (row.is_atomic()) {
        found.atomics += repeats;
        for (std::size_t i = 0; i < one.lanes.size(); ++i) {
          const AtomicLanes& lanes_here = one.lanes[i];
          found.meeting_lanes +=
              repeats * (lanes_here.sector - combined(lanes_here, one.bytes[i], row.width).sector);
        }
      } else if (is_of_lanes(row)) {
        if (may_keep[one.row] != 0) {
          for (const std::uint64_t sector : one.sectors) {
            if (!loaded.insert(sector).second) found.again += repeats;
          }
        }
        const std::uint32_t least = least_sectors(row, one);
        found.sectors += repeats * (one.count > least ? one.count - least : 0);
      }
    });
  }
  padded->end_of_look();
  const std::vector<std::uint64_t> pitches = pitches_of(*padded);
  for (std::size_t row = 0; row < room.size(); ++row) room[row].pitch = pitches[row];
  return room;
}

}  // namespace warpstack::trace
