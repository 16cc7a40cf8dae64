#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "simt/state/execution.h"
#include "simt/state/faults.h"
#include "simt/state/recorder.h"

namespace warpstack::simt {

/// Barriers of a block.
class Barriers {
 public:
  Barriers(Execution& execution, Faults& faults, Recorder& recorder)
      : execution_(execution),
        program_(execution.program),
        block_(execution.block),
        faults_(faults),
        recorder_(recorder) {}

  void arrive(Warp& warp, const Step& step, const std::byte* registers, std::uint32_t mask);
  /// Called when all remaining lanes of a warp wait at barriers on several paths: the warp arrives.
  void arrive_parted(Warp& warp);
  /// Lets the warps of every complete barrier go on. Finished warps count as arrived.
  void release();

 private:
  /// A part of a warp at a barrier waits for the rest, since Volta's barriers count threads.
  void arrive_divergent(Warp& warp, const Step& step, std::uint32_t mask);
  /// Whether a path leads from a step back to it.
  bool is_in_loop(const ProgramFunction& function, const Step& step);
  /// Whether it is another one than barrier 0 of all threads, so that the trace names it.
  bool is_named(const Step& step, const std::byte* registers, std::uint32_t lane) const;
  /// Records an arrival at a barrier that the trace names, after join(); `is_part`: others of the
  /// warp are yet to come.
  void record_named(Warp& warp, const Step& step, std::uint32_t mask, bool is_part);
  BarrierState& state_of(const Step& step, const std::byte* registers, std::uint32_t lane);
  /// Checks a barrier and adds the predicates of the lanes that arrive.
  void join(Warp& warp, const Step& step, const std::byte* registers, std::uint32_t mask);
  /// Lets lanes that waited on several paths go on.
  void leave(Warp& warp, const BarrierState& barrier);

  Execution& execution_;
  const KernelProgram& program_;
  Block& block_;
  Faults& faults_;
  Recorder& recorder_;
  std::unordered_map<const Step*, bool> in_loops_;  ///< of divergent barriers
};

}  // namespace warpstack::simt
