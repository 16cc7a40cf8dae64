#include "timing/base/timing_config.h"

#include <string>

#include "common/error.h"
#include "gpu/own_policies.h"

namespace warpstack::timing {

void add_in_proportion(CpiStack<std::int64_t>& stack, std::int64_t amount,
                       const CpiStack<std::int64_t>& shares) {
  const std::int64_t total = shares.sum();
  std::int64_t rest = amount;
  StackComponent largest{};
  for (const StackComponent component : values_of<StackComponent>) {
    const auto part =
        static_cast<std::int64_t>(static_cast<__int128>(amount) * shares[component] / total);
    stack[component] += part;
    rest -= part;
    if (shares[component] > shares[largest]) largest = component;
  }
  stack[largest] += rest;
}

TimingConfig TimingConfig::of(const gpu::Gpu& gpu, double written_by_strangers) {
  check(gpu);
  constexpr double most_ratio = 1e4;
  for (const double clock : {gpu.l2_clock_ghz, gpu.dram_clock_ghz}) {
    const double ratio = clock == 0 ? 1 : gpu.clock_ghz / clock;
    if (!(ratio <= most_ratio && 1 / ratio <= most_ratio)) {
      throw InputError("clock_ghz = " + std::to_string(gpu.clock_ghz) + " and another clock of " +
                       std::to_string(clock) + " GHz are more than a factor of 10000 apart");
    }
  }
  for (const auto policy : {gpu.l1_replacement, gpu.l2_replacement}) {
    if (!gpu::is_own(policy)) continue;
    throw InputError("the cycle-level simulator has no replacement policy " +
                     std::string(gpu::policy_name(policy)) +
                     ", which is written in Python; simulate_caches, predict and sweep take it");
  }
  TimingConfig config;
  config.gpu = gpu;
  config.memory = memory::MemoryConfig::of(
      gpu, {.block_order = {}, .written_by_strangers = written_by_strangers});
  config.latency = gpu::ClassLatencies::of(gpu);
  config.interval = gpu::class_intervals(gpu);
  config.schedulers_per_sm = gpu.num_schedulers();
  config.l1_mshrs = gpu.has_streaming_l1() ? 0 : gpu.l1_mshrs;
  config.noc_queue_entries =
      gpu.has_streaming_l1() ? gpu.noc_queue_entries : gpu.l1_miss_queue_entries;
  config.dram_channels = gpu.num_dram_channels();
  config.dram_bandwidth_gbs = gpu.sustained_dram_bandwidth_gbs();
  config.block_replacement_cycles = gpu.block_replacement_cycles();
  return config;
}

}  // namespace warpstack::timing
