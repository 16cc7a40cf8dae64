#pragma once

#include <cstdint>

namespace warpstack::sass {

/// What an instruction of compute capability 7.0 and later says to the issue logic (Jia et al.,
/// "Dissecting the NVIDIA Volta GPU architecture via microbenchmarking", 2018, Section 2.1).
struct Control {
  std::uint8_t stall = 0;  ///< cycles until the warp's next instruction may issue
  bool yield = false;      ///< the scheduler should rather go to another warp
  /// Barriers of the warp's scoreboard, 0 to 5, that the instruction holds until it has written its
  /// results, or read its sources; 7: none.
  std::uint8_t write_barrier = 7;
  std::uint8_t read_barrier = 7;
  std::uint8_t wait_mask = 0;  ///< barriers that must be free before it issues
  std::uint8_t reuse = 0;      ///< source operands, by place, that stay in the reuse cache

  bool operator==(const Control&) const = default;
};

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
