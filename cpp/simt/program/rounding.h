#pragma once

#include <cstdint>

namespace warpstack::simt {

/// To nearest means ties to even.
enum class Rounding : std::uint8_t { nearest, zero, down, up };

}  // namespace warpstack::simt
