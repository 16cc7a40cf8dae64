#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "gpus.h"
#include "kernels.h"
#include "timing/device/simulator.h"

namespace warpstack::timing {
namespace {

using testing::make_kernel;
using testing::small_gpu;
using testing::Step;

/// SMs run ahead at most to the next sample, so that with one in each cycle they never do.
void expect_same_cycle_by_cycle(const gpu::Gpu& gpu, const trace::KernelTrace& trace,
                                const std::string& what) {
  const SimulationResult ahead = Simulator(gpu).run(trace);
  SimulationOptions options;
  options.sample_cycles = 1;
  options.most_samples = 0;
  const SimulationResult stepped = Simulator(gpu).run(trace, options);
  EXPECT_EQ(ahead.cycles, stepped.cycles) << what;
  EXPECT_EQ(ahead.sm_cycles, stepped.sm_cycles) << what;
  EXPECT_EQ(ahead.instructions, stepped.instructions) << what;
  EXPECT_EQ(ahead.store_slots, stepped.store_slots) << what;
  EXPECT_EQ(ahead.critical_path, stepped.critical_path) << what;
  EXPECT_EQ(ahead.miss_latency.misses, stepped.miss_latency.misses) << what;
  for (const StackComponent part : values_of<StackComponent>) {
    EXPECT_EQ(ahead.slots[part], stepped.slots[part]) << what << name_of(part);
    EXPECT_EQ(ahead.miss_latency.ticks[part], stepped.miss_latency.ticks[part])
        << what << name_of(part);
  }
  for (const memory::Total total : values_of<memory::Total>) {
    EXPECT_EQ(ahead.totals[total], stepped.totals[total]) << what << name_of(total);
  }
  EXPECT_EQ(ahead.traffic.noc_request_bytes, stepped.traffic.noc_request_bytes) << what;
  EXPECT_EQ(ahead.traffic.l1_pending_sector_hits, stepped.traffic.l1_pending_sector_hits) << what;
  EXPECT_EQ(ahead.traffic.dram_row_misses, stepped.traffic.dram_row_misses) << what;
}

TEST(RunningAhead, ChangesNothing) {
  std::mt19937 random(20261129);
  const auto pick = [&](auto... values) {
    const std::vector<double> all{static_cast<double>(values)...};
    return all[random() % all.size()];
  };
  for (int round = 0; round < 60; ++round) {
    gpu::Gpu gpu = small_gpu();
    const auto number = [&](auto... values) { return static_cast<std::uint32_t>(pick(values...)); };
    gpu.num_sms = number(1, 3, 28);
    gpu.l1_miss_queue_entries = number(1, 3, 16, 64);
    gpu.l1_mshrs = number(2, 8, 128);
    gpu.l1_mshr_targets = number(1, 8);
    gpu.l2_latency = pick(0, 7, 120, 300) + 25;
    gpu.noc_bandwidth_gbs = pick(20, 200, 1050);
    gpu.l1_tags_per_cycle = number(0, 4);
    gpu.lsu_interval = number(1, 3);
    gpu.block_interval_cycles = pick(0, 1.12, 30);
    gpu.block_replacement_ns = pick(0, 225);
    gpu.blocks_per_sm = number(1, 2, 8);
    if (random() % 2) gpu.l1_latency_place = L1Latency::before_tags;
    if (random() % 2) gpu.lines_under_way = LinesUnderWay::reserved;
    if (random() % 2) gpu.store_acknowledgement = StoreAcknowledgement::awaited;
    if (random() % 3 == 0) gpu.noc_topology = NocTopology::crossbar;
    if (random() % 3 == 0) gpu.l2_clock_ghz = 1.172;
    if (random() % 3 == 0) gpu.l1_write_policy = gpu::WritePolicy::write_back;
    if (random() % 3 == 0) gpu.l1_write_miss = gpu::WriteMiss::fetch_on_write;
    std::vector<Step> steps;
    const std::uint32_t count = 3 + random() % 12;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto to = static_cast<std::uint16_t>(4 + random() % 6);
      const auto from = static_cast<std::uint16_t>(4 + random() % 6);
      const std::uint64_t stride = std::uint64_t{4} << random() % 6;
      const std::uint64_t part = random() % 4;
      const auto address = [=](std::uint64_t thread) {
        return 0x100000 + part * 0x4000 + thread * stride % 0x40000;
      };
      switch (random() % 6) {
        case 0:
          steps.push_back({"STG.E", {}, {from}, address});
          break;
        case 1:
        case 2:
          steps.push_back({"LDG.E", {to}, {from}, address});
          break;
        case 3:
          steps.push_back({"BAR.SYNC", {}, {}, {}});
          break;
        default:
          steps.push_back({"FADD", {to}, {from}, {}});
      }
    }
    const auto blocks = static_cast<std::uint64_t>(pick(2, 30, 90));
    const std::string what = "round " + std::to_string(round) + " ";
    expect_same_cycle_by_cycle(gpu, make_kernel(blocks, 32 * (1 + random() % 4), steps), what);
  }
}

}  // namespace
}  // namespace warpstack::timing
