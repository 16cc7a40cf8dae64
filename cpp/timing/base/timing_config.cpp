#include "timing/base/timing_config.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "common/error.h"

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

void TimingConfig::validate() const {
  memory.validate();
  const auto positive = [](const char* name, double value) {
    if (!(value > 0)) throw InputError(std::string(name) + " is not positive");
  };
  const auto latency_of = [](const char* name, double value) {
    // Beyond, times of long kernels would not fit.
    constexpr double most = 1e9;
    if (!(value >= 0) || value > most) {
      throw InputError(std::string(name) + " = " + std::to_string(value) +
                       " is outside 0 to 1e9 SM cycles");
    }
  };
  positive("clock_ghz", clock_ghz);
  positive("issue_width", issue_width);
  positive("noc_bandwidth_gbs", noc_bandwidth_gbs);
  positive("dram_bandwidth_gbs", dram_bandwidth_gbs);
  positive("schedulers_per_sm", schedulers_per_sm);
  positive("lsu_queue_entries", lsu_queue_entries);
  positive("l1_mshr_targets", l1_mshr_targets);
  positive("noc_queue_entries", noc_queue_entries);
  positive("l2_mshrs", l2_mshrs);
  positive("l2_mshr_targets", l2_mshr_targets);
  positive("l2_queue_entries", l2_queue_entries);
  positive("dram_queue_entries", dram_queue_entries);
  positive("dram_banks", dram_banks);
  for (const double value : latency.of_class) latency_of("a latency", value);
  latency_of("block_interval_cycles", block_interval_cycles);
  latency_of("block_replacement_ns", block_replacement_cycles);
  latency_of("warp_start_cycles", warp_start_cycles);
  latency_of("shared_memory_latency", latency.shared_memory);
  latency_of("l1_latency", l1_latency);
  latency_of("l2_latency", l2_latency);
  latency_of("dram_latency", dram_latency);
  latency_of("l2_slice_request_cycles", l2_slice_request_cycles);
  constexpr std::uint64_t most_banks = 1 << 20;
  if (dram_row_bytes > 0 && std::uint64_t{dram_banks} * dram_channels > most_banks) {
    throw InputError("dram_banks = " + std::to_string(dram_banks) + " of each of " +
                     std::to_string(dram_channels) + " channels are more than 2^20 banks");
  }
  positive("dram_burst_bytes", dram_timing.burst_bytes);
  positive("dram_bank_groups", dram_timing.bank_groups);
  positive("dram_tccd", dram_timing.ccd);
  positive("dram_bank_interleave_bytes", dram_bank_interleave_bytes);
  if (dram_interleaved_banks == 0 || dram_banks % dram_interleaved_banks != 0) {
    throw InputError("dram_interleaved_banks = " + std::to_string(dram_interleaved_banks) +
                     " does not divide dram_banks = " + std::to_string(dram_banks));
  }
  const std::uint64_t needed =
      std::uint64_t{dram_timing.rcd} +
      std::max<std::uint64_t>(
          {dram_timing.refresh, dram_timing.rrd, std::uint64_t{dram_timing.ras} + dram_timing.rp});
  if (dram_timing.refresh_interval > 0 && needed >= dram_timing.refresh_interval) {
    throw InputError("dram_trefi = " + std::to_string(dram_timing.refresh_interval) +
                     " leaves no time between refreshes to open a row and use it");
  }
  if (l1_latency_place == L1Latency::before_tags && std::ceil(l1_latency) > l2_latency) {
    throw InputError("l2_latency = " + std::to_string(l2_latency) +
                     " is less than l1_latency = " + std::to_string(l1_latency) +
                     ", which is part of it where l1_latency_place is before_tags");
  }
  if (dram_channels == 0 || memory.l2.slices % dram_channels != 0) {
    throw InputError("dram_channels = " + std::to_string(dram_channels) +
                     " does not divide l2_slices = " + std::to_string(memory.l2.slices));
  }
  constexpr double most_ratio = 1e4;
  for (const double clock : {l2_clock_ghz, dram_clock_ghz}) {
    if (clock != 0 && !(clock_ghz / clock <= most_ratio && clock / clock_ghz <= most_ratio)) {
      throw InputError("clock_ghz = " + std::to_string(clock_ghz) + " and another clock of " +
                       std::to_string(clock) + " GHz are more than a factor of 10000 apart");
    }
  }
  constexpr double most_width = 1024;
  if (issue_width > most_width || issue_width * static_cast<double>(ticks_per_cycle) < 1) {
    throw InputError("issue_width = " + std::to_string(issue_width) +
                     " is outside 1e-6 to 1024 warp instructions per cycle");
  }
}

}  // namespace warpstack::timing
