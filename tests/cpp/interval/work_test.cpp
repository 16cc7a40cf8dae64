#include "interval/work.h"

#include <gtest/gtest.h>

#include "kernels.h"

namespace warpstack::interval {
namespace {

using testing::make_kernel;

KernelWork work_of(const trace::KernelTrace& trace, double latency, double rate) {
  const std::size_t rows = trace.instructions().size();
  return {trace, Latencies(rows, latency), Latencies(rows, 25), rate};
}

TEST(KernelWork, BlocksTakeSlotsAsTheyGetFree) {
  // Three blocks of one warp with four instructions, two SMs with one slot: four cycles with both
  // at work, four with one.
  const trace::KernelTrace trace = make_kernel(
      3, 32,
      {{"MOV", {1}, {}, {}}, {"MOV", {2}, {}, {}}, {"MOV", {3}, {}, {}}, {"MOV", {4}, {}, {}}});
  const PhaseList list = work_of(trace, 1, 1).play(2, 1);
  ASSERT_EQ(list.phases.size(), 2u);
  EXPECT_DOUBLE_EQ(list.first_all_warps, 2);
  EXPECT_DOUBLE_EQ(list.first_warps, 1);
  EXPECT_DOUBLE_EQ(list.phases[0].all_warps, 2);
  EXPECT_DOUBLE_EQ(list.phases[1].all_warps, 1);
  ASSERT_EQ(list.sms.size(), 1u);  // the other one has less of everything
  EXPECT_DOUBLE_EQ(list.sms[0].depth[0], 4);
  EXPECT_DOUBLE_EQ(list.sms[0].depth[1], 4);
  EXPECT_DOUBLE_EQ(list.span, 8);
}

TEST(KernelWork, NoInstructionIsLost) {
  const trace::KernelTrace trace =
      make_kernel(101, 96, {{"MOV", {1}, {}, {}}, {"MOV", {2}, {1}, {}}, {"MOV", {3}, {2}, {}}});
  for (const double rate : {0.3, 1.0, 4.0}) {
    for (const std::uint32_t sms : {1u, 3u, 200u}) {
      const PhaseList list = work_of(trace, 7, rate).play(sms, 2);
      EXPECT_NEAR(list.instructions, 101 * 3 * 3, 1e-6);
      for (const Phase& phase : list.phases) {
        EXPECT_LE(phase.warps, 6 * (1 + 1e-12));
        EXPECT_LE(phase.all_warps, sms * 6 * (1 + 1e-12));
      }
      for (const SmWork& sm : list.sms) {
        double depth = 0;
        for (std::size_t p = 0; p < sm.depth.size(); ++p) {
          depth += sm.depth[p] * list.phases[p].warps;
        }
        EXPECT_NEAR(depth, sm.instructions, 1e-6);
      }
    }
  }
}

TEST(KernelWork, WarpsWaitForTheirStores) {
  // Two instructions in 2 cycles, which take 100: the store is done a cycle after the result.
  const auto address = [](std::uint64_t) { return std::uint64_t{0x7000'0000}; };
  const trace::KernelTrace trace =
      make_kernel(1, 32, {{"MOV", {1}, {}, {}}, {"STG.E", {}, {2, 3}, address}});
  const Latencies hundred(2, 100);
  const PhaseList list =
      KernelWork(trace, hundred, hundred, 1, 1, {}, {.for_stores = true}).play(1, 1);
  EXPECT_DOUBLE_EQ(list.span, 101);
  EXPECT_DOUBLE_EQ(list.alone_cycles, 101.0 / 2);
  EXPECT_DOUBLE_EQ(list.store_cycles, 1.0 / 2);
  const PhaseList without = KernelWork(trace, hundred, hundred, 1).play(1, 1);
  EXPECT_DOUBLE_EQ(without.span, 100);
  EXPECT_DOUBLE_EQ(without.store_cycles, 0);
}

TEST(KernelWork, AtomicsStopTheirWarps) {
  // Nothing needs their results; the second one issues in the cycle after the first one's 100.
  const auto address = [](std::uint64_t) { return std::uint64_t{0x7000'0000}; };
  const trace::KernelTrace trace =
      make_kernel(1, 32, {{"RED.E.ADD", {}, {2, 3}, address}, {"RED.E.ADD", {}, {2, 3}, address}});
  const Latencies hundred(2, 100);
  const auto span = [&](const gpu::WarpWaits& waits) {
    return KernelWork(trace, hundred, hundred, 1, 1, {}, waits).play(1, 1).span;
  };
  EXPECT_DOUBLE_EQ(span({}), 2);
  EXPECT_DOUBLE_EQ(span({.for_stores = false, .for_atomics = true}), 102);
  EXPECT_DOUBLE_EQ(span({.for_stores = true, .for_atomics = true}), 201);
  memory::MemoryProfile memory;
  memory.simulated_instructions = 2;
  memory.per_row.resize(2);
  memory.per_row[0].l2_requests = 2;
  EXPECT_DOUBLE_EQ(demands_of(trace, memory).posted_requests, 1);
  DemandOptions options;
  options.waits.for_atomics = true;
  EXPECT_DOUBLE_EQ(demands_of(trace, memory, options).posted_requests, 0);
}

TEST(KernelWork, TimeOffTheLoadStoreUnit) {
  // Results take 10 cycles. The loads issue in cycles 11 and 12, the sum at 23, the barrier at 24.
  // After the second load, with nothing else under way, the sum comes at 11, the barrier at 12, the
  // After the second load, with nothing else under way, the sum comes at 11, the barrier at 12, the
  // product when the barrier's latency has passed, at 23, and its result at 33.
  const auto address = [](std::uint64_t) { return std::uint64_t{0x7000'0000}; };
  const trace::KernelTrace trace = make_kernel(3, 32,
                                               {{"MOV", {1}, {}, {}},
                                                {"LDG.E", {2}, {1}, address},
                                                {"LDG.E", {3}, {4}, address},
                                                {"FADD", {5}, {3}, {}},
                                                {"BAR.SYNC", {}, {}, {}},
                                                {"FMUL", {6}, {5}, {}}});
  const PhaseList list = work_of(trace, 10, 1).play(2, 1);
  const TimeOffUnit& off = list.off_units[0];
  EXPECT_DOUBLE_EQ(off.warps, 1 / 6.0);
  EXPECT_DOUBLE_EQ(off.before, 11);
  EXPECT_DOUBLE_EQ(off.after, 12 + 11 + 10);
  EXPECT_DOUBLE_EQ(off.of_parts, 11 + 12 + 11 + 10);
  // Off the unit of floats: the sum issues at 23, the barrier a cycle later, and after its latency
  // the product.
  const TimeOffUnit& floats = list.off_units[1 + static_cast<std::size_t>(trace::OpClass::fp32)];
  EXPECT_DOUBLE_EQ(floats.before, 23);
  EXPECT_DOUBLE_EQ(floats.after, 10);
  EXPECT_DOUBLE_EQ(floats.of_parts, 23 + 1 + 11 + 10);
  // One of the two SMs has two blocks, one after the other.
  ASSERT_EQ(list.sms.size(), 1u);
  EXPECT_DOUBLE_EQ(list.sms[0].rounds, 2);
  EXPECT_DOUBLE_EQ(list.sms[0].round_instructions, 12);
}

TEST(KernelWork, BusySmsAreCounted) {
  // Three blocks of a warp with four instructions, two SMs: both for four cycles, one for four
  // more.
  const trace::KernelTrace trace = make_kernel(
      3, 32,
      {{"MOV", {1}, {}, {}}, {"MOV", {2}, {}, {}}, {"MOV", {3}, {}, {}}, {"MOV", {4}, {}, {}}});
  const PhaseList list = work_of(trace, 4, 1).play(2, 1);
  EXPECT_DOUBLE_EQ(list.phases[0].busy_sms, 2);
  EXPECT_DOUBLE_EQ(list.phases[1].busy_sms, 1);
  // 8 instructions on one SM, 4 on the other one.
  EXPECT_DOUBLE_EQ(list.mean_depth[0], 4);
  EXPECT_DOUBLE_EQ(list.mean_depth[1], 2);
}

TEST(Demands, AtomicsOnOneWordAndTheHottestSlice) {
  // A reduction by 32 lanes on one word has 32 requests of a sector; one of two slices gets them.
  const auto address = [](std::uint64_t) { return std::uint64_t{0x7000'0000}; };
  const trace::KernelTrace trace = make_kernel(1, 32, {{"RED.E.ADD", {}, {2, 3}, address}});
  memory::MemoryProfile memory;
  memory.simulated_instructions = 1;
  memory::InstructionCounters& counters = memory.per_row.emplace_back();
  counters.executions = counters.active_executions = 1;
  counters.requests = counters.l2_requests = 1;
  counters.sectors = counters.l2_request_sectors = 1;
  memory.atomic_lanes = {32};
  memory.slice_turns = {0, 32};
  memory.slice_crowding = 1.5;
  const ResourceDemands demands = demands_of(trace, memory);
  EXPECT_DOUBLE_EQ(demands.lsu_cycles, 32);
  EXPECT_DOUBLE_EQ(demands.write_requests, 32);
  EXPECT_DOUBLE_EQ(demands.write_bytes, 32 * 32);
  EXPECT_DOUBLE_EQ(demands.hottest_slice_turns, 64);  // as if the other one got as many
  EXPECT_DOUBLE_EQ(demands.crowded_slice_turns, 48);
}

TEST(Demands, SectorsOfAnAtomicHaveTheirOwnRequests) {
  // 32 lanes on 16 words of one line: two requests of each of two sectors.
  const auto address = [](std::uint64_t thread) { return 0x7000'0000 + 4 * (thread % 16); };
  const trace::KernelTrace trace = make_kernel(1, 32, {{"RED.E.ADD", {}, {2, 3}, address}});
  memory::MemoryProfile memory;
  memory.simulated_instructions = 1;
  memory::InstructionCounters& counters = memory.per_row.emplace_back();
  counters.executions = counters.active_executions = counters.requests = counters.l2_requests = 1;
  counters.sectors = counters.l2_request_sectors = 2;
  memory.atomic_lanes = {2};
  const ResourceDemands split = demands_of(trace, memory);
  EXPECT_DOUBLE_EQ(split.lsu_cycles, 4);
  EXPECT_DOUBLE_EQ(split.write_requests, 4);
  EXPECT_DOUBLE_EQ(split.write_bytes, 4 * 32);
  // Where the line has one request, that moves both.
  memory.atomic_lanes = {0};
  const ResourceDemands whole = demands_of(trace, memory);
  EXPECT_DOUBLE_EQ(whole.lsu_cycles, 1);
  EXPECT_DOUBLE_EQ(whole.write_requests, 1);
  EXPECT_DOUBLE_EQ(whole.write_bytes, 2 * 32);
}

TEST(Demands, TagsAndBanksOfL1) {
  const auto address = [](std::uint64_t thread) { return 0x7000'0000 + 132 * thread; };
  const trace::KernelTrace trace = make_kernel(1, 32, {{"LDG.E", {4}, {2}, address}});
  memory::MemoryProfile memory;
  memory.simulated_instructions = 10;
  memory::InstructionCounters& counters = memory.per_row.emplace_back();
  counters.executions = counters.active_executions = 10;
  counters.requests = counters.sectors = 320;
  counters.l1_passes = 30;
  DemandOptions options;
  // Per instruction.
  const auto cycles = [&] { return demands_of(trace, memory, options).lsu_cycles; };
  EXPECT_DOUBLE_EQ(cycles(), 32);
  options.l1_tags_per_cycle = 4;
  EXPECT_DOUBLE_EQ(cycles(), 8);
  counters.l1_passes = 100;
  EXPECT_DOUBLE_EQ(cycles(), 10);
  options.lsu_interval = 12;
  EXPECT_DOUBLE_EQ(cycles(), 12);
}

TEST(Demands, LinesOfALoadThatMisses) {
  // Two loads of 32 lines: one hits, the other misses with all of them.
  const auto address = [](std::uint64_t thread) { return 0x7000'0000 + 128 * thread; };
  const trace::KernelTrace trace = make_kernel(1, 32, {{"LDG.E", {1}, {2}, address}});
  memory::MemoryProfile memory;
  memory.simulated_instructions = 2;
  memory::InstructionCounters& counters = memory.per_row.emplace_back();
  counters.executions = counters.active_executions = 2;
  counters.requests = 64;
  counters.l2_requests = 32;
  counters.events = {1, 1, 0};
  const ResourceDemands demands = demands_of(trace, memory);
  EXPECT_DOUBLE_EQ(demands.missing_loads, 0.5);
  EXPECT_DOUBLE_EQ(demands.missing_lines, 32);
  EXPECT_DOUBLE_EQ(demands.read_misses, 16);
}

TEST(Demands, LoadsPastL1HoldNoMshr) {
  // One line each of a load that L1 takes unless the GPU says no, and of one that goes past it.
  const auto address = [](std::uint64_t) { return std::uint64_t{0x7000'0000}; };
  const trace::KernelTrace trace =
      make_kernel(1, 32, {{"LDG.E", {1}, {2}, address}, {"LDG.E.STRONG.GPU", {3}, {2}, address}});
  memory::MemoryProfile memory;
  memory.simulated_instructions = 2;
  memory.per_row.resize(2);
  memory.atomic_lanes.resize(2);
  for (memory::InstructionCounters& counters : memory.per_row) {
    counters.executions = counters.active_executions = 1;
    counters.requests = counters.l2_requests = 1;
  }
  const ResourceDemands cached = demands_of(trace, memory);
  EXPECT_DOUBLE_EQ(cached.read_misses, 1);
  EXPECT_DOUBLE_EQ(cached.misses_past_l1, 0.5);
  const ResourceDemands bypassed =
      demands_of(trace, memory, {.global_loads = gpu::GlobalLoads::bypassed});
  EXPECT_DOUBLE_EQ(bypassed.read_misses, 1);
  EXPECT_DOUBLE_EQ(bypassed.misses_past_l1, 1);
}

TEST(Latencies, AreWhatWarpsWaitedFor) {
  // Of four loads two hit in L2 by their own events; what their warps waited for last was DRAM
  // three times, and 680 of 1020 cycles of the reference machine because the line was on its way.
  const auto address = [](std::uint64_t) { return std::uint64_t{0x7000'0000}; };
  const trace::KernelTrace trace = make_kernel(1, 32, {{"LDG.E", {1}, {2}, address}});
  memory::MemoryProfile memory;
  memory::InstructionCounters& counters = memory.per_row.emplace_back();
  counters.events = {0, 2, 2};
  const gpu::MemoryLatencies levels = {.l1 = 25, .l2 = 240, .dram = 440};
  EXPECT_DOUBLE_EQ(latencies(trace, memory, {}, levels)[0], (240 + 680) / 2);
  counters.waits = {0, 1, 3};
  counters.wait_cycles = {0, 120, 680};
  EXPECT_DOUBLE_EQ(latencies(trace, memory, {}, levels)[0], (240 + 2 * 680) / 4.0);
  EXPECT_DOUBLE_EQ(wait_shares(counters)[2], 0.75);
}

}  // namespace
}  // namespace warpstack::interval
