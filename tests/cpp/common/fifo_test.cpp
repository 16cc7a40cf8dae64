#include "common/fifo.h"

#include <gtest/gtest.h>

#include <random>

namespace warpstack {
namespace {

TEST(Fifo, KeepsItsOrderWhileItGrowsAndWraps) {
  Fifo<int> fifo;
  int next = 0;
  int expected = 0;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 7; ++i) fifo.push(next++);
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(fifo.front(), expected++);
      fifo.pop();
    }
  }
  EXPECT_EQ(fifo.size(), 100u);
  EXPECT_EQ(fifo[0], expected);
}

TEST(Fifo, KeepsTheOrderWhileItGrows) {
  Fifo<int> fifo;
  int in = 0;
  int out = 0;
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    for (unsigned n = random() % 20; n > 0; --n) fifo.push(in++);
    for (unsigned n = random() % 18; n > 0 && out < in; --n) {
      ASSERT_FALSE(fifo.empty());
      EXPECT_EQ(fifo.front(), out++);
      fifo.pop();
    }
  }
  EXPECT_EQ(fifo.empty(), in == out);
}

}  // namespace
}  // namespace warpstack
