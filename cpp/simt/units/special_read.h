#pragma once

#include <cstddef>
#include <cstdint>

#include "simt/state/execution.h"

namespace warpstack::simt {

/// Reads a special register.
void read_special(Execution& execution, Warp& warp, const Step& step, std::byte* registers,
                  std::uint32_t mask);

}  // namespace warpstack::simt
