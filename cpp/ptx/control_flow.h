#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace warpstack::ptx {

/// Successors of each step of a function. The number of steps stands for the function's end.
using Successors = std::vector<std::vector<std::uint32_t>>;

/// Immediate post-dominator of each step that has more than one successor: the first step that all
/// paths from it to the function's end share, or the end itself. (Cooper, Harvey and Kennedy, "A
/// simple, fast dominance algorithm", on the reversed graph of basic blocks.) Steps from which the
/// end cannot be reached count as if each led to it.
std::vector<std::uint32_t> post_dominators(const Successors& successors);

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
  std::uint32_t pressure = 0;  ///< largest number of live units at any step, predicates aside
};

/// Gives each value, of `units[v]` 32-bit units (1 or 2; 2 are aligned), a place such that values
/// live at the same time have different ones: liveness per basic block, then linear scan.
/// `counts[v]` is false for values that need no register of the hardware's (predicates).
Allocation32 allocate_registers(const Successors& successors,
                                std::span<const DefinitionsAndUses> steps,
                                std::span<const std::uint8_t> units,
                                std::span<const std::uint8_t> counts);

}  // namespace warpstack::ptx
