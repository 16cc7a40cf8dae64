#include "memory/order/occupancy.h"

#include <gtest/gtest.h>

#include "common/error.h"

namespace warpstack::memory {
namespace {

/// Blocks of 256 threads, 8 warps.
trace::KernelHeader kernel(std::uint64_t registers, std::uint64_t shared_memory) {
  trace::KernelHeader result;
  result.name = "kernel";
  result.grid = {100, 1, 1};
  result.block = {256, 1, 1};
  result.registers_per_thread = registers;
  result.shared_memory_bytes = shared_memory;
  return result;
}

gpu::SmLimits sm() {
  gpu::SmLimits result;
  result.warps = 48;
  result.threads = 2048;
  result.blocks = 32;
  result.registers = 65536;
  result.shared_memory_bytes = 102400;
  result.register_allocation_unit = 256;
  result.shared_memory_allocation_bytes = 128;
  result.shared_memory_reserved_bytes = 1024;
  return result;
}

TEST(Occupancy, TheScarcestResourceLimits) {
  const Occupancy by_warps = occupancy(kernel(32, 0), sm());  // 48 / 8
  EXPECT_EQ(by_warps.blocks_per_sm, 6);
  EXPECT_EQ(by_warps.warps_per_sm(), 48);
  EXPECT_EQ(by_warps.limit, OccupancyLimit::warps);
  // 57 * 32 = 1824 registers take 2048 per warp: 65536 / (8 * 2048).
  const Occupancy by_registers = occupancy(kernel(57, 0), sm());
  EXPECT_EQ(by_registers.blocks_per_sm, 4);
  EXPECT_EQ(by_registers.limit, OccupancyLimit::registers);
  // 33000 and the reserved 1024 bytes take 34048: 102400 / 34048.
  const Occupancy by_memory = occupancy(kernel(32, 33000), sm());
  EXPECT_EQ(shared_memory_per_block(kernel(32, 33000), sm()), 34048);
  EXPECT_EQ(by_memory.blocks_per_sm, 3);
  EXPECT_EQ(by_memory.limit, OccupancyLimit::shared_memory);
}

TEST(Occupancy, AbsentLimitsDoNotBind) {
  gpu::SmLimits limits = sm();
  limits.registers.reset();
  limits.shared_memory_bytes.reset();
  EXPECT_EQ(occupancy(kernel(255, 1 << 20), limits).limit, OccupancyLimit::warps);
}

TEST(Occupancy, ABlockThatDoesNotFitIsAnError) {
  EXPECT_THROW(static_cast<void>(occupancy(kernel(32, 102400), sm())), InputError);
}

}  // namespace
}  // namespace warpstack::memory
