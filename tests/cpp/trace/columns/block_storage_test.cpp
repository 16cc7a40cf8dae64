#include "trace/columns/block_storage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <thread>

#include "kernels.h"

namespace warpstack::trace {
namespace {

using testing::memory_budget;

struct Block {
  std::vector<WarpEntry> warps;
  ColumnBuffers columns;
};

Block make_block(std::uint32_t seed) {
  Block block;
  for (std::uint32_t warp = 0; warp < 2; ++warp) {
    const ColumnCounts begin = block.columns.counts();
    for (std::uint32_t i = 0; i < 5 + seed % 3; ++i) {
      block.columns.instruction.push_back(seed * 100 + i);
      block.columns.active_mask.push_back(~i);
      if (i % 2 == 0) {
        block.columns.memory_static.push_back(seed + i);
        block.columns.memory_count.push_back(static_cast<std::uint16_t>(i + 1));
        if (seed % 3 == 1) block.columns.l1_passes.push_back(static_cast<std::uint8_t>(i + 1));
        for (std::uint32_t s = 0; s <= i; ++s) block.columns.sector.push_back(seed * 1000ull + s);
        block.columns.store_bytes.push_back(seed ^ i);
        if (seed % 2 == 1) {
          block.columns.atomic_lanes.push_back({static_cast<std::uint8_t>(i + 1), 1});
        }
      }
    }
    const ColumnCounts end = block.columns.counts();
    const auto entries = [](std::uint64_t first, std::uint64_t last) {
      return static_cast<std::uint32_t>(last - first);
    };
    block.warps.push_back({2 * warp, entries(begin.instructions, end.instructions),
                           entries(begin.memory, end.memory), entries(begin.sectors, end.sectors),
                           entries(begin.stores, end.stores)});
  }
  return block;
}

template <typename T>
void expect_equal(std::span<const T> found, const std::vector<T>& all, std::uint64_t from,
                  std::uint64_t to) {
  ASSERT_EQ(found.size(), to - from);
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], all[from + i]);
}

void expect_contents(const BlockStorage& storage, std::uint32_t count) {
  std::vector<std::byte> scratch;
  for (std::uint32_t b = 0; b < count; ++b) {
    const Block expected = make_block(b);
    EXPECT_EQ(storage.linear_index(b), 10 + 3 * b);
    ASSERT_EQ(storage.warps(b).size(), 2u);
    EXPECT_EQ(storage.counts(b), expected.columns.counts());
    ColumnCounts last;
    for (std::size_t w = 0; w < 2; ++w) {
      EXPECT_EQ(storage.warps(b)[w].number, 2 * w);
      const ColumnCounts first = last;
      EXPECT_EQ(storage.begin(b, w), first);
      last += expected.warps[w].counts();
      const ColumnView view = storage.read(b, first, last, scratch);
      expect_equal(view.instruction, expected.columns.instruction, first.instructions,
                   last.instructions);
      expect_equal(view.active_mask, expected.columns.active_mask, first.instructions,
                   last.instructions);
      expect_equal(view.memory_static, expected.columns.memory_static, first.memory, last.memory);
      expect_equal(view.memory_count, expected.columns.memory_count, first.memory, last.memory);
      expect_equal(view.sector, expected.columns.sector, first.sectors, last.sectors);
      expect_equal(view.store_bytes, expected.columns.store_bytes, first.stores, last.stores);
      // Blocks without an atomic have no lanes.
      if (b % 2 == 0) {
        EXPECT_TRUE(view.atomic_lanes.empty());
      } else {
        expect_equal(view.atomic_lanes, expected.columns.atomic_lanes, first.stores, last.stores);
      }
      // Nor have others passes.
      if (b % 3 != 1) {
        EXPECT_TRUE(view.l1_passes.empty());
      } else {
        expect_equal(view.l1_passes, expected.columns.l1_passes, first.memory, last.memory);
      }
    }
  }
}

void fill(BlockStorage& storage, std::uint32_t count) {
  for (std::uint32_t b = 0; b < count; ++b) {
    const Block block = make_block(b);
    // In one piece, or the first warp apart.
    const ColumnCounts first = b % 2 == 0 ? ColumnCounts{} : block.warps.front().counts();
    const std::array pieces{block.columns.view({}, first),
                            block.columns.view(first, block.columns.counts())};
    const ColumnView stored = storage.append(10 + 3 * b, block.warps, pieces);
    EXPECT_TRUE(std::ranges::equal(stored.instruction, block.columns.instruction));
    EXPECT_TRUE(std::ranges::equal(stored.sector, block.columns.sector));
  }
}

TEST(BlockStorage, InMemory) {
  BlockStorage storage(memory_budget());
  fill(storage, 20);
  EXPECT_FALSE(storage.spilled());
  expect_contents(storage, 20);
}

TEST(BlockStorage, EverythingInAFile) {
  BlockStorage storage(memory_budget(0));
  fill(storage, 20);
  EXPECT_TRUE(storage.spilled());
  expect_contents(storage, 20);
}

TEST(BlockStorage, MovesToAFileWhenTheBudgetIsSpent) {
  const auto budget = memory_budget(2000);
  {
    BlockStorage storage(budget);
    fill(storage, 3);
    EXPECT_FALSE(storage.spilled());
    BlockStorage other(budget);
    fill(other, 20);
    EXPECT_TRUE(other.spilled());
    expect_contents(other, 20);
    expect_contents(storage, 3);
  }
  EXPECT_TRUE(budget->try_take(2000)) << "a destroyed store gives its share back";
}

TEST(BlockStorage, ThreadsReadAFileTogether) {
  BlockStorage storage(memory_budget(0));
  fill(storage, 50);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back([&storage] { expect_contents(storage, 50); });
}

TEST(BlockStorage, MissingFolderIsASystemError) {
  BlockStorage storage(std::make_shared<StorageBudget>(0, "/nowhere/at/all"));
  const Block block = make_block(1);
  const ColumnView columns = block.columns.view();
  EXPECT_THROW(storage.append(1, block.warps, {&columns, 1}), std::system_error);
}

TEST(StorageBudget, AChunkThatIsLeftServesTheNext) {
  StorageBudget budget(100, "");
  StorageBudget::Chunk first = budget.take_chunk();
  const StorageBudget::Chunk second = budget.take_chunk();
  EXPECT_NE(first, second);
  const std::byte* const place = first.get();
  budget.leave_chunk(std::move(first));
  EXPECT_EQ(budget.take_chunk().get(), place);
}

TEST(StorageBudget, AbsurdRequestsDoNotOverflow) {
  StorageBudget budget(100, "");
  EXPECT_TRUE(budget.try_take(60));
  EXPECT_FALSE(budget.try_take(~std::uint64_t{0}));
  EXPECT_FALSE(budget.try_take(41));
  EXPECT_TRUE(budget.try_take(40));
}

}  // namespace
}  // namespace warpstack::trace
