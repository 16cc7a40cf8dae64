#include "timing/device/simulator.h"

#include <gtest/gtest.h>

#include "common/error.h"
#include "gpus.h"
#include "kernels.h"

namespace warpstack::timing {
namespace {

using testing::make_kernel;
using testing::Step;

using testing::small_gpu;

SimulationResult simulate(const gpu::Gpu& gpu, const trace::KernelTrace& trace,
                          const SimulationOptions& options = {}) {
  return Simulator(gpu).run(trace, options);
}

std::uint64_t first_line(std::uint64_t lane) { return 0x10000 + 4 * (lane % 32); }

/// A line for each warp instruction, on another slice each.
std::function<std::uint64_t(std::uint64_t)> own_lines(std::uint64_t index, std::uint64_t count) {
  return [=](std::uint64_t thread) {
    return 0x100000 + (thread / 32 * count + index) * 128 + thread % 32 * 4;
  };
}

std::vector<Step> independent(const std::string& opcode, std::size_t count) {
  std::vector<Step> steps;
  for (std::size_t i = 0; i < count; ++i) {
    steps.push_back({opcode, {static_cast<std::uint16_t>(10 + i)}, {2}, {}});
  }
  return steps;
}

TEST(Latency, OfOneLoadIsExactAtEachLevel) {
  const trace::KernelTrace load = make_kernel(1, 32, {{"LDG.E", {4}, {2}, first_line}});
  Simulator simulator(small_gpu());
  EXPECT_EQ(simulator.run(load).cycles, 120 + 220);
  EXPECT_EQ(simulator.run(load).cycles, 120);  // L2 keeps the line
  simulator.flush_l2();
  EXPECT_EQ(simulator.run(load).cycles, 120 + 220);
  // The second load waits for the first one's register and hits L1.
  const trace::KernelTrace twice =
      make_kernel(1, 32, {{"LDG.E", {4}, {2}, first_line}, {"LDG.E", {6}, {4}, first_line}});
  EXPECT_EQ(simulator.run(twice).cycles, 120 + 25);
}

TEST(Strangers, CostTheTrafficOfTheirWriteBacks) {
  std::vector<Step> steps;  // eight lines for each slice
  for (std::uint16_t i = 0; i < 12; ++i) {
    steps.push_back({"LDG.E", {static_cast<std::uint16_t>(4 + i)}, {2}, own_lines(i, 12)});
  }
  const trace::KernelTrace loads = make_kernel(4, 128, steps);
  gpu::Gpu narrow = small_gpu();
  narrow.l2_write_policy = gpu::WritePolicy::write_back;
  narrow.dram_bandwidth_gbs = 8;
  Simulator empty(narrow);
  Simulator half(narrow, 0.5);
  Simulator dirty(narrow, 1);
  const SimulationResult of_empty = empty.run(loads);
  const SimulationResult of_dirty = dirty.run(loads);
  EXPECT_EQ(of_empty.totals[memory::Total::dram_write_sectors], 0u);
  EXPECT_EQ(of_dirty.totals[memory::Total::dram_write_sectors], 4u * 16 * 12);
  EXPECT_EQ(of_dirty.totals[memory::Total::dram_read_sectors],
            of_empty.totals[memory::Total::dram_read_sectors]);
  EXPECT_GT(of_dirty.cycles, 1.5 * of_empty.cycles);
  const SimulationResult of_half = half.run(loads);
  EXPECT_LT(of_half.cycles, of_dirty.cycles);
  EXPECT_GT(of_half.cycles, of_empty.cycles);
  EXPECT_EQ(dirty.run(loads).totals[memory::Total::dram_write_sectors], 0u) << "L2 has its lines";
  dirty.flush_l2();
  EXPECT_EQ(dirty.run(loads).cycles, of_dirty.cycles);
}

TEST(Latency, OfWholeCyclesStaysExactWhenItIsOdd) {
  gpu::Gpu odd = small_gpu();
  odd.l2_latency = 121;
  odd.dram_latency = 223;
  const trace::KernelTrace load = make_kernel(1, 32, {{"LDG.E", {4}, {2}, first_line}});
  EXPECT_EQ(simulate(odd, load).cycles, 121 + 223);
  odd.dram_latency = 223.25;  // the SM sees the data in its next cycle
  EXPECT_LE(simulate(odd, load).cycles, 121 + 225);
  EXPECT_GE(simulate(odd, load).cycles, 121 + 224);
}

TEST(Latency, OwnClocksCostAtMostAPeriodAtEachCrossing) {
  const trace::KernelTrace load =
      make_kernel(1, 32, {{"FADD", {2}, {1}, {}}, {"LDG.E", {4}, {2}, first_line}});
  gpu::Gpu clocks = small_gpu();
  clocks.l2_clock_ghz = 1.172;
  clocks.dram_clock_ghz = 0.85;
  const Cycle shared = simulate(small_gpu(), load).cycles;
  const Cycle own = simulate(clocks, load).cycles;
  EXPECT_EQ(shared, 20 + 340);
  EXPECT_GE(own, shared);
  // Into the NoC and out of DRAM at an edge of L2, into DRAM at one of its own, back into the SM.
  EXPECT_LE(own, shared + 2 * 1.4 / 1.172 + 1.4 / 0.85 + 1);
}

TEST(Latency, OfDependentArithmeticIsThatOfItsClass) {
  std::vector<Step> chain;
  for (int i = 0; i < 10; ++i) chain.push_back({"FADD", {4}, {4}, {}});
  EXPECT_EQ(simulate(small_gpu(), make_kernel(1, 32, chain)).cycles, 10 * 20);
  // Writing a register that is still to be written waits too, reading another one does not.
  EXPECT_EQ(
      simulate(small_gpu(), make_kernel(1, 32, {{"FADD", {4}, {1}, {}}, {"FADD", {4}, {1}, {}}}))
          .cycles,
      20 + 20);
  EXPECT_EQ(
      simulate(small_gpu(), make_kernel(1, 32, {{"FADD", {4}, {1}, {}}, {"FADD", {5}, {1}, {}}}))
          .cycles,
      1 + 20);
}

TEST(Latency, RegisterPairsAreWaitedForAsAWhole) {
  // LDG.E.64 writes R4 and R5; the addition reads R5 only.
  const trace::KernelTrace pair =
      make_kernel(1, 32,
                  {{"LDG.E.64", {4}, {2}, [](std::uint64_t lane) { return 8 * lane; }},
                   {"FADD", {8}, {5}, {}}});
  // Two lines: the second one is looked up a cycle later. Both are in one slice, whose channel
  // needs 8.96 cycles for the first: its second transfer starts in cycle 8.
  EXPECT_EQ(simulate(small_gpu(), pair).cycles, 340 + 8 + 20);
}

TEST(Latency, OfSharedMemoryGrowsWithBankConflicts) {
  for (const std::uint64_t conflicts : {1, 2, 8, 32}) {
    const trace::KernelTrace load = make_kernel(
        1, 32,
        {{"LDS", {4}, {2}, [=](std::uint64_t lane) { return lane * conflicts * 4 % 4096; }}});
    EXPECT_EQ(simulate(small_gpu(), load).cycles, static_cast<Cycle>(23 + conflicts - 1));
  }
}

TEST(Latency, OfAnL1HitGrowsWithItsLines) {
  // Eight lines are looked up one per cycle.
  const auto divergent = [](std::uint64_t lane) { return 0x10000 + lane / 4 * 256; };
  Simulator simulator(small_gpu());
  const trace::KernelTrace twice =
      make_kernel(1, 32, {{"LDG.E", {4}, {2}, divergent}, {"LDG.E", {6}, {4}, divergent}});
  EXPECT_EQ(simulator.run(twice).cycles, 340 + 7 + 25 + 7);
}

TEST(IssueRate, BoundsArithmeticKernels) {
  // Four warps of 40 independent instructions: the last slot is number 160.
  const trace::KernelTrace kernel = make_kernel(1, 128, independent("FADD", 40));
  for (const double width : {1.0, 2.0, 4.0, 0.5}) {
    gpu::Gpu wide = small_gpu();
    wide.issue_width = width;
    wide.schedulers_per_sm = static_cast<std::uint32_t>(std::max(width, 1.0));
    EXPECT_EQ(simulate(wide, kernel).cycles,
              static_cast<Cycle>(width < 1 ? 2 * 159 : 160 / width - 1) + 20)
        << width;
  }
  // One scheduler with two slots a cycle issues two instructions of one warp.
  gpu::Gpu dual = small_gpu();
  dual.issue_width = 2;
  dual.schedulers_per_sm = 1;
  dual.fp32_interval = 0;  // no limit
  EXPECT_EQ(simulate(dual, make_kernel(1, 32, independent("FADD", 40))).cycles, 20 - 1 + 20);
  // Two schedulers have a warp each: one warp gets one slot a cycle.
  dual.schedulers_per_sm = 2;
  EXPECT_EQ(simulate(dual, make_kernel(1, 32, independent("FADD", 40))).cycles, 40 - 1 + 20);
}

TEST(IssueRate, OfAClassIsBoundByItsInterval) {
  gpu::Gpu slow = small_gpu();
  slow.fp64_interval = 16;
  EXPECT_EQ(simulate(slow, make_kernel(1, 64, independent("DADD", 5))).cycles, 9 * 16 + 20);
  EXPECT_EQ(simulate(slow, make_kernel(1, 64, independent("FADD", 5))).cycles, 9 + 20);
}

TEST(Mshrs, MissesGoInBatches) {
  // One load of 32 lines, each on a slice of its own within a batch: batch b starts when the data
  // of the one before come back, one line per cycle.
  const trace::KernelTrace load = make_kernel(
      1, 32, {{"LDG.E", {4}, {2}, [](std::uint64_t lane) { return 0x10000 + 256 * lane; }}});
  for (const std::uint32_t mshrs : {1u, 3u, 8u, 16u}) {
    gpu::Gpu few = small_gpu();
    few.l1_mshrs = mshrs;
    const std::uint32_t batches = (32 + mshrs - 1) / mshrs;
    const std::uint32_t in_last = 32 - (batches - 1) * mshrs;
    const SimulationResult result = simulate(few, load);
    EXPECT_EQ(result.cycles, 340 * batches + in_last - 1) << mshrs;
    // All wait but the first batch.
    EXPECT_EQ(result.miss_latency.misses, 32u);
    EXPECT_GT(result.miss_latency.ticks[StackComponent::mshr],
              std::int64_t{340 - 32} * (32 - mshrs) * ticks_per_cycle);
  }
  gpu::Gpu streaming = small_gpu();
  streaming.noc_queue_entries = 16;
  EXPECT_LT(simulate(streaming, load).cycles, 340 + 32 + 9);
}

TEST(Mshrs, TargetsBlockLikeMshrs) {
  // Ten warps load one line. One target each is taken in cycles 0 to 7; the ninth warp's request
  // waits for the data and then hits, the tenth follows a cycle later.
  const trace::KernelTrace load = make_kernel(1, 320, {{"LDG.E", {4}, {2}, first_line}});
  const SimulationResult result = simulate(small_gpu(), load);
  EXPECT_EQ(result.cycles, 340 + 1 + 25);
  EXPECT_EQ(result.traffic.noc_requests, 1u);
  EXPECT_EQ(result.totals[memory::Total::l1_read_sector_hits], 9u * 4);
  EXPECT_EQ(result.traffic.l1_pending_sector_hits, 7u * 4);
}

TEST(Bandwidth, OfDramIsReachedByAStream) {
  std::vector<Step> steps;
  for (std::uint16_t i = 0; i < 16; ++i) {
    steps.push_back({"LDG.E", {static_cast<std::uint16_t>(10 + i)}, {2}, own_lines(i, 16)});
  }
  const trace::KernelTrace stream = make_kernel(448, 256, steps);
  for (const double bandwidth : {120.0, 480.0}) {
    gpu::Gpu dram = small_gpu();
    dram.dram_bandwidth_gbs = bandwidth;
    const SimulationResult result = simulate(dram, stream);
    const double bytes =
        32.0 * static_cast<double>(result.totals[memory::Total::dram_read_sectors]);
    EXPECT_EQ(bytes, 448.0 * 8 * 16 * 128);
    EXPECT_NEAR(bytes / static_cast<double>(result.cycles) * 1.4 / bandwidth, 1, 0.03);
  }
}

TEST(Bandwidth, OfTheNocIsReachedByLoadsAndByStores) {
  gpu::Gpu noc = small_gpu();
  noc.dram_bandwidth_gbs = 1e5;
  std::vector<Step> loads;
  std::vector<Step> stores;
  for (std::uint16_t i = 0; i < 16; ++i) {
    loads.push_back({"LDG.E", {static_cast<std::uint16_t>(10 + i)}, {2}, own_lines(i, 16)});
    stores.push_back({"STG.E", {}, {2, 4}, own_lines(i, 16)});
  }
  for (const auto& steps : {loads, stores}) {
    const trace::KernelTrace stream = make_kernel(448, 256, steps);
    for (const double bandwidth : {200.0, 700.0}) {
      noc.noc_bandwidth_gbs = bandwidth;
      const SimulationResult result = simulate(noc, stream);
      const double bytes = 448.0 * 8 * 16 * 128;
      EXPECT_NEAR(bytes / static_cast<double>(result.cycles) * 1.4 / bandwidth, 1, 0.03);
    }
  }
}

TEST(Bandwidth, OfAnSmsPortIsReached) {
  gpu::Gpu port = small_gpu();
  port.dram_bandwidth_gbs = 1e5;
  port.noc_sm_bytes_per_cycle = 16;
  std::vector<Step> steps;
  for (std::uint16_t i = 0; i < 16; ++i) {
    steps.push_back({"LDG.E", {static_cast<std::uint16_t>(10 + i)}, {2}, own_lines(i, 16)});
  }
  const SimulationResult result = simulate(port, make_kernel(56, 512, steps));
  // Two blocks per SM: 2 * 16 * 16 lines of 128 bytes at 16 bytes per cycle.
  EXPECT_NEAR(static_cast<double>(result.cycles), 2 * 16 * 16 * 8 + 340, 0.03 * 4096);
}

TEST(Bandwidth, OfL2IsOneRequestPerSliceAndCycle) {
  // All lines are in slice 0, which L2 holds after the first run.
  std::vector<Step> steps;
  for (std::uint16_t i = 0; i < 8; ++i) {
    steps.push_back({"LDG.E", {static_cast<std::uint16_t>(10 + i)}, {2}, [i](std::uint64_t thread) {
                       return (thread / 32 * 8 + i) * 24 * 256 + thread % 32 * 4;
                     }});
  }
  gpu::Gpu wide = small_gpu();
  wide.noc_bandwidth_gbs = 1e5;
  Simulator simulator(wide);
  const trace::KernelTrace kernel = make_kernel(28, 32, steps);
  simulator.run(kernel);
  EXPECT_NEAR(static_cast<double>(simulator.run(kernel).cycles), 28 * 8 + 120, 3);
}

TEST(Barrier, ReleasesTheBlockWhenItsLastWarpArrives) {
  // Both warps of the block issue a barrier; warp 1 of a chain of loads arrives late.
  trace::TraceBuilder builder(testing::header(1, 64), testing::memory_budget());
  const std::uint32_t load = builder.intern(trace::make_static_instruction(
      0, "LDG.E", std::vector<std::uint16_t>{4}, std::vector<std::uint16_t>{4}));
  const std::uint32_t use = builder.intern(trace::make_static_instruction(
      16, "FADD", std::vector<std::uint16_t>{6}, std::vector<std::uint16_t>{4}));
  const std::uint32_t barrier =
      builder.intern(trace::make_static_instruction(32, "BAR.SYNC", {}, {}));
  const std::uint32_t end = builder.intern(trace::make_static_instruction(48, "EXIT", {}, {}));
  builder.begin_block(0);
  trace::LaneAddresses lanes;
  lanes.mask = 0xffffffff;
  lanes.address.fill(0x10000);
  for (std::uint32_t warp = 0; warp < 2; ++warp) {
    builder.begin_warp(warp);
    if (warp == 1) {
      builder.append(load, lanes.mask, &lanes);
      builder.append(use, lanes.mask);
    }
    builder.append(barrier, lanes.mask);
    builder.append(end, lanes.mask);
  }
  builder.end_block();
  const trace::KernelTrace kernel = builder.finish();
  // Warp 0 issues its barrier in cycle 0, warp 1 its load in cycle 1, the addition at 341, the
  // barrier at 342. Both exit 20 cycles later, one per cycle; the addition is done before that.
  EXPECT_EQ(simulate(small_gpu(), kernel).cycles, 342 + 20 + 1 + 1);
}

TEST(Blocks, FillTheSlotsOfThoseThatFinish) {
  // One SM that holds two blocks; five blocks of one warp with 10 dependent additions, 200 cycles.
  gpu::Gpu one = small_gpu();
  one.num_sms = 1;
  one.blocks_per_sm = 2;
  std::vector<Step> chain;
  for (int i = 0; i < 10; ++i) chain.push_back({"FADD", {4}, {4}, {}});
  const SimulationResult result = simulate(one, make_kernel(5, 32, chain));
  // The second slot runs a cycle behind: blocks 0, 2, 4 in the first.
  EXPECT_EQ(result.cycles, 3 * 200);
  EXPECT_EQ(result.occupancy.blocks_per_sm, 2u);
}

TEST(Rows, OpenOnceForNeighbours) {
  gpu::Gpu rows = small_gpu();
  rows.dram_row_bytes = 2048;
  rows.dram_banks = 16;
  rows.dram_burst_bytes = 128;
  rows.dram_trcd = 30;
  const auto second = [](std::uint64_t lane) { return first_line(lane) + 128; };
  const trace::KernelTrace two =
      make_kernel(1, 32, {{"LDG.E", {4}, {2}, first_line}, {"LDG.E", {6}, {4}, second}});
  const SimulationResult result = simulate(rows, two);
  // The first access opens the row, which is part of dram_latency; the second finds it open.
  EXPECT_EQ(result.cycles, 340 + 340 - 30);
  EXPECT_EQ(result.traffic.dram_row_misses, 1u);
}

TEST(Latency, OfL1BeforeItsTagsIsTheSame) {
  gpu::Gpu before = small_gpu();
  before.l1_latency_place = L1Latency::before_tags;
  Simulator simulator(before);
  const trace::KernelTrace twice =
      make_kernel(1, 32, {{"LDG.E", {4}, {2}, first_line}, {"LDG.E", {6}, {4}, first_line}});
  EXPECT_EQ(simulator.run(twice).cycles, 340 + 25);
  // What does not go through L1 passes by its pipeline; a look-up would take the cycle that is
  // left.
  const trace::KernelTrace atomic = make_kernel(1, 32, {{"ATOMG.E.ADD", {4}, {2}, first_line}});
  EXPECT_EQ(simulator.run(atomic).cycles, 120 - 24);
  before.l1_latency = 121;
  EXPECT_THROW(Simulator{before}, InputError);
}

TEST(Pipeline, ABlockedRequestStopsThoseBehindIt) {
  // One MSHR. The load of a line that L1 has waits behind the second miss, until the first is
  // there.
  gpu::Gpu before = small_gpu();
  before.l1_latency_place = L1Latency::before_tags;
  before.l1_mshrs = 1;
  const auto line = [](std::uint64_t index) {
    return [index](std::uint64_t lane) { return 0x10000 + index * 128 + lane * 4; };
  };
  const trace::KernelTrace kernel = make_kernel(1, 32,
                                                {{"LDG.E", {4}, {2}, line(0)},
                                                 {"FADD", {20}, {4}, {}},
                                                 {"LDG.E", {6}, {20}, line(1)},
                                                 {"LDG.E", {8}, {20}, line(2)},
                                                 {"LDG.E", {10}, {20}, line(0)},
                                                 {"FADD", {12}, {10}, {}}});
  // 340 and 20 cycles, then two misses one after the other: the second is looked up 24 cycles after
  // its issue at 361, or when the first one's data come, at 360 + 340; the hit a cycle later.
  // With more MSHRs the hit, issued at 362, ends at 387; the misses then end last, at 361 + 340.
  const SimulationResult one = simulate(before, kernel);
  EXPECT_EQ(one.cycles, 700 + 340 - 24);
  before.l1_mshrs = 2;
  EXPECT_EQ(simulate(before, kernel).cycles, 701);
}

TEST(Pipeline, WhatOvertakesAStoreCanFillItsQueue) {
  gpu::Gpu before = small_gpu();
  before.num_sms = 1;
  before.l1_write_miss = memory::WriteMiss::write_and_fetch;
  before.l1_latency_place = L1Latency::before_tags;
  before.l1_latency = 1;  // one place before the tags
  before.l1_mshrs = 1;
  before.lsu_queue_entries = 1;
  before.l1_miss_queue_entries = 1;
  before.noc_bandwidth_gbs = 1.4;  // 8 bytes take 8 cycles, a line 128
  const auto line = [](std::uint64_t index) {
    return [index](std::uint64_t lane) { return 0x10000 + index * 128 + lane * 4; };
  };
  Simulator simulator(before);
  const trace::KernelTrace kernel = make_kernel(1, 32,
                                                {{"STG.E", {}, {2, 4}, line(0)},
                                                 {"STG.E", {}, {2, 4}, line(1)},
                                                 {"FADD", {20}, {4}, {}},
                                                 {"RED.E.ADD", {}, {2, 20}, line(2)},
                                                 {"STG.E", {}, {2, 4}, line(3)},
                                                 {"STG.E", {}, {2, 4}, line(4)}});
  simulator.run(kernel);  // L2 has the lines
  // The first store takes the MSHR at 1, asks for its line at once and sends its data from 9 to
  // 137; the second waits at the tags. The reduction, issued at 22, overtakes it and waits in the
  // NoC queue until 137. The third store stays in the unit's queue from 23 on, so that the fourth
  // waits from 24 to 138: for the NoC queue, although the MSHR is in use until 121, too.
  const SimulationResult result = simulator.run(kernel);
  EXPECT_EQ(result.slots[StackComponent::base], 6 * parts_per_slot);
  EXPECT_EQ(result.slots[StackComponent::dep], 19 * parts_per_slot);
  EXPECT_EQ(result.slots[StackComponent::noc], 115 * parts_per_slot);
  EXPECT_EQ(result.slots.sum(), 140 * parts_per_slot);
}

TEST(Lines, ThatAreReservedDoNotMakeRoom) {
  gpu::Gpu small = small_gpu();
  small.l1_size_kib = 0.125;
  small.l1_ways = 1;
  const auto second = [](std::uint64_t lane) { return first_line(lane) + 128 * 24 * 2; };
  const trace::KernelTrace two =
      make_kernel(1, 32, {{"LDG.E", {4}, {2}, first_line}, {"LDG.E", {6}, {2}, second}});
  EXPECT_LT(simulate(small, two).cycles, 360);
  small.lines_under_way = LinesUnderWay::reserved;
  EXPECT_EQ(simulate(small, two).cycles, 340 + 340);
}

TEST(Atomics, OfOneWordTakeARequestPerLane) {
  const auto one_word = [](std::uint64_t) { return 0x10000; };
  const trace::KernelTrace kernel = make_kernel(1, 32, {{"ATOMG.E.ADD", {4}, {2}, one_word}});
  const trace::KernelTrace apart = make_kernel(1, 32, {{"ATOMG.E.ADD", {4}, {2}, first_line}});
  gpu::Gpu lanes = small_gpu();
  Simulator together(lanes);
  together.run(kernel);
  EXPECT_EQ(together.run(kernel).cycles, 120);
  lanes.atomic_requests = AtomicRequests::per_lane;
  Simulator by_lane(lanes);
  by_lane.run(kernel);
  const SimulationResult result = by_lane.run(kernel);
  EXPECT_EQ(result.cycles, 31 + 120);  // one request per cycle
  EXPECT_EQ(result.traffic.noc_requests, 32u);
  // Each of the four sectors of a line has a request, even where no lanes meet.
  EXPECT_EQ(by_lane.run(apart).cycles, 3 + 120);
}

TEST(Atomics, OfOtherWordsShareTheRequestsOfTheirSector) {
  // Of one sector, 17 lanes want word 0, the others words 1 to 3; one word of another sector has 5.
  const auto address = [](std::uint64_t lane) {
    if (lane < 17) return std::uint64_t{0x10000};
    return lane < 27 ? 0x10000 + 4 * (1 + lane % 3) : std::uint64_t{0x10060};
  };
  const trace::KernelTrace kernel = make_kernel(1, 32, {{"RED.E.ADD", {}, {2}, address}});
  gpu::Gpu lanes = small_gpu();
  lanes.atomic_requests = AtomicRequests::per_lane;
  EXPECT_EQ(simulate(lanes, kernel).traffic.noc_requests, 17u + 5);
  lanes.atomic_requests = AtomicRequests::per_line;
  EXPECT_EQ(simulate(lanes, kernel).traffic.noc_requests, 1u);
}

TEST(Atomics, TakeTheirSliceForEachLane) {
  // Two warps add to one line; the second one comes a cycle later, or waits for 32 lanes at a time.
  const trace::KernelTrace kernel =
      make_kernel(1, 64, {{"ATOMG.E.ADD", {4}, {2}, [](std::uint64_t thread) {
                             return 0x10000 + 4 * (thread % 32);
                           }}});
  const auto cycles = [&](double turns, double request_cycles) {
    gpu::Gpu lanes = small_gpu();
    lanes.l2_atomic_lane_turns = turns;
    lanes.l2_slice_request_cycles = request_cycles;
    Simulator simulator(lanes);
    simulator.run(kernel);
    return simulator.run(kernel).cycles;
  };
  EXPECT_EQ(cycles(0, 1), 1 + 120);
  EXPECT_EQ(cycles(1, 1), 32 + 120);
  EXPECT_EQ(cycles(0.5, 1), 16 + 120);
  EXPECT_EQ(cycles(0.5, 2), 32 + 120);
  EXPECT_EQ(cycles(0.01, 1), 1 + 120);  // at least one request
}

TEST(Atomics, SeveralWordsAtOnce) {
  // 32 words; or 24 lanes of one and 8 of others.
  const auto cycles = [](double at_once, bool is_hot) {
    const trace::KernelTrace kernel =
        make_kernel(1, 64, {{"ATOMG.E.ADD", {4}, {2}, [is_hot](std::uint64_t thread) {
                               const std::uint64_t lane = thread % 32;
                               return 0x10000 + 4 * (is_hot && lane < 24 ? 0 : lane);
                             }}});
    gpu::Gpu gpu = small_gpu();
    gpu.l2_atomic_lane_turns = 1;
    gpu.l2_atomic_words_at_once = at_once;
    Simulator simulator(gpu);
    simulator.run(kernel);
    return simulator.run(kernel).cycles;
  };
  EXPECT_EQ(cycles(1, false), 32 + 120);
  EXPECT_EQ(cycles(2, false), 16 + 120);
  EXPECT_EQ(cycles(4, false), 8 + 120);
  EXPECT_EQ(cycles(1, true), 32 + 120);
  EXPECT_EQ(cycles(2, true), 24 + 120);  // those of one word
  EXPECT_EQ(cycles(4, true), 24 + 120);
}

TEST(Atomics, StopTheirWarpWhereMachinesSaySo) {
  // Nothing needs their results.
  const trace::KernelTrace kernel = make_kernel(
      1, 32, {{"ATOMG.E.ADD", {4}, {2}, first_line}, {"RED.E.ADD", {}, {2}, first_line}});
  const auto cycles = [&](AtomicWait wait) {
    gpu::Gpu gpu = small_gpu();
    gpu.atomic_wait = wait;
    Simulator simulator(gpu);
    simulator.run(kernel);
    return simulator.run(kernel).cycles;
  };
  EXPECT_EQ(cycles(AtomicWait::for_data), 120);
  EXPECT_EQ(cycles(AtomicWait::until_done), 120 + 120);
}

TEST(Stores, ToALineOnItsWayAreWrittenToDram) {
  const trace::KernelTrace kernel =
      make_kernel(1, 32, {{"STG.E", {}, {2, 6}, first_line}, {"STG.E", {}, {2, 6}, first_line}});
  gpu::Gpu gpu = small_gpu();
  gpu.l2_write_miss = memory::WriteMiss::write_and_fetch;
  Simulator simulator(gpu);
  SimulationResult result = simulator.run(kernel);
  EXPECT_EQ(result.traffic.dram_reads, 1u);
  EXPECT_EQ(result.traffic.dram_writes, 2u);
  EXPECT_EQ(simulator.run(kernel).traffic.dram_writes, 0u);  // L2 has the line
  // The first store takes the only place of the line's MSHR: the second waits for the line.
  gpu.l2_mshr_targets = 1;
  EXPECT_EQ(simulate(gpu, kernel).traffic.dram_writes, 1u);
  gpu.l2_write_miss = memory::WriteMiss::fetch_on_write;
  EXPECT_EQ(simulate(gpu, kernel).traffic.dram_writes, 0u);
}

TEST(Stores, ToALineOnItsWayToL1AreWrittenThrough) {
  // The first store fetches the line and goes to L2 beside; the second goes to L2, too, although L1
  // is to keep what stores write.
  const trace::KernelTrace kernel =
      make_kernel(1, 32, {{"STG.E", {}, {2, 6}, first_line}, {"STG.E", {}, {2, 6}, first_line}});
  gpu::Gpu gpu = small_gpu();
  gpu.l1_write_policy = memory::WritePolicy::write_back;
  gpu.l1_write_miss = memory::WriteMiss::write_and_fetch;
  SimulationResult result = simulate(gpu, kernel);
  EXPECT_EQ(result.traffic.noc_requests, 3u);
  EXPECT_EQ(result.totals[memory::Total::l1_flush_sectors], 0u);
}

TEST(Stores, ThatAreAwaitedKeepTheirWarp) {
  const trace::KernelTrace store = make_kernel(1, 32, {{"STG.E", {}, {2, 6}, first_line}});
  gpu::Gpu awaited = small_gpu();
  EXPECT_LE(simulate(awaited, store).cycles, 2);
  awaited.store_acknowledgement = StoreAcknowledgement::awaited;
  Simulator simulator(awaited);
  // L2 fetches the line first; then it has it.
  EXPECT_EQ(simulator.run(store).cycles, 340);
  EXPECT_EQ(simulator.run(store).cycles, 120);
  awaited.l2_write_miss = memory::WriteMiss::fetch_on_partial_write;
  const SimulationResult whole = simulate(awaited, store);
  EXPECT_EQ(whole.cycles, 120);
  EXPECT_EQ(whole.traffic.dram_reads, 0u);
  awaited.l2_write_miss = memory::WriteMiss::write_and_fetch;
  const SimulationResult both = simulate(awaited, store);
  EXPECT_EQ(both.cycles, 340);
  EXPECT_EQ(both.traffic.dram_reads, 1u);
  EXPECT_EQ(both.traffic.dram_writes, 1u);
  EXPECT_EQ(both.miss_latency.misses, 0u);
}

TEST(End, OfAKernelIsTheLastThingThatCounts) {
  const trace::KernelTrace store = make_kernel(1, 32, {{"STG.E", {}, {2, 6}, first_line}});
  gpu::Gpu end = small_gpu();
  end.kernel_end = KernelEnd::last_warp;
  const Cycle warp = simulate(end, store).cycles;
  end.kernel_end = KernelEnd::last_store;
  const Cycle taken = simulate(end, store).cycles;
  end.kernel_end = KernelEnd::last_transfer;
  const Cycle transferred = simulate(end, store).cycles;
  EXPECT_LE(warp, taken);
  // A line takes 128 / 20 * 1.4 = 8.96 cycles of its channel.
  EXPECT_EQ(transferred, 9);
  EXPECT_LT(taken, transferred);
}

TEST(Slices, TakeTheTimeOfTheirData) {
  // 28 SMs read one line each, all of one slice, which L2 has.
  const auto one_slice = [](std::uint64_t thread) {
    return 0x100000 + thread / 32 * 128 * 2 * 24 + thread % 32 * 4;
  };
  const trace::KernelTrace kernel = make_kernel(28, 32, {{"LDG.E", {4}, {2}, one_slice}});
  gpu::Gpu slow = small_gpu();
  slow.noc_bandwidth_gbs = 1e6;
  Simulator fast(slow);
  fast.run(kernel);
  EXPECT_EQ(fast.run(kernel).cycles, 27 + 120);
  slow.l2_slice_bytes_per_cycle = 32;
  Simulator wide(slow);
  wide.run(kernel);
  EXPECT_EQ(wide.run(kernel).cycles, 4 * 27 + 120);
  slow.l2_slice_request_cycles = 6;
  Simulator late(slow);
  late.run(kernel);
  EXPECT_EQ(late.run(kernel).cycles, 6 * 27 + 120);
}

TEST(Slices, OfACrossbarTakeAPacketAtATime) {
  const auto cycles = [](std::uint64_t bytes_apart, double request_cycles) {
    const trace::KernelTrace kernel =
        make_kernel(24, 32, {{"LDG.E", {4}, {2}, [=](std::uint64_t thread) {
                                return 0x100000 + thread / 32 * bytes_apart + thread % 32 * 4;
                              }}});
    gpu::Gpu gpu = small_gpu();
    gpu.noc_topology = NocTopology::crossbar;
    gpu.noc_bandwidth_gbs = 1;  // which limits nothing
    gpu.l2_slice_request_cycles = request_cycles;
    Simulator simulator(gpu);
    simulator.run(kernel);
    return simulator.run(kernel).cycles;
  };
  EXPECT_EQ(cycles(256, 1), 120);  // a slice for each SM
  EXPECT_EQ(cycles(std::uint64_t{256} * 24, 1), 23 + 120);
  EXPECT_EQ(cycles(std::uint64_t{256} * 24, 3), 3 * 23 + 120);
}

/// Loads, stores, atomics and shared memory with dependences, over all SMs.
trace::KernelTrace mixed_kernel() {
  const auto scattered = [](std::uint64_t thread) { return 0x10000 + thread * 7919 % 65536 * 4; };
  return make_kernel(
      60, 96,
      {{"LDG.E", {4}, {2}, scattered},
       {"FADD", {6}, {4}, {}},
       {"STG.E", {}, {2, 6}, scattered},
       {"LDS", {8}, {6}, [](std::uint64_t thread) { return thread % 32 * 8; }},
       {"BAR.SYNC", {}, {}, {}},
       {"ATOMG.E.ADD", {10}, {2, 8}, [](std::uint64_t thread) { return thread % 64 * 4; }},
       {"RED.E.ADD", {}, {2, 10}, [](std::uint64_t thread) { return thread % 64 * 4; }},
       {"LDG.E", {4}, {10}, own_lines(0, 1)},
       {"EXIT", {}, {4}, {}}});
}

TEST(Conservation, WhatLeavesALevelEntersTheNext) {
  const trace::KernelTrace kernel = mixed_kernel();
  const SimulationResult result = simulate(small_gpu(), kernel);
  const memory::MemoryTotals& totals = result.totals;
  EXPECT_EQ(result.instructions, kernel.totals().instructions);
  // Each read and each atomic is answered; stores and reductions are not.
  EXPECT_EQ(result.traffic.noc_replies, result.miss_latency.misses);
  EXPECT_EQ(result.traffic.noc_reply_bytes,
            32 * totals[memory::Total::l2_read_sectors] + 32u * 60 * 3 * 4);
  EXPECT_EQ(totals[memory::Total::l2_write_sectors], totals[memory::Total::l1_write_sectors]);
  EXPECT_EQ(result.traffic.dram_reads * 4, totals[memory::Total::dram_read_sectors]);
  EXPECT_EQ(
      totals[memory::Total::l2_read_sectors] - totals[memory::Total::l2_read_sector_hits] +
          totals[memory::Total::l2_atomic_sectors] - totals[memory::Total::l2_atomic_sector_hits] +
          totals[memory::Total::l2_write_sectors] - totals[memory::Total::l2_write_sector_hits],
      totals[memory::Total::dram_read_sectors]);
  // Every issue slot of every SM until its end is accounted for.
  EXPECT_EQ(result.slots.sum(), result.sm_cycles * parts_per_slot);
  EXPECT_EQ(result.slots[StackComponent::base],
            static_cast<std::int64_t>(result.instructions) * parts_per_slot);
  EXPECT_EQ(result.active_sms, 28u);
}

TEST(Simulator, IsDeterministicAndReadsFilesAlike) {
  const trace::KernelTrace kernel = mixed_kernel();
  const SimulationResult first = simulate(small_gpu(), kernel);
  const SimulationResult second = simulate(small_gpu(), kernel);
  EXPECT_EQ(first.cycles, second.cycles);
  EXPECT_EQ(first.slots[StackComponent::noc], second.slots[StackComponent::noc]);
}

TEST(Simulator, SamplesAtRegularCycles) {
  SimulationOptions options;
  options.sample_cycles = 50;
  const SimulationResult result =
      simulate(small_gpu(), make_kernel(1, 32, {{"LDG.E", {4}, {2}, first_line}}), options);
  ASSERT_EQ(result.samples.size(), 7u);  // 0 to 300 of 340 cycles
  EXPECT_EQ(result.samples[0].instructions, 0u);
  EXPECT_EQ(result.samples[1].instructions, 1u);
  EXPECT_EQ(result.samples[1].resident_warps, 1u);
  EXPECT_EQ(result.samples[1].l1_mshrs, 1u);
  EXPECT_EQ(result.samples[1].l2_mshrs, 1u);  // until its data come from DRAM, at 220
  EXPECT_EQ(result.samples[5].l2_mshrs, 0u);
  EXPECT_EQ(result.samples[6].l1_mshrs, 1u);
}

TEST(Simulator, SaysWhatWarpsWaitForWhenItGivesUp) {
  SimulationOptions options;
  options.max_cycles = 100;
  try {
    simulate(small_gpu(),
             make_kernel(1, 32, {{"LDG.E", {4}, {2}, first_line}, {"FADD", {6}, {4}, {}}}),
             options);
    FAIL();
  } catch (const InputError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("max_cycles = 100"), std::string::npos) << text;
    EXPECT_NE(text.find("SM 0, block 0, warp 0: next FADD at pc 16, waits for LDG.E at pc 0"),
              std::string::npos)
        << text;
  }
}

/// What the simulator says when DRAM channel 0 is broken.
std::string message_with(SimulationOptions::Fault fault) {
  SimulationOptions options;
  options.fault = fault;
  gpu::Gpu one_channel = small_gpu();
  one_channel.l2_slices = 1;
  one_channel.dram_channels = 1;
  one_channel.dram_queue_entries = 2;
  one_channel.l2_queue_entries = 3;
  one_channel.l1_miss_queue_entries = 8;
  std::vector<Step> steps;
  for (std::uint16_t i = 0; i < 16; ++i) {
    steps.push_back({"LDG.E", {static_cast<std::uint16_t>(10 + i)}, {2}, own_lines(i, 16)});
  }
  try {
    simulate(one_channel, make_kernel(2, 32, steps), options);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

TEST(Watchdog, ExplainsAStateThatNothingCanLeave) {
  // Of 32 loads 2 wait in the DRAM queue, 3 in front of the slice and 8 in each SM's queue; the
  // slice's MSHRs hold those that went to DRAM.
  const std::string text = message_with(SimulationOptions::Fault::dram_sleeps);
  for (const char* part :
       {"deadlock at cycle ", "SM 0, block 0, warp 0: ", "waits for the load-store unit",
        "SM 0: 8 packets wait for the NoC, the first for L2 slice 0",
        "L2 slice 0: 3 requests in a queue of 3, the first waits for an MSHR or the DRAM queue; "
        "MSHRs in use: 2; replies that wait: 0; its DRAM channel is 0",
        "DRAM channel 0: 2 of at most 2 requests wait for their transfer"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(Watchdog, EndsTurnsInVain) {
  const std::string text = message_with(SimulationOptions::Fault::dram_spins);
  EXPECT_NE(text.find("makes no progress at cycle "), std::string::npos) << text;
  EXPECT_NE(text.find("DRAM channel 0: 2 of at most 2"), std::string::npos) << text;
}

TEST(Watchdog, LetsASlowMachineBe) {
  // A transfer takes 128 bytes * 56 GHz / (1 MB/s / 24 channels) = 172,032,000 cycles.
  gpu::Gpu slow = small_gpu();
  slow.clock_ghz = 56;
  slow.dram_bandwidth_gbs = 1e-3;
  const SimulationResult result = simulate(
      slow,
      make_kernel(1, 32,
                  {{"LDG.E", {4}, {2}, first_line}, {"LDG.E", {5}, {2}, [](std::uint64_t lane) {
                                                       return 0x10000 + 128 + 4 * (lane % 32);
                                                     }}}));
  EXPECT_NEAR(static_cast<double>(result.cycles), 172.032e6, 1e6);
}

TEST(Simulator, StopsWhenInterrupted) {
  SimulationOptions options;
  int calls = 0;
  options.interrupt = [&calls] {
    if (++calls == 2) throw std::runtime_error("stop");
  };
  std::vector<Step> steps;
  for (std::uint16_t i = 0; i < 16; ++i) {
    steps.push_back({"LDG.E", {static_cast<std::uint16_t>(10 + i)}, {2}, own_lines(i, 16)});
  }
  gpu::Gpu slow = small_gpu();
  slow.dram_bandwidth_gbs = 10;
  EXPECT_THROW(simulate(slow, make_kernel(448, 256, steps), options), std::runtime_error);
}

TEST(Simulator, RefusesImpossibleConfigurations) {
  const auto refused = [](auto change) {
    gpu::Gpu wrong = small_gpu();
    change(wrong);
    EXPECT_THROW(Simulator{wrong}, InputError);
  };
  refused([](gpu::Gpu& c) { c.dram_channels = 7; });
  refused([](gpu::Gpu& c) { c.l2_mshrs = 0; });
  refused([](gpu::Gpu& c) { c.issue_width = 1e9; });
  refused([](gpu::Gpu& c) { c.l2_clock_ghz = 1e9; });
  refused([](gpu::Gpu& c) { c.dram_latency = 1e12; });
  refused([](gpu::Gpu& c) { c.noc_bandwidth_gbs = 0; });
}

TEST(Simulator, RepeatsALaunchThatFindsTheSameInL2) {
  gpu::Gpu gpu = small_gpu();
  gpu.l2_size_kib = 24;  // 192 lines, fewer than a launch touches sectors
  const auto launch = [](const std::string& name) {
    const std::vector<Step> steps = {{"LDG.E", {4}, {2}, own_lines(0, 1)},
                                     {"STG.E", {}, {2, 4}, own_lines(0, 1)}};
    return make_kernel(6, 256, steps, testing::memory_budget(), name);
  };
  Simulator simulator(gpu);
  Simulator reference(gpu);
  const trace::KernelTrace kernel = launch("a");
  std::size_t simulated = 0;
  std::size_t last = 0;
  SimulationOptions options;
  options.interrupt = [&] { ++simulated; };
  for (int i = 0; i < 8; ++i) {
    last = simulated;
    const SimulationResult result = simulator.run(kernel, options);
    // With another name each time, none repeats one that the reference knows.
    const SimulationResult expected = reference.run(launch("a" + std::to_string(i)));
    EXPECT_EQ(result.cycles, expected.cycles);
    EXPECT_EQ(result.slots[StackComponent::dram], expected.slots[StackComponent::dram]);
    EXPECT_EQ(result.traffic.dram_reads, expected.traffic.dram_reads);
  }
  EXPECT_GT(simulated, 0u);
  EXPECT_EQ(simulated, last);
  options.count_rows = true;  // what was not asked for before is not known
  EXPECT_TRUE(simulator.run(kernel, options).row_slots.has_value());
  EXPECT_GT(simulated, last);
}

}  // namespace
}  // namespace warpstack::timing
