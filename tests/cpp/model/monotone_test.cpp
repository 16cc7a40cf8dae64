// Nothing that makes a GPU better makes the closed network model's launch longer: random kernels,
// caches and GPUs, from the trace to the cycles. WARPSTACK_PAIRS says how many pairs per field.

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <random>

#include "gpu/reference_machine.h"
#include "kernels.h"
#include "model/model.h"

namespace warpstack::model {
namespace {

int num_pairs() {
  const char* text = std::getenv("WARPSTACK_PAIRS");
  return text ? std::atoi(text) : 10000;
}

/// Values that are compared in turn: a chain of 20 pairs costs 21 evaluations.
constexpr int pairs_of_chain = 20;

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  double real(double from, double to) { return std::uniform_real_distribution(from, to)(engine_); }
  /// Each order of magnitude is as likely.
  double scale(double from, double to) { return std::exp(real(std::log(from), std::log(to))); }
  std::uint64_t whole(std::uint64_t from, std::uint64_t to) {
    return std::uniform_int_distribution(from, to)(engine_);
  }
  bool chance(double p) { return real(0, 1) < p; }
  /// In half of the cases none. Drawn apart, so that the other draws do not depend on it.
  double crowding() { return std::max(std::uniform_real_distribution(0.0, 2.0)(crowding_), 1.0); }

 private:
  std::mt19937_64 engine_;
  std::mt19937_64 crowding_{1};
};

struct Kernel {
  trace::KernelTrace trace;
  memory::MemoryProfile memory;
  interval::IntervalColumns intervals;
  interval::ResourceDemands demands;
};

/// What a warp runs: rows of the instruction table.
using Program = std::vector<std::uint32_t>;

/// A kernel whose blocks run `programs`, one per warp, and again from the first.
trace::KernelTrace trace_of(const std::vector<testing::Step>& steps,
                            const std::vector<std::vector<Program>>& blocks,
                            std::uint64_t num_blocks) {
  trace::TraceBuilder builder(testing::header(num_blocks, 32 * blocks[0].size()),
                              testing::memory_budget());
  std::vector<std::uint32_t> rows;
  for (const testing::Step& step : steps) {
    rows.push_back(builder.intern(
        trace::make_static_instruction(static_cast<std::uint32_t>(16 * rows.size()), step.opcode,
                                       step.destinations, step.sources)));
  }
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    builder.begin_block(b);
    for (std::size_t w = 0; w < blocks[b].size(); ++w) {
      builder.begin_warp(static_cast<std::uint32_t>(w));
      for (const std::uint32_t step : blocks[b][w]) {
        trace::LaneAddresses lanes;
        lanes.mask = 0xffffffff;
        for (auto& address : lanes.address) address = 0x7000'0000;
        const bool addressed = steps[step].address != nullptr;
        builder.append(rows[step], lanes.mask, addressed ? &lanes : nullptr);
      }
    }
    builder.end_block();
  }
  return builder.finish();
}

