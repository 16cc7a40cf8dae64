#include "model/closed_network.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace warpstack::model {
namespace {

TEST(ClosedNetwork, NothingThatTakesTimeHasNoBound) {
  EXPECT_EQ(closed_network_rate(4, 0, {}).bounded(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(closed_network_rate(4, 0, std::vector<Station>(3)).bounded(),
            std::numeric_limits<double>::infinity());
}

TEST(ClosedNetwork, ThinkingAloneIsLittlesLaw) {
  EXPECT_DOUBLE_EQ(closed_network_rate(6, 3, {}).bounded(), 2);
}

TEST(ClosedNetwork, OneCustomerNeverWaits) {
  const Station stations[] = {{2, 2, 1}, {3, 3, 1}};
  EXPECT_DOUBLE_EQ(closed_network_rate(1, 5, stations).bounded(), 1.0 / 10);
}

TEST(ClosedNetwork, TwoCustomersOfOneStation) {
  // 2 / x = 2 + 1 / 2 + 1 / 2 / (1 - x / 2): 5 x^2 - 16 x + 8 = 0.
  const Station station{1, 1, 2};
  EXPECT_NEAR(closed_network_rate(2, 2, {&station, 1}).bounded(), (8 - std::sqrt(24)) / 5, 1e-12);
}

TEST(ClosedNetwork, ManyCustomersReachTheCapacity) {
  const Station stations[] = {{1, 1, 64}, {0.1, 2.8, 64 * 28}};
  EXPECT_NEAR(closed_network_rate(64, 10, stations).bounded(), 1 / 2.8, 1e-3);
  EXPECT_LE(closed_network_rate(1e9, 10, stations).bounded(), 1 / 2.8);
}

TEST(ClosedNetwork, SolvesItsEquation) {
  std::mt19937_64 random(1);
  const auto draw = [&random](double most) {
    return std::uniform_real_distribution<double>(0, most)(random);
  };
  for (int trial = 0; trial < 2000; ++trial) {
    const double customers = 1 + draw(100);
    const double think = draw(500);
    std::vector<Station> stations;
    double bound = std::numeric_limits<double>::infinity();
    for (int k = 0; k < 6; ++k) {
      const double sms = trial % 2 ? 1 : 28;
      const double demand = trial % 3 == k ? 0 : std::exp(draw(12) - 8);
      // Most of what a station serves may be on nobody's way.
      const double capacity = demand * sms * (trial % 5 == 0 ? std::exp(draw(30)) : 1);
      stations.push_back({demand, capacity, customers * sms});
      if (demand > 0) bound = std::min(bound, 1 / capacity);
    }
    const double x = closed_network_rate(customers, think, stations).bounded();
    ASSERT_GT(x, 0);
    ASSERT_LE(x, bound);
    double time = think;
    for (const Station& s : stations) {
      time += s.demand / 2 * (1 + 1 / (1 - (1 - 1 / s.competitors) * s.capacity_cycles * x));
    }
    if (x < bound) {
      ASSERT_NEAR(x * time, customers, 1e-6 * customers);
    } else {
      ASSERT_LE(x * time, customers * (1 + 1e-9));
    }
  }
}

/// A GPU on which nothing but issue takes time.
ModelParameters fast_gpu() {
  ModelParameters gpu;
  gpu.scheduler = gpu::Scheduler::lrr;
  gpu.l1_mshrs = 1e6;
  gpu.noc_bandwidth_gbs = gpu.dram_bandwidth_gbs = gpu.l2_requests_per_cycle = 1e12;
  return gpu;
}

/// An instruction each of `warps` warps on an SM, which stall for 9 cycles.
ModelResult run(const interval::ResourceDemands& demands, const ModelParameters& gpu,
                double warps = 1, double busy_sms = 1) {
  interval::PhaseList launch;
  launch.phases = {{warps, warps, busy_sms}};
  launch.mean_depth = launch.at_start = {1};
  launch.sms = {{{1}, warps, 0, 0}};
  launch.instructions = warps * busy_sms;
  launch.alone_cycles = launch.span = 10;
  return evaluate_closed_network(launch, demands, {}, gpu);
}

TEST(ClosedNetworkModel, AWarpAloneOnAFastGpu) {
  EXPECT_NEAR(run({}, fast_gpu()).cycles, 10, 1e-6);
}

TEST(ClosedNetworkModel, TheHottestSliceIsTheStation) {
  // Two slices with a request per cycle each, one of which gets 7 of 8 requests: as if both had 7.
  interval::ResourceDemands demands;
  demands.write_requests = 8;
  demands.slice_turns = 8;
  demands.hottest_slice_turns = 14;
  ModelParameters gpu = fast_gpu();
  gpu.l2_requests_per_cycle = 2;
  EXPECT_NEAR(run(demands, gpu).cycles, 10 + 7, 1e-6);
  EXPECT_NEAR(run(demands, gpu).stack[StackComponent::noc], 7, 1e-6);
}

TEST(ClosedNetworkModel, CrowdedSlicesServeLessTogether) {
  // Two slices take 400 cycles for the 800 requests of 100 warps, and 800 if all that are under way
  // together ask the same one.
  interval::ResourceDemands demands;
  demands.write_requests = 8;
  demands.slice_turns = demands.hottest_slice_turns = 8;
  ModelParameters gpu = fast_gpu();
  gpu.l2_requests_per_cycle = 2;
  const double even = run(demands, gpu, 100).cycles;
  EXPECT_GE(even, 400);
  EXPECT_LT(even, 400 + 20);
  demands.crowded_slice_turns = 7;  // fewer than those of the hottest
  EXPECT_EQ(run(demands, gpu, 100).cycles, even);
  demands.crowded_slice_turns = 16;
  EXPECT_GE(run(demands, gpu, 100).cycles, 800);
  EXPECT_LT(run(demands, gpu, 100).cycles, 800 + 20);
}

TEST(ClosedNetworkModel, NoSmEndsBeforeItsPortHasMovedWhatItReads) {
  // Two warps of an instruction, 32 bytes per cycle and port: a warp alone takes 10 + 5 cycles for
  // its 160 bytes. One SM reads 480 or 4800 bytes.
  interval::ResourceDemands demands;
  demands.read_bytes = 160;
  ModelParameters gpu = fast_gpu();
  gpu.noc_sm_bytes_per_cycle = 32;
  const double in_the_mean = run(demands, gpu, 2).cycles;
  EXPECT_GE(in_the_mean, 10 + 5);
  demands.most_read_bytes = 480.0 / 2;
  EXPECT_NEAR(run(demands, gpu, 2).cycles, in_the_mean, 1e-6);
  demands.most_read_bytes = 4800.0 / 2;
  EXPECT_NEAR(run(demands, gpu, 2).cycles, 150, 1e-6);
  gpu.noc_sm_bytes_per_cycle = 0;  // no port
  EXPECT_LT(run(demands, gpu, 2).cycles, 150);
}

TEST(ClosedNetworkModel, ASliceReadsSoManyBytes) {
  // 8 requests of 128 bytes that L2 has, all slices alike, 64 bytes per cycle: 16 cycles; half of
  // that if DRAM has half of them.
  interval::ResourceDemands demands;
  demands.read_misses = demands.slice_turns = demands.hottest_slice_turns = 8;
  demands.read_bytes = demands.hit_bytes = 1024;
  ModelParameters gpu = fast_gpu();
  gpu.l2_bytes_per_cycle = 64;
  EXPECT_NEAR(run(demands, gpu).cycles, 10 + 16, 1e-6);
  demands.hit_bytes = 512;
  EXPECT_NEAR(run(demands, gpu).cycles, 10 + 8, 1e-6);
}

TEST(ClosedNetworkModel, LinesOfALoadOverlap) {
  // 32 lines: one by one through the load-store unit and the slices, 2 cycles each on the reply
  // network. The last one is there after 64 cycles and what one line takes elsewhere.
  interval::ResourceDemands demands;
  demands.lsu_cycles = demands.read_misses = 32;
  demands.slice_turns = demands.hottest_slice_turns = 32;
  demands.read_bytes = 32 * 128;
  ModelParameters gpu = fast_gpu();
  gpu.l2_requests_per_cycle = 1;
  gpu.noc_bandwidth_gbs = 64;
  EXPECT_NEAR(run(demands, gpu).cycles, 10 + 32 + 32 + 64, 1e-6);
  demands.missing_lines = 32;
  EXPECT_NEAR(run(demands, gpu).cycles, 10 + 1 + 1 + 64, 1e-6);
}

TEST(ClosedNetworkModel, WaitsForPlacesHoldUpTheLoadStoreUnit) {
  // 12 and 34 cycles on the reference machine, whose L2 takes 120 and whose DRAM 220 more: here
  // both take twice as long.
  interval::ResourceDemands demands;
  demands.lsu_cycles = 1;
  demands.place_wait_l2 = 12;
  demands.place_wait_dram = 34;
  ModelParameters gpu = fast_gpu();
  gpu.l2_latency = 240;
  gpu.dram_latency = 440;
  const ModelResult result = run(demands, gpu);
  EXPECT_NEAR(result.cycles, 10 + 1 + 24 + 68, 1e-6);
  EXPECT_NEAR(result.stack[StackComponent::l1], 1, 1e-6);
  EXPECT_NEAR(result.stack[StackComponent::mshr], 24 + 68, 1e-6);
}

TEST(ClosedNetworkModel, BusySmsShareTheMemoryAlike) {
  // One MSHR per SM, a miss of 100 cycles and 50 more at DRAM: 150. Two SMs wait for each other:
  // q = 100 + 25 + 25 / (1 - 50 / q), that is q^2 - 200 q + 6250 = 0.
  interval::ResourceDemands demands;
  demands.read_misses = 1;
  demands.dram_bytes = 50;
  ModelParameters gpu = fast_gpu();
  gpu.l1_mshrs = 1;
  gpu.dram_bandwidth_gbs = 1;
  gpu.l2_latency = 100;
  EXPECT_NEAR(run(demands, gpu, 64, 1).cycles, 64 * 150, 1e-3);
  EXPECT_NEAR(run(demands, gpu, 64, 2).cycles, 64 * (100 + std::sqrt(3750)), 1e-3);
}

TEST(ClosedNetworkModel, AFullSmHasTheMemoryWhenOthersHaveEnded) {
  // 64 warps on an SM and one on each of the others. With a tenth of DRAM to the end they would
  // take 64 x 10 x 50 cycles, with as many SMs more 64 x 20 x 50. But DRAM serves everybody's
  // misses after (64 + others) x 50, and an SM alone has 8 MSHRs that DRAM keeps busy for 8 x 50
  // per trip.
  interval::ResourceDemands demands;
  demands.read_misses = 1;
  demands.dram_bytes = 50;
  ModelParameters gpu = fast_gpu();
  gpu.l1_mshrs = 8;
  gpu.dram_bandwidth_gbs = 1;
  gpu.l2_latency = 100;
  for (const double others : {9.0, 19.0}) {
    interval::PhaseList launch;
    launch.phases = {{64, 64 + others, 1 + others}};
    launch.mean_depth = launch.at_start = {1};
    launch.sms = {{{1}, 64, 0, 0}};
    launch.instructions = 64 + others;
    launch.alone_cycles = launch.span = 10;
    EXPECT_NEAR(evaluate_closed_network(launch, demands, {}, gpu).cycles,
                std::min((64 + others) * 50 + 64 * 50, 10 + 64 + 64 * 100 / 8 + (64 + others) * 50),
                1e-3);
  }
}

TEST(ClosedNetworkModel, NothingIsLaterThanOneThingAfterAnother) {
  // Most warps are slow alone, the long one is not: 400 instructions that take their warp 2000
  // cycles alone, with a mean of 100 cycles per instruction. One SM, two cycles at the load-store
  // unit each.
  interval::ResourceDemands demands;
  demands.lsu_cycles = 2;
  interval::PhaseList launch;
  launch.phases = {{1, 1, 1}};
  launch.mean_depth = launch.at_start = {400};
  launch.sms = {{{400}, 400, 0, 0}};
  launch.instructions = 400;
  launch.alone_cycles = 100;
  launch.span = 2000;
  ModelParameters gpu = fast_gpu();
  const ModelResult result = evaluate_closed_network(launch, demands, {}, gpu);
  EXPECT_NEAR(result.cycles, 2000 + 400 + 400 * 2, 1e-6);
  launch.span = 1e6;
  EXPECT_NEAR(evaluate_closed_network(launch, demands, {}, gpu).cycles, 1e6, 1e-3);
  launch.sms[0].rounds = 3;  // two blocks take the place of another one
  launch.span = 2000;
  gpu.block_replacement_cycles = 50;
  EXPECT_NEAR(evaluate_closed_network(launch, demands, {}, gpu).cycles, 2000 + 400 + 800 + 100,
              1e-6);
}

TEST(ClosedNetworkModel, DramTurnsRoundBetweenReadsAndWrites) {
  // A read and a write of 128 bytes: of n banks each serves two until its next request goes the
  // other way, so that both turns come once for 4 n requests; 8 cycles are what they take over n.
  interval::ResourceDemands demands;
  demands.dram_bytes = 256;
  demands.dram_write_bytes = 128;
  ModelParameters gpu = fast_gpu();
  gpu.dram_turnaround_cycles = 8;
  gpu.dram_bandwidth_gbs = 1;
  EXPECT_NEAR(run(demands, gpu).cycles, 256 + 2 / 4.0 * 8, 1e-6);
  demands.dram_write_bytes = 0;
  EXPECT_NEAR(run(demands, gpu).cycles, 10 + 256, 1e-6);
}

TEST(ClosedNetworkModel, WhoIsServedLastGoesOnToItsEnd) {
  // 64 warps pass the load-store unit in a cycle each, from cycle 20 on; the last has 100 to go.
  interval::ResourceDemands demands;
  demands.lsu_cycles = 1;
  const ModelParameters gpu = fast_gpu();
  interval::PhaseList launch;
  launch.phases = {{64, 64, 1}};
  launch.mean_depth = launch.at_start = {1};
  launch.sms = {{{1}, 64, 0, 0, 1, 64}};
  launch.instructions = 64;
  launch.alone_cycles = launch.span = 120;
  launch.off_units[0] = {1, 20, 100, 0, 120};
  EXPECT_NEAR(evaluate_closed_network(launch, demands, {}, gpu).cycles, 20 + 64 + 100, 1e-6);
  // Two blocks of 32 warps, one after the other.
  launch.sms = {{{1}, 64, 0, 0, 2, 64}};
  EXPECT_NEAR(evaluate_closed_network(launch, demands, {}, gpu).cycles, 2 * 120 + 64, 1e-6);
  // What all SMs share serves all of them.
  demands = {};
  demands.dram_bytes = 4;
  ModelParameters slow = gpu;
  slow.dram_bandwidth_gbs = 1;
  launch.sms = {{{1}, 64, 0, 0, 1, 64}};
  EXPECT_NEAR(evaluate_closed_network(launch, demands, {}, slow).cycles, 20 + 64 * 4 + 100, 1e-6);
  // The launch waits for the last store, no longer than L2 takes. Of what any warp waits alone for
  // its stores this is another part: work at the end hides as much of both.
  slow.l2_latency = 7;
  launch.off_units[0].for_stores = 5;
  launch.after_stores = 6;
  EXPECT_NEAR(evaluate_closed_network(launch, demands, {}, slow).cycles, 20 + 64 * 4 + 105, 1e-6);
  launch.off_units[0].for_stores = 8;
  EXPECT_NEAR(evaluate_closed_network(launch, demands, {}, slow).cycles, 20 + 64 * 4 + 107, 1e-6);
}

TEST(ClosedNetworkModel, WarpsThatComeToAUnitTogetherWaitForEachOther) {
  // Four schedulers, with 16 warps each; an instruction in double precision keeps its unit busy for
  // 10 cycles. The first warp comes to it in cycle 20, the last one 150 cycles later, and has 100
  // to go.
  const auto fp64 = static_cast<std::size_t>(trace::OpClass::fp64);
  interval::ResourceDemands demands;
  demands.unit_instructions[fp64] = 1;
  ModelParameters gpu = fast_gpu();
  gpu.schedulers = gpu.issue_rate = 4;
  gpu.unit_intervals[fp64] = 10;
  interval::PhaseList launch;
  launch.phases = {{64, 64, 1}};
  launch.mean_depth = launch.at_start = {1};
  launch.sms = {{{1}, 64, 0, 0, 1, 64}};
  launch.instructions = 64;
  launch.alone_cycles = launch.span = 120;
  launch.off_units[1 + fp64] = {1, 20, 100, 0, 120};
  EXPECT_NEAR(evaluate_closed_network(launch, demands, {}, gpu).cycles, 20 + 150 + 100, 1e-6);
  // No more counts after the last one than one for each warp takes.
  launch.off_units[1 + fp64].after = 1000;
  EXPECT_NEAR(evaluate_closed_network(launch, demands, {}, gpu).cycles, 20 + 150 + 160, 1e-6);
  // Units that take an instruction per cycle are busy no longer than the issue slot.
  gpu.unit_intervals[fp64] = 1;
  EXPECT_NEAR(evaluate_closed_network(launch, demands, {}, gpu).cycles, 120, 20);
}

TEST(ClosedNetworkModel, WarpsGoOnWhileTheirStoresAreServed) {
  // 8 bytes at a byte per cycle: behind an atomic the warp waits, behind a store it does not; but
  // no more of them go than the NoC moves.
  interval::ResourceDemands demands;
  demands.write_requests = 1;
  demands.write_bytes = 8;
  ModelParameters gpu = fast_gpu();
  gpu.noc_bandwidth_gbs = 1;
  EXPECT_NEAR(run(demands, gpu).cycles, 10 + 8, 1e-6);
  demands.posted_requests = 1;
  demands.posted_bytes = 8;
  EXPECT_NEAR(run(demands, gpu).cycles, 10, 1e-6);
  demands.write_bytes = demands.posted_bytes = 80;
  EXPECT_NEAR(run(demands, gpu).cycles, 80, 1e-6);
}

TEST(ClosedNetworkModel, TheHottestChannelIsTheStation) {
  // Channels that move 8 bytes in 8 cycles, if they all did; one has three times its share.
  interval::ResourceDemands demands;
  demands.read_misses = 1;
  demands.dram_bytes = 8;
  ModelParameters gpu = fast_gpu();
  gpu.dram_bandwidth_gbs = 1;
  EXPECT_NEAR(run(demands, gpu).cycles, 10 + 8, 1e-6);
  demands.dram_imbalance = 3;
  EXPECT_NEAR(run(demands, gpu).cycles, 10 + 24, 1e-6);
}

TEST(ClosedNetworkModel, AHotSliceOfStoresDoesNotGetTheLinesOfAll) {
  // Two slices, one byte per cycle each: 128 bytes of lines from DRAM in 64 cycles, though one
  // slice has all the stores.
  interval::ResourceDemands demands;
  demands.read_misses = 4;
  demands.dram_bytes = 128;
  demands.write_requests = demands.posted_requests = 4;
  demands.slice_turns = 8;
  demands.hottest_slice_turns = 12;
  ModelParameters gpu = fast_gpu();
  gpu.l2_bytes_per_cycle = 2;
  EXPECT_NEAR(run(demands, gpu).cycles, 10 + 64, 1e-6);
}

TEST(ClosedNetworkModel, TheLastBlockDrainsAmongTheOthers) {
  // The oldest first. Two warps of one instruction that are done after 3 cycles alone, but share
  // DRAM, 4 cycles of each: 2 / x = 2 + 1 / 2 + 1 / 2 / (1 - x / 2) + 2 + 2 / (1 - 2 x).
  interval::ResourceDemands demands;
  demands.dram_bytes = 4;
  ModelParameters gpu = fast_gpu();
  gpu.scheduler = gpu::Scheduler::gto;
  gpu.dram_bandwidth_gbs = 1;
  interval::PhaseList launch;
  launch.phases = {{2, 2, 1}};
  launch.mean_depth = launch.at_start = {1};
  launch.sms = {{{1}, 1000, 1.5, 0.5}};
  launch.has_latest_end = false;  // the thousand instructions are of no phase
  launch.alone_cycles = 3;
  double x = 0.1;
  for (int i = 0; i < 100; ++i) x = 2 / (4.5 + 0.5 / (1 - x / 2) + 2 / (1 - 2 * x));
  EXPECT_NEAR(evaluate_closed_network(launch, demands, {}, gpu).cycles,
              1000 + 0.5 * (2 + 2 + 2 / (1 - 2 * x) + 1), 1e-6);
}

TEST(ClosedNetworkModel, MshrsLimitWhatIsOnItsWay) {
  // DRAM serves one of 64 warps in 10 cycles: 640 cycles per instruction, of which 10 are its
  // service. Four MSHRs are held for 40 cycles each, so that a load waits 30 of them there; for
  // the rest it waits for an MSHR.
  interval::ResourceDemands demands;
  demands.read_misses = demands.missing_loads = 1;
  demands.dram_bytes = 10;
  ModelParameters gpu = fast_gpu();
  gpu.l1_mshrs = 4;
  gpu.dram_bandwidth_gbs = 1;
  const ModelResult result = run(demands, gpu, 64);
  EXPECT_NEAR(result.cycles, 640, 1e-6);
  const CpiStack<double>& stack = result.stack;
  const double all = stack.sum() - 1;  // without the issue cycle
  // A warp's time but for its turn to issue: 9 alone, 40 at DRAM, the others of the 640 for an
  // MSHR.
  EXPECT_NEAR(stack[StackComponent::dep] / stack[StackComponent::queue], 9.0 / 40, 1e-3);
  EXPECT_NEAR(stack[StackComponent::mshr] / all, 1 - 49.0 / 639, 2e-3);
}

/// Stalls of 4, 10, 10 and 30 cycles for `dep`, L2, half L1 and half L2, and DRAM.
StallLengths some_stalls() {
  interval::IntervalColumns intervals;
  intervals.instructions = {1, 1, 1, 1, 1};
  intervals.stall_cycles = {4, 10, 0, 10, 30};
  intervals.stall_by_cause = {
      {{4, 0, 0, 0, 0}, {0, 0, 0, 5, 0}, {0, 10, 0, 5, 0}, {0, 0, 0, 0, 30}}};
  return StallLengths(intervals);
}

void expect_shares(const StallShares& shares, const StallShares& expected) {
  for (std::size_t c = 0; c < shares.size(); ++c) EXPECT_NEAR(shares[c], expected[c], 1e-12) << c;
}

TEST(StallLengths, ShortStallsAreCoveredFirst) {
  const StallLengths stalls = some_stalls();
  // Of 54 cycles all: 4, 5, 15, 30.
  expect_shares(stalls.uncovered(1), {4.0 / 54, 5.0 / 54, 15.0 / 54, 30.0 / 54});
  // 2 cycles of each covered leave 2, 8, 8, 28 of 46.
  expect_shares(stalls.uncovered(46.0 / 54), {2.0 / 46, 4.0 / 46, 12.0 / 46, 28.0 / 46});
  // 4: 0, 6, 6, 26 of 38; 8: 2, 2, 22 of 26.
  expect_shares(stalls.uncovered(38.0 / 54), {0, 3.0 / 38, 9.0 / 38, 26.0 / 38});
  expect_shares(stalls.uncovered(26.0 / 54), {0, 1.0 / 26, 3.0 / 26, 22.0 / 26});
  // From 10 on only DRAM is left.
  expect_shares(stalls.uncovered(20.0 / 54), {0, 0, 0, 1});
  expect_shares(stalls.uncovered(0.1), {0, 0, 0, 1});
  expect_shares(stalls.uncovered(0), {0, 0, 0, 1});
}

TEST(StallLengths, AWarpThatNeverStalls) { expect_shares(StallLengths().uncovered(0.5), {}); }

}  // namespace
}  // namespace warpstack::model
