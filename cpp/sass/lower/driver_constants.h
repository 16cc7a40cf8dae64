#pragma once

#include <cstdint>

namespace warpstack::sass {

/// The places of what the driver puts into constant bank 0 before the parameters: those that ptxas
/// reads for the special registers and address spaces of PTX.
struct DriverConstants {
  static constexpr std::uint32_t nowhere = ~std::uint32_t{0};

  std::uint32_t block_size = 0;  ///< three words
  std::uint32_t grid_size = 0xc;
  std::uint32_t shared_window = 0x18;  ///< 64 bits
  std::uint32_t local_window = 0x20;   ///< 64 bits
  std::uint32_t stack_top = 0x28;      ///< the end of a thread's local memory
  std::uint32_t dynamic_shared_bytes = 0x2c;
  std::uint32_t launch_number = 0x30;  ///< 64 bits
  std::uint32_t constants = 0x50;      ///< 64 bits: address of bank 3, of `.const` variables
  std::uint32_t workspace = 0x8c;      ///< of a grid-wide barrier: the upper word, then the lower
  std::uint32_t descriptor = 0x118;    ///< 64 bits: how memory is cached; changes no value
  // From sm_90 on.
  std::uint32_t parameters = nowhere;  ///< 64 bits: address of the parameters
  std::uint32_t reserved_shared_bytes = nowhere;
  std::uint32_t num_sms = nowhere;
  std::uint32_t is_cluster = nowhere;  ///< 1 if the launch has clusters
  std::uint32_t cluster_size = nowhere;
  std::uint32_t cluster_inverse = nowhere;  ///< of each size, in single precision
  std::uint32_t num_clusters = nowhere;
  std::uint32_t cluster_blocks = nowhere;
  /// Words from first_moved to before end_moved lie 0xa0 bytes further down for each SR_CgaSize,
  /// which is 0 here.
  std::uint32_t first_moved = nowhere;
  std::uint32_t end_moved = nowhere;

  /// Whether a word is one of these.
  [[nodiscard]] constexpr bool has(std::uint32_t offset) const {
    const auto is_in = [offset](std::uint32_t first, std::uint32_t bytes) {
      return first != nowhere && offset >= first && offset < first + bytes;
    };
    return is_in(block_size, 12) || is_in(grid_size, 12) || is_in(shared_window, 8) ||
           is_in(local_window, 8) || is_in(stack_top, 4) || is_in(dynamic_shared_bytes, 4) ||
           is_in(launch_number, 8) || is_in(constants, 8) || is_in(workspace, 8) ||
           is_in(descriptor, 8) || is_in(parameters, 8) || is_in(reserved_shared_bytes, 4) ||
           is_in(num_sms, 4) || is_in(is_cluster, 4) || is_in(cluster_size, 12) ||
           is_in(cluster_inverse, 12) || is_in(num_clusters, 12) || is_in(cluster_blocks, 4);
  }
  /// Whether a word is part of the address of the parameters.
  [[nodiscard]] constexpr bool is_parameter_address(std::int64_t offset) const {
    return parameters != nowhere && offset >= parameters && offset < std::int64_t{parameters} + 8;
  }
  /// Whether code reads a word at a place that depends on SR_CgaSize.
  [[nodiscard]] constexpr bool is_moved(std::uint32_t offset) const {
    return first_moved != nowhere && offset >= first_moved && offset < end_moved && has(offset);
  }
};

/// Those of an architecture: 80 for sm_80.
constexpr DriverConstants driver_constants(std::uint32_t arch) {
  DriverConstants places;
  if (arch < 90) return places;
  places.descriptor = 0x208;
  places.parameters = 0x198;
  places.constants = 0xd0;
  places.workspace = 0x44;
  places.num_sms = 0x10c;
  places.reserved_shared_bytes = 0x114;
  places.is_cluster = 0x140;
  places.cluster_size = 0x144;
  places.cluster_inverse = 0x150;
  places.num_clusters = 0x15c;
  places.cluster_blocks = 0x188;
  if (arch < 100) return places;
  places.parameters = 0x348;
  places.block_size = 0x360;
  places.grid_size = 0x370;
  places.shared_window = DriverConstants::nowhere;  // a special register has it
  places.local_window = 0x2f8;
  places.stack_top = 0x37c;
  places.dynamic_shared_bytes = 0x2ac;
  places.launch_number = 0x140;
  places.constants = 0x120;
  places.descriptor = 0x358;
  places.workspace = 0x254;
  places.num_sms = 0x2d0;
  places.reserved_shared_bytes = 0x16c;
  places.is_cluster = 0x36c;
  places.cluster_size = 0x2a0;
  places.cluster_inverse = 0x2b0;
  places.num_clusters = 0x2c0;
  places.cluster_blocks = 0x2cc;
  places.first_moved = 0x250;
  places.end_moved = 0x2d0;
  return places;
}

}  // namespace warpstack::sass
