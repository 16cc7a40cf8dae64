#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/interrupt.h"
#include "interval/warp_kinds.h"
#include "interval_simulation/steps.h"

namespace warpstack::interval_simulation {

/// The steps of warps: made once for each kind, whose warps share them, and kept while warps of
/// the kind are to come.
class KindSteps {
 public:
  KindSteps(const trace::KernelTrace& trace, const Machine& machine, const memory::CodeLines& code,
            const InterruptCheck& interrupt)
      : trace_(trace),
        kinds_(trace, interrupt),
        builder_(trace, machine, code),
        made_(kinds_.size()),
        left_(kinds_.size()) {
    for (const std::uint32_t kind : kinds_.of_warps()) ++left_[kind];
    std::size_t first = 0;
    for (std::size_t b = 0; b < trace.blocks().size(); ++b) {
      first_of_block_.push_back(first);
      first += trace.blocks().warps(b).size();
    }
  }

  std::shared_ptr<const WarpSteps> steps_of(trace::WarpPosition warp) {
    const std::uint32_t kind = kinds_.of_warps()[first_of_block_[warp.block] + warp.warp];
    std::shared_ptr<const WarpSteps>& made = made_[kind];
    if (!made) {
      made = std::make_shared<const WarpSteps>(builder_.steps_of(trace_.warp(warp, scratch_)));
    }
    std::shared_ptr<const WarpSteps> result = made;
    // Blocks that were not traced need them again.
    if (trace_.num_missing_blocks() == 0 && --left_[kind] == 0) made.reset();
    return result;
  }

 private:
  const trace::KernelTrace& trace_;
  interval::WarpKinds kinds_;
  StepBuilder builder_;
  std::vector<std::shared_ptr<const WarpSteps>> made_;
  std::vector<std::uint32_t> left_;
  std::vector<std::size_t> first_of_block_;
  std::vector<std::byte> scratch_;
};

}  // namespace warpstack::interval_simulation
