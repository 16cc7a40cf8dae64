#include "interval/interval.h"

#include <gtest/gtest.h>

#include "common/error.h"
#include "kernels.h"
#include "trace/columns/program.h"

namespace warpstack::interval {
namespace {

using testing::header;
using testing::make_kernel;
using testing::memory_budget;

memory::MemoryProfile empty_profile(const trace::KernelTrace& trace) {
  memory::MemoryProfile profile;
  profile.per_row.resize(trace.instructions().size());
  return profile;
}

/// Two chains of dependent instructions after two independent ones.
trace::KernelTrace chain() {
  return make_kernel(2, 64,
                     {{"FADD", {1}, {}, {}},
                      {"FADD", {2}, {}, {}},
                      {"FADD", {3}, {1}, {}},
                      {"FADD", {4}, {3}, {}},
                      {"EXIT", {}, {}, {}}});
}

TEST(Intervals, EndWhereAnInstructionWaits) {
  // Latency 4, one per cycle: issue 0, 1, 5 (waits for cycle 4), 10 (waits for 9), 11.
  const trace::KernelTrace trace = chain();
  const IntervalColumns columns =
      build_intervals(trace, {0, 0}, Latencies(5, 4.0), empty_profile(trace), IntervalOptions{});
  EXPECT_EQ(columns.instructions, (std::vector<double>{2, 1, 2}));
  EXPECT_EQ(columns.stall_cycles, (std::vector<double>{3, 4, 0}));
  EXPECT_EQ(columns.cause_row, (std::vector<std::int64_t>{0, 2, -1}));
  const WarpGroup summary = group_warps(trace, Latencies(5, 4.0), 1.0)[0];
  EXPECT_EQ(summary.cycles, 12);
  EXPECT_EQ(summary.instructions, 5u);
}

TEST(Intervals, IssueWidthShortensTheSlots) {
  // Two per cycle: issue 0, 0.5, 5, 10, 10.5.
  const trace::KernelTrace trace = chain();
  IntervalOptions options;
  options.issue_rate = 2;
  const IntervalColumns columns =
      build_intervals(trace, {1, 1}, Latencies(5, 4.0), empty_profile(trace), options);
  EXPECT_EQ(columns.stall_cycles, (std::vector<double>{4, 4.5, 0}));
}

TEST(Intervals, ShortStallsMergeAndAreNotLost) {
  const trace::KernelTrace trace = chain();
  IntervalOptions options;
  options.merge_threshold = 3;
  const IntervalColumns columns =
      build_intervals(trace, {0, 0}, Latencies(5, 4.0), empty_profile(trace), options);
  EXPECT_EQ(columns.instructions, (std::vector<double>{3, 2}));
  EXPECT_EQ(columns.stall_cycles, (std::vector<double>{7, 0}));
}

TEST(Intervals, LatencyZeroStillTakesACycle) {
  const trace::KernelTrace trace = chain();
  const IntervalColumns columns =
      build_intervals(trace, {0, 0}, Latencies(5, 0.0), empty_profile(trace), IntervalOptions{});
  EXPECT_EQ(columns.size(), 1u) << "done + 1 is the next slot";
}

TEST(Intervals, MissesAreMeansOfTheInstruction) {
  const trace::KernelTrace trace = make_kernel(
      1, 64,
      {{"LDG.E", {4}, {2}, [](std::uint64_t t) { return 128 * t; }}, {"FADD", {5}, {4}, {}}});
  memory::MemoryProfile memory = empty_profile(trace);
  memory::InstructionCounters& load = memory.per_row[0];
  load.active_executions = 2;
  load.l2_requests = 48;
  load.l2_request_sectors = 96;
  load.dram_requests = 12;
  load.dram_sectors = 24;
  load.events = {1, 0, 1};
  const Latencies cycles = latencies(trace, memory, gpu::ClassLatencies{}, {25, 120, 220});
  EXPECT_EQ(cycles[0], (25 + 340) / 2.0);
  IntervalColumns columns = build_intervals(trace, {0, 0}, cycles, memory, IntervalOptions{});
  EXPECT_EQ(columns.read_misses[0], 24);
  EXPECT_EQ(columns.dram_requests[0], 6);
  EXPECT_EQ(columns.llc_miss_ratio[0], 0.25);
  EXPECT_EQ(columns.read_bytes[0], 64);
  EXPECT_EQ(columns.dram_bytes[0], 64);
  EXPECT_EQ(columns.stall_by_cause[1][0], 182.5 / 2);
  IntervalOptions whole_lines;
  whole_lines.l1_unit_bytes = 128;
  columns = build_intervals(trace, {0, 0}, cycles, memory, whole_lines);
  EXPECT_EQ(columns.read_bytes[0], 128);
}

TEST(GroupWarps, ThreadsDoNotChangeTheResult) {
  // Warps of odd blocks issue the second instruction too.
  std::vector<std::uint8_t> issued(160);
  for (std::size_t warp = 0; warp < issued.size(); ++warp) issued[warp] = warp / 4 % 2;
  trace::TraceBuilder builder(header(40, 128), memory_budget());
  const std::uint32_t row = builder.intern(trace::make_static_instruction(
      0, "FADD", std::vector<std::uint16_t>{1}, std::vector<std::uint16_t>{1}));
  append_program(builder,
                 std::vector<trace::ProgramStep>{{row, {}, {}, {}}, {row, issued, {}, {}}});
  const trace::KernelTrace trace = builder.finish();
  for (const unsigned threads : {1u, 4u}) {
    const auto groups = group_warps(trace, nominal_latencies(trace), 1.0, threads);
    ASSERT_EQ(groups.size(), 2u);
    EXPECT_EQ(groups[0].first, (trace::WarpPosition{0, 0}));
    EXPECT_EQ(groups[1].first, (trace::WarpPosition{1, 0}));
    EXPECT_EQ(groups[0].count, 80u);
    EXPECT_EQ(groups[1].count, 80u);
    EXPECT_EQ(groups[0].instructions, 1u);
    EXPECT_EQ(groups[1].cycles, 27);
  }
}

TEST(GroupWarps, InterruptReachesTheCaller) {
  struct Stop {};
  const trace::KernelTrace trace = chain();
  EXPECT_THROW(group_warps(trace, Latencies(5, 4.0), 1.0, 3, [] { throw Stop{}; }), Stop);
}

}  // namespace
}  // namespace warpstack::interval
