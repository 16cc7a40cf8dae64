#pragma once

#include <algorithm>
#include <cstdint>

namespace warpstack::trace {

/// Barriers of a warp that instructions of variable latency hold.
inline constexpr std::uint32_t num_control_barriers = 6;
inline constexpr std::uint8_t no_control_barrier = 7;

/// What an instruction of compute capability 7.0 and later says to the issue logic (Jia et al.,
/// "Dissecting the NVIDIA Volta GPU architecture via microbenchmarking", 2018, Section 2.1).
struct Control {
  std::uint8_t stall = 0;  ///< cycles until the warp's next instruction may issue
  bool yield = false;      ///< the scheduler should rather go to another warp
  /// Barriers of the warp's scoreboard, 0 to 5, that the instruction holds until it has written its
  /// results, or read its sources; 7: none.
  std::uint8_t write_barrier = no_control_barrier;
  std::uint8_t read_barrier = no_control_barrier;
  std::uint8_t wait_mask = 0;  ///< barriers that must be free before it issues
  std::uint8_t reuse = 0;      ///< source operands, by place, that stay in the reuse cache
  /// DEPBAR.LE waits until at most `counted_most` instructions hold this barrier; 7: none. These
  /// are operands, not bits of the control field.
  std::uint8_t counted_barrier = no_control_barrier;
  std::uint8_t counted_most = 0;

  bool operator==(const Control&) const = default;

  /// Cycles until the warp's next instruction may issue: another warp can have the one behind an
  /// instruction that yields.
  [[nodiscard]] std::uint32_t issue_distance() const {
    return std::max<std::uint32_t>(stall, yield ? 2 : 1);
  }

  /// Throws InputError when a field has a value that no encoding has.
  void validate() const;
};

/// Calls `use` with the name and the member of each field.
template <class Use>
void for_each_control_field(const Use& use) {
  use("stall", &Control::stall);
  use("yield", &Control::yield);
  use("write_barrier", &Control::write_barrier);
  use("read_barrier", &Control::read_barrier);
  use("wait_mask", &Control::wait_mask);
  use("reuse", &Control::reuse);
  use("counted_barrier", &Control::counted_barrier);
  use("counted_most", &Control::counted_most);
}

}  // namespace warpstack::trace
