#include "trace/columns/dependent_launch.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace warpstack::trace {
namespace {

GridStep grid_step(std::string_view opcode) {
  if (opcode == "griddepcontrol.launch_dependents" || opcode == "PREEXIT") return GridStep::trigger;
  if (opcode == "griddepcontrol.wait" || opcode == "ACQBULK") return GridStep::wait;
  return GridStep::none;
}

/// The share of a warp's instructions before the first that takes a step; 1: none does.
double share_before(std::span<const GridStep> steps, const ColumnView& warp, GridStep step) {
  for (std::size_t i = 0; i < warp.instruction.size(); ++i) {
    if (steps[warp.instruction[i]] != step || warp.active_mask[i] == 0) continue;
    return static_cast<double>(i) / static_cast<double>(warp.instruction.size());
  }
  return 1;
}

}  // namespace

std::vector<GridStep> grid_steps(const KernelTrace& trace) {
  std::vector<GridStep> steps;
  steps.reserve(trace.instructions().size());
  for (const StaticInstruction& one : trace.instructions()) steps.push_back(grid_step(one.opcode));
  return steps;
}

bool has_trigger(const KernelTrace& trace) {
  return std::ranges::any_of(trace.instructions(), [](const StaticInstruction& one) {
    return grid_step(one.opcode) == GridStep::trigger;
  });
}

DependentLaunch dependent_launch(const KernelTrace& trace, const InterruptCheck& interrupt) {
  DependentLaunch result;
  const std::vector<GridStep> steps = grid_steps(trace);
  if (std::ranges::all_of(steps, [](GridStep step) { return step == GridStep::none; })) {
    return result;
  }
  double trigger = 0;
  double wait = 0;
  std::size_t num_blocks = 0;
  std::vector<std::byte> scratch;
  for (std::uint32_t block = 0; block < trace.blocks().size(); ++block) {
    if (interrupt) interrupt();
    if (trace.blocks().counts(block).instructions == 0) continue;
    DependentLaunch first;
    const auto num_warps = static_cast<std::uint32_t>(trace.blocks().warps(block).size());
    for (std::uint32_t w = 0; w < num_warps; ++w) {
      const ColumnView warp = trace.warp({block, w}, scratch);
      first.trigger = std::min(first.trigger, share_before(steps, warp, GridStep::trigger));
      first.wait = std::min(first.wait, share_before(steps, warp, GridStep::wait));
    }
    // All blocks must have triggered; the latest decides.
    trigger = std::max(trigger, first.trigger);
    wait += first.wait;
    ++num_blocks;
  }
  if (num_blocks == 0) return result;
  result.trigger = trigger;
  result.wait = wait / static_cast<double>(num_blocks);
  return result;
}

}  // namespace warpstack::trace
