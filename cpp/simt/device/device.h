#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "simt/device/device_memory.h"
#include "simt/device/texture.h"

namespace warpstack::simt {

/// A device: memory with gaps between allocations, textures, and what its kernels print.
struct Device {
  explicit Device(std::uint64_t memory_bytes) : memory(memory_bytes, AllocationLayout::apart) {}

  DeviceMemory memory;
  /// Traces have the addresses of `memory`, gaps included. Otherwise they have those of allocations
  /// back to back, as on a GPU, so that caches do not see the gaps.
  bool records_gaps = true;
  TextureTable textures;
  /// Receives what kernels print, in whole or partial lines; null: standard output.
  std::function<void(std::string_view)> print;
};

}  // namespace warpstack::simt
