#pragma once

#include <array>
#include <cstdint>

#include "gpu/gpu.h"
#include "gpu/latencies.h"
#include "memory/order/memory_config.h"
#include "trace/instructions/opcode.h"

namespace warpstack::interval_simulation {

/// A time in SM cycles from the launch of the kernel.
using Time = double;
/// A cycle of the SM clock.
using Cycle = std::int64_t;

/// What interval simulation reads of a GPU.
struct Machine {
  gpu::Gpu gpu;
  memory::MemoryConfig memory;

  // What follows from several fields; times in SM cycles:
  gpu::ClassLatencies latency;
  std::array<std::uint32_t, trace::num_op_classes> interval{};  ///< of units; 0: no limit
  std::uint32_t schedulers = 1;                                 ///< of an SM
  double scheduler_rate = 1;  ///< instructions per cycle of one of them
  double issue_step = 1;      ///< cycles from an instruction of a warp to its next one, at least
  std::uint32_t mshrs = 1;    ///< 0: as many as needed
  std::uint32_t noc_queue_entries = 1;
  double l2_period = 1;  ///< of the clock of L2 and the NoC
  double dram_period = 1;
  double noc_cycles_per_byte = 0;   ///< of the NoC, one direction
  double port_cycles_per_byte = 0;  ///< of the port of an SM; 0: no limit
  double slice_request_cycles = 1;
  double slice_cycles_per_byte = 0;  ///< of the data of a slice
  std::uint32_t channels = 1;
  double dram_cycles_per_byte = 0;  ///< of a channel
  double block_replacement = 0;
  Cycle l1_latency = 1;
  Cycle shared_latency = 1;
  Cycle barrier_latency = 1;
  Cycle pipeline = 0;        ///< cycles before the tags of L1, where its latency passes there
  bool is_crossbar = false;  ///< only ports limit the NoC
  bool atomics_stop_warps = false;
  bool fills_late = false;  ///< lines take their place in L1 with their data
  bool reserves = false;    ///< lines under way keep their place
  bool awaits_stores = false;
  /// Cycles after which a request is back at the earliest: SMs can run that far without L2.
  Cycle window = 1;

  /// Throws InputError on a GPU that cannot be.
  static Machine of(const gpu::Gpu& gpu, double written_by_strangers = 0);
};

}  // namespace warpstack::interval_simulation
