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
  /// Addresses in traces are those of memory(); otherwise those of allocations back to back, as a
  /// GPU's are: what caches make of them does not depend on the gaps.
  bool records_gaps = true;
  TextureTable textures;
  /// Receives what kernels print, line by line or in part; null: standard output.
  std::function<void(std::string_view)> print;
};

}  // namespace warpstack::simt
