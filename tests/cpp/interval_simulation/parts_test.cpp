#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpus.h"
#include "interval_simulation/memory_side.h"
#include "interval_simulation/phases.h"
#include "interval_simulation/scheduler.h"
#include "interval_simulation/timeline.h"
#include "interval_simulation/under_way.h"

namespace warpstack::interval_simulation {
namespace {

using Order = gpu::Scheduler;

/// When each of `count` equal steps ends, of warps that begin at 0.
std::vector<Time> ends_of(Scheduler& scheduler, std::uint32_t count, double span,
                          double instructions, std::span<const UnitUse> uses = {}) {
  for (std::uint32_t warp = 0; warp < count; ++warp) {
    scheduler.enter(warp);
    scheduler.begin_step(warp, span, instructions, uses, 0);
  }
  std::vector<Time> ends;
  while (scheduler.next() < Scheduler::never) {
    const Time time = scheduler.next();
    ends.insert(ends.end(), scheduler.finish().size(), time);
  }
  return ends;
}

TEST(Scheduler, AStepAloneTakesItsSpan) {
  Scheduler scheduler(1, Order::gto);
  EXPECT_EQ(ends_of(scheduler, 1, 100, 4), (std::vector<Time>{100}));
}

TEST(Scheduler, OldestFirstWarpsEndOneAfterTheOther) {
  // 3 warps of 100 cycles that need half of the slots: two at once, then the third alone.
  Scheduler scheduler(1, Order::gto);
  EXPECT_EQ(ends_of(scheduler, 3, 100, 50), (std::vector<Time>{100, 100, 200}));
  Scheduler dense(0.5, Order::oldest);
  EXPECT_EQ(ends_of(dense, 2, 10, 10), (std::vector<Time>{20, 40}));
}

TEST(Scheduler, RoundRobinWarpsGoOnAlike) {
  Scheduler scheduler(1, Order::lrr);
  EXPECT_EQ(ends_of(scheduler, 3, 100, 50), (std::vector<Time>{150, 150, 150}));
}

TEST(Scheduler, UnitsAreSharedAsSlots) {
  // Each needs its unit for 80 of 100 cycles: the first has it, the second a fifth, until then.
  const std::vector<UnitUse> uses = {{2, 80}};
  Scheduler scheduler(1, Order::gto);
  const std::vector<Time> ends = ends_of(scheduler, 2, 100, 10, uses);
  ASSERT_EQ(ends.size(), 2);
  EXPECT_NEAR(ends[0], 100, 1e-4);
  EXPECT_NEAR(ends[1], 175, 1e-4);
  EXPECT_NEAR(scheduler.waited_for_units(), 75, 1e-4);
}

TEST(Scheduler, SaysWhoGoesFirst) {
  Scheduler oldest(1, Order::oldest);
  Scheduler youngest(1, Order::gty);
  Scheduler in_turn(1, Order::lrr);
  for (Scheduler* scheduler : {&oldest, &youngest, &in_turn}) {
    for (std::uint32_t warp = 0; warp < 100; ++warp) scheduler->enter(warp);
    for (const std::uint32_t warp : {10u, 20u, 90u}) scheduler->set_ready(warp, 5);
    scheduler->set_ready(3, 7);
    EXPECT_EQ(scheduler->ready_since(9), 5);
    EXPECT_EQ(scheduler->first_ready(4), Scheduler::nobody);
  }
  EXPECT_EQ(oldest.first_ready(6), 10);
  EXPECT_EQ(oldest.first_ready(7), 3);
  EXPECT_EQ(youngest.first_ready(6), 90);
  in_turn.clear_ready(20);
  EXPECT_EQ(in_turn.first_ready(7), 90);
  in_turn.clear_ready(90);
  EXPECT_EQ(in_turn.first_ready(7), 3);
}

TEST(Scheduler, KeepsItsWarpsWhenPlacesAreUsedAgain) {
  Scheduler scheduler(1, Order::gto);
  for (std::uint32_t warp = 0; warp < 200; ++warp) {
    scheduler.enter(warp);
    if (warp % 10 != 0) scheduler.leave(warp);
  }
  for (std::uint32_t warp = 0; warp < 200; warp += 10) scheduler.set_ready(warp, warp);
  for (std::uint32_t warp = 0; warp < 200; warp += 10) {
    EXPECT_EQ(scheduler.first_ready(1000), warp);
    scheduler.clear_ready(warp);
    scheduler.leave(warp);
  }
}

TEST(Timeline, EventsComeInTheOrderOfTheirCycles) {
  Timeline<int> timeline;
  for (const auto& [time, event] :
       std::vector<std::pair<Time, int>>{{5000, 4}, {3.5, 1}, {0.2, 0}, {3.1, 2}, {40, 3}}) {
    timeline.add(time, event);
  }
  EXPECT_EQ(timeline.first(), 0);
  std::vector<int> seen;
  const auto note = [&](Time time, int event) {
    seen.push_back(event);
    if (event == 3) timeline.add(time, 30);  // at once
  };
  const auto prepare = [](int) {};
  timeline.run(40, note, prepare);
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 2}));
  timeline.run(10000, note, prepare);
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 2, 3, 30, 4}));
  EXPECT_EQ(timeline.first(), Timeline<int>::no_cycle);
}

TEST(LinesUnderWay, HoldsLinesAndTargetsUpToItsLimits) {
  LinesUnderWay<int> lines(2, 2);
  const std::uint32_t a = lines.allocate(7, 1, 10);
  lines.add_target(a, 11);
  EXPECT_FALSE(lines.has_room(a));
  lines.allocate(7, 2, 12);
  EXPECT_TRUE(lines.is_full());
  int entries = 0;
  lines.for_each(7, [&](std::uint32_t, memory::SectorMask) { ++entries; });
  EXPECT_EQ(entries, 2);
  std::vector<int> targets;
  lines.for_each_target(a, [&](int target) { targets.push_back(target); });
  EXPECT_EQ(targets, (std::vector<int>{10, 11}));
  lines.release(a);
  EXPECT_EQ(lines.size(), 1);
  EXPECT_EQ(lines.allocate(8, 4, 13), a);  // its place is used again
}

TEST(Phases, AreMadeWhenWhatTheyWaitForIsDone) {
  Phases phases;
  phases.complete(64, 0, 20);
  const std::uint32_t late = phases.complete(64, 2, 5);
  EXPECT_EQ(phases.made(64, 0), 0);
  EXPECT_EQ(phases.made(64, 1), 20);
  EXPECT_FALSE(phases.made(64, 2));
  EXPECT_FALSE(phases.access_is_done(late, 9));
  EXPECT_TRUE(phases.access_is_done(late, 8));
  EXPECT_EQ(phases.made(64, 1), 9);
  EXPECT_EQ(phases.made(64, 2), 20);
  EXPECT_FALSE(phases.made(128, 1));
}

}  // namespace
}  // namespace warpstack::interval_simulation
