#pragma once

#include <cstdint>
#include <optional>

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
};

}  // namespace warpstack::gpu
