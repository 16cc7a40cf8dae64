#include "common/spin_barrier.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace warpstack {
namespace {

TEST(SpinBarrier, NobodyGoesOnBeforeTheLastHasCome) {
  constexpr int num_threads = 4;
  constexpr int rounds = 200;
  SpinBarrier barrier(num_threads);
  std::atomic<int> arrived = 0;
  int ended = 0;
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < num_threads; ++t) {
      threads.emplace_back([&] {
        for (int round = 1; round <= rounds; ++round) {
          ++arrived;
          barrier.wait([&] { wrong += arrived != num_threads * ++ended; });
          wrong += ended != round;
          barrier.wait([] {});
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(ended, rounds);
}

TEST(SpinBarrier, FewerGoOnAlone) {
  SpinBarrier barrier(2);
  int alone = 0;
  {
    const std::jthread other([&] { barrier.wait([&] { barrier.shrink(1); }); });
    barrier.wait([&] { barrier.shrink(1); });
    for (int round = 0; round < 3; ++round) EXPECT_FALSE(barrier.wait([&] { ++alone; }));
  }
  EXPECT_EQ(alone, 3);
}

TEST(SpinBarrier, WhoSleptSaysSo) {
  SpinBarrier barrier(2);
  const std::jthread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_FALSE(barrier.wait([] {}));
  });
  EXPECT_TRUE(barrier.wait([] {}));
}

}  // namespace
}  // namespace warpstack
