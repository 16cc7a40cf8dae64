// Blocks that repeat others, against a plain list of all blocks.

#include "trace/columns/block_classes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>

#include "common/error.h"
#include "kernels.h"
#include "trace/columns/column_batch.h"
#include "trace/columns/trace_file.h"

namespace warpstack::trace {
namespace {

using testing::header;
using testing::memory_budget;

constexpr std::array opcodes{"MOV", "LDG.E", "STG.E", "LDS", "RED.E.ADD", "LDG.E.64"};
const std::vector<std::uint8_t> has_sectors{0, 1, 1, 0, 1, 1};
constexpr std::uint32_t warps_per_block = 4;

struct Block {
  std::uint64_t linear_index = 0;
  std::vector<WarpEntry> warps;
  ColumnBuffers columns;
};

class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  /// Blocks of some templates, moved row by row; some differ in one sector, some are not there.
  std::vector<Block> blocks(std::size_t count) {
    const std::size_t num_templates = 1 + below(5);
    std::vector<Block> templates;
    for (std::size_t i = 0; i < num_templates; ++i) templates.push_back(block());
    std::vector<Block> result;
    std::uint64_t linear_index = 0;
    for (std::size_t i = 0; i < count; ++i) {
      Block next = templates[below(num_templates)];
      linear_index += 1 + (below(8) == 0 ? below(5) : 0);
      next.linear_index = linear_index;
      if (below(4) != 0) move(next);
      if (below(10) == 0 && !next.columns.sector.empty()) {
        next.columns.sector[below(next.columns.sector.size())] += 1 + below(9);
      }
      if (below(20) == 0) next.columns.active_mask[0] ^= 2;
      result.push_back(std::move(next));
    }
    return result;
  }

 private:
  Block block() {
    Block result;
    const bool has_passes = below(3) == 0;
    for (std::uint32_t warp = 0; warp < warps_per_block; ++warp) {
      if (warp > 0 && below(6) == 0) continue;
      const ColumnCounts begin = result.columns.counts();
      // Warps may be idle, but not the first.
      const std::uint64_t length = warp > 0 && below(6) == 0 ? 0 : 1 + below(12);
      for (std::uint64_t i = 0; i < length; ++i) instruction(result.columns, has_passes);
      const ColumnCounts end = result.columns.counts();
      result.warps.push_back(
          TraceBuilder::entry_of(0, warp,
                                 {end.instructions - begin.instructions, end.memory - begin.memory,
                                  end.sectors - begin.sectors, end.stores - begin.stores}));
    }
    return result;
  }

  void instruction(ColumnBuffers& columns, bool has_passes) {
    const auto row = static_cast<std::uint32_t>(below(opcodes.size()));
    columns.instruction.push_back(row);
    columns.active_mask.push_back(~static_cast<std::uint32_t>(below(3)));
    if (row == 0) return;
    const auto count = static_cast<std::uint16_t>(below(5));
    columns.memory_static.push_back(row);
    columns.memory_count.push_back(count);
    if (has_passes) {
      const bool may = has_sectors[row] != 0 && row != 4 && count > 0;
      columns.l1_passes.push_back(may ? static_cast<std::uint8_t>(below(3)) : std::uint8_t{0});
    }
    if (has_sectors[row] == 0) return;
    const std::uint64_t first = 1000 + below(1u << 20);
    for (std::uint16_t s = 0; s < count; ++s) columns.sector.push_back(first + s * (1 + below(3)));
    if (row != 2 && row != 4) return;
    columns.atomic_lanes.resize(columns.store_bytes.size());
    for (std::uint16_t s = 0; s < count; ++s) {
      columns.store_bytes.push_back(static_cast<std::uint32_t>(1 + below(255)));
      columns.atomic_lanes.push_back(row == 4 ? AtomicLanes{2, 1} : AtomicLanes{});
    }
  }

