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

TEST(DetailedStack, SumsToTheComponents) {
  DetailedStack<std::int64_t> details;
  std::int64_t next = 1;
  CpiStack<std::int64_t> expected;
  for (const StackDetail detail : values_of<StackDetail>) {
    details[detail] = next;
    expected[component_of(detail)] += next;
    next *= 2;
  }
  const CpiStack<std::int64_t> stack = components_of(details);
  for (const StackComponent component : values_of<StackComponent>) {
    EXPECT_EQ(stack[component], expected[component]);
    EXPECT_GT(stack[component], 0);
  }
  EXPECT_EQ(stack.sum(), next - 1);
  EXPECT_EQ(component_of(StackDetail::bank_conflicts), StackComponent::dep);
  EXPECT_EQ(component_of(StackDetail::tags), StackComponent::l1);
  EXPECT_EQ(component_of(StackDetail::places), StackComponent::mshr);
  EXPECT_EQ(component_of(StackDetail::atomics), StackComponent::noc);
  EXPECT_EQ(component_of(StackDetail::dram_turnarounds), StackComponent::queue);
}

}  // namespace
}  // namespace warpstack
