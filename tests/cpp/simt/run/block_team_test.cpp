#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "common/error.h"
#include "kernels.h"
#include "simt/arithmetic/atomics.h"
#include "simt/hand_written.h"
#include "simt/state/launch.h"

// Blocks on several threads have the outcome of blocks on one: these tests compare them.

namespace warpstack::simt {
namespace {

using testing::HandWritten;

constexpr std::uint64_t num_blocks = 150;
constexpr std::uint64_t block_size = 64;
constexpr std::uint64_t num_threads = num_blocks * block_size;
constexpr std::uint64_t num_cells = num_threads + 64;

/// The arrays of a launch, one after the other: thread t reads cell from[t] and writes cell to[t].
struct Table {
  std::vector<std::uint32_t> from = std::vector<std::uint32_t>(num_threads);
  std::vector<std::uint32_t> to = std::vector<std::uint32_t>(num_threads);
  std::vector<std::uint32_t> cells = std::vector<std::uint32_t>(num_cells, 1);
};

/// What is left of a launch.
struct Outcome {
  std::string error;
  std::vector<std::uint32_t> cells;
  std::string digest;
  std::uint64_t warp_instructions = 0;
  std::uint64_t thread_instructions = 0;
  std::uint64_t time = 0;
  std::vector<std::string> notes;