  void move(Block& block) {
    std::array<std::uint64_t, opcodes.size()> shifts;
    for (std::uint64_t& shift : shifts) shift = below(3) * (below(1000) - 500);
    // Too far for a shift: a class of its own.
    if (below(20) == 0) shifts[1] = std::uint64_t{1} << 40;
    std::size_t next = 0;
    for (std::size_t i = 0; i < block.columns.memory_static.size(); ++i) {
      const std::uint32_t row = block.columns.memory_static[i];
      if (has_sectors[row] == 0) continue;
      for (std::uint16_t s = 0; s < block.columns.memory_count[i]; ++s) {
        block.columns.sector[next++] += shifts[row];
      }
    }
  }

  std::mt19937_64 random_;
};

std::shared_ptr<StorageBudget> some_budget(Generator& random) {
  const std::array limits{std::uint64_t{1} << 40, std::uint64_t{0}, random.below(20'000)};
  return memory_budget(limits[random.below(limits.size())]);
}

/// The columns of a view, absent ones as zeros.
ColumnBuffers copied(const ColumnView& view) {
  ColumnBuffers result;
  result.append(view);
  result.atomic_lanes.resize(result.store_bytes.size());
  result.l1_passes.resize(result.memory_static.size());
  return result;
}

void expect_equal(const ColumnView& found, const ColumnView& expected) {
  const ColumnBuffers one = copied(found);
  const ColumnBuffers other = copied(expected);
  EXPECT_EQ(one.instruction, other.instruction);
  EXPECT_EQ(one.active_mask, other.active_mask);
  EXPECT_EQ(one.memory_static, other.memory_static);
  EXPECT_EQ(one.memory_count, other.memory_count);
  EXPECT_EQ(one.sector, other.sector);
  EXPECT_EQ(one.store_bytes, other.store_bytes);
  EXPECT_EQ(one.atomic_lanes, other.atomic_lanes);
  EXPECT_EQ(one.l1_passes, other.l1_passes);
}

void expect_blocks(const BlockStorage& storage, const std::vector<Block>& blocks,
                   Generator& random) {
  std::vector<std::byte> scratch;
  ASSERT_EQ(storage.size(), blocks.size());
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const Block& block = blocks[b];
    const ColumnCounts end = block.columns.counts();
    EXPECT_EQ(storage.linear_index(b), block.linear_index);
    EXPECT_TRUE(std::ranges::equal(storage.warps(b), block.warps));
    ASSERT_EQ(storage.counts(b), end);
    expect_equal(storage.read(b, {}, end, scratch), block.columns.view());
    ColumnCounts last;
    for (std::size_t w = 0; w < block.warps.size(); ++w) {
      const ColumnCounts first = last;
      EXPECT_EQ(storage.begin(b, w), first);
      last += block.warps[w].counts();
      expect_equal(storage.read(b, first, last, scratch), block.columns.view(first, last));
    }
    // Any part of the sectors alone.
    const std::uint64_t from = random.below(end.sectors + 1);
    const std::uint64_t to = from + random.below(end.sectors - from + 1);
    expect_equal(storage.read(b, {0, 0, from, 0}, {0, 0, to, 0}, scratch),
                 block.columns.view({0, 0, from, 0}, {0, 0, to, 0}));
  }
}

/// How many blocks are distinct: by everything but the sectors, and each sector's distance from the
/// first of its row. Blocks that are too far from others for a shift are left out.
std::size_t num_distinct(const std::vector<Block>& blocks) {
  std::set<std::string> seen;
  for (const Block& block : blocks) {
    std::string key;
    const auto add = [&key](std::uint64_t value) { key += std::to_string(value) + ' '; };
    for (const WarpEntry& warp : block.warps) {
      for (const std::uint32_t value : {warp.number, warp.instructions, warp.memory}) add(value);
    }
    const ColumnBuffers all = copied(block.columns.view());
    for (const std::uint32_t value : all.instruction) add(value);
    for (const std::uint32_t value : all.active_mask) add(value);
    for (const std::uint32_t value : all.memory_static) add(value);
    for (const std::uint16_t value : all.memory_count) add(value);
    for (const std::uint32_t value : all.store_bytes) add(value);
    for (const std::uint8_t value : all.l1_passes) add(value);
    std::map<std::uint32_t, std::uint64_t> firsts;
    std::size_t next = 0;
    for (std::size_t i = 0; i < all.memory_static.size(); ++i) {
      const std::uint32_t row = all.memory_static[i];
      if (has_sectors[row] == 0) continue;
      for (std::uint16_t s = 0; s < all.memory_count[i]; ++s) {
        const std::uint64_t sector = all.sector[next++];
        add(sector - firsts.try_emplace(row, sector).first->second);
      }
      if (all.memory_count[i] > 0 && firsts[row] >> 36 != 0) key += "far ";
    }
    seen.insert(key);
  }
  return seen.size();
}

TEST(BlockClasses, AreThePlainBlocks) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    Generator random(seed);
    BlockStorage storage(some_budget(random));
    const std::vector<Block> blocks = random.blocks(1 + random.below(60));
    for (const Block& block : blocks) {
      const ColumnCounts first = block.warps.front().counts();
      const std::array pieces{block.columns.view({}, first),
                              block.columns.view(first, block.columns.counts())};
      expect_equal(storage.append(block.linear_index, block.warps, pieces, has_sectors),
                   block.columns.view());
    }
    storage.seal();
    expect_blocks(storage, blocks, random);
    EXPECT_EQ(storage.num_classes(), num_distinct(blocks));
    EXPECT_LE(storage.stored_bytes(), storage.bytes() + storage.bytes() / 2);
  }
}

