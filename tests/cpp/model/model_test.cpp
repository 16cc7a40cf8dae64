#include "model/model.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "common/error.h"

namespace warpstack::model {
namespace {

interval::IntervalColumns one_interval(double instructions, double stall, double reads,
                                       double miss_ratio) {
  interval::IntervalColumns columns;
  columns.instructions = {instructions};
  columns.stall_cycles = {stall};
  columns.stall_by_cause = {std::vector<double>{stall}, {0}, {0}, {0}};
  columns.cause_row = {-1};
  columns.memory_instructions = {reads > 0 ? 1.0 : 0.0};
  columns.read_misses = {reads};
  columns.write_requests = {0};
  columns.dram_read_requests = {reads * miss_ratio};
  columns.dram_write_requests = {0};
  columns.dram_requests = {reads * miss_ratio};
  columns.llc_miss_ratio = {miss_ratio};
  columns.read_bytes = {128};
  columns.write_bytes = {128};
  columns.dram_bytes = {128};
  return columns;
}

ModelParameters machine() {
  ModelParameters parameters;
  parameters.l1_mshrs = 128;
  parameters.l2_latency = 120;
  parameters.dram_latency = 220;
  parameters.noc_bandwidth_gbs = 750;
  parameters.dram_bandwidth_gbs = 340;
  return parameters;
}

double cycles(std::string_view model, const interval::IntervalColumns& columns,
              const interval::Wave& wave, const ModelParameters& parameters) {
  return evaluate(find_model(model), columns, {&wave, 1}, parameters).cycles;
}

TEST(Models, GpumechFigure8GreedyThenOldest) {
  EXPECT_EQ(cycles("mt", one_interval(3, 6, 0, 0), {1, 4, 1, 4}, machine()), 12);
}

TEST(Models, MdmFigure4Batches) {
  ModelParameters parameters = machine();
  parameters.l1_mshrs = 3;
  parameters.l2_latency = 100;
  parameters.dram_latency = 0;
  parameters.noc_bandwidth_gbs = 2.56;
  // 18 requests, 3 MSHRs: five batches of 100 + 150 cycles before the last, and the queue of 150.
  EXPECT_DOUBLE_EQ(cycles("mdm", one_interval(3, 100, 6, 0), {1, 3, 1, 3}, parameters),
                   103 + 150 + 5 * 250);
  EXPECT_DOUBLE_EQ(cycles("mdm", one_interval(3, 100, 1, 0), {1, 3, 1, 3}, parameters), 103 + 75);
}

TEST(Models, ClosedFormOfTheMshrSumEqualsTheSum) {
  ModelParameters parameters = machine();
  for (const double mshrs : {1.0, 3.0, 32.0}) {
    parameters.l1_mshrs = mshrs;
    for (int warps = 1; warps < 200; warps += 7) {
      const interval::IntervalColumns columns = one_interval(3, 100, 1.7, 0.5);
      const interval::Wave wave{1, static_cast<double>(warps), 1, static_cast<double>(warps)};
      const double delay = cycles("mt_mshr", columns, wave, parameters) * 1.0;
      const double base = cycles("mt", columns, wave, parameters);
      const double requests = 1.7 * warps;
      double expected = 0;
      if (requests > mshrs) {
        const int whole = static_cast<int>(requests);
        double sum = 0;
        for (int j = 1; j <= whole; ++j) sum += std::ceil(j / mshrs);
        expected = (120 + 0.5 * 220) * (sum / whole - 1);
      }
      EXPECT_NEAR(delay, std::max(base, base + expected), 1e-9 * delay);
    }
  }
}

TEST(Models, StacksSumExactly) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int trial = 0; trial < 200; ++trial) {
    interval::IntervalColumns columns = one_interval(
        1 + 50 * uniform(random), 500 * uniform(random), 40 * uniform(random), uniform(random));
    columns.stall_by_cause[0][0] *= 0.25;
    columns.stall_by_cause[3][0] = columns.stall_cycles[0] * 0.75;
    ModelParameters parameters = machine();
    parameters.issue_rate = trial % 2 == 0 ? 1 : 4;
    const std::vector<interval::Wave> waves = interval::waves_of(1 + trial * 13, 4, 8, 28);
    for (const std::string_view name : model_names()) {
      const ModelResult result = evaluate(find_model(name), columns, waves, parameters);
      const double sum = std::accumulate(result.stack.begin(), result.stack.end(), 0.0);
      EXPECT_NEAR(sum, result.cpi, 1e-12 * result.cpi) << name;
      for (const double part : result.stack) EXPECT_GE(part, 0) << name;
      EXPECT_GE(result.cpi, 1 / parameters.issue_rate * (1 - 1e-12)) << name;
    }
  }
}

TEST(Markov, MoreWarpsHideMore) {
  double before = 1;
  for (unsigned warps = 1; warps <= 64; warps *= 2) {
    const double idle = markov_all_suspended(warps, 0.2, 0.01);
    EXPECT_LT(idle, before);
    before = idle;
  }
  EXPECT_DOUBLE_EQ(markov_all_suspended(1, 0.25, 0.05), 0.25 / 0.30);
  EXPECT_EQ(markov_all_suspended(2, 0.25, 1), 0) << "a warp sleeps one slot while the other issues";
  EXPECT_EQ(markov_all_suspended(64, 1e-12, 1), 0);
}

TEST(Waves, CoverTheLaunch) {
  const std::vector<interval::Wave> waves = interval::waves_of(500, 4, 8, 28);
  ASSERT_EQ(waves.size(), 2u);
  EXPECT_EQ(waves[0].count, 2);
  EXPECT_EQ(waves[0].warps, 32);
  EXPECT_EQ(waves[0].total_warps, 8 * 28 * 4);
  // 52 blocks are left: two on the fullest of 28 SMs.
  EXPECT_EQ(waves[1].warps, 8);
  EXPECT_EQ(waves[1].active_sms, 28);
  EXPECT_EQ(waves[1].total_warps, 52 * 4);
  EXPECT_EQ(interval::waves_of(3, 4, 8, 28)[0].active_sms, 3);
}

TEST(Models, BadInputIsNamed) {
  const interval::Wave wave;
  EXPECT_THROW(find_model("nonsense"), InputError);
  EXPECT_THROW(evaluate(find_model("mdm"), interval::IntervalColumns{}, {&wave, 1}, machine()),
               InputError);
  EXPECT_THROW(evaluate(find_model("mdm"), one_interval(1, 1, 1, 1), {}, machine()), InputError);
  ModelParameters parameters = machine();
  parameters.dram_bandwidth_gbs = 0;
  EXPECT_THROW(cycles("mdm", one_interval(1, 1, 1, 1), wave, parameters), InputError);
}

}  // namespace
}  // namespace warpstack::model
