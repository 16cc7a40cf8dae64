#pragma once

#include <cstdint>
#include <optional>

#include "gpu/gpu.h"

namespace warpstack::gpu {

/// What an SM offers to thread blocks. Absent limits do not bind.
struct SmLimits {
  std::uint32_t warps = 0;
  std::uint32_t threads = 0;
  std::uint32_t blocks = 0;
  std::optional<std::uint64_t> registers;
  std::optional<std::uint64_t> shared_memory_bytes;
  std::uint32_t register_allocation_unit = 1;        ///< registers, rounded up per warp
  std::uint32_t shared_memory_allocation_bytes = 1;  ///< rounded up per block
  std::uint32_t shared_memory_reserved_bytes = 0;    ///< taken by the system, per block

  static SmLimits of(const Gpu& gpu) {
    return {.warps = gpu.warps_per_sm,
            .threads = gpu.threads_per_sm,
            .blocks = gpu.blocks_per_sm,
            .registers = gpu.registers_per_sm,
            .shared_memory_bytes = bytes_of_kib(gpu.shared_memory_kib_per_sm),
            .register_allocation_unit = gpu.register_allocation_unit,
            .shared_memory_allocation_bytes = gpu.shared_memory_allocation_bytes,
            .shared_memory_reserved_bytes = gpu.shared_memory_reserved_bytes};
  }
};

}  // namespace warpstack::gpu
