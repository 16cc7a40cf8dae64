#include "trace/columns/dependent_launch.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace warpstack::trace {
namespace {

bool has_step(const KernelTrace& trace, GridStep step) {
  return std::ranges::any_of(trace.effects(),
                             [step](const Effects& one) { return one.grid == step; });
}

/// The share of a warp's instructions before the first that takes a step; 1: none does.
double share_before(const KernelTrace& trace, const ColumnView& warp, GridStep step) {
  for (std::size_t i = 0; i < warp.instruction.size(); ++i) {
    if (trace.effects()[warp.instruction[i]].grid != step || warp.active_mask[i] == 0) continue;
    return static_cast<double>(i) / static_cast<double>(warp.instruction.size());
  }
  return 1;
}

}  // namespace

bool has_trigger(const KernelTrace& trace) { return has_step(trace, GridStep::trigger); }

DependentLaunch dependent_launch(const KernelTrace& trace, const InterruptCheck& interrupt) {
  DependentLaunch result;
  if (!has_trigger(trace) && !has_step(trace, GridStep::wait)) return result;
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
      first.trigger = std::min(first.trigger, share_before(trace, warp, GridStep::trigger));
      first.wait = std::min(first.wait, share_before(trace, warp, GridStep::wait));
    }
    trigger += first.trigger;
    wait += first.wait;
    ++num_blocks;
  }
  if (num_blocks == 0) return result;
  result.trigger = trigger / static_cast<double>(num_blocks);
  result.wait = wait / static_cast<double>(num_blocks);
  return result;
}

}  // namespace warpstack::trace