TEST(BlockClasses, LookingEndsWhereNothingRepeats) {
  Generator random(1);
  BlockStorage storage(memory_budget());
  std::vector<Block> blocks;
  for (std::uint32_t i = 0; i < 600; ++i) {
    Block block;
    block.linear_index = i;
    block.columns.instruction = {0, i};
    block.columns.active_mask = {1, 1};
    block.warps = {TraceBuilder::entry_of(i, 0, block.columns.counts())};
    if (i % 300 == 299) block = blocks.back(), block.linear_index = i;
    const ColumnView view = block.columns.view();
    storage.append(i, block.warps, {&view, 1}, has_sectors);
    blocks.push_back(std::move(block));
  }
  expect_blocks(storage, blocks, random);
  EXPECT_EQ(storage.num_classes(), 600u) << "the 300th block came after 64 distinct ones";
}

std::unique_ptr<TraceBuilder> builder_of(std::shared_ptr<StorageBudget> budget) {
  auto builder =
      std::make_unique<TraceBuilder>(header(1000, warps_per_block * 32), std::move(budget));
  std::uint32_t pc = 0;
  for (const char* opcode : opcodes) {
    const std::vector<std::uint16_t> registers{1};
    builder->intern(make_static_instruction(16 * pc++, opcode, registers, registers));
  }
  return builder;
}

KernelTrace trace_of(const std::vector<Block>& blocks, std::shared_ptr<StorageBudget> budget,
                     bool are_distinct) {
  const auto builder = builder_of(std::move(budget));
  for (const Block& block : blocks) {
    builder->add_block(block.linear_index, block.warps, block.columns.view(), are_distinct);
  }
  return builder->finish();
}

void expect_same(const KernelTrace& found, const KernelTrace& plain,
                 const std::vector<Block>& blocks, Generator& random) {
  EXPECT_EQ(found.digest(), plain.digest());
  EXPECT_EQ(found.content_digest(), plain.content_digest());
  EXPECT_EQ(found.digest_without_lanes(), plain.digest_without_lanes());
  EXPECT_EQ(found.row_counts(), plain.row_counts());
  EXPECT_EQ(found.totals(), plain.totals());
  EXPECT_EQ(found.num_warps(), plain.num_warps());
  EXPECT_EQ(found.num_idle_warps(), plain.num_idle_warps());
  EXPECT_EQ(found.blocks().bytes(), plain.blocks().bytes());
  expect_blocks(found.blocks(), blocks, random);
}

