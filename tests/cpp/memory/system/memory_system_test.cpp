#include "memory/system/memory_system.h"

#include <gtest/gtest.h>

#include "common/error.h"
#include "kernels.h"
#include "memory/order/block_assignment.h"
#include "memory/order/schedule.h"
#include "memory/small_memory.h"

namespace warpstack::memory {
namespace {

using testing::make_kernel;
using testing::memory_budget;

MemoryConfig config() {
  MemoryConfig result = testing::small_memory();
  result.num_sms = 2;
  return result;
}

std::uint64_t own_line(std::uint64_t thread) { return thread / 32 * 128 + thread % 32 * 4; }

TEST(SmSchedule, WarpsTakeTurnsAndBlocksFillFreeSlots) {
  // Three blocks of two warps, two accesses each; two blocks are resident.
  const trace::KernelTrace trace = make_kernel(
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

TEST(GreedySchedule, AWarpGoesOnUntilItWaitsAndMissesReturnInOrder) {
  // Three blocks of two warps, two accesses each; two blocks are resident.
  const trace::KernelTrace trace =
      make_kernel(3, 64, {{"LDG.E", {4}, {2}, own_line}, {"LDG.E", {4}, {2}, own_line}});
  const RowFlags flags(trace.instructions());
  using Order = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  const auto play = [&](std::uint32_t mshrs, std::uint32_t misses_of_an_access) {
    GreedySchedule schedule(trace, flags, {0, 1, 2}, 2, mshrs);
    Order order;
    while (schedule.next() != nullptr) {
      order.emplace_back(schedule.warp().block, schedule.warp().warp);
      if (misses_of_an_access > 0) schedule.missed(misses_of_an_access);
    }
    return order;
  };
  // Nobody waits: warp after warp, block 2 last.
  const Order alone{{0, 0}, {0, 0}, {0, 1}, {0, 1}, {1, 0}, {1, 0},
                    {1, 1}, {1, 1}, {2, 0}, {2, 0}, {2, 1}, {2, 1}};
  EXPECT_EQ(play(4, 0), alone);
  // An access with more misses than MSHRs holds nobody up for long: its own return.
  EXPECT_EQ(play(1, 2), alone);
  // Two MSHRs: the third miss brings the first back, and the oldest warp goes on.
  const Order two{{0, 0}, {0, 1}, {1, 0}, {0, 0}, {0, 1}, {1, 0},
                  {1, 1}, {2, 0}, {2, 1}, {1, 1}, {2, 0}, {2, 1}};
  EXPECT_EQ(play(2, 1), two);
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
  const trace::KernelTrace in_memory = make_kernel(2, 64, steps);
  const trace::KernelTrace in_file = make_kernel(2, 64, steps, memory_budget(0));
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
  const trace::KernelTrace trace = make_kernel(4, 64, {{"LDG.E", {4}, {2}, own_line}});
  MemorySystem system(config());
  const MemoryProfile cold = system.run(trace);
  EXPECT_EQ(cold.totals[Total::l1_read_requests], 8u);
  EXPECT_EQ(cold.totals[Total::dram_read_sectors], 32u);
  EXPECT_EQ(cold.per_row[0].events[2], 8u);
  EXPECT_EQ(cold.occupancy.blocks_per_sm, 2u);
  const MemoryProfile warm = system.run(trace);
  EXPECT_EQ(warm.totals[Total::dram_read_sectors], 0u) << "L2 keeps its contents";
  EXPECT_EQ(warm.totals[Total::l1_read_sector_hits], 0u) << "L1 starts empty";
  system.flush_l2();
  EXPECT_EQ(system.run(trace).totals[Total::dram_read_sectors], 32u);
}

TEST(MemorySystem, LaunchesFindNothingOfEarlierOnesInL1) {
  const auto scattered = [](std::uint64_t factor) {
    return [factor](std::uint64_t thread) { return thread * factor % 4093 * 4; };
  };
  const trace::KernelTrace before = make_kernel(
      16, 64, {{"LDG.E", {4}, {2}, scattered(31)}, {"STG.E", {}, {2, 4}, scattered(77)}});
  const trace::KernelTrace trace =
      make_kernel(8, 64, {{"LDG.E", {4}, {2}, scattered(101)}, {"LDG.E", {4}, {2}, scattered(31)}});
  for (const std::uint32_t ways : {4u, 20u, 64u}) {
    for (const Replacement policy : {Replacement::lru, Replacement::fifo, Replacement::plru}) {
      if (policy == Replacement::plru && ways == 20) continue;
      for (const AccessOrder order : {AccessOrder::timed, AccessOrder::round_robin}) {
        MemoryConfig c = config();
        c.num_sms = 3;
        c.access_order = order;
        c.l1 = {.size_bytes = 128ull * 4 * ways,
                .ways = ways,
                .sector_bytes = 32,
                .write_policy = WritePolicy::write_back,
                .write_miss = WriteMiss::write_validate,
                .replacement = policy};
        const MemoryProfile expected = MemorySystem(c).run(trace);
        MemorySystem used(c);
        used.run(before);
        used.flush_l2();
        const MemoryProfile found = used.run(trace);
        for (std::size_t i = 0; i < num_totals; ++i) {
          const auto total = static_cast<Total>(i);
          EXPECT_EQ(found.totals[total], expected.totals[total]) << name_of(total);
        }
      }
    }
  }
}

TEST(MemorySystem, WhoTakesThePlaceOfAStrangerWritesItsLineBack) {
  const trace::KernelTrace trace = make_kernel(4, 64, {{"LDG.E", {4}, {2}, own_line}});
  MemoryConfig dirty = config();
  dirty.l2.written_by_strangers = 1;
  dirty.l2.write_policy = WritePolicy::write_back;
  MemorySystem system(dirty);
  for (const bool is_flushed : {false, true}) {
    if (is_flushed) system.flush_l2();
    const MemoryProfile first = system.run(trace);
    EXPECT_EQ(first.totals[Total::dram_read_sectors], 32u) << "no request finds a stranger";
    EXPECT_EQ(first.totals[Total::dram_write_sectors], 32u) << "a line for each line";
    EXPECT_EQ(first.totals[Total::l2_dirty_sectors], 0u) << "nothing of the kernel's";
    EXPECT_EQ(system.run(trace).totals[Total::dram_write_sectors], 0u) << "its lines are there";
  }
  dirty.l2.write_policy = WritePolicy::write_through;
  EXPECT_EQ(MemorySystem(dirty).run(trace).totals[Total::dram_write_sectors], 0u)
      << "it holds no written lines";
  dirty.l2.written_by_strangers = 1.5;
  EXPECT_THROW(MemorySystem{dirty}, InputError);
}

TEST(MemorySystem, ThreadsDoNotChangeTheResult) {
  // Scattered loads and stores, a third of a million sectors: enough for several threads.
  const auto scattered = [](std::uint64_t factor) {
    return [factor](std::uint64_t thread) { return thread * factor % 1048573 * 4; };
  };
  const trace::KernelTrace trace = make_kernel(
      64, 256,
      {{"LDG.E", {4}, {2}, scattered(7919)},
       {"STG.E", {}, {2, 4}, scattered(104729)},
       {"LDG.E", {4}, {2}, scattered(31337)},
       {"ATOMG.E.ADD", {4}, {2, 5}, scattered(65537)},
       {"LDG.E.64", {4}, {2}, [](std::uint64_t thread) { return thread % 40000 * 256; }}});
  for (const std::uint32_t ways : {4u, 64u}) {
    MemoryConfig c = config();
    c.num_sms = 5;
    c.l1 = {.size_bytes = 8192,
            .ways = 64,
            .sector_bytes = 32,
            .write_policy = WritePolicy::write_back,
            .write_miss = WriteMiss::write_validate};
    c.l2 = {.size_bytes = 1 << 17,
            .ways = ways,
            .sector_bytes = 32,
            .write_miss = WriteMiss::write_validate,
            .set_index = Indexing::ipoly};
    MemorySystem one(c, 1);
    MemorySystem four(c, 4);
    for (int launch = 0; launch < 2; ++launch) {
      const MemoryProfile expected = one.run(trace, trace::WarpPosition{3, 1});
      const MemoryProfile found = four.run(trace, trace::WarpPosition{3, 1});
      for (std::size_t i = 0; i < num_totals; ++i) {
        const auto total = static_cast<Total>(i);
        EXPECT_EQ(found.totals[total], expected.totals[total]) << name_of(total);
      }
      for (std::size_t row = 0; row < expected.per_row.size(); ++row) {
        EXPECT_EQ(found.per_row[row].events, expected.per_row[row].events);
        EXPECT_EQ(found.per_row[row].dram_sectors, expected.per_row[row].dram_sectors);
      }
      ASSERT_EQ(found.observed.size(), 5u);
      for (std::size_t i = 0; i < 5; ++i) {
        EXPECT_EQ(found.observed[i].dram_sectors, expected.observed[i].dram_sectors);
      }
    }
  }
}

TEST(MemorySystem, FailuresInThreadsReachTheCaller) {
  struct Stop {};
  const trace::KernelTrace trace = make_kernel(
      64, 256,
      {{"LDG.E", {4}, {2}, [](std::uint64_t thread) { return thread * 7919 % 65536 * 256; }},
       {"LDG.E", {4}, {2}, [](std::uint64_t thread) { return thread * 31 % 65536 * 256; }}});
  MemorySystem system(config(), 4);
  int calls = 0;
  EXPECT_THROW(system.run(trace, {},
                          [&calls] {
                            if (++calls == 3) throw Stop{};
                          }),
               Stop);
  EXPECT_EQ(calls, 3);
}

TEST(SmSchedule, BlockPolicies) {
  // Six blocks; block 0 has eight times the accesses of the others. Two SMs of one block each.
  trace::TraceBuilder builder(testing::header(6, 32), memory_budget());
  const std::uint32_t row = builder.intern(trace::make_static_instruction(
      0, "LDG.E", std::vector<std::uint16_t>{4}, std::vector<std::uint16_t>{2}));
  for (std::uint64_t block = 0; block < 6; ++block) {
    builder.begin_block(block);
    builder.begin_warp(0);
    trace::LaneAddresses lanes;
    lanes.mask = 1;
    lanes.address[0] = 0;
    for (int i = 0; i < (block == 0 ? 8 : 1); ++i) builder.append(row, 1, &lanes);
    builder.end_block();
  }
  const trace::KernelTrace trace = builder.finish();
  const RowFlags flags(trace.instructions());
  using Blocks = std::vector<std::vector<std::uint32_t>>;
  EXPECT_EQ(assign_blocks(trace, flags, 2, 1, {}), (Blocks{{0, 2, 4}, {1, 3, 5}}));
  EXPECT_EQ(assign_blocks(trace, flags, 2, 1, {.policy = BlockPolicy::breadth_first}),
            (Blocks{{0}, {1, 2, 3, 4, 5}}))
      << "the second SM is free eight times as often";
  EXPECT_EQ(assign_blocks(trace, flags, 2, 1, {.first_occupancy_only = true}), (Blocks{{0}, {1}}));
  const BlockOrder random{.policy = BlockPolicy::random, .seed = 1};
  const Blocks drawn = assign_blocks(trace, flags, 2, 1, random);
  EXPECT_EQ(drawn, assign_blocks(trace, flags, 2, 1, random)) << "the seed decides";
  EXPECT_EQ(drawn[0].size() + drawn[1].size(), 6u);
}

TEST(MemorySystem, AdaptiveL1IsWhatSharedMemoryLeaves) {
  // Eq. 7: 2 blocks of 3000 bytes are resident; the smallest carve-out of 6000 bytes or more is 8
  // KiB.
  const trace::KernelTrace trace = make_kernel(4, 64, {{"LDG.E", {4}, {2}, own_line}});
  MemoryConfig c = config();
  c.sm.shared_memory_bytes = 16384;
  c.sm.shared_memory_reserved_bytes = 3000;
  c.unified_bytes = 32768;
  c.carve_outs = {0, 4096, 8192, 16384};
  EXPECT_EQ(MemorySystem(c).run(trace).l1_size_bytes, 32768u - 8192);
  c.sm.shared_memory_reserved_bytes = 0;
  EXPECT_EQ(MemorySystem(c).run(trace).l1_size_bytes, 32768u);
  c.carve_outs = {0, 32768};
  EXPECT_THROW(MemorySystem{c}, InputError);
}

TEST(MemorySystem, InterruptEndsTheRun) {
  const trace::KernelTrace trace = make_kernel(4, 64, {{"LDG.E", {4}, {2}, own_line}});
  struct Stop {};
  MemorySystem system(config());
  EXPECT_THROW(system.run(trace, {}, [] { throw Stop{}; }), Stop);
}

TEST(MemorySystem, BlocksThatDoNotFit) {
  const trace::KernelTrace trace = make_kernel(1, 64, {{"LDG.E", {4}, {2}, own_line}});
  MemoryConfig tight = config();
  tight.sm.registers = 1000;
  EXPECT_THROW(MemorySystem(tight).run(trace), InputError);
  tight = config();
  tight.num_sms = 0;
  EXPECT_THROW(MemorySystem{tight}, InputError);
}

}  // namespace
}  // namespace warpstack::memory
