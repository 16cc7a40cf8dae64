#include "model/batch.h"

#include <gtest/gtest.h>

#include <random>
#include <stdexcept>

#include "common/error.h"

namespace warpstack::model {
namespace {

/// Intervals with random demands; some have no requests.
interval::IntervalColumns random_intervals(std::size_t size, std::mt19937& random) {
  std::uniform_int_distribution<int> few(0, 40);
  interval::IntervalColumns columns;
  for (std::size_t i = 0; i < size; ++i) {
    const double reads = std::max(few(random) - 20, 0);
    const double writes = std::max(few(random) - 30, 0);
    const double stall = few(random) * 10;
    columns.instructions.push_back(1 + few(random));
    columns.stall_cycles.push_back(stall);
    for (std::vector<double>& cause : columns.stall_by_cause) cause.push_back(stall / 4);
    columns.cause_row.push_back(-1);
    columns.memory_instructions.push_back(reads > 0 ? 1 : 0);
    columns.read_misses.push_back(reads);
    columns.write_requests.push_back(writes);
    columns.dram_read_requests.push_back(reads * 0.3);
    columns.dram_write_requests.push_back(writes * 0.3);
    columns.dram_requests.push_back((reads + writes) * 0.3);
    columns.llc_miss_ratio.push_back(0.3);
    columns.read_bytes.push_back(i % 3 == 0 ? 0 : 64);
    columns.write_bytes.push_back(32);
    columns.dram_bytes.push_back(i % 5 == 0 ? 0 : 32);
  }
  return columns;
}

std::vector<ModelParameters> random_configurations(std::size_t size, std::mt19937& random) {
  std::uniform_real_distribution<double> number(1, 1000);
  std::vector<ModelParameters> configurations(size);
  for (ModelParameters& parameters : configurations) {
    // What the evaluator keeps depends on the first three: it has to notice that they change.
    parameters.issue_rate = random() % 4 == 0 ? 2 : 1;
    parameters.l1_request_bytes = random() % 4 == 0 ? 32 : 128;
    parameters.scheduler = random() % 2 == 0 ? gpu::Scheduler::gto : gpu::Scheduler::lrr;
    parameters.clock_ghz = number(random) / 500;
    parameters.l1_mshrs = 1 + random() % 64;
    parameters.l2_latency = number(random);
    parameters.dram_latency = number(random);
    parameters.noc_bandwidth_gbs = number(random);
    parameters.dram_bandwidth_gbs = number(random);
  }
  return configurations;
}

TEST(Batch, EqualsEachEvaluationOnAnyNumberOfThreads) {
  std::mt19937 random(1);
  const interval::IntervalColumns first = random_intervals(30, random);
  const interval::IntervalColumns second = random_intervals(1, random);
  const std::vector<ModelInput> kernels = {{&first, {{2, 16, 4, 64}, {1, 3.5, 2, 7}}, {}, {}},
                                           {&second, {{1, 8, 1, 8}}, {}, {}}};
  const std::vector<ModelParameters> configurations = random_configurations(3000, random);
  for (const std::string_view name : model_names()) {
    const Model& model = find_model(name);
    for (const unsigned threads : {1U, 3U}) {
      const ModelColumns columns = evaluate_all(model, kernels, configurations, threads);
      ASSERT_EQ(columns.cycles.size(), 6000U);
      for (std::size_t entry = 0; entry < 6000; entry += 7) {
        const ModelInput& kernel = kernels[entry % 2];
        const ModelResult one =
            evaluate(model, *kernel.intervals, kernel.waves, configurations[entry / 2]);
        ASSERT_EQ(columns.cycles[entry], one.cycles) << name << " " << entry;
        ASSERT_EQ(columns.cpi[entry], one.cpi);
        ASSERT_EQ(columns.warp_instructions[entry], one.warp_instructions);
        for (const StackComponent c : values_of<StackComponent>) {
          ASSERT_EQ(columns.stack[c][entry], one.stack[c]);
        }
      }
    }
  }
}

TEST(Batch, ErrorsAndInterruptsReachTheCaller) {
  std::mt19937 random(2);
  const interval::IntervalColumns intervals = random_intervals(4, random);
  const std::vector<ModelInput> kernels = {{&intervals, {{1, 8, 1, 8}}, {}, {}}};
  std::vector<ModelParameters> configurations = random_configurations(5000, random);
  EXPECT_THROW(evaluate_all(find_model("mdm"), kernels, configurations, 2,
                            [] { throw std::runtime_error("stop"); }),
               std::runtime_error);
  configurations[4321].l1_mshrs = 0;
  EXPECT_THROW(evaluate_all(find_model("mdm"), kernels, configurations, 2), InputError);
  const interval::IntervalColumns none;
  const std::vector<ModelInput> empty = {{&none, {{1, 8, 1, 8}}, {}, {}}};
  EXPECT_THROW(evaluate_all(find_model("mdm"), empty, configurations), InputError);
}

TEST(Batch, NothingGivesNothing) {
  EXPECT_TRUE(evaluate_all(find_model("mdm"), {}, {}, 4).cycles.empty());
}

}  // namespace
}  // namespace warpstack::model
