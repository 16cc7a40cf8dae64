#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/enum_names.h"
#include "common/interrupt.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::trace {

/// What a programmer may change. Each is a transform of a trace; what a header of this folder says
/// is its rule.
enum class ProgramChange : std::uint8_t {
  coalesced,
  padded_pitch,
  no_bank_conflicts,
  no_divergence,
  combined_atomics,
  private_atomics,
  kept_in_block,
  kept_in_registers,
  register_tiles,
  cheap_division,
  no_dependencies,
  no_barriers,
  free_occupancy,
};
constexpr auto names_of(ProgramChange) {
  return enum_names("change of the program", "coalesced", "padded_pitch", "no_bank_conflicts",
                    "no_divergence", "combined_atomics", "private_atomics", "kept_in_block",
                    "kept_in_registers", "register_tiles", "cheap_division", "no_dependencies",
                    "no_barriers", "free_occupancy");
}

/// The trace that the launch would have if its program were changed. `is_chosen` says which rows of
/// the instruction table are; empty: all. Rows keep their numbers; changes may add some. Throws
/// InputError when it has another length.
KernelTrace changed(const KernelTrace& trace, ProgramChange change,
                    std::span<const std::uint8_t> is_chosen, std::shared_ptr<StorageBudget> budget,
                    const InterruptCheck& interrupt = {});

/// What a row of the instruction table would have to gain, summed over all traced blocks.
struct RowRoom {
  std::uint64_t partial = 0;        ///< executions with a part of the warp's lanes
  std::uint64_t sectors = 0;        ///< beyond the least that hold the bytes of the lanes
  std::uint64_t passes = 0;         ///< through shared memory beyond the least
  std::uint64_t meeting_lanes = 0;  ///< of atomics beyond one for each word and warp
  std::uint64_t atomics = 0;        ///< executions of atomics that go through the caches
  std::uint64_t again = 0;          ///< sectors that its block has loaded before
  std::uint64_t held = 0;           ///< executions that repeat the access before them
  std::uint64_t tiled = 0;          ///< loads of shared memory beyond every fourth of a warp
  std::uint64_t divisions = 0;      ///< executions of integer divisions beyond one for each
  std::uint64_t waits = 0;          ///< executions of block barriers
  std::uint64_t pitch = 0;  ///< sectors from row to row of an array, if they are many; else 0

  bool operator==(const RowRoom&) const = default;
};

/// By row. Looks at each distinct block once.
std::vector<RowRoom> room_for_changes(const KernelTrace& trace,
                                      const InterruptCheck& interrupt = {});

}  // namespace warpstack::trace
