#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "memory/memory_system.h"
#include "timing/clock.h"
#include "trace/opcode.h"

namespace warpstack::timing {

/// In which order a warp scheduler offers its warps the issue slots.
enum class WarpOrder : std::uint8_t {
  gto,     ///< the warp that issued last, then from the oldest on
  lrr,     ///< from the warp after the one that issued last on, in order of age
  oldest,  ///< from the oldest on
};
inline constexpr std::size_t num_warp_orders = 3;
std::string_view name_of(WarpOrder order);

/// What the cycle-level simulator needs to know of a GPU. Latencies are in SM cycles;
/// docs/timing.md says what each field does.
struct TimingConfig {
  memory::MemoryConfig memory;  ///< SMs and caches; its block order is not used

  double clock_ghz = 1;
  double l2_clock_ghz = 0;    ///< of the NoC and L2; 0: the SM clock
  double dram_clock_ghz = 0;  ///< 0: the clock of L2

  WarpOrder order = WarpOrder::gto;
  double issue_width = 1;        ///< warp instructions per cycle and SM
  std::uint32_t schedulers = 1;  ///< per SM
  std::array<double, trace::num_op_classes> latency{};
  std::array<std::uint32_t, trace::num_op_classes> interval{};  ///< cycles; 0: no limit
  double shared_memory_latency = 0;
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

/// What an issue slot was used for or lost to: the parts of a CPI stack (GPUMech, Table III; MDM,
/// Figure 14), and the parts of a miss's latency.
enum class StackPart : std::uint8_t { base, dep, l1, l2, dram, mshr, noc, queue };
inline constexpr std::size_t num_stack_parts = 8;
std::string_view name_of(StackPart part);

/// An amount of each part.
class Stack {
 public:
  std::int64_t& operator[](StackPart part) { return values_[static_cast<std::size_t>(part)]; }
  std::int64_t operator[](StackPart part) const { return values_[static_cast<std::size_t>(part)]; }
  Stack& operator+=(const Stack& other) {
    for (std::size_t i = 0; i < num_stack_parts; ++i) values_[i] += other.values_[i];
    return *this;
  }
  [[nodiscard]] std::int64_t sum() const {
    std::int64_t result = 0;
    for (const std::int64_t value : values_) result += value;
    return result;
  }
  /// Adds `amount` in proportion to `shares`, whose sum is positive, in whole numbers; the largest
  /// share, the first of several, takes what rounding leaves.
  void add_in_proportion(std::int64_t amount, const Stack& shares);

 private:
  std::array<std::int64_t, num_stack_parts> values_{};
};

}  // namespace warpstack::timing
