#pragma once

#include <cstdint>
#include <vector>

#include "common/interrupt.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::trace {

/// What an instruction does with the launches before and behind its own, where these overlap
/// (CUDA C++ Programming Guide, "Programmatic Dependent Launch and Synchronization").
enum class GridStep : std::uint8_t {
  none,
  /// Of its block: those behind may start (`griddepcontrol.launch_dependents`, `PREEXIT`).
  trigger,
  wait,  ///< for the end of those before (`griddepcontrol.wait`, `ACQBULK`)
};

/// That of each row of a kernel's instruction table.
[[nodiscard]] std::vector<GridStep> grid_steps(const KernelTrace& trace);

/// Where a kernel's blocks are when those behind it may start, and when they wait for those before
/// it (GridStep): shares of the instructions of a block's warps. Of a block the warp counts that
/// gets there with the fewest instructions behind it; of a kernel the block that triggers last, and
/// the mean of its blocks for waits.
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
