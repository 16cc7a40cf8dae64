#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "simt/device_memory.h"
#include "simt/texture.h"

namespace warpstack::simt {

/// A device: memory, textures, and what its kernels print.
struct Device {
  explicit Device(std::uint64_t memory_bytes) : memory(memory_bytes) {}

  DeviceMemory memory;
  TextureTable textures;
  /// Receives what kernels print, line by line or in part; null: standard output.
  std::function<void(std::string_view)> print;
};

}  // namespace warpstack::simt
