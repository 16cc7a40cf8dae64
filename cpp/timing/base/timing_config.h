#pragma once

#include <array>
#include <cstdint>

#include "common/cpi_stack.h"
#include "gpu/gpu.h"
#include "gpu/latencies.h"
#include "memory/order/memory_config.h"
#include "timing/base/clock.h"
#include "trace/instructions/opcode.h"

namespace warpstack::timing {

using gpu::AtomicRequests;
using gpu::AtomicWait;
using gpu::KernelEnd;
using gpu::L1Latency;
using gpu::LinesUnderWay;
using gpu::NocTopology;
using gpu::StoreAcknowledgement;

/// What the cycle-level simulator needs to know of a GPU. docs/explanation/timing.md says what each
/// field does.
struct TimingConfig {
  gpu::Gpu gpu;
  memory::MemoryConfig memory;  ///< SMs and caches; its block order is not used

  // What follows from several fields:
  gpu::ClassLatencies latency;
  std::array<std::uint32_t, trace::num_op_classes> interval{};  ///< cycles; 0: no limit
  std::uint32_t schedulers_per_sm = 1;
  std::uint32_t l1_mshrs = 1;           ///< 0: as many as needed
  std::uint32_t noc_queue_entries = 1;  ///< of each SM
  std::uint32_t dram_channels = 1;
  double dram_bandwidth_gbs = 1;        ///< that long streams reach
  double block_replacement_cycles = 0;  ///< from a block's end to the start of one in its place

  /// Throws InputError on a GPU that cannot be, or whose clocks are too far apart.
  static TimingConfig of(const gpu::Gpu& gpu, double written_by_strangers = 0);

  [[nodiscard]] Clock l2_clock() const {
    return Clock(gpu.l2_clock_ghz == 0 ? ticks_per_cycle
                                       : to_ticks(gpu.clock_ghz / gpu.l2_clock_ghz));
  }
  [[nodiscard]] Clock dram_clock() const {
    return gpu.dram_clock_ghz == 0 ? l2_clock()
                                   : Clock(to_ticks(gpu.clock_ghz / gpu.dram_clock_ghz));
  }
  /// Time that `bytes` take at a rate.
  [[nodiscard]] Ticks transfer_time(double bytes, double gigabytes_per_second) const {
    return to_ticks(bytes * gpu.clock_ghz / gigabytes_per_second);
  }
};

/// Lost issue slots are counted in parts, so that several warps can share one.
inline constexpr std::int64_t parts_per_slot = std::int64_t{1} << 20;

/// Adds `amount` to a stack in proportion to `shares`, whose sum is positive, in whole numbers; the
/// largest share, the first of several, takes what rounding leaves.
void add_in_proportion(CpiStack<std::int64_t>& stack, std::int64_t amount,
                       const CpiStack<std::int64_t>& shares);

}  // namespace warpstack::timing
