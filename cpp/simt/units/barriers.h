#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "simt/state/execution.h"
#include "simt/state/faults.h"

namespace warpstack::simt {

/// Barriers of a block.
class Barriers {
 public:
  Barriers(Execution& execution, Faults& faults)
      : execution_(execution),
        program_(execution.program),
        block_(execution.block),
        faults_(faults) {}

  void arrive(Warp& warp, const Step& step, const std::byte* registers, std::uint32_t mask);
  /// All lanes of a warp that are left wait at barriers, on several paths: the warp arrives.
  void arrive_parted(Warp& warp);
  /// Lets the warps of every complete barrier go on. Warps that are done count as if they came.
  void release();

 private:
  /// Part of a warp is at a barrier: it waits there for the rest, since Volta's barriers count
  /// threads.
  void arrive_divergent(Warp& warp, const Step& step, std::uint32_t mask);
  /// Whether a way leads from a step back to it.
  bool is_in_loop(const ProgramFunction& function, const Step& step);
  BarrierState& state_of(const Step& step, const std::byte* registers, std::uint32_t lane);
  /// Checks a barrier and adds the predicates of lanes that have come.
  void join(Warp& warp, const Step& step, const std::byte* registers, std::uint32_t mask);
  /// The lanes that waited on several paths go on.
  void leave(Warp& warp, const BarrierState& barrier);

  Execution& execution_;
  const KernelProgram& program_;
  Block& block_;
  Faults& faults_;
  std::unordered_map<const Step*, bool> in_loops_;  ///< divergent barriers
};

}  // namespace warpstack::simt
