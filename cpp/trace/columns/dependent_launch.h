#pragma once

#include "common/interrupt.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::trace {

/// Where a kernel's blocks are when those behind it may start, and when they wait for those before
/// it (GridStep): shares of the instructions of a block's warps. Of a block the warp counts that
/// gets there with the fewest instructions behind it; of a kernel the mean of its blocks.
struct DependentLaunch {
  double trigger = 1;  ///< 1: at the end, without a trigger
  double wait = 1;     ///< 1: never
};

/// Whether an instruction of a kernel lets those behind it start.
[[nodiscard]] bool has_trigger(const KernelTrace& trace);

/// Reads the trace only where it has such instructions.
[[nodiscard]] DependentLaunch dependent_launch(const KernelTrace& trace,
                                               const InterruptCheck& interrupt = {});

}  // namespace warpstack::trace
