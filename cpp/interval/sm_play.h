#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "interval/interval.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::interval {

/// What the warps of an SM share when nothing beyond it holds them up.
struct SmUnits {
  /// By row: cycles of the load-store unit for a memory instruction, else of the scheduler's unit.
  std::vector<double> cycles;
  std::uint32_t schedulers = 1;
  double issue_interval = 1;        ///< cycles of a scheduler from one instruction to the next
  std::uint32_t queue_entries = 1;  ///< of the load-store unit
  gpu::Scheduler policy = gpu::Scheduler::gto;

  static SmUnits of(const trace::KernelTrace& trace, const memory::MemoryProfile& memory,
                    const gpu::Gpu& gpu);
};

/// Plays blocks of a trace that start together on an SM that has nothing else. Of all warps the one
/// issues next that can first, of several of a scheduler by its policy. At the load-store unit,
/// which takes one instruction a cycle, schedulers come first in turn, as in the simulator. A unit
/// takes an instruction when it is free, the load-store unit as many as its queue has room for,
/// which it serves in the order of issue. Barriers of a block, named ones, too, let their warps go
/// when the last one has come, and mbarriers when they are complete. Loads take their latency.
/// Returns the cycles until the last warp has ended.
double play_blocks(const trace::KernelTrace& trace, std::span<const std::uint32_t> blocks,
                   const WarpLatencies& latencies, const SmUnits& units,
                   const gpu::WarpWaits& waits);

}  // namespace warpstack::interval
