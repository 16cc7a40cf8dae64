#include "memory/order/occupancy.h"

#include <limits>
#include <string>

#include "common/error.h"

namespace warpstack::memory {
namespace {

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

std::uint64_t registers_per_block(const trace::KernelHeader& kernel, const gpu::SmLimits& sm) {
  return kernel.warps_per_block() *
         round_up(kernel.registers_per_thread * trace::warp_size, sm.register_allocation_unit);
}

std::uint64_t shared_memory_per_block(const trace::KernelHeader& kernel, const gpu::SmLimits& sm) {
  // The system's share is taken for every block, even if it uses no shared memory.
  return round_up(kernel.shared_memory_bytes + sm.shared_memory_reserved_bytes,
                  sm.shared_memory_allocation_bytes);
}

Occupancy occupancy(const trace::KernelHeader& kernel, const gpu::SmLimits& sm) {
  const std::uint64_t warps = kernel.warps_per_block();
  std::uint64_t best = std::numeric_limits<std::uint64_t>::max();
  OccupancyLimit limit = OccupancyLimit::blocks;
  const auto bound = [&](OccupancyLimit resource, std::uint64_t available, std::uint64_t needed) {
    if (needed == 0) return;
    const std::uint64_t blocks = available / needed;
    if (blocks == 0) {
      static constexpr const char* units[] = {"warps", "threads", "blocks", "registers",
                                              "bytes of shared memory"};
      throw InputError("kernel " + std::to_string(kernel.launch_id) + " (" + kernel.name +
                       "): a thread block needs " + std::to_string(needed) + " " +
                       units[static_cast<std::size_t>(resource)] + ", an SM has " +
                       std::to_string(available) + "; raise " + std::string(name_of(resource)));
    }
    if (blocks < best) {
      best = blocks;
      limit = resource;
    }
  };
  bound(OccupancyLimit::blocks, sm.blocks, 1);
  bound(OccupancyLimit::warps, sm.warps, warps);
  bound(OccupancyLimit::threads, sm.threads, kernel.threads_per_block());
  if (sm.registers) {
    bound(OccupancyLimit::registers, *sm.registers, registers_per_block(kernel, sm));
  }
  if (sm.shared_memory_bytes) {
    bound(OccupancyLimit::shared_memory, *sm.shared_memory_bytes,
          shared_memory_per_block(kernel, sm));
  }
  Occupancy result;
  result.blocks_per_sm = static_cast<std::uint32_t>(best);
  result.warps_per_block = static_cast<std::uint32_t>(warps);
  result.limit = limit;
  return result;
}

}  // namespace warpstack::memory
