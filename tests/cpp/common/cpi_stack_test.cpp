#include "common/cpi_stack.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace warpstack {
namespace {

TEST(CpiStack, BeginsEmptyAndAddsByComponent) {
  CpiStack<std::int64_t> stack;
  EXPECT_EQ(stack.sum(), 0);
  stack[StackComponent::base] = 3;
  stack[StackComponent::queue] = 4;
  CpiStack<std::int64_t> other;
  other[StackComponent::queue] = 5;
  stack += other;
  EXPECT_EQ(stack[StackComponent::base], 3);
  EXPECT_EQ(stack[StackComponent::queue], 9);
  EXPECT_EQ(stack.sum(), 12);
}

TEST(CpiStack, SumsFromTheBottomUp) {
  // In another order the 1 would be lost beside 2^53.
  CpiStack<double> stack;
  stack[StackComponent::base] = 0x1p53;
  stack[StackComponent::noc] = -0x1p53;
  stack[StackComponent::queue] = 1;
  EXPECT_EQ(stack.sum(), 1);
}

TEST(CpiStack, HasANameForEachComponentInOrder) {
  EXPECT_EQ(num_values<StackComponent>, 8);
  EXPECT_EQ(name_of(StackComponent::base), "base");
  EXPECT_EQ(name_of(StackComponent::queue), "queue");
}

}  // namespace
}  // namespace warpstack
