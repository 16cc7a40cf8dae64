#include "model/closed_network.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace warpstack::model {
namespace {

TEST(ClosedNetwork, NothingThatTakesTimeHasNoBound) {
  EXPECT_EQ(closed_network_rate(4, 0, {}), std::numeric_limits<double>::infinity());
  EXPECT_EQ(closed_network_rate(4, 0, std::vector<Station>(3)),
            std::numeric_limits<double>::infinity());
}

TEST(ClosedNetwork, ThinkingAloneIsLittlesLaw) {
  EXPECT_DOUBLE_EQ(closed_network_rate(6, 3, {}), 2);
}

TEST(ClosedNetwork, OneCustomerNeverWaits) {
  const Station stations[] = {{2, 2, 1}, {3, 3, 1}};
  EXPECT_DOUBLE_EQ(closed_network_rate(1, 5, stations), 1.0 / 10);
}

TEST(ClosedNetwork, TwoCustomersOfOneStation) {
  // 2 / x = 2 + 1 / (1 - x / 2): x^2 - 4 x + 2 = 0.
  const Station station{1, 1, 2};
  EXPECT_NEAR(closed_network_rate(2, 2, {&station, 1}), 2 - std::sqrt(2), 1e-12);
}

TEST(ClosedNetwork, ManyCustomersReachTheCapacity) {
  const Station stations[] = {{1, 1, 64}, {0.1, 2.8, 64 * 28}};
  EXPECT_NEAR(closed_network_rate(64, 10, stations), 1 / 2.8, 1e-3);
  EXPECT_LE(closed_network_rate(1e9, 10, stations), 1 / 2.8);
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
      stations.push_back({demand, demand * sms, customers * sms});
      if (demand > 0) bound = std::min(bound, 1 / (demand * sms));
    }
    const double x = closed_network_rate(customers, think, stations);
    ASSERT_GT(x, 0);
    ASSERT_LE(x, bound);
    double time = think;
    for (const Station& s : stations) {
      time += s.demand / (1 - (1 - 1 / s.competitors) * s.capacity_cycles * x);
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
  launch.mean_depth = {1};
  launch.sms = {{{1}, warps, 0, 0}};
  launch.instructions = warps;
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
  demands.hottest_slice_requests = 14;
  ModelParameters gpu = fast_gpu();
  gpu.l2_requests_per_cycle = 2;
  EXPECT_NEAR(run(demands, gpu).cycles, 10 + 7, 1e-6);
  EXPECT_NEAR(run(demands, gpu).stack[StackComponent::noc], 7, 1e-6);
}

TEST(ClosedNetworkModel, ASliceReadsSoManyBytes) {
  // 8 requests of 128 bytes, all slices alike, 64 bytes per cycle: 16 cycles.
  interval::ResourceDemands demands;
  demands.read_misses = demands.hottest_slice_requests = 8;
  demands.read_bytes = 1024;
  ModelParameters gpu = fast_gpu();
  gpu.l2_bytes_per_cycle = 64;
  EXPECT_NEAR(run(demands, gpu).cycles, 10 + 16, 1e-6);
}

TEST(ClosedNetworkModel, LinesOfALoadOverlap) {
  // 32 lines: one by one through the load-store unit and the slices, 2 cycles each on the reply
  // network. The last one is there after 64 cycles and what one line takes elsewhere.
  interval::ResourceDemands demands;
  demands.lsu_cycles = demands.read_misses = demands.hottest_slice_requests = 32;
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
  // q = 100 + 50 / (1 - 50 / q), that is q^2 - 200 q + 5000 = 0.
  interval::ResourceDemands demands;
  demands.read_misses = 1;
  demands.dram_bytes = 50;
  ModelParameters gpu = fast_gpu();
  gpu.l1_mshrs = 1;
  gpu.dram_bandwidth_gbs = 1;
  gpu.l2_latency = 100;
  EXPECT_NEAR(run(demands, gpu, 64, 1).cycles, 64 * 150, 1e-3);
  EXPECT_NEAR(run(demands, gpu, 64, 2).cycles, 64 * (100 + std::sqrt(5000)), 1e-3);
}

TEST(ClosedNetworkModel, DramTurnsRoundBetweenReadsAndWrites) {
  // A read and a write of 128 bytes: of two requests that wait both go the other way with
  // 1/4, which is half a turn there, half a turn back: 2 / 4 / 2 pairs of 8 cycles.
  interval::ResourceDemands demands;
  demands.dram_bytes = 256;
  demands.dram_write_bytes = 128;
  ModelParameters gpu = fast_gpu();
  gpu.dram_turnaround_cycles = 8;
  EXPECT_NEAR(run(demands, gpu).cycles, 10 + 2, 1e-6);
  demands.dram_write_bytes = 0;
  EXPECT_NEAR(run(demands, gpu).cycles, 10, 1e-6);
}

TEST(ClosedNetworkModel, TheLastBlockDrainsAmongTheOthers) {
  // The oldest first. Two warps of one instruction that are done after 3 cycles alone, but share
  // DRAM, 4 cycles of each: 2 / x = 2 + 1 / (1 - x / 2) + 4 / (1 - 2 x).
  interval::ResourceDemands demands;
  demands.dram_bytes = 4;
  ModelParameters gpu = fast_gpu();
  gpu.scheduler = gpu::Scheduler::gto;
  gpu.dram_bandwidth_gbs = 1;
  interval::PhaseList launch;
  launch.phases = {{2, 2, 1}};
  launch.mean_depth = {1};
  launch.sms = {{{1}, 1000, 1.5, 0.5}};
  launch.alone_cycles = 3;
  double x = 0.1;
  for (int i = 0; i < 100; ++i) x = 2 / (2 + 1 / (1 - x / 2) + 4 / (1 - 2 * x));
  EXPECT_NEAR(evaluate_closed_network(launch, demands, {}, gpu).cycles,
              1000 + 0.5 * (2 + 4 / (1 - 2 * x) + 1), 1e-6);
}

}  // namespace
}  // namespace warpstack::model
