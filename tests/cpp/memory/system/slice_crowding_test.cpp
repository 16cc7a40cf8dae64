#include "memory/system/slice_crowding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>
#include <vector>

namespace warpstack::memory {
namespace {

using Passed = std::vector<std::pair<std::uint32_t, double>>;

void pass(SliceCrowding& crowding, const Passed& requests) {
  for (const auto& request : requests) {
    crowding.pass([&](const auto& add) { add(request.first, request.second); });
  }
  crowding.finish();
}

/// Requests of one slice after the other, `length` of each, and that so many times.
Passed one_after_another(std::uint32_t slices, std::size_t length, std::size_t rounds) {
  Passed requests;
  for (std::size_t i = 0; i < slices * length * rounds; ++i) {
    requests.emplace_back(static_cast<std::uint32_t>(i / length % slices), 1);
  }
  return requests;
}

double crowding_in(const Passed& requests, std::uint32_t slices, std::uint64_t window) {
  SliceCrowding crowding(slices, window);
  pass(crowding, requests);
  return crowding_of(crowding.turns(), crowding.crowded_turns());
}

TEST(SliceCrowding, EvenRequestsAndThoseOfChanceDoNotCrowd) {
  EXPECT_EQ(crowding_in(one_after_another(8, 1, 1000), 8, 512), 1);
  std::mt19937 random(7);
  Passed requests;
  for (int i = 0; i < 100'000; ++i) requests.emplace_back(random() % 24, 1);
  for (const std::uint64_t window : {1, 10, 100, 1000, 10'000}) {
    const double found = crowding_in(requests, 24, window);
    EXPECT_GE(found, 1);
    EXPECT_LT(found, 1.01) << window;
  }
}

TEST(SliceCrowding, RunsThatAreLongerThanAWindowCrowd) {
  // A window has one slice's requests: c turns count as c - sqrt(2 c ln 8) of c / 8.
  const double of_slice = 1000 - std::sqrt(2 * 1000 * std::log(8));
  EXPECT_NEAR(crowding_in(one_after_another(8, 1000, 4), 8, 1000), 8 * of_slice / 1000, 1e-5);
  // A window that has each slice's run once is even.
  EXPECT_EQ(crowding_in(one_after_another(8, 125, 4), 8, 1000), 1);
}

TEST(SliceCrowding, PartsCountEachWindowOnce) {
  std::mt19937 random(11);
  Passed requests;
  for (int i = 0; i < 10'007; ++i) {
    const bool is_atomic = random() % 16 == 0;
    requests.emplace_back((i / 300 + random() % 3) % 12, is_atomic ? 2.5 : 1);
  }
  SliceCrowding whole(12, 100);
  pass(whole, requests);
  double turns = 0;
  double crowded = 0;
  for (std::uint64_t part = 0; part < 3; ++part) {
    SliceCrowding one(12, 100, 3, part);
    pass(one, requests);
    turns += one.turns();
    crowded += one.crowded_turns();
  }
  EXPECT_EQ(turns, whole.turns());
  EXPECT_EQ(crowded, whole.crowded_turns());
  EXPECT_GT(crowded, 2 * turns);
}

TEST(SliceCrowding, TwiceTheSlicesTakeNoLonger) {
  std::mt19937 random(13);
  for (int round = 0; round < 200; ++round) {
    const std::uint32_t slices = 1 + random() % 16;
    const std::uint32_t run = 1 + random() % 400;
    const std::uint32_t stride = 1 + random() % (4 * slices);
    const std::uint32_t spread = 1 + random() % 6;
    Passed few;
    Passed many;
    for (std::uint32_t i = 0; i < 5000; ++i) {
      const std::uint32_t line = (i / run * stride + random() % spread) * (1 + round % 3);
      const double turns = random() % 8 == 0 ? 1 + static_cast<double>(round % 5) : 1;
      few.emplace_back(line % slices, turns);
      many.emplace_back(line % (2 * slices), turns);
    }
    // Times of a slice: half of the turns of each of twice as many.
    EXPECT_LE(crowding_in(many, 2 * slices, 300) / 2, crowding_in(few, slices, 300) * (1 + 1e-6));
  }
}

}  // namespace
}  // namespace warpstack::memory
