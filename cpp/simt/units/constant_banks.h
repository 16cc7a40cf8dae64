#pragma once

#include <cstddef>
#include <vector>

#include "simt/state/execution.h"
#include "simt/state/faults.h"

namespace warpstack::simt {

/// The constant banks of a launch: those of the program, filled in with the grid's size and the
/// parameters.
std::vector<std::vector<std::byte>> constant_banks(const Execution& execution);

/// The initial registers of a warp. `execution.constant_banks` must be set. Throws InputError if a
/// slot's constant lies beyond the end of its bank.
std::vector<std::byte> first_frame(const Execution& execution);

/// Loads from a constant bank for the lanes of `mask`.
void load_from_bank(const Execution& execution, const Faults& faults, Warp& warp, const Step& step,
                    std::byte* registers, std::uint32_t mask);

}  // namespace warpstack::simt
