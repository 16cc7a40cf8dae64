#include "memory/order/timed_schedule.h"

#include <gtest/gtest.h>

#include "kernels.h"
#include "memory/small_memory.h"
#include "memory/system/memory_system.h"

namespace warpstack::memory {
namespace {

using testing::make_kernel;
using Counts = std::array<std::uint64_t, num_miss_events>;

MemoryConfig config() {
  MemoryConfig result = testing::small_memory();
  result.access_order = AccessOrder::timed;
  result.l1_mshrs = 8;
  return result;
}

std::uint64_t same_word(std::uint64_t /*thread*/) { return 0; }

/// The warps in the order of their accesses, each of four lines that hit, and when L1 takes them.
std::vector<std::pair<std::uint32_t, ReferenceCycle>> play(std::uint32_t queue_entries) {
  const trace::KernelTrace trace =
      make_kernel(1, 64, {{"LDG.E", {4}, {2}, same_word}, {"LDG.E", {4}, {2}, same_word}});
  const RowFlags flags(trace.instructions());
  const Paces paces{{{1, 3, false}, {1, 3, false}}, {1, 0, false}};
  TimedOrder order;
  order.scheduler = gpu::Scheduler::oldest;
  order.issue_width = 2;
  order.queue_entries = queue_entries;
  TimedSchedule schedule(trace, flags, paces, {0}, 1, order, 1, 1);
  std::vector<InstructionCounters> per_row(2);
  std::vector<std::pair<std::uint32_t, ReferenceCycle>> result;
  while (schedule.next(TimedSchedule::window)) {
    result.emplace_back(schedule.warp().warp, schedule.now());
    for (int line = 0; line < 4; ++line) schedule.hit(0);
    schedule.end_access(false, per_row);
  }
  EXPECT_EQ(schedule.next_event(TimedSchedule::window), never);
  return result;
}

TEST(TimedSchedule, AShortQueueDecidesLater) {
  // Both warps can issue at 0, two a cycle, and again 3 cycles after; an access keeps L1 for 4.
  // Room for 8: both issue at 0, and at 3 again.
  using Order = std::vector<std::pair<std::uint32_t, ReferenceCycle>>;
  EXPECT_EQ(play(8), (Order{{0, 0}, {1, 4}, {0, 8}, {1, 12}}));
  // Room for one: when warp 0's first access leaves at 4, warp 0 is ready again, and older.
  EXPECT_EQ(play(1), (Order{{0, 0}, {0, 4}, {1, 8}, {1, 12}}));
}

TEST(TimedSchedule, AReservedSetBlocks) {
  // A load of lines 0, 4 and 8, all of set 0, which has two places.
  const trace::KernelTrace trace = make_kernel(
      1, 32, {{"LDG.E", {4}, {2}, [](std::uint64_t thread) { return thread % 3 * 4 * 128; }}});
  MemoryConfig machine = config();
  // Lines leave at 1, 2 and 3 and come 340 cycles later, the port taking 4 cycles for each: the
  // last at 9 + 340, 346 after it left; a wait counts with at most 340.
  const MemoryProfile free = MemorySystem(machine).run(trace);
  EXPECT_EQ(free.place_wait_cycles, (std::array<std::uint64_t, 2>{0, 0}));
  EXPECT_EQ(free.per_row[0].waits, (Counts{0, 0, 1}));
  EXPECT_EQ(free.per_row[0].wait_cycles, (Counts{0, 0, 340}));
  // Reserved: the third line waits from 2 until the first one is back from DRAM at 341.
  machine.reserves_lines = true;
  const MemoryProfile reserved = MemorySystem(machine).run(trace);
  EXPECT_EQ(reserved.place_wait_cycles, (std::array<std::uint64_t, 2>{0, 339}));
  EXPECT_EQ(reserved.per_row[0].events, (Counts{0, 0, 1}));
  EXPECT_EQ(reserved.totals[Total::l2_read_requests], 3);
  // With one MSHR it is that which each line waits for, not a place.
  machine.l1_mshrs = 1;
  EXPECT_EQ(MemorySystem(machine).run(trace).place_wait_cycles,
            (std::array<std::uint64_t, 2>{0, 0}));
}

TEST(TimedSchedule, SectorsOfALineShareItsPlace) {
  // Two loads of all four sectors, one sector each time, of lines 0 and 4 of one set of two places:
  // the second sectors need no further place.
  MemoryConfig machine = config();
  machine.l1.sector_bytes = 32;
  machine.reserves_lines = true;
  const auto sector = [](std::uint64_t n) {
    return [n](std::uint64_t thread) { return thread % 2 * 4 * 128 + n * 32; };
  };
  const trace::KernelTrace trace =
      make_kernel(1, 32, {{"LDG.E", {4}, {2}, sector(0)}, {"LDG.E", {5}, {2}, sector(1)}});
  const MemoryProfile profile = MemorySystem(machine).run(trace);
  EXPECT_EQ(profile.totals[Total::l2_read_requests], 4);
  EXPECT_EQ(profile.place_wait_cycles, (std::array<std::uint64_t, 2>{0, 0}));
}

TEST(TimedSchedule, WaitsByLevel) {
  // Two loads of a line; after each the warp waits. The first comes from DRAM after 120 + 220
  // cycles, when L2 knows the line after 120; the second from L1 after 25.
  const std::vector<testing::Step> load_and_use = {{"LDG.E", {4}, {2}, same_word},
                                                   {"IADD3", {5}, {4}, {}},
                                                   {"LDG.E", {6}, {5}, same_word},
                                                   {"IADD3", {7}, {6}, {}}};
  MemorySystem system(config());
  const MemoryProfile cold = system.run(make_kernel(1, 32, load_and_use));
  EXPECT_EQ(cold.per_row[0].waits, (Counts{0, 0, 1}));
  EXPECT_EQ(cold.per_row[0].wait_cycles, (Counts{0, 0, 340}));
  EXPECT_EQ(cold.per_row[2].waits, (Counts{1, 0, 0}));
  EXPECT_EQ(cold.per_row[2].wait_cycles, (Counts{25, 0, 0}));
  const MemoryProfile warm = system.run(make_kernel(1, 32, load_and_use));
  EXPECT_EQ(warm.per_row[0].wait_cycles, (Counts{0, 120, 0}));
  // Without a wait between them the second hits a line that is on its way: it left a cycle later.
  system.flush_l2();
  const MemoryProfile both = system.run(make_kernel(1, 32,
                                                    {{"LDG.E", {4}, {2}, same_word},
                                                     {"LDG.E", {6}, {2}, same_word},
                                                     {"IADD3", {7}, {4, 6}, {}}}));
  EXPECT_EQ(both.per_row[0].wait_cycles, (Counts{0, 0, 340}));
  EXPECT_EQ(both.per_row[1].events, (Counts{1, 0, 0}));
  EXPECT_EQ(both.per_row[1].waits, (Counts{0, 0, 1}));
  EXPECT_EQ(both.per_row[1].wait_cycles, (Counts{0, 0, 339}));
}

TEST(TimedSchedule, NobodyWaitsForAnAtomicThatNobodyReads) {
  // Loads that hit L1 are waited for while the atomic's line comes from DRAM.
  const auto elsewhere = [](std::uint64_t thread) { return 0x20000 + 4 * thread; };
  MemorySystem system(config());
  const std::vector<testing::Step> steps = {{"LDG.E", {4}, {2}, same_word},
                                            {"IADD3", {5}, {4}, {}},
                                            {"ATOMG.E.ADD", {20}, {5}, elsewhere},
                                            {"LDG.E", {7}, {5}, same_word},
                                            {"IADD3", {8}, {7}, {}},
                                            {"LDG.E", {9}, {8}, same_word},
                                            {"IADD3", {10}, {9}, {}}};
  const MemoryProfile memory = system.run(make_kernel(1, 32, steps));
  EXPECT_EQ(memory.per_row[0].waits, (Counts{0, 0, 1}));
  EXPECT_EQ(memory.per_row[2].events, (Counts{0, 0, 1}));
  EXPECT_EQ(memory.per_row[2].waits, (Counts{0, 0, 0}));
  EXPECT_EQ(memory.per_row[3].waits, (Counts{1, 0, 0}));
  EXPECT_EQ(memory.per_row[3].wait_cycles, (Counts{25, 0, 0}));
  EXPECT_EQ(memory.per_row[5].waits, (Counts{1, 0, 0}));
}

}  // namespace
}  // namespace warpstack::memory
