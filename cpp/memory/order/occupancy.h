#pragma once

#include <cstdint>

#include "common/enum_names.h"
#include "gpu/sm_limits.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::memory {

enum class OccupancyLimit : std::uint8_t { warps, threads, blocks, registers, shared_memory };
constexpr auto names_of(OccupancyLimit) {
  return enum_names("limit of an SM", "warps_per_sm", "threads_per_sm", "blocks_per_sm",
                    "registers_per_sm", "shared_memory_kib_per_sm");
}

/// How many thread blocks of a kernel an SM holds at once, and which resource limits them.
struct Occupancy {
  std::uint32_t blocks_per_sm = 0;
  std::uint32_t warps_per_block = 0;
  OccupancyLimit limit = OccupancyLimit::blocks;

  [[nodiscard]] std::uint32_t warps_per_sm() const { return blocks_per_sm * warps_per_block; }
};

/// Registers that a block of the kernel takes.
std::uint64_t registers_per_block(const trace::KernelHeader& kernel, const gpu::SmLimits& sm);
/// Bytes of shared memory that a block of the kernel takes.
std::uint64_t shared_memory_per_block(const trace::KernelHeader& kernel, const gpu::SmLimits& sm);

/// Thread blocks per SM (cache paper, Eq. 3 to 6, with block slots, warp slots and allocation
/// units). Throws InputError if no block fits.
Occupancy occupancy(const trace::KernelHeader& kernel, const gpu::SmLimits& sm);

}  // namespace warpstack::memory
