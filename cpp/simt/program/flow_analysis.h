#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simt/program/program.h"

// Analysis of a function before it runs: where diverged lanes reconverge, and which values may
// share registers. branches.h has what lanes do at a branch.

namespace warpstack::simt {

/// Successors of each step of a function. The number of steps stands for the function's end.
using Successors = std::vector<std::vector<std::uint32_t>>;

/// Immediate post-dominator of each step that has more than one successor: the first step that all
/// paths from it to the function's end share, or the end itself. (Cooper, Harvey and Kennedy, "A
/// simple, fast dominance algorithm", on the reversed graph of basic blocks.) Steps from which the
/// end cannot be reached count as if each led to it.
std::vector<std::uint32_t> post_dominators(const Successors& successors);

/// Fills in Step::stretch: the number of steps from this one on that are arithmetic of all lanes of
/// a path, without reconvergence, and with consecutive rows of the trace. A warp executes such
/// steps in one go. Without it each step is executed by itself, with the same results.
void find_stretches(ProgramFunction& function);

/// What a step does to the function's values.
struct DefinitionsAndUses {
  std::vector<std::uint32_t> definitions;
  std::vector<std::uint32_t> uses;
  bool partial = false;  ///< under a guard: older values survive in some lanes
};

/// Places of values in a frame.
struct Allocation32 {
  std::vector<std::uint32_t> unit;  ///< first 32-bit unit of each value; ~0: never used
  std::uint32_t num_units = 0;
  /// Largest number of units that a thread has live at any step, predicates aside. The machine's
  /// registers are 32 bits wide whatever the values are, so this and not `num_units` counts for
  /// occupancy.
  std::uint32_t pressure = 0;
};

/// Gives each value, of `units[v]` 32-bit units (1 or 2; 2 are aligned), a place in the frame:
/// liveness per basic block, then linear scan. `counts[v]` is false for values that need no
/// register of the hardware's (predicates).
///
/// Two values of one width that are never live at the same time in one thread may share a place.
/// That is enough although the lanes of a warp run in turns on one frame: an instruction writes
/// only its active lanes, and lane l of a place of width w always has its bytes 4 w l to 4 w (l +
/// 1), so each lane's part of the frame belongs to its thread, whatever the others do while it
/// waits. This would not hold between places of one and of two units, because lane 2 l of the one
/// lies in lane l of the other. So values of different widths never share a unit, live or not.
Allocation32 allocate_registers(const Successors& successors,
                                std::span<const DefinitionsAndUses> steps,
                                std::span<const std::uint8_t> units,
                                std::span<const std::uint8_t> counts);

}  // namespace warpstack::simt
