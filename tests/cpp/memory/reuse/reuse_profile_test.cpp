#include "memory/reuse/reuse_profile.h"

#include <gtest/gtest.h>

#include "common/error.h"

namespace warpstack::memory {
namespace {

TEST(ReuseProfiler, CountsByKindInOneStream) {
  ReuseProfiler profiler({});
  const std::vector<std::uint64_t> lines{1, 2, 1, 2, 2};
  const std::vector<std::uint8_t> kinds{0, 1, 1, 0, 2};
  profiler.access(lines, kinds);
  EXPECT_EQ(profiler.accesses(), (std::array<std::uint64_t, 3>{2, 2, 1}));
  const auto& [loads, stores, atomics] = profiler.histograms();
  EXPECT_EQ(loads.cold, 1u);
  EXPECT_EQ(loads.count[1], 1u);  // the second access to 2
  EXPECT_EQ(stores.cold, 1u);
  EXPECT_EQ(stores.count[1], 1u);  // the second access to 1
  EXPECT_EQ(atomics.cold, 0u);
  EXPECT_EQ(atomics.count[0], 1u);
}

TEST(ReuseProfiler, StreamsShareNothing) {
  ReuseProfiler profiler({});
  const std::vector<std::uint64_t> lines{1, 1};
  profiler.access(lines, {});
  profiler.end_stream();
  profiler.access(lines, {});
  EXPECT_EQ(profiler.histograms()[0].cold, 2u);
  EXPECT_EQ(profiler.histograms()[0].count[0], 2u);
}

TEST(ReuseProfiler, BatchesPartitionTheSample) {
  ReuseProfiler profiler({0.25, 4, 7});
  std::vector<std::uint64_t> lines(40000);
  for (std::size_t i = 0; i < lines.size(); ++i) lines[i] = i % 10000;
  profiler.access(lines, {});
  EXPECT_EQ(profiler.accesses()[0], 40000u);
  std::uint64_t in_batches = 0;
  ASSERT_EQ(profiler.num_batches(), 4u);
  for (std::size_t b = 0; b < 4; ++b) {
    const DistanceHistogram& loads = profiler.batch(b)[0];
    in_batches += loads.cold;
    // 625 lines on average; the hash spreads them like a coin, with a deviation of 24.
    EXPECT_NEAR(static_cast<double>(loads.cold), 625, 150);
    EXPECT_EQ(loads.count[loads.cold - 1], 3 * loads.cold);  // a cycle of the batch's lines
  }
  EXPECT_EQ(profiler.histograms()[0].cold, in_batches);
}

TEST(ReuseProfiler, ImpossibleSampling) {
  EXPECT_THROW(ReuseProfiler({0, 4, 0}), InputError);
  EXPECT_THROW(ReuseProfiler({1.01, 4, 0}), InputError);
  EXPECT_THROW(ReuseProfiler({0.5, 1, 0}), InputError);
  EXPECT_THROW(ReuseProfiler({0.5, 1025, 0}), InputError);
}

}  // namespace
}  // namespace warpstack::memory
