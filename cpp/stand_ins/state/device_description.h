#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace warpstack::cudart {

/// The GPU that programs see when they ask. It does not change what kernels compute.
struct DeviceDescription {
  std::string name = "warpstack functional simulator";
  std::uint64_t memory_bytes = std::uint64_t{16} << 30;
  std::uint32_t num_sms = 28;
  std::uint32_t clock_khz = 1'400'000;
  std::uint32_t warps_per_sm = 64;
  std::uint32_t threads_per_sm = 2048;
  std::uint32_t blocks_per_sm = 32;
  std::uint32_t registers_per_sm = 65536;
  std::uint32_t shared_bytes_per_sm = 96 << 10;
  std::uint32_t l2_bytes = 4 << 20;
  std::uint32_t copy_engines = 2;
  std::uint32_t capability = newest_target;  ///< 10 major + minor

  /// PTX for targets up to this one is preferred, for any description.
  static constexpr std::uint32_t newest_target = 90;
  static constexpr std::uint32_t shared_bytes_per_block = 48 << 10;
  /// The most shared memory of a block after cudaFuncSetAttribute, for any description: the program
  /// was written for a GPU that has it.
  static constexpr std::uint32_t shared_bytes_per_block_optin = 227 << 10;
  static constexpr std::uint32_t max_threads_per_block = 1024;
};

/// Reads "name=value" pairs separated by semicolons, with the field names above. Throws InputError
/// on an unknown field or a value that is not a number.
DeviceDescription parse_device_description(std::string_view text);

}  // namespace warpstack::cudart
