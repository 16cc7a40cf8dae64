#pragma once

#include <array>
#include <cstdint>

#include "common/cpi_stack.h"
#include "gpu/latencies.h"
#include "gpu/scheduler.h"
#include "memory/memory_system.h"
#include "timing/clock.h"
#include "trace/opcode.h"

namespace warpstack::timing {

/// What the cycle-level simulator needs to know of a GPU. Latencies are in SM cycles;
/// docs/explanation/timing.md says what each field does.
struct TimingConfig {
  memory::MemoryConfig memory;  ///< SMs and caches; its block order is not used

  double clock_ghz = 1;
  double l2_clock_ghz = 0;    ///< of the NoC and L2; 0: the SM clock
  double dram_clock_ghz = 0;  ///< 0: the clock of L2

  gpu::Scheduler scheduler = gpu::Scheduler::gto;
  double issue_width = 1;  ///< warp instructions per cycle and SM
  std::uint32_t schedulers_per_sm = 1;
  gpu::ClassLatencies latency;
  std::array<std::uint32_t, trace::num_op_classes> interval{};  ///< cycles; 0: no limit
  std::uint32_t lsu_queue_entries = 2;

  double l1_latency = 0;
  std::uint32_t l1_mshrs = 1;  ///< 0: as many as needed
  std::uint32_t l1_mshr_targets = 1;
  std::uint32_t noc_queue_entries = 1;  ///< of each SM

  double noc_bandwidth_gbs = 1;
  double noc_sm_bytes_per_cycle = 0;  ///< of the NoC clock, each way; 0: no limit
  std::uint32_t noc_control_bytes = 0;

  double l2_latency = 0;
  std::uint32_t l2_mshrs = 1;  ///< of each slice
  std::uint32_t l2_mshr_targets = 1;
  std::uint32_t l2_queue_entries = 1;  ///< of each slice, for requests and for replies

  double dram_latency = 0;
  double dram_bandwidth_gbs = 1;
  std::uint32_t dram_channels = 1;
  std::uint32_t dram_queue_entries = 1;  ///< of each channel
  std::uint32_t dram_row_bytes = 0;      ///< 0: every access takes the same time
  std::uint32_t dram_banks = 1;          ///< of each channel
  double dram_row_miss_cycles = 0;

  /// Throws InputError on impossible values.
  void validate() const;

  [[nodiscard]] Clock l2_clock() const {
    return Clock(l2_clock_ghz == 0 ? ticks_per_cycle : to_ticks(clock_ghz / l2_clock_ghz));
  }
  [[nodiscard]] Clock dram_clock() const {
    return dram_clock_ghz == 0 ? l2_clock() : Clock(to_ticks(clock_ghz / dram_clock_ghz));
  }
  /// Time that `bytes` take at a rate.
  [[nodiscard]] Ticks transfer_time(double bytes, double gigabytes_per_second) const {
    return to_ticks(bytes * clock_ghz / gigabytes_per_second);
  }
};

/// Adds `amount` to a stack in proportion to `shares`, whose sum is positive, in whole numbers; the
/// largest share, the first of several, takes what rounding leaves.
void add_in_proportion(CpiStack<std::int64_t>& stack, std::int64_t amount,
                       const CpiStack<std::int64_t>& shares);

}  // namespace warpstack::timing
