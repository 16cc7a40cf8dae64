#pragma once

#include <cstddef>
#include <cstdint>

#include "simt/state/execution.h"
#include "simt/state/faults.h"
#include "simt/units/barriers.h"
#include "simt/units/calls.h"

namespace warpstack::simt {

/// Executes branches, returns and exits of a warp.
class Branches {
 public:
  Branches(Execution& execution, Faults& faults, Calls& calls, Barriers& barriers)
      : program_(execution.program),
        block_(execution.block),
        faults_(faults),
        calls_(calls),
        barriers_(barriers) {}

  void branch(Warp& warp, const Step& step, std::uint32_t taken);
  void indexed_branch(Warp& warp, const Step& step, const std::byte* registers, std::uint32_t mask);
  /// Lanes that name different masks go on separately, though at the same step.
  void separate(Warp& warp, const Step& step, const std::byte* registers, std::uint32_t mask);
  /// Lanes return from the function, or exit.
  void leave(Warp& warp, std::uint32_t mask, bool exits);

 private:
  const KernelProgram& program_;
  Block& block_;
  Faults& faults_;
  Calls& calls_;
  Barriers& barriers_;
};

}  // namespace warpstack::simt
