#include "trace/columns/block_sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/error.h"
#include "kernels.h"
#include "simt/arithmetic/atomics.h"
#include "simt/hand_written.h"
#include "simt/state/launch.h"

// Launches that record some of their blocks: these are the blocks of the whole trace.

namespace warpstack::simt {
namespace {

using testing::HandWritten;
using trace::BlockSample;

constexpr std::uint64_t num_blocks = 700;
constexpr std::uint64_t block_size = 64;
constexpr std::uint64_t num_threads = num_blocks * block_size;

enum class Extra : std::uint8_t { nothing, atomic };

/// cells[from[g]] = cells[from[g]] + g for thread g, and perhaps an atomic operation on the cell.
HandWritten cell_kernel(std::uint64_t from, std::uint64_t cells, Extra extra) {
  HandWritten kernel;
  const std::uint32_t from_base = kernel.constant(from, 8);
  const std::uint32_t cell_base = kernel.constant(cells, 8);
  const std::uint32_t four = kernel.constant(4);
  const std::uint32_t threads = kernel.constant(block_size);
  const std::uint32_t block = kernel.slot();
  const std::uint32_t thread = kernel.slot();
  const std::uint32_t value = kernel.slot();
  const std::uint32_t address = kernel.slot(8);
  constexpr LaneForm wide{.operation = Operation::mad_wide, .type = Type::u32};
  kernel.special(Special::ctaid, block);
  kernel.special(Special::tid, thread);
  kernel.lanes({.operation = Operation::mad_lo, .type = Type::u32}, thread,
               {block, threads, thread});
  kernel.lanes(wide, address, {thread, four, from_base});
  kernel.access(Action::load, AddressSpace::global, address, true, value);
  kernel.row("LDG.E");
  kernel.lanes(wide, address, {value, four, cell_base});
  kernel.access(Action::load, AddressSpace::global, address, true, value);
  kernel.row("LDG.E");
  kernel.lanes({.operation = Operation::add, .type = Type::u32}, value, {value, thread});
  kernel.row("IADD");
  kernel.access(Action::store, AddressSpace::global, address, true, value);
  kernel.row("STG.E");
  if (extra == Extra::atomic) {
    kernel.access(Action::atomic, AddressSpace::global, address, true, none);
    kernel.program().memory.back().atomic = find_atomic("add", Type::u32, false);
    kernel.program().memory.back().operand_b = thread;
    kernel.row("RED.E.ADD");
  }
  kernel.step(Action::exit);
  kernel.row("EXIT");
  return kernel;
}

struct Settings {
  std::uint64_t sample_blocks = 1;
  bool run_others = true;
  unsigned threads = 1;
  std::uint64_t instructions_ahead = 100;
  bool cooperative = false;
  bool trace = true;
  Extra extra = Extra::nothing;
  Dim3 cluster{0, 0, 0};
};

struct Outcome {
  std::vector<std::uint32_t> cells;
  std::optional<KernelTrace> trace;
  std::uint64_t warp_instructions = 0;
  std::uint64_t done = 0;  ///< blocks, as the launch tells
  std::uint64_t all = 0;
};

/// Thread g works on cell g, but some threads of some blocks on a cell of another block.
std::vector<std::uint32_t> places() {
  std::vector<std::uint32_t> from(num_threads);
  for (std::uint32_t t = 0; t < num_threads; ++t) {
    from[t] = t % 1000 == 7 ? (t * 31) % num_threads : t;
  }
  return from;
}

Outcome run(const Settings& settings) {
  Device device(std::uint64_t{1} << 22);
  const std::vector<std::uint32_t> from = places();
  const std::vector<std::uint32_t> ones(num_threads, 1);
  const auto upload = [&](const std::vector<std::uint32_t>& values) {
    const std::uint64_t address = device.memory.allocate(4 * values.size());
    device.memory.write(address, values.data(), 4 * values.size());
    return address;
  };
  const std::uint64_t indices = upload(from);
  const std::uint64_t cells = upload(ones);
  HandWritten kernel = cell_kernel(indices, cells, settings.extra);
  LaunchOptions options;
  options.grid = {num_blocks, 1, 1};
  options.block = {block_size, 1, 1};
  options.cluster = settings.cluster;
  options.cooperative = settings.cooperative;
  options.trace = settings.trace;
  options.sample_blocks = settings.sample_blocks;
  options.run_others = settings.run_others;
  options.storage = warpstack::testing::memory_budget();
  options.num_threads = settings.threads;
  options.instructions_ahead = settings.instructions_ahead;
  Outcome outcome;
  options.progress = [&](std::uint64_t done, std::uint64_t all) {
    outcome.done = done;
    outcome.all = all;
  };
  LaunchResult result = launch(device, kernel.program(), {}, options);
  outcome.trace = std::move(result.trace);
  outcome.warp_instructions = result.warp_instructions;
  outcome.cells.resize(num_threads);
  device.memory.read(cells, outcome.cells.data(), 4 * num_threads);
  return outcome;
}

template <class T>
std::vector<T> copy_of(std::span<const T> values) {
  return {values.begin(), values.end()};
}

/// Expects the blocks of `sample`, column by column as in the whole trace.
void expect_blocks_of(const KernelTrace& whole, const KernelTrace& traced,
                      const BlockSample& sample) {
  EXPECT_EQ(traced.header().grid, whole.header().grid);
  ASSERT_EQ(traced.blocks().size(), sample.size());
  EXPECT_EQ(traced.num_missing_blocks(), num_blocks - sample.size());
  std::vector<std::byte> ours;
  std::vector<std::byte> theirs;
  for (std::uint64_t position = 0; position < sample.size(); ++position) {
    const std::uint64_t number = sample.block(position);
    ASSERT_EQ(traced.blocks().linear_index(position), number);
    ASSERT_EQ(traced.blocks().warps(position).size(), whole.blocks().warps(number).size());
    const trace::ColumnView left = traced.block(position, ours);
    const trace::ColumnView right = whole.block(number, theirs);
    ASSERT_EQ(copy_of(left.instruction), copy_of(right.instruction)) << number;
    ASSERT_EQ(copy_of(left.active_mask), copy_of(right.active_mask)) << number;
    ASSERT_EQ(copy_of(left.memory_static), copy_of(right.memory_static)) << number;
    ASSERT_EQ(copy_of(left.memory_count), copy_of(right.memory_count)) << number;
    ASSERT_EQ(copy_of(left.sector), copy_of(right.sector)) << number;
    ASSERT_EQ(copy_of(left.store_bytes), copy_of(right.store_bytes)) << number;
  }
  // The counts by row are those of the recorded blocks alone.
  EXPECT_EQ(traced.totals().instructions * num_blocks, whole.totals().instructions * sample.size());
}

TEST(BlockSampleLaunch, RecordsTheSampleAndRunsAll) {
  for (const Extra extra : {Extra::nothing, Extra::atomic}) {
    const Outcome whole = run({.extra = extra});
    EXPECT_EQ(whole.trace->num_missing_blocks(), 0u);
    for (const std::uint64_t one_in : {2u, 3u, 100u}) {
      const BlockSample sample = BlockSample::one_in(num_blocks, one_in);
      std::string digest;
      for (const unsigned threads : {1u, 2u, 5u}) {
        for (const std::uint64_t ahead : {1u, 100u, 3000u}) {
          const Outcome outcome = run({.sample_blocks = one_in,
                                       .threads = threads,
                                       .instructions_ahead = ahead,
                                       .extra = extra});
          expect_blocks_of(*whole.trace, *outcome.trace, sample);
          EXPECT_EQ(outcome.cells, whole.cells);
          EXPECT_EQ(outcome.warp_instructions, whole.warp_instructions);
          EXPECT_EQ(outcome.done, num_blocks);
          if (digest.empty()) digest = outcome.trace->digest();
          EXPECT_EQ(outcome.trace->digest(), digest);
        }
      }
    }
  }
}

TEST(BlockSampleLaunch, OthersDoNotRun) {
  // Each block reads cells that nobody changes before it, but for the few of other blocks.
  const std::vector<std::uint32_t> from = places();
  for (const std::uint64_t one_in : {2u, 5u}) {
    const BlockSample sample = BlockSample::one_in(num_blocks, one_in);
    std::vector<std::uint32_t> expected(num_threads, 1);
    for (std::uint32_t t = 0; t < num_threads; ++t) {
      if (sample.has(t / block_size)) expected[from[t]] += t;
    }
    std::string digest;
    for (const unsigned threads : {1u, 3u}) {
      for (const std::uint64_t ahead : {1u, 100u}) {
        const Outcome outcome = run({.sample_blocks = one_in,
                                     .run_others = false,
                                     .threads = threads,
                                     .instructions_ahead = ahead});
        EXPECT_EQ(outcome.cells, expected);
        EXPECT_EQ(outcome.done, sample.size());
        EXPECT_EQ(outcome.all, sample.size());
        ASSERT_EQ(outcome.trace->blocks().size(), sample.size());
        EXPECT_EQ(outcome.trace->blocks().linear_index(0), sample.block(0));
        EXPECT_EQ(outcome.trace->num_missing_blocks(), num_blocks - sample.size());
        if (digest.empty()) digest = outcome.trace->digest();
        EXPECT_EQ(outcome.trace->digest(), digest);
      }
    }
    // Addresses do not depend on what the others wrote.
    expect_blocks_of(*run({}).trace, *run({.sample_blocks = one_in, .run_others = false}).trace,
                     sample);
  }
}

TEST(BlockSampleLaunch, BlocksThatDependOnEachOtherAreRecordedWhole) {
  const Outcome whole = run({.cooperative = true});
  EXPECT_EQ(run({.sample_blocks = 4, .cooperative = true}).trace->digest(), whole.trace->digest());
  // Samples of clusters have whole ones.
  const Outcome pairs = run({.sample_blocks = 4, .cluster = {2, 1, 1}});
  EXPECT_EQ(pairs.trace->header().cluster, (Dim3{2, 1, 1}));
  const BlockSample of_pairs = BlockSample::one_in(num_blocks, 4, 2);
  EXPECT_EQ(pairs.trace->num_missing_blocks(), num_blocks - of_pairs.size());
  for (const BlockSample::Run& each : of_pairs.runs()) {
    EXPECT_EQ(each.first % 2, 0u);
    EXPECT_EQ(each.blocks % 2, 0u);
  }
  // A cooperative launch is not sampled, but blocks of a plain one in turns are.
  const Outcome alone = run({.sample_blocks = 4});
  EXPECT_EQ(alone.trace->num_missing_blocks(),
            num_blocks - BlockSample::one_in(num_blocks, 4).size());
}

std::string refusal_of(const Settings& settings) {
  try {
    run(settings);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(BlockSampleLaunch, RefusesToLeaveOutBlocksThatOthersMaySee) {
  const std::string begin =
      "kernel by_hand: run_others = False would leave out 525 of its 700 blocks, and ";
  const std::string end = "; let all blocks run (run_others=True), which records no more of them";
  EXPECT_EQ(refusal_of({.sample_blocks = 4, .run_others = false, .extra = Extra::atomic}),
            begin +
                "it has an atomic operation on global memory (step 9, op), by which a block may "
                "see what others do" +
                end);
  EXPECT_EQ(refusal_of({.sample_blocks = 4, .run_others = false, .cooperative = true}),
            begin + "blocks of a cooperative launch wait for each other" + end);
  // All blocks run.
  EXPECT_EQ(refusal_of({.run_others = false, .extra = Extra::atomic}), "");
}

TEST(BlockSampleLaunch, AutomaticSamplesFollowTheSizeOfTheLaunch) {
  const KernelProgram program;
  LaunchOptions options;
  options.sample_blocks = automatic_sample;
  const auto recorded = [&](std::uint64_t blocks) {
    options.grid = {blocks, 1, 1};
    return blocks_to_record(program, options).size();
  };
  EXPECT_EQ(recorded(1), 1u);
  EXPECT_EQ(recorded(1024), 1024u);
  EXPECT_EQ(recorded(1025), 513u);
  EXPECT_EQ(recorded(10 * 1024), 1024u);
  EXPECT_EQ(recorded(16 * 1024), 1024u);
  EXPECT_EQ(recorded(1'000'000), 62'500u);  // one in 16
}

}  // namespace
}  // namespace warpstack::simt
