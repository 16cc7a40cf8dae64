#include "trace/columns/trace_builder.h"

#include <gtest/gtest.h>

#include "common/error.h"
#include "kernels.h"
#include "trace/columns/column_batch.h"
#include "trace/columns/program.h"

namespace warpstack::trace {
namespace {

using testing::header;
using testing::make_kernel;
using testing::memory_budget;

std::uint64_t four_bytes(std::uint64_t thread) { return 0x1000 + 4 * thread; }

TEST(TraceBuilder, CountsAndDigest) {
  const auto build = [] {
    return make_kernel(3, 64, {{"LDG.E", {4}, {2}, four_bytes}, {"STG.E", {}, {2, 4}, four_bytes}});
  };
  const KernelTrace trace = build();
  EXPECT_EQ(trace.num_warps(), 6u);
  EXPECT_EQ(trace.totals().instructions, 12u);
  EXPECT_EQ(trace.totals().sectors, 48u);
  EXPECT_EQ(trace.totals().stores, 24u);
  EXPECT_EQ(trace.num_memory_instructions(), 12u);
  EXPECT_EQ(trace.row_counts()[0].active, 6u);
  EXPECT_EQ(trace.digest(), build().digest());
}

TEST(TraceBuilder, RegistersBecomeDense) {
  const KernelTrace trace = make_kernel(1, 32, {{"LDG.E.64", {40}, {80}, four_bytes}});
  EXPECT_EQ(trace.instructions()[0].destinations, (std::vector<std::uint16_t>{0, 1}));
  EXPECT_EQ(trace.instructions()[0].sources, (std::vector<std::uint16_t>{2, 3}));
  EXPECT_EQ(trace.num_registers(), 4u);
}

TEST(TraceBuilder, BlocksComeInOrderAndOnce) {
  TraceBuilder builder(header(3, 32), memory_budget());
  const std::uint32_t row = builder.intern(make_static_instruction(0, "EXIT", {}, {}));
  builder.begin_block(1);
  builder.begin_warp(0);
  EXPECT_THROW(builder.begin_warp(0), InputError);
  EXPECT_THROW(builder.begin_warp(1), InputError);
  builder.append(row, 1);
  builder.end_block();
  EXPECT_THROW(builder.begin_block(1), InputError);
  EXPECT_THROW(builder.begin_block(0), InputError);
  EXPECT_THROW(builder.begin_block(3), InputError);
  const KernelTrace trace = builder.finish();
  EXPECT_EQ(trace.num_missing_blocks(), 2u);
}

TEST(TraceBuilder, EmptyTracesAndBlocksAreErrors) {
  TraceBuilder builder(header(3, 32), memory_budget());
  builder.begin_block(0);
  EXPECT_THROW(builder.end_block(), InputError);
  EXPECT_THROW(TraceBuilder(header(1, 32), memory_budget()).finish(), InputError);
  EXPECT_THROW(TraceBuilder(header(1, 2048), memory_budget()), InputError);
}

TEST(ColumnBatch, RoundTripKeepsTheDigest) {
  const KernelTrace trace = make_kernel(
      7, 96,
      {{"LDG.E", {4}, {2}, four_bytes}, {"MOV", {1}, {}, {}}, {"STG.E", {}, {2, 4}, four_bytes}});
  for (const std::size_t step : {1, 3, 100}) {
    TraceBuilder builder(trace.header(), memory_budget());
    for (const StaticInstruction& instruction : trace.instructions()) builder.intern(instruction);
    for (std::size_t first = 0; first < trace.blocks().size(); first += step) {
      const BlockBatch batch =
          read_batch(trace, first, std::min(first + step, trace.blocks().size()));
      add_batch(builder, {batch.block, batch.warp, batch.instructions, batch.memory, batch.sectors,
                          batch.stores, batch.columns.view()});
    }
    EXPECT_EQ(builder.finish().digest(), trace.digest());
  }
}

TEST(ColumnBatch, AtomicsKeepTheirLanes) {
  // Warp 0 adds to 8 words, warp 1 to one; the store has no lanes.
  const auto some = [](std::uint64_t thread) {
    return 0x1000 + (thread < 32 ? 4 * (thread % 8) : 0);
  };
  const KernelTrace trace =
      make_kernel(3, 64, {{"STG.E", {}, {2, 4}, four_bytes}, {"ATOMG.E.ADD", {4}, {2, 6}, some}});
  ASSERT_TRUE(trace.has_atomics());
  EXPECT_NE(trace.digest(), trace.digest_without_lanes());
  const std::vector<AtomicLanes> warps{{}, {}, {}, {}, {32, 4}, {}, {}, {}, {}, {32, 32}};
  const auto rebuild = [&trace](auto change) {
    TraceBuilder builder(trace.header(), memory_budget());
    for (const StaticInstruction& instruction : trace.instructions()) builder.intern(instruction);
    BlockBatch batch = read_batch(trace, 0, 1);
    change(batch.columns.atomic_lanes);
    add_batch(builder, {batch.block, batch.warp, batch.instructions, batch.memory, batch.sectors,
                        batch.stores, batch.columns.view()});
    return builder.finish();
  };
  using Lanes = std::vector<AtomicLanes>;
  const KernelTrace again = rebuild([&](Lanes& lanes) { EXPECT_EQ(lanes, warps); });
  // Without lanes they are spread evenly, here as they were; the digest is that of older files.
  const KernelTrace spread = rebuild([](Lanes& lanes) { lanes.clear(); });
  EXPECT_EQ(spread.digest(), again.digest());
  EXPECT_EQ(spread.digest_without_lanes(), again.digest_without_lanes());
  EXPECT_THROW(rebuild([](Lanes& lanes) { lanes[4].sector = 33; }), InputError);
  EXPECT_THROW(rebuild([](Lanes& lanes) { lanes[4].word = 0; }), InputError);
  EXPECT_THROW(rebuild([](Lanes& lanes) { lanes[4] = {3, 4}; }), InputError);
  EXPECT_THROW(rebuild([](Lanes& lanes) { lanes[0] = {1, 1}; }), InputError);
  EXPECT_THROW(rebuild([](Lanes& lanes) { lanes.pop_back(); }), InputError);
}

TEST(ColumnBatch, ContradictionsAreErrors) {
  const KernelTrace trace = make_kernel(2, 64, {{"STG.E", {}, {2, 4}, four_bytes}});
  const auto attempt = [&trace](auto change) {
    BlockBatch batch = read_batch(trace, 0, 2);
    change(batch);
    TraceBuilder builder(trace.header(), memory_budget());
    for (const StaticInstruction& instruction : trace.instructions()) builder.intern(instruction);
    add_batch(builder, {batch.block, batch.warp, batch.instructions, batch.memory, batch.sectors,
                        batch.stores, batch.columns.view()});
  };
  EXPECT_NO_THROW(attempt([](BlockBatch&) {}));
  EXPECT_THROW(attempt([](BlockBatch& b) { b.columns.instruction[0] = 99; }), InputError);
  EXPECT_THROW(attempt([](BlockBatch& b) { b.columns.memory_static[0] = 99; }), InputError);
  EXPECT_THROW(attempt([](BlockBatch& b) { b.columns.memory_count[0] += 1; }), InputError);
  EXPECT_THROW(attempt([](BlockBatch& b) { b.columns.active_mask.pop_back(); }), InputError);
  EXPECT_THROW(attempt([](BlockBatch& b) { b.columns.sector.pop_back(); }), InputError);
  EXPECT_THROW(attempt([](BlockBatch& b) { b.columns.store_bytes.pop_back(); }), InputError);
  EXPECT_THROW(attempt([](BlockBatch& b) { b.instructions[0] = ~std::uint32_t{0}; }), InputError);
  EXPECT_THROW(attempt([](BlockBatch& b) { b.sectors[0] += 1; }), InputError);
  EXPECT_THROW(attempt([](BlockBatch& b) { b.warp[1] = 7; }), InputError);
  EXPECT_THROW(attempt([](BlockBatch& b) { b.warp.pop_back(); }), InputError);
  EXPECT_THROW(attempt([](BlockBatch& b) { std::swap(b.block[0], b.block[3]); }), InputError);
}

TEST(Program, ArraysMustFitTheLaunch) {
  TraceBuilder builder(header(2, 64), memory_budget());
  const std::uint32_t row = builder.intern(make_static_instruction(
      0, "LDG.E", std::vector<std::uint16_t>{4}, std::vector<std::uint16_t>{2}));
  const std::vector<std::uint32_t> masks(3, 1);
  const ProgramStep step{row, {}, masks, {}};
  EXPECT_THROW(append_program(builder, {&step, 1}), InputError);
}

}  // namespace
}  // namespace warpstack::trace
