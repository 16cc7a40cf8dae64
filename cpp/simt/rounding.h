#pragma once

#include <cstdint>

namespace warpstack::ptx {

/// To nearest means ties to even.
enum class Rounding : std::uint8_t { nearest, zero, down, up };

}  // namespace warpstack::ptx
