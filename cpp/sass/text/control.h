#pragma once

#include <cstdint>

#include "trace/instructions/control.h"

namespace warpstack::sass {

using trace::Control;

/// Reads bits 105 to 125 of an encoding.
constexpr Control decode_control(std::uint32_t bits) {
  const auto field = [bits](std::uint32_t first, std::uint32_t count) {
    return static_cast<std::uint8_t>(bits >> first & ((1u << count) - 1));
  };
  Control control;
  control.stall = field(0, 4);
  control.yield = field(4, 1) == 0;  // the bit asks the scheduler to stay
  control.write_barrier = field(5, 3);
  control.read_barrier = field(8, 3);
  control.wait_mask = field(11, 6);
  control.reuse = field(17, 4);
  return control;
}

}  // namespace warpstack::sass
