#pragma once

#include <cstddef>
#include <vector>

#include "simt/state/execution.h"
#include "simt/state/faults.h"

namespace warpstack::simt {

/// The constant banks of a launch: those of the program with the size of the grid and the
/// parameters.
std::vector<std::vector<std::byte>> constant_banks(const Execution& execution);

/// What the registers of a warp hold when it begins. `execution.constant_banks` must be there.
/// Throws InputError when a slot is to hold what lies beyond the end of a bank.
std::vector<std::byte> first_frame(const Execution& execution);

/// Loads of the lanes of `mask` from a constant bank.
void load_from_bank(const Execution& execution, const Faults& faults, Warp& warp, const Step& step,
                    std::byte* registers, std::uint32_t mask);

}  // namespace warpstack::simt