std::vector<testing::Step> random_steps(Random& random) {
  const auto address = [](std::uint64_t) { return std::uint64_t{0x7000'0000}; };
  const auto reg = [&random] { return static_cast<std::uint16_t>(random.whole(0, 5)); };
  std::vector<testing::Step> steps;
  for (std::uint64_t i = random.whole(1, 7); i > 0; --i) {
    switch (random.whole(0, 6)) {
      case 0:
        steps.push_back({"LDG.E", {reg()}, {reg()}, address});
        break;
      case 1:
        steps.push_back({"STG.E", {}, {reg(), reg()}, address});
        break;
      case 2:
        steps.push_back({"LDS", {reg()}, {reg()}, address});
        break;
      case 3:
        steps.push_back({"RED.E.ADD", {}, {reg(), reg()}, address});
        break;
      case 4:
        steps.push_back({"MUFU.RCP", {reg()}, {reg()}, {}});
        break;
      default:
        steps.push_back({"FFMA", {reg()}, {reg(), reg()}, {}});
        break;
    }
  }
  return steps;
}

std::vector<std::vector<Program>> random_blocks(Random& random, std::size_t steps,
                                                std::uint64_t most_blocks) {
  std::vector<std::vector<Program>> blocks(random.whole(1, most_blocks));
  const std::uint64_t warps = random.whole(1, 4);
  const std::uint64_t longest = random.whole(1, 12);
  for (auto& block : blocks) {
    block.resize(warps);
    for (Program& program : block) {
      program.resize(random.whole(1, longest));
      for (std::uint32_t& row : program)
        row = static_cast<std::uint32_t>(random.whole(0, steps - 1));
    }
  }
  return blocks;
}

/// What caches may have done with a kernel.
memory::MemoryProfile random_memory(Random& random, const trace::KernelTrace& trace) {
  memory::MemoryProfile memory;
  memory.simulated_instructions = 100;
  const bool waits_are_known = random.chance(0.5);
  using Reference = gpu::ReferenceMachine;
  constexpr std::array<std::uint64_t, memory::num_miss_events> reference_levels = {
      Reference::normal, Reference::l2, Reference::l2 + Reference::dram};
  for (const trace::StaticInstruction& instruction : trace.instructions()) {
    memory::InstructionCounters counters;
    counters.executions = counters.active_executions = random.whole(1, 20);
    if (instruction.uses_caches()) {
      counters.events = {random.whole(0, 5), random.whole(0, 5), random.whole(0, 5)};
      counters.requests = random.whole(1, 300);
      counters.l2_requests = random.whole(0, counters.requests);
      counters.dram_requests = random.whole(0, counters.l2_requests);
      counters.l2_request_sectors = counters.l2_requests * random.whole(1, 4);
      counters.sectors = counters.l2_request_sectors + counters.requests;
      counters.dram_sectors = counters.dram_requests * random.whole(1, 4);
      for (std::size_t e = 0; waits_are_known && e < memory::num_miss_events; ++e) {
        counters.waits[e] = random.whole(0, 5);
        counters.wait_cycles[e] = random.whole(0, counters.waits[e] * reference_levels[e]);
      }
      memory.totals[memory::Total::dram_read_sectors] += counters.dram_sectors;
    } else if (instruction.is_memory()) {
      counters.shared_wavefronts = random.whole(1, 40);
    }
    memory.per_row.push_back(counters);
    memory.atomic_lanes.push_back(random.chance(0.5) ? 0 : random.real(1, 32));
  }
  memory.totals[memory::Total::dram_write_sectors] = random.whole(0, 500);
  memory.slice_turns = {random.real(0, 1000), random.real(0, 1000)};
  memory.slice_crowding = random.crowding();
  if (random.chance(0.3)) memory.place_wait_cycles = {random.whole(0, 5000), random.whole(0, 5000)};
  return memory;
}

Kernel kernel_of(trace::KernelTrace trace, const memory::MemoryProfile& memory) {
  const interval::Latencies ones(trace.instructions().size(), 1);
  interval::IntervalColumns intervals = interval::build_intervals(trace, {0, 0}, ones, memory, {});
  const interval::ResourceDemands demands = interval::demands_of(trace, memory);
  return {std::move(trace), memory, std::move(intervals), demands};
}

Kernel random_kernel(Random& random) {
  const auto steps = random_steps(random);
  const auto blocks = random_blocks(random, steps.size(), 5);
  trace::KernelTrace trace = trace_of(steps, blocks, blocks.size() * random.whole(1, 8));
  const memory::MemoryProfile memory = random_memory(random, trace);
  return kernel_of(std::move(trace), memory);
}

struct Gpu {
  gpu::ClassLatencies classes;
  gpu::MemoryLatencies levels;
  ModelParameters parameters;
  std::uint32_t num_sms = 1;
  std::uint32_t blocks_per_sm = 1;
  gpu::WarpWaits waits;
};

Gpu random_gpu(Random& random) {
  const auto latency = [&random] { return random.chance(0.1) ? 0 : random.scale(1, 2000); };
  Gpu gpu;
  for (double& one : gpu.classes.of_class) one = latency();
  gpu.classes.shared_memory = latency();
  gpu.levels = {latency(), latency(), latency()};
  ModelParameters& p = gpu.parameters;
  p.schedulers = random.chance(0.5) ? 1 : static_cast<double>(random.whole(1, 4));
  p.issue_rate = random.chance(0.5) ? static_cast<double>(random.whole(1, 4)) : random.real(0.3, 4);
  p.scheduler = random.chance(0.5) ? gpu::Scheduler::gto : gpu::Scheduler::lrr;
  p.clock_ghz = random.scale(0.3, 3);
  p.l1_mshrs = static_cast<double>(random.whole(1, random.chance(0.5) ? 8 : 512));
  p.noc_bandwidth_gbs = random.scale(1, 1e5);
  p.dram_bandwidth_gbs = random.scale(1, 1e5);
  p.noc_sm_bytes_per_cycle = random.chance(0.5) ? 0 : random.scale(1, 128);
  p.noc_control_bytes = random.chance(0.5) ? 0 : 8;
  p.l2_requests_per_cycle = random.scale(0.5, 96);
  p.l2_bytes_per_cycle = random.chance(0.5) ? 0 : random.scale(16, 4096);
  p.dram_turnaround_cycles = random.chance(0.5) ? 0 : random.scale(0.1, 20);
  p.block_replacement_cycles = random.chance(0.5) ? 0 : random.scale(1, 1000);
  gpu.waits = {.for_stores = random.chance(0.5), .for_atomics = random.chance(0.5)};
  gpu.num_sms = static_cast<std::uint32_t>(random.whole(1, 12));
  gpu.blocks_per_sm = static_cast<std::uint32_t>(random.whole(1, 6));
  return gpu;
}

interval::PhaseList play(const Kernel& kernel, const Gpu& gpu) {
  return interval::KernelWork(
             kernel.trace,
             interval::latencies(kernel.trace, kernel.memory, gpu.classes, gpu.levels),
             interval::reference_latencies(kernel.trace, kernel.memory),
             gpu.parameters.issue_rate / gpu.parameters.schedulers, 1, {}, gpu.waits)
      .play(gpu.num_sms, gpu.blocks_per_sm);
}

double cycles_of(const Kernel& kernel, Gpu gpu, const interval::PhaseList& launch) {
  gpu.parameters.l2_latency = gpu.levels.l2;
  gpu.parameters.dram_latency = gpu.levels.dram;
  static const Model& model = find_model("closed_network");
  return evaluate(model, {&kernel.intervals, {interval::Wave{}}, launch, kernel.demands},
                  gpu.parameters)
      .cycles;
}

constexpr double rounding = 1e-9;

struct Field {
  const char* name;
  double& (*of)(Gpu&);
  bool more_is_slower;
  bool changes_warps;
};

class Monotone : public ::testing::TestWithParam<Field> {};

TEST_P(Monotone, CyclesFollowTheField) {
  const auto& [name, of, more_is_slower, changes_warps] = GetParam();
  Random random(std::hash<std::string>()(name));
  for (int pair = 0; pair < num_pairs(); pair += pairs_of_chain) {
    const Kernel kernel = random_kernel(random);
    Gpu gpu = random_gpu(random);
    interval::PhaseList launch = play(kernel, gpu);
    double before = cycles_of(kernel, gpu, launch);
    ASSERT_TRUE(std::isfinite(before) && before > 0) << name;
    for (int i = 0; i < pairs_of_chain; ++i) {
      double& value = of(gpu);
      const double old = value;
      value *= random.chance(0.2) ? 1 + 1e-3 * random.real(0, 1) : random.scale(1, 1.6);
      if (more_is_slower && random.chance(0.2)) value += random.real(0, 30);
      if (changes_warps) launch = play(kernel, gpu);
      const double after = cycles_of(kernel, gpu, launch);
      const double faster = more_is_slower ? after : before;
      const double slower = more_is_slower ? before : after;
      ASSERT_GE(faster, slower * (1 - rounding))
          << name << " from " << old << " to " << value << ", pair " << pair + i;
      before = after;
    }
  }
}

double& class_latency(Gpu& gpu, trace::OpClass op_class) {
  return gpu.classes.of_class[static_cast<std::size_t>(op_class)];
}

INSTANTIATE_TEST_SUITE_P(
    Fields, Monotone,
    ::testing::Values(
        Field{"fp32_latency",
              [](Gpu& g) -> double& { return class_latency(g, trace::OpClass::fp32); }, true, true},
        Field{"sfu_latency",
              [](Gpu& g) -> double& { return class_latency(g, trace::OpClass::sfu); }, true, true},
        Field{"shared_memory_latency", [](Gpu& g) -> double& { return g.classes.shared_memory; },
              true, true},
        Field{"l1_latency", [](Gpu& g) -> double& { return g.levels.l1; }, true, true},
        Field{"l2_latency", [](Gpu& g) -> double& { return g.levels.l2; }, true, true},
        Field{"dram_latency", [](Gpu& g) -> double& { return g.levels.dram; }, true, true},
        Field{"block_replacement_ns",
              [](Gpu& g) -> double& { return g.parameters.block_replacement_cycles; }, true, false},
        Field{"issue_width", [](Gpu& g) -> double& { return g.parameters.issue_rate; }, false,
              true},
        Field{"clock_ghz", [](Gpu& g) -> double& { return g.parameters.clock_ghz; }, true, false},
        Field{"l1_mshrs", [](Gpu& g) -> double& { return g.parameters.l1_mshrs; }, false, false},
        Field{"noc_bandwidth_gbs", [](Gpu& g) -> double& { return g.parameters.noc_bandwidth_gbs; },
              false, false},
        Field{"dram_bandwidth_gbs",
              [](Gpu& g) -> double& { return g.parameters.dram_bandwidth_gbs; }, false, false},
        Field{"noc_sm_bytes_per_cycle",
              [](Gpu& g) -> double& { return g.parameters.noc_sm_bytes_per_cycle; }, false, false},
        Field{"noc_control_bytes", [](Gpu& g) -> double& { return g.parameters.noc_control_bytes; },
              true, false},
        Field{"l2_slices", [](Gpu& g) -> double& { return g.parameters.l2_requests_per_cycle; },
              false, false},
        Field{"l2_slice_bytes_per_cycle",
              [](Gpu& g) -> double& { return g.parameters.l2_bytes_per_cycle; }, false, false},
        Field{"dram_turnaround",
              [](Gpu& g) -> double& { return g.parameters.dram_turnaround_cycles; }, true, false}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(MonotoneLaunch, MoreBlocksOfTheSameKindAreNeverFaster) {
  Random random(20);
  for (int pair = 0; pair < num_pairs(); pair += pairs_of_chain) {
    const auto steps = random_steps(random);
    const auto blocks = random_blocks(random, steps.size(), 1);
    const Gpu gpu = random_gpu(random);
    std::optional<memory::MemoryProfile> memory;
    double before = 0;
    // A launch of few waves, or of so many that only some are played.
    const std::uint64_t first = random.chance(0.8) ? random.whole(1, 60) : random.whole(50, 400);
    for (std::uint64_t num_blocks = first; num_blocks <= first + pairs_of_chain; ++num_blocks) {
      trace::KernelTrace trace = trace_of(steps, blocks, num_blocks);
      if (!memory) memory = random_memory(random, trace);
      const Kernel whole = kernel_of(std::move(trace), *memory);
      const double cycles = cycles_of(whole, gpu, play(whole, gpu));
      ASSERT_GE(cycles, before * (1 - rounding)) << num_blocks << " blocks, pair " << pair;
      before = cycles;
    }
  }
}

}  // namespace
}  // namespace warpstack::model
