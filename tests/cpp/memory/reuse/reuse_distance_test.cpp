#include "memory/reuse/reuse_distance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <random>
#include <stdexcept>

namespace warpstack::memory {
namespace {

/// The definition: the place of the line in a list, the last used first.
std::vector<std::uint64_t> plain_distances(const std::vector<std::uint64_t>& lines) {
  std::list<std::uint64_t> stack;
  std::vector<std::uint64_t> result;
  for (const std::uint64_t line : lines) {
    const auto found = std::find(stack.begin(), stack.end(), line);
    result.push_back(found == stack.end()
                         ? cold_access
                         : static_cast<std::uint64_t>(std::distance(stack.begin(), found)));
    if (found != stack.end()) stack.erase(found);
    stack.push_front(line);
  }
  return result;
}

std::vector<std::uint64_t> distances(StackDistances& stack,
                                     const std::vector<std::uint64_t>& lines) {
  std::vector<std::uint64_t> result(lines.size());
  stack.access(lines, result);
  return result;
}

TEST(StackDistances, ExampleOfThePaper) {
  StackDistances stack;  // cache paper, Table 1
  EXPECT_EQ(distances(stack, {1, 2, 3, 1, 1, 3}),
            (std::vector<std::uint64_t>{cold_access, cold_access, cold_access, 2, 0, 1}));
  EXPECT_EQ(stack.num_lines(), 3u);
  EXPECT_EQ(distances(stack, {2, 2}), (std::vector<std::uint64_t>{2, 0}));  // the stream goes on
}

TEST(StackDistances, LineZeroIsALine) {
  StackDistances stack;
  EXPECT_EQ(distances(stack, {0, 0, ~std::uint64_t{0}, 0}),
            (std::vector<std::uint64_t>{cold_access, 0, cold_access, 1}));
}

TEST(StackDistances, RandomStreamsEqualTheDefinition) {
  std::mt19937_64 random(1);
  for (const std::uint64_t footprint : {3, 70, 5000}) {
    std::vector<std::uint64_t> lines(20000);
    for (std::uint64_t& line : lines) line = random() % footprint << 40;
    StackDistances stack;
    EXPECT_EQ(distances(stack, lines), plain_distances(lines)) << footprint;
  }
}

TEST(StackDistances, TimesMoveTogetherManyTimes) {
  // A cycle of n lines has distance n - 1 throughout, wherever the times are.
  constexpr std::uint64_t n = 100'000;
  std::vector<std::uint64_t> lines(30 * n);
  for (std::size_t i = 0; i < lines.size(); ++i) lines[i] = i % n;
  StackDistances stack;
  const std::vector<std::uint64_t> found = distances(stack, lines);
  EXPECT_EQ(std::count(found.begin(), found.begin() + n, cold_access), n);
  EXPECT_EQ(std::count(found.begin() + n, found.end(), n - 1), 29 * n);
}

TEST(StackDistances, CanBeInterrupted) {
  StackDistances stack;
  const std::vector<std::uint64_t> lines(10);
  std::vector<std::uint64_t> found(10);
  EXPECT_THROW(stack.access(lines, found, [] { throw std::runtime_error("stop"); }),
               std::runtime_error);
  EXPECT_EQ(stack.num_lines(), 0u);
}

}  // namespace
}  // namespace warpstack::memory
