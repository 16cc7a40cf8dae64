#include "common/meeting.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace warpstack {
namespace {

TEST(Meeting, NobodyGoesOnBeforeTheLastHasCome) {
  constexpr int num_threads = 4;
  constexpr int rounds = 200;
  Meeting meeting(num_threads);
  std::atomic<int> arrived = 0;
  int ended = 0;
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < num_threads; ++t) {
      threads.emplace_back([&] {
        for (int round = 1; round <= rounds; ++round) {
          ++arrived;
          meeting.wait([&] { wrong += arrived != num_threads * ++ended; });
          wrong += ended != round;
          meeting.wait([] {});
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(ended, rounds);
}

TEST(Meeting, FewerGoOnAlone) {
  Meeting meeting(2);
  int alone = 0;
  {
    const std::jthread other([&] { meeting.wait([&] { meeting.shrink(1); }); });
    meeting.wait([&] { meeting.shrink(1); });
    for (int round = 0; round < 3; ++round) EXPECT_FALSE(meeting.wait([&] { ++alone; }));
  }
  EXPECT_EQ(alone, 3);
}

TEST(Meeting, WhoSleptSaysSo) {
  Meeting meeting(2);
  const std::jthread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_FALSE(meeting.wait([] {}));
  });
  EXPECT_TRUE(meeting.wait([] {}));
}

}  // namespace
}  // namespace warpstack
