#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "trace/kernel_trace.h"

namespace warpstack::memory {

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

enum class OccupancyLimit : std::uint8_t { warps, threads, blocks, registers, shared_memory };
std::string_view name_of(OccupancyLimit limit);

/// How many thread blocks of a kernel an SM holds at once, and which resource says so.
struct Occupancy {
  std::uint32_t blocks_per_sm = 0;
  std::uint32_t warps_per_block = 0;
  OccupancyLimit limit = OccupancyLimit::blocks;

  [[nodiscard]] std::uint32_t warps_per_sm() const { return blocks_per_sm * warps_per_block; }
};

/// Bytes of shared memory that a block of the kernel takes.
std::uint64_t shared_memory_per_block(const trace::KernelHeader& kernel, const SmLimits& sm);

/// Thread blocks per SM (cache paper, Eq. 3 to 6, with block slots, warp slots and allocation
/// units). Throws InputError when not a single block fits.
Occupancy occupancy(const trace::KernelHeader& kernel, const SmLimits& sm);

}  // namespace warpstack::memory
