#include "memory/cache/lru_sets.h"

#include <gtest/gtest.h>

#include <random>

#include "common/error.h"

namespace warpstack::memory {
namespace {

TEST(LruSets, DepthIsThePlaceInTheSet) {
  LruSets lines(2, 2);
  EXPECT_EQ(lines.access(0), 2u);  // set 0: 0
  EXPECT_EQ(lines.access(1), 2u);  // set 1: 1
  EXPECT_EQ(lines.access(2), 2u);  // set 0: 2 0
  EXPECT_EQ(lines.access(0), 1u);  // set 0: 0 2
  EXPECT_EQ(lines.access(0), 0u);
  EXPECT_EQ(lines.access(4), 2u);  // set 0: 4 0
  EXPECT_FALSE(lines.contains(2));
  EXPECT_TRUE(lines.contains(0));
  EXPECT_TRUE(lines.contains(1));
}

TEST(LruSets, ErasedLinesLeaveRoom) {
  LruSets lines(1, 2);
  lines.access(1);
  lines.access(2);
  lines.erase(2);
  lines.erase(5);  // was never there
  EXPECT_FALSE(lines.contains(2));
  lines.access(3);
  EXPECT_TRUE(lines.contains(1));
  EXPECT_TRUE(lines.contains(3));
}

TEST(CacheFamily, EqualsCachesOneByOne) {
  std::mt19937_64 random(2);
  std::vector<std::uint64_t> lines(10000);
  for (std::uint64_t& line : lines) line = random() % 300;
  const std::vector<std::uint64_t> sets{1, 2, 6, 8, 32};  // 8 is not a multiple of 6
  CacheFamily family(sets, 4);
  family.access(std::span(lines).first(5000));
  family.access(std::span(lines).last(5000));
  std::vector<std::uint64_t> expected;
  for (const std::uint64_t number : sets) {
    for (std::uint32_t ways = 1; ways <= 4; ++ways) {
      LruSets cache(number, ways);
      std::uint64_t hits = 0;
      for (const std::uint64_t line : lines) hits += cache.access(line) < ways;
      expected.push_back(hits);
    }
  }
  EXPECT_EQ(family.hits(), expected);
}

TEST(CacheFamily, ImpossibleGeometry) {
  EXPECT_THROW(CacheFamily({1}, 0), InputError);
  EXPECT_THROW(CacheFamily({0}, 1), InputError);
  EXPECT_THROW(CacheFamily({4, 2}, 1), InputError);
  EXPECT_THROW(CacheFamily({std::uint64_t{1} << 60}, 1 << 10), InputError);
  EXPECT_THROW(CacheFamily({1 << 30, std::uint64_t{1} << 31}, 1), InputError);
}

}  // namespace
}  // namespace warpstack::memory