  bool operator==(const Outcome&) const = default;
};

enum class Extra : std::uint8_t { nothing, atomic, clock };

/// cells[to[t]] = cells[from[t]] + t, perhaps with more: an atomic operation on the last cell, or
/// the clock in the cell.
HandWritten table_kernel(std::uint64_t from, std::uint64_t to, std::uint64_t cells, Extra extra) {
  HandWritten kernel;
  const std::uint32_t from_base = kernel.constant(from, 8);
  const std::uint32_t to_base = kernel.constant(to, 8);
  const std::uint32_t cell_base = kernel.constant(cells, 8);
  const std::uint32_t counter = kernel.constant(cells + 4 * (num_cells - 1), 8);
  const std::uint32_t one = kernel.constant(1);
  const std::uint32_t four = kernel.constant(4);
  const std::uint32_t threads = kernel.constant(block_size);
  const std::uint32_t block = kernel.slot();
  const std::uint32_t thread = kernel.slot();
  const std::uint32_t index = kernel.slot();
  const std::uint32_t value = kernel.slot();
  const std::uint32_t address = kernel.slot(8);
  constexpr LaneForm wide{.operation = Operation::mad_wide, .type = Type::u32};
  constexpr LaneForm add{.operation = Operation::add, .type = Type::u32};
  kernel.special(Special::ctaid, block);
  kernel.special(Special::tid, thread);
  kernel.lanes({.operation = Operation::mad_lo, .type = Type::u32}, thread,
               {block, threads, thread});
  kernel.lanes(wide, address, {thread, four, from_base});
  kernel.access(Action::load, AddressSpace::global, address, true, index);
  kernel.row("LDG.E");
  kernel.lanes(wide, address, {index, four, cell_base});
  kernel.access(Action::load, AddressSpace::global, address, true, value);
  kernel.row("LDG.E");
  kernel.lanes(add, value, {value, thread});
  kernel.row("IADD");
  if (extra == Extra::clock) {
    kernel.special(Special::clock, index);
    kernel.lanes(add, value, {value, index});
  } else if (extra == Extra::atomic) {
    kernel.access(Action::atomic, AddressSpace::global, counter, true, none);
    kernel.program().memory.back().atomic = find_atomic("add", Type::u32, false);
    kernel.program().memory.back().operand_b = one;
    kernel.program().memory.back().result = index;
    kernel.row("ATOMG.E.ADD");
    kernel.lanes(add, value, {value, index});
  }
  kernel.lanes(wide, address, {thread, four, to_base});
  kernel.access(Action::load, AddressSpace::global, address, true, index);
  kernel.row("LDG.E");
  kernel.lanes(wide, address, {index, four, cell_base});
  kernel.access(Action::store, AddressSpace::global, address, true, value);
  kernel.row("STG.E");
  kernel.step(Action::exit);
  kernel.row("EXIT");
  return kernel;
}

struct Settings {
  Extra extra = Extra::nothing;
  bool cells_are_written = true;
  bool proceeds = false;
  std::uint64_t step_limit = 1'000'000;
};

Outcome outcome_of(const Table& table, unsigned threads, const Settings& settings = {},
                   std::uint64_t instructions_ahead = 100) {
  Device device(std::uint64_t{1} << 20);
  const auto upload = [&](const std::vector<std::uint32_t>& values) {
    const std::uint64_t address = device.memory.allocate(4 * values.size());
    device.memory.write(address, values.data(), 4 * values.size());
    return address;
  };
  const std::uint64_t from = upload(table.from);
  const std::uint64_t to = upload(table.to);
  const std::uint64_t cells = settings.cells_are_written
                                  ? upload(table.cells)
                                  : device.memory.allocate(4 * table.cells.size());
  HandWritten kernel = table_kernel(from, to, cells, settings.extra);
  LaunchOptions options;
  options.grid = {num_blocks, 1, 1};
  options.block = {block_size, 1, 1};
  options.storage = warpstack::testing::memory_budget();
  options.num_threads = threads;
  options.instructions_ahead = instructions_ahead;
  options.step_limit = settings.step_limit;
  if (settings.proceeds) options.on_fault = OnFault::proceed;
  Outcome outcome;
  options.note = [&](const Note& note) { outcome.notes.push_back(note.text()); };
  std::uint64_t blocks_done = 0;
  options.progress = [&](std::uint64_t done, std::uint64_t all) {
    EXPECT_GT(done, blocks_done);
    EXPECT_EQ(all, num_blocks);
    blocks_done = done;
  };
  try {
    const LaunchResult result = launch(device, kernel.program(), {}, options);
    outcome.digest = result.trace->digest();
    outcome.warp_instructions = result.warp_instructions;
    outcome.thread_instructions = result.thread_instructions;
    outcome.time = result.time;
    EXPECT_EQ(blocks_done, num_blocks);
  } catch (const InputError& error) {
    outcome.error = error.what();
  }
  outcome.cells.resize(num_cells);
  // Also where it stopped in the middle.
  const Allocation& allocation = *device.memory.find(cells);
  for (std::uint64_t i = 0; i < num_cells; ++i) {
    const bool known = allocation.written == nullptr || allocation.written[4 * i] != 0;
    if (known) device.memory.read(cells + 4 * i, &outcome.cells[i], 4);
  }
  return outcome;
}

void expect_equal_outcomes(const Table& table, const Settings& settings = {}) {
  const Outcome expected = outcome_of(table, 1, settings);
  for (const unsigned threads : {2u, 3u, 5u}) {
    for (const std::uint64_t ahead : {1u, 30u, 100u}) {
      const Outcome outcome = outcome_of(table, threads, settings, ahead);
      EXPECT_EQ(outcome.error, expected.error);
      EXPECT_EQ(outcome.cells, expected.cells);
      EXPECT_EQ(outcome.notes, expected.notes);
      EXPECT_TRUE(outcome == expected) << threads << " threads, " << ahead;
    }
  }
}

/// Each thread reads and writes the cell of its number.
Table own_cells() {
  Table table;
  for (std::uint32_t t = 0; t < num_threads; ++t) table.from[t] = table.to[t] = t;
  return table;
}

TEST(BlockTeam, IndependentBlocks) {
  const Table table = own_cells();
  expect_equal_outcomes(table);
  const Outcome outcome = outcome_of(table, 2);
  for (std::uint32_t t = 0; t < num_threads; ++t) EXPECT_EQ(outcome.cells[t], t + 1);
  // Two warps per block of 13 instructions.
  EXPECT_EQ(outcome.warp_instructions, num_blocks * 2 * 13);
}

TEST(BlockTeam, EachBlockReadsWhatTheOneBeforeItWrote) {
  Table table;
  for (std::uint32_t t = 0; t < num_threads; ++t) {
    table.from[t] = t;
    table.to[t] = t + block_size;
  }
  expect_equal_outcomes(table);
  // The sum of the numbers of the thread and of those before it at the same place of their blocks.
  const Outcome outcome = outcome_of(table, 2);
  EXPECT_EQ(outcome.cells[block_size], 1u);
  EXPECT_EQ(outcome.cells[3 * block_size + 1], 1u + (1 + 65 + 129));
}

TEST(BlockTeam, RandomDependences) {
  std::mt19937 random(7);
  for (const std::uint32_t percent : {0u, 1u, 5u, 50u}) {
    for (int repetition = 0; repetition < 4; ++repetition) {
      Table table = own_cells();
      for (std::uint32_t t = 0; t < num_threads; ++t) {
        if (random() % 100 < percent) table.from[t] = random() % num_threads;
        if (random() % 100 < percent) table.to[t] = random() % num_threads;
      }
      expect_equal_outcomes(table);
    }
  }
}

TEST(BlockTeam, AllWriteOneCell) {
  Table table = own_cells();
  for (std::uint32_t t = 0; t < num_threads; ++t) table.to[t] = num_threads;
  expect_equal_outcomes(table);
  EXPECT_EQ(outcome_of(table, 3).cells[num_threads], num_threads);  // the last thread's
}

TEST(BlockTeam, AtomicsComeInTheOrderOfTheBlocks) {
  expect_equal_outcomes(own_cells(), {.extra = Extra::atomic});
  const Outcome outcome = outcome_of(own_cells(), 2, {.extra = Extra::atomic});
  EXPECT_EQ(outcome.cells.back(), num_threads + 1);
}

TEST(BlockTeam, ClocksShowHowFarTheLaunchIs) {
  expect_equal_outcomes(own_cells(), {.extra = Extra::clock});
}

TEST(BlockTeam, AFaultIsThatOfTheFirstBlockThatHasOne) {
  for (const std::uint32_t block : {1u, 17u, 39u}) {
    Table table = own_cells();
    table.from[block * block_size + 5] = 1u << 20;
    table.to[38 * block_size] = 1u << 21;
    expect_equal_outcomes(table);
    EXPECT_TRUE(outcome_of(table, 2).error.starts_with(
        block < 38 ? "kernel by_hand (step 6, op), block (" + std::to_string(block) +
                         ", 0, 0), thread (5, 0, 0): out-of-bounds load"
                   : "kernel by_hand (step 11, op), block (38, 0, 0)"));
  }
}

TEST(BlockTeam, ReadsOfWhatNobodyHasWritten) {
  expect_equal_outcomes(own_cells(), {.cells_are_written = false});
  expect_equal_outcomes(own_cells(), {.cells_are_written = false, .proceeds = true});
}

TEST(BlockTeam, TheStepLimitHoldsForAllBlocksTogether) {
  const std::uint64_t all = num_blocks * 2 * 13;
  for (const std::uint64_t limit :
       {all, all - 1, all / 2, std::uint64_t{30}, std::uint64_t{25}, std::uint64_t{51}}) {
    expect_equal_outcomes(own_cells(), {.step_limit = limit});
  }
}

TEST(BlockTeam, AnInterruptionEndsTheLaunch) {
  struct Interruption {};
  Device device(std::uint64_t{1} << 20);
  const std::uint64_t cells = device.memory.allocate(4 * num_cells);
  device.memory.fill(cells, 0, 4 * num_cells);
  HandWritten kernel = table_kernel(cells, cells, cells, Extra::nothing);
  LaunchOptions options;
  options.grid = {num_blocks, 1, 1};
  options.block = {block_size, 1, 1};
  options.trace = false;
  options.num_threads = 2;
  options.instructions_ahead = 1;
  int calls = 0;
  // The first block runs before there is a team.
  options.interrupt = [&] {
    if (++calls == 2) throw Interruption{};
  };
  EXPECT_THROW(launch(device, kernel.program(), {}, options), Interruption);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace warpstack::simt