TEST(BlockClasses, TracesAndFilesAreThoseOfPlainBlocks) {
  const std::string path = ::testing::TempDir() + "/classes-" + std::to_string(::getpid());
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Generator random(seed);
    const std::vector<Block> blocks = random.blocks(1 + random.below(40));
    const KernelTrace plain = trace_of(blocks, memory_budget(), true);
    EXPECT_EQ(plain.blocks().num_classes(), blocks.size());
    const KernelTrace trace = trace_of(blocks, some_budget(random), false);
    expect_same(trace, plain, blocks, random);
    const auto again = builder_of(some_budget(random));
    std::size_t first = 0;
    for (const std::size_t last : batch_ends(trace, random.below(2) * random.below(5000))) {
      const DistinctBatch batch = read_distinct_batch(trace, first, last);
      const Repeats& repeats = batch.repeats;
      add_batch(*again, view_of(batch.distinct),
                {repeats.block, repeats.like, repeats.shifts, repeats.shift});
      first = last;
    }
    const KernelTrace back = again->finish();
    expect_same(back, plain, blocks, random);
    EXPECT_EQ(back.blocks().num_classes(), trace.blocks().num_classes());
    write_trace_file(trace, path);
    expect_same(read_trace_file(path, some_budget(random)), plain, blocks, random);
  }
  std::filesystem::remove(path);
}

TEST(BlockClasses, DamagedRepeatsAreErrors) {
  Generator random(7);
  std::vector<Block> blocks;
  while (blocks.empty() || num_distinct(blocks) == blocks.size()) blocks = random.blocks(20);
  const KernelTrace trace = trace_of(blocks, memory_budget(), false);
  const DistinctBatch good = read_distinct_batch(trace, 0, blocks.size());
  ASSERT_FALSE(good.repeats.shift.empty());
  const auto attempt = [&](auto change) {
    DistinctBatch batch = good;
    change(batch);
    const auto builder = builder_of(memory_budget());
    const Repeats& repeats = batch.repeats;
    add_batch(*builder, view_of(batch.distinct),
              {repeats.block, repeats.like, repeats.shifts, repeats.shift});
    return builder->finish().digest();
  };
  EXPECT_EQ(attempt([](DistinctBatch&) {}), trace.digest());
  using Batch = DistinctBatch;
  EXPECT_THROW(attempt([](Batch& b) { b.repeats.like.back() = 1000; }), InputError);
  EXPECT_THROW(attempt([](Batch& b) { b.repeats.like.pop_back(); }), InputError);
  EXPECT_THROW(attempt([](Batch& b) { b.repeats.shift.pop_back(); }), InputError);
  EXPECT_THROW(attempt([](Batch& b) { b.repeats.shift.push_back(0); }), InputError);
  EXPECT_THROW(attempt([](Batch& b) { b.repeats.shifts.back() = ~0u; }), InputError);
  EXPECT_THROW(attempt([](Batch& b) { b.repeats.block.back() = 1u << 30; }), InputError);
  EXPECT_THROW(attempt([](Batch& b) { b.repeats.block.back() = 0; }), InputError);
  EXPECT_THROW(attempt([](Batch& b) { std::swap(b.repeats.block[0], b.repeats.block[1]); }),
               InputError);
  EXPECT_THROW(attempt([](Batch& b) { b.distinct = {}; }), InputError);
  // Another place is another trace.
  EXPECT_NE(attempt([](Batch& b) { ++b.repeats.shift.back(); }), trace.digest());
}

}  // namespace
}  // namespace warpstack::trace
