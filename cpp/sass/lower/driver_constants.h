#pragma once

#include <cstdint>

namespace warpstack::sass {

/// Where a launch finds what the driver puts into constant bank 0, before the parameters. The
/// places are those that ptxas reads for the special registers and address spaces of PTX.
struct DriverConstants {
  static constexpr std::uint32_t nowhere = ~std::uint32_t{0};

  std::uint32_t block_size = 0;  ///< three words
  std::uint32_t grid_size = 0xc;
  std::uint32_t shared_window = 0x18;  ///< 64 bits
  std::uint32_t local_window = 0x20;   ///< 64 bits
  std::uint32_t stack_top = 0x28;      ///< the end of a thread's local memory
  std::uint32_t dynamic_shared_bytes = 0x2c;
  std::uint32_t launch_number = 0x30;  ///< 64 bits
  std::uint32_t constants = 0x50;      ///< 64 bits: where bank 3, of `.const` variables, lies
  std::uint32_t descriptor = 0x118;    ///< 64 bits: how memory is cached, which changes no value

  /// Whether a word is one of these.
  [[nodiscard]] constexpr bool has(std::uint32_t offset) const {
    const auto is_in = [offset](std::uint32_t first, std::uint32_t bytes) {
      return first != nowhere && offset >= first && offset < first + bytes;
    };
    return is_in(block_size, 12) || is_in(grid_size, 12) || is_in(shared_window, 8) ||
           is_in(local_window, 8) || is_in(stack_top, 4) || is_in(dynamic_shared_bytes, 4) ||
           is_in(launch_number, 8) || is_in(constants, 8) || is_in(descriptor, 8);
  }
};

/// Those of an architecture: 80 for sm_80.
constexpr DriverConstants driver_constants(std::uint32_t arch) {
  DriverConstants places;
  if (arch >= 90) {
    places.descriptor = 0x208;
    places.constants = 0xd0;
  }
  if (arch < 100) return places;
  places.block_size = 0x360;
  places.grid_size = 0x370;
  places.shared_window = DriverConstants::nowhere;  // a special register has it
  places.local_window = 0x2f8;
  places.stack_top = 0x37c;
  places.dynamic_shared_bytes = DriverConstants::nowhere;  // at a place that depends on clusters
  places.launch_number = 0x140;
  places.constants = 0x120;
  places.descriptor = 0x358;
  return places;
}

}  // namespace warpstack::sass
