#include "memory/order/wake_times.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace warpstack::memory {
namespace {

using Set = std::set<std::uint32_t>;

Set happen_until(WakeTimes& times, ReferenceCycle now) {
  Set happened;
  times.advance(now, [&](std::uint32_t id) { happened.insert(id); });
  return happened;
}

TEST(WakeTimes, HappenInTime) {
  WakeTimes times;
  EXPECT_TRUE(times.empty());
  EXPECT_EQ(times.first(), never);
  times.add(7, 0);
  times.add(5, 1);
  times.add(5, 2);
  times.add(100'000, 3);  // far beyond the wheel
  EXPECT_EQ(times.first(), 5u);
  EXPECT_EQ(happen_until(times, 4), Set{});
  EXPECT_EQ(happen_until(times, 5), (Set{1, 2}));
  EXPECT_EQ(times.first(), 7u);
  times.add(3, 1);  // should have been before
  EXPECT_EQ(times.first(), 5u);
  EXPECT_EQ(happen_until(times, 99'999), (Set{0, 1}));
  EXPECT_EQ(times.first(), 100'000u);
  EXPECT_EQ(happen_until(times, 100'000), Set{3});
  EXPECT_TRUE(times.empty());
}

// Of things that wait again some time after they have happened, as warps do.
TEST(WakeTimes, EqualAnOrderedMap) {
  std::mt19937_64 random(5);
  WakeTimes times;
  std::multimap<ReferenceCycle, std::uint32_t> twin;
  ReferenceCycle now = 0;
  const auto add = [&](std::uint32_t id) {
    // Most are near, some later than the wheel reaches, some too late.
    const ReferenceCycle delays[] = {0, 1, random() % 40, 500 + random() % 30, random() % 5000};
    const ReferenceCycle time = now + delays[random() % 5] - std::min<ReferenceCycle>(now, 3);
    times.add(time, id);
    twin.emplace(std::max(time, now), id);
  };
  for (std::uint32_t id = 0; id < 100; ++id) add(id);
  for (int step = 0; step < 20'000; ++step) {
    ASSERT_EQ(times.first(), twin.begin()->first);
    // Those beyond the wheel may be missing.
    const ReferenceCycle end = now + random() % 200;
    Set near;
    times.for_each_until(end, [&](std::uint32_t id) { near.insert(id); });
    for (const auto& [time, id] : twin) {
      if (near.contains(id)) {
        ASSERT_LT(time, end);
      }
      near.erase(id);
    }
    ASSERT_TRUE(near.empty());
    now = random() % 3 == 0 ? now + random() % 900 : std::max(now, twin.begin()->first);
    Set expected;
    while (!twin.empty() && twin.begin()->first <= now) {
      expected.insert(twin.begin()->second);
      twin.erase(twin.begin());
    }
    ASSERT_EQ(happen_until(times, now), expected) << now;
    for (const std::uint32_t id : expected) add(id);
  }
}

}  // namespace
}  // namespace warpstack::memory
