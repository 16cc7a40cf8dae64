#include "memory/memory_system.h"

#include <gtest/gtest.h>

#include "common/error.h"
#include "kernels.h"
#include "memory/schedule.h"

namespace warpstack {
namespace {

using testing::make_kernel;
using testing::memory_budget;

MemoryConfig config() {
  MemoryConfig result;
  result.num_sms = 2;
  result.sm.warps = 64;
  result.sm.threads = 2048;
  result.sm.blocks = 2;
  result.l1 = {.size_bytes = 1024,
               .ways = 2,
               .line_bytes = 128,
               .sector_bytes = 128,
               .write_policy = WritePolicy::write_through,
               .write_miss = WriteMiss::no_allocate};
  result.l2 = {.size_bytes = 1 << 16, .ways = 4, .line_bytes = 128, .sector_bytes = 128};
  return result;
}

std::uint64_t own_line(std::uint64_t thread) { return thread / 32 * 128 + thread % 32 * 4; }

TEST(SmSchedule, WarpsTakeTurnsAndBlocksFillFreeSlots) {
  // Three blocks of two warps, two accesses each; two blocks are resident.
  const KernelTrace trace = make_kernel(
      3, 64, {{"LDG.E", {4}, {2}, own_line}, {"MOV", {1}, {}, {}}, {"LDG.E", {4}, {2}, own_line}});
  const RowFlags flags(trace.instructions());
  SmSchedule schedule(trace, flags, {0, 1, 2}, 2);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> order;
  while (schedule.next() != nullptr) {
    order.emplace_back(schedule.warp().block, schedule.warp().warp);
  }
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> expected{
      {0, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 0}, {0, 1},
      {1, 0}, {1, 1}, {2, 0}, {2, 1}, {2, 0}, {2, 1}};
  EXPECT_EQ(order, expected);
}

TEST(SmSchedule, FileBackedWarpsReadInWindows) {
  std::vector<testing::Step> steps;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const bool is_store = i % 3 == 0;
    steps.push_back({is_store     ? "STG.E"
                     : i % 3 == 1 ? "LDG.E"
                                  : "LDS",
                     is_store ? std::vector<std::uint16_t>{} : std::vector<std::uint16_t>{4},
                     {2, 6},
                     [i](std::uint64_t thread) { return thread * (i % 40) * 4; }});
  }
  const KernelTrace in_memory = make_kernel(2, 64, steps);
  const KernelTrace in_file = make_kernel(2, 64, steps, memory_budget(0));
  ASSERT_TRUE(in_file.blocks().spilled());
  const RowFlags flags(in_memory.instructions());
  SmSchedule first(in_memory, flags, {0, 1}, 2);
  SmSchedule second(in_file, flags, {0, 1}, 2);
  std::size_t accesses = 0;
  while (const MemoryAccess* a = first.next()) {
    const MemoryAccess* b = second.next();
    ASSERT_NE(b, nullptr);
    ASSERT_EQ(a->row, b->row);
    ASSERT_TRUE(std::ranges::equal(a->sectors, b->sectors));
    ASSERT_TRUE(std::ranges::equal(a->store_bytes, b->store_bytes));
    ++accesses;
  }
  EXPECT_EQ(second.next(), nullptr);
  EXPECT_EQ(accesses, 4u * 667u);
}

TEST(MemorySystem, StreamMissesEverywhereOnce) {
  const KernelTrace trace = make_kernel(4, 64, {{"LDG.E", {4}, {2}, own_line}});
  MemorySystem system(config());
  const MemoryProfile cold = system.run(trace);
  EXPECT_EQ(cold.totals.l1_read_requests, 8u);
  EXPECT_EQ(cold.totals.dram_read_sectors, 32u);
  EXPECT_EQ(cold.per_row[0].events[2], 8u);
  EXPECT_EQ(cold.occupancy.blocks_per_sm, 2u);
  const MemoryProfile warm = system.run(trace);
  EXPECT_EQ(warm.totals.dram_read_sectors, 0u) << "L2 keeps its contents";
  EXPECT_EQ(warm.totals.l1_read_sector_hits, 0u) << "L1 starts empty";
  system.flush_l2();
  EXPECT_EQ(system.run(trace).totals.dram_read_sectors, 32u);
}

TEST(MemorySystem, InterruptEndsTheRun) {
  const KernelTrace trace = make_kernel(4, 64, {{"LDG.E", {4}, {2}, own_line}});
  struct Stop {};
  MemorySystem system(config());
  EXPECT_THROW(system.run(trace, {}, [] { throw Stop{}; }), Stop);
}

TEST(MemorySystem, BlocksThatDoNotFit) {
  const KernelTrace trace = make_kernel(1, 64, {{"LDG.E", {4}, {2}, own_line}});
  MemoryConfig tight = config();
  tight.sm.registers = 1000;
  EXPECT_THROW(MemorySystem(tight).run(trace), InputError);
  tight = config();
  tight.num_sms = 0;
  EXPECT_THROW(MemorySystem{tight}, InputError);
}

}  // namespace
}  // namespace warpstack
